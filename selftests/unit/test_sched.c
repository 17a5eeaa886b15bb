// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduler: weighted round robin by bytes, in favour of L4S, that starves
 * neither queue (RFC 9332 2.5.1, R22 to R24).
 */

static struct dualpi2_params sched_params(u32 c_protection_pct)
{
	struct dualpi2_config cfg = unit_config();

	cfg.c_protection_pct = c_protection_pct;
	return unit_params(&cfg);
}

static u32 sched_weight(u32 c_protection_pct)
{
	return c_protection_pct < 1 ? 1 : c_protection_pct > 99 ? 99 : c_protection_pct;
}

/* send one packet, both queues have more */
static enum dualpi2_queue sched_send(const struct dualpi2_params *p, struct dualpi2_vars *v,
				     const u32 bytes[DUALPI2_QUEUES])
{
	enum dualpi2_queue queue = dualpi2_sched_pick(v, 1, 1);

	dualpi2_sched_charge(p, v, queue, true, true, bytes[queue]);
	return queue;
}

UNIT_TEST(sched_pick_is_work_conserving)
{
	static const s32 credits[] = {
		INT32_MIN, -1000000, -1, 0, 1, 1000000, INT32_MAX,
	};

	for_each(credit, credits) {
		struct dualpi2_params p = unit_params_k(2);
		struct dualpi2_vars v = unit_vars(&p);

		v.credit = *credit;
		for (unsigned int c = 0; c < 3; c++) {
			for (unsigned int l = 0; l < 3; l++) {
				u32 c_pkts = c == 2 ? U32_MAX : c;
				u32 l_pkts = l == 2 ? U32_MAX : l;
				enum dualpi2_queue got;

				if (!c && !l)
					continue;
				got = dualpi2_sched_pick(&v, c_pkts, l_pkts);
				CHECK(got == DUALPI2_QUEUE_C ? c > 0 : l > 0,
				      "picks an empty queue, credit %d", *credit);
			}
		}
		CHECK_EQ(v.credit, *credit);
	}
}

/* Priority: with as much credit either way it is L4S's turn. */
UNIT_TEST(sched_even_credit_favours_l4s)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);

	v.credit = 0;
	CHECK_EQ(dualpi2_sched_pick(&v, 1, 1), DUALPI2_QUEUE_L);
	v.credit = 1;
	CHECK_EQ(dualpi2_sched_pick(&v, 1, 1), DUALPI2_QUEUE_C);
}

UNIT_TEST(sched_backlogged_shares_converge_to_the_weights)
{
	static const struct { u32 min, max; } sizes[] = {
		{ 64, 65535 }, { 1500, 1500 }, { 64, 64 }, { 40, 1514 },
	};

	for (unsigned int pct = 0; pct <= 100; pct++)
	for_each(size, sizes) {
		struct dualpi2_params p = sched_params(pct);
		struct dualpi2_vars v = unit_vars(&p);
		double want = sched_weight(pct), c_pct;
		u64 sent[DUALPI2_QUEUES] = { 0 };
		u32 bytes[DUALPI2_QUEUES];

		bytes[0] = unit_between(size->min, size->max);
		bytes[1] = unit_between(size->min, size->max);
		for (unsigned int n = 0; n < 6000; n++) {
			enum dualpi2_queue queue = sched_send(&p, &v, bytes);

			sent[queue] += bytes[queue];
			bytes[queue] = unit_between(size->min, size->max);
		}
		c_pct = 100.0 * sent[0] / (sent[0] + sent[1]);
		/* Credit is within 100 of the largest packet, plus the start:
		 * some 200 packets' bytes times weight, of 6000 packets.
		 */
		CHECK(fabs(c_pct - want) < 0.6 ||
		      fabs(c_pct - want) < 3.0 * (want > 50 ? 100 - want : want) / 100,
		      "%u %%: %.3f %% of the bytes", pct, c_pct);
	}
}

/* Exactly: |l_weight * C bytes - c_weight * L bytes| is bounded for ever. */
UNIT_TEST(sched_backlogged_shares_never_drift)
{
	for (unsigned int pct = 0; pct <= 100; pct += 5) {
		struct dualpi2_params p = sched_params(pct);
		struct dualpi2_vars v = unit_vars(&p);
		s64 start = v.credit, debt = 0;
		s64 w = sched_weight(pct);
		u32 bytes[DUALPI2_QUEUES] = { 1500, 1500 };

		for (unsigned int n = 0; n < 20000; n++) {
			enum dualpi2_queue queue = sched_send(&p, &v, bytes);

			debt += queue == DUALPI2_QUEUE_L ? bytes[queue] * w :
				-(s64)bytes[queue] * (100 - w);
			bytes[queue] = unit_between(64, 65535);
			CHECK(v.credit == start + debt, "credit %d", v.credit);
			CHECK(start + debt <= 65535 * 100 &&
			      start + debt >= -65535 * 100, "credit %d", v.credit);
		}
	}
}

/*
 * Wait of a Classic packet (R23, G2).  Credit is above 0 before a Classic packet
 * of S bytes is sent, so it is above -S * l_weight after, and L4S sends no more
 * once it is above 0: fewer than S * l_weight / c_weight bytes and the packet
 * that crosses 0.  From the start, the same with S = MTU and l_weight less
 * c_weight, and not fewer but up to as many.
 */
UNIT_TEST(sched_classic_packet_waits_for_bounded_l4s_bytes)
{
	for (unsigned int pct = 0; pct <= 100; pct++) {
		struct dualpi2_params p = sched_params(pct);
		struct dualpi2_vars v = unit_vars(&p);
		u32 w = sched_weight(pct), bytes[DUALPI2_QUEUES];
		u64 since = 0, bound;

		bytes[0] = unit_between(64, 65535);
		bytes[1] = unit_between(64, 65535);
		bound = w < 50 ? 1514 * (100 - 2 * w) / w + 1 : 1;
		for (unsigned int n = 0; n < 5000; n++) {
			enum dualpi2_queue queue = sched_send(&p, &v, bytes);

			if (queue == DUALPI2_QUEUE_L) {
				CHECK(since < bound,
				      "%u %%: %llu L4S bytes before Classic, less than %llu",
				      pct, (ull)since, (ull)bound);
				since += bytes[queue];
			} else {
				/* least integer that is not below S * l / c */
				bound = (bytes[queue] * (100ULL - w) + w - 1) / w;
				since = 0;
			}
			bytes[queue] = unit_between(64, 65535);
		}
	}
}

/* and the mirror image, for c_protection above 50 */
UNIT_TEST(sched_l4s_packet_waits_for_bounded_classic_bytes)
{
	for (unsigned int pct = 0; pct <= 100; pct++) {
		struct dualpi2_params p = sched_params(pct);
		struct dualpi2_vars v = unit_vars(&p);
		u32 w = sched_weight(pct), bytes[DUALPI2_QUEUES];
		u64 since = 0, bound = UINT64_MAX;

		bytes[0] = unit_between(64, 65535);
		bytes[1] = unit_between(64, 65535);
		for (unsigned int n = 0; n < 5000; n++) {
			enum dualpi2_queue queue = sched_send(&p, &v, bytes);

			if (queue == DUALPI2_QUEUE_C) {
				CHECK(since <= bound, "%u %%: %llu Classic bytes before L4S",
				      pct, (ull)since);
				since += bytes[queue];
			} else {
				bound = (u64)bytes[queue] * w / (100 - w);
				since = 0;
			}
			bytes[queue] = unit_between(64, 65535);
		}
	}
}

/* Equal packets at 10 %: nine of L4S, one of Classic, and so on. */
UNIT_TEST(sched_default_weight_sends_nine_to_one)
{
	struct dualpi2_params p = unit_params_k(2);
	struct dualpi2_vars v = unit_vars(&p);
	static const u32 bytes[DUALPI2_QUEUES] = { 1514, 1514 };
	int n, run = 0;

	for (n = 0; n < 1000; n++) {
		if (sched_send(&p, &v, bytes) == DUALPI2_QUEUE_L) {
			run++;
			CHECK(run <= 9, "%d L4S packets in a row", run);
			continue;
		}
		CHECK_EQ(run, 9);
		run = 0;
	}
}

UNIT_TEST(sched_any_length_never_overflows_credit)
{
	for (unsigned int pct = 0; pct <= 100; pct++) {
		struct dualpi2_params p = sched_params(pct);
		struct dualpi2_vars v;
		u32 bytes[DUALPI2_QUEUES] = { U32_MAX, U32_MAX };
		s64 credit;

		memset(&v, 0, sizeof(v));
		dualpi2_vars_init(&p, &v, U32_MAX, 0);
		credit = v.credit;
		for (unsigned int n = 0; n < 1000; n++) {
			enum dualpi2_queue queue = sched_send(&p, &v, bytes);
			s64 len = bytes[queue] < 1 << 24 ? bytes[queue] : 1 << 24;

			credit += queue == DUALPI2_QUEUE_L ? len * p.c_weight : -len * p.l_weight;
			CHECK(credit == v.credit, "credit %d, want %lld",
			      v.credit, (long long)credit);
			CHECK(credit <= 99LL << 24 && credit >= -(99LL << 24),
			      "credit %lld", (long long)credit);
			bytes[queue] = n < 100 ? U32_MAX : unit_any(0, U32_MAX);
		}
	}
}

UNIT_TEST(sched_start_credit_matches_vectors)
{
	for_each(row, vec_credit) {
		struct dualpi2_params p = sched_params(row->percent);
		s32 got = dualpi2_credit_start(&p, row->mtu);

		CHECK(got == -(s64)row->want, "mtu %llu, %llu %%: %d, want -%llu",
		      (ull)row->mtu, (ull)row->percent, got, (ull)row->want);
	}
}

/* 12.1 kB in favour of L4S by default (R22) */
UNIT_TEST(sched_start_credit_default_is_eight_mtu)
{
	struct dualpi2_params p = unit_params_k(2);

	CHECK(dualpi2_credit_start(&p, 1514) == -121120, "%d", dualpi2_credit_start(&p, 1514));
	CHECK(dualpi2_credit_start(&p, 68) == -5440, "%d", dualpi2_credit_start(&p, 68));
}

/* Credit counts what one queue sends while the other has a backlog, and what
 * Classic sends alone, down to the start.  It starts again once both are empty.
 */
UNIT_TEST(sched_charges_by_what_is_left)
{
	enum { KEEP, CHARGE, CHARGE_TO_START, START };
	static const struct {
		enum dualpi2_queue queue;
		bool c_left, l_left;
		int want;
	} rows[] = {
		{ DUALPI2_QUEUE_L, false, false, START },
		{ DUALPI2_QUEUE_L, true, false, CHARGE },
		{ DUALPI2_QUEUE_L, false, true, KEEP },
		{ DUALPI2_QUEUE_L, true, true, CHARGE },
		{ DUALPI2_QUEUE_C, false, false, START },
		{ DUALPI2_QUEUE_C, true, false, CHARGE_TO_START },
		{ DUALPI2_QUEUE_C, false, true, CHARGE },
		{ DUALPI2_QUEUE_C, true, true, CHARGE },
	};
	static const s32 credits[] = { 500, 0, -500, -1000000 };
	static const u32 lengths[] = { 1, 777, 1345, 1346, 65535 };

	for (unsigned int pct = 0; pct <= 100; pct += 10)
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
	for_each(credit, credits)
	for_each(length, lengths) {
		struct dualpi2_params p = sched_params(pct);
		struct dualpi2_vars v = unit_vars(&p);
		s32 w = sched_weight(pct), start = 1514 * (2 * w - 100);
		s32 len = *length, want = *credit;

		v.credit = *credit;
		dualpi2_sched_charge(&p, &v, rows[i].queue, rows[i].c_left, rows[i].l_left, len);
		if (rows[i].want == START)
			want = start;
		else if (rows[i].want != KEEP)
			want += rows[i].queue == DUALPI2_QUEUE_L ? len * w : -len * (100 - w);
		if (rows[i].want == CHARGE_TO_START && want < start)
			want = start;
		CHECK(v.credit == want, "row %u, %u %%, %d bytes: credit %d, want %d", i, pct,
		      len, v.credit, want);
		CHECK(v.credit_start == start, "start %d", v.credit_start);
	}
}

struct sched_sim {
	struct dualpi2_params p;
	struct dualpi2_vars v;
	u32 len[DUALPI2_QUEUES];
};

static struct sched_sim sched_sim_start(u32 pct)
{
	struct sched_sim s;

	memset(&s, 0, sizeof(s));
	s.p = sched_params(pct);
	s.v = unit_vars(&s.p);
	return s;
}

static enum dualpi2_queue sched_sim_send(struct sched_sim *s, u32 bytes)
{
	enum dualpi2_queue queue = dualpi2_sched_pick(&s->v, s->len[0], s->len[1]);

	CHECK(s->len[queue], "picks an empty queue");
	s->len[queue]--;
	dualpi2_sched_charge(&s->p, &s->v, queue, s->len[0], s->len[1], bytes);
	return queue;
}

/* Any pattern of arrivals: a Classic packet waits for no more L4S bytes than
 * from the start, or after the Classic packet before it, whichever is more, and
 * the packet that crosses 0; likewise L4S for Classic.  Credit stays bounded.
 */
UNIT_TEST(sched_any_arrivals_bound_wait_and_credit)
{
	for (unsigned int pct = 0; pct <= 100; pct++) {
		struct sched_sim s = sched_sim_start(pct);
		u32 w = sched_weight(pct), mode = 0;
		/* bytes that one sent since the other's packet waits */
		u64 c_wait = 0, l_wait = 0;
		/* packets of at most 65535 bytes */
		u64 c_bound = 65535ULL * (100 - w) / w + 65535;
		u64 l_bound = 65535ULL * w / (100 - w) + 65535;
		s64 limit = 65535LL * 99 + 1514 * 98;

		for (unsigned int n = 0; n < 10000; n++) {
			u32 bytes = unit_any(64, 65535);

			if (n % 50 == 0)
				mode = unit_rnd() % 8;
			s.len[0] += mode & 1 || unit_rnd() % 4 == 0;
			s.len[1] += mode & 2 || unit_rnd() % 4 == 0;
			if (mode & 4 && n % 50 == 10)
				s.len[1] += 10;
			if (!s.len[0] && !s.len[1])
				continue;
			if (!s.len[0])
				c_wait = 0;
			if (!s.len[1])
				l_wait = 0;
			if (sched_sim_send(&s, bytes) == DUALPI2_QUEUE_C) {
				l_wait += bytes;
				c_wait = 0;
			} else {
				c_wait += s.len[0] ? bytes : 0;
				l_wait = 0;
			}
			CHECK(c_wait <= c_bound, "%u %%: Classic waits for %llu bytes",
			      pct, (ull)c_wait);
			CHECK(!s.len[1] || l_wait <= l_bound,
			      "%u %%: L4S waits for %llu bytes", pct, (ull)l_wait);
			CHECK(s.v.credit <= limit && s.v.credit >= -limit, "credit %d", s.v.credit);
		}
	}
}

/* R22: after L4S was empty, a burst of up to nine MTU is not interrupted by a
 * backlogged Classic queue, whatever Classic sent before.
 */
UNIT_TEST(sched_l4s_burst_after_pause_is_not_interrupted)
{
	for (u32 pause = 1; pause < 100; pause++) {
		struct sched_sim s = sched_sim_start(10);

		s.len[0] = 100000;
		for (u32 burst = 1; burst <= 9; burst++) {
			for (u32 i = 0; i < pause; i++)
				CHECK_EQ(sched_sim_send(&s, 1514), DUALPI2_QUEUE_C);
			s.len[1] = burst;
			for (u32 i = 0; i < burst; i++)
				CHECK_EQ(sched_sim_send(&s, 1514), DUALPI2_QUEUE_L);
		}
		/* but the tenth */
		CHECK_EQ(sched_sim_send(&s, 1514), DUALPI2_QUEUE_C);
		s.len[1] = 10;
		for (u32 i = 0; i < 9; i++)
			CHECK_EQ(sched_sim_send(&s, 1514), DUALPI2_QUEUE_L);
		CHECK_EQ(sched_sim_send(&s, 1514), DUALPI2_QUEUE_C);
	}
}

/* However L4S times its pauses, Classic packets of the same size get at least
 * their weight, rounded to whole packets: the start credit covers
 * (l_weight - c_weight) / c_weight packets, and one crosses 0.
 */
UNIT_TEST(sched_classic_share_holds_against_any_l4s_timing)
{
	static const u32 weights[] = { 1, 5, 10, 25, 50, 75, 99 };
	unsigned int n;

	for_each(weight, weights)
	for (unsigned int idle = 1; idle <= 40; idle++) {
		struct sched_sim s = sched_sim_start(*weight);
		u64 sent[DUALPI2_QUEUES] = { 0 };
		u32 w = *weight, turn = w < 50 ? (100 - 2 * w) / w + 1 : 1;

		if (turn < (100 - w) / w + 1)
			turn = (100 - w) / w + 1;
		s.len[0] = 1000000;
		for (n = 0; n < 20000; n++) {
			enum dualpi2_queue queue;

			/* L4S leaves its queue empty for every idle-th */
			s.len[1] = (n % idle) ? 1 : 0;
			queue = sched_sim_send(&s, 1514);
			sent[queue]++;
		}
		CHECK(sent[0] * (turn + 1) + turn >= n,
		      "%u %%: %llu of %u packets, pause each %u", w, (ull)sent[0], n, idle);
	}
}

/* The rule of version 2.4: Classic that sends while L4S is empty resets credit. */
static void sched_charge_2_4(const struct dualpi2_params *p,
			     struct dualpi2_vars *v, enum dualpi2_queue queue,
			     bool c_left, bool l_left, u32 bytes)
{
	if (queue == DUALPI2_QUEUE_L ? c_left : l_left)
		v->credit += queue == DUALPI2_QUEUE_L ? (s32)bytes * p->c_weight :
			     -(s32)bytes * p->l_weight;
	else if (!l_left)
		v->credit = v->credit_start;
}

typedef void sched_rule(const struct dualpi2_params *p, struct dualpi2_vars *v,
			enum dualpi2_queue queue, bool c_left, bool l_left, u32 bytes);

/* Share of bytes, in percent, of a Classic queue that always has a backlog, against
 * L4S in trains; one Classic packet leaves between two of them.
 */
static double sched_share_against_trains(sched_rule *charge, u32 pct,
					 u32 c_bytes, u32 l_bytes, u32 train)
{
	struct dualpi2_params p = sched_params(pct);
	struct dualpi2_vars v = unit_vars(&p);
	double sent[DUALPI2_QUEUES] = { 0 };
	u32 left, n = 0;

	while (n < 100000) {
		for (left = train; left; n++) {
			enum dualpi2_queue queue = dualpi2_sched_pick(&v, 1, 1);
			u32 bytes = queue == DUALPI2_QUEUE_C ? c_bytes : l_bytes;

			left -= queue == DUALPI2_QUEUE_L;
			charge(&p, &v, queue, true, left, bytes);
			sent[queue] += bytes;
		}
		charge(&p, &v, DUALPI2_QUEUE_C, true, false, c_bytes);
		sent[DUALPI2_QUEUE_C] += c_bytes;
		n++;
	}
	return 100 * sent[DUALPI2_QUEUE_C] / (sent[DUALPI2_QUEUE_C] + sent[DUALPI2_QUEUE_L]);
}

/* An L4S sender that leaves its queue empty for one packet now and then takes
 * nothing from a Classic queue of small packets.
 */
UNIT_TEST(sched_small_classic_packets_keep_their_share_against_trains)
{
	static const struct { u32 train; double was, equal; } rows[] = {
		{ 9, 0.47, 100.0 / 10 },
		{ 8, 0.53, 100.0 / 9 },
		{ 20, 5.96, 300.0 / 23 },
	};

	for_each(row, rows) {
		double was = sched_share_against_trains(sched_charge_2_4, 10, 64, 1514, row->train);
		double is = sched_share_against_trains(dualpi2_sched_charge, 10,
						       64, 1514, row->train);

		CHECK(fabs(was - row->was) < 0.005,
		      "trains of %u: version 2.4 gave %.3f %%", row->train, was);
		CHECK(fabs(is - 10) <= 0.5, "trains of %u: %.3f %%", row->train, is);
		/* One packet in the pause is more than a tenth of eight or
		 * nine, and of what remains of twenty after two turns.
		 */
		was = sched_share_against_trains(sched_charge_2_4, 10, 1514, 1514, row->train);
		is = sched_share_against_trains(dualpi2_sched_charge, 10, 1514, 1514, row->train);
		CHECK(fabs(is - was) < 0.000001 && fabs(is - row->equal) < 0.005,
		      "trains of %u: %.3f %%, was %.3f %%", row->train, is, was);
	}
}

/* Any weight, lengths and trains: at least the weight, as trains of that length go. */
UNIT_TEST(sched_trains_of_any_length_leave_classic_its_weight)
{
	for (int i = 0; i < 100; i++) {
		u32 pct = unit_between(1, 99), train = unit_between(1, 300);
		u32 c_bytes = unit_between(64, 1514);
		u32 l_bytes = unit_between(64, 1514);
		double is = sched_share_against_trains(dualpi2_sched_charge, pct, c_bytes, l_bytes,
						       train);

		CHECK(is > pct - 0.5, "%u %%: %.3f %%, %u, %u bytes, %u a train",
		      pct, is, c_bytes, l_bytes, train);
	}
}

/* Packets of the MTU have the same credit as before, after any packet; shorter
 * ones of one length have at least as much.
 */
UNIT_TEST(sched_packets_of_the_mtu_are_sent_as_in_version_2_4)
{
	static const u32 lengths[] = { 1514, 1513, 576, 64 };

	for (u32 pct = 0; pct <= 100; pct++)
	for_each(length, lengths) {
		struct sched_sim s = sched_sim_start(pct);
		u32 len = *length;

		for (u32 n = 0; n < 3000; n++) {
			bool c_left, l_left;
			struct dualpi2_vars was = s.v;
			enum dualpi2_queue queue;

			s.len[0] += unit_rnd() % 3 == 0;
			s.len[1] += unit_rnd() % 97 < pct;
			if (!s.len[0] && !s.len[1])
				continue;
			queue = sched_sim_send(&s, len);
			c_left = s.len[0];
			l_left = s.len[1];
			sched_charge_2_4(&s.p, &was, queue, c_left, l_left, len);
			if (len == 1514 || pct >= 50)
				CHECK(s.v.credit == was.credit,
				      "%u %%: %d, was %d", pct, s.v.credit, was.credit);
			else
				CHECK(s.v.credit >= was.credit,
				      "%u %%: %d, was %d", pct, s.v.credit, was.credit);
		}
	}
}

/* What Classic sends alone is no claim, however much it is, nor a debt. */
UNIT_TEST(sched_classic_alone_comes_back_to_the_start)
{
	struct sched_sim s = sched_sim_start(10);
	int i;

	s.len[0] = 1000;
	s.v.credit = 15140;
	/* (15140 + 121120) / (64 * 90) packets are 23.7 */
	for (i = 1; i <= 23; i++) {
		CHECK_EQ(sched_sim_send(&s, 64), DUALPI2_QUEUE_C);
		CHECK(s.v.credit == 15140 - i * 5760, "%d", s.v.credit);
	}
	for (; i < 900; i++) {
		CHECK_EQ(sched_sim_send(&s, 64), DUALPI2_QUEUE_C);
		CHECK(s.v.credit == -121120, "%d", s.v.credit);
	}
	/* the longest of all, from the maximum credit and from the minimum */
	s = sched_sim_start(1);
	s.len[0] = 3;
	s.v.credit = 99 << 24;
	sched_sim_send(&s, U32_MAX);
	CHECK(s.v.credit == 0, "%d", s.v.credit);
	sched_sim_send(&s, U32_MAX);
	CHECK(s.v.credit == -1514 * 98, "%d", s.v.credit);
	s = sched_sim_start(1);
	s.len[0] = 2;
	s.v.credit = -(99 << 24);
	sched_sim_send(&s, U32_MAX);
	CHECK(s.v.credit == -1514 * 98, "%d", s.v.credit);
}

/* Any pattern of arrivals, any lengths, any MTU: within 99 * 2^24 either way. */
UNIT_TEST(sched_any_arrivals_of_any_length_never_overflow_credit)
{
	for (u32 pct = 0; pct <= 100; pct++) {
		struct sched_sim s = sched_sim_start(pct);

		dualpi2_vars_init(&s.p, &s.v, unit_any(1, U32_MAX), 0);
		for (u32 n = 0; n < 3000; n++) {
			s.len[0] += unit_rnd() % 3;
			s.len[1] += unit_rnd() % 3;
			while ((s.len[0] || s.len[1]) && unit_rnd() % 3) {
				sched_sim_send(&s, unit_rnd() % 2 ? U32_MAX : unit_any(0, U32_MAX));
				CHECK(s.v.credit <= 99 << 24 &&
				      s.v.credit >= -(99 << 24), "credit %d", s.v.credit);
			}
			/* another MTU, as a device may have at any time */
			if (unit_rnd() % 16 == 0)
				s.v.credit_start = dualpi2_credit_start(&s.p, unit_any(1, U32_MAX));
		}
	}
}
