/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: rate estimate of a link that another qdisc or the device shapes.
 */
#ifndef _NET_DUALPI2_DRAIN_H
#define _NET_DUALPI2_DRAIN_H

#include <net/dualpi2_link.h>

/* Minimum duration of a backlog that shows the rate of the link.  A shorter one drains
 * into the buffers of the device, at the speed of the processor.
 */
#define DUALPI2_DRAIN_AFTER_NS		(1U * DUALPI2_NS_PER_MS)

/**
 * struct dualpi2_drain - rate estimate
 * @begin_ns: begin of the present backlog, lower 32 bits, odd; 0: no backlog
 * @known_bytes: @busy_bytes at the last update, lower 32 bits
 * @since_ns: time up to which @busy_ns counts; 0: the backlog is shorter than
 *	DUALPI2_DRAIN_AFTER_NS
 * @busy_bytes: length of the packets that were sent with a backlog
 * @busy_ns: time that the link took for them
 * @ns_per_byte_q20: @busy_ns / @busy_bytes, 0: not measured yet
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
 * dualpi2_drain_pause() - end the present backlog, or a time without observation
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
 * dualpi2_drain_sent() - count a packet that leaves
 * @d: state
 * @bytes: its length
 * @left: there is still a backlog
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
 * @now_ns: time; during a backlog, the time when a packet leaves
 *
 * If packets were sent since the last update, the sums decay by a quarter.
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
	/* At most 2^42 ns, 73 minutes, for a link that was blocked. */
	time_q20 = min_t(u64, d->busy_ns, 1ULL << 42) << 20;
	d->ns_per_byte_q20 = min_t(u64, div64_u64(time_q20, d->busy_bytes) ?: 1,
				   (1ULL << 20) * 1000000);
	d->busy_bytes -= d->busy_bytes / 4;
	d->busy_ns -= d->busy_ns / 4;
	d->known_bytes = (u32)d->busy_bytes;
}

#endif /* _NET_DUALPI2_DRAIN_H */
