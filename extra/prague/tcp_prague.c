// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague, a scalable congestion control for L4S senders (RFC 9331 section
 * 4), as a module for stock kernels that have Accurate ECN.
 *
 * This is the glue: what the stack tells and asks, ECT(1), the module.  All that
 * is computed is in prague.h; docs/PRAGUE.md says how to use it and what it
 * lacks.  It detects most bottlenecks with Classic ECN, not all, so that on the
 * Internet it is for experiments.
 *
 * The stack holds the socket's lock when it calls, but for get_info, which
 * inet_diag calls under RCU alone, and which only reads.
 *
 * While a connection is opened it may call before init, and go over to another
 * congestion control, or from another to this one, without release, init or a
 * word: so nothing is done to a socket before it is known what ECN the peer has,
 * and the private data are taken for ours if they say so.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#ifndef PRAGUE_HAVE_ACCECN

static int __init prague_module_init(void)
{
	pr_err("this kernel has no Accurate ECN that a congestion control can ask for; Linux 7.0 has\n");
	return -EOPNOTSUPP;
}
module_init(prague_module_init);

#else

#include <linux/inet_diag.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>
#include <net/tcp_ecn.h>

#include "prague.h"

static unsigned int rtt_virt_us = PRAGUE_RTT_VIRT_US;
static unsigned int transition_rounds = 4;
static unsigned int least_rate_kbit = 100;
static unsigned int classic_queue_us = PRAGUE_CLASSIC_QUEUE_US;
static unsigned int classic_looks = PRAGUE_CLASSIC_LOOKS;
static bool late_cut;

/* Packets after which a peer has told of the first bytes with ECT: its option comes three times
 * in an RTT
 */
#define PRAGUE_BLEACHED_PKTS	64
/* Data segments of a connection after which the stack paces (tcp_update_skb_after_send()) */
#define PRAGUE_UNPACED_SEGS	10

struct prague_sock {
	const struct sock *self;	/* whose it is; anything else: not ours yet */
	struct prague cc;
	u32 next_seq;		/* snd_nxt at the begin of the round */
	u32 mss;		/* bytes of payload in a packet at the last ACK */
	u32 delivered;		/* packets, when it began */
	bool started;		/* the connection is established, and ours */
	bool attached;		/* it holds the module, and had our table at least */
	bool ect_arrives;	/* the peer has told of bytes that came with ECT or CE */
	u16 route_gso_segs;	/* largest burst that the route and its device want */
	u16 gso_segs;		/* ... and what was set in its place; 0: nothing yet */
};

/* Number of times that a connection has detected a Classic-ECN bottleneck; wraps around */
static atomic_t prague_detections = ATOMIC_INIT(0);

static struct tcp_congestion_ops prague_ops, prague_fallback_ops;
/* The table that prague_fallback_ops is a copy of, and a socket that holds its module; or NULL */
static const struct tcp_congestion_ops *prague_cubic_ops;
static struct socket *prague_cubic_sock;

#ifdef PRAGUE_HAVE_ECT_1_ESTABLISHED

/* With this flag the stack sends ECT(1), and paces the first segments, too; see kernel-patch. */
#define PRAGUE_FLAGS	TCP_CONG_ECT_1_ESTABLISHED

static bool prague_attach(struct sock *sk)
{
	return true;
}

static void prague_detach(struct sock *sk)
{
}

#else

#define PRAGUE_FLAGS	0

/*
 * ECT(1).  The stack sets ECT(0) for every segment, after any hook of a
 * congestion control, and then calls queue_xmit of the socket's address family.
 * Sockets of Prague's get a copy of that table with another queue_xmit, which
 * has the codepoint changed for the time of the call.  Neither other sockets nor
 * what is done to packets later are concerned.
 *
 * There is one copy for each table that was met: IPv4, IPv6, IPv4 in IPv6, and
 * these with MPTCP.  A copy is written once and lives as long as the module.
 */
struct prague_family {
	struct inet_connection_sock_af_ops ops;
	const struct inet_connection_sock_af_ops *stock;
};

static struct prague_family prague_families[8];
static unsigned int prague_families_used;
static DEFINE_SPINLOCK(prague_families_lock);

static bool prague_is_our_table(const struct inet_connection_sock_af_ops *ops)
{
	return (const void *)ops >= (void *)prague_families &&
	       (const void *)ops < (void *)(prague_families + ARRAY_SIZE(prague_families));
}

/*
 * The stack paces no data segment before the tenth of a connection.  Ten packets
 * in one burst would be marked by an L4S queue at a slow bottleneck, and end slow
 * start.  So the next segment is delayed by what the rate says: in the first round,
 * by half an RTT for the whole initial window.
 */
static void prague_pace_first(struct sock *sk, const struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (likely(tp->data_segs_out >= PRAGUE_UNPACED_SEGS) || skb->len <= tcp_hdrlen(skb))
		return;
	tp->tcp_wstamp_ns += div64_ul((u64)skb->len * NSEC_PER_SEC,
				      max_t(unsigned long, READ_ONCE(sk->sk_pacing_rate), 1));
}

/*
 * In place of the family's queue_xmit.  ECT(0) is what the stack sets where
 * Accurate ECN works; Not-ECT, which it sets elsewhere, is left as it is.
 */
static int prague_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	const struct prague_family *family =
		container_of(inet_csk(sk)->icsk_af_ops, struct prague_family, ops);
	struct ipv6_pinfo *np = inet6_sk(sk);
	u8 tos = inet_sk(sk)->tos, tclass = np ? np->tclass : 0;
	int ret;

	prague_pace_first(sk, skb);
	if ((tos & INET_ECN_MASK) == INET_ECN_ECT_0)
		WRITE_ONCE(inet_sk(sk)->tos, (tos & ~INET_ECN_MASK) | INET_ECN_ECT_1);
	if (np && (tclass & INET_ECN_MASK) == INET_ECN_ECT_0)
		np->tclass = (tclass & ~INET_ECN_MASK) | INET_ECN_ECT_1;
	ret = family->stock->queue_xmit(sk, skb, fl);
	WRITE_ONCE(inet_sk(sk)->tos, tos);
	if (np)
		np->tclass = tclass;
	return ret;
}

/* The copy for a table of the stack's; NULL if there are more of them than are known. */
static const struct inet_connection_sock_af_ops *
prague_family_of(const struct inet_connection_sock_af_ops *stock)
{
	struct prague_family *family = NULL;
	unsigned int i;

	spin_lock_bh(&prague_families_lock);
	for (i = 0; i < prague_families_used; i++) {
		if (prague_families[i].stock == stock)
			family = &prague_families[i];
	}
	if (!family && i < ARRAY_SIZE(prague_families)) {
		family = &prague_families[prague_families_used++];
		family->stock = stock;
		family->ops = *stock;
		family->ops.queue_xmit = prague_queue_xmit;
	}
	spin_unlock_bh(&prague_families_lock);
	return family ? &family->ops : NULL;
}

/*
 * Send through us from now on; false if this socket cannot.  Each socket that
 * does holds the module, beside what the stack does for its congestion control.
 */
static bool prague_attach(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct inet_connection_sock_af_ops *ops = icsk->icsk_af_ops;
	struct prague_sock *ps = inet_csk_ca(sk);

	if (prague_is_our_table(ops))
		return true;
	ops = prague_family_of(ops);
	if (!ops)
		return false;
	if (!ps->attached)
		__module_get(THIS_MODULE);
	ps->attached = true;
	/* Who reads it without the lock must see what is in it. */
	smp_store_release(&icsk->icsk_af_ops, ops);
	return true;
}

static void prague_detach(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct prague_sock *ps = inet_csk_ca(sk);

	if (prague_is_our_table(icsk->icsk_af_ops))
		WRITE_ONCE(icsk->icsk_af_ops,
			   container_of(icsk->icsk_af_ops, struct prague_family, ops)->stock);
	if (ps->attached)
		module_put(THIS_MODULE);
	ps->attached = false;
}

#endif /* PRAGUE_HAVE_ECT_1_ESTABLISHED */

/* Are the private data ours, and under way? */
static bool prague_is_started(const struct sock *sk)
{
	const struct prague_sock *ps = inet_csk_ca(sk);

	return ps->self == sk && ps->started;
}

static struct prague_params prague_params(void)
{
	return (struct prague_params) {
		.rtt_virt_us = READ_ONCE(rtt_virt_us),
		.transition_rounds = READ_ONCE(transition_rounds),
		.least_rate_bytes_ps = READ_ONCE(least_rate_kbit) * (1000 / 8),
		.late_cut = READ_ONCE(late_cut),
		.classic_queue_us = READ_ONCE(classic_queue_us),
		.classic_looks = READ_ONCE(classic_looks),
	};
}

/* Is there feedback that Prague can go by? */
static bool prague_has_feedback(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_ecn_mode_accecn(tp) && !tcp_accecn_ace_fail_recv(tp) &&
	       !tcp_accecn_ace_fail_send(tp);
}

/*
 * Does something on the way wipe the codepoint out?  The stack compares what the
 * peer saw of a SYN for who is connected to, not for who connects.  A peer that
 * sends the option has counted some bytes after so many packets, if any came
 * with ECT.  One whose option is lost on the way, or who sends none, is believed.
 */
static bool prague_is_bleached(const struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	/* It is in the ACK at hand if this is not 0. */
	if (ps->ect_arrives || !tp->rx_opt.accecn)
		return false;
	ps->ect_arrives = tp->delivered_ecn_bytes[INET_ECN_ECT_1 - 1] ||
			  tp->delivered_ecn_bytes[INET_ECN_ECT_0 - 1] ||
			  tp->delivered_ecn_bytes[INET_ECN_CE - 1];
	return !ps->ect_arrives && tp->delivered - ps->delivered >= PRAGUE_BLEACHED_PKTS;
}

/* Bursts, by what the route wants and what the rate allows; and the rate itself. */
static void prague_pace(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 mss = max_t(u32, tp->mss_cache, 1);
	u64 rate_bytes_ps = min_t(u64, prague_rate_bytes_ps(&ps->cc, tcp_snd_cwnd(tp), mss),
			     READ_ONCE(sk->sk_max_pacing_rate));
	u32 burst = prague_burst_pkts(rate_bytes_ps, mss);

	WRITE_ONCE(sk->sk_pacing_rate, rate_bytes_ps);
	/* Another value than ours is that of a new route. */
	if (sk->sk_gso_max_segs != ps->gso_segs)
		ps->route_gso_segs = sk->sk_gso_max_segs;
	ps->gso_segs = min_t(u32, burst, ps->route_gso_segs);
	sk->sk_gso_max_segs = ps->gso_segs;
}

/*
 * CUBIC for a connection that cannot have Prague, with what ECN the connection has
 * negotiated.  It gets its own table of functions back and the private data of CUBIC.
 */
static void prague_fall_back(struct sock *sk)
{
	prague_detach(sk);
	memset(inet_csk(sk)->icsk_ca_priv, 0, sizeof(inet_csk(sk)->icsk_ca_priv));
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_fallback_ops);
	INET_ECN_dontxmit(sk);
	if (prague_fallback_ops.init)
		prague_fallback_ops.init(sk);
}

static void prague_stop(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);

	/* Bursts as large again as the route has them. */
	if (ps->gso_segs && sk->sk_gso_max_segs == ps->gso_segs)
		sk->sk_gso_max_segs = ps->route_gso_segs;
	ps->gso_segs = 0;
	ps->started = false;
}

/* The connection is established: ours, or CUBIC's. */
static void prague_start(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!prague_attach(sk) || !prague_has_feedback(sk)) {
		prague_fall_back(sk);
		return;
	}
	prague_init(&ps->cc, tp->tcp_mstamp, tcp_snd_cwnd(tp), tp->srtt_us >> 3,
		    tp->delivered, tp->delivered_ce, tcp_in_slow_start(tp));
	ps->cc.in_loss = inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery;
	ps->next_seq = tp->snd_nxt;
	ps->mss = tp->mss_cache;
	ps->delivered = tp->delivered;
	ps->route_gso_segs = sk->sk_gso_max_segs;
	ps->gso_segs = sk->sk_gso_max_segs;
	ps->started = true;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	prague_pace(sk);
}

/* BPF programs and setsockopt may choose us before the peer has said what ECN it knows: then
 * with the first data or ACK.
 */
static bool prague_is_too_early(const struct sock *sk)
{
	return sk->sk_state == TCP_SYN_SENT || tcp_ecn_mode_pending(tcp_sk(sk));
}

/* Has it begun? If it was too early before, it does now, when it can. */
static bool prague_has_started(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);

	if (likely(prague_is_started(sk)))
		return true;
	if (!inet_csk(sk)->icsk_ca_initialized || prague_is_too_early(sk))
		return false;
	if (ps->self != sk) {
		memset(ps, 0, sizeof(*ps));
		ps->self = sk;
	}
	prague_start(sk);
	return prague_is_started(sk);
}

static void prague_init_sock(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(*ps) > ICSK_CA_PRIV_SIZE);
	memset(ps, 0, sizeof(*ps));
	ps->self = sk;
	if (!prague_is_too_early(sk))
		prague_start(sk);
}

static void prague_release(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);

	if (ps->self == sk) {
		if (ps->started)
			prague_stop(sk);
		prague_detach(sk);
	}
	/* A socket that connects again begins with Prague again. */
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_ops);
}

/*
 * Is the sender held back by its window or by pacing?  Paced at W / R it need
 * not have a whole window under way, which is all that the stack looks at.
 */
static bool prague_is_limited(const struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_is_cwnd_limited(sk) ||
	       (!rs->is_app_limited &&
		tp->max_packets_out + tp->max_packets_out / 4 + 1 >= tcp_snd_cwnd(tp));
}

static void prague_cong_control(struct sock *sk, u32 ack, int flag,
				const struct rate_sample *rs)
{
	const struct prague_params params = prague_params();
	struct prague_sock *ps = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague_ack a;
	bool was_classic;
	u64 window_q32;

	if (!prague_has_started(sk))
		return;
	/* Another family's table (IPV6_ADDRFORM), or feedback that has failed later. */
	if (unlikely(!prague_attach(sk) || !prague_has_feedback(sk) || prague_is_bleached(sk))) {
		/* The stack sends Not-ECT then and ignores the feedback. */
		if (prague_is_bleached(sk))
			tcp_accecn_fail_mode_set(tp, TCP_ACCECN_ACE_FAIL_RECV);
		tcp_snd_cwnd_set(tp, prague_next_cwnd(&ps->cc, tcp_snd_cwnd(tp), 1));
		prague_stop(sk);
		prague_fall_back(sk);
		return;
	}
	/* A probe of the path's MTU went through; the stack has lowered its window. */
	if (unlikely(tp->mss_cache > ps->mss && ps->mss)) {
		prague_on_larger_mss(&ps->cc, ps->mss, tp->mss_cache);
		if (!tcp_in_initial_slowstart(tp))
			WRITE_ONCE(tp->snd_ssthresh, prague_window_cwnd(&ps->cc));
	}
	ps->mss = tp->mss_cache;
	a = (struct prague_ack) {
		.now_us = tp->tcp_mstamp,
		.delivered = tp->delivered,
		.ce = tp->delivered_ce,
		.acked = rs->acked_sacked,
		.rtt_us = rs->is_ack_delayed && ps->cc.rtt_us8 ? 0 :
			  min_t(long, rs->rtt_us, S32_MAX),
		.least_rtt_us = tcp_min_rtt(tp),
		.round_ended = !before(tp->snd_una, ps->next_seq),
		.limited = prague_is_limited(sk, rs),
	};

	window_q32 = ps->cc.window_q32;
	was_classic = ps->cc.is_classic;
	if (prague_on_ack(&ps->cc, &params, &a, tcp_snd_cwnd(tp),
			  tp->snd_cwnd_clamp, tp->mss_cache))
		ps->next_seq = tp->snd_nxt;
	if (unlikely(ps->cc.is_classic && !was_classic))
		atomic_inc(&prague_detections);
	/* One below infinity is what an earlier connection to this peer has left behind. */
	if (ps->cc.slow_start && prague_window_cwnd(&ps->cc) >= tp->snd_ssthresh)
		ps->cc.slow_start = false;
	tcp_snd_cwnd_set(tp, min(prague_next_cwnd(&ps->cc, tcp_snd_cwnd(tp), a.acked),
				 tp->snd_cwnd_clamp));
	/* With a decrease alone: where cwnd < ssthresh the stack takes a flow to be in slow
	 * start.
	 */
	if (ps->cc.window_q32 < window_q32)
		WRITE_ONCE(tp->snd_ssthresh, prague_window_cwnd(&ps->cc));
	prague_pace(sk);
}

/* What changes it is in on_loss and on_ack; the stack asks before these. */
static u32 prague_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

/* cwnd: packets that the stack allowed before */
static void prague_lost(struct sock *sk, u32 cwnd)
{
	struct prague_sock *ps = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	prague_on_loss(&ps->cc, cwnd);
	WRITE_ONCE(tp->snd_ssthresh, prague_window_cwnd(&ps->cc));
}

/*
 * TCP_CA_CWR is not in it: marks are answered in on_ack, and a drop by a qdisc of
 * this host, which the stack takes for one, when the packet is found missing.
 */
static void prague_set_state(struct sock *sk, u8 state)
{
	struct prague_sock *ps = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!prague_is_started(sk))
		return;
	switch (state) {
	case TCP_CA_Recovery:
		prague_lost(sk, tcp_snd_cwnd(tp));
		break;
	case TCP_CA_Loss:
		/*
		 * CA_EVENT_LOSS comes before it, but not where the stack has made a
		 * decrease for this flight, which ours by a mark is not enough for.
		 * The stack has set cwnd already.
		 */
		if (!ps->cc.in_loss)
			prague_lost(sk, prague_window_cwnd(&ps->cc));
		break;
	case TCP_CA_Open:
	case TCP_CA_Disorder:
		ps->cc.in_loss = false;
		break;
	}
}

static void prague_tx_start(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);
	const struct prague_params params = prague_params();
	const struct dst_entry *dst = __sk_dst_get(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 initial = TCP_INIT_CWND;

	/* Before the first data leaves. */
	if (!prague_has_started(sk))
		return;
	/* Marks of ACKs that came while nothing was under way are not of what leaves now. */
	ps->cc.seen_ce = tp->delivered_ce;
	if (tcp_jiffies32 - tp->lsndtime <= inet_csk(sk)->icsk_rto)
		return;
	/* What the path can take is not known any more: from the initial window, by slow start,
	 * back to W.
	 */
	prague_after_idle(&ps->cc, tp->tcp_mstamp, &params);
	if (dst && dst_metric(dst, RTAX_INITCWND))
		initial = dst_metric(dst, RTAX_INITCWND);
	if (READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle) &&
	    tcp_snd_cwnd(tp) > initial) {
		tcp_snd_cwnd_set(tp, initial);
		prague_pace(sk);
	}
}

static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_LOSS && prague_is_started(sk))
		prague_lost(sk, tcp_snd_cwnd(tcp_sk(sk)));
	else if (event == CA_EVENT_TX_START)
		prague_tx_start(sk);
}

static u32 prague_undo_cwnd(struct sock *sk)
{
	struct prague_sock *ps = inet_csk_ca(sk);

	if (!prague_is_started(sk))
		return tcp_snd_cwnd(tcp_sk(sk));
	prague_undo(&ps->cc);
	return max(tcp_snd_cwnd(tcp_sk(sk)), prague_window_cwnd(&ps->cc));
}

/* The least burst; the largest is in sk_gso_max_segs. */
static u32 prague_min_tso_segs(struct sock *sk)
{
	return 1;
}

/*
 * The form is DCTCP's, the only one with alpha that ss knows: ce_state is 1 once
 * there was a mark, and 2 while the response to marks is Reno's; alpha is in
 * 1/1024; ab_ecn and ab_tot are marked bytes and all bytes since the begin of the
 * round.
 */
static size_t prague_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct prague_sock *ps = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	if (!prague_is_started(sk))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	info->dctcp.dctcp_enabled = 1;
	info->dctcp.dctcp_ce_state = ps->cc.is_classic ? 2 : ps->cc.saw_ce;
	info->dctcp.dctcp_alpha = ps->cc.alpha_q24 >> (20 + PRAGUE_GAIN_SHIFT - 10);
	info->dctcp.dctcp_ab_ecn = tp->mss_cache * (tp->delivered_ce - ps->cc.round_ce);
	info->dctcp.dctcp_ab_tot = tp->mss_cache * (tp->delivered - ps->cc.round_delivered);
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

static struct tcp_congestion_ops prague_ops __read_mostly = {
	.init		= prague_init_sock,
	.release	= prague_release,
	.cong_control	= prague_cong_control,
	.ssthresh	= prague_ssthresh,
	.set_state	= prague_set_state,
	.cwnd_event	= prague_cwnd_event,
#ifdef PRAGUE_HAVE_CWND_EVENT_TX_START
	.cwnd_event_tx_start = prague_tx_start,
#endif
	.undo_cwnd	= prague_undo_cwnd,
	.min_tso_segs	= prague_min_tso_segs,
	.get_info	= prague_get_info,
	.flags		= TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN |
			  TCP_CONG_ECT_1_NEGOTIATION | TCP_CONG_NO_FALLBACK_RFC3168 |
			  PRAGUE_FLAGS,
	.owner		= THIS_MODULE,
	.name		= "prague",
};

/* A socket that connects again begins with Prague again. */
static void prague_release_fallback(struct sock *sk)
{
	if (prague_cubic_ops && prague_cubic_ops->release)
		prague_cubic_ops->release(sk);
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_ops);
}

/* Where there is no CUBIC. */
static struct tcp_congestion_ops prague_fallback_ops __read_mostly = {
	.release	= prague_release_fallback,
	.cong_avoid	= tcp_reno_cong_avoid,
	.ssthresh	= tcp_reno_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "prague-reno",
};

/*
 * CUBIC's table is what a socket refers to that has chosen it.  That socket stays
 * open, and holds CUBIC's module, if it is one, as long as this module lives.
 */
static void __init prague_find_cubic(void)
{
	char name[] = "cubic";

	if (sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &prague_cubic_sock)) {
		prague_cubic_sock = NULL;
		return;
	}
	if (prague_cubic_sock->ops->setsockopt(prague_cubic_sock, SOL_TCP, TCP_CONGESTION,
					       KERNEL_SOCKPTR(name), sizeof(name) - 1)) {
		pr_info("this kernel has no CUBIC; the fallback is Reno\n");
		return;
	}
	prague_cubic_ops = inet_csk(prague_cubic_sock->sk)->icsk_ca_ops;
	prague_fallback_ops = *prague_cubic_ops;
	prague_fallback_ops.release = prague_release_fallback;
	prague_fallback_ops.owner = THIS_MODULE;
	strscpy(prague_fallback_ops.name, "prague-cubic");
}

static void prague_put_cubic(void)
{
	if (prague_cubic_sock)
		sock_release(prague_cubic_sock);
}

/* Module parameters are in a range, at load and after. */
struct prague_range {
	unsigned int *value;
	unsigned int least, most;
};

static int prague_set_range(const char *text, const struct kernel_param *kp)
{
	const struct prague_range *range = kp->arg;
	unsigned int value;
	int err = kstrtouint(text, 0, &value);

	if (err || value < range->least || value > range->most) {
		pr_err("%s must be a number from %u to %u\n",
		       kp->name, range->least, range->most);
		return err ? err : -ERANGE;
	}
	WRITE_ONCE(*range->value, value);
	return 0;
}

static int prague_get_range(char *text, const struct kernel_param *kp)
{
	const struct prague_range *range = kp->arg;

	return sysfs_emit(text, "%u\n", READ_ONCE(*range->value));
}

static const struct kernel_param_ops prague_range_ops = {
	.set = prague_set_range,
	.get = prague_get_range,
};

static int prague_get_detections(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%u\n", atomic_read(&prague_detections));
}

static const struct kernel_param_ops prague_detections_ops = {
	.get = prague_get_detections,
};

static struct prague_range prague_rtt_range = { &rtt_virt_us, 0, 100000 };
static struct prague_range prague_transition_range = { &transition_rounds, 0, 1000000 };
static struct prague_range prague_rate_range = { &least_rate_kbit, 8, 1000000 };
static struct prague_range prague_queue_range = { &classic_queue_us, 0, 1000000 };
static struct prague_range prague_looks_range = { &classic_looks, 1, PRAGUE_CLASSIC_LOOKS_MOST };

module_param_cb(rtt_virt_us, &prague_range_ops, &prague_rtt_range, 0644);
MODULE_PARM_DESC(rtt_virt_us, "RTT (us) that a flow of a shorter one acts as if it had; 0: none does (default 25000)");
module_param_cb(transition_rounds, &prague_range_ops, &prague_transition_range, 0644);
MODULE_PARM_DESC(transition_rounds, "round trips after slow start until then (default 4)");
module_param_cb(least_rate_kbit, &prague_range_ops, &prague_rate_range, 0644);
MODULE_PARM_DESC(least_rate_kbit, "rate (kbit/s) that marks do not push a flow below (default 100)");
module_param_cb(classic_queue_us, &prague_range_ops, &prague_queue_range, 0644);
MODULE_PARM_DESC(classic_queue_us, "minimum standing queue (us) of a bottleneck with Classic ECN; 0: no detection (default 3000)");
module_param_cb(classic_looks, &prague_range_ops, &prague_looks_range, 0644);
MODULE_PARM_DESC(classic_looks, "round trips with marks in such a queue until the response is Reno's (default 8)");
module_param_cb(classic_detections, &prague_detections_ops, NULL, 0444);
MODULE_PARM_DESC(classic_detections, "number of times that a connection has detected a bottleneck with Classic ECN (read only)");

module_param(late_cut, bool, 0644);
MODULE_PARM_DESC(late_cut, "for experiments: a late decrease is in proportion to the time since the last one (default N)");

static int __init prague_module_init(void)
{
	int err;

	prague_find_cubic();
	err = tcp_register_congestion_control(&prague_ops);
	if (err)
		prague_put_cubic();
	return err;
}

static void __exit prague_module_exit(void)
{
	tcp_unregister_congestion_control(&prague_ops);
	/*
	 * No socket has a copy now, but setsockopt(2) reads the table of a socket
	 * that it has not locked, and may have been interrupted then.
	 */
	synchronize_rcu_tasks();
	prague_put_cubic();
}

module_init(prague_module_init);
module_exit(prague_module_exit);

#endif /* PRAGUE_HAVE_ACCECN */

MODULE_AUTHOR("The dualpi2 authors");
MODULE_DESCRIPTION("TCP Prague, a scalable congestion control for L4S (experimental)");
MODULE_LICENSE("GPL");
MODULE_VERSION(EXTRA_VERSION);
