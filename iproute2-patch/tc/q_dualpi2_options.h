/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of dualpi2 in tc: keywords, units, ranges and the format of values;
 * a part of q_dualpi2.c.  The rows come from <linux/dualpi2_options.h>.
 */
#ifndef Q_DUALPI2_OPTIONS_H
#define Q_DUALPI2_OPTIONS_H

#define DUALPI2_GAIN_PER_HZ	256
#define DUALPI2_DSCP_MAX	63

/* One number space for all knobs: the attributes of Linux, then those of the
 * extension, then knobs that only tc has.
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

/* The knobs that max_rtt and typical_rtt set. */
#define DUALPI2_RTT_KNOBS	(DUALPI2_BIT(DUALPI2_TARGET) | \
				 DUALPI2_BIT(DUALPI2_TUPDATE) | \
				 DUALPI2_BIT(DUALPI2_ALPHA) | \
				 DUALPI2_BIT(DUALPI2_BETA))

enum dualpi2_kind {
	DUALPI2_WORD,		/* keyword without a value; u8 */
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

/* A word of the command line.  Several words may set one knob.  A word whose
 * value has several kinds has a row for each.  If a knob has a value, its first
 * row is the one with the value.
 */
struct dualpi2_option {
	const char *word;
	enum dualpi2_kind kind;
	unsigned int knob;
	__s64 min;		/* DUALPI2_WORD: the value */
	__s64 max;
	unsigned int line;	/* of the usage; 0: same as the row before */
	bool or_zero;		/* 0 is in range as well */
	bool json_bool;		/* DUALPI2_WORD: JSON has true or false */
	bool silent;		/* no text: DUALPI2_WORD always, others if ... */
	__u64 silent_val;	/* ... this */
	const char *json_key;
	const char *json_word;
};

enum {
	DUALPI2_ZERO_PLAIN,
	DUALPI2_ZERO_ALLOWED,
	DUALPI2_ZERO_HIDDEN,
	DUALPI2_ZERO_KEYWORD,
	DUALPI2_ZERO_DEFAULT,
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
	  .silent_val = DUALPI2_ZERO_##_zero == DUALPI2_ZERO_DEFAULT ?	\
			(_def) : 0,					\
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

/* A keyword for a link layer: three knobs. */
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

/* Adds to the overhead that a preset or a number has set. */
static const char dualpi2_vlan_word[] = "ether-vlan";

/* A keyword for max_rtt. */
struct dualpi2_rtt {
	const char *word;
	__u32 max_us;
	__u32 typical_us;	/* 0: follows from max_us */
};

#define DUALPI2_RTT(_word, _max, _typical)	{ _word, _max, _typical },

static const struct dualpi2_rtt dualpi2_rtts[] = {
	DUALPI2_RTTS(DUALPI2_RTT)
};

/* Names of DSCPs, as in /etc/iproute2/rt_dsfield. */
static const struct {
	const char *name;
	unsigned int dscp;
} dualpi2_dscps[] = {
	{ "CS0", 0 }, { "CS1", 8 }, { "CS2", 16 }, { "CS3", 24 },
	{ "CS4", 32 }, { "CS5", 40 }, { "CS6", 48 }, { "CS7", 56 },
	{ "AF11", 10 }, { "AF12", 12 }, { "AF13", 14 },
	{ "AF21", 18 }, { "AF22", 20 }, { "AF23", 22 },
	{ "AF31", 26 }, { "AF32", 28 }, { "AF33", 30 },
	{ "AF41", 34 }, { "AF42", 36 }, { "AF43", 38 },
	{ "EF", 46 }, { "VA", 44 }, { "LE", 1 },
};

static const struct option_unit dualpi2_percent_units[] = {
	{ "", 1 }, { "%", 1 }, { NULL, 0 },
};

static const struct option_unit dualpi2_byte_units[] = {
	{ "", 1 }, { "b", 1 }, { "k", 1 << 10 }, { "kb", 1 << 10 },
	{ "m", 1 << 20 }, { "mb", 1 << 20 }, { "g", 1 << 30 },
	{ "gb", 1 << 30 }, { NULL, 0 },
};

static const struct option_unit dualpi2_gain_units[] = {
	{ "", DUALPI2_GAIN_PER_HZ }, { NULL, 0 },
};

static const struct option_unit dualpi2_length_units[] = {
	{ "", 1 }, { "b", 1 }, { NULL, 0 },
};

static const struct {
	const struct option_unit *units;
	const char *arg;	/* in the usage */
	const char *what;
	bool fraction;		/* round it; otherwise reject it */
	unsigned int size;	/* of the attribute */
} dualpi2_kinds[] = {
	[DUALPI2_WORD] = { .size = sizeof(__u8) },
	[DUALPI2_NUMBER] = { option_no_units, "NUMBER", "a number",
			     false, sizeof(__u8) },
	[DUALPI2_PERCENT] = { dualpi2_percent_units, "PERCENT",
			      "a percentage", false, sizeof(__u8) },
	[DUALPI2_PACKETS] = { option_packet_units, "PACKETS",
			      "a number of packets", false, sizeof(__u32) },
	[DUALPI2_BYTES] = { dualpi2_byte_units, "BYTES", "a number of bytes",
			    true, sizeof(__u32) },
	[DUALPI2_TIME] = { option_time_units, "TIME", "a time",
			   true, sizeof(__u32) },
	[DUALPI2_GAIN] = { dualpi2_gain_units, "HZ", "a number of Hz",
			   true, sizeof(__u32) },
	[DUALPI2_LENGTH] = { dualpi2_length_units, "BYTES",
			     "a number of bytes", false, sizeof(__u32) },
	[DUALPI2_RATE] = { option_rate_units, "RATE", "a rate",
			   true, sizeof(__u64) },
	[DUALPI2_DSCPS] = { NULL, "DSCP[,DSCP]...", "a list of DSCPs",
			    false, sizeof(__u64) },
};

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

/* Exact, so that the parser reads the same value. */
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
		return option_format_time(buf, val);
	case DUALPI2_GAIN:
		/* Six digits are within 1/2000 of a step of 1/256. */
		snprintf(buf, OPTION_BUF_SIZE, "%f",
			 num / DUALPI2_GAIN_PER_HZ);
		return buf;
	case DUALPI2_LENGTH:
		num = (__s64)val;
		break;
	case DUALPI2_RATE:
		return option_format_rate(buf, val);
	case DUALPI2_DSCPS:
		return dualpi2_format_dscps(buf, val);
	default:
		break;
	}

	snprintf(buf, OPTION_BUF_SIZE, "%.10g%s", num, unit);
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

static const struct dualpi2_rtt *dualpi2_find_rtt(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dualpi2_rtts); i++)
		if (strcmp(word, dualpi2_rtts[i].word) == 0)
			return &dualpi2_rtts[i];
	return NULL;
}

/* The first row of a knob, which has its value. */
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

static bool dualpi2_is_same_word(const struct dualpi2_option *opt)
{
	return opt < dualpi2_options + ARRAY_SIZE(dualpi2_options) &&
	       strcmp(opt->word, opt[-1].word) == 0;
}

#endif /* Q_DUALPI2_OPTIONS_H */
