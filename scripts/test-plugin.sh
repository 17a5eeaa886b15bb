#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# test-plugin.sh - does the one tc plugin that "make plugin" builds load in the tc of every Debian
# release, and work there? Each tc runs in the userland of its own release (root.sh test), without a
# kernel module: what it says about options is the plugin's. KTAP on stdout. What options do in a
# kernel is tested in selftests/tdc.
#
# usage: test-plugin.sh [PLUGIN]      default: build/tc/q_dualpi2.so, built first

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

releases=(bullseye bookworm trixie forky)
oldest_glibc=2.31
tests_per_release=6

plugin=${1-}
if [ -z "$plugin" ]; then
	make --no-print-directory -C "$DUALPI2_ROOT" plugin >&2
	plugin=$DUALPI2_ROOT/build/tc/q_dualpi2.so
fi
[ "${plugin##*/}" = q_dualpi2.so ] || die "tc looks for q_dualpi2.so, but the plugin is named ${plugin##*/}"
plugin=$(realpath -e "$plugin") || die "no plugin; run make plugin"
case $plugin in
"$DUALPI2_ROOT"/* | "$DUALPI2_CACHE"/*) ;;
*) die "$plugin is in neither the repository nor the cache directory, which is all that the test sees" ;;
esac
for tool in nm objdump; do
	command -v "$tool" >/dev/null || die "$tool is missing; run scripts/setup.sh"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number=0 failed=''
result() { # NAME WHAT-WAS-WRONG
	number=$((number + 1))
	if [ -n "$2" ]; then
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $number - $1"
		failed=1
	else
		echo "ok $number - $1"
	fi
}

# What the plugin binds to outside of libc, and up to which version of libc it binds.
nm -D --undefined-only "$plugin" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' | sort -u >"$work/wanted"
glibc=$(objdump -T "$plugin" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)

# try WORDS...: they are set on lo; code on the first line, then what was said. In a namespace of its
# own network, so that no device changes where the kernel has a dualpi2 after all.
cat >"$work/try" <<'END'
tc=$(command -v tc)
say() { echo "== $1"; }
say path; readlink -f "$tc"
say version; "$tc" -V
try() {
	say "$1"
	shift
	"$tc" qdisc add dev lo root dualpi2 "$@" 2>&1
	echo "code $?"
}
try help help
try wrong_option ramps 3ms
try wrong_value ramp 3parsecs
try good_value limit 100 ramp 3ms max_rtt 60ms no_l4s
unset TC_LIB_DIR
try without_plugin no_l4s no_l4s
END

section() { awk -v name="== $1" '/^== / { on = $0 == name; next } on' "$work/said"; }
unlike() { # SECTION CODE TEXT...: what is said of the section if it differs from that
	local said text
	said=$(section "$1")
	shift
	grep -qE "^code $1\$" <<<"$said" || { echo "not code $1:"; echo "$said"; return; }
	shift
	for text; do
		grep -qF -- "$text" <<<"$said" || { echo "no \"$text\" in:"; echo "$said"; return; }
	done
}

echo "KTAP version 1"
echo "1..$((1 + ${#releases[@]} * tests_per_release))"
wrong=''
[ -n "$glibc" ] || wrong="$plugin binds to no version of glibc; is it a shared library?"
[ "$(printf '%s\n' "$glibc" "$oldest_glibc" | sort -V | tail -n 1)" = "$oldest_glibc" ] ||
	wrong="it needs glibc $glibc: $(objdump -T "$plugin" | grep -F "GLIBC_$glibc")"
result "plugin_needs_no_glibc_after_$oldest_glibc" "$wrong"

for release in "${releases[@]}"; do
	root=$("$DUALPI2_ROOT/scripts/root.sh" "$release" test)
	"$DUALPI2_ROOT/scripts/in-root.sh" --offline "$root" \
		env TC_LIB_DIR="${plugin%/*}" sh -c "$(cat "$work/try")" >"$work/said" 2>&1 || true
	version=$(section version | sed -n 's/^tc utility, iproute2-\([^,]*\).*/\1/p')
	path=$(section path | sed -n '/^\/./p')
	if [ -z "$version" ] || [ -z "$path" ]; then
		die "tc of $release does not run; $(cat "$work/said")"
	fi
	echo "# $release: tc $version"

	# Its functions bind when called, so that a missing one may go unnoticed until then.
	nm -D --defined-only "$root$path" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u >"$work/exported"
	wrong=$(comm -23 "$work/wanted" "$work/exported")
	[ -s "$work/wanted" ] || wrong="the plugin uses nothing of tc"
	result "plugin_in_tc_of_${release}_finds_every_function" "${wrong:+not exported by tc: $wrong}"
	result "plugin_in_tc_of_${release}_gives_its_help" "$(unlike help 1 '[ ramp TIME ]' '[ l4s | no_l4s ]')"
	result "plugin_in_tc_of_${release}_refuses_an_unknown_option" \
		"$(unlike wrong_option 1 'dualpi2: "ramps" is not an option; expected one of:')"
	result "plugin_in_tc_of_${release}_refuses_a_wrong_value" \
		"$(unlike wrong_value 1 'dualpi2: ramp: "3parsecs" is not a time; expected 0us to 4.294967s')"
	# Derived values are reported; then the kernel answers, which may know no dualpi2.
	result "plugin_in_tc_of_${release}_takes_options" "$(unlike good_value '[02]' \
		'dualpi2: max_rtt 60ms typical_rtt 10ms: target 10ms tupdate 10ms alpha 0.277344 beta 5.000000')"
	# That all this is the plugin's, and not that of a tc which has our front end built in.
	wrong=''
	! section without_plugin | grep -q 'no_l4s: duplicate' || wrong="tc $version knows our options without the plugin"
	result "tc_of_${release}_without_the_plugin_has_not_our_options" "$wrong"
done
[ -z "$failed" ]
