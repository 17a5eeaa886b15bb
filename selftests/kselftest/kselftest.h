/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs of net/dualpi2 use of tools/testing/selftests/kselftest.h of
 * the kernel.  Own code, for this repository; in a kernel tree the kernel's is
 * used.
 */
#ifndef KSELFTEST_H
#define KSELFTEST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define KSFT_SKIP	4

static unsigned int ksft_planned, ksft_done, ksft_failed;

#define ksft_print_msg(...)	(printf("# " __VA_ARGS__))
#define ksft_test_result_skip(...) \
	(printf("ok %u # SKIP ", ++ksft_done), printf(__VA_ARGS__))

static inline void ksft_print_header(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("TAP version 13");
}

static inline void ksft_set_plan(unsigned int plan)
{
	ksft_planned = plan;
	printf("1..%u\n", plan);
}

__attribute__((format(printf, 2, 3)))
static inline void ksft_test_result(bool good, const char *name, ...)
{
	va_list args;

	ksft_failed += !good;
	printf("%sok %u ", good ? "" : "not ", ++ksft_done);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
}

#define ksft_exit_skip(...)				\
	do {						\
		printf("1..0 # SKIP " __VA_ARGS__);	\
		exit(KSFT_SKIP);			\
	} while (0)

#define ksft_finished()	exit(ksft_failed || ksft_done != ksft_planned)

#endif /* KSELFTEST_H */
