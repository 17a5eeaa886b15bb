/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of TCP Prague's arithmetic, prague.h, share: a state, an ACK.
 */
#ifndef PRAGUE_TEST_H
#define PRAGUE_TEST_H

#include "prague.h"

#define PRAGUE_ONE_Q20	(1U << 20)	/* share 1 */

#define PRAGUE_MSS	1448
#define PRAGUE_PKT	PRAGUE_ONE_Q32		/* one packet, q32 */
#define PRAGUE_LEAST	(1ULL << 24)		/* least window there is, q32 */

/* those of the module */
static const struct prague_params prague_defaults = {
	.rtt_virt_us = PRAGUE_RTT_VIRT_US,
	.transition_rounds = 4,
	.least_rate_bytes_ps = 12500,
	.classic_queue_us = PRAGUE_CLASSIC_QUEUE_US,
	.classic_looks = PRAGUE_CLASSIC_LOOKS,
};

/*
 * In avoidance at 1000 s, with marks seen, just cut; by default independent of the RTT where that
 * is short.
 */
static struct prague prague_state(u64 window_q32, u32 rtt_us)
{
	struct prague p;

	memset(&p, 0xa5, sizeof(p));
	prague_init(&p, 1000000000, 1, rtt_us, 0, 0, false);
	p.window_q32 = window_q32;
	p.saw_ce = true;
	p.rounds = prague_defaults.transition_rounds;
	return p;
}

/* An ACK of @acked packets, @ce of them marked, @later_us after the last cut. */
static struct prague_ack prague_ack_of(const struct prague *p, u32 acked, u32 ce,
				       u64 later_us)
{
	return (struct prague_ack) {
		.now_us = p->cut_us + later_us,
		.delivered = p->round_delivered + acked,
		.ce = p->seen_ce + ce,
		.acked = acked,
		.limited = true,
	};
}

static bool prague_take(struct prague *p, const struct prague_ack *ack)
{
	return prague_on_ack(p, &prague_defaults, ack, PRAGUE_MOST_CWND, PRAGUE_MOST_CWND,
			     PRAGUE_MSS);
}

/* The window after an ACK. */
static u64 prague_window_after(struct prague p, u32 acked, u32 ce, u64 later_us)
{
	struct prague_ack ack = prague_ack_of(&p, acked, ce, later_us);

	prague_take(&p, &ack);
	return p.window_q32;
}

#endif /* PRAGUE_TEST_H */
