# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of all dualpi2 qdiscs in Prometheus' text format, by its client library. Reference: docs/JSON.md."""

import contextlib
import itertools
import os
import stat
import tempfile

from .. import Trouble
from ..kernel import stats
from ..kernel.stats import ARRIVALS, DROP_CAUSES, MARKERS, QUEUE_NAMES, QUEUES, bucket_begin_ns

LABELS = ["device", "handle", "parent"]
SECOND = 1e9
# Boundaries of --buckets: the powers of two among the 96 of the kernel's histogram.
BUCKETS_MIN, BUCKETS_MAX = 2, 15
ERRORS = (("unparsed", "Packets without a readable IP header; they enter the Classic queue as Not-ECT."),
          ("filter_dropped", "Packets dropped by a tc filter."),
          ("gso_failed", "GSO packets dropped because segmentation failed."),
          ("mark_failed", "Packets forwarded without the CE mark that they should have received."))
# Counters of queue protection.
QPROTECT = (("redirected_packets", "redirected", "Packets that queue protection redirected to the Classic queue."),
            ("redirected_bytes", "redirected_bytes", "Bytes of the redirected packets."),
            ("sanctions", "sanctions", "Times that the redirection of a flow began."),
            ("scored_packets", "scored", "Packets that raised the score of their flow."),
            ("scored_shared_packets", "scored_shared", "Packets that raised the score of the shared bucket: more flows "
             "had a score than there are buckets."),
            ("alloc_failed_packets", "alloc_failed", "Packets not protected because there was no memory for the "
             "buckets."))
LINK_DELAYS = (("target", "Effective target of the queueing delay; on slow links longer than the option."),
               ("burst", "Current burst tolerance of the native L4S marker."),
               ("ramp_min", "Sojourn time at which the native L4S marker begins to mark."),
               ("ramp_max", "Sojourn time from which the native L4S marker marks every packet."))


def _library():
    try:
        from prometheus_client import core, exposition
    except ImportError:
        raise Trouble("the metrics need prometheus_client; install it: apt install python3-prometheus-client") from None
    return core, exposition


class Histograms:
    """Which bucket boundaries to export. count: None for all 96, 0 for none (sum and count only), else that many."""

    def __init__(self, count=None):
        self.count = count

    def boundaries(self, buckets):
        """Indices of the buckets, from 1, at whose end a boundary is exported."""
        if self.count is None:
            return list(range(1, buckets + 1))
        # 1, 2, 4 and 8 bucket widths; from there on, 8 buckets are one power of two.
        powers = [index for index in (1, 2, 4) if index <= buckets] + list(range(8, buckets + 1, 8))
        last = len(powers) - 1
        count = min(self.count, len(powers))
        return sorted(powers[last - last * step // (count - 1)] for step in range(count))


class Families:
    """The metrics of some entries, as families of the library.

    With the name of a namespace, all metrics have the label netns. Without that label, files of two namespaces in one
    directory would contain equal series, and the node exporter would reject them.
    """

    def __init__(self, core, entries, netns=None, histograms=None):
        self.core = core
        self.histograms = histograms or Histograms()
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
        """Called by the library."""
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
        self._add("gauge", "dualpi2_qdisc_info", "Always 1; the label name is the qdisc's name in the file of --names, "
                  "else its device and handle.", {"name": entry.label()}, 1)
        for queue in QUEUES:
            self._queue(QUEUE_NAMES[queue], sample.queues[queue])
        for name, kind in (("p", "base"), ("p_c", "classic"), ("p_cl", "coupled")):
            # "of" is the label of versions up to 2.4.
            self._add("gauge", "dualpi2_probability", "Probabilities of RFC 9332: base (p'), classic (p_C) and coupled "
                      "(p_CL).", {"of": kind, "kind": kind}, sample.probability(name))
        self._add("gauge", "dualpi2_memory_used_bytes", "Memory used by queued packets.", {},
                  sample.xstats.get("memory_used"))
        self._add("gauge", "dualpi2_memory_limit_bytes", "Maximum memory of queued packets (option memlimit).", {},
                  sample.xstats.get("memory_limit"))
        for name, text in ERRORS:
            self._add("counter", f"dualpi2_{name}_packets", text, {}, sample.ext.get(name))
        self._overload(sample.overload)
        self._link(sample.link)
        self._qprotect(sample.qprotect)
        if sample.level == "basic":
            # The only statistics of the in-tree dualpi2, in counters of 32 bits.
            self._add("counter", "dualpi2_ecn_mark_packets", "Packets marked CE, both queues (in-tree dualpi2 only).",
                      {}, sample.xstats.get("ecn_mark"))
            self._add("counter", "dualpi2_sent_bytes", "Bytes forwarded, both queues (in-tree dualpi2 only).", {},
                      sample.basic["bytes"])

    def _overload(self, found):
        total, last = found.get("total_ns"), found.get("duration_ns")
        start = found.get("start_ns")
        self._add("gauge", "dualpi2_overload", "1 in overload (RFC 9332 section 4.2.3), else 0.", {}, found.get("now"))
        self._add("counter", "dualpi2_overloads", "Number of overloads.", {}, found.get("count"))
        self._add("counter", "dualpi2_overload_seconds", "Time in overload.", {},
                  None if total is None else total / SECOND)
        self._add("gauge", "dualpi2_overload_last_start_timestamp_seconds",
                  "Start of the current or last overload, Unix time; 0 if there was none.", {},
                  None if start is None else start / SECOND)
        self._add("gauge", "dualpi2_overload_last_duration_seconds", "Duration of the current or last overload.", {},
                  None if last is None else last / SECOND)
        self._add("counter", "dualpi2_overload_reports", "Overload reports sent by netlink.", {}, found.get("reports"))

    def _link(self, found):
        self._add("gauge", "dualpi2_drain_rate_bytes_per_second", "Rate of the shaper; without one, the drain rate "
                  "measured while there was a backlog.", {}, found.get("drain_rate") or None)
        self._add("counter", "dualpi2_throttled", "Throttled dequeues: times the shaper delayed a packet.", {},
                  found.get("throttled"))
        self._add("counter", "dualpi2_nqb_arrived_packets", "NQB packets: in the L4S queue only because of their DSCP.",
                  {}, found.get("nqb_arrived"))
        self._add("counter", "dualpi2_nqb_dropped_packets", "NQB packets dropped by the NQB limit.", {},
                  found.get("nqb_dropped"))
        self._add("gauge", "dualpi2_nqb_limit_bytes", "Current NQB limit in the L4S queue.", {},
                  found.get("nqb_limit_bytes") or None)
        self._add("gauge", "dualpi2_limit_packets", "Current packet limit of both queues together.", {},
                  found.get("limit_pkts"))
        for name, text in LINK_DELAYS:
            value = found.get(name + "_ns")
            self._add("gauge", f"dualpi2_{name}_seconds", text, {}, None if value is None else value / SECOND)

    def _qprotect(self, found):
        for name, field, text in QPROTECT:
            self._add("counter", "dualpi2_qprotect_" + name, text, {}, found.get(field))
        self._add("gauge", "dualpi2_qprotect_sanctioned_flows", "Flows under sanction: their packets are redirected "
                  "now.", {}, found.get("sanctioned"))
        self._add("gauge", "dualpi2_qprotect_buckets_used", "Flows with a score now.", {}, found.get("buckets_used"))

    def _queue(self, name, queue):
        counters = queue.counters
        labels = {"queue": name}
        for ecn in ARRIVALS:
            self._add("counter", "dualpi2_arrived_packets", "Packets classified into the queue, by ECN codepoint.",
                      dict(labels, ecn=ecn), counters.get("arrived_" + ecn))
        for what, text in (("arrived", "classified into the queue"), ("presented", "presented to the AQM"),
                           ("forwarded", "forwarded")):
            if what != "arrived":
                self._add("counter", f"dualpi2_{what}_packets", f"Packets {text}.", labels, counters.get(what))
            self._add("counter", f"dualpi2_{what}_bytes", f"Bytes {text}.", labels, counters.get(what + "_bytes"))
        for marker in MARKERS:
            self._add("counter", "dualpi2_marked_packets", "Packets marked CE, by marker: Classic probability, coupled "
                      "probability or native L4S marker.", dict(labels, marker=marker),
                      counters.get("marked_" + marker))
        for cause in DROP_CAUSES:
            text = "Packets dropped, by cause, and by whether they were ECN-capable (ect) on arrival."
            for ecn in ("not_ect", "ect"):
                self._add("counter", "dualpi2_dropped_packets", text, dict(labels, ecn=ecn, cause=cause),
                          counters.get(f"{ecn}_dropped_{cause}"))
        for stage in ("arrival", "aqm", "purge"):
            self._add("counter", "dualpi2_dropped_bytes", "Bytes dropped on arrival, by the AQM at dequeue, or purged.",
                      dict(labels, stage=stage), counters.get(f"dropped_{stage}_bytes"))
        self._add("gauge", "dualpi2_queued_packets", "Backlog in packets.", labels, counters.get("queued"))
        self._add("gauge", "dualpi2_queued_bytes", "Backlog in bytes.", labels, counters.get("queued_bytes"))
        self._delay(name, queue)

    def _delay(self, name, queue):
        if not queue.has_histogram():
            return
        family, count = "dualpi2_delay_seconds", self.histograms.count
        if family not in self.found:
            make = self.core.SummaryMetricFamily if count == 0 else self.core.HistogramMetricFamily
            self.found[family] = make(family, "Sojourn time of forwarded packets.", labels=self.labels + ["queue"])
        unit = queue.delay["unit_ns"]
        total = sum(queue.hist) + queue.delay["beyond"]
        seconds = stats.Delays.since_start(queue).sum_ns / SECOND
        if count == 0:
            self.found[family].add_metric(self.where + [name], total, seconds)
        else:
            sums = list(itertools.accumulate(queue.hist))
            buckets = [(repr(bucket_begin_ns(index, unit) / SECOND), sums[index - 1])
                       for index in self.histograms.boundaries(len(queue.hist))]
            self.found[family].add_metric(self.where + [name], buckets + [("+Inf", total)], seconds)
        self._add("gauge", "dualpi2_delay_max_seconds", "Maximum sojourn time since the histogram began.",
                  {"queue": name}, queue.delay["max_ns"] / SECOND)


def text(entries, netns=None, histograms=None):
    """All metrics, one exposition."""
    core, exposition = _library()
    # Prometheus stores numbers as doubles: it rounds counters beyond 2^53.
    return exposition.generate_latest(Families(core, entries, netns, histograms)).decode("utf-8")


def write(path, content):
    """Replace a file atomically: a reader gets either the old content or the new one."""
    # As root, os.replace() would replace /dev/null, or the link /dev/stdout, by a file.
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Trouble(f"cannot write '{path}': it exists and is not a regular file; name a file, or leave out "
                          "--output and redirect the output with >")
    directory = os.path.dirname(path) or "."
    temporary = None
    try:
        # The collector reads *.prom; this name does not match.
        handle, temporary = tempfile.mkstemp(prefix=".dualpi2-top.", dir=directory)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            # The exporter runs as another user. By descriptor: the owner of the directory could have replaced the name.
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise Trouble(f"cannot write '{path}' ({error.strerror}); name a file in an existing directory to which you "
                      "may write") from None
    finally:
        # Also if a signal ended the program.
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
