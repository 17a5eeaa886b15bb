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
