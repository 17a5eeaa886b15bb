/* SPDX-License-Identifier: GPL-2.0-only */
/* Netlink by hand, random numbers and faults, shared by netlink and storm. */
#ifndef FUZZ_NL_H
#define FUZZ_NL_H

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BATCH		64	/* messages in one system call */
#define MSG_MAX		70000
#define REPLY_MAX	8192	/* the kernel sends a page at a time */

typedef unsigned long long ull;

/* Random numbers: splitmix64, the same on every machine. Each thread has its own. */
extern _Thread_local uint64_t rnd_state;

uint64_t rnd64(void);

static inline uint32_t rnd(uint32_t n)
{
	return n ? (rnd64() >> 32) * n >> 32 : 0;
}

static inline bool chance(uint32_t permille)
{
	return rnd(1000) < permille;
}

#define PICK(array)	((array)[rnd(ARRAY_SIZE(array))])

/* It cannot run here: exit 2. The module is wrong: what the program makes of that. */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void fault(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static inline uint16_t get16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t get32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t get64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Attributes */
uint8_t *put_nla(uint8_t *p, uint16_t type, const void *data, uint16_t len);
/* The first attribute of a type, or NULL with a length of 0. */
const uint8_t *find(const uint8_t *p, int len, int type, int *found);

/* The message being written, without its netlink header. */
struct msg {
	uint16_t type, flags;
	int len;
	uint8_t data[MSG_MAX];
};

extern _Thread_local struct msg m;

void msg_begin(uint16_t type, uint16_t flags, const void *head, int len);
void msg_tc(uint16_t type, uint16_t flags, int ifindex, uint32_t handle, uint32_t parent, uint32_t info);
void attr(uint16_t type, const void *data, int len);
void attr_str(uint16_t type, const char *text);
void attr32(uint16_t type, uint32_t value);
int nest(uint16_t type);
void nest_end(int at);

/* A socket, and messages to be sent together. */
struct nl {
	int fd;
	uint32_t first, next;	/* sequence numbers of the messages in buf */
	size_t len;
	_Alignas(8) uint8_t buf[BATCH * 4096 + 2 * MSG_MAX];
};

/* An answer to message n of a batch: a piece of a reply, or the last one, with error and text. */
typedef void (*nl_answer)(void *arg, uint32_t n, const struct nlmsghdr *h, bool last, int error, const char *text);

void nl_open(struct nl *nl, int protocol);
void nl_add(struct nl *nl, uint16_t type, uint16_t flags, const void *data, uint32_t len);
void nl_flush(struct nl *nl, nl_answer answer, void *arg);

#endif
