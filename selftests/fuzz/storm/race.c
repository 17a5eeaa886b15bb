// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data path on CPU 1 against requests of one kind, or another data path, on CPU 0. No counter is looked at: the
 * kernel's detector of data races watches, and test_races.py reads its reports.
 */
#define _GNU_SOURCE
#include "storm.h"
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static _Atomic bool stop;

static void dump_all(struct nl *nl)
{
	msg_tc(RTM_GETQDISC, NLM_F_DUMP, ifindex, 0, 0, 0);
	add_message(nl);
	flush(nl);
	msg_tc(RTM_GETTCLASS, NLM_F_DUMP, ifindex, 0, 0, 0);
	add_message(nl);
}

/* The number of transmit queues in use: the qdisc is attached again, or told. */
static void channels(struct nl *nl)
{
	struct ethtool_channels now = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq request = { .ifr_data = (void *)&now };

	memcpy(request.ifr_name, opt.dev, strnlen(opt.dev, IFNAMSIZ - 1));
	if (ioctl(nl->fd, SIOCETHTOOL, &request))
		die("ETHTOOL_GCHANNELS of %s: %m", opt.dev);
	now.cmd = ETHTOOL_SCHANNELS;
	/* virtio_net has no transmit queues without receive queues. */
	if (now.max_combined)
		now.combined_count = 1 + rnd(now.max_combined);
	else
		now.tx_count = 1 + rnd(now.max_tx);
	if (ioctl(nl->fd, SIOCETHTOOL, &request))
		die("ETHTOOL_SCHANNELS of %s, %u transmit queues: %m", opt.dev, now.combined_count + now.tx_count);
}

static void traffic(struct nl *nl)
{
	(void)nl;
	traffic_send();
}

static const struct {
	const char *name;
	void (*request)(struct nl *nl);
} others[] = {
	{ "change", change }, { "dump", dump_all }, { "reset", flap_link }, { "limit", change_txqlen },
	{ "filter", toggle_filter },
	{ "queues", channels }, { "replace", replace }, { "traffic", traffic },
};

static void *data_path(void *unused)
{
	unsigned int n;

	(void)unused;
	pin(1);
	rnd_state = opt.seed + 1;
	for (n = 1; !stop; n++) {
		traffic_send();
		if (!(n % 64))
			pause_us(500);
	}
	return NULL;
}

void run_race(void)
{
	pthread_t thread;
	struct nl nl;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(others) && strcmp(others[i].name, opt.with ?: ""); i++)
		;
	if (i == ARRAY_SIZE(others))
		die("race needs --with change, dump, reset, limit, filter, queues, replace or traffic");
	rnd_state = opt.seed * 2654435761u;
	nl_open(&nl, NETLINK_ROUTE);
	traffic_open();
	pin(0);
	if (pthread_create(&thread, NULL, data_path, NULL))
		die("no thread");
	while (done < opt.messages) {
		others[i].request(&nl);
		flush(&nl);
		if (!rnd(8))
			pause_us(1 + rnd(500));
		progress(1);
	}
	stop = true;
	pthread_join(thread, NULL);
}
