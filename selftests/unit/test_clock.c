// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shaper: when the next packet may leave, and the link time charged for drops in ingress mode.
 * Expected values come from division in long double and from simulated links.
 */

#include "link_test.h"

/* Each packet leaves when it may: over any number of them the rate holds to the
 * fraction of a nanosecond.
 */
UNIT_TEST(clock_never_drifts)
{
	for (int i = 0; i < 200; i++) {
		u64 rate = link_any_rate(), now = unit_between(0, 1ULL << 50);
		struct dualpi2_link link = link_of(rate, unit_rnd() & 1);
		struct dualpi2_clock c = link_clock(&link, now);
		u64 start = now, bytes = 0, per_byte = link.ns_per_byte_q20;
		long double want;

		CHECK_EQ(c.next_ns, now);
		for (int k = 0; k < 2000; k++) {
			u32 len = unit_any(1, 9000);

			CHECK(!dualpi2_clock_wait(&c, now), "waits at its time");
			CHECK(!now || !k || bytes * per_byte >> 20 == 0 ||
			      dualpi2_clock_wait(&c, now - 1) || now == start, "too early");
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

UNIT_TEST(clock_waits_until_its_time_and_no_longer)
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
UNIT_TEST(clock_of_huge_packets_is_bounded)
{
	static const struct { u64 bytes, ns; } cases[] = {
		{ 4194303, 4194303000 }, { 4194304, 4194304000 },
		{ 4194305, 4194304000 }, { 1ULL << 32, 4194304000 },
		{ UINT64_MAX, 4194304000 },
	};
	struct dualpi2_link link = link_of(1000000, false);	/* 1 us a byte */

	for_each(row, cases) {
		struct dualpi2_clock c = link_clock(&link, SEC);

		dualpi2_clock_send(&link, &c, row->bytes, SEC);
		CHECK_EQ(c.next_ns, SEC + row->ns);
	}
}

/* No credit for time in which there was nothing to send. */
UNIT_TEST(clock_idle_time_gives_no_burst)
{
	for (int i = 0; i < 1000; i++) {
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
		CHECK(own < 2 || dualpi2_clock_wait(&c, now + own - 2), "a second packet at once");
	}
}

/* A late timer costs nothing up to 10 ms, and is no licence for more than that. */
UNIT_TEST(clock_late_packets_are_made_up_for_up_to_a_bound)
{
	struct dualpi2_link link = link_of(1000000, false);
	struct dualpi2_clock c = link_clock(&link, SEC);
	u64 now = SEC, sent = 0;

	for (int i = 0; i < 10000; i++) {
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
UNIT_TEST(clock_with_exact_timers_catches_up_on_one_millisecond)
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
	unsigned int n;

	CHECK_EQ(DUALPI2_LATE_EXACT_NS, MS);
	CHECK_EQ(DUALPI2_LATE_MAX_NS, 10 * MS);
	for_each(row, rows) {
		struct dualpi2_clock c = link_clock(&link, SEC);

		link.late_max_ns = row->late_max_ns;
		dualpi2_clock_send(&link, &c, 1000, SEC + row->late_ns);
		CHECK_EQ(c.next_ns, SEC + row->next_ns);
	}
	/* 1 Gbit/s, 10 ms late: packets of 100 bytes, 800 ns, that leave at once */
	link = link_of(125000000, false);
	for_each(bound, bounds) {
		struct dualpi2_clock c = link_clock(&link, SEC);

		link.late_max_ns = *bound;
		for (n = 0; !dualpi2_clock_wait(&c, SEC + 10 * MS); n++)
			dualpi2_clock_send(&link, &c, 100, SEC + 10 * MS);
		CHECK_EQ(n, *bound / 800 + 1);
	}
}

/* Never more than the rate and one packet, whenever one looks, if served in time. */
UNIT_TEST(clock_any_interval_holds_the_rate_and_one_packet)
{
	for (int i = 0; i < 300; i++) {
		u64 rate = unit_any(12500, 1250000000), now = SEC;
		struct dualpi2_link link = link_of(rate, false);
		struct dualpi2_clock c = link_clock(&link, now);
		/* Most that left since any earlier moment, beyond the rate. */
		long double excess = 0, last = now;

		for (int k = 0; k < 500; k++) {
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
			      "%Lf bytes beyond %llu bytes/s", excess, (ull)rate);
			dualpi2_clock_send(&link, &c, len, now);
		}
	}
}

UNIT_TEST(clock_without_shaper_never_waits)
{
	struct dualpi2_link link = link_of(0, true);
	struct dualpi2_clock c = link_clock(&link, SEC);

	CHECK(!dualpi2_clock_wait(&c, 0), "waits without a shaper");
	dualpi2_clock_start(&link, &c, 2 * SEC);
	CHECK(!dualpi2_clock_wait(&c, 0), "waits without a shaper");
	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.debt_ns, 0);
}

/* A rate that was far lower, or far higher, holds nothing up and lets nothing through. */
UNIT_TEST(clock_change_neither_stalls_nor_bursts)
{
	for (int i = 0; i < 20000; i++) {
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
		CHECK_EQ(c.next_ns, old_next < now + mtu_ns ? old_next : now + mtu_ns);
		/* The packet after it is timed by the new rate. */
		now = now > c.next_ns ? now : c.next_ns;
		old_next = c.next_ns;
		dualpi2_clock_send(&new, &c, 1000, now);
		CHECK_NEAR(c.next_ns - old_next, (u64)link_exact_ns(rate, 1000),
			   2 + (u64)(link_exact_ns(rate, 1000) * 0.0001L));
	}
}

UNIT_TEST(clock_change_to_no_shaper_forgets_all)
{
	struct dualpi2_link old = link_of(1000, true), new = link_of(0, true);
	struct dualpi2_clock c = link_clock(&old, SEC);

	dualpi2_clock_drop(&old, &c, 50);
	dualpi2_clock_send(&old, &c, 1500, SEC);
	dualpi2_clock_change(&old, &new, &c, LINK_MTU, SEC);
	CHECK_EQ(c.next_ns | c.debt_ns | c.frac_q20, 0);
	CHECK(!dualpi2_clock_wait(&c, 0), "waits without a shaper");
}

/* Another option was changed: what is waited for is waited for. */
UNIT_TEST(clock_change_of_something_else_gives_nothing_away)
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

/* Queues that held packets when the shaper came: no more than one of them leaves at once. */
UNIT_TEST(clock_change_from_no_shaper_gives_no_burst)
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
	CHECK(c.next_ns <= now + 2 * 1214400, "stalls for %llu ns", (ull)(c.next_ns - now));
}

/* ---- link time charged for drops ---- */

UNIT_TEST(ingress_drops_take_their_time_of_the_link)
{
	for (int i = 0; i < 200; i++) {
		u64 rate = unit_any(125000, 1250000000), now = SEC;
		struct dualpi2_link link = link_of(rate, true);
		struct dualpi2_clock c = link_clock(&link, now);
		u64 bytes = 0;
		int drops = 0;
		long double want;

		/* One in four, so that they are paid for as they go. */
		for (int k = 0; k < 400; k++) {
			u32 len = unit_between(60, 1514);

			if (k % 4 == 1) {
				dualpi2_clock_drop(&link, &c, len);
				drops++;
			} else {
				u64 next = c.next_ns, own;

				dualpi2_clock_send(&link, &c, len, now);
				own = dualpi2_bytes_ns(link.ns_per_byte_q20, len);
				CHECK(c.next_ns - next <= own + own / 2 + 3,
				      "pays %llu ns, its own time is %llu",
				      (ull)(c.next_ns - next), (ull)own);
				now = c.next_ns;
			}
			bytes += len;
		}
		for (int k = 0; c.debt_ns; k++) {
			CHECK(k < 10000, "%llu ns stay charged for ever", (ull)c.debt_ns);
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
UNIT_TEST(ingress_two_thirds_of_the_rate_are_left)
{
	struct dualpi2_link link = link_of(1250000, true);
	struct dualpi2_clock c = link_clock(&link, SEC);
	u64 now = SEC, sent = 0;

	for (int i = 0; i < 1000; i++) {
		for (int k = 0; k < 50; k++)
			dualpi2_clock_drop(&link, &c, 1514);
		dualpi2_clock_send(&link, &c, 1000, now);
		sent += 1000;
		now = c.next_ns;
	}
	CHECK_EQ(now - SEC, (800 + 400) * sent);
}

UNIT_TEST(ingress_debt_is_bounded)
{
	struct dualpi2_link link = link_of(1000000, true);
	struct dualpi2_clock c = link_clock(&link, SEC);

	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.debt_ns, 1514000);
	for (int i = 0; i < 65; i++)
		dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.debt_ns, 66 * 1514000);
	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.debt_ns, 100 * MS);
	for (int i = 0; i < 100; i++)
		dualpi2_clock_drop(&link, &c, UINT64_MAX);
	CHECK_EQ(c.debt_ns, 100 * MS);
	/* It does not make the next packet itself wait. */
	CHECK(!dualpi2_clock_wait(&c, SEC), "waits for the time charged");
	/* 100 ms are paid by packets of 1 ms, and then it is over. */
	for (int i = 1; i <= 200; i++) {
		dualpi2_clock_send(&link, &c, 1000, c.next_ns);
		CHECK_EQ(c.next_ns, SEC + 3 * i * (MS / 2));
	}
	CHECK_EQ(c.debt_ns, 0);
	dualpi2_clock_send(&link, &c, 1000, c.next_ns);
	CHECK_EQ(c.next_ns, SEC + 301 * MS);
}

/* A link that had nothing to do has had its time back. */
UNIT_TEST(ingress_debt_is_paid_by_idle_time)
{
	struct dualpi2_link link = link_of(1000000, true);
	struct dualpi2_clock c = link_clock(&link, SEC);

	for (int i = 0; i < 50; i++)
		dualpi2_clock_drop(&link, &c, 1000);
	CHECK_EQ(c.debt_ns, 50 * MS);
	dualpi2_clock_start(&link, &c, SEC + 20 * MS);
	CHECK_EQ(c.debt_ns, 30 * MS);
	CHECK_EQ(c.next_ns, SEC + 20 * MS);
	dualpi2_clock_start(&link, &c, SEC + 20 * MS);
	CHECK_EQ(c.debt_ns, 30 * MS);
	dualpi2_clock_start(&link, &c, 2 * SEC);
	CHECK_EQ(c.debt_ns, 0);
	/* to a whole number of times that it has had before, too */
	dualpi2_clock_drop(&link, &c, 1000);
	dualpi2_clock_start(&link, &c, 4 * SEC);
	CHECK_EQ(c.debt_ns, 0);
	/* since boot, which is time 0 */
	c = link_clock(&link, 0);
	dualpi2_clock_drop(&link, &c, 3000);
	dualpi2_clock_start(&link, &c, 2 * MS);
	CHECK_EQ(c.debt_ns, MS);
	CHECK_EQ(c.next_ns, 2 * MS);
}

/* Packets that leave 10 ms late wait for something else than the shaper. */
UNIT_TEST(clock_is_the_cause_unless_packets_leave_late)
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

UNIT_TEST(egress_drops_owe_nothing)
{
	struct dualpi2_link link = link_of(1000000, false);
	struct dualpi2_clock c = link_clock(&link, SEC);

	dualpi2_clock_drop(&link, &c, 1514);
	CHECK_EQ(c.debt_ns, 0);
}

UNIT_TEST(ingress_turned_off_forgives)
{
	struct dualpi2_link link = link_of(1000000, true);
	struct dualpi2_link twice = link_of(2000000, true), egress = link;
	struct dualpi2_clock c = link_clock(&link, SEC);

	dualpi2_clock_drop(&link, &c, 1514);
	dualpi2_clock_change(&link, &link, &c, LINK_MTU, SEC);
	CHECK_EQ(c.debt_ns, 1514000);
	dualpi2_clock_change(&link, &twice, &c, LINK_MTU, SEC);
	CHECK_EQ(c.debt_ns, 1514000);
	egress.ingress = false;
	dualpi2_clock_change(&twice, &egress, &c, LINK_MTU, SEC);
	CHECK_EQ(c.debt_ns, 0);
	dualpi2_clock_drop(&link, &c, 1514);
	dualpi2_clock_change(&link, &egress, &c, LINK_MTU, SEC);
	CHECK_EQ(c.debt_ns, 0);
}
