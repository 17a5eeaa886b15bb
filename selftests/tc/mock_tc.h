/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mock of tc: the functions that tc exports write to memory.  Runs the front end,
 * and reports results as KTAP.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tc_plugin.h"

#include <linux/dualpi2.h>
#include <linux/dualpi2_options.h>
#include <linux/gen_stats.h>

#define TEXT_SIZE	65536
#define MSG_SIZE	4096
#define ARGS_MAX	64

static unsigned int passed, failed, skipped;

static char out[TEXT_SIZE];
static size_t out_len;
static bool json, json_comma;

/* tc -d */
int show_details = 1;

bool is_json_context(void)
{
	return json;
}

static void emit(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	out_len += vsnprintf(out + out_len, sizeof(out) - out_len, fmt, args);
	va_end(args);
	if (out_len >= sizeof(out)) {
		puts("Bail out! output does not fit");
		exit(1);
	}
}

static bool emit_key(enum output_type t, const char *key)
{
	if (!json || t == PRINT_FP)
		return false;
	if (key)
		emit("%s\"%s\":", json_comma ? "," : "", key);
	else	/* in an array */
		emit("%s", json_comma ? "," : "");
	json_comma = true;
	return true;
}

#define STUB(name, type, json_fmt)					\
int print_color_##name(enum output_type t, enum color_attr color,	\
		       const char *key, const char *fmt, type value)	\
{									\
	if (emit_key(t, key))						\
		emit(json_fmt, value);					\
	else if (!json && t != PRINT_JSON)				\
		emit(fmt, value);					\
	return 0;							\
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
STUB(uint, unsigned int, "%u")
STUB(int, int, "%d")
STUB(lluint, unsigned long long, "%llu")
STUB(float, double, "%g")
STUB(string, const char *, "\"%s\"")
#pragma GCC diagnostic pop

int print_color_bool(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, bool value)
{
	if (emit_key(t, key))
		emit("%s", value ? "true" : "false");
	return 0;
}

int print_color_null(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, const char *value)
{
	if (emit_key(t, key))
		emit("null");
	return 0;
}

void print_nl(void)
{
	if (!json)
		emit("\n");
}

/* An object in an array has no key. */
void open_json_object(const char *str)
{
	if (!json)
		return;
	if (str)
		emit_key(PRINT_JSON, str);
	else
		emit("%s", json_comma ? "," : "");
	emit("{");
	json_comma = false;
}

void close_json_object(void)
{
	if (json) {
		emit("}");
		json_comma = true;
	}
}

void open_json_array(enum output_type type, const char *delim)
{
	if (emit_key(type, delim)) {
		emit("[");
		json_comma = false;
	}
}

void close_json_array(enum output_type type, const char *delim)
{
	if (json) {
		emit("]");
		json_comma = true;
	}
}

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen)
{
	struct rtattr *rta = (void *)n + NLMSG_ALIGN(n->nlmsg_len);
	int len = RTA_LENGTH(alen);

	if (NLMSG_ALIGN(n->nlmsg_len) + RTA_ALIGN(len) > (unsigned int)maxlen)
		return -1;
	rta->rta_type = type;
	rta->rta_len = len;
	if (alen)
		memcpy(RTA_DATA(rta), data, alen);
	n->nlmsg_len = NLMSG_ALIGN(n->nlmsg_len) + RTA_ALIGN(len);
	return 0;
}

struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type)
{
	struct rtattr *nest = (void *)n + NLMSG_ALIGN(n->nlmsg_len);

	addattr_l(n, maxlen, type, NULL, 0);
	return nest;
}

int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest)
{
	nest->rta_len = (void *)n + NLMSG_ALIGN(n->nlmsg_len) - (void *)nest;
	return n->nlmsg_len;
}

/* ---- running the code under test ---- */

static union {
	struct nlmsghdr n;
	char bytes[MSG_SIZE];
} msg;

/* Tests of other qdiscs set others. */
static const struct qdisc_util *front_end = &dualpi2_qdisc_util;

static char errors[TEXT_SIZE];
static FILE *error_file;

static void capture_errors(void)
{
	rewind(error_file);
	if (ftruncate(fileno(error_file), 0))
		exit(1);
	fflush(stderr);
	dup2(fileno(error_file), STDERR_FILENO);
}

static void read_errors(void)
{
	ssize_t len;

	fflush(stderr);
	len = pread(fileno(error_file), errors, sizeof(errors) - 1, 0);
	errors[len > 0 ? len : 0] = 0;
}

/* Parses line, split at blanks; '' stands for an empty argument. */
static int parse(const char *line)
{
	char *argv[ARGS_MAX], *word, *save, *copy = strdup(line);
	int argc = 0, ret;

	for (word = strtok_r(copy, " ", &save); word && argc < ARGS_MAX;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "''") ? word : word + 2;

	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	capture_errors();
	ret = front_end->parse_qopt(front_end, argc, argv,
					    &msg.n, "eth0");
	read_errors();
	free(copy);
	return ret;
}

static struct rtattr *options(void)
{
	return NLMSG_DATA(&msg.n);
}

static void describe_attrs(char *to, struct rtattr *rta, int len)
{
	const char *blank = "";

	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		unsigned long long val = 0;

		to += sprintf(to, "%s", blank);
		blank = " ";
		if (rta->rta_type & NLA_F_NESTED) {
			to += sprintf(to, "%u{", rta->rta_type & NLA_TYPE_MASK);
			describe_attrs(to, RTA_DATA(rta), RTA_PAYLOAD(rta));
			to += strlen(to);
			to += sprintf(to, "}");
			continue;
		}
		if (RTA_PAYLOAD(rta) <= sizeof(val))
			memcpy(&val, RTA_DATA(rta), RTA_PAYLOAD(rta));
		to += sprintf(to, "%u:%u:%llu", rta->rta_type,
			      (unsigned int)RTA_PAYLOAD(rta), val);
	}
	*to = 0;
}

/* The message as "2{type:size:value ...}", braces for a nest with its flag. */
static const char *sent(void)
{
	static char buf[TEXT_SIZE];

	describe_attrs(buf, options(), NLMSG_PAYLOAD(&msg.n, 0));
	return buf;
}

/* From a block that ends with the attribute, so that the sanitizer detects a read
 * beyond it.
 */
static int print(bool as_json, bool xstats, const struct rtattr *rta)
{
	struct rtattr *copy = malloc(rta->rta_len);
	int ret;

	if (!copy)
		exit(1);
	memcpy(copy, rta, rta->rta_len);
	json = as_json;
	json_comma = false;
	out_len = 0;
	out[0] = 0;
	if (xstats)
		ret = front_end->print_xstats(front_end, stdout, copy);
	else
		ret = front_end->print_qopt(front_end, stdout, copy);
	free(copy);
	return ret;
}

/* ---- reporting ---- */

static void check(bool ok, const char *fmt, ...)
{
	va_list args;

	if (ok)
		passed++;
	else
		failed++;
	printf("%sok %u ", ok ? "" : "not ", passed + failed + skipped);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static void skip(const char *name, const char *why)
{
	skipped++;
	printf("ok %u %s # SKIP %s\n", passed + failed + skipped, name, why);
}

static void comment(const char *what, const char *text)
{
	bool ended = false;

	printf("# %s: ", what);
	for (; *text; text++) {
		ended = *text == '\n';
		putchar(*text);
		if (*text == '\n' && text[1])
			printf("#   ");
	}
	if (!ended)
		putchar('\n');
}

static void check_text(const char *name, const char *got, const char *want)
{
	bool same = strcmp(got, want) == 0;

	check(same, "%s", name);
	if (!same) {
		comment("expected", *want ? want : "(nothing)");
		comment("got", *got ? got : "(nothing)");
	}
}

/* ---- cases in files ---- */

#define CELLS_MAX	3

/* A file in this directory: lines of cells with " => " between, '' for an empty one at
 * the end; # begins a comment.
 */
static void test_cases(const char *name, unsigned int cells,
		       void (*test)(char *cell[]))
{
	char path[4096], line[4096], *cell[CELLS_MAX], *at;
	unsigned int i, tests = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%.*s%s",
		 (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__, name);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (*line == '#')
			continue;
		line[strcspn(line, "\n")] = 0;
		for (i = 0, at = line; at && i < cells; i++) {
			cell[i] = at;
			at = strstr(at, " => ");
			if (at && i + 1 < cells) {
				*at = 0;
				at += 4;
			}
		}
		if (!strcmp(cell[i - 1], "''"))
			*cell[i - 1] = 0;
		if (i == cells)
			test(cell);
		tests += i == cells;
	}
	check(tests, "%s has cases", name);
	if (file)
		fclose(file);
}

