# SPDX-License-Identifier: GPL-2.0-only
"""The configuration of each device, and whether the kernel still has it. Reads only."""

import os
import shlex

from ..kernel.qdisc import KINDS
from . import commands, service, state, system


def _side(dev, rate):
    if not rate:
        return None
    root = system.root_qdisc(dev) if dev else None
    found = {"rate": rate, "device": dev, "ok": False, "why": ""}
    if not root:
        found["why"] = f"no qdisc on {dev}"
    elif root["kind"] not in KINDS or root["handle"] not in commands.HANDLES:
        found["why"] = f"{root['kind']} {root['handle']} is on {dev}"
    else:
        found["ok"] = True
    return found


def collect(device=None):
    """A dict for each device that is set up or has a saved configuration."""
    names = sorted({found["device"] for found in commands.Situation("lo").states})
    if os.path.isdir(state.ETC):
        names += sorted({name[:-5] for name in os.listdir(state.ETC) if name.endswith(".conf")} - set(names))
    if device:
        here = commands.Situation(device)
        if here.name not in names and not here.state:
            raise commands.not_set_up(here, device)
        names = [here.name]
    return [_one(name) for name in names]


def _one(name):
    here = commands.Situation(name)
    known = here.state or {}
    values = known.get("words", {})
    found = {"device": name, "present": here.device is not None, "link": values.get("LINK"), "rtt": values.get("RTT"),
             "queues": values.get("QUEUES"), "options": values.get("OPTIONS"), "at_boot": service.enabled(name),
             "waits": False, "upload": None, "download": None, "problems": []}
    config = os.path.exists(state.config_path(name))
    if not here.device and not here.state and config:
        found["waits"] = True
    elif not here.device:
        found["problems"].append("the device is gone")
    elif not known:
        found["problems"].append("not set up")
    else:
        found["upload"] = _side(name, values.get("UPLOAD"))
        ifb = here.ifb.name if here.ifb else known.get("ifb")
        found["download"] = _side(ifb, values.get("DOWNLOAD"))
        if found["download"] and not here.ifb:
            found["download"].update(ok=False, why=f"the device {known.get('ifb')} is gone")
        elif found["download"]:
            if not (system.ingress_qdisc(name) and commands.ingress_filters(here, ifb)[0]):
                found["download"].update(ok=False, why=f"the filter on {name} that redirects to {ifb} is gone")
        found["problems"] += [f"{side}: {found[side]['why']}" for side in ("upload", "download")
                              if found[side] and not found[side]["ok"]]
    quoted = shlex.quote(name)
    if here.device:
        found["fix"] = f"dualpi2 up {quoted} " + ("--from-config" if config else _again(values))
    else:
        found["fix"] = f"dualpi2 down {quoted}" + (" --keep-config" if config else "")
    found["mend"] = found["fix"]    # the key of version 2.4, for scripts that read it
    return found


def _again(values):
    text = [f"--{key.lower()} {shlex.quote(values[key])}" for key in ("DOWNLOAD", "UPLOAD", "RTT", "LINK", "QUEUES")
            if values.get(key)]
    return " ".join(text) + (f" -- {values['OPTIONS']}" if values.get("OPTIONS") else "")


def text(found):
    """One line for a device; a second one for problems, and a third one with the command that fixes them."""
    sides = [f"{side} {found[side]['rate']}" + (f" ({found[side]['device']})" if side == "download" else "")
             for side in ("upload", "download") if found[side]]
    parts = [" ".join(sides)] if sides else []
    parts += [f"{name} {found[name]}" for name in ("link", "rtt", "queues", "options") if found[name]]
    parts += ["waits for the device"] if found["waits"] else []
    parts += ["at each boot"] if found["at_boot"] else []
    line = f"{found['device']}: " + ", ".join(parts) if parts else found["device"] + ":"
    if found["problems"]:
        line += f"\nfault {found['device']}: {'; '.join(found['problems'])}\n  fix: {found['fix']}"
    return line


def table(all_found):
    """One line for each device, with a heading."""
    rows = [("DEVICE", "UPLOAD", "DOWNLOAD", "AT BOOT", "STATE")]
    for found in all_found:
        rates = [(found[side] or {}).get("rate", "-") for side in ("upload", "download")]
        what = "fault" if found["problems"] else "waits for the device" if found["waits"] else "ok"
        rows.append((found["device"], *rates, "yes" if found["at_boot"] else "no", what))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() + "\n" for row in rows)
