/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoint of the dualpi2 qdisc: every decision of the AQM about a packet.
 * While it is off it is a no-op.
 *
 *	echo 1 >/sys/kernel/tracing/events/dualpi2/dualpi2_verdict/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dualpi2

#if !defined(_TRACE_DUALPI2_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DUALPI2_H

#include <linux/netdevice.h>
#include <linux/tracepoint.h>
#include <net/sch_generic.h>
#include <net/dualpi2.h>

TRACE_DEFINE_ENUM(DUALPI2_PASS);
TRACE_DEFINE_ENUM(DUALPI2_MARK_CLASSIC);
TRACE_DEFINE_ENUM(DUALPI2_MARK_COUPLED);
TRACE_DEFINE_ENUM(DUALPI2_MARK_NATIVE);
TRACE_DEFINE_ENUM(DUALPI2_DROP_AQM);
TRACE_DEFINE_ENUM(DUALPI2_DROP_OVERLOAD);

/**
 * dualpi2_verdict - a decision of the AQM about a packet
 * @sch: the qdisc
 * @vars: its state
 * @queue: the packet's queue
 * @ecn: its codepoint on arrival
 * @profile: how the AQM treats it, enum dualpi2_profile
 * @len: the kernel's packet length, bytes
 * @sojourn_ns: sojourn time; 0 for a decision at enqueue
 * @verdict: the decision; a mark on a packet with CE changes nothing
 *
 * Probabilities are in units of 2^-32.
 */
TRACE_EVENT(dualpi2_verdict,
	    TP_PROTO(const struct Qdisc *sch, const struct dualpi2_vars *vars,
		     enum dualpi2_queue queue, u8 ecn, u8 profile, u32 len,
		     u64 sojourn_ns, enum dualpi2_verdict verdict),
	    TP_ARGS(sch, vars, queue, ecn, profile, len, sojourn_ns, verdict),
	    TP_STRUCT__entry(__field(u64, sojourn_ns)
			     __field(u64, p_q32)
			     __field(u64, p_c_q32)
			     __field(u64, p_cl_q32)
			     __field(int, ifindex)
			     __field(u32, handle)
			     __field(u32, len)
			     __field(u8, queue)
			     __field(u8, ecn)
			     __field(u8, profile)
			     __field(u8, verdict)
	    ),
	    TP_fast_assign(__entry->sojourn_ns = sojourn_ns;
			   __entry->p_q32 = vars->base_q32;
			   __entry->p_c_q32 = vars->classic_q32;
			   __entry->p_cl_q32 = vars->coupled_q32;
			   __entry->ifindex = qdisc_dev(sch)->ifindex;
			   __entry->handle = sch->handle;
			   __entry->len = len;
			   __entry->queue = queue;
			   __entry->ecn = ecn;
			   __entry->profile = profile;
			   __entry->verdict = verdict;
	    ),
	    TP_printk("ifindex=%d handle=%x: queue=%s ecn=%u profile=%u len=%u sojourn_ns=%llu p_q32=%llu p_c_q32=%llu p_cl_q32=%llu verdict=%s",
		      __entry->ifindex, __entry->handle >> 16,
		      __print_symbolic(__entry->queue, { 0, "classic" }, { 1, "l4s" }),
		      __entry->ecn, __entry->profile, __entry->len,
		      __entry->sojourn_ns, __entry->p_q32, __entry->p_c_q32,
		      __entry->p_cl_q32,
		      __print_symbolic(__entry->verdict,
				       { DUALPI2_PASS, "pass" },
				       { DUALPI2_MARK_CLASSIC, "mark_classic" },
				       { DUALPI2_MARK_COUPLED, "mark_coupled" },
				       { DUALPI2_MARK_NATIVE, "mark_native" },
				       { DUALPI2_DROP_AQM, "drop_aqm" },
				       { DUALPI2_DROP_OVERLOAD, "drop_overload" }))
);

#endif /* _TRACE_DUALPI2_H */

#ifndef DUALPI2_KERNEL_TREE
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH trace
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE dualpi2
#endif
#include <trace/define_trace.h>
