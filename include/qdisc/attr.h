/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink attributes that are numbers of a qdisc's configuration: parse a request into a
 * copy of the configuration, and dump the configuration, both from one table.
 */
#ifndef _QDISC_ATTR_H
#define _QDISC_ATTR_H

#include <linux/build_bug.h>
#include <linux/netlink.h>
#include <linux/nospec.h>
#include <linux/types.h>
#include <net/netlink.h>

/**
 * struct dualpi2_attr_spec - an attribute that is a number of the configuration
 * @len: length of attribute and number, 1, 4 or 8 bytes; 0: no such attribute
 * @offset: offset of the number in the configuration, bytes
 * @or_zero: 0 is in range, too
 * @min: minimum; below 0: the number is signed and has 4 bytes
 * @max: maximum
 * @range: message for a number out of range; NULL: every number is in range
 * @length: message for an attribute of another length
 * @twice: message for a second attribute of the type
 */
struct dualpi2_attr_spec {
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
 * struct dualpi2_attr_table - the attributes of one nest
 * @specs: by type
 * @max: maximum type in @specs
 * @nest: type of an attribute that the caller parses, may exceed @max; 0: none
 * @nest_twice: message for a second attribute of the type @nest
 * @unknown: message for another type
 * @left_over: message for bytes after the last attribute
 */
struct dualpi2_attr_table {
	const struct dualpi2_attr_spec *specs;
	int max;
	int nest;
	const char *nest_twice;
	const char *unknown;
	const char *left_over;
};

/* Numbers of one byte may be bool. */
static_assert(sizeof(bool) == 1);

/* @_text: the message for a number out of range, or NULL */
#define DUALPI2_ATTR_SPEC_TEXT(_who, _config, _zero, _member, _min,	\
			       _max, _name, _text) {			\
	.len = sizeof(((_config *)0)->_member),				\
	.offset = offsetof(_config, _member),				\
	.or_zero = (_zero),						\
	.min = (_min),							\
	.max = (_max),							\
	.range = (_text),						\
	.length = _who ": attribute of wrong length: " _name,		\
	.twice = _who ": attribute given twice: " _name,		\
}

#define DUALPI2_ATTR_SPEC(_who, _config, _zero, _member, _min, _max,	\
			  _name, _range)				\
	DUALPI2_ATTR_SPEC_TEXT(_who, _config, _zero, _member, _min, _max, \
			       _name,					\
			       _who ": " _name " must be " _range)

/* Report why a request is rejected, and the attribute that caused it. */
static inline int dualpi2_reject(struct netlink_ext_ack *extack,
				 const struct nlattr *attr, const char *why)
{
	if (extack) {
		extack->_msg = why;
		extack->bad_attr = attr;
	}
	return -EINVAL;
}

/* Set one number of @cfg.
 *
 * Return: 0, or -EINVAL with @cfg unchanged.
 */
static inline int dualpi2_parse_attr(const struct nlattr *attr,
				     const struct dualpi2_attr_spec *spec,
				     void *cfg, struct netlink_ext_ack *extack)
{
	bool is_signed = spec->len == sizeof(s32) && spec->min < 0;
	void *to = cfg + spec->offset;
	bool in_range;
	u64 value;

	if (nla_len(attr) != spec->len)
		return dualpi2_reject(extack, attr, spec->length);
	if (spec->len == sizeof(u64))
		value = nla_get_u64(attr);
	else if (spec->len == sizeof(u8))
		value = nla_get_u8(attr);
	else
		value = is_signed ? (u64)nla_get_s32(attr) : nla_get_u32(attr);
	/* A set of bits has no range. */
	if (spec->len == sizeof(u64) && !spec->range)
		in_range = true;
	else if (is_signed)
		in_range = (s64)value >= spec->min && (s64)value <= spec->max;
	else
		in_range = (value >= (u64)spec->min &&
			    value <= (u64)spec->max) ||
			   (spec->or_zero && !value);
	if (!in_range)
		return dualpi2_reject(extack, attr, spec->range);
	if (spec->len == sizeof(u64))
		*(u64 *)to = value;
	else if (spec->len == sizeof(u8))
		*(u8 *)to = value;
	else
		*(u32 *)to = value;
	return 0;
}

/* Set the numbers of one nest.  An attribute may come once: of two values for one
 * number, the user cannot know which one takes effect.
 *
 * Return: 0 and the types that came in *seen, bit 0 for &dualpi2_attr_table.nest,
 * or a negative error number.
 */
static inline int dualpi2_parse_attrs(const struct nlattr *nest,
				      const struct dualpi2_attr_table *of,
				      void *cfg, u32 *seen,
				      struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	int rem, err;

	*seen = 0;
	nla_for_each_nested(attr, nest, rem) {
		bool is_nest = of->nest && nla_type(attr) == of->nest;
		int type = is_nest ? 0 : nla_type(attr);

		if (type > of->max)
			return dualpi2_reject(extack, attr, of->unknown);
		type = array_index_nospec(type, of->max + 1);
		if (!is_nest && !of->specs[type].len)
			return dualpi2_reject(extack, attr, of->unknown);
		if (*seen & BIT(type))
			return dualpi2_reject(extack, attr, type ?
					      of->specs[type].twice :
					      of->nest_twice);
		*seen |= BIT(type);
		if (!type)
			continue;
		err = dualpi2_parse_attr(attr, &of->specs[type], cfg, extack);
		if (err)
			return err;
	}
	if (rem > 0)
		return dualpi2_reject(extack, nest, of->left_over);
	return 0;
}

/* Dump the numbers of one nest in the order of their types, without type @omit. */
static inline int dualpi2_put_attrs(struct sk_buff *skb,
				    const struct dualpi2_attr_table *of,
				    const void *cfg, int omit)
{
	const struct dualpi2_attr_spec *spec;
	int type;

	for (type = 1; type <= of->max; type++) {
		spec = &of->specs[type];
		if (spec->len && type != omit &&
		    nla_put(skb, type, spec->len, cfg + spec->offset))
			return -EMSGSIZE;
	}
	return 0;
}

#endif /* _QDISC_ATTR_H */
