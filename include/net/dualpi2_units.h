/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: units and fixed-point formats, and the conversions between them.
 *
 *   _q32   probability; 2^32 is 1; u64, so that 1 itself fits
 *   gain   probability (q32) per nanosecond of delay, times 2^24; u64
 *   ratio  elapsed time in units of tupdate, times 2^16; u32
 *   _q20   nanoseconds per byte, times 2^20; u64
 */
#ifndef _NET_DUALPI2_UNITS_H
#define _NET_DUALPI2_UNITS_H

#include <net/dualpi2_seam.h>

#define DUALPI2_NS_PER_MS		1000000U
#define DUALPI2_NS_PER_SEC		1000000000U

#define DUALPI2_ONE_Q32			(1ULL << 32)

#define DUALPI2_NS_PER_US		1000U

/* Configured times are u32 nanoseconds, so at most 4.29 s. */
#define DUALPI2_TIME_MAX_US		(U32_MAX / DUALPI2_NS_PER_US)

/**
 * dualpi2_us_to_ns() - microseconds of the ABI to nanoseconds
 * @us: 0..DUALPI2_TIME_MAX_US; above it, the result is U32_MAX
 */
static inline u32 dualpi2_us_to_ns(u32 us)
{
	return us > DUALPI2_TIME_MAX_US ? U32_MAX : us * DUALPI2_NS_PER_US;
}

/**
 * dualpi2_ns_to_us() - nanoseconds to microseconds, for reports
 * @ns: any; a result beyond U32_MAX is U32_MAX
 */
static inline u32 dualpi2_ns_to_us(u64 ns)
{
	u64 us = div_u64(ns, DUALPI2_NS_PER_US);

	return us > U32_MAX ? U32_MAX : us;
}

/**
 * dualpi2_q32_to_u32() - probability to the ABI's format, where U32_MAX is 1
 * @p_q32: 0..1
 */
static inline u32 dualpi2_q32_to_u32(u64 p_q32)
{
	return p_q32 > U32_MAX ? U32_MAX : p_q32;
}

/**
 * dualpi2_gain() - gain of the ABI to the internal format
 * @hz256: 0..DUALPI2_GAIN_MAX, in 1/256 Hz
 *
 * 1/256 Hz is 2^32 / 256 / 10^9 in q32 per ns; times 2^24 that is 2^48 / 10^9 =
 * 281474.976710656.  Integer and fraction are multiplied separately: 2^31 * 281474 <
 * 2^50 and 2^31 * 976710656 < 2^61.
 *
 * Return: the gain, rounded to nearest, below 2^50.
 */
static inline u64 dualpi2_gain(u32 hz256)
{
	return (u64)hz256 * 281474U +
	       div_u64((u64)hz256 * 976710656U + DUALPI2_NS_PER_SEC / 2,
		       DUALPI2_NS_PER_SEC);
}

/**
 * dualpi2_gain_times() - gain times a difference of delays
 * @gain: from dualpi2_gain(), below 2^50
 * @diff_ns: -U32_MAX..U32_MAX
 *
 * Return: change of probability, q32; its magnitude is below 2^58.
 */
static inline s64 dualpi2_gain_times(u64 gain, s64 diff_ns)
{
	if (diff_ns < 0)
		return -(s64)mul_u64_u32_shr(gain, -diff_ns, 24);
	return mul_u64_u32_shr(gain, diff_ns, 24);
}

/**
 * dualpi2_square_q32() - square of a probability
 * @p_q32: 0..1
 */
static inline u64 dualpi2_square_q32(u64 p_q32)
{
	return p_q32 >= DUALPI2_ONE_Q32 ? DUALPI2_ONE_Q32 : p_q32 * p_q32 >> 32;
}

/**
 * dualpi2_sqrt_q32() - square root of a probability
 * @p_q32: 0..1
 *
 * Return: the smallest probability whose square is at least @p_q32.
 */
static inline u64 dualpi2_sqrt_q32(u64 p_q32)
{
	u64 root = 0, bit;

	if (p_q32 >= DUALPI2_ONE_Q32)
		return DUALPI2_ONE_Q32;
	for (bit = DUALPI2_ONE_Q32 >> 1; bit; bit >>= 1)
		if (dualpi2_square_q32(root | bit) < p_q32)
			root |= bit;
	return dualpi2_square_q32(root) < p_q32 ? root + 1 : root;
}

#endif /* _NET_DUALPI2_UNITS_H */
