#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""test_netlink_nests.py - the nests of attributes of dualpi2, malformed ones too, its dump, and random messages.

Each random message must end as predict() of messages.py says.
"""
import errno
import random
import struct

import lib
from messages import (
    BETA, BY_KEY, COUPLING, C_PROTECTION, Config, EXT, EXT_BANDWIDTH, EXT_BURST_MAX, EXT_BYPASS, EXT_FRAMING,
    EXT_HIST_C, EXT_HIST_L, EXT_INGRESS, EXT_L4S, EXT_MPU, EXT_NEXT, EXT_NQB, EXT_OVERHEAD, EXT_PAD, EXT_P_CMAX,
    EXT_QPROTECT, EXT_QPROTECT_DELAY, EXT_QPROTECT_RATE, EXT_QPROTECT_SCORE, EXT_RAMP_US, EXT_REPORT, EXT_SIGNAL,
    FRAME, KNOBS, LIMIT, MEMORY_LIMIT, MIN_QLEN_STEP, PAD, Refused, SPLIT_GSO, STEP_PKTS, STEP_US, TUPDATE,
    add_test, check, culprit, encode, find, module_has_no_users_left, number, predict, same, show, test,
)
from netlink import (
    COUNTERS, DELAY, EXT_MAGIC, EXT_OFFSET, EXT_XSTATS, NLA_F_NESTED, NLA_F_NET_BYTEORDER, OVERLOAD, QUEUE_COUNTERS,
    QUEUE_DELAY, QUEUE_HIST, STATS_C, STATS_L, STATS_LINK, STATS_OVERLOAD, TCA_OPTIONS, TCA_STATS2, TCA_STATS_APP,
    TCA_XSTATS, TCMSG_LEN, XSTATS, Answer,
)
from netlink import attr as nla
from netlink import attr_list as attributes

UNKNOWN = (21, 22, 100, EXT - 1, EXT + 1, 0x3fff)


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
        value = bad.min - 1 if bad.min else bad.max + 1
        if value >= 2 ** (8 * bad.size):
            continue
        good = b"".join(encode(k, k.max) for k in KNOBS
                        if not k.ext and k is not bad and k.number != STEP_PKTS)
        bench.refused(good + encode(bad, value), bad.texts, len(good) + culprit(bad))


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
    """A nest may end with its last attribute's payload; the kernel's parser accepts that."""
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
          (EXT_NQB, 8), (EXT_BURST_MAX, 4), (EXT_BYPASS, 1), (EXT_QPROTECT, 1), (EXT_QPROTECT_DELAY, 4),
          (EXT_QPROTECT_SCORE, 4), (EXT_QPROTECT_RATE, 8)], "the extension")


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
    edges = (knob.min - 1, knob.min, knob.min + 1, knob.max - 1, knob.max,
             knob.max + 1, 0, 2 ** (8 * knob.size) - 1)
    if rng.random() < 0.85:
        # Most by size, not by value, so that small numbers are as likely as great ones.
        value = rng.randrange(knob.min, knob.max + 1) >> rng.randrange(8 * knob.size)
        return max(value, knob.min)
    return max(min(knob.min, 0), min(rng.choice(edges), 2 ** (8 * knob.size) - 1))


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


add_test("module_after_all_this_has_no_users_left", module_has_no_users_left)

if __name__ == "__main__":
    lib.main()
