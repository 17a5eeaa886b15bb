# SPDX-License-Identifier: GPL-2.0-only
"""A veth with four transmit queues and dualpi2_mq on it, for the tests of several queues."""
import lib
from lib import Aqm, Net, expect_equal, tc

QUEUES = 4


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
