// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the unit tests of the files that suites.h includes, which the Makefile makes; prints KTAP.
 *
 *	unit [-x] [-s seed] [name]
 *
 * -x ends at the first failure, -s takes another seed, name runs only the tests
 * whose names begin with it.
 *
 * The tests are one translation unit, so that gcov sees every inline function
 * of the headers once and sums up what all tests do to it.
 */
#include "unit.h"
#include "vectors.h"
#include "suites.h"

static bool unit_run(const struct unit_test *test)
{
	unit_state = unit_seed;
	dualpi2_atomic_step = NULL;
	if (setjmp(unit_end))
		return false;
	test->run();
	return true;
}

int main(int argc, char **argv)
{
	unsigned int i, number = 0, passed = 0, failed = 0;
	const char *only = "";
	bool exit_first = false;

	for (i = 1; i < (unsigned int)argc; i++) {
		if (!strcmp(argv[i], "-x"))
			exit_first = true;
		else if (!strcmp(argv[i], "-s") && i + 1 < (unsigned int)argc)
			unit_seed = strtoull(argv[++i], NULL, 0);
		else
			only = argv[i];
	}

	for_each(test, unit_tests)
		number += *test && !strncmp((*test)->name, only, strlen(only));
	printf("KTAP version 1\n1..%u\n# seed 0x%llx, %zu-bit\n", number,
	       (ull)unit_seed, 8 * sizeof(void *));

	for (i = 0; i < unit_count; i++) {
		bool ok;

		if (strncmp(unit_tests[i]->name, only, strlen(only)))
			continue;
		ok = unit_run(unit_tests[i]);
		passed += ok;
		failed += !ok;
		if (!ok)
			printf("# repeat: %s -s 0x%llx %s\n", argv[0], (ull)unit_seed,
			       unit_tests[i]->name);
		printf("%sok %u - %s\n", ok ? "" : "not ", passed + failed, unit_tests[i]->name);
		fflush(stdout);
		if (!ok && exit_first)
			return 1;
	}
	printf("# checks:%llu\n", unit_checks);
	printf("# pass:%u fail:%u skip:0\n", passed, failed);
	return failed || !passed;
}
