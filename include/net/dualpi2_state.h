/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the state of one instance.
 */
#ifndef _NET_DUALPI2_STATE_H
#define _NET_DUALPI2_STATE_H

#include <net/dualpi2_params.h>

/* Maximum packet length in the scheduler; longer ones count as this.  Weights are below
 * 100, and 100 * 2^24 < 2^31, so no credit can overflow.
 */
#define DUALPI2_SCHED_BYTES_MAX		(1U << 24)

/**
 * struct dualpi2_accumulator - spreads the signals of one stream evenly
 * @credit_q32: probability collected and not yet spent
 * @dither_q32: as s32: the next signal is due at a credit of 1 minus this
 */
struct dualpi2_accumulator {
	s64 credit_q32;
	u32 dither_q32;
};

/**
 * struct dualpi2_reported - the part of &struct dualpi2_vars that was reported
 * @count: overloads whose end was reported
 * @total_ns: their length
 * @since_ns: begin of the first overload after these
 * @next_ns: no report before this time
 * @begun: the begin of the present overload was reported
 */
struct dualpi2_reported {
	u64 count;
	u64 total_ns;
	u64 since_ns;
	u64 next_ns;
	bool begun;
};

/**
 * struct dualpi2_vars - the state of one instance
 * @base_q32: p', the PI controller's output, 0..1
 * @classic_q32: p_C = p'^2
 * @coupled_q32: p_CL = min(k * p', 1)
 * @due_ns: time of the next update
 * @no_signal_below_ns: a packet of this queue with a delay below this gets no signal
 * @may_pass: dualpi2_verdict_fast() may decide: no overload, signals evenly spaced
 * @updated_ns: time of the last update
 * @target_ns: effective target, from dualpi2_set_target()
 * @packet_ns: serialization time of a packet of DUALPI2_LOW_MTU_BYTES; 0: overload
 *	begins at any delay; U32_MAX: it does not begin
 * @delay_scale_q32: &dualpi2_params.target_ns / @target_ns; 0: both are equal
 * @delay_ns: delay at the last update
 * @ramp: native marker with the present burst tolerance
 * @shared_ramp: the same while the Classic queue has a backlog
 * @overload: in overload, or it ended less than DUALPI2_OVERLOAD_HOLD ago
 * @credit: scheduler credit; above 0 the Classic queue sends next
 * @credit_start: initial credit, dualpi2_credit_start()
 * @c_signal: spacing of Classic signals in the Classic queue
 * @c_scalable: spacing of marks of ECT(1) in the Classic queue
 * @l_mark: spacing of L4S marks
 * @l_classic: spacing of signals to Classic packets in the L4S queue
 * @l_drop: spacing of overload drops in the L4S queue
 * @overload_count: times that overload began
 * @overload_since_ns: begin of the present overload, or of the last one
 * @overload_below_ns: time when p' fell below the overload threshold; 0: p' is above
 * @overload_last_ns: length of the last overload that ended
 * @overload_total_ns: length of all overloads that ended
 * @report: what was reported of them
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
 * dualpi2_credit_start() - scheduler credit of an idle link
 * @p: parameters
 * @mtu_bytes: MTU with link-layer header
 *
 * In favour of the queue with the larger weight.  By default L4S sends nine MTU before a
 * Classic packet that arrives at the same time: (l_weight - c_weight) / c_weight, eight,
 * bring the credit to 0, and one more brings it above 0.
 */
static inline s32 dualpi2_credit_start(const struct dualpi2_params *p,
				       u32 mtu_bytes)
{
	u32 bytes = min_t(u32, mtu_bytes, DUALPI2_SCHED_BYTES_MAX);

	return (s32)bytes * ((s32)p->c_weight - (s32)p->l_weight);
}

#endif /* _NET_DUALPI2_STATE_H */
