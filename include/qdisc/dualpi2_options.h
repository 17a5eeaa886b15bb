/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The list of options as tables of attributes.  A row without a member of struct
 * dualpi2_config does not compile.
 */
#ifndef _QDISC_DUALPI2_OPTIONS_H
#define _QDISC_DUALPI2_OPTIONS_H

#include <uapi/linux/dualpi2.h>
#include <net/dualpi2.h>
#include <qdisc/attr.h>

/* How a message states a range. */
#define DUALPI2_RANGE_FROM_TO(must, min, max, unit)			\
	must min unit " to " max unit
#define DUALPI2_RANGE_TO(must, min, max, unit)	must min " to " max unit
#define DUALPI2_RANGE_AT_MOST(must, min, max, unit)			\
	must "at most " max unit
#define DUALPI2_RANGE_AT_LEAST(must, min, max, unit)			\
	must "at least " min unit
#define DUALPI2_RANGE_ZERO_OR_AT_LEAST(must, min, max, unit)		\
	must "0, or at least " min unit
#define DUALPI2_RANGE_UNLIMITED_OR_TO(must, min, max, unit)		\
	must "0 (unlimited), or " min " to " max unit
#define DUALPI2_RANGE_TEXT(must, min, max, unit)	must unit
#define DUALPI2_RANGE_ANY(...)				NULL

/* Whether 0 is in range, too, where it is below the minimum. */
enum {
	DUALPI2_ZERO_PLAIN = 0,
	DUALPI2_ZERO_HIDDEN = 0,
	DUALPI2_ZERO_ALLOWED = 1,
	DUALPI2_ZERO_KEYWORD = 1,
	DUALPI2_ZERO_DEFAULT = 0,
};

#define DUALPI2_VALUE(attr, member, min, max, def, kind, zero, range, unit, word, ...) \
	[TCA_DUALPI2_##attr] =						\
		DUALPI2_ATTR_SPEC_TEXT("dualpi2", struct dualpi2_config, \
			DUALPI2_ZERO_##zero, member, min##LL, max##LL, word, \
			DUALPI2_RANGE_##range("dualpi2: " word " must be ", \
					      #min, #max, unit)),
#define DUALPI2_CHOICE(attr, member, min, max, def, range, word)	\
	[TCA_DUALPI2_##attr] =						\
		DUALPI2_ATTR_SPEC("dualpi2", struct dualpi2_config, false, \
				  member, min##LL, max##LL, word, range),
#define DUALPI2_EXT_VALUE(attr, ...)	DUALPI2_VALUE(EXT_##attr, __VA_ARGS__)
#define DUALPI2_EXT_CHOICE(attr, ...)	DUALPI2_CHOICE(EXT_##attr, __VA_ARGS__)

#define DUALPI2_ATTR_SPECS							\
	DUALPI2_OPTIONS(DUALPI2_VALUE, DUALPI2_CHOICE,			\
			DUALPI2_NO_ROW, DUALPI2_NO_ROW)
#define DUALPI2_EXT_ATTR_SPECS						\
	DUALPI2_EXT_OPTIONS(DUALPI2_EXT_VALUE, DUALPI2_EXT_CHOICE,	\
			    DUALPI2_NO_ROW, DUALPI2_NO_ROW)

#endif /* _QDISC_DUALPI2_OPTIONS_H */
