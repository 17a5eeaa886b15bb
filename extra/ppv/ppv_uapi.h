/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Netlink ABI of the qdisc ppv, and where packets carry their values.  Experimental:
 * it may change.  packet_value.h has limits and defaults, tc-ppv(8) the meanings.
 */
#ifndef _UAPI_LINUX_PPV_H
#define _UAPI_LINUX_PPV_H

#include <linux/types.h>

/* Where a packet carries its value. */
enum tc_ppv_carry {
	TC_PPV_CARRY_MARK = 0,		/* the low 16 bits of skb->mark */
	TC_PPV_CARRY_IPV4_ID = 1,	/* Identification of atomic IPv4 packets */
	__TC_PPV_CARRY_MAX,
};
#define TC_PPV_CARRY_MAX (__TC_PPV_CARRY_MAX - 1)

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

#endif /* _UAPI_LINUX_PPV_H */
