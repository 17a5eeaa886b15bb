// SPDX-License-Identifier: GPL-2.0-only
/* dualpi2_verdict_fast(), the verdict of the fast path on a loaded link. */

#include "verdict_test.h"

/* Drops are all that the fast path of a loaded link leaves to the slow one, out of overload. */
UNIT_TEST(verdict_fast_decides_all_but_drops)
{
	static const enum dualpi2_profile profiles[] = {
		DUALPI2_C_DROP, DUALPI2_C_MARK, DUALPI2_L_SCALABLE,
	};
	struct dualpi2_params p = UNIT_PARAMS(cfg.bandwidth = 5000000);

	for_each(profile, profiles) {
		unsigned int decided = 0, drops = 0, marks = 0;
		struct dualpi2_vars v = unit_vars(&p);

		v.base_q32 = ONE / 10;
		dualpi2_vars_derive(&p, &v, 0);
		for (int n = 0; n < 10000; n++) {
			const struct dualpi2_packet pkt = {
				.profile = *profile, .may_drop = true, .rnd = unit_rnd(),
				.native_ok = true, .l_pkts = 2, .delay_ns = n % 1000 * 1000,
				.shared = n / 1000 % 2,
			};
			enum dualpi2_verdict verdict = verdict_both(&p, &v, &pkt, &decided);

			drops += verdict == DUALPI2_DROP_AQM;
			marks += verdict > DUALPI2_PASS && verdict < DUALPI2_DROP_AQM;
		}
		CHECK_EQ(decided, 10000 - drops);
		CHECK(drops + marks > 90, "%u drops, %u marks", drops, marks);
	}
}

/* A short Classic backlog, random bits that are 0, random signals, and a high p_Cmax. */
UNIT_TEST(verdict_fast_decides_rare_cases)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	struct dualpi2_packet pkt = { .profile = DUALPI2_C_MARK, .low = true };
	unsigned int decided = 0;

	v.base_q32 = ONE / 10;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK_EQ(verdict_both(&p, &v, &pkt, &decided), DUALPI2_PASS);
	pkt = (struct dualpi2_packet) {
		.profile = DUALPI2_L_SCALABLE, .native_ok = true, .l_pkts = 2, .delay_ns = 10 * MS,
	};
	CHECK_EQ(verdict_both(&p, &v, &pkt, &decided), DUALPI2_MARK_NATIVE);
	/* Random signals are decided only where there are none. */
	p = UNIT_PARAMS(cfg.signal = DUALPI2_SIGNAL_RANDOM);
	v = unit_vars(&p);
	pkt.delay_ns = 0;
	CHECK_EQ(verdict_both(&p, &v, &pkt, &decided), DUALPI2_PASS);
	pkt.delay_ns = 10 * MS;
	CHECK_EQ(decided, 3);
	CHECK_EQ(verdict_both(&p, &v, &pkt, &decided), DUALPI2_MARK_NATIVE);
	CHECK_EQ(decided, 3);
	/* p_CL is 1 before overload. */
	p = UNIT_PARAMS(cfg.coupling = 4, cfg.p_cmax_pct = 25);
	v = unit_vars(&p);
	v.base_q32 = ONE / 10 * 4;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK_EQ(v.coupled_q32, ONE);
	pkt = (struct dualpi2_packet) { .profile = DUALPI2_C_DROP, .may_drop = true };
	CHECK_EQ(verdict_both(&p, &v, &pkt, &decided), DUALPI2_PASS);
	CHECK_EQ(decided, 4);
}
