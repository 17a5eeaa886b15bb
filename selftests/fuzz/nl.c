// SPDX-License-Identifier: GPL-2.0-only
/* Netlink by hand: messages, attributes, and batches with their answers. */
#define _GNU_SOURCE
#include "nl.h"
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

_Thread_local uint64_t rnd_state;
_Thread_local struct msg m;

uint64_t rnd64(void)
{
	uint64_t z = (rnd_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(2);
}

uint8_t *put_nla(uint8_t *p, uint16_t type, const void *data, uint16_t len)
{
	uint16_t size = NLA_HDRLEN + len;

	memcpy(p, &size, 2);
	memcpy(p + 2, &type, 2);
	if (len)
		memcpy(p + NLA_HDRLEN, data, len);
	memset(p + size, 0, NLA_ALIGN(size) - size);
	return p + NLA_ALIGN(size);
}

const uint8_t *find(const uint8_t *p, int len, int type, int *found)
{
	*found = 0;
	while (p && len >= NLA_HDRLEN) {
		int size = get16(p);

		if (size < NLA_HDRLEN || size > len)
			return NULL;
		if ((get16(p + 2) & NLA_TYPE_MASK) == type) {
			*found = size - NLA_HDRLEN;
			return p + NLA_HDRLEN;
		}
		p += NLA_ALIGN(size);
		len -= NLA_ALIGN(size);
	}
	return NULL;
}

void msg_begin(uint16_t type, uint16_t flags, const void *head, int len)
{
	m.type = type;
	m.flags = flags;
	m.len = len;
	memcpy(m.data, head, len);
}

void msg_tc(uint16_t type, uint16_t flags, int ifindex, uint32_t handle, uint32_t parent, uint32_t info)
{
	struct tcmsg tcm = {
		.tcm_ifindex = ifindex, .tcm_handle = handle, .tcm_parent = parent, .tcm_info = info,
	};

	msg_begin(type, flags, &tcm, sizeof(tcm));
}

/* What does not fit is left out. */
void attr(uint16_t type, const void *data, int len)
{
	if (m.len + NLA_HDRLEN + NLA_ALIGN(len) <= MSG_MAX - 64)
		m.len = put_nla(m.data + m.len, type, data, len) - m.data;
}

void attr_str(uint16_t type, const char *text)
{
	attr(type, text, strlen(text) + 1);
}

void attr32(uint16_t type, uint32_t value)
{
	attr(type, &value, sizeof(value));
}

int nest(uint16_t type)
{
	int at = m.len;

	attr(type, NULL, 0);
	return at;
}

void nest_end(int at)
{
	*(uint16_t *)(m.data + at) = m.len - at;
}

void nl_open(struct nl *nl, int protocol)
{
	int one = 1, room = 16 << 20;

	nl->len = 0;
	nl->first = 1;
	nl->next = 1;
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (nl->fd < 0 ||
	    setsockopt(nl->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(nl->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)) ||
	    setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)))
		die("cannot open a netlink socket: %m");
}

void nl_add(struct nl *nl, uint16_t type, uint16_t flags, const void *data, uint32_t len)
{
	struct nlmsghdr h = {
		.nlmsg_len = NLMSG_HDRLEN + len,
		.nlmsg_type = type,
		.nlmsg_flags = flags | NLM_F_REQUEST | NLM_F_ACK,
		.nlmsg_seq = nl->next++,
	};
	uint8_t *p = nl->buf + nl->len;

	memcpy(p, &h, sizeof(h));
	memcpy(p + NLMSG_HDRLEN, data, len);
	memset(p + NLMSG_HDRLEN + len, 0, 3);
	nl->len += NLMSG_ALIGN(h.nlmsg_len);
}

static void one_answer(struct nl *nl, const struct nlmsghdr *h, nl_answer answer, void *arg, uint32_t first)
{
	const uint8_t *data = NLMSG_DATA(h);
	const char *text = NULL;
	int error, found;

	if (h->nlmsg_seq != nl->first)
		fault("answer to message %u, not to %u", h->nlmsg_seq - first, nl->first - first);
	if (h->nlmsg_type != NLMSG_ERROR && h->nlmsg_type != NLMSG_DONE) {
		answer(arg, nl->first - first, h, false, 0, NULL);
		return;
	}
	error = (int32_t)get32(data);
	if (h->nlmsg_type == NLMSG_DONE)
		error = error < 0 ? error : 0;
	else if (h->nlmsg_flags & NLM_F_ACK_TLVS)
		text = (const char *)find(data + 4 + NLMSG_HDRLEN,
					  h->nlmsg_len - 2 * NLMSG_HDRLEN - 4, NLMSGERR_ATTR_MSG, &found);
	nl->first++;
	answer(arg, nl->first - 1 - first, h, true, error, text);
}

/* Sends what was added and takes in all answers. */
void nl_flush(struct nl *nl, nl_answer answer, void *arg)
{
	static _Thread_local _Alignas(8) uint8_t in[BATCH][REPLY_MAX];
	struct mmsghdr heads[BATCH];
	struct iovec pieces[BATCH];
	uint32_t first = nl->first;
	int got, n;

	if (nl->len && send(nl->fd, nl->buf, nl->len, 0) < 0)
		fault("cannot send %zu bytes: %m", nl->len);
	nl->len = 0;
	while (nl->first != nl->next) {
		for (n = 0; n < BATCH; n++) {
			pieces[n] = (struct iovec) { in[n], REPLY_MAX };
			heads[n].msg_hdr = (struct msghdr) { .msg_iov = &pieces[n], .msg_iovlen = 1 };
		}
		/* The kernel does all in send(): what is not there now never comes. */
		got = recvmmsg(nl->fd, heads, BATCH, MSG_DONTWAIT, NULL);
		if (got <= 0)
			fault("message %u of a batch is not answered: %s", nl->first - first, strerror(errno));
		for (n = 0; n < got; n++) {
			const struct nlmsghdr *h = (const void *)in[n];
			unsigned int left = heads[n].msg_len;

			if (heads[n].msg_hdr.msg_flags & MSG_TRUNC)
				fault("an answer longer than a page");
			for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
				one_answer(nl, h, answer, arg, first);
		}
	}
}
