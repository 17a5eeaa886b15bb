// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague's arithmetic, extra/prague/prague.h: its steps one by one, and
 * senders on a marker of a fixed probability, in virtual time, which settle where
 * theory says.
 */
#include "prague.h"

#define PRAGUE_ONE_Q20	(1U << 20)	/* share 1 */

#define PRAGUE_MSS	1448
#define PRAGUE_PKT	PRAGUE_ONE_Q32		/* one packet, q32 */
#define PRAGUE_LEAST	(1ULL << 24)		/* least window there is, q32 */

static const struct prague_params prague_defaults = {
	.rtt_virt_us = PRAGUE_RTT_VIRT_US,
	.transition_rounds = 500,
	.least_rate_bytes_ps = 12500,
};

/*
 * In avoidance at 1000 s, with marks seen, just cut; by default independent of the RTT where that
 * is short.
 */
static struct prague prague_state(u64 window_q32, u32 rtt_us)
{
	struct prague p;

	memset(&p, 0xa5, sizeof(p));
	prague_init(&p, 1000000000, 1, rtt_us, 0, 0, false);
	p.window_q32 = window_q32;
	p.saw_ce = true;
	p.rounds = prague_defaults.transition_rounds;
	return p;
}

/* An ACK of @acked packets, @ce of them marked, @later_us after the last cut. */
static struct prague_ack prague_ack_of(const struct prague *p, u32 acked, u32 ce,
				       u64 later_us)
{
	return (struct prague_ack) {
		.now_us = p->cut_us + later_us,
		.delivered = p->round_delivered + acked,
		.ce = p->seen_ce + ce,
		.acked = acked,
		.limited = true,
	};
}

static bool prague_take(struct prague *p, const struct prague_ack *ack)
{
	return prague_on_ack(p, &prague_defaults, ack, PRAGUE_MOST_CWND, PRAGUE_MOST_CWND,
			     PRAGUE_MSS);
}

/* The window after an ACK. */
static u64 prague_window_after(struct prague p, u32 acked, u32 ce, u64 later_us)
{
	struct prague_ack ack = prague_ack_of(&p, acked, ce, later_us);

	prague_take(&p, &ack);
	return p.window_q32;
}

/*
 * Begin, round-trip time, limits.
 */

static void prague_init_takes_what_it_is_given_and_clears_the_rest(void)
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

static void prague_init_of_nonsense_is_cut_to_the_range(void)
{
	struct prague p;

	prague_init(&p, 0, 0, 0, 0, 0, true);
	CHECK_EQ(p.window_q32, PRAGUE_PKT);
	prague_init(&p, 0, U32_MAX, U32_MAX, 0, 0, true);
	CHECK_EQ(p.window_q32, PRAGUE_MOST_CWND * PRAGUE_PKT);
	CHECK_EQ(prague_rtt_us(&p), PRAGUE_RTT_MOST_US);
	CHECK_EQ(p.rtt_us8, PRAGUE_RTT_MOST_US * 8);
}

static void prague_rtt_before_the_first_sample_is_a_millisecond(void)
{
	struct prague p;

	prague_init(&p, 0, 10, 0, 0, 0, true);
	CHECK_EQ(prague_rtt_us(&p), 1000);
	prague_add_rtt(&p, 0);
	prague_add_rtt(&p, -1);
	prague_add_rtt(&p, INT32_MIN);
	CHECK_EQ(p.rtt_us8, 0);
	CHECK_EQ(prague_rtt_us(&p), 1000);
	/* It is never 0, whatever is in there. */
	p.rtt_us8 = 7;
	CHECK_EQ(prague_rtt_us(&p), 1);
}

static void prague_rtt_first_sample_is_taken_whole(void)
{
	static const s32 samples[] = { 1, 2, 999, 25000, 2000000, PRAGUE_RTT_MOST_US };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(samples); i++) {
		struct prague p;

		prague_init(&p, 0, 10, 0, 0, 0, true);
		prague_add_rtt(&p, samples[i]);
		CHECK_EQ(prague_rtt_us(&p), (u32)samples[i]);
		CHECK_EQ(p.rtt_us8, 8 * (u32)samples[i]);
	}
}

static void prague_rtt_later_samples_count_an_eighth(void)
{
	struct prague p = prague_state(PRAGUE_PKT, 8000);
	long double ref = 8000;
	int i;

	prague_add_rtt(&p, 16000);
	CHECK_EQ(p.rtt_us8, 8 * 9000);
	prague_add_rtt(&p, 1);
	CHECK_EQ(p.rtt_us8, 8 * 9000 - 9000 + 1);
	p = prague_state(PRAGUE_PKT, 8000);
	for (i = 0; i < 10000; i++) {
		u32 sample = unit_any(1, PRAGUE_RTT_MOST_US);

		ref += (sample - ref) / 8;
		prague_add_rtt(&p, sample);
		CHECK(fabsl(prague_rtt_us(&p) - ref) <= 2, "%u us, not %Lf",
		      prague_rtt_us(&p), ref);
	}
	for (i = 0; i < 200; i++)
		prague_add_rtt(&p, 300);
	CHECK_NEAR(prague_rtt_us(&p), 300, 1);
}

static void prague_rtt_nonsense_is_left_out_or_cut(void)
{
	struct prague p = prague_state(PRAGUE_PKT, 8000);
	int i;

	prague_add_rtt(&p, 0);
	prague_add_rtt(&p, -1);
	prague_add_rtt(&p, INT32_MIN);
	CHECK_EQ(p.rtt_us8, 64000);
	prague_add_rtt(&p, S32_MAX);
	CHECK_EQ(p.rtt_us8, 64000 - 8000 + PRAGUE_RTT_MOST_US);
	for (i = 0; i < 1000; i++)
		prague_add_rtt(&p, S32_MAX);
	CHECK_NEAR(prague_rtt_us(&p), PRAGUE_RTT_MOST_US, 1);
	for (i = 0; i < 1000; i++)
		prague_add_rtt(&p, 1);
	CHECK_EQ(prague_rtt_us(&p), 1);
	prague_init(&p, 0, 10, 0, 0, 0, true);
	prague_add_rtt(&p, S32_MAX);
	CHECK_EQ(prague_rtt_us(&p), PRAGUE_RTT_MOST_US);
}

static void prague_independent_after_the_transition_below_the_virtual_rtt_only(void)
{
	struct prague_params params = prague_defaults;
	struct prague p = prague_state(PRAGUE_PKT, 24999);

	CHECK(prague_is_rtt_independent(&p, &params), "it is not");
	CHECK_EQ(prague_interval_us(&p, &params), 25000);
	p.rounds = 499;
	CHECK(!prague_is_rtt_independent(&p, &params), "too early");
	CHECK_EQ(prague_interval_us(&p, &params), 24999);
	p.rounds = 500;
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

static void prague_least_window_is_the_least_rate_in_an_rtt(void)
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

static void prague_window_stays_between_least_rate_and_clamp(void)
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

/* ... where the window is taken for R / R_virt, or 1, at least. */
static void prague_increase_is_acked_over_window(void)
{
	struct prague_params params = prague_defaults;
	int i;

	for (i = 0; i < 50000; i++) {
		u64 window = unit_any(PRAGUE_LEAST, PRAGUE_MOST_CWND * PRAGUE_PKT);
		u32 acked = unit_any(1, PRAGUE_MOST_ACKED - 1);
		u32 rtt_us = unit_any(1, PRAGUE_RTT_MOST_US);
		struct prague p = prague_state(window, rtt_us);
		long double ratio = 1, ai, over, ref, err;

		params.rtt_virt_us = unit_any(0, 100000);
		if (rtt_us < params.rtt_virt_us)
			ratio = (long double)rtt_us / params.rtt_virt_us;
		ai = ratio * ratio;
		over = fmaxl(window, ratio * PRAGUE_PKT);
		ref = acked * ai / over * PRAGUE_PKT * PRAGUE_PKT;
		/* rounded: the divisor to 2^-16, the ratio and its square to 2^-32 each */
		err = 1 + ref * (65536.0L / (over - 65536) + 3 / (ai * PRAGUE_PKT));
		prague_increase(&p, &params, acked);
		CHECK(fabsl((p.window_q32 - window) - ref) <= err,
		      "by %llu, not %Lf +- %Lf: window %llu, %u acked, %u of %u us",
		      (ull)(p.window_q32 - window), ref, err, (ull)window, acked, rtt_us,
		      params.rtt_virt_us);
		CHECK(p.window_q32 - window <= acked * PRAGUE_PKT, "more than slow start");
	}
}

static void prague_increase_of_a_tiny_window_is_that_of_slow_start(void)
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

		prague_increase(&p, &prague_defaults, 1);
		CHECK_EQ(p.window_q32, cases[i].window_q32 + cases[i].more_q32);
		/* as many times as packets were acknowledged */
		p = prague_state(cases[i].window_q32, cases[i].rtt_us);
		prague_increase(&p, &prague_defaults, 6);
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

static void prague_avoidance_adds_a_packet_per_rtt(void)
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
static void prague_independent_rate_grows_alike_at_any_rtt(void)
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

static void prague_slow_start_doubles_per_rtt(void)
{
	struct prague p;

	prague_init(&p, 0, 10, 20000, 0, 0, true);
	CHECK_EQ(prague_grown(p, &prague_defaults, 1), 10 * PRAGUE_PKT);
	CHECK_EQ(prague_grown(p, &prague_defaults, 4), 150 * PRAGUE_PKT);
}

static void prague_increase_is_for_unmarked_packets_only(void)
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

static void prague_increase_is_none_in_loss_or_when_the_sender_had_less(void)
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

static void prague_ack_takes_its_rtt(void)
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

/* @window after a decrease by half of @alpha */
static long double prague_cut_ref(u64 window, u32 alpha_q24)
{
	return window * (1 - (alpha_q24 >> 5) / 1048576.0L);
}

static void prague_first_mark_halves_and_ends_slow_start(void)
{
	struct prague p;
	struct prague_ack ack;

	prague_init(&p, 500, 64, 20000, 0, 0, true);
	/* at once, even within an interval of the begin */
	ack = prague_ack_of(&p, 1, 1, 1);
	prague_take(&p, &ack);
	CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
	CHECK(!p.slow_start && p.saw_ce, "flags");
	CHECK_EQ(p.cut_us, 501);
	CHECK_EQ(p.seen_ce, 1);

	/* The unmarked rest of the same ACK is avoidance's already. */
	prague_init(&p, 500, 64, 20000, 0, 0, true);
	ack = prague_ack_of(&p, 33, 1, 1);
	prague_take(&p, &ack);
	CHECK_NEAR(p.window_q32, 33 * PRAGUE_PKT, 1);

	/* after slow start was ended by a loss or an earlier connection's end of it */
	p = prague_state(64 * PRAGUE_PKT, 20000);
	p.saw_ce = false;
	ack = prague_ack_of(&p, 1, 1, 1);
	prague_take(&p, &ack);
	CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
	ack = prague_ack_of(&p, 1, 1, 1);
	prague_take(&p, &ack);
	CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
}

static void prague_marks_before_the_begin_do_not_count(void)
{
	struct prague p;
	struct prague_ack ack = { .now_us = 100000, .delivered = 60, .ce = 5, .acked = 10,
				  .limited = true, .round_ended = true };

	prague_init(&p, 0, 64, 20000, 50, 5, true);
	prague_take(&p, &ack);
	CHECK(p.slow_start && !p.saw_ce, "a mark");
	CHECK_EQ(p.window_q32, 74 * PRAGUE_PKT);
	CHECK_EQ(p.alpha_q24, 0);
}

static void prague_cut_is_half_of_alpha_once_an_interval(void)
{
	static const u32 rtts_us[] = { 1, 1000, 24999, 25000, 60000 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rtts_us); i++) {
		u32 interval = rtts_us[i] < 25000 ? 25000 : rtts_us[i];

		for (j = 0; j < 1000; j++) {
			u64 window = unit_any(4 * PRAGUE_PKT, PRAGUE_MOST_CWND * PRAGUE_PKT);
			struct prague p = prague_state(window, rtts_us[i]);
			struct prague_ack ack = prague_ack_of(&p, 3, 3, interval - 1);
			u64 cut_us = p.cut_us;
			long double ref;

			p.alpha_q24 = unit_any(0, 1 << 24);
			ref = prague_cut_ref(window, p.alpha_q24);
			prague_take(&p, &ack);
			CHECK_EQ(p.window_q32, window);
			CHECK_EQ(p.cut_us, cut_us);
			ack = prague_ack_of(&p, 3, 3, interval);
			prague_take(&p, &ack);
			CHECK(fabsl(p.window_q32 - ref) <= 2, "%llu, not %Lf",
			      (ull)p.window_q32, ref);
			CHECK_EQ(p.cut_us, cut_us + interval);
			/* and not again before the next interval has passed */
			window = p.window_q32;
			ack = prague_ack_of(&p, 3, 3, interval - 1);
			prague_take(&p, &ack);
			CHECK_EQ(p.window_q32, window);
		}
	}
	/* at full alpha it is half, exactly */
	{
		struct prague p = prague_state(64 * PRAGUE_PKT, 50000);

		p.alpha_q24 = 1 << 24;
		CHECK_EQ(prague_window_after(p, 1, 1, 50000), 32 * PRAGUE_PKT);
	}
}

static void prague_cut_before_the_transition_is_once_an_rtt(void)
{
	struct prague p = prague_state(64 * PRAGUE_PKT, 5000);

	p.rounds = 499;
	p.alpha_q24 = 1 << 24;
	CHECK_EQ(prague_window_after(p, 1, 1, 4999), 64 * PRAGUE_PKT);
	CHECK_EQ(prague_window_after(p, 1, 1, 5000), 32 * PRAGUE_PKT);
}

/* By half for each of four intervals, in proportion within one; the next is due one later. */
static void prague_cut_that_is_late_counts_for_the_lateness(void)
{
	static const struct {
		u32 interval_us;
		u64 later_us, left;	/* of 1024 packets */
	} cases[] = {
		{ 60000, 60000, 512 }, { 60000, 75000, 448 }, { 60000, 90000, 384 },
		{ 60000, 105000, 320 }, { 60000, 120000, 256 }, { 60000, 150000, 192 },
		{ 60000, 180000, 128 }, { 60000, 210000, 96 }, { 60000, 240000, 64 },
		{ 60000, 240001, 64 }, { 60000, 270000, 64 }, { 60000, 300000, 64 },
		{ 60000, 900000000, 64 }, { 60000, 1ULL << 32, 64 }, { 60000, 1ULL << 62, 64 },
		{ 25000, 25000, 512 }, { 25000, 37500, 384 }, { 25000, 900000000, 64 },
		{ PRAGUE_RTT_MOST_US, 24000000, 384 }, { PRAGUE_RTT_MOST_US, 64000000, 64 },
		{ PRAGUE_RTT_MOST_US, 70000000, 64 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 interval = cases[i].interval_us;
		u64 left = cases[i].left * PRAGUE_PKT;
		struct prague p = prague_state(1024 * PRAGUE_PKT,
					       interval == 25000 ? 1000 : interval);
		struct prague_ack ack = prague_ack_of(&p, 1, 1, cases[i].later_us);

		p.alpha_q24 = 1 << 24;
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, left);
		CHECK_EQ(p.cut_us, ack.now_us);
		ack.now_us += interval - 1;
		ack.ce++;
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, left);
		ack.now_us++;
		ack.ce++;
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, left / 2);
	}
}

static void prague_cut_follows_its_reference_at_any_lateness(void)
{
	int i;

	for (i = 0; i < 50000; i++) {
		u64 window = unit_any(4 * PRAGUE_PKT, PRAGUE_MOST_CWND * PRAGUE_PKT);
		u32 interval = unit_any(1, PRAGUE_RTT_MOST_US);
		u64 due, due_us = unit_any(interval, 6ULL * interval);
		struct prague p = prague_state(window, 20000);
		u64 now_us = p.cut_us + due_us;
		long double half, ref = window;

		p.alpha_q24 = unit_any(0, 1 << 24);
		half = (p.alpha_q24 >> 5) / 1048576.0L;
		for (due = due_us < 4ULL * interval ? due_us : 4ULL * interval; due > interval;
		     due -= interval)
			ref *= 1 - half;
		ref *= 1 - half * due / interval;
		prague_cut(&p, now_us, interval);
		/* The share of the last one is rounded to 2^-20. */
		CHECK(fabsl(p.window_q32 - ref) <= window / 1048576.0L + 5,
		      "%llu, not %Lf: of %llu, %llu of %u us", (ull)p.window_q32, ref,
		      (ull)window, (ull)due_us, interval);
		CHECK_EQ(p.cut_us, now_us);
	}
}

/* Marks at any times take as much in the end as those that come when they are due. */
static void prague_cuts_take_as_much_however_late_they_come(void)
{
	struct prague late = prague_state(1 << 20, 50000), due = late;
	long double late_log, due_log;
	int i;

	late.window_q32 = PRAGUE_MOST_CWND * PRAGUE_PKT;
	due.window_q32 = late.window_q32;
	late.alpha_q24 = 1 << 20;
	due.alpha_q24 = late.alpha_q24;
	for (i = 0; i < 100; i++)
		prague_cut(&late, late.cut_us + unit_between(50000, 200000), 50000);
	for (i = (late.cut_us - due.cut_us) / 50000; i; i--)
		prague_cut(&due, due.cut_us + 50000, 50000);
	late_log = logl(late.window_q32 / (PRAGUE_MOST_CWND * (long double)PRAGUE_PKT));
	due_log = logl(due.window_q32 / (PRAGUE_MOST_CWND * (long double)PRAGUE_PKT));
	CHECK(fabsl(late_log / due_log - 1) <= 0.01, "%Lf, not %Lf", late_log, due_log);
}

static void prague_cut_takes_away_a_window_that_the_stack_does_not_allow(void)
{
	struct prague p = prague_state(1000 * PRAGUE_PKT, 50000);
	struct prague_ack ack;

	/* without a mark it stays */
	p.alpha_q24 = 1 << 24;
	ack = prague_ack_of(&p, 1, 0, 60000);
	ack.limited = false;
	prague_on_ack(&p, &prague_defaults, &ack, 10, PRAGUE_MOST_CWND, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 1000 * PRAGUE_PKT);
	/* ... and with one before a decrease is due */
	ack = prague_ack_of(&p, 1, 1, 49999);
	prague_on_ack(&p, &prague_defaults, &ack, 10, PRAGUE_MOST_CWND, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 1000 * PRAGUE_PKT);
	ack = prague_ack_of(&p, 1, 1, 50000);
	prague_on_ack(&p, &prague_defaults, &ack, 10, PRAGUE_MOST_CWND, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 5 * PRAGUE_PKT);
	/* One that allows more changes nothing. */
	ack = prague_ack_of(&p, 1, 1, 50000);
	prague_on_ack(&p, &prague_defaults, &ack, 100, PRAGUE_MOST_CWND, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 5 * PRAGUE_PKT / 2);
	/* The first mark halves what it allows. */
	prague_init(&p, 500, 64, 20000, 0, 0, true);
	ack = prague_ack_of(&p, 1, 1, 1);
	prague_on_ack(&p, &prague_defaults, &ack, 20, PRAGUE_MOST_CWND, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 10 * PRAGUE_PKT);
}

/*
 * Rounds and alpha.
 */

static void prague_alpha_follows_its_reference(void)
{
	struct prague p = prague_state(PRAGUE_PKT, 50000);
	struct prague_ack ack = prague_ack_of(&p, 0, 0, 0);
	long double alpha = 0;
	int i;

	ack.round_ended = true;
	for (i = 0; i < 100000; i++) {
		u32 delivered = unit_any(1, 1 << 24);
		u32 ce = i / 1000 % 3 ? unit_any(0, delivered) : i / 3000 % 2 * delivered;

		ack.delivered += delivered;
		ack.ce += ce;
		CHECK(prague_take(&p, &ack), "no round");
		alpha += ((long double)ce / delivered - alpha) / 16;
		/* Each round's two roundings are below 2^-24 together; 16 rounds are remembered. */
		CHECK(fabsl(p.alpha_q24 / 16777216.0L - alpha) <= 32 / 16777216.0L,
		      "%u, not %Lf", p.alpha_q24, alpha * 16777216);
	}
}

static void prague_alpha_reaches_its_ends_and_small_shares(void)
{
	struct prague p = prague_state(PRAGUE_PKT, 50000);
	struct prague_ack ack = prague_ack_of(&p, 0, 0, 0);
	int i;

	ack.round_ended = true;
	for (i = 0; i < 400; i++) {
		ack.delivered += 10;
		ack.ce += 10;
		prague_take(&p, &ack);
	}
	CHECK_EQ(p.alpha_q24, 1 << 24);
	ack.delivered += 16;
	prague_take(&p, &ack);
	CHECK_EQ(p.alpha_q24, 15 << 20);
	for (i = 0; i < 1000; i++) {
		ack.delivered += 10;
		prague_take(&p, &ack);
	}
	CHECK(p.alpha_q24 < 16, "%u", p.alpha_q24);
	for (i = 0; i < 1000; i++) {
		ack.delivered += 10000;
		ack.ce += 1;
		prague_take(&p, &ack);
	}
	CHECK_NEAR(p.alpha_q24, 1678, 32);
}

/* Nothing that a peer can tell makes alpha more than 1, or anything overflow. */
static void prague_alpha_of_nonsense_counts_is_capped(void)
{
	static const struct {
		u32 delivered, ce, share_q20;
	} counts[] = {
		{ 10, 10, PRAGUE_ONE_Q20 },
		{ 10, 11, PRAGUE_ONE_Q20 },
		{ 10, 1U << 31, PRAGUE_ONE_Q20 },
		{ 10, U32_MAX, PRAGUE_ONE_Q20 },	/* one back */
		{ 1U << 31, 1U << 30, PRAGUE_ONE_Q20 / 2 },
		{ U32_MAX, U32_MAX, PRAGUE_ONE_Q20 },
		{ U32_MAX, 1U << 31, PRAGUE_ONE_Q20 / 2 },
		{ 4, 1, PRAGUE_ONE_Q20 / 4 },
		{ 3, 2, PRAGUE_ONE_Q20 * 2 / 3 },
		{ 0, 0, 0 },
		{ 0, 5, 0 },
	};
	static const u32 begins[] = { 0, 1, U32_MAX, U32_MAX - 2, 1U << 31 };
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		for (j = 0; j < ARRAY_SIZE(begins); j++) {
			for (k = 0; k < ARRAY_SIZE(begins); k++) {
				struct prague p = prague_state(PRAGUE_PKT, 50000);
				struct prague_ack ack;

				p.round_delivered = begins[j];
				p.round_ce = begins[k];
				p.seen_ce = begins[k];
				ack = prague_ack_of(&p, 1, counts[i].ce, 1);
				ack.delivered = begins[j] + counts[i].delivered;
				ack.round_ended = true;
				CHECK(prague_take(&p, &ack), "no round");
				CHECK_EQ(p.alpha_q24, counts[i].share_q20);
				CHECK_EQ(p.round_delivered, ack.delivered);
				CHECK_EQ(p.round_ce, ack.ce);
				CHECK_EQ(p.seen_ce, ack.ce);
			}
		}
	}
}

static void prague_round_without_a_delivery_leaves_alpha(void)
{
	struct prague p = prague_state(PRAGUE_PKT, 50000);
	struct prague_ack ack = prague_ack_of(&p, 0, 5, 1);

	p.alpha_q24 = 12345678;
	ack.round_ended = true;
	prague_take(&p, &ack);
	CHECK_EQ(p.alpha_q24, 12345678);
	/* ... while one without a mark makes it less */
	ack.delivered += 1;
	prague_take(&p, &ack);
	CHECK_EQ(p.alpha_q24, 12345678 - 12345678 / 16);
}

static void prague_round_ends_when_the_stack_says_and_the_virtual_rtt_is_over(void)
{
	struct prague p = prague_state(PRAGUE_PKT, 50000);
	struct prague_ack ack = prague_ack_of(&p, 1, 0, 1);
	u64 begun_us = p.round_us;

	CHECK(!prague_take(&p, &ack), "before its end");
	CHECK_EQ(p.round_us, begun_us);
	CHECK_EQ(p.round_delivered, 0);
	ack.round_ended = true;
	CHECK(prague_take(&p, &ack), "no round");
	CHECK_EQ(p.round_us, ack.now_us);
	CHECK_EQ(p.round_delivered, 1);

	p = prague_state(PRAGUE_PKT, 5000);
	begun_us = p.round_us;
	ack.now_us = begun_us + 24999;
	CHECK(!prague_take(&p, &ack), "before the virtual RTT was over");
	ack.now_us = begun_us + 25000;
	CHECK(prague_take(&p, &ack), "no round");
	CHECK_EQ(p.round_us, begun_us + 25000);
	ack.now_us += 30000;
	ack.round_ended = false;
	CHECK(!prague_take(&p, &ack), "before its end");
}

static void prague_rounds_count_after_slow_start_up_to_the_transition(void)
{
	struct prague p;
	struct prague_ack ack;
	u32 i;

	prague_init(&p, 0, 10, 5000, 0, 0, true);
	for (i = 0; i < 10; i++) {
		ack = prague_ack_of(&p, 1, 0, 1);
		ack.round_ended = true;
		CHECK(prague_take(&p, &ack), "no round");
		CHECK_EQ(p.rounds, 0);
	}
	for (i = 1; i <= 500; i++) {
		CHECK(!prague_is_rtt_independent(&p, &prague_defaults), "after %u", i);
		ack = prague_ack_of(&p, 1, i == 1, 1);
		ack.round_ended = true;
		CHECK(prague_take(&p, &ack), "no round");
		CHECK_EQ(p.rounds, i);
	}
	CHECK(prague_is_rtt_independent(&p, &prague_defaults), "not after 500 rounds");
	for (i = 0; i < 10; i++) {
		ack = prague_ack_of(&p, 1, 0, 30000 * (i + 1));
		ack.round_ended = true;
		CHECK(prague_take(&p, &ack), "no round");
		CHECK_EQ(p.rounds, 500);
	}
}

/*
 * Loss, idle times.
 */

static void prague_loss_halves_what_was_allowed_and_ends_slow_start(void)
{
	static const struct {
		u64 window_q32;
		u32 cwnd;
		u64 left_q32;
	} cases[] = {
		{ 100 * PRAGUE_PKT, 100, 50 * PRAGUE_PKT },
		{ 100 * PRAGUE_PKT + 1000, 101, 50 * PRAGUE_PKT + 500 },
		{ 100 * PRAGUE_PKT, 20, 10 * PRAGUE_PKT },
		{ 100 * PRAGUE_PKT, U32_MAX, 50 * PRAGUE_PKT },
		/* two packets are left, if there were as many */
		{ 5 * PRAGUE_PKT, 6, 5 * PRAGUE_PKT / 2 },
		{ 4 * PRAGUE_PKT, 5, 2 * PRAGUE_PKT },
		{ 4 * PRAGUE_PKT - 1, 5, 2 * PRAGUE_PKT },
		{ 3 * PRAGUE_PKT, 4, 2 * PRAGUE_PKT },
		{ 2 * PRAGUE_PKT, 3, 2 * PRAGUE_PKT },
		{ 3 * PRAGUE_PKT / 2, 3, 3 * PRAGUE_PKT / 2 },
		{ PRAGUE_PKT, 2, PRAGUE_PKT },
		{ PRAGUE_LEAST, 2, PRAGUE_LEAST },
		/* after a timeout the stack allows one */
		{ 100 * PRAGUE_PKT, 5, 5 * PRAGUE_PKT / 2 },
		{ 100 * PRAGUE_PKT, 3, 2 * PRAGUE_PKT },
		{ 100 * PRAGUE_PKT, 1, 2 * PRAGUE_PKT },
		{ 100 * PRAGUE_PKT, 0, 2 * PRAGUE_PKT },
		{ PRAGUE_PKT / 4, 0, PRAGUE_PKT / 4 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prague p = prague_state(cases[i].window_q32, 20000);

		p.slow_start = i & 1;
		prague_on_loss(&p, cases[i].cwnd);
		CHECK_EQ(p.window_q32, cases[i].left_q32);
		CHECK_EQ(p.undo_q32, cases[i].window_q32);
		CHECK_EQ(p.undo_slow_start, i & 1);
		CHECK(!p.slow_start && p.in_loss, "flags");
	}
}

/* Timeouts without an ACK between them. */
static void prague_loss_after_loss_leaves_two_packets(void)
{
	struct prague p = prague_state(64 * PRAGUE_PKT, 20000);
	int i;

	for (i = 0; i < 100; i++) {
		prague_on_loss(&p, PRAGUE_MOST_CWND);
		CHECK_EQ(p.window_q32, i < 5 ? 32 * PRAGUE_PKT >> i : 2 * PRAGUE_PKT);
	}
	/* They bring it no further down than marks have. */
	p = prague_state(PRAGUE_PKT / 3, 20000);
	for (i = 0; i < 100; i++) {
		prague_on_loss(&p, 1);
		CHECK_EQ(p.window_q32, PRAGUE_PKT / 3);
	}
}

static void prague_undo_restores_window_and_slow_start(void)
{
	struct prague p;

	prague_init(&p, 0, 100, 20000, 0, 0, true);
	prague_on_loss(&p, 100);
	prague_undo(&p);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	CHECK(p.slow_start && !p.in_loss, "flags");
	/* There was a mark meanwhile: the end of slow start stands. */
	prague_on_loss(&p, 100);
	p.saw_ce = true;
	prague_undo(&p);
	CHECK(!p.slow_start, "slow start");
	/* It was none before. */
	p.saw_ce = false;
	prague_on_loss(&p, 100);
	prague_undo(&p);
	CHECK(!p.slow_start, "slow start");
	/* A window that has grown beyond stays. */
	prague_on_loss(&p, 100);
	p.window_q32 = 150 * PRAGUE_PKT;
	prague_undo(&p);
	CHECK_EQ(p.window_q32, 150 * PRAGUE_PKT);
}

static void prague_undo_of_a_series_restores_what_was_before_the_first(void)
{
	struct prague p;

	prague_init(&p, 0, 64, 20000, 0, 0, true);
	prague_on_loss(&p, 64);
	prague_on_loss(&p, 32);
	prague_on_loss(&p, 16);
	CHECK_EQ(p.window_q32, 8 * PRAGUE_PKT);
	prague_undo(&p);
	CHECK_EQ(p.window_q32, 64 * PRAGUE_PKT);
	CHECK(p.slow_start, "no slow start");
	/* one that was repaired is not of the series */
	prague_on_loss(&p, 64);
	p.in_loss = false;
	prague_on_loss(&p, 32);
	prague_undo(&p);
	CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
	CHECK(!p.slow_start, "slow start");
}

static void prague_marks_cut_in_loss_too(void)
{
	struct prague p = prague_state(64 * PRAGUE_PKT, 50000);

	p.alpha_q24 = 1 << 24;
	p.in_loss = true;
	CHECK_EQ(prague_window_after(p, 9, 1, 50000), 32 * PRAGUE_PKT);
}

static void prague_first_mark_in_a_loss_halves_no_more(void)
{
	struct prague p;
	struct prague_ack ack;

	prague_init(&p, 500, 64, 50000, 0, 0, true);
	prague_on_loss(&p, 64);
	ack = prague_ack_of(&p, 9, 1, 700);
	/* nor does it take away what the stack does not allow during the repair */
	prague_on_ack(&p, &prague_defaults, &ack, 20, PRAGUE_MOST_CWND, PRAGUE_MSS);
	CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
	CHECK(p.saw_ce && !p.slow_start, "flags");
	CHECK_EQ(p.cut_us, 1200);
	/* The next one goes by the average, an interval later. */
	p.alpha_q24 = 1 << 24;
	CHECK_EQ(prague_window_after(p, 9, 1, 49999), 32 * PRAGUE_PKT);
	CHECK_EQ(prague_window_after(p, 9, 1, 50000), 16 * PRAGUE_PKT);
	/* After the repair it is one like any other. */
	prague_init(&p, 500, 64, 50000, 0, 0, true);
	prague_on_loss(&p, 64);
	p.in_loss = false;
	CHECK_EQ(prague_window_after(p, 1, 1, 700), 16 * PRAGUE_PKT);
}

/*
 * Larger packets.
 */

static void prague_larger_mss_leaves_the_bytes(void)
{
	struct prague p;
	int i;

	for (i = 0; i < 50000; i++) {
		u64 window = unit_any(PRAGUE_LEAST, PRAGUE_MOST_CWND * PRAGUE_PKT);
		u64 undo = unit_any(0, PRAGUE_MOST_CWND * PRAGUE_PKT);
		u32 was = unit_any(1, 65534);
		u32 mss = unit_any(was + 1, 65535);
		long double ratio = (long double)was / mss;

		p = prague_state(window, 20000);
		p.undo_q32 = undo;
		prague_on_larger_mss(&p, was, mss);
		/* Rounding leaves out less than the 2^-16 of a packet. */
		CHECK(fabsl(p.window_q32 - fmaxl(window * ratio, PRAGUE_LEAST)) <= was,
		      "%llu of %llu: %u, %u bytes", (ull)p.window_q32, (ull)window, was, mss);
		CHECK(fabsl(p.undo_q32 - undo * ratio) <= was,
		      "undo %llu of %llu: %u, %u bytes", (ull)p.undo_q32, (ull)undo, was, mss);
		CHECK(p.window_q32 >= PRAGUE_LEAST && p.window_q32 <= window &&
		      p.undo_q32 <= undo, "not less");
	}
	p = prague_state(12 * PRAGUE_PKT, 20000);
	prague_on_larger_mss(&p, 1000, 4000);
	CHECK_NEAR(p.window_q32, 3 * PRAGUE_PKT, 1000);
	CHECK_EQ(p.undo_q32, 0);
	p = prague_state(PRAGUE_LEAST, 20000);
	prague_on_larger_mss(&p, 1, 65535);
	CHECK_EQ(p.window_q32, PRAGUE_LEAST);
}

static void prague_larger_mss_during_a_loss_is_undone_in_bytes(void)
{
	struct prague p = prague_state(24 * PRAGUE_PKT, 20000);

	prague_on_loss(&p, 24);
	prague_on_larger_mss(&p, 512, 2048);
	CHECK_EQ(p.window_q32, 3 * PRAGUE_PKT);
	prague_undo(&p);
	CHECK_EQ(p.window_q32, 6 * PRAGUE_PKT);
}

static void prague_after_idle_the_next_cut_is_that_of_one_interval(void)
{
	static const u32 rtts_us[] = { 5000, 50000 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		u32 interval = rtts_us[i] < 25000 ? 25000 : rtts_us[i];
		struct prague p = prague_state(64 * PRAGUE_PKT, rtts_us[i]);
		u64 now_us = p.cut_us + 10000000;
		struct prague_ack ack;

		p.alpha_q24 = 1 << 24;
		prague_after_idle(&p, now_us, &prague_defaults);
		CHECK_EQ(p.cut_us, now_us - interval);
		ack = prague_ack_of(&p, 1, 1, interval);
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
		/* A cut that was less than an interval ago remains. */
		prague_after_idle(&p, now_us + interval - 1, &prague_defaults);
		CHECK_EQ(p.cut_us, now_us);
	}
}

/* Of a machine that has just started, by its clock. */
static void prague_after_idle_in_the_first_interval_of_time_is_its_begin(void)
{
	static const u64 nows_us[] = { 0, 1, 24999, 25000 };
	struct prague p = prague_state(64 * PRAGUE_PKT, 1000);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nows_us); i++) {
		p.cut_us = 0;
		prague_after_idle(&p, nows_us[i], &prague_defaults);
		CHECK_EQ(p.cut_us, 0);
	}
	prague_after_idle(&p, 25001, &prague_defaults);
	CHECK_EQ(p.cut_us, 1);
	/* ... and only then: 71 minutes later it is an interval again */
	prague_after_idle(&p, (1ULL << 32) + 1, &prague_defaults);
	CHECK_EQ(p.cut_us, (1ULL << 32) + 1 - 25000);
}

/*
 * What the stack is told.
 */

static void prague_window_cwnd_is_rounded_up_and_one_more(void)
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

static void prague_next_cwnd_steps_towards_the_window(void)
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

static void prague_rate_is_window_over_rtt(void)
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

static void prague_rate_has_known_values(void)
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
static void prague_rate_has_no_step(void)
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

static void prague_burst_is_a_quarter_of_a_millisecond(void)
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

/*
 * Robustness.
 */

static void prague_random_acks_keep_the_invariants(void)
{
	struct prague p = prague_state(10 * PRAGUE_PKT, 20000);
	struct prague_ack ack = prague_ack_of(&p, 0, 0, 0);
	u32 cwnd = 10;
	int i;

	for (i = 0; i < 100000; i++) {
		const struct prague_params params = {
			.rtt_virt_us = unit_any(0, 100000),
			.transition_rounds = unit_any(0, 1000),
			.least_rate_bytes_ps = unit_any(1000, 125000000),
		};
		u32 cwnd_most = unit_any(0, U32_MAX);
		u32 mss = unit_any(88, 65535);
		u64 most_q32 = cwnd_most < PRAGUE_MOST_CWND ? cwnd_most : PRAGUE_MOST_CWND;
		u64 rate, before;
		u32 rtt, burst, losses;

		/* mostly plausible, so that windows are of every size */
		ack.now_us += unit_any(0, 1000000);
		ack.acked = unit_any(0, unit_rnd() % 8 ? 64 : U32_MAX);
		ack.delivered += unit_rnd() % 8 ? ack.acked : unit_any(0, U32_MAX);
		if (unit_rnd() % 4 == 0)
			ack.ce += unit_any(0, unit_rnd() % 4 ? 64 : U32_MAX);
		ack.rtt_us = (s32)unit_any(0, U32_MAX);
		ack.round_ended = unit_rnd() & 1;
		ack.limited = unit_rnd() & 1;
		switch (unit_rnd() % 64) {
		case 0:
			before = p.window_q32;
			for (losses = unit_any(1, 100); losses; losses--)
				prague_on_loss(&p, cwnd);
			CHECK(p.window_q32 <= before &&
			      (p.window_q32 == before || p.window_q32 >= 2 * PRAGUE_PKT),
			      "window %llu after losses", (ull)p.window_q32);
			break;
		case 1:
			prague_undo(&p);
			break;
		case 2:
			prague_after_idle(&p, ack.now_us, &params);
			break;
		case 3:
			cwnd = unit_any(1, PRAGUE_MOST_CWND);
			break;
		case 4:
			prague_init(&p, ack.now_us, unit_any(0, U32_MAX), unit_any(0, U32_MAX),
				    ack.delivered, ack.ce, unit_rnd() & 1);
			break;
		case 5:
			before = p.window_q32;
			prague_on_larger_mss(&p, unit_any(1, 1448), unit_any(1449, 65535));
			CHECK(p.window_q32 >= PRAGUE_LEAST && p.window_q32 <= before,
			      "window %llu of larger packets", (ull)p.window_q32);
			break;
		case 6 ... 9:
			p.in_loss = false;
			break;
		}
		prague_on_ack(&p, &params, &ack, cwnd, cwnd_most, mss);
		if (most_q32 < 2)
			most_q32 = 2;
		most_q32 <<= 32;
		CHECK(p.window_q32 >= prague_least_window_q32(&p, &params, mss) &&
		      p.window_q32 <= most_q32, "window %llu", (ull)p.window_q32);
		CHECK(p.window_q32 >= PRAGUE_LEAST, "window %llu", (ull)p.window_q32);
		CHECK(p.alpha_q24 <= 1 << 24, "alpha %u", p.alpha_q24);
		CHECK(!p.slow_start || !p.saw_ce, "slow start after a mark");
		rtt = prague_rtt_us(&p);
		CHECK(rtt >= 1 && rtt <= PRAGUE_RTT_MOST_US, "RTT %u", rtt);
		CHECK(p.cut_us <= ack.now_us && p.round_us <= ack.now_us, "times");
		cwnd = prague_next_cwnd(&p, cwnd, ack.acked);
		CHECK(cwnd >= 2 && cwnd <= PRAGUE_MOST_CWND + 1, "cwnd %u", cwnd);
		rate = prague_rate_bytes_ps(&p, cwnd, mss);
		CHECK(rate >= 1 && rate < 1ULL << 62, "rate %llu", (ull)rate);
		burst = prague_burst_pkts(rate, mss);
		CHECK(burst >= 1 && burst <= 65535, "burst %u", burst);
	}
}

/*
 * Senders on a marker, in virtual time.  Packets leave as the pacing rate has it
 * and each is acknowledged by an ACK an RTT later.
 */

#define PRAGUE_FLIGHT	(1U << 12)	/* packets under way, at most */

struct prague_flow {
	struct prague p;
	u32 rtt_us, cwnd;
	u32 snd_nxt, snd_una, next_seq, ce;
	u64 send_ns;
	u64 ack_ns[PRAGUE_FLIGHT];
	bool marked[PRAGUE_FLIGHT];
	u64 pkts;			/* sent since measuring began */
	double window_ns;		/* integral of the window since then */
};

struct prague_marker {
	u64 prob_q32;
	u64 credit_q32;
	bool even;			/* every 1 / p th packet, not one of 1 / p at random */
};

static struct prague_flow prague_flows[2];

static bool prague_mark(struct prague_marker *m)
{
	if (!m->even)
		return unit_rnd() >> 32 < m->prob_q32;
	m->credit_q32 += m->prob_q32;
	if (m->credit_q32 < ONE)
		return false;
	m->credit_q32 -= ONE;
	return true;
}

static void prague_flow_send(struct prague_flow *f, struct prague_marker *m, u64 now_ns)
{
	u32 slot = f->snd_nxt % PRAGUE_FLIGHT;

	CHECK(f->snd_nxt - f->snd_una < PRAGUE_FLIGHT, "too many packets under way");
	f->marked[slot] = prague_mark(m);
	f->ack_ns[slot] = now_ns + f->rtt_us * 1000ULL;
	f->snd_nxt++;
	f->pkts++;
	f->send_ns = now_ns + 1500 * SEC / prague_rate_bytes_ps(&f->p, f->cwnd, 1500);
}

static void prague_flow_ack(struct prague_flow *f, const struct prague_params *params,
			    u64 now_ns)
{
	struct prague_ack ack = {
		.now_us = now_ns / 1000,
		.acked = 1,
		.rtt_us = f->rtt_us,
		.limited = true,
	};

	f->ce += f->marked[f->snd_una++ % PRAGUE_FLIGHT];
	ack.delivered = f->snd_una;
	ack.ce = f->ce;
	ack.round_ended = (s32)(f->snd_una - f->next_seq) >= 0;
	if (prague_on_ack(&f->p, params, &ack, f->cwnd, PRAGUE_MOST_CWND, 1500))
		f->next_seq = f->snd_nxt;
	f->cwnd = prague_next_cwnd(&f->p, f->cwnd, 1);
}

/* Runs the first @count flows until @pkts packets were sent, measuring in the second half. */
static u64 prague_simulate(unsigned int count, struct prague_marker *m, u64 pkts)
{
	const struct prague_params params = {
		.rtt_virt_us = PRAGUE_RTT_VIRT_US,
		.transition_rounds = 4,
		.least_rate_bytes_ps = 12500,
	};
	u64 now_ns = 0, begin_ns = 0, sent = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct prague_flow *f = &prague_flows[i];
		u32 rtt_us = f->rtt_us;

		memset(f, 0, sizeof(*f));
		f->rtt_us = rtt_us;
		f->cwnd = 10;
		/* Where slow start ends, and how long that takes to be forgotten, is chance. */
		prague_init(&f->p, 0, f->cwnd, rtt_us, 0, 0, false);
	}
	while (sent < pkts) {
		struct prague_flow *next = prague_flows;
		u64 next_ns = UINT64_MAX;
		bool is_ack = false;

		for (i = 0; i < count; i++) {
			struct prague_flow *f = &prague_flows[i];

			if (f->send_ns < next_ns) {
				next = f;
				next_ns = f->send_ns;
				is_ack = false;
			}
			if (f->snd_una != f->snd_nxt &&
			    f->ack_ns[f->snd_una % PRAGUE_FLIGHT] <= next_ns) {
				next = f;
				next_ns = f->ack_ns[f->snd_una % PRAGUE_FLIGHT];
				is_ack = true;
			}
		}
		for (i = 0; i < count; i++)
			prague_flows[i].window_ns += (double)(next_ns - now_ns) *
						     prague_flows[i].p.window_q32 / PRAGUE_PKT;
		now_ns = next_ns;
		if (is_ack) {
			prague_flow_ack(next, &params, now_ns);
		} else if (prague_flow_send(next, m, now_ns), ++sent == pkts / 2) {
			begin_ns = now_ns;
			for (i = 0; i < count; i++) {
				prague_flows[i].pkts = 0;
				prague_flows[i].window_ns = 0;
			}
		}
	}
	return now_ns - begin_ns;
}

/* shares of marks, and how many of them are below a half */
static const double prague_probs[] = { 0.01, 0.024, 0.091, 0.2, 0.5 };

#define PRAGUE_MODEST	4

/* Packets in which there are so many marks; more where chance is most of what a flow sees. */
static u64 prague_pkts_of(double prob)
{
	return (prob < 0.5 ? 8000 : 64000) / prob;
}

/* The average window in an RTT, and what is sent, Mbit/s. */
static double prague_window_mbit(const struct prague_flow *f, u64 took_ns)
{
	return f->window_ns / took_ns * 12000 / f->rtt_us;
}

static double prague_sent_mbit(const struct prague_flow *f, u64 took_ns)
{
	return f->pkts * 12e6 / took_ns;
}

/* Below the virtual RTT a rate of 1 / p - 1 Mbit/s, whatever the RTT is. */
static void prague_alone_settles_at(bool even)
{
	static const u32 rtts_us[] = { 5000, 10000, 20000, 25000 };
	unsigned int i, j;

	for (j = 0; j < PRAGUE_MODEST; j++) {
		for (i = 0; i < ARRAY_SIZE(rtts_us); i++) {
			double prob = prague_probs[j], want = 1 / prob - 1, got;
			struct prague_marker m = { .prob_q32 = prob * ONE, .even = even };
			u64 took_ns;

			prague_flows[0].rtt_us = rtts_us[i];
			took_ns = prague_simulate(1, &m, prague_pkts_of(prob));
			got = prague_window_mbit(&prague_flows[0], took_ns);
			CHECK(fabs(got / want - 1) <= 0.1,
			      "%u us, p %g: W / R %g, not %g Mbit/s",
			      rtts_us[i], prob, got, want);
			got = prague_sent_mbit(&prague_flows[0], took_ns);
			CHECK(fabs(got / want - 1) <= 0.1,
			      "%u us, p %g: %g sent, not %g Mbit/s",
			      rtts_us[i], prob, got, want);
		}
	}
}

static void prague_alone_on_random_marks_settles_at_its_rate(void)
{
	prague_alone_settles_at(false);
}

static void prague_alone_on_even_marks_settles_at_its_rate(void)
{
	prague_alone_settles_at(true);
}

/*
 * Where every second packet is marked 2 (1 - p) / p is two packets in 25 ms, which a flow meets
 * less well: W / R is within 20 % of it.  What is sent is less again, as packets are further apart
 * than the RTT and the gap after one is that of the window before its ACK.
 *
 * Left out: random marks at 5 ms and less, where W / R is 17 to 23 % too small, as seeds have it.
 * The window is often below R / R_virt there, where prague_increase() slows its growth.
 */
static void prague_alone_half_of_it_marked_settles_at(bool even, u32 least_rtt_us)
{
	static const u32 rtts_us[] = { 1000, 5000, 10000, 20000, 25000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rtts_us); i++) {
		struct prague_marker m = { .prob_q32 = ONE / 2, .even = even };
		double got, want = 2 * 12000 / 25e3;
		u64 took_ns;

		if (rtts_us[i] < least_rtt_us)
			continue;
		prague_flows[0].rtt_us = rtts_us[i];
		took_ns = prague_simulate(1, &m, prague_pkts_of(0.5));
		got = prague_window_mbit(&prague_flows[0], took_ns);
		CHECK(fabs(got / want - 1) <= 0.2, "%u us: W / R %g, not %g Mbit/s",
		      rtts_us[i], got, want);
	}
}

static void prague_alone_half_of_it_marked_at_random_settles_near_its_rate(void)
{
	prague_alone_half_of_it_marked_settles_at(false, 10000);
}

static void prague_alone_half_of_it_marked_evenly_settles_near_its_rate(void)
{
	prague_alone_half_of_it_marked_settles_at(true, 0);
}

/* 2 (1 - p) / p packets */
static void prague_alone_at_a_long_rtt(bool even)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(prague_probs); i++) {
		double prob = prague_probs[i], want = 2 * (1 - prob) / prob, got;
		struct prague_marker m = { .prob_q32 = prob * ONE, .even = even };
		double off = i < PRAGUE_MODEST ? 0.1 : 0.2;
		u64 took_ns;

		prague_flows[0].rtt_us = 100000;
		took_ns = prague_simulate(1, &m, prague_pkts_of(prob));
		got = prague_flows[0].window_ns / took_ns;
		CHECK(fabs(got / want - 1) <= off, "p %g: %g, not %g packets", prob, got, want);
	}
}

static void prague_alone_at_a_long_rtt_on_random_marks_settles_at_its_window(void)
{
	prague_alone_at_a_long_rtt(false);
}

static void prague_alone_at_a_long_rtt_on_even_marks_settles_at_its_window(void)
{
	prague_alone_at_a_long_rtt(true);
}

/* 20 to 1 it would be without independence of the RTT. What is sent: see above. */
static void prague_flows_of_1_and_20_ms_share_equally(void)
{
	unsigned int i, even;

	for (even = 0; even <= 1; even++) {
		for (i = 0; i < ARRAY_SIZE(prague_probs); i++) {
			double prob = prague_probs[i], ratio;
			struct prague_marker m = { .prob_q32 = prob * ONE, .even = even };
			u64 took_ns;

			/* Every second packet: the order of the two decides whose it is. */
			if (even && prob == 0.5)
				continue;
			prague_flows[0].rtt_us = 1000;
			prague_flows[1].rtt_us = 20000;
			took_ns = prague_simulate(2, &m, 2 * prague_pkts_of(prob));
			ratio = prague_window_mbit(&prague_flows[0], took_ns) /
				prague_window_mbit(&prague_flows[1], took_ns);
			CHECK(ratio >= 0.8 && ratio <= 1.25, "p %g: W / R %g to 1", prob, ratio);
			ratio = (double)prague_flows[0].pkts / prague_flows[1].pkts;
			if (i < PRAGUE_MODEST)
				CHECK(ratio >= 0.8 && ratio <= 1.25, "p %g: %g to 1 sent", prob,
				      ratio);
		}
	}
}

static const struct unit_test prague_tests[] = {
	TEST(prague_init_takes_what_it_is_given_and_clears_the_rest),
	TEST(prague_init_of_nonsense_is_cut_to_the_range),
	TEST(prague_rtt_before_the_first_sample_is_a_millisecond),
	TEST(prague_rtt_first_sample_is_taken_whole),
	TEST(prague_rtt_later_samples_count_an_eighth),
	TEST(prague_rtt_nonsense_is_left_out_or_cut),
	TEST(prague_independent_after_the_transition_below_the_virtual_rtt_only),
	TEST(prague_least_window_is_the_least_rate_in_an_rtt),
	TEST(prague_window_stays_between_least_rate_and_clamp),
	TEST(prague_increase_is_acked_over_window),
	TEST(prague_increase_of_a_tiny_window_is_that_of_slow_start),
	TEST(prague_avoidance_adds_a_packet_per_rtt),
	TEST(prague_independent_rate_grows_alike_at_any_rtt),
	TEST(prague_slow_start_doubles_per_rtt),
	TEST(prague_increase_is_for_unmarked_packets_only),
	TEST(prague_increase_is_none_in_loss_or_when_the_sender_had_less),
	TEST(prague_ack_takes_its_rtt),
	TEST(prague_first_mark_halves_and_ends_slow_start),
	TEST(prague_marks_before_the_begin_do_not_count),
	TEST(prague_cut_is_half_of_alpha_once_an_interval),
	TEST(prague_cut_before_the_transition_is_once_an_rtt),
	TEST(prague_cut_that_is_late_counts_for_the_lateness),
	TEST(prague_cut_follows_its_reference_at_any_lateness),
	TEST(prague_cuts_take_as_much_however_late_they_come),
	TEST(prague_cut_takes_away_a_window_that_the_stack_does_not_allow),
	TEST(prague_alpha_follows_its_reference),
	TEST(prague_alpha_reaches_its_ends_and_small_shares),
	TEST(prague_alpha_of_nonsense_counts_is_capped),
	TEST(prague_round_without_a_delivery_leaves_alpha),
	TEST(prague_round_ends_when_the_stack_says_and_the_virtual_rtt_is_over),
	TEST(prague_rounds_count_after_slow_start_up_to_the_transition),
	TEST(prague_loss_halves_what_was_allowed_and_ends_slow_start),
	TEST(prague_loss_after_loss_leaves_two_packets),
	TEST(prague_undo_restores_window_and_slow_start),
	TEST(prague_undo_of_a_series_restores_what_was_before_the_first),
	TEST(prague_marks_cut_in_loss_too),
	TEST(prague_first_mark_in_a_loss_halves_no_more),
	TEST(prague_larger_mss_leaves_the_bytes),
	TEST(prague_larger_mss_during_a_loss_is_undone_in_bytes),
	TEST(prague_after_idle_the_next_cut_is_that_of_one_interval),
	TEST(prague_after_idle_in_the_first_interval_of_time_is_its_begin),
	TEST(prague_window_cwnd_is_rounded_up_and_one_more),
	TEST(prague_next_cwnd_steps_towards_the_window),
	TEST(prague_rate_is_window_over_rtt),
	TEST(prague_rate_has_known_values),
	TEST(prague_rate_has_no_step),
	TEST(prague_burst_is_a_quarter_of_a_millisecond),
	TEST(prague_random_acks_keep_the_invariants),
	TEST(prague_alone_on_random_marks_settles_at_its_rate),
	TEST(prague_alone_on_even_marks_settles_at_its_rate),
	TEST(prague_alone_half_of_it_marked_at_random_settles_near_its_rate),
	TEST(prague_alone_half_of_it_marked_evenly_settles_near_its_rate),
	TEST(prague_alone_at_a_long_rtt_on_random_marks_settles_at_its_window),
	TEST(prague_alone_at_a_long_rtt_on_even_marks_settles_at_its_window),
	TEST(prague_flows_of_1_and_20_ms_share_equally),
};
