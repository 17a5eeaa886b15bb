# SPDX-License-Identifier: GPL-2.0-only
"""Raw messages for the netlink interface of dualpi2, what they must lead to, and the devices that get them.

KNOBS is written by hand, the only such table of the options in the tests in Python. The one that other tests use
(selftests/lib/options.py) is read from the sources of the module, and test_netlink.py compares it with KNOBS.
"""
import ctypes
import errno
import functools
import struct
import sys
from collections import namedtuple

import lib
from lib import Failure
from netlink import (
    IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, NLA_F_NESTED, NLA_TYPE_MASK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE,
    NLMSG_HDRLEN, NOATM, RAW, RTM_DELQDISC, RTM_GETQDISC, RTM_NEWLINK, RTM_NEWQDISC, TC_H_ROOT, TCA_KIND,
    TCA_OPTIONS, TCMSG_LEN, Answer, Socket, align, tcmsg,
)
from netlink import attr as nla
from netlink import attr_list as attributes

# include/uapi/linux/dualpi2.h
LIMIT, MEMORY_LIMIT, TARGET, TUPDATE, ALPHA, BETA, STEP_PKTS, STEP_US, MIN_QLEN_STEP = range(1, 10)
COUPLING, DROP_OVERLOAD, DROP_EARLY, C_PROTECTION, ECN_MASK, SPLIT_GSO, PAD = range(10, 17)
EXT = 0x0d50
EXT_L4S, EXT_RAMP_US, EXT_SIGNAL, EXT_P_CMAX, EXT_HIST_C, EXT_HIST_L, EXT_REPORT, EXT_PAD = range(1, 9)
EXT_BANDWIDTH, EXT_FRAMING, EXT_OVERHEAD, EXT_MPU, EXT_INGRESS, EXT_NQB, EXT_BURST_MAX, EXT_BYPASS = range(9, 17)
EXT_QPROTECT, EXT_QPROTECT_DELAY, EXT_QPROTECT_SCORE, EXT_QPROTECT_RATE = range(17, 21)
EXT_NEXT = EXT_QPROTECT_RATE + 1

U32_MAX = 0xffffffff
TIME_MAX_US = U32_MAX // 1000           # every time is held in 32 bits of nanoseconds
FRAME = 1500 + 14                       # a dummy device's MTU with its link-layer header
OR_ZERO = (EXT_REPORT, EXT_BANDWIDTH)    # 0 is none, and below the minimum value

# name: as in the names of the tests; ext: in the nest TCA_DUALPI2_EXT; texts: what the kernel calls
# it, and how it puts the range, both as a user of tc knows them.
Knob = namedtuple("Knob", "name ext number size min max default texts")
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
    Knob("qprotect", 1, EXT_QPROTECT, 1, 0, 2, 0,
         ("qprotect", "0 (no_qprotect), 1 (qprotect) or 2 (qprotect_hash)")),
    Knob("qprotect_delay", 1, EXT_QPROTECT_DELAY, 4, 1, TIME_MAX_US, 1000, ("qprotect_delay", "1 us to 4294967 us")),
    Knob("qprotect_score", 1, EXT_QPROTECT_SCORE, 4, 1, 5000000, 4000, ("qprotect_score", "1 us to 5000000 us")),
    Knob("qprotect_rate", 1, EXT_QPROTECT_RATE, 8, 1000, 125000000000, 524288,
         ("qprotect_rate", "1000 to 125000000000 bytes/s")),
)
BY_KEY = {(knob.ext, knob.number): knob for knob in KNOBS}


def number(knob, value):
    """As it stands in an attribute; of a knob with a sign, -1 is 2^32 - 1, too."""
    return (value % (1 << 8 * knob.size)).to_bytes(knob.size, sys.byteorder)


def value_of(knob, payload):
    return int.from_bytes(payload, sys.byteorder, signed=knob.min < 0)


def fits(knob, value):
    return knob.min <= value <= knob.max or (knob.ext and knob.number in OR_ZERO and value == 0)


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
        """Start with a new qdisc of these options."""
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
        self.users_before = lib.users()
        # No option has its default, so that a rejected change that resets one is noticed.
        self.base = Config()
        for knob, value in zip(KNOBS, (2000, 3000000, 20000, 21000, 50, 900, None, 2000, 3, 4, 0, 1,
                                       20, 3, 0, 0, 300, 1, 30, 100, 20, 500000)):
            if value is not None:
                self.base.set(knob, value)

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

    def refused(self, options, texts=(), offset=None, **kwargs):
        """OPTIONS are refused by add, change and replace, with these texts, and nothing happens.

        OFFSET is that of the culprit in OPTIONS, 'options' for TCA_OPTIONS itself.
        """
        where = OPTIONS_AT if offset == "options" else None if offset is None else PAYLOAD_AT + offset
        self.copy.delete()
        self.subject.delete()
        before, refcnt = self.subject.dump(), lib.users()
        self.check_refusal(self.subject.add(options, **kwargs), texts, where, "add")
        same(self.subject.dump(), before, "dump after the refused add")
        same(lib.users(), refcnt, "users of the module after the refused add")
        self.subject.start(self.base.options())
        before = self.subject.dump()
        for verb in ("change", "replace"):
            answer = getattr(self.subject, verb)(options, **kwargs)
            self.check_refusal(answer, texts, where, verb)
            same(self.subject.dump(), before, f"dump after the refused {verb}")

    @staticmethod
    def check_refusal(answer, texts, offset, what):
        check(answer.error in (errno.EINVAL, errno.ERANGE),
              f"{what}: error {answer.error} ({answer.text}), expected EINVAL or ERANGE")
        check(answer.text and answer.text.startswith("dualpi2: "),
              f'{what}: text {answer.text!r} does not begin with "dualpi2: "')
        for word in texts:
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
    bench.refused(encode(knob, value), knob.texts, culprit(knob))


def refuse_length(bench, knob, length):
    payload = (number(knob, knob.max) + bytes(8))[:length]
    bench.refused(wrap(knob, nla(knob.number, payload)), ("wrong length", knob.texts[0]),
                  culprit(knob))


def refuse_twice(bench, knob, first, second):
    attrs = [nla(knob.number, number(knob, value)) for value in (first, second)]
    bench.refused(wrap(knob, b"".join(attrs)), ("twice", knob.texts[0]),
                  culprit(knob) + len(attrs[0]))


def accept_flag(bench, knob, flag):
    """Flags of the type field say nothing about a number; nla_type() drops them."""
    attr = nla(knob.number | flag, number(knob, knob.max))
    bench.accepted_knobs(wrap(knob, attr), (knob, knob.max))


def refuse_elsewhere(bench, knob):
    """The number of this knob in the other nest, where it is another knob or none."""
    attr = nla(knob.number, number(knob, knob.max))
    other = BY_KEY.get((1 - knob.ext, knob.number))
    if other and other.size == knob.size:
        raise Failure("this knob has a namesake of its size: choose another test")
    if knob.ext:
        bench.refused(attr, (), 0)
    else:
        bench.refused(nla(EXT | NLA_F_NESTED, attr), (), 4)


def module_has_no_users_left(bench):
    bench.subject.delete()
    bench.copy.delete()
    same(lib.users(), bench.users_before, "users of the module")
