#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Can the unit tests fail? Makes one change at a time to a copy of the algorithm, include/net/dualpi2.h with dualpi2_link.h
# in its place there, builds the tests with it and runs them up to the first failure. A change that no test notices has
# survived, and this script fails; so it does when a change no longer fits the headers, or does not compile.
#
# Usage: mutants.sh [NAME...]	all changes, or those named; two at a time
#
# Not in the list, because nothing can tell them from the original:
# - the cut of long gaps to 2^47 ns, made shorter: it only matters for gaps of hours with the least gains;
# - the factors of the dither's sequence: any good ones will do;
# - DUALPI2_SCHED_BYTES_MAX, made smaller but above 65535;
# - min_t() around a difference that the caller keeps in range.
set -euo pipefail
cd "$(dirname "$0")"

top=$(cd ../.. && pwd)
build=$top/build/unit
work=$build/mutants
header=$work/dualpi2.h

# NAME, tab, literal text that is in the headers exactly once, " => ", its replacement. "\n" and "\t" stand for themselves.
list() {
	grep -v '^$' <<-'EOF'
	gain_fraction_wrong	976710656U + => 976710655U +
	gain_truncated	 + DUALPI2_NS_PER_SEC / 2, => ,
	gain_integer_wrong	(u64)hz256 * 281474U => (u64)hz256 * 281475U
	gain_times_loses_sign	return -(s64)mul_u64_u32_shr => return (s64)mul_u64_u32_shr
	gain_times_shift_wrong	return mul_u64_u32_shr(gain, diff_ns, 24) => return mul_u64_u32_shr(gain, diff_ns, 25)
	square_of_one_overflows	return p_q32 >= DUALPI2_ONE_Q32 ? DUALPI2_ONE_Q32 : => return p_q32 > DUALPI2_ONE_Q32 ? DUALPI2_ONE_Q32 :
	over_k_shift_wrong	inv_coupling_q32 >> 31) => inv_coupling_q32 >> 32)
	us_to_ns_saturates_early	return us > DUALPI2_TIME_MAX_US => return us >= DUALPI2_TIME_MAX_US
	us_to_ns_wraps	us > DUALPI2_TIME_MAX_US ? U32_MAX : us => us
	ns_to_us_wraps	return us > U32_MAX ? U32_MAX : us => return us
	probability_one_reads_zero	return p_q32 > U32_MAX ? U32_MAX : p_q32 => return p_q32
	default_alpha_wrong	DUALPI2_ALPHA_DEF\t\t41U => DUALPI2_ALPHA_DEF\t\t42U
	default_ramp_wrong	DUALPI2_RAMP_PCT_DEF\t\t40U => DUALPI2_RAMP_PCT_DEF\t\t50U
	ramp_setting_ignored	if (cfg->ramp_is_set) => if (0)
	memory_one_mtu	2ULL * mtu_bytes => 1ULL * mtu_bytes
	memory_wraps	if (pair_bytes > U32_MAX || pair_bytes * cfg->limit_pkts > U32_MAX) => if (pair_bytes > U32_MAX)
	memory_setting_ignored	if (cfg->memory_limit_is_set) => if (0)
	ramp_min_wraps	thresh_ns > half_ns ? thresh_ns - half_ns : 0 => thresh_ns - half_ns
	ramp_max_wraps	thresh_ns > U32_MAX - half_ns ?\n => 0 ?\n
	ramp_slope_wrong	DUALPI2_ONE_Q32 << 16, => DUALPI2_ONE_Q32 << 15,
	floor_off_by_one	cfg->min_qlen_step_pkts + 1; => cfg->min_qlen_step_pkts;
	floor_setting_two_ignored	if (cfg->min_qlen_step_pkts >= DUALPI2 => if (cfg->min_qlen_step_pkts > DUALPI2
	floor_default_one	DUALPI2_NATIVE_FLOOR_PKTS\t2U => DUALPI2_NATIVE_FLOOR_PKTS\t1U
	classic_starves	weight < 1 ? 1 : weight > 99 => weight > 99
	l4s_starves	weight > 99 ? 99 : weight => weight
	enter_rounded_down	DUALPI2_ONE_Q32 + cfg->coupling - 1, => DUALPI2_ONE_Q32,
	overload_without_hold	DUALPI2_OVERLOAD_HOLD\t\t8U => DUALPI2_OVERLOAD_HOLD\t\t0U
	overload_ends_at_the_end_of_its_hold	dualpi2_overload_end(v, v->overload_below_ns);\n\t} => dualpi2_overload_end(v, now_ns);\n\t}
	overload_shed_after_its_edge	bool shed = v->base_q32 >= p->enter_q32 => bool shed = v->overload
	start_credit_favours_classic	(s32)p->c_weight - (s32)p->l_weight => (s32)p->l_weight - (s32)p->c_weight
	start_credit_overflows	min_t(u32, mtu_bytes, DUALPI2_SCHED_BYTES_MAX) => mtu_bytes
	base_capped_always	if (!p->drop_overload && v->base_q32 > => if (v->base_q32 >
	base_capped_never	if (!p->drop_overload && v->base_q32 > => if (0 && v->base_q32 >
	classic_linear	v->classic_q32 = dualpi2_square_q32(v->base_q32) => v->classic_q32 = v->base_q32
	coupled_exceeds_one	min_t(u64, v->base_q32 * p->coupling, DUALPI2_ONE_Q32) => v->base_q32 * p->coupling
	overload_enters_late	v->base_q32 >= p->enter_q32, now_ns, => v->base_q32 > p->enter_q32, now_ns,
	overload_below_since_the_last_update	if (!v->overload_below_ns)\n\t\t\tv-> => if (1)\n\t\t\tv->
	p_cmax_ignored	if (cfg->p_cmax_pct) => if (0)
	idle_overload_goes_on	dualpi2_overload_update(p, v, false, empty_ns, now_ns) => dualpi2_overload_update(p, v, v->base_q32 >= p->enter_q32, empty_ns, now_ns)
	idle_overload_ends_late	dualpi2_overload_update(p, v, false, empty_ns, now_ns) => dualpi2_overload_update(p, v, false, now_ns, now_ns)
	report_storm	if (p->report_ns && now_ns < r->quiet_until_ns) => if (0)
	report_begin_twice	r->begun = v->overload && p->report_ns; => ;
	report_begin_while_off_is_lost	r->begun = v->overload && p->report_ns; => r->begun = v->overload;
	report_quiet_time_outlasts_change	v->report.quiet_until_ns = min_t(u64, v->report.quiet_until_ns,\n\t\t\t\t\t now_ns + to->report_ns); => ;
	report_of_what_ended_while_off	if (!from->report_ns)\n\t\tdualpi2_report_next => if (0)\n\t\tdualpi2_report_next
	report_end_forgets_others	.count = v->overload_count - r->count => .count = 1
	overload_not_counted	v->overload_count++; => ;
	overload_time_not_summed	v->overload_total_ns += v->overload_last_ns => v->overload_total_ns = v->overload_last_ns
	reset_keeps_overload	\tif (v->overload)\n\t\tdualpi2_overload_end(v, v->overload_below_ns ?: now_ns); => \t;
	overload_present_not_reported	v->overload_total_ns + dualpi2_overload_present_ns(v, now_ns) => v->overload_total_ns
	pi_proportional_reversed	(s64)cur_ns - v->delay_ns); => (s64)v->delay_ns - cur_ns);
	pi_proportional_by_alpha	dualpi2_gain_times(p->beta_gain => dualpi2_gain_times(p->alpha_gain
	pi_integral_unscaled	size = mul_u64_u32_shr(size, ratio, 16); => ;
	pi_below_zero_wraps	sum < 0 ? 0 : min_t => sum < 0 ? DUALPI2_ONE_Q32 : min_t
	pi_narrowed_before_clamp	min_t(u64, sum, DUALPI2_ONE_Q32); => (u32)sum;
	pi_not_clamped	min_t(u64, sum, DUALPI2_ONE_Q32); => (u64)sum;
	pi_delay_narrowed	u32 cur_ns = min_t(u64, delay_ns, U32_MAX) => u32 cur_ns = delay_ns
	pi_previous_delay_stale	v->delay_ns = cur_ns; => ;
	pi_late_cap_doubled	(8U << 16) => (16U << 16)
	pi_idle_integral_overflows	size = min_t(u64, size, 1ULL << 44); => ;
	pi_due_late	return now_ns >= v->due_ns; => return now_ns > v->due_ns;
	ratio_wraps_on_long_gaps	elapsed_ns = min_t(u64, elapsed_ns, 1ULL << 47); => ;
	ratio_of_target	div_u64(elapsed_ns << 16, p->tupdate_ns) => div_u64(elapsed_ns << 16, p->target_ns)
	pi_update_uncapped	dualpi2_ratio(p, v, now_ns, DUALPI2_LATE_MAX_RATIO) => dualpi2_ratio(p, v, now_ns, U32_MAX)
	pi_idle_capped	dualpi2_ratio(p, v, now_ns, U32_MAX) => dualpi2_ratio(p, v, now_ns, DUALPI2_LATE_MAX_RATIO)
	spacer_misses_first_at_one	if (p_q32 >= DUALPI2_ONE_Q32)\n\t\treturn true => if (p_q32 > DUALPI2_ONE_Q32)\n\t\treturn true
	spacer_signals_at_zero	if (!p_q32)\n\t\treturn false; => ;
	spacer_ignores_random	if (random)\n => if (0)\n
	spacer_random_off_by_one	return rnd < p_q32 => return rnd <= p_q32
	spacer_keeps_credit	s->credit_q32 -= (s64)DUALPI2_ONE_Q32; => ;
	spacer_loses_credit	s->credit_q32 -= (s64)DUALPI2_ONE_Q32; => s->credit_q32 = 0;
	spacer_dither_one_way	(s32)s->dither_q32 < => s->dither_q32 <
	spacer_dither_narrow	(s32)s->dither_q32 < => ((s32)s->dither_q32 >> 2) <
	spacer_without_dither	s->credit_q32 + (s32)s->dither_q32 < => s->credit_q32 <
	spacer_dither_is_time	s->dither_q32 * 1664525U + 1013904223U + rnd => 0
	l4s_off_still_scalable_in_l	return cfg->l4s && (ecn == DUALPI2_ECN_ECT1 => return (ecn == DUALPI2_ECN_ECT1
	l4s_off_ect1_marked_in_l	(ecn == DUALPI2_ECN_ECT1 && !cfg->l4s)) => 0)
	unmarked_ignored	if (unmarked)\n => if (0)\n
	ect1_classic_in_c	if (cfg->l4s)\n\t\treturn DUALPI2_C_SCALABLE; => ;
	l4s_off_ect1_marked_in_c	return ecn == DUALPI2_ECN_ECT1 ? DUALPI2_C_DROP : => return 0 ? DUALPI2_C_DROP :
	l4s_off_still_classified	return cfg->l4s && (ecn & cfg->ecn_mask) => return (ecn & cfg->ecn_mask)
	native_floor_off_by_one	return l_pkts >= p->floor_pkts => return l_pkts > p->floor_pkts
	native_step_off_by_one	return l_pkts > p->step_pkts => return l_pkts >= p->step_pkts
	native_step_marks_at_threshold	if (delay_ns <= ramp->min_ns) => if (delay_ns < ramp->min_ns)
	native_never_certain	if (delay_ns >= ramp->max_ns)\n\t\treturn DUALPI2_ONE_Q32; => ;
	low_off_by_one	return backlog_bytes < 2ULL * => return backlog_bytes <= 2ULL *
	low_follows_jumbo	min_t(u32, mtu_bytes,\n\t\t\t\t\t    DUALPI2_LOW_MTU_BYTES) => mtu_bytes
	last_packet_dropped	return pkt->may_drop &&\n => return 1 &&\n
	mark_uses_drop_bits	p->random, pkt->rnd >> 32) => p->random, (u32)pkt->rnd)
	c_signal_while_low	if (pkt->low || !v->base_q32) => if (!v->base_q32)
	c_scalable_shares_account	&v->c_scalable, => &v->c_signal,
	c_overload_drop_also_marks	if (shed)\n\t\treturn DUALPI2_PASS;\n\tif (pkt->profile == DUALPI2_C_DROP) => if (pkt->profile == DUALPI2_C_DROP)
	c_overload_not_shed	if (shed && dualpi2_hit_drop(p, pkt, &v->c_signal => if (0 && dualpi2_hit_drop(p, pkt, &v->c_signal
	c_mark_drops	pkt->profile == DUALPI2_C_DROP)\n => pkt->profile <= DUALPI2_C_MARK)\n
	c_drop_linear	if (pkt->profile == DUALPI2_C_DROP)\n\t\treturn dualpi2_hit_drop(p, pkt, &v->c_signal, v->classic_q32) => if (pkt->profile == DUALPI2_C_DROP)\n\t\treturn dualpi2_hit_drop(p, pkt, &v->c_signal, v->coupled_q32)
	l_coupled_while_low	pkt->low ? 0 : v->coupled_q32 => v->coupled_q32
	l_native_ignores_floor	native_q32 = pkt->native_ok ? => native_q32 = 1 ?
	l_native_at_dequeue	native_q32 = pkt->native_ok ? => native_q32 = dualpi2_native_ok(p, pkt->l_pkts) ?
	l_without_coupling	max_t(u64, native_q32, coupled_q32) => native_q32
	l_sum_not_max	max_t(u64, native_q32, coupled_q32) => native_q32 + coupled_q32
	l_overload_not_shed	if (shed && dualpi2_hit_drop(p, pkt, &v->l_drop => if (0 && dualpi2_hit_drop(p, pkt, &v->l_drop
	l_overload_shed_linear	&v->l_drop, v->classic_q32) => &v->l_drop, v->coupled_q32)
	l_drop_shares_account_with_marks	&v->l_drop, => &v->l_mark,
	l_unmarked_marked	if (!l_q32 || pkt->profile == DUALPI2_L_UNMARKED) => if (!l_q32)
	l_classic_linear	l_q32 = dualpi2_over_k_square_q32(p, l_q32); => ;
	l_mark_origin_swapped	return native_q32 > coupled_q32 => return native_q32 < coupled_q32
	l_mark_shares_account_with_classic	&v->l_classic, l_q32) ?\n\t       DUALPI2_MARK_CLASSIC => &v->l_mark, l_q32) ?\n\t       DUALPI2_MARK_CLASSIC
	l_drop_marks	pkt->profile == DUALPI2_L_DROP) => pkt->profile == DUALPI2_L_UNMARKED)
	hist_octave_off_by_one	dualpi2_highest_bit(number); => dualpi2_highest_bit(number) + 1;
	hist_carry_lost	\t\thigh[bucket]++; => \t\t;
	hist_beyond_counted_twice	return false;\n\t}\n\td->beyond++;\n\treturn true; => return false;\n\t}\n\td->beyond++;\n\treturn false;
	hist_watch_too_high	d->watch_ns = min_t(u64, delay_ns, last_ns) => d->watch_ns = delay_ns
	hist_end_off_by_one	DUALPI2_HIST_OCTAVES) - 1; => DUALPI2_HIST_OCTAVES);
	hist_generation_kept	u32 generation = d->generation + 1; => u32 generation = d->generation;
	hist_unit_rounded_down	__fls(us * DUALPI2_NS_PER_US - 1) + 1 => __fls(us * DUALPI2_NS_PER_US)
	sqrt_rounded_down	return dualpi2_square_q32(root) < p_q32 ? root + 1 : root; => return root;
	shed_although_forbidden	p->drop_overload &&\n\t\t    !pkt->low; => !pkt->low;
	shed_while_low	p->drop_overload &&\n\t\t    !pkt->low; => p->drop_overload;
	shed_without_overload	bool shed = v->base_q32 >= p->enter_q32 && => bool shed =
	c_scalable_treated_as_l	pkt->profile <= DUALPI2_C_SCALABLE ? => pkt->profile < DUALPI2_C_SCALABLE ?
	pick_favours_classic	return c_waits && v->credit > 0 ? => return c_waits && v->credit >= 0 ?
	pick_ignores_empty_l	if (!l_waits)\n\t\treturn DUALPI2_QUEUE_C; => ;
	pick_ignores_empty_c	return c_waits && v->credit > 0 ? => return v->credit > 0 ?
	charge_l_weight_wrong	v->credit += len * p->c_weight => v->credit += len * p->l_weight
	charge_c_weight_wrong	v->credit -= len * p->l_weight => v->credit -= len * p->c_weight
	charge_overflows	s32 len = min_t(u32, bytes, DUALPI2_SCHED_BYTES_MAX) => s32 len = bytes
	credit_anew_while_classic_waits	if (!other_left && !l_left) => if (!l_left)
	credit_kept_while_l4s_is_empty	if (!other_left && !l_left) => if (!l_left && !c_left)
	charge_without_waiting_classic	return other_left; => return true;
	last_classic_packet_not_charged	? l_left : c_left; => ? l_left && c_left : c_left;
	link_cell_not_rounded_up	return (len + 47) / 48 * 53; => return len / 48 * 53;
	link_ptm_without_last	return len + (len + 63) / 64; => return len + len / 64;
	link_overhead_unsigned	s64 bytes = (s64)min_t(u32, ip_bytes, DUALPI2_LINK_BYTES_MAX) + => u32 bytes = (s64)min_t(u32, ip_bytes, DUALPI2_LINK_BYTES_MAX) +
	link_mpu_ignored	max_t(s64, bytes, link->mpu_bytes ?: 1) => max_t(s64, bytes, 1)
	link_gso_headers_once	whole * dualpi2_link_bytes(link, header_bytes + part_bytes) => whole * dualpi2_link_bytes(link, part_bytes)
	link_gso_last_forgotten	whole = (payload - 1) / part_bytes; => whole = payload / part_bytes;
	clock_fraction_lost	c->frac_q20 = time_q20 & ((1U << 20) - 1); => c->frac_q20 = 0;
	clock_idle_credit	c->next_ns = now_ns;\n} => ;\n}
	clock_waits_too_long	return now_ns < c->next_ns; => return now_ns <= c->next_ns;
	clock_late_not_made_up_for	c->next_ns = now_ns - DUALPI2_LATE_MAX_NS; => c->next_ns = now_ns;
	clock_late_without_bound	c->next_ns = now_ns - DUALPI2_LATE_MAX_NS; => ;
	clock_change_stalls	c->next_ns = min_t(u64, c->next_ns, now_ns + wait_ns); => ;
	clock_change_bursts	else if (!from->ns_per_byte_q20) => else if (0)
	clock_change_of_other_options	if (to->ns_per_byte_q20 == from->ns_per_byte_q20)\n\t\treturn; => ;
	ingress_pays_all_at_once	paid_ns = min_t(u64, c->owed_ns, own_ns / 2); => paid_ns = c->owed_ns;
	ingress_never_pays	c->owed_ns -= paid_ns; => ;
	ingress_without_bound	c->owed_ns = min_t(u64, owed_ns, DUALPI2_OWED_MAX_NS); => c->owed_ns = owed_ns;
	egress_owes	if (link->ingress)\n => if (1)\n
	drain_counts_pauses	d->busy_ns += now_ns - d->since_ns;\n\td->since_ns = 0; => d->busy_ns += now_ns - d->since_ns;
	drain_never_forgets	d->busy_ns -= d->busy_ns / 4; => ;
	drain_known_rate_drifts	if (d->busy_bytes == d->known_bytes) => if (!d->busy_bytes)
	burst_longer_than_bound_counts	\t    run_bytes > b->most_bytes) => \t    0)
	burst_never_ends	if (now_ns - b->last_ns <= b->gap_ns) { => if (1) {
	burst_flood_without_end	if (b->run_bytes > b->most_bytes) {\n => if (0) {\n
	burst_tolerance_does_not_decay	b->mean_ns = (7ULL * b->mean_ns + div64_u64(b->sum, b->sum_bytes)) / 8; => b->mean_ns = max_t(u32, b->mean_ns, div64_u64(b->sum, b->sum_bytes));
	ramp_not_moved_by_bursts	dualpi2_ramp_init(&v->ramp, burst_ns, => dualpi2_ramp_init(&v->ramp, p->ramp.min_ns,
	limit_setting_ignored	if (cfg->limit_is_set || !cfg->bandwidth) => if (!cfg->bandwidth)
	nqb_takes_ect1	!(ecn & DUALPI2_ECN_ECT1) && => 1 &&
	nqb_limit_without_rate	return DUALPI2_NQB_BYTES_DEF; => return DUALPI2_NQB_BYTES_MIN;
	quiet_ignores_p	p->drop_early || !v->base_q32 ? => p->drop_early || 1 ?
	quiet_ignores_the_step_in_packets	!v->base_q32 && p->step_pkts == U32_MAX ? => !v->base_q32 ?
	quiet_beyond_the_ramp	silent_ns + 1ULL : 0; => silent_ns + 2ULL : 0;
	quiet_ignores_what_is_behind	left_bytes * p->link.ns_per_byte_q20 >> 20 < quiet_ns); => 1);
	quiet_not_moved_by_bursts	v->shared_ramp = v->ramp;\n\t}\n\tdualpi2_set_quiet(p, v); => v->shared_ramp = v->ramp;\n\t}
	hist_short_hides_the_maximum	min_t(u64, delay_ns, d->first_ns - 1) + 1 => d->first_ns
	hist_short_from_zero	.short_ns = 1, => .short_ns = 0,
	hist_new_octave_too_low	number |= d->first_ns; => ;
	update_is_never_due_again	v->due_ns = v->updated_ns + p->tupdate_ns; => ;
	EOF
}

# Replace text, which must be there exactly once, in standard input.
mutate() {
	python3 -c 'import sys
old, new = (text.replace(r"\n", "\n").replace(r"\t", "\t") for text in sys.argv[1].split(" => "))
source = sys.stdin.read()
sys.exit(f"fits the header {source.count(old)} times") if source.count(old) != 1 else None
sys.stdout.write(source.replace(old, new))' "$1"
}

# one change: prints its name and "killed" and by what, or the opposite
try() {
	local name=$1 change=$2 dir=$work/$1
	mkdir -p "$dir/net"
	if ! mutate "$change" <"$header" >"$dir/net/dualpi2.h" 2>"$dir/errors"; then
		echo "$name: STALE, $(tail -1 "$dir/errors")"
	elif ! gcc -std=gnu11 -O1 -w -DUNIT_WITHOUT_EXTRA -Iinclude -I"$dir" -I"$build" -o "$dir/unit" unit.c -lm 2>"$dir/errors"; then
		echo "$name: STALE, does not compile"
	elif timeout 60 "$dir/unit" -x >"$dir/log" 2>&1; then
		echo "$name: SURVIVED"
	else
		echo "$name: killed by $(sed -n 's/^not ok [0-9]* - //p' "$dir/log")"
	fi
	rm -f "$dir/unit"
}

main() {
	local name change results
	rm -rf "$work"
	mkdir -p "$work"
	sed -e '/^#include <net\/dualpi2_link.h>$/{' -e "r $top/include/net/dualpi2_link.h" -e 'd;}' \
		"$top/include/net/dualpi2.h" >"$header"
	results=$work/results
	: >"$results"
	try original "#ifndef _NET_DUALPI2_H => #ifndef _NET_DUALPI2_H" >"$work/original.result"
	if ! grep -q SURVIVED "$work/original.result"; then
		echo "$0: the tests do not pass with the header as it is; run \"make check\"" >&2
		return 1
	fi
	while IFS=$'\t' read -r name change; do
		[[ $# -eq 0 || " $* " == *" $name "* ]] || continue
		[[ $(jobs -rp | wc -l) -lt 2 ]] || wait -n
		try "$name" "$change" | tee -a "$results" &
	done < <(list)
	wait
	echo "# killed:$(grep -c ': killed' "$results") of $(wc -l <"$results")"
	! grep -v ': killed' "$results"
}

main "$@"
