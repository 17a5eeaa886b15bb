/* SPDX-License-Identifier: GPL-2.0-only */
/* Netlink to text and JSON; part of test_q_dualpi2.c. */

static void test_printed(char *cell[])
{
	char name[TEXT_SIZE];

	sprintf(name, "\"%s\" is printed as text", cell[0]);
	parse(cell[0]);
	print(false, false, options());
	check_text(name, out, cell[1]);
	sprintf(name, "\"%s\" is printed as JSON", cell[0]);
	print(true, false, options());
	check_text(name, out, cell[2]);
}

static void test_nothing_printed(void)
{
	check(dualpi2_qdisc_util.print_qopt(&dualpi2_qdisc_util, stdout,
					    NULL) == 0 &&
	      dualpi2_qdisc_util.print_xstats(&dualpi2_qdisc_util, stdout,
					      NULL) == 0,
	      "nothing to print is not an error");
}

/* One nest with one attribute, as a kernel would send it. */
static void set_option(int type, const void *data, int len)
{
	struct rtattr *nest;

	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_OPTIONS | NLA_F_NESTED);
	addattr_l(&msg.n, MSG_SIZE, type, data, len);
	addattr_nest_end(&msg.n, nest);
}

/* One nest in a nest. */
static void set_ext_option(int type, const void *data, int len)
{
	struct rtattr *nest, *ext;

	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_OPTIONS | NLA_F_NESTED);
	ext = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_EXT | NLA_F_NESTED);
	addattr_l(&msg.n, MSG_SIZE, type, data, len);
	addattr_nest_end(&msg.n, ext);
	addattr_nest_end(&msg.n, nest);
}

/* A kernel shows all its knobs, those that are not in use, too. */
static void test_raw_from_the_kernel(void)
{
	static const struct {
		__u16 type, len;
		__u64 val;
	} attrs[] = {
		{ TCA_DUALPI2_EXT_BANDWIDTH, 8, 0 },
		{ TCA_DUALPI2_EXT_FRAMING, 1, 0 },
		{ TCA_DUALPI2_EXT_OVERHEAD, 4, 0 },
		{ TCA_DUALPI2_EXT_MPU, 4, 0 },
		{ TCA_DUALPI2_EXT_INGRESS, 1, 0 },
		{ TCA_DUALPI2_EXT_NQB, 8, 1ULL << 45 },
		{ TCA_DUALPI2_EXT_BURST_MAX, 4, 5000 },
		{ TCA_DUALPI2_EXT_BYPASS, 1, 0 },
		{ TCA_DUALPI2_EXT_MAX + 1, 8, UINT64_MAX },	/* of newer ones */
		{ 30, 4, UINT32_MAX },
		{ 31, 4, UINT32_MAX },
		{ 32, 4, UINT32_MAX },
	};
	struct rtattr *nest, *ext;
	unsigned int i;

	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_OPTIONS | NLA_F_NESTED);
	ext = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_EXT | NLA_F_NESTED);
	for (i = 0; i < ARRAY_SIZE(attrs); i++)
		addattr_l(&msg.n, MSG_SIZE, attrs[i].type, &attrs[i].val,
			  attrs[i].len);
	addattr_nest_end(&msg.n, ext);
	addattr_nest_end(&msg.n, nest);
	print(false, false, options());
	check_text("without a shaper the text has no link layer", out,
		   "nqb 45 burst_max 5ms ");
	print(true, false, options());
	check_text("without a shaper JSON has the link layer", out,
		   "\"bandwidth\":0,\"overhead\":0,\"mpu\":0,\"framing\":\"raw\",\"ingress\":false,\"nqb\":[45],\"burst-max\":5000,\"bypass\":false");
}

static void test_odd_attributes(void)
{
	static const __u32 data[4] = { 7, 7, 7, 7 };
	bool silent = true;
	int type, len;

	/* Short by a byte or more. */
	for (type = 1; type <= 15; type++)
		for (len = 0; len < (type < 10 ? 4 : 1); len++) {
			set_option(type, data, len);
			if (print(false, false, options()) || out_len)
				silent = false;
		}
	for (type = TCA_DUALPI2_EXT_BANDWIDTH;
	     type <= TCA_DUALPI2_EXT_QPROTECT_RATE; type++)
		for (len = 0; len < 8; len++) {
			if ((type == TCA_DUALPI2_EXT_FRAMING ||
			     type == TCA_DUALPI2_EXT_INGRESS ||
			     type == TCA_DUALPI2_EXT_BYPASS ||
			     type == TCA_DUALPI2_EXT_QPROTECT) && len == 1)
				break;
			if (type != TCA_DUALPI2_EXT_BANDWIDTH &&
			    type != TCA_DUALPI2_EXT_NQB &&
			    type != TCA_DUALPI2_EXT_QPROTECT_RATE && len == 4)
				break;
			set_ext_option(type, data, len);
			if (print(false, false, options()) || out_len)
				silent = false;
		}
	check(silent, "a short attribute is not printed");

	silent = true;
	for (type = 0; type < 4000; type++) {
		if (type && type <= 15)
			continue;
		set_option(type, data, sizeof(data));
		if (type != TCA_DUALPI2_EXT &&
		    (print(false, false, options()) || out_len))
			silent = false;
	}
	check(silent, "an unknown attribute is not printed");

	set_option(3, data, sizeof(data));
	print(false, false, options());
	check_text("a long attribute is read as far as it is known", out,
		   "target 7us ");

	test_raw_from_the_kernel();

	/* The kernels that set no flag on a nest, and a nest of garbage. */
	parse("no_l4s ramp 5");
	((struct rtattr *)RTA_DATA(options()))->rta_type = TCA_DUALPI2_EXT;
	print(false, false, options());
	check_text("the extension is found without the nest flag", out,
		   "ramp 5us no_l4s ");
	set_option(TCA_DUALPI2_EXT, "\377\377\377\377", 3);
	print(false, false, options());
	check_text("an extension of garbage is not printed", out, "");
}

/* What the text says, the parser takes, and it is the same bytes again. */
static bool round_trip(void)
{
	static union {
		struct rtattr rta;
		char bytes[MSG_SIZE];
	} before;
	char text[TEXT_SIZE];

	memcpy(&before, options(), options()->rta_len);
	print(false, false, &before.rta);
	memcpy(text, out, out_len + 1);
	if (parse(text) == 0 && options()->rta_len == before.rta.rta_len &&
	    memcmp(options(), &before, before.rta.rta_len) == 0)
		return true;
	comment("printed", text);
	comment("parsed", *errors ? errors : sent());
	return false;
}

static bool round_trip_u32(int type, __u32 val)
{
	set_option(type, &val, sizeof(val));
	if (round_trip())
		return true;
	printf("# attribute %d, value %u\n", type, val);
	return false;
}

static bool round_trip_ext(int type, const void *val, int len)
{
	set_ext_option(type, val, len);
	if (round_trip())
		return true;
	printf("# attribute %d of the extension\n", type);
	return false;
}

static void test_round_trip_of_the_link(void)
{
	unsigned int bit, bad = 0, i;
	__u64 val;
	__s32 len;

	srandom(9332);
	for (i = 0; i < 100000; i++) {
		val = (((__u64)random() << 31) | random()) >> random() % 36;
		val = 1000 + val % (125000000000ULL - 999);
		bad += !round_trip_ext(TCA_DUALPI2_EXT_BANDWIDTH, &val, 8);
	}
	for (val = 1000; val <= 125000000000ULL; val *= 5)
		bad += !round_trip_ext(TCA_DUALPI2_EXT_BANDWIDTH, &val, 8);
	for (val = 125000000000ULL; val > 125000000000ULL - 1000; val--)
		bad += !round_trip_ext(TCA_DUALPI2_EXT_BANDWIDTH, &val, 8);
	check(!bad, "every rate printed is parsed to the same");

	for (bad = 0, len = -64; len <= 256; len++) {
		bad += !round_trip_ext(TCA_DUALPI2_EXT_OVERHEAD, &len, 4);
		if (len >= 0)
			bad += !round_trip_ext(TCA_DUALPI2_EXT_MPU, &len, 4);
	}
	check(!bad, "every overhead and MPU printed is parsed to the same");

	for (bad = 0, bit = 0; bit < 64; bit++) {
		val = 1ULL << bit;
		bad += !round_trip_ext(TCA_DUALPI2_EXT_NQB, &val, 8);
		val = UINT64_MAX >> bit;
		bad += !round_trip_ext(TCA_DUALPI2_EXT_NQB, &val, 8);
		val = ((__u64)random() << 33) ^ ((__u64)random() << 11) ^ bit;
		bad += !round_trip_ext(TCA_DUALPI2_EXT_NQB, &val, 8);
	}
	val = 0;
	bad += !round_trip_ext(TCA_DUALPI2_EXT_NQB, &val, 8);
	check(!bad, "every list of DSCPs printed is parsed to the same");
}

static void test_round_trip(void)
{
	static const __u32 large[] = {
		4194967, 4294966, 1000000, 1000001, 999999, 4000000, 4294967,
	};
	unsigned int i, bad = 0;
	__u32 val;

	for (val = 1; val <= 100000; val++)
		bad += !round_trip_u32(5, val);
	for (val = 100001; val < INT32_MAX - 3000000; val += 2999999)
		bad += !round_trip_u32(6, val);
	for (val = INT32_MAX; val > INT32_MAX - 2000U; val--)
		bad += !round_trip_u32(5, val);
	check(!bad, "every alpha and beta printed is parsed to the same");

	for (bad = 0, val = 1; val <= 20000; val++)
		bad += !round_trip_u32(3, val);
	for (val = 20001; val < 4294967; val += 997)
		bad += !round_trip_u32(8, val);
	for (i = 0; i < ARRAY_SIZE(large); i++)
		bad += !round_trip_u32(4, large[i]);
	check(!bad, "every time printed is parsed to the same");

	for (bad = 0, val = 1; val; val = val < 1U << 31 ? val * 2 + 1 : 0) {
		bad += !round_trip_u32(1, val);
		bad += !round_trip_u32(2, val);
		bad += !round_trip_u32(7, val - (val == UINT32_MAX));
		bad += !round_trip_u32(9, val);
	}
	check(!bad, "every count printed is parsed to the same");
}

#define IF_SHOWN(word)
#define IF_HIDDEN(word)		word,
#define SILENT_WORD(attr, value, word, shown, ...)	IF_##shown(word)

/* What is the default, or off, shows in the text by nothing. */
static bool is_silent(const char *line)
{
	static const char *const silent[] = {
		DUALPI2_OPTIONS(NO_ROW, NO_ROW, SILENT_WORD, SILENT_WORD)
		DUALPI2_EXT_OPTIONS(NO_ROW, NO_ROW, SILENT_WORD, SILENT_WORD)
		"p_cmax 0", "qprotect_delay 1ms",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(silent); i++)
		if (has_word(line, silent[i]))
			return true;
	return false;
}

/* Any words in any order: no crash, and what is taken survives the round trip. */
static void test_random_commands(void)
{
	static const char *const values[] = {
		"0", "1", "7", "255", "256", "4294967295", "4294967296", "5p",
		"1ms", "4.2s", "3k", "10%", "0.001", "0.2", "1e9", "1e400",
		"-1", "0x10", "0x1p3", ".", ".5ms", "x", "''", "nan", "p",
		"help", "limit", "40mbit", "1gbps", "-4", "45", "0x2d,1",
	};
	unsigned int i, j, bad = 0, taken = 0;
	char line[TEXT_SIZE];

	srandom(9332);
	for (i = 0; i < 30000; i++) {
		unsigned int n = random() % 7;
		char *to = line;

		*line = 0;
		for (j = 0; j < n; j++) {
			const char *word = words[random() % ARRAY_SIZE(words)];

			to += sprintf(to, "%s ", word);
			if (random() % 20 && has_value(word))
				to += sprintf(to, "%s ", values[random() %
					      ARRAY_SIZE(values)]);
		}
		if (parse(line)) {
			if (!*errors) {
				comment("refused without a word", line);
				bad++;
			}
			continue;
		}
		taken++;
		if (is_silent(line))
			continue;
		if (!round_trip()) {
			comment("command", line);
			bad++;
		}
	}
	check(!bad && taken > 1000, "random commands survive the round trip");
	printf("# %u of 30000 were accepted\n", taken);
}
