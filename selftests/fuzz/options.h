/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of dualpi2 for the fuzzers: attribute, length, range, default, keyword of tc, key of tc's JSON.
 *
 * From the list of options, <linux/dualpi2_options.h>; net/messages.py has the numbers a second time.
 */
#ifndef FUZZ_OPTIONS_H
#define FUZZ_OPTIONS_H

#include <linux/dualpi2.h>
#include <linux/dualpi2_options.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_ROW(...)
#define ENUM_ROW(attr, ...)	O_##attr = TCA_DUALPI2_##attr - 1,
#define EXT_ENUM_ROW(attr, ...)						\
	O_##attr = TCA_DUALPI2_SPLIT_GSO + TCA_DUALPI2_EXT_##attr - 1 -	\
		   (TCA_DUALPI2_EXT_##attr > TCA_DUALPI2_EXT_PAD),

/* In the order of a dump. */
enum {
	DUALPI2_OPTIONS(ENUM_ROW, ENUM_ROW, NO_ROW, NO_ROW)
	DUALPI2_EXT_OPTIONS(EXT_ENUM_ROW, EXT_ENUM_ROW, NO_ROW, NO_ROW)
	OPTIONS = TCA_DUALPI2_SPLIT_GSO + TCA_DUALPI2_EXT_MAX - 1
};

struct rule {
	bool ext;		/* in TCA_DUALPI2_EXT */
	uint8_t type, size;
	int64_t min;		/* below 0: the number is signed */
	uint64_t max, def;
	uint32_t gap;		/* values from 1 to gap - 1 are rejected, too */
	const char *keyword;	/* with a value */
	const char *json;	/* of an integer */
};

/* The length of an attribute, from its kind. */
enum {
	LENGTH_OF_TIME = 4, LENGTH_OF_PACKETS = 4, LENGTH_OF_BYTES = 4, LENGTH_OF_LENGTH = 4, LENGTH_OF_RATE = 8,
	LENGTH_OF_GAIN = 4, LENGTH_OF_NUMBER = 1, LENGTH_OF_PERCENT = 1, LENGTH_OF_DSCPS = 8,
};

/* Whether tc's JSON has an integer. */
enum {
	INTEGER_TIME = 1, INTEGER_PACKETS = 1, INTEGER_BYTES = 1, INTEGER_LENGTH = 1, INTEGER_RATE = 1,
	INTEGER_GAIN = 0, INTEGER_NUMBER = 1, INTEGER_PERCENT = 1, INTEGER_DSCPS = 0,
};

/* Whether 0 is in range although it is below the minimum. */
enum { ZERO_PLAIN = 0, ZERO_HIDDEN = 0, ZERO_ALLOWED = 1, ZERO_KEYWORD = 1, ZERO_DEFAULT = 0 };

#define VALUE_RULE(e, a, attr, least, most, dflt, kind, zero, word, key, line)	\
	[O_##attr] = { .ext = e, .type = a, .size = LENGTH_OF_##kind,		\
		       .min = ZERO_##zero ? 0 : least##LL,			\
		       .max = LENGTH_OF_##kind == 8 && most##LL == 63 ? UINT64_MAX : most##ULL, \
		       .def = dflt, .gap = ZERO_##zero ? least##LL : 0,		\
		       .keyword = (line) ? word : NULL,				\
		       .json = INTEGER_##kind ? key : NULL },
#define VALUE(attr, member, min, max, def, kind, zero, range, unit, word, key, line) \
	VALUE_RULE(false, TCA_DUALPI2_##attr, attr, min, max, def, kind, zero, word, key, line)
#define EXT_VALUE(attr, member, min, max, def, kind, zero, range, unit, word, key, line) \
	VALUE_RULE(true, TCA_DUALPI2_EXT_##attr, attr, min, max, def, kind, zero, word, key, line)
#define CHOICE(attr, member, least, most, dflt, range, word)			\
	[O_##attr] = { .type = TCA_DUALPI2_##attr, .size = 1, .min = least, .max = most, .def = dflt },
#define EXT_CHOICE(attr, member, least, most, dflt, range, word)		\
	[O_##attr] = { .ext = true, .type = TCA_DUALPI2_EXT_##attr, .size = 1, .min = least, .max = most, .def = dflt },

static const struct rule rules[OPTIONS] = {
	DUALPI2_OPTIONS(VALUE, CHOICE, NO_ROW, NO_ROW)
	DUALPI2_EXT_OPTIONS(EXT_VALUE, EXT_CHOICE, NO_ROW, NO_ROW)
};

static inline bool in_range(const struct rule *r, uint64_t value)
{
	if (r->min < 0)
		return (int32_t)value >= r->min && (int32_t)value <= (int64_t)r->max;
	return value >= (uint64_t)r->min && value <= r->max && !(value && value < r->gap);
}

/* The option of an attribute, or OPTIONS. */
static inline int option_of(bool ext, unsigned int type)
{
	int o;

	for (o = 0; o < OPTIONS; o++)
		if (rules[o].ext == ext && rules[o].type == type)
			break;
	return o;
}

#endif
