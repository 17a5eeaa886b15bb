/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tc front ends of qdiscs share: numbers with units, netlink attributes,
 * and the suggestion after a typing error.
 *
 * It uses functions of tc: include tc_plugin.h, or tc's own headers, before it.
 */
#ifndef QDISC_OPTIONS_H
#define QDISC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OPTION_BUF_SIZE		256	/* a list of all DSCPs has 181 characters */
#define OPTION_WORD_MAX		31	/* longer words get no suggestion */

/* ---- numbers ---- */

struct option_unit {
	const char *name;
	double factor;
};

static const struct option_unit option_no_units[] = {
	{ "", 1 }, { NULL, 0 },
};

static const struct option_unit option_packet_units[] = {
	{ "", 1 }, { "p", 1 }, { "pkt", 1 }, { "pkts", 1 }, { "packet", 1 },
	{ "packets", 1 }, { NULL, 0 },
};

/* In us. */
static const struct option_unit option_time_units[] = {
	{ "", 1 }, { "us", 1 }, { "usec", 1 }, { "usecs", 1 },
	{ "ms", 1e3 }, { "msec", 1e3 }, { "msecs", 1e3 },
	{ "s", 1e6 }, { "sec", 1e6 }, { "secs", 1e6 },
	{ NULL, 0 },
};

/* In bytes/s, with the suffixes of tc: bps is bytes. */
static const struct option_unit option_rate_units[] = {
	{ "", 1 / 8.0 }, { "bit", 1 / 8.0 },
	{ "kbit", 1e3 / 8 }, { "mbit", 1e6 / 8 },
	{ "gbit", 1e9 / 8 }, { "tbit", 1e12 / 8 },
	{ "kibit", 0x1p10 / 8 }, { "mibit", 0x1p20 / 8 },
	{ "gibit", 0x1p30 / 8 }, { "tibit", 0x1p40 / 8 },
	{ "bps", 1 },
	{ "kbps", 1e3 }, { "mbps", 1e6 }, { "gbps", 1e9 }, { "tbps", 1e12 },
	{ "kibps", 0x1p10 }, { "mibps", 0x1p20 },
	{ "gibps", 0x1p30 }, { "tibps", 0x1p40 },
	{ NULL, 0 },
};

/* A number that is not negative, and its unit.  Not rounded. */
static inline bool option_scan(double *num, const struct option_unit *unit,
			       const char *arg)
{
	char *end;

	/* strtod() also accepts blanks, signs, nan and inf. */
	if (!strchr("0123456789.", *arg))
		return false;
	*num = strtod(arg, &end);
	if (end == arg)
		return false;
	for (; unit->name; unit++)
		if (strcasecmp(end, unit->name) == 0)
			break;
	*num *= unit->factor;
	return unit->name;
}

/* Makes num a whole number.  Returns false if it is none and must not be
 * rounded.
 */
static inline bool option_round(double *num, bool may_round)
{
	/* Beyond 2^53 there are no fractions, and no conversion to integer. */
	if (*num >= UINT64_C(1) << 53)
		return true;
	if (may_round)
		*num += 0.5;
	else if (*num != (uint64_t)*num)
		return false;
	*num = (uint64_t)*num;
	return true;
}

/* Exact: 2500Kbit. */
static inline const char *option_format_rate(char *buf, __u64 rate)
{
	static const char *const units[] = {
		"bit", "Kbit", "Mbit", "Gbit", "Tbit",
	};
	unsigned long long bits = rate * 8;
	unsigned int unit = 0;

	for (; bits && bits % 1000 == 0 && unit < ARRAY_SIZE(units) - 1; unit++)
		bits /= 1000;
	snprintf(buf, OPTION_BUF_SIZE, "%llu%s", bits, units[unit]);
	return buf;
}

/* Exact: 15ms, 16.384ms, 1.234567s. */
static inline const char *option_format_time(char *buf, __u64 us)
{
	static const char *const units[] = { "us", "ms", "s" };
	unsigned int unit = 0;
	double num = us;

	for (; num >= 1000 && unit < ARRAY_SIZE(units) - 1; unit++)
		num /= 1000;
	snprintf(buf, OPTION_BUF_SIZE, "%.10g%s", num, units[unit]);
	return buf;
}

/* Three digits, for statistics. */
static inline const char *option_format_ns(char *buf, __u64 ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	unsigned int unit = 0;
	double num = ns;

	for (; num >= 999.5 && unit < ARRAY_SIZE(units) - 1; unit++)
		num /= 1000;
	snprintf(buf, OPTION_BUF_SIZE, num < 999.5 ? "%.3g%s" : "%.0f%s", num,
		 units[unit]);
	return buf;
}

/* ---- unknown words ---- */

struct option_guess {
	const char *typed;
	const char *word;	/* the most similar one so far; NULL: none */
	unsigned int distance;	/* less than this is similar */
};

static inline struct option_guess option_guess_begin(const char *typed)
{
	size_t len = strlen(typed);

	return (struct option_guess) {
		.typed = typed,
		.distance = len < 6 ? 2 : 1 + len / 3,
	};
}

/* Number of typing errors between two words.  One error inserts, removes or
 * replaces a character, or swaps two neighbours.
 */
static inline unsigned int option_distance(const char *a, const char *b)
{
	unsigned int rows[3][OPTION_WORD_MAX + 1], i, j, cost, best;
	unsigned int len_a = strlen(a), len_b = strlen(b);

	if (len_a > OPTION_WORD_MAX || len_b > OPTION_WORD_MAX)
		return UINT32_MAX;
	for (j = 0; j <= len_b; j++)
		rows[0][j] = j;
	for (i = 1; i <= len_a; i++) {
		unsigned int *row = rows[i % 3], *last = rows[(i + 2) % 3];
		const unsigned int *last_but_one = rows[(i + 1) % 3];

		row[0] = i;
		for (j = 1; j <= len_b; j++) {
			cost = a[i - 1] != b[j - 1];
			best = last[j - 1] + cost;
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] &&
			    last_but_one[j - 2] + 1 < best)
				best = last_but_one[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[len_a % 3][len_b];
}

/* Also suggests "limit" for "lim", and "max_rtt" for "rtt". */
static inline void option_guess_try(struct option_guess *guess,
				    const char *word)
{
	unsigned int distance = option_distance(guess->typed, word);

	if (distance > 1 && strlen(guess->typed) > 2 &&
	    strstr(word, guess->typed))
		distance = 1;
	if (distance < guess->distance) {
		guess->word = word;
		guess->distance = distance;
	}
}

/* One line; hint: NULL, or more about the word. */
static inline void option_unknown(const char *qdisc,
				  const struct option_guess *guess,
				  const char *hint)
{
	fprintf(stderr, "%s: unknown option \"%s\"", qdisc, guess->typed);
	if (hint)
		fprintf(stderr, " (%s)", hint);
	else if (guess->word)
		fprintf(stderr, " (did you mean \"%s\"?)", guess->word);
	fprintf(stderr, "; see: tc qdisc add %s help\n", qdisc);
}

/* ---- netlink attributes ---- */

/* The attribute of type N in tb[N]; of several of a type, the last one. */
static inline void option_find_attrs(struct rtattr *tb[], unsigned int max,
				     struct rtattr *rta, int len)
{
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		unsigned int type = rta->rta_type & NLA_TYPE_MASK;

		if (type <= max)
			tb[type] = rta;
	}
}

/* size: 1, 4 or 8 bytes.  Returns false without an attribute of this size. */
static inline bool option_read(const struct rtattr *rta, unsigned int size,
			       __u64 *val)
{
	__u32 val32;
	__u8 val8;

	if (!rta || RTA_PAYLOAD(rta) < size)
		return false;
	if (size == sizeof(val8)) {
		memcpy(&val8, RTA_DATA(rta), sizeof(val8));
		*val = val8;
	} else if (size == sizeof(val32)) {
		memcpy(&val32, RTA_DATA(rta), sizeof(val32));
		*val = val32;
	} else {
		memcpy(val, RTA_DATA(rta), sizeof(*val));
	}
	return true;
}

/* size: 1, 4 or 8 bytes */
static inline int option_add_attr(struct nlmsghdr *n, int max, int type,
				  unsigned int size, __u64 val)
{
	__u32 val32 = val;
	__u8 val8 = val;
	const void *data = &val;

	if (size == sizeof(val8))
		data = &val8;
	else if (size == sizeof(val32))
		data = &val32;
	return addattr_l(n, max, type, data, size);
}

/* Copies at most len bytes.  What the kernel did not send is zero. */
static inline void option_copy(void *to, size_t size, const void *from,
			       size_t len)
{
	memset(to, 0, size);
	memcpy(to, from, len < size ? len : size);
}

static inline void option_copy_attr(void *to, size_t size,
				    const struct rtattr *rta)
{
	option_copy(to, size, RTA_DATA(rta), RTA_PAYLOAD(rta));
}

/* key NULL: only as text. */
static inline void option_print_count(const char *key, const char *fmt,
				      __u64 count)
{
	print_lluint(key ? PRINT_ANY : PRINT_FP, key, fmt, count);
}

#endif /* QDISC_OPTIONS_H */
