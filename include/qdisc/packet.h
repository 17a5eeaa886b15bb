/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packet handling for this project's qdiscs: find the IP header and the ECN field behind
 * tags and tunnels, set CE, turn GSO segments into packets, run the filters.  Queues,
 * locks and statistics belong to the qdisc.
 *
 * The functions run under the root qdisc's lock, or for a packet that is not queued yet.
 * They do not take over packets.
 */
#ifndef _QDISC_PACKET_H
#define _QDISC_PACKET_H

#include <linux/err.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/ppp_defs.h>
#include <linux/skbuff.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/pkt_cls.h>
#include <net/sch_generic.h>
#include <net/dualpi2.h>
#include <compat/compat.h>

/* Tags of a frame that are looked through on the way to the IP header. */
#define DUALPI2_VLAN_TAGS_MAX	8

/* Flags of struct dualpi2_cb; the other bits are each qdisc's. */
#define DUALPI2_CB_ECN		0x03	/* enum dualpi2_ecn: codepoint on arrival */
#define DUALPI2_CB_IPV6		BIT(4)	/* with DUALPI2_CB_OFFSET */
#define DUALPI2_CB_OFFSET	BIT(7)	/* ip_offset is valid */

/* Codepoints are read as one enum and used as the other. */
static_assert(DUALPI2_ECN_CE == (int)INET_ECN_CE &&
	      DUALPI2_ECN_ECT1 == (int)INET_ECN_ECT_1);

/* The 20 private bytes of a queued packet. */
struct dualpi2_cb {
	u64 queued_ns;	/* sch_dualpi2.c keeps a flag in it */
	u16 flags;	/* DUALPI2_CB_* */
	u16 ip_offset;	/* of the IP header from skb->data, with DUALPI2_CB_OFFSET;
			 * otherwise it is at the network header
			 */
	u32 priv;	/* each qdisc's; segments of a GSO packet inherit it */
};

static inline struct dualpi2_cb *dualpi2_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct dualpi2_cb));
	return (struct dualpi2_cb *)qdisc_skb_cb(skb)->data;
}

static inline u32 dualpi2_ip_offset(const struct sk_buff *skb)
{
	const struct dualpi2_cb *cb = dualpi2_cb(skb);

	return (cb->flags & DUALPI2_CB_OFFSET) ? cb->ip_offset :
						      skb_network_offset(skb);
}

static inline bool dualpi2_is_ipv6(const struct sk_buff *skb)
{
	const struct dualpi2_cb *cb = dualpi2_cb(skb);

	return (cb->flags & DUALPI2_CB_OFFSET) ?
	       cb->flags & DUALPI2_CB_IPV6 :
	       skb->protocol == htons(ETH_P_IPV6);
}

/* Does skb->data begin with an Ethernet header? */
static inline bool dualpi2_is_framed(const struct sk_buff *skb)
{
	return skb->dev && skb->dev->type == ARPHRD_ETHER &&
	       skb_mac_header_was_set(skb) && !skb_mac_offset(skb);
}

/* Offset of what follows the VLAN tags of an Ethernet frame, for frames whose network
 * header is not to be trusted.  Where the frame carries tags in band, that header is
 * at the inner tag after a bridge took out the outer one, and behind the tag on a
 * VLAN device without REORDER_HDR.  Packet sockets put it 4 bytes too far back on a
 * VLAN device whose lower device has no tag offload, before "vlan: fix
 * skb_under_panic and races when toggling HW VLAN offload" (6.1.191).
 *
 * Return: offset from skb->data and the type in *proto, or -1.
 */
static inline int dualpi2_skip_tags(const struct sk_buff *skb, __be16 *proto)
{
	int offset = offsetof(struct ethhdr, h_proto), tags;
	__be16 buf, *type;

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
static inline int dualpi2_skip_pppoe(const struct sk_buff *skb, int offset,
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

/* The DSCP and ECN field of nearly all packets: IPv4 or IPv6 in the linear part, at
 * the network header.
 *
 * Return: -1: use dualpi2_read_dsfield().
 */
static __always_inline int dualpi2_linear_dsfield(const struct sk_buff *skb)
{
	const u8 *ip = skb_network_header(skb);
	int len = skb_tail_pointer(skb) - ip;

	/* At 0 or after an Ethernet header.  A negative offset is a large number here. */
	if (unlikely((size_t)(ip - skb->data) > ETH_HLEN))
		return -1;
	if (likely(skb->protocol == htons(ETH_P_IP))) {
		if (unlikely(len < (int)sizeof(struct iphdr) ||
			     (u8)(ip[0] - 0x45) > 0x4f - 0x45))
			return -1;
		return ((const struct iphdr *)ip)->tos;
	}
	if (unlikely(skb->protocol != htons(ETH_P_IPV6) ||
		     len < (int)sizeof(struct ipv6hdr) || ip[0] >> 4 != 6))
		return -1;
	return ipv6_get_dsfield((const struct ipv6hdr *)ip);
}

/* Find the outermost IP header, without writing to the packet or moving data.
 *
 * Return: its DSCP and ECN field, -1 if no header can be read.  @cb gets its offset.
 */
static inline int dualpi2_read_dsfield(const struct sk_buff *skb, struct dualpi2_cb *cb)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} buf;
	int offset = skb_network_offset(skb);
	__be16 proto = skb->protocol;
	bool tagged;

	cb->flags |= DUALPI2_CB_OFFSET;
	cb->ip_offset = clamp(offset, 0, U16_MAX);
	/* Some kernels have no type for what a packet socket sends on a VLAN
	 * device (5.10): then the frame says it.
	 */
	tagged = eth_type_vlan(proto) || !proto;
	if ((tagged || offset > ETH_HLEN) && dualpi2_is_framed(skb))
		offset = dualpi2_skip_tags(skb, &proto);
	else if (tagged)
		return -1;
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
		return ip->tos;
	}
	if (proto == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip;

		ip = skb_header_pointer(skb, offset, sizeof(buf.v6), &buf.v6);
		if (!ip || ip->version != 6)
			return -1;
		cb->ip_offset = offset;
		cb->flags |= DUALPI2_CB_IPV6;
		return ipv6_get_dsfield(ip);
	}
	return -1;
}

/* Who sends to whom. */
struct dualpi2_flow {
	__be16 sport;		/* 0 and 0: not known */
	__be16 dport;
	u32 protocol;
	__be32 addrs[8];	/* source, destination; of IPv4 one number each */
};

/* Addresses and protocol of the IP header at *offset.  *offset becomes that of what
 * follows, or -1 in fragments.
 *
 * Return: how many 32-bit words of *flow are in use, 0 if the header cannot be read.
 */
static inline u32 dualpi2_read_addrs(const struct sk_buff *skb, int *offset,
				     bool ipv6, struct dualpi2_flow *flow)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} buf;
	const struct ipv6hdr *ip6;
	const struct iphdr *ip;

	if (ipv6) {
		ip6 = skb_header_pointer(skb, *offset, sizeof(buf.v6), &buf.v6);
		if (!ip6 || ip6->version != 6)
			return 0;
		flow->protocol = ip6->nexthdr;
		memcpy(flow->addrs, &ip6->saddr, sizeof(ip6->saddr));
		memcpy(flow->addrs + 4, &ip6->daddr, sizeof(ip6->daddr));
		*offset += sizeof(*ip6);
		return 10;
	}
	ip = skb_header_pointer(skb, *offset, sizeof(buf.v4), &buf.v4);
	if (!ip || ip->version != 4 || ip->ihl < 5)
		return 0;
	flow->protocol = ip->protocol;
	flow->addrs[0] = ip->saddr;
	flow->addrs[1] = ip->daddr;
	*offset = ip_is_fragment(ip) ? -1 : *offset + 4 * ip->ihl;
	return 4;
}

/**
 * dualpi2_read_flow() - the flow of a packet whose IP header was found
 * @skb: packet
 * @flow: to be filled
 *
 * IP in IP is looked through once.  Fragments have no ports, so that all of a datagram
 * belong to one flow, nor have packets with IPv6 extension headers.  The ports of IPsec
 * are the SPI.
 *
 * Return: how many 32-bit words of @flow are in use: 4 for IPv4, 10 for IPv6, 0 without
 * an IP header.
 */
static inline u32 dualpi2_read_flow(const struct sk_buff *skb,
				    struct dualpi2_flow *flow)
{
	int offset = dualpi2_ip_offset(skb), at;
	u32 words, inner;
	__be16 buf[2], *ports;

	*flow = (struct dualpi2_flow) {};
	words = dualpi2_read_addrs(skb, &offset, dualpi2_is_ipv6(skb), flow);
	if (offset >= 0 && (flow->protocol == IPPROTO_IPIP ||
			    flow->protocol == IPPROTO_IPV6)) {
		inner = dualpi2_read_addrs(skb, &offset,
					   flow->protocol == IPPROTO_IPV6, flow);
		if (inner)
			words = inner;
	}
	at = proto_ports_offset(flow->protocol);
	if (offset < 0 || at < 0)
		return words;
	ports = skb_header_pointer(skb, offset + at, sizeof(buf), buf);
	if (ports) {
		flow->sport = ports[0];
		flow->dport = ports[1];
	}
	return words;
}

/* Set CE on a packet with an ECT codepoint.  Makes its header writable, so that clones of
 * the packet do not change.
 *
 * Return: false if that failed; the packet is unchanged.
 */
static inline bool dualpi2_set_ce(struct sk_buff *skb)
{
	unsigned int offset = dualpi2_ip_offset(skb);
	bool ipv6 = dualpi2_is_ipv6(skb);
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
	/* The sum over a header is never +0.  Some updates result in its complement,
	 * 0xffff; the correct checksum is then 0 (RFC 1624, section 3).
	 */
	if (ip->check == CSUM_MANGLED_0)
		ip->check = 0;
	return true;
}

/* Length that a size table gives a frame, see tc-stab(8).  The core computes it for whole
 * packets, but exports no function.
 */
static inline unsigned int
dualpi2_stab_bytes(const struct qdisc_size_table *stab, unsigned int frame_bytes)
{
	const struct tc_sizespec *spec = &stab->szopts;
	s64 bytes = (s64)frame_bytes + spec->overhead;
	u32 slot, tsize = spec->tsize;

	if (tsize) {
		slot = max_t(s64, bytes + spec->cell_align, 0) >> spec->cell_log;
		bytes = stab->data[slot % tsize];
		if (slot >= tsize)
			bytes += (u64)stab->data[tsize - 1] * (slot / tsize);
		/* The maximum shift is 30, so that this cannot overflow. */
		bytes = min_t(s64, bytes, QDISC_PKT_LEN_MAX) << spec->size_log;
	}
	return clamp_t(s64, bytes, 1, QDISC_PKT_LEN_MAX);
}

/* Split a GSO packet.  Call dualpi2_init_segment() for each segment.
 *
 * Return: as skb_gso_segment().
 */
static inline struct sk_buff *dualpi2_split(struct sk_buff *skb)
{
	netdev_features_t features = netif_skb_features(skb);
	struct sk_buff *parts;

	parts = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	/* The failed attempt has overwritten the control block. */
	if (IS_ERR(parts))
		dualpi2_compat_reset_cb(skb);
	return parts;
}

/* Turn a segment into a packet.  The root qdisc's size table, if any, gives its length. */
static inline void dualpi2_init_segment(struct sk_buff *seg,
					const struct Qdisc *sch,
					const struct dualpi2_cb *cb)
{
	const struct Qdisc *root = rcu_dereference_bh(sch->dev_queue->qdisc);
	const struct qdisc_size_table *stab = rcu_dereference_bh(root->stab);

	skb_mark_not_on_list(seg);
	qdisc_skb_cb(seg)->pkt_len =
		stab ? dualpi2_stab_bytes(stab, seg->len) : seg->len;
	dualpi2_compat_reset_cb(seg);
	*dualpi2_cb(seg) = *cb;
}

/* The parent of a qdisc, under RCU; NULL at the root and below mq. */
static inline struct Qdisc *dualpi2_parent(const struct Qdisc *sch)
{
	struct net_device *dev = qdisc_dev(sch);
	u32 handle = TC_H_MAJ(sch->parent);
	struct Qdisc *parent;

	if (sch->parent == TC_H_ROOT || (sch->flags & TCQ_F_NOPARENT))
		return NULL;
	parent = rcu_dereference(dev->qdisc);
	if (parent && parent->handle == handle)
		return parent;
	hash_for_each_possible_rcu(dev->qdisc_hash, parent, hash, handle)
		if (parent->handle == handle)
			break;
	return parent;
}

/**
 * dualpi2_adjust_parents() - count the queued segments of a GSO packet in the parents
 * @sch: the qdisc, which counts the segments
 * @queued: segments that were queued, at least 1
 * @bytes: length of the packet less that of these segments; may be negative
 *
 * Call this in enqueue, before the parents count one packet of the original length.  If
 * one segment was queued, only bytes differ.  Then qdisc_tree_reduce_backlog() would warn
 * (before 2025) or deactivate a class, because parents can be empty until enqueue
 * returns.  This function then corrects their backlog itself, which wraps below 0 until
 * they add the length of the packet.
 */
static inline void dualpi2_adjust_parents(struct Qdisc *sch, int queued, int bytes)
{
	if (queued != 1) {
		qdisc_tree_reduce_backlog(sch, 1 - queued, bytes);
		return;
	}
	rcu_read_lock();
	while ((sch = dualpi2_parent(sch)))
		WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - bytes);
	rcu_read_unlock();
}

/* Subtract a packet from the qdisc's qlen and backlog. */
static inline void dualpi2_backlog_dec(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_qstats_backlog_dec(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
}

/* Run a qdisc's filters on a packet.
 *
 * Return: 1: a filter matched, *classid is its class; 0: none matched; -1: the caller
 * frees the packet; -2: the filter has taken it.  For -1 and -2 *ret is the return value
 * of enqueue.
 */
static inline int dualpi2_filter(struct sk_buff *skb,
				 const struct tcf_proto *filters, u32 *classid,
				 int *ret)
{
	struct tcf_result res = {};

	switch (dualpi2_compat_run_filters(skb, filters, &res)) {
	case TC_ACT_UNSPEC:
		return 0;
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
		*classid = res.classid;
		return 1;
	}
}

#endif /* _QDISC_PACKET_H */
