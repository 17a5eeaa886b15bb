/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: overload (RFC 9332 4.2): begin, end, length and reports (2.5.2.3).
 */
#ifndef _NET_DUALPI2_OVERLOAD_H
#define _NET_DUALPI2_OVERLOAD_H

#include <net/dualpi2_state.h>

/* Overload begins only with a queueing delay of at least 128 T.  Marks cannot make
 * a TCP flow keep fewer than two packets in flight, and a flow starts with ten
 * (RFC 6928).  Ten flows alone cause less delay than that, so their queue does not count
 * as overload.  From 104 Mbit/s on, 128 T is below the target.  On slow links these
 * flows also retransmit each packet after a second (RFC 6298), while the first copy is
 * still in the queue.
 */
#define DUALPI2_OVERLOAD_PKTS		128U
#define DUALPI2_OVERLOAD_SLOW_PKTS	256U

/* Overload that recurs within this time begins at any delay: the senders have
 * proved unresponsive.
 */
#define DUALPI2_OVERLOAD_RECENT_NS	(10ULL * DUALPI2_NS_PER_SEC)

/* An overload ends when p' has been below the threshold for this many updates.  Near the
 * threshold p' oscillates: drops in both queues make it fall, and stop below.
 */
#define DUALPI2_OVERLOAD_HOLD		8U

/* Kinds of reports. */
enum dualpi2_report {
	DUALPI2_REPORT_NONE,
	DUALPI2_REPORT_BEGIN,
	DUALPI2_REPORT_END,
};

/**
 * struct dualpi2_overload_report - a report about one or more overloads
 * @since_ns: begin of the first one
 * @duration_ns: time in overload, sum
 * @count: number of overloads
 */
struct dualpi2_overload_report {
	u64 since_ns;
	u64 duration_ns;
	u64 count;
};

static inline void dualpi2_overload_begin(struct dualpi2_vars *v, u64 now_ns)
{
	if (v->overload_count == v->report.count)
		v->report.since_ns = now_ns;
	v->overload = true;
	v->overload_count++;
	v->overload_since_ns = now_ns;
}

/* @now_ns can be before the begin, if p' fell below the threshold in the past. */
static inline void dualpi2_overload_end(struct dualpi2_vars *v, u64 now_ns)
{
	v->overload = false;
	v->overload_below_ns = 0;
	v->overload_last_ns = now_ns > v->overload_since_ns ?
			      now_ns - v->overload_since_ns : 0;
	v->overload_total_ns += v->overload_last_ns;
}

/* Update the state of overload.  @over: p' is at the threshold or above; if not, it has
 * been below since @below_ns.
 */
static inline void dualpi2_overload_update(const struct dualpi2_params *p,
					   struct dualpi2_vars *v, bool over,
					   u64 below_ns, u64 now_ns)
{
	if (over) {
		if (!v->overload)
			dualpi2_overload_begin(v, now_ns);
		v->overload_below_ns = 0;
	} else if (v->overload) {
		if (!v->overload_below_ns)
			v->overload_below_ns = below_ns;
		if (now_ns - v->overload_below_ns >=
		    (u64)p->tupdate_ns * DUALPI2_OVERLOAD_HOLD)
			dualpi2_overload_end(v, v->overload_below_ns);
	}
}

/* In overload, does the AQM drop packets of all codepoints?  That depends on p'
 * alone: &dualpi2_vars.overload lasts longer, for reports.
 */
static inline bool dualpi2_sheds(const struct dualpi2_params *p,
				 const struct dualpi2_vars *v)
{
	return v->base_q32 >= p->enter_q32 && p->drop_overload;
}

/**
 * dualpi2_overload_present_ns() - length of the present overload so far
 * @v: state
 * @now_ns: time
 *
 * Return: nanoseconds, 0 out of overload.
 */
static inline u64 dualpi2_overload_present_ns(const struct dualpi2_vars *v,
					      u64 now_ns)
{
	u64 end_ns = v->overload_below_ns ?: now_ns;

	return v->overload && end_ns > v->overload_since_ns ?
	       end_ns - v->overload_since_ns : 0;
}

/**
 * dualpi2_overload_ns() - time spent in overload so far
 * @v: state
 * @now_ns: time
 */
static inline u64 dualpi2_overload_ns(const struct dualpi2_vars *v, u64 now_ns)
{
	return v->overload_total_ns + dualpi2_overload_present_ns(v, now_ns);
}

/**
 * dualpi2_report_next() - get the next report of overload, if one is due
 * @p: parameters
 * @v: state; the returned report counts as sent
 * @now_ns: time
 * @report: filled unless DUALPI2_REPORT_NONE is returned
 *
 * RFC 9332 2.5.2.3.  After a report, there is none for &dualpi2_params.report_ns.  The
 * next report then covers this time: the begin of an overload that lasts, or the end of
 * one or more overloads.
 */
static inline enum dualpi2_report
dualpi2_report_next(const struct dualpi2_params *p, struct dualpi2_vars *v,
		    u64 now_ns, struct dualpi2_overload_report *report)
{
	struct dualpi2_reported *r = &v->report;

	if (p->report_ns && now_ns < r->next_ns)
		return DUALPI2_REPORT_NONE;
	if (v->overload ? r->begun : v->overload_count == r->count)
		return DUALPI2_REPORT_NONE;

	*report = (struct dualpi2_overload_report) {
		.since_ns = r->since_ns,
		.duration_ns = dualpi2_overload_ns(v, now_ns) - r->total_ns,
		.count = v->overload_count - r->count,
	};
	r->next_ns = now_ns + p->report_ns;
	r->begun = v->overload && p->report_ns;
	if (v->overload)
		return p->report_ns ? DUALPI2_REPORT_BEGIN :
				      DUALPI2_REPORT_NONE;
	r->count = v->overload_count;
	r->total_ns = v->overload_total_ns;
	return p->report_ns ? DUALPI2_REPORT_END : DUALPI2_REPORT_NONE;
}

/**
 * dualpi2_report_change() - apply a new minimum time between reports
 * @from: parameters before the change
 * @to: parameters after it
 * @v: state, up to date
 * @now_ns: time
 *
 * The next report comes after the new time at the latest.  Overloads that ended while
 * reports were off are not reported later.
 */
static inline void dualpi2_report_change(const struct dualpi2_params *from,
					 const struct dualpi2_params *to,
					 struct dualpi2_vars *v, u64 now_ns)
{
	struct dualpi2_overload_report report;

	if (!from->report_ns)
		dualpi2_report_next(from, v, now_ns, &report);
	v->report.next_ns = min_t(u64, v->report.next_ns,
				  now_ns + to->report_ns);
}

/**
 * dualpi2_report_wait_ns() - time until dualpi2_report_next() must be called again
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * Return: nanoseconds; 0: not before the next overload.
 */
static inline u64 dualpi2_report_wait_ns(const struct dualpi2_params *p,
					 const struct dualpi2_vars *v,
					 u64 now_ns)
{
	u64 next_ns = v->report.next_ns;

	if (!p->report_ns ||
	    (!v->overload && v->overload_count == v->report.count))
		return 0;
	if (now_ns < next_ns)
		return next_ns - now_ns;
	/* A queue that has become empty triggers nothing, so check again. */
	return min_t(u64, p->report_ns, DUALPI2_NS_PER_SEC);
}

/* May overload begin or continue at this delay?  See DUALPI2_OVERLOAD_PKTS and
 * DUALPI2_OVERLOAD_RECENT_NS.
 */
static inline bool dualpi2_overload_may_begin(const struct dualpi2_vars *v,
					      u64 delay_ns, u64 now_ns)
{
	u32 pkts = v->delay_scale_q32 ? DUALPI2_OVERLOAD_SLOW_PKTS :
					DUALPI2_OVERLOAD_PKTS;

	return !v->packet_ns || v->overload ||
	       (v->packet_ns != U32_MAX &&
		delay_ns >= (u64)v->packet_ns * pkts) ||
	       (v->overload_count &&
		now_ns - v->overload_since_ns <
		v->overload_last_ns + DUALPI2_OVERLOAD_RECENT_NS);
}

#endif /* _NET_DUALPI2_OVERLOAD_H */
