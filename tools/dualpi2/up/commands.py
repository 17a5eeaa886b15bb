# SPDX-License-Identifier: GPL-2.0-only
"""The steps of `dualpi2 up`, `set` and `down`, and how they are undone when one of them fails.

A step is a line of ip or tc. All steps are planned before the first one runs, so that --dry-run can print them.
Objects that dualpi2 made are recognized by marks, because the state file may be lost: handles of the root qdiscs, the
pref of the filter, the alias of the ifb device.

Objects of other tools:
- --replace alone permits `up` to replace a root qdisc with a handle. `tc qdisc replace` leaves the old qdisc in place
  if the kernel rejects the new one.
- An ingress or clsact qdisc is shared, and `down` leaves it.
- `up` fails if there are filters in the ingress: a redirection ends the classification of a packet, so one of the two
  would never see it. --replace deletes these filters, and leaves the egress filters of clsact.
- --replace does this after dualpi2 was accepted on an ifb device: it cannot be undone, and if a later step fails, the
  error names what is gone.
"""

import re
import shlex
import signal
import sys

from .. import Trouble, version
from ..kernel.qdisc import KINDS
from ..parser import nearest
from . import arguments, state, system

# The second one is for a new qdisc that replaces the first. The kernel assigns handles from 8001: on.
HANDLES = ("d50:", "d51:")
PREF = 3408
ALIAS = "dualpi2 of "
NAME_MAX = 15
OLDEST = (2, 3)
TOO_OLD = ("the loaded module sch_dualpi2 is not this project's, or too old for `bandwidth`; install dualpi2-dkms {0} "
           "and unload the loaded module: modprobe -r sch_dualpi2")
OFF = "off"
BOTH_OFF = "no direction is left to shape; to remove dualpi2, run: dualpi2 down {0}"
# The options that say whether a flow that builds the L4S queue is redirected. `up` does so by default, tc does not.
PROTECTION = ("qprotect", "qprotect_hash", "no_qprotect")
# No device can have this name: tc parses the options before it looks for the device, and then stops.
NO_DEVICE = "/"


class Step:
    """A line of ip or tc.

    undo    the line that undoes it
    verify  (device, rate) that the kernel must show after it
    ends    the object of another tool that it removes
    """

    def __init__(self, do, undo=None, verify=None, ends=None):
        self.do = do
        self.undo = undo
        self.verify = verify
        self.ends = ends

    def __str__(self):
        return shlex.join(self.do)


class Want:
    """A configuration: text of the six values, and what they mean."""

    def __init__(self, download=None, upload=None, link=None, rtt=None, queues=None, options=()):
        if not download and not upload:
            raise Trouble("neither --download RATE nor --upload RATE is given; give one or both", 2)
        self.text = {"DOWNLOAD": download, "UPLOAD": upload, "LINK": link, "RTT": rtt, "QUEUES": queues,
                     "OPTIONS": shlex.join(options)}
        for key, text in self.text.items():
            bad = next((char for char in text or "" if char == '"' or not (char == "\t" or char.isprintable())), None)
            if bad:
                raise Trouble(f"{'after --' if key == 'OPTIONS' else '--' + key.lower()}: invalid character {bad!r} in "
                              f"{text!r}; remove quotation marks and control characters", 2)
        self.download = arguments.rate(download, "--download") if download else None
        self.upload = arguments.rate(upload, "--upload") if upload else None
        for key, found in (("DOWNLOAD", self.download), ("UPLOAD", self.upload)):
            self.text[key] = found and found.text
        self.link = arguments.link(link)
        self.rtt = arguments.rtt(rtt) if rtt else []
        self.kind = arguments.queues(queues) if queues else None
        self.options = list(options)
        self.hints = [found.hint for found in (self.download, self.upload) if found and found.hint]
        for name in ("bandwidth", "unlimited", "ingress", "egress"):
            if name in options:
                raise Trouble(f"'{name}' must not stand after --; --download and --upload set it", 2)
        for word in options:
            if word.startswith("--"):
                raise Trouble(f"'{word}' must not stand after --, where only options of tc are accepted; write it "
                              "before --", 2)

    def qdisc(self, ingress, fresh, kind="dualpi2"):
        """Arguments for tc. A changed qdisc keeps options that are not named, so defaults are named for it."""
        found = [kind, "bandwidth", (self.download if ingress else self.upload).text]
        if self.link.framing != "raw" or not fresh:
            found += self.link.tc()
        if ingress or not fresh:
            found.append("ingress" if ingress else "egress")
        if not set(PROTECTION) & set(self.options):
            found.append(PROTECTION[0])
        return found + self.rtt + self.options

    def named(self):
        """Names of the options whose default is not sent by qdisc()."""
        return {group[0] for group in arguments.by_name(self.rtt + self.options)}


class Situation:
    """A device, also after it was renamed, and what dualpi2 made for it."""

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
            # Another device has the name now: only the ifb device is still there.
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
        own = [device for device in self.devices if device.kind == "ifb" and device.alias.startswith(ALIAS)]
        for device in own:
            if self.state and device.index == self.state.get("ifb_index"):
                return device
        others = [found.get("ifb_index") for found in self.states if found is not self.state]
        for device in own:
            if device.alias[len(ALIAS):] in self.names and device.index not in others:
                return device
        return None

    def settle(self):
        """Save the new names of renamed devices."""
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
        raise Trouble(f"the name 'dp2-{self.device.index}' is in use by a device that dualpi2 did not create; remove "
                      f"it: ip link del dp2-{self.device.index}")


def _own(qdisc):
    return bool(qdisc) and qdisc["kind"] in KINDS and qdisc["handle"] in HANDLES


def running(here):
    """The configuration of a device that dualpi2 has set up, {} if it has not."""
    if here.state:
        return dict(here.state.get("words", {}))
    found = {}
    for key, dev in (("UPLOAD", here.device and here.name), ("DOWNLOAD", here.ifb and here.ifb.name)):
        root = system.root_qdisc(dev) if dev else None
        if _own(root):
            found[key] = f"{(root['bandwidth'] or 0) * 8}bit"
    return found


def _root_step(dev, root, want, ingress, old):
    """The step that sets the root qdisc of a device; `old` is the state before, if known."""
    # Without --queues, a dualpi2_mq that replaced the dualpi2 under its handle stays one.
    found = root["kind"] if _own(root) else "dualpi2"
    kind = want.kind or found
    full = want.qdisc(ingress, False, kind)
    verify = (dev, want.download if ingress else want.upload)
    at = ["dev", dev, "root", "handle"]
    before = (old or {}).get("ingress" if ingress else "egress")
    if _own(root):
        handle, before = root["handle"], before and [found, *before[1:]]
        undo = ["tc", "qdisc", "replace", *at, handle, *before] if before else None
        dropped = set((old or {}).get("named", [])) - want.named()
        if before and not dropped and kind == found:
            return Step(["tc", "qdisc", "change", *at, handle, *full], ["tc", "qdisc", "change", *at, handle, *before],
                        verify)
        # Another kind, or options that are no longer named and have unknown values: create a new qdisc.
        other = HANDLES[1 - HANDLES.index(handle)]
        return Step(["tc", "qdisc", "replace", *at, other, *want.qdisc(ingress, True, kind)], undo, verify)
    verb = "replace" if root else "add"
    return Step(["tc", "qdisc", verb, *at, HANDLES[0], *want.qdisc(ingress, True, kind)],
                ["tc", "qdisc", "del", "dev", dev, "root"], verify, root and f"the qdisc {_name(root)}")


def _name(qdisc):
    return f"{qdisc['kind']} {qdisc['handle']}"


def _redirect(dev, ifb):
    return Step(["tc", "filter", "add", "dev", dev, "ingress", "pref", str(PREF), "protocol", "all", "matchall",
                 "action", "mirred", "egress", "redirect", "dev", ifb],
                ["tc", "filter", "del", "dev", dev, "ingress", "pref", str(PREF)])


def ingress_filters(here, ifb):
    """(has the filter of dualpi2, has an outdated filter of dualpi2, other filters) of the device's ingress."""
    mine = stale = False
    others, targeted = [], {ifb, here.ifb and here.ifb.name}
    for pref, kind, targets in system.filters(here.name, system.CLSACT_INGRESS):
        if pref == PREF and kind in ("matchall", "u32") and not set(targets) - targeted & set(here.by_name):
            # The device of an outdated filter may be gone.
            mine = mine or targets == [ifb]
            stale = stale or targets != [ifb]
        else:
            others.append((pref, kind))
    return mine, stale, others


def check_device(here, name, booting):
    """Raise Trouble if dualpi2 cannot shape the device."""
    device = here.device
    if not device:
        raise Gone(f"there is no device '{name}'{nearest(name, here.by_name)}; list devices with: ip link")
    if device.loopback:
        raise Trouble(f"'{device.name}' is the loopback device, which has no queue; name the device towards the "
                      "Internet")
    if device.alias.startswith(ALIAS) and device.kind == "ifb":
        raise Trouble(f"'{device.name}' was created by dualpi2; name the device itself: {device.alias[len(ALIAS):]}")
    if not device.up and not booting:
        raise Trouble(f"'{device.name}' is down; run: ip link set {device.name} up")


def plan_up(here, want, may_replace):
    """(steps, whether dualpi2 makes clsact, name of the ifb device)."""
    dev, old, steps, taken = here.name, here.state, [], []
    root = system.root_qdisc(dev)
    if want.upload and root and not _own(root):
        taken.append(f"the root qdisc {_name(root)}")
    steps_others, steps_last = [], []
    clsact, kept = bool(old and old.get("clsact")), here.ifb
    if kept and want.download and want.kind == "dualpi2_mq" and kept.tx_queues < here.device.rx_queues:
        # The number of its queues is fixed: another one takes over.
        kept = None
    ifb = kept.name if kept else here.ifb_name() if want.download else None
    ingress = system.ingress_qdisc(dev)
    mine, stale, others = ingress_filters(here, ifb) if ingress else (False, False, [])
    if want.download:
        if not kept:
            # A packet leaves it through the queue through which it came.
            queues = ["numtxqueues", str(here.device.rx_queues)] if want.kind == "dualpi2_mq" else []
            steps.append(Step(["ip", "link", "add", "name", ifb, *queues, "type", "ifb"],
                              ["ip", "link", "del", "dev", ifb]))
        if not kept or not kept.up or kept.alias != ALIAS + dev:
            steps.append(Step(["ip", "link", "set", "dev", ifb, "alias", ALIAS + dev, "up"]))
        ifb_root = system.root_qdisc(ifb) if kept else None
        steps.append(_root_step(ifb, ifb_root, want, True, old))
        if not ingress:
            steps.append(Step(["tc", "qdisc", "add", "dev", dev, "clsact"],
                              ["tc", "qdisc", "del", "dev", dev, "clsact"]))
            clsact = True
        if others:
            taken.append(f"filters in its ingress ({', '.join(f'{kind} pref {pref}' for pref, kind in others)})")
            steps_others = [Step(["tc", "filter", "del", "dev", dev, "ingress", "pref", str(pref)],
                                 ends=f"the filter {kind} pref {pref}") for pref, kind in others]
        if stale:
            steps.append(Step(_redirect(dev, ifb).undo, here.ifb and _redirect(dev, here.ifb.name).do))
        if not mine:
            steps.append(_redirect(dev, ifb))
        if here.ifb and not kept:
            steps_last.append(Step(["ip", "link", "del", "dev", here.ifb.name]))
    else:
        steps_last += _ingress_away(here, mine or stale, others, ingress)
        clsact = False
    steps += steps_others
    if want.upload:
        steps.append(_root_step(dev, root, want, False, old))
    elif _own(root):
        steps_last.append(Step(["tc", "qdisc", "del", "dev", dev, "root"]))
    if taken and not may_replace:
        raise Taken(dev, taken)
    return steps + steps_last, clsact, ifb if want.download else None


def not_set_up(here, name):
    """Trouble: there is no configuration of this device, neither running nor saved."""
    if not here.device:
        return Gone(f"there is no device '{name}'{nearest(name, here.by_name)}; list devices with: ip link")
    known = [found["device"] for found in here.states]
    return Trouble(f"dualpi2 is not set up on '{name}'{nearest(name, known)}; set it up with: dualpi2 up {name} "
                   "--download RATE --upload RATE")


class Gone(Trouble):
    """The device does not exist."""


class Taken(Trouble):
    """Another tool has attached a qdisc or filters."""

    def __init__(self, dev, taken):
        super().__init__(f"{dev} has {' and '.join(taken)}, attached by another tool; add --replace to replace it "
                         "with dualpi2")


def _ingress_away(here, mine, others, ingress):
    """Steps that remove the ingress part of dualpi2."""
    steps, dev = [], here.name
    if mine:
        steps.append(_redirect(dev, "").undo)
    # Without a state file, the origin of clsact is unknown; an empty one has no effect and can be removed.
    made = here.state.get("clsact") if here.state else here.ifb is not None
    if ingress and made and not others and not (ingress == "clsact" and system.filters(dev, system.CLSACT_EGRESS)):
        steps.append(["tc", "qdisc", "del", "dev", dev, ingress])
    if here.ifb:
        steps.append(["ip", "link", "del", "dev", here.ifb.name])
    return [Step(step) for step in steps]


def plan_down(here):
    """The steps that remove all that dualpi2 made."""
    steps = []
    if here.device:
        ingress = system.ingress_qdisc(here.name)
        mine, stale, others = (ingress_filters(here, here.ifb.name if here.ifb else None) if ingress else
                               (False, False, []))
        steps = _ingress_away(here, mine or stale, others, ingress)
        root = system.root_qdisc(here.name)
        if _own(root):
            steps.append(Step(["tc", "qdisc", "del", "dev", here.name, "root"]))
        elif root and here.state and here.state.get("egress"):
            here.notes.append(f"{here.name}: root qdisc {_name(root)} is not from dualpi2 and stays")
    elif here.ifb:
        steps = [Step(["ip", "link", "del", "dev", here.ifb.name])]
    return steps


def explain(failed):
    """One sentence for a failed line: what failed and what to do."""
    said, line = failed.said, shlex.join(failed.command)
    if 'Unknown qdisc "dualpi2' in said or 'What is "' in said:
        return _tc_trouble("" if "Unknown" in said else "other")
    if failed.command[:3] == ["ip", "link", "add"] and ("Unknown device type" in said or "not supported" in said):
        return ("the kernel has no ifb device, which --download needs; load it (modprobe ifb), install it (OpenWrt: "
                "kmod-ifb), or use --download off")
    if set(KINDS) & set(failed.command) and any(text in said for text in (
            "kind is unknown", "No such file or directory", "qdisc not found")):
        return ("the kernel has no dualpi2; install the module (Debian: apt install dualpi2-dkms) and run: modprobe "
                "sch_dualpi2")
    if "mirred" in failed.command and "No such file or directory" in said:
        return "the kernel has no matchall, u32 or mirred; install its extra modules (OpenWrt: kmod-sched-core)"
    if "not permitted" in said:
        return f"`{line}` is not permitted; run it as root, with CAP_NET_ADMIN"
    return f"`{line}` failed: {said}"


def _tc_trouble(knows):
    if knows == "other":
        return ("tc has a dualpi2 without `bandwidth`, from iproute2 or from an old plugin; install the package "
                "dualpi2-tools, or run: make install")
    return ("tc does not know dualpi2; install the package dualpi2-tools, or set TC_LIB_DIR to the directory of "
            "q_dualpi2.so")


def _run(step):
    """Run a step, with u32 where there is no matchall."""
    try:
        system.change(step.do)
    except system.Failed as failed:
        if "matchall" not in step.do:
            raise
        at = step.do.index("matchall")
        older = [*step.do[:at], "u32", "match", "u32", "0", "0", *step.do[at + 1:]]
        try:
            system.change(older)
        except system.Failed:
            raise failed from None


def _undo(done):
    """Undo steps; returns the names of what other tools had attached and is gone."""
    ended = []
    for step in reversed(done):
        try:
            if step.verify and step.undo and "del" in step.undo and not _own(system.root_qdisc(step.verify[0])):
                # Interrupted before the line took effect: the old qdisc is still there.
                continue
            ended += [step.ends] if step.ends else []
            if step.undo:
                system.change(step.undo)
        except (system.Failed, Trouble) as error:
            print(f"dualpi2: cannot undo `{step}` with `{shlex.join(step.undo)}`: {error}", file=sys.stderr)
    return ended


def _verify(dev, rate):
    """Raise Trouble if the kernel does not show the rate: a module without `bandwidth` ignores it."""
    root = system.root_qdisc(dev)
    shown = root and root["bandwidth"]
    if shown is None or abs(shown - rate.bytes_s) > 1:
        raise Trouble(TOO_OLD.format(version()))


def execute(steps, finish):
    """Run all steps, then finish(); if one fails, undo those before it."""
    done = []
    try:
        for step in steps:
            # Before the line runs, because an interrupt does not tell whether the line took effect.
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
        # Also after an interrupt. A second one must not end the undo.
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


def check_options(want, lenient=False):
    """Have tc parse the options after --. Nothing is sent to the kernel; returns notes."""
    if not want.options:
        return []
    try:
        system.run(["tc", "qdisc", "add", "dev", NO_DEVICE, "root", *want.qdisc(not want.upload, False)])
    except system.Failed as failed:
        if "Cannot find device" in failed.said:
            return []
        if lenient and "dualpi2:" not in failed.said:
            return [f"the options after -- are not checked: {explain(failed)}"]
        # Some versions of tc print all options after this.
        said = re.split(r"; expected one of:|Usage:", failed.said)[0].strip() or failed.said
        raise Trouble(f"'{shlex.join(want.options)}' after --: {said}; see: tc qdisc add dualpi2 help", 2) from failed
    return []


def ready():
    """Check tc and the module before anything is changed."""
    knows = system.tc_knows()
    if knows != "plugin":
        raise Trouble(_tc_trouble(knows))
    loaded = system.module_version()
    if loaded is not None:
        found = re.match(r"(\d+)\.(\d+)", loaded)
        if not found or tuple(map(int, found.groups())) < OLDEST:
            raise Trouble(TOO_OLD.format(version()))


def _try(here, want):
    """Add the qdisc to a temporary ifb device, before that of another tool is replaced. Without ifb, no check."""
    dev = here.ifb_name()
    try:
        system.change(["ip", "link", "add", "name", dev, "type", "ifb"])
    except system.Failed:
        return
    try:
        step = _root_step(dev, None, want, False, None)
        execute([Step(step.do, None, step.verify)], lambda: None)
    finally:
        system.change(["ip", "link", "del", "dev", dev])


def up(name, want, may_replace=False, booting=False, dry_run=False):
    """Set up a device; returns (steps, notes). The caller holds the lock, except for a dry run."""
    here = Situation(name)
    check_device(here, name, booting)
    steps, clsact, ifb = plan_up(here, want, may_replace)
    if dry_run:
        return steps, here.notes + check_options(want, lenient=True)
    ready()
    check_options(want)
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
        "named": sorted(want.named()),
        "egress": want.qdisc(False, False) if want.upload else None,
        "ingress": want.qdisc(True, False) if want.download else None,
        "words": {key: value for key, value in want.text.items() if value},
    })


def down(name, dry_run=False):
    """Remove what dualpi2 made; returns (steps, notes)."""
    here = Situation(name)
    steps = plan_down(here)
    if not here.device and not here.state and not steps:
        raise Gone(f"there is no device '{name}'{nearest(name, here.by_name)}; list devices with: ip link")
    if dry_run:
        return steps, here.notes
    here.settle()
    failures = []
    for step in steps:
        try:
            system.change(step.do)
        except system.Failed as failed:
            failures.append(explain(failed))
    if failures:
        raise Trouble(f"{failures[0]}; repair that and run again: dualpi2 down {name}")
    if here.state:
        state.forget(here.state["device"])
    return steps, here.notes
