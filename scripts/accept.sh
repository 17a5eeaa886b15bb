#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# accept.sh - install what is needed and measure the promised figures (selftests/lab/accept.py).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
"$DUALPI2_ROOT/scripts/setup.sh"
exec "$DUALPI2_CACHE/venv/bin/python" "$DUALPI2_ROOT/selftests/lab/accept.py" "$@"
