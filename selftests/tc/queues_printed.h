/* SPDX-License-Identifier: GPL-2.0-only */
/* Statistics of a queue, in attributes, to text and JSON; part of test_q_dualpi2.c. */

/* One queue as the kernel would send it; no histogram if it has no packets. */
struct queue {
	struct tc_dualpi2_counters counters;
	struct tc_dualpi2_delay delay;
	__u64 hist[96];
};

/* From the description in the ABI. */
static __u64 bucket_begin(__u64 unit_ns, unsigned int i)
{
	return (i < 8 ? i : (8ULL + i % 8) << (i / 8 - 1)) * unit_ns;
}

static void queue_begin(struct queue *q, __u32 unit_ns)
{
	memset(q, 0, sizeof(*q));
	q->delay.unit_ns = unit_ns;
	q->delay.buckets = ARRAY_SIZE(q->hist);
	q->delay.generation = 3;
}

static void queue_packet(struct queue *q, __u64 ns)
{
	unsigned int i = 0;

	while (i < q->delay.buckets &&
	       ns >= bucket_begin(q->delay.unit_ns, i + 1))
		i++;
	if (i < q->delay.buckets)
		q->hist[i]++;
	else
		q->delay.beyond++;
	q->delay.sum_ns += ns;
	if (ns > q->delay.max_ns)
		q->delay.max_ns = ns;
}

static struct rtattr *app;

/* The attribute's payload is that of set_xstats(), and what is added to it. */
static void app_begin(void)
{
	set_xstats(TC_DUALPI2_EXT_XSTATS_MAGIC,
		   sizeof(struct tc_dualpi2_ext_xstats));
	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	app = addattr_nest(&msg.n, MSG_SIZE, TCA_STATS_APP);
	memcpy(RTA_DATA(app), RTA_DATA(&stats.rta), XSTATS_SIZE);
	msg.n.nlmsg_len += XSTATS_SIZE;
}

static void app_add(int type, const void *data, int len)
{
	if (addattr_l(&msg.n, MSG_SIZE, type, data, len))
		exit(1);
}

static void app_queue(int type, const struct queue *q)
{
	struct rtattr *nest = addattr_nest(&msg.n, MSG_SIZE,
					   type | NLA_F_NESTED);
	unsigned int len = ARRAY_SIZE(q->hist);

	while (len && !q->hist[len - 1])
		len--;
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, &q->counters, sizeof(q->counters));
	app_add(TCA_DUALPI2_QUEUE_DELAY, &q->delay, sizeof(q->delay));
	app_add(TCA_DUALPI2_QUEUE_HIST, q->hist, len * sizeof(*q->hist));
	addattr_nest_end(&msg.n, nest);
}

/* All that the module sends of a qdisc. */
static void app_qdisc(const struct queue *c, const struct queue *l,
		      const struct tc_dualpi2_overload *overload)
{
	app_queue(TCA_DUALPI2_STATS_C, c);
	app_queue(TCA_DUALPI2_STATS_L, l);
	app_add(TCA_DUALPI2_STATS_OVERLOAD, overload, sizeof(*overload));
}

static void print_app(bool as_json)
{
	addattr_nest_end(&msg.n, app);
	if (print(as_json, true, app)) {
		puts("Bail out! statistics are not printed");
		exit(1);
	}
}

/* The text from the line that begins with what, up to the one before end. */
static const char *piece(const char *what, const char *end)
{
	char *from = strstr(out, what), *to;

	if (!from)
		return "";
	to = strstr(from, end);
	if (to)
		*to = 0;
	return from;
}

/* Of the first object "delay". */
static __u64 json_number(const char *key)
{
	const char *at = strstr(out, "\"delay\":{");
	char want[64];

	sprintf(want, "\"%s\":", key);
	at = at ? strstr(at, want) : NULL;
	return at ? strtoull(at + strlen(want), NULL, 10) : UINT64_MAX;
}

/* Numbers from 201 and 301 on, and delays that are known. */
static void set_queues(struct queue *c, struct queue *l)
{
	__u64 *n = (__u64 *)&c->counters;
	unsigned int i;

	queue_begin(c, 65536);
	queue_begin(l, 8192);
	for (i = 0; i < sizeof(c->counters) / sizeof(*n); i++) {
		n[i] = 201 + i;
		((__u64 *)&l->counters)[i] = 301 + i;
	}
	for (i = 0; i < 9; i++)
		queue_packet(c, 15000000);
	queue_packet(c, 41000000);
	for (i = 0; i < 1000; i++)
		queue_packet(l, 400000);
	queue_packet(l, 812);
	l->counters.arrived_ect1 = 4294967296;
	l->counters.forwarded = UINT64_MAX;
}

#define CLASSIC_TEXT \
	"Classic: enqueued 1750 (18446744073709551594 bytes) sent 208 (209 bytes) queued 210 (211 bytes) ce_in 204\n" \
	" marked 639 (classic 212, coupled 213, native 214)\n" \
	" dropped 2646 (limit 436, memory 438, early 440, aqm 442, overload 444, purge 446)\n"

#define L4S_TEXT \
	"L4S: enqueued 2241 (18446744073709551594 bytes) sent 18446744073709551615 (309 bytes) queued 310 (311 bytes) ce_in 304\n" \
	" marked 939 (classic 312, coupled 313, native 314)\n" \
	" dropped 3846 (limit 636, memory 638, early 640, aqm 642, overload 644, purge 646)\n"

#define CLASSIC_JSON \
	"\"classic\":{\"enqueued\":1750,\"enqueued-bytes\":18446744073709551594,\"sent\":208,\"sent-bytes\":209,\"packets\":210,\"bytes\":211,\"arrived-ce\":204,\"marked-classic\":212,\"marked-coupled\":213,\"marked-native\":214,\"dropped-limit\":436,\"dropped-memory\":438,\"dropped-early\":440,\"dropped-aqm\":442,\"dropped-overload\":444,\"dropped-purge\":446"

#define COUNTERS_CLASSIC \
	" arrived 810 (205 bytes) not_ect 201 ect1 202 ect0 203 ce 204\n" \
	" presented 206 (207 bytes) forwarded 208 (209 bytes)\n" \
	" dropped_not_ect 1305 (limit 215, memory 216, early 217, aqm 218, overload 219, purge 220)\n" \
	" dropped_ect 1341 (limit 221, memory 222, early 223, aqm 224, overload 225, purge 226)\n" \
	" dropped_bytes 684 (arrival 227, aqm 228, purge 229)\n"

#define NEW_CLASSIC COUNTERS_CLASSIC \
	" delay mean 17.6ms p50 15.2ms p90 15.7ms p99 41ms p99.9 41ms max 41ms\n"

#define NEW_L4S \
	" arrived 4294968204 (305 bytes) not_ect 301 ect1 4294967296 ect0 303 ce 304\n" \
	" presented 306 (307 bytes) forwarded 18446744073709551615 (309 bytes)\n" \
	" dropped_not_ect 1905 (limit 315, memory 316, early 317, aqm 318, overload 319, purge 320)\n" \
	" dropped_ect 1941 (limit 321, memory 322, early 323, aqm 324, overload 325, purge 326)\n" \
	" dropped_bytes 984 (arrival 327, aqm 328, purge 329)\n" \
	" delay mean 400us p50 400us p90 400us p99 400us p99.9 400us max 400us\n"

#define NEW_CLASSIC_JSON \
	",\"arrived-bytes\":205,\"arrived-not-ect\":201,\"arrived-ect1\":202,\"arrived-ect0\":203,\"presented\":206,\"presented-bytes\":207,\"forwarded\":208,\"forwarded-bytes\":209,\"queued\":210,\"queued-bytes\":211" \
	",\"not-ect-dropped-limit\":215,\"not-ect-dropped-memory\":216,\"not-ect-dropped-early\":217,\"not-ect-dropped-aqm\":218,\"not-ect-dropped-overload\":219,\"not-ect-dropped-purge\":220" \
	",\"ect-dropped-limit\":221,\"ect-dropped-memory\":222,\"ect-dropped-early\":223,\"ect-dropped-aqm\":224,\"ect-dropped-overload\":225,\"ect-dropped-purge\":226" \
	",\"dropped-arrival-bytes\":227,\"dropped-aqm-bytes\":228,\"dropped-purge-bytes\":229" \
	",\"delay\":{\"mean-ns\":17600000,\"p50-ns\":15204352,\"p90-ns\":15670385,\"p99-ns\":41000000,\"p999-ns\":41000000,\"max-ns\":41000000,\"count\":10,\"sum-ns\":176000000,\"beyond\":0,\"beyond-ns\":1073741824,\"generation\":3,\"unit-ns\":65536" \
	",\"buckets\":[{\"from-ns\":14680064,\"to-ns\":15728640,\"packets\":9},{\"from-ns\":37748736,\"to-ns\":41943040,\"packets\":1}]}"

static void test_queues_printed(void)
{
	const struct tc_dualpi2_overload overload = {
		.count = 2, .total_ns = 3, .reports = 4294967296,
		.start_ns = 1795296376123456789, .duration_ns = 1234567890,
	};
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);

	print_app(false);
	check_text("statistics of a queue are printed behind its block",
		   piece("prob ", "L4S:"), XSTATS_TEXT CLASSIC_TEXT NEW_CLASSIC);
	print_app(false);
	check_text("counters at 2^32 and 2^64 are printed right",
		   piece(" arrived 42949", "prob_c"), NEW_L4S);
	print_app(false);
	check_text("the last overload is printed at the end",
		   piece("unparsed ", "\377"),
		   "unparsed 401 filter_dropped 402 gso_failed 403 mark_failed 404\n"
		   "overload_start 2026-11-21T21:26:16.123Z overload_end 2026-11-21T21:26:17.358Z overload_duration 1.235s overload_reports 4294967296\n");

	print_app(true);
	check_text("statistics of a queue are printed in its JSON object",
		   piece(",\"arrived-bytes\":205", "},\"l4s\""), NEW_CLASSIC_JSON);
	print_app(true);
	check_text("the last overload is printed in JSON",
		   piece(",\"overload-start\"", "\377"),
		   ",\"overload-start\":\"2026-11-21T21:26:16.123Z\",\"overload-end\":\"2026-11-21T21:26:17.358Z\",\"overload-start-ns\":1795296376123456789,\"overload-duration-ns\":1234567890,\"overload-reports\":4294967296");
}

static void test_empty_queue(void)
{
	char want[TEXT_SIZE], *to = want;
	static const char *const keys[] = {
		"arrived-bytes", "arrived-not-ect", "arrived-ect1",
		"arrived-ect0", "presented", "presented-bytes", "forwarded",
		"forwarded-bytes", "queued", "queued-bytes",
		"not-ect-dropped-limit", "not-ect-dropped-memory",
		"not-ect-dropped-early", "not-ect-dropped-aqm",
		"not-ect-dropped-overload", "not-ect-dropped-purge",
		"ect-dropped-limit", "ect-dropped-memory", "ect-dropped-early",
		"ect-dropped-aqm", "ect-dropped-overload", "ect-dropped-purge",
		"dropped-arrival-bytes", "dropped-aqm-bytes",
		"dropped-purge-bytes",
	};
	struct queue l;
	unsigned int i;

	queue_begin(&l, 8192);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check_text("counters and delays of no packet are short as text",
		   piece(" arrived", "\377"),
		   " arrived 0 (0 bytes) not_ect 0 ect1 0 ect0 0 ce 0\n"
		   " presented 0 (0 bytes) forwarded 0 (0 bytes)\n"
		   " delay of no packet yet\n");
	print_app(true);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		to += sprintf(to, ",\"%s\":0", keys[i]);
	strcpy(to, ",\"delay\":{\"mean-ns\":null,\"p50-ns\":null,\"p90-ns\":null,\"p99-ns\":null,\"p999-ns\":null,\"max-ns\":0,\"count\":0,\"sum-ns\":0,\"beyond\":0,\"beyond-ns\":134217728,\"generation\":3,\"unit-ns\":8192,\"buckets\":[]}}");
	check_text("counters and delays of no packet are complete in JSON",
		   piece(",\"arrived-bytes\"", "\377"), want);

	l.counters.not_ect_dropped_aqm = 7;
	l.counters.ect_dropped_purge = UINT64_MAX;
	l.counters.ect_dropped_early = 1;
	l.counters.dropped_aqm_bytes = 9;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check_text("causes of no drop are left out of the text",
		   piece(" dropped_not", " delay"),
		   " dropped_not_ect 7 (aqm 7)\n"
		   " dropped_ect 0 (early 1, purge 18446744073709551615)\n"
		   " dropped_bytes 9 (aqm 9)\n");
}

static void test_class(void)
{
	const struct tc_dualpi2_overload overload = {};
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &c);
	print_app(false);
	check_text("the class of the Classic queue shows that and nothing else",
		   out, CLASSIC_TEXT NEW_CLASSIC);
	print_app(true);
	check(strncmp(out, CLASSIC_JSON, strlen(CLASSIC_JSON)) == 0 &&
	      !strstr(out, "l4s") && !strstr(out, "prob"),
	      "the class of the Classic queue has one object in JSON");

	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check(strncmp(out, L4S_TEXT NEW_L4S, strlen(L4S_TEXT NEW_L4S)) == 0 &&
	      !strstr(out, "Classic") &&
	      !strstr(out, "prob"),
	      "the class of the L4S queue shows that and nothing else");
	print_app(true);
	check(strncmp(out, "\"l4s\":{\"enqueued\":", 18) == 0 &&
	      !strstr(out, "\"classic\"") && !strstr(out, "prob"),
	      "the class of the L4S queue has one object in JSON");

	app_add(TCA_DUALPI2_STATS_OVERLOAD, &overload, sizeof(overload));
	print_app(false);
	check(strncmp(out, "prob ", 5) == 0 && strstr(out, "L4S:"),
	      "one queue and an overload are no class");
}

/* One packet of each delay of count, sorted: do the percentiles lie in the
 * bucket of the packet of that rank?
 */
static bool percentiles_hold(const struct queue *q, const __u64 *ns,
			     unsigned int count)
{
	static const struct {
		const char *key;
		unsigned int permille;
	} cases[] = {
		{ "p50-ns", 500 }, { "p90-ns", 900 }, { "p99-ns", 990 },
		{ "p999-ns", 999 },
	};
	__u64 got, before = 0, low = 0, high = 0;
	unsigned int i, b;

	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, q);
	print_app(true);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int rank = (count * cases[i].permille + 999) / 1000;
		__u64 want = ns[rank - 1];

		got = json_number(cases[i].key);
		for (b = 0; b < q->delay.buckets; b++) {
			low = bucket_begin(q->delay.unit_ns, b);
			high = bucket_begin(q->delay.unit_ns, b + 1);
			if (want < high)
				break;
		}
		if (want >= high) {	/* beyond the last one */
			low = q->delay.max_ns;
			high = low;
		}
		if (got < low || got > high || got < before ||
		    got > q->delay.max_ns) {
			printf("# %s of %u packets is %llu, not %llu\n",
			       cases[i].key, count, (unsigned long long)got,
			       (unsigned long long)want);
			return false;
		}
		before = got;
	}
	return json_number("count") == count &&
	       json_number("max-ns") == ns[count - 1];
}

static int by_size(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void test_percentiles(void)
{
	static const unsigned int counts[] = {
		1, 2, 3, 9, 10, 11, 99, 100, 101, 999, 1000, 1001, 5000,
	};
	static __u64 ns[5000];
	unsigned int i, round, bad = 0;
	struct queue q;

	srandom(9332);
	for (round = 0; round < 500; round++) {
		unsigned int count = counts[round % ARRAY_SIZE(counts)];
		__u32 unit = 1024U << random() % 15;
		unsigned int bits = 1 + random() % 36;

		queue_begin(&q, unit);
		for (i = 0; i < count; i++) {
			ns[i] = (((__u64)random() << 31) | random()) &
				((1ULL << bits) - 1);
			queue_packet(&q, ns[i]);
		}
		qsort(ns, count, sizeof(*ns), by_size);
		bad += !percentiles_hold(&q, ns, count);
	}
	check(!bad, "percentiles lie in the bucket of the packet of their rank");

	/* 2^62 packets: a product with 1000 would not fit. */
	queue_begin(&q, 1024);
	q.hist[20] = 1ULL << 62;
	q.hist[40] = 1ULL << 55;
	q.delay.max_ns = bucket_begin(1024, 41) - 1;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("p99-ns") >= bucket_begin(1024, 20) &&
	      json_number("p99-ns") <= bucket_begin(1024, 21) &&
	      json_number("p999-ns") >= bucket_begin(1024, 40) &&
	      json_number("p999-ns") <= bucket_begin(1024, 41),
	      "percentiles of 2^62 packets are right");

	/* Of 1000 packets in a bucket the 500th is in its middle. */
	queue_begin(&q, 1024);
	q.hist[16] = 1000;
	q.delay.max_ns = 18431;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("p50-ns") == 16384 + 1022 &&
	      json_number("p90-ns") == 16384 + 1842,
	      "percentiles are interpolated within a bucket");
	q.delay.max_ns = 17000;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("p50-ns") == 17000 && json_number("p99-ns") == 17000,
	      "a percentile is not beyond the maximum");
}

static void test_beyond(void)
{
	struct queue q;
	unsigned int i;

	queue_begin(&q, 8192);
	for (i = 0; i < 98; i++)
		queue_packet(&q, 1000000);
	queue_packet(&q, 140000000);
	queue_packet(&q, 2000000000);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &q);
	print_app(false);
	check_text("a percentile beyond the last bucket says so as text",
		   piece(" delay", "\377"),
		   " delay mean 22.4ms p50 1.02ms p90 1.04ms p99 >134ms p99.9 2s max 2s\n");
	print_app(true);
	check(json_number("p99-ns") == 2000000000 &&
	      json_number("beyond") == 2 && json_number("count") == 100 &&
	      json_number("beyond-ns") == 134217728,
	      "a percentile beyond the last bucket is the maximum in JSON");
}

static void test_mean(void)
{
	/* 12 Gbit/s of 1000 bytes at 15 ms: after 14 days it starts again. */
	static const __u64 counts[] = {
		1000000, 1ULL << 40, 1229782938247ULL, 3000000000000ULL,
		9000000000000ULL,
	};
	struct queue q;
	unsigned int i;
	__u64 got;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		queue_begin(&q, 65536);
		q.hist[46] = counts[i] / 2;	/* 14.7 to 15.7 ms */
		q.hist[47] = counts[i] - counts[i] / 2; /* to 16.8 ms */
		q.delay.max_ns = 16000000;
		q.delay.sum_ns = counts[i] * 15555555;
		app_begin();
		app_queue(TCA_DUALPI2_STATS_C, &q);
		print_app(true);
		got = json_number("mean-ns");
		check(got == 15555555, "the mean of %llu packets is exact",
		      (unsigned long long)counts[i]);
		if (got != 15555555)
			printf("# it is %llu\n", (unsigned long long)got);
	}

	/* When the buckets no longer tell: half a bucket off at most. */
	queue_begin(&q, 65536);
	q.hist[47] = 1ULL << 52;
	q.delay.max_ns = 16000000;
	q.delay.sum_ns = (1ULL << 52) * 15800000;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	got = json_number("mean-ns");
	check(got >= bucket_begin(65536, 47) && got <= bucket_begin(65536, 48),
	      "the mean of 2^52 packets lies in their bucket");

	queue_begin(&q, 8192);
	queue_packet(&q, 1);
	queue_packet(&q, 2);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("mean-ns") == 2, "the mean is rounded");
}

static void test_delay_units(void)
{
	static const struct {
		__u64 ns;
		const char *text;
	} cases[] = {
		{ 1, "1ns" }, { 999, "999ns" }, { 1000, "1us" },
		{ 1234, "1.23us" }, { 999499, "999us" }, { 999500, "1ms" },
		{ 15250000, "15.2ms" }, { 999999999, "1s" },
		{ 4294967296, "4.29s" }, { 12345600000000, "12346s" },
		{ UINT64_MAX, "18446744074s" },
	};
	char want[TEXT_SIZE];
	struct queue q;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		queue_begin(&q, 8192);
		queue_packet(&q, 0);
		q.delay.max_ns = cases[i].ns;
		app_begin();
		app_queue(TCA_DUALPI2_STATS_C, &q);
		print_app(false);
		sprintf(want, " max %s\n", cases[i].text);
		check_text("a delay is printed in the unit that suits it",
			   piece(" max ", "\377"), want);
	}
}
