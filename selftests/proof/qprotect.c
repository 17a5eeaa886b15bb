// SPDX-License-Identifier: GPL-2.0-only
/* Queue protection: scores, buckets, and when a flow is redirected.  The hash is computed modulo 2^64 on purpose. */
#include "proof.h"

/* A score ends at most DUALPI2_QPROTECT_SCORE_MAX_NS later, a sanction was never longer, and the time goes on. */
static bool bucket_holds(const struct dualpi2_qprotect_bucket *b, u64 now_ns)
{
	return b->expiry_ns <= now_ns + DUALPI2_QPROTECT_SCORE_MAX_NS &&
	       b->last_ns <= DUALPI2_QPROTECT_SCORE_MAX_NS + U32_MAX &&
	       b->probation_ns <= now_ns + DUALPI2_QPROTECT_PROBATION_NS &&
	       (b->hash || !b->c_end);
}

static bool scores_hold(const struct dualpi2_qprotect_params *qp)
{
	return qp->delay_ns && qp->delay_ns <= DUALPI2_QPROTECT_DELAY_MAX_NS &&
	       qp->product <= (u64)DUALPI2_QPROTECT_DELAY_MAX_NS * DUALPI2_QPROTECT_SCORE_MAX_NS &&
	       qp->ns_per_byte_q20 && qp->ns_per_byte_q20 <= 1000000ULL << 20;
}

static struct dualpi2_qprotect_params any_scores(void)
{
	struct dualpi2_qprotect_params qp;

	assume(qp.has_ramp == 0 || qp.has_ramp == 1);
	assume(qp.overload == 0 || qp.overload == 1);
	assume(scores_hold(&qp));
	return qp;
}

void prove_scores_hold_for_all_options(void)
{
	struct dualpi2_config cfg = any_config();
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	struct dualpi2_qprotect_params qp;
	u64 ns_per_byte_q20;

	assume(ns_per_byte_q20 <= 1000000ULL << 20);
	dualpi2_qprotect_init(&qp, &cfg, &p, &v, ns_per_byte_q20);
	prove(scores_hold(&qp));
	prove(qp.ramp.min_ns < qp.ramp.max_ns);
	prove(qp.product == (u64)qp.delay_ns * cfg.qprotect_score_us * 1000);
	/* A ramp of the AQM ends below the critical delay, unless that is the longest. */
	prove(qp.has_ramp || qp.delay_ns == DUALPI2_QPROTECT_DELAY_MAX_NS || v.ramp.max_ns < qp.delay_ns);
}

/* proof: slow */
void prove_verdict_of_queue_protection(void)
{
	struct dualpi2_qprotect_params qp = any_scores();
	struct dualpi2_qprotect_bucket b, before;
	enum dualpi2_qprotect_verdict verdict;
	u64 native_q32, delay_ns, c_out, now_ns;
	bool nqb, returned;
	u32 bytes;

	assume(nqb == 0 || nqb == 1);
	assume(now_ns <= NOW_MAX && native_q32 <= ONE && bucket_holds(&b, now_ns));
	before = b;
	returned = b.c_end && dualpi2_qprotect_is_free(&qp, &b, c_out, now_ns);
	verdict = dualpi2_qprotect_verdict(&qp, &b, bytes, native_q32, nqb, delay_ns, c_out, now_ns);
	prove(bucket_holds(&b, now_ns));
	prove(dualpi2_qprotect_score_ns(&b, now_ns) <= DUALPI2_QPROTECT_SCORE_MAX_NS);
	/* A flow that is redirected stays so until it has returned. */
	prove(!before.c_end || returned || verdict == DUALPI2_QPROTECT_REDIRECT);
	/* Without congestion, and up to the critical delay unless it is NQB, no redirection begins. */
	if (!before.c_end || returned)
		prove((native_q32 && (delay_ns > qp.delay_ns || nqb)) || verdict == DUALPI2_QPROTECT_KEEP);
	/* Flows that share a bucket are not redirected for what others sent. */
	prove(b.hash || verdict != DUALPI2_QPROTECT_SANCTION);
	prove(verdict == DUALPI2_QPROTECT_SANCTION || b.last_ns == before.last_ns);
	prove(!returned || b.probation_ns == now_ns + DUALPI2_QPROTECT_PROBATION_NS);
}

/* A sanction on probation lasts twice as long as the last one, or the longest time. */
void prove_sanctions_get_longer(void)
{
	struct dualpi2_qprotect_params qp = any_scores();
	struct dualpi2_qprotect_bucket b, before;
	u64 now_ns;

	assume(now_ns <= NOW_MAX && bucket_holds(&b, now_ns) && b.expiry_ns >= now_ns);
	before = b;
	dualpi2_qprotect_sanction(&qp, &b, now_ns);
	prove(bucket_holds(&b, now_ns));
	prove(b.expiry_ns >= before.expiry_ns);
	prove(b.last_ns == b.expiry_ns - now_ns + qp.wait_ns);
	prove(now_ns >= before.probation_ns || b.expiry_ns - now_ns >= 2 * before.last_ns ||
	      b.expiry_ns - now_ns == DUALPI2_QPROTECT_SCORE_MAX_NS);
}

/* No flow gets the bucket of another that has a score or redirected packets.
 */
/* proof: long */
void prove_bucket_is_the_flows_own(void)
{
	struct dualpi2_qprotect_bucket buckets[DUALPI2_QPROTECT_BUCKETS], before;
	struct dualpi2_qprotect_params qp = any_scores();
	u64 native_q32, c_out, now_ns;
	u32 hash, any, i;

	assume(now_ns <= NOW_MAX && hash && any < DUALPI2_QPROTECT_BUCKETS);
	for (i = 0; i < DUALPI2_QPROTECT_BUCKETS; i++)
		assume(bucket_holds(&buckets[i], now_ns));
	before = buckets[any];
	i = dualpi2_qprotect_pick(&qp, buckets, hash, native_q32, c_out, now_ns);
	prove(i < DUALPI2_QPROTECT_BUCKETS);
	prove(i == DUALPI2_QPROTECT_FLOWS || buckets[i].hash == hash);
	prove(i == any || buckets[any].hash == before.hash);
	prove(buckets[any].hash == before.hash ||
	      (native_q32 && dualpi2_qprotect_is_free(&qp, &before, c_out, now_ns)));
	prove(buckets[any].hash != before.hash || buckets[any].expiry_ns == before.expiry_ns);
}

/* proof: long */
void prove_use_counts_each_bucket_once(void)
{
	struct dualpi2_qprotect_bucket buckets[DUALPI2_QPROTECT_BUCKETS];
	struct dualpi2_qprotect_params qp = any_scores();
	struct dualpi2_qprotect_use use;
	u64 c_out, now_ns;
	u32 i;

	assume(now_ns <= NOW_MAX);
	for (i = 0; i < DUALPI2_QPROTECT_BUCKETS; i++)
		assume(bucket_holds(&buckets[i], now_ns));
	use = dualpi2_qprotect_use(&qp, buckets, c_out, now_ns);
	prove(use.redirected <= use.used && use.used <= DUALPI2_QPROTECT_BUCKETS);
	prove(use.score_max_ns <= DUALPI2_QPROTECT_SCORE_MAX_NS);
	prove(use.used || !use.score_max_ns);
}

/* No key and no word beyond the last is read. */
/* proof: modulo */
void prove_hash_of_a_flow_is_not_0(void)
{
	u64 keys[DUALPI2_QPROTECT_KEYS];
	u32 words[DUALPI2_QPROTECT_WORDS], n;

	for (n = 0; n <= DUALPI2_QPROTECT_WORDS; n += 2)
		prove(dualpi2_qprotect_hash(keys, words, n));
}

u64 __CPROVER_uninterpreted_ramp(u32 min_ns, u32 max_ns, u64 delay_ns);

/* What the proofs of ramps allow, see mark.c. */
u64 any_ramp(const struct dualpi2_ramp *ramp, u64 delay_ns)
{
	u64 p_q32 = __CPROVER_uninterpreted_ramp(ramp->min_ns, ramp->max_ns, delay_ns);

	assume(p_q32 <= ONE);
	return p_q32;
}

/* proof: dualpi2_ramp_q32:any_ramp */
void prove_scores_use_the_ramp_of_the_aqm(void)
{
	struct dualpi2_qprotect_params qp = any_scores();
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 delay_ns, native_q32;
	bool shared;

	assume(shared == 0 || shared == 1);
	native_q32 = dualpi2_qprotect_native_q32(&qp, &v, shared, delay_ns);
	prove(native_q32 <= ONE);
	prove(native_q32 == any_ramp(qp.has_ramp ? &qp.ramp : shared ? &v.shared_ramp : &v.ramp, delay_ns));
}
