/* SPDX-License-Identifier: GPL-2.0-only */
/* Statistics of fixed layout to text and JSON; part of test_q_dualpi2.c. */

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
	const struct tc_dualpi2_ext_xstats ext = {
		.magic = magic, .size = size,
		.unparsed = 401, .filter_dropped = 402, .gso_failed = 403,
		.mark_failed = 404,
		.prob_c = 42949673, .prob_cl = 858993459,
	};

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

#define EXT_TEXT \
	"prob_c 0.010000 prob_cl 0.200000 overload no (0 times, 0.000s)\n" \
	"unparsed 401 filter_dropped 402 gso_failed 403 mark_failed 404\n"

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
		   XSTATS_TEXT EXT_TEXT);
	print_xstats(true, XSTATS_SIZE);
	check_text("statistics of the extension are printed as JSON", out,
		   XSTATS_JSON
		   ",\"prob-c\":0.01,\"prob-cl\":0.2,\"overload\":false,\"overload-count\":0,\"overload-ns\":0,\"unparsed\":401,\"filter-dropped\":402,\"gso-failed\":403,\"mark-failed\":404");
}

#define ZERO_END \
	"prob_c 0.000000 prob_cl 0.000000 overload no (0 times, 0.000s)\n" \
	"unparsed 0 filter_dropped 0 gso_failed 0 mark_failed 0\n"

#define SHORT_END \
	"prob_c 0.000000 prob_cl 0.000000 overload no (0 times, 0.000s)\n" \
	"unparsed 401 filter_dropped 402 gso_failed 0 mark_failed 0\n"

static void test_xstats_of_other_sizes(void)
{
	const unsigned int head = TC_DUALPI2_EXT_XSTATS_OFFSET + 8;
	const __u32 magic = TC_DUALPI2_EXT_XSTATS_MAGIC;
	const __u32 size = sizeof(struct tc_dualpi2_ext_xstats);
	const __u32 some = offsetof(struct tc_dualpi2_ext_xstats, gso_failed);
	char full[TEXT_SIZE];
	unsigned int len, bad = 0;

	set_xstats(magic, size);
	for (len = 0; len <= XSTATS_SIZE + 64; len++)
		if (print_xstats(false, len) || strncmp(out, "prob ", 5) ||
		    !strstr(out, "prob_c ") != (len < head))
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
		   XSTATS_TEXT ZERO_END);
	print_xstats(false, TC_DUALPI2_EXT_XSTATS_OFFSET + some);
	check_text("what a short extension lacks is zero", out,
		   XSTATS_TEXT SHORT_END);

	print_xstats(false, XSTATS_SIZE);
	memcpy(full, out, out_len + 1);
	print_xstats(false, XSTATS_SIZE + 64);
	check_text("what a long extension has in addition is left", out, full);

	set_xstats(magic, some);
	print_xstats(false, XSTATS_SIZE);
	check_text("what is beyond an extension's own size is zero", out,
		   XSTATS_TEXT SHORT_END);
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
