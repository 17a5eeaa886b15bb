#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# proof.sh - prove the algorithm's headers with CBMC, which Debian 13 has (selftests/proof).
#
# usage: proof.sh [--long] [--broken] [-k NAME]... [--bits 32|64] [--jobs N] [--mutants N]
#          --long    also the proofs that take minutes
#          --broken  break the headers once for each proof, and see it fail
#          --mutants N  how many of N mutants of the headers a proof notices

set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

root=$("$DUALPI2_ROOT/scripts/root.sh" trixie proof)
exec "$DUALPI2_ROOT/scripts/in-root.sh" --offline "$root" /usr/bin/python3 -B "$DUALPI2_ROOT/selftests/proof/prove.py" "$@"
