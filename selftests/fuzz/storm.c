// SPDX-License-Identifier: GPL-2.0-only
/*
 * storm: very many netlink requests to dualpi2 while packets pass, and the
 * accounts looked at again and again.
 *
 *	storm change  --dev D --parent P --handle H [OPTIONS]
 *	storm replace --dev D --parent P --handle H [OPTIONS]
 *	storm netns [OPTIONS]
 *
 * change: of the knobs, with limits that shrink step by step; every packet that
 * was offered must have come to dualpi2, and what came must be sent, dropped or
 * there.  replace: dualpi2 comes, goes and changes places with a pfifo.  netns:
 * network namespaces with a tree in them end while packets wait.
 *
 *	--messages N	requests, or namespaces (default 10000)
 *	--seed S	of all choices
 *	--abuse		between changes: link flaps, MTU, transmit queue length,
 *			filters, attempts to unload the module
 *	--two		traffic and dumps by a second thread, on the second CPU;
 *			then no link flaps and no transmit queue lengths
 *
 * It runs where the device is; test_storm.py builds the trees and judges what
 * this prints: one line of JSON.  Nothing random is sent here that should be
 * refused: that is another program's business.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <linux/gen_stats.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/dualpi2.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define BATCH		8
#define BATCH_BYTES	(BATCH * 256)
#define CHECK_EVERY	64	/* requests */
#define LIMIT_MAX	200	/* packets: some 240 ms at 10 Mbit/s */

static struct {
	const char *dev;
	uint32_t parent, handle;
	uint64_t messages, seed;
	bool abuse, two;
} opt = { .messages = 10000, .seed = 1 };

static int ifindex;
static uint64_t done, checks, abuses;
static _Atomic uint64_t offered, sends;
static _Atomic bool stop;

__attribute__((noreturn, format(printf, 1, 2)))
static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "storm: after %llu requests, %llu packets: ",
		(unsigned long long)done, (unsigned long long)offered);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* xorshift64*: the same on every machine. */
static uint32_t rnd(uint64_t *state, uint32_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1dull >> 32) % below;
}

static void pause_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

/* Netlink: requests are collected and sent together, then all are answered. */

struct netlink {
	int fd;
	uint32_t seq, waiting;
	size_t used;
	struct nlmsghdr *last;
	_Alignas(8) char out[BATCH_BYTES];
};

static void nl_open(struct netlink *nl)
{
	int one = 1, size = 1 << 20;

	memset(nl, 0, sizeof(*nl));
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (nl->fd < 0)
		die("netlink socket: %s", strerror(errno));
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(nl->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

static void nl_put(struct netlink *nl, uint16_t type, const void *data,
		   size_t len)
{
	struct nlattr *attr = (struct nlattr *)(nl->out + nl->used);

	if (nl->used + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(nl->out))
		die("request too long");
	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memset((char *)attr + NLA_HDRLEN, 0, NLA_ALIGN(len));
	if (len)
		memcpy((char *)attr + NLA_HDRLEN, data, len);
	nl->used += NLA_HDRLEN + NLA_ALIGN(len);
	nl->last->nlmsg_len = nl->out + nl->used - (char *)nl->last;
}

static void nl_put_u32(struct netlink *nl, uint16_t type, uint32_t value)
{
	nl_put(nl, type, &value, sizeof(value));
}
static void nl_put_u64(struct netlink *nl, uint16_t type, uint64_t value)
{
	nl_put(nl, type, &value, sizeof(value));
}

static void nl_put_u8(struct netlink *nl, uint16_t type, uint8_t value)
{
	nl_put(nl, type, &value, sizeof(value));
}

static struct nlattr *nl_nest(struct netlink *nl, uint16_t type)
{
	struct nlattr *nest = (struct nlattr *)(nl->out + nl->used);

	nl_put(nl, type | NLA_F_NESTED, NULL, 0);
	return nest;
}

static void nl_nest_end(struct netlink *nl, struct nlattr *nest)
{
	nest->nla_len = nl->out + nl->used - (char *)nest;
}

static void nl_begin(struct netlink *nl, uint16_t type, uint16_t flags,
		     const void *head, size_t len)
{
	nl->last = (struct nlmsghdr *)(nl->out + nl->used);
	*nl->last = (struct nlmsghdr) {
		.nlmsg_len = NLMSG_LENGTH(len),
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
		.nlmsg_seq = ++nl->seq,
	};
	memcpy(NLMSG_DATA(nl->last), head, len);
	nl->used += NLMSG_SPACE(len);
	nl->waiting++;
}

/* Send what was collected and wait for all answers.  Every error is one, but
 * for `allowed`.  An answer that is no acknowledgment is left in *reply.
 */
static int nl_flush(struct netlink *nl, int allowed, void *reply, size_t size)
{
	static __thread char buf[16][4096];
	const unsigned int count = 16;
	uint32_t first = nl->seq - nl->waiting + 1;
	struct mmsghdr msgs[16];
	struct iovec iov[16];
	int last = 0, n;

	if (!nl->waiting)
		return 0;
	if (send(nl->fd, nl->out, nl->used, 0) < 0)
		die("netlink send: %s", strerror(errno));
	nl->used = 0;
	while (nl->waiting) {
		for (unsigned int i = 0; i < count; i++) {
			iov[i] = (struct iovec) { buf[i], sizeof(buf[i]) };
			msgs[i] = (struct mmsghdr) { .msg_hdr = {
				.msg_iov = &iov[i], .msg_iovlen = 1 } };
		}
		n = recvmmsg(nl->fd, msgs, count, MSG_WAITFORONE, NULL);
		if (n < 0)
			die("netlink receive: %s", strerror(errno));
		for (int i = 0; i < n; i++) {
			struct nlmsghdr *h = (struct nlmsghdr *)buf[i];
			unsigned int len = msgs[i].msg_len;

			for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
				const struct nlmsgerr *err = NLMSG_DATA(h);

				if (h->nlmsg_type != NLMSG_ERROR) {
					if (reply && h->nlmsg_len <= size)
						memcpy(reply, h, h->nlmsg_len);
					continue;
				}
				if (err->error && err->error != -allowed)
					die("request %u of a batch: %s",
					    h->nlmsg_seq - first,
					    strerror(-err->error));
				last = err->error;
				nl->waiting--;
			}
		}
	}
	return -last;
}

static void nl_qdisc(struct netlink *nl, uint16_t type, uint16_t flags,
		     uint32_t parent, uint32_t handle, const char *kind)
{
	const struct tcmsg tcm = {
		.tcm_ifindex = ifindex,
		.tcm_parent = parent,
		.tcm_handle = handle,
	};

	nl_begin(nl, type, flags, &tcm, sizeof(tcm));
	if (kind)
		nl_put(nl, TCA_KIND, kind, strlen(kind) + 1);
}

/* Traffic: a socket for each codepoint. */

struct traffic {
	int fd[4];
	uint64_t rnd;
};

static void traffic_open(struct traffic *t, uint64_t seed)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(9),
		.sin_addr.s_addr = htonl(0x0a070002),
	};

	t->rnd = seed * 2654435761u + 1;
	for (int ecn = 0; ecn < 4; ecn++) {
		int size = 1 << 28;

		t->fd[ecn] = socket(AF_INET, SOCK_DGRAM, 0);
		setsockopt(t->fd[ecn], SOL_SOCKET, SO_SNDBUFFORCE, &size,
			   sizeof(size));
		setsockopt(t->fd[ecn], IPPROTO_IP, IP_TOS, &ecn, sizeof(ecn));
		if (connect(t->fd[ecn], (struct sockaddr *)&to, sizeof(to)))
			die("connect: %s", strerror(errno));
	}
}

/* One datagram, or in one of eight cases a GSO packet of 2 to 12 segments. */
static void traffic_send(struct traffic *t)
{
	static char data[16384];
	int ecn = rnd(&t->rnd, 4), segments = 1, zero = 0;
	int size = rnd(&t->rnd, 2) ? 20 + rnd(&t->rnd, 60) : 1000;

	if (!rnd(&t->rnd, 8)) {
		segments = 2 + rnd(&t->rnd, 11);
		setsockopt(t->fd[ecn], IPPROTO_UDP, UDP_SEGMENT, &size,
			   sizeof(size));
	}
	/* What a qdisc drops is no error to a UDP socket. */
	if (send(t->fd[ecn], data, (size_t)size * segments, 0) < 0)
		die("send: %s", strerror(errno));
	if (segments > 1)
		setsockopt(t->fd[ecn], IPPROTO_UDP, UDP_SEGMENT, &zero,
			   sizeof(zero));
	offered += segments;
	sends++;
}

/* Statistics */

struct leaf {
	struct tc_dualpi2_xstats x;
	struct tc_dualpi2_ext_xstats e;
	struct gnet_stats_queue q;
	uint32_t packets;
	bool found;
};

static const struct nlattr *nl_find(const void *data, int len, int type,
				    int *size)
{
	const struct nlattr *attr = data;

	while (len >= NLA_HDRLEN && attr->nla_len >= NLA_HDRLEN &&
	       attr->nla_len <= len) {
		if ((attr->nla_type & NLA_TYPE_MASK) == type) {
			*size = attr->nla_len - NLA_HDRLEN;
			return (const struct nlattr *)((const char *)attr +
						       NLA_HDRLEN);
		}
		len -= NLA_ALIGN(attr->nla_len);
		attr = (const void *)((const char *)attr +
				      NLA_ALIGN(attr->nla_len));
	}
	*size = 0;
	return NULL;
}

static void leaf_get(struct netlink *nl, struct leaf *leaf)
{
	_Alignas(8) char reply[4096] = "";
	const struct nlmsghdr *h = (const void *)reply;
	const void *stats, *part;
	int len, size;

	nl_qdisc(nl, RTM_GETQDISC, NLM_F_ECHO, opt.parent, opt.handle, NULL);
	nl_flush(nl, 0, reply, sizeof(reply));
	memset(leaf, 0, sizeof(*leaf));
	if (h->nlmsg_type != RTM_NEWQDISC)
		die("no answer to a question for statistics");
	stats = nl_find((const char *)NLMSG_DATA(h) + sizeof(struct tcmsg),
			h->nlmsg_len - NLMSG_LENGTH(sizeof(struct tcmsg)),
			TCA_STATS2, &len);
	part = nl_find(stats, len, TCA_STATS_QUEUE, &size);
	if (size >= (int)sizeof(leaf->q))
		memcpy(&leaf->q, part, sizeof(leaf->q));
	part = nl_find(stats, len, TCA_STATS_BASIC, &size);
	if (size >= 12)
		memcpy(&leaf->packets, (const char *)part + 8, 4);
	part = nl_find(stats, len, TCA_STATS_APP, &size);
	if (size < (int)(TC_DUALPI2_EXT_XSTATS_OFFSET + sizeof(leaf->e)))
		die("statistics of %d bytes", size);
	memcpy(&leaf->x, part, sizeof(leaf->x));
	memcpy(&leaf->e, (const char *)part + TC_DUALPI2_EXT_XSTATS_OFFSET,
	       sizeof(leaf->e));
}

static uint64_t came(const struct tc_dualpi2_queue_xstats *q)
{
	return q->enqueued + q->dropped_limit + q->dropped_memory +
	       q->dropped_early;
}

static void check_queue(const char *name,
			const struct tc_dualpi2_queue_xstats *q)
{
	uint64_t left = q->sent + q->dropped_aqm + q->dropped_overload +
			q->dropped_purge + q->packets;

	if (q->enqueued != left)
		die("%s: %llu enqueued, %llu sent, dropped or there", name,
		    (unsigned long long)q->enqueued, (unsigned long long)left);
	if (!q->packets != !q->bytes)
		die("%s: %llu packets of %llu bytes", name,
		    (unsigned long long)q->packets,
		    (unsigned long long)q->bytes);
	if (q->sent_bytes + q->bytes > q->enqueued_bytes)
		die("%s: more bytes left than came", name);
}

/* What one lock covers must agree at any time; the rest, and the sum against
 * what was offered, while nobody else sends.
 */
static void check_leaf(struct netlink *nl, bool alone)
{
	uint64_t least = offered, most, here, queued, passed;
	struct leaf leaf, next;

	leaf_get(nl, &leaf);
	most = offered;
	checks++;
	check_queue("C", &leaf.e.c);
	check_queue("L", &leaf.e.l);
	queued = leaf.e.c.packets + leaf.e.l.packets;
	if (!queued != !leaf.x.memory_used)
		die("%llu packets use %u bytes of memory",
		    (unsigned long long)queued, leaf.x.memory_used);
	if (!queued && (leaf.x.delay_c || leaf.x.delay_l))
		die("delays of %u, %u us in empty queues", leaf.x.delay_c,
		    leaf.x.delay_l);
	/* One packet may always wait. */
	if (leaf.x.memory_used > leaf.x.max_memory_used ||
	    (leaf.x.memory_used > leaf.x.memory_limit && queued > 1))
		die("%u bytes of memory of %u, at most %u", leaf.x.memory_used,
		    leaf.x.memory_limit, leaf.x.max_memory_used);
	here = came(&leaf.e.c) + came(&leaf.e.l) + leaf.e.filter_dropped +
	       leaf.e.gso_failed;
	/* Those that bypass sent past a root; others, too, that left since. */
	passed = opt.parent == TC_H_ROOT ? (uint32_t)
		 (leaf.packets - leaf.e.c.sent - leaf.e.l.sent) : 0;
	/* The other thread may be between a packet and its count. */
	if (here + passed < least || here > most + (alone ? 0 : 16))
		die("%llu packets came, and %llu passed by, %llu to %llu were offered",
		    (unsigned long long)here, (unsigned long long)passed,
		    (unsigned long long)least, (unsigned long long)most);
	if (!alone)
		return;
	/* The core takes its qlen before it asks dualpi2, all else after it.
	 * In real time packets leave meanwhile, and then the figures are not
	 * of one moment.
	 */
	leaf_get(nl, &next);
	if (memcmp(&next.e, &leaf.e, sizeof(leaf.e)) ||
	    memcmp(&next.q, &leaf.q, sizeof(leaf.q)))
		return;
	if (leaf.q.qlen != queued && leaf.q.qlen != queued + 1)
		die("qlen %u with %llu packets queued", leaf.q.qlen,
		    (unsigned long long)queued);
	if (leaf.q.qlen == queued &&
	    leaf.q.backlog != leaf.e.c.bytes + leaf.e.l.bytes)
		die("backlog %u with %llu bytes queued", leaf.q.backlog,
		    (unsigned long long)(leaf.e.c.bytes + leaf.e.l.bytes));
	if (next.packets != leaf.packets)
		return;
	if (leaf.packets != (uint32_t)(leaf.e.c.sent + leaf.e.l.sent + passed))
		die("%u packets in all, %llu of both queues", leaf.packets,
		    (unsigned long long)(leaf.e.c.sent + leaf.e.l.sent));
	if (here + passed > most)
		die("%llu packets came, and %llu passed by, %llu were offered",
		    (unsigned long long)here, (unsigned long long)passed,
		    (unsigned long long)most);
}

static void change_to(struct netlink *nl, uint32_t limit, uint32_t memory)
{
	struct nlattr *nest;

	nl_qdisc(nl, RTM_NEWQDISC, 0, opt.parent, opt.handle, "dualpi2");
	nest = nl_nest(nl, TCA_OPTIONS);
	nl_put_u32(nl, TCA_DUALPI2_LIMIT, limit);
	nl_put_u32(nl, TCA_DUALPI2_MEMORY_LIMIT, memory);
	nl_nest_end(nl, nest);
	nl_flush(nl, 0, NULL, 0);
}

static void drain(struct netlink *nl)
{
	struct leaf leaf;

	for (int i = 0; i < 20000; i++) {
		leaf_get(nl, &leaf);
		if (!leaf.q.qlen) {
			if (leaf.q.backlog || leaf.x.memory_used)
				die("empty, with backlog %u, %u bytes of memory",
				    leaf.q.backlog, leaf.x.memory_used);
			return;
		}
		pause_us(1000);
	}
	die("%u packets wait for 20 s", leaf.q.qlen);
}

static bool slab_matters(const char *name)
{
	return !strncmp(name, "skbuff", 6) || !strncmp(name, "kmalloc-", 8);
}

/* What was freed and is still kept, by KASAN above all, would look like a leak. */
static void slabs_shrink(void)
{
	char name[64], path[128];
	FILE *file = fopen("/proc/slabinfo", "r");
	char line[256];
	int fd;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s", name) != 1 || !slab_matters(name))
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", name);
		fd = open(path, O_WRONLY);
		if (fd < 0)
			continue;
		if (write(fd, "1", 1) != 1)
			die("%s: %s", path, strerror(errno));
		close(fd);
	}
	if (file)
		fclose(file);
}

/* Objects of the slabs that packets and qdiscs are made of. */
static uint64_t slab_objects(void)
{
	unsigned long long active, sum = 0;
	char line[256], name[64];
	FILE *file;

	slabs_shrink();
	file = fopen("/proc/slabinfo", "r");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llu", name, &active) == 2 &&
		    slab_matters(name))
			sum += active;
	}
	fclose(file);
	return sum;
}

static void progress(void)
{
	static uint64_t shown;

	if (done - shown < 10000 && done < opt.messages)
		return;
	shown = done;
	fprintf(stderr, "storm: %llu of %llu requests, %llu packets\n",
		(unsigned long long)done, (unsigned long long)opt.messages,
		(unsigned long long)offered);
}

/* The second thread: packets, and dumps from another CPU. */
/* cppcheck-suppress constParameter ; pthread_create() wants it so */
static void *other_cpu(void *arg)
{
	struct traffic traffic = {};
	struct netlink nl;
	struct leaf leaf;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(1, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("no second CPU: %s", strerror(errno));
	nl_open(&nl);
	traffic_open(&traffic, opt.seed + 1);
	for (unsigned int n = 1; !stop; n++) {
		traffic_send(&traffic);
		if (arg && !(n % 16)) {
			leaf_get(&nl, &leaf);
			check_queue("C", &leaf.e.c);
			check_queue("L", &leaf.e.l);
		}
		if (!(n % 256))
			pause_us(1000);
	}
	return NULL;
}

/* One change of one to four knobs; limits go down step by step. */
static void change(struct netlink *nl, uint64_t *state)
{
	static uint32_t limit = LIMIT_MAX, memory = 1 << 20;
	struct nlattr *nest, *ext;
	uint64_t bandwidth;

	nl_qdisc(nl, RTM_NEWQDISC, 0, opt.parent, opt.handle, "dualpi2");
	nest = nl_nest(nl, TCA_OPTIONS);
	if (rnd(state, 2)) {
		limit = limit > 1 ? 1 + rnd(state, limit - 1) : LIMIT_MAX;
		nl_put_u32(nl, TCA_DUALPI2_LIMIT, limit);
	}
	if (!rnd(state, 3)) {
		memory = memory > 2000 ? memory - memory / (2 + rnd(state, 8)) :
					 1 << 20;
		nl_put_u32(nl, TCA_DUALPI2_MEMORY_LIMIT, memory);
	}
	switch (rnd(state, 10)) {
	case 0:
		nl_put_u32(nl, TCA_DUALPI2_TARGET, 1 + rnd(state, 50000));
		nl_put_u32(nl, TCA_DUALPI2_TUPDATE, 100 + rnd(state, 50000));
		break;
	case 1:
		nl_put_u32(nl, TCA_DUALPI2_ALPHA, 1 + rnd(state, 100000));
		nl_put_u32(nl, TCA_DUALPI2_BETA, 1 + rnd(state, 100000));
		break;
	case 2:
		nl_put_u32(nl, TCA_DUALPI2_STEP_THRESH_US, rnd(state, 5000));
		break;
	case 3:
		nl_put_u32(nl, TCA_DUALPI2_STEP_THRESH_PKTS,
			   1 + rnd(state, 50));
		break;
	case 4:
		nl_put_u8(nl, TCA_DUALPI2_COUPLING, 1 + rnd(state, 255));
		nl_put_u8(nl, TCA_DUALPI2_C_PROTECTION, rnd(state, 101));
		break;
	case 5:
		nl_put_u8(nl, TCA_DUALPI2_DROP_OVERLOAD, rnd(state, 2));
		nl_put_u8(nl, TCA_DUALPI2_DROP_EARLY, rnd(state, 2));
		break;
	case 6:
		nl_put_u8(nl, TCA_DUALPI2_ECN_MASK, 1 + rnd(state, 3));
		nl_put_u32(nl, TCA_DUALPI2_MIN_QLEN_STEP, rnd(state, 10));
		break;
	case 7:
		ext = nl_nest(nl, TCA_DUALPI2_EXT);
		nl_put_u8(nl, TCA_DUALPI2_EXT_L4S, rnd(state, 2));
		nl_put_u32(nl, TCA_DUALPI2_EXT_RAMP_US, rnd(state, 5000));
		nl_put_u8(nl, TCA_DUALPI2_EXT_SIGNAL, rnd(state, 2));
		nl_nest_end(nl, ext);
		break;
	case 8:		/* half of the time without a shaper; 1 Mbit/s at least */
		bandwidth = rnd(state, 2) * (125000ull << rnd(state, 20));
		ext = nl_nest(nl, TCA_DUALPI2_EXT);
		nl_put_u64(nl, TCA_DUALPI2_EXT_BANDWIDTH, bandwidth);
		nl_put_u8(nl, TCA_DUALPI2_EXT_INGRESS, rnd(state, 2));
		nl_put_u8(nl, TCA_DUALPI2_EXT_BYPASS,
			  !bandwidth && rnd(state, 2));
		nl_nest_end(nl, ext);
		break;
	case 9:
		ext = nl_nest(nl, TCA_DUALPI2_EXT);
		nl_put_u8(nl, TCA_DUALPI2_EXT_FRAMING, rnd(state, 4));
		nl_put_u32(nl, TCA_DUALPI2_EXT_OVERHEAD, rnd(state, 321) - 64);
		nl_put_u32(nl, TCA_DUALPI2_EXT_MPU, rnd(state, 257));
		nl_put_u64(nl, TCA_DUALPI2_EXT_NQB,
			   (uint64_t)rnd(state, 2) << rnd(state, 64));
		nl_put_u32(nl, TCA_DUALPI2_EXT_BURST_MAX, rnd(state, 100001));
		nl_nest_end(nl, ext);
		break;
	}
	nl_nest_end(nl, nest);
}

static void link_change(struct netlink *nl, unsigned int up, uint32_t mtu,
			uint32_t queue_len)
{
	const struct ifinfomsg info = {
		.ifi_index = ifindex,
		.ifi_flags = up,
		.ifi_change = IFF_UP,
	};

	nl_begin(nl, RTM_NEWLINK, 0, &info, sizeof(info));
	if (mtu)
		nl_put_u32(nl, IFLA_MTU, mtu);
	if (queue_len)
		nl_put_u32(nl, IFLA_TXQLEN, queue_len);
	nl_flush(nl, 0, NULL, 0);
}

static void filter(struct netlink *nl, bool add, uint32_t class)
{
	const struct tcmsg tcm = {
		.tcm_ifindex = ifindex,
		.tcm_parent = opt.handle,
		.tcm_info = TC_H_MAKE(7 << 16, htons(ETH_P_IP)),
	};
	struct nlattr *nest;

	nl_begin(nl, add ? RTM_NEWTFILTER : RTM_DELTFILTER,
		 add ? NLM_F_CREATE : 0, &tcm, sizeof(tcm));
	nl_put(nl, TCA_KIND, "matchall", sizeof("matchall"));
	if (add) {
		nest = nl_nest(nl, TCA_OPTIONS);
		nl_put_u32(nl, TCA_MATCHALL_CLASSID, opt.handle | class);
		nl_nest_end(nl, nest);
	}
	nl_flush(nl, 0, NULL, 0);
}

/* Something else that happens to a qdisc.  A reset purges a packet that was
 * peeked at, which counts as sent; no packet that came is forgotten.  The last
 * two have the core put noop in the place of the tree for a moment, and what
 * the other CPU sends then is in no account.
 */
static void abuse(struct netlink *nl, uint64_t *state)
{
	static const uint32_t mtus[] = { 1500, 9000, 65535, 2000 };
	static bool filtered;

	abuses++;
	switch (rnd(state, opt.two ? 3 : 5)) {
	case 0:
		link_change(nl, IFF_UP, mtus[rnd(state, 4)], 0);
		break;
	case 1:
		filter(nl, !filtered, rnd(state, 4));
		filtered = !filtered;
		break;
	case 2:
		if (!syscall(SYS_delete_module, "sch_dualpi2", O_NONBLOCK))
			die("the module was unloaded while in use");
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EBUSY)
			die("unloading the module: %s", strerror(errno));
		break;
	case 3:
		link_change(nl, IFF_UP, 0, 1 + rnd(state, 2000));
		break;
	case 4:
		link_change(nl, 0, 0, 0);
		link_change(nl, IFF_UP, 0, 0);
		break;
	}
}

/* Objects when half of the run was done, and at its end, with empty queues. */
static uint64_t half_objects, all_objects, half_done;

static void measure(bool at_end)
{
	pause_us(100000);	/* what is freed after a grace period */
	if (at_end) {
		all_objects = slab_objects();
	} else {
		half_objects = slab_objects();
		half_done = done;
	}
}

static void run_change(void)
{
	uint64_t state = opt.seed * 2654435761u + 7;
	struct traffic traffic = {};
	struct netlink nl;
	pthread_t thread = 0;
	cpu_set_t cpus;
	bool half = false;

	nl_open(&nl);
	if (opt.two) {
		CPU_ZERO(&cpus);
		CPU_SET(0, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
		if (pthread_create(&thread, NULL, other_cpu, &nl))
			die("no thread");
	} else {
		traffic_open(&traffic, opt.seed);
	}
	while (done < opt.messages) {
		unsigned int n = 1 + rnd(&state, BATCH);

		for (unsigned int i = 0; i < n; i++)
			change(&nl, &state);
		nl_flush(&nl, 0, NULL, 0);
		for (unsigned int i = 0; !opt.two && i < n; i++)
			traffic_send(&traffic);
		if (done / CHECK_EVERY != (done + n) / CHECK_EVERY)
			check_leaf(&nl, !opt.two);
		if (opt.abuse && !rnd(&state, 50))
			abuse(&nl, &state);
		/* Here time passes, and packets leave. */
		if (!rnd(&state, 3))
			pause_us(1 + rnd(&state, 2000));
		done += n;
		progress();
		if (!half && done >= opt.messages / 2) {
			half = true;
			change_to(&nl, LIMIT_MAX, 1 << 20);
			if (!opt.two)
				drain(&nl);
			measure(false);
		}
	}
	if (opt.two) {
		stop = true;
		pthread_join(thread, NULL);
	}
	change_to(&nl, LIMIT_MAX, 1 << 20);
	check_leaf(&nl, true);
	drain(&nl);
	check_leaf(&nl, true);
	measure(true);
}

/* What is at the place of dualpi2, as requests go out. */
static struct {
	const char *kind;
	uint32_t handle;
} place;

static void replace(struct netlink *nl, uint64_t *state)
{
	uint32_t fresh = (0x1000 + rnd(state, 0x6fff)) << 16;
	struct nlattr *nest;
	const char *kind;

	if (fresh == place.handle)
		fresh += 1 << 16;
	if (place.kind && !rnd(state, 3)) {
		nl_qdisc(nl, RTM_DELQDISC, 0, opt.parent, place.handle, NULL);
		place.kind = NULL;
		return;
	}
	if (place.kind && !strcmp(place.kind, "dualpi2") && !rnd(state, 4)) {
		/* By itself. */
		nl_qdisc(nl, RTM_NEWQDISC, NLM_F_REPLACE, opt.parent,
			 place.handle, "dualpi2");
		nest = nl_nest(nl, TCA_OPTIONS);
		nl_put_u32(nl, TCA_DUALPI2_LIMIT, 1 + rnd(state, LIMIT_MAX));
		nl_nest_end(nl, nest);
		return;
	}
	kind = rnd(state, 5) ? "dualpi2" : "pfifo";
	nl_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE |
		 (place.kind ? NLM_F_REPLACE : NLM_F_EXCL), opt.parent, fresh,
		 kind);
	place.kind = kind;
	place.handle = fresh;
}

static void run_replace(void)
{
	uint64_t state = opt.seed * 2654435761u + 7;
	struct traffic traffic = {};
	struct netlink nl;
	pthread_t thread = 0;
	bool half = false;

	nl_open(&nl);
	place.kind = "dualpi2";
	place.handle = opt.handle;
	if (opt.two) {
		if (pthread_create(&thread, NULL, other_cpu, NULL))
			die("no thread");
	} else {
		traffic_open(&traffic, opt.seed);
	}
	while (done < opt.messages) {
		unsigned int n = 1 + rnd(&state, 3);

		for (unsigned int i = 0; i < n; i++)
			replace(&nl, &state);
		nl_flush(&nl, 0, NULL, 0);
		for (unsigned int i = 0; !opt.two && i < 2 * n; i++)
			traffic_send(&traffic);
		if (!rnd(&state, 20))
			pause_us(1 + rnd(&state, 2000));
		done += n;
		progress();
		if (!half && done >= opt.messages / 2) {
			half = true;
			pause_us(1000000);
			measure(false);
		}
	}
	if (opt.two) {
		stop = true;
		pthread_join(thread, NULL);
	}
	/* As it was, for who looks at the tree. */
	nl_qdisc(&nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, opt.parent,
		 opt.handle, "dualpi2");
	nl_flush(&nl, 0, NULL, 0);
	pause_us(1000000);
	measure(true);
}

/* A namespace: a device, a shaper, dualpi2, packets; and it ends. */

static void link_add(struct netlink *nl, bool veth)
{
	const struct ifinfomsg up = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	const struct ifinfomsg info = {};
	struct nlattr *nest, *data, *peer;

	nl_begin(nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	nl_put(nl, IFLA_IFNAME, "s0", 3);
	nest = nl_nest(nl, IFLA_LINKINFO);
	nl_put(nl, IFLA_INFO_KIND, veth ? "veth" : "dummy", veth ? 5 : 6);
	if (veth) {
		data = nl_nest(nl, IFLA_INFO_DATA);
		peer = (struct nlattr *)(nl->out + nl->used);
		nl_put(nl, VETH_INFO_PEER, &info, sizeof(info));
		nl_put(nl, IFLA_IFNAME, "s1", 3);
		nl_nest_end(nl, peer);
		nl_nest_end(nl, data);
	}
	nl_nest_end(nl, nest);
	for (int i = 0; i < 1 + veth; i++) {
		nl_begin(nl, RTM_NEWLINK, 0, &up, sizeof(up));
		nl_put(nl, IFLA_IFNAME, i ? "s1" : "s0", 3);
	}
	nl_flush(nl, 0, NULL, 0);
	ifindex = if_nametoindex("s0");
}

static void tbf_add(struct netlink *nl, uint32_t bytes_per_s)
{
	const struct tc_tbf_qopt qopt = {
		.rate = { .rate = bytes_per_s, .linklayer = TC_LINKLAYER_ETHERNET },
		.limit = 100000000,
		/* 4000 bytes at that rate, in ticks of 64 ns. */
		.buffer = 4000ull * 1000000000 / bytes_per_s / 64,
	};
	struct nlattr *nest;

	nl_qdisc(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, TC_H_ROOT, 1 << 16,
		 "tbf");
	nest = nl_nest(nl, TCA_OPTIONS);
	nl_put(nl, TCA_TBF_PARMS, &qopt, sizeof(qopt));
	nl_nest_end(nl, nest);
}

static void frames_send(uint64_t *state, unsigned int count)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = ifindex,
		.sll_protocol = htons(ETH_P_IP),
	};
	unsigned char frame[600] = {
		[0] = 2, [5] = 2, [6] = 2, [11] = 1, [12] = 8,
		[14] = 0x45, [22] = 64, [23] = 17, [26] = 10, [30] = 10,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0)
		die("packet socket: %s", strerror(errno));
	while (count--) {
		frame[15] = rnd(state, 4);
		/* A full queue is no error here. */
		if (sendto(fd, frame, 60 + rnd(state, 540), MSG_DONTWAIT,
			   (struct sockaddr *)&to, sizeof(to)) > 0)
			offered++;
	}
	close(fd);
}

static void run_netns(void)
{
	uint64_t state = opt.seed * 2654435761u + 7;
	struct netlink nl;
	bool half = false;

	while (done < opt.messages) {
		bool veth = !rnd(&state, 4), shaped = rnd(&state, 8);

		if (unshare(CLONE_NEWNET))
			die("unshare: %s", strerror(errno));
		nl_open(&nl);
		link_add(&nl, veth);
		if (shaped)
			tbf_add(&nl, 125000);
		nl_qdisc(&nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE,
			 shaped ? 1 << 16 | 1 : TC_H_ROOT, 0x10 << 16, "dualpi2");
		nl_flush(&nl, 0, NULL, 0);
		frames_send(&state, 20 + rnd(&state, 20));
		opt.handle = 0x10 << 16;
		opt.parent = shaped ? 1 << 16 | 1 : TC_H_ROOT;
		if (shaped && !(done % 16)) {
			struct leaf leaf;

			leaf_get(&nl, &leaf);
			checks++;
			if (leaf.q.qlen < 2)
				die("only %u packets wait", leaf.q.qlen);
		}
		close(nl.fd);
		done++;
		/* The end of namespaces is other threads' work. */
		if (!(done % 16))
			pause_us(20000);
		progress();
		if (!half && done >= opt.messages / 2) {
			half = true;
			pause_us(2000000);
			measure(false);
		}
	}
	if (unshare(CLONE_NEWNET))
		die("unshare: %s", strerror(errno));
	pause_us(2000000);
	measure(true);
}

static uint32_t handle_number(const char *text)
{
	char *end;
	uint32_t major;

	if (!strcmp(text, "root"))
		return TC_H_ROOT;
	major = strtoul(text, &end, 16);
	return major << 16 | (*end ? strtoul(end + 1, NULL, 16) : 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	for (int i = 2; i < argc; i++) {
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
		run_change();
	else if (!strcmp(mode, "replace") && ifindex)
		run_replace();
	else if (!strcmp(mode, "netns"))
		run_netns();
	else
		die("usage: storm change|replace|netns, see its head");
	printf("{\"requests\": %llu, \"packets\": %llu, \"sends\": %llu, ",
	       (unsigned long long)done, (unsigned long long)offered,
	       (unsigned long long)sends);
	printf("\"checks\": %llu, \"abuses\": %llu, \"since_half\": %llu, ",
	       (unsigned long long)checks, (unsigned long long)abuses,
	       (unsigned long long)(done - half_done));
	printf("\"objects_half\": %llu, \"objects_end\": %llu}\n",
	       (unsigned long long)half_objects,
	       (unsigned long long)all_objects);
	return 0;
}
