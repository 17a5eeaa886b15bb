/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Harness of the unit tests: checks, random numbers, KTAP.
 *
 * Own code rather than cmocka, because the tests run as 32-bit programs too and
 * a 32-bit cmocka needs a second Debian architecture on the machine.
 *
 * A test is a function without arguments.  A check that does not hold prints
 * why and ends the test.
 */
#ifndef DUALPI2_UNIT_H
#define DUALPI2_UNIT_H

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <net/dualpi2.h>

/* Reference values of random inputs are computed in long double; they need its
 * 64 bits of mantissa.
 */
_Static_assert(LDBL_MANT_DIG >= 64, "long double has less than 64 bits");

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define ONE	4294967296ULL		/* probability 1 in q32 */
#define GOLDEN	0x9E3779B97F4A7C15ULL	/* 2^64 over the golden ratio */
#define MS	1000000ULL		/* ns */
#define SEC	1000000000ULL		/* ns */

typedef unsigned long long ull;

struct unit_test {
	const char *name;
	void (*run)(void);
};

static const struct unit_test *unit_tests[512];
static unsigned int unit_count;

static void unit_add(const struct unit_test *test)
{
	if (unit_count == ARRAY_SIZE(unit_tests)) {
		fprintf(stderr, "unit_tests[] is too small\n");
		exit(1);
	}
	unit_tests[unit_count++] = test;
}

/* UNIT_TEST(name) { ... } adds the test before main() runs. */
#define UNIT_TEST(name)								\
	static void name(void);							\
	__attribute__((constructor)) static void unit_add_##name(void)		\
	{									\
		static const struct unit_test test = { #name, name };		\
										\
		unit_add(&test);						\
	}									\
	static void name(void)

/* Each element of an array, by a pointer to it. */
#define for_each(row, rows)							\
	for (__auto_type row = &(rows)[0]; row < (rows) + ARRAY_SIZE(rows); row++)

static jmp_buf unit_end;
static ull unit_checks;
static u64 unit_seed = 0x9332;
static u64 unit_state;

__attribute__((noreturn, format(printf, 4, 5)))
static void unit_fail(const char *file, int line, const char *cond,
		      const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	va_list args;

	printf("# %s:%d: not true: %s: ", base ? base + 1 : file, line, cond);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	longjmp(unit_end, 1);
}

/* CHECK(condition, format, values...) */
#define CHECK(cond, ...)						\
	do {								\
		unit_checks++;						\
		if (!(cond))						\
			unit_fail(__FILE__, __LINE__, #cond,		\
				  __VA_ARGS__);				\
	} while (0)

#define CHECK_EQ(got, want)						\
	do {								\
		ull _got = (got), _want = (want);			\
									\
		unit_checks++;						\
		if (_got != _want)					\
			unit_fail(__FILE__, __LINE__, #got " == " #want,\
				  "got %llu, want %llu", _got, _want);	\
	} while (0)

#define CHECK_NEAR(got, want, tol)					\
	do {								\
		ull _got = (got), _want = (want), _tol = (tol);		\
									\
		unit_checks++;						\
		if (_got > _want ? _got - _want > _tol :		\
				   _want - _got > _tol)			\
			unit_fail(__FILE__, __LINE__, #got " ~ " #want,	\
				  "got %llu, want %llu +- %llu",	\
				  _got, _want, _tol);			\
	} while (0)

/* Zeroed memory for free(). */
static inline void *unit_alloc(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory) {
		perror("calloc");
		exit(1);
	}
	return memory;
}

/* splitmix64; every test starts from the same seed.  Not to be called twice in
 * an expression or initializer whose order C leaves open.
 */
static inline u64 unit_rnd(void)
{
	u64 z = unit_state += GOLDEN;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

/* uniform in min..max */
static inline u64 unit_between(u64 min, u64 max)
{
	return max - min == UINT64_MAX ? unit_rnd() :
					 min + unit_rnd() % (max - min + 1);
}

/* min..max with every order of magnitude equally often, ends often */
static inline u64 unit_any(u64 min, u64 max)
{
	u64 v;

	switch (unit_rnd() % 16) {
	case 0:
		return min;
	case 1:
		return max;
	case 2:
		return unit_between(min, max);
	}
	v = unit_rnd();
	v >>= unit_rnd() % 64;
	if (v > max)
		v %= max;
	return v < min ? min : v;
}

/* a probability, ends often, and close to the ends often */
static inline u64 unit_any_q32(void)
{
	u64 p = unit_any(0, ONE);

	return unit_rnd() % 4 ? p : ONE - p;
}

/* a configuration with every knob at its default */
static inline struct dualpi2_config unit_config(void)
{
	struct dualpi2_config cfg;

	memset(&cfg, 0xa5, sizeof(cfg));
	dualpi2_config_init(&cfg);
	return cfg;
}

static inline struct dualpi2_params unit_params(const struct dualpi2_config *cfg)
{
	struct dualpi2_params p;

	memset(&p, 0xa5, sizeof(p));
	dualpi2_params_init(&p, cfg);
	return p;
}

static inline struct dualpi2_params unit_params_k(u32 coupling)
{
	struct dualpi2_config cfg = unit_config();

	cfg.coupling = coupling;
	return unit_params(&cfg);
}

/* a configuration or its parameters, with "cfg.member = value, ..." set */
#define UNIT_CONFIG(...)							\
	({ struct dualpi2_config cfg = unit_config(); __VA_ARGS__; cfg; })
#define UNIT_PARAMS(...)							\
	({ struct dualpi2_config cfg = UNIT_CONFIG(__VA_ARGS__); unit_params(&cfg); })

/* state right after start at time 0 */
static inline struct dualpi2_vars unit_vars(const struct dualpi2_params *p)
{
	struct dualpi2_vars v;

	memset(&v, 0, sizeof(v));
	dualpi2_vars_init(p, &v, 1514, 0);
	return v;
}

/* p' at a time, as an update would have it */
static inline void overload_at(const struct dualpi2_params *p, struct dualpi2_vars *v,
			       u64 base_q32, u64 now_ns)
{
	v->base_q32 = base_q32;
	dualpi2_vars_derive(p, v, now_ns);
}

#endif /* DUALPI2_UNIT_H */
