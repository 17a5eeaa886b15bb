#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Which basic blocks of the module have run, from the maps of trace_pc/ that test programs left.

A block is where the compiler put its call of __sanitizer_cov_trace_pc(), if the source line is in this repository:
blocks of the kernel's inline functions are not, nor what its macros for RCU add under lockdep, nor reports of UBSAN.
A function that was inlined at several places has a copy of each block at each: it counts once, and is reached if all
of its blocks of that line were in one copy, because in some copies some cannot be (p' does not rise in an idle
queue). The packet path is everything but netlink, init and destroy. As KTAP: a test fails if a block has not run.
"""

import argparse
import collections
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

from ktap import report  # noqa: E402

HOOK = "__sanitizer_cov_trace_pc"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The tracepoint is the kernel's macros.
OURS = ("sch_dualpi2.c", *(name for part in ("net", "qdisc", "compat")
                           for name in sorted(glob.glob(f"include/{part}/*.h", root_dir=ROOT))))
# The core wants them and has no call for them: find() knows no class. What the tracepoint's macros make runs if it is
# switched on, which takes a tracer: the tests do that on stock kernels.
NEVER = ("dualpi2_leaf", "dualpi2_unbind_filter", "__traceiter_dualpi2_verdict", "__probestub_dualpi2_verdict")
# dualpi2_filter() with TC_ACT_CONSUMED, which no action gives a qdisc in 7.2: act_ct wants clsact. On 5.10
# filter_conntrack_takes_fragments_and_gives_the_packet_back goes there.
NOT_IN_7_2 = "return -2;"
# Macros in which lockdep reports a missing lock.
LOCKDEP = ("rcu_dereference", "rtnl_dereference")
# Where dualpi2_pi_step() is for an idle queue, what follows a delay above target: the delay is 0 there. Its copy for
# updates has no block on this line.
NOT_IDLE = "if (ratio > DUALPI2_LATE_MAX_RATIO)"
# Ways of inlined functions that cannot be gone here: 2^32 packets in one bucket (the unit tests do that); a quiet
# time at the end of a qdisc, which has just been ended; an overload that was over before it began, or began this
# nanosecond; the tracepoint, as above; 4 GiB within one update; a GSO packet no longer than its headers (the unit
# tests do both); an IP header beyond 64 KiB; a packet of the L4S queue whose IP header is gone; a parent that is not
# among the qdiscs of its device; the compiler's copy of a check of ranges for 8 and 32 bits without a range, which no
# option has.
NOT_HERE = ("high[bucket]++;", "kind = dualpi2_report_next(&q->params, &q->vars, now_ns, &report);",
            "if (kind != DUALPI2_REPORT_NONE)", "const struct tc_dualpi2_overload overload = {",
            ".overload = q->vars.overload,",
            "dualpi2_trace(sch, skb, sojourn_ns, verdict);", "b->run_bytes = 0;",
            "verdict = dualpi2_c_verdict(&q->params, &q->vars, &pkt);", "in_range = (value >= (u64)spec->min &&",
            "if (b->sum_bytes >= DUALPI2_BURSTS_BYTES_MAX)", "return dualpi2_link_bytes(link, ip_bytes);",
            "if (offset < 0 || offset > U16_MAX)", "if (offset < 0 || at < 0)",
            "hash_for_each_possible_rcu(dev->qdisc_hash,",
            'if (parent && (!strcmp(parent->ops->id, "qfq")')
# Functions of sch_dualpi2.c that no packet reaches. The checks of DUALPI2_DEBUG (dualpi2_verify_*) do not count.
CONTROL = re.compile(r"^dualpi2_(change|init|destroy|dump|dump_stats|parse|parse_attrs?|reject|put_attrs|leaf|"
                     r"find|bind_filter|unbind_filter|tcf_block|walk|module_init|module_exit|params_init|config_init|ramp_us|"
                     r"dump_class|dump_class_stats|counters|dropped|xstats|enqueued|catch_up|put_\w+|send_report|"
                     r"report_work|set_bucket_widths|sqrt_q32|hist_shift|delay_init|delay_bucket|delay_count|"
                     r"report_next|report_wait_ns|overload_ns|overload_present_ns)$")


Code = collections.namedtuple("Code", "name operands symbol target")

# What a called function may change.
SCRATCH = {"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"}


def functions(module):
    """For each function its name and {offset: Code}."""
    text = subprocess.run(["objdump", "-d", "-r", "-w", "-j", ".text", module], capture_output=True, text=True,
                          check=True).stdout
    for part in re.split(r"\n\n(?=[0-9a-f]+ <)", text)[1:]:
        codes = {}
        for line in part.splitlines()[1:]:
            match = re.match(r"^\s+([0-9a-f]+):\t[0-9a-f ]+\t(?:notrack )?(\S+)\s*([^\t]*)"
                             r"(?:\t.*R_X86_64_\S+\s+(\S+))?", line)
            if match:
                target = re.match(r"([0-9a-f]+) <", match[3])
                codes[int(match[1], 16)] = Code(match[2], match[3].strip(), re.split(r"[-+]", match[4] or "")[0],
                                                int(target[1], 16) if target and match[2].startswith("j") else None)
        yield re.search(r"<([^>]+)>:", part)[1], codes


def calls_hook(code, known):
    """Is this call one of HOOK, by name or by a register with that known value?"""
    register = re.fullmatch(r"\*%(\w+)", code.operands)
    return (known.get(register[1]) if register else code.symbol) == HOOK


def hooks(codes):
    """{offset behind a call of HOOK: does what follows only report an error?} of one function.

    User-mode Linux calls by a register, which may have been loaded anywhere before: so the values of registers
    are followed along all ways through the function.
    """
    order = sorted(codes)
    after = dict(zip(order, order[1:]))
    state, todo, found = {order[0]: {}}, [order[0]], set()
    while todo:
        here = todo.pop()
        code, known = codes[here], dict(state[here])
        if code.name.startswith("call"):
            if calls_hook(code, known):
                found.add(here)
            known = {k: v for k, v in known.items() if k not in SCRATCH}
        elif not code.name.startswith(("j", "cmp", "test", "push", "ret", "nop")):
            # The last operand is what it changes, 32 bits of it change the others too.
            if written := re.search(r"%(\w+)$", code.operands):
                name = written[1]
                name = "r" + name[1:] if name[0] == "e" else re.sub(r"^(r\d+)[dwb]$", r"\1", name)
                source = re.match(r"%(\w+),", code.operands)
                value = code.symbol or (known.get(source[1]) if code.name == "mov" and source else None)
                known.pop(name, None)
                if value:
                    known[name] = value
        ways = [code.target] if code.target in codes else []
        if here in after and not code.name.startswith(("jmp", "ret", "ud2")):
            ways.append(after[here])
        for way in ways:
            merged = known if way not in state else {k: v for k, v in state[way].items() if known.get(k) == v}
            if way not in state or merged != state[way]:
                state[way] = merged
                todo.append(way)
    # What was believed of a call on the way may have been withdrawn.
    return {after[n]: only_reports(codes, after, after[n]) for n in order
            if n in after and n in found and calls_hook(codes[n], state[n])}


def only_reports(codes, after, here):
    """What begins here does nothing but say what UBSAN found."""
    for _ in range(20):
        code = codes[here]
        if code.symbol.startswith("__ubsan_handle"):
            return True
        if code.symbol == HOOK or code.name.startswith(("j", "ret", "call")) or here not in after:
            return False
        here = after[here]
    return False


def blocks(module):
    """The same for all of .text, except for constructors that KASAN makes."""
    return {offset: report for name, codes in functions(module) if codes and not name.startswith("_sub_")
            for offset, report in hooks(codes).items()}


def places(module, offsets):
    """{offset: [(function, file, line)...] from the innermost inline function outwards}."""
    # The return address belongs to what follows; the call itself is before it.
    addresses = "\n".join(hex(offset - 1) for offset in offsets)
    text = subprocess.run(["addr2line", "-a", "-i", "-f", "-j", ".text", "-e", module], input=addresses,
                          capture_output=True, text=True, check=True).stdout
    found, here = {}, None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            here = found.setdefault(int(line, 16) + 1, [])
        else:
            path, number = next(lines).rsplit(":", 1)
            here.append((line, path, number))
    return found


def ours(path):
    return next((name for name in OURS if path.endswith(name)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("module", help="sch_dualpi2.ko, built with trace-pc and -g")
    parser.add_argument("maps", help="directory of the maps")
    args = parser.parse_args()

    paths = glob.glob(os.path.join(args.maps, "*.map"))
    reached = set()
    for path in paths:
        with open(path, "rb") as file:
            reached.update(n for n, byte in enumerate(file.read()) if byte)
    found = blocks(args.module)
    text_end = max(found)
    if strange := {n for n in reached if n <= text_end} - set(found):
        sys.exit(f"coverage: {len(strange)} places have run that are no blocks of {args.module}; remove {args.maps}")
    where = places(args.module, sorted(found))
    sources = {name: open(os.path.join(ROOT, name), encoding="utf-8").read().splitlines() for name in OURS}
    # (part, function, place): {copy: [reached or not, of its blocks]}
    copies = collections.defaultdict(lambda: collections.defaultdict(list))
    for offset in sorted(found):
        function, path, number = where[offset][0]
        name = ours(path)
        if not name or function in NEVER or found[offset]:
            continue
        line = int(number.split(" ")[0])
        if NOT_IN_7_2 in "".join(sources[name][line - 1:line + 1]) or \
           any(text in sources[name][line - 1] for text in (*LOCKDEP, NOT_IDLE, *NOT_HERE)):
            continue
        if any(frame[0].startswith("dualpi2_verify_") for frame in where[offset]):
            continue
        part = "control" if any(CONTROL.match(frame[0]) for frame in where[offset]) else "packet"
        copies[part, function, f"{name}:{number}"][tuple(where[offset][1:])].append(offset in reached)
    counts, missed = collections.Counter(), []
    for (part, function, place), blocks_of in copies.items():
        counts[part] += 1
        found = list(blocks_of.values())
        # Of the algorithm, what a change of options shares with the packet path is reached if that did.
        if part == "control" and place.startswith("include/"):
            found += copies.get(("packet", function, place), {}).values()
        if any(all(copy) for copy in found):
            counts[part + " reached"] += 1
        else:
            missed.append((part, f"{place} {function}"))
    lines = [f"maps of {len(paths)} programs", *(f"not reached, {part} path: {text}" for part, text in missed),
             *(f"{counts[part + ' reached']} of {counts[part]} blocks of the {part} path"
               for part in ("packet", "control"))]
    return report([(f"{part}_path_blocks_all_reached", counts[part] > 0 and counts[part] == counts[part + " reached"])
                   for part in ("packet", "control")], lines)


if __name__ == "__main__":
    sys.exit(main())
