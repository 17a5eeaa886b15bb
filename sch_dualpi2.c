// SPDX-License-Identifier: GPL-2.0-only
/*
 * dualpi2: Dual Queue Coupled AQM (RFC 9332) for L4S and Classic traffic.
 *
 * This file binds the algorithm to the kernel: packets and their ECN field, the
 * two queues, accounts, netlink.  It owns the clock and the random numbers.
 * What is decided, and by which formula, is in include/net/dualpi2.h.
 *
 * There is no timer.  The PI controller is updated by the first dequeue after
 * tupdate, and makes up for idle time at the first enqueue into empty queues,
 * so that an idle instance wakes no processor.
 *
 * Locking: enqueue, dequeue and peek run under the root qdisc's lock, reset does
 * where packets may still come; change and dump_stats take it; init, change and
 * dump run under RTNL.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/ppp_defs.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <uapi/linux/dualpi2.h>
#include <net/dualpi2.h>
#include <compat/compat.h>

#define DUALPI2_VERSION		"2.1.0"

/* Tags of a frame that are looked through on the way to the IP header. */
#define DUALPI2_VLAN_TAGS_MAX	8

/* Classes that a filter or skb->priority can name, as in Linux 7.x; the third,
 * and from a filter any other, is the Classic queue.
 */
enum dualpi2_class {
	DUALPI2_CLASS_NONE,
	DUALPI2_CLASS_L4S,
	DUALPI2_CLASS_L_UNMARKED,
	DUALPI2_CLASS_CLASSIC,
};

#define DUALPI2_CB_L		BIT(0)	/* in the L4S queue */
#define DUALPI2_CB_NATIVE_OK	BIT(1)	/* see dualpi2_native_ok() */
#define DUALPI2_CB_IPV6		BIT(2)
#define DUALPI2_CB_CE		BIT(3)	/* arrived with CE */

/* What a packet in the queues carries in its 20 private bytes. */
struct dualpi2_cb {
	u64 queued_ns;
	u32 truesize;	/* as charged; marking may change the skb's own */
	u16 ip_offset;	/* of the IP header from skb->data, if it has one */
	u8 profile;	/* enum dualpi2_profile */
	u8 flags;	/* DUALPI2_CB_* */
};

struct dualpi2_fifo {
	struct qdisc_skb_head list;
	u64 bytes;
};

struct dualpi2_sched_data {
	struct dualpi2_params params;
	struct dualpi2_vars vars;
	struct dualpi2_fifo fifo[DUALPI2_QUEUES];
	u32 mtu_bytes;		/* with link-layer header, bounded */
	u32 memory_used;
	u32 memory_limit;
	struct tcf_proto __rcu *filter_list;
	struct dualpi2_config config;
	struct rnd_state rnd;	/* for random signals */
	struct tc_dualpi2_queue_xstats stats[DUALPI2_QUEUES];
	u64 unparsed;
	u64 filter_dropped;
	u64 gso_failed;
	u64 mark_failed;
	u32 max_pkts;
	u32 max_memory_used;
	struct tcf_block *block;
};

static struct dualpi2_cb *dualpi2_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct dualpi2_cb));
	return (struct dualpi2_cb *)qdisc_skb_cb(skb)->data;
}

static enum dualpi2_queue dualpi2_queue_of(const struct dualpi2_cb *cb)
{
	return (cb->flags & DUALPI2_CB_L) ? DUALPI2_QUEUE_L : DUALPI2_QUEUE_C;
}

/* psched_mtu(), but a device may have an MTU of nearly 2^31. */
static u32 dualpi2_mtu_bytes(const struct Qdisc *sch)
{
	const struct net_device *dev = qdisc_dev(sch);
	u64 bytes = (u64)READ_ONCE(dev->mtu) + dev->hard_header_len;

	return clamp_t(u64, bytes, ETH_ZLEN, S32_MAX);
}

/* Bring up to date what depends on the device's MTU. */
static void dualpi2_refresh_mtu(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	q->mtu_bytes = dualpi2_mtu_bytes(sch);
	WRITE_ONCE(q->memory_limit,
		   dualpi2_memory_limit_bytes(&q->config, q->mtu_bytes));
}

static u64 dualpi2_head_age_ns(const struct dualpi2_fifo *fifo, u64 now_ns)
{
	const struct sk_buff *skb = fifo->list.head;

	return skb ? now_ns - dualpi2_cb(skb)->queued_ns : 0;
}

/* The bits that the next decision may draw on. */
static u64 dualpi2_decision_bits(struct dualpi2_sched_data *q, u64 now_ns)
{
	if (q->params.random)
		return (u64)prandom_u32_state(&q->rnd) << 32 |
		       prandom_u32_state(&q->rnd);
	return now_ns << 32 | (u32)now_ns;
}

/* Offset of what follows the VLAN tags of an Ethernet frame.  Where the frame
 * carries tags in band, the network header is not to be trusted: after a bridge
 * took an outer tag out of the frame it is at the inner tag, and on a VLAN
 * device without REORDER_HDR it is behind it.
 *
 * Return: offset from skb->data and the type in *proto, or -1.
 */
static int dualpi2_skip_tags(const struct sk_buff *skb, __be16 *proto)
{
	int offset = offsetof(struct ethhdr, h_proto), tags;
	__be16 buf, *type;

	if (!skb->dev || skb->dev->type != ARPHRD_ETHER ||
	    !skb_mac_header_was_set(skb) || skb_mac_offset(skb))
		return -1;
	for (tags = 0; tags <= DUALPI2_VLAN_TAGS_MAX; tags++) {
		type = skb_header_pointer(skb, offset, sizeof(buf), &buf);
		if (!type)
			return -1;
		if (!eth_type_vlan(*type)) {
			*proto = *type;
			return offset + sizeof(buf);
		}
		offset += VLAN_HLEN;
	}
	return -1;
}

/* Offset of what a PPPoE session frame carries, with its type in *proto. */
static int dualpi2_skip_pppoe(const struct sk_buff *skb, int offset,
			      __be16 *proto)
{
	struct {
		u8 version_type;
		u8 code;
		__be16 session;
		__be16 length;
		__be16 protocol;
	} __packed buf, *hdr;

	hdr = skb_header_pointer(skb, offset, sizeof(buf), &buf);
	if (!hdr || hdr->version_type != 0x11 || hdr->code)
		return -1;
	if (hdr->protocol == htons(PPP_IP))
		*proto = htons(ETH_P_IP);
	else if (hdr->protocol == htons(PPP_IPV6))
		*proto = htons(ETH_P_IPV6);
	else
		return -1;
	return offset + sizeof(buf);
}

/* Find the outermost IP header, without writing or moving anything.
 *
 * Return: its ECN field, -1 if there is none that can be read.  The place is
 * left in the packet's control block.
 */
static int dualpi2_read_ecn(const struct sk_buff *skb, struct dualpi2_cb *cb)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} buf;
	int offset = skb_network_offset(skb);
	__be16 proto = skb->protocol;

	/* Some kernels have no type for what a packet socket sends on a VLAN
	 * device (5.10): then the frame says it.
	 */
	if (eth_type_vlan(proto) || !proto)
		offset = dualpi2_skip_tags(skb, &proto);
	if (offset >= 0 && proto == htons(ETH_P_PPP_SES))
		offset = dualpi2_skip_pppoe(skb, offset, &proto);
	if (offset < 0 || offset > U16_MAX)
		return -1;

	if (proto == htons(ETH_P_IP)) {
		const struct iphdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(buf.v4), &buf.v4);
		if (!ip || ip->version != 4 || ip->ihl < 5)
			return -1;
		cb->ip_offset = offset;
		return ip->tos & INET_ECN_MASK;
	}
	if (proto == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(buf.v6), &buf.v6);
		if (!ip || ip->version != 6)
			return -1;
		cb->ip_offset = offset;
		cb->flags |= DUALPI2_CB_IPV6;
		return ipv6_get_dsfield(ip) & INET_ECN_MASK;
	}
	return -1;
}

/* Set CE on a packet that has an ECT codepoint.  Only here is its header made
 * writable, which separates it from clones of it elsewhere.
 *
 * Return: false if that was not possible; the packet is as before.
 */
static bool dualpi2_set_ce(struct sk_buff *skb)
{
	const struct dualpi2_cb *cb = dualpi2_cb(skb);
	unsigned int offset = cb->ip_offset;
	bool ipv6 = cb->flags & DUALPI2_CB_IPV6;
	struct iphdr *ip;

	if (skb_shared(skb) ||
	    skb_ensure_writable(skb, offset + (ipv6 ? sizeof(struct ipv6hdr) :
						      sizeof(struct iphdr))))
		return false;
	if (ipv6) {
		IP6_ECN_set_ce(skb, (struct ipv6hdr *)(skb->data + offset));
		return true;
	}
	ip = (struct iphdr *)(skb->data + offset);
	IP_ECN_set_ce(ip);
	/* The sum over a header is never +0, so its complement, which some
	 * updates come to, is to be the other zero (RFC 1624, section 3).
	 */
	if (ip->check == CSUM_MANGLED_0)
		ip->check = 0;
	return true;
}

/* What skb->priority or a filter says of a packet (RFC 9331 5.4: before the ECN
 * field does).
 *
 * Return: enum dualpi2_class, or a negative number if a filter disposed of it;
 * *ret is then what enqueue returns.
 */
static int dualpi2_local_class(struct sk_buff *skb, struct Qdisc *sch, int *ret)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct tcf_proto *filters;
	struct tcf_result res;
	u32 minor;

	/* Qdiscs that the core attaches by itself have no handle. */
	if (sch->handle && TC_H_MAJ(skb->priority) == sch->handle) {
		minor = TC_H_MIN(skb->priority);
		if (minor >= DUALPI2_CLASS_L4S &&
		    minor <= DUALPI2_CLASS_CLASSIC)
			return minor;
	}

	filters = rcu_dereference_bh(q->filter_list);
	if (!filters)
		return DUALPI2_CLASS_NONE;

	res.classid = 0;
	switch (dualpi2_compat_classify(skb, filters, &res)) {
	case TC_ACT_UNSPEC:
		return DUALPI2_CLASS_NONE;
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		*ret = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		return -1;
	case TC_ACT_SHOT:
		*ret = NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
		return -1;
#ifdef TC_ACT_CONSUMED
	case TC_ACT_CONSUMED:
		*ret = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		return -2;
#endif
	default:
		break;
	}
	return min_t(u32, TC_H_MIN(res.classid), DUALPI2_CLASS_CLASSIC);
}

/* Decide on a packet's queue and on what it is to the AQM; fills the control
 * block.  Returns as dualpi2_local_class().
 */
static int dualpi2_classify(struct sk_buff *skb, struct Qdisc *sch, int *ret)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_cb cb = {};
	enum dualpi2_queue queue;
	int class, ecn;

	class = dualpi2_local_class(skb, sch, ret);
	if (class < 0)
		return class;

	/* A filter's action may have changed the packet, so look afterwards. */
	ecn = dualpi2_read_ecn(skb, &cb);
	if (ecn < 0) {
		q->unparsed++;
		ecn = INET_ECN_NOT_ECT;
	}
	if (class == DUALPI2_CLASS_NONE)
		queue = dualpi2_queue_of_ecn(&q->config, ecn);
	else
		queue = class == DUALPI2_CLASS_CLASSIC ? DUALPI2_QUEUE_C :
							 DUALPI2_QUEUE_L;
	if (queue == DUALPI2_QUEUE_L)
		cb.flags |= DUALPI2_CB_L;
	if (ecn == INET_ECN_CE)
		cb.flags |= DUALPI2_CB_CE;
	cb.profile = dualpi2_profile(&q->config, queue, ecn,
				     class == DUALPI2_CLASS_L_UNMARKED);
	*dualpi2_cb(skb) = cb;
	return class;
}

static u64 dualpi2_backlog_bytes(const struct dualpi2_sched_data *q)
{
	return q->fifo[DUALPI2_QUEUE_C].bytes + q->fifo[DUALPI2_QUEUE_L].bytes;
}

static void dualpi2_account_mark(struct tc_dualpi2_queue_xstats *stats,
				 enum dualpi2_verdict verdict)
{
	if (verdict == DUALPI2_MARK_CLASSIC)
		stats->marked_classic++;
	else if (verdict == DUALPI2_MARK_COUPLED)
		stats->marked_coupled++;
	else
		stats->marked_native++;
}

/* Carry out a verdict to mark.  A packet that arrived with CE has the signal
 * already, from elsewhere, and does not count as marked here.
 */
static void dualpi2_mark(struct dualpi2_sched_data *q, struct sk_buff *skb,
			 struct tc_dualpi2_queue_xstats *stats,
			 enum dualpi2_verdict verdict)
{
	if (dualpi2_cb(skb)->flags & DUALPI2_CB_CE)
		return;
	if (dualpi2_set_ce(skb))
		dualpi2_account_mark(stats, verdict);
	else
		q->mark_failed++;
}

/* With drop_enqueue, Classic packets get their signal on arrival.
 *
 * Return: true if the packet is to be dropped.
 */
static bool dualpi2_early_signal(struct dualpi2_sched_data *q,
				 struct sk_buff *skb, u64 now_ns)
{
	const struct dualpi2_packet pkt = {
		.profile = dualpi2_cb(skb)->profile,
		.low = dualpi2_is_low(dualpi2_backlog_bytes(q) +
				      qdisc_pkt_len(skb), q->mtu_bytes),
		.may_drop = true,
		.rnd = dualpi2_decision_bits(q, now_ns),
	};
	enum dualpi2_verdict verdict;

	verdict = dualpi2_verdict(&q->params, &q->vars, &pkt);
	if (verdict >= DUALPI2_DROP_AQM)
		return true;
	if (verdict != DUALPI2_PASS)
		dualpi2_mark(q, skb, &q->stats[DUALPI2_QUEUE_C], verdict);
	return false;
}

/* Queue one packet that has been classified.  Returns NET_XMIT_*. */
static int dualpi2_enqueue_one(struct sk_buff *skb, struct Qdisc *sch,
			       u64 now_ns, struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_cb *cb = dualpi2_cb(skb);
	enum dualpi2_queue queue = dualpi2_queue_of(cb);
	struct tc_dualpi2_queue_xstats *stats = &q->stats[queue];
	struct dualpi2_fifo *fifo = &q->fifo[queue];
	unsigned int len = qdisc_pkt_len(skb);

	if (unlikely(sch->q.qlen >= q->config.limit_pkts)) {
		stats->dropped_limit++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (unlikely((u64)q->memory_used + skb->truesize > q->memory_limit)) {
		stats->dropped_memory++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (unlikely(q->config.drop_early) && queue == DUALPI2_QUEUE_C &&
	    dualpi2_early_signal(q, skb, now_ns)) {
		stats->dropped_early++;
		return qdisc_drop(skb, sch, to_free);
	}

	cb->queued_ns = now_ns;
	cb->truesize = skb->truesize;
	if (queue == DUALPI2_QUEUE_L &&
	    dualpi2_native_ok(&q->params, fifo->list.qlen + 1))
		cb->flags |= DUALPI2_CB_NATIVE_OK;

	__qdisc_enqueue_tail(skb, &fifo->list);
	fifo->bytes += len;
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	qdisc_qstats_backlog_inc(sch, skb);
	q->memory_used += cb->truesize;
	if (q->memory_used > q->max_memory_used)
		q->max_memory_used = q->memory_used;
	if (sch->q.qlen > q->max_pkts)
		q->max_pkts = sch->q.qlen;
	stats->enqueued++;
	stats->enqueued_bytes += len;
	if (cb->flags & DUALPI2_CB_CE)
		stats->arrived_ce++;
	return NET_XMIT_SUCCESS;
}

/* Length on the link of a frame of so many bytes, by a size table as tc-stab(8)
 * describes it.  The core does this for whole packets and exports nothing.
 */
static unsigned int dualpi2_stab_bytes(const struct qdisc_size_table *stab,
				       unsigned int frame_bytes)
{
	const struct tc_sizespec *spec = &stab->szopts;
	s64 bytes = (s64)frame_bytes + spec->overhead;
	u32 slot, tsize = spec->tsize;

	if (tsize) {
		slot = max_t(s64, bytes + spec->cell_align, 0) >> spec->cell_log;
		bytes = stab->data[slot % tsize];
		if (slot >= tsize)
			bytes += (u64)stab->data[tsize - 1] * (slot / tsize);
		/* The greatest shift is 30, so that this cannot overflow. */
		bytes = min_t(s64, bytes, QDISC_PKT_LEN_MAX) << spec->size_log;
	}
	return clamp_t(s64, bytes, 1, QDISC_PKT_LEN_MAX);
}

/* A segment becomes a packet of its own, as long on the link as the root
 * qdisc's size table, if it has one, makes any other packet.
 */
static void dualpi2_init_segment(struct sk_buff *seg, const struct Qdisc *sch,
				 const struct dualpi2_cb *cb)
{
	const struct Qdisc *root = rcu_dereference_bh(sch->dev_queue->qdisc);
	const struct qdisc_size_table *stab = rcu_dereference_bh(root->stab);

	skb_mark_not_on_list(seg);
	qdisc_skb_cb(seg)->pkt_len =
		stab ? dualpi2_stab_bytes(stab, seg->len) : seg->len;
	dualpi2_compat_init_segment(seg);
	*dualpi2_cb(seg) = *cb;
}

/* Let a queued packet count as so many bytes more than it has, everywhere. */
static void dualpi2_lengthen(struct Qdisc *sch, struct sk_buff *skb, s32 bytes)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	enum dualpi2_queue queue = dualpi2_queue_of(dualpi2_cb(skb));

	qdisc_skb_cb(skb)->pkt_len += bytes;
	q->fifo[queue].bytes += bytes;
	q->stats[queue].enqueued_bytes += bytes;
	sch->qstats.backlog += bytes;
}

/* Queue the segments of a GSO packet one by one.  The parents are about to
 * count one packet of the length that they know; they are told the difference.
 *
 * One segment left of many, in a queue that was empty (the limits allow no
 * more), counts as long as they were together: parents half-way up are empty as
 * yet, and kernels before 2025 do not stand an update by 0 packets there.
 */
static int dualpi2_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
			       u64 now_ns, struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	unsigned int orig_len = qdisc_pkt_len(skb);
	struct sk_buff *segs, *seg, *next, *last = NULL;
	struct dualpi2_cb cb = *dualpi2_cb(skb);
	unsigned int bytes = 0;
	int queued = 0;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR(segs)) {
		dualpi2_compat_init_segment(skb);
		q->gso_failed++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (!segs)
		return dualpi2_enqueue_one(skb, sch, now_ns, to_free);

	/* A list of packets is its own first segment, and can be marked once
	 * it has one user.
	 */
	consume_skb(skb);
	skb_list_walk_safe(segs, seg, next) {
		unsigned int len;

		dualpi2_init_segment(seg, sch, &cb);
		len = qdisc_pkt_len(seg);
		if (dualpi2_enqueue_one(seg, sch, now_ns, to_free) ==
		    NET_XMIT_SUCCESS) {
			queued++;
			bytes += len;
			last = seg;
		}
	}
	if (!queued)
		return NET_XMIT_DROP;
	if (queued == 1 && sch->q.qlen == 1)
		dualpi2_lengthen(sch, last, (s32)(orig_len - bytes));
	else if (queued != 1 || bytes != orig_len)
		qdisc_tree_reduce_backlog(sch, 1 - queued, orig_len - bytes);
	return NET_XMIT_SUCCESS;
}

static int dualpi2_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	int ret, class;

	class = dualpi2_classify(skb, sch, &ret);
	if (unlikely(class < 0)) {
		q->filter_dropped++;
		if (ret & __NET_XMIT_BYPASS)
			qdisc_qstats_drop(sch);
		if (class == -1)
			__qdisc_drop(skb, to_free);
		return ret;
	}

	if (!sch->q.qlen && dualpi2_pi_is_due(&q->params, &q->vars, now_ns)) {
		dualpi2_refresh_mtu(sch);
		dualpi2_pi_idle(&q->params, &q->vars, now_ns);
	}
	/* The packets of a list would not learn of a mark on its head. */
	if (skb_is_gso(skb) &&
	    (q->config.split_gso ||
	     (skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST)))
		return dualpi2_enqueue_gso(skb, sch, now_ns, to_free);
	return dualpi2_enqueue_one(skb, sch, now_ns, to_free);
}

/* Take the packet at the head of a queue.  It still counts in sch->q.qlen and
 * the qdisc's backlog: the caller decides when it leaves.
 */
static struct sk_buff *dualpi2_fifo_pop(struct dualpi2_sched_data *q,
					enum dualpi2_queue queue)
{
	struct dualpi2_fifo *fifo = &q->fifo[queue];
	struct sk_buff *skb = __qdisc_dequeue_head(&fifo->list);

	fifo->bytes -= qdisc_pkt_len(skb);
	q->memory_used -= dualpi2_cb(skb)->truesize;
	return skb;
}

static void dualpi2_leave(struct Qdisc *sch, struct sk_buff *skb)
{
	qdisc_qstats_backlog_dec(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
}

/* The packet that goes next, its signal given.  It still counts in the qdisc's
 * qlen and backlog, so that parents that are told of drops here see a child
 * that is not empty.
 */
static struct sk_buff *dualpi2_next(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	unsigned int dropped = 0, dropped_bytes = 0;
	struct tc_dualpi2_queue_xstats *stats;
	enum dualpi2_verdict verdict;
	enum dualpi2_queue queue;
	struct dualpi2_packet pkt;
	struct sk_buff *skb;
	u64 now_ns;

	if (!c->list.head && !l->list.head)
		return NULL;
	now_ns = ktime_get_ns();
	if (dualpi2_pi_is_due(&q->params, &q->vars, now_ns)) {
		dualpi2_refresh_mtu(sch);
		dualpi2_pi_update(&q->params, &q->vars,
				  max(dualpi2_head_age_ns(c, now_ns),
				      dualpi2_head_age_ns(l, now_ns)), now_ns);
	}

	for (;;) {
		queue = dualpi2_sched_pick(&q->vars, c->list.qlen,
					   l->list.qlen);
		stats = &q->stats[queue];
		pkt.low = dualpi2_is_low(dualpi2_backlog_bytes(q),
					 q->mtu_bytes);
		pkt.l_pkts = l->list.qlen;
		skb = dualpi2_fifo_pop(q, queue);
		if (queue == DUALPI2_QUEUE_C && q->config.drop_early)
			break;

		pkt.profile = dualpi2_cb(skb)->profile;
		pkt.native_ok = dualpi2_cb(skb)->flags & DUALPI2_CB_NATIVE_OK;
		pkt.sojourn_ns = now_ns - dualpi2_cb(skb)->queued_ns;
		pkt.may_drop = dropped < DUALPI2_DROPS_PER_DEQUEUE &&
			       (c->list.qlen || l->list.qlen);
		pkt.rnd = dualpi2_decision_bits(q, now_ns);
		verdict = dualpi2_verdict(&q->params, &q->vars, &pkt);
		if (verdict < DUALPI2_DROP_AQM) {
			if (verdict != DUALPI2_PASS)
				dualpi2_mark(q, skb, stats, verdict);
			break;
		}

		if (verdict == DUALPI2_DROP_AQM)
			stats->dropped_aqm++;
		else
			stats->dropped_overload++;
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		dualpi2_leave(sch, skb);
		qdisc_qstats_drop(sch);
		kfree_skb(skb);
	}

	dualpi2_sched_sent(&q->params, &q->vars, queue, qdisc_pkt_len(skb),
			   c->list.qlen, l->list.qlen, q->mtu_bytes);
	stats->sent++;
	stats->sent_bytes += qdisc_pkt_len(skb);
	qdisc_bstats_update(sch, skb);
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	return skb;
}

static struct sk_buff *dualpi2_dequeue(struct Qdisc *sch)
{
	struct sk_buff *skb = __skb_dequeue(&sch->gso_skb);

	/* Some parents peek and then call this. */
	if (likely(!skb))
		skb = dualpi2_next(sch);
	if (skb)
		dualpi2_leave(sch, skb);
	return skb;
}

static struct sk_buff *dualpi2_peek(struct Qdisc *sch)
{
	struct sk_buff *skb = skb_peek(&sch->gso_skb);

	if (!skb) {
		skb = dualpi2_next(sch);
		if (skb)
			__skb_queue_head(&sch->gso_skb, skb);
	}
	return skb;
}

/**
 * struct dualpi2_knob - an attribute that sets a number of the configuration
 * @len: its length in bytes, 1 or 4; 0: no knob
 * @offset: of the number in struct dualpi2_config, of the same length
 * @min: least value
 * @max: greatest value
 * @range: what a user is told who left the range
 * @length: who sent another length
 * @twice: who sent it twice
 */
struct dualpi2_knob {
	u8 len;
	u8 offset;
	u32 min;
	u32 max;
	const char *range;
	const char *length;
	const char *twice;
};

#define DUALPI2_KNOB(_member, _min, _max, _name, _range) {		\
	.len = sizeof(((struct dualpi2_config *)0)->_member),		\
	.offset = offsetof(struct dualpi2_config, _member),		\
	.min = (_min),							\
	.max = (_max),							\
	.range = "dualpi2: " _name " must be " _range,			\
	.length = "dualpi2: attribute of wrong length: " _name,		\
	.twice = "dualpi2: attribute given twice: " _name,		\
}

static const struct dualpi2_knob dualpi2_knobs[TCA_DUALPI2_MAX + 1] = {
	[TCA_DUALPI2_LIMIT] =
		DUALPI2_KNOB(limit_pkts, DUALPI2_LIMIT_PKTS_MIN, U32_MAX,
			     "limit", "at least 1 packet"),
	[TCA_DUALPI2_MEMORY_LIMIT] =
		DUALPI2_KNOB(memory_limit_bytes, DUALPI2_MEMORY_LIMIT_MIN,
			     U32_MAX, "memlimit", "at least 1 byte"),
	[TCA_DUALPI2_TARGET] =
		DUALPI2_KNOB(target_us, DUALPI2_TARGET_US_MIN,
			     DUALPI2_TARGET_US_MAX,
			     "target", "1 us to 4294967 us"),
	[TCA_DUALPI2_TUPDATE] =
		DUALPI2_KNOB(tupdate_us, DUALPI2_TUPDATE_US_MIN,
			     DUALPI2_TUPDATE_US_MAX,
			     "tupdate", "100 us to 4294967 us"),
	[TCA_DUALPI2_ALPHA] =
		DUALPI2_KNOB(alpha, DUALPI2_GAIN_MIN, DUALPI2_GAIN_MAX,
			     "alpha", "1/256 Hz to (2^31 - 1)/256 Hz"),
	[TCA_DUALPI2_BETA] =
		DUALPI2_KNOB(beta, DUALPI2_GAIN_MIN, DUALPI2_GAIN_MAX,
			     "beta", "1/256 Hz to (2^31 - 1)/256 Hz"),
	[TCA_DUALPI2_STEP_THRESH_PKTS] =
		DUALPI2_KNOB(step_thresh_pkts, DUALPI2_STEP_THRESH_PKTS_MIN,
			     DUALPI2_STEP_THRESH_PKTS_MAX,
			     "step_thresh", "1 to 4294967294 packets"),
	[TCA_DUALPI2_STEP_THRESH_US] =
		DUALPI2_KNOB(step_thresh_us, 0, DUALPI2_STEP_THRESH_US_MAX,
			     "step_thresh", "at most 4294967 us"),
	[TCA_DUALPI2_MIN_QLEN_STEP] =
		DUALPI2_KNOB(min_qlen_step_pkts, 0, U32_MAX,
			     "min_qlen_step", "a number of packets"),
	[TCA_DUALPI2_COUPLING] =
		DUALPI2_KNOB(coupling, DUALPI2_COUPLING_MIN,
			     DUALPI2_COUPLING_MAX,
			     "coupling_factor", "1 to 255"),
	[TCA_DUALPI2_DROP_OVERLOAD] =
		DUALPI2_KNOB(drop_overload, 0, TCA_DUALPI2_DROP_OVERLOAD_MAX,
			     "drop_overload",
			     "0 (overflow) or 1 (drop_on_overload)"),
	[TCA_DUALPI2_DROP_EARLY] =
		DUALPI2_KNOB(drop_early, 0, TCA_DUALPI2_DROP_EARLY_MAX,
			     "drop_early",
			     "0 (drop_dequeue) or 1 (drop_enqueue)"),
	[TCA_DUALPI2_C_PROTECTION] =
		DUALPI2_KNOB(c_protection_pct, 0, DUALPI2_C_PROTECTION_MAX,
			     "classic_protection", "0 to 100 percent"),
	[TCA_DUALPI2_ECN_MASK] =
		DUALPI2_KNOB(ecn_mask, TC_DUALPI2_ECN_MASK_L4S_ECT,
			     TCA_DUALPI2_ECN_MASK_MAX, "ecn_mask",
			     "1 (l4s_ect), 2 (cla_ect) or 3 (any_ect)"),
	[TCA_DUALPI2_SPLIT_GSO] =
		DUALPI2_KNOB(split_gso, 0, TCA_DUALPI2_SPLIT_GSO_MAX,
			     "split_gso", "0 or 1"),
};

static const struct dualpi2_knob dualpi2_ext_knobs[TCA_DUALPI2_EXT_MAX + 1] = {
	[TCA_DUALPI2_EXT_L4S] = DUALPI2_KNOB(l4s, 0, 1, "l4s", "0 or 1"),
	[TCA_DUALPI2_EXT_RAMP_US] =
		DUALPI2_KNOB(ramp_us, 0, DUALPI2_RAMP_US_MAX,
			     "ramp", "at most 4294967 us"),
	[TCA_DUALPI2_EXT_SIGNAL] =
		DUALPI2_KNOB(signal, 0, TC_DUALPI2_SIGNAL_MAX,
			     "signal", "0 (recur) or 1 (random)"),
};

/* The messages name these, the algorithm defines them. */
static_assert(DUALPI2_LIMIT_PKTS_MIN == 1 && DUALPI2_MEMORY_LIMIT_MIN == 1);
static_assert(DUALPI2_TIME_MAX_US == 4294967 && DUALPI2_TARGET_US_MIN == 1);
static_assert(DUALPI2_TUPDATE_US_MIN == 100 && DUALPI2_COUPLING_MAX == 255);
static_assert(DUALPI2_GAIN_MIN == 1 && DUALPI2_GAIN_MAX == S32_MAX);
static_assert(DUALPI2_SIGNAL_RANDOM == (int)TC_DUALPI2_SIGNAL_RANDOM);
static_assert(DUALPI2_ECN_CE == (int)INET_ECN_CE &&
	      DUALPI2_ECN_ECT1 == (int)INET_ECN_ECT_1);
static_assert(sizeof(struct dualpi2_config) <= U8_MAX);
static_assert(sizeof(bool) == 1);

static int dualpi2_refuse(struct netlink_ext_ack *extack,
			  const struct nlattr *attr, const char *why)
{
	if (extack) {
		extack->_msg = why;
		extack->bad_attr = attr;
	}
	return -EINVAL;
}

static int dualpi2_parse_knob(const struct nlattr *attr,
			      const struct dualpi2_knob *knob,
			      struct dualpi2_config *cfg,
			      struct netlink_ext_ack *extack)
{
	u32 value;

	if (nla_len(attr) != knob->len)
		return dualpi2_refuse(extack, attr, knob->length);
	value = knob->len == sizeof(u8) ? nla_get_u8(attr) : nla_get_u32(attr);
	if (value < knob->min || value > knob->max)
		return dualpi2_refuse(extack, attr, knob->range);
	if (knob->len == sizeof(u8))
		*((u8 *)cfg + knob->offset) = value;
	else
		*(u32 *)((u8 *)cfg + knob->offset) = value;
	return 0;
}

/* Take over the knobs of one nest.  Each may come once: two values for one knob
 * are a mistake, and the user cannot know which one would count.
 *
 * Return: 0 and the types that came in *seen, or a negative error number.
 */
static int dualpi2_parse_nest(const struct nlattr *nest,
			      const struct dualpi2_knob *knobs, int max,
			      struct dualpi2_config *cfg, u32 *seen,
			      struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	int rem, err;

	*seen = 0;
	nla_for_each_nested(attr, nest, rem) {
		int type = nla_type(attr);

		if (type == TCA_DUALPI2_EXT && knobs == dualpi2_knobs)
			type = TCA_DUALPI2_UNSPEC;
		else if (type > max || !knobs[type].len)
			return dualpi2_refuse(extack, attr,
					      "dualpi2: unknown attribute");
		if (*seen & BIT(type))
			return dualpi2_refuse(extack, attr, type ?
					      knobs[type].twice :
					      "dualpi2: extension given twice");
		*seen |= BIT(type);
		if (type == TCA_DUALPI2_UNSPEC)
			continue;
		err = dualpi2_parse_knob(attr, &knobs[type], cfg, extack);
		if (err)
			return err;
	}
	if (rem > 0)
		return dualpi2_refuse(extack, nest,
				      "dualpi2: bytes left over after the attributes");
	return 0;
}

/* Apply a request to a copy of the configuration. */
static int dualpi2_parse(struct nlattr *opt, struct dualpi2_config *cfg,
			 struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	u32 seen, ext_seen;
	int rem, err;

	err = dualpi2_parse_nest(opt, dualpi2_knobs, TCA_DUALPI2_MAX, cfg,
				 &seen, extack);
	if (err)
		return err;

	if ((seen & BIT(TCA_DUALPI2_STEP_THRESH_PKTS)) &&
	    (seen & BIT(TCA_DUALPI2_STEP_THRESH_US)))
		return dualpi2_refuse(extack, opt,
				      "dualpi2: step_thresh is either a time or a number of packets");
	if (seen & BIT(TCA_DUALPI2_STEP_THRESH_US))
		cfg->step_thresh_pkts = 0;
	if (seen & BIT(TCA_DUALPI2_MEMORY_LIMIT))
		cfg->memory_limit_is_set = true;

	if (!(seen & BIT(TCA_DUALPI2_UNSPEC)))
		return 0;
	nla_for_each_nested(attr, opt, rem) {
		if (nla_type(attr) != TCA_DUALPI2_EXT)
			continue;
		err = dualpi2_parse_nest(attr, dualpi2_ext_knobs,
					 TCA_DUALPI2_EXT_MAX, cfg, &ext_seen,
					 extack);
		if (err)
			return err;
		if (ext_seen & BIT(TCA_DUALPI2_EXT_RAMP_US))
			cfg->ramp_is_set = true;
	}
	return 0;
}

/* Drop what is beyond the limits, oldest Classic packets first.  A packet that
 * a parent has peeked at or that the device gave back is on its way and stays.
 * Called with the tree locked.
 */
static void dualpi2_trim(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct sk_buff *head = NULL, *tail = NULL, *skb;
	unsigned int dropped = 0, dropped_bytes = 0;
	enum dualpi2_queue queue;

	while (sch->q.qlen > q->config.limit_pkts ||
	       q->memory_used > q->memory_limit) {
		queue = q->fifo[DUALPI2_QUEUE_C].list.head ? DUALPI2_QUEUE_C :
							     DUALPI2_QUEUE_L;
		if (!q->fifo[queue].list.head)
			break;
		skb = dualpi2_fifo_pop(q, queue);
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		dualpi2_leave(sch, skb);
		qdisc_qstats_drop(sch);
		q->stats[queue].dropped_purge++;
		if (tail)
			tail->next = skb;
		else
			head = skb;
		tail = skb;
	}
	if (!dropped)
		return;
	rtnl_kfree_skbs(head, tail);
	qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
}

static int dualpi2_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_config cfg = q->config;
	struct dualpi2_params params;
	int err;

	err = dualpi2_parse(opt, &cfg, extack);
	if (err)
		return err;
	dualpi2_params_init(&params, &cfg);

	sch_tree_lock(sch);
	q->config = cfg;
	q->params = params;
	dualpi2_refresh_mtu(sch);
	dualpi2_vars_derive(&q->params, &q->vars, ktime_get_ns());
	dualpi2_trim(sch);
	if (!sch->q.qlen)
		q->vars.credit = dualpi2_credit_start(&q->params, q->mtu_bytes);
	sch_tree_unlock(sch);
	return 0;
}

static int dualpi2_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	int err;

	dualpi2_config_init(&q->config);
	prandom_seed_state(&q->rnd, get_random_u32());
	if (opt) {
		err = dualpi2_parse(opt, &q->config, extack);
		if (err)
			return err;
	}
	dualpi2_params_init(&q->params, &q->config);
	dualpi2_refresh_mtu(sch);
	dualpi2_vars_init(&q->params, &q->vars, q->mtu_bytes, ktime_get_ns());
	return tcf_block_get(&q->block, &q->filter_list, sch, extack);
}

/* Empty the queues and forget the state; counters go on.  What a parent peeked
 * at is the core's to purge.
 */
static void dualpi2_reset(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	int queue;

	for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
		struct dualpi2_fifo *fifo = &q->fifo[queue];

		q->stats[queue].dropped_purge += fifo->list.qlen;
		if (fifo->list.head)
			rtnl_kfree_skbs(fifo->list.head, fifo->list.tail);
		*fifo = (struct dualpi2_fifo) {};
	}
	q->memory_used = 0;
	dualpi2_refresh_mtu(sch);
	dualpi2_vars_init(&q->params, &q->vars, q->mtu_bytes, ktime_get_ns());
}

static void dualpi2_destroy(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	tcf_block_put(q->block);
}

static int dualpi2_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	const struct dualpi2_config *cfg = &q->config;
	struct nlattr *opts, *ext;

	opts = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_DUALPI2_LIMIT, cfg->limit_pkts) ||
	    nla_put_u32(skb, TCA_DUALPI2_MEMORY_LIMIT,
			READ_ONCE(q->memory_limit)) ||
	    nla_put_u32(skb, TCA_DUALPI2_TARGET, cfg->target_us) ||
	    nla_put_u32(skb, TCA_DUALPI2_TUPDATE, cfg->tupdate_us) ||
	    nla_put_u32(skb, TCA_DUALPI2_ALPHA, cfg->alpha) ||
	    nla_put_u32(skb, TCA_DUALPI2_BETA, cfg->beta) ||
	    (cfg->step_thresh_pkts ?
	     nla_put_u32(skb, TCA_DUALPI2_STEP_THRESH_PKTS,
			 cfg->step_thresh_pkts) :
	     nla_put_u32(skb, TCA_DUALPI2_STEP_THRESH_US,
			 cfg->step_thresh_us)) ||
	    nla_put_u32(skb, TCA_DUALPI2_MIN_QLEN_STEP,
			cfg->min_qlen_step_pkts) ||
	    nla_put_u8(skb, TCA_DUALPI2_COUPLING, cfg->coupling) ||
	    nla_put_u8(skb, TCA_DUALPI2_DROP_OVERLOAD, cfg->drop_overload) ||
	    nla_put_u8(skb, TCA_DUALPI2_DROP_EARLY, cfg->drop_early) ||
	    nla_put_u8(skb, TCA_DUALPI2_C_PROTECTION, cfg->c_protection_pct) ||
	    nla_put_u8(skb, TCA_DUALPI2_ECN_MASK, cfg->ecn_mask) ||
	    nla_put_u8(skb, TCA_DUALPI2_SPLIT_GSO, cfg->split_gso))
		goto too_long;

	ext = nla_nest_start(skb, TCA_DUALPI2_EXT);
	if (!ext ||
	    nla_put_u8(skb, TCA_DUALPI2_EXT_L4S, cfg->l4s) ||
	    nla_put_u32(skb, TCA_DUALPI2_EXT_RAMP_US, dualpi2_ramp_us(cfg)) ||
	    nla_put_u8(skb, TCA_DUALPI2_EXT_SIGNAL, cfg->signal))
		goto too_long;
	nla_nest_end(skb, ext);
	return nla_nest_end(skb, opts);

too_long:
	nla_nest_cancel(skb, opts);
	return -EMSGSIZE;
}

static u32 dualpi2_marks(const struct tc_dualpi2_queue_xstats *stats)
{
	return stats->marked_classic + stats->marked_coupled +
	       stats->marked_native;
}

static int dualpi2_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct {
		struct tc_dualpi2_xstats linux7;
		u8 gap[TC_DUALPI2_EXT_XSTATS_OFFSET -
		       sizeof(struct tc_dualpi2_xstats)];
		struct tc_dualpi2_ext_xstats ext;
	} st = {
		.ext.magic = TC_DUALPI2_EXT_XSTATS_MAGIC,
		.ext.size = sizeof(st.ext),
	};
	struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	u64 now_ns;

	sch_tree_lock(sch);
	now_ns = ktime_get_ns();
	if (!sch->q.qlen && dualpi2_pi_is_due(&q->params, &q->vars, now_ns))
		dualpi2_pi_idle(&q->params, &q->vars, now_ns);

	st.ext.c = q->stats[DUALPI2_QUEUE_C];
	st.ext.c.packets = c->list.qlen;
	st.ext.c.bytes = c->bytes;
	st.ext.l = q->stats[DUALPI2_QUEUE_L];
	st.ext.l.packets = l->list.qlen;
	st.ext.l.bytes = l->bytes;
	st.ext.unparsed = q->unparsed;
	st.ext.filter_dropped = q->filter_dropped;
	st.ext.gso_failed = q->gso_failed;
	st.ext.mark_failed = q->mark_failed;
	st.ext.overload_count = q->vars.overload_count;
	st.ext.overload_ns = dualpi2_overload_ns(&q->vars, now_ns);
	st.ext.overload = q->vars.overload;
	st.ext.prob_c = dualpi2_q32_to_u32(q->vars.classic_q32);
	st.ext.prob_cl = dualpi2_q32_to_u32(q->vars.coupled_q32);

	st.linux7.prob = dualpi2_q32_to_u32(q->vars.base_q32);
	st.linux7.delay_c = dualpi2_ns_to_us(dualpi2_head_age_ns(c, now_ns));
	st.linux7.delay_l = dualpi2_ns_to_us(dualpi2_head_age_ns(l, now_ns));
	st.linux7.maxq = q->max_pkts;
	st.linux7.credit = q->vars.credit;
	st.linux7.memory_used = q->memory_used;
	st.linux7.max_memory_used = q->max_memory_used;
	st.linux7.memory_limit = q->memory_limit;
	sch_tree_unlock(sch);

	st.linux7.packets_in_c = st.ext.c.enqueued;
	st.linux7.packets_in_l = st.ext.l.enqueued;
	st.linux7.step_marks = st.ext.l.marked_native;
	st.linux7.ecn_mark = dualpi2_marks(&st.ext.c) +
			     dualpi2_marks(&st.ext.l);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

/* The classes exist as names for filters and skb->priority; none can be made,
 * changed or given a qdisc of its own.
 */
static struct Qdisc *dualpi2_leaf(struct Qdisc *sch, unsigned long arg)
{
	return NULL;
}

static unsigned long dualpi2_find(struct Qdisc *sch, u32 classid)
{
	return 0;
}

static unsigned long dualpi2_bind_filter(struct Qdisc *sch,
					 unsigned long parent, u32 classid)
{
	return 0;
}

static void dualpi2_unbind_filter(struct Qdisc *sch, unsigned long cl)
{
}

static struct tcf_block *dualpi2_tcf_block(struct Qdisc *sch, unsigned long cl,
					   struct netlink_ext_ack *extack)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	return cl ? NULL : q->block;
}

static void dualpi2_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
}

static const struct Qdisc_class_ops dualpi2_class_ops = {
	.leaf		= dualpi2_leaf,
	.find		= dualpi2_find,
	.tcf_block	= dualpi2_tcf_block,
	.bind_tcf	= dualpi2_bind_filter,
	.unbind_tcf	= dualpi2_unbind_filter,
	.walk		= dualpi2_walk,
};

static struct Qdisc_ops dualpi2_qdisc_ops __read_mostly = {
	.id		= "dualpi2",
	.cl_ops		= &dualpi2_class_ops,
	.priv_size	= sizeof(struct dualpi2_sched_data),
	.enqueue	= dualpi2_enqueue,
	.dequeue	= dualpi2_dequeue,
	.peek		= dualpi2_peek,
	.init		= dualpi2_init,
	.reset		= dualpi2_reset,
	.destroy	= dualpi2_destroy,
	.change		= dualpi2_change,
	.dump		= dualpi2_dump,
	.dump_stats	= dualpi2_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init dualpi2_module_init(void)
{
	int err = register_qdisc(&dualpi2_qdisc_ops);

	if (err != -EEXIST)
		return err;
	pr_err("the kernel has a dualpi2 already: remove its module (modprobe -r); one that is built in cannot be replaced\n");
	/* modprobe takes "exists" for success: this module, loaded already. */
	return -EBUSY;
}

static void __exit dualpi2_module_exit(void)
{
	unregister_qdisc(&dualpi2_qdisc_ops);
}

module_init(dualpi2_module_init)
module_exit(dualpi2_module_exit)

MODULE_ALIAS_NET_SCH("dualpi2");
MODULE_ALIAS("sch_dualpi2");
MODULE_AUTHOR("The dualpi2 authors");
MODULE_DESCRIPTION("Dual Queue Coupled AQM for L4S and Classic traffic (RFC 9332)");
MODULE_LICENSE("GPL");
MODULE_VERSION(DUALPI2_VERSION);
