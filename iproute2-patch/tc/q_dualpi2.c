// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc front end of the dualpi2 qdisc (RFC 9332): options to netlink, netlink to
 * text and JSON.
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
#include <linux/dualpi2_options.h>

#define DUALPI2_US_PER_MS	1000
#define DUALPI2_US_PER_SEC	1000000
#define DUALPI2_NS_PER_MS	1000000
#define DUALPI2_NS_PER_SEC	1000000000
#define DUALPI2_SEC_PER_DAY	86400

#define DUALPI2_GAIN_PER_HZ	256
#define DUALPI2_DSCP_MAX	63

/* A tag of IEEE 802.1Q.  There is room for one of a service, one of a customer,
 * and one more.
 */
#define DUALPI2_VLAN_BYTES	4
#define DUALPI2_VLANS_MAX	3

#define DUALPI2_MSG_MAX		1024
#define DUALPI2_BUF_SIZE	256	/* a list of all DSCPs has 181 characters */
#define DUALPI2_HELP_COLUMNS	72

/* One number space for all knobs: the attributes of Linux as they are, those of
 * the extension behind them, and last what tc turns into other knobs.
 */
#define DUALPI2_EXT_FIRST	32
#define DUALPI2_TC_FIRST	62
#define DUALPI2_KNOBS		64

#define DUALPI2_BIT(knob)	(UINT64_C(1) << (knob))

#define DUALPI2_NO_ROW(...)
#define DUALPI2_KNOB(attr, ...)		DUALPI2_##attr = TCA_DUALPI2_##attr,
#define DUALPI2_EXT_KNOB(attr, ...) \
	DUALPI2_##attr = DUALPI2_EXT_FIRST + TCA_DUALPI2_EXT_##attr,
#define DUALPI2_TC_KNOB(name, ...)	DUALPI2_##name,

enum {
	DUALPI2_OPTIONS(DUALPI2_KNOB, DUALPI2_KNOB, DUALPI2_NO_ROW,
			DUALPI2_NO_ROW)
	DUALPI2_EXT_OPTIONS(DUALPI2_EXT_KNOB, DUALPI2_EXT_KNOB, DUALPI2_NO_ROW,
			    DUALPI2_NO_ROW)
	DUALPI2_BEFORE_TC = DUALPI2_TC_FIRST - 1,
	DUALPI2_TC_OPTIONS(DUALPI2_TC_KNOB)
};

/* What max_rtt and typical_rtt decide. */
#define DUALPI2_RTT_KNOBS	(DUALPI2_BIT(DUALPI2_TARGET) | \
				 DUALPI2_BIT(DUALPI2_TUPDATE) | \
				 DUALPI2_BIT(DUALPI2_ALPHA) | \
				 DUALPI2_BIT(DUALPI2_BETA))

enum dualpi2_kind {
	DUALPI2_WORD,		/* no value, the word says it all; u8 */
	DUALPI2_NUMBER,		/* u8 */
	DUALPI2_PERCENT,	/* u8 */
	DUALPI2_PACKETS,
	DUALPI2_BYTES,
	DUALPI2_TIME,		/* us */
	DUALPI2_GAIN,		/* 1/256 Hz */
	DUALPI2_LENGTH,		/* bytes of a packet; s32 if min is below 0 */
	DUALPI2_RATE,		/* bytes/s; u64 */
	DUALPI2_DSCPS,		/* bit N: DSCP N; u64 */
};

/* One word of the command line.  Several words may set one knob, and one word
 * may stand in several lines, which then differ in kind.  The first line of a
 * knob is that of its value, if it has one.
 */
struct dualpi2_option {
	const char *word;
	enum dualpi2_kind kind;
	unsigned int knob;
	__s64 min;		/* DUALPI2_WORD: the value */
	__s64 max;
	unsigned int line;	/* of the usage; 0: with the option before */
	bool or_zero;		/* 0 is in range, too */
	bool silent;		/* not in the text: DUALPI2_WORD, or if it is 0 */
	bool json_bool;		/* DUALPI2_WORD: in JSON true or false */
	const char *json_key;
	const char *json_word;
};

enum {
	DUALPI2_ZERO_PLAIN,
	DUALPI2_ZERO_ALLOWED,
	DUALPI2_ZERO_HIDDEN,
	DUALPI2_ZERO_KEYWORD,
};

enum {
	DUALPI2_SHOWN,
	DUALPI2_HIDDEN,
};

#define DUALPI2_VALUE(_attr, _member, _min, _max, _def, _kind, _zero, _range, \
		      _unit, _word, _key, _line)			\
	{ .word = _word, .kind = DUALPI2_##_kind, .knob = DUALPI2_##_attr, \
	  .min = _min, .max = _max,					\
	  .or_zero = DUALPI2_ZERO_##_zero == DUALPI2_ZERO_ALLOWED,	\
	  .silent = DUALPI2_ZERO_##_zero >= DUALPI2_ZERO_HIDDEN,	\
	  .json_key = _key, .line = _line },

#define DUALPI2_IS(_attr, _value, _word, _shown, _key, _json, _line)	\
	{ .word = _word, .knob = DUALPI2_##_attr, .min = _value,	\
	  .silent = DUALPI2_##_shown, .json_key = _key,			\
	  .json_word = _json, .line = _line },

#define DUALPI2_SWITCH(_attr, _value, _word, _shown, _key, _line)	\
	{ .word = _word, .knob = DUALPI2_##_attr, .min = _value,	\
	  .silent = DUALPI2_##_shown, .json_bool = true,		\
	  .json_key = _key, .line = _line },

#define DUALPI2_DERIVED(_name, _min, _max, _kind, _word, _line)		\
	{ .word = _word, .kind = DUALPI2_##_kind, .knob = DUALPI2_##_name, \
	  .min = _min, .max = _max, .line = _line },

/* In the order of the output. */
static const struct dualpi2_option dualpi2_options[] = {
	DUALPI2_OPTIONS(DUALPI2_VALUE, DUALPI2_NO_ROW, DUALPI2_IS,
			DUALPI2_SWITCH)
	DUALPI2_EXT_OPTIONS(DUALPI2_VALUE, DUALPI2_NO_ROW, DUALPI2_IS,
			    DUALPI2_SWITCH)
	DUALPI2_TC_OPTIONS(DUALPI2_DERIVED)
};

_Static_assert(ARRAY_SIZE(dualpi2_options) <= 64, "a bit for each");

/* One word for a link layer.  The kernel does not know it. */
struct dualpi2_preset {
	const char *word;
	enum tc_dualpi2_framing framing;
	int overhead;
	unsigned int mpu;
};

#define DUALPI2_PRESET(_word, _framing, _overhead, _mpu) \
	{ _word, TC_DUALPI2_FRAMING_##_framing, _overhead, _mpu },

static const struct dualpi2_preset dualpi2_presets[] = {
	DUALPI2_PRESETS(DUALPI2_PRESET)
};

/* Adds to the overhead that a preset, or a number, has set. */
static const char dualpi2_vlan_word[] = "ether-vlan";

/* What one command asks for; bit N of given: val[N] is to be sent. */
struct dualpi2_request {
	__u64 given;
	__u64 seen;		/* bit N: dualpi2_options[N].word was there */
	__u64 val[DUALPI2_KNOBS];
	const struct dualpi2_preset *preset;
	unsigned int vlans;
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

static const struct dualpi2_unit dualpi2_length_units[] = {
	{ "", 1 }, { "b", 1 }, { NULL, 0 },
};

/* As tc has them: bps is bytes. */
static const struct dualpi2_unit dualpi2_rate_units[] = {
	{ "", 1 / 8.0 }, { "bit", 1 / 8.0 },
	{ "kbit", 1e3 / 8 }, { "mbit", 1e6 / 8 },
	{ "gbit", 1e9 / 8 }, { "tbit", 1e12 / 8 },
	{ "kibit", 0x1p10 / 8 }, { "mibit", 0x1p20 / 8 },
	{ "gibit", 0x1p30 / 8 }, { "tibit", 0x1p40 / 8 },
	{ "bps", 1 },
	{ "kbps", 1e3 }, { "mbps", 1e6 }, { "gbps", 1e9 }, { "tbps", 1e12 },
	{ "kibps", 0x1p10 }, { "mibps", 0x1p20 },
	{ "gibps", 0x1p30 }, { "tibps", 0x1p40 },
	{ NULL, 0 },
};

static const struct {
	const struct dualpi2_unit *units;
	const char *arg;	/* in the usage */
	const char *what;
	bool fraction;		/* to be rounded; else it is refused */
	unsigned int size;	/* of the attribute */
} dualpi2_kinds[] = {
	[DUALPI2_WORD] = { .size = sizeof(__u8) },
	[DUALPI2_NUMBER] = { dualpi2_no_units, "NUMBER", "a number",
			     false, sizeof(__u8) },
	[DUALPI2_PERCENT] = { dualpi2_percent_units, "PERCENT",
			      "a percentage", false, sizeof(__u8) },
	[DUALPI2_PACKETS] = { dualpi2_packet_units, "PACKETS",
			      "a number of packets", false, sizeof(__u32) },
	[DUALPI2_BYTES] = { dualpi2_byte_units, "BYTES", "a number of bytes",
			    true, sizeof(__u32) },
	[DUALPI2_TIME] = { dualpi2_time_units, "TIME", "a time",
			   true, sizeof(__u32) },
	[DUALPI2_GAIN] = { dualpi2_gain_units, "HZ", "a number of Hz",
			   true, sizeof(__u32) },
	[DUALPI2_LENGTH] = { dualpi2_length_units, "BYTES",
			     "a number of bytes", false, sizeof(__u32) },
	[DUALPI2_RATE] = { dualpi2_rate_units, "RATE", "a rate",
			   true, sizeof(__u64) },
	[DUALPI2_DSCPS] = { NULL, "DSCP[,DSCP]...", "a list of DSCPs",
			    false, sizeof(__u64) },
};

static bool dualpi2_is_same_word(const struct dualpi2_option *opt)
{
	return opt < dualpi2_options + ARRAY_SIZE(dualpi2_options) &&
	       strcmp(opt->word, opt[-1].word) == 0;
}

/* An option in the usage: its value, or the keywords for it. */
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

static void dualpi2_explain(void)
{
	unsigned int i, column, line;
	bool more = true;

	for (line = 1; more; line++) {
		fprintf(stderr, "%s", line == 1 ? "Usage: ... dualpi2" :
						  "                  ");
		more = false;
		for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++) {
			if (dualpi2_options[i].line == line)
				dualpi2_explain_option(&dualpi2_options[i]);
			more |= dualpi2_options[i].line > line;
		}
		if (line == DUALPI2_PRESET_LINE)
			fprintf(stderr, " [ PRESET [ %s ]... ]",
				dualpi2_vlan_word);
		fprintf(stderr, "\n");
	}
	fprintf(stderr,
		"TIME is in us unless it ends in ms or s; PACKETS may end in p,\n"
		"and has to in step_thresh; BYTES of memlimit may end in k, m or g;\n"
		"RATE is in bit/s unless it ends in kbit, mbit, gbit, bps etc.\n"
		"PRESET is one of");
	column = DUALPI2_HELP_COLUMNS;
	for (i = 0; i < ARRAY_SIZE(dualpi2_presets); i++) {
		const char *word = dualpi2_presets[i].word;

		if (column + strlen(word) >= DUALPI2_HELP_COLUMNS) {
			fprintf(stderr, "\n ");
			column = 1;
		}
		column += fprintf(stderr, " %s", word);
	}
	fprintf(stderr, "\n");
}

static const char *dualpi2_format_rate(char *buf, __u64 rate)
{
	static const char *const units[] = {
		"bit", "Kbit", "Mbit", "Gbit", "Tbit",
	};
	unsigned long long bits = rate * 8;
	unsigned int unit = 0;

	for (; bits && bits % 1000 == 0 && unit < ARRAY_SIZE(units) - 1; unit++)
		bits /= 1000;
	snprintf(buf, DUALPI2_BUF_SIZE, "%llu%s", bits, units[unit]);
	return buf;
}

static const char *dualpi2_format_dscps(char *buf, __u64 dscps)
{
	const char *before = "";
	unsigned int i;
	char *to = buf;

	*to = 0;
	for (i = 0; i <= DUALPI2_DSCP_MAX; i++) {
		if (!(dscps >> i & 1))
			continue;
		to += sprintf(to, "%s%u", before, i);
		before = ",";
	}
	return buf;
}

/* Exact, and as short as that allows: 15ms, 16.384ms, 1.234567s, 2500Kbit. */
static const char *dualpi2_format(char *buf, enum dualpi2_kind kind, __u64 val)
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
	case DUALPI2_LENGTH:
		num = (__s64)val;
		break;
	case DUALPI2_RATE:
		return dualpi2_format_rate(buf, val);
	case DUALPI2_DSCPS:
		return dualpi2_format_dscps(buf, val);
	default:
		break;
	}

	snprintf(buf, DUALPI2_BUF_SIZE, "%.10g%s", num, unit);
	return buf;
}

static const struct dualpi2_option *dualpi2_find(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dualpi2_options); i++)
		if (strcmp(word, dualpi2_options[i].word) == 0)
			return &dualpi2_options[i];
	return NULL;
}

static const struct dualpi2_preset *dualpi2_find_preset(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dualpi2_presets); i++)
		if (strcmp(word, dualpi2_presets[i].word) == 0)
			return &dualpi2_presets[i];
	return NULL;
}

/* The first option of a knob, which is that of its value. */
static const struct dualpi2_option *dualpi2_option_of(unsigned int knob)
{
	const struct dualpi2_option *opt = dualpi2_options;

	while (opt->knob != knob)
		opt++;
	return opt;
}

static unsigned int dualpi2_size(unsigned int knob)
{
	return dualpi2_kinds[dualpi2_option_of(knob)->kind].size;
}

/* The range of a list is that of what is in it. */
static enum dualpi2_kind dualpi2_range_kind(const struct dualpi2_option *opt)
{
	return opt->kind == DUALPI2_DSCPS ? DUALPI2_NUMBER : opt->kind;
}

/* Ends the line that the caller began with what it was that was wrong. */
static void dualpi2_explain_range(const struct dualpi2_option *opt)
{
	char min[DUALPI2_BUF_SIZE], max[DUALPI2_BUF_SIZE];
	const char *before = "; expected ";

	do {
		enum dualpi2_kind kind = dualpi2_range_kind(opt);

		if (opt->or_zero) {
			fprintf(stderr, "%s%s", before,
				dualpi2_format(min, kind, 0));
			before = ", or ";
		}
		fprintf(stderr, "%s%s to %s", before,
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
	const struct dualpi2_unit *unit = dualpi2_kinds[opt->kind].units;
	bool negative = *arg == '-' && opt->min < 0;
	char *end;

	arg += negative;
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
	if (*num < UINT64_C(1) << 53) {
		if (dualpi2_kinds[opt->kind].fraction)
			*num += 0.5;
		else if (*num != (uint64_t)*num)
			return false;
		*num = (uint64_t)*num;
	}
	if (negative)
		*num = -*num;
	return true;
}

/* Overhead and MPU are there with a framing only: of both, what comes later in
 * the command counts.
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

/* Numbers from 0 to 63, decimal or hexadecimal, with commas between. */
static int dualpi2_parse_dscps(struct dualpi2_request *req,
			       const struct dualpi2_option *opt,
			       const char *arg)
{
	const char *at = arg;
	unsigned long dscp;
	__u64 dscps = 0;
	char *end;

	for (;; at = end + 1) {
		bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');

		/* strtoul() also takes blanks, signs, and 0x alone. */
		if (!strchr("0123456789", *at))
			break;
		dscp = strtoul(at, &end, hex ? 16 : 10);
		if (end == at || (*end && *end != ','))
			break;
		if (dscp > (unsigned long)opt->max) {
			fprintf(stderr, "dualpi2: %s: \"%s\" is not in range",
				opt->word, arg);
			dualpi2_explain_range(opt);
			return -1;
		}
		if (dscps >> dscp & 1) {
			fprintf(stderr,
				"dualpi2: %s: \"%s\" has %lu twice; expected once\n",
				opt->word, arg, dscp);
			return -1;
		}
		dscps |= UINT64_C(1) << dscp;
		if (!*end) {
			dualpi2_set(req, opt->knob, dscps);
			return 0;
		}
	}
	fprintf(stderr, "dualpi2: %s: \"%s\" is not %s", opt->word, arg,
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
			fprintf(stderr, "dualpi2: %s: \"%s\" is not in range",
				opt->word, arg);
			dualpi2_explain_range(first);
			return -1;
		}
		dualpi2_set(req, opt->knob, (__s64)num);
		return 0;
	} while (dualpi2_is_same_word(++opt));

	fprintf(stderr, "dualpi2: %s: \"%s\" is not %s", first->word, arg,
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
		fprintf(stderr, "dualpi2: %s: duplicate; expected once\n",
			preset->word);
		return -1;
	}
	if (req->preset) {
		fprintf(stderr,
			"dualpi2: %s: there is %s already; expected one of the two\n",
			preset->word, req->preset->word);
		return -1;
	}
	req->preset = preset;
	dualpi2_set(req, DUALPI2_FRAMING, preset->framing);
	dualpi2_set(req, DUALPI2_OVERHEAD, preset->overhead);
	dualpi2_set(req, DUALPI2_MPU, preset->mpu);
	return 0;
}

static int dualpi2_parse_vlan(struct dualpi2_request *req)
{
	const struct dualpi2_option *opt = dualpi2_option_of(DUALPI2_OVERHEAD);
	__s64 overhead = req->val[DUALPI2_OVERHEAD];

	if (!(req->given & DUALPI2_BIT(DUALPI2_OVERHEAD))) {
		fprintf(stderr,
			"dualpi2: %s: nothing to add to; expected after a preset or overhead\n",
			dualpi2_vlan_word);
		return -1;
	}
	if (req->vlans++ == DUALPI2_VLANS_MAX) {
		fprintf(stderr, "dualpi2: %s: too many; expected %d at most\n",
			dualpi2_vlan_word, DUALPI2_VLANS_MAX);
		return -1;
	}
	overhead += DUALPI2_VLAN_BYTES;
	if (overhead > opt->max) {
		fprintf(stderr,
			"dualpi2: %s: it leads to overhead %lld, which is not in range",
			dualpi2_vlan_word, (long long)overhead);
		dualpi2_explain_range(opt);
		return -1;
	}
	req->val[DUALPI2_OVERHEAD] = overhead;
	return 0;
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
	__u64 *max = &req->val[DUALPI2_MAX_RTT];
	__u64 *typ = &req->val[DUALPI2_TYPICAL_RTT];
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
	if (dualpi2_derive(req, DUALPI2_TARGET, *typ) ||
	    dualpi2_derive(req, DUALPI2_TUPDATE, tupdate) ||
	    dualpi2_derive(req, DUALPI2_ALPHA,
			   0.1 * DUALPI2_GAIN_PER_HZ * tupdate /
			   DUALPI2_US_PER_SEC / max_sec / max_sec) ||
	    dualpi2_derive(req, DUALPI2_BETA,
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

/* Each has words that take it back, and these may come later. */
static int dualpi2_check_bypass(const struct dualpi2_request *req)
{
	const __u64 both = DUALPI2_BIT(DUALPI2_BYPASS) |
			   DUALPI2_BIT(DUALPI2_BANDWIDTH);

	if ((req->given & both) != both || !req->val[DUALPI2_BYPASS] ||
	    !req->val[DUALPI2_BANDWIDTH])
		return 0;
	fprintf(stderr,
		"dualpi2: bypass: there is bandwidth, too; expected one of the two\n");
	return -1;
}

static int dualpi2_parse(struct dualpi2_request *req, int argc, char **argv)
{
	const __u64 rtt = DUALPI2_BIT(DUALPI2_MAX_RTT) |
			  DUALPI2_BIT(DUALPI2_TYPICAL_RTT);
	const struct dualpi2_preset *preset;
	const struct dualpi2_option *opt;
	__u64 seen;

	for (; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "help") == 0) {
			dualpi2_explain();
			return -1;
		}
		preset = dualpi2_find_preset(*argv);
		if (preset) {
			if (dualpi2_parse_preset(req, preset))
				return -1;
			continue;
		}
		if (strcmp(*argv, dualpi2_vlan_word) == 0) {
			if (dualpi2_parse_vlan(req))
				return -1;
			continue;
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
			dualpi2_set(req, opt->knob, opt->min);
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
		unsigned int size = dualpi2_size(opt->knob);
		__u64 val = req->val[opt->knob];
		__u32 val32 = val;
		__u8 val8 = val;
		const void *data = &val;

		if (size == sizeof(val8))
			data = &val8;
		else if (size == sizeof(val32))
			data = &val32;
		if (opt->knob < first || opt->knob >= end ||
		    !(req->given & DUALPI2_BIT(opt->knob)))
			continue;
		if (addattr_l(n, DUALPI2_MSG_MAX, opt->knob - first, data, size))
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
	const __u64 ext_knobs = DUALPI2_BIT(DUALPI2_TC_FIRST) -
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
		if (dualpi2_add(n, &req, DUALPI2_EXT_FIRST, DUALPI2_TC_FIRST))
			return -1;
		addattr_nest_end(n, ext);
	}
	addattr_nest_end(n, tail);
	return 0;
}

/* Finds attributes among len bytes: type N in tb[N]; of several of a type, the
 * last one.  Returns the extension.
 */
static struct rtattr *dualpi2_find_attrs(struct rtattr *tb[], unsigned int max,
					 struct rtattr *rta, int len)
{
	struct rtattr *ext = NULL;
	unsigned int type;

	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		type = rta->rta_type & NLA_TYPE_MASK;
		if (type <= max)
			tb[type] = rta;
		else if (type == TCA_DUALPI2_EXT)
			ext = rta;
	}
	return ext;
}

static bool dualpi2_read(const struct rtattr *rta, unsigned int knob,
			 __u64 *val)
{
	const struct dualpi2_option *opt = dualpi2_option_of(knob);
	unsigned int size = dualpi2_kinds[opt->kind].size;
	__u32 val32;
	__u8 val8;

	if (!rta || RTA_PAYLOAD(rta) < size)
		return false;

	if (size == sizeof(val8)) {
		memcpy(&val8, RTA_DATA(rta), sizeof(val8));
		*val = val8;
	} else if (size == sizeof(val32)) {
		memcpy(&val32, RTA_DATA(rta), sizeof(val32));
		*val = opt->min < 0 ? (__u64)(__s32)val32 : val32;
	} else {
		memcpy(val, RTA_DATA(rta), sizeof(*val));
	}
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
	char buf[DUALPI2_BUF_SIZE];

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
	if (!as_text || (opt->silent && !val))
		return;
	print_string(PRINT_FP, NULL, "%s ", opt->word);
	print_string(PRINT_FP, NULL, "%s ",
		     dualpi2_format(buf, opt->kind, val));
}

static int dualpi2_print_opt(const struct qdisc_util *qu,
			     FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[DUALPI2_KNOBS] = {}, *ext;
	unsigned int i;
	__u64 val;
	bool raw;

	if (!opt)
		return 0;

	ext = dualpi2_find_attrs(tb, DUALPI2_EXT_FIRST - 1, RTA_DATA(opt),
				 RTA_PAYLOAD(opt));
	if (ext)
		dualpi2_find_attrs(&tb[DUALPI2_EXT_FIRST],
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

static double dualpi2_probability(__u32 prob)
{
	return (double)prob / UINT32_MAX;
}

/* key NULL: only as text. */
static void dualpi2_print_count(const char *key, const char *fmt, __u64 count)
{
	print_lluint(key ? PRINT_ANY : PRINT_FP, key, fmt, count);
}

/* Copies at most len bytes.  What the kernel did not send is zero. */
static void dualpi2_copy(void *to, size_t size, const void *from, size_t len)
{
	memset(to, 0, size);
	memcpy(to, from, len < size ? len : size);
}

static void dualpi2_copy_attr(void *to, size_t size, const struct rtattr *rta)
{
	dualpi2_copy(to, size, RTA_DATA(rta), RTA_PAYLOAD(rta));
}

/* To three digits: a bucket is up to an eighth wide. */
static const char *dualpi2_format_ns(char *buf, __u64 ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	unsigned int unit = 0;
	double num = ns;

	for (; num >= 999.5 && unit < ARRAY_SIZE(units) - 1; unit++)
		num /= 1000;
	snprintf(buf, DUALPI2_BUF_SIZE, num < 999.5 ? "%.3g%s" : "%.0f%s", num,
		 units[unit]);
	return buf;
}

/* The delays of one queue: struct tc_dualpi2_delay and its histogram. */
struct dualpi2_hist {
	struct tc_dualpi2_delay delay;
	const char *counts;	/* u64 each, at any address */
	unsigned int len;	/* of them; the buckets behind these are empty */
	__u64 count;		/* packets in all, those beyond included */
};

static __u64 dualpi2_hist_packets(const struct dualpi2_hist *h, unsigned int i)
{
	__u64 packets;

	memcpy(&packets, h->counts + i * sizeof(packets), sizeof(packets));
	return packets;
}

/* Where bucket i begins, and the one before it ends. */
static __u64 dualpi2_hist_edge(const struct dualpi2_hist *h, unsigned int i)
{
	__u64 edge = i < TC_DUALPI2_BUCKETS_MAX ? tc_dualpi2_bucket(i) :
						  UINT64_MAX;

	return edge > UINT64_MAX / h->delay.unit_ns ? UINT64_MAX :
	       edge * h->delay.unit_ns;
}

/* The message of a deletion has no histogram. */
static bool dualpi2_hist_read(struct dualpi2_hist *h,
			      const struct rtattr *delay,
			      const struct rtattr *hist)
{
	unsigned int i;

	if (!delay || !hist)
		return false;
	*h = (struct dualpi2_hist) {};
	dualpi2_copy_attr(&h->delay, sizeof(h->delay), delay);
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

/* sum / count, where the sum starts again from 0 at 2^64 (14 days at 12 Gbit/s
 * and 15 ms).  The buckets say about what it is: of the numbers that it may
 * stand for, the one nearest to the middle of what they allow.  That is the
 * right one as long as they allow for less than 2^64, and later off by half a
 * bucket at most.
 */
static __u64 dualpi2_hist_mean(const struct dualpi2_hist *h)
{
	const double wrap = 4294967296.0 * 4294967296.0;
	__u64 edge = dualpi2_hist_edge(h, h->delay.buckets);
	double middle, wraps, mean;
	unsigned int i;

	if (h->delay.max_ns > edge)
		middle = ((double)edge + h->delay.max_ns) / 2;
	else
		middle = edge;
	middle *= h->delay.beyond;
	for (i = 0, edge = 0; i < h->len; i++) {
		double from = edge;

		edge = dualpi2_hist_edge(h, i + 1);
		middle += (from + edge) / 2 * dualpi2_hist_packets(h, i);
	}

	wraps = (middle - h->delay.sum_ns) / wrap + 0.5;
	if (wraps < 0)
		wraps = 0;
	else if (wraps < wrap)
		wraps = (__u64)wraps;
	mean = (h->delay.sum_ns + wraps * wrap) / h->count + 0.5;
	return mean < wrap ? (__u64)mean : UINT64_MAX;
}

/* The delay that so many in a thousand packets did not exceed: that of the
 * packet of this rank, the packets of a bucket being spread evenly over it.
 * Beyond the last bucket the greatest delay, which it is not more than.
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
		from = dualpi2_hist_edge(h, i);
		width = dualpi2_hist_edge(h, i + 1) - from;
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
			     dualpi2_hist_edge(h, i));
		print_lluint(PRINT_JSON, "to-ns", NULL,
			     dualpi2_hist_edge(h, i + 1));
		print_lluint(PRINT_JSON, "packets", NULL, packets);
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
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
	__u64 edge = dualpi2_hist_edge(h, h->delay.buckets), ns;
	char buf[DUALPI2_BUF_SIZE];
	bool beyond;
	unsigned int i;

	open_json_object("delay");
	if (h->count) {
		ns = dualpi2_hist_mean(h);
		print_lluint(PRINT_JSON, "mean-ns", NULL, ns);
		print_string(PRINT_FP, NULL, " delay mean %s",
			     dualpi2_format_ns(buf, ns));
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
		ns = dualpi2_hist_percentile(h, percentiles[i].permille,
					     &beyond);
		print_lluint(PRINT_JSON, percentiles[i].json_key, NULL, ns);
		*buf = '>';
		dualpi2_format_ns(buf + beyond, beyond ? edge : ns);
		print_string(PRINT_FP, NULL, percentiles[i].text, buf);
	}

	print_lluint(PRINT_JSON, "max-ns", NULL, h->delay.max_ns);
	if (h->count)
		print_string(PRINT_FP, NULL, " max %s",
			     dualpi2_format_ns(buf, h->delay.max_ns));
	print_lluint(PRINT_JSON, "count", NULL, h->count);
	print_lluint(PRINT_JSON, "sum-ns", NULL, h->delay.sum_ns);
	print_lluint(PRINT_JSON, "beyond", NULL, h->delay.beyond);
	print_lluint(PRINT_JSON, "beyond-ns", NULL, edge);
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

/* As text a line with the sum and the parts that are not 0, if there are any;
 * in JSON every part.
 */
static void dualpi2_print_parts(const char *text,
				const struct dualpi2_part *parts,
				unsigned int len)
{
	const char *before = " (";
	bool any = false;
	__u64 sum = 0;
	unsigned int i;

	for (i = 0; i < len; i++) {
		print_lluint(PRINT_JSON, parts[i].json_key, NULL,
			     parts[i].count);
		any |= parts[i].count;
		sum += parts[i].count;
	}
	if (!any)
		return;

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
	print_string(PRINT_FP, NULL, "%s", ")");
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

	dualpi2_print_count("enqueued", " enqueued %llu",
			    n->forwarded + aqm + overload + purge + n->queued);
	dualpi2_print_count("enqueued-bytes", " (%llu bytes)",
			    n->arrived_bytes - n->dropped_arrival_bytes);
	dualpi2_print_count("sent", " sent %llu", n->forwarded);
	dualpi2_print_count("sent-bytes", " (%llu bytes)", n->forwarded_bytes);
	dualpi2_print_count("packets", " queued %llu", n->queued);
	dualpi2_print_count("bytes", " (%llu bytes)", n->queued_bytes);
	dualpi2_print_count("arrived-ce", " ce_in %llu", n->arrived_ce);

	print_nl();
	dualpi2_print_count(NULL, " marked %llu",
			    n->marked_classic + n->marked_coupled +
			    n->marked_native);
	dualpi2_print_count("marked-classic", " (classic %llu",
			    n->marked_classic);
	dualpi2_print_count("marked-coupled", ", coupled %llu",
			    n->marked_coupled);
	dualpi2_print_count("marked-native", ", native %llu)",
			    n->marked_native);

	print_nl();
	dualpi2_print_count(NULL, " dropped %llu",
			    limit + memory + early + aqm + overload + purge);
	dualpi2_print_count("dropped-limit", " (limit %llu", limit);
	dualpi2_print_count("dropped-memory", ", memory %llu", memory);
	dualpi2_print_count("dropped-early", ", early %llu", early);
	dualpi2_print_count("dropped-aqm", ", aqm %llu", aqm);
	dualpi2_print_count("dropped-overload", ", overload %llu", overload);
	dualpi2_print_count("dropped-purge", ", purge %llu)", purge);
	print_nl();
}

/* What dualpi2_print_totals() leaves out. */
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

	dualpi2_print_count(NULL, " arrived %llu",
			    n->arrived_not_ect + n->arrived_ect1 +
			    n->arrived_ect0 + n->arrived_ce);
	dualpi2_print_count("arrived-bytes", " (%llu bytes)", n->arrived_bytes);
	dualpi2_print_count("arrived-not-ect", " not_ect %llu",
			    n->arrived_not_ect);
	dualpi2_print_count("arrived-ect1", " ect1 %llu", n->arrived_ect1);
	dualpi2_print_count("arrived-ect0", " ect0 %llu", n->arrived_ect0);
	dualpi2_print_count(NULL, " ce %llu", n->arrived_ce);
	print_nl();
	dualpi2_print_count("presented", " presented %llu", n->presented);
	dualpi2_print_count("presented-bytes", " (%llu bytes)",
			    n->presented_bytes);
	dualpi2_print_count("forwarded", " forwarded %llu", n->forwarded);
	dualpi2_print_count("forwarded-bytes", " (%llu bytes)",
			    n->forwarded_bytes);
	print_lluint(PRINT_JSON, "queued", NULL, n->queued);
	print_lluint(PRINT_JSON, "queued-bytes", NULL, n->queued_bytes);
	print_nl();
	dualpi2_print_parts("dropped_not_ect", not_ect, ARRAY_SIZE(not_ect));
	dualpi2_print_parts("dropped_ect", ect, ARRAY_SIZE(ect));
	dualpi2_print_parts("dropped_bytes", bytes, ARRAY_SIZE(bytes));
}

static void dualpi2_print_queue(const char *text, const char *json,
				struct rtattr *nest)
{
	struct rtattr *tb[TCA_DUALPI2_QUEUE_MAX + 1] = {};
	struct tc_dualpi2_counters counters;
	struct dualpi2_hist hist;

	if (nest)
		dualpi2_find_attrs(tb, TCA_DUALPI2_QUEUE_MAX, RTA_DATA(nest),
				   RTA_PAYLOAD(nest));
	if (!tb[TCA_DUALPI2_QUEUE_COUNTERS])
		return;
	dualpi2_copy_attr(&counters, sizeof(counters),
			  tb[TCA_DUALPI2_QUEUE_COUNTERS]);
	open_json_object(json);
	print_string(PRINT_FP, NULL, "%s:", text);
	dualpi2_print_totals(&counters);
	dualpi2_print_counters(&counters);
	if (dualpi2_hist_read(&hist, tb[TCA_DUALPI2_QUEUE_DELAY],
			      tb[TCA_DUALPI2_QUEUE_HIST]))
		dualpi2_print_delay(&hist);
	close_json_object();
}

static bool dualpi2_is_leap(unsigned int year)
{
	return (year % 4 == 0 && year % 100) || year % 400 == 0;
}

/* In UTC, to the millisecond.  gmtime() ends in 2038 where time_t has 32 bits. */
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
	snprintf(buf, DUALPI2_BUF_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 year, month + 1, day + 1, left / 3600, left / 60 % 60,
		 left % 60, ms);
	return buf;
}

/* key NULL: only as text, and then nothing if there was no such time. */
static void dualpi2_print_date(const char *key, const char *fmt, __u64 ns)
{
	char buf[DUALPI2_BUF_SIZE];

	if (ns)
		print_string(PRINT_ANY, key, fmt, dualpi2_format_date(buf, ns));
	else
		print_null(PRINT_JSON, key, NULL, NULL);
}

/* The last overload, or the present one, which has no end.  As text nothing if
 * there was none.
 */
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

/* To four digits: for reading. */
static const char *dualpi2_format_drain(char *buf, __u64 rate)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	double num = rate * 8.0;
	unsigned int unit = 0;

	for (; num >= 999.95 && unit < ARRAY_SIZE(units) - 1; unit++)
		num /= 1000;
	snprintf(buf, DUALPI2_BUF_SIZE, num < 9999.5 ? "%.4g%sbit" : "%.0f%sbit",
		 num, units[unit]);
	return buf;
}

static void dualpi2_print_link_ns(const char *key, const char *fmt, __u32 ns)
{
	char buf[DUALPI2_BUF_SIZE];

	print_uint(PRINT_JSON, key, NULL, ns);
	print_string(PRINT_FP, NULL, fmt, dualpi2_format_ns(buf, ns));
}

static void dualpi2_print_link(const struct tc_dualpi2_link *link)
{
	char buf[DUALPI2_BUF_SIZE];

	if (link->drain_rate) {
		print_lluint(PRINT_JSON, "drain-rate", NULL, link->drain_rate);
		print_string(PRINT_FP, NULL, "drain_rate %s",
			     dualpi2_format_drain(buf, link->drain_rate));
	} else {
		print_null(PRINT_JSON, "drain-rate", NULL, NULL);
		print_string(PRINT_FP, NULL, "%s", "drain_rate not seen yet");
	}
	dualpi2_print_count("throttled", " throttled %llu", link->throttled);
	dualpi2_print_link_ns("burst-ns", " burst %s", link->burst_ns);
	dualpi2_print_link_ns("ramp-min-ns", " ramp_min %s", link->ramp_min_ns);
	dualpi2_print_link_ns("ramp-max-ns", " ramp_max %s", link->ramp_max_ns);
	print_uint(PRINT_ANY, "limit-pkts", " limit_pkts %u", link->limit_pkts);
	if (link->target_ns)
		dualpi2_print_link_ns("effective-target-ns",
				      " effective_target %s", link->target_ns);
	print_nl();
	dualpi2_print_count("nqb-arrived", "nqb_arrived %llu",
			    link->nqb_arrived);
	dualpi2_print_count("nqb-dropped", " nqb_dropped %llu",
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

static void dualpi2_print_ext(const struct tc_dualpi2_ext_xstats *st,
			      struct rtattr *tb[])
{
	struct tc_dualpi2_overload overload = {};
	struct tc_dualpi2_link link;

	dualpi2_print_queue("Classic", "classic", tb[TCA_DUALPI2_STATS_C]);
	dualpi2_print_queue("L4S", "l4s", tb[TCA_DUALPI2_STATS_L]);
	if (tb[TCA_DUALPI2_STATS_OVERLOAD])
		dualpi2_copy_attr(&overload, sizeof(overload),
				  tb[TCA_DUALPI2_STATS_OVERLOAD]);

	print_float(PRINT_ANY, "prob-c", "prob_c %f",
		    dualpi2_probability(st->prob_c));
	print_float(PRINT_ANY, "prob-cl", " prob_cl %f",
		    dualpi2_probability(st->prob_cl));
	print_bool(PRINT_JSON, "overload", NULL, overload.now);
	print_string(PRINT_FP, NULL, " overload %s",
		     overload.now ? "yes" : "no");
	dualpi2_print_count("overload-count", " (%llu times", overload.count);
	print_lluint(PRINT_JSON, "overload-ns", NULL, overload.total_ns);
	print_float(PRINT_FP, NULL, ", %.3fs)", overload.total_ns / 1e9);

	print_nl();
	dualpi2_print_count("unparsed", "unparsed %llu", st->unparsed);
	dualpi2_print_count("filter-dropped", " filter_dropped %llu",
			    st->filter_dropped);
	dualpi2_print_count("gso-failed", " gso_failed %llu", st->gso_failed);
	dualpi2_print_count("mark-failed", " mark_failed %llu",
			    st->mark_failed);
	print_nl();
	if (tb[TCA_DUALPI2_STATS_OVERLOAD])
		dualpi2_print_overload(&overload);
	if (tb[TCA_DUALPI2_STATS_LINK]) {
		dualpi2_copy_attr(&link, sizeof(link),
				  tb[TCA_DUALPI2_STATS_LINK]);
		dualpi2_print_link(&link);
	}
}

/* Statistics with one queue and nothing else are those of its class. */
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
	return true;
}

/* The extension's struct, and the attributes behind it. */
static bool dualpi2_read_ext(struct tc_dualpi2_ext_xstats *ext,
			     struct rtattr *tb[], char *data, size_t len)
{
	const size_t head = offsetof(struct tc_dualpi2_ext_xstats, reserved);

	if (len < TC_DUALPI2_EXT_XSTATS_OFFSET + head)
		return false;
	data += TC_DUALPI2_EXT_XSTATS_OFFSET;
	len -= TC_DUALPI2_EXT_XSTATS_OFFSET;
	dualpi2_copy(ext, sizeof(*ext), data, head);
	if (ext->magic != TC_DUALPI2_EXT_XSTATS_MAGIC || ext->size < head)
		return false;
	if (ext->size >= len) {
		dualpi2_copy(ext, sizeof(*ext), data, len);
		return true;
	}
	len -= ext->size;
	data += ext->size;
	if (ext->size % RTA_ALIGNTO == 0)
		dualpi2_find_attrs(tb, TCA_DUALPI2_STATS_MAX,
				   (struct rtattr *)data, len);
	dualpi2_copy(ext, sizeof(*ext), data - ext->size, ext->size);
	return true;
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

	dualpi2_copy_attr(&st, sizeof(st), xstats);
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

	if (extended)
		dualpi2_print_ext(&ext, tb);
	return 0;
}

struct qdisc_util dualpi2_qdisc_util = {
	.id = "dualpi2",
	.parse_qopt = dualpi2_parse_opt,
	.print_qopt = dualpi2_print_opt,
	.print_xstats = dualpi2_print_xstats,
};
