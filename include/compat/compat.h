/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels from 5.10 on and the newest one.  Include this file after
 * all kernel headers.  probes.mk probes the headers for each
 * DUALPI2_HAVE_*, because stable kernels get features at odd versions.
 *
 * scripts/kernel-patches resolves this file for one kernel: it puts the bodies of one
 * statement and the definitions DUALPI2_REASON_* in place of their uses, and moves the
 * other functions to dualpi2_packet.h.
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

/* 6.9; earlier kernels request sch_<id>, which the module has as an alias, too. */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("net-sch-" id)
#endif

/* Maximum length that a size table can give a packet: 6.1.192, 7.3; unlimited before. */
#ifndef QDISC_PKT_LEN_MAX
#define QDISC_PKT_LEN_MAX	(1 << 20)
#endif

/* Run the filters of a qdisc.  A qdisc cannot redirect: some kernels turn a redirect
 * into a drop themselves, this function does so for the others.
 */
static inline int dualpi2_compat_run_filters(struct sk_buff *skb,
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
 * layer.  The split overwrites the drop reason, because its state is at the same place.
 */
static inline void dualpi2_compat_reset_cb(struct sk_buff *skb)
{
#ifdef DUALPI2_HAVE_PKT_SEGS	/* 6.19 */
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
#if defined(DUALPI2_HAVE_QDISC_DROP_REASON)	/* 7.2 */
	tcf_set_qdisc_drop_reason(skb, QDISC_DROP_GENERIC);
#elif defined(DUALPI2_HAVE_SKB_DROP_REASON)
	tcf_set_drop_reason(skb, SKB_DROP_REASON_QDISC_DROP);
#endif
}

/* Drop reasons, as skb:kfree_skb and dropwatch report them.  Before 7.2 there is one
 * reason for all qdiscs, before 5.17 none.
 */
#ifdef DUALPI2_HAVE_QDISC_DROP_REASON
#define dualpi2_compat_reason	qdisc_drop_reason
#define DUALPI2_REASON_OTHER	QDISC_DROP_GENERIC
#define DUALPI2_REASON_LIMIT	QDISC_DROP_OVERLIMIT
#define DUALPI2_REASON_AQM	QDISC_DROP_CONGESTED
#define DUALPI2_REASON_OVERLOAD	QDISC_DROP_FLOOD_PROTECTION
#else
enum dualpi2_compat_reason {
	DUALPI2_REASON_OTHER,
	DUALPI2_REASON_LIMIT,
	DUALPI2_REASON_AQM,
	DUALPI2_REASON_OVERLOAD,
};
#endif

/* Drop a packet in enqueue.  Returns NET_XMIT_DROP. */
static inline int dualpi2_compat_drop(struct sk_buff *skb, struct Qdisc *sch,
				      struct sk_buff **to_free,
				      enum dualpi2_compat_reason reason)
{
#ifdef DUALPI2_HAVE_QDISC_DROP_REASON
	return qdisc_drop_reason(skb, sch, to_free, reason);
#else
	return qdisc_drop(skb, sch, to_free);
#endif
}

/* Drop a packet in dequeue.  From 7.2 on a root qdisc frees it after the lock is
 * released, if its flags were set by dualpi2_compat_init().
 */
static inline void
dualpi2_compat_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb,
			    enum dualpi2_compat_reason reason)
{
#if defined(DUALPI2_HAVE_QDISC_DROP_REASON)
	qdisc_dequeue_drop(sch, skb, reason);
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

/* Packets and bytes into a dump. */
static inline int dualpi2_compat_copy_basic(struct gnet_dump *d, u64 bytes,
					    u64 packets)
{
#ifdef DUALPI2_HAVE_GNET_STATS_BASIC_SYNC	/* 5.16 */
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

/* Sums over the children of a root qdisc: set to 0, add one child, dump one child. */
static inline void dualpi2_compat_zero_basic(struct Qdisc *sch)
{
#ifdef DUALPI2_HAVE_GNET_STATS_BASIC_SYNC
	gnet_stats_basic_sync_init(&sch->bstats);
#else
	memset(&sch->bstats, 0, sizeof(sch->bstats));
#endif
}

static inline void dualpi2_compat_add_basic(struct Qdisc *sch, struct Qdisc *child)
{
#ifdef DUALPI2_HAVE_GNET_STATS_BASIC_SYNC
	gnet_stats_add_basic(&sch->bstats, child->cpu_bstats, &child->bstats,
			     false);
#else
	sch->bstats.bytes += child->bstats.bytes;
	sch->bstats.packets += child->bstats.packets;
#endif
}

static inline int dualpi2_compat_copy_child(struct gnet_dump *d, struct Qdisc *child)
{
#ifdef DUALPI2_HAVE_GNET_STATS_BASIC_SYNC
	return gnet_stats_copy_basic(d, child->cpu_bstats, &child->bstats, true);
#else
	return gnet_stats_copy_basic(qdisc_root_sleeping_running(child), d,
				     child->cpu_bstats, &child->bstats);
#endif
}

#endif /* _DUALPI2_COMPAT_H */
