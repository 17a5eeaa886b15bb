// SPDX-License-Identifier: GPL-2.0-only
/* The requests of storm: changes, replacements, and what else happens to a qdisc. */
#define _GNU_SOURCE
#include "storm.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

void add_limits(struct nl *nl, uint32_t limit, uint32_t memory)
{
	int at;

	msg_qdisc(RTM_NEWQDISC, 0, opt.parent, opt.handle, opt.kind);
	at = nest(TCA_OPTIONS | NLA_F_NESTED);
	attr32(TCA_DUALPI2_LIMIT, limit);
	attr32(TCA_DUALPI2_MEMORY_LIMIT, memory);
	nest_end(at);
	add_message(nl);
}

/* A valid value, small ones as likely as large ones. */
static void put_option(int o)
{
	uint64_t span = rules[o].max - rules[o].min, value;

	if (o == O_BANDWIDTH) {		/* half of the time without a shaper, then perhaps bypass; 1 Mbit/s at least */
		value = rnd(2) * (125000ull << rnd(20));
		attr(rules[O_BYPASS].type, !value && rnd(2) ? "\1" : "\0", 1);
	} else if (o == O_NQB) {
		value = (uint64_t)rnd(2) << rnd(64);
	} else if (o == O_REPORT) {
		value = rnd(2) * 1000000;
	} else {
		value = rnd(span < 100000 ? span + 1 : 100001);
		value = rules[o].min + (span < 1000 ? value : value >> rnd(17));
	}
	attr(rules[o].type, &value, rules[o].size);
}

/* A change of one to five options; limits go down step by step. GSO packets are counted as they are split. */
void change(struct nl *nl)
{
	static uint32_t limit = LIMIT_MAX, memory = MEMORY_MAX;
	int first = O_TARGET + rnd(O_BURST_MAX + 1 - O_TARGET), end = first + 1 + rnd(3), o, at, ext = 0;

	msg_qdisc(RTM_NEWQDISC, 0, opt.parent, opt.handle, opt.kind);
	at = nest(TCA_OPTIONS | NLA_F_NESTED);
	if (rnd(2)) {
		limit = limit > 1 ? 1 + rnd(limit - 1) : LIMIT_MAX;
		attr32(TCA_DUALPI2_LIMIT, limit);
	}
	if (!rnd(3)) {
		memory = memory > 2000 ? memory - memory / (2 + rnd(8)) : MEMORY_MAX;
		attr32(TCA_DUALPI2_MEMORY_LIMIT, memory);
	}
	for (o = first; o < end && o <= O_BURST_MAX; o++) {
		if (o == O_SPLIT_GSO || (o == O_STEP_THRESH_US && first < o))
			continue;
		if (rules[o].ext && !ext)
			ext = nest(TCA_DUALPI2_EXT | NLA_F_NESTED);
		put_option(o);
	}
	if (ext)
		nest_end(ext);
	nest_end(at);
	add_message(nl);
}

/* Deletes, creates or changes what is at the place of dualpi2 once the requests before are done. */
void replace(struct nl *nl)
{
	static const char *kind;
	static uint32_t handle;
	uint32_t fresh = (0x1000 + rnd(0x6fff)) << 16;
	int at;

	if (!handle) {
		kind = opt.kind;
		handle = opt.handle;
	}
	if (fresh == handle)
		fresh += 1 << 16;
	if (kind && !rnd(3)) {
		msg_qdisc(RTM_DELQDISC, 0, opt.parent, handle, NULL);
		kind = NULL;
	} else if (kind == opt.kind && !rnd(4)) {	/* by itself */
		msg_qdisc(RTM_NEWQDISC, NLM_F_REPLACE, opt.parent, handle, kind);
		at = nest(TCA_OPTIONS | NLA_F_NESTED);
		attr32(TCA_DUALPI2_LIMIT, 1 + rnd(LIMIT_MAX));
		nest_end(at);
	} else {
		uint16_t flags = NLM_F_CREATE | (kind ? NLM_F_REPLACE : NLM_F_EXCL);

		kind = rnd(5) ? opt.kind : "pfifo";
		handle = fresh;
		msg_qdisc(RTM_NEWQDISC, flags, opt.parent, handle, kind);
	}
	add_message(nl);
}

static void change_link(struct nl *nl, unsigned int up, uint16_t type, uint32_t value)
{
	const struct ifinfomsg info = { .ifi_index = ifindex, .ifi_flags = up, .ifi_change = IFF_UP };

	msg_begin(RTM_NEWLINK, 0, &info, sizeof(info));
	if (type)
		attr32(type, value);
	add_message(nl);
}

static void change_filter(struct nl *nl, bool add, uint32_t class)
{
	int at;

	msg_tc(add ? RTM_NEWTFILTER : RTM_DELTFILTER, add ? NLM_F_CREATE : 0, ifindex, 0, opt.handle,
	       TC_H_MAKE(7 << 16, htons(ETH_P_IP)));
	attr_str(TCA_KIND, "matchall");
	if (add) {
		at = nest(TCA_OPTIONS | NLA_F_NESTED);
		attr32(TCA_MATCHALL_CLASSID, opt.handle | class);
		nest_end(at);
	}
	add_message(nl);
}

void flap_link(struct nl *nl)
{
	change_link(nl, 0, 0, 0);
	change_link(nl, IFF_UP, 0, 0);
}

void change_txqlen(struct nl *nl)
{
	change_link(nl, IFF_UP, IFLA_TXQLEN, 1 + rnd(2000));
}

void toggle_filter(struct nl *nl)
{
	static bool filtered;

	filtered = !filtered;
	change_filter(nl, filtered, rnd(4));
}

/*
 * Something else that happens to a qdisc. A reset purges a packet that was peeked at, which counts as sent; every
 * packet that came is counted. The last two have the core put noop in the place of the tree for a moment; it counts
 * nothing of what the other CPU sends then.
 */
void abuse(struct nl *nl)
{
	static const uint32_t mtus[] = { 1500, 9000, 65535, 2000 };

	switch (rnd(opt.two ? 3 : 5)) {
	case 0:
		change_link(nl, IFF_UP, IFLA_MTU, PICK(mtus));
		break;
	case 1:
		toggle_filter(nl);
		break;
	case 2:
		if (!syscall(SYS_delete_module, "sch_dualpi2", O_NONBLOCK))
			fault("the module was unloaded while in use");
		if (errno != EAGAIN && errno != EBUSY)
			fault("unloading the module: %m");
		break;
	case 3:
		change_txqlen(nl);
		break;
	case 4:
		flap_link(nl);
		break;
	}
	flush(nl);
}
