/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Netlink ABI of the dualpi2 qdisc.  <linux/pkt_sched.h> of Linux 7.x has its basic
 * options and statistics; here are the other ones.  This header is append-only.
 *
 * tc-dualpi2(8) describes the options, and has their ranges and defaults.
 */
#ifndef _UAPI_LINUX_DUALPI2_H
#define _UAPI_LINUX_DUALPI2_H

#include <linux/types.h>
#include <linux/pkt_sched.h>

/* What <linux/pkt_sched.h> of Linux 7.x has, for other kernel headers. */
#ifndef TCA_DUALPI2_MAX

enum tc_dualpi2_drop_overload {
	TC_DUALPI2_DROP_OVERLOAD_OVERFLOW = 0,
	TC_DUALPI2_DROP_OVERLOAD_DROP = 1,
	__TCA_DUALPI2_DROP_OVERLOAD_MAX,
};
#define TCA_DUALPI2_DROP_OVERLOAD_MAX (__TCA_DUALPI2_DROP_OVERLOAD_MAX - 1)

enum tc_dualpi2_drop_early {
	TC_DUALPI2_DROP_EARLY_DROP_DEQUEUE = 0,
	TC_DUALPI2_DROP_EARLY_DROP_ENQUEUE = 1,
	__TCA_DUALPI2_DROP_EARLY_MAX,
};
#define TCA_DUALPI2_DROP_EARLY_MAX (__TCA_DUALPI2_DROP_EARLY_MAX - 1)

enum tc_dualpi2_ecn_mask {
	TC_DUALPI2_ECN_MASK_L4S_ECT = 1,
	TC_DUALPI2_ECN_MASK_CLA_ECT = 2,
	TC_DUALPI2_ECN_MASK_ANY_ECT = 3,
	__TCA_DUALPI2_ECN_MASK_MAX,
};
#define TCA_DUALPI2_ECN_MASK_MAX (__TCA_DUALPI2_ECN_MASK_MAX - 1)

enum tc_dualpi2_split_gso {
	TC_DUALPI2_SPLIT_GSO_NO_SPLIT_GSO = 0,
	TC_DUALPI2_SPLIT_GSO_SPLIT_GSO = 1,
	__TCA_DUALPI2_SPLIT_GSO_MAX,
};
#define TCA_DUALPI2_SPLIT_GSO_MAX (__TCA_DUALPI2_SPLIT_GSO_MAX - 1)

enum {
	TCA_DUALPI2_UNSPEC,
	TCA_DUALPI2_LIMIT,		/* u32, packets */
	TCA_DUALPI2_MEMORY_LIMIT,	/* u32, bytes of truesize */
	TCA_DUALPI2_TARGET,		/* u32, us */
	TCA_DUALPI2_TUPDATE,		/* u32, us */
	TCA_DUALPI2_ALPHA,		/* u32, 1/256 Hz */
	TCA_DUALPI2_BETA,		/* u32, 1/256 Hz */
	TCA_DUALPI2_STEP_THRESH_PKTS,	/* u32, packets */
	TCA_DUALPI2_STEP_THRESH_US,	/* u32, us */
	TCA_DUALPI2_MIN_QLEN_STEP,	/* u32, packets */
	TCA_DUALPI2_COUPLING,		/* u8, factor k */
	TCA_DUALPI2_DROP_OVERLOAD,	/* u8, enum tc_dualpi2_drop_overload */
	TCA_DUALPI2_DROP_EARLY,		/* u8, enum tc_dualpi2_drop_early */
	TCA_DUALPI2_C_PROTECTION,	/* u8, percent of the Classic queue */
	TCA_DUALPI2_ECN_MASK,		/* u8, enum tc_dualpi2_ecn_mask */
	TCA_DUALPI2_SPLIT_GSO,		/* u8, enum tc_dualpi2_split_gso */
	TCA_DUALPI2_PAD,
	__TCA_DUALPI2_MAX
};

#define TCA_DUALPI2_MAX (__TCA_DUALPI2_MAX - 1)

struct tc_dualpi2_xstats {
	__u32 prob;		/* base probability p', 2^32 - 1 is 1 */
	__u32 delay_c;		/* us, age of the head of the Classic queue */
	__u32 delay_l;		/* us, age of the head of the L4S queue */
	__u32 packets_in_c;	/* packets ever queued in the Classic queue */
	__u32 packets_in_l;	/* packets ever queued in the L4S queue */
	__u32 maxq;		/* packets, maximum of both queues together */
	__u32 ecn_mark;		/* packets set to CE here, for any reason */
	__u32 step_marks;	/* of these: by the native L4S marker */
	__s32 credit;		/* WRR credit; above 0 Classic sends next */
	__u32 memory_used;	/* bytes of truesize */
	__u32 max_memory_used;	/* bytes, maximum */
	__u32 memory_limit;	/* bytes */
};

#endif /* TCA_DUALPI2_MAX */

/*
 * The extension: all other options, in one nested attribute of TCA_OPTIONS.  Its number
 * is far from those that Linux assigns consecutively.  A tc without support for it skips
 * it.
 */
#define TCA_DUALPI2_EXT		0x0d50	/* nest of TCA_DUALPI2_EXT_* */

enum {
	TCA_DUALPI2_EXT_UNSPEC,
	TCA_DUALPI2_EXT_L4S,		/* u8, 0: treat ECT(1) as Not-ECT */
	TCA_DUALPI2_EXT_RAMP_US,	/* u32, us, width of the native ramp */
	TCA_DUALPI2_EXT_SIGNAL,		/* u8, enum tc_dualpi2_signal */
	TCA_DUALPI2_EXT_P_CMAX,		/* u8, percent, overload begins; 0: 1/k^2 */
	TCA_DUALPI2_EXT_HIST_C,		/* u32, us, see struct tc_dualpi2_delay */
	TCA_DUALPI2_EXT_HIST_L,		/* u32, us */
	TCA_DUALPI2_EXT_REPORT,		/* u32, us between reports; 0: none */
	TCA_DUALPI2_EXT_PAD,		/* not sent: u64 are aligned to 4 bytes */
	TCA_DUALPI2_EXT_BANDWIDTH,	/* u64, bytes/s of the shaper; 0: none */
	TCA_DUALPI2_EXT_FRAMING,	/* u8, enum tc_dualpi2_framing */
	TCA_DUALPI2_EXT_OVERHEAD,	/* s32, bytes added to an IP packet */
	TCA_DUALPI2_EXT_MPU,		/* u32, bytes, minimum length on the link */
	TCA_DUALPI2_EXT_INGRESS,	/* u8, 1: charge link time for drops */
	TCA_DUALPI2_EXT_NQB,		/* u64, bit N: DSCP N to the L4S queue */
	TCA_DUALPI2_EXT_BURST_MAX,	/* u32, us, max. burst tolerance; 0: none */
	TCA_DUALPI2_EXT_BYPASS,		/* u8, 1: packets skip an empty qdisc */
	TCA_DUALPI2_EXT_QPROTECT,	/* u8, enum tc_dualpi2_qprotect_mode */
	TCA_DUALPI2_EXT_QPROTECT_DELAY,	/* u32, us, critical queueing delay */
	TCA_DUALPI2_EXT_QPROTECT_SCORE,	/* u32, us, critical queueing score */
	TCA_DUALPI2_EXT_QPROTECT_RATE,	/* u64, bytes/s, at which scores age */
	__TCA_DUALPI2_EXT_MAX
};

#define TCA_DUALPI2_EXT_MAX (__TCA_DUALPI2_EXT_MAX - 1)

enum tc_dualpi2_signal {
	TC_DUALPI2_SIGNAL_RECUR = 0,	/* evenly spaced marks and drops */
	TC_DUALPI2_SIGNAL_RANDOM = 1,	/* independent random ones */
	__TC_DUALPI2_SIGNAL_MAX,
};
#define TC_DUALPI2_SIGNAL_MAX (__TC_DUALPI2_SIGNAL_MAX - 1)

/* Length of a packet on the link that the shaper models.  RAW: the kernel's packet
 * length (Ethernet: without FCS).  All others: the IP packet plus the overhead, but at
 * least the MPU.
 */
enum tc_dualpi2_framing {
	TC_DUALPI2_FRAMING_RAW = 0,	/* overhead and MPU are not used */
	TC_DUALPI2_FRAMING_NOATM = 1,
	TC_DUALPI2_FRAMING_ATM = 2,	/* in cells: 48 bytes take 53 */
	TC_DUALPI2_FRAMING_PTM = 3,	/* 64 bytes take 65 */
	__TC_DUALPI2_FRAMING_MAX,
};
#define TC_DUALPI2_FRAMING_MAX (__TC_DUALPI2_FRAMING_MAX - 1)

/* Queue protection.  TUPLE and HASH differ in what the statistics have about flows. */
enum tc_dualpi2_qprotect_mode {
	TC_DUALPI2_QPROTECT_MODE_OFF = 0,
	TC_DUALPI2_QPROTECT_MODE_TUPLE = 1,	/* addresses and ports */
	TC_DUALPI2_QPROTECT_MODE_HASH = 2,	/* the hash alone */
	__TC_DUALPI2_QPROTECT_MODE_MAX,
};
#define TC_DUALPI2_QPROTECT_MODE_MAX (__TC_DUALPI2_QPROTECT_MODE_MAX - 1)

/*
 * Statistics of the extension.  They follow struct tc_dualpi2_xstats in the same
 * attribute at a fixed offset, so that the struct of Linux can grow (the gap is zero).  A
 * reader checks the payload's length and the magic number, reads min(size, its own
 * sizeof) bytes and treats missing fields as zero.
 *
 * After the struct, from the offset plus size to the end of the payload, come netlink
 * attributes TCA_DUALPI2_STATS_*.
 */
#define TC_DUALPI2_EXT_XSTATS_OFFSET	256
#define TC_DUALPI2_EXT_XSTATS_MAGIC	0x64703278	/* "dp2x" */

/* Reserved fields are zero.  Earlier versions reported in them what the attributes have. */
struct tc_dualpi2_ext_xstats {
	__u32 magic;		/* TC_DUALPI2_EXT_XSTATS_MAGIC */
	__u32 size;		/* bytes of this struct as the kernel knows it */
	__u64 reserved[32];
	__u64 unparsed;		/* packets without a readable IP header */
	__u64 filter_dropped;	/* packets that a tc filter dropped; those that it
				 * redirected or kept are not counted here
				 */
	__u64 gso_failed;	/* GSO packets dropped: could not be split */
	__u64 mark_failed;	/* CE not set: header not writable, no memory */
	__u64 reserved2[2];
	__u32 reserved3;
	__u32 prob_c;		/* Classic probability, 2^32 - 1 is 1 */
	__u32 prob_cl;		/* coupled probability, 2^32 - 1 is 1 */
	__u32 pad;
};

/* How to read attributes in statistics: skip unknown ones; a struct can be longer or
 * shorter than the reader's own, missing fields are zero.  64-bit numbers are aligned to
 * 4 bytes only.  Counters are never reset while the qdisc exists; they wrap around at
 * 2^64.
 */
enum {
	TCA_DUALPI2_STATS_UNSPEC,
	TCA_DUALPI2_STATS_PAD,
	TCA_DUALPI2_STATS_C,		/* nest of TCA_DUALPI2_QUEUE_*: Classic */
	TCA_DUALPI2_STATS_L,		/* the same for the L4S queue */
	TCA_DUALPI2_STATS_OVERLOAD,	/* struct tc_dualpi2_overload */
	TCA_DUALPI2_STATS_LINK,		/* struct tc_dualpi2_link */
	TCA_DUALPI2_STATS_QPROTECT,	/* struct tc_dualpi2_qprotect; of the qdisc and
					 * of the class of the L4S queue, not if off
					 */
	TCA_DUALPI2_STATS_QPROTECT_FLOWS, /* nest of struct tc_dualpi2_qprotect_flow,
					   * type 1 to 8, highest score first; of the
					   * class of the L4S queue only
					   */
	__TCA_DUALPI2_STATS_MAX
};
#define TCA_DUALPI2_STATS_MAX (__TCA_DUALPI2_STATS_MAX - 1)

/* The queues are also classes: HANDLE:1 is the L4S queue, HANDLE:3 the Classic queue.
 * The statistics of a class have the structs of the qdisc, the nest of its queue, and
 * the attributes that name the class.
 */
enum {
	TCA_DUALPI2_QUEUE_UNSPEC,
	TCA_DUALPI2_QUEUE_PAD,
	TCA_DUALPI2_QUEUE_COUNTERS,	/* struct tc_dualpi2_counters */
	TCA_DUALPI2_QUEUE_DELAY,	/* struct tc_dualpi2_delay */
	TCA_DUALPI2_QUEUE_HIST,		/* u64[]: packets forwarded, by delay;
					 * not in the message of a deletion
					 */
	__TCA_DUALPI2_QUEUE_MAX
};
#define TCA_DUALPI2_QUEUE_MAX (__TCA_DUALPI2_QUEUE_MAX - 1)

/* One queue, in packets unless the name has _bytes.  "not_ect" are packets without ECN,
 * "ect" those that arrived with ECT(1), ECT(0) or CE.  At any moment
 *
 *	arrived = presented + dropped_limit + dropped_memory + dropped_purge +
 *		  queued
 *	presented = forwarded + dropped_early + dropped_aqm + dropped_overload
 *
 * where arrived is the sum over all codepoints, and each dropped_ counter the sum of
 * not_ect and ect.  The same holds for bytes.
 */
struct tc_dualpi2_counters {
	__u64 arrived_not_ect;
	__u64 arrived_ect1;
	__u64 arrived_ect0;
	__u64 arrived_ce;
	__u64 arrived_bytes;
	__u64 presented;	/* to the AQM */
	__u64 presented_bytes;
	__u64 forwarded;
	__u64 forwarded_bytes;
	__u64 queued;
	__u64 queued_bytes;
	__u64 marked_classic;	/* set to CE with the Classic probability */
	__u64 marked_coupled;	/* set to CE with the coupled probability */
	__u64 marked_native;	/* set to CE by the native L4S marker */
	__u64 not_ect_dropped_limit;	/* on arrival: packet limit reached */
	__u64 not_ect_dropped_memory;	/* on arrival: memory limit reached */
	__u64 not_ect_dropped_early;	/* on arrival: AQM, with drop_enqueue */
	__u64 not_ect_dropped_aqm;	/* at departure: AQM, below overload */
	__u64 not_ect_dropped_overload;	/* at departure: AQM, in overload */
	__u64 not_ect_dropped_purge;	/* by change of the limits or by reset */
	__u64 ect_dropped_limit;
	__u64 ect_dropped_memory;
	__u64 ect_dropped_early;
	__u64 ect_dropped_aqm;
	__u64 ect_dropped_overload;
	__u64 ect_dropped_purge;
	__u64 dropped_arrival_bytes;	/* limit, memory and early */
	__u64 dropped_aqm_bytes;	/* aqm and overload */
	__u64 dropped_purge_bytes;
};

/* Sojourn times of a queue's forwarded packets, from enqueue to dequeue.  Bucket i of
 * the histogram begins at tc_dualpi2_bucket(i) * unit_ns and ends where the next one
 * begins.  From 8 * unit_ns on, a bucket's width is at most 1/8 of its delay.  The number
 * of buckets is "buckets"; trailing buckets that are zero are not sent.
 */
struct tc_dualpi2_delay {
	__u64 sum_ns;		/* of all packets in the histogram */
	__u64 max_ns;
	__u64 beyond;		/* packets with a delay beyond the last bucket */
	__u32 unit_ns;		/* a power of two */
	__u32 buckets;
	__u32 generation;	/* changes when new bucket boundaries reset
				 * this struct and the histogram
				 */
	__u32 pad;
};

/* Lower boundary of bucket i in units of unit_ns, for i < TC_DUALPI2_BUCKETS_MAX; from
 * there on it exceeds 64 bits.
 */
#define TC_DUALPI2_BUCKETS_MAX	496

static __inline__ __u64 tc_dualpi2_bucket(__u32 i)
{
	return i < 8 ? i : (__u64)(8 + i % 8) << (i / 8 - 1);
}

/* Overload (RFC 9332 4.2.3): both queues drop, except with "overflow". */
struct tc_dualpi2_overload {
	__u64 count;		/* number of times that it began */
	__u64 total_ns;		/* time spent in it, this one included */
	__u64 start_ns;		/* begin of the present or last one, since 1970, UTC */
	__u64 duration_ns;	/* of the present or last one */
	__u64 reports;		/* reports sent, with or without listeners */
	__u32 now;		/* 1: in overload */
	__u32 pad;
};

/* The link, and what depends on it.  "nqb" are packets in the L4S queue for their DSCP
 * alone.
 */
struct tc_dualpi2_link {
	__u64 drain_rate;	/* bytes/s: rate of the shaper, or estimated
				 * during a backlog; 0: not known yet
				 */
	__u64 throttled;	/* dequeues that the shaper delayed */
	__u64 nqb_arrived;	/* packets */
	__u64 nqb_dropped;	/* of these: limit of NQB; in dropped_limit, too */
	__u32 burst_ns;		/* present burst tolerance of the L4S queue */
	__u32 ramp_min_ns;	/* present native marker: no marks up to this */
	__u32 ramp_max_ns;	/* it marks all from this on.  With a shaper and
				 * a Classic backlog: 60 % of both, unless bursts
				 * are tolerated
				 */
	__u32 limit_pkts;	/* both queues, as in force */
	__u32 nqb_limit_bytes;	/* in the L4S queue, as in force; 0: the rate is
				 * not known yet, the limit is a delay of 10 ms
				 */
	__u32 target_ns;	/* effective target: on slow links above
				 * TCA_DUALPI2_TARGET
				 */
};

/* Queue protection (RFC 9957).  A packet that it redirects counts in the counters of the
 * Classic queue.
 */
struct tc_dualpi2_qprotect {
	__u64 redirected;	/* packets to the Classic queue */
	__u64 redirected_bytes;
	__u64 sanctions;	/* times that the redirection of a flow began */
	__u64 scored;		/* packets that raised a score */
	__u64 scored_shared;	/* of these: the score of the shared bucket */
	__u64 alloc_failed;	/* attempts to allocate the buckets without success */
	__u32 sanctioned;	/* flows redirected now */
	__u32 buckets_used;	/* flows with a score now, the shared bucket too */
	__u32 buckets;		/* in memory, the shared bucket too; 0: no
				 * congestion yet
				 */
	__u32 score_max_us;	/* highest score now */
};

/* A flow with a score.  Addresses, ports and protocol are zero with
 * TC_DUALPI2_QPROTECT_MODE_HASH, in the shared bucket and before the flow's first
 * redirected packet.
 */
struct tc_dualpi2_qprotect_flow {
	__u32 hash;		/* constant while the flow has a score; 0: flows in
				 * the shared bucket
				 */
	__u32 score_us;
	__u32 redirected;	/* packets; at most 2^32 - 1 */
	__u8 sanctioned;	/* 1: is redirected now */
	__u8 family;		/* AF_INET, AF_INET6; 0: addresses not known */
	__u8 protocol;		/* IPPROTO_* */
	__u8 shared;		/* 1: the shared bucket */
	__u8 src[16];		/* IPv4: the first 4 bytes */
	__u8 dst[16];
	__u16 sport;		/* host byte order; 0: not known, as in fragments */
	__u16 dport;
};

/* Reports of overload (RFC 9332 2.5.2.3) are generic netlink messages to the listeners in
 * the device's network namespace.  The minimum time between two reports of a qdisc is
 * TCA_DUALPI2_EXT_REPORT; the next report covers the time since the last one.
 */
#define DUALPI2_GENL_NAME	"dualpi2"
#define DUALPI2_GENL_VERSION	1
#define DUALPI2_GENL_GROUP	"overload"

enum {
	DUALPI2_CMD_UNSPEC,
	DUALPI2_CMD_OVERLOAD_BEGIN,
	DUALPI2_CMD_OVERLOAD_END,
	__DUALPI2_CMD_MAX
};
#define DUALPI2_CMD_MAX (__DUALPI2_CMD_MAX - 1)

enum {
	DUALPI2_A_UNSPEC,
	DUALPI2_A_PAD,
	DUALPI2_A_IFINDEX,	/* u32 */
	DUALPI2_A_HANDLE,	/* u32, of the qdisc */
	DUALPI2_A_PARENT,	/* u32 */
	DUALPI2_A_START_NS,	/* u64, since 1970, UTC: the first one's begin */
	DUALPI2_A_DURATION_NS,	/* u64, in overload since then; not the pauses */
	DUALPI2_A_COUNT,	/* u32, times that it began since then */
	__DUALPI2_A_MAX
};
#define DUALPI2_A_MAX (__DUALPI2_A_MAX - 1)

#endif /* _UAPI_LINUX_DUALPI2_H */
