// SPDX-License-Identifier: GPL-2.0-only
/* The verdict: evenly spaced signals, the fast path, packets without a signal. */
#include "proof.h"

/* Sum of the probabilities minus signals is the credit, which stays within -1/2..3/2: so n
 * packets get n * p - 3/2 to n * p + 1/2 signals, also while p changes.
 */
void prove_signals_follow_the_probability(void)
{
	struct dualpi2_accumulator s;
	s64 before;
	u64 p_q32;
	u32 rnd;
	bool signal;

	assume(accumulator_holds(&s));
	before = s.credit_q32;
	signal = dualpi2_accumulate(&s, p_q32, false, rnd);
	prove(accumulator_holds(&s));
	if (p_q32 && p_q32 < ONE)
		prove(s.credit_q32 == before + (s64)p_q32 - (signal ? (s64)ONE : 0));
	else
		prove(signal == (p_q32 != 0) && s.credit_q32 == before);
}

/* Of the default ramps.  Other widths: selftests/unit/test_pi.c. */
void prove_default_ramp_is_a_probability(void)
{
	struct dualpi2_config cfg;
	struct dualpi2_params p;
	u64 delay_ns, p_q32;
	u32 l_pkts;

	dualpi2_config_init(&cfg);
	dualpi2_params_init(&p, &cfg);
	p_q32 = dualpi2_native_q32(&p, &p.ramp, delay_ns, l_pkts);
	prove(p_q32 <= ONE);
	prove(!p_q32 == (delay_ns <= 800000));
	prove((p_q32 == ONE) == (delay_ns >= 1200000));
}

void prove_tolerance_keeps_the_ramp(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u32 burst_ns;

	dualpi2_tolerate(&p, &v, burst_ns);
	prove(v.ramp.min_ns <= v.ramp.max_ns && v.shared_ramp.min_ns <= v.shared_ramp.max_ns);
	prove(burst_ns <= DUALPI2_BURST_MIN_NS || v.ramp.min_ns >= burst_ns);
}

void prove_classic_equivalent_is_a_probability(void)
{
	struct dualpi2_params p = any_params();
	u64 p_q32;

	assume(p_q32 <= ONE);
	prove(dualpi2_over_k_square_q32(&p, p_q32) <= ONE);
}

void prove_verdict_keeps_the_invariants(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	struct dualpi2_packet pkt = any_packet();
	enum dualpi2_verdict verdict;

	/* Steps alone: prove_default_ramp_is_a_probability() is about ramps. */
	assume(!v.ramp.slope && !v.shared_ramp.slope);
	verdict = dualpi2_verdict(&p, &v, &pkt);
	prove(verdict < DUALPI2_UNDECIDED);
	prove(vars_hold(&p, &v));
	prove(pkt.may_drop || (verdict != DUALPI2_DROP_AQM && verdict != DUALPI2_DROP_OVERLOAD));
	prove(pkt.profile != DUALPI2_L_UNMARKED || verdict == DUALPI2_PASS ||
	      verdict == DUALPI2_DROP_OVERLOAD);
	prove(pkt.profile != DUALPI2_C_MARK || verdict != DUALPI2_DROP_AQM);
	prove(pkt.profile != DUALPI2_L_SCALABLE || verdict != DUALPI2_DROP_AQM);
}

static bool same(const struct dualpi2_accumulator *a, const struct dualpi2_accumulator *b)
{
	return a->credit_q32 == b->credit_q32 && a->dither_q32 == b->dither_q32;
}

/* State after an update; the flags follow from p'. */
static struct dualpi2_vars any_derived_vars(const struct dualpi2_params *p)
{
	struct dualpi2_vars v = any_vars(p);

	assume(p->drop_overload || v.base_q32 <= p->enter_q32);
	v.classic_q32 = dualpi2_square_q32(v.base_q32);
	dualpi2_set_no_signal(p, &v);
	return v;
}

/* proof: long cvc5 */
void prove_fast_verdict_is_the_verdict(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_derived_vars(&p), fast_v = v;
	struct dualpi2_packet pkt = any_packet();
	enum dualpi2_queue queue = pkt.profile <= DUALPI2_C_SCALABLE ?
				   DUALPI2_QUEUE_C : DUALPI2_QUEUE_L;
	enum dualpi2_verdict fast;

	assume(v.coupled_q32 <= ONE);
	assume(!v.base_q32 == !v.coupled_q32);
	fast = queue == DUALPI2_QUEUE_C ?
	       dualpi2_verdict_fast(&p, &fast_v, DUALPI2_QUEUE_C, &pkt) :
	       dualpi2_verdict_fast(&p, &fast_v, DUALPI2_QUEUE_L, &pkt);
	if (fast != DUALPI2_UNDECIDED) {
		assume(!p.drop_early);
		prove(fast == dualpi2_verdict(&p, &v, &pkt));
	}
	prove(same(&fast_v.c_signal, &v.c_signal));
	prove(same(&fast_v.c_scalable, &v.c_scalable));
	prove(same(&fast_v.l_mark, &v.l_mark));
	prove(same(&fast_v.l_classic, &v.l_classic));
	prove(same(&fast_v.l_drop, &v.l_drop));
}

/* proof: long cvc5 */
void prove_no_signal_is_a_pass(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_derived_vars(&p);
	struct dualpi2_packet pkt = any_packet();
	enum dualpi2_queue queue = pkt.profile <= DUALPI2_C_SCALABLE ?
				   DUALPI2_QUEUE_C : DUALPI2_QUEUE_L;
	u64 sojourn_ns, left_bytes;

	assume(!p.drop_early && !v.base_q32 == !v.coupled_q32);
	assume(left_bytes <= 1ULL << 40);
	assume(dualpi2_no_signal(&p, &v, queue, sojourn_ns, left_bytes));
	/* The input of the native marker. */
	assume(pkt.delay_ns == (p.link.ns_per_byte_q20 ?
				dualpi2_bytes_ns(p.link.ns_per_byte_q20, left_bytes) :
				sojourn_ns));
	prove(dualpi2_verdict(&p, &v, &pkt) == DUALPI2_PASS);
}

/* The DSCP moves packets that ECN leaves in the Classic queue, and only those. */
void prove_nqb_is_for_classic_packets(void)
{
	struct dualpi2_config cfg = any_config();
	enum dualpi2_ecn ecn;
	u32 dscp;

	assume(IN_RANGE(ecn, 0, 3) && dscp < 64);
	if (dualpi2_is_nqb(&cfg, ecn, dscp))
		prove(dualpi2_queue_of_ecn(&cfg, ecn) == DUALPI2_QUEUE_C && ecn != DUALPI2_ECN_ECT1 &&
		      ecn != DUALPI2_ECN_CE);
}

/* More backlog never makes it low, nor fewer L4S packets the native marker able to mark. */
void prove_conditions_of_marks_are_monotonic(void)
{
	struct dualpi2_params p = any_params();
	u64 bytes, more_bytes;
	u32 mtu_bytes, pkts, more_pkts;

	assume(bytes <= more_bytes && pkts <= more_pkts);
	prove(!dualpi2_is_low(more_bytes, mtu_bytes) || dualpi2_is_low(bytes, mtu_bytes));
	prove(!dualpi2_native_ok(&p, pkts) || dualpi2_native_ok(&p, more_pkts));
	prove(!dualpi2_native_ok(&p, 1));
}

/* A packet is treated as its queue's; one that cannot be marked is not, and CE is never dropped as Classic. */
void prove_profile_fits_queue_and_codepoint(void)
{
	struct dualpi2_config cfg = any_config();
	enum dualpi2_profile profile;
	enum dualpi2_queue queue;
	enum dualpi2_ecn ecn;
	bool unmarked;

	assume(unmarked == 0 || unmarked == 1);
	assume(IN_RANGE(ecn, 0, 3) && (queue == DUALPI2_QUEUE_C || queue == DUALPI2_QUEUE_L));
	profile = dualpi2_profile(&cfg, queue, ecn, unmarked);
	prove((profile <= DUALPI2_C_SCALABLE) == (queue == DUALPI2_QUEUE_C));
	if (ecn == DUALPI2_ECN_NOT_ECT)
		prove(profile == DUALPI2_C_DROP || profile == DUALPI2_L_DROP || profile == DUALPI2_L_UNMARKED);
	if (ecn == DUALPI2_ECN_CE)
		prove(profile != DUALPI2_C_DROP && profile != DUALPI2_L_DROP);
	if (cfg.l4s && ecn == DUALPI2_ECN_ECT1 && !unmarked)
		prove(profile == DUALPI2_C_SCALABLE || profile == DUALPI2_L_SCALABLE);
}
