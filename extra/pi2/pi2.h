/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PI2, the algorithm: the AQM for one queue of "PI2: A Linearized AQM for both
 * Classic and Scalable TCP" (De Schepper et al., CoNEXT 2016), sections 4 and 5.
 *
 * Most of the arithmetic is DualPI2's, <net/dualpi2.h>, with one queue:
 * a PI controller for p', which is linear in the load; Scalable packets are marked
 * with p_s = k p', Classic ones are marked or dropped with p_c = p'^2 = (p_s / k)^2.
 * p' ends at 1/k, where p_s is 1 and p_c is 1/k^2, 25 % by default; beyond that the
 * queue grows up to its limit.
 *
 * Without the square, the "PI" of figure 6, p_c = p' = p_s / k, which ends at 1/k.
 *
 * Integers in, a verdict out.  It compiles in user space too.
 */
#ifndef _NET_PI2_H
#define _NET_PI2_H

#include <net/dualpi2.h>

/* Each knob's default, in the unit of the netlink ABI; its range is DualPI2's.  The
 * gains are 0.3125 Hz and 3.125 Hz, and T is 32 ms, as in the caption of figure 7;
 * the target is that of table 1.
 */
#define PI2_LIMIT_PKTS_DEF	10000U
#define PI2_TARGET_US_DEF	20000U
#define PI2_TUPDATE_US_DEF	32000U
#define PI2_ALPHA_DEF		80U
#define PI2_BETA_DEF		800U
#define PI2_COUPLING_DEF	2U

/**
 * struct pi2_config - the knobs as the user gave them
 * @limit_pkts: most packets that the queue may hold
 * @target_us: delay target of the PI controller
 * @tupdate_us: interval between updates of the PI controller
 * @alpha: integral gain, 1/256 Hz
 * @beta: proportional gain, 1/256 Hz
 * @coupling: factor k between p' and the Scalable probability
 * @signal: enum dualpi2_signal_mode
 * @ecn: ECT(0) is marked; false: dropped, as Not-ECT
 * @drop_enqueue: decide at enqueue, before the packet is queued (figure 8); false: at
 *	dequeue
 * @square: p_c = p'^2; false: p_c = p'
 */
struct pi2_config {
	u32 limit_pkts;
	u32 target_us;
	u32 tupdate_us;
	u32 alpha;
	u32 beta;
	u8 coupling;
	u8 signal;
	bool ecn;
	bool drop_enqueue;
	bool square;
};

/* The rate of departures is measured while the queue is at least as long as this, over
 * as many bytes (RFC 8033, 4.3: DQ_THRESHOLD); a new measurement counts for a half.
 */
#define PI2_DRAIN_BYTES		16384U

/**
 * struct pi2_drain - the rate of departures
 * @since_ns: when the measurement under way began; 0: none is
 * @bytes: that left since
 * @ns_per_byte_q20: time of a byte, times 2^20; 0: nothing was measured yet
 */
struct pi2_drain {
	u64 since_ns;
	u32 bytes;
	u64 ns_per_byte_q20;
};

/**
 * struct pi2_packet - what a verdict depends on
 * @ecn: codepoint that the packet came with
 * @ecn_is_on: see &pi2_config.ecn
 * @may_drop: at dequeue: another packet follows, see struct dualpi2_packet; at enqueue:
 *	true
 * @backlog_bytes: in the queue, this packet included; at enqueue it is the last one
 * @mtu_bytes: MTU with link-layer header
 * @rnd: see struct dualpi2_packet
 */
struct pi2_packet {
	enum dualpi2_ecn ecn;
	bool ecn_is_on;
	bool may_drop;
	u64 backlog_bytes;
	u32 mtu_bytes;
	u64 rnd;
};

/**
 * pi2_config_init() - the defaults
 * @cfg: to be filled
 */
static inline void pi2_config_init(struct pi2_config *cfg)
{
	*cfg = (struct pi2_config) {
		.limit_pkts = PI2_LIMIT_PKTS_DEF,
		.target_us = PI2_TARGET_US_DEF,
		.tupdate_us = PI2_TUPDATE_US_DEF,
		.alpha = PI2_ALPHA_DEF,
		.beta = PI2_BETA_DEF,
		.coupling = PI2_COUPLING_DEF,
		.signal = DUALPI2_SIGNAL_RECUR,
		.ecn = true,
		.drop_enqueue = false,
		.square = true,
	};
}

/**
 * pi2_params_init() - convert every knob once
 * @p: to be filled
 * @cfg: knobs, each within its limits
 *
 * Without drop_overload p' is held where p_s reaches 1: the caps of section 5.
 */
static inline void pi2_params_init(struct dualpi2_params *p,
				   const struct pi2_config *cfg)
{
	struct dualpi2_config core;

	dualpi2_config_init(&core);
	core.target_us = cfg->target_us;
	core.tupdate_us = cfg->tupdate_us;
	core.alpha = cfg->alpha;
	core.beta = cfg->beta;
	core.coupling = cfg->coupling;
	core.signal = cfg->signal;
	core.drop_overload = false;
	core.report_us = 0;
	dualpi2_params_init(p, &core);
}

/**
 * pi2_set_classic() - p_c = p' if the square is off
 * @cfg: options
 * @v: state
 *
 * Call this after each function of DualPI2 that changes p' or the parameters: it sets
 * p_c = p'^2.  The caps remain those of p': p' = p_c = 1/k and p_s = 1.
 */
static inline void pi2_set_classic(const struct pi2_config *cfg,
				   struct dualpi2_vars *v)
{
	if (!cfg->square)
		v->classic_q32 = v->base_q32;
}

/**
 * pi2_drain_sent() - a packet left
 * @d: the rate
 * @left_bytes: that wait behind it
 * @bytes: its length; beyond 2^24 it counts as this
 * @now_ns: time, not 0
 *
 * Division: by PI2_DRAIN_BYTES at least.
 */
static inline void pi2_drain_sent(struct pi2_drain *d, u64 left_bytes,
				  u32 bytes, u64 now_ns)
{
	u64 ns, found_q20;

	if (d->since_ns) {
		d->bytes += min_t(u32, bytes, 1U << 24);
		if (d->bytes >= PI2_DRAIN_BYTES) {
			/* 2^42 ns are 73 minutes. */
			ns = now_ns > d->since_ns ? now_ns - d->since_ns : 0;
			found_q20 = div_u64(min_t(u64, ns, 1ULL << 42) << 20,
					    d->bytes);
			d->ns_per_byte_q20 = d->ns_per_byte_q20 ?
				(d->ns_per_byte_q20 + found_q20) / 2 :
				found_q20;
			d->since_ns = 0;
		}
		if (!left_bytes)
			d->since_ns = 0;
	}
	if (!d->since_ns && left_bytes >= PI2_DRAIN_BYTES) {
		d->since_ns = now_ns;
		d->bytes = 0;
	}
}

/**
 * pi2_delay_ns() - the delay that the controller goes by
 * @d: the rate
 * @left_bytes: in the queue
 * @head_ns: age of its first packet
 *
 * What a packet that comes now will wait, which PIE, and so the paper's PI2, estimates
 * by the rate of departures.  When the link gets slower that is there at once; ages of
 * packets grow as slowly as these leave.  A short queue goes by age if that is less:
 * its rate may have been another one, but not much of a long queue's age is left then.
 *
 * Return: nanoseconds, below 2^61.
 */
static inline u64 pi2_delay_ns(const struct pi2_drain *d, u64 left_bytes,
			       u64 head_ns)
{
	u64 wait_ns = dualpi2_bytes_ns(d->ns_per_byte_q20, left_bytes);

	if (!d->ns_per_byte_q20)
		return head_ns;
	return left_bytes < PI2_DRAIN_BYTES ? min_t(u64, wait_ns, head_ns) :
					      wait_ns;
}

/**
 * pi2_profile() - what a packet is to the AQM
 * @ecn: codepoint that it came with
 * @ecn_is_on: see &pi2_config.ecn
 *
 * Section 5: ECT(1) is Scalable and all else Classic.  CE may have been either, and
 * is neither marked nor dropped, see pi2_verdict().
 */
static inline enum dualpi2_profile pi2_profile(enum dualpi2_ecn ecn,
					       bool ecn_is_on)
{
	if (ecn & DUALPI2_ECN_ECT1)
		return DUALPI2_C_SCALABLE;
	return ecn == DUALPI2_ECN_ECT0 && ecn_is_on ? DUALPI2_C_MARK :
						      DUALPI2_C_DROP;
}

/**
 * pi2_verdict() - what happens to a packet
 * @p: parameters
 * @v: state
 * @pkt: the packet
 *
 * CE is passed: it has the signal already, and uses up none of those that are due
 * to others.
 *
 * Return: DUALPI2_PASS, DUALPI2_MARK_CLASSIC, DUALPI2_MARK_COUPLED, which is that of
 * Scalable packets, or DUALPI2_DROP_AQM.
 */
static inline enum dualpi2_verdict pi2_verdict(const struct dualpi2_params *p,
					       struct dualpi2_vars *v,
					       const struct pi2_packet *pkt)
{
	const struct dualpi2_packet core = {
		.profile = pi2_profile(pkt->ecn, pkt->ecn_is_on),
		.low = dualpi2_is_low(pkt->backlog_bytes, pkt->mtu_bytes),
		.may_drop = pkt->may_drop,
		.rnd = pkt->rnd,
	};

	return pkt->ecn == DUALPI2_ECN_CE ? DUALPI2_PASS :
					    dualpi2_verdict(p, v, &core);
}

#endif /* _NET_PI2_H */
