// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shared clock under interleavings of its atomic operations. Threads are coroutines; each gives way before every
 * atomic operation, and a scheduler decides which one does the next.
 */
#include <ucontext.h>
#include "mq_test.h"

#define STEPS_THREADS	3
#define STEPS_STACK	(256 * 1024)
#define STEPS_DEPTH	64

static struct {
	ucontext_t scheduler, threads[STEPS_THREADS];
	void (*body)(int thread);
	char *stacks;
	int number, current;
	bool ended[STEPS_THREADS];
} steps;

static void steps_give_way(void)
{
	if (steps.current >= 0)
		swapcontext(&steps.threads[steps.current], &steps.scheduler);
}

static void steps_thread(void)
{
	steps.body(steps.current);
	steps.ended[steps.current] = true;
}

static void steps_begin(int number, void (*body)(int thread))
{
	if (!steps.stacks)
		steps.stacks = unit_alloc(STEPS_THREADS, STEPS_STACK);
	steps.number = number;
	steps.body = body;
	for (int i = 0; i < number; i++) {
		getcontext(&steps.threads[i]);
		steps.threads[i].uc_stack.ss_sp = steps.stacks + i * STEPS_STACK;
		steps.threads[i].uc_stack.ss_size = STEPS_STACK;
		steps.threads[i].uc_link = &steps.scheduler;
		makecontext(&steps.threads[i], steps_thread, 0);
		steps.ended[i] = false;
	}
	dualpi2_atomic_step = steps_give_way;
}

/* One thread goes on to its next atomic operation. */
static void steps_do(int thread)
{
	steps.current = thread;
	swapcontext(&steps.scheduler, &steps.threads[thread]);
	steps.current = -1;
}

static int steps_left(void)
{
	int left = 0;

	for (int i = 0; i < steps.number; i++)
		left += !steps.ended[i];
	return left;
}

/* The thread that is the n-th of those that have not ended. */
static int steps_nth(int n)
{
	for (int i = 0; i < steps.number; i++)
		if (!steps.ended[i] && !n--)
			return i;
	return -1;
}

static void steps_end(void)
{
	free(steps.stacks);
	steps.stacks = NULL;
	dualpi2_atomic_step = NULL;
}

/* ---- two threads, two reservations each, in every order ---- */

static struct {
	atomic64_t hand;
	s64 floor[2][2], start[2][2];
	u64 time[2][2], idle[2];
} pairs;

static void steps_pair(int thread)
{
	for (int i = 0; i < 2; i++)
		pairs.start[thread][i] = dualpi2_mq_reserve(&pairs.hand, pairs.floor[thread][i], pairs.time[thread][i],
							    &pairs.idle[thread]);
}

static void steps_check_pairs(void)
{
	u64 reserved = 0;

	for (int a = 0; a < 4; a++) {
		s64 begin = pairs.start[a / 2][a % 2], end = begin + pairs.time[a / 2][a % 2];

		reserved += end - begin;
		CHECK(begin >= pairs.floor[a / 2][a % 2], "begins before the floor");
		for (int b = 0; b < a; b++) {
			s64 other = pairs.start[b / 2][b % 2], other_end = other + pairs.time[b / 2][b % 2];

			CHECK(end <= other || other_end <= begin, "%lld..%lld and %lld..%lld overlap", (long long)begin,
			      (long long)end, (long long)other, (long long)other_end);
		}
	}
	CHECK_EQ(pairs.hand.counter, 100 + reserved + pairs.idle[0] + pairs.idle[1]);
}

/* Follow the path of choices as far as it goes, then take the first thread. Return: length of the path. */
static int steps_follow(int *path, int *width, int length)
{
	s64 hand = 100;
	int depth = 0;

	pairs.hand.counter = hand;
	memset(pairs.idle, 0, sizeof(pairs.idle));
	steps_begin(2, steps_pair);
	while (steps_left()) {
		CHECK(depth < STEPS_DEPTH, "a loop does not end");
		if (depth >= length)
			path[depth] = 0;
		width[depth] = steps_left();
		steps_do(steps_nth(path[depth++]));
		CHECK(pairs.hand.counter >= hand, "the hand fell");
		hand = pairs.hand.counter;
	}
	steps_check_pairs();
	return depth;
}

UNIT_TEST(mq_steps_every_order_of_two_threads_with_two_reservations)
{
	static const s64 floors[][4] = {
		{ 0, 0, 0, 0 }, { 110, 0, 110, 0 }, { 120, 130, 110, 140 }, { 110, 150, 150, 110 }, { 105, 115, 106, 116 },
	};
	ull orders = 0;

	for_each(floor, floors) {
		int path[STEPS_DEPTH] = {}, width[STEPS_DEPTH], length = 0;

		for (int i = 0; i < 4; i++) {
			pairs.floor[i / 2][i % 2] = (*floor)[i];
			pairs.time[i / 2][i % 2] = 3 + 4 * i;
		}
		do {
			length = steps_follow(path, width, length);
			orders++;
			while (length && path[length - 1] + 1 >= width[length - 1])
				length--;
			if (length)
				path[length - 1]++;
		} while (length);
	}
	steps_end();
	/* (4 steps each: 70) at least: two steps a reservation, and one more to begin and to end */
	CHECK(orders > 5 * 70, "%llu orders", orders);
}

/* ---- three queues with random packets ---- */

struct steps_queue {
	u32 c[64], l[64];
	u32 c_bytes, l_bytes;
	int c_pkts, l_pkts, left;
	u64 served_ns;
};

static struct {
	struct mq_world w;
	struct steps_queue q[STEPS_THREADS];
	u64 now_ns, gap_ns, begin_ns;
	long double sent_ns, least_ns, excess_ns;
	u32 bytes_max;
	int quiet;	/* percent of rounds without a new packet */
} steps_load;

static void steps_sent(u32 bytes)
{
	long double ahead, ns = (long double)bytes * steps_load.w.p.ns_per_byte_q20 / (1 << 20);

	ahead = steps_load.sent_ns - (steps_load.now_ns - steps_load.begin_ns);
	steps_load.least_ns = ahead < steps_load.least_ns ? ahead : steps_load.least_ns;
	steps_load.sent_ns += ns;
	ahead += ns;
	if (ahead - steps_load.least_ns > steps_load.excess_ns)
		steps_load.excess_ns = ahead - steps_load.least_ns;
}

static u32 steps_take(u32 *packets, int *count, u32 *bytes)
{
	u32 first = packets[0];

	memmove(packets, packets + 1, --*count * sizeof(*packets));
	*bytes -= first;
	return first;
}

static void steps_arrive(struct dualpi2_mq_queue *q, struct steps_queue *mine)
{
	u32 bytes = unit_between(40, steps_load.bytes_max);

	if ((int)(unit_rnd() % 100) < steps_load.quiet || !mine->left)
		return;
	mine->left--;
	if (unit_rnd() & 1) {
		if (mine->l_pkts < 64) {
			mine->l[mine->l_pkts++] = bytes;
			mine->l_bytes += bytes;
		}
	} else if (mine->c_pkts < 64) {
		mine->c[mine->c_pkts++] = bytes;
		mine->c_bytes += bytes;
		dualpi2_mq_c_begin(&steps_load.w.clock, q);
	}
}

/* One packet, if one may leave; each eighth Classic packet is dropped. */
static bool steps_serve(struct dualpi2_mq_queue *q, struct steps_queue *mine, u64 now)
{
	struct mq_world *w = &steps_load.w;
	u64 wake = 0;
	u32 bytes;

	if (mine->l_pkts && dualpi2_mq_l_ready(&w->p, &w->clock, q, mine->l[0], mine->l_bytes, now, &wake)) {
		bytes = steps_take(mine->l, &mine->l_pkts, &mine->l_bytes);
		steps_sent(bytes);
		dualpi2_mq_l_sent(&w->p, &w->clock, q, bytes);
		if (!mine->l_pkts)
			dualpi2_mq_l_empty(q);
		return true;
	}
	CHECK(!mine->l_pkts || wake > now, "no time to ask again for L4S");
	wake = 0;
	if (mine->c_pkts && dualpi2_mq_c_ready(&w->p, &w->clock, &w->sum, q, mine->c[0], mine->c_bytes, now, &wake)) {
		bytes = steps_take(mine->c, &mine->c_pkts, &mine->c_bytes);
		if (unit_rnd() % 8) {
			steps_sent(bytes);
			dualpi2_mq_c_sent(&w->p, q, bytes);
		}
		if (!mine->c_pkts)
			dualpi2_mq_c_empty(&w->clock, q);
		return true;
	}
	CHECK(!mine->c_pkts || wake > now, "no time to ask again for Classic");
	return false;
}

static void steps_queue(int thread)
{
	struct dualpi2_mq_queue *q = &steps_load.w.q[thread];
	struct steps_queue *mine = &steps_load.q[thread];
	u64 sum = 0;

	while (mine->left || mine->c_pkts || mine->l_pkts) {
		steps_load.gap_ns = steps_load.now_ns - mine->served_ns > steps_load.gap_ns ? steps_load.now_ns - mine->served_ns : steps_load.gap_ns;
		mine->served_ns = steps_load.now_ns;
		steps_arrive(q, mine);
		if (dualpi2_mq_scan_due(&steps_load.w.sum, steps_load.now_ns)) {
			for (int i = 0; i < STEPS_THREADS; i++)
				sum += steps_load.q[i].c_bytes;
			dualpi2_mq_scanned(&steps_load.w.sum, sum);
			sum = 0;
		}
		while (steps_serve(q, mine, steps_load.now_ns))
			;
		steps_give_way();
	}
}

static void steps_run_load(u64 rate, u32 bytes_max)
{
	struct mq_world *w = &steps_load.w;
	s64 l_used = 0, l_next = 0, c_next = 0;
	ull count = 0;

	memset(&steps_load, 0, sizeof(steps_load));
	*w = mq_world(rate, STEPS_THREADS, false);
	steps_load.bytes_max = bytes_max;
	steps_load.quiet = unit_between(0, 90);
	steps_load.begin_ns = unit_between(0, SEC);
	steps_load.now_ns = steps_load.begin_ns;
	for (int i = 0; i < STEPS_THREADS; i++) {
		steps_load.q[i].left = 150;
		steps_load.q[i].served_ns = steps_load.now_ns;
	}
	steps_begin(STEPS_THREADS, steps_queue);
	while (steps_left()) {
		CHECK(++count < 100000000, "never ends");
		steps_load.now_ns += unit_between(0, 2 * w->p.mtu_ns / 16);
		steps_do(steps_nth(unit_rnd() % steps_left()));
		CHECK(w->clock.l_used_ns.counter >= l_used, "L4S's time fell");
		CHECK(w->clock.l_next_ns.counter >= l_next, "L4S's hand fell");
		CHECK(w->clock.c_next_ns.counter >= c_next, "Classic's hand fell");
		CHECK(w->clock.c_waiting.counter >= 0 && w->clock.c_waiting.counter <= STEPS_THREADS, "%d queues wait",
		      w->clock.c_waiting.counter);
		l_used = w->clock.l_used_ns.counter;
		l_next = w->clock.l_next_ns.counter;
		c_next = w->clock.c_next_ns.counter;
	}
	CHECK_EQ(w->clock.c_waiting.counter, 0);
}

UNIT_TEST(mq_steps_random_orders_of_three_queues_hold_the_rate)
{
	for (int i = 0; i < 60; i++) {
		static const u64 rates[] = { 12500000, 125000000, 1250000000 };
		u32 bytes_max = unit_rnd() % 4 ? 1500 : 9000;
		struct mq_world *w = &steps_load.w;
		u64 packet, bound;

		steps_run_load(rates[i % 3], bytes_max);
		packet = dualpi2_bytes_ns(w->p.ns_per_byte_q20, bytes_max) + 1;
		bound = (packet > w->p.horizon_ns ? packet : w->p.horizon_ns) +
			(packet > w->p.l_ticket_ns ? packet : w->p.l_ticket_ns) + STEPS_THREADS * w->p.debt_max_ns +
			2 * STEPS_THREADS * packet + 2 * DUALPI2_MQ_EARLY_NS + STEPS_THREADS * steps_load.gap_ns;
		CHECK(steps_load.excess_ns <= bound, "%Lf ns ahead at %llu bytes/s, at most %llu", steps_load.excess_ns,
		      (ull)rates[i % 3], (ull)bound);
		for (int k = 0; k < STEPS_THREADS; k++)
			dualpi2_mq_settle(&w->p, &w->clock, &w->q[k]);
	}
	steps_end();
}
