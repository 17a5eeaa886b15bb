// SPDX-License-Identifier: GPL-2.0-only
/*
 * ppv: per packet values.  Measures the rate of each flow over a short time and
 * gives each packet a value by a throughput-value function, for csaqm, vdq_csaqm or
 * whatever looks at values, here or on another node.  Experimental.
 *
 * It is not a queue: there is one qdisc below it, whatever class it was put into, and
 * that is where packets wait.  The classes are the functions.  GSO packets are split,
 * for each packet gets a value of its own.
 *
 * The formulas are in packet_value.h.
 *
 * Locking: enqueue, dequeue and peek run under the root qdisc's lock, change and graft
 * take it; functions are replaced, never changed, under it.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include "ppv_uapi.h"
#include "packet_value.h"
#include <qdisc/attr.h>
#include <qdisc/packet.h>
#include "gso.h"
#include "value.h"
#include <compat/compat.h>

struct ppv_config {
	u32 number;	/* of the function for packets without a class */
	u32 window_us;
	u8 carry;
};

struct ppv_sched_data {
	struct tcf_proto __rcu *filter_list;
	struct Qdisc *child;
	struct ppv_flow *flows;
	struct ppv_flow *flow;		/* of the packet in ppv_enqueue() */
	const struct ppv_tvf *function;	/* of that packet, too */
	struct ppv_window window;
	struct rnd_state rnd;
	siphash_key_t key;
	struct ppv_config config;
	struct tc_ppv_xstats stats;
	struct tcf_block *block;
	struct ppv_tvf tvf[PPV_TVFS + 1];
};

/* What skb->priority or a filter says of a packet.
 *
 * Return: number of a function, or -1 if a filter disposed of it; *ret is then what
 * enqueue returns.
 */
static int ppv_classify(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free, int *ret)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	u32 number = q->config.number, classid;
	struct tcf_proto *filters;
	int found;

	/* Qdiscs that the core attaches by itself have no handle. */
	if (sch->handle && TC_H_MAJ(skb->priority) == sch->handle &&
	    TC_H_MIN(skb->priority) >= 1 &&
	    TC_H_MIN(skb->priority) <= PPV_TVFS)
		return TC_H_MIN(skb->priority);

	filters = rcu_dereference_bh(q->filter_list);
	if (!filters)
		return number;
	found = dualpi2_filter(skb, filters, &classid, ret);
	if (found < 0) {
		if (*ret & __NET_XMIT_BYPASS) {
			q->stats.filter_dropped++;
			qdisc_qstats_drop(sch);
		}
		if (found == -1)
			__qdisc_drop(skb, to_free);
		return -1;
	}
	if (found && TC_H_MIN(classid) >= 1 && TC_H_MIN(classid) <= PPV_TVFS)
		return TC_H_MIN(classid);
	return number;
}

/* Hand on a packet of q->flow.  Its control block says whether and where IP is, and is
 * the next one's from here on.
 */
static int ppv_pass_on(struct sk_buff *skb, struct Qdisc *sch, u64 now_ns,
		       struct sk_buff **to_free)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	const struct ppv_tvf *tvf = q->function;
	unsigned int len = qdisc_pkt_len(skb);
	u64 rate;
	int ret;

	rate = ppv_flow_add(q->flow, &q->window, len, now_ns);
	if (tvf->count &&
	    ppv_write(skb, dualpi2_cb(skb)->priv, q->config.carry,
		      ppv_pick(tvf, rate, prandom_u32_state(&q->rnd)))) {
		q->stats.valued++;
	} else {
		q->stats.not_valued++;
		q->stats.no_function += !tvf->count;
	}

	ret = qdisc_enqueue(skb, q->child, to_free);
	if (likely(ret == NET_XMIT_SUCCESS)) {
		WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
		sch->qstats.backlog += len;
	} else if (net_xmit_drop_count(ret)) {
		q->stats.child_dropped++;
		qdisc_qstats_drop(sch);
	}
	return ret;
}

static int ppv_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	struct dualpi2_cb cb = {};
	enum ppv_found found;
	bool is_ip = true;
	int number, ret = NET_XMIT_SUCCESS;

	number = ppv_classify(skb, sch, to_free, &ret);
	if (number < 0)
		return ret;
	q->function = &q->tvf[number];

	/* A filter's action may have changed the packet, so look afterwards. */
	if (unlikely(dualpi2_linear_dsfield(skb) < 0))
		is_ip = dualpi2_read_dsfield(skb, &cb) >= 0;
	cb.priv = is_ip;
	*dualpi2_cb(skb) = cb;
	q->flow = ppv_flow_find(q->flows, skb_get_hash_perturb(skb, &q->key),
				&q->window, now_ns, &found);
	if (found != PPV_FLOW_KNOWN) {
		q->stats.flows_new++;
		q->stats.flows_evicted += found == PPV_FLOW_EVICTED;
	}
	if (skb_is_gso(skb))
		return extra_enqueue_gso(skb, sch, now_ns, to_free, ppv_pass_on,
					 &q->stats.gso_failed);
	return ppv_pass_on(skb, sch, now_ns, to_free);
}

static struct sk_buff *ppv_dequeue(struct Qdisc *sch)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_dequeue_peeked(q->child);

	if (!skb)
		return NULL;
	qdisc_bstats_update(sch, skb);
	dualpi2_backlog_dec(sch, skb);
	return skb;
}

static struct sk_buff *ppv_peek(struct Qdisc *sch)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	return q->child->ops->peek(q->child);
}

#define PPV_KNOB(...)							\
	DUALPI2_ATTR_SPEC("ppv", struct ppv_config, false, __VA_ARGS__)

static const struct dualpi2_attr_spec ppv_knobs[TCA_PPV_MAX + 1] = {
	[TCA_PPV_DEFAULT] = PPV_KNOB(number, 1, PPV_TVFS, "default", "1 to 16"),
	[TCA_PPV_WINDOW] =
		PPV_KNOB(window_us, PPV_WINDOW_US_MIN, PPV_WINDOW_US_MAX,
			 "window", "1000 us to 1000000 us"),
	[TCA_PPV_CARRY] = PPV_KNOB(carry, 0, TC_PPV_CARRY_MAX, "carry",
				   "0 (mark) or 1 (ipv4_id)"),
};

static_assert(PPV_TVFS == 16 && PPV_TVFS == TC_PPV_TVFS);
static_assert(PPV_POINTS_MAX == 32 && PPV_POINTS_MAX == TC_PPV_POINTS);
static_assert(PPV_WINDOW_US_MIN == 1000 && PPV_WINDOW_US_MAX == 1000000);
static_assert(PPV_RATE_MAX == 125000000000ULL);

static const char *ppv_fault_text(enum ppv_fault fault)
{
	switch (fault) {
	case PPV_FAULT_NONE:
		return NULL;
	case PPV_FAULT_EMPTY:
		return "ppv: tvf must have a point at least";
	case PPV_FAULT_MANY:
		return "ppv: tvf must have 32 points at most";
	case PPV_FAULT_RATE:
		return "ppv: tvf: rates must be 8 bit/s to 1 Tbit/s";
	case PPV_FAULT_VALUE:
		return "ppv: tvf: coded values must be 1 to 65535";
	case PPV_FAULT_NOT_RISING:
		return "ppv: tvf: each rate must be beyond the one before by 1/50000";
	case PPV_FAULT_NOT_FALLING:
		return "ppv: tvf must fall: each value must be below the one before";
	}
	return NULL;
}

/* One function into a copy of all of them. */
static int ppv_parse_tvf(const struct nlattr *nest, struct ppv_tvf *tvf,
			 u32 *seen, struct netlink_ext_ack *extack)
{
	const struct nlattr *points = NULL, *number = NULL, *attr;
	struct ppv_point list[PPV_POINTS_MAX];
	u32 count, i, n;
	const char *why;
	int rem;

	nla_for_each_nested(attr, nest, rem) {
		const struct nlattr **place =
			nla_type(attr) == TCA_PPV_TVF_NUMBER ? &number :
			nla_type(attr) == TCA_PPV_TVF_POINTS ? &points : NULL;

		if (!place)
			return dualpi2_reject(extack, attr,
					      "ppv: unknown attribute in tvf");
		if (*place)
			return dualpi2_reject(extack, attr,
					      "ppv: tvf: number or points given twice");
		*place = attr;
	}
	if (rem > 0 || !number || !points || nla_len(number) != sizeof(u32) ||
	    nla_len(points) % sizeof(struct tc_ppv_point))
		return dualpi2_reject(extack, nest,
				      "ppv: tvf wants a number of 4 bytes and an array of points");
	n = nla_get_u32(number);
	if (n < 1 || n > PPV_TVFS)
		return dualpi2_reject(extack, number,
				      "ppv: number of a tvf must be 1 to 16");
	if (*seen & BIT(n))
		return dualpi2_reject(extack, nest,
				      "ppv: one tvf given twice");
	*seen |= BIT(n);

	count = nla_len(points) / sizeof(struct tc_ppv_point);
	for (i = 0; i < min(count, PPV_POINTS_MAX); i++) {
		struct tc_ppv_point point;

		memcpy(&point, nla_data(points) + i * sizeof(point),
		       sizeof(point));
		if (point.pad)
			return dualpi2_reject(extack, points,
					      "ppv: tvf: padding of a point must be 0");
		list[i] = (struct ppv_point) { point.rate, point.value };
	}
	why = ppv_fault_text(ppv_tvf_check(list, count));
	if (why)
		return dualpi2_reject(extack, points, why);
	ppv_tvf_set(&tvf[n], list, count);
	return 0;
}

/* A message about two such qdiscs, one of which replaces the other, has room for so many
 * points of all functions.
 */
#define PPV_POINTS_TOGETHER	64

/* Apply a request to a copy of the configuration and of the functions. */
static int ppv_parse(struct nlattr *opt, struct ppv_config *cfg,
		     struct ppv_tvf *tvf, struct netlink_ext_ack *extack)
{
	u32 seen = 0, numbers = 0, points = 0, n;
	const struct nlattr *attr;
	int rem, err;

	nla_for_each_nested(attr, opt, rem) {
		int type = nla_type(attr);

		if (type == TCA_PPV_TVF) {
			err = ppv_parse_tvf(attr, tvf, &numbers, extack);
			if (err)
				return err;
			continue;
		}
		if (type > TCA_PPV_MAX || !ppv_knobs[type].len)
			return dualpi2_reject(extack, attr,
					      "ppv: unknown attribute");
		if (seen & BIT(type))
			return dualpi2_reject(extack, attr,
					      ppv_knobs[type].twice);
		seen |= BIT(type);
		err = dualpi2_parse_attr(attr, &ppv_knobs[type], cfg, extack);
		if (err)
			return err;
	}
	if (rem > 0)
		return dualpi2_reject(extack, opt,
				      "ppv: bytes left over after the attributes");
	for (n = 1; n <= PPV_TVFS; n++)
		points += tvf[n].count;
	if (points > PPV_POINTS_TOGETHER)
		return dualpi2_reject(extack, opt,
				      "ppv: all tvf together must have 64 points at most");
	if (!tvf[cfg->number].count)
		return dualpi2_reject(extack, opt,
				      "ppv: default must be the number of a tvf that there is");
	return 0;
}

static void ppv_forget(struct ppv_sched_data *q)
{
	memset(q->flows, 0, PPV_FLOW_SETS * PPV_FLOW_WAYS * sizeof(*q->flows));
}

static int ppv_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	struct ppv_config cfg = q->config;
	struct ppv_tvf *tvf;
	int err;

	/* Too much for the stack. */
	tvf = kvmalloc(sizeof(q->tvf), GFP_KERNEL);
	if (!tvf)
		return -ENOMEM;
	memcpy(tvf, q->tvf, sizeof(q->tvf));
	err = ppv_parse(opt, &cfg, tvf, extack);
	if (!err) {
		sch_tree_lock(sch);
		/* Levels were of the old one. */
		if (q->config.window_us != cfg.window_us)
			ppv_forget(q);
		q->config = cfg;
		memcpy(q->tvf, tvf, sizeof(q->tvf));
		ppv_window_init(&q->window, cfg.window_us);
		sch_tree_unlock(sch);
	}
	kvfree(tvf);
	return err;
}

static int ppv_init(struct Qdisc *sch, struct nlattr *opt,
		    struct netlink_ext_ack *extack)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	u32 n;
	int err;

	/* Before anything that can fail: destroy is called then. */
	q->child = &noop_qdisc;
	q->config = (struct ppv_config) {
		.number = PPV_DEFAULT_DEF,
		.window_us = PPV_WINDOW_US_DEF,
	};
	for (n = 1; n <= PPV_TVFS; n++)
		ppv_tvf_builtin(&q->tvf[n], n);
	ppv_window_init(&q->window, q->config.window_us);
	prandom_seed_state(&q->rnd, get_random_u64());
	get_random_bytes(&q->key, sizeof(q->key));

	err = tcf_block_get(&q->block, &q->filter_list, sch, extack);
	if (err)
		return err;
	q->flows = kvcalloc(PPV_FLOW_SETS * PPV_FLOW_WAYS, sizeof(*q->flows),
			    GFP_KERNEL_ACCOUNT);
	if (!q->flows)
		return -ENOMEM;
	if (opt) {
		err = ppv_change(sch, opt, extack);
		if (err)
			return err;
	}
	q->child = fifo_create_dflt(sch, &pfifo_qdisc_ops,
				    qdisc_dev(sch)->tx_queue_len ?: 1000,
				    extack);
	if (IS_ERR(q->child)) {
		err = PTR_ERR(q->child);
		q->child = &noop_qdisc;
		return err;
	}
	qdisc_hash_add(q->child, true);
	return 0;
}

static void ppv_reset(struct Qdisc *sch)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	if (q->child)
		qdisc_reset(q->child);
	if (q->flows)
		ppv_forget(q);
}

static void ppv_destroy(struct Qdisc *sch)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	tcf_block_put(q->block);
	qdisc_put(q->child);
	kvfree(q->flows);
}

static int ppv_put_tvf(struct sk_buff *skb, u32 number, const struct ppv_tvf *tvf)
{
	struct nlattr *nest, *attr;
	struct tc_ppv_point *points;
	u32 i;

	nest = nla_nest_start_noflag(skb, TCA_PPV_TVF);
	if (!nest || nla_put_u32(skb, TCA_PPV_TVF_NUMBER, number))
		return -EMSGSIZE;
	attr = nla_reserve(skb, TCA_PPV_TVF_POINTS,
			   tvf->count * sizeof(*points));
	if (!attr)
		return -EMSGSIZE;
	points = nla_data(attr);
	for (i = 0; i < tvf->count; i++) {
		const struct tc_ppv_point point = {
			.rate = tvf->points[i].rate,
			.value = tvf->points[i].coded,
		};

		/* Attributes are aligned to 4 bytes. */
		memcpy(&points[i], &point, sizeof(point));
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int ppv_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest;
	u32 n;

	nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_PPV_DEFAULT, q->config.number) ||
	    nla_put_u32(skb, TCA_PPV_WINDOW, q->config.window_us) ||
	    nla_put_u8(skb, TCA_PPV_CARRY, q->config.carry))
		goto full;
	for (n = 1; n <= PPV_TVFS; n++)
		if (q->tvf[n].count && ppv_put_tvf(skb, n, &q->tvf[n]))
			goto full;
	return nla_nest_end(skb, nest);
full:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

static int ppv_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	struct tc_ppv_xstats stats;

	sch_tree_lock(sch);
	stats = q->stats;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static struct Qdisc_ops ppv_qdisc_ops;

static int ppv_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		     struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	/* Nor would the core's search for loops end soon: each class has the child. */
	if (new && new->ops == &ppv_qdisc_ops) {
		NL_SET_ERR_MSG(extack,
			       "ppv: no ppv below ppv: packets have one value");
		return -EINVAL;
	}
	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *ppv_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	return q->child;
}

/* A class is its function's number. */
static unsigned long ppv_find(struct Qdisc *sch, u32 classid)
{
	u32 number = TC_H_MIN(classid);

	return number <= PPV_TVFS ? number : 0;
}

static unsigned long ppv_bind(struct Qdisc *sch, unsigned long parent,
			      u32 classid)
{
	return ppv_find(sch, classid);
}

static void ppv_unbind(struct Qdisc *sch, unsigned long cl)
{
}

static struct tcf_block *ppv_tcf_block(struct Qdisc *sch, unsigned long cl,
				       struct netlink_ext_ack *extack)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	return cl ? NULL : q->block;
}

static int ppv_dump_class(struct Qdisc *sch, unsigned long cl,
			  struct sk_buff *skb, struct tcmsg *tcm)
{
	struct ppv_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(cl);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static void ppv_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct ppv_sched_data *q = qdisc_priv(sch);
	unsigned long n;

	if (walker->stop)
		return;
	for (n = 1; n <= PPV_TVFS; n++) {
		if (!q->tvf[n].count)
			continue;
		if (walker->count >= walker->skip &&
		    walker->fn(sch, n, walker) < 0) {
			walker->stop = 1;
			return;
		}
		walker->count++;
	}
}

static const struct Qdisc_class_ops ppv_class_ops = {
	.graft		= ppv_graft,
	.leaf		= ppv_leaf,
	.find		= ppv_find,
	.walk		= ppv_walk,
	.tcf_block	= ppv_tcf_block,
	.bind_tcf	= ppv_bind,
	.unbind_tcf	= ppv_unbind,
	.dump		= ppv_dump_class,
};

static struct Qdisc_ops ppv_qdisc_ops __read_mostly = {
	.id		= "ppv",
	.cl_ops		= &ppv_class_ops,
	.priv_size	= sizeof(struct ppv_sched_data),
	.enqueue	= ppv_enqueue,
	.dequeue	= ppv_dequeue,
	.peek		= ppv_peek,
	.init		= ppv_init,
	.reset		= ppv_reset,
	.destroy	= ppv_destroy,
	.change		= ppv_change,
	.dump		= ppv_dump,
	.dump_stats	= ppv_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init ppv_module_init(void)
{
	return register_qdisc(&ppv_qdisc_ops);
}

static void __exit ppv_module_exit(void)
{
	unregister_qdisc(&ppv_qdisc_ops);
}

module_init(ppv_module_init);
module_exit(ppv_module_exit);
MODULE_ALIAS_NET_SCH("ppv");
MODULE_DESCRIPTION("Packet values for core-stateless resource sharing");
MODULE_AUTHOR("The dualpi2 authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(EXTRA_VERSION);
