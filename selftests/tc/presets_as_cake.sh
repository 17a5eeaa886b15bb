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

settings() {
	for preset in $presets; do
		for more in "" "ether-vlan" "ether-vlan ether-vlan" "overhead 7" "overhead -7" "mpu 9" "atm" "ptm"; do
			echo "$preset $more"
		done
	done
}
links_of() { # QDISC: settings, and the framing, overhead and MPU that it shows; cake leaves out an MPU of 0
	{
		settings
		echo
		settings | while read -r words; do
			printf 'qdisc %s\n' "add dev $dev root handle 1: $1 bandwidth 40mbit $words" "show dev $dev" "del dev $dev root"
		done | "$tc" -batch -
	} | awk '
		!NF { answers = 1; next }
		!answers { words[++asked] = $0; next }
		{
			mpu = 0; overhead = framing = ""
			for (i = 1; i <= NF; i++) {
				if ($i == "overhead") overhead = $(i + 1)
				if ($i == "mpu") mpu = $(i + 1)
				if ($i ~ /^(noatm|atm|ptm|raw)$/) framing = framing $i
			}
			print words[++told] ": " framing, "overhead", overhead, "mpu", mpu
		}'
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

cake=$(links_of cake)
dualpi2=$(links_of dualpi2)
if [ "$cake" != "$dualpi2" ]; then
	echo "presets_as_cake.sh: cake and dualpi2 differ:" >&2
	printf '%s\n' "$cake" "$dualpi2" | sort | uniq -u >&2
	exit 1
fi
compared=$(echo "$cake" | grep -c ': .* overhead [0-9-]* mpu [0-9]*$')
[ "$compared" -eq 104 ] || {
	echo "presets_as_cake.sh: $compared of 104 were compared" >&2
	exit 1
}
