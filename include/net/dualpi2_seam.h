/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that the DualPI2 algorithm takes from its surroundings: integer types and
 * 64-bit arithmetic.  User-space programs put a header of the same name and
 * guard before this one in their include path and compile the algorithm as it
 * is (selftests/unit/include/net/dualpi2_seam.h).
 */
#ifndef _NET_DUALPI2_SEAM_H
#define _NET_DUALPI2_SEAM_H

#include <linux/bitops.h>
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

#endif /* _NET_DUALPI2_SEAM_H */
