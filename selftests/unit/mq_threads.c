// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shared clock with real threads, for gcc's thread sanitizer (test_mq_threads.sh). Which thread runs when is not
 * under control; what is checked holds for all orders: reservations are disjoint, link time is counted once, the scan is
 * done by one thread, and in the end no queue waits. Prints what does not hold.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define DUALPI2_ATOMIC_STEP(address, writes)	do { } while (0)
#include <net/dualpi2_mq.h>

#define THREADS	4
#define ROUNDS	20000

static struct dualpi2_mq_params params;
static struct dualpi2_mq_clock shared;
static struct dualpi2_mq_sum sum;
static atomic64_t hand;
static s64 begins[THREADS][ROUNDS];
static u64 l_sent[THREADS], scans[THREADS];

/* Each thread has a clock that goes on by its own packets, so that hands are ahead of some and behind others. */
static void *run(void *argument)
{
	int thread = (int)(intptr_t)argument;
	struct dualpi2_mq_queue q = {};
	u64 now = 1000000000, wake = 0;

	for (int i = 0; i < ROUNDS; i++) {
		u32 bytes = 60 + (i * 977 + thread) % 1440;

		begins[thread][i] = dualpi2_mq_reserve(&hand, i % 7 ? 0 : i * 10, 3, NULL);
		now += 4000;
		scans[thread] += dualpi2_mq_scan_due(&sum, now);
		dualpi2_mq_scanned(&sum, bytes);
		dualpi2_mq_c_begin(&shared, &q);
		if (dualpi2_mq_l_ready(&params, &shared, &q, bytes, 2 * bytes, now, &wake)) {
			dualpi2_mq_l_sent(&params, &shared, &q, bytes);
			l_sent[thread] += bytes * 8;
		}
		if (dualpi2_mq_c_ready(&params, &shared, &sum, &q, bytes, 2 * bytes, now, &wake))
			dualpi2_mq_c_sent(&params, &q, bytes);
		if (i % 3)
			dualpi2_mq_c_empty(&shared, &q);
	}
	dualpi2_mq_queue_reset(&params, &shared, &q);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	s64 one = *(const s64 *)a, two = *(const s64 *)b;

	return (one > two) - (one < two);
}

int main(void)
{
	struct dualpi2_link link = { .ns_per_byte_q20 = 8 << 20, .late_max_ns = DUALPI2_LATE_MAX_NS };
	s64 *all = begins[0], sent = 0, scanned = 0;
	pthread_t threads[THREADS];
	int failed = 0;

	dualpi2_mq_init(&params, &link, 90, 1500, THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 2;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sent += l_sent[i];
		scanned += scans[i];
	}
	qsort(all, THREADS * ROUNDS, sizeof(*all), by_value);
	for (int i = 1; i < THREADS * ROUNDS; i++)
		failed |= all[i] < all[i - 1] + 3;
	if (failed)
		printf("reservations overlap\n");
	if (atomic64_read(&shared.l_used_ns) != sent)
		printf("L4S used %lld ns, counted are %lld\n", (long long)sent, (long long)atomic64_read(&shared.l_used_ns));
	if (atomic_read(&shared.c_waiting))
		printf("%d queues wait in the end\n", atomic_read(&shared.c_waiting));
	if (!scanned || scanned > ROUNDS * 4000 / DUALPI2_MQ_SCAN_NS + 1)
		printf("%lld scans\n", (long long)scanned);
	return failed || atomic64_read(&shared.l_used_ns) != sent || atomic_read(&shared.c_waiting) || !scanned ||
	       scanned > ROUNDS * 4000 / DUALPI2_MQ_SCAN_NS + 1;
}
