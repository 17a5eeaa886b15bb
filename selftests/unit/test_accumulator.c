// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spacing of signals: recur() of RFC 9332 A.1 with a dither, and random mode.
 *
 * Bound: let b = (sum of p) - (number of signals), from the start.  A signal is
 * due when b reaches 1 - d with the dither -D <= d <= D, and takes 1 off b.  So
 * -D <= b < 1 + D after every packet, whatever p does; over any window of
 * packets the number of signals is within 1 + 2 D of the sum of p.
 */
#define SPACER_DITHER	((s64)(ONE / 2))	/* D */

struct spacer_run {
	struct dualpi2_accumulator s;
	s64 balance;	/* b */
	u64 hits;
	bool random;
};

/* one packet; rnd is drawn from the test's own generator */
static bool spacer_packet(struct spacer_run *r, u64 p_q32)
{
	bool hit = dualpi2_accumulate(&r->s, p_q32, r->random, unit_rnd() >> 32);

	r->balance += p_q32;
	if (hit)
		r->balance -= ONE;
	r->hits += hit;
	return hit;
}

static void spacer_check(const struct spacer_run *r)
{
	CHECK(r->balance >= -SPACER_DITHER && r->balance < (s64)ONE + SPACER_DITHER,
	      "balance %lld / 2^32", (long long)r->balance);
}

static const u64 spacer_probs[] = {
	1, 2, 3, 1000, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28,
	ONE / 10, ONE / 7, ONE / 5, ONE / 4, ONE / 3, ONE / 2 - 1, ONE / 2,
	ONE / 2 + 1, 2 * ONE / 3, 3 * ONE / 4, 9 * ONE / 10, ONE - 1000,
	ONE - 1, ONE,
};

UNIT_TEST(spacer_constant_probability_gives_n_p_signals)
{
	for_each(spacer_prob, spacer_probs) {
		struct spacer_run r = { .random = false };

		for (int n = 0; n < 50000; n++) {
			spacer_packet(&r, *spacer_prob);
			spacer_check(&r);
		}
	}
}

/* p = 2^-32 would need 2^32 packets for a signal; start just before it. */
UNIT_TEST(spacer_smallest_probability_counts)
{
	struct spacer_run r = { .random = false };
	u64 n = 0;

	spacer_packet(&r, ONE - 5);
	CHECK_EQ(r.hits, 0);
	while (!spacer_packet(&r, 1))
		CHECK(++n < 5, "2^-32 is lost");
	CHECK_EQ(r.hits, 1);
	CHECK_EQ(n, 4);
}

UNIT_TEST(spacer_changing_probability_keeps_the_sum)
{
	for (int i = 0; i < 200; i++) {
		struct spacer_run r = { .random = false };
		u64 p = unit_any_q32();

		for (int n = 0; n < 2000; n++) {
			if (unit_rnd() % (i + 1) == 0)
				p = unit_any_q32();
			spacer_packet(&r, p);
			spacer_check(&r);
		}
	}
}

/* trap 3: with count = 0 and x = 1 the pseudocode misses the first packet */
UNIT_TEST(spacer_probability_one_signals_every_packet)
{
	struct spacer_run r = { .random = false };

	for (int n = 0; n < 1000; n++)
		CHECK(spacer_packet(&r, ONE), "packet %d", n);
	/* also with any balance before */
	for (int n = 0; n < 10000; n++) {
		r.random = n & 1;
		spacer_packet(&r, unit_rnd() % ONE);
		CHECK(spacer_packet(&r, ONE), "packet %d", n);
	}
}

/* whatever came before, and also right after a signal, when the dither may have jumped */
UNIT_TEST(spacer_probability_zero_never_signals)
{
	struct spacer_run r = { .random = false };

	for (int n = 0; n < 100000; n++) {
		r.random = n % 16 == 0;
		spacer_packet(&r, n % 3 ? ONE - 1 : unit_any_q32());
		for (int i = 0; i < 3; i++)
			CHECK(!spacer_packet(&r, 0), "packet %d", n);
	}
}

/* trap 1: nothing grows in overload and goes on signalling when it is over */
UNIT_TEST(spacer_after_long_overload_holds_no_residue)
{
	struct spacer_run r = { .random = false };

	for (int n = 0; n < 100000; n++) {
		CHECK(spacer_packet(&r, ONE), "packet %d", n);
		spacer_packet(&r, ONE - unit_rnd() % 4);
		spacer_check(&r);
	}
	r.hits = 0;
	for (int n = 0; n < 1000; n++)
		spacer_packet(&r, ONE / 1000);
	CHECK(r.hits <= 3, "%llu signals at 1/1000", (ull)r.hits);
}

/* Evenly spaced: no gap is longer than (1 + 2 D)/p + 1 packets, and gaps scatter
 * less than random ones.  A gap is (1 + d - d')/p, with variance 2 D^2 / 3 / p^2;
 * that of a random one is (1 - p)/p^2.
 */
UNIT_TEST(spacer_gaps_are_more_even_than_random)
{
	for_each(spacer_prob, spacer_probs) {
		u64 p = *spacer_prob, gap = 0;
		double prob = (double)p / ONE, sum = 0, squares = 0, mean;
		struct spacer_run r = { .random = false };

		if (p < ONE / 1000 || p > ONE / 4)
			continue;
		for (int n = 0; n < 200000; n++) {
			gap++;
			if (!spacer_packet(&r, p))
				continue;
			CHECK(gap * p <= ONE + 2 * SPACER_DITHER + p,
			      "gap %llu, p %llu", (ull)gap, (ull)p);
			sum += gap;
			squares += (double)gap * gap;
			gap = 0;
		}
		mean = sum / r.hits;
		CHECK(fabs(mean * prob - 1) < 0.01, "mean gap %.3f", mean);
		squares = (squares / r.hits - mean * mean) * prob * prob;
		CHECK(squares < 0.25, "variance %.3f / p^2", squares);
	}
}

/* The dither moves signals both ways, or it would be a change of p; gaps spread
 * over most of (1 - 2 D)/p .. (1 + 2 D)/p.
 */
UNIT_TEST(spacer_gaps_vary_by_the_dither)
{
	struct spacer_run r = { .random = false };
	u64 gap = 0, shortest = 1000, longest = 0;

	for (int n = 0; n < 200000; n++) {
		gap++;
		if (!spacer_packet(&r, ONE / 100))
			continue;
		if (gap < shortest)
			shortest = gap;
		if (gap > longest)
			longest = gap;
		gap = 0;
	}
	CHECK(shortest <= 15, "shortest gap %llu of 100", (ull)shortest);
	CHECK(longest >= 185, "longest gap %llu of 100", (ull)longest);
}

/*
 * Trap 5.  Flows take turns at a probability that fits their pattern; every
 * flow must get its share, with random numbers as the module makes them: of the
 * time, while packets leave in constant steps.
 */
static u64 spacer_bits_of_time(u64 now_ns)
{
	now_ns *= GOLDEN;
	now_ns ^= now_ns >> 32;
	return now_ns * GOLDEN;
}

/* maximum relative error of a flow's number of signals, percent */
static unsigned int spacer_unfairness_pct(u64 p, unsigned int flows,
					  u64 step_ns, bool high, bool uniform, unsigned int pkts)
{
	u64 hits[16] = { 0 }, now = 1700000000ULL * SEC + 12345;
	struct dualpi2_accumulator s = { 0 };
	double fair, error = 0;

	pkts -= pkts % flows;
	for (unsigned int i = 0; i < pkts; i++) {
		u64 rnd = uniform ? unit_rnd() : spacer_bits_of_time(now);

		now += step_ns;
		hits[i % flows] += dualpi2_accumulate(&s, p, false, high ? rnd >> 32 : rnd);
	}
	fair = (double)p / ONE * pkts / flows;
	for (unsigned int i = 0; i < flows; i++)
		if (fabs(hits[i] / fair - 1) > error)
			error = fabs(hits[i] / fair - 1);
	return error * 100;
}

/* packet times: 1 Mbit/s to 100 Gbit/s, 64 to 9000 bytes */
static const u64 spacer_steps_ns[] = {
	5, 51, 120, 512, 672, 1000, 1024, 1200, 1211, 2334, 4096, 5447, 6720,
	12000, 12112, 12710, 29657, 65536, 69200, 72000, 120000, 161467, 376757,
	512000, 720000, 879100, 1000000, 1200000, 2051234, 12000000,
};

UNIT_TEST(spacer_two_alternating_flows_share_alike_by_time)
{
	static const u64 probs[] = {
		ONE / 2, ONE / 3, ONE / 4, ONE / 6, ONE / 8, 3 * (ONE / 4),
	};
	unsigned int high, worst = 0;

	for_each(prob, probs)
	for_each(spacer_steps_n, spacer_steps_ns)
	for (high = 0; high < 2; high++) {
		unsigned int pct = spacer_unfairness_pct(*prob, 2,
							 *spacer_steps_n, high, false, 60000);

		if (pct > worst)
			worst = pct;
		CHECK(pct <= 10, "%u %% unfair: p %llu, step %llu ns, half %u",
		      pct, (ull)(*prob), (ull)(*spacer_steps_n), high);
	}
}

UNIT_TEST(spacer_two_alternating_flows_share_alike_by_random)
{
	static const u64 probs[] = {
		ONE / 2, ONE / 3, ONE / 4, ONE / 6, ONE / 8, ONE / 10, ONE / 16,
		3 * (ONE / 4),
	};

	for_each(prob, probs) {
		unsigned int pct = spacer_unfairness_pct(*prob, 2, 1, false, true, 200000);

		CHECK(pct <= 5, "%u %% unfair: p %llu", pct, (ull)(*prob));
	}
}

/* As many flows as packets between two signals: nobody is left out. */
UNIT_TEST(spacer_round_robin_flows_all_get_signals)
{
	for (unsigned int flows = 3; flows <= 10; flows++) {
		unsigned int pct = spacer_unfairness_pct(ONE / flows, flows, 1,
							 false, true, 200000);

		CHECK(pct <= 25, "%u %% unfair: %u flows, random", pct, flows);
		for (unsigned int j = 0; j < ARRAY_SIZE(spacer_steps_ns); j += 3) {
			pct = spacer_unfairness_pct(ONE / flows, flows, spacer_steps_ns[j], j & 1,
						    false, 100000);
			CHECK(pct <= 25, "%u %% unfair: %u flows, step %llu ns",
			      pct, flows, (ull)spacer_steps_ns[j]);
		}
	}
}

UNIT_TEST(spacer_random_mean_is_within_5_sigma)
{
	int n;

	for_each(spacer_prob, spacer_probs) {
		double p = (double)(*spacer_prob) / ONE;
		struct spacer_run r = { .random = true };

		for (n = 0; n < 100000; n++)
			spacer_packet(&r, *spacer_prob);
		/* and 2, because close to 0 and 1 it is not normal */
		CHECK(fabs(r.hits - n * p) <= 5 * sqrt(n * p * (1 - p)) + 2,
		      "%llu of %d at p %.6f", (ull)r.hits, n, p);
	}
}

/* the number that is compared is the whole range: p hits at rnd < p */
UNIT_TEST(spacer_random_compares_rnd_with_p)
{
	struct dualpi2_accumulator s = { 0 };

	for (int i = 0; i < 100000; i++) {
		u64 p = unit_any_q32();
		u32 rnd = unit_rnd() & 1 ? unit_rnd() : p - 1 + unit_rnd() % 3;

		CHECK_EQ(dualpi2_accumulate(&s, p, true, rnd), rnd < p);
	}
}

/* Gaps are geometric: 12 bins of gap 1..11 and more; chi-square with 11 degrees
 * of freedom exceeds 39.3 once in 20000 times.
 */
UNIT_TEST(spacer_random_gaps_are_geometric)
{
	static const u64 probs[] = { ONE / 2, ONE / 4, ONE / 8, ONE / 16 };

	for_each(prob, probs) {
		double p = (double)(*prob) / ONE, rest = 1, chi2 = 0;
		struct spacer_run r = { .random = true };
		unsigned int bins[12] = { 0 }, gap = 0, gaps = 0;

		while (gaps < 20000) {
			gap++;
			if (!spacer_packet(&r, *prob))
				continue;
			bins[gap > 12 ? 11 : gap - 1]++;
			gaps++;
			gap = 0;
		}
		for (unsigned int bin = 0; bin < 12; bin++) {
			double want = bin < 11 ? rest * p : rest;

			rest -= rest * p;
			want *= gaps;
			chi2 += (bins[bin] - want) * (bins[bin] - want) / want;
		}
		CHECK(chi2 < 39.3, "chi-square %.1f at p %.4f", chi2, p);
	}
}

UNIT_TEST(spacer_switch_of_mode_keeps_bound)
{
	struct spacer_run r = { .random = false };

	for (int i = 0; i < 100; i++) {
		s64 balance;

		r.random = true;
		balance = r.balance;
		for (int n = 0; n < 100; n++)
			spacer_packet(&r, ONE / 3);
		r.random = false;
		r.balance = balance;	/* random signals are no debt */
		for (int n = 0; n < 100; n++) {
			spacer_packet(&r, ONE / 3);
			spacer_check(&r);
		}
	}
}

/* The credit of a signal is one whole probability, no more and no less; the
 * dither moves on by the sequence x * 1664525 + 1013904223 + rnd mod 2^32.
 */
UNIT_TEST(spacer_state_after_signals_is_exact)
{
	struct dualpi2_accumulator s = { 0 };

	CHECK(!dualpi2_accumulate(&s, ONE / 2, false, 3), "at a half");
	CHECK_EQ(s.credit_q32, ONE / 2);
	CHECK_EQ(s.dither_q32, 0);
	CHECK(dualpi2_accumulate(&s, ONE / 2, false, 5), "at one");
	CHECK_EQ(s.credit_q32, 0);
	CHECK_EQ(s.dither_q32, 1013904228);
	/* 0.236 early, hence on credit */
	CHECK(dualpi2_accumulate(&s, ONE - 1, false, 7), "dithered");
	CHECK_EQ(s.credit_q32 + 1, 0);
	CHECK_EQ(s.dither_q32, (1013904228ULL * 1664525 + 1013904230) % ONE);
}
