// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closed loop with unresponsive traffic.  Packets of 1500 bytes arrive at constant rates, Classic
 * Not-ECT and L4S ECT(1).  The link serves LOOP_PPS packets a second.  Where it settles (rfc9332,
 * T0): below overload only C drops, and p_C = (c + l - 1) / c; in overload both do, and
 * p_C = 1 - 1 / (c + l).
 */

#define LOOP_PPS	8000
#define LOOP_SECONDS	60
#define LOOP_FIFO	65536	/* a power of 2, more than 8 seconds */

struct loop_fifo {
	u64 stamp_ns[LOOP_FIFO];
	u32 head, len;
};

struct loop_result {
	double p_c, p_cl, c_loss, l_loss, l_mark, delay_ms;
	u64 count, late_count;	/* begins: all, in the second half */
	bool overload;
};

static struct loop_fifo loop_fifos[DUALPI2_QUEUES];

static u64 loop_age(const struct loop_fifo *f, u64 now)
{
	return f->len ? now - f->stamp_ns[f->head % LOOP_FIFO] : 0;
}

static u32 loop_bytes(void)
{
	return (loop_fifos[0].len + loop_fifos[1].len) * 1514;
}

/* forward one packet, return false if there is none */
static bool loop_dequeue(const struct dualpi2_params *p, struct dualpi2_vars *v, u64 now, u64 *sent,
			 u64 *drops, u64 *marks)
{
	struct loop_fifo *c = &loop_fifos[DUALPI2_QUEUE_C];
	struct loop_fifo *l = &loop_fifos[DUALPI2_QUEUE_L];
	u32 dropped = 0;

	if (!c->len && !l->len)
		return false;
	for (;;) {
		enum dualpi2_queue queue = dualpi2_sched_pick(v, c->len, l->len);
		struct loop_fifo *f = &loop_fifos[queue];
		struct dualpi2_packet pkt = {
			.profile = queue == DUALPI2_QUEUE_C ? DUALPI2_C_DROP : DUALPI2_L_SCALABLE,
			.native_ok = l->len > 1,
			.low = dualpi2_is_low(loop_bytes(), 1514),
			.may_drop = c->len + l->len > 1 && dropped < DUALPI2_DROPS_PER_DEQUEUE,
			.l_pkts = l->len,
			.delay_ns = loop_age(f, now),
			.rnd = unit_rnd(),
		};
		enum dualpi2_verdict verdict = dualpi2_verdict(p, v, &pkt);

		f->head++;
		f->len--;
		if (verdict < DUALPI2_DROP_AQM) {
			dualpi2_sched_charge(p, v, queue, c->len, l->len, 1514);
			sent[queue]++;
			if (verdict != DUALPI2_PASS)
				marks[queue]++;
			return true;
		}
		drops[queue]++;
		dropped++;
	}
}

/* loads in thousandths of the link's rate */
static struct loop_result loop_run(const struct dualpi2_config *cfg, u32 c_load, u32 l_load)
{
	static const u64 slot = SEC / LOOP_PPS;
	struct dualpi2_params p = unit_params(cfg);
	struct dualpi2_vars v = unit_vars(&p);
	const u32 load[DUALPI2_QUEUES] = { c_load, l_load };
	u32 due[DUALPI2_QUEUES] = { 0 };
	u64 n, slots = (u64)LOOP_SECONDS * LOOP_PPS, half = slots / 2, updates = 0;
	u64 sent[2] = { 0 }, drops[2] = { 0 }, marks[2] = { 0 };
	struct loop_result r = { 0 };

	loop_fifos[0].len = 0;
	loop_fifos[1].len = 0;
	for (n = 0; n < slots; n++) {
		u64 now = n * slot;

		if (n == half) {
			r.count = v.overload_count;
			memset(sent, 0, sizeof(sent));
			memset(drops, 0, sizeof(drops));
			memset(marks, 0, sizeof(marks));
		}
		for (unsigned int q = 0; q < DUALPI2_QUEUES; q++) {
			struct loop_fifo *f = &loop_fifos[q];

			for (due[q] += load[q]; due[q] >= 1000; due[q] -= 1000) {
				if (!f->len)
					f->head = 0;
				CHECK(f->len < LOOP_FIFO, "queue of 8 seconds");
				f->stamp_ns[(f->head + f->len++) % LOOP_FIFO] = now;
			}
		}
		if (dualpi2_pi_is_due(&v, now)) {
			u64 c_age = loop_age(&loop_fifos[0], now);
			u64 l_age = loop_age(&loop_fifos[1], now);

			dualpi2_pi_update(&p, &v, c_age > l_age ? c_age : l_age, now);
			if (n >= half) {
				r.p_c += (double)v.classic_q32 / ONE;
				r.p_cl += (double)v.coupled_q32 / ONE;
				r.delay_ms += v.delay_ns / 1e6;
				updates++;
			}
		}
		loop_dequeue(&p, &v, now, sent, drops, marks);
	}
	r.p_c /= updates;
	r.p_cl /= updates;
	r.delay_ms /= updates;
	r.c_loss = (double)drops[0] / (drops[0] + sent[0]);
	r.l_loss = (double)drops[1] / (drops[1] + sent[1]);
	r.l_mark = (double)marks[1] / sent[1];
	r.late_count = v.overload_count - r.count;
	r.count = v.overload_count;
	r.overload = v.overload;
	return r;
}

static void loop_check(u32 k, u32 p_cmax_pct, u32 c_load, u32 l_load,
		       enum dualpi2_signal_mode signal, bool overload)
{
	struct dualpi2_config cfg = unit_config();
	double c = c_load / 1000.0, l = l_load / 1000.0;
	double p_c = overload ? 1 - 1 / (c + l) : (c + l - 1) / c;
	double p_cl = fmin(k * sqrt(p_c), 1);
	struct loop_result r;

	cfg.coupling = k;
	cfg.p_cmax_pct = p_cmax_pct;
	cfg.signal = signal;
	r = loop_run(&cfg, c_load, l_load);
	/* the loop may overshoot at first, but then it is to stay */
	CHECK(r.overload == overload && !r.late_count,
	      "k %u c %.3f l %.3f: overload %u, begun %llu times, late %llu",
	      k, c, l, r.overload, (ull)r.count, (ull)r.late_count);
	CHECK(fabs(r.p_c / p_c - 1) < 0.03,
	      "k %u c %.3f l %.3f: p_C %.4f, want %.4f", k, c, l, r.p_c, p_c);
	CHECK(fabs(r.c_loss / p_c - 1) < 0.03,
	      "k %u c %.3f l %.3f: C loss %.4f, want %.4f", k, c, l, r.c_loss, p_c);
	if (overload)
		CHECK(fabs(r.l_loss / p_c - 1) < 0.03,
		      "k %u c %.3f l %.3f: L loss %.4f, want %.4f", k, c, l, r.l_loss, p_c);
	else
		CHECK(r.l_loss == 0, "L4S dropped below overload");
	CHECK(fabs(r.p_cl / p_cl - 1) < 0.03,
	      "k %u c %.3f l %.3f: p_CL %.4f, want %.4f", k, c, l, r.p_cl, p_cl);
	/* marks: at least the coupling; more if the L4S queue stands */
	CHECK(r.l_mark > p_cl * 0.97, "L4S marks %.4f", r.l_mark);
	CHECK(fabs(r.delay_ms - 15) < 0.5, "delay %.2f ms", r.delay_ms);
}

UNIT_TEST(loop_below_overload_settles_at_the_excess)
{
	/* p_C 0.125 and p_CL 0.707, the example of T0; k 4 needs p_C < 1/16 */
	loop_check(2, 0, 800, 300, DUALPI2_SIGNAL_RECUR, false);
	loop_check(2, 0, 800, 300, DUALPI2_SIGNAL_RANDOM, false);
	loop_check(1, 0, 900, 600, DUALPI2_SIGNAL_RECUR, false);
	loop_check(1, 0, 900, 600, DUALPI2_SIGNAL_RANDOM, false);
	loop_check(4, 0, 730, 300, DUALPI2_SIGNAL_RECUR, false);
	loop_check(4, 0, 730, 300, DUALPI2_SIGNAL_RANDOM, false);
}

UNIT_TEST(loop_in_overload_drops_both_alike_at_the_excess)
{
	/* c = l = 0.75: p_C 1/3 */
	loop_check(2, 0, 750, 750, DUALPI2_SIGNAL_RECUR, true);
	loop_check(2, 0, 750, 750, DUALPI2_SIGNAL_RANDOM, true);
	loop_check(4, 0, 750, 750, DUALPI2_SIGNAL_RECUR, true);
	loop_check(4, 0, 750, 750, DUALPI2_SIGNAL_RANDOM, true);
	/* 1/11 > p_Cmax = 1/16 */
	loop_check(4, 0, 550, 550, DUALPI2_SIGNAL_RECUR, true);
	/* p_Cmax of k 1 is 1, which is no state to be in; with less of it: 0.6 */
	loop_check(1, 25, 1250, 1250, DUALPI2_SIGNAL_RECUR, true);
	loop_check(1, 25, 1250, 1250, DUALPI2_SIGNAL_RANDOM, true);
	/* and an earlier begin: 1/6 */
	loop_check(2, 10, 600, 600, DUALPI2_SIGNAL_RECUR, true);
}

/* c = l = 0.6: p_C is 1/3 > p_Cmax where only C drops, and 1/6 < p_Cmax where both do. So it stays
 * at p_Cmax, where L4S drops now and then, and the state that is reported begins once.
 */
UNIT_TEST(loop_at_the_edge_of_overload_stays_there)
{
	static const u32 cases[][4] = {	/* k, c, l, 1 / p_Cmax */
		{ 2, 600, 600, 4 }, { 4, 530, 530, 16 },
	};
	unsigned int signal;

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		const u32 *c = cases[i / 2];
		struct dualpi2_config cfg = unit_config();
		struct loop_result r;
		double excess = (c[1] + c[2]) / 1000.0 - 1, lost;

		signal = i % 2 ? DUALPI2_SIGNAL_RANDOM : DUALPI2_SIGNAL_RECUR;
		cfg.coupling = c[0];
		cfg.signal = signal;
		r = loop_run(&cfg, c[1], c[2]);
		CHECK(r.overload && r.count == 1 && !r.late_count,
		      "k %u: overload %u, begun %llu times, late %llu", c[0],
		      r.overload, (ull)r.count, (ull)r.late_count);
		CHECK(fabs(r.p_c * c[3] - 1) < 0.1, "k %u: p_C %.4f", c[0], r.p_c);
		CHECK(fabs(r.c_loss / r.p_c - 1) < 0.05,
		      "k %u: C loss %.4f of p_C %.4f", c[0], r.c_loss, r.p_c);
		lost = (r.c_loss * c[1] + r.l_loss * c[2]) / 1000;
		CHECK(fabs(lost / excess - 1) < 0.02,
		      "k %u: %.4f lost of %.4f", c[0], lost, excess);
		CHECK(fabs(r.delay_ms - 15) < 1, "delay %.2f ms", r.delay_ms);
	}
}

UNIT_TEST(loop_below_the_link_rate_never_signals)
{
	struct dualpi2_config cfg = unit_config();
	struct loop_result r = loop_run(&cfg, 500, 450);

	CHECK(r.p_c == 0 && r.c_loss == 0 && r.l_loss == 0 && !r.count, "p_C %g", r.p_c);
}

/* Without drop in overload p_C stays at 1/k^2, L4S is never dropped, all its
 * packets are marked, and delay grows.
 */
UNIT_TEST(loop_without_drop_in_overload_lets_delay_grow)
{
	struct dualpi2_config cfg = unit_config();
	struct loop_result r;

	cfg.drop_overload = false;
	r = loop_run(&cfg, 560, 600);	/* 0.42 + 0.6 */
	CHECK(fabs(r.p_c - 0.25) < 0.000001 && fabs(r.c_loss - 0.25) < 0.001,
	      "p_C %.4f, C loss %.4f", r.p_c, r.c_loss);
	CHECK(r.l_loss == 0, "L loss %.4f", r.l_loss);
	CHECK(r.l_mark == 1, "L marks %.4f", r.l_mark);
	CHECK(r.count == 1 && r.overload, "begun %llu times", (ull)r.count);
	CHECK(r.delay_ms > 500, "delay %.1f ms", r.delay_ms);
}
