// SPDX-License-Identifier: GPL-2.0-only
/*
 * dualpi2: Dual Queue Coupled AQM (RFC 9332) for L4S and Classic traffic.
 *
 * This file binds the algorithm to the kernel: classification, the two queues, clock,
 * random numbers, statistics, netlink.  The algorithm is in include/net/dualpi2*.h;
 * include/qdisc/packet.h reads and marks packets.
 *
 * There is no periodic timer, so that an idle instance wakes no processor.  The first
 * dequeue after tupdate updates the PI controller; the first enqueue into empty queues
 * catches up on idle time.  In overload, and until it has been reported, a work runs
 * about once a second.  While the shaper delays packets, a watchdog is armed for the
 * next one.
 *
 * Packet path:
 *
 *   enqueue -> enqueue_fast -----------------------------------------> queue_tail
 *                '-> enqueue_slow -> classify -> [protect] -> [segment]
 *                      -> enqueue_skb
 *                      -> [check_limits -> aqm_enqueue] -------------> queue_tail
 *   dequeue -> dequeue_shaped -> dequeue_mq, in a child of dualpi2_mq with a shaper
 *   dequeue -> [dequeue_shaped -> throttle] -> dequeue_fast -> try_dequeue_head
 *                '-> dequeue_loaded -> try_verdict -> [set_ce]
 *                      '-> dequeue_slow -> [update] -> aqm_dequeue
 *                            -> dequeue_head -> [set_ce | aqm_drop]
 *              each of the four ends in account_departure
 *
 * The slow path is complete: it handles every packet.  The fast path handles a packet
 * at enqueue if
 *   - IPv4 or IPv6 is in the linear part, without tags in band;
 *   - there are no filters, and skb->priority does not name one of our classes;
 *   - its DSCP is not NQB, and it is not GSO to be split;
 *   - no watermark is reached, and no PI update is due;
 * and at dequeue if
 *   - no PI update is due, and the tracepoint is off;
 *   - it is neither NQB nor GSO (DUALPI2_STAMP_NEEDS_SLOW);
 *   - p' is 0 and the L4S ramp begins beyond its delay (dequeue_fast), or
 *     dualpi2_verdict_fast() passes or marks it (dequeue_loaded).
 * It decides this before its first write, and has the same effect as the slow path.  The
 * calls of the slow path are tail calls, so that the fast path saves no registers.
 *
 * Locking: enqueue, dequeue and peek run under the root qdisc's lock, and so does reset
 * while packets can arrive.  change, the statistics and the report work take that lock.
 * init, change and dump run under RTNL.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <uapi/linux/dualpi2.h>
#include <net/dualpi2.h>
#include <qdisc/dualpi2_options.h>
#include <qdisc/packet.h>
#include <compat/compat.h>

#define CREATE_TRACE_POINTS
#include <trace/dualpi2.h>

#define DUALPI2_VERSION		"2.4.0"

/* Classes that a filter or skb->priority can select, as in Linux 7.x.  From a filter,
 * each other class also selects the Classic queue.
 */
enum dualpi2_class {
	DUALPI2_CLASS_NONE,
	DUALPI2_CLASS_L4S,
	DUALPI2_CLASS_L_UNMARKED,
	DUALPI2_CLASS_CLASSIC,
};

/* Flags of struct dualpi2_cb, besides those of all qdiscs. */
#define DUALPI2_CB_L		BIT(2)	/* in the L4S queue */
#define DUALPI2_CB_NATIVE_OK	BIT(3)	/* see dualpi2_native_ok() */
#define DUALPI2_CB_NQB		BIT(5)	/* in the L4S queue for its DSCP */
#define DUALPI2_CB_REDIRECTED	BIT(6)	/* scalable, in the Classic queue for protection */
#define DUALPI2_CB_PROFILE	8	/* shift of enum dualpi2_profile */

/* Bit 63 of the enqueue time: the packet is NQB or GSO, and needs the slow path at
 * dequeue.  It makes the raw sojourn time exceed every threshold, so that the fast
 * path needs no separate test.
 */
#define DUALPI2_STAMP_NEEDS_SLOW	BIT_ULL(63)

/* Reasons for the slow path of dequeue: SHAPED: there is a shaper or a link layer;
 * PEEKED: a parent has peeked; MQ: the shaper is that of a struct dualpi2_mq_group.
 */
#define DUALPI2_SLOW_SHAPED	BIT(0)
#define DUALPI2_SLOW_PEEKED	BIT(1)
#define DUALPI2_SLOW_MQ		BIT(2)

/* Flows in the statistics of the L4S queue. */
#define DUALPI2_QPROTECT_LISTED	8

enum dualpi2_drop {
	DUALPI2_DROPPED_LIMIT,
	DUALPI2_DROPPED_MEMORY,
	DUALPI2_DROPPED_EARLY,
	DUALPI2_DROPPED_AQM,
	DUALPI2_DROPPED_OVERLOAD,
	DUALPI2_DROPPED_PURGE,
	DUALPI2_DROPS,
	DUALPI2_ADMITTED = DUALPI2_DROPS
};

/* Statistics of one queue.  dualpi2_counters() derives the others from these. */
struct dualpi2_queue_stats {
	u64 arrived[DUALPI2_ECN_CE + 1];	/* by codepoint */
	struct dualpi2_delay delay;	/* of forwarded packets */
	u64 marked[DUALPI2_DROP_AQM];	/* by verdict */
	u64 dropped[DUALPI2_DROPS][2];	/* Not-ECT, ECT */
	u64 dropped_bytes[DUALPI2_DROPS];
};

struct dualpi2_fifo {
	struct qdisc_skb_head list;
	u64 bytes_in;		/* queued */
	u64 bytes_out;		/* forwarded, dropped or purged */
	struct dualpi2_queue_stats stats;
};

/* What an instance has from its first packet on. */
struct dualpi2_active {
	struct dualpi2_hist hist[DUALPI2_QUEUES];
	struct delayed_work report_work;
	struct Qdisc *sch;
};

static struct kmem_cache *dualpi2_active_cache __ro_after_init;

/* Queue protection.  Without congestion of the L4S queue the state is READY and the
 * fast path is the same as with OFF.  In ARMED each enqueue takes the slow path.
 */
enum dualpi2_qprotect_state {
	DUALPI2_QPROTECT_IS_OFF,
	DUALPI2_QPROTECT_READY,
	DUALPI2_QPROTECT_ARMED,
	DUALPI2_QPROTECT_FAILED,	/* no memory; READY with the next PI update */
};

/* What queue protection keeps from the first congestion on. */
struct dualpi2_qprotect {
	struct dualpi2_qprotect_bucket buckets[DUALPI2_QPROTECT_BUCKETS];
	struct tc_dualpi2_qprotect_flow *flows;	/* from the first sanction on */
	u64 keys[DUALPI2_QPROTECT_KEYS];
	u64 redirected;
	u64 redirected_bytes;
	u64 sanctions;
	u64 scored;
	u64 scored_shared;
	u64 calm_ns;		/* first PI update without congestion; 0: none yet */
	bool redirecting;	/* a flow was redirected since the last PI update,
				 * or still is
				 */
};

/* The fast path reads and writes as few cache lines as possible: two up to
 * vars.credit_start, two of the packet's queue and one of its histogram bucket.
 */
struct dualpi2_sched_data {
	/* dualpi2_cb.flags of a packet whose codepoint alone decides. */
	u16 cb_by_ecn[DUALPI2_ECN_CE + 1];
	struct tcf_proto __rcu *filter_list;
	u64 nqb;		/* see struct dualpi2_config */
	u32 nqb_from;		/* smallest DSCP and ECN field of these */
	/* min(limit, maximum so far).  Above them enqueue takes the slow path, which
	 * checks limits and updates the maxima.
	 */
	u32 pkts_watermark;
	u64 mem_watermark;
	u64 memory_used;
	u8 dequeue_slow_flags;	/* DUALPI2_SLOW_* */
	u8 qprotect_state;	/* enum dualpi2_qprotect_state */
	struct dualpi2_drain drain;
	struct dualpi2_vars vars;
	struct dualpi2_burst burst;
	struct dualpi2_params params;
	struct dualpi2_fifo fifo[DUALPI2_QUEUES];
	struct dualpi2_clock clock;
	u64 arrived_ns;		/* of the last packet, if there is a shaper */
	struct qdisc_watchdog watchdog;
	u32 mtu_bytes;		/* with link-layer header, bounded */
	u32 memory_limit;
	u32 limit_pkts;
	u32 nqb_bytes;		/* in the L4S queue */
	u32 nqb_limit_bytes;
	struct dualpi2_config config;
	struct rnd_state rnd;	/* for random signals */
	u64 unparsed;
	u64 filter_dropped;
	u64 gso_failed;
	u64 mark_failed;
	u64 throttled;
	u64 nqb_arrived;
	u64 nqb_dropped;
	u32 max_pkts;
	u32 max_memory_used;
	u64 reports;
	struct dualpi2_active *active;	/* or NULL */
	spinlock_t report_lock;	/* vars, between report_work and reset */
	struct tcf_block *block;
	struct dualpi2_qprotect *qprotect;
	struct dualpi2_qprotect_params qprotect_params;
	u64 qprotect_alloc_failed;
	struct dualpi2_mq_member *mq;	/* NULL: not a child of dualpi2_mq */
};

/* A child of dualpi2_mq, protected by the child's lock, except for the numbers of a look. */
struct dualpi2_mq_member {
	struct dualpi2_mq_queue clock;
	struct dualpi2_mq_group *group;
	struct netdev_queue *txq;
	struct Qdisc *child;
	struct dualpi2_mq_params params;
	u32 mtu_bytes;		/* that @params are for */
	/* Written at each look: backlog of the other children, bytes, and its part of
	 * the limits.
	 */
	u32 others_bytes;
	u32 room_pkts;
	u32 room_memory;
	/* Read at each look. */
	u32 head_us[DUALPI2_QUEUES];	/* enqueue time of the head, 1024 ns */
	u32 bytes[DUALPI2_QUEUES];
	u32 pkts;
	u32 memory;
} ____cacheline_aligned_in_smp;

/* What the children of a dualpi2_mq share.  @lock is inside a child's lock. */
struct dualpi2_mq_group {
	struct dualpi2_mq_clock clock;
	struct dualpi2_mq_sum sum;
	u32 base;		/* p', U32_MAX is 1 */
	u32 queues;
	spinlock_t lock;	/* all that follows, and the looks */
	struct dualpi2_vars vars;	/* of the PI controller */
	struct dualpi2_params params;
	struct dualpi2_config config;
	u32 mtu_bytes;
	unsigned int users;	/* the root and the children; under RTNL */
	struct rcu_head rcu;
	struct dualpi2_mq_member member[];
};

/* For kernels without debugging fields in their locks. */
#define DUALPI2_LAYOUT(_holds)						\
	static_assert(sizeof(long) < 8 || sizeof(spinlock_t) > 4 || (_holds))
DUALPI2_LAYOUT(offsetofend(struct dualpi2_sched_data, vars.credit_start) <= 128);
DUALPI2_LAYOUT(offsetof(struct dualpi2_sched_data, fifo) % 64 == 0);
DUALPI2_LAYOUT(sizeof(struct dualpi2_fifo) % 64 == 0);
DUALPI2_LAYOUT(offsetofend(struct dualpi2_fifo, stats.delay.shift) <= 128);
/* With the 384 bytes of struct Qdisc an idle instance fits 2,048 bytes. */
DUALPI2_LAYOUT(sizeof(struct dualpi2_sched_data) <= 1664);

static const struct genl_multicast_group dualpi2_genl_groups[] = {
	{ .name = DUALPI2_GENL_GROUP },
};

/* The family has no commands, only notifications. */
static struct genl_family dualpi2_genl_family __ro_after_init = {
	.name		= DUALPI2_GENL_NAME,
	.version	= DUALPI2_GENL_VERSION,
	.netnsok	= true,
	.module		= THIS_MODULE,
	.mcgrps		= dualpi2_genl_groups,
	.n_mcgrps	= ARRAY_SIZE(dualpi2_genl_groups),
};

static u64 dualpi2_fifo_bytes(const struct dualpi2_fifo *fifo)
{
	return fifo->bytes_in - fifo->bytes_out;
}

static enum dualpi2_ecn dualpi2_ecn_of(const struct dualpi2_cb *cb)
{
	return cb->flags & DUALPI2_CB_ECN;
}

static enum dualpi2_profile dualpi2_profile_of(const struct dualpi2_cb *cb)
{
	return cb->flags >> DUALPI2_CB_PROFILE;
}

static enum dualpi2_queue dualpi2_queue_of(const struct dualpi2_cb *cb)
{
	return (cb->flags & DUALPI2_CB_L) ? DUALPI2_QUEUE_L : DUALPI2_QUEUE_C;
}

/* Otherwise compilers compute the address of each member. */
static struct dualpi2_fifo *dualpi2_fifo_of(struct dualpi2_sched_data *q,
					    enum dualpi2_queue queue)
{
	struct dualpi2_fifo *fifo = &q->fifo[queue];

	OPTIMIZER_HIDE_VAR(fifo);
	return fifo;
}

/* psched_mtu(), but a device may have an MTU of nearly 2^31. */
static u32 dualpi2_mtu_bytes(const struct Qdisc *sch)
{
	const struct net_device *dev = qdisc_dev(sch);
	u64 bytes = (u64)READ_ONCE(dev->mtu) + dev->hard_header_len;

	return clamp_t(u64, bytes, ETH_ZLEN, S32_MAX);
}

/* With drop_enqueue each packet takes the slow path, which gives the signals.  So does
 * each until there is memory for dualpi2_activate(), and while queue protection is
 * armed.
 */
static void dualpi2_update_watermarks(struct dualpi2_sched_data *q)
{
	bool slow = q->params.drop_early || !q->active ||
		    q->qprotect_state == DUALPI2_QPROTECT_ARMED;

	q->pkts_watermark = slow ? 0 : min(q->limit_pkts, q->max_pkts);
	q->mem_watermark = min(q->memory_limit, q->max_memory_used);
}

/* Serialization time of a byte, from the shaper or estimated; 0: not known. */
static u64 dualpi2_ns_per_byte(const struct dualpi2_sched_data *q)
{
	return q->params.link.ns_per_byte_q20 ?: q->drain.ns_per_byte_q20;
}

/* The limits are those of all children together. */
static void dualpi2_mq_limit(struct dualpi2_sched_data *q)
{
	WRITE_ONCE(q->limit_pkts,
		   min(q->limit_pkts, READ_ONCE(q->mq->room_pkts)));
	WRITE_ONCE(q->memory_limit,
		   min(q->memory_limit, READ_ONCE(q->mq->room_memory)));
}

/* Recompute what depends on the device's MTU and on the link's rate. */
static void dualpi2_refresh_limits(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 ns_per_byte_q20 = dualpi2_ns_per_byte(q);

	q->mtu_bytes = dualpi2_mtu_bytes(sch);
	dualpi2_set_target(&q->params, &q->vars, ns_per_byte_q20, q->mtu_bytes);
	WRITE_ONCE(q->limit_pkts,
		   dualpi2_limit_pkts(&q->config, ns_per_byte_q20,
				      q->vars.target_ns));
	WRITE_ONCE(q->memory_limit,
		   dualpi2_memory_limit_bytes(&q->config, q->mtu_bytes,
					      ns_per_byte_q20,
					      q->vars.target_ns));
	if (q->dequeue_slow_flags & DUALPI2_SLOW_MQ)
		dualpi2_mq_limit(q);
	q->nqb_limit_bytes = dualpi2_nqb_bytes(ns_per_byte_q20, q->mtu_bytes);
	q->vars.credit_start = dualpi2_credit_start(&q->params, q->mtu_bytes);
	dualpi2_update_watermarks(q);
}

/* The stamp that dualpi2_try_dequeue_head() and the functions below read. */
static void dualpi2_stamp(struct sk_buff *skb, u64 now_ns, bool needs_slow)
{
	dualpi2_cb(skb)->queued_ns =
		now_ns | (needs_slow ? DUALPI2_STAMP_NEEDS_SLOW : 0);
}

static u64 dualpi2_sojourn(const struct sk_buff *skb, u64 now_ns)
{
	return now_ns - (dualpi2_cb(skb)->queued_ns & ~DUALPI2_STAMP_NEEDS_SLOW);
}

/* The sojourn time; above every threshold if the packet needs the slow path. */
static u64 dualpi2_sojourn_or_huge(const struct sk_buff *skb, u64 now_ns)
{
	return now_ns - dualpi2_cb(skb)->queued_ns;
}

static u64 dualpi2_head_age_ns(const struct dualpi2_fifo *fifo, u64 now_ns)
{
	const struct sk_buff *skb = fifo->list.head;

	return skb ? dualpi2_sojourn(skb, now_ns) : 0;
}

/* Random bits for the next verdict; the time, if signals are spaced evenly. */
static u64 dualpi2_decision_bits(struct dualpi2_sched_data *q, u64 now_ns)
{
	if (q->params.random)
		return (u64)prandom_u32_state(&q->rnd) << 32 |
		       prandom_u32_state(&q->rnd);
	return now_ns << 32 | (u32)now_ns;
}

/* The class that skb->priority or a filter selects (RFC 9331 5.4: they take precedence
 * over the ECN field).
 *
 * Return: enum dualpi2_class, or a negative number if a filter took the packet; *ret
 * is then what enqueue returns.
 */
static int dualpi2_class_of(struct sk_buff *skb, struct Qdisc *sch, int *ret)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct tcf_proto *filters;
	u32 minor, classid;
	int found;

	/* Qdiscs that the core attaches by itself have no handle. */
	if (sch->handle && TC_H_MAJ(skb->priority) == sch->handle) {
		minor = TC_H_MIN(skb->priority);
		if (minor >= DUALPI2_CLASS_L4S &&
		    minor <= DUALPI2_CLASS_CLASSIC)
			return minor;
	}

	filters = rcu_dereference_bh(q->filter_list);
	if (!filters)
		return DUALPI2_CLASS_NONE;

	found = dualpi2_filter(skb, filters, &classid, ret);
	if (found < 0)
		return found;
	if (!found)
		return DUALPI2_CLASS_NONE;
	return min_t(u32, TC_H_MIN(classid), DUALPI2_CLASS_CLASSIC);
}

static u16 dualpi2_flags(const struct dualpi2_config *cfg,
			 enum dualpi2_queue queue, enum dualpi2_ecn ecn,
			 bool unmarked)
{
	return dualpi2_profile(cfg, queue, ecn, unmarked) << DUALPI2_CB_PROFILE |
	       (queue == DUALPI2_QUEUE_L ? DUALPI2_CB_L : 0) | ecn;
}

/* Compute what the fast path reads from the configuration. */
static void dualpi2_update_fast_path(struct dualpi2_sched_data *q)
{
	const struct dualpi2_config *cfg = &q->config;
	enum dualpi2_ecn ecn;

	for (ecn = DUALPI2_ECN_NOT_ECT; ecn <= DUALPI2_ECN_CE; ecn++)
		q->cb_by_ecn[ecn] =
			dualpi2_flags(cfg, dualpi2_queue_of_ecn(cfg, ecn), ecn,
				      false);
	q->nqb = cfg->nqb;
	q->nqb_from = cfg->nqb ? __ffs64(cfg->nqb) << 2 : U32_MAX;
	q->dequeue_slow_flags &= ~(DUALPI2_SLOW_SHAPED | DUALPI2_SLOW_MQ);
	if (cfg->bandwidth && q->mq)
		q->dequeue_slow_flags |= DUALPI2_SLOW_MQ;
	else if (cfg->bandwidth || cfg->framing != DUALPI2_FRAMING_RAW)
		q->dequeue_slow_flags |= DUALPI2_SLOW_SHAPED;
}

/* May the core bypass empty queues?  Not with filters, which must see each packet;
 * the core clears the flag when a filter is added.  It reads the flag of root qdiscs
 * and of the children of mq only.
 */
static void dualpi2_set_bypass(struct Qdisc *sch)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);

	if (q->config.bypass && !rcu_access_pointer(q->filter_list))
		sch->flags |= TCQ_F_CAN_BYPASS;
	else
		sch->flags &= ~TCQ_F_CAN_BYPASS;
}

/* The conditions on a packet for the fast path at enqueue that its header and
 * skb->priority decide: see the map at the top of this file.
 *
 * Return: DSCP and ECN field, -1 for the slow path.
 */
static __always_inline int dualpi2_classify_fast(const struct sk_buff *skb,
						 struct Qdisc *sch)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	int dsfield;

	if (unlikely(rcu_access_pointer(q->filter_list) ||
		     (skb->priority > TC_H_MIN_MASK &&
		      TC_H_MAJ(skb->priority) == sch->handle)))
		return -1;
	dsfield = dualpi2_linear_dsfield(skb);
	if (dsfield < 0 || ((u32)dsfield >= q->nqb_from &&
			    (q->nqb >> (dsfield >> 2) & 1)))
		return -1;
	return dsfield;
}

/* Decide on a packet's queue and on its profile; fills the control block.  Returns
 * as dualpi2_class_of().
 */
static int dualpi2_classify(struct sk_buff *skb, struct Qdisc *sch, int *ret)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_cb cb = {};
	enum dualpi2_queue queue;
	enum dualpi2_ecn ecn;
	int class, dsfield;

	class = dualpi2_class_of(skb, sch, ret);
	if (class < 0)
		return class;

	/* After the filters, because an action may have changed the packet. */
	dsfield = dualpi2_read_dsfield(skb, &cb);
	if (dsfield < 0)
		q->unparsed++;
	ecn = dsfield < 0 ? INET_ECN_NOT_ECT : dsfield & INET_ECN_MASK;
	if (class == DUALPI2_CLASS_NONE && dsfield >= 0 &&
	    dualpi2_is_nqb(&q->config, ecn, dsfield >> 2)) {
		queue = DUALPI2_QUEUE_L;
		cb.flags |= DUALPI2_CB_NQB;
	} else if (class == DUALPI2_CLASS_NONE) {
		queue = dualpi2_queue_of_ecn(&q->config, ecn);
	} else {
		queue = class == DUALPI2_CLASS_CLASSIC ? DUALPI2_QUEUE_C :
							 DUALPI2_QUEUE_L;
	}
	cb.flags |= dualpi2_flags(&q->config, queue, ecn,
				  class == DUALPI2_CLASS_L_UNMARKED);
	*dualpi2_cb(skb) = cb;
	return class;
}

/* Of all children together, if they share a rate. */
static u64 dualpi2_backlog_bytes(const struct dualpi2_sched_data *q)
{
	u64 others_bytes = (q->dequeue_slow_flags & DUALPI2_SLOW_MQ) ?
			   READ_ONCE(q->mq->others_bytes) : 0;

	return dualpi2_fifo_bytes(&q->fifo[DUALPI2_QUEUE_C]) +
	       dualpi2_fifo_bytes(&q->fifo[DUALPI2_QUEUE_L]) + others_bytes;
}

/* Do Classic packets wait, in any child that shares the rate? */
static bool dualpi2_c_waits(const struct dualpi2_sched_data *q)
{
	return (q->dequeue_slow_flags & DUALPI2_SLOW_MQ) ?
	       atomic_read(&q->mq->group->clock.c_waiting) :
	       !!q->fifo[DUALPI2_QUEUE_C].list.head;
}

static bool dualpi2_is_empty(const struct dualpi2_sched_data *q)
{
	return !q->fifo[DUALPI2_QUEUE_C].list.head &&
	       !q->fifo[DUALPI2_QUEUE_L].list.head;
}

/* No packet is queued, and none is held for a parent that has peeked.  A requeued
 * packet does not count: it has been dequeued, or has bypassed empty queues.
 */
static bool dualpi2_is_idle(struct Qdisc *sch)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);

	return dualpi2_is_empty(q) &&
	       (!sch->q.qlen || !(q->dequeue_slow_flags & DUALPI2_SLOW_PEEKED));
}

static void dualpi2_account_arrival(struct dualpi2_queue_stats *stats,
				    enum dualpi2_ecn ecn)
{
	stats->arrived[ecn]++;
}

static u64 dualpi2_arrived(const struct dualpi2_queue_stats *stats)
{
	u64 packets = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stats->arrived); i++)
		packets += stats->arrived[i];
	return packets;
}

static u64 dualpi2_arrived_bytes(const struct dualpi2_fifo *fifo)
{
	const u64 *dropped = fifo->stats.dropped_bytes;

	return fifo->bytes_in + dropped[DUALPI2_DROPPED_LIMIT] +
	       dropped[DUALPI2_DROPPED_MEMORY] +
	       dropped[DUALPI2_DROPPED_EARLY];
}

static void dualpi2_account_mark(struct dualpi2_queue_stats *stats,
				 enum dualpi2_verdict verdict)
{
	stats->marked[verdict]++;
}

static void dualpi2_account_drop(struct dualpi2_queue_stats *stats,
				 const struct sk_buff *skb,
				 enum dualpi2_drop cause)
{
	bool ect = dualpi2_ecn_of(dualpi2_cb(skb)) != DUALPI2_ECN_NOT_ECT;

	stats->dropped[cause][ect]++;
	stats->dropped_bytes[cause] += qdisc_pkt_len(skb);
}

/* Length of each GSO segment's headers, from the IP header on, bytes. */
static noinline u32 dualpi2_gso_header_bytes(const struct sk_buff *skb)
{
	int offset = skb->encapsulation ? skb_inner_transport_offset(skb) :
					  skb_transport_offset(skb);
	u32 ip_offset = dualpi2_ip_offset(skb);

	if (skb_shinfo(skb)->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
		struct tcphdr buf;
		const struct tcphdr *tcp;

		tcp = skb_header_pointer(skb, offset, sizeof(buf), &buf);
		offset += tcp ? __tcp_hdrlen(tcp) : sizeof(buf);
	} else {
		offset += sizeof(struct udphdr);
	}
	return offset > (int)ip_offset ? offset - ip_offset : 0;
}

/* Length of a packet on the link.  @gso is constant: false where the packet is known
 * not to be GSO.
 */
static __always_inline u64 dualpi2_wire_bytes(const struct dualpi2_sched_data *q,
					      const struct sk_buff *skb, bool gso)
{
	const struct dualpi2_link *link = &q->params.link;
	u32 ip_offset, ip_bytes;

	if (link->framing == DUALPI2_FRAMING_RAW)
		return qdisc_pkt_len(skb);
	ip_offset = dualpi2_ip_offset(skb);
	ip_bytes = skb->len > ip_offset ? skb->len - ip_offset : 0;
	if (!gso || likely(!skb_is_gso(skb)))
		return dualpi2_link_bytes(link, ip_bytes);
	return dualpi2_link_gso_bytes(link, ip_bytes,
				      dualpi2_gso_header_bytes(skb),
				      skb_shinfo(skb)->gso_size);
}

/* Account for a packet that a limit or the AQM drops.  In ingress mode its link time is
 * charged; that of packets purged by a change or a reset is not.
 */
static void dualpi2_charge_drop(struct dualpi2_sched_data *q,
				struct dualpi2_fifo *fifo,
				const struct sk_buff *skb,
				enum dualpi2_drop cause)
{
	u64 wire_bytes = dualpi2_wire_bytes(q, skb, true);

	dualpi2_account_drop(&fifo->stats, skb, cause);
	if (q->dequeue_slow_flags & DUALPI2_SLOW_MQ)
		dualpi2_mq_drop(&q->mq->params, &q->mq->clock, wire_bytes);
	else
		dualpi2_clock_drop(&q->params.link, &q->clock, wire_bytes);
}

/* Inline, and without a pointer to struct dualpi2_packet: its members stay in registers
 * while the tracepoint is off.
 */
static __always_inline void
dualpi2_trace(struct Qdisc *sch, const struct sk_buff *skb, u64 sojourn_ns,
	      enum dualpi2_verdict verdict)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	const struct dualpi2_cb *cb = dualpi2_cb(skb);

	trace_dualpi2_verdict(sch, &q->vars, dualpi2_queue_of(cb),
			      dualpi2_ecn_of(cb), dualpi2_profile_of(cb),
			      qdisc_pkt_len(skb), sojourn_ns, verdict);
}

/* The L4S queue is congested: from now on score packets. */
static noinline void dualpi2_qprotect_arm(struct dualpi2_sched_data *q)
{
	if (!q->qprotect) {
		q->qprotect = kzalloc(sizeof(*q->qprotect),
				      GFP_ATOMIC | __GFP_NOWARN);
		if (!q->qprotect) {
			q->qprotect_alloc_failed++;
			q->qprotect_state = DUALPI2_QPROTECT_FAILED;
			return;
		}
		get_random_bytes(q->qprotect->keys,
				 sizeof(q->qprotect->keys));
	}
	q->qprotect->calm_ns = 0;
	q->qprotect_state = DUALPI2_QPROTECT_ARMED;
	dualpi2_update_watermarks(q);
}

/* After the ramp, the target or p' has changed. */
static void dualpi2_qprotect_refresh(struct dualpi2_sched_data *q)
{
	if (q->config.qprotect)
		dualpi2_qprotect_init(&q->qprotect_params, &q->config,
				      &q->params, &q->vars,
				      dualpi2_ns_per_byte(q));
}

/* At PI updates: stop to score packets DUALPI2_QPROTECT_ARMED_NS after the L4S queue was
 * congested, or a flow had a score or was redirected.
 */
static void dualpi2_qprotect_update(struct dualpi2_sched_data *q, u64 now_ns)
{
	const struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	struct dualpi2_qprotect *qp = q->qprotect;
	struct dualpi2_qprotect_use use;

	dualpi2_qprotect_refresh(q);
	if (q->qprotect_state == DUALPI2_QPROTECT_FAILED)
		q->qprotect_state = DUALPI2_QPROTECT_READY;
	if (q->qprotect_state != DUALPI2_QPROTECT_ARMED)
		return;
	use = dualpi2_qprotect_use(&q->qprotect_params, qp->buckets,
				   q->fifo[DUALPI2_QUEUE_C].bytes_out, now_ns);
	qp->redirecting = use.redirected;
	if (use.used ||
	    dualpi2_qprotect_native_q32(&q->qprotect_params, &q->vars, false,
					dualpi2_head_age_ns(l, now_ns)))
		qp->calm_ns = 0;
	else if (!qp->calm_ns)
		qp->calm_ns = now_ns;
	else if (now_ns - qp->calm_ns >= DUALPI2_QPROTECT_ARMED_NS)
		q->qprotect_state = DUALPI2_QPROTECT_READY;
}

/* A packet leaves its queue: arm, if it has waited.  A native mark arms too, but some
 * packets cannot be marked.
 */
static noinline void dualpi2_qprotect_see(struct dualpi2_sched_data *q,
					  const struct sk_buff *skb,
					  u64 sojourn_ns)
{
	if ((dualpi2_cb(skb)->flags & DUALPI2_CB_NATIVE_OK) &&
	    dualpi2_qprotect_native_q32(&q->qprotect_params, &q->vars,
					dualpi2_c_waits(q), sojourn_ns))
		dualpi2_qprotect_arm(q);
}

/* Carry out a verdict to mark.  A packet that arrived with CE has been marked by
 * another hop, and does not count as marked here.
 */
static void dualpi2_set_ce_counted(struct dualpi2_sched_data *q,
				   struct sk_buff *skb,
				   struct dualpi2_queue_stats *stats,
				   enum dualpi2_verdict verdict)
{
	if (verdict == DUALPI2_MARK_NATIVE &&
	    unlikely(q->qprotect_state == DUALPI2_QPROTECT_READY))
		dualpi2_qprotect_arm(q);
	if (dualpi2_ecn_of(dualpi2_cb(skb)) == DUALPI2_ECN_CE)
		return;
	if (dualpi2_set_ce(skb))
		dualpi2_account_mark(stats, verdict);
	else
		q->mark_failed++;
}

/* The verdict on a Classic packet at its arrival, carried out if it is a mark.
 *
 * Return: true if the caller must drop the packet.
 */
static bool dualpi2_aqm_enqueue(struct Qdisc *sch, struct sk_buff *skb,
				u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	const struct dualpi2_packet pkt = {
		.profile = dualpi2_profile_of(dualpi2_cb(skb)),
		.low = dualpi2_is_low(dualpi2_backlog_bytes(q) +
				      qdisc_pkt_len(skb), q->mtu_bytes),
		.may_drop = true,
		.rnd = dualpi2_decision_bits(q, now_ns),
	};
	enum dualpi2_verdict verdict;

	verdict = dualpi2_c_verdict(&q->params, &q->vars, &pkt);
	dualpi2_trace(sch, skb, 0, verdict);
	if (verdict >= DUALPI2_DROP_AQM)
		return true;
	if (verdict != DUALPI2_PASS)
		dualpi2_set_ce_counted(q, skb,
				       &q->fifo[DUALPI2_QUEUE_C].stats, verdict);
	return false;
}

/* Does a packet cross a watermark?  @memory_used includes the packet. */
static __always_inline bool dualpi2_over_watermark(struct Qdisc *sch,
						   u64 memory_used)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);

	return sch->q.qlen >= q->pkts_watermark ||
	       memory_used > q->mem_watermark;
}

/* Is an NQB packet within the limit of NQB traffic?  The first one always is.  While the
 * rate of the link is not known, the delay of the L4S queue decides.
 */
static bool dualpi2_check_nqb(const struct dualpi2_sched_data *q, u32 len,
			      u64 now_ns)
{
	if (!q->nqb_limit_bytes)
		return dualpi2_head_age_ns(&q->fifo[DUALPI2_QUEUE_L], now_ns) <=
		       DUALPI2_NQB_DELAY_NS;
	return !q->nqb_bytes || (u64)q->nqb_bytes + len <= q->nqb_limit_bytes;
}

static void dualpi2_report_work(struct work_struct *work);

/* Overload began or ended: run the work that reports it. */
static noinline void dualpi2_kick_report(struct dualpi2_sched_data *q)
{
	if (!q->params.report_ns || !q->active)
		return;
	cancel_delayed_work(&q->active->report_work);
	schedule_delayed_work(&q->active->report_work, 0);
}

/* Before the first packet is queued.  Without memory packets are counted, but have no
 * histogram, and overload is not reported; the next packet tries again.
 */
static noinline void dualpi2_activate(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	int queue;

	q->active = kmem_cache_zalloc(dualpi2_active_cache,
				      GFP_ATOMIC | __GFP_NOWARN);
	if (!q->active)
		return;
	q->active->sch = sch;
	INIT_DELAYED_WORK(&q->active->report_work, dualpi2_report_work);
	for (queue = 0; queue < DUALPI2_QUEUES; queue++)
		q->fifo[queue].stats.delay.hist = &q->active->hist[queue];
	if (q->vars.overload)
		dualpi2_kick_report(q);
}

/* For a packet that crosses a watermark, and for each NQB packet.
 *
 * Return: DUALPI2_ADMITTED, or the reason to drop the packet.
 */
static noinline enum dualpi2_drop
dualpi2_check_limits(struct sk_buff *skb, struct Qdisc *sch, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	if (dualpi2_cb(skb)->flags & DUALPI2_CB_NQB) {
		q->nqb_arrived++;
		if (!dualpi2_check_nqb(q, qdisc_pkt_len(skb), now_ns)) {
			q->nqb_dropped++;
			return DUALPI2_DROPPED_LIMIT;
		}
	}
	if (sch->q.qlen >= q->limit_pkts)
		return DUALPI2_DROPPED_LIMIT;
	/* An empty qdisc admits a packet of any size. */
	if (q->memory_used && q->memory_used + skb->truesize > q->memory_limit)
		return DUALPI2_DROPPED_MEMORY;
	if (q->params.drop_early &&
	    dualpi2_queue_of(dualpi2_cb(skb)) == DUALPI2_QUEUE_C &&
	    dualpi2_aqm_enqueue(sch, skb, now_ns))
		return DUALPI2_DROPPED_EARLY;

	if (unlikely(!q->active))
		dualpi2_activate(sch);
	q->max_pkts = max(q->max_pkts, sch->q.qlen + 1);
	/* A mark can increase truesize. */
	q->max_memory_used = max_t(u64, q->max_memory_used,
				   q->memory_used + skb->truesize);
	dualpi2_update_watermarks(q);
	return DUALPI2_ADMITTED;
}

/* Not inline: a 64-bit multiplication needs an aligned stack frame. */
static noinline int dualpi2_burst_begin(struct dualpi2_sched_data *q, u32 len,
					u64 now_ns)
{
	dualpi2_burst_next(&q->burst, len, now_ns);
	return NET_XMIT_SUCCESS;
}

/* Append a packet to a queue.  Returns NET_XMIT_SUCCESS. */
static __always_inline int
dualpi2_queue_tail(struct Qdisc *sch, struct sk_buff *skb,
		   enum dualpi2_queue queue, u64 now_ns, bool needs_slow,
		   u64 memory_used)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_fifo *fifo = &q->fifo[queue];
	u64 len = qdisc_pkt_len(skb);

	dualpi2_stamp(skb, now_ns, needs_slow);
	if (!fifo->list.tail) {
		fifo->list.head = skb;
	} else {
		/* A packet alone in the queue gets no native mark. */
		if (queue == DUALPI2_QUEUE_L &&
		    dualpi2_native_ok(&q->params, fifo->list.qlen + 1))
			dualpi2_cb(skb)->flags |= DUALPI2_CB_NATIVE_OK;
		skb->next = NULL;
		fifo->list.tail->next = skb;
	}
	fifo->list.tail = skb;
	fifo->list.qlen++;
	fifo->bytes_in += len;
	q->memory_used = memory_used;
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + (u32)len);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	if (queue == DUALPI2_QUEUE_C)
		return NET_XMIT_SUCCESS;
	if (!dualpi2_burst_continues(&q->burst, len, now_ns))
		return dualpi2_burst_begin(q, len, now_ns);
	return NET_XMIT_SUCCESS;
}

/* Drop reason of the AQM, for the tracepoints of the kernel. */
static enum dualpi2_compat_reason
dualpi2_aqm_reason(const struct dualpi2_sched_data *q)
{
	return q->vars.base_q32 >= q->params.enter_q32 ?
	       DUALPI2_REASON_OVERLOAD : DUALPI2_REASON_AQM;
}

/* Queue one packet that has been classified.  Returns NET_XMIT_*. */
static int dualpi2_enqueue_skb(struct sk_buff *skb, struct Qdisc *sch,
			       u64 now_ns, struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	enum dualpi2_queue queue = dualpi2_queue_of(dualpi2_cb(skb));
	struct dualpi2_fifo *fifo = dualpi2_fifo_of(q, queue);
	bool redirected = dualpi2_cb(skb)->flags & DUALPI2_CB_REDIRECTED;
	bool nqb = dualpi2_cb(skb)->flags & DUALPI2_CB_NQB;
	u64 memory_used = q->memory_used + skb->truesize;

	dualpi2_account_arrival(&fifo->stats, dualpi2_ecn_of(dualpi2_cb(skb)));
	if (unlikely(nqb || dualpi2_over_watermark(sch, memory_used))) {
		enum dualpi2_drop cause = dualpi2_check_limits(skb, sch, now_ns);

		if (cause != DUALPI2_ADMITTED) {
			dualpi2_charge_drop(q, fifo, skb, cause);
			return dualpi2_compat_drop(skb, sch, to_free,
						   cause == DUALPI2_DROPPED_EARLY ?
						   dualpi2_aqm_reason(q) :
						   DUALPI2_REASON_LIMIT);
		}
		if (nqb)
			q->nqb_bytes += qdisc_pkt_len(skb);
		/* A mark can increase truesize. */
		memory_used = q->memory_used + skb->truesize;
	}
	return dualpi2_queue_tail(sch, skb, queue, now_ns,
				  nqb || redirected || skb_is_gso(skb),
				  memory_used);
}

/* Queue the segments of a GSO packet one by one.  The parents will count one packet of
 * its length; adjust their counts by the difference.
 */
static int dualpi2_segment(struct sk_buff *skb, struct Qdisc *sch, u64 now_ns,
			   struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	unsigned int orig_len = qdisc_pkt_len(skb);
	struct sk_buff *segs, *seg, *next;
	struct dualpi2_cb cb = *dualpi2_cb(skb);
	unsigned int bytes = 0;
	int queued = 0;

	segs = dualpi2_split(skb);
	if (IS_ERR(segs)) {
		q->gso_failed++;
		return dualpi2_compat_drop(skb, sch, to_free,
					   DUALPI2_REASON_OTHER);
	}
	if (!segs)
		return dualpi2_enqueue_skb(skb, sch, now_ns, to_free);

	/* A list of packets is its own first segment.  Drop the extra reference:
	 * only a packet with one user can be marked.
	 */
	consume_skb(skb);
	skb_list_walk_safe(segs, seg, next) {
		unsigned int len;

		dualpi2_init_segment(seg, sch, &cb);
		len = qdisc_pkt_len(seg);
		if (dualpi2_enqueue_skb(seg, sch, now_ns, to_free) ==
		    NET_XMIT_SUCCESS) {
			queued++;
			bytes += len;
		}
	}
	if (!queued)
		return NET_XMIT_DROP;
	dualpi2_adjust_parents(sch, queued, (int)(orig_len - bytes));
	return NET_XMIT_SUCCESS;
}

/* Move the L4S marking ramp beyond the burst length of the last interval. */
static void dualpi2_adapt_ramp(struct dualpi2_sched_data *q)
{
	dualpi2_burst_update(&q->burst, dualpi2_ns_per_byte(q), q->mtu_bytes,
			     q->params.burst_max_ns);
	dualpi2_tolerate(&q->params, &q->vars, q->burst.burst_ns);
}

/* With high-resolution timers the shaper catches up on 1 ms instead of 10 ms.  PI updates
 * call this, too, because the kernel turns these timers on some ticks after it has booted.
 */
static void dualpi2_set_late(struct dualpi2_params *params)
{
	if (hrtimer_resolution <= DUALPI2_LATE_EXACT_NS)
		params->link.late_max_ns = DUALPI2_LATE_EXACT_NS;
}

/* Limits of all children together. */
static void dualpi2_mq_limits(const struct dualpi2_mq_group *group, u32 *pkts,
			      u32 *memory)
{
	u64 ns_per_byte_q20 = group->params.link.ns_per_byte_q20;

	*pkts = dualpi2_limit_pkts(&group->config, ns_per_byte_q20,
				   group->vars.target_ns);
	*memory = dualpi2_memory_limit_bytes(&group->config, group->mtu_bytes,
					     ns_per_byte_q20,
					     group->vars.target_ns);
}

/* One step of the PI controller that all children share.  Its input is the age of the
 * heads, weighted by backlog, of the queues that the device does not stop: if one queue
 * is not served for a time, its age is not that of the bottleneck.
 */
static void dualpi2_mq_step(struct dualpi2_mq_group *group, u64 now_ns)
{
	u64 bytes[DUALPI2_QUEUES] = {}, weighted[DUALPI2_QUEUES] = {};
	u64 delay_us = 0;
	int queue, i = 0;

	do {
		const struct dualpi2_mq_member *m = &group->member[i];

		if (netif_xmit_frozen_or_stopped(m->txq))
			continue;
		for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
			u64 part = READ_ONCE(m->bytes[queue]);
			u32 age = (u32)(now_ns >> 10) -
				  READ_ONCE(m->head_us[queue]);

			bytes[queue] += part;
			/* A head may be newer than now_ns. */
			weighted[queue] += part * max_t(s32, age, 0);
		}
	} while (++i < group->queues);
	for (queue = 0; queue < DUALPI2_QUEUES; queue++)
		if (bytes[queue])
			delay_us = max(delay_us, div64_u64(weighted[queue],
							   bytes[queue]));
	if (bytes[DUALPI2_QUEUE_C] || bytes[DUALPI2_QUEUE_L])
		dualpi2_pi_update(&group->params, &group->vars, delay_us << 10,
				  now_ns);
	else
		dualpi2_pi_idle(&group->params, &group->vars, now_ns);
	WRITE_ONCE(group->base, dualpi2_q32_to_u32(group->vars.base_q32));
}

/* Each ms one child looks at all of them, without their locks: sums of backlogs, what is
 * left of the limits, the PI controller if an update is due.  A child may grow by its
 * part of what is left, at least by a packet if memory allows it, until the next look.
 */
static void dualpi2_mq_look(struct dualpi2_mq_group *group, u64 now_ns)
{
	u64 bytes[DUALPI2_QUEUES] = {}, all, pkts = 0, memory = 0;
	u32 limit, memory_limit, left, memory_left, i = 0;

	do {
		const struct dualpi2_mq_member *m = &group->member[i];

		bytes[DUALPI2_QUEUE_C] += READ_ONCE(m->bytes[DUALPI2_QUEUE_C]);
		bytes[DUALPI2_QUEUE_L] += READ_ONCE(m->bytes[DUALPI2_QUEUE_L]);
		pkts += READ_ONCE(m->pkts);
		memory += READ_ONCE(m->memory);
	} while (++i < group->queues);
	dualpi2_mq_scanned(&group->sum, bytes[DUALPI2_QUEUE_C]);
	all = bytes[DUALPI2_QUEUE_C] + bytes[DUALPI2_QUEUE_L];
	dualpi2_mq_limits(group, &limit, &memory_limit);
	left = limit > pkts ? limit - pkts : 0;
	memory_left = memory_limit > memory ? memory_limit - memory : 0;
	i = 0;
	do {
		struct dualpi2_mq_member *m = &group->member[i];
		u64 own = (u64)READ_ONCE(m->bytes[DUALPI2_QUEUE_C]) +
			  READ_ONCE(m->bytes[DUALPI2_QUEUE_L]);
		u64 room = (u64)READ_ONCE(m->pkts) +
			   max(left / group->queues, min(left, 1U));
		u64 room_memory = (u64)READ_ONCE(m->memory) +
				  memory_left / group->queues;

		WRITE_ONCE(m->others_bytes,
			   min_t(u64, all - min(all, own), U32_MAX));
		WRITE_ONCE(m->room_pkts, min_t(u64, room, U32_MAX));
		WRITE_ONCE(m->room_memory, min_t(u64, room_memory, U32_MAX));
	} while (++i < group->queues);
	if (dualpi2_pi_is_due(&group->vars, now_ns))
		dualpi2_mq_step(group, now_ns);
}

static void dualpi2_mq_set_params(struct dualpi2_sched_data *q)
{
	q->mq->mtu_bytes = q->mtu_bytes;
	dualpi2_mq_init(&q->mq->params, &q->params.link, q->params.l_weight,
			q->mtu_bytes, q->mq->group->queues);
}

/* The update of a child: look, if a look is due, and take over p'. */
static void dualpi2_mq_update(struct Qdisc *sch, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_mq_group *group = q->mq->group;
	bool overload = q->vars.overload;
	u32 base;

	if (dualpi2_mq_scan_due(&group->sum, now_ns)) {
		bool changed;

		spin_lock(&group->lock);
		changed = group->vars.overload;
		group->mtu_bytes = q->mtu_bytes;
		dualpi2_mq_look(group, now_ns);
		changed ^= group->vars.overload;
		/* The first child reports for all, even if it is idle. */
		if (unlikely(changed && group->member[0].child))
			dualpi2_kick_report(qdisc_priv(group->member[0].child));
		spin_unlock(&group->lock);
	}
	base = READ_ONCE(group->base);
	q->vars.base_q32 = base == U32_MAX ? DUALPI2_ONE_Q32 : base;
	q->vars.updated_ns = now_ns;
	dualpi2_refresh_limits(sch);
	dualpi2_set_late(&q->params);
	if (q->mq->mtu_bytes != q->mtu_bytes ||
	    q->mq->params.late_max_ns != q->params.link.late_max_ns)
		dualpi2_mq_set_params(q);
	dualpi2_adapt_ramp(q);
	dualpi2_vars_derive(&q->params, &q->vars, now_ns);
	dualpi2_qprotect_update(q, now_ns);
	q->vars.due_ns = now_ns + DUALPI2_MQ_SCAN_NS;
	if (unlikely(q->vars.overload != overload))
		dualpi2_kick_report(q);
}

/* The PI update, when it is due: with the age of the older head, or for the time
 * that the queues have been empty.
 */
static noinline void dualpi2_update(struct Qdisc *sch, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	bool overload = q->vars.overload;

	if (q->dequeue_slow_flags & DUALPI2_SLOW_MQ) {
		dualpi2_mq_update(sch, now_ns);
		return;
	}
	dualpi2_drain_update(&q->drain, now_ns);
	dualpi2_refresh_limits(sch);
	dualpi2_adapt_ramp(q);
	dualpi2_set_late(&q->params);
	if (dualpi2_is_empty(q))
		dualpi2_pi_idle(&q->params, &q->vars, now_ns);
	else
		dualpi2_pi_update(&q->params, &q->vars,
				  max(dualpi2_head_age_ns(c, now_ns),
				      dualpi2_head_age_ns(l, now_ns)), now_ns);
	dualpi2_qprotect_update(q, now_ns);
	if (unlikely(q->vars.overload != overload))
		dualpi2_kick_report(q);
}

/* Split this GSO packet?  Lists of packets always, because a mark on the head would not
 * reach the others.
 */
static bool dualpi2_is_to_split(const struct dualpi2_sched_data *q,
				const struct sk_buff *skb)
{
	return q->config.split_gso ||
	       (skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST);
}

/* Keep who a redirected flow is, for the statistics; without memory only its hash. */
static noinline void dualpi2_qprotect_name(struct dualpi2_qprotect *qp, u32 i,
					   const struct dualpi2_flow *flow,
					   u32 words)
{
	struct tc_dualpi2_qprotect_flow *named;
	bool ipv6 = words > 4;

	if (!qp->flows)
		qp->flows = kcalloc(DUALPI2_QPROTECT_FLOWS, sizeof(*qp->flows),
				    GFP_ATOMIC | __GFP_NOWARN);
	if (!qp->flows || !words)
		return;
	named = &qp->flows[i];
	memset(named, 0, sizeof(*named));
	named->hash = qp->buckets[i].hash;
	named->family = ipv6 ? AF_INET6 : AF_INET;
	named->protocol = flow->protocol;
	memcpy(named->src, flow->addrs, ipv6 ? 16 : 4);
	memcpy(named->dst, flow->addrs + (ipv6 ? 4 : 1), ipv6 ? 16 : 4);
	/* No ports, but the SPI. */
	if (flow->protocol == IPPROTO_ESP || flow->protocol == IPPROTO_AH)
		return;
	named->sport = ntohs(flow->sport);
	named->dport = ntohs(flow->dport);
}

/* Delay of the L4S queue, in view of a packet that arrives. */
static u64 dualpi2_l_delay_ns(const struct dualpi2_sched_data *q, u64 now_ns)
{
	const struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	u64 age_ns = dualpi2_head_age_ns(l, now_ns);

	if (!q->params.link.ns_per_byte_q20)
		return age_ns;
	return max(age_ns, dualpi2_bytes_ns(q->params.link.ns_per_byte_q20,
					    dualpi2_fifo_bytes(l)));
}

/* Score a packet that its codepoint or DSCP sends to the L4S queue.  Up to a backlog of
 * two packets there it raises no score.
 *
 * Return: its bucket, if it is redirected.
 */
static struct dualpi2_qprotect_bucket *
dualpi2_qprotect(struct Qdisc *sch, const struct sk_buff *skb, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	const struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	const struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	enum dualpi2_qprotect_verdict verdict;
	struct dualpi2_qprotect *qp = q->qprotect;
	struct dualpi2_qprotect_bucket *b;
	u64 delay_ns = dualpi2_l_delay_ns(q, now_ns), native_q32 = 0;
	struct dualpi2_flow flow;
	u32 i, hash, words;

	if (!dualpi2_is_low(dualpi2_fifo_bytes(l), q->mtu_bytes) &&
	    dualpi2_native_ok(&q->params, l->list.qlen + 1))
		native_q32 = dualpi2_qprotect_native_q32(&q->qprotect_params,
							 &q->vars,
							 dualpi2_c_waits(q),
							 delay_ns);
	if (!native_q32 && !qp->redirecting)
		return NULL;

	words = dualpi2_read_flow(skb, &flow);
	hash = dualpi2_qprotect_hash(qp->keys, (const u32 *)&flow, words);
	i = dualpi2_qprotect_pick(&q->qprotect_params, qp->buckets, hash,
				  native_q32, c->bytes_out, now_ns);
	b = &qp->buckets[i];
	if (native_q32) {
		qp->calm_ns = 0;
		qp->scored++;
		qp->scored_shared += i == DUALPI2_QPROTECT_FLOWS;
	}
	verdict = dualpi2_qprotect_verdict(&q->qprotect_params, b,
					   qdisc_pkt_len(skb), native_q32,
					   dualpi2_cb(skb)->flags & DUALPI2_CB_NQB,
					   delay_ns, c->bytes_out, now_ns);
	if (verdict == DUALPI2_QPROTECT_KEEP)
		return NULL;
	qp->redirecting = true;
	if (verdict == DUALPI2_QPROTECT_SANCTION) {
		qp->sanctions++;
		if (q->config.qprotect == DUALPI2_QPROTECT_TUPLE)
			dualpi2_qprotect_name(qp, i, &flow, words);
	}
	return b;
}

/* While queue protection is armed: move a packet of a redirected flow to Classic.
 *
 * Return: the flow's bucket, if the packet was moved.
 */
static struct dualpi2_qprotect_bucket *dualpi2_protect(struct sk_buff *skb,
						       struct Qdisc *sch,
						       int class, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_qprotect_bucket *b;
	struct dualpi2_cb *cb = dualpi2_cb(skb);

	/* Filters and skb->priority have the last word. */
	if (class != DUALPI2_CLASS_NONE || !(cb->flags & DUALPI2_CB_L))
		return NULL;
	b = dualpi2_qprotect(sch, skb, now_ns);
	if (!b)
		return NULL;
	cb->flags = (cb->flags & (DUALPI2_CB_OFFSET | DUALPI2_CB_IPV6)) |
		    dualpi2_flags(&q->config, DUALPI2_QUEUE_C,
				  dualpi2_ecn_of(cb), false);
	/* ECT(1) and CE are here for their codepoint, so they are scalable. */
	if (dualpi2_ecn_of(cb) & DUALPI2_ECN_ECT1)
		cb->flags |= DUALPI2_CB_REDIRECTED;
	return b;
}

static int dualpi2_enqueue_classified(struct sk_buff *skb, struct Qdisc *sch,
				      u64 now_ns, struct sk_buff **to_free)
{
	if (skb_is_gso(skb) && dualpi2_is_to_split(qdisc_priv(sch), skb))
		return dualpi2_segment(skb, sch, now_ns, to_free);
	return dualpi2_enqueue_skb(skb, sch, now_ns, to_free);
}

/* Enqueue a packet while queue protection is armed.  @class: see dualpi2_classify() */
static noinline int dualpi2_enqueue_protected(struct sk_buff *skb,
					      struct Qdisc *sch, int class,
					      u64 now_ns,
					      struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_qprotect_bucket *b;
	const struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	u64 packets = dualpi2_arrived(&c->stats);
	u64 bytes = dualpi2_arrived_bytes(c);
	int ret;

	b = dualpi2_protect(skb, sch, class, now_ns);
	ret = dualpi2_enqueue_classified(skb, sch, now_ns, to_free);
	if (!b)
		return ret;
	/* Not by gso_segs, which is 0 in packets of guests before Linux 7.0. */
	packets = dualpi2_arrived(&c->stats) - packets;
	q->qprotect->redirected += packets;
	q->qprotect->redirected_bytes += dualpi2_arrived_bytes(c) - bytes;
	b->redirected = min_t(u64, b->redirected + packets, U32_MAX);
	/* 0 would mean that the flow is not redirected. */
	if (b->hash)
		b->c_end = c->bytes_in ?: 1;
	return ret;
}

/* Slow path.  Out of line, so that the fast path saves no registers.  Owns skb. */
static noinline int dualpi2_enqueue_slow(struct sk_buff *skb, struct Qdisc *sch,
					 u64 now_ns, struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	int ret, class;

	q->arrived_ns = now_ns;
	class = dualpi2_classify(skb, sch, &ret);
	if (unlikely(class < 0)) {
		if (ret & __NET_XMIT_BYPASS) {
			q->filter_dropped++;
			qdisc_qstats_drop(sch);
		}
		if (class == -1)
			__qdisc_drop(skb, to_free);
		return ret;
	}

	if (dualpi2_is_empty(q)) {
		dualpi2_clock_start(&q->params.link, &q->clock, now_ns);
		if (dualpi2_is_idle(sch) &&
		    dualpi2_pi_is_due(&q->vars, now_ns))
			dualpi2_update(sch, now_ns);
	}
	if (unlikely(q->qprotect_state == DUALPI2_QPROTECT_ARMED))
		return dualpi2_enqueue_protected(skb, sch, class, now_ns,
						 to_free);
	return dualpi2_enqueue_classified(skb, sch, now_ns, to_free);
}

#ifdef DUALPI2_DEBUG
/* A module built with -DDUALPI2_DEBUG takes both decisions for each packet and warns if
 * they differ.  The slow path must classify as the fast path did.
 */
static noinline void dualpi2_verify_enqueue(struct sk_buff *skb,
					    struct Qdisc *sch, u16 flags)
{
	int ret = 0, class = dualpi2_classify(skb, sch, &ret);
	u16 slow = dualpi2_cb(skb)->flags &
		   ~(DUALPI2_CB_OFFSET | DUALPI2_CB_IPV6);

	WARN_ONCE(class != DUALPI2_CLASS_NONE || slow != flags ||
		  dualpi2_ip_offset(skb) != skb_network_offset(skb),
		  "dualpi2: fast path: class %d, flags %#x; slow path: %#x\n",
		  class, flags, slow);
}
#else
static void dualpi2_verify_enqueue(struct sk_buff *skb, struct Qdisc *sch,
				   u16 flags)
{
}
#endif

/* Fast path.  @needs_slow is constant: GSO that stays whole. */
static __always_inline int dualpi2_enqueue_fast(struct sk_buff *skb,
						struct Qdisc *sch, u64 now_ns,
						bool needs_slow,
						struct sk_buff **to_free)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	enum dualpi2_ecn ecn;
	u64 memory_used;
	int dsfield;
	u16 flags;

	dsfield = dualpi2_classify_fast(skb, sch);
	memory_used = q->memory_used + skb->truesize;
	if (unlikely(dsfield < 0 || dualpi2_over_watermark(sch, memory_used) ||
		     dualpi2_pi_is_due(&q->vars, now_ns)))
		return dualpi2_enqueue_slow(skb, sch, now_ns, to_free);
	if (q->dequeue_slow_flags & DUALPI2_SLOW_SHAPED) {
		q->arrived_ns = now_ns;
		if (dualpi2_is_empty(q))
			dualpi2_clock_start(&q->params.link, &q->clock,
					    now_ns);
	}

	ecn = dsfield & INET_ECN_MASK;
	flags = q->cb_by_ecn[ecn];
	dualpi2_verify_enqueue(skb, sch, flags);
	dualpi2_cb(skb)->flags = flags;
	if (flags & DUALPI2_CB_L) {
		dualpi2_account_arrival(&q->fifo[DUALPI2_QUEUE_L].stats, ecn);
		return dualpi2_queue_tail(sch, skb, DUALPI2_QUEUE_L, now_ns,
					  needs_slow, memory_used);
	}
	dualpi2_account_arrival(&q->fifo[DUALPI2_QUEUE_C].stats, ecn);
	return dualpi2_queue_tail(sch, skb, DUALPI2_QUEUE_C, now_ns, needs_slow,
				  memory_used);
}

static noinline int dualpi2_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
					u64 now_ns, struct sk_buff **to_free)
{
	if (dualpi2_is_to_split(qdisc_priv(sch), skb))
		return dualpi2_enqueue_slow(skb, sch, now_ns, to_free);
	return dualpi2_enqueue_fast(skb, sch, now_ns, true, to_free);
}

static int dualpi2_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	u64 now_ns = ktime_get_ns();

	if (unlikely(skb_is_gso(skb)))
		return dualpi2_enqueue_gso(skb, sch, now_ns, to_free);
	return dualpi2_enqueue_fast(skb, sch, now_ns, false, to_free);
}

/* Take the packet at the head of a queue. */
static __always_inline struct sk_buff *
dualpi2_dequeue_head(struct dualpi2_sched_data *q, struct dualpi2_fifo *fifo)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&fifo->list);

	fifo->bytes_out += qdisc_pkt_len(skb);
	q->memory_used -= skb->truesize;
	if (unlikely(dualpi2_cb(skb)->flags & DUALPI2_CB_NQB))
		q->nqb_bytes -= qdisc_pkt_len(skb);
	return skb;
}

/* A class of a child has become empty. */
static void dualpi2_mq_emptied(struct dualpi2_sched_data *q,
			       enum dualpi2_queue queue)
{
	if (queue == DUALPI2_QUEUE_L)
		dualpi2_mq_l_empty(&q->mq->clock);
	else
		dualpi2_mq_c_empty(&q->mq->group->clock, &q->mq->clock);
}

/* Charge a packet that leaves to the shaper that all children share. */
static void dualpi2_mq_charge(struct dualpi2_sched_data *q,
			      enum dualpi2_queue queue, u32 bytes, bool left)
{
	struct dualpi2_mq_member *mq = q->mq;

	if (queue == DUALPI2_QUEUE_L)
		dualpi2_mq_l_sent(&mq->params, &mq->group->clock, &mq->clock,
				  bytes);
	else
		dualpi2_mq_c_sent(&mq->params, &mq->clock, bytes);
	if (!left)
		dualpi2_mq_emptied(q, queue);
}

/* Account for a packet that leaves its queue for the link: scheduler, shaper or
 * drain rate, statistics.
 *
 * @queue, @packets and @shaped are constant in the fast path, @mq is everywhere.
 * @len, @wire_bytes: its length for the qdisc layer and on the link
 * @c_left, @l_left: that queue still has a backlog
 * @shaped: false: there is no shaper
 * @mq: the shaper is that of the group
 */
static __always_inline void
dualpi2_account_departure(struct Qdisc *sch, enum dualpi2_queue queue,
			  struct dualpi2_fifo *fifo, u32 packets, u64 len,
			  u64 wire_bytes, bool c_left, bool l_left, bool shaped,
			  bool mq, u64 sojourn_ns, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u32 bytes = min_t(u64, wire_bytes, U32_MAX);

	dualpi2_sched_charge(&q->params, &q->vars, queue, c_left, l_left, bytes);
	if (mq)
		dualpi2_mq_charge(q, queue, bytes,
				  queue == DUALPI2_QUEUE_C ? c_left : l_left);
	else if (shaped && q->params.link.ns_per_byte_q20)
		dualpi2_clock_send(&q->params.link, &q->clock, wire_bytes,
				   now_ns);
	else if (c_left || l_left || q->drain.begin_ns)
		dualpi2_drain_sent(&q->drain, bytes, c_left || l_left, now_ns);

	_bstats_update(&sch->bstats, len, packets);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - (u32)len);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	dualpi2_delay_add(&fifo->stats.delay, sojourn_ns);
}

/* Not inline, as dualpi2_burst_begin(). */
static noinline u64 dualpi2_drain_ns(const struct dualpi2_sched_data *q,
				     u64 bytes)
{
	return dualpi2_bytes_ns(q->params.link.ns_per_byte_q20, bytes);
}

/* Input of the verdict on the head of a queue, without the random bits.
 *
 * If the shaper is the bottleneck, the native marker's delay is the serialization time
 * of the L4S packets after this one, so that the first packet of a burst is marked
 * (RFC 9332 A.1, note a); otherwise it is the sojourn time.
 *
 * @queue: constant
 * @other: the other queue has a backlog
 * @shaped: constant; false: there is no shaper
 * @fast: constant; @queue holds at most DUALPI2_LINK_BYTES_MAX
 */
static __always_inline struct dualpi2_packet
dualpi2_packet(const struct dualpi2_sched_data *q, const struct sk_buff *skb,
	       enum dualpi2_queue queue, bool other, bool shaped, bool fast,
	       u64 sojourn_ns, u64 now_ns)
{
	const struct dualpi2_fifo *fifo = &q->fifo[queue];
	const struct dualpi2_link *link = &q->params.link;
	u64 bytes = dualpi2_fifo_bytes(fifo), left_bytes;
	struct dualpi2_packet pkt = {
		.profile = dualpi2_profile_of(dualpi2_cb(skb)),
		.may_drop = skb->next || other,
		.delay_ns = sojourn_ns,
	};

	if (other)
		bytes += dualpi2_fifo_bytes(&q->fifo[!queue]);
	pkt.low = dualpi2_is_low(bytes, q->mtu_bytes);
	if (queue == DUALPI2_QUEUE_C)
		return pkt;
	pkt.shared = other;
	pkt.l_pkts = fifo->list.qlen;
	pkt.native_ok = dualpi2_cb(skb)->flags & DUALPI2_CB_NATIVE_OK;
	if (shaped && dualpi2_clock_is_cause(link, &q->clock, now_ns)) {
		left_bytes = dualpi2_fifo_bytes(fifo) - qdisc_pkt_len(skb);
		/* The product is below 2^62. */
		pkt.delay_ns = fast ?
			       left_bytes * link->ns_per_byte_q20 >> 20 :
			       dualpi2_drain_ns(q, left_bytes);
		pkt.native_ok = dualpi2_native_ok(&q->params, pkt.l_pkts);
	}
	return pkt;
}

/* The mark of a redirected packet that the AQM passes: for the delay of the Classic queue,
 * as the native marker would give.  The Classic target alone would let a scalable sender
 * fill that queue, and bring its backlog along when it returns.  The option random is for
 * the signals of the AQM; these are spaced evenly.
 */
static noinline enum dualpi2_verdict
dualpi2_qprotect_mark(struct dualpi2_sched_data *q, u64 sojourn_ns, u64 now_ns)
{
	u64 left_bytes = dualpi2_fifo_bytes(&q->fifo[DUALPI2_QUEUE_C]);
	u64 delay_ns = q->params.link.ns_per_byte_q20 ?
		       dualpi2_drain_ns(q, left_bytes) : sojourn_ns;
	u64 native_q32 = dualpi2_qprotect_native_q32(&q->qprotect_params,
						     &q->vars, false, delay_ns);

	return dualpi2_accumulate(&q->vars.c_scalable, native_q32, false,
				  now_ns) ?
	       DUALPI2_MARK_NATIVE : DUALPI2_PASS;
}

/* Has queue protection redirected the cause of an overload? */
static bool dualpi2_is_spared(const struct dualpi2_sched_data *q, u64 sojourn_ns)
{
	return q->qprotect_state == DUALPI2_QPROTECT_ARMED &&
	       q->qprotect->redirecting &&
	       sojourn_ns <= q->qprotect_params.delay_ns;
}

/* The verdict on the head of a queue.  With drop_enqueue, enqueue has already decided
 * about Classic packets.  Arguments as for dualpi2_packet().
 */
static __always_inline enum dualpi2_verdict
dualpi2_aqm_dequeue(struct Qdisc *sch, const struct sk_buff *skb,
		    enum dualpi2_queue queue, bool other, u64 sojourn_ns,
		    bool may_drop, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	enum dualpi2_verdict verdict;
	struct dualpi2_packet pkt;

	if (queue == DUALPI2_QUEUE_C && q->params.drop_early)
		return DUALPI2_PASS;
	pkt = dualpi2_packet(q, skb, queue, other, true, false, sojourn_ns,
			     now_ns);
	pkt.may_drop &= may_drop;
	pkt.spared = dualpi2_is_spared(q, sojourn_ns);
	pkt.rnd = dualpi2_decision_bits(q, now_ns);
	verdict = queue == DUALPI2_QUEUE_C ?
		  dualpi2_c_verdict(&q->params, &q->vars, &pkt) :
		  dualpi2_l_verdict(&q->params, &q->vars, &pkt);
	dualpi2_trace(sch, skb, sojourn_ns, verdict);
	return verdict;
}

/* Drop a packet that was taken from its queue. */
static noinline void dualpi2_aqm_drop(struct Qdisc *sch, struct sk_buff *skb,
				      enum dualpi2_verdict verdict)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	dualpi2_charge_drop(q, &q->fifo[dualpi2_queue_of(dualpi2_cb(skb))], skb,
			    verdict == DUALPI2_DROP_AQM ?
			    DUALPI2_DROPPED_AQM : DUALPI2_DROPPED_OVERLOAD);
	dualpi2_backlog_dec(sch, skb);
	qdisc_qstats_drop(sch);
	dualpi2_compat_dequeue_drop(sch, skb, dualpi2_aqm_reason(q));
}

/* The queue that sends next; at least one of the heads @c and @l is not NULL. */
static __always_inline enum dualpi2_queue
dualpi2_pick(struct dualpi2_sched_data *q, const struct sk_buff *c,
	     const struct sk_buff *l, u64 now_ns)
{
#ifdef DUALPI2_TIME_SHIFT_US
	/* For experiments, a time-shifted FIFO in place of the round robin (RFC 9332
	 * 2.5.1): L4S goes first, unless Classic has waited longer by more than this.
	 */
	if (c && l)
		q->vars.credit = dualpi2_sojourn(c, now_ns) >
				 dualpi2_sojourn(l, now_ns) +
				 DUALPI2_TIME_SHIFT_US * NSEC_PER_USEC;
#endif
	return dualpi2_sched_pick(&q->vars, c, l);
}

/* Slow path: the PI update, marks and drops, and all packets. */
static noinline struct sk_buff *dualpi2_dequeue_slow(struct Qdisc *sch,
						     u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	const struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	const struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	unsigned int dropped = 0, dropped_bytes = 0;
	enum dualpi2_verdict verdict;
	struct dualpi2_fifo *fifo;
	enum dualpi2_queue queue;
	struct sk_buff *skb;
	u64 sojourn_ns;
	bool may_drop;

	/* qlen also counts requeued packets. */
	if (dualpi2_is_empty(q))
		return NULL;
	if (unlikely(dualpi2_pi_is_due(&q->vars, now_ns)))
		dualpi2_update(sch, now_ns);

	for (;;) {
		may_drop = dropped < DUALPI2_DROPS_PER_DEQUEUE;
		queue = dualpi2_pick(q, c->list.head, l->list.head, now_ns);
		fifo = dualpi2_fifo_of(q, queue);
		sojourn_ns = dualpi2_sojourn(fifo->list.head, now_ns);
		verdict = queue == DUALPI2_QUEUE_C ?
			  dualpi2_aqm_dequeue(sch, c->list.head,
					      DUALPI2_QUEUE_C, l->list.head,
					      sojourn_ns, may_drop, now_ns) :
			  dualpi2_aqm_dequeue(sch, l->list.head,
					      DUALPI2_QUEUE_L, c->list.head,
					      sojourn_ns, may_drop, now_ns);
		skb = dualpi2_dequeue_head(q, fifo);
		if (unlikely(q->qprotect_state == DUALPI2_QPROTECT_READY))
			dualpi2_qprotect_see(q, skb, sojourn_ns);
		if (likely(verdict < DUALPI2_DROP_AQM))
			break;
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		dualpi2_aqm_drop(sch, skb, verdict);
	}
	if (verdict == DUALPI2_PASS &&
	    unlikely(dualpi2_cb(skb)->flags & DUALPI2_CB_REDIRECTED))
		verdict = dualpi2_qprotect_mark(q, sojourn_ns, now_ns);
	if (verdict != DUALPI2_PASS)
		dualpi2_set_ce_counted(q, skb, &fifo->stats, verdict);

	/* Parents must see a child that is not empty. */
	if (unlikely(dropped))
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	dualpi2_account_departure(sch, queue, fifo,
				  skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1,
				  qdisc_pkt_len(skb),
				  dualpi2_wire_bytes(q, skb, true),
				  c->list.head, l->list.head, true, false,
				  sojourn_ns, now_ns);
	return skb;
}

#ifdef DUALPI2_DEBUG
/* The slow path must come to the same verdict on the head of @queue and leave the same
 * state.  @vars_before: from before the fast path's decision.
 */
static noinline void
dualpi2_verify_dequeue(struct Qdisc *sch, const struct sk_buff *skb,
		       enum dualpi2_queue queue,
		       const struct dualpi2_vars *vars_before,
		       enum dualpi2_verdict fast, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_vars vars = *vars_before;
	bool c = q->fifo[DUALPI2_QUEUE_C].list.head;
	bool l = q->fifo[DUALPI2_QUEUE_L].list.head;
	enum dualpi2_verdict verdict = DUALPI2_PASS;
	struct dualpi2_packet pkt;

	if (queue == DUALPI2_QUEUE_L) {
		pkt = dualpi2_packet(q, skb, DUALPI2_QUEUE_L, c, true, false,
				     dualpi2_sojourn(skb, now_ns), now_ns);
		pkt.rnd = now_ns << 32;
		verdict = dualpi2_l_verdict(&q->params, &vars, &pkt);
	} else if (!q->params.drop_early) {
		pkt = dualpi2_packet(q, skb, DUALPI2_QUEUE_C, l, true, false,
				     dualpi2_sojourn(skb, now_ns), now_ns);
		pkt.rnd = now_ns << 32;
		verdict = dualpi2_c_verdict(&q->params, &vars, &pkt);
	}
	WARN_ONCE(verdict != fast || memcmp(&vars, &q->vars, sizeof(vars)) ||
		  queue != dualpi2_sched_pick(&q->vars, c, l) ||
		  skb_is_gso(skb) || (dualpi2_cb(skb)->flags & DUALPI2_CB_NQB),
		  "dualpi2: fast path: queue %d, verdict %d; slow path: %d, flags %#x\n",
		  queue, fast, verdict, dualpi2_cb(skb)->flags);
}
#else
static void
dualpi2_verify_dequeue(struct Qdisc *sch, const struct sk_buff *skb,
		       enum dualpi2_queue queue,
		       const struct dualpi2_vars *vars_before,
		       enum dualpi2_verdict fast, u64 now_ns)
{
}
#endif

/* Take the head of @queue.  @queue and @shaped are constant; @other: the other queue has
 * a backlog.
 */
static __always_inline void
dualpi2_take_head(struct Qdisc *sch, struct sk_buff *skb,
		  enum dualpi2_queue queue, bool other, bool shaped,
		  u64 sojourn_ns, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_fifo *fifo = &q->fifo[queue];
	u64 len = qdisc_pkt_len(skb);
	struct sk_buff *next = skb->next;

	fifo->list.head = next;
	fifo->list.qlen--;
	fifo->bytes_out += len;
	q->memory_used -= skb->truesize;
	if (next)
		skb_mark_not_on_list(skb);
	else
		fifo->list.tail = NULL;
	dualpi2_account_departure(sch, queue, fifo, 1, len,
				  shaped ? dualpi2_wire_bytes(q, skb, false) : len,
				  queue == DUALPI2_QUEUE_C ? !!next : other,
				  queue == DUALPI2_QUEUE_C ? other : !!next,
				  shaped, false, sojourn_ns, now_ns);
}

/* Take the head of @queue, if dualpi2_verdict_fast() passes or marks it.  Arguments as
 * for dualpi2_take_head().
 *
 * Return: NULL: it takes the slow path; nothing has changed.
 */
static __always_inline struct sk_buff *
dualpi2_try_verdict(struct Qdisc *sch, struct sk_buff *skb,
		    enum dualpi2_queue queue, bool other, bool shaped,
		    u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 sojourn_ns = dualpi2_sojourn_or_huge(skb, now_ns);
	struct dualpi2_vars before = q->vars;	/* for verification alone */
	enum dualpi2_verdict verdict;
	struct dualpi2_packet pkt;

	if (sojourn_ns >= DUALPI2_NO_SIGNAL_MAX_NS ||
	    (shaped &&
	     dualpi2_fifo_bytes(&q->fifo[queue]) > DUALPI2_LINK_BYTES_MAX))
		return NULL;
	pkt = dualpi2_packet(q, skb, queue, other, shaped, true, sojourn_ns,
			     now_ns);
	pkt.rnd = now_ns << 32;
	verdict = dualpi2_verdict_fast(&q->params, &q->vars, queue, &pkt);
	if (verdict == DUALPI2_UNDECIDED)
		return NULL;
	dualpi2_verify_dequeue(sch, skb, queue, &before, verdict, now_ns);
	dualpi2_take_head(sch, skb, queue, other, shaped, sojourn_ns, now_ns);
	if (verdict != DUALPI2_PASS)
		dualpi2_set_ce_counted(q, skb, &q->fifo[queue].stats, verdict);
	return skb;
}

/* Fast path of a loaded link.  @shaped is constant. */
static __always_inline struct sk_buff *
dualpi2_dequeue_loaded(struct Qdisc *sch, bool shaped, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct sk_buff *c = q->fifo[DUALPI2_QUEUE_C].list.head;
	struct sk_buff *l = q->fifo[DUALPI2_QUEUE_L].list.head;
	struct sk_buff *skb;

	/* qlen also counts requeued packets. */
	if (dualpi2_is_empty(q))
		return NULL;
	if (dualpi2_pick(q, c, l, now_ns) == DUALPI2_QUEUE_C)
		skb = dualpi2_try_verdict(sch, c, DUALPI2_QUEUE_C, l, shaped,
					  now_ns);
	else
		skb = dualpi2_try_verdict(sch, l, DUALPI2_QUEUE_L, c, shaped,
					  now_ns);
	return skb ?: dualpi2_dequeue_slow(sch, now_ns);
}

static noinline struct sk_buff *
dualpi2_dequeue_loaded_unshaped(struct Qdisc *sch, u64 now_ns)
{
	return dualpi2_dequeue_loaded(sch, false, now_ns);
}

static noinline struct sk_buff *
dualpi2_dequeue_loaded_shaped(struct Qdisc *sch, u64 now_ns)
{
	return dualpi2_dequeue_loaded(sch, true, now_ns);
}

/* Take the head of @queue, if p' is 0 and its sojourn time is below the L4S ramp.  The
 * other queue is empty.  @queue and @shaped are constant.
 *
 * Return: false: nothing has changed.
 */
static __always_inline bool
dualpi2_try_dequeue_head(struct Qdisc *sch, struct sk_buff *skb,
			 enum dualpi2_queue queue, bool shaped, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 sojourn_ns = dualpi2_sojourn_or_huge(skb, now_ns);

	if (shaped && skb->next ?
	    !dualpi2_no_signal(&q->params, &q->vars, queue, sojourn_ns,
			      dualpi2_fifo_bytes(&q->fifo[queue]) -
			      qdisc_pkt_len(skb)) :
	    sojourn_ns >= q->vars.no_signal_below_ns[queue])
		return false;
	dualpi2_verify_dequeue(sch, skb, queue, &q->vars, DUALPI2_PASS, now_ns);
	dualpi2_take_head(sch, skb, queue, false, shaped, sojourn_ns, now_ns);
	return true;
}

/* Fast path, when a packet may leave. */
static __always_inline struct sk_buff *
dualpi2_dequeue_fast(struct Qdisc *sch, bool shaped, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct sk_buff *c, *l;

	if (unlikely(dualpi2_pi_is_due(&q->vars, now_ns) ||
		     trace_dualpi2_verdict_enabled()))
		return dualpi2_dequeue_slow(sch, now_ns);
	c = q->fifo[DUALPI2_QUEUE_C].list.head;
	l = q->fifo[DUALPI2_QUEUE_L].list.head;
	if (l) {
		if (!c && dualpi2_try_dequeue_head(sch, l, DUALPI2_QUEUE_L,
						   shaped, now_ns))
			return l;
	} else if (c && dualpi2_try_dequeue_head(sch, c, DUALPI2_QUEUE_C,
						 shaped, now_ns)) {
		return c;
	}
	return shaped ? dualpi2_dequeue_loaded_shaped(sch, now_ns) :
			dualpi2_dequeue_loaded_unshaped(sch, now_ns);
}

/* May a packet leave now, as far as the shaper is concerned?  Every enqueue triggers
 * a dequeue attempt.  While the watchdog is armed, return without reading the clock.
 *
 * Return: the time; 0: wait.  A pointer to the time would give the caller a protected
 * stack frame.
 */
static noinline u64 dualpi2_throttle(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns;

	if (hrtimer_is_queued(&q->watchdog.timer))
		return 0;
	now_ns = ktime_get_ns();
	if (!dualpi2_clock_wait(&q->clock, now_ns))
		return now_ns;
	q->throttled++;
	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_ns(&q->watchdog, q->clock.next_ns);
	return 0;
}

/* Which queue of a child may send now, as far as the shaper that all share is concerned?
 *
 * Return: DUALPI2_QUEUES: neither, before *wake_ns.
 */
static enum dualpi2_queue dualpi2_mq_pick(struct dualpi2_sched_data *q,
					  const struct sk_buff *c,
					  const struct sk_buff *l, u64 now_ns,
					  u64 *wake_ns)
{
	struct dualpi2_mq_member *mq = q->mq;
	struct dualpi2_mq_group *group = mq->group;
	u64 l_ns = U64_MAX, c_ns = U64_MAX, backlog;

	if (l) {
		backlog = dualpi2_fifo_bytes(&q->fifo[DUALPI2_QUEUE_L]);
		if (dualpi2_mq_l_ready(&mq->params, &group->clock, &mq->clock,
				       min_t(u64, dualpi2_wire_bytes(q, l, true),
					     U32_MAX),
				       min_t(u64, backlog, U32_MAX), now_ns,
				       &l_ns))
			return DUALPI2_QUEUE_L;
	}
	if (c) {
		backlog = dualpi2_fifo_bytes(&q->fifo[DUALPI2_QUEUE_C]);
		dualpi2_mq_c_begin(&group->clock, &mq->clock);
		if (dualpi2_mq_c_ready(&mq->params, &group->clock, &group->sum,
				       &mq->clock,
				       min_t(u64, dualpi2_wire_bytes(q, c, true),
					     U32_MAX),
				       min_t(u64, backlog, U32_MAX), now_ns,
				       &c_ns))
			return DUALPI2_QUEUE_C;
	}
	*wake_ns = min(l_ns, c_ns);
	return DUALPI2_QUEUES;
}

/* The verdict on the head of a queue of a child.  Whether there is a backlog, and whether
 * Classic packets wait, is asked of all children together.
 */
static enum dualpi2_verdict dualpi2_mq_verdict(struct Qdisc *sch,
					       const struct sk_buff *skb,
					       enum dualpi2_queue queue,
					       bool other, bool may_drop,
					       u64 sojourn_ns, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	enum dualpi2_verdict verdict;
	struct dualpi2_packet pkt;
	u64 left_ns;

	if (queue == DUALPI2_QUEUE_C && q->params.drop_early)
		return DUALPI2_PASS;
	pkt = dualpi2_packet(q, skb, queue, other, false, false, sojourn_ns,
			     now_ns);
	pkt.low = dualpi2_is_low(dualpi2_backlog_bytes(q), q->mtu_bytes);
	pkt.may_drop &= may_drop;
	pkt.spared = dualpi2_is_spared(q, sojourn_ns);
	pkt.rnd = dualpi2_decision_bits(q, now_ns);
	if (queue == DUALPI2_QUEUE_L) {
		pkt.shared = dualpi2_c_waits(q);
		left_ns = dualpi2_drain_ns(q, dualpi2_fifo_bytes(&q->fifo[queue]) -
					      qdisc_pkt_len(skb));
		pkt.delay_ns = max(sojourn_ns, left_ns);
		pkt.native_ok |= dualpi2_native_ok(&q->params, pkt.l_pkts);
		verdict = dualpi2_l_verdict(&q->params, &q->vars, &pkt);
	} else {
		verdict = dualpi2_c_verdict(&q->params, &q->vars, &pkt);
	}
	dualpi2_trace(sch, skb, sojourn_ns, verdict);
	return verdict;
}

/* Take the next packet of a child that may leave, and drop those that the AQM drops. */
static struct sk_buff *dualpi2_mq_take(struct Qdisc *sch, u64 now_ns)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];
	unsigned int dropped = 0;
	enum dualpi2_verdict verdict;
	struct dualpi2_fifo *fifo;
	enum dualpi2_queue queue;
	u64 sojourn_ns, wake_ns;
	struct sk_buff *skb;
	bool other;

	for (;;) {
		queue = dualpi2_mq_pick(q, c->list.head, l->list.head, now_ns,
					&wake_ns);
		if (queue == DUALPI2_QUEUES) {
			if (!hrtimer_is_queued(&q->watchdog.timer)) {
				q->throttled++;
				qdisc_qstats_overlimit(sch);
			}
			qdisc_watchdog_schedule_ns(&q->watchdog, wake_ns);
			return NULL;
		}
		fifo = dualpi2_fifo_of(q, queue);
		other = queue == DUALPI2_QUEUE_C ? l->list.head : c->list.head;
		sojourn_ns = dualpi2_sojourn(fifo->list.head, now_ns);
		verdict = dualpi2_mq_verdict(sch, fifo->list.head, queue, other,
					     dropped < DUALPI2_DROPS_PER_DEQUEUE,
					     sojourn_ns, now_ns);
		skb = dualpi2_dequeue_head(q, fifo);
		if (unlikely(q->qprotect_state == DUALPI2_QPROTECT_READY))
			dualpi2_qprotect_see(q, skb, sojourn_ns);
		if (likely(verdict < DUALPI2_DROP_AQM))
			break;
		dropped++;
		dualpi2_aqm_drop(sch, skb, verdict);
		if (!fifo->list.head)
			dualpi2_mq_emptied(q, queue);
	}
	if (verdict == DUALPI2_PASS &&
	    unlikely(dualpi2_cb(skb)->flags & DUALPI2_CB_REDIRECTED))
		verdict = dualpi2_qprotect_mark(q, sojourn_ns, now_ns);
	if (verdict != DUALPI2_PASS)
		dualpi2_set_ce_counted(q, skb, &fifo->stats, verdict);
	dualpi2_account_departure(sch, queue, fifo,
				  skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1,
				  qdisc_pkt_len(skb),
				  dualpi2_wire_bytes(q, skb, true),
				  c->list.head, l->list.head, true, true,
				  sojourn_ns, now_ns);
	return skb;
}

/* Show the backlog to the other children. */
static void dualpi2_mq_publish(struct Qdisc *sch)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_mq_member *mq = q->mq;
	int queue;

	for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
		const struct dualpi2_fifo *fifo = &q->fifo[queue];

		if (fifo->list.head)
			WRITE_ONCE(mq->head_us[queue],
				   (u32)((dualpi2_cb(fifo->list.head)->queued_ns &
					  ~DUALPI2_STAMP_NEEDS_SLOW) >> 10));
		WRITE_ONCE(mq->bytes[queue],
			   min_t(u64, dualpi2_fifo_bytes(fifo), U32_MAX));
	}
	WRITE_ONCE(mq->pkts, sch->q.qlen);
	WRITE_ONCE(mq->memory, min_t(u64, q->memory_used, U32_MAX));
}

/* Dequeue of a child of dualpi2_mq with a shaper.  Out of line, so that others save no
 * registers.
 */
static noinline struct sk_buff *dualpi2_dequeue_mq(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	struct sk_buff *skb = NULL;

	if (unlikely(dualpi2_pi_is_due(&q->vars, now_ns)))
		dualpi2_update(sch, now_ns);
	/* qlen also counts requeued packets. */
	if (!dualpi2_is_empty(q))
		skb = dualpi2_mq_take(sch, now_ns);
	dualpi2_mq_publish(sch);
	return skb;
}

/* Dequeue after a parent has peeked.  The flag may be stale: qdisc_dequeue_peeked()
 * takes the packet from gso_skb without calling us.
 */
static noinline struct sk_buff *dualpi2_dequeue_peeked(struct Qdisc *sch)
{
	struct sk_buff *skb = __skb_dequeue(&sch->gso_skb);
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	q->dequeue_slow_flags &= ~DUALPI2_SLOW_PEEKED;
	if (!skb)
		return sch->dequeue(sch);
	dualpi2_backlog_dec(sch, skb);
	return skb;
}

/* Dequeue with any of dequeue_slow_flags set. */
static noinline struct sk_buff *dualpi2_dequeue_shaped(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns;

	if (unlikely(q->dequeue_slow_flags & DUALPI2_SLOW_PEEKED))
		return dualpi2_dequeue_peeked(sch);
	if (q->dequeue_slow_flags & DUALPI2_SLOW_MQ)
		return dualpi2_dequeue_mq(sch);
	if (unlikely(dualpi2_clock_wait(&q->clock, q->arrived_ns))) {
		now_ns = dualpi2_throttle(sch);
		if (!now_ns)
			return NULL;
	} else {
		now_ns = ktime_get_ns();
	}
	return dualpi2_dequeue_fast(sch, true, now_ns);
}

static struct sk_buff *dualpi2_dequeue(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	if (!sch->q.qlen)
		return NULL;
	if (unlikely(q->dequeue_slow_flags))
		return dualpi2_dequeue_shaped(sch);
	return dualpi2_dequeue_fast(sch, false, ktime_get_ns());
}

/* The packet that dequeue will return next.  It has its verdict and has left its queue,
 * but still counts in the qdisc's qlen and backlog.
 */
static struct sk_buff *dualpi2_peek(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = skb_peek(&sch->gso_skb);

	if (!skb) {
		/* The flag may be stale, see dualpi2_dequeue_peeked(). */
		q->dequeue_slow_flags &= ~DUALPI2_SLOW_PEEKED;
		skb = dualpi2_dequeue(sch);
		if (skb) {
			__skb_queue_head(&sch->gso_skb, skb);
			q->dequeue_slow_flags |= DUALPI2_SLOW_PEEKED;
			qdisc_qstats_backlog_inc(sch, skb);
			WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
		}
	}
	return skb;
}

static const struct dualpi2_attr_spec dualpi2_attr_specs[TCA_DUALPI2_MAX + 1] = {
	DUALPI2_ATTR_SPECS
};

static const struct dualpi2_attr_spec dualpi2_ext_attr_specs[TCA_DUALPI2_EXT_MAX + 1] = {
	DUALPI2_EXT_ATTR_SPECS
};

static const struct dualpi2_attr_table dualpi2_options = {
	.specs = dualpi2_attr_specs,
	.max = TCA_DUALPI2_MAX,
	.nest = TCA_DUALPI2_EXT,
	.nest_twice = "dualpi2: extension given twice",
	.unknown = "dualpi2: unknown attribute; update the module",
	.left_over = "dualpi2: bytes left over after the attributes",
};

static const struct dualpi2_attr_table dualpi2_extension = {
	.specs = dualpi2_ext_attr_specs,
	.max = TCA_DUALPI2_EXT_MAX,
	.unknown = "dualpi2: unknown attribute; update the module",
	.left_over = "dualpi2: bytes left over after the attributes",
};

static_assert(DUALPI2_FRAMING_RAW == (int)TC_DUALPI2_FRAMING_RAW &&
	      DUALPI2_FRAMING_NOATM == (int)TC_DUALPI2_FRAMING_NOATM &&
	      DUALPI2_FRAMING_ATM == (int)TC_DUALPI2_FRAMING_ATM &&
	      DUALPI2_FRAMING_PTM == (int)TC_DUALPI2_FRAMING_PTM);
static_assert(DUALPI2_QPROTECT_TUPLE == (int)TC_DUALPI2_QPROTECT_MODE_TUPLE &&
	      DUALPI2_QPROTECT_HASH == (int)TC_DUALPI2_QPROTECT_MODE_HASH);
static_assert(DUALPI2_SIGNAL_RANDOM == (int)TC_DUALPI2_SIGNAL_RANDOM);
static_assert(sizeof(struct dualpi2_config) <= U8_MAX);

/* Apply a request to a copy of the configuration. */
static int dualpi2_parse(struct nlattr *opt, struct dualpi2_config *cfg,
			 struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	u32 seen, ext_seen;
	int rem, err;

	err = dualpi2_parse_attrs(opt, &dualpi2_options, cfg, &seen, extack);
	if (err)
		return err;

	if ((seen & BIT(TCA_DUALPI2_STEP_THRESH_PKTS)) &&
	    (seen & BIT(TCA_DUALPI2_STEP_THRESH_US)))
		return dualpi2_reject(extack, opt,
				      "dualpi2: step_thresh must be a time or a number of packets, not both");
	if (seen & BIT(TCA_DUALPI2_STEP_THRESH_US))
		cfg->step_thresh_pkts = 0;
	if (seen & BIT(TCA_DUALPI2_LIMIT))
		cfg->limit_is_set = true;
	if (seen & BIT(TCA_DUALPI2_MEMORY_LIMIT))
		cfg->memory_limit_is_set = true;

	if (!(seen & BIT(TCA_DUALPI2_UNSPEC)))
		return 0;
	nla_for_each_nested(attr, opt, rem) {
		if (nla_type(attr) != TCA_DUALPI2_EXT)
			continue;
		err = dualpi2_parse_attrs(attr, &dualpi2_extension, cfg,
					  &ext_seen, extack);
		if (err)
			return err;
		if (ext_seen & BIT(TCA_DUALPI2_EXT_RAMP_US))
			cfg->ramp_is_set = true;
		/* overhead or mpu without a framing implies noatm. */
		if ((ext_seen & (BIT(TCA_DUALPI2_EXT_OVERHEAD) |
				 BIT(TCA_DUALPI2_EXT_MPU))) &&
		    !(ext_seen & BIT(TCA_DUALPI2_EXT_FRAMING)) &&
		    cfg->framing == DUALPI2_FRAMING_RAW)
			cfg->framing = DUALPI2_FRAMING_NOATM;
		if (cfg->framing == DUALPI2_FRAMING_RAW) {
			cfg->overhead_bytes = 0;
			cfg->mpu_bytes = 0;
		}
		if (cfg->bypass && cfg->bandwidth)
			return dualpi2_reject(extack, attr,
					      "dualpi2: bypass conflicts with bandwidth: the shaper must see every packet; use one of the two");
	}
	return 0;
}

/* Drop packets beyond the limits, oldest Classic packets first.  A packet that a
 * parent has peeked at, or that was requeued, stays.  Called with the tree locked.
 */
static void dualpi2_trim(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct sk_buff *head = NULL, *tail = NULL, *skb;
	unsigned int dropped = 0, dropped_bytes = 0;
	struct dualpi2_fifo *fifo;

	while (sch->q.qlen > q->limit_pkts ||
	       q->memory_used > q->memory_limit) {
		fifo = &q->fifo[DUALPI2_QUEUE_C];
		if (!fifo->list.head)
			fifo = &q->fifo[DUALPI2_QUEUE_L];
		if (!fifo->list.head)
			break;
		skb = dualpi2_dequeue_head(q, fifo);
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		dualpi2_backlog_dec(sch, skb);
		qdisc_qstats_drop(sch);
		dualpi2_account_drop(&fifo->stats, skb, DUALPI2_DROPPED_PURGE);
		if (tail)
			tail->next = skb;
		else
			head = skb;
		tail = skb;
	}
	if (!dropped)
		return;
	rtnl_kfree_skbs(head, tail);
	qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
}

/* Catch up on the PI updates of an idle qdisc, and return the time.  The work reports the
 * end of an overload.  Called with the tree locked.
 */
static u64 dualpi2_catch_up(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();

	if (!dualpi2_is_idle(sch) || !dualpi2_pi_is_due(&q->vars, now_ns))
		return now_ns;
	if (q->dequeue_slow_flags & DUALPI2_SLOW_MQ)
		dualpi2_mq_update(sch, now_ns);
	else
		dualpi2_pi_idle(&q->params, &q->vars, now_ns);
	return now_ns;
}

static int dualpi2_put_report(struct sk_buff *msg, struct Qdisc *sch,
			      enum dualpi2_report kind, u64 since_ns,
			      const struct dualpi2_overload_report *report)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	/* The root reports for children that share a rate. */
	u32 parent = q->mq && q->config.bandwidth ? TC_H_ROOT : sch->parent;
	void *head = genlmsg_put(msg, 0, 0, &dualpi2_genl_family, 0,
				 kind == DUALPI2_REPORT_BEGIN ?
				 DUALPI2_CMD_OVERLOAD_BEGIN :
				 DUALPI2_CMD_OVERLOAD_END);

	if (!head ||
	    nla_put_u32(msg, DUALPI2_A_IFINDEX, qdisc_dev(sch)->ifindex) ||
	    nla_put_u32(msg, DUALPI2_A_HANDLE,
			q->mq ? TC_H_MAJ(sch->parent) : sch->handle) ||
	    nla_put_u32(msg, DUALPI2_A_PARENT, parent) ||
	    nla_put_u64_64bit(msg, DUALPI2_A_START_NS, since_ns,
			      DUALPI2_A_PAD) ||
	    nla_put_u64_64bit(msg, DUALPI2_A_DURATION_NS, report->duration_ns,
			      DUALPI2_A_PAD) ||
	    nla_put_u32(msg, DUALPI2_A_COUNT,
			min_t(u64, report->count, U32_MAX)))
		return -EMSGSIZE;
	genlmsg_end(msg, head);
	return 0;
}

/* Send a report to all listeners.  It is lost if there is no memory. */
static void dualpi2_send_report(struct Qdisc *sch,
				enum dualpi2_report kind,
				const struct dualpi2_overload_report *report,
				u64 now_ns)
{
	u64 since_ns = ktime_get_real_ns() - (now_ns - report->since_ns);
	struct sk_buff *msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return;
	if (dualpi2_put_report(msg, sch, kind, since_ns, report)) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_multicast_netns(&dualpi2_genl_family, dev_net(qdisc_dev(sch)),
				msg, 0, 0, GFP_KERNEL);
}

/* Report overload, also the end of one because no more packets arrive.  destroy
 * waits for the work.
 */
static void dualpi2_report_work(struct work_struct *work)
{
	struct dualpi2_active *active =
		container_of(work, struct dualpi2_active, report_work.work);
	struct dualpi2_overload_report report;
	struct Qdisc *sch = active->sch;
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	enum dualpi2_report kind;
	spinlock_t *lock;	/* of the root qdisc */
	u64 now_ns, wait_ns;

	rcu_read_lock();
	lock = qdisc_lock(qdisc_root_sleeping(sch));
	spin_lock_bh(lock);
	/* If the root was replaced, @lock is not the one that reset is called with. */
	spin_lock(&q->report_lock);
	now_ns = dualpi2_catch_up(sch);
	kind = dualpi2_report_next(&q->params, &q->vars, now_ns, &report);
	if (kind != DUALPI2_REPORT_NONE)
		q->reports++;
	wait_ns = dualpi2_report_wait_ns(&q->params, &q->vars, now_ns);
	/* Under the lock, so that it does not undo dualpi2_kick_report(). */
	if (wait_ns)
		schedule_delayed_work(&active->report_work,
				      nsecs_to_jiffies(wait_ns) + 1);
	spin_unlock(&q->report_lock);
	spin_unlock_bh(lock);
	rcu_read_unlock();

	if (kind != DUALPI2_REPORT_NONE)
		dualpi2_send_report(sch, kind, &report, now_ns);
}

/* A new bucket width begins a new histogram. */
static void dualpi2_set_bucket_widths(struct dualpi2_sched_data *q)
{
	const u8 shift[DUALPI2_QUEUES] = {
		[DUALPI2_QUEUE_C] = dualpi2_hist_shift(q->config.hist_c_us),
		[DUALPI2_QUEUE_L] = dualpi2_hist_shift(q->config.hist_l_us),
	};
	int queue;

	for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
		struct dualpi2_queue_stats *stats = &q->fifo[queue].stats;

		if (stats->delay.shift == shift[queue])
			continue;
		dualpi2_delay_init(&stats->delay, shift[queue]);
	}
}

/* Some parents WARN about a child that has a backlog and returns no packet. */
static void dualpi2_warn_of_parent(const struct Qdisc *sch,
				   const struct dualpi2_config *cfg,
				   struct netlink_ext_ack *extack)
{
	const struct Qdisc *parent;

	rcu_read_lock();
	parent = cfg->bandwidth ? dualpi2_parent(sch) : NULL;
	if (parent && (!strcmp(parent->ops->id, "qfq") ||
		       !strcmp(parent->ops->id, "drr") ||
		       !strcmp(parent->ops->id, "hfsc")))
		NL_SET_ERR_MSG(extack,
			       "dualpi2: bandwidth in a child of qfq, drr or hfsc stalls other classes of the parent; set the rate in a parent, or use htb");
	rcu_read_unlock();
}

static void dualpi2_qprotect_set(struct dualpi2_sched_data *q)
{
	if (!q->config.qprotect)
		q->qprotect_state = DUALPI2_QPROTECT_IS_OFF;
	else if (q->qprotect_state == DUALPI2_QPROTECT_IS_OFF)
		q->qprotect_state = DUALPI2_QPROTECT_READY;
}

/* The packet that waits for the shaper may leave earlier now. */
static void dualpi2_wake(struct dualpi2_sched_data *q, u64 at_ns)
{
	if (hrtimer_is_queued(&q->watchdog.timer))
		qdisc_watchdog_schedule_ns(&q->watchdog, at_ns);
}

/* Put new options in force. */
static void dualpi2_apply(struct Qdisc *sch, const struct dualpi2_config *cfg)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_params params;
	u64 now_ns;

	dualpi2_params_init(&params, cfg);
	dualpi2_set_late(&params);
	/* The first child reports for all that share a rate. */
	if (cfg->bandwidth && q->mq && q->mq != q->mq->group->member)
		params.report_ns = 0;

	sch_tree_lock(sch);
	now_ns = dualpi2_catch_up(sch);
	dualpi2_report_change(&q->params, &params, &q->vars, now_ns);
	dualpi2_clock_change(&q->params.link, &params.link, &q->clock,
			     q->mtu_bytes, now_ns);
	if (params.link.ns_per_byte_q20)
		dualpi2_drain_pause(&q->drain, now_ns);
	/* Reservations of another rate lapse. */
	if (q->mq)
		dualpi2_mq_queue_reset(&q->mq->params, &q->mq->group->clock,
				       &q->mq->clock);
	q->config = *cfg;
	q->params = params;
	if (q->mq)
		dualpi2_mq_set_params(q);
	dualpi2_update_fast_path(q);
	dualpi2_set_bypass(sch);
	dualpi2_qprotect_set(q);
	dualpi2_refresh_limits(sch);
	dualpi2_set_bucket_widths(q);
	dualpi2_vars_derive(&q->params, &q->vars, now_ns);
	dualpi2_adapt_ramp(q);
	dualpi2_qprotect_refresh(q);
	dualpi2_kick_report(q);
	dualpi2_trim(sch);
	if (q->dequeue_slow_flags & DUALPI2_SLOW_MQ)
		dualpi2_mq_publish(sch);
	if (!sch->q.qlen)
		q->vars.credit = q->vars.credit_start;
	dualpi2_wake(q, q->clock.next_ns);
	sch_tree_unlock(sch);
}

static int dualpi2_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_config cfg = q->config;
	int err;

	err = dualpi2_parse(opt, &cfg, extack);
	if (err)
		return err;
	dualpi2_apply(sch, &cfg);
	dualpi2_warn_of_parent(sch, &cfg, extack);
	return 0;
}

static int dualpi2_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	int err;

	/* Before anything that can fail, because destroy is called then. */
	spin_lock_init(&q->report_lock);
	dualpi2_compat_init(sch);
	qdisc_watchdog_init(&q->watchdog, sch);
	dualpi2_config_init(&q->config);
	prandom_seed_state(&q->rnd, get_random_u32());
	if (opt) {
		err = dualpi2_parse(opt, &q->config, extack);
		if (err)
			return err;
		dualpi2_warn_of_parent(sch, &q->config, extack);
	}
	dualpi2_params_init(&q->params, &q->config);
	dualpi2_set_late(&q->params);
	dualpi2_update_fast_path(q);
	dualpi2_set_bypass(sch);
	dualpi2_qprotect_set(q);
	dualpi2_refresh_limits(sch);
	dualpi2_set_bucket_widths(q);
	dualpi2_vars_init(&q->params, &q->vars, q->mtu_bytes, ktime_get_ns());
	dualpi2_qprotect_refresh(q);
	return 0;
}

static void dualpi2_mq_member_reset(struct dualpi2_mq_member *mq)
{
	int queue;

	dualpi2_mq_queue_reset(&mq->params, &mq->group->clock, &mq->clock);
	for (queue = 0; queue < DUALPI2_QUEUES; queue++)
		WRITE_ONCE(mq->bytes[queue], 0);
	WRITE_ONCE(mq->pkts, 0);
	WRITE_ONCE(mq->memory, 0);
}

/* Empty the queues and reset the state; counters continue.  The core purges a packet
 * that a parent has peeked at.
 */
static void dualpi2_reset(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	bool overload;
	int queue;

	for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
		struct dualpi2_fifo *fifo = &q->fifo[queue];
		struct sk_buff *skb;

		for (skb = fifo->list.head; skb; skb = skb->next)
			dualpi2_account_drop(&fifo->stats, skb,
					     DUALPI2_DROPPED_PURGE);
		if (fifo->list.head)
			rtnl_kfree_skbs(fifo->list.head, fifo->list.tail);
		fifo->list = (struct qdisc_skb_head) {};
		fifo->bytes_out = fifo->bytes_in;
	}
	qdisc_watchdog_cancel(&q->watchdog);
	if (q->mq)
		dualpi2_mq_member_reset(q->mq);
	q->dequeue_slow_flags &= ~DUALPI2_SLOW_PEEKED;
	q->memory_used = 0;
	q->nqb_bytes = 0;
	q->clock = (struct dualpi2_clock) {};
	q->drain = (struct dualpi2_drain) {};
	q->burst = (struct dualpi2_burst) {};
	if (q->qprotect) {
		memset(q->qprotect->buckets, 0, sizeof(q->qprotect->buckets));
		q->qprotect->redirecting = false;
	}
	if (q->qprotect_state != DUALPI2_QPROTECT_IS_OFF)
		q->qprotect_state = DUALPI2_QPROTECT_READY;
	/* __qdisc_destroy() calls reset without the root's lock. */
	spin_lock_bh(&q->report_lock);
	dualpi2_refresh_limits(sch);
	overload = q->vars.overload;
	dualpi2_vars_init(&q->params, &q->vars, q->mtu_bytes, ktime_get_ns());
	dualpi2_qprotect_refresh(q);
	spin_unlock_bh(&q->report_lock);
	if (overload)
		dualpi2_kick_report(q);
}

static noinline void dualpi2_mq_group_put(struct dualpi2_mq_group *group)
{
	if (!--group->users)
		kfree_rcu(group, rcu);
}

static void dualpi2_destroy(struct Qdisc *sch)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct dualpi2_overload_report report;
	enum dualpi2_report kind;
	u64 now_ns;

	qdisc_watchdog_cancel(&q->watchdog);
	/* From now on no other child starts the work. */
	if (q->mq) {
		spin_lock_bh(&q->mq->group->lock);
		q->mq->child = NULL;
		spin_unlock_bh(&q->mq->group->lock);
	}
	if (q->active)
		cancel_delayed_work_sync(&q->active->report_work);
	/* Listeners that saw DUALPI2_CMD_OVERLOAD_BEGIN must see its end: ignore
	 * the time between reports.
	 */
	q->vars.report.next_ns = 0;
	now_ns = ktime_get_ns();
	kind = dualpi2_report_next(&q->params, &q->vars, now_ns, &report);
	if (kind != DUALPI2_REPORT_NONE)
		dualpi2_send_report(sch, kind, &report, now_ns);
	tcf_block_put(q->block);
	if (q->active)
		kmem_cache_free(dualpi2_active_cache, q->active);
	if (q->qprotect)
		kfree(q->qprotect->flows);
	kfree(q->qprotect);
	if (q->mq)
		dualpi2_mq_group_put(q->mq->group);
}

/* Dump options.  Limits and ramp as in force, not as configured. */
static int dualpi2_put_options(struct sk_buff *skb, struct dualpi2_config cfg,
			       u32 limit_pkts, u32 memory_limit)
{
	struct nlattr *opts, *ext;

	cfg.limit_pkts = limit_pkts;
	cfg.memory_limit_bytes = memory_limit;
	cfg.ramp_us = dualpi2_ramp_us(&cfg);

	opts = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;
	if (dualpi2_put_attrs(skb, &dualpi2_options, &cfg,
			      cfg.step_thresh_pkts ?
			      TCA_DUALPI2_STEP_THRESH_US :
			      TCA_DUALPI2_STEP_THRESH_PKTS))
		goto too_long;
	ext = nla_nest_start(skb, TCA_DUALPI2_EXT);
	if (!ext || dualpi2_put_attrs(skb, &dualpi2_extension, &cfg, 0))
		goto too_long;
	nla_nest_end(skb, ext);
	return nla_nest_end(skb, opts);

too_long:
	nla_nest_cancel(skb, opts);
	return -EMSGSIZE;
}

static int dualpi2_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);

	return dualpi2_put_options(skb, q->config, READ_ONCE(q->limit_pkts),
				   READ_ONCE(q->memory_limit));
}

static u64 dualpi2_dropped(const struct dualpi2_queue_stats *stats,
			   enum dualpi2_drop cause)
{
	return stats->dropped[cause][0] + stats->dropped[cause][1];
}

/* Counters as reported; some are computed from others. */
static void dualpi2_counters(const struct dualpi2_sched_data *q,
			     enum dualpi2_queue queue,
			     struct tc_dualpi2_counters *c)
{
	const struct dualpi2_fifo *fifo = &q->fifo[queue];
	const struct dualpi2_queue_stats *stats = &fifo->stats;
	const u64 *bytes = stats->dropped_bytes;
	const u64 (*d)[2] = stats->dropped;

	*c = (struct tc_dualpi2_counters) {
		.arrived_not_ect = stats->arrived[DUALPI2_ECN_NOT_ECT],
		.arrived_ect1 = stats->arrived[DUALPI2_ECN_ECT1],
		.arrived_ect0 = stats->arrived[DUALPI2_ECN_ECT0],
		.arrived_ce = stats->arrived[DUALPI2_ECN_CE],
		.forwarded = stats->delay.not_shown +
			     dualpi2_delay_count(&stats->delay),
		.queued = fifo->list.qlen,
		.queued_bytes = dualpi2_fifo_bytes(fifo),
		.marked_classic = stats->marked[DUALPI2_MARK_CLASSIC],
		.marked_coupled = stats->marked[DUALPI2_MARK_COUPLED],
		.marked_native = stats->marked[DUALPI2_MARK_NATIVE],
		.not_ect_dropped_limit = d[DUALPI2_DROPPED_LIMIT][0],
		.not_ect_dropped_memory = d[DUALPI2_DROPPED_MEMORY][0],
		.not_ect_dropped_early = d[DUALPI2_DROPPED_EARLY][0],
		.not_ect_dropped_aqm = d[DUALPI2_DROPPED_AQM][0],
		.not_ect_dropped_overload = d[DUALPI2_DROPPED_OVERLOAD][0],
		.not_ect_dropped_purge = d[DUALPI2_DROPPED_PURGE][0],
		.ect_dropped_limit = d[DUALPI2_DROPPED_LIMIT][1],
		.ect_dropped_memory = d[DUALPI2_DROPPED_MEMORY][1],
		.ect_dropped_early = d[DUALPI2_DROPPED_EARLY][1],
		.ect_dropped_aqm = d[DUALPI2_DROPPED_AQM][1],
		.ect_dropped_overload = d[DUALPI2_DROPPED_OVERLOAD][1],
		.ect_dropped_purge = d[DUALPI2_DROPPED_PURGE][1],
		.dropped_aqm_bytes = bytes[DUALPI2_DROPPED_AQM] +
				     bytes[DUALPI2_DROPPED_OVERLOAD],
		.dropped_purge_bytes = bytes[DUALPI2_DROPPED_PURGE],
	};
	c->forwarded_bytes = fifo->bytes_out - c->dropped_aqm_bytes -
			     c->dropped_purge_bytes;
	c->presented = c->forwarded +
		       dualpi2_dropped(stats, DUALPI2_DROPPED_EARLY) +
		       dualpi2_dropped(stats, DUALPI2_DROPPED_AQM) +
		       dualpi2_dropped(stats, DUALPI2_DROPPED_OVERLOAD);
	c->presented_bytes = c->forwarded_bytes + c->dropped_aqm_bytes +
			     bytes[DUALPI2_DROPPED_EARLY];
	c->arrived_bytes = dualpi2_arrived_bytes(fifo);
	c->dropped_arrival_bytes = c->arrived_bytes - fifo->bytes_in;
}

/* Packets ever queued: those that arrived and were not dropped then. */
static u32 dualpi2_enqueued(const struct dualpi2_queue_stats *stats)
{
	return dualpi2_arrived(stats) -
	       dualpi2_dropped(stats, DUALPI2_DROPPED_LIMIT) -
	       dualpi2_dropped(stats, DUALPI2_DROPPED_MEMORY) -
	       dualpi2_dropped(stats, DUALPI2_DROPPED_EARLY);
}

static u32 dualpi2_marks(const struct dualpi2_queue_stats *stats)
{
	return stats->marked[DUALPI2_MARK_CLASSIC] +
	       stats->marked[DUALPI2_MARK_COUPLED] +
	       stats->marked[DUALPI2_MARK_NATIVE];
}

/* The structs before the attributes, at fixed offsets. */
static void dualpi2_xstats(const struct dualpi2_sched_data *q,
			   const u64 *head_age_ns, struct tc_dualpi2_xstats *x,
			   struct tc_dualpi2_ext_xstats *ext)
{
	const struct dualpi2_fifo *c = &q->fifo[DUALPI2_QUEUE_C];
	const struct dualpi2_fifo *l = &q->fifo[DUALPI2_QUEUE_L];

	*ext = (struct tc_dualpi2_ext_xstats) {
		.magic = TC_DUALPI2_EXT_XSTATS_MAGIC,
		.size = sizeof(*ext),
		.unparsed = q->unparsed,
		.filter_dropped = q->filter_dropped,
		.gso_failed = q->gso_failed,
		.mark_failed = q->mark_failed,
		.prob_c = dualpi2_q32_to_u32(q->vars.classic_q32),
		.prob_cl = dualpi2_q32_to_u32(q->vars.coupled_q32),
	};
	*x = (struct tc_dualpi2_xstats) {
		.prob = dualpi2_q32_to_u32(q->vars.base_q32),
		.delay_c = dualpi2_ns_to_us(head_age_ns[DUALPI2_QUEUE_C]),
		.delay_l = dualpi2_ns_to_us(head_age_ns[DUALPI2_QUEUE_L]),
		.packets_in_c = dualpi2_enqueued(&c->stats),
		.packets_in_l = dualpi2_enqueued(&l->stats),
		.maxq = q->max_pkts,
		.ecn_mark = dualpi2_marks(&c->stats) + dualpi2_marks(&l->stats),
		.step_marks = l->stats.marked[DUALPI2_MARK_NATIVE],
		.credit = q->vars.credit,
		.memory_used = q->memory_used,
		.max_memory_used = q->max_memory_used,
		.memory_limit = q->memory_limit,
	};
}

static int dualpi2_put_xstats(struct sk_buff *skb,
			      const struct dualpi2_sched_data *q,
			      const u64 *head_age_ns)
{
	struct tc_dualpi2_ext_xstats ext;
	struct tc_dualpi2_xstats x;
	char *to;

	to = nla_reserve_nohdr(skb, TC_DUALPI2_EXT_XSTATS_OFFSET + sizeof(ext));
	if (!to)
		return -EMSGSIZE;
	dualpi2_xstats(q, head_age_ns, &x, &ext);
	memset(to, 0, TC_DUALPI2_EXT_XSTATS_OFFSET);
	memcpy(to, &x, sizeof(x));
	memcpy(to + TC_DUALPI2_EXT_XSTATS_OFFSET, &ext, sizeof(ext));
	return 0;
}

static int dualpi2_put_hist(struct sk_buff *skb, const struct dualpi2_delay *d)
{
	u32 buckets = DUALPI2_HIST_BUCKETS, i;
	struct nlattr *attr;

	while (buckets && !dualpi2_delay_bucket(d, buckets - 1))
		buckets--;
	attr = nla_reserve(skb, TCA_DUALPI2_QUEUE_HIST, buckets * sizeof(u64));
	if (!attr)
		return -EMSGSIZE;
	for (i = 0; i < buckets; i++) {
		u64 packets = dualpi2_delay_bucket(d, i);

		/* The attribute is not always aligned. */
		memcpy(nla_data(attr) + i * sizeof(packets), &packets,
		       sizeof(packets));
	}
	return 0;
}

static int dualpi2_put_queue(struct sk_buff *skb,
			     const struct dualpi2_sched_data *q,
			     enum dualpi2_queue queue)
{
	const struct dualpi2_delay *d = &q->fifo[queue].stats.delay;
	const struct tc_dualpi2_delay delay = {
		.sum_ns = d->sum_ns,
		.max_ns = d->max_ns,
		.beyond = d->beyond,
		.unit_ns = 1U << d->shift,
		.buckets = DUALPI2_HIST_BUCKETS,
		.generation = d->generation,
	};
	struct tc_dualpi2_counters counters;
	struct nlattr *nest;

	nest = nla_nest_start(skb, queue == DUALPI2_QUEUE_C ?
				   TCA_DUALPI2_STATS_C : TCA_DUALPI2_STATS_L);
	if (!nest)
		return -EMSGSIZE;
	dualpi2_counters(q, queue, &counters);
	if (nla_put(skb, TCA_DUALPI2_QUEUE_COUNTERS, sizeof(counters),
		    &counters) ||
	    nla_put(skb, TCA_DUALPI2_QUEUE_DELAY, sizeof(delay), &delay))
		return -EMSGSIZE;
	/* The notification of a replacement carries RTM_DELQDISC and RTM_NEWQDISC
	 * in one page: leave the histogram out.
	 */
	if (nlmsg_hdr(skb)->nlmsg_type != RTM_DELQDISC &&
	    dualpi2_put_hist(skb, d))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Out of line: dumps of a qdisc and of all children of dualpi2_mq share its branches. */
static noinline u64 dualpi2_time_in_overload(const struct dualpi2_vars *v,
					     u64 now_ns)
{
	return dualpi2_overload_ns(v, now_ns);
}

static int dualpi2_put_overload(struct sk_buff *skb,
				const struct dualpi2_sched_data *q, u64 now_ns)
{
	const struct dualpi2_vars *v = &q->vars;
	const struct tc_dualpi2_overload overload = {
		.count = v->overload_count,
		.total_ns = dualpi2_time_in_overload(v, now_ns),
		.start_ns = v->overload_count ?
			    ktime_get_real_ns() -
			    (now_ns - v->overload_since_ns) : 0,
		.duration_ns = v->overload ?
			       dualpi2_overload_present_ns(v, now_ns) :
			       v->overload_last_ns,
		.reports = q->reports,
		.now = v->overload,
	};

	return nla_put(skb, TCA_DUALPI2_STATS_OVERLOAD, sizeof(overload),
		       &overload);
}

static int dualpi2_put_link(struct sk_buff *skb,
			    const struct dualpi2_sched_data *q)
{
	const struct tc_dualpi2_link link = {
		.drain_rate = q->config.bandwidth ?:
			      dualpi2_rate(q->drain.ns_per_byte_q20),
		.throttled = q->throttled,
		.nqb_arrived = q->nqb_arrived,
		.nqb_dropped = q->nqb_dropped,
		.burst_ns = q->burst.burst_ns,
		.ramp_min_ns = q->vars.ramp.min_ns,
		.ramp_max_ns = q->vars.ramp.max_ns,
		.limit_pkts = q->limit_pkts,
		.nqb_limit_bytes = q->nqb_limit_bytes,
		.target_ns = q->vars.target_ns,
	};

	return nla_put(skb, TCA_DUALPI2_STATS_LINK, sizeof(link), &link);
}

/* Add the statistics of queue protection to @st. */
static void dualpi2_add_qprotect(const struct dualpi2_sched_data *q, u64 now_ns,
				 struct tc_dualpi2_qprotect *st)
{
	const struct dualpi2_qprotect *qp = q->qprotect;
	struct dualpi2_qprotect_use use;

	st->alloc_failed += q->qprotect_alloc_failed;
	if (!qp)
		return;
	use = dualpi2_qprotect_use(&q->qprotect_params, qp->buckets,
				   q->fifo[DUALPI2_QUEUE_C].bytes_out, now_ns);
	st->redirected += qp->redirected;
	st->redirected_bytes += qp->redirected_bytes;
	st->sanctions += qp->sanctions;
	st->scored += qp->scored;
	st->scored_shared += qp->scored_shared;
	st->sanctioned += use.redirected;
	st->buckets_used += use.used;
	st->buckets += DUALPI2_QPROTECT_BUCKETS;
	st->score_max_us = max(st->score_max_us,
			       dualpi2_ns_to_us(use.score_max_ns));
}

static int dualpi2_put_qprotect(struct sk_buff *skb,
				const struct dualpi2_sched_data *q,
				const struct tc_dualpi2_qprotect *st)
{
	return q->config.qprotect ?
	       nla_put(skb, TCA_DUALPI2_STATS_QPROTECT, sizeof(*st), st) : 0;
}

static int dualpi2_put_flow(struct sk_buff *skb,
			    const struct dualpi2_sched_data *q, int type, u32 i,
			    u64 now_ns)
{
	const struct dualpi2_qprotect *qp = q->qprotect;
	const struct dualpi2_qprotect_bucket *b = &qp->buckets[i];
	struct tc_dualpi2_qprotect_flow flow = {};

	if (i == DUALPI2_QPROTECT_FLOWS) {
		flow.shared = 1;
	} else {
		/* An earlier flow of this bucket had another hash. */
		if (q->config.qprotect == DUALPI2_QPROTECT_TUPLE && qp->flows &&
		    qp->flows[i].hash == b->hash)
			flow = qp->flows[i];
		flow.hash = b->hash;
	}
	flow.score_us = dualpi2_ns_to_us(dualpi2_qprotect_score_ns(b, now_ns));
	flow.redirected = b->redirected;
	flow.sanctioned = !!b->c_end;
	return nla_put(skb, type, sizeof(flow), &flow);
}

/* The flows with the highest scores; those that are redirected without a score last. */
static int dualpi2_put_flows(struct sk_buff *skb,
			     const struct dualpi2_sched_data *q, u64 now_ns)
{
	u64 c_out = q->fifo[DUALPI2_QUEUE_C].bytes_out, done = 0;
	const struct dualpi2_qprotect_bucket *b;
	struct nlattr *nest;
	u32 i, worst;
	int type;

	if (!q->config.qprotect || !q->qprotect)
		return 0;
	b = q->qprotect->buckets;
	nest = nla_nest_start(skb, TCA_DUALPI2_STATS_QPROTECT_FLOWS);
	if (!nest)
		return -EMSGSIZE;
	for (type = 1; type <= DUALPI2_QPROTECT_LISTED; type++) {
		worst = DUALPI2_QPROTECT_BUCKETS;
		for (i = 0; i < DUALPI2_QPROTECT_BUCKETS; i++)
			if (!(done & BIT_ULL(i)) &&
			    !dualpi2_qprotect_is_free(&q->qprotect_params,
						      &b[i], c_out, now_ns) &&
			    (worst == DUALPI2_QPROTECT_BUCKETS ||
			     b[i].expiry_ns > b[worst].expiry_ns))
				worst = i;
		if (worst == DUALPI2_QPROTECT_BUCKETS)
			break;
		done |= BIT_ULL(worst);
		if (dualpi2_put_flow(skb, q, type, worst, now_ns))
			return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* What the statistics have besides the state of an instance. */
struct dualpi2_sums {
	struct tc_dualpi2_qprotect qprotect;
	u64 head_age_ns[DUALPI2_QUEUES];
};

/* Add what one instance has; called with the tree locked.  Returns the time. */
static u64 dualpi2_add_sums(struct Qdisc *sch, struct dualpi2_sums *sums)
{
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	u64 now_ns = dualpi2_catch_up(sch);
	int queue;

	dualpi2_add_qprotect(q, now_ns, &sums->qprotect);
	for (queue = 0; queue < DUALPI2_QUEUES; queue++)
		sums->head_age_ns[queue] =
			max(sums->head_age_ns[queue],
			    dualpi2_head_age_ns(&q->fifo[queue], now_ns));
	return now_ns;
}

/* gnet_stats_copy_app() would put all of this into TCA_XSTATS too, and a message
 * that has it twice would exceed a page.
 */
static int dualpi2_put_stats(struct gnet_dump *d,
			     const struct dualpi2_sched_data *q,
			     const struct dualpi2_sums *sums, u64 now_ns)
{
	struct nlattr *app = nla_nest_start_noflag(d->skb, TCA_STATS_APP);

	/* The caller cancels a message that is too long. */
	if (!app || dualpi2_put_xstats(d->skb, q, sums->head_age_ns) ||
	    dualpi2_put_queue(d->skb, q, DUALPI2_QUEUE_C) ||
	    dualpi2_put_queue(d->skb, q, DUALPI2_QUEUE_L) ||
	    dualpi2_put_overload(d->skb, q, now_ns) ||
	    dualpi2_put_link(d->skb, q) ||
	    dualpi2_put_qprotect(d->skb, q, &sums->qprotect))
		return -1;
	nla_nest_end(d->skb, app);
	return 0;
}

static int dualpi2_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct dualpi2_sums sums = {};
	u64 now_ns;
	int err;

	/* Locked, so that the counters are consistent. */
	sch_tree_lock(sch);
	now_ns = dualpi2_add_sums(sch, &sums);
	err = dualpi2_put_stats(d, qdisc_priv(sch), &sums, now_ns);
	sch_tree_unlock(sch);
	return err;
}

/* The classes are targets for filters and skb->priority; two of them have statistics.
 * Users cannot add or change classes or attach qdiscs to them.
 */
static struct Qdisc *dualpi2_leaf(struct Qdisc *sch, unsigned long arg)
{
	return NULL;
}

static unsigned long dualpi2_find(struct Qdisc *sch, u32 classid)
{
	return 0;
}

static unsigned long dualpi2_bind_filter(struct Qdisc *sch,
					 unsigned long parent, u32 classid)
{
	return 0;
}

static void dualpi2_unbind_filter(struct Qdisc *sch, unsigned long cl)
{
}

/* Most instances never have a filter, and a block is larger than a small qdisc, so the
 * first request about filters allocates it.  A dump has no extack and allocates none.
 */
static struct tcf_block *dualpi2_tcf_block(struct Qdisc *sch, unsigned long cl,
					   struct netlink_ext_ack *extack)
{
	struct dualpi2_sched_data *q = qdisc_priv(sch);

	if (cl)
		return NULL;
	if (!q->block && extack &&
	    tcf_block_get(&q->block, &q->filter_list, sch, extack))
		return NULL;
	return q->block;
}

static int dualpi2_dump_class(struct Qdisc *sch, unsigned long cl,
			      struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(cl);
	return 0;
}

static int dualpi2_dump_class_stats(struct Qdisc *sch, unsigned long cl,
				    struct gnet_dump *d)
{
	enum dualpi2_queue queue = cl == DUALPI2_CLASS_L4S ? DUALPI2_QUEUE_L :
							     DUALPI2_QUEUE_C;
	const struct dualpi2_sched_data *q = qdisc_priv(sch);
	struct tc_dualpi2_counters counters;
	struct dualpi2_sums sums = {};
	struct gnet_stats_queue qs = {};
	struct nlattr *app;
	int cause, err;
	u64 now_ns;

	sch_tree_lock(sch);
	now_ns = dualpi2_add_sums(sch, &sums);
	dualpi2_counters(q, queue, &counters);
	qs.backlog = counters.queued_bytes;
	for (cause = 0; cause < DUALPI2_DROPS; cause++)
		qs.drops += dualpi2_dropped(&q->fifo[queue].stats, cause);
	err = dualpi2_compat_copy_basic(d, counters.forwarded_bytes,
					counters.forwarded) < 0 ||
	      gnet_stats_copy_queue(d, NULL, &qs, counters.queued) < 0;
	app = err ? NULL : nla_nest_start_noflag(d->skb, TCA_STATS_APP);
	err = !app || dualpi2_put_xstats(d->skb, q, sums.head_age_ns) ||
	      dualpi2_put_queue(d->skb, q, queue) ||
	      (queue == DUALPI2_QUEUE_L &&
	       (dualpi2_put_qprotect(d->skb, q, &sums.qprotect) ||
		dualpi2_put_flows(d->skb, q, now_ns)));
	sch_tree_unlock(sch);
	if (err)
		return -1;
	nla_nest_end(d->skb, app);
	return 0;
}

/* Each queue once, as the class that it is. */
static void dualpi2_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	static const unsigned long classes[] = {
		DUALPI2_CLASS_L4S, DUALPI2_CLASS_CLASSIC,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(classes) && !arg->stop; i++) {
		if (arg->count >= arg->skip &&
		    arg->fn(sch, classes[i], arg) < 0) {
			arg->stop = 1;
			break;
		}
		arg->count++;
	}
}

static const struct Qdisc_class_ops dualpi2_class_ops = {
	.leaf		= dualpi2_leaf,
	.find		= dualpi2_find,
	.tcf_block	= dualpi2_tcf_block,
	.bind_tcf	= dualpi2_bind_filter,
	.unbind_tcf	= dualpi2_unbind_filter,
	.walk		= dualpi2_walk,
	.dump		= dualpi2_dump_class,
	.dump_stats	= dualpi2_dump_class_stats,
};

static struct Qdisc_ops dualpi2_qdisc_ops __read_mostly = {
	.id		= "dualpi2",
	.cl_ops		= &dualpi2_class_ops,
	.priv_size	= sizeof(struct dualpi2_sched_data),
	.enqueue	= dualpi2_enqueue,
	.dequeue	= dualpi2_dequeue,
	.peek		= dualpi2_peek,
	.init		= dualpi2_init,
	.reset		= dualpi2_reset,
	.destroy	= dualpi2_destroy,
	.change		= dualpi2_change,
	.dump		= dualpi2_dump,
	.dump_stats	= dualpi2_dump_stats,
	.owner		= THIS_MODULE,
};

#include <qdisc/mq.h>

static int __init dualpi2_module_init(void)
{
	int err;

	dualpi2_active_cache = KMEM_CACHE(dualpi2_active, SLAB_HWCACHE_ALIGN);
	if (!dualpi2_active_cache)
		return -ENOMEM;
	err = genl_register_family(&dualpi2_genl_family);
	if (!err) {
		err = register_qdisc(&dualpi2_qdisc_ops);
		if (!err) {
			err = register_qdisc(&dualpi2_mq_qdisc_ops);
			if (!err)
				return 0;
			unregister_qdisc(&dualpi2_qdisc_ops);
		}
		genl_unregister_family(&dualpi2_genl_family);
	}
	kmem_cache_destroy(dualpi2_active_cache);
#ifndef DUALPI2_KERNEL_TREE
	/* For modprobe EEXIST means success: this module is already loaded. */
	if (err == -EEXIST) {
		pr_err("the kernel has a dualpi2 already: remove its module (modprobe -r); one that is built in cannot be replaced\n");
		return -EBUSY;
	}
#endif
	return err;
}

static void __exit dualpi2_module_exit(void)
{
	unregister_qdisc(&dualpi2_mq_qdisc_ops);
	unregister_qdisc(&dualpi2_qdisc_ops);
	genl_unregister_family(&dualpi2_genl_family);
	kmem_cache_destroy(dualpi2_active_cache);
}

module_init(dualpi2_module_init)
module_exit(dualpi2_module_exit)

MODULE_ALIAS_NET_SCH("dualpi2");
MODULE_ALIAS_NET_SCH("dualpi2_mq");
MODULE_ALIAS("sch_dualpi2");
MODULE_ALIAS("sch_dualpi2_mq");
MODULE_AUTHOR("The dualpi2 authors");
MODULE_DESCRIPTION("Dual Queue Coupled AQM for L4S and Classic traffic (RFC 9332)");
MODULE_LICENSE("GPL");
MODULE_VERSION(DUALPI2_VERSION);
