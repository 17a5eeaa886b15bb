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

/* proof: slow */
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

/* What the proofs of these functions allow; the same result for the same packet. */
u64 __CPROVER_uninterpreted_own_ns(u64 bytes, u32 frac_q20);

#define OWN_MAX_NS	((1ULL << 42) + 1)

u64 any_cost(const struct dualpi2_mq_params *p, const struct dualpi2_mq_queue *q, u64 bytes, u64 *repaid_ns, u32 *frac_q20)
{
	u64 own_ns = __CPROVER_uninterpreted_own_ns(bytes, q->frac_q20);
	u32 frac;

	prove(q->frac_q20 < 1U << 20);
	assume(own_ns <= OWN_MAX_NS && frac < 1U << 20);
	*frac_q20 = frac;
	*repaid_ns = q->drop_ns < own_ns / 2 ? q->drop_ns : own_ns / 2;
	return own_ns + *repaid_ns;
}

/* a * b / 2^shift with b >= 2^shift, at most 100 times that. */
u64 any_stretch(u64 a, u32 b, unsigned int shift)
{
	u64 result;

	prove(shift == 24 && IN_RANGE(b, 1 << 24, 100 << 24));
	assume(result >= a && (u128)result <= (u128)a * 100);
	return result;
}

u64 any_part(u64 a, u32 b, u32 c)
{
	u64 result;

	prove(c && b <= c);
	assume(result <= a);
	return result;
}

u64 any_ticket(const struct dualpi2_mq_params *p, u32 backlog_bytes, u32 all_bytes)
{
	u64 ticket_ns;

	assume(ticket_ns <= p->horizon_ns);
	return ticket_ns;
}

void prove_mq_cost_is_bounded(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_queue q = any_queue(&p);
	u64 bytes, repaid_ns, cost_ns;
	u32 frac_q20;

	cost_ns = dualpi2_mq_cost(&p, &q, bytes, &repaid_ns, &frac_q20);
	prove(frac_q20 < 1U << 20 && repaid_ns <= q.drop_ns);
	prove(cost_ns - repaid_ns <= OWN_MAX_NS && repaid_ns <= (cost_ns - repaid_ns) / 2);
}

/* proof: mul_u64_u32_div:any_part dualpi2_bytes_ns:any_bytes_ns */
void prove_mq_ticket_is_bounded(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	u32 backlog_bytes, all_bytes;

	prove(dualpi2_mq_c_ticket_ns(&p, backlog_bytes, all_bytes) <= p.horizon_ns);
}

/* An L4S packet leaves within a ticket that has begun, or as a debt within its limit. */
/* proof: slow once dualpi2_mq_cost:any_cost dualpi2_bytes_ns:any_bytes_ns mul_u64_u32_shr:any_stretch */
void prove_mq_l4s_packet_is_paid(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_clock clock = any_clock(), before = clock;
	struct dualpi2_mq_queue q = any_queue(&p);
	u64 now_ns, wake_ns = 0, used_ns = q.l_unsummed_ns;
	u32 bytes, backlog_bytes;

	assume(now_ns <= NOW_MAX / 4);
	if (dualpi2_mq_l_ready(&p, &clock, &q, bytes, backlog_bytes, now_ns, &wake_ns)) {
		prove(!wake_ns);
		prove(q.l_open || q.l_owed_ns < p.debt_max_ns || !q.l_credit_ns);
		dualpi2_mq_l_sent(&p, &clock, &q, bytes);
	} else {
		prove(wake_ns > now_ns && !q.l_open);
		prove(clock.l_next_ns.counter > before.l_next_ns.counter || q.l_start_ns > (s64)now_ns);
	}
	prove(queue_holds(&p, &q));
	prove(clock.l_next_ns.counter >= before.l_next_ns.counter);
	prove(clock.l_used_ns.counter >= before.l_used_ns.counter);
	prove(clock.c_next_ns.counter == before.c_next_ns.counter);
}

/* A Classic packet leaves within a ticket that has begun, never as a debt. */
/* proof: slow once dualpi2_mq_cost:any_cost dualpi2_mq_c_ticket_ns:any_ticket */
void prove_mq_classic_packet_is_paid(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_clock clock = any_clock(), before = clock;
	struct dualpi2_mq_queue q = any_queue(&p), was = q;
	struct dualpi2_mq_sum sum;
	u64 now_ns, wake_ns = 0, credit_ns;
	u32 bytes, backlog_bytes;

	assume(now_ns <= NOW_MAX / 4);
	if (dualpi2_mq_c_ready(&p, &clock, &sum, &q, bytes, backlog_bytes, now_ns, &wake_ns)) {
		prove(!wake_ns && q.c_open);
		credit_ns = q.c_credit_ns;
		dualpi2_mq_c_sent(&p, &q, bytes);
		prove(q.c_credit_ns <= credit_ns);
	} else {
		prove(wake_ns > now_ns && !q.c_open);
	}
	prove(queue_holds(&p, &q));
	/* What it may send grew by what the hand moved over. */
	prove(clock.c_next_ns.counter >= before.c_next_ns.counter);
	prove(clock.l_next_ns.counter == before.l_next_ns.counter);
	prove(clock.l_used_ns.counter == before.l_used_ns.counter);
}

/* Each queue with a Classic backlog counts once. */
void prove_mq_waiting_queues_are_counted(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_clock clock = any_clock(), before = clock;
	struct dualpi2_mq_queue q = any_queue(&p), was = q;

	assume(!q.c_waits || clock.c_waiting.counter);
	dualpi2_mq_c_begin(&clock, &q);
	prove(q.c_waits && clock.c_waiting.counter == before.c_waiting.counter + !was.c_waits);
	dualpi2_mq_c_empty(&clock, &q);
	prove(!q.c_waits && clock.c_waiting.counter == before.c_waiting.counter - was.c_waits);
	prove(!q.c_credit_ns && !q.c_open && !q.c_busy);
	dualpi2_mq_l_empty(&q);
	prove(!q.l_credit_ns && !q.l_open && queue_holds(&p, &q));
}

void prove_mq_drops_are_charged_up_to_a_limit(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_queue q = any_queue(&p), was = q;
	u64 bytes;

	dualpi2_mq_drop(&p, &q, bytes);
	prove(queue_holds(&p, &q));
	prove(p.ingress ? q.drop_ns >= was.drop_ns : q.drop_ns == was.drop_ns);
}

/* One caller in each ms looks. */
void prove_mq_looks_are_apart(void)
{
	struct dualpi2_mq_sum sum;
	u64 now_ns, c_bytes;
	s64 due_ns = sum.due_ns.counter;

	assume(now_ns <= NOW_MAX);
	if (dualpi2_mq_scan_due(&sum, now_ns)) {
		prove(due_ns <= (s64)now_ns && sum.due_ns.counter == (s64)now_ns + DUALPI2_MQ_SCAN_NS);
		prove(!dualpi2_mq_scan_due(&sum, now_ns));
		dualpi2_mq_scanned(&sum, c_bytes);
		prove(sum.c_bytes == (c_bytes < U32_MAX ? c_bytes : U32_MAX));
	} else {
		prove(sum.due_ns.counter == due_ns && due_ns > (s64)now_ns);
	}
}

/* After a change of the rate time has skipped so far that either hand is at most one packet ahead of it, and no further. */
/* proof: long */
void prove_mq_change_of_rate_waits_for_one_packet(void)
{
	struct dualpi2_mq_params p = any_mq_params();
	struct dualpi2_mq_clock clock = any_clock();
	s64 l_ahead_ns, c_ahead_ns, before_ns = clock.skipped_ns.counter, skip_ns, mtu_ns = p.mtu_ns;
	u64 now_ns;

	assume(now_ns <= NOW_MAX / 4);
	l_ahead_ns = clock.l_next_ns.counter - dualpi2_mq_time(&clock, now_ns);
	c_ahead_ns = clock.c_next_ns.counter - dualpi2_mq_c_time(&clock, now_ns);
	assume(skip_ns >= 0 && skip_ns >= l_ahead_ns - mtu_ns && skip_ns >= c_ahead_ns - mtu_ns);
	assume(!skip_ns || skip_ns == l_ahead_ns - mtu_ns || skip_ns == c_ahead_ns - mtu_ns);
	dualpi2_mq_clock_change(&p, &clock, now_ns);
	prove(clock.skipped_ns.counter == before_ns + skip_ns);
}
