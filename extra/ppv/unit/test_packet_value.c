// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packet values: coding, throughput-value functions, the rate of a flow, the
 * table of flows, the pick of a value.
 *
 * Expected values come from section 2 of the VDQ-CSAQM paper and from log2l()
 * and division in long double, with bounds that follow from the roundings which
 * the header states.
 */
#include "packet_value.h"

/* One step of a logarithm is this part of a rate: ln(2) / 2^16. */
#define VALUE_STEP	0.000010577L

/* Coded values of a tenfold value. */
#define VALUE_DECADE	6553.5L

#define VALUE_MBIT	125000ULL	/* bytes/s */

/* A doubling of the mantissa loses the rest of 2^-31, and doubles what was
 * lost: in all less than this part of a step.
 */
#define VALUE_LOG_LOSS	(1.0L / 4096)

static struct ppv_tvf value_builtin(u32 number)
{
	struct ppv_tvf tvf;

	memset(&tvf, 0xa5, sizeof(tvf));
	ppv_tvf_builtin(&tvf, number);
	return tvf;
}

static struct ppv_tvf value_tvf_of(const struct ppv_point *points, u32 count)
{
	struct ppv_tvf tvf;

	memset(&tvf, 0xa5, sizeof(tvf));
	ppv_tvf_set(&tvf, points, count);
	return tvf;
}

/* The paper's code of a value. */
static u32 value_code(long double value)
{
	return floorl(log10l(value) * VALUE_DECADE + 0.000000001L);
}

/* The function at 2^(log / 2^16) bytes per second, not rounded. */
static long double value_exact(const struct ppv_point *points, u32 count,
			       long double log)
{
	long double from, to = log2l(points[0].rate) * 65536;
	u32 i;

	if (log <= to)
		return points[0].coded;
	for (i = 1; i < count; i++) {
		from = to;
		to = log2l(points[i].rate) * 65536;
		if (log < to)
			return points[i - 1].coded -
			       ((long double)points[i - 1].coded -
				points[i].coded) * (log - from) / (to - from);
	}
	return points[count - 1].coded;
}

/* The rate at which the function falls to a value, not rounded. */
static long double value_inverse(const struct ppv_point *points, u32 count,
				 u32 coded)
{
	u32 i;

	if (coded >= points[0].coded)
		return 0;
	for (i = 1; i < count; i++) {
		long double part;

		if (coded < points[i].coded)
			continue;
		part = ((long double)points[i - 1].coded - coded) /
		       ((long double)points[i - 1].coded - points[i].coded);
		return exp2l(log2l(points[i - 1].rate) * (1 - part) +
			     log2l(points[i].rate) * part);
	}
	return INFINITY;
}

/* The least rate at which a function is no more than a value; PPV_RATE_MAX + 1
 * if there is none.
 */
static u64 value_rate_at(const struct ppv_tvf *tvf, u32 coded)
{
	u64 low = 0, high = PPV_RATE_MAX + 1;

	while (low < high) {
		u64 mid = low + (high - low) / 2;

		if (ppv_tvf_coded(tvf, mid) <= coded)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int value_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* A function of up to PPV_POINTS_MAX points, with as many as the numbers drawn
 * leave; their count.
 */
static u32 value_any_points(struct ppv_point *points)
{
	u32 want = unit_any(1, PPV_POINTS_MAX), count = 0, i;
	u64 rates[PPV_POINTS_MAX] = {}, coded[PPV_POINTS_MAX] = {};

	for (i = 0; i < want; i++) {
		rates[i] = unit_any(1, PPV_RATE_MAX);
		coded[i] = unit_any(1, PPV_CODED_MAX);
	}
	qsort(rates, want, sizeof(rates[0]), value_compare);
	qsort(coded, want, sizeof(coded[0]), value_compare);
	for (i = 0; i < want; i++) {
		u64 value = coded[want - 1 - i];

		if (count && (rates[i] <= points[count - 1].rate * 1.00003L ||
			      value >= points[count - 1].coded))
			continue;
		points[count++] = (struct ppv_point) { rates[i], value };
	}
	return count;
}

/* ---- logarithm ---- */

static void value_log_one(u64 number)
{
	long double exact = log2l(number) * 65536;
	u32 got = ppv_log2_q16(number);

	CHECK(got <= exact, "%llu: %u above %Lf", (ull)number, got, exact);
	CHECK(got > exact - 1 - VALUE_LOG_LOSS, "%llu: %u below %Lf",
	      (ull)number, got, exact);
}

static void value_log_is_rounded_down(void)
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

static void value_log_of_powers_of_two_is_exact(void)
{
	u32 i;

	for (i = 0; i < 64; i++)
		CHECK_EQ(ppv_log2_q16(1ULL << i), i << 16);
}

static void value_log_never_falls(void)
{
	u64 number = 1;

	while (number < 1ULL << 62) {
		u64 next = number + 1 + unit_between(0, number >> 12);

		CHECK(ppv_log2_q16(next) >= ppv_log2_q16(number), "%llu, %llu",
		      (ull)number, (ull)next);
		number = next;
	}
}

/* ---- what a function may be ---- */

static void value_check_takes_functions_at_the_bounds(void)
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

static void value_check_names_the_fault(void)
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
static void value_check_wants_a_step_between_rates(void)
{
	int i, refused = 0;

	for (i = 0; i < 100000; i++) {
		u64 rate = unit_any(1, PPV_RATE_MAX - PPV_RATE_MAX / 50000);
		u64 next = rate + unit_any(1, rate / 50000 + 1);
		struct ppv_point points[] = { { rate, 2 }, { next, 1 } };
		enum ppv_fault fault = ppv_tvf_check(points, 2);

		if (next >= rate * (1 + 2 * VALUE_STEP)) {
			CHECK(fault == PPV_FAULT_NONE, "%llu, %llu", (ull)rate,
			      (ull)next);
		} else if (fault != PPV_FAULT_NONE) {
			CHECK_EQ(fault, PPV_FAULT_NOT_RISING);
			CHECK(next <= rate * (1 + VALUE_STEP) + 1,
			      "%llu, %llu", (ull)rate, (ull)next);
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

static void value_set_keeps_the_points(void)
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

static void value_at_points_is_exact_and_outside_flat(void)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int n;

	for (n = 0; n < 5000; n++) {
		u32 count = value_any_points(points), i;
		struct ppv_tvf tvf = value_tvf_of(points, count);
		u64 first = points[0].rate, last = points[count - 1].rate;

		for (i = 0; i < count; i++)
			CHECK_EQ(ppv_tvf_coded(&tvf, points[i].rate),
				 points[i].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, 0), points[0].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, 1), points[0].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, unit_between(0, first)),
			 points[0].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, unit_between(last, PPV_RATE_MAX)),
			 points[count - 1].coded);
		CHECK_EQ(ppv_tvf_coded(&tvf, UINT64_MAX),
			 points[count - 1].coded);
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

static void value_between_points_is_straight_in_logarithms(void)
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
		CHECK(got <= last, "%llu B/s: %u after %u", (ull)rate, got,
		      last);
		CHECK(got >= 1 && got <= PPV_CODED_MAX, "%llu B/s: %u",
		      (ull)rate, got);
		last = got;
	}
}

static void value_never_rises_with_the_rate(void)
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

static void value_builtins_are_four_proper_functions(void)
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
static void value_builtins_are_log_coded(void)
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
		CHECK_EQ(ppv_tvf_coded(&tvf, parts[i].from),
			 value_code(parts[i].top * VALUE_MBIT /
				    parts[i].from));
	}
}

/* Where the figure's functions begin, bend and end. */
static void value_builtins_have_the_points_of_the_figure(void)
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
		CHECK_EQ(tvf.points[points[i].point].coded,
			 value_code(points[i].value));
	}
}

/* Of the congestion levels that the two see at the same time: 2:1 until Silver
 * has 10 Mbit/s, which it keeps until Gold has 40, then 4:1.  A step of the
 * code is 3.5 * 10^-4 of a rate; each function is rounded by one.
 */
static void value_gold_and_silver_share_as_the_paper_says(void)
{
	struct ppv_tvf gold = value_builtin(1), silver = value_builtin(2);
	u32 level, twice = 0, held = 0, four = 0;

	for (level = 13107; level < 63562; level++) {
		u64 g = value_rate_at(&gold, level);
		u64 s = value_rate_at(&silver, level);

		if (g <= 1999 * VALUE_MBIT / 100) {
			CHECK_NEAR(2 * s, g, 1 + g / 1200);
			twice++;
		} else if (g >= 2001 * VALUE_MBIT / 100 &&
			   g <= 3997 * VALUE_MBIT / 100) {
			CHECK_NEAR(s, 10 * VALUE_MBIT, 126);
			held++;
		} else if (g >= 4003 * VALUE_MBIT / 100) {
			CHECK_NEAR(4 * s, g, 1 + g / 1200);
			four++;
		}
		CHECK(s * 2 <= g + g / 1000 + 2 && s * 4 >= g - g / 1000 - 2,
		      "at %u: %llu, %llu B/s", level, (ull)g, (ull)s);
	}
	CHECK(twice > 19000 && held > 1900 && four > 28000, "%u, %u, %u",
	      twice, held, four);
}

static void value_background_gets_a_hundredth_of_gold(void)
{
	struct ppv_tvf gold = value_builtin(1), rest = value_builtin(3);
	u32 level;

	for (level = 13108; level < 52428; level++) {
		u64 g = value_rate_at(&gold, level);
		u64 b = value_rate_at(&rest, level);

		CHECK_NEAR(100 * b, g, 100 + g / 1200);
	}
}

/* What it sends up to 64 kbit/s is above all that others send, but for the few
 * packets of Gold that stand for its first 13 kbit/s; beyond, it is below all.
 */
static void value_voice_comes_first_up_to_64_kbit(void)
{
	struct ppv_tvf voice = value_builtin(4);
	u32 level, n;

	for (n = 1; n <= 3; n++) {
		struct ppv_tvf other = value_builtin(n);

		CHECK(ppv_tvf_coded(&voice, 8000) > ppv_tvf_coded(&other, 1625),
		      "%u", n);
		CHECK(ppv_tvf_coded(&voice, 8010) <
		      ppv_tvf_coded(&other, PPV_RATE_MAX), "%u", n);
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

/* ---- the rate of a flow ---- */

static struct ppv_window value_window(u32 us)
{
	struct ppv_window w;

	memset(&w, 0xa5, sizeof(w));
	ppv_window_init(&w, us);
	return w;
}

/* The same in long double, with the most that the header's is above it. */
struct value_meter {
	long double window_ns;
	long double bytes;
	long double error;
	u64 last_ns;
};

static long double value_meter_add(struct value_meter *m, u32 bytes, u64 now_ns)
{
	long double gap = now_ns > m->last_ns ? now_ns - m->last_ns : 0;
	long double rest = gap < m->window_ns ? 1 - gap / m->window_ns : 0;

	/* The part of 2^32 and the product are both rounded down. */
	m->error = rest && gap ? m->error * rest +
				 (m->bytes + m->error) / 4294967296.0L +
				 1.0L / 256 :
		   rest ? m->error : 0;
	m->bytes = m->bytes * rest + (bytes < 1U << 24 ? bytes : 1U << 24);
	if (m->bytes > PPV_RATE_MAX)
		m->bytes = PPV_RATE_MAX;
	if (now_ns > m->last_ns)
		m->last_ns = now_ns;
	return m->bytes * 1e9L / m->window_ns;
}

/* A packet for both; the rate. */
static u64 value_meter_check(struct value_meter *m, struct ppv_flow *flow,
			     const struct ppv_window *w, u32 bytes, u64 now_ns)
{
	long double want = value_meter_add(m, bytes, now_ns), most;
	u64 got = ppv_flow_add(flow, w, bytes, now_ns);

	most = want + m->error * 1e9L / m->window_ns + 0.000001L;
	/* per_s_q16 is rounded down too, and at least 2^16. */
	want = want * (1 - 1.0L / 65536) - 1;
	want = want < PPV_RATE_MAX ? want : PPV_RATE_MAX;
	CHECK(got <= PPV_RATE_MAX, "%llu", (ull)got);
	CHECK(got >= want && got <= most, "%llu, not in %Lf..%Lf", (ull)got,
	      want, most);
	CHECK_EQ(flow->last_ns, m->last_ns);
	return got;
}

static u32 value_any_window_us(void)
{
	return unit_any(PPV_WINDOW_US_MIN, PPV_WINDOW_US_MAX);
}

static void value_window_is_converted(void)
{
	int i;

	CHECK_EQ(value_window(1000).ns, 1000000);
	CHECK_EQ(value_window(1000).per_s_q16, 1000 << 16);
	CHECK_EQ(value_window(100000).ns, 100000000);
	CHECK_EQ(value_window(100000).per_s_q16, 10 << 16);
	CHECK_EQ(value_window(1000000).ns, 1000000000);
	CHECK_EQ(value_window(1000000).per_s_q16, 1 << 16);
	for (i = 0; i < 1000; i++) {
		u32 us = value_any_window_us();
		struct ppv_window w = value_window(us);

		CHECK_EQ(w.ns, us * 1000ULL);
		CHECK_EQ(w.per_s_q16, floorl(65536e6L / us));
	}
}

static void value_rate_of_first_packet_is_one_a_window(void)
{
	struct ppv_window w = value_window(100000);
	struct ppv_flow flow = { 0 };

	CHECK_EQ(ppv_flow_add(&flow, &w, 1500, 7 * SEC), 15000);
	CHECK_EQ(flow.last_ns, 7 * SEC);
}

/* At even distances it is exact but for the roundings. */
static void value_rate_of_even_packets_is_exact(void)
{
	int i, n;

	for (i = 0; i < 300; i++) {
		u32 us = value_any_window_us(), bytes = unit_any(1, 65535);
		struct ppv_window w = value_window(us);
		u64 gap = unit_between(w.ns / 200, w.ns - 1);
		struct ppv_flow flow = { 0 };
		u64 now = SEC, got = 0;
		long double want = bytes * 1e9L / gap;

		for (n = 0; n < 5000; n++) {
			got = ppv_flow_add(&flow, &w, bytes, now);
			now += gap;
		}
		/* a byte of 2^8 for each of the gaps in a window */
		CHECK(got >= want * (1 - 1.0L / 65536) - 1 &&
		      got <= want * 1.000001L + 1e9L / gap / 256 + 1,
		      "%u us, %u bytes, %llu ns: %llu, want %Lf", us, bytes,
		      (ull)gap, (ull)got, want);
	}
}

static void value_rate_of_any_arrivals_matches_division(void)
{
	int i, n;

	for (i = 0; i < 500; i++) {
		struct ppv_window w = value_window(value_any_window_us());
		struct value_meter m = { .window_ns = w.ns };
		struct ppv_flow flow = { 0 };
		u64 now = unit_any(1, 1ULL << 60);
		u32 most = unit_any(1, 1U << 24);
		u64 gap = unit_any(1, 2ULL * w.ns);

		for (n = 0; n < 200; n++) {
			value_meter_check(&m, &flow, &w, unit_any(0, most),
					  now);
			now += unit_any(0, gap);
		}
	}
}

/* One window: bytes of the burst; later ones: what the bucket still has. */
static void value_rate_of_bursts(void)
{
	struct ppv_window w = value_window(100000);
	struct value_meter m = { .window_ns = w.ns };
	struct ppv_flow flow = { 0 };
	u64 got = 0;
	int n;

	for (n = 0; n < 10; n++)
		got = value_meter_check(&m, &flow, &w, 1000, SEC);
	CHECK_EQ(got, 100000);
	/* half a window later half is left */
	CHECK_EQ(value_meter_check(&m, &flow, &w, 1000, SEC + 50 * MS), 60000);
	CHECK_EQ(value_meter_check(&m, &flow, &w, 0, SEC + 75 * MS), 45000);
}

static void value_rate_is_forgotten_after_a_window(void)
{
	int i;

	for (i = 0; i < 2000; i++) {
		struct ppv_window w = value_window(value_any_window_us());
		struct ppv_flow flow = { 0 };
		struct ppv_flow near;
		u64 now = 10 * SEC, first;

		first = ppv_flow_add(&flow, &w, 1000, now);
		near = flow;
		CHECK_EQ(ppv_flow_add(&flow, &w, 1000,
				      now + unit_any(w.ns, UINT64_MAX - now)),
			 first);
		/* a nanosecond less: a part of 10^6 or less is left */
		CHECK_NEAR(ppv_flow_add(&near, &w, 1000, now + w.ns - 1),
			   first, first / 500000 + 10);
		CHECK(near.level_q8 > 256000, "%llu", (ull)near.level_q8);
		CHECK_EQ(flow.level_q8, 256000);
	}
}

static void value_rate_survives_a_clock_that_goes_back(void)
{
	struct ppv_window w = value_window(100000);
	struct ppv_flow flow = { 0 };

	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 10 * SEC), 10000);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 10 * SEC - 1), 20000);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 1), 30000);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 0), 40000);
	CHECK_EQ(flow.last_ns, 10 * SEC);
	CHECK_EQ(ppv_flow_add(&flow, &w, 1000, 10 * SEC + 50 * MS), 30000);
}

static void value_rate_has_an_end(void)
{
	static const u32 us[] = { PPV_WINDOW_US_MIN, PPV_WINDOW_US_DEF,
				  PPV_WINDOW_US_MAX };
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(us); i++) {
		struct ppv_window w = value_window(us[i]);
		struct value_meter m = { .window_ns = w.ns };
		struct ppv_flow flow = { 0 };
		u64 now = UINT64_MAX / 2, got = 0, half;

		for (n = 0; n < 20000; n++)
			got = value_meter_check(&m, &flow, &w, UINT32_MAX, now);
		CHECK_EQ(got, PPV_RATE_MAX);
		/* No more of it stays than PPV_RATE_MAX in a second. */
		CHECK_EQ(flow.level_q8, PPV_RATE_MAX << 8);
		now += w.ns / 2;
		half = PPV_RATE_MAX / 2 * (1000000 / us[i]);
		CHECK_EQ(value_meter_check(&m, &flow, &w, 0, now),
			 half < PPV_RATE_MAX ? half : PPV_RATE_MAX);
	}
}

static void value_rate_takes_long_packets_as_2_to_24(void)
{
	static const u32 bytes[] = { 1U << 24, (1U << 24) + 1, UINT32_MAX };
	struct ppv_window w = value_window(PPV_WINDOW_US_MAX);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		struct ppv_flow flow = { 0 };

		CHECK_EQ(ppv_flow_add(&flow, &w, (1U << 24) - 1, SEC),
			 (1U << 24) - 1);
		CHECK_EQ(ppv_flow_add(&flow, &w, bytes[i], 9 * SEC), 1U << 24);
	}
}

/* ---- the table ---- */

/* The one, empty. */
static struct ppv_flow *value_table(void)
{
	static struct ppv_flow table[PPV_FLOW_SETS * PPV_FLOW_WAYS];

	memset(table, 0, sizeof(table));
	return table;
}

/* Find a flow and add a packet to it. */
static struct ppv_flow *value_packet(struct ppv_flow *table, u32 hash,
				     const struct ppv_window *w, u64 now_ns,
				     enum ppv_found want)
{
	enum ppv_found found = 99;
	struct ppv_flow *flow = ppv_flow_find(table, hash, w, now_ns, &found);

	CHECK(found == want, "0x%x at %llu: %u, not %u", hash, (ull)now_ns,
	      found, want);
	CHECK_EQ(flow->tag, hash);
	CHECK(flow >= table && flow < table + PPV_FLOW_SETS * PPV_FLOW_WAYS,
	      "outside");
	if (want != PPV_FLOW_KNOWN) {
		CHECK_EQ(flow->level_q8, 0);
		CHECK_EQ(flow->last_ns, 0);
	}
	ppv_flow_add(flow, w, 1000, now_ns);
	return flow;
}

static void value_flow_is_known_after_its_first_packet(void)
{
	static const u32 hashes[] = { 0, 1, 1023, 1024, UINT32_MAX };
	struct ppv_window w = value_window(100000);
	struct ppv_flow *table = value_table();
	struct ppv_flow *flows[ARRAY_SIZE(hashes)];
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(hashes); i++) {
		flows[i] = value_packet(table, hashes[i], &w, 1 + i,
					PPV_FLOW_NEW);
		for (k = 0; k < i; k++)
			CHECK(flows[i] != flows[k], "%u, %u", i, k);
	}
	for (i = 0; i < ARRAY_SIZE(hashes); i++) {
		CHECK(value_packet(table, hashes[i], &w, 3 * SEC,
				   PPV_FLOW_KNOWN) == flows[i], "%u", i);
		CHECK(value_packet(table, hashes[i], &w, 3 * SEC,
				   PPV_FLOW_KNOWN) == flows[i], "%u", i);
		CHECK_EQ(flows[i]->level_q8, 2 * 256000);
	}
}

static void value_flow_seen_longest_ago_makes_room(void)
{
	struct ppv_window w = value_window(100000);
	struct ppv_flow *table = value_table();
	struct ppv_flow *flows[PPV_FLOW_WAYS];
	u64 now = SEC;
	u32 i;

	for (i = 0; i < PPV_FLOW_WAYS; i++)
		flows[i] = value_packet(table, 77 + i * PPV_FLOW_SETS, &w,
					now++, PPV_FLOW_NEW);
	value_packet(table, 77, &w, now++, PPV_FLOW_KNOWN);
	/* the second one is the oldest now */
	CHECK(value_packet(table, 77 + 9 * PPV_FLOW_SETS, &w, now,
			   PPV_FLOW_EVICTED) == flows[1], "not the oldest");
	value_packet(table, 77, &w, now, PPV_FLOW_KNOWN);
	/* the third one until a window has passed since it was seen */
	CHECK(value_packet(table, 77 + PPV_FLOW_SETS, &w,
			   SEC + 2 + w.ns - 1, PPV_FLOW_EVICTED) == flows[2],
	      "not the oldest");
	CHECK(value_packet(table, 77 + 2 * PPV_FLOW_SETS, &w, SEC + 3 + w.ns,
			   PPV_FLOW_NEW) == flows[3], "not the oldest");
	/* another set has room all the time */
	value_packet(table, 78, &w, now, PPV_FLOW_NEW);
}

/* As many flows as there are places, the same number in each set. */
static void value_table_has_room_for_all(void)
{
	const u32 all = PPV_FLOW_SETS * PPV_FLOW_WAYS;
	struct ppv_window w = value_window(100000);
	struct ppv_flow *table = value_table();
	u32 hash;

	for (hash = 0; hash < all; hash++)
		value_packet(table, hash, &w, SEC, PPV_FLOW_NEW);
	for (hash = 0; hash < all; hash++)
		value_packet(table, hash, &w, SEC + 1, PPV_FLOW_KNOWN);
	value_packet(table, all, &w, SEC + 1, PPV_FLOW_EVICTED);
}

/* Of each set, the flows in it and when each was seen last. */
static void value_table_matches_lists(void)
{
	static struct { u32 hash; u64 seen; } sets[8][PPV_FLOW_WAYS];
	struct ppv_window w = value_window(1000);
	struct ppv_flow *table = value_table();
	u32 i, way, evicted = 0, gone = 0;
	u64 now = SEC;

	memset(sets, 0, sizeof(sets));
	for (i = 0; i < 100000; i++) {
		u32 set = unit_rnd() % 8;
		u32 hash = set * 146 + (unit_rnd() % 7) * PPV_FLOW_SETS * 3;
		enum ppv_found want = PPV_FLOW_NEW;
		u32 oldest = 0;

		now += 1 + unit_any(0, w.ns / 8);
		for (way = 0; way < PPV_FLOW_WAYS; way++) {
			if (sets[set][way].seen && sets[set][way].hash == hash)
				break;
			if (sets[set][way].seen < sets[set][oldest].seen)
				oldest = way;
		}
		if (way < PPV_FLOW_WAYS) {
			want = PPV_FLOW_KNOWN;
			oldest = way;
		} else if (sets[set][oldest].seen) {
			if (now - sets[set][oldest].seen < w.ns)
				want = PPV_FLOW_EVICTED;
			evicted += want == PPV_FLOW_EVICTED;
			gone += want == PPV_FLOW_NEW;
		}
		value_packet(table, hash, &w, now, want);
		sets[set][oldest].hash = hash;
		sets[set][oldest].seen = now;
	}
	CHECK(evicted > 1000 && gone > 1000, "%u, %u", evicted, gone);
}

/* ---- the pick ---- */

static void value_pick_is_of_a_uniform_part_of_the_rate(void)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int i;

	for (i = 0; i < 100000; i++) {
		u32 count = value_any_points(points), rnd = unit_rnd();
		struct ppv_tvf tvf = value_tvf_of(points, count);
		u64 rate = unit_any(0, PPV_RATE_MAX), part;

		part = (rate >> 32) * rnd + ((rate & UINT32_MAX) * rnd >> 32);
		CHECK_EQ(ppv_pick(&tvf, rate, rnd), ppv_tvf_coded(&tvf, part));
		CHECK_EQ(ppv_pick(&tvf, rate, 0), points[0].coded);
	}
}

/* How many of the 2^32 random numbers give more than a value. */
static u64 value_picks_above(const struct ppv_tvf *tvf, u64 rate, u32 coded)
{
	u64 low = 0, high = ONE;

	while (low < high) {
		u64 mid = low + (high - low) / 2;

		if (ppv_pick(tvf, rate, mid) > coded)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The steps of a logarithm that the rounding of a slope can come to. */
static long double value_slope_steps(const struct ppv_tvf *tvf)
{
	long double most = 0;
	u32 i;

	for (i = 1; i < tvf->count; i++) {
		const struct ppv_point *point = &tvf->points[i];
		long double run = log2l((long double)point->rate /
					point[-1].rate) * 65536 + 1;

		most = fmaxl(most, run * run / ONE /
				   (point[-1].coded - point->coded));
	}
	return most;
}

/* The rate of a flow's packets with a value beyond x is that of which the
 * function is x.
 */
static void value_share_beyond_a_value_is_its_rate(void)
{
	struct ppv_point points[PPV_POINTS_MAX];
	int i;

	for (i = 0; i < 20000; i++) {
		u32 number = unit_rnd() % 5, count, coded;
		struct ppv_tvf tvf;
		long double want, got, slack;
		u64 rate = unit_any(1000, PPV_RATE_MAX);

		count = value_any_points(points);
		tvf = number ? value_builtin(number) :
			       value_tvf_of(points, count);
		coded = unit_between(0, PPV_CODED_MAX);
		want = value_inverse(tvf.points, tvf.count, coded);
		if (want > rate)
			want = rate;
		got = (long double)value_picks_above(&tvf, rate, coded) * rate /
		      ONE;
		/* a step of each of two logarithms, and a byte */
		slack = want * (value_slope_steps(&tvf) + 2.1L) * VALUE_STEP +
			1 + (long double)rate / ONE;
		CHECK(got >= want - slack && got <= want + slack,
		      "%llu B/s beyond %u: %Lf, want %Lf", (ull)rate, coded,
		      got, want);
	}
}

/* A flow of even packets: its rate, its picks, their shares in 5 sigma. */
static void value_flow_has_the_shares_of_its_function(void)
{
	static const u32 levels[] = { 45000, 42000, 41000, 39000, 35000 };
	struct ppv_window w = value_window(PPV_WINDOW_US_DEF);
	const u32 packets = 100000;
	u32 number, i, k;

	for (number = 1; number <= 2; number++) {
		struct ppv_tvf tvf = value_builtin(number);
		u32 above[ARRAY_SIZE(levels)] = { 0 };
		struct ppv_flow flow = { 0 };
		u64 now = SEC;

		/* 80 Mbit/s */
		for (i = 0; i < packets + 10000; i++) {
			u64 rate = ppv_flow_add(&flow, &w, 1250, now);
			u32 got = ppv_pick(&tvf, rate, unit_rnd() >> 32);

			now += 125000;
			if (i < 10000)
				continue;
			for (k = 0; k < ARRAY_SIZE(levels); k++)
				above[k] += got > levels[k];
		}
		for (k = 0; k < ARRAY_SIZE(levels); k++) {
			long double p = value_inverse(tvf.points, tvf.count,
						      levels[k]) / 1e7L;

			p = p < 1 ? p : 1;
			CHECK(fabsl(above[k] - packets * p) <=
			      5 * sqrtl(packets * p * (1 - p)) +
			      packets * p * 0.0001L, "%u beyond %u: %u, p %Lf",
			      number, levels[k], above[k], p);
		}
	}
}

static void value_limits_are_those_of_the_paper(void)
{
	CHECK_EQ(PPV_CODED_MAX, 65535);
	CHECK_EQ(PPV_DECADES, 10);
	CHECK_EQ(PPV_RATE_MAX, 125000000000ULL);
	CHECK_EQ(PPV_TVFS, 16);
	CHECK_EQ(PPV_POINTS_MAX, 32);
	CHECK_EQ(PPV_DEFAULT_DEF, 1);
	CHECK_EQ(PPV_WINDOW_US_DEF, 100000);
	CHECK_EQ(PPV_WINDOW_US_MIN, 1000);
	CHECK_EQ(PPV_WINDOW_US_MAX, 1000000);
	CHECK_EQ(PPV_FLOW_SETS, 1024);
	CHECK_EQ(PPV_FLOW_WAYS, 4);
}

static const struct unit_test value_tests[] = {
	TEST(value_log_is_rounded_down),
	TEST(value_log_of_powers_of_two_is_exact),
	TEST(value_log_never_falls),
	TEST(value_check_takes_functions_at_the_bounds),
	TEST(value_check_names_the_fault),
	TEST(value_check_wants_a_step_between_rates),
	TEST(value_set_keeps_the_points),
	TEST(value_at_points_is_exact_and_outside_flat),
	TEST(value_between_points_is_straight_in_logarithms),
	TEST(value_never_rises_with_the_rate),
	TEST(value_builtins_are_four_proper_functions),
	TEST(value_builtins_are_log_coded),
	TEST(value_builtins_have_the_points_of_the_figure),
	TEST(value_gold_and_silver_share_as_the_paper_says),
	TEST(value_background_gets_a_hundredth_of_gold),
	TEST(value_voice_comes_first_up_to_64_kbit),
	TEST(value_window_is_converted),
	TEST(value_rate_of_first_packet_is_one_a_window),
	TEST(value_rate_of_even_packets_is_exact),
	TEST(value_rate_of_any_arrivals_matches_division),
	TEST(value_rate_of_bursts),
	TEST(value_rate_is_forgotten_after_a_window),
	TEST(value_rate_survives_a_clock_that_goes_back),
	TEST(value_rate_has_an_end),
	TEST(value_rate_takes_long_packets_as_2_to_24),
	TEST(value_flow_is_known_after_its_first_packet),
	TEST(value_flow_seen_longest_ago_makes_room),
	TEST(value_table_has_room_for_all),
	TEST(value_table_matches_lists),
	TEST(value_pick_is_of_a_uniform_part_of_the_rate),
	TEST(value_share_beyond_a_value_is_its_rate),
	TEST(value_flow_has_the_shares_of_its_function),
	TEST(value_limits_are_those_of_the_paper),
};
