// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overload: when it begins and ends, and how it is counted.
 */

UNIT_TEST(overload_enters_when_k_times_base_reaches_one)
{
	for (u32 k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);
		struct dualpi2_vars v = unit_vars(&p);
		/* maximum p' with k p' < 1 */
		u64 below = (ONE - 1) / k;

		v.base_q32 = below;
		dualpi2_vars_derive(&p, &v, 10);
		CHECK(!v.overload && !v.overload_count, "too early, k %u", k);
		CHECK(v.coupled_q32 < ONE, "p_CL is 1, k %u", k);
		v.base_q32 = below + 1;
		dualpi2_vars_derive(&p, &v, 20);
		CHECK(v.overload, "too late, k %u", k);
		CHECK_EQ(v.overload_count, 1);
		CHECK_EQ(v.overload_since_ns, 20);
		CHECK_EQ(v.coupled_q32, ONE);
	}
}

UNIT_TEST(overload_with_k_one_enters_at_certain_drop_only)
{
	struct dualpi2_params p = unit_params_k(1);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = ONE - 1;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK(!v.overload, "below 1");
	v.base_q32 = ONE;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK(v.overload, "at 1");
}

/* p_Cmax of every percentage is where p'^2 reaches it, whatever k is */
UNIT_TEST(overload_with_p_cmax_enters_there)
{
	for (u32 pct = 1; pct <= 100; pct++) {
		struct dualpi2_params p = UNIT_PARAMS(cfg.p_cmax_pct = pct,
						      cfg.coupling = 1 + pct % 7);
		struct dualpi2_vars v = unit_vars(&p);

		/* p_Cmax is rounded down by up to 1, and 1/(2 sqrt(.01)) is 5 */
		CHECK(fabsl(p.enter_q32 - ONE * sqrtl(pct / 100.0L)) <= 6,
		      "%u percent: %llu", pct, (ull)p.enter_q32);
		overload_at(&p, &v, p.enter_q32 - 1, 1);
		CHECK(!v.overload, "too early, %u percent", pct);
		CHECK(v.classic_q32 < ONE * pct / 100, "p_C %llu", (ull)v.classic_q32);
		overload_at(&p, &v, p.enter_q32, 2);
		CHECK(v.overload, "too late, %u percent", pct);
		CHECK(v.classic_q32 >= ONE * pct / 100, "p_C %llu", (ull)v.classic_q32);
	}
}

UNIT_TEST(overload_p_cmax_of_a_quarter_is_the_default)
{
	struct dualpi2_config cfg = unit_config();
	u64 enter = unit_params(&cfg).enter_q32;

	cfg.p_cmax_pct = 25;
	CHECK_EQ(unit_params(&cfg).enter_q32, enter);
}

UNIT_TEST(overload_ends_after_the_hold_when_it_fell_below)
{
	struct dualpi2_params p = unit_params_k(2);
	u64 hold = (u64)p.tupdate_ns * DUALPI2_OVERLOAD_HOLD;
	struct dualpi2_vars v = unit_vars(&p);

	CHECK_EQ(hold, 128 * MS);
	overload_at(&p, &v, ONE, 10);
	CHECK_EQ(dualpi2_overload_present_ns(&v, 9), 0);
	overload_at(&p, &v, p.enter_q32 - 1, 100);
	CHECK(v.overload, "at once");
	CHECK_EQ(dualpi2_overload_present_ns(&v, 1000), 90);
	overload_at(&p, &v, 0, 100 + hold - 1);
	CHECK(v.overload, "before the hold is over");
	overload_at(&p, &v, p.enter_q32 - 1, 100 + hold);
	CHECK(!v.overload, "after the hold");
	CHECK_EQ(v.overload_last_ns, 90);
	CHECK_EQ(v.overload_total_ns, 90);
	CHECK_EQ(dualpi2_overload_present_ns(&v, 9999), 0);
	/* the next one is another one */
	overload_at(&p, &v, p.enter_q32, 101 + hold);
	CHECK_EQ(v.overload_count, 2);
	CHECK_EQ(v.overload_since_ns, 101 + hold);
}

/* Eight updates, however long they take. */
UNIT_TEST(overload_hold_of_long_periods_does_not_wrap)
{
	struct dualpi2_params p = UNIT_PARAMS(cfg.tupdate_us = 4000000);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE, 10);
	overload_at(&p, &v, 0, SEC);
	overload_at(&p, &v, 0, 33 * SEC - 1);
	CHECK(v.overload, "before the hold is over");
	overload_at(&p, &v, 0, 33 * SEC);
	CHECK(!v.overload, "after the hold");
	CHECK_EQ(v.overload_last_ns, SEC - 10);
}

UNIT_TEST(overload_that_comes_back_within_the_hold_goes_on)
{
	struct dualpi2_params p = unit_params_k(2);
	u64 hold = (u64)p.tupdate_ns * DUALPI2_OVERLOAD_HOLD;
	struct dualpi2_vars v = unit_vars(&p);
	u64 now = 5;

	for (int i = 0; i < 100; i++) {
		overload_at(&p, &v, p.enter_q32, now);
		CHECK_EQ(dualpi2_overload_ns(&v, now), now - 5);
		overload_at(&p, &v, p.enter_q32 - 1, now + 1);
		now += hold;
		overload_at(&p, &v, 0, now);
		CHECK(v.overload, "ended at %llu", (ull)now);
	}
	CHECK_EQ(v.overload_count, 1);
}

/* against a list of all updates, looked through from the start each time */
UNIT_TEST(overload_count_and_time_are_exact)
{
	enum { UPDATES = 2000 };
	static u64 at[UPDATES];
	static bool above[UPDATES];
	struct dualpi2_params p = unit_params_k(2);
	u64 hold = (u64)p.tupdate_ns * DUALPI2_OVERLOAD_HOLD, now = 1000, count = 0;
	struct dualpi2_vars v = unit_vars(&p);
	int j;

	for (int i = 0; i < UPDATES; i++) {
		u64 base = unit_any_q32(), since = 0, below = 0, total = 0;
		bool on = false;

		now += unit_any(1, 4 * hold);
		at[i] = now;
		above[i] = 2 * base >= ONE;
		for (count = 0, j = 0; j <= i; j++) {
			if (above[j]) {
				if (!on) {
					count++;
					since = at[j];
				}
				on = true;
				below = 0;
			} else if (on) {
				below = below ? below : at[j];
				if (at[j] - below >= hold) {
					total += below - since;
					on = false;
				}
			}
		}
		overload_at(&p, &v, base, now);
		CHECK_EQ(v.overload, on);
		CHECK_EQ(v.overload_count, count);
		CHECK_EQ(v.overload_total_ns, total);
		if (on)
			total += (below ? below : now) - since;
		CHECK_EQ(dualpi2_overload_ns(&v, now), total);
	}
	CHECK(count > 100, "only %llu times in overload", (ull)count);
}

/* The queue ran empty in overload, and nothing came for ten seconds. */
UNIT_TEST(overload_of_a_queue_that_ran_empty_ends_with_it)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE * 6 / 10, 1 * SEC);
	v.updated_ns = 3 * SEC;
	v.delay_ns = p.target_ns;
	dualpi2_pi_idle(&p, &v, 13 * SEC);
	CHECK(!v.overload, "p' %llu", (ull)v.base_q32);
	CHECK_EQ(v.overload_last_ns, 2 * SEC + p.tupdate_ns);
}

/* whoever looks at it in between, and p' above the edge for long */
UNIT_TEST(overload_of_an_empty_queue_ends_the_same_if_watched)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	u64 now = 3 * SEC;

	overload_at(&p, &v, ONE, 1 * SEC);
	v.updated_ns = now;
	v.delay_ns = p.target_ns;
	for (u32 i = 0; i < DUALPI2_OVERLOAD_HOLD; i++) {
		now += p.tupdate_ns;
		dualpi2_pi_idle(&p, &v, now);
		CHECK(v.overload, "ended at %llu", (ull)now);
	}
	dualpi2_pi_idle(&p, &v, now + p.tupdate_ns);
	CHECK(v.base_q32 >= p.enter_q32, "p' %llu", (ull)v.base_q32);
	CHECK(!v.overload, "goes on");
	CHECK_EQ(v.overload_last_ns, 2 * SEC + p.tupdate_ns);
}

UNIT_TEST(overload_of_a_queue_empty_for_a_moment_goes_on)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	/* p' remains above the edge, which is no overload without packets */
	overload_at(&p, &v, ONE * 9 / 10, 1 * SEC);
	v.updated_ns = 3 * SEC;
	dualpi2_pi_idle(&p, &v, 3 * SEC + p.tupdate_ns);
	CHECK(v.base_q32 >= p.enter_q32, "p' %llu", (ull)v.base_q32);
	CHECK(v.overload, "ended");
	CHECK_EQ(dualpi2_overload_present_ns(&v, 4 * SEC), 2 * SEC + p.tupdate_ns);
	/* falls below it, but not for long */
	overload_at(&p, &v, p.enter_q32, 4 * SEC);
	CHECK_EQ(dualpi2_overload_present_ns(&v, 4 * SEC), 3 * SEC);
	v.updated_ns = 4 * SEC;
	v.delay_ns = p.target_ns;
	dualpi2_pi_idle(&p, &v, 4 * SEC + 3 * p.tupdate_ns);
	CHECK(v.overload, "ended");
	CHECK_EQ(dualpi2_overload_present_ns(&v, 5 * SEC), 3 * SEC + p.tupdate_ns);
	overload_at(&p, &v, p.enter_q32, 4 * SEC + 4 * p.tupdate_ns);
	CHECK_EQ(v.overload_count, 1);
	/* an end that was noted is not put off by the queue being empty */
	overload_at(&p, &v, 0, 6 * SEC);
	v.updated_ns = 6 * SEC + 1;
	dualpi2_pi_idle(&p, &v, 9 * SEC);
	CHECK_EQ(v.overload_last_ns, 5 * SEC);
}

UNIT_TEST(overload_reset_ends_it_and_keeps_the_account)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = ONE;
	dualpi2_vars_derive(&p, &v, 100);
	v.c_signal.credit_q32 = 1;
	v.l_drop.dither_q32 = 2;
	v.delay_ns = 3;
	dualpi2_vars_init(&p, &v, 1514, 400);
	CHECK(!v.overload, "still in overload");
	CHECK_EQ(v.base_q32 | v.classic_q32 | v.coupled_q32 | v.delay_ns, 0);
	CHECK_EQ(v.c_signal.credit_q32 | v.l_drop.dither_q32, 0);
	CHECK_EQ(v.updated_ns, 400);
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(dualpi2_overload_ns(&v, 400), 300);
	CHECK_EQ(dualpi2_overload_ns(&v, 9999), 300);
	CHECK_EQ((u32)v.credit, (u32)dualpi2_credit_start(&p, 1514));
	/* without overload nothing is added */
	dualpi2_vars_init(&p, &v, 1514, 700);
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(dualpi2_overload_ns(&v, 700), 300);
}

UNIT_TEST(overload_reset_adds_to_what_was_before)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE, 100);
	overload_at(&p, &v, 0, 130);
	overload_at(&p, &v, 0, SEC);
	overload_at(&p, &v, ONE, 2 * SEC);
	v.report.next_ns = 77;
	dualpi2_vars_init(&p, &v, 1514, 2 * SEC + 7);
	CHECK_EQ(v.overload_last_ns, 7);
	CHECK_EQ(v.overload_since_ns, 2 * SEC);
	CHECK_EQ(v.report.next_ns, 77);
	CHECK_EQ(v.report.since_ns, 100);
	CHECK_EQ(v.overload_count, 2);
	CHECK_EQ(dualpi2_overload_ns(&v, 3 * SEC), 37);
	/* one that fell below the edge before ended then */
	overload_at(&p, &v, ONE, 4 * SEC);
	overload_at(&p, &v, 0, 4 * SEC + 5);
	dualpi2_vars_init(&p, &v, 1514, 4 * SEC + 1000);
	CHECK_EQ(v.overload_last_ns, 5);
	CHECK_EQ(v.overload_below_ns, 0);
}

/* What overload drops changes the account of its queue alone. */
UNIT_TEST(verdict_overload_drops_have_one_account_in_each_queue)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p), want;
	struct dualpi2_packet pkt = { .profile = DUALPI2_C_DROP, .may_drop = true, .l_pkts = 2 };

	v.base_q32 = ONE / 10 * 6;
	dualpi2_vars_derive(&p, &v, 0);
	want = v;
	for (int n = 0; n < 10; n++)
		dualpi2_verdict(&p, &v, &pkt);
	want.c_signal = v.c_signal;
	CHECK(!memcmp(&v, &want, sizeof(v)), "the Classic queue");
	pkt.profile = DUALPI2_L_UNMARKED;
	for (int n = 0; n < 10; n++)
		dualpi2_verdict(&p, &v, &pkt);
	want.l_drop = v.l_drop;
	CHECK(!memcmp(&v, &want, sizeof(v)), "the L4S queue");
}

/* ---- where overload may begin ---- */

/* A link of a rate, p' of the last update, and a delay then. */
static void overload_link(const struct dualpi2_config *cfg,
			  struct dualpi2_params *p, struct dualpi2_vars *v, u64 bit_per_s)
{
	*p = unit_params(cfg);
	*v = unit_vars(p);
	dualpi2_set_target(p, v, dualpi2_ns_per_byte_q20(bit_per_s / 8), 1514);
}

/* An update that finds a delay that did not change since the last one. */
static void overload_update(const struct dualpi2_params *p,
			    struct dualpi2_vars *v, u64 delay_ns, u64 now_ns)
{
	v->delay_ns = delay_ns;
	v->updated_ns = now_ns - p->tupdate_ns;
	dualpi2_pi_update(p, v, delay_ns, now_ns);
}

/* 128 packets of 1514 bytes take 155 ms at 10 Mbit/s; on slow links, from 1 Mbit/s
 * down, it is 256, which take 48 s at 64 kbit/s.
 */
UNIT_TEST(overload_begins_with_a_delay_of_128_or_256_packets_only)
{
	static const struct { u64 bit_per_s, delay_ns; } rows[] = {
		{ 8000, 387584 * MS }, { 64000, 48448 * MS },
		{ 1000000, 3100672000 }, { 10000000, 155033600 },
		{ 100000000, 15503360 },
	};

	for (unsigned int drop = 0; drop < 2; drop++)
	for_each(row, rows) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;
		u64 now = SEC;

		cfg.drop_overload = drop;
		cfg.coupling = 2 + drop;
		overload_link(&cfg, &p, &v, row->bit_per_s);
		for (int n = 0; n < 14000; n++) {
			overload_update(&p, &v, row->delay_ns - 1, now);
			CHECK(v.base_q32 < p.enter_q32, "p' %llu at %llu bit/s",
			      (ull)v.base_q32, (ull)row->bit_per_s);
			now += 16 * MS;
		}
		CHECK_EQ(v.base_q32, p.enter_q32 - 1);
		CHECK_EQ(v.overload_count, 0);
		CHECK_EQ(v.coupled_q32, cfg.coupling * (p.enter_q32 - 1));
		/* p' falls from there as from anywhere */
		overload_update(&p, &v, 0, now);
		CHECK_NEAR(v.base_q32, p.enter_q32 - 11540474ULL * 15 * MS / (1 << 24), 3);
		v.base_q32 = p.enter_q32 - 1;
		CHECK(dualpi2_overload_may_begin(&v, row->delay_ns + 1, now), "not above");
		overload_update(&p, &v, row->delay_ns, now + 16 * MS);
		CHECK(v.overload && v.base_q32 >= p.enter_q32, "at %llu bit/s",
		      (ull)row->bit_per_s);
		CHECK_EQ(v.overload_since_ns, now + 16 * MS);
		CHECK_EQ(v.overload_count, 1);
	}
}

/* Any packet below 1514 bytes is a shorter time. */
UNIT_TEST(overload_delay_follows_a_small_mtu)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);
	u64 ns_per_byte_q20 = dualpi2_ns_per_byte_q20(125000);

	dualpi2_set_target(&p, &v, ns_per_byte_q20, 500);	/* 4 ms */
	v.base_q32 = p.enter_q32 - 1;
	overload_update(&p, &v, 512 * MS - 1, SEC);
	CHECK(!v.overload, "below 128 packets");
	overload_update(&p, &v, 512 * MS, SEC);
	CHECK(v.overload, "at 128 packets");
	v = unit_vars(&p);
	dualpi2_set_target(&p, &v, ns_per_byte_q20, 9014);
	CHECK_EQ(v.packet_ns, 12112000);
}

/* Any overload lasts long enough for the rate to be observed. */
UNIT_TEST(overload_of_an_unknown_rate_does_not_begin)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	overload_link(&cfg, &p, &v, 0);
	CHECK_EQ(v.packet_ns, U32_MAX);
	v.base_q32 = ONE;
	overload_update(&p, &v, 3600 * SEC, SEC);
	CHECK(!v.overload && v.base_q32 == p.enter_q32 - 1, "begun");
}

/* The single queue of pi2, which has no link. */
UNIT_TEST(overload_without_a_link_begins_at_any_delay)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	CHECK_EQ(v.packet_ns, 0);
	v.base_q32 = p.enter_q32 - 1;
	overload_update(&p, &v, 15 * MS + 10, SEC);
	CHECK(v.overload, "not at 15 ms");
}

/* Up to 10 s after the end, which is when p' fell below the threshold. */
UNIT_TEST(overload_that_was_recent_begins_at_any_delay)
{
	static const u64 begins[] = { 0, 1, SEC, 1ULL << 40, 1ULL << 62 };
	static const u64 lengths[] = { 0, 1, 100 * MS, 100 * SEC };

	for_each(begin, begins)
	for_each(length, lengths) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_vars v, then;
		struct dualpi2_params p;
		u64 end = *begin + *length;

		if (!end)	/* no update at time 0 sees p' fall */
			continue;
		overload_link(&cfg, &p, &v, 64000);
		CHECK(!dualpi2_overload_may_begin(&v, 0, *begin), "never was");
		/* earlier ones, of an hour */
		v.overload_total_ns = 3600 * SEC;
		v.overload_count = 7;
		overload_at(&p, &v, p.enter_q32, *begin);
		CHECK(dualpi2_overload_may_begin(&v, 0, *begin), "is now");
		CHECK(dualpi2_overload_may_begin(&v, 0, *begin + 3600 * SEC), "is still");
		overload_at(&p, &v, 0, end);
		overload_at(&p, &v, 0, end + 128 * MS);
		CHECK(!v.overload, "under way");
		CHECK_EQ(v.overload_last_ns, *length);
		CHECK(dualpi2_overload_may_begin(&v, 0, end + 128 * MS), "at once");

		then = v;
		v.base_q32 = p.enter_q32 - 1;
		overload_update(&p, &v, 500 * MS, end + 10 * SEC - 1);
		CHECK(v.overload, "less than 10 s later");
		CHECK_EQ(v.overload_count, 9);

		v = then;
		v.base_q32 = p.enter_q32 - 1;
		overload_update(&p, &v, 500 * MS, end + 10 * SEC);
		CHECK(!v.overload, "10 s later");
		CHECK_EQ(v.base_q32, p.enter_q32 - 1);

		/* A reset does not make the senders others. */
		v = then;
		dualpi2_vars_init(&p, &v, 1514, end + SEC);
		CHECK(dualpi2_overload_may_begin(&v, 0, end + SEC), "after reset");
		CHECK(!dualpi2_overload_may_begin(&v, 0, end + 11 * SEC), "later");
	}
}

/* What is found out later: p' was below the threshold before it was above. */
UNIT_TEST(overload_that_ends_before_its_begin_has_no_length)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	overload_link(&cfg, &p, &v, 64000);
	dualpi2_overload_update(&p, &v, true, 0, SEC);
	dualpi2_overload_update(&p, &v, false, SEC - 1, 2 * SEC);
	CHECK(!v.overload, "in overload");
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(v.overload_last_ns, 0);
	CHECK_EQ(v.overload_total_ns, 0);
	/* but it was one */
	CHECK(dualpi2_overload_may_begin(&v, 0, 11 * SEC - 1), "less than 10 s later");
	CHECK(!dualpi2_overload_may_begin(&v, 0, 11 * SEC), "10 s later");
}

/* p_Cmax that was given is meant to be enforced at any delay; no other option is. */
UNIT_TEST(overload_with_p_cmax_begins_at_any_delay)
{
	struct dualpi2_config cfg = UNIT_CONFIG(cfg.p_cmax_pct = 25);
	struct dualpi2_params p;
	struct dualpi2_vars v;

	overload_link(&cfg, &p, &v, 64000);
	CHECK_EQ(v.packet_ns, 0);
	cfg.p_cmax_pct = 0;
	cfg.signal = DUALPI2_SIGNAL_RANDOM;
	cfg.drop_early = true;
	overload_link(&cfg, &p, &v, 64000);
	CHECK_EQ(v.packet_ns, 189250000);
}

/* What is under way goes on at any delay, and ends as ever. */
UNIT_TEST(overload_under_way_goes_on_at_any_delay)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	overload_link(&cfg, &p, &v, 64000);
	overload_at(&p, &v, ONE, SEC);
	overload_update(&p, &v, 500 * MS, 20 * SEC);
	CHECK(v.overload && v.base_q32 == ONE, "p' %llu", (ull)v.base_q32);
	/* within the hold */
	overload_at(&p, &v, p.enter_q32 - 1, 30 * SEC);
	overload_update(&p, &v, 500 * MS, 30 * SEC + 127 * MS);
	CHECK(v.overload && v.base_q32 >= p.enter_q32, "p' %llu", (ull)v.base_q32);
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(v.overload_below_ns, 0);
	overload_at(&p, &v, p.enter_q32 - 1, 40 * SEC);
	overload_at(&p, &v, p.enter_q32 - 1, 40 * SEC + 128 * MS);
	CHECK(!v.overload, "after the hold");
	CHECK_EQ(v.overload_below_ns, 0);
	CHECK_EQ(v.overload_last_ns, 39 * SEC);
}

/* Other options, such as a greater k, do not ask for the delay. */
UNIT_TEST(overload_by_a_change_of_options_begins_at_any_delay)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	overload_link(&cfg, &p, &v, 64000);
	v.base_q32 = p.enter_q32 - 1;
	overload_update(&p, &v, 500 * MS, SEC);
	CHECK(!v.overload, "before");
	cfg.coupling = 4;
	p = unit_params(&cfg);
	dualpi2_vars_derive(&p, &v, SEC);
	CHECK(v.overload, "after");
}

UNIT_TEST(overload_without_drop_holds_base_at_its_edge)
{
	for (u32 k = 1; k <= 255; k++) {
		struct dualpi2_params p = UNIT_PARAMS(cfg.coupling = k, cfg.drop_overload = false);
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = ONE;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK_EQ(v.base_q32, (ONE + k - 1) / k);
		CHECK_EQ(v.coupled_q32, ONE);
		CHECK(fabsl(v.classic_q32 - (long double)ONE / k / k) <= 3,
		      "p_C %llu, k %u", (ull)v.classic_q32, k);
		CHECK(v.overload, "no overload, k %u", k);
		/* below the edge nothing is changed */
		v.base_q32 = p.enter_q32 - 1;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK_EQ(v.base_q32, p.enter_q32 - 1);
	}
}
