// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc front end of the dualpi2 qdisc (RFC 9332): command line to netlink, and
 * options from netlink to text and JSON.  q_dualpi2_stats.h prints statistics.
 *
 * The parser accepts what the text output prints, and sends the same attributes.
 * Defaults are up to the kernel: options that were not given are not sent.
 */
#ifdef DUALPI2_PLUGIN
/* Distributions ship no headers of tc. */
#include "tc_plugin.h"
#else
#include "utils.h"
#include "tc_util.h"
#endif

#include <arpa/inet.h>
#include <stdarg.h>
#include <linux/dualpi2.h>
#include <linux/dualpi2_options.h>

#include "qdisc_options.h"
#include "q_dualpi2_options.h"
#include "q_dualpi2_stats.h"

#define DUALPI2_MSG_MAX		1024
#define DUALPI2_HELP_COLUMNS	72

/* IEEE 802.1Q: a service tag, a customer tag, and one more. */
#define DUALPI2_VLAN_BYTES	4
#define DUALPI2_VLANS_MAX	3

/* What a command sets. */
struct dualpi2_request {
	__u64 given;		/* bit N: send val[N] */
	__u64 seen;		/* bit N: dualpi2_options[N].word was given */
	__u64 val[DUALPI2_KNOBS];
	const struct dualpi2_preset *preset;
	const struct dualpi2_rtt *rtt;
	unsigned int vlans;
};

/* The kind that the command names. */
static const char *dualpi2_name = "dualpi2";

/* Begins an error message. */
__attribute__((format(printf, 1, 2)))
static void dualpi2_error(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", dualpi2_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

/* An option in the usage, with its value or its keywords. */
static void dualpi2_explain_option(const struct dualpi2_option *opt)
{
	const struct dualpi2_option *end =
		dualpi2_options + ARRAY_SIZE(dualpi2_options);
	const char *before = " [ ";

	do {
		if (before[1] == '|' && dualpi2_is_same_word(opt))
			fprintf(stderr, "|%s", dualpi2_kinds[opt->kind].arg);
		else if (opt->kind == DUALPI2_WORD)
			fprintf(stderr, "%s%s", before, opt->word);
		else
			fprintf(stderr, "%s%s %s", before, opt->word,
				dualpi2_kinds[opt->kind].arg);
		before = " | ";
	} while (++opt < end && !opt->line);
	fprintf(stderr, " ]");
}

/* Words in lines, after what was printed before. */
static void dualpi2_explain_word(unsigned int *column, const char *word)
{
	if (*column + strlen(word) >= DUALPI2_HELP_COLUMNS) {
		fprintf(stderr, "\n ");
		*column = 1;
	}
	*column += fprintf(stderr, " %s", word);
}

static void dualpi2_explain(void)
{
	unsigned int i, column, line;
	bool more = true;
	int indent = 0;

	for (line = 1; more; line++) {
		if (line == 1)
			indent = fprintf(stderr, "Usage: ... %s", dualpi2_name);
		else
			fprintf(stderr, "%*s", indent, "");
		more = false;
		for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++) {
			if (dualpi2_options[i].line == line)
				dualpi2_explain_option(&dualpi2_options[i]);
			more |= dualpi2_options[i].line > line;
		}
		if (line == DUALPI2_RTT_LINE)
			fprintf(stderr, " [ RTT ]");
		if (line == DUALPI2_PRESET_LINE)
			fprintf(stderr, " [ PRESET [ %s ]... ]",
				dualpi2_vlan_word);
		fprintf(stderr, "\n");
	}
	fprintf(stderr,
		"TIME: us, or with the suffix ms or s.  RATE: bit/s, or with kbit, mbit,\n"
		"gbit, bps etc.  BYTES of memlimit: bytes, or with k, m or g.\n"
		"PACKETS: a number; step_thresh needs the suffix p.\n"
		"DSCP: a number, or a name such as EF, CS5, AF41, VA or LE.\n"
		"RTT is one of");
	column = DUALPI2_HELP_COLUMNS;
	for (i = 0; i < ARRAY_SIZE(dualpi2_rtts); i++)
		dualpi2_explain_word(&column, dualpi2_rtts[i].word);
	fprintf(stderr, "\nPRESET is one of");
	column = DUALPI2_HELP_COLUMNS;
	for (i = 0; i < ARRAY_SIZE(dualpi2_presets); i++)
		dualpi2_explain_word(&column, dualpi2_presets[i].word);
	fprintf(stderr, "\n");
}

static void dualpi2_suggest(const char *typed)
{
	struct option_guess guess = option_guess_begin(typed);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++)
		option_guess_try(&guess, dualpi2_options[i].word);
	for (i = 0; i < ARRAY_SIZE(dualpi2_presets); i++)
		option_guess_try(&guess, dualpi2_presets[i].word);
	for (i = 0; i < ARRAY_SIZE(dualpi2_rtts); i++)
		option_guess_try(&guess, dualpi2_rtts[i].word);
	option_guess_try(&guess, dualpi2_vlan_word);
	option_unknown(dualpi2_name, &guess, NULL);
}

/* The range of a list is the range of its members. */
static enum dualpi2_kind dualpi2_range_kind(const struct dualpi2_option *opt)
{
	return opt->kind == DUALPI2_DSCPS ? DUALPI2_NUMBER : opt->kind;
}

/* Ends the line of an error message. */
static void dualpi2_explain_range(const struct dualpi2_option *opt)
{
	char min[OPTION_BUF_SIZE], max[OPTION_BUF_SIZE];
	const char *before = "; expected ";

	do {
		enum dualpi2_kind kind = dualpi2_range_kind(opt);

		if (opt->or_zero) {
			fprintf(stderr, "%s%s", before,
				dualpi2_format(min, kind, 0));
			before = ", or ";
		}
		fprintf(stderr, "%s%s%s to %s", before,
			opt->kind == DUALPI2_DSCPS ? "names, or " : "",
			dualpi2_format(min, kind, opt->min),
			dualpi2_format(max, kind, opt->max));
		before = ", or ";
	} while (dualpi2_is_same_word(++opt));
	fprintf(stderr, "\n");
}

/* A number in the unit of opt's attribute, not checked for range. */
static bool dualpi2_get(const struct dualpi2_option *opt, const char *arg,
			double *num)
{
	bool negative = *arg == '-' && opt->min < 0;

	if (!option_scan(num, dualpi2_kinds[opt->kind].units, arg + negative) ||
	    !option_round(num, dualpi2_kinds[opt->kind].fraction))
		return false;
	if (negative)
		*num = -*num;
	return true;
}

/* Overhead and MPU need a framing other than raw.  If a command has both, the
 * later word takes effect.
 */
static void dualpi2_set(struct dualpi2_request *req, unsigned int knob,
			__u64 val)
{
	const __u64 lengths = DUALPI2_BIT(DUALPI2_OVERHEAD) |
			      DUALPI2_BIT(DUALPI2_MPU);

	req->val[knob] = val;
	req->given |= DUALPI2_BIT(knob);
	if (knob == DUALPI2_FRAMING && val == TC_DUALPI2_FRAMING_RAW)
		req->given &= ~lengths;
	else if ((DUALPI2_BIT(knob) & lengths) &&
		 (req->given & DUALPI2_BIT(DUALPI2_FRAMING)) &&
		 req->val[DUALPI2_FRAMING] == TC_DUALPI2_FRAMING_RAW)
		req->val[DUALPI2_FRAMING] = TC_DUALPI2_FRAMING_NOATM;
}

/* A name, or a decimal or hexadecimal number, up to a comma or the end.  Returns
 * what follows, or NULL.
 */
static const char *dualpi2_get_dscp(const char *arg, unsigned long *dscp)
{
	size_t len = strcspn(arg, ",");
	bool hex = arg[0] == '0' && (arg[1] == 'x' || arg[1] == 'X');
	unsigned int i;
	char *end;

	for (i = 0; i < ARRAY_SIZE(dualpi2_dscps); i++) {
		*dscp = dualpi2_dscps[i].dscp;
		if (strlen(dualpi2_dscps[i].name) == len &&
		    strncasecmp(arg, dualpi2_dscps[i].name, len) == 0)
			return arg + len;
	}
	/* strtoul() also accepts blanks, signs, and 0x alone. */
	if (!strchr("0123456789", *arg))
		return NULL;
	*dscp = strtoul(arg, &end, hex ? 16 : 10);
	return end > arg && end == arg + len ? end : NULL;
}

static int dualpi2_parse_dscps(struct dualpi2_request *req,
			       const struct dualpi2_option *opt,
			       const char *arg)
{
	const char *at = arg;
	unsigned long dscp;
	__u64 dscps = 0;

	for (;; at++) {
		at = dualpi2_get_dscp(at, &dscp);
		if (!at)
			break;
		if (dscp > (unsigned long)opt->max) {
			dualpi2_error("%s: \"%s\" is not in range",
				      opt->word, arg);
			dualpi2_explain_range(opt);
			return -1;
		}
		if (dscps >> dscp & 1) {
			dualpi2_error("%s: \"%s\" contains %lu twice; expected once\n",
				      opt->word, arg, dscp);
			return -1;
		}
		dscps |= UINT64_C(1) << dscp;
		if (!*at) {
			dualpi2_set(req, opt->knob, dscps);
			return 0;
		}
	}
	dualpi2_error("%s: \"%s\" is not %s", opt->word, arg,
		      dualpi2_kinds[opt->kind].what);
	dualpi2_explain_range(opt);
	return -1;
}

static int dualpi2_parse_value(struct dualpi2_request *req,
			       const struct dualpi2_option *opt,
			       const char *arg)
{
	const struct dualpi2_option *first = opt;
	double num;

	if (opt->kind == DUALPI2_DSCPS)
		return dualpi2_parse_dscps(req, opt, arg);
	do {
		if (!dualpi2_get(opt, arg, &num))
			continue;
		if (!(num >= opt->min && num <= opt->max) &&
		    !(num == 0 && opt->or_zero)) {
			dualpi2_error("%s: \"%s\" is not in range",
				      opt->word, arg);
			dualpi2_explain_range(first);
			return -1;
		}
		dualpi2_set(req, opt->knob, (__s64)num);
		return 0;
	} while (dualpi2_is_same_word(++opt));

	dualpi2_error("%s: \"%s\" is not %s", first->word, arg,
		      dualpi2_kinds[first->kind].what);
	for (opt = first + 1; dualpi2_is_same_word(opt); opt++)
		fprintf(stderr, " or %s", dualpi2_kinds[opt->kind].what);
	dualpi2_explain_range(first);
	return -1;
}

static int dualpi2_parse_preset(struct dualpi2_request *req,
				const struct dualpi2_preset *preset)
{
	if (req->preset == preset) {
		dualpi2_error("%s: given twice; expected once\n",
			      preset->word);
		return -1;
	}
	if (req->preset) {
		dualpi2_error("%s: conflicts with %s; use one of the two\n",
			      preset->word, req->preset->word);
		return -1;
	}
	req->preset = preset;
	dualpi2_set(req, DUALPI2_FRAMING, preset->framing);
	dualpi2_set(req, DUALPI2_OVERHEAD, preset->overhead);
	dualpi2_set(req, DUALPI2_MPU, preset->mpu);
	return 0;
}

/* A keyword for the RTT counts like max_rtt at its place in the command. */
static int dualpi2_parse_rtt(struct dualpi2_request *req,
			     const struct dualpi2_rtt *rtt)
{
	if (req->rtt == rtt) {
		dualpi2_error("%s: given twice; expected once\n",
			      rtt->word);
		return -1;
	}
	if (req->rtt) {
		dualpi2_error("%s: conflicts with %s; use one of the two\n",
			      rtt->word, req->rtt->word);
		return -1;
	}
	req->rtt = rtt;
	dualpi2_set(req, DUALPI2_MAX_RTT, rtt->max_us);
	if (rtt->typical_us)
		dualpi2_set(req, DUALPI2_TYPICAL_RTT, rtt->typical_us);
	req->given &= ~DUALPI2_RTT_KNOBS;
	return 0;
}

static int dualpi2_parse_vlan(struct dualpi2_request *req)
{
	const struct dualpi2_option *opt = dualpi2_option_of(DUALPI2_OVERHEAD);
	__s64 overhead = req->val[DUALPI2_OVERHEAD];

	if (!(req->given & DUALPI2_BIT(DUALPI2_OVERHEAD))) {
		dualpi2_error("%s: no overhead to add to; give it after a preset or overhead\n",
			      dualpi2_vlan_word);
		return -1;
	}
	if (req->vlans++ == DUALPI2_VLANS_MAX) {
		dualpi2_error("%s: given too often; expected at most %d times\n",
			      dualpi2_vlan_word, DUALPI2_VLANS_MAX);
		return -1;
	}
	overhead += DUALPI2_VLAN_BYTES;
	if (overhead > opt->max) {
		dualpi2_error("%s: overhead would be \"%lld\", which is not in range",
			      dualpi2_vlan_word, (long long)overhead);
		dualpi2_explain_range(opt);
		return -1;
	}
	req->val[DUALPI2_OVERHEAD] = overhead;
	return 0;
}

/* Sets knob to a value that follows from max_rtt and typical_rtt, unless the
 * command sets knob after these.
 */
static int dualpi2_derive(struct dualpi2_request *req, unsigned int knob,
			  double num)
{
	const struct dualpi2_option *opt = dualpi2_option_of(knob);
	char buf[OPTION_BUF_SIZE];

	if (req->given & DUALPI2_BIT(knob))
		return 0;

	if (!(num >= opt->min - 0.5 && num < opt->max + 0.5)) {
		dualpi2_error("max_rtt: \"%s\"",
			      dualpi2_format(buf, DUALPI2_TIME,
					     req->val[DUALPI2_MAX_RTT]));
		fprintf(stderr,
			" with typical_rtt %s is not in range: it gives %s ",
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
	__u64 *max = &req->val[DUALPI2_MAX_RTT];
	__u64 *typ = &req->val[DUALPI2_TYPICAL_RTT];
	double max_sec, tupdate;
	char buf[OPTION_BUF_SIZE];
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
		dualpi2_error("typical_rtt: \"%s\" is not in range",
			      dualpi2_format(buf, DUALPI2_TIME, *typ));
		fprintf(stderr, "; expected at most max_rtt, %s\n",
			dualpi2_format(buf, DUALPI2_TIME, *max));
		return -1;
	}

	tupdate = *typ < *max / 3 ? *typ : *max / 3;
	max_sec = *max / 1e6;
	if (dualpi2_derive(req, DUALPI2_TARGET, *typ) ||
	    dualpi2_derive(req, DUALPI2_TUPDATE, tupdate) ||
	    dualpi2_derive(req, DUALPI2_ALPHA,
			   0.1 * DUALPI2_GAIN_PER_HZ * tupdate / 1e6 /
			   max_sec / max_sec) ||
	    dualpi2_derive(req, DUALPI2_BETA,
			   0.3 * DUALPI2_GAIN_PER_HZ / max_sec))
		return -1;

	dualpi2_error("max_rtt %s",
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

/* Checked last: later words of the command may have removed one of the two. */
static int dualpi2_check_bypass(const struct dualpi2_request *req)
{
	const __u64 both = DUALPI2_BIT(DUALPI2_BYPASS) |
			   DUALPI2_BIT(DUALPI2_BANDWIDTH);

	if ((req->given & both) != both || !req->val[DUALPI2_BYPASS] ||
	    !req->val[DUALPI2_BANDWIDTH])
		return 0;
	dualpi2_error("bypass: conflicts with bandwidth; use one of the two\n");
	return -1;
}

/* Keywords that set several knobs.  Returns false if word is none of them. */
static bool dualpi2_parse_keyword(struct dualpi2_request *req,
				  const char *word, int *err)
{
	const struct dualpi2_preset *preset = dualpi2_find_preset(word);
	const struct dualpi2_rtt *rtt = dualpi2_find_rtt(word);

	if (preset)
		*err = dualpi2_parse_preset(req, preset);
	else if (rtt)
		*err = dualpi2_parse_rtt(req, rtt);
	else if (strcmp(word, dualpi2_vlan_word) == 0)
		*err = dualpi2_parse_vlan(req);
	else
		return false;
	return true;
}

static int dualpi2_check_once(struct dualpi2_request *req,
			      const struct dualpi2_option *opt,
			      const char *value)
{
	__u64 seen = DUALPI2_BIT(opt - dualpi2_options);

	if (!(req->seen & seen)) {
		req->seen |= seen;
		return 0;
	}
	dualpi2_error("%s: given twice", opt->word);
	if (opt->kind != DUALPI2_WORD && value)
		fprintf(stderr, ", the second time with \"%s\"", value);
	fprintf(stderr, "; expected once\n");
	return -1;
}

static int dualpi2_parse(struct dualpi2_request *req, int argc, char **argv)
{
	const __u64 rtt = DUALPI2_BIT(DUALPI2_MAX_RTT) |
			  DUALPI2_BIT(DUALPI2_TYPICAL_RTT);
	const struct dualpi2_option *opt;
	int err = 0;

	for (; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "help") == 0) {
			dualpi2_explain();
			return -1;
		}
		if (dualpi2_parse_keyword(req, *argv, &err)) {
			if (err)
				return -1;
			continue;
		}
		opt = dualpi2_find(*argv);
		if (!opt) {
			dualpi2_suggest(*argv);
			return -1;
		}
		if (dualpi2_check_once(req, opt, argc > 1 ? argv[1] : NULL))
			return -1;
		if (opt->kind == DUALPI2_WORD) {
			dualpi2_set(req, opt->knob, opt->min);
			continue;
		}
		if (--argc <= 0) {
			dualpi2_error("%s: the value is missing",
				      opt->word);
			dualpi2_explain_range(opt);
			return -1;
		}
		if (dualpi2_parse_value(req, opt, *++argv))
			return -1;
		if (DUALPI2_BIT(opt->knob) & rtt)
			req->given &= ~DUALPI2_RTT_KNOBS;
	}

	if (dualpi2_check_bypass(req))
		return -1;
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

		if (opt->knob < first || opt->knob >= end ||
		    !(req->given & DUALPI2_BIT(opt->knob)))
			continue;
		if (option_add_attr(n, DUALPI2_MSG_MAX, opt->knob - first,
				    dualpi2_size(opt->knob),
				    req->val[opt->knob]))
			return -1;
		/* The table may have more words of this knob. */
		req->given &= ~DUALPI2_BIT(opt->knob);
	}
	return 0;
}

static int dualpi2_parse_opt(const struct qdisc_util *qu,
			     int argc, char **argv, struct nlmsghdr *n,
			     const char *dev)
{
	const __u64 ext_knobs = DUALPI2_BIT(DUALPI2_TC_FIRST) -
				DUALPI2_BIT(DUALPI2_EXT_FIRST);
	struct dualpi2_request req = {};
	struct rtattr *tail, *ext;

	dualpi2_name = qu->id;
	if (dualpi2_parse(&req, argc, argv))
		return -1;

	tail = addattr_nest(n, DUALPI2_MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	if (dualpi2_add(n, &req, 0, DUALPI2_EXT_FIRST))
		return -1;
	if (req.given & ext_knobs) {
		ext = addattr_nest(n, DUALPI2_MSG_MAX,
				   TCA_DUALPI2_EXT | NLA_F_NESTED);
		if (dualpi2_add(n, &req, DUALPI2_EXT_FIRST, DUALPI2_TC_FIRST))
			return -1;
		addattr_nest_end(n, ext);
	}
	addattr_nest_end(n, tail);
	return 0;
}

static bool dualpi2_read(const struct rtattr *rta, unsigned int knob,
			 __u64 *val)
{
	const struct dualpi2_option *opt = dualpi2_option_of(knob);

	if (!option_read(rta, dualpi2_kinds[opt->kind].size, val))
		return false;
	if (opt->min < 0)
		*val = (__s32)*val;
	return true;
}

static void dualpi2_print_word(const struct dualpi2_option *opt)
{
	if (opt->json_bool)
		print_bool(PRINT_JSON, opt->json_key, NULL, opt->min);
	else if (opt->json_word)
		print_string(PRINT_JSON, opt->json_key, NULL, opt->json_word);
	else if (opt->json_key)
		print_null(PRINT_JSON, opt->json_key, NULL, NULL);
	if (!opt->silent)
		print_string(PRINT_FP, NULL, "%s ", opt->word);
}

static void dualpi2_print_dscps(const char *json_key, __u64 dscps)
{
	unsigned int i;

	open_json_array(PRINT_JSON, json_key);
	for (i = 0; i <= DUALPI2_DSCP_MAX; i++)
		if (dscps >> i & 1)
			print_uint(PRINT_JSON, NULL, NULL, i);
	close_json_array(PRINT_JSON, NULL);
}

static void dualpi2_print_knob(const struct dualpi2_option *opt, __u64 val,
			       bool as_text)
{
	char buf[OPTION_BUF_SIZE];

	switch (opt->kind) {
	case DUALPI2_WORD:
		if (val == (__u64)opt->min)
			dualpi2_print_word(opt);
		return;
	case DUALPI2_GAIN:
		print_float(PRINT_JSON, opt->json_key, NULL,
			    (double)val / DUALPI2_GAIN_PER_HZ);
		break;
	case DUALPI2_LENGTH:
		print_int(PRINT_JSON, opt->json_key, NULL, val);
		break;
	case DUALPI2_RATE:
		print_lluint(PRINT_JSON, opt->json_key, NULL, val);
		break;
	case DUALPI2_DSCPS:
		dualpi2_print_dscps(opt->json_key, val);
		break;
	default:
		print_uint(PRINT_JSON, opt->json_key, NULL, val);
	}
	if (!as_text || (opt->silent && val == opt->silent_val))
		return;
	print_string(PRINT_FP, NULL, "%s ", opt->word);
	print_string(PRINT_FP, NULL, "%s ",
		     dualpi2_format(buf, opt->kind, val));
}

static const struct rtattr *dualpi2_find_ext(const struct rtattr *options)
{
	const struct rtattr *rta = RTA_DATA(options), *ext = NULL;
	int len = RTA_PAYLOAD(options);

	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len))
		if ((rta->rta_type & NLA_TYPE_MASK) == TCA_DUALPI2_EXT)
			ext = rta;
	return ext;
}

static int dualpi2_print_opt(const struct qdisc_util *qu,
			     FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[DUALPI2_KNOBS] = {};
	const struct rtattr *ext;
	unsigned int i;
	__u64 val;
	bool raw;

	if (!opt)
		return 0;

	option_find_attrs(tb, DUALPI2_EXT_FIRST - 1, RTA_DATA(opt),
			  RTA_PAYLOAD(opt));
	ext = dualpi2_find_ext(opt);
	if (ext)
		option_find_attrs(&tb[DUALPI2_EXT_FIRST],
				  DUALPI2_TC_FIRST - DUALPI2_EXT_FIRST - 1,
				  RTA_DATA(ext), RTA_PAYLOAD(ext));

	raw = dualpi2_read(tb[DUALPI2_FRAMING], DUALPI2_FRAMING, &val) &&
	      val == TC_DUALPI2_FRAMING_RAW;
	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++) {
		const struct dualpi2_option *o = &dualpi2_options[i];
		bool unused = raw && o->kind == DUALPI2_LENGTH;

		if (dualpi2_read(tb[o->knob], o->knob, &val))
			dualpi2_print_knob(o, val, !unused);
	}
	return 0;
}

struct qdisc_util dualpi2_qdisc_util = {
	.id = "dualpi2",
	.parse_qopt = dualpi2_parse_opt,
	.print_qopt = dualpi2_print_opt,
	.print_xstats = dualpi2_print_xstats,
};

/* The same options for all transmit queues of a device. */
struct qdisc_util dualpi2_mq_qdisc_util = {
	.id = "dualpi2_mq",
	.parse_qopt = dualpi2_parse_opt,
	.print_qopt = dualpi2_print_opt,
	.print_xstats = dualpi2_print_xstats,
};
