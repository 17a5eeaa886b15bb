// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overload: when it begins and ends, how it is counted and reported, and how the
 * controller settles in a closed loop with traffic that does not respond.
 */

/* p' at a time, as an update would have it */
static void overload_at(const struct dualpi2_params *p, struct dualpi2_vars *v,
			u64 base_q32, u64 now_ns)
{
	v->base_q32 = base_q32;
	dualpi2_vars_derive(p, v, now_ns);
}

static void overload_enters_when_k_times_base_reaches_one(void)
{
	u32 k;

	for (k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);
		struct dualpi2_vars v = unit_vars(&p);
		/* greatest p' with k p' < 1 */
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

static void overload_with_k_one_enters_at_certain_drop_only(void)
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
static void overload_with_p_cmax_enters_there(void)
{
	u32 pct;

	for (pct = 1; pct <= 100; pct++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;

		cfg.p_cmax_pct = pct;
		cfg.coupling = 1 + pct % 7;
		p = unit_params(&cfg);
		v = unit_vars(&p);
		/* p_Cmax is rounded down by up to 1, and 1/(2 sqrt(.01)) is 5 */
		CHECK(fabsl(p.enter_q32 - ONE * sqrtl(pct / 100.0L)) <= 6,
		      "%u percent: %llu", pct, (ull)p.enter_q32);
		overload_at(&p, &v, p.enter_q32 - 1, 1);
		CHECK(!v.overload, "too early, %u percent", pct);
		CHECK(v.classic_q32 < ONE * pct / 100, "p_C %llu",
		      (ull)v.classic_q32);
		overload_at(&p, &v, p.enter_q32, 2);
		CHECK(v.overload, "too late, %u percent", pct);
		CHECK(v.classic_q32 >= ONE * pct / 100, "p_C %llu",
		      (ull)v.classic_q32);
	}
}

static void overload_p_cmax_of_a_quarter_is_the_default(void)
{
	struct dualpi2_config cfg = unit_config();
	u64 enter = unit_params(&cfg).enter_q32;

	cfg.p_cmax_pct = 25;
	CHECK_EQ(unit_params(&cfg).enter_q32, enter);
}

static void overload_ends_after_the_hold_when_it_fell_below(void)
{
	struct dualpi2_params p = unit_params_k(2);
	u64 hold = (u64)p.tupdate_ns * DUALPI2_OVERLOAD_HOLD;
	struct dualpi2_vars v = unit_vars(&p);

	CHECK_EQ(hold, 128 * MS);
	overload_at(&p, &v, ONE, 10);
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
static void overload_hold_of_long_periods_does_not_wrap(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	cfg.tupdate_us = 4000000;
	p = unit_params(&cfg);
	v = unit_vars(&p);
	overload_at(&p, &v, ONE, 10);
	overload_at(&p, &v, 0, SEC);
	overload_at(&p, &v, 0, 33 * SEC - 1);
	CHECK(v.overload, "before the hold is over");
	overload_at(&p, &v, 0, 33 * SEC);
	CHECK(!v.overload, "after the hold");
	CHECK_EQ(v.overload_last_ns, SEC - 10);
}

static void overload_that_comes_back_within_the_hold_goes_on(void)
{
	struct dualpi2_params p = unit_params_k(2);
	u64 hold = (u64)p.tupdate_ns * DUALPI2_OVERLOAD_HOLD;
	struct dualpi2_vars v = unit_vars(&p);
	u64 now = 5;
	int i;

	for (i = 0; i < 100; i++) {
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
static void overload_count_and_time_are_exact(void)
{
	enum { UPDATES = 2000 };
	static u64 at[UPDATES];
	static bool above[UPDATES];
	struct dualpi2_params p = unit_params_k(2);
	u64 hold = (u64)p.tupdate_ns * DUALPI2_OVERLOAD_HOLD, now = 1000, count = 0;
	struct dualpi2_vars v = unit_vars(&p);
	int i, j;

	for (i = 0; i < UPDATES; i++) {
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
static void overload_of_a_queue_that_ran_empty_ends_with_it(void)
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
static void overload_of_an_empty_queue_ends_the_same_if_watched(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	u64 now = 3 * SEC;
	u32 i;

	overload_at(&p, &v, ONE, 1 * SEC);
	v.updated_ns = now;
	v.delay_ns = p.target_ns;
	for (i = 0; i < DUALPI2_OVERLOAD_HOLD; i++) {
		now += p.tupdate_ns;
		dualpi2_pi_idle(&p, &v, now);
		CHECK(v.overload, "ended at %llu", (ull)now);
	}
	dualpi2_pi_idle(&p, &v, now + p.tupdate_ns);
	CHECK(v.base_q32 >= p.enter_q32, "p' %llu", (ull)v.base_q32);
	CHECK(!v.overload, "goes on");
	CHECK_EQ(v.overload_last_ns, 2 * SEC + p.tupdate_ns);
}

static void overload_of_a_queue_empty_for_a_moment_goes_on(void)
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

static void overload_reset_ends_it_and_keeps_the_account(void)
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

static void overload_reset_adds_to_what_was_before(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE, 100);
	overload_at(&p, &v, 0, 130);
	overload_at(&p, &v, 0, SEC);
	overload_at(&p, &v, ONE, 2 * SEC);
	v.report.quiet_until_ns = 77;
	dualpi2_vars_init(&p, &v, 1514, 2 * SEC + 7);
	CHECK_EQ(v.overload_last_ns, 7);
	CHECK_EQ(v.overload_since_ns, 2 * SEC);
	CHECK_EQ(v.report.quiet_until_ns, 77);
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

/* What dualpi2_report_next() says at a time: kind, and what it tells of. */
static void overload_reports(const struct dualpi2_params *p,
			     struct dualpi2_vars *v, u64 now_ns,
			     enum dualpi2_report kind, u64 since_ns,
			     u64 duration_ns, u64 count)
{
	struct dualpi2_overload_report r = { 1, 2, 3 };

	CHECK_EQ(dualpi2_report_next(p, v, now_ns, &r), kind);
	if (kind == DUALPI2_REPORT_NONE)
		return;
	CHECK_EQ(r.since_ns, since_ns);
	CHECK_EQ(r.duration_ns, duration_ns);
	CHECK_EQ(r.count, count);
}

static void overload_silent(const struct dualpi2_params *p,
			    struct dualpi2_vars *v, u64 now_ns)
{
	overload_reports(p, v, now_ns, DUALPI2_REPORT_NONE, 0, 0, 0);
}

/* Begins at one time, ends at another. */
static void overload_from_to(const struct dualpi2_params *p,
			     struct dualpi2_vars *v, u64 from_ns, u64 to_ns)
{
	overload_at(p, v, ONE, from_ns);
	overload_at(p, v, 0, to_ns);
	overload_at(p, v, 0, to_ns + 128 * MS);
}

static void report_of_a_long_overload_is_its_begin_and_its_end(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_silent(&p, &v, 1 * SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 1 * SEC), 0);
	overload_at(&p, &v, ONE, 10 * SEC);
	overload_reports(&p, &v, 10 * SEC + 5, DUALPI2_REPORT_BEGIN, 10 * SEC,
			 5, 1);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 10 * SEC + 5), SEC);
	overload_silent(&p, &v, 11 * SEC + 4);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 11 * SEC + 4), 1);
	/* it goes on, which is no news; it is looked at every second */
	overload_silent(&p, &v, 11 * SEC + 5);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 11 * SEC + 5), SEC);
	overload_at(&p, &v, 0, 12 * SEC);
	overload_silent(&p, &v, 12 * SEC);
	overload_at(&p, &v, 0, 12 * SEC + 128 * MS);
	overload_reports(&p, &v, 12 * SEC + 128 * MS, DUALPI2_REPORT_END,
			 10 * SEC, 2 * SEC, 1);
	overload_silent(&p, &v, 20 * SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 12 * SEC + 128 * MS), 0);
}

static void report_of_a_short_overload_comes_after_the_period(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE, 10 * SEC);
	overload_reports(&p, &v, 10 * SEC, DUALPI2_REPORT_BEGIN, 10 * SEC, 0,
			 1);
	overload_from_to(&p, &v, 10 * SEC, 10 * SEC + 100);
	overload_silent(&p, &v, 10 * SEC + 200 * MS);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 10 * SEC + 200 * MS),
		 800 * MS);
	/* another one meanwhile */
	overload_from_to(&p, &v, 10 * SEC + 300 * MS, 10 * SEC + 300 * MS + 50);
	overload_silent(&p, &v, 11 * SEC - 1);
	overload_reports(&p, &v, 11 * SEC, DUALPI2_REPORT_END, 10 * SEC, 150,
			 2);
	overload_silent(&p, &v, 30 * SEC);
}

static void report_never_seen_in_overload_is_an_end(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_from_to(&p, &v, 10 * SEC, 11 * SEC);
	overload_reports(&p, &v, 12 * SEC, DUALPI2_REPORT_END, 10 * SEC, SEC,
			 1);
	/* and what is seen too late as a begin tells of those before it */
	overload_from_to(&p, &v, 12 * SEC + 100 * MS, 12 * SEC + 200 * MS);
	overload_at(&p, &v, ONE, 12 * SEC + 500 * MS);
	overload_silent(&p, &v, 13 * SEC - 1);
	overload_reports(&p, &v, 13 * SEC, DUALPI2_REPORT_BEGIN,
			 12 * SEC + 100 * MS, 600 * MS, 2);
	overload_at(&p, &v, 0, 13 * SEC + 1);
	overload_at(&p, &v, 0, 15 * SEC);
	overload_reports(&p, &v, 15 * SEC, DUALPI2_REPORT_END,
			 12 * SEC + 100 * MS, 600 * MS + 1, 2);
}

static void report_none_when_off_and_none_of_that_time_later(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg), off;
	struct dualpi2_vars v = unit_vars(&p);

	cfg.report_us = 0;
	off = unit_params(&cfg);
	overload_at(&off, &v, ONE, 10 * SEC);
	overload_silent(&off, &v, 10 * SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&off, &v, 10 * SEC), 0);
	overload_at(&off, &v, 0, 11 * SEC);
	overload_at(&off, &v, 0, 12 * SEC);
	overload_silent(&off, &v, 12 * SEC);
	overload_silent(&p, &v, 13 * SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 13 * SEC), 0);
}

static void report_time_without_follows_a_shorter_period(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params lazy, p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	cfg.report_us = U32_MAX;
	lazy = unit_params(&cfg);
	overload_at(&lazy, &v, ONE, 10 * SEC);
	overload_reports(&lazy, &v, 10 * SEC, DUALPI2_REPORT_BEGIN, 10 * SEC, 0,
			 1);
	overload_from_to(&lazy, &v, 11 * SEC, 12 * SEC);
	overload_silent(&lazy, &v, 20 * SEC);
	dualpi2_report_change(&lazy, &p, &v, 20 * SEC);
	overload_silent(&p, &v, 21 * SEC - 1);
	overload_reports(&p, &v, 21 * SEC, DUALPI2_REPORT_END, 10 * SEC,
			 2 * SEC, 1);
	/* and a longer one does not lengthen it */
	overload_at(&p, &v, ONE, 21 * SEC + 1);
	dualpi2_report_change(&p, &lazy, &v, 21 * SEC + 1);
	overload_reports(&lazy, &v, 22 * SEC, DUALPI2_REPORT_BEGIN,
			 21 * SEC + 1, SEC - 1, 1);
}

/* Right after boot as well; and then, though reports are an hour apart, each second. */
static void report_is_asked_for_when_its_time_is_over(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	cfg.report_us = 3600000000U;
	p = unit_params(&cfg);
	v = unit_vars(&p);
	overload_at(&p, &v, ONE, 5 * MS);
	overload_reports(&p, &v, 5 * MS, DUALPI2_REPORT_BEGIN, 5 * MS, 0, 1);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 6 * MS), 3600 * SEC - MS);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 3600 * SEC + 5 * MS), SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 4000 * SEC), SEC);
}

static void report_switched_on_tells_of_what_goes_on_only(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params off, p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	cfg.report_us = 0;
	off = unit_params(&cfg);
	/* one that was over, which nobody has asked about */
	overload_from_to(&off, &v, 10 * SEC, 11 * SEC);
	dualpi2_report_change(&off, &p, &v, 20 * SEC);
	overload_silent(&p, &v, 20 * SEC);
	/* one that goes on, and was asked about */
	dualpi2_report_change(&p, &off, &v, 21 * SEC);
	overload_at(&off, &v, ONE, 22 * SEC);
	overload_silent(&off, &v, 23 * SEC);
	dualpi2_report_change(&off, &p, &v, 24 * SEC);
	overload_reports(&p, &v, 24 * SEC, DUALPI2_REPORT_BEGIN, 22 * SEC,
			 2 * SEC, 1);
}

/* Whatever happens: no two reports within a period, and when all is over what
 * was reported is what there was.
 */
static void report_storm_keeps_the_period_and_adds_up(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;
	u64 now = SEC, next = 0, total = 0, count = 0, reports = 0, gap;
	int i;

	cfg.report_us = 700000;
	p = unit_params(&cfg);
	v = unit_vars(&p);
	for (i = 0; i < 200000; i++) {
		struct dualpi2_overload_report r;
		enum dualpi2_report kind;

		now += unit_any(1, 300 * MS);
		overload_at(&p, &v, i < 199000 ? unit_any_q32() : 0, now);
		kind = dualpi2_report_next(&p, &v, now, &r);
		gap = dualpi2_report_wait_ns(&p, &v, now);
		CHECK(gap <= 700 * MS, "asked again after %llu", (ull)gap);
		if (kind == DUALPI2_REPORT_NONE)
			continue;
		CHECK(now >= next, "%llu ns too early", (ull)(next - now));
		next = now + 700 * MS;
		reports++;
		if (kind == DUALPI2_REPORT_END) {
			total += r.duration_ns;
			count += r.count;
		}
	}
	CHECK(reports > 1000, "%llu reports", (ull)reports);
	CHECK_EQ(count, v.overload_count);
	CHECK_EQ(total, v.overload_total_ns);
}

/* ---- where overload may begin ---- */

/* A link of a rate, p' of the last update, and a delay then. */
static void overload_link(const struct dualpi2_config *cfg,
			  struct dualpi2_params *p, struct dualpi2_vars *v,
			  u64 bit_per_s)
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
static void overload_begins_with_a_delay_of_128_or_256_packets_only(void)
{
	static const struct { u64 bit_per_s, delay_ns; } rows[] = {
		{ 8000, 387584 * MS }, { 64000, 48448 * MS },
		{ 1000000, 3100672000 }, { 10000000, 155033600 },
		{ 100000000, 15503360 },
	};
	unsigned int i, drop;
	int n;

	for (drop = 0; drop < 2; drop++)
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;
		u64 now = SEC;

		cfg.drop_overload = drop;
		cfg.coupling = 2 + drop;
		overload_link(&cfg, &p, &v, rows[i].bit_per_s);
		for (n = 0; n < 14000; n++) {
			overload_update(&p, &v, rows[i].delay_ns - 1, now);
			CHECK(v.base_q32 < p.enter_q32, "p' %llu at %llu bit/s",
			      (ull)v.base_q32, (ull)rows[i].bit_per_s);
			now += 16 * MS;
		}
		CHECK_EQ(v.base_q32, p.enter_q32 - 1);
		CHECK_EQ(v.overload_count, 0);
		CHECK_EQ(v.coupled_q32, cfg.coupling * (p.enter_q32 - 1));
		/* p' falls from there as from anywhere */
		overload_update(&p, &v, 0, now);
		CHECK_NEAR(v.base_q32, p.enter_q32 - 11540474ULL * 15 * MS / (1 << 24),
			   3);
		v.base_q32 = p.enter_q32 - 1;
		overload_update(&p, &v, rows[i].delay_ns, now + 16 * MS);
		CHECK(v.overload && v.base_q32 >= p.enter_q32, "at %llu bit/s",
		      (ull)rows[i].bit_per_s);
		CHECK_EQ(v.overload_since_ns, now + 16 * MS);
		CHECK_EQ(v.overload_count, 1);
	}
}

/* Any packet below 1514 bytes is a shorter time. */
static void overload_delay_follows_a_small_mtu(void)
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
static void overload_of_an_unknown_rate_does_not_begin(void)
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
static void overload_without_a_link_begins_at_any_delay(void)
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
static void overload_that_was_recent_begins_at_any_delay(void)
{
	static const u64 begins[] = { 0, 1, SEC, 1ULL << 40, 1ULL << 62 };
	static const u64 lengths[] = { 0, 1, 100 * MS, 100 * SEC };
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(begins); i++)
	for (k = 0; k < ARRAY_SIZE(lengths); k++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_vars v, then;
		struct dualpi2_params p;
		u64 end = begins[i] + lengths[k];

		if (!end)	/* no update at time 0 sees p' fall */
			continue;
		overload_link(&cfg, &p, &v, 64000);
		CHECK(!dualpi2_overload_may_begin(&v, 0, begins[i]), "never was");
		/* earlier ones, of an hour */
		v.overload_total_ns = 3600 * SEC;
		v.overload_count = 7;
		overload_at(&p, &v, p.enter_q32, begins[i]);
		CHECK(dualpi2_overload_may_begin(&v, 0, begins[i]), "is now");
		CHECK(dualpi2_overload_may_begin(&v, 0, begins[i] + 3600 * SEC),
		      "is still");
		overload_at(&p, &v, 0, end);
		overload_at(&p, &v, 0, end + 128 * MS);
		CHECK(!v.overload, "under way");
		CHECK_EQ(v.overload_last_ns, lengths[k]);
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

/* What is under way goes on at any delay, and ends as ever. */
static void overload_under_way_goes_on_at_any_delay(void)
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
	CHECK(v.overload && v.base_q32 >= p.enter_q32, "p' %llu",
	      (ull)v.base_q32);
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(v.overload_below_ns, 0);
	overload_at(&p, &v, p.enter_q32 - 1, 40 * SEC);
	overload_at(&p, &v, p.enter_q32 - 1, 40 * SEC + 128 * MS);
	CHECK(!v.overload, "after the hold");
	CHECK_EQ(v.overload_last_ns, 39 * SEC);
}

/* Other options, such as a greater k, do not ask for the delay. */
static void overload_by_a_change_of_options_begins_at_any_delay(void)
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

static void overload_without_drop_holds_base_at_its_edge(void)
{
	u32 k;

	for (k = 1; k <= 255; k++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;

		cfg.coupling = k;
		cfg.drop_overload = false;
		p = unit_params(&cfg);
		v = unit_vars(&p);
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

/*
 * Closed loop.  Packets of 1500 bytes arrive at constant rates, Classic Not-ECT
 * and L4S ECT(1), and do not respond.  The link serves LOOP_PPS packets a
 * second.  Where it settles (rfc9332, T0): below overload only C drops, and
 * p_C = (c + l - 1) / c; in overload both do, and p_C = 1 - 1 / (c + l).
 */
#define LOOP_PPS	8000
#define LOOP_SECONDS	60
#define LOOP_FIFO	65536	/* a power of 2, more than 8 seconds */

struct loop_fifo {
	u64 stamp_ns[LOOP_FIFO];
	u32 head, len;
};

struct loop_result {
	double p_c, p_cl, c_loss, l_loss, l_mark, delay_ms;
	u64 count, late_count;	/* begins: all, in the second half */
	bool overload;
};

static struct loop_fifo loop_fifos[DUALPI2_QUEUES];

static u64 loop_age(const struct loop_fifo *f, u64 now)
{
	return f->len ? now - f->stamp_ns[f->head % LOOP_FIFO] : 0;
}

static u32 loop_bytes(void)
{
	return (loop_fifos[0].len + loop_fifos[1].len) * 1514;
}

/* forward one packet, return false if there is none */
static bool loop_dequeue(const struct dualpi2_params *p,
			 struct dualpi2_vars *v, u64 now, u64 *sent,
			 u64 *drops, u64 *marks)
{
	struct loop_fifo *c = &loop_fifos[DUALPI2_QUEUE_C];
	struct loop_fifo *l = &loop_fifos[DUALPI2_QUEUE_L];
	u32 dropped = 0;

	if (!c->len && !l->len)
		return false;
	for (;;) {
		enum dualpi2_queue queue = dualpi2_sched_pick(v, c->len, l->len);
		struct loop_fifo *f = &loop_fifos[queue];
		struct dualpi2_packet pkt = {
			.profile = queue == DUALPI2_QUEUE_C ?
				   DUALPI2_C_DROP : DUALPI2_L_SCALABLE,
			.native_ok = l->len > 1,
			.low = dualpi2_is_low(loop_bytes(), 1514),
			.may_drop = c->len + l->len > 1 &&
				    dropped < DUALPI2_DROPS_PER_DEQUEUE,
			.l_pkts = l->len,
			.delay_ns = loop_age(f, now),
			.rnd = unit_rnd(),
		};
		enum dualpi2_verdict verdict = dualpi2_verdict(p, v, &pkt);

		f->head++;
		f->len--;
		if (verdict < DUALPI2_DROP_AQM) {
			dualpi2_sched_charge(p, v, queue, c->len,
					     l->len, 1514);
			sent[queue]++;
			if (verdict != DUALPI2_PASS)
				marks[queue]++;
			return true;
		}
		drops[queue]++;
		dropped++;
	}
}

/* loads in thousandths of the link's rate */
static struct loop_result loop_run(const struct dualpi2_config *cfg,
				   u32 c_load, u32 l_load)
{
	static const u64 slot = SEC / LOOP_PPS;
	struct dualpi2_params p = unit_params(cfg);
	struct dualpi2_vars v = unit_vars(&p);
	const u32 load[DUALPI2_QUEUES] = { c_load, l_load };
	u32 due[DUALPI2_QUEUES] = { 0 };
	u64 n, slots = (u64)LOOP_SECONDS * LOOP_PPS, half = slots / 2, updates = 0;
	u64 sent[2] = { 0 }, drops[2] = { 0 }, marks[2] = { 0 };
	struct loop_result r = { 0 };
	unsigned int q;

	loop_fifos[0].len = 0;
	loop_fifos[1].len = 0;
	for (n = 0; n < slots; n++) {
		u64 now = n * slot;

		if (n == half) {
			r.count = v.overload_count;
			memset(sent, 0, sizeof(sent));
			memset(drops, 0, sizeof(drops));
			memset(marks, 0, sizeof(marks));
		}
		for (q = 0; q < DUALPI2_QUEUES; q++) {
			struct loop_fifo *f = &loop_fifos[q];

			for (due[q] += load[q]; due[q] >= 1000; due[q] -= 1000) {
				if (!f->len)
					f->head = 0;
				CHECK(f->len < LOOP_FIFO, "queue of 8 seconds");
				f->stamp_ns[(f->head + f->len++) % LOOP_FIFO] =
					now;
			}
		}
		if (dualpi2_pi_is_due(&v, now)) {
			u64 c_age = loop_age(&loop_fifos[0], now);
			u64 l_age = loop_age(&loop_fifos[1], now);

			dualpi2_pi_update(&p, &v, c_age > l_age ? c_age : l_age,
					  now);
			if (n >= half) {
				r.p_c += (double)v.classic_q32 / ONE;
				r.p_cl += (double)v.coupled_q32 / ONE;
				r.delay_ms += v.delay_ns / 1e6;
				updates++;
			}
		}
		loop_dequeue(&p, &v, now, sent, drops, marks);
	}
	r.p_c /= updates;
	r.p_cl /= updates;
	r.delay_ms /= updates;
	r.c_loss = (double)drops[0] / (drops[0] + sent[0]);
	r.l_loss = (double)drops[1] / (drops[1] + sent[1]);
	r.l_mark = (double)marks[1] / sent[1];
	r.late_count = v.overload_count - r.count;
	r.count = v.overload_count;
	r.overload = v.overload;
	return r;
}

static void loop_check(u32 k, u32 p_cmax_pct, u32 c_load, u32 l_load,
		       enum dualpi2_signal_mode signal, bool overload)
{
	struct dualpi2_config cfg = unit_config();
	double c = c_load / 1000.0, l = l_load / 1000.0;
	double p_c = overload ? 1 - 1 / (c + l) : (c + l - 1) / c;
	double p_cl = fmin(k * sqrt(p_c), 1);
	struct loop_result r;

	cfg.coupling = k;
	cfg.p_cmax_pct = p_cmax_pct;
	cfg.signal = signal;
	r = loop_run(&cfg, c_load, l_load);
	/* the loop may overshoot at first, but then it is to stay */
	CHECK(r.overload == overload && !r.late_count,
	      "k %u c %.3f l %.3f: overload %u, begun %llu times, late %llu",
	      k, c, l, r.overload, (ull)r.count, (ull)r.late_count);
	CHECK(fabs(r.p_c / p_c - 1) < 0.03,
	      "k %u c %.3f l %.3f: p_C %.4f, want %.4f", k, c, l, r.p_c, p_c);
	CHECK(fabs(r.c_loss / p_c - 1) < 0.03,
	      "k %u c %.3f l %.3f: C loss %.4f, want %.4f", k, c, l, r.c_loss,
	      p_c);
	if (overload)
		CHECK(fabs(r.l_loss / p_c - 1) < 0.03,
		      "k %u c %.3f l %.3f: L loss %.4f, want %.4f", k, c, l,
		      r.l_loss, p_c);
	else
		CHECK(r.l_loss == 0, "L4S dropped below overload");
	CHECK(fabs(r.p_cl / p_cl - 1) < 0.03,
	      "k %u c %.3f l %.3f: p_CL %.4f, want %.4f", k, c, l, r.p_cl,
	      p_cl);
	/* marks: at least the coupling; more if the L4S queue stands */
	CHECK(r.l_mark > p_cl * 0.97, "L4S marks %.4f", r.l_mark);
	CHECK(fabs(r.delay_ms - 15) < 0.5, "delay %.2f ms", r.delay_ms);
}

static void loop_below_overload_settles_at_the_excess(void)
{
	/* p_C 0.125 and p_CL 0.707, the example of T0; k 4 needs p_C < 1/16 */
	loop_check(2, 0, 800, 300, DUALPI2_SIGNAL_RECUR, false);
	loop_check(2, 0, 800, 300, DUALPI2_SIGNAL_RANDOM, false);
	loop_check(1, 0, 900, 600, DUALPI2_SIGNAL_RECUR, false);
	loop_check(1, 0, 900, 600, DUALPI2_SIGNAL_RANDOM, false);
	loop_check(4, 0, 730, 300, DUALPI2_SIGNAL_RECUR, false);
	loop_check(4, 0, 730, 300, DUALPI2_SIGNAL_RANDOM, false);
}

static void loop_in_overload_drops_both_alike_at_the_excess(void)
{
	/* c = l = 0.75: p_C 1/3 */
	loop_check(2, 0, 750, 750, DUALPI2_SIGNAL_RECUR, true);
	loop_check(2, 0, 750, 750, DUALPI2_SIGNAL_RANDOM, true);
	loop_check(4, 0, 750, 750, DUALPI2_SIGNAL_RECUR, true);
	loop_check(4, 0, 750, 750, DUALPI2_SIGNAL_RANDOM, true);
	/* 1/11 > p_Cmax = 1/16 */
	loop_check(4, 0, 550, 550, DUALPI2_SIGNAL_RECUR, true);
	/* p_Cmax of k 1 is 1, which is no state to be in; with less of it: 0.6 */
	loop_check(1, 25, 1250, 1250, DUALPI2_SIGNAL_RECUR, true);
	loop_check(1, 25, 1250, 1250, DUALPI2_SIGNAL_RANDOM, true);
	/* and an earlier begin: 1/6 */
	loop_check(2, 10, 600, 600, DUALPI2_SIGNAL_RECUR, true);
}

/* c = l = 0.6: p_C is 1/3 > p_Cmax where only C drops, and 1/6 < p_Cmax where
 * both do.  So it stays at p_Cmax, where L4S drops now and then, and the state
 * that is reported begins once.
 */
static void loop_at_the_edge_of_overload_stays_there(void)
{
	static const u32 cases[][4] = {	/* k, c, l, 1 / p_Cmax */
		{ 2, 600, 600, 4 }, { 4, 530, 530, 16 },
	};
	unsigned int i, signal;

	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		const u32 *c = cases[i / 2];
		struct dualpi2_config cfg = unit_config();
		struct loop_result r;
		double excess = (c[1] + c[2]) / 1000.0 - 1, lost;

		signal = i % 2 ? DUALPI2_SIGNAL_RANDOM : DUALPI2_SIGNAL_RECUR;
		cfg.coupling = c[0];
		cfg.signal = signal;
		r = loop_run(&cfg, c[1], c[2]);
		CHECK(r.overload && r.count == 1 && !r.late_count,
		      "k %u: overload %u, begun %llu times, late %llu", c[0],
		      r.overload, (ull)r.count, (ull)r.late_count);
		CHECK(fabs(r.p_c * c[3] - 1) < 0.1, "k %u: p_C %.4f", c[0],
		      r.p_c);
		CHECK(fabs(r.c_loss / r.p_c - 1) < 0.05,
		      "k %u: C loss %.4f of p_C %.4f", c[0], r.c_loss, r.p_c);
		lost = (r.c_loss * c[1] + r.l_loss * c[2]) / 1000;
		CHECK(fabs(lost / excess - 1) < 0.02,
		      "k %u: %.4f lost of %.4f", c[0], lost, excess);
		CHECK(fabs(r.delay_ms - 15) < 1, "delay %.2f ms", r.delay_ms);
	}
}

static void loop_below_the_link_rate_never_signals(void)
{
	struct dualpi2_config cfg = unit_config();
	struct loop_result r = loop_run(&cfg, 500, 450);

	CHECK(r.p_c == 0 && r.c_loss == 0 && r.l_loss == 0 && !r.count,
	      "p_C %g", r.p_c);
}

/* Without drop in overload p_C stays at 1/k^2, L4S is never dropped, all its
 * packets are marked, and delay grows.
 */
static void loop_without_drop_in_overload_lets_delay_grow(void)
{
	struct dualpi2_config cfg = unit_config();
	struct loop_result r;

	cfg.drop_overload = false;
	r = loop_run(&cfg, 560, 600);	/* 0.42 + 0.6 */
	CHECK(fabs(r.p_c - 0.25) < 0.000001 && fabs(r.c_loss - 0.25) < 0.001,
	      "p_C %.4f, C loss %.4f", r.p_c, r.c_loss);
	CHECK(r.l_loss == 0, "L loss %.4f", r.l_loss);
	CHECK(r.l_mark == 1, "L marks %.4f", r.l_mark);
	CHECK(r.count == 1 && r.overload, "begun %llu times", (ull)r.count);
	CHECK(r.delay_ms > 500, "delay %.1f ms", r.delay_ms);
}

static const struct unit_test overload_tests[] = {
	TEST(overload_enters_when_k_times_base_reaches_one),
	TEST(overload_with_k_one_enters_at_certain_drop_only),
	TEST(overload_with_p_cmax_enters_there),
	TEST(overload_p_cmax_of_a_quarter_is_the_default),
	TEST(overload_ends_after_the_hold_when_it_fell_below),
	TEST(overload_hold_of_long_periods_does_not_wrap),
	TEST(overload_that_comes_back_within_the_hold_goes_on),
	TEST(overload_of_a_queue_that_ran_empty_ends_with_it),
	TEST(overload_of_an_empty_queue_ends_the_same_if_watched),
	TEST(overload_of_a_queue_empty_for_a_moment_goes_on),
	TEST(overload_count_and_time_are_exact),
	TEST(overload_reset_ends_it_and_keeps_the_account),
	TEST(overload_reset_adds_to_what_was_before),
	TEST(report_of_a_long_overload_is_its_begin_and_its_end),
	TEST(report_of_a_short_overload_comes_after_the_period),
	TEST(report_never_seen_in_overload_is_an_end),
	TEST(report_none_when_off_and_none_of_that_time_later),
	TEST(report_time_without_follows_a_shorter_period),
	TEST(report_is_asked_for_when_its_time_is_over),
	TEST(report_switched_on_tells_of_what_goes_on_only),
	TEST(report_storm_keeps_the_period_and_adds_up),
	TEST(overload_begins_with_a_delay_of_128_or_256_packets_only),
	TEST(overload_delay_follows_a_small_mtu),
	TEST(overload_of_an_unknown_rate_does_not_begin),
	TEST(overload_without_a_link_begins_at_any_delay),
	TEST(overload_that_was_recent_begins_at_any_delay),
	TEST(overload_under_way_goes_on_at_any_delay),
	TEST(overload_by_a_change_of_options_begins_at_any_delay),
	TEST(overload_without_drop_holds_base_at_its_edge),
	TEST(loop_below_overload_settles_at_the_excess),
	TEST(loop_in_overload_drops_both_alike_at_the_excess),
	TEST(loop_at_the_edge_of_overload_stays_there),
	TEST(loop_below_the_link_rate_never_signals),
	TEST(loop_without_drop_in_overload_lets_delay_grow),
};
