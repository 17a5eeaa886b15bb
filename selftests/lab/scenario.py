# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios: TOML files in scenarios/ become jobs, one job a run of a machine.

It knows what may stand in such a file and says what is wrong with one. It runs
nothing and reads no results; a job is a plain dictionary (docs/LAB.md).
"""

import fnmatch
import itertools
import math
import os
import re
import sys
import tomllib

import job as job_
from job import JobError as ScenarioError, mbit_of

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
from dualpi2 import Trouble, traces  # noqa: E402

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scenarios")
SCALABLE = ("dctcp", "prague", *job_.UDP_PRAGUE)
CCS = (*SCALABLE, "cubic", "reno", "bbr")
# What may take the place of the L4S sender: a congestion control; Classic ones also with ECN.
INSTEAD = (*CCS, "ecn-cubic", "ecn-reno")
TCP_ECN = ("l4s", "classic", "off")
VARIANT = ("pacing", "parameters")  # keys that make a sender differ from others of its congestion control
UDP_ECN = ("ect1", "ect0", "not-ect")
TIME_SHIFT = "dualpi2-time-shift"  # our module with another scheduler, see runs.py
MODULES = ("dualpi2", TIME_SHIFT, "dualpi2-in-tree")
COMPANIONS = ("pi2", "csaqm", "ppv")  # of extra; of these an AQM may need several
FUNCTIONS = 16  # classes of packet values that ppv has
SHAPERS = ("own",)
OWN_RATE = "bandwidth {rate}"  # what a change of the rate says again
NOT_SCENARIOS = ("aqms", "senders")
FRAME, MTU = 1514, 1500
# Of a trace. htb and cake keep the time of a packet that was computed with the old rate: it is one step at most.
STEP_MS = 50
LEAST_RATE = MTU * 1000 // STEP_MS


# What a value has to be: (what to say, test).
def _number(value, least=0, whole=False):
    kinds = int if whole else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value) and value >= least


def _list_of(value, kind):
    return isinstance(value, list) and value and all(isinstance(x, kind) for x in value)


def _is_rate(value):
    try:
        return mbit_of(value) > 0
    except ScenarioError:
        return False


TEXT = ("a text", lambda v: isinstance(v, str) and v != "")
NAME = ("a name of letters, digits, '.', '_', '-'", lambda v: isinstance(v, str) and re.fullmatch(r"\w[\w.-]*", v))
RATE_TEXT = ('a rate like "40mbit"', _is_rate)
SWITCH = ("true or false", lambda v: isinstance(v, bool))
OFF = ("false, or be left out", lambda v: v is False)
PARAMETERS = ("a table of whole numbers, true or false, not empty", lambda v: (
    isinstance(v, dict) and v and all(isinstance(x, int) for x in v.values())))
TABLE = ("a table", lambda v: isinstance(v, dict))
TABLES = ("a list of tables, not empty", lambda v: _list_of(v, dict))
NAMES = ("a list of names, not empty", lambda v: _list_of(v, str))
COUNT = ("a whole number, 0 or more", lambda v: _number(v, whole=True))
POSITIVE = ("a whole number, 1 or more", lambda v: _number(v, 1, whole=True))
TIME = ("a number, 0 or more", _number)
ABOVE_0 = ("a number above 0", lambda v: _number(v) and v > 0)
MODULE = (f"one of {', '.join(MODULES)}, or a list of some of {', '.join(COMPANIONS)}", lambda v: (
    v in MODULES if isinstance(v, str) else _list_of(v, str) and set(v) <= set(COMPANIONS)))
FUNCTION = (f"a whole number, 1 to {FUNCTIONS}", lambda v: _number(v, 1, whole=True) and v <= FUNCTIONS)
WARMUP = ('a whole number of seconds or "paper"', lambda v: v == "paper" or _number(v, whole=True))


def one_of(names):
    """The rule of a value that is one of some names."""
    return ("one of " + ", ".join(names), lambda v: isinstance(v, str) and v in names)


EXPERIMENT = {"title": TEXT, "aqms": NAMES, "seconds": POSITIVE, "warmup": WARMUP, "keep_raw": SWITCH,
              "values": TABLE, "case": TABLES}
CASE = {"name": NAME, "over": TABLE, "aqms": NAMES, "rate": RATE_TEXT, "changes": TABLES, "trace": TEXT,
        "buffer_bdp": ABOVE_0, "group": TABLES}
CHANGE = {"at": ABOVE_0, "rate": RATE_TEXT}
COMMON = {"name": NAME, "kind": one_of(("tcp", "udp", "web")), "rtt_ms": TIME, "count": COUNT, "start": TIME,
          "stop": ABOVE_0, "aggregate_ms": TIME, "tvf": FUNCTION}
GROUPS = {"tcp": COMMON | {"sender": TEXT},
          "udp": COMMON | {"ecn": one_of(UDP_ECN), "rate": RATE_TEXT, "payload": POSITIVE},
          "web": COMMON | {"sender": TEXT, "per_second": ABOVE_0, "alpha": ABOVE_0, "least": POSITIVE,
                           "most": POSITIVE}}
# Keys that may be missing, wherever they stand.
OPTIONAL = {"keep_raw", "values", "over", "aqms", "changes", "trace", "buffer_bdp", "kind", "count", "start", "stop",
            "payload", "alpha", "least", "most", "module", "l4s", "shaper", "aggregate_ms", "child", "tvf", *VARIANT}
AQM = {"qdisc": TEXT, "child": TEXT, "module": MODULE, "l4s": SWITCH, "shaper": one_of(SHAPERS), "values": TABLE}
SENDER = {"cc": one_of(CCS), "ecn": one_of(TCP_ECN), "pacing": OFF, "parameters": PARAMETERS}
CHOICE = {"on_l4s": TEXT, "elsewhere": TEXT}
# Appendix C of the DualPI2 paper has the sizes of web objects.
WEB = {"alpha": 0.9, "least": 1000, "most": 1_000_000}


def check(table, keys, where):
    """That a table has all keys it must have, no others, and values as the rules want them; else ScenarioError."""
    for key, value in table.items():
        if key not in keys:
            raise ScenarioError(f"{where}: unknown key '{key}'; there are {', '.join(keys)}")
        what, good = keys[key]
        if not good(value):
            raise ScenarioError(f"{where}: {key} = {value!r} should be {what}")
    for key in keys:
        if key not in table and key not in OPTIONAL:
            raise ScenarioError(f"{where}: {key} is missing")


def read(path):
    """A TOML file as a dictionary; ScenarioError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{os.path.basename(path)}: {error}") from None


def fill(value, variables, where):
    """Put variables where "{name}" stands; a text that is nothing else becomes the variable, of whatever type."""
    if isinstance(value, dict):
        return {k: fill(v, variables, where) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, variables, where) for v in value]
    if not isinstance(value, str):
        return value
    for name in re.findall(r"\{([^}]*)\}", value):
        if name not in variables:
            raise ScenarioError(f"{where}: no value for '{{{name}}}' in {value!r}; there are "
                                f"{', '.join(variables) or 'none'}")
    whole = re.fullmatch(r"\{(\w+)\}", value)
    return variables[whole[1]] if whole else re.sub(r"\{(\w+)\}", lambda m: str(variables[m[1]]), value)


def traced(name, seconds):
    """(rate, changes) of a link that follows a trace for this time: an example of `dualpi2 play`, or a file."""
    try:
        trace = traces.Trace(traces.example(name)) if name in traces.EXAMPLES else traces.read(name)
    except Trouble as trouble:
        raise ScenarioError(f"trace: {trouble}") from None
    rates = [max(trace.rate(at, at + STEP_MS), LEAST_RATE) for at in range(0, seconds * 1000, STEP_MS)]
    return f"{8 * rates[0]}bit", [{"at": n * STEP_MS / 1000, "rate": f"{8 * rate}bit"}
                                  for n, rate in enumerate(rates) if n and rate != rates[n - 1]]


def aqms(directory=DIRECTORY):
    """All AQMs by name, checked, from aqms.toml."""
    found = read(os.path.join(directory, "aqms.toml"))
    for name, aqm in found.items():
        check({"name": name, name: aqm}, {"name": NAME, name: TABLE}, "aqms.toml")
        check(aqm, AQM, f"aqms.toml: {name}")
        where = "child" if "child" in aqm else "qdisc"
        if "child" in aqm and "shaper" not in aqm:
            raise ScenarioError(f"aqms.toml: {name}: child needs shaper = 'own'")
        if "shaper" in aqm and OWN_RATE not in aqm[where]:
            raise ScenarioError(f"aqms.toml: {name}: shaper = {aqm['shaper']!r} needs '{OWN_RATE}' in {where}")
    return found


def variants(found):
    """Names of the senders, of those of senders.toml, that differ from others by a key of VARIANT."""
    return tuple(name for name, sender in found.items() if isinstance(sender, dict) and set(VARIANT) & set(sender))


def instead(directory=DIRECTORY):
    """What may take the place of the L4S sender: INSTEAD, and the variants of senders.toml."""
    return *INSTEAD, *variants(read(os.path.join(directory, "senders.toml")))


def scalable(directory=DIRECTORY):
    """Names in store.sender() of all L4S senders: SCALABLE, and the variants of senders.toml with L4S."""
    found = read(os.path.join(directory, "senders.toml"))
    return *SCALABLE, *(name for name in variants(found) if found[name].get("ecn") == "l4s")


def senders(directory=DIRECTORY, l4s_cc=None):
    """All senders by name, checked, from senders.toml; {l4s_cc} is put in, its own or another.

    A Classic l4s_cc, such as "ecn-cubic", takes the L4S sender's place with the ECN of its own, and so does a variant,
    by its name. Variants have their name as "sender".
    """
    found = read(os.path.join(directory, "senders.toml"))
    own = found.pop("l4s_cc", None)
    l4s_cc, special = l4s_cc or own, variants(found)
    check({"l4s_cc": l4s_cc}, {"l4s_cc": one_of((*INSTEAD, *special))}, "senders.toml")
    cc = found[l4s_cc].get("cc") if l4s_cc in special else l4s_cc.removeprefix("ecn-")
    found = fill(found, {"l4s_cc": cc}, "senders.toml")
    if cc not in SCALABLE and "l4s" in found:
        found["l4s"] = {"cc": cc, "ecn": "classic" if l4s_cc != cc else "off"}
    for name, sender in found.items():
        check({name: sender}, {name: TABLE}, "senders.toml")
        check(sender, CHOICE if set(sender) & set(CHOICE) else SENDER, f"senders.toml: {name}")
    for name, sender in found.items():
        for other in set(sender) & set(CHOICE):
            if "cc" not in found.get(sender[other], {}):
                raise ScenarioError(f"senders.toml: {name}: {other} = {sender[other]!r} is no sender; there are "
                                    f"{', '.join(n for n in found if 'cc' in found[n])}")
    for name in special:
        found[name]["sender"] = name
    if l4s_cc in special:
        found["l4s"] = found[l4s_cc]
    return found


def names(directory=DIRECTORY):
    """The experiments' names, in the order of reading: smoke first, fig2 before fig10."""
    stems = [f.removesuffix(".toml") for f in os.listdir(directory) if f.endswith(".toml")]
    return sorted((s for s in stems if s not in NOT_SCENARIOS), key=lambda s: (
        s != "smoke", [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", s)]))


def matching(patterns, known, what):
    """The known names that the patterns (fnmatch) mean, in the order of the patterns."""
    found = []
    for pattern in patterns:
        hits = [n for n in known if fnmatch.fnmatchcase(n, pattern)]
        if not hits:
            raise ScenarioError(f"no {what} '{pattern}'; there are {', '.join(known)}")
        found += [n for n in hits if n not in found]
    return found


class Experiment:
    """One scenario file, read and checked."""

    def __init__(self, name, directory=DIRECTORY, l4s_cc=None):
        """Read NAME.toml, the AQMs and the senders; ScenarioError says what is wrong with them.

        l4s_cc: the L4S sender's congestion control, in place of that in senders.toml.
        """
        known = names(directory)
        if name not in known:
            raise ScenarioError(f"no experiment '{name}'; there are {', '.join(known)}")
        self.name, self.file = name, f"{name}.toml"
        self.aqms, self.senders = aqms(directory), senders(directory, l4s_cc)
        self.table = read(os.path.join(directory, self.file))
        check(self.table, EXPERIMENT, self.file)
        self.title = self.table["title"]
        self.keep_raw = self.table.get("keep_raw", False)
        matching(self.table["aqms"], self.aqms, f"AQM in {self.file}")
        for aqm in self.table.get("values", {}):
            matching([aqm], self.aqms, f"AQM in {self.file}: values:")

    def jobs(self, aqm_patterns=None, case_pattern="*", seeds=(1,), seconds=None):
        """The jobs of the experiment: for each case each AQM, for each of them each seed.

        aqm_patterns: names or patterns in place of the file's AQMs; case_pattern: cases wanted, which may be none;
        seconds: measured, in place of the file's. ScenarioError for an AQM that is not, or a wrong file.
        """
        found = []
        for name, (settings, variables) in self.cases().items():
            if fnmatch.fnmatchcase(name, case_pattern):
                wanted = aqm_patterns or settings.get("aqms", self.table["aqms"])
                found += [self._job(settings, variables, aqm, seed, seconds)
                          for aqm in matching(wanted, self.aqms, "AQM") for seed in seeds]
        return found

    def cases(self):
        """{name: (settings, variables)} of all cases, products expanded; ScenarioError if two have one name."""
        found = {}
        for number, case in enumerate(self.table["case"], 1):
            for name, settings, variables in self._expanded(case, number):
                if name in found:
                    raise ScenarioError(f"{self.file}: two cases are called '{name}'")
                found[name] = settings, variables
        return found

    def _expanded(self, case, number):
        """(name, settings, variables) of each point of a case's product."""
        where = f"{self.file}: case {number}"
        for key in case:
            if key not in CASE:
                raise ScenarioError(f"{where}: unknown key '{key}'; there are {', '.join(CASE)}")
        over = case.get("over", {})
        for axis, points in over.items():
            if not isinstance(points, list) or not points:
                raise ScenarioError(f"{where}: over.{axis} should be a list, not empty")
        for point in itertools.product(*over.values()):
            variables = {}
            for axis, value in zip(over, point, strict=True):
                variables |= value if isinstance(value, dict) else {axis: value}
            settings = fill({k: v for k, v in case.items() if k != "over"}, variables, where)
            check(settings, CASE, where)
            yield settings["name"], settings, variables

    def _job(self, case, variables, aqm_name, seed, seconds):
        where = f"{self.file}: {case['name']}"
        aqm = self.aqms[aqm_name]
        seconds = seconds or self.table["seconds"]
        groups = [g for g in (self._group(g, aqm, where) for g in case["group"]) if g["count"]]
        if not groups:
            raise ScenarioError(f"{where}: no group has a flow; give one of them a count above 0")
        twice = [g["name"] for g in groups if [h["name"] for h in groups].count(g["name"]) > 1]
        if twice:
            raise ScenarioError(f"{where}: two groups are called '{twice[0]}'")
        rtt = max(g["rtt_ms"] for g in groups)
        warmup = self.table["warmup"]
        if warmup == "paper":
            # Appendix B of the DualPI2 paper.
            warmup = math.ceil(5 + mbit_of(case["rate"]) * rtt / 100)
        rate, changes = case["rate"], case.get("changes", [])
        if "trace" in case:
            if changes:
                raise ScenarioError(f"{where}: trace and changes both set the rate; give one of them")
            rate, changes = traced(case["trace"], warmup + seconds)
        for change in changes:
            check(change, CHANGE, f"{where}: changes")
            if change["at"] >= warmup + seconds:
                raise ScenarioError(f"{where}: changes: at = {change['at']} is not before the end at "
                                    f"{warmup + seconds} s")
        for group in groups:
            if group["start"] >= warmup + seconds or (group["stop"] or math.inf) <= group["start"]:
                raise ScenarioError(f"{where}: group {group['name']} has no time between its start and its stop or "
                                    f"the end at {warmup + seconds} s")
        job = {"format": job_.FORMAT, "experiment": self.name, "case": case["name"], "aqm": aqm_name, "seed": seed,
               "rate": rate, "changes": changes, "module": aqm.get("module"),
               "qdisc": self._line("qdisc", case, variables, aqm_name, rtt, where), "warmup": warmup,
               "seconds": seconds, "groups": groups}
        if "child" in aqm:
            job["child"] = self._line("child", case, variables, aqm_name, rtt, where)
        if "shaper" in aqm:
            job["shaper"] = aqm["shaper"]
        try:
            job_.check(job)
        except ScenarioError as error:
            raise ScenarioError(f"{where}: {error}") from None
        return job

    def _line(self, which, case, variables, name, rtt_ms, where):
        """A qdisc's line for tc, with the values of the AQM, those that the experiment sets, and the buffers."""
        own = self.aqms[name].get("values", {})
        set_here = fill(self.table.get("values", {}).get(name, {}), variables | {
            k: f"{{{k}}}" for k in ("buffer_packets", "buffer_bytes")}, where)
        for key in set_here:
            if key not in own:
                raise ScenarioError(f"{self.file}: values: {name}: unknown value '{key}'; there are "
                                    f"{', '.join(own) or 'none'}")
        values = own | set_here
        if "buffer_bdp" in case:
            bytes_ = case["buffer_bdp"] * mbit_of(case["rate"]) * 1e6 / 8 * rtt_ms / 1e3
            # As the partial-deployment paper's scripts count them.
            buffers = {"buffer_packets": int(bytes_ / MTU) + 1, "buffer_bytes": int(bytes_)}
            values = fill(values, buffers, where)
        rate = {"rate": case["rate"]} if "shaper" in self.aqms[name] else {}
        line = fill(self.aqms[name][which], rate | values, f"{where}: {name}")
        if "{" in line:
            raise ScenarioError(f"{where}: {name} needs buffer_bdp of the case for '{line}'")
        return line

    def _group(self, group, aqm, where):
        kind = group.get("kind", "tcp")
        where = f"{where}: group {group.get('name', '?')}"
        check({"kind": kind}, {"kind": COMMON["kind"]}, where)
        check(group, GROUPS[kind], where)
        filled = {"name": group["name"], "kind": kind, "rtt_ms": group["rtt_ms"], "count": group.get("count", 1),
                  "start": group.get("start", 0), "stop": group.get("stop")}
        if group.get("aggregate_ms"):
            filled["aggregate_ms"] = group["aggregate_ms"]
        # Where nothing gives values to packets it is the same run, whatever their class.
        if "tvf" in group and "child" in aqm:
            filled["tvf"] = group["tvf"]
        if kind == "udp":
            return filled | {"ecn": group["ecn"], "rate": group["rate"], "payload": group.get("payload", 1470)}
        sender = self.senders.get(group["sender"])
        if sender and "cc" not in sender:
            sender = self.senders[sender["on_l4s" if aqm.get("l4s") else "elsewhere"]]
        if not sender:
            raise ScenarioError(f"{where}: no sender '{group['sender']}'; there are {', '.join(self.senders)}")
        filled |= sender
        if kind == "web":
            if filled["count"] > 1:
                raise ScenarioError(f"{where}: count = {filled['count']} should be 0 or 1 for web; set per_second")
            filled |= {"per_second": group["per_second"]} | {k: group.get(k, v) for k, v in WEB.items()}
            if filled["least"] > filled["most"]:
                raise ScenarioError(f"{where}: least {filled['least']} is above most {filled['most']}")
        return filled
