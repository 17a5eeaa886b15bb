// SPDX-License-Identifier: GPL-2.0-only
/*
 * Core-stateless AQM: virtual queues, threshold values, verdicts, the steps of
 * an arrival and of a departure, service while idle.
 *
 * What is expected comes from section 3 of the VDQ-CSAQM paper: a virtual queue
 * is a plain array of packets that is served in 1/1000 of a byte, a threshold
 * value is found by sorting all of them.
 */
#include "csaqm.h"
#include "packet_value.h"

#define CORE_MOST	12000U		/* records of the array */
#define CORE_NS_MAX	(1ULL << 62)

/* Packets in order of arrival, the last bytes of each that are left. */
struct core_array {
	u32 first;
	u32 count;
	struct {
		u32 value;
		u64 milli;
	} packets[CORE_MOST];
};

static struct core_array core_array;

static void core_array_clear(void)
{
	core_array.first = 0;
	core_array.count = 0;
}

static void core_array_add(u32 value, u32 bytes)
{
	u32 i;

	if (core_array.first) {
		for (i = 0; i < core_array.count; i++)
			core_array.packets[i] =
				core_array.packets[core_array.first + i];
		core_array.first = 0;
	}
	CHECK(core_array.count < CORE_MOST, "array full");
	core_array.packets[core_array.count].value = value;
	core_array.packets[core_array.count++].milli = bytes * 1000ULL;
}

static void core_array_take(u64 milli)
{
	while (core_array.count) {
		u64 *left = &core_array.packets[core_array.first].milli;

		if (*left > milli) {
			*left -= milli;
			return;
		}
		milli -= *left;
		core_array.first++;
		core_array.count--;
	}
}

static void core_array_lose(u32 packets)
{
	core_array.first += packets;
	core_array.count -= packets;
}

/* Of a packet, bytes that are not served yet, or not all of them. */
static u32 core_array_bytes(u32 i, u32 *value)
{
	*value = core_array.packets[core_array.first + i].value;
	return (core_array.packets[core_array.first + i].milli + 999) / 1000;
}

/* The served part of a byte is of the oldest one. */
static u64 core_array_length(void)
{
	u64 milli = 0;
	u32 i;

	for (i = 0; i < core_array.count; i++)
		milli += core_array.packets[core_array.first + i].milli;
	return (milli + 999) / 1000;
}

static int core_by_value(const void *a, const void *b)
{
	const struct csaqm_record *x = a, *y = b;

	return x->value < y->value ? 1 : x->value > y->value ? -1 : 0;
}

/* The paper's: the least value so that what is left of it and beyond is no more
 * than the target; 65536 stands for none.  All packets are sorted for it.
 */
static u32 core_array_threshold(u64 target)
{
	static struct csaqm_record sorted[CORE_MOST];
	u64 sum = 0;
	u32 i;

	for (i = 0; i < core_array.count; i++)
		sorted[i].bytes = core_array_bytes(i, &sorted[i].value);
	qsort(sorted, core_array.count, sizeof(sorted[0]), core_by_value);
	for (i = 0; i < core_array.count; i++) {
		sum += sorted[i].bytes;
		if (sum > target)
			return sorted[i].value + 1;
	}
	return 0;
}

static void core_new(struct csaqm_vq *vq, u32 size)
{
	memset(vq, 0xa5, sizeof(*vq));
	csaqm_vq_init(vq, unit_alloc(1, sizeof(struct csaqm_hist)),
		      unit_alloc(size, sizeof(struct csaqm_record)), size);
}

static void core_free(struct csaqm_vq *vq)
{
	free(vq->hist);
	free(vq->ring);
}

/* Serve, which touches no record, and take out 64. */
static void core_vq_serve(struct csaqm_vq *vq, u32 share, u64 bytes)
{
	u32 count = vq->count;

	csaqm_vq_serve(vq, share, bytes);
	CHECK_EQ(vq->count, count);
	csaqm_vq_work(vq, 64);
}

static void core_vq_owe(struct csaqm_vq *vq, u64 bytes)
{
	u32 count = vq->count;

	csaqm_vq_owe(vq, bytes);
	CHECK_EQ(vq->count, count);
	csaqm_vq_work(vq, 64);
}

/* Serve nothing until nothing is owed. */
static void core_settle(struct csaqm_vq *vq)
{
	u32 calls = 0;

	while (vq->owed) {
		core_vq_serve(vq, CSAQM_SHARE_ONE, 0);
		CHECK(++calls < CORE_MOST, "owed for ever");
	}
}

/* What holds at any time: records, their sum, the histogram and its sums. */
static void core_walk(const struct csaqm_vq *vq)
{
	static u64 bins[CSAQM_VALUES];
	u64 bytes = 0, sum;
	u32 i, k, place;

	CHECK(vq->size && vq->head < vq->size && vq->count <= vq->size,
	      "%u of %u at %u", vq->count, vq->size, vq->head);
	CHECK(vq->frac < 1000, "%u", vq->frac);
	CHECK(vq->owed <= vq->bytes, "%llu owed of %llu", (ull)vq->owed,
	      (ull)vq->bytes);
	CHECK_EQ(csaqm_vq_length(vq), vq->bytes - vq->owed);
	memset(bins, 0, sizeof(bins));
	for (i = 0; i < vq->count; i++) {
		place = (vq->head + i) % vq->size;
		CHECK(vq->ring[place].bytes, "record %u is empty", i);
		bins[vq->ring[place].value] += vq->ring[place].bytes;
		bytes += vq->ring[place].bytes;
	}
	CHECK_EQ(vq->bytes, bytes);
	for (i = 0; i < CSAQM_GROUPS; i++) {
		sum = 0;
		for (k = 0; k < CSAQM_GROUP; k++) {
			u32 value = i * CSAQM_GROUP + k;

			if (vq->hist->bins[value] != bins[value])
				CHECK_EQ(vq->hist->bins[value], bins[value]);
			sum += bins[value];
		}
		CHECK_EQ(vq->hist->sums[i], sum);
	}
}

/* A virtual queue without debts has what the array has. */
static void core_same(const struct csaqm_vq *vq)
{
	u32 i, value;

	CHECK_EQ(vq->owed, 0);
	CHECK_EQ(vq->count, core_array.count);
	for (i = 0; i < vq->count; i++) {
		const struct csaqm_record *record =
			&vq->ring[(vq->head + i) % vq->size];

		CHECK_EQ(record->bytes, core_array_bytes(i, &value));
		CHECK_EQ(record->value, value);
	}
}

static void core_add(struct csaqm_vq *vq, u32 value, u32 bytes)
{
	csaqm_vq_add(vq, value, bytes);
	core_array_add(value, bytes);
}

static void core_serve(struct csaqm_vq *vq, u32 share, u64 bytes)
{
	core_vq_serve(vq, share, bytes);
	core_array_take(bytes * share);
	CHECK_EQ(csaqm_vq_length(vq), core_array_length());
}

/* Values of a few kinds: any, of one group, on its edges, few, all alike. */
static u32 core_any_value(u32 kind)
{
	u32 value;

	switch (kind % 6) {
	case 0:
		return unit_between(0, 65535);
	case 1:
		return 0x4300 + unit_rnd() % 256;
	case 2:
		value = unit_rnd() % 256 << 8;
		return unit_rnd() % 2 ? value + 255 : value;
	case 3:
		return unit_rnd() % 2 ? 65535 : 0;
	case 4:
		return 20000 + unit_rnd() % 4;
	}
	return 40000;
}

static void core_add_any(struct csaqm_vq *vq, u32 kind, u32 most)
{
	u32 value = core_any_value(kind);

	core_add(vq, value, unit_any(1, most));
}

/* ---- parameters ---- */

static struct csaqm_config core_config(bool dual, u64 bandwidth)
{
	struct csaqm_config cfg;

	memset(&cfg, 0xa5, sizeof(cfg));
	csaqm_config_init(&cfg, dual);
	cfg.bandwidth = bandwidth;
	return cfg;
}

static struct csaqm_params core_params(const struct csaqm_config *cfg)
{
	struct csaqm_params p;

	memset(&p, 0xa5, sizeof(p));
	csaqm_params_init(&p, cfg);
	return p;
}

static struct csaqm_params core_defaults(bool dual, u64 bandwidth)
{
	struct csaqm_config cfg = core_config(dual, bandwidth);

	return core_params(&cfg);
}

static void core_defaults_are_those_of_the_papers(void)
{
	struct csaqm_config cfg = core_config(false, 0);

	csaqm_config_init(&cfg, false);
	CHECK_EQ(cfg.bandwidth, 0);
	CHECK_EQ(cfg.tupdate_us, 5000);
	CHECK_EQ(cfg.target_us, 5000);
	CHECK_EQ(cfg.buffer_us, 500000);
	CHECK_EQ(cfg.vrate, 1000);
	CHECK_EQ(cfg.carry, 0);
	CHECK(cfg.ecn && !cfg.dual && !cfg.limit_is_set, "csaqm");

	csaqm_config_init(&cfg, true);
	CHECK_EQ(cfg.bandwidth, 0);
	CHECK_EQ(cfg.tupdate_us, 10000);
	CHECK_EQ(cfg.target_us, 20000);
	CHECK_EQ(cfg.target_l_us, 1000);
	CHECK_EQ(cfg.buffer_us, 200000);
	CHECK_EQ(cfg.buffer_l_us, 50000);
	CHECK_EQ(cfg.vrate, 984);
	CHECK_EQ(cfg.vrate_l, 900);
	CHECK_EQ(cfg.carry, 0);
	CHECK(cfg.ecn && cfg.dual && !cfg.limit_is_set, "vdq_csaqm");
}

static void core_limits_of_the_knobs(void)
{
	CHECK_EQ(CSAQM_LIMIT_PKTS_MIN, 1);
	CHECK_EQ(CSAQM_LIMIT_PKTS_MAX, 1048576);
	CHECK_EQ(CSAQM_TUPDATE_US_MIN, 100);
	CHECK_EQ(CSAQM_TUPDATE_US_MAX, 4294967);
	CHECK_EQ(CSAQM_TIME_US_MIN, 1);
	CHECK_EQ(CSAQM_TIME_US_MAX, 4294967);
	CHECK_EQ(CSAQM_SHARE_MIN, 1);
	CHECK_EQ(CSAQM_SHARE_ONE, 1000);
	CHECK_EQ(CSAQM_VALUES, 65536);
	CHECK_EQ(CSAQM_RECORDS_PER_ARRIVAL, 2);
	CHECK_EQ(CSAQM_RECORDS_PER_UPDATE, 4096);
}

/* The testbed of the paper: 1 Gbit/s. */
static void core_parameters_at_a_gigabit_are_the_papers(void)
{
	struct csaqm_params p = core_defaults(true, 125000000);

	CHECK(p.dual && p.ecn, "dual, ecn");
	CHECK_EQ(p.link.ns_per_byte_q20, 8 << 20);
	CHECK_EQ(p.link.overhead_bytes, 0);
	CHECK_EQ(p.link.mpu_bytes, 0);
	CHECK_EQ(p.link.framing, 0);
	CHECK(!p.link.ingress, "ingress");
	CHECK_EQ(p.tupdate_ns, 10000000);
	CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_L], 6250000);
	CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_C], 25000000);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], 6250000);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 31250000);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_L], 112500);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_C], 2460000);
	CHECK_EQ(p.share[DUALPI2_QUEUE_L], 900);
	CHECK_EQ(p.share[DUALPI2_QUEUE_C], 984);
	CHECK_EQ(p.limit_pkts, 31250000 / 256);
}

static void core_parameters_of_one_queue_at_a_gigabit(void)
{
	struct csaqm_params p = core_defaults(false, 125000000);

	CHECK(!p.dual && p.ecn, "dual, ecn");
	CHECK_EQ(p.tupdate_ns, 5000000);
	CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_C], 62500000);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 62500000);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_C], 625000);
	CHECK_EQ(p.share[DUALPI2_QUEUE_C], 1000);
	CHECK_EQ(p.limit_pkts, 62500000 / 256);
}

/* At 8 kbit/s a target is two packets, a queue four; the most is 1 GiB. */
static void core_parameters_at_the_ends_have_bounds(void)
{
	struct csaqm_params p = core_defaults(true, 1000);
	u32 i;

	for (i = 0; i < DUALPI2_QUEUES; i++) {
		CHECK_EQ(p.target_bytes[i], 3028);
		CHECK_EQ(p.buffer_bytes[i], 6056);
	}
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], 6056);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 12112);
	CHECK_EQ(p.limit_pkts, 1000);
	p = core_defaults(true, 125000000000ULL);
	for (i = 0; i < DUALPI2_QUEUES; i++)
		CHECK_EQ(p.buffer_bytes[i], 1 << 30);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_L], 112500000);
	CHECK_EQ(p.target_bytes[DUALPI2_QUEUE_C], 1 << 30);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], 1 << 30);
	CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C], 1ULL << 31);
	CHECK_EQ(p.limit_pkts, 1 << 20);
}

/* floor(rate * time), two packets or four at least, 2^30 at most */
static u64 core_bytes_in(long double rate, u32 us, u64 least)
{
	u64 bytes = floorl(rate * us / 1e6L);

	return bytes < least ? least : bytes > 1ULL << 30 ? 1ULL << 30 : bytes;
}

static void core_parameters_follow_from_the_knobs(void)
{
	static const u64 packet = 1514;
	int i;

	for (i = 0; i < 20000; i++) {
		bool dual = unit_rnd() % 2;
		struct csaqm_config cfg = core_config(dual, 0);
		struct csaqm_params p;
		u64 want_c, want_l, records;

		cfg.bandwidth = unit_any(1000, 125000000000ULL);
		cfg.tupdate_us = unit_any(100, 4294967);
		cfg.target_us = unit_any(1, 4294967);
		cfg.target_l_us = unit_any(1, 4294967);
		cfg.buffer_us = unit_any(1, 4294967);
		cfg.buffer_l_us = unit_any(1, 4294967);
		cfg.vrate = unit_any(1, 1000);
		cfg.vrate_l = unit_any(1, 1000);
		cfg.ecn = unit_rnd() % 2;
		cfg.limit_is_set = unit_rnd() % 2;
		cfg.limit_pkts = unit_any(1, 1 << 20);
		p = core_params(&cfg);

		CHECK_EQ(p.dual, dual);
		CHECK_EQ(p.ecn, cfg.ecn);
		CHECK_EQ(p.tupdate_ns, cfg.tupdate_us * 1000ULL);
		CHECK_EQ(p.link.ns_per_byte_q20,
			 dualpi2_ns_per_byte_q20(cfg.bandwidth));
		CHECK_EQ(p.share[DUALPI2_QUEUE_C], cfg.vrate);
		CHECK_EQ(p.share[DUALPI2_QUEUE_L], cfg.vrate_l);
		want_c = core_bytes_in(cfg.bandwidth, cfg.buffer_us,
				       4 * packet);
		want_l = core_bytes_in(cfg.bandwidth, cfg.buffer_l_us,
				       4 * packet);
		CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_C], want_c);
		CHECK_EQ(p.buffer_bytes[DUALPI2_QUEUE_L], want_l);
		CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_L], want_l);
		CHECK_EQ(p.vbuffer_bytes[DUALPI2_QUEUE_C],
			 dual ? want_c + want_l : want_c);
		records = p.vbuffer_bytes[DUALPI2_QUEUE_C] / 256;
		records = records < 1000 ? 1000 : records;
		records = records > 1 << 20 ? 1 << 20 : records;
		CHECK_EQ(p.limit_pkts, cfg.limit_is_set ? cfg.limit_pkts :
							  records);

		/* rates are whole bytes per second, hence the tolerance */
		want_c = core_bytes_in(cfg.bandwidth * cfg.vrate / 1000.0L,
				       cfg.target_us, 2 * packet);
		want_l = core_bytes_in(cfg.bandwidth * cfg.vrate_l / 1000.0L,
				       cfg.target_l_us, 2 * packet);
		CHECK_NEAR(p.target_bytes[DUALPI2_QUEUE_C], want_c,
			   1 + cfg.target_us / 1000000);
		CHECK_NEAR(p.target_bytes[DUALPI2_QUEUE_L], want_l,
			   1 + cfg.target_l_us / 1000000);
	}
}

static void core_l4s_virtual_queue_has_l4s_packets_only(void)
{
	struct csaqm_params dual = core_defaults(true, 125000000);
	struct csaqm_params one = core_defaults(false, 125000000);

	CHECK(csaqm_is_l(&dual, DUALPI2_QUEUE_L), "dual, L");
	CHECK(!csaqm_is_l(&dual, DUALPI2_QUEUE_C), "dual, C");
	CHECK(!csaqm_is_l(&one, DUALPI2_QUEUE_L), "one, L");
	CHECK(!csaqm_is_l(&one, DUALPI2_QUEUE_C), "one, C");
}

static void core_queue_follows_ecn(void)
{
	struct csaqm_params dual = core_defaults(true, 125000000);
	struct csaqm_params one = core_defaults(false, 125000000);
	enum dualpi2_ecn ecn;

	for (ecn = DUALPI2_ECN_NOT_ECT; ecn <= DUALPI2_ECN_CE; ecn++)
		CHECK_EQ(csaqm_queue_of_ecn(&one, ecn), DUALPI2_QUEUE_C);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_NOT_ECT),
		 DUALPI2_QUEUE_C);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_ECT0), DUALPI2_QUEUE_C);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_ECT1), DUALPI2_QUEUE_L);
	CHECK_EQ(csaqm_queue_of_ecn(&dual, DUALPI2_ECN_CE), DUALPI2_QUEUE_L);
}

/* ---- virtual queue ---- */

static void core_new_virtual_queue_is_empty(void)
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

static void core_service_takes_parts_of_packets_in_order(void)
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
static void core_virtual_queue_matches_the_array(void)
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
static void core_ring_wraps(void)
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

static void core_one_record_is_a_virtual_queue(void)
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

/* However much is owed, no more than that many records are taken out, and the length
 * is right at once; the next call goes on.
 */
static void core_work_is_bounded(void)
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

static void core_beyond_its_length_nothing_is_owed(void)
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
static void core_share_is_exact(void)
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
			CHECK_EQ(csaqm_vq_length(&vq),
				 start - sent * shares[i] / 1000);
		}
		core_walk(&vq);
		core_free(&vq);
	}
}

/* An empty virtual queue saves nothing for packets to come. */
static void core_empty_virtual_queue_keeps_no_service(void)
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

static void core_service_of_extreme_length(void)
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

static void core_move_keeps_what_there_is_room_for(void)
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
		/* often much is owed */
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
static void core_move_of_many_records_takes_several_calls(void)
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
static void core_move_ends_with_records_of_nothing(void)
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

static void core_move_of_an_empty_one_is_empty(void)
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

static void core_threshold_matches_a_sort(void)
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
			CHECK(got == threshold, "%u, want %u, %u of %llu", got,
			      threshold, (u32)target, (ull)length);
			zero += !got;
			top += got == CSAQM_VALUES;
			between += got && got < CSAQM_VALUES;
		}
		core_vq_owe(&vq, UINT64_MAX);
		core_settle(&vq);
	}
	CHECK(zero > 1000 && top > 1000 && between > 1000, "%u, %u, %u", zero,
	      top, between);
	core_free(&vq);
}

/* What the definition says of a few states; no array. */
static void core_threshold_of_some_states(void)
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
static void core_threshold_is_none_at_the_target_whatever_is_owed(void)
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

/* ---- one instance ---- */

struct core_run {
	struct csaqm_params p;
	struct csaqm_vars v;
};

static void core_begin(struct core_run *r, const struct csaqm_config *cfg,
		       u32 size)
{
	u32 i;

	r->p = core_params(cfg);
	memset(&r->v, 0, sizeof(r->v));
	for (i = 0; i < DUALPI2_QUEUES; i++)
		core_new(&r->v.vq[i], size);
	r->v.idle_ns = CSAQM_BUSY;
}

static void core_end(struct core_run *r)
{
	u32 i;

	for (i = 0; i < DUALPI2_QUEUES; i++)
		core_free(&r->v.vq[i]);
}

static u64 core_length(const struct core_run *r, enum dualpi2_queue i)
{
	return csaqm_vq_length(&r->v.vq[i]);
}

/* Full is: the queue, a related virtual queue in bytes or in records. */
static void core_room_ends_with_any_related_queue(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 1000000);
	struct core_run r;

	core_begin(&r, &cfg, 4);
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
static void core_room_with_one_queue(void)
{
	struct csaqm_config cfg = core_config(false, 1000000);
	struct core_run r;

	core_begin(&r, &cfg, 4);
	core_free(&r.v.vq[DUALPI2_QUEUE_L]);
	memset(&r.v.vq[DUALPI2_QUEUE_L], 0, sizeof(struct csaqm_vq));
	CHECK(csaqm_has_room(&r.p, &r.v, DUALPI2_QUEUE_C, 498500, 1500), "one");
	CHECK(!csaqm_has_room(&r.p, &r.v, DUALPI2_QUEUE_C, 498501, 1500),
	      "one, full");
	csaqm_arrive(&r.p, &r.v, DUALPI2_QUEUE_C, 5, 9000);
	CHECK_EQ(core_length(&r, DUALPI2_QUEUE_C), 9000);
	csaqm_sent(&r.p, &r.v, 1000);
	CHECK_EQ(core_length(&r, DUALPI2_QUEUE_C), 8000);
	csaqm_dropped(&r.p, &r.v, DUALPI2_QUEUE_C, 1000);
	CHECK_EQ(core_length(&r, DUALPI2_QUEUE_C), 7000);
	csaqm_update(&r.p, &r.v, 1000);
	CHECK_EQ(r.v.vq[DUALPI2_QUEUE_C].threshold, 6);
	CHECK_EQ(r.v.vq[DUALPI2_QUEUE_L].threshold, 0);
	core_end(&r);
}

/* What is owed is not in the length, but in sums of 32 bits. */
static void core_room_is_for_sums_of_32_bits(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C;
	struct csaqm_config cfg = core_config(false, 125000000000ULL);
	struct core_run r;

	cfg.buffer_us = 1000000;
	core_begin(&r, &cfg, 4);
	CHECK_EQ(r.p.vbuffer_bytes[c], 1 << 30);
	csaqm_vq_add(&r.v.vq[c], 1, 0xc0000000);
	r.v.vq[c].owed = 0xc0000000;
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 0x3fffffff), "2^32 - 1");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 0, 0x40000000), "2^32");
	csaqm_vq_add(&r.v.vq[c], 1, 0x30000000);
	r.v.vq[c].owed = 0xe0000000;
	CHECK(csaqm_has_room(&r.p, &r.v, c, 0, 0x0fffffff), "2^32 - 1");
	CHECK(!csaqm_has_room(&r.p, &r.v, c, 0, 0x10000000), "2^32");
	core_end(&r);
}

/* A buffer of a low rate is less than a large packet. */
static void core_room_of_an_empty_queue_is_for_any_packet(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 1000);
	struct core_run r;

	core_begin(&r, &cfg, 4);
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

/* Two records out for each that comes: an empty virtual queue is not full. */
static void core_arrivals_catch_up(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 1000000);
	struct core_run r;
	u32 i;

	cfg.ecn = false;
	core_begin(&r, &cfg, 300);
	for (i = 0; i < 300; i++)
		csaqm_arrive(&r.p, &r.v, l, i, 40);
	csaqm_dropped(&r.p, &r.v, l, 12000);
	CHECK_EQ(r.v.vq[c].count, 300);
	CHECK_EQ(r.v.vq[l].count, 300);
	csaqm_catch_up(&r.p, &r.v);
	CHECK_EQ(r.v.vq[c].count, 298);
	CHECK_EQ(r.v.vq[l].count, 298);
	for (i = 0; i < 291; i++) {
		csaqm_catch_up(&r.p, &r.v);
		CHECK(csaqm_has_room(&r.p, &r.v, l, 0, 50), "packet %u", i);
		csaqm_arrive(&r.p, &r.v, l, 7, 50);
		CHECK_EQ(core_length(&r, c), 50 * (i + 1));
		CHECK_EQ(core_length(&r, l), 50 * (i + 1));
	}
	CHECK_EQ(r.v.vq[c].owed, 0);
	CHECK_EQ(r.v.vq[c].count, 291);
	/* nothing is owed any more */
	csaqm_catch_up(&r.p, &r.v);
	CHECK_EQ(r.v.vq[c].count, 291);
	CHECK_EQ(r.v.vq[l].count, 291);
	core_walk(&r.v.vq[c]);
	core_walk(&r.v.vq[l]);
	core_end(&r);
}

static void core_arrival_goes_to_the_related_virtual_queues(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 1000000);
	struct core_run r;

	core_begin(&r, &cfg, 4);
	csaqm_arrive(&r.p, &r.v, c, 1000, 1500);
	CHECK_EQ(core_length(&r, c), 1500);
	CHECK_EQ(core_length(&r, l), 0);
	csaqm_arrive(&r.p, &r.v, l, 2000, 100);
	CHECK_EQ(core_length(&r, c), 1600);
	CHECK_EQ(core_length(&r, l), 100);
	CHECK_EQ(r.v.vq[c].hist->bins[1000], 1500);
	CHECK_EQ(r.v.vq[c].hist->bins[2000], 100);
	CHECK_EQ(r.v.vq[l].hist->bins[2000], 100);
	core_walk(&r.v.vq[c]);
	core_walk(&r.v.vq[l]);
	core_end(&r);
}

/* "Remove exactly p_s * C_vi / C bits from all VQs." */
static void core_departure_serves_all_virtual_queues(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 1000000);
	struct core_run r;

	cfg.ecn = false;
	core_begin(&r, &cfg, 9);
	csaqm_arrive(&r.p, &r.v, c, 1000, 3000);
	csaqm_arrive(&r.p, &r.v, l, 2000, 3000);
	csaqm_sent(&r.p, &r.v, 1000);
	CHECK_EQ(core_length(&r, c), 6000 - 984);
	CHECK_EQ(core_length(&r, l), 3000 - 900);
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
static void core_verdict_matches_the_paper(void)
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
			if (value < levels[a] ||
			    (queue == DUALPI2_QUEUE_L && value < levels[b])) {
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

/* With one queue ECT(1) is in it, and marked even where ECT(0) is dropped. */
static void core_verdict_with_one_queue_ignores_the_other(void)
{
	struct csaqm_params p = core_defaults(false, 125000000);
	struct csaqm_vars v = { 0 };

	v.vq[DUALPI2_QUEUE_L].threshold = 65536;
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_C, 0,
			       DUALPI2_ECN_NOT_ECT), CSAQM_PASS);
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_L, 0,
			       DUALPI2_ECN_NOT_ECT), CSAQM_PASS);
	v.vq[DUALPI2_QUEUE_C].threshold = 1;
	p.ecn = false;
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_C, 0, DUALPI2_ECN_ECT1),
		 CSAQM_MARK);
	CHECK_EQ(csaqm_verdict(&p, &v, DUALPI2_QUEUE_C, 0, DUALPI2_ECN_ECT0),
		 CSAQM_DROP);
}

/* Each virtual queue has its target. */
static void core_update_sets_each_threshold(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 10000000);
	struct core_run r;

	cfg.ecn = false;
	core_begin(&r, &cfg, 300);
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

/* What is owed is taken out first, as far as 4096 records go. */
static void core_update_sees_what_is_left(void)
{
	const enum dualpi2_queue c = DUALPI2_QUEUE_C, l = DUALPI2_QUEUE_L;
	struct csaqm_config cfg = core_config(true, 10000000);
	struct core_run r;
	u32 i;

	core_begin(&r, &cfg, 9000);
	/* 100 bytes each: the target of the L4S virtual queue is 90 of them */
	for (i = 0; i < 9000; i++)
		csaqm_arrive(&r.p, &r.v, l, i < 4000 ? 60000 : i, 100);
	csaqm_dropped(&r.p, &r.v, l, 400000);
	CHECK_EQ(r.v.vq[l].count, 9000);
	csaqm_update(&r.p, &r.v, SEC);
	CHECK_EQ(r.v.vq[l].owed, 0);
	CHECK_EQ(r.v.vq[c].owed, 0);
	CHECK_EQ(r.v.vq[l].threshold, 9000 - 90);
	CHECK_EQ(r.v.vq[c].threshold, 9000 - 1968);
	csaqm_dropped(&r.p, &r.v, l, 490000);
	CHECK_EQ(r.v.vq[l].count, 5000);
	csaqm_update(&r.p, &r.v, 2 * SEC);
	CHECK_EQ(r.v.vq[l].count, 904);
	CHECK_EQ(r.v.vq[c].count, 904);
	csaqm_update(&r.p, &r.v, 3 * SEC);
	CHECK_EQ(r.v.vq[l].count, 100);
	CHECK_EQ(r.v.vq[l].threshold, 9000 - 90);
	CHECK_EQ(r.v.vq[c].threshold, 0);
	core_end(&r);
}

static void core_update_is_due_once_in_its_time(void)
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

/* ---- idle ---- */

/* A virtual queue of 4 GB, hence bytes that were served can be counted. */
static void core_begin_long(struct core_run *r, u64 bandwidth, u32 vrate)
{
	struct csaqm_config cfg = core_config(true, bandwidth);
	u32 i, n;

	cfg.vrate = vrate;
	cfg.vrate_l = vrate;
	core_begin(r, &cfg, 2);
	for (i = 0; i < DUALPI2_QUEUES; i++)
		for (n = 0; n < 2; n++)
			csaqm_vq_add(&r->v.vq[i], 1, 2147483647);
}

static u64 core_served(const struct core_run *r, enum dualpi2_queue i)
{
	return 4294967294ULL - core_length(r, i);
}

static void core_idle_link_serves_by_rate(void)
{
	struct core_run r;

	core_begin_long(&r, 1000000, 900);
	csaqm_idle_until(&r.p, &r.v, SEC);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 0);
	CHECK_EQ(r.v.idle_ns, CSAQM_BUSY);
	csaqm_idle(&r.v, SEC);
	CHECK_EQ(r.v.idle_ns, SEC);
	csaqm_idle_until(&r.p, &r.v, SEC);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 0);
	csaqm_idle_until(&r.p, &r.v, SEC + SEC / 10);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 90000);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_L), 90000);
	/* that time is over */
	csaqm_idle_until(&r.p, &r.v, SEC + SEC / 10);
	csaqm_idle_until(&r.p, &r.v, SEC);
	csaqm_idle_until(&r.p, &r.v, 0);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 90000);
	csaqm_idle_until(&r.p, &r.v, 3 * SEC + SEC / 10);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 1890000);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_L), 1890000);
	core_end(&r);
}

/* It begins when the last packet has left the link, which may be later. */
static void core_idle_begins_when_the_link_is_free(void)
{
	struct core_run r;

	core_begin_long(&r, 1000000, 1000);
	csaqm_idle(&r.v, 0);
	csaqm_idle_until(&r.p, &r.v, 5 * MS);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 5000);
	csaqm_idle(&r.v, 10 * MS);
	csaqm_idle_until(&r.p, &r.v, 9 * MS);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 5000);
	CHECK_EQ(r.v.idle_ns, 10 * MS);
	csaqm_idle_until(&r.p, &r.v, 11 * MS);
	CHECK_EQ(core_served(&r, DUALPI2_QUEUE_C), 6000);
	core_end(&r);
}

/* However often one looks: "we continue serving non-empty VQs by C_vi". */
static void core_idle_in_any_steps_serves_the_same(void)
{
	int i;

	for (i = 0; i < 300; i++) {
		u64 rate = unit_any(1000, 125000000000ULL);
		u32 vrate = unit_between(1, 1000), n;
		u64 byte_ns = SEC / rate + 1, start = unit_any(1, CORE_NS_MAX);
		u64 most = unit_any(1, 40 * byte_ns), now = start;
		struct core_run r;
		long double want, slack;
		u64 got;

		core_begin_long(&r, rate, vrate);
		csaqm_idle(&r.v, start);
		for (n = 0; n < 1000; n++) {
			now += unit_any(1, most);
			csaqm_idle_until(&r.p, &r.v, now);
		}
		got = core_served(&r, DUALPI2_QUEUE_C);
		want = (now - start) * (rate / 1e9L) * vrate / 1000;
		/* a step: the lesser of a byte and a nanosecond */
		slack = (rate < SEC ? rate / 1e9L : 1) * vrate;
		/* a byte, and the roundings of the rate */
		CHECK(got <= want * 1.0001L + 1 &&
		      got >= want * 0.9999L - 2 - slack,
		      "%llu B/s * %u, %llu ns: %llu, want %Lf", (ull)rate,
		      vrate, (ull)(now - start), (ull)got, want);
		core_end(&r);
	}
}

/* Two hours of the slowest: a jump of any size is not more than it can be. */
static void core_idle_of_any_length_is_service(void)
{
	static const u64 rates[] = { 1000, 125000, 125000000, 125000000000ULL };
	static const u64 gaps[] = {
		1, SEC, 9 * SEC, 11 * SEC, 3600 * SEC, 7199 * SEC, 7200 * SEC,
		1ULL << 44, 1ULL << 53, 1ULL << 63, UINT64_MAX - 1,
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (k = 0; k < ARRAY_SIZE(gaps); k++) {
			u64 seconds = gaps[k] / SEC, got, all = 4294967294ULL;
			long double want = gaps[k] * (rates[i] / 1e9L) / 1000;
			struct core_run r;

			core_begin_long(&r, rates[i], 1);
			csaqm_idle(&r.v, 1);
			csaqm_idle_until(&r.p, &r.v, 1 + gaps[k]);
			got = core_served(&r, DUALPI2_QUEUE_C);
			if (want > all)
				want = all;
			CHECK(got <= want * 1.0001L + 1,
			      "%llu ns at %llu B/s: %llu, want %Lf",
			      (ull)gaps[k], (ull)rates[i], (ull)got, want);
			if (seconds <= 7200)
				CHECK(got >= want * 0.9999L - 1,
				      "%llu ns at %llu B/s: %llu, want %Lf",
				      (ull)gaps[k], (ull)rates[i], (ull)got,
				      want);
			else
				CHECK(got >= 7200 * (rates[i] / 1001.0L) ||
				      got == all, "%llu ns at %llu B/s: %llu",
				      (ull)gaps[k], (ull)rates[i], (ull)got);
			/* no time counts twice */
			csaqm_idle_until(&r.p, &r.v, 1 + gaps[k]);
			got = core_served(&r, DUALPI2_QUEUE_C);
			CHECK(got <= want * 1.0001L + 1,
			      "%llu ns at %llu B/s: %llu, want %Lf",
			      (ull)gaps[k], (ull)rates[i], (ull)got, want);
			core_end(&r);
		}
	}
}

/* ---- all of it ---- */

/* Two Classic flows that answer to nothing, each with its function. */
static void core_play(bool dual, u64 bandwidth, const u64 *offered,
		      u64 *forwarded)
{
	static struct { u32 flow, value; } fifo[1 << 16];
	const u32 bytes = 1250;
	struct csaqm_config cfg = core_config(dual, bandwidth);
	u64 now, free_ns = 0, next[2], gap[2], end = 14 * SEC, queued = 0;
	struct ppv_tvf tvf[2];
	struct core_run r;
	u32 head = 0, i;

	cfg.ecn = false;
	core_begin(&r, &cfg, 1 << 16);
	for (i = 0; i < 2; i++) {
		ppv_tvf_builtin(&tvf[i], i + 1);
		gap[i] = SEC * bytes / offered[i];
		next[i] = 1000 + i * 777;
		forwarded[i] = 0;
	}
	csaqm_idle(&r.v, 0);
	for (;;) {
		i = next[0] <= next[1] ? 0 : 1;
		/* Departures before the next arrival. */
		while (queued && free_ns <= next[i]) {
			u32 place = head++ % ARRAY_SIZE(fifo);

			now = free_ns;
			queued -= bytes;
			if (csaqm_is_due(&r.p, &r.v, now))
				csaqm_update(&r.p, &r.v, now);
			if (csaqm_verdict(&r.p, &r.v, DUALPI2_QUEUE_C,
					  fifo[place].value,
					  DUALPI2_ECN_ECT0) == CSAQM_DROP) {
				csaqm_dropped(&r.p, &r.v, DUALPI2_QUEUE_C,
					      bytes);
			} else {
				csaqm_sent(&r.p, &r.v, bytes);
				free_ns = now + SEC * bytes / bandwidth;
				if (now >= 4 * SEC)
					forwarded[fifo[place].flow] += bytes;
			}
			if (!queued)
				csaqm_idle(&r.v, free_ns);
		}
		now = next[i];
		if (now > end)
			break;
		next[i] += gap[i];
		if (!queued) {
			csaqm_idle_until(&r.p, &r.v, now);
			r.v.idle_ns = CSAQM_BUSY;
			free_ns = free_ns > now ? free_ns : now;
		}
		if (!csaqm_has_room(&r.p, &r.v, DUALPI2_QUEUE_C, queued, bytes))
			continue;
		fifo[(head + queued / bytes) % ARRAY_SIZE(fifo)].flow = i;
		fifo[(head + queued / bytes) % ARRAY_SIZE(fifo)].value =
			ppv_pick(&tvf[i], offered[i], unit_rnd() >> 32);
		csaqm_arrive(&r.p, &r.v, DUALPI2_QUEUE_C,
			     fifo[(head + queued / bytes) %
				  ARRAY_SIZE(fifo)].value, bytes);
		queued += bytes;
	}
	core_walk(&r.v.vq[DUALPI2_QUEUE_C]);
	core_end(&r);
	for (i = 0; i < 2; i++)
		forwarded[i] = forwarded[i] / 10;
}

/* Gold and Silver get what the policy gives them, whatever they send, and
 * together the rate of the virtual queue.
 */
static void core_flows_get_what_their_functions_say(void)
{
	static const struct {
		u32 share;	/* dual if not 1000 */
		u32 link_mbit, gold_mbit, silver_mbit, offered_mbit[2];
	} cases[] = {
		{ 1000, 24, 16, 8, { 60, 60 } },
		{ 1000, 24, 16, 8, { 30, 90 } },
		{ 1000, 40, 30, 10, { 60, 60 } },
		{ 1000, 40, 30, 10, { 90, 40 } },
		{ 1000, 100, 80, 20, { 120, 120 } },
		{ 984, 24, 16, 8, { 60, 60 } },
		{ 984, 40, 30, 10, { 60, 60 } },
		{ 984, 100, 80, 20, { 120, 120 } },
		/* Who asks for less than its share gets it. */
		{ 1000, 40, 5, 35, { 5, 60 } },
		{ 984, 40, 36, 4, { 60, 4 } },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 offered[2] = { cases[i].offered_mbit[0] * 125000ULL,
				   cases[i].offered_mbit[1] * 125000ULL };
		u64 link = cases[i].link_mbit * 125000ULL;
		u64 want = link / 1000 * cases[i].share;
		u64 got[2], gold = cases[i].gold_mbit * 125000ULL;
		u64 silver = cases[i].silver_mbit * 125000ULL;

		core_play(cases[i].share != 1000, link, offered, got);
		CHECK(got[0] + got[1] >= want * 0.995 &&
		      got[0] + got[1] <= want * 1.005,
		      "case %u: %llu together, want %llu", i,
		      (ull)(got[0] + got[1]), (ull)want);
		CHECK_NEAR(got[0], gold, gold / 12);
		CHECK_NEAR(got[1], silver, silver / 12);
	}
}

static const struct unit_test core_tests[] = {
	TEST(core_defaults_are_those_of_the_papers),
	TEST(core_limits_of_the_knobs),
	TEST(core_parameters_at_a_gigabit_are_the_papers),
	TEST(core_parameters_of_one_queue_at_a_gigabit),
	TEST(core_parameters_at_the_ends_have_bounds),
	TEST(core_parameters_follow_from_the_knobs),
	TEST(core_l4s_virtual_queue_has_l4s_packets_only),
	TEST(core_queue_follows_ecn),
	TEST(core_new_virtual_queue_is_empty),
	TEST(core_service_takes_parts_of_packets_in_order),
	TEST(core_virtual_queue_matches_the_array),
	TEST(core_ring_wraps),
	TEST(core_one_record_is_a_virtual_queue),
	TEST(core_work_is_bounded),
	TEST(core_beyond_its_length_nothing_is_owed),
	TEST(core_share_is_exact),
	TEST(core_empty_virtual_queue_keeps_no_service),
	TEST(core_service_of_extreme_length),
	TEST(core_move_keeps_what_there_is_room_for),
	TEST(core_move_of_many_records_takes_several_calls),
	TEST(core_move_ends_with_records_of_nothing),
	TEST(core_move_of_an_empty_one_is_empty),
	TEST(core_threshold_matches_a_sort),
	TEST(core_threshold_of_some_states),
	TEST(core_threshold_is_none_at_the_target_whatever_is_owed),
	TEST(core_room_ends_with_any_related_queue),
	TEST(core_room_with_one_queue),
	TEST(core_room_is_for_sums_of_32_bits),
	TEST(core_room_of_an_empty_queue_is_for_any_packet),
	TEST(core_arrivals_catch_up),
	TEST(core_arrival_goes_to_the_related_virtual_queues),
	TEST(core_departure_serves_all_virtual_queues),
	TEST(core_verdict_matches_the_paper),
	TEST(core_verdict_with_one_queue_ignores_the_other),
	TEST(core_update_sets_each_threshold),
	TEST(core_update_sees_what_is_left),
	TEST(core_update_is_due_once_in_its_time),
	TEST(core_idle_link_serves_by_rate),
	TEST(core_idle_begins_when_the_link_is_free),
	TEST(core_idle_in_any_steps_serves_the_same),
	TEST(core_idle_of_any_length_is_service),
	TEST(core_flows_get_what_their_functions_say),
};
