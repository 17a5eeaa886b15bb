/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packet values: throughput-value functions, the rate of a flow on a short
 * timescale, the table of flows.  What queues make of values is in csaqm.h.
 *
 * Integers in, a value out.  Nothing here knows packets, a clock or a source of
 * random numbers; it compiles in user space, where selftests/unit tests it.
 *
 * Source: "Virtual Dual Queue Core Stateless AQM", the paper, section 2 and figure
 * 1.  Values are coded in 16 bits as its section 3 says:
 *	coded = floor(log(value) / log(maximum value) * 65535)
 *
 * Rates are in bytes per second; _q16 is a logarithm to base 2 times 2^16.
 */
#ifndef _NET_PACKET_VALUE_H
#define _NET_PACKET_VALUE_H

#include <net/dualpi2_link.h>
#include <net/dualpi2_options.h>
#include <net/dualpi2_seam.h>

/* The coded value; 0 is a packet that has none. */
#define PPV_CODED_MAX		65535U

/* log10 of the maximum value, at which figure 1 of the paper ends. */
#define PPV_DECADES		10U

#define PPV_TVFS		16U	/* numbered from 1 on */
#define PPV_POINTS_MAX		32U

#define PPV_WINDOW_US_DEF	100000U
#define PPV_WINDOW_US_MIN	1000U
#define PPV_WINDOW_US_MAX	1000000U
#define PPV_DEFAULT_DEF		1U

/* A rate is below 2^37 bytes per second, as that of any link here. */
#define PPV_RATE_MAX		((u64)DUALPI2_BANDWIDTH_MAX)

/* Flows whose rate is known; of one set, those with the same low bits of the hash,
 * the one that was seen longest ago makes room.
 */
#define PPV_FLOW_SETS		1024U
#define PPV_FLOW_WAYS		4U

/* What is wrong with a function. */
enum ppv_fault {
	PPV_FAULT_NONE,
	PPV_FAULT_EMPTY,	/* no point */
	PPV_FAULT_MANY,		/* more than PPV_POINTS_MAX */
	PPV_FAULT_RATE,		/* 0 or beyond PPV_RATE_MAX */
	PPV_FAULT_VALUE,	/* 0 or beyond PPV_CODED_MAX */
	PPV_FAULT_NOT_RISING,	/* a rate not beyond the one before, by 1/50000 of it */
	PPV_FAULT_NOT_FALLING,	/* a value not below the one before */
};

/**
 * struct ppv_point - a point as the user gave it
 * @rate: bytes per second
 * @coded: value, coded
 */
struct ppv_point {
	u64 rate;
	u32 coded;
};

/**
 * struct ppv_knot - a point as evaluation wants it
 * @log_q16: of the rate
 * @coded: value, coded
 * @slope: by how much the coded value falls from here on, per unit of the
 *	logarithm, times 2^32
 */
struct ppv_knot {
	u32 log_q16;
	u32 coded;
	u64 slope;
};

/**
 * struct ppv_tvf - a throughput-value function
 * @count: of its points; 0: there is no function
 * @points: as given, for reports
 * @knots: the same
 */
struct ppv_tvf {
	u32 count;
	struct ppv_point points[PPV_POINTS_MAX];
	struct ppv_knot knots[PPV_POINTS_MAX];
};

/**
 * struct ppv_window - the time over which rates are measured
 * @ns: its length
 * @per_s_q16: how many of them are in a second, times 2^16
 */
struct ppv_window {
	u32 ns;
	u32 per_s_q16;
};

/**
 * struct ppv_flow - a flow
 * @tag: its hash
 * @last_ns: when its last packet came
 * @level_q8: bytes of the last window, times 2^8, as a bucket that leaks a
 *	window's part of itself in that part of a window
 */
struct ppv_flow {
	u64 last_ns;
	u64 level_q8;
	u32 tag;
};

/* Whether a flow was known. */
enum ppv_found {
	PPV_FLOW_KNOWN,
	PPV_FLOW_NEW,		/* in the place of none, or of one long gone */
	PPV_FLOW_EVICTED,	/* in the place of one that is active */
};

/**
 * ppv_log2_q16() - logarithm
 * @number: at least 1
 *
 * Bit by bit: squaring doubles the logarithm.
 *
 * Return: log2(@number) * 2^16, at most 1 too small; below 2^22.
 */
static inline u32 ppv_log2_q16(u64 number)
{
	u32 high = number >> 32 ? 32 + __fls(number >> 32) : __fls(number);
	/* 1 is 2^31: the mantissa is below 2^32, its square below 2^64. */
	u64 mantissa = high > 31 ? number >> (high - 31) : number << (31 - high);
	u32 log = high, bit;

	for (bit = 0; bit < 16; bit++) {
		mantissa = (mantissa * mantissa) >> 31;
		log = log << 1 | (mantissa >> 32 & 1);
		mantissa >>= mantissa >> 32 & 1;
	}
	return log;
}

/**
 * ppv_tvf_check() - can this be a throughput-value function?
 * @points: the points
 * @count: of them
 *
 * It has to fall, or the flow that sends more would be worth more.
 */
static inline enum ppv_fault ppv_tvf_check(const struct ppv_point *points,
					   u32 count)
{
	u32 i;

	if (!count)
		return PPV_FAULT_EMPTY;
	if (count > PPV_POINTS_MAX)
		return PPV_FAULT_MANY;
	for (i = 0; i < count; i++) {
		const struct ppv_point *point = &points[i];

		if (!point->rate || point->rate > PPV_RATE_MAX)
			return PPV_FAULT_RATE;
		if (!point->coded || point->coded > PPV_CODED_MAX)
			return PPV_FAULT_VALUE;
		if (!i)
			continue;
		if (point->rate <= point[-1].rate ||
		    ppv_log2_q16(point->rate) <= ppv_log2_q16(point[-1].rate))
			return PPV_FAULT_NOT_RISING;
		if (point->coded >= point[-1].coded)
			return PPV_FAULT_NOT_FALLING;
	}
	return PPV_FAULT_NONE;
}

/**
 * ppv_tvf_set() - make a function of points
 * @tvf: to be filled
 * @points: that passed ppv_tvf_check()
 * @count: of them
 *
 * Divisions: by the distance of two logarithms, which the check saw to be there.
 */
static inline void ppv_tvf_set(struct ppv_tvf *tvf,
			       const struct ppv_point *points, u32 count)
{
	u32 i;

	*tvf = (struct ppv_tvf) { .count = count };
	for (i = 0; i < count; i++) {
		tvf->points[i] = points[i];
		tvf->knots[i].log_q16 = ppv_log2_q16(points[i].rate);
		tvf->knots[i].coded = points[i].coded;
	}
	for (i = 0; i + 1 < count; i++) {
		struct ppv_knot *knot = &tvf->knots[i];

		knot->slope = div_u64((u64)(knot->coded - knot[1].coded) << 32,
				      knot[1].log_q16 - knot->log_q16);
	}
}

/**
 * ppv_tvf_coded() - TVF(@rate)
 * @tvf: the function, with a point at least
 * @rate: bytes per second
 *
 * Straight in logarithms between two points, flat outside of them.
 *
 * Return: coded value, 1..PPV_CODED_MAX.
 */
static inline u32 ppv_tvf_coded(const struct ppv_tvf *tvf, u64 rate)
{
	u32 log_q16 = ppv_log2_q16(rate ? rate : 1), i;
	const struct ppv_knot *knot = tvf->knots;

	if (log_q16 <= knot->log_q16)
		return knot->coded;
	for (i = 1; i < tvf->count; i++, knot++) {
		/* The product is the fall from knot to knot at most. */
		if (log_q16 < knot[1].log_q16)
			return knot->coded -
			       (knot->slope * (log_q16 - knot->log_q16) >> 32);
	}
	return knot->coded;
}

/**
 * ppv_tvf_builtin() - a function of figure 1 of the paper
 * @tvf: to be filled; one that is not built in is left without a point
 * @number: 1 Gold, 2 Silver, 3 Background, 4 Voice
 *
 * The figure's axes and the ratios in the text give Gold = 10^8 / x for x Mbit/s,
 * and Silver half of its rate up to 10 Mbit/s, a quarter beyond.  Background gets a
 * hundredth of Gold's rate; Voice comes before all that is beyond 13 kbit/s, up to
 * 64 kbit/s: of these two the text says no more than the names.
 */
static inline void ppv_tvf_builtin(struct ppv_tvf *tvf, u32 number)
{
	static const struct ppv_point gold[] = {
		{ 1250, 65535 }, { 125000000000ULL, 13107 },
	};
	static const struct ppv_point silver[] = {
		{ 1250, 63562 }, { 1250000, 43901 }, { 1250125, 41928 },
		{ 125000000000ULL, 9161 },
	};
	static const struct ppv_point background[] = {
		{ 1250, 52428 }, { 12500000000ULL, 6553 },
	};
	static const struct ppv_point voice[] = {
		{ 1, 65535 }, { 8000, 65000 }, { 8008, 1 },
	};

	switch (number) {
	case 1:
		ppv_tvf_set(tvf, gold, 2);
		break;
	case 2:
		ppv_tvf_set(tvf, silver, 4);
		break;
	case 3:
		ppv_tvf_set(tvf, background, 2);
		break;
	case 4:
		ppv_tvf_set(tvf, voice, 3);
		break;
	default:
		*tvf = (struct ppv_tvf) {};
		break;
	}
}

/**
 * ppv_window_init() - a time to measure over
 * @w: to be filled
 * @us: PPV_WINDOW_US_MIN..PPV_WINDOW_US_MAX
 */
static inline void ppv_window_init(struct ppv_window *w, u32 us)
{
	w->ns = us * 1000;
	/* At most 1000 << 16. */
	w->per_s_q16 = div_u64(1000000ULL << 16, us);
}

/**
 * ppv_flow_add() - a packet of a flow comes
 * @flow: the flow
 * @w: time to measure over
 * @bytes: its length; beyond 2^24 it counts as this
 * @now_ns: time; one before the last packet's counts as that
 *
 * Packets at even distances below the window are measured exactly.  After a window
 * without one nothing is left: a flow's first packet counts for one a window.
 *
 * Return: the flow's rate, 0..PPV_RATE_MAX.
 */
static inline u64 ppv_flow_add(struct ppv_flow *flow, const struct ppv_window *w,
			       u32 bytes, u64 now_ns)
{
	u64 gap_ns = now_ns > flow->last_ns ? now_ns - flow->last_ns : 0;
	u64 rate;

	if (gap_ns >= w->ns)
		flow->level_q8 = 0;
	else
		flow->level_q8 -= mul_u64_u32_shr(flow->level_q8,
						  div_u64(gap_ns << 32, w->ns),
						  32);
	flow->level_q8 += (u64)min_t(u32, bytes, 1U << 24) << 8;
	/* What PPV_RATE_MAX comes to in a second, below 2^46. */
	flow->level_q8 = min_t(u64, flow->level_q8, PPV_RATE_MAX << 8);
	if (now_ns > flow->last_ns)
		flow->last_ns = now_ns;
	rate = mul_u64_u32_shr(flow->level_q8, w->per_s_q16, 16 + 8);
	return min_t(u64, rate, PPV_RATE_MAX);
}

/**
 * ppv_flow_find() - the place of a flow
 * @table: PPV_FLOW_SETS * PPV_FLOW_WAYS of them, zero at first
 * @hash: of the flow
 * @w: time to measure over
 * @now_ns: time
 * @found: whether it was known
 *
 * Two flows of one hash are one.
 *
 * Return: the flow, its level 0 if it was not known.
 */
static inline struct ppv_flow *ppv_flow_find(struct ppv_flow *table, u32 hash,
					     const struct ppv_window *w,
					     u64 now_ns, enum ppv_found *found)
{
	u32 way = (hash % PPV_FLOW_SETS) * PPV_FLOW_WAYS;
	struct ppv_flow *set = &table[way], *oldest = set;

	for (way = 0; way < PPV_FLOW_WAYS; way++) {
		if (set[way].tag == hash && set[way].last_ns) {
			*found = PPV_FLOW_KNOWN;
			return &set[way];
		}
		if (set[way].last_ns < oldest->last_ns)
			oldest = &set[way];
	}
	*found = oldest->last_ns && now_ns < oldest->last_ns + w->ns ?
		 PPV_FLOW_EVICTED : PPV_FLOW_NEW;
	*oldest = (struct ppv_flow) { .tag = hash };
	return oldest;
}

/**
 * ppv_pick() - the value of a packet
 * @tvf: function of its flow, with a point at least
 * @rate: of its flow
 * @rnd: 32 random bits
 *
 * TVF(x), x uniform in [0, @rate): of a flow's packets those with a value beyond V
 * come at the rate at which the function is V.
 *
 * Return: coded value, 1..PPV_CODED_MAX.
 */
static inline u32 ppv_pick(const struct ppv_tvf *tvf, u64 rate, u32 rnd)
{
	return ppv_tvf_coded(tvf, mul_u64_u32_shr(rate, rnd, 32));
}

#endif /* _NET_PACKET_VALUE_H */
