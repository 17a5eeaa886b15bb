/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of storm; ../storm.c says what it does. */
#ifndef FUZZ_STORM_H
#define FUZZ_STORM_H

#include "../nl.h"
#include "../options.h"
#include "../stats.h"

#define LIMIT_MAX	200	/* packets: some 240 ms at 10 Mbit/s */
#define MEMORY_MAX	(1 << 20)

extern struct opt {
	const char *dev, *kind, *with;
	uint32_t parent, handle;
	uint64_t messages, seed;
	bool abuse, two;
} opt;
extern int ifindex;
extern ull done;	/* requests */

void add_message(struct nl *nl);	/* the message m */
void flush(struct nl *nl);
void msg_qdisc(uint16_t type, uint16_t flags, uint32_t parent, uint32_t handle, const char *kind);
void traffic_open(void);
void traffic_send(void);
void pause_us(long us);
void progress(ull more);
void pin(int cpu);
void run_race(void);

/* Each adds one request. */
void add_limits(struct nl *nl, uint32_t limit, uint32_t memory);
void change(struct nl *nl);
void replace(struct nl *nl);
void flap_link(struct nl *nl);		/* two requests; the qdisc is reset */
void change_txqlen(struct nl *nl);
void toggle_filter(struct nl *nl);
/* Sends some of its own. */
void abuse(struct nl *nl);

#endif
