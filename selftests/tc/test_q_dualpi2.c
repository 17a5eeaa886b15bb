// SPDX-License-Identifier: GPL-2.0-only
/*
 * Self-check of the tc front end, without tc, kernel and root: arguments go in,
 * netlink bytes come out, and the other way round.
 *
 * The functions that tc exports are replaced by small ones that write to memory.
 * Numbers of attributes are written out here: they are the ABI, and this is the
 * place that notices when one moves.
 *
 * usage: test_q_dualpi2 [ MAN-PAGE [ COMPLETION [ RECORDING ] ] ]
 *
 * RECORDING: messages of a kernel, as "tc monitor" reads them (recorded/link.b64).
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
#include <linux/gen_stats.h>

#define TEXT_SIZE	65536
#define MSG_SIZE	4096
#define ARGS_MAX	64

static unsigned int passed, failed, skipped;

/* ---- what tc would provide ---- */

static char out[TEXT_SIZE];
static size_t out_len;
static bool json, json_comma;

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

/* That of the version before the statistics had attributes (run.sh). */
struct qdisc_util dualpi2_old_qdisc_util __attribute__((weak));

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
	ret = dualpi2_qdisc_util.parse_qopt(&dualpi2_qdisc_util, argc, argv,
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

/* From a block that ends where the attribute ends, so that the sanitizer sees
 * who reads on.
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
	printf("# %s: ", what);
	for (; *text; text++) {
		putchar(*text);
		if (*text == '\n' && text[1])
			printf("#   ");
	}
	if (text[-1] != '\n')
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

/* ---- options to netlink ---- */

static const struct {
	const char *line;
	const char *sent;
} accepted[] = {
	{ "", "2{}" },
	{ "limit 1", "2{1:4:1}" },
	{ "limit 4294967295p", "2{1:4:4294967295}" },
	{ "limit 7pkt", "2{1:4:7}" },
	{ "limit 7pkts", "2{1:4:7}" },
	{ "limit 7packet", "2{1:4:7}" },
	{ "limit 7PACKETS", "2{1:4:7}" },
	{ "memlimit 1", "2{2:4:1}" },
	{ "memlimit 4294967295B", "2{2:4:4294967295}" },
	{ "memlimit 1.5k", "2{2:4:1536}" },
	{ "memlimit 2k", "2{2:4:2048}" },
	{ "memlimit 2kb", "2{2:4:2048}" },
	{ "memlimit 2m", "2{2:4:2097152}" },
	{ "memlimit 32Mb", "2{2:4:33554432}" },
	{ "memlimit 2gb", "2{2:4:2147483648}" },
	{ "memlimit 1g", "2{2:4:1073741824}" },
	{ "target 1", "2{3:4:1}" },
	{ "target 15ms", "2{3:4:15000}" },
	{ "target 16.384ms", "2{3:4:16384}" },
	{ "target 4.294967s", "2{3:4:4294967}" },
	{ "target 0.5us", "2{3:4:1}" },
	{ "target 2sec", "2{3:4:2000000}" },
	{ "target 2secs", "2{3:4:2000000}" },
	{ "target 2msec", "2{3:4:2000}" },
	{ "target 2msecs", "2{3:4:2000}" },
	{ "target 2usec", "2{3:4:2}" },
	{ "target 2usecs", "2{3:4:2}" },
	{ "tupdate 100us", "2{4:4:100}" },
	{ "tupdate 16ms", "2{4:4:16000}" },
	{ "alpha 0.160156", "2{5:4:41}" },
	{ "alpha 0.00195313", "2{5:4:1}" },
	{ "alpha 8388607.99609375", "2{5:4:2147483647}" },
	{ "beta 3.199219", "2{6:4:819}" },
	{ "beta 3.2", "2{6:4:819}" },
	{ "step_thresh 500", "2{8:4:500}" },
	{ "step_thresh 1ms", "2{8:4:1000}" },
	{ "step_thresh 20p", "2{7:4:20}" },
	{ "step_thresh 1pkts", "2{7:4:1}" },
	{ "step_thresh 4294967294packets", "2{7:4:4294967294}" },
	{ "step_thresh 0", "2{8:4:0}" },
	{ "min_qlen_step 0", "2{9:4:0}" },
	{ "min_qlen_step 4294967295p", "2{9:4:4294967295}" },
	{ "coupling_factor 1", "2{10:1:1}" },
	{ "coupling_factor 255", "2{10:1:255}" },
	{ "drop_on_overload", "2{11:1:1}" },
	{ "overflow", "2{11:1:0}" },
	{ "drop_enqueue", "2{12:1:1}" },
	{ "drop_dequeue", "2{12:1:0}" },
	{ "classic_protection 0", "2{13:1:0}" },
	{ "classic_protection 100%", "2{13:1:100}" },
	{ "l4s_ect", "2{14:1:1}" },
	{ "cla_ect", "2{14:1:2}" },
	{ "any_ect", "2{14:1:3}" },
	{ "split_gso", "2{15:1:1}" },
	{ "no_split_gso", "2{15:1:0}" },
	{ "l4s", "2{3408{1:1:1}}" },
	{ "no_l4s", "2{3408{1:1:0}}" },
	{ "ramp 0", "2{3408{2:4:0}}" },
	{ "ramp 4294967us", "2{3408{2:4:4294967}}" },
	{ "recur", "2{3408{3:1:0}}" },
	{ "random", "2{3408{3:1:1}}" },
	{ "p_cmax 0", "2{3408{4:1:0}}" },
	{ "p_cmax 100%", "2{3408{4:1:100}}" },
	{ "hist_c 1", "2{3408{5:4:1}}" },
	{ "hist_c 16384us", "2{3408{5:4:16384}}" },
	{ "hist_l 1us", "2{3408{6:4:1}}" },
	{ "hist_l 16.384ms", "2{3408{6:4:16384}}" },
	{ "overload_report 0", "2{3408{7:4:0}}" },
	{ "overload_report 100ms", "2{3408{7:4:100000}}" },
	{ "overload_report 4294967295us", "2{3408{7:4:4294967295}}" },
	/* Rates are those of tc: bit without a unit, bps is bytes. */
	{ "bandwidth 8000", "2{3408{9:8:1000}}" },
	{ "bandwidth 8kbit", "2{3408{9:8:1000}}" },
	{ "bandwidth 40mbit", "2{3408{9:8:5000000}}" },
	{ "bandwidth 40Mbit", "2{3408{9:8:5000000}}" },
	{ "bandwidth 2500Kbit", "2{3408{9:8:312500}}" },
	{ "bandwidth 2.5MBIT", "2{3408{9:8:312500}}" },
	{ "bandwidth 5gbit", "2{3408{9:8:625000000}}" },
	{ "bandwidth 34359738360", "2{3408{9:8:4294967295}}" },
	{ "bandwidth 34359738368bit", "2{3408{9:8:4294967296}}" },
	{ "bandwidth 1tbit", "2{3408{9:8:125000000000}}" },
	{ "bandwidth 999999999992bit", "2{3408{9:8:124999999999}}" },
	{ "bandwidth 0.999999999992tbit", "2{3408{9:8:124999999999}}" },
	{ "bandwidth 8kibit", "2{3408{9:8:1024}}" },
	{ "bandwidth 8mibit", "2{3408{9:8:1048576}}" },
	{ "bandwidth 8gibit", "2{3408{9:8:1073741824}}" },
	{ "bandwidth 0.5tibit", "2{3408{9:8:68719476736}}" },
	{ "bandwidth 2500000bps", "2{3408{9:8:2500000}}" },
	{ "bandwidth 1kbps", "2{3408{9:8:1000}}" },
	{ "bandwidth 5Mbps", "2{3408{9:8:5000000}}" },
	{ "bandwidth 1gbps", "2{3408{9:8:1000000000}}" },
	{ "bandwidth .125TBps", "2{3408{9:8:125000000000}}" },
	{ "bandwidth 1KiBps", "2{3408{9:8:1024}}" },
	{ "bandwidth 1mibps", "2{3408{9:8:1048576}}" },
	{ "bandwidth 1gibps", "2{3408{9:8:1073741824}}" },
	{ "bandwidth 0.0625tibps", "2{3408{9:8:68719476736}}" },
	{ "unlimited", "2{3408{9:8:0}}" },
	{ "bandwidth 40mbit unlimited", "2{3408{9:8:0}}" },
	{ "unlimited bandwidth 40mbit", "2{3408{9:8:5000000}}" },
	{ "overhead 0", "2{3408{11:4:0}}" },
	{ "overhead 256", "2{3408{11:4:256}}" },
	{ "overhead 18b", "2{3408{11:4:18}}" },
	{ "overhead -0", "2{3408{11:4:0}}" },
	{ "overhead -1", "2{3408{11:4:4294967295}}" },
	{ "overhead -64", "2{3408{11:4:4294967232}}" },
	{ "mpu 0", "2{3408{12:4:0}}" },
	{ "mpu 256B", "2{3408{12:4:256}}" },
	{ "raw", "2{3408{10:1:0}}" },
	{ "noatm", "2{3408{10:1:1}}" },
	{ "atm", "2{3408{10:1:2}}" },
	{ "ptm", "2{3408{10:1:3}}" },
	/* There is no overhead with raw: what comes later counts. */
	{ "overhead 18 mpu 64 raw", "2{3408{10:1:0}}" },
	{ "raw overhead 18", "2{3408{11:4:18 10:1:1}}" },
	{ "raw mpu 64", "2{3408{12:4:64 10:1:1}}" },
	{ "atm raw ptm overhead 5", "2{3408{11:4:5 10:1:3}}" },
	{ "conservative", "2{3408{11:4:48 12:4:0 10:1:2}}" },
	{ "ipoa-vcmux", "2{3408{11:4:8 12:4:0 10:1:2}}" },
	{ "ipoa-llcsnap", "2{3408{11:4:16 12:4:0 10:1:2}}" },
	{ "bridged-vcmux", "2{3408{11:4:24 12:4:0 10:1:2}}" },
	{ "bridged-llcsnap", "2{3408{11:4:32 12:4:0 10:1:2}}" },
	{ "pppoa-vcmux", "2{3408{11:4:10 12:4:0 10:1:2}}" },
	{ "pppoa-llc", "2{3408{11:4:14 12:4:0 10:1:2}}" },
	{ "pppoe-vcmux", "2{3408{11:4:32 12:4:0 10:1:2}}" },
	{ "pppoe-llcsnap", "2{3408{11:4:40 12:4:0 10:1:2}}" },
	{ "pppoe-ptm", "2{3408{11:4:30 12:4:0 10:1:3}}" },
	{ "bridged-ptm", "2{3408{11:4:22 12:4:0 10:1:3}}" },
	{ "docsis", "2{3408{11:4:18 12:4:64 10:1:1}}" },
	{ "ethernet", "2{3408{11:4:38 12:4:84 10:1:1}}" },
	{ "ethernet ether-vlan", "2{3408{11:4:42 12:4:84 10:1:1}}" },
	{ "ethernet ether-vlan ether-vlan ether-vlan",
	  "2{3408{11:4:50 12:4:84 10:1:1}}" },
	{ "overhead -4 ether-vlan", "2{3408{11:4:0}}" },
	{ "overhead -8 ether-vlan", "2{3408{11:4:4294967292}}" },
	{ "overhead 248 ether-vlan ether-vlan", "2{3408{11:4:256}}" },
	/* Words that come later adjust a preset, and a preset what was before. */
	{ "docsis overhead 20", "2{3408{11:4:20 12:4:64 10:1:1}}" },
	{ "docsis mpu 20", "2{3408{11:4:18 12:4:20 10:1:1}}" },
	{ "docsis atm", "2{3408{11:4:18 12:4:64 10:1:2}}" },
	{ "docsis raw", "2{3408{10:1:0}}" },
	{ "overhead 5 mpu 6 atm docsis", "2{3408{11:4:18 12:4:64 10:1:1}}" },
	{ "mpu 64 pppoe-ptm", "2{3408{11:4:30 12:4:0 10:1:3}}" },
	{ "docsis ether-vlan overhead 5", "2{3408{11:4:5 12:4:64 10:1:1}}" },
	{ "ingress", "2{3408{13:1:1}}" },
	{ "egress", "2{3408{13:1:0}}" },
	{ "egress ingress", "2{3408{13:1:1}}" },
	{ "nqb 0", "2{3408{14:8:1}}" },
	{ "nqb 45", "2{3408{14:8:35184372088832}}" },
	{ "nqb 0x2d", "2{3408{14:8:35184372088832}}" },
	{ "nqb 0X2D", "2{3408{14:8:35184372088832}}" },
	{ "nqb 63", "2{3408{14:8:9223372036854775808}}" },
	{ "nqb 3,2,1,0", "2{3408{14:8:15}}" },
	/* Not octal. */
	{ "nqb 010", "2{3408{14:8:1024}}" },
	{ "no_nqb", "2{3408{14:8:0}}" },
	{ "nqb 45 no_nqb", "2{3408{14:8:0}}" },
	{ "no_nqb nqb 1", "2{3408{14:8:2}}" },
	{ "burst_max 0", "2{3408{15:4:0}}" },
	{ "burst_max 5ms", "2{3408{15:4:5000}}" },
	{ "burst_max 100ms", "2{3408{15:4:100000}}" },
	{ "bypass", "2{3408{16:1:1}}" },
	{ "no_bypass", "2{3408{16:1:0}}" },
	{ "no_bypass bypass", "2{3408{16:1:1}}" },
	/* The kernel refuses bypass with a bandwidth; what is taken back is none. */
	{ "bypass unlimited", "2{3408{9:8:0 16:1:1}}" },
	{ "bypass bandwidth 40mbit unlimited", "2{3408{9:8:0 16:1:1}}" },
	{ "bandwidth 40mbit no_bypass", "2{3408{9:8:5000000 16:1:0}}" },
	{ "bypass no_bypass bandwidth 40mbit", "2{3408{9:8:5000000 16:1:0}}" },
	{ "no_l4s bypass ingress ramp 7", "2{3408{2:4:7 13:1:1 16:1:1 1:1:0}}" },
	{ "limit 5 bandwidth 20mbit pppoe-ptm ether-vlan ingress no_nqb burst_max 1ms no_l4s",
	  "2{1:4:5 3408{9:8:2500000 11:4:34 12:4:0 10:1:3 13:1:1 14:8:0 15:4:1000 1:1:0}}" },
	/* The order of the words does not matter ... */
	{ "limit 5 target 6 no_l4s ramp 7", "2{1:4:5 3:4:6 3408{2:4:7 1:1:0}}" },
	{ "ramp 7 no_l4s target 6 limit 5", "2{1:4:5 3:4:6 3408{2:4:7 1:1:0}}" },
	/* ... but for words that contradict each other: the last one counts. */
	{ "any_ect l4s_ect", "2{14:1:1}" },
	{ "no_split_gso split_gso", "2{15:1:1}" },
	{ "random recur", "2{3408{3:1:0}}" },
	/* 0.1 * 16.666 ms / (100 ms)^2 = 0.16666 Hz = 42.66/256 Hz */
	{ "max_rtt 100ms", "2{3:4:16666 4:4:16666 5:4:43 6:4:768}" },
	{ "typical_rtt 15ms", "2{3:4:15000 4:4:15000 5:4:47 6:4:853}" },
	/* 0.1 * 1.333333 s / (8 s)^2 = 0.53/256 Hz is still 1/256 Hz. */
	{ "max_rtt 8s", "2{3:4:1333333 4:4:1333333 5:4:1 6:4:10}" },
	{ "max_rtt 90ms typical_rtt 40ms", "2{3:4:40000 4:4:30000 5:4:95 6:4:853}" },
	{ "typical_rtt 40ms max_rtt 90ms", "2{3:4:40000 4:4:30000 5:4:95 6:4:853}" },
	{ "max_rtt 100ms alpha 0.5", "2{3:4:16666 4:4:16666 5:4:128 6:4:768}" },
	{ "alpha 0.5 max_rtt 100ms", "2{3:4:16666 4:4:16666 5:4:43 6:4:768}" },
};

static const struct {
	const char *line;
	const char *errors;
} refused[] = {
	{ "limit 0",
	  "limit: \"0\" is not in range; expected 1p to 4294967295p" },
	{ "limit 4294967296",
	  "limit: \"4294967296\" is not in range; expected 1p to 4294967295p" },
	{ "limit 1e300",
	  "limit: \"1e300\" is not in range; expected 1p to 4294967295p" },
	{ "limit -1",
	  "limit: \"-1\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit 1.5",
	  "limit: \"1.5\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit nan",
	  "limit: \"nan\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit inf",
	  "limit: \"inf\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit ''",
	  "limit: \"\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit 5ms",
	  "limit: \"5ms\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit 5pp",
	  "limit: \"5pp\" is not a number of packets; expected 1p to 4294967295p" },
	{ "limit", "limit: the value is missing; expected 1p to 4294967295p" },
	{ "memlimit 0",
	  "memlimit: \"0\" is not in range; expected 1B to 4294967295B" },
	{ "memlimit 4g",
	  "memlimit: \"4g\" is not in range; expected 1B to 4294967295B" },
	{ "memlimit 5q",
	  "memlimit: \"5q\" is not a number of bytes; expected 1B to 4294967295B" },
	{ "target 0",
	  "target: \"0\" is not in range; expected 1us to 4.294967s" },
	{ "target 0.4us",
	  "target: \"0.4us\" is not in range; expected 1us to 4.294967s" },
	{ "target 4.294968s",
	  "target: \"4.294968s\" is not in range; expected 1us to 4.294967s" },
	/* 2^32 + 1 us: what a cast would make 1 us. */
	{ "target 4294967297us",
	  "target: \"4294967297us\" is not in range; expected 1us to 4.294967s" },
	{ "target 5x",
	  "target: \"5x\" is not a time; expected 1us to 4.294967s" },
	{ "tupdate 99",
	  "tupdate: \"99\" is not in range; expected 100us to 4.294967s" },
	{ "tupdate -5ms",
	  "tupdate: \"-5ms\" is not a time; expected 100us to 4.294967s" },
	{ "alpha 0",
	  "alpha: \"0\" is not in range; expected 0.003906 to 8388607.996094" },
	{ "alpha 0.00195",
	  "alpha: \"0.00195\" is not in range; expected 0.003906 to 8388607.996094" },
	{ "beta 8388608",
	  "beta: \"8388608\" is not in range; expected 0.003906 to 8388607.996094" },
	{ "beta 3hz",
	  "beta: \"3hz\" is not a number of Hz; expected 0.003906 to 8388607.996094" },
	{ "step_thresh 4294967295p",
	  "step_thresh: \"4294967295p\" is not in range; expected 0us to 4.294967s, or 1p to 4294967294p" },
	{ "step_thresh 0p",
	  "step_thresh: \"0p\" is not in range; expected 0us to 4.294967s, or 1p to 4294967294p" },
	{ "step_thresh 5s",
	  "step_thresh: \"5s\" is not in range; expected 0us to 4.294967s, or 1p to 4294967294p" },
	{ "step_thresh 1.5p",
	  "step_thresh: \"1.5p\" is not a time or a number of packets; expected 0us to 4.294967s, or 1p to 4294967294p" },
	{ "step_thresh",
	  "step_thresh: the value is missing; expected 0us to 4.294967s, or 1p to 4294967294p" },
	{ "min_qlen_step 4294967296",
	  "min_qlen_step: \"4294967296\" is not in range; expected 0p to 4294967295p" },
	{ "coupling_factor 0",
	  "coupling_factor: \"0\" is not in range; expected 1 to 255" },
	{ "coupling_factor 256",
	  "coupling_factor: \"256\" is not in range; expected 1 to 255" },
	{ "coupling_factor 2p",
	  "coupling_factor: \"2p\" is not a number; expected 1 to 255" },
	{ "classic_protection 101",
	  "classic_protection: \"101\" is not in range; expected 0% to 100%" },
	{ "classic_protection 10.5%",
	  "classic_protection: \"10.5%\" is not a percentage; expected 0% to 100%" },
	{ "ramp 4.3s",
	  "ramp: \"4.3s\" is not in range; expected 0us to 4.294967s" },
	{ "p_cmax 101",
	  "p_cmax: \"101\" is not in range; expected 0% to 100%" },
	{ "p_cmax 0.5",
	  "p_cmax: \"0.5\" is not a percentage; expected 0% to 100%" },
	{ "hist_c 0",
	  "hist_c: \"0\" is not in range; expected 1us to 16.384ms" },
	{ "hist_c 16385us",
	  "hist_c: \"16385us\" is not in range; expected 1us to 16.384ms" },
	{ "hist_l 0",
	  "hist_l: \"0\" is not in range; expected 1us to 16.384ms" },
	{ "hist_l 16385us",
	  "hist_l: \"16385us\" is not in range; expected 1us to 16.384ms" },
	{ "hist_l wide",
	  "hist_l: \"wide\" is not a time; expected 1us to 16.384ms" },
	{ "overload_report 1",
	  "overload_report: \"1\" is not in range; expected 0us, or 100ms to 4294.967295s" },
	{ "overload_report 99999us",
	  "overload_report: \"99999us\" is not in range; expected 0us, or 100ms to 4294.967295s" },
	{ "overload_report 4295s",
	  "overload_report: \"4295s\" is not in range; expected 0us, or 100ms to 4294.967295s" },
	{ "overload_report never",
	  "overload_report: \"never\" is not a time; expected 0us, or 100ms to 4294.967295s" },
	{ "overload_report",
	  "overload_report: the value is missing; expected 0us, or 100ms to 4294.967295s" },
	{ "bandwidth 1bit",
	  "bandwidth: \"1bit\" is not in range; expected 8Kbit to 1Tbit" },
	{ "bandwidth 0",
	  "bandwidth: \"0\" is not in range; expected 8Kbit to 1Tbit" },
	{ "bandwidth 7995bit",
	  "bandwidth: \"7995bit\" is not in range; expected 8Kbit to 1Tbit" },
	{ "bandwidth 10tbit",
	  "bandwidth: \"10tbit\" is not in range; expected 8Kbit to 1Tbit" },
	{ "bandwidth 1000000000004bit",
	  "bandwidth: \"1000000000004bit\" is not in range; expected 8Kbit to 1Tbit" },
	{ "bandwidth 1tibit",
	  "bandwidth: \"1tibit\" is not in range; expected 8Kbit to 1Tbit" },
	/* 2^64 bytes/s and a thousand: what a cast would make 1000. */
	{ "bandwidth 18446744073709552616bps",
	  "bandwidth: \"18446744073709552616bps\" is not in range; expected 8Kbit to 1Tbit" },
	{ "bandwidth 40mb",
	  "bandwidth: \"40mb\" is not a rate; expected 8Kbit to 1Tbit" },
	{ "bandwidth -40mbit",
	  "bandwidth: \"-40mbit\" is not a rate; expected 8Kbit to 1Tbit" },
	{ "bandwidth 50%",
	  "bandwidth: \"50%\" is not a rate; expected 8Kbit to 1Tbit" },
	{ "bandwidth unlimited",
	  "bandwidth: \"unlimited\" is not a rate; expected 8Kbit to 1Tbit" },
	{ "bandwidth",
	  "bandwidth: the value is missing; expected 8Kbit to 1Tbit" },
	{ "overhead -65",
	  "overhead: \"-65\" is not in range; expected -64 to 256" },
	{ "overhead 257",
	  "overhead: \"257\" is not in range; expected -64 to 256" },
	{ "overhead 1.5",
	  "overhead: \"1.5\" is not a number of bytes; expected -64 to 256" },
	{ "overhead -1.5",
	  "overhead: \"-1.5\" is not a number of bytes; expected -64 to 256" },
	{ "overhead --1",
	  "overhead: \"--1\" is not a number of bytes; expected -64 to 256" },
	{ "overhead -",
	  "overhead: \"-\" is not a number of bytes; expected -64 to 256" },
	{ "overhead -inf",
	  "overhead: \"-inf\" is not a number of bytes; expected -64 to 256" },
	{ "overhead -1e300",
	  "overhead: \"-1e300\" is not in range; expected -64 to 256" },
	{ "overhead 1k",
	  "overhead: \"1k\" is not a number of bytes; expected -64 to 256" },
	{ "mpu 257", "mpu: \"257\" is not in range; expected 0 to 256" },
	{ "mpu -1",
	  "mpu: \"-1\" is not a number of bytes; expected 0 to 256" },
	{ "docsis docsis", "docsis: duplicate; expected once" },
	{ "docsis ethernet",
	  "ethernet: there is docsis already; expected one of the two" },
	{ "ether-vlan",
	  "ether-vlan: nothing to add to; expected after a preset or overhead" },
	{ "ether-vlan docsis",
	  "ether-vlan: nothing to add to; expected after a preset or overhead" },
	{ "docsis raw ether-vlan",
	  "ether-vlan: nothing to add to; expected after a preset or overhead" },
	{ "docsis ether-vlan ether-vlan ether-vlan ether-vlan",
	  "ether-vlan: too many; expected 3 at most" },
	{ "overhead 253 ether-vlan",
	  "ether-vlan: it leads to overhead 257, which is not in range; expected -64 to 256" },
	{ "ingress ingress", "ingress: duplicate; expected once" },
	{ "nqb 64", "nqb: \"64\" is not in range; expected 0 to 63" },
	{ "nqb 1,0x40", "nqb: \"1,0x40\" is not in range; expected 0 to 63" },
	/* 2^64: what a cast would make 0. */
	{ "nqb 18446744073709551616",
	  "nqb: \"18446744073709551616\" is not in range; expected 0 to 63" },
	{ "nqb 45,0x2d",
	  "nqb: \"45,0x2d\" has 45 twice; expected once" },
	{ "nqb 45,", "nqb: \"45,\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb ,45", "nqb: \",45\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb 1,,2", "nqb: \"1,,2\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb 0x", "nqb: \"0x\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb 0x0x1",
	  "nqb: \"0x0x1\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb 45x", "nqb: \"45x\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb 1.5", "nqb: \"1.5\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb -1", "nqb: \"-1\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb ef", "nqb: \"ef\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb ''", "nqb: \"\" is not a list of DSCPs; expected 0 to 63" },
	{ "nqb", "nqb: the value is missing; expected 0 to 63" },
	{ "nqb 1 nqb 2",
	  "nqb: duplicate, \"2\" is the second value; expected once" },
	{ "burst_max 100001us",
	  "burst_max: \"100001us\" is not in range; expected 0us to 100ms" },
	{ "burst_max long",
	  "burst_max: \"long\" is not a time; expected 0us to 100ms" },
	{ "bypass bypass", "bypass: duplicate; expected once" },
	{ "bypass bandwidth 40mbit",
	  "bypass: there is bandwidth, too; expected one of the two" },
	{ "unlimited bandwidth 40mbit limit 5 no_bypass bypass",
	  "bypass: there is bandwidth, too; expected one of the two" },
	/* Before what max_rtt leads to is said. */
	{ "max_rtt 100ms bandwidth 40mbit bypass",
	  "bypass: there is bandwidth, too; expected one of the two" },
	{ "target 5ms target 6ms",
	  "target: duplicate, \"6ms\" is the second value; expected once" },
	{ "step_thresh 5ms step_thresh 6p",
	  "step_thresh: duplicate, \"6p\" is the second value; expected once" },
	{ "limit 5 limit", "limit: duplicate; expected once" },
	{ "split_gso split_gso", "split_gso: duplicate; expected once" },
	{ "max_rtt 0",
	  "max_rtt: \"0\" is not in range; expected 1us to 4294.967295s" },
	{ "max_rtt 4295s",
	  "max_rtt: \"4295s\" is not in range; expected 1us to 4294.967295s" },
	{ "max_rtt 10ms typical_rtt 11ms",
	  "typical_rtt: \"11ms\" is not in range; expected at most the max_rtt of 10ms" },
	{ "max_rtt 1s typical_rtt 5ms",
	  "max_rtt: \"1s\" with typical_rtt 5ms is not in range: it leads to alpha 0.0005; expected 0.003906 to 8388607.996094" },
	{ "typical_rtt 4294s",
	  "max_rtt: \"4294.967295s\" with typical_rtt 4294s is not in range: it leads to target 4294s; expected 1us to 4.294967s" },
	{ "max_rtt 5us",
	  "max_rtt: \"5us\" with typical_rtt 0us is not in range: it leads to target 0us; expected 1us to 4.294967s" },
	{ "max_rtt 299us typical_rtt 150us",
	  "max_rtt: \"299us\" with typical_rtt 150us is not in range: it leads to tupdate 99us; expected 100us to 4.294967s" },
	/* An error after good words must not be lost. */
	{ "limit 5 target 15ms random ramp x",
	  "ramp: \"x\" is not a time; expected 0us to 4.294967s" },
};

static void test_options_accepted(void)
{
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(accepted); i++) {
		sprintf(name, "\"%s\" is sent as %s", accepted[i].line,
			accepted[i].sent);
		if (parse(accepted[i].line)) {
			check(false, "%s", name);
			comment("refused", errors);
		} else {
			check_text(name, sent(), accepted[i].sent);
		}
	}

	parse("max_rtt 100ms");
	check_text("max_rtt says what it leads to", errors,
		   "dualpi2: max_rtt 100ms typical_rtt 16.666ms: target 16.666ms tupdate 16.666ms alpha 0.167969 beta 3.000000\n");
	parse("limit 5 target 5ms");
	check_text("good options say nothing", errors, "");
}

static void test_options_refused(void)
{
	char name[TEXT_SIZE], want[TEXT_SIZE];
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		ret = parse(refused[i].line);
		sprintf(name, "\"%s\" is refused", refused[i].line);
		sprintf(want, "dualpi2: %s\n", refused[i].errors);
		if (ret != -1 || msg.n.nlmsg_len != NLMSG_LENGTH(0)) {
			check(false, "%s", name);
			printf("# returned %d with %u bytes\n", ret,
			       msg.n.nlmsg_len);
		} else {
			check_text(name, errors, want);
		}
	}
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
		ret += dualpi2_qdisc_util.parse_qopt(&dualpi2_qdisc_util, 2,
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
			ret = dualpi2_qdisc_util.parse_qopt(&dualpi2_qdisc_util,
							    argc, argv, &msg.n,
							    "eth0");
			bad += ret != (room < (argc == 2 ? 12 : 24) ? -1 : 0);
		}
	check(!bad, "options that do not fit the message are refused");
}

static const char *const words[] = {
	"limit", "memlimit", "max_rtt", "typical_rtt", "target", "tupdate",
	"alpha", "beta", "step_thresh", "ramp", "min_qlen_step",
	"coupling_factor", "classic_protection", "drop_on_overload", "overflow",
	"drop_enqueue", "drop_dequeue", "l4s_ect", "cla_ect", "any_ect",
	"split_gso", "no_split_gso", "recur", "random", "l4s", "no_l4s",
	"p_cmax", "hist_c", "hist_l", "overload_report",
	"bandwidth", "unlimited", "overhead", "mpu", "raw", "noatm", "atm",
	"ptm", "ingress", "egress", "nqb", "no_nqb", "burst_max",
	"bypass", "no_bypass",
	"conservative", "ipoa-vcmux", "ipoa-llcsnap", "bridged-vcmux",
	"bridged-llcsnap", "pppoa-vcmux", "pppoa-llc", "pppoe-vcmux",
	"pppoe-llcsnap", "pppoe-ptm", "bridged-ptm", "docsis", "ethernet",
	"ether-vlan",
};

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
	char *usage;
	int ret;

	ret = parse("help");
	check(ret == -1, "help ends the command");
	check_words("help has every option", errors);
	for (line = errors; (end = strchr(line, '\n')); line = end + 1)
		if ((size_t)(end - line) > width)
			width = end - line;
	check(width <= 80, "help fits 80 columns");

	usage = strdup(errors);
	ret = parse("limit 5 bogus");
	check(ret == -1 && strstr(errors, usage) &&
	      strncmp(errors, "dualpi2: \"bogus\" is not an option; ", 35) == 0,
	      "an unknown word is refused with the help text");
	ret = parse("lim 5");
	check(ret == -1, "an abbreviation is refused");
	free(usage);
}

/* ---- netlink to text and JSON ---- */

static const char dualpi2_defaults[] =
	"limit 10000p memlimit 30280000B target 15ms tupdate 16ms alpha 0.160156 beta 3.199219 step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect split_gso ";

static const struct {
	const char *line;
	const char *text;
	const char *json;
} printed[] = {
	{ dualpi2_defaults, dualpi2_defaults,
	  "\"limit\":10000,\"memory-limit\":30280000,\"target\":15000,\"tupdate\":16000,\"alpha\":0.160156,\"beta\":3.19922,\"step-thresh-us\":1000,\"min-qlen-step\":0,\"coupling\":2,\"drop-overload\":\"drop\",\"drop-early\":\"drop-dequeue\",\"c-protection\":10,\"ecn-mask\":\"l4s-ect\",\"split-gso\":null" },
	{ "step_thresh 7p overflow drop_enqueue any_ect no_split_gso",
	  "step_thresh 7p overflow drop_enqueue any_ect no_split_gso ",
	  "\"step-thresh-pkts\":7,\"drop-overload\":\"overflow\",\"drop-early\":\"drop-enqueue\",\"ecn-mask\":\"any-ect\"" },
	{ "cla_ect", "cla_ect ", "\"ecn-mask\":\"cla-ect\"" },
	{ "", "", "" },
	{ "l4s ramp 400us recur", "ramp 400us recur ",
	  "\"ramp\":400,\"signal\":\"recur\",\"l4s\":true" },
	{ "no_l4s ramp 0 random", "ramp 0us random no_l4s ",
	  "\"ramp\":0,\"signal\":\"random\",\"l4s\":false" },
	{ "p_cmax 0 hist_c 64us hist_l 8us overload_report 1s",
	  "hist_c 64us hist_l 8us overload_report 1s ",
	  "\"p-cmax\":0,\"hist-c\":64,\"hist-l\":8,\"overload-report\":1000000" },
	{ "overload_report 0 hist_l 1 hist_c 16384 p_cmax 30 random ramp 5 no_l4s",
	  "ramp 5us random p_cmax 30% hist_c 16.384ms hist_l 1us overload_report 0us no_l4s ",
	  "\"ramp\":5,\"signal\":\"random\",\"p-cmax\":30,\"hist-c\":16384,\"hist-l\":1,\"overload-report\":0,\"l4s\":false" },
	{ "unlimited raw egress nqb 45 burst_max 5ms",
	  "nqb 45 burst_max 5ms ",
	  "\"bandwidth\":0,\"framing\":\"raw\",\"ingress\":false,\"nqb\":[45],\"burst-max\":5000" },
	{ "burst_max 5ms nqb 45 ingress docsis bandwidth 40mbit",
	  "bandwidth 40Mbit overhead 18 mpu 64 noatm ingress nqb 45 burst_max 5ms ",
	  "\"bandwidth\":5000000,\"overhead\":18,\"mpu\":64,\"framing\":\"noatm\",\"ingress\":true,\"nqb\":[45],\"burst-max\":5000" },
	{ "bypass burst_max 5ms ingress no_l4s",
	  "ingress burst_max 5ms bypass no_l4s ",
	  "\"ingress\":true,\"burst-max\":5000,\"bypass\":true,\"l4s\":false" },
	{ "no_bypass egress burst_max 5ms", "burst_max 5ms ",
	  "\"ingress\":false,\"burst-max\":5000,\"bypass\":false" },
	{ "no_nqb overhead -10 atm burst_max 0 no_l4s",
	  "overhead -10 atm no_nqb burst_max 0us no_l4s ",
	  "\"overhead\":-10,\"framing\":\"atm\",\"nqb\":[],\"burst-max\":0,\"l4s\":false" },
	{ "ptm overhead 0 mpu 0", "overhead 0 mpu 0 ptm ",
	  "\"overhead\":0,\"mpu\":0,\"framing\":\"ptm\"" },
	{ "nqb 63,0x2d,0", "nqb 0,45,63 ", "\"nqb\":[0,45,63]" },
	{ "bandwidth 2500kbit", "bandwidth 2500Kbit ", "\"bandwidth\":312500" },
	{ "bandwidth 1tbit", "bandwidth 1Tbit ",
	  "\"bandwidth\":125000000000" },
	{ "bandwidth 1234567bps", "bandwidth 9876536bit ",
	  "\"bandwidth\":1234567" },
	{ "target 1us", "target 1us ", "\"target\":1" },
	{ "target 999us", "target 999us ", "\"target\":999" },
	{ "target 1500us", "target 1.5ms ", "\"target\":1500" },
	{ "target 16384us", "target 16.384ms ", "\"target\":16384" },
	{ "target 999999us", "target 999.999ms ", "\"target\":999999" },
	{ "target 4294967us", "target 4.294967s ", "\"target\":4294967" },
	{ "alpha 8388607.99609375", "alpha 8388607.996094 ",
	  "\"alpha\":8.38861e+06" },
	{ "limit 4294967295 memlimit 4294967295",
	  "limit 4294967295p memlimit 4294967295B ",
	  "\"limit\":4294967295,\"memory-limit\":4294967295" },
};

static void test_options_printed(void)
{
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(printed); i++) {
		sprintf(name, "\"%s\" is printed as text", printed[i].line);
		parse(printed[i].line);
		print(false, false, options());
		check_text(name, out, printed[i].text);
		sprintf(name, "\"%s\" is printed as JSON", printed[i].line);
		print(true, false, options());
		check_text(name, out, printed[i].json);
	}
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
		{ 17, 8, UINT64_MAX },	/* of newer ones */
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
	     type <= TCA_DUALPI2_EXT_BYPASS; type++)
		for (len = 0; len < 8; len++) {
			if ((type == TCA_DUALPI2_EXT_FRAMING ||
			     type == TCA_DUALPI2_EXT_INGRESS ||
			     type == TCA_DUALPI2_EXT_BYPASS) && len == 1)
				break;
			if (type != TCA_DUALPI2_EXT_BANDWIDTH &&
			    type != TCA_DUALPI2_EXT_NQB && len == 4)
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

/* What is the default, or off, shows in the text by nothing. */
static bool is_silent(const char *line)
{
	static const char *const silent[] = {
		"l4s", "p_cmax 0", "unlimited", "raw", "egress", "no_bypass",
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
			if (random() % 20 &&
			    (strcmp(word, "classic_protection") == 0 ||
			     strcmp(word, "coupling_factor") == 0 ||
			     strstr("limit memlimit max_rtt typical_rtt target tupdate alpha beta step_thresh ramp min_qlen_step p_cmax hist_c hist_l overload_report bandwidth overhead mpu nqb burst_max",
				    word)))
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

/* ---- statistics ---- */

#define XSTATS_SIZE	(TC_DUALPI2_EXT_XSTATS_OFFSET + \
			 sizeof(struct tc_dualpi2_ext_xstats))

static union {
	struct rtattr rta;
	char bytes[RTA_LENGTH(XSTATS_SIZE) + 64];
} stats;

static void set_xstats(__u32 magic, __u32 size)
{
	const struct tc_dualpi2_xstats st = {
		.prob = 42949673, .delay_c = 14210, .delay_l = 430,
		.packets_in_c = 1234, .packets_in_l = 5678, .maxq = 77,
		.ecn_mark = 12, .step_marks = 3, .credit = -151400,
		.memory_used = 4608, .max_memory_used = 230400,
		.memory_limit = 4294967295,
	};
	struct tc_dualpi2_ext_xstats ext = {
		.magic = magic, .size = size,
		.unparsed = 401, .filter_dropped = 402, .gso_failed = 403,
		.mark_failed = 404, .overload_count = 405,
		.overload_ns = 6500000000, .overload = 1,
		.prob_c = 42949673, .prob_cl = 858993459,
	};
	__u64 *c = (__u64 *)&ext.c, *l = (__u64 *)&ext.l;
	unsigned int i;

	for (i = 0; i < sizeof(ext.c) / sizeof(*c); i++) {
		c[i] = 101 + i;
		l[i] = UINT64_MAX - 20 + i;
	}
	memset(&stats, 0xee, sizeof(stats));
	memset(RTA_DATA(&stats.rta), 0, TC_DUALPI2_EXT_XSTATS_OFFSET);
	memcpy(RTA_DATA(&stats.rta), &st, sizeof(st));
	memcpy(RTA_DATA(&stats.rta) + TC_DUALPI2_EXT_XSTATS_OFFSET, &ext,
	       sizeof(ext));
}

static int print_xstats(bool as_json, unsigned int len)
{
	stats.rta.rta_type = TCA_XSTATS;
	stats.rta.rta_len = RTA_LENGTH(len);
	return print(as_json, true, &stats.rta);
}

#define XSTATS_TEXT \
	"prob 0.010000 delay_c 14210us delay_l 430us\n" \
	"pkts_in_c 1234 pkts_in_l 5678 maxq 77\n" \
	"ecn_mark 12 step_mark 3\n" \
	"credit -151400 (L-queue)\n" \
	"memory_used 4608 (max 230400) of memory limit 4294967295\n"

#define XSTATS_JSON \
	"\"prob\":0.01,\"delay-c\":14210,\"delay-l\":430,\"pkts-in-c\":1234,\"pkts-in-l\":5678,\"maxq\":77,\"ecn-mark\":12,\"step-mark\":3,\"credit\":-151400,\"memory-used\":4608,\"max-memory-used\":230400,\"memory-limit\":4294967295"

#define CLASSIC_TEXT \
	"Classic: enqueued 101 (102 bytes) sent 103 (104 bytes) queued 115 (116 bytes) ce_in 114\n" \
	" marked 336 (classic 111, coupled 112, native 113)\n" \
	" dropped 645 (limit 105, memory 106, early 107, aqm 108, overload 109, purge 110)\n"

static void test_xstats_printed(void)
{
	const __u32 magic = TC_DUALPI2_EXT_XSTATS_MAGIC;
	const __u32 size = sizeof(struct tc_dualpi2_ext_xstats);

	check(size == 328, "the extension's statistics have 328 bytes");

	set_xstats(magic, size);
	print_xstats(false, sizeof(struct tc_dualpi2_xstats));
	check_text("statistics of Linux are printed as text", out, XSTATS_TEXT);
	print_xstats(true, sizeof(struct tc_dualpi2_xstats));
	check_text("statistics of Linux are printed as JSON", out, XSTATS_JSON);

	print_xstats(false, XSTATS_SIZE);
	check_text("statistics of the extension are printed as text", out,
		   XSTATS_TEXT CLASSIC_TEXT
		   "L4S: enqueued 18446744073709551595 (18446744073709551596 bytes) sent 18446744073709551597 (18446744073709551598 bytes) queued 18446744073709551609 (18446744073709551610 bytes) ce_in 18446744073709551608\n"
		   " marked 18446744073709551586 (classic 18446744073709551605, coupled 18446744073709551606, native 18446744073709551607)\n"
		   " dropped 18446744073709551529 (limit 18446744073709551599, memory 18446744073709551600, early 18446744073709551601, aqm 18446744073709551602, overload 18446744073709551603, purge 18446744073709551604)\n"
		   "prob_c 0.010000 prob_cl 0.200000 overload yes (405 times, 6.500s)\n"
		   "unparsed 401 filter_dropped 402 gso_failed 403 mark_failed 404\n");
	print_xstats(true, XSTATS_SIZE);
	check_text("statistics of the extension are printed as JSON", out,
		   XSTATS_JSON
		   ",\"classic\":{\"enqueued\":101,\"enqueued-bytes\":102,\"sent\":103,\"sent-bytes\":104,\"packets\":115,\"bytes\":116,\"arrived-ce\":114,\"marked-classic\":111,\"marked-coupled\":112,\"marked-native\":113,\"dropped-limit\":105,\"dropped-memory\":106,\"dropped-early\":107,\"dropped-aqm\":108,\"dropped-overload\":109,\"dropped-purge\":110}"
		   ",\"l4s\":{\"enqueued\":18446744073709551595,\"enqueued-bytes\":18446744073709551596,\"sent\":18446744073709551597,\"sent-bytes\":18446744073709551598,\"packets\":18446744073709551609,\"bytes\":18446744073709551610,\"arrived-ce\":18446744073709551608,\"marked-classic\":18446744073709551605,\"marked-coupled\":18446744073709551606,\"marked-native\":18446744073709551607,\"dropped-limit\":18446744073709551599,\"dropped-memory\":18446744073709551600,\"dropped-early\":18446744073709551601,\"dropped-aqm\":18446744073709551602,\"dropped-overload\":18446744073709551603,\"dropped-purge\":18446744073709551604}"
		   ",\"prob-c\":0.01,\"prob-cl\":0.2,\"overload\":true,\"overload-count\":405,\"overload-ns\":6500000000,\"unparsed\":401,\"filter-dropped\":402,\"gso-failed\":403,\"mark-failed\":404");
}

#define ZERO_TEXT \
	": enqueued 0 (0 bytes) sent 0 (0 bytes) queued 0 (0 bytes) ce_in 0\n" \
	" marked 0 (classic 0, coupled 0, native 0)\n" \
	" dropped 0 (limit 0, memory 0, early 0, aqm 0, overload 0, purge 0)\n"

#define ZERO_END \
	"prob_c 0.000000 prob_cl 0.000000 overload no (0 times, 0.000s)\n" \
	"unparsed 0 filter_dropped 0 gso_failed 0 mark_failed 0\n"

static void test_xstats_of_other_sizes(void)
{
	const unsigned int head = TC_DUALPI2_EXT_XSTATS_OFFSET + 8;
	const __u32 magic = TC_DUALPI2_EXT_XSTATS_MAGIC;
	const __u32 size = sizeof(struct tc_dualpi2_ext_xstats);
	char full[TEXT_SIZE];
	unsigned int len, bad = 0;

	set_xstats(magic, size);
	for (len = 0; len <= XSTATS_SIZE + 64; len++)
		if (print_xstats(false, len) || strncmp(out, "prob ", 5) ||
		    !strstr(out, "Classic:") != (len < head))
			bad++;
	check(!bad, "statistics of any length are printed");

	print_xstats(false, 40);
	check_text("what short statistics lack is zero", out,
		   "prob 0.010000 delay_c 14210us delay_l 430us\n"
		   "pkts_in_c 1234 pkts_in_l 5678 maxq 77\n"
		   "ecn_mark 12 step_mark 3\n"
		   "credit -151400 (L-queue)\n"
		   "memory_used 4608 (max 0) of memory limit 0\n");

	print_xstats(false, head);
	check_text("an extension that ends after its head is all zero", out,
		   XSTATS_TEXT "Classic" ZERO_TEXT "L4S" ZERO_TEXT ZERO_END);
	print_xstats(false, head + sizeof(struct tc_dualpi2_queue_xstats));
	check_text("what a short extension lacks is zero", out,
		   XSTATS_TEXT CLASSIC_TEXT "L4S" ZERO_TEXT ZERO_END);

	print_xstats(false, XSTATS_SIZE);
	memcpy(full, out, out_len + 1);
	print_xstats(false, XSTATS_SIZE + 64);
	check_text("what a long extension has in addition is left", out, full);

	set_xstats(magic, 8 + sizeof(struct tc_dualpi2_queue_xstats));
	print_xstats(false, XSTATS_SIZE);
	check_text("what is beyond an extension's own size is zero", out,
		   XSTATS_TEXT CLASSIC_TEXT "L4S" ZERO_TEXT ZERO_END);
	set_xstats(magic, 0xffffffff);
	print_xstats(false, XSTATS_SIZE);
	check_text("an extension's size beyond the payload is cut", out, full);
	set_xstats(magic, 4);
	print_xstats(false, XSTATS_SIZE);
	check_text("an extension smaller than its head is not printed", out,
		   XSTATS_TEXT);
	set_xstats(magic + 1, size);
	print_xstats(false, XSTATS_SIZE);
	check_text("an extension without the magic number is not printed", out,
		   XSTATS_TEXT);
}

static void test_credit(void)
{
	static const struct {
		__s32 credit;
		const char *text;
	} cases[] = {
		{ 1, "\ncredit 1 (C-queue)\n" },
		{ 0, "\ncredit 0 (L-queue)\n" },
		{ -1, "\ncredit -1 (L-queue)\n" },
	};
	struct tc_dualpi2_xstats *st = RTA_DATA(&stats.rta);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		st->credit = cases[i].credit;
		print_xstats(false, sizeof(*st));
		check(strstr(out, cases[i].text),
		      "credit %d names the queue whose turn it is",
		      cases[i].credit);
	}
}

/* ---- statistics in attributes ---- */

/* One queue as the kernel would send it; no histogram if it has no packets. */
struct queue {
	struct tc_dualpi2_counters counters;
	struct tc_dualpi2_delay delay;
	__u64 hist[96];
};

/* From the description in the ABI. */
static __u64 bucket_begin(__u64 unit_ns, unsigned int i)
{
	return (i < 8 ? i : (8ULL + i % 8) << (i / 8 - 1)) * unit_ns;
}

static void queue_begin(struct queue *q, __u32 unit_ns)
{
	memset(q, 0, sizeof(*q));
	q->delay.unit_ns = unit_ns;
	q->delay.buckets = ARRAY_SIZE(q->hist);
	q->delay.generation = 3;
}

static void queue_packet(struct queue *q, __u64 ns)
{
	unsigned int i = 0;

	while (i < q->delay.buckets &&
	       ns >= bucket_begin(q->delay.unit_ns, i + 1))
		i++;
	if (i < q->delay.buckets)
		q->hist[i]++;
	else
		q->delay.beyond++;
	q->delay.sum_ns += ns;
	if (ns > q->delay.max_ns)
		q->delay.max_ns = ns;
}

static struct rtattr *app;

/* The attribute's payload is that of set_xstats(), and what is added to it. */
static void app_begin(void)
{
	set_xstats(TC_DUALPI2_EXT_XSTATS_MAGIC,
		   sizeof(struct tc_dualpi2_ext_xstats));
	memset(&msg, 0, sizeof(msg));
	msg.n.nlmsg_len = NLMSG_LENGTH(0);
	app = addattr_nest(&msg.n, MSG_SIZE, TCA_STATS_APP);
	memcpy(RTA_DATA(app), RTA_DATA(&stats.rta), XSTATS_SIZE);
	msg.n.nlmsg_len += XSTATS_SIZE;
}

static void app_add(int type, const void *data, int len)
{
	if (addattr_l(&msg.n, MSG_SIZE, type, data, len))
		exit(1);
}

static void app_queue(int type, const struct queue *q)
{
	struct rtattr *nest = addattr_nest(&msg.n, MSG_SIZE,
					   type | NLA_F_NESTED);
	unsigned int len = ARRAY_SIZE(q->hist);

	while (len && !q->hist[len - 1])
		len--;
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, &q->counters, sizeof(q->counters));
	app_add(TCA_DUALPI2_QUEUE_DELAY, &q->delay, sizeof(q->delay));
	app_add(TCA_DUALPI2_QUEUE_HIST, q->hist, len * sizeof(*q->hist));
	addattr_nest_end(&msg.n, nest);
}

/* All that the module sends of a qdisc. */
static void app_qdisc(const struct queue *c, const struct queue *l,
		      const struct tc_dualpi2_overload *overload)
{
	app_queue(TCA_DUALPI2_STATS_C, c);
	app_queue(TCA_DUALPI2_STATS_L, l);
	app_add(TCA_DUALPI2_STATS_OVERLOAD, overload, sizeof(*overload));
}

static void print_app(bool as_json)
{
	addattr_nest_end(&msg.n, app);
	if (print(as_json, true, app)) {
		puts("Bail out! statistics are not printed");
		exit(1);
	}
}

/* The text from the line that begins with what, up to the one before end. */
static const char *piece(const char *what, const char *end)
{
	char *from = strstr(out, what), *to;

	if (!from)
		return "";
	to = strstr(from, end);
	if (to)
		*to = 0;
	return from;
}

/* Of the first object "delay". */
static __u64 json_number(const char *key)
{
	const char *at = strstr(out, "\"delay\":{");
	char want[64];

	sprintf(want, "\"%s\":", key);
	at = at ? strstr(at, want) : NULL;
	return at ? strtoull(at + strlen(want), NULL, 10) : UINT64_MAX;
}

/* Numbers from 201 and 301 on, and delays that are known. */
static void set_queues(struct queue *c, struct queue *l)
{
	__u64 *n = (__u64 *)&c->counters;
	unsigned int i;

	queue_begin(c, 65536);
	queue_begin(l, 8192);
	for (i = 0; i < sizeof(c->counters) / sizeof(*n); i++) {
		n[i] = 201 + i;
		((__u64 *)&l->counters)[i] = 301 + i;
	}
	for (i = 0; i < 9; i++)
		queue_packet(c, 15000000);
	queue_packet(c, 41000000);
	for (i = 0; i < 1000; i++)
		queue_packet(l, 400000);
	queue_packet(l, 812);
	l->counters.arrived_ect1 = 4294967296;
	l->counters.forwarded = UINT64_MAX;
}

#define NEW_CLASSIC \
	" arrived 810 (205 bytes) not_ect 201 ect1 202 ect0 203 ce 204\n" \
	" presented 206 (207 bytes) forwarded 208 (209 bytes)\n" \
	" dropped_not_ect 1305 (limit 215, memory 216, early 217, aqm 218, overload 219, purge 220)\n" \
	" dropped_ect 1341 (limit 221, memory 222, early 223, aqm 224, overload 225, purge 226)\n" \
	" dropped_bytes 684 (arrival 227, aqm 228, purge 229)\n" \
	" delay mean 17.6ms p50 15.2ms p90 15.7ms p99 41ms p99.9 41ms max 41ms\n"

#define NEW_L4S \
	" arrived 4294968204 (305 bytes) not_ect 301 ect1 4294967296 ect0 303 ce 304\n" \
	" presented 306 (307 bytes) forwarded 18446744073709551615 (309 bytes)\n" \
	" dropped_not_ect 1905 (limit 315, memory 316, early 317, aqm 318, overload 319, purge 320)\n" \
	" dropped_ect 1941 (limit 321, memory 322, early 323, aqm 324, overload 325, purge 326)\n" \
	" dropped_bytes 984 (arrival 327, aqm 328, purge 329)\n" \
	" delay mean 400us p50 400us p90 400us p99 400us p99.9 400us max 400us\n"

#define NEW_CLASSIC_JSON \
	",\"arrived-bytes\":205,\"arrived-not-ect\":201,\"arrived-ect1\":202,\"arrived-ect0\":203,\"presented\":206,\"presented-bytes\":207,\"forwarded\":208,\"forwarded-bytes\":209,\"queued\":210,\"queued-bytes\":211" \
	",\"not-ect-dropped-limit\":215,\"not-ect-dropped-memory\":216,\"not-ect-dropped-early\":217,\"not-ect-dropped-aqm\":218,\"not-ect-dropped-overload\":219,\"not-ect-dropped-purge\":220" \
	",\"ect-dropped-limit\":221,\"ect-dropped-memory\":222,\"ect-dropped-early\":223,\"ect-dropped-aqm\":224,\"ect-dropped-overload\":225,\"ect-dropped-purge\":226" \
	",\"dropped-arrival-bytes\":227,\"dropped-aqm-bytes\":228,\"dropped-purge-bytes\":229" \
	",\"delay\":{\"mean-ns\":17600000,\"p50-ns\":15204352,\"p90-ns\":15670385,\"p99-ns\":41000000,\"p999-ns\":41000000,\"max-ns\":41000000,\"count\":10,\"sum-ns\":176000000,\"beyond\":0,\"beyond-ns\":1073741824,\"generation\":3,\"unit-ns\":65536" \
	",\"buckets\":[{\"from-ns\":14680064,\"to-ns\":15728640,\"packets\":9},{\"from-ns\":37748736,\"to-ns\":41943040,\"packets\":1}]}"

static void test_queues_printed(void)
{
	const struct tc_dualpi2_overload overload = {
		.count = 2, .total_ns = 3, .reports = 4294967296,
		.start_ns = 1795296376123456789, .duration_ns = 1234567890,
	};
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);

	print_app(false);
	check_text("statistics of a queue are printed behind its block",
		   piece("prob ", "L4S:"), XSTATS_TEXT CLASSIC_TEXT NEW_CLASSIC);
	print_app(false);
	check_text("counters at 2^32 and 2^64 are printed right",
		   piece(" arrived 42949", "prob_c"), NEW_L4S);
	print_app(false);
	check_text("the last overload is printed at the end",
		   piece("unparsed ", "\377"),
		   "unparsed 401 filter_dropped 402 gso_failed 403 mark_failed 404\n"
		   "overload_start 2026-11-21T21:26:16.123Z overload_end 2026-11-21T21:26:17.358Z overload_duration 1.235s overload_reports 4294967296\n");

	print_app(true);
	check_text("statistics of a queue are printed in its JSON object",
		   piece(",\"arrived-bytes\":205", "},\"l4s\""), NEW_CLASSIC_JSON);
	print_app(true);
	check_text("the last overload is printed in JSON",
		   piece(",\"overload-start\"", "\377"),
		   ",\"overload-start\":\"2026-11-21T21:26:16.123Z\",\"overload-end\":\"2026-11-21T21:26:17.358Z\",\"overload-start-ns\":1795296376123456789,\"overload-duration-ns\":1234567890,\"overload-reports\":4294967296");
}

static void test_empty_queue(void)
{
	char want[TEXT_SIZE], *to = want;
	static const char *const keys[] = {
		"arrived-bytes", "arrived-not-ect", "arrived-ect1",
		"arrived-ect0", "presented", "presented-bytes", "forwarded",
		"forwarded-bytes", "queued", "queued-bytes",
		"not-ect-dropped-limit", "not-ect-dropped-memory",
		"not-ect-dropped-early", "not-ect-dropped-aqm",
		"not-ect-dropped-overload", "not-ect-dropped-purge",
		"ect-dropped-limit", "ect-dropped-memory", "ect-dropped-early",
		"ect-dropped-aqm", "ect-dropped-overload", "ect-dropped-purge",
		"dropped-arrival-bytes", "dropped-aqm-bytes",
		"dropped-purge-bytes",
	};
	struct queue l;
	unsigned int i;

	queue_begin(&l, 8192);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check_text("counters and delays of no packet are short as text",
		   piece(" arrived", "\377"),
		   " arrived 0 (0 bytes) not_ect 0 ect1 0 ect0 0 ce 0\n"
		   " presented 0 (0 bytes) forwarded 0 (0 bytes)\n"
		   " delay of no packet yet\n");
	print_app(true);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		to += sprintf(to, ",\"%s\":0", keys[i]);
	strcpy(to, ",\"delay\":{\"mean-ns\":null,\"p50-ns\":null,\"p90-ns\":null,\"p99-ns\":null,\"p999-ns\":null,\"max-ns\":0,\"count\":0,\"sum-ns\":0,\"beyond\":0,\"beyond-ns\":134217728,\"generation\":3,\"unit-ns\":8192,\"buckets\":[]}}");
	check_text("counters and delays of no packet are complete in JSON",
		   piece(",\"arrived-bytes\"", "\377"), want);

	l.counters.not_ect_dropped_aqm = 7;
	l.counters.ect_dropped_purge = UINT64_MAX;
	l.counters.ect_dropped_early = 1;
	l.counters.dropped_aqm_bytes = 9;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check_text("causes of no drop are left out of the text",
		   piece(" dropped_not", " delay"),
		   " dropped_not_ect 7 (aqm 7)\n"
		   " dropped_ect 0 (early 1, purge 18446744073709551615)\n"
		   " dropped_bytes 9 (aqm 9)\n");
}

static void test_class(void)
{
	const struct tc_dualpi2_overload overload = {};
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &c);
	print_app(false);
	check_text("the class of the Classic queue shows that and nothing else",
		   out, CLASSIC_TEXT NEW_CLASSIC);
	print_app(true);
	check(strncmp(out, "\"classic\":{\"enqueued\":101,", 26) == 0 &&
	      !strstr(out, "l4s") && !strstr(out, "prob"),
	      "the class of the Classic queue has one object in JSON");

	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	print_app(false);
	check(strncmp(out, "L4S: enqueued 18446744073709551595 ", 35) == 0 &&
	      strstr(out, NEW_L4S) && !strstr(out, "Classic") &&
	      !strstr(out, "prob"),
	      "the class of the L4S queue shows that and nothing else");
	print_app(true);
	check(strncmp(out, "\"l4s\":{\"enqueued\":", 18) == 0 &&
	      !strstr(out, "\"classic\"") && !strstr(out, "prob"),
	      "the class of the L4S queue has one object in JSON");

	app_add(TCA_DUALPI2_STATS_OVERLOAD, &overload, sizeof(overload));
	print_app(false);
	check(strncmp(out, "prob ", 5) == 0 && strstr(out, "Classic:"),
	      "one queue and an overload are no class");
}

/* One packet of each delay of count, sorted: do the percentiles lie in the
 * bucket of the packet of that rank?
 */
static bool percentiles_hold(const struct queue *q, const __u64 *ns,
			     unsigned int count)
{
	static const struct {
		const char *key;
		unsigned int permille;
	} cases[] = {
		{ "p50-ns", 500 }, { "p90-ns", 900 }, { "p99-ns", 990 },
		{ "p999-ns", 999 },
	};
	__u64 got, before = 0, low = 0, high = 0;
	unsigned int i, b;

	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, q);
	print_app(true);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int rank = (count * cases[i].permille + 999) / 1000;
		__u64 want = ns[rank - 1];

		got = json_number(cases[i].key);
		for (b = 0; b < q->delay.buckets; b++) {
			low = bucket_begin(q->delay.unit_ns, b);
			high = bucket_begin(q->delay.unit_ns, b + 1);
			if (want < high)
				break;
		}
		if (want >= high) {	/* beyond the last one */
			low = q->delay.max_ns;
			high = low;
		}
		if (got < low || got > high || got < before ||
		    got > q->delay.max_ns) {
			printf("# %s of %u packets is %llu, not %llu\n",
			       cases[i].key, count, (unsigned long long)got,
			       (unsigned long long)want);
			return false;
		}
		before = got;
	}
	return json_number("count") == count &&
	       json_number("max-ns") == ns[count - 1];
}

static int by_size(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void test_percentiles(void)
{
	static const unsigned int counts[] = {
		1, 2, 3, 9, 10, 11, 99, 100, 101, 999, 1000, 1001, 5000,
	};
	static __u64 ns[5000];
	unsigned int i, round, bad = 0;
	struct queue q;

	srandom(9332);
	for (round = 0; round < 500; round++) {
		unsigned int count = counts[round % ARRAY_SIZE(counts)];
		__u32 unit = 1024U << random() % 15;
		unsigned int bits = 1 + random() % 36;

		queue_begin(&q, unit);
		for (i = 0; i < count; i++) {
			ns[i] = (((__u64)random() << 31) | random()) &
				((1ULL << bits) - 1);
			queue_packet(&q, ns[i]);
		}
		qsort(ns, count, sizeof(*ns), by_size);
		bad += !percentiles_hold(&q, ns, count);
	}
	check(!bad, "percentiles lie in the bucket of the packet of their rank");

	/* 2^62 packets: a product with 1000 would not fit. */
	queue_begin(&q, 1024);
	q.hist[20] = 1ULL << 62;
	q.hist[40] = 1ULL << 55;
	q.delay.max_ns = bucket_begin(1024, 41) - 1;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("p99-ns") >= bucket_begin(1024, 20) &&
	      json_number("p99-ns") <= bucket_begin(1024, 21) &&
	      json_number("p999-ns") >= bucket_begin(1024, 40) &&
	      json_number("p999-ns") <= bucket_begin(1024, 41),
	      "percentiles of 2^62 packets are right");

	/* Of 1000 packets in a bucket the 500th is in its middle. */
	queue_begin(&q, 1024);
	q.hist[16] = 1000;
	q.delay.max_ns = 18431;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("p50-ns") == 16384 + 1022 &&
	      json_number("p90-ns") == 16384 + 1842,
	      "percentiles are interpolated within a bucket");
	q.delay.max_ns = 17000;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("p50-ns") == 17000 && json_number("p99-ns") == 17000,
	      "a percentile is not beyond the maximum");
}

static void test_beyond(void)
{
	struct queue q;
	unsigned int i;

	queue_begin(&q, 8192);
	for (i = 0; i < 98; i++)
		queue_packet(&q, 1000000);
	queue_packet(&q, 140000000);
	queue_packet(&q, 2000000000);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &q);
	print_app(false);
	check_text("a percentile beyond the last bucket says so as text",
		   piece(" delay", "\377"),
		   " delay mean 22.4ms p50 1.02ms p90 1.04ms p99 >134ms p99.9 2s max 2s\n");
	print_app(true);
	check(json_number("p99-ns") == 2000000000 &&
	      json_number("beyond") == 2 && json_number("count") == 100 &&
	      json_number("beyond-ns") == 134217728,
	      "a percentile beyond the last bucket is the maximum in JSON");
}

static void test_mean(void)
{
	/* 12 Gbit/s of 1000 bytes at 15 ms: after 14 days it starts again. */
	static const __u64 counts[] = {
		1000000, 1ULL << 40, 1229782938247ULL, 3000000000000ULL,
		9000000000000ULL,
	};
	struct queue q;
	unsigned int i;
	__u64 got;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		queue_begin(&q, 65536);
		q.hist[46] = counts[i] / 2;	/* 14.7 to 15.7 ms */
		q.hist[47] = counts[i] - counts[i] / 2; /* to 16.8 ms */
		q.delay.max_ns = 16000000;
		q.delay.sum_ns = counts[i] * 15555555;
		app_begin();
		app_queue(TCA_DUALPI2_STATS_C, &q);
		print_app(true);
		got = json_number("mean-ns");
		check(got == 15555555, "the mean of %llu packets is exact",
		      (unsigned long long)counts[i]);
		if (got != 15555555)
			printf("# it is %llu\n", (unsigned long long)got);
	}

	/* When the buckets no longer tell: half a bucket off at most. */
	queue_begin(&q, 65536);
	q.hist[47] = 1ULL << 52;
	q.delay.max_ns = 16000000;
	q.delay.sum_ns = (1ULL << 52) * 15800000;
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	got = json_number("mean-ns");
	check(got >= bucket_begin(65536, 47) && got <= bucket_begin(65536, 48),
	      "the mean of 2^52 packets lies in their bucket");

	queue_begin(&q, 8192);
	queue_packet(&q, 1);
	queue_packet(&q, 2);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_C, &q);
	print_app(true);
	check(json_number("mean-ns") == 2, "the mean is rounded");
}

static void test_delay_units(void)
{
	static const struct {
		__u64 ns;
		const char *text;
	} cases[] = {
		{ 1, "1ns" }, { 999, "999ns" }, { 1000, "1us" },
		{ 1234, "1.23us" }, { 999499, "999us" }, { 999500, "1ms" },
		{ 15250000, "15.2ms" }, { 999999999, "1s" },
		{ 4294967296, "4.29s" }, { 12345600000000, "12346s" },
		{ UINT64_MAX, "18446744074s" },
	};
	char want[TEXT_SIZE];
	struct queue q;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		queue_begin(&q, 8192);
		queue_packet(&q, 0);
		q.delay.max_ns = cases[i].ns;
		app_begin();
		app_queue(TCA_DUALPI2_STATS_C, &q);
		print_app(false);
		sprintf(want, " max %s\n", cases[i].text);
		check_text("a delay is printed in the unit that suits it",
			   piece(" max ", "\377"), want);
	}
}

static void test_overload(void)
{
	static const struct {
		const char *name;
		struct tc_dualpi2_overload o;
		const char *text;
		const char *json;
	} cases[] = {
		{ "no overload", { .reports = 0 }, "",
		  "null,\"overload-end\":null,\"overload-start-ns\":0,\"overload-duration-ns\":0,\"overload-reports\":0" },
		{ "a present overload has no end",
		  { .start_ns = 1000000, .duration_ns = 9999999, .now = 1 },
		  "overload_start 1970-01-01T00:00:00.001Z overload_duration 0.010s overload_reports 0\n",
		  "\"1970-01-01T00:00:00.001Z\",\"overload-end\":null,\"overload-start-ns\":1000000,\"overload-duration-ns\":9999999,\"overload-reports\":0" },
		{ "an overload at 2^32 s",
		  { .start_ns = 4294967295999999999, .duration_ns = 1 },
		  "overload_start 2106-02-07T06:28:15.999Z overload_end 2106-02-07T06:28:16.000Z overload_duration 0.000s overload_reports 0\n",
		  "\"2106-02-07T06:28:15.999Z\",\"overload-end\":\"2106-02-07T06:28:16.000Z\",\"overload-start-ns\":4294967295999999999,\"overload-duration-ns\":1,\"overload-reports\":0" },
		{ "an overload at 2^64 ns",
		  { .start_ns = UINT64_MAX, .reports = UINT64_MAX, .now = 1 },
		  "overload_start 2554-07-21T23:34:33.709Z overload_duration 0.000s overload_reports 18446744073709551615\n",
		  "\"2554-07-21T23:34:33.709Z\",\"overload-end\":null,\"overload-start-ns\":18446744073709551615,\"overload-duration-ns\":0,\"overload-reports\":18446744073709551615" },
	};
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		app_begin();
		app_add(TCA_DUALPI2_STATS_OVERLOAD, &cases[i].o,
			sizeof(cases[i].o));
		print_app(false);
		sprintf(name, "%s: text", cases[i].name);
		check_text(name, piece("overload_start", "\377"), cases[i].text);
		print_app(true);
		sprintf(name, "%s: JSON", cases[i].name);
		check_text(name, piece("\"overload-start\":", "\377") +
			   strlen("\"overload-start\":"), cases[i].json);
	}
}

static void test_link(void)
{
	static const struct {
		const char *name;
		struct tc_dualpi2_link link;
		const char *text;
		const char *json;
	} cases[] = {
		{ "a link that was not seen yet",
		  { .ramp_min_ns = 800000, .ramp_max_ns = 1200000,
		    .limit_pkts = 10000, .target_ns = 15000000 },
		  "drain_rate not seen yet throttled 0 burst 0ns ramp_min 800us ramp_max 1.2ms limit_pkts 10000 effective_target 15ms\n"
		  "nqb_arrived 0 nqb_dropped 0 nqb_limit 10ms\n",
		  ",\"drain-rate\":null,\"throttled\":0,\"burst-ns\":0,\"ramp-min-ns\":800000,\"ramp-max-ns\":1200000,\"limit-pkts\":10000,\"effective-target-ns\":15000000,\"nqb-arrived\":0,\"nqb-dropped\":0,\"nqb-limit-bytes\":null" },
		{ "a link with a shaper and bursts",
		  { .drain_rate = 5000000, .throttled = 1ULL << 40,
		    .nqb_arrived = UINT64_MAX, .nqb_dropped = 1ULL << 33,
		    .burst_ns = 4000000, .ramp_min_ns = 4800000,
		    .ramp_max_ns = UINT32_MAX, .limit_pkts = UINT32_MAX,
		    .nqb_limit_bytes = UINT32_MAX - 1, .target_ns = UINT32_MAX },
		  "drain_rate 40Mbit throttled 1099511627776 burst 4ms ramp_min 4.8ms ramp_max 4.29s limit_pkts 4294967295 effective_target 4.29s\n"
		  "nqb_arrived 18446744073709551615 nqb_dropped 8589934592 nqb_limit_bytes 4294967294\n",
		  ",\"drain-rate\":5000000,\"throttled\":1099511627776,\"burst-ns\":4000000,\"ramp-min-ns\":4800000,\"ramp-max-ns\":4294967295,\"limit-pkts\":4294967295,\"effective-target-ns\":4294967295,\"nqb-arrived\":18446744073709551615,\"nqb-dropped\":8589934592,\"nqb-limit-bytes\":4294967294" },
	};
	static const struct {
		__u64 rate;
		const char *text;
	} rates[] = {
		{ 1, "8bit" }, { 124, "992bit" }, { 125, "1Kbit" },
		{ 4999987, "40Mbit" }, { 4998700, "39.99Mbit" },
		{ 125000000, "1Gbit" }, { 124999999, "1Gbit" },
		{ 1250000000000, "10Tbit" }, { UINT64_MAX, "147573953Tbit" },
	};
	char name[TEXT_SIZE], want[TEXT_SIZE];
	struct tc_dualpi2_link link = {};
	unsigned int i, len;
	struct queue l;

	check(sizeof(link) == 56, "the statistics of the link have 56 bytes");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		app_begin();
		app_add(TCA_DUALPI2_STATS_LINK, &cases[i].link,
			sizeof(cases[i].link));
		print_app(false);
		sprintf(name, "%s: text", cases[i].name);
		check_text(name, piece("drain_rate", "\377"), cases[i].text);
		print_app(true);
		sprintf(name, "%s: JSON", cases[i].name);
		check_text(name, piece(",\"drain-rate\"", "\377"),
			   cases[i].json);
	}

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		link.drain_rate = rates[i].rate;
		app_begin();
		app_add(TCA_DUALPI2_STATS_LINK, &link, sizeof(link));
		print_app(false);
		sprintf(want, "drain_rate %s ", rates[i].text);
		check_text("a drain rate is printed in the unit that suits it",
			   piece("drain_rate", "throttled"), want);
	}

	/* Cut after the drain rate, and none at all. */
	link.drain_rate = 5000000;
	link.limit_pkts = 7;
	app_begin();
	app_add(TCA_DUALPI2_STATS_LINK, &link, 8);
	print_app(false);
	check_text("what shorter statistics of the link lack is zero",
		   piece("drain_rate", "\377"),
		   "drain_rate 40Mbit throttled 0 burst 0ns ramp_min 0ns ramp_max 0ns limit_pkts 0\n"
		   "nqb_arrived 0 nqb_dropped 0 nqb_limit_bytes 0\n");
	for (len = 0; len < 2; len++) {
		app_begin();
		print_app(len);
		check(!strstr(out, "drain") && !strstr(out, "nqb"),
		      "without statistics of the link none are printed: %s",
		      len ? "JSON" : "text");
	}

	queue_begin(&l, 8192);
	app_begin();
	app_queue(TCA_DUALPI2_STATS_L, &l);
	app_add(TCA_DUALPI2_STATS_LINK, &link, sizeof(link));
	print_app(false);
	check(strncmp(out, "prob ", 5) == 0 && strstr(out, "Classic:"),
	      "one queue and a link are no class");
}

static void test_dates(void)
{
	struct tc_dualpi2_overload o = { .now = 1 };
	char want[TEXT_SIZE];
	unsigned int day, bad = 0;
	time_t sec;

	/* Up to 2^64 ns, or as far as the library goes. */
	for (day = 0; day < 213503; day++) {
		if (sizeof(sec) == sizeof(__s32) && day > 24855 - 1)
			break;
		sec = (time_t)day * 86400 + day % 86400;
		o.start_ns = sec * 1000000000ULL + 999999999;
		app_begin();
		app_add(TCA_DUALPI2_STATS_OVERLOAD, &o, sizeof(o));
		print_app(false);
		strftime(want, sizeof(want),
			 "overload_start %Y-%m-%dT%H:%M:%S.999Z ", gmtime(&sec));
		bad += !strstr(out, want);
	}
	check(!bad && day > 24000, "every day has its date");
}

static void test_odd_queues(void)
{
	const struct tc_dualpi2_overload overload = { .start_ns = 5000000 };
	static const char junk[40] = "\377\377\377\377\377\377\377\377";
	char full[TEXT_SIZE], longer[sizeof(struct queue)] = {};
	unsigned int len, head, bad = 0;
	__u32 *size;	/* in the extension, which is aligned to 4 bytes only */
	struct rtattr *nest;
	struct queue c, l;

	set_queues(&c, &l);
	app_begin();
	app_qdisc(&c, &l, &overload);
	print_app(false);
	memcpy(full, out, out_len + 1);

	/* Cut anywhere, and each byte spoilt: the sanitizer looks on. */
	for (len = 0; len <= RTA_PAYLOAD(app); len++) {
		struct rtattr *copy = malloc(RTA_LENGTH(len));

		memcpy(copy, app, RTA_LENGTH(len));
		copy->rta_len = RTA_LENGTH(len);
		bad += print(false, true, copy) || print(true, true, copy);
		free(copy);
	}
	for (len = RTA_LENGTH(TC_DUALPI2_EXT_XSTATS_OFFSET); len < app->rta_len;
	     len++) {
		char *byte = (char *)app + len, was = *byte;

		*byte ^= 1 << len % 8;
		bad += print(false, true, app) || print(true, true, app);
		*byte = was;
	}
	check(!bad, "statistics that are cut or spoilt are printed");

	/* Unknown ones, between and within. */
	app_begin();
	app_add(0, junk, 7);
	app_add(TCA_DUALPI2_STATS_MAX + 1, junk, 9);
	app_queue(TCA_DUALPI2_STATS_C, &l);
	nest = (void *)&msg + msg.n.nlmsg_len;
	app_queue(TCA_DUALPI2_STATS_C, &c);
	app_add(TCA_DUALPI2_QUEUE_MAX + 1, junk, 12);
	app_add(16383, junk, 12);
	addattr_nest_end(&msg.n, nest);
	app_queue(TCA_DUALPI2_STATS_L, &l);
	app_add(0x3fff, junk, sizeof(junk));
	app_add(TCA_DUALPI2_STATS_OVERLOAD, &overload, sizeof(overload));
	print_app(false);
	check_text("unknown attributes are skipped, of two of a type the last counts",
		   out, full);

	/* Structs of a kernel that knows more, without the flag of a nest. */
	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	memset(longer, 0xee, sizeof(longer));
	memcpy(longer, &c.counters, sizeof(c.counters));
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, longer, sizeof(c.counters) + 40);
	memset(longer, 0xee, sizeof(longer));
	memcpy(longer, &c.delay, sizeof(c.delay));
	app_add(TCA_DUALPI2_QUEUE_DELAY, longer, sizeof(c.delay) + 8);
	/* More buckets than it says there are, and half a one. */
	memset(longer, 0xee, sizeof(longer));
	memcpy(longer, c.hist, sizeof(c.hist));
	app_add(TCA_DUALPI2_QUEUE_HIST, longer, sizeof(c.hist) + 20);
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("what a longer struct has in addition is left", out,
		   CLASSIC_TEXT NEW_CLASSIC);

	/* Those of one that knows less. */
	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_COUNTERS, &c.counters, 40);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, 32);
	app_add(TCA_DUALPI2_QUEUE_HIST, c.hist, 0);
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("what a shorter struct lacks is zero", out, CLASSIC_TEXT
		   " arrived 810 (205 bytes) not_ect 201 ect1 202 ect0 203 ce 204\n"
		   " presented 0 (0 bytes) forwarded 0 (0 bytes)\n"
		   " delay of no packet yet\n");

	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, 24);
	app_add(TCA_DUALPI2_QUEUE_HIST, &c.hist, sizeof(c.hist));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("delays without a unit are not printed", out, CLASSIC_TEXT);

	app_begin();
	nest = addattr_nest(&msg.n, MSG_SIZE, TCA_DUALPI2_STATS_C);
	app_add(TCA_DUALPI2_QUEUE_DELAY, &c.delay, sizeof(c.delay));
	addattr_nest_end(&msg.n, nest);
	print_app(false);
	check_text("delays without a histogram, as of a deletion, are not printed",
		   out, CLASSIC_TEXT);

	/* A struct that is longer than ours: the attributes follow that. */
	app_begin();
	size = RTA_DATA(app) + TC_DUALPI2_EXT_XSTATS_OFFSET +
	       offsetof(struct tc_dualpi2_ext_xstats, size);
	*size += 24;
	msg.n.nlmsg_len += 24;
	app_queue(TCA_DUALPI2_STATS_C, &c);
	print_app(false);
	check_text("attributes are found behind a longer struct", out,
		   CLASSIC_TEXT NEW_CLASSIC);

	/* No kernel sends such a size; nothing is read at an odd address. */
	for (head = 1; head < 4; head++) {
		app_begin();
		size = RTA_DATA(app) + TC_DUALPI2_EXT_XSTATS_OFFSET +
		       offsetof(struct tc_dualpi2_ext_xstats, size);
		*size += head;
		app_queue(TCA_DUALPI2_STATS_C, &c);
		print_app(false);
		bad += strncmp(out, "prob ", 5) || strstr(out, "arrived");
	}
	check(!bad, "attributes at an odd address are not read");
}

/* ---- what a kernel has sent ---- */

static const struct rtattr *find_attr(const struct rtattr *rta, int len,
				      unsigned int type)
{
	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len))
		if ((rta->rta_type & NLA_TYPE_MASK) == type)
			return rta;
	return NULL;
}

#define RECORDED_OPTIONS \
	"limit 250p memlimit 757000B target 15ms tupdate 16ms alpha 0.160156 beta 3.199219 step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect split_gso ramp 400us recur hist_c 64us hist_l 8us overload_report 1s bandwidth 10Mbit overhead 22 mpu 64 noatm ingress nqb 45,46 burst_max 8ms "

#define RECORDED_JSON \
	"\"overload-report\":1000000,\"bandwidth\":1250000,\"overhead\":22,\"mpu\":64,\"framing\":\"noatm\",\"ingress\":true,\"nqb\":[45,46],\"burst-max\":8000,\"l4s\":true"

#define RECORDED_LINK \
	"overload_start 2026-11-22T01:23:01.780Z overload_end 2026-11-22T01:23:04.635Z overload_duration 2.855s overload_reports 2\n" \
	"drain_rate 10Mbit throttled 9377 burst 1.74ms ramp_min 1.74ms ramp_max 2.17ms limit_pkts 250\n" \
	"nqb_arrived 3375 nqb_dropped 202 nqb_limit_bytes 12500\n"

/* A qdisc with shaper, link layer, NQB and bursts, and its classes. */
static void test_recording(const char *path)
{
	static union {
		struct nlmsghdr n;
		char bytes[1 << 16];
	} recorded;
	unsigned int qdiscs = 0, classes = 0;
	struct nlmsghdr *n = &recorded.n;
	FILE *file;
	int len;

	if (!path) {
		skip("what a kernel has sent is shown", "no file was named");
		return;
	}
	file = fopen(path, "r");
	if (!file) {
		check(false, "what a kernel has sent is shown");
		printf("# cannot read %s\n", path);
		return;
	}
	len = fread(&recorded, 1, sizeof(recorded), file);
	fclose(file);
	for (; NLMSG_OK(n, (unsigned int)len); n = NLMSG_NEXT(n, len)) {
		const struct rtattr *first = TCA_RTA(NLMSG_DATA(n)), *found;
		int size = NLMSG_PAYLOAD(n, sizeof(struct tcmsg));

		if (n->nlmsg_type == RTM_NEWQDISC) {
			qdiscs++;
			found = find_attr(first, size, TCA_OPTIONS);
			print(false, false, found);
			check_text("recorded options are shown as text", out,
				   RECORDED_OPTIONS);
			check(!parse(out), "recorded options are taken again");
			print(false, false, options());
			check_text("recorded options are the same again", out,
				   RECORDED_OPTIONS);
			print(true, false, found);
			check_text("recorded options are shown as JSON",
				   piece("\"overload-report", "\377"),
				   RECORDED_JSON);
		}
		found = find_attr(first, size, TCA_STATS2);
		found = find_attr(RTA_DATA(found), RTA_PAYLOAD(found),
				  TCA_STATS_APP);
		print(false, true, found);
		if (n->nlmsg_type == RTM_NEWQDISC)
			check_text("recorded statistics are shown",
				   piece("overload_start", "\377"),
				   RECORDED_LINK);
		else
			classes += !strstr(out, "drain_rate");
	}
	check(qdiscs == 1 && classes == 2,
	      "the recording has a qdisc, and classes without the link");
}

/* ---- front ends and modules of both ages ---- */

/* Whether all words of old are in text too, in this order. */
static bool is_within(const char *old, const char *text)
{
	static const char blanks[] = "\n ,{}";
	size_t len, want;

	for (;;) {
		old += strspn(old, blanks);
		want = strcspn(old, blanks);
		if (!want)
			return true;
		for (;; text += len) {
			text += strspn(text, blanks);
			len = strcspn(text, blanks);
			if (!len)
				return false;
			if (len == want && !memcmp(old, text, len))
				break;
		}
		text += len;
		old += want;
	}
}

static void test_ages(void)
{
	static const char *const lines[] = {
		/* What the older module shows, and what the newer one does. */
		"limit 5 target 15ms step_thresh 1ms ramp 400us recur",
		"limit 5 target 15ms step_thresh 1ms ramp 400us recur p_cmax 30 hist_c 64us hist_l 8us overload_report 1s bandwidth 40mbit docsis ingress nqb 45 burst_max 5ms",
	};
	const struct tc_dualpi2_overload overload = { .start_ns = 5000000 };
	static char old[2][2][TEXT_SIZE], new[2][2][TEXT_SIZE];
	struct queue c, l;
	int module, as;

	check(dualpi2_old_qdisc_util.id, "the older front end is there");
	if (!dualpi2_old_qdisc_util.id)
		return;

	for (module = 0; module < 2; module++)
		for (as = 0; as < 2; as++) {
			parse(lines[module]);
			print(as, false, options());
			strcpy(new[module][as], out);
			front_end = &dualpi2_old_qdisc_util;
			print(as, false, options());
			strcpy(old[module][as], out);
			front_end = &dualpi2_qdisc_util;
		}
	/* An attribute with a number beyond all that it knows. */
	parse("limit 5 bypass");
	front_end = &dualpi2_old_qdisc_util;
	print(false, false, options());
	front_end = &dualpi2_qdisc_util;
	check_text("the older front end does not see bypass", out, "limit 5p ");

	for (as = 0; as < 2; as++) {
		const char *how = as ? "JSON" : "text";

		check(*old[0][as] && !strcmp(new[0][as], old[0][as]),
		      "options of the older module look the same in either: %s",
		      how);
		check(!strcmp(old[1][as], old[0][as]),
		      "the older front end shows all that it knows of the newer module's options: %s",
		      how);
		check(is_within(old[1][as], new[1][as]) &&
		      strstr(new[1][as], as ? "overload-report" :
						"overload_report") &&
		      strstr(new[1][as], as ? "\"nqb\":[45]" :
					      "overhead 18 mpu 64 noatm"),
		      "the newer front end shows that and more: %s", how);
	}

	set_queues(&c, &l);
	for (module = 0; module < 2; module++)
		for (as = 0; as < 2; as++) {
			app_begin();
			if (module)
				app_qdisc(&c, &l, &overload);
			print_app(as);
			strcpy(new[module][as], out);
			front_end = &dualpi2_old_qdisc_util;
			print_app(as);
			strcpy(old[module][as], out);
			front_end = &dualpi2_qdisc_util;
		}
	for (as = 0; as < 2; as++) {
		const char *how = as ? "JSON" : "text";

		check(strstr(old[0][as], "unparsed") &&
		      !strcmp(new[0][as], old[0][as]),
		      "statistics of the older module look the same in either: %s",
		      how);
		check(!strcmp(old[1][as], old[0][as]),
		      "the older front end shows all that it knows of the newer module's statistics: %s",
		      how);
		check(is_within(old[1][as], new[1][as]) &&
		      strstr(new[1][as], "p99") &&
		      strstr(new[1][as], "presented"),
		      "the newer front end shows those and more: %s", how);
	}
}

int main(int argc, char **argv)
{
	error_file = fdopen(memfd_create("stderr", 0), "r+");
	if (!error_file)
		return 1;

	printf("KTAP version 1\n");
	check(strcmp(dualpi2_qdisc_util.id, "dualpi2") == 0,
	      "the plugin is called dualpi2");
	test_options_accepted();
	test_options_refused();
	test_blanks_refused();
	test_full_message_refused();
	test_help();
	check_file("the man page has every option", argc > 1 ? argv[1] : NULL);
	check_file("the completion has every option",
		   argc > 2 ? argv[2] : NULL);
	test_options_printed();
	test_odd_attributes();
	test_round_trip();
	test_round_trip_of_the_link();
	test_random_commands();
	test_xstats_printed();
	test_xstats_of_other_sizes();
	test_credit();
	test_queues_printed();
	test_empty_queue();
	test_class();
	test_percentiles();
	test_beyond();
	test_mean();
	test_delay_units();
	test_overload();
	test_link();
	test_dates();
	test_odd_queues();
	test_recording(argc > 3 ? argv[3] : NULL);
	test_ages();

	printf("1..%u\n", passed + failed + skipped);
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       passed, failed, skipped);
	return failed ? 1 : 0;
}
