/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues that share a clock, for the tests of dualpi2_mq.h. */
#ifndef DUALPI2_UNIT_MQ_H
#define DUALPI2_UNIT_MQ_H

#include "link_test.h"

#define MQ_QUEUES	4

struct mq_world {
	struct dualpi2_link link;
	struct dualpi2_mq_params p;
	struct dualpi2_mq_clock clock;
	struct dualpi2_mq_sum sum;
	struct dualpi2_mq_queue q[MQ_QUEUES];
};

static inline struct mq_world mq_world(u64 rate, u32 queues, bool ingress)
{
	struct mq_world w;

	memset(&w, 0, sizeof(w));
	w.link = link_of(rate, ingress);
	dualpi2_mq_init(&w.p, &w.link, 90, 1500, queues);
	return w;
}

/* Send a packet if it may leave. */
static inline bool mq_l(struct mq_world *w, struct dualpi2_mq_queue *q, u32 bytes, u32 backlog, u64 now, u64 *wake)
{
	if (!dualpi2_mq_l_ready(&w->p, &w->clock, q, bytes, backlog, now, wake))
		return false;
	dualpi2_mq_l_sent(&w->p, &w->clock, q, bytes);
	return true;
}

static inline bool mq_c(struct mq_world *w, struct dualpi2_mq_queue *q, u32 bytes, u32 backlog, u64 now, u64 *wake)
{
	if (!dualpi2_mq_c_ready(&w->p, &w->clock, &w->sum, q, bytes, backlog, now, wake))
		return false;
	dualpi2_mq_c_sent(&w->p, q, bytes);
	return true;
}

#endif /* DUALPI2_UNIT_MQ_H */
