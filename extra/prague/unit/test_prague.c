// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague's arithmetic: init, round-trip times, increase, window, rate, bursts.
 */
#include "prague_test.h"

UNIT_TEST(prague_init_takes_what_it_is_given_and_clears_the_rest)
{
	struct prague p;

	memset(&p, 0xa5, sizeof(p));
	prague_init(&p, 12345678901ULL, 10, 7, 77, 33, true);
	CHECK_EQ(p.window_q32, 10 * PRAGUE_PKT);
	CHECK_EQ(p.undo_q32, 0);
	CHECK_EQ(p.round_us, 12345678901ULL);
	CHECK_EQ(p.cut_us, 12345678901ULL);
	CHECK_EQ(p.alpha_q24, 0);
	CHECK_EQ(p.round_delivered, 77);
	CHECK_EQ(p.round_ce, 33);
	CHECK_EQ(p.seen_ce, 33);
	CHECK_EQ(p.rounds, 0);
	CHECK_EQ(p.rtt_us8, 56);
	CHECK_EQ(prague_rtt_us(&p), 7);
	CHECK(p.slow_start && !p.undo_slow_start && !p.in_loss && !p.saw_ce, "flags");
	prague_init(&p, 0, 10, 7, 0, 0, false);
	CHECK(!p.slow_start, "slow start");
}

UNIT_TEST(prague_init_of_nonsense_is_cut_to_the_range)
{
	struct prague p;

	prague_init(&p, 0, 0, 0, 0, 0, true);
	CHECK_EQ(p.window_q32, PRAGUE_PKT);
	prague_init(&p, 0, U32_MAX, U32_MAX, 0, 0, true);
	CHECK_EQ(p.window_q32, PRAGUE_MOST_CWND * PRAGUE_PKT);
	CHECK_EQ(prague_rtt_us(&p), PRAGUE_RTT_MOST_US);
	CHECK_EQ(p.rtt_us8, PRAGUE_RTT_MOST_US * 8);
}

UNIT_TEST(prague_rtt_before_the_first_sample_is_a_millisecond)
{
	struct prague p;

	prague_init(&p, 0, 10, 0, 0, 0, true);
	CHECK_EQ(prague_rtt_us(&p), 1000);
	prague_add_rtt(&p, &prague_defaults, 0);
	prague_add_rtt(&p, &prague_defaults, -1);
	prague_add_rtt(&p, &prague_defaults, INT32_MIN);
	CHECK_EQ(p.rtt_us8, 0);
	CHECK_EQ(prague_rtt_us(&p), 1000);
	/* It is never 0, whatever is in there. */
	p.rtt_us8 = 7;
	CHECK_EQ(prague_rtt_us(&p), 1);
}

UNIT_TEST(prague_rtt_first_sample_is_taken_whole)
{
	static const s32 samples[] = { 1, 2, 999, 25000, 2000000, PRAGUE_RTT_MOST_US };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(samples); i++) {
		struct prague p;

		prague_init(&p, 0, 10, 0, 0, 0, true);
		prague_add_rtt(&p, &prague_defaults, samples[i]);
		CHECK_EQ(prague_rtt_us(&p), (u32)samples[i]);
		CHECK_EQ(p.rtt_us8, 8 * (u32)samples[i]);
	}
}

UNIT_TEST(prague_rtt_later_samples_count_an_eighth)
{
	struct prague p = prague_state(PRAGUE_PKT, 8000);
	long double ref = 8000;
	int i;

	prague_add_rtt(&p, &prague_defaults, 16000);
	CHECK_EQ(p.rtt_us8, 8 * 9000);
	prague_add_rtt(&p, &prague_defaults, 1);
	CHECK_EQ(p.rtt_us8, 8 * 9000 - 9000 + 1);
	p = prague_state(PRAGUE_PKT, 8000);
	for (i = 0; i < 10000; i++) {
		u32 sample = unit_any(1, PRAGUE_RTT_MOST_US);

		ref += (sample - ref) / 8;
		prague_add_rtt(&p, &prague_defaults, sample);
		CHECK(fabsl(prague_rtt_us(&p) - ref) <= 2, "%u us, not %Lf",
		      prague_rtt_us(&p), ref);
	}
	for (i = 0; i < 200; i++)
		prague_add_rtt(&p, &prague_defaults, 300);
	CHECK_NEAR(prague_rtt_us(&p), 300, 1);
}

UNIT_TEST(prague_rtt_nonsense_is_left_out_or_cut)
{
	struct prague p = prague_state(PRAGUE_PKT, 8000);
	int i;

	prague_add_rtt(&p, &prague_defaults, 0);
	prague_add_rtt(&p, &prague_defaults, -1);
	prague_add_rtt(&p, &prague_defaults, INT32_MIN);
	CHECK_EQ(p.rtt_us8, 64000);
	prague_add_rtt(&p, &prague_defaults, S32_MAX);
	CHECK_EQ(p.rtt_us8, 64000 - 8000 + PRAGUE_RTT_MOST_US);
	for (i = 0; i < 1000; i++)
		prague_add_rtt(&p, &prague_defaults, S32_MAX);
	CHECK_NEAR(prague_rtt_us(&p), PRAGUE_RTT_MOST_US, 1);
	for (i = 0; i < 1000; i++)
		prague_add_rtt(&p, &prague_defaults, 1);
	CHECK_EQ(prague_rtt_us(&p), 1);
	prague_init(&p, 0, 10, 0, 0, 0, true);
	prague_add_rtt(&p, &prague_defaults, S32_MAX);
	CHECK_EQ(prague_rtt_us(&p), PRAGUE_RTT_MOST_US);
}

UNIT_TEST(prague_independent_after_the_transition_below_the_virtual_rtt_only)
{
	struct prague_params params = prague_defaults;
	struct prague p = prague_state(PRAGUE_PKT, 24999);

	CHECK(prague_is_rtt_independent(&p, &params), "it is not");
	CHECK_EQ(prague_interval_us(&p, &params), 25000);
	p.rounds = 3;
	CHECK(!prague_is_rtt_independent(&p, &params), "too early");
	CHECK_EQ(prague_interval_us(&p, &params), 24999);
	p.rounds = 4;
	p.slow_start = true;
	CHECK(!prague_is_rtt_independent(&p, &params), "in slow start");
	p = prague_state(PRAGUE_PKT, 25000);
	CHECK(!prague_is_rtt_independent(&p, &params), "at the virtual RTT");
	p = prague_state(PRAGUE_PKT, 80000);
	CHECK(!prague_is_rtt_independent(&p, &params), "above it");
	CHECK_EQ(prague_interval_us(&p, &params), 80000);
	p = prague_state(PRAGUE_PKT, 1);
	params.rtt_virt_us = 0;
	CHECK(!prague_is_rtt_independent(&p, &params), "switched off");
	CHECK_EQ(prague_interval_us(&p, &params), 1);
}

UNIT_TEST(prague_least_window_is_the_least_rate_in_an_rtt)
{
	struct prague_params params = prague_defaults;
	struct prague p = prague_state(PRAGUE_PKT, 20000);
	int i;

	/* 12500 bytes/s in 20 ms: 250 bytes of 1448 */
	CHECK_NEAR(prague_least_window_q32(&p, &params, PRAGUE_MSS),
		   250 * PRAGUE_PKT / PRAGUE_MSS, 1 << 16);
	for (i = 0; i < 20000; i++) {
		u32 mss = unit_any(1, 65535);
		long double ref;
		u64 got;

		p.rtt_us8 = 8 * (u32)unit_any(1, PRAGUE_RTT_MOST_US);
		params.least_rate_bytes_ps = unit_any(0, U32_MAX);
		ref = (long double)params.least_rate_bytes_ps * (p.rtt_us8 / 8) / 1e6L / mss;
		ref = fminl(fmaxl(ref, 1 / 256.0L), 2);
		got = prague_least_window_q32(&p, &params, mss);
		CHECK(fabsl(got / (long double)PRAGUE_PKT - ref) <= 1.1L / 65536,
		      "%llu, not %Lf packets", (ull)got, ref);
		CHECK(got >= PRAGUE_LEAST && got <= 2 * PRAGUE_PKT, "%llu", (ull)got);
	}
	/* no division by a size that is not known yet */
	params.least_rate_bytes_ps = 1;
	CHECK_EQ(prague_least_window_q32(&p, &params, 0),
		 prague_least_window_q32(&p, &params, 1));
}

UNIT_TEST(prague_window_stays_between_least_rate_and_clamp)
{
	struct prague p = prague_state(PRAGUE_PKT / 3, 20000);
	struct prague_ack ack;
	u64 least = prague_least_window_q32(&p, &prague_defaults, PRAGUE_MSS);
	int i;

	p.alpha_q24 = 1 << 24;
	for (i = 0; i < 30; i++) {
		ack = prague_ack_of(&p, 1, 1, 25000);
		prague_take(&p, &ack);
	}
	CHECK_EQ(p.window_q32, least);
	p = prague_state(100 * PRAGUE_PKT, 20000);
	ack = prague_ack_of(&p, 1, 0, 0);
	prague_on_ack(&p, &prague_defaults, &ack, 100, 100, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	p.slow_start = true;
	ack = prague_ack_of(&p, 20, 0, 0);
	prague_on_ack(&p, &prague_defaults, &ack, 100, 110, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 110 * PRAGUE_PKT);
	/* A clamp below two packets is taken for two. */
	for (i = 3; i >= 0; i--) {
		prague_on_ack(&p, &prague_defaults, &ack, 100, i, 65535);
		CHECK_EQ(p.window_q32, (i == 3 ? 3 : 2) * PRAGUE_PKT);
	}
	p = prague_state(PRAGUE_MOST_CWND * PRAGUE_PKT, 20000);
	p.slow_start = true;
	ack = prague_ack_of(&p, 20, 0, 0);
	prague_on_ack(&p, &prague_defaults, &ack, U32_MAX, U32_MAX, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, PRAGUE_MOST_CWND * PRAGUE_PKT);
}

/*
 * Increase.
 */

/* ... where the window is taken for step * R / R_virt, or the step, at least. */
UNIT_TEST(prague_increase_is_acked_over_window)
{
	struct prague_params params = prague_defaults;
	int i;

	for (i = 0; i < 50000; i++) {
		u64 window = unit_any(PRAGUE_LEAST, PRAGUE_MOST_CWND * PRAGUE_PKT);
		u32 acked = unit_any(1, PRAGUE_MOST_ACKED - 1);
		u32 rtt_us = unit_any(1, PRAGUE_RTT_MOST_US);
		u32 mss = i % 4 ? unit_any(1, 65535) : 0;
		struct prague p = prague_state(window, rtt_us);
		long double step = fminl(1448.0L / mss, 8), ratio = 1, ai, over, ref, err;

		params.rtt_virt_us = unit_any(0, 100000);
		if (rtt_us < params.rtt_virt_us)
			ratio = (long double)rtt_us / params.rtt_virt_us;
		ai = step * ratio * ratio;
		over = fmaxl(window, step * ratio * PRAGUE_PKT);
		ref = acked * ai / over * PRAGUE_PKT * PRAGUE_PKT;
		/* rounded: the divisor to 2^-13, the step to 2^-24, ratio and products to 2^-32 */
		err = 1 + ref * (524288.0L / over + 2 / (step * (1 << 24)) + 4 / (ai * PRAGUE_PKT));
		prague_increase(&p, &params, acked, mss);
		CHECK(fabsl((p.window_q32 - window) - ref) <= err,
		      "by %llu, not %Lf +- %Lf: window %llu, %u acked, %u of %u us, mss %u",
		      (ull)(p.window_q32 - window), ref, err, (ull)window, acked, rtt_us,
		      params.rtt_virt_us, mss);
		CHECK(p.window_q32 - window <= acked * PRAGUE_PKT, "more than slow start");
	}
}

/* In a round the window grows by 1448 bytes, in packets of 181 bytes and more. */
UNIT_TEST(prague_increase_in_bytes_is_that_of_any_mss)
{
	static const u32 sizes[] = { 181, 362, 536, 724, 1448, 8948, 65535 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct prague p = prague_state(1000 * PRAGUE_PKT, 50000);

		prague_increase(&p, &prague_defaults, 1000, sizes[i]);
		CHECK_NEAR((p.window_q32 - 1000 * PRAGUE_PKT) * sizes[i], 1448 * PRAGUE_PKT,
			   1448 * PRAGUE_PKT / 10000);
		p = prague_state(1000 * PRAGUE_PKT, 5000);
		prague_increase(&p, &prague_defaults, 1000, sizes[i]);
		CHECK_NEAR((p.window_q32 - 1000 * PRAGUE_PKT) * sizes[i] * 25, 1448 * PRAGUE_PKT,
			   1448 * PRAGUE_PKT / 1000);
	}
	/* smaller ones, and one that is not known yet, are taken for 181 bytes */
	for (i = 0; i <= 181; i += 60) {
		struct prague p = prague_state(1000 * PRAGUE_PKT, 50000);

		prague_increase(&p, &prague_defaults, 1000, i);
		CHECK_NEAR(p.window_q32, 1008 * PRAGUE_PKT, PRAGUE_PKT / 1000);
	}
}

UNIT_TEST(prague_increase_of_a_tiny_window_is_that_of_slow_start)
{
	static const struct {
		u32 rtt_us;
		u64 window_q32;
		u64 more_q32;
	} cases[] = {
		/* a packet for a packet below one of window */
		{ 50000, PRAGUE_LEAST, PRAGUE_PKT },
		{ 50000, PRAGUE_PKT / 4, PRAGUE_PKT },
		{ 50000, PRAGUE_PKT, PRAGUE_PKT },
		{ 50000, 2 * PRAGUE_PKT, PRAGUE_PKT / 2 },
		{ 25000, PRAGUE_PKT / 4, PRAGUE_PKT },
		/* (R / R_virt)^2 is 1 / 16, and R / R_virt 1 / 4 */
		{ 6250, PRAGUE_LEAST, PRAGUE_PKT / 4 },
		{ 6250, PRAGUE_PKT / 8, PRAGUE_PKT / 4 },
		{ 6250, PRAGUE_PKT / 4, PRAGUE_PKT / 4 },
		{ 6250, PRAGUE_PKT / 2, PRAGUE_PKT / 8 },
		{ 6250, PRAGUE_PKT, PRAGUE_PKT / 16 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prague p = prague_state(cases[i].window_q32, cases[i].rtt_us);

		prague_increase(&p, &prague_defaults, 1, PRAGUE_MSS);
		CHECK_EQ(p.window_q32, cases[i].window_q32 + cases[i].more_q32);
		/* as many times as packets were acknowledged */
		p = prague_state(cases[i].window_q32, cases[i].rtt_us);
		prague_increase(&p, &prague_defaults, 6, PRAGUE_MSS);
		CHECK_EQ(p.window_q32, cases[i].window_q32 + 6 * cases[i].more_q32);
	}
}

/* W packets of a window W, each acknowledged alone, @rounds times. */
static u64 prague_grown(struct prague p, const struct prague_params *params, u32 rounds)
{
	u64 begin = p.window_q32;

	while (rounds--) {
		u32 i, pkts = p.window_q32 >> 32;

		for (i = 0; i < pkts; i++) {
			struct prague_ack ack = prague_ack_of(&p, 1, 0, 0);

			prague_on_ack(&p, params, &ack, PRAGUE_MOST_CWND, PRAGUE_MOST_CWND,
				      PRAGUE_MSS);
		}
	}
	return p.window_q32 - begin;
}

UNIT_TEST(prague_avoidance_adds_a_packet_per_rtt)
{
	static const u32 windows[] = { 100, 1000, 10000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		u64 window = windows[i] * PRAGUE_PKT;

		CHECK_NEAR(prague_grown(prague_state(window, 25000), &prague_defaults, 1),
			   PRAGUE_PKT, PRAGUE_PKT / 100);
		CHECK_NEAR(prague_grown(prague_state(window, 200000), &prague_defaults, 10),
			   10 * PRAGUE_PKT, PRAGUE_PKT);
	}
}

/* In 25 ms the rate, W / R, grows by a packet per 25 ms, whatever R is. */
UNIT_TEST(prague_independent_rate_grows_alike_at_any_rtt)
{
	static const u32 rtts_us[] = { 250, 1000, 2500, 5000, 12500 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rtts_us); i++) {
		u32 ratio = 25000 / rtts_us[i];
		u64 grown = prague_grown(prague_state(1000 * PRAGUE_PKT, rtts_us[i]),
					 &prague_defaults, ratio);

		CHECK_NEAR(grown * ratio, PRAGUE_PKT, PRAGUE_PKT / 100);
		grown = prague_grown(prague_state(1000 * PRAGUE_PKT, rtts_us[i]),
				     &prague_defaults, 1);
		CHECK_NEAR(grown * ratio * ratio, PRAGUE_PKT, PRAGUE_PKT / 100);
	}
}

UNIT_TEST(prague_slow_start_doubles_per_rtt)
{
	struct prague p;

	prague_init(&p, 0, 10, 20000, 0, 0, true);
	CHECK_EQ(prague_grown(p, &prague_defaults, 1), 10 * PRAGUE_PKT);
	CHECK_EQ(prague_grown(p, &prague_defaults, 4), 150 * PRAGUE_PKT);
}

UNIT_TEST(prague_increase_is_for_unmarked_packets_only)
{
	/* Marks within the interval of the last cut decrease nothing. */
	struct prague p = prague_state(100 * PRAGUE_PKT, 50000);

	CHECK_NEAR(prague_window_after(p, 1, 0, 10) - p.window_q32, PRAGUE_PKT / 100, 1);
	CHECK_NEAR(prague_window_after(p, 10, 0, 10) - p.window_q32, PRAGUE_PKT / 10, 1);
	CHECK_NEAR(prague_window_after(p, 10, 4, 10) - p.window_q32, PRAGUE_PKT * 6 / 100, 1);
	CHECK_EQ(prague_window_after(p, 10, 10, 10), p.window_q32);
	/* The peer counts marked ACKs, too. */
	CHECK_EQ(prague_window_after(p, 10, 11, 10), p.window_q32);
	CHECK_EQ(prague_window_after(p, 0, 0, 10), p.window_q32);
	CHECK_EQ(prague_window_after(p, 0, 1, 10), p.window_q32);
	/* A nonsense of a count counts as that of the largest ACK. */
	CHECK_EQ(prague_window_after(p, U32_MAX, 0, 10),
		 prague_window_after(p, PRAGUE_MOST_ACKED - 1, 0, 10));
	CHECK(prague_window_after(p, PRAGUE_MOST_ACKED - 2, 0, 10) <
	      prague_window_after(p, PRAGUE_MOST_ACKED - 1, 0, 10), "a large ACK is cut");
}

UNIT_TEST(prague_increase_is_none_in_loss_or_when_the_sender_had_less)
{
	int slow_start;

	for (slow_start = 0; slow_start <= 1; slow_start++) {
		struct prague p = prague_state(100 * PRAGUE_PKT, 50000);
		struct prague_ack ack = prague_ack_of(&p, 10, 0, 10);

		p.slow_start = slow_start;
		ack.limited = false;
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
		ack.limited = true;
		p.in_loss = true;
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
		p.in_loss = false;
		prague_take(&p, &ack);
		CHECK(p.window_q32 > 100 * PRAGUE_PKT, "no increase");
	}
}

UNIT_TEST(prague_ack_takes_its_rtt)
{
	struct prague p = prague_state(PRAGUE_PKT, 8000);
	struct prague_ack ack = prague_ack_of(&p, 1, 0, 0);

	ack.rtt_us = 16000;
	prague_take(&p, &ack);
	CHECK_EQ(prague_rtt_us(&p), 9000);
}

/*
 * Decrease by marks.
 */

/*
 * What the stack is told.
 */

UNIT_TEST(prague_window_cwnd_is_rounded_up_and_one_more)
{
	static const struct {
		u64 window_q32;
		u32 cwnd;
	} cases[] = {
		{ 1, 2 }, { PRAGUE_LEAST, 2 }, { PRAGUE_PKT, 2 }, { PRAGUE_PKT + 1, 3 },
		{ 2 * PRAGUE_PKT - 1, 3 }, { 2 * PRAGUE_PKT, 3 }, { 2 * PRAGUE_PKT + 1, 4 },
		{ PRAGUE_MOST_CWND * PRAGUE_PKT - 1, PRAGUE_MOST_CWND + 1 },
		{ PRAGUE_MOST_CWND * PRAGUE_PKT, PRAGUE_MOST_CWND + 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prague p = prague_state(cases[i].window_q32, 20000);

		CHECK_EQ(prague_window_cwnd(&p), cases[i].cwnd);
	}
}

UNIT_TEST(prague_next_cwnd_steps_towards_the_window)
{
	static const struct {
		u32 window, cwnd, acked, next;
	} cases[] = {
		/* down, by half of what was acknowledged, rounded up */
		{ 10, 20, 0, 20 }, { 10, 20, 1, 19 }, { 10, 20, 2, 19 }, { 10, 20, 3, 18 },
		{ 10, 20, 8, 16 }, { 10, 20, 20, 10 }, { 10, 20, 30, 10 }, { 10, 11, 1, 10 },
		{ 2, 5, U32_MAX, 2 },
		{ 10, 1U << 30, U32_MAX, (1U << 30) - 16384 },
		{ 10, U32_MAX, 2, U32_MAX - 1 },
		/* there */
		{ 10, 10, 0, 10 }, { 10, 10, 5, 10 },
		/* up, by all of it, one at least */
		{ 10, 5, 0, 6 }, { 10, 5, 1, 6 }, { 10, 5, 2, 7 }, { 10, 5, 4, 9 },
		{ 10, 5, 5, 10 }, { 10, 5, 6, 10 }, { 10, 5, U32_MAX, 10 },
		{ PRAGUE_MOST_CWND, 5, U32_MAX, 5 + 32768 },
		{ 2, 1, 1, 2 }, { 2, 1, 0, 2 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prague p = prague_state((cases[i].window - 1) * PRAGUE_PKT, 20000);

		CHECK_EQ(prague_next_cwnd(&p, cases[i].cwnd, cases[i].acked), cases[i].next);
	}
}

UNIT_TEST(prague_rate_is_window_over_rtt)
{
	static const u32 sizes[] = { 1, 88, 536, 1448, 8948, 65535 };
	int i;

	for (i = 0; i < 50000; i++) {
		struct prague p = prague_state(unit_any(PRAGUE_LEAST,
							PRAGUE_MOST_CWND * PRAGUE_PKT), 1);
		u32 mss = sizes[unit_between(0, ARRAY_SIZE(sizes) - 1)];
		u32 cwnd = prague_window_cwnd(&p);
		long double ref, err;
		u64 got;

		p.rtt_us8 = 8 * (u32)unit_any(1, PRAGUE_RTT_MOST_US);
		p.slow_start = unit_rnd() & 1;
		ref = p.window_q32 / (long double)PRAGUE_PKT;
		if (p.slow_start)
			ref *= 2;
		if (i % 3 == 0) {
			/* on the way back from a timeout: twice that, until it is the window's */
			cwnd = unit_any(1, cwnd);
			ref = fminl(ref, 2.0L * cwnd);
		}
		/* Bytes are rounded to 2^-8, and the factor of large ones is 3906, not 3906.25. */
		ref = ref * mss * 8e6L / p.rtt_us8;
		err = 1 + 1e6L / 256 * 8 / p.rtt_us8 + ref / 15000;
		ref = fmaxl(ref, 1);
		got = prague_rate_bytes_ps(&p, cwnd, mss);
		CHECK(fabsl(got - ref) <= err, "%llu, not %Lf +- %Lf", (ull)got, ref, err);
	}
}

UNIT_TEST(prague_rate_has_known_values)
{
	struct prague p = prague_state(20 * PRAGUE_PKT, 20000);

	CHECK_EQ(prague_rate_bytes_ps(&p, 21, 1500), 1500000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 30, 1500), 1500000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 20, 1500), 1500000);
	/* less than the window is allowed */
	CHECK_EQ(prague_rate_bytes_ps(&p, 19, 1500), 1500000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 11, 1500), 1500000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 10, 1500), 1500000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 9, 1500), 1350000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 1, 1500), 150000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 21, 88), 88000);
	p.slow_start = true;
	CHECK_EQ(prague_rate_bytes_ps(&p, 21, 1500), 3000000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 20, 1500), 3000000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 19, 1500), 2850000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 10, 1500), 1500000);
	/* fractions of a packet, which no cwnd tells */
	p = prague_state(PRAGUE_PKT / 4, 10000);
	CHECK_EQ(prague_rate_bytes_ps(&p, 2, 1448), 36200);
	CHECK_EQ(prague_rate_bytes_ps(&p, 1, 1448), 36200);
	/* never 0 */
	p = prague_state(PRAGUE_LEAST, PRAGUE_RTT_MOST_US);
	CHECK_EQ(prague_rate_bytes_ps(&p, 2, 1), 1);
	CHECK_EQ(prague_rate_bytes_ps(&p, 2, 0), 1);
	/* most there is: 2^25 packets of 2^16 bytes in 1 us */
	p = prague_state(PRAGUE_MOST_CWND * PRAGUE_PKT, 1);
	p.slow_start = true;
	CHECK_EQ(prague_rate_bytes_ps(&p, PRAGUE_MOST_CWND + 1, 65536), (1ULL << 49) * 3906);
}

/* Where the second way of computing it takes over there is no step. */
UNIT_TEST(prague_rate_has_no_step)
{
	struct prague p = prague_state(0, 1);
	u64 below, above;

	/* 2^44 / 2^8 bytes in packets of 2^12 */
	p.window_q32 = (1ULL << 56) - 1;
	below = prague_rate_bytes_ps(&p, U32_MAX, 4096);
	p.window_q32++;
	above = prague_rate_bytes_ps(&p, U32_MAX, 4096);
	CHECK_EQ(above, (1ULL << 44) * 3906);
	CHECK(below >= above && below - above < below / 10000, "%llu, %llu",
	      (ull)below, (ull)above);
}

UNIT_TEST(prague_burst_is_a_quarter_of_a_millisecond)
{
	static const struct {
		u64 rate_bytes_ps;
		u32 mss, pkts;
	} cases[] = {
		{ 1, 1448, 1 }, { 125000, 1448, 1 },
		{ 2 * 1448 * 4096 - 1, 1448, 1 }, { 2 * 1448 * 4096, 1448, 2 },
		{ 125000000, 1448, 21 }, { 125000000, 88, 346 },
		{ 65534ULL * 1448 * 4096, 1448, 65534 }, { 65536ULL * 1448 * 4096, 1448, 65535 },
		{ UINT64_MAX, 1, 65535 }, { UINT64_MAX, U32_MAX, 65535 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_EQ(prague_burst_pkts(cases[i].rate_bytes_ps, cases[i].mss), cases[i].pkts);
}
