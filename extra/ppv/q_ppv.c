// SPDX-License-Identifier: GPL-2.0-only
/* tc plugin of the qdisc ppv, which gives packets their values. */
#include "options.h"

#define PPV_WINDOW_MIN_US	1000
#define PPV_WINDOW_MAX_US	1000000

/* In the order of the output. */
static const struct option_spec ppv_options[] = {
	{ .word = "default", .kind = OPTION_NUMBER, .attr = TCA_PPV_DEFAULT,
	  .min = 1, .max = TC_PPV_TVFS, .json_key = "default" },
	{ .word = "window", .kind = OPTION_TIME, .attr = TCA_PPV_WINDOW,
	  .min = PPV_WINDOW_MIN_US, .max = PPV_WINDOW_MAX_US,
	  .json_key = "window" },
	{ .word = "carry", .kind = OPTION_CHOICE, .attr = TCA_PPV_CARRY,
	  .json_key = "carry", .names = option_carries },
	{ .word = "tvf", .kind = OPTION_LIST, .attr = TCA_PPV_TVF,
	  .json_key = "tvf" },
};

/* The number of a function and the rate of a point are read as options are. */
static const struct option_spec ppv_number = {
	.word = "tvf", .kind = OPTION_NUMBER, .min = 1, .max = TC_PPV_TVFS,
};

static const struct option_spec ppv_rate = {
	.word = "tvf", .kind = OPTION_RATE, .min = 1, .max = OPTION_RATE_MAX,
};

struct ppv_tvf {
	unsigned int len;
	struct tc_ppv_point points[TC_PPV_POINTS];
};

struct ppv_request {
	struct option_request words;
	struct ppv_tvf tvfs[TC_PPV_TVFS];	/* the first one is number 1 */
};

static int ppv_parse_tvf(struct option_request *words, int argc, char **argv);

static const struct option_plugin ppv_plugin = {
	.name = "ppv",
	.options = ppv_options,
	.len = ARRAY_SIZE(ppv_options),
	.parse_list = ppv_parse_tvf,
	.usage =
	"Usage: ... ppv [ default NUMBER ] [ window TIME ]\n"
	"               [ carry mark|ipv4_id ]\n"
	"               [ tvf NUMBER RATE:VALUE[,RATE:VALUE]... ]...\n"
	"NUMBER is that of a throughput-value function, 1 to 16;\n"
	"1 Gold, 2 Silver, 3 Background and 4 Voice are built in.\n"
	"RATE is in bit/s unless it ends in kbit, mbit, gbit, bps etc.;\n"
	"VALUE is above 1 and up to 1e10.  Rates go up, values down.\n"
	"TIME is in us unless it ends in ms or s.\n",
};

static void ppv_explain_points(void)
{
	fprintf(stderr,
		"; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5\n");
}

static int ppv_parse_point(struct tc_ppv_point *point, char *text)
{
	char *colon = strchr(text, ':');
	double value;
	__u64 rate;

	if (!colon) {
		fprintf(stderr, "ppv: tvf: \"%s\" is not a point", text);
		ppv_explain_points();
		return -1;
	}
	*colon++ = 0;
	if (option_parse_value(&ppv_plugin, &ppv_rate, &rate, text))
		return -1;
	point->rate = rate;
	if (strncasecmp(colon, "0x", 2) == 0 ||
	    !option_scan(&value, option_no_units, colon)) {
		fprintf(stderr,
			"ppv: tvf: \"%s\" is not a packet value; expected 1.0004 to 1e10\n",
			colon);
		return -1;
	}
	/* Not to be coded before it is known to fit. */
	point->value = value >= 1 && value <= OPTION_VALUE_MAX ?
		       option_code(value) : 0;
	if (!point->value) {
		fprintf(stderr,
			"ppv: tvf: \"%s\" is not in range; expected 1.0004 to 1e10\n",
			colon);
		return -1;
	}
	return 0;
}

/* What rises, or has two values at one rate, is no throughput-value function. */
static int ppv_check_point(const struct tc_ppv_point *point, unsigned int i)
{
	if (!i)
		return 0;
	if (point->rate <= point[-1].rate) {
		fprintf(stderr,
			"ppv: tvf: the rate of point %u is not above the one before; expected rates that go up\n",
			i + 1);
		return -1;
	}
	if (point->value >= point[-1].value) {
		fprintf(stderr,
			"ppv: tvf: the value of point %u is not below the one before by 0.04 %%; expected values that go down\n",
			i + 1);
		return -1;
	}
	return 0;
}

static int ppv_parse_points(struct ppv_tvf *tvf, char *text)
{
	char *end;

	for (; text; text = end) {
		struct tc_ppv_point *point = &tvf->points[tvf->len];

		end = strchr(text, ',');
		if (end)
			*end++ = 0;
		if (tvf->len == TC_PPV_POINTS) {
			fprintf(stderr,
				"ppv: tvf: too many points; expected %d at most\n",
				TC_PPV_POINTS);
			return -1;
		}
		if (ppv_parse_point(point, text) ||
		    ppv_check_point(point, tvf->len))
			return -1;
		tvf->len++;
	}
	return 0;
}

static int ppv_parse_tvf(struct option_request *words, int argc, char **argv)
{
	struct ppv_request *req = (struct ppv_request *)words;
	struct ppv_tvf *tvf;
	__u64 number;
	char *text;
	int ret;

	if (argc < 1) {
		fprintf(stderr, "ppv: tvf: the number is missing");
		option_explain_range(&ppv_number);
		return -1;
	}
	if (option_parse_value(&ppv_plugin, &ppv_number, &number, argv[0]))
		return -1;
	if (argc < 2) {
		fprintf(stderr, "ppv: tvf: the points of function %llu are missing",
			(unsigned long long)number);
		ppv_explain_points();
		return -1;
	}
	tvf = &req->tvfs[number - 1];
	if (tvf->len) {
		fprintf(stderr,
			"ppv: tvf: function %llu is there twice; expected each once\n",
			(unsigned long long)number);
		return -1;
	}
	/* tc may want its arguments as they are. */
	text = strdup(argv[1]);
	if (!text) {
		fprintf(stderr, "ppv: tvf: there is no memory; free some\n");
		return -1;
	}
	ret = ppv_parse_points(tvf, text);
	free(text);
	return ret ? -1 : 2;
}

static int ppv_add_tvf(struct nlmsghdr *n, __u32 number,
		       const struct ppv_tvf *tvf)
{
	struct rtattr *nest = addattr_nest(n, OPTION_MSG_MAX,
					   TCA_PPV_TVF | NLA_F_NESTED);

	if (addattr_l(n, OPTION_MSG_MAX, TCA_PPV_TVF_NUMBER, &number,
		      sizeof(number)) ||
	    addattr_l(n, OPTION_MSG_MAX, TCA_PPV_TVF_POINTS, tvf->points,
		      tvf->len * sizeof(tvf->points[0])))
		return -1;
	addattr_nest_end(n, nest);
	return 0;
}

static int ppv_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			 struct nlmsghdr *n, const char *dev)
{
	struct ppv_request req = {};
	struct rtattr *nest;
	unsigned int i;

	if (option_parse(&ppv_plugin, &req.words, argc, argv, n))
		return -1;
	nest = addattr_nest(n, OPTION_MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	if (option_add(&ppv_plugin, &req.words, n))
		return -1;
	for (i = 0; i < TC_PPV_TVFS; i++)
		if (req.tvfs[i].len && ppv_add_tvf(n, i + 1, &req.tvfs[i]))
			return -1;
	addattr_nest_end(n, nest);
	return 0;
}

/* Without this, tc says that the qdisc is classless. */
static int ppv_parse_copt(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	fprintf(stderr,
		"ppv: classes are there from the start; expected \"tc qdisc change ... ppv tvf NUMBER POINTS\"\n");
	return -1;
}

static void ppv_print_points(const struct rtattr *rta)
{
	unsigned int i, len = RTA_PAYLOAD(rta) / sizeof(struct tc_ppv_point);
	const char *points = RTA_DATA(rta);
	char buf[OPTION_BUF_SIZE];

	open_json_array(PRINT_JSON, "points");
	for (i = 0; i < len; i++) {
		struct tc_ppv_point point;

		memcpy(&point, points + i * sizeof(point), sizeof(point));
		open_json_object(NULL);
		print_lluint(PRINT_JSON, "rate", NULL, point.rate);
		option_print_value("value", "coded", point.value);
		print_string(PRINT_FP, NULL, i ? ",%s" : "%s",
			     option_format(buf, OPTION_RATE, point.rate));
		print_string(PRINT_FP, NULL, ":%s",
			     option_format_value(buf, point.value));
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
	print_string(PRINT_FP, NULL, "%s", " ");
}

static void ppv_print_tvf(struct rtattr *nest)
{
	struct rtattr *tb[TCA_PPV_TVF_MAX + 1] = {}, *points;
	__u64 number;

	option_find_attrs(tb, TCA_PPV_TVF_MAX, RTA_DATA(nest),
			  RTA_PAYLOAD(nest));
	points = tb[TCA_PPV_TVF_POINTS];
	if (!option_read(tb[TCA_PPV_TVF_NUMBER], sizeof(__u32), &number) ||
	    !points || RTA_PAYLOAD(points) < sizeof(struct tc_ppv_point))
		return;
	open_json_object(NULL);
	print_lluint(PRINT_ANY, "number", "tvf %llu ", number);
	ppv_print_points(points);
	close_json_object();
}

static int ppv_print_opt(const struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	struct rtattr *rta;
	int len;

	if (!opt)
		return 0;
	option_print(&ppv_plugin, opt);
	open_json_array(PRINT_JSON, "tvf");
	rta = RTA_DATA(opt);
	len = RTA_PAYLOAD(opt);
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len))
		if ((rta->rta_type & NLA_TYPE_MASK) == TCA_PPV_TVF)
			ppv_print_tvf(rta);
	close_json_array(PRINT_JSON, NULL);
	return 0;
}

static int ppv_print_xstats(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	struct tc_ppv_xstats st;

	if (!xstats)
		return 0;
	option_copy_attr(&st, sizeof(st), xstats);
	option_print_count("valued", "valued %llu", st.valued);
	option_print_count("not-valued", " not_valued %llu", st.not_valued);
	option_print_count("no-function", " no_function %llu", st.no_function);
	option_print_count("flows-new", " flows_new %llu", st.flows_new);
	option_print_count("flows-evicted", " flows_evicted %llu",
			   st.flows_evicted);
	print_nl();
	option_print_count("child-dropped", "child_dropped %llu",
			   st.child_dropped);
	option_print_count("filter-dropped", " filter_dropped %llu",
			   st.filter_dropped);
	option_print_count("gso-failed", " gso_failed %llu", st.gso_failed);
	print_nl();
	return 0;
}

struct qdisc_util ppv_qdisc_util = {
	.id = "ppv",
	.parse_qopt = ppv_parse_opt,
	.print_qopt = ppv_print_opt,
	.print_xstats = ppv_print_xstats,
	.parse_copt = ppv_parse_copt,
};
