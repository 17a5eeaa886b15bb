# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of the qdiscs as JSON and as text. The names of JSON end with their units; docs/JSON.md lists them."""

from .. import version
from ..kernel import stats
from ..kernel.text import ago, bits, count, delay

# Styles of the parts of a line.
PLAIN, BOLD, DIM, WARN, BAD = "plain", "bold", "dim", "warn", "bad"
ANSI = {BOLD: "1", DIM: "2", WARN: "33", BAD: "1;31"}

PERCENTILES = (("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9))

NONE_HERE = ("no dualpi2 in this network namespace; add one: tc qdisc add dev DEVICE root dualpi2 "
             "(`ip link` lists the devices)")
MISSING = {
    "full": "",
    "basic": "no statistics per queue: the in-tree dualpi2 is loaded, which has none; install dualpi2-dkms for them",
    "none": "no statistics: the kernel sent none; load the module sch_dualpi2 of dualpi2-dkms",
}


def missing(sample):
    """Which statistics the kernel does not send and why, as a list of sentences."""
    return [MISSING[sample.level]] if MISSING[sample.level] else []


def none_here(device, netns):
    """The message if there is no dualpi2."""
    if device:
        return f"no dualpi2 on {device}; add one: tc qdisc add dev {device} root dualpi2"
    if netns:
        return NONE_HERE.replace("this network namespace", f"network namespace {netns}")
    return NONE_HERE


def width_of(line):
    """Columns of a line."""
    return sum(len(text) for text, _ in line)


def as_text(lines, color=False):
    """Lines of (text, style) as one string, with escape sequences for colours if wanted."""
    def part(text, style):
        return f"\033[{ANSI[style]}m{text}\033[0m" if color and style in ANSI and text.strip() else text

    return "\n".join("".join(part(*one) for one in line).rstrip() for line in lines)


# JSON

def _delays(delays):
    if delays is None:
        return None
    found = {"packets": delays.packets, "mean_ns": delays.mean_ns()}
    for name, percent in PERCENTILES:
        found[name + "_ns"] = delays.percentile_ns(percent)
    found["max_ns"] = delays.max_ns if delays.packets else None
    found["max_exact"] = delays.max_exact
    return found


def _histogram(queue):
    if not queue.has_histogram():
        return None
    return {"unit_ns": queue.delay["unit_ns"], "generation": queue.delay["generation"],
            "sum_ns": queue.delay["sum_ns"], "max_ns": queue.delay["max_ns"], "beyond": queue.delay["beyond"],
            "begin_ns": [stats.bucket_begin_ns(index, queue.delay["unit_ns"]) for index in range(len(queue.hist))],
            "packets": queue.hist}


def _queue(entry, queue):
    interval = entry.interval
    found = {"counters": entry.sample.queues[queue].counters or None,
             "histogram": _histogram(entry.sample.queues[queue])}
    if interval is None:
        return dict(found, interval=None)
    rate = interval.rate(queue, "forwarded_bytes")
    found["interval"] = {
        "counters": interval.counters[queue] or None,
        "bits_per_second": None if rate is None else 8 * rate,
        "packets_per_second": interval.rate(queue, "forwarded"),
        "mark_share": interval.mark_share(queue),
        "drop_share": interval.drop_share(queue, None),
        "drop_share_ect": interval.drop_share(queue, "ect"),
        "drop_share_not_ect": interval.drop_share(queue, "not_ect"),
        "delay": _delays(interval.delays[queue]),
    }
    return found


def as_json(entries, unix_time):
    """All statistics, for json.dumps()."""
    return {
        "version": version(),
        "time": unix_time,
        "qdiscs": [{
            "device": entry.device, "ifindex": entry.ifindex, "handle": entry.handle, "parent": entry.parent,
            "name": entry.name,
            "level": entry.sample.level, "missing": missing(entry.sample),
            "interval_seconds": entry.interval.seconds if entry.interval else None,
            "total": entry.sample.basic,
            "total_interval": entry.interval.total if entry.interval else None,
            "probability": {name: entry.sample.probability(name) for name in ("p", "p_c", "p_cl")},
            "overload": entry.sample.overload or None,
            "link": dict(entry.sample.link, **{name: entry.sample.link.get(name) or None
                                               for name in ("drain_rate", "nqb_limit_bytes")})
            if entry.sample.link else None,
            "link_interval": entry.interval.link or None if entry.interval else None,
            "qprotect": entry.sample.qprotect or None,
            "qprotect_interval": entry.interval.qprotect or None if entry.interval else None,
            "state": dict(entry.sample.xstats, **{name: entry.sample.ext[name] for name in stats.QDISC_COUNTERS
                                                  if name in entry.sample.ext}),
            "queues": {stats.QUEUE_NAMES[queue]: _queue(entry, queue) for queue in stats.QUEUES},
        } for entry in entries],
    }


# Text

def overload(sample, unix_time):
    """One phrase on overload, None if unknown; and whether the qdisc is in overload now."""
    if not sample.overload:
        return None, False
    times = sample.overload.get("count", 0)
    lasted = sample.overload.get("duration_ns")
    if sample.overload.get("now"):
        since = "" if lasted is None else " for " + delay(lasted)
        return f"OVERLOAD{since}, {times} in total", True
    if not times:
        return "never overloaded", False
    text = f"overloaded {times} {'time' if times == 1 else 'times'}"
    start = sample.overload.get("start_ns")
    if start and lasted is not None:
        text += f", {'' if times == 1 else 'the last '}for {delay(lasted)}"
        text += f", ended {ago(max(unix_time - (start + lasted) / 1e9, 0))} ago"
    return text, False


def link(sample):
    """Phrases on the shaper, the native L4S marker and NQB; unknown values are left out."""
    found = sample.link
    phrases = []
    if found.get("drain_rate"):
        phrases.append(f"link {bits(8 * found['drain_rate'])}")
    if found.get("target_ns"):
        phrases.append(f"target {delay(found['target_ns'])}")
    if "ramp_max_ns" in found:
        phrases.append(f"ramp {delay(found['ramp_min_ns'])} to {delay(found['ramp_max_ns'])}")
    if found.get("burst_ns"):
        phrases.append(f"burst {delay(found['burst_ns'])}")
    if found.get("nqb_arrived"):
        phrases.append(f"NQB {count(found['nqb_arrived'], 'pkt')}" + (
            f", {count(found['nqb_dropped'], 'pkt')} dropped" if found.get("nqb_dropped") else ""))
    return phrases


def qprotect(sample):
    """Phrases on queue protection; none if it is off or has not redirected a packet."""
    found = sample.qprotect
    if not found.get("redirected"):
        return []
    phrases = [f"redirected {count(found['redirected'], 'pkt')}"]
    if found.get("sanctioned"):
        phrases.append(f"{found['sanctioned']} {'flow' if found['sanctioned'] == 1 else 'flows'} under sanction")
    return phrases


SPARKS = " ▁▂▃▄▅▆▇█"
SPARKS_ASCII = " .:-=+*#@"


def sparkline(values, width, ascii_only=False):
    """The newest values as bars from 0 to their maximum, and a blank for None.

    Returns the line, and the maximum or None.
    """
    shown = list(values)[-width:] if width > 0 else []
    known = [value for value in shown if value is not None]
    if not known:
        return "", None
    top = max(known)
    marks = SPARKS_ASCII if ascii_only else SPARKS
    steps = len(marks) - 1
    return "".join(" " if value is None else marks[min(max(-int(-value * steps // (top or 1)), 1), steps)]
                   for value in shown), top
