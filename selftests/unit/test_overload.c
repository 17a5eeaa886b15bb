// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overload: when it begins and ends, how it is counted, and how the controller
 * settles in a closed loop with traffic that does not respond.
 */

static void overload_enters_when_k_times_base_reaches_one(void)
{
	u32 k;

	for (k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);
		struct dualpi2_vars v = unit_vars(&p);
		/* greatest p' with k p' < 1 */
		u64 below = (ONE - 1) / k;

		v.base_q32 = below;
		dualpi2_vars_derive(&p, &v, 10);
		CHECK(!v.overload && !v.overload_count, "too early, k %u", k);
		CHECK(v.coupled_q32 < ONE, "p_CL is 1, k %u", k);
		v.base_q32 = below + 1;
		dualpi2_vars_derive(&p, &v, 20);
		CHECK(v.overload, "too late, k %u", k);
		CHECK_EQ(v.overload_count, 1);
		CHECK_EQ(v.overload_since_ns, 20);
		CHECK_EQ(v.coupled_q32, ONE);
	}
}

static void overload_with_k_one_enters_at_certain_drop_only(void)
{
	struct dualpi2_params p = unit_params_k(1);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = ONE - 1;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK(!v.overload, "below 1");
	v.base_q32 = ONE;
	dualpi2_vars_derive(&p, &v, 0);
	CHECK(v.overload, "at 1");
}

/* p_C < 1 / (2 k^2) */
static void overload_leaves_at_half_the_classic_probability(void)
{
	u32 k;

	for (k = 1; k <= 255; k++) {
		struct dualpi2_params p = unit_params_k(k);
		struct dualpi2_vars v = unit_vars(&p);
		long double edge = ONE / (k * sqrtl(2));

		v.base_q32 = ONE;
		dualpi2_vars_derive(&p, &v, 0);
		v.base_q32 = edge * (1 + 1 / 65536.0L) + 1;
		dualpi2_vars_derive(&p, &v, 5);
		CHECK(v.overload, "too early, k %u", k);
		v.base_q32 = edge * (1 - 1 / 65536.0L) - 1;
		dualpi2_vars_derive(&p, &v, 7);
		CHECK(!v.overload, "too late, k %u", k);
		CHECK_EQ(v.overload_total_ns, 7);
		/* and exactly: not at the threshold, but below */
		v.base_q32 = ONE;
		dualpi2_vars_derive(&p, &v, 0);
		v.base_q32 = p.leave_q32;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK(v.overload, "at the threshold, k %u", k);
		v.base_q32 = p.leave_q32 - 1;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK(!v.overload, "below the threshold, k %u", k);
	}
}

static void overload_between_thresholds_keeps_state(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	int i, j;

	for (i = 0; i < 100; i++) {
		for (j = 0; j < 100; j++) {
			v.base_q32 = unit_between(p.leave_q32,
						  p.enter_q32 - 1);
			dualpi2_vars_derive(&p, &v, i);
			CHECK_EQ(v.overload, i & 1);
			CHECK_EQ(v.overload_count, (i + 1) / 2);
		}
		v.base_q32 = i & 1 ? p.leave_q32 - 1 : p.enter_q32;
		dualpi2_vars_derive(&p, &v, i);
	}
}

static void overload_count_and_time_are_exact(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	u64 now = 1000, count = 0, total = 0;
	bool overload = false;
	int i;

	for (i = 0; i < 10000; i++) {
		u64 gap = unit_any(1, 1ULL << 40);
		u64 base = unit_any_q32();

		now += gap;
		if (overload)
			total += gap;
		CHECK_EQ(dualpi2_overload_ns(&v, now), total);
		v.base_q32 = base;
		dualpi2_vars_derive(&p, &v, now);
		if (!overload && 2 * base >= ONE) {
			overload = true;
			count++;
		} else if (overload && base < p.leave_q32) {
			overload = false;
		}
		CHECK_EQ(v.overload, overload);
		CHECK_EQ(v.overload_count, count);
		CHECK_EQ(dualpi2_overload_ns(&v, now), total);
	}
	CHECK(count > 100, "only %llu times in overload", (ull)count);
}

static void overload_reset_ends_it_and_keeps_the_account(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = ONE;
	dualpi2_vars_derive(&p, &v, 100);
	v.c_signal.credit_q32 = 1;
	v.l_drop.dither_q32 = 2;
	v.delay_ns = 3;
	dualpi2_vars_init(&p, &v, 1514, 400);
	CHECK(!v.overload, "still in overload");
	CHECK_EQ(v.base_q32 | v.classic_q32 | v.coupled_q32 | v.delay_ns, 0);
	CHECK_EQ(v.c_signal.credit_q32 | v.l_drop.dither_q32, 0);
	CHECK_EQ(v.updated_ns, 400);
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(dualpi2_overload_ns(&v, 400), 300);
	CHECK_EQ(dualpi2_overload_ns(&v, 9999), 300);
	CHECK_EQ((u32)v.credit, (u32)dualpi2_credit_start(&p, 1514));
	/* without overload nothing is added */
	dualpi2_vars_init(&p, &v, 1514, 700);
	CHECK_EQ(v.overload_count, 1);
	CHECK_EQ(dualpi2_overload_ns(&v, 700), 300);
}

static void overload_reset_adds_to_what_was_before(void)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	v.base_q32 = ONE;
	dualpi2_vars_derive(&p, &v, 100);
	v.base_q32 = 0;
	dualpi2_vars_derive(&p, &v, 130);
	v.base_q32 = ONE;
	dualpi2_vars_derive(&p, &v, 1000);
	dualpi2_vars_init(&p, &v, 1514, 1007);
	CHECK_EQ(v.overload_count, 2);
	CHECK_EQ(dualpi2_overload_ns(&v, 2000), 37);
}

static void overload_without_drop_holds_base_at_its_edge(void)
{
	u32 k;

	for (k = 1; k <= 255; k++) {
		struct dualpi2_config cfg = unit_config();
		struct dualpi2_params p;
		struct dualpi2_vars v;

		cfg.coupling = k;
		cfg.drop_overload = false;
		p = unit_params(&cfg);
		v = unit_vars(&p);
		v.base_q32 = ONE;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK_EQ(v.base_q32, (ONE + k - 1) / k);
		CHECK_EQ(v.coupled_q32, ONE);
		CHECK(fabsl(v.classic_q32 - (long double)ONE / k / k) <= 3,
		      "p_C %llu, k %u", (ull)v.classic_q32, k);
		CHECK(v.overload, "no overload, k %u", k);
		/* below the edge nothing is changed */
		v.base_q32 = p.enter_q32 - 1;
		dualpi2_vars_derive(&p, &v, 0);
		CHECK_EQ(v.base_q32, p.enter_q32 - 1);
	}
}

/*
 * Closed loop.  Packets of 1500 bytes arrive at constant rates, Classic Not-ECT
 * and L4S ECT(1), and do not respond.  The link serves LOOP_PPS packets a
 * second.  Where it settles (rfc9332, T0): below overload only C drops, and
 * p_C = (c + l - 1) / c; in overload both do, and p_C = 1 - 1 / (c + l).
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
static bool loop_dequeue(const struct dualpi2_params *p,
			 struct dualpi2_vars *v, u64 now, u64 *sent,
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
			.profile = queue == DUALPI2_QUEUE_C ?
				   DUALPI2_C_DROP : DUALPI2_L_SCALABLE,
			.native_ok = l->len > 1,
			.low = dualpi2_is_low(loop_bytes(), 1514),
			.may_drop = c->len + l->len > 1 &&
				    dropped < DUALPI2_DROPS_PER_DEQUEUE,
			.l_pkts = l->len,
			.sojourn_ns = loop_age(f, now),
			.rnd = unit_rnd(),
		};
		enum dualpi2_verdict verdict = dualpi2_verdict(p, v, &pkt);

		f->head++;
		f->len--;
		if (verdict < DUALPI2_DROP_AQM) {
			dualpi2_sched_sent(p, v, queue, 1514, c->len, l->len,
					   1514);
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
static struct loop_result loop_run(const struct dualpi2_config *cfg,
				   u32 c_load, u32 l_load)
{
	static const u64 slot = SEC / LOOP_PPS;
	struct dualpi2_params p = unit_params(cfg);
	struct dualpi2_vars v = unit_vars(&p);
	const u32 load[DUALPI2_QUEUES] = { c_load, l_load };
	u32 due[DUALPI2_QUEUES] = { 0 };
	u64 n, slots = (u64)LOOP_SECONDS * LOOP_PPS, half = slots / 2, updates = 0;
	u64 sent[2] = { 0 }, drops[2] = { 0 }, marks[2] = { 0 };
	struct loop_result r = { 0 };
	unsigned int q;

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
		for (q = 0; q < DUALPI2_QUEUES; q++) {
			struct loop_fifo *f = &loop_fifos[q];

			for (due[q] += load[q]; due[q] >= 1000; due[q] -= 1000) {
				if (!f->len)
					f->head = 0;
				CHECK(f->len < LOOP_FIFO, "queue of 8 seconds");
				f->stamp_ns[(f->head + f->len++) % LOOP_FIFO] =
					now;
			}
		}
		if (dualpi2_pi_is_due(&p, &v, now)) {
			u64 c_age = loop_age(&loop_fifos[0], now);
			u64 l_age = loop_age(&loop_fifos[1], now);

			dualpi2_pi_update(&p, &v, c_age > l_age ? c_age : l_age,
					  now);
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

static u64 loop_check(u32 k, u32 c_load, u32 l_load,
		      enum dualpi2_signal_mode signal, bool overload)
{
	struct dualpi2_config cfg = unit_config();
	double c = c_load / 1000.0, l = l_load / 1000.0;
	double p_c = overload ? 1 - 1 / (c + l) : (c + l - 1) / c;
	double p_cl = fmin(k * sqrt(p_c), 1);
	struct loop_result r;

	cfg.coupling = k;
	cfg.signal = signal;
	r = loop_run(&cfg, c_load, l_load);
	/* the loop may overshoot at first, but then it is to stay */
	CHECK(r.overload == overload && !r.late_count,
	      "k %u c %.3f l %.3f: overload %u, begun %llu times, late %llu",
	      k, c, l, r.overload, (ull)r.count, (ull)r.late_count);
	CHECK(fabs(r.p_c / p_c - 1) < 0.03,
	      "k %u c %.3f l %.3f: p_C %.4f, want %.4f", k, c, l, r.p_c, p_c);
	CHECK(fabs(r.c_loss / p_c - 1) < 0.03,
	      "k %u c %.3f l %.3f: C loss %.4f, want %.4f", k, c, l, r.c_loss,
	      p_c);
	if (overload)
		CHECK(fabs(r.l_loss / p_c - 1) < 0.03,
		      "k %u c %.3f l %.3f: L loss %.4f, want %.4f", k, c, l,
		      r.l_loss, p_c);
	else
		CHECK(r.l_loss == 0, "L4S dropped below overload");
	CHECK(fabs(r.p_cl / p_cl - 1) < 0.03,
	      "k %u c %.3f l %.3f: p_CL %.4f, want %.4f", k, c, l, r.p_cl,
	      p_cl);
	/* marks: at least the coupling; more if the L4S queue stands */
	CHECK(r.l_mark > p_cl * 0.97, "L4S marks %.4f", r.l_mark);
	CHECK(fabs(r.delay_ms - 15) < 0.5, "delay %.2f ms", r.delay_ms);
	return r.count;
}

static void loop_below_overload_settles_at_the_excess(void)
{
	/* p_C 0.125 and p_CL 0.707, the example of T0; k 4 needs p_C < 1/16 */
	loop_check(2, 800, 300, DUALPI2_SIGNAL_RECUR, false);
	loop_check(2, 800, 300, DUALPI2_SIGNAL_RANDOM, false);
	loop_check(1, 900, 600, DUALPI2_SIGNAL_RECUR, false);
	loop_check(1, 900, 600, DUALPI2_SIGNAL_RANDOM, false);
	loop_check(4, 730, 300, DUALPI2_SIGNAL_RECUR, false);
	loop_check(4, 730, 300, DUALPI2_SIGNAL_RANDOM, false);
}

static void loop_in_overload_drops_both_alike_at_the_excess(void)
{
	/* c = l = 0.75: p_C 1/3; for k 1 it takes twice the link's rate */
	loop_check(2, 750, 750, DUALPI2_SIGNAL_RECUR, true);
	loop_check(2, 750, 750, DUALPI2_SIGNAL_RANDOM, true);
	loop_check(4, 750, 750, DUALPI2_SIGNAL_RECUR, true);
	loop_check(4, 750, 750, DUALPI2_SIGNAL_RANDOM, true);
	loop_check(1, 1250, 1250, DUALPI2_SIGNAL_RECUR, true);
	loop_check(1, 1250, 1250, DUALPI2_SIGNAL_RANDOM, true);
}

/* c = l = 0.6: p_C is 1/3 > p_Cmax out of overload and 1/6 < p_Cmax in it, so
 * that without hysteresis it flaps.
 */
static void loop_where_memoryless_test_flaps_starts_once(void)
{
	CHECK_EQ(loop_check(2, 600, 600, DUALPI2_SIGNAL_RECUR, true), 1);
	CHECK_EQ(loop_check(2, 600, 600, DUALPI2_SIGNAL_RANDOM, true), 1);
	/* k 4, p_Cmax 1/16: 2/11 and 1/11 > 1/16; 0.53: 0.113 and 0.057 */
	CHECK_EQ(loop_check(4, 550, 550, DUALPI2_SIGNAL_RECUR, true), 1);
	CHECK_EQ(loop_check(4, 530, 530, DUALPI2_SIGNAL_RECUR, true), 1);
}

static void loop_below_the_link_rate_never_signals(void)
{
	struct dualpi2_config cfg = unit_config();
	struct loop_result r = loop_run(&cfg, 500, 450);

	CHECK(r.p_c == 0 && r.c_loss == 0 && r.l_loss == 0 && !r.count,
	      "p_C %g", r.p_c);
}

/* Without drop in overload p_C stays at 1/k^2, L4S is never dropped, all its
 * packets are marked, and delay grows.
 */
static void loop_without_drop_in_overload_lets_delay_grow(void)
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

static const struct unit_test overload_tests[] = {
	TEST(overload_enters_when_k_times_base_reaches_one),
	TEST(overload_with_k_one_enters_at_certain_drop_only),
	TEST(overload_leaves_at_half_the_classic_probability),
	TEST(overload_between_thresholds_keeps_state),
	TEST(overload_count_and_time_are_exact),
	TEST(overload_reset_ends_it_and_keeps_the_account),
	TEST(overload_reset_adds_to_what_was_before),
	TEST(overload_without_drop_holds_base_at_its_edge),
	TEST(loop_below_overload_settles_at_the_excess),
	TEST(loop_in_overload_drops_both_alike_at_the_excess),
	TEST(loop_where_memoryless_test_flaps_starts_once),
	TEST(loop_below_the_link_rate_never_signals),
	TEST(loop_without_drop_in_overload_lets_delay_grow),
};
