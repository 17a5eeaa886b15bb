// SPDX-License-Identifier: GPL-2.0-only
/* Queue protection: scores, and which flows are redirected. */

#include "qprotect_test.h"

UNIT_TEST(qprotect_defaults_are_those_of_rfc_9957)
{
	struct qp_play q = qp_new(unit_config(), 0);

	CHECK_EQ(q.cfg.qprotect, DUALPI2_QPROTECT_OFF);
	/* 1 ms beyond the ramp. */
	CHECK_EQ(q.qp.delay_ns, 2200000);
	CHECK_EQ(q.qp.product, 2200000ULL * 4000000);
	CHECK_EQ(q.qp.wait_ns, QP_WAIT);
	CHECK_EQ(q.qp.ns_per_byte_q20, 2000000000);	/* 10^9 / 2^19 ns per byte */
	CHECK_EQ(q.qp.has_ramp, false);
	CHECK_EQ(DUALPI2_QPROTECT_BUCKETS, 32 + 1);
	CHECK_EQ(DUALPI2_QPROTECT_ARMED_NS, 5 * SEC);	/* as long as any score */
	CHECK_EQ(DUALPI2_QPROTECT_WORDS, 4 + 4 + 2);	/* addresses of IPv6, ports, protocol */
}

UNIT_TEST(qprotect_critical_delay_is_longer_by_1_ms_or_three_packets)
{
	static const struct { u64 rate, delay; } rows[] = {
		{ 0, 2000000 }, { 12500000, 2000000 }, { 4542000, 2000000 }, { 4000000, 2135500 },
		{ 500000, 10084000 }, { 1000, 1ULL << 31 },
	};

	for_each(row, rows) {
		struct qp_play q = qp_step(row->rate);

		CHECK_NEAR(q.qp.delay_ns, row->delay, 1);
		CHECK_EQ(q.qp.product, q.qp.delay_ns * 4000000ULL);
	}
}

UNIT_TEST(qprotect_extreme_options_do_not_overflow)
{
	struct qp_play q = qp_new(UNIT_CONFIG(cfg.qprotect_delay_us = DUALPI2_QPROTECT_DELAY_MAX,
					      cfg.qprotect_score_us = DUALPI2_QPROTECT_SCORE_MAX,
					      cfg.qprotect_rate = DUALPI2_QPROTECT_RATE_MAX), 0);

	CHECK_EQ(q.qp.delay_ns, 1ULL << 31);
	CHECK_EQ(q.qp.product, (1ULL << 31) * 5 * SEC);
	CHECK_EQ(q.qp.ns_per_byte_q20, 8389);
	/* No product is above it. */
	q.b[0].expiry_ns = QP_NOW + 5 * SEC - 1;
	CHECK_EQ(qp_packet(&q, 0, 1, ONE, UINT64_MAX), DUALPI2_QPROTECT_KEEP);
}

/* A step has a ramp from half of the critical delay on; the ramp of the AQM is used as
 * it is, and with a Classic backlog that ramp.
 */
UNIT_TEST(qprotect_native_probability_is_that_of_the_ramp)
{
	struct qp_play ramp = qp_new(UNIT_CONFIG(cfg.bandwidth = QP_LINK), QP_LINK);
	struct qp_play step = qp_new(UNIT_CONFIG(cfg.ramp_us = 0, cfg.ramp_is_set = true), 0);
	struct qp_play pkts = qp_new(UNIT_CONFIG(cfg.step_thresh_pkts = 5), 0);
	static const struct { u64 delay, step, ramp, shared; } rows[] = {
		{ 0, 0, 0, 0 }, { 480000, 0, 0, 0 }, { 500000, 0, 0, ONE / 12 }, { 800000, 0, 0, ONE },
		{ 1000000, 0, ONE / 2, ONE }, { 1200000, ONE / 5, ONE, ONE }, { 1500000, ONE / 2, ONE, ONE },
		{ 2000000, ONE, ONE, ONE }, { UINT64_MAX, ONE, ONE, ONE },
	};

	CHECK(!ramp.qp.has_ramp && step.qp.has_ramp && pkts.qp.has_ramp, "which have one");
	CHECK_EQ(ramp.qp.delay_ns, 2200000);
	for_each(row, rows) {
		CHECK_NEAR(dualpi2_qprotect_native_q32(&ramp.qp, &ramp.v, false, row->delay),
			   row->ramp, 8);
		CHECK_NEAR(dualpi2_qprotect_native_q32(&ramp.qp, &ramp.v, true, row->delay),
			   row->shared, 100);
		CHECK_NEAR(dualpi2_qprotect_native_q32(&step.qp, &step.v, false, row->delay),
			   row->step, 8);
		CHECK_NEAR(dualpi2_qprotect_native_q32(&pkts.qp, &pkts.v, true, row->delay),
			   row->step, 8);
	}
	/* A delay without marks raises no score at all. */
	CHECK_EQ(dualpi2_qprotect_native_q32(&ramp.qp, &ramp.v, false, 0), 0);
	CHECK_EQ(dualpi2_qprotect_native_q32(&ramp.qp, &ramp.v, true, 0), 0);
	CHECK_EQ(dualpi2_qprotect_native_q32(&step.qp, &step.v, false, 0), 0);
}

UNIT_TEST(qprotect_score_is_what_is_left_until_it_expires)
{
	static const struct { u64 expiry, now, score; } rows[] = {
		{ 5, 2, 3 }, { 5, 5, 0 }, { 5, 6, 0 }, { 0, 0, 0 },
	};

	for_each(row, rows) {
		struct dualpi2_qprotect_bucket b = { .expiry_ns = row->expiry };

		CHECK_EQ(dualpi2_qprotect_score_ns(&b, row->now), row->score);
	}
}

/* Bytes times probability over the rate, and less one second per second. */
UNIT_TEST(qprotect_score_is_congestion_less_ageing)
{
	struct qp_play q = qp_new(unit_config(), QP_LINK);
	u64 full = QP_BYTES * SEC / 524288;

	qp_packet(&q, 7, QP_BYTES, ONE, 0);
	CHECK_NEAR(qp_score(&q, 7), full, 1);
	qp_packet(&q, 7, QP_BYTES, ONE / 4, 0);
	CHECK_NEAR(qp_score(&q, 7), full + full / 4, 2);
	q.now += 1000000;
	CHECK_NEAR(qp_score(&q, 7), full + full / 4 - 1000000, 2);
	qp_packet(&q, 7, QP_BYTES, 0, 0);
	CHECK_NEAR(qp_score(&q, 7), full + full / 4 - 1000000, 2);
	q.now += SEC;
	CHECK_EQ(qp_score(&q, 7), 0);
	qp_packet(&q, 7, 64, ONE, 0);
	CHECK_NEAR(qp_score(&q, 7), 64 * SEC / 524288, 1);
}

UNIT_TEST(qprotect_score_is_exact_and_capped)
{
	for (int n = 0; n < 100000; n++) {
		struct qp_play q = qp_new(UNIT_CONFIG(cfg.qprotect_rate =
			unit_any(DUALPI2_QPROTECT_RATE_MIN, DUALPI2_QPROTECT_RATE_MAX)), QP_LINK);
		u64 before = unit_any(0, 5 * SEC), p = unit_any_q32();
		u32 bytes = unit_any(0, U32_MAX);
		long double more = (long double)bytes * q.qp.ns_per_byte_q20 / (1 << 20);
		long double want;

		if (more > 5e9L)
			more = 5e9L;
		want = before + more * p / ONE;
		if (want > 5e9L)
			want = 5e9L;
		q.b[0].expiry_ns = q.now + before;
		qp_packet(&q, 0, bytes, p, unit_any(0, UINT64_MAX));
		CHECK(fabsl(qp_score(&q, 0) - want) <= 4, "%u bytes, p %llu, %llu ns before: %llu ns, want %Lf",
		      bytes, (ull)p, (ull)before, (ull)qp_score(&q, 0), want);
	}
}

/* The caps are exact: of a packet, with a probability of 1 and just below it, and of the delay. */
UNIT_TEST(qprotect_caps_are_exact)
{
	struct qp_play q = qp_new(UNIT_CONFIG(cfg.qprotect_rate = DUALPI2_QPROTECT_RATE_MIN), QP_LINK);

	qp_packet(&q, 0, U32_MAX, ONE, 0);
	CHECK_EQ(qp_score(&q, 0), 5 * SEC);
	q.b[0].expiry_ns = 0;
	qp_packet(&q, 0, U32_MAX, ONE - 2, 0);
	CHECK_EQ(qp_score(&q, 0), 5 * SEC - 3);
	q = qp_step(0);
	q.qp.product = (100ULL << 31) - 1;
	q.b[0].expiry_ns = q.now + 100;
	q.b[0].hash = 32;
	CHECK_EQ(qp_packet(&q, 32, 0, 1, UINT64_MAX), DUALPI2_QPROTECT_SANCTION);
	/* A score may be longer than the machine is up. */
	q = qp_step(0);
	q.now = 1500000;
	q.b[0].expiry_ns = q.now + 2000001;
	q.b[0].hash = 32;
	CHECK_EQ(qp_packet(&q, 32, 0, 1, 4 * MS), DUALPI2_QPROTECT_SANCTION);
}

/* 2 ms and 4 ms: the product decides, but only above 2 ms; of NQB also the highest score. */
UNIT_TEST(qprotect_sanctions_by_delay_and_score)
{
	static const struct { u64 delay, score; bool sanction, nqb; } rows[] = {
		{ 2000000, 4900 * MS, false, false }, { 2000001, 3999998, false, false },
		{ 2000001, 3999999, true, false }, { 4000000, 2000000, false, false },
		{ 4000000, 2000001, true, false }, { 500000, 5000 * MS - 1, false, true },
		{ 0, 5000 * MS, false, false }, { 0, 5000 * MS, true, true },
		{ UINT64_MAX, 1, false, false }, { UINT64_MAX, 3726, true, false },
		{ 1ULL << 31, 3725, false, false },
	};

	for_each(row, rows) {
		struct qp_play q = qp_step(0);

		q.nqb = row->nqb;
		q.b[3].expiry_ns = q.now + row->score;
		q.b[3].hash = 3;
		CHECK(qp_packet(&q, 3, 0, 1, row->delay) ==
		      (row->sanction ? DUALPI2_QPROTECT_SANCTION : DUALPI2_QPROTECT_KEEP),
		      "%llu ns, score %llu ns", (ull)row->delay, (ull)row->score);
		/* A packet that is not scored does not begin a redirection. */
		q = qp_step(0);
		q.b[3].expiry_ns = q.now + row->score;
		q.b[3].hash = 3;
		CHECK_EQ(qp_packet(&q, 3, 0, 0, row->delay), DUALPI2_QPROTECT_KEEP);
	}
}

/* Until the score has expired and the last redirected packet has left. */
UNIT_TEST(qprotect_redirects_the_whole_flow)
{
	struct qp_play q = qp_step(0);

	for (int i = 0; i < 2; i++)
		CHECK_EQ(qp_packet(&q, 5, QP_BYTES, ONE, 900000), DUALPI2_QPROTECT_KEEP);
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, ONE, 2100000), DUALPI2_QPROTECT_SANCTION);
	CHECK_EQ(qp_packet(&q, 6, QP_BYTES, 0, 0), DUALPI2_QPROTECT_KEEP);
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_REDIRECT);
	/* The queue is empty before the score has expired. */
	q.c_out = q.c_in;
	q.now = q.b[5].expiry_ns - 1;
	CHECK_EQ(qp_packet(&q, 5, 100, 0, 0), DUALPI2_QPROTECT_REDIRECT);
	/* And the score before the queue is. */
	q.now = q.b[5].expiry_ns;
	q.c_out = q.c_in - 1;
	CHECK_EQ(qp_packet(&q, 5, 100, 0, 0), DUALPI2_QPROTECT_REDIRECT);
	q.c_out = q.c_in;
	CHECK_EQ(qp_packet(&q, 5, 100, 0, 0), DUALPI2_QPROTECT_KEEP);
	CHECK_EQ(q.b[5].c_end, 0);
}

/* Flow 5 is redirected at the present time, and always has a packet in the Classic queue. */
static struct qp_play qp_redirected(void)
{
	struct qp_play q = qp_step(0);

	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, ONE, 3 * MS), DUALPI2_QPROTECT_SANCTION);
	return q;
}

/* A flow that always has a packet in the Classic queue returns one target after its score
 * has expired.
 */
UNIT_TEST(qprotect_steady_flow_returns_after_the_wait)
{
	struct qp_play q = qp_redirected();
	u64 end = q.b[5].expiry_ns + QP_WAIT;

	CHECK_NEAR(end, q.now + QP_BYTES * SEC / 524288 + QP_WAIT, 1);
	for (; q.now < end; q.now += MS) {
		CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_REDIRECT);
		CHECK_EQ(dualpi2_qprotect_use(&q.qp, q.b, 0, q.now).redirected, 1);
	}
	q.now = end - 1;
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_REDIRECT);
	q.now = end;
	CHECK_EQ(dualpi2_qprotect_use(&q.qp, q.b, 0, q.now).used, 0);
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_KEEP);
	CHECK_EQ(q.b[5].c_end, 0);
}

/* The shared bucket has a score, but each packet is judged alone, and nothing is remembered. */
UNIT_TEST(qprotect_redirects_single_packets_of_the_shared_bucket)
{
	struct qp_play q = qp_step(0);
	struct dualpi2_qprotect_bucket *b = &q.b[DUALPI2_QPROTECT_FLOWS];

#define SHARED(p, delay)	dualpi2_qprotect_verdict(&q.qp, b, QP_BYTES, p, false, delay, 0, q.now)
	CHECK_EQ(SHARED(ONE, 3 * MS), DUALPI2_QPROTECT_REDIRECT);
	CHECK_EQ(SHARED(ONE, MS), DUALPI2_QPROTECT_KEEP);
	CHECK_EQ(SHARED(0, 0), DUALPI2_QPROTECT_KEEP);
	CHECK_EQ(SHARED(ONE, 3 * MS), DUALPI2_QPROTECT_REDIRECT);
	CHECK_EQ(b->c_end, 0);
	CHECK_EQ(b->last_ns, 0);
#undef SHARED
}

/* In overload only a flow without a packet in the Classic queue returns. */
UNIT_TEST(qprotect_flow_does_not_return_to_cause_overload)
{
	struct qp_play q = qp_redirected();

	q.cfg.p_cmax_pct = 49;
	q.p = unit_params(&q.cfg);
	q.v.base_q32 = q.p.enter_q32 - 1;
	dualpi2_qprotect_init(&q.qp, &q.cfg, &q.p, &q.v, 0);
	CHECK(!q.qp.overload, "below");
	q.v.base_q32 += 2;
	dualpi2_qprotect_init(&q.qp, &q.cfg, &q.p, &q.v, 0);
	CHECK(q.qp.overload, "above");
	q.v.base_q32 = q.p.enter_q32;
	dualpi2_qprotect_init(&q.qp, &q.cfg, &q.p, &q.v, 0);
	q.now = q.b[5].expiry_ns + 10 * SEC;
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_REDIRECT);
	CHECK_EQ(dualpi2_qprotect_use(&q.qp, q.b, 0, q.now).redirected, 1);
	q.c_out = q.c_in;
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_KEEP);
	q = qp_redirected();
	q.v.base_q32 = q.p.enter_q32 - 1;
	dualpi2_qprotect_init(&q.qp, &q.cfg, &q.p, &q.v, 0);
	q.now = q.b[5].expiry_ns + QP_WAIT;
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_KEEP);
}

/* 12 Mbit/s in the Classic queue, while others congest the L4S queue: below the constant
 * rate of congestion the flow returns, above it stays.
 */
UNIT_TEST(qprotect_redirected_flow_returns_if_it_would_congest_little)
{
	static const struct { u64 p; bool returns; } rows[] = {
		{ ONE / 100, true }, { ONE / 4, true }, { ONE / 2, false }, { ONE, false },
	};

	for_each(row, rows) {
		struct qp_play q = qp_redirected();
		bool returned = false;

		for (int n = 0; n < 10000 && !returned; n++) {
			q.now += MS;
			returned = qp_packet(&q, 5, 1500, row->p, MS / 2) == DUALPI2_QPROTECT_KEEP;
		}
		CHECK_EQ(returned, row->returns);
		CHECK(qp_score(&q, 5) <= DUALPI2_QPROTECT_SCORE_MAX_NS, "score %llu", (ull)qp_score(&q, 5));
	}
}

/* A sanction within 100 ms of the return lasts twice as long, with a score of up to 5 s; later not. */
UNIT_TEST(qprotect_repeated_sanctions_last_twice_as_long)
{
	struct qp_play q = qp_redirected();
	u64 first = qp_score(&q, 5), last = first;

	for (int n = 0; n < 12; n++) {
		q.now = q.b[5].expiry_ns + QP_WAIT;
		CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_KEEP);
		q.now += 100 * MS - 1;
		CHECK_EQ(qp_packet(&q, 5, QP_BYTES, ONE, 3 * MS), DUALPI2_QPROTECT_SANCTION);
		last = min_t(u64, 2 * (last + QP_WAIT), DUALPI2_QPROTECT_SCORE_MAX_NS);
		CHECK_EQ(qp_score(&q, 5), last);
	}
	CHECK_EQ(last, DUALPI2_QPROTECT_SCORE_MAX_NS);
	q.now = q.b[5].expiry_ns + QP_WAIT;
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, 0, 0), DUALPI2_QPROTECT_KEEP);
	q.now += 100 * MS;
	CHECK_EQ(qp_packet(&q, 5, QP_BYTES, ONE, 3 * MS), DUALPI2_QPROTECT_SANCTION);
	CHECK_EQ(qp_score(&q, 5), first);
}

/* The score, if it is more than twice the last time or there was none within 100 ms. */
UNIT_TEST(qprotect_sanction_lasts_as_long_as_the_score_if_that_is_longer)
{
	static const struct { u64 score, last, probation, want; } rows[] = {
		{ 3 * MS, 1 * MS, 7 * MS + 1, 3 * MS }, { 3 * MS, 2 * MS, 7 * MS + 1, 4 * MS },
		{ 3 * MS, 2 * MS, 7 * MS, 3 * MS }, { 3 * MS, 2 * MS, 0, 3 * MS },
		{ 9 * MS, 2 * MS, 0, 9 * MS },
	};

	for_each(row, rows) {
		struct qp_play q = qp_step(0);
		u64 now = 7 * MS;

		q.b[0].expiry_ns = now + row->score;
		q.b[0].last_ns = row->last;
		q.b[0].probation_ns = row->probation;
		dualpi2_qprotect_sanction(&q.qp, &q.b[0], now);
		CHECK_EQ(q.b[0].expiry_ns, now + row->want);
		CHECK_EQ(q.b[0].last_ns, row->want + QP_WAIT);
	}
}

/* 1.5 times the link, for a minute: how long the flow is in the L4S queue, and the delay there.
 * L4S packets are served first.
 */
UNIT_TEST(qprotect_unresponsive_flow_is_seldom_in_the_l4s_queue)
{
	struct qp_play q = qp_step(QP_LINK);
	u64 step = QP_BYTES * SEC / QP_LINK * 2 / 3, end = QP_NOW + 60 * SEC;
	u64 sent = 0, kept = 0, sanctions = 0, worst = 0, beyond = 0;
	s64 left = 0;

	for (; q.now < end; q.now += step, sent++) {
		u64 delay = left > 0 ? left * SEC / QP_LINK : 0;
		u64 p = dualpi2_qprotect_native_q32(&q.qp, &q.v, false, delay);
		enum dualpi2_qprotect_verdict verdict = qp_packet(&q, 1, QP_BYTES, p, delay);

		left += verdict == DUALPI2_QPROTECT_KEEP ? QP_BYTES : 0;
		left -= (s64)(step * QP_LINK / SEC);
		if (left < 0)
			left = 0;
		kept += verdict == DUALPI2_QPROTECT_KEEP;
		sanctions += verdict == DUALPI2_QPROTECT_SANCTION;
		beyond += delay > q.qp.delay_ns;
		worst = delay > worst ? delay : worst;
	}
	/* 8 until the time doubled from 18 ms is 5 s, then one each 5 s. */
	CHECK(sanctions <= 8 + 60 / 5, "%llu sanctions", (ull)sanctions);
	CHECK(beyond <= 2 * sanctions, "%llu packets beyond the critical delay", (ull)beyond);
	/* Each lengthens the queue by a third of its 0.3 ms: 20 until 2 ms, and those for the score. */
	CHECK(kept <= 21 * sanctions, "%llu of %llu kept", (ull)kept, (ull)sent);
	CHECK(worst < q.qp.delay_ns + MS / 2, "%llu ns", (ull)worst);
}

/* A flow at twice the rate of the link, and the packets of another in between. */
UNIT_TEST(qprotect_finds_the_flow_that_builds_the_queue)
{
	struct qp_play q = qp_step(QP_LINK);
	u64 queued = 0, worst = 0;
	bool found = false;

	for (int n = 0; n < 1000 && !found; n++) {
		u32 hash = n % 10 ? 1 : 2;
		u64 delay = queued * SEC / QP_LINK;
		u64 p = dualpi2_qprotect_native_q32(&q.qp, &q.v, false, delay);

		if (qp_packet(&q, hash, QP_BYTES, p, delay) == DUALPI2_QPROTECT_SANCTION) {
			CHECK_EQ(hash, 1);
			found = true;
		}
		worst = delay;
		queued += QP_BYTES / 2;
		q.now += QP_BYTES * SEC / QP_LINK / 2;
	}
	CHECK(found && worst < 3 * MS, "at %llu ns", (ull)worst);
}

/* While flows are redirected, the L4S queue is not the cause of an overload. */
UNIT_TEST(qprotect_spares_the_l4s_queue_in_overload)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	struct dualpi2_packet pkt = {
		.profile = DUALPI2_L_SCALABLE, .may_drop = true, .l_pkts = 3, .shared = true,
	};
	u64 marks = 0;

	overload_at(&p, &v, ONE, SEC);
	CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_DROP_OVERLOAD);
	pkt.spared = true;
	for (int n = 0; n < 10; n++)
		CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_MARK_COUPLED);
	/* Classic is not spared. */
	pkt.profile = DUALPI2_C_MARK;
	CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_DROP_OVERLOAD);
	/* Nor are Not-ECT packets of the L4S queue dropped by the coupled probability. */
	pkt.profile = DUALPI2_L_DROP;
	for (int n = 0; n < 20; n++) {
		pkt.shared = n < 10;
		CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
	}
	/* ECT(0) is marked by it, as without overload. */
	pkt.profile = DUALPI2_L_MARK;
	for (int n = 0; n < 20; n++)
		marks += dualpi2_verdict(&p, &v, &pkt) == DUALPI2_MARK_CLASSIC;
	CHECK_NEAR(marks, 5, 1);
}
