/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2, the link behind the queues: how long packets are on it, the shaper's
 * clock, the rate at which queues drain, and bursts of arrivals.
 *
 * Integers in, integers out, as in dualpi2.h, which includes this.
 *
 * Fixed-point format:
 *   _q20   nanoseconds per byte, times 2^20; u64
 */
#ifndef _NET_DUALPI2_LINK_H
#define _NET_DUALPI2_LINK_H

#include <net/dualpi2_options.h>
#include <net/dualpi2_seam.h>

#define DUALPI2_NS_PER_MS		1000000U
#define DUALPI2_NS_PER_SEC		1000000000U

/* Lengths beyond this count as this: at the least rate, 2^20 ns per byte, the
 * time of such a packet is 2^42 ns, and 2^62 in units of 2^-20 ns.
 */
#define DUALPI2_LINK_BYTES_MAX		(1U << 22)

/* The packets after one that was sent late catch up on at most this much time.
 * A timer with the resolution of a tick is late by up to 10 ms (100 Hz).  Where
 * timers are exact, 1 ms covers the latency of interrupts, and the burst that
 * fills the queue of the link behind is no longer than that.
 */
#define DUALPI2_LATE_MAX_NS		(10ULL * DUALPI2_NS_PER_MS)
#define DUALPI2_LATE_EXACT_NS		(1ULL * DUALPI2_NS_PER_MS)

/* What drops owe the link in ingress mode, at most: senders have answered after
 * this time, or do not.
 */
#define DUALPI2_DEBT_MAX_NS		(100ULL * DUALPI2_NS_PER_MS)

#define DUALPI2_NQB_DELAY_NS		(10ULL * DUALPI2_NS_PER_MS)

/* Only a backlog that has lasted this long shows the rate of the link.  A shorter
 * one drains into the buffers of the device, at the speed of the processor.
 */
#define DUALPI2_DRAIN_AFTER_NS		(1U * DUALPI2_NS_PER_MS)

/* Greatest length of a burst, and of all that are summed up for one update. */
#define DUALPI2_BURST_BYTES_MAX		(1U << 26)
#define DUALPI2_BURSTS_BYTES_MAX	(1ULL << 32)

/* Shorter ones are not tolerated, see dualpi2_tolerate(). */
#define DUALPI2_BURST_LEAST_NS		(1 * DUALPI2_NS_PER_MS)

/* The first packet of a burst waits for none of the others.  Two packets in a row
 * come about where two flows meet, and are no burst.
 */
#define DUALPI2_BURST_MTU_BYTES		1514U

enum dualpi2_framing {
	DUALPI2_FRAMING_RAW,
	DUALPI2_FRAMING_NOATM,
	DUALPI2_FRAMING_ATM,
	DUALPI2_FRAMING_PTM,
};

/**
 * struct dualpi2_link - the link as configured
 * @ns_per_byte_q20: of the shaper; 0: there is none
 * @overhead_bytes: what the link adds to an IP packet
 * @mpu_bytes: least length on the link
 * @framing: enum dualpi2_framing; RAW: lengths are the kernel's
 * @ingress: what is dropped has used the link
 * @late_max_ns: DUALPI2_LATE_MAX_NS or DUALPI2_LATE_EXACT_NS, as timers are
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
 * struct dualpi2_clock - state of the shaper; all zero before its first packet
 * @next_ns: no packet leaves before; 0 without a shaper
 * @debt_ns: time of the link that dropped packets took, not yet paid
 * @frac_q20: part of a nanosecond to be added to the next packet's time
 */
struct dualpi2_clock {
	u64 next_ns;
	u64 debt_ns;
	u32 frac_q20;
};

/**
 * struct dualpi2_drain - rate of a link that another shapes, as seen
 * @begin_ns: begin of the present backlog, lower 32 bits, odd; 0: there is none
 * @known_bytes: @busy_bytes at the last update, lower 32 bits
 * @since_ns: from here on busy time is not in @busy_ns yet; 0: the backlog has not
 *	lasted for DUALPI2_DRAIN_AFTER_NS
 * @busy_bytes: lengths of packets that left others behind since then
 * @busy_ns: time from each of these to the next packet
 * @ns_per_byte_q20: quotient of the two, 0: nothing was seen yet
 */
struct dualpi2_drain {
	u32 begin_ns;
	u32 known_bytes;
	u64 since_ns;
	u64 busy_bytes;
	u64 busy_ns;
	u64 ns_per_byte_q20;
};

/**
 * struct dualpi2_burst - how packets arrive at the L4S queue
 * @ns_per_byte_q20: of the link; 0: bursts are not looked for
 * @gap_ns: a longer pause ends a burst
 * @first_ns: when the first packet of the burst under way came
 * @last_ns: when the last one came
 * @run_bytes: all of them
 * @most_bytes: a longer one is no burst but load
 * @sum_bytes: packets of all bursts since the last update
 * @sum: for each burst its bytes, times what its last packet waits for
 * @mean_ns: mean over bytes of the latter, smoothed
 * @burst_ns: this and a quarter more
 */
struct dualpi2_burst {
	u64 ns_per_byte_q20;
	u64 gap_ns;
	u64 first_ns;
	u64 last_ns;
	u32 run_bytes;
	u32 most_bytes;
	u64 sum_bytes;
	u64 sum;
	u32 mean_ns;
	u32 burst_ns;
};

/**
 * dualpi2_ns_per_byte_q20() - time of a byte
 * @rate: bytes per second, DUALPI2_BANDWIDTH_MIN..DUALPI2_BANDWIDTH_MAX; 0: none
 *
 * Return: nanoseconds times 2^20, 8389..2^20 * 10^6; at 10 Gbit/s the rounding
 * is 3 * 10^-7 of it, at 1 Tbit/s 5 * 10^-5.  0 for no rate.
 */
static inline u64 dualpi2_ns_per_byte_q20(u64 rate)
{
	/* 2^20 * 10^9 is below 2^50. */
	return rate ? div64_u64(((u64)DUALPI2_NS_PER_SEC << 20) + rate / 2,
				rate) : 0;
}

/**
 * dualpi2_rate() - the rate of a time of a byte, for reports
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
 * dualpi2_bytes_ns() - time of so many bytes
 * @ns_per_byte_q20: from dualpi2_ns_per_byte_q20(), or any below 2^42
 * @bytes: beyond U32_MAX it counts as this
 *
 * Return: nanoseconds, below 2^54.
 */
static inline u64 dualpi2_bytes_ns(u64 ns_per_byte_q20, u64 bytes)
{
	return mul_u64_u32_shr(ns_per_byte_q20, min_t(u64, bytes, U32_MAX), 20);
}

/**
 * dualpi2_ns_bytes() - bytes that pass in a time
 * @ns_per_byte_q20: not 0
 * @ns: below 2^44
 */
static inline u64 dualpi2_ns_bytes(u64 ns_per_byte_q20, u64 ns)
{
	return div64_u64(ns << 20, ns_per_byte_q20);
}

/**
 * dualpi2_nqb_bytes() - limit of NQB traffic in the L4S queue
 * @ns_per_byte_q20: of the link both queues share; 0: not known
 * @mtu_bytes: MTU with link-layer header
 *
 * RFC 9956 recommends at most 10 ms.  There is always room for two packets.
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
 * ATM cells carry 48 bytes in 53, the last one is padded (ITU-T I.363.5, AAL5;
 * its trailer is part of the overhead); PTM sends a byte with each 64 (IEEE
 * 802.3, 61.3.3).
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
 * dualpi2_link_gso_bytes() - length on the link of a packet that leaves in parts
 * @link: not of framing RAW
 * @ip_bytes: the packet as it is: headers once, all of the payload
 * @header_bytes: IP and transport headers, which each part has; where they are
 *	not shorter than the packet, it counts as it is
 * @part_bytes: payload of each part but the last; not 0
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
 * What is owed for dropped packets is paid by those that leave, each as much as
 * half of its own time at most, so that two thirds of the rate are always for
 * these: where senders do not answer, drops would otherwise lead to more drops.
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

/**
 * dualpi2_drain_pause() - the queues are empty, or not seen for a time
 * @d: state
 * @now_ns: time
 */
static inline void dualpi2_drain_pause(struct dualpi2_drain *d, u64 now_ns)
{
	if (d->since_ns)
		d->busy_ns += now_ns - d->since_ns;
	d->since_ns = 0;
	d->begin_ns = 0;
}

/**
 * dualpi2_drain_sent() - a packet leaves a link that another shapes
 * @d: state
 * @bytes: its length
 * @left: others wait behind it
 * @now_ns: time, not 0
 */
static inline void dualpi2_drain_sent(struct dualpi2_drain *d, u32 bytes,
				      bool left, u64 now_ns)
{
	if (!left) {
		dualpi2_drain_pause(d, now_ns);
		return;
	}
	if (!d->since_ns) {
		if (!d->begin_ns)
			d->begin_ns = (u32)now_ns | 1;
		if ((u32)now_ns + 1 - d->begin_ns < DUALPI2_DRAIN_AFTER_NS)
			return;
		d->since_ns = now_ns;
	}
	d->busy_bytes += bytes;
}

/**
 * dualpi2_drain_update() - the rate anew, at an update of the controller
 * @d: state
 * @now_ns: time; of a packet that leaves, if @d is of a busy link
 *
 * A quarter of what was seen is forgotten each time that there is something new.
 */
static inline void dualpi2_drain_update(struct dualpi2_drain *d, u64 now_ns)
{
	u64 time_q20;

	if (d->since_ns) {
		d->busy_ns += now_ns - d->since_ns;
		d->since_ns = now_ns;
	}
	if ((u32)d->busy_bytes == d->known_bytes)
		return;
	/* 2^42 ns are 73 minutes: of a link that stood still. */
	time_q20 = min_t(u64, d->busy_ns, 1ULL << 42) << 20;
	d->ns_per_byte_q20 = min_t(u64, div64_u64(time_q20, d->busy_bytes) ?: 1,
				   (1ULL << 20) * 1000000);
	d->busy_bytes -= d->busy_bytes / 4;
	d->busy_ns -= d->busy_ns / 4;
	d->known_bytes = d->busy_bytes;
}

/* Two packets in a row at most; and there is room for more in the sums. */
static inline bool dualpi2_burst_is_none(const struct dualpi2_burst *b)
{
	return b->run_bytes <= 2 * DUALPI2_BURST_MTU_BYTES &&
	       b->sum_bytes < DUALPI2_BURSTS_BYTES_MAX;
}

/**
 * dualpi2_burst_close() - account for the burst that has ended
 * @b: state
 *
 * What its last packet waits for is all before it but what has left meanwhile: of
 * small packets that come as fast as the link takes them that is nothing.  The
 * sum stays below 2^61: of bursts up to 2^33 bytes, each for at most 2^28 ns.
 */
static inline void dualpi2_burst_close(struct dualpi2_burst *b)
{
	u64 passed_ns = b->last_ns - b->first_ns, wait_ns;
	u32 run_bytes = b->run_bytes;

	b->run_bytes = 0;
	if (b->sum_bytes >= DUALPI2_BURSTS_BYTES_MAX)
		return;
	b->sum_bytes += run_bytes;
	if (run_bytes <= 2 * DUALPI2_BURST_MTU_BYTES ||
	    run_bytes > b->most_bytes)
		return;
	wait_ns = dualpi2_bytes_ns(b->ns_per_byte_q20,
				   run_bytes - DUALPI2_BURST_MTU_BYTES);
	if (wait_ns > passed_ns)
		b->sum += run_bytes * min_t(u64, wait_ns - passed_ns,
					    1ULL << 28);
}

/**
 * dualpi2_burst_continues() - a packet joins the L4S queue and ends no burst
 * @b: state
 * @bytes: its length
 * @now_ns: time
 *
 * Return: true: it is accounted for; false: it ends a burst, and is for
 * dualpi2_burst_next().
 */
static inline bool dualpi2_burst_continues(struct dualpi2_burst *b, u32 bytes,
					 u64 now_ns)
{
	if (!b->ns_per_byte_q20)
		return true;
	if (now_ns - b->last_ns <= b->gap_ns) {
		bytes = min_t(u64, (u64)b->run_bytes + bytes, U32_MAX);
	} else {
		if (!dualpi2_burst_is_none(b))
			return false;
		b->sum_bytes += b->run_bytes;
		b->first_ns = now_ns;
	}
	b->last_ns = now_ns;
	b->run_bytes = bytes;
	return true;
}

/**
 * dualpi2_burst_next() - a packet joins the L4S queue
 * @b: state
 * @bytes: its length
 * @now_ns: time
 */
static inline void dualpi2_burst_next(struct dualpi2_burst *b, u32 bytes,
					u64 now_ns)
{
	if (dualpi2_burst_continues(b, bytes, now_ns))
		return;
	dualpi2_burst_close(b);
	b->first_ns = now_ns;
	b->last_ns = now_ns;
	b->run_bytes = bytes;
}

/**
 * dualpi2_burst_update() - which bursts are to be tolerated from now on
 * @b: state
 * @ns_per_byte_q20: of the link, 0: not known
 * @mtu_bytes: MTU with link-layer header
 * @most_ns: time on the link of the longest one; 0: none
 *
 * A burst's packets follow each other within a quarter of the time that the link
 * takes for an MTU.  The mean is over bytes, so that a few bursts among smooth
 * arrivals count for what they are of the traffic.
 */
static inline void dualpi2_burst_update(struct dualpi2_burst *b,
					u64 ns_per_byte_q20, u32 mtu_bytes,
					u32 most_ns)
{
	if (!ns_per_byte_q20 || !most_ns) {
		*b = (struct dualpi2_burst) {};
		return;
	}
	b->ns_per_byte_q20 = ns_per_byte_q20;
	b->gap_ns = dualpi2_bytes_ns(ns_per_byte_q20, mtu_bytes) / 4;
	b->most_bytes = min_t(u64, dualpi2_ns_bytes(ns_per_byte_q20, most_ns),
			      DUALPI2_BURST_BYTES_MAX);
	b->burst_ns = min_t(u32, b->burst_ns, most_ns);
	if (b->run_bytes > b->most_bytes) {
		dualpi2_burst_close(b);
		b->first_ns = b->last_ns;
	}
	if (!b->sum_bytes)
		return;
	b->mean_ns = (7ULL * b->mean_ns + div64_u64(b->sum, b->sum_bytes)) / 8;
	b->sum_bytes = 0;
	b->sum = 0;
	b->burst_ns = min_t(u64, b->mean_ns * 5ULL / 4, most_ns);
}

#endif /* _NET_DUALPI2_LINK_H */
