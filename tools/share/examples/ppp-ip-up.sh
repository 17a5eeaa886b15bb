#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Script of pppd: applies /etc/dualpi2/DEV.conf when the PPP connection on DEV is up. Only needed where the unit
# dualpi2@DEV.service is not enabled, for example without systemd. As root; Debian ignores names with a dot:
#
#	install -m 755 ppp-ip-up.sh /etc/ppp/ip-up.d/dualpi2
#
# Without /etc/ppp/ip-up.d, call it from /etc/ppp/ip-up: /path/ppp-ip-up.sh "$@"
# Write /etc/dualpi2/ppp0.conf by hand, see FILES in dualpi2(8). Undo: remove the installed file.

# pppd passes the device as $1; run-parts of Debian passes it as PPP_IFACE.
device=${PPP_IFACE:-${1-}}
[ -n "$device" ] && [ -e "/etc/dualpi2/$device.conf" ] || exit 0
exec dualpi2 up "$device" --from-config
