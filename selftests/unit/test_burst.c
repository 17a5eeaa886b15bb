// SPDX-License-Identifier: GPL-2.0-only
/* Bursts of arrivals, and for how long they are tolerated. */

#include "link_test.h"

#define BURST_MAX_NS	(5 * MS)

/* Arrivals at a link of a rate, played with updates each 16 ms. */
struct burst_play {
	struct dualpi2_burst b;
	u64 per_byte;
	u64 rate;
	u64 now;
	u64 update;
	u32 max_ns;
};

static struct burst_play burst_new(u64 rate)
{
	struct burst_play p = {
		.per_byte = dualpi2_ns_per_byte_q20(rate),
		.rate = rate,
		.now = SEC,
		.update = SEC,
		.max_ns = BURST_MAX_NS,
	};

	return p;
}

static void burst_wait(struct burst_play *p, u64 ns)
{
	u64 end = p->now + ns;

	while (p->update <= end) {
		p->now = p->update;
		dualpi2_burst_update(&p->b, p->per_byte, LINK_MTU, p->max_ns);
		p->update += 16 * MS;
	}
	p->now = end;
}

static void burst_packet(struct burst_play *p, u32 bytes, u64 then_ns)
{
	dualpi2_burst_next(&p->b, bytes, p->now);
	burst_wait(p, then_ns);
}

/* So many bytes at once, or as fast as a link of so much the rate brings them, at
 * so many per cent of the rate on the whole, for a number of updates.
 */
static void burst_aggregates(struct burst_play *p, u32 bytes, u32 times, u32 load_pct, int updates)
{
	u64 until = p->update + updates * 16 * MS;

	while (p->update < until) {
		u64 end = p->now + bytes * SEC / p->rate * 100 / load_pct;
		u32 left = bytes;

		while (left) {
			u32 len = left < 1514 ? left : 1514;

			left -= len;
			burst_packet(p, len, !left ? 0 : times ? len * SEC / p->rate / times : 0);
		}
		burst_wait(p, end - p->now);
	}
}

/* Packets one by one, each at its time or, with jitter, at a random one. */
static void burst_smooth(struct burst_play *p, u32 bytes, u32 load_pct, bool jitter, int updates)
{
	u64 until = p->update + updates * 16 * MS;
	u64 gap = bytes * SEC / p->rate * 100 / load_pct;

	while (p->update < until) {
		u64 then = gap;

		if (jitter)		/* exponential: Poisson arrivals */
			then = -logl((unit_rnd() >> 12) / 0x1p52L + 1.0L / (1ULL << 60)) * gap;
		burst_packet(p, bytes, then);
	}
}

static const u64 burst_rates[] = { 1250000, 5000000, 25000000, 125000000 };

UNIT_TEST(burst_smooth_arrivals_leave_the_ramp_alone)
{
	static const u32 sizes[] = { 100, 300, 1000, 1514 };
	static const u32 loads[] = { 30, 70, 100 };
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params params = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&params);

	for_each(rate, burst_rates)
	for_each(size, sizes)
	for_each(load, loads) {
		struct burst_play p = burst_new(*rate);

		burst_smooth(&p, *size, *load, false, 50);
		dualpi2_tolerate(&params, &v, p.b.burst_ns);
		CHECK(v.ramp.min_ns == params.ramp.min_ns && v.ramp.max_ns == params.ramp.max_ns &&
		      v.ramp.slope == params.ramp.slope, "%u bytes, %u %% of %llu bytes/s: %u ns",
		      *size, *load, (ull)(*rate), p.b.burst_ns);
	}
}

/* Chance brings packets together, a few of them. */
UNIT_TEST(burst_random_arrivals_leave_the_ramp_alone)
{
	static const u32 sizes[] = { 300, 1000, 1514 };
	static const u32 loads[] = { 30, 70, 90 };

	for_each(rate, burst_rates)
	for_each(size, sizes)
	for_each(load, loads) {
		struct burst_play p = burst_new(*rate);

		burst_smooth(&p, *size, *load, true, 100);
		CHECK(p.b.burst_ns <= 800000, "%u bytes, %u %% of %llu bytes/s: %u ns",
		      *size, *load, (ull)(*rate), p.b.burst_ns);
	}
}

/* 4 ms at once, or as fast as a radio brings them: the whole of an aggregate
 * passes before the ramp begins.
 */
UNIT_TEST(burst_aggregates_are_tolerated)
{
	static const u32 times[] = { 0, 10, 30 };

	for (u32 i = 1; i < ARRAY_SIZE(burst_rates); i++)
	for_each(time, times) {
		struct burst_play p = burst_new(burst_rates[i]);
		u32 bytes = burst_rates[i] / 250;
		u32 want = *time == 10 ? 3600000 : 4000000;

		burst_aggregates(&p, bytes, *time, 90, 60);
		CHECK(p.b.burst_ns >= want, "aggregates of 4 ms at %llu bytes/s: %u ns",
		      (ull)burst_rates[i], p.b.burst_ns);
		CHECK(p.b.burst_ns <= BURST_MAX_NS, "%u ns", p.b.burst_ns);
	}
}

UNIT_TEST(burst_tolerance_decays_with_smooth_arrivals)
{
	for (u32 i = 1; i < ARRAY_SIZE(burst_rates); i++) {
		struct burst_play p = burst_new(burst_rates[i]);
		u32 was;

		burst_aggregates(&p, burst_rates[i] / 250, 0, 90, 60);
		was = p.b.burst_ns;
		burst_smooth(&p, 1000, 90, false, 10);
		CHECK(p.b.burst_ns < was, "%u ns, and %u before", p.b.burst_ns, was);
		burst_smooth(&p, 1000, 90, false, 50);
		CHECK(p.b.burst_ns <= 50000, "%u ns are left of %u", p.b.burst_ns, was);
	}
}

/* What is longer is load, whether it ends or not. */
UNIT_TEST(burst_floods_are_not_tolerated)
{
	for_each(rate, burst_rates) {
		struct burst_play p = burst_new(*rate);

		burst_aggregates(&p, *rate / 100, 0, 90, 60);
		CHECK_EQ(p.b.burst_ns, 0);
		burst_aggregates(&p, *rate / 250, 0, 90, 60);
		burst_aggregates(&p, *rate / 100, 0, 90, 80);
		CHECK(p.b.burst_ns <= 50000, "10 ms: %u ns", p.b.burst_ns);
	}
}

UNIT_TEST(burst_flood_without_end_is_not_tolerated)
{
	struct burst_play p = burst_new(5000000);

	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK(p.b.burst_ns > 3 * MS, "%u ns", p.b.burst_ns);
	/* Ten times the rate, for a second and more. */
	burst_smooth(&p, 1514, 1000, false, 80);
	CHECK(p.b.burst_ns <= 50000, "%u ns during a flood", p.b.burst_ns);
}

/* Small ones that come at random within a quarter of an MTU's time of each other,
 * but on average no faster than they leave.
 */
UNIT_TEST(burst_of_small_packets_at_the_rate_is_none)
{
	static const u32 loads[] = { 60, 95 };

	for_each(rate, burst_rates)
	for_each(load, loads) {
		struct burst_play p = burst_new(*rate);

		burst_smooth(&p, 300, *load, true, 60);
		CHECK(p.b.burst_ns <= DUALPI2_BURST_MIN_NS,
		      "%u %% of %llu bytes/s: %u ns", *load, (ull)(*rate), p.b.burst_ns);
	}
}

/* A few bursts among smooth arrivals count for what they are of them. */
UNIT_TEST(burst_of_a_small_part_is_not_tolerated)
{
	struct burst_play p = burst_new(5000000);

	for (int i = 0; i < 100; i++) {
		burst_aggregates(&p, 20000, 0, 90, 0);
		burst_smooth(&p, 1000, 80, false, 1);
	}
	burst_smooth(&p, 1000, 80, false, 1);
	CHECK(p.b.burst_ns <= 800000, "%u ns", p.b.burst_ns);
}

UNIT_TEST(burst_none_without_rate_or_bound)
{
	struct burst_play p = burst_new(5000000);

	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK(p.b.burst_ns, "nothing to forget");
	dualpi2_burst_update(&p.b, p.per_byte, LINK_MTU, 0);
	CHECK_EQ(p.b.burst_ns | p.b.gap_ns | p.b.mean_ns, 0);
	p.max_ns = 0;
	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK_EQ(p.b.burst_ns | p.b.run_bytes | p.b.sum_bytes, 0);
	p.max_ns = BURST_MAX_NS;
	p.per_byte = 0;
	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK_EQ(p.b.burst_ns | p.b.run_bytes | p.b.sum_bytes, 0);
}

/* The bound is one at once, whether or not packets come. */
UNIT_TEST(burst_bound_that_falls_holds_at_once)
{
	struct burst_play p = burst_new(5000000);

	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK(p.b.burst_ns > 3 * MS, "%u ns", p.b.burst_ns);
	p.b.run_bytes = 0;
	p.b.sum_bytes = 0;
	p.b.sum = 0;
	dualpi2_burst_update(&p.b, p.per_byte, LINK_MTU, MS);
	CHECK(p.b.burst_ns <= MS, "%u ns", p.b.burst_ns);
}

/* A pause of a quarter of an MTU's time is none, a longer one ends a burst. */
UNIT_TEST(burst_ends_with_a_pause_of_a_quarter_of_an_mtu)
{
	struct burst_play p = burst_new(1514000);	/* 1 ms for an MTU */

	dualpi2_burst_update(&p.b, p.per_byte, LINK_MTU, BURST_MAX_NS);
	CHECK_NEAR(p.b.gap_ns, 250000, 1);
	for (int i = 0; i < 5; i++)
		dualpi2_burst_next(&p.b, 1000, SEC + i * p.b.gap_ns);
	CHECK_EQ(p.b.run_bytes, 5000);
	CHECK_EQ(p.b.sum_bytes, 0);
	dualpi2_burst_next(&p.b, 700, SEC + 5 * p.b.gap_ns + 1);
	CHECK_EQ(p.b.run_bytes, 700);
	CHECK_EQ(p.b.sum_bytes, 5000);
	/* All but the first MTU take 2.30251 ms, and 1 ms of it has passed. */
	CHECK_NEAR(p.b.sum / 5000, 1302510, 5);
}

/* Against a list of all arrivals. A byte takes a whole number of ns, so that all is exact. */
UNIT_TEST(burst_mean_is_that_of_a_list_of_arrivals)
{
	enum { ARRIVALS = 400 };
	static u64 at[ARRIVALS];
	static u32 len[ARRIVALS];

	for (int i = 0; i < 500; i++) {
		u64 ns = unit_any(1, 20000), mean = 0, now;
		u32 max_ns = unit_between(MS / 10, 100 * MS);
		u32 mtu = unit_between(68, 9014);
		u64 gap = ns * mtu / 4;
		struct dualpi2_burst b = {};
		u32 first = 0, n, k;

		dualpi2_burst_update(&b, ns << 20, mtu, max_ns);
		now = gap + unit_any(1, SEC);
		for (n = 0; n < ARRIVALS; n++) {
			u64 bytes = 0, sum = 0, run = 0;
			u32 from = first;

			at[n] = now;
			len[n] = unit_between(60, 1514);
			dualpi2_burst_next(&b, len[n], now);
			now += unit_rnd() % 8 ? unit_between(0, gap) : gap + unit_any(1, 50 * MS);
			for (k = first; k <= n; k++) {
				u64 behind = ns * (run - 1514);

				if (k > from && at[k] - at[k - 1] > gap) {
					behind -= at[k - 1] - at[from];
					if (run > 2 * 1514 && run * ns <= max_ns &&
					    (s64)behind > 0)
						sum += run * behind;
					bytes += run;
					run = 0;
					from = k;
				}
				run += len[k];
			}
			/* What is too long before it ends is another matter. */
			if (unit_rnd() % 16 || run * ns > max_ns)
				continue;
			dualpi2_burst_update(&b, ns << 20, mtu, max_ns);
			if (bytes)
				mean = (7 * mean + sum / bytes) / 8;
			CHECK_EQ(b.mean_ns, mean);
			CHECK_EQ(b.burst_ns, mean * 5 / 4 < max_ns ? mean * 5 / 4 : max_ns);
			first = from;
		}
	}
}

/* Two packets that follow each other are no burst, with a byte more they are. */
UNIT_TEST(burst_is_more_than_two_packets)
{
	struct dualpi2_burst b = {}, was;

	CHECK(dualpi2_burst_continues(&b, 1514, SEC), "without a rate");
	CHECK_EQ(b.run_bytes | b.first_ns | b.last_ns, 0);
	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 10 * MS);
	CHECK(dualpi2_burst_continues(&b, 1514, SEC), "the first one");
	CHECK(dualpi2_burst_continues(&b, 1514, SEC + 5), "the second one");
	CHECK_EQ(b.run_bytes, 3028);
	CHECK(dualpi2_burst_continues(&b, 1515, 2 * SEC), "after two");
	CHECK_EQ(b.sum_bytes, 3028);
	CHECK_EQ(b.run_bytes, 1515);
	CHECK_EQ(b.first_ns, 2 * SEC);
	CHECK(dualpi2_burst_continues(&b, 1514, 2 * SEC + 7), "another one");
	was = b;
	CHECK(!dualpi2_burst_continues(&b, 100, 3 * SEC), "after a burst");
	CHECK(!memcmp(&b, &was, sizeof(b)), "accounted for, and ends a burst");
	dualpi2_burst_next(&b, 100, 3 * SEC);
	CHECK_EQ(b.sum_bytes, 3028 + 3029);
	/* All but the first MTU take 1.515 ms. */
	CHECK_EQ(b.sum, 3029ULL * (1515000 - 7));
	CHECK_EQ(b.run_bytes, 100);
	CHECK_EQ(b.first_ns, 3 * SEC);
	CHECK_EQ(b.last_ns, 3 * SEC);
	CHECK(dualpi2_burst_continues(&b, 1514, 4 * SEC), "a lone one");
	/* nor are they one by whoever else says that they have ended */
	for (b.sum = 0, b.run_bytes = 1; b.run_bytes <= 3028;) {
		u32 bytes = b.run_bytes;

		dualpi2_burst_close(&b);
		CHECK_EQ(b.sum, 0);
		b.run_bytes = bytes + 1;
	}
}

/* A quarter of an MTU's time may be less than a nanosecond. */
UNIT_TEST(burst_at_the_greatest_rate_comes_at_once)
{
	u64 per_byte = dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MAX);
	struct dualpi2_burst b = {};

	dualpi2_burst_update(&b, per_byte, 300, 5 * MS);
	CHECK_EQ(b.gap_ns, 0);
	dualpi2_burst_next(&b, 300, SEC);
	dualpi2_burst_next(&b, 9000, SEC);
	CHECK_EQ(b.run_bytes, 9300);
	dualpi2_burst_next(&b, 300, SEC + 1);
	CHECK_EQ(b.run_bytes, 300);
	CHECK_EQ(b.sum_bytes, 9300);
	/* 7786 bytes */
	CHECK_EQ(b.sum, 9300 * 62);
}

/* The one that is as long as may be is one, what is longer is load. */
UNIT_TEST(burst_as_long_as_may_be_is_one)
{
	for (u32 bytes = 4999; bytes <= 5001; bytes++) {
		struct dualpi2_burst b = {};

		dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
		dualpi2_burst_next(&b, bytes, SEC);
		dualpi2_burst_next(&b, 60, 2 * SEC);
		CHECK_EQ(b.sum_bytes, bytes);
		CHECK_EQ(b.sum, bytes > 5000 ? 0 : (u64)bytes * (bytes - 1514) * 1000);
	}
}

/* One that is too long is load before it ends, and what follows begins where it was cut. */
UNIT_TEST(burst_too_long_is_cut_at_the_update)
{
	struct dualpi2_burst b = {};

	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
	dualpi2_burst_next(&b, 4000, SEC);
	dualpi2_burst_next(&b, 1000, SEC + 1000);
	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
	CHECK_EQ(b.run_bytes, 5000);
	CHECK_EQ(b.first_ns, SEC);
	dualpi2_burst_next(&b, 1, SEC + 2000);
	b.mean_ns = 8000;
	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
	CHECK_EQ(b.mean_ns, 7000);
	CHECK_EQ(b.run_bytes, 0);
	CHECK_EQ(b.first_ns, SEC + 2000);
	dualpi2_burst_next(&b, 4000, SEC + 2500);
	dualpi2_burst_next(&b, 60, 2 * SEC);
	CHECK_EQ(b.sum_bytes, 4000);
	CHECK_EQ(b.sum, 4000ULL * ((4000 - 1514) * 1000 - 500));
}

/* A quarter more than what came, but not more than what may be. */
UNIT_TEST(burst_tolerance_ends_at_the_bound)
{
	struct dualpi2_burst b = {};

	dualpi2_burst_update(&b, 8 << 20, LINK_MTU, 5 * MS);
	for (int i = 1; i <= 60; i++) {
		dualpi2_burst_next(&b, 625000, i * SEC);
		dualpi2_burst_next(&b, 60, i * SEC + SEC / 2);
		dualpi2_burst_update(&b, 8 << 20, LINK_MTU, 5 * MS);
		CHECK(b.burst_ns <= 5 * MS, "%u ns", b.burst_ns);
	}
	CHECK_EQ(b.burst_ns, 5 * MS);
}

/* Lengths and times that no traffic has: what is summed up stays below 2^61. */
UNIT_TEST(burst_sums_are_bounded)
{
	struct dualpi2_burst b = {}, full;

	/* lengths: 2^26, although 100 ms are 10^8 bytes */
	dualpi2_burst_update(&b, 1 << 20, LINK_MTU, 100 * MS);
	dualpi2_burst_next(&b, 1 << 26, SEC);
	dualpi2_burst_next(&b, (1 << 26) + 1, 2 * SEC);
	CHECK_EQ(b.sum, (u64)(1 << 26) * ((1 << 26) - 1514));
	dualpi2_burst_next(&b, 60, 3 * SEC);
	CHECK_EQ(b.sum_bytes, (1 << 27) + 1);
	CHECK_EQ(b.sum, (u64)(1 << 26) * ((1 << 26) - 1514));
	/* that of one run of packets */
	dualpi2_burst_next(&b, U32_MAX - 61, 3 * SEC);
	CHECK_EQ(b.run_bytes, U32_MAX - 1);
	dualpi2_burst_next(&b, 1, 3 * SEC);
	CHECK_EQ(b.run_bytes, U32_MAX);
	dualpi2_burst_next(&b, U32_MAX, 3 * SEC);
	CHECK_EQ(b.run_bytes, U32_MAX);
	/* of all: another one as long as there are less than 2^32 bytes */
	b.sum_bytes = (1ULL << 32) - 1;
	dualpi2_burst_next(&b, 60, 4 * SEC);
	CHECK_EQ(b.sum_bytes, (2ULL << 32) - 2);
	CHECK(!dualpi2_burst_continues(&b, 60, 5 * SEC), "with more");
	b.sum_bytes = (1ULL << 32) - 1;
	CHECK(dualpi2_burst_continues(&b, 60, 5 * SEC), "with less");
	b.sum_bytes = 1ULL << 32;
	full = b;
	CHECK(!dualpi2_burst_continues(&b, 60, 6 * SEC), "with as much");
	dualpi2_burst_next(&b, 1 << 26, 6 * SEC);
	dualpi2_burst_next(&b, 60, 7 * SEC);
	CHECK_EQ(b.sum_bytes, full.sum_bytes);
	CHECK_EQ(b.sum, full.sum);
	CHECK_EQ(b.run_bytes, 60);
	/* and the time that each waits for: 2^28 ns */
	b = (struct dualpi2_burst) {};
	dualpi2_burst_update(&b, 1000000ULL << 20, LINK_MTU, U32_MAX);
	dualpi2_burst_next(&b, 4000, SEC);
	dualpi2_burst_next(&b, 4000, 100 * SEC);
	CHECK_EQ(b.sum, 4000ULL << 28);
}

UNIT_TEST(burst_of_anything_stays_in_bounds)
{
	for (int i = 0; i < 2000; i++) {
		u64 now = unit_rnd() >> 1;
		struct dualpi2_burst b = {};
		u64 per_byte = unit_any(1, 1000000ULL << 20);
		u32 most = unit_any(1, 100000000), mtu = unit_any(60, 1U << 31);

		for (int k = 0; k < 200; k++) {
			dualpi2_burst_next(&b, unit_any(1, U32_MAX), now);
			now += unit_any(0, SEC);
			if (!(unit_rnd() % 16))
				dualpi2_burst_update(&b, per_byte, mtu, most);
			CHECK(b.burst_ns <= most, "%u ns of %u", b.burst_ns, most);
		}
	}
	/* The longest ones of all, for as long as may be between two updates. */
	{
		struct dualpi2_burst b = {};
		u64 now = SEC;

		dualpi2_burst_update(&b, 24 << 20, 60, 100000000);
		CHECK_EQ(b.gap_ns, 360);
		for (int k = 0; k < 100000; k++) {
			dualpi2_burst_next(&b, 4000000, now);
			now += 361;
		}
		dualpi2_burst_update(&b, 24 << 20, 60, 100000000);
		CHECK_NEAR(b.mean_ns, (4000000 - 1514) * 24 / 8, 1);
	}
}
