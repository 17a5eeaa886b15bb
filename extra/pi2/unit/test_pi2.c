// SPDX-License-Identifier: GPL-2.0-only
/*
 * PI2 in one queue: the paper's numbers, formula (4) with both squares, the caps, and
 * that PIE's heuristics are not there.
 *
 * What is expected is computed in long double.
 */
#include "pi2.h"

#define PI2_LONG	1000000ULL	/* bytes that wait: enough for a signal */
#define PI2_NEAR	0.000001L	/* difference of probabilities that is none */

static struct pi2_config pi2_config(void)
{
	struct pi2_config cfg;

	memset(&cfg, 0xa5, sizeof(cfg));
	pi2_config_init(&cfg);
	return cfg;
}

static struct dualpi2_params pi2_params(const struct pi2_config *cfg)
{
	struct dualpi2_params p;

	memset(&p, 0xa5, sizeof(p));
	pi2_params_init(&p, cfg);
	return p;
}

static struct dualpi2_params pi2_params_k(u8 coupling)
{
	struct pi2_config cfg = pi2_config();

	cfg.coupling = coupling;
	return pi2_params(&cfg);
}

/* State with this p', or its cap. */
static struct dualpi2_vars pi2_vars(const struct dualpi2_params *p, u64 base_q32)
{
	struct dualpi2_vars v = unit_vars(p);

	v.base_q32 = base_q32;
	dualpi2_vars_derive(p, &v, 0);
	return v;
}

static enum dualpi2_verdict pi2_take(const struct dualpi2_params *p, struct dualpi2_vars *v,
				     enum dualpi2_ecn ecn, u64 rnd)
{
	const struct pi2_packet pkt = {
		.ecn = ecn,
		.ecn_is_on = true,
		.may_drop = true,
		.backlog_bytes = PI2_LONG,
		.mtu_bytes = 1514,
		.rnd = rnd,
	};

	return pi2_verdict(p, v, &pkt);
}

UNIT_TEST(pi2_defaults_are_the_papers)
{
	struct pi2_config cfg = pi2_config();

	/* Figure 7: 0.3125 and 3.125, T of 32 ms; table 1: 20 ms; section 4: k of 2. */
	CHECK_EQ(cfg.alpha * 10000ULL / 256, 3125);
	CHECK_EQ(cfg.beta * 1000ULL / 256, 3125);
	CHECK_EQ(cfg.tupdate_us, 32000);
	CHECK_EQ(cfg.target_us, 20000);
	CHECK_EQ(cfg.coupling, 2);
	CHECK_EQ(cfg.limit_pkts, 10000);
	CHECK_EQ(cfg.signal, DUALPI2_SIGNAL_RECUR);
	CHECK_EQ(cfg.ecn, true);
	CHECK_EQ(cfg.drop_enqueue, false);
	CHECK_EQ(cfg.square, true);
}

UNIT_TEST(pi2_params_hold_every_knob)
{
	struct pi2_config cfg = {
		.limit_pkts = 1,
		.target_us = 7,
		.tupdate_us = 1100,
		.alpha = 256,
		.beta = 512,
		.coupling = 3,
		.signal = DUALPI2_SIGNAL_RANDOM,
	};
	struct dualpi2_params p = pi2_params(&cfg);

	CHECK_EQ(p.target_ns, 7000);
	CHECK_EQ(p.tupdate_ns, 1100000);
	CHECK_EQ(p.alpha_gain, dualpi2_gain(256));
	CHECK_EQ(p.beta_gain, dualpi2_gain(512));
	CHECK_EQ(p.coupling, 3);
	CHECK_EQ(p.random, true);
	CHECK_EQ(p.drop_overload, false);
	CHECK_EQ(p.drop_early, false);
	CHECK_EQ(p.report_ns, 0);
	CHECK_EQ(p.link.ns_per_byte_q20, 0);
	cfg.signal = DUALPI2_SIGNAL_RECUR;
	CHECK_EQ(pi2_params(&cfg).random, false);
}

UNIT_TEST(pi2_profile_of_each_codepoint)
{
	CHECK_EQ(pi2_profile(DUALPI2_ECN_NOT_ECT, true), DUALPI2_C_DROP);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_NOT_ECT, false), DUALPI2_C_DROP);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_ECT0, true), DUALPI2_C_MARK);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_ECT0, false), DUALPI2_C_DROP);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_ECT1, true), DUALPI2_C_SCALABLE);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_ECT1, false), DUALPI2_C_SCALABLE);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_CE, true), DUALPI2_C_SCALABLE);
	CHECK_EQ(pi2_profile(DUALPI2_ECN_CE, false), DUALPI2_C_SCALABLE);
}

/* p' after each of many updates at random delays is that of the formula; p_s and p_c
 * are k p' and its square.
 */
UNIT_TEST(pi2_updates_follow_the_formula_up_to_the_cap)
{
	unsigned int round, i, capped = 0, between = 0;

	for (round = 0; round < 200; round++) {
		struct pi2_config cfg = pi2_config();
		long double want = 0, delay, last = 0, cap;
		struct dualpi2_params p;
		struct dualpi2_vars v;
		u64 now_ns = 0, delay_ns;

		cfg.coupling = unit_between(1, 5);
		cfg.alpha = unit_between(1, 200);
		cfg.beta = unit_between(1, 2000);
		p = pi2_params(&cfg);
		v = unit_vars(&p);
		cap = 1.0L / cfg.coupling;
		for (i = 0; i < 100; i++) {
			delay_ns = unit_between(0, 60 * MS);
			now_ns += p.tupdate_ns;
			CHECK(dualpi2_pi_is_due(&v, now_ns), "update %u", i);
			dualpi2_pi_update(&p, &v, delay_ns, now_ns);
			delay = delay_ns / 1e9L;
			want += cfg.alpha / 256.0L * (delay - 0.020L) +
				cfg.beta / 256.0L * (delay - last);
			last = delay;
			want = want < 0 ? 0 : want > cap ? cap : want;
			CHECK(fabsl(v.base_q32 - want * ONE) < 1000,
			      "p' %llu, want %.1Lf", (ull)v.base_q32, want * ONE);
			CHECK(fabsl(v.classic_q32 - want * want * ONE) < 2000,
			      "p_c %llu, want %.1Lf", (ull)v.classic_q32,
			      want * want * ONE);
			CHECK(fabsl(v.coupled_q32 - cfg.coupling * want * ONE) < 5000,
			      "p_s %llu, want %.1Lf", (ull)v.coupled_q32,
			      cfg.coupling * want * ONE);
			capped += want == cap;
			between += want > 0 && want < cap;
		}
	}
	CHECK(capped > 1000 && between > 1000, "%u at the cap, %u between", capped, between);
}

UNIT_TEST(pi2_caps_are_1_and_1_over_k_squared)
{
	unsigned int k, i;

	for (k = 1; k <= 255; k++) {
		struct dualpi2_params p = pi2_params_k(k);
		struct dualpi2_vars v = unit_vars(&p);

		for (i = 1; i <= 2000; i++)
			dualpi2_pi_update(&p, &v, 4 * SEC, i * 32 * MS);
		CHECK_EQ(v.coupled_q32, ONE);
		CHECK_NEAR(v.base_q32, (ONE + k - 1) / k, 0);
		CHECK(fabsl(v.classic_q32 - (long double)ONE / k / k) <= 2, "k %u: p_c %llu", k, (ull)v.classic_q32);
		CHECK(v.overload, "k %u: not told as capped", k);
	}
}

/* The knob alone has another p' be held, at once. */
UNIT_TEST(pi2_coupling_changed_moves_the_cap)
{
	struct dualpi2_params p = pi2_params_k(2), q = pi2_params_k(4);
	struct dualpi2_vars v = pi2_vars(&p, ONE / 2);

	CHECK_EQ(v.base_q32, ONE / 2);
	dualpi2_vars_derive(&q, &v, 0);
	CHECK_EQ(v.base_q32, ONE / 4);
	CHECK_EQ(v.classic_q32, ONE / 16);
	CHECK_EQ(v.coupled_q32, ONE);
}

/* p_c is p', p_s is k p', and p' ends at 1/k as with the square. */
UNIT_TEST(pi2_without_the_square_is_linear_up_to_the_same_cap)
{
	struct pi2_config cfg = pi2_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;
	unsigned int i, k;

	cfg.square = false;
	for (k = 1; k <= 255; k++) {
		cfg.coupling = k;
		p = pi2_params(&cfg);
		v = unit_vars(&p);
		for (i = 1; i <= 2000; i++) {
			dualpi2_pi_update(&p, &v, unit_between(0, 50 * MS), i * 32 * MS);
			pi2_set_classic(&cfg, &v);
			CHECK_EQ(v.classic_q32, v.base_q32);
			CHECK_EQ(v.coupled_q32, v.base_q32 * k < ONE ? v.base_q32 * k : ONE);
		}
		dualpi2_pi_update(&p, &v, 4 * SEC, i * 32 * MS);
		pi2_set_classic(&cfg, &v);
		CHECK_EQ(v.classic_q32, (ONE + k - 1) / k);
		CHECK_EQ(v.coupled_q32, ONE);
	}
}

/* Signals of many packets of each kind, mixed at random. */
static void pi2_count(bool random, bool square)
{
	static const unsigned int permille[] = { 1, 10, 50, 125, 250, 400, 499, 500 };
	struct pi2_config cfg = pi2_config();
	struct dualpi2_params p;
	unsigned int i, n;

	cfg.signal = random ? DUALPI2_SIGNAL_RANDOM : DUALPI2_SIGNAL_RECUR;
	cfg.square = square;
	p = pi2_params(&cfg);
	for (i = 0; i < ARRAY_SIZE(permille); i++) {
		long double base = permille[i] / 1000.0L;
		struct dualpi2_vars v = pi2_vars(&p, base * ONE);
		long double classic = square ? base * base : base;
		const long double probability[4] = { classic, 2 * base, classic, 0 };
		unsigned int packets[4] = {}, signals[4] = {};

		pi2_set_classic(&cfg, &v);
		for (n = 0; n < 400000; n++) {
			enum dualpi2_ecn ecn = unit_rnd() % 4;
			enum dualpi2_verdict verdict = pi2_take(&p, &v, ecn, unit_rnd());
			enum dualpi2_verdict own = ecn == DUALPI2_ECN_NOT_ECT ?
				DUALPI2_DROP_AQM : ecn == DUALPI2_ECN_ECT1 ?
				DUALPI2_MARK_COUPLED : DUALPI2_MARK_CLASSIC;

			CHECK(verdict == DUALPI2_PASS || verdict == own, "codepoint %u: verdict %u", ecn, verdict);
			packets[ecn]++;
			signals[ecn] += verdict != DUALPI2_PASS;
		}
		for (n = 0; n < 4; n++) {
			long double want = packets[n] * probability[n];
			long double slack = 2 + 5 * sqrtl(want * (1 - probability[n]));

			CHECK(fabsl(signals[n] - want) <= slack,
			      "p' %.3Lf, codepoint %u: %u signals, want %.1Lf +- %.1Lf",
			      base, n, signals[n], want, slack);
			/* ECT(1) has its spacer to itself. */
			if (n == DUALPI2_ECN_ECT1 && !random)
				CHECK(fabsl(signals[n] - want) <= 2, "%u, want %.1Lf", signals[n], want);
		}
	}
}

UNIT_TEST(pi2_signals_evenly_spaced_follow_the_law)
{
	pi2_count(false, true);
	pi2_count(false, false);
}

UNIT_TEST(pi2_signals_at_random_follow_the_law)
{
	pi2_count(true, true);
	pi2_count(true, false);
}

/* With CE among them or without, each other packet gets the same verdict. */
UNIT_TEST(pi2_ce_has_no_part_in_signals)
{
	struct dualpi2_params p = pi2_params_k(2);
	struct dualpi2_vars with = pi2_vars(&p, ONE / 3), without = with;
	unsigned int i, signals = 0;

	for (i = 0; i < 100000; i++) {
		enum dualpi2_ecn ecn = unit_rnd() % 4;
		u64 rnd = unit_rnd();
		enum dualpi2_verdict verdict = pi2_take(&p, &with, ecn, rnd);

		if (ecn == DUALPI2_ECN_CE)
			CHECK_EQ(verdict, DUALPI2_PASS);
		else
			CHECK_EQ(verdict, pi2_take(&p, &without, ecn, rnd));
		signals += verdict != DUALPI2_PASS;
	}
	CHECK(signals > 10000, "%u signals", signals);
}

UNIT_TEST(pi2_noecn_drops_ect0_alone)
{
	struct dualpi2_params p = pi2_params_k(1);
	struct dualpi2_vars v = pi2_vars(&p, ONE);
	struct pi2_packet pkt = {
		.ecn = DUALPI2_ECN_ECT0,
		.may_drop = true,
		.backlog_bytes = PI2_LONG,
		.mtu_bytes = 1514,
	};

	CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_DROP_AQM);
	pkt.ecn_is_on = true;
	CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_MARK_CLASSIC);
	pkt.ecn_is_on = false;
	pkt.ecn = DUALPI2_ECN_ECT1;
	CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_MARK_COUPLED);
	pkt.ecn = DUALPI2_ECN_CE;
	CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
	pkt.ecn = DUALPI2_ECN_NOT_ECT;
	CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_DROP_AQM);
	pkt.may_drop = false;
	CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
}

UNIT_TEST(pi2_below_two_packets_there_is_no_signal)
{
	struct dualpi2_params p = pi2_params_k(1);
	struct dualpi2_vars v = pi2_vars(&p, ONE);
	struct pi2_packet pkt = {
		.ecn_is_on = true,
		.may_drop = true,
		.mtu_bytes = 1514,
	};
	unsigned int ecn;

	for (ecn = 0; ecn < 3; ecn++) {
		pkt.ecn = ecn;
		pkt.mtu_bytes = 1514;
		pkt.backlog_bytes = 2 * 1514 - 1;
		CHECK_EQ(pi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
		pkt.backlog_bytes = 2 * 1514;
		CHECK(pi2_verdict(&p, &v, &pkt) != DUALPI2_PASS, "codepoint %u", ecn);
		pkt.mtu_bytes = 576;
		pkt.backlog_bytes = 2 * 576;
		CHECK(pi2_verdict(&p, &v, &pkt) != DUALPI2_PASS, "codepoint %u", ecn);
	}
}

/* Neither are ECN packets dropped, nor is there another verdict, whatever p' is. */
UNIT_TEST(pi2_verdicts_are_those_four_alone)
{
	unsigned int i;

	for (i = 0; i < 300000; i++) {
		struct pi2_config cfg = pi2_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;
		struct pi2_packet pkt = {
			.ecn = unit_rnd() % 4,
			.ecn_is_on = unit_rnd() % 2,
			.may_drop = unit_rnd() % 4,
		};
		enum dualpi2_verdict verdict;

		pkt.backlog_bytes = unit_any(0, UINT32_MAX);
		pkt.mtu_bytes = unit_any(0, UINT32_MAX);
		pkt.rnd = unit_rnd();
		cfg.coupling = unit_any(1, 255);
		cfg.signal = unit_rnd() % 2;
		p = pi2_params(&cfg);
		v = pi2_vars(&p, unit_any_q32());
		verdict = pi2_verdict(&p, &v, &pkt);
		CHECK(verdict == DUALPI2_PASS || verdict == DUALPI2_MARK_CLASSIC ||
		      verdict == DUALPI2_MARK_COUPLED || verdict == DUALPI2_DROP_AQM,
		      "verdict %u", verdict);
		if (verdict == DUALPI2_DROP_AQM)
			CHECK(pkt.ecn == DUALPI2_ECN_NOT_ECT ||
			      (pkt.ecn == DUALPI2_ECN_ECT0 && !pkt.ecn_is_on),
			      "codepoint %u was dropped", pkt.ecn);
		CHECK(v.base_q32 <= (ONE + cfg.coupling - 1) / cfg.coupling,
		      "p' %llu with k %u", (ull)v.base_q32, cfg.coupling);
	}
}

/*
 * What PIE has and PI2 has not.
 */

/* p' after one update at this delay, from this p', the last delay being none. */
static long double pi2_after(long double base, u64 delay_ns)
{
	struct dualpi2_params p = pi2_params_k(1);
	struct dualpi2_vars v = pi2_vars(&p, base * ONE);

	dualpi2_pi_update(&p, &v, delay_ns, 32 * MS);
	return (long double)v.base_q32 / ONE;
}

UNIT_TEST(pi2_has_no_limits_of_its_steps)
{
	/* 100 ms: 0.3125 * 0.08 + 3.125 * 0.1; 300 ms: beyond the 250 of PIE's rule. */
	CHECK(fabsl(pi2_after(0.2L, 100 * MS) - 0.5375L) < PI2_NEAR, "%Lf", pi2_after(0.2L, 100 * MS));
	CHECK(fabsl(pi2_after(0, 300 * MS) - 1) < PI2_NEAR, "%Lf", pi2_after(0, 300 * MS));
	CHECK(fabsl(pi2_after(0, 260 * MS) - 0.8875L) < PI2_NEAR, "%Lf", pi2_after(0, 260 * MS));
}

UNIT_TEST(pi2_has_no_gains_that_depend_on_p)
{
	static const long double bases[] = { 0, 0.000001L, 0.0001L, 0.01L, 0.1L, 0.3L, 0.6L, 0.8L };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		long double step = pi2_after(bases[i], 40 * MS) - bases[i];

		CHECK(fabsl(step - 0.13125L) < PI2_NEAR, "step %Lf at p' %Lf", step, bases[i]);
	}
}

UNIT_TEST(pi2_has_no_silence_below_half_the_target)
{
	struct dualpi2_params p = pi2_params_k(2);
	struct dualpi2_vars v = pi2_vars(&p, ONE / 10);
	unsigned int i, marks = 0;

	/* p' is 10 %, and the delay is 5 ms and was that before. */
	v.delay_ns = 5 * MS;
	dualpi2_pi_update(&p, &v, 5 * MS, 32 * MS);
	CHECK(v.base_q32 > ONE / 11, "p' is %llu", (ull)v.base_q32);
	for (i = 0; i < 1000; i++)
		marks += pi2_take(&p, &v, DUALPI2_ECN_ECT1, i) == DUALPI2_MARK_COUPLED;
	CHECK(marks > 180 && marks < 200, "%u marks", marks);
}

UNIT_TEST(pi2_has_no_burst_allowance)
{
	struct dualpi2_params p = pi2_params_k(2);
	struct dualpi2_vars v = pi2_vars(&p, ONE / 2);
	unsigned int i, marks = 0;

	/* The queue was empty for two updates; the next packets get their marks. */
	v.delay_ns = 0;
	dualpi2_pi_idle(&p, &v, 64 * MS);
	CHECK(fabsl((long double)v.base_q32 / ONE - 0.4875L) < PI2_NEAR, "p' is %llu", (ull)v.base_q32);
	for (i = 0; i < 10; i++)
		marks += pi2_take(&p, &v, DUALPI2_ECN_ECT1, i) == DUALPI2_MARK_COUPLED;
	CHECK(marks >= 8, "%u marks of the first 10", marks);
}

/* Departures of so many packets, evenly, with so many bytes left behind each. */
static u64 pi2_depart(struct pi2_drain *d, u32 packets, u32 bytes, u64 apart_ns, u64 left_bytes, u64 now_ns)
{
	while (packets--) {
		pi2_drain_sent(d, left_bytes, bytes, now_ns);
		now_ns += apart_ns;
	}
	return now_ns;
}

UNIT_TEST(pi2_delay_of_a_long_queue_is_by_the_rate_of_departures)
{
	struct pi2_drain d = {};

	/* 11 packets of 1500 bytes are the first beyond 16384; one begins. */
	pi2_depart(&d, 11, 1500, 600000, 100000, SEC);
	CHECK_EQ(pi2_delay_ns(&d, 100000, 7), 7);
	pi2_depart(&d, 1, 1500, 600000, 100000, SEC + 11 * 600000);
	/* 400 ns a byte. */
	CHECK_NEAR(pi2_delay_ns(&d, 100000, 7), 40 * MS, 100);
	CHECK_NEAR(pi2_delay_ns(&d, 16384, 7), 6553600, 20);
}

UNIT_TEST(pi2_delay_of_a_short_queue_is_its_age_or_less)
{
	struct pi2_drain d = {};

	pi2_depart(&d, 100, 1500, 600000, 100000, SEC);
	CHECK_EQ(pi2_delay_ns(&d, 16383, 12345), 12345);
	/* The rest of what was long. */
	CHECK_NEAR(pi2_delay_ns(&d, 10000, 500 * MS), 4 * MS, 20);
	CHECK_EQ(pi2_delay_ns(&d, 0, 0), 0);
}

UNIT_TEST(pi2_drain_takes_a_new_rate_by_halves)
{
	struct pi2_drain d = {};
	u64 now_ns = pi2_depart(&d, 12, 1500, 600000, 100000, SEC);

	/* Five times as slow: from 400 ns a byte to 2000. Those on the border count as they left. */
	now_ns = pi2_depart(&d, 11, 1500, 3000000, 100000, now_ns - 600000 + 3000000);
	CHECK_NEAR(pi2_delay_ns(&d, 100000, 7), 120 * MS, 1000);
	pi2_depart(&d, 11, 1500, 3000000, 100000, now_ns);
	CHECK_NEAR(pi2_delay_ns(&d, 100000, 7), 160 * MS, 1000);
}

UNIT_TEST(pi2_drain_measures_only_while_packets_wait)
{
	struct pi2_drain d = {};
	u64 now_ns;

	/* Never as long as that. */
	now_ns = pi2_depart(&d, 100, 1500, 600000, 16383, SEC);
	CHECK_EQ(d.since_ns, 0);
	CHECK_EQ(d.ns_per_byte_q20, 0);
	/* Emptied in between: that time is not the link's. */
	now_ns = pi2_depart(&d, 5, 1500, 600000, 20000, now_ns);
	CHECK(d.since_ns, "nothing is measured");
	now_ns = pi2_depart(&d, 1, 1500, SEC, 0, now_ns);
	CHECK_EQ(d.since_ns, 0);
	pi2_depart(&d, 12, 1500, 600000, 20000, now_ns);
	CHECK_NEAR(pi2_delay_ns(&d, 100000, 7), 40 * MS, 100);
	/* Once begun it goes on while the queue is shorter. */
	d = (struct pi2_drain) {};
	now_ns = pi2_depart(&d, 1, 1500, 600000, 16384, SEC);
	pi2_depart(&d, 11, 1500, 600000, 3000, now_ns);
	CHECK_NEAR(pi2_delay_ns(&d, 100000, 7), 40 * MS, 100);
	CHECK_EQ(d.since_ns, 0);
}

UNIT_TEST(pi2_drain_stands_any_time_and_length)
{
	struct pi2_drain d = {};
	u64 now_ns = SEC;
	u32 i;

	for (i = 0; i < 100000; i++) {
		u64 delay_ns, left = unit_any(0, 1ULL << 40);

		now_ns = unit_rnd() % 8 ? now_ns + unit_any(0, 1ULL << 45) : unit_any(1, 1ULL << 60);
		pi2_drain_sent(&d, left, unit_any(0, U32_MAX), now_ns);
		CHECK(d.bytes < PI2_DRAIN_BYTES + (1U << 24), "%u bytes", d.bytes);
		CHECK(d.ns_per_byte_q20 <= 1ULL << 62, "rate %llu", (ull)d.ns_per_byte_q20);
		delay_ns = pi2_delay_ns(&d, left, 5);
		CHECK(left >= PI2_DRAIN_BYTES || delay_ns <= 5, "delay %llu", (ull)delay_ns);
	}
}
