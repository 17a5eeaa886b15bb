/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of packet values, packet_value.h, share.
 *
 * Expected values come from section 2 of the VDQ-CSAQM paper and from log2l()
 * and division in long double, with bounds that follow from the roundings which
 * the header states.
 */
#ifndef VALUE_TEST_H
#define VALUE_TEST_H

#include "packet_value.h"

/* One step of a logarithm is this part of a rate: ln(2) / 2^16. */
#define VALUE_STEP	0.000010577L

/* Coded values of a tenfold value. */
#define VALUE_DECADE	6553.5L

#define VALUE_MBIT	125000ULL	/* bytes/s */

/* A doubling of the mantissa loses the rest of 2^-31, and doubles what was
 * lost: in all less than this part of a step.
 */
#define VALUE_LOG_LOSS	(1.0L / 4096)

static struct ppv_tvf value_builtin(u32 number)
{
	struct ppv_tvf tvf;

	memset(&tvf, 0xa5, sizeof(tvf));
	ppv_tvf_builtin(&tvf, number);
	return tvf;
}

static struct ppv_tvf value_tvf_of(const struct ppv_point *points, u32 count)
{
	struct ppv_tvf tvf;

	memset(&tvf, 0xa5, sizeof(tvf));
	ppv_tvf_set(&tvf, points, count);
	return tvf;
}

/* The paper's code of a value. */
static u32 value_code(long double value)
{
	return floorl(log10l(value) * VALUE_DECADE + 0.000000001L);
}

/* The function at 2^(log / 2^16) bytes per second, not rounded. */
static long double value_exact(const struct ppv_point *points, u32 count, long double log)
{
	long double from, to = log2l(points[0].rate) * 65536;
	u32 i;

	if (log <= to)
		return points[0].coded;
	for (i = 1; i < count; i++) {
		from = to;
		to = log2l(points[i].rate) * 65536;
		if (log < to)
			return points[i - 1].coded -
			       ((long double)points[i - 1].coded - points[i].coded) * (log - from) / (to - from);
	}
	return points[count - 1].coded;
}

/* The rate at which the function falls to a value, not rounded. */
static long double value_inverse(const struct ppv_point *points, u32 count, u32 coded)
{
	u32 i;

	if (coded >= points[0].coded)
		return 0;
	for (i = 1; i < count; i++) {
		long double part;

		if (coded < points[i].coded)
			continue;
		part = ((long double)points[i - 1].coded - coded) /
		       ((long double)points[i - 1].coded - points[i].coded);
		return exp2l(log2l(points[i - 1].rate) * (1 - part) + log2l(points[i].rate) * part);
	}
	return INFINITY;
}

/* The least rate at which a function is no more than a value; PPV_RATE_MAX + 1
 * if there is none.
 */
static u64 value_rate_at(const struct ppv_tvf *tvf, u32 coded)
{
	u64 low = 0, high = PPV_RATE_MAX + 1;

	while (low < high) {
		u64 mid = low + (high - low) / 2;

		if (ppv_tvf_coded(tvf, mid) <= coded)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int value_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* A function of up to PPV_POINTS_MAX points, with as many as the numbers drawn
 * leave; their count.
 */
static u32 value_any_points(struct ppv_point *points)
{
	u32 want = unit_any(1, PPV_POINTS_MAX), count = 0, i;
	u64 rates[PPV_POINTS_MAX] = {}, coded[PPV_POINTS_MAX] = {};

	for (i = 0; i < want; i++) {
		rates[i] = unit_any(1, PPV_RATE_MAX);
		coded[i] = unit_any(1, PPV_CODED_MAX);
	}
	qsort(rates, want, sizeof(rates[0]), value_compare);
	qsort(coded, want, sizeof(coded[0]), value_compare);
	for (i = 0; i < want; i++) {
		u64 value = coded[want - 1 - i];

		if (count && (rates[i] <= points[count - 1].rate * 1.00003L || value >= points[count - 1].coded))
			continue;
		points[count++] = (struct ppv_point) { rates[i], value };
	}
	return count;
}

#endif /* VALUE_TEST_H */
