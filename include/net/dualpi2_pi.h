/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the PI controller (RFC 9332 A.1 figure 6, and "PI2"), and the probabilities of
 * both queues:
 *
 *   p'   += alpha * (delay - target) + beta * (delay - previous delay)
 *   p_C   = p'^2		Classic
 *   p_CL  = k * p'		L4S, coupled
 */
#ifndef _NET_DUALPI2_PI_H
#define _NET_DUALPI2_PI_H

#include <net/dualpi2_overload.h>

/* Below about 1 Mbit/s the serialization time T of one packet exceeds the target,
 * and a TCP flow keeps at least two packets in flight.  The effective target is
 * therefore at least 2.5 T - target.  Both are equal at T = 0.8 target: with the
 * default of 15 ms at 1 Mbit/s.
 */
#define DUALPI2_SLOW_HALF_PKTS		5U

/* A late update counts for at most this many periods (128 ms by default, which
 * is more than the RTT_max of RFC 9332 that the gains are stable for).
 */
#define DUALPI2_LATE_MAX_RATIO		(8U << 16)

/* Longer than any delay: 146 years. */
#define DUALPI2_NO_SIGNAL_MAX_NS		(1ULL << 62)

/* At p' = 0 there are no signals in the Classic queue, no coupled marks, and no native
 * marks below the ramp.
 */
static inline void dualpi2_set_no_signal(const struct dualpi2_params *p,
					 struct dualpi2_vars *v)
{
	u32 ramp_ns = min_t(u32, v->ramp.min_ns, v->shared_ramp.min_ns);

	v->may_pass = !p->random && !dualpi2_sheds(p, v);
	v->no_signal_below_ns[DUALPI2_QUEUE_C] = p->drop_early || !v->base_q32 ?
				       DUALPI2_NO_SIGNAL_MAX_NS : 0;
	v->no_signal_below_ns[DUALPI2_QUEUE_L] = !v->base_q32 && p->step_pkts == U32_MAX ?
				       ramp_ns + 1ULL : 0;
}

/* Compute what depends on p', the parameters and the time of the last update. */
static inline void dualpi2_probabilities(const struct dualpi2_params *p,
					 struct dualpi2_vars *v)
{
	/* Without drop in overload, p' stays at the threshold and the delay grows
	 * up to the limit (RFC 9332 4.2.3).
	 */
	if (!p->drop_overload && v->base_q32 > p->enter_q32)
		v->base_q32 = p->enter_q32;

	v->classic_q32 = dualpi2_square_q32(v->base_q32);
	v->coupled_q32 = min_t(u64, v->base_q32 * p->coupling, DUALPI2_ONE_Q32);
	v->due_ns = v->updated_ns + p->tupdate_ns;
	dualpi2_set_no_signal(p, v);
}

/**
 * dualpi2_vars_derive() - probabilities of both queues from p'
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * Call this when p' or the parameters changed.  k * p' is below 2^40.
 */
static inline void dualpi2_vars_derive(const struct dualpi2_params *p,
				       struct dualpi2_vars *v, u64 now_ns)
{
	dualpi2_probabilities(p, v);
	dualpi2_overload_update(p, v, v->base_q32 >= p->enter_q32, now_ns,
				now_ns);
}

/**
 * dualpi2_vars_init() - the initial state, also at reset
 * @p: parameters
 * @v: state; the overload statistics and the effective target are kept, a present
 *	overload ends
 * @mtu_bytes: MTU with link-layer header
 * @now_ns: time
 */
static inline void dualpi2_vars_init(const struct dualpi2_params *p,
				     struct dualpi2_vars *v, u32 mtu_bytes,
				     u64 now_ns)
{
	if (v->overload)
		dualpi2_overload_end(v, v->overload_below_ns ?: now_ns);
	*v = (struct dualpi2_vars) {
		.updated_ns = now_ns,
		.target_ns = v->target_ns,
		.delay_scale_q32 = v->delay_scale_q32,
		.packet_ns = v->packet_ns,
		.credit = dualpi2_credit_start(p, mtu_bytes),
		.credit_start = dualpi2_credit_start(p, mtu_bytes),
		.ramp = p->ramp,
		.shared_ramp = p->shared_ramp,
		.overload_count = v->overload_count,
		.overload_since_ns = v->overload_since_ns,
		.overload_last_ns = v->overload_last_ns,
		.overload_total_ns = v->overload_total_ns,
		.report = v->report,
	};
	dualpi2_probabilities(p, v);
}

/**
 * dualpi2_set_target() - effective target for the rate of the link
 * @p: parameters
 * @v: state
 * @ns_per_byte_q20: of the link; 0: not known
 * @mtu_bytes: MTU with link-layer header
 *
 * See DUALPI2_SLOW_HALF_PKTS and DUALPI2_OVERLOAD_PKTS.  The rate of the link is known
 * after a backlog of a few packets; overload does not begin before that.
 * If the user set p_Cmax, overload begins there at any delay.
 *
 * The gains fall as the target rises: a signal takes effect after one round trip, and
 * that grows by the same factor.  Scaling the delay by s has both effects:
 * alpha * s * (delay - target / s) = alpha * (s * delay - target).
 */
static inline void dualpi2_set_target(const struct dualpi2_params *p,
				      struct dualpi2_vars *v,
				      u64 ns_per_byte_q20, u32 mtu_bytes)
{
	u64 packet_ns = dualpi2_bytes_ns(ns_per_byte_q20,
					 min_t(u32, mtu_bytes,
					       DUALPI2_LOW_MTU_BYTES));
	u64 need_ns = packet_ns * DUALPI2_SLOW_HALF_PKTS / 2;

	v->packet_ns = p->overload_at_once ? 0 :
		       ns_per_byte_q20 ? min_t(u64, packet_ns, U32_MAX) :
					 U32_MAX;
	v->target_ns = p->target_ns;
	v->delay_scale_q32 = 0;
	if (need_ns <= 2ULL * p->target_ns)
		return;
	v->target_ns = min_t(u64, need_ns - p->target_ns, U32_MAX);
	v->delay_scale_q32 = div_u64((u64)p->target_ns << 32, v->target_ns);
}

/* Input of the controller: the scaled delay, at most U32_MAX. */
static inline u32 dualpi2_scaled_ns(const struct dualpi2_vars *v, u64 delay_ns)
{
	if (v->delay_scale_q32)
		delay_ns = mul_u64_u32_shr(delay_ns, v->delay_scale_q32, 32);
	return min_t(u64, delay_ns, U32_MAX);
}

/**
 * dualpi2_pi_step() - one step of the PI controller
 * @p: parameters
 * @v: state
 * @delay_ns: queueing delay; longer ones count as U32_MAX
 * @ratio: elapsed time in units of tupdate, times 2^16
 *
 * RFC 9332 A.1 figure 6: p' += alpha * (delay - target) + beta * (delay - prev).
 * Alpha is the gain per period, so the integral term scales with the elapsed time;
 * the proportional term does not depend on time.  The terms are added in 64 bits and
 * the sum is clamped last: the integral term is below 2^58, and below 2^61 after it is
 * scaled by up to DUALPI2_LATE_MAX_RATIO.  Larger ratios occur only with a delay of 0.
 * Then no term is positive, and a term of -2^44, 4096 times the range of p', already
 * takes p' to 0.
 */
static inline void dualpi2_pi_step(const struct dualpi2_params *p,
				   struct dualpi2_vars *v, u64 delay_ns,
				   u32 ratio)
{
	/* Scale both alike: a new scale is not a change of delay. */
	u32 last_ns = dualpi2_scaled_ns(v, v->delay_ns);
	u32 cur_ns = dualpi2_scaled_ns(v, delay_ns);
	s64 integral, sum;
	u64 size;

	integral = dualpi2_gain_times(p->alpha_gain,
				      (s64)cur_ns - p->target_ns);
	size = integral < 0 ? -integral : integral;
	if (ratio > DUALPI2_LATE_MAX_RATIO)
		size = min_t(u64, size, 1ULL << 44);
	size = mul_u64_u32_shr(size, ratio, 16);
	integral = integral < 0 ? -(s64)size : (s64)size;

	sum = (s64)v->base_q32 + integral +
	      dualpi2_gain_times(p->beta_gain, (s64)cur_ns - last_ns);
	v->base_q32 = sum < 0 ? 0 : min_t(u64, sum, DUALPI2_ONE_Q32);
	v->delay_ns = delay_ns;
}

/**
 * dualpi2_pi_is_due() - is it time for an update?
 * @v: state
 * @now_ns: time
 */
static inline bool dualpi2_pi_is_due(const struct dualpi2_vars *v, u64 now_ns)
{
	return now_ns >= v->due_ns;
}

/**
 * dualpi2_ratio() - elapsed time in units of tupdate
 * @p: parameters; tupdate is not 0
 * @v: state
 * @now_ns: time
 * @max_ratio: maximum result
 *
 * Return: times 2^16.
 */
static inline u32 dualpi2_ratio(const struct dualpi2_params *p,
				const struct dualpi2_vars *v, u64 now_ns,
				u32 max_ratio)
{
	u64 elapsed_ns = now_ns - v->updated_ns;

	/* 2^47 ns are 39 hours. */
	elapsed_ns = min_t(u64, elapsed_ns, 1ULL << 47);
	return min_t(u64, div_u64(elapsed_ns << 16, p->tupdate_ns), max_ratio);
}

/**
 * dualpi2_pi_update() - update the probabilities while there is a backlog
 * @p: parameters
 * @v: state
 * @delay_ns: maximum of both queues' delays
 * @now_ns: time
 *
 * Call this when dualpi2_pi_is_due().
 */
static inline void dualpi2_pi_update(const struct dualpi2_params *p,
				     struct dualpi2_vars *v, u64 delay_ns,
				     u64 now_ns)
{
	dualpi2_pi_step(p, v, delay_ns,
			dualpi2_ratio(p, v, now_ns, DUALPI2_LATE_MAX_RATIO));
	if (!dualpi2_overload_may_begin(v, delay_ns, now_ns))
		v->base_q32 = min_t(u64, v->base_q32, p->enter_q32 - 1);
	v->updated_ns = now_ns;
	dualpi2_vars_derive(p, v, now_ns);
}

/**
 * dualpi2_pi_idle() - catch up on the updates of an idle time
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * The time since the last update counts with a delay of 0, as a timer would have
 * sampled; at most 65535 periods (17 minutes by default).  At the first of these updates
 * a present overload ends, unless it continues within DUALPI2_OVERLOAD_HOLD.  Call this
 * when dualpi2_pi_is_due().
 */
static inline void dualpi2_pi_idle(const struct dualpi2_params *p,
				   struct dualpi2_vars *v, u64 now_ns)
{
	u64 empty_ns = v->updated_ns + p->tupdate_ns;

	dualpi2_pi_step(p, v, 0, dualpi2_ratio(p, v, now_ns, U32_MAX));
	v->updated_ns = now_ns;
	dualpi2_probabilities(p, v);
	dualpi2_overload_update(p, v, false, empty_ns, now_ns);
}

#endif /* _NET_DUALPI2_PI_H */
