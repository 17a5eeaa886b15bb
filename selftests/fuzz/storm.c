// SPDX-License-Identifier: GPL-2.0-only
/*
 * storm - very many valid netlink requests to dualpi2 while packets pass, and its counters checked all the time.
 *
 *	storm change  --dev D --parent P --handle H [OPTIONS]
 *	storm replace --dev D --parent P --handle H [OPTIONS]
 *	storm netns [OPTIONS]
 *	storm race --with WHAT --dev D --parent P --handle H [OPTIONS]
 *
 * change: options, with limits that shrink step by step; every offered packet must have come to dualpi2, and what
 * came must be sent, dropped or queued. replace: dualpi2 comes, goes and changes places with a pfifo. netns: network
 * namespaces with a tree in them end while packets wait. race: storm/race.c.
 *
 *	--messages N	requests, or namespaces (default 10000)
 *	--seed S	of all choices
 *	--kind K	dualpi2 (default) or dualpi2_mq
 *	--with WHAT	of race: the requests; here and with netns, no send fails the run, and packets need not wait
 *	--abuse		between changes: link flaps, MTU, transmit queue length, filters, attempts to unload the module
 *	--two		traffic and dumps by a second thread, on the second CPU; then no link flaps and no transmit
 *			queue lengths
 *
 * It runs where the device is; test_storm.py builds the trees and judges what this prints: one line of JSON.
 */
#define _GNU_SOURCE
#include "storm/storm.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/veth.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define CHECK_EVERY	64	/* requests */
#define MQ_QUEUES	4	/* of the devices that dualpi2_mq is tested on */

struct opt opt = { .kind = "dualpi2", .messages = 10000, .seed = 1 };
int ifindex;

ull done;
static ull checks, abuses;
static _Atomic ull offered, sends;
static _Atomic bool stop;

void fault(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "storm: after %llu requests, %llu packets: ", done, (ull)offered);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* ---- netlink ---- */

void add_message(struct nl *nl)
{
	nl_add(nl, m.type, m.flags, m.data, m.len);
}

/* Every error is a fault. A reply is left in the buffer, which holds REPLY_MAX bytes. */
static void succeeded(void *reply, uint32_t n, const struct nlmsghdr *h, bool last, int error, const char *text)
{
	if (error)
		fault("request %u of a batch: %s: %s", n, strerror(-error), text ?: "");
	if (reply && !last)
		memcpy(reply, h, h->nlmsg_len);
}

void flush(struct nl *nl)
{
	nl_flush(nl, succeeded, NULL);
}

void msg_qdisc(uint16_t type, uint16_t flags, uint32_t parent, uint32_t handle, const char *kind)
{
	msg_tc(type, flags, ifindex, handle, parent, 0);
	if (kind)
		attr_str(TCA_KIND, kind);
}

/* ---- traffic: a socket for each codepoint ---- */

static int traffic[4];

void traffic_open(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0x0a070002),
	};
	int ecn, size = 1 << 28;

	for (ecn = 0; ecn < 4; ecn++) {
		traffic[ecn] = socket(AF_INET, SOCK_DGRAM, 0);
		setsockopt(traffic[ecn], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
		setsockopt(traffic[ecn], IPPROTO_IP, IP_TOS, &ecn, sizeof(ecn));
		if (connect(traffic[ecn], (struct sockaddr *)&to, sizeof(to)))
			die("connect: %m");
	}
}

/* One datagram, or in one of eight cases a GSO packet of 2 to 12 segments. */
void traffic_send(void)
{
	static char data[16384];
	int fd = traffic[rnd(4)], segments = 1, zero = 0;
	int size = rnd(2) ? 20 + rnd(60) : 1000;

	if (!rnd(8)) {
		segments = 2 + rnd(11);
		setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
	}
	/* A UDP socket does not report a drop in the qdisc, but that the link is down. */
	if (send(fd, data, (size_t)size * segments, 0) < 0 && !opt.with)
		die("send: %m");
	if (segments > 1)
		setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &zero, sizeof(zero));
	offered += segments;
	sends++;
}

/* ---- checks ---- */

static void stats_get(struct nl *nl, uint32_t parent, uint32_t handle, struct stats *st)
{
	static _Thread_local _Alignas(8) uint8_t reply[REPLY_MAX];
	const struct nlmsghdr *h = (const void *)reply;
	const int head = NLMSG_LENGTH(sizeof(struct tcmsg));

	memset(reply, 0, sizeof(*h));
	msg_qdisc(RTM_GETQDISC, NLM_F_ECHO, parent, handle, NULL);
	add_message(nl);
	nl_flush(nl, succeeded, reply);
	if (h->nlmsg_type != RTM_NEWQDISC)
		fault("no reply to a query for statistics");
	memset(st, 0, sizeof(*st));
	stats_read(st, reply + head, h->nlmsg_len - head, -1);
}

static void leaf_get(struct nl *nl, struct stats *st)
{
	stats_get(nl, opt.parent, opt.handle, st);
}

/* No child of dualpi2_mq exceeds the limit of all. A child's own limit can fall below what it has queued. */
static void check_children(struct nl *nl, uint32_t memory_limit)
{
	struct stats st;
	uint32_t n;

	for (n = 1; n <= MQ_QUEUES; n++) {
		stats_get(nl, opt.handle | n, 0, &st);
		if (st.queued > 1)
			AT_MOST(st.x.memory_used, memory_limit, "memory of a child, limit of memory");
	}
}

static uint64_t came(const struct tc_dualpi2_counters *q)
{
	return q->arrived_not_ect + q->arrived_ect1 + q->arrived_ect0 + q->arrived_ce;
}

/* What one lock covers agrees at any time; the rest, and the sum against what was offered, while nobody else sends. */
static void check_leaf(struct nl *nl, bool alone)
{
	uint64_t least = offered, most, here, forwarded, passed;
	struct stats st, next;

	leaf_get(nl, &st);
	most = offered;
	leaf_get(nl, &next);
	checks++;
	/* No request turns it on. */
	stats_check_unprotected(&st);
	/* One packet may always be queued; in dualpi2_mq one in each child. */
	if (strcmp(opt.kind, "dualpi2_mq")) {
		if (st.queued > 1)
			AT_MOST(st.x.memory_used, st.x.memory_limit, "memory, limit of memory");
	} else if (alone) {
		check_children(nl, st.x.memory_limit);
	}
	here = came(&st.c[QUEUE_C]) + came(&st.c[QUEUE_L]) + st.e.filter_dropped + st.e.gso_failed;
	/* Packets that bypassed a root; others, too, that left since: dualpi2_mq sums packets up before the rest. */
	forwarded = st.c[QUEUE_C].forwarded + st.c[QUEUE_L].forwarded;
	passed = opt.parent == TC_H_ROOT ? (uint32_t)(next.packets - forwarded) : 0;
	AT_MOST(least, here + passed, "packets offered, that came or passed by");
	/* The other thread may be between a packet and its count. */
	AT_MOST(here, most + (alone ? 0 : 16), "packets that came, offered");
	if (!alone)
		return;
	/* In real time packets leave while the core collects the rest, which is then not of one moment. */
	if (memcmp(next.c, st.c, sizeof(st.c)) || memcmp(&next.q, &st.q, sizeof(st.q)) ||
	    next.packets != st.packets || next.bytes != st.bytes)
		return;
	stats_check_core(&st, opt.parent == TC_H_ROOT);
	SAME(st.packets, (uint32_t)(forwarded + passed), "packets in all, of both queues");
	AT_MOST(here + passed, most, "packets that came or passed by, offered");
}

void pause_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static void drain(struct nl *nl)
{
	struct stats st;
	int i;

	for (i = 0; i < 20000; i++) {
		leaf_get(nl, &st);
		if (!st.q.qlen) {
			SAME(st.q.backlog | st.x.memory_used, 0, "backlog and memory of an empty qdisc");
			return;
		}
		pause_us(1000);
	}
	fault("%u packets wait for 20 s", st.q.qlen);
}

/* Objects of the slabs that packets and qdiscs are made of. */
static ull slab_objects(bool shrink)
{
	FILE *file = fopen("/proc/slabinfo", "r");
	char line[256], name[64], path[128];
	ull active, sum = 0;
	int fd;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llu", name, &active) != 2 ||
		    (strncmp(name, "skbuff", 6) && strncmp(name, "kmalloc-", 8)))
			continue;
		sum += active;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", name);
		fd = shrink ? open(path, O_WRONLY) : -1;
		if (fd < 0)
			continue;
		if (write(fd, "1", 1) != 1)
			die("%s: %m", path);
		close(fd);
	}
	if (file)
		fclose(file);
	return sum;
}

/* Objects when half of the run was done, and at its end, with empty queues. */
static ull half_objects, end_objects, half_done;

static void measure(bool at_end)
{
	pause_us(100000);	/* what is freed after a grace period */
	/* What was freed and is still kept, by KASAN above all, would look like a leak. */
	slab_objects(true);
	if (at_end) {
		end_objects = slab_objects(false);
	} else {
		half_objects = slab_objects(false);
		half_done = done;
	}
}

static bool half_of_the_run(void)
{
	return !half_done && done >= opt.messages / 2;
}

void progress(ull more)
{
	done += more;
	if (done / 10000 != (done - more) / 10000 || done >= opt.messages)
		fprintf(stderr, "storm: %llu of %llu requests, %llu packets\n", done, (ull)opt.messages, (ull)offered);
}

/* ---- runs ---- */

void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("no CPU %d: %m", cpu);
}

/* The second thread: packets, and if there is always a dualpi2, dumps. */
/* cppcheck-suppress constParameter ; pthread_create() wants it so */
static void *other_cpu(void *dumps)
{
	struct stats st;
	struct nl nl;
	unsigned int n;

	pin(1);
	rnd_state = opt.seed + 1;
	nl_open(&nl, NETLINK_ROUTE);
	for (n = 1; !stop; n++) {
		traffic_send();
		if (dumps && !(n % 16))
			leaf_get(&nl, &st);
		if (!(n % 256))
			pause_us(1000);
	}
	return NULL;
}

/* As at the begin, and empty if nobody sends. */
static void settle(struct nl *nl, bool replaces, bool alone)
{
	if (replaces) {
		pause_us(1000000);
		return;
	}
	add_limits(nl, LIMIT_MAX, MEMORY_MAX);
	flush(nl);
	if (alone) {
		check_leaf(nl, true);
		drain(nl);
		check_leaf(nl, true);
	}
}

static void run_storm(bool replaces)
{
	pthread_t thread = 0;
	unsigned int n, i;
	struct nl nl;

	rnd_state = opt.seed * 2654435761u;
	nl_open(&nl, NETLINK_ROUTE);
	traffic_open();
	if (opt.two) {
		pin(0);
		if (pthread_create(&thread, NULL, other_cpu, replaces ? NULL : &nl))
			die("no thread");
	}
	while (done < opt.messages) {
		n = 1 + rnd(replaces ? 3 : 8);
		for (i = 0; i < n; i++)
			(replaces ? replace : change)(&nl);
		flush(&nl);
		for (i = 0; !opt.two && i < (replaces ? 2 * n : n); i++)
			traffic_send();
		if (!replaces && done / CHECK_EVERY != (done + n) / CHECK_EVERY)
			check_leaf(&nl, !opt.two);
		if (opt.abuse && !rnd(50)) {
			abuses++;
			abuse(&nl);
		}
		/* Here time passes, and packets leave. */
		if (!rnd(replaces ? 20 : 3))
			pause_us(1 + rnd(2000));
		progress(n);
		if (half_of_the_run()) {
			settle(&nl, replaces, !opt.two);
			measure(false);
		}
	}
	if (opt.two) {
		stop = true;
		pthread_join(thread, NULL);
	}
	if (replaces) {		/* the tree as test_storm.py built it */
		msg_qdisc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, opt.parent, opt.handle, opt.kind);
		add_message(&nl);
		flush(&nl);
	}
	settle(&nl, replaces, true);
	measure(true);
}

/* ---- a namespace: a device, a shaper, dualpi2, packets; and it ends ---- */

static void add_links(struct nl *nl, bool veth)
{
	const struct ifinfomsg up = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP }, info = {};
	int at, data, peer, i;

	msg_begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	attr_str(IFLA_IFNAME, "s0");
	at = nest(IFLA_LINKINFO | NLA_F_NESTED);
	attr_str(IFLA_INFO_KIND, veth ? "veth" : "dummy");
	if (veth) {
		data = nest(IFLA_INFO_DATA | NLA_F_NESTED);
		peer = m.len;
		attr(VETH_INFO_PEER, &info, sizeof(info));
		attr_str(IFLA_IFNAME, "s1");
		nest_end(peer);
		nest_end(data);
	}
	nest_end(at);
	add_message(nl);
	for (i = 0; i < 1 + veth; i++) {
		msg_begin(RTM_NEWLINK, 0, &up, sizeof(up));
		attr_str(IFLA_IFNAME, i ? "s1" : "s0");
		add_message(nl);
	}
	flush(nl);
	ifindex = if_nametoindex("s0");
}

static void add_tbf(struct nl *nl, uint32_t bytes_per_s)
{
	const struct tc_tbf_qopt qopt = {
		.rate = { .rate = bytes_per_s, .linklayer = TC_LINKLAYER_ETHERNET },
		.limit = 100000000,
		/* 4000 bytes at that rate, in ticks of 64 ns. */
		.buffer = 4000ull * 1000000000 / bytes_per_s / 64,
	};
	int at;

	msg_qdisc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, TC_H_ROOT, 1 << 16, "tbf");
	at = nest(TCA_OPTIONS | NLA_F_NESTED);
	attr(TCA_TBF_PARMS, &qopt, sizeof(qopt));
	nest_end(at);
	add_message(nl);
}

static void send_frames(unsigned int count)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_protocol = htons(ETH_P_IP),
	};
	unsigned char frame[600] = {
		[0] = 2, [5] = 2, [6] = 2, [11] = 1, [12] = 8,
		[14] = 0x45, [22] = 64, [23] = 17, [26] = 10, [30] = 10,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0)
		die("packet socket: %m");
	while (count--) {
		frame[15] = rnd(4);
		/* A full queue is expected here. */
		offered += sendto(fd, frame, 60 + rnd(540), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) > 0;
	}
	close(fd);
}

static void run_netns(void)
{
	struct stats st;
	struct nl nl;

	rnd_state = opt.seed * 2654435761u;
	while (done < opt.messages) {
		bool veth = !rnd(4), shaped = rnd(8);

		if (unshare(CLONE_NEWNET))
			die("unshare: %m");
		nl_open(&nl, NETLINK_ROUTE);
		add_links(&nl, veth);
		if (shaped)
			add_tbf(&nl, 125000);
		opt.handle = 0x10 << 16;
		opt.parent = shaped ? 1 << 16 | 1 : TC_H_ROOT;
		msg_qdisc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, opt.parent, opt.handle, "dualpi2");
		add_message(&nl);
		flush(&nl);
		send_frames(20 + rnd(20));
		/* They wait, unless the machine is slower than the shaper. */
		if (shaped && !opt.with && !(done % 16)) {
			leaf_get(&nl, &st);
			checks++;
			AT_MOST(2, st.q.qlen, "2, backlog in packets");
		}
		close(nl.fd);
		progress(1);
		/* Namespaces end in the background. */
		if (!(done % 16))
			pause_us(20000);
		if (half_of_the_run()) {
			pause_us(2000000);
			measure(false);
		}
	}
	if (unshare(CLONE_NEWNET))
		die("unshare: %m");
	pause_us(2000000);
	measure(true);
}

static uint32_t handle_number(const char *text)
{
	uint32_t major;
	char *end;

	if (!strcmp(text, "root"))
		return TC_H_ROOT;
	major = strtoul(text, &end, 16);
	return major << 16 | (*end ? strtoul(end + 1, NULL, 16) : 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int i;

	for (i = 2; i < argc; i++) {
		const char *name = argv[i], *value = argv[i + 1];

		if (!strcmp(name, "--abuse")) {
			opt.abuse = true;
			continue;
		}
		if (!strcmp(name, "--two")) {
			opt.two = true;
			continue;
		}
		if (!value)
			die("%s needs a value", name);
		i++;
		if (!strcmp(name, "--dev"))
			opt.dev = value;
		else if (!strcmp(name, "--kind"))
			opt.kind = value;
		else if (!strcmp(name, "--with"))
			opt.with = value;
		else if (!strcmp(name, "--parent"))
			opt.parent = handle_number(value);
		else if (!strcmp(name, "--handle"))
			opt.handle = handle_number(value);
		else if (!strcmp(name, "--messages"))
			opt.messages = strtoull(value, NULL, 0);
		else if (!strcmp(name, "--seed"))
			opt.seed = strtoull(value, NULL, 0);
		else
			die("unknown option %s", name);
	}
	if (opt.dev) {
		ifindex = if_nametoindex(opt.dev);
		if (!ifindex)
			die("no device %s", opt.dev);
	}
	if (!strcmp(mode, "change") && ifindex)
		run_storm(false);
	else if (!strcmp(mode, "replace") && ifindex)
		run_storm(true);
	else if (!strcmp(mode, "netns"))
		run_netns();
	else if (!strcmp(mode, "race") && ifindex)
		run_race();
	else
		die("usage: storm change|replace|netns|race, see its head");
	printf("{\"requests\": %llu, \"packets\": %llu, \"sends\": %llu, \"checks\": %llu, \"abuses\": %llu, "
	       "\"since_half\": %llu, \"objects_half\": %llu, \"objects_end\": %llu}\n", done, (ull)offered,
	       (ull)sends, checks, abuses, done - half_done, half_objects, end_objects);
	return 0;
}
