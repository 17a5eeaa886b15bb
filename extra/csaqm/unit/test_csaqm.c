// SPDX-License-Identifier: GPL-2.0-only
/*
 * Core-stateless AQM: parameters, queues, service while idle, what flows get.
 */
#include "csaqm_test.h"

/* ---- parameters ---- */

UNIT_TEST(core_defaults_are_those_of_the_papers)
{
	struct csaqm_config cfg = core_config(false, 0);

	csaqm_config_init(&cfg, false);
	CHECK_EQ(cfg.bandwidth, 0);
	CHECK_EQ(cfg.tupdate_us, 5000);
	CHECK_EQ(cfg.target_us, 5000);
	CHECK_EQ(cfg.buffer_us, 500000);
	CHECK_EQ(cfg.vrate, 1000);
	CHECK_EQ(cfg.carry, 0);
	CHECK(cfg.ecn && !cfg.dual && !cfg.limit_is_set && !cfg.arrival_drop, "csaqm");

	csaqm_config_init(&cfg, true);
	CHECK_EQ(cfg.bandwidth, 0);
	CHECK_EQ(cfg.tupdate_us, 10000);
	CHECK_EQ(cfg.target_us, 20000);
	CHECK_EQ(cfg.target_l_us, 1000);
	CHECK_EQ(cfg.buffer_us, 200000);
	CHECK_EQ(cfg.buffer_l_us, 50000);
	CHECK_EQ(cfg.vrate, 984);
	CHECK_EQ(cfg.vrate_l, 900);
	CHECK_EQ(cfg.carry, 0);
	CHECK(cfg.ecn && cfg.dual && !cfg.limit_is_set && !cfg.arrival_drop, "vdq_csaqm");
}

UNIT_TEST(core_limits_of_the_knobs)
{
	CHECK_EQ(CSAQM_LIMIT_PKTS_MIN, 1);
	CHECK_EQ(CSAQM_LIMIT_PKTS_MAX, 1048576);
	CHECK_EQ(CSAQM_TUPDATE_US_MIN, 100);
	CHECK_EQ(CSAQM_TUPDATE_US_MAX, 4294967);
	CHECK_EQ(CSAQM_TIME_US_MIN, 1);
	CHECK_EQ(CSAQM_TIME_US_MAX, 4294967);
	CHECK_EQ(CSAQM_SHARE_MIN, 1);
	CHECK_EQ(CSAQM_SHARE_ONE, 1000);
	CHECK_EQ(CSAQM_VALUES, 65536);
	CHECK_EQ(CSAQM_RECORDS_PER_ARRIVAL, 2);
	CHECK_EQ(CSAQM_RECORDS_PER_UPDATE, 4096);
}

/* The testbed of the paper: 1 Gbit/s. */
UNIT_TEST(core_parameters_at_a_gigabit_are_the_papers)
{
	struct csaqm_params p = core_defaults(true, 125000000);

	CHECK(p.dual && p.ecn, "dual, ecn");
	CHECK_EQ(p.link.ns_per_byte_q20, 8 << 20);
	CHECK_EQ(p.link.overhead_bytes, 0);
	CHECK_EQ(p.link.mpu_bytes, 0);
	CHECK_EQ(p.link.framing, 0);
	CHECK(!p.link.ingress, "ingress");
	CHECK_EQ(p.tupdate_ns, 10000000);
	CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_L], 6250000);
	CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_C], 25000000);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], 6250000);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 31250000);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_L], 112500);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_C], 2460000);
	CHECK_EQ(p.share[DUALPI2_QUEUE_L], 900);
	CHECK_EQ(p.share[DUALPI2_QUEUE_C], 984);
	CHECK_EQ(p.limit_pkts, 31250000 / 256);
}

UNIT_TEST(core_parameters_of_one_queue_at_a_gigabit)
{
	struct csaqm_params p = core_defaults(false, 125000000);

	CHECK(!p.dual && p.ecn, "dual, ecn");
	CHECK_EQ(p.tupdate_ns, 5000000);
	CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_C], 62500000);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 62500000);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_C], 625000);
	CHECK_EQ(p.share[DUALPI2_QUEUE_C], 1000);
	CHECK_EQ(p.limit_pkts, 62500000 / 256);
}

/* At 8 kbit/s a target is two packets, a queue four; the most is 1 GiB. */
UNIT_TEST(core_parameters_at_the_ends_have_bounds)
{
	struct csaqm_params p = core_defaults(true, 1000);
	u32 i;

	for (i = 0; i < DUALPI2_QUEUES; i++) {
		CHECK_EQ(p.target_bytes[i], 3028);
		CHECK_EQ(p.buffer_bytes[i], 6056);
	}
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], 6056);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 12112);
	CHECK_EQ(p.limit_pkts, 1000);
	p = core_defaults(true, 125000000000ULL);
	for (i = 0; i < DUALPI2_QUEUES; i++)
		CHECK_EQ(p.buffer_bytes[i], 1 << 30);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_L], 112500000);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_C], 1 << 30);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], 1 << 30);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 1ULL << 31);
	CHECK_EQ(p.limit_pkts, 1 << 20);
}

/* floor(rate * time), at least two packets or four, at most 2^30 */
static u64 core_bytes_in(long double rate, u32 us, u64 least)
{
	u64 bytes = floorl(rate * us / 1e6L);

	return bytes < least ? least : bytes > 1ULL << 30 ? 1ULL << 30 : bytes;
}

UNIT_TEST(core_parameters_follow_from_the_knobs)
{
	static const u64 packet = 1514;
	int i;

	for (i = 0; i < 20000; i++) {
		bool dual = unit_rnd() % 2;
		struct csaqm_config cfg = core_config(dual, 0);
		struct csaqm_params p;
		u64 want_c, want_l, records;

		cfg.bandwidth = unit_any(1000, 125000000000ULL);
		cfg.tupdate_us = unit_any(100, 4294967);
		cfg.target_us = unit_any(1, 4294967);
		cfg.target_l_us = unit_any(1, 4294967);
		cfg.buffer_us = unit_any(1, 4294967);
		cfg.buffer_l_us = unit_any(1, 4294967);
		cfg.vrate = unit_any(1, 1000);
		cfg.vrate_l = unit_any(1, 1000);
		cfg.ecn = unit_rnd() % 2;
		cfg.arrival_drop = unit_rnd() % 2;
		cfg.limit_is_set = unit_rnd() % 2;
		cfg.limit_pkts = unit_any(1, 1 << 20);
		p = core_params(&cfg);

		CHECK_EQ(p.dual, dual);
		CHECK_EQ(p.ecn, cfg.ecn);
		CHECK_EQ(p.arrival_drop, cfg.arrival_drop);
		CHECK_EQ(p.tupdate_ns, cfg.tupdate_us * 1000ULL);
		CHECK_EQ(p.link.ns_per_byte_q20, dualpi2_ns_per_byte_q20(cfg.bandwidth));
		CHECK_EQ(p.share[DUALPI2_QUEUE_C], cfg.vrate);
		CHECK_EQ(p.share[DUALPI2_QUEUE_L], cfg.vrate_l);
		want_c = core_bytes_in(cfg.bandwidth, cfg.buffer_us, 4 * packet);
		want_l = core_bytes_in(cfg.bandwidth, cfg.buffer_l_us, 4 * packet);
		CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_C], want_c);
		CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_L], want_l);
		CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], want_l);
		CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], dual ? want_c + want_l : want_c);
		records = p.vbuffer_bytes[DUALPI2_QUEUE_C] / 256;
		records = records < 1000 ? 1000 : records;
		records = records > 1 << 20 ? 1 << 20 : records;
		CHECK_EQ(p.limit_pkts, cfg.limit_is_set ? cfg.limit_pkts : records);

		/* rates are whole bytes per second, hence the tolerance */
		want_c = core_bytes_in(cfg.bandwidth * cfg.vrate / 1000.0L, cfg.target_us, 2 * packet);
		want_l = core_bytes_in(cfg.bandwidth * cfg.vrate_l / 1000.0L, cfg.target_l_us, 2 * packet);
		CHECK_NEAR(p.target_bytes[DUALPI2_QUEUE_C], want_c, 1 + cfg.target_us / 1000000);
		CHECK_NEAR(p.target_bytes[DUALPI2_QUEUE_L], want_l, 1 + cfg.target_l_us / 1000000);
	}
}

UNIT_TEST(core_l4s_virtual_queue_has_l4s_packets_only)
{
	struct csaqm_params dual = core_defaults(true, 125000000);
	struct csaqm_params one = core_defaults(false, 125000000);

	CHECK(csaqm_is_l(&dual, DUALPI2_QUEUE_L), "dual, L");
	CHECK(!csaqm_is_l(&dual, DUALPI2_QUEUE_C), "dual, C");
	CHECK(!csaqm_is_l(&one, DUALPI2_QUEUE_L), "one, L");
	CHECK(!csaqm_is_l(&one, DUALPI2_QUEUE_C), "one, C");
}

UNIT_TEST(core_queue_follows_ecn)
{
	struct csaqm_params dual = core_defaults(true, 125000000);
	struct csaqm_params one = core_defaults(false, 125000000);
	enum dualpi2_ecn ecn;

	for (ecn = DUALPI2_ECN_NOT_ECT; ecn <= DUALPI2_ECN_CE; ecn++)
		CHECK_EQ(csaqm_queue_of_ecn(&one, ecn), DUALPI2_QUEUE_C);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_NOT_ECT), DUALPI2_QUEUE_C);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_ECT0), DUALPI2_QUEUE_C);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_ECT1), DUALPI2_QUEUE_L);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_CE), DUALPI2_QUEUE_L);
}

/* ---- idle ---- */

/* A virtual queue of 4 GB, hence bytes that were served can be counted. */
static void core_begin_long(struct core_run *r, u64 bandwidth, u32 vrate)
{
	struct csaqm_config cfg = core_config(true, bandwidth);
	u32 i, n;

	cfg.vrate = vrate;
	cfg.vrate_l = vrate;
	core_begin(r, &cfg, 2);
	for (i = 0; i < DUALPI2_QUEUES; i++)
		for (n = 0; n < 2; n++)
			csaqm_vq_add(&r->v.vq[i], 1, 2147483647);
}

static u64 core_served(const struct core_run *r, enum dualpi2_queue i)
{
	return 4294967294ULL - core_length(r, i);
}

UNIT_TEST(core_idle_link_serves_by_rate)
{
	struct core_run r;

	core_begin_long(&r, 1000000, 900);
	csaqm_serve(&r.p, &r.v, SEC);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 0);
	CHECK_EQ(r.v.idle_ns, CSAQM_BUSY);
	csaqm_idle(&r.v, SEC);
	CHECK_EQ(r.v.idle_ns, SEC);
	csaqm_serve(&r.p, &r.v, SEC);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 0);
	csaqm_serve(&r.p, &r.v, SEC + SEC / 10);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 90000);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_L), 90000);
	/* that time is over */
	csaqm_serve(&r.p, &r.v, SEC + SEC / 10);
	csaqm_serve(&r.p, &r.v, SEC);
	csaqm_serve(&r.p, &r.v, 0);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 90000);
	csaqm_serve(&r.p, &r.v, 3 * SEC + SEC / 10);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 1890000);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_L), 1890000);
	core_end(&r);
}

/* It begins when the last packet has left the link, which may be later. */
UNIT_TEST(core_idle_begins_when_the_link_is_free)
{
	struct core_run r;

	core_begin_long(&r, 1000000, 1000);
	csaqm_idle(&r.v, 0);
	csaqm_serve(&r.p, &r.v, 5 * MS);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 5000);
	csaqm_idle(&r.v, 10 * MS);
	csaqm_serve(&r.p, &r.v, 9 * MS);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 5000);
	CHECK_EQ(r.v.idle_ns, 10 * MS);
	csaqm_serve(&r.p, &r.v, 11 * MS);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 6000);
	core_end(&r);
}

/* However often one looks: "we continue serving non-empty VQs by C_vi". */
UNIT_TEST(core_idle_in_any_steps_serves_the_same)
{
	int i;

	for (i = 0; i < 300; i++) {
		u64 rate = unit_any(1000, 125000000000ULL);
		u32 vrate = unit_between(1, 1000), n;
		u64 byte_ns = SEC / rate + 1, start = unit_any(1, CORE_NS_MAX);
		u64 most = unit_any(1, 40 * byte_ns), now = start;
		struct core_run r;
		long double want, slack;
		u64 got;

		core_begin_long(&r, rate, vrate);
		csaqm_idle(&r.v, start);
		for (n = 0; n < 1000; n++) {
			now += unit_any(1, most);
			csaqm_serve(&r.p, &r.v, now);
		}
		got = core_served(&r, DUALPI2_QUEUE_C);
		want = (now - start) * (rate / 1e9L) * vrate / 1000;
		/* a step: the lesser of a byte and a nanosecond */
		slack = (rate < SEC ? rate / 1e9L : 1) * vrate;
		/* a byte, and the roundings of the rate */
		CHECK(got <= want * 1.0001L + 1 &&
		      got >= want * 0.9999L - 2 - slack,
		      "%llu B/s * %u, %llu ns: %llu, want %Lf", (ull)rate,
		      vrate, (ull)(now - start), (ull)got, want);
		core_end(&r);
	}
}

/* Two hours of the slowest: a jump of any size is not more than it can be. */
UNIT_TEST(core_idle_of_any_length_is_service)
{
	static const u64 rates[] = { 1000, 125000, 125000000, 125000000000ULL };
	static const u64 gaps[] = {
		1, SEC, 9 * SEC, 11 * SEC, 3600 * SEC, 7199 * SEC, 7200 * SEC,
		1ULL << 44, 1ULL << 53, 1ULL << 63, UINT64_MAX - 1,
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (k = 0; k < ARRAY_SIZE(gaps); k++) {
			u64 seconds = gaps[k] / SEC, got, all = 4294967294ULL;
			long double want = gaps[k] * (rates[i] / 1e9L) / 1000;
			struct core_run r;

			core_begin_long(&r, rates[i], 1);
			csaqm_idle(&r.v, 1);
			csaqm_serve(&r.p, &r.v, 1 + gaps[k]);
			got = core_served(&r, DUALPI2_QUEUE_C);
			if (want > all)
				want = all;
			CHECK(got <= want * 1.0001L + 1,
			      "%llu ns at %llu B/s: %llu, want %Lf",
			      (ull)gaps[k], (ull)rates[i], (ull)got, want);
			if (seconds <= 7200)
				CHECK(got >= want * 0.9999L - 1,
				      "%llu ns at %llu B/s: %llu, want %Lf",
				      (ull)gaps[k], (ull)rates[i], (ull)got,
				      want);
			else
				CHECK(got >= 7200 * (rates[i] / 1001.0L) ||
				      got == all, "%llu ns at %llu B/s: %llu",
				      (ull)gaps[k], (ull)rates[i], (ull)got);
			/* no time counts twice */
			csaqm_serve(&r.p, &r.v, 1 + gaps[k]);
			got = core_served(&r, DUALPI2_QUEUE_C);
			CHECK(got <= want * 1.0001L + 1,
			      "%llu ns at %llu B/s: %llu, want %Lf",
			      (ull)gaps[k], (ull)rates[i], (ull)got, want);
			core_end(&r);
		}
	}
}

/* ---- all of it ---- */

/* Two Classic flows that answer to nothing, each with its function. */
static void core_play(bool dual, u64 bandwidth, const u64 *offered, u64 *forwarded)
{
	static struct { u32 flow, value; } fifo[1 << 16];
	const u32 bytes = 1250;
	struct csaqm_config cfg = core_config(dual, bandwidth);
	u64 now, free_ns = 0, next[2], gap[2], end = 14 * SEC, queued = 0;
	struct ppv_tvf tvf[2];
	struct core_run r;
	u32 head = 0, i;

	cfg.ecn = false;
	core_begin(&r, &cfg, 1 << 16);
	for (i = 0; i < 2; i++) {
		ppv_tvf_builtin(&tvf[i], i + 1);
		gap[i] = SEC * bytes / offered[i];
		next[i] = 1000 + i * 777;
		forwarded[i] = 0;
	}
	csaqm_idle(&r.v, 0);
	for (;;) {
		i = next[0] <= next[1] ? 0 : 1;
		/* Departures before the next arrival. */
		while (queued && free_ns <= next[i]) {
			u32 place = head++ % ARRAY_SIZE(fifo);

			now = free_ns;
			queued -= bytes;
			if (csaqm_is_due(&r.p, &r.v, now)) {
				csaqm_serve(&r.p, &r.v, now);
				csaqm_update(&r.p, &r.v, now);
			}
			if (csaqm_verdict(&r.p, &r.v, DUALPI2_QUEUE_C,
					  fifo[place].value,
					  DUALPI2_ECN_ECT0) == CSAQM_DROP) {
				csaqm_dropped(&r.p, &r.v, DUALPI2_QUEUE_C, bytes);
			} else {
				csaqm_sent(&r.v, bytes);
				free_ns = now + SEC * bytes / bandwidth;
				if (now >= 4 * SEC)
					forwarded[fifo[place].flow] += bytes;
			}
			if (!queued)
				csaqm_idle(&r.v, free_ns);
		}
		now = next[i];
		if (now > end)
			break;
		next[i] += gap[i];
		csaqm_serve(&r.p, &r.v, now);
		if (!queued) {
			r.v.idle_ns = CSAQM_BUSY;
			free_ns = free_ns > now ? free_ns : now;
		}
		if (!csaqm_has_room(&r.p, &r.v, DUALPI2_QUEUE_C, queued, bytes))
			continue;
		fifo[(head + queued / bytes) % ARRAY_SIZE(fifo)].flow = i;
		fifo[(head + queued / bytes) % ARRAY_SIZE(fifo)].value =
			ppv_pick(&tvf[i], offered[i], unit_rnd() >> 32);
		csaqm_arrive(&r.p, &r.v, DUALPI2_QUEUE_C,
			     fifo[(head + queued / bytes) %
				  ARRAY_SIZE(fifo)].value, bytes);
		queued += bytes;
	}
	core_walk(&r.v.vq[DUALPI2_QUEUE_C]);
	core_end(&r);
	for (i = 0; i < 2; i++)
		forwarded[i] = forwarded[i] / 10;
}

/* Gold and Silver get what the policy gives them, whatever they send, and
 * together the rate of the virtual queue.
 */
UNIT_TEST(core_flows_get_what_their_functions_say)
{
	static const struct {
		u32 share;	/* dual if not 1000 */
		u32 link_mbit, gold_mbit, silver_mbit, offered_mbit[2];
	} cases[] = {
		{ 1000, 24, 16, 8, { 60, 60 } },
		{ 1000, 24, 16, 8, { 30, 90 } },
		{ 1000, 40, 30, 10, { 60, 60 } },
		{ 1000, 40, 30, 10, { 90, 40 } },
		{ 1000, 100, 80, 20, { 120, 120 } },
		{ 984, 24, 16, 8, { 60, 60 } },
		{ 984, 40, 30, 10, { 60, 60 } },
		{ 984, 100, 80, 20, { 120, 120 } },
		/* Who asks for less than its share gets it. */
		{ 1000, 40, 5, 35, { 5, 60 } },
		{ 984, 40, 36, 4, { 60, 4 } },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 offered[2] = { cases[i].offered_mbit[0] * 125000ULL,
				   cases[i].offered_mbit[1] * 125000ULL };
		u64 link = cases[i].link_mbit * 125000ULL;
		u64 want = link / 1000 * cases[i].share;
		u64 got[2], gold = cases[i].gold_mbit * 125000ULL;
		u64 silver = cases[i].silver_mbit * 125000ULL;

		core_play(cases[i].share != 1000, link, offered, got);
		CHECK(got[0] + got[1] >= want * 0.995 &&
		      got[0] + got[1] <= want * 1.005,
		      "case %u: %llu together, want %llu", i,
		      (ull)(got[0] + got[1]), (ull)want);
		CHECK_NEAR(got[0], gold, gold / 12);
		CHECK_NEAR(got[1], silver, silver / 12);
	}
}
