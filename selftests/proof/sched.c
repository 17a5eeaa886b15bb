// SPDX-License-Identifier: GPL-2.0-only
/* The scheduler: bounded credit, so bounded wait. */
#include "proof.h"

/* While no packet is longer than S, the credit stays within -l_weight * S..c_weight * S.
 * L4S packets add c_weight per byte, and Classic sends as soon as the credit is above 0:
 * Classic waits for at most S * l_weight / c_weight bytes and one packet (9 S by default);
 * L4S for at most S * c_weight / l_weight bytes and one packet.
 */
static void prove_bound(u32 max_bytes)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v;
	bool c_waits, l_waits, c_left, l_left;
	enum dualpi2_queue queue;
	u32 bytes;

	assume(bytes <= max_bytes);
	assume(credit_holds(&p, v.credit, max_bytes));
	assume(v.credit_start == (s32)max_bytes * ((s32)p.c_weight - p.l_weight));
	assume(c_waits || l_waits);
	queue = dualpi2_sched_pick(&v, c_waits, l_waits);
	prove(queue == DUALPI2_QUEUE_C ? c_waits : l_waits);
	/* Nothing arrives during a dequeue. */
	assume(queue == DUALPI2_QUEUE_C ? l_left == l_waits && c_left <= c_waits :
					  c_left == c_waits && l_left <= l_waits);
	dualpi2_sched_charge(&p, &v, queue, c_left, l_left, bytes);
	prove(credit_holds(&p, v.credit, max_bytes));
}

void prove_credit_of_any_packets_is_bounded(void)
{
	prove_bound(DUALPI2_SCHED_BYTES_MAX);
}

void prove_credit_of_64_kib_packets_is_bounded(void)
{
	prove_bound(1U << 16);
}

/* Each byte of the other queue brings the turn of one that waits nearer. */
void prove_no_queue_waits_without_limit(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v;
	u32 bytes;
	s32 before = v.credit;

	assume(credit_holds(&p, v.credit, DUALPI2_SCHED_BYTES_MAX));
	assume(bytes && bytes <= DUALPI2_SCHED_BYTES_MAX);
	if (dualpi2_sched_pick(&v, true, true) == DUALPI2_QUEUE_C) {
		prove(before > 0);
		dualpi2_sched_charge(&p, &v, DUALPI2_QUEUE_C, true, true, bytes);
		prove((s64)before - v.credit >= bytes);
	} else {
		prove(before <= 0);
		dualpi2_sched_charge(&p, &v, DUALPI2_QUEUE_L, true, true, bytes);
		prove((s64)v.credit - before >= bytes);
	}
}

/* What prove_bound() takes for the start. */
/* proof: slow */
void prove_credit_starts_within_its_bounds(void)
{
	struct dualpi2_params p = any_params();
	u32 mtu_bytes;

	prove(credit_holds(&p, dualpi2_credit_start(&p, mtu_bytes), mtu_bytes));
}
