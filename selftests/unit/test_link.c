// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link behind the queues: lengths on it, the shaper's clock, what drops owe
 * it, the rate at which queues drain, bursts of arrivals and limits by rate.
 *
 * Expected values come from cell counting, from division in long double, and
 * from links that are played here; none from the formulas of the header.
 */

#define LINK_MTU	1514U

static struct dualpi2_link link_of(u64 rate, bool ingress)
{
	struct dualpi2_link link;

	memset(&link, 0, sizeof(link));
	link.ns_per_byte_q20 = dualpi2_ns_per_byte_q20(rate);
	link.ingress = ingress;
	link.late_max_ns = DUALPI2_LATE_MAX_NS;
	return link;
}

static struct dualpi2_link link_framed(u8 framing, s32 overhead, u32 mpu)
{
	struct dualpi2_link link = link_of(0, false);

	link.framing = framing;
	link.overhead_bytes = overhead;
	link.mpu_bytes = mpu;
	return link;
}

/* A clock whose queues a packet has come to at a time. */
static struct dualpi2_clock link_clock(const struct dualpi2_link *link,
				       u64 now_ns)
{
	struct dualpi2_clock c;

	memset(&c, 0, sizeof(c));
	dualpi2_clock_start(link, &c, now_ns);
	return c;
}

/* Time of so many bytes, as exactly as it can be had. */
static long double link_exact_ns(u64 rate, u64 bytes)
{
	return (long double)bytes * 1e9L / rate;
}

static u64 link_any_rate(void)
{
	return unit_any(DUALPI2_BANDWIDTH_MIN, DUALPI2_BANDWIDTH_MAX);
}

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

static void link_bytes_match_worked_examples(void)
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
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dualpi2_link link = link_framed(cases[i].framing,
						       cases[i].overhead,
						       cases[i].mpu);

		CHECK_EQ(dualpi2_link_bytes(&link, cases[i].ip), cases[i].want);
	}
}

static void link_bytes_of_any_packet_match_counting(void)
{
	int i;

	for (i = 0; i < 20000; i++) {
		u8 framing = unit_between(DUALPI2_FRAMING_NOATM,
					  DUALPI2_FRAMING_PTM);
		s32 overhead = (s32)unit_between(0, DUALPI2_OVERHEAD_MAX -
						 DUALPI2_OVERHEAD_MIN) +
			       DUALPI2_OVERHEAD_MIN;
		u32 mpu = unit_any(0, DUALPI2_MPU_MAX);
		u32 ip = unit_any(0, 9000);
		struct dualpi2_link link = link_framed(framing, overhead, mpu);

		CHECK_EQ(dualpi2_link_bytes(&link, ip),
			 link_count_bytes(framing, ip, overhead, mpu));
	}
}

static void link_bytes_of_huge_packets_are_bounded(void)
{
	struct dualpi2_link link = link_framed(DUALPI2_FRAMING_ATM,
					       DUALPI2_OVERHEAD_MAX, 0);
	u32 most = dualpi2_link_bytes(&link, DUALPI2_LINK_BYTES_MAX);

	CHECK_EQ(most, link_count_bytes(DUALPI2_FRAMING_ATM,
					DUALPI2_LINK_BYTES_MAX,
					DUALPI2_OVERHEAD_MAX, 0));
	CHECK_EQ(dualpi2_link_bytes(&link, U32_MAX), most);
	CHECK_EQ(dualpi2_link_bytes(&link, DUALPI2_LINK_BYTES_MAX + 1), most);
	CHECK(dualpi2_link_bytes(&link, DUALPI2_LINK_BYTES_MAX - 53) < most,
	      "bounded too early");
	link = link_framed(DUALPI2_FRAMING_NOATM, 0, 0);
	CHECK_EQ(dualpi2_link_bytes(&link, U32_MAX), 4194304);
	CHECK_EQ(dualpi2_link_bytes(&link, 4194303), 4194303);
}

/* Each segment with its own headers. */
static void link_gso_bytes_are_those_of_the_segments(void)
{
	int i;

	for (i = 0; i < 20000; i++) {
		struct dualpi2_link link =
			link_framed(unit_between(DUALPI2_FRAMING_NOATM,
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
		CHECK_EQ(dualpi2_link_gso_bytes(&link, header + payload, header,
						part), want);
	}
}

/* What a packet says of its own headers need not be so. */
static void link_gso_bytes_of_lying_headers_are_bounded(void)
{
	struct dualpi2_link link = link_framed(DUALPI2_FRAMING_NOATM, 0, 0);
	u32 ip;

	for (ip = 0; ip <= 40; ip++)
		CHECK_EQ(dualpi2_link_gso_bytes(&link, ip, 40, 1000),
			 ip ? ip : 1);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 41, 40, 1000), 41);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 42, 40, 1000), 42);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 65535, 0, 1), 65535);
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 65535, 40, 65535), 65535);
	/* 2^26 parts of a byte each, and each at the least length */
	link.mpu_bytes = 256;
	CHECK_EQ(dualpi2_link_gso_bytes(&link, 40 + (1U << 26), 40, 1),
		 1ULL << 34);
}

/* ---- time of bytes ---- */

static void link_time_of_a_packet_is_exact(void)
{
	int i;

	for (i = 0; i < 200000; i++) {
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

static void link_time_of_huge_packets_does_not_wrap(void)
{
	u64 slowest = dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MIN);

	CHECK_EQ(dualpi2_bytes_ns(slowest, U32_MAX), U32_MAX * 1000000ULL);
	CHECK_EQ(dualpi2_bytes_ns(slowest, UINT64_MAX), U32_MAX * 1000000ULL);
	CHECK_EQ(dualpi2_bytes_ns(slowest, 1ULL << 32), U32_MAX * 1000000ULL);
	CHECK_EQ(dualpi2_bytes_ns(slowest, U32_MAX - 1),
		 (U32_MAX - 1) * 1000000ULL);
}

/* Not only of packets: 50 ms of a queue are 50 ms at any rate. */
static void link_time_of_a_queue_is_right_at_all_rates(void)
{
	static const u64 rates[] = { 1250000, 125000000, 1250000000,
				     12500000000, 80000000000 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rates); i++)
		CHECK_NEAR(dualpi2_bytes_ns(dualpi2_ns_per_byte_q20(rates[i]),
					    rates[i] / 20), 50 * MS, 5000);
}

static void link_bytes_of_a_time_invert_the_time_of_bytes(void)
{
	int i;

	for (i = 0; i < 100000; i++) {
		u64 rate = link_any_rate();
		u64 per_byte = dualpi2_ns_per_byte_q20(rate);
		u64 ns = unit_any(0, (1ULL << 44) - 1);
		long double want = (long double)ns * (1 << 20) / per_byte;

		CHECK_EQ(dualpi2_ns_bytes(per_byte, ns), (u64)want);
	}
}

/* ---- the clock ---- */

/* Each packet leaves when it may: over any number of them the rate holds to the
 * fraction of a nanosecond.
 */
static void clock_never_drifts(void)
{
	int i, k;

	for (i = 0; i < 200; i++) {
		u64 rate = link_any_rate(), now = unit_between(0, 1ULL << 50);
		struct dualpi2_link link = link_of(rate, unit_rnd() & 1);
		struct dualpi2_clock c = link_clock(&link, now);
		u64 start = now, bytes = 0, per_byte = link.ns_per_byte_q20;
		long double want;

		CHECK_EQ(c.next_ns, now);
		for (k = 0; k < 2000; k++) {
			u32 len = unit_any(1, 9000);

			CHECK(!dualpi2_clock_wait(&c, now), "waits at its time");
			CHECK(!now || !k ||
			      bytes * per_byte >> 20 == 0 ||
			      dualpi2_clock_wait(&c, now - 1) ||
			      now == start, "too early");
			dualpi2_clock_send(&link, &c, len, now);
			bytes += len;
			now = c.next_ns;
			CHECK(c.frac_q20 < 1 << 20, "frac %u", c.frac_q20);
			CHECK_EQ(c.next_ns - start, bytes * per_byte >> 20);
		}
		want = link_exact_ns(rate, bytes);
		CHECK(fabsl(now - start - want) < 1 + 0.0001L * want,
		      "%llu bytes at %llu bytes/s took %llu ns, not %Lf",
		      (ull)bytes, (ull)rate, (ull)(now - start), want);
	}
}

static void clock_waits_until_its_time_and_no_longer(void)
{
	struct dualpi2_link link = link_of(1000000, false);	/* 1 us a byte */
	struct dualpi2_clock c = link_clock(&link, 5 * SEC);

	CHECK(!dualpi2_clock_wait(&c, 5 * SEC), "the first packet waits");
	dualpi2_clock_send(&link, &c, 1500, 5 * SEC);
	CHECK(dualpi2_clock_wait(&c, 5 * SEC), "a second one at once");
	CHECK(dualpi2_clock_wait(&c, 5 * SEC + 1499999), "1 ns too early");
	CHECK(!dualpi2_clock_wait(&c, 5 * SEC + 1500000), "too late");
	CHECK(!dualpi2_clock_wait(&c, 5 * SEC + 1500001), "after its time");
	CHECK(!dualpi2_clock_wait(&c, 60 * SEC), "a minute after its time");
}

/* Beyond LINK_BYTES_MAX, 2^22, the length does not count. */
static void clock_of_huge_packets_is_bounded(void)
{
	static const struct { u64 bytes, ns; } cases[] = {
		{ 4194303, 4194303000 }, { 4194304, 4194304000 },
		{ 4194305, 4194304000 }, { 1ULL << 32, 4194304000 },
		{ UINT64_MAX, 4194304000 },
	};
	struct dualpi2_link link = link_of(1000000, false);	/* 1 us a byte */
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dualpi2_clock c = link_clock(&link, SEC);

		dualpi2_clock_send(&link, &c, cases[i].bytes, SEC);
		CHECK_EQ(c.next_ns, SEC + cases[i].ns);
	}
}

/* No credit for time in which there was nothing to send. */
static void clock_idle_time_gives_no_burst(void)
{
	int i;

	for (i = 0; i < 1000; i++) {
		u64 rate = link_any_rate(), now = unit_between(0, 1ULL << 50);
		struct dualpi2_link link = link_of(rate, false);
		struct dualpi2_clock c = link_clock(&link, now);
		u64 own, next;

		dualpi2_clock_send(&link, &c, 1000, now);
		next = c.next_ns;
		own = next - now;
		/* The link is still busy with the last one. */
		dualpi2_clock_start(&link, &c, now + own / 2);
		CHECK_EQ(c.next_ns, next);
		/* It was idle, for longer than is ever made up for, or not. */
		now = next + unit_any(0, 100 * SEC);
		dualpi2_clock_start(&link, &c, now);
		CHECK_EQ(c.next_ns, now);
		dualpi2_clock_send(&link, &c, 1000, now);
		CHECK_NEAR(c.next_ns, now + own, 1);
		CHECK(own < 2 || dualpi2_clock_wait(&c, now + own - 2),
		      "a second packet at once");
	}
}

/* A late timer costs nothing up to 10 ms, and is no licence for more than that. */
static void clock_late_packets_are_made_up_for_up_to_a_bound(void)
{
	struct dualpi2_link link = link_of(1000000, false);
	struct dualpi2_clock c = link_clock(&link, SEC);
	u64 now = SEC, sent = 0;
	int i;

	for (i = 0; i < 10000; i++) {
		dualpi2_clock_send(&link, &c, 1000, now);
		sent += 1000;
		CHECK_EQ(c.next_ns, SEC + sent * 1000);
		now = c.next_ns + unit_between(0, 10 * MS);
	}
	/* It never went backwards, though some left before others should have. */
	c = link_clock(&link, SEC);
	dualpi2_clock_send(&link, &c, 1000, SEC + 10 * MS);
	CHECK_EQ(c.next_ns, SEC + 1 * MS);
	c = link_clock(&link, SEC);
	dualpi2_clock_send(&link, &c, 1000, SEC + 10 * MS + 1);
	CHECK_EQ(c.next_ns, SEC + 1 * MS + 1);
	c = link_clock(&link, SEC);
	dualpi2_clock_send(&link, &c, 1000, 99 * SEC);
	CHECK_EQ(c.next_ns, 99 * SEC - 9 * MS);
	/* Right after boot there is no time before it. */
	c = link_clock(&link, 0);
	dualpi2_clock_send(&link, &c, 1000, 3 * MS);
	CHECK_EQ(c.next_ns, MS);
}

/* With exact timers the burst after a late packet is ten times shorter. */
static void clock_with_exact_timers_catches_up_on_one_millisecond(void)
{
	static const struct { u64 late_max_ns, late_ns, next_ns; } rows[] = {
		/* when the packet after one of 1 ms may leave */
		{ DUALPI2_LATE_EXACT_NS, 0, MS },
		{ DUALPI2_LATE_EXACT_NS, MS - 1, MS },
		{ DUALPI2_LATE_EXACT_NS, MS, MS },
		{ DUALPI2_LATE_EXACT_NS, MS + 1, MS + 1 },
		{ DUALPI2_LATE_EXACT_NS, 10 * MS, 10 * MS },
		{ DUALPI2_LATE_EXACT_NS, 99 * SEC, 99 * SEC },
		{ DUALPI2_LATE_MAX_NS, 10 * MS, MS },
		{ DUALPI2_LATE_MAX_NS, 10 * MS + 1, MS + 1 },
	};
	static const u64 bounds[] = { DUALPI2_LATE_EXACT_NS, DUALPI2_LATE_MAX_NS };
	struct dualpi2_link link = link_of(1000000, false);
	unsigned int i, n;

	CHECK_EQ(DUALPI2_LATE_EXACT_NS, MS);
	CHECK_EQ(DUALPI2_LATE_MAX_NS, 10 * MS);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dualpi2_clock c = link_clock(&link, SEC);

		link.late_max_ns = rows[i].late_max_ns;
		dualpi2_clock_send(&link, &c, 1000, SEC + rows[i].late_ns);
		CHECK_EQ(c.next_ns, SEC + rows[i].next_ns);
	}
	/* 1 Gbit/s, 10 ms late: packets of 100 bytes, 800 ns, that leave at once */
	link = link_of(125000000, false);
	for (i = 0; i < ARRAY_SIZE(bounds); i++) {
		struct dualpi2_clock c = link_clock(&link, SEC);

		link.late_max_ns = bounds[i];
		for (n = 0; !dualpi2_clock_wait(&c, SEC + 10 * MS); n++)
			dualpi2_clock_send(&link, &c, 100, SEC + 10 * MS);
		CHECK_EQ(n, bounds[i] / 800 + 1);
	}
}

/* Never more than the rate and one packet, whenever one looks, if served in time. */
static void clock_any_interval_holds_the_rate_and_one_packet(void)
{
	int i, k;

	for (i = 0; i < 300; i++) {
		u64 rate = unit_any(12500, 1250000000), now = SEC;
		struct dualpi2_link link = link_of(rate, false);
		struct dualpi2_clock c = link_clock(&link, now);
		/* Most that left since any earlier moment, beyond the rate. */
		long double excess = 0, last = now;

		for (k = 0; k < 500; k++) {
			u32 len = unit_between(40, 1514);

			if (!(unit_rnd() % 8)) {	/* empty for a while */
				now += unit_any(0, 50 * MS);
				dualpi2_clock_start(&link, &c, now);
			}
			if (now < c.next_ns)
				now = c.next_ns;
			excess -= (now - last) * rate / 1e9L;
			excess = excess < 0 ? 0 : excess;
			last = now;
			excess += len;
			CHECK(excess <= 1514 * (1 + 0.0001L) + 2 + rate / 5e8L,
			      "%Lf bytes beyond %llu bytes/s", excess,
			      (ull)rate);
			dualpi2_clock_send(&link, &c, len, now);
		}
	}
}

static void clock_without_shaper_never_waits(void)
{
	struct dualpi2_link link = link_of(0, true);
	struct dualpi2_clock c = link_clock(&link, SEC);

	CHECK(!dualpi2_clock_wait(&c, 0), "waits without a shaper");
	dualpi2_clock_start(&link, &c, 2 * SEC);
	CHECK(!dualpi2_clock_wait(&c, 0), "waits without a shaper");
	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.owed_ns, 0);
}

/* A rate that was far lower, or far higher, holds nothing up and lets nothing
 * through.
 */
static void clock_change_neither_stalls_nor_bursts(void)
{
	int i;

	for (i = 0; i < 20000; i++) {
		u64 now = unit_between(SEC, 1ULL << 50), old_next, mtu_ns;
		struct dualpi2_link old = link_of(link_any_rate(), false);
		u64 rate = link_any_rate();
		struct dualpi2_link new = link_of(rate, false);
		struct dualpi2_clock c = link_clock(&old, now);

		if (new.ns_per_byte_q20 == old.ns_per_byte_q20)
			continue;
		dualpi2_clock_send(&old, &c, unit_any(60, 65535), now);
		old_next = c.next_ns;
		now += unit_between(0, old_next - now);
		dualpi2_clock_change(&old, &new, &c, LINK_MTU, now);
		mtu_ns = dualpi2_bytes_ns(new.ns_per_byte_q20, LINK_MTU);
		CHECK(c.next_ns <= now + mtu_ns, "stalls for %llu ns, %llu at most",
		      (ull)(c.next_ns - now), (ull)mtu_ns);
		CHECK_EQ(c.next_ns, old_next < now + mtu_ns ? old_next :
							     now + mtu_ns);
		/* The packet after it is timed by the new rate. */
		now = now > c.next_ns ? now : c.next_ns;
		old_next = c.next_ns;
		dualpi2_clock_send(&new, &c, 1000, now);
		CHECK_NEAR(c.next_ns - old_next,
			   (u64)link_exact_ns(rate, 1000),
			   2 + (u64)(link_exact_ns(rate, 1000) * 0.0001L));
	}
}

static void clock_change_to_no_shaper_forgets_all(void)
{
	struct dualpi2_link old = link_of(1000, true), new = link_of(0, true);
	struct dualpi2_clock c = link_clock(&old, SEC);

	dualpi2_clock_drop(&old, &c, 50);
	dualpi2_clock_send(&old, &c, 1500, SEC);
	dualpi2_clock_change(&old, &new, &c, LINK_MTU, SEC);
	CHECK_EQ(c.next_ns | c.owed_ns | c.frac_q20, 0);
	CHECK(!dualpi2_clock_wait(&c, 0), "waits without a shaper");
}

/* Another option was changed: what is waited for is waited for. */
static void clock_change_of_something_else_gives_nothing_away(void)
{
	struct dualpi2_link link = link_of(1250000, false), other = link;
	struct dualpi2_clock c = link_clock(&link, SEC);

	other.framing = DUALPI2_FRAMING_ATM;
	other.ingress = true;
	dualpi2_clock_send(&link, &c, 65001, SEC);
	CHECK_EQ(c.next_ns, SEC + 52000800);
	dualpi2_clock_change(&link, &link, &c, LINK_MTU, SEC);
	CHECK_EQ(c.next_ns, SEC + 52000800);
	dualpi2_clock_change(&link, &other, &c, LINK_MTU, SEC + MS);
	CHECK_EQ(c.next_ns, SEC + 52000800);
}

/* Queues that held packets when the shaper came: no more than one of them leaves
 * at once.
 */
static void clock_change_from_no_shaper_gives_no_burst(void)
{
	struct dualpi2_link off = link_of(0, false);
	struct dualpi2_link on = link_of(1250000, false);
	struct dualpi2_clock c = link_clock(&off, SEC);
	u64 now = 7 * SEC;
	int sent = 0;

	dualpi2_clock_change(&off, &on, &c, LINK_MTU, now);
	while (!dualpi2_clock_wait(&c, now) && sent < 100) {
		dualpi2_clock_send(&on, &c, 1250, now);
		sent++;
	}
	CHECK(sent <= 1, "%d packets at once", sent);
	CHECK(c.next_ns <= now + 2 * 1214400, "stalls for %llu ns",
	      (ull)(c.next_ns - now));
}

/* ---- what drops owe ---- */

static void ingress_drops_take_their_time_of_the_link(void)
{
	int i, k;

	for (i = 0; i < 200; i++) {
		u64 rate = unit_any(125000, 1250000000), now = SEC;
		struct dualpi2_link link = link_of(rate, true);
		struct dualpi2_clock c = link_clock(&link, now);
		u64 bytes = 0;
		int drops = 0;
		long double want;

		/* One in four, so that they are paid for as they go. */
		for (k = 0; k < 400; k++) {
			u32 len = unit_between(60, 1514);

			if (k % 4 == 1) {
				dualpi2_clock_drop(&link, &c, len);
				drops++;
			} else {
				u64 next = c.next_ns, own;

				dualpi2_clock_send(&link, &c, len, now);
				own = dualpi2_bytes_ns(link.ns_per_byte_q20,
						       len);
				CHECK(c.next_ns - next <= own + own / 2 + 3,
				      "pays %llu ns, its own time is %llu",
				      (ull)(c.next_ns - next), (ull)own);
				now = c.next_ns;
			}
			bytes += len;
		}
		for (k = 0; c.owed_ns; k++) {
			CHECK(k < 10000, "%llu ns are owed for ever",
			      (ull)c.owed_ns);
			dualpi2_clock_send(&link, &c, 1000, now);
			bytes += 1000;
			now = c.next_ns;
		}
		want = link_exact_ns(rate, bytes);
		CHECK(fabsl(now - SEC - want) < drops + 2 + 0.0001L * want,
		      "%llu ns instead of %Lf", (ull)(now - SEC), want);
	}
}

/* However much is dropped, two thirds of the rate are for what passes. */
static void ingress_two_thirds_of_the_rate_are_left(void)
{
	struct dualpi2_link link = link_of(1250000, true);
	struct dualpi2_clock c = link_clock(&link, SEC);
	u64 now = SEC, sent = 0;
	int i, k;

	for (i = 0; i < 1000; i++) {
		for (k = 0; k < 50; k++)
			dualpi2_clock_drop(&link, &c, 1514);
		dualpi2_clock_send(&link, &c, 1000, now);
		sent += 1000;
		now = c.next_ns;
	}
	CHECK_EQ(now - SEC, (800 + 400) * sent);
}

static void ingress_debt_is_bounded(void)
{
	struct dualpi2_link link = link_of(1000000, true);
	struct dualpi2_clock c = link_clock(&link, SEC);
	int i;

	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.owed_ns, 1514000);
	for (i = 0; i < 65; i++)
		dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.owed_ns, 66 * 1514000);
	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.owed_ns, 100 * MS);
	for (i = 0; i < 100; i++)
		dualpi2_clock_drop(&link, &c, UINT64_MAX);
	CHECK_EQ(c.owed_ns, 100 * MS);
	/* It does not make the next packet itself wait. */
	CHECK(!dualpi2_clock_wait(&c, SEC), "waits for what is owed");
	/* 100 ms are paid by packets of 1 ms, and then it is over. */
	for (i = 1; i <= 200; i++) {
		dualpi2_clock_send(&link, &c, 1000, c.next_ns);
		CHECK_EQ(c.next_ns, SEC + 3 * i * (MS / 2));
	}
	CHECK_EQ(c.owed_ns, 0);
	dualpi2_clock_send(&link, &c, 1000, c.next_ns);
	CHECK_EQ(c.next_ns, SEC + 301 * MS);
}

/* A link that had nothing to do has had its time back. */
static void ingress_debt_is_paid_by_idle_time(void)
{
	struct dualpi2_link link = link_of(1000000, true);
	struct dualpi2_clock c = link_clock(&link, SEC);
	int i;

	for (i = 0; i < 50; i++)
		dualpi2_clock_drop(&link, &c, 1000);
	CHECK_EQ(c.owed_ns, 50 * MS);
	dualpi2_clock_start(&link, &c, SEC + 20 * MS);
	CHECK_EQ(c.owed_ns, 30 * MS);
	CHECK_EQ(c.next_ns, SEC + 20 * MS);
	dualpi2_clock_start(&link, &c, SEC + 20 * MS);
	CHECK_EQ(c.owed_ns, 30 * MS);
	dualpi2_clock_start(&link, &c, 2 * SEC);
	CHECK_EQ(c.owed_ns, 0);
	/* to a whole number of times that it has had before, too */
	dualpi2_clock_drop(&link, &c, 1000);
	dualpi2_clock_start(&link, &c, 4 * SEC);
	CHECK_EQ(c.owed_ns, 0);
	/* since boot, which is time 0 */
	c = link_clock(&link, 0);
	dualpi2_clock_drop(&link, &c, 3000);
	dualpi2_clock_start(&link, &c, 2 * MS);
	CHECK_EQ(c.owed_ns, MS);
	CHECK_EQ(c.next_ns, 2 * MS);
}

/* Packets that leave 10 ms late wait for something else than the shaper. */
static void clock_is_the_cause_unless_packets_leave_late(void)
{
	struct dualpi2_link link = link_of(1000000, false);
	struct dualpi2_link none = link_of(0, false);
	struct dualpi2_clock c = link_clock(&link, SEC);

	CHECK(dualpi2_clock_is_cause(&link, &c, SEC), "at its time");
	CHECK(dualpi2_clock_is_cause(&link, &c, SEC + 10 * MS - 1), "late");
	CHECK(!dualpi2_clock_is_cause(&link, &c, SEC + 10 * MS), "too late");
	CHECK(!dualpi2_clock_is_cause(&link, &c, SEC + 11 * MS), "later");
	CHECK(!dualpi2_clock_is_cause(&link, &c, 2 * SEC), "far too late");
	CHECK(!dualpi2_clock_is_cause(&none, &c, SEC), "without a shaper");
	dualpi2_clock_send(&link, &c, 1000, 2 * SEC);
	CHECK(dualpi2_clock_is_cause(&link, &c, 2 * SEC), "after a late one");
	link.late_max_ns = DUALPI2_LATE_EXACT_NS;
	c = link_clock(&link, SEC);
	CHECK(dualpi2_clock_is_cause(&link, &c, SEC + MS - 1), "late");
	CHECK(!dualpi2_clock_is_cause(&link, &c, SEC + MS), "too late");
}

static void egress_drops_owe_nothing(void)
{
	struct dualpi2_link link = link_of(1000000, false);
	struct dualpi2_clock c = link_clock(&link, SEC);

	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.owed_ns, 0);
}

static void ingress_turned_off_forgives(void)
{
	struct dualpi2_link link = link_of(1000000, true);
	struct dualpi2_link twice = link_of(2000000, true), egress = link;
	struct dualpi2_clock c = link_clock(&link, SEC);

	dualpi2_clock_drop(&link, &c, 1514);
	dualpi2_clock_change(&link, &link, &c, LINK_MTU, SEC);
	CHECK_EQ(c.owed_ns, 1514000);
	dualpi2_clock_change(&link, &twice, &c, LINK_MTU, SEC);
	CHECK_EQ(c.owed_ns, 1514000);
	egress.ingress = false;
	dualpi2_clock_change(&twice, &egress, &c, LINK_MTU, SEC);
	CHECK_EQ(c.owed_ns, 0);
	dualpi2_clock_drop(&link, &c, 1514);
	dualpi2_clock_change(&link, &egress, &c, LINK_MTU, SEC);
	CHECK_EQ(c.owed_ns, 0);
}

/* ---- the rate that a queue drains at ---- */

/* Packets leave a link of a rate, one in 40 of them with nothing behind.  Before
 * each backlog that is seen, it has one for the time that is not.
 */
static u64 drain_play(struct dualpi2_drain *d, u64 now, u64 rate, int packets)
{
	int i;

	for (i = 0; i < packets; i++) {
		u32 len = unit_between(60, 1514);
		bool left = unit_rnd() % 40;

		if (!d->since_ns) {
			dualpi2_drain_sent(d, 1514, true, now);
			now += DUALPI2_DRAIN_AFTER_NS;
		}
		dualpi2_drain_sent(d, len, left, now);
		now += (u64)link_exact_ns(rate, len);
		if (!left)		/* until there is another one */
			now += unit_any(0, SEC);
	}
	return now;
}

/* A link that is never idle, and updates as the controller has them: before a packet
 * leaves, 16 ms after the last update.  Returns when the next packet is to leave.
 */
static u64 drain_full(struct dualpi2_drain *d, u64 begin, u64 rate, int updates)
{
	u64 sent = 0, now = begin, due = begin + 16 * MS;

	for (;;) {
		if (now >= due) {
			dualpi2_drain_update(d, now);
			due = now + 16 * MS;
			if (!--updates)
				return now;
		}
		dualpi2_drain_sent(d, 1514, true, now);
		sent += 1514;
		now = begin + (u64)link_exact_ns(rate, sent);
	}
}

/* What a processor hands to a device that takes it all: one GSO packet, in parts. */
static u64 drain_burst(struct dualpi2_drain *d, u64 now, int packets)
{
	int i;

	for (i = packets - 1; i >= 0; i--) {
		dualpi2_drain_sent(d, 1514, i, now);
		now += 300;
	}
	return now;
}

static void drain_check(const struct dualpi2_drain *d, u64 rate)
{
	u64 seen = dualpi2_rate(d->ns_per_byte_q20);

	CHECK(seen > rate * 0.99L && seen < rate * 1.01L,
	      "%llu bytes/s of %llu", (ull)seen, (ull)rate);
}

/* 64 kB each 2 ms, a quarter of 1 Gbit/s, is no sign of any rate. */
static void drain_rate_of_bursts_is_not_seen(void)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, due = now + 16 * MS;
	int i;

	for (i = 0; i < 1000; i++) {
		if (now >= due) {
			dualpi2_drain_update(&d, now);
			due = now + 16 * MS;
		}
		drain_burst(&d, now, 45);
		now += 2 * MS;
	}
	dualpi2_drain_update(&d, now);
	CHECK_EQ(d.ns_per_byte_q20, 0);
	CHECK_EQ(d.busy_bytes, 0);
	CHECK_EQ(d.busy_ns, 0);
	/* Then it is full, and the first estimate is that of the link. */
	now = drain_full(&d, now, 125000000, 1);
	drain_check(&d, 125000000);
	/* Bursts that leave as fast as that change nothing. */
	dualpi2_drain_pause(&d, now);
	for (i = 0; i < 1000; i++) {
		drain_burst(&d, now, 45);
		now += 2 * MS;
		dualpi2_drain_update(&d, now);
	}
	drain_check(&d, 125000000);
}

/* From the first estimate on, at any rate that has packets enough for 1 %. */
static void drain_rate_of_a_standing_backlog_is_that_of_the_link(void)
{
	static const u64 rates[] = { 5000000, 125000000, 1250000000,
				     12500000000 };
	u32 i;
	int k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct dualpi2_drain d = {};
		u64 now = SEC + i;

		for (k = 0; k < 5; k++) {
			now = drain_full(&d, now, rates[i], 1);
			drain_check(&d, rates[i]);
		}
	}
}

/* The first millisecond does not count, with its packets. */
static void drain_rate_counts_after_the_first_millisecond(void)
{
	u64 begin, gap;

	for (begin = SEC; begin < SEC + 4; begin++) {
		for (gap = MS - 2; gap < MS + 2; gap++) {
			struct dualpi2_drain d = {};
			bool seen;

			dualpi2_drain_sent(&d, 60, true, begin);
			dualpi2_drain_sent(&d, 70, true, begin + 1000);
			dualpi2_drain_sent(&d, 1000, true, begin + gap);
			dualpi2_drain_sent(&d, 500, false, begin + gap + 9000);
			seen = d.busy_bytes;
			/* The time is kept to 2 ns. */
			if (gap != MS - 1)
				CHECK(seen == (gap >= MS), "%llu ns", (ull)gap);
			CHECK_EQ(d.busy_bytes, seen ? 1000 : 0);
			CHECK_EQ(d.busy_ns, seen ? 9000 : 0);
			/* and again for the next backlog */
			dualpi2_drain_sent(&d, 60, true, begin + SEC);
			dualpi2_drain_sent(&d, 70, true, begin + SEC + MS - 2);
			CHECK_EQ(d.busy_bytes, seen ? 1000 : 0);
			dualpi2_drain_sent(&d, 80, true, begin + SEC + MS + 2);
			CHECK_EQ(d.busy_bytes, (seen ? 1000 : 0) + 80);
		}
	}
}

/* The begin of a backlog has 32 bits: whatever they are, and however long no packet
 * leaves, that time is never less than 1 ms, and another millisecond at most.
 */
static void drain_begin_that_wraps_is_harmless(void)
{
	static const u64 begins[] = {
		1, (1ULL << 32) - MS, (1ULL << 32) - 2, (1ULL << 32) - 1,
		1ULL << 32, (1ULL << 32) + 1, (7ULL << 32) - 1, 7ULL << 32,
		(7ULL << 32) + 1, (1ULL << 62) - 1, 1ULL << 62,
	};
	u32 i;
	int k;

	for (i = 0; i < ARRAY_SIZE(begins); i++) {
		struct dualpi2_drain d = {};
		u64 now = begins[i];

		dualpi2_drain_sent(&d, 1514, true, now);
		dualpi2_drain_sent(&d, 1514, true, now + MS - 2);
		CHECK_EQ(d.since_ns, 0);
		dualpi2_drain_sent(&d, 1514, true, now + MS + 1);
		CHECK_EQ(d.since_ns, now + MS + 1);
		CHECK_EQ(d.busy_bytes, 1514);

		/* A link stops for 2^32 ns, or for some of them. */
		for (k = 1; k < 4; k++) {
			u64 stop = (u64)k << 32;

			d = (struct dualpi2_drain) {};
			dualpi2_drain_sent(&d, 1514, true, now);
			dualpi2_drain_sent(&d, 1514, true, now + stop);
			CHECK_EQ(d.busy_bytes, 0);
			dualpi2_drain_sent(&d, 1514, true, now + stop + MS - 2);
			CHECK_EQ(d.busy_bytes, 0);
			dualpi2_drain_sent(&d, 1514, true, now + stop + MS + 1);
			CHECK_EQ(d.busy_bytes, 1514);
			dualpi2_drain_update(&d, now + stop + MS + 1 + 1514);
			CHECK_EQ(dualpi2_rate(d.ns_per_byte_q20), 1000000000);
		}
	}
}

/* Bytes at the last update have 32 bits: an update that finds 2^32 more of them
 * changes nothing, and the next one takes them all.
 */
static void drain_bytes_that_wrap_are_harmless(void)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, seen;
	int i, k;

	now = drain_full(&d, now, 12500000000, 20);
	drain_check(&d, 12500000000);
	seen = d.ns_per_byte_q20;
	/* 2^32 bytes at half the rate, in packets of 2^22 */
	for (i = 0; i < 1024; i++) {
		dualpi2_drain_sent(&d, 1 << 22, true, now);
		now += (u64)link_exact_ns(6250000000, 1 << 22);
	}
	dualpi2_drain_update(&d, now);
	CHECK_EQ(d.ns_per_byte_q20, seen);
	dualpi2_drain_sent(&d, 1514, true, now);
	dualpi2_drain_update(&d, now + 242);
	CHECK(dualpi2_rate(d.ns_per_byte_q20) < 7500000000, "%llu bytes/s",
	      (ull)dualpi2_rate(d.ns_per_byte_q20));
	/* Sums beyond 2^32 bytes are the same to it. */
	for (k = 0; k < 40; k++) {
		for (i = 0; i < 1100; i++) {
			dualpi2_drain_sent(&d, 1 << 22, true, now);
			now += (u64)link_exact_ns(6250000000, 1 << 22);
		}
		dualpi2_drain_update(&d, now);
	}
	CHECK(d.busy_bytes >> 32, "%llu bytes", (ull)d.busy_bytes);
	drain_check(&d, 6250000000);
}

static void drain_rate_is_seen_of_queues_that_hold_packets(void)
{
	static const u64 rates[] = { 12500, 500000, 5000000, 125000000,
				     1250000000 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct dualpi2_drain d = {};
		u64 now = SEC, seen;

		for (k = 0; k < 20; k++) {
			now = drain_play(&d, now, rates[i], 50);
			dualpi2_drain_update(&d, now);
		}
		seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
		CHECK(seen > rates[i] * 0.99 && seen < rates[i] * 1.01,
		      "%llu bytes/s of %llu", (ull)seen, (ull)rates[i]);
	}
}

static void drain_rate_follows_the_link(void)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, seen;
	int k;

	for (k = 0; k < 50; k++) {
		now = drain_play(&d, now, 5000000, 50);
		dualpi2_drain_update(&d, now);
	}
	for (k = 0; k < 40; k++) {
		now = drain_play(&d, now, 500000, 50);
		dualpi2_drain_update(&d, now);
	}
	seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
	CHECK(seen > 490000 && seen < 510000, "%llu bytes/s", (ull)seen);
	for (k = 0; k < 60; k++) {
		now = drain_play(&d, now, 5000000, 50);
		dualpi2_drain_update(&d, now);
	}
	seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
	CHECK(seen > 4900000 && seen < 5100000, "%llu bytes/s", (ull)seen);
}

static void drain_rate_of_queues_that_never_hold_two_is_unknown(void)
{
	struct dualpi2_drain d = {};
	u64 seen;
	int i;

	for (i = 0; i < 1000; i++) {
		dualpi2_drain_sent(&d, 1514, false, SEC + i * MS);
		if (i % 10 == 0)
			dualpi2_drain_update(&d, SEC + i * MS + MS / 2);
	}
	dualpi2_drain_update(&d, 2 * SEC);
	CHECK_EQ(d.ns_per_byte_q20, 0);
	/* A rate that is known stays so while there is nothing to see. */
	dualpi2_drain_update(&d, drain_play(&d, 2 * SEC, 5000000, 100));
	dualpi2_drain_pause(&d, 600 * SEC);
	dualpi2_drain_update(&d, 600 * SEC);
	seen = d.ns_per_byte_q20;
	CHECK(seen, "nothing seen");
	for (i = 0; i < 1000; i++)
		dualpi2_drain_update(&d, (601 + i) * SEC);
	CHECK_EQ(d.ns_per_byte_q20, seen);
}

/* Packets that were purged are no reason to count the time after it. */
static void drain_rate_without_the_time_of_a_pause(void)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, seen;
	int k;

	for (k = 0; k < 20; k++) {
		now = drain_play(&d, now, 5000000, 50);
		dualpi2_drain_sent(&d, 1000, true, now);
		dualpi2_drain_pause(&d, now + 1000 * SEC / 5000000);
		now += 3600 * SEC;
		dualpi2_drain_update(&d, now);
		/* purged before its rate was seen, too */
		dualpi2_drain_sent(&d, 1000, true, now);
		dualpi2_drain_pause(&d, now + SEC);
		dualpi2_drain_update(&d, now + 2 * SEC);
		now += 3 * SEC;
	}
	seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
	CHECK(seen > 4900000 && seen < 5100000, "%llu bytes/s", (ull)seen);
}

/* Of a link that has another rate after each update, from boot on. */
static void drain_rate_forgets_a_quarter_at_each_update(void)
{
	int i, k, n;

	for (i = 0; i < 300; i++) {
		long double ns = 0, bytes = 0;
		struct dualpi2_drain d = {};
		u64 now = unit_any(1, SEC);

		for (k = 0; k < 30; k++) {
			u32 slow = unit_between(1, 2000);
			bool seen = false;

			for (n = unit_between(1, 30); n; n--) {
				u32 len = unit_between(60, 1514);
				u64 gap = unit_between(1, (u64)len * slow);
				bool left = unit_rnd() % 4;

				/* a backlog is seen after its first 1 ms */
				if (left && !d.since_ns) {
					dualpi2_drain_sent(&d, len, true, now);
					now += unit_between(MS, 2 * MS);
				}
				dualpi2_drain_sent(&d, len, left, now);
				now += gap;
				ns += left ? gap : 0;
				bytes += left ? len : 0;
				seen |= left;
			}
			dualpi2_drain_update(&d, now);
			if (!seen)
				continue;
			/* What remains is rounded up, and by up to 4 in all. */
			CHECK(fabsl(d.ns_per_byte_q20 * bytes / (1 << 20) / ns -
				    1) < 4 / bytes + 4 / ns + 0.00001L,
			      "%llu / 2^20 ns a byte, not %Lf",
			      (ull)d.ns_per_byte_q20, ns / bytes);
			ns *= 0.75L;
			bytes *= 0.75L;
		}
	}
}

/* 2^42 ns, or 73 minutes, are as much as any longer time. */
static void drain_rate_of_a_link_that_stood_still_is_bounded(void)
{
	static const struct { u64 busy_ns, want; } cases[] = {
		{ 1ULL << 41, (1ULL << 61) / 8000000 },
		{ (1ULL << 42) - 8, ((1ULL << 62) - (8 << 20)) / 8000000 },
		{ 1ULL << 42, (1ULL << 62) / 8000000 },
		{ (1ULL << 42) + 8, (1ULL << 62) / 8000000 },
		{ 1ULL << 60, (1ULL << 62) / 8000000 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dualpi2_drain d = {};

		dualpi2_drain_sent(&d, 60, true, SEC - MS);
		dualpi2_drain_sent(&d, 8000000, true, SEC);
		dualpi2_drain_update(&d, SEC + cases[i].busy_ns);
		CHECK_EQ(d.ns_per_byte_q20, cases[i].want);
	}
}

static void drain_rate_of_any_link_stays_in_bounds(void)
{
	u64 most = 1000000ULL << 20;
	struct dualpi2_drain d = {};
	int i, k;

	/* at once: the rate is finite, and dividing by it is safe */
	dualpi2_drain_sent(&d, 1514, true, SEC - MS);
	for (i = 0; i < 100; i++)
		dualpi2_drain_sent(&d, 1514, true, SEC);
	dualpi2_drain_update(&d, SEC);
	CHECK_EQ(d.ns_per_byte_q20, 1);
	/* a link that stood still for years */
	dualpi2_drain_sent(&d, 60, true, 1ULL << 60);
	dualpi2_drain_update(&d, 1ULL << 60);
	CHECK_EQ(d.ns_per_byte_q20, most);
	for (k = 0; k < 2000; k++) {
		u64 now = unit_rnd() >> 1;

		memset(&d, 0, sizeof(d));
		for (i = 0; i < 50; i++) {
			dualpi2_drain_sent(&d, unit_any(1, U32_MAX),
					   unit_rnd() & 3, now);
			now += unit_any(0, 1ULL << 50);
			if (!(unit_rnd() % 8))
				dualpi2_drain_update(&d, now);
			CHECK(d.ns_per_byte_q20 <= most, "%llu",
			      (ull)d.ns_per_byte_q20);
		}
	}
}

/* ---- bursts ---- */

#define BURST_MAX_NS	(5 * MS)

/* Arrivals at a link of a rate, played with updates each 16 ms. */
struct burst_play {
	struct dualpi2_burst b;
	u64 per_byte;
	u64 rate;
	u64 now;
	u64 update;
	u32 most_ns;
};

static struct burst_play burst_new(u64 rate)
{
	struct burst_play p = {
		.per_byte = dualpi2_ns_per_byte_q20(rate),
		.rate = rate,
		.now = SEC,
		.update = SEC,
		.most_ns = BURST_MAX_NS,
	};

	return p;
}

static void burst_wait(struct burst_play *p, u64 ns)
{
	u64 end = p->now + ns;

	while (p->update <= end) {
		p->now = p->update;
		dualpi2_burst_update(&p->b, p->per_byte, LINK_MTU, p->most_ns);
		p->update += 16 * MS;
	}
	p->now = end;
}

static void burst_packet(struct burst_play *p, u32 bytes, u64 then_ns)
{
	dualpi2_burst_arrive(&p->b, bytes, p->now);
	burst_wait(p, then_ns);
}

/* So many bytes at once, or as fast as a link of so much the rate brings them, at
 * so many per cent of the rate on the whole, for a number of updates.
 */
static void burst_aggregates(struct burst_play *p, u32 bytes, u32 times,
			     u32 load_pct, int updates)
{
	u64 until = p->update + updates * 16 * MS;

	while (p->update < until) {
		u64 end = p->now + bytes * SEC / p->rate * 100 / load_pct;
		u32 left = bytes;

		while (left) {
			u32 len = left < 1514 ? left : 1514;

			left -= len;
			burst_packet(p, len, !left ? 0 : times ?
				     len * SEC / p->rate / times : 0);
		}
		burst_wait(p, end - p->now);
	}
}

/* Packets one by one, each at its time or, with jitter, at a random one. */
static void burst_smooth(struct burst_play *p, u32 bytes, u32 load_pct,
			 bool jitter, int updates)
{
	u64 until = p->update + updates * 16 * MS;
	u64 gap = bytes * SEC / p->rate * 100 / load_pct;

	while (p->update < until) {
		u64 then = gap;

		if (jitter)		/* exponential: Poisson arrivals */
			then = -logl((unit_rnd() >> 12) / 0x1p52L +
				     1.0L / (1ULL << 60)) * gap;
		burst_packet(p, bytes, then);
	}
}

static const u64 burst_rates[] = { 1250000, 5000000, 25000000, 125000000 };

static void burst_smooth_arrivals_leave_the_ramp_alone(void)
{
	static const u32 sizes[] = { 100, 300, 1000, 1514 };
	static const u32 loads[] = { 30, 70, 100 };
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params params = unit_params(&cfg);
	struct dualpi2_vars v = unit_vars(&params);
	u32 i, k, n;

	for (i = 0; i < ARRAY_SIZE(burst_rates); i++)
		for (k = 0; k < ARRAY_SIZE(sizes); k++)
			for (n = 0; n < ARRAY_SIZE(loads); n++) {
				struct burst_play p = burst_new(burst_rates[i]);

				burst_smooth(&p, sizes[k], loads[n], false, 50);
				dualpi2_tolerate(&params, &v,
						 p.b.tolerated_ns);
				CHECK(v.ramp.min_ns == params.ramp.min_ns &&
				      v.ramp.max_ns == params.ramp.max_ns &&
				      v.ramp.slope == params.ramp.slope,
				      "%u bytes, %u %% of %llu bytes/s: %u ns",
				      sizes[k], loads[n], (ull)burst_rates[i],
				      p.b.tolerated_ns);
			}
}

/* Chance brings packets together, a few of them. */
static void burst_random_arrivals_leave_the_ramp_alone(void)
{
	static const u32 sizes[] = { 300, 1000, 1514 };
	static const u32 loads[] = { 30, 70, 90 };
	u32 i, k, n;

	for (i = 0; i < ARRAY_SIZE(burst_rates); i++)
		for (k = 0; k < ARRAY_SIZE(sizes); k++)
			for (n = 0; n < ARRAY_SIZE(loads); n++) {
				struct burst_play p = burst_new(burst_rates[i]);

				burst_smooth(&p, sizes[k], loads[n], true, 100);
				CHECK(p.b.tolerated_ns <= 800000,
				      "%u bytes, %u %% of %llu bytes/s: %u ns",
				      sizes[k], loads[n], (ull)burst_rates[i],
				      p.b.tolerated_ns);
			}
}

/* 4 ms at once, or as fast as a radio brings them: the whole of an aggregate
 * passes before the ramp begins.
 */
static void burst_aggregates_are_tolerated(void)
{
	static const u32 times[] = { 0, 10, 30 };
	u32 i, k;

	for (i = 1; i < ARRAY_SIZE(burst_rates); i++)
		for (k = 0; k < ARRAY_SIZE(times); k++) {
			struct burst_play p = burst_new(burst_rates[i]);
			u32 bytes = burst_rates[i] / 250;
			u32 want = times[k] == 10 ? 3600000 : 4000000;

			burst_aggregates(&p, bytes, times[k], 90, 60);
			CHECK(p.b.tolerated_ns >= want,
			      "aggregates of 4 ms at %llu bytes/s: %u ns",
			      (ull)burst_rates[i], p.b.tolerated_ns);
			CHECK(p.b.tolerated_ns <= BURST_MAX_NS, "%u ns",
			      p.b.tolerated_ns);
		}
}

static void burst_tolerance_decays_with_smooth_arrivals(void)
{
	u32 i;

	for (i = 1; i < ARRAY_SIZE(burst_rates); i++) {
		struct burst_play p = burst_new(burst_rates[i]);
		u32 was;

		burst_aggregates(&p, burst_rates[i] / 250, 0, 90, 60);
		was = p.b.tolerated_ns;
		burst_smooth(&p, 1000, 90, false, 10);
		CHECK(p.b.tolerated_ns < was, "%u ns, and %u before",
		      p.b.tolerated_ns, was);
		burst_smooth(&p, 1000, 90, false, 50);
		CHECK(p.b.tolerated_ns <= 50000, "%u ns are left of %u",
		      p.b.tolerated_ns, was);
	}
}

/* What is longer is load, whether it ends or not. */
static void burst_floods_are_not_tolerated(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(burst_rates); i++) {
		struct burst_play p = burst_new(burst_rates[i]);

		burst_aggregates(&p, burst_rates[i] / 100, 0, 90, 60);
		CHECK_EQ(p.b.tolerated_ns, 0);
		burst_aggregates(&p, burst_rates[i] / 250, 0, 90, 60);
		burst_aggregates(&p, burst_rates[i] / 100, 0, 90, 80);
		CHECK(p.b.tolerated_ns <= 50000, "10 ms: %u ns",
		      p.b.tolerated_ns);
	}
}

static void burst_flood_without_end_is_not_tolerated(void)
{
	struct burst_play p = burst_new(5000000);

	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK(p.b.tolerated_ns > 3 * MS, "%u ns", p.b.tolerated_ns);
	/* Ten times the rate, for a second and more. */
	burst_smooth(&p, 1514, 1000, false, 80);
	CHECK(p.b.tolerated_ns <= 50000, "%u ns during a flood",
	      p.b.tolerated_ns);
}

/* Small ones that come at random within a quarter of an MTU's time of each other,
 * but on average no faster than they leave.
 */
static void burst_of_small_packets_at_the_rate_is_none(void)
{
	static const u32 pct[] = { 60, 95 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(burst_rates); i++)
		for (k = 0; k < ARRAY_SIZE(pct); k++) {
			struct burst_play p = burst_new(burst_rates[i]);

			burst_smooth(&p, 300, pct[k], true, 60);
			CHECK(p.b.tolerated_ns <= DUALPI2_BURST_LEAST_NS,
			      "%u %% of %llu bytes/s: %u ns", pct[k],
			      (ull)burst_rates[i], p.b.tolerated_ns);
		}
}

/* A few bursts among smooth arrivals count for what they are of them. */
static void burst_of_a_small_part_is_not_tolerated(void)
{
	struct burst_play p = burst_new(5000000);
	int i;

	for (i = 0; i < 100; i++) {
		burst_aggregates(&p, 20000, 0, 90, 0);
		burst_smooth(&p, 1000, 80, false, 1);
	}
	burst_smooth(&p, 1000, 80, false, 1);
	CHECK(p.b.tolerated_ns <= 800000, "%u ns", p.b.tolerated_ns);
}

static void burst_none_without_rate_or_bound(void)
{
	struct burst_play p = burst_new(5000000);

	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK(p.b.tolerated_ns, "nothing to forget");
	dualpi2_burst_update(&p.b, p.per_byte, LINK_MTU, 0);
	CHECK_EQ(p.b.tolerated_ns | p.b.gap_ns | p.b.mean_ns, 0);
	p.most_ns = 0;
	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK_EQ(p.b.tolerated_ns | p.b.run_bytes | p.b.sum_bytes, 0);
	p.most_ns = BURST_MAX_NS;
	p.per_byte = 0;
	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK_EQ(p.b.tolerated_ns | p.b.run_bytes | p.b.sum_bytes, 0);
}

/* The bound is one at once, whether or not packets come. */
static void burst_bound_that_falls_holds_at_once(void)
{
	struct burst_play p = burst_new(5000000);

	burst_aggregates(&p, 20000, 0, 90, 60);
	CHECK(p.b.tolerated_ns > 3 * MS, "%u ns", p.b.tolerated_ns);
	p.b.run_bytes = 0;
	p.b.sum_bytes = 0;
	p.b.sum = 0;
	dualpi2_burst_update(&p.b, p.per_byte, LINK_MTU, MS);
	CHECK(p.b.tolerated_ns <= MS, "%u ns", p.b.tolerated_ns);
}

/* A pause of a quarter of an MTU's time is none, a longer one ends a burst. */
static void burst_ends_with_a_pause_of_a_quarter_of_an_mtu(void)
{
	struct burst_play p = burst_new(1514000);	/* 1 ms for an MTU */
	int i;

	dualpi2_burst_update(&p.b, p.per_byte, LINK_MTU, BURST_MAX_NS);
	CHECK_NEAR(p.b.gap_ns, 250000, 1);
	for (i = 0; i < 5; i++)
		dualpi2_burst_arrive(&p.b, 1000, SEC + i * p.b.gap_ns);
	CHECK_EQ(p.b.run_bytes, 5000);
	CHECK_EQ(p.b.sum_bytes, 0);
	dualpi2_burst_arrive(&p.b, 700, SEC + 5 * p.b.gap_ns + 1);
	CHECK_EQ(p.b.run_bytes, 700);
	CHECK_EQ(p.b.sum_bytes, 5000);
	/* All but the first MTU take 2.30251 ms, and 1 ms of it has passed. */
	CHECK_NEAR(p.b.sum / 5000, 1302510, 5);
}

/* Against a list of all arrivals.  A byte takes a whole number of ns, so that
 * all is exact.
 */
static void burst_mean_is_that_of_a_list_of_arrivals(void)
{
	enum { ARRIVALS = 400 };
	static u64 at[ARRIVALS];
	static u32 len[ARRIVALS];
	int i;

	for (i = 0; i < 500; i++) {
		u64 ns = unit_any(1, 20000), mean = 0, now;
		u32 most_ns = unit_between(MS / 10, 100 * MS);
		u32 mtu = unit_between(68, 9014);
		u64 gap = ns * mtu / 4;
		struct dualpi2_burst b = {};
		u32 first = 0, n, k;

		dualpi2_burst_update(&b, ns << 20, mtu, most_ns);
		now = gap + unit_any(1, SEC);
		for (n = 0; n < ARRIVALS; n++) {
			u64 bytes = 0, sum = 0, run = 0;
			u32 from = first;

			at[n] = now;
			len[n] = unit_between(60, 1514);
			dualpi2_burst_arrive(&b, len[n], now);
			now += unit_rnd() % 8 ? unit_between(0, gap) :
						gap + unit_any(1, 50 * MS);
			for (k = first; k <= n; k++) {
				u64 behind = ns * (run - 1514);

				if (k > from && at[k] - at[k - 1] > gap) {
					behind -= at[k - 1] - at[from];
					if (run > 2 * 1514 &&
					    run * ns <= most_ns &&
					    (s64)behind > 0)
						sum += run * behind;
					bytes += run;
					run = 0;
					from = k;
				}
				run += len[k];
			}
			/* What is too long before it ends is another matter. */
			if (unit_rnd() % 16 || run * ns > most_ns)
				continue;
			dualpi2_burst_update(&b, ns << 20, mtu, most_ns);
			if (bytes)
				mean = (7 * mean + sum / bytes) / 8;
			CHECK_EQ(b.mean_ns, mean);
			CHECK_EQ(b.tolerated_ns, mean * 5 / 4 < most_ns ?
						 mean * 5 / 4 : most_ns);
			first = from;
		}
	}
}

/* Two packets that follow each other are no burst, with a byte more they are. */
static void burst_is_more_than_two_packets(void)
{
	struct dualpi2_burst b = {}, was;

	CHECK(dualpi2_burst_goes_on(&b, 1514, SEC), "without a rate");
	CHECK_EQ(b.run_bytes | b.first_ns | b.last_ns, 0);
	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 10 * MS);
	CHECK(dualpi2_burst_goes_on(&b, 1514, SEC), "the first one");
	CHECK(dualpi2_burst_goes_on(&b, 1514, SEC + 5), "the second one");
	CHECK_EQ(b.run_bytes, 3028);
	CHECK(dualpi2_burst_goes_on(&b, 1515, 2 * SEC), "after two");
	CHECK_EQ(b.sum_bytes, 3028);
	CHECK_EQ(b.run_bytes, 1515);
	CHECK_EQ(b.first_ns, 2 * SEC);
	CHECK(dualpi2_burst_goes_on(&b, 1514, 2 * SEC + 7), "another one");
	was = b;
	CHECK(!dualpi2_burst_goes_on(&b, 100, 3 * SEC), "after a burst");
	CHECK(!memcmp(&b, &was, sizeof(b)), "accounted for, and ends a burst");
	dualpi2_burst_arrive(&b, 100, 3 * SEC);
	CHECK_EQ(b.sum_bytes, 3028 + 3029);
	/* All but the first MTU take 1.515 ms. */
	CHECK_EQ(b.sum, 3029ULL * (1515000 - 7));
	CHECK_EQ(b.run_bytes, 100);
	CHECK_EQ(b.first_ns, 3 * SEC);
	CHECK_EQ(b.last_ns, 3 * SEC);
	CHECK(dualpi2_burst_goes_on(&b, 1514, 4 * SEC), "a lone one");
	/* nor are they one by whoever else says that they have ended */
	for (b.sum = 0, b.run_bytes = 1; b.run_bytes <= 3028;) {
		u32 bytes = b.run_bytes;

		dualpi2_burst_close(&b);
		CHECK_EQ(b.sum, 0);
		b.run_bytes = bytes + 1;
	}
}

/* A quarter of an MTU's time may be less than a nanosecond. */
static void burst_at_the_greatest_rate_comes_at_once(void)
{
	u64 per_byte = dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MAX);
	struct dualpi2_burst b = {};

	dualpi2_burst_update(&b, per_byte, 300, 5 * MS);
	CHECK_EQ(b.gap_ns, 0);
	dualpi2_burst_arrive(&b, 300, SEC);
	dualpi2_burst_arrive(&b, 9000, SEC);
	CHECK_EQ(b.run_bytes, 9300);
	dualpi2_burst_arrive(&b, 300, SEC + 1);
	CHECK_EQ(b.run_bytes, 300);
	CHECK_EQ(b.sum_bytes, 9300);
	/* 7786 bytes */
	CHECK_EQ(b.sum, 9300 * 62);
}

/* The one that is as long as may be is one, what is longer is load. */
static void burst_as_long_as_may_be_is_one(void)
{
	u32 bytes;

	for (bytes = 4999; bytes <= 5001; bytes++) {
		struct dualpi2_burst b = {};

		dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
		dualpi2_burst_arrive(&b, bytes, SEC);
		dualpi2_burst_arrive(&b, 60, 2 * SEC);
		CHECK_EQ(b.sum_bytes, bytes);
		CHECK_EQ(b.sum, bytes > 5000 ? 0 :
					       (u64)bytes * (bytes - 1514) * 1000);
	}
}

/* One that is too long is load before it ends, and what follows begins where it
 * was cut.
 */
static void burst_too_long_is_cut_at_the_update(void)
{
	struct dualpi2_burst b = {};

	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
	dualpi2_burst_arrive(&b, 4000, SEC);
	dualpi2_burst_arrive(&b, 1000, SEC + 1000);
	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
	CHECK_EQ(b.run_bytes, 5000);
	CHECK_EQ(b.first_ns, SEC);
	dualpi2_burst_arrive(&b, 1, SEC + 2000);
	b.mean_ns = 8000;
	dualpi2_burst_update(&b, 1000 << 20, LINK_MTU, 5 * MS);
	CHECK_EQ(b.mean_ns, 7000);
	CHECK_EQ(b.run_bytes, 0);
	CHECK_EQ(b.first_ns, SEC + 2000);
	dualpi2_burst_arrive(&b, 4000, SEC + 2500);
	dualpi2_burst_arrive(&b, 60, 2 * SEC);
	CHECK_EQ(b.sum_bytes, 4000);
	CHECK_EQ(b.sum, 4000ULL * ((4000 - 1514) * 1000 - 500));
}

/* A quarter more than what came, but not more than what may be. */
static void burst_tolerance_ends_at_the_bound(void)
{
	struct dualpi2_burst b = {};
	int i;

	dualpi2_burst_update(&b, 8 << 20, LINK_MTU, 5 * MS);
	for (i = 1; i <= 60; i++) {
		dualpi2_burst_arrive(&b, 625000, i * SEC);
		dualpi2_burst_arrive(&b, 60, i * SEC + SEC / 2);
		dualpi2_burst_update(&b, 8 << 20, LINK_MTU, 5 * MS);
		CHECK(b.tolerated_ns <= 5 * MS, "%u ns", b.tolerated_ns);
	}
	CHECK_EQ(b.tolerated_ns, 5 * MS);
}

/* Lengths and times that no traffic has: what is summed up stays below 2^61. */
static void burst_sums_are_bounded(void)
{
	struct dualpi2_burst b = {}, full;

	/* lengths: 2^26, although 100 ms are 10^8 bytes */
	dualpi2_burst_update(&b, 1 << 20, LINK_MTU, 100 * MS);
	dualpi2_burst_arrive(&b, 1 << 26, SEC);
	dualpi2_burst_arrive(&b, (1 << 26) + 1, 2 * SEC);
	CHECK_EQ(b.sum, (u64)(1 << 26) * ((1 << 26) - 1514));
	dualpi2_burst_arrive(&b, 60, 3 * SEC);
	CHECK_EQ(b.sum_bytes, (1 << 27) + 1);
	CHECK_EQ(b.sum, (u64)(1 << 26) * ((1 << 26) - 1514));
	/* that of one run of packets */
	dualpi2_burst_arrive(&b, U32_MAX - 61, 3 * SEC);
	CHECK_EQ(b.run_bytes, U32_MAX - 1);
	dualpi2_burst_arrive(&b, 1, 3 * SEC);
	CHECK_EQ(b.run_bytes, U32_MAX);
	dualpi2_burst_arrive(&b, U32_MAX, 3 * SEC);
	CHECK_EQ(b.run_bytes, U32_MAX);
	/* of all: another one as long as there are less than 2^32 bytes */
	b.sum_bytes = (1ULL << 32) - 1;
	dualpi2_burst_arrive(&b, 60, 4 * SEC);
	CHECK_EQ(b.sum_bytes, (2ULL << 32) - 2);
	CHECK(!dualpi2_burst_goes_on(&b, 60, 5 * SEC), "with more");
	b.sum_bytes = (1ULL << 32) - 1;
	CHECK(dualpi2_burst_goes_on(&b, 60, 5 * SEC), "with less");
	b.sum_bytes = 1ULL << 32;
	full = b;
	CHECK(!dualpi2_burst_goes_on(&b, 60, 6 * SEC), "with as much");
	dualpi2_burst_arrive(&b, 1 << 26, 6 * SEC);
	dualpi2_burst_arrive(&b, 60, 7 * SEC);
	CHECK_EQ(b.sum_bytes, full.sum_bytes);
	CHECK_EQ(b.sum, full.sum);
	CHECK_EQ(b.run_bytes, 60);
	/* and the time that each waits for: 2^28 ns */
	b = (struct dualpi2_burst) {};
	dualpi2_burst_update(&b, 1000000ULL << 20, LINK_MTU, U32_MAX);
	dualpi2_burst_arrive(&b, 4000, SEC);
	dualpi2_burst_arrive(&b, 4000, 100 * SEC);
	CHECK_EQ(b.sum, 4000ULL << 28);
}

static void burst_of_anything_stays_in_bounds(void)
{
	int i, k;

	for (i = 0; i < 2000; i++) {
		u64 now = unit_rnd() >> 1;
		struct dualpi2_burst b = {};
		u64 per_byte = unit_any(1, 1000000ULL << 20);
		u32 most = unit_any(1, 100000000), mtu = unit_any(60, 1U << 31);

		for (k = 0; k < 200; k++) {
			dualpi2_burst_arrive(&b, unit_any(1, U32_MAX), now);
			now += unit_any(0, SEC);
			if (!(unit_rnd() % 16))
				dualpi2_burst_update(&b, per_byte, mtu, most);
			CHECK(b.tolerated_ns <= most, "%u ns of %u",
			      b.tolerated_ns, most);
		}
	}
	/* The longest ones of all, for as long as may be between two updates. */
	{
		struct dualpi2_burst b = {};
		u64 now = SEC;

		dualpi2_burst_update(&b, 24 << 20, 60, 100000000);
		CHECK_EQ(b.gap_ns, 360);
		for (k = 0; k < 100000; k++) {
			dualpi2_burst_arrive(&b, 4000000, now);
			now += 361;
		}
		dualpi2_burst_update(&b, 24 << 20, 60, 100000000);
		CHECK_NEAR(b.mean_ns, (4000000 - 1514) * 24 / 8, 1);
	}
}

/* ---- the ramp that bursts leave ---- */

/* Up to here bursts are as those of any sender, or end before the ramp begins. */
static u32 tolerate_least(const struct dualpi2_params *p)
{
	return p->ramp.min_ns > DUALPI2_BURST_LEAST_NS ?
	       p->ramp.min_ns : DUALPI2_BURST_LEAST_NS;
}

static void tolerate_below_the_ramp_changes_nothing(void)
{
	int i;

	for (i = 0; i < 2000; i++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;

		cfg.step_thresh_us = unit_any(0, DUALPI2_STEP_THRESH_US_MAX);
		cfg.ramp_us = unit_any(0, DUALPI2_RAMP_US_MAX);
		cfg.ramp_is_set = true;
		p = unit_params(&cfg);
		v = unit_vars(&p);
		CHECK(!memcmp(&v.ramp, &p.ramp, sizeof(v.ramp)),
		      "another ramp at the start");
		memset(&v.ramp, 0xa5, sizeof(v.ramp));
		dualpi2_tolerate(&p, &v, unit_between(0, tolerate_least(&p)));
		CHECK(v.ramp.min_ns == p.ramp.min_ns &&
		      v.ramp.max_ns == p.ramp.max_ns &&
		      v.ramp.slope == p.ramp.slope, "another ramp");
	}
}

static void tolerate_beyond_the_ramp_moves_and_widens_it(void)
{
	int i;

	for (i = 0; i < 20000; i++) {
		struct dualpi2_config cfg = unit_config();
		u32 burst, width;
		struct dualpi2_params p;
		struct dualpi2_vars v;
		u64 want;

		cfg.step_thresh_us = unit_any(0, 200000);
		cfg.ramp_us = unit_any(0, 200000);
		cfg.ramp_is_set = true;
		p = unit_params(&cfg);
		v = unit_vars(&p);
		burst = unit_any(tolerate_least(&p) + 1, U32_MAX);
		width = p.ramp.max_ns - p.ramp.min_ns;
		width = width < burst / 4 ? burst / 4 : width;
		want = (u64)burst + width;
		want = want > U32_MAX ? U32_MAX : want;
		dualpi2_tolerate(&p, &v, burst);
		CHECK_EQ(v.ramp.min_ns, burst);
		CHECK_EQ(v.ramp.max_ns, want);
		CHECK_EQ(dualpi2_native_q32(&p, &v.ramp, burst, 10), 0);
		if (want > burst + 1000ULL) {
			CHECK_NEAR(dualpi2_native_q32(&p, &v.ramp,
						      (burst + want) / 2, 10),
				   ONE / 2, ONE / 500);
			CHECK_EQ(dualpi2_native_q32(&p, &v.ramp, want, 10),
				 ONE);
		}
	}
}

static void tolerate_same_ramp(const struct dualpi2_ramp *got,
			       const struct dualpi2_ramp *want)
{
	CHECK_EQ(got->min_ns, want->min_ns);
	CHECK_EQ(got->max_ns, want->max_ns);
	CHECK_EQ(got->slope, want->slope);
}

/* While Classic packets wait another ramp holds, but not for bursts; it is that of
 * the parameters again when they are over, and after a reset.
 */
static void tolerate_bursts_in_shared_queues_as_well(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p;
	struct dualpi2_vars v;

	cfg.bandwidth = 5000000;
	p = unit_params(&cfg);
	v = unit_vars(&p);
	CHECK_EQ(p.ramp.min_ns, 800000);
	CHECK_EQ(p.ramp.max_ns, 1200000);
	CHECK_EQ(p.shared_ramp.min_ns, 480000);
	CHECK_EQ(p.shared_ramp.max_ns, 720000);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
	dualpi2_tolerate(&p, &v, 3 * MS);
	CHECK_EQ(v.ramp.min_ns, 3 * MS);
	CHECK_EQ(v.ramp.max_ns, 3 * MS + 3 * MS / 4);
	tolerate_same_ramp(&v.shared_ramp, &v.ramp);
	dualpi2_tolerate(&p, &v, MS);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
	dualpi2_tolerate(&p, &v, 3 * MS);
	dualpi2_vars_init(&p, &v, LINK_MTU, SEC);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
	/* a quarter of the burst, which is more than the ramp's 400 us */
	dualpi2_tolerate(&p, &v, 2 * MS);
	CHECK_EQ(v.ramp.max_ns, 2 * MS + MS / 2);
	/* up to the begin of the ramp, which is not the one of shared queues */
	cfg.step_thresh_us = 10000;
	p = unit_params(&cfg);
	dualpi2_tolerate(&p, &v, 8 * MS);
	tolerate_same_ramp(&v.ramp, &p.ramp);
	tolerate_same_ramp(&v.shared_ramp, &p.shared_ramp);
}

static void tolerate_no_bursts_with_a_step_in_packets(void)
{
	struct dualpi2_config cfg = unit_config();
	struct dualpi2_params p = unit_params(&cfg);

	CHECK_EQ(p.burst_max_ns, 0);
	cfg.burst_max_us = 5000;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 5 * MS);
	cfg.step_thresh_pkts = 5;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 0);
	cfg.step_thresh_pkts = 0;
	cfg.burst_max_us = 0;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 0);
	cfg.burst_max_us = DUALPI2_BURST_MAX_US_MAX;
	p = unit_params(&cfg);
	CHECK_EQ(p.burst_max_ns, 100 * MS);
}

/* ---- traffic that is in L for its DSCP ---- */

static void nqb_is_what_the_list_says_and_not_l4s(void)
{
	static const u64 masks[] = {
		0, 1ULL << 45, 1, 1ULL << 63, UINT64_MAX, 0x0123456789abcdefULL,
	};
	u32 i, dscp, ecn, mask, l4s;

	for (i = 0; i < ARRAY_SIZE(masks); i++)
		for (mask = 1; mask <= 3; mask++)
			for (l4s = 0; l4s < 2; l4s++)
				for (ecn = 0; ecn < 4; ecn++)
					for (dscp = 0; dscp < 64; dscp++) {
						struct dualpi2_config cfg =
							unit_config();
						bool want = masks[i] >> dscp & 1;

						cfg.nqb = masks[i];
						cfg.ecn_mask = mask;
						cfg.l4s = l4s;
						/* ECT(1), CE, and whatever
						 * is in L anyway
						 */
						want &= !(ecn & 1) &&
							!(l4s && ecn == 2 &&
							  mask & 2);
						CHECK_EQ(dualpi2_is_nqb(&cfg, ecn,
									dscp),
							 want);
					}
}

static u32 nqb_of(u64 rate, u32 mtu_bytes)
{
	return dualpi2_nqb_bytes(dualpi2_ns_per_byte_q20(rate), mtu_bytes);
}

static void nqb_limit_is_ten_milliseconds_of_the_rate(void)
{
	int i;

	CHECK_EQ(nqb_of(5000000, 1514), 50000);
	CHECK_NEAR(nqb_of(302900, 1514), 3029, 1);
	CHECK_NEAR(nqb_of(DUALPI2_BANDWIDTH_MAX, 1514), 1250000000, 125000);
	CHECK_EQ(dualpi2_nqb_bytes(1 << 20, 1514), 10000000);	/* 1 ns a byte */
	/* A link that was seen may be faster than any that can be set. */
	CHECK_EQ(dualpi2_nqb_bytes(1, 1514), INT32_MAX);
	for (i = 0; i < 20000; i++) {
		u64 rate = link_any_rate(), want = rate / 100;
		u32 mtu = unit_between(68, 9018);

		want = want < 2 * mtu ? 2 * mtu : want;
		CHECK_NEAR(nqb_of(rate, mtu), want, 1 + want / 10000);
	}
}

/* Two packets have room at any rate, those with a VLAN tag and jumbo frames, too. */
static void nqb_limit_has_room_for_two_packets_of_the_mtu(void)
{
	static const struct { u32 mtu, want; } rows[] = {
		{ 1, 10 }, { 68, 136 }, { 1514, 3028 }, { 1518, 3036 },
		{ 9014, 18028 }, { 65550, 131100 },
		{ 1073741823, 2147483646 }, { 1073741824, 2147483646 },
		{ INT32_MAX, 2147483646 }, { U32_MAX, 2147483646 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECK_EQ(nqb_of(1000, rows[i].mtu), rows[i].want);
		CHECK_EQ(dualpi2_nqb_bytes(1, rows[i].mtu), INT32_MAX);
	}
	CHECK_EQ(nqb_of(302800, 1514), 3028);
	CHECK_EQ(nqb_of(303600, 1518), 3036);
}

/* 0, and the kernel glue has the delay of the L4S queue decide. */
static void nqb_limit_without_a_rate_is_none(void)
{
	CHECK_EQ(dualpi2_nqb_bytes(0, 1), 0);
	CHECK_EQ(dualpi2_nqb_bytes(0, 1514), 0);
	CHECK_EQ(dualpi2_nqb_bytes(0, U32_MAX), 0);
}

static void link_rate_for_reports_is_the_rate(void)
{
	int i;

	CHECK_EQ(dualpi2_rate(0), 0);
	CHECK_EQ(dualpi2_rate(1 << 20), 1000000000);	/* 1 ns a byte */
	for (i = 0; i < 20000; i++) {
		u64 rate = link_any_rate();

		CHECK_NEAR(dualpi2_rate(dualpi2_ns_per_byte_q20(rate)), rate,
			   1 + rate / 10000);
	}
}

/* ---- configuration ---- */

static void link_options_reach_the_parameters(void)
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
	/* until the kernel glue knows that timers are exact */
	CHECK_EQ(p.link.late_max_ns, DUALPI2_LATE_MAX_NS);
}

/* Limits as the kernel glue asks for them: of a shaper, or of a rate that was seen. */
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
		dualpi2_memory_limit_bytes(cfg, mtu_bytes, ns_per_byte_q20,
					   target_ns),
	};
}

static void limit_of_a_shaper_follows_its_rate(void)
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
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dualpi2_config cfg = unit_config();
		u32 target_ns = cases[i].target_ms * MS;
		struct limits got;

		cfg.bandwidth = cases[i].rate;
		/* Times of a byte are rounded, to 2^-20 ns. */
		got = limits_of(&cfg, cfg.bandwidth, 1514, target_ns);
		CHECK_NEAR(got.pkts, cases[i].pkts, cases[i].pkts / 1000000);
		CHECK_NEAR(got.memory, cases[i].memory,
			   cases[i].memory / 1000000);
		got = limits_of(&cfg, cfg.bandwidth, 9014, target_ns);
		CHECK_NEAR(got.memory, cases[i].memory_9014,
			   cases[i].memory_9014 / 1000000);
	}
}

/* Without a shaper a rate that was seen raises the limits and never lowers them. */
static void limit_without_a_shaper_is_raised_by_the_rate(void)
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
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dualpi2_config cfg = unit_config();
		struct limits got = limits_of(&cfg, cases[i].rate, 1514,
					      cases[i].target_ms * MS);

		CHECK_NEAR(got.pkts, cases[i].pkts, 1 + cases[i].pkts / 10000);
		CHECK_NEAR(got.memory, cases[i].memory,
			   cases[i].memory / 10000);
		if (cases[i].pkts == 10000)
			CHECK_EQ(got.pkts, 10000);
		if (cases[i].memory == 30280000)
			CHECK_EQ(got.memory, 30280000);
	}
}

/* What the user says counts, with a shaper and without. */
static void limit_given_by_the_user_is_kept(void)
{
	static const u64 rates[] = { 0, 1000, 5000000, 125000000000 };
	u32 i;
	int shaped;

	for (shaped = 0; shaped < 2; shaped++)
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct dualpi2_config cfg = unit_config();
		u32 pkts;

		cfg.bandwidth = shaped ? rates[i] : 0;
		pkts = limits_of(&cfg, rates[i], 1514, 15 * MS).pkts;
		/* memory alone: packets as before */
		cfg.memory_limit_is_set = true;
		cfg.memory_limit_bytes = 77;
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).memory, 77);
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).pkts, pkts);
		/* both */
		cfg.limit_is_set = true;
		cfg.limit_pkts = 3;
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).memory, 77);
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).pkts, 3);
		/* packets alone: two MTU of memory for each */
		cfg.memory_limit_is_set = false;
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).pkts, 3);
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).memory,
			 3 * 2 * 1514);
		cfg.limit_pkts = U32_MAX;
		CHECK_EQ(limits_of(&cfg, rates[i], 1514, 15 * MS).memory,
			 U32_MAX);
	}
}

/* 15 ms in packets of 1514 bytes, whose memory is 2304 bytes in most drivers and
 * counts as two MTU here, do not fill the queues, or p' would never rise.
 */
static void limit_at_10_and_100_gbit_has_room_for_the_target(void)
{
	static const u64 rates[] = { 1250000000, 12500000000 };
	u32 i;
	int shaped;

	for (shaped = 0; shaped < 2; shaped++)
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct dualpi2_config cfg = unit_config();
		u64 pkts = rates[i] * 15 / 1000 / 1514;
		struct limits got;

		cfg.bandwidth = shaped ? rates[i] : 0;
		got = limits_of(&cfg, rates[i], 1514, 15 * MS);
		CHECK(got.pkts > pkts, "%u packets, 15 ms are %llu", got.pkts,
		      (ull)pkts);
		CHECK(got.memory > pkts * 3028, "%u bytes, 15 ms are %llu",
		      got.memory, (ull)pkts * 3028);
		/* 24 ns of 1 s, at most, are lost to the rounding of the rate */
		CHECK(got.pkts <= rates[i] * 3 / 100 / 64 * 1.0001,
		      "%u packets", got.pkts);
	}
}

/* By the definition, in long double. */
static void limit_of_any_rate_target_and_mtu_does_not_wrap(void)
{
	int i;

	for (i = 0; i < 100000; i++) {
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
		CHECK(fabsl(got.pkts - pkts) < 1.01L, "%u packets, want %Lf",
		      got.pkts, pkts);
		CHECK(fabsl(got.memory - memory) < 2.01L, "%u bytes, want %Lf",
		      got.memory, memory);
	}
}

/* To the byte, and whole ones: 250 ms, 16 MiB from 14.9 ns a byte down, twice the
 * target from 1.8 ns down.
 */
static void limit_in_bytes_is_exact(void)
{
	int i;

	for (i = 0; i < 20000; i++) {
		u64 slow = unit_between(15 << 20, 1000 << 20);
		u64 fast = unit_between(1 << 13, 1 << 20);

		CHECK_EQ(dualpi2_limit_bytes(slow, 15 * MS),
			 (250 * MS << 20) / slow);
		CHECK_EQ(dualpi2_limit_bytes(fast, 15 * MS),
			 (30 * MS << 20) / fast);
	}
	CHECK_EQ(dualpi2_limit_bytes(14 << 20, 15 * MS), 16777216);
	CHECK_EQ(dualpi2_limit_bytes(2 << 20, 15 * MS), 16777216);
}

/* 1 Tbit/s and 4.29 s, the greatest of both, are 1.07 * 10^12 bytes. */
static void limit_of_the_greatest_rate_and_target_does_not_wrap(void)
{
	u64 ns_per_byte_q20 = dualpi2_ns_per_byte_q20(DUALPI2_BANDWIDTH_MAX);
	struct dualpi2_config cfg = unit_config();
	u64 bytes = dualpi2_limit_bytes(ns_per_byte_q20, U32_MAX);
	int shaped;

	CHECK_NEAR(bytes, 1073741823750, 1073741823750 / 10000);
	for (shaped = 0; shaped < 2; shaped++) {
		cfg.bandwidth = shaped ? DUALPI2_BANDWIDTH_MAX : 0;
		CHECK_EQ(dualpi2_limit_pkts(&cfg, ns_per_byte_q20, U32_MAX),
			 U32_MAX);
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, U32_MAX,
						    ns_per_byte_q20, U32_MAX),
			 U32_MAX);
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, 60, ns_per_byte_q20,
						    U32_MAX), U32_MAX);
		/* A link that was seen may be faster still. */
		CHECK_EQ(dualpi2_limit_pkts(&cfg, 1, U32_MAX), U32_MAX);
		CHECK_EQ(dualpi2_memory_limit_bytes(&cfg, 60, 1, U32_MAX),
			 U32_MAX);
	}
}

static const struct unit_test link_tests[] = {
	TEST(link_bytes_match_worked_examples),
	TEST(link_bytes_of_any_packet_match_counting),
	TEST(link_bytes_of_huge_packets_are_bounded),
	TEST(link_gso_bytes_are_those_of_the_segments),
	TEST(link_gso_bytes_of_lying_headers_are_bounded),
	TEST(link_time_of_a_packet_is_exact),
	TEST(link_time_of_huge_packets_does_not_wrap),
	TEST(link_time_of_a_queue_is_right_at_all_rates),
	TEST(link_bytes_of_a_time_invert_the_time_of_bytes),
	TEST(clock_never_drifts),
	TEST(clock_waits_until_its_time_and_no_longer),
	TEST(clock_of_huge_packets_is_bounded),
	TEST(clock_idle_time_gives_no_burst),
	TEST(clock_late_packets_are_made_up_for_up_to_a_bound),
	TEST(clock_with_exact_timers_catches_up_on_one_millisecond),
	TEST(clock_any_interval_holds_the_rate_and_one_packet),
	TEST(clock_without_shaper_never_waits),
	TEST(clock_change_neither_stalls_nor_bursts),
	TEST(clock_change_to_no_shaper_forgets_all),
	TEST(clock_change_of_something_else_gives_nothing_away),
	TEST(clock_change_from_no_shaper_gives_no_burst),
	TEST(ingress_drops_take_their_time_of_the_link),
	TEST(ingress_two_thirds_of_the_rate_are_left),
	TEST(ingress_debt_is_bounded),
	TEST(ingress_debt_is_paid_by_idle_time),
	TEST(clock_is_the_cause_unless_packets_leave_late),
	TEST(egress_drops_owe_nothing),
	TEST(ingress_turned_off_forgives),
	TEST(drain_rate_of_bursts_is_not_seen),
	TEST(drain_rate_of_a_standing_backlog_is_that_of_the_link),
	TEST(drain_rate_counts_after_the_first_millisecond),
	TEST(drain_begin_that_wraps_is_harmless),
	TEST(drain_bytes_that_wrap_are_harmless),
	TEST(drain_rate_is_seen_of_queues_that_hold_packets),
	TEST(drain_rate_follows_the_link),
	TEST(drain_rate_of_queues_that_never_hold_two_is_unknown),
	TEST(drain_rate_without_the_time_of_a_pause),
	TEST(drain_rate_forgets_a_quarter_at_each_update),
	TEST(drain_rate_of_a_link_that_stood_still_is_bounded),
	TEST(drain_rate_of_any_link_stays_in_bounds),
	TEST(burst_smooth_arrivals_leave_the_ramp_alone),
	TEST(burst_random_arrivals_leave_the_ramp_alone),
	TEST(burst_aggregates_are_tolerated),
	TEST(burst_tolerance_decays_with_smooth_arrivals),
	TEST(burst_floods_are_not_tolerated),
	TEST(burst_flood_without_end_is_not_tolerated),
	TEST(burst_of_small_packets_at_the_rate_is_none),
	TEST(burst_of_a_small_part_is_not_tolerated),
	TEST(burst_none_without_rate_or_bound),
	TEST(burst_bound_that_falls_holds_at_once),
	TEST(burst_ends_with_a_pause_of_a_quarter_of_an_mtu),
	TEST(burst_mean_is_that_of_a_list_of_arrivals),
	TEST(burst_is_more_than_two_packets),
	TEST(burst_at_the_greatest_rate_comes_at_once),
	TEST(burst_as_long_as_may_be_is_one),
	TEST(burst_too_long_is_cut_at_the_update),
	TEST(burst_tolerance_ends_at_the_bound),
	TEST(burst_sums_are_bounded),
	TEST(burst_of_anything_stays_in_bounds),
	TEST(tolerate_below_the_ramp_changes_nothing),
	TEST(tolerate_beyond_the_ramp_moves_and_widens_it),
	TEST(tolerate_bursts_in_shared_queues_as_well),
	TEST(tolerate_no_bursts_with_a_step_in_packets),
	TEST(nqb_is_what_the_list_says_and_not_l4s),
	TEST(nqb_limit_is_ten_milliseconds_of_the_rate),
	TEST(nqb_limit_has_room_for_two_packets_of_the_mtu),
	TEST(nqb_limit_without_a_rate_is_none),
	TEST(link_rate_for_reports_is_the_rate),
	TEST(link_options_reach_the_parameters),
	TEST(limit_of_a_shaper_follows_its_rate),
	TEST(limit_without_a_shaper_is_raised_by_the_rate),
	TEST(limit_given_by_the_user_is_kept),
	TEST(limit_at_10_and_100_gbit_has_room_for_the_target),
	TEST(limit_of_any_rate_target_and_mtu_does_not_wrap),
	TEST(limit_in_bytes_is_exact),
	TEST(limit_of_the_greatest_rate_and_target_does_not_wrap),
};
