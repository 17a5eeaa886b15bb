/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of core-stateless AQM, csaqm.h, share.
 *
 * What is expected comes from section 3 of the VDQ-CSAQM paper: a virtual queue
 * is a plain array of packets that is served in 1/1000 of a byte, a threshold
 * value is found by sorting all of them.
 */
#ifndef CSAQM_TEST_H
#define CSAQM_TEST_H

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
	csaqm_vq_init(vq, unit_alloc(csaqm_places(size), sizeof(struct csaqm_record)), size);
}

static void core_free(struct csaqm_vq *vq)
{
	free(vq->ring);
}

/* Serve, which removes no record unless it is all of them, and remove 64. */
static void core_vq_serve(struct csaqm_vq *vq, u32 share, u64 bytes)
{
	u32 count = csaqm_vq_count(vq);

	csaqm_vq_serve(vq, share, bytes);
	CHECK_EQ(csaqm_vq_count(vq), vq->left_milli ? count : 0);
	csaqm_vq_work(vq, 64);
}

static void core_vq_owe(struct csaqm_vq *vq, u64 bytes)
{
	core_vq_serve(vq, CSAQM_SHARE_ONE, bytes);
}

/* Of which records bytes are owed that could be removed. */
static bool core_is_late(const struct csaqm_vq *vq)
{
	return csaqm_vq_count(vq) && vq->owed_milli >= vq->ring[vq->head & vq->mask].bytes * 1000ULL;
}

/* Serve nothing until all that was served is removed. */
static void core_settle(struct csaqm_vq *vq)
{
	u32 calls = 0;

	while (core_is_late(vq)) {
		core_vq_serve(vq, CSAQM_SHARE_ONE, 0);
		CHECK(++calls < CORE_MOST, "records of what was served stay");
	}
}

static u32 core_threshold(const struct csaqm_vq *vq, u32 target)
{
	static u64 sums[CSAQM_GROUP];

	memset(sums, 0xa5, sizeof(sums));
	return csaqm_vq_threshold(vq, target, sums);
}

/* What holds at any time: records are what was served of them and what is left. */
static void core_walk(const struct csaqm_vq *vq)
{
	u64 bytes = 0;
	u32 i;

	CHECK(vq->size && vq->mask + 1 >= vq->size && !(vq->mask & (vq->mask + 1)), "%u places for %u", vq->mask + 1,
	      vq->size);
	CHECK(csaqm_vq_count(vq) <= vq->size, "%u of %u", csaqm_vq_count(vq), vq->size);
	for (i = vq->head; i != vq->tail; i++)
		bytes += vq->ring[i & vq->mask].bytes;
	CHECK_EQ(vq->left_milli + vq->owed_milli, bytes * 1000);
	CHECK_EQ(csaqm_vq_length(vq), (vq->left_milli + 999) / 1000);
}

/* A virtual queue from which all was removed that was served has what the array has. */
static void core_same(const struct csaqm_vq *vq)
{
	u32 i, value;

	CHECK(!core_is_late(vq), "not settled");
	CHECK_EQ(csaqm_vq_count(vq), core_array.count);
	for (i = 0; i < core_array.count; i++) {
		const struct csaqm_record *record = &vq->ring[(vq->head + i) & vq->mask];

		CHECK_EQ(record->bytes - (i ? 0 : vq->owed_milli / 1000), core_array_bytes(i, &value));
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

struct core_run {
	struct csaqm_params p;
	struct csaqm_vars v;
};

static void core_begin(struct core_run *r, const struct csaqm_config *cfg, u32 size)
{
	u32 i;

	r->p = core_params(cfg);
	memset(&r->v, 0, sizeof(r->v));
	for (i = 0; i < DUALPI2_QUEUES; i++)
		core_new(&r->v.vq[i], size);
	r->v.idle_ns = CSAQM_BUSY;
}

/* With the defaults at this rate. */
static struct core_run core_of(bool dual, u64 bandwidth, u32 size)
{
	struct csaqm_config cfg = core_config(dual, bandwidth);
	struct core_run r;

	core_begin(&r, &cfg, size);
	return r;
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

#endif /* CSAQM_TEST_H */
