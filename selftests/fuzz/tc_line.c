// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer of the tc front end: words of a command line, options and statistics
 * as a kernel would send them.  It needs no tc, no kernel and no root.
 *
 * What it asks of every command line: no crash; a refusal says why; what is
 * accepted says nothing twice (but for tags of VLANs), lies within the kernel's own limits
 * (include/net/dualpi2.h) and has the value that the words say; its text leads
 * to the same message again; its JSON is well-formed.  Of options and
 * statistics: no crash, no byte read beyond the attribute, well-formed JSON, and
 * of options that a kernel could send, that their text leads to the same ones.
 *
 * It is not a test of tc: what tc exports is replaced by the stubs of
 * selftests/tc/test_q_dualpi2.c, none of which can end the program.
 *
 * usage: tc_line [CORPUS-DIRECTORY]
 *
 * Inputs of the corpus come first: NAME.words holds one word a line,
 * NAME.options, NAME.xstats and NAME.dump, options that a kernel can send, the
 * payload of an attribute.  An input that fails is made smaller and put there;
 * without a directory, into the present one.
 * DUALPI2_FUZZ_LINES: number of command lines, 1000000; DUALPI2_FUZZ_SEED.
 */
#define main dualpi2_unused_main
#include "../tc/test_q_dualpi2.c"
#undef main

#include <ctype.h>
#include <dirent.h>
#include <sys/wait.h>

#include <net/dualpi2.h>

#define FUZZ_BYTES	4096
#define FUZZ_WORDS	64
#define FUZZ_DEPTH	8
#define FUZZ_KEYS	64
#define FUZZ_TYPES	64	/* of attributes, those of the extension from 32 */
#define FUZZ_EXT	32
#define FUZZ_WHY	600

enum fuzz_kind {
	FUZZ_LINE,		/* a command line */
	FUZZ_OPTIONS,		/* options, any bytes */
	FUZZ_DUMP,		/* options that a kernel can send */
	FUZZ_XSTATS,
	FUZZ_KINDS
};

static const char *const fuzz_suffix[FUZZ_KINDS] = {
	".words", ".options", ".dump", ".xstats",
};

/* Shared with the parent, which looks at it if the child dies. */
struct fuzz_input {
	enum fuzz_kind kind;
	unsigned int len;
	unsigned long long done;
	unsigned long long accepted;
	unsigned char bytes[FUZZ_BYTES + 1];
	char why[FUZZ_WHY];
};

static struct fuzz_input *fuzz;
static __u64 fuzz_state;

#define FUZZ_FAIL(...) (snprintf(fuzz->why, FUZZ_WHY, __VA_ARGS__), false)

/* ---- what the kernel takes ---- */

static const struct {
	unsigned int type;
	unsigned int size;
	__s64 min;		/* below 0: the attribute is signed */
	__s64 max;
	const char *json_key;	/* of an integer */
} fuzz_knobs[] = {
	{ TCA_DUALPI2_LIMIT, 4, DUALPI2_LIMIT_PKTS_MIN, U32_MAX, "limit" },
	{ TCA_DUALPI2_MEMORY_LIMIT, 4, DUALPI2_MEMORY_LIMIT_MIN, U32_MAX,
	  "memory-limit" },
	{ TCA_DUALPI2_TARGET, 4, DUALPI2_TARGET_US_MIN, DUALPI2_TARGET_US_MAX,
	  "target" },
	{ TCA_DUALPI2_TUPDATE, 4, DUALPI2_TUPDATE_US_MIN,
	  DUALPI2_TUPDATE_US_MAX, "tupdate" },
	{ TCA_DUALPI2_ALPHA, 4, DUALPI2_GAIN_MIN, DUALPI2_GAIN_MAX, NULL },
	{ TCA_DUALPI2_BETA, 4, DUALPI2_GAIN_MIN, DUALPI2_GAIN_MAX, NULL },
	{ TCA_DUALPI2_STEP_THRESH_PKTS, 4, DUALPI2_STEP_THRESH_PKTS_MIN,
	  DUALPI2_STEP_THRESH_PKTS_MAX, "step-thresh-pkts" },
	{ TCA_DUALPI2_STEP_THRESH_US, 4, 0, DUALPI2_STEP_THRESH_US_MAX,
	  "step-thresh-us" },
	{ TCA_DUALPI2_MIN_QLEN_STEP, 4, 0, U32_MAX, "min-qlen-step" },
	{ TCA_DUALPI2_COUPLING, 1, DUALPI2_COUPLING_MIN, DUALPI2_COUPLING_MAX,
	  "coupling" },
	{ TCA_DUALPI2_DROP_OVERLOAD, 1, 0, TCA_DUALPI2_DROP_OVERLOAD_MAX,
	  NULL },
	{ TCA_DUALPI2_DROP_EARLY, 1, 0, TCA_DUALPI2_DROP_EARLY_MAX, NULL },
	{ TCA_DUALPI2_C_PROTECTION, 1, 0, DUALPI2_C_PROTECTION_MAX,
	  "c-protection" },
	{ TCA_DUALPI2_ECN_MASK, 1, TC_DUALPI2_ECN_MASK_L4S_ECT,
	  TCA_DUALPI2_ECN_MASK_MAX, NULL },
	{ TCA_DUALPI2_SPLIT_GSO, 1, 0, TCA_DUALPI2_SPLIT_GSO_MAX, NULL },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_L4S, 1, 0, 1, NULL },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_RAMP_US, 4, 0, DUALPI2_RAMP_US_MAX,
	  "ramp" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_SIGNAL, 1, 0, TC_DUALPI2_SIGNAL_MAX,
	  NULL },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_P_CMAX, 1, 0, DUALPI2_P_CMAX_PCT_MAX,
	  "p-cmax" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_HIST_C, 4, DUALPI2_HIST_US_MIN,
	  DUALPI2_HIST_US_MAX, "hist-c" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_HIST_L, 4, DUALPI2_HIST_US_MIN,
	  DUALPI2_HIST_US_MAX, "hist-l" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_REPORT, 4, DUALPI2_REPORT_US_MIN, U32_MAX,
	  "overload-report" },	/* or 0 */
	{ FUZZ_EXT + TCA_DUALPI2_EXT_BANDWIDTH, 8, DUALPI2_BANDWIDTH_MIN,
	  DUALPI2_BANDWIDTH_MAX, "bandwidth" },	/* or 0 */
	{ FUZZ_EXT + TCA_DUALPI2_EXT_FRAMING, 1, 0, TC_DUALPI2_FRAMING_MAX,
	  NULL },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_OVERHEAD, 4, DUALPI2_OVERHEAD_MIN,
	  DUALPI2_OVERHEAD_MAX, "overhead" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_MPU, 4, 0, DUALPI2_MPU_MAX, "mpu" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_INGRESS, 1, 0, 1, NULL },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_NQB, 8, 0, INT64_MAX, NULL }, /* or more */
	{ FUZZ_EXT + TCA_DUALPI2_EXT_BURST_MAX, 4, 0, DUALPI2_BURST_MAX_US_MAX,
	  "burst-max" },
	{ FUZZ_EXT + TCA_DUALPI2_EXT_BYPASS, 1, 0, 1, NULL },
};

/* The values of a message by type. */
struct fuzz_values {
	__u64 given;
	__u64 val[FUZZ_TYPES];
};

#define FUZZ_BIT(type)	(UINT64_C(1) << (type))
#define FUZZ_L4S	(FUZZ_EXT + TCA_DUALPI2_EXT_L4S)
#define FUZZ_P_CMAX	(FUZZ_EXT + TCA_DUALPI2_EXT_P_CMAX)
#define FUZZ_REPORT	(FUZZ_EXT + TCA_DUALPI2_EXT_REPORT)
#define FUZZ_BANDWIDTH	(FUZZ_EXT + TCA_DUALPI2_EXT_BANDWIDTH)
#define FUZZ_FRAMING	(FUZZ_EXT + TCA_DUALPI2_EXT_FRAMING)
#define FUZZ_OVERHEAD	(FUZZ_EXT + TCA_DUALPI2_EXT_OVERHEAD)
#define FUZZ_MPU	(FUZZ_EXT + TCA_DUALPI2_EXT_MPU)
#define FUZZ_INGRESS	(FUZZ_EXT + TCA_DUALPI2_EXT_INGRESS)
#define FUZZ_NQB	(FUZZ_EXT + TCA_DUALPI2_EXT_NQB)
#define FUZZ_BYPASS	(FUZZ_EXT + TCA_DUALPI2_EXT_BYPASS)

static bool fuzz_is_raw(const struct fuzz_values *values)
{
	return (values->given & FUZZ_BIT(FUZZ_FRAMING)) &&
	       values->val[FUZZ_FRAMING] == TC_DUALPI2_FRAMING_RAW;
}

static int fuzz_knob(unsigned int type)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fuzz_knobs); i++)
		if (fuzz_knobs[i].type == type)
			return i;
	return -1;
}

static bool fuzz_in_knob(unsigned int knob, __u64 val)
{
	unsigned int type = fuzz_knobs[knob].type;

	if (type == FUZZ_NQB)
		return true;
	if (!val && (type == FUZZ_REPORT || type == FUZZ_BANDWIDTH))
		return true;
	return (__s64)val >= fuzz_knobs[knob].min &&
	       (__s64)val <= fuzz_knobs[knob].max;
}

/* As the kernel would take it, or the reason why it would not. */
static bool fuzz_read_nest(const struct rtattr *nest, unsigned int first,
			   struct fuzz_values *to)
{
	int len = RTA_PAYLOAD(nest);
	struct rtattr *rta;

	for (rta = RTA_DATA(nest); RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		unsigned int type = rta->rta_type & NLA_TYPE_MASK;
		int knob;

		if (!first && type == TCA_DUALPI2_EXT) {
			if (!(rta->rta_type & NLA_F_NESTED))
				return FUZZ_FAIL("extension without nest flag");
			if (!fuzz_read_nest(rta, FUZZ_EXT, to))
				return false;
			continue;
		}
		knob = type < FUZZ_EXT ? fuzz_knob(first + type) : -1;
		if (knob < 0)
			return FUZZ_FAIL("unknown attribute %u sent", type);
		type += first;
		if (RTA_PAYLOAD(rta) != fuzz_knobs[knob].size)
			return FUZZ_FAIL("attribute %u of wrong length", type);
		if (to->given & FUZZ_BIT(type))
			return FUZZ_FAIL("attribute %u sent twice", type);
		to->given |= FUZZ_BIT(type);
		to->val[type] = 0;
		memcpy(&to->val[type], RTA_DATA(rta), RTA_PAYLOAD(rta));
		if (fuzz_knobs[knob].min < 0)
			to->val[type] = (__s32)to->val[type];
		if (!fuzz_in_knob(knob, to->val[type]))
			return FUZZ_FAIL("attribute %u is %lld, out of range",
					 type, (long long)to->val[type]);
	}
	if (len > 0)
		return FUZZ_FAIL("bytes left over in the message");
	if ((to->given & FUZZ_BIT(TCA_DUALPI2_STEP_THRESH_PKTS)) &&
	    (to->given & FUZZ_BIT(TCA_DUALPI2_STEP_THRESH_US)))
		return FUZZ_FAIL("step_thresh is both time and packets");
	if (fuzz_is_raw(to) && (to->val[FUZZ_OVERHEAD] || to->val[FUZZ_MPU]))
		return FUZZ_FAIL("raw with an overhead or an MPU");
	if (to->val[FUZZ_BYPASS] && to->val[FUZZ_BANDWIDTH])
		return FUZZ_FAIL("bypass with a bandwidth");
	return true;
}

static bool fuzz_read(const struct rtattr *nest, struct fuzz_values *to)
{
	memset(to, 0, sizeof(*to));
	return fuzz_read_nest(nest, 0, to);
}

/* ---- JSON ---- */

static const char *fuzz_json_value(const char *at, unsigned int depth);

static const char *fuzz_json_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++)
		if ((unsigned char)*at < ' ' || *at == '\\')
			return NULL;	/* none is expected to need an escape */
	return at + 1;
}

static const char *fuzz_json_number(const char *at)
{
	const char *digits;

	at += *at == '-';
	digits = at;
	while (isdigit(*at))
		at++;
	if (at == digits || (*digits == '0' && at > digits + 1))
		return NULL;
	if (*at == '.') {
		digits = ++at;
		while (isdigit(*at))
			at++;
		if (at == digits)
			return NULL;
	}
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '-' || *at == '+';
		digits = at;
		while (isdigit(*at))
			at++;
		if (at == digits)
			return NULL;
	}
	return at;
}

/* The members of an object up to its end; a key may be there once. */
static const char *fuzz_json_members(const char *at, char end,
				     unsigned int depth)
{
	const char *keys[FUZZ_KEYS], *after;
	unsigned int count = 0, i;

	if (depth > FUZZ_DEPTH)
		return NULL;
	if (*at == end)
		return at;
	for (;; at++) {
		after = fuzz_json_string(at);
		if (!after || *after != ':' || count == FUZZ_KEYS)
			return NULL;
		for (i = 0; i < count; i++)
			if (!strncmp(keys[i], at, after - at))
				return NULL;
		keys[count++] = at;
		at = fuzz_json_value(after + 1, depth + 1);
		if (!at)
			return NULL;
		if (*at != ',')
			return *at == end ? at : NULL;
	}
}

static const char *fuzz_json_value(const char *at, unsigned int depth)
{
	static const char *const names[] = { "true", "false", "null" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(at, names[i], strlen(names[i])))
			return at + strlen(names[i]);
	if (*at == '"')
		return fuzz_json_string(at);
	if (*at == '{') {
		at = fuzz_json_members(at + 1, '}', depth);
		return at ? at + 1 : NULL;
	}
	if (*at == '[') {
		if (at[1] == ']')
			return at + 2;
		do {
			at = fuzz_json_value(at + 1, depth + 1);
		} while (at && *at == ',');
		return at && *at == ']' ? at + 1 : NULL;
	}
	return fuzz_json_number(at);
}

/* The stubs print the members of an object that tc has opened. */
static bool fuzz_json_is_good(void)
{
	return fuzz_json_members(out, 0, 0) && !strstr(out, "(null)");
}

static bool fuzz_json_has(const char *key, __s64 val)
{
	char want[64];
	const char *at;

	snprintf(want, sizeof(want), "\"%s\":%lld", key, (long long)val);
	at = strstr(out, want);
	return at && !isdigit(at[strlen(want)]);
}

static bool fuzz_json_has_dscps(__u64 dscps)
{
	char want[TEXT_SIZE], *to = want;
	unsigned int i;

	to += sprintf(to, "\"nqb\":[");
	for (i = 0; i < 64; i++)
		if (dscps & FUZZ_BIT(i))
			to += sprintf(to, "%s%u", to[-1] == '[' ? "" : ",", i);
	sprintf(to, "]");
	return strstr(out, want);
}

/* Of the first queue that has delays. */
static bool fuzz_percentiles_are_in_order(void)
{
	static const char *const keys[] = {
		"p50-ns", "p90-ns", "p99-ns", "p999-ns", "max-ns",
	};
	__u64 before = 0, ns;
	unsigned int i;

	if (!strstr(out, "\"delay\":{") || strstr(out, "\"p50-ns\":null"))
		return true;
	for (i = 0; i < ARRAY_SIZE(keys); i++, before = ns) {
		ns = json_number(keys[i]);
		if (ns < before)
			return FUZZ_FAIL("%s is %llu, after %llu", keys[i],
					 (unsigned long long)ns,
					 (unsigned long long)before);
	}
	return true;
}

/* ---- one input ---- */

static char fuzz_said[TEXT_SIZE];
static FILE *fuzz_stderr;

/* The words are lines of text, which is cut up. */
static int fuzz_split(char *text, char **argv)
{
	int argc = 0;

	while (argc < FUZZ_WORDS) {
		char *end = strchr(text, '\n');

		if (!end)
			break;
		*end = 0;
		argv[argc++] = text;
		text = end + 1;
	}
	return argc;
}

static int fuzz_parse(char *text)
{
	char *argv[FUZZ_WORDS + 1] = {}, before[FUZZ_BYTES + 1];
	FILE *real = stderr;
	int argc, ret, i;
	long len;

	argc = fuzz_split(text, argv);
	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	for (i = 0; i < argc; i++)
		memcpy(before + (argv[i] - text), argv[i], strlen(argv[i]) + 1);

	rewind(fuzz_stderr);
	stderr = fuzz_stderr;
	ret = dualpi2_qdisc_util.parse_qopt(&dualpi2_qdisc_util, argc, argv,
					    &msg.n, "eth0");
	fflush(stderr);
	stderr = real;
	len = ftell(fuzz_stderr);
	fuzz_said[len > 0 ? len : 0] = 0;

	for (i = 0; i < argc; i++)
		if (strcmp(before + (argv[i] - text), argv[i]))
			return 1;
	return ret;
}

/* The value of a plain decimal number with a unit, in 2^-8 of the attribute's
 * unit, by integer arithmetic alone.
 */
static bool fuzz_exact(const char *arg, unsigned int type, __s64 *val256)
{
	static const struct {
		const char *name;
		__u64 factor;
	} units[] = {
		{ "", 1 }, { "us", 1 }, { "ms", 1000 }, { "s", 1000000 },
		{ "p", 1 }, { "%", 1 }, { "b", 1 }, { "k", 1 << 10 },
		{ "m", 1 << 20 }, { "g", 1 << 30 },
		/* bits */
		{ "bit", 1 }, { "kbit", 1000 }, { "mbit", 1000000 },
		{ "gbit", 1000000000 }, { "tbit", 1000000000000 },
		{ "kibit", 1 << 10 }, { "gibit", 1 << 30 }, { "bps", 8 },
		{ "kbps", 8000 }, { "gbps", 8000000000 },
		{ "mibps", 1 << 23 },
	};
	unsigned __int128 num = 0, den = type == FUZZ_BANDWIDTH ? 8 : 1;
	bool dot = false, negative = *arg == '-';
	unsigned int digits = 0, i;

	arg += negative;
	for (; isdigit(*arg) || (*arg == '.' && !dot); arg++) {
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
	num *= units[i].factor;
	num <<= 8;
	if (type == TCA_DUALPI2_ALPHA || type == TCA_DUALPI2_BETA)
		num <<= 8;
	num /= den;
	*val256 = negative ? -(__s64)num : (__s64)num;
	return num >> 62 == 0;
}

static const struct {
	const char *word;
	unsigned int type;
} fuzz_with_value[] = {
	{ "limit", TCA_DUALPI2_LIMIT },
	{ "memlimit", TCA_DUALPI2_MEMORY_LIMIT },
	{ "target", TCA_DUALPI2_TARGET },
	{ "tupdate", TCA_DUALPI2_TUPDATE },
	{ "alpha", TCA_DUALPI2_ALPHA },
	{ "beta", TCA_DUALPI2_BETA },
	{ "step_thresh", TCA_DUALPI2_STEP_THRESH_US },
	{ "min_qlen_step", TCA_DUALPI2_MIN_QLEN_STEP },
	{ "coupling_factor", TCA_DUALPI2_COUPLING },
	{ "classic_protection", TCA_DUALPI2_C_PROTECTION },
	{ "ramp", FUZZ_EXT + TCA_DUALPI2_EXT_RAMP_US },
	{ "p_cmax", FUZZ_EXT + TCA_DUALPI2_EXT_P_CMAX },
	{ "hist_c", FUZZ_EXT + TCA_DUALPI2_EXT_HIST_C },
	{ "hist_l", FUZZ_EXT + TCA_DUALPI2_EXT_HIST_L },
	{ "overload_report", FUZZ_EXT + TCA_DUALPI2_EXT_REPORT },
	{ "bandwidth", FUZZ_EXT + TCA_DUALPI2_EXT_BANDWIDTH },
	{ "overhead", FUZZ_EXT + TCA_DUALPI2_EXT_OVERHEAD },
	{ "mpu", FUZZ_EXT + TCA_DUALPI2_EXT_MPU },
	{ "nqb", FUZZ_EXT + TCA_DUALPI2_EXT_NQB },
	{ "burst_max", FUZZ_EXT + TCA_DUALPI2_EXT_BURST_MAX },
	/* The kernel does not see these. */
	{ "max_rtt", 0 },
	{ "typical_rtt", 0 },
};

static int fuzz_value_of(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fuzz_with_value); i++)
		if (!strcmp(word, fuzz_with_value[i].word))
			return i;
	return -1;
}

/* Of tc-cake(8); the first one adds to the others. */
static const struct {
	const char *word;
	int overhead;
	unsigned int mpu;
	unsigned int framing;
} fuzz_presets[] = {
	{ "ether-vlan", 4, 0, 0 },
	{ "conservative", 48, 0, TC_DUALPI2_FRAMING_ATM },
	{ "ipoa-vcmux", 8, 0, TC_DUALPI2_FRAMING_ATM },
	{ "ipoa-llcsnap", 16, 0, TC_DUALPI2_FRAMING_ATM },
	{ "bridged-vcmux", 24, 0, TC_DUALPI2_FRAMING_ATM },
	{ "bridged-llcsnap", 32, 0, TC_DUALPI2_FRAMING_ATM },
	{ "pppoa-vcmux", 10, 0, TC_DUALPI2_FRAMING_ATM },
	{ "pppoa-llc", 14, 0, TC_DUALPI2_FRAMING_ATM },
	{ "pppoe-vcmux", 32, 0, TC_DUALPI2_FRAMING_ATM },
	{ "pppoe-llcsnap", 40, 0, TC_DUALPI2_FRAMING_ATM },
	{ "pppoe-ptm", 30, 0, TC_DUALPI2_FRAMING_PTM },
	{ "bridged-ptm", 22, 0, TC_DUALPI2_FRAMING_PTM },
	{ "docsis", 18, 64, TC_DUALPI2_FRAMING_NOATM },
	{ "ethernet", 38, 84, TC_DUALPI2_FRAMING_NOATM },
};

/* Of values with units, exponents, and hexadecimal ones. */
static const char fuzz_value_chars[] =
	"0123456789.,+-%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Does another word of the line, before or behind, set what type is, too? */
static bool fuzz_is_adjusted(char **argv, int argc, unsigned int type)
{
	static const char *const none[] = { "max_rtt", "typical_rtt", NULL };
	const bool gains = type >= TCA_DUALPI2_TARGET &&
			   type <= TCA_DUALPI2_BETA;
	const bool length = type == FUZZ_OVERHEAD || type == FUZZ_MPU;
	int i, j;

	for (i = 0; i < argc; i++) {
		for (j = 0; none[j] && gains; j++)
			if (!strcmp(argv[i], none[j]))
				return true;
		if ((type == FUZZ_BANDWIDTH && !strcmp(argv[i], "unlimited")) ||
		    (type == FUZZ_NQB && !strcmp(argv[i], "no_nqb")) ||
		    (length && !strcmp(argv[i], "raw")))
			return true;
		for (j = 0; length && j < (int)ARRAY_SIZE(fuzz_presets); j++)
			if (!strcmp(argv[i], fuzz_presets[j].word))
				return true;
	}
	return false;
}

/* Each of the list in the attribute, and nothing else. */
static bool fuzz_dscps_are(const char *arg, __u64 dscps)
{
	while (*arg) {
		char *end;
		unsigned long dscp = strtoul(arg, &end,
					     strncasecmp(arg, "0x", 2) ? 10 : 16);

		if (dscp > 63 || !(dscps & FUZZ_BIT(dscp)))
			return false;
		dscps &= ~FUZZ_BIT(dscp);
		arg = end + (*end == ',');
	}
	return !dscps;
}

/* What a preset leads to, if nothing in the line is about the link layer but tags
 * behind it.
 */
static bool fuzz_preset_is_meant(char **argv, int argc,
				 const struct fuzz_values *got)
{
	static const char *const others[] = {
		"overhead", "mpu", "raw", "noatm", "atm", "ptm",
	};
	int i, preset = -1, overhead = 0;
	unsigned int j;

	for (i = 0; i < argc; i++) {
		for (j = 0; j < ARRAY_SIZE(others); j++)
			if (!strcmp(argv[i], others[j]))
				return true;
		for (j = 0; j < ARRAY_SIZE(fuzz_presets); j++) {
			if (strcmp(argv[i], fuzz_presets[j].word))
				continue;
			overhead += fuzz_presets[j].overhead;
			if (j)
				preset = j;
		}
	}
	if (preset < 0)
		return true;
	return got->val[FUZZ_OVERHEAD] == (__u64)overhead &&
	       got->val[FUZZ_MPU] == fuzz_presets[preset].mpu &&
	       got->val[FUZZ_FRAMING] == fuzz_presets[preset].framing;
}

/* Does the message hold what each "word number" of the line says? */
static bool fuzz_values_are_meant(char **argv, int argc,
				  const struct fuzz_values *got)
{
	unsigned int vlans = 0;
	int i, j;

	for (i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "ether-vlan")) {
			if (++vlans > 3)
				return FUZZ_FAIL("ether-vlan is taken too often");
			continue;
		}
		for (j = 0; isalpha(*argv[i]) && j < i; j++)
			if (!strcmp(argv[i], argv[j]))
				return FUZZ_FAIL("%.200s is taken twice",
						 argv[i]);
	}
	for (i = 0; i + 1 < argc; i++) {
		int which = fuzz_value_of(argv[i]);
		__s64 want256, off;
		unsigned int type;

		if (which < 0)
			continue;
		type = fuzz_with_value[which].type;
		i++;
		if (strspn(argv[i], fuzz_value_chars) != strlen(argv[i]))
			return FUZZ_FAIL("%s takes %.200s", argv[i - 1],
					 argv[i]);
		/* What comes of it then depends on the order. */
		if (!type || fuzz_is_adjusted(argv, argc, type))
			continue;
		if (type == TCA_DUALPI2_STEP_THRESH_US && strchr(argv[i], 'p'))
			type = TCA_DUALPI2_STEP_THRESH_PKTS;
		if (type != FUZZ_NQB && !fuzz_exact(argv[i], type, &want256))
			continue;
		if (!(got->given & FUZZ_BIT(type)))
			return FUZZ_FAIL("%s is not sent", argv[i - 1]);
		if (type == FUZZ_NQB) {
			if (!fuzz_dscps_are(argv[i], got->val[type]))
				return FUZZ_FAIL("nqb is sent as %llx",
						 (unsigned long long)
						 got->val[type]);
			continue;
		}
		off = (__s64)got->val[type] * 256 - want256;
		if (off > 128 || off < -128)
			return FUZZ_FAIL("%s is sent as %lld", argv[i - 1],
					 (long long)got->val[type]);
	}
	if (!fuzz_preset_is_meant(argv, argc, got))
		return FUZZ_FAIL("the preset is sent as %.200s", sent());
	return true;
}

/* A copy that the sanitizer sees the ends of. */
static bool fuzz_print(bool as_json, bool xstats, unsigned int type,
		       const void *data, unsigned int len)
{
	struct rtattr *rta = malloc(RTA_LENGTH(len));
	int ret;

	if (!rta)
		return false;
	rta->rta_type = type;
	rta->rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(rta), data, len);
	ret = print(as_json, xstats, rta);
	free(rta);
	return ret == 0;
}

static bool fuzz_is_same(const struct fuzz_values *a,
			 const struct fuzz_values *b)
{
	__u64 shown = a->given;
	unsigned int i;

	/* What is off, or the default, shows in the text by nothing. */
	if (a->val[FUZZ_L4S])
		shown &= ~FUZZ_BIT(FUZZ_L4S);
	if (!a->val[FUZZ_P_CMAX])
		shown &= ~FUZZ_BIT(FUZZ_P_CMAX);
	if (!a->val[FUZZ_BANDWIDTH])
		shown &= ~FUZZ_BIT(FUZZ_BANDWIDTH);
	if (!a->val[FUZZ_INGRESS])
		shown &= ~FUZZ_BIT(FUZZ_INGRESS);
	if (!a->val[FUZZ_BYPASS])
		shown &= ~FUZZ_BIT(FUZZ_BYPASS);
	if (fuzz_is_raw(a))
		shown &= ~(FUZZ_BIT(FUZZ_FRAMING) | FUZZ_BIT(FUZZ_OVERHEAD) |
			   FUZZ_BIT(FUZZ_MPU));
	if (shown != b->given)
		return false;
	for (i = 0; i < FUZZ_TYPES; i++)
		if ((shown & FUZZ_BIT(i)) && a->val[i] != b->val[i])
			return false;
	return true;
}

/* Text and JSON of options that a kernel takes, and the text parsed again. */
static bool fuzz_round_trip(const struct fuzz_values *want, const void *data,
			    unsigned int len)
{
	struct fuzz_values again;
	char text[TEXT_SIZE];
	unsigned int i;

	if (!fuzz_print(true, false, TCA_OPTIONS, data, len) ||
	    !fuzz_json_is_good())
		return FUZZ_FAIL("bad JSON: %.200s", out);
	for (i = 0; i < ARRAY_SIZE(fuzz_knobs); i++)
		if ((want->given & FUZZ_BIT(fuzz_knobs[i].type)) &&
		    fuzz_knobs[i].json_key &&
		    !fuzz_json_has(fuzz_knobs[i].json_key,
				   want->val[fuzz_knobs[i].type]))
			return FUZZ_FAIL("JSON of %s is wrong: %.200s",
					 fuzz_knobs[i].json_key, out);

	if ((want->given & FUZZ_BIT(FUZZ_NQB)) &&
	    !fuzz_json_has_dscps(want->val[FUZZ_NQB]))
		return FUZZ_FAIL("JSON of nqb is wrong: %.200s", out);

	if (!fuzz_print(false, false, TCA_OPTIONS, data, len))
		return FUZZ_FAIL("options are not printed");
	memcpy(text, out, out_len + 1);
	for (i = 0; i < out_len; i++)
		if (text[i] == ' ')
			text[i] = '\n';
	if (fuzz_parse(text))
		return FUZZ_FAIL("refused again: %.200s%.200s", out, fuzz_said);
	if (!fuzz_read(options(), &again))
		return false;
	if (!fuzz_is_same(want, &again))
		return FUZZ_FAIL("parsed again as %.200s: %.200s", sent(), out);
	return true;
}

static bool fuzz_line(void)
{
	static union {
		struct rtattr rta;
		char bytes[MSG_SIZE];
	} first;
	char text[FUZZ_BYTES + 1], *argv[FUZZ_WORDS + 1];
	struct fuzz_values got;
	size_t said;
	int argc, ret;

	memcpy(text, fuzz->bytes, fuzz->len);
	text[fuzz->len] = 0;
	ret = fuzz_parse(text);
	if (ret == -1) {
		said = strlen(fuzz_said);
		if (!said || fuzz_said[said - 1] != '\n')
			return FUZZ_FAIL("refused without a word");
		return true;
	}
	if (ret)
		return FUZZ_FAIL("a word was changed, or the code is %d", ret);
	fuzz->accepted++;
	if (!fuzz_read(options(), &got))
		return false;
	if (fuzz_is_raw(&got) && (got.given & (FUZZ_BIT(FUZZ_OVERHEAD) |
					       FUZZ_BIT(FUZZ_MPU))))
		return FUZZ_FAIL("an overhead is sent with raw");
	if (options()->rta_type != (TCA_OPTIONS | NLA_F_NESTED) ||
	    NLMSG_ALIGN(options()->rta_len) != NLMSG_PAYLOAD(&msg.n, 0))
		return FUZZ_FAIL("something else than options is sent");

	memcpy(text, fuzz->bytes, fuzz->len);
	text[fuzz->len] = 0;
	argc = fuzz_split(text, argv);
	if (!fuzz_values_are_meant(argv, argc, &got))
		return false;
	memcpy(&first, options(), options()->rta_len);
	return fuzz_round_trip(&got, RTA_DATA(&first.rta),
			       RTA_PAYLOAD(&first.rta));
}

static bool fuzz_examine(void)
{
	struct fuzz_values values;
	bool xstats = fuzz->kind == FUZZ_XSTATS;
	union {
		struct rtattr rta;
		char bytes[FUZZ_BYTES + 16];
	} copy;

	fuzz->bytes[fuzz->len] = 0;
	fuzz->why[0] = 0;
	switch (fuzz->kind) {
	case FUZZ_LINE:
		return fuzz_line();
	case FUZZ_DUMP:
		copy.rta.rta_len = RTA_LENGTH(fuzz->len);
		memcpy(RTA_DATA(&copy.rta), fuzz->bytes, fuzz->len);
		if (!fuzz_read(&copy.rta, &values))
			return true;	/* made smaller, it is no such thing */
		fuzz->accepted++;
		return fuzz_round_trip(&values, fuzz->bytes, fuzz->len);
	default:
		if (!fuzz_print(true, xstats, TCA_OPTIONS, fuzz->bytes,
				fuzz->len) || !fuzz_json_is_good())
			return FUZZ_FAIL("bad JSON: %.200s", out);
		if (xstats && !fuzz_percentiles_are_in_order())
			return false;
		if (!fuzz_print(false, xstats, TCA_OPTIONS, fuzz->bytes,
				fuzz->len) || strstr(out, "(null)"))
			return FUZZ_FAIL("bad text: %.200s", out);
		return true;
	}
}

/* ---- making inputs ---- */

/* xorshift64*: the same on every machine */
static __u32 fuzz_random(void)
{
	fuzz_state ^= fuzz_state >> 12;
	fuzz_state ^= fuzz_state << 25;
	fuzz_state ^= fuzz_state >> 27;
	return (fuzz_state * UINT64_C(0x2545F4914F6CDD1D)) >> 32;
}

static __u32 fuzz_below(__u32 end)
{
	return (__u64)fuzz_random() * end >> 32;
}

static void fuzz_put(const void *bytes, unsigned int len)
{
	if (fuzz->len + len > FUZZ_BYTES)
		return;
	memcpy(fuzz->bytes + fuzz->len, bytes, len);
	fuzz->len += len;
}

/* A number that is close to where something changes, or any. */
static __u64 fuzz_edge(void)
{
	__u64 val;

	switch (fuzz_below(4)) {
	case 0:
		val = fuzz_knobs[fuzz_below(ARRAY_SIZE(fuzz_knobs))].max;
		return val + fuzz_below(3) - (val ? 1 : 0);
	case 1:
		return (UINT64_C(1) << fuzz_below(64)) + fuzz_below(3) - 1;
	case 2:
		return fuzz_below(2000);
	default:
		return (((__u64)fuzz_random() << 32) | fuzz_random()) >>
		       fuzz_below(64);
	}
}

static __u64 fuzz_in_range(unsigned int knob)
{
	__s64 min = fuzz_knobs[knob].min, max = fuzz_knobs[knob].max;
	unsigned int type = fuzz_knobs[knob].type;
	__u64 val;

	if ((type == FUZZ_REPORT || type == FUZZ_BANDWIDTH) && !fuzz_below(6))
		return 0;
	if (type == FUZZ_NQB) {
		val = fuzz_below(2) ? fuzz_edge() : fuzz_random();
		return val ^ FUZZ_BIT(fuzz_below(64));
	}
	switch (fuzz_below(6)) {
	case 0:
		return min;
	case 1:
		return max;
	case 2:
		val = fuzz_edge();
		break;
	default:
		val = (((__u64)fuzz_random() << 32) | fuzz_random()) >>
		      fuzz_below(64);
	}
	return min + val % ((__u64)(max - min) + 1);
}

static const char *fuzz_number(char *buf, size_t size)
{
	static const char *const odd[] = {
		"", ".", "..", "-", "-1", "-0", "+1", " 1", "1 ", "nan", "NAN",
		"nan(1)", "inf", "infinity", "-inf", "1e9", "1e-9", "1e308",
		"1e309", "1e99999999999", "4e-400", "0x10", "0x1p3",
		"0x1.8p1", "0xffffffff", "0x", "1_0", "1,5", "1.5.5", "00015",
		"0000000000000000000000000000000000000000000000000000000001",
		"4294967295.4999999999999999999999999999999999999999999999",
		"4294967.2949999999999999999999999999", "0.5", "0.49999999",
		"9007199254740992", "9007199254740993", "18446744073709551616",
		"1e15", "\377", "%s%n", "5\t", "help", "-64", "-65", "45,46",
		"0x2d", "0x2D,63,0", "1,2,3,", ",1", "1,1", "8kbit",
		"1tbit", "0.125tbps", "18446744073709552616bps",
	};

	switch (fuzz_below(8)) {
	case 0:
		return odd[fuzz_below(ARRAY_SIZE(odd))];
	case 1:
		snprintf(buf, size, "%u.%0*u", fuzz_below(5000),
			 1 + fuzz_below(6), fuzz_below(1000000));
		return buf;
	case 2:
		snprintf(buf, size, ".%u", fuzz_random());
		return buf;
	case 3:
		snprintf(buf, size, "%llu", (unsigned long long)fuzz_edge());
		return buf;
	case 4:
		snprintf(buf, size, "%.17g", (double)fuzz_edge() / 256);
		return buf;
	default:
		snprintf(buf, size, "%u", fuzz_below(5000));
		return buf;
	}
}

static void fuzz_word(const char *word)
{
	fuzz_put(word, strlen(word));
}

/* A list of them, in any order of two, as decimal or hexadecimal numbers. */
static void fuzz_dscps(__u64 dscps)
{
	const char *before = "";
	unsigned int i, flip = fuzz_below(64);
	char buf[64];

	for (i = 0; i < 64; i++) {
		unsigned int dscp = i ^ flip;

		if (!(dscps & FUZZ_BIT(dscp)))
			continue;
		snprintf(buf, sizeof(buf), fuzz_below(2) ? "%s%u" : "%s0x%x",
			 before, dscp);
		fuzz_word(buf);
		before = ",";
	}
	fuzz_word("\n");
}

static void fuzz_make_line(void)
{
	static const char *const units[] = {
		"", "", "", "", "us", "ms", "s", "sec", "usecs", "MS", "Sec",
		"p", "pkt", "packets", "P", "k", "kb", "K", "m", "g", "GB",
		"b", "B", "%", "hz", "ns", "bit", "x", "pp", " ", "\001",
		"kbit", "mbit", "Gbit", "tbit", "kibit", "gibit", "bps",
		"kbps", "gbps", "MiBps", "tibps",
	};
	unsigned int n = fuzz_below(8), i, j;
	char buf[64];

	for (i = 0; i < n; i++) {
		const char *word = words[fuzz_below(ARRAY_SIZE(words))];

		if (!fuzz_below(50))
			word = fuzz_below(2) ? "help" : "";
		if (fuzz_below(60))
			fuzz_word(word);
		else		/* cut short */
			fuzz_put(word, fuzz_below(strlen(word) + 1));
		fuzz_word("\n");
		if (!strcmp(word, "ether-vlan"))
			for (j = fuzz_below(5); j; j--)
				fuzz_word("ether-vlan\n");
		if (fuzz_value_of(word) < 0 ? fuzz_below(100) : !fuzz_below(50))
			continue;
		/* Half of them what the option wants, or few lines are taken. */
		if (fuzz_below(2)) {
			int which = fuzz_value_of(word);
			unsigned int type = which < 0 ? TCA_DUALPI2_LIMIT :
					    fuzz_with_value[which].type;
			/* For max_rtt and typical_rtt, which have none. */
			int knob = fuzz_knob(type ?: TCA_DUALPI2_TARGET);
			__u64 val = fuzz_in_range(knob);

			if (type == FUZZ_NQB) {
				fuzz_dscps(val);
				continue;
			}
			snprintf(buf, sizeof(buf), "%lld%s", (long long)val,
				 type == FUZZ_BANDWIDTH ? "bps" : "");
			fuzz_word(buf);
		} else {
			fuzz_word(fuzz_number(buf, sizeof(buf)));
			fuzz_word(units[fuzz_below(ARRAY_SIZE(units))]);
		}
		fuzz_word("\n");
	}
	/* Some bytes changed, inserted, or a piece put in twice. */
	while (fuzz->len && !fuzz_below(8)) {
		unsigned int at = fuzz_below(fuzz->len);
		unsigned char byte = fuzz_below(4) ? ' ' + fuzz_below(95) :
						     1 + fuzz_below(255);

		if (fuzz_below(2)) {
			fuzz->bytes[at] = byte;
		} else {
			unsigned int len = fuzz_below(fuzz->len - at + 1);

			if (fuzz->len + len <= FUZZ_BYTES) {
				memmove(fuzz->bytes + at + len,
					fuzz->bytes + at, fuzz->len - at);
				fuzz->len += len;
			}
		}
	}
}

static void fuzz_attr(unsigned int type, const void *data, unsigned int len)
{
	const struct rtattr rta = { RTA_LENGTH(len), type };

	fuzz_put(&rta, sizeof(rta));
	fuzz_put(data, len);
	fuzz_put("\0\0\0", RTA_ALIGN(len) - len);
}

/* All knobs, as the kernel shows its configuration. */
static void fuzz_make_dump(void)
{
	unsigned int i, ext_at = 0;
	bool pkts = fuzz_below(2), raw = fuzz_below(2), bypass = fuzz_below(2);

	for (i = 0; i < ARRAY_SIZE(fuzz_knobs); i++) {
		unsigned int type = fuzz_knobs[i].type;
		__u64 val = fuzz_in_range(i);
		struct rtattr ext = { sizeof(ext),
				      TCA_DUALPI2_EXT | NLA_F_NESTED };

		if (type == TCA_DUALPI2_STEP_THRESH_PKTS ? !pkts :
		    type == TCA_DUALPI2_STEP_THRESH_US && pkts)
			continue;
		if (raw && (type == FUZZ_FRAMING || type == FUZZ_OVERHEAD ||
			    type == FUZZ_MPU))
			val = 0;
		else if (type == FUZZ_FRAMING && !val)
			val = TC_DUALPI2_FRAMING_MAX;
		if (type == (bypass ? FUZZ_BANDWIDTH : FUZZ_BYPASS))
			val = 0;
		if (type >= FUZZ_EXT && !ext_at) {
			ext_at = fuzz->len;
			fuzz_put(&ext, sizeof(ext));
		}
		/* Little end first: the byte of a u8 is the first one. */
		fuzz_attr(type % FUZZ_EXT, &val, fuzz_knobs[i].size);
	}
	((struct rtattr *)(fuzz->bytes + ext_at))->rta_len = fuzz->len - ext_at;
}

static void fuzz_spoil(void)
{
	unsigned int n = fuzz_below(6);

	while (n-- && fuzz->len) {
		unsigned int at = fuzz_below(fuzz->len);

		if (fuzz_below(2))
			fuzz->bytes[at] = fuzz_random();
		else if (fuzz_below(2))
			fuzz->bytes[at] = fuzz_below(16);
		else
			fuzz->len = at;
	}
}

static void fuzz_make_options(void)
{
	unsigned int n = fuzz_below(12);
	unsigned char data[64];

	if (fuzz_below(2)) {
		fuzz_make_dump();
		fuzz_spoil();
		return;
	}
	while (n--) {
		unsigned int type = fuzz_below(FUZZ_EXT), len, i;

		if (!fuzz_below(5))
			type = TCA_DUALPI2_EXT;
		else if (!fuzz_below(5))
			type = fuzz_random() & 0xffff;
		if (fuzz_below(2))
			type |= NLA_F_NESTED;
		len = fuzz_below(fuzz_below(2) ? 6 : sizeof(data));
		for (i = 0; i < sizeof(data); i++)
			data[i] = fuzz_below(2) ? fuzz_random() :
						  fuzz_below(8);
		fuzz_attr(type, data, len);
	}
	if (fuzz_below(2))
		fuzz_spoil();
}

/* Bytes of a struct or an array of u64, as long as it may be or not. */
static void fuzz_numbers(unsigned int type, unsigned int size)
{
	unsigned char data[200 * sizeof(__u64)];
	unsigned int i;
	__u64 val;

	for (i = 0; i + sizeof(val) <= sizeof(data); i += sizeof(val)) {
		val = fuzz_below(3) ? fuzz_below(100) : fuzz_edge();
		memcpy(data + i, &val, sizeof(val));
	}
	if (!fuzz_below(4))
		size = fuzz_below(2) ? fuzz_below(size + 1) :
				       size + fuzz_below(20);
	fuzz_attr(type, data, size);
}

static void fuzz_delay(void)
{
	struct tc_dualpi2_delay delay = {
		.sum_ns = fuzz_edge(), .max_ns = fuzz_edge(),
		.beyond = fuzz_below(2) ? 0 : fuzz_edge(),
		.unit_ns = fuzz_below(2) ? 1024U << fuzz_below(15) :
					   fuzz_edge(),
		.buckets = fuzz_below(2) ? 96 : fuzz_edge(),
	};

	fuzz_attr(TCA_DUALPI2_QUEUE_DELAY, &delay, sizeof(delay));
}

/* The attributes behind the struct. */
static void fuzz_make_stats(void)
{
	unsigned int n = fuzz_below(4), m, at;
	struct rtattr nest = {};

	while (n--) {
		at = fuzz->len;
		nest.rta_type = 1 + fuzz_below(TCA_DUALPI2_STATS_MAX + 1);
		if (nest.rta_type == TCA_DUALPI2_STATS_OVERLOAD) {
			fuzz_numbers(nest.rta_type,
				     sizeof(struct tc_dualpi2_overload));
			continue;
		}
		if (nest.rta_type == TCA_DUALPI2_STATS_LINK) {
			fuzz_numbers(nest.rta_type,
				     sizeof(struct tc_dualpi2_link));
			continue;
		}
		fuzz_put(&nest, sizeof(nest));
		if (fuzz_below(2))
			fuzz_numbers(TCA_DUALPI2_QUEUE_COUNTERS,
				     sizeof(struct tc_dualpi2_counters));
		if (fuzz_below(8))
			fuzz_delay();
		if (fuzz_below(8))
			fuzz_numbers(TCA_DUALPI2_QUEUE_HIST,
				     fuzz_below(110) * sizeof(__u64));
		for (m = fuzz_below(3); m; m--)
			fuzz_numbers(fuzz_below(8), fuzz_below(40));
		nest.rta_len = fuzz->len - at;
		memcpy(fuzz->bytes + at, &nest, sizeof(nest));
	}
	if (!fuzz_below(3))
		fuzz_spoil();
}

static void fuzz_make_xstats(void)
{
	static const __u32 sizes[] = {
		0, 4, 7, 8, 9, 136, 264, 327, 328, 329, UINT32_MAX,
	};
	__u32 head[2] = { TC_DUALPI2_EXT_XSTATS_MAGIC };
	unsigned int len = fuzz_below(700), i;

	for (i = 0; i < len; i++)
		fuzz->bytes[i] = fuzz_below(3) ? fuzz_random() :
				 fuzz_below(2) ? 0 : 255;
	fuzz->len = len;
	head[1] = fuzz_below(2) ? sizes[fuzz_below(ARRAY_SIZE(sizes))] :
				  fuzz_below(400);
	if (fuzz_below(4))
		memcpy(fuzz->bytes + TC_DUALPI2_EXT_XSTATS_OFFSET, head,
		       sizeof(head));
	if (fuzz_below(2))
		return;
	fuzz->len = XSTATS_SIZE;
	head[1] = sizeof(struct tc_dualpi2_ext_xstats);
	memcpy(fuzz->bytes + TC_DUALPI2_EXT_XSTATS_OFFSET, head, sizeof(head));
	fuzz_make_stats();
}

static void (*const fuzz_make[FUZZ_KINDS])(void) = {
	fuzz_make_line, fuzz_make_options, fuzz_make_dump, fuzz_make_xstats,
};

/* ---- running ---- */

/* Runs count inputs of the present kind, or the one that is there, in a child.
 * Returns whether all were good; the bad one, and why it is, are left there.
 */
static bool fuzz_run(unsigned long long count, bool quiet)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		exit(1);
	if (!child) {
		unsigned long long i;

		if (quiet && !freopen("/dev/null", "w", stderr))
			_exit(1);
		fuzz_stderr = fmemopen(fuzz_said, sizeof(fuzz_said), "w");
		if (!fuzz_stderr)
			_exit(1);
		if (!count)
			_exit(!fuzz_examine());
		for (i = 0; i < count; i++) {
			fuzz->len = 0;
			fuzz_make[fuzz->kind]();
			if (!fuzz_examine())
				_exit(1);
			fuzz->done++;
		}
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child)
		exit(1);
	if (status && !fuzz->why[0])
		snprintf(fuzz->why, FUZZ_WHY, "the program died, status 0x%x",
			 status);
	return !status;
}

/* Leaves out lines or bytes as long as it still fails. */
static void fuzz_minimise(void)
{
	unsigned int at = 0;

	while (at < fuzz->len) {
		struct fuzz_input before = *fuzz;
		unsigned int len = 1;

		if (fuzz->kind == FUZZ_LINE)
			while (at + len < fuzz->len &&
			       fuzz->bytes[at + len - 1] != '\n')
				len++;
		memmove(fuzz->bytes + at, fuzz->bytes + at + len,
			fuzz->len - at - len);
		fuzz->len -= len;
		if (fuzz_run(0, true)) {
			*fuzz = before;
			at += len;
		}
	}
	fuzz_run(0, true);
}

static void fuzz_report(const char *directory)
{
	__u64 hash = UINT64_C(0xcbf29ce484222325);
	char path[4096];
	unsigned int i;
	FILE *file;

	fuzz_minimise();
	for (i = 0; i < fuzz->len; i++)
		hash = (hash ^ fuzz->bytes[i]) * UINT64_C(0x100000001b3);
	snprintf(path, sizeof(path), "%s/%08x%s", directory,
		 (unsigned int)(hash >> 32), fuzz_suffix[fuzz->kind]);
	file = fopen(path, "w");
	if (file) {
		fwrite(fuzz->bytes, 1, fuzz->len, file);
		fclose(file);
	}
	comment("why", fuzz->why);
	printf("# input: %s\n# bytes:", path);
	for (i = 0; i < fuzz->len && i < 200; i++) {
		if (isgraph(fuzz->bytes[i]))
			putchar(fuzz->bytes[i]);
		else
			printf("\\x%02x", fuzz->bytes[i]);
	}
	putchar('\n');
}

static int fuzz_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void fuzz_replay(const char *directory)
{
	struct dirent **names = NULL;
	unsigned int bad = 0, done = 0;
	int count, i;

	count = scandir(directory, &names, NULL, fuzz_by_name);
	for (i = 0; i < count; i++) {
		const char *suffix = strrchr(names[i]->d_name, '.');
		char path[4096];
		FILE *file;
		int kind;

		for (kind = 0; kind < FUZZ_KINDS; kind++)
			if (suffix && !strcmp(suffix, fuzz_suffix[kind]))
				break;
		if (kind == FUZZ_KINDS)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory,
			 names[i]->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		fuzz->kind = kind;
		fuzz->len = fread(fuzz->bytes, 1, FUZZ_BYTES, file);
		fclose(file);
		done++;
		if (!fuzz_run(0, false)) {
			bad++;
			printf("# %s: %s\n", path, fuzz->why);
		}
	}
	for (i = 0; i < count; i++)
		free(names[i]);
	free(names);
	check(count >= 0 && done && !bad, "corpus_replayed_holds");
	printf("# inputs:%u\n", done);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum fuzz_kind kind;
		unsigned int share;	/* of the number of command lines */
	} parts[] = {
		{ "command_lines_random_hold", FUZZ_LINE, 1 },
		{ "options_of_a_kernel_come_back", FUZZ_DUMP, 8 },
		{ "options_random_hold", FUZZ_OPTIONS, 8 },
		{ "statistics_random_hold", FUZZ_XSTATS, 8 },
	};
	const char *directory = argc > 1 ? argv[1] : ".";
	const char *lines = getenv("DUALPI2_FUZZ_LINES");
	const char *seed = getenv("DUALPI2_FUZZ_SEED");
	unsigned long long count = lines ? strtoull(lines, NULL, 0) : 1000000;
	unsigned int i;

	fuzz = mmap(NULL, sizeof(*fuzz), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fuzz == MAP_FAILED)
		return 1;
	printf("KTAP version 1\n1..%zu\n", ARRAY_SIZE(parts) + (argc > 1));
	printf("# seed %s\n", seed ? seed : "9332");
	if (argc > 1)
		fuzz_replay(directory);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		bool good;

		fuzz_state = (seed ? strtoull(seed, NULL, 0) : 9332) *
			     UINT64_C(0x9E3779B97F4A7C15) + i + 1;
		fuzz->kind = parts[i].kind;
		fuzz->done = 0;
		fuzz->accepted = 0;
		good = fuzz_run((count + parts[i].share - 1) / parts[i].share,
				false);
		printf("# inputs:%llu", fuzz->done);
		if (parts[i].kind == FUZZ_LINE)
			printf(" accepted:%llu", fuzz->accepted);
		printf("\n");
		if (parts[i].kind == FUZZ_DUMP)
			good &= fuzz->accepted == fuzz->done;
		if (!good && fuzz->why[0])
			fuzz_report(directory);
		/* If hardly any line is taken, this is no test. */
		if (parts[i].kind == FUZZ_LINE)
			good &= fuzz->done < 1000 ||
				fuzz->accepted > fuzz->done / 20;
		check(good, "%s", parts[i].name);
	}
	printf("# pass:%u fail:%u skip:0\n", passed, failed);
	return failed ? 1 : 0;
}
