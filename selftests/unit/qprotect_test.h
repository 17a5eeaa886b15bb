/* SPDX-License-Identifier: GPL-2.0-only */
/* For the tests of queue protection: one instance of it. */
#ifndef DUALPI2_UNIT_QPROTECT_H
#define DUALPI2_UNIT_QPROTECT_H

#include "unit.h"

#define QP_LINK		5000000U		/* bytes per second: 40 Mbit/s */
#define QP_NOW		(100 * SEC)
#define QP_BYTES	1514U
#define QP_WAIT		(15 * MS)		/* the Classic target */

struct qp_play {
	struct dualpi2_config cfg;
	struct dualpi2_params p;
	struct dualpi2_vars v;
	struct dualpi2_qprotect_params qp;
	struct dualpi2_qprotect_bucket b[DUALPI2_QPROTECT_BUCKETS];
	u64 c_in;
	u64 c_out;
	u64 now;
	bool nqb;		/* the packets are */
};

static inline struct qp_play qp_new(struct dualpi2_config cfg, u64 rate)
{
	struct qp_play q = { .cfg = cfg, .p = unit_params(&cfg), .now = QP_NOW };

	q.v = unit_vars(&q.p);
	q.v.target_ns = QP_WAIT;
	memset(&q.qp, 0xa5, sizeof(q.qp));
	dualpi2_qprotect_init(&q.qp, &q.cfg, &q.p, &q.v, dualpi2_ns_per_byte_q20(rate));
	return q;
}

/* With a step of 1 ms, so that the critical delay is that of RFC 9957. */
static inline struct qp_play qp_step(u64 rate)
{
	return qp_new(UNIT_CONFIG(cfg.ramp_us = 0, cfg.ramp_is_set = true), rate);
}

static inline enum dualpi2_qprotect_verdict qp_packet(struct qp_play *q, u32 hash, u32 bytes,
						      u64 p_q32, u64 delay_ns)
{
	u32 i = dualpi2_qprotect_pick(&q->qp, q->b, hash, p_q32, q->c_out, q->now);
	enum dualpi2_qprotect_verdict verdict =
		dualpi2_qprotect_verdict(&q->qp, &q->b[i], bytes, p_q32, q->nqb, delay_ns, q->c_out, q->now);

	if (verdict != DUALPI2_QPROTECT_KEEP) {
		q->c_in += bytes;
		q->b[i].c_end = q->b[i].hash ? q->c_in : 0;
	}
	return verdict;
}

static inline u64 qp_score(const struct qp_play *q, u32 i)
{
	return dualpi2_qprotect_score_ns(&q->b[i], q->now);
}

#endif /* DUALPI2_UNIT_QPROTECT_H */
