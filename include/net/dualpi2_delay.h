/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the histogram of one queue's delays.
 */
#ifndef _NET_DUALPI2_DELAY_H
#define _NET_DUALPI2_DELAY_H

#include <net/dualpi2_units.h>

/* Histogram of delays: eight buckets of one unit, then eight in each octave, so
 * that from eight units on every bucket is at most 1/8 of its delay wide.  At
 * 2^14 units it ends: 134 ms for the L4S queue, 1.07 s for the Classic one.
 */
#define DUALPI2_HIST_SUB_BITS		3
#define DUALPI2_HIST_SUB		(1U << DUALPI2_HIST_SUB_BITS)
#define DUALPI2_HIST_OCTAVES		11U
#define DUALPI2_HIST_BUCKETS		(DUALPI2_HIST_SUB *		\
					 (1 + DUALPI2_HIST_OCTAVES))

/**
 * struct dualpi2_delay - histogram of one queue's delays
 * @short_ns: below this delay, buckets are one unit wide and it is not the greatest
 * @watch_ns: beyond this delay there is more to do than to count
 * @sum_ns: of all delays, modulo 2^64
 * @first_ns: below this delay, eight units, buckets are one unit wide
 * @bias: buckets that there would be below the first one of such a width
 * @shift: the unit is 2^@shift ns, 10..24
 * @generation: how often the edges were set
 * @max_ns: the greatest
 * @beyond: delays that are beyond the last bucket
 * @low: packets in each bucket, the lower 32 bits
 * @high: the upper 16 bits; 2^48 packets take nine years at a million a second
 */
struct dualpi2_delay {
	u64 short_ns;
	u64 watch_ns;
	u64 sum_ns;
	u64 first_ns;
	u32 bias;
	u8 shift;
	u32 generation;
	u64 max_ns;
	u64 beyond;
	u32 low[DUALPI2_HIST_BUCKETS];
	u16 high[DUALPI2_HIST_BUCKETS];
};

/* Number of the highest bit that is set; there must be one. */
static inline u32 dualpi2_highest_bit(u64 number)
{
	if (sizeof(unsigned long) == sizeof(number))
		return __fls(number);
	return number >> 32 ? 32 + __fls(number >> 32) : __fls(number);
}

/**
 * dualpi2_hist_shift() - unit of a histogram
 * @us: width of the first buckets, DUALPI2_HIST_C_MIN..DUALPI2_HIST_C_MAX
 *
 * Return: logarithm to base 2 of the least power of two that is not below @us,
 * in ns: 10..24.
 */
static inline u8 dualpi2_hist_shift(u32 us)
{
	return __fls(us * DUALPI2_NS_PER_US - 1) + 1;
}

/**
 * dualpi2_delay_init() - an empty histogram
 * @d: histogram; zero when it is the first time
 * @shift: from dualpi2_hist_shift()
 */
static inline void dualpi2_delay_init(struct dualpi2_delay *d, u8 shift)
{
	u32 generation = d->generation + 1;

	*d = (struct dualpi2_delay) {
		.short_ns = 1,
		.first_ns = (u64)DUALPI2_HIST_SUB << shift,
		.bias = (shift + DUALPI2_HIST_SUB_BITS) * DUALPI2_HIST_SUB,
		.generation = generation,
		.shift = shift,
	};
}

/* A delay that is the greatest so far, or beyond the histogram: what is not the
 * greatest and yet beyond watch_ns is beyond its end.  Return: it is beyond.
 */
static inline bool dualpi2_delay_is_new(struct dualpi2_delay *d, u64 delay_ns)
{
	if (delay_ns > d->max_ns) {
		u64 last_ns = (d->first_ns << DUALPI2_HIST_OCTAVES) - 1;

		d->max_ns = delay_ns;
		d->watch_ns = min_t(u64, delay_ns, last_ns);
		d->short_ns = min_t(u64, delay_ns, d->first_ns - 1) + 1;
		if (delay_ns <= last_ns)
			return false;
	}
	d->beyond++;
	return true;
}

/**
 * dualpi2_delay_add() - count a packet
 * @d: histogram
 * @delay_ns: its time in the queue
 *
 * Eight buckets of each octave come before the eight that this one's are; the
 * three bits after the highest choose among them.  Below eight units the octave is
 * the same throughout, and there is one that does not exist before it.  What is
 * beyond the histogram does not get here, so that no shift is too wide and no
 * bucket beyond the last; masks and pointer say so to kernels that check.
 */
static inline void dualpi2_delay_add(struct dualpi2_delay *d, u64 delay_ns)
{
	unsigned long bucket, octave;
	u64 number = delay_ns;
	u16 *high = d->high;
	u32 *low = d->low;

	d->sum_ns += delay_ns;
	if (delay_ns < d->short_ns) {
		bucket = delay_ns >> (d->shift & 63);
	} else {
		if (unlikely(delay_ns > d->watch_ns)) {
			if (dualpi2_delay_is_new(d, delay_ns))
				return;
			/* The greatest so far may be in a short bucket. */
			number |= d->first_ns;
		}
		octave = dualpi2_highest_bit(number);
		bucket = octave * DUALPI2_HIST_SUB - d->bias +
			 (unsigned long)(delay_ns << DUALPI2_HIST_SUB_BITS >>
					 (octave & 63));
	}
	if (unlikely(!++low[bucket]))
		high[bucket]++;
}

/**
 * dualpi2_delay_bucket() - packets in a bucket
 * @d: histogram
 * @bucket: 0..DUALPI2_HIST_BUCKETS - 1
 */
static inline u64 dualpi2_delay_bucket(const struct dualpi2_delay *d,
				       u32 bucket)
{
	return (u64)d->high[bucket] << 32 | d->low[bucket];
}

/**
 * dualpi2_delay_count() - packets in the histogram, those beyond it too
 * @d: histogram
 */
static inline u64 dualpi2_delay_count(const struct dualpi2_delay *d)
{
	u64 count = d->beyond;
	u32 bucket;

	for (bucket = 0; bucket < DUALPI2_HIST_BUCKETS; bucket++)
		count += dualpi2_delay_bucket(d, bucket);
	return count;
}

#endif /* _NET_DUALPI2_DELAY_H */
