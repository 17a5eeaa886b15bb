// SPDX-License-Identifier: GPL-2.0-only
/*
 * csaqm and vdq_csaqm: Core-Stateless AQM with one queue, and with two queues and
 * two virtual ones for L4S.  Experimental.
 *
 * Packets bring a value (sch_ppv.c); which of them get a signal depends on it and on
 * nothing else about them.  What is decided, and by which formula, is in
 * csaqm.h; this file binds it to the kernel.
 *
 * Virtual queues are served at a part of the link's rate, so that the rate has to be
 * known: there is a shaper.
 *
 * The only timer is the shaper's.  Threshold values are computed by the
 * first packet after their time.
 *
 * A virtual queue is long while the queue is short, so that the last packet of all
 * may have to be dropped.  A dequeue must not do that: parents before 2025 do not
 * stand a child that becomes empty then.  The packet is put aside until another one
 * comes, or until a work drops it.
 *
 * Locking: as sch_dualpi2.c.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include "csaqm_uapi.h"
#include "csaqm.h"
#include <qdisc/attr.h>
#include <qdisc/packet.h>
#include "gso.h"
#include "value.h"
#include <compat/compat.h>

/* Flags of struct dualpi2_cb; its own number is the value. */
#define CSAQM_CB_L	BIT(2)	/* in the L4S queue */
#define CSAQM_CB_ASIDE	BIT(3)	/* to be dropped, see above */

struct csaqm_fifo {
	struct qdisc_skb_head list;
	u64 bytes;
	struct tc_csaqm_queue stats;
};

struct csaqm_sched_data {
	struct csaqm_params params;
	struct csaqm_vars vars;
	struct dualpi2_clock clock;
	struct csaqm_fifo fifo[DUALPI2_QUEUES];
	struct csaqm_config config;
	struct qdisc_watchdog watchdog;
	struct work_struct work;
	struct Qdisc *sch;
	u64 updates;
	u64 mark_failed;
	u64 gso_failed;
	u64 unparsed;
	u64 throttled;
};

static enum dualpi2_queue csaqm_queue_of(const struct sk_buff *skb)
{
	return (dualpi2_cb(skb)->flags & CSAQM_CB_L) ? DUALPI2_QUEUE_L :
							DUALPI2_QUEUE_C;
}

/* An instance with these has two queues. */
static struct Qdisc_ops csaqm_vdq_qdisc_ops __read_mostly;

static struct csaqm_fifo *csaqm_first(struct csaqm_sched_data *q)
{
	struct csaqm_fifo *l = &q->fifo[DUALPI2_QUEUE_L];

	return l->list.head ? l : &q->fifo[DUALPI2_QUEUE_C];
}

static bool csaqm_is_empty(const struct csaqm_sched_data *q)
{
	return !q->fifo[DUALPI2_QUEUE_C].list.head &&
	       !q->fifo[DUALPI2_QUEUE_L].list.head;
}

static u32 csaqm_pkts(const struct csaqm_sched_data *q)
{
	return q->fifo[DUALPI2_QUEUE_C].list.qlen +
	       q->fifo[DUALPI2_QUEUE_L].list.qlen;
}

/* There is one packet, and it was put aside. */
static bool csaqm_is_aside(struct csaqm_sched_data *q)
{
	const struct sk_buff *skb = csaqm_first(q)->list.head;

	return skb && (dualpi2_cb(skb)->flags & CSAQM_CB_ASIDE) &&
	       csaqm_pkts(q) == 1;
}

/* Take a queue's first packet; what the core counts is the caller's. */
static struct sk_buff *csaqm_pop(struct csaqm_fifo *fifo)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&fifo->list);

	fifo->bytes -= qdisc_pkt_len(skb);
	return skb;
}

/* The link will have nothing to send from the end of the last packet on. */
static void csaqm_begin_idle(struct csaqm_sched_data *q, u64 now_ns)
{
	if (q->vars.idle_ns == CSAQM_BUSY)
		csaqm_idle(&q->vars, max(now_ns, q->clock.next_ns));
}

/* The only packet is to be dropped, but not now. */
static void csaqm_put_aside(struct csaqm_sched_data *q, struct sk_buff *skb,
			    u64 now_ns)
{
	/* Its sender is not to wait for it. */
	skb_orphan(skb);
	dualpi2_cb(skb)->flags |= CSAQM_CB_ASIDE;
	csaqm_begin_idle(q, now_ns);
	schedule_work(&q->work);
}

static noinline void csaqm_refresh_now(struct csaqm_sched_data *q, u64 now_ns)
{
	csaqm_serve(&q->params, &q->vars, now_ns);
	csaqm_update(&q->params, &q->vars, now_ns);
	q->updates++;
}

/* Bring thresholds up to date, if it is time. */
static __always_inline void csaqm_refresh(struct csaqm_sched_data *q, u64 now_ns)
{
	if (unlikely(csaqm_is_due(&q->params, &q->vars, now_ns)))
		csaqm_refresh_now(q, now_ns);
}

/* A packet left its queue and is not to be sent.  The parents are the caller's. */
static void csaqm_drop(struct Qdisc *sch, struct sk_buff *skb)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	enum dualpi2_queue queue = csaqm_queue_of(skb);

	csaqm_dropped(&q->params, &q->vars, queue, qdisc_pkt_len(skb));
	qdisc_qstats_drop(sch);
	dualpi2_backlog_dec(sch, skb);
}

/* Drop packets at the head that give way to one that arrives.  One stays: parents before
 * 2025 do not expect a child to become empty in an enqueue.
 *
 * Return: true if there is room now.
 */
static noinline bool csaqm_make_room(struct Qdisc *sch, u32 value, u32 bytes,
				     struct sk_buff **to_free)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	struct csaqm_fifo *fifo = &q->fifo[DUALPI2_QUEUE_C];
	unsigned int dropped = 0, dropped_bytes = 0;
	struct sk_buff *skb;
	bool room = false;

	while (!room && fifo->list.qlen > 1 &&
	       dropped < DUALPI2_DROPS_PER_DEQUEUE &&
	       csaqm_gives_way(&q->params, &q->vars,
			       dualpi2_cb(fifo->list.head)->priv, value)) {
		skb = csaqm_pop(fifo);
		fifo->stats.dropped_value++;
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		csaqm_drop(sch, skb);
		__qdisc_drop(skb, to_free);
		csaqm_catch_up(&q->params, &q->vars);
		room = csaqm_has_room(&q->params, &q->vars, DUALPI2_QUEUE_C,
				      fifo->bytes, bytes);
	}
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	return room;
}

static int csaqm_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u64 now_ns,
			     struct sk_buff **to_free)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	enum dualpi2_queue queue = csaqm_queue_of(skb);
	struct csaqm_fifo *fifo = &q->fifo[queue];
	/* There are devices without a header, and packets without a byte. */
	u32 bytes = max(qdisc_pkt_len(skb), 1U);
	u32 value = dualpi2_cb(skb)->priv;

	fifo->stats.arrived++;
	fifo->stats.no_value += !value;
	if (unlikely(sch->q.qlen >= q->params.limit_pkts)) {
		fifo->stats.dropped_limit++;
		return qdisc_drop(skb, sch, to_free);
	}
	csaqm_catch_up(&q->params, &q->vars);
	if (unlikely(!csaqm_has_room(&q->params, &q->vars, queue, fifo->bytes,
				     bytes)) &&
	    !csaqm_make_room(sch, value, bytes, to_free)) {
		fifo->stats.dropped_buffer++;
		return qdisc_drop(skb, sch, to_free);
	}
	csaqm_arrive(&q->params, &q->vars, queue, value, bytes);
	q->vars.idle_ns = CSAQM_BUSY;
	dualpi2_cb(skb)->queued_ns = now_ns;
	fifo->bytes += qdisc_pkt_len(skb);
	__qdisc_enqueue_tail(skb, &fifo->list);
	qdisc_qstats_backlog_inc(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	return NET_XMIT_SUCCESS;
}

/* Out of line, as extra_enqueue_gso() is. */
static noinline int csaqm_read_dsfield(const struct sk_buff *skb,
				       struct dualpi2_cb *cb)
{
	return dualpi2_read_dsfield(skb, cb);
}

static int csaqm_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	struct dualpi2_cb *cb = dualpi2_cb(skb);
	enum dualpi2_ecn ecn = DUALPI2_ECN_NOT_ECT;
	u64 now_ns = ktime_get_ns();
	int dsfield;

	*cb = (struct dualpi2_cb) {};
	dsfield = dualpi2_linear_dsfield(skb);
	if (unlikely(dsfield < 0))
		dsfield = csaqm_read_dsfield(skb, cb);
	if (likely(dsfield >= 0))
		ecn = dsfield & INET_ECN_MASK;
	else
		q->unparsed++;
	cb->flags |= ecn;
	if (csaqm_queue_of_ecn(&q->params, ecn) == DUALPI2_QUEUE_L)
		cb->flags |= CSAQM_CB_L;
	cb->priv = ppv_read(skb, dsfield >= 0, q->config.carry);

	if (q->vars.idle_ns != CSAQM_BUSY)
		dualpi2_clock_start(&q->params.link, &q->clock, now_ns);
	csaqm_serve(&q->params, &q->vars, now_ns);
	csaqm_refresh(q, now_ns);
	if (skb_is_gso(skb))
		return extra_enqueue_gso(skb, sch, now_ns, to_free,
					 csaqm_enqueue_one,
					 &q->gso_failed);
	return csaqm_enqueue_one(skb, sch, now_ns, to_free);
}

/* Give a packet its signal.
 *
 * Return: true if it is to be dropped, which it is only if it may be.
 */
static bool csaqm_signal(struct csaqm_sched_data *q, struct csaqm_fifo *fifo,
			 struct sk_buff *skb, bool may_drop)
{
	const struct dualpi2_cb *cb = dualpi2_cb(skb);

	switch (csaqm_verdict(&q->params, &q->vars, csaqm_queue_of(skb),
			      cb->priv, cb->flags & DUALPI2_CB_ECN)) {
	case CSAQM_DROP:
		return may_drop;
	case CSAQM_MARK:
		if (dualpi2_set_ce(skb))
			fifo->stats.marked++;
		else
			q->mark_failed++;
		return false;
	default:
		return false;
	}
}

/* Wait for the shaper.  A watchdog that is set is set for this very packet.
 *
 * Return: true if none may leave yet.
 */
static bool csaqm_wait(struct Qdisc *sch, u64 now_ns)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);

	if (!dualpi2_clock_wait(&q->clock, now_ns))
		return false;
	if (!hrtimer_is_queued(&q->watchdog.timer)) {
		q->throttled++;
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, q->clock.next_ns);
	}
	return true;
}

static struct sk_buff *csaqm_dequeue(struct Qdisc *sch)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	unsigned int dropped = 0, dropped_bytes = 0;
	struct csaqm_fifo *fifo;
	struct sk_buff *skb;
	u64 now_ns, delay_ns;

	if (!sch->q.qlen)
		return NULL;
	/* Of a parent that peeked and does not know. */
	if (unlikely(skb_peek(&sch->gso_skb)))
		return qdisc_dequeue_peeked(sch);
	if (unlikely(csaqm_is_aside(q)))
		return NULL;
	now_ns = ktime_get_ns();
	if (csaqm_wait(sch, now_ns))
		return NULL;
	csaqm_refresh(q, now_ns);

	for (;;) {
		fifo = csaqm_first(q);
		skb = fifo->list.head;
		if (!(dualpi2_cb(skb)->flags & CSAQM_CB_ASIDE) &&
		    !csaqm_signal(q, fifo, skb,
				  dropped < DUALPI2_DROPS_PER_DEQUEUE))
			break;
		if (csaqm_pkts(q) == 1) {
			csaqm_put_aside(q, skb, now_ns);
			skb = NULL;
			break;
		}
		csaqm_pop(fifo);
		fifo->stats.dropped_value++;
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		csaqm_drop(sch, skb);
		kfree_skb(skb);
	}

	/* Parents are to see a child that is not empty. */
	if (unlikely(dropped))
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	if (unlikely(!skb))
		return NULL;

	csaqm_pop(fifo);
	dualpi2_clock_send(&q->params.link, &q->clock, qdisc_pkt_len(skb),
			   now_ns);
	csaqm_sent(&q->vars, qdisc_pkt_len(skb));
	delay_ns = now_ns - dualpi2_cb(skb)->queued_ns;
	fifo->stats.forwarded++;
	fifo->stats.delay_sum_ns += delay_ns;
	if (delay_ns > fifo->stats.delay_max_ns)
		fifo->stats.delay_max_ns = delay_ns;
	qdisc_bstats_update(sch, skb);
	dualpi2_backlog_dec(sch, skb);
	if (csaqm_is_empty(q))
		csaqm_begin_idle(q, now_ns);
	else if (unlikely(csaqm_is_aside(q)))
		csaqm_put_aside(q, csaqm_first(q)->list.head, now_ns);
	return skb;
}

/* The time, under the root qdisc's lock; the virtual queues are served until then. */
static u64 csaqm_now(struct csaqm_sched_data *q)
{
	u64 now_ns = ktime_get_ns();

	csaqm_serve(&q->params, &q->vars, now_ns);
	return now_ns;
}

/* Drop the packet that was put aside, if it is still alone. */
static void csaqm_work(struct work_struct *work)
{
	struct csaqm_sched_data *q = container_of(work, struct csaqm_sched_data,
						  work);
	struct Qdisc *sch = q->sch, *root;
	struct sk_buff *skb = NULL;
	struct csaqm_fifo *fifo;

	rcu_read_lock();
	root = qdisc_root_sleeping(sch);
	spin_lock_bh(qdisc_lock(root));
	/* A tree that was replaced is reset without a lock; that purges it. */
	if (root == qdisc_root_sleeping(sch) && csaqm_is_aside(q)) {
		fifo = csaqm_first(q);
		skb = csaqm_pop(fifo);
		fifo->stats.dropped_value++;
		csaqm_drop(sch, skb);
		qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
	}
	spin_unlock_bh(qdisc_lock(root));
	/* A parent may have stopped at us while others wait. */
	if (skb)
		__netif_schedule(qdisc_root(sch));
	rcu_read_unlock();
	kfree_skb(skb);
}

#define CSAQM_KNOB(_who, ...)						\
	DUALPI2_ATTR_SPEC(_who, struct csaqm_config, false, __VA_ARGS__)

#define CSAQM_KNOBS(_who)						\
	[TCA_CSAQM_BANDWIDTH] =						\
		CSAQM_KNOB(_who, bandwidth, DUALPI2_BANDWIDTH_MIN,	\
			   DUALPI2_BANDWIDTH_MAX, "bandwidth",		\
			   "8 kbit/s to 1 Tbit/s"),			\
	[TCA_CSAQM_LIMIT] =						\
		CSAQM_KNOB(_who, limit_pkts, CSAQM_LIMIT_PKTS_MIN,	\
			   CSAQM_LIMIT_PKTS_MAX, "limit",		\
			   "1 to 1048576 packets"),			\
	[TCA_CSAQM_TUPDATE] =						\
		CSAQM_KNOB(_who, tupdate_us, CSAQM_TUPDATE_US_MIN,	\
			   CSAQM_TUPDATE_US_MAX, "tupdate",		\
			   "100 us to 4294967 us"),			\
	[TCA_CSAQM_TARGET] =						\
		CSAQM_KNOB(_who, target_us, CSAQM_TIME_US_MIN,		\
			   CSAQM_TIME_US_MAX, "target",			\
			   "1 us to 4294967 us"),			\
	[TCA_CSAQM_BUFFER] =						\
		CSAQM_KNOB(_who, buffer_us, CSAQM_TIME_US_MIN,		\
			   CSAQM_TIME_US_MAX, "buffer",			\
			   "1 us to 4294967 us"),			\
	[TCA_CSAQM_CARRY] =						\
		CSAQM_KNOB(_who, carry, 0, TC_PPV_CARRY_MAX, "carry",	\
			   "0 (mark) or 1 (ipv4_id)"),			\
	[TCA_CSAQM_ECN] =						\
		CSAQM_KNOB(_who, ecn, 0, 1, "ecn", "0 or 1")

static const struct dualpi2_attr_spec csaqm_knobs[TCA_CSAQM_MAX + 1] = {
	CSAQM_KNOBS("csaqm"),
	[TCA_CSAQM_ARRIVAL_DROP] =
		CSAQM_KNOB("csaqm", arrival_drop, 0, 1, "arrival_drop",
			   "0 or 1"),
};

static const struct dualpi2_attr_spec csaqm_vdq_knobs[TCA_CSAQM_MAX + 1] = {
	CSAQM_KNOBS("vdq_csaqm"),
	[TCA_CSAQM_TARGET_L] =
		CSAQM_KNOB("vdq_csaqm", target_l_us, CSAQM_TIME_US_MIN,
			   CSAQM_TIME_US_MAX, "target_l",
			   "1 us to 4294967 us"),
	[TCA_CSAQM_BUFFER_L] =
		CSAQM_KNOB("vdq_csaqm", buffer_l_us, CSAQM_TIME_US_MIN,
			   CSAQM_TIME_US_MAX, "buffer_l",
			   "1 us to 4294967 us"),
	[TCA_CSAQM_VRATE] =
		CSAQM_KNOB("vdq_csaqm", vrate, CSAQM_SHARE_MIN,
			   CSAQM_SHARE_ONE, "vrate", "0.001 to 1"),
	[TCA_CSAQM_VRATE_L] =
		CSAQM_KNOB("vdq_csaqm", vrate_l, CSAQM_SHARE_MIN,
			   CSAQM_SHARE_ONE, "vrate_l", "0.001 to 1"),
};

static const struct dualpi2_attr_table csaqm_options = {
	.specs = csaqm_knobs,
	.max = TCA_CSAQM_MAX,
	.unknown = "csaqm: unknown attribute",
	.left_over = "csaqm: bytes left over after the attributes",
};

static const struct dualpi2_attr_table csaqm_vdq_options = {
	.specs = csaqm_vdq_knobs,
	.max = TCA_CSAQM_MAX,
	.unknown = "vdq_csaqm: unknown attribute",
	.left_over = "vdq_csaqm: bytes left over after the attributes",
};

static_assert(DUALPI2_BANDWIDTH_MIN == 1000 &&
	      DUALPI2_BANDWIDTH_MAX == 125000000000ULL);
static_assert(CSAQM_LIMIT_PKTS_MAX == 1048576 && DUALPI2_TIME_MAX_US == 4294967);
static_assert(CSAQM_TUPDATE_US_MIN == 100 && CSAQM_SHARE_ONE == 1000);
static_assert(sizeof(struct csaqm_config) <= U8_MAX);

/* Apply a request to a copy of the configuration. */
static int csaqm_parse(struct nlattr *opt, struct csaqm_config *cfg,
		       struct netlink_ext_ack *extack)
{
	u32 seen = 0;
	int err;

	if (opt) {
		err = dualpi2_parse_attrs(opt, cfg->dual ? &csaqm_vdq_options :
							   &csaqm_options,
					  cfg, &seen, extack);
		if (err)
			return err;
	}
	if (seen & BIT(TCA_CSAQM_LIMIT))
		cfg->limit_is_set = true;
	if (!cfg->bandwidth)
		return dualpi2_reject(extack, opt, cfg->dual ?
				      "vdq_csaqm: bandwidth is required" :
				      "csaqm: bandwidth is required");
	if (cfg->dual && cfg->vrate_l > cfg->vrate)
		return dualpi2_reject(extack, opt,
				      "vdq_csaqm: vrate_l must not be beyond vrate");
	return 0;
}

static void csaqm_free(struct csaqm_vq *vq)
{
	int i;

	for (i = 0; i < DUALPI2_QUEUES; i++) {
		kvfree(vq[i].ring);
		vq[i] = (struct csaqm_vq) {};
	}
}

static int csaqm_alloc(struct csaqm_vq *vq, const struct csaqm_params *p)
{
	struct csaqm_record *ring;
	int i;

	for (i = 0; i < (p->dual ? DUALPI2_QUEUES : 1); i++) {
		ring = kvmalloc_array(csaqm_places(p->limit_pkts),
				      sizeof(*ring), GFP_KERNEL_ACCOUNT);
		if (!ring) {
			csaqm_free(vq);
			return -ENOMEM;
		}
		csaqm_vq_init(&vq[i], ring, p->limit_pkts);
	}
	return 0;
}

/* Move the virtual queues into rings of the new size, and free the old ones.  The lock
 * is held for some thousand records at a time.  In between packets arrive, with places
 * in the old ring, and leave, but there is no reset and no other change: they run
 * under RTNL, too.
 */
static void csaqm_resize(struct Qdisc *sch, struct csaqm_vq *vq)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	bool done;
	int i;

	for (i = 0; i < (q->params.dual ? DUALPI2_QUEUES : 1); i++) {
		do {
			sch_tree_lock(sch);
			done = csaqm_vq_move(&vq[i], &q->vars.vq[i]);
			if (done) {
				swap(vq[i], q->vars.vq[i]);
				/* Thresholds of what is left. */
				q->vars.due_ns = 0;
			}
			sch_tree_unlock(sch);
			cond_resched();
		} while (!done);
	}
	csaqm_free(vq);
}

/* Drop what is beyond new limits, oldest Classic packets first. */
static void csaqm_trim(struct Qdisc *sch)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	unsigned int dropped = 0, dropped_bytes = 0;
	int i;

	for (i = 0; i < DUALPI2_QUEUES; i++) {
		struct csaqm_fifo *fifo = &q->fifo[i];
		struct sk_buff *skb;

		while (fifo->list.head &&
		       (sch->q.qlen > q->params.limit_pkts ||
			fifo->bytes > q->params.buffer_bytes[i])) {
			skb = csaqm_pop(fifo);
			fifo->stats.purged++;
			dropped++;
			dropped_bytes += qdisc_pkt_len(skb);
			csaqm_drop(sch, skb);
			rtnl_kfree_skbs(skb, skb);
		}
	}
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
}

static int csaqm_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	struct csaqm_config cfg = q->config;
	struct csaqm_vq vq[DUALPI2_QUEUES] = {};
	struct csaqm_params params;
	bool resize;
	u64 now_ns;
	int err, i;

	err = csaqm_parse(opt, &cfg, extack);
	if (err)
		return err;
	csaqm_params_init(&params, &cfg);
	resize = params.limit_pkts != q->params.limit_pkts;
	if (resize) {
		err = csaqm_alloc(vq, &params);
		if (err)
			return err;
	}

	sch_tree_lock(sch);
	/* Until now it was served at the old rate. */
	now_ns = csaqm_now(q);
	dualpi2_clock_change(&q->params.link, &params.link, &q->clock,
			     psched_mtu(qdisc_dev(sch)), now_ns);
	q->config = cfg;
	q->params = params;
	csaqm_trim(sch);
	for (i = 0; i < DUALPI2_QUEUES; i++)
		csaqm_vq_begin_move(&vq[i], &q->vars.vq[i]);
	q->vars.due_ns = now_ns;
	if (csaqm_is_empty(q))
		csaqm_begin_idle(q, now_ns);
	else if (csaqm_is_aside(q))
		csaqm_put_aside(q, csaqm_first(q)->list.head, now_ns);
	/* The clock may no longer wait for the last packet as long. */
	if (q->vars.idle_ns != CSAQM_BUSY)
		csaqm_idle(&q->vars, min(q->vars.idle_ns,
					 max(now_ns, q->clock.next_ns)));
	/* It may be set for a time that is no longer to be waited for. */
	if (hrtimer_is_queued(&q->watchdog.timer))
		qdisc_watchdog_schedule_ns(&q->watchdog, q->clock.next_ns);
	sch_tree_unlock(sch);
	if (resize)
		csaqm_resize(sch, vq);
	return 0;
}

static int csaqm_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	int err;

	/* Before anything that can fail: destroy is called then. */
	INIT_WORK(&q->work, csaqm_work);
	qdisc_watchdog_init(&q->watchdog, sch);
	q->sch = sch;
	csaqm_config_init(&q->config, sch->ops == &csaqm_vdq_qdisc_ops);
	err = csaqm_parse(opt, &q->config, extack);
	if (err)
		return err;
	csaqm_params_init(&q->params, &q->config);
	err = csaqm_alloc(q->vars.vq, &q->params);
	if (err)
		return err;
	csaqm_idle(&q->vars, ktime_get_ns());
	return 0;
}

/* Empty the queues and the virtual ones; counters go on. */
static void csaqm_reset(struct Qdisc *sch)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	int i;

	qdisc_watchdog_cancel(&q->watchdog);
	for (i = 0; i < DUALPI2_QUEUES; i++) {
		struct csaqm_fifo *fifo = &q->fifo[i];
		struct csaqm_vq *vq = &q->vars.vq[i];

		fifo->stats.purged += fifo->list.qlen;
		if (fifo->list.head)
			rtnl_kfree_skbs(fifo->list.head, fifo->list.tail);
		fifo->list = (struct qdisc_skb_head) {};
		fifo->bytes = 0;
		if (vq->ring)
			csaqm_vq_init(vq, vq->ring, vq->size);
	}
	q->clock = (struct dualpi2_clock) {};
	q->vars.sent_bytes = 0;
	q->vars.due_ns = 0;
	csaqm_idle(&q->vars, ktime_get_ns());
}

static void csaqm_destroy(struct Qdisc *sch)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	cancel_work_sync(&q->work);
	csaqm_free(q->vars.vq);
}

static int csaqm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	struct csaqm_config cfg = q->config;
	struct nlattr *nest;

	/* The limit in use, which may follow from the rate. */
	cfg.limit_pkts = q->params.limit_pkts;
	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (dualpi2_put_attrs(skb, cfg.dual ? &csaqm_vdq_options :
					      &csaqm_options, &cfg, 0)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static void csaqm_queue_xstats(struct csaqm_sched_data *q, int queue,
			       struct tc_csaqm_queue *x)
{
	const struct csaqm_fifo *fifo = &q->fifo[queue];
	const struct csaqm_vq *vq = &q->vars.vq[queue];

	*x = fifo->stats;
	x->bytes = fifo->bytes;
	x->packets = fifo->list.qlen;
	x->virtual_bytes = csaqm_vq_length(vq);
	x->threshold = vq->threshold;
}

static int csaqm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct csaqm_sched_data *q = qdisc_priv(sch);
	struct tc_csaqm_xstats x = {};
	u64 now_ns;

	sch_tree_lock(sch);
	now_ns = csaqm_now(q);
	/* On an idle link no packet does it. */
	csaqm_refresh(q, now_ns);
	csaqm_queue_xstats(q, DUALPI2_QUEUE_C, &x.c);
	if (q->config.dual)
		csaqm_queue_xstats(q, DUALPI2_QUEUE_L, &x.l);
	x.updates = q->updates;
	x.mark_failed = q->mark_failed;
	x.gso_failed = q->gso_failed;
	x.unparsed = q->unparsed;
	x.throttled = q->throttled;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &x, sizeof(x));
}

#define CSAQM_QDISC_OPS(_id) {						\
	.id		= _id,						\
	.priv_size	= sizeof(struct csaqm_sched_data),		\
	.enqueue	= csaqm_enqueue,				\
	.dequeue	= csaqm_dequeue,				\
	.peek		= qdisc_peek_dequeued,				\
	.init		= csaqm_init,					\
	.reset		= csaqm_reset,					\
	.destroy	= csaqm_destroy,				\
	.change		= csaqm_change,					\
	.dump		= csaqm_dump,					\
	.dump_stats	= csaqm_dump_stats,				\
	.owner		= THIS_MODULE,					\
}

static struct Qdisc_ops csaqm_qdisc_ops __read_mostly =
	CSAQM_QDISC_OPS("csaqm");
static struct Qdisc_ops csaqm_vdq_qdisc_ops __read_mostly =
	CSAQM_QDISC_OPS("vdq_csaqm");

static int __init csaqm_module_init(void)
{
	int err;

	err = register_qdisc(&csaqm_qdisc_ops);
	if (err)
		return err;
	err = register_qdisc(&csaqm_vdq_qdisc_ops);
	if (err)
		unregister_qdisc(&csaqm_qdisc_ops);
	return err;
}

static void __exit csaqm_module_exit(void)
{
	unregister_qdisc(&csaqm_vdq_qdisc_ops);
	unregister_qdisc(&csaqm_qdisc_ops);
}

module_init(csaqm_module_init);
module_exit(csaqm_module_exit);
MODULE_ALIAS("sch_vdq_csaqm");
MODULE_ALIAS_NET_SCH("csaqm");
MODULE_ALIAS_NET_SCH("vdq_csaqm");
MODULE_DESCRIPTION("Core-Stateless AQM with one and with virtual dual queues");
MODULE_AUTHOR("The dualpi2 authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(EXTRA_VERSION);
