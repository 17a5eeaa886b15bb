# SPDX-License-Identifier: GPL-2.0-only
"""Options of dualpi2-top, and the choice of the output."""

import argparse
import datetime
import json
import locale
import os
import signal
import sys
import time

from .. import Trouble, version
from ..kernel.qdisc import Reports
from ..kernel.text import delay
from ..parser import Parser
from . import details, metrics, report, table
from .names import Names
from .watch import Watch

EPILOG = ("Exit status: 0 success; 1 failure, or no dualpi2 for --once; 2 invalid arguments or no terminal; 128 + N "
          "after signal N. See dualpi2-top(8) for columns and keys, docs/JSON.md for JSON and metrics.")


def _number(kind, least, most, unit):
    def parse(word):
        try:
            value = kind(word)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"invalid argument '{word}'; allowed are {unit}{least} to {most}")
        return value
    return parse


def _parser():
    parser = Parser(prog="dualpi2-top", epilog=EPILOG, usage="dualpi2-top [OPTION]...",
                    formatter_class=argparse.HelpFormatter,
                    description="Show all dualpi2 qdiscs: rates, marks, drops and delay percentiles.")
    parser.add_argument("-V", "--version", action="version", version="dualpi2-top " + version())
    group = parser.add_argument_group("which qdiscs")
    group.add_argument("-d", "--device", metavar="DEV", help="only those of this device")
    group.add_argument("-n", "--netns", metavar="NAME", help="network namespace, a name of `ip netns` or a path")
    group.add_argument("--filter", metavar="TEXT", default="",
                       help="only those with TEXT in device, handle, parent or name")
    group.add_argument("--sort", metavar="KEY", choices=table.KEYS, default="device",
                       help=f"order: {', '.join(table.KEYS)} (default: device)")
    group.add_argument("--limit", metavar="N", type=_number(int, 1, 10**6, ""), help="only the first N in that order")
    group.add_argument("--names", metavar="FILE", help="names of qdiscs; lines of HANDLE NAME or DEV HANDLE NAME")
    group = parser.add_argument_group("output (default: an interactive view)")
    group.add_argument("-i", "--interval", type=_number(float, 0.1, 86400, "seconds from "), default=1.0,
                       metavar="SECONDS", help="refresh interval in seconds, 0.1 to 86400 (default: 1)")
    group.add_argument("--once", action="store_true", help="print one interval and exit")
    group.add_argument("--since-start", action="store_true",
                       help="print the statistics since each qdisc was created and exit")
    group.add_argument("--details", action="store_true",
                       help="print all statistics instead of one line per qdisc, for --once and --since-start "
                            "(default with --device)")
    group.add_argument("--color", metavar="WHEN", choices=("auto", "always", "never"), default="auto",
                       help="use colours: auto, always, never (default: auto, on a terminal unless NO_COLOR is set)")
    group.add_argument("-j", "--json", action="store_true", help="print JSON, one line per interval")
    group.add_argument("--events", action="store_true", help="print overload reports as they arrive")
    group = parser.add_argument_group("metrics")
    group.add_argument("--prometheus", action="store_true", help="print metrics in Prometheus' text format and exit")
    # The name up to version 2.4, although the format is not OpenMetrics.
    group.add_argument("--openmetrics", action="store_true", dest="prometheus", help="older name of --prometheus")
    group.add_argument("--output", metavar="FILE", help="replace FILE atomically instead of printing")
    group.add_argument("--buckets", metavar="N", type=_number(int, metrics.BUCKETS_MIN, metrics.BUCKETS_MAX, ""),
                       help=f"export N histogram boundaries, {metrics.BUCKETS_MIN} to {metrics.BUCKETS_MAX}, powers of "
                            "two (default: all 96)")
    group.add_argument("--no-histograms", action="store_true", help="export only sum and count of the delays")
    return parser


def _options(args):
    parser = _parser()
    found = parser.parse_args(args)
    if found.prometheus and (found.json or found.events or found.once or found.since_start or found.details
                             or found.filter or found.limit or found.sort != "device"):
        parser.error("--prometheus excludes --json, --events, --once, --since-start, --details, --filter, --sort and "
                     "--limit; leave the others out")
    if not found.prometheus and (found.output or found.buckets or found.no_histograms):
        parser.error("--output, --buckets and --no-histograms are for metrics; add --prometheus")
    if found.buckets and found.no_histograms:
        parser.error("--no-histograms excludes --buckets; leave one out")
    if found.details and not (found.once or found.since_start):
        parser.error("--details is for --once and --since-start; in the interactive view, press Enter")
    if found.events and (found.once or found.since_start):
        parser.error("--events excludes --once and --since-start; leave the others out")
    if found.since_start:
        found.once = True
    return found


def _print(text):
    print(text, flush=True)


def _events(options):
    reports = Reports(options.netns)
    names = Names(options.names)
    if options.device:
        reports.kernel.ifindex(options.device)      # Without this check, a misspelt name would wait forever.
    while True:
        for event in reports.wait():
            if not options.device or event.get("lost") or event.get("device") == options.device:
                name = names.get(event.get("device"), event.get("handle"))
                if name:
                    event["name"] = name
                _print(json.dumps(event) if options.json else event_text(event))


def event_text(event):
    """A report as a line."""
    if event.get("lost"):
        return "reports were lost because they arrived faster than they were read; see the totals: tc -s qdisc show"
    start = event.get("start_ns", 0)
    when = datetime.datetime.fromtimestamp(start // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    where = f"{event['device'] or event.get('ifindex')} {event.get('handle')} parent {event.get('parent')}"
    if event.get("name"):
        where += f" {event['name']}"
    text = f"{when}.{start // 10**6 % 1000:03d}Z {where}: overload "
    if event["event"] == "begin":
        return text + "began"
    count = event.get("count", 1)
    return text + f"ended after {delay(event.get('duration_ns'))}" + (
        f", {count} overloads since the last report" if count > 1 else "")


def _metrics(options):
    watch = Watch(options.netns, options.device, names=Names(options.names))
    histograms = metrics.Histograms(0 if options.no_histograms else options.buckets)
    content = metrics.text(watch.sample(), options.netns, histograms)
    if options.output:
        metrics.write(options.output, content)
    else:
        print(content, end="", flush=True)
    return 0


def _stream(options):
    """--once, --json or both."""
    watch = Watch(options.netns, options.device, names=Names(options.names))
    watch.sample()
    due = time.monotonic()
    while True:
        if options.since_start:
            watch.since_start()
        else:
            due = max(due + options.interval, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0))
            watch.sample()
        shown = table.chosen(watch.entries, options.sort, options.filter, options.limit)
        nothing = report.none_here(options.device, options.netns)
        if watch.entries and not shown:
            nothing = f"no qdisc matches '{options.filter}'; without --filter, all are listed"
        if options.json:
            _print(json.dumps(report.as_json(shown, time.time())))
        elif shown:
            lines = (details.lines(shown, _columns(), time.time(), nothing, ascii_wanted())
                     if options.details or options.device else table.lines(shown, _columns(), nothing))
            _print(report.as_text(lines, color_wanted(options.color, sys.stdout)))
        if options.once:
            if not shown:
                raise Trouble(nothing)
            return 0


def _columns():
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, 40)
    except OSError:
        return 80


def color_wanted(when, stream):
    """Are colours wanted on this stream? See no-color.org."""
    if when != "auto":
        return when == "always"
    # Without an open stdout, Python sets sys.stdout to None.
    return bool(stream and stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def ascii_wanted():
    """Does the locale lack the letters of the bars?"""
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:    # a locale that ssh passed on, and that is not installed here
        return True
    return locale.nl_langinfo(locale.CODESET).upper().replace("-", "") != "UTF8"


def _run(options):
    if options.prometheus:
        return _metrics(options)
    if options.events:
        return _events(options)
    if options.once or options.json:
        return _stream(options)
    from . import screen
    # Without its terminal the view must end, even under nohup.
    signal.signal(signal.SIGHUP, _terminate)
    watch = Watch(options.netns, options.device, names=Names(options.names))
    screen.show(watch, options, report.none_here(options.device, options.netns), ascii_wanted(),
                color_wanted(options.color, sys.stdout))
    return 0


def _terminate(number, _):
    raise SystemExit(128 + number)


def _silence():
    """Discard unwritten output; otherwise Python reports it on exit."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(args=None):
    """Run the program; returns its exit status."""
    # Raise an exception instead of exiting at once, so that curses restores the terminal.
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup, SIGHUP stays ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _terminate)
    if hasattr(sys.stdout, "reconfigure"):
        # Device names may contain letters that the locale lacks.
        sys.stdout.reconfigure(errors="replace")
    try:
        return _run(_options(args))
    except Trouble as trouble:
        print(f"dualpi2-top: {trouble}", file=sys.stderr)
        return trouble.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe.
        _silence()
        return 0
    except OSError as error:
        _silence()
        print(f"dualpi2-top: {error.strerror or error}; if the output goes to a file, check that the file can be "
              "written, else report this error", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"dualpi2-top: Python module '{error.name}' is missing; install all of Python: apt install python3",
              file=sys.stderr)
        return 1
