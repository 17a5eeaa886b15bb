// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several transmit queues that share one rate: a simulation of discrete events with the algorithm's own headers.
 *
 *	mq_sim one|cake|mq RATE_MBIT QUEUES FLOWS [warm=S] [end=S] [stall=MS] [seed=N]
 *
 *	one	one queue with one shaper: what the others are to be like
 *	cake	an AQM and a shaper for each queue, each with rate / active queues, checked every 200 us: cake_mq's rule
 *	mq	net/dualpi2_mq.h, one PI controller
 *
 * FLOWS are separated by commas: C:QUEUE:RTT_MS is Reno with the factors of CUBIC, L is DCTCP, both paced;
 * u:QUEUE:MBIT[:BYTES[:ON_MS:OFF_MS]] is an unresponsive Classic flow, U an unresponsive L4S flow.
 *
 * Each queue has a processor of its own. Timers are late by 1 to 8 us, one in a thousand by 100 us. stall: queue 0 is
 * not served for the first so many ms of each 200 ms. "behind" is a virtual queue of the same rate after all queues.
 * A transfer is an access to the shared clock by another queue than the one before.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_access(const void *address, bool writes);

#define DUALPI2_ATOMIC_STEP(address, writes)	count_access(address, writes)
#include <net/dualpi2.h>
#include <net/dualpi2_mq.h>

#define MAXQ	64
#define MAXF	512
#define MAXE	(1 << 20)
#define MTU	1500
#define BINS	20000		/* histograms: of 1 us */
#define US	1e3
#define MS	1e6
#define SEC	1e9
#define LATE_NS	DUALPI2_LATE_EXACT_NS
#define PI_NS	16000000
#define CAKE_NS	200000
#define CYCLE_NS 200000000

enum mode { ONE, CAKE, MQ };
enum type { SEND, ACK, TIMER, PI, SCAN };

struct packet { int flow, bytes; u64 since; struct packet *next; };
struct fifo { struct packet *head, *tail; u64 bytes; int pkts; };
struct histogram { u64 packets; double sum, max; unsigned int bins[BINS]; };
struct flow {
	int queue, size;
	bool l4s, open, armed, on;
	double cwnd, ssthresh, alpha, next, interval, on_ns, off_ns, phase, rtt, recover, round;
	u64 in_flight, acked, marked;
	double out;
};
struct queue {
	struct fifo fifo[DUALPI2_QUEUES];
	struct dualpi2_vars vars;
	struct dualpi2_mq_queue mq;
	double next, ns_per_byte, active;
	u64 timer, checked;
};
struct event { u64 time; enum type type; int of, bytes; bool marked, dropped; };

static struct dualpi2_params params;
static struct dualpi2_mq_params mq_params;
static struct dualpi2_mq_clock mq_clock;
static struct dualpi2_mq_sum mq_sum;
static struct dualpi2_vars shared;
static struct queue queues[MAXQ];
static struct flow flows[MAXF];
static struct event heap[MAXE];
static struct histogram l_wait, c_wait, behind;
static enum mode mode;
static int queue_count, flow_count, event_count, current;
static double ns_per_byte, warm = 3, end = 10, virtual_ns, virtual_time, total_out;
static u64 now, stall, seed = 1, changes, transfers, wakes, sent;

static double random_part(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) / 9007199254740992.0;
}

static bool measured(void)
{
	return now > warm * SEC;
}

static void count_access(const void *address, bool writes)
{
	static int owner = -1;
	const char *at = address, *line = (char *)&mq_clock;

	if (at < line || at >= line + sizeof(mq_clock) || !measured())
		return;
	changes += writes;
	transfers += owner != current;
	owner = current;
}

static void add(struct histogram *h, double ns)
{
	int bin = ns / US;

	h->packets++;
	h->sum += ns;
	h->max = fmax(h->max, ns);
	h->bins[bin < BINS ? bin : BINS - 1]++;
}

static int percentile_us(const struct histogram *h, double part)
{
	u64 below = 0;

	for (int bin = 0; bin < BINS; bin++) {
		below += h->bins[bin];
		if (below >= h->packets * part)
			return bin + 1;
	}
	return 0;
}

static void schedule(struct event event)
{
	int at = event_count++, parent;

	if (event_count == MAXE) {
		fprintf(stderr, "mq_sim: too many events\n");
		exit(1);
	}
	for (; at; at = parent) {
		parent = (at - 1) / 2;
		if (heap[parent].time <= event.time)
			break;
		heap[at] = heap[parent];
	}
	heap[at] = event;
}

static struct event next_event(void)
{
	struct event first = heap[0], last = heap[--event_count];
	int at = 0, child;

	for (; (child = 2 * at + 1) < event_count; at = child) {
		if (child + 1 < event_count && heap[child + 1].time < heap[child].time)
			child++;
		if (heap[child].time >= last.time)
			break;
		heap[at] = heap[child];
	}
	heap[at] = last;
	return first;
}

static void arm(int number, double time)
{
	u64 late = US + random_part() * 7 * US + (random_part() < .001 ? 100 * US : 0);
	u64 at = (time > now ? (u64)time : now) + late;
	struct queue *q = &queues[number];

	if (q->timer && q->timer <= at)
		return;
	q->timer = at;
	schedule((struct event) { .time = at, .type = TIMER, .of = number });
}

/* What acknowledges a packet, or what tells its sender of the loss, arrives after a round trip. */
static void acknowledge(int flow, int bytes, bool marked, bool dropped)
{
	struct event event = { .time = now + flows[flow].rtt, .type = ACK, .of = flow, .bytes = bytes };

	event.marked = marked;
	event.dropped = dropped;
	schedule(event);
}

static u64 bytes_of_all(int class)
{
	u64 sum = 0;

	for (int i = 0; i < queue_count; i++)
		sum += queues[i].fifo[class].bytes;
	return sum;
}

static void departs(struct packet *p)
{
	double wait = now - p->since;

	virtual_ns = fmax(0, virtual_ns - (now - virtual_time));
	virtual_time = now;
	if (measured()) {
		flows[p->flow].out += p->bytes;
		total_out += p->bytes;
		sent++;
		add(flows[p->flow].l4s ? &l_wait : &c_wait, wait + virtual_ns);
		add(&behind, virtual_ns);
	}
	virtual_ns += p->bytes * ns_per_byte;
}

/* Remove the first packet and ask the AQM. Return: its bytes; 0: it was dropped. */
static int take(struct queue *q, int class)
{
	struct fifo *fifo = &q->fifo[class];
	struct packet *p = fifo->head;
	struct flow *f = &flows[p->flow];
	u64 backlog = mode == MQ ? bytes_of_all(0) + bytes_of_all(1) : q->fifo[0].bytes + q->fifo[1].bytes;
	struct dualpi2_packet packet = {
		.profile = class ? DUALPI2_L_SCALABLE : DUALPI2_C_DROP,
		.low = dualpi2_is_low(backlog, MTU),
		.l_pkts = q->fifo[1].pkts,
		.shared = mode == MQ ? atomic_read(&mq_clock.c_waiting) > 0 : q->fifo[0].bytes > 0,
		.may_drop = q->fifo[0].pkts + q->fifo[1].pkts > 1,
		.rnd = now,
	};
	enum dualpi2_verdict verdict;
	bool dropped;
	int bytes = p->bytes;

	fifo->head = p->next;
	fifo->pkts--;
	fifo->bytes -= bytes;
	packet.delay_ns = fmax(mode == MQ ? now - p->since : 0, fifo->bytes * (mode == CAKE ? q->ns_per_byte : ns_per_byte));
	packet.native_ok = dualpi2_native_ok(&params, packet.l_pkts);
	verdict = dualpi2_verdict(&params, &q->vars, &packet);
	dropped = verdict >= DUALPI2_DROP_AQM;
	if (!f->open)
		acknowledge(p->flow, bytes, verdict != DUALPI2_PASS && !dropped, dropped);
	if (!dropped)
		departs(p);
	free(p);
	return dropped ? 0 : bytes;
}

/* one, cake: a clock for each queue */
static void run_own(int number)
{
	struct queue *q = &queues[number];
	int class, bytes, active = 1;

	if (mode == CAKE && now - q->checked >= CAKE_NS) {
		for (int i = 0; i < queue_count; i++)
			active += i != number &&
				  (queues[i].fifo[0].pkts || queues[i].fifo[1].pkts || queues[i].active > q->checked);
		q->ns_per_byte = ns_per_byte * active;
		q->checked = now;
	}
	while (q->fifo[0].pkts || q->fifo[1].pkts) {
		if (q->next > now) {
			arm(number, q->next);
			return;
		}
		class = dualpi2_sched_pick(&q->vars, q->fifo[0].pkts, q->fifo[1].pkts);
		bytes = take(q, class);
		if (!bytes)
			continue;
		dualpi2_sched_charge(&params, &q->vars, class, q->fifo[0].pkts, q->fifo[1].pkts, bytes);
		q->active = now;
		q->next = fmax(q->next, (double)now - LATE_NS) + bytes * q->ns_per_byte;
	}
}

static bool send_l4s(struct queue *q, u64 *wake)
{
	struct fifo *fifo = &q->fifo[1];
	int bytes;

	if (!fifo->pkts || !dualpi2_mq_l_ready(&mq_params, &mq_clock, &q->mq, fifo->head->bytes, fifo->bytes, now, wake))
		return false;
	bytes = take(q, 1);
	if (bytes)
		dualpi2_mq_l_sent(&mq_params, &mq_clock, &q->mq, bytes);
	if (!fifo->pkts)
		dualpi2_mq_l_empty(&q->mq);
	return true;
}

static bool send_classic(struct queue *q, u64 *wake)
{
	struct fifo *fifo = &q->fifo[0];
	int bytes;

	if (!fifo->pkts || !dualpi2_mq_c_ready(&mq_params, &mq_clock, &mq_sum, &q->mq, fifo->head->bytes, fifo->bytes, now, wake))
		return false;
	bytes = take(q, 0);
	if (bytes)
		dualpi2_mq_c_sent(&mq_params, &q->mq, bytes);
	if (!fifo->pkts)
		dualpi2_mq_c_empty(&mq_clock, &q->mq);
	return true;
}

static void run_mq(int number)
{
	struct queue *q = &queues[number];
	u64 l_wake = ~0ULL, c_wake = ~0ULL;

	if (dualpi2_mq_scan_due(&mq_sum, now))
		dualpi2_mq_scanned(&mq_sum, bytes_of_all(0));
	while (send_l4s(q, &l_wake) || send_classic(q, &c_wake))
		;
	if (q->fifo[0].pkts || q->fifo[1].pkts)
		arm(number, fmin(q->fifo[1].pkts ? l_wake : INFINITY, q->fifo[0].pkts ? c_wake : INFINITY));
}

static void run(int number)
{
	current = number;
	if (!number && now % CYCLE_NS < stall)
		arm(number, now - now % CYCLE_NS + stall);
	else if (mode == MQ)
		run_mq(number);
	else
		run_own(number);
}

static double age(const struct fifo *fifo)
{
	return fifo->head ? now - fifo->head->since : 0;
}

/* mq: one controller; its input is the age of head packets, weighted by bytes. */
static void update_pi(void)
{
	double delay = 0;

	for (int i = 0; i < queue_count && mode != MQ; i++)
		dualpi2_pi_update(&params, &queues[i].vars, fmax(age(&queues[i].fifo[0]), age(&queues[i].fifo[1])), now);
	if (mode != MQ)
		return;
	for (int class = 0; class < DUALPI2_QUEUES; class++) {
		double weighted = 0, bytes = bytes_of_all(class);

		for (int i = 0; i < queue_count; i++)
			weighted += queues[i].fifo[class].bytes * age(&queues[i].fifo[class]);
		delay = fmax(delay, bytes ? weighted / bytes : 0);
	}
	dualpi2_pi_update(&params, &shared, delay, now);
	for (int i = 0; i < queue_count; i++) {
		queues[i].vars.base_q32 = shared.base_q32;
		queues[i].vars.updated_ns = now;
		dualpi2_probabilities(&params, &queues[i].vars);
	}
}

static void arrives(int number, int bytes)
{
	struct flow *f = &flows[number];
	int of = mode == ONE ? 0 : f->queue;
	struct queue *q = &queues[of];
	struct fifo *fifo = &q->fifo[f->l4s];
	struct packet *p;

	if (fifo->bytes * ns_per_byte > 250 * MS) {
		if (!f->open)
			acknowledge(number, bytes, false, true);
		return;
	}
	if (!q->fifo[0].pkts && !q->fifo[1].pkts)
		q->next = fmax(q->next, now);
	p = malloc(sizeof(*p));
	*p = (struct packet) { .flow = number, .bytes = bytes, .since = now };
	if (fifo->head)
		fifo->tail->next = p;
	else
		fifo->head = p;
	fifo->tail = p;
	fifo->bytes += bytes;
	current = of;
	if (!fifo->pkts++ && !f->l4s && mode == MQ)
		dualpi2_mq_c_begin(&mq_clock, &q->mq);
	run(of);
}

static void try_send(int number)
{
	struct flow *f = &flows[number];
	double pace = f->rtt / fmax(f->cwnd, 1) / (f->cwnd < f->ssthresh ? 2 : 1.1);

	if (f->armed || (!f->open && f->in_flight + f->size > f->cwnd * f->size))
		return;
	if (!f->open && f->next < now - pace)
		f->next = now;
	f->armed = true;
	f->next = fmax(f->next, now);
	schedule((struct event) { .time = f->next, .type = SEND, .of = number });
	if (!f->open)
		f->next += pace;
}

static void sends(int number)
{
	struct flow *f = &flows[number];

	f->armed = false;
	if (!f->open) {
		f->in_flight += f->size;
		arrives(number, f->size);
	} else {
		if (f->on_ns && now >= f->phase) {
			f->on = !f->on;
			/* events are at whole ns: else one before the phase would be repeated for ever */
			f->phase = now + ceil((f->on ? f->on_ns : f->off_ns) * (.5 + random_part()));
		}
		f->next = f->phase;
		if (f->on) {
			f->next = now + f->interval * (.9 + .2 * random_part());
			arrives(number, f->size);
		}
	}
	try_send(number);
}

static void acked(const struct event *event)
{
	struct flow *f = &flows[event->of];

	f->in_flight -= event->bytes;
	f->acked++;
	f->marked += event->marked;
	if (event->dropped) {
		if (now > f->recover) {
			f->cwnd = fmax(2, f->cwnd * .7);
			f->ssthresh = f->cwnd;
			f->recover = now + f->rtt;
		}
	} else if (f->cwnd < f->ssthresh && !event->marked) {
		f->cwnd += 1;
	} else {	/* in a round trip 1, CUBIC 0.53 */
		f->cwnd += (f->l4s ? 1 : .53) / f->cwnd;
	}
	if (f->l4s && now > f->round) {
		f->alpha += ((double)f->marked / f->acked - f->alpha) / 16;
		if (f->marked) {
			f->cwnd = fmax(2, f->cwnd * (1 - f->alpha / 2));
			f->ssthresh = f->cwnd;
		}
		f->marked = 0;
		f->acked = 0;
		f->round = now + f->rtt;
	}
	try_send(event->of);
}

static void parse_flow(const char *text)
{
	double value = 0, size = MTU, on = 0, off = 0;
	struct flow *f = &flows[flow_count++];
	char kind;

	if (flow_count > MAXF || sscanf(text, "%c:%d:%lf:%lf:%lf:%lf", &kind, &f->queue, &value, &size, &on, &off) < 3 ||
	    !strchr("CLuU", kind) || f->queue < 0 || f->queue >= MAXQ || value <= 0) {
		fprintf(stderr, "mq_sim: invalid flow '%s'\n", text);
		exit(2);
	}
	*f = (struct flow) {
		.queue = f->queue, .size = size, .l4s = kind == 'L' || kind == 'U', .open = kind == 'u' || kind == 'U',
		.cwnd = 10, .ssthresh = 1e9, .alpha = 1, .rtt = value * MS, .on_ns = on * MS, .off_ns = off * MS, .on = true,
		.interval = size * 8e3 / value, .next = random_part() * MS,
	};
}

static void print_results(double rate)
{
	printf("use %.3f\n", total_out * 8 / ((end - warm) * rate));
	printf("c_ms %.3f\n", c_wait.packets ? c_wait.sum / c_wait.packets / MS : 0);
	printf("behind %d %.0f\n", percentile_us(&behind, .99), behind.max / US);
	printf("l_wait %.0f %d %.0f\n", l_wait.packets ? l_wait.sum / l_wait.packets / US : 0, percentile_us(&l_wait, .99),
	       l_wait.max / US);
	printf("per_packet %.3f %.3f %.3f\n", (double)changes / sent, (double)transfers / sent, (double)wakes / sent);
	printf("waiting %d\n", mq_clock.c_waiting.counter);
	for (int i = 0; i < flow_count; i++)
		printf("flow %c%d %.3f\n", "CuLU"[2 * flows[i].l4s + flows[i].open], flows[i].queue,
		       flows[i].out * 8 / (end - warm) / 1e6);
}

static void set_up(double rate, char *list)
{
	struct dualpi2_config config;

	dualpi2_config_init(&config);
	config.bandwidth = rate / 8;
	dualpi2_params_init(&params, &config);
	params.link.late_max_ns = LATE_NS;
	dualpi2_mq_init(&mq_params, &params.link, params.l_weight, MTU, queue_count);
	dualpi2_vars_init(&params, &shared, MTU + 14, 0);
	for (int i = 0; i < queue_count; i++) {
		dualpi2_vars_init(&params, &queues[i].vars, MTU + 14, 0);
		queues[i].ns_per_byte = ns_per_byte;
	}
	for (char *text = strtok(list, ","); text; text = strtok(NULL, ","))
		parse_flow(text);
	for (int i = 0; i < flow_count; i++)
		try_send(i);
	schedule((struct event) { .time = PI_NS, .type = PI });
}

static void handle(struct event *event)
{
	switch (event->type) {
	case SEND:
		sends(event->of);
		break;
	case ACK:
		acked(event);
		break;
	case TIMER:
		if (queues[event->of].timer != event->time)
			break;
		queues[event->of].timer = 0;
		wakes += measured();
		run(event->of);
		break;
	default:
		update_pi();
		event->time += PI_NS;
		schedule(*event);
	}
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "one", "cake", "mq" };
	unsigned int choice = 0;
	double rate;

	while (argc > 4 && choice < 3 && strcmp(argv[1], modes[choice]))
		choice++;
	if (argc < 5 || choice == 3) {
		fprintf(stderr, "usage: mq_sim one|cake|mq RATE_MBIT QUEUES FLOWS [warm=S] [end=S] [stall=MS] [seed=N]\n");
		return 2;
	}
	mode = choice;
	for (int i = 5; i < argc; i++) {
		unsigned int number;

		if (sscanf(argv[i], "warm=%lf", &warm) == 1 || sscanf(argv[i], "end=%lf", &end) == 1)
			continue;
		if (sscanf(argv[i], "stall=%u", &number) == 1)
			stall = number * 1000000ULL;
		if (sscanf(argv[i], "seed=%u", &number) == 1)
			seed = number * 0x9E3779B97F4A7C15ULL | 1;
	}
	rate = atof(argv[2]) * 1e6;
	ns_per_byte = 8e9 / rate;
	queue_count = mode == ONE ? 1 : atoi(argv[3]);
	if (rate < 1e6 || queue_count < 1 || queue_count > MAXQ) {
		fprintf(stderr, "mq_sim: rate at least 1 Mbit/s, queues 1 to %d\n", MAXQ);
		return 2;
	}
	set_up(rate, argv[4]);
	while (event_count && heap[0].time < end * SEC) {
		struct event event = next_event();

		now = event.time;
		handle(&event);
	}
	print_results(rate);
	return 0;
}
