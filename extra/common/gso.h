/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the companion qdiscs have in common besides <qdisc/packet.h>: to
 * queue a GSO packet as the packets that it is made of.
 */
#ifndef _GLUE_EXTRA_H
#define _GLUE_EXTRA_H

#include <linux/err.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>
#include <qdisc/packet.h>

/**
 * typedef extra_enqueue_t - queue one packet, or drop it
 * @skb: the packet; its control block is filled
 * @sch: the qdisc
 * @now_ns: the time that extra_enqueue_gso() was told
 * @to_free: where packets go that are dropped
 *
 * It counts the packet in all accounts, those of the core too: sch->q.qlen and
 * sch->qstats.backlog.  What it drops, it gives to qdisc_drop().
 *
 * Return: NET_XMIT_SUCCESS if the packet was queued, else another NET_XMIT_*.
 */
typedef int (*extra_enqueue_t)(struct sk_buff *skb, struct Qdisc *sch,
			       u64 now_ns, struct sk_buff **to_free);

/**
 * extra_enqueue_gso() - queue the segments of a GSO packet one by one
 * @skb: the packet, which is taken over; its control block, which each segment
 *	gets a copy of, is filled
 * @sch: the qdisc
 * @now_ns: the time, for @enqueue
 * @to_free: where packets go that are dropped
 * @enqueue: queues one packet
 * @failed: counts packets that could not be split and were dropped, which
 *	@enqueue never sees
 *
 * What is said to be GSO and is a single packet comes back from the split as it is,
 * and is queued so.  A list of packets (SKB_GSO_FRAGLIST) is its own first segment,
 * so that the list lets go of it first: with two users it could not be marked.
 *
 * Called with the root qdisc's lock held, from &Qdisc_ops.enqueue.  Out of line: its
 * caller needs no stack frame for packets that are not GSO.
 *
 * Return: what &Qdisc_ops.enqueue returns; if no segment was queued, what @enqueue
 * returned for the last one.
 */
static noinline int extra_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				      u64 now_ns, struct sk_buff **to_free,
				      extra_enqueue_t enqueue, u64 *failed)
{
	const struct dualpi2_cb cb = *dualpi2_cb(skb);
	const unsigned int whole = qdisc_pkt_len(skb);
	struct sk_buff *parts, *part, *next;
	unsigned int bytes = 0, len;
	int count = 0, ret = NET_XMIT_DROP;

	parts = dualpi2_split(skb);
	if (IS_ERR(parts)) {
		++*failed;
		return qdisc_drop(skb, sch, to_free);
	}
	if (!parts)
		return enqueue(skb, sch, now_ns, to_free);

	consume_skb(skb);
	skb_list_walk_safe(parts, part, next) {
		dualpi2_init_segment(part, sch, &cb);
		len = qdisc_pkt_len(part);
		ret = enqueue(part, sch, now_ns, to_free);
		if (ret != NET_XMIT_SUCCESS)
			continue;
		bytes += len;
		count++;
	}
	if (!count)
		return ret;
	dualpi2_adjust_parents(sch, count, (int)(whole - bytes));
	return NET_XMIT_SUCCESS;
}

#endif /* _GLUE_EXTRA_H */
