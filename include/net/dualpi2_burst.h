/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: bursts of arrivals at the L4S queue: how long the ones are that are tolerated.
 */
#ifndef _NET_DUALPI2_BURST_H
#define _NET_DUALPI2_BURST_H

#include <net/dualpi2_link.h>

/* Greatest length of a burst, and of all that are summed up for one update. */
#define DUALPI2_BURST_BYTES_MAX		(1U << 26)
#define DUALPI2_BURSTS_BYTES_MAX	(1ULL << 32)

/* Shorter ones are not tolerated, see dualpi2_tolerate(). */
#define DUALPI2_BURST_LEAST_NS		(1 * DUALPI2_NS_PER_MS)

/* The first packet of a burst waits for none of the others.  Two packets in a row
 * come about where two flows meet, and are no burst.
 */
#define DUALPI2_BURST_MTU_BYTES		1514U

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

#endif /* _NET_DUALPI2_BURST_H */
