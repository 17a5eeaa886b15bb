#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: check kernel=6.1
# suite: long kernel=stock
"""
test_netlink.py - the netlink interface of dualpi2 against raw messages, good and bad.

Every attribute is sent absent, too short, too long, at and beyond both ends of its range, twice and
in the wrong place, to `add` and to `change`. What is accepted must be dumped exactly as sent, and the
dump sent back must give the same dump. What is refused must say which option and which range, and
must leave the whole dump as it was, byte for byte. No tc stands in between: the refusals are the
kernel's own.

It sends no packet. What an option does to packets, and what tc makes of these messages, is tested elsewhere.

KNOBS is written by hand, the only such table of the options in the tests in Python. The one that other tests use
(selftests/lib/options.py) is read from the sources of the module, and is compared with KNOBS here.
"""
import ctypes
import errno
import functools
import random
import struct
import sys
from collections import namedtuple

import lib
from lib import Failure
from netlink import (
    COUNTERS, DELAY, EXT_MAGIC, EXT_OFFSET, EXT_XSTATS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO,
    NLA_F_NESTED, NLA_F_NET_BYTEORDER, NLA_TYPE_MASK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLMSG_HDRLEN, NOATM,
    OVERLOAD, QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST, RAW, RTM_DELQDISC, RTM_GETQDISC, RTM_NEWLINK, RTM_NEWQDISC,
    STATS_C, STATS_L, STATS_LINK, STATS_OVERLOAD, TC_H_ROOT, TCA_KIND, TCA_OPTIONS, TCA_STATS2, TCA_STATS_APP,
    TCA_XSTATS, TCMSG_LEN, XSTATS, Answer, Socket, align, tcmsg,
)
from netlink import attr as nla
from netlink import attr_list as attributes
from options import OPTIONS

# include/uapi/linux/dualpi2.h
LIMIT, MEMORY_LIMIT, TARGET, TUPDATE, ALPHA, BETA, STEP_PKTS, STEP_US, MIN_QLEN_STEP = range(1, 10)
COUPLING, DROP_OVERLOAD, DROP_EARLY, C_PROTECTION, ECN_MASK, SPLIT_GSO, PAD = range(10, 17)
EXT = 0x0d50
EXT_L4S, EXT_RAMP_US, EXT_SIGNAL, EXT_P_CMAX, EXT_HIST_C, EXT_HIST_L, EXT_REPORT, EXT_PAD = range(1, 9)
EXT_BANDWIDTH, EXT_FRAMING, EXT_OVERHEAD, EXT_MPU, EXT_INGRESS, EXT_NQB, EXT_BURST_MAX, EXT_BYPASS = range(9, 17)
EXT_NEXT = EXT_BYPASS + 1

U32_MAX = 0xffffffff
TIME_MAX_US = U32_MAX // 1000           # every time is held in 32 bits of nanoseconds
FRAME = 1500 + 14                       # a dummy device's MTU with its link-layer header
OR_ZERO = (EXT_REPORT, EXT_BANDWIDTH)    # 0 is none, and below the least value

# name: as in the names of the tests; ext: in the nest TCA_DUALPI2_EXT; words: what the kernel calls
# it, and how it puts the range, both in words that a user of tc knows.
Knob = namedtuple("Knob", "name ext number size least greatest default words")
KNOBS = (
    Knob("limit", 0, LIMIT, 4, 1, U32_MAX, None, ("limit", "at least 1 packet")),
    Knob("memlimit", 0, MEMORY_LIMIT, 4, 1, U32_MAX, None, ("memlimit", "at least 1 byte")),
    Knob("target", 0, TARGET, 4, 1, TIME_MAX_US, 15000, ("target", "1 us to 4294967 us")),
    Knob("tupdate", 0, TUPDATE, 4, 100, TIME_MAX_US, 16000, ("tupdate", "100 us to 4294967 us")),
    Knob("alpha", 0, ALPHA, 4, 1, 2**31 - 1, 41, ("alpha", "1/256 Hz to (2^31 - 1)/256 Hz")),
    Knob("beta", 0, BETA, 4, 1, 2**31 - 1, 819, ("beta", "1/256 Hz to (2^31 - 1)/256 Hz")),
    Knob("step_thresh_pkts", 0, STEP_PKTS, 4, 1, U32_MAX - 1, None,
         ("step_thresh", "1 to 4294967294 packets")),
    Knob("step_thresh_us", 0, STEP_US, 4, 0, TIME_MAX_US, 1000,
         ("step_thresh", "at most 4294967 us")),
    Knob("min_qlen_step", 0, MIN_QLEN_STEP, 4, 0, U32_MAX, 0, ("min_qlen_step", "a number of packets")),
    Knob("coupling_factor", 0, COUPLING, 1, 1, 255, 2, ("coupling_factor", "1 to 255")),
    Knob("drop_overload", 0, DROP_OVERLOAD, 1, 0, 1, 1,
         ("drop_overload", "0 (overflow) or 1 (drop_on_overload)")),
    Knob("drop_early", 0, DROP_EARLY, 1, 0, 1, 0,
         ("drop_early", "0 (drop_dequeue) or 1 (drop_enqueue)")),
    Knob("classic_protection", 0, C_PROTECTION, 1, 0, 100, 10,
         ("classic_protection", "0 to 100 percent")),
    Knob("ecn_mask", 0, ECN_MASK, 1, 1, 3, 1,
         ("ecn_mask", "1 (l4s_ect), 2 (cla_ect) or 3 (any_ect)")),
    Knob("split_gso", 0, SPLIT_GSO, 1, 0, 1, 1, ("split_gso", "0 or 1")),
    Knob("l4s", 1, EXT_L4S, 1, 0, 1, 1, ("l4s", "0 or 1")),
    Knob("ramp", 1, EXT_RAMP_US, 4, 0, TIME_MAX_US, None, ("ramp", "at most 4294967 us")),
    Knob("signal", 1, EXT_SIGNAL, 1, 0, 1, 0, ("signal", "0 (recur) or 1 (random)")),
    Knob("p_cmax", 1, EXT_P_CMAX, 1, 0, 100, 0, ("p_cmax", "0 (1/k^2) to 100 percent")),
    Knob("hist_c", 1, EXT_HIST_C, 4, 1, 16384, 64, ("hist_c", "1 us to 16384 us")),
    Knob("hist_l", 1, EXT_HIST_L, 4, 1, 16384, 8, ("hist_l", "1 us to 16384 us")),
    Knob("overload_report", 1, EXT_REPORT, 4, 100000, U32_MAX, 1000000,
         ("overload_report", "0, or at least 100000 us")),
    Knob("bandwidth", 1, EXT_BANDWIDTH, 8, 1000, 125000000000, 0,
         ("bandwidth", "0 (unlimited), or 1000 to 125000000000 bytes/s")),
    Knob("framing", 1, EXT_FRAMING, 1, 0, 3, 0, ("framing", "0 (raw), 1 (noatm), 2 (atm) or 3 (ptm)")),
    Knob("overhead", 1, EXT_OVERHEAD, 4, -64, 256, 0, ("overhead", "-64 to 256 bytes")),
    Knob("mpu", 1, EXT_MPU, 4, 0, 256, 0, ("mpu", "at most 256 bytes")),
    Knob("ingress", 1, EXT_INGRESS, 1, 0, 1, 0, ("ingress", "0 or 1")),
    Knob("nqb", 1, EXT_NQB, 8, 0, 2**64 - 1, 1 << 45, ("nqb", None)),
    Knob("burst_max", 1, EXT_BURST_MAX, 4, 0, 100000, 0, ("burst_max", "at most 100000 us")),
    Knob("bypass", 1, EXT_BYPASS, 1, 0, 1, 0, ("bypass", "0 or 1")),
)
BY_KEY = {(knob.ext, knob.number): knob for knob in KNOBS}


def number(knob, value):
    """As it stands in an attribute; of a knob with a sign, -1 is 2^32 - 1, too."""
    return (value % (1 << 8 * knob.size)).to_bytes(knob.size, sys.byteorder)


def value_of(knob, payload):
    return int.from_bytes(payload, sys.byteorder, signed=knob.least < 0)


def fits(knob, value):
    return knob.least <= value <= knob.greatest or (knob.ext and knob.number in OR_ZERO and value == 0)


def encode(knob, value):
    attr = nla(knob.number, number(knob, value))
    return nla(EXT | NLA_F_NESTED, attr) if knob.ext else attr


def find(data, kind):
    return next((value for k, value in attributes(data) if k & NLA_TYPE_MASK == kind), None)


def check(condition, what):
    if not condition:
        raise Failure(what)


def same(got, want, what):
    check(got == want, f"{what}: {show(got)}, expected {show(want)}")


def show(value):
    return value.hex(" ", 4) if isinstance(value, bytes) else repr(value)


class Device:
    """One device's root qdisc. The device is down: nothing moves a counter."""

    def __init__(self, netlink, name):
        self.netlink = netlink
        answer = netlink.request(
            RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, bytes(16) + nla(IFLA_IFNAME, name.encode() + b"\0") +
            nla(IFLA_LINKINFO | NLA_F_NESTED, nla(IFLA_INFO_KIND, b"dummy\0")))
        same(answer.error, 0, f"adding the dummy device {name}")
        self.index = lib.ifindex(None, name)

    def header(self, handle=0x10000):
        return tcmsg(self.index, handle, TC_H_ROOT)

    def request(self, flags, options, outer=TCA_OPTIONS | NLA_F_NESTED):
        """OPTIONS is the payload of TCA_OPTIONS, None for no TCA_OPTIONS at all."""
        payload = self.header() + nla(TCA_KIND, b"dualpi2\0")
        if options is not None:
            payload += nla(outer, options)
        return self.netlink.request(RTM_NEWQDISC, flags, payload)

    def add(self, options, **kwargs):
        return self.request(NLM_F_CREATE | NLM_F_EXCL, options, **kwargs)

    def change(self, options, **kwargs):
        return self.request(0, options, **kwargs)

    def replace(self, options, **kwargs):
        return self.request(NLM_F_CREATE | NLM_F_REPLACE, options, **kwargs)

    def delete(self):
        return self.netlink.request(RTM_DELQDISC, 0, self.header())

    def dump(self):
        """The whole message of the root qdisc without its header, or None."""
        return next((data for data in self.netlink.dump(RTM_GETQDISC, self.header(handle=0))
                     if struct.unpack_from("=i", data, 4)[0] == self.index), None)

    def options(self):
        data = self.dump()
        check(data is not None and find(data[TCMSG_LEN:], TCA_KIND) == b"dualpi2\0",
              "no dualpi2 in the dump")
        return find(data[TCMSG_LEN:], TCA_OPTIONS)

    def start(self, options):
        """Begin anew with a qdisc of these options."""
        self.delete()
        same(self.add(options).error, 0, "adding a qdisc with good options")


# Where the payload of TCA_OPTIONS begins in a request: offsets in an answer count from its header.
OPTIONS_AT = NLMSG_HDRLEN + TCMSG_LEN + len(nla(TCA_KIND, b"dualpi2\0"))
PAYLOAD_AT = OPTIONS_AT + 4


def room(rate, target_us):
    """Bytes that the default limits of a shaper have room for: 250 ms or 16 MiB, and at least twice the target."""
    ns_per_byte = ((10**9 << 20) + rate // 2) // rate       # times 2^20
    return max(min((250 * 10**6 << 20) // ns_per_byte, 1 << 24), (2000 * target_us << 20) // ns_per_byte)


class Config(dict):
    """What a qdisc is set to: (ext, number) of a knob to its value; None is "by default"."""

    def __init__(self):
        super().__init__({key: knob.default for key, knob in BY_KEY.items()})

    def set(self, knob, value):
        self[knob.ext, knob.number] = value
        if knob.number == STEP_US and not knob.ext:
            self[0, STEP_PKTS] = None
        return self

    def settle(self, given):
        """What the numbers of the extension that were GIVEN together lead to."""
        if EXT_FRAMING not in given and {EXT_OVERHEAD, EXT_MPU} & given and self[1, EXT_FRAMING] == RAW:
            self[1, EXT_FRAMING] = NOATM
        if given and self[1, EXT_FRAMING] == RAW:
            self[1, EXT_OVERHEAD] = self[1, EXT_MPU] = 0
        return self

    def copy(self):
        other = Config()
        other.update(self)
        return other

    def options(self):
        """As Linux 7.x orders and sizes them, and the extension at the end."""
        shown = dict(self)
        rate = shown[1, EXT_BANDWIDTH]
        if shown[0, LIMIT] is None and rate:
            shown[0, LIMIT] = min(max(room(rate, shown[0, TARGET]) // 64, 1000), U32_MAX)
            if shown[0, MEMORY_LIMIT] is None:
                shown[0, MEMORY_LIMIT] = min(max(2 * room(rate, shown[0, TARGET]), 512 * FRAME), U32_MAX)
        if shown[0, LIMIT] is None:
            shown[0, LIMIT] = 10000
        if shown[0, MEMORY_LIMIT] is None:
            shown[0, MEMORY_LIMIT] = min(2 * FRAME * shown[0, LIMIT], U32_MAX)
        if shown[1, EXT_RAMP_US] is None:
            shown[1, EXT_RAMP_US] = shown[0, STEP_US] * 40 // 100
        if shown[0, STEP_PKTS] is not None:
            shown[0, STEP_US] = None
        parts = [b"", b""]
        for knob in KNOBS:
            value = shown[knob.ext, knob.number]
            if value is not None:
                parts[knob.ext] += nla(knob.number, number(knob, value))
        return parts[0] + nla(EXT | NLA_F_NESTED, parts[1])


class Refused(Exception):
    pass


def predict(config, options):
    """What CONFIG becomes by the payload of TCA_OPTIONS: the rules, written down a second time."""
    config = config.copy()
    nests = [(0, options)]
    seen = set()
    while nests:
        ext, data = nests.pop(0)
        while len(data) >= 4:
            size, kind = struct.unpack_from("=HH", data)
            kind &= NLA_TYPE_MASK
            if size < 4 or size > len(data):
                raise Refused
            if (ext, kind) in seen:
                raise Refused
            seen.add((ext, kind))
            payload, data = data[4:size], data[align(size):]
            if kind == EXT and not ext:
                nests.append((1, payload))
                continue
            knob = BY_KEY.get((ext, kind))
            if not knob or len(payload) != knob.size:
                raise Refused
            value = value_of(knob, payload)
            if not fits(knob, value):
                raise Refused
            config.set(knob, value)
        if data:
            raise Refused
    if {(0, STEP_PKTS), (0, STEP_US)} <= seen:
        raise Refused
    if config[1, EXT_BYPASS] and config[1, EXT_BANDWIDTH]:
        raise Refused
    return config.settle({kind for ext, kind in seen if ext})


class Bench:
    def __init__(self):
        netlink = Socket()
        self.subject = Device(netlink, "subject")
        self.copy = Device(netlink, "copy")
        self.refcnt_file = "/sys/module/sch_dualpi2/refcnt"
        self.users_before = self.refcnt()
        # Every knob away from its default, so that a refused change that resets one is seen.
        self.base = Config()
        for knob, value in zip(KNOBS, (2000, 3000000, 20000, 21000, 50, 900, None, 2000, 3, 4, 0, 1,
                                       20, 3, 0, 0, 300, 1, 30, 100, 20, 500000)):
            if value is not None:
                self.base.set(knob, value)

    def refcnt(self):
        with open(self.refcnt_file, encoding="ascii") as file:
            return int(file.read())

    def restores(self):
        """What the subject's dump shows, sent back, is shown again."""
        saved = self.subject.options()
        self.copy.start(saved)
        same(self.copy.options(), saved, "options after restoring the dump")

    def accepted(self, options, want_added, want_changed, **kwargs):
        """OPTIONS are accepted by add and by change, and the dumps show just what is wanted."""
        self.subject.delete()
        answer = self.subject.add(options, **kwargs)
        same(answer, Answer(0, None, None), "add")
        same(self.subject.options(), want_added.options(), "dump after add")
        self.restores()
        self.subject.start(self.base.options())
        same(self.subject.options(), self.base.options(), "dump before change")
        answer = self.subject.change(options, **kwargs)
        same(answer, Answer(0, None, None), "change")
        same(self.subject.options(), want_changed.options(), "dump after change")
        self.restores()

    def accepted_knobs(self, options, *settings, **kwargs):
        added, changed = Config(), self.base.copy()
        for knob, value in settings:
            added.set(knob, value)
            changed.set(knob, value)
        given = {knob.number for knob, _ in settings if knob.ext}
        self.accepted(options, added.settle(given), changed.settle(given), **kwargs)

    def refused(self, options, words=(), offset=None, **kwargs):
        """OPTIONS are refused by add, change and replace, with these words, and nothing happens.

        OFFSET is that of the culprit in OPTIONS, 'options' for TCA_OPTIONS itself.
        """
        where = OPTIONS_AT if offset == "options" else None if offset is None else PAYLOAD_AT + offset
        self.copy.delete()
        self.subject.delete()
        before, refcnt = self.subject.dump(), self.refcnt()
        self.check_refusal(self.subject.add(options, **kwargs), words, where, "add")
        same(self.subject.dump(), before, "dump after the refused add")
        same(self.refcnt(), refcnt, "users of the module after the refused add")
        self.subject.start(self.base.options())
        before = self.subject.dump()
        for verb in ("change", "replace"):
            answer = getattr(self.subject, verb)(options, **kwargs)
            self.check_refusal(answer, words, where, verb)
            same(self.subject.dump(), before, f"dump after the refused {verb}")

    @staticmethod
    def check_refusal(answer, words, offset, what):
        check(answer.error in (errno.EINVAL, errno.ERANGE),
              f"{what}: error {answer.error} ({answer.text}), expected EINVAL or ERANGE")
        check(answer.text and answer.text.startswith("dualpi2: "),
              f'{what}: text {answer.text!r} does not begin with "dualpi2: "')
        for word in words:
            check(word in answer.text, f"{what}: text {answer.text!r} does not contain {word!r}")
        if offset is not None:
            same(answer.offset, offset, f"{what}: offset of the culprit")


@functools.cache
def the_bench():
    """Made by the first test, in a network namespace that ends with this process."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):   # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    return Bench()


NAMES = set()


def add_test(name, function, *args):
    def run():
        function(the_bench(), *args)

    assert name not in NAMES, f"two tests are named {name}"
    NAMES.add(name)
    run.__name__ = name
    lib.test()(run)


def test(function):
    add_test(function.__name__, function)
    return function


def culprit(knob):
    """Offset of the attribute that encode() makes, within the payload of TCA_OPTIONS."""
    return 4 if knob.ext else 0


def wrap(knob, attrs):
    return nla(EXT | NLA_F_NESTED, attrs) if knob.ext else attrs


def accept_value(bench, knob, value):
    bench.accepted_knobs(encode(knob, value), (knob, value))


def refuse_value(bench, knob, value):
    bench.refused(encode(knob, value), knob.words, culprit(knob))


def refuse_length(bench, knob, length):
    payload = (number(knob, knob.greatest) + bytes(8))[:length]
    bench.refused(wrap(knob, nla(knob.number, payload)), ("wrong length", knob.words[0]),
                  culprit(knob))


def refuse_twice(bench, knob, first, second):
    attrs = [nla(knob.number, number(knob, value)) for value in (first, second)]
    bench.refused(wrap(knob, b"".join(attrs)), ("twice", knob.words[0]),
                  culprit(knob) + len(attrs[0]))


def accept_flag(bench, knob, flag):
    """Flags of the type field say nothing about a number; nla_type() drops them."""
    attr = nla(knob.number | flag, number(knob, knob.greatest))
    bench.accepted_knobs(wrap(knob, attr), (knob, knob.greatest))


def refuse_elsewhere(bench, knob):
    """The number of this knob in the other nest, where it is another knob or none."""
    attr = nla(knob.number, number(knob, knob.greatest))
    other = BY_KEY.get((1 - knob.ext, knob.number))
    if other and other.size == knob.size:
        raise Failure("this knob has a namesake of its size: choose another test")
    if knob.ext:
        bench.refused(attr, (), 0)
    else:
        bench.refused(nla(EXT | NLA_F_NESTED, attr), (), 4)


def knob_tests():
    for knob in KNOBS:
        top = 2 ** (8 * knob.size - (knob.least < 0)) - 1
        add_test(f"{knob.name}_minimum_accepted", accept_value, knob, knob.least)
        add_test(f"{knob.name}_maximum_accepted", accept_value, knob, knob.greatest)
        if knob.least:
            add_test(f"{knob.name}_below_minimum_refused", refuse_value, knob, knob.least - 1)
            if knob.least > 1 and knob.ext and knob.number in OR_ZERO:
                add_test(f"{knob.name}_zero_accepted", accept_value, knob, 0)
            elif knob.least > 1:
                add_test(f"{knob.name}_zero_refused", refuse_value, knob, 0)
        if knob.greatest < top:
            add_test(f"{knob.name}_above_maximum_refused", refuse_value, knob, knob.greatest + 1)
            if knob.greatest + 1 < top:
                add_test(f"{knob.name}_all_bits_set_refused", refuse_value, knob, top)
        for length, what in ((0, "zero_length"), (knob.size - 1, "one_byte_short"),
                             (knob.size + 1, "one_byte_long"), (2 * knob.size, "doubled_length")):
            if length or what == "zero_length":
                add_test(f"{knob.name}_{what}_refused", refuse_length, knob, length)
        add_test(f"{knob.name}_twice_the_same_refused", refuse_twice, knob,
                 knob.greatest, knob.greatest)
        add_test(f"{knob.name}_twice_different_refused", refuse_twice, knob,
                 knob.least, knob.greatest)
        add_test(f"{knob.name}_flagged_nested_accepted_as_a_number", accept_flag, knob, NLA_F_NESTED)
        other = BY_KEY.get((1 - knob.ext, knob.number))
        if knob.least < 0:
            add_test(f"{knob.name}_zero_accepted", accept_value, knob, 0)
        if not other or other.size != knob.size:
            add_test(f"{knob.name}_in_the_other_nest_refused", refuse_elsewhere, knob)


knob_tests()


@test
def options_of_the_sources_are_those_of_this_table(_):
    rows = [(o.name if o.word == "step_thresh" else o.word, o.ext, o.number, struct.calcsize("=" + o.format), o.least,
             o.greatest, o.default, (o.word, o.range)) for o in OPTIONS.values()]
    same([row[0] for row in rows], [knob.name for knob in KNOBS], "options")
    for row, knob in zip(rows, KNOBS):
        same(row, tuple(knob), knob.name)
    same([(o.ext, o.number) for o in OPTIONS.values() if o.or_zero], [(1, number) for number in OR_ZERO],
         "options that may be 0")


# The faults of the in-tree qdisc that show in this interface, by their number.

def gain_values():
    powers = [2**n + d for n in range(2, 31) for d in (-1, 0, 1)]
    return sorted({*range(1, 260), 819, 2**31 - 1, *(v for v in powers if v < 2**31)})


@test
def c10_gain_any_value_dumped_exactly(bench):
    bench.subject.start(b"")
    config = Config()
    alpha, beta = BY_KEY[0, ALPHA], BY_KEY[0, BETA]
    values = gain_values()
    for a, b in zip(values, reversed(values)):
        same(bench.subject.change(encode(alpha, a) + encode(beta, b)).error, 0, f"change to {a}, {b}")
        same(bench.subject.options(), config.set(alpha, a).set(beta, b).options(), f"gains {a}, {b}")


@test
def c10_gain_restored_100_times_unchanged(bench):
    alpha, beta = BY_KEY[0, ALPHA], BY_KEY[0, BETA]
    for a, b in ((41, 819), (1, 1), (12, 384), (3, 7), (2**31 - 1, 2**31 - 2)):
        bench.subject.start(encode(alpha, a) + encode(beta, b))
        first = bench.subject.options()
        for _ in range(100):
            same(bench.subject.change(bench.subject.options()).error, 0, "restoring the dump")
        same(bench.subject.options(), first, f"gains {a}, {b} after 100 times")


@test
def c14_tupdate_1us_refused_and_floor_named(bench):
    bench.refused(encode(BY_KEY[0, TUPDATE], 1), ("tupdate", "100 us"), 0)


@test
def c23_target_0_refused(bench):
    bench.refused(encode(BY_KEY[0, TARGET], 0), ("target", "1 us"), 0)


@test
def c23_gains_0_refused(bench):
    bench.refused(encode(BY_KEY[0, ALPHA], 0), ("alpha",), 0)
    bench.refused(encode(BY_KEY[0, BETA], 0), ("beta",), 0)


@test
def c23_classic_protection_0_and_100_accepted_101_refused(bench):
    knob = BY_KEY[0, C_PROTECTION]
    accept_value(bench, knob, 0)
    accept_value(bench, knob, 100)
    refuse_value(bench, knob, 101)


@test
def c23_times_beyond_32_bits_of_ns_refused(bench):
    for key in ((0, TARGET), (0, TUPDATE), (0, STEP_US), (1, EXT_RAMP_US)):
        refuse_value(bench, BY_KEY[key], TIME_MAX_US + 1)


@test
def c24_limit_change_keeps_memlimit_that_was_set(bench):
    limit, memlimit = BY_KEY[0, LIMIT], BY_KEY[0, MEMORY_LIMIT]
    bench.subject.start(encode(memlimit, 123456))
    same(bench.subject.change(encode(limit, 77)).error, 0, "change")
    same(bench.subject.options(), Config().set(memlimit, 123456).set(limit, 77).options(), "dump")


@test
def c24_limit_change_moves_memlimit_that_was_not_set(bench):
    limit = BY_KEY[0, LIMIT]
    bench.subject.start(None)
    for value in (1, 77, 1418480, U32_MAX):
        same(bench.subject.change(encode(limit, value)).error, 0, "change")
        same(bench.subject.options(), Config().set(limit, value).options(), f"dump at limit {value}")


@test
def c27_options_without_nested_flag_accepted(bench):
    knob = BY_KEY[0, LIMIT]
    bench.accepted_knobs(encode(knob, 5), (knob, 5), outer=TCA_OPTIONS)


@test
def c27_no_option_at_all_accepted(bench):
    for options in (None, b""):
        for outer in (TCA_OPTIONS, TCA_OPTIONS | NLA_F_NESTED):
            bench.accepted(options, Config(), bench.base, outer=outer)


@test
def c28_ecn_mask_each_value_accepted(bench):
    for value in (1, 2, 3):
        accept_value(bench, BY_KEY[0, ECN_MASK], value)


@test
def overload_report_between_0_and_its_minimum_refused(bench):
    """0 is none; more often than ten times a second is a load, not a report."""
    knob = BY_KEY[1, EXT_REPORT]
    for value in (1, 1000, knob.least - 1):
        bench.refused(encode(knob, value), knob.words)
        more = nla(EXT_L4S, b"\0") + nla(EXT_REPORT, number(knob, value))
        bench.refused(encode(BY_KEY[0, LIMIT], 5) + wrap(knob, more), knob.words)
    accept_value(bench, knob, knob.least)


# The nests themselves.

@test
def replace_of_nothing_adds(bench):
    knob = BY_KEY[0, LIMIT]
    bench.subject.delete()
    same(bench.subject.replace(encode(knob, 9)).error, 0, "replace")
    same(bench.subject.options(), Config().set(knob, 9).options(), "dump")


@test
def replace_of_dualpi2_changes_only_what_is_given(bench):
    knob = BY_KEY[0, LIMIT]
    bench.subject.start(bench.base.options())
    same(bench.subject.replace(encode(knob, 9)).error, 0, "replace")
    same(bench.subject.options(), bench.base.copy().set(knob, 9).options(), "dump")


@test
def change_of_each_knob_leaves_the_others(bench):
    bench.subject.start(bench.base.options())
    config = bench.base.copy()
    for knob in KNOBS:
        none = (0,) if knob.ext and knob.number in OR_ZERO else ()
        for value in (knob.greatest, knob.least, *none):
            same(bench.subject.change(encode(knob, value)).error, 0, f"{knob.name} {value}")
            config.set(knob, value).settle({knob.number} if knob.ext else set())
            same(bench.subject.options(), config.options(), f"{knob.name} {value}")


@test
def all_knobs_in_any_order_accepted(bench):
    rng = random.Random(9332)
    config = bench.base.copy()
    for _ in range(20):
        attrs = [encode(k, config[k.ext, k.number]) for k in KNOBS
                 if not k.ext and k.number != STEP_PKTS]
        inner = [nla(k.number, number(k, config[1, k.number])) for k in KNOBS if k.ext]
        rng.shuffle(inner)
        attrs.append(nla(EXT | NLA_F_NESTED, b"".join(inner)))
        rng.shuffle(attrs)
        bench.subject.start(b"".join(attrs))
        same(bench.subject.options(), config.options(), "dump")


@test
def step_thresh_time_and_packets_together_refused(bench):
    for first, second in ((STEP_PKTS, STEP_US), (STEP_US, STEP_PKTS)):
        bench.refused(encode(BY_KEY[0, first], 5) + encode(BY_KEY[0, second], 5),
                      ("step_thresh", "time", "packets"))


@test
def step_thresh_packets_then_time_shows_one_at_a_time(bench):
    pkts, us = BY_KEY[0, STEP_PKTS], BY_KEY[0, STEP_US]
    bench.subject.start(None)
    config = Config()
    for knob, value in ((pkts, 5), (pkts, 6), (us, 700), (us, 0), (pkts, 1)):
        same(bench.subject.change(encode(knob, value)).error, 0, f"{knob.name} {value}")
        same(bench.subject.options(), config.set(knob, value).options(), f"{knob.name} {value}")


@test
def ramp_shown_with_packet_step_is_that_of_the_time(bench):
    """A restored dump then behaves as the original when step_thresh becomes a time again."""
    pkts, us, ramp = BY_KEY[0, STEP_PKTS], BY_KEY[0, STEP_US], BY_KEY[1, EXT_RAMP_US]
    for settings in ((), ((us, 2000),), ((ramp, 0),), ((ramp, 5), (us, 2000))):
        bench.subject.start(None)
        config = Config()
        for knob, value in settings + ((pkts, 5), (us, 3000), (pkts, 6)):
            same(bench.subject.change(encode(knob, value)).error, 0, f"{knob.name} {value}")
            same(bench.subject.options(), config.set(knob, value).options(), f"{knob.name} {value}")


@test
def ramp_not_set_follows_step_thresh(bench):
    """40 % of it: 800 us to 1200 us for 1 ms, RFC 9332 figure 2."""
    us, ramp = BY_KEY[0, STEP_US], BY_KEY[1, EXT_RAMP_US]
    bench.subject.start(None)
    config = Config()
    for knob, value in ((us, 5000), (us, 1), (us, TIME_MAX_US), (ramp, 7), (us, 5000), (ramp, 0)):
        same(bench.subject.change(encode(knob, value)).error, 0, f"{knob.name} {value}")
        same(bench.subject.options(), config.set(knob, value).options(), f"{knob.name} {value}")


def both(rate, bypass, bypass_first):
    """A request for BANDWIDTH and BYPASS, None for one that is not named."""
    attrs = [nla(knob.number, number(knob, value)) for knob, value in
             ((BY_KEY[1, EXT_BANDWIDTH], rate), (BY_KEY[1, EXT_BYPASS], bypass)) if value is not None]
    return nla(EXT | NLA_F_NESTED, b"".join(attrs[::-1] if bypass_first else attrs))


EXCLUDE = ("bypass and bandwidth exclude each other", "the shaper has to see every packet")


@test
def bypass_with_bandwidth_refused(bench):
    good = encode(BY_KEY[0, LIMIT], 5)
    for rate in (1000, 125000000, 125000000000):
        for first in (False, True):
            bench.refused(both(rate, 1, first), EXCLUDE, 0)
            bench.refused(good + both(rate, 1, first), EXCLUDE, len(good))
            bench.refused(both(rate, 1, first) + good, EXCLUDE, 0)


@test
def bypass_changed_onto_bandwidth_refused_and_the_other_way_round(bench):
    rate, bypass = BY_KEY[1, EXT_BANDWIDTH], BY_KEY[1, EXT_BYPASS]
    for there, more in (((rate, 5000000), (bypass, 1)), ((bypass, 1), (rate, 5000000))):
        bench.subject.start(encode(*there))
        before = bench.subject.dump()
        for verb in ("change", "replace"):
            for options in (encode(*more), encode(BY_KEY[0, LIMIT], 5) + encode(*more)):
                bench.check_refusal(getattr(bench.subject, verb)(options), EXCLUDE, None, verb)
                same(bench.subject.dump(), before, f"dump after the refused {verb}")


@test
def bypass_in_place_of_bandwidth_and_back_in_one_change_accepted(bench):
    """What counts is what a request leads to, not what was there before, nor the order in it."""
    rate, bypass = BY_KEY[1, EXT_BANDWIDTH], BY_KEY[1, EXT_BYPASS]
    for first in (False, True):
        bench.accepted_knobs(both(0, 1, first), (rate, 0), (bypass, 1))
        bench.accepted_knobs(both(5000000, 0, first), (rate, 5000000), (bypass, 0))
        bench.subject.start(encode(rate, 5000000))
        config = Config().set(rate, 5000000)
        for want_rate, want_bypass in ((0, 1), (1000, 0), (0, 1), (None, 0), (None, 1)):
            same(bench.subject.change(both(want_rate, want_bypass, first)).error, 0, f"{want_rate} {want_bypass}")
            config.set(bypass, want_bypass)
            if want_rate is not None:
                config.set(rate, want_rate)
            same(bench.subject.options(), config.options(), f"dump after {want_rate} {want_bypass}")


UNKNOWN = (17, 18, 100, EXT - 1, EXT + 1, 0x3fff)


def refuse_unknown(bench, kind, inside):
    attr = nla(kind, struct.pack("=I", 1))
    good = encode(BY_KEY[0, LIMIT], 5)
    if inside:
        bench.refused(good + nla(EXT | NLA_F_NESTED, attr), ("unknown",), len(good) + 4)
    else:
        bench.refused(good + attr, ("unknown",), len(good))
        bench.refused(attr + good, ("unknown",), 0)


for unknown in (0, PAD) + UNKNOWN:
    add_test(f"attribute_{unknown:#06x}_refused", refuse_unknown, unknown, False)
for unknown in sorted({0, EXT_PAD, EXT_NEXT, *UNKNOWN, EXT}):
    add_test(f"attribute_{unknown:#06x}_in_the_extension_refused", refuse_unknown, unknown, True)


@test
def pad_with_any_length_refused(bench):
    for length in (0, 4, 8):
        bench.refused(nla(PAD, bytes(length)), ("unknown",), 0)


@test
def extension_empty_accepted(bench):
    bench.accepted(nla(EXT | NLA_F_NESTED), Config(), bench.base)


@test
def extension_without_nested_flag_accepted(bench):
    knob = BY_KEY[1, EXT_L4S]
    bench.accepted_knobs(nla(EXT, nla(EXT_L4S, b"\0")), (knob, 0))


@test
def extension_twice_refused(bench):
    one = encode(BY_KEY[1, EXT_L4S], 0)
    two = encode(BY_KEY[1, EXT_SIGNAL], 1)
    for first in (one, nla(EXT | NLA_F_NESTED)):
        bench.refused(first + two, ("twice",), len(first))


@test
def extension_nested_twice_refused(bench):
    bench.refused(nla(EXT | NLA_F_NESTED, encode(BY_KEY[1, EXT_L4S], 0)), ("unknown",), 4)


@test
def extension_in_itself_without_nested_flag_refused(bench):
    bench.refused(nla(EXT, nla(EXT, nla(EXT_L4S, b"\0"))), ("unknown",), 4)


@test
def extension_that_is_a_number_refused(bench):
    for payload in (b"\1\0\0\0", b"\1", bytes(3), bytes(4), bytes(5), b"\xff" * 8):
        bench.refused(nla(EXT | NLA_F_NESTED, payload))


@test
def extension_good_with_bad_knob_outside_refused(bench):
    ext = encode(BY_KEY[1, EXT_L4S], 0)
    bad = encode(BY_KEY[0, TUPDATE], 1)
    bench.refused(ext + bad, ("tupdate",), len(ext))
    bench.refused(bad + ext, ("tupdate",), 0)


@test
def extension_bad_with_good_knobs_outside_refused(bench):
    good = bench.base.options()
    good = good[:good.index(struct.pack("=H", EXT | NLA_F_NESTED)) - 2]
    changed = encode(BY_KEY[0, LIMIT], 3) + encode(BY_KEY[0, MEMORY_LIMIT], 4)
    bad = encode(BY_KEY[1, EXT_SIGNAL], 2)
    bench.refused(good + bad, ("recur",), len(good) + 4)
    bench.refused(changed + bad, ("recur",), len(changed) + 4)


@test
def many_good_knobs_before_a_bad_one_nothing_applied(bench):
    """Each knob as the bad one, after all others with new and good values."""
    for bad in KNOBS:
        if bad.number in (STEP_PKTS, STEP_US) and not bad.ext:
            continue
        value = bad.least - 1 if bad.least else bad.greatest + 1
        if value >= 2 ** (8 * bad.size):
            continue
        good = b"".join(encode(k, k.greatest) for k in KNOBS
                        if not k.ext and k is not bad and k.number != STEP_PKTS)
        bench.refused(good + encode(bad, value), bad.words, len(good) + culprit(bad))


# TCA_OPTIONS that is no stream of attributes.

@test
def options_of_random_bytes_refused(bench):
    rng = random.Random(9331)
    tried = 0
    while tried < 100:
        data = rng.randbytes(rng.randrange(1, 64))
        try:
            predict(Config(), data)
        except Refused:
            tried += 1
            bench.refused(data)


@test
def options_shorter_than_an_attribute_refused(bench):
    for length in (1, 2, 3):
        for filler in (b"\0", b"\xff", b"\5"):
            bench.refused(filler * length, (), "options")


@test
def attribute_length_below_its_header_refused(bench):
    for length in range(4):
        bench.refused(nla(LIMIT, bytes(4), length=length), (), "options")


@test
def attribute_length_beyond_the_end_refused(bench):
    for length in (9, 12, 255, 0x7fff, 0xffff):
        bench.refused(nla(LIMIT, struct.pack("=I", 5), length=length), (), "options")


@test
def bytes_after_the_last_attribute_refused(bench):
    good = encode(BY_KEY[0, LIMIT], 5)
    for tail in (b"\0", b"\0\0", b"\0\0\0", b"\xff" * 3, b"\3\0\1\0", b"\0\0\0\0", bytes(64)):
        bench.refused(good + tail, (), "options")


@test
def bytes_after_the_last_attribute_of_the_extension_refused(bench):
    good = nla(EXT_L4S, b"\0")
    for tail in (b"\0", b"\0\0\0", b"\xff" * 3, b"\3\0\1\0", b"\0\0\0\0"):
        bench.refused(nla(EXT | NLA_F_NESTED, good + tail), (), 0)


@test
def last_attribute_without_its_padding_accepted(bench):
    """A nest may end with its last attribute's payload; the kernel's own parser takes that."""
    knob = BY_KEY[0, COUPLING]
    bench.accepted_knobs(struct.pack("=HHB", 5, COUPLING, 7), (knob, 7))
    knob = BY_KEY[1, EXT_L4S]
    bench.accepted_knobs(nla(EXT | NLA_F_NESTED, struct.pack("=HHB", 5, EXT_L4S, 0)), (knob, 0))


@test
def padding_of_attributes_ignored(bench):
    knob = BY_KEY[0, COUPLING]
    bench.accepted_knobs(struct.pack("=HHB3s", 5, COUPLING, 7, b"\xff" * 3), (knob, 7))


@test
def options_of_64_kib_refused_or_exact(bench):
    """The largest TCA_OPTIONS there is: one number, 8190 times; and one attribute that fills it."""
    attr = encode(BY_KEY[0, LIMIT], 5)
    bench.refused(attr * 8190, ("twice",), len(attr))
    bench.refused(nla(LIMIT, bytes(65520)), ("length",), 0)
    bench.refused(nla(EXT | NLA_F_NESTED, nla(EXT_RAMP_US, bytes(65512))), ("length",), 4)


# What the kernel sends.

@test
def dump_of_defaults_has_order_and_sizes_of_linux_7(bench):
    bench.subject.start(None)
    got = [(kind, len(value)) for kind, value in attributes(bench.subject.options())]
    want = [(n, 4) for n in range(LIMIT, BETA + 1)] + [(STEP_US, 4), (MIN_QLEN_STEP, 4)]
    want += [(n, 1) for n in range(COUPLING, SPLIT_GSO + 1)]
    same(got[:-1], want, "attributes of Linux")
    same(got[-1][0], EXT | NLA_F_NESTED, "the last one")
    same([(kind, len(value)) for kind, value in attributes(find(bench.subject.options(), EXT))],
         [(EXT_L4S, 1), (EXT_RAMP_US, 4), (EXT_SIGNAL, 1), (EXT_P_CMAX, 1), (EXT_HIST_C, 4), (EXT_HIST_L, 4),
          (EXT_REPORT, 4), (EXT_BANDWIDTH, 8), (EXT_FRAMING, 1), (EXT_OVERHEAD, 4), (EXT_MPU, 4), (EXT_INGRESS, 1),
          (EXT_NQB, 8), (EXT_BURST_MAX, 4), (EXT_BYPASS, 1)], "the extension")


@test
def dump_of_packet_step_has_it_in_place_of_the_time(bench):
    bench.subject.start(encode(BY_KEY[0, STEP_PKTS], 5))
    got = [kind for kind, _ in attributes(bench.subject.options())]
    same(got, [1, 2, 3, 4, 5, 6, STEP_PKTS, 9, 10, 11, 12, 13, 14, 15, EXT | NLA_F_NESTED], "types")


@test
def dump_of_options_is_not_flagged_nested(bench):
    """As Linux 7.x, and every older qdisc, sends TCA_OPTIONS: without NLA_F_NESTED."""
    bench.subject.start(None)
    kinds = [kind for kind, _ in attributes(bench.subject.dump()[TCMSG_LEN:])]
    check(TCA_OPTIONS in kinds, f"types in the dump: {kinds}")


def app_of(bench):
    return find(find(bench.subject.dump()[TCMSG_LEN:], TCA_STATS2), TCA_STATS_APP)


@test
def xstats_of_idle_qdisc_laid_out_as_documented(bench):
    bench.subject.start(None)
    data = bench.subject.dump()[TCMSG_LEN:]
    xstats = app_of(bench)
    same(find(data, TCA_XSTATS), None, "TCA_XSTATS, the older place of the same")
    same(xstats[XSTATS.size:EXT_OFFSET], bytes(EXT_OFFSET - XSTATS.size), "gap")
    same(struct.unpack_from("=II", xstats, EXT_OFFSET), (EXT_MAGIC, EXT_XSTATS.size),
         "magic and size")
    same(xstats[EXT_OFFSET + 8:EXT_OFFSET + EXT_XSTATS.size], bytes(EXT_XSTATS.size - 8), "own counters")
    memory_limit = 2 * FRAME * 10000
    credit = FRAME * (10 - 90)          # in favour of the L4S queue by its greater weight
    same(struct.unpack_from("=8IiIII", xstats), (0,) * 8 + (credit, 0, 0, memory_limit),
         "struct tc_dualpi2_xstats")


@test
def stats_attributes_of_idle_qdisc_laid_out_as_documented(bench):
    """They begin where the extension says that it ends, and nothing follows them."""
    bench.subject.start(encode(BY_KEY[1, EXT_HIST_L], 100))
    found = attributes(app_of(bench)[EXT_OFFSET + EXT_XSTATS.size:])
    same([kind for kind, _ in found],
         [STATS_C | NLA_F_NESTED, STATS_L | NLA_F_NESTED, STATS_OVERLOAD, STATS_LINK], "types")
    same(found[2][1], bytes(OVERLOAD.size), "overload")
    # No rate is known, so that NQB may have ten packets.
    same(found[3][1], struct.pack("=4Q6I", 0, 0, 0, 0, 0, 800000, 1200000, 10000, 0, 15000000), "link")
    for (_, nest), unit in zip(found, (1 << 16, 1 << 17)):
        queue = attributes(nest)
        same([kind for kind, _ in queue], [QUEUE_COUNTERS, QUEUE_DELAY, QUEUE_HIST], "types of a queue")
        same(queue[0][1], bytes(COUNTERS.size), "counters")
        same(len(queue[1][1]), DELAY.size, "length of the delays")
        same(struct.unpack("=QQQIIII", queue[1][1])[:5], (0, 0, 0, unit, 96), "delays")
        same(queue[2][1], b"", "histogram without its zeros at the end")


@test
def xstats_memory_limit_is_what_options_show(bench):
    bench.subject.start(encode(BY_KEY[0, MEMORY_LIMIT], 4321))
    same(struct.unpack_from("=I", app_of(bench), XSTATS.size - 4)[0], 4321, "memory_limit")
    same(find(bench.subject.options(), MEMORY_LIMIT), struct.pack("=I", 4321), "TCA_DUALPI2_MEMORY_LIMIT")


@test
def c24_credit_of_idle_qdisc_follows_classic_protection(bench):
    """Credit of an idle link: one frame times the difference of the weights, which stay in 1..99."""
    bench.subject.start(None)
    for percent, weight in ((10, 10), (0, 1), (50, 50), (100, 99), (25, 25)):
        same(bench.subject.change(encode(BY_KEY[0, C_PROTECTION], percent)).error, 0, "change")
        same(struct.unpack_from("=i", app_of(bench), 8 * 4)[0], FRAME * (2 * weight - 100),
             f"credit at classic_protection {percent}")


# Messages at random.

MESSAGES = 2000


def random_value(rng, knob):
    edges = (knob.least - 1, knob.least, knob.least + 1, knob.greatest - 1, knob.greatest,
             knob.greatest + 1, 0, 2 ** (8 * knob.size) - 1)
    if rng.random() < 0.85:
        # Most by size, not by value, so that small numbers are as likely as great ones.
        value = rng.randrange(knob.least, knob.greatest + 1) >> rng.randrange(8 * knob.size)
        return max(value, knob.least)
    return max(min(knob.least, 0), min(rng.choice(edges), 2 ** (8 * knob.size) - 1))


def random_attrs(rng, ext):
    knobs = [knob for knob in KNOBS if knob.ext == ext]
    attrs = []
    for knob in rng.sample(knobs, rng.randrange(0, min(6, len(knobs) + 1))):
        if knob.number == STEP_PKTS and rng.random() < 0.5:
            continue
        payload = number(knob, random_value(rng, knob))
        kind = knob.number
        if rng.random() < 0.04:
            payload = (payload + rng.randbytes(8))[:rng.choice((0, 1, 2, 3, 4, 5, 8))]
        if rng.random() < 0.02:
            kind = rng.choice((0, PAD, EXT, 0x3fff, rng.randrange(0x4000)))
        if rng.random() < 0.05:
            kind |= rng.choice((NLA_F_NESTED, NLA_F_NET_BYTEORDER))
        length = rng.randrange(0, 20) if rng.random() < 0.01 else None
        attrs.append(nla(kind, payload, length=length))
    if attrs and rng.random() < 0.02:
        attrs.append(rng.choice(attrs))
    if not ext and rng.random() < 0.4:
        attrs.insert(rng.randrange(len(attrs) + 1),
                     nla(EXT | rng.choice((0, NLA_F_NESTED)), random_attrs(rng, 1)))
    data = b"".join(attrs)
    if rng.random() < 0.02:
        data += rng.randbytes(rng.randrange(1, 12))
    return data


def random_messages(bench):
    """Every one ends as predict() says: the state of the qdisc is known after each."""
    rng = random.Random(0xd0a1)
    bench.copy.delete()
    bench.subject.start(None)
    config = Config()
    accepted = 0
    for n in range(MESSAGES):
        verb = rng.choice(("change", "change", "change", "add", "replace"))
        options = random_attrs(rng, 0)
        outer = TCA_OPTIONS | rng.choice((0, NLA_F_NESTED))
        if verb == "add":
            bench.subject.delete()
        before = bench.subject.dump()
        try:
            want = predict(Config() if verb == "add" else config, options)
        except Refused:
            want = None
        answer = getattr(bench.subject, verb)(options, outer=outer)
        what = f"message {n}, {verb} {show(options)}"
        if want is None:
            check(answer.error in (errno.EINVAL, errno.ERANGE), f"{what}: accepted: {answer}")
            check(answer.text, f"{what}: refused without a word")
            same(bench.subject.dump(), before, f"{what}: dump after the refusal")
            if verb == "add":
                bench.subject.start(None)
                config = Config()
            continue
        same(answer, Answer(0, None, None), what)
        config = want
        accepted += 1
        same(bench.subject.options(), config.options(), f"{what}: dump")
        bench.restores()
    # Not a test of refusals alone, nor of acceptance alone.
    lib.note(f"{accepted} of {MESSAGES} messages accepted")
    check(MESSAGES // 5 < accepted < MESSAGES * 4 // 5, "the mixture of messages is lopsided")


add_test(f"random_messages_{MESSAGES}_times_end_as_predicted", random_messages)


@test
def module_after_all_this_has_no_users_left(bench):
    bench.subject.delete()
    bench.copy.delete()
    same(bench.refcnt(), bench.users_before, "users of the module")


if __name__ == "__main__":
    lib.main()
