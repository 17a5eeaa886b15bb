// SPDX-License-Identifier: GPL-2.0-only
/*
 * uml-seed: a getrandom() that gives the same numbers for the same seed.
 *
 * User-mode Linux asks the host's getrandom() for all that it cannot foresee;
 * run-vm.sh --seed preloads this library for it, and with the clock and the
 * kernel's command line fixed too, two runs are the same to the bit.  The
 * numbers are splitmix64's.  Not for anything that should be secret.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t next(void)
{
	static uint64_t state;
	static int seeded;
	uint64_t z;

	if (!seeded) {
		const char *seed = getenv("DUALPI2_VM_SEED");

		if (!seed)
			abort();
		state = strtoull(seed, NULL, 10);
		seeded = 1;
	}
	state += 0x9e3779b97f4a7c15;
	z = state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	uint8_t *p = buf;
	size_t left = len;

	(void)flags;
	while (left) {
		uint64_t word = next();
		size_t n = left < sizeof(word) ? left : sizeof(word);

		memcpy(p, &word, n);
		p += n;
		left -= n;
	}
	return len;
}
