// SPDX-License-Identifier: GPL-2.0-only
/*
 * delaymeter: sees every packet enter and leave a router, from outside of the
 * queue discipline.
 *
 * Listens on the interface where packets come in and on the one where they go
 * out, and writes one record a sighting; measure.py pairs them.  The kernel
 * stamps both: on arrival, and behind the qdisc when the packet goes to the
 * device.  So the difference is the time in the qdisc and its parents.  The
 * packets of the first seconds, of both directions, can be written as a capture.
 *
 * Not a general capture tool: IPv4 over Ethernet, one direction.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A sighting as written, in host byte order unless said; measure.py reads it. */
struct record {
	uint64_t ns;		/* CLOCK_REALTIME */
	uint32_t saddr;		/* network byte order */
	uint32_t seq;		/* TCP sequence number or UDP length, as sent */
	uint16_t id;		/* IP identification, as sent */
	uint16_t bytes;		/* with Ethernet header */
	uint8_t ecn;
	uint8_t outgoing;
	uint16_t pad;
};

/* The format of libpcap: head of a file with times in ns, head of a packet */
struct capture_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, linktype;
};

struct capture_packet {
	uint32_t sec, nsec, caplen, bytes;
};

#define CAPTURE_MAGIC_NS	0xa1b23c4d
#define CAPTURE_ETHERNET	1
#define CAPTURE_NS		5000000000ULL	/* after its first packet */

/* Of a packet the ring gets the Ethernet header, IPv4's and what follows. */
#define CAPTURED_BYTES	64
#define BLOCKS		64
#define BLOCK_BYTES	(1U << 16)

static volatile sig_atomic_t stop;
static uint32_t net_prefix;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "delaymeter: %s: %s\n", what, strerror(errno));
	exit(1);
}

struct ring {
	int fd;
	uint8_t *map;
	unsigned int block;
};

static void ring_open(struct ring *r, const char *dev)
{
	struct tpacket_req3 req = {
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = 2048,
		.tp_frame_nr = BLOCKS * (BLOCK_BYTES / 2048),
		.tp_retire_blk_tov = 50,
	};
	struct sockaddr_ll sll = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
	};
	struct sock_filter cut = BPF_STMT(BPF_RET | BPF_K, CAPTURED_BYTES);
	struct sock_fprog filter = { .len = 1, .filter = &cut };
	int version = TPACKET_V3;

	r->fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (r->fd < 0)
		die("packet socket (needs root)");
	sll.sll_ifindex = if_nametoindex(dev);
	if (!sll.sll_ifindex)
		die(dev);
	if (setsockopt(r->fd, SOL_PACKET, PACKET_VERSION, &version,
		       sizeof(version)) ||
	    setsockopt(r->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)) ||
	    setsockopt(r->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
		       sizeof(filter)))
		die("packet ring");
	r->map = mmap(NULL, (size_t)BLOCKS * BLOCK_BYTES,
		      PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->map == MAP_FAILED)
		die("mmap");
	if (bind(r->fd, (struct sockaddr *)&sll, sizeof(sll)))
		die("bind");
}

static void sight(FILE *file, int outgoing, uint64_t ns, const uint8_t *eth,
		  unsigned int caplen, unsigned int bytes)
{
	const uint8_t *ip = eth + ETH_HLEN;
	struct record rec = {
		.ns = ns,
		.bytes = bytes,
		.outgoing = outgoing,
	};

	if (caplen < ETH_HLEN + 28 || eth[12] != 0x08 || eth[13] != 0x00)
		return;
	memcpy(&rec.saddr, ip + 12, 4);
	if ((ntohl(rec.saddr) & 0xffff0000) != net_prefix)
		return;
	memcpy(&rec.id, ip + 4, 2);
	memcpy(&rec.seq, ip + 24, 4);
	rec.ecn = ip[1] & 3;
	if (fwrite(&rec, sizeof(rec), 1, file) != 1)
		die("write");
}

static FILE *capture_open(const char *path)
{
	struct capture_head head = {
		.magic = CAPTURE_MAGIC_NS,
		.major = 2,
		.minor = 4,
		.snaplen = CAPTURED_BYTES,
		.linktype = CAPTURE_ETHERNET,
	};
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(&head, sizeof(head), 1, file) != 1)
		die(path);
	return file;
}

/* Packets come in the order of their times. */
static void capture(FILE *file, const struct tpacket3_hdr *h)
{
	struct capture_packet packet = {
		.sec = h->tp_sec,
		.nsec = h->tp_nsec,
		.caplen = h->tp_snaplen,
		.bytes = h->tp_len,
	};
	uint64_t ns = h->tp_sec * 1000000000ULL + h->tp_nsec;
	static uint64_t first_ns;

	if (!first_ns)
		first_ns = ns;
	if (ns - first_ns >= CAPTURE_NS)
		return;
	if (fwrite(&packet, sizeof(packet), 1, file) != 1 ||
	    fwrite((uint8_t *)h + h->tp_mac, h->tp_snaplen, 1, file) != 1)
		die("write");
}

/* The oldest block that the kernel has filled, or NULL. */
static struct tpacket_block_desc *ring_block(struct ring *r)
{
	struct tpacket_block_desc *b;

	b = (void *)(r->map + (size_t)r->block * BLOCK_BYTES);
	return (b->hdr.bh1.block_status & TP_STATUS_USER) ? b : NULL;
}

/* captured: NULL for none */
static void ring_drain(struct ring *r, FILE *out, int outgoing, FILE *captured)
{
	struct tpacket_block_desc *b;

	while ((b = ring_block(r))) {
		struct tpacket3_hdr *h;
		unsigned int i;

		h = (void *)((uint8_t *)b + b->hdr.bh1.offset_to_first_pkt);
		for (i = 0; i < b->hdr.bh1.num_pkts; i++) {
			struct sockaddr_ll *sll =
				(void *)((uint8_t *)h +
					 TPACKET_ALIGN(sizeof(*h)));

			if (captured)
				capture(captured, h);
			if ((sll->sll_pkttype == PACKET_OUTGOING) == outgoing)
				sight(out, outgoing,
				      h->tp_sec * 1000000000ULL + h->tp_nsec,
				      (uint8_t *)h + h->tp_mac, h->tp_snaplen,
				      h->tp_len);
			h = (void *)((uint8_t *)h + h->tp_next_offset);
		}
		b->hdr.bh1.block_status = TP_STATUS_KERNEL;
		r->block = (r->block + 1) % BLOCKS;
	}
}

int main(int argc, char **argv)
{
	struct ring in = {}, out_ring = {};
	struct tpacket_stats_v3 stats;
	socklen_t len = sizeof(stats);
	unsigned int dropped = 0;
	FILE *out, *captured;

	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: delaymeter IN-DEV OUT-DEV A.B FILE [CAPTURE]\n"
			"Measures IPv4 packets from A.B.0.0/16. CAPTURE gets the first 5 s of OUT-DEV.\n");
		return 2;
	}
	net_prefix = strtoul(argv[3], NULL, 10) << 24;
	if (!strchr(argv[3], '.')) {
		fprintf(stderr, "delaymeter: '%s' is not A.B\n", argv[3]);
		return 2;
	}
	net_prefix |= strtoul(strchr(argv[3], '.') + 1, NULL, 10) << 16;
	out = fopen(argv[4], "wb");
	if (!out)
		die(argv[4]);
	captured = argc == 6 ? capture_open(argv[5]) : NULL;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	ring_open(&in, argv[1]);
	ring_open(&out_ring, argv[2]);
	puts("ready");
	fflush(stdout);

	while (!stop) {
		struct pollfd fds[2] = {
			{ .fd = in.fd, .events = POLLIN },
			{ .fd = out_ring.fd, .events = POLLIN },
		};

		poll(fds, 2, 200);
		ring_drain(&in, out, 0, NULL);
		ring_drain(&out_ring, out, 1, captured);
	}
	usleep(200000);
	ring_drain(&in, out, 0, NULL);
	ring_drain(&out_ring, out, 1, captured);
	if (fclose(out) || (captured && fclose(captured)))
		die("close");
	if (!getsockopt(in.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		dropped += stats.tp_drops;
	len = sizeof(stats);
	if (!getsockopt(out_ring.fd, SOL_PACKET, PACKET_STATISTICS, &stats,
			&len))
		dropped += stats.tp_drops;
	if (dropped)
		fprintf(stderr, "delaymeter: the kernel had no room for %u packets\n",
			dropped);
	return dropped ? 3 : 0;
}
