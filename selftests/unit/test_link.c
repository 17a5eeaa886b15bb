// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link downstream of the queues: length and serialization time of packets on it.
 *
 * Expected values come from cell counting and from division in long double, none from the
 * formulas of the header.
 */

#include "link_test.h"

/* ---- lengths ---- */

/* Cell by cell and byte by byte. */
static u64 link_count_bytes(u8 framing, s64 ip, s64 overhead, s64 mpu)
{
	s64 len = ip + overhead, i;
	u64 sent = 0;

	if (len < mpu)
		len = mpu;
	if (len < 1)
		len = 1;
	switch (framing) {
	case DUALPI2_FRAMING_ATM:
		for (i = 0; i < len; i += 48)
			sent += 53;
		return sent;
	case DUALPI2_FRAMING_PTM:
		for (i = 0; i < len; i++)
			sent += i % 64 ? 1 : 2;
		return sent;
	default:
		return len;
	}
}

UNIT_TEST(link_bytes_match_worked_examples)
{
	static const struct {
		u8 framing;
		s32 overhead;
		u32 mpu, ip, want;
	} cases[] = {
		/* Ethernet with preamble, FCS and gap */
		{ DUALPI2_FRAMING_NOATM, 38, 84, 1500, 1538 },
		{ DUALPI2_FRAMING_NOATM, 38, 84, 46, 84 },
		{ DUALPI2_FRAMING_NOATM, 38, 84, 47, 85 },
		{ DUALPI2_FRAMING_NOATM, 38, 84, 20, 84 },
		/* DOCSIS */
		{ DUALPI2_FRAMING_NOATM, 18, 64, 1500, 1518 },
		{ DUALPI2_FRAMING_NOATM, 18, 64, 40, 64 },
		/* PPPoE over ATM with LLC: 40 bytes, 33 cells */
		{ DUALPI2_FRAMING_ATM, 40, 0, 1492, 1696 },
		{ DUALPI2_FRAMING_ATM, 40, 0, 40, 106 },
		/* PPPoA: one cell holds 38 bytes of IP and no more */
		{ DUALPI2_FRAMING_ATM, 10, 0, 38, 53 },
		{ DUALPI2_FRAMING_ATM, 10, 0, 39, 106 },
		/* PPPoE over PTM */
		{ DUALPI2_FRAMING_PTM, 30, 0, 1492, 1546 },
		{ DUALPI2_FRAMING_PTM, 22, 0, 42, 65 },
		{ DUALPI2_FRAMING_PTM, 22, 0, 43, 67 },
		/* less than nothing is a byte */
		{ DUALPI2_FRAMING_NOATM, -64, 0, 20, 1 },
		{ DUALPI2_FRAMING_NOATM, -20, 0, 20, 1 },
		{ DUALPI2_FRAMING_ATM, -64, 0, 20, 53 },
		{ DUALPI2_FRAMING_PTM, -64, 0, 20, 2 },
		{ DUALPI2_FRAMING_NOATM, -14, 256, 269, 256 },
		{ DUALPI2_FRAMING_NOATM, -14, 256, 271, 257 },
	};

	for_each(c, cases) {
		struct dualpi2_link link = link_framed(c->framing, c->overhead, c->mpu);

		CHECK_EQ(dualpi2_link_bytes(&link, c->ip), c->want);
	}
}

UNIT_TEST(link_bytes_of_any_packet_match_counting)
{
	for (int i = 0; i < 20000; i++) {
		u8 framing = unit_between(DUALPI2_FRAMING_NOATM, DUALPI2_FRAMING_PTM);
		s32 overhead = (s32)unit_between(0, DUALPI2_OVERHEAD_MAX - DUALPI2_OVERHEAD_MIN) +
			       DUALPI2_OVERHEAD_MIN;
		u32 mpu = unit_any(0, DUALPI2_MPU_MAX);
		u32 ip = unit_any(0, 9000);
		struct dualpi2_link link = link_framed(framing, overhead, mpu);

		CHECK_EQ(dualpi2_link_bytes(&link, ip),
			 link_count_bytes(framing, ip, overhead, mpu));
	}
}

UNIT_TEST(link_bytes_of_huge_packets_are_bounded)
{
	struct dualpi2_link link = link_framed(DUALPI2_FRAMING_ATM, DUALPI2_OVERHEAD_MAX, 0);
	u32 most = dualpi2_link_bytes(&link, DUALPI2_LINK_BYTES_MAX);

	CHECK_EQ(most, link_count_bytes(DUALPI2_FRAMING_ATM, DUALPI2_LINK_BYTES_MAX,
					DUALPI2_OVERHEAD_MAX, 0));
	CHECK_EQ(dualpi2_link_bytes(&link, U32_MAX), most);
	CHECK_EQ(dualpi2_link_bytes(&link, DUALPI2_LINK_BYTES_MAX + 1), most);
	CHECK(dualpi2_link_bytes(&link, DUALPI2_LINK_BYTES_MAX - 53) < most, "bounded too early");
	link = link_framed(DUALPI2_FRAMING_NOATM, 0, 0);
	CHECK_EQ(dualpi2_link_bytes(&link, U32_MAX), 4194304);
	CHECK_EQ(dualpi2_link_bytes(&link, 4194303), 4194303);
}

/* Each segment with its own headers. */
UNIT_TEST(link_gso_bytes_are_those_of_the_segments)
{
	for (int i = 0; i < 20000; i++) {
		struct dualpi2_link link = link_framed(unit_between(DUALPI2_FRAMING_NOATM,
								    DUALPI2_FRAMING_PTM),
						       (s32)unit_between(0, 320) - 64,
						       unit_any(0, DUALPI2_MPU_MAX));
		u32 header = unit_between(28, 120);
		u32 part = unit_any(1, 9000);
		u32 payload = unit_any(1, 65535);
		u32 left = payload;
		u64 want = 0;

		while (left) {
			u32 now = left < part ? left : part;

			want += dualpi2_link_bytes(&link, header + now);
			left -= now;
		}
		CHECK_EQ(dualpi2_link_gso_bytes(&link, header + payload, header, part), want);
	}
}

/* What a packet says of its own headers need not be so. */
UNIT_TEST(link_gso_bytes_of_lying_headers_are_bounded)
{
	struct dualpi2_link link = link_framed(DUALPI2_FRAMING_NOATM, 0, 0);

	for (u32 ip = 0; ip <= 40; ip++)
		CHECK_EQ(dualpi2_link_gso_bytes(&link, ip, 40, 1000), ip ? ip : 1);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 41, 40, 1000), 41);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 42, 40, 1000), 42);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 65535, 0, 1), 65535);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 65535, 40, 65535), 65535);
	/* 2^26 parts of a byte each, and each at the least length */
	link.mpu_bytes = 256;
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 40 + (1U << 26), 40, 1), 1ULL << 34);
}

/* ---- time of bytes ---- */

UNIT_TEST(link_time_of_a_packet_is_exact)
{
	for (int i = 0; i < 200000; i++) {
		u64 rate = link_any_rate(), bytes = unit_any(1, 65535);
		u64 per_byte = dualpi2_ns_per_byte_q20(rate);
		long double want = link_exact_ns(rate, bytes);
		long double got = dualpi2_bytes_ns(per_byte, bytes);

		CHECK(fabsl(got - want) < 1 + 0.0001L * want,
		      "%llu bytes at %llu bytes/s: %Lf ns, not %Lf",
		      (ull)bytes, (ull)rate, got, want);
		/* To 10 Gbit/s far better. */
		got = (long double)(bytes * per_byte) / (1 << 20);
		CHECK(rate > 1250000000 || fabsl(got - want) < 0.000001L * want,
		      "%llu bytes at %llu bytes/s: %Lf ns, not %Lf",
		      (ull)bytes, (ull)rate, got, want);
	}
	CHECK_EQ(dualpi2_ns_per_byte_q20(0), 0);
	CHECK_EQ(dualpi2_ns_per_byte_q20(1000), 1000000ULL << 20);
	CHECK_EQ(dualpi2_ns_per_byte_q20(1000000000), 1 << 20);
	/* 8388.608 is the time of a byte at 1 Tbit/s, rounded to the nearest */
	CHECK_EQ(dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MAX), 8389);
	CHECK_EQ(dualpi2_ns_per_byte_q20(2000000001), 1 << 19);
}

UNIT_TEST(link_time_of_huge_packets_does_not_wrap)
{
	u64 slowest = dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MIN);

	CHECK_EQ(dualpi2_bytes_ns(slowest, U32_MAX), U32_MAX * 1000000ULL);
	CHECK_EQ(dualpi2_bytes_ns(slowest, UINT64_MAX), U32_MAX * 1000000ULL);
	CHECK_EQ(dualpi2_bytes_ns(slowest, 1ULL << 32), U32_MAX * 1000000ULL);
	CHECK_EQ(dualpi2_bytes_ns(slowest, U32_MAX - 1), (U32_MAX - 1) * 1000000ULL);
}

/* Not only of packets: 50 ms of a queue are 50 ms at any rate. */
UNIT_TEST(link_time_of_a_queue_is_right_at_all_rates)
{
	static const u64 rates[] = { 1250000, 125000000, 1250000000, 12500000000, 80000000000 };

	for_each(rate, rates)
		CHECK_NEAR(dualpi2_bytes_ns(dualpi2_ns_per_byte_q20(*rate),
					    *rate / 20), 50 * MS, 5000);
}

UNIT_TEST(link_bytes_of_a_time_invert_the_time_of_bytes)
{
	for (int i = 0; i < 100000; i++) {
		u64 rate = link_any_rate();
		u64 per_byte = dualpi2_ns_per_byte_q20(rate);
		u64 ns = unit_any(0, (1ULL << 44) - 1);
		long double want = (long double)ns * (1 << 20) / per_byte;

		CHECK_EQ(dualpi2_ns_bytes(per_byte, ns), (u64)want);
	}
}

UNIT_TEST(link_rate_for_reports_is_the_rate)
{
	CHECK_EQ(dualpi2_rate(0), 0);
	CHECK_EQ(dualpi2_rate(1 << 20), 1000000000);	/* 1 ns a byte */
	for (int i = 0; i < 20000; i++) {
		u64 rate = link_any_rate();

		CHECK_NEAR(dualpi2_rate(dualpi2_ns_per_byte_q20(rate)), rate, 1 + rate / 10000);
	}
}

/* ---- configuration ---- */

UNIT_TEST(link_options_reach_the_parameters)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);

	CHECK_EQ(p.link.ns_per_byte_q20, 0);
	CHECK_EQ(p.link.framing, DUALPI2_FRAMING_RAW);
	CHECK_EQ(p.link.ingress, false);
	CHECK_EQ(cfg.nqb, 1ULL << 45);
	CHECK_EQ(cfg.bandwidth, 0);
	CHECK_EQ(cfg.limit_is_set, false);
	cfg.bandwidth = 125000;
	cfg.framing = DUALPI2_FRAMING_ATM;
	cfg.overhead_bytes = -17;
	cfg.mpu_bytes = 99;
	cfg.ingress = true;
	p = unit_params(&cfg);
	CHECK_EQ(p.link.ns_per_byte_q20, 8000ULL << 20);
	CHECK_EQ(p.link.framing, DUALPI2_FRAMING_ATM);
	CHECK(p.link.overhead_bytes == -17, "%d", p.link.overhead_bytes);
	CHECK_EQ(p.link.mpu_bytes, 99);
	CHECK_EQ(p.link.ingress, true);
	/* until the module knows that timers are exact */
	CHECK_EQ(p.link.late_max_ns, DUALPI2_LATE_MAX_NS);
}
