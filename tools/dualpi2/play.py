# SPDX-License-Identifier: GPL-2.0-only
"""`dualpi2 play`: changes the rate of a shaper as a capacity trace does, and reports delay and utilization."""

import contextlib
import errno
import signal
import time

from . import Trouble
from .kernel.netlink import handle_text
from .kernel.qdisc import Kernel
from .kernel.stats import DROP_CAUSES, QUEUE_NAMES, QUEUES, Interval
from .kernel.text import bits, delay, scaled
from .up.arguments import RATE_MAX, RATE_MIN

# Drops that do not come from the AQM. A lower rate lowers the default limits, too.
LIMITS = ("limit", "memory", "purge")
COLUMNS = ("class", "packets", "mean", "P50", "P99", "marked", "dropped", "at limits")


class Shaper:
    """The dualpi2 of a device that has a bandwidth."""

    def __init__(self, device):
        self.kernel = Kernel()
        index = self.kernel.ifindex(device)
        found = [one for one in self.kernel.qdiscs(index) if one.dualpi2_options().get("bandwidth")]
        if not found:
            raise Trouble(f"no dualpi2 with a bandwidth on '{device}'; add one, for example: dualpi2 up {device} "
                          "--upload 20mbit")
        if found[1:]:
            handles = ", ".join(handle_text(handle) for handle in sorted(one.handle for one in found))
            raise Trouble(f"several dualpi2 with a bandwidth on '{device}': {handles}; keep one of them, or use "
                          "dualpi2_mq, which has one bandwidth for all queues")
        self.device = device
        self.qdisc = found[0]
        self.handle = handle_text(self.qdisc.handle)
        self.rate = self.qdisc.dualpi2_options()["bandwidth"]

    def set(self, rate):
        """Set the bandwidth, bytes/s."""
        answer = self.kernel.change(self.qdisc, bandwidth=rate)
        if answer.error in (errno.ENOENT, errno.ENODEV):
            raise self._removed()
        if answer.error:
            parent = handle_text(self.qdisc.parent)
            where = parent if parent == "root" else f"parent {parent}"
            raise Trouble(f"cannot set the bandwidth of {self.handle} on '{self.device}': {answer.reason()}; to "
                          f"restore it, run: tc qdisc change dev {self.device} {where} handle {self.handle} "
                          f"{self.qdisc.kind} bandwidth {8 * self.rate}bit")

    def sample(self):
        """Its statistics."""
        found = next((one for one in self.kernel.qdiscs(self.qdisc.ifindex) if one.key == self.qdisc.key), None)
        if not found:
            raise self._removed()
        return found.sample()

    def _removed(self):
        return Trouble(f"{self.handle} on '{self.device}' was removed during the play; no report")

    @contextlib.contextmanager
    def restored(self):
        """Restores the bandwidth at the end. A second signal must not prevent that."""
        try:
            yield
        finally:
            handlers = {number: signal.signal(number, signal.SIG_IGN)
                        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
            try:
                self.set(self.rate)
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)


class Play:
    """One play: what was set, and when.

    steps: (time in ns, bytes/s, whether the trace has less) of each step; skipped: steps that were over before they
    could begin; ended: the exception of a signal that ended the play early, or None.
    """

    def __init__(self, shaper, trace, step_ms, length_ms):
        self.shaper = shaper
        self.trace = trace
        self.step_ms = step_ms
        self.length_ms = length_ms
        self.steps = []
        self.skipped = 0
        self.ended = None
        with shaper.restored():
            before = shaper.sample()
            try:
                self._follow()
            except (KeyboardInterrupt, SystemExit) as ended:
                self.ended = ended
            self.end_ns = time.monotonic_ns()
            after = shaper.sample()
        self.interval = Interval.between(after, before, self.seconds())
        if not self.interval:
            raise Trouble(f"{shaper.handle} on '{shaper.device}' was replaced during the play; no report")

    def _follow(self):
        begin_ns = time.monotonic_ns()
        at = 0
        while at < self.length_ms:
            self._set(self.trace.rate(at, min(at + self.step_ms, self.length_ms)))
            following = at + self.step_ms
            now = min((time.monotonic_ns() - begin_ns) // 10**6, self.length_ms) // self.step_ms * self.step_ms
            self.skipped += max(now - following, 0) // self.step_ms
            at = max(following, now)
            time.sleep(max(begin_ns + min(at, self.length_ms) * 10**6 - time.monotonic_ns(), 0) / 1e9)

    def _set(self, wanted):
        rate = min(max(wanted, RATE_MIN // 8), RATE_MAX // 8)
        if not self.steps or rate != self.steps[-1][1]:
            self.shaper.set(rate)
        self.steps.append((time.monotonic_ns(), rate, wanted < rate))

    def seconds(self):
        """How long rates were in force."""
        return (self.end_ns - self.steps[0][0]) / 1e9 if self.steps else 0

    def report(self):
        """For json.dumps()."""
        times = [*(when for when, _, _ in self.steps), self.end_ns]
        lasted = [(end - begin) / 1e9 for begin, end in zip(times, times[1:])]
        rates = [rate for _, rate, _ in self.steps]
        capacity = sum(time_s * rate for time_s, rate in zip(lasted, rates))
        sent = self.interval.total["bytes"]
        return {
            "device": self.shaper.device, "handle": self.shaper.handle, "complete": self.ended is None,
            "seconds": self.seconds(), "step_ms": self.step_ms, "steps": len(self.steps), "skipped_steps": self.skipped,
            "bits_per_second": {"minimum": 8 * min(rates, default=0), "maximum": 8 * max(rates, default=0),
                                "mean": 8 * capacity / self.seconds() if self.steps else 0},
            "outage_seconds": sum(time_s for time_s, (_, _, less) in zip(lasted, self.steps) if less),
            "capacity_bytes": round(capacity), "sent_bytes": sent, "utilization": sent / capacity if capacity else None,
            "restored_bits_per_second": 8 * self.shaper.rate,
            "queues": {QUEUE_NAMES[queue]: self._queue(queue) for queue in QUEUES},
        }

    def _queue(self, queue):
        counters, delays = self.interval.counters[queue], self.interval.delays[queue]
        return {
            "packets": counters["forwarded"], "bytes": counters["forwarded_bytes"],
            "delay": delays and {"mean_ns": delays.mean_ns(), "p50_ns": delays.percentile_ns(50),
                                 "p99_ns": delays.percentile_ns(99)},
            "marked": self.interval.marked(queue),
            "dropped": {cause: counters[f"ect_dropped_{cause}"] + counters[f"not_ect_dropped_{cause}"]
                        for cause in DROP_CAUSES},
        }


def text(found):
    """The report for people."""
    rates = found["bits_per_second"]
    lines = [f"{found['device']} {found['handle']} {found['seconds']:.2f} s, {found['steps']} steps of "
             f"{found['step_ms']} ms" + ("" if found["complete"] else ", ended early"),
             f"rate: minimum {bits(rates['minimum'])}, mean {bits(rates['mean'])}, maximum {bits(rates['maximum'])}"]
    if found["outage_seconds"]:
        lines.append(f"outages: {found['outage_seconds']:.2f} s, played at {bits(RATE_MIN)}")
    if found["skipped_steps"]:
        lines.append(f"skipped: {found['skipped_steps']} steps, because this machine was late")
    share = found["utilization"]
    lines.append(f"sent: {scaled(found['sent_bytes'])}B of {scaled(found['capacity_bytes'])}B, utilization "
                 + ("-" if share is None else f"{100 * share:.1f} %"))
    rows = [COLUMNS]
    for name, one in found["queues"].items():
        delays = one["delay"] or {}
        rows.append((name, str(one["packets"]), *(delay(delays.get(key)) for key in ("mean_ns", "p50_ns", "p99_ns")),
                     str(one["marked"]), str(sum(one["dropped"].values())),
                     str(sum(one["dropped"][cause] for cause in LIMITS))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines += ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
              for row in rows]
    lines.append(f"restored: {bits(found['restored_bits_per_second'])}")
    return "".join(f"{line}\n" for line in lines)
