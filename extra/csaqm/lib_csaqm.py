# SPDX-License-Identifier: GPL-2.0-only
"""Settings that the tests of csaqm and vdq_csaqm share.

What is expected is worked out by lib_values.Model, which knows each record of a virtual queue and sorts them. Most of
it is counted with a gate in front, behind which nothing moves: there is no time in it. Where time is part of the
question, kernels of scripts/debug-kernel.sh, on which computing takes none, agree to the last packet.

Packets have their values from the mark of a packet socket. This is not the place for the arithmetic of one virtual
queue (unit/), nor for what values are good for (selftests/lab).

DUALPI2_EXTRA is the directory with sch_csaqm.ko and sch_ppv.ko.
"""

import contextlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))

from lib_values import ECNS, KINDS, KNOBS, LONGEST_US, Model, Wire, ecn_of, primed

import frames
from lib import expect_equal

MBIT = 125000
# Nothing gets a signal, nothing is dropped by the buffers.
CALM = {kind: {name: LONGEST_US for name in KNOBS[kind] if name.startswith(("target", "buffer"))} for kind in KINDS}
# A threshold that was computed stays for as long as a test takes.
SLOW = {"tupdate": LONGEST_US}
ROOMY = {kind: {name: LONGEST_US for name in KNOBS[kind] if name.startswith("buffer")} | {"limit": 100000}
         for kind in KINDS}


@contextlib.contextmanager
def gated(kind, **knobs):
    """A wire behind a gate at which a packet waits, and the model of it."""
    with Wire(kind, gate=True, **knobs) as wire:
        model = Model(kind, **knobs)
        primed(wire, model)
        yield wire, model


def refresh(wire):
    """Have the thresholds computed now; the statistics with them."""
    wire.set(bandwidth=wire.knobs["bandwidth"])
    return wire.stats()


def text_of(case):
    return "_".join(case)


def fill(wire, model, rng, count, values, ecns=ECNS, sizes=(342, 700, 1014, 1514)):
    """Random packets into both."""
    sent = {}
    for _ in range(count):
        frame = wire.frame(rng.choice(sizes), rng.choice(ecns))
        number, value = frames.number_of(frame), rng.choice(values)
        taken = wire.send(frame, value=value, may_drop=True)
        expect_equal(bool(taken), model.arrive(number, len(frame), value, ecn_of(frame)), f"packet {number} taken")
        sent[number] = (len(frame), value, ecn_of(frame))
    return sent


def wire_frame(number, size, ecn):
    """What Wire.frame() made."""
    return frames.ether(number, frames.ETH_P_IP, frames.ipv4(frames.udp(bytes(size - 42)), ecn, frag=0x4000))


def carried(case):
    return f"{case[0]}_{('mark', 'ipv4_id')[case[1]]}"
