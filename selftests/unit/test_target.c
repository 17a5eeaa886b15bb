// SPDX-License-Identifier: GPL-2.0-only
/* The target that rises on slow links, and delays scaled by it. */

/* Serialization time of a packet, at most 1514 bytes. */
static long double target_packet_ns(u64 ns_per_byte_q20, u32 mtu_bytes)
{
	return (long double)ns_per_byte_q20 / (1 << 20) * (mtu_bytes > 1514 ? 1514 : mtu_bytes);
}

static void target_of(const struct dualpi2_params *p, struct dualpi2_vars *v, u64 bit_per_s)
{
	dualpi2_set_target(p, v, dualpi2_ns_per_byte_q20(bit_per_s / 8), 1514);
}

/* Default of 15 ms: 2.5 times 12112 bits less 15 ms, from 1.01 Mbit/s down. */
UNIT_TEST(target_rises_on_slow_links)
{
	static const struct { u64 bit_per_s, packet_us, target_us; } rows[] = {
		{ 8000, 1514000, 3770000 },
		{ 64000, 189250, 458125 },
		{ 128000, 94625, 221562 },
		{ 256000, 47312, 103281 },
		{ 1000000, 12112, 15280 },
		{ 1010000, 11992, 15000 },
		{ 2000000, 6056, 15000 },
		{ 1000000000, 12, 15000 },
		{ 1000000000000, 0, 15000 },
	};
	struct dualpi2_params p = unit_params_k(2);

	for_each(row, rows) {
		struct dualpi2_vars v = unit_vars(&p);

		target_of(&p, &v, row->bit_per_s);
		CHECK_EQ(v.packet_ns / 1000, row->packet_us);
		CHECK_EQ(v.target_ns / 1000, row->target_us);
		CHECK_EQ(!v.delay_scale_q32, row->target_us == 15000);
	}
}

/* T of 12 ms is 0.8 of 15 ms, where 2.5 T less the target is the target. */
UNIT_TEST(target_is_the_same_up_to_four_fifths_of_it)
{
	static const struct { u64 extra_q20; u32 packet_ns, target_ns; } rows[] = {
		{ 0, 12000000, 15000000 },
		{ 1 << 18, 12000001, 15000002 },
		{ 1 << 19, 12000002, 15000005 },
		{ 1 << 20, 12000004, 15000010 },
	};
	struct dualpi2_params p = unit_params_k(2);

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dualpi2_vars v = unit_vars(&p);

		/* 4 bytes at 3 ms each */
		dualpi2_set_target(&p, &v, (3 * MS << 20) + rows[i].extra_q20, 4);
		CHECK_EQ(v.packet_ns, rows[i].packet_ns);
		CHECK_EQ(v.target_ns, rows[i].target_ns);
		if (i)
			CHECK_EQ(v.delay_scale_q32, 15 * MS * ONE / rows[i].target_ns);
		else
			CHECK_EQ(v.delay_scale_q32, 0);
	}
}

UNIT_TEST(target_of_any_rate_matches_definition)
{
	for (int i = 0; i < 100000; i++) {
		u64 ns_per_byte_q20 = unit_any(1, 1ULL << 42);
		u32 mtu = i & 1 ? unit_any(1, U32_MAX) : 1514;
		long double packet, want, scale;
		struct dualpi2_params p =
			UNIT_PARAMS(cfg.target_us = unit_any(1, DUALPI2_TIME_MAX_US));
		struct dualpi2_vars v = unit_vars(&p);

		dualpi2_set_target(&p, &v, ns_per_byte_q20, mtu);
		packet = target_packet_ns(ns_per_byte_q20, mtu);
		CHECK(fabsl(v.packet_ns - fminl(packet, U32_MAX)) < 1,
		      "%u, want %Lf", v.packet_ns, packet);
		want = fmaxl(p.target_ns, 2.5L * packet - p.target_ns);
		want = fminl(want, U32_MAX);
		CHECK(fabsl(v.target_ns - want) < 3.5L, "%u, want %Lf", v.target_ns, want);
		if (v.target_ns == p.target_ns) {
			CHECK_EQ(v.delay_scale_q32, 0);
			continue;
		}
		CHECK(v.target_ns > p.target_ns, "%u, below %u", v.target_ns, p.target_ns);
		scale = (long double)p.target_ns / v.target_ns * ONE;
		CHECK(v.delay_scale_q32 && v.delay_scale_q32 <= scale &&
		      v.delay_scale_q32 > scale - 1, "%u, want %Lf", v.delay_scale_q32, scale);
	}
}

UNIT_TEST(target_beyond_32_bits_is_the_greatest)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	/* 1.724 s a packet are 4.295 s, and 15 ms less */
	dualpi2_set_target(&p, &v, 1720000ULL << 20, 1000);
	CHECK_EQ(v.target_ns, 4285000000);
	dualpi2_set_target(&p, &v, 1730000ULL << 20, 1000);
	CHECK_EQ(v.target_ns, U32_MAX);
	CHECK_EQ(v.packet_ns, 1730000000);
	dualpi2_set_target(&p, &v, 4000000ULL << 20, 1514);
	CHECK_EQ(v.target_ns, U32_MAX);
	CHECK_EQ(v.packet_ns, U32_MAX);
	/* 15 ms over that, in 2^-32 */
	CHECK_EQ(v.delay_scale_q32, 15000000);
}

UNIT_TEST(target_of_an_unknown_rate_is_the_option)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	target_of(&p, &v, 64000);
	CHECK(v.target_ns > p.target_ns && v.delay_scale_q32, "no effect");
	/* A reset keeps what is known of the link. */
	dualpi2_vars_init(&p, &v, 1514, SEC);
	CHECK_EQ(v.target_ns / 1000, 458125);
	CHECK_EQ(v.packet_ns / 1000, 189250);
	CHECK_EQ(v.delay_scale_q32, 15 * MS * ONE / v.target_ns);
	dualpi2_set_target(&p, &v, 0, 1514);
	CHECK_EQ(v.target_ns, p.target_ns);
	CHECK_EQ(v.delay_scale_q32, 0);
	CHECK_EQ(v.packet_ns, U32_MAX);
}

/* With the target raised by a factor and both gains lowered by it. */
UNIT_TEST(target_raised_lowers_the_gains_as_much)
{
	for (int i = 0; i < 100000; i++) {
		u64 cur = unit_any(0, 1ULL << 34), last = unit_any(0, 1ULL << 34);
		long double once, twice, scale, tol, sum;
		u64 periods = unit_between(1, 8);
		struct dualpi2_config cfg = UNIT_CONFIG(cfg.alpha = unit_any(1, 1000),
							cfg.beta = unit_any(1, 10000),
							cfg.target_us = unit_any(1000, 1000000));
		struct dualpi2_params p = unit_params(&cfg);
		struct dualpi2_vars v = unit_vars(&p);

		dualpi2_set_target(&p, &v, unit_any(1, 1ULL << 40), 1514);
		scale = (long double)p.target_ns / v.target_ns;
		/* The maximum delay that counts is unchanged. */
		if (cur * scale > U32_MAX || last * scale > U32_MAX)
			continue;
		v.base_q32 = unit_any_q32();
		v.delay_ns = last;
		v.packet_ns = 0;
		once = cfg.alpha / 256.0L * 4.294967296L * scale;
		twice = cfg.beta / 256.0L * 4.294967296L * scale;
		sum = v.base_q32 + once * ((long double)cur - v.target_ns) * periods +
		      twice * ((long double)cur - last);
		sum = sum < 0 ? 0 : sum > ONE ? ONE : sum;
		/* A scaled delay is off by 1 ns, and by 4 for 2^34 / 2^32. */
		tol = (once * periods + 2 * twice) / scale * 5 +
		      (periods + 1) * ((cur + last) * scale + p.target_ns) / (1 << 25) + 20;
		dualpi2_pi_update(&p, &v, cur, periods * 16 * MS);
		CHECK(fabsl(v.base_q32 - sum) <= tol,
		      "got %llu, want %.1Lf +- %.1Lf", (ull)v.base_q32, sum, tol);
	}
}

/* 20 s at 64 kbit/s are 655 ms where the target is 15 ms: less than 4.29 s. */
UNIT_TEST(target_raised_has_room_for_longer_delays)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	target_of(&p, &v, 64000);
	CHECK_NEAR(dualpi2_scaled_ns(&v, 20 * SEC), 654843110, 5);
	CHECK_NEAR(dualpi2_scaled_ns(&v, v.target_ns), 15 * MS, 1);
	CHECK_EQ(dualpi2_scaled_ns(&v, 140 * SEC), U32_MAX);
	CHECK_EQ(dualpi2_scaled_ns(&v, UINT64_MAX), U32_MAX);
	dualpi2_set_target(&p, &v, 0, 1514);
	CHECK_EQ(dualpi2_scaled_ns(&v, U32_MAX), U32_MAX);
	CHECK_EQ(dualpi2_scaled_ns(&v, U32_MAX - 1), U32_MAX - 1);
	CHECK_EQ(dualpi2_scaled_ns(&v, UINT64_MAX), U32_MAX);
}

/* Another rate, or the first one, with the same delay: the proportional term is 0,
 * and p' moves by the integral term alone.
 */
UNIT_TEST(target_that_changes_makes_no_step)
{
	static const u64 rates[] = { 0, 64000, 1000000, 128000, 64000, 0, 256000,
				     10000000, 8000, 0 };
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	u64 now = 0, delay_ns = 400 * MS;

	target_of(&p, &v, 0);
	v.delay_ns = delay_ns;
	for_each(rate, rates) {
		long double want = ONE / 4;

		target_of(&p, &v, *rate);
		v.base_q32 = ONE / 4;
		now += 16 * MS;
		/* 0.16 Hz times the delay above the target */
		want += 41 / 256.0L * 4.294967296L * 15 * MS *
			((long double)delay_ns / v.target_ns - 1);
		dualpi2_pi_update(&p, &v, delay_ns, now);
		CHECK_NEAR(v.base_q32, want, 40);
	}
}
