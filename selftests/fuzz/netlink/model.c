// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel does with a message: which options dualpi2 accepts, what becomes of its configuration, and where
 * the core puts a qdisc. Written from the rules, not from the module's code.
 */
#include "fuzz.h"

#define FRAME_HDR	14	/* link-layer header of a dummy device */

struct device devices[DEVICES] = {
	[D_TBF].kind = "tbf", [D_HTB].kind = "htb", [D_HFSC].kind = "hfsc", [D_DRR].kind = "drr",
	[D_QFQ].kind = "qfq", [D_ETS].kind = "ets", [D_PRIO].kind = "prio", [D_MQ].kind = "mq",
};

struct slot slots[40];
int n_slots;
struct counts count;

/* ---- options ---- */

static struct config defaults(void)
{
	struct config c = {};
	int o;

	for (o = 0; o < OPTIONS; o++)
		c.v[o] = rules[o].def;
	return c;
}

/* Applies a nest of options to a configuration; false: it is rejected. */
static bool predict_nest(struct config *c, const uint8_t *p, int len, bool ext)
{
	const uint8_t *inner = NULL;
	bool given[OPTIONS + 1] = {};
	int inner_len = 0;

	for (; len >= NLA_HDRLEN; p += NLA_ALIGN(get16(p))) {
		int size = get16(p), type = get16(p + 2) & NLA_TYPE_MASK, o = option_of(ext, type);

		if (size < NLA_HDRLEN || size > len)
			return false;
		len -= NLA_ALIGN(size);
		if (!ext && type == TCA_DUALPI2_EXT) {
			if (inner)
				return false;
			inner = p + NLA_HDRLEN;
			inner_len = size - NLA_HDRLEN;
			continue;
		}
		if (o == OPTIONS || given[o] || size - NLA_HDRLEN != rules[o].size)
			return false;
		given[o] = true;
		c->v[o] = size == NLA_HDRLEN + 1 ? p[NLA_HDRLEN] :
			  size == NLA_HDRLEN + 8 ? get64(p + NLA_HDRLEN) : get32(p + NLA_HDRLEN);
		if (!in_range(&rules[o], c->v[o]))
			return false;
	}
	if (len > 0 || (given[O_STEP_THRESH_PKTS] && given[O_STEP_THRESH_US]))
		return false;
	if (given[O_STEP_THRESH_US])
		c->v[O_STEP_THRESH_PKTS] = 0;
	c->limit_is_set |= given[O_LIMIT];
	c->memory_is_set |= given[O_MEMORY_LIMIT];
	c->ramp_is_set |= given[O_RAMP_US];
	/* A length that is given applies to the IP packet, no longer to what the kernel counts. */
	if ((given[O_OVERHEAD] || given[O_MPU]) && !given[O_FRAMING] && !c->v[O_FRAMING])
		c->v[O_FRAMING] = TC_DUALPI2_FRAMING_NOATM;
	if (!c->v[O_FRAMING]) {
		c->v[O_OVERHEAD] = 0;
		c->v[O_MPU] = 0;
	}
	return !inner || predict_nest(c, inner, inner_len, true);
}

static bool predict(struct config *c, const uint8_t *p, int len)
{
	struct config try = *c;

	if (!predict_nest(&try, p, len, false) || (try.v[O_BYPASS] && try.v[O_BANDWIDTH]))
		return false;
	*c = try;
	return true;
}

/* Bytes that a shaper sends in a time; that of one byte is rounded to 2^-20 ns. */
static uint64_t bytes_of(uint64_t rate, uint64_t ns)
{
	return (ns << 20) / (((1000000000ULL << 20) + rate / 2) / rate);
}

/* Bytes in the limits of a shaper: 250 ms of its rate, at most 16 MiB, but at least twice the target. */
static uint64_t room_of(const struct config *c)
{
	uint64_t room = bytes_of(c->v[O_BANDWIDTH], 250000000);
	uint64_t twice = bytes_of(c->v[O_BANDWIDTH], 2000ULL * c->v[O_TARGET]);

	room = room > 16 << 20 ? 16 << 20 : room;
	return room < twice ? twice : room;
}

/* Without a shaper a measured rate may raise the limit of packets. */
bool limit_may_be_raised(const struct config *c)
{
	return !c->limit_is_set && !c->v[O_BANDWIDTH];
}

/* The minimum of the limit, packets. */
uint64_t limit_of(const struct config *c)
{
	uint64_t limit;

	if (c->limit_is_set || !c->v[O_BANDWIDTH])
		return c->v[O_LIMIT];
	limit = room_of(c) / 64;
	return limit < 1000 ? 1000 : limit > UINT32_MAX ? UINT32_MAX : limit;
}

/* The minimum of the memory limit, bytes, for frames of so many bytes. */
static uint64_t memory_of(const struct config *c, uint64_t frame)
{
	/* (2^32 - 2) * (2^32 - 1) fits. */
	uint64_t memory = 2 * frame * c->v[O_LIMIT];

	if (c->memory_is_set)
		return c->v[O_MEMORY_LIMIT];
	if (c->v[O_BANDWIDTH] && !c->limit_is_set) {
		memory = 2 * room_of(c);
		memory = memory < 512 * frame ? 512 * frame : memory;
	}
	return memory > UINT32_MAX ? UINT32_MAX : memory;
}

/*
 * The options as a dump shows them for an MTU. Limits that follow a measured rate are as shown, if that is more than
 * the default.
 */
int encode(const struct config *c, uint32_t mtu, const uint8_t *shown, int len, uint8_t *buf)
{
	uint64_t frame = (uint64_t)mtu + FRAME_HDR;
	uint8_t *p = buf, *ext = NULL;
	int o;

	frame = frame < 60 ? 60 : frame > INT32_MAX ? INT32_MAX : frame;
	for (o = 0; o < OPTIONS; o++) {
		uint64_t value = c->v[o];

		if (rules[o].ext && !ext) {
			ext = p;
			p += NLA_HDRLEN;
		}
		if (o == (c->v[O_STEP_THRESH_PKTS] ? O_STEP_THRESH_US : O_STEP_THRESH_PKTS))
			continue;
		if (o == O_LIMIT)
			value = limit_of(c);
		if (o == O_MEMORY_LIMIT)
			value = memory_of(c, frame);
		/* Both come first, with a header of 4 bytes each. */
		if (limit_may_be_raised(c) && len >= 16 &&
		    (o == O_LIMIT || (o == O_MEMORY_LIMIT && !c->memory_is_set)) &&
		    get32(shown + (o == O_LIMIT ? 4 : 12)) > value)
			value = get32(shown + (o == O_LIMIT ? 4 : 12));
		if (o == O_RAMP_US && !c->ramp_is_set)
			value = c->v[O_STEP_THRESH_US] * 40 / 100;
		p = put_nla(p, rules[o].type, &value, rules[o].size);
	}
	*(uint16_t *)ext = p - ext;
	*(uint16_t *)(ext + 2) = TCA_DUALPI2_EXT | NLA_F_NESTED;
	return p - buf;
}

/* ---- places ---- */

static int add_slot(int dev, int up, uint32_t clid, bool leaf, bool any_minor)
{
	slots[n_slots] = (struct slot) {
		.dev = dev, .up = up, .clid = clid, .leaf = leaf, .any_minor = any_minor,
	};
	return n_slots++;
}

/* The places on each device: the root, its classes, and for some a parent below a tbf, so that it peeks. */
void make_slots(void)
{
	int dev, root, mid, n;

	n_slots = 0;
	for (dev = 0; dev < DEVICES; dev++) {
		devices[dev].first = n_slots;
		root = add_slot(dev, -1, TC_H_ROOT, dev == D_ROOT, false);
		switch (dev) {
		case D_ROOT:
			break;
		case D_TBF:
			add_slot(dev, root, 0x10001, true, true);
			break;
		case D_HTB:
		case D_HFSC:
			add_slot(dev, root, 0x10010, true, false);
			add_slot(dev, root, 0x10020, true, false);
			break;
		case D_MQ:
			for (n = 1; n <= 4; n++)
				add_slot(dev, root, 0x10000 + n, true, false);
			break;
		default:
			mid = add_slot(dev, root, 0x10001, false, true);
			for (n = 1; n <= (dev == D_DRR || dev == D_QFQ ? 2 : 3); n++)
				add_slot(dev, mid, 0x20000 + n, true, false);
		}
		devices[dev].end = n_slots;
	}
}

struct device *device_of(int ifindex)
{
	return ifindex >= IFINDEX && ifindex < IFINDEX + DEVICES ? &devices[ifindex - IFINDEX] : NULL;
}

struct slot *slot_of(const struct device *dev, uint32_t clid)
{
	int n;

	for (n = dev->first; n < dev->end; n++) {
		struct slot *s = &slots[n];

		if (s->clid == clid || (s->any_minor && TC_H_MAJ(clid) == TC_H_MAJ(s->clid) && clid != TC_H_ROOT))
			return s;
	}
	return NULL;
}

static bool slot_intact(const struct slot *s)
{
	for (; s->up >= 0; s = &slots[s->up])
		if (slots[s->up].state != OTHER && slots[s->up].state != UNKNOWN)
			return false;
	return true;
}

static bool is_below(const struct slot *s, const struct slot *top)
{
	while (s->up >= 0) {
		s = &slots[s->up];
		if (s == top)
			return true;
	}
	return false;
}

/* Without a top, all of the device. */
static void set_below(const struct device *dev, const struct slot *top, enum slot_state state)
{
	int n;

	for (n = dev->first; n < dev->end; n++)
		if (!top || is_below(&slots[n], top))
			slots[n].state = state;
}

static void set_unsure(const struct device *dev, struct slot *s)
{
	count.unsure++;
	if (s)
		s->state = UNKNOWN;
	set_below(dev, s, UNKNOWN);
}

/* Is the qdisc there of this kind? No kind in a message is any kind. */
static bool kind_fits(const struct slot *s, const char *kind)
{
	return !kind || !strcmp(kind, s->state == DUALPI2 ? "dualpi2" : s->kind);
}

static bool handle_unknown(const struct slot *s)
{
	return s->state == UNKNOWN || (s->state != NONE && !s->handle);
}

static struct slot *slot_with_handle(const struct device *dev, uint32_t handle, bool *unsure)
{
	int n;

	for (n = dev->first; n < dev->end; n++) {
		if (handle_unknown(&slots[n]))
			*unsure = true;
		else if (slots[n].state != NONE && slots[n].handle == handle)
			return &slots[n];
	}
	return NULL;
}

enum path { REFUSED, CREATE, CHANGE, UNSURE };

/* What the core does with RTM_NEWQDISC, whether or not it succeeds. */
static enum path path_of(const struct tc_msg *msg, uint16_t flags, struct slot **target)
{
	uint32_t parent = msg->t.tcm_parent, handle = msg->t.tcm_handle;
	struct slot *q;
	bool unsure = false;

	if (!parent) {
		q = handle ? slot_with_handle(msg->dev, handle, &unsure) : NULL;
		if (!q)
			return unsure ? UNSURE : REFUSED;
		goto change;
	}
	q = slot_of(msg->dev, parent);
	*target = q;
	if (!q || !slot_intact(q) || handle_unknown(q))
		return UNSURE;
	if (q->state == NONE)
		q = NULL;
	if (!q || !handle || q->handle != handle) {
		if (handle) {
			if ((q && !(flags & NLM_F_REPLACE)) || TC_H_MIN(handle))
				return REFUSED;
			/* Another place's qdisc is moved, or that is rejected. */
			if (slot_with_handle(msg->dev, handle, &unsure) || unsure)
				return UNSURE;
			goto create;
		}
		if (!q || ((flags & NLM_F_CREATE) && (flags & NLM_F_REPLACE) &&
			   ((flags & NLM_F_EXCL) || !kind_fits(q, msg->kind))))
			goto create;
	}
change:
	*target = q;
	return (flags & NLM_F_EXCL) || !kind_fits(q, msg->kind) ? REFUSED : CHANGE;
create:
	return (flags & NLM_F_CREATE) ? CREATE : REFUSED;
}

/* ---- messages and their answers ---- */

bool tc_parse(struct tc_msg *msg, const uint8_t *data, int len)
{
	int size, type;

	memset(msg, 0, sizeof(*msg));
	if (len < (int)sizeof(msg->t))
		return false;
	memcpy(&msg->t, data, sizeof(msg->t));
	msg->dev = device_of(msg->t.tcm_ifindex);
	data += sizeof(msg->t);
	for (len -= sizeof(msg->t); len >= NLA_HDRLEN; len -= NLA_ALIGN(size), data += NLA_ALIGN(size)) {
		size = get16(data);
		type = get16(data + 2) & NLA_TYPE_MASK;
		if (size < NLA_HDRLEN || size > len)
			break;
		if (type < ATTRS) {
			msg->p[type] = data + NLA_HDRLEN;
			msg->len[type] = size - NLA_HDRLEN;
		}
	}
	if (msg->p[TCA_KIND]) {
		len = msg->len[TCA_KIND];
		while (len && !msg->p[TCA_KIND][len - 1])
			len--;
		memcpy(msg->name, msg->p[TCA_KIND], len > IFNAMSIZ - 1 ? IFNAMSIZ - 1 : len);
		msg->kind = msg->name;
	}
	return true;
}

const char *hex(const uint8_t *p, int len)
{
	static char texts[4][2100];
	static int turn;
	char *text = texts[turn++ & 3];
	int n;

	text[0] = 0;
	for (n = 0; n < len && n < 1000; n++)
		sprintf(text + 2 * n, "%02x", p[n]);
	return text;
}

static void new_options(struct slot *s, const struct config *cfg, const struct device *dev)
{
	s->cfg = *cfg;
	s->was_bypass |= cfg->v[O_BYPASS];
	s->was_qprotect |= !!cfg->v[O_QPROTECT];
	s->mtus[0] = dev->mtu;
	s->n_mtus = 1;
	s->trimmed = true;
}

/* Of all rejections this one alone depends on the configuration before. */
static bool is_about_before(const char *text)
{
	return strstr(text, "bypass conflicts with bandwidth");
}

/* After this the core may still reject the message; the text stays. */
static bool is_warning(const char *text)
{
	return strstr(text, "bandwidth in a child of");
}

static void model_newqdisc(struct tc_msg *msg, uint16_t flags, int error, const char *text)
{
	bool by_dualpi2 = text && !strncmp(text, "dualpi2: ", 9) && !is_warning(text), good = true;
	const uint8_t *options = msg->p[TCA_OPTIONS];
	struct config cfg = defaults();
	struct slot *target = NULL;
	enum path path = UNSURE;

	if (msg->dev)
		path = path_of(msg, flags, &target);
	if (path == CHANGE && target->state == DUALPI2)
		cfg = target->cfg;
	if (options)
		good = predict(&cfg, options, msg->len[TCA_OPTIONS]);
	if (error && by_dualpi2) {
		count.refused_by_dualpi2 += !!msg->dev;
		if (error != -EINVAL)
			fault("refused with error %d, not EINVAL: %s", error, text);
		if (good && (msg->dev || options) &&
		    !(is_about_before(text) && (path == UNSURE || (target && target->state == UNKNOWN))))
			fault("good options are refused: %s", text);
	}
	if (!msg->dev)
		return;
	if (error) {
		/* The core changes a size table last, when the options are in. */
		if (target && target->state == DUALPI2 && options && msg->p[TCA_STAB] && !by_dualpi2)
			set_unsure(msg->dev, target);
		return;
	}
	if (path == UNSURE || path == REFUSED) {
		set_unsure(msg->dev, target);
		return;
	}
	if (path == CHANGE && target->state != DUALPI2) {
		set_below(msg->dev, target, UNKNOWN);
		return;
	}
	if (path == CREATE) {
		target->handle = msg->t.tcm_handle;
		set_below(msg->dev, target, NONE);
		target->state = msg->kind && !strcmp(msg->kind, "dualpi2") ? DUALPI2 : OTHER;
		strcpy(target->kind, msg->name);
		target->was_bypass = false;
		target->was_qprotect = false;
		if (target->state == OTHER)
			return;
	}
	if (!good)
		fault("bad options are accepted: %s", hex(options, msg->len[TCA_OPTIONS]));
	if (path == CREATE)
		count.creations++;
	else
		count.changes++;
	if (path == CREATE || options)
		new_options(target, &cfg, msg->dev);
}

static void model_newlink(const uint8_t *data, int len)
{
	struct ifinfomsg ifi;
	struct device *dev;
	const uint8_t *p;
	int n;

	if (len < (int)sizeof(ifi))
		return;
	memcpy(&ifi, data, sizeof(ifi));
	dev = device_of(ifi.ifi_index);
	for (p = data + sizeof(ifi); dev && p + NLA_HDRLEN <= data + len; p += NLA_ALIGN(get16(p))) {
		if (get16(p + 2) != IFLA_MTU)
			continue;
		dev->mtu = get32(p + NLA_HDRLEN);
		for (n = dev->first; n < dev->end; n++) {
			struct slot *s = &slots[n];

			s->trimmed = false;
			if (s->n_mtus == MTUS)
				s->n_mtus = 0;
			if (s->n_mtus)
				s->mtus[s->n_mtus++] = dev->mtu;
		}
	}
}

/* A message of the fuzzer was answered. */
void model_answer(const struct step *step, const uint8_t *data, int error, const char *text)
{
	struct tc_msg msg;
	struct slot *s;

	if (text && !strncmp(text, "dualpi2: ", 9) && step->type != RTM_NEWQDISC)
		fault("type %u got an answer of dualpi2: %s", step->type, text);
	if (step->type == RTM_NEWLINK && !error)
		model_newlink(data, step->len);
	if (!tc_parse(&msg, data, step->len)) {
		if (step->type == RTM_NEWQDISC && !error && step->len)
			fault("a message of %u bytes is accepted", step->len);
		return;
	}
	if (step->type == RTM_NEWQDISC) {
		model_newqdisc(&msg, step->flags, error, text);
		return;
	}
	if (!msg.dev)
		return;
	if (step->type == RTM_DELQDISC && !error) {
		s = slot_of(msg.dev, msg.t.tcm_parent);
		if (s) {
			s->state = NONE;
			set_below(msg.dev, s, NONE);
		} else {
			set_unsure(msg.dev, NULL);
		}
	} else if (step->type == RTM_DELTCLASS && !error) {
		/* A class of the parent, and with it what was in it. */
		set_unsure(msg.dev, slot_of(msg.dev, msg.t.tcm_handle));
	} else if (step->type == RTM_GETQDISC && step->oracle && error != -ENOMEM && error != -ENOBUFS) {
		/* A reply to this would have been checked, and not come here. */
		s = slot_of(msg.dev, msg.t.tcm_parent);
		if (s && s->state == DUALPI2)
			fault("the dualpi2 at %x is gone: error %d %s", s->clid, error, text ? text : "");
		if (s)
			s->state = NONE;
	}
}

/* Packets come and go: a limit that was just set need not hold any more. */
void model_not_trimmed(void)
{
	int n;

	for (n = 0; n < n_slots; n++)
		slots[n].trimmed = false;
}
