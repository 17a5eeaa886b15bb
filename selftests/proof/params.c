// SPDX-License-Identifier: GPL-2.0-only
/* From the options to the parameters: what the other proofs assume of these. */
#include "proof.h"

/* proof: long cvc5 */
void prove_params_hold_for_all_options(void)
{
	struct dualpi2_config cfg = any_config();
	struct dualpi2_params p;

	assume(!cfg.p_cmax_pct);
	dualpi2_params_init(&p, &cfg);
	prove(params_hold(&p));
}

/* The square root of each p_Cmax, for the default of the rest. */
/* proof: long */
void prove_params_hold_for_each_p_cmax(void)
{
	struct dualpi2_config cfg;
	struct dualpi2_params p;
	u32 pct;

	for (pct = 1; pct <= 100; pct++) {
		dualpi2_config_init(&cfg);
		cfg.p_cmax_pct = pct;
		dualpi2_params_init(&p, &cfg);
		prove(params_hold(&p));
		prove(dualpi2_square_q32(p.enter_q32) >= ONE * pct / 100);
		prove(dualpi2_square_q32(p.enter_q32 - 1) < ONE * pct / 100);
	}
}

void prove_limits_do_not_overflow(void)
{
	struct dualpi2_config cfg = any_config();
	struct dualpi2_link link;
	u32 mtu_bytes, target_ns, pkts;

	assume(link_holds(&link));
	pkts = dualpi2_limit_pkts(&cfg, link.ns_per_byte_q20, target_ns);
	prove(pkts);
	dualpi2_memory_limit_bytes(&cfg, mtu_bytes, link.ns_per_byte_q20, target_ns);
}

void prove_target_rises_on_slow_links_only(void)
{
	struct dualpi2_params p = any_params();
	struct dualpi2_vars v = any_vars(&p);
	struct dualpi2_link link;
	u32 mtu_bytes;

	assume(link_holds(&link));
	dualpi2_set_target(&p, &v, link.ns_per_byte_q20, mtu_bytes);
	prove(v.target_ns >= p.target_ns);
	prove(!v.delay_scale_q32 ? v.target_ns == p.target_ns :
				   v.target_ns > p.target_ns);
}
