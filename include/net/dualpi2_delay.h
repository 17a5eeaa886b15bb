/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the histogram of one queue's delays.
 */
#ifndef _NET_DUALPI2_DELAY_H
#define _NET_DUALPI2_DELAY_H

#include <net/dualpi2_units.h>

/* Eight buckets of the minimum width, then eight in each octave.  From eight times the
 * minimum width on, a bucket's width is at most 1/8 of its delay.  The last boundary is
 * 2^14 minimum widths: 134 ms for the L4S queue, 1.07 s for the Classic queue.
 */
#define DUALPI2_HIST_SUB_BITS		3
#define DUALPI2_HIST_SUB		(1U << DUALPI2_HIST_SUB_BITS)
#define DUALPI2_HIST_OCTAVES		11U
#define DUALPI2_HIST_BUCKETS		(DUALPI2_HIST_SUB *		\
					 (1 + DUALPI2_HIST_OCTAVES))

/**
 * struct dualpi2_hist - the buckets of a histogram
 * @low: packets in each bucket, the lower 32 bits
 * @high: the upper 16 bits; 2^48 packets take nine years at a million a second
 */
struct dualpi2_hist {
	u32 low[DUALPI2_HIST_BUCKETS];
	u16 high[DUALPI2_HIST_BUCKETS];
};

/**
 * struct dualpi2_delay - delays of one queue's packets
 * @short_ns: below this delay, buckets have the minimum width and the maximum does not
 *	change
 * @watch_ns: from this delay on, the maximum changes or the last bucket has ended; 0:
 *	there is no packet in the histogram
 * @sum_ns: sum of all delays, wraps around
 * @hist: the buckets, zero when it is set; NULL: packets count as @not_shown
 * @bias: octave of eight minimum widths, times eight
 * @shift: the minimum width is 2^@shift ns, 10..24
 * @generation: number of times that the bucket boundaries were set
 * @max_ns: maximum delay
 * @beyond: packets with a delay above the last bucket
 * @not_shown: packets that are not in the histogram, nor in sum and maximum: it had
 *	other boundaries when they left, or there was no @hist
 */
struct dualpi2_delay {
	u64 short_ns;
	u64 watch_ns;
	u64 sum_ns;
	struct dualpi2_hist *hist;
	u32 bias;
	u8 shift;
	u32 generation;
	u64 max_ns;
	u64 beyond;
	u64 not_shown;
};

/* Number of the highest bit that is set; @number is not 0. */
static inline u32 dualpi2_highest_bit(u64 number)
{
	if (sizeof(unsigned long) == sizeof(number))
		return __fls(number);
	return number >> 32 ? 32 + __fls(number >> 32) : __fls(number);
}

/**
 * dualpi2_hist_shift() - minimum bucket width of a histogram
 * @us: width of the first buckets, DUALPI2_HIST_C_MIN..DUALPI2_HIST_C_MAX
 *
 * Return: base-2 logarithm of the width in ns, which is @us rounded up to a power of
 * two: 10..24.
 */
static inline u8 dualpi2_hist_shift(u32 us)
{
	return __fls(us * DUALPI2_NS_PER_US - 1) + 1;
}

/* Eight minimum widths: below this delay buckets have the minimum width. */
static inline u64 dualpi2_delay_first_ns(const struct dualpi2_delay *d)
{
	return (u64)DUALPI2_HIST_SUB << (d->shift & 63);
}

/* A delay from watch_ns on is a new maximum, or above the last bucket, or both; or there
 * is no histogram.
 * Return: it is not in a bucket.
 */
static inline bool dualpi2_delay_is_new(struct dualpi2_delay *d, u64 delay_ns)
{
	if (!d->hist) {
		d->sum_ns = 0;
		d->not_shown++;
		return true;
	}
	if (delay_ns >= d->max_ns) {
		u64 first_ns = dualpi2_delay_first_ns(d);
		u64 end_ns = first_ns << DUALPI2_HIST_OCTAVES;

		d->max_ns = delay_ns;
		d->watch_ns = min_t(u64, delay_ns, end_ns - 1) + 1;
		d->short_ns = min_t(u64, delay_ns, first_ns - 1) + 1;
		if (delay_ns < end_ns)
			return false;
	}
	d->beyond++;
	return true;
}

/**
 * dualpi2_delay_add() - count a packet
 * @d: from dualpi2_delay_init()
 * @delay_ns: its sojourn time
 *
 * The octave (highest bit) selects eight buckets, the next three bits one of these.
 * Below eight minimum widths all delays have the same octave.  A delay above the last
 * bucket returns early, so that each shift and each index is in range; the masks and the
 * pointers show this to kernels built with checks.  Without a histogram every delay is
 * at least watch_ns, so that this costs no comparison.
 */
static inline void dualpi2_delay_add(struct dualpi2_delay *d, u64 delay_ns)
{
	unsigned long bucket, octave;
	u64 number = delay_ns;
	u16 *high;
	u32 *low;

	d->sum_ns += delay_ns;
	if (delay_ns < d->short_ns) {
		bucket = delay_ns >> (d->shift & 63);
	} else {
		if (unlikely(delay_ns >= d->watch_ns)) {
			if (dualpi2_delay_is_new(d, delay_ns))
				return;
			/* It may have the minimum width. */
			number |= dualpi2_delay_first_ns(d);
		}
		octave = dualpi2_highest_bit(number);
		bucket = octave * DUALPI2_HIST_SUB - d->bias +
			 (unsigned long)(delay_ns << DUALPI2_HIST_SUB_BITS >>
					 (octave & 63));
	}
	low = d->hist->low;
	high = d->hist->high;
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
	const struct dualpi2_hist *hist = d->hist;

	return hist ? (u64)hist->high[bucket] << 32 | hist->low[bucket] : 0;
}

/**
 * dualpi2_delay_count() - packets in all buckets and above the last
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

/**
 * dualpi2_delay_init() - begin an empty histogram
 * @d: all zero before the first call
 * @shift: from dualpi2_hist_shift()
 *
 * What it held becomes &dualpi2_delay.not_shown.
 */
static inline void dualpi2_delay_init(struct dualpi2_delay *d, u8 shift)
{
	*d = (struct dualpi2_delay) {
		.hist = d->hist,
		.bias = (shift + DUALPI2_HIST_SUB_BITS) * DUALPI2_HIST_SUB,
		.shift = shift,
		.generation = d->generation + 1,
		.not_shown = d->not_shown + dualpi2_delay_count(d),
	};
	if (d->hist)
		*d->hist = (struct dualpi2_hist) {};
}

/**
 * dualpi2_delay_merge() - add a histogram to another one, for reports
 * @to: histogram with the same bucket boundaries, with buckets; no packet can be added
 *	to it afterwards
 * @from: histogram
 */
static inline void dualpi2_delay_merge(struct dualpi2_delay *to,
				       const struct dualpi2_delay *from)
{
	u32 bucket;

	to->sum_ns += from->sum_ns;
	to->beyond += from->beyond;
	to->not_shown += from->not_shown;
	to->max_ns = max_t(u64, to->max_ns, from->max_ns);
	for (bucket = 0; bucket < DUALPI2_HIST_BUCKETS; bucket++) {
		u64 count = dualpi2_delay_bucket(to, bucket) +
			      dualpi2_delay_bucket(from, bucket);

		to->hist->low[bucket] = (u32)count;
		to->hist->high[bucket] = count >> 32;
	}
}

#endif /* _NET_DUALPI2_DELAY_H */
