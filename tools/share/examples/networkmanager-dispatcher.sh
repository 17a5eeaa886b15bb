#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# NetworkManager dispatcher script: applies /etc/dualpi2/DEV.conf when NetworkManager activates DEV. Only needed where
# the unit dualpi2@DEV.service is not enabled, for example without systemd. As root:
#
#	install -m 755 networkmanager-dispatcher.sh /etc/NetworkManager/dispatcher.d/90-dualpi2
#
# Write /etc/dualpi2/DEV.conf by hand, see FILES in dualpi2(8). Undo: remove the installed file.

# NetworkManager replaces the qdiscs of a profile that sets tc.qdiscs: leave that property empty.
# Tested with a stub of NetworkManager, not with NetworkManager itself.

# $1: device; $2: event
case ${2-} in
up | reapply) ;;
*) exit 0 ;;
esac
[ -e "/etc/dualpi2/$1.conf" ] || exit 0
exec dualpi2 up "$1" --from-config
