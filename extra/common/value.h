/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a packet carries its value: see docs/DESIGN.md, "The companions".
 */
#ifndef _GLUE_VALUE_H
#define _GLUE_VALUE_H

#include <linux/ip.h>
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <qdisc/packet.h>
#include "ppv_uapi.h"

#define PPV_MARK_MASK	0xffffU

/* The Identification of a datagram that is not and will not be fragmented says
 * nothing to anybody (RFC 6864, 4.1: it is atomic).  For packets with an IP header.
 *
 * Return: the IPv4 header, in the packet or in @buf; NULL if that is not so.
 */
static inline const struct iphdr *ppv_atomic(const struct sk_buff *skb,
					     struct iphdr *buf)
{
	const struct iphdr *ip;

	ip = skb_header_pointer(skb, dualpi2_ip_offset(skb), sizeof(*buf), buf);
	/* The Authentication Header is over it (RFC 4302, 3.3.3.1). */
	if (!ip || ip->version != 4 || ip->frag_off != htons(IP_DF) ||
	    ip->protocol == IPPROTO_AH)
		return NULL;
	return ip;
}

/* Out of line, so that ppv_read() needs no stack frame. */
static noinline __maybe_unused u32 ppv_read_id(const struct sk_buff *skb)
{
	const struct iphdr *ip;
	struct iphdr buf;

	ip = ppv_atomic(skb, &buf);
	return ip ? ntohs(ip->id) : 0;
}

/**
 * ppv_read() - the value of a packet
 * @skb: the packet
 * @is_ip: its control block says where its IP header is
 * @carry: enum tc_ppv_carry
 *
 * Return: coded; 0: none.
 */
static inline u32 ppv_read(const struct sk_buff *skb, bool is_ip, u8 carry)
{
	if (carry == TC_PPV_CARRY_MARK)
		return skb->mark & PPV_MARK_MASK;
	return is_ip ? ppv_read_id(skb) : 0;
}

/**
 * ppv_write() - give a packet its value
 * @skb: the packet; not GSO, for its segments would get the values that follow
 * @is_ip: its control block says where its IP header is
 * @carry: enum tc_ppv_carry
 * @coded: 1..65535
 *
 * Return: false if it has no place for one, or none that can be written.
 */
static inline bool ppv_write(struct sk_buff *skb, bool is_ip, u8 carry,
			     u32 coded)
{
	unsigned int offset = dualpi2_ip_offset(skb);
	struct iphdr buf, *ip;
	__be16 id = htons(coded);

	if (carry == TC_PPV_CARRY_MARK) {
		skb->mark = (skb->mark & ~PPV_MARK_MASK) | coded;
		return true;
	}
	if (!is_ip || !ppv_atomic(skb, &buf) || skb_shared(skb) ||
	    skb_ensure_writable(skb, offset + sizeof(*ip)))
		return false;
	ip = (struct iphdr *)(skb->data + offset);
	csum_replace2(&ip->check, ip->id, id);
	ip->id = id;
	return true;
}

#endif /* _GLUE_VALUE_H */
