#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
# suite: long kernel=debug kmemleak
"""
test_moving_buffers.py - tests of packets run again, and every packet buffer moves.

With fail_skb_realloc (6.13) the kernel moves a packet's buffer wherever it may: a pointer into it that is kept too long
is then a use after free, which KASAN reports. No distribution's kernel has it: scripts/debug-kernel.sh.
"""
import contextlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NET = os.path.join(os.path.dirname(HERE), "net")
sys.path.insert(0, NET)

import lib                          # noqa: E402
from lib import expect, test        # noqa: E402

KNOBS = "/sys/kernel/debug/fail_skb_realloc"


@contextlib.contextmanager
def buffers_move():
    """Each call after which a packet's data may be elsewhere moves it."""
    def write(knob, number):
        with open(f"{KNOBS}/{knob}", "w", encoding="ascii") as file:
            file.write(str(number))

    if not os.path.isdir(KNOBS):
        raise lib.Skip("the kernel has no fail_skb_realloc (6.13)")
    for knob, number in (("verbose", 0), ("times", -1), ("interval", 1), ("probability", 100)):
        write(knob, number)
    try:
        yield
    finally:
        write("probability", 0)


def passes_with_moving_buffers(program, *args):
    with buffers_move():
        # Their maps are those of their own runs.
        environment = {k: v for k, v in os.environ.items() if k != "DUALPI2_MAPS"} | {"DUALPI2_BUFFERS_MOVE": "1"}
        done = subprocess.run([sys.executable, os.path.join(NET, program), *args], capture_output=True, text=True,
                              check=False, env=environment)
    failed = re.findall(r"^not ok.*$", done.stdout, re.M)
    passed = len(re.findall(r"^ok (?!.* # SKIP)", done.stdout, re.M))
    lib.note(f"{passed} passed with moving buffers")
    expect(not failed and not done.returncode and passed, f"{failed or done.stderr[-1000:]}")


@test("fail_skb_realloc")
def packets_with_buffers_that_move_byte_exact():
    passes_with_moving_buffers("test_packets.py")


@test("fail_skb_realloc")
def hostile_packets_with_buffers_that_move_byte_exact():
    for program in ("test_gso.py", "test_tunnels.py", "test_pages.py", "test_stack.py"):
        passes_with_moving_buffers(program)


@test("fail_skb_realloc")
def accounts_of_gso_with_buffers_that_move_agree():
    passes_with_moving_buffers("test_accounts.py", "-k", "gso", "-k", "requeue")


@test("fail_skb_realloc")
def classification_with_buffers_that_move_is_the_same():
    passes_with_moving_buffers("test_aqm_classify.py")


if __name__ == "__main__":
    lib.main()
