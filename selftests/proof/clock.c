// SPDX-License-Identifier: GPL-2.0-only
/* The shaper. */
#include "proof.h"

void prove_clock_does_not_overflow(void)
{
	struct dualpi2_link link;
	struct dualpi2_clock c;
	u64 now_ns, bytes, before_ns;

	assume(link_holds(&link) && link.ns_per_byte_q20);
	assume(link.ingress == 0 || link.ingress == 1);
	assume(now_ns <= NOW_MAX && c.next_ns <= now_ns);
	assume(c.frac_q20 < 1U << 20 && c.debt_ns <= DUALPI2_DEBT_MAX_NS);
	before_ns = c.next_ns;
	dualpi2_clock_send(&link, &c, bytes, now_ns);
	prove(c.frac_q20 < 1U << 20);
	prove(c.debt_ns <= DUALPI2_DEBT_MAX_NS);
	prove(c.next_ns >= before_ns);
	prove(c.next_ns <= NOW_MAX + (3ULL << 41));
	dualpi2_clock_drop(&link, &c, bytes);
	prove(c.debt_ns <= DUALPI2_DEBT_MAX_NS);
}

/* Idle time gives no credit. */
void prove_clock_starts_without_credit(void)
{
	struct dualpi2_link link;
	struct dualpi2_clock c, before;
	u64 now_ns;

	assume(link_holds(&link) && c.next_ns <= NOW_MAX && now_ns <= NOW_MAX);
	before = c;
	dualpi2_clock_start(&link, &c, now_ns);
	prove(c.next_ns == before.next_ns || c.next_ns == now_ns);
	prove(c.next_ns >= before.next_ns && c.debt_ns <= before.debt_ns);
	prove(!link.ns_per_byte_q20 || c.next_ns >= now_ns);
	prove(before.next_ns <= now_ns || dualpi2_clock_wait(&c, now_ns));
	if (before.next_ns <= now_ns)
		prove(dualpi2_clock_is_cause(&link, &before, now_ns) ==
		      (link.ns_per_byte_q20 && now_ns - before.next_ns < link.late_max_ns));
}

u64 __CPROVER_uninterpreted_time_q20(u64 ns_per_byte_q20, u64 bytes, u32 frac_q20);

/* What the proof below allows, and always the same. */
u64 any_time_q20(u64 ns_per_byte_q20, u64 bytes, u32 frac_q20)
{
	u64 time_q20 = __CPROVER_uninterpreted_time_q20(ns_per_byte_q20, bytes, frac_q20);

	assume(time_q20 < 1ULL << 62);
	return time_q20;
}

void prove_time_of_a_packet_is_bounded(void)
{
	u64 ns_per_byte_q20, bytes;
	u32 frac_q20;

	assume(ns_per_byte_q20 <= 1000000ULL << 20 && frac_q20 < 1U << 20);
	prove(dualpi2_time_q20(ns_per_byte_q20, bytes, frac_q20) < 1ULL << 62);
}

/* In any window, the packets sent take at most the time of the window, and late_max_ns, and the last packet's time.
 * This is one step.  The invariant, which holds after the first packet of the window whatever was before:
 * next_ns >= begin of the window - late_max_ns + time of the packets.  Fractions of a nanosecond are carried over.
 */
/* proof: long dualpi2_time_q20:any_time_q20 */
void prove_shaper_never_exceeds_its_rate(void)
{
	struct dualpi2_link link;
	struct dualpi2_clock c;
	u64 now_ns, begin_ns, bytes, time_q20, sum_ns;
	bool arrives;

	assume(link_holds(&link) && link.ns_per_byte_q20);
	assume(DUALPI2_LATE_MAX_NS <= begin_ns && begin_ns <= now_ns && now_ns <= NOW_MAX && c.next_ns <= NOW_MAX);
	assume(c.frac_q20 < 1U << 20 && c.debt_ns <= DUALPI2_DEBT_MAX_NS);
	assume(sum_ns <= NOW_MAX && (!sum_ns || c.next_ns >= begin_ns - link.late_max_ns + sum_ns));
	if (arrives)
		dualpi2_clock_start(&link, &c, now_ns);
	assume(!dualpi2_clock_wait(&c, now_ns));
	prove(sum_ns <= now_ns - begin_ns + link.late_max_ns);
	time_q20 = dualpi2_time_q20(link.ns_per_byte_q20, bytes, c.frac_q20);
	dualpi2_clock_send(&link, &c, bytes, now_ns);
	prove(c.next_ns >= begin_ns - link.late_max_ns + sum_ns + (time_q20 >> 20));
	prove(c.frac_q20 == (time_q20 & ((1U << 20) - 1)));
}

/* After a change of the rate the next packet waits for one MTU at most. */
/* proof: dualpi2_bytes_ns:any_bytes_ns */
void prove_change_of_rate_waits_for_one_packet(void)
{
	struct dualpi2_link from, to;
	struct dualpi2_clock c;
	u64 now_ns, wait_ns;
	u32 mtu_bytes;

	assume(link_holds(&from) && link_holds(&to));
	assume(to.ingress == 0 || to.ingress == 1);
	assume(now_ns <= NOW_MAX && c.next_ns <= NOW_MAX + (3ULL << 41));
	wait_ns = dualpi2_bytes_ns(to.ns_per_byte_q20, mtu_bytes);
	dualpi2_clock_change(&from, &to, &c, mtu_bytes, now_ns);
	prove(from.ns_per_byte_q20 == to.ns_per_byte_q20 ||
	      c.next_ns <= now_ns + (from.ns_per_byte_q20 ? wait_ns : 0));
	prove(from.ns_per_byte_q20 == to.ns_per_byte_q20 || to.ns_per_byte_q20 || (!c.next_ns && !c.frac_q20));
	prove(to.ingress || !c.debt_ns);
}
