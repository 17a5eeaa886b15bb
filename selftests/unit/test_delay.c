// SPDX-License-Identifier: GPL-2.0-only
/*
 * Histogram of delays: which bucket, what is beyond, sum, maximum, overflow.
 */

/* Delays of one test, with the only histogram. */
static struct dualpi2_delay delay_new(u8 shift)
{
	static struct dualpi2_hist hist;
	struct dualpi2_delay d;

	memset(&hist, 0, sizeof(hist));
	memset(&d, 0, sizeof(d));
	d.hist = &hist;
	dualpi2_delay_init(&d, shift);
	return d;
}

/* Begin of a bucket as <linux/dualpi2.h> tells readers, in units. */
static u64 delay_edge(u32 bucket)
{
	return bucket < 8 ? bucket : (u64)(8 + bucket % 8) << (bucket / 8 - 1);
}

/* The bucket that holds the only packet; DUALPI2_HIST_BUCKETS: beyond. */
static u32 delay_bucket_of(u8 shift, u64 delay_ns)
{
	struct dualpi2_delay d = delay_new(shift);
	u32 bucket;

	dualpi2_delay_add(&d, delay_ns);
	CHECK_EQ(dualpi2_delay_count(&d), 1);
	CHECK_EQ(d.sum_ns, delay_ns);
	CHECK_EQ(d.max_ns, delay_ns);
	for (bucket = 0; bucket < DUALPI2_HIST_BUCKETS; bucket++)
		if (dualpi2_delay_bucket(&d, bucket))
			return bucket;
	CHECK_EQ(d.beyond, 1);
	return bucket;
}

UNIT_TEST(delay_bucket_begins_and_ends_at_its_edges)
{
	for (u8 shift = 10; shift <= 24; shift++) {
		for (u32 i = 0; i < DUALPI2_HIST_BUCKETS; i++) {
			u64 from = delay_edge(i) << shift;
			u64 to = delay_edge(i + 1) << shift;

			CHECK_EQ(delay_bucket_of(shift, from), i);
			CHECK_EQ(delay_bucket_of(shift, to - 1), i);
			CHECK(i < 8 || (to - from) * 8 <= from,
			      "bucket %u is %llu wide", i, (ull)(to - from));
		}
		CHECK_EQ(delay_edge(DUALPI2_HIST_BUCKETS), 1 << 14);
		CHECK_EQ(delay_bucket_of(shift, 1ULL << (shift + 14)), DUALPI2_HIST_BUCKETS);
		CHECK_EQ(delay_bucket_of(shift, UINT64_MAX), DUALPI2_HIST_BUCKETS);
	}
}

/* Any order of delays: the maximum moves, and is not looked at again below. */
UNIT_TEST(delay_of_any_order_is_counted_where_it_belongs)
{
	struct dualpi2_delay d = delay_new(13);
	u64 want[DUALPI2_HIST_BUCKETS + 1] = { 0 }, sum = 0, max = 0;
	u32 bucket;

	for (u32 i = 0; i < 100000; i++) {
		u64 delay_ns = unit_any(0, 1ULL << 30);

		for (bucket = 0; bucket < DUALPI2_HIST_BUCKETS; bucket++)
			if (delay_ns < delay_edge(bucket + 1) << 13)
				break;
		want[bucket]++;
		sum += delay_ns;
		max = delay_ns > max ? delay_ns : max;
		dualpi2_delay_add(&d, delay_ns);
	}
	for (bucket = 0; bucket < DUALPI2_HIST_BUCKETS; bucket++)
		CHECK_EQ(dualpi2_delay_bucket(&d, bucket), want[bucket]);
	CHECK_EQ(d.beyond, want[DUALPI2_HIST_BUCKETS]);
	CHECK(d.beyond > 1000, "only %llu beyond", (ull)d.beyond);
	CHECK_EQ(d.sum_ns, sum);
	CHECK_EQ(d.max_ns, max);
	CHECK_EQ(dualpi2_delay_count(&d), 100000);
}

UNIT_TEST(delay_counter_goes_on_at_two_to_the_32)
{
	struct dualpi2_delay d = delay_new(10);

	d.hist->low[3] = UINT32_MAX;
	d.hist->low[4] = 7;
	d.hist->high[4] = 65535;
	dualpi2_delay_add(&d, 3 * 1024);
	CHECK_EQ(dualpi2_delay_bucket(&d, 3), 1ULL << 32);
	for (int i = 0; i < 5; i++)
		dualpi2_delay_add(&d, 3 * 1024 + 1023);
	CHECK_EQ(dualpi2_delay_bucket(&d, 3), (1ULL << 32) + 5);
	CHECK_EQ(dualpi2_delay_bucket(&d, 4), (65535ULL << 32) + 7);
	CHECK_EQ(dualpi2_delay_bucket(&d, 2), 0);
	CHECK_EQ(dualpi2_delay_count(&d), (65536ULL << 32) + 12);
}

UNIT_TEST(delay_sum_wraps_at_two_to_the_64)
{
	struct dualpi2_delay d = delay_new(10);

	d.sum_ns = UINT64_MAX - 99;
	dualpi2_delay_add(&d, 150);
	CHECK_EQ(d.sum_ns, 50);
}

/* Rising, one by one, through the short buckets and beyond them. */
UNIT_TEST(delay_maximum_is_that_of_any_bucket)
{
	struct dualpi2_delay d = delay_new(10);

	for (u64 delay = 0; delay < 20 << 10; delay += 100) {
		dualpi2_delay_add(&d, delay);
		CHECK_EQ(d.max_ns, delay);
		dualpi2_delay_add(&d, delay / 2);
		CHECK_EQ(d.max_ns, delay);
	}
}

/* By a nanosecond each time, to the end of the short buckets and beyond it. */
UNIT_TEST(delay_one_more_than_the_greatest_is_the_greatest)
{
	struct dualpi2_delay d = delay_new(10);

	for (u64 delay = 0; delay < 10 << 10; delay++) {
		dualpi2_delay_add(&d, delay);
		CHECK_EQ(d.max_ns, delay);
	}
	for (u64 delay = 0; delay < 10; delay++)
		CHECK_EQ(dualpi2_delay_bucket(&d, delay), 1 << 10);
}

/* also when a greater one has been seen before */
UNIT_TEST(delay_beyond_the_last_bucket_is_in_none)
{
	struct dualpi2_delay d = delay_new(10);

	dualpi2_delay_add(&d, UINT64_MAX);
	dualpi2_delay_add(&d, (1 << 24) - 1);
	CHECK_EQ(d.beyond, 1);
	CHECK_EQ(dualpi2_delay_bucket(&d, DUALPI2_HIST_BUCKETS - 1), 1);
	dualpi2_delay_add(&d, 1 << 24);
	CHECK_EQ(d.beyond, 2);
	CHECK_EQ(dualpi2_delay_bucket(&d, DUALPI2_HIST_BUCKETS - 1), 1);
	dualpi2_delay_add(&d, 0);
	CHECK_EQ(dualpi2_delay_bucket(&d, 0), 1);
	CHECK_EQ(d.max_ns, UINT64_MAX);
	CHECK_EQ(dualpi2_delay_count(&d), 4);
}

/* Nothing is to be found out below eight units, and nothing but the bucket up to
 * the maximum delay so far or the last bucket's end.
 */
UNIT_TEST(delay_is_looked_at_no_longer_than_need_be)
{
	static const struct { u64 delay_ns, short_ns, watch_ns; } cases[] = {
		{ 0, 1, 1 }, { 1, 2, 2 }, { 5000, 5001, 5001 },
		{ 4000, 5001, 5001 }, { 8191, 8192, 8192 },
		{ 9000, 8192, 9001 }, { 0, 8192, 9001 }, { 8192, 8192, 9001 },
		{ 16777215, 8192, 16777216 }, { 16777216, 8192, 16777216 },
		{ SEC, 8192, 16777216 }, { 9001, 8192, 16777216 },
	};
	struct dualpi2_delay d = delay_new(10);

	for_each(c, cases) {
		dualpi2_delay_add(&d, c->delay_ns);
		CHECK_EQ(d.short_ns, c->short_ns);
		CHECK_EQ(d.watch_ns, c->watch_ns);
	}
}

UNIT_TEST(delay_counts_the_same_after_any_number_beyond)
{
	struct dualpi2_delay d = delay_new(10);

	d.beyond = 1 << 20;
	dualpi2_delay_add(&d, 18 << 10);
	CHECK_EQ(dualpi2_delay_bucket(&d, 17), 1);
	CHECK_EQ(d.max_ns, 18 << 10);
	CHECK_EQ(d.beyond, 1 << 20);
}

UNIT_TEST(delay_new_edges_begin_anew)
{
	struct dualpi2_delay d = delay_new(10);

	CHECK_EQ(d.generation, 1);
	dualpi2_delay_add(&d, 5000);
	dualpi2_delay_add(&d, UINT64_MAX);
	dualpi2_delay_init(&d, 11);
	CHECK_EQ(d.generation, 2);
	CHECK_EQ(d.shift, 11);
	CHECK_EQ(d.not_shown, 2);
	CHECK_EQ(dualpi2_delay_count(&d) | d.sum_ns | d.max_ns | d.beyond | d.watch_ns | d.short_ns, 0);
	dualpi2_delay_add(&d, 0);
	dualpi2_delay_init(&d, 11);
	CHECK_EQ(d.not_shown, 3);
	CHECK_EQ(dualpi2_delay_count(&d), 0);
}

UNIT_TEST(delay_without_a_histogram_counts_and_shows_nothing)
{
	static const u64 delays[] = { 0, 1, 5000, SEC, UINT64_MAX, 0 };
	struct dualpi2_delay d = delay_new(10);
	struct dualpi2_hist *hist = d.hist;

	memset(&d, 0, sizeof(d));
	dualpi2_delay_init(&d, 10);
	for_each(delay, delays)
		dualpi2_delay_add(&d, *delay);
	CHECK_EQ(d.not_shown, 6);
	CHECK_EQ(dualpi2_delay_count(&d) | dualpi2_delay_bucket(&d, 0) | d.sum_ns | d.max_ns | d.beyond, 0);
	dualpi2_delay_init(&d, 11);
	CHECK_EQ(d.not_shown, 6);

	/* There is memory now. */
	d.hist = hist;
	dualpi2_delay_add(&d, 0);
	dualpi2_delay_add(&d, 3 << 11);
	CHECK_EQ(dualpi2_delay_bucket(&d, 0), 1);
	CHECK_EQ(dualpi2_delay_bucket(&d, 3), 1);
	CHECK_EQ(d.not_shown, 6);
	CHECK_EQ(d.sum_ns, 3 << 11);
	CHECK_EQ(d.max_ns, 3 << 11);
}

UNIT_TEST(delay_unit_is_the_next_power_of_two)
{
	for (u32 us = DUALPI2_HIST_C_MIN; us <= DUALPI2_HIST_C_MAX; us++) {
		u64 unit = 1ULL << dualpi2_hist_shift(us);

		CHECK(unit >= us * 1000ULL && unit / 2 < us * 1000ULL,
		      "%u us: %llu ns", us, (ull)unit);
	}
	CHECK_EQ(dualpi2_hist_shift(DUALPI2_HIST_L_DEF), 13);
	CHECK_EQ(dualpi2_hist_shift(DUALPI2_HIST_C_DEF), 16);
	CHECK_EQ(dualpi2_hist_shift(DUALPI2_HIST_C_MIN), 10);
	CHECK_EQ(dualpi2_hist_shift(DUALPI2_HIST_C_MAX), 24);
}

UNIT_TEST(delay_square_root_of_a_probability_is_the_least)
{
	CHECK_EQ(dualpi2_sqrt_q32(0), 0);
	CHECK_EQ(dualpi2_sqrt_q32(ONE), ONE);
	CHECK_EQ(dualpi2_sqrt_q32(ONE / 4), ONE / 2);
	for (int i = 0; i < 100000; i++) {
		u64 p = unit_any_q32(), root = dualpi2_sqrt_q32(p);

		CHECK(root <= ONE && dualpi2_square_q32(root) >= p,
		      "root %llu of %llu", (ull)root, (ull)p);
		CHECK(!root || dualpi2_square_q32(root - 1) < p,
		      "root %llu of %llu is not the least", (ull)root, (ull)p);
	}
}

/* The sum of two histograms has the packets of both, also beyond 32 bits. */
UNIT_TEST(delay_merge_adds_all_of_both)
{
	struct dualpi2_hist hist[2] = {};
	struct dualpi2_delay d[2] = { { .hist = &hist[0] }, { .hist = &hist[1] } };

	dualpi2_delay_init(&d[0], 13);
	dualpi2_delay_init(&d[1], 13);
	dualpi2_delay_add(&d[0], 5);
	dualpi2_delay_add(&d[1], 6);
	dualpi2_delay_add(&d[1], 1ULL << 50);
	d[0].hist->low[0] = U32_MAX;
	d[1].not_shown = 3;
	for (u32 i = 1; i < DUALPI2_HIST_BUCKETS; i++) {
		d[0].hist->low[i] = i;
		d[1].hist->high[i] = i;
	}
	dualpi2_delay_merge(&d[0], &d[1]);
	CHECK_EQ(dualpi2_delay_bucket(&d[0], 0), 1ULL << 32);
	for (u32 i = 1; i < DUALPI2_HIST_BUCKETS; i++)
		CHECK_EQ(dualpi2_delay_bucket(&d[0], i), (u64)i << 32 | i);
	CHECK_EQ(d[0].beyond, 1);
	CHECK_EQ(d[0].not_shown, 3);
	CHECK_EQ(d[0].max_ns, 1ULL << 50);
	CHECK_EQ(d[0].sum_ns, 11 + (1ULL << 50));
	d[1].max_ns = 7;
	dualpi2_delay_merge(&d[0], &d[1]);
	CHECK_EQ(d[0].max_ns, 1ULL << 50);
	CHECK_EQ(d[0].beyond, 2);
	CHECK_EQ(d[0].not_shown, 6);
}
