// SPDX-License-Identifier: GPL-2.0-only
/* Units, fixed-point formats, the link. */
#include "proof.h"

void prove_us_to_ns_saturates(void)
{
	u32 us;

	prove(dualpi2_us_to_ns(us) == ((u64)us * 1000 > U32_MAX ? U32_MAX : us * 1000U));
}

/* proof: long cvc5 */
void prove_ns_to_us_saturates(void)
{
	u64 ns, us = dualpi2_ns_to_us(ns);

	prove(us == U32_MAX ? ns / 1000 >= U32_MAX : us * 1000 <= ns && ns < (us + 1) * 1000);
}

/* proof: long cvc5 */
void prove_square_is_within_one_unit(void)
{
	u64 p_q32, square;

	assume(p_q32 <= ONE);
	square = dualpi2_square_q32(p_q32);
	prove(square <= p_q32);
	prove((u128)square << 32 <= (u128)p_q32 * p_q32);
	prove(((u128)square + 1) << 32 > (u128)p_q32 * p_q32);
}

void prove_gain_times_is_bounded(void)
{
	u64 gain;
	s64 diff_ns, change;

	assume(gain < 1ULL << 50);
	assume(diff_ns >= -(s64)U32_MAX && diff_ns <= (s64)U32_MAX);
	change = dualpi2_gain_times(gain, diff_ns);
	prove(change > -(1LL << 58) && change < 1LL << 58);
	prove(diff_ns < 0 ? change <= 0 : change >= 0);
}

void prove_ns_per_byte_is_in_range(void)
{
	u64 rate;
	u64 q20;

	assume(IN_RANGE(rate, DUALPI2_BANDWIDTH_MIN, DUALPI2_BANDWIDTH_MAX));
	q20 = dualpi2_ns_per_byte_q20(rate);
	prove(q20 >= 8389 && q20 <= 1000000ULL << 20);
}

void prove_times_and_lengths_fit(void)
{
	struct dualpi2_link link;
	u64 bytes, ns;
	u32 mtu_bytes;

	assume(link_holds(&link));
	prove(dualpi2_bytes_ns(link.ns_per_byte_q20, bytes) < 1ULL << 54);
	assume(link.ns_per_byte_q20);
	prove(dualpi2_nqb_bytes(link.ns_per_byte_q20, mtu_bytes) <= S32_MAX);
	assume(ns < 1ULL << 44);
	dualpi2_ns_bytes(link.ns_per_byte_q20, ns);
}

void prove_link_bytes_are_in_range(void)
{
	struct dualpi2_link link;
	u32 ip_bytes, bytes;

	assume(link_holds(&link));
	bytes = dualpi2_link_bytes(&link, ip_bytes);
	prove(bytes >= 1 && bytes <= 1U << 24);
	prove(bytes >= link.mpu_bytes);
}

/* proof: long cvc5 */
void prove_gso_bytes_do_not_overflow(void)
{
	struct dualpi2_link link;
	u32 ip_bytes, header_bytes, part_bytes;
	u64 bytes;

	assume(link_holds(&link));
	assume(part_bytes && ip_bytes <= PACKET_MAX && header_bytes <= PACKET_MAX &&
	       part_bytes <= PACKET_MAX);
	bytes = dualpi2_link_gso_bytes(&link, ip_bytes, header_bytes, part_bytes);
	prove(bytes >= 1 && bytes < 1ULL << 44);
}

void prove_reported_rate_is_in_range(void)
{
	u64 ns_per_byte_q20, rate;

	assume(!ns_per_byte_q20 || IN_RANGE(ns_per_byte_q20, 8389, 1000000LL << 20));
	rate = dualpi2_rate(ns_per_byte_q20);
	prove(ns_per_byte_q20 ? IN_RANGE(rate, 1000, 125000000000LL) : !rate);
}

void prove_reported_probability_saturates(void)
{
	u64 p_q32;

	assume(p_q32 <= ONE);
	prove(dualpi2_q32_to_u32(p_q32) == (p_q32 < ONE ? p_q32 : U32_MAX));
}
