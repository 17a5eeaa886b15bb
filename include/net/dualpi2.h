/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2, the algorithm: PI controller, coupling, native L4S marker, signal
 * spacing, scheduler credit, overload state and its reports, histogram of
 * delays and unit conversions.  What is known of the link is in dualpi2_link.h.
 *
 * Integers in, a verdict out.  Nothing here knows packets, queues, locks, a
 * clock or a source of random numbers; the caller hands these in.  The file
 * compiles in user space too, where selftests/unit tests it.
 *
 * Sources: RFC 9332 (sections named below), "PI2" (De Schepper et al., CoNEXT
 * 2016) and "DualPI2" (De Schepper et al., 2022).
 *
 * Fixed-point formats:
 *   _q32   probability; 2^32 is 1, so that 1 itself can be held; u64
 *   gain   probability (q32) per nanosecond of delay, times 2^24; u64
 *   ratio  elapsed time in units of tupdate, times 2^16; u32
 */
#ifndef _NET_DUALPI2_H
#define _NET_DUALPI2_H

#include <net/dualpi2_link.h>
#include <net/dualpi2_seam.h>

#define DUALPI2_ONE_Q32			(1ULL << 32)

#define DUALPI2_NS_PER_US		1000U

/* Every time is held in u32 nanoseconds, hence at most 4.29 s. */
#define DUALPI2_TIME_MAX_US		(U32_MAX / DUALPI2_NS_PER_US)

/* The default gains are 0.16 Hz and 3.2 Hz (DualPI2 paper, table I). */
#define DUALPI2_GAIN_MAX		DUALPI2_ALPHA_MAX

/* Default limits where the rate is known: the time below at this rate, counted in
 * packets of the minimum size, and twice the bytes as memory, because a packet
 * takes more memory than its length.  The time is 250 ms or that of 16 MB,
 * whichever is less, but never below twice the target.  At slow rates there is
 * room for ten flows' initial windows (RFC 6928).
 */
#define DUALPI2_LIMIT_NS		(250ULL * DUALPI2_NS_PER_MS)
#define DUALPI2_LIMIT_BYTES		(16U << 20)
#define DUALPI2_LIMIT_PACKET_BYTES	64
#define DUALPI2_LIMIT_PKTS_LEAST	1000U
#define DUALPI2_MEMORY_PAIRS_LEAST	256U

/* With the rate known, the ramp is at this part of itself while Classic packets
 * wait: then it is they who keep the link busy, and L4S need not (docs/DESIGN.md
 * has what others lead to).
 */
#define DUALPI2_SHARED_PCT		60U

/* Without a ramp of its own, the native marker's ramp is 40 % of step_thresh
 * wide: 800 us to 1200 us for 1 ms, as minTh and range in RFC 9332 figure 2.
 */
#define DUALPI2_RAMP_PCT_DEF		40U

/* No native mark on a packet that found no other one in its queue: Th_len of
 * RFC 9332 A.1, "a floor of two packets" of the paper, III-C.
 */
#define DUALPI2_NATIVE_FLOOR_PKTS	2U

/* No coupled and no Classic signal while both queues together hold less than
 * two packets of this size (RFC 9332 A.1: two MTU).  A jumbo MTU does not raise
 * it: at 1 Mbit/s two packets of 9000 bytes take 144 ms, ten times the target.
 */
#define DUALPI2_LOW_MTU_BYTES		1514U

/* Below about 1 Mbit/s the serialization time T of one packet exceeds the target,
 * and a TCP flow keeps at least two packets in flight.  The effective target is
 * therefore at least 2.5 T - target.  Both are equal at T = 0.8 target: with the
 * default of 15 ms at 1 Mbit/s.
 */
#define DUALPI2_SLOW_HALF_PKTS		5U

/* Overload begins only with a queueing delay of at least 128 T.  Marks cannot make
 * a TCP flow keep fewer than two packets in flight, and a flow starts with ten
 * (RFC 6928).  Ten flows alone do not cause so much delay, so that their queue is
 * not taken for overload.  From 104 Mbit/s up 128 T are less than the target.  On
 * slow links these flows also send each packet again after a second (RFC 6298),
 * when the first ones are still in the queue.
 */
#define DUALPI2_OVERLOAD_PKTS		128U
#define DUALPI2_OVERLOAD_SLOW_PKTS	256U

/* Overload that recurs within this time begins at any delay: the senders have
 * shown that they do not respond to marks.
 */
#define DUALPI2_OVERLOAD_RECENT_NS	(10ULL * DUALPI2_NS_PER_SEC)

/* A late update counts for at most this many periods (128 ms by default, which
 * is more than the RTT_max of RFC 9332 that the gains are stable for).
 */
#define DUALPI2_LATE_MAX_RATIO		(8U << 16)

/* An overload is over when it has not come back for this many updates.  At the
 * edge of it p' goes up and down: what makes it fall, drops in both queues, is
 * there only above the edge.
 */
#define DUALPI2_OVERLOAD_HOLD		8U

/* A dequeue drops at most this many packets before it forwards one, so that no
 * call holds the lock for a queue's length: 64 in 65 is a drop probability of
 * 98.5 %, reached at an arrival rate of 65 times the link rate.
 */
#define DUALPI2_DROPS_PER_DEQUEUE	64U

/* Histogram of delays: eight buckets of one unit, then eight in each octave, so
 * that from eight units on every bucket is at most 1/8 of its delay wide.  At
 * 2^14 units it ends: 134 ms for the L4S queue, 1.07 s for the Classic one.
 */
#define DUALPI2_HIST_SUB_BITS		3
#define DUALPI2_HIST_SUB		(1U << DUALPI2_HIST_SUB_BITS)
#define DUALPI2_HIST_OCTAVES		11U
#define DUALPI2_HIST_BUCKETS		(DUALPI2_HIST_SUB *		\
					 (1 + DUALPI2_HIST_OCTAVES))

/* Lengths beyond this count as this in the scheduler.  Weights are below 100,
 * and 100 * 2^24 < 2^31, so no credit can overflow.
 */
#define DUALPI2_SCHED_BYTES_MAX		(1U << 24)

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

/* What a packet is to the AQM, from its queue and codepoint (RFC 9332 2.5.1.1). */
enum dualpi2_profile {
	DUALPI2_C_DROP,		/* drop, Classic probability */
	DUALPI2_C_MARK,		/* mark, Classic probability */
	DUALPI2_C_SCALABLE,	/* mark, coupled probability */
	DUALPI2_L_SCALABLE,	/* mark, max(native, coupled) */
	DUALPI2_L_MARK,		/* mark, square of the above over k */
	DUALPI2_L_DROP,		/* drop, square of the above over k */
	DUALPI2_L_UNMARKED,	/* leave alone but in overload */
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

/* What is to be told of an overload. */
enum dualpi2_report {
	DUALPI2_REPORT_NONE,
	DUALPI2_REPORT_BEGIN,
	DUALPI2_REPORT_END,
};

enum dualpi2_signal_mode {
	DUALPI2_SIGNAL_RECUR,
	DUALPI2_SIGNAL_RANDOM,
};

/* ECN codepoints that go to the L4S queue unless something local decides
 * otherwise; CE always goes with either (7.x: TC_DUALPI2_ECN_MASK_*).
 */
enum dualpi2_ecn_mask {
	DUALPI2_MASK_ECT1 = 1,
	DUALPI2_MASK_ECT0 = 2,
	DUALPI2_MASK_ANY = 3,
};

/**
 * struct dualpi2_config - the knobs as the user gave them
 * @limit_pkts: most packets that both queues may hold
 * @memory_limit_bytes: most bytes of memory; used if @memory_limit_is_set
 * @target_us: delay target of the PI controller
 * @tupdate_us: interval between updates of the PI controller
 * @alpha: integral gain, 1/256 Hz
 * @beta: proportional gain, 1/256 Hz
 * @step_thresh_us: delay at the middle of the native marker's ramp
 * @step_thresh_pkts: native marker as a step in packets; 0: not used
 * @ramp_us: width of the native marker's ramp, 0 is a step; used if @ramp_is_set
 * @min_qlen_step_pkts: a packet is marked natively only if the L4S queue, with
 *	it, holds more than this many
 * @hist_c_us: width of the first buckets of the Classic queue's delays
 * @hist_l_us: the same of the L4S queue
 * @report_us: least time between two reports of overload; 0: no reports
 * @coupling: factor k between the two queues' probabilities
 * @c_protection_pct: weight of the Classic queue in the scheduler, percent
 * @ecn_mask: enum dualpi2_ecn_mask
 * @signal: enum dualpi2_signal_mode
 * @burst_max_us: longest burst of L4S packets to be tolerated, 0: none
 * @bandwidth: of the shaper, bytes per second; 0: none
 * @nqb: bit N: packets of DSCP N go to the L4S queue
 * @overhead_bytes: see struct dualpi2_link
 * @mpu_bytes: see struct dualpi2_link
 * @framing: enum dualpi2_framing
 * @ingress: see struct dualpi2_link
 * @p_cmax_pct: Classic probability at which overload begins, 0: 1/k^2
 * @limit_is_set: false: @limit_pkts follows @bandwidth, if there is one
 * @memory_limit_is_set: false: @memory_limit_bytes follows these and the MTU
 * @ramp_is_set: false: the ramp's width follows @step_thresh_us
 * @drop_overload: drop in overload; false: hold p' at the edge of it
 * @drop_early: decide signals in the Classic queue at enqueue
 * @split_gso: split GSO packets at enqueue
 * @l4s: false: ECT(1) is Not-ECT (RFC 9331 5.1)
 * @bypass: packets may pass by empty queues, uncounted
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
};

/**
 * struct dualpi2_ramp - the native marker
 * @min_ns: up to this delay it is silent
 * @max_ns: from this delay on it marks every packet
 * @slope: probability (q32) per ns between the two, times 2^16
 */
struct dualpi2_ramp {
	u32 min_ns;
	u32 max_ns;
	u64 slope;
};

/**
 * struct dualpi2_params - the knobs as the packet path wants them
 * @ramp: native marker where no bursts are to be tolerated
 * @shared_ramp: the same while Classic packets wait, too
 * @link: the link
 * @burst_max_ns: longest burst to be tolerated, 0: none
 * @step_pkts: native marker by packets instead, U32_MAX: by delay
 * @floor_pkts: packets in the L4S queue, with this one, for a native mark
 * @c_weight: share of the Classic queue, 1..99
 * @l_weight: 100 - @c_weight
 * @coupling: factor k
 * @inv_coupling_q32: 1/k
 * @random: signals are random, not evenly spaced
 * @drop_overload: see struct dualpi2_config
 * @drop_early: see struct dualpi2_config
 * @tupdate_ns: least time between two updates
 * @target_ns: delay target
 * @alpha_gain: integral gain, see "gain" above
 * @beta_gain: proportional gain
 * @enter_q32: p' at which the Classic probability is p_Cmax: overload begins,
 *	and from here on both queues drop if @drop_overload
 * @report_ns: least time between two reports; 0: none
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
 * struct dualpi2_accumulator - spreads the signals of one stream evenly
 * @credit_q32: probability collected and not yet spent
 * @dither_q32: as s32: how much earlier than at 1 the next signal is due
 */
struct dualpi2_accumulator {
	s64 credit_q32;
	u32 dither_q32;
};

/**
 * struct dualpi2_reported - how far overloads have been reported
 * @count: of &dualpi2_vars.overload_count: those whose end was reported
 * @total_ns: of &dualpi2_vars.overload_total_ns: their length
 * @since_ns: begin of the first one after these
 * @silent_until_ns: time before which there is no other report
 * @begun: the begin of the present one was reported
 */
struct dualpi2_reported {
	u64 count;
	u64 total_ns;
	u64 since_ns;
	u64 silent_until_ns;
	bool begun;
};

/**
 * struct dualpi2_overload_report - a report
 * @since_ns: when the first of the overloads that it tells of began
 * @duration_ns: time spent in them
 * @count: how many they are
 */
struct dualpi2_overload_report {
	u64 since_ns;
	u64 duration_ns;
	u64 count;
};

/**
 * struct dualpi2_delay - histogram of one queue's delays
 * @short_ns: below this delay, buckets are one unit wide and it is not the greatest
 * @watch_ns: beyond this delay there is more to do than to count
 * @sum_ns: of all delays, modulo 2^64
 * @first_ns: below this delay, eight units, buckets are one unit wide
 * @bias: buckets that there would be below the first one of such a width
 * @shift: the unit is 2^@shift ns, 10..24
 * @generation: how often the edges were set
 * @max_ns: the greatest
 * @beyond: delays that are beyond the last bucket
 * @low: packets in each bucket, the lower 32 bits
 * @high: the upper 16 bits; 2^48 packets take nine years at a million a second
 */
struct dualpi2_delay {
	u64 short_ns;
	u64 watch_ns;
	u64 sum_ns;
	u64 first_ns;
	u32 bias;
	u8 shift;
	u32 generation;
	u64 max_ns;
	u64 beyond;
	u32 low[DUALPI2_HIST_BUCKETS];
	u16 high[DUALPI2_HIST_BUCKETS];
};

/**
 * struct dualpi2_vars - the state of one instance
 * @base_q32: p', the PI controller's output, 0..1
 * @classic_q32: p_C = p'^2
 * @coupled_q32: p_CL = min(k * p', 1)
 * @due_ns: time of the next update
 * @no_signal_below_ns: a packet of this queue gets no signal for a delay below this
 * @may_pass: out of overload, with signals evenly spaced: see dualpi2_verdict_fast()
 * @updated_ns: time of the last update
 * @target_ns: effective target, from dualpi2_set_target()
 * @packet_ns: serialization time of a packet of DUALPI2_LOW_MTU_BYTES; 0: overload
 *	begins at any delay; U32_MAX: it does not begin
 * @delay_scale_q32: &dualpi2_params.target_ns over @target_ns; 0: they are equal
 * @delay_ns: delay at the last update
 * @ramp: native marker as bursts have it
 * @shared_ramp: the same while Classic packets wait, too
 * @overload: in overload, or just was: see DUALPI2_OVERLOAD_HOLD
 * @credit: scheduler credit; above 0 it is the Classic queue's turn
 * @credit_start: what it begins with, dualpi2_credit_start()
 * @c_signal: spacing of Classic signals in the Classic queue
 * @c_scalable: spacing of marks of ECT(1) in the Classic queue
 * @l_mark: spacing of L4S marks
 * @l_classic: spacing of signals to Classic packets in the L4S queue
 * @l_drop: spacing of overload drops in the L4S queue
 * @overload_count: times that overload began
 * @overload_since_ns: begin of the present overload, or of the last one
 * @overload_below_ns: when p' fell below the edge of the present one; 0: it did
 *	not
 * @overload_last_ns: length of the last one that is past
 * @overload_total_ns: length of all past ones
 * @report: what is known of them elsewhere
 */
struct dualpi2_vars {
	u64 due_ns;
	u64 no_signal_below_ns[DUALPI2_QUEUES];
	s32 credit;
	s32 credit_start;
	u64 base_q32;
	u64 classic_q32;
	u64 coupled_q32;
	u64 updated_ns;
	u64 delay_ns;
	u32 target_ns;
	u32 delay_scale_q32;
	u32 packet_ns;
	bool overload;
	bool may_pass;
	struct dualpi2_ramp ramp;
	struct dualpi2_ramp shared_ramp;
	struct dualpi2_accumulator c_signal;
	struct dualpi2_accumulator c_scalable;
	struct dualpi2_accumulator l_mark;
	struct dualpi2_accumulator l_classic;
	struct dualpi2_accumulator l_drop;
	u64 overload_count;
	u64 overload_since_ns;
	u64 overload_below_ns;
	u64 overload_last_ns;
	u64 overload_total_ns;
	struct dualpi2_reported report;
};

/**
 * struct dualpi2_packet - what a verdict depends on
 * @profile: from dualpi2_profile()
 * @native_ok: what dualpi2_native_ok() said when the packet joined its queue or,
 *	where @delay_ns is that behind it, says now
 * @low: both queues together hold less than two MTU, see dualpi2_is_low()
 * @shared: Classic packets wait
 * @may_drop: another packet is queued behind this one; the last one is never
 *	dropped, or a parent would see its child run empty inside its dequeue
 * @l_pkts: packets in the L4S queue, this one included
 * @delay_ns: what the native marker goes by: the time that the packet spent in the
 *	queue, or that of those behind it where the rate is known
 * @rnd: for random signals 64 uniform random bits; else any number, best one
 *	that changes from packet to packet, such as the time
 */
struct dualpi2_packet {
	enum dualpi2_profile profile;
	bool native_ok;
	bool low;
	bool shared;
	bool may_drop;
	u32 l_pkts;
	u64 delay_ns;
	u64 rnd;
};

/**
 * dualpi2_us_to_ns() - microseconds of the ABI to nanoseconds
 * @us: 0..DUALPI2_TIME_MAX_US; above it, the result is U32_MAX
 */
static inline u32 dualpi2_us_to_ns(u32 us)
{
	return us > DUALPI2_TIME_MAX_US ? U32_MAX : us * DUALPI2_NS_PER_US;
}

/**
 * dualpi2_ns_to_us() - nanoseconds to microseconds, for reports
 * @ns: any; a result beyond U32_MAX is U32_MAX
 */
static inline u32 dualpi2_ns_to_us(u64 ns)
{
	u64 us = div_u64(ns, DUALPI2_NS_PER_US);

	return us > U32_MAX ? U32_MAX : us;
}

/**
 * dualpi2_q32_to_u32() - probability to the ABI's format, where U32_MAX is 1
 * @p_q32: 0..1
 */
static inline u32 dualpi2_q32_to_u32(u64 p_q32)
{
	return p_q32 > U32_MAX ? U32_MAX : p_q32;
}

/**
 * dualpi2_gain() - gain of the ABI to the internal format
 * @hz256: 0..DUALPI2_GAIN_MAX, in 1/256 Hz
 *
 * 1/256 Hz is 2^32 / 256 / 10^9 in q32 per ns; times 2^24 that is 2^48 / 10^9 =
 * 281474.976710656.  Integer and fraction are multiplied apart: 2^31 * 281474 <
 * 2^50 and 2^31 * 976710656 < 2^61.
 *
 * Return: the gain, rounded to nearest, below 2^50.
 */
static inline u64 dualpi2_gain(u32 hz256)
{
	return (u64)hz256 * 281474U +
	       div_u64((u64)hz256 * 976710656U + DUALPI2_NS_PER_SEC / 2,
		       DUALPI2_NS_PER_SEC);
}

/**
 * dualpi2_gain_times() - gain times a difference of delays
 * @gain: from dualpi2_gain(), below 2^50
 * @diff_ns: -U32_MAX..U32_MAX
 *
 * Return: change of probability, q32; its magnitude is below 2^58.
 */
static inline s64 dualpi2_gain_times(u64 gain, s64 diff_ns)
{
	if (diff_ns < 0)
		return -(s64)mul_u64_u32_shr(gain, -diff_ns, 24);
	return mul_u64_u32_shr(gain, diff_ns, 24);
}

/**
 * dualpi2_square_q32() - square of a probability
 * @p_q32: 0..1
 */
static inline u64 dualpi2_square_q32(u64 p_q32)
{
	return p_q32 >= DUALPI2_ONE_Q32 ? DUALPI2_ONE_Q32 : p_q32 * p_q32 >> 32;
}

/**
 * dualpi2_sqrt_q32() - square root of a probability
 * @p_q32: 0..1
 *
 * Return: the least probability whose square is not below @p_q32.
 */
static inline u64 dualpi2_sqrt_q32(u64 p_q32)
{
	u64 root = 0, bit;

	if (p_q32 >= DUALPI2_ONE_Q32)
		return DUALPI2_ONE_Q32;
	for (bit = DUALPI2_ONE_Q32 >> 1; bit; bit >>= 1)
		if (dualpi2_square_q32(root | bit) < p_q32)
			root |= bit;
	return dualpi2_square_q32(root) < p_q32 ? root + 1 : root;
}

/**
 * dualpi2_over_k_square_q32() - (p/k)^2, the Classic match of a scalable signal
 * @p: parameters
 * @p_q32: 0..1, probability of a scalable signal
 *
 * RFC 9332 equation (1).  One bit of @p_q32 is given up so that the product
 * stays within 2^63.
 */
static inline u64 dualpi2_over_k_square_q32(const struct dualpi2_params *p,
					    u64 p_q32)
{
	return dualpi2_square_q32((p_q32 >> 1) * p->inv_coupling_q32 >> 31);
}

/**
 * dualpi2_config_init() - the defaults
 * @cfg: to be filled
 */
static inline void dualpi2_config_init(struct dualpi2_config *cfg)
{
	*cfg = (struct dualpi2_config) { DUALPI2_DEFAULTS };
}

/**
 * dualpi2_ramp_us() - width of the native marker's ramp, where it goes by delay
 * @cfg: knobs
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
 * dualpi2_limit_bytes() - bytes that the default limits have room for
 * @ns_per_byte_q20: of the link, not 0
 * @target_ns: effective target
 *
 * Return: at most 2^40 at 1 Tbit/s and a target of 4.29 s.
 */
static inline u64 dualpi2_limit_bytes(u64 ns_per_byte_q20, u32 target_ns)
{
	u64 bytes = dualpi2_ns_bytes(ns_per_byte_q20, DUALPI2_LIMIT_NS);

	return max_t(u64, min_t(u64, bytes, DUALPI2_LIMIT_BYTES),
		     dualpi2_ns_bytes(ns_per_byte_q20, 2ULL * target_ns));
}

/**
 * dualpi2_limit_pkts() - packets that both queues may hold
 * @cfg: knobs
 * @ns_per_byte_q20: of the link; 0: not known
 * @target_ns: effective target
 *
 * Without a shaper an observed rate raises the default limit and never lowers it.
 */
static inline u32 dualpi2_limit_pkts(const struct dualpi2_config *cfg,
				     u64 ns_per_byte_q20, u32 target_ns)
{
	u32 least = cfg->bandwidth ? DUALPI2_LIMIT_PKTS_LEAST : cfg->limit_pkts;
	u64 bytes;

	if (cfg->limit_is_set || !ns_per_byte_q20)
		return cfg->limit_pkts;
	bytes = cfg->bandwidth ?
		dualpi2_limit_bytes(ns_per_byte_q20, target_ns) :
		dualpi2_ns_bytes(ns_per_byte_q20, 2ULL * target_ns);
	return clamp_t(u64, div_u64(bytes, DUALPI2_LIMIT_PACKET_BYTES), least,
		       U32_MAX);
}

/**
 * dualpi2_memory_limit_bytes() - memory that both queues may take
 * @cfg: knobs
 * @mtu_bytes: MTU with link-layer header
 * @ns_per_byte_q20: of the link; 0: not known
 * @target_ns: effective target
 *
 * Return: bytes of truesize; by default two MTU a packet, as in Linux 7.x, or
 * what follows from the rate.
 */
static inline u32 dualpi2_memory_limit_bytes(const struct dualpi2_config *cfg,
					     u32 mtu_bytes, u64 ns_per_byte_q20,
					     u32 target_ns)
{
	u64 pair_bytes = 2ULL * mtu_bytes, least, bytes;

	if (cfg->memory_limit_is_set)
		return cfg->memory_limit_bytes;
	/* Both factors are below 2^33 and 2^32; 2^32 is beyond the answer. */
	if (pair_bytes > U32_MAX)
		return U32_MAX;
	least = pair_bytes * (cfg->bandwidth && !cfg->limit_is_set ?
			      DUALPI2_MEMORY_PAIRS_LEAST : cfg->limit_pkts);
	if (cfg->limit_is_set || !ns_per_byte_q20)
		return min_t(u64, least, U32_MAX);
	bytes = cfg->bandwidth ?
		dualpi2_limit_bytes(ns_per_byte_q20, target_ns) :
		dualpi2_ns_bytes(ns_per_byte_q20, 2ULL * target_ns);
	return min_t(u64, max_t(u64, 2 * bytes, least), U32_MAX);
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
 * dualpi2_params_init() - convert every knob once
 * @p: to be filled
 * @cfg: knobs, each within its limits
 *
 * Divisions: by @ramp width (not 0 where it is done) and by k (not 0).
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

	/* By default where p_CL reaches 1, which is p_Cmax = 1/k^2. */
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

	/* Priority for L4S that could starve Classic is not to be had (RFC 9332
	 * 2.5.1), whatever the percentage, nor the reverse.
	 */
	p->c_weight = weight < 1 ? 1 : weight > 99 ? 99 : weight;
	p->l_weight = 100 - p->c_weight;
}

/**
 * dualpi2_credit_start() - scheduler credit of an idle link
 * @p: parameters
 * @mtu_bytes: MTU with link-layer header
 *
 * In favour of the queue with the greater weight.  By default L4S may send nine
 * MTU before a Classic packet that comes along at the same time has its turn:
 * (l_weight - c_weight) / c_weight of them bring the credit to 0.
 */
static inline s32 dualpi2_credit_start(const struct dualpi2_params *p,
				       u32 mtu_bytes)
{
	u32 bytes = min_t(u32, mtu_bytes, DUALPI2_SCHED_BYTES_MAX);

	return (s32)bytes * ((s32)p->c_weight - (s32)p->l_weight);
}

static inline void dualpi2_overload_begin(struct dualpi2_vars *v, u64 now_ns)
{
	if (v->overload_count == v->report.count)
		v->report.since_ns = now_ns;
	v->overload = true;
	v->overload_count++;
	v->overload_since_ns = now_ns;
}

/* An end cannot lie before its begin. */
static inline void dualpi2_overload_end(struct dualpi2_vars *v, u64 now_ns)
{
	v->overload = false;
	v->overload_below_ns = 0;
	v->overload_last_ns = now_ns > v->overload_since_ns ?
			      now_ns - v->overload_since_ns : 0;
	v->overload_total_ns += v->overload_last_ns;
}

/* Is it overload, at this update?  If not, it has not been since below_ns. */
static inline void dualpi2_overload_update(const struct dualpi2_params *p,
					   struct dualpi2_vars *v, bool over,
					   u64 below_ns, u64 now_ns)
{
	if (over) {
		if (!v->overload)
			dualpi2_overload_begin(v, now_ns);
		v->overload_below_ns = 0;
	} else if (v->overload) {
		if (!v->overload_below_ns)
			v->overload_below_ns = below_ns;
		if (now_ns - v->overload_below_ns >=
		    (u64)p->tupdate_ns * DUALPI2_OVERLOAD_HOLD)
			dualpi2_overload_end(v, v->overload_below_ns);
	}
}

/* No packet waits for so long: 146 years. */
#define DUALPI2_NO_SIGNAL_MAX_NS		(1ULL << 62)

/* In overload, does the AQM drop packets of all codepoints?  That depends on p'
 * alone: &dualpi2_vars.overload lasts longer, for reports.
 */
static inline bool dualpi2_sheds(const struct dualpi2_params *p,
				 const struct dualpi2_vars *v)
{
	return v->base_q32 >= p->enter_q32 && p->drop_overload;
}

/* At p' of 0 there is no signal in the Classic queue, nor a coupled one, and no
 * native one up to the begin of the ramp.
 */
static inline void dualpi2_set_no_signal(const struct dualpi2_params *p,
				     struct dualpi2_vars *v)
{
	u32 silent_ns = min_t(u32, v->ramp.min_ns, v->shared_ramp.min_ns);

	v->may_pass = !p->random && !dualpi2_sheds(p, v);
	v->no_signal_below_ns[DUALPI2_QUEUE_C] = p->drop_early || !v->base_q32 ?
				       DUALPI2_NO_SIGNAL_MAX_NS : 0;
	v->no_signal_below_ns[DUALPI2_QUEUE_L] = !v->base_q32 && p->step_pkts == U32_MAX ?
				       silent_ns + 1ULL : 0;
}

/* All that follows from p', from the parameters and from the last update. */
static inline void dualpi2_probabilities(const struct dualpi2_params *p,
					 struct dualpi2_vars *v)
{
	/* Without drop in overload, p' stops where it would begin: delay grows
	 * instead, up to the limit (RFC 9332 4.2.3).
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
 * To be called when p' or the parameters changed.  k * p' is below 2^40.
 */
static inline void dualpi2_vars_derive(const struct dualpi2_params *p,
				       struct dualpi2_vars *v, u64 now_ns)
{
	dualpi2_probabilities(p, v);
	dualpi2_overload_update(p, v, v->base_q32 >= p->enter_q32, now_ns,
				now_ns);
}

/**
 * dualpi2_vars_init() - begin anew, also at reset
 * @p: parameters
 * @v: state; the account of overloads and the effective target are kept, an
 *	overload under way ends
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
 * dualpi2_overload_present_ns() - length of the present overload so far
 * @v: state
 * @now_ns: time
 *
 * Return: nanoseconds, 0 out of overload.
 */
static inline u64 dualpi2_overload_present_ns(const struct dualpi2_vars *v,
					      u64 now_ns)
{
	u64 end_ns = v->overload_below_ns ?: now_ns;

	return v->overload && end_ns > v->overload_since_ns ?
	       end_ns - v->overload_since_ns : 0;
}

/**
 * dualpi2_overload_ns() - time spent in overload so far
 * @v: state
 * @now_ns: time
 */
static inline u64 dualpi2_overload_ns(const struct dualpi2_vars *v, u64 now_ns)
{
	return v->overload_total_ns + dualpi2_overload_present_ns(v, now_ns);
}

/**
 * dualpi2_report_next() - is there something to report of overload?
 * @p: parameters
 * @v: state; what is returned counts as reported
 * @now_ns: time
 * @report: filled unless DUALPI2_REPORT_NONE is returned
 *
 * RFC 9332 2.5.2.3.  A report is followed by a time without any; what happens in
 * it is added up and reported when it is over: an overload that goes on by its
 * begin, one or more that ended by the first moment out of overload.
 */
static inline enum dualpi2_report
dualpi2_report_next(const struct dualpi2_params *p, struct dualpi2_vars *v,
		    u64 now_ns, struct dualpi2_overload_report *report)
{
	struct dualpi2_reported *r = &v->report;

	if (p->report_ns && now_ns < r->silent_until_ns)
		return DUALPI2_REPORT_NONE;
	if (v->overload ? r->begun : v->overload_count == r->count)
		return DUALPI2_REPORT_NONE;

	*report = (struct dualpi2_overload_report) {
		.since_ns = r->since_ns,
		.duration_ns = dualpi2_overload_ns(v, now_ns) - r->total_ns,
		.count = v->overload_count - r->count,
	};
	r->silent_until_ns = now_ns + p->report_ns;
	r->begun = v->overload && p->report_ns;
	if (v->overload)
		return p->report_ns ? DUALPI2_REPORT_BEGIN :
				      DUALPI2_REPORT_NONE;
	r->count = v->overload_count;
	r->total_ns = v->overload_total_ns;
	return p->report_ns ? DUALPI2_REPORT_END : DUALPI2_REPORT_NONE;
}

/**
 * dualpi2_report_change() - another time between reports
 * @from: parameters that were
 * @to: parameters that come
 * @v: state, up to date
 * @now_ns: time
 *
 * A time without reports that is under way does not outlast the new one, and
 * what ended while there were to be none is not reported later.
 */
static inline void dualpi2_report_change(const struct dualpi2_params *from,
					 const struct dualpi2_params *to,
					 struct dualpi2_vars *v, u64 now_ns)
{
	struct dualpi2_overload_report report;

	if (!from->report_ns)
		dualpi2_report_next(from, v, now_ns, &report);
	v->report.silent_until_ns = min_t(u64, v->report.silent_until_ns,
					 now_ns + to->report_ns);
}

/**
 * dualpi2_report_wait_ns() - when to ask dualpi2_report_next() again
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * Return: nanoseconds; 0: when overload begins.
 */
static inline u64 dualpi2_report_wait_ns(const struct dualpi2_params *p,
					 const struct dualpi2_vars *v,
					 u64 now_ns)
{
	u64 silent_until_ns = v->report.silent_until_ns;

	if (!p->report_ns ||
	    (!v->overload && v->overload_count == v->report.count))
		return 0;
	if (now_ns < silent_until_ns)
		return silent_until_ns - now_ns;
	/* A queue that has become empty tells nobody: it is to be looked at. */
	return min_t(u64, p->report_ns, DUALPI2_NS_PER_SEC);
}

/**
 * dualpi2_set_target() - effective target for the rate of the link
 * @p: parameters
 * @v: state
 * @ns_per_byte_q20: of the link; 0: not known
 * @mtu_bytes: MTU with link-layer header
 *
 * See DUALPI2_SLOW_HALF_PKTS and DUALPI2_OVERLOAD_PKTS.  A backlog that lasts shows
 * the rate of the link after a few packets; overload does not begin before that.
 * If the user set p_Cmax, overload begins there at any delay.
 *
 * The gains fall as the target rises, because a signal takes effect after a round
 * trip, which has become longer by the same factor.  One factor for the delay does
 * both: alpha * s * (delay - target / s) = alpha * (s * delay - target).
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

/* A delay as the controller sees it: beyond U32_MAX it counts as U32_MAX. */
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
 * @delay_ns: queue delay; beyond U32_MAX it counts as U32_MAX
 * @ratio: elapsed time in units of tupdate, times 2^16
 *
 * RFC 9332 A.1 figure 6: p' += alpha * (delay - target) + beta * (delay - prev).
 * Alpha is meant for one period, so that the integral term scales with the
 * time that passed; the proportional term has no time in it.  Everything is
 * added in 64 bits and clamped last: the integral term is below 2^58 before and
 * 2^61 after it is scaled by up to DUALPI2_LATE_MAX_RATIO.  Greater ratios occur
 * with a delay of 0 only; then no term is positive, and one that is cut to 2^44,
 * 4096 times the whole range, takes p' to 0 as surely as the whole of it.
 */
static inline void dualpi2_pi_step(const struct dualpi2_params *p,
				   struct dualpi2_vars *v, u64 delay_ns,
				   u32 ratio)
{
	/* Both by the present scale: another one is no change of delay. */
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
 * dualpi2_no_signal() - is it sure that a packet gets no signal?
 * @p: parameters
 * @v: state
 * @queue: where it was
 * @sojourn_ns: time that it spent there
 * @left_bytes: what it leaves behind in that queue
 *
 * Then dualpi2_verdict() would pass it, whatever else there is to know of it, and
 * need not be asked.  With a shaper the native marker goes by the one delay or the
 * other.  In the Classic queue it is so, too, where signals are given on arrival.
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

/* May overload begin or go on at this delay?  See DUALPI2_OVERLOAD_PKTS and
 * DUALPI2_OVERLOAD_RECENT_NS.
 */
static inline bool dualpi2_overload_may_begin(const struct dualpi2_vars *v,
					      u64 delay_ns, u64 now_ns)
{
	u32 pkts = v->delay_scale_q32 ? DUALPI2_OVERLOAD_SLOW_PKTS :
					DUALPI2_OVERLOAD_PKTS;

	return !v->packet_ns || v->overload ||
	       (v->packet_ns != U32_MAX &&
		delay_ns >= (u64)v->packet_ns * pkts) ||
	       (v->overload_count &&
		now_ns - v->overload_since_ns <
		v->overload_last_ns + DUALPI2_OVERLOAD_RECENT_NS);
}

/**
 * dualpi2_ratio() - elapsed time in units of tupdate
 * @p: parameters; tupdate is not 0
 * @v: state
 * @now_ns: time
 * @max_ratio: greatest answer
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
 * dualpi2_pi_update() - update the probabilities of a queue that holds packets
 * @p: parameters
 * @v: state
 * @delay_ns: greater of both queues' delays
 * @now_ns: time
 *
 * To be called when dualpi2_pi_is_due().
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
 * dualpi2_pi_idle() - make up for the updates of a queue that was empty
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * The whole time since the last update counts with a delay of 0, which is what
 * a timer would have seen; 65535 periods at most (17 minutes by default).  For
 * overload, whatever p' is, that is the end, at the first of these updates,
 * unless it goes on soon.  To be called when dualpi2_pi_is_due().
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

/* With another @p_q32, has a whole probability come together? */
static inline bool dualpi2_is_whole(const struct dualpi2_accumulator *s, u64 p_q32)
{
	return s->credit_q32 + (s64)p_q32 + (s32)s->dither_q32 >=
	       (s64)DUALPI2_ONE_Q32;
}

/**
 * dualpi2_accumulate() - is this packet the one to be signalled?
 * @s: state of the stream of packets
 * @p_q32: probability, 0..1
 * @random: decide by @rnd instead
 * @rnd: uniform random number; any number if not @random
 *
 * recur() of RFC 9332 A.1: every packet adds its probability, and whenever a
 * whole one has come together a signal is due.  The point where it is due is
 * dithered by up to 1/2 either way, so that the signals do not lock onto a
 * pattern of arrivals, such as some flows that take turns: with less than 1/2,
 * of three or more flows at p = 1/3 some would never be signalled.  From the
 * start, n packets get between n * p - 3/2 and n * p + 1/2 signals, and
 * credit_q32 stays within -1/2..3/2.  The dither runs through a linear
 * congruential sequence of period 2^32, which @rnd disturbs.
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
 * dualpi2_profile() - what a packet is to the AQM
 * @cfg: knobs
 * @queue: where it goes
 * @ecn: its codepoint
 * @unmarked: it was put into the L4S queue as "leave unmarked"
 *
 * RFC 9332 2.5.1.1 and RFC 9331 5.4.  A codepoint that the mask sends to the
 * L4S queue is scalable there; ECT(1) is scalable in the Classic queue too, so
 * that it is not marked with the Classic probability.
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
 * dualpi2_queue_of_ecn() - queue for a codepoint, if nothing local decides
 * @cfg: knobs
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
 * dualpi2_is_nqb() - does a packet go to the L4S queue for its DSCP?
 * @cfg: knobs
 * @ecn: codepoint
 * @dscp: 0..63
 *
 * To be asked if nothing local decides.  RFC 9956: ECT(1) and CE are treated as
 * with any other DSCP.
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
 * Asked at enqueue, as RFC 9332 A.1 advises; at dequeue the last packet of a
 * burst would never be marked.  The delay behind a packet is another matter: the
 * last one has none, and it is the first that tells of the burst.
 */
static inline bool dualpi2_native_ok(const struct dualpi2_params *p, u32 l_pkts)
{
	return l_pkts >= p->floor_pkts;
}

/**
 * dualpi2_tolerate() - fit the native marker to the bursts that come
 * @p: parameters
 * @v: state
 * @burst_ns: time on the link of bursts to be tolerated
 *
 * The last packet of a burst that finds the queue empty waits for so long.  The
 * ramp begins there at the earliest, and is a quarter of it wide at the least.
 * Linux sends in segments of a millisecond at most (tcp_tso_autosize()): such
 * bursts every fast flow has, and they change nothing.
 */
static inline void dualpi2_tolerate(const struct dualpi2_params *p,
				    struct dualpi2_vars *v, u32 burst_ns)
{
	u32 width_ns = max_t(u32, p->ramp.max_ns - p->ramp.min_ns,
			     burst_ns / 4);

	if (burst_ns <= max_t(u32, p->ramp.min_ns, DUALPI2_BURST_LEAST_NS)) {
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
 * dualpi2_native_q32() - probability of the native L4S marker
 * @p: parameters
 * @ramp: where it is silent, and where it marks all
 * @delay_ns: see struct dualpi2_packet
 * @l_pkts: packets in the L4S queue, this one included
 *
 * laqm() of RFC 9332 A.1, or a step where the ramp is 0 wide.  Between the ends
 * the difference is below 2^32 and the slope is 2^48 over it, rounded down.
 */
static inline u64 dualpi2_native_q32(const struct dualpi2_params *p,
				     const struct dualpi2_ramp *ramp,
				     u64 delay_ns, u32 l_pkts)
{
	if (p->step_pkts != U32_MAX)
		return l_pkts > p->step_pkts ? DUALPI2_ONE_Q32 : 0;
	if (delay_ns <= ramp->min_ns)
		return 0;
	if (delay_ns >= ramp->max_ns)
		return DUALPI2_ONE_Q32;
	return (delay_ns - ramp->min_ns) * ramp->slope >> 16;
}

/**
 * dualpi2_is_low() - is there too little in the queues for a Classic signal?
 * @backlog_bytes: in both queues, the packet in question included
 * @mtu_bytes: MTU with link-layer header
 */
static inline bool dualpi2_is_low(u64 backlog_bytes, u32 mtu_bytes)
{
	return backlog_bytes < 2ULL * min_t(u32, mtu_bytes,
					    DUALPI2_LOW_MTU_BYTES);
}

/* Drops and marks of one packet draw on different halves of its random bits. */
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
	bool shed = !pkt->low && dualpi2_sheds(p, v);
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
	l_q32 = dualpi2_over_k_square_q32(p, l_q32);
	if (pkt->profile == DUALPI2_L_DROP)
		return dualpi2_hit_drop(p, pkt, &v->l_classic, l_q32) ?
		       DUALPI2_DROP_AQM : DUALPI2_PASS;
	return dualpi2_hit_mark(p, pkt, &v->l_classic, l_q32) ?
	       DUALPI2_MARK_CLASSIC : DUALPI2_PASS;
}

/**
 * dualpi2_verdict() - what happens to a packet
 * @p: parameters
 * @v: state
 * @pkt: the packet
 *
 * RFC 9332 A.1 figure 5 with 2.5.1.1.  In overload a packet of any codepoint in
 * any queue is dropped with the Classic probability, and what remains of the
 * scalable ones is marked as before; Classic ones are not marked as well.
 */
static inline enum dualpi2_verdict
dualpi2_verdict(const struct dualpi2_params *p, struct dualpi2_vars *v,
		const struct dualpi2_packet *pkt)
{
	return pkt->profile <= DUALPI2_C_SCALABLE ?
	       dualpi2_c_verdict(p, v, pkt) : dualpi2_l_verdict(p, v, pkt);
}

/**
 * dualpi2_verdict_fast() - dualpi2_verdict() where it passes or marks
 * @p: parameters
 * @v: state
 * @queue: where the packet is, constant
 * @pkt: the packet
 *
 * For Classic packets, and for scalable ones in the L4S queue, if @v->may_pass.
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

/**
 * dualpi2_sched_pick() - the queue that sends next
 * @v: state
 * @c_waits: there are packets in the Classic queue
 * @l_waits: there are packets in the L4S queue; one of the two is true
 *
 * Weighted round robin by bytes (RFC 9332 2.5.1 and A.1, "scheduler").
 */
static inline enum dualpi2_queue
dualpi2_sched_pick(const struct dualpi2_vars *v, bool c_waits, bool l_waits)
{
	if (!l_waits)
		return DUALPI2_QUEUE_C;
	return c_waits && v->credit > 0 ? DUALPI2_QUEUE_C : DUALPI2_QUEUE_L;
}

/**
 * dualpi2_sched_charge() - a packet is sent
 * @p: parameters
 * @v: state
 * @queue: the queue that sends
 * @c_left: Classic packets are left
 * @l_left: L4S packets are left
 * @bytes: length of the packet on the link; used if packets are left
 *
 * While both queues have a backlog, each packet changes the credit by its length
 * times the weight of the other queue.  Classic packets also pay while the L4S
 * queue is empty, down to the start value: they may not collect a claim for later,
 * and an L4S sender that pauses for an instant does not erase the claim that they
 * already have.  When both queues are empty, the credit returns to the start.
 *
 * The credit is at most 0 before L4S adds to it, and above 0 before Classic takes
 * from it or not below the start, so that it stays within 99 * 2^24 either way.
 */
static inline void dualpi2_sched_charge(const struct dualpi2_params *p,
					struct dualpi2_vars *v,
					enum dualpi2_queue queue, bool c_left,
					bool l_left, u32 bytes)
{
	s32 len = min_t(u32, bytes, DUALPI2_SCHED_BYTES_MAX);

	if (!c_left && !l_left)
		v->credit = v->credit_start;
	else if (queue == DUALPI2_QUEUE_L && c_left)
		v->credit += len * p->c_weight;
	else if (queue == DUALPI2_QUEUE_C && l_left)
		v->credit -= len * p->l_weight;
	else if (queue == DUALPI2_QUEUE_C && v->credit != v->credit_start)
		v->credit = max_t(s64, (s64)v->credit - len * p->l_weight,
				  v->credit_start);
}

/* Number of the highest bit that is set; there must be one. */
static inline u32 dualpi2_highest_bit(u64 number)
{
	if (sizeof(unsigned long) == sizeof(number))
		return __fls(number);
	return number >> 32 ? 32 + __fls(number >> 32) : __fls(number);
}

/**
 * dualpi2_hist_shift() - unit of a histogram
 * @us: width of the first buckets, DUALPI2_HIST_C_MIN..DUALPI2_HIST_C_MAX
 *
 * Return: logarithm to base 2 of the least power of two that is not below @us,
 * in ns: 10..24.
 */
static inline u8 dualpi2_hist_shift(u32 us)
{
	return __fls(us * DUALPI2_NS_PER_US - 1) + 1;
}

/**
 * dualpi2_delay_init() - begin a histogram anew
 * @d: histogram; zero when it is the first time
 * @shift: from dualpi2_hist_shift()
 */
static inline void dualpi2_delay_init(struct dualpi2_delay *d, u8 shift)
{
	u32 generation = d->generation + 1;

	*d = (struct dualpi2_delay) {
		.short_ns = 1,
		.first_ns = (u64)DUALPI2_HIST_SUB << shift,
		.bias = (shift + DUALPI2_HIST_SUB_BITS) * DUALPI2_HIST_SUB,
		.generation = generation,
		.shift = shift,
	};
}

/* A delay that is the greatest so far, or beyond the histogram: what is not the
 * greatest and yet beyond watch_ns is beyond its end.  Return: it is beyond.
 */
static inline bool dualpi2_delay_is_new(struct dualpi2_delay *d, u64 delay_ns)
{
	if (delay_ns > d->max_ns) {
		u64 last_ns = (d->first_ns << DUALPI2_HIST_OCTAVES) - 1;

		d->max_ns = delay_ns;
		d->watch_ns = min_t(u64, delay_ns, last_ns);
		d->short_ns = min_t(u64, delay_ns, d->first_ns - 1) + 1;
		if (delay_ns <= last_ns)
			return false;
	}
	d->beyond++;
	return true;
}

/**
 * dualpi2_delay_add() - count a packet
 * @d: histogram
 * @delay_ns: its time in the queue
 *
 * Eight buckets of each octave come before the eight that this one's are; the
 * three bits after the highest choose among them.  Below eight units the octave is
 * the same throughout, and there is one that does not exist before it.  What is
 * beyond the histogram does not get here, so that no shift is too wide and no
 * bucket beyond the last; masks and pointer say so to kernels that check.
 */
static inline void dualpi2_delay_add(struct dualpi2_delay *d, u64 delay_ns)
{
	unsigned long bucket, octave;
	u64 number = delay_ns;
	u16 *high = d->high;
	u32 *low = d->low;

	d->sum_ns += delay_ns;
	if (delay_ns < d->short_ns) {
		bucket = delay_ns >> (d->shift & 63);
	} else {
		if (unlikely(delay_ns > d->watch_ns)) {
			if (dualpi2_delay_is_new(d, delay_ns))
				return;
			/* The greatest so far may be in a short bucket. */
			number |= d->first_ns;
		}
		octave = dualpi2_highest_bit(number);
		bucket = octave * DUALPI2_HIST_SUB - d->bias +
			 (unsigned long)(delay_ns << DUALPI2_HIST_SUB_BITS >>
					 (octave & 63));
	}
	if (unlikely(!++low[bucket]))
		high[bucket]++;
}

/**
 * dualpi2_delay_bucket() - packets in a bucket
 * @d: histogram
 * @bucket: 0..DUALPI2_HIST_BUCKETS - 1
 */
static inline u64 dualpi2_delay_bucket(const struct dualpi2_delay *d,
				       u32 bucket)
{
	return (u64)d->high[bucket] << 32 | d->low[bucket];
}

/**
 * dualpi2_delay_count() - packets in the histogram, those beyond it too
 * @d: histogram
 */
static inline u64 dualpi2_delay_count(const struct dualpi2_delay *d)
{
	u64 count = d->beyond;
	u32 bucket;

	for (bucket = 0; bucket < DUALPI2_HIST_BUCKETS; bucket++)
		count += dualpi2_delay_bucket(d, bucket);
	return count;
}

#endif /* _NET_DUALPI2_H */
