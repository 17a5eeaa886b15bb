// SPDX-License-Identifier: GPL-2.0-only
/*
 * Core-stateless AQM: a virtual queue, its move into another ring, its threshold
 * value.
 */
#include "csaqm_test.h"

/* ---- virtual queue ---- */

UNIT_TEST(core_new_virtual_queue_is_empty)
{
	struct csaqm_vq vq;

	core_new(&vq, 7);
	CHECK_EQ(vq.size, 7);
	CHECK_EQ(vq.count, 0);
	CHECK_EQ(vq.threshold, 0);
	CHECK_EQ(vq.frac, 0);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_walk(&vq);
	core_vq_serve(&vq, 984, 1ULL << 53);
	core_vq_owe(&vq, UINT64_MAX);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_walk(&vq);
	core_free(&vq);
}

UNIT_TEST(core_service_takes_parts_of_packets_in_order)
{
	struct csaqm_vq vq;

	core_new(&vq, 3);
	csaqm_vq_add(&vq, 9, 1000);
	csaqm_vq_add(&vq, 65535, 500);
	csaqm_vq_add(&vq, 0, 10);
	CHECK_EQ(csaqm_vq_length(&vq), 1510);
	core_vq_serve(&vq, 1000, 400);
	CHECK_EQ(vq.hist->bins[9], 600);
	CHECK_EQ(vq.hist->bins[65535], 500);
	CHECK_EQ(vq.count, 3);
	/* the rest of the first, and all but a byte of the second */
	core_vq_serve(&vq, 1000, 1099);
	CHECK_EQ(vq.hist->bins[9], 0);
	CHECK_EQ(vq.hist->bins[65535], 1);
	CHECK_EQ(vq.hist->sums[255], 1);
	CHECK_EQ(vq.hist->bins[0], 10);
	CHECK_EQ(vq.hist->sums[0], 10);
	CHECK_EQ(vq.count, 2);
	csaqm_vq_add(&vq, 300, 5);
	CHECK_EQ(vq.hist->sums[1], 5);
	core_walk(&vq);
	core_vq_serve(&vq, 1000, 1);
	CHECK_EQ(vq.count, 2);
	CHECK_EQ(csaqm_vq_length(&vq), 15);
	core_walk(&vq);
	core_free(&vq);
}

/* Any adding and serving, at once what can be: as the array has it. */
UNIT_TEST(core_virtual_queue_matches_the_array)
{
	int i, n;

	for (i = 0; i < 400; i++) {
		u32 size = unit_any(1, 400), kind = unit_rnd();
		u32 share = unit_any(1, 1000);
		u64 most = unit_any(1, 70000);
		struct csaqm_vq vq;

		core_new(&vq, size);
		core_array_clear();
		for (n = 0; n < 600; n++) {
			u64 op = unit_rnd() % 16;

			/* grows for a while, and shrinks */
			if (n % 200 < 120 ? op < 10 : op < 4) {
				if (vq.count < size)
					core_add_any(&vq, kind, most);
			} else if (op == 15) {
				u64 bytes = unit_any(0, 2 * most);

				core_vq_owe(&vq, bytes);
				core_array_take(bytes * 1000);
				/* part of a byte is forgotten when empty */
				core_vq_serve(&vq, share, 0);
			} else {
				core_serve(&vq, share, unit_any(0, 2 * most));
			}
			CHECK_EQ(csaqm_vq_length(&vq), core_array_length());
			if (!vq.owed)
				core_same(&vq);
		}
		core_walk(&vq);
		core_settle(&vq);
		core_same(&vq);
		core_walk(&vq);
		core_free(&vq);
	}
}

/* 100000 packets through a ring of 5. */
UNIT_TEST(core_ring_wraps)
{
	struct csaqm_vq vq;
	u32 i;

	core_new(&vq, 5);
	core_array_clear();
	for (i = 0; i < 100000; i++) {
		if (vq.count == 5)
			core_serve(&vq, 1000, unit_between(1, 60));
		else
			core_add(&vq, i % 65536, 1 + i % 20);
		core_same(&vq);
	}
	core_walk(&vq);
	core_free(&vq);
}

UNIT_TEST(core_one_record_is_a_virtual_queue)
{
	struct csaqm_vq vq;
	u32 i;

	core_new(&vq, 1);
	core_array_clear();
	for (i = 0; i < 10000; i++) {
		if (!vq.count)
			core_add(&vq, i, 1 + i % 3);
		core_serve(&vq, 500, 1 + i % 4);
		core_same(&vq);
	}
	core_walk(&vq);
	core_free(&vq);
}

/* Whatever @owed is, at most that many records are removed, and the length
 * is right at once; the next call goes on.
 */
UNIT_TEST(core_work_is_bounded)
{
	struct csaqm_vq vq;
	u32 i, before;

	core_new(&vq, 1000);
	core_array_clear();
	for (i = 0; i < 1000; i++)
		core_add(&vq, i, 10);
	/* 64 records in one call, but not the 65th */
	core_serve(&vq, 1000, 645);
	CHECK_EQ(vq.count, 936);
	CHECK_EQ(vq.owed, 5);
	CHECK_EQ(csaqm_vq_length(&vq), 9355);
	core_serve(&vq, 1000, 0);
	CHECK_EQ(vq.count, 936);
	CHECK_EQ(vq.owed, 0);
	core_same(&vq);
	core_serve(&vq, 1000, 9000);
	core_walk(&vq);
	CHECK_EQ(csaqm_vq_length(&vq), 355);
	for (i = 0; vq.owed; i++) {
		before = vq.count;
		if (i % 2)
			core_vq_owe(&vq, 0);
		else
			core_vq_serve(&vq, 984, 0);
		CHECK(before - vq.count <= 64, "%u records", before - vq.count);
		CHECK(vq.count < before || !vq.owed, "nothing done");
		core_walk(&vq);
		CHECK_EQ(csaqm_vq_length(&vq), 355);
	}
	core_same(&vq);
	/* a packet that comes meanwhile is behind */
	core_serve(&vq, 1000, 355);
	core_add(&vq, 7, 3);
	CHECK_EQ(csaqm_vq_length(&vq), 3);
	core_settle(&vq);
	core_same(&vq);
	core_free(&vq);
}

UNIT_TEST(core_beyond_its_length_nothing_is_owed)
{
	struct csaqm_vq vq;
	u32 i;

	core_new(&vq, 300);
	core_array_clear();
	for (i = 0; i < 300; i++)
		core_add(&vq, i, 100);
	core_vq_owe(&vq, 29000);
	CHECK_EQ(csaqm_vq_length(&vq), 1000);
	CHECK(vq.owed, "worked off");
	core_vq_owe(&vq, 1001);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_vq_owe(&vq, UINT64_MAX);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_walk(&vq);
	core_settle(&vq);
	CHECK_EQ(vq.count, 0);
	core_walk(&vq);
	csaqm_vq_add(&vq, 5, 50);
	CHECK_EQ(csaqm_vq_length(&vq), 50);
	core_free(&vq);
}

/* Parts of bytes add up over millions of them. */
UNIT_TEST(core_share_is_exact)
{
	static const u32 shares[] = { 984, 900, 1, 999, 333, 1000 };
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		u64 sent = 0, start = 4000000000ULL;
		struct csaqm_vq vq;

		core_new(&vq, 1);
		csaqm_vq_add(&vq, 1, start);
		for (n = 0; n < 1000000; n++) {
			u64 bytes = n % 2 ? 1 : unit_rnd() % 3000;

			core_vq_serve(&vq, shares[i], bytes);
			sent += bytes;
			CHECK_EQ(csaqm_vq_length(&vq), start - sent * shares[i] / 1000);
		}
		core_walk(&vq);
		core_free(&vq);
	}
}

/* An empty virtual queue saves nothing for packets to come. */
UNIT_TEST(core_empty_virtual_queue_keeps_no_service)
{
	struct csaqm_vq vq;
	int i;

	core_new(&vq, 10);
	for (i = 0; i < 1000; i++)
		core_vq_serve(&vq, 999, 1);
	CHECK_EQ(vq.frac, 0);
	csaqm_vq_add(&vq, 1, 10);
	core_vq_serve(&vq, 984, 10);
	CHECK_EQ(csaqm_vq_length(&vq), 1);
	CHECK_EQ(vq.frac, 840);
	core_vq_serve(&vq, 984, 1);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	CHECK_EQ(vq.frac, 0);

	/* one that a drop empties: nor, from the next service on */
	csaqm_vq_add(&vq, 1, 10);
	core_vq_serve(&vq, 984, 5);
	CHECK_EQ(vq.frac, 920);
	core_vq_owe(&vq, 6);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_vq_serve(&vq, 500, 1);
	CHECK_EQ(vq.frac, 0);
	core_free(&vq);
}

UNIT_TEST(core_service_of_extreme_length)
{
	struct csaqm_vq vq;

	core_new(&vq, 3);
	csaqm_vq_add(&vq, 65535, 2147483647);
	csaqm_vq_add(&vq, 65535, 2147483647);
	csaqm_vq_add(&vq, 65535, 1);
	CHECK_EQ(csaqm_vq_length(&vq), UINT32_MAX);
	CHECK_EQ(vq.hist->bins[65535], UINT32_MAX);
	CHECK_EQ(vq.hist->sums[255], UINT32_MAX);
	CHECK_EQ(csaqm_vq_threshold(&vq, UINT32_MAX), 0);
	CHECK_EQ(csaqm_vq_threshold(&vq, UINT32_MAX - 1), 65536);
	core_vq_serve(&vq, 1, 1000);
	CHECK_EQ(csaqm_vq_length(&vq), UINT32_MAX - 1);
	core_vq_serve(&vq, 1000, (1ULL << 54) - 1);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	CHECK_EQ(vq.count, 0);
	core_walk(&vq);
	core_free(&vq);
}

/* ---- into another ring ---- */

UNIT_TEST(core_move_keeps_what_there_is_room_for)
{
	int i;

	for (i = 0; i < 500; i++) {
		u32 size = unit_any(1, 300), other = unit_any(1, 300), n;
		struct csaqm_vq from, to;
		u32 frac, threshold = unit_between(0, 65536);

		core_new(&from, size);
		core_new(&to, other);
		core_array_clear();
		for (n = 0; n < 2 * size; n++) {
			if (from.count == size) {
				core_serve(&from, 777, 1 + unit_rnd() % 200);
				core_settle(&from);
			}
			if (from.count < size)
				core_add_any(&from, n, 100);
		}
		/* @owed is often large */
		core_serve(&from, 777, unit_any(0, csaqm_vq_length(&from)));
		from.threshold = threshold;
		frac = from.frac;
		csaqm_vq_move(&to, &from);
		if (core_array.count > other)
			core_array_lose(core_array.count - other);
		CHECK_EQ(to.size, other);
		CHECK_EQ(to.threshold, threshold);
		CHECK_EQ(to.frac, frac);
		core_same(&to);
		core_walk(&to);
		core_free(&from);
		core_free(&to);
	}
}

/* 4096 records a call; packets come and leave between two calls. */
UNIT_TEST(core_move_of_many_records_takes_several_calls)
{
	static const u32 sizes[] = { 11000, 5000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct csaqm_vq from, to;
		u32 calls = 0, n;
		bool done;

		core_new(&from, 10000);
		core_new(&to, sizes[i]);
		core_array_clear();
		for (n = 0; n < 9500; n++)
			core_add_any(&from, n, 100);
		do {
			done = csaqm_vq_move(&to, &from);
			if (done)
				break;
			core_walk(&from);
			/* What is lost in between is not in the array's order. */
			if (sizes[i] > 9500) {
				core_serve(&from, 1000, 7000);
				core_settle(&from);
			}
			core_add_any(&from, calls, 100);
		} while (++calls < 10);
		CHECK(done && calls > 1, "%u calls", calls);
		if (core_array.count > sizes[i])
			core_array_lose(core_array.count - sizes[i]);
		core_same(&to);
		core_walk(&to);
		core_free(&from);
		core_free(&to);
	}
}

/* No packet is that short, but a loop is not to rely on it. */
UNIT_TEST(core_move_ends_with_records_of_nothing)
{
	struct csaqm_vq from, to;

	core_new(&from, 3);
	core_new(&to, 1);
	csaqm_vq_add(&from, 1, 0);
	csaqm_vq_add(&from, 2, 5);
	core_vq_owe(&from, 5);
	CHECK_EQ(from.count, 0);
	csaqm_vq_add(&from, 1, 0);
	csaqm_vq_add(&from, 1, 0);
	csaqm_vq_add(&from, 2, 7);
	csaqm_vq_move(&to, &from);
	CHECK_EQ(to.count, 1);
	CHECK_EQ(csaqm_vq_length(&to), 7);
	core_walk(&to);
	core_free(&from);
	core_free(&to);
}

UNIT_TEST(core_move_of_an_empty_one_is_empty)
{
	struct csaqm_vq from, to;

	core_new(&from, 3);
	core_new(&to, 1);
	csaqm_vq_move(&to, &from);
	CHECK_EQ(to.count, 0);
	CHECK_EQ(csaqm_vq_length(&to), 0);
	core_walk(&to);
	core_free(&from);
	core_free(&to);
}

/* ---- threshold ---- */

UNIT_TEST(core_threshold_matches_a_sort)
{
	u32 zero = 0, top = 0, between = 0;
	struct csaqm_vq vq;
	int i;

	core_new(&vq, CORE_MOST);
	for (i = 0; i < 6000; i++) {
		u32 want = unit_any(1, 400), kind = unit_rnd(), n;
		u64 length, most = unit_any(1, 9000);

		core_array_clear();
		for (n = 0; n < want; n++)
			core_add_any(&vq, kind, most);
		core_serve(&vq, 1000, unit_any(0, csaqm_vq_length(&vq)));
		core_settle(&vq);
		length = csaqm_vq_length(&vq);
		for (n = 0; n < 6; n++) {
			u64 target = unit_between(0, length + length / 8);
			u32 got, threshold;

			if (n < 3)
				target = length + 1 - n < UINT32_MAX ?
					 length + 1 - n : 0;
			else if (n == 3)
				target = 0;
			got = csaqm_vq_threshold(&vq, target);
			threshold = core_array_threshold(target);
			CHECK(got == threshold, "%u, want %u, %u of %llu", got, threshold, (u32)target, (ull)length);
			zero += !got;
			top += got == CSAQM_VALUES;
			between += got && got < CSAQM_VALUES;
		}
		core_vq_owe(&vq, UINT64_MAX);
		core_settle(&vq);
	}
	CHECK(zero > 1000 && top > 1000 && between > 1000, "%u, %u, %u", zero, top, between);
	core_free(&vq);
}

/* What the definition says of a few states; no array. */
UNIT_TEST(core_threshold_of_some_states)
{
	struct csaqm_vq vq;

	core_new(&vq, 100);
	CHECK_EQ(csaqm_vq_threshold(&vq, 0), 0);
	CHECK_EQ(csaqm_vq_threshold(&vq, 3028), 0);

	/* 100 bytes of each of three values */
	csaqm_vq_add(&vq, 100, 100);
	csaqm_vq_add(&vq, 500, 100);
	csaqm_vq_add(&vq, 30000, 100);
	CHECK_EQ(csaqm_vq_threshold(&vq, 300), 0);
	CHECK_EQ(csaqm_vq_threshold(&vq, 299), 101);
	CHECK_EQ(csaqm_vq_threshold(&vq, 200), 101);
	CHECK_EQ(csaqm_vq_threshold(&vq, 199), 501);
	CHECK_EQ(csaqm_vq_threshold(&vq, 100), 501);
	CHECK_EQ(csaqm_vq_threshold(&vq, 99), 30001);
	CHECK_EQ(csaqm_vq_threshold(&vq, 0), 30001);
	/* the top alone is too much: all get a signal */
	csaqm_vq_add(&vq, 65535, 1000);
	CHECK_EQ(csaqm_vq_threshold(&vq, 999), 65536);
	CHECK_EQ(csaqm_vq_threshold(&vq, 1000), 30001);
	CHECK_EQ(csaqm_vq_threshold(&vq, 1100), 501);
	/* the lowest alone is too much: none but those without a value */
	csaqm_vq_add(&vq, 0, 5000);
	CHECK_EQ(csaqm_vq_threshold(&vq, 1300), 1);
	CHECK_EQ(csaqm_vq_threshold(&vq, 6299), 1);
	CHECK_EQ(csaqm_vq_threshold(&vq, 6300), 0);
	core_free(&vq);
}

/* Served already, but not taken out: at most the target means no threshold. */
UNIT_TEST(core_threshold_is_none_at_the_target_whatever_is_owed)
{
	struct csaqm_vq vq;
	u32 i;

	core_new(&vq, 200);
	for (i = 0; i < 200; i++)
		csaqm_vq_add(&vq, 65535, 100);
	core_vq_owe(&vq, 17000);
	CHECK(vq.owed, "worked off");
	CHECK_EQ(csaqm_vq_threshold(&vq, 3000), 0);
	CHECK_EQ(csaqm_vq_threshold(&vq, 2999), 65536);
	core_free(&vq);
}
