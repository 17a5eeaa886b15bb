// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of the tc front end without tc, kernel or root: from arguments to netlink
 * messages, and from netlink messages to text and JSON.
 *
 * accepted.txt has the numbers of attributes as literals, so that a change of the
 * ABI makes a test fail.
 *
 * usage: test_q_dualpi2 [ MAN-PAGE [ COMPLETION [ RECORDING ] ] ]
 *
 * RECORDING: messages of a kernel, as "tc monitor" reads them (recorded/link.b64).
 */
#include "mock_tc.h"
#include "options_parsed.h"
#include "options_printed.h"
#include "statistics_printed.h"
#include "queues_printed.h"
#include "link_printed.h"

/* ---- messages recorded from a kernel ---- */

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

int main(int argc, char **argv)
{
	error_file = fdopen(memfd_create("stderr", 0), "r+");
	if (!error_file)
		return 1;

	printf("KTAP version 1\n");
	check(strcmp(dualpi2_qdisc_util.id, "dualpi2") == 0,
	      "the plugin is called dualpi2");
	test_cases("accepted.txt", 2, test_accepted);
	test_messages();
	test_cases("refused.txt", 2, test_refused);
	test_blanks_refused();
	test_full_message_refused();
	test_help();
	test_mq();
	check_file("the man page has every option", argc > 1 ? argv[1] : NULL);
	check_file("the completion has every option",
		   argc > 2 ? argv[2] : NULL);
	test_cases("printed.txt", 3, test_printed);
	test_nothing_printed();
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
	test_short();
	test_overload();
	test_link();
	test_link_rates();
	test_link_cut();
	test_dates();
	test_odd_queues();
	test_unknown_queues();
	test_queues_of_other_sizes();
	test_queues_in_part();
	test_extension_of_other_sizes();
	test_recording(argc > 3 ? argv[3] : NULL);

	printf("1..%u\n", passed + failed + skipped);
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       passed, failed, skipped);
	return failed ? 1 : 0;
}
