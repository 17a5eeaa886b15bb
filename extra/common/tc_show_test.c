// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of test_tc.c: help, man pages, netlink to text and JSON, statistics.
 */
/* ---- help and man pages ---- */

static const char *const common_words[] = {
	"bandwidth", "limit", "target", "tupdate", "buffer", "carry", "mark",
	"ipv4_id", "ecn", "noecn",
};

static const char *const one_words[] = {
	"arrival_drop", "noarrival_drop",
};

static const char *const vdq_words[] = {
	"target_l", "buffer_l", "vrate", "vrate_l",
};

static const char *const ppv_words[] = {
	"default", "window", "carry", "mark", "ipv4_id", "tvf",
};

static bool has_words(const char *text, const char *const *list,
		      unsigned int len)
{
	bool all = true;

	while (len--)
		if (!has_word(text, list[len])) {
			printf("# missing: %s\n", list[len]);
			all = false;
		}
	return all;
}

static void test_options_elsewhere(struct qdisc_util *qu,
				   struct qdisc_util *other,
				   const char *const *words, unsigned int len)
{
	char want[TEXT_SIZE], line[64];
	unsigned int i;

	for (i = 0; i < len; i++) {
		sprintf(want,
			"%s: unknown option \"%s\" (an option of %s); see: tc qdisc add %s help\n",
			qu->id, words[i], other->id, qu->id);
		sprintf(line, "%s 1", words[i]);
		check(is_denied(qu, change(qu, line)) && !strcmp(errors, want),
		      "%s says that %s is an option of %s", qu->id, words[i],
		      other->id);
	}
}

static void test_extra_help(void)
{
	struct qdisc_util *const all[] = { CSAQM, VDQ, PPV };
	char *usage, want[TEXT_SIZE];
	const char *line, *end;
	unsigned int i;
	size_t width;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct qdisc_util *qu = all[i];
		bool whole;

		check(change(qu, "help") == -1, "%s help ends the command",
		      qu->id);
		usage = strdup(errors);
		if (qu == PPV)
			whole = has_words(usage, ppv_words,
					  ARRAY_SIZE(ppv_words));
		else
			whole = has_words(usage, common_words,
					  ARRAY_SIZE(common_words));
		if (qu == VDQ)
			whole &= has_words(usage, vdq_words,
					   ARRAY_SIZE(vdq_words));
		if (qu == CSAQM)
			whole &= has_words(usage, one_words,
					   ARRAY_SIZE(one_words));
		check(whole, "%s help has every option", qu->id);
		for (width = 0, line = usage; (end = strchr(line, '\n'));
		     line = end + 1)
			if ((size_t)(end - line) > width)
				width = end - line;
		check(width <= 80, "%s help fits 80 columns", qu->id);

		sprintf(want, "%s: unknown option \"bogus\"; see: tc qdisc add %s help\n",
			qu->id, qu->id);
		check(is_denied(qu, change(qu, "carry mark bogus")),
		      "%s: an unknown word is refused", qu->id);
		check_text("with one line", errors, want);
		check(is_denied(qu, change(qu, "carr mark")),
		      "%s: an abbreviation is refused", qu->id);
		free(usage);
	}

	test_options_elsewhere(CSAQM, VDQ, vdq_words, ARRAY_SIZE(vdq_words));
	test_options_elsewhere(VDQ, CSAQM, one_words, ARRAY_SIZE(one_words));

	capture_errors();
	i = PPV->parse_copt(PPV, 0, NULL, &request.n, "eth0");
	read_errors();
	dup2(own_stderr, STDERR_FILENO);
	check(i == (unsigned int)-1 && strstr(errors, "tc qdisc change"),
	      "a class of ppv is not changed, but its function is");
}

/* A man page without its hyphens and fonts, and each line break a blank. */
static char *read_man(const char *path)
{
	static char text[1 << 17];
	FILE *file = fopen(path, "r");
	char *from, *to;

	text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = 0;
	if (file)
		fclose(file);
	for (from = to = text; *from; from++) {
		if (from[0] == '\\' && from[1] == '-')
			continue;
		if (from[0] == '\\' && from[1] == 'f' && from[2])
			from += 2;
		else
			*to++ = *from == '\n' ? ' ' : *from;
	}
	*to = 0;
	return text;
}

static void check_default(const char *text, const char *option,
			  const char *val)
{
	char want[256];
	bool found;

	snprintf(want, sizeof(want), "Default: %s.", val);
	/* From the head of the option's paragraph to the next one's. */
	snprintf(msg.bytes, sizeof(msg.bytes), ".BI %s \" ", option);
	text = strstr(text, msg.bytes);
	found = text && strstr(text, want) &&
		strstr(text, want) < strstr(text, " .TP ");
	check(found, "the man page has the default of %s, %s", option, val);
}

static const char *format_us(unsigned int us)
{
	static char buf[32];

	sprintf(buf, "%u ms", us / 1000);
	return buf;
}

/* "5 ms for csaqm, 20 ms for vdq_csaqm" */
static void check_default_of_both(const char *text, const char *option,
				  unsigned int us, unsigned int vdq_us)
{
	char val[128];

	sprintf(val, "%u ms for csaqm, %u ms for vdq_csaqm", us / 1000,
		vdq_us / 1000);
	check_default(text, option, val);
}

static void test_man_of_csaqm(const char *path)
{
	const char *text = read_man(path);
	char val[32];

	check(has_words(text, common_words, ARRAY_SIZE(common_words)) &&
	      has_words(text, one_words, ARRAY_SIZE(one_words)) &&
	      has_words(text, vdq_words, ARRAY_SIZE(vdq_words)),
	      "the man page of csaqm has every option");
	check_default_of_both(text, "target", CSAQM_TARGET_US_DEF,
			      CSAQM_VDQ_TARGET_US_DEF);
	check_default_of_both(text, "tupdate", CSAQM_TUPDATE_US_DEF,
			      CSAQM_VDQ_TUPDATE_US_DEF);
	check_default_of_both(text, "buffer", CSAQM_BUFFER_US_DEF,
			      CSAQM_VDQ_BUFFER_US_DEF);
	check_default(text, "target_l", format_us(CSAQM_VDQ_TARGET_L_US_DEF));
	check_default(text, "buffer_l", format_us(CSAQM_VDQ_BUFFER_L_US_DEF));
	sprintf(val, "%g", CSAQM_VDQ_VRATE_DEF / 1e3);
	check_default(text, "vrate", val);
	sprintf(val, "%g", CSAQM_VDQ_VRATE_L_DEF / 1e3);
	check_default(text, "vrate_l", val);
}

/* The options that a kernel sends for a function of its own. */
static void send_builtin(unsigned int number)
{
	struct tc_ppv_point points[PPV_POINTS_MAX] = {};
	struct rtattr *nest, *function;
	struct ppv_tvf tvf;
	__u32 val = number;
	unsigned int i;

	ppv_tvf_builtin(&tvf, number);
	for (i = 0; i < tvf.count; i++) {
		points[i].rate = tvf.points[i].rate;
		points[i].value = tvf.points[i].coded;
	}
	request_begin(0);
	nest = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_OPTIONS);
	function = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF);
	addattr_l(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF_NUMBER, &val, 4);
	addattr_l(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF_POINTS, points,
		  tvf.count * sizeof(points[0]));
	addattr_nest_end(&request.n, function);
	addattr_nest_end(&request.n, nest);
	front_end = PPV;
	print(false, false, request_options());
}

static void test_man_of_ppv(const char *path)
{
	const char *text = read_man(path), *points, *at;
	char number[16];
	unsigned int i;

	check(has_words(text, ppv_words, ARRAY_SIZE(ppv_words)),
	      "the man page of ppv has every option");
	check_default(text, "window", format_us(PPV_WINDOW_US_DEF));
	sprintf(number, "%u", PPV_DEFAULT_DEF);
	check_default(text, "default", number);
	for (i = 1; i <= 4; i++) {
		send_builtin(i);
		sprintf(number, "tvf %u ", i);
		points = strncmp(out, number, 6) ? NULL : out + 6;
		out[out_len - 1] = 0;	/* the blank */
		at = points && *points ? strstr(text, points) : NULL;
		check(at && strchr("  \t.", at[strlen(points)]),
		      "the man page has function %u as it is, %s", i,
		      points ? points : out);
	}
}

/* ---- netlink to text and JSON ---- */

static const struct {
	struct qdisc_util *qu;
	const char *line;
	const char *text;
	const char *json;
} shown[] = {
	{ CSAQM, "bandwidth 100mbit limit 1000 target 5ms tupdate 5ms buffer 500ms carry mark ecn",
	  "bandwidth 100Mbit limit 1000p target 5ms tupdate 5ms buffer 500ms carry mark ecn ",
	  "\"bandwidth\":12500000,\"limit\":1000,\"target\":5000,\"tupdate\":5000,\"buffer\":500000,\"carry\":\"mark\",\"ecn\":true" },
	{ CSAQM, "noecn carry ipv4_id bandwidth 1234567bps target 1234567us",
	  "bandwidth 9876536bit target 1.234567s carry ipv4_id noecn ",
	  "\"bandwidth\":1234567,\"target\":1234567,\"carry\":\"ipv4_id\",\"ecn\":false" },
	{ CSAQM, "arrival_drop noecn", "noecn arrival_drop ", "\"ecn\":false,\"arrival-drop\":true" },
	{ CSAQM, "noarrival_drop limit 5", "limit 5p noarrival_drop ", "\"limit\":5,\"arrival-drop\":false" },
	{ CSAQM, "bandwidth 1tbit target 999us buffer 16384us tupdate 999999us",
	  "bandwidth 1Tbit target 999us tupdate 999.999ms buffer 16.384ms ",
	  "\"bandwidth\":125000000000,\"target\":999,\"tupdate\":999999,\"buffer\":16384" },
	{ CSAQM, "", "", "" },
	{ VDQ, "vrate_l 0.9 vrate 0.984 buffer_l 50ms target_l 1ms bandwidth 2500kbit",
	  "bandwidth 2500Kbit target_l 1ms buffer_l 50ms vrate 0.984 vrate_l 0.9 ",
	  "\"bandwidth\":312500,\"target-l\":1000,\"buffer-l\":50000,\"vrate\":0.984,\"vrate-l\":0.9" },
	{ VDQ, "vrate 1 vrate_l 0.001", "vrate 1 vrate_l 0.001 ",
	  "\"vrate\":1,\"vrate-l\":0.001" },
	{ PPV, "tvf 2 10mbit:2e8,100mbit:1.25e4,1gbit:1.001 window 100ms tvf 1 8:1e10 carry mark default 2",
	  "default 2 window 100ms carry mark tvf 1 8bit:1e10 tvf 2 10Mbit:2e8,100Mbit:12500,1Gbit:1.001 ",
	  "\"default\":2,\"window\":100000,\"carry\":\"mark\",\"tvf\":[{\"number\":1,\"points\":[{\"rate\":1,\"value\":1e+10,\"coded\":65535}]},{\"number\":2,\"points\":[{\"rate\":1250000,\"value\":2e+08,\"coded\":54400},{\"rate\":12500000,\"value\":12500,\"coded\":26849},{\"rate\":125000000,\"value\":1.001,\"coded\":2}]}]" },
	{ PPV, "", "", "\"tvf\":[]" },
};

static void test_extra_printed(void)
{
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shown); i++) {
		if (change(shown[i].qu, shown[i].line))
			check(false, "\"%s\" is taken", shown[i].line);
		sprintf(name, "%s \"%s\" is printed as text", shown[i].qu->id,
			shown[i].line);
		print(false, false, request_options());
		check_text(name, out, shown[i].text);
		sprintf(name, "%s \"%s\" is printed as JSON", shown[i].qu->id,
			shown[i].line);
		print(true, false, request_options());
		check_text(name, out, shown[i].json);
	}
	check(!CSAQM->print_qopt(CSAQM, stdout, NULL) &&
	      !CSAQM->print_xstats(CSAQM, stdout, NULL) &&
	      !PPV->print_qopt(PPV, stdout, NULL) &&
	      !PPV->print_xstats(PPV, stdout, NULL),
	      "nothing to print is not an error");

	/* What another kernel may send to it. */
	change(VDQ, "target 5ms target_l 1ms vrate 1");
	front_end = CSAQM;
	print(false, false, request_options());
	check_text("csaqm shows no option of vdq_csaqm", out, "target 5ms ");
	change(CSAQM, "target 5ms arrival_drop");
	front_end = VDQ;
	print(false, false, request_options());
	check_text("vdq_csaqm shows no option of csaqm", out, "target 5ms ");
}

static void set_one(int type, const void *data, int len)
{
	struct rtattr *nest;

	request_begin(0);
	nest = addattr_nest(&request.n, EXTRA_MSG_SIZE,
			    TCA_OPTIONS | NLA_F_NESTED);
	addattr_l(&request.n, EXTRA_MSG_SIZE, type, data, len);
	addattr_nest_end(&request.n, nest);
}

static void test_extra_odd_attributes(void)
{
	static const __u8 sizes[] = { 0, 0, 8, 4, 4, 4, 4, 1, 1, 4, 4, 4, 4 };
	static const __u8 ppv_sizes[] = { 0, 4, 4, 1 };
	static const __u32 data[4] = { 7, 7, 7, 7 };
	const __u64 rate = 125000000000000;
	unsigned int type, len, bad = 0;

	front_end = VDQ;
	for (type = 2; type < ARRAY_SIZE(sizes); type++)
		for (len = 0; len < sizes[type]; len++) {
			set_one(type, data, len);
			bad += print(false, false, request_options()) || out_len;
		}
	front_end = PPV;
	for (type = 1; type < ARRAY_SIZE(ppv_sizes); type++)
		for (len = 0; len < ppv_sizes[type]; len++) {
			set_one(type, data, len);
			bad += print(false, false, request_options()) || out_len;
		}
	check(!bad, "a short attribute is not printed");

	for (bad = 0, type = 0; type < 4000; type++) {
		if (type < 2 || type > 12) {
			front_end = VDQ;
			set_one(type, data, sizeof(data));
			bad += print(false, false, request_options()) || out_len;
		}
		if (!type || type > 4) {
			front_end = PPV;
			set_one(type, data, sizeof(data));
			bad += print(false, false, request_options()) || out_len;
		}
	}
	check(!bad, "an unknown attribute is not printed");

	front_end = VDQ;
	set_one(5, data, sizeof(data));
	print(false, false, request_options());
	check_text("a long attribute is read as far as it is known", out,
		   "target 7us ");
	set_one(2, &rate, sizeof(rate));
	print(false, false, request_options());
	check_text("a rate beyond the limits is printed", out,
		   "bandwidth 1000Tbit ");
	set_one(7, "\2", 1);
	bad = print(false, false, request_options()) || out_len ||
	      print(true, false, request_options()) || out_len;
	check(!bad, "a place of values that is not known is not printed");
}

/* A function: cut anywhere, and each part of it missing. */
static void test_extra_odd_functions(void)
{
	struct tc_ppv_point points[3] = {
		{ .rate = 1000, .value = 52428 }, { .rate = 2000, .value = 1 },
	};
	struct rtattr *nest, *function;
	unsigned int len, bad = 0;
	__u32 number = 5;

	front_end = PPV;
	for (len = 0; len <= sizeof(points); len++) {
		request_begin(0);
		nest = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_OPTIONS);
		function = addattr_nest(&request.n, EXTRA_MSG_SIZE,
					TCA_PPV_TVF);
		addattr_l(&request.n, EXTRA_MSG_SIZE, 1, &number, 4);
		addattr_l(&request.n, EXTRA_MSG_SIZE, 9, "new", 4);
		addattr_l(&request.n, EXTRA_MSG_SIZE, 2, points, len);
		addattr_nest_end(&request.n, function);
		addattr_nest_end(&request.n, nest);
		print(false, false, request_options());
		bad += strcmp(out, len < 16 ? "" :
			      len < 32 ? "tvf 5 8Kbit:1e8 " :
			      len < 48 ? "tvf 5 8Kbit:1e8,16Kbit:1.0005 " :
			      "tvf 5 8Kbit:1e8,16Kbit:1.0005,0bit:0 ") != 0;
	}
	check(!bad, "of a function whole points are printed");
	request_begin(0);
	nest = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_OPTIONS);
	function = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF);
	addattr_l(&request.n, EXTRA_MSG_SIZE, 2, points, sizeof(points));
	addattr_nest_end(&request.n, function);
	function = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF);
	addattr_l(&request.n, EXTRA_MSG_SIZE, 1, &number, 4);
	addattr_nest_end(&request.n, function);
	addattr_l(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF, "\377\377\377", 3);
	addattr_nest_end(&request.n, nest);
	print(false, false, request_options());
	check_text("half a function is not printed", out, "");
	print(true, false, request_options());
	check_text("half a function is not in JSON", out, "\"tvf\":[]");

	/* A newer kernel may have more than functions. */
	change(PPV, "tvf 5 1mbit:1e8");
	((struct rtattr *)RTA_DATA(request_options()))->rta_type = 5;
	print(false, false, request_options());
	check_text("what only looks like a function is not printed", out, "");
}

/* ---- statistics ---- */

static union {
	struct rtattr rta;
	char bytes[4096];
} extra_stats;

/* len may be anything. */
static void set_extra_stats(const void *st, size_t size, size_t len)
{
	memset(&extra_stats, 0xee, sizeof(extra_stats));
	extra_stats.rta.rta_type = 4;
	extra_stats.rta.rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(&extra_stats.rta), st, len < size ? len : size);
}

static const struct tc_csaqm_xstats csaqm_stats = {
	.c = {
		.arrived = 812, .forwarded = 800, .marked = 5,
		.dropped_value = 2, .dropped_buffer = 3, .dropped_limit = 4,
		.purged = 1, .no_value = 6, .delay_sum_ns = 336000000,
		.delay_max_ns = 9100000, .bytes = 3028, .virtual_bytes = 4000,
		.packets = 2, .threshold = 52428,
	},
	.l = {
		.arrived = 1812, .forwarded = 0, .marked = 15,
		.dropped_value = 12, .dropped_buffer = 13, .dropped_limit = 14,
		.purged = 11, .no_value = 16, .bytes = 13028,
		.virtual_bytes = 14000, .packets = 12, .threshold = 65536,
	},
	.updates = 21, .mark_failed = 22, .gso_failed = 23, .unparsed = 24,
	.throttled = 25,
};

#define STATS_C_TEXT \
	" arrived 812 forwarded 800 marked 5 no_value 6\n" \
	" dropped 9 (value 2, buffer 3, limit 4) purged 1\n" \
	" queued 2 (3028 bytes) virtual 4000 bytes threshold 1e8 (52428)\n" \
	" delay mean 420us max 9.1ms\n"

#define STATS_L_TEXT \
	" arrived 1812 forwarded 0 marked 15 no_value 16\n" \
	" dropped 39 (value 12, buffer 13, limit 14) purged 11\n" \
	" queued 12 (13028 bytes) virtual 14000 bytes threshold all (65536)\n" \
	" delay of no packet yet\n"

#define STATS_TEXT \
	"updates 21 throttled 25 mark_failed 22 gso_failed 23 unparsed 24\n"

#define STATS_C_JSON \
	"{\"arrived\":812,\"forwarded\":800,\"marked\":5,\"no-value\":6,\"dropped-value\":2,\"dropped-buffer\":3,\"dropped-limit\":4,\"purged\":1,\"packets\":2,\"bytes\":3028,\"virtual-bytes\":4000,\"threshold\":1e+08,\"threshold-coded\":52428,\"delay-sum-ns\":336000000,\"delay-max-ns\":9100000,\"delay-mean-ns\":420000}"

#define STATS_L_JSON \
	"{\"arrived\":1812,\"forwarded\":0,\"marked\":15,\"no-value\":16,\"dropped-value\":12,\"dropped-buffer\":13,\"dropped-limit\":14,\"purged\":11,\"packets\":12,\"bytes\":13028,\"virtual-bytes\":14000,\"threshold\":1.0005e+10,\"threshold-coded\":65536,\"delay-sum-ns\":0,\"delay-max-ns\":0,\"delay-mean-ns\":null}"

#define STATS_JSON \
	",\"updates\":21,\"throttled\":25,\"mark-failed\":22,\"gso-failed\":23,\"unparsed\":24"

static void test_csaqm_statistics(void)
{
	struct tc_csaqm_xstats st = csaqm_stats, part;
	size_t len, bad = 0;
	char want[TEXT_SIZE];

	check(sizeof(st) == 248, "the statistics of csaqm have 248 bytes");

	set_extra_stats(&st, sizeof(st), sizeof(st));
	front_end = CSAQM;
	print(false, true, &extra_stats.rta);
	check_text("csaqm has statistics of one queue", out,
		   "Queue:" STATS_C_TEXT STATS_TEXT);
	print(true, true, &extra_stats.rta);
	check_text("csaqm has statistics of one queue in JSON", out,
		   "\"queue\":" STATS_C_JSON STATS_JSON);
	front_end = VDQ;
	print(false, true, &extra_stats.rta);
	check_text("vdq_csaqm has statistics of two queues", out,
		   "Classic:" STATS_C_TEXT "L4S:" STATS_L_TEXT STATS_TEXT);
	print(true, true, &extra_stats.rta);
	check_text("vdq_csaqm has statistics of two queues in JSON", out,
		   "\"classic\":" STATS_C_JSON ",\"l4s\":" STATS_L_JSON STATS_JSON);

	/* A newer kernel's struct begins with that of this version. */
	set_extra_stats(&st, sizeof(st), sizeof(st) + 40);
	print(false, true, &extra_stats.rta);
	check_text("what longer statistics have in addition is left", out,
		   "Classic:" STATS_C_TEXT "L4S:" STATS_L_TEXT STATS_TEXT);

	/* Cut anywhere: as the same with zeroes. */
	for (len = 0; len < sizeof(st); len++) {
		memset(&part, 0, sizeof(part));
		memcpy(&part, &st, len);
		set_extra_stats(&part, sizeof(part), sizeof(part));
		print(true, true, &extra_stats.rta);
		strcpy(want, out);
		set_extra_stats(&st, sizeof(st), len);
		print(true, true, &extra_stats.rta);
		bad += strcmp(out, want) != 0;
	}
	check(!bad, "what shorter statistics lack is zero");

	st.c.threshold = 0;
	set_extra_stats(&st, sizeof(st), sizeof(st));
	print(false, true, &extra_stats.rta);
	check(strstr(out, " threshold none (0)\n"),
	      "a threshold that no packet is below is none");
	print(true, true, &extra_stats.rta);
	check(strstr(out, "\"threshold\":0,\"threshold-coded\":0,"),
	      "a threshold that no packet is below is 0 in JSON");
	st.c.threshold = 65535;
	set_extra_stats(&st, sizeof(st), sizeof(st));
	print(false, true, &extra_stats.rta);
	check(strstr(out, " threshold 1e10 (65535)\n"),
	      "a threshold of the maximum value is one");
}

static void test_ppv_statistics(void)
{
	static const char text[] =
		"valued 11 not_valued 12 no_function 13 flows_new 14 flows_evicted 15\n"
		"child_dropped 18 filter_dropped 17 gso_failed 16\n";
	static const struct tc_ppv_xstats st = {
		.valued = 11, .not_valued = 12, .no_function = 13,
		.flows_new = 14, .flows_evicted = 15, .gso_failed = 16,
		.filter_dropped = 17, .child_dropped = 18,
	};
	struct tc_ppv_xstats part;
	size_t len, bad = 0;
	char want[TEXT_SIZE];

	check(sizeof(st) == 64, "the statistics of ppv have 64 bytes");
	front_end = PPV;
	set_extra_stats(&st, sizeof(st), sizeof(st));
	print(false, true, &extra_stats.rta);
	check_text("ppv has statistics", out, text);
	print(true, true, &extra_stats.rta);
	check_text("ppv has statistics in JSON", out,
		   "\"valued\":11,\"not-valued\":12,\"no-function\":13,\"flows-new\":14,\"flows-evicted\":15,\"child-dropped\":18,\"filter-dropped\":17,\"gso-failed\":16");
	set_extra_stats(&st, sizeof(st), sizeof(st) + 24);
	print(false, true, &extra_stats.rta);
	check_text("what longer statistics of ppv have in addition is left",
		   out, text);
	for (len = 0; len < sizeof(st); len++) {
		memset(&part, 0, sizeof(part));
		memcpy(&part, &st, len);
		set_extra_stats(&part, sizeof(part), sizeof(part));
		print(false, true, &extra_stats.rta);
		strcpy(want, out);
		set_extra_stats(&st, sizeof(st), len);
		print(false, true, &extra_stats.rta);
		bad += strcmp(out, want) != 0;
	}
	check(!bad, "what shorter statistics of ppv lack is zero");
}
