// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc front end of the pi2 qdisc.
 */
#include "options.h"

#include "pi2_uapi.h"

#define PI2_TUPDATE_MIN		100

static const char *const pi2_signals[] = {
	[TC_PI2_SIGNAL_RECUR] = "recur",
	[TC_PI2_SIGNAL_RANDOM] = "random",
};

#define PI2_HAS(_word, _kind, _attr, _min, _max, _json_key) \
	{ .word = _word, .kind = _kind, .attr = _attr, .min = _min, \
	  .max = _max, .json_key = _json_key }

/* In the order of the output. */
static const struct option_spec pi2_options[] = {
	PI2_HAS("limit", OPTION_PACKETS, TCA_PI2_LIMIT,
		1, UINT32_MAX, "limit"),
	PI2_HAS("target", OPTION_TIME, TCA_PI2_TARGET,
		1, OPTION_TIME_MAX_US, "target"),
	PI2_HAS("tupdate", OPTION_TIME, TCA_PI2_TUPDATE,
		PI2_TUPDATE_MIN, OPTION_TIME_MAX_US, "tupdate"),
	PI2_HAS("alpha", OPTION_GAIN, TCA_PI2_ALPHA, 1, INT32_MAX, "alpha"),
	PI2_HAS("beta", OPTION_GAIN, TCA_PI2_BETA, 1, INT32_MAX, "beta"),
	PI2_HAS("coupling_factor", OPTION_BYTE, TCA_PI2_COUPLING,
		1, UINT8_MAX, "coupling-factor"),
	PI2_HAS("ecn", OPTION_FLAG, TCA_PI2_ECN, 1, 0, "ecn"),
	PI2_HAS("noecn", OPTION_FLAG, TCA_PI2_ECN, 0, 0, "ecn"),
	{ .word = "signal", .kind = OPTION_CHOICE, .attr = TCA_PI2_SIGNAL,
	  .json_key = "signal", .names = pi2_signals },
	PI2_HAS("drop_enqueue", OPTION_FLAG, TCA_PI2_DROP_ENQUEUE,
		1, 0, "drop-enqueue"),
	PI2_HAS("drop_dequeue", OPTION_FLAG, TCA_PI2_DROP_ENQUEUE,
		0, 0, "drop-enqueue"),
	PI2_HAS("square", OPTION_FLAG, TCA_PI2_SQUARE, 1, 0, "square"),
	PI2_HAS("no_square", OPTION_FLAG, TCA_PI2_SQUARE, 0, 0, "square"),
};

static const struct option_plugin pi2_plugin = {
	.name = "pi2",
	.options = pi2_options,
	.len = ARRAY_SIZE(pi2_options),
	.usage =
	"Usage: ... pi2 [ limit PACKETS ] [ target TIME ] [ tupdate TIME ]\n"
	"               [ alpha HZ ] [ beta HZ ] [ coupling_factor NUMBER ]\n"
	"               [ ecn | noecn ] [ signal recur | random ]\n"
	"               [ drop_dequeue | drop_enqueue ] [ square | no_square ]\n"
	"TIME is in us unless it ends in ms or s.\n",
};

static int pi2_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			 struct nlmsghdr *n, const char *dev)
{
	return option_send(&pi2_plugin, argc, argv, n);
}

static int pi2_print_opt(const struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	if (opt)
		option_print(&pi2_plugin, opt);
	return 0;
}

static void pi2_print_delay(const char *json, const char *fmt, __u64 ns)
{
	char text[OPTION_BUF_SIZE];

	print_lluint(PRINT_JSON, json, NULL, ns);
	print_string(PRINT_FP, NULL, fmt, option_format_ns(text, ns));
}

static void pi2_print_codepoint(const char *json, const char *text,
				const struct tc_pi2_codepoint *c)
{
	open_json_object(json);
	print_string(PRINT_FP, NULL, "%s", text);
	option_print_count("arrived", ": arrived %llu", c->arrived);
	option_print_count("forwarded", " forwarded %llu", c->forwarded);
	option_print_count("marked", " marked %llu", c->marked);
	option_print_count("dropped-aqm", " dropped (aqm %llu", c->dropped_aqm);
	option_print_count("dropped-limit", ", limit %llu", c->dropped_limit);
	option_print_count("purged", ", purged %llu)", c->purged);
	print_nl();
	close_json_object();
}

static void pi2_print_probability(const char *json, const char *fmt, __u32 prob)
{
	print_float(PRINT_ANY, json, fmt, (double)prob / UINT32_MAX);
}

static int pi2_print_xstats(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	static const char *const names[TC_PI2_CODEPOINTS][2] = {
		{ "not-ect", "not_ect" }, { "ect1", "ect1" },
		{ "ect0", "ect0" }, { "ce", "ce" },
	};
	struct tc_pi2_xstats st;
	__u64 forwarded = 0;
	unsigned int i;

	if (!xstats)
		return 0;
	option_copy_attr(&st, sizeof(st), xstats);

	pi2_print_probability("prob", "prob %f", st.prob);
	pi2_print_probability("prob-classic", " prob_classic %f",
			      st.prob_classic);
	pi2_print_probability("prob-scalable", " prob_scalable %f",
			      st.prob_scalable);
	print_nl();
	print_bool(PRINT_JSON, "capped", NULL, st.capped);
	print_string(PRINT_FP, NULL, "capped %s", st.capped ? "yes" : "no");
	option_print_count("capped-count", " (%llu times", st.capped_count);
	print_lluint(PRINT_JSON, "capped-ns", NULL, st.capped_ns);
	print_float(PRINT_FP, NULL, ", %.3fs)", st.capped_ns / 1e9);
	print_nl();

	for (i = 0; i < TC_PI2_CODEPOINTS; i++)
		forwarded += st.codepoint[i].forwarded;
	pi2_print_delay("delay-ns", "delay %s", st.delay_ns);
	if (forwarded)
		pi2_print_delay("delay-mean-ns", " mean %s",
				st.delay_sum_ns / forwarded);
	else
		print_null(PRINT_JSON, "delay-mean-ns", NULL, NULL);
	print_lluint(PRINT_JSON, "delay-sum-ns", NULL, st.delay_sum_ns);
	pi2_print_delay("delay-max-ns", " max %s", st.delay_max_ns);
	print_nl();

	/* "packets" and "bytes" are of what was sent, and tc's. */
	print_uint(PRINT_ANY, "queued-packets", "queued %u", st.packets);
	option_print_count("queued-bytes", " (%llu bytes)", st.bytes);
	print_uint(PRINT_ANY, "max-packets", " max %u", st.max_packets);
	print_nl();
	for (i = 0; i < TC_PI2_CODEPOINTS; i++)
		pi2_print_codepoint(names[i][0], names[i][1], &st.codepoint[i]);
	option_print_count("arrived-bytes", "bytes: arrived %llu",
			   st.arrived_bytes);
	option_print_count("forwarded-bytes", " forwarded %llu",
			   st.forwarded_bytes);
	option_print_count("dropped-bytes", " dropped %llu", st.dropped_bytes);
	option_print_count("purged-bytes", " purged %llu", st.purged_bytes);
	print_nl();
	option_print_count("mark-failed", "mark_failed %llu", st.mark_failed);
	option_print_count("gso-failed", " gso_failed %llu", st.gso_failed);
	option_print_count("unparsed", " unparsed %llu", st.unparsed);
	print_nl();
	return 0;
}

struct qdisc_util pi2_qdisc_util = {
	.id = "pi2",
	.parse_qopt = pi2_parse_opt,
	.print_qopt = pi2_print_opt,
	.print_xstats = pi2_print_xstats,
};
