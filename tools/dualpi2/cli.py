# SPDX-License-Identifier: GPL-2.0-only
"""Options, and which of the commands a person wants."""

import argparse
import json
import os
import shlex
import signal
import sys

from . import Trouble, version
from .up import commands, service, state, status

EPILOG = "See dualpi2(8) for link layers, examples and files; tc-dualpi2(8) for what may stand after --."


def _parser():
    parser = argparse.ArgumentParser(
        prog="dualpi2", epilog=EPILOG, description="Low latency (L4S, RFC 9332) on a link, in one command.")
    parser.add_argument("--version", action="version", version="dualpi2 " + version())
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="up | down | status | doctor")

    one = verbs.add_parser("up", epilog=EPILOG, help="set both directions of a link, or change them in place",
                           usage="dualpi2 up DEV [--download RATE] [--upload RATE] [--link WORDS] [--rtt TIME]\n"
                                 "                  [--persist] [--replace] [--dry-run] [-- dualpi2's options]\n"
                                 "       dualpi2 up DEV --from-config [--replace] [--dry-run]")
    one.add_argument("device", metavar="DEV", help="the device towards the Internet")
    one.add_argument("--download", metavar="RATE", help="slightly below what the link brings, 95mbit say")
    one.add_argument("--upload", metavar="RATE", help="slightly below what the link takes")
    one.add_argument("--link", metavar="WORDS", help="link layer: docsis, pppoe-ptm, \"overhead 18 mpu 64\" ...")
    one.add_argument("--rtt", metavar="TIME", help="the longest base round trip to serve well (100ms)")
    one.add_argument("--persist", action="store_true", help="the same at each boot, by systemd")
    one.add_argument("--from-config", action="store_true", help="with the words of /etc/dualpi2/DEV.conf")
    one.add_argument("--replace", action="store_true", help="take the place of qdiscs and filters of others")
    one.add_argument("--dry-run", action="store_true", help="print the lines of ip and tc, and change nothing")

    one = verbs.add_parser("down", help="remove what up did, and nothing else")
    one.add_argument("device", metavar="DEV")
    one.add_argument("--keep-config", action="store_true", help="leave what --persist set up for the next boot")
    one.add_argument("--dry-run", action="store_true", help="print the lines of ip and tc, and change nothing")

    one = verbs.add_parser("status", help="what is set, and whether it is still so")
    one.add_argument("device", metavar="DEV", nargs="?")
    one.add_argument("--json", action="store_true", help="as JSON")

    verbs.add_parser("doctor", add_help=False, help="why there is no L4S here, and what mends it")
    return parser


def _need_root(verb):
    if os.geteuid():
        raise Trouble(f"{verb} needs root; run it with sudo")


def _ask(question):
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(question + " [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _want(options, extra):
    given = [options.download, options.upload, options.link, options.rtt, *extra]
    if not options.from_config:
        return commands.Want(options.download, options.upload, options.link, options.rtt, extra)
    if any(given) or options.persist:
        raise Trouble("--from-config takes all from the file; leave the other options out", 2)
    found = state.load_config(options.device)
    options.replace = options.replace or found.get("REPLACE", "no").lower() in ("yes", "true", "1")
    try:
        try:
            words = shlex.split(found.get("OPTIONS", ""))
        except ValueError as error:
            raise Trouble(f"OPTIONS: an apostrophe is open in {found['OPTIONS']}; write words only", 2) from error
        return commands.Want(found.get("DOWNLOAD"), found.get("UPLOAD"), found.get("LINK"), found.get("RTT"), words)
    except Trouble as trouble:
        raise Trouble(f"{state.config_path(options.device)}: {trouble}", trouble.code) from trouble


def _up(options, extra):
    want = _want(options, extra)
    if options.dry_run:
        steps, notes = commands.up(options.device, want, options.replace, options.from_config, dry_run=True)
        _notes(notes)
        print("".join(f"{step}\n" for step in steps), end="")
        return 0
    _need_root("up")
    if options.persist:
        service.check(options.device)
    try:
        notes = _apply(options, want)
    except commands.Taken as taken:
        when = "now, and at each boot" if options.persist else "now"
        if options.from_config or not _ask(f"dualpi2: {taken}. Replace it {when}?"):
            raise
        options.replace = True
        notes = _apply(options, want)
    _notes(notes)
    if options.persist:
        # By the name that it has now, which is the one at the next boot.
        _persist(commands.Situation(options.device).name, dict(want.text, REPLACE="yes" if options.replace else ""))
    elif not options.from_config and os.path.exists(state.config_path(options.device)):
        print(f"dualpi2: {state.config_path(options.device)} still has what was persisted before; add --persist to "
              "change that", file=sys.stderr)
    for found in status.collect(options.device):
        print(status.text(found))
    return 0


def _persist(name, words):
    before = state.read_config(name)
    try:
        try:
            state.save_config(name, words)
            service.enable(name)
        except BaseException:
            if before is None:
                service.not_at_boot(name)
                state.forget_config(name)
            else:
                state.write_config(name, before)
            raise
    except Trouble as trouble:
        boot = "not for the next boot" if before is None else "for the next boot as it was persisted before"
        raise Trouble(f"the link is set up, but {boot}: {trouble}", trouble.code) from trouble


def _apply(options, want):
    with state.lock():
        _, notes = commands.up(options.device, want, options.replace, options.from_config)
    return notes


def _notes(notes):
    for note in notes:
        print(f"dualpi2: {note}", file=sys.stderr)


def _down(options, extra):
    if extra:
        raise Trouble("down takes nothing after --", 2)
    if options.dry_run:
        steps, notes = commands.down(options.device, dry_run=True)
        _notes(notes)
        print("".join(f"{step}\n" for step in steps), end="")
        return 0
    _need_root("down")
    persisted = False
    if not options.keep_config:
        here = commands.Situation(options.device)
        # All names that it had, but for those that another device has now.
        mine = [name for name in here.names if name in (options.device, here.name) or name not in here.by_name]
        for name in dict.fromkeys(mine):
            persisted = persisted or os.path.exists(state.config_path(name))
            service.disable(name)
            state.forget_config(name)
    with state.lock():
        try:
            steps, notes = commands.down(options.device)
        except commands.Gone:
            if not persisted:
                raise
            steps, notes = [], []       # the device is gone, and with it what the unit set up
    _notes(notes)
    if not steps and not persisted and not options.keep_config:
        print(f"dualpi2: nothing of ours was on {options.device}", file=sys.stderr)
    return 0


def _check_name(name):
    """It becomes part of paths."""
    if not 0 < len(os.fsencode(name)) <= commands.NAME_MAX or name in (".", "..") or "/" in name or " " in name or \
            not name.isprintable():
        raise Trouble(f"{name!r} is no name of a device; `ip link` lists them", 2)


def _status(options, extra):
    if extra:
        raise Trouble("status takes nothing after --", 2)
    found = status.collect(options.device)
    if options.json:
        print(json.dumps(found))
    else:
        for one in found:
            print(status.text(one))
        if not found:
            print("dualpi2: nothing is set; see: dualpi2 up --help", file=sys.stderr)
    return 1 if any(one["problems"] for one in found) else 0


def _doctor(words):
    try:
        from .doctor import cli as doctor
    except ImportError as error:
        raise Trouble(f"doctor is not here ({error}); install the package dualpi2-tools anew") from error
    return doctor.main(words)


def _terminate(number, _):
    raise SystemExit(128 + number)


def _run(words):
    if words[:1] == ["doctor"]:
        return _doctor(words[1:])
    extra = []
    if "--" in words:
        at = words.index("--")
        words, extra = words[:at], words[at + 1:]
    options = _parser().parse_args(words)
    if options.device is not None:
        _check_name(options.device)
    return {"up": _up, "down": _down, "status": _status}[options.verb](options, extra)


def main(words=None):
    """The program; its exit code: 0 done, 1 not possible, 2 wrong words."""
    # An exception, so that what is half done is undone.
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        return _run(sys.argv[1:] if words is None else words)
    except Trouble as trouble:
        print(f"dualpi2: {trouble}", file=sys.stderr)
        return trouble.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"dualpi2: {error.filename or 'the system'}: {error.strerror or error}; see whether that is writable and "
              "not full", file=sys.stderr)
        return 1
