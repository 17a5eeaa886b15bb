# SPDX-License-Identifier: GPL-2.0-only
"""Devices with four transmit queues and dualpi2_mq on them, for the tests of several queues."""
import contextlib
import os

import lib
from lib import Aqm, Net, expect_equal, tc

QUEUES = 4
QUEUE_ARGS = f"numtxqueues {QUEUES} numrxqueues {QUEUES}"


DEVICES = {  # netdevsim and ifb drop what they send
    "veth": f"link add d0 {QUEUE_ARGS} type veth peer name d1 {QUEUE_ARGS}\nlink set d1 up",
    "ifb": f"link add d0 {QUEUE_ARGS} type ifb",
    "netdevsim": "link set eth0 name d0",
}
NETDEVSIM = "/sys/bus/netdevsim"


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def take_virtio(netns):
    """Move the machine's virtio-net device into a namespace as d0, with QUEUES queues that the flows' hash selects."""
    nic, = (dev for dev in os.listdir("/sys/class/net")
            if os.path.realpath(f"/sys/class/net/{dev}/device/driver").endswith("virtio_net"))
    lib.run(["ip", "link", "set", nic, "netns", netns, "name", "d0"])
    # The device begins with one queue for each processor. ethtool fails if nothing changes; the shell below checks.
    lib.run(f"ethtool -L d0 combined {QUEUES}", netns, check=False)
    # The driver reserves queues for each processor; without that, flows select the queue by their hash.
    lib.run(["ip", "netns", "exec", netns, "sh", "-ec", f"""
cd /sys/class/net/d0/queues
[ -d tx-{QUEUES - 1} ]
for queue in tx-*; do echo 0 >$queue/xps_cpus; done
"""])


@contextlib.contextmanager
def mq_device(*lines, kind="veth"):
    """A namespace with d0, one of DEVICES with QUEUES transmit queues or "virtio", the machine's, and the qdiscs of
    `lines` on it. The kernel sends nothing by itself; packets to 10.7.0.2 leave through d0.
    """
    netns = f"dpm{os.getpid()}"
    lib.run(["ip", "netns", "add", netns])
    try:
        with lib.in_netns(netns):
            write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
            if kind == "netdevsim":
                write(f"{NETDEVSIM}/new_device", f"0 1 {QUEUES}")
        if kind == "virtio":
            take_virtio(netns)
        lib.run(["ip", "-batch", "-"], netns, stdin=f"""\
{DEVICES.get(kind, "")}
link set d0 up
addr add 10.7.0.1/24 dev d0
neigh add 10.7.0.2 dev d0 lladdr 02:00:00:00:00:01 nud permanent
""")
        for line in lines:
            tc(f"qdisc add dev d0 {line}", netns)
        yield netns
    finally:
        # At the end of the namespace the kernel returns its devices to the first one some time later.
        if kind == "virtio":
            lib.run(["ip", "link", "set", "d0", "netns", "1"], netns, check=False)
        if os.path.exists(f"{NETDEVSIM}/devices/netdevsim0"):
            write(f"{NETDEVSIM}/del_device", "0")
        lib.run(["ip", "netns", "del", netns], check=False)


class MqNet(Net):
    """The devices have four transmit queues."""

    link_args = ("numtxqueues", str(QUEUES), "numrxqueues", str(QUEUES))


class Mq(Aqm):
    """dualpi2_mq at the root of rtr's `down`; the stream of port 5000 + n leaves through queue `queues[n]`."""

    kind = "dualpi2_mq"

    def __init__(self, net, queues=(), **knobs):
        super().__init__(net, 0, "none", None, knobs)
        self.queues = queues

    def __enter__(self):
        super().__enter__()
        tc("qdisc add dev down clsact", self.netns)
        for number, queue in enumerate(self.queues):
            tc(f"filter add dev down egress protocol ip flower ip_proto udp dst_port {5000 + number} "
               f"action skbedit queue_mapping {queue}", self.netns)
        return self

    def _remove(self):
        tc("qdisc del dev down clsact", self.netns, check=False)
        super()._remove()

    def check(self):
        """The identities hold for the root and for each child, and the root is the sum of the children."""
        root = self.stats()
        lib.check_identities(root | {"was_reset": self.was_reset})
        sums = {}
        for child in self.children():
            lib.check_identities(child | {"was_reset": self.was_reset})
            for queue in ("c", "l"):
                for name, value in child[queue]["counters"].items():
                    sums[queue, name] = sums.get((queue, name), 0) + value
        for (queue, name), value in sums.items():
            expect_equal(root[queue]["counters"][name], value, f"{queue} {name}")

    def children(self):
        """The statistics of the children, by transmit queue."""
        found = []
        for qdisc in lib.qdisc_dump(self.netns, self.dev):
            if qdisc["kind"] == "dualpi2":
                found.append(dict(qdisc["stats"], kind="dualpi2", parent=qdisc["parent"], handle=qdisc["handle"],
                                  **lib.parse_xstats(qdisc["app"]), knobs=lib.unpack(qdisc["options"])))
        return found


_nets = []


def mq_net():
    """One MqNet for all tests of this program."""
    if not _nets:
        _nets.append(lib._shared.enter_context(MqNet()))
    return _nets[0]
