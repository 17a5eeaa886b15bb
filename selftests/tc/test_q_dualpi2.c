// SPDX-License-Identifier: GPL-2.0-only
/*
 * Self-check of the tc front end, without tc, kernel and root: arguments go in,
 * netlink bytes come out, and the other way round.
 *
 * Numbers of attributes are written out in accepted.txt: they are the ABI, and this
 * is the place that notices when one moves.
 *
 * usage: test_q_dualpi2 [ MAN-PAGE [ COMPLETION [ RECORDING ] ] ]
 *
 * RECORDING: messages of a kernel, as "tc monitor" reads them (recorded/link.b64).
 */
#include "mock_tc.h"
#include "options_parsed.h"
#include "options_printed.h"

/* ---- statistics ---- */

#define XSTATS_SIZE	(TC_DUALPI2_EXT_XSTATS_OFFSET + \
			 sizeof(struct tc_dualpi2_ext_xstats))

static union {
	struct rtattr rta;
	char bytes[RTA_LENGTH(XSTATS_SIZE) + 64];
} stats;

static void set_xstats(__u32 magic, __u32 size)
{
	const struct tc_dualpi2_xstats st = {
		.prob = 42949673, .delay_c = 14210, .delay_l = 430,
		.packets_in_c = 1234, .packets_in_l = 5678, .maxq = 77,
		.ecn_mark = 12, .step_marks = 3, .credit = -151400,
		.memory_used = 4608, .max_memory_used = 230400,
		.memory_limit = 4294967295,
	};
	struct tc_dualpi2_ext_xstats ext = {
		.magic = magic, .size = size,
		.unparsed = 401, .filter_dropped = 402, .gso_failed = 403,
		.mark_failed = 404, .overload_count = 405,
		.overload_ns = 6500000000, .overload = 1,
		.prob_c = 42949673, .prob_cl = 858993459,
	};
	__u64 *c = (__u64 *)&ext.c, *l = (__u64 *)&ext.l;
	unsigned int i;

	for (i = 0; i < sizeof(ext.c) / sizeof(*c); i++) {
		c[i] = 101 + i;
		l[i] = UINT64_MAX - 20 + i;
	}
	memset(&stats, 0xee, sizeof(stats));
	memset(RTA_DATA(&stats.rta), 0, TC_DUALPI2_EXT_XSTATS_OFFSET);
	memcpy(RTA_DATA(&stats.rta), &st, sizeof(st));
	memcpy(RTA_DATA(&stats.rta) + TC_DUALPI2_EXT_XSTATS_OFFSET, &ext,
	       sizeof(ext));
}

static int print_xstats(bool as_json, unsigned int len)
{
	stats.rta.rta_type = TCA_XSTATS;
	stats.rta.rta_len = RTA_LENGTH(len);
	return print(as_json, true, &stats.rta);
}

#define XSTATS_TEXT \
	"prob 0.010000 delay_c 14210us delay_l 430us\n" \
	"pkts_in_c 1234 pkts_in_l 5678 maxq 77\n" \
	"ecn_mark 12 step_mark 3\n" \
	"credit -151400 (L-queue)\n" \
	"memory_used 4608 (max 230400) of memory limit 4294967295\n"

#define XSTATS_JSON \
	"\"prob\":0.01,\"delay-c\":14210,\"delay-l\":430,\"pkts-in-c\":1234,\"pkts-in-l\":5678,\"maxq\":77,\"ecn-mark\":12,\"step-mark\":3,\"credit\":-151400,\"memory-used\":4608,\"max-memory-used\":230400,\"memory-limit\":4294967295"

#define CLASSIC_TEXT \
	"Classic: enqueued 101 (102 bytes) sent 103 (104 bytes) queued 115 (116 bytes) ce_in 114\n" \
	" marked 336 (classic 111, coupled 112, native 113)\n" \
	" dropped 645 (limit 105, memory 106, early 107, aqm 108, overload 109, purge 110)\n"

static void test_xstats_printed(void)
{
	const __u32 magic = TC_DUALPI2_EXT_XSTATS_MAGIC;
	const __u32 size = sizeof(struct tc_dualpi2_ext_xstats);

	check(size == 328, "the extension's statistics have 328 bytes");

	set_xstats(magic, size);
	print_xstats(false, sizeof(struct tc_dualpi2_xstats));
	check_text("statistics of Linux are printed as text", out, XSTATS_TEXT);
	print_xstats(true, sizeof(struct tc_dualpi2_xstats));
	check_text("statistics of Linux are printed as JSON", out, XSTATS_JSON);

	print_xstats(false, XSTATS_SIZE);
	check_text("statistics of the extension are printed as text", out,
		   XSTATS_TEXT CLASSIC_TEXT
		   "L4S: enqueued 18446744073709551595 (18446744073709551596 bytes) sent 18446744073709551597 (18446744073709551598 bytes) queued 18446744073709551609 (18446744073709551610 bytes) ce_in 18446744073709551608\n"
		   " marked 18446744073709551586 (classic 18446744073709551605, coupled 18446744073709551606, native 18446744073709551607)\n"
		   " dropped 18446744073709551529 (limit 18446744073709551599, memory 18446744073709551600, early 18446744073709551601, aqm 18446744073709551602, overload 18446744073709551603, purge 18446744073709551604)\n"
		   "prob_c 0.010000 prob_cl 0.200000 overload yes (405 times, 6.500s)\n"
		   "unparsed 401 filter_dropped 402 gso_failed 403 mark_failed 404\n");
	print_xstats(true, XSTATS_SIZE);
	check_text("statistics of the extension are printed as JSON", out,
		   XSTATS_JSON
		   ",\"classic\":{\"enqueued\":101,\"enqueued-bytes\":102,\"sent\":103,\"sent-bytes\":104,\"packets\":115,\"bytes\":116,\"arrived-ce\":114,\"marked-classic\":111,\"marked-coupled\":112,\"marked-native\":113,\"dropped-limit\":105,\"dropped-memory\":106,\"dropped-early\":107,\"dropped-aqm\":108,\"dropped-overload\":109,\"dropped-purge\":110}"
		   ",\"l4s\":{\"enqueued\":18446744073709551595,\"enqueued-bytes\":18446744073709551596,\"sent\":18446744073709551597,\"sent-bytes\":18446744073709551598,\"packets\":18446744073709551609,\"bytes\":18446744073709551610,\"arrived-ce\":18446744073709551608,\"marked-classic\":18446744073709551605,\"marked-coupled\":18446744073709551606,\"marked-native\":18446744073709551607,\"dropped-limit\":18446744073709551599,\"dropped-memory\":18446744073709551600,\"dropped-early\":18446744073709551601,\"dropped-aqm\":18446744073709551602,\"dropped-overload\":18446744073709551603,\"dropped-purge\":18446744073709551604}"
		   ",\"prob-c\":0.01,\"prob-cl\":0.2,\"overload\":true,\"overload-count\":405,\"overload-ns\":6500000000,\"unparsed\":401,\"filter-dropped\":402,\"gso-failed\":403,\"mark-failed\":404");
}

#define ZERO_TEXT \
	": enqueued 0 (0 bytes) sent 0 (0 bytes) queued 0 (0 bytes) ce_in 0\n" \
	" marked 0 (classic 0, coupled 0, native 0)\n" \
	" dropped 0 (limit 0, memory 0, early 0, aqm 0, overload 0, purge 0)\n"

#define ZERO_END \
	"prob_c 0.000000 prob_cl 0.000000 overload no (0 times, 0.000s)\n" \
	"unparsed 0 filter_dropped 0 gso_failed 0 mark_failed 0\n"

static void test_xstats_of_other_sizes(void)
{
	const unsigned int head = TC_DUALPI2_EXT_XSTATS_OFFSET + 8;
	const __u32 magic = TC_DUALPI2_EXT_XSTATS_MAGIC;
	const __u32 size = sizeof(struct tc_dualpi2_ext_xstats);
	char full[TEXT_SIZE];
	unsigned int len, bad = 0;

	set_xstats(magic, size);
	for (len = 0; len <= XSTATS_SIZE + 64; len++)
		if (print_xstats(false, len) || strncmp(out, "prob ", 5) ||
		    !strstr(out, "Classic:") != (len < head))
			bad++;
	check(!bad, "statistics of any length are printed");

	print_xstats(false, 40);
	check_text("what short statistics lack is zero", out,
		   "prob 0.010000 delay_c 14210us delay_l 430us\n"
		   "pkts_in_c 1234 pkts_in_l 5678 maxq 77\n"
		   "ecn_mark 12 step_mark 3\n"
		   "credit -151400 (L-queue)\n"
		   "memory_used 4608 (max 0) of memory limit 0\n");

	print_xstats(false, head);
	check_text("an extension that ends after its head is all zero", out,
		   XSTATS_TEXT "Classic" ZERO_TEXT "L4S" ZERO_TEXT ZERO_END);
	print_xstats(false, head + sizeof(struct tc_dualpi2_queue_xstats));
	check_text("what a short extension lacks is zero", out,
		   XSTATS_TEXT CLASSIC_TEXT "L4S" ZERO_TEXT ZERO_END);

	print_xstats(false, XSTATS_SIZE);
	memcpy(full, out, out_len + 1);
	print_xstats(false, XSTATS_SIZE + 64);
	check_text("what a long extension has in addition is left", out, full);

	set_xstats(magic, 8 + sizeof(struct tc_dualpi2_queue_xstats));
	print_xstats(false, XSTATS_SIZE);
	check_text("what is beyond an extension's own size is zero", out,
		   XSTATS_TEXT CLASSIC_TEXT "L4S" ZERO_TEXT ZERO_END);
	set_xstats(magic, 0xffffffff);
	print_xstats(false, XSTATS_SIZE);
	check_text("an extension's size beyond the payload is cut", out, full);
	set_xstats(magic, 4);
	print_xstats(false, XSTATS_SIZE);
	check_text("an extension smaller than its head is not printed", out,
		   XSTATS_TEXT);
	set_xstats(magic + 1, size);
	print_xstats(false, XSTATS_SIZE);
	check_text("an extension without the magic number is not printed", out,
		   XSTATS_TEXT);
}

static void test_credit(void)
{
	static const struct {
		__s32 credit;
		const char *text;
	} cases[] = {
		{ 1, "\ncredit 1 (C-queue)\n" },
		{ 0, "\ncredit 0 (L-queue)\n" },
		{ -1, "\ncredit -1 (L-queue)\n" },
	};
	struct tc_dualpi2_xstats *st = RTA_DATA(&stats.rta);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		st->credit = cases[i].credit;
		print_xstats(false, sizeof(*st));
		check(strstr(out, cases[i].text),
		      "credit %d names the queue whose turn it is",
		      cases[i].credit);
	}
}

/* ---- statistics in attributes ---- */

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

#define NEW_CLASSIC \
	" arrived 810 (205 bytes) not_ect 201 ect1 202 ect0 203 ce 204\n" \
	" presented 206 (207 bytes) forwarded 208 (209 bytes)\n" \
	" dropped_not_ect 1305 (limit 215, memory 216, early 217, aqm 218, overload 219, purge 220)\n" \
	" dropped_ect 1341 (limit 221, memory 222, early 223, aqm 224, overload 225, purge 226)\n" \
	" dropped_bytes 684 (arrival 227, aqm 228, purge 229)\n" \
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
	check(strncmp(out, "\"classic\":{\"enqueued\":101,", 26) == 0 &&
	      !strstr(out, "l4s") && !strstr(out, "prob"),
	      "the class of the Classic queue has one object in JSON");

	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check(strncmp(out, "L4S: enqueued 18446744073709551595 ", 35) == 0 &&
	      strstr(out, NEW_L4S) && !strstr(out, "Classic") &&
	      !strstr(out, "prob"),
	      "the class of the L4S queue shows that and nothing else");
	print_app(true);
	check(strncmp(out, "\"l4s\":{\"enqueued\":", 18) == 0 &&
	      !strstr(out, "\"classic\"") && !strstr(out, "prob"),
	      "the class of the L4S queue has one object in JSON");

	app_add(TCA_DUALPI2_STATS_OVERLOAD, &overload, sizeof(overload));
	print_app(false);
	check(strncmp(out, "prob ", 5) == 0 && strstr(out, "Classic:"),
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
	static const struct {
		__u64 rate;
		const char *text;
	} rates[] = {
		{ 1, "8bit" }, { 124, "992bit" }, { 125, "1Kbit" },
		{ 4999987, "40Mbit" }, { 4998700, "39.99Mbit" },
		{ 125000000, "1Gbit" }, { 124999999, "1Gbit" },
		{ 1250000000000, "10Tbit" }, { UINT64_MAX, "147573953Tbit" },
	};
	char name[TEXT_SIZE], want[TEXT_SIZE];
	struct tc_dualpi2_link link = {};
	unsigned int i, len;
	struct queue l;

	check(sizeof(link) == 56, "the statistics of the link have 56 bytes");
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

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		link.drain_rate = rates[i].rate;
		app_begin();
		app_add(TCA_DUALPI2_STATS_LINK, &link, sizeof(link));
		print_app(false);
		sprintf(want, "drain_rate %s ", rates[i].text);
		check_text("a drain rate is printed in the unit that suits it",
			   piece("drain_rate", "throttled"), want);
	}

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
	check(strncmp(out, "prob ", 5) == 0 && strstr(out, "Classic:"),
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
	static const char junk[40] = "\377\377\377\377\377\377\377\377";
	char full[TEXT_SIZE], longer[sizeof(struct queue)] = {};
	unsigned int len, head, bad = 0;
	__u32 *size;	/* in the extension, which is aligned to 4 bytes only */
	struct rtattr *nest;
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);
	print_app(false);
	memcpy(full, out, out_len + 1);

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
	check_text("what a shorter struct lacks is zero", out, CLASSIC_TEXT
		   " arrived 810 (205 bytes) not_ect 201 ect1 202 ect0 203 ce 204\n"
		   " presented 0 (0 bytes) forwarded 0 (0 bytes)\n"
		   " delay of no packet yet\n");

	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, 24);
	app_add(TCA_DUALPI2_QUEUE_HIST, &c.hist, sizeof(c.hist));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("delays without a unit are not printed", out, CLASSIC_TEXT);

	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, sizeof(c.delay));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("delays without a histogram, as of a deletion, are not printed",
		   out, CLASSIC_TEXT);

	/* A struct that is longer than ours: the attributes follow that. */
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

/* ---- what a kernel has sent ---- */

static const struct rtattr *find_attr(const struct rtattr *rta, int len,
				      unsigned int type)
{
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len))
		if ((rta->rta_type & NLA_TYPE_MASK) == type)
			return rta;
	return NULL;
}

#define RECORDED_OPTIONS \
	"limit 250p memlimit 757000B target 15ms tupdate 16ms alpha 0.160156 beta 3.199219 step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect split_gso ramp 400us recur hist_c 64us hist_l 8us overload_report 1s bandwidth 10Mbit overhead 22 mpu 64 noatm ingress nqb 45,46 burst_max 8ms "

#define RECORDED_JSON \
	"\"overload-report\":1000000,\"bandwidth\":1250000,\"overhead\":22,\"mpu\":64,\"framing\":\"noatm\",\"ingress\":true,\"nqb\":[45,46],\"burst-max\":8000,\"l4s\":true"

#define RECORDED_LINK \
	"overload_start 2026-11-22T01:23:01.780Z overload_end 2026-11-22T01:23:04.635Z overload_duration 2.855s overload_reports 2\n" \
	"drain_rate 10Mbit throttled 9377 burst 1.74ms ramp_min 1.74ms ramp_max 2.17ms limit_pkts 250\n" \
	"nqb_arrived 3375 nqb_dropped 202 nqb_limit_bytes 12500\n"

/* A qdisc with shaper, link layer, NQB and bursts, and its classes. */
static void test_recording(const char *path)
{
	static union {
		struct nlmsghdr n;
		char bytes[1 << 16];
	} recorded;
	unsigned int qdiscs = 0, classes = 0;
	struct nlmsghdr *n = &recorded.n;
	FILE *file;
	int len;

	if (!path) {
		skip("what a kernel has sent is shown", "no file was named");
		return;
	}
	file = fopen(path, "r");
	if (!file) {
		check(false, "what a kernel has sent is shown");
		printf("# cannot read %s\n", path);
		return;
	}
	len = fread(&recorded, 1, sizeof(recorded), file);
	fclose(file);
	for (; NLMSG_OK(n, (unsigned int)len); n = NLMSG_NEXT(n, len)) {
		const struct rtattr *first = TCA_RTA(NLMSG_DATA(n)), *found;
		int size = NLMSG_PAYLOAD(n, sizeof(struct tcmsg));

		if (n->nlmsg_type == RTM_NEWQDISC) {
			qdiscs++;
			found = find_attr(first, size, TCA_OPTIONS);
			print(false, false, found);
			check_text("recorded options are shown as text", out,
				   RECORDED_OPTIONS);
			check(!parse(out), "recorded options are taken again");
			print(false, false, options());
			check_text("recorded options are the same again", out,
				   RECORDED_OPTIONS);
			print(true, false, found);
			check_text("recorded options are shown as JSON",
				   piece("\"overload-report", "\377"),
				   RECORDED_JSON);
		}
		found = find_attr(first, size, TCA_STATS2);
		found = find_attr(RTA_DATA(found), RTA_PAYLOAD(found),
				  TCA_STATS_APP);
		print(false, true, found);
		if (n->nlmsg_type == RTM_NEWQDISC)
			check_text("recorded statistics are shown",
				   piece("overload_start", "\377"),
				   RECORDED_LINK);
		else
			classes += !strstr(out, "drain_rate");
	}
	check(qdiscs == 1 && classes == 2,
	      "the recording has a qdisc, and classes without the link");
}

/* ---- front ends and modules of both ages ---- */

/* Whether all words of old are in text too, in this order. */
static bool is_within(const char *old, const char *text)
{
	static const char blanks[] = "\n ,{}";
	size_t len, want;

	for (;;) {
		old += strspn(old, blanks);
		want = strcspn(old, blanks);
		if (!want)
			return true;
		for (;; text += len) {
			text += strspn(text, blanks);
			len = strcspn(text, blanks);
			if (!len)
				return false;
			if (len == want && !memcmp(old, text, len))
				break;
		}
		text += len;
		old += want;
	}
}

static void test_ages(void)
{
	static const char *const lines[] = {
		/* What the older module shows, and what the newer one does. */
		"limit 5 target 15ms step_thresh 1ms ramp 400us recur",
		"limit 5 target 15ms step_thresh 1ms ramp 400us recur p_cmax 30 hist_c 64us hist_l 8us overload_report 1s bandwidth 40mbit docsis ingress nqb 45 burst_max 5ms",
	};
	const struct tc_dualpi2_overload overload = { .start_ns = 5000000 };
	static char old[2][2][TEXT_SIZE], new[2][2][TEXT_SIZE];
	struct queue c, l;
	int module, as;

	check(dualpi2_old_qdisc_util.id, "the older front end is there");
	if (!dualpi2_old_qdisc_util.id)
		return;

	for (module = 0; module < 2; module++)
		for (as = 0; as < 2; as++) {
			parse(lines[module]);
			print(as, false, options());
			strcpy(new[module][as], out);
			front_end = &dualpi2_old_qdisc_util;
			print(as, false, options());
			strcpy(old[module][as], out);
			front_end = &dualpi2_qdisc_util;
		}
	/* An attribute with a number beyond all that it knows. */
	parse("limit 5 bypass");
	front_end = &dualpi2_old_qdisc_util;
	print(false, false, options());
	front_end = &dualpi2_qdisc_util;
	check_text("the older front end does not see bypass", out, "limit 5p ");

	for (as = 0; as < 2; as++) {
		const char *how = as ? "JSON" : "text";

		check(*old[0][as] && !strcmp(new[0][as], old[0][as]),
		      "options of the older module look the same in either: %s",
		      how);
		check(!strcmp(old[1][as], old[0][as]),
		      "the older front end shows all that it knows of the newer module's options: %s",
		      how);
		check(is_within(old[1][as], new[1][as]) &&
		      strstr(new[1][as], as ? "overload-report" :
						"overload_report") &&
		      strstr(new[1][as], as ? "\"nqb\":[45]" :
					      "overhead 18 mpu 64 noatm"),
		      "the newer front end shows that and more: %s", how);
	}

	set_queues(&c, &l);
	for (module = 0; module < 2; module++)
		for (as = 0; as < 2; as++) {
			app_begin();
			if (module)
				app_qdisc(&c, &l, &overload);
			print_app(as);
			strcpy(new[module][as], out);
			front_end = &dualpi2_old_qdisc_util;
			print_app(as);
			strcpy(old[module][as], out);
			front_end = &dualpi2_qdisc_util;
		}
	for (as = 0; as < 2; as++) {
		const char *how = as ? "JSON" : "text";

		check(strstr(old[0][as], "unparsed") &&
		      !strcmp(new[0][as], old[0][as]),
		      "statistics of the older module look the same in either: %s",
		      how);
		check(!strcmp(old[1][as], old[0][as]),
		      "the older front end shows all that it knows of the newer module's statistics: %s",
		      how);
		check(is_within(old[1][as], new[1][as]) &&
		      strstr(new[1][as], "p99") &&
		      strstr(new[1][as], "presented"),
		      "the newer front end shows those and more: %s", how);
	}
}

int main(int argc, char **argv)
{
	error_file = fdopen(memfd_create("stderr", 0), "r+");
	if (!error_file)
		return 1;

	printf("KTAP version 1\n");
	check(strcmp(dualpi2_qdisc_util.id, "dualpi2") == 0,
	      "the plugin is called dualpi2");
	test_cases("accepted.txt", 2, test_accepted);
	test_messages();
	test_cases("refused.txt", 2, test_refused);
	test_blanks_refused();
	test_full_message_refused();
	test_help();
	check_file("the man page has every option", argc > 1 ? argv[1] : NULL);
	check_file("the completion has every option",
		   argc > 2 ? argv[2] : NULL);
	test_cases("printed.txt", 3, test_printed);
	test_nothing_printed();
	test_odd_attributes();
	test_round_trip();
	test_round_trip_of_the_link();
	test_random_commands();
	test_xstats_printed();
	test_xstats_of_other_sizes();
	test_credit();
	test_queues_printed();
	test_empty_queue();
	test_class();
	test_percentiles();
	test_beyond();
	test_mean();
	test_delay_units();
	test_overload();
	test_link();
	test_dates();
	test_odd_queues();
	test_recording(argc > 3 ? argv[3] : NULL);
	test_ages();

	printf("1..%u\n", passed + failed + skipped);
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       passed, failed, skipped);
	return failed ? 1 : 0;
}
