#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# install.sh - put the module, the tc plugin, its man page and its completion
# where this machine looks for them, or remove them.  Packages do it better; this
# is for a machine without them.
#
# usage: install.sh install|uninstall MODULE PLUGIN TC-LIBRARY-DIRECTORY

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

[ $# -eq 4 ] || die "usage: install.sh install|uninstall MODULE PLUGIN TC-LIBRARY-DIRECTORY"
verb=$1 module=$2 plugin=$3 tclib=$4
modules=${DESTDIR-}/lib/modules/$(uname -r)/updates
man=${DESTDIR-}/usr/local/share/man/man8
completion=${DESTDIR-}/usr/local/share/bash-completion/completions
cd "$DUALPI2_ROOT"
[ -n "${DESTDIR-}" ] || [ "$(id -u)" -eq 0 ] || die "this writes to /lib and /usr; run it as root"
[ -n "$tclib" ] || die "cannot tell where tc looks for plugins; say TCLIB=DIR (strings \$(command -v tc) | grep /tc/)"

case $verb in
install)
	install -D -m 644 "$module" "$modules/sch_dualpi2.ko"
	install -D -m 644 "$plugin" "${DESTDIR-}$tclib/q_dualpi2.so"
	install -D -m 644 iproute2-patch/man/man8/tc-dualpi2.8 "$man/tc-dualpi2.8"
	install -D -m 644 iproute2-patch/bash-completion/tc-dualpi2 "$completion/tc"
	;;
uninstall)
	rm -f "$modules/sch_dualpi2.ko" "${DESTDIR-}$tclib/q_dualpi2.so" "$man/tc-dualpi2.8" "$completion/tc"
	;;
*)
	die "unknown verb '$verb'; install or uninstall"
	;;
esac
[ -n "${DESTDIR-}" ] || depmod
