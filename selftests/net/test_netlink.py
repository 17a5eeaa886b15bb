#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug
# suite: long kernel=stock
"""test_netlink.py - the options of dualpi2 against raw messages, good and bad.

Every attribute is sent absent, too short, too long, at and beyond both ends of its range, twice and
in the wrong place, to `add` and to `change`. What is accepted must be dumped exactly as sent, and the
dump sent back must give the same dump. What is rejected must name the option and the range, and
must leave the whole dump as it was, byte for byte.

It sends no packet. Other programs test what an option does to packets, and what tc makes of these messages.
"""
import random
import struct

import lib
from messages import (
    ALPHA, BETA, BY_KEY, C_PROTECTION, Config, ECN_MASK, EXT, EXT_BANDWIDTH, EXT_BYPASS, EXT_L4S, EXT_RAMP_US,
    EXT_REPORT, KNOBS, LIMIT, MEMORY_LIMIT, OR_ZERO, STEP_PKTS, STEP_US, TARGET, TIME_MAX_US, TUPDATE, U32_MAX,
    accept_flag, accept_value, add_test, encode, number, refuse_elsewhere, refuse_length, refuse_twice, refuse_value,
    module_has_no_users_left, same, test, wrap,
)
from netlink import (
    NLA_F_NESTED, TCA_OPTIONS,
)
from netlink import attr as nla
from options import OPTIONS

def knob_tests():
    for knob in KNOBS:
        top = 2 ** (8 * knob.size - (knob.min < 0)) - 1
        add_test(f"{knob.name}_minimum_accepted", accept_value, knob, knob.min)
        add_test(f"{knob.name}_maximum_accepted", accept_value, knob, knob.max)
        if knob.min:
            add_test(f"{knob.name}_below_minimum_refused", refuse_value, knob, knob.min - 1)
            if knob.min > 1 and knob.ext and knob.number in OR_ZERO:
                add_test(f"{knob.name}_zero_accepted", accept_value, knob, 0)
            elif knob.min > 1:
                add_test(f"{knob.name}_zero_refused", refuse_value, knob, 0)
        if knob.max < top:
            add_test(f"{knob.name}_above_maximum_refused", refuse_value, knob, knob.max + 1)
            if knob.max + 1 < top:
                add_test(f"{knob.name}_all_bits_set_refused", refuse_value, knob, top)
        for length, what in ((0, "zero_length"), (knob.size - 1, "one_byte_short"),
                             (knob.size + 1, "one_byte_long"), (2 * knob.size, "doubled_length")):
            if length or what == "zero_length":
                add_test(f"{knob.name}_{what}_refused", refuse_length, knob, length)
        add_test(f"{knob.name}_twice_the_same_refused", refuse_twice, knob,
                 knob.max, knob.max)
        add_test(f"{knob.name}_twice_different_refused", refuse_twice, knob,
                 knob.min, knob.max)
        add_test(f"{knob.name}_flagged_nested_accepted_as_a_number", accept_flag, knob, NLA_F_NESTED)
        other = BY_KEY.get((1 - knob.ext, knob.number))
        if knob.min < 0:
            add_test(f"{knob.name}_zero_accepted", accept_value, knob, 0)
        if not other or other.size != knob.size:
            add_test(f"{knob.name}_in_the_other_nest_refused", refuse_elsewhere, knob)


knob_tests()


@test
def options_of_the_sources_are_those_of_this_table(_):
    rows = [(o.name if o.word == "step_thresh" else o.word, o.ext, o.number, struct.calcsize("=" + o.format), o.min,
             o.max, o.default, (o.word, o.range)) for o in OPTIONS.values()]
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
    for value in (1, 1000, knob.min - 1):
        bench.refused(encode(knob, value), knob.texts)
        more = nla(EXT_L4S, b"\0") + nla(EXT_REPORT, number(knob, value))
        bench.refused(encode(BY_KEY[0, LIMIT], 5) + wrap(knob, more), knob.texts)
    accept_value(bench, knob, knob.min)


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
        for value in (knob.max, knob.min, *none):
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


EXCLUDE = ("bypass conflicts with bandwidth", "the shaper must see every packet")


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


add_test("module_after_all_this_has_no_users_left", module_has_no_users_left)

if __name__ == "__main__":
    lib.main()
