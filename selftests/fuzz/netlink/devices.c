// SPDX-License-Identifier: GPL-2.0-only
/* The devices, and the qdiscs on them at the begin: dualpi2 at the root and below eight parents. */
#include "fuzz.h"
#include <linux/if_link.h>
#include <net/if.h>

uint32_t handle_of(int slot)
{
	return (0x10 + slot) << 16;
}

/* up: 0 or 1, or 2: as it is. */
void gen_link(struct sequence *s, int dev, unsigned int up, int attr_type, uint32_t value)
{
	struct ifinfomsg ifi = {
		.ifi_index = IFINDEX + dev,
		.ifi_flags = up == 1 ? IFF_UP : 0,
		.ifi_change = up < 2 ? IFF_UP : 0,
	};

	msg_begin(RTM_NEWLINK, 0, &ifi, sizeof(ifi));
	if (attr_type)
		attr32(attr_type, value);
	add_msg(s);
}

static void make_qdisc(int dev, uint32_t parent, uint32_t handle, const char *kind)
{
	msg_tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, IFINDEX + dev, handle, parent, 0);
	attr_str(TCA_KIND, kind);
}

static void gen_tbf(struct sequence *s, int dev)
{
	struct tc_tbf_qopt opt = {
		.rate = { .linklayer = TC_LINKLAYER_ETHERNET, .rate = 1000000 },
		.limit = 100000000,
	};
	int at;

	make_qdisc(dev, TC_H_ROOT, 0x10000, "tbf");
	at = nest(TCA_OPTIONS);
	attr(TCA_TBF_PARMS, &opt, sizeof(opt));
	attr32(TCA_TBF_BURST, 3000);
	nest_end(at);
	add_msg(s);
}

static void gen_class(struct sequence *s, int dev, const char *kind, uint32_t parent, uint32_t classid)
{
	int at;

	msg_tc(RTM_NEWTCLASS, NLM_F_CREATE, IFINDEX + dev, classid, parent, 0);
	attr_str(TCA_KIND, kind);
	at = nest(TCA_OPTIONS);
	if (dev == D_HTB) {
		struct tc_htb_opt opt = {
			.rate = { .linklayer = TC_LINKLAYER_ETHERNET, .rate = 500000 },
			.ceil = { .linklayer = TC_LINKLAYER_ETHERNET, .rate = 1000000 },
			.buffer = 50000, .cbuffer = 50000, .quantum = 1514,
		};

		attr(TCA_HTB_PARMS, &opt, sizeof(opt));
	} else if (dev == D_HFSC) {
		struct tc_service_curve sc = { .m2 = 500000 };

		attr(TCA_HFSC_RSC, &sc, sizeof(sc));
		attr(TCA_HFSC_FSC, &sc, sizeof(sc));
	} else if (dev == D_DRR) {
		attr32(TCA_DRR_QUANTUM, 1514);
	} else {
		attr32(TCA_QFQ_WEIGHT, 10);
		attr32(TCA_QFQ_LMAX, 8192);
	}
	nest_end(at);
	add_msg(s);
}

/* The parent that has the classes. */
static void gen_parent(struct sequence *s, int dev, uint32_t parent, uint32_t handle)
{
	struct tc_htb_glob htb = { .version = 3, .rate2quantum = 10, .defcls = 0x10 };
	struct tc_prio_qopt prio = { .bands = 3, .priomap = { 1, 2, 0 } };
	struct tc_hfsc_qopt hfsc = { .defcls = 0x10 };
	uint8_t bands = 3, strict = 1;
	int at;

	make_qdisc(dev, parent, handle, devices[dev].kind);
	if (dev == D_HTB) {
		at = nest(TCA_OPTIONS);
		attr(TCA_HTB_INIT, &htb, sizeof(htb));
		nest_end(at);
	} else if (dev == D_HFSC) {
		attr(TCA_OPTIONS, &hfsc, sizeof(hfsc));
	} else if (dev == D_ETS) {
		at = nest(TCA_OPTIONS | NLA_F_NESTED);
		attr(1, &bands, 1);	/* TCA_ETS_NBANDS, TCA_ETS_NSTRICT */
		attr(2, &strict, 1);
		nest_end(at);
	} else if (dev == D_PRIO) {
		attr(TCA_OPTIONS, &prio, sizeof(prio));
	}
	add_msg(s);
}

/* The qdiscs of a device as they are at the begin. */
void gen_qdiscs(struct sequence *s, int dev)
{
	bool shaped = dev == D_TBF || (dev >= D_DRR && dev <= D_PRIO);
	uint32_t first = dev == D_DRR || dev == D_QFQ ? 0x20001 : 0x10010;
	uint32_t handle = shaped ? 0x20000 : 0x10000;
	const char *kind = devices[dev].kind;
	int n;

	if (shaped)
		gen_tbf(s, dev);
	if (kind && dev != D_TBF)
		gen_parent(s, dev, shaped ? 0x10001 : TC_H_ROOT, handle);
	if (dev == D_HTB || dev == D_HFSC || dev == D_DRR || dev == D_QFQ) {
		gen_class(s, dev, kind, handle, first);
		gen_class(s, dev, kind, handle, first + (shaped ? 1 : 0x10));
	}
	for (n = devices[dev].first; n < devices[dev].end; n++)
		if (slots[n].leaf) {
			make_qdisc(dev, slots[n].clid, handle_of(n), "dualpi2");
			add_msg(s);
		}
}

/* ---- queries ---- */

static void add_query(struct sequence *s)
{
	add_msg(s)->oracle = true;
}

void gen_get(struct sequence *s, int slot)
{
	/* Without ECHO the kernel sends no answer. */
	msg_tc(RTM_GETQDISC, NLM_F_ECHO, IFINDEX + slots[slot].dev, 0, slots[slot].clid, 0);
	add_query(s);
}

/* All qdiscs, and the classes of one device: the kernel has no dump of all classes. */
void gen_dump(struct sequence *s)
{
	msg_tc(RTM_GETQDISC, NLM_F_DUMP, 0, 0, 0, 0);
	add_query(s);
	msg_tc(RTM_GETTCLASS, NLM_F_DUMP, IFINDEX + rnd(DEVICES), 0, 0, 0);
	add_query(s);
}

/* ---- all of it ---- */

static void all_devices(uint16_t type, struct ifinfomsg ifi)
{
	struct sequence s = {};

	msg_begin(type, 0, &ifi, sizeof(ifi));
	attr32(IFLA_GROUP, GROUP);
	add_msg(&s);
	run_steps(&s, 0, s.count);
	free_sequence(&s);
}

void delete_devices(void)
{
	all_devices(RTM_DELLINK, (struct ifinfomsg){});
}

/*
 * The namespace ends with its devices and qdiscs, but without packets: a packet behind a slow shaper belongs to a
 * socket, which keeps the namespace until the packet is sent.
 */
void leave_namespace(void)
{
	all_devices(RTM_NEWLINK, (struct ifinfomsg){ .ifi_change = IFF_UP });
	new_namespace();
}

/* Recreates all devices. */
void setup(void)
{
	struct sequence s = {};
	char name[IFNAMSIZ];
	int dev, n, info;

	delete_devices();
	make_slots();
	for (dev = 0; dev < DEVICES; dev++) {
		struct ifinfomsg ifi = {
			.ifi_index = IFINDEX + dev, .ifi_flags = IFF_UP, .ifi_change = IFF_UP,
		};

		msg_begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &ifi, sizeof(ifi));
		sprintf(name, "fuzz%d", dev);
		attr_str(IFLA_IFNAME, name);
		attr32(IFLA_GROUP, GROUP);
		attr32(IFLA_NUM_TX_QUEUES, dev == D_MQ ? 4 : 1);
		attr32(IFLA_TXQLEN, 1000);
		attr32(IFLA_MTU, 1500);
		info = nest(IFLA_LINKINFO);
		attr_str(IFLA_INFO_KIND, "dummy");
		nest_end(info);
		add_msg(&s);
		devices[dev].mtu = 1500;
		gen_qdiscs(&s, dev);
	}
	for (n = 0; n < n_slots; n++)
		gen_get(&s, n);
	gen_dump(&s);
	for (n = 0; n < (int)s.count; n++)
		s.steps[n].oracle = true;
	run_steps(&s, 0, s.count);
	free_sequence(&s);
	for (n = 0; n < n_slots; n++)
		if (slots[n].leaf && slots[n].state != DUALPI2)
			die("no dualpi2 can be made below %s", devices[slots[n].dev].kind ?: "the root");
}
