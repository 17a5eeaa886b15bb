/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: overload (RFC 9332 4.2): when it begins and ends, how long it lasted, and the
 * reports of it (2.5.2.3).
 */
#ifndef _NET_DUALPI2_OVERLOAD_H
#define _NET_DUALPI2_OVERLOAD_H

#include <net/dualpi2_state.h>

/* Overload begins only with a queueing delay of at least 128 T.  Marks cannot make
 * a TCP flow keep fewer than two packets in flight, and a flow starts with ten
 * (RFC 6928).  Ten flows alone do not cause so much delay, so that their queue is
 * not taken for overload.  From 104 Mbit/s up 128 T are less than the target.  On
 * slow links these flows also send each packet again after a second (RFC 6298),
 * when the first ones are still in the queue.
 */
#define DUALPI2_OVERLOAD_PKTS		128U
#define DUALPI2_OVERLOAD_SLOW_PKTS	256U

/* Overload that recurs within this time begins at any delay: the senders have
 * shown that they do not respond to marks.
 */
#define DUALPI2_OVERLOAD_RECENT_NS	(10ULL * DUALPI2_NS_PER_SEC)

/* An overload is over when it has not come back for this many updates.  At the
 * edge of it p' goes up and down: what makes it fall, drops in both queues, is
 * there only above the edge.
 */
#define DUALPI2_OVERLOAD_HOLD		8U

/* Kinds of reports. */
enum dualpi2_report {
	DUALPI2_REPORT_NONE,
	DUALPI2_REPORT_BEGIN,
	DUALPI2_REPORT_END,
};

/**
 * struct dualpi2_overload_report - a report
 * @since_ns: when the first of the overloads that it tells of began
 * @duration_ns: time spent in them
 * @count: how many they are
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

/* An end cannot lie before its begin. */
static inline void dualpi2_overload_end(struct dualpi2_vars *v, u64 now_ns)
{
	v->overload = false;
	v->overload_below_ns = 0;
	v->overload_last_ns = now_ns > v->overload_since_ns ?
			      now_ns - v->overload_since_ns : 0;
	v->overload_total_ns += v->overload_last_ns;
}

/* Is it overload, at this update?  If not, it has not been since below_ns. */
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
 * dualpi2_report_next() - is there something to report of overload?
 * @p: parameters
 * @v: state; what is returned counts as reported
 * @now_ns: time
 * @report: filled unless DUALPI2_REPORT_NONE is returned
 *
 * RFC 9332 2.5.2.3.  A report is followed by a time without any; what happens in
 * it is added up and reported when it is over: an overload that goes on by its
 * begin, one or more that ended by the first moment out of overload.
 */
static inline enum dualpi2_report
dualpi2_report_next(const struct dualpi2_params *p, struct dualpi2_vars *v,
		    u64 now_ns, struct dualpi2_overload_report *report)
{
	struct dualpi2_reported *r = &v->report;

	if (p->report_ns && now_ns < r->silent_until_ns)
		return DUALPI2_REPORT_NONE;
	if (v->overload ? r->begun : v->overload_count == r->count)
		return DUALPI2_REPORT_NONE;

	*report = (struct dualpi2_overload_report) {
		.since_ns = r->since_ns,
		.duration_ns = dualpi2_overload_ns(v, now_ns) - r->total_ns,
		.count = v->overload_count - r->count,
	};
	r->silent_until_ns = now_ns + p->report_ns;
	r->begun = v->overload && p->report_ns;
	if (v->overload)
		return p->report_ns ? DUALPI2_REPORT_BEGIN :
				      DUALPI2_REPORT_NONE;
	r->count = v->overload_count;
	r->total_ns = v->overload_total_ns;
	return p->report_ns ? DUALPI2_REPORT_END : DUALPI2_REPORT_NONE;
}

/**
 * dualpi2_report_change() - another time between reports
 * @from: parameters that were
 * @to: parameters that come
 * @v: state, up to date
 * @now_ns: time
 *
 * A time without reports that is under way does not outlast the new one, and
 * what ended while there were to be none is not reported later.
 */
static inline void dualpi2_report_change(const struct dualpi2_params *from,
					 const struct dualpi2_params *to,
					 struct dualpi2_vars *v, u64 now_ns)
{
	struct dualpi2_overload_report report;

	if (!from->report_ns)
		dualpi2_report_next(from, v, now_ns, &report);
	v->report.silent_until_ns = min_t(u64, v->report.silent_until_ns,
					  now_ns + to->report_ns);
}

/**
 * dualpi2_report_wait_ns() - when to ask dualpi2_report_next() again
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * Return: nanoseconds; 0: when overload begins.
 */
static inline u64 dualpi2_report_wait_ns(const struct dualpi2_params *p,
					 const struct dualpi2_vars *v,
					 u64 now_ns)
{
	u64 silent_until_ns = v->report.silent_until_ns;

	if (!p->report_ns ||
	    (!v->overload && v->overload_count == v->report.count))
		return 0;
	if (now_ns < silent_until_ns)
		return silent_until_ns - now_ns;
	/* A queue that has become empty triggers nothing, so check again. */
	return min_t(u64, p->report_ns, DUALPI2_NS_PER_SEC);
}

/* May overload begin or go on at this delay?  See DUALPI2_OVERLOAD_PKTS and
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
