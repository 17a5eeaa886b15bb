// SPDX-License-Identifier: GPL-2.0-only
/* Random messages, good and bad, by the grammar of the interface, and traffic between them. */
#include "fuzz.h"
#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/tc_act/tc_gact.h>
#include <net/ethernet.h>

struct sequence corpus;

static uint64_t edge(const struct rule *r)
{
	const uint64_t edges[] = {
		0, 1, r->min - 1, r->min, r->min + 1, r->max - 1, r->max, r->max + 1,
		r->gap - 1, r->gap,
		65535, 65536, 65537, INT32_MAX, 1U << 31, (1U << 31) + 1, UINT32_MAX - 1,
		UINT32_MAX, 1ULL << 32, INT64_MAX, 1ULL << 63, UINT64_MAX - 1, UINT64_MAX,
	};

	return PICK(edges);
}

static uint64_t good_value(const struct rule *r)
{
	uint64_t span = r->max - r->min + 1, v;

	switch (rnd(4)) {
	case 0:
		return r->min;
	case 1:
		return r->max;
	default:
		/* By size, so that small numbers are as likely as large ones. */
		v = rnd64();
		v = (span ? v % span : v) >> rnd(8 * r->size);
		if (r->min < 0)
			return r->min + (int64_t)v;
		return v < (uint64_t)r->min ? (uint64_t)r->min :
		       v && v < r->gap ? r->gap : v;
	}
}

static void gen_option(const struct rule *r, bool good)
{
	uint64_t value = good ? good_value(r) : chance(700) ? edge(r) : rnd64();
	uint16_t type = r->type, size = r->size;
	uint8_t data[16];
	int at = m.len;

	memcpy(data, &value, 8);
	memset(data + 8, value, sizeof(data) - 8);
	if (!good) {
		if (chance(40))
			size = rnd(sizeof(data) + 1);
		if (chance(30))
			type |= rnd(4) << 14;
		if (chance(15))
			type = chance(500) ? rnd(32) : rnd64();
	}
	attr(type, data, size);
	if (!good && chance(10))
		*(uint16_t *)(m.data + at) = chance(500) ? rnd(24) : rnd64();
}

/* TCA_OPTIONS. Good ones have each option once at most: a stride of 7 or 3 walks through them. */
static void gen_options(void)
{
	static const uint16_t nested[] = { 0, NLA_F_NESTED };
	uint32_t roll = rnd(1000), n, i;
	bool good = chance(550);
	int opts, ext;

	if (roll < 30)
		return;			/* none at all */
	opts = nest(TCA_OPTIONS | PICK(nested));
	if (roll < 60)
		goto end;		/* an empty nest */
	n = roll < 700 ? 1 + rnd(3) : rnd(17);
	for (i = 0; i < n; i++) {
		uint32_t k = rnd(O_SPLIT_GSO + 1);

		if (good) {
			k = (i * 7 + roll) % (O_SPLIT_GSO + 1);
			if (k == O_STEP_THRESH_PKTS && chance(800))
				continue;
			if (k == O_STEP_THRESH_US && n > 3 && chance(500))
				continue;
		}
		gen_option(&rules[k], good);
	}
	if (chance(400)) {
		ext = nest(TCA_DUALPI2_EXT | PICK(nested));
		n = rnd(6);
		for (i = 0; i < n; i++)
			gen_option(&rules[O_L4S + (good ? (i * 3 + roll) % (OPTIONS - O_L4S) :
						 rnd(OPTIONS - O_L4S))], good);
		if (!good && chance(30))
			nest_end(nest(TCA_DUALPI2_EXT | PICK(nested)));
		nest_end(ext);
		if (!good && chance(30))	/* truncated */
			*(uint16_t *)(m.data + ext) -= 1 + rnd(4);
	}
	if (!good && chance(30)) {
		n = 1 + rnd(12);
		for (i = 0; i < n; i++)
			m.data[m.len++] = chance(500) ? 0 : rnd64();
	}
end:
	nest_end(opts);
	while (m.len % 4)
		m.data[m.len++] = 0;
	if (!good && chance(10))	/* twice: the last counts */
		nest_end(nest(TCA_OPTIONS));
}

static void gen_stab(void)
{
	static uint16_t table[32768];
	static const uint32_t sizes[] = { 0, 1, 2, 16, 512, 1024, 32700 };
	uint32_t size = chance(900) ? PICK(sizes) : rnd(2048), n;
	struct tc_sizespec spec = {
		.cell_log = chance(800) ? rnd(16) : rnd64(),
		.size_log = chance(800) ? rnd(16) : rnd64(),
		.cell_align = chance(800) ? 0 : rnd64(),
		.overhead = chance(700) ? rnd(64) : rnd64(),
		.linklayer = rnd(3),
		.mpu = rnd(128),
		.mtu = 1500,
		.tsize = chance(950) ? size : (uint32_t)rnd64(),
	};
	int at;

	if (size > 2048 && chance(900))
		size = 512, spec.tsize = size;
	for (n = 0; n < size; n++)
		table[n] = chance(500) ? n : rnd64();
	at = nest(TCA_STAB);
	attr(TCA_STAB_BASE, &spec, sizeof(spec));
	if (size)
		attr(TCA_STAB_DATA, table, size * 2);
	nest_end(at);
}

static const uint16_t tc_types[] = {
	RTM_NEWQDISC, RTM_NEWQDISC, RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC, RTM_NEWTCLASS,
	RTM_DELTCLASS, RTM_GETTCLASS, RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER,
};

static uint16_t any_flags(uint16_t type)
{
	/* A question with these bits asks for a dump. */
	return (type & 3) == 2 ? 0 : rnd(16) << 8;
}

static uint32_t any_handle(int slot)
{
	static const uint32_t edges[] = {
		0, 1, 0x10000, 0x10001, 0x20000, 0x20001, 0xffff, 0x7fff0000, 0x80000000,
		0x80010000, 0xfffe0000, 0xffff0000, 0xfffffff1, 0xfffffff2, 0xffffffff,
	};
	uint32_t roll = rnd(100);

	if (roll < 70)
		return handle_of(slot);
	if (roll < 85)
		return 0;
	if (roll < 90)
		return handle_of(rnd(n_slots));
	return roll < 97 ? PICK(edges) : (uint32_t)rnd64();
}

static uint32_t any_parent(int slot)
{
	static const uint32_t edges[] = {
		0, TC_H_ROOT, TC_H_INGRESS, 0x10000, 0x10001, 0x10002, 0x10010, 0x20001, 0x20004,
		0xffff0000, 0x90000, 0xffff,
	};
	uint32_t roll = rnd(1000);

	if (roll < 950)
		return slots[slot].clid;
	if (roll < 970)
		return handle_of(slot) | rnd(5);	/* the qdisc's "classes" */
	return roll < 995 ? PICK(edges) : (uint32_t)rnd64();
}

static void gen_newqdisc(int slot)
{
	static const uint16_t makes[] = {
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_EXCL,
		NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL, NLM_F_CREATE,
	};
	/*
	 * None that tells its parent of drops whenever it is configured, as fq_codel does: if it then is not attached,
	 * qfq takes the class for idle, whatever its child holds, and crashes.
	 */
	static const char * const kinds[] = { "pfifo", "dualpi", "dualpi2x", "", "blackhole" };
	uint32_t roll = rnd(100);
	uint16_t flags = roll < 55 ? 0 : roll < 85 ? PICK(makes) : roll < 92 ? NLM_F_REPLACE :
			 any_flags(RTM_NEWQDISC);

	if (slots[slot].state == NONE && chance(700))
		flags = PICK(makes);
	msg_tc(RTM_NEWQDISC, flags, IFINDEX + slots[slot].dev, any_handle(slot), any_parent(slot),
	       0);
	roll = rnd(1000);
	if (roll < 950)
		attr_str(TCA_KIND, "dualpi2");
	else if (roll < 975)
		attr_str(TCA_KIND, PICK(kinds));
	gen_options();
	if (chance(12))
		gen_stab();
	if (chance(10)) {
		struct { int8_t interval; uint8_t ewma_log; } est = {
			chance(800) ? (int)rnd(6) - 2 : (int)rnd64(),
			chance(800) ? rnd(32) : rnd64(),
		};

		attr(TCA_RATE, &est, chance(900) ? sizeof(est) : rnd(3));
	}
	if (chance(8))
		attr32(chance(500) ? TCA_INGRESS_BLOCK : TCA_EGRESS_BLOCK, rnd(4));
}

static void gen_filter(int slot)
{
	static const int verdicts[] = {
		TC_ACT_OK, TC_ACT_SHOT, TC_ACT_STOLEN, TC_ACT_QUEUED, 8 /* TRAP */, TC_ACT_PIPE,
		TC_ACT_RECLASSIFY, TC_ACT_UNSPEC, TC_ACT_REPEAT, TC_ACT_REDIRECT, 9, 1 << 28,
		2 << 28,
	};
	static const uint32_t minors[] = { 0, 1, 2, 3, 4, 0xffff };
	uint32_t prio = 1 + rnd(3), handle = handle_of(slot);
	bool u32_kind = chance(300), removes = chance(350);
	int opts, acts, act, parms;

	msg_tc(removes ? RTM_DELTFILTER : RTM_NEWTFILTER,
	       chance(900) ? NLM_F_CREATE : any_flags(RTM_NEWTFILTER), IFINDEX + slots[slot].dev, 0,
	       handle | (chance(30) ? rnd(4) : 0),
	       (removes && chance(500) ? 0 : prio) << 16 |
	       htons(chance(900) ? ETH_P_ALL : ETH_P_IP));
	if (removes)
		return;
	attr_str(TCA_KIND, u32_kind ? "u32" : "matchall");
	opts = nest(TCA_OPTIONS | NLA_F_NESTED);
	if (chance(700))
		attr32(1, (chance(800) ? handle : (uint32_t)rnd64()) | PICK(minors)); /* _CLASSID */
	if (u32_kind) {
		const struct tc_u32_sel sel = { .flags = TC_U32_TERMINAL, .nkeys = 1 };
		char both[sizeof(sel) + sizeof(struct tc_u32_key)] = {};

		memcpy(both, &sel, sizeof(sel));
		attr(TCA_U32_SEL, both, sizeof(both));
	}
	if (chance(700)) {
		struct tc_gact gact = { .action = PICK(verdicts) };

		acts = nest((u32_kind ? TCA_U32_ACT : 2 /* TCA_MATCHALL_ACT */) | NLA_F_NESTED);
		act = nest(1 | NLA_F_NESTED);
		attr_str(TCA_ACT_KIND, "gact");
		parms = nest(TCA_ACT_OPTIONS | NLA_F_NESTED);
		attr(TCA_GACT_PARMS, &gact, sizeof(gact));
		nest_end(parms);
		nest_end(act);
		nest_end(acts);
	}
	nest_end(opts);
}

/* Replaces the message by one from the corpus; half of the time sent to this place. */
static void take_from_corpus(int slot)
{
	const struct step *step = &corpus.steps[rnd(corpus.count)];

	if (step->kind != STEP_NL || step->type < RTM_NEWQDISC ||
	    step->type > RTM_GETTFILTER)
		return;
	m.type = step->type;
	m.flags = step->flags;
	m.len = step->len;
	memcpy(m.data, corpus.bytes + step->at, step->len);
	if (m.len >= 20 && chance(500)) {
		*(int *)(m.data + 4) = IFINDEX + slots[slot].dev;
		*(uint32_t *)(m.data + 8) = handle_of(slot);
		*(uint32_t *)(m.data + 12) = slots[slot].clid;
	}
}

/* Changes some bytes of the message, or of one from the corpus. */
static void mutate(int slot)
{
	static const uint32_t numbers[] = {
		0, 1, 3, 4, 5, 8, 127, 128, 255, 256, 65535, 65536, INT32_MAX, 1U << 31,
		UINT32_MAX,
	};
	uint32_t n = 1 + rnd(chance(700) ? 3 : 16), i;

	if (corpus.count && chance(500))
		take_from_corpus(slot);
	if (chance(200))
		return;
	for (i = 0; i < n && m.len > 4; i++) {
		/* Seldom in the header. */
		int low = m.len > 20 && chance(900) ? 20 : 0;
		int at = low + rnd(m.len - low), len;

		switch (rnd(7)) {
		case 0:
			m.data[at] ^= 1 << rnd(8);
			break;
		case 1:
			m.data[at] = rnd64();
			break;
		case 2:
			if (at + 4 <= m.len)
				*(uint32_t *)(m.data + (at & ~3)) = PICK(numbers);
			break;
		case 3:
			m.data[at] += chance(500) ? 1 : -1;
			break;
		case 4:		/* cut out */
			len = 1 + rnd(8);
			if (at + len < m.len) {
				memmove(m.data + at, m.data + at + len, m.len - at - len);
				m.len -= len;
			}
			break;
		case 5:		/* double */
			len = 4 * (1 + rnd(4));
			if (at + len <= m.len && m.len + len < MSG_MAX - 64) {
				memmove(m.data + at + len, m.data + at, m.len - at);
				m.len += len;
			}
			break;
		case 6:		/* splice */
			if (corpus.used > 64) {
				size_t from = rnd(corpus.used - 64);

				len = 1 + rnd(32);
				if (at + len <= m.len)
					memcpy(m.data + at, corpus.bytes + from, len);
			}
			break;
		}
	}
	if (chance(100))
		m.len = m.len * rnd(1000) / 1000;
	if (chance(50)) {
		m.type = PICK(tc_types);
		m.flags = any_flags(m.type);
	}
}

static void gen_device(struct sequence *s, int dev)
{
	static const uint32_t mtus[] = {
		0, 68, 1280, 1500, 1500, 9000, 65535, 2147483634, 1U << 31,
	};
	uint32_t roll = rnd(100);

	if (roll < 50)
		gen_link(s, dev, 2, IFLA_MTU, PICK(mtus));
	else if (roll < 75)
		gen_link(s, dev, 2, IFLA_TXQLEN, chance(500) ? rnd(3) : 1000);
	else
		gen_link(s, dev, rnd(2), 0, 0);
	/* Mostly up again at once, or nothing passes. */
	if (roll >= 75 && chance(900))
		gen_link(s, dev, 1, 0, 0);
}

static void gen_message(struct sequence *s, int slot)
{
	uint32_t roll = rnd(1000);

	if (slots[slot].state == UNKNOWN) {
		msg_tc(RTM_DELQDISC, 0, IFINDEX + slots[slot].dev, 0, slots[slot].clid, 0);
	} else if (roll < 760) {
		gen_newqdisc(slot);
		if (chance(130))
			mutate(slot);
	} else if (roll < 800) {
		msg_tc(RTM_DELQDISC, any_flags(RTM_DELQDISC), IFINDEX + slots[slot].dev,
		       chance(600) ? 0 : any_handle(slot), any_parent(slot), 0);
	} else if (roll < 840) {
		msg_tc(RTM_GETQDISC, NLM_F_ECHO, IFINDEX + slots[slot].dev,
		       chance(500) ? 0 : any_handle(slot),
		       any_parent(slot), 0);
	} else if (roll < 900) {
		gen_filter(slot);
		if (chance(100))
			mutate(slot);
	} else if (roll < 940) {
		msg_tc(RTM_NEWTCLASS + rnd(3), 0, IFINDEX + slots[slot].dev,
		       handle_of(slot) | rnd(5),
		       chance(800) ? handle_of(slot) : any_parent(slot), 0);
		if (chance(500))
			attr_str(TCA_KIND, "dualpi2");
		if (m.type == RTM_NEWTCLASS)
			m.flags = any_flags(m.type);
	} else if (roll < 990) {
		gen_newqdisc(slot);
		mutate(slot);
	} else {
		if (roll < 997) {
			gen_device(s, slots[slot].dev);
			return;
		}
		/* Recreate the device's qdiscs. */
		msg_tc(RTM_DELQDISC, 0, IFINDEX + slots[slot].dev, 0, TC_H_ROOT, 0);
		add_msg(s);
		gen_qdiscs(s, slots[slot].dev);
		return;
	}
	if ((m.type & 3) == 2)
		m.flags &= ~NLM_F_DUMP;
	add_msg(s);
}

static void gen_traffic(struct sequence *s, int slot)
{
	static const uint32_t sizes[] = { 60, 68, 200, 1000, 1514 };
	static const uint32_t waits[] = { 1, 100, 1000, 5000, 20000 };
	struct step *step;

	if (chance(850)) {
		bool gso = chance(250);

		step = add_step(s, STEP_TX);
		step->arg[0] = slots[slot].dev;
		step->arg[1] = chance(850) ? slots[slot].clid : handle_of(slot) | rnd(5);
		step->arg[2] = rnd(5);
		step->arg[3] = gso ? 2000 + rnd(chance(800) ? 6000 : 60000) : PICK(sizes);
		step->arg[4] = gso ? (100 + rnd(1300)) | (chance(300) ? 65536 + 1 : 0) : 0;
		step->arg[5] = 1 + rnd(chance(800) ? 8 : 32);
	}
	if (chance(400)) {
		step = add_step(s, STEP_WAIT);
		step->arg[0] = PICK(waits);
	}
}

static int any_slot(void)
{
	int slot;

	do {
		slot = rnd(n_slots);
	} while (!slots[slot].leaf && chance(970));
	return slot;
}

/* One batch, at the end of a sequence. */
void gen_batch(struct sequence *s, uint32_t size)
{
	size_t end;
	uint32_t n;
	int slot;

	gen_traffic(s, any_slot());
	for (end = s->count + size; s->count < end;) {
		slot = any_slot();
		for (n = 1 + rnd(24); n && s->count < end; n--)
			gen_message(s, slot);
		gen_get(s, slot);
	}
	if (chance(50)) {
		gen_dump(s);
	} else if (chance(20)) {
		slot = any_slot();
		msg_tc(chance(500) ? RTM_GETTFILTER : RTM_GETTCLASS, NLM_F_DUMP,
		       IFINDEX + slots[slot].dev, 0, handle_of(slot), 0);
		add_msg(s);
	}
}
