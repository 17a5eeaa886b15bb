/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dualpi2_mq: one dualpi2 for each transmit queue of a device, below a root qdisc that
 * classifies nothing and holds no packet, as mq.  With a shaper the children share one
 * rate and one PI controller: struct dualpi2_mq_group in sch_dualpi2.c, which includes
 * this file once, and has the packet path.  Here are the operations of the root.
 *
 * Options are those of dualpi2, for all children alike.  Statistics are the sums over
 * the children.
 */
#ifndef _QDISC_MQ_H
#define _QDISC_MQ_H

/* The root's private data. */
struct dualpi2_mq_sched {
	struct dualpi2_mq_group *group;
	bool attached;			/* the device's queues hold the children */
};

static unsigned int dualpi2_mq_queues(const struct Qdisc *sch)
{
	return qdisc_dev(sch)->num_tx_queues;
}

static struct dualpi2_mq_group *dualpi2_mq_group_alloc(const struct Qdisc *sch,
						       unsigned int queues)
{
	struct dualpi2_mq_group *group;
	unsigned int i;

	group = kzalloc(struct_size(group, member, queues), GFP_KERNEL);
	if (!group)
		return NULL;
	group->queues = queues;
	group->mtu_bytes = dualpi2_mtu_bytes(sch);
	spin_lock_init(&group->lock);
	group->users = 1;
	dualpi2_config_init(&group->config);
	for (i = 0; i < queues; i++) {
		struct dualpi2_mq_member *mq = &group->member[i];

		mq->group = group;
		mq->txq = netdev_get_tx_queue(qdisc_dev(sch), i);
	}
	return group;
}

/* Put the options of the group in force, before those of the children. */
static void dualpi2_mq_group_apply(struct dualpi2_mq_group *group,
				   const struct dualpi2_config *cfg)
{
	unsigned int i;

	spin_lock_bh(&group->lock);
	/* There has been no look without a shaper. */
	for (i = 0; !group->config.bandwidth && i < group->queues; i++) {
		WRITE_ONCE(group->member[i].others_bytes, 0);
		WRITE_ONCE(group->member[i].room_pkts, U32_MAX);
		WRITE_ONCE(group->member[i].room_memory, U32_MAX);
	}
	group->config = *cfg;
	dualpi2_params_init(&group->params, cfg);
	dualpi2_set_late(&group->params);
	dualpi2_set_target(&group->params, &group->vars,
			   group->params.link.ns_per_byte_q20,
			   group->mtu_bytes);
	dualpi2_vars_derive(&group->params, &group->vars, ktime_get_ns());
	spin_unlock_bh(&group->lock);
}

/* Create the children; dualpi2_mq_destroy() frees them if that fails. */
static int dualpi2_mq_create(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	const struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	struct dualpi2_mq_group *group = priv->group;
	struct dualpi2_sched_data *q;
	struct Qdisc *child;
	unsigned int i;

	for (i = 0; i < group->queues; i++) {
		child = qdisc_create_dflt(group->member[i].txq,
					  &dualpi2_qdisc_ops,
					  TC_H_MAKE(TC_H_MAJ(sch->handle),
						    TC_H_MIN(i + 1)), extack);
		if (!child)
			return -ENOMEM;
		child->flags |= TCQ_F_ONETXQUEUE | TCQ_F_NOPARENT;
		q = qdisc_priv(child);
		q->mq = &group->member[i];
		q->mq->child = child;
		group->users++;
		dualpi2_apply(child, &group->config);
	}
	/* It reports overload, even if no packet takes its queue. */
	dualpi2_activate(group->member[0].child);
	return 0;
}

static int dualpi2_mq_root_init(struct Qdisc *sch, struct nlattr *opt,
				struct netlink_ext_ack *extack)
{
	struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	unsigned int queues = dualpi2_mq_queues(sch);
	struct dualpi2_config cfg;
	int err;

	if (sch->parent != TC_H_ROOT) {
		NL_SET_ERR_MSG(extack,
			       "dualpi2_mq: must be the root qdisc of a device; use dualpi2 as a child");
		return -EOPNOTSUPP;
	}
	/* The core does not call attach for the default qdisc of a device with one queue,
	 * and creates it without a handle.
	 */
	if (!sch->handle)
		return -EOPNOTSUPP;
	dualpi2_config_init(&cfg);
	if (opt) {
		err = dualpi2_parse(opt, &cfg, extack);
		if (err)
			return err;
	}
	priv->group = dualpi2_mq_group_alloc(sch, queues);
	if (!priv->group)
		return -ENOMEM;
	dualpi2_mq_group_apply(priv->group, &cfg);
	dualpi2_vars_init(&priv->group->params, &priv->group->vars,
			  priv->group->mtu_bytes, ktime_get_ns());
	err = dualpi2_mq_create(sch, extack);
	if (err)
		return err;
	sch->flags |= TCQ_F_MQROOT;
	return 0;
}

static void dualpi2_mq_attach(struct Qdisc *sch)
{
	struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	struct Qdisc *child, *old;
	unsigned int i;

	for (i = 0; i < priv->group->queues; i++) {
		child = priv->group->member[i].child;
		old = dev_graft_qdisc(child->dev_queue, child);
		if (old)
			qdisc_put(old);
		if (i < dev->real_num_tx_queues)
			qdisc_hash_add(child, false);
	}
	priv->attached = true;
}

/* The core destroys attached children together with their queues' new qdiscs. */
static void dualpi2_mq_destroy(struct Qdisc *sch)
{
	struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	unsigned int i;

	if (!priv->group)
		return;
	for (i = 0; !priv->attached && i < priv->group->queues; i++)
		if (priv->group->member[i].child)
			qdisc_put(priv->group->member[i].child);
	dualpi2_mq_group_put(priv->group);
}

static int dualpi2_mq_change(struct Qdisc *sch, struct nlattr *opt,
			     struct netlink_ext_ack *extack)
{
	struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	struct dualpi2_mq_group *group = priv->group;
	struct dualpi2_config cfg = group->config;
	unsigned int i;
	int err;

	err = dualpi2_parse(opt, &cfg, extack);
	if (err)
		return err;
	dualpi2_mq_group_apply(group, &cfg);
	for (i = 0; i < group->queues; i++)
		dualpi2_apply(group->member[i].child, &cfg);
	dualpi2_mq_clock_change(&group->member[0].params, &group->clock,
				ktime_get_ns());
	for (i = 0; i < group->queues; i++) {
		struct Qdisc *child = group->member[i].child;

		sch_tree_lock(child);
		dualpi2_wake(qdisc_priv(child), 0);
		sch_tree_unlock(child);
	}
	return 0;
}

/* Children beyond the number of queues in use are not listed. */
static void __maybe_unused
dualpi2_mq_change_real_num_tx(struct Qdisc *sch, unsigned int queues)
{
	const struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	struct Qdisc *child;
	unsigned int i;

	for (i = 0; i < priv->group->queues; i++) {
		child = priv->group->member[i].child;
		if (i >= queues)
			qdisc_hash_del(child);
		else if (!hash_hashed(&child->hash))
			qdisc_hash_add(child, false);
	}
}

/* The core dumps packets and bytes from the root's own fields.  It tells listeners of a
 * root that was deleted after it has destroyed the children.
 */
static int dualpi2_mq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	u32 limit_pkts, memory_limit;
	struct Qdisc *child;
	unsigned int i;

	sch->q.qlen = 0;
	dualpi2_compat_zero_basic(sch);
	memset(&sch->qstats, 0, sizeof(sch->qstats));
	for (i = 0; i < priv->group->queues; i++) {
		child = priv->group->member[i].child;
		if (!child)
			continue;
		sch_tree_lock(child);
		dualpi2_compat_add_basic(sch, child);
		sch->qstats.backlog += child->qstats.backlog;
		sch->qstats.drops += child->qstats.drops;
		sch->qstats.requeues += child->qstats.requeues;
		sch->qstats.overlimits += child->qstats.overlimits;
		sch->q.qlen += qdisc_qlen(child);
		sch_tree_unlock(child);
	}
	spin_lock_bh(&priv->group->lock);
	dualpi2_mq_limits(priv->group, &limit_pkts, &memory_limit);
	spin_unlock_bh(&priv->group->lock);
	return dualpi2_put_options(skb, priv->group->config, limit_pkts,
				   memory_limit);
}

/* Add the state of a child to @sum, whose other members are those of the group. */
static void dualpi2_mq_add_child(struct dualpi2_sched_data *sum,
				 const struct dualpi2_sched_data *q)
{
	int queue, i, ect;

	for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
		const struct dualpi2_fifo *from = &q->fifo[queue];
		struct dualpi2_fifo *to = &sum->fifo[queue];

		to->list.qlen += from->list.qlen;
		to->bytes_in += from->bytes_in;
		to->bytes_out += from->bytes_out;
		dualpi2_delay_merge(&to->stats.delay, &from->stats.delay);
		for (i = 0; i < ARRAY_SIZE(to->stats.arrived); i++)
			to->stats.arrived[i] += from->stats.arrived[i];
		for (i = 0; i < ARRAY_SIZE(to->stats.marked); i++)
			to->stats.marked[i] += from->stats.marked[i];
		for (i = 0; i < DUALPI2_DROPS; i++) {
			for (ect = 0; ect < 2; ect++)
				to->stats.dropped[i][ect] +=
					from->stats.dropped[i][ect];
			to->stats.dropped_bytes[i] +=
				from->stats.dropped_bytes[i];
		}
	}
	sum->memory_used += q->memory_used;
	/* Upper bounds: the children may have had their maxima at different times. */
	sum->max_memory_used = min_t(u64, (u64)sum->max_memory_used +
					  q->max_memory_used, U32_MAX);
	sum->max_pkts = min_t(u64, (u64)sum->max_pkts + q->max_pkts, U32_MAX);
	sum->unparsed += q->unparsed;
	sum->gso_failed += q->gso_failed;
	sum->mark_failed += q->mark_failed;
	sum->throttled += q->throttled;
	sum->nqb_arrived += q->nqb_arrived;
	sum->nqb_dropped += q->nqb_dropped;
}

/* One instance that has what all children have. */
struct dualpi2_mq_sum_data {
	struct dualpi2_sched_data q;
	struct dualpi2_hist hist[DUALPI2_QUEUES];
};

/* Without a shaper each child has a controller of its own: show the highest p' with its
 * overload, and the sum of what was counted.
 */
static void dualpi2_mq_add_overload(struct dualpi2_sched_data *data,
				    const struct dualpi2_sched_data *q,
				    u64 now_ns)
{
	const struct dualpi2_vars *v = &q->vars;
	struct dualpi2_vars *sum = &data->vars;
	u64 count = sum->overload_count + v->overload_count;
	u64 total_ns = dualpi2_time_in_overload(sum, now_ns) +
		       dualpi2_time_in_overload(v, now_ns);

	if (v->base_q32 > sum->base_q32)
		*sum = *v;
	sum->overload_count = count;
	/* Without the present one, so that dualpi2_time_in_overload(sum) is total_ns. */
	sum->overload_total_ns += total_ns - dualpi2_time_in_overload(sum, now_ns);
	data->reports += q->reports;
}

/* With a shaper the first child has taken over p' of the group, and reports overload for
 * all.  The burst tolerance is that of the first one; there is no estimate of the rate.
 */
static void dualpi2_mq_begin_sum(struct dualpi2_mq_sum_data *data,
				 struct dualpi2_mq_group *group,
				 const struct dualpi2_sched_data *first)
{
	struct dualpi2_sched_data *sum = &data->q;
	int queue;

	sum->config = group->config;
	sum->params = group->params;
	sum->vars = first->vars;
	sum->reports = first->reports;
	sum->burst = first->burst;
	spin_lock(&group->lock);
	dualpi2_mq_limits(group, &sum->limit_pkts, &sum->memory_limit);
	spin_unlock(&group->lock);
	if (group->config.bandwidth)
		sum->nqb_limit_bytes = first->nqb_limit_bytes;
	for (queue = 0; queue < DUALPI2_QUEUES; queue++) {
		const struct dualpi2_delay *d = &first->fifo[queue].stats.delay;

		sum->fifo[queue].stats.delay.hist = &data->hist[queue];
		dualpi2_delay_init(&sum->fifo[queue].stats.delay, d->shift);
		sum->fifo[queue].stats.delay.generation = d->generation;
	}
}

static int dualpi2_mq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	const struct dualpi2_mq_sched *priv = qdisc_priv(sch);
	const struct dualpi2_sched_data *q;
	struct dualpi2_mq_sum_data *sum;
	struct dualpi2_sums sums = {};
	struct Qdisc *child;
	unsigned int i;
	u64 now_ns;
	int err;

	sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	if (!sum)
		return -1;
	for (i = 0; i < priv->group->queues; i++) {
		child = priv->group->member[i].child;
		if (!child)
			continue;
		sch_tree_lock(child);
		q = qdisc_priv(child);
		now_ns = dualpi2_add_sums(child, &sums);
		if (!sum->q.fifo[0].stats.delay.hist)
			dualpi2_mq_begin_sum(sum, priv->group, q);
		else if (!sum->q.config.bandwidth)
			dualpi2_mq_add_overload(&sum->q, q, now_ns);
		dualpi2_mq_add_child(&sum->q, q);
		sch_tree_unlock(child);
	}
	err = sum->q.fifo[0].stats.delay.hist ?
	      dualpi2_put_stats(d, &sum->q, &sums, ktime_get_ns()) : 0;
	kfree(sum);
	return err;
}

/* One class for each transmit queue, as in mq. */
static struct netdev_queue *dualpi2_mq_txq(const struct Qdisc *sch,
					   unsigned long cl)
{
	return cl && cl <= dualpi2_mq_queues(sch) ?
	       netdev_get_tx_queue(qdisc_dev(sch), cl - 1) : NULL;
}

static struct netdev_queue *dualpi2_mq_select_queue(struct Qdisc *sch,
						    struct tcmsg *tcm)
{
	return dualpi2_mq_txq(sch, TC_H_MIN(tcm->tcm_parent));
}

static int dualpi2_mq_graft(struct Qdisc *sch, unsigned long cl,
			    struct Qdisc *new, struct Qdisc **old,
			    struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG(extack,
		       "dualpi2_mq: the children share one rate and cannot be replaced; use mq for other children");
	return -EOPNOTSUPP;
}

/* As for all callbacks below, @cl comes from dualpi2_mq_find() or dualpi2_mq_walk(). */
static struct Qdisc *dualpi2_mq_leaf(struct Qdisc *sch, unsigned long cl)
{
	return rtnl_dereference(netdev_get_tx_queue(qdisc_dev(sch), cl - 1)->qdisc_sleeping);
}

static unsigned long dualpi2_mq_find(struct Qdisc *sch, u32 classid)
{
	unsigned int cl = TC_H_MIN(classid);

	return dualpi2_mq_txq(sch, cl) ? cl : 0;
}

static int dualpi2_mq_dump_class(struct Qdisc *sch, unsigned long cl,
				 struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_parent = TC_H_ROOT;
	tcm->tcm_handle |= TC_H_MIN(cl);
	tcm->tcm_info = dualpi2_mq_leaf(sch, cl)->handle;
	return 0;
}

static int dualpi2_mq_dump_class_stats(struct Qdisc *sch, unsigned long cl,
				       struct gnet_dump *d)
{
	struct Qdisc *child = dualpi2_mq_leaf(sch, cl);

	if (dualpi2_compat_copy_child(d, child) < 0 ||
	    qdisc_qstats_copy(d, child) < 0)
		return -1;
	return 0;
}

static void dualpi2_mq_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	unsigned int i;

	for (i = 0; i < dualpi2_mq_queues(sch) && !arg->stop; i++) {
		if (arg->count >= arg->skip &&
		    arg->fn(sch, i + 1, arg) < 0) {
			arg->stop = 1;
			break;
		}
		arg->count++;
	}
}

static const struct Qdisc_class_ops dualpi2_mq_class_ops = {
	.select_queue	= dualpi2_mq_select_queue,
	.graft		= dualpi2_mq_graft,
	.leaf		= dualpi2_mq_leaf,
	.find		= dualpi2_mq_find,
	.walk		= dualpi2_mq_walk,
	.dump		= dualpi2_mq_dump_class,
	.dump_stats	= dualpi2_mq_dump_class_stats,
};

static struct Qdisc_ops dualpi2_mq_qdisc_ops __read_mostly = {
	.id		= "dualpi2_mq",
	.cl_ops		= &dualpi2_mq_class_ops,
	.priv_size	= sizeof(struct dualpi2_mq_sched),
	.init		= dualpi2_mq_root_init,
	.destroy	= dualpi2_mq_destroy,
	.attach		= dualpi2_mq_attach,
	.change		= dualpi2_mq_change,
#ifdef DUALPI2_HAVE_CHANGE_REAL_NUM_TX
	.change_real_num_tx = dualpi2_mq_change_real_num_tx,
#endif
	.dump		= dualpi2_mq_dump,
	.dump_stats	= dualpi2_mq_dump_stats,
	.owner		= THIS_MODULE,
};

#endif /* _QDISC_MQ_H */
