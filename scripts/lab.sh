#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# lab.sh - install what is needed and run the lab; --help says what it can do.
#
# usage: lab.sh ARGUMENT...	selftests/lab/lab.py, the papers' experiments
#        lab.sh demo		selftests/lab/demo.py, the demonstration
#        lab.sh accept		selftests/lab/accept.py, the figures of docs/DESIGN.md
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
program=lab
case ${1-} in
demo | accept)
	program=$1
	shift
	;;
esac
"$DUALPI2_ROOT/scripts/setup.sh"
exec "$DUALPI2_VENV/bin/python" "$DUALPI2_ROOT/selftests/lab/$program.py" "$@"
