/* SPDX-License-Identifier: GPL-2.0-only */
/* The statistics of a dualpi2, and whether they agree with each other. */
#ifndef FUZZ_STATS_H
#define FUZZ_STATS_H

#include "nl.h"
#include <linux/dualpi2.h>
#include <linux/gen_stats.h>

#define SAME(left, right, what)								\
	do {										\
		uint64_t l_ = (left), r_ = (right);					\
											\
		if (l_ != r_)								\
			fault("%s: %llu and %llu", what, (ull)l_, (ull)r_);		\
	} while (0)

#define AT_MOST(left, right, what)							\
	do {										\
		uint64_t l_ = (left), r_ = (right);					\
											\
		if (l_ > r_)								\
			fault("%s: %llu > %llu", what, (ull)l_, (ull)r_);		\
	} while (0)

enum { QUEUE_C, QUEUE_L, QUEUES };

struct stats {
	/* The core's */
	uint64_t bytes;
	uint32_t packets;
	struct gnet_stats_queue q;
	/* TCA_STATS_APP: two structs with a gap between them, then attributes */
	struct {
		struct tc_dualpi2_xstats x;
		uint8_t gap[TC_DUALPI2_EXT_XSTATS_OFFSET - sizeof(struct tc_dualpi2_xstats)];
		struct tc_dualpi2_ext_xstats e;
	};
	const uint8_t *nest[QUEUES];
	int nest_len[QUEUES];
	struct tc_dualpi2_counters c[QUEUES];
	struct tc_dualpi2_link link;
	uint64_t queued;	/* packets in both queues */
};

/*
 * Takes statistics apart, from the attributes of a dump: of a qdisc, or of its class that is one queue (only_queue 0
 * or 1, else -1). Faults if what is read under one lock does not agree with itself.
 */
void stats_read(struct stats *st, const uint8_t *attrs, int len, int only_queue);

/* Of a qdisc that never had queue protection, which redirects packets and marks them there. */
void stats_check_unprotected(const struct stats *st);

/*
 * And with what the core counts, if nothing happened in between. may_bypass: packets may have gone past the qdisc,
 * which are in the core's counters alone.
 */
void stats_check_core(const struct stats *st, bool may_bypass);

#endif
