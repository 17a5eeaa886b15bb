// SPDX-License-Identifier: GPL-2.0-only
/*
 * PI controller: p' += alpha * (cur - target) * elapsed / tupdate
 *                    + beta * (cur - prev), clamped to 0..1.
 *
 * Tolerance against the exact value, in units of 2^-32: a gain is off by up to
 * half of 2^-24 q32 per ns, so that a product with a difference d is off by
 * d / 2^25, and it is cut, by less than 1.  The integral's error is multiplied
 * by the elapsed periods, whose number is cut to a multiple of 2^-16; then the
 * integral is cut once more.  With d of 10 ms that makes 4 units.
 */

struct pi_case {
	struct dualpi2_config cfg;
	u64 elapsed_ns;
	u64 base;
	u64 cur_ns;
	u32 prev_ns;
};

static u64 pi_update(const struct pi_case *c)
{
	struct dualpi2_params p = unit_params(&c->cfg);
	struct dualpi2_vars v = unit_vars(&p);

	v.updated_ns = 7 * SEC;
	v.base_q32 = c->base;
	v.delay_ns = c->prev_ns;
	dualpi2_pi_update(&p, &v, c->cur_ns, v.updated_ns + c->elapsed_ns);
	CHECK(v.base_q32 <= ONE, "p' is %llu", (ull)v.base_q32);
	CHECK_EQ(v.updated_ns, 7 * SEC + c->elapsed_ns);
	CHECK_EQ(v.delay_ns, c->cur_ns);
	return v.base_q32;
}

static void pi_check(const struct pi_case *c)
{
	long double cur = c->cur_ns > U32_MAX ? U32_MAX : c->cur_ns;
	long double d_target = cur - c->cfg.target_us * 1000.0L;
	long double d_prev = cur - c->prev_ns;
	long double ratio = c->elapsed_ns / (c->cfg.tupdate_us * 1000.0L);
	long double once, sum, tol;
	u64 got = pi_update(c);

	if (ratio > 8)
		ratio = 8;
	once = c->cfg.alpha * d_target / 256 * 4.294967296L;
	sum = c->base + once * ratio + c->cfg.beta * d_prev / 256 * 4.294967296L;
	if (sum < 0)
		sum = 0;
	if (sum > ONE)
		sum = ONE;
	tol = ratio * (fabsl(d_target) / (1 << 25) + 1) + fabsl(d_prev) / (1 << 25) +
	      3 + (ratio < 8 ? fabsl(once) / 65536 : 0);
	CHECK(fabsl(got - sum) <= tol,
	      "got %llu, want %.3Lf +- %.3Lf: alpha %u beta %u target %u tupdate %u elapsed %llu p' %llu prev %u cur %llu",
	      (ull)got, sum, tol, c->cfg.alpha, c->cfg.beta, c->cfg.target_us,
	      c->cfg.tupdate_us, (ull)c->elapsed_ns, (ull)c->base, c->prev_ns,
	      (ull)c->cur_ns);
}

static struct pi_case pi_default(void)
{
	return (struct pi_case) {
		.cfg = unit_config(),
		.elapsed_ns = 16 * MS,
	};
}

UNIT_TEST(pi_vectors_match)
{
	for_each(row, vec_pi) {
		struct pi_case c = pi_default();

		c.cfg.alpha = row->alpha;
		c.cfg.beta = row->beta;
		c.cfg.target_us = row->target_us;
		c.cfg.tupdate_us = row->tupdate_us;
		c.elapsed_ns = row->elapsed_ns;
		c.base = row->base;
		c.prev_ns = row->prev_ns;
		c.cur_ns = row->cur_ns;
		CHECK_NEAR(pi_update(&c), row->want, row->tol);
	}
}

UNIT_TEST(pi_random_inputs_match_formula)
{
	for (int i = 0; i < 400000; i++) {
		bool moderate = i & 1;
		struct pi_case c = pi_default();

		c.cfg.alpha = unit_any(1, moderate ? 1000 : DUALPI2_GAIN_MAX);
		c.cfg.beta = unit_any(1, moderate ? 10000 : DUALPI2_GAIN_MAX);
		c.cfg.target_us = unit_any(1, DUALPI2_TIME_MAX_US);
		c.cfg.tupdate_us = unit_any(100, DUALPI2_TIME_MAX_US);
		c.elapsed_ns = c.cfg.tupdate_us * 1000ULL;
		c.elapsed_ns = unit_between(c.elapsed_ns, 9 * c.elapsed_ns);
		c.base = unit_any_q32();
		c.cur_ns = unit_any(0, moderate ? 300 * MS : 1ULL << 33);
		c.prev_ns = unit_any(0, moderate ? 300 * MS : U32_MAX);
		pi_check(&c);
	}
}

UNIT_TEST(pi_edge_inputs_match_formula)
{
	static const u32 gains[] = { 1, 41, 819, 76800, DUALPI2_GAIN_MAX };
	static const u32 targets[] = { 1, 15000, DUALPI2_TIME_MAX_US };
	static const u64 delays[] = {
		0, 1, 999, 1000, 1001, 15 * MS - 1, 15 * MS, 15 * MS + 1,
		298 * MS, 300 * MS, 400 * MS, (1ULL << 31) - 1, 1ULL << 31,
		4294967000ULL, U32_MAX - 1, U32_MAX, U32_MAX + 1ULL, 1ULL << 40,
		1ULL << 63, UINT64_MAX,
	};
	static const u64 bases[] = { 0, 1, ONE / 2, ONE - 1, ONE };
	static const u32 periods[] = { 1, 2, 7, 8, 9, 1000 };

	for_each(alpha, gains)
	for_each(beta, gains)
	for_each(target, targets)
	for_each(delay, delays)
	for (unsigned int l = 0; l < 16; l += 3)	/* those that fit into prev */
	for_each(base, bases)
	for_each(period, periods) {
		struct pi_case c = pi_default();

		c.cfg.alpha = *alpha;
		c.cfg.beta = *beta;
		c.cfg.target_us = *target;
		c.cur_ns = *delay;
		c.prev_ns = delays[l];
		c.base = *base;
		c.elapsed_ns = *period * 16 * MS;
		pi_check(&c);
	}
}

UNIT_TEST(pi_time_scales_integral_term_only)
{
	struct pi_case c = pi_default();

	c.base = ONE / 4;
	for (u32 n = 1; n <= 8; n++) {
		c.elapsed_ns = n * 16 * MS;
		/* proportional alone: at the target */
		c.cur_ns = 15 * MS;
		c.prev_ns = 25 * MS;
		CHECK_NEAR(pi_update(&c),	/* - 10 ms * 819 / 256 Hz */
			   ONE / 4 - ONE * 819 / 25600, 3);
		/* integral alone: no change */
		c.cur_ns = c.prev_ns;
		CHECK_NEAR(pi_update(&c), ONE / 4 + n * (ONE * 41 / 25600), 2 * n + 2);
	}
}

UNIT_TEST(pi_late_update_counts_for_eight_periods_at_most)
{
	static const u64 late[] = {
		8 * 16 * MS + 1, 9 * 16 * MS, SEC, 4294967296ULL, 3600 * SEC,
		1ULL << 47, (1ULL << 47) + 1, 1ULL << 48, 1ULL << 62, 1ULL << 63,
	};
	struct pi_case c = pi_default();
	u64 want;

	c.base = ONE / 4;
	c.cur_ns = 25 * MS;
	c.prev_ns = 20 * MS;
	c.elapsed_ns = 8 * 16 * MS;
	want = pi_update(&c);
	CHECK_NEAR(want, ONE / 4 + 8 * (ONE * 41 / 25600) + ONE * 819 / 51200, 30);
	for_each(row, late) {
		c.elapsed_ns = *row;
		CHECK_EQ(pi_update(&c), want);
	}
}

/* C1: with the default gains mainline wraps at a rise of 300 ms, to 0.5 %. */
UNIT_TEST(pi_jump_up_saturates_at_one)
{
	static const u64 jumps[] = {
		300 * MS, 320 * MS, 400 * MS, SEC, U32_MAX, U32_MAX + 1ULL,
		5 * SEC, 600 * SEC, UINT64_MAX,
	};
	struct pi_case c = pi_default();

	for_each(jump, jumps) {
		c.cur_ns = *jump;
		for (c.base = 0; c.base <= ONE; c.base += ONE / 8)
			CHECK_EQ(pi_update(&c), ONE);
	}
	/* and does not before */
	c.base = 0;
	c.cur_ns = 298 * MS;
	CHECK(pi_update(&c) < ONE, "saturates at 298 ms");
}

UNIT_TEST(pi_jump_down_saturates_at_zero)
{
	struct pi_case c = pi_default();

	c.base = ONE;
	c.prev_ns = 313 * MS;
	CHECK_EQ(pi_update(&c), 0);
	c.prev_ns = 400 * MS;
	CHECK_EQ(pi_update(&c), 0);
	c.prev_ns = U32_MAX;
	CHECK_EQ(pi_update(&c), 0);
	c.prev_ns = 311 * MS;
	CHECK(pi_update(&c) > 0, "0 at 311 ms");
}

/* "max_rtt 1ms": alpha 33.3 Hz, beta 300 Hz; mainline wraps at 3.2 ms. */
UNIT_TEST(pi_jump_with_gains_for_1_ms_saturates)
{
	struct pi_case c = pi_default();

	c.cfg.alpha = 8533;
	c.cfg.beta = 76800;
	c.cfg.target_us = 333;
	c.cfg.tupdate_us = 333;
	c.elapsed_ns = 333000;
	for (c.cur_ns = 3400000; c.cur_ns < 5 * SEC; c.cur_ns += c.cur_ns / 7) {
		c.base = 0;
		c.prev_ns = 0;
		CHECK_EQ(pi_update(&c), ONE);
	}
	for (c.prev_ns = 3400000; c.prev_ns < 3 * SEC; c.prev_ns += c.prev_ns / 7) {
		c.base = ONE;
		c.cur_ns = 0;
		CHECK_EQ(pi_update(&c), 0);
	}
}

UNIT_TEST(pi_largest_gains_and_jumps_saturate)
{
	struct pi_case c = pi_default();

	c.cfg.alpha = DUALPI2_GAIN_MAX;
	c.cfg.beta = DUALPI2_GAIN_MAX;
	c.elapsed_ns = 8 * 16 * MS;
	c.cur_ns = U32_MAX;
	CHECK_EQ(pi_update(&c), ONE);
	c.base = ONE;
	c.cur_ns = 0;
	c.prev_ns = U32_MAX;
	c.cfg.target_us = DUALPI2_TIME_MAX_US;
	CHECK_EQ(pi_update(&c), 0);
	/* opposite terms: 1 for 1, then 8 for 1 */
	c.base = ONE / 2;
	c.cur_ns = 2 * SEC;
	c.prev_ns = 3 * SEC;
	c.cfg.target_us = 1000000;
	c.elapsed_ns = 16 * MS;
	CHECK_NEAR(pi_update(&c), ONE / 2, 64);
	c.elapsed_ns = 8 * 16 * MS;
	CHECK_EQ(pi_update(&c), ONE);
}

UNIT_TEST(pi_more_delay_never_lowers_probability)
{
	for (int i = 0; i < 10000; i++) {
		struct pi_case c = pi_default();
		u64 last = 0;

		c.cfg.alpha = unit_any(1, DUALPI2_GAIN_MAX);
		c.cfg.beta = unit_any(1, DUALPI2_GAIN_MAX);
		c.cfg.target_us = unit_any(1, DUALPI2_TIME_MAX_US);
		c.elapsed_ns = 16 * MS * unit_between(1, 9);
		c.base = unit_any_q32();
		c.prev_ns = unit_any(0, U32_MAX);
		c.cur_ns = 0;
		for (int j = 0; j < 20; j++) {
			u64 got = pi_update(&c);

			CHECK(got >= last, "%llu after %llu at %llu ns",
			      (ull)got, (ull)last, (ull)c.cur_ns);
			last = got;
			c.cur_ns += unit_any(0, 1ULL << 29);
		}
	}
}

UNIT_TEST(pi_below_target_decays_to_zero_and_stays)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	u64 delay_ns = 14 * MS, now = 0;
	unsigned int n = 0;

	v.base_q32 = ONE;
	v.delay_ns = 15 * MS;
	while (v.base_q32) {
		u64 last = v.base_q32;

		now += 16 * MS;
		dualpi2_pi_update(&p, &v, delay_ns, now);
		CHECK(v.base_q32 < last, "stuck at %llu", (ull)last);
		delay_ns -= delay_ns / 100;
		CHECK(++n < 2000, "still %llu", (ull)v.base_q32);
	}
	for (n = 0; n < 1000; n++) {
		now += 16 * MS;
		dualpi2_pi_update(&p, &v, delay_ns, now);
		CHECK_EQ(v.base_q32, 0);
		delay_ns -= delay_ns / 100;
	}
	CHECK_EQ(v.coupled_q32, 0);
	CHECK_EQ(v.classic_q32, 0);
}

/* Smallest gains and target: the step must not be rounded to nothing. */
UNIT_TEST(pi_smallest_gain_still_decays)
{
	struct pi_case c = pi_default();

	c.cfg.alpha = 1;
	c.cfg.beta = 1;
	c.cfg.target_us = 1;
	c.base = ONE;
	/* 1/256 Hz * 1 us = 16.8 units of 2^-32 */
	CHECK_NEAR(pi_update(&c), ONE - 17, 1);
	c.base = 0;
	c.cur_ns = 2000;
	c.prev_ns = 2000;
	CHECK_NEAR(pi_update(&c), 17, 1);
}

UNIT_TEST(pi_is_due_after_tupdate)
{
	static const u64 bases[] = { 0, 5, U32_MAX - 7, 1ULL << 40, 1ULL << 63 };
	struct dualpi2_params p = unit_params_k(2);

	for_each(base, bases) {
		struct dualpi2_vars v = unit_vars(&p);

		v.updated_ns = *base;
		dualpi2_vars_derive(&p, &v, *base);
		CHECK(!dualpi2_pi_is_due(&v, *base), "at once");
		CHECK(!dualpi2_pi_is_due(&v, *base + 16 * MS - 1), "too early");
		CHECK(dualpi2_pi_is_due(&v, *base + 16 * MS), "not");
		CHECK(dualpi2_pi_is_due(&v, *base + U32_MAX + 1), "not");
		CHECK(dualpi2_pi_is_due(&v, *base + (1ULL << 62)), "not");
	}
}

UNIT_TEST(pi_ratio_is_elapsed_over_tupdate)
{
	for (int i = 0; i < 100000; i++) {
		u64 elapsed = unit_any(0, 1ULL << 46);
		u32 max = unit_any(1, U32_MAX);
		long double want;
		struct dualpi2_params p =
			UNIT_PARAMS(cfg.tupdate_us = unit_any(100, DUALPI2_TIME_MAX_US));
		struct dualpi2_vars v = unit_vars(&p);

		v.updated_ns = unit_rnd();
		want = floorl(elapsed * 65536.0L / p.tupdate_ns);
		if (want > max)
			want = max;
		CHECK_EQ(dualpi2_ratio(&p, &v, v.updated_ns + elapsed, max), (u64)want);
	}
}

/* An idle gap of n periods equals n updates that find a delay of 0.  Per period
 * the result may differ by 1 (rounding).
 */
UNIT_TEST(idle_catch_up_equals_periodic_updates)
{
	for (int i = 0; i < 3000; i++) {
		struct dualpi2_vars one, many;
		u32 n = unit_any(1, 2000), j;
		long double want;
		struct dualpi2_config cfg =
			UNIT_CONFIG(cfg.alpha = unit_any(1, i & 1 ? 1000 : DUALPI2_GAIN_MAX),
				    cfg.beta = unit_any(1, i & 1 ? 10000 : DUALPI2_GAIN_MAX),
				    cfg.target_us = unit_any(1, i & 1 ? 20000 : DUALPI2_TIME_MAX_US));
		struct dualpi2_params p = unit_params(&cfg);

		many = unit_vars(&p);
		many.base_q32 = unit_any_q32();
		many.delay_ns = unit_any(0, 50 * MS);
		dualpi2_vars_derive(&p, &many, 0);
		one = many;
		want = many.base_q32 - cfg.beta / 256.0L * many.delay_ns * 4.294967296L -
		       n * (cfg.alpha / 256.0L) * p.target_ns * 4.294967296L;
		for (j = 1; j <= n; j++)
			dualpi2_pi_update(&p, &many, 0, j * (16 * MS));
		dualpi2_pi_idle(&p, &one, n * (16 * MS));
		CHECK_NEAR(one.base_q32, many.base_q32, n);
		if (want < 0)
			want = 0;
		CHECK(fabsl(one.base_q32 - want) <= 2 + 2 + n * (p.target_ns / (1 << 25) + 2.0L),
		      "%llu, want %.1Lf", (ull)one.base_q32, want);
		CHECK_EQ(one.delay_ns, 0);
		CHECK_EQ(one.updated_ns, n * (16 * MS));
		/* it takes the first update for the end, p' may last longer */
		CHECK(!one.overload || many.overload, "overload goes on");
		CHECK_EQ(one.coupled_q32, one.base_q32 < ONE / 2 ? one.base_q32 * 2 : ONE);
	}
}

/* Default: 1 / (41/256 Hz * 15 ms) = 416.3 periods = 6.66 s from p' = 1. */
UNIT_TEST(idle_takes_any_probability_to_zero)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = ONE;
	dualpi2_pi_idle(&p, &v, 416 * 16 * MS);
	CHECK(v.base_q32 > 0 && v.base_q32 < ONE / 1000, "%llu", (ull)v.base_q32);
	v = unit_vars(&p);
	v.base_q32 = ONE;
	dualpi2_pi_idle(&p, &v, 417 * 16 * MS);
	CHECK_EQ(v.base_q32, 0);
	CHECK_EQ(v.coupled_q32, 0);
	CHECK_EQ(v.classic_q32, 0);
}

UNIT_TEST(idle_repeated_reaches_zero_with_any_gains)
{
	static const u32 gains[] = { 1, 41, DUALPI2_GAIN_MAX };
	static const u32 targets[] = { 1, 100, 15000, DUALPI2_TIME_MAX_US };
	static const u32 tupdates[] = { 100, 16000, DUALPI2_TIME_MAX_US };

	for_each(gain, gains)
	for_each(target, targets)
	for_each(tupdate, tupdates) {
		u64 now = 0;
		int n = 0;
		struct dualpi2_params p = UNIT_PARAMS(cfg.alpha = *gain, cfg.target_us = *target,
						      cfg.tupdate_us = *tupdate);
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = ONE;
		/* 1/256 Hz * 1 us: 2^28 periods, at 2^15 a time at least */
		while (v.base_q32) {
			u64 last = v.base_q32;

			now += 1ULL << 48;
			dualpi2_pi_idle(&p, &v, now);
			CHECK(v.base_q32 < last, "stuck at %llu", (ull)last);
			CHECK(++n < 9000, "still %llu", (ull)v.base_q32);
		}
	}
}

/* 4.3 s, 71 min, 49.7 days, 292 years: where u32 of ns and us and s64 of ns would wrap. */
UNIT_TEST(idle_huge_gaps_do_no_harm)
{
	static const u64 gaps[] = {
		4294967295ULL, 4294967296ULL, 4294967297ULL,
		U32_MAX * 1000ULL, (U32_MAX + 1ULL) * 1000,
		U32_MAX * 1000000ULL, (U32_MAX + 1ULL) * 1000000,
		(1ULL << 47) - 1, 1ULL << 47, (1ULL << 48) + 5, 1ULL << 62,
		(1ULL << 63) - 1, 1ULL << 63, (1ULL << 63) + 1,
	};

	for_each(gap, gaps)
	for (unsigned int j = 0; j < 2; j++)
	for (unsigned int k = 0; k < 3; k++) {
		static const u32 alphas[] = { 41, 100000, DUALPI2_GAIN_MAX };
		u64 start = j ? 12345 : UINT64_MAX / 4;
		u64 now = start + *gap;
		bool hold;
		struct dualpi2_params p = UNIT_PARAMS(cfg.alpha = alphas[k]);
		struct dualpi2_vars v = unit_vars(&p);

		v.updated_ns = start;
		v.base_q32 = ONE;
		v.delay_ns = 15 * MS;
		dualpi2_vars_derive(&p, &v, start);
		CHECK(dualpi2_pi_is_due(&v, now), "not due");
		dualpi2_pi_idle(&p, &v, now);
		if (*gap > 10 * SEC || k)
			CHECK_EQ(v.base_q32, 0);
		else	/* 1 - 4.29 s / 16 ms * alpha * target - beta * 15 ms */
			CHECK_NEAR(v.base_q32, 0.3071L * ONE, ONE / 2000);
		CHECK_EQ(v.updated_ns, now);
		hold = *gap < (1 + DUALPI2_OVERLOAD_HOLD) * 16 * MS;
		CHECK_EQ(v.overload, v.base_q32 >= p.enter_q32 || hold);
		/* the next periods are ordinary ones */
		CHECK(!dualpi2_pi_is_due(&v, now + 16 * MS - 1), "due");
		CHECK(dualpi2_pi_is_due(&v, now + 16 * MS), "not due");
		dualpi2_pi_update(&p, &v, 16 * MS, now + 16 * MS);
		CHECK(v.base_q32 > 0, "no signal after the gap");
	}
}

UNIT_TEST(idle_from_zero_stays_zero)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	for (int i = 0; i < 64; i++) {
		dualpi2_pi_idle(&p, &v, v.updated_ns + (1ULL << i) / 4);
		CHECK_EQ(v.base_q32, 0);
	}
}

/* After whatever time 2^32 - 1 of 2^16 parts of a period count, no more. */
UNIT_TEST(pi_idle_counts_65535_periods_at_most)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;
	u64 size;

	cfg.target_us = 1;
	cfg.tupdate_us = 100;
	cfg.alpha = 2384;	/* an integral term below 2^16, not by much */
	p = unit_params(&cfg);
	size = dualpi2_gain_times(p.alpha_gain, p.target_ns);
	CHECK(size > 32768 && size < 65536, "%llu", (ull)size);
	v = unit_vars(&p);
	v.base_q32 = ONE;
	dualpi2_pi_idle(&p, &v, 1ULL << 50);
	CHECK_EQ(v.base_q32, ONE - (size * U32_MAX >> 16));
}

/* and is quiet until then */
UNIT_TEST(pi_begins_at_zero_and_is_due_after_tupdate)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v;

	memset(&v, 0, sizeof(v));
	v.base_q32 = ONE;
	v.credit = 5;
	dualpi2_vars_init(&p, &v, 9014, 3 * SEC);
	CHECK_EQ(v.base_q32 | v.classic_q32 | v.coupled_q32 | v.delay_ns, 0);
	CHECK_EQ(v.updated_ns, 3 * SEC);
	CHECK_EQ(v.due_ns, 3 * SEC + 16 * MS);
	CHECK(v.credit == -80 * 9014, "%d", v.credit);
	CHECK(v.credit_start == -80 * 9014, "%d", v.credit_start);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_C, SEC, 0), "C");
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 0), "L");
}
