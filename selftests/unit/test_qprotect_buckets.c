// SPDX-License-Identifier: GPL-2.0-only
/* Queue protection: the hash of a flow, its bucket, and what the buckets hold. */

#include "qprotect_test.h"

/* Each word, and each key, has its part in the hash. */
UNIT_TEST(qprotect_hash_is_that_of_lemire_and_kaser)
{
	u64 keys[DUALPI2_QPROTECT_KEYS] = {};
	u32 words[DUALPI2_QPROTECT_WORDS] = {};

	for (u32 n = 0; n <= DUALPI2_QPROTECT_WORDS; n += 2) {
		u64 sum;

		for_each(key, keys)
			key[0] = unit_any(0, UINT64_MAX);
		for_each(word, words)
			word[0] = unit_any(0, U32_MAX);
		sum = keys[0];
		for (u32 i = 0; i < n / 2; i++)
			sum += (keys[2 * i + 1] + words[2 * i]) * (keys[2 * i + 2] + words[2 * i + 1]);
		CHECK_EQ(dualpi2_qprotect_hash(keys, words, n), sum >> 32 ?: 1);
	}
	/* Not that of the shared bucket. */
	keys[0] = UINT32_MAX;
	CHECK_EQ(dualpi2_qprotect_hash(keys, words, 0), 1);
}

/* Flows that differ in one port are spread over all buckets, whichever the keys. */
UNIT_TEST(qprotect_hash_spreads_ports)
{
	u64 keys[DUALPI2_QPROTECT_KEYS] = {};
	u32 words[4] = { 0, 17, 0x0100070a, 0x0200070a }, n[DUALPI2_QPROTECT_FLOWS] = {};

	for (int round = 0; round < 100; round++) {
		for_each(key, keys)
			key[0] = unit_rnd();
		for (words[0] = 0; words[0] < 320; words[0]++)
			n[dualpi2_qprotect_hash(keys, words, 4) % DUALPI2_QPROTECT_FLOWS]++;
	}
	/* Pairwise independent: the standard deviation is 31. */
	for_each(count, n)
		CHECK_NEAR(*count, 1000, 160);
}

UNIT_TEST(qprotect_bucket_is_the_own_or_a_free_one_or_the_shared_one)
{
	struct qp_play q = qp_step(QP_LINK);
	u32 flow = 9 << 5 | 4;		/* of buckets 4 and 9 */
	u32 shared = DUALPI2_QPROTECT_FLOWS;

#define PICK(hash)	dualpi2_qprotect_pick(&q.qp, q.b, hash, 1, q.c_out, q.now)
	/* The earlier expiry, and the first of equals. */
	CHECK_EQ(PICK(flow), 4);
	CHECK_EQ(q.b[4].hash, flow);
	q.b[4].hash = 1;
	q.b[4].expiry_ns = 2;
	q.b[9].expiry_ns = 1;
	CHECK_EQ(PICK(flow), 9);
	/* Its own, even if the other expired earlier. */
	q.b[4].expiry_ns = 0;
	CHECK_EQ(PICK(flow), 9);
	q.b[9] = (struct dualpi2_qprotect_bucket) { .expiry_ns = q.now + 1, .hash = 2 };
	q.b[4] = (struct dualpi2_qprotect_bucket) { .expiry_ns = q.now + 2, .hash = 1, .redirected = 3 };
	CHECK_EQ(PICK(flow), shared);
	CHECK_EQ(q.b[shared].redirected, 0);
	q.now += 1;
	CHECK_EQ(PICK(flow), 9);
	/* One whose last packet is still queued is not free. */
	q.b[9] = (struct dualpi2_qprotect_bucket) { .expiry_ns = q.now, .c_end = 1, .hash = 2 };
	CHECK_EQ(PICK(flow), shared);
	/* Bucket 4 expires earlier. */
	q.b[9].expiry_ns = q.now + 1;
	q.now += 1;
	CHECK_EQ(PICK(flow), 4);
	CHECK_EQ(q.b[4].redirected, 0);
	CHECK_EQ(q.b[4].expiry_ns, 0);
	q.b[4] = (struct dualpi2_qprotect_bucket) { .expiry_ns = q.now, .c_end = 1, .hash = 1 };
	q.c_out = 1;
	CHECK_EQ(PICK(flow), 4);
	/* High bits make another flow. */
	CHECK_EQ(PICK(flow | 1U << 31), 4);
	CHECK_EQ(q.b[4].hash, flow | 1U << 31);
	/* Without congestion only its own. */
	q.b[4].probation_ns = 5;
	CHECK_EQ(dualpi2_qprotect_pick(&q.qp, q.b, flow, 0, q.c_out, q.now), shared);
	CHECK_EQ(dualpi2_qprotect_pick(&q.qp, q.b, flow | 1U << 31, 0, q.c_out, q.now), 4);
	CHECK_EQ(q.b[4].probation_ns, 5);
#undef PICK
}

/* Bits 0 to 4 select one, bits 5 to 9 the other. */
UNIT_TEST(qprotect_flow_has_two_buckets)
{
	for (int n = 0; n < 10000; n++) {
		struct qp_play q = qp_step(QP_LINK);
		u32 hash = unit_any(1, U32_MAX), first = hash & 31, second = hash >> 5 & 31;

		if (first == second)
			continue;
		/* The earlier one is not free, because of its last packet. */
		q.b[first] = (struct dualpi2_qprotect_bucket) {
			.expiry_ns = q.now - 2, .c_end = 1, .hash = hash - 1,
		};
		q.b[second] = (struct dualpi2_qprotect_bucket) { .expiry_ns = q.now - 1, .hash = hash + 1 };
		CHECK_EQ(dualpi2_qprotect_pick(&q.qp, q.b, hash, 0, 0, q.now), DUALPI2_QPROTECT_FLOWS);
		CHECK_EQ(dualpi2_qprotect_pick(&q.qp, q.b, hash, 1, 0, q.now), second);
		CHECK_EQ(q.b[second].hash, hash);
	}
}

UNIT_TEST(qprotect_use_counts_what_is_not_free)
{
	struct qp_play q = qp_step(QP_LINK);
	struct dualpi2_qprotect_use use = dualpi2_qprotect_use(&q.qp, q.b, 0, q.now);

	CHECK(!use.used && !use.redirected && !use.score_max_ns, "without any");
	q.b[0].expiry_ns = q.now + 5;
	q.b[1].expiry_ns = q.now;
	q.b[2].expiry_ns = q.now;
	q.b[2].c_end = 7;
	q.b[32].expiry_ns = q.now + 9;
	q.b[32].c_end = 3;
	q.b[31].expiry_ns = q.now + 8;
	use = dualpi2_qprotect_use(&q.qp, q.b, 6, q.now);
	CHECK_EQ(use.used, 4);
	CHECK_EQ(use.redirected, 2);
	CHECK_EQ(use.score_max_ns, 9);
	use = dualpi2_qprotect_use(&q.qp, q.b, 7, q.now);
	CHECK_EQ(use.used, 3);
	CHECK_EQ(use.redirected, 1);
}

/* Not that of the last one; what is behind the buckets is none. */
UNIT_TEST(qprotect_use_shows_the_highest_score)
{
	struct qp_play q = qp_step(QP_LINK);
	struct dualpi2_qprotect_bucket b[DUALPI2_QPROTECT_BUCKETS + 1] = {};

	b[3].expiry_ns = q.now + 10;
	b[DUALPI2_QPROTECT_FLOWS].expiry_ns = q.now + 9;
	b[DUALPI2_QPROTECT_BUCKETS].expiry_ns = q.now + 11;
	CHECK_EQ(dualpi2_qprotect_use(&q.qp, b, 0, q.now).score_max_ns, 10);
	CHECK_EQ(dualpi2_qprotect_use(&q.qp, b, 0, q.now).used, 2);
}
