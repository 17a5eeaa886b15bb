/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the scheduler: weighted round robin of both queues by bytes (RFC 9332 2.5.1).
 */
#ifndef _NET_DUALPI2_SCHED_H
#define _NET_DUALPI2_SCHED_H

#include <net/dualpi2_state.h>

/**
 * dualpi2_sched_pick() - the queue that sends next
 * @v: state
 * @c_waits: the Classic queue has a backlog
 * @l_waits: the L4S queue has a backlog; at least one of both is true
 *
 * Weighted round robin by bytes (RFC 9332 2.5.1 and A.1, "scheduler").
 */
static inline enum dualpi2_queue
dualpi2_sched_pick(const struct dualpi2_vars *v, bool c_waits, bool l_waits)
{
	if (!l_waits)
		return DUALPI2_QUEUE_C;
	return c_waits && v->credit > 0 ? DUALPI2_QUEUE_C : DUALPI2_QUEUE_L;
}

/**
 * dualpi2_sched_charge() - account for a packet that is sent
 * @p: parameters
 * @v: state
 * @queue: the queue that sends
 * @c_left: the Classic queue still has a backlog
 * @l_left: the L4S queue still has a backlog
 * @bytes: length of the packet on the link; used if there is a backlog
 *
 * While both queues have a backlog, each packet changes the credit by its length
 * times the weight of the other queue.  While the L4S queue is empty, Classic packets
 * also reduce the credit, down to the start value.  So Classic gains no credit while it
 * sends alone, and keeps the credit that it has if an L4S sender pauses briefly.  When
 * both queues are empty, the credit returns to the start.
 *
 * The credit is at most 0 before L4S adds to it, and above 0 before Classic takes
 * from it or not below the start, so that it stays within 99 * 2^24 either way.
 */
static inline void dualpi2_sched_charge(const struct dualpi2_params *p,
					struct dualpi2_vars *v,
					enum dualpi2_queue queue, bool c_left,
					bool l_left, u32 bytes)
{
	s32 len = min_t(u32, bytes, DUALPI2_SCHED_BYTES_MAX);

	if (!c_left && !l_left)
		v->credit = v->credit_start;
	else if (queue == DUALPI2_QUEUE_L && c_left)
		v->credit += len * p->c_weight;
	else if (queue == DUALPI2_QUEUE_C && l_left)
		v->credit -= len * p->l_weight;
	else if (queue == DUALPI2_QUEUE_C && v->credit != v->credit_start)
		v->credit = max_t(s64, (s64)v->credit - (s32)(len * p->l_weight),
				  v->credit_start);
}

#endif /* _NET_DUALPI2_SCHED_H */
