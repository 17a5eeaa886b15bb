/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the link: rate, packet lengths with link layer, limit of NQB traffic.
 */
#ifndef _NET_DUALPI2_LINK_H
#define _NET_DUALPI2_LINK_H

#include <net/dualpi2_units.h>

/* Maximum packet length; longer ones count as this.  At the minimum rate, 2^20 ns per
 * byte, its serialization time is 2^42 ns, and 2^62 in units of 2^-20 ns.
 */
#define DUALPI2_LINK_BYTES_MAX		(1U << 22)

#define DUALPI2_NQB_DELAY_NS		(10ULL * DUALPI2_NS_PER_MS)

enum dualpi2_framing {
	DUALPI2_FRAMING_RAW,
	DUALPI2_FRAMING_NOATM,
	DUALPI2_FRAMING_ATM,
	DUALPI2_FRAMING_PTM,
};

/**
 * struct dualpi2_link - the link as configured
 * @ns_per_byte_q20: of the shaper; 0: no shaper
 * @overhead_bytes: overhead of the link for each IP packet, can be negative
 * @mpu_bytes: minimum length on the link
 * @framing: enum dualpi2_framing; RAW: the kernel's packet length counts
 * @ingress: dropped packets have already used the link
 * @late_max_ns: DUALPI2_LATE_EXACT_NS with high-resolution timers, else
 *	DUALPI2_LATE_MAX_NS
 */
struct dualpi2_link {
	u64 ns_per_byte_q20;
	u64 late_max_ns;
	s32 overhead_bytes;
	u32 mpu_bytes;
	u8 framing;
	bool ingress;
};

/**
 * dualpi2_ns_per_byte_q20() - serialization time of a byte
 * @rate: bytes per second, DUALPI2_BANDWIDTH_MIN..DUALPI2_BANDWIDTH_MAX; 0: none
 *
 * Return: nanoseconds times 2^20, 8389..2^20 * 10^6; 0 for no rate.  The relative
 * rounding error is 3 * 10^-7 at 10 Gbit/s and 5 * 10^-5 at 1 Tbit/s.
 */
static inline u64 dualpi2_ns_per_byte_q20(u64 rate)
{
	/* 2^20 * 10^9 is below 2^50. */
	return rate ? div64_u64(((u64)DUALPI2_NS_PER_SEC << 20) + rate / 2,
				rate) : 0;
}

/**
 * dualpi2_rate() - rate from the serialization time of a byte, for reports
 * @ns_per_byte_q20: 0: none
 *
 * Return: bytes per second, 0 for none.
 */
static inline u64 dualpi2_rate(u64 ns_per_byte_q20)
{
	return ns_per_byte_q20 ? div64_u64((u64)DUALPI2_NS_PER_SEC << 20,
					   ns_per_byte_q20) : 0;
}

/**
 * dualpi2_bytes_ns() - serialization time of @bytes
 * @ns_per_byte_q20: from dualpi2_ns_per_byte_q20(), or any below 2^42
 * @bytes: more than U32_MAX counts as U32_MAX
 *
 * Return: nanoseconds, below 2^54.
 */
static inline u64 dualpi2_bytes_ns(u64 ns_per_byte_q20, u64 bytes)
{
	return mul_u64_u32_shr(ns_per_byte_q20, min_t(u64, bytes, U32_MAX), 20);
}

/**
 * dualpi2_time_q20() - serialization time of a packet, and a fraction carried over
 * @ns_per_byte_q20: from dualpi2_ns_per_byte_q20()
 * @bytes: length on the link; at most DUALPI2_LINK_BYTES_MAX counts
 * @frac_q20: what the packets before have left, below 2^20
 *
 * Return: nanoseconds times 2^20, below 2^62.
 */
static inline u64 dualpi2_time_q20(u64 ns_per_byte_q20, u64 bytes, u32 frac_q20)
{
	return min_t(u64, bytes, DUALPI2_LINK_BYTES_MAX) * ns_per_byte_q20 +
	       frac_q20;
}

/**
 * dualpi2_ns_bytes() - bytes that the link sends in @ns
 * @ns_per_byte_q20: not 0
 * @ns: below 2^44
 */
static inline u64 dualpi2_ns_bytes(u64 ns_per_byte_q20, u64 ns)
{
	return div64_u64(ns << 20, ns_per_byte_q20);
}

/**
 * dualpi2_nqb_bytes() - limit of NQB traffic in the L4S queue
 * @ns_per_byte_q20: of the link; 0: not known
 * @mtu_bytes: MTU with link-layer header
 *
 * RFC 9956 recommends at most 10 ms.  The limit is at least two packets of an MTU.
 *
 * Return: bytes; 0: not known, and the delay of the L4S queue is the limit.
 */
static inline u32 dualpi2_nqb_bytes(u64 ns_per_byte_q20, u32 mtu_bytes)
{
	if (!ns_per_byte_q20)
		return 0;
	return clamp_t(u64, dualpi2_ns_bytes(ns_per_byte_q20,
					     DUALPI2_NQB_DELAY_NS),
		       2ULL * min_t(u32, mtu_bytes, S32_MAX / 2), S32_MAX);
}

/**
 * dualpi2_link_bytes() - length of a packet on the link
 * @link: not of framing RAW
 * @ip_bytes: the IP packet
 *
 * An ATM cell carries 48 bytes in 53, and the last cell is padded (ITU-T I.363.5, AAL5;
 * its trailer is part of the overhead).  PTM adds one byte to every 64 (IEEE 802.3,
 * 61.3.3).
 *
 * Return: 1..2^24.
 */
static inline u32 dualpi2_link_bytes(const struct dualpi2_link *link,
				     u32 ip_bytes)
{
	s64 bytes = (s64)min_t(u32, ip_bytes, DUALPI2_LINK_BYTES_MAX) +
		    link->overhead_bytes;
	u32 len = max_t(s64, bytes, link->mpu_bytes ?: 1);

	switch (link->framing) {
	case DUALPI2_FRAMING_ATM:
		return (len + 47) / 48 * 53;
	case DUALPI2_FRAMING_PTM:
		return len + (len + 63) / 64;
	default:
		return len;
	}
}

/**
 * dualpi2_link_gso_bytes() - length on the link of a GSO packet's segments
 * @link: not of framing RAW
 * @ip_bytes: the GSO packet: headers once, whole payload
 * @header_bytes: IP and transport headers of a segment; if not below @ip_bytes, the
 *	packet counts as one segment
 * @part_bytes: payload of each segment, the last can be shorter; not 0
 */
static inline u64 dualpi2_link_gso_bytes(const struct dualpi2_link *link,
					 u32 ip_bytes, u32 header_bytes,
					 u32 part_bytes)
{
	u32 payload, whole;

	if (ip_bytes <= header_bytes)
		return dualpi2_link_bytes(link, ip_bytes);
	payload = ip_bytes - header_bytes;
	whole = (payload - 1) / part_bytes;
	return (u64)whole * dualpi2_link_bytes(link, header_bytes + part_bytes) +
	       dualpi2_link_bytes(link, header_bytes + payload -
					whole * part_bytes);
}

#endif /* _NET_DUALPI2_LINK_H */
