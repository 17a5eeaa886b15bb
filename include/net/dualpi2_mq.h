/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: one rate for several transmit queues: a clock that they share.
 *
 * A queue reserves link time before it sends, by an atomic addition to one of two hands.
 * What the addition returns is the begin of an interval that no other queue has.  The
 * L4S hand runs in time T, which is the time of day plus what changes of the rate have
 * skipped.  The Classic hand runs in the time V that L4S leaves: V = T minus the link
 * time that L4S packets used.  So L4S packets leave first, and Classic packets use all
 * time that is left.
 *
 * Each queue has a lock of its own (that of its qdisc), under which all functions with a
 * &struct dualpi2_mq_queue are called.  &struct dualpi2_mq_clock needs no lock: all its
 * members are numbers that nothing else is published by, so that relaxed atomic
 * operations suffice.
 *
 * Bound: in any interval the queues together send at most the rate times the interval,
 * plus
 *   - one Classic ticket: &dualpi2_mq_params.horizon_ns or one packet, the greater one,
 *   - one L4S ticket: half of that or one packet,
 *   - what L4S has sent in advance: &dualpi2_mq_params.debt_max_ns for each queue, half
 *     of the horizon in total,
 *   - one packet for each queue and class: the rest of a ticket, shorter than a packet,
 *     is kept for the next one,
 *   - DUALPI2_MQ_EARLY_NS for each class,
 *   - what was not sent in time because timers or processors were late: at most
 *     &dualpi2_mq_params.late_max_ns, and the present ticket of each late queue.
 */
#ifndef _NET_DUALPI2_MQ_H
#define _NET_DUALPI2_MQ_H

#include <net/dualpi2_shaper.h>

/* Least horizon: 64 queues with one transfer of the clock's cache line each per horizon
 * are 2.6 million transfers a second; a line bears about 5 million.
 */
#define DUALPI2_MQ_HORIZON_NS		(25ULL * DUALPI2_NS_PER_US)
#define DUALPI2_MQ_HORIZON_MTU		4U

/* A packet may leave so much before its time: a timer for less is not worth its cost. */
#define DUALPI2_MQ_EARLY_NS		(2LL * DUALPI2_NS_PER_US)

/* Age of the sum of Classic backlogs, and of debts of a queue that sends. */
#define DUALPI2_MQ_SCAN_NS		(1LL * DUALPI2_NS_PER_MS)

/**
 * struct dualpi2_mq_clock - what all queues write; all zero at first; one cache line
 * @l_used_ns: link time used by L4S packets; never falls
 * @l_next_ns: L4S hand: end of the last reservation, in time T; never falls
 * @c_next_ns: Classic hand: end of the last reservation, in time V; never falls
 * @skipped_ns: time skipped by changes of the rate; never falls
 * @c_waiting: number of queues with Classic backlog
 */
struct dualpi2_mq_clock {
	atomic64_t l_used_ns;
	atomic64_t l_next_ns;
	atomic64_t c_next_ns;
	atomic64_t skipped_ns;
	atomic_t c_waiting;
} ____cacheline_aligned_in_smp;

/**
 * struct dualpi2_mq_sum - sum of Classic backlogs, read by all queues, written each ms
 * @due_ns: time of the next scan
 * @c_bytes: Classic bytes in all queues at the last scan
 */
struct dualpi2_mq_sum {
	atomic64_t due_ns;
	u32 c_bytes;
} ____cacheline_aligned_in_smp;

/**
 * struct dualpi2_mq_params - parameters, the same in all queues
 * @ns_per_byte_q20: of the rate that all queues share; without one nothing here is called
 * @horizon_ns: link time that all Classic queues together reserve in advance
 * @l_ticket_ns: link time of an L4S ticket
 * @mtu_ns: serialization time of a packet of one MTU
 * @debt_max_ns: link time that L4S packets of one queue may use before a reservation
 * @late_max_ns: link time that Classic makes up for if packets left late
 * @l_stretch_q24: L4S time times this is reserved while Classic has a backlog: 1 / (1 -
 *	w), w being Classic's guaranteed part of the rate (RFC 9332 2.5.1)
 * @ingress: dropped packets have already used the link
 */
struct dualpi2_mq_params {
	u64 ns_per_byte_q20;
	u64 horizon_ns;
	u64 l_ticket_ns;
	u64 mtu_ns;
	u64 debt_max_ns;
	u64 late_max_ns;
	u32 l_stretch_q24;
	bool ingress;
};

/**
 * struct dualpi2_mq_queue - what one queue alone writes; all zero at first
 * @c_start_ns: begin of the present Classic ticket, in time V
 * @c_credit_ns: link time reserved for Classic and not used
 * @l_start_ns: begin of the present L4S ticket, in time T
 * @l_credit_ns: link time reserved for L4S and not used
 * @l_owed_ns: link time that L4S used without a reservation
 * @l_owed_since_ns: time T since when
 * @l_unsummed_ns: link time that L4S used, not yet in &dualpi2_mq_clock.l_used_ns
 * @drop_ns: link time charged for dropped packets in ingress mode, not yet repaid
 * @frac_q20: fraction of a nanosecond, carried over to the next packet
 * @c_open: the Classic ticket has begun
 * @l_open: the L4S ticket has begun
 * @c_busy: Classic has had a backlog since its last ticket
 * @c_waits: this queue counts in &dualpi2_mq_clock.c_waiting
 */
struct dualpi2_mq_queue {
	s64 c_start_ns;
	u64 c_credit_ns;
	s64 l_start_ns;
	u64 l_credit_ns;
	u64 l_owed_ns;
	s64 l_owed_since_ns;
	u64 l_unsummed_ns;
	u64 drop_ns;
	u32 frac_q20;
	bool c_open;
	bool l_open;
	bool c_busy;
	bool c_waits;
};

/**
 * dualpi2_mq_horizon_ns() - link time that Classic reserves in advance
 * @ns_per_byte_q20: of the rate; 0: none
 * @mtu_bytes: MTU with link-layer header; at most DUALPI2_LINK_BYTES_MAX counts
 *
 * With less than four packets, tickets are rounded up to packets so much that a queue
 * with few flows gets more than its part.
 *
 * Return: max(25 us, four packets of an MTU); below 2^45.
 */
static inline u64 dualpi2_mq_horizon_ns(u64 ns_per_byte_q20, u32 mtu_bytes)
{
	u64 mtu_ns = dualpi2_bytes_ns(ns_per_byte_q20,
				      min_t(u32, mtu_bytes,
					    DUALPI2_LINK_BYTES_MAX));

	return max_t(u64, DUALPI2_MQ_HORIZON_MTU * mtu_ns,
		     DUALPI2_MQ_HORIZON_NS);
}

/**
 * dualpi2_mq_init() - parameters of the shared clock
 * @p: result
 * @link: rate, lateness, ingress
 * @l_weight: L4S's part of the rate while Classic has a backlog, 1..99 %
 * @mtu_bytes: MTU with link-layer header
 * @queues: number of queues that share the clock; 0 counts as 1
 *
 * 100 << 24 is below 2^31.
 */
static inline void dualpi2_mq_init(struct dualpi2_mq_params *p,
				   const struct dualpi2_link *link,
				   u32 l_weight, u32 mtu_bytes, u32 queues)
{
	u64 mtu_ns = dualpi2_bytes_ns(link->ns_per_byte_q20,
				      min_t(u32, mtu_bytes,
					    DUALPI2_LINK_BYTES_MAX));
	u64 horizon_ns = dualpi2_mq_horizon_ns(link->ns_per_byte_q20,
					       mtu_bytes);
	u32 sharers = max_t(u32, queues, 1);

	*p = (struct dualpi2_mq_params) {
		.ns_per_byte_q20 = link->ns_per_byte_q20,
		.horizon_ns = horizon_ns,
		.l_ticket_ns = horizon_ns / 2,
		.mtu_ns = mtu_ns,
		.debt_max_ns = div64_u64(horizon_ns / 2, sharers),
		.late_max_ns = link->late_max_ns,
		.l_stretch_q24 = (100U << 24) / l_weight,
		.ingress = link->ingress,
	};
}

/**
 * dualpi2_mq_reserve() - reserve link time
 * @hand: a hand of the clock
 * @floor_ns: the interval begins at this time or later
 * @time_ns: length of the interval
 * @idle_ns: if not NULL, time before @floor_ns that no queue had reserved is added here;
 *	each such time is added for one caller only
 *
 * First the hand is moved forward to the floor, then over the interval.  An attempt to
 * move it forward fails only if another queue moved it at the same time; if that was as
 * far as the floor, this queue need not.  So the loop ends: it is repeated at most once
 * for each operation of other processors meanwhile, and one processor always makes
 * progress.
 *
 * Return: begin of an interval that no other call gets a part of, at least @floor_ns.
 */
static inline s64 dualpi2_mq_reserve(atomic64_t *hand, s64 floor_ns,
				     u64 time_ns, u64 *idle_ns)
{
	s64 next_ns = atomic64_read(hand);

	while (next_ns < floor_ns) {
		s64 seen_ns = next_ns;

		if (atomic64_try_cmpxchg_relaxed(hand, &next_ns, floor_ns)) {
			if (idle_ns)
				*idle_ns += floor_ns - seen_ns;
			break;
		}
	}
	return atomic64_fetch_add_relaxed(time_ns, hand);
}

/* Time T, in which L4S reserves. */
static inline s64 dualpi2_mq_time(const struct dualpi2_mq_clock *clock,
				  u64 now_ns)
{
	return now_ns + atomic64_read(&clock->skipped_ns);
}

/**
 * dualpi2_mq_c_time() - time V, in which Classic reserves
 * @clock: the shared clock
 * @now_ns: time
 *
 * Return: time that L4S has left to Classic.  It falls when L4S packets leave, by their
 * serialization time, and can be negative at first.
 */
static inline s64 dualpi2_mq_c_time(const struct dualpi2_mq_clock *clock,
				    u64 now_ns)
{
	return dualpi2_mq_time(clock, now_ns) -
	       atomic64_read(&clock->l_used_ns);
}

/**
 * dualpi2_mq_cost() - link time charged for a packet
 * @p: parameters, with a rate
 * @q: the queue
 * @bytes: length on the link, see dualpi2_time_q20()
 * @repaid_ns: result: part of it that is for dropped packets
 * @frac_q20: result: fraction of a nanosecond that is carried over
 *
 * In ingress mode at most half of the packet's own time is added for dropped packets,
 * as in dualpi2_clock_send().
 *
 * Return: nanoseconds, below 1.5 * 2^42 + 2.
 */
static inline u64 dualpi2_mq_cost(const struct dualpi2_mq_params *p,
				  const struct dualpi2_mq_queue *q, u64 bytes,
				  u64 *repaid_ns, u32 *frac_q20)
{
	u64 time_q20 = dualpi2_time_q20(p->ns_per_byte_q20, bytes,
					q->frac_q20);
	u64 own_ns = time_q20 >> 20;

	*frac_q20 = time_q20 & ((1U << 20) - 1);
	*repaid_ns = min_t(u64, q->drop_ns, own_ns / 2);
	return own_ns + *repaid_ns;
}

/**
 * dualpi2_mq_settle() - reserve the time that L4S used without a reservation
 * @p: parameters
 * @clock: the shared clock
 * @q: the queue
 *
 * A queue calls it itself before its debts exceed the limit.  Debts of an idle queue
 * can stay: the bound includes them.
 */
static inline void dualpi2_mq_settle(const struct dualpi2_mq_params *p,
				     struct dualpi2_mq_clock *clock,
				     struct dualpi2_mq_queue *q)
{
	u64 time_ns = q->l_owed_ns;

	if (q->l_unsummed_ns)
		atomic64_add(q->l_unsummed_ns, &clock->l_used_ns);
	q->l_unsummed_ns = 0;
	if (!time_ns)
		return;
	if (atomic_read(&clock->c_waiting))
		time_ns = mul_u64_u32_shr(time_ns, p->l_stretch_q24, 24);
	dualpi2_mq_reserve(&clock->l_next_ns, q->l_owed_since_ns, time_ns,
			   NULL);
	q->l_owed_ns = 0;
}

/**
 * dualpi2_mq_l_ready() - may the first L4S packet leave now?
 * @p: parameters
 * @clock: the shared clock
 * @q: the queue
 * @head_bytes: length on the link of the first packet
 * @backlog_bytes: L4S backlog of this queue
 * @now_ns: time
 * @wake_ns: if it must wait: time at which to ask again; else unchanged
 *
 * While the hand is not ahead of the time, a packet leaves without a reservation, up to
 * the limit of debts.  Else the queue reserves time for its backlog.
 *
 * Return: true: send it and call dualpi2_mq_l_sent(), or drop it and ask for the next
 * one.
 */
static inline bool dualpi2_mq_l_ready(const struct dualpi2_mq_params *p,
				      struct dualpi2_mq_clock *clock,
				      struct dualpi2_mq_queue *q,
				      u32 head_bytes, u32 backlog_bytes,
				      u64 now_ns, u64 *wake_ns)
{
	u64 repaid_ns, cost_ns, want_ns, time_ns;
	u32 frac_q20;
	s64 time;

	cost_ns = dualpi2_mq_cost(p, q, head_bytes, &repaid_ns, &frac_q20);
	if (q->l_credit_ns >= cost_ns && q->l_open)
		return true;
	time = dualpi2_mq_time(clock, now_ns);
	if (q->l_credit_ns < cost_ns) {
		want_ns = cost_ns - q->l_credit_ns;
		if ((q->l_open || !q->l_credit_ns) &&
		    q->l_owed_ns + want_ns <= p->debt_max_ns &&
		    atomic64_read(&clock->l_next_ns) <=
		    time + DUALPI2_MQ_EARLY_NS) {
			if (!q->l_owed_ns)
				q->l_owed_since_ns = time;
			return true;
		}
		dualpi2_mq_settle(p, clock, q);
		time_ns = dualpi2_bytes_ns(p->ns_per_byte_q20, backlog_bytes);
		time_ns = max_t(u64, want_ns,
				min_t(u64, time_ns, p->l_ticket_ns));
		q->l_credit_ns += time_ns;
		if (atomic_read(&clock->c_waiting))
			time_ns = mul_u64_u32_shr(time_ns, p->l_stretch_q24,
						  24);
		q->l_start_ns = dualpi2_mq_reserve(&clock->l_next_ns, time,
						   time_ns, NULL);
	}
	q->l_open = q->l_start_ns <= time + DUALPI2_MQ_EARLY_NS;
	if (!q->l_open)
		*wake_ns = now_ns + (q->l_start_ns - time);
	return q->l_open;
}

/**
 * dualpi2_mq_l_sent() - charge an L4S packet that leaves
 * @p: parameters
 * @clock: the shared clock
 * @q: the queue, after dualpi2_mq_l_ready() returned true for this packet
 * @bytes: length on the link, not above what was asked for
 */
static inline void dualpi2_mq_l_sent(const struct dualpi2_mq_params *p,
				     struct dualpi2_mq_clock *clock,
				     struct dualpi2_mq_queue *q, u32 bytes)
{
	u64 repaid_ns, cost_ns, paid_ns;

	cost_ns = dualpi2_mq_cost(p, q, bytes, &repaid_ns, &q->frac_q20);
	q->drop_ns -= repaid_ns;
	paid_ns = min_t(u64, q->l_credit_ns, cost_ns);
	q->l_credit_ns -= paid_ns;
	q->l_owed_ns += cost_ns - paid_ns;
	q->l_unsummed_ns += cost_ns;
	if (q->l_unsummed_ns > p->debt_max_ns) {
		atomic64_add(q->l_unsummed_ns, &clock->l_used_ns);
		q->l_unsummed_ns = 0;
	}
}

/**
 * dualpi2_mq_l_empty() - the L4S queue became empty
 * @q: the queue
 *
 * The rest of its ticket lapses.  Classic uses that time.
 */
static inline void dualpi2_mq_l_empty(struct dualpi2_mq_queue *q)
{
	q->l_credit_ns = 0;
	q->l_open = false;
}

/**
 * dualpi2_mq_c_ticket_ns() - link time that a Classic queue reserves
 * @p: parameters
 * @backlog_bytes: Classic backlog of this queue
 * @all_bytes: Classic backlog of all queues, up to one ms old
 *
 * Tickets in proportion to backlog give all Classic queues the same delay, which is that
 * of one FIFO.
 *
 * The horizon is below 2^45, and the product of 77 bits is divided at once.
 *
 * Return: the queue's part of the horizon, or one MTU if that is more, but not more than
 * its backlog.
 */
static inline u64 dualpi2_mq_c_ticket_ns(const struct dualpi2_mq_params *p,
					 u32 backlog_bytes, u32 all_bytes)
{
	u64 backlog_ns = dualpi2_bytes_ns(p->ns_per_byte_q20, backlog_bytes);
	u64 part_ns = p->horizon_ns;

	if (all_bytes > backlog_bytes)
		part_ns = mul_u64_u32_div(part_ns, backlog_bytes, all_bytes);
	return min_t(u64, backlog_ns, max_t(u64, part_ns, p->mtu_ns));
}

/**
 * dualpi2_mq_c_ready() - may the first Classic packet leave now?
 * @p: parameters
 * @clock: the shared clock
 * @sum: sum of Classic backlogs
 * @q: the queue, after dualpi2_mq_c_begin()
 * @head_bytes: length on the link of the first packet
 * @backlog_bytes: Classic backlog of this queue
 * @now_ns: time
 * @wake_ns: if it must wait: time at which to ask again; else unchanged
 *
 * L4S packets can delay the packet beyond @wake_ns; then the answer is another time.
 *
 * Return: true: send it and call dualpi2_mq_c_sent(), or drop it and ask for the next
 * one.
 */
static inline bool dualpi2_mq_c_ready(const struct dualpi2_mq_params *p,
				      struct dualpi2_mq_clock *clock,
				      const struct dualpi2_mq_sum *sum,
				      struct dualpi2_mq_queue *q,
				      u32 head_bytes, u32 backlog_bytes,
				      u64 now_ns, u64 *wake_ns)
{
	u64 repaid_ns, cost_ns, time_ns, idle_ns = 0;
	s64 time, floor;
	u32 frac_q20;

	cost_ns = dualpi2_mq_cost(p, q, head_bytes, &repaid_ns, &frac_q20);
	if (q->c_credit_ns >= cost_ns && q->c_open)
		return true;
	time = dualpi2_mq_c_time(clock, now_ns);
	if (q->c_credit_ns < cost_ns) {
		time_ns = dualpi2_mq_c_ticket_ns(p, backlog_bytes,
						 READ_ONCE(sum->c_bytes));
		time_ns = max_t(u64, time_ns, cost_ns - q->c_credit_ns);
		floor = q->c_busy ? time - (s64)p->late_max_ns : time;
		q->c_start_ns = dualpi2_mq_reserve(&clock->c_next_ns, floor,
						   time_ns, &idle_ns);
		q->c_credit_ns += time_ns;
		q->drop_ns -= min_t(u64, q->drop_ns, idle_ns);
		q->c_busy = true;
	}
	q->c_open = q->c_start_ns <= time + DUALPI2_MQ_EARLY_NS;
	if (!q->c_open)
		*wake_ns = now_ns + (q->c_start_ns - time);
	return q->c_open;
}

/**
 * dualpi2_mq_c_sent() - charge a Classic packet that leaves
 * @p: parameters
 * @q: the queue, after dualpi2_mq_c_ready() returned true for this packet
 * @bytes: length on the link, not above what was asked for
 */
static inline void dualpi2_mq_c_sent(const struct dualpi2_mq_params *p,
				     struct dualpi2_mq_queue *q, u32 bytes)
{
	u64 repaid_ns;

	q->c_credit_ns -= dualpi2_mq_cost(p, q, bytes, &repaid_ns,
					  &q->frac_q20);
	q->drop_ns -= repaid_ns;
}

/**
 * dualpi2_mq_c_begin() - a packet arrives at an empty Classic queue
 * @clock: the shared clock
 * @q: the queue
 *
 * From now on L4S leaves Classic its part of the rate.
 */
static inline void dualpi2_mq_c_begin(struct dualpi2_mq_clock *clock,
				      struct dualpi2_mq_queue *q)
{
	if (q->c_waits)
		return;
	q->c_waits = true;
	atomic_inc(&clock->c_waiting);
}

/**
 * dualpi2_mq_c_empty() - the Classic queue became empty
 * @clock: the shared clock
 * @q: the queue
 *
 * The rest of its ticket lapses.
 */
static inline void dualpi2_mq_c_empty(struct dualpi2_mq_clock *clock,
				      struct dualpi2_mq_queue *q)
{
	q->c_credit_ns = 0;
	q->c_open = false;
	q->c_busy = false;
	if (!q->c_waits)
		return;
	q->c_waits = false;
	atomic_dec(&clock->c_waiting);
}

/**
 * dualpi2_mq_drop() - charge a dropped packet, in ingress mode
 * @p: parameters
 * @q: the queue
 * @bytes: length on the link
 */
static inline void dualpi2_mq_drop(const struct dualpi2_mq_params *p,
				   struct dualpi2_mq_queue *q, u64 bytes)
{
	u64 drop_ns = q->drop_ns + dualpi2_bytes_ns(p->ns_per_byte_q20, bytes);

	if (p->ingress)
		q->drop_ns = min_t(u64, drop_ns, DUALPI2_DEBT_MAX_NS);
}

/**
 * dualpi2_mq_scan_due() - is it this processor that sums up the backlogs?
 * @sum: sum of Classic backlogs
 * @now_ns: time
 *
 * Return: true, for one caller each ms: add up the Classic backlogs of all queues, read
 * without their locks, and call dualpi2_mq_scanned().
 */
static inline bool dualpi2_mq_scan_due(struct dualpi2_mq_sum *sum, u64 now_ns)
{
	s64 due_ns = atomic64_read(&sum->due_ns);

	return due_ns <= (s64)now_ns &&
	       atomic64_try_cmpxchg_relaxed(&sum->due_ns, &due_ns,
					    now_ns + DUALPI2_MQ_SCAN_NS);
}

/**
 * dualpi2_mq_scanned() - publish the sum of Classic backlogs
 * @sum: sum of Classic backlogs
 * @c_bytes: Classic backlog of all queues; more than U32_MAX counts as U32_MAX
 */
static inline void dualpi2_mq_scanned(struct dualpi2_mq_sum *sum, u64 c_bytes)
{
	WRITE_ONCE(sum->c_bytes, min_t(u64, c_bytes, U32_MAX));
}

/**
 * dualpi2_mq_queue_reset() - the queue was emptied, or its parameters change
 * @p: parameters until now
 * @clock: the shared clock
 * @q: the queue
 *
 * What it sent is charged to the clock, what it has reserved lapses.  The hands of the
 * clock stay.
 */
static inline void dualpi2_mq_queue_reset(const struct dualpi2_mq_params *p,
					  struct dualpi2_mq_clock *clock,
					  struct dualpi2_mq_queue *q)
{
	dualpi2_mq_settle(p, clock, q);
	dualpi2_mq_c_empty(clock, q);
	*q = (struct dualpi2_mq_queue) {};
}

/**
 * dualpi2_mq_clock_change() - the rate has changed
 * @p: new parameters
 * @clock: the shared clock
 * @now_ns: time
 *
 * Call it after dualpi2_mq_queue_reset() of all queues, and wake all of them afterwards.
 * Time was reserved with the old rate, which can be far lower.  Therefore time skips so
 * far that either hand is ahead by one MTU at the new rate at most, as in
 * dualpi2_clock_change().  Tickets that queues reserve between both calls can begin at
 * once then.
 */
static inline void dualpi2_mq_clock_change(const struct dualpi2_mq_params *p,
					   struct dualpi2_mq_clock *clock,
					   u64 now_ns)
{
	s64 l_ahead_ns = atomic64_read(&clock->l_next_ns) -
			 dualpi2_mq_time(clock, now_ns);
	s64 c_ahead_ns = atomic64_read(&clock->c_next_ns) -
			 dualpi2_mq_c_time(clock, now_ns);
	s64 skip_ns = max_t(s64, l_ahead_ns, c_ahead_ns) - (s64)p->mtu_ns;

	if (skip_ns > 0)
		atomic64_add(skip_ns, &clock->skipped_ns);
}

#endif /* _NET_DUALPI2_MQ_H */
