#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=roots:stock-test
#
# test_plugin.sh - does the one tc plugin that "make plugin" builds load in the tc of every Debian
# release, and work there? Each tc runs in the userland of its own release (root.sh test), without a
# kernel module: what it says about options is the plugin's. KTAP on stdout. What options do in a
# kernel is tested in selftests/tdc.
#
# Statistics come from recordings of modules before this one, which "tc monitor" reads: messages about a
# dualpi2 and its classes (new), and about one with a shaper (link).
#
# usage: test_plugin.sh [PLUGIN]      default: build/tc/q_dualpi2.so, built first

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/../../scripts/ktap.sh"

mapfile -t releases < <(releases)
oldest_glibc=2.31
tests_per_release=11

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
need nm objdump
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where the trees see it.
data=$DUALPI2_ROOT/build/plugin-test
mkdir -p "$data"
for what in new link; do
	base64 -d "$DUALPI2_ROOT/selftests/tc/recorded/$what.b64" >"$data/$what.nl"
done

verdict() { # NAME WHAT-IS-WRONG
	local code=0
	[ -z "$2" ] || code=1
	result "$1" "$code" "$2"
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
	"$tc" qdisc add dev lo root "$kind" "$@" 2>&1
	echo "code $?"
}
kind=dualpi2
try help help
try wrong_option ramps 3ms
try wrong_value ramp 3parsecs
kind=dualpi2_mq
try mq_wrong_value ramp 3parsecs
kind=dualpi2
try good_value limit 100 ramp 3ms max_rtt 60ms no_l4s
show() { # SECTION DIRECTORY RECORDING [-d]
	say "$1_$3"
	TC_LIB_DIR=$2 "$tc" -s ${4-} monitor file "$DATA/$3.nl" 2>&1
	echo "code $?"
}
for what in new link; do
	show plugin "$TC_LIB_DIR" "$what" -d
	show no_plugin /nonexistent "$what"
done
show short "$TC_LIB_DIR" new
unset TC_LIB_DIR
try without_plugin no_l4s no_l4s
END

section() { awk -v name="== $1" '/^== / { on = $0 == name; next } on' "$work/said"; }
unlike() { # SECTION CODE TEXT...: what is said of the section if it differs from that
	local said text
	said=$(section "$1")
	shift
	grep -qE "^code $1\$" <<<"$said" || {
		echo "not code $1:"
		echo "$said"
		return
	}
	shift
	for text; do
		grep -qF -- "$text" <<<"$said" || {
			echo "no \"$text\" in:"
			echo "$said"
			return
		}
	done
}

# Of the first recording, in its lines that every version prints and in others, and of the second.
options='limit 250p memlimit 757000B target 15ms tupdate 16ms alpha 0.160156 beta 3.199219'
known=("qdisc dualpi2 10: " "$options" 'ramp 400us recur ' 'Sent 3157596 bytes 3114 pkt (dropped 1305, ' 'ecn_mark 580 step_mark 165'
	'Classic: enqueued 1798 (1823172 bytes) sent 1383 (1402362 bytes) queued 28 (28392 bytes)'
	'L4S: enqueued 2030 (2058420 bytes) sent 1731 (1755234 bytes) queued 29 (29406 bytes) ce_in 16'
	' dropped 486 (limit 216, memory 0, early 0, aqm 0, overload 270, purge 0)' 'unparsed 0 filter_dropped 0')
added=('recur hist_c 64us hist_l 8us overload_report 1s ' ' arrived 2246 (2277444 bytes) not_ect 0 ect1 2230 ect0 0 ce 16'
	' dropped_not_ect 428 (limit 216, aqm 7, overload 205)'
	' delay mean 35.4ms p50 57us p90 121ms p99 148ms p99.9 150ms max 150ms' 'overload_start 20'
	'class dualpi2 10:1 ' ' Sent 1755234 bytes 1731 pkt (dropped 486, ' 'class dualpi2 10:3 ' ' Sent 1402362 bytes 1383 pkt (dropped 819, ')
brief=('L4S: arrived 2246 sent 1731 queued 29 marked ' ' dropped 486 (limit 216, overload 270) delay mean 2.02ms p99 58.2ms'
	'ecn_mark 580 step_mark 165' 'overload no (')
link=('bandwidth 10Mbit overhead 22 mpu 64 noatm ingress nqb 45,46 burst_max 8ms' 'drain_rate 10Mbit throttled ' 'nqb_arrived ')
basic=("${known[0]}" "${known[3]}")

plan $((1 + ${#releases[@]} * tests_per_release))
wrong=''
[ -n "$glibc" ] || wrong="$plugin binds to no version of glibc; is it a shared library?"
[ "$(printf '%s\n' "$glibc" "$oldest_glibc" | sort -V | tail -n 1)" = "$oldest_glibc" ] ||
	wrong="it needs glibc $glibc: $(objdump -T "$plugin" | grep -F "GLIBC_$glibc")"
verdict "plugin_needs_no_glibc_after_$oldest_glibc" "$wrong"

for release in "${releases[@]}"; do
	root=$("$DUALPI2_ROOT/scripts/root.sh" "$release" test)
	"$DUALPI2_ROOT/scripts/in-root.sh" --offline "$root" \
		env TC_LIB_DIR="${plugin%/*}" DATA="$data" sh -c "$(cat "$work/try")" >"$work/said" 2>&1 || true
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
	verdict "plugin_in_tc_of_${release}_finds_every_function" "${wrong:+not exported by tc: $wrong}"
	verdict "plugin_in_tc_of_${release}_gives_its_help" "$(unlike help 1 '[ ramp TIME ]' '[ l4s | no_l4s ]')"
	verdict "plugin_in_tc_of_${release}_refuses_an_unknown_option" \
		"$(unlike wrong_option 1 'dualpi2: unknown option "ramps" (did you mean "ramp"?); see: tc qdisc add dualpi2 help')"
	verdict "plugin_in_tc_of_${release}_refuses_a_wrong_value" \
		"$(unlike wrong_value 1 'dualpi2: ramp: "3parsecs" is not a time; expected 0us to 4.294967s')"
	verdict "plugin_in_tc_of_${release}_is_found_for_dualpi2_mq" \
		"$(unlike mq_wrong_value 1 'dualpi2_mq: ramp: "3parsecs" is not a time; expected 0us to 4.294967s')"
	# Derived values are reported; then the kernel answers, which may know no dualpi2.
	verdict "plugin_in_tc_of_${release}_takes_options" "$(unlike good_value '[02]' \
		'dualpi2: max_rtt 60ms typical_rtt 10ms: target 10ms tupdate 10ms alpha 0.277344 beta 5.000000')"
	wrong=$(unlike plugin_new 0 "${known[@]}" "${added[@]}")
	# Of a class the block of its queue, so that there are two of each, and one of what is common.
	[ "$(section plugin_new | grep -cE '^(L4S|Classic): ')$(section plugin_new | grep -c '^prob_c ')" = 41 ] ||
		wrong+="not two blocks of each queue: $(section plugin_new)"
	verdict "plugin_in_tc_of_${release}_shows_all_of_a_qdisc_and_its_classes" "$wrong"
	verdict "plugin_in_tc_of_${release}_is_short_without_d" "$(
		unlike short_new 0 "${known[3]}" "${brief[@]}"
		! section short_new | grep -E '^ (arrived|presented|dropped_)|^prob_c '
		section short_new | awk '/^qdisc / { n = 0 } /^class / { exit } /^(prob|pkts_in|ecn_mark|Classic|L4S|overload| dropped)/ { n++ }
			END { if (n != 8) print n, "lines of statistics, not 8" }'
	)"
	verdict "plugin_in_tc_of_${release}_shows_the_link" "$(unlike plugin_link 0 "${link[@]}")"
	# From 6.18 on tc has a front end of its own, which knows what the struct of Linux says.
	[ "$release" != forky ] || basic+=("$options" 'ecn_mark 580 step_mark 165' 'memory_used 131328 (max 573696)')
	wrong=$(unlike no_plugin_new 0 "${basic[@]}" "${added[@]:5}")
	verdict "tc_of_${release}_without_a_plugin_shows_the_basic_statistics" "$wrong"
	# That all this is the plugin's, and not that of a tc which has our front end built in.
	wrong=''
	! section without_plugin | grep 'no_l4s: duplicate' >/dev/null || wrong="tc $version knows our options without the plugin"
	verdict "tc_of_${release}_without_the_plugin_has_not_our_options" "$wrong"
done
[ -z "$failed" ]
