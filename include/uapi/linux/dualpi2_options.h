/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The options of dualpi2, one row each.  From these rows follow: in the module
 * the attributes that it parses and dumps, its messages and its defaults; in tc
 * the keywords, the output and the usage; the synopsis of the manual, the
 * completion, and the tables of the tests.  A new option has a number in
 * <linux/dualpi2.h>, a row here, a member of struct dualpi2_config
 * (include/net/dualpi2.h) and a paragraph in tc-dualpi2(8).
 *
 * Rows are in the order of tc's output.  Python reads them, too
 * (selftests/lib/options.py): numbers are decimal and without suffix.
 *
 * VALUE(attr, member, min, max, def, kind, zero, range, unit, word, key, line)
 *	an option with a value
 *	attr	TCA_DUALPI2_*, in DUALPI2_EXT_OPTIONS TCA_DUALPI2_EXT_*
 *	member	of struct dualpi2_config; it has the length of the attribute
 *	min	minimum, in the unit of the attribute; below 0: it is signed
 *	max	maximum
 *	def	default; 0 where it follows from other options
 *	kind	TIME (us), PACKETS, BYTES (of memory), LENGTH (bytes of a packet),
 *		RATE (bytes/s), GAIN (1/256 Hz), NUMBER, PERCENT, DSCPS (bit N: DSCP
 *		N; min and max are those of N)
 *	zero	PLAIN: a value like others; ALLOWED: it is accepted below min, too;
 *		HIDDEN: tc does not show it; KEYWORD: ALLOWED by the module and
 *		HIDDEN, tc has a keyword for it; DEFAULT: PLAIN, and tc does not show
 *		the default
 *	range	how the module's messages state the range: FROM_TO, TO, AT_MOST,
 *		AT_LEAST, ZERO_OR_AT_LEAST, UNLIMITED_OR_TO; TEXT: as unit says; ANY:
 *		the module accepts any number
 *	unit	what messages put after a number
 *	word	tc's keyword, also in messages
 *	key	in JSON
 *	line	of tc's usage; 0: the row belongs to the one before
 *
 * CHOICE(attr, member, min, max, def, range, word)
 *	an option that keywords set, in the rows that follow
 *	range	in the module's messages
 *	word	its name there
 *
 * WORD(attr, value, word, shown, key, json, line)
 *	a keyword that sets an option to a value
 *	shown	SHOWN, or HIDDEN: tc's text is without it
 *	key	in JSON; NULL: it has none
 *	json	the value there; NULL: null
 *
 * SWITCH(attr, value, word, shown, key, line)
 *	likewise; in JSON true or false
 */
#ifndef _UAPI_LINUX_DUALPI2_OPTIONS_H
#define _UAPI_LINUX_DUALPI2_OPTIONS_H

/* Options that Linux 7.x has, too. */
#define DUALPI2_OPTIONS(VALUE, CHOICE, WORD, SWITCH)				\
	VALUE(LIMIT, limit_pkts, 1, 4294967295, 10000,				\
	      PACKETS, PLAIN, AT_LEAST, " packet", "limit", "limit", 1)		\
	VALUE(MEMORY_LIMIT, memory_limit_bytes, 1, 4294967295, 0,		\
	      BYTES, PLAIN, AT_LEAST, " byte", "memlimit", "memory-limit", 1)	\
	VALUE(TARGET, target_us, 1, 4294967, 15000,				\
	      TIME, PLAIN, FROM_TO, " us", "target", "target", 3)		\
	VALUE(TUPDATE, tupdate_us, 100, 4294967, 16000,				\
	      TIME, PLAIN, FROM_TO, " us", "tupdate", "tupdate", 3)		\
	VALUE(ALPHA, alpha, 1, 2147483647, 41,					\
	      GAIN, PLAIN, TEXT, "1/256 Hz to (2^31 - 1)/256 Hz",		\
	      "alpha", "alpha", 4)						\
	VALUE(BETA, beta, 1, 2147483647, 819,					\
	      GAIN, PLAIN, TEXT, "1/256 Hz to (2^31 - 1)/256 Hz",		\
	      "beta", "beta", 4)						\
	VALUE(STEP_THRESH_US, step_thresh_us, 0, 4294967, 1000,			\
	      TIME, PLAIN, AT_MOST, " us", "step_thresh", "step-thresh-us", 5)	\
	VALUE(STEP_THRESH_PKTS, step_thresh_pkts, 1, 4294967294, 0,		\
	      PACKETS, PLAIN, TO, " packets",					\
	      "step_thresh", "step-thresh-pkts", 0)				\
	VALUE(MIN_QLEN_STEP, min_qlen_step_pkts, 0, 4294967295, 0,		\
	      PACKETS, PLAIN, TEXT, "a number of packets",			\
	      "min_qlen_step", "min-qlen-step", 6)				\
	VALUE(COUPLING, coupling, 1, 255, 2,					\
	      NUMBER, PLAIN, TO, "", "coupling_factor", "coupling", 7)		\
	CHOICE(DROP_OVERLOAD, drop_overload, 0, 1, 1,				\
	       "0 (overflow) or 1 (drop_on_overload)", "drop_overload")		\
	WORD(DROP_OVERLOAD, 1, "drop_on_overload", SHOWN,			\
	     "drop-overload", "drop", 9)					\
	WORD(DROP_OVERLOAD, 0, "overflow", SHOWN,				\
	     "drop-overload", "overflow", 0)					\
	CHOICE(DROP_EARLY, drop_early, 0, 1, 0,					\
	       "0 (drop_dequeue) or 1 (drop_enqueue)", "drop_early")		\
	WORD(DROP_EARLY, 1, "drop_enqueue", SHOWN,				\
	     "drop-early", "drop-enqueue", 10)					\
	WORD(DROP_EARLY, 0, "drop_dequeue", SHOWN,				\
	     "drop-early", "drop-dequeue", 0)					\
	VALUE(C_PROTECTION, c_protection_pct, 0, 100, 10,			\
	      PERCENT, PLAIN, TO, " percent",					\
	      "classic_protection", "c-protection", 8)				\
	CHOICE(ECN_MASK, ecn_mask, 1, 3, 1,					\
	       "1 (l4s_ect), 2 (cla_ect) or 3 (any_ect)", "ecn_mask")		\
	WORD(ECN_MASK, 1, "l4s_ect", SHOWN, "ecn-mask", "l4s-ect", 11)		\
	WORD(ECN_MASK, 2, "cla_ect", SHOWN, "ecn-mask", "cla-ect", 0)		\
	WORD(ECN_MASK, 3, "any_ect", SHOWN, "ecn-mask", "any-ect", 0)		\
	CHOICE(SPLIT_GSO, split_gso, 0, 1, 1, "0 or 1", "split_gso")		\
	/* A key without a value is null in JSON, and scripts look for it. */	\
	WORD(SPLIT_GSO, 1, "split_gso", SHOWN, "split-gso", NULL, 12)		\
	WORD(SPLIT_GSO, 0, "no_split_gso", SHOWN, NULL, NULL, 0)

/* Those of this module alone. */
#define DUALPI2_EXT_OPTIONS(VALUE, CHOICE, WORD, SWITCH)			\
	VALUE(RAMP_US, ramp_us, 0, 4294967, 0,					\
	      TIME, PLAIN, AT_MOST, " us", "ramp", "ramp", 5)			\
	CHOICE(SIGNAL, signal, 0, 1, 0, "0 (recur) or 1 (random)", "signal")	\
	WORD(SIGNAL, 0, "recur", SHOWN, "signal", "recur", 13)			\
	WORD(SIGNAL, 1, "random", SHOWN, "signal", "random", 0)			\
	/* 0 follows from coupling_factor. */					\
	VALUE(P_CMAX, p_cmax_pct, 0, 100, 0,					\
	      PERCENT, HIDDEN, TEXT, "0 (1/k^2) to 100 percent",		\
	      "p_cmax", "p-cmax", 14)						\
	VALUE(HIST_C, hist_c_us, 1, 16384, 64,					\
	      TIME, PLAIN, FROM_TO, " us", "hist_c", "hist-c", 15)		\
	VALUE(HIST_L, hist_l_us, 1, 16384, 8,					\
	      TIME, PLAIN, FROM_TO, " us", "hist_l", "hist-l", 15)		\
	VALUE(REPORT, report_us, 100000, 4294967295, 1000000,			\
	      TIME, ALLOWED, ZERO_OR_AT_LEAST, " us",				\
	      "overload_report", "overload-report", 14)				\
	/* 8 kbit/s to 1 Tbit/s. */						\
	VALUE(BANDWIDTH, bandwidth, 1000, 125000000000, 0,			\
	      RATE, KEYWORD, UNLIMITED_OR_TO, " bytes/s",			\
	      "bandwidth", "bandwidth", 16)					\
	WORD(BANDWIDTH, 0, "unlimited", HIDDEN, NULL, NULL, 0)			\
	VALUE(OVERHEAD, overhead_bytes, -64, 256, 0,				\
	      LENGTH, PLAIN, TO, " bytes", "overhead", "overhead", 18)		\
	VALUE(MPU, mpu_bytes, 0, 256, 0,					\
	      LENGTH, PLAIN, AT_MOST, " bytes", "mpu", "mpu", 18)		\
	CHOICE(FRAMING, framing, 0, 3, 0,					\
	       "0 (raw), 1 (noatm), 2 (atm) or 3 (ptm)", "framing")		\
	WORD(FRAMING, 0, "raw", HIDDEN, "framing", "raw", 19)			\
	WORD(FRAMING, 1, "noatm", SHOWN, "framing", "noatm", 0)			\
	WORD(FRAMING, 2, "atm", SHOWN, "framing", "atm", 0)			\
	WORD(FRAMING, 3, "ptm", SHOWN, "framing", "ptm", 0)			\
	CHOICE(INGRESS, ingress, 0, 1, 0, "0 or 1", "ingress")			\
	SWITCH(INGRESS, 1, "ingress", SHOWN, "ingress", 20)			\
	SWITCH(INGRESS, 0, "egress", HIDDEN, "ingress", 0)			\
	/* By default that of RFC 9956. */					\
	VALUE(NQB, nqb, 0, 63, 1ULL << 45,					\
	      DSCPS, HIDDEN, ANY, "", "nqb", "nqb", 21)			\
	WORD(NQB, 0, "no_nqb", SHOWN, NULL, NULL, 0)				\
	VALUE(BURST_MAX, burst_max_us, 0, 100000, 0,				\
	      TIME, PLAIN, AT_MOST, " us", "burst_max", "burst-max", 22)	\
	CHOICE(BYPASS, bypass, 0, 1, 0, "0 or 1", "bypass")			\
	SWITCH(BYPASS, 1, "bypass", SHOWN, "bypass", 22)			\
	SWITCH(BYPASS, 0, "no_bypass", HIDDEN, "bypass", 0)			\
	/* Defaults of RFC 9957: 1 ms, 4 ms, 2^19 bytes/s. */			\
	CHOICE(QPROTECT, qprotect, 0, 2, 0,					\
	       "0 (no_qprotect), 1 (qprotect) or 2 (qprotect_hash)",		\
	       "qprotect")							\
	WORD(QPROTECT, 1, "qprotect", SHOWN, "qprotect", "tuple", 23)		\
	WORD(QPROTECT, 2, "qprotect_hash", SHOWN, "qprotect", "hash", 0)	\
	WORD(QPROTECT, 0, "no_qprotect", HIDDEN, "qprotect", "off", 0)		\
	VALUE(QPROTECT_DELAY, qprotect_delay_us, 1, 4294967, 1000,		\
	      TIME, DEFAULT, FROM_TO, " us",					\
	      "qprotect_delay", "qprotect-delay", 24)				\
	VALUE(QPROTECT_SCORE, qprotect_score_us, 1, 5000000, 4000,		\
	      TIME, DEFAULT, FROM_TO, " us",					\
	      "qprotect_score", "qprotect-score", 24)				\
	VALUE(QPROTECT_RATE, qprotect_rate, 1000, 125000000000, 524288,		\
	      RATE, DEFAULT, TO, " bytes/s",					\
	      "qprotect_rate", "qprotect-rate", 25)				\
	CHOICE(L4S, l4s, 0, 1, 1, "0 or 1", "l4s")				\
	SWITCH(L4S, 1, "l4s", HIDDEN, "l4s", 13)				\
	SWITCH(L4S, 0, "no_l4s", SHOWN, "l4s", 0)

/* What tc turns into other options: DERIVED(name, min, max, kind, word, line). */
#define DUALPI2_TC_OPTIONS(DERIVED)						\
	DERIVED(MAX_RTT, 1, 4294967295, TIME, "max_rtt", 2)			\
	DERIVED(TYPICAL_RTT, 1, 4294967295, TIME, "typical_rtt", 2)

/* Keywords of tc for max_rtt, with the names of cake and, as far as the ranges
 * above allow, its times: RTT(word, max, typical), in us; typical 0: it follows
 * from max.  cake has 100 us for datacentre and 1 h for interplanetary.
 */
#define DUALPI2_RTTS(RTT)							\
	RTT("datacentre", 300, 100)						\
	RTT("lan", 1000, 0)							\
	RTT("metro", 10000, 0)							\
	RTT("regional", 30000, 0)						\
	RTT("internet", 100000, 0)						\
	RTT("oceanic", 300000, 0)						\
	RTT("satellite", 1000000, 0)						\
	RTT("interplanetary", 8000000, 0)

/* The line of tc's usage that has the keywords for max_rtt. */
#define DUALPI2_RTT_LINE	2

/* Keywords of tc for link layers, with the names and numbers of cake:
 * PRESET(word, framing, overhead, mpu).
 */
#define DUALPI2_PRESETS(PRESET)							\
	PRESET("conservative", ATM, 48, 0)					\
	PRESET("ipoa-vcmux", ATM, 8, 0)						\
	PRESET("ipoa-llcsnap", ATM, 16, 0)					\
	PRESET("bridged-vcmux", ATM, 24, 0)					\
	PRESET("bridged-llcsnap", ATM, 32, 0)					\
	PRESET("pppoa-vcmux", ATM, 10, 0)					\
	PRESET("pppoa-llc", ATM, 14, 0)						\
	PRESET("pppoe-vcmux", ATM, 32, 0)					\
	PRESET("pppoe-llcsnap", ATM, 40, 0)					\
	PRESET("pppoe-ptm", PTM, 30, 0)						\
	PRESET("bridged-ptm", PTM, 22, 0)					\
	PRESET("docsis", NOATM, 18, 64)						\
	PRESET("ethernet", NOATM, 38, 84)

/* The line of tc's usage that has the presets. */
#define DUALPI2_PRESET_LINE	17

#endif /* _UAPI_LINUX_DUALPI2_OPTIONS_H */
