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
 *
 * Steady state.  A round lasts R, or R_virt if that is longer; W is the window of a
 * round in packets.  Each packet is marked with probability p, independently of the
 * others.  Per round, unmarked packets increase W by 1 - p.  A flow decreases W by
 * alpha / 2 at the first mark after a round has passed since the last decrease.
 * That mark is 1 / p packets late on average, which are 1 / (p W) rounds.  With
 * alpha = p and x = p W, increase and decrease balance where
 *
 *	p W / 2 = (1 - p) (1 + 1 / (p W))	or	x^2 = 2 (1 - p) (x + 1)
 *	W = ((1 - p) + sqrt((1 - p)^2 + 2 (1 - p))) / p
 *
 * For small p this is (1 + sqrt 3) / p = 2.73 / p packets.  With 1500 bytes per 25 ms
 * it is 1.31 / p Mbit/s, where a decrease without delay has 2 (1 - p) / p packets and
 * 0.96 (1 / p - 1) Mbit/s.  The DualPI2 paper's Prague has 20.1 Mbit/s at p = 6.34 %
 * (Fig. 8, A5 : B5, Ethernet); the formula gives 19.8.  Where every 1 / p-th packet is
 * marked, a decrease comes with every second or third mark, and x^2 is 4 (1 - p) or
 * 6 (1 - p).
 *
 * Classic-ECN bottlenecks (RFC 9331, section 4.3, item 3).  An L4S queue marks as soon
 * as a packet waits, at about 1 ms.  A Classic AQM marks only where a queue stands: of
 * 5 ms for CoDel, 15 ms for PIE.  The marking probability differs less: either settles
 * at 2 to 3 marks per round.  So what tells is the queue that a marked flow sees.  A
 * look is one round or several, until it has 8 RTT samples.  For each look, in us:
 *
 *	base	shortest RTT of the connection in the last minutes
 *	stands	shortest RTT in the look, minus base
 *	marked	shortest RTT of an ACK with a mark, minus base
 *	limit	Q + 2 R / W
 *
 * Q is classic_queue_us.  2 R / W is the time in which the flow sends two packets: the
 * residual time and the serialization time that a slow link has without a queue.  A look
 * with a mark is Classic if stands >= limit.  One packet that waited less is enough to
 * say that no queue stands, so that jitter is none.  Otherwise a look is L4S if
 * marked < Q: a Classic AQM marks no packet that has waited less.  Any other says nothing.
 *
 * A score, 0 to 2 N, counts Classic looks up and L4S looks down.  The response becomes
 * Reno's at N (classic_looks), and Prague's again at 0.  So a change takes N looks more
 * of its kind than of the other, and cannot flap.  Reno's response: R is the round, W is
 * halved at the first mark in a round, and increases by a step per round.
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
/* With late_cut: maximum number of intervals that one decrease accounts for */
#define PRAGUE_LATE_MOST	4
/*
 * Additive increase per round: payload of a 1500-byte packet of IPv4 with TCP
 * timestamps, bytes; and the most packets that this may be.
 */
#define PRAGUE_STEP_BYTES	1448
#define PRAGUE_MOST_STEP	8

/* Classic-ECN detection: default parameters, see struct prague_params */
#define PRAGUE_CLASSIC_QUEUE_US	3000
#define PRAGUE_CLASSIC_LOOKS	8
#define PRAGUE_CLASSIC_LOOKS_MOST	127
/* ... and RTT samples that a look needs at least */
#define PRAGUE_LOOK_SAMPLES	8

#define PRAGUE_ONE_Q32		(1ULL << 32)

/* What the operator may choose, module parameters: those of the draft's values that it leaves
 * open.
 */
struct prague_params {
	u32 rtt_virt_us;	/* RTT that shorter ones are taken for; 0: none is */
	u32 transition_rounds;	/* after slow start, until then */
	bool late_cut;		/* a late decrease is larger, see prague_cut() */
	u32 least_rate_bytes_ps;	/* bytes/s that marks do not push it below */
	u32 classic_queue_us;	/* Q: minimum standing queue of a Classic AQM; 0: no detection */
	u32 classic_looks;	/* N: score at which the response becomes Reno's, 1 to 127 */
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
	u32 look_floor_us;	/* shortest RTT of this look; U32_MAX: no sample */
	u32 look_marked_us;	/* ... of the ACKs with a mark */
	bool slow_start;	/* the first one: no mark or loss was seen */
	bool undo_slow_start;	/* was it, before the last loss? */
	bool in_loss;		/* a loss is being repaired */
	bool saw_ce;
	bool look_has_ce;	/* a mark came in this look */
	bool is_classic;	/* response to marks is Reno's */
	u8 look_samples;	/* RTT samples of this look, at most PRAGUE_LOOK_SAMPLES */
	u8 classic_score;	/* 0 to twice classic_looks */
};

/* One ACK, as the kernel counts it. */
struct prague_ack {
	u64 now_us;
	u32 delivered;		/* packets delivered since the connection began */
	u32 ce;			/* packets that came marked since then, as the peer tells */
	u32 acked;		/* packets that this ACK says were delivered */
	s32 rtt_us;		/* of the last of them; 0 or less: not known */
	u32 least_rtt_us;	/* of the path in the last minutes; U32_MAX: not known */
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

/* Has the transition after slow start ended?  At a Classic bottleneck it does not. */
static inline bool prague_is_past_transition(const struct prague *p,
					     const struct prague_params *params)
{
	return !p->slow_start && !p->is_classic && p->rounds >= params->transition_rounds;
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
	return prague_is_past_transition(p, params) &&
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
		.look_floor_us = U32_MAX,
		.look_marked_us = U32_MAX,
		.slow_start = slow_start,
	};
}

/* @window_q32 * @to / @from, at most PRAGUE_MOST_CWND packets; @from and @to are not 0. */
static inline u64 prague_scale(u64 window_q32, u32 to, u32 from)
{
	u64 most_q32 = PRAGUE_MOST_CWND * PRAGUE_ONE_Q32;

	if (div_u64(window_q32, from) >= div_u64(most_q32, to))
		return most_q32;
	return mul_u64_u32_div(window_q32, to, from);
}

/*
 * The first sample is taken as it is, each further one by 1/8, as RFC 6298 has it.
 *
 * A flow that is independent of its RTT keeps its rate, W / R, while R changes below
 * R_virt: the window changes in proportion.  A constant window would make the rate
 * depend on the queue again, and differently for each base RTT.
 */
static inline void prague_add_rtt(struct prague *p, const struct prague_params *params,
				  s32 rtt_us)
{
	u32 virt_us8 = params->rtt_virt_us * 8;
	u32 was_us8 = p->rtt_us8;
	u32 sample_us, from, to;

	if (rtt_us <= 0)
		return;
	sample_us = min_t(u32, rtt_us, PRAGUE_RTT_MOST_US);
	if (!was_us8) {
		p->rtt_us8 = sample_us * 8;
		return;
	}
	p->rtt_us8 += sample_us - (was_us8 >> 3);
	from = min_t(u32, was_us8, virt_us8);
	to = min_t(u32, p->rtt_us8, virt_us8);
	if (from == to || !prague_is_past_transition(p, params))
		return;
	p->window_q32 = max_t(u64, prague_scale(p->window_q32, to, from), PRAGUE_TINY_Q32);
	p->undo_q32 = prague_scale(p->undo_q32, to, from);
}

/*
 * Additive increase for @acked packets without a mark: W += acked * ai / W with
 * ai = step, or step * (R / R_virt)^2, so that the rate grows by a step per R_virt
 * each R_virt.  The step is PRAGUE_STEP_BYTES, in packets of @mss bytes, so that the
 * rate does not depend on the MSS.  Each acknowledged packet adds one packet per
 * round at most: W is taken for step * R / R_virt at least.
 *
 * step <= 2^3 and acked < 2^15, so that the dividend is below 2^63; the divisor is at
 * least 2^5, as the window is 2^24 at least.
 */
static inline void prague_increase(struct prague *p, const struct prague_params *params,
				   u32 acked, u32 mss)
{
	u32 step_q24 = div_u64((u64)PRAGUE_STEP_BYTES << 24,
			       max_t(u32, mss, PRAGUE_STEP_BYTES / PRAGUE_MOST_STEP));
	u64 least_q32 = (u64)step_q24 << 8, ai_q32 = least_q32;

	if (prague_is_rtt_independent(p, params)) {
		/* Below 1, because the RTT is the shorter one. */
		u32 ratio_q32 = div_u64((u64)prague_rtt_us(p) << 32, params->rtt_virt_us);

		least_q32 = mul_u64_u32_shr(least_q32, ratio_q32, 32);
		ai_q32 = mul_u64_u32_shr(least_q32, ratio_q32, 32);
	}
	p->window_q32 += div64_u64(acked * ai_q32 << 13,
				   (max_t(u64, p->window_q32, least_q32) + (1 << 19) - 1) >> 19);
}

/*
 * Multiplicative decrease by marks: W *= 1 - alpha / 2, once an interval.
 *
 * @late is for experiments.  It makes a decrease in proportion to the time since the
 * last one, for PRAGUE_LATE_MOST intervals at most, so that a flow settles at
 * 2 (1 - p) / p packets whenever its marks come.  Such a flow starves next to an L4S
 * flow that decreases once per round.
 */
static inline void prague_cut(struct prague *p, u64 now_us, u32 interval_us, bool late)
{
	u32 half_q20 = p->alpha_q24 >> (PRAGUE_GAIN_SHIFT + 1);
	/* interval_us is at most 2^24 */
	u32 due_us = min_t(u64, now_us - p->cut_us,
			   (late ? PRAGUE_LATE_MOST : 1) * interval_us);

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
 * prague_look() - RTT and marks of one ACK
 * @p: state
 * @rtt_us: us; 0 or less: not known
 * @ce: does the ACK report a mark?
 */
static inline void prague_look(struct prague *p, s32 rtt_us, bool ce)
{
	p->look_has_ce |= ce;
	if (rtt_us <= 0)
		return;
	p->look_floor_us = min_t(u32, p->look_floor_us, rtt_us);
	if (ce)
		p->look_marked_us = min_t(u32, p->look_marked_us, rtt_us);
	p->look_samples = min_t(u32, p->look_samples + 1, PRAGUE_LOOK_SAMPLES);
}

/* Q + 2 R / W.  R is below 2^24 us and W at least 2^24, q32: the dividend is below 2^57. */
static inline u64 prague_classic_limit_us(const struct prague *p,
					  const struct prague_params *params)
{
	return params->classic_queue_us +
	       div64_u64((u64)prague_rtt_us(p) << 33, max_t(u64, p->window_q32, PRAGUE_TINY_Q32));
}

/* us by which @rtt_us exceeds @least_us; U32_MAX, for no sample, stays */
static inline u32 prague_above_us(u32 rtt_us, u32 least_us)
{
	return rtt_us == U32_MAX ? U32_MAX : rtt_us - min_t(u32, rtt_us, least_us);
}

/**
 * prague_end_look() - end of a round: score the look if it has enough samples
 * @p: state
 * @params: operator's choice
 * @least_rtt_us: shortest RTT of the path, us; U32_MAX: not known
 *
 * The head of this file has the rule.
 */
static inline void prague_end_look(struct prague *p, const struct prague_params *params,
				   u32 least_rtt_us)
{
	u32 score = p->classic_score;

	if (p->look_samples < PRAGUE_LOOK_SAMPLES)
		return;
	if (!params->classic_queue_us)
		score = 0;
	else if (p->look_has_ce &&
		 prague_above_us(p->look_floor_us, least_rtt_us) >=
		 prague_classic_limit_us(p, params))
		score++;
	else if (prague_above_us(p->look_marked_us, least_rtt_us) < params->classic_queue_us)
		score -= !!score;
	p->classic_score = min_t(u32, score, 2 * params->classic_looks);
	p->is_classic = p->classic_score &&
			(p->is_classic || p->classic_score >= params->classic_looks);
	p->look_floor_us = U32_MAX;
	p->look_marked_us = U32_MAX;
	p->look_has_ce = false;
	p->look_samples = 0;
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

	prague_add_rtt(p, params, ack->rtt_us);
	p->seen_ce = ack->ce;
	prague_look(p, ack->rtt_us, ce);
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
		if (p->is_classic) {
			p->window_q32 /= 2;
			p->cut_us = ack->now_us;
		} else {
			prague_cut(p, ack->now_us, interval_us, params->late_cut);
		}
	}

	if (acked && ack->limited && !p->in_loss) {
		if (p->slow_start)
			p->window_q32 += (u64)acked << 32;
		else
			prague_increase(p, params, acked, mss);
	}
	p->window_q32 = clamp_t(u64, p->window_q32,
				prague_least_window_q32(p, params, mss),
				(u64)clamp_t(u32, cwnd_most, PRAGUE_LEAST_WINDOW,
					     PRAGUE_MOST_CWND) << 32);

	if (ack->round_ended && (!prague_is_rtt_independent(p, params) ||
				 ack->now_us - p->round_us >= interval_us)) {
		prague_end_round(p, ack);
		prague_end_look(p, params, ack->least_rtt_us);
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
