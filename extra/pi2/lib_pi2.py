# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of pi2 share: its options and statistics as netlink, its accounts, a qdisc under a shaper.

DUALPI2_EXTRA is the directory with sch_pi2.ko; TC_LIB_DIR has q_pi2.so.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

import lib_extra

import lib
from lib import CE, CODEPOINTS, ECT0, ECT1, NOT_ECT, Failure, expect_equal

HEADER = lib.Header("extra/pi2/pi2_uapi.h")
KNOBS = HEADER.attributes("TCA_PI2_")
DEFAULTS = {"limit": 10000, "target": 20000, "tupdate": 32000, "alpha": 80, "beta": 800, "coupling": 2, "ecn": 1,
            "signal": 0, "drop_enqueue": 0, "square": 1}
RANDOM = HEADER.number("TC_PI2_SIGNAL_RANDOM")
LONGEST_US = 4294967
XSTATS, PER_CODEPOINT = (HEADER.layout(f"tc_pi2_{name}") for name in ("xstats", "codepoint"))
ECN_OF = dict(zip(CODEPOINTS, (NOT_ECT, ECT1, ECT0, CE)))

# p' rises by less than 0.01 an update while the delay is below 200 ms.
RISING = {"target": 1, "tupdate": 10000, "alpha": 13, "beta": 1}
# p' is at its cap from the first update with a packet on, and stays.
AT_CAP = {"target": 1, "tupdate": 100, "alpha": 2**31 - 1, "beta": 2**31 - 1}

# No signals.
CALM = {"target": LONGEST_US, "alpha": 1, "beta": 1}


def encode(**values):
    return lib.encode(KNOBS, **values)


def parse(qdisc):
    """Statistics and options of one qdisc of a dump."""
    expect_equal(len(qdisc["app"]), XSTATS.size, "bytes of TCA_STATS_APP")
    st = dict(qdisc["stats"], parent=qdisc["parent"], knobs=lib.decode(KNOBS, qdisc["options"]))
    numbers = XSTATS.read(qdisc["app"])
    for number, name in enumerate(CODEPOINTS):
        st[name] = {key: numbers.pop(f"codepoint.{number}.{key}") for key in PER_CODEPOINT.names}
    st |= numbers
    for name, key in (("p", "prob"), ("p_c", "prob_classic"), ("p_s", "prob_scalable")):
        st[name] = st[key] / 2**32
    return st


def total(st, *names):
    """Packets of all codepoints."""
    return sum(st[codepoint][name] for codepoint in CODEPOINTS for name in names)


def moment(look):
    """What look() finds, at one moment if there is one: the parts of a dump are not of the same, but two dumps with
    the same counters are. If packets move all the time, "moved" is set.
    """
    for _ in range(20):
        one, two = look(), look()
        if all(one[key] == two[key] for key in ("arrived_bytes", "forwarded_bytes", "dropped_bytes", "qlen", "drops")):
            return one
    return one | {"moved": True}


def check_accounts(st, was_reset=False):
    """Fail unless every packet that arrived was forwarded, dropped or purged, or waits, and all else fits, too.

    What pi2 counts is of one moment; with the qdisc's own counters it is compared unless packets "moved".
    """
    same = [
        (total(st, "arrived"), total(st, "forwarded", "dropped_aqm", "dropped_limit", "purged") + st["packets"],
         "arrived and forwarded + dropped + purged + queued"),
        (st["arrived_bytes"], st["forwarded_bytes"] + st["dropped_bytes"] + st["purged_bytes"] + st["bytes"],
         "bytes arrived and forwarded + dropped + purged + queued"),
        ((st["not_ect"]["marked"], st["ce"]["marked"], st["ce"]["dropped_aqm"], st["ect1"]["dropped_aqm"]),
         (0, 0, 0, 0), "marks of Not-ECT and CE, drops by the AQM of CE and ECT(1)"),
    ]
    if st["knobs"]["ecn"] and not st.get("ecn_was_off"):
        same.append((st["ect0"]["dropped_aqm"], 0, "drops of ECT(0) by the AQM"))
    held = 0
    if not st.get("moved"):
        drops = total(st, "dropped_aqm", "dropped_limit", "purged") + st["gso_failed"]
        held = st["qlen"] - st["packets"]
        same += [(total(st, "forwarded"), st["packets_sent"], "forwarded and packets of the qdisc"),
                 (st["forwarded_bytes"], st["bytes_sent"], "bytes forwarded and bytes of the qdisc")]
        if not was_reset:
            same.append((st["drops"], drops, "drops of the qdisc and dropped + purged"))
        if not held:
            same.append((st["backlog"], st["bytes"], "backlog and bytes in the queue"))
    if not st["packets"]:
        same.append(((st["bytes"], st["delay_ns"]), (0, 0), "bytes and delay of an empty queue"))
    wrong = [f"{what}: {one} != {other}" for one, other, what in same if one != other]
    for codepoint in CODEPOINTS:
        n = st[codepoint]
        if n["marked"] > n["forwarded"] or n["arrived"] < n["forwarded"] + n["dropped_aqm"] + n["dropped_limit"]:
            wrong.append(f"{codepoint}: {n}")
    if held not in (0, 1):
        wrong.append(f"qlen {st['qlen']} with {st['packets']} packets in the queue")
    if st["packets"] > st["max_packets"] or st["delay_max_ns"] > st["delay_sum_ns"]:
        wrong.append(f"maximum: {st['max_packets']} packets, {st['delay_max_ns']} of {st['delay_sum_ns']} ns")
    k, p_c = st["knobs"]["coupling"], st["p"]**(1 + st["knobs"]["square"])
    if abs(st["p_c"] - p_c) > 4 / 2**32 or abs(st["p_s"] - min(1, k * st["p"])) > (k + 2) / 2**32:
        wrong.append(f"probabilities {st['p']}, {st['p_c']}, {st['p_s']} with k = {k}")
    if st["p"] > 1 / k + 2 / 2**32:
        wrong.append(f"p' {st['p']} is beyond 1/{k}")
    if wrong:
        raise Failure("counters do not fit together: " + "; ".join(wrong))


def of(qdisc):
    """parse() with the qdisc's own counters under names that are not taken."""
    return parse(qdisc) | {"packets_sent": qdisc["stats"]["packets"], "bytes_sent": qdisc["stats"]["bytes"]}


class Pi2(lib.Aqm):
    """pi2 on rtr's `down`; its knobs go by netlink, or as arguments of tc."""

    kind = "pi2"
    ecn_was_off = False

    def __init__(self, net, rate=10e6, shaper="htb", args=None, **knobs):
        super().__init__(net, rate, shaper, args, knobs)

    def _request(self, flags, knobs):
        expect_equal(lib_extra.request(self.netns, self.dev, self.handle, self.parent, "pi2", encode(**knobs), flags),
                     (0, ""), f"pi2 {knobs}")

    def change(self, options):
        """Change it in place; (error number, text)."""
        return lib_extra.request(self.netns, self.dev, self.handle, self.parent, "pi2", options, 0)

    def stats(self):
        return of(lib_extra.found(self.netns, self.dev, self.handle)) | {"ecn_was_off": self.ecn_was_off}

    def until_idle(self, seconds=60):
        super().until_idle(seconds)

    def set(self, **knobs):
        expect_equal(self.change(encode(**knobs)), (0, ""), f"change of {knobs}")

    def check(self):
        """The accounts; returns whether they were of one moment."""
        st = moment(self.stats)
        check_accounts(st, self.was_reset)
        return not st.get("moved")


def new(after, before):
    """What was counted between two looks, by codepoint."""
    return {name: {key: after[name][key] - before[name][key] for key in PER_CODEPOINT.names} for name in CODEPOINTS}
