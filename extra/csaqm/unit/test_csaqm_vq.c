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
	CHECK_EQ(csaqm_vq_count(&vq), 0);
	CHECK_EQ(vq.threshold, 0);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_walk(&vq);
	core_vq_serve(&vq, 984, 1ULL << 53);
	core_vq_owe(&vq, UINT32_MAX);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_walk(&vq);
	core_free(&vq);
}

UNIT_TEST(core_ring_has_a_power_of_two_places)
{
	static const u32 want[][2] = {
		{ 1, 1 }, { 2, 2 }, { 3, 4 }, { 4, 4 }, { 5, 8 }, { 1000, 1024 }, { 1024, 1024 },
		{ (1 << 20) - 1, 1 << 20 }, { 1 << 20, 1 << 20 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		CHECK_EQ(csaqm_places(want[i][0]), want[i][1]);
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
	CHECK_EQ(csaqm_vq_length(&vq), 1110);
	CHECK_EQ(csaqm_vq_count(&vq), 3);
	/* 600 bytes of the value 9 are left: the target is exceeded at it, or below */
	CHECK_EQ(core_threshold(&vq, 1099), 10);
	CHECK_EQ(core_threshold(&vq, 1100), 1);
	/* the rest of the first, and all but a byte of the second */
	core_vq_serve(&vq, 1000, 1099);
	CHECK_EQ(csaqm_vq_count(&vq), 2);
	CHECK_EQ(core_threshold(&vq, 1), 1);
	CHECK_EQ(core_threshold(&vq, 0), 65536);
	csaqm_vq_add(&vq, 300, 5);
	core_walk(&vq);
	core_vq_serve(&vq, 1000, 1);
	CHECK_EQ(csaqm_vq_count(&vq), 2);
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
				if (csaqm_vq_count(&vq) < size)
					core_add_any(&vq, kind, most);
			} else if (op == 15) {
				u64 bytes = unit_any(0, 2 * most);

				core_vq_owe(&vq, bytes);
				core_array_take(bytes * 1000);
			} else {
				core_serve(&vq, share, unit_any(0, 2 * most));
			}
			CHECK_EQ(csaqm_vq_length(&vq), core_array_length());
			if (!core_is_late(&vq))
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
		if (csaqm_vq_count(&vq) == 5)
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
		if (!csaqm_vq_count(&vq))
			core_add(&vq, i, 1 + i % 3);
		core_serve(&vq, 500, 1 + i % 4);
		core_same(&vq);
	}
	core_walk(&vq);
	core_free(&vq);
}

/* Whatever was served, at most that many records are removed, and the length is right
 * at once; the next call goes on.
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
	CHECK_EQ(csaqm_vq_count(&vq), 936);
	CHECK_EQ(vq.owed_milli, 5000);
	CHECK_EQ(csaqm_vq_length(&vq), 9355);
	core_serve(&vq, 1000, 0);
	CHECK_EQ(csaqm_vq_count(&vq), 936);
	CHECK_EQ(vq.owed_milli, 5000);
	core_same(&vq);
	core_serve(&vq, 1000, 9000);
	core_walk(&vq);
	CHECK_EQ(csaqm_vq_length(&vq), 355);
	for (i = 0; core_is_late(&vq); i++) {
		before = csaqm_vq_count(&vq);
		if (i % 2)
			core_vq_owe(&vq, 0);
		else
			core_vq_serve(&vq, 984, 0);
		CHECK(before - csaqm_vq_count(&vq) <= 64, "%u records", before - csaqm_vq_count(&vq));
		CHECK(csaqm_vq_count(&vq) < before, "nothing done");
		core_walk(&vq);
		CHECK_EQ(csaqm_vq_length(&vq), 355);
	}
	core_same(&vq);
	/* a packet that comes meanwhile is behind */
	core_serve(&vq, 1000, 354);
	core_add(&vq, 7, 3);
	CHECK_EQ(csaqm_vq_length(&vq), 4);
	core_settle(&vq);
	core_same(&vq);
	/* no record is left of an empty one */
	core_serve(&vq, 1000, 4);
	CHECK_EQ(csaqm_vq_count(&vq), 0);
	core_walk(&vq);
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
	CHECK(core_is_late(&vq), "worked off");
	core_vq_owe(&vq, 1001);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	core_vq_owe(&vq, UINT32_MAX);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	CHECK_EQ(csaqm_vq_count(&vq), 0);
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
	csaqm_vq_add(&vq, 1, 10);
	core_vq_serve(&vq, 984, 10);
	CHECK_EQ(csaqm_vq_length(&vq), 1);
	CHECK_EQ(vq.left_milli, 160);
	core_vq_serve(&vq, 984, 1);
	CHECK_EQ(csaqm_vq_length(&vq), 0);

	/* one that a drop empties: nor */
	csaqm_vq_add(&vq, 1, 10);
	CHECK_EQ(vq.left_milli, 10000);
	core_vq_serve(&vq, 984, 5);
	CHECK_EQ(vq.left_milli, 5080);
	core_vq_owe(&vq, 6);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	csaqm_vq_add(&vq, 1, 10);
	CHECK_EQ(vq.left_milli, 10000);
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
	CHECK_EQ(core_threshold(&vq, UINT32_MAX), 0);
	CHECK_EQ(core_threshold(&vq, UINT32_MAX - 1), 65536);
	core_vq_serve(&vq, 1, 1000);
	CHECK_EQ(csaqm_vq_length(&vq), UINT32_MAX - 1);
	core_vq_serve(&vq, 1000, (1ULL << 54) - 1);
	CHECK_EQ(csaqm_vq_length(&vq), 0);
	CHECK_EQ(csaqm_vq_count(&vq), 0);
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
		u32 threshold = unit_between(0, 65536);
		u64 left, number;

		core_new(&from, size);
		core_new(&to, other);
		core_array_clear();
		for (n = 0; n < 2 * size; n++) {
			if (csaqm_vq_count(&from) == size) {
				core_serve(&from, 777, 1 + unit_rnd() % 200);
				core_settle(&from);
			}
			if (csaqm_vq_count(&from) < size)
				core_add_any(&from, n, 100);
		}
		/* many records are of what was served */
		core_serve(&from, 777, unit_any(0, csaqm_vq_length(&from)));
		from.threshold = threshold;
		left = from.left_milli;
		number = from.tail;
		csaqm_vq_begin_move(&to, &from);
		csaqm_vq_move(&to, &from);
		if (core_array.count > other)
			core_array_lose(core_array.count - other);
		else
			CHECK_EQ(to.left_milli, left);
		CHECK_EQ(to.size, other);
		CHECK_EQ(to.tail, number);
		CHECK_EQ(to.threshold, threshold);
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
		csaqm_vq_begin_move(&to, &from);
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
	CHECK_EQ(csaqm_vq_count(&from), 0);
	csaqm_vq_add(&from, 1, 0);
	csaqm_vq_add(&from, 1, 0);
	csaqm_vq_add(&from, 2, 7);
	csaqm_vq_begin_move(&to, &from);
	CHECK(csaqm_vq_move(&to, &from), "one call is not enough");
	CHECK_EQ(csaqm_vq_count(&to), 1);
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
	csaqm_vq_begin_move(&to, &from);
	CHECK(csaqm_vq_move(&to, &from), "one call is not enough");
	CHECK_EQ(csaqm_vq_count(&to), 0);
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
			got = core_threshold(&vq, target);
			threshold = core_array_threshold(target);
			CHECK(got == threshold, "%u, want %u, %u of %llu", got, threshold, (u32)target, (ull)length);
			zero += !got;
			top += got == CSAQM_VALUES;
			between += got && got < CSAQM_VALUES;
		}
		core_vq_owe(&vq, UINT32_MAX);
	}
	CHECK(zero > 1000 && top > 1000 && between > 1000, "%u, %u, %u", zero, top, between);
	core_free(&vq);
}

/* Of more than 4096 records a sample decides: what has the threshold and more is about the
 * target, whatever the order of the packets.
 */
UNIT_TEST(core_threshold_of_many_records_is_near_the_target)
{
	static const u32 periods[] = { 1, 2, 3, 4, 8, 64 };
	u32 i, n, value, count;

	for (i = 0; i < 4 * ARRAY_SIZE(periods); i++) {
		u32 period = periods[i % ARRAY_SIZE(periods)], target, threshold;
		struct csaqm_vq vq;
		u64 length, above = 0;

		core_new(&vq, 200000);
		count = unit_between(4097, 200000);
		for (n = 0; n < count; n++) {
			/* one flow of the period has values of its own */
			value = unit_between(1, 30000) + (n % period ? 0 : 30000);
			csaqm_vq_add(&vq, value, n % period ? 1500 : 700);
		}
		core_vq_serve(&vq, 1000, unit_between(0, csaqm_vq_length(&vq) / 20));
		csaqm_vq_work(&vq, count);
		length = csaqm_vq_length(&vq);
		target = length / unit_between(2, 10);
		threshold = core_threshold(&vq, target);
		for (n = vq.head; n != vq.tail; n++)
			above += vq.ring[n & vq.mask].value >= threshold ? vq.ring[n & vq.mask].bytes : 0;
		/* four standard deviations of a sample of 2048 */
		CHECK(above + length * 45 / 1000 > target && above < target + length * 45 / 1000,
		      "%u records, period %u: %llu of %llu, want %u", count, period, (ull)above, (ull)length, target);
		core_free(&vq);
	}
}

/* At a power of two, and one more; the sample of all records is all of them. */
UNIT_TEST(core_threshold_is_exact_up_to_4096_records)
{
	static const u32 counts[] = { 1, 2, 255, 4095, 4096 };
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		struct csaqm_vq vq;

		core_new(&vq, 5000);
		core_array_clear();
		for (n = 0; n < counts[i]; n++)
			core_add_any(&vq, 0, 1500);
		for (n = 0; n < 50; n++) {
			u32 target = unit_between(0, csaqm_vq_length(&vq));

			CHECK_EQ(core_threshold(&vq, target), core_array_threshold(target));
		}
		core_free(&vq);
	}
}

/* What the definition says of a few states; no array. */
UNIT_TEST(core_threshold_of_some_states)
{
	struct csaqm_vq vq;

	core_new(&vq, 100);
	CHECK_EQ(core_threshold(&vq, 0), 0);
	CHECK_EQ(core_threshold(&vq, 3028), 0);

	/* 100 bytes of each of three values */
	csaqm_vq_add(&vq, 100, 100);
	csaqm_vq_add(&vq, 500, 100);
	csaqm_vq_add(&vq, 30000, 100);
	CHECK_EQ(core_threshold(&vq, 300), 0);
	CHECK_EQ(core_threshold(&vq, 299), 101);
	CHECK_EQ(core_threshold(&vq, 200), 101);
	CHECK_EQ(core_threshold(&vq, 199), 501);
	CHECK_EQ(core_threshold(&vq, 100), 501);
	CHECK_EQ(core_threshold(&vq, 99), 30001);
	CHECK_EQ(core_threshold(&vq, 0), 30001);
	/* the top alone is too much: all get a signal */
	csaqm_vq_add(&vq, 65535, 1000);
	CHECK_EQ(core_threshold(&vq, 999), 65536);
	CHECK_EQ(core_threshold(&vq, 1000), 30001);
	CHECK_EQ(core_threshold(&vq, 1100), 501);
	/* the lowest alone is too much: none but those without a value */
	csaqm_vq_add(&vq, 0, 5000);
	CHECK_EQ(core_threshold(&vq, 1300), 1);
	CHECK_EQ(core_threshold(&vq, 6299), 1);
	CHECK_EQ(core_threshold(&vq, 6300), 0);
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
	CHECK(core_is_late(&vq), "worked off");
	CHECK_EQ(core_threshold(&vq, 3000), 0);
	CHECK_EQ(core_threshold(&vq, 2999), 65536);
	core_free(&vq);
}
