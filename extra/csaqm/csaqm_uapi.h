/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Netlink ABI of the qdiscs csaqm and vdq_csaqm, which share their attributes, and
 * of ppv, which gives packets their values.  Experimental: it may change.
 *
 * This is not the place for defaults or for what a value does: limits and defaults
 * are in csaqm.h and packet_value.h, meanings in tc-csaqm(8) and tc-ppv(8).
 */
#ifndef _UAPI_LINUX_CSAQM_H
#define _UAPI_LINUX_CSAQM_H

#include <linux/types.h>

/* Where a packet carries its value. */
enum tc_ppv_carry {
	TC_PPV_CARRY_MARK = 0,		/* the low 16 bits of skb->mark */
	TC_PPV_CARRY_IPV4_ID = 1,	/* Identification of atomic IPv4 packets */
	__TC_PPV_CARRY_MAX,
};
#define TC_PPV_CARRY_MAX (__TC_PPV_CARRY_MAX - 1)

enum {
	TCA_CSAQM_UNSPEC,
	TCA_CSAQM_PAD,			/* not sent: u64 are aligned to 4 bytes */
	TCA_CSAQM_BANDWIDTH,		/* u64, bytes/s; has to be given */
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
	__TCA_CSAQM_MAX
};
#define TCA_CSAQM_MAX (__TCA_CSAQM_MAX - 1)

/* One physical queue, and the virtual queue that is named like it. */
struct tc_csaqm_queue {
	__u64 arrived;			/* packets that came for it */
	__u64 forwarded;		/* packets */
	__u64 marked;			/* of these: CE set here */
	__u64 dropped_value;		/* packets, value below the threshold */
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

enum {
	TCA_PPV_UNSPEC,
	TCA_PPV_DEFAULT,		/* u32, number of the function for all others */
	TCA_PPV_WINDOW,			/* u32, us over which rates are measured */
	TCA_PPV_CARRY,			/* u8, enum tc_ppv_carry */
	TCA_PPV_TVF,			/* nest of TCA_PPV_TVF_*; may come more than once */
	__TCA_PPV_MAX
};
#define TCA_PPV_MAX (__TCA_PPV_MAX - 1)

enum {
	TCA_PPV_TVF_UNSPEC,
	TCA_PPV_TVF_NUMBER,		/* u32, 1..TC_PPV_TVFS: minor number of the class */
	TCA_PPV_TVF_POINTS,		/* array of struct tc_ppv_point */
	__TCA_PPV_TVF_MAX
};
#define TCA_PPV_TVF_MAX (__TCA_PPV_TVF_MAX - 1)

#define TC_PPV_TVFS		16	/* functions of one qdisc */
#define TC_PPV_POINTS		32	/* most of one function */

/* A point of a throughput-value function; rates go up, values down.  From one to the
 * next it is straight in logarithms; before the first and behind the last it is flat.
 */
struct tc_ppv_point {
	__u64 rate;			/* bytes/s, at least 1 */
	__u32 value;			/* coded, 1..65535: log(value) / log(10^10) * 65535 */
	__u32 pad;			/* 0 */
};

/* TCA_STATS_APP of ppv. */
struct tc_ppv_xstats {
	__u64 valued;			/* packets that got a value */
	__u64 not_valued;		/* packets that got none */
	__u64 no_function;		/* of these: class without a function */
	__u64 flows_new;		/* times that a flow was not known */
	__u64 flows_evicted;		/* of these: another one still active made room */
	__u64 gso_failed;		/* packets, dropped: could not be split */
	__u64 filter_dropped;		/* packets that a filter dropped */
	__u64 child_dropped;		/* packets that the qdisc below did not take */
};

#endif /* _UAPI_LINUX_CSAQM_H */
