/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink attributes that set numbers of a qdisc's configuration: a table says for
 * each its place, its range and what a user is told who breaks a rule.
 *
 * The configuration is a copy; the qdisc takes it over once all of it is right.
 */
#ifndef _GLUE_DUALPI2_KNOB_H
#define _GLUE_DUALPI2_KNOB_H

#include <linux/build_bug.h>
#include <linux/netlink.h>
#include <linux/nospec.h>
#include <linux/types.h>
#include <net/netlink.h>

/**
 * struct dualpi2_knob - an attribute that sets a number of the configuration
 * @len: its length in bytes, 1, 4 or 8; 0: no knob
 * @offset: of the number in the configuration, of the same length
 * @or_zero: 0 is in range, too
 * @min: least value; below 0: the number is signed, of 4 bytes
 * @max: greatest value
 * @range: what a user is told who left the range; NULL: any number is in range
 * @length: who sent another length
 * @twice: who sent it twice
 */
struct dualpi2_knob {
	u8 len;
	u8 offset;
	bool or_zero;
	s64 min;
	s64 max;
	const char *range;
	const char *length;
	const char *twice;
};

/**
 * struct dualpi2_knobs - the attributes of one nest
 * @knobs: by type
 * @max: greatest type in it
 * @nest: type of an attribute that is the caller's, beyond @max perhaps; 0: none
 * @nest_twice: what a user is told who sent that twice
 * @unknown: who sent a type that there is not
 * @left_over: who sent less than an attribute at the end
 */
struct dualpi2_knobs {
	const struct dualpi2_knob *knobs;
	int max;
	int nest;
	const char *nest_twice;
	const char *unknown;
	const char *left_over;
};

/* Numbers of one byte may be bool. */
static_assert(sizeof(bool) == 1);

#define DUALPI2_KNOB_OF(_who, _config, _zero, _member, _min, _max, _name,	\
			_range)						\
	DUALPI2_KNOB_WITH(_who, _config, _zero, _member, _min, _max, _name,	\
			  _who ": " _name " must be " _range)

/* The same with the whole message, or NULL. */
#define DUALPI2_KNOB_WITH(_who, _config, _zero, _member, _min, _max, _name,	\
			  _text) {					\
	.len = sizeof(((_config *)0)->_member),				\
	.offset = offsetof(_config, _member),				\
	.or_zero = (_zero),						\
	.min = (_min),							\
	.max = (_max),							\
	.range = (_text),						\
	.length = _who ": attribute of wrong length: " _name,		\
	.twice = _who ": attribute given twice: " _name,		\
}

/* Say why a request is refused, and by which attribute. */
static inline int dualpi2_refuse(struct netlink_ext_ack *extack,
				 const struct nlattr *attr, const char *why)
{
	if (extack) {
		extack->_msg = why;
		extack->bad_attr = attr;
	}
	return -EINVAL;
}

/* Take over one number.
 *
 * Return: 0, or -EINVAL and @cfg as it was.
 */
static inline int dualpi2_parse_knob(const struct nlattr *attr,
				     const struct dualpi2_knob *knob, void *cfg,
				     struct netlink_ext_ack *extack)
{
	void *to = cfg + knob->offset;
	bool in_range;
	u64 value;

	if (nla_len(attr) != knob->len)
		return dualpi2_refuse(extack, attr, knob->length);
	if (knob->len == sizeof(u64))
		value = nla_get_u64(attr);
	else if (knob->len == sizeof(u8))
		value = nla_get_u8(attr);
	else
		value = knob->min < 0 ? (u64)nla_get_s32(attr) :
					nla_get_u32(attr);
	if (!knob->range)
		in_range = true;
	else if (knob->min < 0)
		in_range = (s64)value >= knob->min && (s64)value <= knob->max;
	else
		in_range = (value >= (u64)knob->min &&
			    value <= (u64)knob->max) ||
			   (knob->or_zero && !value);
	if (!in_range)
		return dualpi2_refuse(extack, attr, knob->range);
	if (knob->len == sizeof(u64))
		*(u64 *)to = value;
	else if (knob->len == sizeof(u8))
		*(u8 *)to = value;
	else
		*(u32 *)to = value;
	return 0;
}

/* Take over the numbers of one nest.  Each may come once: two values for one are a
 * mistake, and the user cannot know which one would count.
 *
 * Return: 0 and the types that came in *seen, bit 0 for &dualpi2_knobs.nest, or a
 * negative error number.
 */
static inline int dualpi2_parse_knobs(const struct nlattr *nest,
				      const struct dualpi2_knobs *of, void *cfg,
				      u32 *seen, struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	int rem, err;

	*seen = 0;
	nla_for_each_nested(attr, nest, rem) {
		int type = nla_type(attr);

		if (of->nest && type == of->nest)
			type = 0;
		else if (type > of->max || !of->knobs[type].len)
			return dualpi2_refuse(extack, attr, of->unknown);
		type = array_index_nospec(type, of->max + 1);
		if (*seen & BIT(type))
			return dualpi2_refuse(extack, attr, type ?
					      of->knobs[type].twice :
					      of->nest_twice);
		*seen |= BIT(type);
		if (!type)
			continue;
		err = dualpi2_parse_knob(attr, &of->knobs[type], cfg, extack);
		if (err)
			return err;
	}
	if (rem > 0)
		return dualpi2_refuse(extack, nest, of->left_over);
	return 0;
}

/* Dump the numbers of one nest, by type, apart from the type @omit; 0: all. */
static inline int dualpi2_put_knobs(struct sk_buff *skb,
				    const struct dualpi2_knobs *of,
				    const void *cfg, int omit)
{
	const struct dualpi2_knob *knob;
	int type;

	for (type = 1; type <= of->max; type++) {
		knob = &of->knobs[type];
		if (knob->len && type != omit &&
		    nla_put(skb, type, knob->len, cfg + knob->offset))
			return -EMSGSIZE;
	}
	return 0;
}

#endif /* _GLUE_DUALPI2_KNOB_H */
