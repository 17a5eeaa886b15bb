// SPDX-License-Identifier: GPL-2.0-only
/*
 * The algorithm alone, in user space, on this processor: nanoseconds of each of its parts, and cycles and instructions
 * where the kernel lets a program count them. No packets, no locks, no netlink; scripts/bench.sh stats and compare say
 * what a packet costs in a kernel. Nothing is judged here: the figures are those of a processor and of its load.
 *
 * usage: native [ROUNDS]     default 200; of each part's rounds the best counts
 *
 * Input comes from memory, filled at random as it begins, state is read again each time, and every result goes into a
 * sum that is kept, so that no compiler can leave something out. Each part runs again and again, as for a queue of
 * packets, and the processor does as much of that at once as it can.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <net/dualpi2.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define N		1024U	/* decisions with input of their own */
#define TIMES		16U	/* they are taken so often in a round */
#define MTU_BYTES	1514U

struct state {
	struct dualpi2_params params;
	struct dualpi2_vars vars;
	struct dualpi2_delay delay;
	struct dualpi2_clock clock;
	u64 now_ns;
};

/* What a round of one part is given. */
static struct dualpi2_packet packets[N];
static u32 numbers[N];
static volatile u64 kept;

#define PART(name, expression)							\
	static __attribute__((noinline)) void name(struct state *s)		\
	{									\
		u64 sum = 0;							\
		u32 time, i;							\
										\
		for (time = 0; time < TIMES; time++)				\
			for (i = 0; i < N; i++) {				\
				/* All is read again. */				\
				__asm__ volatile("" : : "r" (s) : "memory");	\
				sum += (expression);				\
			}							\
		kept = kept + sum;						\
	}

PART(run_nothing, numbers[i])
PART(run_verdict, dualpi2_verdict(&s->params, &s->vars, &packets[i]))
PART(run_link_bytes, dualpi2_link_bytes(&s->params.link, numbers[i]))

static inline u64 schedule(struct state *s, u32 number)
{
	/* Which queues wait: one of them, the other, or both. */
	u32 waits = 1 + number % 3;
	enum dualpi2_queue queue = dualpi2_sched_pick(&s->vars, waits & 1, waits >> 1);

	dualpi2_sched_charge(&s->params, &s->vars, queue, waits & 1, waits >> 1, number);
	return queue;
}
PART(run_scheduler, schedule(s, numbers[i]))

static inline u64 count_in(struct state *s, u32 number)
{
	/* prepare() gives one; for clang's analyzer, which begins here. */
	if (!s->delay.hist)
		__builtin_unreachable();
	dualpi2_delay_add(&s->delay, (u64)number << 12);
	return 0;
}
PART(run_histogram, count_in(s, numbers[i]))

static inline u64 update(struct state *s, u32 i)
{
	/* As often above the target as below it, so that p' stays where it is. */
	u32 off_ns = numbers[i / 2] << 9;

	s->now_ns += s->params.tupdate_ns + numbers[i];
	dualpi2_pi_update(&s->params, &s->vars, i % 2 ? s->params.target_ns + off_ns : s->params.target_ns - off_ns,
			  s->now_ns);
	return s->vars.coupled_q32;
}
PART(run_update, update(s, i))

static inline u64 leave(struct state *s, u32 number)
{
	if (dualpi2_clock_wait(&s->clock, s->now_ns))
		s->now_ns = s->clock.next_ns;
	dualpi2_clock_send(&s->params.link, &s->clock, number, s->now_ns);
	return s->clock.next_ns;
}
PART(run_clock, leave(s, numbers[i]))

/* Each part: p' in percent, the profile of its packets and their delays, and the link. */
static const struct part {
	const char *name;
	void (*run)(struct state *s);
	unsigned int p_pct;
	enum dualpi2_profile profile;
	u32 delay_ns, spread_ns;
	bool random;
	u8 framing;
} parts[] = {
	{ .name = "the loop alone", .run = run_nothing },
	{ "verdict, Classic, p' = 0", run_verdict, 0, DUALPI2_C_DROP, 5000000, 20000000, false, 0 },
	{ "verdict, Classic, p' = 1 %", run_verdict, 1, DUALPI2_C_DROP, 5000000, 20000000, false, 0 },
	{ "verdict, Classic, p' = 10 %", run_verdict, 10, DUALPI2_C_DROP, 5000000, 20000000, false, 0 },
	{ "verdict, Classic, overload", run_verdict, 60, DUALPI2_C_DROP, 5000000, 20000000, false, 0 },
	{ "verdict, Classic, p' = 10 %, random", run_verdict, 10, DUALPI2_C_DROP, 5000000, 20000000, true, 0 },
	{ "verdict, L4S, p' = 0", run_verdict, 0, DUALPI2_L_SCALABLE, 0, 800000, false, 0 },
	{ "verdict, L4S, p' = 1 %", run_verdict, 1, DUALPI2_L_SCALABLE, 0, 800000, false, 0 },
	{ "verdict, L4S, p' = 10 %", run_verdict, 10, DUALPI2_L_SCALABLE, 0, 800000, false, 0 },
	{ "verdict, L4S, overload", run_verdict, 60, DUALPI2_L_SCALABLE, 0, 800000, false, 0 },
	{ "verdict, L4S, p' = 1 %, on the ramp", run_verdict, 1, DUALPI2_L_SCALABLE, 800000, 400000, false, 0 },
	{ .name = "scheduler, pick and charge", .run = run_scheduler },
	{ .name = "histogram, add", .run = run_histogram },
	{ .name = "controller, update", .run = run_update, .p_pct = 10 },
	{ .name = "link, length on Ethernet", .run = run_link_bytes, .framing = DUALPI2_FRAMING_NOATM },
	{ .name = "link, length on ATM", .run = run_link_bytes, .framing = DUALPI2_FRAMING_ATM },
	{ .name = "shaper's clock, wait and send", .run = run_clock },
};

/* xorshift64: the same numbers each time. */
static u64 next(void)
{
	static u64 x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void prepare(const struct part *part, struct state *s)
{
	static struct dualpi2_hist hist;
	struct dualpi2_config config;
	u32 i;

	dualpi2_config_init(&config);
	config.bandwidth = 12500000;	/* 100 Mbit/s */
	config.framing = part->framing;
	config.overhead_bytes = 38;
	config.signal = part->random ? DUALPI2_SIGNAL_RANDOM : DUALPI2_SIGNAL_RECUR;
	*s = (struct state) { .now_ns = DUALPI2_NS_PER_SEC };
	dualpi2_params_init(&s->params, &config);
	dualpi2_vars_init(&s->params, &s->vars, MTU_BYTES, s->now_ns);
	s->vars.base_q32 = DUALPI2_ONE_Q32 * part->p_pct / 100;
	dualpi2_vars_derive(&s->params, &s->vars, s->now_ns);
	s->delay.hist = &hist;
	dualpi2_delay_init(&s->delay, dualpi2_hist_shift(config.hist_c_us));
	for (i = 0; i < N; i++) {
		numbers[i] = 64 + next() % (MTU_BYTES - 64);
		packets[i] = (struct dualpi2_packet) {
			.profile = part->profile,
			.native_ok = true,
			.may_drop = true,
			.l_pkts = 10,
			.delay_ns = part->delay_ns + (part->spread_ns ? next() % part->spread_ns : 0),
			.rnd = next(),
		};
	}
}

/* Two counters of this program alone, read as one; -1 where there are none. */
static int counters_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.read_format = PERF_FORMAT_GROUP,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int leader = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	if (leader >= 0 && syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0) < 0) {
		int error = errno;

		close(leader);
		errno = error;
		return -1;
	}
	return leader;
}

struct counts {
	u64 ns, cycles, instructions;
};

static struct counts look(int counters)
{
	struct { u64 n, cycles, instructions; } now = { 0, 0, 0 };
	struct timespec t;

	if (counters >= 0 && read(counters, &now, sizeof(now)) != sizeof(now)) {
		perror("native: perf counters");
		exit(1);
	}
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (struct counts) { (u64)t.tv_sec * DUALPI2_NS_PER_SEC + t.tv_nsec, now.cycles, now.instructions };
}

static void measure(const struct part *part, int counters, unsigned long rounds)
{
	struct counts best = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
	double each = N * TIMES;
	struct state s;

	prepare(part, &s);
	part->run(&s);
	while (rounds--) {
		struct counts before = look(counters), after;

		part->run(&s);
		after = look(counters);
		best.ns = min_t(u64, best.ns, after.ns - before.ns);
		best.cycles = min_t(u64, best.cycles, after.cycles - before.cycles);
		best.instructions = min_t(u64, best.instructions, after.instructions - before.instructions);
	}
	printf("| %s | %.2f |", part->name, best.ns / each);
	if (counters >= 0)
		printf(" %.1f | %.1f |", best.cycles / each, best.instructions / each);
	putchar('\n');
}

static void print_processor(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256], name[200] = "an unknown processor";

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %199[^\n]", name) == 1)
			break;
	if (file)
		fclose(file);
	puts(name);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 2 ? strtoul(argv[1], NULL, 10) : 200;
	int counters;
	size_t i;

	if (argc > 2 || !rounds) {
		fprintf(stderr, "native: usage: native [ROUNDS]\n");
		return 2;
	}
	print_processor();
	counters = counters_open();
	if (counters < 0)
		printf("No cycles and instructions: perf_event_open: %s.\n", strerror(errno));
	printf("\n| of the algorithm, best of %lu rounds of %u | ns |%s\n|---|---|%s\n", rounds, N * TIMES,
	       counters < 0 ? "" : " cycles | instructions |", counters < 0 ? "" : "---|---|");
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		measure(&parts[i], counters, rounds);
	return 0;
}
