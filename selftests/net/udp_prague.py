# SPDX-License-Identifier: GPL-2.0-only
"""Flows of udp_prague, an L4S sender over UDP that is not of this project, from snd to rcv of lib.Net.

The sender is the connecting side; both ends are programs in build/udp-prague, or in DUALPI2_UDP_PRAGUE.
"""
import contextlib
import os
import subprocess
import time

import lib

PROGRAMS = os.environ.get("DUALPI2_UDP_PRAGUE") or os.path.join(lib.ROOT, "build/udp-prague")


@contextlib.contextmanager
def udp_prague(net, *options):
    """A flow from snd to rcv; Failure if an end of it ends early."""
    ends = []
    try:
        for name, netns, args in (("receiver", net.rcv, ()), ("sender", net.snd, ("-c", "-m", "1472", *options))):
            with lib.in_netns(netns):
                ends.append(subprocess.Popen(
                    [os.path.join(PROGRAMS, f"udp_prague_{name}"), "-q", "-a", "10.2.0.1", "-p", "5201", *args],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            time.sleep(0.1)
        yield
        for end in ends:
            if end.poll() is not None:
                raise lib.Failure(f"{end.args[0]} ended with code {end.returncode}: {end.stderr.read().strip()}")
    finally:
        for end in reversed(ends):
            end.kill()
            end.communicate()


def need_udp_prague():
    """The programs must be there."""
    if not os.path.exists(os.path.join(PROGRAMS, "udp_prague_sender")):
        raise lib.Skip("need udp_prague: run scripts/udp-prague.sh build/udp-prague, which needs cargo or root, or set "
                       "DUALPI2_UDP_PRAGUE to the directory of its programs")
