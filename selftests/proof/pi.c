// SPDX-License-Identifier: GPL-2.0-only
/* The PI controller, the probabilities, overload. */
#include "proof.h"

static void prove_probabilities(const struct dualpi2_params *p, const struct dualpi2_vars *v)
{
	prove(v->base_q32 <= ONE);
	prove(v->classic_q32 == dualpi2_square_q32(v->base_q32));
	prove(v->coupled_q32 == (v->base_q32 * p->coupling > ONE ?
				 ONE : v->base_q32 * p->coupling));
}

void prove_step_keeps_p_within_0_and_1(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 delay_ns;
	u32 ratio;

	/* Longer ratios come with a delay of 0, see prove_idle_time_only_lowers_p(). */
	assume(ratio <= DUALPI2_LATE_MAX_RATIO);
	dualpi2_pi_step(&p, &v, delay_ns, ratio);
	prove(v.base_q32 <= ONE);
}

/* proof: long cvc5 */
void prove_probabilities_follow_from_p(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 now_ns;

	assume(v.updated_ns <= now_ns && v.overload_since_ns <= now_ns);
	assume(v.overload_below_ns <= now_ns && now_ns <= NOW_MAX / 2);
	assume(v.overload_total_ns <= NOW_MAX / 2 && v.overload_count < NOW_MAX);
	dualpi2_vars_derive(&p, &v, now_ns);
	prove_probabilities(&p, &v);
	prove(vars_hold(&p, &v));
	prove(v.base_q32 < p.enter_q32 || v.overload);
	prove(p.drop_overload || v.base_q32 <= p.enter_q32);
}

void prove_idle_time_only_lowers_p(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 before_q32 = v.base_q32;
	u32 ratio;

	dualpi2_pi_step(&p, &v, 0, ratio);
	prove(v.base_q32 <= before_q32);
}

void prove_ratio_is_bounded(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 now_ns;
	u32 max_ratio;

	assume(v.updated_ns <= now_ns && now_ns <= NOW_MAX);
	prove(dualpi2_ratio(&p, &v, now_ns, max_ratio) <= max_ratio);
}

/* With the default gains each product is exact and rounded toward 0, so that a step differs
 * from exact arithmetic by less than two units of 2^-32.
 */
static void prove_product(u64 gain)
{
	s64 diff_ns;
	u128 exact;

	assume(diff_ns >= -(s64)U32_MAX && diff_ns <= (s64)U32_MAX);
	exact = (u128)gain * (diff_ns < 0 ? -diff_ns : diff_ns) >> 24;
	prove(dualpi2_gain_times(gain, diff_ns) == (diff_ns < 0 ? -(s64)exact : (s64)exact));
}

/* proof: long cvc5 */
void prove_product_with_default_alpha_is_exact(void)
{
	prove_product(dualpi2_gain(DUALPI2_ALPHA_DEF));
}

/* proof: long cvc5 */
void prove_product_with_default_beta_is_exact(void)
{
	prove_product(dualpi2_gain(DUALPI2_BETA_DEF));
}

void prove_reports_count_each_overload_once(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	struct dualpi2_overload_report report;
	enum dualpi2_report kind;
	u64 now_ns, reported = v.report.count;

	assume(v.report.count <= v.overload_count && v.overload_count <= NOW_MAX);
	assume(!v.overload || v.report.count < v.overload_count);
	assume(v.report.total_ns <= v.overload_total_ns && v.overload_total_ns <= NOW_MAX / 2);
	assume(now_ns <= NOW_MAX / 2);
	kind = dualpi2_report_next(&p, &v, now_ns, &report);
	prove(v.report.count <= v.overload_count);
	prove(kind == DUALPI2_REPORT_NONE || report.count);
	prove(kind != DUALPI2_REPORT_END || v.report.count == reported + report.count);
	prove(kind != DUALPI2_REPORT_BEGIN || v.report.count == reported);
}

/* What the proofs of these functions allow. */
void any_step(const struct dualpi2_params *p, struct dualpi2_vars *v, u64 delay_ns, u32 ratio)
{
	u64 base_q32;

	prove(ratio <= DUALPI2_LATE_MAX_RATIO || !delay_ns);
	assume(base_q32 <= ONE && (delay_ns || base_q32 <= v->base_q32));
	v->base_q32 = base_q32;
	v->delay_ns = delay_ns;
}

u32 any_ratio(const struct dualpi2_params *p, const struct dualpi2_vars *v, u64 now_ns, u32 max_ratio)
{
	u32 ratio;

	prove(v->updated_ns <= now_ns && now_ns <= NOW_MAX);
	assume(ratio <= max_ratio);
	return ratio;
}

void any_probabilities(const struct dualpi2_params *p, struct dualpi2_vars *v)
{
	u64 base_q32, classic_q32, coupled_q32;

	prove(v->base_q32 <= ONE && v->updated_ns <= NOW_MAX);
	assume(base_q32 == v->base_q32 || (!p->drop_overload && base_q32 == p->enter_q32 && base_q32 < v->base_q32));
	assume(p->drop_overload || base_q32 <= p->enter_q32);
	assume(classic_q32 <= ONE && coupled_q32 <= ONE);
	v->base_q32 = base_q32;
	v->classic_q32 = classic_q32;
	v->coupled_q32 = coupled_q32;
	v->due_ns = v->updated_ns + p->tupdate_ns;
}

/* The state of overload at a time. */
static void assume_overload(const struct dualpi2_vars *v, u64 now_ns)
{
	assume(v->updated_ns <= now_ns && v->overload_since_ns <= now_ns && now_ns <= NOW_MAX / 2);
	assume(v->overload_below_ns <= now_ns && v->overload_last_ns <= now_ns);
	assume(v->overload_total_ns <= NOW_MAX / 2 && v->overload_count < NOW_MAX);
}

/* proof: dualpi2_pi_step:any_step dualpi2_ratio:any_ratio dualpi2_probabilities:any_probabilities */
void prove_update_keeps_the_invariants(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p), before = v;
	u64 delay_ns, now_ns;

	assume_overload(&v, now_ns);
	dualpi2_pi_update(&p, &v, delay_ns, now_ns);
	prove(vars_hold(&p, &v));
	prove(v.updated_ns == now_ns && !dualpi2_pi_is_due(&v, now_ns));
	prove(v.overload == (v.base_q32 >= p.enter_q32) || before.overload);
	prove(dualpi2_overload_may_begin(&before, delay_ns, now_ns) || (!v.overload && v.base_q32 < p.enter_q32));
}

/* proof: long dualpi2_pi_step:any_step dualpi2_ratio:any_ratio dualpi2_probabilities:any_probabilities */
void prove_idle_time_keeps_the_invariants(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p), before = v;
	u64 now_ns;

	assume_overload(&v, now_ns);
	assume(dualpi2_pi_is_due(&v, now_ns) && v.due_ns == v.updated_ns + p.tupdate_ns);
	assume(v.overload_below_ns <= v.updated_ns);
	dualpi2_pi_idle(&p, &v, now_ns);
	prove(vars_hold(&p, &v));
	prove(v.base_q32 <= before.base_q32 && v.updated_ns == now_ns && !v.delay_ns);
	prove(!v.overload || before.overload);
	prove(now_ns - before.updated_ns < (u64)p.tupdate_ns * (DUALPI2_OVERLOAD_HOLD + 1) || !v.overload);
}

/* proof: long */
void prove_reset_begins_without_signals(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 now_ns;
	u32 mtu_bytes;

	assume_overload(&v, now_ns);
	dualpi2_vars_init(&p, &v, mtu_bytes, now_ns);
	prove(vars_hold(&p, &v));
	prove(!v.base_q32 && !v.classic_q32 && !v.coupled_q32 && !v.overload && v.credit == v.credit_start);
}

/* A report is never later than the new time after a change, nor are two nearer than that. */
void prove_reports_keep_their_distance(void)
{
	struct dualpi2_params from = any_params(), to = any_params();
	struct dualpi2_vars v = any_vars(&from);
	struct dualpi2_overload_report report;
	u64 now_ns, wait_ns;

	assume_overload(&v, now_ns);
	assume(v.report.count <= v.overload_count && v.report.total_ns <= v.overload_total_ns);
	assume(v.report.next_ns <= now_ns + from.report_ns);
	dualpi2_report_change(&from, &to, &v, now_ns);
	prove(v.report.next_ns <= now_ns + to.report_ns);
	wait_ns = dualpi2_report_wait_ns(&to, &v, now_ns);
	prove(wait_ns <= to.report_ns);
	prove(!wait_ns || to.report_ns);
	if (dualpi2_report_next(&to, &v, now_ns, &report) != DUALPI2_REPORT_NONE)
		prove(v.report.next_ns == now_ns + to.report_ns);
}

/* Overload that is there goes on; a new one needs the delay of so many packets, or one just before. */
void prove_overload_begins_with_a_long_delay(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	u64 delay_ns, now_ns;
	bool may;

	assume_overload(&v, now_ns);
	may = dualpi2_overload_may_begin(&v, delay_ns, now_ns);
	prove(may || (!v.overload && v.packet_ns));
	prove(!may || v.overload || !v.packet_ns || v.overload_count ||
	      (delay_ns >= (u64)v.packet_ns * DUALPI2_OVERLOAD_PKTS && v.packet_ns != U32_MAX));
}
