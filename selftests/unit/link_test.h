/* SPDX-License-Identifier: GPL-2.0-only */
/* Links and clocks of the tests of the shaper and the link. */
#ifndef DUALPI2_UNIT_LINK_H
#define DUALPI2_UNIT_LINK_H

#include "unit.h"

#define LINK_MTU	1514U

static inline struct dualpi2_link link_of(u64 rate, bool ingress)
{
	struct dualpi2_link link;

	memset(&link, 0, sizeof(link));
	link.ns_per_byte_q20 = dualpi2_ns_per_byte_q20(rate);
	link.ingress = ingress;
	link.late_max_ns = DUALPI2_LATE_MAX_NS;
	return link;
}

static inline struct dualpi2_link link_framed(u8 framing, s32 overhead, u32 mpu)
{
	struct dualpi2_link link = link_of(0, false);

	link.framing = framing;
	link.overhead_bytes = overhead;
	link.mpu_bytes = mpu;
	return link;
}

/* A clock whose queues a packet has come to at a time. */
static inline struct dualpi2_clock link_clock(const struct dualpi2_link *link, u64 now_ns)
{
	struct dualpi2_clock c;

	memset(&c, 0, sizeof(c));
	dualpi2_clock_start(link, &c, now_ns);
	return c;
}

/* Time of so many bytes, as exactly as it can be had. */
static inline long double link_exact_ns(u64 rate, u64 bytes)
{
	return (long double)bytes * 1e9L / rate;
}

static inline u64 link_any_rate(void)
{
	return unit_any(DUALPI2_BANDWIDTH_MIN, DUALPI2_BANDWIDTH_MAX);
}

#endif /* DUALPI2_UNIT_LINK_H */
