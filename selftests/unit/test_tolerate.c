// SPDX-License-Identifier: GPL-2.0-only
/* The ramp that tolerates bursts: dualpi2_tolerate(). */

/* Up to here bursts are as those of any sender, or end before the ramp begins. */
static u32 tolerate_least(const struct dualpi2_params *p)
{
	return p->ramp.min_ns > DUALPI2_BURST_MIN_NS ? p->ramp.min_ns : DUALPI2_BURST_MIN_NS;
}

UNIT_TEST(tolerate_below_the_ramp_changes_nothing)
{
	for (int i = 0; i < 2000; i++) {
		struct dualpi2_params p =
			UNIT_PARAMS(cfg.step_thresh_us = unit_any(0, DUALPI2_STEP_THRESH_US_MAX),
				    cfg.ramp_us = unit_any(0, DUALPI2_RAMP_US_MAX),
				    cfg.ramp_is_set = true);
		struct dualpi2_vars v = unit_vars(&p);

		CHECK(!memcmp(&v.ramp, &p.ramp, sizeof(v.ramp)), "another ramp at the start");
		memset(&v.ramp, 0xa5, sizeof(v.ramp));
		dualpi2_tolerate(&p, &v, unit_between(0, tolerate_least(&p)));
		CHECK(v.ramp.min_ns == p.ramp.min_ns && v.ramp.max_ns == p.ramp.max_ns &&
		      v.ramp.slope == p.ramp.slope, "another ramp");
	}
}

UNIT_TEST(tolerate_beyond_the_ramp_moves_and_widens_it)
{
	for (int i = 0; i < 20000; i++) {
		u32 burst, width;
		u64 want;
		struct dualpi2_params p = UNIT_PARAMS(cfg.step_thresh_us = unit_any(0, 200000),
						      cfg.ramp_us = unit_any(0, 200000),
						      cfg.ramp_is_set = true);
		struct dualpi2_vars v = unit_vars(&p);

		burst = unit_any(tolerate_least(&p) + 1, U32_MAX);
		width = p.ramp.max_ns - p.ramp.min_ns;
		width = width < burst / 4 ? burst / 4 : width;
		want = (u64)burst + width;
		want = want > U32_MAX ? U32_MAX : want;
		dualpi2_tolerate(&p, &v, burst);
		CHECK_EQ(v.ramp.min_ns, burst);
		CHECK_EQ(v.ramp.max_ns, want);
		CHECK_EQ(dualpi2_native_q32(&p, &v.ramp, burst, 10), 0);
		if (want > burst + 1000ULL) {
			CHECK_NEAR(dualpi2_native_q32(&p, &v.ramp, (burst + want) / 2, 10),
				   ONE / 2, ONE / 500);
			CHECK_EQ(dualpi2_native_q32(&p, &v.ramp, want, 10), ONE);
		}
	}
}

static void tolerate_same_ramp(const struct dualpi2_ramp *got, const struct dualpi2_ramp *want)
{
	CHECK_EQ(got->min_ns, want->min_ns);
	CHECK_EQ(got->max_ns, want->max_ns);
	CHECK_EQ(got->slope, want->slope);
}

/* While Classic packets wait another ramp holds, but not for bursts; it is that of
 * the parameters again when they are over, and after a reset.
 */
UNIT_TEST(tolerate_bursts_in_shared_queues_as_well)
{
	struct dualpi2_config cfg = UNIT_CONFIG(cfg.bandwidth = 5000000);
	struct dualpi2_params p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	CHECK_EQ(p.ramp.min_ns, 800000);
	CHECK_EQ(p.ramp.max_ns, 1200000);
	CHECK_EQ(p.shared_ramp.min_ns, 480000);
	CHECK_EQ(p.shared_ramp.max_ns, 720000);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
	dualpi2_tolerate(&p, &v, 3 * MS);
	CHECK_EQ(v.ramp.min_ns, 3 * MS);
	CHECK_EQ(v.ramp.max_ns, 3 * MS + 3 * MS / 4);
	tolerate_same_ramp(&v.shared_ramp, &v.ramp);
	dualpi2_tolerate(&p, &v, MS);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
	dualpi2_tolerate(&p, &v, 3 * MS);
	dualpi2_vars_init(&p, &v, LINK_MTU, SEC);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
	/* a quarter of the burst, which is more than the ramp's 400 us */
	dualpi2_tolerate(&p, &v, 2 * MS);
	CHECK_EQ(v.ramp.max_ns, 2 * MS + MS / 2);
	/* up to the begin of the ramp, which is not the one of shared queues */
	cfg.step_thresh_us = 10000;
	p = unit_params(&cfg);
	dualpi2_tolerate(&p, &v, 8 * MS);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
}

UNIT_TEST(tolerate_no_bursts_with_a_step_in_packets)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);

	CHECK_EQ(p.burst_max_ns, 0);
	cfg.burst_max_us = 5000;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 5 * MS);
	cfg.step_thresh_pkts = 5;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 0);
	cfg.step_thresh_pkts = 0;
	cfg.burst_max_us = 0;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 0);
	cfg.burst_max_us = DUALPI2_BURST_MAX_MAX;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 100 * MS);
}
