#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# presets_as_cake.sh - does every preset of dualpi2 mean what the same word means to cake?
# Both qdiscs are given it, and have to show the same framing, overhead and MPU. A helper of a case in
# selftests/tdc/cases.py: it needs a kernel with both, and makes a device of its own in the
# network namespace that it is run in. It says nothing if all is well.
#
# usage: presets_as_cake.sh TC IP

set -eu

tc=$1 ip=$2
dev=presets
trap '"$ip" link del "$dev" 2>/dev/null || true' EXIT
"$ip" link add "$dev" type dummy

presets="conservative ipoa-vcmux ipoa-llcsnap bridged-vcmux bridged-llcsnap pppoa-vcmux pppoa-llc \
pppoe-vcmux pppoe-llcsnap pppoe-ptm bridged-ptm docsis ethernet"

link_of() { # QDISC WORDS...: framing, overhead and MPU that it shows; cake leaves out an MPU of 0
	"$tc" qdisc replace dev "$dev" root handle 1: "$@" || return
	"$tc" qdisc show dev "$dev" | awk '
		{
			mpu = 0
			for (i = 1; i <= NF; i++) {
				if ($i == "overhead") overhead = $(i + 1)
				if ($i == "mpu") mpu = $(i + 1)
				if ($i ~ /^(noatm|atm|ptm|raw)$/) framing = framing $i
			}
			print framing, "overhead", overhead, "mpu", mpu
		}'
	"$tc" qdisc del dev "$dev" root
}

# The list covers these presets only: cake may have more; the plugin's are in its usage.
ours=$("$tc" qdisc add dev "$dev" root dualpi2 help 2>&1 | sed '1,/^PRESET is one of/d')
for word in $ours; do
	case " $presets " in
	*" $word "*) ;;
	*)
		echo "presets_as_cake.sh: $word is a preset that is not tested; add it to the list" >&2
		exit 1
		;;
	esac
done

compared=0
for preset in $presets; do
	for words in "$preset" "$preset ether-vlan" "$preset ether-vlan ether-vlan" \
		"$preset overhead 7" "$preset overhead -7" "$preset mpu 9" "$preset atm" "$preset ptm"; do
		# shellcheck disable=SC2086 # they are words
		cake=$(link_of cake bandwidth 40mbit $words)
		# shellcheck disable=SC2086
		dualpi2=$(link_of dualpi2 bandwidth 40mbit $words)
		if [ "$cake" != "$dualpi2" ]; then
			echo "presets_as_cake.sh: $words: cake has $cake, dualpi2 has $dualpi2" >&2
			exit 1
		fi
		case $cake in
		*overhead\ [0-9-]*\ mpu\ [0-9]*) compared=$((compared + 1)) ;;
		esac
	done
done
[ "$compared" -eq 104 ] || {
	echo "presets_as_cake.sh: $compared of 104 were compared" >&2
	exit 1
}
