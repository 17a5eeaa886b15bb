# SPDX-License-Identifier: GPL-2.0-only
"""The steps of `dualpi2 up` and `dualpi2 down`, and the way back when one of them fails.

A step is a line of ip or tc. All are decided before the first one runs, so that --dry-run prints them.
What we make is known by marks of its own and not by the state file alone, which may be lost: handles of
the root qdiscs, the pref of the filter, the alias of the ifb device.

What others have made:
- a root qdisc that somebody chose is replaced with --replace only, by `tc qdisc replace`, which leaves the
  old one if the new one is refused;
- an ingress or clsact qdisc is shared, and then not removed by `down`;
- filters in its ingress make us refuse: a redirection ends their way, before ours or after. --replace
  deletes these filters, and leaves those of clsact's other side alone.
- --replace touches these last of all, after dualpi2 was taken on a device of our own: what is gone cannot
  be brought back, and is named if a later step fails.
"""

import contextlib
import os
import re
import shlex
import signal
import sys

from .. import Trouble, version
from . import arguments, state, system

# The second one is for a new qdisc in the place of ours. Both are below the numbers that the kernel gives.
HANDLES = ("d50:", "d51:")
PREF = 3408
ALIAS = "dualpi2 of "
NAME_MAX = 15
OLDEST = (2, 3)
TOO_OLD = ("the dualpi2 in the kernel is not this project's, or too old for `bandwidth`; install dualpi2-dkms {0} and "
           "unload the other: modprobe -r sch_dualpi2")


class Step:
    """A line, the line that undoes it, the rate that a device must have after it, and what of others it ends."""

    def __init__(self, do, undo=None, verify=None, ends=None):
        self.do = do
        self.undo = undo
        self.verify = verify
        self.ends = ends

    def __str__(self):
        return shlex.join(self.do)


class Want:
    """What a person asked for."""

    def __init__(self, download=None, upload=None, link=None, rtt=None, options=()):
        if not download and not upload:
            raise Trouble("give --download RATE, --upload RATE or both", 2)
        self.text = {"DOWNLOAD": download, "UPLOAD": upload, "LINK": link, "RTT": rtt, "OPTIONS": shlex.join(options)}
        if any('"' in text or not text.replace("\t", " ").isprintable() for text in self.text.values() if text):
            raise Trouble("leave out quotation marks, line ends and what cannot be printed", 2)
        self.download = arguments.rate(download, "--download") if download else None
        self.upload = arguments.rate(upload, "--upload") if upload else None
        self.link = arguments.link(link)
        self.rtt = arguments.rtt(rtt) if rtt else None
        self.options = list(options)
        for name in ("bandwidth", "unlimited", "ingress", "egress"):
            if name in options:
                raise Trouble(f"after --, leave out {name}: --download and --upload say it", 2)

    def qdisc(self, ingress, fresh):
        """Words for tc. One that is changed keeps what is not named: then defaults are named, too."""
        found = ["dualpi2", "bandwidth", (self.download if ingress else self.upload).text]
        if self.link.framing != "raw" or not fresh:
            found += self.link.tc()
        if ingress or not fresh:
            found.append("ingress" if ingress else "egress")
        return found + (["max_rtt", self.rtt] if self.rtt else []) + self.options


def _named(options):
    """The names among options: values begin with a digit."""
    return {word for word in options if word[:1].isalpha()}


class Situation:
    """A device and what of ours there is, whatever it is called now."""

    def __init__(self, name):
        self.notes = []
        self.devices = system.devices()
        by_index = {device.index: device for device in self.devices}
        by_name = {device.name: device for device in self.devices}
        self.states = state.load_all()
        self.moved = []
        for found in self.states:
            now = by_index.get(found["ifindex"])
            if now and now.name != found["device"]:
                self.moved.append(found["device"])
                found.setdefault("was", []).append(found["device"])
                found["device"] = now.name
        self.device = by_name.get(name)
        self.state = self._state(name)
        if not self.device and self.state:
            self.device = by_index.get(self.state["ifindex"])
            if self.device:
                self.notes.append(f"{name} is called {self.device.name} now")
        if self.device and self.state and self.state["ifindex"] != self.device.index:
            # Another device came under that name: of what was made, only the ifb device is still there.
            self.state.update(clsact=False, egress=None)
        self.name = self.device.name if self.device else name
        self.names = [self.name, name, *(self.state or {}).get("was", [])]
        self.ifb = self._ifb()
        self.by_name = by_name

    def _state(self, name):
        for found in self.states:
            if found["device"] == name:
                return found
        for found in self.states:
            if not self.device and name in found.get("was", []):
                return found
        return None

    def _ifb(self):
        ours = [device for device in self.devices if device.kind == "ifb" and device.alias.startswith(ALIAS)]
        for device in ours:
            if self.state and device.index == self.state.get("ifb_index"):
                return device
        others = [found.get("ifb_index") for found in self.states if found is not self.state]
        for device in ours:
            if device.alias[len(ALIAS):] in self.names and device.index not in others:
                return device
        return None

    def settle(self):
        """Write down new names."""
        for old in self.moved:
            state.forget(old)
        for found in self.states:
            if found["device"] not in self.moved and found.get("was", [])[-1:] and found["was"][-1] in self.moved:
                state.save(found)

    def ifb_name(self):
        """A name for a new ifb device."""
        for name in (f"dp2-{self.name}", f"dp2-{self.device.index}"):
            if len(name) <= NAME_MAX and name not in self.by_name:
                return name
        raise Trouble(f"a device dp2-{self.device.index} is there and not ours; remove it: ip link del "
                      f"dp2-{self.device.index}")


def _ours(qdisc):
    return bool(qdisc) and qdisc["kind"] == "dualpi2" and qdisc["handle"] in HANDLES


def _root_step(dev, root, want, ingress, old):
    """The step that makes the root qdisc of a device what it shall be; `old` is the state before, if known."""
    full = want.qdisc(ingress, False)
    verify = (dev, want.download if ingress else want.upload)
    at = ["dev", dev, "root", "handle"]
    before = (old or {}).get("ingress" if ingress else "egress")
    if _ours(root):
        handle = root["handle"]
        undo = ["tc", "qdisc", "replace", *at, handle, *before] if before else None
        dropped = _named((old or {}).get("named", [])) - _named([*want.options, *(["max_rtt"] if want.rtt else [])])
        if before and not dropped:
            return Step(["tc", "qdisc", "change", *at, handle, *full], ["tc", "qdisc", "change", *at, handle, *before],
                        verify)
        # Nobody knows what else was set: a new one, with nothing of it.
        other = HANDLES[1 - HANDLES.index(handle)]
        return Step(["tc", "qdisc", "replace", *at, other, *want.qdisc(ingress, True)], undo, verify)
    verb = "replace" if root else "add"
    return Step(["tc", "qdisc", verb, *at, HANDLES[0], *want.qdisc(ingress, True)],
                ["tc", "qdisc", "del", "dev", dev, "root"], verify, root and f"the qdisc {_name(root)}")


def _name(qdisc):
    return f"{qdisc['kind']} {qdisc['handle']}"


def _redirect(dev, ifb):
    return Step(["tc", "filter", "add", "dev", dev, "ingress", "pref", str(PREF), "protocol", "all", "matchall",
                 "action", "mirred", "egress", "redirect", "dev", ifb],
                ["tc", "filter", "del", "dev", dev, "ingress", "pref", str(PREF)])


def ingress_filters(here, ifb):
    """(is our filter there, is an outdated one of ours there, the others) of the device's ingress."""
    mine = stale = False
    others = []
    for pref, kind, targets in system.filters(here.name, system.CLSACT_INGRESS):
        if pref == PREF and kind in ("matchall", "u32") and not set(targets) - {ifb} & set(here.by_name):
            # Its device may be gone.
            mine = mine or targets == [ifb]
            stale = stale or targets != [ifb]
        else:
            others.append((pref, kind))
    return mine, stale, others


def check_device(here, name, booting):
    """Is it one that we can work on?"""
    device = here.device
    if not device:
        raise Gone(f"there is no device {name}; `ip link` lists them")
    if device.loopback:
        raise Trouble(f"{device.name} is the loopback, which has no queue; name the device towards the Internet")
    if device.alias.startswith(ALIAS) and device.kind == "ifb":
        raise Trouble(f"{device.name} is part of what dualpi2 did; name the device itself: {device.alias[len(ALIAS):]}")
    if not device.up and not booting:
        raise Trouble(f"{device.name} is down; run: ip link set {device.name} up")


def plan_up(here, want, may_replace):
    """The steps, and what they take from others."""
    dev, old, steps, taken = here.name, here.state, [], []
    root = system.root_qdisc(dev)
    if want.upload and root and not _ours(root):
        taken.append(f"the root qdisc {_name(root)}")
    steps_others, steps_last = [], []
    clsact, ifb = bool(old and old.get("clsact")), here.ifb.name if here.ifb else None
    ingress = system.ingress_qdisc(dev)
    mine, stale, others = ingress_filters(here, ifb) if ingress else (False, False, [])
    if want.download:
        if not here.ifb:
            ifb = here.ifb_name()
            steps.append(Step(["ip", "link", "add", "name", ifb, "type", "ifb"], ["ip", "link", "del", "dev", ifb]))
        if not here.ifb or not here.ifb.up or here.ifb.alias != ALIAS + dev:
            steps.append(Step(["ip", "link", "set", "dev", ifb, "alias", ALIAS + dev, "up"]))
        below = system.root_qdisc(ifb) if here.ifb else None
        steps.append(_root_step(ifb, below, want, True, old))
        if not ingress:
            steps.append(Step(["tc", "qdisc", "add", "dev", dev, "clsact"],
                              ["tc", "qdisc", "del", "dev", dev, "clsact"]))
            clsact = True
        if others:
            taken.append(f"filters in its ingress ({', '.join(f'{kind} pref {pref}' for pref, kind in others)})")
            steps_others = [Step(["tc", "filter", "del", "dev", dev, "ingress", "pref", str(pref)],
                                 ends=f"the filter {kind} pref {pref}") for pref, kind in others]
        if stale:
            steps.append(Step(_redirect(dev, ifb).undo))
        if not mine:
            steps.append(_redirect(dev, ifb))
    else:
        steps_last += _ingress_away(here, mine or stale, others, ingress)
        clsact = False
    steps += steps_others
    if want.upload:
        steps.append(_root_step(dev, root, want, False, old))
    elif _ours(root):
        steps_last.append(Step(["tc", "qdisc", "del", "dev", dev, "root"]))
    if taken and not may_replace:
        raise Taken(dev, taken)
    return steps + steps_last, clsact, ifb if want.download else None


class Gone(Trouble):
    """There is no such device."""


class Taken(Trouble):
    """Something of others is in the way."""

    def __init__(self, dev, taken):
        super().__init__(f"{dev} has {' and '.join(taken)}, which somebody else chose; add --replace to put dualpi2 in "
                         "the place")


def _ingress_away(here, mine, others, ingress):
    """Steps that remove our ingress part."""
    steps, dev = [], here.name
    if mine:
        steps.append(_redirect(dev, "").undo)
    # Without a state nobody knows who made it: an empty one does nothing, so that it may go.
    made = here.state.get("clsact") if here.state else here.ifb is not None
    if ingress and made and not others and not (ingress == "clsact" and system.filters(dev, system.CLSACT_EGRESS)):
        steps.append(["tc", "qdisc", "del", "dev", dev, ingress])
    if here.ifb:
        steps.append(["ip", "link", "del", "dev", here.ifb.name])
    return [Step(step) for step in steps]


def plan_down(here):
    """The steps that leave nothing of ours."""
    steps = []
    if here.device:
        ingress = system.ingress_qdisc(here.name)
        mine, stale, others = (ingress_filters(here, here.ifb.name if here.ifb else None) if ingress else
                               (False, False, []))
        steps = _ingress_away(here, mine or stale, others, ingress)
        root = system.root_qdisc(here.name)
        if _ours(root):
            steps.append(Step(["tc", "qdisc", "del", "dev", here.name, "root"]))
        elif root and here.state and here.state.get("egress"):
            here.notes.append(f"{here.name} has {_name(root)} at its root, which is not ours: left")
    elif here.ifb:
        steps = [Step(["ip", "link", "del", "dev", here.ifb.name])]
    return steps


def explain(failed):
    """A failed line, for a person."""
    said, line = failed.said, shlex.join(failed.words)
    if 'Unknown qdisc "dualpi2"' in said or 'What is "' in said:
        return _tc_trouble("" if "Unknown" in said else "other")
    if failed.words[:3] == ["ip", "link", "add"] and ("Unknown device type" in said or "not supported" in said):
        return ("the kernel has no ifb, which --download needs; load it (modprobe ifb) or install it (OpenWrt: "
                "kmod-ifb), or leave --download out")
    if "dualpi2" in failed.words and ("kind is unknown" in said or "No such file or directory" in said or
                                      "qdisc not found" in said):
        return ("the kernel has no dualpi2; install the module (Debian: apt install dualpi2-dkms) and run: modprobe "
                "sch_dualpi2")
    if "mirred" in failed.words and "No such file or directory" in said:
        return "the kernel lacks matchall, u32 or mirred; install its other modules (OpenWrt: kmod-sched-core)"
    if "not permitted" in said:
        return "the kernel does not permit it; run as root, with CAP_NET_ADMIN"
    return f"`{line}` failed: {said}"


def _tc_trouble(knows):
    if knows == "other":
        return ("tc knows a dualpi2 without `bandwidth`: iproute2's own or an old plugin; install the package "
                "dualpi2-tools, or run: make install")
    return ("tc does not know dualpi2; install the package dualpi2-tools, or set TC_LIB_DIR to the directory of "
            "q_dualpi2.so")


def _run(step):
    """Run a step, and the older way where there is no matchall."""
    try:
        system.run(step.do)
    except system.Failed as failed:
        if "matchall" not in step.do:
            raise
        at = step.do.index("matchall")
        older = [*step.do[:at], "u32", "match", "u32", "0", "0", *step.do[at + 1:]]
        try:
            system.run(older)
        except system.Failed:
            raise failed from None


def _undo(done):
    """The way back; what of others is gone after it."""
    ended = []
    for step in reversed(done):
        try:
            if step.verify and step.undo and "del" in step.undo and not _ours(system.root_qdisc(step.verify[0])):
                # Interrupted before it took effect: the old one is still there.
                continue
            ended += [step.ends] if step.ends else []
            if step.undo:
                system.run(step.undo)
        except (system.Failed, Trouble) as error:
            print(f"dualpi2: cannot undo a step, if it was done: `{shlex.join(step.undo)}`: {error}", file=sys.stderr)
    return ended


def _verify(dev, rate):
    """Has the kernel taken the rate? One that does not know it says nothing."""
    root = system.root_qdisc(dev)
    shown = (root or {}).get("options", {}).get("bandwidth")
    if not isinstance(shown, int) or abs(shown - rate.bytes_s) > 1:
        raise Trouble(TOO_OLD.format(version()))


def execute(steps, finish):
    """All of the steps and what finishes them, or nothing."""
    done = []
    try:
        for step in steps:
            # First, because whoever interrupts does not say whether it took effect.
            done.append(step)
            try:
                _run(step)
            except system.Failed as failed:
                done.pop()
                raise Trouble(explain(failed)) from failed
            if step.verify:
                _verify(*step.verify)
        finish()
    except BaseException as error:
        # Also when somebody interrupts, and then not a second time.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        ended = _undo(done)
        if not ended:
            raise
        ended = f"gone is {' and '.join(ended)}, which was there before"
        if isinstance(error, Trouble):
            raise Trouble(f"{error}; {ended}", error.code) from error
        print(f"dualpi2: {ended}", file=sys.stderr)
        raise


def ready():
    """What must be there before anything is changed."""
    knows = system.tc_knows()
    if knows != "ours":
        raise Trouble(_tc_trouble(knows))
    if os.path.exists("/sys/module/sch_dualpi2"):
        found = None
        with contextlib.suppress(OSError), open("/sys/module/sch_dualpi2/version", encoding="ascii") as file:
            found = re.match(r"(\d+)\.(\d+)", file.read())
        if not found or tuple(map(int, found.groups())) < OLDEST:
            raise Trouble(TOO_OLD.format(version()))


def _try(here, want):
    """Is it taken on a device of our own? Before something of others goes; without ifb it remains a guess."""
    dev = here.ifb_name()
    try:
        system.run(["ip", "link", "add", "name", dev, "type", "ifb"])
    except system.Failed:
        return
    try:
        step = _root_step(dev, None, want, False, None)
        execute([Step(step.do, None, step.verify)], lambda: None)
    finally:
        system.run(["ip", "link", "del", "dev", dev])


def up(name, want, may_replace=False, booting=False, dry_run=False):
    """Set a device up; (the lines, notes). The caller has the lock unless it is a dry run."""
    here = Situation(name)
    check_device(here, name, booting)
    steps, clsact, ifb = plan_up(here, want, may_replace)
    if dry_run:
        return steps, here.notes
    ready()
    here.settle()
    if not want.download and any(step.ends for step in steps):
        _try(here, want)
    execute(steps, lambda: _remember(here, want, clsact, ifb))
    return steps, here.notes


def _remember(here, want, clsact, ifb):
    index = next((device.index for device in system.devices() if device.name == ifb), None) if ifb else None
    state.save({
        "device": here.name, "ifindex": here.device.index, "was": (here.state or {}).get("was", []),
        "ifb": ifb, "ifb_index": index, "clsact": clsact,
        "named": sorted(_named([*want.options, *(["max_rtt"] if want.rtt else [])])),
        "egress": want.qdisc(False, False) if want.upload else None,
        "ingress": want.qdisc(True, False) if want.download else None,
        "words": {key: value for key, value in want.text.items() if value},
    })


def down(name, dry_run=False):
    """Remove what is ours; (the lines, notes)."""
    here = Situation(name)
    steps = plan_down(here)
    if not here.device and not here.state and not steps:
        raise Gone(f"there is no device {name}, and nothing of dualpi2 for one of that name")
    if dry_run:
        return steps, here.notes
    here.settle()
    failures = []
    for step in steps:
        try:
            system.run(step.do)
        except system.Failed as failed:
            failures.append(explain(failed))
    if failures:
        raise Trouble(f"{failures[0]}; then run again: dualpi2 down {name}")
    if here.state:
        state.forget(here.state["device"])
    return steps, here.notes
