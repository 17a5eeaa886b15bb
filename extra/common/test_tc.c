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

#include "words.h"	/* the names of the plugins */

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
static int extra_parse(struct qdisc_util *qu, const char *line,
		       unsigned int flags)
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
		memcpy(&point, RTA_DATA(rta) + i * sizeof(point),
		       sizeof(point));
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
			to = describe(to, RTA_DATA(rta), RTA_PAYLOAD(rta),
				      type);
			to += sprintf(to, "}");
		} else if (in == 4 && type == 2) {
			to += sprintf(to, "2:");
			to = describe_points(to, rta);
		} else {
			if (RTA_PAYLOAD(rta) <= sizeof(val))
				memcpy(&val, RTA_DATA(rta), RTA_PAYLOAD(rta));
			to += sprintf(to, "%u:%u:%llu", type,
				      (unsigned int)RTA_PAYLOAD(rta), val);
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

/* ---- options to netlink ---- */

/* As many as a function may have. */
#define POINTS_MANY \
	"8:9e9,16:8e9,24:7e9,32:6e9,40:5e9,48:4e9,56:3e9,64:2e9," \
	"80:9e8,160:8e8,240:7e8,320:6e8,400:5e8,480:4e8,560:3e8,640:2e8," \
	"800:9e7,1600:8e7,2400:7e7,3200:6e7,4000:5e7,4800:4e7,5600:3e7,6400:2e7," \
	"8kbit:9e6,16kbit:8e6,24kbit:7e6,32kbit:6e6,40kbit:5e6,48kbit:4e6,56kbit:3e6,64kbit:2e6"

#define CSAQM	(&csaqm_qdisc_util)
#define VDQ	(&vdq_csaqm_qdisc_util)
#define PPV	(&ppv_qdisc_util)

static const struct {
	struct qdisc_util *qu;
	const char *line;
	const char *sent;
} sendings[] = {
	{ CSAQM, "", "2{}" },
	{ CSAQM, "bandwidth 100mbit", "2{2:8:12500000}" },
	{ CSAQM, "bandwidth 8000", "2{2:8:1000}" },
	{ CSAQM, "bandwidth 2.5Mbit", "2{2:8:312500}" },
	{ CSAQM, "bandwidth 1kbps", "2{2:8:1000}" },
	{ CSAQM, "bandwidth 8kibit", "2{2:8:1024}" },
	{ CSAQM, "bandwidth 8mibit", "2{2:8:1048576}" },
	{ CSAQM, "bandwidth 8gibit", "2{2:8:1073741824}" },
	{ CSAQM, "bandwidth .5tibit", "2{2:8:68719476736}" },
	{ CSAQM, "bandwidth 5000bps", "2{2:8:5000}" },
	{ CSAQM, "bandwidth 5mbps", "2{2:8:5000000}" },
	{ CSAQM, "bandwidth 5GBPS", "2{2:8:5000000000}" },
	{ CSAQM, "bandwidth .1tbps", "2{2:8:100000000000}" },
	{ CSAQM, "bandwidth 2kibps", "2{2:8:2048}" },
	{ CSAQM, "bandwidth 1mibps", "2{2:8:1048576}" },
	{ CSAQM, "bandwidth 1gibps", "2{2:8:1073741824}" },
	{ CSAQM, "bandwidth .0625tibps", "2{2:8:68719476736}" },
	{ CSAQM, "bandwidth 1tbit", "2{2:8:125000000000}" },
	{ CSAQM, "limit 1", "2{3:4:1}" },
	{ CSAQM, "limit 7p", "2{3:4:7}" },
	{ CSAQM, "limit 7pkt", "2{3:4:7}" },
	{ CSAQM, "limit 7pkts", "2{3:4:7}" },
	{ CSAQM, "limit 7packet", "2{3:4:7}" },
	{ CSAQM, "limit 1048576PACKETS", "2{3:4:1048576}" },
	{ CSAQM, "tupdate 100", "2{4:4:100}" },
	{ CSAQM, "tupdate 4.294967s", "2{4:4:4294967}" },
	{ CSAQM, "target 5ms", "2{5:4:5000}" },
	{ CSAQM, "target 1us", "2{5:4:1}" },
	{ CSAQM, "target 0.5usec", "2{5:4:1}" },
	{ CSAQM, "target 2usecs", "2{5:4:2}" },
	{ CSAQM, "target 2msec", "2{5:4:2000}" },
	{ CSAQM, "target 2msecs", "2{5:4:2000}" },
	{ CSAQM, "target 2sec", "2{5:4:2000000}" },
	{ CSAQM, "target 2secs", "2{5:4:2000000}" },
	{ CSAQM, "buffer 500ms", "2{6:4:500000}" },
	{ CSAQM, "carry mark", "2{7:1:0}" },
	{ CSAQM, "carry ipv4_id", "2{7:1:1}" },
	{ CSAQM, "ecn", "2{8:1:1}" },
	{ CSAQM, "noecn", "2{8:1:0}" },
	/* Whatever the order of the words. */
	{ CSAQM, "noecn carry ipv4_id buffer 4 target 3 tupdate 200 limit 2 bandwidth 1mbit",
	  "2{2:8:125000 3:4:2 5:4:3 4:4:200 6:4:4 7:1:1 8:1:0}" },
	{ VDQ, "bandwidth 40gbit", "2{2:8:5000000000}" },
	{ VDQ, "target 20ms target_l 1ms", "2{5:4:20000 9:4:1000}" },
	{ VDQ, "buffer 200ms buffer_l 50ms", "2{6:4:200000 10:4:50000}" },
	{ VDQ, "vrate 0.984", "2{11:4:984}" },
	{ VDQ, "vrate 1", "2{11:4:1000}" },
	{ VDQ, "vrate .001", "2{11:4:1}" },
	{ VDQ, "vrate 0.29", "2{11:4:290}" },
	{ VDQ, "vrate 0.9844", "2{11:4:984}" },
	{ VDQ, "vrate_l 0.9", "2{12:4:900}" },
	{ VDQ, "limit 5 tupdate 10ms carry mark ecn",
	  "2{3:4:5 4:4:10000 7:1:0 8:1:1}" },
	{ PPV, "", "2{}" },
	{ PPV, "default 16", "2{1:4:16}" },
	{ PPV, "window 100ms", "2{2:4:100000}" },
	{ PPV, "carry ipv4_id", "2{3:1:1}" },
	{ PPV, "tvf 1 10mbit:1e8", "2{4{1:4:1 2:1250000:52428}}" },
	{ PPV, "tvf 16 8:1e10,1tbit:100",
	  "2{4{1:4:16 2:1:65535,125000000000:13107}}" },
	{ PPV, "tvf 2 1kbps:10000000000,2kbps:10000,4kbps:2",
	  "2{4{1:4:2 2:1000:65535,2000:26214,4000:1972}}" },
	/* Rounded down, however little is missing. */
	{ PPV, "tvf 1 1mbit:99.9999", "2{4{1:4:1 2:125000:13106}}" },
	/* By number, whatever the order of the words. */
	{ PPV, "tvf 9 1mbit:1e6 carry mark tvf 3 1mbit:1e4,2mbit:1e2 default 3",
	  "2{1:4:3 3:1:0 4{1:4:3 2:125000:26214,250000:13107} 4{1:4:9 2:125000:39321}}" },
};

static const struct {
	struct qdisc_util *qu;
	const char *line;
	const char *errors;
} denied[] = {
	{ CSAQM, "bandwidth",
	  "bandwidth: the value is missing; expected 8Kbit to 1Tbit" },
	{ CSAQM, "bandwidth 7995bit",
	  "bandwidth: \"7995bit\" is not in range; expected 8Kbit to 1Tbit" },
	{ CSAQM, "bandwidth 1000000000004",
	  "bandwidth: \"1000000000004\" is not in range; expected 8Kbit to 1Tbit" },
	/* 2^64 bytes/s and a thousand: what a cast would make 1000. */
	{ CSAQM, "bandwidth 18446744073709552616bps",
	  "bandwidth: \"18446744073709552616bps\" is not in range; expected 8Kbit to 1Tbit" },
	{ CSAQM, "bandwidth 1e400",
	  "bandwidth: \"1e400\" is not in range; expected 8Kbit to 1Tbit" },
	{ CSAQM, "bandwidth 40mb",
	  "bandwidth: \"40mb\" is not a rate; expected 8Kbit to 1Tbit" },
	{ CSAQM, "bandwidth 1mbit bandwidth 2mbit",
	  "bandwidth: duplicate, \"2mbit\" is the second value; expected once" },
	{ CSAQM, "limit 5 limit", "limit: duplicate; expected once" },
	{ CSAQM, "limit 0",
	  "limit: \"0\" is not in range; expected 1p to 1048576p" },
	{ CSAQM, "limit 1048577",
	  "limit: \"1048577\" is not in range; expected 1p to 1048576p" },
	{ CSAQM, "limit 4294967297",
	  "limit: \"4294967297\" is not in range; expected 1p to 1048576p" },
	{ CSAQM, "limit 1.5",
	  "limit: \"1.5\" is not a number of packets; expected 1p to 1048576p" },
	{ CSAQM, "limit -1",
	  "limit: \"-1\" is not a number of packets; expected 1p to 1048576p" },
	{ CSAQM, "limit nan",
	  "limit: \"nan\" is not a number of packets; expected 1p to 1048576p" },
	{ CSAQM, "limit ''",
	  "limit: \"\" is not a number of packets; expected 1p to 1048576p" },
	{ CSAQM, "limit .",
	  "limit: \".\" is not a number of packets; expected 1p to 1048576p" },
	{ CSAQM, "target 0",
	  "target: \"0\" is not in range; expected 1us to 4.294967s" },
	{ CSAQM, "target 4.294968s",
	  "target: \"4.294968s\" is not in range; expected 1us to 4.294967s" },
	{ CSAQM, "target 4294967297us",
	  "target: \"4294967297us\" is not in range; expected 1us to 4.294967s" },
	{ CSAQM, "target 5p",
	  "target: \"5p\" is not a time; expected 1us to 4.294967s" },
	{ CSAQM, "tupdate 99us",
	  "tupdate: \"99us\" is not in range; expected 100us to 4.294967s" },
	{ CSAQM, "buffer 0s",
	  "buffer: \"0s\" is not in range; expected 1us to 4.294967s" },
	{ CSAQM, "carry", "carry: the value is missing; expected mark or ipv4_id" },
	{ CSAQM, "carry dscp",
	  "carry: \"dscp\" is no place for a value; expected mark or ipv4_id" },
	{ CSAQM, "carry mark carry mark",
	  "carry: duplicate, \"mark\" is the second value; expected once" },
	{ CSAQM, "ecn limit 5 noecn",
	  "noecn: there is ecn already; expected one of the two" },
	{ CSAQM, "noecn ecn",
	  "ecn: there is noecn already; expected one of the two" },
	{ CSAQM, "ecn ecn limit 5", "ecn: duplicate; expected once" },
	{ VDQ, "vrate 0",
	  "vrate: \"0\" is not in range; expected 0.001 to 1" },
	{ VDQ, "vrate 0.0004",
	  "vrate: \"0.0004\" is not in range; expected 0.001 to 1" },
	{ VDQ, "vrate 1.001",
	  "vrate: \"1.001\" is not in range; expected 0.001 to 1" },
	{ VDQ, "vrate 984",
	  "vrate: \"984\" is not in range; expected 0.001 to 1" },
	{ VDQ, "vrate_l 90%",
	  "vrate_l: \"90%\" is not a fraction; expected 0.001 to 1" },
	{ VDQ, "target_l 5s",
	  "target_l: \"5s\" is not in range; expected 1us to 4.294967s" },
	{ VDQ, "buffer_l 0",
	  "buffer_l: \"0\" is not in range; expected 1us to 4.294967s" },
	{ PPV, "default 0",
	  "default: \"0\" is not in range; expected 1 to 16" },
	{ PPV, "default 17",
	  "default: \"17\" is not in range; expected 1 to 16" },
	{ PPV, "default 1p",
	  "default: \"1p\" is not a number; expected 1 to 16" },
	{ PPV, "window 999us",
	  "window: \"999us\" is not in range; expected 1ms to 1s" },
	{ PPV, "window 1000001us",
	  "window: \"1000001us\" is not in range; expected 1ms to 1s" },
	{ PPV, "tvf", "tvf: the number is missing; expected 1 to 16" },
	{ PPV, "tvf 0 1mbit:1e8",
	  "tvf: \"0\" is not in range; expected 1 to 16" },
	{ PPV, "tvf 17 1mbit:1e8",
	  "tvf: \"17\" is not in range; expected 1 to 16" },
	{ PPV, "tvf gold 1mbit:1e8",
	  "tvf: \"gold\" is not a number; expected 1 to 16" },
	{ PPV, "tvf 5",
	  "tvf: the points of function 5 are missing; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5" },
	{ PPV, "tvf 5 1mbit",
	  "tvf: \"1mbit\" is not a point; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5" },
	{ PPV, "tvf 5 ''",
	  "tvf: \"\" is not a point; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5" },
	{ PPV, "tvf 5 1mbit:1e8,",
	  "tvf: \"\" is not a point; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5" },
	{ PPV, "tvf 5 ,1mbit:1e8",
	  "tvf: \"\" is not a point; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5" },
	{ PPV, "tvf 5 :1e8",
	  "tvf: \"\" is not a rate; expected 8bit to 1Tbit" },
	{ PPV, "tvf 5 fast:1e8",
	  "tvf: \"fast\" is not a rate; expected 8bit to 1Tbit" },
	{ PPV, "tvf 5 0:1e8",
	  "tvf: \"0\" is not in range; expected 8bit to 1Tbit" },
	{ PPV, "tvf 5 2tbit:1e8",
	  "tvf: \"2tbit\" is not in range; expected 8bit to 1Tbit" },
	{ PPV, "tvf 5 1mbit:",
	  "tvf: \"\" is not a packet value; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:much",
	  "tvf: \"much\" is not a packet value; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:1e8:7",
	  "tvf: \"1e8:7\" is not a packet value; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:-5",
	  "tvf: \"-5\" is not a packet value; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:0",
	  "tvf: \"0\" is not in range; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:0.5",
	  "tvf: \"0.5\" is not in range; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:1",
	  "tvf: \"1\" is not in range; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:10000000001",
	  "tvf: \"10000000001\" is not in range; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:1e400",
	  "tvf: \"1e400\" is not in range; expected 1.0004 to 1e10" },
	{ PPV, "tvf 5 1mbit:1e8,1mbit:1e7",
	  "tvf: the rate of point 2 is not above the one before; expected rates that go up" },
	{ PPV, "tvf 5 1mbit:1e8,2mbit:1e7,1500kbit:1e6",
	  "tvf: the rate of point 3 is not above the one before; expected rates that go up" },
	/* Both are 1 byte/s. */
	{ PPV, "tvf 5 8:1e8,9:1e7",
	  "tvf: the rate of point 2 is not above the one before; expected rates that go up" },
	{ PPV, "tvf 5 1mbit:1e8,2mbit:1e8",
	  "tvf: the value of point 2 is not below the one before by 0.04 %; expected values that go down" },
	{ PPV, "tvf 5 1mbit:1e7,2mbit:1e8",
	  "tvf: the value of point 2 is not below the one before by 0.04 %; expected values that go down" },
	{ PPV, "tvf 5 1mbit:1.0003e8,2mbit:1.0001e8",
	  "tvf: the value of point 2 is not below the one before by 0.04 %; expected values that go down" },
	{ PPV, "tvf 5 " POINTS_MANY ",72kbit:2",
	  "tvf: too many points; expected 32 at most" },
	{ PPV, "tvf 5 1mbit:1e8 tvf 6 1mbit:1e8 tvf 5 2mbit:1e8",
	  "tvf: function 5 is there twice; expected each once" },
	/* An error after good words must not be lost. */
	{ PPV, "default 3 tvf 1 1mbit:1e8 window x",
	  "window: \"x\" is not a time; expected 1ms to 1s" },
	{ PPV, "window 5ms tvf 1 1mbit:1e8 tvf 2 1mbit",
	  "tvf: \"1mbit\" is not a point; expected RATE:VALUE[,RATE:VALUE]..., as in 1mbit:1e8,1gbit:1e5" },
};

static void test_extra_accepted(void)
{
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sendings); i++) {
		sprintf(name, "%s \"%s\" is sent as %s", sendings[i].qu->id,
			sendings[i].line, sendings[i].sent);
		if (change(sendings[i].qu, sendings[i].line) || *errors) {
			check(false, "%s", name);
			comment("said", *errors ? errors : "nothing");
		} else {
			check_text(name, requested(), sendings[i].sent);
		}
	}
}

/* Nothing is left in the message, and the qdisc is named. */
static bool is_denied(struct qdisc_util *qu, int ret)
{
	size_t len = strlen(qu->id);

	return ret == -1 && request.n.nlmsg_len == NLMSG_LENGTH(0) &&
	       strncmp(errors, qu->id, len) == 0 &&
	       strncmp(errors + len, ": ", 2) == 0;
}

static void test_extra_refused(void)
{
	char name[TEXT_SIZE], want[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(denied); i++) {
		struct qdisc_util *qu = denied[i].qu;

		sprintf(name, "%s \"%s\" is refused", qu->id, denied[i].line);
		sprintf(want, "%s: %s\n", qu->id, denied[i].errors);
		if (is_denied(qu, change(qu, denied[i].line))) {
			check_text(name, errors, want);
		} else {
			check(false, "%s", name);
			comment("said", *errors ? errors : "nothing");
		}
	}
}

static void test_bandwidth_is_needed(void)
{
	static const unsigned int add = NLM_F_CREATE | NLM_F_EXCL;
	struct qdisc_util *const both[] = { CSAQM, VDQ };
	char want[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(both); i++) {
		struct qdisc_util *qu = both[i];

		sprintf(want,
			"%s: bandwidth: it is missing; expected 8Kbit to 1Tbit\n",
			qu->id);
		check(is_denied(qu, extra_parse(qu, "limit 5", add)) &&
		      !strcmp(errors, want), "add %s without bandwidth is refused",
		      qu->id);
		check(is_denied(qu, extra_parse(qu, "", add)) &&
		      !strcmp(errors, want), "add %s without options is refused",
		      qu->id);
		check(!extra_parse(qu, "limit 5 bandwidth 1mbit", add),
		      "add %s with bandwidth is taken", qu->id);
		check(!extra_parse(qu, "limit 5", NLM_F_CREATE | NLM_F_REPLACE),
		      "replace %s without bandwidth is left to the kernel",
		      qu->id);
	}
	check(!extra_parse(PPV, "", add), "add ppv needs no option");
}

/* One below the least, the least, the most, one beyond. */
static bool has_limits(struct qdisc_util *qu, const char *fmt, __u64 min,
		       __u64 max)
{
	const __u64 vals[] = { min - 1, min, max, max + 1 };
	bool good = true;
	unsigned int i;
	char line[256];

	for (i = 0; i < ARRAY_SIZE(vals); i++) {
		bool inside = i == 1 || i == 2;

		snprintf(line, sizeof(line), fmt, (unsigned long long)vals[i]);
		if (!change(qu, line) == inside)
			continue;
		good = false;
		printf("# %s %s: %s", qu->id, line,
		       *errors ? errors : "taken\n");
	}
	return good;
}

static void test_limits_are_the_kernels(void)
{
	struct qdisc_util *const both[] = { CSAQM, VDQ };
	static const char *const times[] = { "target", "buffer" };
	static const char *const times_l[] = { "target_l", "buffer_l" };
	bool good = true;
	unsigned int i, k;
	char fmt[32];

	for (i = 0; i < ARRAY_SIZE(both); i++) {
		good &= has_limits(both[i], "bandwidth %llubps",
				   DUALPI2_BANDWIDTH_MIN,
				   DUALPI2_BANDWIDTH_MAX);
		good &= has_limits(both[i], "limit %llu", CSAQM_LIMIT_PKTS_MIN,
				   CSAQM_LIMIT_PKTS_MAX);
		good &= has_limits(both[i], "tupdate %llu",
				   CSAQM_TUPDATE_US_MIN, CSAQM_TUPDATE_US_MAX);
		for (k = 0; k < ARRAY_SIZE(times); k++) {
			sprintf(fmt, "%s %%llu", times[k]);
			good &= has_limits(both[i], fmt, CSAQM_TIME_US_MIN,
					   CSAQM_TIME_US_MAX);
		}
	}
	for (k = 0; k < ARRAY_SIZE(times_l); k++) {
		sprintf(fmt, "%s %%llu", times_l[k]);
		good &= has_limits(VDQ, fmt, CSAQM_TIME_US_MIN,
				   CSAQM_TIME_US_MAX);
	}
	/* In 1/1000. */
	good &= has_limits(VDQ, "vrate %llue-3", CSAQM_SHARE_MIN,
			   CSAQM_SHARE_ONE);
	good &= has_limits(VDQ, "vrate_l %llue-3", CSAQM_SHARE_MIN,
			   CSAQM_SHARE_ONE);
	check(good, "csaqm and vdq_csaqm have the kernel's limits");

	good = has_limits(PPV, "default %llu", 1, PPV_TVFS);
	good &= has_limits(PPV, "window %llu", PPV_WINDOW_US_MIN,
			   PPV_WINDOW_US_MAX);
	good &= has_limits(PPV, "tvf %llu 1mbit:1e8", 1, PPV_TVFS);
	good &= has_limits(PPV, "tvf 1 %llubps:1e8", 1, PPV_RATE_MAX);
	check(good, "ppv has the kernel's limits");
	check(change(PPV, "tvf 1 " POINTS_MANY) == 0 && PPV_POINTS_MAX == 32,
	      "a function has as many points as the kernel allows");
}

static void test_extra_blanks_refused(void)
{
	static const char *const blanks[][3] = {
		{ "target", " 5", NULL }, { "target", "+5", NULL },
		{ "target", "5 ms", NULL }, { "carry", " mark", NULL },
	};
	static const char *const tvfs[][3] = {
		{ "tvf", "1", "1mbit: 1e8" }, { "tvf", "1", " 1mbit:1e8" },
		{ "tvf", " 1", "1mbit:1e8" }, { "tvf", "1", "1mbit:+1e8" },
		{ "tvf", "1", "1mbit:1e8, 2mbit:1e7" },
	};
	unsigned int i, bad = 0;
	char *argv[3];

	for (i = 0; i < ARRAY_SIZE(blanks); i++) {
		argv[0] = (char *)blanks[i][0];
		argv[1] = (char *)blanks[i][1];
		request_begin(0);
		bad += !call_parse(VDQ, 2, argv);
	}
	for (i = 0; i < ARRAY_SIZE(tvfs); i++) {
		memcpy(argv, tvfs[i], sizeof(argv));
		request_begin(0);
		bad += !call_parse(PPV, 3, argv);
	}
	check(!bad, "a value with a blank or sign is refused");

	argv[2] = strdup("1mbit:1e8,2mbit:1e7");
	request_begin(0);
	call_parse(PPV, 3, argv);
	check_text("arguments are left as they were", argv[2],
		   "1mbit:1e8,2mbit:1e7");
	free(argv[2]);
}

/* Nearly no room: all fits, or nothing is said to be good. */
static void test_extra_full_message_refused(void)
{
	static const struct {
		struct qdisc_util *qu;
		const char *words[6];
		unsigned int bytes;
	} full[] = {
		{ CSAQM, { "limit", "5", "ecn" }, 4 + 8 + 8 },
		{ VDQ, { "bandwidth", "1mbit", "vrate_l", "1" }, 4 + 12 + 8 },
		{ PPV, { "tvf", "1", "1mbit:1e8", "default", "2" },
		  4 + 8 + 4 + 8 + 20 },
	};
	unsigned int i, room, bad = 0;
	int argc, ret;

	for (i = 0; i < ARRAY_SIZE(full); i++)
		for (room = 4; room <= 52; room += 4) {
			char *argv[6];

			memcpy(argv, full[i].words, sizeof(argv));
			for (argc = 0; argv[argc]; argc++)
				;
			request_begin(0);
			request.n.nlmsg_len = 16384 - room;
			ret = call_parse(full[i].qu, argc, argv);
			bad += ret != (room < full[i].bytes ? -1 : 0);
		}
	check(!bad, "options that do not fit the message are refused");
}

static void test_all_functions_fit(void)
{
	char line[TEXT_SIZE], *to = line;
	unsigned int i;
	int ret;

	for (i = 1; i <= TC_PPV_TVFS; i++)
		to += sprintf(to, "tvf %u %s ", i, POINTS_MANY);
	ret = change(PPV, line);
	check(!ret && request.n.nlmsg_len > TC_PPV_TVFS * TC_PPV_POINTS *
	      sizeof(struct tc_ppv_point),
	      "all functions with all points fit the message");
}

/* ---- help and man pages ---- */

static const char *const common_words[] = {
	"bandwidth", "limit", "target", "tupdate", "buffer", "carry", "mark",
	"ipv4_id", "ecn", "noecn",
};

static const char *const vdq_words[] = {
	"target_l", "buffer_l", "vrate", "vrate_l",
};

static const char *const ppv_words[] = {
	"default", "window", "carry", "mark", "ipv4_id", "tvf",
};

static bool has_words(const char *text, const char *const *list,
		      unsigned int len)
{
	bool all = true;

	while (len--)
		if (!has_word(text, list[len])) {
			printf("# missing: %s\n", list[len]);
			all = false;
		}
	return all;
}

static void test_extra_help(void)
{
	struct qdisc_util *const all[] = { CSAQM, VDQ, PPV };
	char *usage, want[TEXT_SIZE], line_l[64];
	const char *line, *end;
	unsigned int i;
	size_t width;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct qdisc_util *qu = all[i];
		bool whole;

		check(change(qu, "help") == -1, "%s help ends the command",
		      qu->id);
		usage = strdup(errors);
		if (qu == PPV)
			whole = has_words(usage, ppv_words,
					  ARRAY_SIZE(ppv_words));
		else
			whole = has_words(usage, common_words,
					  ARRAY_SIZE(common_words));
		if (qu == VDQ)
			whole &= has_words(usage, vdq_words,
					   ARRAY_SIZE(vdq_words));
		check(whole, "%s help has every option", qu->id);
		for (width = 0, line = usage; (end = strchr(line, '\n'));
		     line = end + 1)
			if ((size_t)(end - line) > width)
				width = end - line;
		check(width <= 80, "%s help fits 80 columns", qu->id);

		sprintf(want, "%s: \"bogus\" is not an option; expected one of:\n%s",
			qu->id, usage);
		check(is_denied(qu, change(qu, "carry mark bogus")),
		      "%s: an unknown word is refused", qu->id);
		check_text("with the help text", errors, want);
		check(is_denied(qu, change(qu, "carr mark")),
		      "%s: an abbreviation is refused", qu->id);
		free(usage);
	}

	change(CSAQM, "help");
	usage = strdup(errors);
	for (i = 0; i < ARRAY_SIZE(vdq_words); i++) {
		sprintf(want,
			"csaqm: \"%s\" is not an option, but one of vdq_csaqm; expected one of:\n%s",
			vdq_words[i], usage);
		sprintf(line_l, "%s 1", vdq_words[i]);
		check(is_denied(CSAQM, change(CSAQM, line_l)) &&
		      !strcmp(errors, want),
		      "csaqm says that %s is an option of vdq_csaqm",
		      vdq_words[i]);
	}
	free(usage);

	capture_errors();
	i = PPV->parse_copt(PPV, 0, NULL, &request.n, "eth0");
	read_errors();
	dup2(own_stderr, STDERR_FILENO);
	check(i == (unsigned int)-1 && strstr(errors, "tc qdisc change"),
	      "a class of ppv is not changed, but its function is");
}

/* A man page without its hyphens and fonts, and each line break a blank. */
static char *read_man(const char *path)
{
	static char text[1 << 17];
	FILE *file = fopen(path, "r");
	char *from, *to;

	text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = 0;
	if (file)
		fclose(file);
	for (from = to = text; *from; from++) {
		if (from[0] == '\\' && from[1] == '-')
			continue;
		if (from[0] == '\\' && from[1] == 'f' && from[2])
			from += 2;
		else
			*to++ = *from == '\n' ? ' ' : *from;
	}
	*to = 0;
	return text;
}

static void check_default(const char *text, const char *option,
			  const char *val)
{
	char want[256];
	bool found;

	snprintf(want, sizeof(want), "Default: %s.", val);
	/* From the head of the option's paragraph to the next one's. */
	snprintf(msg.bytes, sizeof(msg.bytes), ".BI %s \" ", option);
	text = strstr(text, msg.bytes);
	found = text && strstr(text, want) &&
		strstr(text, want) < strstr(text, " .TP ");
	check(found, "the man page has the default of %s, %s", option, val);
}

static const char *format_us(unsigned int us)
{
	static char buf[32];

	sprintf(buf, "%u ms", us / 1000);
	return buf;
}

/* "5 ms for csaqm, 20 ms for vdq_csaqm" */
static void check_default_of_both(const char *text, const char *option,
				  unsigned int us, unsigned int vdq_us)
{
	char val[128];

	sprintf(val, "%u ms for csaqm, %u ms for vdq_csaqm", us / 1000,
		vdq_us / 1000);
	check_default(text, option, val);
}

static void test_man_of_csaqm(const char *path)
{
	const char *text = read_man(path);
	char val[32];

	check(has_words(text, common_words, ARRAY_SIZE(common_words)) &&
	      has_words(text, vdq_words, ARRAY_SIZE(vdq_words)),
	      "the man page of csaqm has every option");
	check_default_of_both(text, "target", CSAQM_TARGET_US_DEF,
			      CSAQM_VDQ_TARGET_US_DEF);
	check_default_of_both(text, "tupdate", CSAQM_TUPDATE_US_DEF,
			      CSAQM_VDQ_TUPDATE_US_DEF);
	check_default_of_both(text, "buffer", CSAQM_BUFFER_US_DEF,
			      CSAQM_VDQ_BUFFER_US_DEF);
	check_default(text, "target_l", format_us(CSAQM_VDQ_TARGET_L_US_DEF));
	check_default(text, "buffer_l", format_us(CSAQM_VDQ_BUFFER_L_US_DEF));
	sprintf(val, "%g", CSAQM_VDQ_VRATE_DEF / 1e3);
	check_default(text, "vrate", val);
	sprintf(val, "%g", CSAQM_VDQ_VRATE_L_DEF / 1e3);
	check_default(text, "vrate_l", val);
}

/* The options that a kernel sends for a function of its own. */
static void send_builtin(unsigned int number)
{
	struct tc_ppv_point points[PPV_POINTS_MAX] = {};
	struct rtattr *nest, *function;
	struct ppv_tvf tvf;
	__u32 val = number;
	unsigned int i;

	ppv_tvf_builtin(&tvf, number);
	for (i = 0; i < tvf.count; i++) {
		points[i].rate = tvf.points[i].rate;
		points[i].value = tvf.points[i].coded;
	}
	request_begin(0);
	nest = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_OPTIONS);
	function = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF);
	addattr_l(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF_NUMBER, &val, 4);
	addattr_l(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF_POINTS, points,
		  tvf.count * sizeof(points[0]));
	addattr_nest_end(&request.n, function);
	addattr_nest_end(&request.n, nest);
	front_end = PPV;
	print(false, false, request_options());
}

static void test_man_of_ppv(const char *path)
{
	const char *text = read_man(path), *points, *at;
	char number[16];
	unsigned int i;

	check(has_words(text, ppv_words, ARRAY_SIZE(ppv_words)),
	      "the man page of ppv has every option");
	check_default(text, "window", format_us(PPV_WINDOW_US_DEF));
	sprintf(number, "%u", PPV_DEFAULT_DEF);
	check_default(text, "default", number);
	for (i = 1; i <= 4; i++) {
		send_builtin(i);
		sprintf(number, "tvf %u ", i);
		points = strncmp(out, number, 6) ? NULL : out + 6;
		out[out_len - 1] = 0;	/* the blank */
		at = points && *points ? strstr(text, points) : NULL;
		check(at && strchr("  \t.", at[strlen(points)]),
		      "the man page has function %u as it is, %s", i,
		      points ? points : out);
	}
}

/* ---- netlink to text and JSON ---- */

static const struct {
	struct qdisc_util *qu;
	const char *line;
	const char *text;
	const char *json;
} shown[] = {
	{ CSAQM, "bandwidth 100mbit limit 1000 target 5ms tupdate 5ms buffer 500ms carry mark ecn",
	  "bandwidth 100Mbit limit 1000p target 5ms tupdate 5ms buffer 500ms carry mark ecn ",
	  "\"bandwidth\":12500000,\"limit\":1000,\"target\":5000,\"tupdate\":5000,\"buffer\":500000,\"carry\":\"mark\",\"ecn\":true" },
	{ CSAQM, "noecn carry ipv4_id bandwidth 1234567bps target 1234567us",
	  "bandwidth 9876536bit target 1.234567s carry ipv4_id noecn ",
	  "\"bandwidth\":1234567,\"target\":1234567,\"carry\":\"ipv4_id\",\"ecn\":false" },
	{ CSAQM, "bandwidth 1tbit target 999us buffer 16384us tupdate 999999us",
	  "bandwidth 1Tbit target 999us tupdate 999.999ms buffer 16.384ms ",
	  "\"bandwidth\":125000000000,\"target\":999,\"tupdate\":999999,\"buffer\":16384" },
	{ CSAQM, "", "", "" },
	{ VDQ, "vrate_l 0.9 vrate 0.984 buffer_l 50ms target_l 1ms bandwidth 2500kbit",
	  "bandwidth 2500Kbit target_l 1ms buffer_l 50ms vrate 0.984 vrate_l 0.9 ",
	  "\"bandwidth\":312500,\"target-l\":1000,\"buffer-l\":50000,\"vrate\":0.984,\"vrate-l\":0.9" },
	{ VDQ, "vrate 1 vrate_l 0.001", "vrate 1 vrate_l 0.001 ",
	  "\"vrate\":1,\"vrate-l\":0.001" },
	{ PPV, "tvf 2 10mbit:2e8,100mbit:1.25e4,1gbit:1.001 window 100ms tvf 1 8:1e10 carry mark default 2",
	  "default 2 window 100ms carry mark tvf 1 8bit:1e10 tvf 2 10Mbit:2e8,100Mbit:12500,1Gbit:1.001 ",
	  "\"default\":2,\"window\":100000,\"carry\":\"mark\",\"tvf\":[{\"number\":1,\"points\":[{\"rate\":1,\"value\":1e+10,\"coded\":65535}]},{\"number\":2,\"points\":[{\"rate\":1250000,\"value\":2e+08,\"coded\":54400},{\"rate\":12500000,\"value\":12500,\"coded\":26849},{\"rate\":125000000,\"value\":1.001,\"coded\":2}]}]" },
	{ PPV, "", "", "\"tvf\":[]" },
};

static void test_extra_printed(void)
{
	char name[TEXT_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shown); i++) {
		if (change(shown[i].qu, shown[i].line))
			check(false, "\"%s\" is taken", shown[i].line);
		sprintf(name, "%s \"%s\" is printed as text", shown[i].qu->id,
			shown[i].line);
		print(false, false, request_options());
		check_text(name, out, shown[i].text);
		sprintf(name, "%s \"%s\" is printed as JSON", shown[i].qu->id,
			shown[i].line);
		print(true, false, request_options());
		check_text(name, out, shown[i].json);
	}
	check(!CSAQM->print_qopt(CSAQM, stdout, NULL) &&
	      !CSAQM->print_xstats(CSAQM, stdout, NULL) &&
	      !PPV->print_qopt(PPV, stdout, NULL) &&
	      !PPV->print_xstats(PPV, stdout, NULL),
	      "nothing to print is not an error");

	/* What another kernel may send to it. */
	change(VDQ, "target 5ms target_l 1ms vrate 1");
	front_end = CSAQM;
	print(false, false, request_options());
	check_text("csaqm shows no option of vdq_csaqm", out, "target 5ms ");
}

static void set_one(int type, const void *data, int len)
{
	struct rtattr *nest;

	request_begin(0);
	nest = addattr_nest(&request.n, EXTRA_MSG_SIZE,
			    TCA_OPTIONS | NLA_F_NESTED);
	addattr_l(&request.n, EXTRA_MSG_SIZE, type, data, len);
	addattr_nest_end(&request.n, nest);
}

static void test_extra_odd_attributes(void)
{
	static const __u8 sizes[] = { 0, 0, 8, 4, 4, 4, 4, 1, 1, 4, 4, 4, 4 };
	static const __u8 ppv_sizes[] = { 0, 4, 4, 1 };
	static const __u32 data[4] = { 7, 7, 7, 7 };
	struct tc_ppv_point points[3] = {
		{ .rate = 1000, .value = 52428 }, { .rate = 2000, .value = 1 },
	};
	const __u64 rate = 125000000000000;
	struct rtattr *nest, *function;
	unsigned int type, len, bad = 0;
	__u32 number = 5;

	front_end = VDQ;
	for (type = 2; type < ARRAY_SIZE(sizes); type++)
		for (len = 0; len < sizes[type]; len++) {
			set_one(type, data, len);
			bad += print(false, false, request_options()) || out_len;
		}
	front_end = PPV;
	for (type = 1; type < ARRAY_SIZE(ppv_sizes); type++)
		for (len = 0; len < ppv_sizes[type]; len++) {
			set_one(type, data, len);
			bad += print(false, false, request_options()) || out_len;
		}
	check(!bad, "a short attribute is not printed");

	for (bad = 0, type = 0; type < 4000; type++) {
		if (type < 2 || type > 12) {
			front_end = VDQ;
			set_one(type, data, sizeof(data));
			bad += print(false, false, request_options()) || out_len;
		}
		if (!type || type > 4) {
			front_end = PPV;
			set_one(type, data, sizeof(data));
			bad += print(false, false, request_options()) || out_len;
		}
	}
	check(!bad, "an unknown attribute is not printed");

	front_end = VDQ;
	set_one(5, data, sizeof(data));
	print(false, false, request_options());
	check_text("a long attribute is read as far as it is known", out,
		   "target 7us ");
	set_one(2, &rate, sizeof(rate));
	print(false, false, request_options());
	check_text("a rate beyond the limits is printed", out,
		   "bandwidth 1000Tbit ");
	set_one(7, "\2", 1);
	bad = print(false, false, request_options()) || out_len ||
	      print(true, false, request_options()) || out_len;
	check(!bad, "a place of values that is not known is not printed");

	/* A function: cut anywhere, and each part of it missing. */
	front_end = PPV;
	for (len = 0; len <= sizeof(points); len++) {
		request_begin(0);
		nest = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_OPTIONS);
		function = addattr_nest(&request.n, EXTRA_MSG_SIZE,
					TCA_PPV_TVF);
		addattr_l(&request.n, EXTRA_MSG_SIZE, 1, &number, 4);
		addattr_l(&request.n, EXTRA_MSG_SIZE, 9, "new", 4);
		addattr_l(&request.n, EXTRA_MSG_SIZE, 2, points, len);
		addattr_nest_end(&request.n, function);
		addattr_nest_end(&request.n, nest);
		print(false, false, request_options());
		bad += strcmp(out, len < 16 ? "" :
			      len < 32 ? "tvf 5 8Kbit:1e8 " :
			      len < 48 ? "tvf 5 8Kbit:1e8,16Kbit:1.0005 " :
			      "tvf 5 8Kbit:1e8,16Kbit:1.0005,0bit:0 ") != 0;
	}
	check(!bad, "of a function whole points are printed");
	request_begin(0);
	nest = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_OPTIONS);
	function = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF);
	addattr_l(&request.n, EXTRA_MSG_SIZE, 2, points, sizeof(points));
	addattr_nest_end(&request.n, function);
	function = addattr_nest(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF);
	addattr_l(&request.n, EXTRA_MSG_SIZE, 1, &number, 4);
	addattr_nest_end(&request.n, function);
	addattr_l(&request.n, EXTRA_MSG_SIZE, TCA_PPV_TVF, "\377\377\377", 3);
	addattr_nest_end(&request.n, nest);
	print(false, false, request_options());
	check_text("half a function is not printed", out, "");
	print(true, false, request_options());
	check_text("half a function is not in JSON", out, "\"tvf\":[]");

	/* What a newer kernel may have beside functions. */
	change(PPV, "tvf 5 1mbit:1e8");
	((struct rtattr *)RTA_DATA(request_options()))->rta_type = 5;
	print(false, false, request_options());
	check_text("what only looks like a function is not printed", out, "");
}

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

	sprintf(line, "tvf 7 1mbit:%u.%02ue%u", mantissa / 100, mantissa % 100,
		exponent);
	if (exponent < 5)
		sprintf(want, "tvf 7 1Mbit:%.*f ",
			digits > exponent ? digits - exponent : 0,
			strtod(line + strlen("tvf 7 1mbit:"), NULL));
	else
		sprintf(want, "tvf 7 1Mbit:%.*fe%u ", digits, mantissa / 100.0,
			exponent);
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
		memcpy((char *)&request + request.n.nlmsg_len - sizeof(point),
		       &point, sizeof(point));
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
		rate = 1000 + rate % (DUALPI2_BANDWIDTH_MAX - 999);
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
			unsigned int k = random() % (qu == PPV ? 7 :
						     qu == VDQ ? 12 : 8);

			if (qu == PPV)
				k = k ? k + 11 : 5;
			to += sprintf(to, "%s ", some[k]);
			if (strcmp(some[k], "ecn") && strcmp(some[k], "noecn") &&
			    random() % 20)
				to += sprintf(to, "%s ", values[random() %
					      ARRAY_SIZE(values)]);
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

/* ---- statistics ---- */

static union {
	struct rtattr rta;
	char bytes[4096];
} extra_stats;

/* len may be anything. */
static void set_extra_stats(const void *st, size_t size, size_t len)
{
	memset(&extra_stats, 0xee, sizeof(extra_stats));
	extra_stats.rta.rta_type = 4;
	extra_stats.rta.rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(&extra_stats.rta), st, len < size ? len : size);
}

static const struct tc_csaqm_xstats csaqm_stats = {
	.c = {
		.arrived = 812, .forwarded = 800, .marked = 5,
		.dropped_value = 2, .dropped_buffer = 3, .dropped_limit = 4,
		.purged = 1, .no_value = 6, .delay_sum_ns = 336000000,
		.delay_max_ns = 9100000, .bytes = 3028, .virtual_bytes = 4000,
		.packets = 2, .threshold = 52428,
	},
	.l = {
		.arrived = 1812, .forwarded = 0, .marked = 15,
		.dropped_value = 12, .dropped_buffer = 13, .dropped_limit = 14,
		.purged = 11, .no_value = 16, .bytes = 13028,
		.virtual_bytes = 14000, .packets = 12, .threshold = 65536,
	},
	.updates = 21, .mark_failed = 22, .gso_failed = 23, .unparsed = 24,
	.throttled = 25,
};

#define STATS_C_TEXT \
	" arrived 812 forwarded 800 marked 5 no_value 6\n" \
	" dropped 9 (value 2, buffer 3, limit 4) purged 1\n" \
	" queued 2 (3028 bytes) virtual 4000 bytes threshold 1e8 (52428)\n" \
	" delay mean 420us max 9.1ms\n"

#define STATS_L_TEXT \
	" arrived 1812 forwarded 0 marked 15 no_value 16\n" \
	" dropped 39 (value 12, buffer 13, limit 14) purged 11\n" \
	" queued 12 (13028 bytes) virtual 14000 bytes threshold all (65536)\n" \
	" delay of no packet yet\n"

#define STATS_TEXT \
	"updates 21 throttled 25 mark_failed 22 gso_failed 23 unparsed 24\n"

#define STATS_C_JSON \
	"{\"arrived\":812,\"forwarded\":800,\"marked\":5,\"no-value\":6,\"dropped-value\":2,\"dropped-buffer\":3,\"dropped-limit\":4,\"purged\":1,\"packets\":2,\"bytes\":3028,\"virtual-bytes\":4000,\"threshold\":1e+08,\"threshold-coded\":52428,\"delay-sum-ns\":336000000,\"delay-max-ns\":9100000,\"delay-mean-ns\":420000}"

#define STATS_L_JSON \
	"{\"arrived\":1812,\"forwarded\":0,\"marked\":15,\"no-value\":16,\"dropped-value\":12,\"dropped-buffer\":13,\"dropped-limit\":14,\"purged\":11,\"packets\":12,\"bytes\":13028,\"virtual-bytes\":14000,\"threshold\":1.0005e+10,\"threshold-coded\":65536,\"delay-sum-ns\":0,\"delay-max-ns\":0,\"delay-mean-ns\":null}"

#define STATS_JSON \
	",\"updates\":21,\"throttled\":25,\"mark-failed\":22,\"gso-failed\":23,\"unparsed\":24"

static void test_csaqm_statistics(void)
{
	struct tc_csaqm_xstats st = csaqm_stats, part;
	size_t len, bad = 0;
	char want[TEXT_SIZE];

	check(sizeof(st) == 248, "the statistics of csaqm have 248 bytes");

	set_extra_stats(&st, sizeof(st), sizeof(st));
	front_end = CSAQM;
	print(false, true, &extra_stats.rta);
	check_text("csaqm has statistics of one queue", out,
		   "Queue:" STATS_C_TEXT STATS_TEXT);
	print(true, true, &extra_stats.rta);
	check_text("csaqm has statistics of one queue in JSON", out,
		   "\"queue\":" STATS_C_JSON STATS_JSON);
	front_end = VDQ;
	print(false, true, &extra_stats.rta);
	check_text("vdq_csaqm has statistics of two queues", out,
		   "Classic:" STATS_C_TEXT "L4S:" STATS_L_TEXT STATS_TEXT);
	print(true, true, &extra_stats.rta);
	check_text("vdq_csaqm has statistics of two queues in JSON", out,
		   "\"classic\":" STATS_C_JSON ",\"l4s\":" STATS_L_JSON STATS_JSON);

	/* A newer kernel's, of which ours is the beginning. */
	set_extra_stats(&st, sizeof(st), sizeof(st) + 40);
	print(false, true, &extra_stats.rta);
	check_text("what longer statistics have in addition is left", out,
		   "Classic:" STATS_C_TEXT "L4S:" STATS_L_TEXT STATS_TEXT);

	/* Cut anywhere: as the same with zeroes. */
	for (len = 0; len < sizeof(st); len++) {
		memset(&part, 0, sizeof(part));
		memcpy(&part, &st, len);
		set_extra_stats(&part, sizeof(part), sizeof(part));
		print(true, true, &extra_stats.rta);
		strcpy(want, out);
		set_extra_stats(&st, sizeof(st), len);
		print(true, true, &extra_stats.rta);
		bad += strcmp(out, want) != 0;
	}
	check(!bad, "what shorter statistics lack is zero");

	st.c.threshold = 0;
	set_extra_stats(&st, sizeof(st), sizeof(st));
	print(false, true, &extra_stats.rta);
	check(strstr(out, " threshold none (0)\n"),
	      "a threshold that no packet is below is none");
	print(true, true, &extra_stats.rta);
	check(strstr(out, "\"threshold\":0,\"threshold-coded\":0,"),
	      "a threshold that no packet is below is 0 in JSON");
	st.c.threshold = 65535;
	set_extra_stats(&st, sizeof(st), sizeof(st));
	print(false, true, &extra_stats.rta);
	check(strstr(out, " threshold 1e10 (65535)\n"),
	      "a threshold of the greatest value is one");
}

static void test_ppv_statistics(void)
{
	static const char text[] =
		"valued 11 not_valued 12 no_function 13 flows_new 14 flows_evicted 15\n"
		"child_dropped 18 filter_dropped 17 gso_failed 16\n";
	static const struct tc_ppv_xstats st = {
		.valued = 11, .not_valued = 12, .no_function = 13,
		.flows_new = 14, .flows_evicted = 15, .gso_failed = 16,
		.filter_dropped = 17, .child_dropped = 18,
	};
	struct tc_ppv_xstats part;
	size_t len, bad = 0;
	char want[TEXT_SIZE];

	check(sizeof(st) == 64, "the statistics of ppv have 64 bytes");
	front_end = PPV;
	set_extra_stats(&st, sizeof(st), sizeof(st));
	print(false, true, &extra_stats.rta);
	check_text("ppv has statistics", out, text);
	print(true, true, &extra_stats.rta);
	check_text("ppv has statistics in JSON", out,
		   "\"valued\":11,\"not-valued\":12,\"no-function\":13,\"flows-new\":14,\"flows-evicted\":15,\"child-dropped\":18,\"filter-dropped\":17,\"gso-failed\":16");
	set_extra_stats(&st, sizeof(st), sizeof(st) + 24);
	print(false, true, &extra_stats.rta);
	check_text("what longer statistics of ppv have in addition is left",
		   out, text);
	for (len = 0; len < sizeof(st); len++) {
		memset(&part, 0, sizeof(part));
		memcpy(&part, &st, len);
		set_extra_stats(&part, sizeof(part), sizeof(part));
		print(false, true, &extra_stats.rta);
		strcpy(want, out);
		set_extra_stats(&st, sizeof(st), len);
		print(false, true, &extra_stats.rta);
		bad += strcmp(out, want) != 0;
	}
	check(!bad, "what shorter statistics of ppv lack is zero");
}

/* ---- in the tc of this machine ---- */

/* "help" and what is refused end tc before it talks to the kernel. */
static void test_in_tc(const char *directory)
{
	static const struct {
		const char *words;
		const char *said;
	} runs[] = {
		{ "csaqm help", "Usage: ... csaqm bandwidth RATE " },
		{ "vdq_csaqm help", "Usage: ... vdq_csaqm bandwidth RATE " },
		{ "ppv help", "Usage: ... ppv [ default NUMBER ]" },
		{ "csaqm limit 5",
		  "csaqm: bandwidth: it is missing; expected 8Kbit to 1Tbit" },
		{ "vdq_csaqm vrate 2",
		  "vdq_csaqm: vrate: \"2\" is not in range; expected 0.001 to 1" },
		{ "ppv tvf 1 1mbit:1e11",
		  "ppv: tvf: \"1e11\" is not in range; expected 1.0004 to 1e10" },
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
	test_extra_round_trip();
	test_extra_random_commands();
	test_csaqm_statistics();
	test_ppv_statistics();
	test_in_tc(argv[3]);

	printf("1..%u\n", passed + failed);
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:0 error:0\n",
	       passed, failed);
	return failed ? 1 : 0;
}
