/* SPDX-License-Identifier: GPL-2.0-only */
/* Statistics of overload and of the link, and odd ones, to text and JSON; part of test_q_dualpi2.c. */

#define SHORT_TEXT \
	"prob 0.010000 delay_c 14210us delay_l 430us\n" \
	"pkts_in_c 1234 pkts_in_l 5678 maxq 77\n" \
	"ecn_mark 12 step_mark 3\n"

static void check_short(const char *name, const char *want)
{
	static char complete[TEXT_SIZE];
	unsigned int lines = 0;
	const char *at;

	print_app(true);
	strcpy(complete, out);
	show_details = 0;
	print_app(false);
	check_text(name, out, want);
	for (at = out; (at = strchr(at, '\n')); at++)
		lines++;
	check(lines <= 8, "%s: at most 8 lines", name);
	print_app(true);
	check(!strcmp(out, complete), "%s: JSON is complete without -d", name);
	show_details = 1;
}

static void test_short(void)
{
	struct tc_dualpi2_overload overload = {};
	struct tc_dualpi2_ext_xstats ext = {
		.magic = TC_DUALPI2_EXT_XSTATS_MAGIC, .size = sizeof(ext),
		.mark_failed = 3,
	};
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);
	check_short("tc -s without -d is short",
		    SHORT_TEXT
		    "Classic: arrived 810 sent 208 queued 210 marked 639 (classic 212, coupled 213, native 214)\n"
		    " dropped 2646 (limit 436, memory 438, early 440, aqm 442, overload 444, purge 446) delay mean 17.6ms p99 41ms\n"
		    "L4S: arrived 4294968204 sent 18446744073709551615 queued 310 marked 939 (classic 312, coupled 313, native 314)\n"
		    " dropped 3846 (limit 636, memory 638, early 640, aqm 642, overload 644, purge 646) delay mean 400us p99 400us\n"
		    "overload no (0 times, 0.000s) unparsed 401 filter_dropped 402 gso_failed 403 mark_failed 404\n");

	queue_begin(&c, 65536);
	queue_begin(&l, 8192);
	queue_packet(&l, 2000000000);
	l.counters.arrived_ect1 = 5;
	l.counters.marked_native = 4;
	l.counters.ect_dropped_limit = 2;
	l.counters.not_ect_dropped_limit = 1;
	overload.now = 1;
	overload.count = 7;
	overload.total_ns = 1500000000;
	overload.start_ns = 1000000;
	app_begin();
	memcpy(RTA_DATA(app) + TC_DUALPI2_EXT_XSTATS_OFFSET, &ext, sizeof(ext));
	app_qdisc(&c, &l, &overload);
	check_short("tc -s leaves out causes of no packet",
		    SHORT_TEXT
		    "Classic: arrived 0 sent 0 queued 0 marked 0\n"
		    " dropped 0\n"
		    "L4S: arrived 5 sent 0 queued 0 marked 4 (native 4)\n"
		    " dropped 3 (limit 3) delay mean 2s p99 2s\n"
		    "overload yes (7 times, 1.500s) mark_failed 3\n");

	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	check_short("tc -s prints a class as two lines",
		    "L4S: arrived 5 sent 0 queued 0 marked 4 (native 4)\n"
		    " dropped 3 (limit 3) delay mean 2s p99 2s\n");

	set_xstats(0, 0);
	show_details = 0;
	print_xstats(false, sizeof(struct tc_dualpi2_xstats));
	show_details = 1;
	check_text("tc -s prints all that the dualpi2 of Linux 7.x has", out,
		   XSTATS_TEXT);
}

static void test_overload(void)
{
	static const struct {
		const char *name;
		struct tc_dualpi2_overload o;
		const char *text;
		const char *json;
	} cases[] = {
		{ "no overload", { .reports = 0 }, "",
		  "null,\"overload-end\":null,\"overload-start-ns\":0,\"overload-duration-ns\":0,\"overload-reports\":0" },
		{ "a present overload has no end",
		  { .start_ns = 1000000, .duration_ns = 9999999, .now = 1 },
		  "overload_start 1970-01-01T00:00:00.001Z overload_duration 0.010s overload_reports 0\n",
		  "\"1970-01-01T00:00:00.001Z\",\"overload-end\":null,\"overload-start-ns\":1000000,\"overload-duration-ns\":9999999,\"overload-reports\":0" },
		{ "an overload at 2^32 s",
		  { .start_ns = 4294967295999999999, .duration_ns = 1 },
		  "overload_start 2106-02-07T06:28:15.999Z overload_end 2106-02-07T06:28:16.000Z overload_duration 0.000s overload_reports 0\n",
		  "\"2106-02-07T06:28:15.999Z\",\"overload-end\":\"2106-02-07T06:28:16.000Z\",\"overload-start-ns\":4294967295999999999,\"overload-duration-ns\":1,\"overload-reports\":0" },
		{ "an overload at 2^64 ns",
		  { .start_ns = UINT64_MAX, .reports = UINT64_MAX, .now = 1 },
		  "overload_start 2554-07-21T23:34:33.709Z overload_duration 0.000s overload_reports 18446744073709551615\n",
		  "\"2554-07-21T23:34:33.709Z\",\"overload-end\":null,\"overload-start-ns\":18446744073709551615,\"overload-duration-ns\":0,\"overload-reports\":18446744073709551615" },
	};
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		app_begin();
		app_add(TCA_DUALPI2_STATS_OVERLOAD, &cases[i].o,
			sizeof(cases[i].o));
		print_app(false);
		sprintf(name, "%s: text", cases[i].name);
		check_text(name, piece("overload_start", "\377"), cases[i].text);
		print_app(true);
		sprintf(name, "%s: JSON", cases[i].name);
		check_text(name, piece("\"overload-start\":", "\377") +
			   strlen("\"overload-start\":"), cases[i].json);
	}
}

static void test_link(void)
{
	static const struct {
		const char *name;
		struct tc_dualpi2_link link;
		const char *text;
		const char *json;
	} cases[] = {
		{ "a link that was not seen yet",
		  { .ramp_min_ns = 800000, .ramp_max_ns = 1200000,
		    .limit_pkts = 10000, .target_ns = 15000000 },
		  "drain_rate not seen yet throttled 0 burst 0ns ramp_min 800us ramp_max 1.2ms limit_pkts 10000 effective_target 15ms\n"
		  "nqb_arrived 0 nqb_dropped 0 nqb_limit 10ms\n",
		  ",\"drain-rate\":null,\"throttled\":0,\"burst-ns\":0,\"ramp-min-ns\":800000,\"ramp-max-ns\":1200000,\"limit-pkts\":10000,\"effective-target-ns\":15000000,\"nqb-arrived\":0,\"nqb-dropped\":0,\"nqb-limit-bytes\":null" },
		{ "a link with a shaper and bursts",
		  { .drain_rate = 5000000, .throttled = 1ULL << 40,
		    .nqb_arrived = UINT64_MAX, .nqb_dropped = 1ULL << 33,
		    .burst_ns = 4000000, .ramp_min_ns = 4800000,
		    .ramp_max_ns = UINT32_MAX, .limit_pkts = UINT32_MAX,
		    .nqb_limit_bytes = UINT32_MAX - 1, .target_ns = UINT32_MAX },
		  "drain_rate 40Mbit throttled 1099511627776 burst 4ms ramp_min 4.8ms ramp_max 4.29s limit_pkts 4294967295 effective_target 4.29s\n"
		  "nqb_arrived 18446744073709551615 nqb_dropped 8589934592 nqb_limit_bytes 4294967294\n",
		  ",\"drain-rate\":5000000,\"throttled\":1099511627776,\"burst-ns\":4000000,\"ramp-min-ns\":4800000,\"ramp-max-ns\":4294967295,\"limit-pkts\":4294967295,\"effective-target-ns\":4294967295,\"nqb-arrived\":18446744073709551615,\"nqb-dropped\":8589934592,\"nqb-limit-bytes\":4294967294" },
	};
	char name[TEXT_SIZE];
	unsigned int i;

	check(sizeof(struct tc_dualpi2_link) == 56, "the statistics of the link have 56 bytes");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		app_begin();
		app_add(TCA_DUALPI2_STATS_LINK, &cases[i].link,
			sizeof(cases[i].link));
		print_app(false);
		sprintf(name, "%s: text", cases[i].name);
		check_text(name, piece("drain_rate", "\377"), cases[i].text);
		print_app(true);
		sprintf(name, "%s: JSON", cases[i].name);
		check_text(name, piece(",\"drain-rate\"", "\377"),
			   cases[i].json);
	}
}

static void test_link_rates(void)
{
	static const struct {
		__u64 rate;
		const char *text;
	} rates[] = {
		{ 1, "8bit" }, { 124, "992bit" }, { 125, "1Kbit" },
		{ 4999987, "40Mbit" }, { 4998700, "39.99Mbit" },
		{ 125000000, "1Gbit" }, { 124999999, "1Gbit" },
		{ 1250000000000, "10Tbit" }, { UINT64_MAX, "147573953Tbit" },
	};
	struct tc_dualpi2_link link = {};
	char want[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		link.drain_rate = rates[i].rate;
		app_begin();
		app_add(TCA_DUALPI2_STATS_LINK, &link, sizeof(link));
		print_app(false);
		sprintf(want, "drain_rate %s ", rates[i].text);
		check_text("a drain rate is printed in the unit that suits it",
			   piece("drain_rate", "throttled"), want);
	}
}

static void test_link_cut(void)
{
	struct tc_dualpi2_link link = {};
	unsigned int len;
	struct queue l;

	/* Cut after the drain rate, and none at all. */
	link.drain_rate = 5000000;
	link.limit_pkts = 7;
	app_begin();
	app_add(TCA_DUALPI2_STATS_LINK, &link, 8);
	print_app(false);
	check_text("what shorter statistics of the link lack is zero",
		   piece("drain_rate", "\377"),
		   "drain_rate 40Mbit throttled 0 burst 0ns ramp_min 0ns ramp_max 0ns limit_pkts 0\n"
		   "nqb_arrived 0 nqb_dropped 0 nqb_limit_bytes 0\n");
	for (len = 0; len < 2; len++) {
		app_begin();
		print_app(len);
		check(!strstr(out, "drain") && !strstr(out, "nqb"),
		      "without statistics of the link none are printed: %s",
		      len ? "JSON" : "text");
	}

	queue_begin(&l, 8192);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	app_add(TCA_DUALPI2_STATS_LINK, &link, sizeof(link));
	print_app(false);
	check(strncmp(out, "prob ", 5) == 0 && strstr(out, "L4S:"),
	      "one queue and a link are no class");
}

static void test_dates(void)
{
	struct tc_dualpi2_overload o = { .now = 1 };
	char want[TEXT_SIZE];
	unsigned int day, bad = 0;
	time_t sec;

	/* Up to 2^64 ns, or as far as the library goes. */
	for (day = 0; day < 213503; day++) {
		if (sizeof(sec) == sizeof(__s32) && day > 24855 - 1)
			break;
		sec = (time_t)day * 86400 + day % 86400;
		o.start_ns = sec * 1000000000ULL + 999999999;
		app_begin();
		app_add(TCA_DUALPI2_STATS_OVERLOAD, &o, sizeof(o));
		print_app(false);
		strftime(want, sizeof(want),
			 "overload_start %Y-%m-%dT%H:%M:%S.999Z ", gmtime(&sec));
		bad += !strstr(out, want);
	}
	check(!bad && day > 24000, "every day has its date");
}

static void test_odd_queues(void)
{
	const struct tc_dualpi2_overload overload = { .start_ns = 5000000 };
	unsigned int len, bad = 0;
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);

	/* Cut anywhere, and each byte spoilt: the sanitizer looks on. */
	for (len = 0; len <= RTA_PAYLOAD(app); len++) {
		struct rtattr *copy = malloc(RTA_LENGTH(len));

		memcpy(copy, app, RTA_LENGTH(len));
		copy->rta_len = RTA_LENGTH(len);
		bad += print(false, true, copy) || print(true, true, copy);
		free(copy);
	}
	for (len = RTA_LENGTH(TC_DUALPI2_EXT_XSTATS_OFFSET); len < app->rta_len;
	     len++) {
		char *byte = (char *)app + len, was = *byte;

		*byte ^= 1 << len % 8;
		bad += print(false, true, app) || print(true, true, app);
		*byte = was;
	}
	check(!bad, "statistics that are cut or spoilt are printed");
}

static void test_unknown_queues(void)
{
	const struct tc_dualpi2_overload overload = { .start_ns = 5000000 };
	static const char junk[40] = "\377\377\377\377\377\377\377\377";
	char full[TEXT_SIZE];
	struct rtattr *nest;
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);
	print_app(false);
	memcpy(full, out, out_len + 1);

	/* Unknown ones, between and within. */
	app_begin();
	app_add(0, junk, 7);
	app_add(TCA_DUALPI2_STATS_MAX + 1, junk, 9);
	app_queue(TCA_DUALPI2_STATS_C, &l);
	nest = (void *)&msg + msg.n.nlmsg_len;
	app_queue(TCA_DUALPI2_STATS_C, &c);
	app_add(TCA_DUALPI2_QUEUE_MAX + 1, junk, 12);
	app_add(16383, junk, 12);
	addattr_nest_end(&msg.n, nest);
	app_queue(TCA_DUALPI2_STATS_L, &l);
	app_add(0x3fff, junk, sizeof(junk));
	app_add(TCA_DUALPI2_STATS_OVERLOAD, &overload, sizeof(overload));
	print_app(false);
	check_text("unknown attributes are skipped, of two of a type the last counts",
		   out, full);
}

static void test_queues_of_other_sizes(void)
{
	char longer[sizeof(struct queue)] = {};
	struct rtattr *nest;
	struct queue c, l;

	set_queues(&c, &l);
	/* Structs of a kernel that knows more, without the flag of a nest. */
	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	memset(longer, 0xee, sizeof(longer));
	memcpy(longer, &c.counters, sizeof(c.counters));
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, longer, sizeof(c.counters) + 40);
	memset(longer, 0xee, sizeof(longer));
	memcpy(longer, &c.delay, sizeof(c.delay));
	app_add(TCA_DUALPI2_QUEUE_DELAY, longer, sizeof(c.delay) + 8);
	/* More buckets than it says there are, and half a one. */
	memset(longer, 0xee, sizeof(longer));
	memcpy(longer, c.hist, sizeof(c.hist));
	app_add(TCA_DUALPI2_QUEUE_HIST, longer, sizeof(c.hist) + 20);
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("what a longer struct has in addition is left", out,
		   CLASSIC_TEXT NEW_CLASSIC);

	/* Those of one that knows less. */
	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, &c.counters, 40);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, 32);
	app_add(TCA_DUALPI2_QUEUE_HIST, c.hist, 0);
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("what a shorter struct lacks is zero", out,
		   "Classic: enqueued 0 (205 bytes) sent 0 (0 bytes) queued 0 (0 bytes) ce_in 204\n"
		   " marked 0 (classic 0, coupled 0, native 0)\n"
		   " dropped 0 (limit 0, memory 0, early 0, aqm 0, overload 0, purge 0)\n"
		   " arrived 810 (205 bytes) not_ect 201 ect1 202 ect0 203 ce 204\n"
		   " presented 0 (0 bytes) forwarded 0 (0 bytes)\n"
		   " delay of no packet yet\n");
}

static void test_queues_in_part(void)
{
	struct rtattr *nest;
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, &c.counters, sizeof(c.counters));
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, 24);
	app_add(TCA_DUALPI2_QUEUE_HIST, &c.hist, sizeof(c.hist));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("delays without a unit are not printed", out,
		   CLASSIC_TEXT COUNTERS_CLASSIC);

	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, &c.counters, sizeof(c.counters));
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, sizeof(c.delay));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("delays without a histogram, as of a deletion, are not printed",
		   out, CLASSIC_TEXT COUNTERS_CLASSIC);

	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, sizeof(c.delay));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("a queue without counters is not printed", out, "");
}

static void test_extension_of_other_sizes(void)
{
	__u32 *size;	/* in the extension, which is aligned to 4 bytes only */
	unsigned int head, bad = 0;
	struct queue c, l;

	set_queues(&c, &l);
	/* A struct that is longer than this version's: the attributes follow that. */
	app_begin();
	size = RTA_DATA(app) + TC_DUALPI2_EXT_XSTATS_OFFSET +
	       offsetof(struct tc_dualpi2_ext_xstats, size);
	*size += 24;
	msg.n.nlmsg_len += 24;
	app_queue(TCA_DUALPI2_STATS_C, &c);
	print_app(false);
	check_text("attributes are found behind a longer struct", out,
		   CLASSIC_TEXT NEW_CLASSIC);

	/* No kernel sends such a size; nothing is read at an odd address. */
	for (head = 1; head < 4; head++) {
		app_begin();
		size = RTA_DATA(app) + TC_DUALPI2_EXT_XSTATS_OFFSET +
		       offsetof(struct tc_dualpi2_ext_xstats, size);
		*size += head;
		app_queue(TCA_DUALPI2_STATS_C, &c);
		print_app(false);
		bad += strncmp(out, "prob ", 5) || strstr(out, "arrived");
	}
	check(!bad, "attributes at an odd address are not read");
}
