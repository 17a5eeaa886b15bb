# SPDX-License-Identifier: GPL-2.0-only
"""Commands and options of dualpi2."""

import argparse
import json
import os
import re
import signal
import sys

from . import Trouble, traces, version
from .kernel import netlink
from .parser import Parser, nearest
from .up import arguments, commands, service, state, status, system

CODES = """exit status:
  0   done; for status: all is as configured
  1   not possible; for status: something is not as configured
  2   invalid command, option or value
  3   doctor only: it cannot tell
  130, 143, 129
      ended by Ctrl-C, SIGTERM or SIGHUP; a change was undone
"""
SEE = "See dualpi2(8) for link layers, files and examples, and tc-dualpi2(8) for the options after --."
RATES = "docs/guides/rates.md says which rates to use.\n\n"


def _epilog(*examples, rates=False):
    lines = "".join(f"  {example}\n" for example in examples)
    return f"example{'s' if examples[1:] else ''}:\n{lines}\n{RATES if rates else ''}{CODES}\n{SEE}"


def _add_rates(one, kept):
    """Options of up and set; kept: what happens to a value that is not named."""
    off = ", or off to remove the shaper"
    download = one.add_argument("--download", metavar="RATE", help=f"rate of the download shaper, 8kbit to 1tbit{off} "
                                f"({kept[0]})")
    upload = one.add_argument("--upload", metavar="RATE", help=f"rate of the upload shaper{off} ({kept[0]})")
    link = one.add_argument("--link", metavar="KEYWORDS", help="link layer, with keywords of cake: docsis, "
                            f"\"pppoe-ptm ether-vlan\", \"overhead 18 mpu 64\" ({kept[1].format('raw')})")
    rtt = one.add_argument("--rtt", metavar="TIME", help="longest base RTT of the connections, 1ms to 8.5s, or a "
                           f"keyword of cake such as regional ({kept[1].format('100ms')})")
    queues = one.add_argument("--queues", metavar="one|all", help="one: dualpi2, for which one processor sends at a "
                              "time; all: dualpi2_mq, over all transmit queues (default: keep, at first one)")
    # For shell completion.
    queues.completions = [*arguments.QUEUES]
    download.completions = upload.completions = [commands.OFF]
    link.completions = [*arguments.PRESETS, *arguments.FRAMINGS, "overhead", "mpu", "ether-vlan"]
    rtt.completions = [*arguments.RTTS]
    one.add_argument("--persist", action="store_true", help="save the configuration and apply it at each boot, by "
                     "systemd (default: until the next boot)")
    one.add_argument("--replace", action="store_true", help="replace a qdisc or filters of another tool (default: ask "
                     "on a terminal, else fail)")
    one.add_argument("-y", "--yes", action="store_true", help="answer yes instead of asking whether to replace")


def _add_common(one, changes=True):
    if changes:
        one.add_argument("--dry-run", action="store_true", help="print the ip and tc lines, and change nothing; "
                         "needs no privileges")
        one.add_argument("-v", "--verbose", action="store_true", help="print each ip and tc line as it runs")
    else:
        one.add_argument("-j", "--json", action="store_true", help="print JSON")
    one.add_argument("-n", "--netns", metavar="NETNS", help="work in this network namespace of `ip netns`")


def _add_up(verbs):
    one = verbs.add_parser(
        "up", help="shape a link in both directions, or change that",
        usage="dualpi2 up DEV [--download RATE|off] [--upload RATE|off] [--link KEYWORDS] [--rtt TIME]\n"
              "                  [--queues one|all] [--persist] [--replace] [-y] [--dry-run] [-v] [-n NETNS]\n"
              "                  [-- OPTIONS OF TC]\n"
              "       dualpi2 up DEV --from-config [--replace] [--dry-run] [-v] [-n NETNS]",
        description="Shape a link in both directions with dualpi2. Needs --download, --upload or both. A direction "
                    "that is not\nnamed is kept, and so is --queues. All other values that are not named return to "
                    "their defaults;\n`dualpi2 set` keeps them.",
        epilog=_epilog("dualpi2 up eth0 --upload 19mbit --download 90mbit --link docsis --persist", rates=True))
    one.add_argument("device", metavar="DEV", help="the device towards the Internet")
    _add_rates(one, ("default: keep", "default: {0}"))
    one.add_argument("--from-config", action="store_true", help="apply /etc/dualpi2/DEV.conf; the device may be down")
    _add_common(one)


def _add_set(verbs):
    one = verbs.add_parser(
        "set", help="change some values of a link, and keep the others",
        usage="dualpi2 set DEV [--download RATE|off] [--upload RATE|off] [--link KEYWORDS] [--rtt TIME]\n"
              "                   [--queues one|all] [--persist] [--replace] [-y] [--dry-run] [-v] [-n NETNS]\n"
              "                   [-- OPTIONS OF TC]",
        description="Change the named values, and keep all others: those of the running configuration or, if the "
                    "device is not\nset up, of /etc/dualpi2/DEV.conf. The change is applied completely or not at all.",
        epilog=_epilog("dualpi2 set eth0 --upload 18mbit", "dualpi2 set eth0 --persist -- target 20ms", rates=True))
    one.add_argument("device", metavar="DEV", help="the device towards the Internet")
    _add_rates(one, ("default: keep", "default: keep"))
    _add_common(one)


class _Example(argparse.Action):
    """Prints an example of a trace, and ends the program."""

    def __call__(self, one, namespace, values, option_string=None):
        print("\n".join(map(str, traces.example(values))), flush=True)
        one.exit()


def _step(text):
    found = re.fullmatch(r"([0-9]{1,5})(ms|s)", text, re.A)
    step_ms = int(found[1]) * {"ms": 1, "s": 1000}[found[2]] if found else 0
    if not 10 <= step_ms <= 10000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a step; write a time from 10ms to 10s")
    return step_ms


def _seconds(text):
    found = re.fullmatch(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)s?", text, re.A)
    length_ms = round(float(found[1]) * 1000) if found else 0
    if not 1 <= length_ms <= traces.MS_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time; write seconds, 0.001 to {traces.MS_MAX // 1000}")
    return length_ms


def _add_play(verbs):
    one = verbs.add_parser(
        "play", help="play a capacity trace through the shaper",
        usage="dualpi2 play DEV TRACE [--step TIME] [--for SECONDS] [-j] [-n NETNS]\n"
              "       dualpi2 play --example NAME",
        description="Change the bandwidth of the dualpi2 on a device as a capacity trace does: a file in the format of "
                    "Mahimahi, with\none time in milliseconds for each 1500 bytes that the link can send. At the end, "
                    "the former bandwidth is\nrestored, also after Ctrl-C, and a report is printed.",
        epilog=_epilog("dualpi2 play --example lte >lte.trace", "dualpi2 play eth0 lte.trace --for 60"))
    one.add_argument("device", metavar="DEV", help="the device with a dualpi2 that has a bandwidth")
    one.add_argument("trace", metavar="TRACE", help="the trace")
    one.add_argument("--step", metavar="TIME", type=_step, default=50, help="time between changes, 10ms to 10s; each "
                     "rate is the mean of the trace in that time (default: 50ms)")
    one.add_argument("--for", metavar="SECONDS", type=_seconds, dest="length_ms", help="length of the play; a shorter "
                     "trace is repeated (default: the length of the trace)")
    one.add_argument("--example", metavar="NAME", action=_Example, choices=[*traces.EXAMPLES], help="print an example "
                     f"of a trace: {', '.join(traces.EXAMPLES)}")
    _add_common(one, changes=False)


def parser():
    """The parser of dualpi2; those of its commands are its choices."""
    main_parser = Parser(
        prog="dualpi2", usage="dualpi2 COMMAND [DEV] [OPTIONS]",
        description="Low latency (L4S, RFC 9332) on a link, in one command.",
        epilog=_epilog("dualpi2 up eth0 --upload 19mbit --download 90mbit", "dualpi2 status", "dualpi2 down eth0"))
    main_parser.add_argument("-V", "--version", action="version", version="dualpi2 " + version(),
                             help="print the version")
    verbs = main_parser.add_subparsers(dest="verb", required=True, metavar="COMMAND", title="commands",
                                       prog="dualpi2", parser_class=Parser)
    _add_up(verbs)
    _add_set(verbs)

    one = verbs.add_parser("down", help="remove what up made, and nothing else", epilog=_epilog("dualpi2 down eth0"),
                           description="Remove both qdiscs, the filter and the ifb device of `dualpi2 up`, its saved "
                           "configuration and its unit.")
    one.add_argument("device", metavar="DEV", help="the device; its former name works, too")
    one.add_argument("--keep-config", action="store_true", help="keep the saved configuration for the next boot "
                     "(default: remove it)")
    _add_common(one)

    one = verbs.add_parser("status", help="check what is set up", epilog=_epilog("dualpi2 status --json"),
                           description="Print the configuration of each device, and whether the kernel still has it; "
                           "if not, the command that\nfixes it.")
    one.add_argument("device", metavar="DEV", nargs="?", help="only this device (default: all)")
    _add_common(one, changes=False)

    one = verbs.add_parser("list", help="list the devices that are set up", epilog=_epilog("dualpi2 list"),
                           description="Print one line for each device that is set up or has a saved configuration. "
                           "The exit status is 0,\nwhatever their state.")
    _add_common(one, changes=False)

    _add_play(verbs)
    verbs.add_parser("doctor", add_help=False, help="find out why a device has no L4S")
    verbs.add_parser("version", help="print the versions of dualpi2, the module and tc",
                     description="Print the versions of dualpi2, of the loaded module and of tc, for a bug report.",
                     epilog=_epilog("dualpi2 version"))
    one = verbs.add_parser("help", help="print the help of a command", epilog=_epilog("dualpi2 help up"),
                           description="Print the help of a command, or of dualpi2.")
    one.add_argument("command", metavar="COMMAND", nargs="?", help="a command (default: print the list of commands)")
    one._actions[-1].completions = [*verbs.choices]
    return main_parser


def _need_root(options):
    if os.geteuid():
        raise Trouble(f"'{options.verb}' needs root; run: sudo dualpi2 {options.verb} ...")


def _ask(question):
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(question + " [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _saved(device):
    """(values, whether to replace) of the saved configuration, checked."""
    found = state.load_config(device)
    values = {key: value for key, value in found.items()
             if value and key != "REPLACE" and not (key in ("DOWNLOAD", "UPLOAD") and value == commands.OFF)}
    try:
        _made(values)
    except Trouble as trouble:
        raise Trouble(f"{state.config_path(device)}: {trouble}", trouble.code) from trouble
    return values, found.get("REPLACE", "no").lower() in ("yes", "true", "1")


def _made(values):
    """A configuration from values such as DOWNLOAD."""
    return commands.Want(values.get("DOWNLOAD"), values.get("UPLOAD"), values.get("LINK"), values.get("RTT"),
                         values.get("QUEUES"), arguments.split(values.get("OPTIONS"), "OPTIONS"))


def _want(options, extra):
    """The configuration that is asked for. It depends on the running one: call it with the lock held."""
    given = {"DOWNLOAD": options.download, "UPLOAD": options.upload, "LINK": options.link, "RTT": options.rtt,
             "QUEUES": options.queues}
    given = {key: value for key, value in given.items() if value is not None}
    if options.verb == "up" and options.from_config:
        if given or extra or options.persist:
            raise Trouble("--from-config takes all values from the file; omit the other values and --persist", 2)
        values, replace = _saved(options.device)
        options.replace = options.replace or replace
        return _made(values)
    if options.verb == "up" and not {"DOWNLOAD", "UPLOAD"} & set(given):
        raise Trouble("neither --download RATE nor --upload RATE is given; give one or both", 2)
    if not given and not extra and not options.persist:
        raise Trouble("no value to change; give --download, --upload, --link, --rtt, --queues or, after --, options of "
                      "tc", 2)
    # Invalid values are reported before any file is read.
    commands.Want(**{"upload": "1mbit", **{key.lower(): value for key, value in given.items()
                                           if value != commands.OFF}}, options=extra)
    here = commands.Situation(options.device)
    base = commands.running(here)
    changes = options.verb == "set"
    incomplete = changes or not {"DOWNLOAD", "UPLOAD"} <= set(given)
    if (incomplete and not base or changes and options.persist) and os.path.exists(state.config_path(here.name)):
        saved, replace = _saved(here.name)
        base = base or saved
        options.replace = options.replace or replace
    if changes:
        if not base:
            raise commands.not_set_up(here, options.device)
        values = {**base, **given,
                 "OPTIONS": arguments.merged(arguments.split(base.get("OPTIONS"), "OPTIONS"), extra)}
    else:
        values = {**{key: base[key] for key in ("DOWNLOAD", "UPLOAD", "QUEUES") if key in base}, **given,
                  "OPTIONS": extra}
        options.lost = [f"--{key.lower()} {base[key]!r}" if key != "OPTIONS" else f"-- {base[key]}"
                        for key in ("LINK", "RTT", "OPTIONS") if base.get(key) and not values.get(key)]
    rates = {key.lower(): values[key] for key in ("DOWNLOAD", "UPLOAD")
             if values.get(key, commands.OFF) != commands.OFF}
    if not rates:
        raise Trouble(commands.BOTH_OFF.format(options.device), 2)
    return commands.Want(**rates, link=values.get("LINK"), rtt=values.get("RTT"),
                         queues=values.get("QUEUES"), options=values["OPTIONS"])


def _up(options, extra):
    from_config = options.verb == "up" and options.from_config
    options.lost = []
    want = _want(options, extra)
    if options.dry_run:
        steps, notes = commands.up(options.device, want, options.replace or options.yes, from_config, dry_run=True)
        _notes(notes + _hints(options, want))
        print("".join(f"{step}\n" for step in steps), end="")
        return 0
    _need_root(options)
    if options.persist:
        service.check(options.device)
    try:
        want, notes = _apply(options, extra, from_config)
    except commands.Taken as taken:
        when = "now, and at each boot" if options.persist else "now"
        if not options.yes and (from_config or not _ask(f"dualpi2: {taken}. Replace it {when}?")):
            raise
        options.replace = True
        want, notes = _apply(options, extra, from_config)
    _notes(notes + _hints(options, want))
    if options.persist:
        # By the present name of the device, which it has at the next boot, too.
        _persist(commands.Situation(options.device).name, dict(want.text, REPLACE="yes" if options.replace else ""))
    elif not from_config and os.path.exists(state.config_path(options.device)):
        _notes([f"{state.config_path(options.device)} is unchanged, and applied at the next boot; add --persist to "
                "save the new configuration"])
    for found in status.collect(options.device):
        print(status.text(found))
    return 0


def _hints(options, want):
    """Notes on values that may be meant otherwise."""
    lost = f"reset to the default: {', '.join(options.lost)}; `dualpi2 set` keeps such values"
    return [*want.hints, *([lost] if options.lost else [])]


def _persist(name, values):
    before = state.read_config(name)
    try:
        try:
            state.save_config(name, values)
            service.enable(name)
        except BaseException:
            if before is None:
                service.not_at_boot(name)
                state.forget_config(name)
            else:
                state.write_config(name, before)
            raise
    except Trouble as trouble:
        boot = "is not applied at boot" if before is None else "is not saved; the former one is applied at boot"
        raise Trouble(f"the link is set up, but its configuration {boot}: {trouble}", trouble.code) from trouble


def _apply(options, extra, from_config):
    with state.lock():
        want = _want(options, extra)
        _, notes = commands.up(options.device, want, options.replace, from_config)
    return want, notes


def _notes(notes):
    for note in notes:
        print(f"dualpi2: {note}", file=sys.stderr)


def _down(options, extra):
    if options.dry_run:
        steps, notes = commands.down(options.device, dry_run=True)
        _notes(notes)
        print("".join(f"{step}\n" for step in steps), end="")
        return 0
    _need_root(options)
    persisted = False
    if not options.keep_config:
        here = commands.Situation(options.device)
        # All names that the device had, except those that another device has now.
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
            steps, notes = [], []       # stopping the unit has removed everything
    _notes(notes)
    if not steps and not persisted and not options.keep_config:
        print(f"dualpi2: nothing to remove on {options.device}")
    return 0


def _check_name(name):
    """A name becomes part of paths."""
    if not 0 < len(os.fsencode(name)) <= commands.NAME_MAX or name in (".", "..") or "/" in name or " " in name or \
            not name.isprintable():
        raise Trouble(f"{name!r} is not a name of a device; list devices with: ip link", 2)


def _status(options, extra):
    found = status.collect(options.device)
    if options.json:
        print(json.dumps(found))
    else:
        for one in found:
            print(status.text(one))
        if not found:
            print("dualpi2: no device is set up; see: dualpi2 up --help")
    return 1 if any(one["problems"] for one in found) else 0


def _list(options, extra):
    found = status.collect()
    print(json.dumps(found) if options.json else status.table(found), end="\n" if options.json else "")
    return 0


def _play(options, extra):
    trace = traces.read(options.trace)
    _need_root(options)
    from . import play
    played = play.Play(play.Shaper(options.device), trace, options.step, options.length_ms or trace.length_ms)
    found = played.report()
    print(json.dumps(found) + "\n" if options.json else play.text(found), end="", flush=True)
    if played.ended:
        raise played.ended
    return 0


def _version(options, extra):
    print("dualpi2 " + version())
    print("module sch_dualpi2 " + (system.module_version() or "not loaded"))
    knows = {"plugin": "with the plugin of dualpi2", "other": "with another dualpi2", "": "without dualpi2"}
    print(f"{system.run(['tc', '-V']).strip()}, {knows[system.tc_knows()]}")
    return 0


def _doctor(args):
    try:
        from .doctor import cli as doctor
    except ImportError as error:
        raise Trouble(f"'doctor' is not installed ({error}); reinstall the package dualpi2-tools") from error
    return doctor.main(args)


def _terminate(number, _):
    raise SystemExit(128 + number)


def _run(args):
    main_parser = parser()
    verbs = next(action for action in main_parser._actions if action.choices).choices
    if args[:1] == ["help"] and args[1:2] and args[1] in verbs and not args[2:]:
        args = [args[1], "--help"]
    elif args == ["help"]:
        args = ["--help"]
    elif args[:1] == ["help"] and args[1:2] and not args[1].startswith("-"):
        args = args[1:2] if args[1] not in verbs else args
    if args[:1] == ["doctor"]:
        return _doctor(args[1:])
    if args[:1] and args[0] not in verbs and not args[0].startswith("-"):
        main_parser.error(f"unknown command '{args[0]}'{nearest(args[0], verbs)}")
    if not args or args[0] not in verbs:
        main_parser.parse_args(args[:1])
        main_parser.error("COMMAND is missing")
    extra = None
    verb, args = args[0], args[1:]
    if "--" in args:
        at = args.index("--")
        args, extra = args[:at], args[at + 1:]
    options = verbs[verb].parse_args(args)
    options.verb = verb
    if extra and verb not in ("up", "set"):
        verbs[verb].error(f"'{extra[0]}' after --: {verb} has no options of tc")
    if getattr(options, "device", None) is not None:
        _check_name(options.device)
    if getattr(options, "netns", None):
        if getattr(options, "persist", False):
            raise Trouble("--persist works without --netns only; omit one of them", 2)
        # As for `ip netns exec`. The units are those of the first namespace.
        state.ETC = f"/etc/netns/{os.path.basename(options.netns)}/dualpi2"
        service.available = False
    system.verbose = getattr(options, "verbose", False)
    call = {"up": _up, "set": _up, "down": _down, "status": _status, "list": _list, "play": _play,
            "version": _version}[verb]
    with netlink.namespace(getattr(options, "netns", None)):
        return call(options, extra or [])


def main(args=None):
    """The program; returns its exit code, see CODES."""
    # An exception, so that a change that is not complete is undone.
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        return _run(sys.argv[1:] if args is None else args)
    except Trouble as trouble:
        print(f"dualpi2: {trouble}", file=sys.stderr)
        return trouble.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"dualpi2: '{error.filename or 'a system call'}': {error.strerror or error}; check that it is writable "
              "and not full", file=sys.stderr)
        return 1
