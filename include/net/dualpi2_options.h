/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges and defaults of the options, from the list in <uapi/linux/dualpi2_options.h>.
 */
#ifndef _NET_DUALPI2_OPTIONS_H
#define _NET_DUALPI2_OPTIONS_H

#include <uapi/linux/dualpi2_options.h>

#define DUALPI2_NO_ROW(...)

/* For example DUALPI2_TARGET_MIN, DUALPI2_TARGET_MAX and DUALPI2_TARGET_DEF, in the unit
 * of the attribute.  One enum each, so that none has a wider type than necessary.
 */
#define DUALPI2_BOUNDS(attr, member, min, max, def, ...)		\
	enum { DUALPI2_##attr##_MIN = min##LL };			\
	enum { DUALPI2_##attr##_MAX = max##LL };			\
	enum { DUALPI2_##attr##_DEF = (def) };
DUALPI2_OPTIONS(DUALPI2_BOUNDS, DUALPI2_BOUNDS, DUALPI2_NO_ROW, DUALPI2_NO_ROW)
DUALPI2_EXT_OPTIONS(DUALPI2_BOUNDS, DUALPI2_BOUNDS, DUALPI2_NO_ROW,
		    DUALPI2_NO_ROW)

/* The defaults as an initializer of struct dualpi2_config. */
#define DUALPI2_DEFAULT(attr, member, min, max, def, ...)	.member = (def),
#define DUALPI2_DEFAULTS()						\
	DUALPI2_OPTIONS(DUALPI2_DEFAULT, DUALPI2_DEFAULT,		\
			DUALPI2_NO_ROW, DUALPI2_NO_ROW)			\
	DUALPI2_EXT_OPTIONS(DUALPI2_DEFAULT, DUALPI2_DEFAULT,		\
			    DUALPI2_NO_ROW, DUALPI2_NO_ROW)

#endif /* _NET_DUALPI2_OPTIONS_H */
