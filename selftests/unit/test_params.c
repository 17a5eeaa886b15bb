// SPDX-License-Identifier: GPL-2.0-only
/*
 * Knobs: defaults, limits, conversion to what the packet path uses, the native
 * marker's ramp and its floor, the low-queue exemption.
 */

/* RFC 9332 A.1 figure 2 and table I of the DualPI2 paper; 10000 packets, no
 * early drop and split GSO as Linux.
 */
UNIT_TEST(config_default_is_that_of_rfc_and_paper)
{
	struct dualpi2_config cfg = unit_config();

	CHECK_EQ(cfg.limit_pkts, 10000);
	CHECK_EQ(cfg.target_us, 15000);
	CHECK_EQ(cfg.tupdate_us, 16000);
	CHECK_EQ(cfg.alpha, 41);	/* 0.16 Hz * 256 = 40.96 */
	CHECK_EQ(cfg.beta, 819);	/* 3.2 Hz * 256 = 819.2 */
	CHECK_EQ(cfg.step_thresh_us, 1000);
	CHECK_EQ(cfg.step_thresh_pkts, 0);
	CHECK_EQ(cfg.min_qlen_step_pkts, 0);
	CHECK_EQ(cfg.coupling, 2);
	CHECK_EQ(cfg.c_protection_pct, 10);
	CHECK_EQ(cfg.ecn_mask, 1);
	CHECK_EQ(cfg.signal, DUALPI2_SIGNAL_RECUR);
	CHECK_EQ(cfg.burst_max_us, 0);	/* no sender moves others' ramp */
	CHECK_EQ(cfg.hist_c_us, 64);
	CHECK_EQ(cfg.hist_l_us, 8);
	CHECK_EQ(cfg.report_us, 1000000);
	CHECK(!cfg.memory_limit_is_set && !cfg.ramp_is_set && !cfg.drop_early, "set by default");
	CHECK(cfg.drop_overload && cfg.split_gso && cfg.l4s, "not by default");
}

/* What tc and old scripts send as "0", and what would break the algorithm, is
 * outside the limits; what Linux 7.x accepts and makes sense is inside.
 */
UNIT_TEST(config_limits_exclude_harm)
{
	CHECK_EQ(DUALPI2_TIME_MAX_US, 4294967);
	CHECK_EQ(DUALPI2_TARGET_MIN, 1);	/* 0: p' never decays (C23) */
	CHECK_EQ(DUALPI2_TUPDATE_MIN, 100);	/* 1 us: 1 MHz updates (C14) */
	CHECK_EQ(DUALPI2_TUPDATE_MAX, DUALPI2_TIME_MAX_US);
	CHECK_EQ(DUALPI2_TARGET_MAX, DUALPI2_TIME_MAX_US);
	CHECK_EQ(DUALPI2_STEP_THRESH_US_MAX, DUALPI2_TIME_MAX_US);
	CHECK_EQ(DUALPI2_RAMP_US_MAX, DUALPI2_TIME_MAX_US);
	CHECK_EQ(DUALPI2_ALPHA_MIN, 1);
	CHECK_EQ(DUALPI2_GAIN_MAX, 2147483647U);
	CHECK_EQ(DUALPI2_COUPLING_MIN, 1);
	CHECK_EQ(DUALPI2_COUPLING_MAX, 255);
	CHECK_EQ(DUALPI2_LIMIT_MIN, 1);
	CHECK_EQ(DUALPI2_MEMORY_LIMIT_MIN, 1);
	CHECK_EQ(DUALPI2_STEP_THRESH_PKTS_MIN, 1);
	/* 2^32 - 1 stands for "by delay" in the parameters. */
	CHECK_EQ(DUALPI2_STEP_THRESH_PKTS_MAX, 4294967294U);
	CHECK_EQ(DUALPI2_C_PROTECTION_MAX, 100);
	CHECK_EQ(DUALPI2_P_CMAX_MAX, 100);
	CHECK_EQ(DUALPI2_HIST_C_MIN, 1);
	CHECK_EQ(DUALPI2_HIST_C_MAX, 16384);
	CHECK_EQ(DUALPI2_REPORT_MIN, 100000);	/* ten a second */
}

/* 8 kbit/s to 1 Tbit/s, and link layers as tc-stab(8) and others know them. */
UNIT_TEST(config_limits_of_the_link)
{
	CHECK_EQ(DUALPI2_BANDWIDTH_MIN * 8, 8000);
	CHECK_EQ((u64)DUALPI2_BANDWIDTH_MAX * 8, 1000000000000);
	CHECK(DUALPI2_OVERHEAD_MIN == -64, "%d", DUALPI2_OVERHEAD_MIN);
	CHECK_EQ(DUALPI2_OVERHEAD_MAX, 256);
	CHECK_EQ(DUALPI2_MPU_MAX, 256);
	CHECK_EQ(DUALPI2_BURST_MAX_MAX, 100000);
}

/* drops of one call are bounded (C19), and the bound allows any p_C of at most 1/k^2 */
UNIT_TEST(config_drops_per_dequeue_leave_room_for_any_real_overload)
{
	/* 16 limit p_C to 94 %, 256 hold the lock for long; 64 is 98.5 %. */
	CHECK_EQ(DUALPI2_DROPS_PER_DEQUEUE, 64);
}

UNIT_TEST(params_default_matches_configuration)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);

	CHECK_EQ(p.target_ns, 15000000);
	CHECK_EQ(p.tupdate_ns, 16000000);
	CHECK_EQ(p.alpha_gain, 11540474);	/* 41 * 2^48 / 10^9 */
	CHECK_EQ(p.beta_gain, 230528006);	/* 819 * 2^48 / 10^9 */
	CHECK_EQ(p.ramp.min_ns, 800000);	/* RFC 9332 figure 2 */
	CHECK_EQ(p.ramp.max_ns, 1200000);
	CHECK_EQ(p.floor_pkts, 2);
	CHECK_EQ(p.c_weight, 10);
	CHECK_EQ(p.l_weight, 90);
	CHECK_EQ(p.coupling, 2);
	CHECK_EQ(p.enter_q32, ONE / 2);		/* p_Cmax 25 % */
	CHECK(!p.random && p.drop_overload, "flags");
}

UNIT_TEST(params_flags_follow_configuration)
{
	struct dualpi2_config cfg = UNIT_CONFIG(cfg.signal = DUALPI2_SIGNAL_RANDOM);
	struct dualpi2_params p = unit_params(&cfg);

	CHECK(p.random, "random");
	cfg.signal = DUALPI2_SIGNAL_RECUR;
	cfg.drop_overload = false;
	p = unit_params(&cfg);
	CHECK(!p.random && !p.drop_overload, "random or drop_overload");
	/* p_Cmax alone decides whether overload begins at any delay. */
	cfg.framing = DUALPI2_FRAMING_ATM;
	cfg.signal = DUALPI2_SIGNAL_RANDOM;
	cfg.qprotect = DUALPI2_QPROTECT_TUPLE;
	p = unit_params(&cfg);
	CHECK(!p.overload_at_once, "overload_at_once");
	cfg.p_cmax_pct = 25;
	p = unit_params(&cfg);
	CHECK(p.overload_at_once, "not overload_at_once");
}

UNIT_TEST(params_any_configuration_converts_each_knob_alone)
{
	for (int i = 0; i < 100000; i++) {
		u32 weight;
		struct dualpi2_config cfg =
			UNIT_CONFIG(cfg.alpha = unit_any(1, DUALPI2_GAIN_MAX),
				    cfg.beta = unit_any(1, DUALPI2_GAIN_MAX),
				    cfg.target_us = unit_any(1, DUALPI2_TIME_MAX_US),
				    cfg.tupdate_us = unit_any(100, DUALPI2_TIME_MAX_US),
				    cfg.step_thresh_us = unit_any(0, DUALPI2_TIME_MAX_US),
				    cfg.ramp_us = unit_any(0, DUALPI2_TIME_MAX_US),
				    cfg.ramp_is_set = unit_rnd() & 1,
				    cfg.coupling = unit_any(1, 255),
				    cfg.c_protection_pct = unit_between(0, 100),
				    cfg.min_qlen_step_pkts = unit_any(0, U32_MAX));
		struct dualpi2_params p = unit_params(&cfg);

		CHECK_EQ(p.alpha_gain, arith_gain(cfg.alpha));
		CHECK_EQ(p.beta_gain, arith_gain(cfg.beta));
		CHECK_EQ(p.target_ns, cfg.target_us * 1000ULL);
		CHECK_EQ(p.tupdate_ns, cfg.tupdate_us * 1000ULL);
		CHECK_EQ(p.coupling, cfg.coupling);
		CHECK_EQ(p.inv_coupling_q32, ONE / cfg.coupling);
		CHECK(p.ramp.min_ns <= p.ramp.max_ns, "ramp upside down");

		/* strict priority, either way, is not to be had (R23) */
		weight = cfg.c_protection_pct;
		CHECK_EQ(p.c_weight, weight == 0 ? 1 : weight == 100 ? 99 : weight);
		CHECK_EQ(p.c_weight + p.l_weight, 100);

		/* RFC 9332: no native mark if the queue holds <= Th_len packets,
		 * and Th_len is at least 1
		 */
		weight = cfg.min_qlen_step_pkts;
		CHECK_EQ(p.floor_pkts, weight == U32_MAX ? U32_MAX : weight < 1 ? 2 : weight + 1);
	}
}

UNIT_TEST(params_overload_thresholds_match_vectors)
{
	for_each(row, vec_overload) {
		struct dualpi2_params p = unit_params_k(row->k);

		CHECK_EQ(p.enter_q32, row->enter);
	}
}

UNIT_TEST(ramp_vectors_match)
{
	for_each(row, vec_ramp) {
		struct dualpi2_params p =
			UNIT_PARAMS(cfg.step_thresh_us = row->thresh_us,
				    cfg.ramp_is_set = row->is_set,
				    cfg.ramp_us = row->is_set ? row->ramp_us : 12345);

		CHECK_EQ(p.ramp.min_ns, row->min_ns);
		CHECK_EQ(p.ramp.max_ns, row->max_ns);
		CHECK_NEAR(dualpi2_native_q32(&p, &p.ramp, row->delay_ns, 2), row->want, row->tol);
	}
}

/* A narrow ramp has a slope so steep that all its digits count. */
UNIT_TEST(ramp_narrow_slope_is_exact)
{
	for (u32 ramp_us = 1; ramp_us <= 1000; ramp_us++) {
		struct dualpi2_params p = UNIT_PARAMS(cfg.ramp_us = ramp_us,
						      cfg.ramp_is_set = true);

		CHECK_EQ(p.ramp.max_ns - p.ramp.min_ns, ramp_us * 1000);
		CHECK_EQ(p.ramp.slope, (1ULL << 48) / (ramp_us * 1000));
	}
}

/* 1/k, rounded up */
UNIT_TEST(params_overload_edges_are_exact)
{
	for (u32 k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);

		CHECK_EQ(p.enter_q32, (ONE + k - 1) / k);
	}
}

UNIT_TEST(ramp_default_width_is_40_percent_of_the_threshold)
{
	for (u32 us = 0; us <= DUALPI2_TIME_MAX_US; us += 1 + us / 100) {
		struct dualpi2_config cfg = unit_config();

		cfg.step_thresh_us = us;
		CHECK_EQ(dualpi2_ramp_us(&cfg), us * 2ULL / 5);
		cfg.ramp_is_set = true;
		cfg.ramp_us = us / 3;
		CHECK_EQ(dualpi2_ramp_us(&cfg), us / 3);
	}
}

/* At any threshold, and only where the rate is known. */
UNIT_TEST(ramp_of_shared_queues_is_at_60_percent)
{
	for (u32 us = 0; us <= DUALPI2_TIME_MAX_US; us += 1 + us / 100) {
		struct dualpi2_config cfg = UNIT_CONFIG(cfg.step_thresh_us = us);
		struct dualpi2_params p = unit_params(&cfg);

		CHECK(!memcmp(&p.shared_ramp, &p.ramp, sizeof(p.ramp)),
		      "another ramp at %u us", us);
		cfg.bandwidth = 5000000;
		p = unit_params(&cfg);
		CHECK_EQ(p.shared_ramp.min_ns, p.ramp.min_ns * 3ULL / 5);
		CHECK_EQ(p.shared_ramp.max_ns, p.ramp.max_ns * 3ULL / 5);
	}
}

UNIT_TEST(ramp_any_delay_is_monotone_and_within_0_to_1)
{
	for (int i = 0; i < 2000; i++) {
		u64 delay = 0, last = 0;
		struct dualpi2_params p =
			UNIT_PARAMS(cfg.step_thresh_us = unit_any(0, DUALPI2_TIME_MAX_US),
				    cfg.ramp_us = unit_any(0, DUALPI2_TIME_MAX_US),
				    cfg.ramp_is_set = unit_rnd() & 1);

		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 0, 2), 0);
		for (int j = 0; j < 50; j++) {
			u64 got;

			delay += unit_any(0, p.ramp.max_ns / 16 + 1);
			got = dualpi2_native_q32(&p, &p.ramp, delay, 2);
			CHECK(got >= last && got <= ONE, "at %llu ns", (ull)delay);
			last = got;
		}
		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, UINT64_MAX, 2), ONE);
	}
}

UNIT_TEST(ramp_step_marks_only_above_the_threshold)
{
	struct dualpi2_config cfg = UNIT_CONFIG(cfg.ramp_is_set = true, cfg.ramp_us = 0);
	struct dualpi2_params p = unit_params(&cfg);

	CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 1000000, 2), 0);
	CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 1000001, 2), ONE);
	cfg.step_thresh_us = 0;
	p = unit_params(&cfg);
	CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 0, 2), 0);
	CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 1, 2), ONE);
}

UNIT_TEST(ramp_step_in_packets_ignores_delay)
{
	static const u32 thresholds[] = { 1, 2, 5, 1000, U32_MAX - 1 };

	for_each(threshold, thresholds) {
		u32 pkts = *threshold;
		struct dualpi2_params p = UNIT_PARAMS(cfg.step_thresh_pkts = pkts);

		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, UINT64_MAX, pkts), 0);
		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 0, pkts), 0);
		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 0, pkts - 1), 0);
		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, 0, pkts + 1), ONE);
		CHECK_EQ(dualpi2_native_q32(&p, &p.ramp, UINT64_MAX, U32_MAX), ONE);
	}
}

/* RFC 9332 A.1: 0 while the queue holds no more than Th_len packets, by default
 * a single one; asked at enqueue, the packet itself included.
 */
UNIT_TEST(native_ok_floor_is_more_than_th_len_packets)
{
	static const u32 th_len[] = { 0, 1, 2, 3, 10, 65535, U32_MAX - 1, U32_MAX };

	for_each(floor, th_len) {
		u32 least = *floor > 1 ? *floor : 1;
		struct dualpi2_params p = UNIT_PARAMS(cfg.min_qlen_step_pkts = *floor);

		CHECK(!dualpi2_native_ok(&p, 1), "a lone packet");
		if (least < U32_MAX) {
			CHECK(!dualpi2_native_ok(&p, least), "%u packets", least);
			CHECK(dualpi2_native_ok(&p, least + 1), "%u packets", least + 1);
			CHECK(dualpi2_native_ok(&p, U32_MAX), "any more");
		} else {
			CHECK(!dualpi2_native_ok(&p, U32_MAX - 1), "U32_MAX - 1 packets");
		}
	}
}

/* RFC 9332 A.1: no coupled or Classic signal while both queues together hold
 * less than two MTU; a jumbo MTU does not raise that (C16).
 */
UNIT_TEST(low_threshold_is_two_mtu_of_1514_at_most)
{
	static const struct { u32 mtu, low; } rows[] = {
		{ 68, 136 }, { 82, 164 }, { 576, 1152 }, { 1500, 3000 },
		{ 1514, 3028 }, { 1515, 3028 }, { 1518, 3028 }, { 9014, 3028 },
		{ 65550, 3028 }, { 2147483647U, 3028 }, { 2147483661U, 3028 },
		{ U32_MAX, 3028 },
	};

	for_each(row, rows) {
		CHECK(dualpi2_is_low(row->low - 1, row->mtu), "mtu %u", row->mtu);
		CHECK(!dualpi2_is_low(row->low, row->mtu), "mtu %u", row->mtu);
		CHECK(dualpi2_is_low(0, row->mtu), "mtu %u", row->mtu);
		CHECK(!dualpi2_is_low(U32_MAX, row->mtu), "mtu %u", row->mtu);
	}
}

UNIT_TEST(memory_default_matches_vectors)
{
	for_each(row, vec_memory) {
		struct dualpi2_config cfg = unit_config();

		cfg.limit_pkts = row->limit;
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, row->mtu, 0, 15 * MS), row->want);
	}
}

/* 3 * 2^31 bytes times (2^33 + 1)/3 packets is 2^64 + 2^31. */
UNIT_TEST(memory_beyond_64_bits_is_the_greatest)
{
	struct dualpi2_config cfg = unit_config();

	cfg.limit_pkts = 2863311531U;
	CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, 3U << 30, 0, 15 * MS), U32_MAX);
}

UNIT_TEST(memory_set_by_user_ignores_limit_and_mtu)
{
	static const u32 bytes[] = { 1, 1000000, U32_MAX };

	for_each(limit, bytes) {
		struct dualpi2_config cfg = unit_config();

		cfg.memory_limit_is_set = true;
		cfg.memory_limit_bytes = *limit;
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, 1514, 0, 15 * MS), *limit);
		cfg.limit_pkts = U32_MAX;
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, U32_MAX, 1, U32_MAX), *limit);
	}
}
