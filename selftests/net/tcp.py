# SPDX-License-Identifier: GPL-2.0-only
"""TCP flows from snd to rcv of lib.Net."""
import contextlib
import socket
import struct
import threading

import lib

# For SO_RCVLOWAT. In user-mode Linux a system call costs more than a packet, so receivers do not wake up for each.
READ_BYTES = 1 << 14


class Tcp:
    """A flow that always has something to send; .received bytes so far."""

    def __init__(self, net, port, cc):
        self.received = 0
        with lib.in_netns(net.rcv), socket.create_server(("10.2.0.1", port)) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
            with lib.in_netns(net.snd):
                self.out = socket.socket()
                self.out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
                self.out.connect(("10.2.0.1", port))
            self.inside = listener.accept()[0]
        self.inside.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        with contextlib.suppress(OSError):
            while True:
                self.out.sendall(bytes(10000))

    def _receive(self):
        with contextlib.suppress(OSError):
            while got := self.inside.recv(1 << 16):
                self.received += len(got)

    def end(self):
        """Reset the connection: no FIN goes through the queue."""
        for sock in (self.out, self.inside):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(30)
        self.out.close()
        self.inside.close()


@contextlib.contextmanager
def dctcp(net, number=1):
    """DCTCP as ECT(1): its codepoint is written at the sender. A flow of 10 ms RTT, and what it received."""
    with lib.in_netns(net.snd), open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
        file.write("1")
    with lib.in_netns(net.rcv), open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
        file.write("1")
    lib.tc("qdisc add dev eth0 root handle 1: netem limit 10000 delay 10ms", net.rcv)
    lib.run(["tc", "-batch", "-"], net.snd, stdin="""\
qdisc add dev eth0 clsact
filter add dev eth0 egress protocol ip u32 match ip protocol 6 0xff \
action pedit ex munge ip dsfield set 1 retain 3 pipe csum ip
""")
    flows = []
    try:
        flows = [Tcp(net, 6000 + one, "dctcp") for one in range(number)]
        yield flows
    finally:
        for flow in flows:
            flow.end()
        lib.tc("qdisc del dev eth0 clsact", net.snd)
        lib.tc("qdisc del dev eth0 root", net.rcv)
