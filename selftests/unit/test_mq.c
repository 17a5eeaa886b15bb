// SPDX-License-Identifier: GPL-2.0-only
/* The clock that several transmit queues share: arithmetic, tickets, debts, changes. One thread at a time. */
#include "mq_test.h"

UNIT_TEST(mq_horizon_is_25_us_or_four_packets)
{
	static const struct { u64 rate; u32 mtu; u64 ns; } rows[] = {
		{ 0, 1514, 25000 },
		{ 125000000, 1500, 48000 },
		{ 125000000, 781, 25000 },
		{ 125000000, 782, 25024 },
		{ 250000000, 1500, 25000 },
		{ 1250000000, 1500, 25000 },
		{ 12500000, 1500, 480000 },
		{ 1000, UINT32_MAX, 4 * 4194304000000ULL },
	};

	for_each(row, rows)
		CHECK_EQ(dualpi2_mq_horizon_ns(dualpi2_ns_per_byte_q20(row->rate), row->mtu), row->ns);
}

UNIT_TEST(mq_parameters_follow_from_link_and_queues)
{
	struct dualpi2_link link = link_of(125000000, true);
	struct dualpi2_mq_params p;

	dualpi2_mq_init(&p, &link, 90, 1500, 4);
	CHECK_EQ(p.ns_per_byte_q20, 8 << 20);
	CHECK_EQ(p.horizon_ns, 48000);
	CHECK_EQ(p.l_ticket_ns, 24000);
	CHECK_EQ(p.mtu_ns, 12000);
	CHECK_EQ(p.debt_max_ns, 6000);
	CHECK_EQ(p.late_max_ns, DUALPI2_LATE_MAX_NS);
	CHECK_EQ(p.l_stretch_q24, (100 << 24) / 90);
	CHECK(p.ingress, "not ingress");
	dualpi2_mq_init(&p, &link, 1, UINT32_MAX, 0);
	CHECK_EQ(p.mtu_ns, 8ULL << 22);
	CHECK_EQ(p.l_ticket_ns, 16ULL << 22);
	CHECK_EQ(p.debt_max_ns, p.horizon_ns / 2);
	CHECK_EQ(p.l_stretch_q24, 100 << 24);
}

UNIT_TEST(mq_reserve_gives_intervals_from_the_floor_on)
{
	atomic64_t hand = { 0 };
	u64 idle = 5;

	CHECK_EQ(dualpi2_mq_reserve(&hand, 100, 7, &idle), 100);
	CHECK_EQ(hand.counter, 107);
	CHECK_EQ(idle, 105);
	CHECK_EQ(dualpi2_mq_reserve(&hand, 106, 3, &idle), 107);
	CHECK_EQ(dualpi2_mq_reserve(&hand, 110, 0, &idle), 110);
	CHECK_EQ(dualpi2_mq_reserve(&hand, -4, 1, &idle), 110);
	CHECK_EQ(idle, 105);
	CHECK_EQ(dualpi2_mq_reserve(&hand, 120, 1, NULL), 120);
	/* time V is negative at first */
	hand.counter = -100;
	CHECK_EQ(dualpi2_mq_reserve(&hand, -50, 7, &idle), -50);
	CHECK_EQ(idle, 155);
}

/* By what the queue has kept: nothing, what does not count, a rest of a ticket, the highest debt. */
UNIT_TEST(mq_l4s_reserves_unless_its_debt_stays_small)
{
	static const struct {
		struct dualpi2_mq_queue q;
		u64 credit, next;
		bool waits;
	} rows[] = {
		{ { .l_open = true }, 0, 0, false },
		{ { .c_credit_ns = 5, .drop_ns = 5 }, 0, 0, false },
		{ { .l_open = true, .l_unsummed_ns = 6000 }, 0, 0, false },
		{ { .l_open = true, .drop_ns = 6000 }, 0, 0, false },
		{ { .l_credit_ns = 1000, .l_start_ns = 90000 }, 17000, 26000, false },
		{ { .l_open = true, .l_owed_ns = 6000, .l_owed_since_ns = 9000 }, 16000, 31000, true },
	};

	for_each(row, rows) {
		struct mq_world w = mq_world(125000000, 4, false);
		struct dualpi2_mq_queue *q = &w.q[0];
		u64 wake = 7, now = 10000;

		*q = row->q;
		/* 4 us of a backlog of 16 us. */
		CHECK_EQ(dualpi2_mq_l_ready(&w.p, &w.clock, q, 500, 2000, now, &wake), !row->waits);
		CHECK_EQ(wake, row->waits ? 15000 : 7);
		CHECK_EQ(q->l_credit_ns, row->credit);
		CHECK_EQ(w.clock.l_next_ns.counter, row->next);
		CHECK_EQ(q->l_owed_ns, 0);
		CHECK(row->next || q->l_owed_since_ns == (s64)now, "since %lld", (long long)q->l_owed_since_ns);
	}
}

UNIT_TEST(mq_settle_reserves_what_is_owed_and_sums_what_was_used)
{
	struct mq_world w = mq_world(125000000, 4, false);
	struct dualpi2_mq_queue *q = &w.q[0];

	q->l_unsummed_ns = 7000;
	q->l_owed_since_ns = SEC;
	dualpi2_mq_settle(&w.p, &w.clock, q);
	CHECK_EQ(w.clock.l_used_ns.counter, 7000);
	CHECK_EQ(w.clock.l_next_ns.counter, 0);
	q->l_unsummed_ns = 4000;
	q->l_owed_ns = 3000;
	dualpi2_mq_settle(&w.p, &w.clock, q);
	CHECK_EQ(w.clock.l_used_ns.counter, 11000);
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 3000);
	CHECK_EQ(q->l_owed_ns + q->l_unsummed_ns, 0);
	/* a debt beyond 2^32 ns, at a tenth more while Classic waits */
	w.p.l_stretch_q24 = 11 * (1 << 24) / 10;
	q->l_owed_ns = 10 * SEC;
	q->l_owed_since_ns = 5 * SEC;
	atomic_inc(&w.clock.c_waiting);
	dualpi2_mq_settle(&w.p, &w.clock, q);
	CHECK_NEAR(w.clock.l_next_ns.counter, 16 * SEC, 1000);
}

/* 100 bytes a second: times beyond 2^32 ns. */
UNIT_TEST(mq_l4s_reserves_on_a_slow_link)
{
	struct mq_world w = mq_world(100, 4, false);
	u64 wake = 0;

	CHECK_EQ(w.p.mtu_ns, 15 * SEC);
	CHECK_EQ(w.p.l_ticket_ns, 30 * SEC);
	CHECK(dualpi2_mq_l_ready(&w.p, &w.clock, &w.q[0], 1500, 1500, SEC, &wake), "first");
	CHECK_EQ(w.clock.l_next_ns.counter, 16 * SEC);
	atomic_inc(&w.clock.c_waiting);
	CHECK(!dualpi2_mq_l_ready(&w.p, &w.clock, &w.q[1], 1500, 1500, SEC, &wake), "second");
	CHECK_EQ(wake, 16 * SEC);
	CHECK_NEAR(w.clock.l_next_ns.counter, 16 * SEC + 15 * SEC * 100 / 90, 2000);
	CHECK(!dualpi2_mq_l_ready(&w.p, &w.clock, &w.q[2], 1500, 3000, SEC, &wake), "third");
	CHECK_EQ(w.q[2].l_credit_ns, 30 * SEC);
}

UNIT_TEST(mq_no_packet_counts_as_longer_than_the_longest)
{
	struct mq_world w = mq_world(125000000, 4, false);
	u64 repaid, most = DUALPI2_LINK_BYTES_MAX;
	u32 frac;

	CHECK_EQ(dualpi2_mq_cost(&w.p, &w.q[0], most - 1, &repaid, &frac), 8 * (most - 1));
	CHECK_EQ(dualpi2_mq_cost(&w.p, &w.q[0], most, &repaid, &frac), 8 * most);
	CHECK_EQ(dualpi2_mq_cost(&w.p, &w.q[0], most + 1, &repaid, &frac), 8 * most);
	CHECK_EQ(dualpi2_mq_cost(&w.p, &w.q[0], UINT32_MAX, &repaid, &frac), 8 * most);
	w.p.ns_per_byte_q20 = (2 << 20) + 3;
	CHECK_EQ(dualpi2_mq_cost(&w.p, &w.q[0], 1, &repaid, &frac), 2);
	CHECK_EQ(frac, 3);
}

/* 1 Gbit/s: 12 us a packet, debts of 6 us, tickets of 24 us. */
UNIT_TEST(mq_l4s_reserves_what_it_has_and_waits_for_its_time)
{
	struct mq_world w = mq_world(125000000, 4, false);
	struct dualpi2_mq_queue *a = &w.q[0], *b = &w.q[1];
	u64 wake = 0, now = SEC;

	CHECK(mq_l(&w, a, 1500, 6000, now, &wake), "first packet waits");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 24000);
	CHECK_EQ(a->l_credit_ns, 12000);
	CHECK_EQ(w.clock.l_used_ns.counter, 12000);
	CHECK(mq_l(&w, a, 1500, 4500, now, &wake), "second packet waits");
	CHECK(!mq_l(&w, a, 1500, 3000, now, &wake), "third packet does not wait");
	CHECK_EQ(wake, SEC + 24000);
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 48000);
	/* another queue comes after both, with one packet */
	CHECK(!mq_l(&w, b, 1500, 1500, now, &wake), "a packet of the other queue does not wait");
	CHECK_EQ(wake, SEC + 48000);
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 60000);
	/* asked again: the same ticket; 2 us early is in time */
	CHECK(!mq_l(&w, b, 1500, 1500, SEC + 45999, &wake), "more than 2 us early");
	CHECK_EQ(wake, SEC + 48000);
	CHECK(mq_l(&w, b, 1500, 1500, SEC + 46000, &wake), "2 us early");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 60000);
	CHECK_EQ(b->l_credit_ns, 0);
	/* the rest of a ticket lapses, the hand stays */
	CHECK(mq_l(&w, a, 1500, 3000, SEC + 46000, &wake), "late");
	a->c_open = true;
	dualpi2_mq_l_empty(a);
	CHECK_EQ(a->l_credit_ns, 0);
	CHECK(!a->l_open && a->c_open, "the wrong ticket has ended");
	CHECK(!mq_l(&w, a, 1500, 1500, SEC + 46000, &wake), "lapsed ticket used");
	CHECK_EQ(wake, SEC + 60000);
	CHECK_EQ(w.clock.l_used_ns.counter, 48000);
}

/* A packet larger than a ticket, and one that follows a smaller one that was dropped. */
UNIT_TEST(mq_l4s_ticket_is_at_least_the_first_packet)
{
	struct mq_world w = mq_world(125000000, 4, false);
	u64 wake = 0;

	CHECK(mq_l(&w, w.q, 60000, 60000, SEC, &wake), "waits");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 480000);
	CHECK_EQ(w.q[0].l_credit_ns, 0);
	CHECK(!dualpi2_mq_l_ready(&w.p, &w.clock, w.q, 1000, 1000, SEC, &wake), "does not wait");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 488000);
	CHECK(!dualpi2_mq_l_ready(&w.p, &w.clock, w.q, 1500, 1500, SEC, &wake), "does not wait");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 500000);
	CHECK_EQ(w.q[0].l_credit_ns, 20000);
	CHECK_EQ(wake, SEC + 488000);
	CHECK(mq_l(&w, w.q, 1500, 1500, SEC + 488000, &wake), "waits");
	/* what is left of it and a debt of 5.6 us send 1,700 bytes; the ticket is open still */
	w.clock.l_next_ns.counter = SEC + 489000;
	CHECK(mq_l(&w, w.q, 1700, 1700, SEC + 488000, &wake), "debt not taken");
	CHECK_EQ(w.q[0].l_owed_ns, 5600);
	CHECK_EQ(w.q[0].l_owed_since_ns, SEC + 488000);
}

UNIT_TEST(mq_l4s_sends_small_packets_before_it_reserves)
{
	struct mq_world w = mq_world(125000000, 4, false);
	u64 wake = 0;

	for (int i = 1; i <= 7; i++) {
		CHECK(mq_l(&w, w.q, 100, 100, SEC + i, &wake), "waits");
		CHECK_EQ(w.q[0].l_owed_ns, 800 * i);
		CHECK_EQ(w.clock.l_next_ns.counter | w.clock.l_used_ns.counter, 0);
	}
	CHECK_EQ(w.q[0].l_owed_since_ns, SEC + 1);
	/* the eighth would be beyond 6 us: 5.6 us are settled, and a ticket is taken */
	CHECK(mq_l(&w, w.q, 100, 100, SEC + 5000, &wake), "waits");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 5601 + 800);
	CHECK_EQ(w.clock.l_used_ns.counter, 5600);
	CHECK_EQ(w.q[0].l_owed_ns, 0);
	CHECK_EQ(w.q[0].l_unsummed_ns, 800);
	/* exactly the limit is allowed; not if the hand is more than 2 us ahead */
	CHECK(mq_l(&w, w.q, 650, 650, SEC + 5000, &wake), "waits");
	CHECK_EQ(w.q[0].l_owed_ns, 5200);
	CHECK_EQ(w.q[0].l_unsummed_ns, 6000);
	CHECK(mq_l(&w, w.q, 100, 100, SEC + 5000, &wake), "waits");
	CHECK_EQ(w.q[0].l_owed_ns, 6000);
	CHECK_EQ(w.q[0].l_unsummed_ns, 0);
	CHECK_EQ(w.clock.l_used_ns.counter, 5600 + 6800);
	w.clock.l_next_ns.counter = SEC + 22001;
	CHECK(!mq_l(&w, &w.q[1], 100, 100, SEC + 20000, &wake), "debt behind the hand");
	CHECK_EQ(w.clock.l_next_ns.counter, SEC + 22801);
	w.clock.l_next_ns.counter = SEC + 22000;
	CHECK(mq_l(&w, &w.q[2], 100, 100, SEC + 20000, &wake), "waits");
	CHECK_EQ(w.q[2].l_owed_ns, 800);
}

UNIT_TEST(mq_l4s_leaves_classic_its_part)
{
	struct mq_world w = mq_world(125000000, 4, false);
	u64 wake = 0;

	dualpi2_mq_c_begin(&w.clock, &w.q[3]);
	CHECK(mq_l(&w, w.q, 1500, 3000, SEC, &wake), "waits");
	CHECK_NEAR(w.clock.l_next_ns.counter, SEC + 24000 * 10 / 9, 1);
	CHECK_EQ(w.q[0].l_credit_ns, 12000);
	CHECK_EQ(w.clock.l_used_ns.counter, 12000);
	w.q[1].l_owed_ns = 9000;
	w.q[1].l_unsummed_ns = 9001;
	w.q[1].l_owed_since_ns = 2 * SEC;
	dualpi2_mq_settle(&w.p, &w.clock, &w.q[1]);
	CHECK_NEAR(w.clock.l_next_ns.counter, 2 * SEC + 10000, 1);
	CHECK_EQ(w.clock.l_used_ns.counter, 12000 + 9001);
	CHECK_EQ(w.q[1].l_owed_ns | w.q[1].l_unsummed_ns, 0);
	dualpi2_mq_settle(&w.p, &w.clock, &w.q[1]);
	CHECK_NEAR(w.clock.l_next_ns.counter, 2 * SEC + 10000, 1);
}

UNIT_TEST(mq_classic_ticket_is_in_proportion_to_backlog)
{
	struct mq_world w = mq_world(125000000, 4, false);
	static const struct { u32 own, all; u64 ns; } rows[] = {
		{ 60000, 0, 48000 },		/* not yet known */
		{ 60000, 59999, 48000 },	/* known to be less than the own one */
		{ 60000, 60000, 48000 },
		{ 60000, 120000, 24000 },
		{ 60000, 180000, 16000 },
		{ 60000, 600000, 12000 },	/* a packet of one MTU at least */
		{ 1000, 600000, 8000 },		/* the backlog at most */
		{ 5000, 5000, 40000 },
		{ 0, 0, 0 },
		{ UINT32_MAX, UINT32_MAX, 48000 },
	};

	for_each(row, rows)
		CHECK_EQ(dualpi2_mq_c_ticket_ns(&w.p, row->own, row->all), row->ns);
	/* The lowest rate and the longest packets: no overflow. */
	w = mq_world(1000, 4, false);
	dualpi2_mq_init(&w.p, &w.link, 90, UINT32_MAX, 4);
	CHECK_EQ(dualpi2_mq_c_ticket_ns(&w.p, UINT32_MAX / 2, UINT32_MAX), w.p.horizon_ns / 2 - 1954);
	CHECK_EQ(dualpi2_mq_c_ticket_ns(&w.p, 1000, 1000), SEC);
}

UNIT_TEST(mq_classic_waits_for_its_ticket_in_the_time_that_l4s_leaves)
{
	struct mq_world w = mq_world(125000000, 4, false);
	struct dualpi2_mq_queue *a = &w.q[0], *b = &w.q[1];
	u64 wake = 0;

	dualpi2_mq_scanned(&w.sum, 12000);
	dualpi2_mq_c_begin(&w.clock, a);
	CHECK(mq_c(&w, a, 1500, 6000, SEC, &wake), "first packet waits");
	CHECK_EQ(wake, 0);
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 24000);
	CHECK(mq_c(&w, a, 1500, 4500, SEC, &wake), "second packet waits");
	CHECK_EQ(a->c_credit_ns, 0);
	CHECK(!mq_c(&w, a, 1500, 3000, SEC, &wake), "third packet does not wait");
	CHECK_EQ(wake, SEC + 24000);
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 36000);
	dualpi2_mq_c_begin(&w.clock, b);
	CHECK(!mq_c(&w, b, 1500, 6000, SEC, &wake), "a packet of the other queue does not wait");
	CHECK_EQ(wake, SEC + 36000);
	/* 10 us of L4S push both back */
	atomic64_add(10000, &w.clock.l_used_ns);
	CHECK(!mq_c(&w, a, 1500, 3000, SEC + 24000, &wake), "does not wait for L4S");
	CHECK_EQ(wake, SEC + 34000);
	CHECK(!mq_c(&w, a, 1500, 3000, SEC + 31999, &wake), "more than 2 us early");
	CHECK(dualpi2_mq_c_ready(&w.p, &w.clock, &w.sum, a, 1500, 3000, SEC + 32000, &wake), "2 us early");
	/* once begun, a ticket is not pushed back */
	atomic64_add(10000, &w.clock.l_used_ns);
	CHECK(mq_c(&w, a, 1500, 3000, SEC + 32000, &wake), "pushed back");
	dualpi2_mq_c_empty(&w.clock, a);
	CHECK_EQ(w.clock.c_waiting.counter, 1);
	/* a larger packet than the one asked for: another ticket for the rest */
	CHECK(!mq_c(&w, b, 60000, 60000, SEC + 50000, &wake), "has not reserved so much");
	CHECK_EQ(b->c_credit_ns, 480000);
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 36000 + 480000);
	/* nor is the rest of a ticket that has begun */
	w = mq_world(125000000, 4, false);
	dualpi2_mq_c_begin(&w.clock, a);
	CHECK(mq_c(&w, a, 1500, 6000, SEC, &wake), "first packet waits");
	CHECK_EQ(a->c_credit_ns, 36000);
	atomic64_add(100000, &w.clock.l_used_ns);
	CHECK(mq_c(&w, a, 1500, 4500, SEC, &wake), "the rest pushed back");
	/* a wait of many times what has passed since the clock began */
	w.clock.l_used_ns.counter = 0;
	w.clock.c_next_ns.counter = SEC;
	dualpi2_mq_c_begin(&w.clock, b);
	CHECK(!mq_c(&w, b, 1500, 1500, 7, &wake), "does not wait");
	CHECK_EQ(wake, SEC);
}

/* Who has waited makes up for 10 ms; who begins does not. */
UNIT_TEST(mq_classic_makes_up_for_late_packets)
{
	struct mq_world w = mq_world(125000000, 4, false);
	struct dualpi2_mq_queue *a = &w.q[0];
	u64 wake = 0;

	dualpi2_mq_c_begin(&w.clock, a);
	CHECK(mq_c(&w, a, 1500, 1500, SEC, &wake), "waits");
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 12000);
	CHECK(mq_c(&w, a, 1500, 1500, SEC + 9 * MS, &wake), "waits");
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 24000);
	CHECK(mq_c(&w, a, 1500, 1500, SEC + 99 * MS, &wake), "waits");
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 89 * MS + 12000);
	dualpi2_mq_c_empty(&w.clock, a);
	CHECK(!a->c_busy && !a->c_open && !a->c_waits, "not empty");
	dualpi2_mq_c_begin(&w.clock, a);
	CHECK(mq_c(&w, a, 1500, 1500, SEC + 99 * MS, &wake), "waits");
	CHECK_EQ(w.clock.c_next_ns.counter, SEC + 99 * MS + 12000);
}

UNIT_TEST(mq_waiting_counts_each_queue_once)
{
	struct mq_world w = mq_world(125000000, 4, false);

	for (int i = 0; i < 4; i++) {
		dualpi2_mq_c_begin(&w.clock, &w.q[i]);
		dualpi2_mq_c_begin(&w.clock, &w.q[i]);
		CHECK_EQ(w.clock.c_waiting.counter, i + 1);
	}
	for (int i = 0; i < 4; i++) {
		w.q[i].c_credit_ns = 5;
		dualpi2_mq_c_empty(&w.clock, &w.q[i]);
		dualpi2_mq_c_empty(&w.clock, &w.q[i]);
		CHECK_EQ(w.q[i].c_credit_ns, 0);
		CHECK_EQ(w.clock.c_waiting.counter, 3 - i);
	}
}

/* Over any packets at any rate: their time, to the nanosecond. */
UNIT_TEST(mq_charges_are_exact)
{
	for (int i = 0; i < 300; i++) {
		struct mq_world w = mq_world(link_any_rate(), 4, false);
		u64 now = unit_between(SEC, 1ULL << 50), begin = now, bytes = 0, wake = 0;
		bool l4s = i & 1;

		dualpi2_mq_c_begin(&w.clock, w.q);
		for (int k = 0; k < 100; k++) {
			u32 len = unit_any(1, 70000);

			while (l4s ? !mq_l(&w, w.q, len, len, now, &wake) : !mq_c(&w, w.q, len, len, now, &wake)) {
				CHECK(wake > now, "would ask again at once");
				now = wake;
			}
			bytes += len;
		}
		dualpi2_mq_settle(&w.p, &w.clock, w.q);
		if (l4s)
			CHECK_EQ(w.clock.l_used_ns.counter, bytes * w.p.ns_per_byte_q20 >> 20);
		else
			CHECK_EQ(w.clock.c_next_ns.counter - begin, bytes * w.p.ns_per_byte_q20 >> 20);
	}
}

UNIT_TEST(mq_drops_take_their_time_in_ingress_mode)
{
	struct mq_world w = mq_world(125000000, 4, true);
	struct dualpi2_mq_queue *a = &w.q[0];
	u64 wake = 0;

	dualpi2_mq_c_begin(&w.clock, a);
	CHECK(mq_c(&w, a, 1500, 1500, SEC, &wake), "waits");
	dualpi2_mq_drop(&w.p, a, 1500);
	CHECK_EQ(a->drop_ns, 12000);
	/* half of the own time, twice */
	for (int i = 1; i <= 3; i++) {
		u64 next = SEC + 12000 + (i < 3 ? 18000 * i : 48000);

		while (!mq_c(&w, a, 1500, 1500, wake ?: SEC, &wake))
			;
		CHECK_EQ(w.clock.c_next_ns.counter, next);
	}
	CHECK_EQ(a->drop_ns, 0);
	/* L4S, too */
	dualpi2_mq_drop(&w.p, a, 1000);
	CHECK(mq_l(&w, a, 1500, 1500, 2 * SEC, &wake), "waits");
	CHECK_NEAR(w.clock.l_next_ns.counter, 2 * SEC + 20000, 1);
	CHECK_EQ(w.clock.l_used_ns.counter, 18000);
	CHECK_EQ(a->drop_ns, 2000);
	/* at most 100 ms */
	dualpi2_mq_drop(&w.p, a, UINT64_MAX);
	CHECK_EQ(a->drop_ns, 100 * MS);
	/* time that the link was idle is had back, once */
	w.q[1].drop_ns = 80 * MS;
	w.clock.c_next_ns.counter = 3 * SEC;
	dualpi2_mq_c_empty(&w.clock, a);
	dualpi2_mq_c_begin(&w.clock, a);
	CHECK(mq_c(&w, a, 1500, 1500, 3 * SEC + 60 * MS + 18000, &wake), "waits");
	CHECK_EQ(a->drop_ns, 40 * MS - 6000);
	CHECK(!mq_c(&w, &w.q[1], 1500, 1500, 3 * SEC + 60 * MS + 18000, &wake), "does not wait");
	CHECK_EQ(w.q[1].drop_ns, 80 * MS);
	dualpi2_mq_drop(&w.p, &w.q[3], 1500);
	dualpi2_mq_drop(&w.p, &w.q[3], 1000);
	CHECK_EQ(w.q[3].drop_ns, 20000);
	w.p.ingress = false;
	dualpi2_mq_drop(&w.p, &w.q[2], 1500);
	CHECK_EQ(w.q[2].drop_ns, 0);
}

UNIT_TEST(mq_one_scan_each_millisecond)
{
	struct dualpi2_mq_sum sum = {};

	CHECK(dualpi2_mq_scan_due(&sum, SEC), "not due");
	CHECK(!dualpi2_mq_scan_due(&sum, SEC), "due twice");
	CHECK(!dualpi2_mq_scan_due(&sum, SEC + MS - 1), "due early");
	CHECK(dualpi2_mq_scan_due(&sum, SEC + MS), "not due");
	CHECK_EQ(sum.due_ns.counter, SEC + 2 * MS);
	dualpi2_mq_scanned(&sum, 1ULL << 40);
	CHECK_EQ(sum.c_bytes, UINT32_MAX);
	dualpi2_mq_scanned(&sum, 77);
	CHECK_EQ(sum.c_bytes, 77);
}

UNIT_TEST(mq_reset_of_a_queue_leaves_the_hands)
{
	for (int waits = 0; waits < 2; waits++) {
		struct mq_world w = mq_world(125000000, 4, true);
		struct dualpi2_mq_queue want = {}, *a = &w.q[0];
		u64 wake = 0;

		dualpi2_mq_c_begin(&w.clock, &w.q[1]);
		if (waits)
			dualpi2_mq_c_begin(&w.clock, a);
		CHECK(mq_l(&w, a, 100, 100, SEC, &wake), "waits");
		CHECK(mq_c(&w, a, 1500, 6000, SEC, &wake), "waits");
		dualpi2_mq_drop(&w.p, a, 1500);
		CHECK_EQ(a->l_owed_ns, 800);
		dualpi2_mq_queue_reset(&w.p, &w.clock, a);
		CHECK_EQ(w.clock.c_next_ns.counter, SEC + 48000);
		CHECK_NEAR(w.clock.l_next_ns.counter, SEC + 889, 1);
		CHECK_EQ(w.clock.l_used_ns.counter, 800);
		CHECK_EQ(w.clock.c_waiting.counter, 1);
		CHECK(!memcmp(&want, a, sizeof(want)), "not reset");
	}
}

UNIT_TEST(mq_change_of_rate_skips_time_reserved_at_the_old_rate)
{
	static const struct { s64 l, c, used, skipped; } rows[] = {
		{ SEC, SEC, 0, 0 },
		{ SEC + 12000, SEC - 500, 500, 0 },
		{ SEC + 12001, SEC, 0, 1 },
		{ SEC, SEC + 13000, 0, 1000 },
		{ SEC + 5 * MS, SEC + 2 * MS, 4 * MS, 6 * MS - 12000 },
		{ SEC + 7 * MS, SEC + 2 * MS, 4 * MS, 7 * MS - 12000 },
	};

	for_each(row, rows) {
		struct mq_world w = mq_world(125000000, 4, false);

		w.clock.l_next_ns.counter = row->l;
		w.clock.c_next_ns.counter = row->c;
		w.clock.l_used_ns.counter = row->used;
		dualpi2_mq_clock_change(&w.p, &w.clock, SEC);
		CHECK_EQ(w.clock.skipped_ns.counter, row->skipped);
		CHECK_EQ(w.clock.l_next_ns.counter, row->l);
		CHECK_EQ(dualpi2_mq_time(&w.clock, SEC), SEC + row->skipped);
		CHECK_EQ(dualpi2_mq_c_time(&w.clock, SEC), SEC + row->skipped - row->used);
		dualpi2_mq_clock_change(&w.p, &w.clock, SEC);
		CHECK_EQ(w.clock.skipped_ns.counter, row->skipped);
	}
}
