// SPDX-License-Identifier: GPL-2.0-only
/*
 * exhaust: what no prover decides in minutes, shown for each input: the gains and the square
 * root.  usage: exhaust [STRIDE], every STRIDE-th input, 1 by default (five minutes).
 */
#include <stdio.h>
#include <stdlib.h>

#include <net/dualpi2.h>

/* The gain is hz256 * 2^48 / 10^9, rounded to nearest. */
static int gain_is_rounded_to_nearest(u32 hz256)
{
	unsigned __int128 exact = (unsigned __int128)hz256 << 48;
	unsigned __int128 gain = (unsigned __int128)dualpi2_gain(hz256) * 1000000000;

	return gain <= exact + 500000000 && gain + 500000000 >= exact;
}

static int root_is_the_smallest(u64 p_q32)
{
	u64 root = dualpi2_sqrt_q32(p_q32);

	return root <= DUALPI2_ONE_Q32 && dualpi2_square_q32(root) >= p_q32 &&
	       (!root || dualpi2_square_q32(root - 1) < p_q32);
}

int main(int argc, char **argv)
{
	u64 stride = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, i;

	if (!stride) {
		fprintf(stderr, "exhaust: invalid stride '%s'; use a number from 1 on\n", argv[1]);
		return 1;
	}
	for (i = 0; i <= DUALPI2_GAIN_MAX; i += stride)
		if (!gain_is_rounded_to_nearest(i)) {
			printf("# gain of %llu\nnot ok 1 gain_is_rounded_to_nearest\n", (unsigned long long)i);
			return 1;
		}
	printf("ok 1 gain_is_rounded_to_nearest\n");
	for (i = 0; i <= DUALPI2_ONE_Q32; i += stride)
		if (!root_is_the_smallest(i)) {
			printf("# root of %llu\nnot ok 2 root_is_the_smallest\n", (unsigned long long)i);
			return 1;
		}
	printf("ok 2 root_is_the_smallest\n");
	return 0;
}
