// SPDX-License-Identifier: GPL-2.0-only
/*
 * parser - the packet parser of include/qdisc/packet.h in user space, by libFuzzer.
 *
 * Input: headroom, framing, type, offset of the network header, bytes in the linear part, what begins the frame, then its
 * rest.  Each part of the packet is a memory block of its own, so that ASan finds every read beyond it.  What the parser says is compared
 * with a second parser, which reads the frame as one array, and the frame must not change.  A run that has not seen every
 * kind of packet ends with 1.
 */
#include <arpa/inet.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ppp_defs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kernel, as far as the parser knows it ---- */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define BIT(n)				(1U << (n))
#define U16_MAX				0xffff
#define VLAN_HLEN			4
#define __packed			__attribute__((packed))
#define likely(x)			(x)
#define unlikely(x)			(x)
#define static_assert(condition)	_Static_assert(condition, #condition)
#define clamp(x, low, high)		((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define qdisc_cb_private_validate(skb, size)

struct net_device {
	unsigned short type;
};

struct qdisc_cb {
	u64 data[3];
};

struct sk_buff {
	u8 *head, *data, *tail, *paged;
	u32 len, data_len;
	__be16 protocol;
	int network_offset, mac_offset;
	bool has_mac;
	const struct net_device *dev;
	struct qdisc_cb cb;
};

static struct qdisc_cb *qdisc_skb_cb(const struct sk_buff *skb)
{
	return (struct qdisc_cb *)&skb->cb;
}

static int skb_network_offset(const struct sk_buff *skb)
{
	return skb->network_offset;
}

static const u8 *skb_network_header(const struct sk_buff *skb)
{
	return skb->data + skb->network_offset;
}

static const u8 *skb_tail_pointer(const struct sk_buff *skb)
{
	return skb->tail;
}

static bool skb_mac_header_was_set(const struct sk_buff *skb)
{
	return skb->has_mac;
}

static int skb_mac_offset(const struct sk_buff *skb)
{
	return skb->mac_offset;
}

static void *skb_header_pointer(const struct sk_buff *skb, int offset, int len, void *buf)
{
	int linear = skb->len - skb->data_len, i;

	if (offset < 0 || len > (int)skb->len - offset)
		return NULL;
	if (linear - offset >= len)
		return skb->data + offset;
	for (i = 0; i < len; i++, offset++)
		((u8 *)buf)[i] = offset < linear ? skb->data[offset] : skb->paged[offset - linear];
	return buf;
}

static bool eth_type_vlan(__be16 type)
{
	return type == htons(ETH_P_8021Q) || type == htons(ETH_P_8021AD);
}

static u8 ipv6_get_dsfield(const struct ipv6hdr *ip)
{
	return ntohs(*(const __be16 *)ip) >> 4;
}

static bool ip_is_fragment(const struct iphdr *ip)
{
	return ip->frag_off & htons(0x3fff);
}

static int proto_ports_offset(u32 protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_DCCP:
	case IPPROTO_ESP:
	case IPPROTO_SCTP:
	case IPPROTO_UDPLITE:
		return 0;
	case IPPROTO_AH:
		return 4;
	}
	return -1;
}

enum { DUALPI2_ECN_ECT1 = 1, DUALPI2_ECN_CE = 3, INET_ECN_ECT_1 = 1, INET_ECN_CE = 3 };

#include "parser.h"

/* ---- a second parser: one array, by RFC 791, 8200, 2516 and IEEE 802.1Q ---- */

enum kind { NONE, IPV4, IPV6, TAGGED, SESSION, FRAGMENT, INNER, PORTS, FAST, KINDS };
static const char *const kinds[KINDS] = {
	"no header", "IPv4", "IPv6", "VLAN tag", "PPPoE session", "fragment", "IP in IP", "ports", "in the linear part"
};
static u64 seen[KINDS];

static unsigned int be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

/* The offset of the outermost IP header and its version, or 0. */
static unsigned int outermost(const u8 *frame, size_t len, unsigned int type, int network, bool ethernet, size_t *at)
{
	bool tag = !type || type == 0x8100 || type == 0x88a8;
	unsigned int tags;

	if (network < 0 && !(ethernet && tag))
		return 0;
	*at = network;
	if (tag && !ethernet)
		return 0;
	if (ethernet && (tag || network > 14)) {
		*at = 12;
		for (tags = 0; *at + 2 <= len; tags++, *at += 4) {
			type = be16(frame + *at);
			if (type != 0x8100 && type != 0x88a8)
				break;
			if (tags == 8)
				return 0;
			seen[TAGGED]++;
		}
		if (*at + 2 > len)
			return 0;
		*at += 2;
	}
	if (type == 0x8864) {
		if (*at + 8 > len || frame[*at] != 0x11 || frame[*at + 1])
			return 0;
		type = be16(frame + *at + 6) == 0x21 ? 0x800 : be16(frame + *at + 6) == 0x57 ? 0x86dd : 0;
		*at += 8;
		seen[SESSION] += !!type;
	}
	if (*at > 0xffff)
		return 0;
	if (type == 0x800 && *at + 20 <= len && frame[*at] >> 4 == 4 && (frame[*at] & 15) >= 5)
		return 4;
	return type == 0x86dd && *at + 40 <= len && frame[*at] >> 4 == 6 ? 6 : 0;
}

/* What a header at @at says of the flow; false without one.  *at becomes the end of it, 0 in a fragment. */
static bool header(const u8 *frame, size_t len, unsigned int version, size_t *at, struct dualpi2_flow *flow, u32 *words)
{
	const u8 *ip = frame + *at;

	if (version == 6 ? *at + 40 > len || *ip >> 4 != 6 : *at + 20 > len || *ip >> 4 != 4 || (*ip & 15) < 5)
		return false;
	flow->protocol = ip[version == 6 ? 6 : 9];
	memcpy(flow->addrs, ip + (version == 6 ? 8 : 12), version == 6 ? 32 : 8);
	*words = version == 6 ? 10 : 4;
	if (version == 6)
		*at += 40;
	else
		*at = be16(ip + 6) & 0x3fff ? 0 : *at + 4 * (*ip & 15);
	seen[FRAGMENT] += !*at;
	return true;
}

static void differ(const char *what, long ours, long second)
{
	fprintf(stderr, "%s: %ld, second parser: %ld\n", what, ours, second);
	abort();
}

#define SAME(what, ours, second) do {					\
	if ((long)(ours) != (long)(second))				\
		differ(what, ours, second);				\
} while (0)

static void check(const struct sk_buff *skb, const u8 *frame, size_t len)
{
	bool ethernet = skb->dev && skb->dev->type == ARPHRD_ETHER && skb->has_mac && !skb->mac_offset;
	struct dualpi2_flow flow, second = {};
	int dsfield, fast, ports, expected = -1;
	unsigned int version, inner;
	u32 words = 0;
	size_t at;

	version = outermost(frame, len, ntohs(skb->protocol), skb->network_offset, ethernet, &at);
	if (version)
		expected = version == 4 ? frame[at + 1] : (frame[at] << 4 | frame[at + 1] >> 4) & 255;
	fast = dualpi2_linear_dsfield(skb);
	memset(qdisc_skb_cb(skb), 0, sizeof(struct qdisc_cb));
	if (fast >= 0) {
		seen[FAST]++;
		SAME("DSCP and ECN on the fast path", fast, expected);
	}
	dsfield = dualpi2_read_dsfield(skb, dualpi2_cb(skb));
	SAME("DSCP and ECN", dsfield, expected);
	seen[version == 4 ? IPV4 : version == 6 ? IPV6 : NONE]++;
	if (!version)
		return;
	SAME("offset", dualpi2_ip_offset(skb), at);
	SAME("IPv6", dualpi2_is_ipv6(skb), version == 6);

	header(frame, len, version, &at, &second, &words);
	inner = second.protocol == 4 ? 4 : second.protocol == 41 ? 6 : 0;
	if (at && inner) {
		seen[INNER]++;
		header(frame, len, inner, &at, &second, &words);
	}
	ports = proto_ports_offset(second.protocol);
	if (at && ports >= 0 && at + ports + 4 <= len) {
		memcpy(&second.sport, frame + at + ports, 4);
		seen[PORTS]++;
	}
	SAME("words of the flow", dualpi2_read_flow(skb, &flow), words);
	SAME("flow", memcmp(&flow, &second, sizeof(flow)), 0);
}

static void summary(void)
{
	bool missing = false;
	int i;

	for (i = 0; i < KINDS; i++) {
		fprintf(stderr, "%s: %llu\n", kinds[i], (unsigned long long)seen[i]);
		missing |= !seen[i];
	}
	if (missing) {
		fprintf(stderr, "parser: a kind of packet was never seen\n");
		_Exit(1);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	atexit(summary);
	return 0;
}

#define FAR	65534	/* where an offset of 16 bits ends */

/* The begin of a frame: nothing, or far away from its network header, or up to ten tags and a session. */
static size_t begin(u8 *frame, u8 how, int network_offset)
{
	static const u8 session[] = { 0x88, 0x64, 0x11, 0, 0, 0, 0, 0, 0, 0x21 };
	size_t at = 12, tags;

	if (network_offset >= FAR) {
		memset(frame, 0, network_offset);
		return network_offset;
	}
	if (how < 0x80)
		return 0;
	memset(frame, 0, 128);
	for (tags = how % 11; tags; tags--, at += 4)
		memcpy(frame + at, tags & 1 ? "\x81" : "\x88\xa8", 2);
	if (!(how & 0x40)) {
		memcpy(frame + at, how & 0x20 ? "\x08" : "\x86\xdd", 2);
		return at + 2;
	}
	memcpy(frame + at, session, sizeof(session));
	frame[at + 2] = how % 5 ? 0x11 : 0x21;
	frame[at + 3] = (how & 0x30) == 0x30;
	frame[at + 9] = how & 0x10 ? 0x57 : 0x21;
	return at + sizeof(session);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u16 types[] = { 0x800, 0x86dd, 0x8100, 0x88a8, 0x8864, 0, 0x806, 0x800 };
	static const struct net_device devices[] = { { ARPHRD_ETHER }, { ARPHRD_NONE } };
	static u8 frame[FAR + 1024];
	u8 headroom, framing, *copy;
	struct sk_buff skb = {};
	size_t linear, head;

	if (size < 6 || size > 512)
		return 0;
	headroom = data[0] & 31;
	framing = data[0] >> 5;
	skb.dev = framing & 4 ? NULL : &devices[framing & 1];
	skb.has_mac = !(framing & 2);
	skb.mac_offset = data[1] & 0x80 ? 4 : 0;
	skb.protocol = htons(types[data[1] & 7]);
	/* An Ethernet header or tags before it, at 0, in the headroom, far away. */
	skb.network_offset = data[2] < 0xfc ? data[2] % 48 - 4 : FAR + (data[2] - 0xfc);
	if (skb.network_offset < -(int)headroom)
		skb.network_offset = -(int)headroom;
	linear = data[3] | (data[4] & 1) << 8;
	head = begin(frame, data[5], skb.network_offset);
	memcpy(frame + head, data + 6, size - 6);
	size += head - 6;
	linear = linear < size ? linear : size;

	skb.head = malloc(headroom + linear);
	skb.paged = malloc(size - linear);
	copy = malloc(size);
	if (!skb.head || !skb.paged || !copy)
		abort();
	skb.data = skb.head + headroom;
	skb.tail = skb.data + linear;
	skb.len = size;
	skb.data_len = size - linear;
	memset(skb.head, 0x45, headroom);
	memcpy(skb.data, frame, linear);
	memcpy(skb.paged, frame + linear, size - linear);
	memcpy(copy, frame, size);
	check(&skb, copy, size);
	if (memcmp(skb.data, frame, linear) || memcmp(skb.paged, frame + linear, size - linear))
		differ("bytes changed", 1, 0);
	free(skb.head);
	free(skb.paged);
	free(copy);
	return 0;
}
