/* SPDX-License-Identifier: GPL-2.0-only */
/* Command lines to netlink; part of test_q_dualpi2.c. */

static void test_accepted(char *cell[])
{
	char name[TEXT_SIZE];

	sprintf(name, "\"%s\" is sent as %s", cell[0], cell[1]);
	if (parse(cell[0])) {
		check(false, "%s", name);
		comment("refused", errors);
	} else {
		check_text(name, sent(), cell[1]);
	}
}

static void test_refused(char *cell[])
{
	char name[TEXT_SIZE], want[TEXT_SIZE];
	int ret = parse(cell[0]);

	sprintf(name, "\"%s\" is refused", cell[0]);
	sprintf(want, "dualpi2: %s\n", cell[1]);
	if (ret != -1 || msg.n.nlmsg_len != NLMSG_LENGTH(0)) {
		check(false, "%s", name);
		printf("# returned %d with %u bytes\n", ret, msg.n.nlmsg_len);
	} else {
		check_text(name, errors, want);
	}
}

static void test_messages(void)
{
	parse("max_rtt 100ms");
	check_text("max_rtt says what it leads to", errors,
		   "dualpi2: max_rtt 100ms typical_rtt 16.666ms: target 16.666ms tupdate 16.666ms alpha 0.167969 beta 3.000000\n");
	parse("limit 5 target 5ms");
	check_text("good options say nothing", errors, "");
}

static void test_blanks_refused(void)
{
	char args[][8] = { "target", " 5", "+5", "\t5ms" };
	unsigned int i;
	int ret = 0;

	for (i = 1; i < ARRAY_SIZE(args); i++) {
		char *argv[2] = { args[0], args[i] };

		capture_errors();
		msg.n.nlmsg_len = NLMSG_LENGTH(0);
		ret += front_end->parse_qopt(front_end, 2,
						     argv, &msg.n, "eth0");
	}
	check(ret == -3, "a value with a leading blank or sign is refused");
}

static void test_full_message_refused(void)
{
	char args[][8] = { "limit", "5", "ramp", "6" };
	char *argv[4] = { args[0], args[1], args[2], args[3] };
	unsigned int room, bad = 0;
	int argc, ret;

	/* Options 4, limit 8, extension 4, ramp 8 bytes: all fit or nothing. */
	for (argc = 2; argc <= 4; argc += 2)
		for (room = 4; room <= 28; room += 4) {
			memset(&msg, 0, sizeof(msg));
			msg.n.nlmsg_len = 1024 - room;
			capture_errors();
			ret = front_end->parse_qopt(front_end,
							    argc, argv, &msg.n,
							    "eth0");
			bad += ret != (room < (argc == 2 ? 12 : 24) ? -1 : 0);
		}
	check(!bad, "options that do not fit the message are refused");
}

#define NO_ROW(...)
#define WORD_OF_VALUE(attr, member, min, max, def, kind, zero, range, unit, word, ...) \
	word,
#define WORD_OF_DERIVED(name, min, max, kind, word, line)	word,
#define WORD_OF_WORD(attr, value, word, ...)	word,
#define WORD_OF_PRESET(word, ...)		word,

/* Words with a value. */
static const char *const value_words[] = {
	DUALPI2_OPTIONS(WORD_OF_VALUE, NO_ROW, NO_ROW, NO_ROW)
	DUALPI2_EXT_OPTIONS(WORD_OF_VALUE, NO_ROW, NO_ROW, NO_ROW)
	DUALPI2_TC_OPTIONS(WORD_OF_DERIVED)
};

static const char *const words[] = {
	DUALPI2_OPTIONS(WORD_OF_VALUE, NO_ROW, WORD_OF_WORD, WORD_OF_WORD)
	DUALPI2_EXT_OPTIONS(WORD_OF_VALUE, NO_ROW, WORD_OF_WORD, WORD_OF_WORD)
	DUALPI2_TC_OPTIONS(WORD_OF_DERIVED)
	DUALPI2_RTTS(WORD_OF_PRESET)
	DUALPI2_PRESETS(WORD_OF_PRESET)
	"ether-vlan",
};

static bool has_value(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(value_words); i++)
		if (!strcmp(word, value_words[i]))
			return true;
	return false;
}

/* Whether text has word, not as part of a longer one.  A man page may set it
 * in bold, and write its underscore as it is.
 */
static bool has_word(const char *text, const char *word)
{
	static const char *const part =
		"abcdefghijklmnopqrstuvwxyz0123456789_-";
	const char *at = text;

	while ((at = strstr(at, word))) {
		const char *end = at + strlen(word);

		if ((at == text || !strchr(part, at[-1])) &&
		    (!*end || !strchr(part, *end)))
			return true;
		at++;
	}
	return false;
}

static void check_words(const char *name, const char *text)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!has_word(text, words[i])) {
			printf("# missing: %s\n", words[i]);
			all = false;
		}
	check(all, "%s", name);
}

static void check_file(const char *name, const char *path)
{
	static char text[1 << 17];
	char *from, *to;
	FILE *file;

	if (!path) {
		skip(name, "no file was named");
		return;
	}
	file = fopen(path, "r");
	if (!file) {
		check(false, "%s", name);
		printf("# cannot read %s\n", path);
		return;
	}
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	/* The hyphen of a man page. */
	for (from = to = text; *from; from++)
		if (from[0] != '\\' || from[1] != '-')
			*to++ = *from;
	*to = 0;
	check_words(name, text);
}

static void test_help(void)
{
	const char *line, *end;
	size_t width = 0;
	int ret;

	ret = parse("help");
	check(ret == -1, "help ends the command");
	check_words("help has every option", errors);
	for (line = errors; (end = strchr(line, '\n')); line = end + 1)
		if ((size_t)(end - line) > width)
			width = end - line;
	check(width <= 80, "help fits 80 columns");

	ret = parse("limit 5 bogus");
	check_text("an unknown word is refused with one line", errors,
		   "dualpi2: unknown option \"bogus\"; see: tc qdisc add dualpi2 help\n");
	check(ret == -1, "an unknown word ends the command");
	ret = parse("lim 5");
	check(ret == -1, "an abbreviation is refused");
}

/* The two kinds have the same options; messages have the name of the kind. */
static void test_mq(void)
{
	const struct qdisc_util *mq = &dualpi2_mq_qdisc_util;
	const struct qdisc_util *one = front_end;
	char *want;

	check(strcmp(mq->id, "dualpi2_mq") == 0 &&
	      mq->print_qopt == one->print_qopt &&
	      mq->print_xstats == one->print_xstats,
	      "the plugin has dualpi2_mq");
	parse("bandwidth 10gbit limit 5 ramp 3ms");
	want = strdup(sent());
	front_end = mq;
	check(!parse("bandwidth 10gbit limit 5 ramp 3ms"),
	      "dualpi2_mq takes the options of dualpi2");
	check_text("dualpi2_mq sends what dualpi2 sends", sent(), want);
	free(want);
	check(parse("help") == -1 &&
	      strstr(errors, "Usage: ... dualpi2_mq [ limit") == errors,
	      "help of dualpi2_mq has its name");
	parse("limit 0");
	check_text("a value is refused in the name of dualpi2_mq", errors,
		   "dualpi2_mq: limit: \"0\" is not in range; expected 1p to 4294967295p\n");
	parse("bogus");
	check_text("an unknown word is refused in the name of dualpi2_mq", errors,
		   "dualpi2_mq: unknown option \"bogus\"; see: tc qdisc add dualpi2_mq help\n");
	front_end = one;
	parse("limit 0");
	check(strstr(errors, "dualpi2: limit") == errors,
	      "dualpi2 has its own name afterwards");
}
