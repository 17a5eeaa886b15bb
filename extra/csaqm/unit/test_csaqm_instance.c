// SPDX-License-Identifier: GPL-2.0-only
/*
 * Core-stateless AQM: room, the steps of an arrival and of a departure, verdicts,
 * updates.
 */
#include "csaqm_test.h"

/* ---- one instance ---- */

/* Full is: the queue, a related virtual queue in bytes or in records. */
UNIT_TEST(core_room_ends_with_any_related_queue)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 1000000, 4);

	CHECK_EQ(r.p.buffer_bytes[c], 200000);
	CHECK_EQ(r.p.buffer_bytes[l], 50000);
	/* the queue itself */
	CHECK(csaqm_has_room(&r.p, &r.v, c, 198500, 1500), "C just full");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 198501, 1500), "C too full");
	CHECK(csaqm_has_room(&r.p, &r.v, l, 48500, 1500), "L just full");
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 48501, 1500), "L too full");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 1ULL << 40, 1), "beyond 32 bits");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 1, UINT32_MAX), "wraps");

	/* the L4S virtual queue, which Classic does not care for */
	csaqm_vq_add(&r.v.vq[l], 1, 48500);
	CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 1500), "VQ L just full");
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 0, 1501), "VQ L too full");
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 1501), "VQ L for C");

	/* the other, which both care for */
	csaqm_vq_add(&r.v.vq[c], 1, 249000);
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 1000), "VQ C just full");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 0, 1001), "VQ C too full");
	CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 1000), "VQ C just full for L");
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 0, 1001), "VQ C too full for L");

	/* records */
	csaqm_vq_add(&r.v.vq[l], 1, 1);
	csaqm_vq_add(&r.v.vq[l], 1, 1);
	CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 1), "one record");
	csaqm_vq_add(&r.v.vq[l], 1, 1);
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 0, 1), "no record");
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 1), "no record, for C");
	csaqm_vq_add(&r.v.vq[c], 1, 1);
	csaqm_vq_add(&r.v.vq[c], 1, 1);
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 1), "one record");
	csaqm_vq_add(&r.v.vq[c], 1, 1);
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 0, 1), "no record");
	core_end(&r);
}

/* With one queue the second virtual queue does not exist. */
UNIT_TEST(core_room_with_one_queue)
{
	struct core_run r = core_of(false, 1000000, 4);

	core_free(&r.v.vq[DUALPI2_QUEUE_L]);
	memset(&r.v.vq[DUALPI2_QUEUE_L], 0, sizeof(struct csaqm_vq));
	CHECK(csaqm_has_room(&r.p, &r.v, DUALPI2_QUEUE_C, 498500, 1500), "one");
	CHECK(!csaqm_has_room(&r.p, &r.v, DUALPI2_QUEUE_C, 498501, 1500), "one, full");
	csaqm_arrive(&r.p, &r.v, DUALPI2_QUEUE_C, 5, 9000);
	CHECK_EQ(core_length(&r, DUALPI2_QUEUE_C), 9000);
	csaqm_sent(&r.v, 1000);
	csaqm_serve(&r.p, &r.v, 0);
	CHECK_EQ(core_length(&r, DUALPI2_QUEUE_C), 8000);
	csaqm_dropped(&r.p, &r.v, DUALPI2_QUEUE_C, 1000);
	CHECK_EQ(core_length(&r, DUALPI2_QUEUE_C), 7000);
	csaqm_update(&r.p, &r.v, 1000);
	CHECK_EQ(r.v.vq[DUALPI2_QUEUE_C].threshold, 6);
	CHECK_EQ(r.v.vq[DUALPI2_QUEUE_L].threshold, 0);
	core_end(&r);
}

/* A buffer of a low rate is less than a large packet. */
UNIT_TEST(core_room_of_an_empty_queue_is_for_any_packet)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 1000, 4);

	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 65000), "C");
	CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 65000), "L");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 1, 65000), "C has a byte");
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 1, 65000), "L has a byte");
	csaqm_vq_add(&r.v.vq[l], 1, 1);
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 65000), "C");
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 0, 65000), "VQ L has a byte");
	core_vq_owe(&r.v.vq[l], 1);
	CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 65000), "VQ L is empty");
	csaqm_vq_add(&r.v.vq[c], 1, 1);
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 0, 65000), "VQ C has a byte");
	CHECK(!csaqm_has_room(&r.p, &r.v, l, 0, 65000), "VQ C has a byte");
	core_end(&r);
}

/* Two records out for each that comes: those of what was served do not fill the ring. */
UNIT_TEST(core_arrivals_catch_up)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 1000000, 300);
	u32 i;

	r.p.ecn = false;
	for (i = 0; i < 300; i++)
		csaqm_arrive(&r.p, &r.v, l, i, 40);
	csaqm_dropped(&r.p, &r.v, l, 11999);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[c]), 300);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 300);
	csaqm_catch_up(&r.p, &r.v);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[c]), 298);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 298);
	for (i = 0; i < 291; i++) {
		csaqm_catch_up(&r.p, &r.v);
		CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 50), "packet %u", i);
		csaqm_arrive(&r.p, &r.v, l, 7, 50);
		CHECK_EQ(core_length(&r, c), 50 * (i + 1) + 1);
		CHECK_EQ(core_length(&r, l), 50 * (i + 1) + 1);
	}
	/* the last one of 40 bytes has one left */
	CHECK_EQ(csaqm_vq_count(&r.v.vq[c]), 292);
	csaqm_catch_up(&r.p, &r.v);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[c]), 292);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 292);
	core_walk(&r.v.vq[c]);
	core_walk(&r.v.vq[l]);
	core_end(&r);
}

UNIT_TEST(core_arrival_goes_to_the_related_virtual_queues)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 1000000, 4);

	csaqm_arrive(&r.p, &r.v, c, 1000, 1500);
	CHECK_EQ(core_length(&r, c), 1500);
	CHECK_EQ(core_length(&r, l), 0);
	csaqm_arrive(&r.p, &r.v, l, 2000, 100);
	CHECK_EQ(core_length(&r, c), 1600);
	CHECK_EQ(core_length(&r, l), 100);
	CHECK_EQ(core_threshold(&r.v.vq[c], 1599), 1001);
	CHECK_EQ(core_threshold(&r.v.vq[c], 99), 2001);
	CHECK_EQ(core_threshold(&r.v.vq[l], 99), 2001);
	core_walk(&r.v.vq[c]);
	core_walk(&r.v.vq[l]);
	core_end(&r);
}

/* "Remove exactly p_s * C_vi / C bits from all VQs." */
UNIT_TEST(core_departure_serves_all_virtual_queues)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 1000000, 9);

	r.p.ecn = false;
	csaqm_arrive(&r.p, &r.v, c, 1000, 3000);
	csaqm_arrive(&r.p, &r.v, l, 2000, 3000);
	csaqm_sent(&r.v, 600);
	csaqm_sent(&r.v, 400);
	csaqm_serve(&r.p, &r.v, 0);
	CHECK_EQ(core_length(&r, c), 6000 - 984);
	CHECK_EQ(core_length(&r, l), 3000 - 900);
	/* once */
	csaqm_serve(&r.p, &r.v, 0);
	CHECK_EQ(core_length(&r, c), 6000 - 984);
	/* a drop takes its own length, from those that it was in */
	csaqm_dropped(&r.p, &r.v, c, 1000);
	CHECK_EQ(core_length(&r, c), 5000 - 984);
	CHECK_EQ(core_length(&r, l), 3000 - 900);
	csaqm_dropped(&r.p, &r.v, l, 1000);
	CHECK_EQ(core_length(&r, c), 4000 - 984);
	CHECK_EQ(core_length(&r, l), 2000 - 900);
	core_walk(&r.v.vq[c]);
	core_walk(&r.v.vq[l]);
	core_end(&r);
}

/* Of all queues, values about the thresholds, codepoints. */
UNIT_TEST(core_verdict_matches_the_paper)
{
	static const u32 levels[] = { 0, 1, 2, 1000, 65535, 65536 };
	u32 a, b, i, dual, ecn_on, queue, ecn;

	for (i = 0; i < 8 * ARRAY_SIZE(levels) * ARRAY_SIZE(levels) * 12; i++) {
		struct csaqm_params p;
		struct csaqm_vars v = { 0 };
		enum csaqm_verdict got, want;
		u32 value, at;

		a = i % ARRAY_SIZE(levels);
		b = i / ARRAY_SIZE(levels) % ARRAY_SIZE(levels);
		at = i / ARRAY_SIZE(levels) / ARRAY_SIZE(levels);
		queue = at & 1;
		dual = at >> 1 & 1;
		ecn_on = at >> 2 & 1;
		at = at / 8 % 6;
		if (queue && !dual)
			continue;
		value = levels[at % 2 ? a : b] + at / 2 - 1;
		if (value > 65535)
			continue;
		for (ecn = 0; ecn < 4; ecn++) {
			p = core_defaults(dual, 125000000);
			p.ecn = ecn_on;
			v.vq[DUALPI2_QUEUE_C].threshold = levels[a];
			v.vq[DUALPI2_QUEUE_L].threshold = levels[b];
			want = CSAQM_PASS;
			if (value < levels[a] || (queue == DUALPI2_QUEUE_L && value < levels[b])) {
				want = CSAQM_MARK;
				if (ecn == 3)
					want = CSAQM_PASS;
				if (ecn == 0 || (ecn == 2 && !ecn_on))
					want = CSAQM_DROP;
			}
			got = csaqm_verdict(&p, &v, queue, value, ecn);
			CHECK(got == want, "%u: value %u of %u, %u: %u, not %u",
			      i, value, levels[a], levels[b], got, want);
		}
	}
	/* what the loop is to have seen */
	CHECK_EQ(DUALPI2_QUEUE_C, 0);
	CHECK_EQ(DUALPI2_QUEUE_L, 1);
	CHECK_EQ(DUALPI2_ECN_ECT1, 1);
	CHECK_EQ(DUALPI2_ECN_ECT0, 2);
}

/* Only with the option, and only a packet below the threshold for one that is not. */
UNIT_TEST(core_packet_gives_way_by_value)
{
	static const u32 levels[] = { 0, 1, 1000, 65535, 65536 };
	static const u32 values[] = { 0, 1, 999, 1000, 65534, 65535 };
	struct csaqm_params p = core_defaults(false, 125000000);
	struct csaqm_vars v = { 0 };
	u32 i, a, b, seen = 0;

	CHECK(!p.arrival_drop, "off by default");
	for (i = 0; i < ARRAY_SIZE(levels); i++)
		for (a = 0; a < ARRAY_SIZE(values); a++)
			for (b = 0; b < ARRAY_SIZE(values); b++) {
				bool want = values[a] < levels[i] && values[b] >= levels[i];

				v.vq[DUALPI2_QUEUE_C].threshold = levels[i];
				v.vq[DUALPI2_QUEUE_L].threshold = 65536;
				p.arrival_drop = false;
				CHECK(!csaqm_gives_way(&p, &v, values[a], values[b]), "without the option");
				p.arrival_drop = true;
				CHECK_EQ(csaqm_gives_way(&p, &v, values[a], values[b]), want);
				seen += want;
			}
	CHECK_EQ(seen, 1 * 5 + 3 * 3 + 5 * 1);
}

/* With one queue ECT(1) is in it, and marked even where ECT(0) is dropped. */
UNIT_TEST(core_verdict_with_one_queue_ignores_the_other)
{
	struct csaqm_params p = core_defaults(false, 125000000);
	struct csaqm_vars v = { 0 };

	v.vq[DUALPI2_QUEUE_L].threshold = 65536;
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_C, 0, DUALPI2_ECN_NOT_ECT), CSAQM_PASS);
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_L, 0, DUALPI2_ECN_NOT_ECT), CSAQM_PASS);
	v.vq[DUALPI2_QUEUE_C].threshold = 1;
	p.ecn = false;
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_C, 0, DUALPI2_ECN_ECT1), CSAQM_MARK);
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_C, 0, DUALPI2_ECN_ECT0), CSAQM_DROP);
}

/* Each virtual queue has its target. */
UNIT_TEST(core_update_sets_each_threshold)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 10000000, 300);

	r.p.ecn = false;
	CHECK_EQ(r.p.target_bytes[c], 196800);
	CHECK_EQ(r.p.target_bytes[l], 9000);
	csaqm_arrive(&r.p, &r.v, l, 20, 9000);
	csaqm_update(&r.p, &r.v, SEC);
	CHECK_EQ(r.v.vq[l].threshold, 0);
	CHECK_EQ(r.v.vq[c].threshold, 0);
	CHECK_EQ(r.v.due_ns, SEC + 10 * MS);
	csaqm_arrive(&r.p, &r.v, l, 50, 1);
	csaqm_update(&r.p, &r.v, 2 * SEC);
	CHECK_EQ(r.v.vq[l].threshold, 21);
	CHECK_EQ(r.v.vq[c].threshold, 0);
	CHECK_EQ(r.v.due_ns, 2 * SEC + 10 * MS);
	csaqm_arrive(&r.p, &r.v, c, 40, 196800);
	csaqm_update(&r.p, &r.v, 3 * SEC);
	CHECK_EQ(r.v.vq[l].threshold, 21);
	CHECK_EQ(r.v.vq[c].threshold, 41);
	csaqm_dropped(&r.p, &r.v, l, 9001);
	csaqm_update(&r.p, &r.v, 4 * SEC);
	CHECK_EQ(r.v.vq[l].threshold, 0);
	CHECK_EQ(r.v.vq[c].threshold, 0);
	core_end(&r);
}

/* What was served is removed first, at most 4096 records. */
UNIT_TEST(core_update_sees_what_is_left)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct core_run r = core_of(true, 10000000, 9000);
	u32 i;

	/* 100 bytes each: the target of the L4S virtual queue is 90 of them */
	for (i = 0; i < 9000; i++)
		csaqm_arrive(&r.p, &r.v, l, i < 4000 ? 60000 : i, 100);
	csaqm_dropped(&r.p, &r.v, l, 400000);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 9000);
	csaqm_update(&r.p, &r.v, SEC);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 5000);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[c]), 5000);
	/* of 5000 records, a sample of 2500: values differ by 1, so that it is near */
	CHECK_NEAR(r.v.vq[l].threshold, 9000 - 90, 10);
	CHECK_NEAR(r.v.vq[c].threshold, 9000 - 1968, 10);
	csaqm_dropped(&r.p, &r.v, l, 490000);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 5000);
	csaqm_update(&r.p, &r.v, 2 * SEC);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 904);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[c]), 904);
	csaqm_update(&r.p, &r.v, 3 * SEC);
	CHECK_EQ(csaqm_vq_count(&r.v.vq[l]), 100);
	CHECK_EQ(r.v.vq[l].threshold, 9000 - 90);
	CHECK_EQ(r.v.vq[c].threshold, 0);
	core_end(&r);
}

UNIT_TEST(core_update_is_due_once_in_its_time)
{
	struct csaqm_params p = core_defaults(true, 125000000);
	struct csaqm_vars v = { .due_ns = 0, .idle_ns = CSAQM_BUSY };

	CHECK(csaqm_is_due(&p, &v, 0), "at first");
	CHECK(csaqm_is_due(&p, &v, SEC), "at first");
	v.due_ns = SEC;
	CHECK(!csaqm_is_due(&p, &v, SEC - 1), "early");
	CHECK(csaqm_is_due(&p, &v, SEC), "in time");
	CHECK(csaqm_is_due(&p, &v, SEC + 1), "late");
	CHECK(csaqm_is_due(&p, &v, UINT64_MAX), "very late");
	/* a clock that goes back, by no more than it can have to wait */
	CHECK(!csaqm_is_due(&p, &v, SEC - 10 * MS), "back");
	CHECK(csaqm_is_due(&p, &v, SEC - 10 * MS - 1), "far back");
	CHECK(csaqm_is_due(&p, &v, 0), "to the start");
}
