/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2: queue protection (RFC 9957): which flow builds the L4S queue, and is
 * redirected to the Classic queue.
 *
 * The score of a flow is the congestion that it contributed to: bytes times native
 * marking probability, less a constant rate.  It is stored as the time when it expires.
 * Unlike the packets of the RFC, whole flows are redirected (section 5.5).
 */
#ifndef _NET_DUALPI2_QPROTECT_H
#define _NET_DUALPI2_QPROTECT_H

#include <net/dualpi2_mark.h>

/* Buckets for one flow each, and one that flows without a bucket share. */
#define DUALPI2_QPROTECT_FLOWS		32U
#define DUALPI2_QPROTECT_BUCKETS	(DUALPI2_QPROTECT_FLOWS + 1)

#define DUALPI2_QPROTECT_SCORE_MAX_NS	(5ULL * DUALPI2_NS_PER_SEC)

/* Score packets for so long after the L4S queue was congested, a flow had a score or was
 * redirected, so that the next of repeated bursts is scored from its begin on.  No score
 * lasts longer.  A burst each 5 s delays more than 1 % of the packets only if it takes
 * 50 ms of the link, and such a burst is scored when its first packet has waited to the
 * begin of the ramp.
 */
#define DUALPI2_QPROTECT_ARMED_NS	DUALPI2_QPROTECT_SCORE_MAX_NS

/* A flow that is sanctioned so soon after its return does not respond: responsive
 * senders slow down within 100 ms.
 */
#define DUALPI2_QPROTECT_PROBATION_NS	(DUALPI2_NS_PER_SEC / 10)

/* Longer delays count as this, so that products with a score are below 2^64. */
#define DUALPI2_QPROTECT_DELAY_MAX_NS	(1U << 31)

/* The critical delay is longer than the option, and than a ramp of the AQM, by what a
 * responsive sender sends at once: the serialization time of this many packets of
 * DUALPI2_LOW_MTU_BYTES, the two that each sender may have in the queue and one, or
 * DUALPI2_BURST_MIN_NS if that is more.
 */
#define DUALPI2_QPROTECT_PKTS		3ULL

/* Numbers that identify a flow, and random numbers of their hash. */
#define DUALPI2_QPROTECT_WORDS		10U
#define DUALPI2_QPROTECT_KEYS		(DUALPI2_QPROTECT_WORDS + 1)

enum dualpi2_qprotect_mode {
	DUALPI2_QPROTECT_OFF,
	DUALPI2_QPROTECT_TUPLE,
	DUALPI2_QPROTECT_HASH,
};

enum dualpi2_qprotect_verdict {
	DUALPI2_QPROTECT_KEEP,		/* in the L4S queue */
	DUALPI2_QPROTECT_SANCTION,	/* redirect this packet and those after it */
	DUALPI2_QPROTECT_REDIRECT,	/* the flow is redirected already, or this packet alone */
};

/**
 * struct dualpi2_qprotect_params - the options in the units of the packet path
 * @ramp: native marker for scores alone, if that of the AQM is a step
 * @has_ramp: use @ramp
 * @overload: the Classic queue is in overload
 * @delay_ns: critical delay
 * @wait_ns: how long a flow whose score has expired waits at most for its packets to
 *	leave the Classic queue, if that is not in overload
 * @product: critical delay times critical score, ns^2, below 2^64
 * @ns_per_byte_q20: increase of a score per byte that is marked for certain
 */
struct dualpi2_qprotect_params {
	struct dualpi2_ramp ramp;
	bool has_ramp;
	bool overload;
	u32 delay_ns;
	u32 wait_ns;
	u64 product;
	u64 ns_per_byte_q20;
};

/**
 * struct dualpi2_qprotect_bucket - a flow
 * @expiry_ns: time when the score reaches 0
 * @last_ns: how long the last sanction was to last, with the wait
 * @probation_ns: before this time, the score of a new sanction is at least twice
 *	@last_ns, or the highest
 * @c_end: number of bytes that the Classic queue had received when the flow's last
 *	redirected packet joined it; 0: the flow is not redirected
 * @hash: of the flow; the low ten bits select two buckets for it.  0: the shared
 *	bucket, or not used yet
 * @redirected: packets of this flow; at most U32_MAX
 */
struct dualpi2_qprotect_bucket {
	u64 expiry_ns;
	u64 last_ns;
	u64 probation_ns;
	u64 c_end;
	u32 hash;
	u32 redirected;
};

/**
 * dualpi2_qprotect_init() - convert the options to parameters
 * @qp: to be filled
 * @cfg: options, each within its range
 * @p: parameters
 * @ns_per_byte_q20: serialization time of a byte; 0: not known
 * @v: state: p', the ramp in force and the effective target of the Classic queue
 *
 * RFC 9957 scores with a ramp that ends at the critical delay and begins at about half
 * of it.  If the AQM has a ramp, the critical delay is above the end of that ramp: the
 * AQM keeps the delay of responsive flows on it, with peaks beyond.
 */
static inline void
dualpi2_qprotect_init(struct dualpi2_qprotect_params *qp,
		      const struct dualpi2_config *cfg,
		      const struct dualpi2_params *p, const struct dualpi2_vars *v,
		      u64 ns_per_byte_q20)
{
	u64 pkts_ns = dualpi2_bytes_ns(ns_per_byte_q20, DUALPI2_QPROTECT_PKTS *
							DUALPI2_LOW_MTU_BYTES);
	u64 burst_ns = max_t(u64, pkts_ns, DUALPI2_BURST_MIN_NS);
	u64 delay_ns = dualpi2_us_to_ns(cfg->qprotect_delay_us);

	qp->has_ramp = p->step_pkts != U32_MAX || !p->ramp.slope;
	if (!qp->has_ramp)
		delay_ns = max_t(u64, delay_ns, v->ramp.max_ns);
	qp->delay_ns = min_t(u64, delay_ns + burst_ns, DUALPI2_QPROTECT_DELAY_MAX_NS);
	qp->wait_ns = v->target_ns;
	qp->overload = v->base_q32 >= p->enter_q32;
	/* At most 2^31 * 5 * 10^9. */
	qp->product = (u64)qp->delay_ns * cfg->qprotect_score_us *
		      DUALPI2_NS_PER_US;
	qp->ns_per_byte_q20 = dualpi2_ns_per_byte_q20(cfg->qprotect_rate);
	dualpi2_ramp_init(&qp->ramp, qp->delay_ns / 2, qp->delay_ns);
}

/**
 * dualpi2_qprotect_native_q32() - native marking probability for scores
 * @qp: parameters of queue protection
 * @v: state
 * @shared: the Classic queue has a backlog
 * @delay_ns: of the L4S queue
 */
static inline u64
dualpi2_qprotect_native_q32(const struct dualpi2_qprotect_params *qp,
			    const struct dualpi2_vars *v, bool shared,
			    u64 delay_ns)
{
	if (qp->has_ramp)
		return dualpi2_ramp_q32(&qp->ramp, delay_ns);
	return dualpi2_ramp_q32(shared ? &v->shared_ramp : &v->ramp, delay_ns);
}

/**
 * dualpi2_qprotect_score_ns() - the score of a flow
 * @b: its bucket
 * @now_ns: time
 *
 * Return: 0..DUALPI2_QPROTECT_SCORE_MAX_NS.
 */
static inline u64
dualpi2_qprotect_score_ns(const struct dualpi2_qprotect_bucket *b, u64 now_ns)
{
	return b->expiry_ns > now_ns ? b->expiry_ns - now_ns : 0;
}

/**
 * dualpi2_qprotect_is_free() - has a flow neither a score nor redirected packets?
 * @qp: parameters
 * @b: its bucket
 * @c_out: bytes that have left the Classic queue since the begin, forwarded or dropped
 * @now_ns: time, at most 2^62
 *
 * The redirection of a flow ends then.  Once the score has expired, it ends when the
 * last redirected packet has left the Classic queue: no packet in the L4S queue can
 * overtake one of them.  A flow that sends steadily always has packets there.  After
 * @qp->wait_ns it returns nevertheless, with one reordering event: its next packets
 * overtake those in the Classic queue.  But not in overload: if it is the cause, overload
 * would continue, and drop packets of other flows in the L4S queue.
 */
static inline bool
dualpi2_qprotect_is_free(const struct dualpi2_qprotect_params *qp,
			 const struct dualpi2_qprotect_bucket *b, u64 c_out,
			 u64 now_ns)
{
	return b->expiry_ns <= now_ns &&
	       (c_out >= b->c_end ||
		(!qp->overload && b->expiry_ns + qp->wait_ns <= now_ns));
}

/**
 * struct dualpi2_qprotect_use - what the buckets hold at a time
 * @used: buckets that are not free
 * @redirected: flows that are redirected
 * @score_max_ns: highest score
 */
struct dualpi2_qprotect_use {
	u32 used;
	u32 redirected;
	u64 score_max_ns;
};

/**
 * dualpi2_qprotect_use() - count the buckets in use
 * @qp: parameters
 * @buckets: DUALPI2_QPROTECT_BUCKETS
 * @c_out: see dualpi2_qprotect_is_free()
 * @now_ns: time
 */
static inline struct dualpi2_qprotect_use
dualpi2_qprotect_use(const struct dualpi2_qprotect_params *qp,
		     const struct dualpi2_qprotect_bucket *buckets, u64 c_out,
		     u64 now_ns)
{
	struct dualpi2_qprotect_use use = {};
	u32 i;

	for (i = 0; i < DUALPI2_QPROTECT_BUCKETS; i++) {
		const struct dualpi2_qprotect_bucket *b = &buckets[i];

		if (dualpi2_qprotect_is_free(qp, b, c_out, now_ns))
			continue;
		use.used++;
		use.redirected += !!b->c_end;
		use.score_max_ns = max_t(u64, use.score_max_ns,
					 dualpi2_qprotect_score_ns(b, now_ns));
	}
	return use;
}

/**
 * dualpi2_qprotect_hash() - hash of a flow
 * @keys: DUALPI2_QPROTECT_KEYS random numbers
 * @words: what identifies the flow
 * @n: number of words, even, at most DUALPI2_QPROTECT_WORDS
 *
 * Multilinear-HM (Lemire and Kaser, "Strongly universal string hashing is fast", 2014):
 * two flows chosen without knowledge of the keys have the same hash with a probability
 * of 2^-32, and the same bucket with one of 2^-5.  A multiplication for two words is
 * cheaper than siphash.
 *
 * Return: the hash; 1 for 0, which stands for the shared bucket.
 */
static inline u32
dualpi2_qprotect_hash(const u64 *keys, const u32 *words, u32 n)
{
	u64 sum = keys[0];
	u32 i;

	for (i = 0; i < n; i += 2)
		sum += (keys[i + 1] + words[i]) * (keys[i + 2] + words[i + 1]);
	return sum >> 32 ?: 1;
}

/**
 * dualpi2_qprotect_pick() - the bucket of a flow
 * @qp: parameters
 * @buckets: DUALPI2_QPROTECT_BUCKETS
 * @hash: of the flow, not 0
 * @native_q32: native marking probability; 0: the flow gets no bucket that it does not
 *	have, and no other flow loses its probation
 * @c_out: see dualpi2_qprotect_is_free()
 * @now_ns: time
 *
 * RFC 9957 4.2: the flow's own, or the free one of two whose score expired earlier, or
 * the shared one.
 *
 * Return: index of the bucket, prepared for the flow.
 */
static inline u32
dualpi2_qprotect_pick(const struct dualpi2_qprotect_params *qp,
		      struct dualpi2_qprotect_bucket *buckets, u32 hash,
		      u64 native_q32, u64 c_out, u64 now_ns)
{
	u32 first = hash % DUALPI2_QPROTECT_FLOWS;
	u32 second = hash / DUALPI2_QPROTECT_FLOWS % DUALPI2_QPROTECT_FLOWS;
	u32 i = first;

	if (buckets[first].hash == hash)
		return first;
	if (buckets[second].hash == hash)
		return second;
	if (!native_q32)
		return DUALPI2_QPROTECT_FLOWS;
	if (buckets[second].expiry_ns < buckets[first].expiry_ns)
		i = second;
	if (!dualpi2_qprotect_is_free(qp, &buckets[i], c_out, now_ns))
		i = first ^ second ^ i;
	if (!dualpi2_qprotect_is_free(qp, &buckets[i], c_out, now_ns))
		return DUALPI2_QPROTECT_FLOWS;
	buckets[i] = (struct dualpi2_qprotect_bucket) { .hash = hash };
	return i;
}

/**
 * dualpi2_qprotect_sanction() - begin the redirection of a flow
 * @qp: parameters
 * @b: its bucket, with a score
 * @now_ns: time, at most 2^62
 *
 * An unresponsive flow builds the L4S queue again whenever it returns.  So that it can do
 * so ever more seldom, a sanction within DUALPI2_QPROTECT_PROBATION_NS of its return
 * lasts at least twice as long as the last one, with a score of up to
 * DUALPI2_QPROTECT_SCORE_MAX_NS.
 */
static inline void
dualpi2_qprotect_sanction(const struct dualpi2_qprotect_params *qp,
			  struct dualpi2_qprotect_bucket *b, u64 now_ns)
{
	u64 score_ns = b->expiry_ns - now_ns;

	if (now_ns < b->probation_ns)
		score_ns = max_t(u64, score_ns,
				 min_t(u64, 2 * b->last_ns,
				       DUALPI2_QPROTECT_SCORE_MAX_NS));
	b->last_ns = score_ns + qp->wait_ns;
	b->expiry_ns = now_ns + score_ns;
}

/**
 * dualpi2_qprotect_verdict() - score a packet, and decide on its queue
 * @qp: parameters
 * @b: its bucket
 * @bytes: its length; GSO: of all segments
 * @native_q32: native marking probability, 0..1; 0: the packet raises no score
 * @nqb: in the L4S queue for its DSCP
 * @delay_ns: of the L4S queue
 * @c_out: see dualpi2_qprotect_is_free()
 * @now_ns: time, at most 2^62
 *
 * RFC 9957 4.1.  The increase is at most DUALPI2_QPROTECT_SCORE_MAX_NS, below 2^33, and
 * its product with half of the probability below 2^64.
 *
 * A redirected packet raises the score only while others congest the L4S queue.  Such
 * increases do not begin at the present time if the score has expired before.  So a flow
 * that would cause less congestion than the constant rate returns: single marks do not
 * put the return off each time.
 *
 * With the highest score the RFC redirects at any delay.  Here only NQB, which should not
 * build a queue: scalable senders that keep the AQM's ramp can reach it.  Linux DCTCP
 * does from some 100 Mbit/s on.
 *
 * Of the shared bucket single packets are redirected, as in the RFC: not all of its
 * flows are the cause.
 *
 * If the verdict is not to keep the packet, the caller sets @b->c_end once the packet
 * has joined the Classic queue, but not of the shared bucket.
 */
static inline enum dualpi2_qprotect_verdict
dualpi2_qprotect_verdict(const struct dualpi2_qprotect_params *qp,
			 struct dualpi2_qprotect_bucket *b, u32 bytes,
			 u64 native_q32, bool nqb, u64 delay_ns, u64 c_out,
			 u64 now_ns)
{
	u64 more_ns, score_ns;

	if (b->c_end && dualpi2_qprotect_is_free(qp, b, c_out, now_ns)) {
		b->c_end = 0;
		b->probation_ns = now_ns + DUALPI2_QPROTECT_PROBATION_NS;
	}
	if (!b->c_end)
		b->expiry_ns = max_t(u64, b->expiry_ns, now_ns);
	more_ns = min_t(u64, dualpi2_bytes_ns(qp->ns_per_byte_q20, bytes),
			DUALPI2_QPROTECT_SCORE_MAX_NS);
	b->expiry_ns = min_t(u64, b->expiry_ns +
				  (more_ns * (native_q32 >> 1) >> 31),
			     now_ns + DUALPI2_QPROTECT_SCORE_MAX_NS);
	if (b->c_end)
		return DUALPI2_QPROTECT_REDIRECT;
	if (!native_q32)
		return DUALPI2_QPROTECT_KEEP;
	score_ns = b->expiry_ns - now_ns;
	if (!(nqb && score_ns >= DUALPI2_QPROTECT_SCORE_MAX_NS) &&
	    (delay_ns <= qp->delay_ns ||
	     min_t(u64, delay_ns, DUALPI2_QPROTECT_DELAY_MAX_NS) * score_ns <=
	     qp->product))
		return DUALPI2_QPROTECT_KEEP;
	if (!b->hash)
		return DUALPI2_QPROTECT_REDIRECT;
	dualpi2_qprotect_sanction(qp, b, now_ns);
	return DUALPI2_QPROTECT_SANCTION;
}

#endif /* _NET_DUALPI2_QPROTECT_H */
