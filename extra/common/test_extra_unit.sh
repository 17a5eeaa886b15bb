#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check -- 'VARIANTS=64-asan 32-asan'
# suite: long
# test_extra_unit.sh - the unit tests of what is in extra. KTAP on stdout; arguments are those of make.
exec make --no-print-directory -C "$(dirname "$0")/../../selftests/unit" SUBJECT=extra check "$@"
