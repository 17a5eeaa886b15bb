// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague's answer to marks: cuts, alpha, rounds; and its invariants for ACKs at
 * random.
 */
#include "prague_test.h"

/* @window after a decrease by half of @alpha */
static long double prague_cut_ref(u64 window, u32 alpha_q24)
{
	return window * (1 - (alpha_q24 >> 5) / 1048576.0L);
}

UNIT_TEST(prague_first_mark_halves_and_ends_slow_start)
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

UNIT_TEST(prague_marks_before_the_begin_do_not_count)
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

UNIT_TEST(prague_cut_is_half_of_alpha_once_an_interval)
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

UNIT_TEST(prague_cut_before_the_transition_is_once_an_rtt)
{
	struct prague p = prague_state(64 * PRAGUE_PKT, 5000);

	p.rounds = 3;
	p.alpha_q24 = 1 << 24;
	CHECK_EQ(prague_window_after(p, 1, 1, 4999), 64 * PRAGUE_PKT);
	CHECK_EQ(prague_window_after(p, 1, 1, 5000), 32 * PRAGUE_PKT);
}

UNIT_TEST(prague_cut_that_is_late_is_that_of_one_interval)
{
	static const u64 laters_us[] = { 60000, 60001, 90000, 120000, 600000, 1ULL << 32, 1ULL << 62 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(laters_us); i++) {
		struct prague p = prague_state(1024 * PRAGUE_PKT, 60000);
		struct prague_ack ack = prague_ack_of(&p, 1, 1, laters_us[i]);

		p.alpha_q24 = 1 << 24;
		prague_take(&p, &ack);
		CHECK_EQ(p.window_q32, 512 * PRAGUE_PKT);
		CHECK_EQ(p.cut_us, ack.now_us);
		/* the next is due an interval after it */
		CHECK_EQ(prague_window_after(p, 1, 1, 59999), 512 * PRAGUE_PKT);
		CHECK_EQ(prague_window_after(p, 1, 1, 60000), 256 * PRAGUE_PKT);
	}
}

/*
 * With late_cut: by half for each of four intervals, in proportion within one; the next is due
 * one later.
 */
UNIT_TEST(prague_cut_that_is_late_counts_for_the_lateness)
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
	struct prague_params params = prague_defaults;
	unsigned int i;

	params.late_cut = true;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 interval = cases[i].interval_us;
		u64 left = cases[i].left * PRAGUE_PKT;
		struct prague p = prague_state(1024 * PRAGUE_PKT,
					       interval == 25000 ? 1000 : interval);
		struct prague_ack ack = prague_ack_of(&p, 1, 1, cases[i].later_us);

		p.alpha_q24 = 1 << 24;
		prague_on_ack(&p, &params, &ack, PRAGUE_MOST_CWND, PRAGUE_MOST_CWND, PRAGUE_MSS);
		CHECK_EQ(p.window_q32, left);
		CHECK_EQ(p.cut_us, ack.now_us);
		ack.now_us += interval - 1;
		ack.ce++;
		prague_on_ack(&p, &params, &ack, PRAGUE_MOST_CWND, PRAGUE_MOST_CWND, PRAGUE_MSS);
		CHECK_EQ(p.window_q32, left);
		ack.now_us++;
		ack.ce++;
		prague_on_ack(&p, &params, &ack, PRAGUE_MOST_CWND, PRAGUE_MOST_CWND, PRAGUE_MSS);
		CHECK_EQ(p.window_q32, left / 2);
	}
}

UNIT_TEST(prague_cut_follows_its_reference_at_any_lateness)
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
		prague_cut(&p, now_us, interval, true);
		/* The share of the last one is rounded to 2^-20. */
		CHECK(fabsl(p.window_q32 - ref) <= window / 1048576.0L + 5,
		      "%llu, not %Lf: of %llu, %llu of %u us", (ull)p.window_q32, ref,
		      (ull)window, (ull)due_us, interval);
		CHECK_EQ(p.cut_us, now_us);
	}
}

/* Marks at any times take as much in the end as those that come when they are due. */
UNIT_TEST(prague_cuts_take_as_much_however_late_they_come)
{
	struct prague late = prague_state(1 << 20, 50000), due = late;
	long double late_log, due_log;
	int i;

	late.window_q32 = PRAGUE_MOST_CWND * PRAGUE_PKT;
	due.window_q32 = late.window_q32;
	late.alpha_q24 = 1 << 20;
	due.alpha_q24 = late.alpha_q24;
	for (i = 0; i < 100; i++)
		prague_cut(&late, late.cut_us + unit_between(50000, 200000), 50000, true);
	for (i = (late.cut_us - due.cut_us) / 50000; i; i--)
		prague_cut(&due, due.cut_us + 50000, 50000, false);
	late_log = logl(late.window_q32 / (PRAGUE_MOST_CWND * (long double)PRAGUE_PKT));
	due_log = logl(due.window_q32 / (PRAGUE_MOST_CWND * (long double)PRAGUE_PKT));
	CHECK(fabsl(late_log / due_log - 1) <= 0.01, "%Lf, not %Lf", late_log, due_log);
}

UNIT_TEST(prague_cut_takes_away_a_window_that_the_stack_does_not_allow)
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

UNIT_TEST(prague_alpha_follows_its_reference)
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

UNIT_TEST(prague_alpha_reaches_its_ends_and_small_shares)
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
UNIT_TEST(prague_alpha_of_nonsense_counts_is_capped)
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

UNIT_TEST(prague_round_without_a_delivery_leaves_alpha)
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

UNIT_TEST(prague_round_ends_when_the_stack_says_and_the_virtual_rtt_is_over)
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

UNIT_TEST(prague_rounds_count_after_slow_start_up_to_the_transition)
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
	for (i = 1; i <= 4; i++) {
		CHECK(!prague_is_rtt_independent(&p, &prague_defaults), "after %u", i);
		ack = prague_ack_of(&p, 1, i == 1, 1);
		ack.round_ended = true;
		CHECK(prague_take(&p, &ack), "no round");
		CHECK_EQ(p.rounds, i);
	}
	CHECK(prague_is_rtt_independent(&p, &prague_defaults), "not after 4 rounds");
	for (i = 0; i < 10; i++) {
		ack = prague_ack_of(&p, 1, 0, 30000 * (i + 1));
		ack.round_ended = true;
		CHECK(prague_take(&p, &ack), "no round");
		CHECK_EQ(p.rounds, 4);
	}
}

/*
 * Robustness.
 */

/* An ACK, and what holds after any. */
static void prague_check_ack(struct prague *p, const struct prague_params *params,
			     const struct prague_ack *ack, u32 *cwnd, u32 cwnd_most, u32 mss)
{
	u64 most_q32 = cwnd_most < PRAGUE_MOST_CWND ? cwnd_most : PRAGUE_MOST_CWND;
	u32 rtt, burst;
	u64 rate;

	prague_on_ack(p, params, ack, *cwnd, cwnd_most, mss);
	if (most_q32 < 2)
		most_q32 = 2;
	most_q32 <<= 32;
	CHECK(p->window_q32 >= prague_least_window_q32(p, params, mss) &&
	      p->window_q32 <= most_q32, "window %llu", (ull)p->window_q32);
	CHECK(p->window_q32 >= PRAGUE_LEAST, "window %llu", (ull)p->window_q32);
	CHECK(p->alpha_q24 <= 1 << 24, "alpha %u", p->alpha_q24);
	CHECK(p->classic_score <= 2 * PRAGUE_CLASSIC_LOOKS_MOST &&
	      p->look_samples <= PRAGUE_LOOK_SAMPLES, "score %u", p->classic_score);
	CHECK(!p->slow_start || !p->saw_ce, "slow start after a mark");
	rtt = prague_rtt_us(p);
	CHECK(rtt >= 1 && rtt <= PRAGUE_RTT_MOST_US, "RTT %u", rtt);
	CHECK(p->cut_us <= ack->now_us && p->round_us <= ack->now_us, "times");
	*cwnd = prague_next_cwnd(p, *cwnd, ack->acked);
	CHECK(*cwnd >= 2 && *cwnd <= PRAGUE_MOST_CWND + 1, "cwnd %u", *cwnd);
	rate = prague_rate_bytes_ps(p, *cwnd, mss);
	CHECK(rate >= 1 && rate < 1ULL << 62, "rate %llu", (ull)rate);
	burst = prague_burst_pkts(rate, mss);
	CHECK(burst >= 1 && burst <= 65535, "burst %u", burst);
}

UNIT_TEST(prague_random_acks_keep_the_invariants)
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
			.late_cut = unit_rnd() & 1,
			.classic_queue_us = unit_any(0, 1000000),
			.classic_looks = unit_any(1, PRAGUE_CLASSIC_LOOKS_MOST),
		};
		u32 cwnd_most = unit_any(0, U32_MAX);
		u32 mss = unit_any(88, 65535);
		u64 before;
		u32 losses;

		/* mostly plausible, so that windows are of every size */
		ack.now_us += unit_any(0, 1000000);
		ack.acked = unit_any(0, unit_rnd() % 8 ? 64 : U32_MAX);
		ack.delivered += unit_rnd() % 8 ? ack.acked : unit_any(0, U32_MAX);
		if (unit_rnd() % 4 == 0)
			ack.ce += unit_any(0, unit_rnd() % 4 ? 64 : U32_MAX);
		ack.rtt_us = (s32)unit_any(0, U32_MAX);
		ack.least_rtt_us = unit_any(0, U32_MAX);
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
		prague_check_ack(&p, &params, &ack, &cwnd, cwnd_most, mss);
	}
}
