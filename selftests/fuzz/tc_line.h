/* SPDX-License-Identifier: GPL-2.0-only */
/* What tc_line judges by: JSON, and numbers with units. */
#ifndef FUZZ_TC_LINE_H
#define FUZZ_TC_LINE_H

#include "options.h"
#include <ctype.h>
#include <string.h>

#define KEYS_MAX	64
#define DEPTH_MAX	8

/* libFuzzer's */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* JSON as the front end should print it: each function returns what follows what it read, or NULL. */

static const char *json_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++)
		if ((unsigned char)*at < ' ' || *at == '\\')
			return NULL;	/* none is expected to need an escape */
	return at + 1;
}

static const char *json_digits(const char *at)
{
	const char *end = at + strspn(at, "0123456789");

	return end > at ? end : NULL;
}

static const char *json_real(const char *at)
{
	const char *first = at += *at == '-';

	at = json_digits(at);
	if (!at || (*first == '0' && at > first + 1))
		return NULL;
	if (*at == '.')
		at = json_digits(at + 1);
	if (at && (*at == 'e' || *at == 'E')) {
		at++;
		at = json_digits(at + (*at == '-' || *at == '+'));
	}
	return at;
}

static const char *json_value(const char *at, unsigned int depth);

/* The members of an object or array up to its end; each key once. */
static const char *json_members(const char *at, char end, bool keyed, unsigned int depth)
{
	const char *keys[KEYS_MAX], *after;
	unsigned int count = 0, i;

	if (*at == end || depth > DEPTH_MAX)
		return *at == end ? at : NULL;
	for (;; at++) {
		if (keyed) {
			after = json_string(at);
			if (!after || *after != ':' || count == KEYS_MAX)
				return NULL;
			for (i = 0; i < count; i++)
				if (!strncmp(keys[i], at, after - at))
					return NULL;
			keys[count++] = at;
			at = after + 1;
		}
		at = json_value(at, depth + 1);
		if (!at || *at != ',')
			return at && *at == end ? at : NULL;
	}
}

static const char *json_value(const char *at, unsigned int depth)
{
	static const char *const names[] = { "true", "false", "null" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(at, names[i], strlen(names[i])))
			return at + strlen(names[i]);
	if (*at == '"')
		return json_string(at);
	if (*at != '{' && *at != '[')
		return json_real(at);
	at = json_members(at + 1, *at + 2, *at == '{', depth);	/* the brackets' codes differ by 2 */
	return at ? at + 1 : NULL;
}

/* The value of a decimal number with a unit, in 2^-8 of the attribute's unit, by integer arithmetic alone. */
static bool exact(const char *arg, int o, int64_t *val256)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {
		{ "", 1 }, { "us", 1 }, { "ms", 1000 }, { "s", 1000000 }, { "p", 1 }, { "%", 1 }, { "b", 1 },
		{ "k", 1 << 10 }, { "m", 1 << 20 }, { "g", 1 << 30 },
		/* bits */
		{ "bit", 1 }, { "kbit", 1000 }, { "mbit", 1000000 }, { "gbit", 1000000000 },
		{ "tbit", 1000000000000 }, { "kibit", 1 << 10 }, { "gibit", 1 << 30 }, { "bps", 8 },
		{ "kbps", 8000 }, { "gbps", 8000000000 }, { "mibps", 1 << 23 },
	};
	unsigned __int128 num = 0, den = o == O_BANDWIDTH || o == O_QPROTECT_RATE ? 8 : 1;
	bool dot = false, negative = *arg == '-';
	unsigned int digits = 0, i;

	for (arg += negative; isdigit(*arg) || (*arg == '.' && !dot); arg++) {
		if (*arg == '.') {
			dot = true;
			continue;
		}
		num = num * 10 + *arg - '0';
		if (dot)
			den *= 10;
		if (++digits > 15)
			return false;
	}
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (digits && !strcmp(arg, units[i].name))
			break;
	if (!digits || i == ARRAY_SIZE(units))
		return false;
	num = (num * units[i].factor << (o == O_ALPHA || o == O_BETA ? 16 : 8)) / den;
	*val256 = negative ? -(int64_t)num : (int64_t)num;
	return num >> 62 == 0;
}

#endif
