/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: burst tolerance: how long the bursts are that arrive at the L4S queue.
 */
#ifndef _NET_DUALPI2_BURST_H
#define _NET_DUALPI2_BURST_H

#include <net/dualpi2_link.h>

/* Maximum length of a burst, and of all bursts between two updates. */
#define DUALPI2_BURST_BYTES_MAX		(1U << 26)
#define DUALPI2_BURSTS_BYTES_MAX	(1ULL << 32)

/* Minimum tolerance; a shorter one changes nothing, see dualpi2_tolerate(). */
#define DUALPI2_BURST_MIN_NS		DUALPI2_NS_PER_MS

/* Length of a burst's first packet, which waits for none of the others.  Two packets in
 * a row are not a burst: they occur where two flows meet.
 */
#define DUALPI2_BURST_MTU_BYTES		1514U

/**
 * struct dualpi2_burst - how packets arrive at the L4S queue
 * @ns_per_byte_q20: of the link; 0: bursts are not measured
 * @gap_ns: maximum time between two packets of a burst
 * @first_ns: arrival of the present burst's first packet
 * @last_ns: arrival of its last packet so far
 * @run_bytes: its length so far
 * @max_bytes: maximum length of a burst; longer runs count as load
 * @sum_bytes: length of all bursts since the last update
 * @sum: sum over bursts of length times wait of the last packet, bytes * ns
 * @mean_ns: mean wait of a burst's last packet, weighted by bytes, smoothed
 * @burst_ns: tolerance: 5/4 of @mean_ns
 */
struct dualpi2_burst {
	u64 ns_per_byte_q20;
	u64 gap_ns;
	u64 first_ns;
	u64 last_ns;
	u32 run_bytes;
	u32 max_bytes;
	u64 sum_bytes;
	u64 sum;
	u32 mean_ns;
	u32 burst_ns;
};

/* At most two packets in a row, and the sums cannot overflow yet. */
static inline bool dualpi2_burst_is_none(const struct dualpi2_burst *b)
{
	return b->run_bytes <= 2 * DUALPI2_BURST_MTU_BYTES &&
	       b->sum_bytes < DUALPI2_BURSTS_BYTES_MAX;
}

/**
 * dualpi2_burst_close() - add the burst that ended to the sums
 * @b: state
 *
 * The last packet waits for the packets before it, less what the link sent while they
 * arrived.  That is nothing for small packets that arrive at the rate of the link.  The
 * sum stays below 2^61: bursts of up to 2^33 bytes, times at most 2^28 ns.
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
	    run_bytes > b->max_bytes)
		return;
	wait_ns = dualpi2_bytes_ns(b->ns_per_byte_q20,
				   run_bytes - DUALPI2_BURST_MTU_BYTES);
	if (wait_ns > passed_ns)
		b->sum += run_bytes * min_t(u64, wait_ns - passed_ns,
					    1ULL << 28);
}

/**
 * dualpi2_burst_continues() - count an arrival at the L4S queue that ends no burst
 * @b: state
 * @bytes: its length
 * @now_ns: time
 *
 * Return: true: counted; false: the packet ends a burst, call dualpi2_burst_next().
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
 * dualpi2_burst_next() - count an arrival at the L4S queue
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
 * dualpi2_burst_update() - compute the burst tolerance from the last arrivals
 * @b: state
 * @ns_per_byte_q20: of the link, 0: not known
 * @mtu_bytes: MTU with link-layer header
 * @max_ns: maximum tolerance; 0: none
 *
 * The packets of a burst follow each other within a quarter of an MTU's serialization
 * time.  The mean is weighted by bytes, so that a few bursts among smooth arrivals count
 * by their part of the traffic.
 */
static inline void dualpi2_burst_update(struct dualpi2_burst *b,
					u64 ns_per_byte_q20, u32 mtu_bytes,
					u32 max_ns)
{
	if (!ns_per_byte_q20 || !max_ns) {
		*b = (struct dualpi2_burst) {};
		return;
	}
	b->ns_per_byte_q20 = ns_per_byte_q20;
	b->gap_ns = dualpi2_bytes_ns(ns_per_byte_q20, mtu_bytes) / 4;
	b->max_bytes = min_t(u64, dualpi2_ns_bytes(ns_per_byte_q20, max_ns),
			     DUALPI2_BURST_BYTES_MAX);
	b->burst_ns = min_t(u32, b->burst_ns, max_ns);
	if (b->run_bytes > b->max_bytes) {
		dualpi2_burst_close(b);
		b->first_ns = b->last_ns;
	}
	if (!b->sum_bytes)
		return;
	b->mean_ns = (7ULL * b->mean_ns + div64_u64(b->sum, b->sum_bytes)) / 8;
	b->sum_bytes = 0;
	b->sum = 0;
	b->burst_ns = min_t(u64, b->mean_ns * 5ULL / 4, max_ns);
}

#endif /* _NET_DUALPI2_BURST_H */
