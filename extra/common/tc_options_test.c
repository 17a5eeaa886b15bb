// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of test_tc.c: options to netlink, and errors.
 */
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
	{ CSAQM, "arrival_drop", "2{13:1:1}" },
	{ CSAQM, "noarrival_drop", "2{13:1:0}" },
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
	  "bandwidth: given twice, the second time with \"2mbit\"; expected once" },
	{ CSAQM, "limit 5 limit", "limit: given twice; expected once" },
	{ CSAQM, "limit 0x10",
	  "limit: \"0x10\" is not a number of packets; expected 1p to 1048576p" },
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
	  "carry: \"dscp\" is unknown; expected mark or ipv4_id" },
	{ CSAQM, "carry mark carry mark",
	  "carry: given twice, the second time with \"mark\"; expected once" },
	{ CSAQM, "ecn limit 5 noecn",
	  "noecn: conflicts with ecn; use one of the two" },
	{ CSAQM, "noecn ecn",
	  "ecn: conflicts with noecn; use one of the two" },
	{ CSAQM, "ecn ecn limit 5", "ecn: given twice; expected once" },
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
