// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague's answer to losses and idle times; and senders on a marker of a fixed
 * probability, in virtual time, which settle where theory says.
 */
#include "prague_test.h"

UNIT_TEST(prague_loss_halves_what_was_allowed_and_ends_slow_start)
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
UNIT_TEST(prague_loss_after_loss_leaves_two_packets)
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

UNIT_TEST(prague_undo_restores_window_and_slow_start)
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

UNIT_TEST(prague_undo_of_a_series_restores_what_was_before_the_first)
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

UNIT_TEST(prague_marks_cut_in_loss_too)
{
	struct prague p = prague_state(64 * PRAGUE_PKT, 50000);

	p.alpha_q24 = 1 << 24;
	p.in_loss = true;
	CHECK_EQ(prague_window_after(p, 9, 1, 50000), 32 * PRAGUE_PKT);
}

UNIT_TEST(prague_first_mark_in_a_loss_halves_no_more)
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

UNIT_TEST(prague_larger_mss_leaves_the_bytes)
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

UNIT_TEST(prague_larger_mss_during_a_loss_is_undone_in_bytes)
{
	struct prague p = prague_state(24 * PRAGUE_PKT, 20000);

	prague_on_loss(&p, 24);
	prague_on_larger_mss(&p, 512, 2048);
	CHECK_EQ(p.window_q32, 3 * PRAGUE_PKT);
	prague_undo(&p);
	CHECK_EQ(p.window_q32, 6 * PRAGUE_PKT);
}

UNIT_TEST(prague_after_idle_the_next_cut_is_that_of_one_interval)
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
UNIT_TEST(prague_after_idle_in_the_first_interval_of_time_is_its_begin)
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
		.least_rtt_us = f->rtt_us,
		.limited = true,
	};

	f->ce += f->marked[f->snd_una++ % PRAGUE_FLIGHT];
	ack.delivered = f->snd_una;
	ack.ce = f->ce;
	ack.round_ended = (s32)(f->snd_una - f->next_seq) >= 0;
	if (prague_on_ack(&f->p, params, &ack, f->cwnd, PRAGUE_MOST_CWND, PRAGUE_MSS))
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

/* marking probabilities, and how many of them are below a half */
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

/*
 * The reference's curve, packets per round; the head of prague.h derives it.  Evenly marked, x^2 is
 * 2 (1 - p) times the marks per decrease, two or three, as it has begun.
 */
static double prague_least_pkts(double prob, bool even)
{
	double not = 1 - prob;

	return (even ? sqrt(4 * not) : not + sqrt(not * not + 2 * not)) / prob;
}

static double prague_most_pkts(double prob, bool even)
{
	return even ? sqrt(6 * (1 - prob)) / prob : prague_least_pkts(prob, false);
}

static void prague_alone_settles_at(const u32 *rtts_us, unsigned int count, unsigned int probs,
				    bool even)
{
	unsigned int i, j;

	for (j = 0; j < probs; j++) {
		for (i = 0; i < count; i++) {
			u32 round_us = rtts_us[i] < 25000 ? 25000 : rtts_us[i];
			double prob = prague_probs[j], mbit = 12000.0 / round_us, got;
			double least = 0.9 * mbit * prague_least_pkts(prob, even);
			double most = 1.1 * mbit * prague_most_pkts(prob, even);
			struct prague_marker m = { .prob_q32 = prob * ONE, .even = even };
			u64 took_ns;

			prague_flows[0].rtt_us = rtts_us[i];
			took_ns = prague_simulate(1, &m, prague_pkts_of(prob));
			got = prague_window_mbit(&prague_flows[0], took_ns);
			CHECK(got >= least && got <= most,
			      "%u us, p %g: W / R %g, not %g to %g Mbit/s",
			      rtts_us[i], prob, got, least, most);
			if (prob >= 0.5)
				continue;
			/* Else packets are further apart than the RTT, and wait for the rate before. */
			got = prague_sent_mbit(&prague_flows[0], took_ns);
			CHECK(got >= least && got <= most,
			      "%u us, p %g: %g sent, not %g to %g Mbit/s",
			      rtts_us[i], prob, got, least, most);
		}
	}
}

static const u32 prague_short_rtts_us[] = { 5000, 10000, 20000, 25000 };
static const u32 prague_long_rtts_us[] = { 100000 };

UNIT_TEST(prague_alone_on_random_marks_settles_at_the_reference_curve)
{
	prague_alone_settles_at(prague_short_rtts_us, 4, PRAGUE_MODEST, false);
}

UNIT_TEST(prague_alone_on_even_marks_settles_at_the_reference_curve)
{
	prague_alone_settles_at(prague_short_rtts_us, 4, PRAGUE_MODEST, true);
}

UNIT_TEST(prague_alone_at_a_long_rtt_on_random_marks_settles_at_the_reference_curve)
{
	prague_alone_settles_at(prague_long_rtts_us, 1, ARRAY_SIZE(prague_probs), false);
}

UNIT_TEST(prague_alone_at_a_long_rtt_on_even_marks_settles_at_the_reference_curve)
{
	prague_alone_settles_at(prague_long_rtts_us, 1, PRAGUE_MODEST, true);
}

/*
 * Where every second packet is marked, that is three packets in 25 ms, which a flow meets less well
 * below 20 ms: 12 % too few at 10 ms and 16 % at 5 ms.  The window is often below R / R_virt there,
 * where prague_increase() slows its growth.
 */
UNIT_TEST(prague_alone_half_of_it_marked_at_random_settles_near_the_reference_curve)
{
	double want = prague_least_pkts(0.5, false);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(prague_short_rtts_us); i++) {
		double off = prague_short_rtts_us[i] < 20000 ? 0.2 : 0.1, got;
		struct prague_marker m = { .prob_q32 = ONE / 2 };

		prague_flows[0].rtt_us = prague_short_rtts_us[i];
		got = prague_window_mbit(&prague_flows[0],
					 prague_simulate(1, &m, prague_pkts_of(0.5)));
		got *= 25000 / 12000.0;
		CHECK(fabs(got / want - 1) <= off, "%u us: %g, not %g packets",
		      prague_short_rtts_us[i], got, want);
	}
}

UNIT_TEST(prague_alone_half_of_it_marked_evenly_settles_near_the_reference_curve)
{
	double least = 0.8 * prague_least_pkts(0.5, true), most = 1.2 * prague_most_pkts(0.5, true);
	static const u32 rtts_us[] = { 1000, 5000, 10000, 20000, 25000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rtts_us); i++) {
		struct prague_marker m = { .prob_q32 = ONE / 2, .even = true };
		double got;

		prague_flows[0].rtt_us = rtts_us[i];
		got = prague_window_mbit(&prague_flows[0],
					 prague_simulate(1, &m, prague_pkts_of(0.5)));
		got *= 25000 / 12000.0;
		CHECK(got >= least && got <= most, "%u us: %g, not %g to %g packets",
		      rtts_us[i], got, least, most);
	}
}

/* 20 to 1 it would be without independence of the RTT. What is sent: see above. */
UNIT_TEST(prague_flows_of_1_and_20_ms_share_equally)
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
