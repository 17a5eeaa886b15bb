# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the companion qdiscs add to selftests/net/lib.py: loading their modules, a qdisc of any kind
under a shaper, TCP.

    load("pi2")                     DUALPI2_EXTRA/sch_pi2.ko, once; without DUALPI2_EXTRA by modprobe
    goes("pi2")                     remove it and load it again
    found(netns, dev, handle)       one qdisc of lib.qdisc_dump()
    request(netns, dev, handle, parent, kind, options, flags=ADD)    (errno, text) of a qdisc message
    Bulk(net, "cubic", 3)           that many TCP connections from snd to rcv; .run(seconds), .received
"""

import contextlib
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "net"))

import lib                                                                      # noqa: E402
from lib import Failure, Skip, expect, in_netns, run                                 # noqa: E402

ADD = lib.NLM_F_CREATE | lib.NLM_F_EXCL
TCP_CONGESTION = 13


def module(name):
    """Where the module of a companion is; None: wherever modprobe finds it."""
    directory = os.environ.get("DUALPI2_EXTRA")
    return os.path.join(directory, f"sch_{name}.ko") if directory else None


def load(*names):
    """Load companions' modules unless they are loaded."""
    for name in names:
        if not os.path.exists(f"/sys/module/sch_{name}"):
            path = module(name)
            if run(["insmod", path] if path else ["modprobe", f"sch_{name}"], check=bool(path)).returncode:
                raise Skip(f"need sch_{name}; `make extra` builds it, set DUALPI2_EXTRA to the directory")


def goes(name):
    """Remove a companion's module, of which there are no instances, and load it again.

    Namespaces of other tests go when the kernel has time for it.
    """
    for _ in range(200):
        if not run(["rmmod", f"sch_{name}"], check=False).returncode:
            break
        time.sleep(0.05)
    expect(not os.path.exists(f"/sys/module/sch_{name}"), "it is still there")
    load(name)


def found(netns, dev, handle="10:"):
    """One qdisc."""
    for qdisc in lib.qdisc_dump(netns, dev):
        if qdisc["handle"] == handle:
            return qdisc
    raise Failure(f"no qdisc {handle} on {dev}")


def request(netns, dev, handle, parent, kind, options, flags=ADD):
    """Add, change or replace a qdisc; (error number, text)."""
    return lib.tc_request(netns, lib.RTM_NEWQDISC, flags, dev, handle, parent, kind, options)


class Bulk:
    """TCP connections from snd to rcv that have always data to send; a context manager."""

    def __init__(self, net, congestion="cubic", number=1, address="10.2.0.1"):
        self.received = 0
        self.sink, self.block = bytearray(1 << 20), bytes(1 << 17)
        self.senders, self.receivers = [], []
        with in_netns(net.rcv):
            listener = socket.create_server((address, 0))
        with listener:
            for _ in range(number):
                with in_netns(net.snd):
                    sender = socket.socket()
                sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
                sender.settimeout(60)
                sender.connect(listener.getsockname())
                self.senders.append(sender)
                self.receivers.append(listener.accept()[0])
        for sock in self.senders + self.receivers:
            sock.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in self.senders:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for sock in self.senders + self.receivers:
            sock.close()

    def run(self, seconds):
        """Keep them busy for so long."""
        end = time.monotonic() + seconds
        sockets = {sock.fileno(): sock for sock in self.senders + self.receivers}
        with select.epoll() as poll:
            for sock in self.senders:
                poll.register(sock, select.EPOLLOUT)
            for sock in self.receivers:
                poll.register(sock, select.EPOLLIN)
            while (left := end - time.monotonic()) > 0:
                for number, event in poll.poll(left):
                    with contextlib.suppress(BlockingIOError):
                        if event & select.EPOLLIN:
                            self.received += sockets[number].recv_into(self.sink)
                        else:
                            sockets[number].send(self.block)
