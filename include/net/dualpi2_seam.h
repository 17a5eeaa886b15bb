/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel functions that the DualPI2 algorithm uses: integer types, 64-bit
 * arithmetic, atomic operations.  Programs in user space have a header of the same name
 * and guard earlier in their include path.
 */
#ifndef _NET_DUALPI2_SEAM_H
#define _NET_DUALPI2_SEAM_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

#endif /* _NET_DUALPI2_SEAM_H */
