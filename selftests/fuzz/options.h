/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of dualpi2 for the fuzzers: attribute, length, range, default, keyword of tc, key of tc's JSON.
 *
 * The numbers are written down here, not included from the module: the fuzzers compare them with what it does.
 */
#ifndef FUZZ_OPTIONS_H
#define FUZZ_OPTIONS_H

#include <linux/dualpi2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIME_MAX_US	4294967U	/* the longest time in 32 bits of ns */

/* In the order of a dump. */
enum {
	O_LIMIT, O_MEMORY_LIMIT, O_TARGET, O_TUPDATE, O_ALPHA, O_BETA, O_STEP_THRESH_PKTS, O_STEP_THRESH_US,
	O_MIN_QLEN_STEP, O_COUPLING, O_DROP_OVERLOAD, O_DROP_EARLY, O_C_PROTECTION, O_ECN_MASK, O_SPLIT_GSO,
	O_L4S, O_RAMP_US, O_SIGNAL, O_P_CMAX, O_HIST_C, O_HIST_L, O_REPORT, O_BANDWIDTH, O_FRAMING,
	O_OVERHEAD, O_MPU, O_INGRESS, O_NQB, O_BURST_MAX, O_BYPASS, OPTIONS
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

static const struct rule rules[OPTIONS] = {
	[O_LIMIT] = { false, TCA_DUALPI2_LIMIT, 4, 1, UINT32_MAX, 10000, 0, "limit", "limit" },
	[O_MEMORY_LIMIT] = { false, TCA_DUALPI2_MEMORY_LIMIT, 4, 1, UINT32_MAX, 0, 0, "memlimit", "memory-limit" },
	[O_TARGET] = { false, TCA_DUALPI2_TARGET, 4, 1, TIME_MAX_US, 15000, 0, "target", "target" },
	[O_TUPDATE] = { false, TCA_DUALPI2_TUPDATE, 4, 100, TIME_MAX_US, 16000, 0, "tupdate", "tupdate" },
	[O_ALPHA] = { false, TCA_DUALPI2_ALPHA, 4, 1, INT32_MAX, 41, 0, "alpha", NULL },
	[O_BETA] = { false, TCA_DUALPI2_BETA, 4, 1, INT32_MAX, 819, 0, "beta", NULL },
	[O_STEP_THRESH_PKTS] = { false, TCA_DUALPI2_STEP_THRESH_PKTS, 4, 1, UINT32_MAX - 1, 0, 0, NULL, "step-thresh-pkts" },
	[O_STEP_THRESH_US] = { false, TCA_DUALPI2_STEP_THRESH_US, 4, 0, TIME_MAX_US, 1000, 0, "step_thresh", "step-thresh-us" },
	[O_MIN_QLEN_STEP] = { false, TCA_DUALPI2_MIN_QLEN_STEP, 4, 0, UINT32_MAX, 0, 0, "min_qlen_step", "min-qlen-step" },
	[O_COUPLING] = { false, TCA_DUALPI2_COUPLING, 1, 1, 255, 2, 0, "coupling_factor", "coupling" },
	[O_DROP_OVERLOAD] = { false, TCA_DUALPI2_DROP_OVERLOAD, 1, 0, 1, 1, 0, NULL, NULL },
	[O_DROP_EARLY] = { false, TCA_DUALPI2_DROP_EARLY, 1, 0, 1, 0, 0, NULL, NULL },
	[O_C_PROTECTION] = { false, TCA_DUALPI2_C_PROTECTION, 1, 0, 100, 10, 0, "classic_protection", "c-protection" },
	[O_ECN_MASK] = { false, TCA_DUALPI2_ECN_MASK, 1, 1, 3, 1, 0, NULL, NULL },
	[O_SPLIT_GSO] = { false, TCA_DUALPI2_SPLIT_GSO, 1, 0, 1, 1, 0, NULL, NULL },
	[O_L4S] = { true, TCA_DUALPI2_EXT_L4S, 1, 0, 1, 1, 0, NULL, NULL },
	[O_RAMP_US] = { true, TCA_DUALPI2_EXT_RAMP_US, 4, 0, TIME_MAX_US, 0, 0, "ramp", "ramp" },
	[O_SIGNAL] = { true, TCA_DUALPI2_EXT_SIGNAL, 1, 0, 1, 0, 0, NULL, NULL },
	[O_P_CMAX] = { true, TCA_DUALPI2_EXT_P_CMAX, 1, 0, 100, 0, 0, "p_cmax", "p-cmax" },
	[O_HIST_C] = { true, TCA_DUALPI2_EXT_HIST_C, 4, 1, 16384, 64, 0, "hist_c", "hist-c" },
	[O_HIST_L] = { true, TCA_DUALPI2_EXT_HIST_L, 4, 1, 16384, 8, 0, "hist_l", "hist-l" },
	[O_REPORT] = { true, TCA_DUALPI2_EXT_REPORT, 4, 0, UINT32_MAX, 1000000, 100000, "overload_report", "overload-report" },
	[O_BANDWIDTH] = { true, TCA_DUALPI2_EXT_BANDWIDTH, 8, 0, 125000000000, 0, 1000, "bandwidth", "bandwidth" },
	[O_FRAMING] = { true, TCA_DUALPI2_EXT_FRAMING, 1, 0, 3, 0, 0, NULL, NULL },
	[O_OVERHEAD] = { true, TCA_DUALPI2_EXT_OVERHEAD, 4, -64, 256, 0, 0, "overhead", "overhead" },
	[O_MPU] = { true, TCA_DUALPI2_EXT_MPU, 4, 0, 256, 0, 0, "mpu", "mpu" },
	[O_INGRESS] = { true, TCA_DUALPI2_EXT_INGRESS, 1, 0, 1, 0, 0, NULL, NULL },
	[O_NQB] = { true, TCA_DUALPI2_EXT_NQB, 8, 0, UINT64_MAX, 1ULL << 45, 0, "nqb", NULL },
	[O_BURST_MAX] = { true, TCA_DUALPI2_EXT_BURST_MAX, 4, 0, 100000, 0, 0, "burst_max", "burst-max" },
	[O_BYPASS] = { true, TCA_DUALPI2_EXT_BYPASS, 1, 0, 1, 0, 0, NULL, NULL },
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
