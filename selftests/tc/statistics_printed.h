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
