// SPDX-License-Identifier: GPL-2.0-only
/*
 * tc_line - fuzz the tc front end with libFuzzer: command lines, and options and statistics as a kernel may send them.
 *
 * A command line must not crash, hang, exit or change its arguments. A rejection prints why. An accepted one has no
 * option twice (but tags of VLANs), a message within the kernel's limits (options.h) that has the value of each
 * "keyword number", and its printed text leads to the same message again; its JSON is well-formed. Options and
 * statistics: no byte read beyond the attribute, well-formed JSON, and the text of what a kernel can send leads to the
 * same options. ASan and UBSan watch.
 *
 * It needs no tc, no kernel and no root: selftests/tc/test_q_dualpi2.c has stubs of what tc exports. tc_line.py runs
 * it; DUALPI2_FUZZ_KIND says what the bytes are:
 *
 *	line	arguments, each ends with a line end
 *	values	9 bytes for each option: a dump of all options with values in range is made of them
 *	dump	the payload of TCA_OPTIONS that a kernel sent
 *	options	the payload of TCA_OPTIONS, any bytes
 *	xstats	the payload of TCA_STATS_APP
 */
#define main dualpi2_unused_main
#include "../tc/test_q_dualpi2.c"
#undef main

#include "tc_line.h"

#define BYTES_MAX	4096
#define WORDS_MAX	64

static enum { LINE, VALUES, DUMP, ANY_OPTIONS, XSTATS } kind;
static unsigned long long inputs, accepted_inputs;
static char said[TEXT_SIZE];	/* by the front end to stderr */
static FILE *said_file;

#define REQUIRE(condition, ...)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "tc_line: FAULT: " __VA_ARGS__);	\
			fprintf(stderr, "\n");					\
			abort();						\
		}								\
	} while (0)

/* ---- a message ---- */

#define BIT(o)	(UINT64_C(1) << (o))

struct values {
	uint64_t given, val[OPTIONS];
};

static bool is_raw(const struct values *v)
{
	return (v->given & BIT(O_FRAMING)) && v->val[O_FRAMING] == TC_DUALPI2_FRAMING_RAW;
}

/* Reads a nest as the kernel would; returns why it would reject it, or NULL. */
static const char *read_nest(const struct rtattr *nest, bool ext, struct values *v)
{
	int len = RTA_PAYLOAD(nest);
	struct rtattr *rta;

	for (rta = RTA_DATA(nest); RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		unsigned int type = rta->rta_type & NLA_TYPE_MASK;
		int o = option_of(ext, type);

		if (!ext && type == TCA_DUALPI2_EXT) {
			const char *why = (rta->rta_type & NLA_F_NESTED) ? read_nest(rta, true, v) :
					  "an extension without nest flag";
			if (why)
				return why;
			continue;
		}
		if (o == OPTIONS)
			return "an unknown attribute";
		if (RTA_PAYLOAD(rta) != rules[o].size)
			return "an attribute of wrong length";
		if (v->given & BIT(o))
			return "an attribute twice";
		v->given |= BIT(o);
		memcpy(&v->val[o], RTA_DATA(rta), RTA_PAYLOAD(rta));
		if (rules[o].min < 0)
			v->val[o] = (int64_t)(int32_t)v->val[o];
		if (!in_range(&rules[o], v->val[o]))
			return rules[o].keyword ?: "a value out of range";
	}
	if (len > 0)
		return "bytes left over";
	if ((v->given & BIT(O_STEP_THRESH_PKTS)) && (v->given & BIT(O_STEP_THRESH_US)))
		return "step_thresh as both time and packets";
	if (is_raw(v) && (v->val[O_OVERHEAD] || v->val[O_MPU]))
		return "raw with an overhead or an MPU";
	return v->val[O_BYPASS] && v->val[O_BANDWIDTH] ? "bypass with a bandwidth" : NULL;
}

/* ---- JSON ---- */

static bool json_has(const char *key, int64_t val)
{
	char want[64];
	const char *at;

	snprintf(want, sizeof(want), "\"%s\":%lld", key, (long long)val);
	at = strstr(out, want);
	return at && !isdigit(at[strlen(want)]);
}

static bool json_has_dscps(uint64_t dscps)
{
	char want[TEXT_SIZE], *to = want;
	unsigned int i;

	to += sprintf(to, "\"nqb\":[");
	for (i = 0; i < 64; i++)
		if (dscps & BIT(i))
			to += sprintf(to, "%s%u", to[-1] == '[' ? "" : ",", i);
	sprintf(to, "]");
	return strstr(out, want);
}

/* Of the first queue that has delays. */
static void check_percentiles(void)
{
	static const char *const keys[] = { "p50-ns", "p90-ns", "p99-ns", "p999-ns", "max-ns" };
	unsigned long long before = 0, ns;
	unsigned int i;

	if (!strstr(out, "\"delay\":{") || strstr(out, "\"p50-ns\":null"))
		return;
	for (i = 0; i < ARRAY_SIZE(keys); i++, before = ns) {
		ns = json_number(keys[i]);
		REQUIRE(ns >= before, "%s is %llu, after %llu", keys[i], ns, before);
	}
}

/* ---- what a command line means ---- */

/* The option of a keyword that takes a value; OPTIONS: of max_rtt and typical_rtt, which set several; -1: none. */
static int option_with_value(const char *word)
{
	int o;

	for (o = 0; o < OPTIONS; o++)
		if (rules[o].keyword && !strcmp(word, rules[o].keyword))
			return o;
	return strcmp(word, "max_rtt") && strcmp(word, "typical_rtt") ? -1 : OPTIONS;
}

/* Of tc-cake(8); the first one adds to the others. */
static const struct preset {
	const char *word;
	int overhead;
	unsigned int mpu, framing;
} presets[] = {
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

static const struct preset *preset_of(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		if (!strcmp(word, presets[i].word))
			return &presets[i];
	return NULL;
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

/* Does another word of the line set the option, too? */
static bool is_adjusted(char **argv, int argc, int o)
{
#define RTT_WORD(word, ...)	word,
	static const char *const rtts[] = { "max_rtt", "typical_rtt", DUALPI2_RTTS(RTT_WORD) NULL };
	const bool length = o == O_OVERHEAD || o == O_MPU;
	int i;

	for (i = 0; i < argc; i++)
		if ((o >= O_TARGET && o <= O_BETA && is_one_of(argv[i], rtts)) ||
		    (o == O_BANDWIDTH && !strcmp(argv[i], "unlimited")) ||
		    (o == O_NQB && !strcmp(argv[i], "no_nqb")) ||
		    (length && (!strcmp(argv[i], "raw") || preset_of(argv[i]))))
			return true;
	return false;
}

/* A number, or a name: RFC 2474, 2597, 3246, 5865 and 8622. */
static unsigned long dscp_of(const char *arg, char **end)
{
	if (!isalpha(*arg))
		return strtoul(arg, end, strncasecmp(arg, "0x", 2) ? 10 : 16);
	*end = (char *)arg + strcspn(arg, ",");
	if (!strncasecmp(arg, "cs", 2))
		return *end == arg + 3 ? (arg[2] - '0') * 8 : 64;
	if (!strncasecmp(arg, "af", 2))
		return *end == arg + 4 ? (arg[2] - '0') * 8 + (arg[3] - '0') * 2 : 64;
	if (*end != arg + 2)
		return 64;
	return !strncasecmp(arg, "ef", 2) ? 46 : !strncasecmp(arg, "va", 2) ? 44 : !strncasecmp(arg, "le", 2) ? 1 : 64;
}

/* Has the attribute each of the list, and nothing else? */
static bool dscps_are(const char *arg, uint64_t dscps)
{
	while (*arg) {
		char *end;
		unsigned long dscp = dscp_of(arg, &end);

		if (dscp > 63 || !(dscps & BIT(dscp)))
			return false;
		dscps &= ~BIT(dscp);
		arg = end + (*end == ',');
	}
	return !dscps;
}

/* A preset with tags, if nothing else in the line is about the link layer. */
static bool preset_is_meant(char **argv, int argc, const struct values *got)
{
	static const char *const others[] = { "overhead", "mpu", "raw", "noatm", "atm", "ptm", NULL };
	const struct preset *preset = NULL, *one;
	int i, overhead = 0;

	for (i = 0; i < argc; i++) {
		if (is_one_of(argv[i], others))
			return true;
		one = preset_of(argv[i]);
		if (!one)
			continue;
		overhead += one->overhead;
		if (one != presets)
			preset = one;
	}
	return !preset || (got->val[O_OVERHEAD] == (uint64_t)overhead && got->val[O_MPU] == preset->mpu &&
			   got->val[O_FRAMING] == preset->framing);
}

/* Has the message what each "keyword number" of the line says? */
static void check_meaning(char **argv, int argc, const struct values *got)
{
	/* Of values with units, exponents, and hexadecimal ones. */
	static const char chars[] = "0123456789.,+-%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	int vlans = 0, i, j, o;
	int64_t want256, off;

	for (i = 0; i < argc; i++) {
		vlans += !strcmp(argv[i], "ether-vlan");
		REQUIRE(vlans <= 3, "ether-vlan is accepted %d times", vlans);
		for (j = 0; isalpha(*argv[i]) && j < i; j++)
			REQUIRE(strcmp(argv[i], argv[j]) || !strcmp(argv[i], "ether-vlan"), "%s is accepted twice", argv[i]);
	}
	for (i = 0; i + 1 < argc; i++) {
		o = option_with_value(argv[i]);
		if (o < 0)
			continue;
		i++;
		REQUIRE(argv[i][strspn(argv[i], chars)] == 0, "%s accepts %s", argv[i - 1], argv[i]);
		/* What comes of it then depends on the order. */
		if (o == OPTIONS || is_adjusted(argv, argc, o))
			continue;
		if (o == O_STEP_THRESH_US && strchr(argv[i], 'p'))
			o = O_STEP_THRESH_PKTS;
		if (o != O_NQB && !exact(argv[i], o, &want256))
			continue;
		REQUIRE(got->given & BIT(o), "%s is not sent", argv[i - 1]);
		if (o == O_NQB) {
			REQUIRE(dscps_are(argv[i], got->val[o]), "nqb %s is sent as %llx", argv[i],
				(unsigned long long)got->val[o]);
			continue;
		}
		off = (int64_t)got->val[o] * 256 - want256;
		REQUIRE(off <= 128 && off >= -128, "%s %s is sent as %lld", argv[i - 1], argv[i],
			(long long)got->val[o]);
	}
	REQUIRE(preset_is_meant(argv, argc, got), "the preset is sent as %s", sent());
}

/* ---- one input ---- */

static int split(char *text, char **argv)
{
	int argc = 0;
	char *end;

	for (; argc < WORDS_MAX && (end = strchr(text, '\n')); text = end + 1) {
		*end = 0;
		argv[argc++] = text;
	}
	return argc;
}

static int parse_text(char *text)
{
	char *argv[WORDS_MAX + 1] = {}, before[TEXT_SIZE];
	int argc = split(text, argv), ret, i;
	FILE *real = stderr;
	long len;

	for (i = 0; i < argc; i++)
		strcpy(before + (argv[i] - text), argv[i]);
	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	rewind(said_file);
	stderr = said_file;
	ret = dualpi2_qdisc_util.parse_qopt(&dualpi2_qdisc_util, argc, argv, &msg.n, "eth0");
	fflush(stderr);
	stderr = real;
	len = ftell(said_file);
	said[len > 0 ? len : 0] = 0;
	for (i = 0; i < argc; i++)
		REQUIRE(!strcmp(before + (argv[i] - text), argv[i]), "argument %d is changed", i);
	return ret;
}

/* From a block that ends where the attribute ends, for the sanitizer. */
static void print_attr(bool as_json, const void *data, size_t len)
{
	union {
		struct rtattr rta;
		char bytes[BYTES_MAX + 64];
	} attr = { .rta = { RTA_LENGTH(len), TCA_OPTIONS } };

	memcpy(RTA_DATA(&attr.rta), data, len);
	REQUIRE(!print(as_json, kind == XSTATS, &attr.rta), "not printed");
	REQUIRE(!strstr(out, "(null)"), "bad text: %s", out);
	if (as_json)
		REQUIRE(json_members(out, 0, true, 0), "bad JSON: %s", out);
}

/* Text and JSON of options that a kernel accepts, and the text parsed again. */
static void check_round_trip(const struct values *want, const void *data, size_t len)
{
	/* What is off, or the default, is not in the text. */
	static const int silent[] = { O_L4S, O_P_CMAX, O_BANDWIDTH, O_INGRESS, O_BYPASS, O_QPROTECT };
	static char text[TEXT_SIZE];
	uint64_t shown = want->given;
	struct values again = {};
	const char *why;
	unsigned int i, o;

	print_attr(true, data, len);
	for (o = 0; o < OPTIONS; o++)
		if ((shown & BIT(o)) && rules[o].json)
			REQUIRE(json_has(rules[o].json, want->val[o]), "JSON of %s: %s", rules[o].json, out);
	if (shown & BIT(O_NQB))
		REQUIRE(json_has_dscps(want->val[O_NQB]), "JSON of nqb: %s", out);
	print_attr(false, data, len);
	memcpy(text, out, out_len + 1);
	for (i = 0; i < out_len; i++)
		if (text[i] == ' ')
			text[i] = '\n';
	REQUIRE(!parse_text(text), "rejected again: %s%s", out, said);
	why = read_nest(options(), false, &again);
	REQUIRE(!why, "parsed again with %s: %s", why, out);
	for (i = 0; i < ARRAY_SIZE(silent); i++)
		if (!want->val[silent[i]] == (silent[i] != O_L4S))
			shown &= ~BIT(silent[i]);
	for (o = O_QPROTECT_DELAY; o <= O_QPROTECT_RATE; o++)
		shown &= ~(want->val[o] == rules[o].def ? BIT(o) : 0);
	if (is_raw(want))
		shown &= ~(BIT(O_FRAMING) | BIT(O_OVERHEAD) | BIT(O_MPU));
	REQUIRE(shown == again.given, "parsed again as %s: %s", sent(), out);
	for (o = 0; o < OPTIONS; o++)
		REQUIRE(!(shown & BIT(o)) || want->val[o] == again.val[o], "parsed again as %s: %s", sent(), out);
}

static void test_line(const uint8_t *data, size_t size)
{
	char text[BYTES_MAX + 1], *argv[WORDS_MAX + 1];
	static char first[MSG_SIZE];
	struct values got = {};
	const char *why;
	int argc, ret;

	memcpy(text, data, size);
	text[size] = 0;
	ret = parse_text(text);
	if (ret) {
		REQUIRE(ret == -1, "the code is %d", ret);
		REQUIRE(said[0] && said[strlen(said) - 1] == '\n', "rejected without a message");
		return;
	}
	accepted_inputs++;
	why = read_nest(options(), false, &got);
	REQUIRE(!why, "sent: %s: %s", why, sent());
	REQUIRE(!is_raw(&got) || !(got.given & (BIT(O_OVERHEAD) | BIT(O_MPU))), "an overhead is sent with raw");
	REQUIRE(options()->rta_type == (TCA_OPTIONS | NLA_F_NESTED) &&
		NLMSG_ALIGN(options()->rta_len) == NLMSG_PAYLOAD(&msg.n, 0), "something else than options is sent");
	memcpy(text, data, size);
	argc = split(text, argv);
	check_meaning(argv, argc, &got);
	memcpy(first, RTA_DATA(options()), RTA_PAYLOAD(options()));
	check_round_trip(&got, first, RTA_PAYLOAD(options()));
}

static size_t put_attr(uint8_t *p, unsigned int type, const void *data, size_t len)
{
	const struct rtattr rta = { RTA_LENGTH(len), type };

	memcpy(p, &rta, sizeof(rta));
	memcpy(p + sizeof(rta), data, len);
	memset(p + RTA_LENGTH(len), 0, RTA_SPACE(len) - RTA_LENGTH(len));
	return RTA_SPACE(len);
}

/* All options, as the kernel shows its configuration: of each option one byte chooses, eight are a number. */
static size_t make_dump(const uint8_t *data, size_t size, uint8_t *to)
{
	uint8_t given[9 * OPTIONS] = {}, *ext = NULL, *p = to, choice;
	bool packets, raw, bypass;
	uint64_t val, span;
	int o;

	memcpy(given, data, size < sizeof(given) ? size : sizeof(given));
	packets = given[9 * O_STEP_THRESH_US] & 1;
	raw = given[9 * O_FRAMING] & 1;
	bypass = given[9 * O_BYPASS] & 1;
	for (o = 0; o < OPTIONS; o++) {
		span = rules[o].max - rules[o].min;
		choice = given[9 * o];
		memcpy(&val, given + 9 * o + 1, sizeof(val));
		val >>= choice >> 2;
		val = choice % 4 == 1 ? 0 : choice % 4 == 3 ? span : span + 1 ? val % (span + 1) : val;
		val += rules[o].min;
		if (val && val < rules[o].gap)
			val = rules[o].gap;
		if (o == (packets ? O_STEP_THRESH_US : O_STEP_THRESH_PKTS))
			continue;
		if (raw && (o == O_FRAMING || o == O_OVERHEAD || o == O_MPU))
			val = 0;
		else if (o == O_FRAMING && !val)
			val = TC_DUALPI2_FRAMING_MAX;
		if (o == (bypass ? O_BANDWIDTH : O_BYPASS))
			val = 0;
		if (rules[o].ext && !ext) {
			ext = p;
			p += put_attr(p, TCA_DUALPI2_EXT | NLA_F_NESTED, "", 0);
		}
		/* Little end first: the byte of a u8 is the first one. */
		p += put_attr(p, rules[o].type, &val, rules[o].size);
	}
	((struct rtattr *)ext)->rta_len = p - ext;
	return p - to;
}

/* Options that this version sends: all of them, but one of the two thresholds. */
static bool is_dump(const struct values *v)
{
	const uint64_t steps = BIT(O_STEP_THRESH_PKTS) | BIT(O_STEP_THRESH_US);

	return (v->given | steps) == BIT(OPTIONS) - 1 && (v->given & steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(8) uint8_t dump[sizeof(struct rtattr) + BYTES_MAX];
	struct rtattr *rta = (void *)dump;
	struct values values = {};
	const char *why;

	inputs++;
	if (size > BYTES_MAX)
		return 0;
	if (kind == LINE) {
		test_line(data, size);
		return 0;
	}
	memcpy(RTA_DATA(rta), data, size);
	if (kind == VALUES)
		size = make_dump(data, size, RTA_DATA(rta));
	*rta = (struct rtattr) { RTA_LENGTH(size), TCA_OPTIONS };
	print_attr(true, RTA_DATA(rta), size);
	if (kind == XSTATS)
		check_percentiles();
	print_attr(false, RTA_DATA(rta), size);
	if (kind == XSTATS)
		return 0;
	why = read_nest(rta, false, &values);
	REQUIRE(!why || (kind != VALUES && kind != DUMP), "no dump: %s", why);
	if (!why && (kind == DUMP || is_dump(&values))) {
		accepted_inputs++;
		check_round_trip(&values, RTA_DATA(rta), size);
	}
	return 0;
}

/* ---- mutations: what libFuzzer does to bytes, and in a line also whole arguments ---- */

static uint64_t state;

static uint32_t below(uint32_t end)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 32) * end >> 32;
}

/* A keyword, and often a value: in range, at an edge or odd. */
static size_t make_words(char *to, size_t size)
{
	static const char *const units[] = {
		"", "", "", "us", "ms", "s", "p", "packets", "k", "kb", "m", "g", "b", "%", "bit", "kbit", "mbit",
		"Gbit", "tbit", "kibit", "bps", "kbps", "gbps", "MiBps", "x", "pp", " ", "\001",
	};
	static const char *const odd[] = {
		"", ".", "-", "-1", "-0", "+1", " 1", "1 ", "nan", "nan(1)", "inf", "-inf", "1e9", "1e-9", "1e309",
		"1e99999999999", "0x10", "0x1p3", "1_0", "1,5", "1.5.5", "00015", "0.5", "0.49999999",
		"4294967295.4999999999999999999999999999999999999999999999", "9007199254740993",
		"18446744073709551616", "%s%n", "5\t", "help", "-65", "45,46", "0x2D,63,0", "1,1", ",1",
	};
	const char *word = below(40) ? words[below(ARRAY_SIZE(words))] : "help";
	int o = option_with_value(word), len = snprintf(to, size, "%s\n", word), tags;
	uint64_t val;

	for (tags = strcmp(word, "ether-vlan") ? 0 : below(4); tags; tags--)
		len += snprintf(to + len, size - len, "%s\n", word);
	if (o < 0 || !below(30))
		return len;
	o = o == OPTIONS ? O_TARGET : o;
	val = (uint64_t)below(UINT32_MAX) << 16 >> below(48);
	val = !below(4) ? (uint64_t)rules[o].min : !below(3) ? rules[o].max : val;
	if (!below(3))
		val += below(2) ? 1 : -1;
	switch (below(4)) {
	case 0:
		len += snprintf(to + len, size - len, "%s", odd[below(ARRAY_SIZE(odd))]);
		break;
	case 1:
		len += snprintf(to + len, size - len, below(3) ? "%u" : "%u.%u", below(5000), below(1000000));
		break;
	default:
		return len + snprintf(to + len, size - len, "%lld%s\n", (long long)val,
				      o == O_BANDWIDTH ? "bps" : "");
	}
	return len + snprintf(to + len, size - len, "%s\n", units[below(ARRAY_SIZE(units))]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	const uint8_t *end;
	char new[600];
	size_t at, len;
	int n;

	state = seed;
	if (kind != LINE || !below(3))
		return LLVMFuzzerMutate(data, size, max);
	at = below(size + 1);
	end = at < size ? memchr(data + at, '\n', size - at) : NULL;
	at = end ? (size_t)(end - data) + 1 : size;
	for (len = 0, n = below(3); len < sizeof(new) / 2 && n-- >= 0;)
		len += make_words(new + len, sizeof(new) - len);
	if (size + len > max || !below(4)) {	/* the end of the line goes, or all */
		size = below(3) ? at : 0;
		return size ?: LLVMFuzzerMutate(data, size, max);
	}
	memmove(data + at + len, data + at, size - at);
	memcpy(data + at, new, len);
	return size + len;
}

static void tell(void)
{
	printf("inputs:%llu accepted:%llu\n", inputs, accepted_inputs);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const kinds[] = { "line", "values", "dump", "options", "xstats" };
	const char *name = getenv("DUALPI2_FUZZ_KIND") ?: "";
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds) && strcmp(name, kinds[i]); i++)
		;
	said_file = fmemopen(said, sizeof(said), "w");
	if (i == ARRAY_SIZE(kinds) || !said_file) {
		fprintf(stderr, "tc_line: DUALPI2_FUZZ_KIND is '%s', none of them\n", name);
		exit(2);
	}
	kind = i;
	atexit(tell);
	return 0;
}
