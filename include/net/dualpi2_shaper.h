/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the shaper: a virtual clock that says when the next packet may leave.
 */
#ifndef _NET_DUALPI2_SHAPER_H
#define _NET_DUALPI2_SHAPER_H

#include <net/dualpi2_link.h>

/* The packets after one that was sent late catch up on at most this much time.
 * A timer with the resolution of a tick is late by up to 10 ms (100 Hz).  Where
 * timers are exact, 1 ms covers the latency of interrupts, and the burst that
 * fills the queue of the link behind is no longer than that.
 */
#define DUALPI2_LATE_MAX_NS		(10ULL * DUALPI2_NS_PER_MS)
#define DUALPI2_LATE_EXACT_NS		(1ULL * DUALPI2_NS_PER_MS)

/* Upper bound on the link time charged for drops in ingress mode.  A responsive
 * sender slows down within 100 ms.
 */
#define DUALPI2_DEBT_MAX_NS		(100ULL * DUALPI2_NS_PER_MS)

/**
 * struct dualpi2_clock - state of the shaper; all zero before its first packet
 * @next_ns: no packet leaves before; 0 without a shaper
 * @debt_ns: link time charged for dropped packets, not yet repaid
 * @frac_q20: part of a nanosecond to be added to the next packet's time
 */
struct dualpi2_clock {
	u64 next_ns;
	u64 debt_ns;
	u32 frac_q20;
};

/**
 * dualpi2_clock_wait() - when the next packet may leave
 * @c: state
 * @now_ns: time
 *
 * Return: false: now; true: not before &dualpi2_clock.next_ns.
 */
static inline bool dualpi2_clock_wait(const struct dualpi2_clock *c, u64 now_ns)
{
	return now_ns < c->next_ns;
}

/**
 * dualpi2_clock_is_cause() - is the shaper what packets wait for?
 * @link: the link
 * @c: state, when a packet may leave
 * @now_ns: time
 *
 * If they leave as late as is made up for, they wait for another link behind.
 */
static inline bool dualpi2_clock_is_cause(const struct dualpi2_link *link,
					  const struct dualpi2_clock *c,
					  u64 now_ns)
{
	return link->ns_per_byte_q20 &&
	       now_ns - c->next_ns < link->late_max_ns;
}

/**
 * dualpi2_clock_start() - a packet comes to empty queues
 * @link: the link
 * @c: state
 * @now_ns: time
 *
 * Time in which there was nothing to send is not made up for, but it pays for what
 * is owed.
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
 * dualpi2_clock_send() - a packet leaves
 * @link: the link, with a shaper
 * @c: state
 * @bytes: length on the link; beyond DUALPI2_LINK_BYTES_MAX it counts as this
 * @now_ns: time
 *
 * In ingress mode dropped packets leave a debt of link time.  Later packets repay it,
 * each at most half of its own time, so that they always get two thirds of the rate:
 * with unresponsive senders, drops would otherwise cause more drops.
 */
static inline void dualpi2_clock_send(const struct dualpi2_link *link,
				      struct dualpi2_clock *c, u64 bytes,
				      u64 now_ns)
{
	u64 time_q20 = min_t(u64, bytes, DUALPI2_LINK_BYTES_MAX) *
		       link->ns_per_byte_q20 + c->frac_q20;
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
 * dualpi2_clock_drop() - a packet that came over the link is dropped
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
 * dualpi2_clock_change() - perhaps another rate
 * @from: the link as it was
 * @to: the link as it is from now on
 * @c: state
 * @mtu_bytes: MTU with link-layer header
 * @now_ns: time
 *
 * What left before was timed by the old rate, which may have been far less: the
 * next packet waits for one of an MTU at the new rate at most.  Without a shaper
 * before, nothing is to be made up for.
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
