/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the state of one instance.
 */
#ifndef _NET_DUALPI2_STATE_H
#define _NET_DUALPI2_STATE_H

#include <net/dualpi2_params.h>

/* Lengths beyond this count as this in the scheduler.  Weights are below 100,
 * and 100 * 2^24 < 2^31, so no credit can overflow.
 */
#define DUALPI2_SCHED_BYTES_MAX		(1U << 24)

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

#endif /* _NET_DUALPI2_STATE_H */
