// SPDX-License-Identifier: GPL-2.0-only
/* The rate at which queues drain, as observed by their departures. */

#include "link_test.h"

/* Packets leave a link of a rate, one in 40 of them with nothing behind.  Before
 * each backlog that is seen, it has one for the time that is not.
 */
static u64 drain_play(struct dualpi2_drain *d, u64 now, u64 rate, int packets)
{
	for (int i = 0; i < packets; i++) {
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
	for (int i = packets - 1; i >= 0; i--) {
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
UNIT_TEST(drain_rate_of_bursts_is_not_seen)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, due = now + 16 * MS;

	for (int i = 0; i < 1000; i++) {
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
	for (int i = 0; i < 1000; i++) {
		drain_burst(&d, now, 45);
		now += 2 * MS;
		dualpi2_drain_update(&d, now);
	}
	drain_check(&d, 125000000);
}

/* From the first estimate on, at any rate that has packets enough for 1 %. */
UNIT_TEST(drain_rate_of_a_standing_backlog_is_that_of_the_link)
{
	static const u64 rates[] = { 5000000, 125000000, 1250000000, 12500000000 };

	for (u32 i = 0; i < ARRAY_SIZE(rates); i++) {
		struct dualpi2_drain d = {};
		u64 now = SEC + i;

		for (int k = 0; k < 5; k++) {
			now = drain_full(&d, now, rates[i], 1);
			drain_check(&d, rates[i]);
		}
	}
}

/* The first millisecond does not count, with its packets. */
UNIT_TEST(drain_rate_counts_after_the_first_millisecond)
{
	for (u64 begin = SEC; begin < SEC + 4; begin++) {
		for (u64 gap = MS - 2; gap < MS + 2; gap++) {
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
UNIT_TEST(drain_begin_that_wraps_is_harmless)
{
	static const u64 begins[] = {
		1, (1ULL << 32) - MS, (1ULL << 32) - 2, (1ULL << 32) - 1,
		1ULL << 32, (1ULL << 32) + 1, (7ULL << 32) - 1, 7ULL << 32,
		(7ULL << 32) + 1, (1ULL << 62) - 1, 1ULL << 62,
	};

	for_each(begin, begins) {
		struct dualpi2_drain d = {};
		u64 now = *begin;

		dualpi2_drain_sent(&d, 1514, true, now);
		dualpi2_drain_sent(&d, 1514, true, now + MS - 2);
		CHECK_EQ(d.since_ns, 0);
		dualpi2_drain_sent(&d, 1514, true, now + MS + 1);
		CHECK_EQ(d.since_ns, now + MS + 1);
		CHECK_EQ(d.busy_bytes, 1514);

		/* A link stops for 2^32 ns, or for some of them. */
		for (int k = 1; k < 4; k++) {
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
UNIT_TEST(drain_bytes_that_wrap_are_harmless)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, seen;

	now = drain_full(&d, now, 12500000000, 20);
	drain_check(&d, 12500000000);
	seen = d.ns_per_byte_q20;
	/* 2^32 bytes at half the rate, in packets of 2^22 */
	for (int i = 0; i < 1024; i++) {
		dualpi2_drain_sent(&d, 1 << 22, true, now);
		now += (u64)link_exact_ns(6250000000, 1 << 22);
	}
	dualpi2_drain_update(&d, now);
	CHECK_EQ(d.ns_per_byte_q20, seen);
	dualpi2_drain_sent(&d, 1514, true, now);
	dualpi2_drain_update(&d, now + 242);
	CHECK(dualpi2_rate(d.ns_per_byte_q20) < 7500000000, "%llu bytes/s",
	      (ull)dualpi2_rate(d.ns_per_byte_q20));
	/* Sums beyond 2^32 bytes are the same to it: it forgets a quarter of them. */
	for (int k = 0; k < 40; k++) {
		for (int i = 0; i < 1100; i++) {
			dualpi2_drain_sent(&d, 1 << 22, true, now);
			now += (u64)link_exact_ns(6250000000, 1 << 22);
		}
		seen = d.busy_bytes;
		dualpi2_drain_update(&d, now);
		CHECK_EQ(d.busy_bytes, seen - seen / 4);
	}
	CHECK(d.busy_bytes >> 32, "%llu bytes", (ull)d.busy_bytes);
	drain_check(&d, 6250000000);
}

UNIT_TEST(drain_rate_is_seen_of_queues_that_hold_packets)
{
	static const u64 rates[] = { 12500, 500000, 5000000, 125000000, 1250000000 };

	for_each(rate, rates) {
		struct dualpi2_drain d = {};
		u64 now = SEC, seen;

		for (u32 k = 0; k < 20; k++) {
			now = drain_play(&d, now, *rate, 50);
			dualpi2_drain_update(&d, now);
		}
		seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
		CHECK(seen > *rate * 0.99 && seen < *rate * 1.01,
		      "%llu bytes/s of %llu", (ull)seen, (ull)(*rate));
	}
}

UNIT_TEST(drain_rate_follows_the_link)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, seen;

	for (int k = 0; k < 50; k++) {
		now = drain_play(&d, now, 5000000, 50);
		dualpi2_drain_update(&d, now);
	}
	for (int k = 0; k < 40; k++) {
		now = drain_play(&d, now, 500000, 50);
		dualpi2_drain_update(&d, now);
	}
	seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
	CHECK(seen > 490000 && seen < 510000, "%llu bytes/s", (ull)seen);
	for (int k = 0; k < 60; k++) {
		now = drain_play(&d, now, 5000000, 50);
		dualpi2_drain_update(&d, now);
	}
	seen = dualpi2_ns_bytes(d.ns_per_byte_q20, SEC);
	CHECK(seen > 4900000 && seen < 5100000, "%llu bytes/s", (ull)seen);
}

UNIT_TEST(drain_rate_of_queues_that_never_hold_two_is_unknown)
{
	struct dualpi2_drain d = {};
	u64 seen;

	for (int i = 0; i < 1000; i++) {
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
	for (int i = 0; i < 1000; i++)
		dualpi2_drain_update(&d, (601 + i) * SEC);
	CHECK_EQ(d.ns_per_byte_q20, seen);
}

/* Packets that were purged are no reason to count the time after it. */
UNIT_TEST(drain_rate_without_the_time_of_a_pause)
{
	struct dualpi2_drain d = {};
	u64 now = SEC, seen;

	for (int k = 0; k < 20; k++) {
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
UNIT_TEST(drain_rate_forgets_a_quarter_at_each_update)
{
	for (int i = 0; i < 300; i++) {
		long double ns = 0, bytes = 0;
		struct dualpi2_drain d = {};
		u64 now = unit_any(1, SEC);

		for (int k = 0; k < 30; k++) {
			u32 slow = unit_between(1, 2000);
			bool seen = false;

			for (int n = unit_between(1, 30); n; n--) {
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
			      "%llu / 2^20 ns a byte, not %Lf", (ull)d.ns_per_byte_q20, ns / bytes);
			ns *= 0.75L;
			bytes *= 0.75L;
		}
	}
}

/* 2^42 ns, or 73 minutes, are as much as any longer time. */
UNIT_TEST(drain_rate_of_a_link_that_stood_still_is_bounded)
{
	static const struct { u64 busy_ns, want; } cases[] = {
		{ 1ULL << 41, (1ULL << 61) / 8000000 },
		{ (1ULL << 42) - 8, ((1ULL << 62) - (8 << 20)) / 8000000 },
		{ 1ULL << 42, (1ULL << 62) / 8000000 },
		{ (1ULL << 42) + 8, (1ULL << 62) / 8000000 },
		{ 1ULL << 60, (1ULL << 62) / 8000000 },
	};

	for_each(c, cases) {
		struct dualpi2_drain d = {};

		dualpi2_drain_sent(&d, 60, true, SEC - MS);
		dualpi2_drain_sent(&d, 8000000, true, SEC);
		dualpi2_drain_update(&d, SEC + c->busy_ns);
		CHECK_EQ(d.ns_per_byte_q20, c->want);
	}
}

UNIT_TEST(drain_rate_of_any_link_stays_in_bounds)
{
	u64 most = 1000000ULL << 20;
	struct dualpi2_drain d = {};

	/* at once: the rate is finite, and dividing by it is safe */
	dualpi2_drain_sent(&d, 1514, true, SEC - MS);
	for (int i = 0; i < 100; i++)
		dualpi2_drain_sent(&d, 1514, true, SEC);
	dualpi2_drain_update(&d, SEC);
	CHECK_EQ(d.ns_per_byte_q20, 1);
	/* a link that stood still for years */
	dualpi2_drain_sent(&d, 60, true, 1ULL << 60);
	dualpi2_drain_update(&d, 1ULL << 60);
	CHECK_EQ(d.ns_per_byte_q20, most);
	for (int k = 0; k < 2000; k++) {
		u64 now = unit_rnd() >> 1;

		memset(&d, 0, sizeof(d));
		for (int i = 0; i < 50; i++) {
			dualpi2_drain_sent(&d, unit_any(1, U32_MAX), unit_rnd() & 3, now);
			now += unit_any(0, 1ULL << 50);
			if (!(unit_rnd() % 8))
				dualpi2_drain_update(&d, now);
			CHECK(d.ns_per_byte_q20 <= most, "%llu", (ull)d.ns_per_byte_q20);
		}
	}
}
