#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick
"""Tests of the reader of the uapi header: that its layouts are those of the compiler, and that the ABI did not change.

The tables here are written by hand, and do not follow the header. KTAP on stdout.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from ktap import expect_equal as equal, main, test  # noqa: E402
from netlink import HEADER, ROOT, layout  # noqa: E402

# Structs: fields by size in bytes, "-" for a signed one. Append only.
STRUCTS = {
    "xstats": "4 prob delay_c delay_l packets_in_c packets_in_l maxq ecn_mark step_marks -4 credit "
              "4 memory_used max_memory_used memory_limit",
    "counters": "8 arrived_not_ect arrived_ect1 arrived_ect0 arrived_ce arrived_bytes presented presented_bytes "
                "forwarded forwarded_bytes queued queued_bytes marked_classic marked_coupled marked_native "
                "not_ect_dropped_limit not_ect_dropped_memory not_ect_dropped_early not_ect_dropped_aqm "
                "not_ect_dropped_overload not_ect_dropped_purge ect_dropped_limit ect_dropped_memory ect_dropped_early "
                "ect_dropped_aqm ect_dropped_overload ect_dropped_purge dropped_arrival_bytes dropped_aqm_bytes "
                "dropped_purge_bytes",
    "delay": "8 sum_ns max_ns beyond 4 unit_ns buckets generation pad",
    "overload": "8 count total_ns start_ns duration_ns reports 4 now pad",
    "link": "8 drain_rate throttled nqb_arrived nqb_dropped 4 burst_ns ramp_min_ns ramp_max_ns limit_pkts "
            "nqb_limit_bytes target_ns",
    "qprotect": "8 redirected redirected_bytes sanctions scored scored_shared alloc_failed "
                "4 sanctioned buckets_used buckets score_max_us",
    "qprotect_flow": "4 hash score_us redirected 1 sanctioned family protocol shared " +
                     " ".join(f"{end}.{number}" for end in ("src", "dst") for number in range(16)) +
                     " 2 sport dport",
    "ext_xstats": "4 magic size 8 " + " ".join(f"reserved.{number}" for number in range(32)) +
                  " unparsed filter_dropped gso_failed mark_failed reserved2.0 reserved2.1 "
                  "4 reserved3 prob_c prob_cl pad",
}
NUMBERS = {
    "TC_DUALPI2_EXT_XSTATS_OFFSET": 256, "TC_DUALPI2_EXT_XSTATS_MAGIC": 0x64703278, "TCA_DUALPI2_EXT": 0x0d50,
    "TCA_DUALPI2_STATS_C": 2, "TCA_DUALPI2_STATS_L": 3, "TCA_DUALPI2_STATS_OVERLOAD": 4, "TCA_DUALPI2_STATS_LINK": 5,
    "TCA_DUALPI2_STATS_QPROTECT": 6, "TCA_DUALPI2_STATS_QPROTECT_FLOWS": 7,
    "TCA_DUALPI2_QUEUE_COUNTERS": 2, "TCA_DUALPI2_QUEUE_DELAY": 3, "TCA_DUALPI2_QUEUE_HIST": 4,
    "DUALPI2_CMD_OVERLOAD_BEGIN": 1, "DUALPI2_CMD_OVERLOAD_END": 2,
}
REPORT = {"ifindex": (2, "I"), "handle": (3, "I"), "parent": (4, "I"), "start_ns": (5, "Q"), "duration_ns": (6, "Q"),
          "count": (7, "I")}


def rows(found):
    """(name, offset, size) of each field."""
    at, out = 0, []
    for name, form in found.fields:
        size = layout.struct.calcsize("=" + form)
        out.append((name, at, -size if form.islower() else size))
        at += size
    return out


@test
def structs_and_numbers_have_not_changed():
    for name, text in STRUCTS.items():
        want, at, size = [], 0, 0
        for word in text.split():
            if word.lstrip("-").isdigit():
                size = int(word)
            else:
                want.append((word, at, size))
                at += abs(size)
        equal(rows(HEADER.layout("tc_dualpi2_" + name)), want, name)
    for name, number in NUMBERS.items():
        equal(HEADER.number(name), number, name)
    equal(HEADER.attributes("DUALPI2_A_"), REPORT)


@test
def layouts_are_those_of_the_compiler():
    lines, want = [], []
    for name in STRUCTS:
        found = HEADER.layout("tc_dualpi2_" + name)
        for field, at, size in rows(found):
            place = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in field.split("."))[1:]
            lines.append(f'printf("{name} %zu %zu\\n", offsetof(struct tc_dualpi2_{name}, {place}), '
                         f"sizeof(((struct tc_dualpi2_{name} *)0)->{place}));")
            want.append(f"{name} {at} {abs(size)}")
        lines.append(f'printf("{name} %zu\\n", sizeof(struct tc_dualpi2_{name}));')
        want.append(f"{name} {found.size}")
    lines += [f'printf("%u\\n", {name});' for name in NUMBERS]
    want += [str(HEADER.number(name)) for name in NUMBERS]
    source = ("#include <stddef.h>\n#include <stdio.h>\n#include <linux/dualpi2.h>\nint main(void)\n{\n"
              + "\n".join(lines) + "\nreturn 0;\n}\n")
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "layout")
        subprocess.run(["cc", "-I" + os.path.join(ROOT, "include/uapi"), "-x", "c", "-o", program, "-"], input=source,
                       text=True, check=True)
        printed = subprocess.run([program], text=True, capture_output=True, check=True).stdout
    equal(printed.split("\n")[:-1], want)


@test
def struct_that_a_compiler_would_pad_is_refused():
    for fields in ([("a", "I"), ("b", "Q")], [("a", "Q"), ("b", "I")]):
        try:
            layout.Layout(fields)
        except ValueError:
            continue
        raise AssertionError(f"{fields} was read")


if __name__ == "__main__":
    main()
