/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kernels from 5.10 on lack of the newest one, or name otherwise.  It is
 * included after all kernel headers.  probes.mk probes the headers for each
 * DUALPI2_HAVE_*, because stable kernels get features at odd versions.
 */
#ifndef _DUALPI2_COMPAT_H
#define _DUALPI2_COMPAT_H

#include <linux/module.h>
#include <net/gen_stats.h>
#include <net/pkt_cls.h>
#include <net/sch_generic.h>
/* 6.5; before, linux/netdevice.h had its contents. */
#ifdef DUALPI2_HAVE_NET_GSO_H
#include <net/gso.h>
#endif

/* 6.9; before, the core asks for sch_<id>, which every kernel is given too. */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("net-sch-" id)
#endif

/* The greatest length on the link that a size table may give a packet: 6.1.192,
 * 7.3; before, there was no bound.
 */
#ifndef QDISC_PKT_LEN_MAX
#define QDISC_PKT_LEN_MAX	(1 << 20)
#endif

/* Run the filters of a qdisc.  A redirect is not possible from here: some
 * kernels turn it into a drop themselves, the others are helped.
 */
static inline int dualpi2_compat_classify(struct sk_buff *skb,
					  const struct tcf_proto *tp,
					  struct tcf_result *res)
{
#ifdef DUALPI2_HAVE_TCF_CLASSIFY_INGRESS	/* before 5.15 */
	int ret = tcf_classify(skb, tp, res, false);
#else
	int ret = tcf_classify(skb, NULL, tp, res, false);
#endif

	return ret == TC_ACT_REDIRECT ? TC_ACT_SHOT : ret;
}

/* Make a segment of a GSO packet look like a packet of its own to the qdisc
 * layer.  Since 6.19 the control block counts segments; since 7.2 the split
 * overwrites the drop reason, which lies where its own state is.
 */
static inline void dualpi2_compat_init_segment(struct sk_buff *skb)
{
#ifdef DUALPI2_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
#if defined(DUALPI2_HAVE_QDISC_DROP_REASON)
	tcf_set_qdisc_drop_reason(skb, QDISC_DROP_GENERIC);
#elif defined(DUALPI2_HAVE_SKB_DROP_REASON)
	tcf_set_drop_reason(skb, SKB_DROP_REASON_QDISC_DROP);
#endif
}

/* Why packets are dropped, as skb:kfree_skb and dropwatch report it.  Before 7.2
 * there is one reason for all qdiscs, before 5.17 there is none.
 */
enum dualpi2_compat_reason {
#ifdef DUALPI2_HAVE_QDISC_DROP_REASON
	DUALPI2_REASON_OTHER = QDISC_DROP_GENERIC,
	DUALPI2_REASON_LIMIT = QDISC_DROP_OVERLIMIT,
	DUALPI2_REASON_AQM = QDISC_DROP_CONGESTED,
	DUALPI2_REASON_OVERLOAD = QDISC_DROP_FLOOD_PROTECTION,
#else
	DUALPI2_REASON_OTHER,
	DUALPI2_REASON_LIMIT,
	DUALPI2_REASON_AQM,
	DUALPI2_REASON_OVERLOAD,
#endif
};

/* Drop a packet in enqueue.  Returns NET_XMIT_DROP. */
static inline int dualpi2_compat_drop(struct sk_buff *skb, struct Qdisc *sch,
				      struct sk_buff **to_free,
				      enum dualpi2_compat_reason reason)
{
#ifdef DUALPI2_HAVE_QDISC_DROP_REASON
	tcf_set_qdisc_drop_reason(skb, (enum qdisc_drop_reason)reason);
#endif
	return qdisc_drop(skb, sch, to_free);
}

/* Drop a packet in dequeue.  From 7.2 on a root qdisc frees it after the lock is
 * released, if its flags were set by dualpi2_compat_init().
 */
static inline void
dualpi2_compat_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb,
			    enum dualpi2_compat_reason reason)
{
#if defined(DUALPI2_HAVE_QDISC_DROP_REASON)
	qdisc_dequeue_drop(sch, skb, (enum qdisc_drop_reason)reason);
#elif defined(DUALPI2_HAVE_QDISC_DROP)
	kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
#else
	kfree_skb(skb);
#endif
}

static inline void dualpi2_compat_init(struct Qdisc *sch)
{
#ifdef DUALPI2_HAVE_QDISC_DROP_REASON
	sch->flags |= TCQ_F_DEQUEUE_DROPS;
#endif
}

/* Packets and bytes into a dump; 5.16 has another type for them. */
static inline int dualpi2_compat_copy_basic(struct gnet_dump *d, u64 bytes,
					    u64 packets)
{
#ifdef DUALPI2_HAVE_GNET_STATS_BASIC_SYNC
	struct gnet_stats_basic_sync basic;

	gnet_stats_basic_sync_init(&basic);
	u64_stats_set(&basic.bytes, bytes);
	u64_stats_set(&basic.packets, packets);
	return gnet_stats_copy_basic(d, NULL, &basic, false);
#else
	struct gnet_stats_basic_packed basic = {
		.bytes = bytes,
		.packets = packets,
	};

	return gnet_stats_copy_basic(NULL, d, NULL, &basic);
#endif
}

#endif /* _DUALPI2_COMPAT_H */
