// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packet values: coding, throughput-value functions.
 */
#include "value_test.h"

/* ---- logarithm ---- */

static void value_log_one(u64 number)
{
	long double exact = log2l(number) * 65536;
	u32 got = ppv_log2_q16(number);

	CHECK(got <= exact, "%llu: %u above %Lf", (ull)number, got, exact);
	CHECK(got > exact - 1 - VALUE_LOG_LOSS, "%llu: %u below %Lf", (ull)number, got, exact);
}

UNIT_TEST(value_log_is_rounded_down)
{
	u64 number;
	int i;

	for (number = 1; number < 70000; number++)
		value_log_one(number);
	for (i = 0; i < 300000; i++)
		value_log_one(unit_any(1, UINT64_MAX));
	for (i = 1; i < 64; i++) {
		value_log_one((1ULL << i) - 1);
		value_log_one((1ULL << i) + 1);
	}
	value_log_one(UINT64_MAX);
}

UNIT_TEST(value_log_of_powers_of_two_is_exact)
{
	u32 i;

	for (i = 0; i < 64; i++)
		CHECK_EQ(ppv_log2_q16(1ULL << i), i << 16);
}

UNIT_TEST(value_log_never_falls)
{
	u64 number = 1;

	while (number < 1ULL << 62) {
		u64 next = number + 1 + unit_between(0, number >> 12);

		CHECK(ppv_log2_q16(next) >= ppv_log2_q16(number), "%llu, %llu", (ull)number, (ull)next);
		number = next;
	}
}

/* ---- what a function may be ---- */

UNIT_TEST(value_check_takes_functions_at_the_bounds)
{
	struct ppv_point points[PPV_POINTS_MAX];
	u32 i;

	for (i = 0; i < PPV_POINTS_MAX; i++)
		points[i] = (struct ppv_point) {
			.rate = PPV_RATE_MAX >> (PPV_POINTS_MAX - 1 - i),
			.coded = i == PPV_POINTS_MAX - 1 ? 1 : 65535 - i,
		};
	for (i = 1; i <= PPV_POINTS_MAX; i++)
		CHECK_EQ(ppv_tvf_check(points, i), PPV_FAULT_NONE);
	points[0].rate = 1;
	CHECK_EQ(ppv_tvf_check(points, 2), PPV_FAULT_NONE);
	points[0] = (struct ppv_point) { 1, 1 };
	CHECK_EQ(ppv_tvf_check(points, 1), PPV_FAULT_NONE);
	points[0] = (struct ppv_point) { 125000000000ULL, 65535 };
	CHECK_EQ(ppv_tvf_check(points, 1), PPV_FAULT_NONE);
}

UNIT_TEST(value_check_names_the_fault)
{
	static const struct {
		enum ppv_fault want;
		u32 count;
		struct ppv_point points[3];
	} cases[] = {
		{ PPV_FAULT_RATE, 1, { { 0, 5 } } },
		{ PPV_FAULT_RATE, 1, { { 125000000001ULL, 5 } } },
		{ PPV_FAULT_RATE, 1, { { UINT64_MAX, 5 } } },
		{ PPV_FAULT_RATE, 2, { { 5, 5 }, { 125000000001ULL, 4 } } },
		{ PPV_FAULT_RATE, 2, { { 5, 5 }, { 0, 4 } } },
		{ PPV_FAULT_VALUE, 1, { { 5, 0 } } },
		{ PPV_FAULT_VALUE, 1, { { 5, 65536 } } },
		{ PPV_FAULT_VALUE, 1, { { 5, UINT32_MAX } } },
		{ PPV_FAULT_VALUE, 2, { { 5, 5 }, { 6, 0 } } },
		{ PPV_FAULT_VALUE, 2, { { 5, 5 }, { 6, 65537 } } },
		{ PPV_FAULT_NOT_RISING, 2, { { 5, 5 }, { 5, 4 } } },
		{ PPV_FAULT_NOT_RISING, 2, { { 6, 5 }, { 5, 4 } } },
		{ PPV_FAULT_NOT_RISING, 3, { { 5, 5 }, { 7, 4 }, { 6, 3 } } },
		{ PPV_FAULT_NOT_FALLING, 2, { { 5, 5 }, { 6, 5 } } },
		{ PPV_FAULT_NOT_FALLING, 2, { { 5, 5 }, { 6, 6 } } },
		{ PPV_FAULT_NOT_FALLING, 3, { { 5, 5 }, { 6, 4 }, { 7, 5 } } },
		{ PPV_FAULT_NONE, 2, { { 5, 5 }, { 7, 4 }, { 6, 3 } } },
	};
	static const struct ppv_point many[PPV_POINTS_MAX + 1];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK(ppv_tvf_check(cases[i].points, cases[i].count) ==
		      cases[i].want, "case %u: %u", i,
		      ppv_tvf_check(cases[i].points, cases[i].count));
	CHECK_EQ(ppv_tvf_check(many, 0), PPV_FAULT_EMPTY);
	CHECK_EQ(ppv_tvf_check(NULL, 0), PPV_FAULT_EMPTY);
	CHECK_EQ(ppv_tvf_check(many, PPV_POINTS_MAX + 1), PPV_FAULT_MANY);
	CHECK_EQ(ppv_tvf_check(NULL, UINT32_MAX), PPV_FAULT_MANY);
}

/* A step of logarithms apart is enough; what is taken can be divided by. */
UNIT_TEST(value_check_wants_a_step_between_rates)
{
	int i, refused = 0;

	for (i = 0; i < 100000; i++) {
		u64 rate = unit_any(1, PPV_RATE_MAX - PPV_RATE_MAX / 50000);
		u64 next = rate + unit_any(1, rate / 50000 + 1);
		struct ppv_point points[] = { { rate, 2 }, { next, 1 } };
		enum ppv_fault fault = ppv_tvf_check(points, 2);

		if (next >= rate * (1 + 2 * VALUE_STEP)) {
			CHECK(fault == PPV_FAULT_NONE, "%llu, %llu", (ull)rate, (ull)next);
		} else if (fault != PPV_FAULT_NONE) {
			CHECK_EQ(fault, PPV_FAULT_NOT_RISING);
			CHECK(next <= rate * (1 + VALUE_STEP) + 1, "%llu, %llu", (ull)rate, (ull)next);
			refused++;
		} else {
			struct ppv_tvf tvf = value_tvf_of(points, 2);

			CHECK_EQ(ppv_tvf_coded(&tvf, rate), 2);
			CHECK_EQ(ppv_tvf_coded(&tvf, next), 1);
		}
	}
	CHECK(refused > 1000, "%d", refused);
}

/* ---- the function ---- */

UNIT_TEST(value_set_keeps_the_points)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int n;

	for (n = 0; n < 2000; n++) {
		u32 count = value_any_points(points), i;
		struct ppv_tvf tvf = value_tvf_of(points, count);

		CHECK_EQ(tvf.count, count);
		for (i = 0; i < count; i++) {
			CHECK_EQ(tvf.points[i].rate, points[i].rate);
			CHECK_EQ(tvf.points[i].coded, points[i].coded);
		}
		for (; i < PPV_POINTS_MAX; i++) {
			CHECK_EQ(tvf.points[i].rate, 0);
			CHECK_EQ(tvf.points[i].coded, 0);
			CHECK_EQ(tvf.knots[i].coded, 0);
			CHECK_EQ(tvf.knots[i].slope, 0);
		}
	}
}

UNIT_TEST(value_at_points_is_exact_and_outside_flat)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int n;

	for (n = 0; n < 5000; n++) {
		u32 count = value_any_points(points), i;
		struct ppv_tvf tvf = value_tvf_of(points, count);
		u64 first = points[0].rate, last = points[count - 1].rate;

		for (i = 0; i < count; i++)
			CHECK_EQ(ppv_tvf_coded(&tvf, points[i].rate), points[i].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, 0), points[0].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, 1), points[0].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, unit_between(0, first)), points[0].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, unit_between(last, PPV_RATE_MAX)), points[count - 1].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, UINT64_MAX), points[count - 1].coded);
	}
}

/* A logarithm is rounded down by a step at most, those of the points too: the
 * value is that of a rate within a step on either side, rounded up.
 */
static void value_near_exact(const struct ppv_tvf *tvf, u64 rate)
{
	long double log = log2l(rate ? rate : 1) * 65536;
	long double step = 1 + 2 * VALUE_LOG_LOSS;
	long double least, most;
	u32 got = ppv_tvf_coded(tvf, rate);

	least = value_exact(tvf->points, tvf->count, log + step);
	most = value_exact(tvf->points, tvf->count, log - step) + 1.001L;
	CHECK(got >= least - 0.000001L && got < most + 0.000001L,
	      "%llu B/s: %u, not in %Lf..%Lf", (ull)rate, got, least, most);
}

UNIT_TEST(value_between_points_is_straight_in_logarithms)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int n, i;

	for (n = 0; n < 3000; n++) {
		u32 count = value_any_points(points);
		struct ppv_tvf tvf = value_tvf_of(points, count);

		for (i = 0; i < 50; i++)
			value_near_exact(&tvf, unit_any(0, PPV_RATE_MAX));
		for (i = 0; i < 20; i++) {
			u64 rate = points[unit_rnd() % count].rate;

			value_near_exact(&tvf, rate - 1 + unit_rnd() % 3);
			value_near_exact(&tvf, rate + unit_any(0, rate));
		}
	}
	for (n = 1; n <= 4; n++) {
		struct ppv_tvf tvf = value_builtin(n);

		for (i = 0; i < 50000; i++)
			value_near_exact(&tvf, unit_any(1, PPV_RATE_MAX));
	}
}

static void value_never_rises_one(const struct ppv_tvf *tvf, u64 part)
{
	u32 last = ppv_tvf_coded(tvf, 0), got;
	u64 rate;

	for (rate = 1; rate <= PPV_RATE_MAX; rate += 1 + rate / part) {
		got = ppv_tvf_coded(tvf, rate);
		CHECK(got <= last, "%llu B/s: %u after %u", (ull)rate, got, last);
		CHECK(got >= 1 && got <= PPV_CODED_MAX, "%llu B/s: %u", (ull)rate, got);
		last = got;
	}
}

UNIT_TEST(value_never_rises_with_the_rate)
{
	struct ppv_point points[PPV_POINTS_MAX];
	u32 n, i, k;

	for (n = 1; n <= 4; n++) {
		struct ppv_tvf tvf = value_builtin(n);

		value_never_rises_one(&tvf, 20000);
	}
	for (n = 0; n < 500; n++) {
		u32 count = value_any_points(points);
		struct ppv_tvf tvf = value_tvf_of(points, count);

		value_never_rises_one(&tvf, 30);
		for (i = 0; i < count; i++) {
			u64 rate = points[i].rate;

			for (k = 0; k < 20; k++)
				CHECK(ppv_tvf_coded(&tvf, rate - k % rate) >=
				      ppv_tvf_coded(&tvf, rate + k),
				      "%llu B/s", (ull)rate);
		}
	}
}

/* ---- the functions of the paper ---- */

UNIT_TEST(value_builtins_are_four_proper_functions)
{
	static const u32 none[] = { 0, 5, PPV_TVFS, PPV_TVFS + 1, UINT32_MAX };
	static const struct ppv_tvf zero;
	u32 i;

	for (i = 1; i <= 4; i++) {
		struct ppv_tvf tvf = value_builtin(i);

		CHECK(tvf.count >= 2, "%u", i);
		CHECK_EQ(ppv_tvf_check(tvf.points, tvf.count), PPV_FAULT_NONE);
	}
	for (i = 0; i < ARRAY_SIZE(none); i++) {
		struct ppv_tvf tvf = value_builtin(none[i]);

		CHECK(!memcmp(&tvf, &zero, sizeof(tvf)), "%u", none[i]);
	}
}

/* floor(log(10^8 / x) / log(10^10) * 65535), x in Mbit/s, and what follows from
 * the ratios; the points are rounded down, what is between them is rounded up.
 */
UNIT_TEST(value_builtins_are_log_coded)
{
	static const struct {
		u32 number;
		u64 from, to;
		long double top;	/* value at 1 Mbit/s */
	} parts[] = {
		{ 1, 1250, PPV_RATE_MAX, 1e8L },
		{ 2, 1250, 10 * VALUE_MBIT, 1e8L / 2 },
		{ 2, 1250125, PPV_RATE_MAX, 1e8L / 4 },
		{ 3, 1250, PPV_RATE_MAX / 10, 1e6L },
	};
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		struct ppv_tvf tvf = value_builtin(parts[i].number);

		for (n = 0; n < 20000; n++) {
			u64 rate = n ? unit_any(parts[i].from, parts[i].to) :
				       parts[i].to;
			long double mbit = (long double)rate / VALUE_MBIT;
			long double want = log10l(parts[i].top / mbit) *
					   VALUE_DECADE;
			u32 got = ppv_tvf_coded(&tvf, rate);

			CHECK(got > want - 1.2L && got < want + 1.2L,
			      "%u at %llu B/s: %u, want %Lf", parts[i].number,
			      (ull)rate, got, want);
		}
		CHECK_EQ(ppv_tvf_coded(&tvf, parts[i].from), value_code(parts[i].top * VALUE_MBIT / parts[i].from));
	}
}

/* Where the figure's functions begin, bend and end. */
UNIT_TEST(value_builtins_have_the_points_of_the_figure)
{
	static const struct {
		u32 number, point;
		u64 rate;
		long double value;
	} points[] = {
		{ 1, 0, 1250, 1e10L },
		{ 1, 1, 125000000000ULL, 1e2L },
		{ 2, 0, 1250, 1e10L / 2 },
		{ 2, 1, 10 * VALUE_MBIT, 1e7L / 2 },
		/* a step of 10^-4, as narrow as can be told apart safely */
		{ 2, 2, 10001 * VALUE_MBIT / 1000, 1e7L / 4 },
		{ 2, 3, 125000000000ULL, 1e2L / 4 },
		{ 3, 0, 1250, 1e8L },
		{ 3, 1, 12500000000ULL, 1e1L },
	};
	static const u32 counts[] = { 2, 4, 2, 3 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		struct ppv_tvf tvf = value_builtin(points[i].number);

		CHECK_EQ(tvf.count, counts[points[i].number - 1]);
		CHECK_EQ(tvf.points[points[i].point].rate, points[i].rate);
		CHECK_EQ(tvf.points[points[i].point].coded, value_code(points[i].value));
	}
}

/* Of the congestion levels that the two see at the same time: 2:1 until Silver
 * has 10 Mbit/s, which it keeps until Gold has 40, then 4:1.  A step of the
 * code is 3.5 * 10^-4 of a rate; each function is rounded by one.
 */
UNIT_TEST(value_gold_and_silver_share_as_the_paper_says)
{
	struct ppv_tvf gold = value_builtin(1), silver = value_builtin(2);
	u32 level, twice = 0, held = 0, four = 0;

	for (level = 13107; level < 63562; level++) {
		u64 g = value_rate_at(&gold, level);
		u64 s = value_rate_at(&silver, level);

		if (g <= 1999 * VALUE_MBIT / 100) {
			CHECK_NEAR(2 * s, g, 1 + g / 1200);
			twice++;
		} else if (g >= 2001 * VALUE_MBIT / 100 && g <= 3997 * VALUE_MBIT / 100) {
			CHECK_NEAR(s, 10 * VALUE_MBIT, 126);
			held++;
		} else if (g >= 4003 * VALUE_MBIT / 100) {
			CHECK_NEAR(4 * s, g, 1 + g / 1200);
			four++;
		}
		CHECK(s * 2 <= g + g / 1000 + 2 && s * 4 >= g - g / 1000 - 2,
		      "at %u: %llu, %llu B/s", level, (ull)g, (ull)s);
	}
	CHECK(twice > 19000 && held > 1900 && four > 28000, "%u, %u, %u", twice, held, four);
}

UNIT_TEST(value_background_gets_a_hundredth_of_gold)
{
	struct ppv_tvf gold = value_builtin(1), rest = value_builtin(3);
	u32 level;

	for (level = 13108; level < 52428; level++) {
		u64 g = value_rate_at(&gold, level);
		u64 b = value_rate_at(&rest, level);

		CHECK_NEAR(100 * b, g, 100 + g / 1200);
	}
}

/* What it sends up to 64 kbit/s is above all that others send, except for the few
 * packets of Gold that stand for its first 13 kbit/s; beyond, it is below all.
 */
UNIT_TEST(value_voice_comes_first_up_to_64_kbit)
{
	struct ppv_tvf voice = value_builtin(4);
	u32 level, n;

	for (n = 1; n <= 3; n++) {
		struct ppv_tvf other = value_builtin(n);

		CHECK(ppv_tvf_coded(&voice, 8000) > ppv_tvf_coded(&other, 1625), "%u", n);
		CHECK(ppv_tvf_coded(&voice, 8010) < ppv_tvf_coded(&other, PPV_RATE_MAX), "%u", n);
	}
	/* as good as one value up to there, and none a thousandth beyond */
	CHECK_EQ(ppv_tvf_coded(&voice, 1), PPV_CODED_MAX);
	CHECK_EQ(ppv_tvf_coded(&voice, 2), 65494);
	CHECK_EQ(ppv_tvf_coded(&voice, 8000), 65000);
	CHECK_EQ(value_rate_at(&voice, 64999), 8001);
	CHECK_EQ(value_rate_at(&voice, 1), 8008);
	for (level = 1; level < ppv_tvf_coded(&voice, 8000); level++)
		CHECK_NEAR(value_rate_at(&voice, level), 8004, 4);
}
