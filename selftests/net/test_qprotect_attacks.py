#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: long kernel=debug,stock
"""Queue protection (RFC 9957) under attack, with real packets, off and on.

Each test prints rows of one table; `| grep '# |'` leaves the table:

    scripts/run test selftests/net/test_qprotect_attacks.py --kernel debug | grep '# |'

Honest flows are small UDP packets, two of ECT(1) and one of DSCP 45, or DCTCP as ECT(1). They share the L4S queue with
the attack. RFC 9957 promises a bound: a flow is redirected as soon as its score and the delay are above the thresholds.
So no honest packet waits longer than the critical delay, the packets until the hostile flow is redirected, and the
packet that is being sent. Half of the honest packets wait at most one serialization time longer than undisturbed.

Known limitations, which no test denies: the measurement begins 0.5 s after the attack, if its name does not say
otherwise, when the first redirection is over; an unresponsive flow that does not overload the Classic queue returns,
ever more seldom; honest packets are lost when the Classic queue reaches the limit, which both queues share; with 33 to
100 hostile flows more honest packets can be lost than without protection.

The redirected packets of honest flows are exact. The statistics have packets p and bytes b of all; hostile packets have
A bytes and honest ones H, so that (p A - b) / (A - H) are honest.
"""
import contextlib
import functools
import time

import lib
from lib import ECT1, NOT_ECT, Stream, each, expect, expect_between, expect_equal, note, run, shared_net, test
from tcp import dctcp

NQB = 45
RATE = 40e6                             # bit/s
WARMUP_S, SECONDS = 0.5, 2.5
HONEST_BYTES, HOSTILE_BYTES = 200, 1000
HONEST = ("l4s1", "l4s2", "nqb")
# Critical delay, 1 ms beyond the end of the ramp, and packets of a hostile flow beyond it before it is redirected.
# Its score must exceed 4 ms at that delay. One packet of 1000 bytes that is marked for certain raises it
# by 1000 / 2^19 s = 1.9 ms. So the third packet beyond the critical delay is redirected at the latest.
CRITICAL_US, PACKETS_BEYOND = 2200, 3
HEADINGS = ("attack", "qprotect", "honest P50 ms", "honest P99 ms", "honest max ms", "honest of sent",
            "hostile Mbit/s", "honest redirected", "hostile redirected", "hostile flows disordered packets")
_printed = []


def packet_us(size=HOSTILE_BYTES, rate=RATE):
    """Serialization time."""
    return size * 8 / rate * 1e6


def row(*cells):
    """A line of the table."""
    if not _printed:
        _printed.append(note("| " + " | ".join(HEADINGS) + " |"))
        note("|" + "---|" * len(HEADINGS))
    note("| " + " | ".join(map(str, cells)) + " |")


def honest_streams():
    """Small packets of three flows, 3 % of the link; jitter, so that they meet all phases of the attack."""
    return [Stream("l4s1", ecn=ECT1, pps=250, size=HONEST_BYTES, jitter=1),
            Stream("l4s2", ecn=ECT1, pps=250, size=HONEST_BYTES, jitter=1),
            Stream("nqb", dscp=NQB, pps=250, size=HONEST_BYTES, jitter=1)]


class Seen:
    """What an attack did: delays of the worst honest flow in us, rates, redirected packets."""

    def __init__(self, name, on, results, st, hostile, seconds=SECONDS - WARMUP_S):
        self.st, self.results = st, results
        honest = [results[flow] for flow in HONEST]
        delays = [one.delay_us for one in honest if one.received]
        self.p50, self.p99, self.longest = (max(one[key] for one in delays) for key in ("p50", "p99", "max"))
        self.share = min(1 - one.loss for one in honest)
        self.honest_sent = sum(one.sent for one in honest)
        self.honest_share = sum(one.received for one in honest) / self.honest_sent
        self.hostile = [one for flow, one in results.items() if flow not in HONEST]
        size = hostile[0].fields["size"] if hostile else HOSTILE_BYTES
        self.mbit = sum(one.received for one in self.hostile) * size * 8 / seconds / 1e6
        self.disorder = sum(one.disorder for one in self.hostile)
        found = st.get("qprotect") or dict.fromkeys(("redirected", "redirected_bytes"), 0)
        self.redirected = found["redirected"]
        self.honest_redirected = (self.redirected * size - found["redirected_bytes"]) / (size - HONEST_BYTES)
        row(name, "on" if on else "off", *(f"{value / 1e3:.2f}" for value in (self.p50, self.p99, self.longest)),
            f"{self.share:.1%}", f"{self.mbit:.1f}", f"{self.honest_redirected:.0f}",
            f"{self.redirected - self.honest_redirected:.0f}", self.disorder)


def attack(name, on, *hostile, rate=RATE, shaper="none", seconds=SECONDS, warmup=WARMUP_S):
    """Run the honest streams and the hostile ones; Seen."""
    knobs = {"bandwidth": int(rate / 8)} if shaper == "none" else {}
    net = shared_net()
    with net.aqm(rate=rate, shaper=shaper, qprotect=int(on), **knobs) as q:
        results = net.traffic(seconds, *honest_streams(), *hostile, warmup=warmup)
        q.until_idle()
        return Seen(name, on, results, q.stats(), hostile, seconds - warmup)


@functools.lru_cache(None)
def undisturbed(rate=RATE, shaper="none"):
    """The honest streams alone."""
    seen = attack(f"none, {rate / 1e6:g} Mbit/s{', below htb' if shaper == 'htb' else ''}", True, rate=rate,
                  shaper=shaper)
    expect_equal((seen.redirected, seen.share), (0, 1.0), "redirected packets and share of arrivals without an attack")
    return seen


def bound_us(packet, beyond=PACKETS_BEYOND, critical=CRITICAL_US):
    """What an attacker adds to an honest delay at most."""
    return critical + (beyond + 1) * packet


def expect_protected(seen, base, packet, most):
    """The bound for one attacker, and that the typical honest packet waits for one packet."""
    expect_equal(seen.honest_redirected, 0, "redirected packets of honest flows")
    expect(seen.redirected > 0, "no packet was redirected")
    expect(seen.p50 <= base.p50 + packet,
           f"P50 of the honest flows is {seen.p50} us, without the attack {base.p50} us, one packet is {packet} us")
    expect(seen.longest <= base.longest + most,
           f"an honest packet waited {seen.longest} us, undisturbed {base.longest} us, the attack may add {most} us")


def expect_harm(seen, base, packet):
    """The attack must be one: without protection it exceeds the goal."""
    expect(seen.p99 > base.p99 + packet or seen.share < 0.95, "without protection the attack does no harm")


def flood(**more):
    """Half more than the link."""
    return Stream("hostile", ecn=ECT1, **{"bps": 1.5 * RATE, "size": HOSTILE_BYTES} | more)


# One attacker

@test("QP", "RFC 9957")
def one_unresponsive_flow_above_the_link_rate():
    base = undisturbed()
    expect_harm(attack("1.5 times the link", False, flood()), base, packet_us())
    expect_protected(attack("1.5 times the link", True, flood()), base, packet_us(), bound_us(packet_us()))
    from_begin = attack("1.5 times the link, from its begin", True, flood(), warmup=0)
    expect_protected(from_begin, base, packet_us(), bound_us(packet_us()))


@test("QP", "RFC 9957")
def one_unresponsive_flow_below_htb():
    base = undisturbed(shaper="htb")
    expect_harm(attack("1.5 times the link, below htb", False, flood(), shaper="htb"), base, packet_us())
    on = attack("1.5 times the link, below htb", True, flood(), shaper="htb")
    expect_protected(on, base, packet_us(), bound_us(packet_us()))


@test("QP", "RFC 9957")
def minimum_size_packets_are_redirected_like_others():
    """On a slower link, because each packet takes time to compute. The score counts bytes: 60 bytes that are marked
    for certain raise it by 0.11 ms, so that for 4 ms 35 packets are needed, which are 1.7 ms of the link. The bound is
    stricter than the critical delay, 4.8 ms: three packets of 1514 bytes in place of it.
    """
    rate, size = 10e6, 60
    base = undisturbed(rate=rate)
    small = {"bps": 1.5 * rate, "size": size, "count": 20000}
    off, on = (attack("packets of 60 bytes", on, flood(**small), rate=rate, seconds=1.2) for on in (False, True))
    expect_harm(off, base, packet_us(size, rate))
    expect_protected(on, base, packet_us(1514, rate), bound_us(packet_us(size, rate), 35, 3 * packet_us(1514, rate)))


@test("QP", "NQB", "RFC 9956")
def nqb_sender_above_the_link_rate_is_redirected_and_not_dropped():
    """A tenth more than the link, Not-ECT: its packets in L beyond 10 ms are dropped without protection."""
    base = undisturbed()
    sender = Stream("hostile", dscp=NQB, ecn=NOT_ECT, bps=1.1 * RATE, size=HOSTILE_BYTES)
    expect_harm(attack("NQB sender, 1.1 times the link", False, sender), base, packet_us())
    on = attack("NQB sender, 1.1 times the link", True, sender)
    expect_protected(on, base, packet_us(), bound_us(packet_us()))
    expect_equal(on.st["link"]["nqb_dropped"], 0, "NQB packets dropped by their limit")


@test("QP", "RFC 9957")
def bursts_tuned_to_the_ageing_rate_delay_others_by_a_bounded_time():
    """40 packets at once, 8 ms of the link, so seldom that the score has aged: 40000 bytes / 2^19 bytes/s = 76 ms.

    Bound of each burst: the critical delay, the packets until the flow is redirected, and the packet being sent. P99
    is not the measure, because bursts may be rare.
    """
    base = undisturbed()
    bursts = flood(bps=0, pps=2**19 / HOSTILE_BYTES, burst=40)
    expect_harm(attack("bursts of 8 ms", False, bursts), base, packet_us())
    on = attack("bursts of 8 ms", True, bursts)
    expect_equal(on.honest_redirected, 0, "redirected packets of honest flows")
    most = base.longest + bound_us(packet_us())
    expect(on.longest <= most, f"an honest packet waited {on.longest} us, the bound is {most} us")
    expect(on.share >= 0.95, f"only {on.share:.1%} of the honest packets arrived")


@test("QP", "RFC 9957")
def changing_ports_delay_others_by_a_bounded_time():
    """A new port after 20 packets. Each one begins without a score: the bound is that of a burst, for P50. Flows
    without a bucket of their own share one, and an honest flow may, too: packets of it that meet the critical delay are
    redirected.
    """
    base = undisturbed()
    moving = flood(flows=1500, turn=20)
    off = attack("a new port after 20 packets", False, moving)
    expect_harm(off, base, packet_us())
    on = attack("a new port after 20 packets", True, moving)
    expect(on.redirected > 0, "no packet was redirected")
    expect(on.p50 <= base.p50 + bound_us(packet_us()), f"P50 of the honest flows is {on.p50} us")
    expect_no_worse(off, on)


# Many attackers

def flooded(flows):
    """1.5 times the link from so many flows, off and on."""
    return [attack(f"{flows} flows, 1.5 times the link", on, flood(flows=flows)) for on in (False, True)]


def expect_no_worse(off, on):
    """P99 is not above that without protection; one packet is its precision. Not so for losses: flows without a bucket
    of their own share a score, honest ones, too, and the Classic queue drops packets of theirs.
    """
    expect(on.p99 <= off.p99 + packet_us(), f"P99 of the honest flows is {on.p99} us, without protection {off.p99} us")


@test("QP", "RFC 9957")
def flows_33_fill_the_buckets_no_worse_than_off():
    """One more than there are buckets: some share the last one, some honest flows may, too."""
    off, on = flooded(33)
    expect_no_worse(off, on)
    expect(on.redirected > 0, "no packet was redirected")


@test("QP", "RFC 9957")
def flows_100_no_worse_than_off():
    expect_no_worse(*flooded(100))


@test("QP", "RFC 9957")
def flows_1000_no_worse_than_off():
    expect_no_worse(*flooded(1000))


# Tunnels

@contextlib.contextmanager
def tunnel(net, kind):
    """A tunnel from snd to rcv, 10.9.0.1 to 10.9.0.2, which copies the ECN field and the DSCP."""
    what = {"ipip": "ipip ttl 64 tos inherit",
            "gre": "gre ttl 64 tos inherit"}[kind]
    name, link, *options = ("tun0", *what.split())
    try:
        for netns, mine, other, number in ((net.snd, "10.1.0.1", "10.2.0.1", 1), (net.rcv, "10.2.0.1", "10.1.0.1", 2)):
            run(["ip", "link", "add", name, "type", link, "local", mine, "remote", other, *options], netns)
            run(["ip", "-batch", "-"], netns, stdin=f"link set {name} up\naddr add 10.9.0.{number}/24 dev {name}\n")
        yield
    finally:
        for netns in (net.snd, net.rcv):
            run(["ip", "link", "del", name], netns, check=False)


def tunnelled(kind):
    """An honest flow inside of a tunnel with the attacker; the result, and Seen of the others."""
    net = shared_net()
    with tunnel(net, kind), net.aqm(rate=RATE, shaper="none", bandwidth=int(RATE / 8), qprotect=1) as q:
        inside = Stream("inside", ecn=ECT1, pps=250, size=HONEST_BYTES, jitter=1, dst="10.9.0.2")
        hostile = Stream("hostile", ecn=ECT1, bps=1.5 * RATE, size=HOSTILE_BYTES, dst="10.9.0.2")
        results = net.traffic(SECONDS, *honest_streams(), inside, hostile, warmup=WARMUP_S)
        q.until_idle()
        one, others = results["inside"], {name: results[name] for name in (*HONEST, "hostile")}
        seen = Seen(f"{kind} tunnel with a flow of 1.5 times the link", True, others, q.stats(), [hostile])
        row(f"the honest flow in the {kind} tunnel", "on", *(f"{one.delay_us[key] / 1e3:.2f}" for key in
                                                             ("p50", "p99", "max")), f"{1 - one.loss:.1%}", *"----")
        return one, seen


@test("QP", "RFC 9957")
def tunnel_that_the_kernel_looks_into_protects_the_flows_inside():
    """The qdisc looks through IP in IP once."""
    one, seen = tunnelled("ipip")
    base = undisturbed()
    packet = packet_us(HOSTILE_BYTES + 20)
    expect(max(one.delay_us["p50"], seen.p50) <= base.p50 + packet, f"P50 {one.delay_us['p50']} us, {seen.p50} us")
    expect(max(one.delay_us["max"], seen.longest) <= base.longest + bound_us(packet), "longer than the bound")


@test("QP", "RFC 9957")
def tunnel_of_one_flow_is_redirected_as_a_whole():
    """With GRE all flows inside share a score. The flows beside it are protected."""
    one, seen = tunnelled("gre")
    base = undisturbed()
    packet = packet_us(HOSTILE_BYTES + 24)
    expect(seen.p50 <= base.p50 + packet, f"P50 {seen.p50} us, without the attack {base.p50} us")
    expect(seen.longest <= base.longest + bound_us(packet), f"a packet waited {seen.longest} us")
    expect(one.delay_us["p50"] > seen.p99, "the flow inside was not redirected together with the attack")


# Real TCP

def with_dctcp(name, on, *hostile, seconds=8, warmup=3, rate=RATE):
    """(Mbit/s of DCTCP, Run, statistics) of DCTCP against hostile streams."""
    net = shared_net()
    with net.aqm(rate=rate, shaper="none", bandwidth=int(rate / 8), qprotect=int(on)) as q:
        with dctcp(net) as flows:
            traffic = net.start(seconds, *honest_streams(), *hostile, warmup=warmup)
            time.sleep(warmup)
            settled = (q.stats().get("qprotect") or {}).get("redirected", 0)
            before, begun = sum(flow.received for flow in flows), time.monotonic()
            time.sleep(seconds - warmup - 0.5)
            mbit = (sum(flow.received for flow in flows) - before) * 8 / (time.monotonic() - begun) / 1e6
            results = traffic.wait()
        q.until_idle()
        seen = Seen(name, on, results, q.stats(), hostile, seconds=seconds - warmup)
        note(f"DCTCP: {seen.st.get('qprotect')}")
        seen.steadily = seen.redirected - settled
        row("DCTCP in it", "on" if on else "off", *"---", "-", f"{mbit:.1f} (DCTCP)", *"---")
        return mbit, seen


@each((4, 12, 40, 120), ("QP", "RFC 9957"))
def dctcp_alone_at_CASE_mbit_is_not_redirected(mbit):
    """After its slow start, and neither are the probes, whose share of the link is below a third."""
    (_, off), (got, on) = (with_dctcp(f"DCTCP alone, {mbit} Mbit/s", on, seconds=20, rate=mbit * 1e6)
                           for on in (False, True))
    expect_equal(on.steadily, 0, "redirected packets")
    more = packet_us(1514, mbit * 1e6)
    expect(on.p99 <= off.p99 + more, f"P99 of the probes is {on.p99} us, without protection {off.p99} us")
    expect_between(got / mbit, 0.65, 1, "share of DCTCP")


@test("QP", "RFC 9957")
def unresponsive_half_of_the_link_with_dctcp():
    """50 % of the link only takes capacity: DCTCP has what is left. Which of both is redirected is not asserted."""
    half = flood(bps=0.5 * RATE)
    (_, off), (mbit, on) = (with_dctcp("half of the link, with DCTCP", on, half) for on in (False, True))
    expect(on.p99 <= off.p99 + packet_us(1514), f"P99 of the probes is {on.p99} us, without protection {off.p99} us")
    expect_between(mbit, 0.35 * RATE / 1e6, 0.5 * RATE / 1e6, "Mbit/s of DCTCP")


if __name__ == "__main__":
    lib.main(needs="virtual_time ext")
