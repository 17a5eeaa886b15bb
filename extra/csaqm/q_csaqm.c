// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc plugin of the qdiscs csaqm and vdq_csaqm.  One object for both: tc finds
 * the second one by a link of the name q_vdq_csaqm.so.
 */
#include "options.h"

#define CSAQM_LIMIT_MAX		(UINT64_C(1) << 20)
#define CSAQM_RATE_MIN		1000	/* bytes/s: 8 kbit/s */
#define CSAQM_TUPDATE_MIN	100
#define CSAQM_SHARE_ONE		1000

#define CSAQM_HAS(_word, _kind, _attr, _min, _max, _json_key, ...) \
	{ .word = _word, .kind = _kind, .attr = _attr, .min = _min, \
	  .max = _max, .json_key = _json_key, __VA_ARGS__ }

#define CSAQM_IS(_word, _attr, _value, _json_key, ...) \
	{ .word = _word, .kind = OPTION_FLAG, .attr = _attr, .min = _value, \
	  .json_key = _json_key, __VA_ARGS__ }

/* In the order of the output. */
static const struct option_spec csaqm_options[] = {
	{ .word = "bandwidth", .kind = OPTION_RATE, .attr = TCA_CSAQM_BANDWIDTH,
	  .min = CSAQM_RATE_MIN, .max = OPTION_RATE_MAX, .needed = true,
	  .json_key = "bandwidth" },
	CSAQM_HAS("limit", OPTION_PACKETS, TCA_CSAQM_LIMIT,
		  1, CSAQM_LIMIT_MAX, "limit"),
	CSAQM_HAS("target", OPTION_TIME, TCA_CSAQM_TARGET,
		  1, OPTION_TIME_MAX_US, "target"),
	CSAQM_HAS("tupdate", OPTION_TIME, TCA_CSAQM_TUPDATE,
		  CSAQM_TUPDATE_MIN, OPTION_TIME_MAX_US, "tupdate"),
	CSAQM_HAS("buffer", OPTION_TIME, TCA_CSAQM_BUFFER,
		  1, OPTION_TIME_MAX_US, "buffer"),
	{ .word = "carry", .kind = OPTION_CHOICE, .attr = TCA_CSAQM_CARRY,
	  .json_key = "carry", .names = option_carries },
	CSAQM_IS("ecn", TCA_CSAQM_ECN, 1, "ecn"),
	CSAQM_IS("noecn", TCA_CSAQM_ECN, 0, "ecn"),
	CSAQM_IS("arrival_drop", TCA_CSAQM_ARRIVAL_DROP, 1, "arrival-drop",
		 .only = "csaqm"),
	CSAQM_IS("noarrival_drop", TCA_CSAQM_ARRIVAL_DROP, 0, "arrival-drop",
		 .only = "csaqm"),
	CSAQM_HAS("target_l", OPTION_TIME, TCA_CSAQM_TARGET_L,
		  1, OPTION_TIME_MAX_US, "target-l", .only = "vdq_csaqm"),
	CSAQM_HAS("buffer_l", OPTION_TIME, TCA_CSAQM_BUFFER_L,
		  1, OPTION_TIME_MAX_US, "buffer-l", .only = "vdq_csaqm"),
	CSAQM_HAS("vrate", OPTION_SHARE, TCA_CSAQM_VRATE,
		  1, CSAQM_SHARE_ONE, "vrate", .only = "vdq_csaqm"),
	CSAQM_HAS("vrate_l", OPTION_SHARE, TCA_CSAQM_VRATE_L,
		  1, CSAQM_SHARE_ONE, "vrate-l", .only = "vdq_csaqm"),
};

#define CSAQM_UNITS \
	"RATE is in bit/s unless it ends in kbit, mbit, gbit, bps etc.;\n" \
	"TIME is in us unless it ends in ms or s.\n" \
	"bandwidth is required when the qdisc is added.\n"

static const struct option_plugin csaqm_plugin = {
	.name = "csaqm",
	.options = csaqm_options,
	.len = ARRAY_SIZE(csaqm_options),
	.usage =
	"Usage: ... csaqm bandwidth RATE [ limit PACKETS ]\n"
	"                 [ target TIME ] [ tupdate TIME ] [ buffer TIME ]\n"
	"                 [ carry mark|ipv4_id ] [ ecn | noecn ]\n"
	"                 [ arrival_drop | noarrival_drop ]\n"
	CSAQM_UNITS,
};

static const struct option_plugin csaqm_plugin_vdq = {
	.name = "vdq_csaqm",
	.options = csaqm_options,
	.len = ARRAY_SIZE(csaqm_options),
	.usage =
	"Usage: ... vdq_csaqm bandwidth RATE [ limit PACKETS ]\n"
	"                     [ target TIME ] [ target_l TIME ]\n"
	"                     [ tupdate TIME ]\n"
	"                     [ buffer TIME ] [ buffer_l TIME ]\n"
	"                     [ vrate FRACTION ] [ vrate_l FRACTION ]\n"
	"                     [ carry mark|ipv4_id ] [ ecn | noecn ]\n"
	CSAQM_UNITS
	"FRACTION is 0.001 to 1, of the bandwidth.\n",
};

static const struct option_plugin *csaqm_plugin_of(const struct qdisc_util *qu)
{
	return qu == &csaqm_qdisc_util ? &csaqm_plugin : &csaqm_plugin_vdq;
}

static int csaqm_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			   struct nlmsghdr *n, const char *dev)
{
	return option_send(csaqm_plugin_of(qu), argc, argv, n);
}

static int csaqm_print_opt(const struct qdisc_util *qu, FILE *f,
			   struct rtattr *opt)
{
	if (opt)
		option_print(csaqm_plugin_of(qu), opt);
	return 0;
}

static void csaqm_print_delay(const struct tc_csaqm_queue *q)
{
	char buf[OPTION_BUF_SIZE];

	print_lluint(PRINT_JSON, "delay-sum-ns", NULL, q->delay_sum_ns);
	print_lluint(PRINT_JSON, "delay-max-ns", NULL, q->delay_max_ns);
	if (!q->forwarded) {
		print_null(PRINT_JSON, "delay-mean-ns", NULL, NULL);
		print_string(PRINT_FP, NULL, "%s", " delay of no packet yet");
		print_nl();
		return;
	}
	print_lluint(PRINT_JSON, "delay-mean-ns", NULL,
		     q->delay_sum_ns / q->forwarded);
	print_string(PRINT_FP, NULL, " delay mean %s",
		     option_format_ns(buf, q->delay_sum_ns / q->forwarded));
	print_string(PRINT_FP, NULL, " max %s",
		     option_format_ns(buf, q->delay_max_ns));
	print_nl();
}

/* Packets with a value below it get a signal: none do at 0, and all do beyond
 * what a value can be.
 */
static void csaqm_print_threshold(unsigned int coded)
{
	char buf[OPTION_BUF_SIZE];
	const char *text = option_format_value(buf, coded);

	if (!coded)
		text = "none";
	else if (coded > option_code(OPTION_VALUE_MAX))
		text = "all";
	option_print_value("threshold", "threshold-coded", coded);
	print_string(PRINT_FP, NULL, " threshold %s", text);
	print_uint(PRINT_FP, NULL, " (%u)", coded);
}

static void csaqm_print_queue(const char *text, const char *json,
			      const struct tc_csaqm_queue *q)
{
	open_json_object(json);
	print_string(PRINT_FP, NULL, "%s:", text);
	option_print_count("arrived", " arrived %llu", q->arrived);
	option_print_count("forwarded", " forwarded %llu", q->forwarded);
	option_print_count("marked", " marked %llu", q->marked);
	option_print_count("no-value", " no_value %llu", q->no_value);
	print_nl();
	option_print_count(NULL, " dropped %llu",
			   q->dropped_value + q->dropped_buffer +
			  q->dropped_limit);
	option_print_count("dropped-value", " (value %llu", q->dropped_value);
	option_print_count("dropped-buffer", ", buffer %llu", q->dropped_buffer);
	option_print_count("dropped-limit", ", limit %llu)", q->dropped_limit);
	option_print_count("purged", " purged %llu", q->purged);
	print_nl();
	print_uint(PRINT_ANY, "packets", " queued %u", q->packets);
	option_print_count("bytes", " (%llu bytes)", q->bytes);
	option_print_count("virtual-bytes", " virtual %llu bytes",
			   q->virtual_bytes);
	csaqm_print_threshold(q->threshold);
	print_nl();
	csaqm_print_delay(q);
	close_json_object();
}

static int csaqm_print_xstats(const struct qdisc_util *qu, FILE *f,
			      struct rtattr *xstats)
{
	struct tc_csaqm_xstats st;

	if (!xstats)
		return 0;
	option_copy_attr(&st, sizeof(st), xstats);
	if (qu == &csaqm_qdisc_util) {
		csaqm_print_queue("Queue", "queue", &st.c);
	} else {
		csaqm_print_queue("Classic", "classic", &st.c);
		csaqm_print_queue("L4S", "l4s", &st.l);
	}
	option_print_count("updates", "updates %llu", st.updates);
	option_print_count("throttled", " throttled %llu", st.throttled);
	option_print_count("mark-failed", " mark_failed %llu", st.mark_failed);
	option_print_count("gso-failed", " gso_failed %llu", st.gso_failed);
	option_print_count("unparsed", " unparsed %llu", st.unparsed);
	print_nl();
	return 0;
}

struct qdisc_util csaqm_qdisc_util = {
	.id = "csaqm",
	.parse_qopt = csaqm_parse_opt,
	.print_qopt = csaqm_print_opt,
	.print_xstats = csaqm_print_xstats,
};

struct qdisc_util vdq_csaqm_qdisc_util = {
	.id = "vdq_csaqm",
	.parse_qopt = csaqm_parse_opt,
	.print_qopt = csaqm_print_opt,
	.print_xstats = csaqm_print_xstats,
};
