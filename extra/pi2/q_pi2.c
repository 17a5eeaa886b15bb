// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc front end of the pi2 qdisc: options to netlink, netlink to text and JSON.
 *
 * What the text output says of the options, the parser accepts, and it leads to the
 * same bytes.  Defaults are the kernel's business: an option that was not given is
 * not sent.
 */
#include "options.h"

#include "pi2_uapi.h"

#define PI2_MSG_MAX		1024
#define PI2_TEXT		32	/* the longest number, with its unit */
#define PI2_DIGITS_MAX		24

struct pi2_unit {
	const char *name;
	double factor;
};

/* The first one is what the text output ends in. */
static const struct pi2_unit pi2_plain[] = { { "", 1 }, { NULL, 0 } };

static const struct pi2_unit pi2_packets[] = {
	{ "p", 1 }, { "", 1 }, { NULL, 0 },
};

/* As all of tc has them. */
static const struct pi2_unit pi2_times[] = {
	{ "us", 1 }, { "", 1 }, { "usec", 1 }, { "usecs", 1 },
	{ "ms", 1e3 }, { "msec", 1e3 }, { "msecs", 1e3 },
	{ "s", 1e6 }, { "sec", 1e6 }, { "secs", 1e6 }, { NULL, 0 },
};

static const struct pi2_unit pi2_gains[] = {
	{ "Hz", 256 }, { "", 256 }, { NULL, 0 },
};

/* An option with a number.  In the order of the output. */
static const struct pi2_option {
	const char *word;
	const char *json;
	const char *what;
	unsigned int attr;
	unsigned int size;	/* of the attribute */
	const struct pi2_unit *units;
	bool is_rounded;	/* else it has to come out even */
	__u32 min;		/* in the unit of the attribute */
	__u32 max;
} pi2_options[] = {
	{ "limit", "limit", "a number of packets", TCA_PI2_LIMIT,
	  sizeof(__u32), pi2_packets, false, 1, UINT32_MAX },
	{ "target", "target", "a time", TCA_PI2_TARGET,
	  sizeof(__u32), pi2_times, true, 1, OPTION_TIME_MAX_US },
	{ "tupdate", "tupdate", "a time", TCA_PI2_TUPDATE,
	  sizeof(__u32), pi2_times, true, 100, OPTION_TIME_MAX_US },
	{ "alpha", "alpha", "a number of Hz", TCA_PI2_ALPHA,
	  sizeof(__u32), pi2_gains, true, 1, INT32_MAX },
	{ "beta", "beta", "a number of Hz", TCA_PI2_BETA,
	  sizeof(__u32), pi2_gains, true, 1, INT32_MAX },
	{ "coupling_factor", "coupling-factor", "a number", TCA_PI2_COUPLING,
	  sizeof(__u8), pi2_plain, false, 1, UINT8_MAX },
};

static const char *const pi2_signals[] = {
	[TC_PI2_SIGNAL_RECUR] = "recur",
	[TC_PI2_SIGNAL_RANDOM] = "random",
};

/* What one command asks for; bit N of given: val[N] is to be sent. */
struct pi2_request {
	unsigned int given;
	__u32 val[TCA_PI2_MAX + 1];
};

static void pi2_explain(void)
{
	fprintf(stderr,
		"Usage: ... pi2 [ limit PACKETS ] [ target TIME ] [ tupdate TIME ]\n"
		"               [ alpha HZ ] [ beta HZ ] [ coupling_factor NUMBER ]\n"
		"               [ ecn | noecn ] [ signal recur | random ]\n"
		"TIME is in us unless it ends in ms or s.\n");
}

/* Exact: 15 digits hold any number of 1/256. */
static const char *pi2_format(char *text, const struct pi2_option *opt,
			      __u32 val)
{
	const struct pi2_unit *unit = opt->units, *u;

	/* Seconds or milliseconds, where it is as many at least. */
	for (u = unit + 1; opt->units == pi2_times && u->name; u++)
		if (u->factor > unit->factor && val >= u->factor)
			unit = u;
	snprintf(text, PI2_TEXT, "%.15g%s", val / unit->factor, unit->name);
	return text;
}

/* Ends the line that the caller began with what was wrong. */
static int pi2_expected(const struct pi2_option *opt)
{
	char min[PI2_TEXT], max[PI2_TEXT];

	fprintf(stderr, "; expected %s from %s to %s\n", opt->what,
		pi2_format(min, opt, opt->min), pi2_format(max, opt, opt->max));
	return -1;
}

/* A number in the unit of the attribute.  strtod() takes more than digits, so that
 * it gets no more.
 */
static bool pi2_number(const struct pi2_option *opt, const char *arg,
		       double *num)
{
	size_t len = strspn(arg, "0123456789.");
	const struct pi2_unit *unit = opt->units;
	char digits[PI2_DIGITS_MAX + 1] = "";
	char *end;

	if (!len || len > PI2_DIGITS_MAX)
		return false;
	memcpy(digits, arg, len);
	*num = strtod(digits, &end);
	if (end != digits + len)
		return false;
	while (unit->name && strcmp(arg + len, unit->name) != 0)
		unit++;
	*num *= unit->factor;
	return unit->name;
}

static int pi2_set(struct pi2_request *req, const char *word, unsigned int attr,
		   __u32 val)
{
	if (req->given & 1U << attr) {
		fprintf(stderr, "pi2: %s: %s; expected once\n", word,
			attr == TCA_PI2_ECN ? "ecn or noecn was there already" :
					      "it was there already");
		return -1;
	}
	req->given |= 1U << attr;
	req->val[attr] = val;
	return 0;
}

static int pi2_parse_number(struct pi2_request *req,
			    const struct pi2_option *opt, const char *arg)
{
	double num;

	if (!arg) {
		fprintf(stderr, "pi2: %s: the value is missing", opt->word);
		return pi2_expected(opt);
	}
	if (!pi2_number(opt, arg, &num)) {
		fprintf(stderr, "pi2: %s: \"%s\" is not %s", opt->word, arg,
			opt->what);
		return pi2_expected(opt);
	}
	if (opt->is_rounded)
		num += 0.5;
	if (!(num >= opt->min && num < opt->max + 1.0)) {
		fprintf(stderr, "pi2: %s: \"%s\" is not in range", opt->word,
			arg);
		return pi2_expected(opt);
	}
	if (!opt->is_rounded && num != (__u32)num) {
		fprintf(stderr, "pi2: %s: \"%s\" is not whole", opt->word, arg);
		return pi2_expected(opt);
	}
	return pi2_set(req, opt->word, opt->attr, num);
}

static int pi2_parse_signal(struct pi2_request *req, const char *arg)
{
	unsigned int i;

	for (i = 0; arg && i < ARRAY_SIZE(pi2_signals); i++)
		if (strcmp(arg, pi2_signals[i]) == 0)
			return pi2_set(req, "signal", TCA_PI2_SIGNAL, i);
	if (arg)
		fprintf(stderr, "pi2: signal: \"%s\" is no way to signal", arg);
	else
		fprintf(stderr, "pi2: signal: the value is missing");
	fprintf(stderr, "; expected recur or random\n");
	return -1;
}

static const struct pi2_option *pi2_find(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pi2_options); i++)
		if (strcmp(word, pi2_options[i].word) == 0)
			return &pi2_options[i];
	return NULL;
}

static int pi2_parse(struct pi2_request *req, int argc, char **argv)
{
	const struct pi2_option *opt;
	int err, i;

	for (i = 0; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;

		opt = pi2_find(argv[i]);
		if (opt) {
			err = pi2_parse_number(req, opt, next);
			i++;
		} else if (strcmp(argv[i], "signal") == 0) {
			err = pi2_parse_signal(req, next);
			i++;
		} else if (strcmp(argv[i], "ecn") == 0) {
			err = pi2_set(req, argv[i], TCA_PI2_ECN, 1);
		} else if (strcmp(argv[i], "noecn") == 0) {
			err = pi2_set(req, argv[i], TCA_PI2_ECN, 0);
		} else {
			if (strcmp(argv[i], "help") != 0)
				fprintf(stderr,
					"pi2: \"%s\" is not an option; expected one of:\n",
					argv[i]);
			pi2_explain();
			err = -1;
		}
		if (err)
			return err;
	}
	return 0;
}

static unsigned int pi2_size(unsigned int attr)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pi2_options); i++)
		if (pi2_options[i].attr == attr)
			return pi2_options[i].size;
	return sizeof(__u8);
}

static int pi2_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			 struct nlmsghdr *n, const char *dev)
{
	struct pi2_request req = {};
	struct rtattr *nest;
	unsigned int attr;

	if (pi2_parse(&req, argc, argv))
		return -1;
	nest = addattr_nest(n, PI2_MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	for (attr = 1; attr <= TCA_PI2_MAX; attr++) {
		__u8 val8 = req.val[attr];
		const void *data = pi2_size(attr) == sizeof(val8) ?
				   (const void *)&val8 : &req.val[attr];

		if ((req.given & 1U << attr) &&
		    addattr_l(n, PI2_MSG_MAX, attr, data, pi2_size(attr)))
			return -1;
	}
	addattr_nest_end(n, nest);
	return 0;
}

/* Return: false if the kernel did not send it. */
static bool pi2_read(struct rtattr *const tb[], unsigned int attr, __u32 *val)
{
	__u64 val64;

	if (!option_read(tb[attr], pi2_size(attr), &val64))
		return false;
	*val = val64;
	return true;
}

static void pi2_print_number(const struct pi2_option *opt, __u32 val)
{
	char text[PI2_TEXT];

	if (opt->units == pi2_gains)
		print_float(PRINT_JSON, opt->json, NULL,
			    val / opt->units->factor);
	else
		print_uint(PRINT_JSON, opt->json, NULL, val);
	print_string(PRINT_FP, NULL, "%s ", opt->word);
	print_string(PRINT_FP, NULL, "%s ", pi2_format(text, opt, val));
}

static int pi2_print_opt(const struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	struct rtattr *tb[TCA_PI2_MAX + 1] = {};
	unsigned int i;
	__u32 val;

	if (!opt)
		return 0;
	option_find_attrs(tb, TCA_PI2_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	for (i = 0; i < ARRAY_SIZE(pi2_options); i++)
		if (pi2_read(tb, pi2_options[i].attr, &val))
			pi2_print_number(&pi2_options[i], val);
	if (pi2_read(tb, TCA_PI2_ECN, &val)) {
		print_bool(PRINT_JSON, "ecn", NULL, val);
		print_string(PRINT_FP, NULL, "%s ", val ? "ecn" : "noecn");
	}
	if (pi2_read(tb, TCA_PI2_SIGNAL, &val) && val < ARRAY_SIZE(pi2_signals))
		print_string(PRINT_ANY, "signal", "signal %s ",
			     pi2_signals[val]);
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
	option_copy(&st, sizeof(st), xstats);

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
