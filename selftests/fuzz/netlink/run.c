// SPDX-License-Identifier: GPL-2.0-only
/* Sends the steps, hands the answers on, and listens to the reports of overload. */
#define _GNU_SOURCE
#include "fuzz.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAMES_MAX	32	/* of one step */
#define IP_HDR		14
#define L4_HDR		34

static struct nl rt = { .fd = -1 };
static int tx_fd = -1, genl_fd = -1;
static bool just_dumped;	/* nothing has happened since the last dump */

/* Without answers that came late. */
void open_sockets(void)
{
	int one = 1, room = 16 << 20;

	if (rt.fd >= 0) {
		close(rt.fd);
		close(tx_fd);
	}
	nl_open(&rt, NETLINK_ROUTE);
	tx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (tx_fd < 0 || setsockopt(tx_fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(tx_fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		die("cannot open a packet socket: %m");
}

/* Where there is no such file, nothing is written. */
void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "netlink: cannot write %s: %m\n", path);
	close(fd);
}

/* ---- reports of overload ---- */

static uint16_t genl_family;

/* Send a generic netlink message; returns the length of the answer in buf. */
static int genl_ask(uint16_t family, uint8_t cmd, const uint8_t *attrs, int len, uint8_t *buf)
{
	struct {
		struct nlmsghdr n;
		struct genlmsghdr g;
		uint8_t attrs[256];
	} req = {
		.n = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) + len,
			.nlmsg_type = family,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
		.g = { .cmd = cmd, .version = 1 },
	};

	memcpy(req.attrs, attrs, len);
	if (send(genl_fd, &req, req.n.nlmsg_len, 0) < 0)
		die("cannot send to generic netlink: %m");
	return recv(genl_fd, buf, REPLY_MAX, 0);
}

static void listen_to_reports(void)
{
	static uint8_t buf[REPLY_MAX];
	const int skip = NLMSG_LENGTH(GENL_HDRLEN);
	const uint8_t *groups, *group, *id;
	uint8_t name[32];
	int len, size;

	if (genl_fd >= 0)
		close(genl_fd);
	genl_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (genl_fd < 0)
		die("no generic netlink: %m");
	size = put_nla(name, CTRL_ATTR_FAMILY_NAME, DUALPI2_GENL_NAME, sizeof(DUALPI2_GENL_NAME)) - name;
	len = genl_ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, name, size, buf);
	if (len < skip || ((struct nlmsghdr *)buf)->nlmsg_type == NLMSG_ERROR)
		die("no generic netlink family %s: is the module loaded?", DUALPI2_GENL_NAME);
	id = find(buf + skip, len - skip, CTRL_ATTR_FAMILY_ID, &size);
	groups = find(buf + skip, len - skip, CTRL_ATTR_MCAST_GROUPS, &len);
	group = find(groups, len, 1, &len);
	if (!id || !group)
		die("family %s without a group", DUALPI2_GENL_NAME);
	genl_family = get16(id);
	size = get32(find(group, len, CTRL_ATTR_MCAST_GRP_ID, &size));
	if (setsockopt(genl_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &size, sizeof(size)))
		die("cannot join the group: %m");
	/* The answer to the request. */
	recv(genl_fd, buf, sizeof(buf), MSG_DONTWAIT);
}

/* Each is complete and names one of the devices. */
static void read_reports(void)
{
	static const int sizes[] = {
		[DUALPI2_A_IFINDEX] = 4, [DUALPI2_A_HANDLE] = 4, [DUALPI2_A_PARENT] = 4,
		[DUALPI2_A_START_NS] = 8, [DUALPI2_A_DURATION_NS] = 8, [DUALPI2_A_COUNT] = 4,
	};
	static uint8_t buf[REPLY_MAX];
	int len;

	while ((len = recv(genl_fd, buf, sizeof(buf), MSG_DONTWAIT)) >= 0) {
		const struct nlmsghdr *n = (void *)buf;
		const struct genlmsghdr *g = NLMSG_DATA(n);
		int size, k;

		SAME(n->nlmsg_type, genl_family, "type of a report");
		SAME(n->nlmsg_len, len, "length of a report");
		if (g->cmd != DUALPI2_CMD_OVERLOAD_BEGIN && g->cmd != DUALPI2_CMD_OVERLOAD_END)
			fault("a report %u", g->cmd);
		SAME(g->version, DUALPI2_GENL_VERSION, "version of a report");
		len -= NLMSG_LENGTH(GENL_HDRLEN);
		for (k = DUALPI2_A_IFINDEX; k <= DUALPI2_A_MAX; k++) {
			const uint8_t *one = find(buf + NLMSG_LENGTH(GENL_HDRLEN), len, k, &size);

			if (!one)
				fault("a report without attribute %d", k);
			SAME(size, sizes[k], "length of a report's attribute");
			if (k == DUALPI2_A_IFINDEX && !device_of(get32(one)))
				fault("a report of device %u", get32(one));
			if (k == DUALPI2_A_COUNT)
				AT_MOST(1, get32(one), "overloads in a report");
		}
		count.reports++;
	}
}

/* The family has no commands: the kernel rejects whatever is sent to it. */
void ask_the_family(void)
{
	static uint8_t buf[REPLY_MAX];
	const struct nlmsghdr *h = (void *)buf;
	uint8_t attrs[200];
	int n, i, len;

	read_reports();
	for (n = 0; n < 8; n++) {
		for (i = 0; i < (int)sizeof(attrs); i++)
			attrs[i] = rnd64();
		len = genl_ask(genl_family, chance(700) ? rnd(5) : rnd64(), attrs, rnd(sizeof(attrs)), buf);
		if (len < (int)NLMSG_LENGTH(sizeof(int)) || h->nlmsg_type != NLMSG_ERROR || !get32(NLMSG_DATA(h)))
			fault("generic netlink takes a command of %s", DUALPI2_GENL_NAME);
	}
}

void new_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		die("no network namespace: %m (run it as root)");
	/* No packets but the fuzzer's. */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	open_sockets();
	listen_to_reports();
}

/* ---- messages ---- */

struct batch {
	const struct sequence *seq;
	const struct step *first;
	uint8_t reply[REPLY_MAX];	/* RTM_NEWQDISC before the acknowledgment */
	int reply_len;
};

static void answered(void *arg, uint32_t n, const struct nlmsghdr *h, bool last, int error, const char *text)
{
	struct batch *b = arg;
	const struct step *step = b->first + n;
	const uint8_t *data = NLMSG_DATA(h);
	int len = h->nlmsg_len - NLMSG_HDRLEN;

	if (!last) {
		if (h->nlmsg_type == RTM_NEWTCLASS && is_dump(step))
			check_class(data, len, just_dumped);
		if (h->nlmsg_type == RTM_NEWQDISC && is_dump(step)) {
			count.checked++;
			check_shown(data, len, true);
		} else if (h->nlmsg_type == RTM_NEWQDISC) {
			memcpy(b->reply, data, len);
			b->reply_len = len;
		}
		return;
	}
	if (h->nlmsg_type == NLMSG_DONE && step->type == RTM_GETQDISC) {
		if (step->oracle) {
			check_trees();
			just_dumped = true;
		}
		check_end_of_dump();
	}
	count.messages += !step->oracle;
	if (error)
		count.refused++;
	else
		count.accepted++;
	count.checked += step->type == RTM_GETQDISC && step->oracle;
	if (step->type == RTM_GETQDISC && b->reply_len)
		check_shown(b->reply, b->reply_len, false);
	else
		model_answer(step, b->seq->bytes + step->at, error, text);
	b->reply_len = 0;
}

static void send_batch(const struct sequence *seq, size_t first, size_t end)
{
	static struct batch b;

	b.seq = seq;
	b.first = &seq->steps[first];
	b.reply_len = 0;
	just_dumped &= b.first->type == RTM_GETTCLASS && is_dump(b.first);
	for (; first < end; first++) {
		const struct step *step = &seq->steps[first];

		nl_add(&rt, step->type, step->flags, seq->bytes + step->at, step->len);
	}
	nl_flush(&rt, answered, &b);
}

/* ---- packets ---- */

/* A frame with virtio header vh; of no flow but ECN and length. */
static void make_frame(uint8_t *p, const struct virtio_net_hdr *vh, uint32_t size, uint32_t ecn, bool udp)
{
	uint32_t sum = 0, j;

	memcpy(p, vh, sizeof(*vh));
	p += sizeof(*vh);
	memcpy(p, "\2\0\0\0\0\1\2\0\0\0\0\2\x08\0\x45\0\0\0\0\0\x40\0\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2", L4_HDR);
	memset(p + L4_HDR, 0, 20);
	p[IP_HDR + 1] = ecn & 3;
	*(uint16_t *)(p + IP_HDR + 2) = htons(size - IP_HDR);
	p[IP_HDR + 9] = udp ? IPPROTO_UDP : IPPROTO_TCP;
	for (j = IP_HDR; j < L4_HDR; j += 2)
		sum += ntohs(*(uint16_t *)(p + j));
	sum = (sum & 0xffff) + (sum >> 16);
	*(uint16_t *)(p + IP_HDR + 10) = htons(~(sum + (sum >> 16)));
	p[L4_HDR + 2] = 0x10;
	if (udp)
		*(uint16_t *)(p + L4_HDR + 4) = htons(size - L4_HDR);
	else
		p[L4_HDR + 12] = 0x50;
}

static void transmit(const uint32_t *arg)
{
	static uint8_t frames[FRAMES_MAX][sizeof(struct virtio_net_hdr) + 14 + 65500];
	uint32_t dev = arg[0], ecn = arg[2], size = arg[3], gso = arg[4], n = arg[5], i;
	bool udp = !gso || gso > 65536;
	uint32_t least = L4_HDR + (udp ? 8 : 20);
	struct virtio_net_hdr vh = {};
	struct mmsghdr heads[FRAMES_MAX];
	struct iovec pieces[FRAMES_MAX];
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = IFINDEX + dev, .sll_halen = 6,
	};

	size = size < least ? least : size > 65000 ? 65000 : size;
	n = n > FRAMES_MAX ? FRAMES_MAX : n;
	if (gso) {
		vh.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		vh.gso_type = udp ? 5 /* UDP_L4 */ : VIRTIO_NET_HDR_GSO_TCPV4;
		vh.gso_size = gso & 65535;
		vh.hdr_len = least;
		vh.csum_start = L4_HDR;
		vh.csum_offset = udp ? 6 : 16;
	}
	/* cppcheck-suppress knownConditionTrueFalse ; it takes arg[] for constant */
	for (i = 0; i < n; i++) {
		make_frame(frames[i], &vh, size, ecn > 3 ? i : ecn, udp);	/* 4: all in turn */
		pieces[i] = (struct iovec) { frames[i], sizeof(vh) + size };
		heads[i].msg_hdr = (struct msghdr) {
			.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &pieces[i], .msg_iovlen = 1,
		};
	}
	setsockopt(tx_fd, SOL_SOCKET, SO_PRIORITY, &arg[1], sizeof(arg[1]));
	/* A device that is down, too small an MTU or no room: all good. */
	/* cppcheck-suppress knownConditionTrueFalse */
	for (i = 0; i < n;) {
		int sent = sendmmsg(tx_fd, heads + i, n - i, MSG_DONTWAIT);

		if (sent <= 0)
			break;
		i += sent;
		count.frames += sent;
	}
}

/* A dump ends a batch: its answers come when they are read. A long message goes alone. */
static size_t end_of_batch(const struct sequence *seq, size_t first, size_t end)
{
	size_t n;

	for (n = first + 1; n < end && n < first + BATCH; n++) {
		const struct step *last = &seq->steps[n - 1], *next = &seq->steps[n];

		if (next->kind != STEP_NL || is_dump(last) || last->len > 4000 || next->len > 4000)
			break;
	}
	return n;
}

void run_steps(const struct sequence *seq, size_t first, size_t end)
{
	size_t next;

	for (; first < end; first = next) {
		const struct step *step = &seq->steps[first];

		next = first + 1;
		if (step->kind == STEP_NL) {
			next = end_of_batch(seq, first, end);
			send_batch(seq, first, next);
			continue;
		}
		if (step->kind == STEP_TX)
			transmit(step->arg);
		else
			usleep(step->arg[0]);
		model_not_trimmed();
		just_dumped = false;
	}
	read_reports();
}
