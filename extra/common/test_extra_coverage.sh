#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
# test_extra_coverage.sh - do the unit tests of what is in extra reach its algorithms? KTAP on stdout.
exec "$(dirname "$0")/../../selftests/unit/test_coverage.sh" extra
