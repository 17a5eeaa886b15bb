# SPDX-License-Identifier: GPL-2.0-only
"""What is set on each device, and whether it is still so. Reads only."""

import os
import shlex

from .. import Trouble
from . import commands, service, state, system


def _side(dev, rate):
    if not rate:
        return None
    root = system.root_qdisc(dev) if dev else None
    found = {"rate": rate, "device": dev, "ok": False, "why": ""}
    if not root:
        found["why"] = f"no qdisc on {dev}"
    elif root["kind"] != "dualpi2" or root["handle"] not in commands.HANDLES:
        found["why"] = f"{root['kind']} {root['handle']} is on {dev}"
    else:
        found["ok"] = True
    return found


def collect(device=None):
    """Each device that `up` was used on, as a dict."""
    names = sorted({found["device"] for found in commands.Situation("lo").states})
    if os.path.isdir(state.ETC):
        names += sorted({name[:-5] for name in os.listdir(state.ETC) if name.endswith(".conf")} - set(names))
    if device:
        here = commands.Situation(device)
        if here.name not in names and not here.state:
            raise Trouble(f"nothing of dualpi2 is set on {device}; set it with: dualpi2 up {device} --download RATE "
                          "--upload RATE")
        names = [here.name]
    return [_one(name) for name in names]


def _one(name):
    here = commands.Situation(name)
    known = here.state or {}
    words = known.get("words", {})
    found = {"device": name, "present": here.device is not None, "link": words.get("LINK"), "rtt": words.get("RTT"),
             "options": words.get("OPTIONS"), "at_boot": service.enabled(name),
             "waits": False, "upload": None, "download": None, "problems": []}
    config = os.path.exists(state.config_path(name))
    if not here.device and not here.state and config:
        found["waits"] = True
    elif not here.device:
        found["problems"].append("the device is gone")
    elif not known:
        found["problems"].append("not set now")
    else:
        found["upload"] = _side(name, words.get("UPLOAD"))
        ifb = here.ifb.name if here.ifb else known.get("ifb")
        found["download"] = _side(ifb, words.get("DOWNLOAD"))
        if found["download"] and not here.ifb:
            found["download"].update(ok=False, why=f"the device {known.get('ifb')} is gone")
        elif found["download"]:
            if not (system.ingress_qdisc(name) and commands.ingress_filters(here, ifb)[0]):
                found["download"].update(ok=False, why=f"the filter of {name} that leads there is gone")
        found["problems"] += [f"{side}: {found[side]['why']}" for side in ("upload", "download")
                              if found[side] and not found[side]["ok"]]
    quoted = shlex.quote(name)
    if here.device:
        found["mend"] = f"dualpi2 up {quoted} " + ("--from-config" if config else _again(words))
    else:
        found["mend"] = f"dualpi2 down {quoted}" + (" --keep-config" if config else "")
    return found


def _again(words):
    text = [f"--{key.lower()} {shlex.quote(words[key])}" for key in ("DOWNLOAD", "UPLOAD", "RTT", "LINK")
            if words.get(key)]
    return " ".join(text) + (f" -- {words['OPTIONS']}" if words.get("OPTIONS") else "")


def text(found):
    """One device in a line, and one for what is wrong."""
    sides = [f"{side} {found[side]['rate']}" + (f" ({found[side]['device']})" if side == "download" else "")
             for side in ("upload", "download") if found[side]]
    parts = [" ".join(sides)] if sides else []
    parts += [f"{name} {found[name]}" for name in ("link", "rtt", "options") if found[name]]
    parts += ["waits for the device"] if found["waits"] else []
    parts += ["at each boot"] if found["at_boot"] else []
    line = f"{found['device']}: " + ", ".join(parts) if parts else found["device"] + ":"
    if found["problems"]:
        line += f"\n{found['device']}: {'; '.join(found['problems'])}; mend it with: {found['mend']}"
    return line
