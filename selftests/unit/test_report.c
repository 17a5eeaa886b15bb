// SPDX-License-Identifier: GPL-2.0-only
/* Reports of overload, at most one in a period. */

/* What dualpi2_report_next() says at a time: kind, and what it tells of. */
static void overload_reports(const struct dualpi2_params *p, struct dualpi2_vars *v, u64 now_ns,
			     enum dualpi2_report kind, u64 since_ns, u64 duration_ns, u64 count)
{
	struct dualpi2_overload_report r = { 1, 2, 3 };

	CHECK_EQ(dualpi2_report_next(p, v, now_ns, &r), kind);
	if (kind == DUALPI2_REPORT_NONE)
		return;
	CHECK_EQ(r.since_ns, since_ns);
	CHECK_EQ(r.duration_ns, duration_ns);
	CHECK_EQ(r.count, count);
}

static void overload_silent(const struct dualpi2_params *p, struct dualpi2_vars *v, u64 now_ns)
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

UNIT_TEST(report_of_a_long_overload_is_its_begin_and_its_end)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_silent(&p, &v, 1 * SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 1 * SEC), 0);
	overload_at(&p, &v, ONE, 10 * SEC);
	overload_reports(&p, &v, 10 * SEC + 5, DUALPI2_REPORT_BEGIN, 10 * SEC, 5, 1);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 10 * SEC + 5), SEC);
	overload_silent(&p, &v, 11 * SEC + 4);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 11 * SEC + 4), 1);
	/* it goes on, which is no news; it is looked at every second */
	overload_silent(&p, &v, 11 * SEC + 5);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 11 * SEC + 5), SEC);
	overload_at(&p, &v, 0, 12 * SEC);
	overload_silent(&p, &v, 12 * SEC);
	overload_at(&p, &v, 0, 12 * SEC + 128 * MS);
	overload_reports(&p, &v, 12 * SEC + 128 * MS, DUALPI2_REPORT_END, 10 * SEC, 2 * SEC, 1);
	overload_silent(&p, &v, 20 * SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 12 * SEC + 128 * MS), 0);
}

UNIT_TEST(report_of_a_short_overload_comes_after_the_period)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE, 10 * SEC);
	overload_reports(&p, &v, 10 * SEC, DUALPI2_REPORT_BEGIN, 10 * SEC, 0, 1);
	overload_from_to(&p, &v, 10 * SEC, 10 * SEC + 100);
	overload_silent(&p, &v, 10 * SEC + 200 * MS);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 10 * SEC + 200 * MS), 800 * MS);
	/* another one meanwhile */
	overload_from_to(&p, &v, 10 * SEC + 300 * MS, 10 * SEC + 300 * MS + 50);
	overload_silent(&p, &v, 11 * SEC - 1);
	overload_reports(&p, &v, 11 * SEC, DUALPI2_REPORT_END, 10 * SEC, 150, 2);
	overload_silent(&p, &v, 30 * SEC);
}

UNIT_TEST(report_never_seen_in_overload_is_an_end)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	overload_from_to(&p, &v, 10 * SEC, 11 * SEC);
	overload_reports(&p, &v, 12 * SEC, DUALPI2_REPORT_END, 10 * SEC, SEC, 1);
	/* and what is seen too late as a begin tells of those before it */
	overload_from_to(&p, &v, 12 * SEC + 100 * MS, 12 * SEC + 200 * MS);
	overload_at(&p, &v, ONE, 12 * SEC + 500 * MS);
	overload_silent(&p, &v, 13 * SEC - 1);
	overload_reports(&p, &v, 13 * SEC, DUALPI2_REPORT_BEGIN, 12 * SEC + 100 * MS, 600 * MS, 2);
	overload_at(&p, &v, 0, 13 * SEC + 1);
	overload_at(&p, &v, 0, 15 * SEC);
	overload_reports(&p, &v, 15 * SEC, DUALPI2_REPORT_END,
			 12 * SEC + 100 * MS, 600 * MS + 1, 2);
}

UNIT_TEST(report_none_when_off_and_none_of_that_time_later)
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

UNIT_TEST(report_time_without_follows_a_shorter_period)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params lazy, p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	cfg.report_us = U32_MAX;
	lazy = unit_params(&cfg);
	overload_at(&lazy, &v, ONE, 10 * SEC);
	overload_reports(&lazy, &v, 10 * SEC, DUALPI2_REPORT_BEGIN, 10 * SEC, 0, 1);
	overload_from_to(&lazy, &v, 11 * SEC, 12 * SEC);
	overload_silent(&lazy, &v, 20 * SEC);
	dualpi2_report_change(&lazy, &p, &v, 20 * SEC);
	overload_silent(&p, &v, 21 * SEC - 1);
	overload_reports(&p, &v, 21 * SEC, DUALPI2_REPORT_END, 10 * SEC, 2 * SEC, 1);
	/* and a longer one does not lengthen it */
	overload_at(&p, &v, ONE, 21 * SEC + 1);
	dualpi2_report_change(&p, &lazy, &v, 21 * SEC + 1);
	overload_reports(&lazy, &v, 22 * SEC, DUALPI2_REPORT_BEGIN, 21 * SEC + 1, SEC - 1, 1);
	/* nor does a change take a report that is due */
	overload_from_to(&lazy, &v, 22 * SEC, 23 * SEC);
	dualpi2_report_change(&lazy, &p, &v, 5000 * SEC);
	overload_reports(&p, &v, 5000 * SEC, DUALPI2_REPORT_END, 21 * SEC + 1, 2 * SEC - 1, 1);
}

/* Right after boot as well; and then, though reports are an hour apart, each second. */
UNIT_TEST(report_is_asked_for_when_its_time_is_over)
{
	struct dualpi2_params p = UNIT_PARAMS(cfg.report_us = 3600000000U);
	struct dualpi2_vars v = unit_vars(&p);

	overload_at(&p, &v, ONE, 5 * MS);
	overload_reports(&p, &v, 5 * MS, DUALPI2_REPORT_BEGIN, 5 * MS, 0, 1);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 6 * MS), 3600 * SEC - MS);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 3600 * SEC + 5 * MS), SEC);
	CHECK_EQ(dualpi2_report_wait_ns(&p, &v, 4000 * SEC), SEC);
}

UNIT_TEST(report_switched_on_tells_of_what_goes_on_only)
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
	overload_reports(&p, &v, 24 * SEC, DUALPI2_REPORT_BEGIN, 22 * SEC, 2 * SEC, 1);
}

/* Whatever happens: no two reports within a period, and when all is over what
 * was reported is what there was.
 */
UNIT_TEST(report_storm_keeps_the_period_and_adds_up)
{
	u64 now = SEC, next = 0, total = 0, count = 0, reports = 0, gap;
	struct dualpi2_params p = UNIT_PARAMS(cfg.report_us = 700000);
	struct dualpi2_vars v = unit_vars(&p);

	for (int i = 0; i < 200000; i++) {
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
