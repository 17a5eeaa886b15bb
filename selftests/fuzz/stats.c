// SPDX-License-Identifier: GPL-2.0-only
/*
 * The statistics of a dualpi2: include/uapi/linux/dualpi2.h says what each counter means and how they fit together.
 * The same identities are in selftests/lib/identities.py. Here devices go down, too, which purges without a count of
 * the core's, and GSO packets may stay whole, which the core counts by their segments.
 */
#include "stats.h"
#include <math.h>

#define DROPPED(c, cause)	((c)->not_ect_dropped_##cause + (c)->ect_dropped_##cause)

static void check_counters(const struct tc_dualpi2_counters *c)
{
	uint64_t not_ect = c->not_ect_dropped_limit + c->not_ect_dropped_memory + c->not_ect_dropped_early +
			   c->not_ect_dropped_aqm + c->not_ect_dropped_overload + c->not_ect_dropped_purge;
	uint64_t early = DROPPED(c, early), before = DROPPED(c, limit) + DROPPED(c, memory);
	uint64_t aqm = DROPPED(c, aqm) + DROPPED(c, overload), purge = DROPPED(c, purge);
	uint64_t ect = early + before + aqm + purge - not_ect;

	SAME(c->arrived_not_ect + c->arrived_ect1 + c->arrived_ect0 + c->arrived_ce,
	     c->presented + before + purge + c->queued, "arrived, presented and dropped before");
	SAME(c->presented, c->forwarded + early + aqm, "presented, forwarded and dropped");
	SAME(c->arrived_bytes, c->forwarded_bytes + c->dropped_arrival_bytes + c->dropped_aqm_bytes +
	     c->dropped_purge_bytes + c->queued_bytes, "bytes arrived");
	AT_MOST(c->forwarded_bytes + c->dropped_aqm_bytes, c->presented_bytes, "bytes forwarded and dropped, presented");
	AT_MOST(c->presented_bytes, c->arrived_bytes, "bytes presented, arrived");
	AT_MOST(not_ect, c->arrived_not_ect, "Not-ECT dropped, arrived");
	AT_MOST(ect, c->arrived_ect1 + c->arrived_ect0 + c->arrived_ce, "ECT dropped, arrived");
	AT_MOST(c->marked_classic + c->marked_coupled + c->marked_native, c->arrived_ect1 + c->arrived_ect0,
		"marks, ECT arrived");
	SAME(!c->queued, !c->queued_bytes, "no packets, no bytes");
	if (!(before + early))
		SAME(c->dropped_arrival_bytes, 0, "bytes of no drops on arrival");
	if (!aqm)
		SAME(c->dropped_aqm_bytes, 0, "bytes of no drops by the AQM");
	if (!purge)
		SAME(c->dropped_purge_bytes, 0, "bytes of no purge");
}

static void check_delay(const struct tc_dualpi2_delay *d, const uint8_t *hist, int len, uint64_t forwarded)
{
	uint64_t total = d->beyond, low = d->beyond * 16384 * d->unit_ns, high = d->beyond * d->max_ns;
	uint32_t n, sent = len / 8;

	SAME(len % 8, 0, "histogram, a number of 64 bits");
	SAME(d->unit_ns & (d->unit_ns - 1), 0, "unit_ns, a power of two");
	AT_MOST(1024, d->unit_ns, "unit_ns, minimum");
	AT_MOST(d->unit_ns, 1 << 24, "unit_ns, maximum");
	AT_MOST(1, d->generation, "generation, minimum");
	SAME(d->pad, 0, "padding");
	SAME(d->buckets, 96, "buckets");
	AT_MOST(sent, d->buckets, "buckets sent");
	for (n = 0; n < sent; n++) {
		uint64_t packets = get64(hist + 8 * n);

		total += packets;
		low += packets * tc_dualpi2_bucket(n) * d->unit_ns;
		high += packets * (tc_dualpi2_bucket(n + 1) * d->unit_ns - 1);
	}
	if (sent)
		AT_MOST(1, get64(hist + 8 * (sent - 1)), "the last bucket that was sent");
	if (sent && !d->beyond) {
		AT_MOST(tc_dualpi2_bucket(sent - 1) * d->unit_ns, d->max_ns, "begin of the last bucket, max_ns");
		AT_MOST(d->max_ns, tc_dualpi2_bucket(sent) * d->unit_ns - 1, "max_ns, end of the last bucket");
	}
	if (d->generation == 1)
		SAME(total, forwarded, "packets in the histogram, forwarded");
	AT_MOST(total, forwarded, "packets in the histogram, forwarded ever");
	/* Virtual time may have gone for years. */
	if (d->max_ns < 1ULL << 40) {
		AT_MOST(low, d->sum_ns, "minimum of the sum, sum_ns");
		AT_MOST(d->sum_ns, high, "sum_ns, maximum of the sum");
	}
	if (!total)
		SAME(d->sum_ns | d->max_ns, 0, "sum and maximum of nothing");
}

/* An attribute that is a struct. */
static void take(const uint8_t *attrs, int len, int type, void *to, int size, const char *what)
{
	const uint8_t *found = find(attrs, len, type, &len);

	if (!found)
		fault("statistics without %s", what);
	SAME(len, size, what);
	memcpy(to, found, size);
}

/* TCA_DUALPI2_STATS_C or _L. */
static void take_queue(const uint8_t *attrs, int len, struct tc_dualpi2_counters *c)
{
	struct tc_dualpi2_delay d;
	const uint8_t *hist;
	int size;

	take(attrs, len, TCA_DUALPI2_QUEUE_COUNTERS, c, sizeof(*c), "counters of a queue");
	take(attrs, len, TCA_DUALPI2_QUEUE_DELAY, &d, sizeof(d), "delays of a queue");
	hist = find(attrs, len, TCA_DUALPI2_QUEUE_HIST, &size);
	if (!hist)
		fault("statistics without the histogram of a queue");
	check_counters(c);
	check_delay(&d, hist, size, c->forwarded);
}

static uint64_t dropped(const struct tc_dualpi2_counters *c)
{
	return DROPPED(c, limit) + DROPPED(c, memory) + DROPPED(c, early) + DROPPED(c, aqm) + DROPPED(c, overload);
}

/* Packets ever queued, in 32 bits. */
static uint32_t enqueued(const struct tc_dualpi2_counters *c)
{
	return c->forwarded + DROPPED(c, aqm) + DROPPED(c, overload) + DROPPED(c, purge) + c->queued;
}

static void check_overload(const struct tc_dualpi2_overload *o)
{
	SAME(o->pad, 0, "padding");
	AT_MOST(o->duration_ns, o->total_ns, "duration of one overload, of all");
	AT_MOST(o->reports, 2 * o->count, "reports, begins and ends");
	AT_MOST(o->now, o->count, "in overload, count of overloads");
	if (o->count)
		AT_MOST(1, o->start_ns, "start of an overload");
	else
		SAME(o->start_ns | o->total_ns | o->duration_ns, 0, "times without an overload");
}

/* What only a qdisc has. */
static void check_qdisc(const struct stats *st, const struct tc_dualpi2_overload *overload)
{
	double p = st->x.prob / 4294967296.0, p_c = st->e.prob_c / 4294967296.0;
	const struct tc_dualpi2_counters *c = &st->c[QUEUE_C], *l = &st->c[QUEUE_L];

	check_overload(overload);
	AT_MOST(st->link.nqb_dropped, st->link.nqb_arrived, "NQB dropped, arrived");
	AT_MOST(st->link.nqb_dropped, DROPPED(l, limit), "NQB dropped, dropped_limit of L");
	AT_MOST(st->link.ramp_min_ns, st->link.ramp_max_ns, "begin of the ramp, its end");
	if (st->link.drain_rate)
		AT_MOST(2 * 60, st->link.nqb_limit_bytes, "two packets, limit of NQB");
	else
		SAME(st->link.nqb_limit_bytes, 0, "limit of NQB at an unknown rate");
	AT_MOST(st->queued, st->x.maxq, "packets now, most ever");
	SAME(st->x.packets_in_c, enqueued(c), "packets_in_c");
	SAME(st->x.packets_in_l, enqueued(l), "packets_in_l");
	SAME(st->x.step_marks, (uint32_t)l->marked_native, "step_marks");
	SAME(DROPPED(l, early), 0, "early drops in the L4S queue");
	AT_MOST(st->x.memory_used, st->x.max_memory_used, "memory used, most ever");
	SAME(!st->x.memory_used, !st->queued, "no memory, no packets");
	if (!st->queued)
		SAME(st->x.delay_c | st->x.delay_l, 0, "delays of empty queues");
	if (fabs(p_c - p * p) > 4 / 4294967296.0)
		fault("prob_c %u is not the square of prob %u", st->e.prob_c, st->x.prob);
}

void stats_read(struct stats *st, const uint8_t *attrs, int len, int only_queue)
{
	static const int types[QUEUES] = { TCA_DUALPI2_STATS_C, TCA_DUALPI2_STATS_L };
	const int head = sizeof(st->x) + sizeof(st->gap) + sizeof(st->e);
	const uint8_t *stats = find(attrs, len, TCA_STATS2, &len), *basic, *queue, *app, *protection;
	struct tc_dualpi2_overload overload;
	int size, n;

	basic = find(stats, len, TCA_STATS_BASIC, &size);
	queue = find(stats, len, TCA_STATS_QUEUE, &size);
	app = find(stats, len, TCA_STATS_APP, &len);
	if (!basic || !queue || !app)
		fault("a dump without some of the statistics");
	st->bytes = get64(basic);
	st->packets = get32(basic + 8);
	memcpy(&st->q, queue, sizeof(st->q));
	AT_MOST(head, len, "minimum and true length of the statistics");
	memcpy(&st->x, app, head);
	SAME(st->e.magic, TC_DUALPI2_EXT_XSTATS_MAGIC, "magic number");
	SAME(st->e.size, sizeof(st->e), "size of the extension");
	for (n = 0; n < (int)sizeof(st->gap); n++)
		SAME(st->gap[n], 0, "the gap between the statistics");
	SAME(st->e.pad, 0, "padding");
	app += head;
	len -= head;
	for (n = 0; n < QUEUES; n++) {
		st->nest[n] = find(app, len, types[n], &st->nest_len[n]);
		SAME(!!st->nest[n], only_queue < 0 || only_queue == n, "a queue's statistics");
		if (st->nest[n])
			take_queue(st->nest[n], st->nest_len[n], &st->c[n]);
	}
	st->queued = only_queue < 0 ? st->c[QUEUE_C].queued + st->c[QUEUE_L].queued : st->c[only_queue].queued;
	if (only_queue < 0) {
		take(app, len, TCA_DUALPI2_STATS_OVERLOAD, &overload, sizeof(overload), "struct tc_dualpi2_overload");
		take(app, len, TCA_DUALPI2_STATS_LINK, &st->link, sizeof(st->link), "struct tc_dualpi2_link");
		check_qdisc(st, &overload);
		protection = find(app, len, TCA_DUALPI2_STATS_QPROTECT, &size);
		if (protection)
			AT_MOST(st->c[QUEUE_C].marked_native, get64(protection), "native marks in C, redirected packets");
	} else if (find(app, len, TCA_DUALPI2_STATS_OVERLOAD, &size) || find(app, len, TCA_DUALPI2_STATS_LINK, &size)) {
		fault("a class with more than its queue");
	}
}

void stats_check_unprotected(const struct stats *st)
{
	SAME(st->c[QUEUE_C].marked_native, 0, "native marks in the Classic queue");
}

void stats_check_core(const struct stats *st, bool may_bypass)
{
	const struct tc_dualpi2_counters *c = &st->c[QUEUE_C], *l = &st->c[QUEUE_L];
	uint64_t drops = dropped(c) + dropped(l) + st->e.gso_failed;
	uint32_t peeked = st->q.qlen - st->queued;

	AT_MOST(c->forwarded_bytes + l->forwarded_bytes, st->bytes, "bytes of both queues, of the qdisc");
	if (!may_bypass)
		SAME(st->bytes, c->forwarded_bytes + l->forwarded_bytes, "bytes of the qdisc, of both queues");
	AT_MOST((uint32_t)drops, st->q.drops, "dropped by both queues, drops of the qdisc");
	AT_MOST(st->q.drops, drops + DROPPED(c, purge) + DROPPED(l, purge) + st->e.filter_dropped,
		"drops of the qdisc, by cause");
	AT_MOST(peeked, 1, "packets that are in no queue");
	if (!peeked)
		SAME(st->q.backlog, c->queued_bytes + l->queued_bytes, "backlog, bytes of both queues");
	if (!st->q.qlen)
		SAME(st->q.backlog, 0, "backlog of an empty qdisc");
}
