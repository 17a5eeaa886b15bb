/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Core-stateless AQM: virtual queues that know the values of their packets, the
 * threshold of values below which packets get a signal, and what becomes of one.
 *
 * Integers in, a verdict out.  Nothing here knows packets, locks or a clock; it
 * compiles in user space, where selftests/unit tests it.
 *
 * Sources: "Virtual Dual Queue Core Stateless AQM", the paper, section 3: vdq_csaqm.
 * "On the Incompatibility of Scalable Congestion Controls over the Internet",
 * section III: csaqm, which is one queue and a virtual queue of the same rate.
 *
 * Values are coded (packet_value.h), 0..65535.
 */
#ifndef _NET_CSAQM_H
#define _NET_CSAQM_H

#include <net/dualpi2.h>
#include <net/dualpi2_link.h>
#include <net/dualpi2_seam.h>

#define CSAQM_LIMIT_PKTS_MIN		1U
#define CSAQM_LIMIT_PKTS_MAX		(1U << 20)
#define CSAQM_LIMIT_PKTS_LEAST		1000U	/* of a default */
#define CSAQM_LIMIT_PACKET_BYTES	256U	/* it is counted in these */
#define CSAQM_TUPDATE_US_MIN		100U
#define CSAQM_TUPDATE_US_MAX		DUALPI2_TIME_MAX_US
#define CSAQM_TIME_US_MIN		1U
#define CSAQM_TIME_US_MAX		DUALPI2_TIME_MAX_US
#define CSAQM_SHARE_MIN			1U	/* 1/1000 */
#define CSAQM_SHARE_ONE			1000U

/* csaqm: the paper has buffers of 500 ms and targets from 0.25 ms to 10 ms at an RTT
 * of 5 ms.
 */
#define CSAQM_TARGET_US_DEF		5000U
#define CSAQM_TUPDATE_US_DEF		5000U
#define CSAQM_BUFFER_US_DEF		500000U

/* vdq_csaqm: C_v0 = 0.9 C, C_v1 = 0.984 C, D_0 = 1 ms, D_1 = 20 ms, q_max0 = 50 ms,
 * q_max1 = 200 ms, T_update = 10 ms.
 */
#define CSAQM_VDQ_TARGET_US_DEF		20000U
#define CSAQM_VDQ_TARGET_L_US_DEF	1000U
#define CSAQM_VDQ_TUPDATE_US_DEF	10000U
#define CSAQM_VDQ_BUFFER_US_DEF		200000U
#define CSAQM_VDQ_BUFFER_L_US_DEF	50000U
#define CSAQM_VDQ_VRATE_DEF		984U
#define CSAQM_VDQ_VRATE_L_DEF		900U

/* At rates below those of the papers a target time is less than a packet: two of this
 * size do not make a queue (DUALPI2_LOW_MTU_BYTES).
 */
#define CSAQM_TARGET_BYTES_MIN		(2 * DUALPI2_LOW_MTU_BYTES)
#define CSAQM_BUFFER_BYTES_MIN		(2 * CSAQM_TARGET_BYTES_MIN)
#define CSAQM_BUFFER_BYTES_MAX		(1ULL << 30)	/* of one physical queue */

/* No call holds the lock for the length of a queue.  An arriving packet adds one record
 * and removes two that were served.  A threshold value is computed of
 * CSAQM_RECORDS_PER_UPDATE records at most, and a move into another ring copies as many
 * per call.
 */
#define CSAQM_RECORDS_PER_ARRIVAL	2U
#define CSAQM_RECORDS_PER_UPDATE	4096U

#define CSAQM_VALUES			65536U
#define CSAQM_GROUP_BITS		8
#define CSAQM_GROUP			(1U << CSAQM_GROUP_BITS)
#define CSAQM_MILLI			1000U	/* of a byte, as shares are */

enum csaqm_verdict {
	CSAQM_PASS,
	CSAQM_MARK,
	CSAQM_DROP,
};

/**
 * struct csaqm_config - the knobs as the user gave them
 * @bandwidth: of the link, bytes per second; 0: not given yet
 * @limit_pkts: maximum backlog in packets, and maximum records of a virtual queue; used if
 *	@limit_is_set
 * @tupdate_us: time between two threshold values
 * @target_us: delay of the (Classic) virtual queue that is aimed at
 * @target_l_us: the same of the L4S virtual queue
 * @buffer_us: length of the (Classic) queue
 * @buffer_l_us: of the L4S queue
 * @vrate: rate of the (Classic) virtual queue, in 1/1000 of the bandwidth
 * @vrate_l: of the L4S virtual queue
 * @carry: where values are, enum tc_ppv_carry
 * @ecn: false: ECT(0) is dropped as Not-ECT is
 * @limit_is_set: false: @limit_pkts follows the buffers
 * @dual: two queues: vdq_csaqm
 * @arrival_drop: a full queue drops by value; not with @dual
 */
struct csaqm_config {
	u64 bandwidth;
	u32 limit_pkts;
	u32 tupdate_us;
	u32 target_us;
	u32 target_l_us;
	u32 buffer_us;
	u32 buffer_l_us;
	u32 vrate;
	u32 vrate_l;
	u8 carry;
	bool ecn;
	bool limit_is_set;
	bool dual;
	bool arrival_drop;
};

/**
 * struct csaqm_params - the knobs as the packet path wants them
 * @link: the link
 * @tupdate_ns: time between two threshold values
 * @limit_pkts: maximum backlog in packets, and maximum records of a virtual queue
 * @buffer_bytes: most bytes in each queue
 * @vbuffer_bytes: most bytes in each virtual queue
 * @target_bytes: beyond this length of a virtual queue there is a threshold
 * @share: rate of each virtual queue, in 1/1000 of the link's
 * @dual: two queues
 * @ecn: ECT(0) is marked
 * @arrival_drop: a full queue drops by value
 */
struct csaqm_params {
	struct dualpi2_link link;
	u32 tupdate_ns;
	u32 limit_pkts;
	u32 buffer_bytes[DUALPI2_QUEUES];
	u32 vbuffer_bytes[DUALPI2_QUEUES];
	u32 target_bytes[DUALPI2_QUEUES];
	u32 share[DUALPI2_QUEUES];
	bool dual;
	bool ecn;
	bool arrival_drop;
};

/**
 * struct csaqm_record - a packet in a virtual queue; does not change in the ring
 * @bytes: its length
 * @value: coded
 */
struct csaqm_record {
	u32 bytes;
	u32 value;
};

/**
 * struct csaqm_vq - a virtual queue
 * @ring: the records; memory for csaqm_places(@size) of them
 * @size: maximum number of records
 * @mask: places of the ring, less 1
 * @head: number of the oldest record; numbers wrap around, the low bits are the place
 * @tail: number of the next record
 * @threshold: packets of a value below it get a signal; 0: none does, CSAQM_VALUES:
 *	all do
 * @left_milli: length: what was not served yet, in 1/1000 byte
 * @owed_milli: what was served of the records that are still in the ring, oldest first,
 *	in 1/1000 byte
 */
struct csaqm_vq {
	struct csaqm_record *ring;
	u32 size;
	u32 mask;
	u32 head;
	u32 tail;
	u32 threshold;
	u64 left_milli;
	u64 owed_milli;
};

/**
 * struct csaqm_vars - the state of one instance
 * @vq: the virtual queues; csaqm has that of DUALPI2_QUEUE_C only
 * @sent_bytes: what the link sent, or could have sent, since csaqm_serve()
 * @due_ns: time of the next threshold values
 * @idle_ns: since when the link has been idle; U64_MAX: it is not
 * @sums: memory of csaqm_vq_threshold()
 */
struct csaqm_vars {
	struct csaqm_vq vq[DUALPI2_QUEUES];
	u64 sent_bytes;
	u64 due_ns;
	u64 idle_ns;
	u64 sums[CSAQM_GROUP];
};

#define CSAQM_BUSY	(~0ULL)

/**
 * csaqm_config_init() - the defaults
 * @cfg: to be filled
 * @dual: vdq_csaqm
 */
static inline void csaqm_config_init(struct csaqm_config *cfg, bool dual)
{
	*cfg = (struct csaqm_config) {
		.tupdate_us = dual ? CSAQM_VDQ_TUPDATE_US_DEF :
				     CSAQM_TUPDATE_US_DEF,
		.target_us = dual ? CSAQM_VDQ_TARGET_US_DEF :
				    CSAQM_TARGET_US_DEF,
		.target_l_us = CSAQM_VDQ_TARGET_L_US_DEF,
		.buffer_us = dual ? CSAQM_VDQ_BUFFER_US_DEF :
				    CSAQM_BUFFER_US_DEF,
		.buffer_l_us = CSAQM_VDQ_BUFFER_L_US_DEF,
		.vrate = dual ? CSAQM_VDQ_VRATE_DEF : CSAQM_SHARE_ONE,
		.vrate_l = CSAQM_VDQ_VRATE_L_DEF,
		.ecn = true,
		.dual = dual,
	};
}

/**
 * csaqm_time_bytes() - what a rate comes to in a time
 * @rate: bytes per second, at most DUALPI2_BANDWIDTH_MAX
 * @us: time
 * @least: least answer
 *
 * Return: bytes, @least..CSAQM_BUFFER_BYTES_MAX.
 */
static inline u32 csaqm_time_bytes(u64 rate, u32 us, u32 least)
{
	/* Below 2^37 * 2^23. */
	return clamp_t(u64, div_u64(rate * us, 1000000), least,
		       CSAQM_BUFFER_BYTES_MAX);
}

/**
 * csaqm_params_init() - convert every knob once
 * @p: to be filled
 * @cfg: knobs, each within its limits, the bandwidth given
 */
static inline void csaqm_params_init(struct csaqm_params *p,
				     const struct csaqm_config *cfg)
{
	const u32 vrate[DUALPI2_QUEUES] = { cfg->vrate, cfg->vrate_l };
	const u32 target_us[DUALPI2_QUEUES] = { cfg->target_us,
						cfg->target_l_us };
	const u32 buffer_us[DUALPI2_QUEUES] = { cfg->buffer_us,
						cfg->buffer_l_us };
	u32 i;

	*p = (struct csaqm_params) {
		.link = {
			.ns_per_byte_q20 =
				dualpi2_ns_per_byte_q20(cfg->bandwidth),
			.late_max_ns = DUALPI2_LATE_MAX_NS,
		},
		.tupdate_ns = dualpi2_us_to_ns(cfg->tupdate_us),
		.dual = cfg->dual,
		.ecn = cfg->ecn,
		.arrival_drop = cfg->arrival_drop,
	};
	for (i = 0; i < DUALPI2_QUEUES; i++) {
		u64 vrate_bytes = div_u64(cfg->bandwidth * vrate[i],
					  CSAQM_SHARE_ONE);

		p->share[i] = vrate[i];
		p->target_bytes[i] = csaqm_time_bytes(vrate_bytes, target_us[i],
						      CSAQM_TARGET_BYTES_MIN);
		p->buffer_bytes[i] = csaqm_time_bytes(cfg->bandwidth,
						      buffer_us[i],
						      CSAQM_BUFFER_BYTES_MIN);
		p->vbuffer_bytes[i] = p->buffer_bytes[i];
	}
	/* It has the packets of both queues. */
	if (cfg->dual)
		p->vbuffer_bytes[DUALPI2_QUEUE_C] +=
			p->buffer_bytes[DUALPI2_QUEUE_L];
	p->limit_pkts = cfg->limit_is_set ? cfg->limit_pkts :
			clamp_t(u32, p->vbuffer_bytes[DUALPI2_QUEUE_C] /
				     CSAQM_LIMIT_PACKET_BYTES,
				CSAQM_LIMIT_PKTS_LEAST, CSAQM_LIMIT_PKTS_MAX);
}

/**
 * csaqm_is_l() - does the L4S virtual queue have a queue's packets, too?
 * @p: parameters
 * @queue: the queue
 *
 * The other one has those of all queues.
 */
static inline bool csaqm_is_l(const struct csaqm_params *p,
			      enum dualpi2_queue queue)
{
	return queue == DUALPI2_QUEUE_L && p->dual;
}

/**
 * csaqm_places() - what a ring has memory for
 * @size: maximum number of records, at least 1
 *
 * Return: @size, rounded up to a power of two.
 */
static inline u32 csaqm_places(u32 size)
{
	return 1U << __fls(2 * size - 1);
}

/**
 * csaqm_vq_init() - an empty virtual queue
 * @vq: to be filled
 * @ring: memory of csaqm_places(@size) records
 * @size: at least 1
 */
static inline void csaqm_vq_init(struct csaqm_vq *vq, struct csaqm_record *ring,
				 u32 size)
{
	*vq = (struct csaqm_vq) {
		.ring = ring,
		.size = size,
		.mask = csaqm_places(size) - 1,
	};
}

/**
 * csaqm_vq_length() - of what was not served yet
 * @vq: virtual queue
 *
 * Return: bytes, rounded up.
 */
static inline u64 csaqm_vq_length(const struct csaqm_vq *vq)
{
	return div_u64(vq->left_milli + CSAQM_MILLI - 1, CSAQM_MILLI);
}

/* Number of records, with those that were served and are still in the ring. */
static inline u32 csaqm_vq_count(const struct csaqm_vq *vq)
{
	return vq->tail - vq->head;
}

static inline struct csaqm_record *csaqm_vq_record(const struct csaqm_vq *vq,
						   u32 number)
{
	return &vq->ring[number & vq->mask];
}

/**
 * csaqm_vq_work() - remove records that were served
 * @vq: virtual queue
 * @most: maximum number of records
 */
static inline void csaqm_vq_work(struct csaqm_vq *vq, u32 most)
{
	u64 milli;

	while (vq->owed_milli && most--) {
		milli = (u64)csaqm_vq_record(vq, vq->head)->bytes * CSAQM_MILLI;
		if (vq->owed_milli < milli)
			return;
		vq->owed_milli -= milli;
		vq->head++;
	}
}

/**
 * csaqm_vq_serve() - the link sent bytes, or a packet left otherwise
 * @vq: virtual queue
 * @share: rate of the virtual queue, in 1/1000 of the link's
 * @bytes: below 2^54
 *
 * An empty virtual queue keeps no service for packets to come.
 */
static inline void csaqm_vq_serve(struct csaqm_vq *vq, u32 share, u64 bytes)
{
	u64 milli = bytes * share;

	if (milli < vq->left_milli) {
		vq->left_milli -= milli;
		vq->owed_milli += milli;
	} else {
		vq->left_milli = 0;
		vq->owed_milli = 0;
		vq->head = vq->tail;
	}
}

/**
 * csaqm_vq_add() - a packet arrives
 * @vq: virtual queue, for which csaqm_has_room() was true
 * @value: coded, 0..65535
 * @bytes: its length, at least 1
 */
static inline void csaqm_vq_add(struct csaqm_vq *vq, u32 value, u32 bytes)
{
	*csaqm_vq_record(vq, vq->tail++) = (struct csaqm_record) { bytes, value };
	vq->left_milli += (u64)bytes * CSAQM_MILLI;
}

/**
 * csaqm_vq_begin_move() - a virtual queue is to move into a ring of another size
 * @to: empty, with the ring
 * @from: the virtual queue
 */
static inline void csaqm_vq_begin_move(struct csaqm_vq *to,
				       const struct csaqm_vq *from)
{
	to->head = from->head;
	to->tail = from->head;
}

/**
 * csaqm_vq_move() - move a virtual queue, part by part
 * @to: of csaqm_vq_begin_move(); after the last call it is the virtual queue
 * @from: the virtual queue, until then; after the last call only its memory is left
 *
 * Between two calls packets may arrive at and leave @from.  If it has more records
 * than @to may have, the oldest ones are lost.  A record keeps its number.
 *
 * Return: true if that was the last call.
 */
static inline bool csaqm_vq_move(struct csaqm_vq *to, struct csaqm_vq *from)
{
	u32 most = CSAQM_RECORDS_PER_UPDATE;

	csaqm_vq_work(from, most);
	for (; csaqm_vq_count(from) > to->size && most; most--) {
		u64 milli = (u64)csaqm_vq_record(from, from->head++)->bytes *
			    CSAQM_MILLI;
		u64 owed = min_t(u64, milli, from->owed_milli);

		from->owed_milli -= owed;
		from->left_milli -= milli - owed;
	}
	/* What left meanwhile, or is lost, need not be copied. */
	if ((s32)(from->head - to->tail) > 0)
		to->tail = from->head;
	for (; to->tail != from->tail && most; most--, to->tail++)
		*csaqm_vq_record(to, to->tail) = *csaqm_vq_record(from, to->tail);
	if (to->tail != from->tail)
		return false;
	to->head = from->head;
	to->left_milli = from->left_milli;
	to->owed_milli = from->owed_milli;
	to->threshold = from->threshold;
	return true;
}

/**
 * csaqm_vq_sums() - bytes of the records by a part of their values
 * @vq: virtual queue
 * @sums: to be filled, CSAQM_GROUP numbers
 * @shift: position of the part in a value, which is CSAQM_GROUP_BITS long
 * @above: only values with these bits above the part count
 *
 * Of more than CSAQM_RECORDS_PER_UPDATE records it takes one of each 2, 4 and so on.
 * Which one varies, so that a regular order of flows is not mistaken for their shares.
 *
 * Return: the sum of @sums.
 */
static inline u64 csaqm_vq_sums(const struct csaqm_vq *vq, u64 *sums, u32 shift,
				u32 above)
{
	u32 count = csaqm_vq_count(vq), step = 1, i, k;
	u64 total = 0;

	while (count / step > CSAQM_RECORDS_PER_UPDATE)
		step *= 2;
	for (i = 0; i < CSAQM_GROUP; i++)
		sums[i] = 0;
	for (i = 0; i + step <= count; i += step) {
		const struct csaqm_record *record;
		u32 bytes;

		/* 2^32 over the golden ratio: high bits are as good as random. */
		k = i + (((vq->head + i) * 0x9e3779b1U >> 16) & (step - 1));
		record = csaqm_vq_record(vq, vq->head + k);
		if (record->value >> shift >> CSAQM_GROUP_BITS != above)
			continue;
		bytes = record->bytes;
		if (!k)
			bytes -= min_t(u64, bytes, div_u64(vq->owed_milli,
							   CSAQM_MILLI));
		sums[record->value >> shift & (CSAQM_GROUP - 1)] += bytes;
		total += bytes;
	}
	return total;
}

/* The smallest index so that the sums at and above it are at most @left, of which they
 * are subtracted.
 */
static inline u32 csaqm_cut(const u64 *sums, u64 *left)
{
	u32 i = CSAQM_GROUP;

	while (i && sums[i - 1] <= *left)
		*left -= sums[--i];
	return i;
}

/**
 * csaqm_vq_threshold() - the threshold value
 * @vq: virtual queue, csaqm_vq_work() was called
 * @target_bytes: maximum of bytes left at or above it
 * @sums: memory, CSAQM_GROUP numbers
 *
 * The paper, "Maintain CTVs": the smallest value so that what the virtual queue has
 * of it and above is at most the target.  The paper keeps a histogram of 65536 values,
 * which each packet updates; here two passes over the records find the value when it is
 * needed: by the high byte, then by the low byte in the group that exceeds the target.
 * It is exact for up to CSAQM_RECORDS_PER_UPDATE records, otherwise for a sample.
 *
 * Return: 0..CSAQM_VALUES.
 */
static inline u32 csaqm_vq_threshold(const struct csaqm_vq *vq,
				     u32 target_bytes, u64 *sums)
{
	/* csaqm_vq_has_room(): 2^31, or one packet. */
	u32 length = csaqm_vq_length(vq), group;
	u64 left;

	if (vq->left_milli <= (u64)target_bytes * CSAQM_MILLI)
		return 0;
	/* The part of the target that a sample stands for. */
	left = mul_u64_u32_div(csaqm_vq_sums(vq, sums, CSAQM_GROUP_BITS, 0),
			       target_bytes, length);
	/* At least one: the length exceeds the target. */
	group = csaqm_cut(sums, &left) ?: 1;
	csaqm_vq_sums(vq, sums, 0, group - 1);
	return ((group - 1) << CSAQM_GROUP_BITS) + csaqm_cut(sums, &left);
}

/**
 * csaqm_vq_has_room() - does a packet fit into a virtual queue?
 * @vq: virtual queue
 * @most_bytes: its maximum length
 * @bytes: of the packet
 */
static inline bool csaqm_vq_has_room(const struct csaqm_vq *vq, u32 most_bytes,
				     u32 bytes)
{
	u64 milli = (u64)bytes * CSAQM_MILLI;

	return (vq->left_milli + milli <= (u64)most_bytes * CSAQM_MILLI ||
		!vq->left_milli) && csaqm_vq_count(vq) < vq->size;
}

/**
 * csaqm_has_room() - may a packet be queued?
 * @p: parameters
 * @v: state
 * @queue: its queue
 * @queue_bytes: that wait there
 * @bytes: its length
 *
 * The paper, "Packet Arrival": in its queue and in each virtual queue that is related.
 * Whatever its length, it may come to an empty one: at low rates buffers are less than
 * a large packet.
 */
static inline bool csaqm_has_room(const struct csaqm_params *p,
				  const struct csaqm_vars *v,
				  enum dualpi2_queue queue, u64 queue_bytes,
				  u32 bytes)
{
	const struct csaqm_vq *vq = v->vq;

	return (queue_bytes + bytes <= p->buffer_bytes[queue] || !queue_bytes) &&
	       csaqm_vq_has_room(&vq[DUALPI2_QUEUE_C],
				 p->vbuffer_bytes[DUALPI2_QUEUE_C], bytes) &&
	       (!csaqm_is_l(p, queue) ||
		csaqm_vq_has_room(&vq[DUALPI2_QUEUE_L],
				  p->vbuffer_bytes[DUALPI2_QUEUE_L], bytes));
}

/**
 * csaqm_catch_up() - make room for a record
 * @p: parameters
 * @v: state
 *
 * Call it before csaqm_has_room().
 */
static inline void csaqm_catch_up(const struct csaqm_params *p,
				  struct csaqm_vars *v)
{
	csaqm_vq_work(&v->vq[DUALPI2_QUEUE_C], CSAQM_RECORDS_PER_ARRIVAL);
	if (p->dual)
		csaqm_vq_work(&v->vq[DUALPI2_QUEUE_L],
			      CSAQM_RECORDS_PER_ARRIVAL);
}

/**
 * csaqm_arrive() - a packet is queued
 * @p: parameters
 * @v: state
 * @queue: its queue
 * @value: coded
 * @bytes: its length, at least 1
 */
static inline void csaqm_arrive(const struct csaqm_params *p,
				struct csaqm_vars *v, enum dualpi2_queue queue,
				u32 value, u32 bytes)
{
	csaqm_vq_add(&v->vq[DUALPI2_QUEUE_C], value, bytes);
	if (csaqm_is_l(p, queue))
		csaqm_vq_add(&v->vq[DUALPI2_QUEUE_L], value, bytes);
}

/**
 * csaqm_sent() - the link sent a packet
 * @v: state
 * @bytes: its length
 *
 * csaqm_serve() does the rest.
 */
static inline void csaqm_sent(struct csaqm_vars *v, u32 bytes)
{
	v->sent_bytes += bytes;
}

/**
 * csaqm_dropped() - a packet left the queue otherwise
 * @p: parameters
 * @v: state
 * @queue: its queue
 * @bytes: its length
 *
 * The virtual queue loses its bytes: a virtual queue is the backlog at its rate with the
 * same congestion signals.  The paper says that drops update virtual queues, not by how
 * much; with less, unresponsive flows fill the virtual queue, which then drops
 * arrivals whatever their value.
 */
static inline void csaqm_dropped(const struct csaqm_params *p,
				 struct csaqm_vars *v, enum dualpi2_queue queue,
				 u32 bytes)
{
	csaqm_vq_serve(&v->vq[DUALPI2_QUEUE_C], CSAQM_SHARE_ONE, bytes);
	if (csaqm_is_l(p, queue))
		csaqm_vq_serve(&v->vq[DUALPI2_QUEUE_L], CSAQM_SHARE_ONE, bytes);
}

/**
 * csaqm_idle() - there is nothing to send
 * @v: state
 * @free_ns: when the link is done with the last packet
 */
static inline void csaqm_idle(struct csaqm_vars *v, u64 free_ns)
{
	v->idle_ns = free_ns;
}

/**
 * csaqm_serve() - serve the virtual queues until now
 * @p: parameters
 * @v: state
 * @now_ns: time
 *
 * The paper, "Virtual Queue maintenance": all virtual queues are served, whichever
 * queue a packet was sent from, and while the link is idle.  Call it before looking at
 * them and when a packet arrives.  One call counts at most two hours of idle time, which
 * dualpi2_ns_bytes() can take.
 */
static inline void csaqm_serve(const struct csaqm_params *p,
			       struct csaqm_vars *v, u64 now_ns)
{
	u64 ns, bytes;

	/* CSAQM_BUSY is later than any time. */
	if (v->idle_ns < now_ns) {
		ns = min_t(u64, now_ns - v->idle_ns,
			   7200ULL * DUALPI2_NS_PER_SEC);
		bytes = dualpi2_ns_bytes(p->link.ns_per_byte_q20, ns);
		/* The part of a byte that is left counts the next time. */
		v->idle_ns += bytes > U32_MAX ? ns : min_t(u64, ns,
			dualpi2_bytes_ns(p->link.ns_per_byte_q20, bytes) +
			!!bytes);
		v->sent_bytes += bytes;
	}
	bytes = v->sent_bytes;
	v->sent_bytes = 0;
	csaqm_vq_serve(&v->vq[DUALPI2_QUEUE_C], p->share[DUALPI2_QUEUE_C],
		       bytes);
	if (p->dual)
		csaqm_vq_serve(&v->vq[DUALPI2_QUEUE_L],
			       p->share[DUALPI2_QUEUE_L], bytes);
}

/**
 * csaqm_update() - new threshold values
 * @p: parameters
 * @v: state, csaqm_serve() was called
 * @now_ns: time
 *
 * One that comes late counts as one: there is no more to know than what is queued.
 */
static inline void csaqm_update(const struct csaqm_params *p,
				struct csaqm_vars *v, u64 now_ns)
{
	u32 i;

	for (i = 0; i < (p->dual ? DUALPI2_QUEUES : 1); i++) {
		csaqm_vq_work(&v->vq[i], CSAQM_RECORDS_PER_UPDATE);
		v->vq[i].threshold = csaqm_vq_threshold(&v->vq[i],
							p->target_bytes[i],
							v->sums);
	}
	v->due_ns = now_ns + p->tupdate_ns;
}

/**
 * csaqm_is_due() - is it time for csaqm_update()?
 * @p: parameters
 * @v: state
 * @now_ns: time; if it jumped back by more than there is to wait, it is
 */
static inline bool csaqm_is_due(const struct csaqm_params *p,
				const struct csaqm_vars *v, u64 now_ns)
{
	return now_ns >= v->due_ns || v->due_ns - now_ns > p->tupdate_ns;
}

/**
 * csaqm_is_below() - is a value below any related threshold?
 * @p: parameters
 * @v: state
 * @queue: the queue of the packet
 * @value: coded
 */
static inline bool csaqm_is_below(const struct csaqm_params *p,
				  const struct csaqm_vars *v,
				  enum dualpi2_queue queue, u32 value)
{
	return value < v->vq[DUALPI2_QUEUE_C].threshold ||
	       (csaqm_is_l(p, queue) &&
		value < v->vq[DUALPI2_QUEUE_L].threshold);
}

/**
 * csaqm_gives_way() - is a packet dropped for one that arrives at a full queue?
 * @p: parameters
 * @v: state
 * @value: of the oldest packet
 * @arriving: value of the packet that arrives
 *
 * The VDQ-CSAQM paper, footnote 1: CSAQM can drop by value at arrival, because packets of
 * its virtual queue are still there.  The papers do not say which one it drops; here it
 * is the oldest one, if only that one is below the threshold.
 */
static inline bool csaqm_gives_way(const struct csaqm_params *p,
				   const struct csaqm_vars *v, u32 value,
				   u32 arriving)
{
	return p->arrival_drop &&
	       csaqm_is_below(p, v, DUALPI2_QUEUE_C, value) &&
	       !csaqm_is_below(p, v, DUALPI2_QUEUE_C, arriving);
}

/**
 * csaqm_verdict() - what happens to a packet that is about to leave
 * @p: parameters
 * @v: state
 * @queue: its queue
 * @value: coded
 * @ecn: its codepoint
 *
 * The paper, "Dequeue Phase": a value below any related threshold gets a signal.  CE
 * has one.
 */
static inline enum csaqm_verdict
csaqm_verdict(const struct csaqm_params *p, const struct csaqm_vars *v,
	      enum dualpi2_queue queue, u32 value, enum dualpi2_ecn ecn)
{
	if (!csaqm_is_below(p, v, queue, value) || ecn == DUALPI2_ECN_CE)
		return CSAQM_PASS;
	if (ecn == DUALPI2_ECN_ECT1 || (ecn == DUALPI2_ECN_ECT0 && p->ecn))
		return CSAQM_MARK;
	return CSAQM_DROP;
}

/**
 * csaqm_queue_of_ecn() - the queue of a packet
 * @p: parameters
 * @ecn: its codepoint
 */
static inline enum dualpi2_queue
csaqm_queue_of_ecn(const struct csaqm_params *p, enum dualpi2_ecn ecn)
{
	return p->dual && (ecn & DUALPI2_ECN_ECT1) ? DUALPI2_QUEUE_L :
						     DUALPI2_QUEUE_C;
}

#endif /* _NET_CSAQM_H */
