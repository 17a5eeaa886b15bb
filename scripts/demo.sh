#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# demo.sh - install what is needed and run the demonstration (selftests/lab/demo.py).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
"$DUALPI2_ROOT/scripts/setup.sh"
exec "$DUALPI2_CACHE/venv/bin/python" "$DUALPI2_ROOT/selftests/lab/demo.py" "$@"
