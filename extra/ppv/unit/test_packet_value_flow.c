// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packet values: the rate of a flow, the table of flows, the pick of a value.
 */
#include "value_test.h"

/* ---- the rate of a flow ---- */

static struct ppv_window value_window(u32 us)
{
	struct ppv_window w;

	memset(&w, 0xa5, sizeof(w));
	ppv_window_init(&w, us);
	return w;
}

/* The same in long double, with the most that the header's is above it. */
struct value_meter {
	long double window_ns;
	long double bytes;
	long double error;
	u64 last_ns;
};

static long double value_meter_add(struct value_meter *m, u32 bytes, u64 now_ns)
{
	long double gap = now_ns > m->last_ns ? now_ns - m->last_ns : 0;
	long double rest = gap < m->window_ns ? 1 - gap / m->window_ns : 0;

	/* The part of 2^32 and the product are both rounded down. */
	m->error = rest && gap ? m->error * rest +
				 (m->bytes + m->error) / 4294967296.0L +
				 1.0L / 256 :
		   rest ? m->error : 0;
	m->bytes = m->bytes * rest + (bytes < 1U << 24 ? bytes : 1U << 24);
	if (m->bytes > PPV_RATE_MAX)
		m->bytes = PPV_RATE_MAX;
	if (now_ns > m->last_ns)
		m->last_ns = now_ns;
	return m->bytes * 1e9L / m->window_ns;
}

/* A packet for both; the rate. */
static u64 value_meter_check(struct value_meter *m, struct ppv_flow *flow,
			     const struct ppv_window *w, u32 bytes, u64 now_ns)
{
	long double want = value_meter_add(m, bytes, now_ns), most;
	u64 got = ppv_flow_add(flow, w, bytes, now_ns);

	most = want + m->error * 1e9L / m->window_ns + 0.000001L;
	/* per_s_q16 is rounded down too, and at least 2^16. */
	want = want * (1 - 1.0L / 65536) - 1;
	want = want < PPV_RATE_MAX ? want : PPV_RATE_MAX;
	CHECK(got <= PPV_RATE_MAX, "%llu", (ull)got);
	CHECK(got >= want && got <= most, "%llu, not in %Lf..%Lf", (ull)got, want, most);
	CHECK_EQ(flow->last_ns, m->last_ns);
	return got;
}

static u32 value_any_window_us(void)
{
	return unit_any(PPV_WINDOW_US_MIN, PPV_WINDOW_US_MAX);
}

UNIT_TEST(value_window_is_converted)
{
	int i;

	CHECK_EQ(value_window(1000).ns, 1000000);
	CHECK_EQ(value_window(1000).per_s_q16, 1000 << 16);
	CHECK_EQ(value_window(100000).ns, 100000000);
	CHECK_EQ(value_window(100000).per_s_q16, 10 << 16);
	CHECK_EQ(value_window(1000000).ns, 1000000000);
	CHECK_EQ(value_window(1000000).per_s_q16, 1 << 16);
	for (i = 0; i < 1000; i++) {
		u32 us = value_any_window_us();
		struct ppv_window w = value_window(us);

		CHECK_EQ(w.ns, us * 1000ULL);
		CHECK_EQ(w.per_s_q16, floorl(65536e6L / us));
	}
}

UNIT_TEST(value_rate_of_first_packet_is_one_a_window)
{
	struct ppv_window w = value_window(100000);
	struct ppv_flow flow = { 0 };

	CHECK_EQ(ppv_flow_add(&flow, &w, 1500, 7 * SEC), 15000);
	CHECK_EQ(flow.last_ns, 7 * SEC);
}

/* At even distances it is exact except for rounding. */
UNIT_TEST(value_rate_of_even_packets_is_exact)
{
	int i, n;

	for (i = 0; i < 300; i++) {
		u32 us = value_any_window_us(), bytes = unit_any(1, 65535);
		struct ppv_window w = value_window(us);
		u64 gap = unit_between(w.ns / 200, w.ns - 1);
		struct ppv_flow flow = { 0 };
		u64 now = SEC, got = 0;
		long double want = bytes * 1e9L / gap;

		for (n = 0; n < 5000; n++) {
			got = ppv_flow_add(&flow, &w, bytes, now);
			now += gap;
		}
		/* a byte of 2^8 for each of the gaps in a window */
		CHECK(got >= want * (1 - 1.0L / 65536) - 1 &&
		      got <= want * 1.000001L + 1e9L / gap / 256 + 1,
		      "%u us, %u bytes, %llu ns: %llu, want %Lf", us, bytes,
		      (ull)gap, (ull)got, want);
	}
}

UNIT_TEST(value_rate_of_any_arrivals_matches_division)
{
	int i, n;

	for (i = 0; i < 500; i++) {
		struct ppv_window w = value_window(value_any_window_us());
		struct value_meter m = { .window_ns = w.ns };
		struct ppv_flow flow = { 0 };
		u64 now = unit_any(1, 1ULL << 60);
		u32 most = unit_any(1, 1U << 24);
		u64 gap = unit_any(1, 2ULL * w.ns);

		for (n = 0; n < 200; n++) {
			value_meter_check(&m, &flow, &w, unit_any(0, most), now);
			now += unit_any(0, gap);
		}
	}
}

/* One window: bytes of the burst; later ones: what the bucket still has. */
UNIT_TEST(value_rate_of_bursts)
{
	struct ppv_window w = value_window(100000);
	struct value_meter m = { .window_ns = w.ns };
	struct ppv_flow flow = { 0 };
	u64 got = 0;
	int n;

	for (n = 0; n < 10; n++)
		got = value_meter_check(&m, &flow, &w, 1000, SEC);
	CHECK_EQ(got, 100000);
	/* half a window later half is left */
	CHECK_EQ(value_meter_check(&m, &flow, &w, 1000, SEC + 50 * MS), 60000);
	CHECK_EQ(value_meter_check(&m, &flow, &w, 0, SEC + 75 * MS), 45000);
}

UNIT_TEST(value_rate_is_forgotten_after_a_window)
{
	int i;

	for (i = 0; i < 2000; i++) {
		struct ppv_window w = value_window(value_any_window_us());
		struct ppv_flow flow = { 0 };
		struct ppv_flow near;
		u64 now = 10 * SEC, first;

		first = ppv_flow_add(&flow, &w, 1000, now);
		near = flow;
		CHECK_EQ(ppv_flow_add(&flow, &w, 1000, now + unit_any(w.ns, UINT64_MAX - now)), first);
		/* a nanosecond less: a part of 10^6 or less is left */
		CHECK_NEAR(ppv_flow_add(&near, &w, 1000, now + w.ns - 1), first, first / 500000 + 10);
		CHECK(near.level_q8 > 256000, "%llu", (ull)near.level_q8);
		CHECK_EQ(flow.level_q8, 256000);
	}
}

UNIT_TEST(value_rate_survives_a_clock_that_goes_back)
{
	struct ppv_window w = value_window(100000);
	struct ppv_flow flow = { 0 };

	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 10 * SEC), 10000);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 10 * SEC - 1), 20000);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 1), 30000);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 0), 40000);
	CHECK_EQ(flow.last_ns, 10 * SEC);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 10 * SEC + 50 * MS), 30000);
}

UNIT_TEST(value_rate_has_an_end)
{
	static const u32 us[] = { PPV_WINDOW_US_MIN, PPV_WINDOW_US_DEF,
				  PPV_WINDOW_US_MAX };
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(us); i++) {
		struct ppv_window w = value_window(us[i]);
		struct value_meter m = { .window_ns = w.ns };
		struct ppv_flow flow = { 0 };
		u64 now = UINT64_MAX / 2, got = 0, half;

		for (n = 0; n < 20000; n++)
			got = value_meter_check(&m, &flow, &w, UINT32_MAX, now);
		CHECK_EQ(got, PPV_RATE_MAX);
		/* No more of it stays than PPV_RATE_MAX in a second. */
		CHECK_EQ(flow.level_q8, PPV_RATE_MAX << 8);
		now += w.ns / 2;
		half = PPV_RATE_MAX / 2 * (1000000 / us[i]);
		CHECK_EQ(value_meter_check(&m, &flow, &w, 0, now), half < PPV_RATE_MAX ? half : PPV_RATE_MAX);
	}
}

UNIT_TEST(value_rate_takes_long_packets_as_2_to_24)
{
	static const u32 bytes[] = { 1U << 24, (1U << 24) + 1, UINT32_MAX };
	struct ppv_window w = value_window(PPV_WINDOW_US_MAX);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		struct ppv_flow flow = { 0 };

		CHECK_EQ(ppv_flow_add(&flow, &w, (1U << 24) - 1, SEC), (1U << 24) - 1);
		CHECK_EQ(ppv_flow_add(&flow, &w, bytes[i], 9 * SEC), 1U << 24);
	}
}

/* ---- the table ---- */

/* The one, empty. */
static struct ppv_flow *value_table(void)
{
	static struct ppv_flow table[PPV_FLOW_SETS * PPV_FLOW_WAYS];

	memset(table, 0, sizeof(table));
	return table;
}

/* Find a flow and add a packet to it. */
static struct ppv_flow *value_packet(struct ppv_flow *table, u32 hash,
				     const struct ppv_window *w, u64 now_ns,
				     enum ppv_found want)
{
	enum ppv_found found = 99;
	struct ppv_flow *flow = ppv_flow_find(table, hash, w, now_ns, &found);

	CHECK(found == want, "0x%x at %llu: %u, not %u", hash, (ull)now_ns, found, want);
	CHECK_EQ(flow->tag, hash);
	CHECK(flow >= table && flow < table + PPV_FLOW_SETS * PPV_FLOW_WAYS, "outside");
	if (want != PPV_FLOW_KNOWN) {
		CHECK_EQ(flow->level_q8, 0);
		CHECK_EQ(flow->last_ns, 0);
	}
	ppv_flow_add(flow, w, 1000, now_ns);
	return flow;
}

UNIT_TEST(value_flow_is_known_after_its_first_packet)
{
	static const u32 hashes[] = { 0, 1, 1023, 1024, UINT32_MAX };
	struct ppv_window w = value_window(100000);
	struct ppv_flow *table = value_table();
	struct ppv_flow *flows[ARRAY_SIZE(hashes)];
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(hashes); i++) {
		flows[i] = value_packet(table, hashes[i], &w, 1 + i, PPV_FLOW_NEW);
		for (k = 0; k < i; k++)
			CHECK(flows[i] != flows[k], "%u, %u", i, k);
	}
	for (i = 0; i < ARRAY_SIZE(hashes); i++) {
		CHECK(value_packet(table, hashes[i], &w, 3 * SEC, PPV_FLOW_KNOWN) == flows[i], "%u", i);
		CHECK(value_packet(table, hashes[i], &w, 3 * SEC, PPV_FLOW_KNOWN) == flows[i], "%u", i);
		CHECK_EQ(flows[i]->level_q8, 2 * 256000);
	}
}

UNIT_TEST(value_flow_seen_longest_ago_makes_room)
{
	struct ppv_window w = value_window(100000);
	struct ppv_flow *table = value_table();
	struct ppv_flow *flows[PPV_FLOW_WAYS];
	u64 now = SEC;
	u32 i;

	for (i = 0; i < PPV_FLOW_WAYS; i++)
		flows[i] = value_packet(table, 77 + i * PPV_FLOW_SETS, &w, now++, PPV_FLOW_NEW);
	value_packet(table, 77, &w, now++, PPV_FLOW_KNOWN);
	/* the second one is the oldest now */
	CHECK(value_packet(table, 77 + 9 * PPV_FLOW_SETS, &w, now, PPV_FLOW_EVICTED) == flows[1], "not the oldest");
	value_packet(table, 77, &w, now, PPV_FLOW_KNOWN);
	/* the third one until a window has passed since it was seen */
	CHECK(value_packet(table, 77 + PPV_FLOW_SETS, &w,
			   SEC + 2 + w.ns - 1, PPV_FLOW_EVICTED) == flows[2],
	      "not the oldest");
	CHECK(value_packet(table, 77 + 2 * PPV_FLOW_SETS, &w, SEC + 3 + w.ns,
			   PPV_FLOW_NEW) == flows[3], "not the oldest");
	/* another set has room all the time */
	value_packet(table, 78, &w, now, PPV_FLOW_NEW);
}

/* As many flows as there are places, the same number in each set. */
UNIT_TEST(value_table_has_room_for_all)
{
	const u32 all = PPV_FLOW_SETS * PPV_FLOW_WAYS;
	struct ppv_window w = value_window(100000);
	struct ppv_flow *table = value_table();
	u32 hash;

	for (hash = 0; hash < all; hash++)
		value_packet(table, hash, &w, SEC, PPV_FLOW_NEW);
	for (hash = 0; hash < all; hash++)
		value_packet(table, hash, &w, SEC + 1, PPV_FLOW_KNOWN);
	value_packet(table, all, &w, SEC + 1, PPV_FLOW_EVICTED);
}

/* Of each set, the flows in it and when each was seen last. */
UNIT_TEST(value_table_matches_lists)
{
	static struct { u32 hash; u64 seen; } sets[8][PPV_FLOW_WAYS];
	struct ppv_window w = value_window(1000);
	struct ppv_flow *table = value_table();
	u32 i, way, evicted = 0, gone = 0;
	u64 now = SEC;

	memset(sets, 0, sizeof(sets));
	for (i = 0; i < 100000; i++) {
		u32 set = unit_rnd() % 8;
		u32 hash = set * 146 + (unit_rnd() % 7) * PPV_FLOW_SETS * 3;
		enum ppv_found want = PPV_FLOW_NEW;
		u32 oldest = 0;

		now += 1 + unit_any(0, w.ns / 8);
		for (way = 0; way < PPV_FLOW_WAYS; way++) {
			if (sets[set][way].seen && sets[set][way].hash == hash)
				break;
			if (sets[set][way].seen < sets[set][oldest].seen)
				oldest = way;
		}
		if (way < PPV_FLOW_WAYS) {
			want = PPV_FLOW_KNOWN;
			oldest = way;
		} else if (sets[set][oldest].seen) {
			if (now - sets[set][oldest].seen < w.ns)
				want = PPV_FLOW_EVICTED;
			evicted += want == PPV_FLOW_EVICTED;
			gone += want == PPV_FLOW_NEW;
		}
		value_packet(table, hash, &w, now, want);
		sets[set][oldest].hash = hash;
		sets[set][oldest].seen = now;
	}
	CHECK(evicted > 1000 && gone > 1000, "%u, %u", evicted, gone);
}

/* ---- the pick ---- */

UNIT_TEST(value_pick_is_of_a_uniform_part_of_the_rate)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int i;

	for (i = 0; i < 100000; i++) {
		u32 count = value_any_points(points), rnd = unit_rnd();
		struct ppv_tvf tvf = value_tvf_of(points, count);
		u64 rate = unit_any(0, PPV_RATE_MAX), part;

		part = (rate >> 32) * rnd + ((rate & UINT32_MAX) * rnd >> 32);
		CHECK_EQ(ppv_pick(&tvf, rate, rnd), ppv_tvf_coded(&tvf, part));
		CHECK_EQ(ppv_pick(&tvf, rate, 0), points[0].coded);
	}
}

/* How many of the 2^32 random numbers give more than a value. */
static u64 value_picks_above(const struct ppv_tvf *tvf, u64 rate, u32 coded)
{
	u64 low = 0, high = ONE;

	while (low < high) {
		u64 mid = low + (high - low) / 2;

		if (ppv_pick(tvf, rate, mid) > coded)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The steps of a logarithm that the rounding of a slope can come to. */
static long double value_slope_steps(const struct ppv_tvf *tvf)
{
	long double most = 0;
	u32 i;

	for (i = 1; i < tvf->count; i++) {
		const struct ppv_point *point = &tvf->points[i];
		long double run = log2l((long double)point->rate / point[-1].rate) * 65536 + 1;

		most = fmaxl(most, run * run / ONE / (point[-1].coded - point->coded));
	}
	return most;
}

/* The rate of a flow's packets with a value beyond x is that of which the
 * function is x.
 */
UNIT_TEST(value_share_beyond_a_value_is_its_rate)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int i;

	for (i = 0; i < 20000; i++) {
		u32 number = unit_rnd() % 5, count, coded;
		struct ppv_tvf tvf;
		long double want, got, slack;
		u64 rate = unit_any(1000, PPV_RATE_MAX);

		count = value_any_points(points);
		tvf = number ? value_builtin(number) :
			       value_tvf_of(points, count);
		coded = unit_between(0, PPV_CODED_MAX);
		want = value_inverse(tvf.points, tvf.count, coded);
		if (want > rate)
			want = rate;
		got = (long double)value_picks_above(&tvf, rate, coded) * rate /
		      ONE;
		/* a step of each of two logarithms, and a byte */
		slack = want * (value_slope_steps(&tvf) + 2.1L) * VALUE_STEP +
			1 + (long double)rate / ONE;
		CHECK(got >= want - slack && got <= want + slack,
		      "%llu B/s beyond %u: %Lf, want %Lf", (ull)rate, coded,
		      got, want);
	}
}

/* A flow of even packets: its rate, its picks, their shares in 5 sigma. */
UNIT_TEST(value_flow_has_the_shares_of_its_function)
{
	static const u32 levels[] = { 45000, 42000, 41000, 39000, 35000 };
	struct ppv_window w = value_window(PPV_WINDOW_US_DEF);
	const u32 packets = 100000;
	u32 number, i, k;

	for (number = 1; number <= 2; number++) {
		struct ppv_tvf tvf = value_builtin(number);
		u32 above[ARRAY_SIZE(levels)] = { 0 };
		struct ppv_flow flow = { 0 };
		u64 now = SEC;

		/* 80 Mbit/s */
		for (i = 0; i < packets + 10000; i++) {
			u64 rate = ppv_flow_add(&flow, &w, 1250, now);
			u32 got = ppv_pick(&tvf, rate, unit_rnd() >> 32);

			now += 125000;
			if (i < 10000)
				continue;
			for (k = 0; k < ARRAY_SIZE(levels); k++)
				above[k] += got > levels[k];
		}
		for (k = 0; k < ARRAY_SIZE(levels); k++) {
			long double p = value_inverse(tvf.points, tvf.count, levels[k]) / 1e7L;

			p = p < 1 ? p : 1;
			CHECK(fabsl(above[k] - packets * p) <=
			      5 * sqrtl(packets * p * (1 - p)) +
			      packets * p * 0.0001L, "%u beyond %u: %u, p %Lf",
			      number, levels[k], above[k], p);
		}
	}
}

UNIT_TEST(value_limits_are_those_of_the_paper)
{
	CHECK_EQ(PPV_CODED_MAX, 65535);
	CHECK_EQ(PPV_DECADES, 10);
	CHECK_EQ(PPV_RATE_MAX, 125000000000ULL);
	CHECK_EQ(PPV_TVFS, 16);
	CHECK_EQ(PPV_POINTS_MAX, 32);
	CHECK_EQ(PPV_DEFAULT_DEF, 1);
	CHECK_EQ(PPV_WINDOW_US_DEF, 100000);
	CHECK_EQ(PPV_WINDOW_US_MIN, 1000);
	CHECK_EQ(PPV_WINDOW_US_MAX, 1000000);
	CHECK_EQ(PPV_FLOW_SETS, 1024);
	CHECK_EQ(PPV_FLOW_WAYS, 4);
}
