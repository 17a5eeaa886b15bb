// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arithmetic: gains, squares, the coupling, units.
 */

/* n * 2^48 / 10^9 rounded to nearest by long division: 2^48 / 10^9 is
 * 2^39 / 5^9, and 39 bits are taken 13 at a time.
 */
static u64 arith_gain(u32 n)
{
	u64 quotient = n / 1953125U, rest = n % 1953125U;

	for (int i = 0; i < 3; i++) {
		rest <<= 13;
		quotient = (quotient << 13) + rest / 1953125U;
		rest %= 1953125U;
	}
	return quotient + (2 * rest >= 1953125U);
}

UNIT_TEST(gain_vectors_match)
{
	for_each(row, vec_gain)
		CHECK_EQ(dualpi2_gain(row->hz256), row->want);
}

UNIT_TEST(gain_every_small_value_rounds_to_nearest)
{
	for (u32 n = 0; n <= 1U << 20; n++)
		CHECK_EQ(dualpi2_gain(n), arith_gain(n));
}

UNIT_TEST(gain_any_value_rounds_to_nearest)
{
	for (int i = 0; i < 200000; i++) {
		u32 n = unit_rnd() >> 33;

		CHECK_EQ(dualpi2_gain(n), arith_gain(n));
	}
	CHECK_EQ(dualpi2_gain(DUALPI2_GAIN_MAX), arith_gain(2147483647U));
	CHECK(dualpi2_gain(DUALPI2_GAIN_MAX) < 1ULL << 50, "too large");
}

/* Symmetric in the sign, and within 1 of gain * |difference| / 2^24. */
UNIT_TEST(gain_times_any_difference_is_exact_and_odd)
{
	for (int i = 0; i < 100000; i++) {
		u64 gain = unit_any(0, (1ULL << 50) - 1);
		s64 diff = unit_any(0, U32_MAX);
		s64 got = dualpi2_gain_times(gain, diff);
		/* in two parts of less than 2^63 each */
		u64 want = ((gain >> 25) * (u64)diff * 2) +
			   ((gain & ((1U << 25) - 1)) * (u64)diff >> 24);

		CHECK_EQ(got, want);
		CHECK_EQ(dualpi2_gain_times(gain, -diff), -got);
	}
}

UNIT_TEST(square_vectors_match)
{
	for_each(row, vec_square)
		CHECK_EQ(dualpi2_square_q32(row->p), row->want);
}

UNIT_TEST(square_of_one_is_one)
{
	CHECK_EQ(dualpi2_square_q32(ONE), ONE);
	CHECK(dualpi2_square_q32(ONE - 1) < ONE, "1 too early");
	CHECK_EQ(dualpi2_square_q32(0), 0);
}

UNIT_TEST(square_any_value_is_monotone_and_exact)
{
	for (int i = 0; i < 100000; i++) {
		u64 p = unit_any(0, ONE - 1);
		u64 hi = p >> 16, lo = p & 0xffff;
		u64 want = hi * hi + ((2 * hi * lo + (lo * lo >> 16)) >> 16);

		CHECK_EQ(dualpi2_square_q32(p), want);
		CHECK(dualpi2_square_q32(p + 1) >= want, "falls after %llu", (ull)p);
	}
}

UNIT_TEST(coupled_vectors_match)
{
	for_each(row, vec_coupled) {
		struct dualpi2_params p = unit_params_k(row->k);
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = row->p;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK_EQ(v.coupled_q32, row->want);
		CHECK_EQ(v.base_q32, row->p);
	}
}

/* p_C = p'^2 and p_CL = min(k p', 1), for every k and any p' */
UNIT_TEST(derived_any_base_follows_square_and_coupling)
{
	for (u32 k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);

		for (int i = 0; i < 400; i++) {
			struct dualpi2_vars v = unit_vars(&p);
			u64 base = unit_any_q32();
			long double exact = (long double)base * base / ONE;

			v.base_q32 = base;
			dualpi2_vars_derive(&p, &v, 0);
			CHECK_EQ(v.base_q32, base);
			CHECK_EQ(v.coupled_q32, base * k < ONE ? base * k : ONE);
			CHECK(fabsl(v.classic_q32 - exact) <= 1,
			      "%llu of %llu", (ull)v.classic_q32, (ull)base);
		}
	}
}

UNIT_TEST(over_k_square_vectors_match)
{
	for_each(row, vec_over_k) {
		struct dualpi2_params p = unit_params_k(row->k);

		CHECK_NEAR(dualpi2_over_k_square_q32(&p, row->p), row->want, row->tol);
	}
}

UNIT_TEST(over_k_square_of_one_at_k_one_is_one)
{
	struct dualpi2_params p = unit_params_k(1);

	CHECK_EQ(dualpi2_over_k_square_q32(&p, ONE), ONE);
}

/* For vectors.py's tolerance see there. */
UNIT_TEST(over_k_square_any_value_is_within_7_ulp)
{
	for (u32 k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);

		for (int i = 0; i < 400; i++) {
			u64 prob = unit_any_q32();
			long double root = (long double)prob / k;
			long double exact = root * root / ONE;
			u64 got = dualpi2_over_k_square_q32(&p, prob);

			CHECK(got <= ONE && fabsl(got - exact) <= 7,
			      "got %llu of %llu, k %u", (ull)got, (ull)prob, k);
		}
	}
}

/* (p/k)^2 <= exact, so that the Classic match never exceeds equation (1). */
UNIT_TEST(over_k_square_never_rounds_up)
{
	for (u64 k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);

		for (int i = 0; i < 400; i++) {
			u64 prob = unit_between(ONE / 2, ONE - 1);
			u64 got = dualpi2_over_k_square_q32(&p, prob);

			CHECK(got * k * k <= prob * prob >> 32,
			      "got %llu of %llu, k %llu", (ull)got, (ull)prob, (ull)k);
		}
	}
}

UNIT_TEST(units_us_to_ns_saturates)
{
	CHECK_EQ(dualpi2_us_to_ns(0), 0);
	CHECK_EQ(dualpi2_us_to_ns(1), 1000);
	CHECK_EQ(dualpi2_us_to_ns(15000), 15000000);
	CHECK_EQ(dualpi2_us_to_ns(4294967), 4294967000U);
	CHECK_EQ(dualpi2_us_to_ns(4294968), U32_MAX);
	CHECK_EQ(dualpi2_us_to_ns(U32_MAX), U32_MAX);
	for (int i = 0; i < 20000; i++) {
		u32 us = unit_any(0, U32_MAX);
		u64 ns = us * 1000ULL;

		CHECK_EQ(dualpi2_us_to_ns(us), ns > U32_MAX ? U32_MAX : ns);
	}
}

UNIT_TEST(units_ns_to_us_rounds_down_and_saturates)
{
	CHECK_EQ(dualpi2_ns_to_us(0), 0);
	CHECK_EQ(dualpi2_ns_to_us(999), 0);
	CHECK_EQ(dualpi2_ns_to_us(1000), 1);
	CHECK_EQ(dualpi2_ns_to_us(U32_MAX * 1000ULL + 999), U32_MAX);
	CHECK_EQ(dualpi2_ns_to_us((U32_MAX + 1ULL) * 1000), U32_MAX);
	CHECK_EQ(dualpi2_ns_to_us(UINT64_MAX), U32_MAX);
	for (int i = 0; i < 20000; i++) {
		u64 ns = unit_any(0, UINT64_MAX);
		u64 us = ns / 1000;

		CHECK_EQ(dualpi2_ns_to_us(ns), us > U32_MAX ? U32_MAX : us);
	}
}

UNIT_TEST(units_configured_time_survives_the_round_trip)
{
	for (u32 us = 0; us <= DUALPI2_TIME_MAX_US; us += 1 + us / 1000)
		CHECK_EQ(dualpi2_ns_to_us(dualpi2_us_to_ns(us)), us);
	CHECK_EQ(dualpi2_ns_to_us(dualpi2_us_to_ns(DUALPI2_TIME_MAX_US)), DUALPI2_TIME_MAX_US);
}

UNIT_TEST(units_probability_one_is_u32_max)
{
	CHECK_EQ(dualpi2_q32_to_u32(0), 0);
	CHECK_EQ(dualpi2_q32_to_u32(1), 1);
	CHECK_EQ(dualpi2_q32_to_u32(ONE / 2), 0x80000000U);
	CHECK_EQ(dualpi2_q32_to_u32(ONE - 1), U32_MAX);
	CHECK_EQ(dualpi2_q32_to_u32(ONE), U32_MAX);
}
