// SPDX-License-Identifier: GPL-2.0-only
/* dualpi2_no_signal(): packets that pass for any random number, which the fast path relies on. */

/* A packet that dualpi2_no_signal() lets through on the fast path gets no signal, whatever its other
 * properties; and the fast path is open as soon as the AQM is idle.
 */
UNIT_TEST(verdict_passes_what_is_quiet)
{
	u32 quiet[DUALPI2_QUEUES] = {}, loud[DUALPI2_QUEUES] = {};

	for (int n = 0; n < 200000; n++) {
		enum dualpi2_queue queue = unit_rnd() & 1;
		struct dualpi2_packet pkt = {
			.profile = queue == DUALPI2_QUEUE_L ? unit_between(DUALPI2_L_SCALABLE,
									   DUALPI2_L_UNMARKED) :
				   unit_between(DUALPI2_C_DROP, DUALPI2_C_SCALABLE),
			.native_ok = unit_rnd() & 1,
			.low = unit_rnd() & 1,
			.shared = unit_rnd() & 1,
			.may_drop = unit_rnd() & 1,
			.l_pkts = unit_any(1, 100000),
			.rnd = unit_rnd(),
		};
		u64 sojourn_ns, left_bytes;
		struct dualpi2_config cfg =
			UNIT_CONFIG(cfg.step_thresh_us = unit_any(0, 5000),
				    cfg.step_thresh_pkts = unit_rnd() % 4 ? 0 : unit_any(1, 1000),
				    cfg.bandwidth = unit_rnd() % 4 ? 0 : unit_any(1000, 1ULL << 36),
				    cfg.signal = unit_rnd() & 1);
		struct dualpi2_params p = unit_params(&cfg);
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = unit_rnd() % 4 ? 0 : unit_any_q32();
		v.l_mark.credit_q32 = unit_any_q32();
		v.c_signal.credit_q32 = unit_any_q32();
		dualpi2_vars_derive(&p, &v, 0);
		dualpi2_tolerate(&p, &v, unit_rnd() & 1 ? unit_any(0, 100 * MS) : 0);
		sojourn_ns = unit_any(0, 10 * MS);
		left_bytes = unit_any(0, 1ULL << 40);
		/* The shaper's marker goes by what is behind, or not. */
		pkt.delay_ns = cfg.bandwidth && (unit_rnd() & 1) ?
			       dualpi2_bytes_ns(p.link.ns_per_byte_q20, left_bytes) : sojourn_ns;
		if (!dualpi2_no_signal(&p, &v, queue, sojourn_ns, left_bytes)) {
			loud[queue]++;
			continue;
		}
		quiet[queue]++;
		CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
	}
	for (int n = 0; n < DUALPI2_QUEUES; n++)
		CHECK(quiet[n] > 10000 && loud[n] > 10000, "%u, %u", quiet[n], loud[n]);
}

/* It is no more often asked than need be: up to the begin of the ramp nothing is
 * due, and for the Classic queue nothing at all where signals are given on arrival.
 */
UNIT_TEST(verdict_is_quiet_to_the_begin_of_the_ramp)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_C, 1000 * SEC, 0), "C");
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, p.ramp.min_ns, 0), "L");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, p.ramp.min_ns + 1, 0), "L");
	dualpi2_tolerate(&p, &v, 3 * MS);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 3 * MS, 0), "L, bursts");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 3 * MS + 1, 0), "L, bursts");
	v.base_q32 = 1;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_C, 0, 0), "C, p'");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 0), "L, p'");
	cfg.bandwidth = 1000000;	/* 1 us a byte */
	p = unit_params(&cfg);
	v = unit_vars(&p);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, p.shared_ramp.min_ns / 1000), "behind");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0,
				 p.shared_ramp.min_ns / 1000 + 1), "behind");
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_C, 0, 1ULL << 40), "C");
	cfg.drop_early = true;
	p = unit_params(&cfg);
	v.base_q32 = 1;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_C, 1000 * SEC, 0), "C, early");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 0), "L, early");
}

/* Without an end, for any time that a packet may wait; and where the ramp begins as late as it can.
 */
UNIT_TEST(verdict_is_quiet_for_any_time)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);
	u64 years = 146 * 31557600ULL * SEC;

	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_C, years, 0), "C");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, years, 0), "L");
	dualpi2_tolerate(&p, &v, U32_MAX);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, U32_MAX, 0), "to it");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 1ULL << 32, 0), "beyond");
}

/* With a shaper the time of what is behind counts, to the nanosecond, up to the
 * length that may be multiplied; without one it does not.
 */
UNIT_TEST(verdict_is_quiet_with_so_much_behind)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&p);

	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 1ULL << 40), "no shaper");
	cfg.bandwidth = 1000000000;	/* 1 ns a byte */
	p = unit_params(&cfg);
	v = unit_vars(&p);
	CHECK_EQ(p.shared_ramp.min_ns, 480000);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 480000), "480 us");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 480001), "and 1 ns");
	cfg.bandwidth = DUALPI2_BANDWIDTH_MAX;
	p = unit_params(&cfg);
	v = unit_vars(&p);
	CHECK(dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 1 << 22), "4 MiB");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, (1 << 22) + 1), "more");
	CHECK(!dualpi2_no_signal(&p, &v, DUALPI2_QUEUE_L, 0, 1ULL << 63), "2^63");
}
