# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# common.sh - what every script here shares: three directories and some helpers.
# Sourced, never run. It is not the place for anything that only one script needs.

DUALPI2_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
DUALPI2_CACHE=${DUALPI2_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dualpi2}
# Trees with other requirements have another one. scripts/run names it, too.
DUALPI2_VENV=$DUALPI2_CACHE/venv-$(sha256sum <"$DUALPI2_ROOT/scripts/requirements.txt" | cut -c 1-8)
export DUALPI2_ROOT DUALPI2_CACHE DUALPI2_VENV

# say TEXT...: progress, on stderr, so that stdout stays for results.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die "what failed; what to do"
die() {
	say "$*"
	exit 1
}

# need PROGRAM...: end unless this machine has all of them.
need() {
	local program
	for program; do command -v "$program" >/dev/null || die "$program is missing; run scripts/setup.sh"; done
}

# need_mb MB DIR "what takes it": end unless so much is free there.
need_mb() {
	local free
	free=$(df --output=avail -BM "$2" | tail -n 1 | tr -d ' M')
	[ "$free" -ge "$1" ] || die "only $free MB free in $2; $3 needs $1, make room and run again"
}

# stop_jobs: end this shell's jobs and what they started; with "set -m" each is a group of processes.
stop_jobs() {
	local group
	trap '' INT TERM HUP
	for group in $(jobs -p); do kill -s TERM -- "-$group" 2>/dev/null || true; done
	wait
}

# locked SUITE NAME: the lines of packages.lock for a package, or for src:PACKAGE, the preferred version first.
locked() { awk -v suite="$1" -v name="$2" '$1 == suite && $2 == name' "$DUALPI2_ROOT/scripts/packages.lock"; }

# is_unlocked SUITE NAME: was it fetched in a version that packages.lock does not have?
is_unlocked() { grep -q -s -F -- "$1 $2 " "$DUALPI2_CACHE/unlocked"; }

# retry N COMMAND [ARGS]: up to N attempts, waiting 2, 4, 8 ... s between them.
# What the command printed on stderr is shown only once, after the last failure.
# Returns the command's own code. A missing program is not looked for again.
retry() {
	local attempts=$1 attempt=1 delay=2 rc log
	shift
	log=$(mktemp)
	while :; do
		rc=0
		"$@" 2>"$log" || rc=$?
		[ "$rc" -ne 0 ] || break
		if [ "$attempt" -ge "$attempts" ] || [ "$rc" = 126 ] || [ "$rc" = 127 ]; then
			say "failed in attempt $attempt of $attempts (code $rc): $*"
			sed 's/^/  | /' "$log" >&2
			break
		fi
		say "attempt $attempt of $attempts failed (code $rc), again in $delay s: $1 ${2:-}"
		sleep "$delay"
		attempt=$((attempt + 1))
		delay=$((delay * 2))
	done
	rm -f "$log"
	return "$rc"
}

# kernels [stock]: Debian's kernels in suites.toml, "KERNEL SUITE" a line, the oldest first; stock: those that tests boot.
kernels() {
	sed -n "s/^\"\([0-9.]*\)\" = { release = \"\([a-z-]*\)\".*${1-}.*/\1 \2/p" "$DUALPI2_ROOT/scripts/suites.toml"
}

# releases: the Debian releases of the stock kernels, the oldest first.
releases() { kernels stock | cut -d' ' -f2; }

# source_date: the time of the commit, or in a release archive that of its files: the only time in what is built.
source_date() {
	echo "${SOURCE_DATE_EPOCH:-$(git -C "$DUALPI2_ROOT" log -1 --format=%ct 2>/dev/null || stat -c %Y "$DUALPI2_ROOT/sch_dualpi2.c")}"
}

# version: of this project. It stands in sch_dualpi2.c alone; all else asks here.
version() { sed -n 's/^#define DUALPI2_VERSION[[:space:]]*"\([^"]*\)"$/\1/p' "$DUALPI2_ROOT/sch_dualpi2.c"; }
