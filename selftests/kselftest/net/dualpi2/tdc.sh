#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The cases of tc-testing about dualpi2, by the kernel tree's tdc.py.
#
# Environment: TC_LIB_DIR, plugins of tc, is passed on.

skip() {
	echo "TAP version 13"
	echo "1..0 # SKIP $*"
	exit 4
}

dir=$(dirname "$(readlink -e "$0")")
testing=${TDC_DIR:-$dir/../../tc-testing}
cases=tc-tests/qdiscs/dualpi2.json

[ "$(id -u)" = 0 ] || skip "need root"
for tool in ip tc ethtool python3; do
	command -v $tool >/dev/null || skip "need $tool"
done
[ -x "$testing/tdc.py" ] ||
	skip "need tc-testing/tdc.py of a kernel tree; TDC_DIR names another tc-testing"
[ -e "$testing/$cases" ] || skip "need $cases"
python3 -c 'import pyroute2' 2>/dev/null || skip "need python3-pyroute2"
tc qdisc add dev lo root dualpi2 help 2>&1 | grep step_thresh >/dev/null ||
	skip "need a tc with dualpi2 (iproute2 6.18, or the plugin in TC_LIB_DIR)"

tmp=$(mktemp -d)
trap 'rm -r "$tmp"' EXIT
cat >"$tmp/tdc_config_local.py" <<-END
	EXTRA_NAMES = {"TC": "$(command -v tc)", "ETHTOOL": "$(command -v ethtool)"}
	ENVIR = {"PATH": "$PATH", "TC_LIB_DIR": "$TC_LIB_DIR"}
END
cd "$testing" || exit 1
PYTHONPATH=$tmp${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 \
	python3 tdc.py --outfile "$tmp/results" -f $cases >"$tmp/log" 2>&1
if [ ! -s "$tmp/results" ]; then
	sed 's/^/# /' "$tmp/log"
	echo "not ok 1 tdc.py"
	exit 1
fi
# A case after a failed setup is skipped, too, so that one failure says it.
sed '/^$/d; /^\(not \)\?ok\|^1\.\./!s/^/# /' "$tmp/results"
grep -q '^not ok' "$tmp/results" || exit 0
tail -n 40 "$tmp/log" | sed "s/^/# /"
exit 1
