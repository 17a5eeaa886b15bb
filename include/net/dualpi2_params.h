/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: options in the units of the ABI, and the parameters computed from them.
 */
#ifndef _NET_DUALPI2_PARAMS_H
#define _NET_DUALPI2_PARAMS_H

#include <net/dualpi2_options.h>
#include <net/dualpi2_shaper.h>
#include <net/dualpi2_units.h>

/* The default gains are 0.16 Hz and 3.2 Hz (DualPI2 paper, table I). */
#define DUALPI2_GAIN_MAX		DUALPI2_ALPHA_MAX

/* Default limits if the rate is known.  The queues hold what the link sends in 250 ms,
 * or 16 MB if that is less, but at least what it sends in twice the target.  The packet
 * limit counts packets of the minimum size; the memory limit is twice the bytes,
 * because a packet takes more memory than its length.  At slow rates the floors leave
 * room for the initial windows of ten flows (RFC 6928).
 */
#define DUALPI2_LIMIT_NS		(250ULL * DUALPI2_NS_PER_MS)
#define DUALPI2_LIMIT_BYTES		(16U << 20)
#define DUALPI2_LIMIT_PACKET_BYTES	64
#define DUALPI2_LIMIT_PKTS_FLOOR	1000U
#define DUALPI2_MEMORY_PAIRS_FLOOR	256U

/* If the link rate is known, scale the ramp to 60 % while Classic has a backlog.  The
 * Classic backlog keeps the link utilized, so the L4S queue can be shorter.
 */
#define DUALPI2_SHARED_PCT		60U

/* Default width of the native marker's ramp, percent of step_thresh: 800 us to
 * 1200 us for 1 ms, as minTh and range in RFC 9332 figure 2.
 */
#define DUALPI2_RAMP_PCT_DEF		40U

/* Minimum length of the L4S queue for a native mark, the packet included: Th_len of
 * RFC 9332 A.1, "a floor of two packets" of the paper, III-C.
 */
#define DUALPI2_NATIVE_FLOOR_PKTS	2U

/* No coupled and no Classic signal while both queues together hold less than
 * two packets of this size (RFC 9332 A.1: two MTU).  A jumbo MTU does not raise
 * it: at 1 Mbit/s two packets of 9000 bytes take 144 ms, ten times the target.
 */
#define DUALPI2_LOW_MTU_BYTES		1514U

enum dualpi2_queue {
	DUALPI2_QUEUE_C,	/* Classic */
	DUALPI2_QUEUE_L,	/* L4S, low latency */
	DUALPI2_QUEUES
};

/* The two ECN bits of the IP header. */
enum dualpi2_ecn {
	DUALPI2_ECN_NOT_ECT,
	DUALPI2_ECN_ECT1,
	DUALPI2_ECN_ECT0,
	DUALPI2_ECN_CE
};

enum dualpi2_signal_mode {
	DUALPI2_SIGNAL_RECUR,
	DUALPI2_SIGNAL_RANDOM,
};

/* ECN codepoints that go to the L4S queue unless a filter, class or DSCP decides
 * otherwise.  CE goes there with each mask (7.x: TC_DUALPI2_ECN_MASK_*).
 */
enum dualpi2_ecn_mask {
	DUALPI2_MASK_ECT1 = 1,
	DUALPI2_MASK_ECT0 = 2,
	DUALPI2_MASK_ANY = 3,
};

/**
 * struct dualpi2_config - the options, in the units of the ABI
 * @limit_pkts: maximum length of both queues together, packets
 * @memory_limit_bytes: maximum memory of both queues; used if @memory_limit_is_set
 * @target_us: delay target of the PI controller
 * @tupdate_us: interval between updates of the PI controller
 * @alpha: integral gain, 1/256 Hz
 * @beta: proportional gain, 1/256 Hz
 * @step_thresh_us: delay at the middle of the native marker's ramp
 * @step_thresh_pkts: native marker as a step in packets; 0: not used
 * @ramp_us: width of the native marker's ramp, 0 is a step; used if @ramp_is_set
 * @min_qlen_step_pkts: native marks need an L4S queue longer than this, the packet
 *	included, packets
 * @hist_c_us: width of the first buckets of the Classic queue's delay histogram
 * @hist_l_us: the same for the L4S queue
 * @report_us: minimum time between two reports of overload; 0: no reports
 * @coupling: coupling factor k, p_CL = k p'
 * @c_protection_pct: weight of the Classic queue in the scheduler, percent
 * @ecn_mask: enum dualpi2_ecn_mask
 * @signal: enum dualpi2_signal_mode
 * @burst_max_us: maximum burst tolerance of the native marker; 0: none
 * @bandwidth: rate of the shaper, bytes per second; 0: no shaper
 * @nqb: bitmap of the DSCPs that go to the L4S queue
 * @qprotect_rate: rate at which scores of queue protection age, bytes per second
 * @qprotect_delay_us: delay that a flow must exceed by a burst to be redirected, see
 *	dualpi2_qprotect_init()
 * @qprotect_score_us: score above which it is, at that delay
 * @overhead_bytes: see struct dualpi2_link
 * @mpu_bytes: see struct dualpi2_link
 * @framing: enum dualpi2_framing
 * @ingress: see struct dualpi2_link
 * @p_cmax_pct: Classic probability at which overload begins, 0: 1/k^2
 * @limit_is_set: false: with a shaper, compute @limit_pkts from @bandwidth
 * @memory_limit_is_set: false: compute it from the limit, @bandwidth and the MTU
 * @ramp_is_set: false: the ramp's width is DUALPI2_RAMP_PCT_DEF of @step_thresh_us
 * @drop_overload: drop in overload; false: limit p' to the overload threshold
 * @drop_early: decide signals in the Classic queue at enqueue
 * @split_gso: split GSO packets at enqueue
 * @l4s: false: ECT(1) is Not-ECT (RFC 9331 5.1)
 * @bypass: while the queues are empty, packets skip the qdisc and are not counted
 * @qprotect: queue protection: 0: off, 1: on, 2: on, statistics without addresses
 */
struct dualpi2_config {
	u32 limit_pkts;
	u32 memory_limit_bytes;
	u32 target_us;
	u32 tupdate_us;
	u32 alpha;
	u32 beta;
	u32 step_thresh_us;
	u32 step_thresh_pkts;
	u32 ramp_us;
	u32 min_qlen_step_pkts;
	u32 hist_c_us;
	u32 hist_l_us;
	u32 report_us;
	u32 burst_max_us;
	u64 bandwidth;
	u64 nqb;
	u64 qprotect_rate;
	u32 qprotect_delay_us;
	u32 qprotect_score_us;
	s32 overhead_bytes;
	u32 mpu_bytes;
	u8 framing;
	u8 coupling;
	u8 c_protection_pct;
	u8 ecn_mask;
	u8 signal;
	u8 p_cmax_pct;
	bool ingress;
	bool limit_is_set;
	bool memory_limit_is_set;
	bool ramp_is_set;
	bool drop_overload;
	bool drop_early;
	bool split_gso;
	bool l4s;
	bool bypass;
	u8 qprotect;
};

/**
 * struct dualpi2_ramp - the native marker
 * @min_ns: no mark up to this delay
 * @max_ns: every packet is marked from this delay on
 * @slope: probability (q32) per ns between the two, times 2^16
 */
struct dualpi2_ramp {
	u32 min_ns;
	u32 max_ns;
	u64 slope;
};

/**
 * struct dualpi2_params - the options in the units of the packet path
 * @ramp: native marker without burst tolerance
 * @shared_ramp: the same while the Classic queue has a backlog
 * @link: the link
 * @burst_max_ns: maximum burst tolerance, 0: none
 * @step_pkts: step of the native marker in packets; U32_MAX: the ramps decide
 * @floor_pkts: minimum length of the L4S queue for a native mark, packets
 * @c_weight: share of the Classic queue, 1..99
 * @l_weight: 100 - @c_weight
 * @coupling: factor k
 * @inv_coupling_q32: 1/k
 * @random: signals are random, not evenly spaced
 * @drop_overload: see struct dualpi2_config
 * @drop_early: see struct dualpi2_config
 * @tupdate_ns: minimum time between two updates
 * @target_ns: delay target
 * @alpha_gain: integral gain, from dualpi2_gain()
 * @beta_gain: proportional gain, from dualpi2_gain()
 * @enter_q32: overload threshold of p': p_C is p_Cmax; from here on both queues
 *	drop if @drop_overload
 * @report_ns: minimum time between two reports; 0: none
 * @overload_at_once: overload begins at any delay, because p_Cmax was given
 */
struct dualpi2_params {
	struct dualpi2_ramp ramp;
	struct dualpi2_ramp shared_ramp;
	struct dualpi2_link link;
	u32 burst_max_ns;
	u32 step_pkts;
	u32 floor_pkts;
	u8 c_weight;
	u8 l_weight;
	u8 coupling;
	bool random;
	bool drop_overload;
	bool drop_early;
	bool overload_at_once;
	u64 inv_coupling_q32;
	u32 tupdate_ns;
	u32 target_ns;
	u64 alpha_gain;
	u64 beta_gain;
	u64 enter_q32;
	u64 report_ns;
};

/**
 * dualpi2_config_init() - the defaults
 * @cfg: to be filled
 */
static inline void dualpi2_config_init(struct dualpi2_config *cfg)
{
	*cfg = (struct dualpi2_config) { DUALPI2_DEFAULTS() };
}

/**
 * dualpi2_ramp_us() - width of the native marker's ramp, for a threshold in time
 * @cfg: options
 *
 * Return: microseconds, 0 for a step.
 */
static inline u32 dualpi2_ramp_us(const struct dualpi2_config *cfg)
{
	if (cfg->ramp_is_set)
		return cfg->ramp_us;
	return div_u64((u64)cfg->step_thresh_us * DUALPI2_RAMP_PCT_DEF, 100);
}

/**
 * dualpi2_limit_bytes() - backlog that the default limits allow, bytes
 * @ns_per_byte_q20: of the link, not 0
 * @target_ns: effective target
 *
 * Return: at most 2^40 at 1 Tbit/s and a target of 4.29 s.
 */
static inline u64 dualpi2_limit_bytes(u64 ns_per_byte_q20, u32 target_ns)
{
	u64 bytes = dualpi2_ns_bytes(ns_per_byte_q20, DUALPI2_LIMIT_NS);

	bytes = min_t(u64, bytes, DUALPI2_LIMIT_BYTES);
	return max_t(u64, bytes,
		     dualpi2_ns_bytes(ns_per_byte_q20, 2ULL * target_ns));
}

/**
 * dualpi2_limit_pkts() - maximum length of both queues together, packets
 * @cfg: options
 * @ns_per_byte_q20: of the link; 0: not known
 * @target_ns: effective target
 *
 * Without a shaper an observed rate raises the default limit and never lowers it.
 */
static inline u32 dualpi2_limit_pkts(const struct dualpi2_config *cfg,
				     u64 ns_per_byte_q20, u32 target_ns)
{
	u32 floor = cfg->bandwidth ? DUALPI2_LIMIT_PKTS_FLOOR : cfg->limit_pkts;
	u64 bytes;

	if (cfg->limit_is_set || !ns_per_byte_q20)
		return cfg->limit_pkts;
	bytes = cfg->bandwidth ?
		dualpi2_limit_bytes(ns_per_byte_q20, target_ns) :
		dualpi2_ns_bytes(ns_per_byte_q20, 2ULL * target_ns);
	return clamp_t(u64, div_u64(bytes, DUALPI2_LIMIT_PACKET_BYTES), floor,
		       U32_MAX);
}

/**
 * dualpi2_memory_limit_bytes() - maximum memory of both queues
 * @cfg: options
 * @mtu_bytes: MTU with link-layer header
 * @ns_per_byte_q20: of the link; 0: not known
 * @target_ns: effective target
 *
 * Return: bytes of truesize.  The default is two MTU per packet, as in Linux 7.x; if the
 * rate is known, it is computed from the rate.
 */
static inline u32 dualpi2_memory_limit_bytes(const struct dualpi2_config *cfg,
					     u32 mtu_bytes, u64 ns_per_byte_q20,
					     u32 target_ns)
{
	u64 pair_bytes = 2ULL * mtu_bytes, floor, bytes;

	if (cfg->memory_limit_is_set)
		return cfg->memory_limit_bytes;
	/* The product below could exceed 64 bits; the result is at most U32_MAX. */
	if (pair_bytes > U32_MAX)
		return U32_MAX;
	floor = pair_bytes * (cfg->bandwidth && !cfg->limit_is_set ?
			      DUALPI2_MEMORY_PAIRS_FLOOR : cfg->limit_pkts);
	if (cfg->limit_is_set || !ns_per_byte_q20)
		return min_t(u64, floor, U32_MAX);
	bytes = cfg->bandwidth ?
		dualpi2_limit_bytes(ns_per_byte_q20, target_ns) :
		dualpi2_ns_bytes(ns_per_byte_q20, 2ULL * target_ns);
	bytes = max_t(u64, 2 * bytes, floor);
	return min_t(u64, bytes, U32_MAX);
}

/**
 * dualpi2_ramp_init() - a native marker
 * @ramp: to be filled
 * @min_ns: see struct dualpi2_ramp
 * @max_ns: not below @min_ns; both equal is a step
 */
static inline void dualpi2_ramp_init(struct dualpi2_ramp *ramp, u32 min_ns,
				     u32 max_ns)
{
	ramp->min_ns = min_ns;
	ramp->max_ns = max_ns;
	ramp->slope = max_ns > min_ns ? div_u64(DUALPI2_ONE_Q32 << 16,
						max_ns - min_ns) : 0;
}

/**
 * dualpi2_params_init() - convert the options to parameters
 * @p: to be filled
 * @cfg: options, each within its range
 *
 * Divides by the ramp's width, only if that is not 0, and by k, which is at least 1.
 */
static inline void dualpi2_params_init(struct dualpi2_params *p,
				       const struct dualpi2_config *cfg)
{
	u32 thresh_ns = dualpi2_us_to_ns(cfg->step_thresh_us);
	u32 half_ns = dualpi2_us_to_ns(dualpi2_ramp_us(cfg)) / 2;
	u32 weight = cfg->c_protection_pct;

	*p = (struct dualpi2_params) {
		.step_pkts = cfg->step_thresh_pkts ?: U32_MAX,
		.floor_pkts = DUALPI2_NATIVE_FLOOR_PKTS,
		.coupling = cfg->coupling,
		.random = cfg->signal == DUALPI2_SIGNAL_RANDOM,
		.drop_overload = cfg->drop_overload,
		.drop_early = cfg->drop_early,
		.overload_at_once = cfg->p_cmax_pct,
		.inv_coupling_q32 = div_u64(DUALPI2_ONE_Q32, cfg->coupling),
		.tupdate_ns = dualpi2_us_to_ns(cfg->tupdate_us),
		.target_ns = dualpi2_us_to_ns(cfg->target_us),
		.alpha_gain = dualpi2_gain(cfg->alpha),
		.beta_gain = dualpi2_gain(cfg->beta),
		.report_ns = (u64)cfg->report_us * DUALPI2_NS_PER_US,
		.burst_max_ns = cfg->step_thresh_pkts ?
				0 : dualpi2_us_to_ns(cfg->burst_max_us),
		.link = {
			.ns_per_byte_q20 =
				dualpi2_ns_per_byte_q20(cfg->bandwidth),
			.overhead_bytes = cfg->overhead_bytes,
			.mpu_bytes = cfg->mpu_bytes,
			.framing = cfg->framing,
			.ingress = cfg->ingress,
			.late_max_ns = DUALPI2_LATE_MAX_NS,
		},
	};

	/* The default is p_CL = 1, which is p_Cmax = 1/k^2. */
	if (cfg->p_cmax_pct)
		p->enter_q32 = dualpi2_sqrt_q32(div_u64(DUALPI2_ONE_Q32 *
							cfg->p_cmax_pct, 100));
	else
		p->enter_q32 = div_u64(DUALPI2_ONE_Q32 + cfg->coupling - 1,
				       cfg->coupling);

	/* The ramp is centred on the threshold and does not reach below 0. */
	dualpi2_ramp_init(&p->ramp,
			  thresh_ns > half_ns ? thresh_ns - half_ns : 0,
			  thresh_ns > U32_MAX - half_ns ?
			  U32_MAX : thresh_ns + half_ns);
	p->shared_ramp = p->ramp;
	if (cfg->bandwidth)
		dualpi2_ramp_init(&p->shared_ramp,
				  div_u64((u64)p->ramp.min_ns *
					  DUALPI2_SHARED_PCT, 100),
				  div_u64((u64)p->ramp.max_ns *
					  DUALPI2_SHARED_PCT, 100));

	if (cfg->min_qlen_step_pkts >= DUALPI2_NATIVE_FLOOR_PKTS)
		p->floor_pkts = cfg->min_qlen_step_pkts == U32_MAX ? U32_MAX :
				cfg->min_qlen_step_pkts + 1;

	/* Neither queue can starve the other (RFC 9332 2.5.1), so that
	 * classic_protection 0 and 100 act as 1 and 99.
	 */
	p->c_weight = weight < 1 ? 1 : weight > 99 ? 99 : weight;
	p->l_weight = 100 - p->c_weight;
}

#endif /* _NET_DUALPI2_PARAMS_H */
