/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tc plugins of pi2, csaqm, vdq_csaqm and ppv share: options as tables,
 * and packet values.
 *
 * The parser accepts what the text output prints, and sends the same attributes.
 * Defaults are up to the kernel: options that were not given are not sent.
 */
#ifndef EXTRA_TC_OPTIONS_H
#define EXTRA_TC_OPTIONS_H

#include <math.h>

#include "tc_plugin.h"
#include "qdisc_options.h"

#include "csaqm_uapi.h"

/* tc looks for them by the names of the qdiscs. */
extern struct qdisc_util pi2_qdisc_util;
extern struct qdisc_util csaqm_qdisc_util;
extern struct qdisc_util vdq_csaqm_qdisc_util;
extern struct qdisc_util ppv_qdisc_util;

/* The kernel's limits. */
#define OPTION_TIME_MAX_US	(UINT32_MAX / 1000)
#define OPTION_RATE_MAX		UINT64_C(125000000000)	/* bytes/s */

#define OPTION_MSG_MAX		16384	/* tc has 64 kB; all of ppv are 9 kB */
#define OPTION_ATTRS		16
#define OPTION_CHOICES		2

/* Packet values: log10(value) * 65535 / 10, rounded down.  That is a whole
 * number for each of 100, 10^4 and so on, of which no logarithm may fall short.
 */
#define OPTION_CODES_PER_DECADE	6553.5
#define OPTION_CODE_SLACK	0.000000001
#define OPTION_VALUE_MAX		1e10
#define OPTION_VALUE_DIGITS	5	/* tell all codes apart */
#define OPTION_VALUE_DECIMAL	5	/* up to this exponent 1000, not 1e3 */

enum option_kind {
	OPTION_NUMBER,		/* u32 */
	OPTION_BYTE,		/* u8 */
	OPTION_PACKETS,		/* u32 */
	OPTION_TIME,		/* u32, us */
	OPTION_SHARE,		/* u32, 1/1000 */
	OPTION_GAIN,		/* u32, 1/256 Hz */
	OPTION_RATE,		/* u64, bytes/s */
	OPTION_CHOICE,		/* u8, one of two names */
	OPTION_FLAG,		/* u8, no value: the word says it all */
	OPTION_LIST,		/* what the plugin parses itself, repeatedly */
};

/* One word of the command line.  Words of one attribute exclude each other. */
struct option_spec {
	const char *word;
	enum option_kind kind;
	unsigned int attr;
	__u64 min;		/* OPTION_FLAG: the value */
	__u64 max;
	bool needed;		/* when a qdisc is added */
	const char *json_key;
	const char *const *names;	/* OPTION_CHOICE */
	const char *only;	/* the qdisc that has it; NULL: all with the table */
};

/* What one command asks for. */
struct option_request {
	const char *given[OPTION_ATTRS];	/* the word that set it */
	__u64 val[OPTION_ATTRS];
};

struct option_plugin {
	const char *name;
	const struct option_spec *options;
	unsigned int len;
	const char *usage;

	/* Returns how many arguments it took, or a negative number. */
	int (*parse_list)(struct option_request *req, int argc, char **argv);
};

static const char *const option_carries[] = {
	[TC_PPV_CARRY_MARK] = "mark",
	[TC_PPV_CARRY_IPV4_ID] = "ipv4_id",
};

static inline const struct option_unit *option_units(enum option_kind kind)
{
	static const struct option_unit shares[] = {
		{ "", 1e3 }, { NULL, 0 },
	};
	static const struct option_unit gains[] = {
		{ "", 256 }, { "Hz", 256 }, { NULL, 0 },
	};

	switch (kind) {
	case OPTION_PACKETS:
		return option_packet_units;
	case OPTION_TIME:
		return option_time_units;
	case OPTION_SHARE:
		return shares;
	case OPTION_GAIN:
		return gains;
	case OPTION_RATE:
		return option_rate_units;
	default:
		return option_no_units;
	}
}

static inline const char *option_what(enum option_kind kind)
{
	switch (kind) {
	case OPTION_PACKETS:
		return "a number of packets";
	case OPTION_TIME:
		return "a time";
	case OPTION_SHARE:
		return "a fraction";
	case OPTION_GAIN:
		return "a number of Hz";
	case OPTION_RATE:
		return "a rate";
	default:
		return "a number";
	}
}

/* ---- numbers ---- */

/* A number in the unit of its attribute, not checked for range. */
static inline bool option_get(double *num, enum option_kind kind, const char *arg)
{
	/* Decimal only. */
	return strncasecmp(arg, "0x", 2) != 0 &&
	       option_scan(num, option_units(kind), arg) &&
	       option_round(num, kind != OPTION_NUMBER &&
			    kind != OPTION_BYTE && kind != OPTION_PACKETS);
}

/* Exact, so that the parser reads the same value. */
static inline const char *option_format(char *buf, enum option_kind kind,
					__u64 val)
{
	double num = val;

	switch (kind) {
	case OPTION_PACKETS:
		snprintf(buf, OPTION_BUF_SIZE, "%llup", (unsigned long long)val);
		break;
	case OPTION_TIME:
		return option_format_time(buf, val);
	case OPTION_SHARE:
		snprintf(buf, OPTION_BUF_SIZE, "%.10g", num / 1000);
		break;
	case OPTION_GAIN: /* 15 digits hold any number of 1/256 */
		snprintf(buf, OPTION_BUF_SIZE, "%.15gHz", num / 256);
		break;
	case OPTION_RATE:
		return option_format_rate(buf, val);
	default:
		snprintf(buf, OPTION_BUF_SIZE, "%llu", (unsigned long long)val);
	}
	return buf;
}

/* ---- packet values ---- */

/* value: 1 or more */
static inline unsigned int option_code(double value)
{
	return log10(value) * OPTION_CODES_PER_DECADE + OPTION_CODE_SLACK;
}

/* The shortest decimal number that has this code: the one next to the middle of
 * those that have, to as many digits as it takes.
 */
static inline const char *option_format_value(char *buf, unsigned int coded)
{
	double middle = pow(10, (coded + 0.5) / OPTION_CODES_PER_DECADE);
	int digits, exponent;
	char *at;

	if (!coded)
		return "0";
	for (digits = 1; digits < OPTION_VALUE_DIGITS; digits++) {
		snprintf(buf, OPTION_BUF_SIZE, "%.*e", digits - 1, middle);
		if (option_code(strtod(buf, NULL)) == coded)
			break;
	}
	snprintf(buf, OPTION_BUF_SIZE, "%.*e", digits - 1, middle);
	at = buf + strcspn(buf, "e");
	exponent = strtol(at + 1, NULL, 10);
	if (exponent >= OPTION_VALUE_DECIMAL)
		sprintf(at, "e%d", exponent);
	else
		snprintf(buf, OPTION_BUF_SIZE, "%.*f",
			 exponent < digits ? digits - 1 - exponent : 0,
			 strtod(buf, NULL));
	return buf;
}

/* As a number and coded, in JSON. */
static inline void option_print_value(const char *key, const char *key_coded,
				      unsigned int coded)
{
	char buf[OPTION_BUF_SIZE];

	print_float(PRINT_JSON, key, NULL,
		    strtod(option_format_value(buf, coded), NULL));
	print_uint(PRINT_JSON, key_coded, NULL, coded);
}

/* ---- options to netlink ---- */

/* Ends the line of an error message. */
static inline void option_explain_range(const struct option_spec *opt)
{
	char min[OPTION_BUF_SIZE], max[OPTION_BUF_SIZE];

	if (opt->kind == OPTION_CHOICE)
		fprintf(stderr, "; expected %s or %s\n", opt->names[0],
			opt->names[1]);
	else
		fprintf(stderr, "; expected %s to %s\n",
			option_format(min, opt->kind, opt->min),
			option_format(max, opt->kind, opt->max));
}

static inline int option_parse_value(const struct option_plugin *plugin,
				     const struct option_spec *opt, __u64 *val,
				    const char *arg)
{
	const char *wrong = "is not in range";
	double num;

	if (opt->kind == OPTION_CHOICE) {
		for (*val = 0; *val < OPTION_CHOICES; ++*val)
			if (strcmp(arg, opt->names[*val]) == 0)
				return 0;
		wrong = "is unknown";
	} else if (!option_get(&num, opt->kind, arg)) {
		fprintf(stderr, "%s: %s: \"%s\" is not %s", plugin->name,
			opt->word, arg, option_what(opt->kind));
		option_explain_range(opt);
		return -1;
	} else if (num >= opt->min && num <= opt->max) {
		*val = num;
		return 0;
	}
	fprintf(stderr, "%s: %s: \"%s\" %s", plugin->name, opt->word, arg,
		wrong);
	option_explain_range(opt);
	return -1;
}

static inline bool option_has(const struct option_plugin *plugin,
			      const struct option_spec *opt)
{
	return !opt->only || strcmp(opt->only, plugin->name) == 0;
}

static inline const struct option_spec *
option_find(const struct option_plugin *plugin, const char *word)
{
	struct option_guess guess = option_guess_begin(word);
	char hint[OPTION_BUF_SIZE] = "";
	unsigned int i;

	for (i = 0; i < plugin->len; i++) {
		const struct option_spec *opt = &plugin->options[i];
		bool same = strcmp(word, opt->word) == 0;

		if (!option_has(plugin, opt)) {
			if (same)
				snprintf(hint, sizeof(hint), "an option of %s",
					 opt->only);
			continue;
		}
		if (same)
			return opt;
		option_guess_try(&guess, opt->word);
	}
	option_unknown(plugin->name, &guess, *hint ? hint : NULL);
	return NULL;
}

/* Two words of one attribute: the same, or words that exclude each other. */
static inline void option_explain_second(const struct option_plugin *plugin,
					 const struct option_spec *opt,
					const char *first, const char *value)
{
	fprintf(stderr, "%s: %s: ", plugin->name, opt->word);
	if (strcmp(first, opt->word) != 0)
		fprintf(stderr, "conflicts with %s; use one of the two\n",
			first);
	else if (opt->kind != OPTION_FLAG && value)
		fprintf(stderr,
			"given twice, the second time with \"%s\"; expected once\n",
			value);
	else
		fprintf(stderr, "given twice; expected once\n");
}

/* Prints what is wrong. */
static inline int option_parse(const struct option_plugin *plugin,
			       struct option_request *req, int argc, char **argv,
			      const struct nlmsghdr *n)
{
	const struct option_spec *opt;
	unsigned int i;

	for (; argc > 0; argc--, argv++) {
		const char *value = argc > 1 ? argv[1] : NULL;

		if (strcmp(*argv, "help") == 0) {
			fputs(plugin->usage, stderr);
			return -1;
		}
		opt = option_find(plugin, *argv);
		if (!opt)
			return -1;
		if (opt->kind == OPTION_LIST && plugin->parse_list) {
			int taken = plugin->parse_list(req, argc - 1, argv + 1);

			if (taken < 0)
				return -1;
			argc -= taken;
			argv += taken;
			continue;
		}
		if (req->given[opt->attr]) {
			option_explain_second(plugin, opt, req->given[opt->attr],
					      value);
			return -1;
		}
		req->given[opt->attr] = opt->word;
		req->val[opt->attr] = opt->min;
		if (opt->kind == OPTION_FLAG)
			continue;
		if (!value) {
			fprintf(stderr, "%s: %s: the value is missing",
				plugin->name, opt->word);
			option_explain_range(opt);
			return -1;
		}
		if (option_parse_value(plugin, opt, &req->val[opt->attr], value))
			return -1;
		argc--;
		argv++;
	}

	/* "replace" may find a qdisc to be changed. */
	for (i = 0; i < plugin->len && n->nlmsg_flags & NLM_F_EXCL; i++) {
		opt = &plugin->options[i];
		if (!opt->needed || req->given[opt->attr])
			continue;
		fprintf(stderr, "%s: %s: it is missing", plugin->name,
			opt->word);
		option_explain_range(opt);
		return -1;
	}
	return 0;
}

static inline unsigned int option_size(enum option_kind kind)
{
	switch (kind) {
	case OPTION_BYTE:
	case OPTION_CHOICE:
	case OPTION_FLAG:
		return sizeof(__u8);
	case OPTION_RATE:
		return sizeof(__u64);
	default:
		return sizeof(__u32);
	}
}

/* All but the lists. */
static inline int option_add(const struct option_plugin *plugin,
			     const struct option_request *req,
			    struct nlmsghdr *n)
{
	unsigned int i;

	for (i = 0; i < plugin->len; i++) {
		const struct option_spec *opt = &plugin->options[i];

		/* Of words that exclude each other, the one that was given. */
		if (!req->given[opt->attr] ||
		    strcmp(req->given[opt->attr], opt->word) != 0)
			continue;
		if (option_add_attr(n, OPTION_MSG_MAX, opt->attr,
				    option_size(opt->kind), req->val[opt->attr]))
			return -1;
	}
	return 0;
}

/* Of a plugin without lists, all of it. */
static inline int option_send(const struct option_plugin *plugin, int argc,
			      char **argv, struct nlmsghdr *n)
{
	struct option_request req = {};
	struct rtattr *nest;

	if (option_parse(plugin, &req, argc, argv, n))
		return -1;
	nest = addattr_nest(n, OPTION_MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	if (option_add(plugin, &req, n))
		return -1;
	addattr_nest_end(n, nest);
	return 0;
}

/* ---- netlink to text and JSON ---- */

/* Numbers of a newer kernel that this plugin does not know are not printed. */
static inline void option_print_option(const struct option_spec *opt, __u64 val)
{
	char buf[OPTION_BUF_SIZE];

	switch (opt->kind) {
	case OPTION_FLAG:
		if (val != opt->min)
			return;
		print_bool(PRINT_JSON, opt->json_key, NULL, val);
		print_string(PRINT_FP, NULL, "%s ", opt->word);
		return;
	case OPTION_CHOICE:
		if (val >= OPTION_CHOICES)
			return;
		print_string(PRINT_JSON, opt->json_key, NULL, opt->names[val]);
		print_string(PRINT_FP, NULL, "%s ", opt->word);
		print_string(PRINT_FP, NULL, "%s ", opt->names[val]);
		return;
	case OPTION_SHARE:
		print_float(PRINT_JSON, opt->json_key, NULL, val / 1e3);
		break;
	case OPTION_GAIN:
		print_float(PRINT_JSON, opt->json_key, NULL, val / 256.0);
		break;
	default:
		print_lluint(PRINT_JSON, opt->json_key, NULL, val);
	}
	print_string(PRINT_FP, NULL, "%s ", opt->word);
	print_string(PRINT_FP, NULL, "%s ", option_format(buf, opt->kind, val));
}

static inline void option_print(const struct option_plugin *plugin,
				struct rtattr *nest)
{
	struct rtattr *tb[OPTION_ATTRS] = {};
	unsigned int i;
	__u64 val;

	option_find_attrs(tb, OPTION_ATTRS - 1, RTA_DATA(nest),
			  RTA_PAYLOAD(nest));
	for (i = 0; i < plugin->len; i++) {
		const struct option_spec *opt = &plugin->options[i];

		if (opt->kind != OPTION_LIST && option_has(plugin, opt) &&
		    option_read(tb[opt->attr], option_size(opt->kind), &val))
			option_print_option(opt, val);
	}
}

#endif /* EXTRA_TC_OPTIONS_H */
