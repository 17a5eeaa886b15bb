// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague at a Classic-ECN bottleneck: what a look concludes, when the response
 * changes, and what it is then.
 */
#include "prague_test.h"

#define PRAGUE_BASE_US	20000	/* shortest RTT of the path */

/* Shortest standing queue, us, that is Classic with 100 packets in an RTT of 30 ms: 600 us are 2 packets */
#define PRAGUE_STANDS	(PRAGUE_CLASSIC_QUEUE_US + 600)

/* What a look of the tests finds */
enum prague_found { PRAGUE_IS_CLASSIC, PRAGUE_IS_L4S, PRAGUE_IS_OPEN };

/* A look of 8 samples: the shortest RTT and that of the mark are so much longer than the path's. */
static void prague_look_at(struct prague *p, const struct prague_params *params, s32 floor_us,
			   s32 marked_us)
{
	int i;

	for (i = 0; i < 8; i++)
		prague_look(p, PRAGUE_BASE_US + (i == 5 ? floor_us : marked_us), i == 2);
	prague_end_look(p, params, PRAGUE_BASE_US);
}

static void prague_find(struct prague *p, enum prague_found found)
{
	static const s32 queues_us[][2] = {
		[PRAGUE_IS_CLASSIC] = { PRAGUE_STANDS, PRAGUE_STANDS },
		[PRAGUE_IS_L4S] = { 0, PRAGUE_CLASSIC_QUEUE_US - 1 },
		[PRAGUE_IS_OPEN] = { PRAGUE_STANDS - 1, PRAGUE_STANDS },
	};

	prague_look_at(p, &prague_defaults, queues_us[found][0], queues_us[found][1]);
}

/* In avoidance, with 100 packets in an RTT of 30 ms. */
static struct prague prague_standing(void)
{
	return prague_state(100 * PRAGUE_PKT, 30000);
}

/* ... and its marks are taken for Classic ones, after as few looks as that needs. */
static struct prague prague_classic(void)
{
	struct prague p = prague_standing();
	int i;

	for (i = 0; i < PRAGUE_CLASSIC_LOOKS; i++)
		prague_find(&p, PRAGUE_IS_CLASSIC);
	return p;
}

UNIT_TEST(prague_classic_is_what_has_a_standing_queue_in_8_looks)
{
	struct prague p = prague_standing();
	int i;

	for (i = 1; i < PRAGUE_CLASSIC_LOOKS; i++) {
		prague_find(&p, PRAGUE_IS_CLASSIC);
		CHECK_EQ(p.classic_score, i);
		CHECK(!p.is_classic, "after %d looks", i);
	}
	prague_find(&p, PRAGUE_IS_CLASSIC);
	CHECK(p.is_classic, "not after 8 looks");
	CHECK_EQ(p.classic_score, 8);
}

UNIT_TEST(prague_classic_needs_a_queue_of_its_limit)
{
	static const struct {
		u64 window_q32;
		u32 rtt_us, queue_us, limit_us;
	} cases[] = {
		{ 100 * PRAGUE_PKT, 30000, 3000, 3600 },
		{ 100 * PRAGUE_PKT, 30000, 1, 601 },
		{ 100 * PRAGUE_PKT, 30000, 1000000, 1000600 },
		/* a flow of two packets in an RTT cannot tell */
		{ 2 * PRAGUE_PKT, 30000, 3000, 33000 },
		{ PRAGUE_PKT / 2, 30000, 3000, 123000 },
		{ PRAGUE_MOST_CWND * PRAGUE_PKT, 30000, 3000, 3000 },
	};
	struct prague_params params = prague_defaults;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 limit_us = cases[i].limit_us;
		struct prague p = prague_state(cases[i].window_q32, cases[i].rtt_us);

		params.classic_queue_us = cases[i].queue_us;
		CHECK_EQ(prague_classic_limit_us(&p, &params), limit_us);
		prague_look_at(&p, &params, limit_us - 1, limit_us);
		CHECK_EQ(p.classic_score, 0);
		prague_look_at(&p, &params, limit_us, limit_us);
		CHECK_EQ(p.classic_score, 1);
	}
	/* the longest RTT and the smallest window */
	{
		struct prague p = prague_state(PRAGUE_LEAST, PRAGUE_RTT_MOST_US);

		CHECK_EQ(prague_classic_limit_us(&p, &prague_defaults),
			 3000 + 512ULL * PRAGUE_RTT_MOST_US);
	}
}

/* One packet that waited less shows that the queue was not standing: so jitter is none. */
UNIT_TEST(prague_classic_goes_by_the_shortest_rtt_of_a_look)
{
	struct prague p = prague_standing();
	int i;

	for (i = 0; i < 1000; i++)
		prague_look_at(&p, &prague_defaults, unit_between(0, PRAGUE_STANDS - 1),
			       unit_between(PRAGUE_STANDS, 1000000));
	CHECK_EQ(p.classic_score, 0);
	CHECK(!p.is_classic, "by jitter");
}

UNIT_TEST(prague_classic_look_without_a_mark_finds_nothing)
{
	static const u32 scores[] = { 0, 1, 7, 15 };
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(scores); i++) {
		for (j = 0; j < 2; j++) {
			struct prague p = prague_standing();

			p.classic_score = scores[i];
			for (k = 0; k < 8; k++)
				prague_look(&p, PRAGUE_BASE_US + j * 50000, false);
			prague_end_look(&p, &prague_defaults, PRAGUE_BASE_US);
			CHECK_EQ(p.classic_score, scores[i]);
			CHECK_EQ(p.look_samples, 0);
		}
	}
}

/* A mark whose ACK has no RTT is one all the same. */
UNIT_TEST(prague_classic_mark_without_an_rtt_counts)
{
	struct prague p = prague_standing();
	unsigned int i;

	prague_look(&p, 0, true);
	prague_look(&p, -1, true);
	CHECK_EQ(p.look_samples, 0);
	for (i = 0; i < 8; i++)
		prague_look(&p, PRAGUE_BASE_US + PRAGUE_STANDS, false);
	prague_end_look(&p, &prague_defaults, PRAGUE_BASE_US);
	CHECK_EQ(p.classic_score, 1);
	/* ... but nothing is known of the queue that it met. */
	prague_look(&p, 0, true);
	for (i = 0; i < 8; i++)
		prague_look(&p, PRAGUE_BASE_US, false);
	prague_end_look(&p, &prague_defaults, PRAGUE_BASE_US);
	CHECK_EQ(p.classic_score, 1);
}

UNIT_TEST(prague_classic_look_goes_on_until_it_has_8_samples)
{
	struct prague p = prague_standing();
	unsigned int i;

	prague_look(&p, PRAGUE_BASE_US + PRAGUE_STANDS, true);
	for (i = 0; i < 6; i++) {
		prague_look(&p, PRAGUE_BASE_US + PRAGUE_STANDS, false);
		prague_end_look(&p, &prague_defaults, PRAGUE_BASE_US);
		CHECK_EQ(p.classic_score, 0);
		CHECK_EQ(p.look_samples, i + 2);
	}
	prague_look(&p, PRAGUE_BASE_US + PRAGUE_STANDS, false);
	prague_end_look(&p, &prague_defaults, PRAGUE_BASE_US);
	CHECK_EQ(p.classic_score, 1);
	/* and the next begins with nothing of it */
	CHECK(!p.look_has_ce, "a mark");
	CHECK_EQ(p.look_samples, 0);
	CHECK_EQ(p.look_floor_us, U32_MAX);
	CHECK_EQ(p.look_marked_us, U32_MAX);
	/* However many samples there are, they are counted as 8. */
	for (i = 0; i < 1000; i++)
		prague_look(&p, 1, false);
	CHECK_EQ(p.look_samples, 8);
}

UNIT_TEST(prague_classic_ends_after_as_many_looks_with_a_mark_in_a_short_queue)
{
	struct prague p = prague_classic();
	int i;

	/* A mark in a queue of 3 ms says nothing. */
	for (i = 0; i < 100; i++) {
		prague_look_at(&p, &prague_defaults, 0, PRAGUE_CLASSIC_QUEUE_US);
		CHECK_EQ(p.classic_score, 8);
	}
	for (i = 7; i > 0; i--) {
		prague_find(&p, PRAGUE_IS_L4S);
		CHECK_EQ(p.classic_score, i);
		CHECK(p.is_classic, "not at %d", i);
	}
	prague_find(&p, PRAGUE_IS_L4S);
	CHECK_EQ(p.classic_score, 0);
	CHECK(!p.is_classic, "still");
	prague_find(&p, PRAGUE_IS_L4S);
	CHECK_EQ(p.classic_score, 0);
	/* ... and begins only after 8 again. */
	for (i = 0; i < 7; i++)
		prague_find(&p, PRAGUE_IS_CLASSIC);
	CHECK(!p.is_classic, "after 7 looks");
}

UNIT_TEST(prague_classic_score_is_at_most_twice_the_looks)
{
	static const u32 looks[] = { 1, 8, 127 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(looks); i++) {
		struct prague_params params = prague_defaults;
		struct prague p = prague_standing();

		params.classic_looks = looks[i];
		for (j = 1; j < 600; j++) {
			prague_look_at(&p, &params, PRAGUE_STANDS, PRAGUE_STANDS);
			CHECK_EQ(p.is_classic, j >= looks[i]);
			CHECK_EQ(p.classic_score, j < 2 * looks[i] ? j : 2 * looks[i]);
		}
		for (j = 1; j <= 2 * looks[i]; j++) {
			CHECK(p.is_classic, "not after %u looks", j - 1);
			prague_look_at(&p, &params, 0, 0);
		}
		CHECK(!p.is_classic, "still");
	}
}

/* Whatever looks find: between two changes of the response there are at least 8 that say the same. */
UNIT_TEST(prague_classic_does_not_flap)
{
	struct prague p = prague_standing();
	int i, same = 0, changes = 0;

	for (i = 0; i < 1000000; i++) {
		/* mostly one or the other, for some time, or as often the one as the other */
		u32 mood = i / 200 % 3;
		enum prague_found found = unit_rnd() % 8 == 0	? PRAGUE_IS_OPEN :
					  unit_rnd() % 8 < mood + 3 ? PRAGUE_IS_CLASSIC :
								  PRAGUE_IS_L4S;
		bool was = p.is_classic;

		same += found == (was ? PRAGUE_IS_L4S : PRAGUE_IS_CLASSIC);
		prague_find(&p, found);
		if (p.is_classic != was) {
			CHECK(same >= 8, "after %d looks", same);
			same = 0;
			changes++;
		}
	}
	CHECK(changes > 100, "%d changes", changes);
	/* As often the one as the other changes nothing. */
	for (p = prague_standing(), i = 0; i < 10000; i++) {
		prague_find(&p, i & 1 ? PRAGUE_IS_L4S : PRAGUE_IS_CLASSIC);
		CHECK(!p.is_classic, "after %d", i);
	}
	for (p = prague_classic(), i = 0; i < 10000; i++) {
		prague_find(&p, i & 1 ? PRAGUE_IS_CLASSIC : PRAGUE_IS_L4S);
		CHECK(p.is_classic, "after %d", i);
	}
}

UNIT_TEST(prague_classic_is_not_looked_for_without_a_limit)
{
	struct prague_params params = prague_defaults;
	struct prague p = prague_standing();
	int i;

	params.classic_queue_us = 0;
	for (i = 0; i < 100; i++)
		prague_look_at(&p, &params, 100000, 100000);
	CHECK_EQ(p.classic_score, 0);
	CHECK(!p.is_classic, "looked for");
	/* ... and ends if it is switched off, with the next look. */
	p = prague_classic();
	prague_look_at(&p, &params, 100000, 100000);
	CHECK_EQ(p.classic_score, 0);
	CHECK(!p.is_classic, "still");
}

/* The path's shortest RTT is not known, or longer than what was measured. */
UNIT_TEST(prague_classic_is_none_where_the_path_is_not_known)
{
	static const u32 leasts_us[] = { U32_MAX, 1 << 30, 70001 - PRAGUE_STANDS };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(leasts_us); i++) {
		struct prague p = prague_standing();

		for (j = 0; j < 8; j++)
			prague_look(&p, 70000, !j);
		prague_end_look(&p, &prague_defaults, leasts_us[i]);
		CHECK_EQ(p.classic_score, 0);
		for (j = 0; j < 8; j++)
			prague_look(&p, 70000, !j);
		prague_end_look(&p, &prague_defaults, 70000 - PRAGUE_STANDS);
		CHECK_EQ(p.classic_score, 1);
	}
}

/* ACKs are what fills a look, and rounds are what ends it. */
UNIT_TEST(prague_classic_is_found_by_acks)
{
	struct prague p = prague_standing();
	struct prague_ack ack = prague_ack_of(&p, 0, 0, 0);
	int round, i;

	ack.least_rtt_us = PRAGUE_BASE_US;
	ack.limited = false;
	ack.acked = 10;
	for (round = 1; round <= 8; round++) {
		for (i = 0; i < 10; i++) {
			ack.now_us += 3000;
			ack.delivered += 10;
			ack.ce += i == 5;
			ack.rtt_us = PRAGUE_BASE_US + 10000 + (i == 5) * 5000;
			ack.round_ended = i == 9;
			CHECK_EQ(prague_take(&p, &ack), i == 9);
			CHECK_EQ(p.look_marked_us, i < 5 || i == 9 ? U32_MAX : 35000);
		}
		CHECK_EQ(p.classic_score, round);
	}
	CHECK(p.is_classic, "not found");
}

/*
 * The response.
 */

UNIT_TEST(prague_classic_mark_halves_once_an_rtt_whatever_alpha_is)
{
	static const u32 rtts_us[] = { 1000, 24999, 60000 };
	static const u32 alphas_q24[] = { 0, 1 << 20, 1 << 24 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rtts_us); i++) {
		for (j = 0; j < ARRAY_SIZE(alphas_q24); j++) {
			struct prague p = prague_state(64 * PRAGUE_PKT, rtts_us[i]);
			struct prague_ack ack;

			p.is_classic = true;
			p.alpha_q24 = alphas_q24[j];
			CHECK_EQ(prague_interval_us(&p, &prague_defaults), rtts_us[i]);
			CHECK_EQ(prague_window_after(p, 1, 1, rtts_us[i] - 1), 64 * PRAGUE_PKT);
			ack = prague_ack_of(&p, 5, 5, rtts_us[i]);
			prague_take(&p, &ack);
			CHECK_EQ(p.window_q32, 32 * PRAGUE_PKT);
			CHECK_EQ(p.cut_us, ack.now_us);
			CHECK_EQ(prague_window_after(p, 1, 1, rtts_us[i] - 1), 32 * PRAGUE_PKT);
			CHECK_EQ(prague_window_after(p, 1, 1, rtts_us[i]), 16 * PRAGUE_PKT);
			/* what the stack allows is what is halved */
			ack = prague_ack_of(&p, 1, 1, rtts_us[i]);
			prague_on_ack(&p, &prague_defaults, &ack, 10, PRAGUE_MOST_CWND, PRAGUE_MSS);
			CHECK_EQ(p.window_q32, 5 * PRAGUE_PKT);
		}
	}
}

UNIT_TEST(prague_classic_increase_is_a_packet_per_rtt_below_the_virtual_one)
{
	struct prague p = prague_state(10 * PRAGUE_PKT, 5000);

	CHECK(prague_window_after(p, 10, 0, 1) < 10 * PRAGUE_PKT + PRAGUE_PKT / 20, "L4S");
	p.is_classic = true;
	CHECK_NEAR(prague_window_after(p, 10, 0, 1), 11 * PRAGUE_PKT, PRAGUE_PKT / 1000);
}

UNIT_TEST(prague_classic_window_stays_while_the_rtt_changes)
{
	struct prague p = prague_state(10 * PRAGUE_PKT, 5000), classic = p;

	classic.is_classic = true;
	prague_add_rtt(&p, &prague_defaults, 15000);
	CHECK(p.window_q32 > 12 * PRAGUE_PKT, "L4S: %llu", (ull)p.window_q32);
	prague_add_rtt(&classic, &prague_defaults, 15000);
	CHECK_EQ(classic.window_q32, 10 * PRAGUE_PKT);
}

/* alpha goes on to be averaged, so that the response after it is that of the marks that come. */
UNIT_TEST(prague_classic_keeps_alpha)
{
	struct prague p = prague_classic(), l4s = prague_standing();
	struct prague_ack ack = prague_ack_of(&p, 0, 0, 0);
	int i;

	ack.round_ended = true;
	for (i = 0; i < 100; i++) {
		ack.now_us += 30000;
		ack.delivered += 20;
		ack.ce += i & 3;
		prague_take(&p, &ack);
		prague_take(&l4s, &ack);
		CHECK_EQ(p.alpha_q24, l4s.alpha_q24);
	}
	CHECK(p.is_classic && p.alpha_q24, "alpha %u", p.alpha_q24);
}
