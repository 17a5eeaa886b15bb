/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the proofs share: all inputs of the algorithm, and the invariants that its parts
 * rely on.  A local variable without a value stands for each value (CBMC).
 *
 * The proofs are modular.  prove_params_*() shows that PARAMS hold for all options that
 * the parser accepts.  Each function that changes the state is shown to keep VARS, and
 * may assume it.
 */
#ifndef _DUALPI2_PROOF_H
#define _DUALPI2_PROOF_H

#include <net/dualpi2.h>

#define assume(condition)	__CPROVER_assume(condition)
#define prove(condition)	__CPROVER_assert(condition, #condition)

typedef unsigned __CPROVER_bitvector[128] u128;
typedef __CPROVER_bitvector[128] s128;

#define ONE	DUALPI2_ONE_Q32

/* Bytes of the longest packet: GSO packets have at most 8 * 64 KiB (GSO_MAX_SIZE). */
#define PACKET_MAX	(8U << 16)

/* Times of the kernel: 2^62 ns are 146 years after the boot. */
#define NOW_MAX		(1ULL << 62)

#define IN_RANGE(value, min, max)	((s128)(value) >= (min) && (s128)(value) <= (max))

/* A row's range as the parser has it; 0 where another option or nothing decides. */
#define PLAIN_0		0
#define HIDDEN_0	1
#define ALLOWED_0	1
#define KEYWORD_0	1
#define DEFAULT_0	0
#define ASSUME_VALUE(attr, member, min, max, def, kind, zero, ...)		\
	assume(IN_RANGE(cfg.member, min, max) ||				\
	       ((zero##_0 || !(def)) && !cfg.member) || kind##_ANY);
#define ASSUME_CHOICE(attr, member, min, max, ...)				\
	assume(IN_RANGE(cfg.member, min, max));
#define TIME_ANY	0
#define PACKETS_ANY	0
#define BYTES_ANY	0
#define LENGTH_ANY	0
#define RATE_ANY	0
#define GAIN_ANY	0
#define NUMBER_ANY	0
#define PERCENT_ANY	0
#define DSCPS_ANY	1

/* All options that the parser accepts. */
static inline struct dualpi2_config any_config(void)
{
	struct dualpi2_config cfg;

	DUALPI2_OPTIONS(ASSUME_VALUE, ASSUME_CHOICE, DUALPI2_NO_ROW, DUALPI2_NO_ROW)
	DUALPI2_EXT_OPTIONS(ASSUME_VALUE, ASSUME_CHOICE, DUALPI2_NO_ROW, DUALPI2_NO_ROW)
	assume(cfg.limit_is_set == 0 || cfg.limit_is_set == 1);
	assume(cfg.memory_limit_is_set == 0 || cfg.memory_limit_is_set == 1);
	assume(cfg.ramp_is_set == 0 || cfg.ramp_is_set == 1);
	return cfg;
}

static inline bool link_holds(const struct dualpi2_link *l)
{
	return (!l->ns_per_byte_q20 ||
		IN_RANGE(l->ns_per_byte_q20, 8389, 1000000LL << 20)) &&
	       IN_RANGE(l->overhead_bytes, -64, 256) && l->mpu_bytes <= 256 &&
	       l->framing <= DUALPI2_FRAMING_PTM &&
	       l->late_max_ns <= DUALPI2_LATE_MAX_NS;
}

static inline bool params_hold(const struct dualpi2_params *p)
{
	return p->ramp.min_ns <= p->ramp.max_ns &&
	       p->shared_ramp.min_ns <= p->shared_ramp.max_ns &&
	       link_holds(&p->link) &&
	       p->burst_max_ns <= 100U * DUALPI2_NS_PER_MS &&
	       p->step_pkts && p->floor_pkts >= 2 &&
	       IN_RANGE(p->c_weight, 1, 99) && p->l_weight == 100 - p->c_weight &&
	       p->coupling &&
	       p->inv_coupling_q32 && p->inv_coupling_q32 <= ONE &&
	       p->tupdate_ns >= 100U * DUALPI2_NS_PER_US &&
	       p->target_ns >= DUALPI2_NS_PER_US &&
	       p->alpha_gain < 1ULL << 50 && p->beta_gain < 1ULL << 50 &&
	       p->enter_q32 && p->enter_q32 <= ONE &&
	       p->report_ns <= (u64)U32_MAX * DUALPI2_NS_PER_US;
}

static inline void assume_bools(const struct dualpi2_params *p)
{
	assume(p->random == 0 || p->random == 1);
	assume(p->drop_overload == 0 || p->drop_overload == 1);
	assume(p->drop_early == 0 || p->drop_early == 1);
	assume(p->overload_at_once == 0 || p->overload_at_once == 1);
	assume(p->link.ingress == 0 || p->link.ingress == 1);
}

static inline struct dualpi2_params any_params(void)
{
	struct dualpi2_params p;

	assume_bools(&p);
	assume(params_hold(&p));
	return p;
}

/* The credit of an accumulator is -1/2..3/2 (dualpi2_accumulate()). */
static inline bool accumulator_holds(const struct dualpi2_accumulator *s)
{
	return s->credit_q32 >= -(s64)(ONE / 2) &&
	       s->credit_q32 <= (s64)(ONE + ONE / 2);
}

/* The credit of the scheduler, while no packet is longer than max_bytes. */
static inline bool credit_holds(const struct dualpi2_params *p, s32 credit,
				u32 max_bytes)
{
	s64 bytes = max_bytes < DUALPI2_SCHED_BYTES_MAX ?
		    max_bytes : DUALPI2_SCHED_BYTES_MAX;

	return credit >= -bytes * p->l_weight && credit <= bytes * p->c_weight;
}

static inline bool vars_hold(const struct dualpi2_params *p,
			     const struct dualpi2_vars *v)
{
	return v->base_q32 <= ONE && v->classic_q32 <= ONE &&
	       v->coupled_q32 <= ONE &&
	       accumulator_holds(&v->c_signal) &&
	       accumulator_holds(&v->c_scalable) &&
	       accumulator_holds(&v->l_mark) &&
	       accumulator_holds(&v->l_classic) &&
	       accumulator_holds(&v->l_drop) &&
	       credit_holds(p, v->credit, U32_MAX) &&
	       credit_holds(p, v->credit_start, U32_MAX) &&
	       v->updated_ns <= NOW_MAX && v->overload_since_ns <= NOW_MAX &&
	       v->overload_below_ns <= NOW_MAX &&
	       v->overload_last_ns <= NOW_MAX &&
	       v->overload_total_ns <= NOW_MAX;
}

static inline struct dualpi2_vars any_vars(const struct dualpi2_params *p)
{
	struct dualpi2_vars v;

	assume(v.overload == 0 || v.overload == 1);
	assume(v.may_pass == 0 || v.may_pass == 1);
	assume(v.report.begun == 0 || v.report.begun == 1);
	assume(vars_hold(p, &v));
	return v;
}

static inline struct dualpi2_packet any_packet(void)
{
	struct dualpi2_packet pkt;

	assume(pkt.profile >= DUALPI2_C_DROP && pkt.profile <= DUALPI2_L_UNMARKED);
	assume(pkt.native_ok == 0 || pkt.native_ok == 1);
	assume(pkt.low == 0 || pkt.low == 1);
	assume(pkt.shared == 0 || pkt.shared == 1);
	assume(pkt.spared == 0 || pkt.spared == 1);
	assume(pkt.may_drop == 0 || pkt.may_drop == 1);
	return pkt;
}

/* What stands for dualpi2_bytes_ns() where a multiplier is too much: any time, but always the same. */
u64 __CPROVER_uninterpreted_bytes_ns(u64 ns_per_byte_q20, u64 bytes);

u64 any_bytes_ns(u64 ns_per_byte_q20, u64 bytes)
{
	u64 ns = __CPROVER_uninterpreted_bytes_ns(ns_per_byte_q20, bytes);

	assume(ns < 1ULL << 54);
	return ns;
}

#endif /* _DUALPI2_PROOF_H */
