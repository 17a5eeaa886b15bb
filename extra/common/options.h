/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tc plugins of pi2, csaqm, vdq_csaqm and ppv share: options as tables,
 * numbers with units, packet values, and netlink in both directions.
 *
 * What the text output says, the parser accepts, and it leads to the same
 * bytes.  Defaults are the kernel's business: an option that was not given is
 * not sent.
 */
#ifndef EXTRA_TC_OPTIONS_H
#define EXTRA_TC_OPTIONS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tc_plugin.h"

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
#define OPTION_BUF_SIZE		64
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

	/* Options behind these belong to another qdisc alone. */
	unsigned int len_elsewhere;
	const char *elsewhere;

	/* Returns how many arguments it took, or a negative number. */
	int (*parse_list)(struct option_request *req, int argc, char **argv);
};

struct option_unit {
	const char *name;
	double factor;
};

static const char *const option_carries[] = {
	[TC_PPV_CARRY_MARK] = "mark",
	[TC_PPV_CARRY_IPV4_ID] = "ipv4_id",
};

static inline const struct option_unit *option_units(enum option_kind kind)
{
	static const struct option_unit none[] = {
		{ "", 1 }, { NULL, 0 },
	};
	static const struct option_unit packets[] = {
		{ "", 1 }, { "p", 1 }, { "pkt", 1 }, { "pkts", 1 },
		{ "packet", 1 }, { "packets", 1 }, { NULL, 0 },
	};
	static const struct option_unit times[] = {
		{ "", 1 }, { "us", 1 }, { "usec", 1 }, { "usecs", 1 },
		{ "ms", 1e3 }, { "msec", 1e3 }, { "msecs", 1e3 },
		{ "s", 1e6 }, { "sec", 1e6 }, { "secs", 1e6 },
		{ NULL, 0 },
	};
	static const struct option_unit shares[] = {
		{ "", 1e3 }, { NULL, 0 },
	};
	static const struct option_unit gains[] = {
		{ "", 256 }, { "Hz", 256 }, { NULL, 0 },
	};
	/* As tc has them: bps is bytes. */
	static const struct option_unit rates[] = {
		{ "", 1 / 8.0 }, { "bit", 1 / 8.0 },
		{ "kbit", 1e3 / 8 }, { "mbit", 1e6 / 8 },
		{ "gbit", 1e9 / 8 }, { "tbit", 1e12 / 8 },
		{ "kibit", 0x1p10 / 8 }, { "mibit", 0x1p20 / 8 },
		{ "gibit", 0x1p30 / 8 }, { "tibit", 0x1p40 / 8 },
		{ "bps", 1 }, { "kbps", 1e3 }, { "mbps", 1e6 },
		{ "gbps", 1e9 }, { "tbps", 1e12 },
		{ "kibps", 0x1p10 }, { "mibps", 0x1p20 },
		{ "gibps", 0x1p30 }, { "tibps", 0x1p40 },
		{ NULL, 0 },
	};

	switch (kind) {
	case OPTION_PACKETS:
		return packets;
	case OPTION_TIME:
		return times;
	case OPTION_SHARE:
		return shares;
	case OPTION_GAIN:
		return gains;
	case OPTION_RATE:
		return rates;
	default:
		return none;
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

/* A number and its unit, not rounded. */
static inline bool option_scan(double *num, const struct option_unit *unit,
			       const char *arg)
{
	char *end;

	/* strtod() also takes blanks, signs, nan, inf and hexadecimal numbers. */
	if (!strchr("0123456789.", *arg) || strncasecmp(arg, "0x", 2) == 0)
		return false;
	*num = strtod(arg, &end);
	if (end == arg)
		return false;
	for (; unit->name; unit++)
		if (strcasecmp(end, unit->name) == 0)
			break;
	*num *= unit->factor;
	return unit->name;
}

/* A number in the unit of its attribute, not checked for range. */
static inline bool option_get(double *num, enum option_kind kind, const char *arg)
{
	if (!option_scan(num, option_units(kind), arg))
		return false;
	/* Beyond 2^53 there are no fractions, and no conversion to integer. */
	if (*num >= UINT64_C(1) << 53)
		return true;
	if (kind == OPTION_NUMBER || kind == OPTION_BYTE ||
	    kind == OPTION_PACKETS)
		return *num == (__u64)*num;
	*num = (__u64)(*num + 0.5);
	return true;
}

/* Exact, and as short as that allows: 15ms, 16.384ms, 1.234567s, 2500Kbit. */
static inline const char *option_format(char *buf, enum option_kind kind,
					__u64 val)
{
	static const char *const rates[] = {
		"bit", "Kbit", "Mbit", "Gbit", "Tbit",
	};
	static const char *const times[] = { "us", "ms", "s" };
	unsigned int unit = 0;
	double num = val;

	switch (kind) {
	case OPTION_PACKETS:
		snprintf(buf, OPTION_BUF_SIZE, "%llup", (unsigned long long)val);
		break;
	case OPTION_TIME:
		for (; num >= 1000 && unit < ARRAY_SIZE(times) - 1; unit++)
			num /= 1000;
		snprintf(buf, OPTION_BUF_SIZE, "%.10g%s", num, times[unit]);
		break;
	case OPTION_SHARE:
		snprintf(buf, OPTION_BUF_SIZE, "%.10g", num / 1000);
		break;
	case OPTION_GAIN: /* 15 digits hold any number of 1/256 */
		snprintf(buf, OPTION_BUF_SIZE, "%.15gHz", num / 256);
		break;
	case OPTION_RATE:
		for (val *= 8; val && val % 1000 == 0; val /= 1000)
			if (++unit == ARRAY_SIZE(rates) - 1) {
				val /= 1000;
				break;
			}
		snprintf(buf, OPTION_BUF_SIZE, "%llu%s", (unsigned long long)val,
			 rates[unit]);
		break;
	default:
		snprintf(buf, OPTION_BUF_SIZE, "%llu", (unsigned long long)val);
	}
	return buf;
}

/* To three digits: for reading. */
static inline const char *option_format_ns(char *buf, __u64 ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	unsigned int unit = 0;
	double num = ns;

	for (; num >= 999.5 && unit < ARRAY_SIZE(units) - 1; unit++)
		num /= 1000;
	snprintf(buf, OPTION_BUF_SIZE, num < 999.5 ? "%.3g%s" : "%.0f%s", num,
		 units[unit]);
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

/* Ends the line that the caller began with what it was that was wrong. */
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

static inline const struct option_spec *
option_find(const struct option_plugin *plugin, const char *word)
{
	unsigned int i;

	for (i = 0; i < plugin->len; i++)
		if (strcmp(word, plugin->options[i].word) == 0)
			return &plugin->options[i];

	fprintf(stderr, "%s: \"%s\" is not an option", plugin->name, word);
	for (; i < plugin->len_elsewhere; i++)
		if (strcmp(word, plugin->options[i].word) == 0)
			fprintf(stderr, ", but one of %s", plugin->elsewhere);
	fprintf(stderr, "; expected one of:\n%s", plugin->usage);
	return NULL;
}

/* Two words of one attribute: the same, or words that exclude each other. */
static inline void option_explain_second(const struct option_plugin *plugin,
					 const struct option_spec *opt,
					const char *first, const char *value)
{
	fprintf(stderr, "%s: %s: ", plugin->name, opt->word);
	if (strcmp(first, opt->word) != 0)
		fprintf(stderr,
			"there is %s already; expected one of the two\n",
			first);
	else if (opt->kind != OPTION_FLAG && value)
		fprintf(stderr,
			"duplicate, \"%s\" is the second value; expected once\n",
			value);
	else
		fprintf(stderr, "duplicate; expected once\n");
}

/* Says itself what is wrong. */
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
		unsigned int size = option_size(opt->kind);
		__u64 val = req->val[opt->attr];
		__u32 val32 = val;
		__u8 val8 = val;
		const void *data = &val;

		/* Of words that exclude each other, by the one that was there. */
		if (!req->given[opt->attr] ||
		    strcmp(req->given[opt->attr], opt->word) != 0)
			continue;
		if (size == sizeof(val8))
			data = &val8;
		else if (size == sizeof(val32))
			data = &val32;
		if (addattr_l(n, OPTION_MSG_MAX, opt->attr, data, size))
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

/* Type N among len bytes in tb[N]; of several of a type, the last one. */
static inline void option_find_attrs(struct rtattr *tb[], unsigned int max,
				     struct rtattr *rta, int len)
{
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		unsigned int type = rta->rta_type & NLA_TYPE_MASK;

		if (type <= max)
			tb[type] = rta;
	}
}

static inline bool option_read(const struct rtattr *rta, unsigned int size,
			       __u64 *val)
{
	__u32 val32;
	__u8 val8;

	if (!rta || RTA_PAYLOAD(rta) < size)
		return false;
	if (size == sizeof(val8)) {
		memcpy(&val8, RTA_DATA(rta), sizeof(val8));
		*val = val8;
	} else if (size == sizeof(val32)) {
		memcpy(&val32, RTA_DATA(rta), sizeof(val32));
		*val = val32;
	} else {
		memcpy(val, RTA_DATA(rta), sizeof(*val));
	}
	return true;
}

/* What a newer kernel may mean by a number is not for us to say. */
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

		if (opt->kind != OPTION_LIST &&
		    option_read(tb[opt->attr], option_size(opt->kind), &val))
			option_print_option(opt, val);
	}
}

/* What the kernel did not send is zero. */
static inline void option_copy(void *to, size_t size, const struct rtattr *rta)
{
	size_t len = RTA_PAYLOAD(rta);

	memset(to, 0, size);
	memcpy(to, RTA_DATA(rta), len < size ? len : size);
}

/* key NULL: only as text. */
static inline void option_print_count(const char *key, const char *fmt,
				      __u64 count)
{
	print_lluint(key ? PRINT_ANY : PRINT_FP, key, fmt, count);
}

#endif /* EXTRA_TC_OPTIONS_H */
