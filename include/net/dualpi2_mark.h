/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the verdict on a packet (RFC 9332 A.1 figure 5): queue and profile by
 * codepoint, the native L4S marker, evenly spaced signals.
 */
#ifndef _NET_DUALPI2_MARK_H
#define _NET_DUALPI2_MARK_H

#include <net/dualpi2_burst.h>
#include <net/dualpi2_pi.h>

/* Maximum number of packets that one dequeue drops before it forwards one.  It limits
 * the time for which a call holds the lock.  64 of 65 is a drop probability of 98.5 %,
 * reached at an arrival rate of 65 times the link rate.
 */
#define DUALPI2_DROPS_PER_DEQUEUE	64U

/* How the AQM treats a packet, by queue and codepoint (RFC 9332 2.5.1.1). */
enum dualpi2_profile {
	DUALPI2_C_DROP,		/* drop, Classic probability */
	DUALPI2_C_MARK,		/* mark, Classic probability */
	DUALPI2_C_SCALABLE,	/* mark, coupled probability */
	DUALPI2_L_SCALABLE,	/* mark, max(native, coupled) */
	DUALPI2_L_MARK,		/* mark, square of the above over k */
	DUALPI2_L_DROP,		/* drop, square of the above over k */
	DUALPI2_L_UNMARKED,	/* no signal outside overload */
};

enum dualpi2_verdict {
	DUALPI2_PASS,
	DUALPI2_MARK_CLASSIC,
	DUALPI2_MARK_COUPLED,
	DUALPI2_MARK_NATIVE,
	DUALPI2_DROP_AQM,
	DUALPI2_DROP_OVERLOAD,
	DUALPI2_UNDECIDED
};

/**
 * struct dualpi2_packet - input of a verdict
 * @profile: from dualpi2_profile()
 * @native_ok: result of dualpi2_native_ok() at enqueue; with a shaper, at dequeue
 * @low: backlog of both queues below two MTU, see dualpi2_is_low()
 * @shared: the Classic queue has a backlog
 * @spared: no overload drop in the L4S queue: queue protection redirects flows, and the
 *	delay is at most the critical one
 * @may_drop: another packet follows.  The last packet is never dropped: otherwise a
 *	parent would see its child become empty during dequeue
 * @l_pkts: packets in the L4S queue, this one included
 * @delay_ns: input of the native marker: the packet's sojourn time; with a shaper,
 *	the serialization time of the L4S packets after it
 * @rnd: 64 uniform random bits for random signals; otherwise any value, which only
 *	perturbs the dither
 */
struct dualpi2_packet {
	enum dualpi2_profile profile;
	bool native_ok;
	bool low;
	bool shared;
	bool spared;
	bool may_drop;
	u32 l_pkts;
	u64 delay_ns;
	u64 rnd;
};

/**
 * dualpi2_over_k_square_q32() - (p/k)^2, the Classic equivalent of a scalable signal
 * @p: parameters
 * @p_q32: 0..1, probability of a scalable signal
 *
 * RFC 9332 equation (1).  The lowest bit of @p_q32 is ignored, so that the product is at
 * most 2^63.
 */
static inline u64 dualpi2_over_k_square_q32(const struct dualpi2_params *p,
					    u64 p_q32)
{
	return dualpi2_square_q32((p_q32 >> 1) * p->inv_coupling_q32 >> 31);
}

/**
 * dualpi2_no_signal() - does the packet surely get no signal?
 * @p: parameters
 * @v: state
 * @queue: the packet's queue
 * @sojourn_ns: its sojourn time
 * @left_bytes: backlog of @queue after this packet
 *
 * If true, dualpi2_verdict() would return DUALPI2_PASS for each @native_ok, @low and
 * profile, and need not be called.  With a shaper the native marker's input is the
 * sojourn time or the time of @left_bytes, so both are checked.  With drop_early it is
 * always true for the Classic queue, because enqueue has already decided.
 */
static inline bool dualpi2_no_signal(const struct dualpi2_params *p,
				     const struct dualpi2_vars *v,
				     enum dualpi2_queue queue, u64 sojourn_ns,
				     u64 left_bytes)
{
	u64 no_signal_below_ns = v->no_signal_below_ns[queue];

	if (sojourn_ns >= no_signal_below_ns)
		return false;
	/* The product is below 2^62. */
	return queue == DUALPI2_QUEUE_C || !p->link.ns_per_byte_q20 ||
	       (left_bytes <= DUALPI2_LINK_BYTES_MAX &&
		left_bytes * p->link.ns_per_byte_q20 >> 20 < no_signal_below_ns);
}

/* Does @p_q32 complete a credit of 1, with the dither? */
static inline bool dualpi2_is_whole(const struct dualpi2_accumulator *s, u64 p_q32)
{
	return s->credit_q32 + (s64)p_q32 + (s32)s->dither_q32 >=
	       (s64)DUALPI2_ONE_Q32;
}

/**
 * dualpi2_accumulate() - does this packet get the signal?
 * @s: state of the stream of packets
 * @p_q32: probability, 0..1
 * @random: decide by @rnd instead
 * @rnd: uniform random number; any number if not @random
 *
 * recur() of RFC 9332 A.1: each packet adds its probability to the credit, and a signal
 * is due whenever the credit reaches 1.  The threshold is dithered by up to +-1/2, so
 * that signals do not lock onto a pattern of arrivals.  With less dither and three flows
 * that take turns, some flow would never get a signal at p = 1/3.  The first n packets
 * get n * p - 3/2 to n * p + 1/2 signals, and credit_q32 stays within -1/2..3/2.  The
 * dither is a linear congruential sequence of period 2^32, perturbed by @rnd.
 */
static inline bool dualpi2_accumulate(struct dualpi2_accumulator *s, u64 p_q32,
				      bool random, u32 rnd)
{
	if (!p_q32)
		return false;
	if (p_q32 >= DUALPI2_ONE_Q32)
		return true;
	if (random)
		return rnd < p_q32;
	if (!dualpi2_is_whole(s, p_q32)) {
		s->credit_q32 += (s64)p_q32;
		return false;
	}
	s->credit_q32 += (s64)p_q32 - (s64)DUALPI2_ONE_Q32;
	s->dither_q32 = s->dither_q32 * 1664525U + 1013904223U + rnd;
	return true;
}

/**
 * dualpi2_profile() - how the AQM treats a packet
 * @cfg: options
 * @queue: the packet's queue
 * @ecn: its codepoint
 * @unmarked: classified as "L4S queue, leave unmarked" (NQB, class 3)
 *
 * RFC 9332 2.5.1.1 and RFC 9331 5.4.  A codepoint that the mask sends to the L4S queue
 * is scalable there.  ECT(1) and CE are also scalable in the Classic queue, so that
 * they are not marked with the Classic probability.
 */
static inline enum dualpi2_profile
dualpi2_profile(const struct dualpi2_config *cfg, enum dualpi2_queue queue,
		enum dualpi2_ecn ecn, bool unmarked)
{
	if (queue == DUALPI2_QUEUE_L) {
		if (unmarked)
			return DUALPI2_L_UNMARKED;
		if (ecn == DUALPI2_ECN_NOT_ECT ||
		    (ecn == DUALPI2_ECN_ECT1 && !cfg->l4s))
			return DUALPI2_L_DROP;
		return cfg->l4s && (ecn == DUALPI2_ECN_ECT1 ||
				    (ecn & cfg->ecn_mask)) ?
		       DUALPI2_L_SCALABLE : DUALPI2_L_MARK;
	}
	if (ecn == DUALPI2_ECN_NOT_ECT)
		return DUALPI2_C_DROP;
	if (ecn == DUALPI2_ECN_ECT0)
		return DUALPI2_C_MARK;
	if (cfg->l4s)
		return DUALPI2_C_SCALABLE;
	return ecn == DUALPI2_ECN_ECT1 ? DUALPI2_C_DROP : DUALPI2_C_MARK;
}

/**
 * dualpi2_queue_of_ecn() - queue for a codepoint, without filter, class or DSCP
 * @cfg: options
 * @ecn: codepoint
 *
 * RFC 9332 2.5.1, RFC 9331 5.1: ECT(1) and CE to L4S.
 */
static inline enum dualpi2_queue
dualpi2_queue_of_ecn(const struct dualpi2_config *cfg, enum dualpi2_ecn ecn)
{
	return cfg->l4s && (ecn & cfg->ecn_mask) ? DUALPI2_QUEUE_L :
						   DUALPI2_QUEUE_C;
}

/**
 * dualpi2_is_nqb() - does the DSCP select the L4S queue?
 * @cfg: options
 * @ecn: codepoint
 * @dscp: 0..63
 *
 * Used if no filter or class decides.  The DSCP does not change how ECT(1) and CE are
 * treated (RFC 9956).
 */
static inline bool dualpi2_is_nqb(const struct dualpi2_config *cfg,
				  enum dualpi2_ecn ecn, u32 dscp)
{
	return (cfg->nqb >> (dscp & 63) & 1) && !(ecn & DUALPI2_ECN_ECT1) &&
	       dualpi2_queue_of_ecn(cfg, ecn) == DUALPI2_QUEUE_C;
}

/**
 * dualpi2_native_ok() - may the native marker mark this packet?
 * @p: parameters
 * @l_pkts: packets in the L4S queue, this one included
 *
 * Evaluated at enqueue, as RFC 9332 A.1 advises: at dequeue the last packet of a burst
 * would never be marked.  With a shaper it is evaluated at dequeue, because the native
 * marker's input is then the backlog after the packet, which is longest for the first.
 */
static inline bool dualpi2_native_ok(const struct dualpi2_params *p, u32 l_pkts)
{
	return l_pkts >= p->floor_pkts;
}

/**
 * dualpi2_tolerate() - set the burst tolerance of the native marker
 * @p: parameters
 * @v: state
 * @burst_ns: tolerance: serialization time of a burst
 *
 * If a burst meets an empty queue, its last packet waits for @burst_ns.  The ramp begins
 * at @burst_ns or later and is at least @burst_ns / 4 wide.  A tolerance of up to
 * DUALPI2_BURST_MIN_NS changes nothing: each fast Linux flow sends segments of up to a
 * millisecond (tcp_tso_autosize()).
 */
static inline void dualpi2_tolerate(const struct dualpi2_params *p,
				    struct dualpi2_vars *v, u32 burst_ns)
{
	u32 width_ns = max_t(u32, p->ramp.max_ns - p->ramp.min_ns,
			     burst_ns / 4);

	if (burst_ns <= max_t(u32, p->ramp.min_ns, DUALPI2_BURST_MIN_NS)) {
		v->ramp = p->ramp;
		v->shared_ramp = p->shared_ramp;
	} else {
		dualpi2_ramp_init(&v->ramp, burst_ns,
				  min_t(u64, (u64)burst_ns + width_ns,
					U32_MAX));
		v->shared_ramp = v->ramp;
	}
	dualpi2_set_no_signal(p, v);
}

/**
 * dualpi2_ramp_q32() - probability on a ramp
 * @ramp: delays where it marks no packet and every packet
 * @delay_ns: see struct dualpi2_packet
 *
 * Within the ramp the difference is below 2^32, and the slope is 2^48 divided by the
 * width, rounded down.
 */
static inline u64 dualpi2_ramp_q32(const struct dualpi2_ramp *ramp, u64 delay_ns)
{
	if (delay_ns <= ramp->min_ns)
		return 0;
	if (delay_ns >= ramp->max_ns)
		return DUALPI2_ONE_Q32;
	return (delay_ns - ramp->min_ns) * ramp->slope >> 16;
}

/**
 * dualpi2_native_q32() - probability of the native L4S marker
 * @p: parameters
 * @ramp: delays where it marks no packet and every packet
 * @delay_ns: see struct dualpi2_packet
 * @l_pkts: packets in the L4S queue, this one included
 *
 * laqm() of RFC 9332 A.1, or a step if the ramp's width is 0.
 */
static inline u64 dualpi2_native_q32(const struct dualpi2_params *p,
				     const struct dualpi2_ramp *ramp,
				     u64 delay_ns, u32 l_pkts)
{
	if (p->step_pkts != U32_MAX)
		return l_pkts > p->step_pkts ? DUALPI2_ONE_Q32 : 0;
	return dualpi2_ramp_q32(ramp, delay_ns);
}

/**
 * dualpi2_is_low() - is the backlog too short for coupled and Classic signals?
 * @backlog_bytes: of both queues, the packet included
 * @mtu_bytes: MTU with link-layer header
 */
static inline bool dualpi2_is_low(u64 backlog_bytes, u32 mtu_bytes)
{
	return backlog_bytes < 2ULL * min_t(u32, mtu_bytes,
					    DUALPI2_LOW_MTU_BYTES);
}

/* Drops and marks use different halves of a packet's random bits. */
static inline bool dualpi2_hit_drop(const struct dualpi2_params *p,
				    const struct dualpi2_packet *pkt,
				    struct dualpi2_accumulator *s, u64 p_q32)
{
	return pkt->may_drop &&
	       dualpi2_accumulate(s, p_q32, p->random, (u32)pkt->rnd);
}

static inline bool dualpi2_hit_mark(const struct dualpi2_params *p,
				    const struct dualpi2_packet *pkt,
				    struct dualpi2_accumulator *s, u64 p_q32)
{
	return dualpi2_accumulate(s, p_q32, p->random, pkt->rnd >> 32);
}

/* The Classic queue's part of dualpi2_verdict(). */
static __always_inline enum dualpi2_verdict
dualpi2_c_verdict(const struct dualpi2_params *p, struct dualpi2_vars *v,
		  const struct dualpi2_packet *pkt)
{
	bool shed = dualpi2_sheds(p, v);

	if (pkt->low || !v->base_q32)
		return DUALPI2_PASS;
	if (shed && dualpi2_hit_drop(p, pkt, &v->c_signal, v->classic_q32))
		return DUALPI2_DROP_OVERLOAD;
	if (pkt->profile == DUALPI2_C_SCALABLE)
		return dualpi2_hit_mark(p, pkt, &v->c_scalable,
					v->coupled_q32) ?
		       DUALPI2_MARK_COUPLED : DUALPI2_PASS;
	if (shed)
		return DUALPI2_PASS;
	if (pkt->profile == DUALPI2_C_DROP)
		return dualpi2_hit_drop(p, pkt, &v->c_signal, v->classic_q32) ?
		       DUALPI2_DROP_AQM : DUALPI2_PASS;
	return dualpi2_hit_mark(p, pkt, &v->c_signal, v->classic_q32) ?
	       DUALPI2_MARK_CLASSIC : DUALPI2_PASS;
}

/* The L4S queue's part of dualpi2_verdict(). */
static __always_inline enum dualpi2_verdict
dualpi2_l_verdict(const struct dualpi2_params *p, struct dualpi2_vars *v,
		  const struct dualpi2_packet *pkt)
{
	bool shed = !pkt->low && !pkt->spared && dualpi2_sheds(p, v);
	u64 coupled_q32 = pkt->low ? 0 : v->coupled_q32;
	const struct dualpi2_ramp *ramp = pkt->shared ? &v->shared_ramp :
							&v->ramp;
	u64 native_q32 = pkt->native_ok ?
		dualpi2_native_q32(p, ramp, pkt->delay_ns, pkt->l_pkts) : 0;
	u64 l_q32 = max_t(u64, native_q32, coupled_q32);

	if (shed && dualpi2_hit_drop(p, pkt, &v->l_drop, v->classic_q32))
		return DUALPI2_DROP_OVERLOAD;
	if (!l_q32 || pkt->profile == DUALPI2_L_UNMARKED)
		return DUALPI2_PASS;
	if (pkt->profile == DUALPI2_L_SCALABLE) {
		if (!dualpi2_hit_mark(p, pkt, &v->l_mark, l_q32))
			return DUALPI2_PASS;
		return native_q32 > coupled_q32 ? DUALPI2_MARK_NATIVE :
						  DUALPI2_MARK_COUPLED;
	}
	if (shed)
		return DUALPI2_PASS;
	/* The drop would not relieve the Classic queue of redirected flows. */
	if (pkt->spared && pkt->profile == DUALPI2_L_DROP)
		l_q32 = native_q32;
	l_q32 = dualpi2_over_k_square_q32(p, l_q32);
	if (pkt->profile == DUALPI2_L_DROP)
		return dualpi2_hit_drop(p, pkt, &v->l_classic, l_q32) ?
		       DUALPI2_DROP_AQM : DUALPI2_PASS;
	return dualpi2_hit_mark(p, pkt, &v->l_classic, l_q32) ?
	       DUALPI2_MARK_CLASSIC : DUALPI2_PASS;
}

/**
 * dualpi2_verdict() - pass, mark or drop a packet
 * @p: parameters
 * @v: state
 * @pkt: the packet
 *
 * RFC 9332 A.1 figure 5 with 2.5.1.1.  In overload, packets of all codepoints in both
 * queues are dropped with the Classic probability.  The remaining scalable packets are
 * marked as without overload, the remaining Classic packets are not marked.
 */
static inline enum dualpi2_verdict
dualpi2_verdict(const struct dualpi2_params *p, struct dualpi2_vars *v,
		const struct dualpi2_packet *pkt)
{
	return pkt->profile <= DUALPI2_C_SCALABLE ?
	       dualpi2_c_verdict(p, v, pkt) : dualpi2_l_verdict(p, v, pkt);
}

/**
 * dualpi2_verdict_fast() - dualpi2_verdict() for the frequent cases, pass and mark
 * @p: parameters
 * @v: state
 * @queue: the packet's queue, a constant
 * @pkt: the packet
 *
 * Decides for Classic packets in the Classic queue and scalable packets in the L4S queue,
 * if @v->may_pass.
 *
 * Return: the verdict; DUALPI2_UNDECIDED: the state has not changed, and
 * dualpi2_verdict() decides.
 */
static __always_inline enum dualpi2_verdict
dualpi2_verdict_fast(const struct dualpi2_params *p, struct dualpi2_vars *v,
		     enum dualpi2_queue queue, const struct dualpi2_packet *pkt)
{
	u64 coupled_q32, native_q32 = 0;

	if (pkt->delay_ns < v->no_signal_below_ns[queue])
		return DUALPI2_PASS;
	if (!v->may_pass)
		return DUALPI2_UNDECIDED;
	if (queue == DUALPI2_QUEUE_C) {
		if (pkt->low)
			return DUALPI2_PASS;
		if (pkt->profile > DUALPI2_C_MARK ||
		    (pkt->profile == DUALPI2_C_DROP &&
		     (!pkt->may_drop || v->classic_q32 >= DUALPI2_ONE_Q32 ||
		      dualpi2_is_whole(&v->c_signal, v->classic_q32))))
			return DUALPI2_UNDECIDED;
		return dualpi2_accumulate(&v->c_signal, v->classic_q32, false,
					  pkt->rnd >> 32) ?
		       DUALPI2_MARK_CLASSIC : DUALPI2_PASS;
	}
	if (pkt->profile != DUALPI2_L_SCALABLE)
		return DUALPI2_UNDECIDED;
	coupled_q32 = pkt->low ? 0 : v->coupled_q32;
	if (pkt->native_ok)
		native_q32 = dualpi2_native_q32(p, pkt->shared ?
						   &v->shared_ramp : &v->ramp,
						pkt->delay_ns, pkt->l_pkts);
	if (!dualpi2_accumulate(&v->l_mark, max_t(u64, native_q32, coupled_q32),
				false, pkt->rnd >> 32))
		return DUALPI2_PASS;
	return native_q32 > coupled_q32 ? DUALPI2_MARK_NATIVE :
					  DUALPI2_MARK_COUPLED;
}

#endif /* _NET_DUALPI2_MARK_H */
