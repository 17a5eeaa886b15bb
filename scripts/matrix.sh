#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# matrix.sh - build the module, TCP Prague and the companions, W=1 and -Werror, for every kernel that Debian's archive
# has headers of.
#
# usage: matrix.sh [--refresh] [--list | --fetch | --ktap] [REGEX | newest | locked]
#          REGEX      only releases that match, like '^6\.1\.' or 'rt-amd64$'
#          newest     only the newest release of each X.Y, plain flavour
#          locked     only the oldest and the newest of the stock kernels in suites.toml, as packages.lock has them
#          --refresh  look again for releases and for headers that were missing
#          --list     print release and suite of what would be built, and build nothing
#          --fetch    only fetch the headers and the tools, so that no network is used later
#          --ktap     print test results in place of the table
#
# Of the plain flavour every release is built, of rt and cloud the newest of each X.Y. A release that
# several suites have is built once, for the oldest of them. Each is built by that Debian release's
# own tools (build-for.sh), then looked at: its aliases, the release it names, that it needs no
# division of 64 bits by a function (32-bit kernels have none).
#
# The table, on stdout: release, suite, compiler, result, features found by Kbuild (DUALPI2_HAVE_*),
# bytes of code, seconds. A warning of any tool is a failure. Headers that the mirror lists but does
# not have are "not fetched": no failure, but counted. Code 1 if a build failed, or if there was none.
#
# Headers stay in the cache directory, 70 MB each. Once they are there, all takes one to two minutes
# on two idle cores; the first time half an hour. It may be interrupted, and continues where it was.
# Logs are build/matrix/RELEASE.log, the module is build/matrix/RELEASE/sch_dualpi2.ko.

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"

suites=(bullseye bookworm bookworm-backports trixie trixie-backports forky sid)
jobs_at_once=$(nproc)
usage='usage: matrix.sh [--refresh] [--list | --fetch | --ktap] [REGEX | newest | locked]'

refresh='' format=table
while [[ ${1-} == --* ]]; do
	case $1 in
	--refresh) refresh=1 ;;
	--list) format=list ;;
	--fetch) format=fetch ;;
	--ktap) format=ktap ;;
	*) die "unknown option '$1'; $usage" ;;
	esac
	shift
done
[ $# -le 1 ] || die "too many arguments; $usage"
only=${1-}

need modinfo nm readelf size flock

cd "$DUALPI2_ROOT"
results=$DUALPI2_ROOT/build/matrix
known=$DUALPI2_CACHE/kernels/matrix.list
mkdir -p "$results" "${known%/*}"

# "SUITE RELEASE" of all headers, one suite for each release, oldest release first.
list_releases() {
	local suite
	say "warning: packages.lock names none of these releases; what is built depends on the mirror"
	say "looking for kernel headers in ${suites[*]}"
	for suite in "${suites[@]}"; do
		# Not the metapackages, linux-headers-6.1-amd64.
		scripts/debian-archive.sh ${refresh:+--refresh} "$suite" names '^linux-headers-[0-9]+\.[0-9]+[.-].*-amd64$' >"$known.names"
		sed -E -e '/-[0-9]+\.[0-9]+-((rt|cloud)-)?amd64$/d' -e "s/^linux-headers-/$suite /" "$known.names"
	done | awk '!seen[$2]++' | sort -k 2,2V >"$known.new"
	rm -f "$known.names"
	mv "$known.new" "$known"
}

select_releases() {
	awk -v only="$only" '
		{
			flavour[NR] = match($2, /-(rt|cloud)-amd64$/) ? substr($2, RSTART) : "plain"
			match($2, /^[0-9]+\.[0-9]+/)
			series[NR] = substr($2, 1, RLENGTH) flavour[NR]
			newest[series[NR]] = NR
			line[NR] = $0
			release[NR] = $2
		}
		END {
			for (i = 1; i <= NR; i++) {
				plain = flavour[i] == "plain"
				last = newest[series[i]] == i
				if (only == "newest" ? plain && last : (plain || last) && release[i] ~ only) print line[i]
			}
		}' "$known"
}

# judge RELEASE: what is wrong with the module that was built, if anything is.
judge() {
	local module=$results/$1/sch_dualpi2.ko log=$results/$1.log alias warnings divisions wrong=''
	warnings=$(grep -ic warning "$log") || true
	if [ "$warnings" -gt 0 ]; then
		echo "$warnings warnings: $(grep -im 1 warning "$log")"
		return
	fi
	for alias in net-sch-dualpi2 sch_dualpi2; do
		modinfo -F alias "$module" | grep -x "$alias" >/dev/null || wrong="lacks the alias $alias"
	done
	[[ $(modinfo -F vermagic "$module") == "$1 "* ]] || wrong="is for $(modinfo -F vermagic "$module")"
	divisions=$(nm -u "$module" | grep -oE '__(u?(div|mod)di3|u?divmoddi4|aeabi_u?ldivmod)$' | paste -sd ' ') || true
	[ -z "$divisions" ] || wrong="needs $divisions"
	echo "${wrong:+failed: the module }${wrong:-ok}"
}

# why LOG: the line that says why a build failed.
why() { grep -m 1 -E 'error:|ERROR|fatal|\*\*\*|not found' "$1" || tail -n 1 "$1"; }

# try SUITE RELEASE: fetch, build, judge; leaves the row in RELEASE.row.
try() {
	local suite=$1 release=$2 log=$results/$2.log module=$results/$2/sch_dualpi2.ko
	local part compiler=- verdict probes=- text=- began=$SECONDS missing=$DUALPI2_CACHE/kernels/$release.missing
	rm -rf "${results:?}/$release"
	if [ "$missing" -nt "$known" ]; then
		verdict="not fetched: the mirror lacks them (404); --refresh tries again"
		cp "$missing" "$log"
	elif ! scripts/kernel.sh --headers "$suite/$release" >/dev/null 2>"$log"; then
		verdict="failed: $(tail -n 1 "$log")"
		if grep -q -e '404 *Not Found' -e 'Unable to locate package' "$log"; then
			verdict="not fetched: the mirror lacks them (404)"
			cp "$log" "$missing"
		fi
	elif [ "$format" = fetch ]; then
		verdict=ok
		scripts/root.sh "$(sed -n 's/^KDEBIAN=//p' "$DUALPI2_CACHE/kernels/$suite-$release-headers.env")" build >/dev/null 2>"$log" ||
			verdict="failed: $(tail -n 1 "$log")"
	else
		# What fetching said is of no interest, and may hold the word warning.
		began=$SECONDS
		if scripts/build-for.sh --headers "$suite/$release" "$results/$release" >"$log" 2>&1; then
			verdict=$(judge "$release")
			compiler=$(readelf -p .comment "$module" | sed -n 's/.*GCC: ([^)]*) \([0-9.]*\).*/gcc \1/p' | head -n 1)
			probes=$(grep -ohE -- '-DDUALPI2_HAVE_[A-Z0-9_]+' "$results/$release/.sch_dualpi2.o.cmd" |
				sed 's/-DDUALPI2_HAVE_//' | sort -u | paste -sd ,) || true
			for part in prague extra; do
				[ "$verdict" = ok ] || break
				scripts/build-for.sh --headers "--$part" "$suite/$release" "$results/$release/$part" >"$log" 2>&1 ||
					verdict="failed: $part: $(why "$log")"
			done
			text=$(size "$module" | awk 'NR == 2 { print $1 }')
		else
			verdict="failed: $(why "$log")"
		fi
	fi
	verdict=${verdict//$'\t'/ }
	verdict=${verdict//"$results/$release/"/}
	[ "$verdict" = ok ] || say "$release: $verdict"
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$release" "$suite" "${compiler:--}" "$verdict" "${probes:--}" "${text:--}" \
		$((SECONDS - began)) >"$results/$release.row"
}

# A build is a group of processes, and one in a tree may be deaf to anything but KILL.
stop() {
	local signal group groups
	trap '' INT TERM HUP
	mapfile -t groups < <(jobs -p)
	[ ${#groups[@]} -gt 0 ] || return 0
	say "interrupted; run it again and it continues"
	for signal in TERM KILL; do
		for group in "${groups[@]}"; do kill -s "$signal" -- "-$group" 2>/dev/null || true; done
		[ "$signal" = KILL ] || sleep 2
	done
	wait
}

rows() {
	local suite release
	while read -r suite release; do
		cat "$results/$release.row" 2>/dev/null ||
			printf '%s\t%s\t-\tfailed: no result\t-\t-\t-\n' "$release" "$suite"
	done <<<"$selected"
}

as_table() {
	{
		printf 'kernel\tsuite\tcompiler\tresult\tfeatures\tbytes\tseconds\n'
		awk -F '\t' -v OFS='\t' '{ if (length($4) > 100) $4 = substr($4, 1, 97) "..." } 1'
	} | column -t -s $'\t'
}

as_ktap() { # TOTAL
	local release verdict code
	plan "$1"
	while IFS=$'\t' read -r release _ _ verdict _; do
		case $verdict in
		ok) code=0 ;;
		'not fetched'*) code=77 ;;
		*) code=1 ;;
		esac
		result "builds_on_$release" "$code" "$verdict"
	done
}

# "SUITE RELEASE" of the oldest and the newest kernel that is locked.
locked_releases() {
	local kernel suite assignments
	while read -r kernel suite; do
		assignments=$(scripts/kernel.sh --headers "$kernel" </dev/null) || return
		eval "$assignments"
		echo "$suite $KREL"
	done < <(kernels stock | sed -n '1p;$p')
}

if [ "$only" = locked ]; then
	selected=$(locked_releases)
else
	if [ -n "$refresh" ] || [ ! -s "$known" ]; then list_releases; fi
	selected=$(select_releases)
fi
[ -n "$selected" ] || die "no kernel release matches '$only'; see matrix.sh --list"
if [ "$format" = list ]; then
	awk '{ print $2, $1 }' <<<"$selected" | column -t
	exit 0
fi

exec 6>"$results/lock"
flock -n 6 || die "another matrix.sh is at work here; wait until it has ended"
rm -f "$results"/*.row
trap stop EXIT
trap 'exit 130' INT TERM HUP
total=$(wc -l <<<"$selected")
number=0
# Each job gets a group of processes of its own, see stop.
set -m
while read -r suite release; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs_at_once" ]; do wait -n || true; done
	number=$((number + 1))
	say "$number of $total: $release from $suite"
	try "$suite" "$release" 6>&- </dev/null &
done <<<"$selected"
wait
set +m
trap - EXIT INT TERM HUP

case $format in
table | fetch) rows | as_table ;;
ktap) rows | as_ktap "$total" ;;
esac
rows | awk -F '\t' -v done="$([ "$format" = fetch ] && echo fetched || echo built without a warning)" -v prefix="$([ "$format" != ktap ] || echo '# ')" '
	$4 == "ok" { built++; next }
	$4 ~ /^not fetched/ { missing++; next }
	{ failed++ }
	END {
		printf "%s%d %s, %d failed, %d could not be fetched\n", prefix, built, done, failed, missing
		exit failed || !built
	}'
