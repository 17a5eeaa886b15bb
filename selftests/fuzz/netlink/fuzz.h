/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the netlink fuzzer; ../netlink.c says what it does. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "../nl.h"
#include "../options.h"
#include "../stats.h"
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <net/if.h>

#define IFINDEX		1000	/* of the first device */
#define GROUP		77	/* of all devices, to delete them at once */

/* ---- steps.c: a sequence of steps, and its text ---- */

enum step_kind { STEP_NL, STEP_TX, STEP_WAIT };

struct step {
	uint8_t kind;
	bool oracle;		/* a query of the fuzzer's own, not a message under test */
	uint16_t type, flags;	/* STEP_NL */
	uint32_t len;
	size_t at;		/* in bytes[] of the sequence */
	uint32_t arg[6];	/* STEP_TX, STEP_WAIT */
};

struct sequence {
	struct step *steps;
	size_t count, room;
	uint8_t *bytes;
	size_t used, space;
};

struct step *add_step(struct sequence *s, enum step_kind kind);
struct step *add_nl(struct sequence *s, uint16_t type, uint16_t flags, const void *data, uint32_t len);
struct step *add_msg(struct sequence *s);	/* the message m */
void add_copies(struct sequence *to, const struct sequence *from, size_t first, size_t end, uint32_t len_max);
void free_sequence(struct sequence *s);
void write_case(const char *path, const char *mode, const char *name, const char *reason, const struct sequence *s,
		size_t first);
bool read_case(FILE *file, struct sequence *s, char *name, size_t size);

static inline bool is_dump(const struct step *s)
{
	return (s->type & 3) == 2 && (s->flags & NLM_F_DUMP);
}

/* ---- model.c: which messages are accepted, and what is then there ---- */

struct config {
	uint64_t v[OPTIONS];
	bool limit_is_set, memory_is_set, ramp_is_set;
};

enum slot_state { NONE, OTHER, DUALPI2, UNKNOWN };

#define MTUS	4

/* A place for a qdisc. */
struct slot {
	int dev;
	int up;			/* the slot of the parent, -1: the device */
	uint32_t clid;		/* classid of this place */
	bool any_minor;		/* the parent has one class and takes any name for it */
	bool leaf;		/* dualpi2 is there at the begin */
	enum slot_state state;
	char kind[IFNAMSIZ];	/* OTHER */
	uint32_t handle;	/* 0: the kernel chose one, not seen yet */
	struct config cfg;	/* DUALPI2 */
	uint32_t mtus[MTUS];	/* that the memory limit may be computed from */
	int n_mtus;		/* 0: too many of them */
	bool trimmed;		/* nothing came in since the last change */
	bool was_bypass;	/* DUALPI2: now or earlier */
	bool was_qprotect;
	uint32_t dump;		/* the last dump that showed it, and then: */
	uint32_t qlen, backlog;
	uint8_t nest[QUEUES][1280];	/* DUALPI2: statistics of C and L */
	int nest_len[QUEUES];
};

struct device {
	const char *kind;	/* of the parent that has the classes, NULL: none */
	uint32_t mtu;
	int first, end;		/* its slots */
};

enum { D_ROOT, D_TBF, D_HTB, D_HFSC, D_DRR, D_QFQ, D_ETS, D_PRIO, D_MQ, DEVICES };

extern struct device devices[DEVICES];
extern struct slot slots[40];
extern int n_slots;

extern struct counts {
	ull messages, accepted, refused, unsure, checked, frames, classes, reports;
	ull refused_by_dualpi2, changes, creations;
} count;

#define ATTRS	(TCA_EGRESS_BLOCK + 1)

/* A message or reply about traffic control. Of several attributes of a type the last counts. */
struct tc_msg {
	struct tcmsg t;
	struct device *dev;	/* NULL: none of the fuzzer's */
	const char *kind;	/* NULL: no attribute */
	char name[IFNAMSIZ];
	const uint8_t *p[ATTRS];
	int len[ATTRS];
};

bool tc_parse(struct tc_msg *msg, const uint8_t *data, int len);
struct device *device_of(int ifindex);
struct slot *slot_of(const struct device *dev, uint32_t clid);
const char *hex(const uint8_t *p, int len);
bool limit_may_be_raised(const struct config *c);
uint64_t limit_of(const struct config *c);
int encode(const struct config *c, uint32_t mtu, const uint8_t *shown, int len, uint8_t *buf);
void make_slots(void);
void model_answer(const struct step *step, const uint8_t *data, int error, const char *text);
void model_not_trimmed(void);

/* ---- check.c: what a dump shows, against the model ---- */

void check_shown(const uint8_t *data, int len, bool in_dump);
void check_class(const uint8_t *data, int len, bool just_dumped);
void check_trees(void);
void check_end_of_dump(void);

/* ---- devices.c: devices and their qdiscs at the begin ---- */

uint32_t handle_of(int slot);
void gen_link(struct sequence *s, int dev, unsigned int up, int attr_type, uint32_t value);
void gen_qdiscs(struct sequence *s, int dev);
void gen_get(struct sequence *s, int slot);
void gen_dump(struct sequence *s);
void delete_devices(void);
void leave_namespace(void);
void setup(void);

/* ---- generate.c: random messages and traffic ---- */

extern struct sequence corpus;	/* messages to draw on */

void gen_batch(struct sequence *s, uint32_t size);

/* ---- run.c: sends the steps ---- */

void open_sockets(void);
void new_namespace(void);
void write_file(const char *path, const char *text);
void ask_the_family(void);
void run_steps(const struct sequence *s, size_t first, size_t end);

#endif
