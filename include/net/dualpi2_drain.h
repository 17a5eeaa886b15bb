/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: the rate of a link that another qdisc or the device shapes, as it is observed.
 */
#ifndef _NET_DUALPI2_DRAIN_H
#define _NET_DUALPI2_DRAIN_H

#include <net/dualpi2_link.h>

/* Only a backlog that has lasted this long shows the rate of the link.  A shorter
 * one drains into the buffers of the device, at the speed of the processor.
 */
#define DUALPI2_DRAIN_AFTER_NS		(1U * DUALPI2_NS_PER_MS)

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
 * dualpi2_drain_update() - update the rate, at each PI update
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

#endif /* _NET_DUALPI2_DRAIN_H */
