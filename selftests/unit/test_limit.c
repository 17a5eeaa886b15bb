// SPDX-License-Identifier: GPL-2.0-only
/* Limits that follow from the link rate: of NQB traffic, of packets and of memory. */

#include "link_test.h"

UNIT_TEST(nqb_is_what_the_list_says_and_not_l4s)
{
	static const u64 masks[] = {
		0, 1ULL << 45, 1, 1ULL << 63, UINT64_MAX, 0x0123456789abcdefULL,
	};

	for_each(row, masks)
	for (u32 mask = 1; mask <= 3; mask++)
	for (u32 l4s = 0; l4s < 2; l4s++)
	for (u32 ecn = 0; ecn < 4; ecn++)
	for (u32 dscp = 0; dscp < 64; dscp++) {
		struct dualpi2_config cfg = unit_config();
		bool want = *row >> dscp & 1;

		cfg.nqb = *row;
		cfg.ecn_mask = mask;
		cfg.l4s = l4s;
		/* ECT(1), CE, and whatever is in L anyway */
		want &= !(ecn & 1) && !(l4s && ecn == 2 && mask & 2);
		CHECK_EQ(dualpi2_is_nqb(&cfg, ecn, dscp), want);
	}
}

static u32 nqb_of(u64 rate, u32 mtu_bytes)
{
	return dualpi2_nqb_bytes(dualpi2_ns_per_byte_q20(rate), mtu_bytes);
}

UNIT_TEST(nqb_limit_is_ten_milliseconds_of_the_rate)
{
	CHECK_EQ(nqb_of(5000000, 1514), 50000);
	CHECK_NEAR(nqb_of(302900, 1514), 3029, 1);
	CHECK_NEAR(nqb_of(DUALPI2_BANDWIDTH_MAX, 1514), 1250000000, 125000);
	CHECK_EQ(dualpi2_nqb_bytes(1 << 20, 1514), 10000000);	/* 1 ns a byte */
	/* A link that was seen may be faster than any that can be set. */
	CHECK_EQ(dualpi2_nqb_bytes(1, 1514), INT32_MAX);
	for (int i = 0; i < 20000; i++) {
		u64 rate = link_any_rate(), want = rate / 100;
		u32 mtu = unit_between(68, 9018);

		want = want < 2 * mtu ? 2 * mtu : want;
		CHECK_NEAR(nqb_of(rate, mtu), want, 1 + want / 10000);
	}
}

/* Two packets have room at any rate, those with a VLAN tag and jumbo frames, too. */
UNIT_TEST(nqb_limit_has_room_for_two_packets_of_the_mtu)
{
	static const struct { u32 mtu, want; } rows[] = {
		{ 1, 10 }, { 68, 136 }, { 1514, 3028 }, { 1518, 3036 },
		{ 9014, 18028 }, { 65550, 131100 },
		{ 1073741823, 2147483646 }, { 1073741824, 2147483646 },
		{ INT32_MAX, 2147483646 }, { U32_MAX, 2147483646 },
	};

	for_each(row, rows) {
		CHECK_EQ(nqb_of(1000, row->mtu), row->want);
		CHECK_EQ(dualpi2_nqb_bytes(1, row->mtu), INT32_MAX);
	}
	CHECK_EQ(nqb_of(302800, 1514), 3028);
	CHECK_EQ(nqb_of(303600, 1518), 3036);
}

/* 0, and the module has the delay of the L4S queue decide. */
UNIT_TEST(nqb_limit_without_a_rate_is_none)
{
	CHECK_EQ(dualpi2_nqb_bytes(0, 1), 0);
	CHECK_EQ(dualpi2_nqb_bytes(0, 1514), 0);
	CHECK_EQ(dualpi2_nqb_bytes(0, U32_MAX), 0);
}

/* Limits as the module gets them: of a shaper, or of a rate that was seen. */
struct limits {
	u32 pkts;
	u32 memory;
};

static struct limits limits_of(const struct dualpi2_config *cfg, u64 rate,
			       u32 mtu_bytes, u32 target_ns)
{
	u64 ns_per_byte_q20 = dualpi2_ns_per_byte_q20(rate);

	return (struct limits) {
		dualpi2_limit_pkts(cfg, ns_per_byte_q20, target_ns),
		dualpi2_memory_limit_bytes(cfg, mtu_bytes, ns_per_byte_q20, target_ns),
	};
}

UNIT_TEST(limit_of_a_shaper_follows_its_rate)
{
	static const struct {
		u64 rate;
		u32 target_ms, pkts, memory, memory_9014;
	} cases[] = {
		/* 256 pairs of the MTU, 1000 packets */
		{ 1000, 15, 1000, 775168, 4615168 },
		{ 125000, 15, 1000, 775168, 4615168 },
		{ 256000, 15, 1000, 775168, 4615168 },
		/* 250 ms: 64075 bytes are 1001 packets */
		{ 256300, 15, 1001, 775168, 4615168 },
		{ 1550336, 15, 6056, 775168, 4615168 },
		{ 1550340, 15, 6056, 775170, 4615168 },
		{ 5000000, 15, 19531, 2500000, 4615168 },
		{ 50000000, 15, 195312, 25000000, 25000000 },
		/* from 67 MB/s up, 16 MiB */
		{ 67108000, 15, 262140, 33554000, 33554000 },
		{ 67108864, 15, 262144, 33554432, 33554432 },
		{ 80000000, 15, 262144, 33554432, 33554432 },
		{ 500000000, 15, 262144, 33554432, 33554432 },
		/* from 559 MB/s up, twice the target */
		{ 1000000000, 15, 468750, 60000000, 60000000 },
		/* at any rate, where the target is above 125 ms */
		{ 5000000, 125, 19531, 2500000, 4615168 },
		{ 5000000, 126, 19687, 2520000, 4615168 },
		{ 5000000, 1000, 156250, 20000000, 20000000 },
		{ 1000000000, 4000, 125000000, U32_MAX, U32_MAX },
		{ 8000, 4000, 1000, 775168, 4615168 },
		{ 80000, 4000, 10000, 1280000, 4615168 },
	};

	for_each(c, cases) {
		struct dualpi2_config cfg = unit_config();
		u32 target_ns = c->target_ms * MS;
		struct limits got;

		cfg.bandwidth = c->rate;
		/* Times of a byte are rounded, to 2^-20 ns. */
		got = limits_of(&cfg, cfg.bandwidth, 1514, target_ns);
		CHECK_NEAR(got.pkts, c->pkts, c->pkts / 1000000);
		CHECK_NEAR(got.memory, c->memory, c->memory / 1000000);
		got = limits_of(&cfg, cfg.bandwidth, 9014, target_ns);
		CHECK_NEAR(got.memory, c->memory_9014, c->memory_9014 / 1000000);
	}
}

/* Without a shaper a rate that was seen raises the limits and never lowers them. */
UNIT_TEST(limit_without_a_shaper_is_raised_by_the_rate)
{
	static const struct {
		u64 rate;
		u32 target_ms, pkts, memory;
	} cases[] = {
		{ 0, 15, 10000, 30280000 },
		{ 1000, 15, 10000, 30280000 },
		{ 125000000, 15, 58593, 30280000 },
		/* 640 kB in 30 ms are 10000 packets */
		{ 21333333, 15, 10000, 30280000 },
		{ 21335500, 15, 10001, 30280000 },
		/* 60 ms are 30.28 MB at 504.7 MB/s */
		{ 504000000, 15, 236250, 30280000 },
		{ 1000000000, 15, 468750, 60000000 },
		{ 1000000000, 1, 31250, 30280000 },
		{ 0, 4000, 10000, 30280000 },
		{ 100000000000, 4000, U32_MAX, U32_MAX },
	};

	for_each(c, cases) {
		struct dualpi2_config cfg = unit_config();
		struct limits got = limits_of(&cfg, c->rate, 1514, c->target_ms * MS);

		CHECK_NEAR(got.pkts, c->pkts, 1 + c->pkts / 10000);
		CHECK_NEAR(got.memory, c->memory, c->memory / 10000);
		if (c->pkts == 10000)
			CHECK_EQ(got.pkts, 10000);
		if (c->memory == 30280000)
			CHECK_EQ(got.memory, 30280000);
	}
}

/* What the user says counts, with a shaper and without. */
UNIT_TEST(limit_given_by_the_user_is_kept)
{
	static const u64 rates[] = { 0, 1000, 5000000, 125000000000 };

	for (int shaped = 0; shaped < 2; shaped++)
	for_each(rate, rates) {
		struct dualpi2_config cfg = unit_config();
		u32 pkts;

		cfg.bandwidth = shaped ? *rate : 0;
		pkts = limits_of(&cfg, *rate, 1514, 15 * MS).pkts;
		/* memory alone: packets as before */
		cfg.memory_limit_is_set = true;
		cfg.memory_limit_bytes = 77;
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).memory, 77);
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).pkts, pkts);
		/* both */
		cfg.limit_is_set = true;
		cfg.limit_pkts = 3;
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).memory, 77);
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).pkts, 3);
		/* packets alone: two MTU of memory for each */
		cfg.memory_limit_is_set = false;
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).pkts, 3);
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).memory, 3 * 2 * 1514);
		cfg.limit_pkts = U32_MAX;
		CHECK_EQ(limits_of(&cfg, *rate, 1514, 15 * MS).memory, U32_MAX);
	}
}

/* 15 ms in packets of 1514 bytes, whose memory is 2304 bytes in most drivers and
 * counts as two MTU here, do not fill the queues, or p' would never rise.
 */
UNIT_TEST(limit_at_10_and_100_gbit_has_room_for_the_target)
{
	static const u64 rates[] = { 1250000000, 12500000000 };

	for (int shaped = 0; shaped < 2; shaped++)
	for_each(rate, rates) {
		struct dualpi2_config cfg = unit_config();
		u64 pkts = *rate * 15 / 1000 / 1514;
		struct limits got;

		cfg.bandwidth = shaped ? *rate : 0;
		got = limits_of(&cfg, *rate, 1514, 15 * MS);
		CHECK(got.pkts > pkts, "%u packets, 15 ms are %llu", got.pkts, (ull)pkts);
		CHECK(got.memory > pkts * 3028, "%u bytes, 15 ms are %llu",
		      got.memory, (ull)pkts * 3028);
		/* 24 ns of 1 s, at most, are lost to the rounding of the rate */
		CHECK(got.pkts <= *rate * 3 / 100 / 64 * 1.0001, "%u packets", got.pkts);
	}
}

/* By the definition, in long double. */
UNIT_TEST(limit_of_any_rate_target_and_mtu_does_not_wrap)
{
	for (int i = 0; i < 100000; i++) {
		struct dualpi2_config cfg = unit_config();
		u32 mtu = unit_any(60, INT32_MAX);
		u32 target_ns = unit_any(1000, U32_MAX);
		u64 rate = link_any_rate();
		bool shaped = unit_rnd() & 1;
		long double exact, bytes, pkts, memory, two = 2.0L * target_ns;
		struct limits got;

		cfg.bandwidth = shaped ? rate : 0;
		/* the rate that its time of a byte stands for */
		exact = 1e9L * (1 << 20) / dualpi2_ns_per_byte_q20(rate);
		bytes = exact * two / 1e9L;
		if (shaped) {
			long double quarter = exact / 4;

			if (quarter > 16777216)
				quarter = 16777216;
			if (bytes < quarter)
				bytes = quarter;
		}
		pkts = bytes / 64;
		memory = 2 * bytes;
		if (pkts < (shaped ? 1000 : 10000))
			pkts = shaped ? 1000 : 10000;
		if (memory < 2.0L * mtu * (shaped ? 256 : 10000))
			memory = 2.0L * mtu * (shaped ? 256 : 10000);
		pkts = pkts > U32_MAX ? U32_MAX : pkts;
		memory = memory > U32_MAX ? U32_MAX : memory;
		got = limits_of(&cfg, rate, mtu, target_ns);
		CHECK(fabsl(got.pkts - pkts) < 1.01L, "%u packets, want %Lf", got.pkts, pkts);
		CHECK(fabsl(got.memory - memory) < 2.01L, "%u bytes, want %Lf", got.memory, memory);
	}
}

/* To the byte, and whole ones: 250 ms, 16 MiB from 14.9 ns a byte down, twice the
 * target from 1.8 ns down.
 */
UNIT_TEST(limit_in_bytes_is_exact)
{
	for (int i = 0; i < 20000; i++) {
		u64 slow = unit_between(15 << 20, 1000 << 20);
		u64 fast = unit_between(1 << 13, 1 << 20);

		CHECK_EQ(dualpi2_limit_bytes(slow, 15 * MS), (250 * MS << 20) / slow);
		CHECK_EQ(dualpi2_limit_bytes(fast, 15 * MS), (30 * MS << 20) / fast);
	}
	CHECK_EQ(dualpi2_limit_bytes(14 << 20, 15 * MS), 16777216);
	CHECK_EQ(dualpi2_limit_bytes(2 << 20, 15 * MS), 16777216);
}

/* 1 Tbit/s and 4.29 s, the maximum of both, are 1.07 * 10^12 bytes. */
UNIT_TEST(limit_of_the_greatest_rate_and_target_does_not_wrap)
{
	u64 ns_per_byte_q20 = dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MAX);
	struct dualpi2_config cfg = unit_config();
	u64 bytes = dualpi2_limit_bytes(ns_per_byte_q20, U32_MAX);

	CHECK_NEAR(bytes, 1073741823750, 1073741823750 / 10000);
	for (int shaped = 0; shaped < 2; shaped++) {
		cfg.bandwidth = shaped ? DUALPI2_BANDWIDTH_MAX : 0;
		CHECK_EQ(dualpi2_limit_pkts(&cfg, ns_per_byte_q20, U32_MAX), U32_MAX);
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, U32_MAX, ns_per_byte_q20, U32_MAX),
			 U32_MAX);
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, 60, ns_per_byte_q20, U32_MAX), U32_MAX);
		/* A link that was seen may be faster still. */
		CHECK_EQ(dualpi2_limit_pkts(&cfg, 1, U32_MAX), U32_MAX);
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, 60, 1, U32_MAX), U32_MAX);
	}
}
