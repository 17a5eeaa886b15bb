// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue and treatment by ECN codepoint: RFC 9331 5.1, 5.3 and 5.4, RFC 9332
 * 2.5.1 and 2.5.1.1 (requirements R1, R2, R6, R7, R9, R12, R18, R26 to R29).
 */

/* "." in a rule: either or any */
struct profile_row {
	char queue;		/* C, L */
	char ecn;		/* n Not-ECT, 1 ECT(1), 0 ECT(0), e CE */
	char mask;		/* 1, 2, 3; o: with ECT(0), 2 or 3 */
	char l4s;		/* y, n */
	char unmarked;		/* y, n */
	enum dualpi2_profile want;
};

static const struct profile_row profile_rows[] = {
	/* C: drop, or mark, as Classic ... */
	{ 'C', 'n', '.', '.', '.', DUALPI2_C_DROP },
	{ 'C', '0', '.', '.', '.', DUALPI2_C_MARK },
	/* ... but what is L4S with the coupled probability (R18, R29, R12) */
	{ 'C', '1', '.', 'y', '.', DUALPI2_C_SCALABLE },
	{ 'C', 'e', '.', 'y', '.', DUALPI2_C_SCALABLE },
	/* L4S disabled (R7): ECT(1) is Not-ECT, CE that of RFC 3168 */
	{ 'C', '1', '.', 'n', '.', DUALPI2_C_DROP },
	{ 'C', 'e', '.', 'n', '.', DUALPI2_C_MARK },
	/* L: leave alone what was put there so (R27) */
	{ 'L', '.', '.', '.', 'y', DUALPI2_L_UNMARKED },
	/* Not-ECT: drop with a Classic probability (R28) */
	{ 'L', 'n', '.', '.', 'n', DUALPI2_L_DROP },
	/* L4S */
	{ 'L', '1', '.', 'y', 'n', DUALPI2_L_SCALABLE },
	{ 'L', 'e', '.', 'y', 'n', DUALPI2_L_SCALABLE },
	/* ECT(0): mark with a Classic probability (R26), unless the user says that it is scalable
	 */
	{ 'L', '0', '1', 'y', 'n', DUALPI2_L_MARK },
	{ 'L', '0', 'o', 'y', 'n', DUALPI2_L_SCALABLE },
	/* L4S disabled: as in C */
	{ 'L', '1', '.', 'n', 'n', DUALPI2_L_DROP },
	{ 'L', '0', '1', 'n', 'n', DUALPI2_L_MARK },
};

/* With L4S disabled nothing is scalable, in whatever queue it was put. */
static const struct profile_row profile_l4s_off_rows[] = {
	{ 'L', '0', '.', 'n', 'n', DUALPI2_L_MARK },
	{ 'L', 'e', '.', 'n', 'n', DUALPI2_L_MARK },
};

static unsigned int profile_check(const struct profile_row *row)
{
	static const char ecns[] = { 'n', '1', '0', 'e' };
	unsigned int queue, ecn, mask, l4s, unmarked, cases = 0;

	for (queue = 0; queue < 2; queue++)
	for (ecn = 0; ecn < 4; ecn++)
	for (mask = 1; mask < 4; mask++)
	for (l4s = 0; l4s < 2; l4s++)
	for (unmarked = 0; unmarked < 2; unmarked++) {
		struct dualpi2_config cfg = unit_config();
		enum dualpi2_profile got;

		if (row->queue != "CL"[queue] || (row->ecn != '.' && row->ecn != ecns[ecn]) ||
		    (row->mask == 'o' && !(mask & 2)) || (row->mask != 'o' && row->mask != '.' &&
							  row->mask != (char)('0' + mask)) ||
		    (row->l4s != '.' && row->l4s != "ny"[l4s]) ||
		    (row->unmarked != '.' && row->unmarked != "ny"[unmarked]))
			continue;
		cases++;
		cfg.ecn_mask = mask;
		cfg.l4s = l4s;
		got = dualpi2_profile(&cfg, queue, ecn, unmarked);
		CHECK(got == row->want,
		      "queue %c, codepoint %c, mask %u, l4s %u, unmarked %u: got %u, want %u",
		      "CL"[queue], ecns[ecn], mask, l4s, unmarked, got, row->want);
	}
	return cases;
}

UNIT_TEST(profile_every_combination_follows_rfc)
{
	unsigned int cases = 0;

	CHECK_EQ(DUALPI2_ECN_NOT_ECT, 0);	/* as in the IP header */
	CHECK_EQ(DUALPI2_ECN_ECT1, 1);
	CHECK_EQ(DUALPI2_ECN_ECT0, 2);
	CHECK_EQ(DUALPI2_ECN_CE, 3);
	for_each(profile_row, profile_rows)
		cases += profile_check(profile_row);
	/* 2 queues, 4 codepoints, 3 masks, l4s, unmarked; without CE (3 masks)
	 * and ECT(0) (2 masks) in L with L4S disabled, see below
	 */
	CHECK_EQ(cases, 2 * 4 * 3 * 2 * 2 - 3 - 2);
}

UNIT_TEST(profile_l4s_disabled_leaves_nothing_scalable_in_l)
{
	for_each(profile_l4s_off_row, profile_l4s_off_rows)
		profile_check(profile_l4s_off_row);
}

UNIT_TEST(queue_every_codepoint_follows_mask)
{
	/* by mask 1..3: is L; Not-ECT, ECT(1), ECT(0), CE */
	static const char *const want[] = { "CLCL", "CCLL", "CLLL" };

	for (unsigned int mask = 1; mask <= 3; mask++) {
		for (unsigned int ecn = 0; ecn < 4; ecn++) {
			struct dualpi2_config cfg = unit_config();

			cfg.ecn_mask = mask;
			CHECK_EQ("CL"[dualpi2_queue_of_ecn(&cfg, ecn)], want[mask - 1][ecn]);
			cfg.l4s = false;
			CHECK_EQ(dualpi2_queue_of_ecn(&cfg, ecn), DUALPI2_QUEUE_C);
		}
	}
}

/* What the ECN field alone sends to L is scalable there. */
UNIT_TEST(profile_in_the_queue_of_its_codepoint_is_scalable_or_classic)
{
	for (unsigned int mask = 1; mask <= 3; mask++) {
		for (unsigned int ecn = 0; ecn < 4; ecn++) {
			struct dualpi2_config cfg = unit_config();
			enum dualpi2_queue queue;

			cfg.ecn_mask = mask;
			queue = dualpi2_queue_of_ecn(&cfg, ecn);
			if (queue == DUALPI2_QUEUE_L)
				CHECK_EQ(dualpi2_profile(&cfg, queue, ecn, false),
					 DUALPI2_L_SCALABLE);
			else if (ecn != DUALPI2_ECN_ECT1)
				CHECK_EQ(dualpi2_profile(&cfg, queue, ecn, false),
					 ecn ? DUALPI2_C_MARK : DUALPI2_C_DROP);
		}
	}
}
