/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of TCP Prague: a window in fractions of a packet, the moving
 * average of the share of marks, independence of the round-trip time, pacing.
 *
 * After draft-briscoe-iccrg-prague-congestion-control; docs/PRAGUE.md says where
 * it differs, and why.  Integers in, a window and a rate out: no socket, no
 * clock, so that user space compiles it too (unit/test_prague*.c).
 * tcp_prague.c binds it to the kernel.
 *
 * Windows are in packets, 32 bits of fraction (q32); shares and ratios have 20
 * (q20) or 32.  Times are in us.
 */
#ifndef PRAGUE_H
#define PRAGUE_H

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>
#else
#include <net/dualpi2_seam.h>
#endif

/* alpha moves by 1/16 of the difference each round (the draft's g) */
#define PRAGUE_GAIN_SHIFT	4
/* Below it a flow acts as if it had this RTT (RTT_V_MIN) */
#define PRAGUE_RTT_VIRT_US	25000
/* Longer ones are taken for this: sums below stay in range */
#define PRAGUE_RTT_MOST_US	16000000
/* No window is smaller: 1 / 2^8 packet, q32 */
#define PRAGUE_TINY_Q32		(1U << 24)
/* Packets that losses leave, if there were as many; below it only marks bring a flow */
#define PRAGUE_LEAST_WINDOW	2
/* The packets of 100 Gbit/s in 2 s; products below stay in 64 bits */
#define PRAGUE_MOST_CWND	(1U << 24)
/* ... and of one ACK: more would be a nonsense of the peer's */
#define PRAGUE_MOST_ACKED	(1U << 15)
/* Time of the largest burst: 1 / 2^12 s */
#define PRAGUE_BURST_SHIFT	12
/* Intervals that one decrease may be for, see prague_cut() */
#define PRAGUE_LATE_MOST	4

#define PRAGUE_ONE_Q32		(1ULL << 32)

/* What the operator may choose, module parameters: those of the draft's values that it leaves
 * open.
 */
struct prague_params {
	u32 rtt_virt_us;	/* RTT that shorter ones are taken for; 0: none is */
	u32 transition_rounds;	/* after slow start, until then */
	u32 least_rate_bytes_ps;	/* bytes/s that marks do not push it below */
};

struct prague {
	u64 window_q32;		/* at least 1 / 2^8 packet */
	u64 undo_q32;		/* window before the last loss */
	u64 round_us;		/* when the share of marks was last taken */
	u64 cut_us;		/* when a mark last made the window smaller */
	u32 alpha_q24;		/* alpha << 24: q20 and the gain's shift */
	u32 round_delivered;	/* counters at the begin of the round */
	u32 round_ce;
	u32 seen_ce;		/* ... and at the last ACK */
	u32 rounds;		/* since slow start, at most transition_rounds */
	u32 rtt_us8;		/* smoothed, times 8; 0: not known yet */
	bool slow_start;	/* the first one: no mark or loss was seen */
	bool undo_slow_start;	/* was it, before the last loss? */
	bool in_loss;		/* a loss is being repaired */
	bool saw_ce;
};

/* One ACK, as the kernel counts it. */
struct prague_ack {
	u64 now_us;
	u32 delivered;		/* packets delivered since the connection began */
	u32 ce;			/* packets that came marked since then, as the peer tells */
	u32 acked;		/* packets that this ACK says were delivered */
	s32 rtt_us;		/* of the last of them; 0 or less: not known */
	/* all that was under way at the begin of the round has been acknowledged */
	bool round_ended;
	bool limited;		/* window or pacing was what held the sender back */
};

/**
 * prague_rtt_us() - smoothed round-trip time
 * @p: state
 *
 * Return: us, 1 to PRAGUE_RTT_MOST_US; 1 ms while there was no sample, as the kernel's own pacing
 * assumes.
 */
static inline u32 prague_rtt_us(const struct prague *p)
{
	if (!p->rtt_us8)
		return 1000;
	return max_t(u32, p->rtt_us8 >> 3, 1);
}

/**
 * prague_is_rtt_independent() - does the flow act as one of a longer RTT?
 * @p: state
 * @params: operator's choice
 *
 * So it does from some rounds after slow start on, until when a short flow shall be as fast as its
 * RTT allows.
 */
static inline bool prague_is_rtt_independent(const struct prague *p,
					     const struct prague_params *params)
{
	return !p->slow_start && p->rounds >= params->transition_rounds &&
	       prague_rtt_us(p) < params->rtt_virt_us;
}

/* us between two decreases, and between two samples of the share of marks; not 0 */
static inline u32 prague_interval_us(const struct prague *p,
				     const struct prague_params *params)
{
	return prague_is_rtt_independent(p, params) ? params->rtt_virt_us :
						      prague_rtt_us(p);
}

/*
 * The window that least_rate_bytes_ps is, of packets of @mss bytes: rate * RTT / mss.
 * 2^32 * 2^24 < 2^64; at least 1 / 2^8 packet, so that nothing divides by 0.
 */
static inline u64 prague_least_window_q32(const struct prague *p,
					  const struct prague_params *params,
					  u32 mss)
{
	u64 bytes_us = (u64)params->least_rate_bytes_ps * prague_rtt_us(p);
	u64 bytes_q16 = div_u64(min_t(u64, bytes_us, 1ULL << 47) << 16, 1000000);
	u64 window_q32 = div_u64(bytes_q16, max_t(u32, mss, 1)) << 16;

	return clamp_t(u64, window_q32, PRAGUE_TINY_Q32,
		       PRAGUE_LEAST_WINDOW * PRAGUE_ONE_Q32);
}

/**
 * prague_init() - begin with a window of @cwnd packets
 * @p: state, of any content
 * @now_us: time
 * @cwnd: packets
 * @rtt_us: of the handshake; 0: not known
 * @delivered: packets delivered so far
 * @ce: ... and those of them that came marked
 * @slow_start: has the connection not left its first slow start?
 */
static inline void prague_init(struct prague *p, u64 now_us, u32 cwnd,
			       u32 rtt_us, u32 delivered, u32 ce,
			       bool slow_start)
{
	u64 window = clamp_t(u32, cwnd, 1, PRAGUE_MOST_CWND);
	u32 first_us = min_t(u32, rtt_us, PRAGUE_RTT_MOST_US);

	*p = (struct prague) {
		.window_q32 = window << 32,
		.round_us = now_us,
		.cut_us = now_us,
		.round_delivered = delivered,
		.round_ce = ce,
		.seen_ce = ce,
		.rtt_us8 = first_us * 8,
		.slow_start = slow_start,
	};
}

/* The first sample is taken as it is, each further one by 1/8, as RFC 6298 has it. */
static inline void prague_add_rtt(struct prague *p, s32 rtt_us)
{
	u32 sample_us;

	if (rtt_us <= 0)
		return;
	sample_us = min_t(u32, rtt_us, PRAGUE_RTT_MOST_US);
	if (!p->rtt_us8)
		p->rtt_us8 = sample_us * 8;
	else
		p->rtt_us8 += sample_us - (p->rtt_us8 >> 3);
}

/*
 * Additive increase for @acked packets without a mark: W += acked * ai / W with
 * ai = 1 packet, or (R / R_virt)^2, so that the rate grows by a packet per
 * R_virt each R_virt.  No more for an ACK than slow start would: W is taken for
 * R / R_virt at least.  acked < 2^15 and ai <= 2^32, so that the dividend is
 * below 2^63; the divisor is at least 2^8, as the window is 2^24 at least.
 */
static inline void prague_increase(struct prague *p,
				   const struct prague_params *params, u32 acked)
{
	u64 ratio_q32 = PRAGUE_ONE_Q32, ai_q32 = PRAGUE_ONE_Q32;

	if (prague_is_rtt_independent(p, params)) {
		/* Below 1, because the RTT is the shorter one. */
		ratio_q32 = div_u64((u64)prague_rtt_us(p) << 32, params->rtt_virt_us);
		ai_q32 = ratio_q32 * ratio_q32 >> 32;
	}
	p->window_q32 += div64_u64(acked * ai_q32 << 16,
				   max_t(u64, p->window_q32, ratio_q32) >> 16);
}

/*
 * Multiplicative decrease by marks: W *= 1 - alpha / 2 once an interval, and as
 * many times as it was due where the mark came late; what is less than a whole
 * interval counts in proportion.
 *
 * Where marks come at random, the first one after an interval is late by a third
 * of it, and a flow that leaves that out settles at 2.7 (1 - p) / p packets in
 * place of 2 (1 - p) / p.
 */
static inline void prague_cut(struct prague *p, u64 now_us, u32 interval_us)
{
	u32 half_q20 = p->alpha_q24 >> (PRAGUE_GAIN_SHIFT + 1);
	/* interval_us is at most 2^24 */
	u32 due_us = min_t(u64, now_us - p->cut_us, PRAGUE_LATE_MOST * interval_us);

	for (; due_us >= interval_us; due_us -= interval_us)
		p->window_q32 -= mul_u64_u32_shr(p->window_q32, half_q20, 20);
	half_q20 = div_u64((u64)half_q20 * due_us, interval_us);
	p->window_q32 -= mul_u64_u32_shr(p->window_q32, half_q20, 20);
	p->cut_us = now_us;
}

/*
 * A round's share of marks into the average: alpha += (F - alpha) / 16.  The
 * peer's count may be nonsense: F is at most 1.  ce < 2^32, so that the dividend
 * is below 2^52.
 */
static inline void prague_end_round(struct prague *p,
				    const struct prague_ack *ack)
{
	u32 delivered = ack->delivered - p->round_delivered;
	u32 ce = ack->ce - p->round_ce;

	if (delivered)
		p->alpha_q24 += (u32)div_u64((u64)min_t(u32, ce, delivered) << 20, delivered) -
				(p->alpha_q24 >> PRAGUE_GAIN_SHIFT);
	p->round_us = ack->now_us;
	p->round_delivered = ack->delivered;
	p->round_ce = ack->ce;
}

/**
 * prague_on_ack() - one ACK: increase, decrease by marks, rounds
 * @p: state
 * @params: operator's choice
 * @ack: what it says
 * @cwnd: packets that the stack allows now; may be fewer than the window after an idle time or a
 *	timeout
 * @cwnd_most: packets it may ever allow
 * @mss: bytes in a packet
 *
 * Return: true if a new round has begun.
 */
static inline bool prague_on_ack(struct prague *p,
				 const struct prague_params *params,
				 const struct prague_ack *ack, u32 cwnd,
				 u32 cwnd_most, u32 mss)
{
	u32 ce = ack->ce - p->seen_ce;
	u32 acked = min_t(u32, ack->acked, PRAGUE_MOST_ACKED - 1);
	u32 interval_us;
	bool begun = false;

	prague_add_rtt(p, ack->rtt_us);
	p->seen_ce = ack->ce;
	acked -= min_t(u32, ce, acked);
	interval_us = prague_interval_us(p, params);

	if (ce && !p->saw_ce) {
		/* No average to go by yet: half, if a loss has not done that, which may yet be
		 * undone.
		 */
		if (p->in_loss)
			p->undo_q32 /= 2;
		else
			p->window_q32 = min_t(u64, p->window_q32, (u64)cwnd << 32) / 2;
		p->cut_us = ack->now_us;
		p->saw_ce = true;
		p->slow_start = false;
	} else if (ce && ack->now_us - p->cut_us >= interval_us) {
		/* What the stack does not allow has no say. */
		p->window_q32 = min_t(u64, p->window_q32, (u64)cwnd << 32);
		prague_cut(p, ack->now_us, interval_us);
	}

	if (acked && ack->limited && !p->in_loss) {
		if (p->slow_start)
			p->window_q32 += (u64)acked << 32;
		else
			prague_increase(p, params, acked);
	}
	p->window_q32 = clamp_t(u64, p->window_q32,
				prague_least_window_q32(p, params, mss),
				(u64)clamp_t(u32, cwnd_most, PRAGUE_LEAST_WINDOW,
					     PRAGUE_MOST_CWND) << 32);

	if (ack->round_ended && (!prague_is_rtt_independent(p, params) ||
				 ack->now_us - p->round_us >= interval_us)) {
		prague_end_round(p, ack);
		if (!p->slow_start && p->rounds < params->transition_rounds)
			p->rounds++;
		begun = true;
	}
	return begun;
}

/**
 * prague_on_loss() - a loss: half, and no increase until it is repaired
 * @p: state
 * @cwnd: packets that the stack allows now
 *
 * Not below two packets, as RFC 5681 has it, by losses alone.
 */
static inline void prague_on_loss(struct prague *p, u32 cwnd)
{
	/* All of a series of them may turn out to be none. */
	if (!p->in_loss) {
		p->undo_q32 = p->window_q32;
		p->undo_slow_start = p->slow_start;
	}
	p->window_q32 = max_t(u64, min_t(u64, p->window_q32, (u64)cwnd << 32) / 2,
			      min_t(u64, p->window_q32, PRAGUE_LEAST_WINDOW * PRAGUE_ONE_Q32));
	p->slow_start = false;
	p->in_loss = true;
}

/**
 * prague_undo() - it was none: take the decrease back
 * @p: state
 */
static inline void prague_undo(struct prague *p)
{
	p->window_q32 = max_t(u64, p->window_q32, p->undo_q32);
	p->slow_start = p->undo_slow_start && !p->saw_ce;
	p->in_loss = false;
}

/**
 * prague_on_larger_mss() - packets have become larger
 * @p: state
 * @was: bytes in a packet before, not 0
 * @mss: ... and now, more
 *
 * The window in bytes stays what the path has shown to take.
 */
static inline void prague_on_larger_mss(struct prague *p, u32 was, u32 mss)
{
	/* Divided first, and by more than it is multiplied with. */
	p->window_q32 = max_t(u64, div_u64(p->window_q32, mss) * was, PRAGUE_TINY_Q32);
	p->undo_q32 = div_u64(p->undo_q32, mss) * was;
}

/**
 * prague_after_idle() - nothing was under way for more than a timeout
 * @p: state
 * @now_us: time
 * @params: operator's choice
 *
 * What was learnt before is no arrear now: the next decrease is that of one interval.
 */
static inline void prague_after_idle(struct prague *p, u64 now_us,
				     const struct prague_params *params)
{
	p->cut_us = max_t(u64, p->cut_us,
			  now_us - min_t(u64, now_us, prague_interval_us(p, params)));
}

/**
 * prague_window_cwnd() - whole packets that the window needs
 * @p: state
 *
 * The window rounded up, and one packet: what the receiver holds back for a delayed ACK.  Pacing
 * sees to the fraction, so that the stack's window must not be what holds a flow back.
 *
 * Return: packets, 2 at least.
 */
static inline u32 prague_window_cwnd(const struct prague *p)
{
	return ((p->window_q32 + PRAGUE_ONE_Q32 - 1) >> 32) + 1;
}

/**
 * prague_next_cwnd() - what the stack shall allow after an ACK
 * @p: state
 * @cwnd: packets that it allowed before
 * @acked: packets that the ACK says were delivered
 *
 * Towards the window, downwards by half of what left the network (rounded up), so that data goes
 * on to be sent while the window shrinks; upwards, after a timeout or an idle time, by all of it,
 * which is slow start.
 */
static inline u32 prague_next_cwnd(const struct prague *p, u32 cwnd, u32 acked)
{
	u32 window = prague_window_cwnd(p);

	acked = min_t(u32, acked, PRAGUE_MOST_ACKED);
	if (window < cwnd)
		return max_t(u32, window, cwnd - min_t(u32, cwnd, (acked + 1) / 2));
	return min_t(u32, window, cwnd + max_t(u32, acked, 1));
}

/**
 * prague_rate_bytes_ps() - rate to pace with
 * @p: state
 * @cwnd: packets that the stack allows
 * @mss: bytes of payload in a packet, which is what the stack counts
 *
 * The window in an RTT, and twice that in slow start. While the stack allows less than the window,
 * after a timeout or an idle time, twice that, but not more than the window. With 2^25 packets of
 * 2^16 bytes in 1 us it is 2^61: in range.
 *
 * Return: bytes/s, 1 at least.
 */
static inline u64 prague_rate_bytes_ps(const struct prague *p, u32 cwnd, u32 mss)
{
	u64 window_q32 = p->window_q32;
	u64 bytes_q8, rate_bytes_ps;
	u32 rtt_us = prague_rtt_us(p);

	if (p->slow_start)
		window_q32 *= 2;
	window_q32 = min_t(u64, window_q32, (u64)min_t(u32, cwnd, PRAGUE_MOST_CWND) << 33);
	/* 2^57 packets q32 * 2^16 bytes, as q8: 2^49 */
	bytes_q8 = mul_u64_u32_shr(window_q32, mss, 24);
	/* rather a coarse second factor than one that does not fit */
	if (bytes_q8 < 1ULL << 44)
		rate_bytes_ps = div_u64(bytes_q8 * 1000000, rtt_us) >> 8;
	else
		rate_bytes_ps = div_u64(bytes_q8, rtt_us) * (1000000 >> 8);
	return max_t(u64, rate_bytes_ps, 1);
}

/**
 * prague_burst_pkts() - packets that may go at once
 * @rate_bytes_ps: pacing rate, bytes/s
 * @mss: bytes in a packet, not 0
 *
 * Return: those of 1 / 2^12 s, 1 at least.
 */
static inline u32 prague_burst_pkts(u64 rate_bytes_ps, u32 mss)
{
	return clamp_t(u64, div_u64(rate_bytes_ps >> PRAGUE_BURST_SHIFT, mss), 1, 65535);
}

#endif /* PRAGUE_H */
