/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the shaper: a virtual clock with the time at which the next packet may leave.
 */
#ifndef _NET_DUALPI2_SHAPER_H
#define _NET_DUALPI2_SHAPER_H

#include <net/dualpi2_link.h>

/* Maximum lateness of a packet that the packets after it catch up on.  A timer with the
 * resolution of a tick is late by up to 10 ms (100 Hz).  With high-resolution timers
 * 1 ms covers the latency of interrupts, and limits the burst that reaches the queue of
 * the next hop.
 */
#define DUALPI2_LATE_MAX_NS		(10ULL * DUALPI2_NS_PER_MS)
#define DUALPI2_LATE_EXACT_NS		(1ULL * DUALPI2_NS_PER_MS)

/* Upper bound on the link time charged for drops in ingress mode.  A responsive
 * sender slows down within 100 ms.
 */
#define DUALPI2_DEBT_MAX_NS		(100ULL * DUALPI2_NS_PER_MS)

/**
 * struct dualpi2_clock - state of the shaper; all zero before its first packet
 * @next_ns: earliest time for the next packet; 0 without a shaper
 * @debt_ns: link time charged for dropped packets, not yet repaid
 * @frac_q20: fraction of a nanosecond, carried over to the next packet
 */
struct dualpi2_clock {
	u64 next_ns;
	u64 debt_ns;
	u32 frac_q20;
};

/**
 * dualpi2_clock_wait() - must the next packet wait?
 * @c: state
 * @now_ns: time
 *
 * Return: true: until &dualpi2_clock.next_ns; false: it may leave now.
 */
static inline bool dualpi2_clock_wait(const struct dualpi2_clock *c, u64 now_ns)
{
	return now_ns < c->next_ns;
}

/**
 * dualpi2_clock_is_cause() - is the shaper the bottleneck?
 * @link: the link
 * @c: state, at a time when a packet may leave
 * @now_ns: time
 *
 * If packets leave late by the maximum or more, another link is the bottleneck.
 */
static inline bool dualpi2_clock_is_cause(const struct dualpi2_link *link,
					  const struct dualpi2_clock *c,
					  u64 now_ns)
{
	return link->ns_per_byte_q20 &&
	       now_ns - c->next_ns < link->late_max_ns;
}

/**
 * dualpi2_clock_start() - a packet arrives at empty queues
 * @link: the link
 * @c: state
 * @now_ns: time
 *
 * Idle time gives no credit for later packets, but reduces the time charged for drops.
 */
static inline void dualpi2_clock_start(const struct dualpi2_link *link,
				       struct dualpi2_clock *c, u64 now_ns)
{
	if (!link->ns_per_byte_q20 || c->next_ns >= now_ns)
		return;
	if (unlikely(c->debt_ns))
		c->debt_ns -= min_t(u64, c->debt_ns, now_ns - c->next_ns);
	c->next_ns = now_ns;
}

/**
 * dualpi2_clock_send() - charge a packet that leaves
 * @link: the link, with a shaper
 * @c: state
 * @bytes: length on the link, see dualpi2_time_q20()
 * @now_ns: time
 *
 * In ingress mode, the link time of dropped packets is charged to later packets, at most
 * half of the own time of each.  So forwarded packets always get two thirds of the rate:
 * with unresponsive senders, drops would otherwise cause more drops.
 */
static inline void dualpi2_clock_send(const struct dualpi2_link *link,
				      struct dualpi2_clock *c, u64 bytes,
				      u64 now_ns)
{
	u64 time_q20 = dualpi2_time_q20(link->ns_per_byte_q20, bytes,
					c->frac_q20);
	u64 own_ns = time_q20 >> 20, paid_ns;

	c->frac_q20 = time_q20 & ((1U << 20) - 1);
	if (unlikely(c->next_ns + link->late_max_ns < now_ns))
		c->next_ns = now_ns - link->late_max_ns;
	c->next_ns += own_ns;
	if (unlikely(c->debt_ns)) {
		paid_ns = min_t(u64, c->debt_ns, own_ns / 2);
		c->debt_ns -= paid_ns;
		c->next_ns += paid_ns;
	}
}

/**
 * dualpi2_clock_drop() - charge a dropped packet, in ingress mode
 * @link: the link
 * @c: state
 * @bytes: length on the link
 */
static inline void dualpi2_clock_drop(const struct dualpi2_link *link,
				      struct dualpi2_clock *c, u64 bytes)
{
	u64 debt_ns = c->debt_ns + dualpi2_bytes_ns(link->ns_per_byte_q20,
						    bytes);

	if (link->ingress)
		c->debt_ns = min_t(u64, debt_ns, DUALPI2_DEBT_MAX_NS);
}

/**
 * dualpi2_clock_change() - apply new options
 * @from: the link before the change
 * @to: the link after it
 * @c: state
 * @mtu_bytes: MTU with link-layer header
 * @now_ns: time
 *
 * The time of the next packet was computed with the old rate, which can be far lower.
 * Therefore it waits at most for one MTU at the new rate.  Without a shaper before, it
 * does not wait.
 */
static inline void dualpi2_clock_change(const struct dualpi2_link *from,
					const struct dualpi2_link *to,
					struct dualpi2_clock *c, u32 mtu_bytes,
					u64 now_ns)
{
	u64 wait_ns = dualpi2_bytes_ns(to->ns_per_byte_q20, mtu_bytes);

	if (!to->ingress)
		c->debt_ns = 0;
	if (to->ns_per_byte_q20 == from->ns_per_byte_q20)
		return;
	if (!to->ns_per_byte_q20)
		*c = (struct dualpi2_clock) {};
	else if (!from->ns_per_byte_q20)
		c->next_ns = now_ns;
	else
		c->next_ns = min_t(u64, c->next_ns, now_ns + wait_ns);
}

#endif /* _NET_DUALPI2_SHAPER_H */
