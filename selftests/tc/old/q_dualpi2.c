// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc front end of the dualpi2 qdisc (RFC 9332): options to netlink, netlink to
 * text and JSON.
 *
 * This one is for the tests only, as it was in version 2.1.0: it has to go on
 * working with newer modules, as does its successor with the module of that time.
 *
 * What the text output says, the parser accepts, and it leads to the same
 * bytes.  Defaults are the kernel's business: an option that was not given is
 * not sent.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef DUALPI2_PLUGIN
/* For the tc that a distribution ships, whose headers it does not ship. */
#include "tc_plugin.h"
#else
#include "utils.h"
#include "tc_util.h"
#endif

#include <linux/dualpi2.h>

#define DUALPI2_US_PER_MS	1000
#define DUALPI2_US_PER_SEC	1000000

/* The kernel's limits; it holds a time in u32 nanoseconds. */
#define DUALPI2_TIME_MAX_US	(UINT32_MAX / 1000)
#define DUALPI2_GAIN_MAX	INT32_MAX
#define DUALPI2_GAIN_PER_HZ	256

#define DUALPI2_MSG_MAX		1024
#define DUALPI2_BUF_SIZE	128

/* One number space for all knobs: the attributes of Linux as they are, those of
 * the extension behind them, and last what tc turns into other knobs.
 */
#define DUALPI2_EXT_FIRST	32
#define DUALPI2_EXT(attr)	(DUALPI2_EXT_FIRST + (attr))
#define DUALPI2_MAX_RTT		48
#define DUALPI2_TYPICAL_RTT	49
#define DUALPI2_KNOBS		50

#define DUALPI2_BIT(knob)	(UINT64_C(1) << (knob))

/* What max_rtt and typical_rtt decide. */
#define DUALPI2_RTT_KNOBS	(DUALPI2_BIT(TCA_DUALPI2_TARGET) | \
				 DUALPI2_BIT(TCA_DUALPI2_TUPDATE) | \
				 DUALPI2_BIT(TCA_DUALPI2_ALPHA) | \
				 DUALPI2_BIT(TCA_DUALPI2_BETA))

enum dualpi2_kind {
	DUALPI2_WORD,		/* no value, the word says it all; u8 */
	DUALPI2_NUMBER,		/* u8 */
	DUALPI2_PERCENT,	/* u8 */
	DUALPI2_PACKETS,
	DUALPI2_BYTES,
	DUALPI2_TIME,		/* us */
	DUALPI2_GAIN,		/* 1/256 Hz */
};

/* One word of the command line.  Several words may set one knob, and one word
 * may stand in several lines, which then differ in kind.
 */
struct dualpi2_option {
	const char *word;
	enum dualpi2_kind kind;
	unsigned int knob;
	__u32 min;		/* DUALPI2_WORD: the value */
	__u32 max;
	const char *json_key;
	const char *json_word;
};

#define DUALPI2_IS(_word, _knob, _value, _json_key, _json_word) \
	{ .word = _word, .kind = DUALPI2_WORD, .knob = _knob, .min = _value, \
	  .json_key = _json_key, .json_word = _json_word }

#define DUALPI2_HAS(_word, _kind, _knob, _min, _max, _json_key) \
	{ .word = _word, .kind = _kind, .knob = _knob, .min = _min, \
	  .max = _max, .json_key = _json_key }

/* In the order of the output. */
static const struct dualpi2_option dualpi2_options[] = {
	DUALPI2_HAS("limit", DUALPI2_PACKETS, TCA_DUALPI2_LIMIT,
		    1, UINT32_MAX, "limit"),
	DUALPI2_HAS("memlimit", DUALPI2_BYTES, TCA_DUALPI2_MEMORY_LIMIT,
		    1, UINT32_MAX, "memory-limit"),
	DUALPI2_HAS("max_rtt", DUALPI2_TIME, DUALPI2_MAX_RTT,
		    1, UINT32_MAX, NULL),
	DUALPI2_HAS("typical_rtt", DUALPI2_TIME, DUALPI2_TYPICAL_RTT,
		    1, UINT32_MAX, NULL),
	DUALPI2_HAS("target", DUALPI2_TIME, TCA_DUALPI2_TARGET,
		    1, DUALPI2_TIME_MAX_US, "target"),
	DUALPI2_HAS("tupdate", DUALPI2_TIME, TCA_DUALPI2_TUPDATE,
		    100, DUALPI2_TIME_MAX_US, "tupdate"),
	DUALPI2_HAS("alpha", DUALPI2_GAIN, TCA_DUALPI2_ALPHA,
		    1, DUALPI2_GAIN_MAX, "alpha"),
	DUALPI2_HAS("beta", DUALPI2_GAIN, TCA_DUALPI2_BETA,
		    1, DUALPI2_GAIN_MAX, "beta"),
	/* A plain number is a time: this line comes first. */
	DUALPI2_HAS("step_thresh", DUALPI2_TIME, TCA_DUALPI2_STEP_THRESH_US,
		    0, DUALPI2_TIME_MAX_US, "step-thresh-us"),
	DUALPI2_HAS("step_thresh", DUALPI2_PACKETS,
		    TCA_DUALPI2_STEP_THRESH_PKTS,
		    1, UINT32_MAX - 1, "step-thresh-pkts"),
	DUALPI2_HAS("min_qlen_step", DUALPI2_PACKETS,
		    TCA_DUALPI2_MIN_QLEN_STEP,
		    0, UINT32_MAX, "min-qlen-step"),
	DUALPI2_HAS("coupling_factor", DUALPI2_NUMBER, TCA_DUALPI2_COUPLING,
		    1, UINT8_MAX, "coupling"),
	DUALPI2_IS("drop_on_overload", TCA_DUALPI2_DROP_OVERLOAD,
		   TC_DUALPI2_DROP_OVERLOAD_DROP, "drop-overload", "drop"),
	DUALPI2_IS("overflow", TCA_DUALPI2_DROP_OVERLOAD,
		   TC_DUALPI2_DROP_OVERLOAD_OVERFLOW,
		   "drop-overload", "overflow"),
	DUALPI2_IS("drop_enqueue", TCA_DUALPI2_DROP_EARLY,
		   TC_DUALPI2_DROP_EARLY_DROP_ENQUEUE,
		   "drop-early", "drop-enqueue"),
	DUALPI2_IS("drop_dequeue", TCA_DUALPI2_DROP_EARLY,
		   TC_DUALPI2_DROP_EARLY_DROP_DEQUEUE,
		   "drop-early", "drop-dequeue"),
	DUALPI2_HAS("classic_protection", DUALPI2_PERCENT,
		    TCA_DUALPI2_C_PROTECTION, 0, 100, "c-protection"),
	DUALPI2_IS("l4s_ect", TCA_DUALPI2_ECN_MASK,
		   TC_DUALPI2_ECN_MASK_L4S_ECT, "ecn-mask", "l4s-ect"),
	DUALPI2_IS("cla_ect", TCA_DUALPI2_ECN_MASK,
		   TC_DUALPI2_ECN_MASK_CLA_ECT, "ecn-mask", "cla-ect"),
	DUALPI2_IS("any_ect", TCA_DUALPI2_ECN_MASK,
		   TC_DUALPI2_ECN_MASK_ANY_ECT, "ecn-mask", "any-ect"),
	/* A key without a value is null in JSON, and scripts look for it. */
	DUALPI2_IS("split_gso", TCA_DUALPI2_SPLIT_GSO,
		   TC_DUALPI2_SPLIT_GSO_SPLIT_GSO, "split-gso", NULL),
	DUALPI2_IS("no_split_gso", TCA_DUALPI2_SPLIT_GSO,
		   TC_DUALPI2_SPLIT_GSO_NO_SPLIT_GSO, NULL, NULL),
	DUALPI2_HAS("ramp", DUALPI2_TIME, DUALPI2_EXT(TCA_DUALPI2_EXT_RAMP_US),
		    0, DUALPI2_TIME_MAX_US, "ramp"),
	DUALPI2_IS("recur", DUALPI2_EXT(TCA_DUALPI2_EXT_SIGNAL),
		   TC_DUALPI2_SIGNAL_RECUR, "signal", "recur"),
	DUALPI2_IS("random", DUALPI2_EXT(TCA_DUALPI2_EXT_SIGNAL),
		   TC_DUALPI2_SIGNAL_RANDOM, "signal", "random"),
	DUALPI2_IS("l4s", DUALPI2_EXT(TCA_DUALPI2_EXT_L4S), 1, NULL, NULL),
	DUALPI2_IS("no_l4s", DUALPI2_EXT(TCA_DUALPI2_EXT_L4S), 0, NULL, NULL),
};

/* What one command asks for; bit N of given: val[N] is to be sent. */
struct dualpi2_request {
	__u64 given;
	__u64 seen;		/* bit N: dualpi2_options[N].word was there */
	__u32 val[DUALPI2_KNOBS];
};

struct dualpi2_unit {
	const char *name;
	double factor;
};

static const struct dualpi2_unit dualpi2_no_units[] = {
	{ "", 1 }, { NULL, 0 },
};

static const struct dualpi2_unit dualpi2_percent_units[] = {
	{ "", 1 }, { "%", 1 }, { NULL, 0 },
};

static const struct dualpi2_unit dualpi2_packet_units[] = {
	{ "", 1 }, { "p", 1 }, { "pkt", 1 }, { "pkts", 1 }, { "packet", 1 },
	{ "packets", 1 }, { NULL, 0 },
};

static const struct dualpi2_unit dualpi2_byte_units[] = {
	{ "", 1 }, { "b", 1 }, { "k", 1 << 10 }, { "kb", 1 << 10 },
	{ "m", 1 << 20 }, { "mb", 1 << 20 }, { "g", 1 << 30 },
	{ "gb", 1 << 30 }, { NULL, 0 },
};

static const struct dualpi2_unit dualpi2_time_units[] = {
	{ "", 1 }, { "us", 1 }, { "usec", 1 }, { "usecs", 1 },
	{ "ms", DUALPI2_US_PER_MS }, { "msec", DUALPI2_US_PER_MS },
	{ "msecs", DUALPI2_US_PER_MS }, { "s", DUALPI2_US_PER_SEC },
	{ "sec", DUALPI2_US_PER_SEC }, { "secs", DUALPI2_US_PER_SEC },
	{ NULL, 0 },
};

static const struct dualpi2_unit dualpi2_gain_units[] = {
	{ "", DUALPI2_GAIN_PER_HZ }, { NULL, 0 },
};

static const struct {
	const struct dualpi2_unit *units;
	const char *what;
	bool fraction;		/* to be rounded; else it is refused */
	unsigned int size;	/* of the attribute */
} dualpi2_kinds[] = {
	[DUALPI2_WORD] = { .size = sizeof(__u8) },
	[DUALPI2_NUMBER] = { dualpi2_no_units, "a number",
			     false, sizeof(__u8) },
	[DUALPI2_PERCENT] = { dualpi2_percent_units, "a percentage",
			      false, sizeof(__u8) },
	[DUALPI2_PACKETS] = { dualpi2_packet_units, "a number of packets",
			      false, sizeof(__u32) },
	[DUALPI2_BYTES] = { dualpi2_byte_units, "a number of bytes",
			    true, sizeof(__u32) },
	[DUALPI2_TIME] = { dualpi2_time_units, "a time",
			   true, sizeof(__u32) },
	[DUALPI2_GAIN] = { dualpi2_gain_units, "a number of Hz",
			   true, sizeof(__u32) },
};

static void dualpi2_explain(void)
{
	fprintf(stderr,
		"Usage: ... dualpi2 [ limit PACKETS ] [ memlimit BYTES ]\n"
		"                   [ max_rtt TIME ] [ typical_rtt TIME ]\n"
		"                   [ target TIME ] [ tupdate TIME ]\n"
		"                   [ alpha HZ ] [ beta HZ ]\n"
		"                   [ step_thresh TIME|PACKETS ] [ ramp TIME ]\n"
		"                   [ min_qlen_step PACKETS ]\n"
		"                   [ coupling_factor NUMBER ]\n"
		"                   [ classic_protection PERCENT ]\n"
		"                   [ drop_on_overload | overflow ]\n"
		"                   [ drop_enqueue | drop_dequeue ]\n"
		"                   [ l4s_ect | cla_ect | any_ect ]\n"
		"                   [ split_gso | no_split_gso ]\n"
		"                   [ recur | random ] [ l4s | no_l4s ]\n"
		"TIME is in us unless it ends in ms or s; PACKETS may end in p,\n"
		"and has to in step_thresh; BYTES may end in k, m or g.\n");
}

/* Exact, and as short as that allows: 15ms, 16.384ms, 1.234567s. */
static const char *dualpi2_format(char *buf, enum dualpi2_kind kind, __u32 val)
{
	const char *unit = "";
	double num = val;

	switch (kind) {
	case DUALPI2_PERCENT:
		unit = "%";
		break;
	case DUALPI2_PACKETS:
		unit = "p";
		break;
	case DUALPI2_BYTES:
		unit = "B";
		break;
	case DUALPI2_TIME:
		unit = "us";
		if (val >= DUALPI2_US_PER_SEC) {
			num /= DUALPI2_US_PER_SEC;
			unit = "s";
		} else if (val >= DUALPI2_US_PER_MS) {
			num /= DUALPI2_US_PER_MS;
			unit = "ms";
		}
		break;
	case DUALPI2_GAIN:
		/* Six digits are within 1/2000 of a step of 1/256. */
		snprintf(buf, DUALPI2_BUF_SIZE, "%f",
			 num / DUALPI2_GAIN_PER_HZ);
		return buf;
	default:
		break;
	}

	snprintf(buf, DUALPI2_BUF_SIZE, "%.10g%s", num, unit);
	return buf;
}

static bool dualpi2_is_same_word(const struct dualpi2_option *opt)
{
	return opt < dualpi2_options + ARRAY_SIZE(dualpi2_options) &&
	       strcmp(opt->word, opt[-1].word) == 0;
}

static const struct dualpi2_option *dualpi2_find(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++)
		if (strcmp(word, dualpi2_options[i].word) == 0)
			return &dualpi2_options[i];
	return NULL;
}

/* The option of a knob that has one word. */
static const struct dualpi2_option *dualpi2_option_of(unsigned int knob)
{
	const struct dualpi2_option *opt = dualpi2_options;

	while (opt->knob != knob)
		opt++;
	return opt;
}

/* Ends the line that the caller began with what it was that was wrong. */
static void dualpi2_explain_range(const struct dualpi2_option *opt)
{
	char min[DUALPI2_BUF_SIZE], max[DUALPI2_BUF_SIZE];
	const char *before = "; expected ";

	do {
		fprintf(stderr, "%s%s to %s", before,
			dualpi2_format(min, opt->kind, opt->min),
			dualpi2_format(max, opt->kind, opt->max));
		before = ", or ";
	} while (dualpi2_is_same_word(++opt));
	fprintf(stderr, "\n");
}

/* A number in the unit of opt's attribute, not checked for range. */
static bool dualpi2_get(const struct dualpi2_option *opt, const char *arg,
			double *num)
{
	const struct dualpi2_unit *unit = dualpi2_kinds[opt->kind].units;
	char *end;

	/* strtod() also takes blanks, signs, nan and inf. */
	if (!strchr("0123456789.", *arg))
		return false;
	*num = strtod(arg, &end);
	if (end == arg)
		return false;

	for (; unit->name; unit++)
		if (strcasecmp(end, unit->name) == 0)
			break;
	if (!unit->name)
		return false;
	*num *= unit->factor;

	/* Beyond 2^53 there are no fractions, and no conversion to integer. */
	if (*num >= UINT64_C(1) << 53)
		return true;
	if (dualpi2_kinds[opt->kind].fraction)
		*num += 0.5;
	else if (*num != (uint64_t)*num)
		return false;
	*num = (uint64_t)*num;
	return true;
}

static int dualpi2_parse_value(struct dualpi2_request *req,
			       const struct dualpi2_option *opt,
			       const char *arg)
{
	const struct dualpi2_option *first = opt;
	double num;

	do {
		if (!dualpi2_get(opt, arg, &num))
			continue;
		if (!(num >= opt->min && num <= opt->max)) {
			fprintf(stderr, "dualpi2: %s: \"%s\" is not in range",
				opt->word, arg);
			dualpi2_explain_range(first);
			return -1;
		}
		req->val[opt->knob] = num;
		req->given |= DUALPI2_BIT(opt->knob);
		return 0;
	} while (dualpi2_is_same_word(++opt));

	fprintf(stderr, "dualpi2: %s: \"%s\" is not %s", first->word, arg,
		dualpi2_kinds[first->kind].what);
	for (opt = first + 1; dualpi2_is_same_word(opt); opt++)
		fprintf(stderr, " or %s", dualpi2_kinds[opt->kind].what);
	dualpi2_explain_range(first);
	return -1;
}

/* Sets knob from a value that follows from max_rtt and typical_rtt, unless the
 * command set it after these.
 */
static int dualpi2_derive(struct dualpi2_request *req, unsigned int knob,
			  double num)
{
	const struct dualpi2_option *opt = dualpi2_option_of(knob);
	char buf[DUALPI2_BUF_SIZE];

	if (req->given & DUALPI2_BIT(knob))
		return 0;

	if (!(num >= opt->min - 0.5 && num < opt->max + 0.5)) {
		fprintf(stderr, "dualpi2: max_rtt: \"%s\"",
			dualpi2_format(buf, DUALPI2_TIME,
				       req->val[DUALPI2_MAX_RTT]));
		fprintf(stderr,
			" with typical_rtt %s is not in range: it leads to %s ",
			dualpi2_format(buf, DUALPI2_TIME,
				       req->val[DUALPI2_TYPICAL_RTT]),
			opt->word);
		if (opt->kind == DUALPI2_GAIN)
			fprintf(stderr, "%g", num / DUALPI2_GAIN_PER_HZ);
		else
			fprintf(stderr, "%s",
				dualpi2_format(buf, opt->kind, num));
		dualpi2_explain_range(opt);
		return -1;
	}
	num += 0.5;
	req->val[knob] = num;
	req->given |= DUALPI2_BIT(knob);
	return 0;
}

/* The gains that keep the controller stable up to max_rtt (RFC 9332 A.1). */
static int dualpi2_derive_from_rtt(struct dualpi2_request *req)
{
	__u32 *max = &req->val[DUALPI2_MAX_RTT];
	__u32 *typ = &req->val[DUALPI2_TYPICAL_RTT];
	double max_sec, tupdate;
	char buf[DUALPI2_BUF_SIZE];
	unsigned int i;

	if (!(req->given & DUALPI2_BIT(DUALPI2_TYPICAL_RTT))) {
		*typ = *max / 6;
	} else if (!(req->given & DUALPI2_BIT(DUALPI2_MAX_RTT))) {
		if (*typ > UINT32_MAX / 6)
			*max = UINT32_MAX;
		else
			*max = *typ * 6;
	}
	if (*typ > *max) {
		fprintf(stderr, "dualpi2: typical_rtt: \"%s\" is not in range",
			dualpi2_format(buf, DUALPI2_TIME, *typ));
		fprintf(stderr, "; expected at most the max_rtt of %s\n",
			dualpi2_format(buf, DUALPI2_TIME, *max));
		return -1;
	}

	tupdate = *typ < *max / 3 ? *typ : *max / 3;
	max_sec = (double)*max / DUALPI2_US_PER_SEC;
	if (dualpi2_derive(req, TCA_DUALPI2_TARGET, *typ) ||
	    dualpi2_derive(req, TCA_DUALPI2_TUPDATE, tupdate) ||
	    dualpi2_derive(req, TCA_DUALPI2_ALPHA,
			   0.1 * DUALPI2_GAIN_PER_HZ * tupdate /
			   DUALPI2_US_PER_SEC / max_sec / max_sec) ||
	    dualpi2_derive(req, TCA_DUALPI2_BETA,
			   0.3 * DUALPI2_GAIN_PER_HZ / max_sec))
		return -1;

	fprintf(stderr, "dualpi2: max_rtt %s",
		dualpi2_format(buf, DUALPI2_TIME, *max));
	fprintf(stderr, " typical_rtt %s:",
		dualpi2_format(buf, DUALPI2_TIME, *typ));
	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++) {
		const struct dualpi2_option *opt = &dualpi2_options[i];

		if (DUALPI2_BIT(opt->knob) & DUALPI2_RTT_KNOBS)
			fprintf(stderr, " %s %s", opt->word,
				dualpi2_format(buf, opt->kind,
					       req->val[opt->knob]));
	}
	fprintf(stderr, "\n");
	return 0;
}

static int dualpi2_parse(struct dualpi2_request *req, int argc, char **argv)
{
	const __u64 rtt = DUALPI2_BIT(DUALPI2_MAX_RTT) |
			  DUALPI2_BIT(DUALPI2_TYPICAL_RTT);
	const struct dualpi2_option *opt;
	__u64 seen;

	for (; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "help") == 0) {
			dualpi2_explain();
			return -1;
		}
		opt = dualpi2_find(*argv);
		if (!opt) {
			fprintf(stderr,
				"dualpi2: \"%s\" is not an option; expected one of:\n",
				*argv);
			dualpi2_explain();
			return -1;
		}
		seen = DUALPI2_BIT(opt - dualpi2_options);
		if (req->seen & seen) {
			fprintf(stderr, "dualpi2: %s: duplicate", opt->word);
			if (opt->kind != DUALPI2_WORD && argc > 1)
				fprintf(stderr, ", \"%s\" is the second value",
					argv[1]);
			fprintf(stderr, "; expected once\n");
			return -1;
		}
		req->seen |= seen;

		if (opt->kind == DUALPI2_WORD) {
			req->val[opt->knob] = opt->min;
			req->given |= DUALPI2_BIT(opt->knob);
			continue;
		}
		if (--argc <= 0) {
			fprintf(stderr, "dualpi2: %s: the value is missing",
				opt->word);
			dualpi2_explain_range(opt);
			return -1;
		}
		if (dualpi2_parse_value(req, opt, *++argv))
			return -1;
		if (DUALPI2_BIT(opt->knob) & rtt)
			req->given &= ~DUALPI2_RTT_KNOBS;
	}

	if (req->given & rtt)
		return dualpi2_derive_from_rtt(req);
	return 0;
}

/* Adds the attributes of the knobs from first to the one before end. */
static int dualpi2_add(struct nlmsghdr *n, struct dualpi2_request *req,
		       unsigned int first, unsigned int end)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++) {
		const struct dualpi2_option *opt = &dualpi2_options[i];
		unsigned int size = dualpi2_kinds[opt->kind].size;
		__u32 val = req->val[opt->knob];
		__u8 val8 = val;

		if (opt->knob < first || opt->knob >= end ||
		    !(req->given & DUALPI2_BIT(opt->knob)))
			continue;
		if (addattr_l(n, DUALPI2_MSG_MAX, opt->knob - first,
			      size == sizeof(val8) ? (void *)&val8 : &val,
			      size))
			return -1;
		/* Other words of this knob follow in the table. */
		req->given &= ~DUALPI2_BIT(opt->knob);
	}
	return 0;
}

static int dualpi2_parse_opt(const struct qdisc_util *qu,
			     int argc, char **argv, struct nlmsghdr *n,
			     const char *dev)
{
	const __u64 ext_knobs = DUALPI2_BIT(DUALPI2_MAX_RTT) -
				DUALPI2_BIT(DUALPI2_EXT_FIRST);
	struct dualpi2_request req = {};
	struct rtattr *tail, *ext;

	if (dualpi2_parse(&req, argc, argv))
		return -1;

	tail = addattr_nest(n, DUALPI2_MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	if (dualpi2_add(n, &req, 0, DUALPI2_EXT_FIRST))
		return -1;
	if (req.given & ext_knobs) {
		ext = addattr_nest(n, DUALPI2_MSG_MAX,
				   TCA_DUALPI2_EXT | NLA_F_NESTED);
		if (dualpi2_add(n, &req, DUALPI2_EXT_FIRST, DUALPI2_MAX_RTT))
			return -1;
		addattr_nest_end(n, ext);
	}
	addattr_nest_end(n, tail);
	return 0;
}

/* Finds the attributes of a nest: type N in tb[N].  Returns the extension. */
static struct rtattr *dualpi2_find_attrs(struct rtattr *tb[], unsigned int max,
					 struct rtattr *nest)
{
	int len = RTA_PAYLOAD(nest);
	struct rtattr *rta, *ext = NULL;
	unsigned int type;

	for (rta = RTA_DATA(nest); RTA_OK(rta, len);
	     rta = RTA_NEXT(rta, len)) {
		type = rta->rta_type & NLA_TYPE_MASK;
		if (type <= max)
			tb[type] = rta;
		else if (type == TCA_DUALPI2_EXT)
			ext = rta;
	}
	return ext;
}

static bool dualpi2_read(const struct rtattr *rta, unsigned int size,
			 __u32 *val)
{
	__u8 val8;

	if (!rta || RTA_PAYLOAD(rta) < size)
		return false;

	if (size == sizeof(val8)) {
		memcpy(&val8, RTA_DATA(rta), sizeof(val8));
		*val = val8;
	} else {
		memcpy(val, RTA_DATA(rta), sizeof(*val));
	}
	return true;
}

static void dualpi2_print_knob(const struct dualpi2_option *opt, __u32 val)
{
	char buf[DUALPI2_BUF_SIZE];

	if (opt->kind == DUALPI2_WORD) {
		if (val != opt->min)
			return;
		if (opt->json_word)
			print_string(PRINT_JSON, opt->json_key, NULL,
				     opt->json_word);
		else if (opt->json_key)
			print_null(PRINT_JSON, opt->json_key, NULL, NULL);
		print_string(PRINT_FP, NULL, "%s ", opt->word);
		return;
	}

	if (opt->kind == DUALPI2_GAIN)
		print_float(PRINT_JSON, opt->json_key, NULL,
			    (double)val / DUALPI2_GAIN_PER_HZ);
	else
		print_uint(PRINT_JSON, opt->json_key, NULL, val);
	print_string(PRINT_FP, NULL, "%s ", opt->word);
	print_string(PRINT_FP, NULL, "%s ",
		     dualpi2_format(buf, opt->kind, val));
}

static int dualpi2_print_opt(const struct qdisc_util *qu,
			     FILE *f, struct rtattr *opt)
{
	const unsigned int l4s = DUALPI2_EXT(TCA_DUALPI2_EXT_L4S);
	struct rtattr *tb[DUALPI2_KNOBS] = {}, *ext;
	unsigned int i;
	__u32 val;

	if (!opt)
		return 0;

	ext = dualpi2_find_attrs(tb, DUALPI2_EXT_FIRST - 1, opt);
	if (ext)
		dualpi2_find_attrs(&tb[DUALPI2_EXT_FIRST],
				   DUALPI2_MAX_RTT - DUALPI2_EXT_FIRST - 1,
				   ext);

	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++) {
		const struct dualpi2_option *o = &dualpi2_options[i];

		if (o->knob != l4s &&
		    dualpi2_read(tb[o->knob], dualpi2_kinds[o->kind].size,
				 &val))
			dualpi2_print_knob(o, val);
	}

	/* As text only when off: on is what the qdisc is there for. */
	if (dualpi2_read(tb[l4s], sizeof(__u8), &val)) {
		print_bool(PRINT_JSON, "l4s", NULL, val);
		if (!val)
			print_string(PRINT_FP, NULL, "%s ", "no_l4s");
	}
	return 0;
}

static double dualpi2_probability(__u32 prob)
{
	return (double)prob / UINT32_MAX;
}

/* key NULL: only as text. */
static void dualpi2_print_count(const char *key, const char *fmt, __u64 count)
{
	print_lluint(key ? PRINT_ANY : PRINT_FP, key, fmt, count);
}

static void dualpi2_print_queue(const char *text, const char *json,
				const struct tc_dualpi2_queue_xstats *q)
{
	open_json_object(json);
	print_string(PRINT_FP, NULL, "%s:", text);
	dualpi2_print_count("enqueued", " enqueued %llu", q->enqueued);
	dualpi2_print_count("enqueued-bytes", " (%llu bytes)",
			    q->enqueued_bytes);
	dualpi2_print_count("sent", " sent %llu", q->sent);
	dualpi2_print_count("sent-bytes", " (%llu bytes)", q->sent_bytes);
	dualpi2_print_count("packets", " queued %llu", q->packets);
	dualpi2_print_count("bytes", " (%llu bytes)", q->bytes);
	dualpi2_print_count("arrived-ce", " ce_in %llu", q->arrived_ce);

	print_nl();
	dualpi2_print_count(NULL, " marked %llu",
			    q->marked_classic + q->marked_coupled +
			    q->marked_native);
	dualpi2_print_count("marked-classic", " (classic %llu",
			    q->marked_classic);
	dualpi2_print_count("marked-coupled", ", coupled %llu",
			    q->marked_coupled);
	dualpi2_print_count("marked-native", ", native %llu)",
			    q->marked_native);

	print_nl();
	dualpi2_print_count(NULL, " dropped %llu",
			    q->dropped_limit + q->dropped_memory +
			    q->dropped_early + q->dropped_aqm +
			    q->dropped_overload + q->dropped_purge);
	dualpi2_print_count("dropped-limit", " (limit %llu", q->dropped_limit);
	dualpi2_print_count("dropped-memory", ", memory %llu",
			    q->dropped_memory);
	dualpi2_print_count("dropped-early", ", early %llu", q->dropped_early);
	dualpi2_print_count("dropped-aqm", ", aqm %llu", q->dropped_aqm);
	dualpi2_print_count("dropped-overload", ", overload %llu",
			    q->dropped_overload);
	dualpi2_print_count("dropped-purge", ", purge %llu)", q->dropped_purge);
	print_nl();
	close_json_object();
}

static void dualpi2_print_ext(const struct tc_dualpi2_ext_xstats *st)
{
	dualpi2_print_queue("Classic", "classic", &st->c);
	dualpi2_print_queue("L4S", "l4s", &st->l);

	print_float(PRINT_ANY, "prob-c", "prob_c %f",
		    dualpi2_probability(st->prob_c));
	print_float(PRINT_ANY, "prob-cl", " prob_cl %f",
		    dualpi2_probability(st->prob_cl));
	print_bool(PRINT_JSON, "overload", NULL, st->overload);
	print_string(PRINT_FP, NULL, " overload %s",
		     st->overload ? "yes" : "no");
	dualpi2_print_count("overload-count", " (%llu times",
			    st->overload_count);
	print_lluint(PRINT_JSON, "overload-ns", NULL, st->overload_ns);
	print_float(PRINT_FP, NULL, ", %.3fs)", st->overload_ns / 1e9);

	print_nl();
	dualpi2_print_count("unparsed", "unparsed %llu", st->unparsed);
	dualpi2_print_count("filter-dropped", " filter_dropped %llu",
			    st->filter_dropped);
	dualpi2_print_count("gso-failed", " gso_failed %llu", st->gso_failed);
	dualpi2_print_count("mark-failed", " mark_failed %llu",
			    st->mark_failed);
	print_nl();
}

/* Copies at most len bytes.  What the kernel did not send is zero. */
static void dualpi2_copy(void *to, size_t size, const void *from, size_t len)
{
	memset(to, 0, size);
	memcpy(to, from, len < size ? len : size);
}

static int dualpi2_print_xstats(const struct qdisc_util *qu,
				FILE *f, struct rtattr *xstats)
{
	const size_t ext_head = offsetof(struct tc_dualpi2_ext_xstats, c);
	struct tc_dualpi2_ext_xstats ext;
	struct tc_dualpi2_xstats st;
	const char *data;
	size_t len;

	if (!xstats)
		return 0;

	data = RTA_DATA(xstats);
	len = RTA_PAYLOAD(xstats);
	dualpi2_copy(&st, sizeof(st), data, len);

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
	print_int(PRINT_ANY, "credit", "credit %d", st.credit);
	print_string(PRINT_FP, NULL, " (%s)",
		     st.credit > 0 ? "C-queue" : "L-queue");
	print_nl();
	print_uint(PRINT_ANY, "memory-used", "memory_used %u",
		   st.memory_used);
	print_uint(PRINT_ANY, "max-memory-used", " (max %u)",
		   st.max_memory_used);
	print_uint(PRINT_ANY, "memory-limit", " of memory limit %u",
		   st.memory_limit);
	print_nl();

	if (len < TC_DUALPI2_EXT_XSTATS_OFFSET + ext_head)
		return 0;
	data += TC_DUALPI2_EXT_XSTATS_OFFSET;
	len -= TC_DUALPI2_EXT_XSTATS_OFFSET;
	dualpi2_copy(&ext, sizeof(ext), data, ext_head);
	if (ext.magic != TC_DUALPI2_EXT_XSTATS_MAGIC || ext.size < ext_head)
		return 0;
	dualpi2_copy(&ext, sizeof(ext), data, ext.size < len ? ext.size : len);
	dualpi2_print_ext(&ext);
	return 0;
}

struct qdisc_util dualpi2_qdisc_util = {
	.id = "dualpi2",
	.parse_qopt = dualpi2_parse_opt,
	.print_qopt = dualpi2_print_opt,
	.print_xstats = dualpi2_print_xstats,
};
