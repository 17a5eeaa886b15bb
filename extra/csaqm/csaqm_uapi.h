/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Netlink ABI of the qdiscs csaqm and vdq_csaqm, which share their attributes.
 * Experimental: it may change.  csaqm.h has limits and defaults, tc-csaqm(8) the
 * meanings.
 */
#ifndef _UAPI_LINUX_CSAQM_H
#define _UAPI_LINUX_CSAQM_H

#include <linux/types.h>
#include "ppv_uapi.h"

enum {
	TCA_CSAQM_UNSPEC,
	TCA_CSAQM_PAD,			/* not sent: u64 are aligned to 4 bytes */
	TCA_CSAQM_BANDWIDTH,		/* u64, bytes/s; required */
	TCA_CSAQM_LIMIT,		/* u32, packets, and records of a virtual queue */
	TCA_CSAQM_TUPDATE,		/* u32, us between two threshold values */
	TCA_CSAQM_TARGET,		/* u32, us; vdq_csaqm: of the Classic virtual queue */
	TCA_CSAQM_BUFFER,		/* u32, us; vdq_csaqm: of the Classic queue */
	TCA_CSAQM_CARRY,		/* u8, enum tc_ppv_carry */
	TCA_CSAQM_ECN,			/* u8, 0: drop ECT(0) instead of marking it */
	/* vdq_csaqm only */
	TCA_CSAQM_TARGET_L,		/* u32, us, of the L4S virtual queue */
	TCA_CSAQM_BUFFER_L,		/* u32, us, of the L4S queue */
	TCA_CSAQM_VRATE,		/* u32, 1/1000 of the bandwidth, Classic virtual queue */
	TCA_CSAQM_VRATE_L,		/* u32, 1/1000 of the bandwidth, L4S virtual queue */
	/* csaqm only */
	TCA_CSAQM_ARRIVAL_DROP,		/* u8, 1: a full queue drops by value */
	__TCA_CSAQM_MAX
};
#define TCA_CSAQM_MAX (__TCA_CSAQM_MAX - 1)

/* One physical queue, and the virtual queue that is named like it. */
struct tc_csaqm_queue {
	__u64 arrived;			/* packets that came for it */
	__u64 forwarded;		/* packets */
	__u64 marked;			/* of these: CE set here */
	__u64 dropped_value;		/* packets, value below the threshold: at dequeue,
					 * or for one that arrived at a full queue
					 */
	__u64 dropped_buffer;		/* packets, queue or a virtual queue full */
	__u64 dropped_limit;		/* packets, beyond the limit in packets */
	__u64 purged;			/* packets, by a change or a reset */
	__u64 no_value;			/* of those that came: without a value */
	__u64 delay_sum_ns;		/* of all that were forwarded */
	__u64 delay_max_ns;
	__u64 bytes;			/* that wait */
	__u64 virtual_bytes;		/* in the virtual queue */
	__u32 packets;			/* that wait */
	__u32 threshold;		/* coded value, 0..65536: below it, signal */
};

/* TCA_STATS_APP.  csaqm: all of it is in c. */
struct tc_csaqm_xstats {
	struct tc_csaqm_queue c;
	struct tc_csaqm_queue l;
	__u64 updates;			/* of the threshold values */
	__u64 mark_failed;		/* packets whose header could not be written */
	__u64 gso_failed;		/* packets, dropped: could not be split */
	__u64 unparsed;			/* packets without an IP header that can be read */
	__u64 throttled;		/* times that the shaper had them wait */
};

#endif /* _UAPI_LINUX_CSAQM_H */
