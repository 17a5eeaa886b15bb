/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Netlink ABI of the qdisc pi2.  Experimental: it may change.
 *
 * This is not the place for defaults or for what a value does: limits and defaults
 * are in pi2.h and net/dualpi2.h, meanings in tc-pi2(8).
 */
#ifndef _UAPI_LINUX_PI2_H
#define _UAPI_LINUX_PI2_H

#include <linux/types.h>

enum tc_pi2_signal {
	TC_PI2_SIGNAL_RECUR = 0,	/* evenly spaced marks and drops */
	TC_PI2_SIGNAL_RANDOM = 1,	/* independent random ones */
	__TC_PI2_SIGNAL_MAX,
};
#define TC_PI2_SIGNAL_MAX (__TC_PI2_SIGNAL_MAX - 1)

enum {
	TCA_PI2_UNSPEC,
	TCA_PI2_LIMIT,			/* u32, packets */
	TCA_PI2_TARGET,			/* u32, us */
	TCA_PI2_TUPDATE,		/* u32, us */
	TCA_PI2_ALPHA,			/* u32, 1/256 Hz */
	TCA_PI2_BETA,			/* u32, 1/256 Hz */
	TCA_PI2_COUPLING,		/* u8, k */
	TCA_PI2_ECN,			/* u8, 0: drop ECT(0) instead of marking it */
	TCA_PI2_SIGNAL,			/* u8, enum tc_pi2_signal */
	TCA_PI2_DROP_ENQUEUE,		/* u8, 1: decide at enqueue, 0: at dequeue */
	TCA_PI2_SQUARE,			/* u8, 1: p_c = p'^2, 0: p_c = p' */
	__TCA_PI2_MAX
};
#define TCA_PI2_MAX (__TCA_PI2_MAX - 1)

#define TC_PI2_CODEPOINTS	4	/* Not-ECT, ECT(1), ECT(0), CE: as in the header */

/* Packets that came with one codepoint.  What waits is
 * arrived - forwarded - dropped_aqm - dropped_limit - purged.
 */
struct tc_pi2_codepoint {
	__u64 arrived;
	__u64 forwarded;
	__u64 marked;			/* of those: set to CE here */
	__u64 dropped_aqm;		/* by their probability, at enqueue or at dequeue */
	__u64 dropped_limit;		/* on arrival: the queue was full */
	__u64 purged;			/* by a lower limit or a reset */
};

/* TCA_STATS_APP.  A reader takes what is there of it, the rest is 0. */
struct tc_pi2_xstats {
	struct tc_pi2_codepoint codepoint[TC_PI2_CODEPOINTS];
	__u64 arrived_bytes;		/* = the next three + bytes */
	__u64 forwarded_bytes;
	__u64 dropped_bytes;
	__u64 purged_bytes;
	__u64 bytes;			/* in the queue now */
	__u64 delay_sum_ns;		/* time in the queue, of all that were forwarded */
	__u64 delay_max_ns;
	__u64 delay_ns;			/* of the first one in the queue, so far; 0: none */
	__u64 capped_count;		/* times that the probabilities reached their caps */
	__u64 capped_ns;		/* time that they were there, this one included */
	__u64 mark_failed;		/* CE not set: header not writable, no memory */
	__u64 gso_failed;		/* GSO packets dropped: could not be split */
	__u64 unparsed;			/* packets without a readable IP header */
	__u32 packets;			/* in the queue now */
	__u32 max_packets;		/* most ever */
	__u32 prob;			/* p', 2^32 - 1 is 1 */
	__u32 prob_classic;		/* of a drop or a mark: Not-ECT, ECT(0) */
	__u32 prob_scalable;		/* of a mark: ECT(1) */
	__u32 capped;			/* 1: at the caps now */
};

#endif /* _UAPI_LINUX_PI2_H */
