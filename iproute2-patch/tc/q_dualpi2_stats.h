/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Statistics of the dualpi2 qdisc, from netlink to text and JSON; a part of
 * q_dualpi2.c.
 *
 * "tc -s" prints a short text: counters that Linux 6.17 and later has, too, two
 * lines for each queue, and overload.  "tc -s -d" and JSON have everything.
 */
#ifndef Q_DUALPI2_STATS_H
#define Q_DUALPI2_STATS_H

#define DUALPI2_NS_PER_MS	1000000
#define DUALPI2_NS_PER_SEC	1000000000
#define DUALPI2_SEC_PER_DAY	86400

/* Otherwise the text is short. */
static bool dualpi2_print_all(void)
{
	return show_details || is_json_context();
}

static double dualpi2_probability(__u32 prob)
{
	return (double)prob / UINT32_MAX;
}

/* Sojourn times of one queue. */
struct dualpi2_hist {
	struct tc_dualpi2_delay delay;
	const char *counts;	/* packets per bucket; u64, not aligned */
	unsigned int len;	/* buckets in counts; further ones are empty */
	__u64 count;		/* all packets, including delay.beyond */
};

static __u64 dualpi2_hist_packets(const struct dualpi2_hist *h, unsigned int i)
{
	__u64 packets;

	memcpy(&packets, h->counts + i * sizeof(packets), sizeof(packets));
	return packets;
}

/* Lower boundary of bucket i, ns. */
static __u64 dualpi2_hist_boundary(const struct dualpi2_hist *h, unsigned int i)
{
	__u64 units = i < TC_DUALPI2_BUCKETS_MAX ? tc_dualpi2_bucket(i) :
						   UINT64_MAX;

	return units > UINT64_MAX / h->delay.unit_ns ? UINT64_MAX :
	       units * h->delay.unit_ns;
}

/* Returns false without a histogram, as in the message of a deletion. */
static bool dualpi2_hist_read(struct dualpi2_hist *h,
			      const struct rtattr *delay,
			      const struct rtattr *hist)
{
	unsigned int i;

	if (!delay || !hist)
		return false;
	*h = (struct dualpi2_hist) {};
	option_copy_attr(&h->delay, sizeof(h->delay), delay);
	if (!h->delay.unit_ns)
		return false;

	h->counts = RTA_DATA(hist);
	h->len = RTA_PAYLOAD(hist) / sizeof(__u64);
	if (h->len > h->delay.buckets)
		h->len = h->delay.buckets;
	h->count = h->delay.beyond;
	for (i = 0; i < h->len; i++)
		h->count += dualpi2_hist_packets(h, i);
	return true;
}

/* sum / count, although the sum wraps around at 2^64 (after 14 days at
 * 12 Gbit/s and 15 ms).  The middles of the buckets give an estimate of the sum.
 * Of all numbers that equal sum_ns modulo 2^64, the sum is the one nearest to the
 * estimate.  This is exact until the error of the estimate exceeds 2^63; after
 * that the mean is off by at most half a bucket.
 */
static __u64 dualpi2_hist_mean(const struct dualpi2_hist *h)
{
	const double wrap = 4294967296.0 * 4294967296.0;
	__u64 end = dualpi2_hist_boundary(h, h->delay.buckets);
	double middle, wraps, mean;
	unsigned int i;

	if (h->delay.max_ns > end)
		middle = ((double)end + h->delay.max_ns) / 2;
	else
		middle = end;
	middle *= h->delay.beyond;
	for (i = 0, end = 0; i < h->len; i++) {
		double from = end;

		end = dualpi2_hist_boundary(h, i + 1);
		middle += (from + end) / 2 * dualpi2_hist_packets(h, i);
	}

	wraps = (middle - h->delay.sum_ns) / wrap + 0.5;
	if (wraps < 0)
		wraps = 0;
	else if (wraps < wrap)
		wraps = (__u64)wraps;
	mean = (h->delay.sum_ns + wraps * wrap) / h->count + 0.5;
	return mean < wrap ? (__u64)mean : UINT64_MAX;
}

/* The delay of the packet of that rank, as if the packets of a bucket were spread
 * evenly over it.  Beyond the last bucket: the maximum.
 */
static __u64 dualpi2_hist_percentile(const struct dualpi2_hist *h,
				     unsigned int permille, bool *beyond)
{
	unsigned int rest = 1000 - permille, i;
	__u64 from, width, packets, ns;
	double off;

	/* count * permille / 1000, rounded up, without an overflow */
	__u64 rank = h->count - h->count / 1000 * rest -
		     h->count % 1000 * rest / 1000;

	*beyond = false;
	if (rank == h->count)
		return h->delay.max_ns;
	for (i = 0; i < h->len; i++) {
		packets = dualpi2_hist_packets(h, i);
		if (rank > packets) {
			rank -= packets;
			continue;
		}
		from = dualpi2_hist_boundary(h, i);
		width = dualpi2_hist_boundary(h, i + 1) - from;
		off = width * ((rank - 0.5) / packets);
		ns = from + (off < width ? (__u64)off : width);
		return ns < h->delay.max_ns ? ns : h->delay.max_ns;
	}
	*beyond = true;
	return h->delay.max_ns;
}

static void dualpi2_print_buckets(const struct dualpi2_hist *h)
{
	unsigned int i;

	open_json_array(PRINT_JSON, "buckets");
	for (i = 0; i < h->len; i++) {
		__u64 packets = dualpi2_hist_packets(h, i);

		if (!packets)
			continue;
		open_json_object(NULL);
		print_lluint(PRINT_JSON, "from-ns", NULL,
			     dualpi2_hist_boundary(h, i));
		print_lluint(PRINT_JSON, "to-ns", NULL,
			     dualpi2_hist_boundary(h, i + 1));
		print_lluint(PRINT_JSON, "packets", NULL, packets);
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
}

/* Returns the percentile in ns. */
static __u64 dualpi2_format_percentile(char *buf, const struct dualpi2_hist *h,
				       unsigned int permille)
{
	bool beyond;
	__u64 ns = dualpi2_hist_percentile(h, permille, &beyond);

	*buf = '>';
	option_format_ns(buf + beyond, !beyond ? ns :
			 dualpi2_hist_boundary(h, h->delay.buckets));
	return ns;
}

static void dualpi2_print_delay(const struct dualpi2_hist *h)
{
	static const struct {
		unsigned int permille;
		const char *json_key;
		const char *text;
	} percentiles[] = {
		{ 500, "p50-ns", " p50 %s" },
		{ 900, "p90-ns", " p90 %s" },
		{ 990, "p99-ns", " p99 %s" },
		{ 999, "p999-ns", " p99.9 %s" },
	};
	__u64 end = dualpi2_hist_boundary(h, h->delay.buckets), ns;
	char buf[OPTION_BUF_SIZE];
	unsigned int i;

	open_json_object("delay");
	if (h->count) {
		ns = dualpi2_hist_mean(h);
		print_lluint(PRINT_JSON, "mean-ns", NULL, ns);
		print_string(PRINT_FP, NULL, " delay mean %s",
			     option_format_ns(buf, ns));
	} else {
		print_null(PRINT_JSON, "mean-ns", NULL, NULL);
		print_string(PRINT_FP, NULL, "%s", " delay of no packet yet");
	}

	for (i = 0; i < ARRAY_SIZE(percentiles); i++) {
		if (!h->count) {
			print_null(PRINT_JSON, percentiles[i].json_key, NULL,
				   NULL);
			continue;
		}
		ns = dualpi2_format_percentile(buf, h, percentiles[i].permille);
		print_lluint(PRINT_JSON, percentiles[i].json_key, NULL, ns);
		print_string(PRINT_FP, NULL, percentiles[i].text, buf);
	}

	print_lluint(PRINT_JSON, "max-ns", NULL, h->delay.max_ns);
	if (h->count)
		print_string(PRINT_FP, NULL, " max %s",
			     option_format_ns(buf, h->delay.max_ns));
	print_lluint(PRINT_JSON, "count", NULL, h->count);
	print_lluint(PRINT_JSON, "sum-ns", NULL, h->delay.sum_ns);
	print_lluint(PRINT_JSON, "beyond", NULL, h->delay.beyond);
	print_lluint(PRINT_JSON, "beyond-ns", NULL, end);
	print_uint(PRINT_JSON, "generation", NULL, h->delay.generation);
	print_uint(PRINT_JSON, "unit-ns", NULL, h->delay.unit_ns);
	dualpi2_print_buckets(h);
	print_nl();
	close_json_object();
}

struct dualpi2_part {
	const char *json_key;
	const char *text;
	__u64 count;
};

/* The sum, and the parts that are not 0. */
static void dualpi2_print_sum(const char *text,
			      const struct dualpi2_part *parts,
			      unsigned int len)
{
	const char *before = " (";
	__u64 sum = 0;
	unsigned int i;

	for (i = 0; i < len; i++)
		sum += parts[i].count;
	print_string(PRINT_FP, NULL, " %s", text);
	print_lluint(PRINT_FP, NULL, " %llu", sum);
	for (i = 0; i < len; i++) {
		if (!parts[i].count)
			continue;
		print_string(PRINT_FP, NULL, "%s", before);
		print_string(PRINT_FP, NULL, "%s", parts[i].text);
		print_lluint(PRINT_FP, NULL, " %llu", parts[i].count);
		before = ", ";
	}
	if (*before == ',')
		print_string(PRINT_FP, NULL, "%s", ")");
}

/* JSON has every part.  Text has a line with the sum, if any part is not 0. */
static void dualpi2_print_parts(const char *text,
				const struct dualpi2_part *parts,
				unsigned int len)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < len; i++) {
		print_lluint(PRINT_JSON, parts[i].json_key, NULL,
			     parts[i].count);
		any |= parts[i].count;
	}
	if (!any)
		return;
	dualpi2_print_sum(text, parts, len);
	print_nl();
}

#define DUALPI2_DROPPED(n, cause) \
	((n)->not_ect_dropped_##cause + (n)->ect_dropped_##cause)

static void dualpi2_print_totals(const struct tc_dualpi2_counters *n)
{
	__u64 limit = DUALPI2_DROPPED(n, limit);
	__u64 memory = DUALPI2_DROPPED(n, memory);
	__u64 early = DUALPI2_DROPPED(n, early);
	__u64 aqm = DUALPI2_DROPPED(n, aqm);
	__u64 overload = DUALPI2_DROPPED(n, overload);
	__u64 purge = DUALPI2_DROPPED(n, purge);

	option_print_count("enqueued", " enqueued %llu",
			   n->forwarded + aqm + overload + purge + n->queued);
	option_print_count("enqueued-bytes", " (%llu bytes)",
			   n->arrived_bytes - n->dropped_arrival_bytes);
	option_print_count("sent", " sent %llu", n->forwarded);
	option_print_count("sent-bytes", " (%llu bytes)", n->forwarded_bytes);
	option_print_count("packets", " queued %llu", n->queued);
	option_print_count("bytes", " (%llu bytes)", n->queued_bytes);
	option_print_count("arrived-ce", " ce_in %llu", n->arrived_ce);

	print_nl();
	option_print_count(NULL, " marked %llu",
			   n->marked_classic + n->marked_coupled +
			   n->marked_native);
	option_print_count("marked-classic", " (classic %llu",
			   n->marked_classic);
	option_print_count("marked-coupled", ", coupled %llu",
			   n->marked_coupled);
	option_print_count("marked-native", ", native %llu)",
			   n->marked_native);

	print_nl();
	option_print_count(NULL, " dropped %llu",
			   limit + memory + early + aqm + overload + purge);
	option_print_count("dropped-limit", " (limit %llu", limit);
	option_print_count("dropped-memory", ", memory %llu", memory);
	option_print_count("dropped-early", ", early %llu", early);
	option_print_count("dropped-aqm", ", aqm %llu", aqm);
	option_print_count("dropped-overload", ", overload %llu", overload);
	option_print_count("dropped-purge", ", purge %llu)", purge);
	print_nl();
}

/* The counters that dualpi2_print_totals() does not print. */
static void dualpi2_print_counters(const struct tc_dualpi2_counters *n)
{
	const struct dualpi2_part not_ect[] = {
		{ "not-ect-dropped-limit", "limit", n->not_ect_dropped_limit },
		{ "not-ect-dropped-memory", "memory",
		  n->not_ect_dropped_memory },
		{ "not-ect-dropped-early", "early", n->not_ect_dropped_early },
		{ "not-ect-dropped-aqm", "aqm", n->not_ect_dropped_aqm },
		{ "not-ect-dropped-overload", "overload",
		  n->not_ect_dropped_overload },
		{ "not-ect-dropped-purge", "purge", n->not_ect_dropped_purge },
	};
	const struct dualpi2_part ect[] = {
		{ "ect-dropped-limit", "limit", n->ect_dropped_limit },
		{ "ect-dropped-memory", "memory", n->ect_dropped_memory },
		{ "ect-dropped-early", "early", n->ect_dropped_early },
		{ "ect-dropped-aqm", "aqm", n->ect_dropped_aqm },
		{ "ect-dropped-overload", "overload", n->ect_dropped_overload },
		{ "ect-dropped-purge", "purge", n->ect_dropped_purge },
	};
	const struct dualpi2_part bytes[] = {
		{ "dropped-arrival-bytes", "arrival",
		  n->dropped_arrival_bytes },
		{ "dropped-aqm-bytes", "aqm", n->dropped_aqm_bytes },
		{ "dropped-purge-bytes", "purge", n->dropped_purge_bytes },
	};

	option_print_count(NULL, " arrived %llu",
			   n->arrived_not_ect + n->arrived_ect1 +
			   n->arrived_ect0 + n->arrived_ce);
	option_print_count("arrived-bytes", " (%llu bytes)", n->arrived_bytes);
	option_print_count("arrived-not-ect", " not_ect %llu",
			   n->arrived_not_ect);
	option_print_count("arrived-ect1", " ect1 %llu", n->arrived_ect1);
	option_print_count("arrived-ect0", " ect0 %llu", n->arrived_ect0);
	option_print_count(NULL, " ce %llu", n->arrived_ce);
	print_nl();
	option_print_count("presented", " presented %llu", n->presented);
	option_print_count("presented-bytes", " (%llu bytes)",
			   n->presented_bytes);
	option_print_count("forwarded", " forwarded %llu", n->forwarded);
	option_print_count("forwarded-bytes", " (%llu bytes)",
			   n->forwarded_bytes);
	print_lluint(PRINT_JSON, "queued", NULL, n->queued);
	print_lluint(PRINT_JSON, "queued-bytes", NULL, n->queued_bytes);
	print_nl();
	dualpi2_print_parts("dropped_not_ect", not_ect, ARRAY_SIZE(not_ect));
	dualpi2_print_parts("dropped_ect", ect, ARRAY_SIZE(ect));
	dualpi2_print_parts("dropped_bytes", bytes, ARRAY_SIZE(bytes));
}

/* Two lines of text; JSON is never short. */
static void dualpi2_print_short(const char *text,
				const struct tc_dualpi2_counters *n,
				const struct dualpi2_hist *h)
{
	const struct dualpi2_part marked[] = {
		{ NULL, "classic", n->marked_classic },
		{ NULL, "coupled", n->marked_coupled },
		{ NULL, "native", n->marked_native },
	};
	const struct dualpi2_part dropped[] = {
		{ NULL, "limit", DUALPI2_DROPPED(n, limit) },
		{ NULL, "memory", DUALPI2_DROPPED(n, memory) },
		{ NULL, "early", DUALPI2_DROPPED(n, early) },
		{ NULL, "aqm", DUALPI2_DROPPED(n, aqm) },
		{ NULL, "overload", DUALPI2_DROPPED(n, overload) },
		{ NULL, "purge", DUALPI2_DROPPED(n, purge) },
	};
	char buf[OPTION_BUF_SIZE];

	print_string(PRINT_FP, NULL, "%s:", text);
	print_lluint(PRINT_FP, NULL, " arrived %llu",
		     n->arrived_not_ect + n->arrived_ect1 + n->arrived_ect0 +
		     n->arrived_ce);
	print_lluint(PRINT_FP, NULL, " sent %llu", n->forwarded);
	print_lluint(PRINT_FP, NULL, " queued %llu", n->queued);
	dualpi2_print_sum("marked", marked, ARRAY_SIZE(marked));
	print_nl();
	dualpi2_print_sum("dropped", dropped, ARRAY_SIZE(dropped));
	if (h && h->count) {
		print_string(PRINT_FP, NULL, " delay mean %s",
			     option_format_ns(buf, dualpi2_hist_mean(h)));
		dualpi2_format_percentile(buf, h, 990);
		print_string(PRINT_FP, NULL, " p99 %s", buf);
	}
	print_nl();
}

static void dualpi2_print_queue(const char *text, const char *json,
				struct rtattr *nest)
{
	struct rtattr *tb[TCA_DUALPI2_QUEUE_MAX + 1] = {};
	struct tc_dualpi2_counters counters;
	struct dualpi2_hist hist;
	bool has_hist;

	if (nest)
		option_find_attrs(tb, TCA_DUALPI2_QUEUE_MAX, RTA_DATA(nest),
				  RTA_PAYLOAD(nest));
	if (!tb[TCA_DUALPI2_QUEUE_COUNTERS])
		return;
	option_copy_attr(&counters, sizeof(counters),
			 tb[TCA_DUALPI2_QUEUE_COUNTERS]);
	has_hist = dualpi2_hist_read(&hist, tb[TCA_DUALPI2_QUEUE_DELAY],
				     tb[TCA_DUALPI2_QUEUE_HIST]);
	if (!dualpi2_print_all()) {
		dualpi2_print_short(text, &counters, has_hist ? &hist : NULL);
		return;
	}
	open_json_object(json);
	print_string(PRINT_FP, NULL, "%s:", text);
	dualpi2_print_totals(&counters);
	dualpi2_print_counters(&counters);
	if (has_hist)
		dualpi2_print_delay(&hist);
	close_json_object();
}

static bool dualpi2_is_leap(unsigned int year)
{
	return (year % 4 == 0 && year % 100) || year % 400 == 0;
}

/* UTC, in milliseconds.  Where time_t has 32 bits, gmtime() ends in 2038. */
static const char *dualpi2_format_date(char *buf, __u64 ns)
{
	static const unsigned int lengths[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31,
	};
	unsigned int ms = ns % DUALPI2_NS_PER_SEC / DUALPI2_NS_PER_MS;
	__u64 sec = ns / DUALPI2_NS_PER_SEC;
	unsigned int day = sec / DUALPI2_SEC_PER_DAY, left, len;
	unsigned int year = 1970, month = 0;

	for (;; year++) {
		len = dualpi2_is_leap(year) ? 366 : 365;
		if (day < len)
			break;
		day -= len;
	}
	for (;; month++) {
		len = lengths[month] + (month == 1 && dualpi2_is_leap(year));
		if (day < len)
			break;
		day -= len;
	}
	left = sec % DUALPI2_SEC_PER_DAY;
	snprintf(buf, OPTION_BUF_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 year, month + 1, day + 1, left / 3600, left / 60 % 60,
		 left % 60, ms);
	return buf;
}

/* ns 0: there was no such time; JSON has null, and the text nothing. */
static void dualpi2_print_date(const char *key, const char *fmt, __u64 ns)
{
	char buf[OPTION_BUF_SIZE];

	if (ns)
		print_string(PRINT_ANY, key, fmt, dualpi2_format_date(buf, ns));
	else
		print_null(PRINT_JSON, key, NULL, NULL);
}

/* The last overload.  One that lasts has no end.  Without one, no text. */
static void dualpi2_print_overload(const struct tc_dualpi2_overload *o)
{
	bool ended = o->start_ns && !o->now;

	dualpi2_print_date("overload-start", "overload_start %s", o->start_ns);
	dualpi2_print_date("overload-end", " overload_end %s",
			   ended ? o->start_ns + o->duration_ns : 0);
	print_lluint(PRINT_JSON, "overload-start-ns", NULL, o->start_ns);
	print_lluint(PRINT_JSON, "overload-duration-ns", NULL, o->duration_ns);
	print_lluint(PRINT_JSON, "overload-reports", NULL, o->reports);
	if (!o->start_ns)
		return;
	print_float(PRINT_FP, NULL, " overload_duration %.3fs",
		    o->duration_ns / 1e9);
	print_lluint(PRINT_FP, NULL, " overload_reports %llu", o->reports);
	print_nl();
}

/* Four digits: the rate is an estimate. */
static const char *dualpi2_format_drain(char *buf, __u64 rate)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	double num = rate * 8.0;
	unsigned int unit = 0;

	for (; num >= 999.95 && unit < ARRAY_SIZE(units) - 1; unit++)
		num /= 1000;
	snprintf(buf, OPTION_BUF_SIZE, num < 9999.5 ? "%.4g%sbit" : "%.0f%sbit",
		 num, units[unit]);
	return buf;
}

static void dualpi2_print_link_ns(const char *key, const char *fmt, __u32 ns)
{
	char buf[OPTION_BUF_SIZE];

	print_uint(PRINT_JSON, key, NULL, ns);
	print_string(PRINT_FP, NULL, fmt, option_format_ns(buf, ns));
}

static void dualpi2_print_link(const struct tc_dualpi2_link *link)
{
	char buf[OPTION_BUF_SIZE];

	if (link->drain_rate) {
		print_lluint(PRINT_JSON, "drain-rate", NULL, link->drain_rate);
		print_string(PRINT_FP, NULL, "drain_rate %s",
			     dualpi2_format_drain(buf, link->drain_rate));
	} else {
		print_null(PRINT_JSON, "drain-rate", NULL, NULL);
		print_string(PRINT_FP, NULL, "%s", "drain_rate not seen yet");
	}
	option_print_count("throttled", " throttled %llu", link->throttled);
	dualpi2_print_link_ns("burst-ns", " burst %s", link->burst_ns);
	dualpi2_print_link_ns("ramp-min-ns", " ramp_min %s", link->ramp_min_ns);
	dualpi2_print_link_ns("ramp-max-ns", " ramp_max %s", link->ramp_max_ns);
	print_uint(PRINT_ANY, "limit-pkts", " limit_pkts %u", link->limit_pkts);
	if (link->target_ns)
		dualpi2_print_link_ns("effective-target-ns",
				      " effective_target %s", link->target_ns);
	print_nl();
	option_print_count("nqb-arrived", "nqb_arrived %llu",
			   link->nqb_arrived);
	option_print_count("nqb-dropped", " nqb_dropped %llu",
			   link->nqb_dropped);
	if (link->nqb_limit_bytes || link->drain_rate) {
		print_uint(PRINT_ANY, "nqb-limit-bytes", " nqb_limit_bytes %u",
			   link->nqb_limit_bytes);
	} else {
		print_null(PRINT_JSON, "nqb-limit-bytes", NULL, NULL);
		print_string(PRINT_FP, NULL, "%s", " nqb_limit 10ms");
	}
	print_nl();
}

static void dualpi2_print_qprotect(const struct rtattr *attr)
{
	struct tc_dualpi2_qprotect st;

	if (!attr)
		return;
	option_copy_attr(&st, sizeof(st), attr);
	open_json_object("qprotect");
	option_print_count("redirected", "qprotect redirected %llu",
			   st.redirected);
	option_print_count("redirected-bytes", " (%llu bytes)",
			   st.redirected_bytes);
	option_print_count("sanctions", " sanctions %llu", st.sanctions);
	print_uint(PRINT_ANY, "sanctioned", " flows_now %u", st.sanctioned);
	if (dualpi2_print_all()) {
		option_print_count("scored", " scored %llu", st.scored);
		option_print_count("scored-shared", " (shared %llu)",
				   st.scored_shared);
		print_uint(PRINT_ANY, "buckets-used", " buckets %u",
			   st.buckets_used);
		print_uint(PRINT_ANY, "buckets", " of %u", st.buckets);
		print_uint(PRINT_ANY, "score-max-us", " score_max %uus",
			   st.score_max_us);
	}
	if (dualpi2_print_all() || st.alloc_failed)
		option_print_count("alloc-failed", " alloc_failed %llu",
				   st.alloc_failed);
	print_nl();
	close_json_object();
}

static void dualpi2_print_end(const char *address_key, const char *port_key,
			      const char *fmt, int family, const void *address,
			      unsigned int port)
{
	char buf[INET6_ADDRSTRLEN];

	print_string(PRINT_FP, NULL, "%s", fmt);
	if (inet_ntop(family, address, buf, sizeof(buf)))
		print_string(PRINT_ANY, address_key, "%s", buf);
	if (port)
		print_uint(PRINT_ANY, port_key, " port %u", port);
}

static void dualpi2_print_flow(const struct rtattr *attr)
{
	struct tc_dualpi2_qprotect_flow flow;

	option_copy_attr(&flow, sizeof(flow), attr);
	open_json_object(NULL);
	print_bool(PRINT_JSON, "shared", NULL, flow.shared);
	if (flow.shared) {
		print_string(PRINT_FP, NULL, "%s", " flows without a bucket");
	} else {
		print_uint(PRINT_JSON, "hash", NULL, flow.hash);
		print_uint(PRINT_FP, NULL, " flow %08x", flow.hash);
	}
	if (flow.family) {
		dualpi2_print_end("src", "sport", " from ", flow.family,
				  flow.src, flow.sport);
		dualpi2_print_end("dst", "dport", " to ", flow.family,
				  flow.dst, flow.dport);
		print_uint(PRINT_ANY, "protocol", " protocol %u",
			   flow.protocol);
	}
	print_uint(PRINT_ANY, "score-us", " score %uus", flow.score_us);
	print_uint(PRINT_ANY, "redirected", " redirected %u", flow.redirected);
	print_bool(PRINT_JSON, "sanctioned", NULL, flow.sanctioned);
	if (flow.sanctioned)
		print_string(PRINT_FP, NULL, "%s", " sanctioned");
	print_nl();
	close_json_object();
}

static void dualpi2_print_flows(const struct rtattr *nest)
{
	const struct rtattr *rta;
	int len;

	if (!nest)
		return;
	rta = RTA_DATA(nest);
	len = RTA_PAYLOAD(nest);
	open_json_array(PRINT_JSON, "qprotect-flows");
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len))
		dualpi2_print_flow(rta);
	close_json_array(PRINT_JSON, NULL);
}

/* The counters that should be 0, if they are not. */
static void dualpi2_print_failed(const struct tc_dualpi2_ext_xstats *st)
{
	const struct dualpi2_part failed[] = {
		{ NULL, " unparsed %llu", st->unparsed },
		{ NULL, " filter_dropped %llu", st->filter_dropped },
		{ NULL, " gso_failed %llu", st->gso_failed },
		{ NULL, " mark_failed %llu", st->mark_failed },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(failed); i++)
		if (failed[i].count)
			option_print_count(NULL, failed[i].text,
					   failed[i].count);
}

static void dualpi2_print_ext(const struct tc_dualpi2_ext_xstats *st,
			      struct rtattr *tb[])
{
	struct tc_dualpi2_overload overload = {};
	struct tc_dualpi2_link link;

	dualpi2_print_queue("Classic", "classic", tb[TCA_DUALPI2_STATS_C]);
	dualpi2_print_queue("L4S", "l4s", tb[TCA_DUALPI2_STATS_L]);
	if (tb[TCA_DUALPI2_STATS_OVERLOAD])
		option_copy_attr(&overload, sizeof(overload),
				 tb[TCA_DUALPI2_STATS_OVERLOAD]);

	if (dualpi2_print_all()) {
		print_float(PRINT_ANY, "prob-c", "prob_c %f",
			    dualpi2_probability(st->prob_c));
		print_float(PRINT_ANY, "prob-cl", " prob_cl %f ",
			    dualpi2_probability(st->prob_cl));
	}
	print_bool(PRINT_JSON, "overload", NULL, overload.now);
	print_string(PRINT_FP, NULL, "overload %s",
		     overload.now ? "yes" : "no");
	option_print_count("overload-count", " (%llu times", overload.count);
	print_lluint(PRINT_JSON, "overload-ns", NULL, overload.total_ns);
	print_float(PRINT_FP, NULL, ", %.3fs)", overload.total_ns / 1e9);

	if (!dualpi2_print_all()) {
		dualpi2_print_failed(st);
		print_nl();
		dualpi2_print_qprotect(tb[TCA_DUALPI2_STATS_QPROTECT]);
		return;
	}
	print_nl();
	option_print_count("unparsed", "unparsed %llu", st->unparsed);
	option_print_count("filter-dropped", " filter_dropped %llu",
			   st->filter_dropped);
	option_print_count("gso-failed", " gso_failed %llu", st->gso_failed);
	option_print_count("mark-failed", " mark_failed %llu",
			   st->mark_failed);
	print_nl();
	if (tb[TCA_DUALPI2_STATS_OVERLOAD])
		dualpi2_print_overload(&overload);
	if (tb[TCA_DUALPI2_STATS_LINK]) {
		option_copy_attr(&link, sizeof(link),
				 tb[TCA_DUALPI2_STATS_LINK]);
		dualpi2_print_link(&link);
	}
	dualpi2_print_qprotect(tb[TCA_DUALPI2_STATS_QPROTECT]);
}

/* The statistics of a class are one queue, of L4S also queue protection. */
static bool dualpi2_print_class(struct rtattr *tb[])
{
	struct rtattr *c = tb[TCA_DUALPI2_STATS_C];
	struct rtattr *l = tb[TCA_DUALPI2_STATS_L];

	if (!c == !l || tb[TCA_DUALPI2_STATS_OVERLOAD] ||
	    tb[TCA_DUALPI2_STATS_LINK])
		return false;
	if (c)
		dualpi2_print_queue("Classic", "classic", c);
	else
		dualpi2_print_queue("L4S", "l4s", l);
	dualpi2_print_qprotect(tb[TCA_DUALPI2_STATS_QPROTECT]);
	dualpi2_print_flows(tb[TCA_DUALPI2_STATS_QPROTECT_FLOWS]);
	return true;
}

/* The extension's struct, and the attributes after it. */
static bool dualpi2_read_ext(struct tc_dualpi2_ext_xstats *ext,
			     struct rtattr *tb[], char *data, size_t len)
{
	const size_t head = offsetof(struct tc_dualpi2_ext_xstats, reserved);

	if (len < TC_DUALPI2_EXT_XSTATS_OFFSET + head)
		return false;
	data += TC_DUALPI2_EXT_XSTATS_OFFSET;
	len -= TC_DUALPI2_EXT_XSTATS_OFFSET;
	option_copy(ext, sizeof(*ext), data, head);
	if (ext->magic != TC_DUALPI2_EXT_XSTATS_MAGIC || ext->size < head)
		return false;
	if (ext->size >= len) {
		option_copy(ext, sizeof(*ext), data, len);
		return true;
	}
	len -= ext->size;
	data += ext->size;
	if (ext->size % RTA_ALIGNTO == 0)
		option_find_attrs(tb, TCA_DUALPI2_STATS_MAX,
				  (struct rtattr *)data, len);
	option_copy(ext, sizeof(*ext), data - ext->size, ext->size);
	return true;
}

static void dualpi2_print_scheduler(const struct tc_dualpi2_xstats *st)
{
	print_int(PRINT_ANY, "credit", "credit %d", st->credit);
	print_string(PRINT_FP, NULL, " (%s)",
		     st->credit > 0 ? "C-queue" : "L-queue");
	print_nl();
	print_uint(PRINT_ANY, "memory-used", "memory_used %u",
		   st->memory_used);
	print_uint(PRINT_ANY, "max-memory-used", " (max %u)",
		   st->max_memory_used);
	print_uint(PRINT_ANY, "memory-limit", " of memory limit %u",
		   st->memory_limit);
	print_nl();
}

static int dualpi2_print_xstats(const struct qdisc_util *qu,
				FILE *f, struct rtattr *xstats)
{
	struct rtattr *tb[TCA_DUALPI2_STATS_MAX + 1] = {};
	struct tc_dualpi2_ext_xstats ext;
	struct tc_dualpi2_xstats st;
	bool extended;

	if (!xstats)
		return 0;

	extended = dualpi2_read_ext(&ext, tb, RTA_DATA(xstats),
				    RTA_PAYLOAD(xstats));
	if (extended && dualpi2_print_class(tb))
		return 0;

	option_copy_attr(&st, sizeof(st), xstats);
	print_float(PRINT_ANY, "prob", "prob %f",
		    dualpi2_probability(st.prob));
	print_uint(PRINT_ANY, "delay-c", " delay_c %uus", st.delay_c);
	print_uint(PRINT_ANY, "delay-l", " delay_l %uus", st.delay_l);
	print_nl();
	print_uint(PRINT_ANY, "pkts-in-c", "pkts_in_c %u", st.packets_in_c);
	print_uint(PRINT_ANY, "pkts-in-l", " pkts_in_l %u", st.packets_in_l);
	print_uint(PRINT_ANY, "maxq", " maxq %u", st.maxq);
	print_nl();
	print_uint(PRINT_ANY, "ecn-mark", "ecn_mark %u", st.ecn_mark);
	print_uint(PRINT_ANY, "step-mark", " step_mark %u", st.step_marks);
	print_nl();
	if (!extended || dualpi2_print_all())
		dualpi2_print_scheduler(&st);
	if (extended)
		dualpi2_print_ext(&ext, tb);
	return 0;
}
#endif /* Q_DUALPI2_STATS_H */
