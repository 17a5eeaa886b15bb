// SPDX-License-Identifier: GPL-2.0-only
/* The clock that several queues share: the steps of one queue.  Other queues between its atomic operations: mq.pml, and
 * selftests/unit/test_mq_steps.c.
 */
#include "proof.h"

/* Hands and sums of the clock while times are at most 2^61. */
#define TIME_MAX	(1LL << 61)

static bool mq_params_hold(const struct dualpi2_mq_params *p)
{
	return IN_RANGE(p->ns_per_byte_q20, 8389, 1000000LL << 20) &&
	       IN_RANGE(p->horizon_ns, DUALPI2_MQ_HORIZON_NS, (1LL << 45) - 1) &&
	       p->mtu_ns <= p->l_ticket_ns && p->l_ticket_ns <= p->horizon_ns &&
	       p->debt_max_ns <= p->horizon_ns / 2 &&
	       p->late_max_ns <= DUALPI2_LATE_MAX_NS &&
	       IN_RANGE(p->l_stretch_q24, 1 << 24, 100 << 24);
}

static struct dualpi2_mq_params any_mq_params(void)
{
	struct dualpi2_mq_params p;

	assume(p.ingress == 0 || p.ingress == 1);
	assume(mq_params_hold(&p));
	return p;
}

static bool clock_holds(const struct dualpi2_mq_clock *clock)
{
	return IN_RANGE(clock->l_used_ns.counter, 0, TIME_MAX) &&
	       IN_RANGE(clock->l_next_ns.counter, 0, TIME_MAX) &&
	       IN_RANGE(clock->c_next_ns.counter, -TIME_MAX, TIME_MAX) &&
	       IN_RANGE(clock->skipped_ns.counter, 0, TIME_MAX) &&
	       IN_RANGE(clock->c_waiting.counter, 0, 1 << 20);
}

/* A ticket is at most the horizon or a packet, and packets are charged with at most 1.5 * 2^42 + 2. */
#define CREDIT_MAX	(1ULL << 46)

static bool queue_holds(const struct dualpi2_mq_params *p, const struct dualpi2_mq_queue *q)
{
	return q->c_credit_ns <= CREDIT_MAX && q->l_credit_ns <= CREDIT_MAX &&
	       q->l_owed_ns <= p->debt_max_ns && q->l_unsummed_ns <= p->debt_max_ns &&
	       q->drop_ns <= DUALPI2_DEBT_MAX_NS && q->frac_q20 < 1U << 20;
}

static struct dualpi2_mq_queue any_queue(const struct dualpi2_mq_params *p)
{
	struct dualpi2_mq_queue q;

	assume(q.c_open == 0 || q.c_open == 1);
	assume(q.l_open == 0 || q.l_open == 1);
	assume(q.c_busy == 0 || q.c_busy == 1);
	assume(q.c_waits == 0 || q.c_waits == 1);
	assume(queue_holds(p, &q));
	assume(IN_RANGE(q.c_start_ns, -TIME_MAX * 2, TIME_MAX * 2));
	assume(IN_RANGE(q.l_start_ns, 0, TIME_MAX * 2) && IN_RANGE(q.l_owed_since_ns, 0, TIME_MAX * 2));
	return q;
}

static struct dualpi2_mq_clock any_clock(void)
{
	struct dualpi2_mq_clock clock;

	assume(clock_holds(&clock));
	return clock;
}

void prove_mq_params_hold_for_all_options(void)
{
	struct dualpi2_mq_params p;
	struct dualpi2_link link;
	u32 l_weight, mtu_bytes, queues;

	assume(link_holds(&link) && link.ns_per_byte_q20);
	assume(link.ingress == 0 || link.ingress == 1);
	assume(IN_RANGE(l_weight, 1, 99));
	dualpi2_mq_init(&p, &link, l_weight, mtu_bytes, queues);
	prove(mq_params_hold(&p));
}

/* What is reserved is nobody else's: it begins where the hand was, or later, and the hand is moved beyond it. */
/* proof: once */
void prove_mq_reservation_is_exclusive(void)
{
	atomic64_t hand;
	s64 floor_ns, before_ns, begin_ns;
	u64 time_ns, idle_ns = 0;

	assume(IN_RANGE(hand.counter, -TIME_MAX, TIME_MAX) && IN_RANGE(floor_ns, -TIME_MAX, TIME_MAX));
	assume(time_ns <= CREDIT_MAX);
	before_ns = hand.counter;
	begin_ns = dualpi2_mq_reserve(&hand, floor_ns, time_ns, &idle_ns);
	prove(begin_ns >= before_ns && begin_ns >= floor_ns);
	prove(begin_ns == before_ns || begin_ns == floor_ns);
	prove(hand.counter == begin_ns + (s64)time_ns);
	prove((s64)idle_ns == begin_ns - before_ns);
}

/* A queue that is emptied waits no more, and keeps nothing that is not charged. */
/* proof: long once */
void prove_mq_reset_settles(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_clock clock = any_clock(), before;
	struct dualpi2_mq_queue q = any_queue(&p), was = q;

	assume(!q.c_waits || clock.c_waiting.counter);
	before = clock;
	dualpi2_mq_queue_reset(&p, &clock, &q);
	prove(clock.c_waiting.counter == before.c_waiting.counter - was.c_waits);
	prove(clock.l_used_ns.counter == before.l_used_ns.counter + (s64)was.l_unsummed_ns);
	prove(clock.l_next_ns.counter >= before.l_next_ns.counter + (s64)was.l_owed_ns);
	prove(clock.c_next_ns.counter == before.c_next_ns.counter);
	prove(!q.c_waits && !q.c_credit_ns && !q.l_credit_ns && !q.l_owed_ns && !q.l_unsummed_ns);
}
