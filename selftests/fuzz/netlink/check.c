// SPDX-License-Identifier: GPL-2.0-only
/* What a dump shows, against the model: options, statistics, classes, parents. */
#include "fuzz.h"
#include <math.h>

static uint32_t this_dump = 1;

static bool is_kind(const struct tc_msg *msg, const char *name)
{
	return msg->kind && !strcmp(msg->kind, name);
}

/* Do the statistics fit the options? */
static void check_fit(const struct slot *s, const struct stats *st)
{
	const struct config *c = &s->cfg;
	uint64_t target_ns = 1000 * c->v[O_TARGET], k = c->v[O_COUPLING];
	double p = st->x.prob / 4294967296.0, p_cl = k * p > 1 ? 1 : k * p;

	if (limit_may_be_raised(c))
		AT_MOST(limit_of(c), st->link.limit_pkts, "default limit, limit of packets");
	else
		SAME(st->link.limit_pkts, limit_of(c), "limit of packets");
	/* It is above the target where 1514 bytes take more than 0.8 of it. */
	AT_MOST(target_ns, st->link.target_ns, "target, effective target");
	if (!st->link.drain_rate || st->link.drain_rate >= 2 * 1514 * 1000000ULL / c->v[O_TARGET])
		SAME(st->link.target_ns, target_ns, "target of a link that is not slow");
	if (c->v[O_BANDWIDTH])
		SAME(st->link.drain_rate, c->v[O_BANDWIDTH], "drain_rate, bandwidth");
	AT_MOST(st->link.burst_ns, c->v[O_STEP_THRESH_PKTS] ? 0 : 1000 * c->v[O_BURST_MAX],
		"bursts tolerated, burst_max");
	if (fabs(st->e.prob_cl / 4294967296.0 - p_cl) > (k + 2) / 4294967296.0)
		fault("prob_cl %u is not %u times prob %u", st->e.prob_cl, (uint32_t)k, st->x.prob);
	if (s->trimmed && st->queued) {
		AT_MOST(st->q.qlen, st->link.limit_pkts, "packets, limit just set");
		AT_MOST(st->x.memory_used, st->x.memory_limit, "memory, limit just set");
	}
}

static void check_statistics(struct slot *s, const uint8_t *attrs, int len)
{
	struct stats st;
	int n;

	stats_read(&st, attrs, len, -1);
	for (n = 0; n < QUEUES; n++) {
		AT_MOST(st.nest_len[n], sizeof(s->nest[n]), "length of a queue's statistics");
		memcpy(s->nest[n], st.nest[n], st.nest_len[n]);
		s->nest_len[n] = st.nest_len[n];
	}
	/* A parent passes each packet through it; mq is no such parent. */
	stats_check_core(&st, s->state != DUALPI2 || (s->was_bypass && (s->up < 0 || s->dev == D_MQ)));
	if (s->state == DUALPI2 && !s->was_qprotect)
		stats_check_unprotected(&st);
	if (s->state == DUALPI2)
		check_fit(s, &st);
}

static void check_options(struct slot *s, const uint8_t *got, int len)
{
	uint8_t want[512];
	int n, size = 0;

	if (!got)
		fault("a dump without options");
	if (!s->n_mtus) {	/* any memory limit will do */
		struct config cfg = s->cfg;

		if (len < 16 || get16(got + 10) != TCA_DUALPI2_MEMORY_LIMIT)
			fault("options are shown as %s", hex(got, len));
		cfg.v[O_MEMORY_LIMIT] = cfg.memory_is_set ? cfg.v[O_MEMORY_LIMIT] : get32(got + 12);
		cfg.memory_is_set = true;
		size = encode(&cfg, 0, got, len, want);
		if (size == len && !memcmp(got, want, len))
			return;
	}
	for (n = 0; n < s->n_mtus; n++) {
		size = encode(&s->cfg, s->mtus[n], got, len, want);
		if (size == len && !memcmp(got, want, len))
			return;
	}
	fault("options are shown as\n  %s, not\n  %s", hex(got, len), hex(want, size));
}

/* RTM_NEWQDISC that answers a query. */
void check_shown(const uint8_t *data, int len, bool in_dump)
{
	struct gnet_stats_queue q;
	const uint8_t *queue;
	struct tc_msg msg;
	struct slot *s;
	int size;

	if (!tc_parse(&msg, data, len) || !msg.dev || !msg.t.tcm_handle)
		return;
	s = slot_of(msg.dev, msg.t.tcm_parent);
	if (!s)
		return;
	if (!msg.kind)
		fault("a dump without a kind");
	if (is_kind(&msg, "dualpi2")) {
		if (s->state == NONE || s->state == OTHER)
			fault("a dualpi2 %x: at %x that was not made", msg.t.tcm_handle >> 16, msg.t.tcm_parent);
		if (s->state == DUALPI2) {
			if (s->handle && s->handle != msg.t.tcm_handle)
				fault("handle %x is shown as %x", s->handle, msg.t.tcm_handle);
			check_options(s, msg.p[TCA_OPTIONS], msg.len[TCA_OPTIONS]);
		}
		check_statistics(s, data + sizeof(msg.t), len - sizeof(msg.t));
	} else {
		if (s->state == DUALPI2)
			fault("%s is where a dualpi2 was made", msg.kind);
		s->state = OTHER;
		strcpy(s->kind, msg.kind);
	}
	s->handle = msg.t.tcm_handle;
	queue = find(msg.p[TCA_STATS2], msg.len[TCA_STATS2], TCA_STATS_QUEUE, &size);
	if (in_dump && queue) {
		memcpy(&q, queue, sizeof(q));
		s->dump = this_dump;
		s->qlen = q.qlen;
		s->backlog = q.backlog;
	}
}

/* RTM_NEWTCLASS in a dump: the queues of a dualpi2, each as the qdisc shows it. */
void check_class(const uint8_t *data, int len, bool just_dumped)
{
	struct tc_msg msg;
	struct stats st;
	int n, queue;

	if (!tc_parse(&msg, data, len) || !msg.dev || !is_kind(&msg, "dualpi2"))
		return;
	SAME(TC_H_MAJ(msg.t.tcm_handle), msg.t.tcm_parent, "handle and parent of a class");
	if (TC_H_MIN(msg.t.tcm_handle) != 1 && TC_H_MIN(msg.t.tcm_handle) != 3)
		fault("a class %x", msg.t.tcm_handle);
	queue = TC_H_MIN(msg.t.tcm_handle) == 1 ? QUEUE_L : QUEUE_C;
	stats_read(&st, data + sizeof(msg.t), len - sizeof(msg.t), queue);
	SAME(st.bytes, st.c[queue].forwarded_bytes, "bytes of a class, forwarded");
	SAME(st.q.qlen, (uint32_t)st.c[queue].queued, "qlen of a class, queued");
	SAME(st.q.backlog, (uint32_t)st.c[queue].queued_bytes, "backlog of a class, queued");
	count.classes++;
	for (n = msg.dev->first; just_dumped && n < msg.dev->end; n++) {
		struct slot *s = &slots[n];

		if (s->dump + 1 != this_dump || s->state != DUALPI2 || s->handle != msg.t.tcm_parent)
			continue;
		SAME(st.nest_len[queue], s->nest_len[queue], "length of a class's statistics, of the qdisc's");
		if (memcmp(st.nest[queue], s->nest[queue], st.nest_len[queue]))
			fault("class %x is not as the qdisc:\n  %s\n  %s", msg.t.tcm_handle,
			      hex(st.nest[queue], st.nest_len[queue]), hex(s->nest[queue], s->nest_len[queue]));
	}
}

/* After a dump of everything: no dualpi2 is missing, and a parent's backlog is that of its children. */
void check_trees(void)
{
	int n, c;

	for (n = 0; n < n_slots; n++) {
		struct slot *s = &slots[n];
		uint64_t qlen = 0, backlog = 0;
		bool all = true, any = false;

		if (s->state == DUALPI2 && s->dump != this_dump)
			fault("the dualpi2 at %x is not in the dump", s->clid);
		if (s->state != OTHER || s->dump != this_dump || s->dev == D_MQ)
			continue;
		for (c = 0; c < n_slots; c++) {
			if (slots[c].up != n)
				continue;
			any = true;
			all &= slots[c].dump == this_dump;
			qlen += slots[c].qlen;
			backlog += slots[c].backlog;
		}
		if (!any || !all)
			continue;
		/* htb has a queue of its own for what has no class. */
		if (s->dev == D_HTB) {
			AT_MOST(qlen, s->qlen, "qlen of children, of htb");
			continue;
		}
		/* These take a packet from the child when they are asked to peek. */
		if (s->up >= 0 && s->dev != D_PRIO && s->qlen == qlen + 1) {
			AT_MOST(backlog, s->backlog, "backlog of children, of a parent");
			continue;
		}
		SAME(s->qlen, qlen, "qlen of a parent, of its children");
		SAME(s->backlog, backlog, "backlog of a parent, of its children");
	}
}

void check_end_of_dump(void)
{
	this_dump++;
}
