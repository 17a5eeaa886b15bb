// SPDX-License-Identifier: GPL-2.0-only
/*
 * Self-check of the tc plugins of csaqm, vdq_csaqm and ppv: arguments go in, netlink
 * bytes come out, and the other way round.  What tc exports is replaced by the stubs
 * of selftests/tc/test_q_dualpi2.c; the last tests run the tc of this machine.
 *
 * Numbers of attributes are written out here: they are the ABI, and this is the
 * place that notices when one moves.  Limits are those of the kernel's headers.
 *
 * usage: test_tc MAN-PAGE-OF-CSAQM MAN-PAGE-OF-PPV DIRECTORY-OF-PLUGINS
 */
#define main dualpi2_unused_main
#include "../../selftests/tc/test_q_dualpi2.c"
#undef main

#include <sys/wait.h>

#include "csaqm_uapi.h"
#include "csaqm.h"
#include "packet_value.h"

#include "options.h"	/* the names of the plugins */

#define EXTRA_MSG_SIZE	32768

/* The place of the message that tc fills; one of ppv with all points has 8.5 kB. */
static union {
	struct nlmsghdr n;
	char bytes[EXTRA_MSG_SIZE];
} request;

static struct rtattr *request_options(void)
{
	return NLMSG_DATA(&request.n);
}

static void request_begin(unsigned int flags)
{
	memset(&request, 0, sizeof(request));
	request.n.nlmsg_len = NLMSG_LENGTH(0);
	request.n.nlmsg_flags = NLM_F_REQUEST | flags;
}

/* Where sanitizers write: capture_errors() puts a file in its place. */
static int own_stderr;

static int call_parse(struct qdisc_util *qu, int argc, char **argv)
{
	int ret;

	capture_errors();
	ret = qu->parse_qopt(qu, argc, argv, &request.n, "eth0");
	read_errors();
	dup2(own_stderr, STDERR_FILENO);
	return ret;
}

/* Parses line, split at blanks; '' stands for an empty argument. */
static int extra_parse(struct qdisc_util *qu, const char *line, unsigned int flags)
{
	char *copy = strdup(line), *argv[2 * ARGS_MAX], *word, *save;
	int argc = 0, ret;

	for (word = strtok_r(copy, " ", &save);
	     word && argc < (int)ARRAY_SIZE(argv);
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "''") ? word : word + 2;

	front_end = qu;
	request_begin(flags);
	ret = call_parse(qu, argc, argv);
	free(copy);
	return ret;
}

static int change(struct qdisc_util *qu, const char *line)
{
	return extra_parse(qu, line, 0);
}

static char *describe_points(char *to, const struct rtattr *rta)
{
	unsigned int i, len = RTA_PAYLOAD(rta) / sizeof(struct tc_ppv_point);
	struct tc_ppv_point point;

	for (i = 0; i < len; i++) {
		memcpy(&point, RTA_DATA(rta) + i * sizeof(point), sizeof(point));
		to += sprintf(to, "%s%llu:%u%s", i ? "," : "",
			      (unsigned long long)point.rate, point.value,
			      point.pad ? ":padded" : "");
	}
	return to;
}

/* As describe_attrs(), and points as rate:coded. */
static char *describe(char *to, struct rtattr *rta, int len, unsigned int in)
{
	const char *blank = "";

	for (; RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		unsigned int type = rta->rta_type & NLA_TYPE_MASK;
		unsigned long long val = 0;

		to += sprintf(to, "%s", blank);
		blank = " ";
		if (rta->rta_type & NLA_F_NESTED) {
			to += sprintf(to, "%u{", type);
			to = describe(to, RTA_DATA(rta), RTA_PAYLOAD(rta), type);
			to += sprintf(to, "}");
		} else if (in == 4 && type == 2) {
			to += sprintf(to, "2:");
			to = describe_points(to, rta);
		} else {
			if (RTA_PAYLOAD(rta) <= sizeof(val))
				memcpy(&val, RTA_DATA(rta), RTA_PAYLOAD(rta));
			to += sprintf(to, "%u:%u:%llu", type, (unsigned int)RTA_PAYLOAD(rta), val);
		}
	}
	*to = 0;
	return to;
}

static const char *requested(void)
{
	static char buf[TEXT_SIZE];

	describe(buf, request_options(), NLMSG_PAYLOAD(&request.n, 0), 0);
	return buf;
}

#include "tc_options_test.c"
#include "tc_show_test.c"

/* ---- round trips ---- */

static bool extra_round_trip(struct qdisc_util *qu)
{
	static char before[EXTRA_MSG_SIZE];
	char text[TEXT_SIZE];
	int len = request.n.nlmsg_len;

	memcpy(before, &request, len);
	front_end = qu;
	print(false, false, request_options());
	memcpy(text, out, out_len + 1);
	if (!change(qu, text) && (int)request.n.nlmsg_len == len &&
	    !memcmp(request_options(), NLMSG_DATA((struct nlmsghdr *)before),
		    NLMSG_PAYLOAD(&request.n, 0)))
		return true;
	comment("printed", text);
	comment("parsed", *errors ? errors : requested());
	return false;
}

/* mantissa / 100 * 10^exponent */
static bool is_shown_again(unsigned int mantissa, unsigned int exponent)
{
	unsigned int digits = mantissa % 10 ? 2 : mantissa % 100 ? 1 : 0;
	char line[64], want[64];

	sprintf(line, "tvf 7 1mbit:%u.%02ue%u", mantissa / 100, mantissa % 100, exponent);
	if (exponent < 5)
		sprintf(want, "tvf 7 1Mbit:%.*f ",
			digits > exponent ? digits - exponent : 0,
			strtod(line + strlen("tvf 7 1mbit:"), NULL));
	else
		sprintf(want, "tvf 7 1Mbit:%.*fe%u ", digits, mantissa / 100.0, exponent);
	if (change(PPV, line) || print(false, false, request_options()))
		return false;
	if (!strcmp(out, want))
		return true;
	comment(want, out);
	return false;
}

static void test_extra_round_trip(void)
{
	struct tc_ppv_point point = { .rate = 1 };
	unsigned int i, coded, bad;
	char line[64], want[64];
	__u64 rate;

	/* As text: what is shown of a code leads to it, and is not long. */
	for (bad = 0, coded = 1; coded <= 65535; coded++) {
		point.value = coded;
		change(PPV, "tvf 1 8bit:2");
		/* The only point ends the message. */
		memcpy((char *)&request + request.n.nlmsg_len - sizeof(point), &point, sizeof(point));
		bad += !extra_round_trip(PPV);
		front_end = PPV;
		print(false, false, request_options());
		bad += out_len > strlen("tvf 1 8bit:1.0005e10 ");
	}
	check(!bad, "every packet value printed is parsed to the same");

	/* Three digits are told apart: what a user says is shown again. */
	for (bad = 0, i = 0; i < 10; i++) {
		unsigned int mantissa;

		for (mantissa = 101; mantissa < 1000; mantissa++)
			bad += !is_shown_again(mantissa, i);
	}
	check(!bad, "a packet value of three digits is printed as it was given");

	/* Exactly the tenths of the code, of which no logarithm falls short. */
	for (bad = 0, i = 2; i <= 10; i += 2) {
		sprintf(line, "tvf 1 8bit:1e%u", i);
		sprintf(want, "2{4{1:4:1 2:1:%u}}", 65535 * i / 10);
		bad += change(PPV, line) || strcmp(requested(), want);
	}
	check(!bad, "powers of a hundred have their codes");

	srandom(9332);
	for (bad = 0, i = 0; i < 50000; i++) {
		rate = (((__u64)random() << 31) | random()) >> random() % 36;
		rate = 1000 + rate % ((__u64)DUALPI2_BANDWIDTH_MAX - 999);
		set_one(TCA_CSAQM_BANDWIDTH, &rate, sizeof(rate));
		bad += !extra_round_trip(CSAQM);
	}
	check(!bad, "every rate printed is parsed to the same");

	for (bad = 0, i = 1; i <= 1000; i++) {
		set_one(TCA_CSAQM_VRATE, &i, sizeof(i));
		bad += !extra_round_trip(VDQ);
		set_one(TCA_CSAQM_VRATE_L, &i, sizeof(i));
		bad += !extra_round_trip(VDQ);
	}
	check(!bad, "every fraction printed is parsed to the same");

	for (bad = 0, i = 1; i <= 4294967; i += i < 20000 ? 1 : 997) {
		set_one(TCA_CSAQM_TARGET_L, &i, sizeof(i));
		bad += !extra_round_trip(VDQ);
	}
	check(!bad, "every time printed is parsed to the same");
}

/* Any words in any order: no crash, and what is taken survives the round trip. */
static void test_extra_random_commands(void)
{
	static const char *const some[] = {
		"bandwidth", "limit", "target", "tupdate", "buffer", "carry",
		"ecn", "noecn", "target_l", "buffer_l", "vrate", "vrate_l",
		"default", "window", "tvf 1", "tvf 2", "tvf 16", "tvf",
	};
	static const char *const values[] = {
		"0", "1", "7", "16", "17", "0.5", "5p", "1ms", "4.2s", "mark",
		"ipv4_id", "40mbit", "1gbps", "100ms", "0x10", "0x1p3", ".",
		"-1", "nan", "''", "x", "help", "limit", "1e9", "1e400",
		"1mbit:1e8", "1mbit:1e8,2mbit:1e7", "1mbit:1e8,2mbit:1e9",
		":", ",", "8:2,", "1:1:1", "8:1.5,10gbit:1.2",
	};
	struct qdisc_util *const all[] = { CSAQM, VDQ, PPV };
	unsigned int i, j, bad = 0, good = 0;
	char line[TEXT_SIZE];

	srandom(9332);
	for (i = 0; i < 30000; i++) {
		struct qdisc_util *qu = all[i % 3];
		unsigned int n = random() % 5;
		char *to = line;

		*line = 0;
		for (j = 0; j < n; j++) {
			unsigned int k = random() % (qu == PPV ? 7 : qu == VDQ ? 12 : 8);

			if (qu == PPV)
				k = k ? k + 11 : 5;
			to += sprintf(to, "%s ", some[k]);
			if (strcmp(some[k], "ecn") && strcmp(some[k], "noecn") && random() % 20)
				to += sprintf(to, "%s ", values[random() % ARRAY_SIZE(values)]);
		}
		if (change(qu, line)) {
			if (!*errors) {
				comment("refused without a word", line);
				bad++;
			}
			continue;
		}
		good++;
		if (!extra_round_trip(qu)) {
			comment("command", line);
			bad++;
		}
	}
	check(!bad && good > 5000, "random commands survive the round trip");
	printf("# %u of 30000 were accepted\n", good);
}

/* ---- in the tc of this machine ---- */

/* "help" and errors end tc before it sends a message to the kernel. */
static void test_in_tc(const char *directory)
{
	static const struct {
		const char *words;
		const char *said;
	} runs[] = {
		{ "csaqm help", "Usage: ... csaqm bandwidth RATE " },
		{ "vdq_csaqm help", "Usage: ... vdq_csaqm bandwidth RATE " },
		{ "ppv help", "Usage: ... ppv [ default NUMBER ]" },
		{ "csaqm limit 5", "csaqm: bandwidth: it is missing; expected 8Kbit to 1Tbit" },
		{ "vdq_csaqm vrate 2", "vdq_csaqm: vrate: \"2\" is not in range; expected 0.001 to 1" },
		{ "ppv tvf 1 1mbit:1e11", "ppv: tvf: \"1e11\" is not in range; expected 1.0004 to 1e10" },
	};
	char command[TEXT_SIZE], said[TEXT_SIZE];
	unsigned int i;
	FILE *pipe;
	int code;

	fflush(stdout);
	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		snprintf(command, sizeof(command),
			 "TC_LIB_DIR='%s' tc qdisc add dev lo root %s 2>&1",
			 directory, runs[i].words);
		pipe = popen(command, "r");
		said[fread(said, 1, sizeof(said) - 1, pipe)] = 0;
		code = pclose(pipe);
		check(WIFEXITED(code) && WEXITSTATUS(code) &&
		      strncmp(said, runs[i].said, strlen(runs[i].said)) == 0,
		      "tc loads the plugin of \"%s\"", runs[i].words);
		if (strncmp(said, runs[i].said, strlen(runs[i].said)))
			comment("said", *said ? said : "nothing");
	}
}

int main(int argc, char **argv)
{
	own_stderr = dup(STDERR_FILENO);
	error_file = fdopen(memfd_create("stderr", 0), "r+");
	if (own_stderr < 0 || !error_file || argc != 4) {
		fprintf(stderr, "test_tc: the arguments are two man pages and a directory of plugins\n");
		return 1;
	}

	printf("KTAP version 1\n");
	check(!strcmp(CSAQM->id, "csaqm") && !strcmp(VDQ->id, "vdq_csaqm") &&
	      !strcmp(PPV->id, "ppv"), "the plugins have the qdiscs' names");
	test_extra_accepted();
	test_extra_refused();
	test_bandwidth_is_needed();
	test_limits_are_the_kernels();
	test_extra_blanks_refused();
	test_extra_full_message_refused();
	test_all_functions_fit();
	test_extra_help();
	test_man_of_csaqm(argv[1]);
	test_man_of_ppv(argv[2]);
	test_extra_printed();
	test_extra_odd_attributes();
	test_extra_odd_functions();
	test_extra_round_trip();
	test_extra_random_commands();
	test_csaqm_statistics();
	test_ppv_statistics();
	test_in_tc(argv[3]);

	printf("1..%u\n", passed + failed);
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:0 error:0\n", passed, failed);
	return failed ? 1 : 0;
}
