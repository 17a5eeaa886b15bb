// SPDX-License-Identifier: GPL-2.0-only
/*
 * The options and statistics of dualpi2 by netlink: ranges, defaults, changes,
 * rejected requests.  It sends no packet.
 *
 * A root qdisc on a dummy device in a network namespace of its own gets raw
 * requests.  What is accepted must be dumped as sent.  What is rejected must
 * leave the dump as it was, byte for byte.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#if __has_include("linux/dualpi2.h")
#include <linux/dualpi2.h>
#endif
#include "../../kselftest.h"

#define DEV		"dummy0"
#define HANDLE		0x10000
#define TIME_MAX_US	4294967U	/* in 32 bits of nanoseconds */
#define GAIN_MAX	0x7fffffffU	/* 1/256 Hz */
#define FROM_LIMIT	UINT64_MAX	/* a default that follows from others */

/* One attribute.  A value outside of min to max is rejected. */
static const struct option {
	const char *name;
	uint16_t type;
	uint8_t size;
	bool ext;
	uint64_t min;
	uint64_t max;
	uint64_t def;
} options[] = {
	{ "limit", TCA_DUALPI2_LIMIT, 4, false, 1, UINT32_MAX, 10000 },
	{ "memlimit", TCA_DUALPI2_MEMORY_LIMIT, 4, false, 1, UINT32_MAX, FROM_LIMIT },
	{ "target", TCA_DUALPI2_TARGET, 4, false, 1, TIME_MAX_US, 15000 },
	{ "tupdate", TCA_DUALPI2_TUPDATE, 4, false, 100, TIME_MAX_US, 16000 },
	{ "alpha", TCA_DUALPI2_ALPHA, 4, false, 1, GAIN_MAX, 41 },
	{ "beta", TCA_DUALPI2_BETA, 4, false, 1, GAIN_MAX, 819 },
	{ "step_thresh", TCA_DUALPI2_STEP_THRESH_US, 4, false, 0, TIME_MAX_US, 1000 },
	{ "min_qlen_step", TCA_DUALPI2_MIN_QLEN_STEP, 4, false, 0, UINT32_MAX, 0 },
	{ "coupling_factor", TCA_DUALPI2_COUPLING, 1, false, 1, UINT8_MAX, 2 },
	{ "drop_overload", TCA_DUALPI2_DROP_OVERLOAD, 1, false, 0, 1, 1 },
	{ "drop_early", TCA_DUALPI2_DROP_EARLY, 1, false, 0, 1, 0 },
	{ "classic_protection", TCA_DUALPI2_C_PROTECTION, 1, false, 0, 100, 10 },
	{ "ecn_mask", TCA_DUALPI2_ECN_MASK, 1, false, 1, 3, 1 },
	{ "split_gso", TCA_DUALPI2_SPLIT_GSO, 1, false, 0, 1, 1 },
#ifdef TCA_DUALPI2_EXT
	{ "l4s", TCA_DUALPI2_EXT_L4S, 1, true, 0, 1, 1 },
	{ "ramp", TCA_DUALPI2_EXT_RAMP_US, 4, true, 0, TIME_MAX_US, FROM_LIMIT },
	{ "signal", TCA_DUALPI2_EXT_SIGNAL, 1, true, 0, 1, 0 },
	{ "p_cmax", TCA_DUALPI2_EXT_P_CMAX, 1, true, 0, 100, 0 },
	{ "bandwidth", TCA_DUALPI2_EXT_BANDWIDTH, 8, true, 1000, 125000000000ULL, 0 },
	{ "mpu", TCA_DUALPI2_EXT_MPU, 4, true, 0, 256, 0 },
	{ "burst_max", TCA_DUALPI2_EXT_BURST_MAX, 4, true, 0, 100000, 0 },
#endif
};

/* As many options as Linux 6.17 has. */
#define STANDARD	14

static struct mnl_socket *sock;
static int ifindex;
static unsigned int seq;
static bool has_ext;

/* A copy of TCA_OPTIONS, and of the statistics, of the root qdisc. */
struct dump {
	char options[4096];
	uint32_t options_len;
	char xstats[4096];
	uint32_t xstats_len;
	bool found;
};

static int talk(struct nlmsghdr *nlh, mnl_cb_t cb, void *data)
{
	char buf[32768];
	int len, ret;

	nlh->nlmsg_seq = ++seq;
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		len = mnl_socket_recvfrom(sock, buf, sizeof(buf));
		if (len < 0)
			return -errno;
		ret = mnl_cb_run(buf, len, seq, mnl_socket_get_portid(sock), cb, data);
	} while (ret > MNL_CB_STOP);
	return ret < 0 ? -errno : 0;
}

static struct nlmsghdr *request(char *buf, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	return nlh;
}

static struct nlmsghdr *qdisc_request(char *buf, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = request(buf, type, flags);
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));

	tcm->tcm_family = AF_UNSPEC;
	tcm->tcm_ifindex = ifindex;
	tcm->tcm_parent = TC_H_ROOT;
	tcm->tcm_handle = HANDLE;
	return nlh;
}

static int add_dummy(void)
{
	char buf[512];
	struct nlmsghdr *nlh = request(buf, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct ifinfomsg *ifm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifm));
	struct nlattr *nest;

	ifm->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, DEV);
	nest = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "dummy");
	mnl_attr_nest_end(nlh, nest);
	return talk(nlh, NULL, NULL);
}

/* Append an attribute of @size bytes with the number @value, in host byte order. */
static void put(struct nlmsghdr *nlh, const struct option *option, uint64_t value, size_t size)
{
	uint8_t u8 = value;
	uint32_t u32 = value;
	char bytes[16] = {};
	struct nlattr *nest = NULL;

	memcpy(bytes, option->size == 1 ? (void *)&u8 :
		      option->size == 4 ? (void *)&u32 : (void *)&value, option->size);
#ifdef TCA_DUALPI2_EXT
	if (option->ext)
		nest = mnl_attr_nest_start(nlh, TCA_DUALPI2_EXT);
#endif
	mnl_attr_put(nlh, option->type, size, bytes);
	if (nest)
		mnl_attr_nest_end(nlh, nest);
}

/* Add (NLM_F_CREATE | NLM_F_EXCL) or change (0) the qdisc, with an option or none. */
static int set_size(uint16_t flags, const struct option *option, uint64_t value, size_t size)
{
	char buf[512];
	struct nlmsghdr *nlh = qdisc_request(buf, RTM_NEWQDISC, flags);
	struct nlattr *nest;

	mnl_attr_put_strz(nlh, TCA_KIND, "dualpi2");
	if (option) {
		nest = mnl_attr_nest_start(nlh, TCA_OPTIONS);
		put(nlh, option, value, size);
		mnl_attr_nest_end(nlh, nest);
	}
	return talk(nlh, NULL, NULL);
}

static int set(uint16_t flags, const struct option *option, uint64_t value)
{
	return set_size(flags, option, value, option ? option->size : 0);
}

static int add(void)
{
	return set(NLM_F_CREATE | NLM_F_EXCL, NULL, 0);
}

static int del(void)
{
	char buf[256];

	return talk(qdisc_request(buf, RTM_DELQDISC, 0), NULL, NULL);
}

static int dump_cb(const struct nlmsghdr *nlh, void *data)
{
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);
	struct dump *dump = data;
	struct nlattr *attr, *stat;

	if (tcm->tcm_ifindex != ifindex)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*tcm)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			dump->found = !strcmp(mnl_attr_get_str(attr), "dualpi2");
		if (mnl_attr_get_type(attr) == TCA_OPTIONS) {
			dump->options_len = mnl_attr_get_payload_len(attr);
			memcpy(dump->options, mnl_attr_get_payload(attr), dump->options_len);
		}
		if (mnl_attr_get_type(attr) != TCA_STATS2)
			continue;
		mnl_attr_for_each_nested(stat, attr) {
			if (mnl_attr_get_type(stat) != TCA_STATS_APP)
				continue;
			dump->xstats_len = mnl_attr_get_payload_len(stat);
			memcpy(dump->xstats, mnl_attr_get_payload(stat), dump->xstats_len);
		}
	}
	return MNL_CB_OK;
}

static void get(struct dump *dump)
{
	char buf[256];
	struct nlmsghdr *nlh = qdisc_request(buf, RTM_GETQDISC, NLM_F_DUMP);

	memset(dump, 0, sizeof(*dump));
	talk(nlh, dump_cb, dump);
}

static bool same(const struct dump *a, const struct dump *b)
{
	return a->found && b->found && a->options_len == b->options_len &&
	       !memcmp(a->options, b->options, a->options_len);
}

static const struct nlattr *find(const void *payload, size_t len, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each_payload(payload, len) {
		if (mnl_attr_get_type(attr) == type)
			return attr;
	}
	return NULL;
}

/* The value of an option in a dump. */
static bool value_of(const struct dump *dump, const struct option *option, uint64_t *value)
{
	const void *payload = dump->options;
	size_t len = dump->options_len;
	const struct nlattr *attr;
	uint32_t u32;

#ifdef TCA_DUALPI2_EXT
	if (option->ext) {
		attr = find(payload, len, TCA_DUALPI2_EXT);
		if (!attr)
			return false;
		payload = mnl_attr_get_payload(attr);
		len = mnl_attr_get_payload_len(attr);
	}
#endif
	attr = find(payload, len, option->type);
	if (!attr || mnl_attr_get_payload_len(attr) != option->size)
		return false;
	payload = mnl_attr_get_payload(attr);
	memcpy(&u32, payload, option->size == 4 ? 4 : 1);
	if (option->size == 8)
		memcpy(value, payload, 8);
	else
		*value = option->size == 4 ? u32 : *(const uint8_t *)payload;
	return true;
}

/* Is the value dumped? */
static bool shown(const struct option *option, uint64_t want)
{
	struct dump dump;
	uint64_t value = 0;

	get(&dump);
	if (!value_of(&dump, option, &value)) {
		ksft_print_msg("%s: not in the dump\n", option->name);
		return false;
	}
	if (value != want)
		ksft_print_msg("%s: dumped %llu, expected %llu\n", option->name,
			       (unsigned long long)value, (unsigned long long)want);
	return value == want;
}

static bool accepted(const struct option *option, uint64_t value)
{
	int added, changed;
	bool good;

	added = set(NLM_F_CREATE | NLM_F_EXCL, option, value);
	good = !added && shown(option, value);
	del();
	add();
	changed = set(0, option, value);
	good = good && !changed && shown(option, value);
	del();
	if (added || changed)
		ksft_print_msg("%s %llu: add: %s, change: %s\n", option->name,
			       (unsigned long long)value, strerror(-added), strerror(-changed));
	return good;
}

/* Rejected by add, which leaves no qdisc, and by change, which changes nothing. */
static bool rejected(const struct option *option, uint64_t value, size_t size)
{
	struct dump before, after;
	int added, changed;
	bool left;

	added = set_size(NLM_F_CREATE | NLM_F_EXCL, option, value, size);
	get(&after);
	left = after.found;
	del();
	add();
	get(&before);
	changed = set_size(0, option, value, size);
	get(&after);
	del();
	if (!added || !changed || left || !same(&before, &after))
		ksft_print_msg("%s %llu, %zu bytes: add: %s%s, change: %s%s\n", option->name,
			       (unsigned long long)value, size, strerror(-added),
			       left && added ? " and a qdisc left" : "", strerror(-changed),
			       same(&before, &after) ? "" : " and another dump");
	return added && changed && !left && same(&before, &after);
}

static void check_range(const struct option *option)
{
	uint64_t top = option->size == 8 ? UINT64_MAX : (1ULL << 8 * option->size) - 1;
	uint64_t middle = option->min + (option->max - option->min) / 3;
	bool good;

	good = accepted(option, option->min) && accepted(option, middle) &&
	       accepted(option, option->max);
	ksft_test_result(good, "%s: values from %llu to %llu accepted and dumped\n", option->name,
			 (unsigned long long)option->min, (unsigned long long)option->max);

	good = true;
	if (option->min > 1 || (option->min && !option->ext))
		good = rejected(option, option->min - 1, option->size);
	if (option->max < top)
		good = rejected(option, option->max + 1, option->size) &&
		       rejected(option, top, option->size) && good;
	if (option->size > 1)
		good = rejected(option, option->max, option->size - 1) && good;
	good = rejected(option, option->max, 0) && good;
	ksft_test_result(good, "%s: values out of range and wrong lengths rejected\n",
			 option->name);
}

static void check_defaults(void)
{
	bool good = !add();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].def != FROM_LIMIT && (has_ext || !options[i].ext))
			good = shown(&options[i], options[i].def) && good;
	}
	del();
	ksft_test_result(good, "defaults dumped\n");
}

/* A value of an option that is no default. */
static uint64_t other(const struct option *option)
{
	uint64_t value = option->def == option->max ? option->min : option->max;

	return option->size == 1 || option->max < 1000 ? value : 2000;
}

static void change_keeps_others(void)
{
	bool good = !add();
	size_t i;

	/* From the last one, because limit comes first and memlimit may follow it. */
	for (i = STANDARD; i--;)
		good = !set(0, &options[i], other(&options[i])) && good;
	for (i = 0; i < STANDARD; i++)
		good = shown(&options[i], other(&options[i])) && good;
	del();
	ksft_test_result(good, "options set one after another are all kept\n");
}

static void check_statistics(void)
{
	struct tc_dualpi2_xstats xstats, expected = {};
	struct dump dump;
	uint64_t limit = 0;
	bool good;

	add();
	get(&dump);
	del();
	good = dump.xstats_len >= sizeof(xstats) && value_of(&dump, &options[1], &limit);
	memcpy(&xstats, dump.xstats, sizeof(xstats));
	expected.memory_limit = limit;
	/* The credit has a start value. */
	expected.credit = xstats.credit;
	good = good && !memcmp(&xstats, &expected, sizeof(xstats));
	ksft_test_result(good, "statistics of a new qdisc are zero\n");
}

static void second_add(void)
{
	struct dump before, after;
	int ret;

	add();
	set(0, &options[2], 20000);
	get(&before);
	ret = add();
	get(&after);
	del();
	ksft_test_result(ret == -EEXIST && same(&before, &after), "second add rejected\n");
}

/* A namespace and the device; returns what is missing, or NULL. */
static const char *prepare(void)
{
	struct dump dump;
	int ret;

	if (unshare(CLONE_NEWNET))
		return "need permission to make a network namespace (CAP_SYS_ADMIN)";
	sock = mnl_socket_open(NETLINK_ROUTE);
	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0)
		return "need a netlink socket";
	ret = add_dummy();
	/* The module makes one of this name where it is loaded with its default. */
	if (ret && ret != -EEXIST)
		return "need CONFIG_DUMMY";
	ifindex = if_nametoindex(DEV);
	if (add())
		return "need CONFIG_NET_SCH_DUALPI2";
	get(&dump);
#ifdef TCA_DUALPI2_EXT
	has_ext = find(dump.options, dump.options_len, TCA_DUALPI2_EXT);
#endif
	del();
	return NULL;
}

int main(void)
{
	const char *missing;
	size_t i;

	ksft_print_header();
	missing = prepare();
	if (missing)
		ksft_exit_skip("%s\n", missing);
	ksft_set_plan(2 * ARRAY_SIZE(options) + 4);
	check_defaults();
	change_keeps_others();
	check_statistics();
	second_add();
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].ext && !has_ext) {
			ksft_test_result_skip("%s: values: not an option of this dualpi2\n",
					      options[i].name);
			ksft_test_result_skip("%s: ranges: not an option of this dualpi2\n",
					      options[i].name);
		} else {
			check_range(&options[i]);
		}
	}
	mnl_socket_close(sock);
	ksft_finished();
}
