# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of all dualpi2 in Prometheus' text format, by its own client library. docs: dualpi2-top(8)."""

import contextlib
import os
import stat
import tempfile

from .. import Trouble
from ..kernel import stats
from ..kernel.stats import ARRIVALS, DROP_CAUSES, MARKERS, QUEUE_NAMES, QUEUES, bucket_begin_ns

LABELS = ["device", "handle", "parent"]
SECOND = 1e9


def _library():
    try:
        from prometheus_client import core, exposition
    except ImportError:
        raise Trouble("the metrics need prometheus_client; install it: apt install python3-prometheus-client") from None
    return core, exposition


class Families:
    """The metrics of some entries, as families of the library.

    With a namespace's name all have it as a label: else files of two namespaces in one directory would have the same
    metrics twice, and the node exporter answers such with an error.
    """

    def __init__(self, core, entries, netns=None):
        self.core = core
        self.found = {}
        self.labels = (["netns"] if netns else []) + LABELS
        self.netns = [netns] if netns else []
        found = core.GaugeMetricFamily("dualpi2_qdiscs", "Number of dualpi2 qdiscs.",
                                       labels=["netns"] if netns else [])
        found.add_metric(self.netns, len(entries))
        self.found["dualpi2_qdiscs"] = found
        for entry in entries:
            self._entry(entry)

    def collect(self):
        """As the library wants to ask."""
        return list(self.found.values())

    def _add(self, kind, name, text, labels, value):
        if value is None:
            return
        if name not in self.found:
            make = self.core.CounterMetricFamily if kind == "counter" else self.core.GaugeMetricFamily
            self.found[name] = make(name, text, labels=self.labels + list(labels))
        self.found[name].add_metric(self.where + list(labels.values()), value)

    def _entry(self, entry):
        self.where = self.netns + [entry.device, entry.handle, entry.parent]
        sample = entry.sample
        for queue in QUEUES:
            self._queue(QUEUE_NAMES[queue], sample.queues[queue])
        for name, of in (("p", "base"), ("p_c", "classic"), ("p_cl", "coupled")):
            self._add("gauge", "dualpi2_probability", "Probabilities of RFC 9332: p' (base), p_C and p_CL.", {"of": of},
                      sample.probability(name))
        self._add("gauge", "dualpi2_memory_used_bytes", "Memory of the queued packets.", {},
                  sample.xstats.get("memory_used"))
        self._add("gauge", "dualpi2_memory_limit_bytes", "Limit of the memory of the queued packets.", {},
                  sample.xstats.get("memory_limit"))
        for name, text in (("unparsed", "Packets without a readable IP header."),
                           ("filter_dropped", "Packets that a tc filter dropped."),
                           ("gso_failed", "GSO packets dropped because they could not be split."),
                           ("mark_failed", "Packets not set to CE though they should have been.")):
            self._add("counter", f"dualpi2_{name}_packets", text, {}, sample.ext.get(name))
        self._overload(sample.overload)
        self._link(sample.link)
        if sample.level == "basic":
            # All that Linux's own tells, in counters of 32 bits.
            self._add("counter", "dualpi2_ecn_mark_packets", "Packets set to CE, of the qdisc as a whole.", {},
                      sample.xstats.get("ecn_mark"))
            self._add("counter", "dualpi2_sent_bytes", "Bytes forwarded, of the qdisc as a whole.", {},
                      sample.basic["bytes"])

    def _overload(self, found):
        total, last = found.get("total_ns"), found.get("duration_ns")
        start = found.get("start_ns")
        self._add("gauge", "dualpi2_overload", "1 while in overload (RFC 9332 section 4.2.3).", {}, found.get("now"))
        self._add("counter", "dualpi2_overloads", "Times that an overload began.", {}, found.get("count"))
        self._add("counter", "dualpi2_overload_seconds", "Time spent in overload.", {},
                  None if total is None else total / SECOND)
        self._add("gauge", "dualpi2_overload_last_start_timestamp_seconds",
                  "When the last or present overload began, since 1970; 0: there was none.", {},
                  None if start is None else start / SECOND)
        self._add("gauge", "dualpi2_overload_last_duration_seconds",
                  "How long the last or present overload lasted.", {},
                  None if last is None else last / SECOND)
        self._add("counter", "dualpi2_overload_reports", "Reports of overload sent by netlink.", {},
                  found.get("reports"))

    def _link(self, found):
        self._add("gauge", "dualpi2_drain_rate_bytes_per_second", "Rate of the shaper, else as seen of queues that "
                  "held packets.", {}, found.get("drain_rate") or None)
        self._add("counter", "dualpi2_throttled", "Times that the shaper had packets wait.", {}, found.get("throttled"))
        self._add("counter", "dualpi2_nqb_arrived_packets", "Packets that went to the L4S queue for their DSCP alone.",
                  {}, found.get("nqb_arrived"))
        self._add("counter", "dualpi2_nqb_dropped_packets", "Of these: dropped because of their own limit.", {},
                  found.get("nqb_dropped"))
        self._add("gauge", "dualpi2_nqb_limit_bytes", "Limit of these in the L4S queue, as in force.", {},
                  found.get("nqb_limit_bytes") or None)
        self._add("gauge", "dualpi2_limit_packets", "Limit of both queues, as in force.", {}, found.get("limit_pkts"))
        for name, text in (("target", "Effective target of the queueing delay: on slow links above the option."),
                           ("burst", "Bursts of L4S packets that are tolerated now."),
                           ("ramp_min", "Delay up to which the native L4S marker is silent now."),
                           ("ramp_max", "Delay beyond which the native L4S marker marks all now.")):
            value = found.get(name + "_ns")
            self._add("gauge", f"dualpi2_{name}_seconds", text, {}, None if value is None else value / SECOND)

    def _queue(self, name, queue):
        counters = queue.counters
        labels = {"queue": name}
        for ecn in ARRIVALS:
            self._add("counter", "dualpi2_arrived_packets", "Packets that arrived for the queue, by codepoint.",
                      dict(labels, ecn=ecn), counters.get("arrived_" + ecn))
        for what, text in (("arrived", "arrived for the queue"), ("presented", "presented to the AQM"),
                           ("forwarded", "forwarded")):
            if what != "arrived":
                self._add("counter", f"dualpi2_{what}_packets", f"Packets {text}.", labels, counters.get(what))
            self._add("counter", f"dualpi2_{what}_bytes", f"Bytes {text}.", labels, counters.get(what + "_bytes"))
        for marker in MARKERS:
            self._add("counter", "dualpi2_marked_packets", "Packets set to CE: with the Classic probability, the "
                      "coupled one, or by the native L4S marker.", dict(labels, marker=marker),
                      counters.get("marked_" + marker))
        for cause in DROP_CAUSES:
            text = "Packets dropped, by cause and by whether they arrived with ECT or CE."
            for ecn in ("not_ect", "ect"):
                self._add("counter", "dualpi2_dropped_packets", text, dict(labels, ecn=ecn, cause=cause),
                          counters.get(f"{ecn}_dropped_{cause}"))
        for stage in ("arrival", "aqm", "purge"):
            self._add("counter", "dualpi2_dropped_bytes", "Bytes dropped: on arrival, by the AQM at departure, or "
                      "purged.", dict(labels, stage=stage), counters.get(f"dropped_{stage}_bytes"))
        self._add("gauge", "dualpi2_queued_packets", "Packets in the queue.", labels, counters.get("queued"))
        self._add("gauge", "dualpi2_queued_bytes", "Bytes in the queue.", labels, counters.get("queued_bytes"))
        self._delay(name, queue)

    def _delay(self, name, queue):
        if not queue.has_histogram():
            return
        family = "dualpi2_delay_seconds"
        if family not in self.found:
            self.found[family] = self.core.HistogramMetricFamily(
                family, "Time that forwarded packets spent in the queue.", labels=self.labels + ["queue"])
        unit = queue.delay["unit_ns"]
        buckets = []
        total = 0
        for index, number in enumerate(queue.hist, 1):
            total += number
            buckets.append((repr(bucket_begin_ns(index, unit) / SECOND), total))
        total += queue.delay["beyond"]
        buckets.append(("+Inf", total))
        self.found[family].add_metric(self.where + [name], buckets, stats.Delays.since_start(queue).sum_ns / SECOND)
        self._add("gauge", "dualpi2_delay_max_seconds", "Greatest delay of all packets of the histogram.",
                  {"queue": name}, queue.delay["max_ns"] / SECOND)


def text(entries, netns=None):
    """All metrics, one exposition."""
    core, exposition = _library()
    # Counters beyond 2^53 are rounded, as all numbers of Prometheus are.
    return exposition.generate_latest(Families(core, entries, netns)).decode("utf-8")


def write(path, content):
    """Replace a file at once: whoever reads it meanwhile gets all of the old one or all of the new one."""
    # As root, it would put a file in the place of /dev/null or of the link /dev/stdout.
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Trouble(f"cannot write {path}, which is there and is no file; name a file, or leave out --output and "
                          "redirect the output with >")
    directory = os.path.dirname(path) or "."
    temporary = None
    try:
        # Not *.prom, which the collector would read.
        handle, temporary = tempfile.mkstemp(prefix=".dualpi2-top.", dir=directory)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            # The exporter is another user. Not by name: if the directory is that user's, it may be another file by now.
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise Trouble(f"cannot write {path} ({error.strerror}); name a file in a directory that exists and that you "
                      "may write to") from None
    finally:
        # Also where a signal ended it.
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
