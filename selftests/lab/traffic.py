#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make the traffic of one job: both ends of every flow, in one process.

Started by dumbbell.py in the machine, between the namespaces snd and rcv that it has laid out. Congestion control and
ECN of TCP come from the routes, pacing from fq; here data is only offered (TCP, as much as the kernel takes), sent at a
rate (UDP) or asked for object by object (web). No control connection crosses the link, which an overloaded one would
break.

It measures the completion times of web objects, from connect() until the receiver has all the data and its end, and
reads TCP_INFO of each other TCP flow once a second. Packets are measured by delaymeter.
"""

import csv
import ctypes
import errno
import heapq
import itertools
import json
import math
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "net"))

from job import UDP_PRAGUE, bits_per_second                             # noqa: E402
from lib import in_netns                                                # noqa: E402

PORT = 5201
SO_MAX_PACING_RATE = 47
TOS = {"not-ect": 0, "ect1": 1, "ect0": 2}
# Ethernet, IPv4 and UDP headers, which fq counts and a rate of UDP does not.
UDP_HEADERS_BYTES = 14 + 20 + 8
UDP_PRAGUE_PAYLOAD = 1472  # of a packet of udp_prague, at most: as long as one of TCP
# Of struct tcp_info: tcpi_rtt (us, smoothed), tcpi_snd_cwnd (packets), tcpi_bytes_acked.
TCP_INFO = struct.Struct("=68xI8xI36xQ")
RESET = b"\x01\0\0\0\0\0\0\0"  # struct linger: on, 0 s
SPREAD_S = 0.005  # flows of a group start within it, by the seed
# A TCP receiver wakes up when so much has arrived, a UDP sender when half of its buffer is free.
# Packet by packet, system calls took up to three quarters of a run.
READ_BYTES = 1 << 14
UDP_BUFFER_BYTES = 1 << 16


def pareto(u, alpha, least, most):
    """Size in bytes of a web object for u in [0, 1): Pareto, bounded to least..most by inversion."""
    return math.floor(least * (1 - u * (1 - (least / most) ** alpha)) ** (-1 / alpha))


class Timer:
    """A timerfd: wakes the loop to the nanosecond, where epoll's own timeout knows milliseconds."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self):
        self.fd = self.libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def fileno(self):
        """For epoll."""
        return self.fd

    def set(self, seconds):
        """Go off at this time of CLOCK_REALTIME; at once if it is past."""
        whole = max(int(seconds), 1)
        spec = struct.pack("qqqq", 0, 0, whole, int((seconds - whole) * 1e9))
        self.libc.timerfd_settime(self.fd, 1, spec, None)

    def drain(self):
        """Forget that it went off."""
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            pass


class Traffic:
    """The flows of a job and the loop that serves them; times are seconds after the start of the run."""

    def __init__(self, job, udp_prague=None):
        """udp_prague: the directory of its programs, where a flow is one."""
        self.job, self.udp_prague_dir, self.programs = job, udp_prague, []
        self.poll = select.epoll()
        self.serve = {}                     # file descriptor -> function
        self.due = []                       # (time, number, function)
        self.numbers = itertools.count()
        self.begin = 0.0
        self.block = bytes(1 << 18)
        self.sink = bytearray(1 << 20)
        self.objects = {}                   # (address, port) of the sender -> row of web.csv: what has not ended
        self.done = []                      # rows of web.csv
        self.sampled = {}                   # socket -> flow: TCP flows that run
        self.samples = []                   # rows of tcp.csv
        self.failed = []                    # TCP flows that ended by themselves, and why
        self.running = True

    def now(self):
        """Seconds after the start of the run."""
        return time.clock_gettime(time.CLOCK_REALTIME) - self.begin

    def at(self, when, function):
        """Call a function at a time, or as soon as that is past."""
        heapq.heappush(self.due, (when, next(self.numbers), function))

    def watch(self, sock, events, function):
        """Call function(events) whenever one of these events of epoll is there."""
        self.serve[sock.fileno()] = function
        self.poll.register(sock.fileno(), events)

    def forget(self, sock):
        """Close a socket; only its own function and what is due may do so, as its number is used again at once."""
        self.sampled.pop(sock, None)
        if self.serve.pop(sock.fileno(), None):
            self.poll.unregister(sock.fileno())
        sock.close()

    # Receivers

    def receive(self, sock, ended=None):
        """Take in what has come; ended() when the other side has closed."""
        try:
            # MSG_TRUNC: TCP counts the bytes and does not copy them.
            if sock.recv_into(self.sink, 0, socket.MSG_TRUNC):
                return
        except ConnectionError:
            ended = None
        if ended:
            ended()
        self.forget(sock)

    def accept(self, listener):
        """Take a connection; if it brings a web object, its end is the completion."""
        sock, peer = listener.accept()
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)
        ended = None
        if peer in self.objects:
            def ended():
                group, start, size, _ = self.objects.pop(peer)
                self.done.append((group, start, size, self.now() - start))
        self.watch(sock, select.EPOLLIN, lambda _: self.receive(sock, ended))

    def listen(self, address):
        """Take connections to an address."""
        listener = socket.create_server((address, PORT), backlog=4096)
        self.watch(listener, select.EPOLLIN, lambda _: self.accept(listener))

    def start(self, name, *words, **pipes):
        """Start a program of udp_prague in the present namespace; it runs until end_programs()."""
        program = subprocess.Popen([os.path.join(self.udp_prague_dir, name), "-q", "-p", str(PORT), *words],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **pipes)
        self.programs.append(program)
        return program

    def end_programs(self):
        """Stop the programs, the senders first."""
        for program in reversed(self.programs):
            program.kill()
            program.wait()

    # Senders

    def tcp(self, flow):
        """One flow that has always data to send."""
        if flow["cc"] in UDP_PRAGUE:
            self.udp_prague(flow)
            return
        sock = self.connect(flow)
        self.sampled[sock] = flow

        def more(events):
            if events & (select.EPOLLERR | select.EPOLLHUP):
                self.sample(sock, self.now())
                # An overloaded link may lose a flow; it gets no more, and the run goes on.
                error = os.strerror(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                self.failed.append({"group": flow["group"], "src": flow["src"], "second": self.now(), "error": error})
                self.forget(sock)
                return
            try:
                sock.send(self.block)
            except (BlockingIOError, ConnectionError, TimeoutError):
                pass

        self.watch(sock, select.EPOLLOUT, more)
        if flow["stop"] is not None:
            self.at(flow["stop"], lambda: self.cut(sock))

    def cut(self, sock):
        """Stop a TCP flow now, with what it has not sent yet, if it has not failed before."""
        if sock.fileno() < 0:
            return
        self.sample(sock, self.sampled[sock]["stop"])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.forget(sock)

    def sample(self, sock, when):
        """Keep what TCP says of a flow, as of this second of the run; nothing before its connection is established."""
        rtt_us, cwnd, acked = TCP_INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size))
        if rtt_us:
            flow = self.sampled[sock]
            self.samples.append((f"{when:.6f}", flow["group"], flow["src"], rtt_us, cwnd, acked))

    def sample_all(self, when):
        """Sample each TCP flow now, and once a second until the end of the run."""
        for sock in self.sampled:
            self.sample(sock, when)
        if when < self.job["warmup"] + self.job["seconds"]:
            self.at(when + 1, lambda: self.sample_all(when + 1))

    def udp_prague(self, flow):
        """The same over UDP, by udp_prague, which connects to its receiver and paces by itself."""
        sender = self.start("udp_prague_sender", "-c", "-a", flow["dst"], "-m", str(UDP_PRAGUE_PAYLOAD),
                            *UDP_PRAGUE[flow["cc"]], stderr=subprocess.PIPE)
        said = []

        def ended(_):
            said.append(os.read(sender.stderr.fileno(), 4096))
            if not said[-1]:
                words = b"".join(said).decode(errors="replace").strip()
                self.failed.append({"group": flow["group"], "src": flow["src"], "second": self.now(),
                                    "error": words or f"udp_prague_sender ended with code {sender.wait()}"})
                self.forget(sender.stderr)

        def stop():
            if not sender.stderr.closed:
                self.forget(sender.stderr)
                sender.kill()

        self.watch(sender.stderr, select.EPOLLIN, ended)
        if flow["stop"] is not None:
            self.at(flow["stop"], stop)

    def udp(self, flow):
        """One flow at a constant rate of payload, paced packet by packet by fq."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind((flow["src"], 0))
        sock.connect((flow["dst"], PORT))
        payload = bytes(flow["payload"])
        rate = bits_per_second(flow["rate"]) / 8 * (1 + UDP_HEADERS_BYTES / len(payload))
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, round(rate))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, TOS[flow["ecn"]])
        # Small: what is in the buffer when the flow ends is still sent.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UDP_BUFFER_BYTES)

        def more(_):
            try:
                while True:
                    sock.send(payload)
            except BlockingIOError:
                pass

        self.watch(sock, select.EPOLLOUT, more)
        if flow["stop"] is not None:
            self.at(flow["stop"], lambda: self.forget(sock))

    def web(self, flow):
        """Objects of random size, asked for at random times whatever became of those before (open loop)."""
        chance = random.Random(f"{self.job['seed']} {flow['group']}")

        def arrive(when):
            size = pareto(chance.random(), flow["alpha"], flow["least"], flow["most"])
            self.web_object(flow, size)
            later = when + chance.expovariate(flow["per_second"])
            if flow["stop"] is None or later < flow["stop"]:
                self.at(later, lambda: arrive(later))

        first = flow["start"] + chance.expovariate(flow["per_second"])
        self.at(first, lambda: arrive(first))

    def web_object(self, flow, size):
        """Send an object of so many bytes through a connection of its own."""
        started = self.now()
        sock = self.connect(flow)
        self.objects[sock.getsockname()] = (flow["group"], started, size, None)
        left = size

        def more(events):
            nonlocal left
            # The receiver closes when it has all; whoever gives up before leaves an object without an end.
            if events & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLIN):
                self.forget(sock)
                return
            try:
                left -= sock.send(self.block[:left] if left < len(self.block) else self.block)
            except (BlockingIOError, ConnectionError, TimeoutError):
                return
            if not left:
                sock.shutdown(socket.SHUT_WR)
                self.poll.modify(sock.fileno(), select.EPOLLIN)

        self.watch(sock, select.EPOLLOUT, more)

    def connect(self, flow):
        """Begin a connection to a flow's receiver."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        # Without a bind, so that one port serves several peers; the route gives the address.
        if sock.connect_ex((flow["dst"], PORT)) not in (0, errno.EINPROGRESS):
            sys.exit(f"cannot connect to {flow['dst']} (group {flow['group']})")
        return sock

    # The whole

    def open_receivers(self, flows):
        """The receivers of these flows, in the present namespace."""
        for flow in flows:
            if flow["kind"] == "udp":
                # Nobody reads it: what finds no room is thrown away without a word.
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                sock.bind((flow["dst"], PORT))
                self.serve[sock.fileno()] = sock
            elif flow["cc"] in UDP_PRAGUE:
                self.start("udp_prague_receiver", "-a", flow["dst"])
            else:
                self.listen(flow["dst"])

    def run(self, flows, begin):
        """Begin the flows, from the present namespace, at `begin` (s, CLOCK_REALTIME); serve until stdin ends."""
        self.begin = begin
        chance = random.Random(self.job["seed"])
        for flow in flows:
            start = flow["start"] + chance.uniform(0, SPREAD_S)
            self.at(start, lambda f=flow: getattr(self, f["kind"])(f))
        self.at(self.job["warmup"], lambda: self.sample_all(self.job["warmup"]))

        def end(_):
            self.running = False

        def tick(_):
            # Rounded, it may have gone off too early, and is set again then.
            nonlocal armed
            armed = None
            timer.drain()

        self.watch(sys.stdin, select.EPOLLIN, end)
        timer, armed = Timer(), None
        self.watch(timer, select.EPOLLIN, tick)
        while self.running:
            while self.due and self.due[0][0] <= self.now():
                heapq.heappop(self.due)[2]()
            if self.due and self.due[0] != armed:
                armed = self.due[0]
                timer.set(self.begin + armed[0])
            for number, events in self.poll.poll():
                if number in self.serve:
                    self.serve[number](events)


def write_rows(name, head, rows):
    """Leave a CSV file with a header line in OUT-DIR."""
    with open(os.path.join(sys.argv[2], name), "w", newline="", encoding="ascii") as file:
        csv.writer(file, lineterminator="\n").writerows((head, *rows))


def main():
    """traffic.py FLOWS-FILE OUT-DIR: says "ready", reads the start (ns, CLOCK_REALTIME), ends when stdin does."""
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    traffic = Traffic(given["job"], given["udp_prague"])
    with in_netns("rcv"):
        traffic.open_receivers(given["flows"])
    with in_netns("snd"):
        print("ready", flush=True)
        traffic.run(given["flows"], int(sys.stdin.readline()) / 1e9)
    traffic.end_programs()
    if any(flow["kind"] == "web" for flow in given["flows"]):
        write_rows("web.csv", ("group", "start_s", "bytes", "completion_s"),
                   [(group, f"{start:.6f}", size, "" if took is None else f"{took:.6f}")
                    for group, start, size, took in (*traffic.done, *traffic.objects.values())])
    write_rows("tcp.csv", ("second", "group", "src", "srtt_us", "cwnd_packets", "acked_bytes"), traffic.samples)
    print(json.dumps(traffic.failed), flush=True)


if __name__ == "__main__":
    main()
