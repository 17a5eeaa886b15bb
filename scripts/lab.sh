#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# lab.sh - install what is needed and run the lab (selftests/lab/lab.py); --help says what it can do.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
"$DUALPI2_ROOT/scripts/setup.sh"
exec "$DUALPI2_CACHE/venv/bin/python" "$DUALPI2_ROOT/selftests/lab/lab.py" "$@"
