#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# save_restore.sh - is what tc shows of a dualpi2 a fixed point of show and set?
# For each of many settings: set, show, set what was shown to a new qdisc, show; both texts must be
# the same. A helper of two cases of cases.py: it makes a device of its own in the network
# namespace that it is run in, and it says nothing if all is well.
#
# usage: save_restore.sh options|gains TC IP

set -eu

settings=$1 tc=$2 ip=$3
dev=saverestore
work=$(mktemp -d)
trap 'rm -rf "$work"; "$ip" link del "$dev" 2>/dev/null || true' EXIT
"$ip" link add "$dev" type dummy

# Those of cases.py: every option at both ends, and all of them together; then values between and combinations.
options() {
	python3 -B "$(dirname "$0")/cases.py" --settings
	cat <<-'END'
		limit 7 memlimit 9
		memlimit 1000000
		memlimit 1048576
		target 999us
		target 1001us
		target 16384us
		target 999999us
		target 1000001us
		tupdate 12345us
		tupdate 1234567us
		step_thresh 1234us
		step_thresh 1p
		step_thresh 4294967294p
		step_thresh 2ms ramp 0us
		step_thresh 5p ramp 10us
		ramp 1234567us
		min_qlen_step 1
		classic_protection 1
		classic_protection 99
		overflow drop_enqueue
		no_l4s cla_ect random
		p_cmax 1
		hist_l 16384us
		hist_l 9us no_l4s
		overload_report 1234567us
		bandwidth 1234567bps
		bandwidth 2500kbit limit 5 memlimit 60000
		bandwidth 124999999999bps
		bandwidth 1tbit
		overhead -64
		overhead 0
		overhead 256 mpu 256 atm
		mpu 64 ptm
		raw
		atm
		noatm
		conservative
		docsis ether-vlan ether-vlan
		ethernet bandwidth 1gbit ingress
		nqb 0
		nqb 63,0x2d,0
		nqb 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
		no_nqb
		no_nqb no_l4s
		burst_max 1
		burst_max 12345us
		bypass ethernet ingress no_l4s
		no_bypass bandwidth 40mbit
		max_rtt 1ms
		max_rtt 30ms typical_rtt 30ms
		max_rtt 300ms
		typical_rtt 20ms
		max_rtt 8s
	END
}

# Both gains in steps of 1/256 Hz, their unit: the first few hundred, around every power of two, and
# the last. Each as alpha with another as beta.
gains() {
	awk 'BEGIN {
		for (g = 1; g <= 300; g++) gain[n++] = g
		for (p = 512; p < 2147483648; p *= 2) for (d = -1; d <= 1; d++) gain[n++] = p + d
		gain[n++] = 819; gain[n++] = 2147483647
		for (i = 0; i < n; i++)
			printf "alpha %.8f beta %.8f\n", gain[i] / 256, gain[n - 1 - i] / 256
	}'
}

# Sets each line of stdin to a new qdisc and shows it without what is not an option.
set_and_show() {
	sed "s/.*/qdisc replace dev $dev root pfifo\\nqdisc replace dev $dev root handle 1: dualpi2 &\\nqdisc show dev $dev/" |
		"$tc" -batch - 2>"$work/messages" | sed -n 's/^qdisc dualpi2 1: root refcnt [0-9]* //p'
}

"$settings" >"$work/given"
set_and_show <"$work/given" >"$work/first"
grep -v '^dualpi2: max_rtt' "$work/messages" >&2 && exit 1
set_and_show <"$work/first" >"$work/second"
cat "$work/messages" >&2
[ "$(wc -l <"$work/given")" -eq "$(wc -l <"$work/first")" ] || {
	echo "save_restore.sh: $(wc -l <"$work/given") settings, but $(wc -l <"$work/first") shown" >&2
	exit 1
}
diff "$work/first" "$work/second" >&2 || exit 1

# A gain is also shown as the one that was set, to the six digits of the text.
if [ "$settings" = gains ]; then
	awk '{ printf "%f %f\n", $2, $4 }' "$work/given" >"$work/want"
	sed 's/.* alpha \([0-9.]*\) beta \([0-9.]*\) .*/\1 \2/' "$work/first" >"$work/got"
	diff "$work/want" "$work/got" >&2 || exit 1
fi
