# SPDX-License-Identifier: GPL-2.0-only
"""Options, and which of the views a person wants."""

import argparse
import datetime
import json
import os
import signal
import sys
import time

from .. import Trouble, version
from ..kernel.qdisc import Reports
from ..kernel.text import delay
from . import report
from .watch import Watch

EPILOG = "See dualpi2-top(8) for what is shown, and for the names of JSON and metrics."


def _interval(words):
    try:
        value = float(words)
    except ValueError:
        value = 0
    if not 0.1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"'{words}' is no interval; give seconds from 0.1 to 86400")
    return value


def _options(words):
    parser = argparse.ArgumentParser(
        prog="dualpi2-top", epilog=EPILOG,
        description="Show every dualpi2 of this machine: rates, marks, drops, percentiles of delay.")
    parser.add_argument("--version", action="version", version="dualpi2-top " + version())
    parser.add_argument("--interval", type=_interval, default=1.0, metavar="SECONDS", help="time between two looks (1)")
    parser.add_argument("--device", metavar="DEV", help="only this device")
    parser.add_argument("--netns", metavar="NAME", help="in this network namespace, as named by `ip netns`")
    parser.add_argument("--once", action="store_true", help="show one interval and end")
    parser.add_argument("--since-start", action="store_true",
                        help="show all since each qdisc's beginning, at once, instead of an interval")
    parser.add_argument("--json", action="store_true", help="as JSON, one line for each interval")
    parser.add_argument("--openmetrics", action="store_true",
                        help="metrics for Prometheus, for the node exporter's textfile collector")
    parser.add_argument("--output", metavar="FILE", help="write the metrics there, replacing the file at once")
    parser.add_argument("--events", action="store_true", help="print reports of overload as they come")
    found = parser.parse_args(words)
    if found.openmetrics and (found.json or found.events or found.once or found.since_start):
        parser.error("--openmetrics goes with --device, --netns and --output only; leave the others out")
    if found.output and not found.openmetrics:
        parser.error("--output is for metrics; add --openmetrics, or redirect the output with >")
    if found.events and (found.once or found.since_start):
        parser.error("--events goes on until it is interrupted; leave out --once and --since-start")
    if found.since_start:
        found.once = True
    return found


def _print(words):
    print(words, flush=True)


def _events(options):
    reports = Reports(options.netns)
    if options.device:
        reports.kernel.ifindex(options.device)      # a name with a mistake in it would be waited for in silence
    while True:
        for event in reports.wait():
            if not options.device or event.get("lost") or event.get("device") == options.device:
                _print(json.dumps(event) if options.json else event_text(event))


def event_text(event):
    """A report as a line."""
    if event.get("lost"):
        return "some reports were lost: they came faster than they were read; `tc -s qdisc show` has the sums"
    start = event.get("start_ns", 0)
    when = datetime.datetime.fromtimestamp(start // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    where = f"{event['device'] or event.get('ifindex')} {event.get('handle')} parent {event.get('parent')}"
    text = f"{when}.{start // 10**6 % 1000:03d}Z {where}: overload "
    lasted = delay(event.get("duration_ns"))
    count = event.get("count", 1)
    if event["event"] == "begin":
        return text + "began"
    return text + f"ended, {lasted} in it" + (f", {count} times since then" if count > 1 else "")


def _openmetrics(options):
    from . import metrics
    watch = Watch(options.netns, options.device)
    content = metrics.text(watch.sample(), options.netns)
    if options.output:
        metrics.write(options.output, content)
    else:
        print(content, end="", flush=True)
    return 0


def _stream(options):
    """--once, --json or both."""
    from . import screen
    watch = Watch(options.netns, options.device)
    watch.sample()
    due = time.monotonic()
    while True:
        if options.since_start:
            watch.since_start()
        else:
            due = max(due + options.interval, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0))
            watch.sample()
        nothing = report.none_here(options.device, options.netns)
        if options.json:
            _print(json.dumps(report.as_json(watch.entries, time.time())))
        elif watch.entries:
            _print(screen.text(watch.entries, _columns(), time.time(), nothing, screen.ascii_wanted()))
        if options.once:
            if not watch.entries:
                raise Trouble(nothing)
            return 0


def _columns():
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, 40)
    except OSError:
        return 80


def _run(options):
    if options.openmetrics:
        return _openmetrics(options)
    if options.events:
        return _events(options)
    if options.once or options.json:
        return _stream(options)
    from . import screen
    # Without its terminal there is nothing to go on for, nohup or not.
    signal.signal(signal.SIGHUP, _terminate)
    watch = Watch(options.netns, options.device)
    screen.show(watch, options.interval, report.none_here(options.device, options.netns))
    return 0


def _terminate(number, _):
    raise SystemExit(128 + number)


def _silence():
    """Drop what is not written yet: Python would complain at its end."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(words=None):
    """The program; its exit code."""
    # An exception, and not at once: the terminal is put back on the way out.
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup it goes on.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _terminate)
    if hasattr(sys.stdout, "reconfigure"):
        # A device may have a name that the locale lacks letters for.
        sys.stdout.reconfigure(errors="replace")
    try:
        return _run(_options(words))
    except Trouble as trouble:
        print(f"dualpi2-top: {trouble}", file=sys.stderr)
        return trouble.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read it has enough.
        _silence()
        return 0
    except OSError as error:
        _silence()
        print(f"dualpi2-top: ended by an error ({error.strerror or error}); if the output goes to a file, see whether "
              "that can be written, else please report this", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"dualpi2-top: this Python lacks {error.name}; install the whole of it: apt install python3",
              file=sys.stderr)
        return 1
