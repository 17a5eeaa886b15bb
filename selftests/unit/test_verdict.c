// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verdicts: RFC 9332 A.1 figure 5 with 2.5.1.1, that is, by profile:
 *
 *		below overload			in overload
 *   C_DROP	drop p_C			drop p_C
 *   C_MARK	mark p_C			drop p_C
 *   C_SCALABLE	mark p_CL		R18 R29	drop p_C, mark rest p_CL
 *   L_SCALABLE	mark max(native, p_CL)	R25	drop p_C, mark rest max(...)
 *   L_MARK	mark (max(...)/k)^2	R26	drop p_C
 *   L_DROP	drop (max(...)/k)^2	R28	drop p_C
 *   L_UNMARKED	-			R27	drop p_C
 *
 * with no Classic and no coupled signal, and no overload drop, while the queues
 * are low, and no drop of the last packet in a queue.  The native marker is
 * silent unless the packet found another one in its queue when it joined
 * (native_ok).  Without drop_overload p'
 * ends at 1/k and the left column holds.
 */

#include "verdict_test.h"

static const char *const verdict_profiles[] = {
	"C_DROP", "C_MARK", "C_SCALABLE", "L_SCALABLE", "L_MARK", "L_DROP",
	"L_UNMARKED",
};

#define VERDICT_PROFILES	ARRAY_SIZE(verdict_profiles)
#define VERDICTS		6

/* number of signals of one accumulator against the sum of p, see test_accumulator.c */
#define VERDICT_BOUND		1.5

/* One situation; all packets alike. */
struct verdict_case {
	struct dualpi2_config cfg;
	enum dualpi2_profile profile;
	double base;		/* p' */
	double native;		/* probability of the native marker */
	u64 delay_ns;		/* that leads to it */
	bool native_ok;
	bool low;
	bool may_drop;
	u32 l_pkts;
};

/* Probability of each verdict, by the table above. */
static void verdict_expect(const struct verdict_case *c, double *want)
{
	double k = c->cfg.coupling, base = c->base, p_c, p_cl, native, p_l;
	bool overload = base * k >= 1;
	bool shed;

	if (overload && !c->cfg.drop_overload)
		base = 1 / k;
	shed = overload && c->cfg.drop_overload && !c->low;
	p_c = c->low ? 0 : base * base;
	p_cl = c->low ? 0 : fmin(base * k, 1);
	native = c->native_ok ? c->native : 0;
	p_l = fmax(native, p_cl);

	memset(want, 0, VERDICTS * sizeof(*want));
	if (shed && c->may_drop)
		want[DUALPI2_DROP_OVERLOAD] = p_c;
	switch (c->profile) {
	case DUALPI2_C_DROP:
		if (!shed && c->may_drop)
			want[DUALPI2_DROP_AQM] = p_c;
		break;
	case DUALPI2_C_MARK:
		if (!shed)
			want[DUALPI2_MARK_CLASSIC] = p_c;
		break;
	case DUALPI2_C_SCALABLE:
		want[DUALPI2_MARK_COUPLED] = p_cl * (1 - want[DUALPI2_DROP_OVERLOAD]);
		break;
	case DUALPI2_L_SCALABLE:
		want[native > p_cl ? DUALPI2_MARK_NATIVE : DUALPI2_MARK_COUPLED] =
			p_l * (1 - want[DUALPI2_DROP_OVERLOAD]);
		break;
	case DUALPI2_L_MARK:
		if (!shed)
			want[DUALPI2_MARK_CLASSIC] = p_l * p_l / k / k;
		break;
	case DUALPI2_L_DROP:
		if (!shed && c->may_drop)
			want[DUALPI2_DROP_AQM] = p_l * p_l / k / k;
		break;
	case DUALPI2_L_UNMARKED:
		break;
	}
	want[DUALPI2_PASS] = 1;
	for (unsigned int i = 0; i < VERDICTS; i++)
		if (i != DUALPI2_PASS)
			want[DUALPI2_PASS] -= want[i];
	if (want[DUALPI2_PASS] < 0.000001)	/* 0, rounded */
		want[DUALPI2_PASS] = 0;
}

static void verdict_check(const struct verdict_case *c, unsigned int pkts)
{
	unsigned int got[VERDICTS] = { 0 }, decided = 0, i;
	struct dualpi2_params p = unit_params(&c->cfg);
	struct dualpi2_vars v = unit_vars(&p);
	double want[VERDICTS];

	v.base_q32 = c->base * ONE;
	dualpi2_vars_derive(&p, &v, 0);
	for (i = 0; i < pkts; i++) {
		struct dualpi2_packet pkt = {
			.profile = c->profile,
			.native_ok = c->native_ok,
			.low = c->low,
			.may_drop = c->may_drop,
			.l_pkts = c->l_pkts,
			.delay_ns = c->delay_ns,
			.rnd = unit_rnd(),
		};
		unsigned int verdict = verdict_both(&p, &v, &pkt, &decided);

		CHECK(verdict < VERDICTS, "verdict %u", verdict);
		got[verdict]++;
	}

	verdict_expect(c, want);
	for (i = 0; i < VERDICTS; i++) {
		double mean = want[i] * pkts;
		/* recur: 1 + D for each of the two spacers; random: 6 sigma, for there are
		 * thousands of checks, and some more, since small means are not normal. Ramp and
		 * squares are within 10^-5.
		 */
		double tol = (c->cfg.signal == DUALPI2_SIGNAL_RANDOM ?
			      6 * sqrt(mean * (1 - want[i])) + 4 : 2 * VERDICT_BOUND) +
			     pkts * 0.00001;

		if (want[i] == 0 || want[i] == 1)
			tol = 0;
		CHECK(fabs(got[i] - mean) <= tol,
		      "%s: verdict %u %u times of %u, want %.1f +- %.1f: k %u p' %.3f native %.2f l_pkts %u%s%s%s%s",
		      verdict_profiles[c->profile], i, got[i], pkts, mean, tol,
		      c->cfg.coupling, c->base, c->native, c->l_pkts,
		      c->native_ok ? " native_ok" : "", c->low ? " low" : "",
		      c->may_drop ? " may_drop" : "",
		      c->cfg.drop_overload ? " drop_overload" : "");
	}
}

/* A width of 2^20 ns makes each ns 2^-20. */
UNIT_TEST(verdict_ramp_is_exact)
{
	struct dualpi2_ramp ramp;

	dualpi2_ramp_init(&ramp, 1000, 1000 + (1 << 20));
	for (u64 ns = 0; ns <= 1 << 20; ns += 1 << 10)
		CHECK_EQ(dualpi2_ramp_q32(&ramp, 1000 + ns), ns << 12);
}

static void verdict_table(enum dualpi2_signal_mode signal)
{
	/* delay, probability of the default ramp 800..1200 us */
	static const struct { u64 ns; double p; } natives[] = {
		{ 0, 0 }, { 800000, 0 }, { 840000, 0.1 }, { 1000000, 0.5 },
		{ 1160000, 0.9 }, { 1200000, 1 }, { 10 * MS, 1 },
	};
	/* p' times k, so that 1 is overload */
	static const double bases[] = {
		0, 0.0625, 0.25, 0.625, 0.875, 1, 1.125, 1.5,
	};
	static const u32 couplings[] = { 1, 2, 3, 4, 16 };

	for (unsigned int profile = 0; profile < VERDICT_PROFILES; profile++)
	for_each(coupling, couplings)
	for_each(base, bases)
	for_each(native, natives)
	for (unsigned int flags = 0; flags < 32; flags++) {
		struct verdict_case c = {
			.cfg = unit_config(),
			.profile = profile,
			.base = *base / *coupling,
			.native = native->p,
			.delay_ns = native->ns,
			.native_ok = flags & 1,
			.low = flags & 2,
			.may_drop = flags & 4,
			.l_pkts = flags & 16 ? 2 : 1,
		};

		c.cfg.signal = signal;
		c.cfg.coupling = *coupling;
		c.cfg.drop_overload = flags & 8;
		if (c.base > 1)		/* k = 1 */
			continue;
		/* 1/3 in binary is below 1/3 */
		if (*base == 1 && *coupling == 3)
			c.base = 0.333333333721384;
		verdict_check(&c, 200);
	}
}

UNIT_TEST(verdict_every_profile_evenly_spaced_follows_rfc)
{
	verdict_table(DUALPI2_SIGNAL_RECUR);
}

UNIT_TEST(verdict_every_profile_random_follows_rfc)
{
	verdict_table(DUALPI2_SIGNAL_RANDOM);
}

/* The same with more packets for the rates that matter most. */
UNIT_TEST(verdict_rates_over_many_packets_are_exact)
{
	static const double bases[] = { 0.03, 0.1, 0.354, 0.49, 0.5, 0.577, 1 };

	for (unsigned int profile = 0; profile < VERDICT_PROFILES; profile++)
	for_each(base, bases)
	for (unsigned int signal = 0; signal < 2; signal++) {
		struct verdict_case c = {
			.cfg = unit_config(),
			.profile = profile,
			.base = *base,
			.native_ok = true,
			.native = 0.25,
			.delay_ns = 900000,
			.may_drop = true,
			.l_pkts = 3,
		};

		c.cfg.signal = signal;
		verdict_check(&c, 40000);
	}
}

/* Invariants of any state and any packet. */
UNIT_TEST(verdict_any_packet_obeys_the_rules)
{
	for (int i = 0; i < 2000; i++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;

		cfg.coupling = unit_any(1, 255);
		cfg.signal = unit_rnd() & 1;
		cfg.drop_overload = unit_rnd() & 1;
		if (unit_rnd() & 1)
			cfg.step_thresh_pkts = unit_any(0, 10);
		p = unit_params(&cfg);
		v = unit_vars(&p);
		for (int j = 0; j < 200; j++) {
			struct dualpi2_packet pkt;
			enum dualpi2_verdict got;
			unsigned int decided = 0;
			u64 native;
			bool over;

			if (unit_rnd() % 4 == 0) {
				v.base_q32 = unit_any_q32();
				if (unit_rnd() & 1)
					v.base_q32 /= cfg.coupling;
				dualpi2_vars_derive(&p, &v, j);
			}
			memset(&pkt, 0, sizeof(pkt));
			pkt.profile = unit_rnd() % VERDICT_PROFILES;
			pkt.native_ok = unit_rnd() & 1;
			pkt.low = unit_rnd() & 1;
			pkt.may_drop = unit_rnd() & 1;
			pkt.l_pkts = unit_any(1, 20);
			pkt.delay_ns = unit_any(0, 3 * MS);
			pkt.rnd = unit_rnd();
			got = verdict_both(&p, &v, &pkt, &decided);
			native = pkt.native_ok ? dualpi2_native_q32(&p, &p.ramp, pkt.delay_ns,
								    pkt.l_pkts) : 0;
			over = v.base_q32 >= p.enter_q32 && cfg.drop_overload && !pkt.low;

			switch (got) {
			case DUALPI2_PASS:
				CHECK(pkt.profile != DUALPI2_L_SCALABLE ||
				      (native < ONE &&
				       (pkt.low || v.coupled_q32 < ONE)),
				      "not marked at probability 1");
				break;
			case DUALPI2_MARK_CLASSIC:
				CHECK(pkt.profile == DUALPI2_C_MARK ||
				      pkt.profile == DUALPI2_L_MARK, "%s",
				      verdict_profiles[pkt.profile]);
				CHECK(!over, "Classic mark in overload");
				CHECK(!pkt.low || native, "mark while low");
				break;
			case DUALPI2_MARK_COUPLED:
				CHECK(pkt.profile == DUALPI2_C_SCALABLE ||
				      pkt.profile == DUALPI2_L_SCALABLE, "%s",
				      verdict_profiles[pkt.profile]);
				CHECK(!pkt.low && v.base_q32, "coupled at 0");
				break;
			case DUALPI2_MARK_NATIVE:
				CHECK(pkt.profile == DUALPI2_L_SCALABLE, "%s",
				      verdict_profiles[pkt.profile]);
				CHECK(pkt.native_ok && native, "native at 0");
				break;
			case DUALPI2_DROP_AQM:
				CHECK(pkt.profile == DUALPI2_C_DROP ||
				      pkt.profile == DUALPI2_L_DROP, "%s",
				      verdict_profiles[pkt.profile]);
				CHECK(pkt.may_drop && !over, "drop");
				CHECK(!pkt.low || native, "drop while low");
				break;
			case DUALPI2_DROP_OVERLOAD:
				CHECK(pkt.may_drop && over, "overload drop");
				break;
			default:
				CHECK(false, "verdict %u", got);
			}
		}
	}
}

/* R25: whatever the native marker says from packet to packet, a scalable packet
 * is marked at least as often as k * p' demands.
 */
UNIT_TEST(verdict_l4s_marks_are_never_below_the_coupling)
{
	static const u32 couplings[] = { 1, 2, 4, 9 };

	for_each(coupling, couplings) {
		struct dualpi2_params p = unit_params_k(*coupling);
		struct dualpi2_vars v = unit_vars(&p);
		long double want = 0, least = 0;
		u64 marks = 0;

		for (unsigned int n = 0; n < 100000; n++) {
			struct dualpi2_packet pkt = {
				.profile = DUALPI2_L_SCALABLE,
				.may_drop = true,
				.l_pkts = 1,
			};
			enum dualpi2_verdict verdict;
			u64 native;

			pkt.native_ok = unit_rnd() % 8;
			pkt.delay_ns = unit_between(0, 1300000);
			pkt.rnd = unit_rnd();
			if (n % 100 == 0) {
				v.base_q32 = unit_between(0, p.enter_q32 - 1);
				dualpi2_vars_derive(&p, &v, n);
			}
			native = pkt.native_ok ?
				 dualpi2_native_q32(&p, &p.ramp, pkt.delay_ns, 1) : 0;
			verdict = dualpi2_verdict(&p, &v, &pkt);
			CHECK(verdict == DUALPI2_PASS || verdict == DUALPI2_MARK_NATIVE ||
			      verdict == DUALPI2_MARK_COUPLED, "%u", verdict);
			marks += verdict != DUALPI2_PASS;
			/* p = 1 is signalled without an entry in the account */
			least += *coupling * (long double)v.base_q32 / ONE;
			want += fmaxl(native, *coupling * (long double)v.base_q32) / ONE;
			CHECK(marks >= least - VERDICT_BOUND, "%llu marks, %.2Lf",
			      (ull)marks, least);
			CHECK(fabsl(marks - want) <= VERDICT_BOUND, "%llu, %.2Lf",
			      (ull)marks, want);
		}
	}
}

/* R9: ECT(0) is marked as often as Not-ECT is dropped, in one account. */
UNIT_TEST(verdict_classic_mix_marks_and_drops_alike)
{
	unsigned int n;

	for (unsigned int signal = 0; signal < 2; signal++) {
		u64 marks = 0, drops = 0, ect = 0, not_ect = 0;
		struct dualpi2_params p = UNIT_PARAMS(cfg.signal = signal);
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = 0.4 * ONE;
		dualpi2_vars_derive(&p, &v, 0);
		for (n = 0; n < 200000; n++) {
			struct dualpi2_packet pkt = { .may_drop = true };
			enum dualpi2_verdict verdict;

			pkt.profile = unit_rnd() & 1 ? DUALPI2_C_DROP : DUALPI2_C_MARK;
			pkt.rnd = unit_rnd();
			verdict = dualpi2_verdict(&p, &v, &pkt);
			ect += pkt.profile == DUALPI2_C_MARK;
			not_ect += pkt.profile == DUALPI2_C_DROP;
			marks += verdict == DUALPI2_MARK_CLASSIC;
			drops += verdict == DUALPI2_DROP_AQM;
		}
		CHECK(fabs((double)marks / ect - 0.16) < 0.006, "%llu of %llu",
		      (ull)marks, (ull)ect);
		CHECK(fabs((double)drops / not_ect - 0.16) < 0.006,
		      "%llu of %llu", (ull)drops, (ull)not_ect);
		if (!signal)
			CHECK(fabs(marks + drops - 0.16 * n) <= VERDICT_BOUND + 0.001, "%llu",
			      (ull)(marks + drops));
	}
}

/* R4, R30: a mix of all in overload; every kind loses p_C, C and L alike, and
 * scalable survivors are marked.  Trap 2: drop and mark are independent, so the
 * survivors are marked at p_CL, not more or less.
 */
UNIT_TEST(verdict_overload_drops_all_alike_and_marks_survivors)
{
	/* with a p_Cmax so small that p_CL is below 1 at some of these p' */
	static const double bases[] = { 0.5, 0.5774, 0.8, 0.36, 0.45 };

	for (unsigned int signal = 0; signal < 2; signal++)
	for_each(base, bases) {
		u64 seen[VERDICT_PROFILES] = { 0 };
		u64 drops[VERDICT_PROFILES] = { 0 };
		u64 marks[VERDICT_PROFILES] = { 0 };
		double p_c = *base * *base;
		double p_cl = fmin(2 * *base, 1);
		struct dualpi2_params p = UNIT_PARAMS(cfg.signal = signal, cfg.p_cmax_pct = 10);
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = *base * ONE;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK(v.overload, "not in overload");
		for (unsigned int n = 0; n < 140000; n++) {
			struct dualpi2_packet pkt = {
				.may_drop = true,
				.l_pkts = 1,
			};
			enum dualpi2_verdict verdict;

			pkt.profile = unit_rnd() % VERDICT_PROFILES;
			pkt.rnd = unit_rnd();
			verdict = dualpi2_verdict(&p, &v, &pkt);
			seen[pkt.profile]++;
			drops[pkt.profile] += verdict == DUALPI2_DROP_OVERLOAD;
			marks[pkt.profile] += verdict == DUALPI2_MARK_COUPLED;
			CHECK(verdict == DUALPI2_PASS || verdict == DUALPI2_DROP_OVERLOAD ||
			      verdict == DUALPI2_MARK_COUPLED, "%u", verdict);
		}
		for (unsigned int i = 0; i < VERDICT_PROFILES; i++) {
			u64 rest = seen[i] - drops[i];
			bool scalable = i == DUALPI2_C_SCALABLE || i == DUALPI2_L_SCALABLE;
			double want = scalable ? p_cl : 0;

			CHECK(fabs((double)drops[i] / seen[i] - p_c) < 0.02,
			      "%s: %llu of %llu dropped, p_C %.3f",
			      verdict_profiles[i], (ull)drops[i], (ull)seen[i], p_c);
			CHECK(fabs((double)marks[i] / rest - want) <
			      (want == 1 || want == 0 ? 0.000000001 :
			       signal ? 0.02 : 2 * VERDICT_BOUND / rest),
			      "%s: %llu of %llu survivors marked",
			      verdict_profiles[i], (ull)marks[i], (ull)rest);
		}
	}
}

/* Trap 2 in random mode: P(mark) among neighbours of drops is P(mark), and one
 * packet's drop and mark draw on different bits.
 */
UNIT_TEST(verdict_random_drop_and_mark_use_independent_bits)
{
	struct dualpi2_params p = UNIT_PARAMS(cfg.signal = DUALPI2_SIGNAL_RANDOM);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = 0.45 * ONE;
	dualpi2_vars_derive(&p, &v, 0);
	for (int i = 0; i < 10000; i++) {
		struct dualpi2_packet drop = {
			.profile = DUALPI2_C_DROP,
			.may_drop = true,
			.rnd = unit_rnd(),
		}, mark = drop;
		u64 other = (u64)(u32)unit_rnd();
		bool dropped, marked;

		dropped = dualpi2_verdict(&p, &v, &drop) == DUALPI2_DROP_AQM;
		mark.profile = DUALPI2_C_MARK;
		marked = dualpi2_verdict(&p, &v, &mark) == DUALPI2_MARK_CLASSIC;
		/* another high half: same drop; another low half: same mark */
		drop.rnd = (u32)drop.rnd | other << 32;
		mark.rnd = (mark.rnd >> 32 << 32) | other;
		CHECK_EQ(dualpi2_verdict(&p, &v, &drop) == DUALPI2_DROP_AQM, dropped);
		CHECK_EQ(dualpi2_verdict(&p, &v, &mark) == DUALPI2_MARK_CLASSIC, marked);
	}
}

/* No queue's signals spend another's account: each kind's total stays within
 * the bound although all kinds come mixed.
 */
UNIT_TEST(verdict_mixed_traffic_keeps_separate_accounts)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	/* C Classic, C scalable, L scalable, L Classic */
	double want[4] = { 0 }, got[4] = { 0 };

	v.base_q32 = 0.3 * ONE;
	dualpi2_vars_derive(&p, &v, 0);
	for (int n = 0; n < 100000; n++) {
		static const int kinds[] = { 0, 0, 1, 2, 3, 3, -1 };
		static const double probs[] = { 0.09, 0.6, 0.6, 0.09 };
		struct dualpi2_packet pkt = { .may_drop = true, .l_pkts = 1 };
		bool hit;
		int kind;

		pkt.profile = unit_rnd() % VERDICT_PROFILES;
		pkt.rnd = unit_rnd();
		hit = dualpi2_verdict(&p, &v, &pkt) != DUALPI2_PASS;
		kind = kinds[pkt.profile];
		if (kind < 0) {
			CHECK(!hit, "\"leave unmarked\" was not left alone");
			continue;
		}
		want[kind] += probs[kind];
		got[kind] += hit;
		CHECK(fabs(got[kind] - want[kind]) <= VERDICT_BOUND + 0.001, "kind %d: %f, %f",
		      kind, got[kind], want[kind]);
	}
}

/* RFC 9332 A.1, Linux note: the length is tested when a packet joins, so that
 * the last one of a burst may be marked, which is alone when it leaves, and a
 * lone one never is, whatever came after it.
 */
UNIT_TEST(verdict_native_mark_depends_on_length_at_enqueue_only)
{
	for (unsigned int ok = 0; ok < 2; ok++)
	for (u32 l_pkts = 1; l_pkts <= 1000; l_pkts += l_pkts < 8 ? 1 : 99)
	for (unsigned int profile = DUALPI2_L_SCALABLE; profile <= DUALPI2_L_DROP; profile++) {
		struct dualpi2_packet pkt = {
			.profile = profile,
			.native_ok = ok,
			.may_drop = true,
			.l_pkts = l_pkts,
			.delay_ns = 2 * MS,
		};
		/* so that (1/k)^2 is 1 */
		struct dualpi2_params p = unit_params_k(1);
		struct dualpi2_vars v = unit_vars(&p);

		CHECK((dualpi2_verdict(&p, &v, &pkt) != DUALPI2_PASS) == ok,
		      "%s: native_ok %u, l_pkts %u", verdict_profiles[profile], ok, l_pkts);
	}
}

/* While low, or before the last packet, nothing is collected for later. */
UNIT_TEST(verdict_exempt_packets_leave_no_debt)
{
	struct dualpi2_params p = unit_params_k(2);

	for (unsigned int profile = 0; profile < VERDICT_PROFILES; profile++)
	for (unsigned int low = 0; low < 2; low++) {
		struct dualpi2_vars v = unit_vars(&p);
		struct dualpi2_packet pkt = {
			.profile = profile,
			.low = low,
			.may_drop = low,
			.l_pkts = 1,
		};
		bool drops = profile == DUALPI2_C_DROP || profile == DUALPI2_L_DROP;

		if (!low && !drops)
			continue;
		v.base_q32 = 0.4 * ONE;
		dualpi2_vars_derive(&p, &v, 0);
		for (unsigned int n = 0; n < 1000; n++) {
			pkt.rnd = unit_rnd();
			CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
		}
		/* 0.16 a packet: not before the sixth; 0.8: not the first */
		pkt.low = false;
		pkt.may_drop = true;
		CHECK_EQ(dualpi2_verdict(&p, &v, &pkt), DUALPI2_PASS);
	}
}

/* p'^2 is 0 below 2^-16, p_CL is not. */
UNIT_TEST(verdict_of_a_small_p_prime_marks_scalable_packets)
{
	struct dualpi2_params p = unit_params_k(255);
	struct dualpi2_vars v = unit_vars(&p);
	struct dualpi2_packet pkt = { .profile = DUALPI2_C_SCALABLE };
	u64 marks = 0;

	v.base_q32 = 0xffff;
	dualpi2_vars_derive(&p, &v, 0);
	v.due_ns = 0;		/* any time */
	CHECK_EQ(v.classic_q32, 0);
	for (int n = 0; n < 10000; n++)
		marks += dualpi2_verdict(&p, &v, &pkt) == DUALPI2_MARK_COUPLED;
	CHECK_NEAR(marks, 39, 2);
}
