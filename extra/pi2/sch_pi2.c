// SPDX-License-Identifier: GPL-2.0-only
/*
 * pi2: the AQM of "PI2: A Linearized AQM for both Classic and Scalable TCP" (De
 * Schepper et al., CoNEXT 2016), in one queue.  Experimental: the paper calls one
 * queue for both kinds of traffic a step in research, not to be deployed.  What is
 * meant for that is dualpi2.
 *
 * This file binds the algorithm to the kernel.  What is decided, and by which
 * formula, is in pi2.h and net/dualpi2.h.
 *
 * Of PIE, which the paper's own qdisc was made from, none of the heuristics is here,
 * as section 5 has it; each is absent, not switched off:
 *   - burst allowance: no signals for 100 ms after the queue was empty;
 *   - no signals while the probability is below 20 % and the delay below half the
 *     target;
 *   - ECN packets dropped, not marked, at a probability above 10 %: instead p_c ends
 *     at 1/k^2, 25 % by default, and p_s at 1, and then the queue grows to its limit;
 *   - steps of the probability limited to 2 % where it is above 10 %;
 *   - steps of 2 % where the delay is above 250 ms;
 *   - gains scaled by the probability (auto-tuning): the square takes its place.
 * And what differs from that qdisc: the delay is estimated from a departure rate, but
 * of a queue below 16 KiB it is the age of its first packet if that is less; and
 * packets are marked or dropped at dequeue, unless drop_enqueue is set.  One rule of
 * PIE's is kept, as the paper does not name it: there is no signal while the queue holds
 * less than two packets of full size.
 *
 * There is no timer: the first dequeue after tupdate updates the PI controller, and
 * the first enqueue into an empty queue makes up for the time without packets.
 *
 * Locking: enqueue, dequeue and peek run under the root qdisc's lock, reset does
 * where packets may still come; change and the statistics take it; init, change and
 * dump run under RTNL.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <net/gen_stats.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include "pi2_uapi.h"
#include "pi2.h"
#include <qdisc/attr.h>
#include <qdisc/packet.h>
#include "gso.h"
#include <compat/compat.h>

/* In &dualpi2_cb.flags.  The first one makes each packet get one decision, also if
 * drop_enqueue changes while the packet is queued.
 */
#define PI2_CB_DECIDED	BIT(8)	/* enqueue has decided */
#define PI2_CB_MARKED	BIT(9)	/* set to CE here; counted when it is forwarded */

struct pi2_sched_data {
	struct qdisc_skb_head list;
	u64 bytes;		/* in the list */
	u32 mtu_bytes;
	struct pi2_drain drain;
	struct dualpi2_vars vars;
	struct dualpi2_params params;
	struct pi2_config config;
	struct rnd_state rnd;	/* for random signals */
	struct tc_pi2_xstats stats;	/* what is counted of it */
};

static struct tc_pi2_codepoint *pi2_account(struct pi2_sched_data *q,
					    const struct sk_buff *skb)
{
	return &q->stats.codepoint[dualpi2_cb(skb)->flags & DUALPI2_CB_ECN];
}

static u64 pi2_head_age_ns(const struct pi2_sched_data *q, u64 now_ns)
{
	const struct sk_buff *skb = q->list.head;

	return skb ? now_ns - dualpi2_cb(skb)->queued_ns : 0;
}

/* Called when an update is due. */
static void pi2_update(struct Qdisc *sch, u64 now_ns)
{
	struct pi2_sched_data *q = qdisc_priv(sch);

	q->mtu_bytes = psched_mtu(qdisc_dev(sch));
	if (sch->q.qlen)
		dualpi2_pi_update(&q->params, &q->vars,
				  pi2_delay_ns(&q->drain, q->bytes,
					       pi2_head_age_ns(q, now_ns)),
				  now_ns);
	else
		dualpi2_pi_idle(&q->params, &q->vars, now_ns);
	pi2_set_classic(&q->config, &q->vars);
}

/* Bring a qdisc that has been idle up to date, and return the time.  Called under
 * the root qdisc's lock.
 */
static u64 pi2_now(struct Qdisc *sch)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();

	if (!sch->q.qlen && dualpi2_pi_is_due(&q->vars, now_ns))
		pi2_update(sch, now_ns);
	return now_ns;
}

/* The bits that the next decision may draw on. */
static u64 pi2_decision_bits(struct pi2_sched_data *q, u64 now_ns)
{
	if (!q->params.random)
		return now_ns << 32 | (u32)now_ns;
	return (u64)prandom_u32_state(&q->rnd) << 32 |
	       prandom_u32_state(&q->rnd);
}

/* Give a packet that is not in the list the signal that it is due.  @may_drop: see
 * struct pi2_packet.
 *
 * Return: true if the packet was counted as dropped; the caller frees it.
 */
static bool pi2_signal(struct pi2_sched_data *q, struct sk_buff *skb,
		       u64 now_ns, bool may_drop)
{
	const struct pi2_packet pkt = {
		.ecn = dualpi2_cb(skb)->flags & DUALPI2_CB_ECN,
		.ecn_is_on = q->config.ecn,
		.may_drop = may_drop,
		.backlog_bytes = q->bytes + qdisc_pkt_len(skb),
		.mtu_bytes = q->mtu_bytes,
		.rnd = pi2_decision_bits(q, now_ns),
	};

	switch (pi2_verdict(&q->params, &q->vars, &pkt)) {
	case DUALPI2_PASS:
		return false;
	case DUALPI2_DROP_AQM:
		pi2_account(q, skb)->dropped_aqm++;
		q->stats.dropped_bytes += qdisc_pkt_len(skb);
		return true;
	default:
		if (dualpi2_set_ce(skb))
			dualpi2_cb(skb)->flags |= PI2_CB_MARKED;
		else
			q->stats.mark_failed++;
		return false;
	}
}

/* Queue one packet.  Returns NET_XMIT_*. */
static int pi2_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u64 now_ns,
			   struct sk_buff **to_free)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	struct tc_pi2_codepoint *account = pi2_account(q, skb);
	u32 len = qdisc_pkt_len(skb);

	account->arrived++;
	q->stats.arrived_bytes += len;
	if (sch->q.qlen >= q->config.limit_pkts) {
		account->dropped_limit++;
		q->stats.dropped_bytes += len;
		return qdisc_drop(skb, sch, to_free);
	}
	if (q->config.drop_enqueue) {
		dualpi2_cb(skb)->flags |= PI2_CB_DECIDED;
		if (pi2_signal(q, skb, now_ns, true))
			return qdisc_drop(skb, sch, to_free);
	}
	dualpi2_cb(skb)->queued_ns = now_ns;
	__qdisc_enqueue_tail(skb, &q->list);
	q->bytes += len;
	qdisc_qstats_backlog_inc(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	q->stats.max_packets = max(q->stats.max_packets, sch->q.qlen);
	return NET_XMIT_SUCCESS;
}

static int pi2_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns = pi2_now(sch);
	struct dualpi2_cb cb = {};
	int dsfield;

	dsfield = dualpi2_read_dsfield(skb, &cb);
	if (dsfield < 0)
		q->stats.unparsed++;
	else
		cb.flags |= dsfield & INET_ECN_MASK;
	*dualpi2_cb(skb) = cb;

	if (skb_is_gso(skb))
		return extra_enqueue_gso(skb, sch, now_ns, to_free,
					 pi2_enqueue_one, &q->stats.gso_failed);
	return pi2_enqueue_one(skb, sch, now_ns, to_free);
}

/* Take the first packet out of the list.  It still counts in the qdisc. */
static struct sk_buff *pi2_pop(struct pi2_sched_data *q)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&q->list);

	q->bytes -= qdisc_pkt_len(skb);
	return skb;
}

static struct sk_buff *pi2_dequeue(struct Qdisc *sch)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	unsigned int dropped = 0, dropped_bytes = 0;
	struct tc_pi2_codepoint *account;
	struct sk_buff *skb;
	u64 now_ns, delay_ns;
	bool may_drop;

	/* Parents of older kernels do not ask for what they peeked at. */
	if (unlikely(skb_peek(&sch->gso_skb)))
		return qdisc_dequeue_peeked(sch);
	if (!q->list.head)
		return NULL;
	now_ns = ktime_get_ns();
	if (dualpi2_pi_is_due(&q->vars, now_ns))
		pi2_update(sch, now_ns);

	for (;;) {
		skb = pi2_pop(q);
		delay_ns = now_ns - dualpi2_cb(skb)->queued_ns;
		if (dualpi2_cb(skb)->flags & PI2_CB_DECIDED)
			break;
		/* A parent is not to see its child run empty inside dequeue. */
		may_drop = q->list.head && dropped < DUALPI2_DROPS_PER_DEQUEUE;
		if (!pi2_signal(q, skb, now_ns, may_drop))
			break;
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		dualpi2_backlog_dec(sch, skb);
		qdisc_qstats_drop(sch);
		kfree_skb(skb);
	}

	/* While the packet that leaves still counts: parents are to see a child
	 * that is not empty.
	 */
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	pi2_drain_sent(&q->drain, q->bytes, qdisc_pkt_len(skb), now_ns);
	dualpi2_backlog_dec(sch, skb);
	account = pi2_account(q, skb);
	account->forwarded++;
	account->marked += !!(dualpi2_cb(skb)->flags & PI2_CB_MARKED);
	q->stats.forwarded_bytes += qdisc_pkt_len(skb);
	q->stats.delay_sum_ns += delay_ns;
	q->stats.delay_max_ns = max(q->stats.delay_max_ns, delay_ns);
	qdisc_bstats_update(sch, skb);
	return skb;
}

#define PI2_KNOB(...)	DUALPI2_ATTR_SPEC("pi2", struct pi2_config, false,	\
					__VA_ARGS__)

static const struct dualpi2_attr_spec pi2_knobs[TCA_PI2_MAX + 1] = {
	[TCA_PI2_LIMIT] =
		PI2_KNOB(limit_pkts, DUALPI2_LIMIT_MIN, U32_MAX,
			 "limit", "at least 1 packet"),
	[TCA_PI2_TARGET] =
		PI2_KNOB(target_us, DUALPI2_TARGET_MIN,
			 DUALPI2_TARGET_MAX,
			 "target", "1 us to 4294967 us"),
	[TCA_PI2_TUPDATE] =
		PI2_KNOB(tupdate_us, DUALPI2_TUPDATE_MIN,
			 DUALPI2_TUPDATE_MAX,
			 "tupdate", "100 us to 4294967 us"),
	[TCA_PI2_ALPHA] =
		PI2_KNOB(alpha, DUALPI2_ALPHA_MIN, DUALPI2_GAIN_MAX,
			 "alpha", "1/256 Hz to (2^31 - 1)/256 Hz"),
	[TCA_PI2_BETA] =
		PI2_KNOB(beta, DUALPI2_ALPHA_MIN, DUALPI2_GAIN_MAX,
			 "beta", "1/256 Hz to (2^31 - 1)/256 Hz"),
	[TCA_PI2_COUPLING] =
		PI2_KNOB(coupling, DUALPI2_COUPLING_MIN, DUALPI2_COUPLING_MAX,
			 "coupling_factor", "1 to 255"),
	[TCA_PI2_ECN] = PI2_KNOB(ecn, 0, 1, "ecn", "0 or 1"),
	[TCA_PI2_SIGNAL] =
		PI2_KNOB(signal, 0, TC_PI2_SIGNAL_MAX,
			 "signal", "0 (recur) or 1 (random)"),
	[TCA_PI2_DROP_ENQUEUE] =
		PI2_KNOB(drop_enqueue, 0, 1, "drop_enqueue",
			 "0 (drop_dequeue) or 1 (drop_enqueue)"),
	[TCA_PI2_SQUARE] =
		PI2_KNOB(square, 0, 1, "square", "0 (no_square) or 1 (square)"),
};

static const struct dualpi2_attr_table pi2_options = {
	.specs = pi2_knobs,
	.max = TCA_PI2_MAX,
	.unknown = "pi2: unknown attribute",
	.left_over = "pi2: bytes left over after the attributes",
};

/* The messages name these, the algorithm defines them. */
static_assert(DUALPI2_LIMIT_MIN == 1 && DUALPI2_TARGET_MIN == 1);
static_assert(DUALPI2_TIME_MAX_US == 4294967 && DUALPI2_TUPDATE_MIN == 100);
static_assert(DUALPI2_ALPHA_MIN == 1 && DUALPI2_GAIN_MAX == S32_MAX);
static_assert(DUALPI2_COUPLING_MIN == 1 && DUALPI2_COUPLING_MAX == 255);
static_assert(DUALPI2_SIGNAL_RANDOM == (int)TC_PI2_SIGNAL_RANDOM);
static_assert(sizeof(struct pi2_config) <= U8_MAX);

/* Drop what is beyond the limit, oldest first.  A packet that a parent has peeked at
 * or a requeued packet counts as sent and stays.  Called with the tree locked.
 */
static void pi2_trim(struct Qdisc *sch)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	unsigned int dropped = 0, dropped_bytes = 0;
	struct sk_buff *skb;

	while (sch->q.qlen > q->config.limit_pkts && q->list.head) {
		skb = pi2_pop(q);
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		dualpi2_backlog_dec(sch, skb);
		qdisc_qstats_drop(sch);
		pi2_account(q, skb)->purged++;
		rtnl_kfree_skbs(skb, skb);
	}
	q->stats.purged_bytes += dropped_bytes;
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
}

static int pi2_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	struct pi2_config cfg = q->config;
	struct dualpi2_params params;
	u64 now_ns;
	u32 seen;
	int err;

	err = dualpi2_parse_attrs(opt, &pi2_options, &cfg, &seen, extack);
	if (err)
		return err;
	pi2_params_init(&params, &cfg);

	sch_tree_lock(sch);
	now_ns = pi2_now(sch);
	q->config = cfg;
	q->params = params;
	dualpi2_vars_derive(&q->params, &q->vars, now_ns);
	pi2_set_classic(&q->config, &q->vars);
	pi2_trim(sch);
	sch_tree_unlock(sch);
	return 0;
}

static int pi2_init(struct Qdisc *sch, struct nlattr *opt,
		    struct netlink_ext_ack *extack)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	u32 seen;
	int err;

	pi2_config_init(&q->config);
	prandom_seed_state(&q->rnd, get_random_u32());
	if (opt) {
		err = dualpi2_parse_attrs(opt, &pi2_options, &q->config, &seen,
					  extack);
		if (err)
			return err;
	}
	q->mtu_bytes = psched_mtu(qdisc_dev(sch));
	pi2_params_init(&q->params, &q->config);
	dualpi2_vars_init(&q->params, &q->vars, q->mtu_bytes, ktime_get_ns());
	return 0;
}

/* Empty the queue and forget the state; counters go on.  What a parent peeked at is
 * the core's to purge, and counts as forwarded.
 */
static void pi2_reset(struct Qdisc *sch)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	const struct sk_buff *skb;

	for (skb = q->list.head; skb; skb = skb->next)
		pi2_account(q, skb)->purged++;
	q->stats.purged_bytes += q->bytes;
	if (q->list.head)
		rtnl_kfree_skbs(q->list.head, q->list.tail);
	q->list = (struct qdisc_skb_head) {};
	q->bytes = 0;
	q->drain = (struct pi2_drain) {};
	dualpi2_vars_init(&q->params, &q->vars, q->mtu_bytes, ktime_get_ns());
}

static int pi2_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct pi2_sched_data *q = qdisc_priv(sch);
	struct nlattr *opts;

	opts = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;
	if (dualpi2_put_attrs(skb, &pi2_options, &q->config, 0)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int pi2_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct pi2_sched_data *q = qdisc_priv(sch);
	struct tc_pi2_xstats st;
	u64 now_ns;

	sch_tree_lock(sch);
	now_ns = pi2_now(sch);
	st = q->stats;
	st.bytes = q->bytes;
	st.packets = q->list.qlen;
	st.delay_ns = pi2_head_age_ns(q, now_ns);
	st.prob = dualpi2_q32_to_u32(q->vars.base_q32);
	st.prob_classic = dualpi2_q32_to_u32(q->vars.classic_q32);
	st.prob_scalable = dualpi2_q32_to_u32(q->vars.coupled_q32);
	st.capped = q->vars.overload;
	st.capped_count = q->vars.overload_count;
	st.capped_ns = dualpi2_overload_ns(&q->vars, now_ns);
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops pi2_qdisc_ops __read_mostly = {
	.id		= "pi2",
	.priv_size	= sizeof(struct pi2_sched_data),
	.enqueue	= pi2_enqueue,
	.dequeue	= pi2_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= pi2_init,
	.reset		= pi2_reset,
	.change		= pi2_change,
	.dump		= pi2_dump,
	.dump_stats	= pi2_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init pi2_module_init(void)
{
	return register_qdisc(&pi2_qdisc_ops);
}

static void __exit pi2_module_exit(void)
{
	unregister_qdisc(&pi2_qdisc_ops);
}

module_init(pi2_module_init);
module_exit(pi2_module_exit);

MODULE_ALIAS_NET_SCH("pi2");
MODULE_AUTHOR("The dualpi2 authors");
MODULE_DESCRIPTION("PI2 AQM for Classic and Scalable traffic in one queue (experimental)");
MODULE_LICENSE("GPL");
MODULE_VERSION(EXTRA_VERSION);
