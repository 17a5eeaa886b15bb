// SPDX-License-Identifier: GPL-2.0-only
/*
 * traffic - constant-rate UDP streams between network namespaces, and what
 * became of every packet: lost or not, its ECN codepoint and its delay.
 *
 * One process sends and receives all streams, so that both ends share a clock
 * and the result is one account.  Packets are sent at absolute times; the kernel
 * stamps them on arrival, so that it does not matter when they are read.
 *
 * usage: traffic MILLISECONDS STREAM...
 * A stream is key=value,...; see parse_stream() for the keys.  The result is
 * JSON on stdout.  See lib.py for the callers' side.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define NSEC_PER_SEC	1000000000LL
#define STREAMS_MAX	32
#define FLOWS_MAX	4096
#define SIZE_MAX_BYTES	65000
#define BATCH		64
#define READ_EVERY_NS	100000000LL
#define READ_EVERY_SENT	1000
#define LINGER_EVERY_NS	10000000LL
#define UML_TICK_NS	256
#define LOST		UINT32_MAX

/* What is in each packet. */
struct payload {
	uint64_t number;
	int64_t sent_ns;	/* CLOCK_REALTIME, as the kernel's stamps */
};

/* What is known of each packet; also the format of trace files. */
struct record {
	int64_t sent_ns;	/* since the run began */
	uint32_t delay_ns;	/* LOST if it did not arrive */
	uint8_t tos;		/* as it arrived */
	uint8_t copies;
	uint16_t order;		/* 1: a later packet of its flow arrived before it */
};

struct stream {
	char name[32];
	char from[64], to[64], dst[64], trace[128];
	int port, tos, size, burst, gso, jitter, flows, turn;
	unsigned int priority;
	double pps, bps;
	int64_t start_ns, stop_ns, warmup_ns;
	uint64_t count;

	int payload_bytes;
	bool v6;
	int *out, in;
	uint64_t *tops;		/* of each flow: its highest number that arrived */
	double interval_ns;
	int64_t next_ns;
	uint64_t sent, failed, highest;
	struct record *records;
	uint64_t room;
	uint32_t lcg;
};

static struct stream streams[STREAMS_MAX];
static int stream_count;
static int64_t begin_ns, end_ns, realtime_offset_ns;
/* The tick of a clock that only sleeping moves, else 0: see find_tick(). */
static int64_t tick_ns;

__attribute__((noreturn, format(printf, 1, 2)))
static void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "traffic: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void parse_stream(struct stream *s, char *text)
{
	char *item, *value, *rest = text;

	s->port = 5000 + stream_count;
	s->size = 1000;
	s->burst = 1;
	s->flows = 1;
	s->turn = 1;
	s->stop_ns = INT64_MAX;
	s->count = UINT64_MAX;
	s->lcg = 12345 + stream_count;
	snprintf(s->name, sizeof(s->name), "%d", stream_count);
	while ((item = strsep(&rest, ","))) {
		value = strchr(item, '=');
		if (!value)
			die("'%s' is not key=value", item);
		*value++ = 0;
#define TEXT(_key) if (!strcmp(item, #_key)) {				\
			if (strlen(value) >= sizeof(s->_key))		\
				die("%s is too long", #_key);		\
			strcpy(s->_key, value);				\
			continue;					\
		}
#define NUMBER(_key, _member, _scale) if (!strcmp(item, _key)) {	\
			s->_member = strtod(value, NULL) * (_scale);	\
			continue;					\
		}
		TEXT(name)		/* in the result */
		TEXT(from)		/* namespace of the sender */
		TEXT(to)		/* namespace of the receiver */
		TEXT(dst)		/* receiver's address, IPv4 or IPv6 */
		TEXT(trace)		/* file for the records of all packets */
		NUMBER("port", port, 1)
		NUMBER("tos", tos, 1)	/* the whole byte */
		NUMBER("priority", priority, 1)
		NUMBER("size", size, 1)	/* bytes with Ethernet header */
		NUMBER("pps", pps, 1)	/* packets a second, or: */
		NUMBER("bps", bps, 1)	/* bits a second, of size */
		NUMBER("burst", burst, 1)	/* packets sent at once */
		NUMBER("gso", gso, 1)	/* segments in one send */
		NUMBER("jitter", jitter, 1)	/* 1: within one interval */
		NUMBER("flows", flows, 1)	/* source ports, in turns */
		NUMBER("turn", turn, 1)	/* packets of a flow in its turn */
		NUMBER("start", start_ns, 1e6)	/* ms */
		NUMBER("stop", stop_ns, 1e6)	/* ms */
		NUMBER("warmup", warmup_ns, 1e6)	/* ms, not counted */
		NUMBER("count", count, 1)	/* packets at most */
		die("unknown key '%s'", item);
	}
	s->v6 = strchr(s->dst, ':');
	s->payload_bytes = s->size - 14 - (s->v6 ? 40 : 20) - 8;
	if (s->payload_bytes < (int)sizeof(struct payload) ||
	    s->size > SIZE_MAX_BYTES)
		die("size %d is out of range", s->size);
	if (s->bps > 0)
		s->pps = s->bps / 8 / s->size;
	if (s->pps <= 0 || s->burst < 1)
		die("stream %s has no rate", s->name);
	if (s->flows < 1 || s->flows > FLOWS_MAX || s->turn < 1 ||
	    (s->gso && s->flows > 1))
		die("flows %d, turn %d, gso %d do not fit", s->flows, s->turn,
		    s->gso);
	if (s->gso && (long)s->gso * s->payload_bytes > 65000)
		die("gso %d is too much", s->gso);
	if (s->gso)
		s->burst = s->gso;
	s->interval_ns = NSEC_PER_SEC / s->pps;
}

static void set_option(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		die("setsockopt %d/%d: %s", level, option, strerror(errno));
}

static int socket_in(const char *netns, bool v6)
{
	char path[128];
	int fd, ns;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		die("namespace %s: %s", netns, strerror(errno));
	close(ns);
	fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket: %s", strerror(errno));
	return fd;
}

/* The flow of a packet. */
static int flow_of(const struct stream *s, uint64_t number)
{
	return number / s->turn % s->flows;
}

static int open_out(const struct stream *s)
{
	int fd = socket_in(s->from, s->v6);

	set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20);
	if (s->v6)
		set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, s->tos);
	else
		set_option(fd, IPPROTO_IP, IP_TOS, s->tos);
	/* After the TOS, which sets the priority too. */
	set_option(fd, SOL_SOCKET, SO_PRIORITY, s->priority);
	if (s->gso)
		set_option(fd, IPPROTO_UDP, UDP_SEGMENT, s->payload_bytes);
	return fd;
}

static void open_stream(struct stream *s)
{
	int flow;
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr = {};
	socklen_t len;

	if (s->v6) {
		addr.v6.sin6_family = AF_INET6;
		addr.v6.sin6_port = htons(s->port);
		if (inet_pton(AF_INET6, s->dst, &addr.v6.sin6_addr) != 1)
			die("address '%s'", s->dst);
		len = sizeof(addr.v6);
	} else {
		addr.v4.sin_family = AF_INET;
		addr.v4.sin_port = htons(s->port);
		if (inet_pton(AF_INET, s->dst, &addr.v4.sin_addr) != 1)
			die("address '%s'", s->dst);
		len = sizeof(addr.v4);
	}

	s->in = socket_in(s->to, s->v6);
	set_option(s->in, SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20);
	set_option(s->in, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	if (s->v6)
		set_option(s->in, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	else
		set_option(s->in, IPPROTO_IP, IP_RECVTOS, 1);
	if (bind(s->in, &addr.sa, len))
		die("bind to %s: %s", s->dst, strerror(errno));

	s->out = calloc(s->flows, sizeof(*s->out));
	s->tops = calloc(s->flows, sizeof(*s->tops));
	if (!s->out || !s->tops)
		die("no memory for %d flows", s->flows);
	for (flow = 0; flow < s->flows; flow++) {
		s->out[flow] = open_out(s);
		if (connect(s->out[flow], &addr.sa, len))
			die("connect to %s: %s", s->dst, strerror(errno));
	}
}

static void schedule(struct stream *s)
{
	double at = s->sent;

	if (s->jitter) {
		s->lcg = s->lcg * 1664525U + 1013904223U;
		at += (s->lcg >> 8) / 16777216.0;
	}
	s->next_ns = begin_ns + s->start_ns + at * s->interval_ns;
	if (s->sent >= s->count || s->next_ns >= end_ns ||
	    s->next_ns - begin_ns >= s->stop_ns)
		s->next_ns = INT64_MAX;
}

/* Return: time of the last packet.  now: the time if there are ticks */
static int64_t send_burst(struct stream *s, int64_t now)
{
	static char buffer[1 << 16];
	static int64_t last_ns;
	struct payload *p;
	int i, n = s->burst, out = -1;

	if (s->sent + n > s->room) {
		s->room = 2 * (s->sent + n) + 4096;
		s->records = realloc(s->records, s->room * sizeof(*s->records));
		if (!s->records)
			die("out of memory");
	}
	for (i = 0; i < n; i++) {
		if (!tick_ns)
			now = clock_ns(CLOCK_REALTIME) - realtime_offset_ns;
		out = s->out[flow_of(s, s->sent)];
		p = (struct payload *)(buffer + (s->gso ? i * s->payload_bytes : 0));
		p->number = s->sent;
		/* No two packets have one time, so that it tells their order. */
		last_ns = now > last_ns ? now : last_ns + 1;
		p->sent_ns = now + realtime_offset_ns;
		s->records[s->sent++] = (struct record) {
			.sent_ns = last_ns - begin_ns,
			.delay_ns = LOST,
		};
		if (!s->gso && send(out, buffer, s->payload_bytes, 0) < 0)
			s->failed++;
	}
	if (s->gso && send(out, buffer, n * s->payload_bytes, 0) < 0)
		s->failed += n;
	schedule(s);
	return now;
}

static void take(struct stream *s, struct msghdr *msg, const struct payload *p)
{
	struct cmsghdr *c;
	int64_t stamp = 0;
	struct record *r;
	uint64_t *top;
	int tos = -1;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			stamp = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			tos = *(uint8_t *)CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 &&
			   c->cmsg_type == IPV6_TCLASS) {
			memcpy(&tos, CMSG_DATA(c), sizeof(tos));
		}
	}
	if (tos < 0 || !stamp || p->number >= s->sent)
		die("stream %s: a packet that is none of ours", s->name);
	r = &s->records[p->number];
	if (r->copies++)
		return;
	r->delay_ns = stamp - p->sent_ns;
	r->tos = tos;
	top = &s->tops[flow_of(s, p->number)];
	r->order = p->number < *top;
	if (p->number > *top)
		*top = p->number;
	if (p->number > s->highest)
		s->highest = p->number;
}

static void receive(struct stream *s)
{
	static struct payload payloads[BATCH];
	static char control[BATCH][128];
	static struct mmsghdr msgs[BATCH];
	static struct iovec iov[BATCH];
	int i, n;

	do {
		for (i = 0; i < BATCH; i++) {
			iov[i] = (struct iovec) { &payloads[i], sizeof(payloads[i]) };
			msgs[i].msg_hdr = (struct msghdr) {
				.msg_iov = &iov[i],
				.msg_iovlen = 1,
				.msg_control = control[i],
				.msg_controllen = sizeof(control[i]),
			};
		}
		n = recvmmsg(s->in, msgs, BATCH, MSG_DONTWAIT, NULL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			die("recvmmsg: %s", strerror(errno));
		for (i = 0; i < n; i++)
			take(s, &msgs[i].msg_hdr, &payloads[i]);
	} while (n == BATCH);
}

static void receive_all(void)
{
	int i;

	for (i = 0; i < stream_count; i++)
		receive(&streams[i]);
}

static void sleep_until(int64_t ns)
{
	struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* In virtual time user-mode Linux moves its clock by one tick for each reading,
 * and not otherwise while programs compute.  A reading is a system call there,
 * which costs as much as to send a packet.
 */
static int64_t find_tick(void)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	int i;

	for (i = 1; i <= 100; i++)
		if (clock_ns(CLOCK_MONOTONIC) != now + i * UML_TICK_NS)
			return 0;
	return UML_TICK_NS;
}

/* Sleep; with ticks, return the time, which was now before.
 * A sleep ends with the first tick at its time or later.  A short one can last
 * longer, as the kernel's timer has a minimum of 500 ns.
 */
static int64_t wake_at(int64_t now, int64_t ns)
{
	sleep_until(ns);
	if (!tick_ns || ns <= now)
		return now;
	if (ns < now + 1000)
		return clock_ns(CLOCK_MONOTONIC);
	return now + (ns - now + tick_ns - 1) / tick_ns * tick_ns;
}

/* Return: the time, which must be now if there are ticks. */
static int64_t check_clock(int64_t now)
{
	int64_t clock = clock_ns(CLOCK_MONOTONIC);

	if (tick_ns && (clock < now || clock > now + 1000))
		die("the clock is %ld ns off", clock - now);
	return clock;
}

/* Wait for what is still in the queue: until nothing came for a second. */
static void linger(void)
{
	int64_t quiet_ns = 0;
	int i;

	for (; quiet_ns < NSEC_PER_SEC; quiet_ns += LINGER_EVERY_NS) {
		uint64_t before = 0, after = 0;

		for (i = 0; i < stream_count; i++)
			before += streams[i].highest;
		receive_all();
		for (i = 0; i < stream_count; i++)
			after += streams[i].highest;
		if (after != before)
			quiet_ns = 0;
		sleep_until(clock_ns(CLOCK_MONOTONIC) + LINGER_EVERY_NS);
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The account of what was sent after the warm-up. */
static void report(const struct stream *s, bool last)
{
	uint64_t sent = 0, received = 0, duplicates = 0, disorder = 0, dscp = 0;
	uint64_t ecn[4] = {}, i;
	uint32_t *delays = malloc((s->sent + 1) * sizeof(*delays));
	double sum = 0;

	if (!delays)
		die("no memory for the delays of %s", s->name);
	for (i = 0; i < s->sent; i++) {
		const struct record *r = &s->records[i];

		if (r->sent_ns < s->warmup_ns)
			continue;
		sent++;
		if (!r->copies)
			continue;
		delays[received++] = r->delay_ns;
		sum += r->delay_ns;
		ecn[r->tos & 3]++;
		duplicates += r->copies - 1;
		disorder += r->order;
		dscp += (r->tos ^ s->tos) >> 2 ? 1 : 0;
	}
	qsort(delays, received, sizeof(*delays), compare);
	printf("{\"name\":\"%s\",\"sent\":%lu,\"received\":%lu,\"lost\":%lu,"
	       "\"failed\":%lu,\"duplicates\":%lu,\"disorder\":%lu,"
	       "\"dscp_changed\":%lu,\"sent_ever\":%lu,\"ecn\":[%lu,%lu,%lu,%lu]",
	       s->name, sent, received, sent - received, s->failed, duplicates,
	       disorder, dscp, s->sent, ecn[0], ecn[1], ecn[2], ecn[3]);
	if (received)
		printf(",\"delay_us\":{\"min\":%.3f,\"mean\":%.3f,\"p50\":%.3f,"
		       "\"p99\":%.3f,\"max\":%.3f}", delays[0] / 1e3,
		       sum / received / 1e3, delays[(received - 1) / 2] / 1e3,
		       delays[(received - 1) * 99 / 100] / 1e3,
		       delays[received - 1] / 1e3);
	printf("}%s\n", last ? "" : ",");
	free(delays);

	if (s->trace[0]) {
		FILE *file = fopen(s->trace, "wb");

		if (!file || fwrite(s->records, sizeof(*s->records), s->sent,
				    file) != s->sent || fclose(file))
			die("%s: %s", s->trace, strerror(errno));
	}
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 10 };
	struct rlimit files = { 2 * FLOWS_MAX, 2 * FLOWS_MAX };
	int64_t now, read_ns;
	int i, count, sent = 0;

	if (argc < 3 || argc - 2 > STREAMS_MAX)
		die("usage: traffic MILLISECONDS STREAM...");
	setrlimit(RLIMIT_NOFILE, &files);
	count = argc - 2;
	for (stream_count = 0; stream_count < count; stream_count++)
		parse_stream(&streams[stream_count], argv[2 + stream_count]);
	for (i = 0; i < count; i++)
		open_stream(&streams[i]);

	sched_setscheduler(0, SCHED_FIFO, &param);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	tick_ns = find_tick();
	realtime_offset_ns = clock_ns(CLOCK_REALTIME) + tick_ns;
	now = clock_ns(CLOCK_MONOTONIC);
	realtime_offset_ns -= now;
	begin_ns = now + 2000000;
	end_ns = begin_ns + strtod(argv[1], NULL) * 1000000;
	read_ns = begin_ns;
	for (i = 0; i < count; i++)
		schedule(&streams[i]);

	for (;;) {
		struct stream *first = &streams[0];

		for (i = 1; i < count; i++)
			if (streams[i].next_ns < first->next_ns)
				first = &streams[i];
		if (first->next_ns == INT64_MAX)
			break;
		if (now >= read_ns || sent >= READ_EVERY_SENT) {
			now = check_clock(now);
			receive_all();
			read_ns = now + READ_EVERY_NS;
			sent = 0;
		}
		now = send_burst(first, wake_at(now, first->next_ns));
		sent += first->burst;
	}
	sleep_until(end_ns);
	linger();

	printf("[");
	for (i = 0; i < count; i++)
		report(&streams[i], i == count - 1);
	printf("]\n");
	return 0;
}
