// SPDX-License-Identifier: GPL-2.0-only
/*
 * netlink - fuzz the netlink interface of dualpi2, with traffic on it.
 *
 * It makes messages by the grammar of the interface, good and bad, and mutates
 * them; it knows from the rules, written down here a second time, which are good,
 * keeps a model of every qdisc it made, and compares each dump with the model:
 * what was accepted is shown, what was refused left the options byte for byte as
 * they were, the counters fit together, and the classes show those of the qdisc.
 * It listens to the reports of overload.  With the map of dualpi2_trace_pc.ko
 * (trace_pc/) it keeps the sequences that reached a new basic block, and draws on
 * them.
 *
 * It is not a test of other qdiscs, though they are parents here, nor of what an
 * option does to packets.  It makes netlink messages by hand: half of the point
 * is what a library would not send.
 *
 *   cc -std=gnu11 -O2 -Wall -Wextra -static -Iinclude/uapi -o build/fuzz/netlink \
 *	selftests/fuzz/netlink.c
 *   build/fuzz/netlink --messages 1000000 --seed 1	as root, in a test machine
 *
 * --messages N	end after so many messages that were answered; 0: only --corpus
 * --seed S	of all random numbers
 * --corpus DIR	read the sequences there first, add what reaches new blocks
 * --state FILE	go on where the run before ended; seed and count are kept there
 * --epoch E	begin with this epoch (they are independent of each other, but
 *		for what the corpus grows)
 * --log FILE	write down each batch before it is sent, to be had after a panic
 * --replay FILE run one sequence; fails as it did
 * --fail FILE	where a sequence that failed goes [fuzz-failure.txt]
 * --shrink N	so many trials to shorten it at most [600]
 * --max-new N	so many new files in the corpus at most [150]
 *
 * Exit: 0 all good, 1 a fault, 2 it cannot run here.
 *
 * A sequence is a text of steps, on the devices that setup() makes anew:
 *   nl TYPE FLAGS HEX		a netlink message without its header; HEX may be "-"
 *   get TYPE FLAGS HEX		the same, a question that the fuzzer put in to compare
 *   tx DEV PRIORITY ECN LENGTH GSO COUNT	frames from a packet socket; GSO is
 *				0, or the size of a segment: TCP, or with 1 added to
 *				2^16 UDP
 *   wait US			let time pass
 *   # comment
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/dualpi2.h>
#include <linux/gen_stats.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/virtio_net.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BATCH		64	/* messages in one system call */
#define EPOCH		4096	/* messages until all devices are made anew */
#define MSG_MAX		70000
#define REPLY_MAX	8192	/* a dump's or an answer's piece is at most a page */
#define PROGRESS_EVERY	50000
#define STATE_EVERY	20000
#define IFINDEX		1000	/* of the first device */
#define GROUP		77	/* of all of them, to delete them at once */
#define FRAME_HDR	14	/* link-layer header of a dummy device */

#define LICENCE		"# SPDX%cLicense-Identifier: GPL-2.0-only\n"
#define DEBUGFS		"/sys/kernel/debug/dualpi2_trace_pc/"

/* ---- random numbers: splitmix64 ---- */

static uint64_t rng_state;

static uint64_t rnd64(void)
{
	uint64_t z = (rng_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint32_t rnd(uint32_t n)
{
	return n ? (rnd64() >> 32) * n >> 32 : 0;
}

static bool chance(uint32_t permille)
{
	return rnd(1000) < permille;
}

#define PICK(array)	((array)[rnd(ARRAY_SIZE(array))])

/* ---- faults ---- */

static jmp_buf on_fault;
static char fault_text[16384];

static void __attribute__((noreturn, format(printf, 1, 2))) fault(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault_text, sizeof(fault_text), fmt, ap);
	va_end(ap);
	longjmp(on_fault, 1);
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "netlink: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(2);
}

/* ---- what is known of the interface ---- */

#define TIME_MAX	4294967U	/* us in 32 bits of ns */

struct knob {
	uint8_t ext;
	uint8_t type;
	uint8_t size;
	int64_t min;		/* below 0: the number is signed */
	uint64_t max, def;
};

enum {
	K_LIMIT, K_MEMORY, K_TARGET, K_TUPDATE, K_ALPHA, K_BETA, K_STEP_PKTS, K_STEP_US,
	K_MIN_QLEN, K_COUPLING, K_OVERLOAD, K_EARLY, K_PROTECTION, K_MASK, K_SPLIT,
	K_L4S, K_RAMP, K_SIGNAL, K_P_CMAX, K_HIST_C, K_HIST_L, K_REPORT,
	K_BANDWIDTH, K_FRAMING, K_OVERHEAD, K_MPU, K_INGRESS, K_NQB, K_BURST_MAX, K_BYPASS,
	KNOBS
};

static const struct knob knobs[KNOBS] = {
	[K_LIMIT]	= { 0, TCA_DUALPI2_LIMIT, 4, 1, UINT32_MAX, 10000 },
	[K_MEMORY]	= { 0, TCA_DUALPI2_MEMORY_LIMIT, 4, 1, UINT32_MAX, 0 },
	[K_TARGET]	= { 0, TCA_DUALPI2_TARGET, 4, 1, TIME_MAX, 15000 },
	[K_TUPDATE]	= { 0, TCA_DUALPI2_TUPDATE, 4, 100, TIME_MAX, 16000 },
	[K_ALPHA]	= { 0, TCA_DUALPI2_ALPHA, 4, 1, INT32_MAX, 41 },
	[K_BETA]	= { 0, TCA_DUALPI2_BETA, 4, 1, INT32_MAX, 819 },
	[K_STEP_PKTS]	= { 0, TCA_DUALPI2_STEP_THRESH_PKTS, 4, 1, UINT32_MAX - 1, 0 },
	[K_STEP_US]	= { 0, TCA_DUALPI2_STEP_THRESH_US, 4, 0, TIME_MAX, 1000 },
	[K_MIN_QLEN]	= { 0, TCA_DUALPI2_MIN_QLEN_STEP, 4, 0, UINT32_MAX, 0 },
	[K_COUPLING]	= { 0, TCA_DUALPI2_COUPLING, 1, 1, 255, 2 },
	[K_OVERLOAD]	= { 0, TCA_DUALPI2_DROP_OVERLOAD, 1, 0, 1, 1 },
	[K_EARLY]	= { 0, TCA_DUALPI2_DROP_EARLY, 1, 0, 1, 0 },
	[K_PROTECTION]	= { 0, TCA_DUALPI2_C_PROTECTION, 1, 0, 100, 10 },
	[K_MASK]	= { 0, TCA_DUALPI2_ECN_MASK, 1, 1, 3, 1 },
	[K_SPLIT]	= { 0, TCA_DUALPI2_SPLIT_GSO, 1, 0, 1, 1 },
	[K_L4S]		= { 1, TCA_DUALPI2_EXT_L4S, 1, 0, 1, 1 },
	[K_RAMP]	= { 1, TCA_DUALPI2_EXT_RAMP_US, 4, 0, TIME_MAX, 0 },
	[K_SIGNAL]	= { 1, TCA_DUALPI2_EXT_SIGNAL, 1, 0, 1, 0 },
	[K_P_CMAX]	= { 1, TCA_DUALPI2_EXT_P_CMAX, 1, 0, 100, 0 },
	[K_HIST_C]	= { 1, TCA_DUALPI2_EXT_HIST_C, 4, 1, 16384, 64 },
	[K_HIST_L]	= { 1, TCA_DUALPI2_EXT_HIST_L, 4, 1, 16384, 8 },
	[K_REPORT]	= { 1, TCA_DUALPI2_EXT_REPORT, 4, 0, UINT32_MAX, 1000000 },
	[K_BANDWIDTH]	= { 1, TCA_DUALPI2_EXT_BANDWIDTH, 8, 0, 125000000000, 0 },
	[K_FRAMING]	= { 1, TCA_DUALPI2_EXT_FRAMING, 1, 0, 3, 0 },
	[K_OVERHEAD]	= { 1, TCA_DUALPI2_EXT_OVERHEAD, 4, -64, 256, 0 },
	[K_MPU]		= { 1, TCA_DUALPI2_EXT_MPU, 4, 0, 256, 0 },
	[K_INGRESS]	= { 1, TCA_DUALPI2_EXT_INGRESS, 1, 0, 1, 0 },
	[K_NQB]		= { 1, TCA_DUALPI2_EXT_NQB, 8, 0, UINT64_MAX, 1ULL << 45 },
	[K_BURST_MAX]	= { 1, TCA_DUALPI2_EXT_BURST_MAX, 4, 0, 100000, 0 },
	[K_BYPASS]	= { 1, TCA_DUALPI2_EXT_BYPASS, 1, 0, 1, 0 },
};

/* Values from 1 up to this one, but not itself, are refused, too. */
static uint32_t hole(const struct knob *k)
{
	return k == &knobs[K_REPORT] ? 100000 : k == &knobs[K_BANDWIDTH] ? 1000 : 0;
}

static bool in_range(const struct knob *k, uint64_t value)
{
	if (k->min < 0)
		return (int32_t)value >= k->min && (int32_t)value <= (int64_t)k->max;
	return value >= (uint64_t)k->min && value <= k->max && !(value && value < hole(k));
}

struct config {
	uint64_t v[KNOBS];
	bool limit_is_set, memory_is_set, ramp_is_set;
};

static struct config defaults(void)
{
	struct config c = {};
	int k;

	for (k = 0; k < KNOBS; k++)
		c.v[k] = knobs[k].def;
	return c;
}

static uint16_t get16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t get64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* What a nest of options makes of a configuration; false: it is refused. */
static bool predict_nest(struct config *c, const uint8_t *p, int len, int ext)
{
	const uint8_t *inner = NULL;
	bool given[KNOBS] = {};
	int inner_len = 0;

	while (len >= NLA_HDRLEN) {
		int size = get16(p), type = get16(p + 2) & NLA_TYPE_MASK, k;
		uint64_t value;

		if (size < NLA_HDRLEN || size > len)
			return false;
		if (!ext && type == TCA_DUALPI2_EXT) {
			if (inner)
				return false;
			inner = p + NLA_HDRLEN;
			inner_len = size - NLA_HDRLEN;
			goto next;
		}
		for (k = 0; k < KNOBS; k++)
			if (knobs[k].ext == ext && knobs[k].type == type)
				break;
		if (k == KNOBS || given[k] || size - NLA_HDRLEN != knobs[k].size)
			return false;
		given[k] = true;
		value = knobs[k].size == 1 ? p[NLA_HDRLEN] :
			knobs[k].size == 8 ? get64(p + NLA_HDRLEN) : get32(p + NLA_HDRLEN);
		if (!in_range(&knobs[k], value))
			return false;
		c->v[k] = value;
next:
		p += NLA_ALIGN(size);
		len -= NLA_ALIGN(size);
	}
	if (len > 0 || (given[K_STEP_PKTS] && given[K_STEP_US]))
		return false;
	if (given[K_STEP_US])
		c->v[K_STEP_PKTS] = 0;
	c->limit_is_set |= given[K_LIMIT];
	c->memory_is_set |= given[K_MEMORY];
	c->ramp_is_set |= given[K_RAMP];
	/* Lengths that are given count; of the kernel's own none is left. */
	if ((given[K_OVERHEAD] || given[K_MPU]) && !given[K_FRAMING] && !c->v[K_FRAMING])
		c->v[K_FRAMING] = TC_DUALPI2_FRAMING_NOATM;
	if (!c->v[K_FRAMING]) {
		c->v[K_OVERHEAD] = 0;
		c->v[K_MPU] = 0;
	}
	return !inner || predict_nest(c, inner, inner_len, 1);
}

static bool predict(struct config *c, const uint8_t *p, int len)
{
	struct config try = *c;

	if (!predict_nest(&try, p, len, 0) || (try.v[K_BYPASS] && try.v[K_BANDWIDTH]))
		return false;
	*c = try;
	return true;
}

static uint8_t *put_nla(uint8_t *p, uint16_t type, const void *data, uint16_t len)
{
	uint16_t size = NLA_HDRLEN + len;

	memcpy(p, &size, 2);
	memcpy(p + 2, &type, 2);
	if (len)
		memcpy(p + NLA_HDRLEN, data, len);
	memset(p + size, 0, NLA_ALIGN(size) - size);
	return p + NLA_ALIGN(size);
}

/* Bytes that a shaper sends in a time; that of one byte is rounded to 2^-20 ns. */
static uint64_t bytes_of(uint64_t rate, uint64_t ns)
{
	return (ns << 20) / (((1000000000ULL << 20) + rate / 2) / rate);
}

/* Bytes in the limits of a shaper: 250 ms of its rate, or 16 MiB if that is less, or
 * twice the target if that is more.
 */
static uint64_t room_of(const struct config *c)
{
	uint64_t room = bytes_of(c->v[K_BANDWIDTH], 250000000);
	uint64_t twice = bytes_of(c->v[K_BANDWIDTH], 2000ULL * c->v[K_TARGET]);

	if (room > 16 << 20)
		room = 16 << 20;
	if (room < twice)
		room = twice;
	return room;
}

/* Without a shaper a rate that is seen may raise the limit of packets. */
static bool may_be_raised(const struct config *c)
{
	return !c->limit_is_set && !c->v[K_BANDWIDTH];
}

/* The least limit of packets. */
static uint64_t limit_of(const struct config *c)
{
	uint64_t limit;

	if (c->limit_is_set || !c->v[K_BANDWIDTH])
		return c->v[K_LIMIT];
	limit = room_of(c) / 64;
	return limit < 1000 ? 1000 : limit > UINT32_MAX ? UINT32_MAX : limit;
}

/* And that of memory, for frames of so many bytes. */
static uint64_t memory_of(const struct config *c, uint64_t frame)
{
	/* 2^32 - 2 times 2^32 - 1 fits. */
	uint64_t memory = 2 * frame * c->v[K_LIMIT];

	if (c->memory_is_set)
		return c->v[K_MEMORY];
	if (c->v[K_BANDWIDTH] && !c->limit_is_set) {
		memory = 2 * room_of(c);
		memory = memory < 512 * frame ? 512 * frame : memory;
	}
	return memory > UINT32_MAX ? UINT32_MAX : memory;
}

/* The options as a dump shows them for an MTU.  Limits that follow a rate that was
 * seen are as shown, if that is more than by default.
 */
static int encode(const struct config *c, uint32_t mtu, const uint8_t *shown, int len, uint8_t *buf)
{
	uint64_t frame = (uint64_t)mtu + FRAME_HDR;
	uint8_t *p = buf, *ext = NULL;
	int k;

	frame = frame < 60 ? 60 : frame > INT32_MAX ? INT32_MAX : frame;
	for (k = 0; k < KNOBS; k++) {
		uint64_t value = c->v[k];

		if (knobs[k].ext && !ext) {
			ext = p;
			p += NLA_HDRLEN;
		}
		if (k == (c->v[K_STEP_PKTS] ? K_STEP_US : K_STEP_PKTS))
			continue;
		if (k == K_LIMIT)
			value = limit_of(c);
		if (k == K_MEMORY)
			value = memory_of(c, frame);
		/* Both come first, with a header of 4 bytes each. */
		if (may_be_raised(c) && len >= 16 &&
		    (k == K_LIMIT || (k == K_MEMORY && !c->memory_is_set)) &&
		    get32(shown + (k == K_LIMIT ? 4 : 12)) > value)
			value = get32(shown + (k == K_LIMIT ? 4 : 12));
		if (k == K_RAMP && !c->ramp_is_set)
			value = c->v[K_STEP_US] * 40 / 100;
		p = put_nla(p, knobs[k].type, &value, knobs[k].size);
	}
	*(uint16_t *)ext = p - ext;
	*(uint16_t *)(ext + 2) = TCA_DUALPI2_EXT | NLA_F_NESTED;
	return p - buf;
}

/* ---- steps, and the log of an epoch ---- */

enum step_kind { STEP_NL, STEP_TX, STEP_WAIT };

struct step {
	uint8_t kind;
	bool oracle;		/* a question of ours, not a message of the fuzz */
	uint16_t type, flags;	/* STEP_NL */
	uint32_t len;
	size_t at;		/* in the arena */
	uint32_t arg[6];	/* STEP_TX, STEP_WAIT */
};

struct sequence {
	struct step *steps;
	size_t count, room;
	uint8_t *bytes;
	size_t used, space;
};

static struct step *add_step(struct sequence *s, enum step_kind kind)
{
	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->steps = realloc(s->steps, s->room * sizeof(*s->steps));
		if (!s->steps)
			die("no memory");
	}
	s->steps[s->count] = (struct step) { .kind = kind };
	return &s->steps[s->count++];
}

static struct step *add_nl(struct sequence *s, uint16_t type, uint16_t flags,
			   const void *data, uint32_t len)
{
	struct step *step = add_step(s, STEP_NL);

	if (!s->bytes || s->used + len > s->space) {
		s->space = 2 * s->space + len + 65536;
		s->bytes = realloc(s->bytes, s->space);
		if (!s->bytes)
			die("no memory");
	}
	if (len)
		memcpy(s->bytes + s->used, data, len);
	step->type = type;
	step->flags = flags;
	step->at = s->used;
	step->len = len;
	s->used += len;
	return step;
}

static void add_copy(struct sequence *to, const struct sequence *from, size_t n)
{
	const struct step *step = &from->steps[n];
	struct step *copy;

	if (step->kind == STEP_NL) {
		copy = add_nl(to, step->type, step->flags, from->bytes + step->at, step->len);
		copy->oracle = step->oracle;
	} else {
		copy = add_step(to, step->kind);
		memcpy(copy->arg, step->arg, sizeof(copy->arg));
	}
}

static void write_steps(FILE *file, const struct sequence *s, size_t from, size_t to)
{
	size_t n;
	uint32_t i;

	for (n = from; n < to; n++) {
		const struct step *step = &s->steps[n];

		if (step->kind == STEP_NL) {
			fprintf(file, "%s %u 0x%x ", step->oracle ? "get" : "nl", step->type,
				step->flags);
			for (i = 0; i < step->len; i++)
				fprintf(file, "%02x", s->bytes[step->at + i]);
			fprintf(file, step->len ? "\n" : "-\n");
		} else if (step->kind == STEP_TX) {
			fprintf(file, "tx %u 0x%x %u %u %u %u\n", step->arg[0], step->arg[1],
				step->arg[2], step->arg[3], step->arg[4], step->arg[5]);
		} else {
			fprintf(file, "wait %u\n", step->arg[0]);
		}
	}
}

static bool hex_byte(const char *text, uint8_t *byte)
{
	static const char digits[] = "0123456789abcdef";
	const char *high = *text ? strchr(digits, text[0]) : NULL;
	const char *low = high && text[1] ? strchr(digits, text[1]) : NULL;

	if (low)
		*byte = (high - digits) << 4 | (low - digits);
	return low;
}

static bool read_steps(const char *path, struct sequence *s)
{
	static char line[2 * MSG_MAX + 100];
	FILE *file = fopen(path, "r");

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		static uint8_t data[MSG_MAX];
		unsigned int a[6], type, flags;
		struct step *step;
		int at, len = 0;

		if (sscanf(line, "nl %u %x %n", &type, &flags, &at) == 2 ||
		    sscanf(line, "get %u %x %n", &type, &flags, &at) == 2) {
			while (len < MSG_MAX && hex_byte(line + at + 2 * len, &data[len]))
				len++;
			step = add_nl(s, type, flags, data, len);
			step->oracle = line[0] == 'g';
		} else if (sscanf(line, "tx %u %x %u %u %u %u", a, a + 1, a + 2, a + 3, a + 4,
				  a + 5) == 6) {
			memcpy(add_step(s, STEP_TX)->arg, a, sizeof(a));
		} else if (sscanf(line, "wait %u", a) == 1) {
			add_step(s, STEP_WAIT)->arg[0] = a[0];
		} else if (line[0] != '#' && line[0] != '\n') {
			die("%s: not a step: %.60s", path, line);
		}
	}
	fclose(file);
	return true;
}

/* ---- messages ---- */

struct msg {
	uint16_t type, flags;
	int len;
	uint8_t data[MSG_MAX];
};

static struct msg m;

static void msg_tc(uint16_t type, uint16_t flags, int ifindex, uint32_t handle, uint32_t parent,
		   uint32_t info)
{
	struct tcmsg tcm = {
		.tcm_ifindex = ifindex,
		.tcm_handle = handle,
		.tcm_parent = parent,
		.tcm_info = info,
	};

	m.type = type;
	m.flags = flags;
	m.len = sizeof(tcm);
	memcpy(m.data, &tcm, sizeof(tcm));
}

static void msg_link(uint16_t type, uint16_t flags, const struct ifinfomsg *ifi)
{
	m.type = type;
	m.flags = flags;
	m.len = sizeof(*ifi);
	memcpy(m.data, ifi, sizeof(*ifi));
}

static void attr(uint16_t type, const void *data, int len)
{
	if (m.len + NLA_HDRLEN + NLA_ALIGN(len) > MSG_MAX - 64)
		return;
	m.len = put_nla(m.data + m.len, type, data, len) - m.data;
}

static void attr_str(uint16_t type, const char *text)
{
	attr(type, text, strlen(text) + 1);
}

static void attr32(uint16_t type, uint32_t value)
{
	attr(type, &value, sizeof(value));
}

static int nest(uint16_t type)
{
	int at = m.len;

	attr(type, NULL, 0);
	return at;
}

static void nest_end(int at)
{
	*(uint16_t *)(m.data + at) = m.len - at;
}

/* ---- the model ---- */

enum slot_state { NONE, OTHER, DUALPI2, UNKNOWN };

#define MTUS	4

/* A place for a qdisc. */
struct slot {
	int dev;
	int up;			/* the slot of the parent, -1: it is the device */
	uint32_t clid;		/* what this place is called */
	bool any_minor;		/* tbf has one class and takes any name for it */
	bool leaf;		/* we put dualpi2 there */
	enum slot_state state;
	char kind[IFNAMSIZ];	/* OTHER */
	uint32_t handle;	/* 0: the kernel chose one, not seen yet */
	struct config cfg;	/* DUALPI2 */
	uint32_t mtus[MTUS];	/* that the memory limit may be computed from */
	int n_mtus;		/* 0: too many of them */
	bool trimmed;		/* nothing came in since the last change */
	bool was_bypass;	/* DUALPI2: once, it may be off again */
	uint32_t dump;		/* the last dump that showed it, and then: */
	uint32_t qlen, backlog;
	uint8_t nest[2][1280];	/* DUALPI2: statistics of C and L */
	int nest_len[2];
};

struct device {
	const char *kind;	/* of the parent that has the classes, NULL: none */
	bool usable;
	uint32_t mtu;
	int first, count;	/* its slots */
};

enum { D_ROOT, D_TBF, D_HTB, D_HFSC, D_DRR, D_QFQ, D_ETS, D_PRIO, D_MQ, DEVICES };

static struct device devices[DEVICES] = {
	[D_TBF].kind = "tbf", [D_HTB].kind = "htb", [D_HFSC].kind = "hfsc", [D_DRR].kind = "drr",
	[D_QFQ].kind = "qfq", [D_ETS].kind = "ets", [D_PRIO].kind = "prio", [D_MQ].kind = "mq",
};

static struct slot slots[40];
static int n_slots;
static uint32_t this_dump = 1;
static bool just_dumped;	/* nothing has happened since the last dump */

/* Does time stand still while we do not wait, as in user-mode Linux?  Elsewhere
 * packets leave while a dump is made, so that what it takes from different places
 * need not fit together.
 */
static bool frozen;

static struct {
	uint64_t messages, accepted, refused, unsure, gets, dumps, dumped, frames;
	uint64_t classes, reports;
	uint64_t refused_ours;		/* by dualpi2 itself */
	uint64_t changes, creations;	/* of dualpi2, accepted */
} count;

static int add_slot(int dev, int up, uint32_t clid, bool leaf, bool any_minor)
{
	slots[n_slots] = (struct slot) {
		.dev = dev, .up = up, .clid = clid, .leaf = leaf, .any_minor = any_minor,
	};
	devices[dev].count++;
	return n_slots++;
}

static void make_slots(void)
{
	int dev, root, mid, n;

	n_slots = 0;
	for (dev = 0; dev < DEVICES; dev++) {
		devices[dev].first = n_slots;
		devices[dev].count = 0;
		devices[dev].usable = true;
		root = add_slot(dev, -1, TC_H_ROOT, dev == D_ROOT, false);
		switch (dev) {
		case D_ROOT:
			break;
		case D_TBF:
			add_slot(dev, root, 0x10001, true, true);
			break;
		case D_HTB:
		case D_HFSC:
			add_slot(dev, root, 0x10010, true, false);
			add_slot(dev, root, 0x10020, true, false);
			break;
		case D_MQ:
			for (n = 1; n <= 4; n++)
				add_slot(dev, root, 0x10000 + n, true, false);
			break;
		default:
			mid = add_slot(dev, root, 0x10001, false, true);
			for (n = 1; n <= (dev == D_DRR || dev == D_QFQ ? 2 : 3); n++)
				add_slot(dev, mid, 0x20000 + n, true, false);
		}
	}
}

static struct device *device_of(int ifindex)
{
	return ifindex >= IFINDEX && ifindex < IFINDEX + DEVICES ? &devices[ifindex - IFINDEX] :
								    NULL;
}

static bool slot_intact(const struct slot *s)
{
	const struct slot *up;

	if (s->up < 0)
		return true;
	up = &slots[s->up];
	return (up->state == OTHER || up->state == UNKNOWN) && slot_intact(up);
}

static struct slot *slot_of(const struct device *dev, uint32_t clid)
{
	int n;

	for (n = dev->first; n < dev->first + dev->count; n++) {
		struct slot *s = &slots[n];

		if (s->clid == clid ||
		    (s->any_minor && TC_H_MAJ(clid) == TC_H_MAJ(s->clid) && clid != TC_H_ROOT))
			return s;
	}
	return NULL;
}

static bool is_below(const struct slot *s, const struct slot *top)
{
	while (s->up >= 0) {
		s = &slots[s->up];
		if (s == top)
			return true;
	}
	return false;
}

static void set_below(const struct device *dev, const struct slot *top, enum slot_state state)
{
	int n;

	for (n = dev->first; n < dev->first + dev->count; n++)
		if (!top || is_below(&slots[n], top))
			slots[n].state = state;
}

enum path { REFUSED, CREATE, CHANGE, UNSURE };

static bool is_kind(const char *kind, const char *name)
{
	return kind && !strcmp(kind, name);
}

/* Is the qdisc there of this kind?  No kind in a message is any kind. */
static bool kind_fits(const struct slot *s, const char *kind)
{
	return !kind || is_kind(kind, s->state == DUALPI2 ? "dualpi2" : s->kind);
}

static struct slot *slot_with_handle(const struct device *dev, uint32_t handle, bool *unsure)
{
	int n;

	for (n = dev->first; n < dev->first + dev->count; n++) {
		struct slot *s = &slots[n];

		if (s->state == UNKNOWN || (s->state != NONE && !s->handle))
			*unsure = true;
		else if (s->state != NONE && s->handle == handle)
			return s;
	}
	return NULL;
}

/* What the core does with RTM_NEWQDISC, whether or not it is carried out. */
static enum path path_of(const struct device *dev, const struct tcmsg *tcm, uint16_t flags,
			 const char *kind, struct slot **target)
{
	struct slot *s = NULL, *q;
	bool unsure = false;

	if (!tcm->tcm_parent) {
		if (!tcm->tcm_handle)
			return REFUSED;
		q = slot_with_handle(dev, tcm->tcm_handle, &unsure);
		if (!q)
			return unsure ? UNSURE : REFUSED;
		goto change;
	}
	s = slot_of(dev, tcm->tcm_parent);
	*target = s;
	if (!s || !slot_intact(s))
		return UNSURE;
	if (s->state == UNKNOWN || (s->state != NONE && !s->handle))
		return UNSURE;
	q = s->state == NONE ? NULL : s;
	if (!q || !tcm->tcm_handle || q->handle != tcm->tcm_handle) {
		if (tcm->tcm_handle) {
			if (q && !(flags & NLM_F_REPLACE))
				return REFUSED;
			if (TC_H_MIN(tcm->tcm_handle))
				return REFUSED;
			if (slot_with_handle(dev, tcm->tcm_handle, &unsure))
				return UNSURE;	/* another place's: moved, or refused */
			if (unsure)
				return UNSURE;
			goto create;
		}
		if (!q || ((flags & NLM_F_CREATE) && (flags & NLM_F_REPLACE) &&
			   ((flags & NLM_F_EXCL) || !kind_fits(q, kind))))
			goto create;
	}
change:
	*target = q;
	return (flags & NLM_F_EXCL) || !kind_fits(q, kind) ? REFUSED : CHANGE;
create:
	return (flags & NLM_F_CREATE) ? CREATE : REFUSED;
}

#define ATTRS	(TCA_EGRESS_BLOCK + 1)

struct attrs {
	const uint8_t *p[ATTRS];
	int len[ATTRS];
};

/* As the kernel takes them apart: the last of a type counts. */
static void take_apart(const uint8_t *p, int len, struct attrs *a)
{
	memset(a, 0, sizeof(*a));
	while (len >= NLA_HDRLEN) {
		int size = get16(p), type = get16(p + 2) & NLA_TYPE_MASK;

		if (size < NLA_HDRLEN || size > len)
			break;
		if (type < ATTRS) {
			a->p[type] = p + NLA_HDRLEN;
			a->len[type] = size - NLA_HDRLEN;
		}
		p += NLA_ALIGN(size);
		len -= NLA_ALIGN(size);
	}
}

static const char *kind_of(const struct attrs *a, char *buf)
{
	int len = a->len[TCA_KIND];

	if (!a->p[TCA_KIND])
		return NULL;
	while (len && !a->p[TCA_KIND][len - 1])
		len--;
	len = len > IFNAMSIZ - 1 ? IFNAMSIZ - 1 : len;
	memcpy(buf, a->p[TCA_KIND], len);
	buf[len] = 0;
	return buf;
}

static const char *hex(const uint8_t *p, int len)
{
	static char texts[4][2100];
	static int turn;
	char *text = texts[turn++ & 3];
	int n;

	text[0] = 0;
	for (n = 0; n < len && n < 1000; n++)
		sprintf(text + 2 * n, "%02x", p[n]);
	return text;
}

static void begin_qdisc(struct slot *s, const struct device *dev)
{
	s->mtus[0] = dev->mtu;
	s->n_mtus = 1;
	s->trimmed = true;
}

static void model_unsure(const struct device *dev, struct slot *s)
{
	count.unsure++;
	if (s)
		s->state = UNKNOWN;
	set_below(dev, s, UNKNOWN);
}

/* Of all refusals this one alone depends on what was there before. */
static bool is_about_before(const char *text)
{
	return strstr(text, "bypass and bandwidth exclude each other");
}

static void model_newqdisc(const uint8_t *data, int len, uint16_t flags, int error,
			   const char *text)
{
	bool ours = text && !strncmp(text, "dualpi2: ", 9), good = true;
	struct config cfg = defaults();
	struct slot *target = NULL;
	char buf[IFNAMSIZ];
	struct device *dev;
	struct attrs a;
	const char *kind;
	enum path path;
	struct tcmsg tcm;

	if (len < (int)sizeof(tcm)) {
		if (!error && len)
			fault("a message of %d bytes is accepted", len);
		return;
	}
	memcpy(&tcm, data, sizeof(tcm));
	dev = device_of(tcm.tcm_ifindex);
	take_apart(data + sizeof(tcm), len - sizeof(tcm), &a);
	kind = kind_of(&a, buf);
	if (!dev) {
		if (a.p[TCA_OPTIONS] && ours && !is_about_before(text) &&
		    predict(&cfg, a.p[TCA_OPTIONS], a.len[TCA_OPTIONS]))
			fault("good options are refused: %s", text);
		return;
	}
	path = path_of(dev, &tcm, flags, kind, &target);
	if (path == CHANGE && target->state == DUALPI2)
		cfg = target->cfg;
	if (a.p[TCA_OPTIONS])
		good = predict(&cfg, a.p[TCA_OPTIONS], a.len[TCA_OPTIONS]);

	if (error) {
		if (ours) {
			count.refused_ours++;
			if (error != -EINVAL)
				fault("refused with error %d, not EINVAL: %s", error, text);
			if (good && !(is_about_before(text) &&
				      (path == UNSURE || (target && target->state == UNKNOWN))))
				fault("good options are refused: %s", text);
		}
		/* The core changes a size table last, when the options are in. */
		if (target && target->state == DUALPI2 && a.p[TCA_OPTIONS] && a.p[TCA_STAB] && !ours)
			model_unsure(dev, target);
		return;
	}
	if (path == UNSURE || path == REFUSED) {
		model_unsure(dev, target);
		return;
	}
	if (path == CHANGE) {
		if (target->state != DUALPI2) {
			set_below(dev, target, UNKNOWN);
			return;
		}
		if (!good)
			fault("a change to bad options is accepted: %s",
			      hex(a.p[TCA_OPTIONS], a.len[TCA_OPTIONS]));
		count.changes++;
		target->cfg = cfg;
		target->was_bypass |= cfg.v[K_BYPASS];
		if (a.p[TCA_OPTIONS])
			begin_qdisc(target, dev);
		return;
	}
	target->handle = tcm.tcm_handle;
	set_below(dev, target, NONE);
	if (!is_kind(kind, "dualpi2")) {
		target->state = OTHER;
		strcpy(target->kind, kind ? kind : "");
		return;
	}
	if (!good)
		fault("a new qdisc of bad options is accepted: %s",
		      hex(a.p[TCA_OPTIONS], a.len[TCA_OPTIONS]));
	count.creations++;
	target->state = DUALPI2;
	target->cfg = cfg;
	target->was_bypass = cfg.v[K_BYPASS];
	begin_qdisc(target, dev);
}

static void model_delqdisc(const uint8_t *data, int len, int error)
{
	struct device *dev;
	struct tcmsg tcm;
	struct slot *s;

	if (error || len < (int)sizeof(tcm))
		return;
	memcpy(&tcm, data, sizeof(tcm));
	dev = device_of(tcm.tcm_ifindex);
	if (!dev)
		return;
	s = slot_of(dev, tcm.tcm_parent);
	if (!s) {
		model_unsure(dev, NULL);
		return;
	}
	s->state = NONE;
	set_below(dev, s, NONE);
}

static void new_mtu(struct device *dev, uint32_t mtu)
{
	int n;

	dev->mtu = mtu;
	for (n = dev->first; n < dev->first + dev->count; n++) {
		struct slot *s = &slots[n];

		s->trimmed = false;
		if (s->n_mtus == MTUS)
			s->n_mtus = 0;
		if (s->n_mtus)
			s->mtus[s->n_mtus++] = mtu;
	}
}

static void model_newlink(const uint8_t *data, int len, int error)
{
	struct ifinfomsg ifi;
	struct device *dev;
	const uint8_t *p;

	if (error || len < (int)sizeof(ifi))
		return;
	memcpy(&ifi, data, sizeof(ifi));
	dev = device_of(ifi.ifi_index);
	for (p = data + sizeof(ifi); dev && p + NLA_HDRLEN <= data + len; p += NLA_ALIGN(get16(p)))
		if (get16(p + 2) == IFLA_MTU)
			new_mtu(dev, get32(p + NLA_HDRLEN));
}

static void not_trimmed(void)
{
	int n;

	for (n = 0; n < n_slots; n++)
		slots[n].trimmed = false;
}

/* ---- what a dump says ---- */

static const uint8_t *find(const uint8_t *p, int len, int type, int *found)
{
	while (len >= NLA_HDRLEN) {
		int size = get16(p);

		if (size < NLA_HDRLEN || size > len)
			return NULL;
		if ((get16(p + 2) & NLA_TYPE_MASK) == type) {
			*found = size - NLA_HDRLEN;
			return p + NLA_HDRLEN;
		}
		p += NLA_ALIGN(size);
		len -= NLA_ALIGN(size);
	}
	return NULL;
}

#define SAME(left, right, what)						\
	do {								\
		uint64_t l_ = (left), r_ = (right);			\
									\
		if (l_ != r_)						\
			fault("%s: %llu and %llu", what, (unsigned long long)l_, \
			      (unsigned long long)r_);			\
	} while (0)

#define AT_MOST(left, right, what)					\
	do {								\
		uint64_t l_ = (left), r_ = (right);			\
									\
		if (l_ > r_)						\
			fault("%s: %llu > %llu", what, (unsigned long long)l_, \
			      (unsigned long long)r_);			\
	} while (0)

#define DROPPED(c, cause)	((c)->not_ect_dropped_##cause + (c)->ect_dropped_##cause)

/* What include/uapi/linux/dualpi2.h says of them. */
static void check_counters_of_queue(const struct tc_dualpi2_counters *c)
{
	uint64_t not_ect = c->not_ect_dropped_limit + c->not_ect_dropped_memory +
			   c->not_ect_dropped_early + c->not_ect_dropped_aqm +
			   c->not_ect_dropped_overload + c->not_ect_dropped_purge;
	uint64_t early = DROPPED(c, early), before = DROPPED(c, limit) + DROPPED(c, memory);
	uint64_t aqm = DROPPED(c, aqm) + DROPPED(c, overload), purge = DROPPED(c, purge);
	uint64_t ect = early + before + aqm + purge - not_ect;

	SAME(c->arrived_not_ect + c->arrived_ect1 + c->arrived_ect0 + c->arrived_ce,
	     c->presented + before + purge + c->queued, "arrived, presented and dropped before");
	SAME(c->presented, c->forwarded + early + aqm, "presented, forwarded and dropped");
	SAME(c->arrived_bytes, c->forwarded_bytes + c->dropped_arrival_bytes +
	     c->dropped_aqm_bytes + c->dropped_purge_bytes + c->queued_bytes, "bytes arrived");
	AT_MOST(c->forwarded_bytes + c->dropped_aqm_bytes, c->presented_bytes,
		"bytes forwarded and dropped, presented");
	AT_MOST(c->presented_bytes, c->arrived_bytes, "bytes presented, arrived");
	AT_MOST(not_ect, c->arrived_not_ect, "Not-ECT dropped, arrived");
	AT_MOST(ect, c->arrived_ect1 + c->arrived_ect0 + c->arrived_ce, "ECT dropped, arrived");
	AT_MOST(c->marked_classic + c->marked_coupled + c->marked_native,
		c->arrived_ect1 + c->arrived_ect0, "marks, ECT arrived");
	if (!c->queued)
		SAME(c->queued_bytes, 0, "bytes of no packets");
	if (!(before + early))
		SAME(c->dropped_arrival_bytes, 0, "bytes of no drops on arrival");
	if (!aqm)
		SAME(c->dropped_aqm_bytes, 0, "bytes of no drops by the AQM");
	if (!purge)
		SAME(c->dropped_purge_bytes, 0, "bytes of no purge");
}

static void check_delay(const struct tc_dualpi2_delay *d, const uint8_t *hist, int len,
			uint64_t forwarded)
{
	uint64_t total = d->beyond, low = 0, high = 0;
	uint32_t n;

	SAME(len % 8, 0, "histogram, a number of 64 bits");
	SAME(d->unit_ns & (d->unit_ns - 1), 0, "unit_ns, a power of two");
	AT_MOST(1024, d->unit_ns, "unit_ns, least");
	AT_MOST(d->unit_ns, 1 << 24, "unit_ns, greatest");
	AT_MOST(1, d->generation, "generation, least");
	SAME(d->pad, 0, "padding");
	SAME(d->buckets, 96, "buckets");
	AT_MOST(len / 8, d->buckets, "buckets sent");
	if (len)
		AT_MOST(1, get64(hist + len - 8), "the last bucket that was sent");
	for (n = 0; n < (uint32_t)len / 8; n++) {
		uint64_t from = n < 8 ? n : (uint64_t)(8 + n % 8) << (n / 8 - 1);
		uint64_t to = n < 7 ? n + 1 : (uint64_t)(8 + (n + 1) % 8) << ((n + 1) / 8 - 1);
		uint64_t packets = get64(hist + 8 * n);

		total += packets;
		low += packets * from * d->unit_ns;
		high += packets * (to * d->unit_ns - 1);
		if (n + 1 == (uint32_t)len / 8 && !d->beyond) {
			AT_MOST(from * d->unit_ns, d->max_ns, "the last bucket's begin, maximum");
			AT_MOST(d->max_ns, to * d->unit_ns - 1, "maximum, the last bucket's end");
		}
	}
	if (d->generation == 1)
		SAME(total, forwarded, "packets in the histogram, forwarded");
	AT_MOST(total, forwarded, "packets in the histogram, forwarded ever");
	low += d->beyond * 16384 * d->unit_ns;
	high += d->beyond * d->max_ns;
	/* Virtual time may have gone for years. */
	if (d->max_ns < 1ULL << 40) {
		AT_MOST(low, d->sum_ns, "least sum, sum");
		AT_MOST(d->sum_ns, high, "sum, greatest sum");
	}
	if (!total)
		SAME(d->sum_ns | d->max_ns, 0, "sum and maximum of nothing");
}

/* A nest TCA_DUALPI2_STATS_C or _L. */
static void check_nest(const uint8_t *attrs, int len, struct tc_dualpi2_counters *c)
{
	const uint8_t *counters, *delay, *hist;
	struct tc_dualpi2_delay d;
	int size, hist_len;

	counters = find(attrs, len, TCA_DUALPI2_QUEUE_COUNTERS, &size);
	if (!counters)
		fault("a queue without counters");
	SAME(size, sizeof(*c), "length of the counters");
	memcpy(c, counters, sizeof(*c));
	delay = find(attrs, len, TCA_DUALPI2_QUEUE_DELAY, &size);
	hist = find(attrs, len, TCA_DUALPI2_QUEUE_HIST, &hist_len);
	if (!delay || !hist)
		fault("a queue without delays");
	SAME(size, sizeof(d), "length of the delays");
	memcpy(&d, delay, sizeof(d));
	check_counters_of_queue(c);
	check_delay(&d, hist, hist_len, c->forwarded);
}

/* The older struct says the same. */
static void check_queue(const struct tc_dualpi2_queue_xstats *q,
			const struct tc_dualpi2_counters *c)
{
	uint64_t lost = q->dropped_aqm + q->dropped_overload + q->dropped_purge;

	SAME(q->enqueued, q->sent + lost + q->packets, "enqueued, and sent + dropped + queued");
	SAME(q->enqueued, c->arrived_not_ect + c->arrived_ect1 + c->arrived_ect0 + c->arrived_ce -
	     q->dropped_limit - q->dropped_memory - q->dropped_early,
	     "enqueued, and arrived without what was dropped then");
	SAME(q->enqueued_bytes, c->arrived_bytes - c->dropped_arrival_bytes, "enqueued_bytes");
	SAME(q->sent, c->forwarded, "sent, forwarded");
	SAME(q->sent_bytes, c->forwarded_bytes, "sent_bytes, forwarded_bytes");
	SAME(q->packets, c->queued, "packets, queued");
	SAME(q->bytes, c->queued_bytes, "bytes, queued_bytes");
	SAME(q->dropped_limit, DROPPED(c, limit), "dropped_limit");
	SAME(q->dropped_memory, DROPPED(c, memory), "dropped_memory");
	SAME(q->dropped_early, DROPPED(c, early), "dropped_early");
	SAME(q->dropped_aqm, DROPPED(c, aqm), "dropped_aqm");
	SAME(q->dropped_overload, DROPPED(c, overload), "dropped_overload");
	SAME(q->dropped_purge, DROPPED(c, purge), "dropped_purge");
	SAME(q->marked_classic, c->marked_classic, "marked_classic");
	SAME(q->marked_coupled, c->marked_coupled, "marked_coupled");
	SAME(q->marked_native, c->marked_native, "marked_native");
	SAME(q->arrived_ce, c->arrived_ce, "arrived_ce");
}

/* TCA_STATS_APP: two structs, and attributes from behind them on. */
struct stats {
	struct tc_dualpi2_xstats x;
	uint8_t gap[TC_DUALPI2_EXT_XSTATS_OFFSET - sizeof(struct tc_dualpi2_xstats)];
	struct tc_dualpi2_ext_xstats e;
};

static const uint8_t *take_stats(const uint8_t *app, int len, struct stats *st)
{
	uint32_t n;

	AT_MOST(sizeof(*st), len, "least and true length of the statistics");
	memcpy(st, app, sizeof(*st));
	SAME(st->e.magic, TC_DUALPI2_EXT_XSTATS_MAGIC, "magic number");
	SAME(st->e.size, sizeof(st->e), "size of the extension");
	for (n = 0; n < sizeof(st->gap); n++)
		SAME(st->gap[n], 0, "the gap between the statistics");
	SAME(st->e.pad, 0, "padding");
	return app + sizeof(*st);
}

/* What is known of the link, and that it fits the options.  Returns the limit. */
static uint32_t check_link(const struct slot *s, const uint8_t *attr, int len,
			   const struct stats *st)
{
	struct tc_dualpi2_link l;

	SAME(len, sizeof(l), "length of struct tc_dualpi2_link");
	memcpy(&l, attr, sizeof(l));
	AT_MOST(l.nqb_dropped, l.nqb_arrived, "NQB dropped, arrived");
	AT_MOST(l.nqb_dropped, st->e.l.dropped_limit, "NQB dropped, dropped_limit of L");
	AT_MOST(l.ramp_min_ns, l.ramp_max_ns, "begin of the ramp, its end");
	if (l.drain_rate)
		AT_MOST(2 * 60, l.nqb_limit_bytes, "two packets, limit of NQB");
	else
		SAME(l.nqb_limit_bytes, 0, "limit of NQB at an unknown rate");
	if (s->state != DUALPI2)
		return l.limit_pkts;
	if (may_be_raised(&s->cfg))
		AT_MOST(limit_of(&s->cfg), l.limit_pkts, "default limit, limit of packets");
	else
		SAME(l.limit_pkts, limit_of(&s->cfg), "limit of packets");
	/* It is above the target where 1514 bytes take more than 0.8 of it. */
	AT_MOST(1000 * s->cfg.v[K_TARGET], l.target_ns, "target, effective target");
	if (!l.drain_rate || l.drain_rate >= 2 * 1514 * 1000000ULL / s->cfg.v[K_TARGET])
		SAME(l.target_ns, 1000 * s->cfg.v[K_TARGET], "target of a link that is not slow");
	if (s->cfg.v[K_BANDWIDTH])
		SAME(l.drain_rate, s->cfg.v[K_BANDWIDTH], "drain_rate, bandwidth");
	AT_MOST(l.burst_ns, s->cfg.v[K_STEP_PKTS] ? 0 : 1000 * s->cfg.v[K_BURST_MAX],
		"bursts tolerated, burst_max");
	return l.limit_pkts;
}

static void check_overload(const uint8_t *attr, int len, const struct tc_dualpi2_ext_xstats *e)
{
	struct tc_dualpi2_overload o;

	SAME(len, sizeof(o), "length of struct tc_dualpi2_overload");
	memcpy(&o, attr, sizeof(o));
	SAME(o.count, e->overload_count, "count of overloads");
	SAME(o.total_ns, e->overload_ns, "time in overload");
	SAME(o.now, e->overload, "in overload");
	SAME(o.pad, 0, "padding");
	AT_MOST(o.duration_ns, o.total_ns, "duration of one overload, of all");
	AT_MOST(o.reports, 2 * o.count, "reports, begins and ends");
	if (o.count)
		AT_MOST(1, o.start_ns, "start of an overload");
	else
		SAME(o.start_ns | o.total_ns | o.duration_ns, 0, "times without an overload");
}

/* May packets have gone past it, which are in the core's counters alone?  A parent
 * has it see each one, and mq is none.
 */
static bool may_be_passed(const struct slot *s)
{
	return s->state != DUALPI2 || (s->was_bypass && (s->up < 0 || s->dev == D_MQ));
}

/* As check_identities() of selftests/net/lib.py, but devices go down here, which
 * purges without a count of the core's, and GSO packets may stay whole, which the
 * core counts by their segments.
 */
static void check_counters(struct slot *s, const uint8_t *attrs, int len)
{
	const uint8_t *stats, *basic, *queue, *app, *more;
	static const int types[] = { TCA_DUALPI2_STATS_C, TCA_DUALPI2_STATS_L };
	struct tc_dualpi2_counters c[2];
	struct gnet_stats_queue gq;
	struct stats st;
	uint64_t queued, drops, purged;
	uint32_t peeked, limit, n;
	double p, p_c;
	int size, more_len;

	stats = find(attrs, len, TCA_STATS2, &size);
	if (!stats)
		fault("a dump without statistics");
	len = size;
	basic = find(stats, len, TCA_STATS_BASIC, &size);
	queue = find(stats, len, TCA_STATS_QUEUE, &size);
	app = find(stats, len, TCA_STATS_APP, &size);
	if (!basic || !queue || !app)
		fault("a dump without some of the statistics");
	memcpy(&gq, queue, sizeof(gq));
	more = take_stats(app, size, &st);
	more_len = size - sizeof(st);
	for (n = 0; n < 2; n++) {
		const uint8_t *one = find(more, more_len, types[n], &size);

		if (!one)
			fault("statistics without a queue");
		check_nest(one, size, &c[n]);
		AT_MOST(size, sizeof(s->nest[n]), "length of a queue's statistics");
		memcpy(s->nest[n], one, size);
		s->nest_len[n] = size;
	}
	app = find(more, more_len, TCA_DUALPI2_STATS_OVERLOAD, &size);
	if (!app)
		fault("statistics without overload");
	check_overload(app, size, &st.e);
	app = find(more, more_len, TCA_DUALPI2_STATS_LINK, &size);
	if (!app)
		fault("statistics without link");
	limit = check_link(s, app, size, &st);
	check_queue(&st.e.c, &c[0]);
	check_queue(&st.e.l, &c[1]);

	queued = st.e.c.packets + st.e.l.packets;
	if (!frozen)
		goto own;
	if (may_be_passed(s))
		AT_MOST(st.e.c.sent_bytes + st.e.l.sent_bytes, get64(basic),
			"bytes of both queues, of the qdisc");
	else
		SAME(get64(basic), st.e.c.sent_bytes + st.e.l.sent_bytes,
		     "bytes of the qdisc, of both queues");
	purged = st.e.c.dropped_purge + st.e.l.dropped_purge;
	drops = st.e.c.dropped_limit + st.e.c.dropped_memory + st.e.c.dropped_early +
		st.e.c.dropped_aqm + st.e.c.dropped_overload +
		st.e.l.dropped_limit + st.e.l.dropped_memory + st.e.l.dropped_early +
		st.e.l.dropped_aqm + st.e.l.dropped_overload + st.e.gso_failed;
	AT_MOST((uint32_t)drops, gq.drops, "dropped by both queues, drops of the qdisc");
	AT_MOST(gq.drops, drops + purged + st.e.filter_dropped, "drops of the qdisc, by reason");
	peeked = gq.qlen - queued;
	AT_MOST(peeked, 1, "packets that are in no queue");
	if (!peeked)
		SAME(gq.backlog, st.e.c.bytes + st.e.l.bytes, "backlog, bytes of both queues");
	if (!gq.qlen)
		SAME(gq.backlog, 0, "backlog of an empty qdisc");
own:
	AT_MOST(queued, st.x.maxq, "packets now, most ever");
	SAME(st.x.packets_in_c, (uint32_t)st.e.c.enqueued, "packets_in_c");
	SAME(st.x.packets_in_l, (uint32_t)st.e.l.enqueued, "packets_in_l");
	SAME(st.x.step_marks, (uint32_t)st.e.l.marked_native, "step_marks");
	SAME(st.e.c.marked_native, 0, "native marks in the Classic queue");
	SAME(st.e.l.dropped_early, 0, "early drops in the L4S queue");
	AT_MOST(st.x.memory_used, st.x.max_memory_used, "memory used, most ever");
	if (!queued) {
		SAME(st.x.memory_used, 0, "memory of empty queues");
		SAME(st.x.delay_c | st.x.delay_l, 0, "delays of empty queues");
	} else {
		AT_MOST(1, st.x.memory_used, "1, memory of packets");
	}
	AT_MOST(st.e.overload, st.e.overload_count, "in overload, count of overloads");
	p = st.x.prob / 4294967296.0;
	p_c = st.e.prob_c / 4294967296.0;
	if (fabs(p_c - p * p) > 4 / 4294967296.0)
		fault("prob_c %u is not the square of prob %u", st.e.prob_c, st.x.prob);
	if (s->state != DUALPI2)
		return;
	n = s->cfg.v[K_COUPLING];
	if (fabs(st.e.prob_cl / 4294967296.0 - (n * p > 1 ? 1 : n * p)) > (n + 2) / 4294967296.0)
		fault("prob_cl %u is not %u times prob %u", st.e.prob_cl, n, st.x.prob);
	if (s->trimmed && queued && frozen) {
		AT_MOST(gq.qlen, limit, "packets, limit just set");
		AT_MOST(st.x.memory_used, st.x.memory_limit, "memory, limit just set");
	}
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
		cfg.v[K_MEMORY] = cfg.memory_is_set ? cfg.v[K_MEMORY] : get32(got + 12);
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

/* RTM_NEWQDISC that answers a question. */
static void check_shown(const uint8_t *data, int len, bool in_dump)
{
	struct device *dev;
	char buf[IFNAMSIZ];
	struct attrs a;
	const char *kind;
	struct tcmsg tcm;
	struct slot *s;

	memcpy(&tcm, data, sizeof(tcm));
	dev = device_of(tcm.tcm_ifindex);
	if (!dev || !tcm.tcm_handle)
		return;
	s = slot_of(dev, tcm.tcm_parent);
	if (!s)
		return;
	take_apart(data + sizeof(tcm), len - sizeof(tcm), &a);
	kind = kind_of(&a, buf);
	if (!kind)
		fault("a dump without a kind");
	if (is_kind(kind, "dualpi2")) {
		if (s->state == NONE || s->state == OTHER)
			fault("a dualpi2 %x: at %x that was not made", tcm.tcm_handle >> 16,
			      tcm.tcm_parent);
		if (s->state == DUALPI2) {
			if (s->handle && s->handle != tcm.tcm_handle)
				fault("handle %x is shown as %x", s->handle, tcm.tcm_handle);
			check_options(s, a.p[TCA_OPTIONS], a.len[TCA_OPTIONS]);
		}
		check_counters(s, data + sizeof(tcm), len - sizeof(tcm));
	} else {
		if (s->state == DUALPI2)
			fault("%s is where a dualpi2 was made", kind);
		s->state = OTHER;
		strcpy(s->kind, kind);
	}
	s->handle = tcm.tcm_handle;
	if (in_dump && a.p[TCA_STATS2]) {
		struct gnet_stats_queue gq;
		const uint8_t *queue;
		int size;

		queue = find(a.p[TCA_STATS2], a.len[TCA_STATS2], TCA_STATS_QUEUE, &size);
		if (queue) {
			memcpy(&gq, queue, sizeof(gq));
			s->dump = this_dump;
			s->qlen = gq.qlen;
			s->backlog = gq.backlog;
		}
	}
}

/* RTM_NEWTCLASS in a dump: the queues of a dualpi2, each as the qdisc shows it. */
static void check_class(const uint8_t *data, int len)
{
	int dev_slots, n, size, app_len, queue, other_len;
	const uint8_t *basic, *gq_attr, *app, *one;
	struct tc_dualpi2_counters c;
	struct gnet_stats_queue gq;
	struct device *dev;
	struct stats st;
	char buf[IFNAMSIZ];
	struct tcmsg tcm;
	struct attrs a;

	memcpy(&tcm, data, sizeof(tcm));
	dev = device_of(tcm.tcm_ifindex);
	take_apart(data + sizeof(tcm), len - sizeof(tcm), &a);
	if (!dev || !is_kind(kind_of(&a, buf), "dualpi2"))
		return;
	SAME(TC_H_MAJ(tcm.tcm_handle), tcm.tcm_parent, "handle and parent of a class");
	if (TC_H_MIN(tcm.tcm_handle) != 1 && TC_H_MIN(tcm.tcm_handle) != 3)
		fault("a class %x", tcm.tcm_handle);
	queue = TC_H_MIN(tcm.tcm_handle) == 1;
	if (!a.p[TCA_STATS2])
		fault("a class without statistics");
	basic = find(a.p[TCA_STATS2], a.len[TCA_STATS2], TCA_STATS_BASIC, &size);
	gq_attr = find(a.p[TCA_STATS2], a.len[TCA_STATS2], TCA_STATS_QUEUE, &size);
	app = find(a.p[TCA_STATS2], a.len[TCA_STATS2], TCA_STATS_APP, &app_len);
	if (!basic || !gq_attr || !app)
		fault("a class without some of the statistics");
	app = take_stats(app, app_len, &st);
	app_len -= sizeof(st);
	one = find(app, app_len, queue ? TCA_DUALPI2_STATS_L : TCA_DUALPI2_STATS_C, &size);
	if (!one)
		fault("a class without its queue");
	if (find(app, app_len, queue ? TCA_DUALPI2_STATS_C : TCA_DUALPI2_STATS_L, &other_len) ||
	    find(app, app_len, TCA_DUALPI2_STATS_OVERLOAD, &other_len) ||
	    find(app, app_len, TCA_DUALPI2_STATS_LINK, &other_len))
		fault("a class with more than its queue");
	check_nest(one, size, &c);
	memcpy(&gq, gq_attr, sizeof(gq));
	SAME(get64(basic), c.forwarded_bytes, "bytes of a class, forwarded");
	SAME(gq.qlen, (uint32_t)c.queued, "qlen of a class, queued");
	SAME(gq.backlog, (uint32_t)c.queued_bytes, "backlog of a class, queued");
	count.classes++;
	if (!just_dumped || !frozen)
		return;
	dev_slots = dev->first + dev->count;
	for (n = dev->first; n < dev_slots; n++) {
		struct slot *s = &slots[n];

		if (s->dump + 1 != this_dump || s->state != DUALPI2 || s->handle != tcm.tcm_parent)
			continue;
		SAME(size, s->nest_len[queue], "length of a class's statistics, of the qdisc's");
		if (memcmp(one, s->nest[queue], size))
			fault("class %x is not as the qdisc:\n  %s\n  %s", tcm.tcm_handle,
			      hex(one, size), hex(s->nest[queue], size));
	}
}

/* After a dump of everything: no dualpi2 is missing, and what a parent counts is
 * what its children hold.
 */
static void check_trees(void)
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
		if (!any || !all || !frozen)
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

/* ---- the kernel ---- */

static int nl_fd = -1, tx_fd = -1, genl_fd = -1;
static uint32_t next_seq = 1;
static FILE *log_file;

static void open_sockets(void)
{
	int one = 1, room = 16 << 20;

	if (nl_fd >= 0)
		close(nl_fd);
	if (tx_fd >= 0)
		close(tx_fd);
	nl_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	tx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (nl_fd < 0 || tx_fd < 0)
		die("cannot open a socket: %m");
	if (setsockopt(nl_fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(nl_fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(nl_fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)) ||
	    setsockopt(nl_fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)) ||
	    setsockopt(tx_fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(tx_fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		die("cannot set a socket up: %m");
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
	size = put_nla(name, CTRL_ATTR_FAMILY_NAME, DUALPI2_GENL_NAME,
		       sizeof(DUALPI2_GENL_NAME)) - name;
	len = genl_ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, name, size, buf);
	if (len < skip || ((struct nlmsghdr *)buf)->nlmsg_type == NLMSG_ERROR)
		die("no generic netlink family %s: is the module loaded?", DUALPI2_GENL_NAME);
	id = find(buf + skip, len - skip, CTRL_ATTR_FAMILY_ID, &size);
	groups = find(buf + skip, len - skip, CTRL_ATTR_MCAST_GROUPS, &len);
	group = groups ? find(groups, len, 1, &len) : NULL;
	if (!id || !group)
		die("family %s without a group", DUALPI2_GENL_NAME);
	genl_family = get16(id);
	size = get32(find(group, len, CTRL_ATTR_MCAST_GRP_ID, &size));
	if (setsockopt(genl_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &size, sizeof(size)))
		die("cannot join the group: %m");
	/* The answer to the request. */
	recv(genl_fd, buf, sizeof(buf), MSG_DONTWAIT);
}

/* Each is whole and tells of a device that is or was ours. */
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
		const uint8_t *attrs = buf + NLMSG_LENGTH(GENL_HDRLEN);
		int size, k;

		SAME(n->nlmsg_type, genl_family, "type of a report");
		SAME(n->nlmsg_len, len, "length of a report");
		if (g->cmd != DUALPI2_CMD_OVERLOAD_BEGIN && g->cmd != DUALPI2_CMD_OVERLOAD_END)
			fault("a report %u", g->cmd);
		SAME(g->version, DUALPI2_GENL_VERSION, "version of a report");
		len -= NLMSG_LENGTH(GENL_HDRLEN);
		for (k = DUALPI2_A_IFINDEX; k <= DUALPI2_A_MAX; k++) {
			const uint8_t *one = find(attrs, len, k, &size);

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

/* The family has no commands: whatever is sent to it is refused. */
static void ask_the_family(void)
{
	static uint8_t buf[REPLY_MAX];
	uint8_t attrs[200];
	int n, i, len;

	read_reports();
	for (n = 0; n < 8; n++) {
		const struct nlmsghdr *h = (void *)buf;

		for (i = 0; i < (int)sizeof(attrs); i++)
			attrs[i] = rnd64();
		len = genl_ask(genl_family, chance(700) ? rnd(5) : rnd64(), attrs,
			       rnd(sizeof(attrs)), buf);
		if (len < (int)NLMSG_LENGTH(sizeof(int)) || h->nlmsg_type != NLMSG_ERROR ||
		    !get32(NLMSG_DATA(h)))
			fault("generic netlink takes a command of %s", DUALPI2_GENL_NAME);
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return;
	/* Not everywhere to be had. */
	n = write(fd, text, strlen(text));
	(void)n;
	close(fd);
}

static void new_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		die("no network namespace: %m (to be run as root)");
	/* Its packets would be nobody's. */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	open_sockets();
	listen_to_reports();
}

static bool is_dump(const struct step *s)
{
	return (s->type & 3) == 2 && (s->flags & NLM_F_DUMP);
}

/* Everything about one message that was answered. */
static void answered(const struct sequence *seq, const struct step *step, int error,
		     const char *text, const uint8_t *reply, int reply_len)
{
	const uint8_t *data = seq->bytes + step->at;
	struct device *dev;
	struct tcmsg tcm;
	struct slot *s;

	if (!step->oracle)
		count.messages++;
	if (error)
		count.refused++;
	else
		count.accepted++;
	if (text && !strncmp(text, "dualpi2: ", 9) && step->type != RTM_NEWQDISC)
		fault("type %u got an answer of dualpi2: %s", step->type, text);
	switch (step->type) {
	case RTM_NEWQDISC:
		model_newqdisc(data, step->len, step->flags, error, text);
		break;
	case RTM_DELQDISC:
		model_delqdisc(data, step->len, error);
		break;
	case RTM_NEWLINK:
		model_newlink(data, step->len, error);
		break;
	case RTM_DELTCLASS:
		/* A class of the parent, and with it what was in it. */
		if (error || step->len < sizeof(tcm))
			break;
		memcpy(&tcm, data, sizeof(tcm));
		dev = device_of(tcm.tcm_ifindex);
		if (dev)
			model_unsure(dev, slot_of(dev, tcm.tcm_handle));
		break;
	case RTM_GETQDISC:
		if (step->oracle)
			count.gets++;
		if (reply) {
			check_shown(reply, reply_len, false);
			break;
		}
		if (!step->oracle || step->len < sizeof(tcm))
			break;
		memcpy(&tcm, data, sizeof(tcm));
		dev = device_of(tcm.tcm_ifindex);
		s = dev ? slot_of(dev, tcm.tcm_parent) : NULL;
		if (!s || error == -ENOMEM || error == -ENOBUFS)
			break;
		if (s->state == DUALPI2)
			fault("the dualpi2 at %x is gone: error %d %s", s->clid, error,
			      text ? text : "");
		s->state = NONE;
		break;
	}
}

static uint8_t out[BATCH * 4096 + 2 * MSG_MAX];

/* Send messages in one go and take in all answers. */
static void send_batch(const struct sequence *seq, size_t from, size_t to)
{
	static uint8_t in[BATCH][REPLY_MAX], reply[REPLY_MAX];
	static struct mmsghdr heads[BATCH];
	static struct iovec pieces[BATCH];
	uint32_t first = next_seq, expect = next_seq;
	int reply_len = 0, got, n;
	size_t len = 0, i;

	just_dumped &= seq->steps[from].type == RTM_GETTCLASS && is_dump(&seq->steps[from]);
	for (i = from; i < to; i++) {
		const struct step *step = &seq->steps[i];
		struct nlmsghdr h = {
			.nlmsg_len = NLMSG_HDRLEN + step->len,
			.nlmsg_type = step->type,
			.nlmsg_flags = step->flags | NLM_F_REQUEST | NLM_F_ACK,
			.nlmsg_seq = next_seq++,
		};

		memcpy(out + len, &h, sizeof(h));
		memcpy(out + len + NLMSG_HDRLEN, seq->bytes + step->at, step->len);
		memset(out + len + NLMSG_HDRLEN + step->len, 0, 3);
		len += NLMSG_ALIGN(h.nlmsg_len);
	}
	if (log_file) {
		rewind(log_file);
		if (ftruncate(fileno(log_file), 0))
			die("cannot cut the log: %m");
		write_steps(log_file, seq, 0, to);
		fflush(log_file);
	}
	if (send(nl_fd, out, len, 0) < 0)
		fault("cannot send %zu bytes: %m", len);

	while (expect != next_seq) {
		for (n = 0; n < BATCH; n++) {
			pieces[n] = (struct iovec) { in[n], REPLY_MAX };
			heads[n].msg_hdr = (struct msghdr) {
				.msg_iov = &pieces[n], .msg_iovlen = 1,
			};
		}
		/* The kernel does all in send(): what is not there now never comes. */
		got = recvmmsg(nl_fd, heads, BATCH, MSG_DONTWAIT, NULL);
		if (got <= 0)
			fault("message %u of a batch is not answered: %s", expect - first,
			      strerror(errno));
		for (n = 0; n < got; n++) {
			int left = heads[n].msg_len;
			struct nlmsghdr *h = (void *)in[n];

			if (heads[n].msg_hdr.msg_flags & MSG_TRUNC)
				fault("an answer longer than a page");
			for (; NLMSG_OK(h, (unsigned int)left); h = NLMSG_NEXT(h, left)) {
				const struct step *step = &seq->steps[from + (expect - first)];
				const uint8_t *data = NLMSG_DATA(h);
				int size = h->nlmsg_len - NLMSG_HDRLEN, found, error;
				const char *text = NULL;

				if (h->nlmsg_seq != expect)
					fault("answer to message %u, not to %u",
					      h->nlmsg_seq - first, expect - first);
				if (h->nlmsg_type == NLMSG_DONE) {
					count.dumps++;
					if (step->oracle && step->type == RTM_GETQDISC) {
						check_trees();
						just_dumped = true;
					}
					if (step->type == RTM_GETQDISC)
						this_dump++;
				} else if (h->nlmsg_type != NLMSG_ERROR) {
					if (h->nlmsg_type == RTM_NEWTCLASS && is_dump(step))
						check_class(data, size);
					if (h->nlmsg_type != RTM_NEWQDISC)
						continue;
					if (is_dump(step)) {
						count.dumped++;
						check_shown(data, size, true);
					} else {
						memcpy(reply, data, size);
						reply_len = size;
					}
					continue;
				}
				error = (int32_t)get32(data);
				if (h->nlmsg_type == NLMSG_DONE)
					error = error < 0 ? error : 0;
				else if (h->nlmsg_flags & NLM_F_ACK_TLVS)
					text = (const char *)find(data + 4 + NLMSG_HDRLEN,
								  size - 4 - NLMSG_HDRLEN,
								  NLMSGERR_ATTR_MSG, &found);
				expect++;
				answered(seq, step, error, text, reply_len ? reply : NULL,
					 reply_len);
				reply_len = 0;
			}
		}
	}
}

static void transmit(const uint32_t *arg)
{
	static uint8_t frames[32][sizeof(struct virtio_net_hdr) + 14 + 65500];
	uint32_t dev = arg[0], ecn = arg[2], size = arg[3], gso = arg[4], n = arg[5];
	bool udp = !gso || gso > 65536;
	uint32_t least = 14 + 20 + (udp ? 8 : 20), i;
	struct virtio_net_hdr vh = {};
	struct mmsghdr heads[32];
	struct iovec pieces[32];
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = IFINDEX + dev, .sll_halen = 6,
	};

	size = size < least ? least : size > 65000 ? 65000 : size;
	n = n > 32 ? 32 : n;
	if (gso) {
		vh.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		vh.gso_type = udp ? 5 : VIRTIO_NET_HDR_GSO_TCPV4;
		vh.gso_size = gso & 65535;
		vh.hdr_len = least;
		vh.csum_start = 34;
		vh.csum_offset = udp ? 6 : 16;
	}
	/* cppcheck-suppress knownConditionTrueFalse ; it takes arg[] for constant */
	for (i = 0; i < n; i++) {
		uint8_t *p = frames[i] + sizeof(vh);
		uint32_t sum = 0, j;

		memcpy(frames[i], &vh, sizeof(vh));
		memcpy(p, "\2\0\0\0\0\1\2\0\0\0\0\2\x08\0\x45\0\0\0\0\0\x40\0\x40\x11\0\0"
			  "\x0a\0\0\1\x0a\0\0\2", 34);
		memset(p + 34, 0, 20);
		p[15] = (ecn + (ecn > 3 ? i : 0)) & 3;	/* 4: all in turn */
		*(uint16_t *)(p + 16) = htons(size - 14);
		p[23] = udp ? 17 : 6;
		for (j = 14; j < 34; j += 2)
			sum += ntohs(*(uint16_t *)(p + j));
		sum = (sum & 0xffff) + (sum >> 16);
		*(uint16_t *)(p + 24) = htons(~(sum + (sum >> 16)));
		p[36] = 0x10;
		if (udp)
			*(uint16_t *)(p + 38) = htons(size - 34);
		else
			p[46] = 0x50;
		pieces[i] = (struct iovec) { frames[i], sizeof(vh) + size };
		heads[i].msg_hdr = (struct msghdr) {
			.msg_name = &to, .msg_namelen = sizeof(to),
			.msg_iov = &pieces[i], .msg_iovlen = 1,
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
	not_trimmed();
}

static void run_steps(const struct sequence *seq, size_t from, size_t to)
{
	struct timespec ts;
	size_t n;

	while (from < to) {
		const struct step *step = &seq->steps[from];

		just_dumped &= step->kind == STEP_NL;
		switch (step->kind) {
		case STEP_TX:
			transmit(step->arg);
			from++;
			break;
		case STEP_WAIT:
			ts = (struct timespec) { step->arg[0] / 1000000,
						 step->arg[0] % 1000000 * 1000L };
			nanosleep(&ts, NULL);
			not_trimmed();
			from++;
			break;
		default:
			/* A dump ends a batch: its answers come when they are read.
			 * A long message goes alone.
			 */
			for (n = from + 1; n < to && n < from + BATCH; n++) {
				const struct step *last = &seq->steps[n - 1];

				if (seq->steps[n].kind != STEP_NL || is_dump(last) ||
				    last->len > 4000 || seq->steps[n].len > 4000)
					break;
			}
			send_batch(seq, from, n);
			from = n;
		}
	}
	read_reports();
}

/* ---- the devices ---- */

static void put_msg(struct sequence *s)
{
	add_nl(s, m.type, m.flags, m.data, m.len);
}

static uint32_t handle_of(int slot)
{
	return (0x10 + slot) << 16;
}

static void gen_link(struct sequence *s, int dev, unsigned int up, int attr_type, uint32_t value)
{
	struct ifinfomsg ifi = {
		.ifi_index = IFINDEX + dev,
		.ifi_flags = up == 1 ? IFF_UP : 0,
		.ifi_change = up < 2 ? IFF_UP : 0,
	};

	msg_link(RTM_NEWLINK, 0, &ifi);
	if (attr_type)
		attr32(attr_type, value);
	put_msg(s);
}

static void gen_tbf(struct sequence *s, int dev)
{
	struct tc_tbf_qopt opt = {
		.rate = { .linklayer = TC_LINKLAYER_ETHERNET, .rate = 1000000 },
		.limit = 100000000,
	};
	int at;

	msg_tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, IFINDEX + dev, 0x10000, TC_H_ROOT, 0);
	attr_str(TCA_KIND, "tbf");
	at = nest(TCA_OPTIONS);
	attr(TCA_TBF_PARMS, &opt, sizeof(opt));
	attr32(TCA_TBF_BURST, 3000);
	nest_end(at);
	put_msg(s);
}

static void gen_class(struct sequence *s, int dev, const char *kind, uint32_t parent,
		      uint32_t classid)
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
	put_msg(s);
}

/* The qdiscs of a device as they are at the begin. */
static void gen_qdiscs(struct sequence *s, int dev)
{
	const char *kind = devices[dev].kind;
	uint32_t parent = TC_H_ROOT, handle = 0x10000;
	int at, n;

	if (dev == D_TBF || (dev >= D_DRR && dev <= D_PRIO)) {
		gen_tbf(s, dev);
		parent = 0x10001;
		handle = 0x20000;
	}
	if (kind && dev != D_TBF) {
		msg_tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, IFINDEX + dev, handle, parent,
		       0);
		attr_str(TCA_KIND, kind);
		if (dev == D_HTB) {
			struct tc_htb_glob opt = {
				.version = 3, .rate2quantum = 10, .defcls = 0x10,
			};

			at = nest(TCA_OPTIONS);
			attr(TCA_HTB_INIT, &opt, sizeof(opt));
			nest_end(at);
		} else if (dev == D_HFSC) {
			struct tc_hfsc_qopt opt = { .defcls = 0x10 };

			attr(TCA_OPTIONS, &opt, sizeof(opt));
		} else if (dev == D_ETS) {
			uint8_t bands = 3, strict = 1;

			at = nest(TCA_OPTIONS | NLA_F_NESTED);
			attr(1, &bands, 1);	/* TCA_ETS_NBANDS, TCA_ETS_NSTRICT */
			attr(2, &strict, 1);
			nest_end(at);
		} else if (dev == D_PRIO) {
			struct tc_prio_qopt opt = { .bands = 3, .priomap = { 1, 2, 0 } };

			attr(TCA_OPTIONS, &opt, sizeof(opt));
		}
		put_msg(s);
	}
	if (dev == D_HTB || dev == D_HFSC) {
		gen_class(s, dev, kind, handle, 0x10010);
		gen_class(s, dev, kind, handle, 0x10020);
	} else if (dev == D_DRR || dev == D_QFQ) {
		gen_class(s, dev, kind, handle, 0x20001);
		gen_class(s, dev, kind, handle, 0x20002);
	}
	for (n = devices[dev].first; n < devices[dev].first + devices[dev].count; n++) {
		if (!slots[n].leaf)
			continue;
		msg_tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, IFINDEX + dev, handle_of(n),
		       slots[n].clid, 0);
		attr_str(TCA_KIND, "dualpi2");
		put_msg(s);
	}
}

static void gen_get(struct sequence *s, int slot)
{
	/* Without ECHO nobody gets the answer. */
	msg_tc(RTM_GETQDISC, NLM_F_ECHO, IFINDEX + slots[slot].dev, 0, slots[slot].clid, 0);
	put_msg(s);
	s->steps[s->count - 1].oracle = true;
}

static void gen_dump(struct sequence *s)
{
	msg_tc(RTM_GETQDISC, NLM_F_DUMP, 0, 0, 0, 0);
	put_msg(s);
	s->steps[s->count - 1].oracle = true;
	/* Classes are to be had of one device at a time. */
	msg_tc(RTM_GETTCLASS, NLM_F_DUMP, IFINDEX + rnd(DEVICES), 0, 0, 0);
	put_msg(s);
	s->steps[s->count - 1].oracle = true;
}

/* One message about all devices. */
static void all_devices(uint16_t type, struct ifinfomsg ifi)
{
	struct sequence s = {};

	msg_link(type, 0, &ifi);
	attr32(IFLA_GROUP, GROUP);
	put_msg(&s);
	run_steps(&s, 0, s.count);
	free(s.steps);
	free(s.bytes);
}

static void delete_devices(void)
{
	all_devices(RTM_DELLINK, (struct ifinfomsg){});
}

/* The namespace ends with its devices and qdiscs, but without packets: one that waits behind a slow shaper belongs to a
 * socket, which keeps the namespace until the packet is sent.
 */
static void leave_namespace(void)
{
	all_devices(RTM_NEWLINK, (struct ifinfomsg){ .ifi_change = IFF_UP });
	new_namespace();
}

/* All devices anew.  A kernel without one of the parents goes without it. */
static void setup(void)
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

		msg_link(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &ifi);
		sprintf(name, "fuzz%d", dev);
		attr_str(IFLA_IFNAME, name);
		attr32(IFLA_GROUP, GROUP);
		attr32(IFLA_NUM_TX_QUEUES, dev == D_MQ ? 4 : 1);
		attr32(IFLA_TXQLEN, 1000);
		attr32(IFLA_MTU, 1500);
		info = nest(IFLA_LINKINFO);
		attr_str(IFLA_INFO_KIND, "dummy");
		nest_end(info);
		put_msg(&s);
		devices[dev].mtu = 1500;
		gen_qdiscs(&s, dev);
	}
	for (n = 0; n < n_slots; n++)
		gen_get(&s, n);
	gen_dump(&s);
	for (n = 0; n < (int)s.count; n++)
		s.steps[n].oracle |= s.steps[n].type != RTM_GETQDISC;
	run_steps(&s, 0, s.count);
	free(s.steps);
	free(s.bytes);
	for (n = 0; n < n_slots; n++)
		if (slots[n].leaf && slots[n].state != DUALPI2) {
			if (devices[slots[n].dev].usable && slots[n].dev == D_ROOT)
				die("no dualpi2 can be made: is the module loaded?");
			devices[slots[n].dev].usable = false;
		}
}

/* ---- the grammar ---- */

static struct sequence corpus;

static uint64_t edge(const struct knob *k)
{
	const uint64_t edges[] = {
		0, 1, k->min - 1, k->min, k->min + 1, k->max - 1, k->max, k->max + 1,
		hole(k) - 1, hole(k),
		65535, 65536, 65537, INT32_MAX, 1U << 31, (1U << 31) + 1, UINT32_MAX - 1,
		UINT32_MAX, 1ULL << 32, INT64_MAX, 1ULL << 63, UINT64_MAX - 1, UINT64_MAX,
	};

	return PICK(edges);
}

static uint64_t good_value(const struct knob *k)
{
	uint64_t span = k->max - k->min + 1, v;

	switch (rnd(4)) {
	case 0:
		return k->min;
	case 1:
		return k->max;
	default:
		/* By size, so that small numbers are as likely as great ones. */
		v = rnd64();
		v = (span ? v % span : v) >> rnd(8 * k->size);
		if (k->min < 0)
			return k->min + (int64_t)v;
		return v < (uint64_t)k->min ? (uint64_t)k->min :
		       v && v < hole(k) ? hole(k) : v;
	}
}

static void gen_knob(const struct knob *k, bool good)
{
	uint64_t value = good ? good_value(k) : chance(700) ? edge(k) : rnd64();
	uint16_t type = k->type, size = k->size;
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
		uint32_t k = rnd(K_SPLIT + 1);

		if (good) {		/* each once: walk through them */
			k = (i * 7 + roll) % (K_SPLIT + 1);
			if (k == K_STEP_PKTS && chance(800))
				continue;
			if (k == K_STEP_US && n > 3 && chance(500))
				continue;
		}
		gen_knob(&knobs[k], good);
	}
	if (chance(400)) {
		ext = nest(TCA_DUALPI2_EXT | PICK(nested));
		n = rnd(6);
		for (i = 0; i < n; i++)
			gen_knob(&knobs[K_L4S + (good ? (i * 3 + roll) % (KNOBS - K_L4S) :
						 rnd(KNOBS - K_L4S))], good);
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
		return handle_of(slot) | rnd(5);	/* our own "classes" */
	return roll < 995 ? PICK(edges) : (uint32_t)rnd64();
}

static void gen_newqdisc(int slot)
{
	static const uint16_t makes[] = {
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_EXCL,
		NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL, NLM_F_CREATE,
	};
	static const char * const kinds[] = { "pfifo", "dualpi", "dualpi2x", "", "fq_codel" };
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

/* A message of the corpus, or the one at hand, with some bytes other. */
static void mutate(int slot)
{
	static const uint32_t numbers[] = {
		0, 1, 3, 4, 5, 8, 127, 128, 255, 256, 65535, 65536, INT32_MAX, 1U << 31,
		UINT32_MAX,
	};
	uint32_t n = 1 + rnd(chance(700) ? 3 : 16), i;

	if (corpus.count && chance(500)) {
		const struct step *step = &corpus.steps[rnd(corpus.count)];

		if (step->kind == STEP_NL && step->type >= RTM_NEWQDISC &&
		    step->type <= RTM_GETTFILTER) {
			m.type = step->type;
			m.flags = step->flags;
			m.len = step->len;
			memcpy(m.data, corpus.bytes + step->at, step->len);
			/* To this place, as often as to where it was sent. */
			if (m.len >= 20 && chance(500)) {
				*(int *)(m.data + 4) = IFINDEX + slots[slot].dev;
				*(uint32_t *)(m.data + 8) = handle_of(slot);
				*(uint32_t *)(m.data + 12) = slots[slot].clid;
			}
		}
	}
	if (chance(200))
		return;
	for (i = 0; i < n && m.len > 4; i++) {
		/* The header is hit by chance too, but most often what is behind it. */
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
	/* Not for long, or nothing passes. */
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
		/* The device's qdiscs anew. */
		msg_tc(RTM_DELQDISC, 0, IFINDEX + slots[slot].dev, 0, TC_H_ROOT, 0);
		put_msg(s);
		gen_qdiscs(s, slots[slot].dev);
		return;
	}
	if ((m.type & 3) == 2)
		m.flags &= ~NLM_F_DUMP;
	put_msg(s);
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
	} while (!devices[slots[slot].dev].usable || (!slots[slot].leaf && chance(970)));
	return slot;
}

/* One batch, at the end of a sequence. */
static void gen_batch(struct sequence *s, uint32_t size)
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
		put_msg(s);
	}
}

/* ---- coverage ---- */

static const uint8_t *map;
static uint8_t *seen;
static size_t map_size;
static uint32_t blocks;

static void open_map(void)
{
	FILE *file = fopen(DEBUGFS "base", "r");
	unsigned long base;
	void *p;
	int fd;

	if (!file || fscanf(file, "%lx %zu", &base, &map_size) != 2 || !map_size) {
		fprintf(stderr, "netlink: no map of basic blocks here: not guided\n");
		return;
	}
	fclose(file);
	map_size = (map_size + 7) & ~7UL;
	fd = open(DEBUGFS "map", O_RDONLY);
	p = mmap(NULL, map_size, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		die("cannot map the basic blocks: %m");
	map = p;
	seen = calloc(1, map_size);
}

static uint32_t new_blocks(void)
{
	uint32_t found = 0;
	size_t n, b;

	for (n = 0; n < map_size; n += 8) {
		if (!(get64(map + n) & ~get64(seen + n)))
			continue;
		for (b = n; b < n + 8; b++) {
			found += map[b] && !seen[b];
			seen[b] |= map[b];
		}
	}
	blocks += found;
	return found;
}

static const char *corpus_dir;
static uint32_t corpus_files, max_new = 150, new_files;

static void save_batch(const struct sequence *s, size_t from, uint32_t found)
{
	char path[4096];
	FILE *file;
	size_t n;

	/* Kept as text once, and as a source of messages. */
	for (n = from; n < s->count; n++)
		if (s->steps[n].len < 4096)
			add_copy(&corpus, s, n);
	if (!corpus_dir || new_files >= max_new)
		return;
	do {
		snprintf(path, sizeof(path), "%s/%03u.txt", corpus_dir, corpus_files++);
	} while (!access(path, F_OK));
	file = fopen(path, "w");
	if (!file)
		die("cannot write %s: %m", path);
	fprintf(file, LICENCE "# %u new blocks\n", '-', found);
	write_steps(file, s, from, s->count);
	fclose(file);
	new_files++;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_text(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return len > 4 && !strcmp(d->d_name + len - 4, ".txt");
}

/* ---- runs ---- */

static const char *fail_path = "fuzz-failure.txt";
static uint32_t max_trials = 600;

static bool fails(const struct sequence *s)
{
	jmp_buf saved = {};
	bool bad;

	memcpy(saved, on_fault, sizeof(saved));
	open_sockets();		/* no answers of before */
	if (setjmp(on_fault)) {
		bad = true;
	} else {
		setup();
		run_steps(s, 0, s->count);
		bad = false;
	}
	memcpy(on_fault, saved, sizeof(saved));
	return bad;
}

/* Drop steps, halves first, as long as it still fails. */
static void shrink(struct sequence *s)
{
	size_t chunk, from, n;
	uint32_t trials = 0;

	for (chunk = s->count / 2; chunk; chunk /= 2) {
		for (from = 0; from < s->count && trials < max_trials;) {
			struct sequence less = {};
			char text[sizeof(fault_text)];

			for (n = 0; n < s->count; n++)
				if (n < from || n >= from + chunk)
					add_copy(&less, s, n);
			strcpy(text, fault_text);
			trials++;
			if (less.count && fails(&less)) {
				free(s->steps);
				free(s->bytes);
				*s = less;
			} else {
				strcpy(fault_text, text);
				free(less.steps);
				free(less.bytes);
				from += chunk;
			}
		}
	}
}

static void report(struct sequence *s, uint64_t seed, uint64_t epoch)
{
	uint64_t messages = count.messages;
	FILE *file;

	fprintf(stderr, "netlink: FAULT in epoch %llu of seed %llu, after %llu messages:\n  %s\n",
		(unsigned long long)epoch, (unsigned long long)seed, (unsigned long long)messages,
		fault_text);
	if (fails(s))
		shrink(s);
	else
		fprintf(stderr, "netlink: it does not come again from a clean state\n");
	file = fopen(fail_path, "w");
	if (!file)
		die("cannot write %s: %m", fail_path);
	fprintf(file, LICENCE "# seed %llu, epoch %llu\n", '-', (unsigned long long)seed,
		(unsigned long long)epoch);
	for (char *line = strtok(fault_text, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(file, "# %s\n", line);
	write_steps(file, s, 0, s->count);
	fclose(file);
	fprintf(stderr, "netlink: %zu steps are in %s; run them by --replay\n", s->count,
		fail_path);
}

static int users(void)
{
	FILE *file = fopen("/sys/module/sch_dualpi2/refcnt", "r");
	int n = 0;

	if (!file)
		return 0;	/* built in */
	if (fscanf(file, "%d", &n) != 1)
		n = 0;
	fclose(file);
	return n;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void progress(const char *what)
{
	static uint64_t last;
	static double last_at;
	double now = seconds();

	/* In virtual time the rate says nothing. */
	fprintf(stderr, "netlink: %s %llu messages, %.0f/s by this machine's clock, %u blocks, "
		"%.1f %% refused (%.1f %% by dualpi2), %llu made, %llu changed, %llu checked, "
		"%llu unsure, %llu frames, %llu classes, %llu reports\n",
		what, (unsigned long long)count.messages,
		(count.messages - last) / (now > last_at ? now - last_at : 1), blocks,
		100.0 * count.refused / (count.accepted + count.refused + 1),
		100.0 * count.refused_ours / (count.accepted + count.refused + 1),
		(unsigned long long)count.creations, (unsigned long long)count.changes,
		(unsigned long long)(count.gets + count.dumped), (unsigned long long)count.unsure,
		(unsigned long long)count.frames, (unsigned long long)count.classes,
		(unsigned long long)count.reports);
	last = count.messages;
	last_at = now;
}

static const char *state_path;

static void save_state(uint64_t seed, uint64_t epoch)
{
	char path[4096];
	FILE *file;

	if (!state_path)
		return;
	snprintf(path, sizeof(path), "%s.new", state_path);
	file = fopen(path, "w");
	if (!file)
		die("cannot write %s: %m", path);
	fprintf(file, "seed %llu\nepoch %llu\nmessages %llu\nunsure %llu\n", (unsigned long long)seed,
		(unsigned long long)epoch, (unsigned long long)count.messages,
		(unsigned long long)count.unsure);
	fclose(file);
	if (rename(path, state_path))
		die("cannot write %s: %m", state_path);
}

static bool load_state(uint64_t *seed, uint64_t *epoch)
{
	unsigned long long s, e, messages, unsure;
	FILE *file = state_path ? fopen(state_path, "r") : NULL;
	bool good;

	if (!file)
		return false;
	good = fscanf(file, "seed %llu epoch %llu messages %llu unsure %llu", &s, &e, &messages,
		      &unsure) == 4;
	fclose(file);
	if (!good)
		die("%s is not a state", state_path);
	*seed = s;
	*epoch = e;
	count.messages = messages;
	count.unsure = unsure;
	return true;
}

/* The corpus as it is: each sequence from a clean state.  Returns false on a fault. */
static bool run_corpus(void)
{
	struct dirent **names;
	int n, found;

	if (!corpus_dir)
		return true;
	found = scandir(corpus_dir, &names, is_text, by_name);
	if (found < 0)
		die("cannot read %s: %m", corpus_dir);
	for (n = 0; n < found; n++) {
		struct sequence s = {};
		char path[4096];
		size_t i;

		snprintf(path, sizeof(path), "%s/%s", corpus_dir, names[n]->d_name);
		if (!read_steps(path, &s))
			die("cannot read %s: %m", path);
		if (fails(&s)) {
			fprintf(stderr, "netlink: FAULT by %s:\n  %s\n", path, fault_text);
			free(s.steps);
			free(s.bytes);
			return false;
		}
		for (i = 0; i < s.count; i++)
			if (s.steps[i].len < 4096)
				add_copy(&corpus, &s, i);
		if (map)
			new_blocks();
		free(s.steps);
		free(s.bytes);
		free(names[n]);
		corpus_files++;
	}
	free(names);
	fprintf(stderr, "netlink: corpus: %d sequences, %u blocks\n", found, blocks);
	return true;
}

static bool fuzz(uint64_t seed, uint64_t first, uint64_t messages)
{
	/* Where a fault jumps back to, these count. */
	static uint64_t epoch, next_progress, next_state;
	static struct sequence s;
	static uint32_t quiet;

	next_progress = count.messages;
	next_state = count.messages;
	for (epoch = first; count.messages < messages; epoch++) {
		uint64_t until;

		save_state(seed, epoch);
		/* Now and then the namespace goes with all that is in it. */
		if (epoch % 8 == 7)
			leave_namespace();
		rng_state = seed * 0x9e3779b97f4a7c15ULL + epoch * 0xd1342543de82ef95ULL;
		s.count = 0;
		s.used = 0;
		if (setjmp(on_fault)) {
			report(&s, seed, epoch);
			return false;
		}
		setup();
		ask_the_family();
		until = count.messages + EPOCH;
		if (until > messages)
			until = messages;
		while (count.messages < until) {
			size_t from = s.count;
			uint32_t found;

			/* Small batches while there is much to find: what is kept is
			 * a batch.
			 */
			gen_batch(&s, map && quiet < 512 ? 1 + quiet / 8 : BATCH - 6);
			run_steps(&s, from, s.count);
			found = map ? new_blocks() : 0;
			quiet = found ? 0 : quiet + 1;
			if (found)
				save_batch(&s, from, found);
			if (count.messages >= next_progress) {
				progress("at");
				next_progress = count.messages + PROGRESS_EVERY;
			}
			if (count.messages >= next_state) {
				save_state(seed, epoch);
				next_state = count.messages + STATE_EVERY;
			}
		}
	}
	save_state(seed, epoch);
	return true;
}

static void allow_no_modprobe(char *old, size_t size)
{
	static const char * const wanted[] = {
		"dummy", "sch_tbf", "sch_htb", "sch_hfsc", "sch_drr", "sch_qfq", "sch_ets",
		"sch_prio", "sch_fq_codel", "cls_matchall", "cls_u32", "act_gact",
	};
	FILE *file = fopen("/proc/sys/kernel/modprobe", "r");
	char command[100];
	size_t n;

	old[0] = 0;
	if (!file)
		return;
	if (!fgets(old, size, file))
		old[0] = 0;
	fclose(file);
	for (n = 0; n < ARRAY_SIZE(wanted); n++) {
		snprintf(command, sizeof(command), "modprobe -q %s 2>/dev/null", wanted[n]);
		/* Built in, or not to be had: both good. */
		n += 0 * system(command);
	}
	/* A kind that nobody knows would start a program each time. */
	write_file("/proc/sys/kernel/modprobe", "\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "messages", 1, NULL, 'm' }, { "seed", 1, NULL, 's' }, { "corpus", 1, NULL, 'c' },
		{ "state", 1, NULL, 'S' }, { "epoch", 1, NULL, 'e' }, { "log", 1, NULL, 'l' },
		{ "replay", 1, NULL, 'r' }, { "fail", 1, NULL, 'f' }, { "max-new", 1, NULL, 'x' },
		{ "shrink", 1, NULL, 'h' }, {},
	};
	uint64_t messages = 20000, seed = 1, epoch = 0;
	const char *replay = NULL;
	char modprobe[256];
	int opt, before, n;
	static bool good = true;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'm':
			messages = strtoull(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			corpus_dir = optarg;
			break;
		case 'S':
			state_path = optarg;
			break;
		case 'e':
			epoch = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			replay = optarg;
			break;
		case 'f':
			fail_path = optarg;
			break;
		case 'x':
			max_new = strtoul(optarg, NULL, 0);
			break;
		case 'h':
			max_trials = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			log_file = fopen(optarg, "w");
			if (!log_file)
				die("cannot write %s: %m", optarg);
			break;
		default:
			die("see the head of netlink.c for the options");
		}
	}
	load_state(&seed, &epoch);
	frozen = !system("grep -q 'User Mode Linux' /proc/cpuinfo");
	before = users();
	allow_no_modprobe(modprobe, sizeof(modprobe));
	new_namespace();
	open_map();

	if (replay) {
		struct sequence s = {};

		if (!read_steps(replay, &s))
			die("cannot read %s: %m", replay);
		good = !fails(&s);
		if (!good)
			fprintf(stderr, "netlink: FAULT: %s\n", fault_text);
	} else {
		good = run_corpus() && fuzz(seed, epoch, messages);
	}
	progress("end:");

	/* Nothing is left: the devices, then the namespace. */
	open_sockets();
	if (setjmp(on_fault)) {
		fprintf(stderr, "netlink: FAULT at the end: %s\n", fault_text);
		good = false;
	} else {
		delete_devices();
		for (n = 0; n < DEVICES; n++) {
			char name[IFNAMSIZ];

			if (if_indextoname(IFINDEX + n, name))
				fault("the device %s is left", name);
		}
		new_namespace();
		/* Namespaces end in the background. */
		for (n = 0; users() != before && n < 1000; n++)
			usleep(10000);
		if (users() != before)
			fault("the module has %d users, before it had %d", users(), before);
	}
	if (modprobe[0])
		write_file("/proc/sys/kernel/modprobe", modprobe);
	fprintf(stderr, "netlink: %s\n", good ? "all good" : "NOT good");
	return good ? 0 : 1;
}
