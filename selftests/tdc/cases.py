#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
cases.py - our tc-testing cases of dualpi2: those of one option (tdc_options.py) and tables, as JSON.

    dualpi2         d2XX: what our tc plugin and the stock tc have in common
    dualpi2-ext     d3XX: this project's plugin: its options, error messages, save and restore
    dualpi2-stock   d2cX: values that the kernel rejects, and the plugin earlier

usage: cases.py --settings  print settings of every option, for save_restore.sh
       cases.py [DIR]       write DIR/dualpi2.json and so on (DIR: build/tdc), which the kernel's tdc.py runs too

A case is known by its id: keep the id when a row moves, and take a free one for a new row.
"""
import json
import os
import re
import sys

from tdc_options import IN_TREE, OUR_OWN

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

ADD = "$TC qdisc add dev $DUMMY root handle 1: dualpi2"
CHANGE = "$TC qdisc change dev $DUMMY root handle 1: dualpi2"
REPLACE = "$TC qdisc replace dev $DUMMY root handle 1: dualpi2"
REMOVE = "$TC qdisc del dev $DUMMY root"
SHOW = "$TC qdisc show dev $DUMMY"
SHOW_JSON = "$TC -j qdisc show dev $DUMMY"
# tdc.py cannot compare lists of numbers.
NQB_AS_TEXT = SHOW_JSON + """ | sed -E 's/"nqb":\\[([0-9,]*)\\]/"nqb":"\\1"/'"""
DOWN, UP = "$IP link set dev $DUMMY down", "$IP link set dev $DUMMY up"
TITLE = "qdisc dualpi2 1: root refcnt [0-9]+ "      # a pattern
STATISTICS = "$TC -s -j qdisc show dev $DUMMY"
NOTHING = {"kind": "noqueue", "root": True}

# Faults of Linux's dualpi2 that our qdisc does not have, and the cases that show it; their names begin with the fault.
FAULTS = {
    "C10": "d247 d249 d24a d24b d24c d34a",         # stored gains lose precision
    "C14": "d2c1 d330 d331",                        # tupdate of 1 us: a timer with 1 MHz
    "C23": "d2c3 d2c4 d32d d332 d335",              # target and gains of 0
    "C24": "d244 d245",                             # limit overwrites a memlimit that was set
}

OPTIONS = IN_TREE + OUR_OWN
# Every option set to its other value.
IN_TREE_ARGS, ALL_ARGS = (" ".join(option.args(option.other[0]) for option in options if option.other[0])
                            for options in (IN_TREE, OPTIONS))


def quoted(text):
    return re.sub(r"[.()^]", r"\\\g<0>", text)


def text_of(*changes, options=OPTIONS, column="default"):
    """All options as tc shows them: by default or with the other values, apart from changes."""
    for change in changes:
        if not any(option.is_shown_as(change) for option in options):
            raise ValueError(f"no option is shown as {change!r}")
    texts = [next(filter(option.is_shown_as, changes), option.text(getattr(option, column)[0])) for option in options]
    return " ".join(filter(None, texts)) + " "


def json_of(options=OPTIONS, column="default"):
    return {key: value for option in options for key, value in option.json(getattr(option, column)[1]).items()}


def zeros(names):
    return dict.fromkeys(names.split(), 0)


# One case

def case(number, name, before, command, match, code=0, teardown=(REMOVE,)):
    """A case as tdc.py wants it. before: commands; match: of shows() or prints()."""
    fault = next((f"{fault}: " for fault, numbers in FAULTS.items() if number in numbers.split()), "")
    return {"id": number, "name": fault + name, "category": ["qdisc", "dualpi2"],
            "plugins": {"requires": "nsPlugin"}, "setup": list(before), "cmdUnderTest": command,
            "expExitCode": str(code), **match, "teardown": list(teardown)}


def shows(*qdiscs, command=SHOW_JSON):
    return {"verifyCmd": command, "matchJSON": list(qdiscs)}


def shows_options(options):
    return shows({"kind": "dualpi2", "handle": "1:", "root": True, "options": options},
                 command=NQB_AS_TEXT if "nqb" in options else SHOW_JSON)


def prints(pattern, command=SHOW, count=1):
    return {"verifyCmd": command, "matchPattern": pattern, "matchCount": str(count)}


def with_errors(command):
    """To see what a command prints and leaves, run it again."""
    return f"sh -c '{command} 2>&1; {SHOW}'"


def added(number, name, args, match):
    return case(number, name, [], f"{ADD} {args}".strip(), match)


def accepted(number, args, options, name=""):
    return added(number, f"{name or args} is accepted", args, shows_options(options))


def changed(number, name, before, args, match, verb=CHANGE):
    return case(number, name, [f"{ADD} {before}".strip()], f"{verb} {args}".strip(), match)


def prints_all(*changes, **columns):
    return prints(f"^{TITLE}{quoted(text_of(*changes, **columns))}$")


def instead(number, new, old, *changes, name=""):
    """The new options in place of the old; tc shows the defaults, apart from changes."""
    name = name or f"{new} in place of {old}"
    return changed(number, f"{name} is accepted by change", old, new, prints_all(*changes))


def refused(number, name, args, error, before=ALL_ARGS, state=None, end="$", code=1):
    """A change that fails leaves all options as they were. code: 1 by tc; 2 by the kernel, after other text."""
    command = f"{CHANGE} {'target 1ms' if args.startswith('limit ') else 'limit 5'} {args}"
    start = "^" if code == 1 else ""
    pattern = f"{start}{quoted(error)}\\n{TITLE}{quoted(state or text_of(column='other'))}{end}"
    return case(number, name, [f"{ADD} {before}".strip()], command, prints(pattern, with_errors(command)), code)


def rejected(number, args, why, error, name=""):
    return refused(number, f"{name or args} is refused: {why}", args, f"dualpi2: {error}")


# Cases of one option

def cases_of(option):
    for number, (value, shown) in option.accepted.items():
        # no_split_gso is no key in JSON, and tdc.py wants one.
        yield accepted(number, option.args(value), option.json(shown) or {"limit": 10000})
    for number, (value, shown) in option.alone.items():
        args = option.args(value)
        if number < "d3":
            yield changed(number, f"{option.keyword} changed alone leaves the rest", IN_TREE_ARGS, args,
                          shows_options(json_of(IN_TREE, "other") | option.json(shown)))
        else:
            yield changed(number, f"{args} changed alone leaves the rest", "", args, prints_all(option.text(shown)))
    for number, value in [*option.beyond.items(), *option.wrong.items()]:
        args = option.args(value)
        if number < "d3":
            first = "target 1ms" if option.keyword == "limit" else "limit 5"
            yield case(number, f"{args} is refused", [f"{ADD} {IN_TREE_ARGS}"], f"{CHANGE} {first} {args}",
                       shows_options(json_of(IN_TREE, "other")), 1)
        else:
            why, fault = (option.range, "in range") if number in option.beyond else \
                (f"no {option.kind}", f"a {option.kind}")
            yield rejected(number, args, why,
                           f'{option.keyword}: "{value}" is not {fault}; expected {option.range}')
    for number, (value, limits) in option.kernel.items():
        yield refused(number, f"{option.args(value)} is refused by the kernel", option.args(value),
                      f"Error: dualpi2: {option.keyword} must be {limits}.", IN_TREE_ARGS,
                      text_of(options=IN_TREE, column="other"), "", 2)


# Cases of more

LIMIT_5 = json_of(IN_TREE) | {"limit": 5, "memory-limit": 15140}
AS_SET = json_of(IN_TREE, "other")

IN_TREE_CASES = [
    added("d200", "dualpi2 without options is added with every default", "", shows_options(json_of(IN_TREE))),
    added("d201", "dualpi2 without options shows its defaults as text", "",
          prints(f"^{TITLE}{quoted(text_of(options=IN_TREE))}")),
    added("d202", "dualpi2 with every option is added as given", IN_TREE_ARGS, shows_options(AS_SET)),
    case("d203", "dualpi2 that is there already is refused by add", [f"{ADD} {IN_TREE_ARGS}"], f"{ADD} limit 5",
         shows_options(AS_SET), 2),
    case("d204", "replace of nothing adds", [], f"{REPLACE} limit 5", shows_options(LIMIT_5)),
    case("d205", "replace of another qdisc adds", ["$TC qdisc add dev $DUMMY root handle 2: pfifo"],
         f"{REPLACE} limit 5", shows_options(LIMIT_5)),
    changed("d206", "replace of dualpi2 changes what is given and leaves the rest", IN_TREE_ARGS, "limit 5",
            shows_options({**AS_SET, "limit": 5}), REPLACE),
    case("d207", "replace by another qdisc removes dualpi2", [f"{ADD} {IN_TREE_ARGS}"],
         "$TC qdisc replace dev $DUMMY root handle 2: pfifo limit 7",
         shows({"kind": "pfifo", "handle": "2:", "options": {"limit": 7}})),
    changed("d208", "change without options leaves everything", IN_TREE_ARGS, "", shows_options(AS_SET)),
    case("d209", "change of no dualpi2 is refused", [], f"{CHANGE} limit 5", shows(NOTHING), 2, []),
    case("d20a", "del removes dualpi2", [ADD], REMOVE, shows(NOTHING), 0, []),
    case("d20b", "dualpi2 as child of prio is added", ["$TC qdisc add dev $DUMMY root handle 1: prio"],
         "$TC qdisc add dev $DUMMY parent 1:2 handle 2: dualpi2 limit 9",
         shows({"kind": "dualpi2", "handle": "2:", "parent": "1:2", "options": {"limit": 9}},
               command=f"{SHOW_JSON} parent 1:2")),
    case("d20c", "unknown option is refused", [f"{ADD} {IN_TREE_ARGS}"], f"{CHANGE} limit 5 nonsense",
         shows_options(AS_SET), 1),
    accepted("d20d", "limit 1", {"limit": 1, "memory-limit": 3028}),
    accepted("d20e", "limit 4294967295", {"limit": 4294967295, "memory-limit": 4294967295}),
    accepted("d21b", "step_thresh 1p", {"step-thresh-pkts": 1}),
    accepted("d21c", "step_thresh 4294967294p", {"step-thresh-pkts": 4294967294}),
    *(changed(number, f"{new} in place of {old} is accepted by change", old, new, shows_options({key: value}))
      for number, new, old, key, value in (
          ("d223", "drop_on_overload", "overflow", "drop-overload", "drop"),
          ("d224", "overflow", "drop_on_overload", "drop-overload", "overflow"),
          ("d225", "drop_dequeue", "drop_enqueue", "drop-early", "drop-dequeue"),
          ("d226", "drop_enqueue", "drop_dequeue", "drop-early", "drop-enqueue"),
          ("d227", "l4s_ect", "any_ect", "ecn-mask", "l4s-ect"),
          ("d228", "any_ect", "l4s_ect", "ecn-mask", "any-ect"),
          ("d229", "split_gso", "no_split_gso", "split-gso", None))),
    changed("d22a", "no_split_gso in place of split_gso is accepted by change", "split_gso", "no_split_gso",
            prints(" l4s_ect no_split_gso ")),
    changed("d240", "step_thresh in packets then in time shows the time alone", "step_thresh 5p", "step_thresh 2ms",
            prints(" step_thresh 2ms min_qlen_step ")),
    changed("d242", "step_thresh in time then in packets shows the packets alone", "step_thresh 2ms", "step_thresh 5p",
            prints(" step_thresh 5p min_qlen_step ")),
    changed("d243", "step_thresh in packets survives a change of another option", "step_thresh 5p", "limit 5",
            shows_options({"limit": 5, "step-thresh-pkts": 5})),
    changed("d244", "memlimit that was set survives a change of limit", "memlimit 123456", "limit 77",
            shows_options({"limit": 77, "memory-limit": 123456})),
    changed("d245", "memlimit that was not set follows limit", "", "limit 77",
            shows_options({"limit": 77, "memory-limit": 233156})),
    added("d246", "memlimit that was not set stops at 32 bits", "limit 1418417",
          shows_options({"limit": 1418417, "memory-limit": 4294966676})),
    *(case(number, f"gains of {gain} Hz are shown as set",
           [f"{ADD} alpha {gain} beta {gain}", *[f"{CHANGE} alpha {gain} beta {gain}"] * 2],
           f"{CHANGE} alpha {gain} beta {gain}", prints(quoted(f" alpha {shown} beta {shown} step_thresh ")))
      for number, gain, shown in (("d247", "0.015625", "0.015625"), ("d249", "0.046875", "0.046875"),
                                  ("d24a", "0.15625", "0.156250"), ("d24b", "3.1875", "3.187500"),
                                  ("d24c", "100.984375", "100.984375"))),
    case("d24d", "statistics of an idle dualpi2 are all zero", [DOWN], ADD,
         shows({"kind": "dualpi2", **zeros("bytes packets drops overlimits requeues backlog qlen prob delay-c delay-l "
                                           "pkts-in-c pkts-in-l maxq ecn-mark step-mark memory-used max-memory-used"),
                "credit": -121120, "memory-limit": 30280000}, command=STATISTICS), teardown=[REMOVE, UP]),
    added("d24e", "classes of a dualpi2 are its two queues", "",
          prints(r"^class dualpi2 1:1 parent 1: \nclass dualpi2 1:3 parent 1: \n$", "$TC class show dev $DUMMY")),
    added("d24f", "statistics of the classes of a dualpi2 are shown", "",
          prints(r"^class dualpi2 1:[13] parent 1: \n Sent [0-9]+ bytes [0-9]+ pkt \(dropped 0, ",
                 "$TC -s class show dev $DUMMY", 2)),
]


def queue_statistics(unit_ns):
    """Of an idle queue in JSON; unit_ns: bucket width of its histogram."""
    reasons = ("limit", "memory", "early", "aqm", "overload", "purge")
    return {
        **zeros("packets bytes arrived-bytes arrived-not-ect arrived-ect1 arrived-ect0 arrived-ce marked-classic "
                "marked-coupled marked-native dropped-arrival-bytes dropped-aqm-bytes dropped-purge-bytes"),
        **{name + suffix: 0 for name in ("enqueued", "sent", "presented", "forwarded", "queued")
           for suffix in ("", "-bytes")},
        **{f"{prefix}dropped-{reason}": 0 for prefix in ("", "not-ect-", "ect-") for reason in reasons},
        "delay": {**dict.fromkeys(("mean-ns", "p50-ns", "p90-ns", "p99-ns", "p999-ns")), "max-ns": 0, "count": 0,
                  "sum-ns": 0, "beyond": 0, "beyond-ns": unit_ns << 14, "unit-ns": unit_ns, "buckets": []},
    }


def class_statistics(minor, queue):
    """Of an idle queue as text."""
    return quoted(rf"""class dualpi2 1:{minor} parent 1: \n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \
\n backlog 0b 0p requeues 0\
\n{queue}: enqueued 0 (0 bytes) sent 0 (0 bytes) queued 0 (0 bytes) ce_in 0\
\n marked 0 (classic 0, coupled 0, native 0)\
\n dropped 0 (limit 0, memory 0, early 0, aqm 0, overload 0, purge 0)\
\n arrived 0 (0 bytes) not_ect 0 ect1 0 ect0 0 ce 0\
\n presented 0 (0 bytes) forwarded 0 (0 bytes)\
\n delay of no packet yet\n\n""".replace("\\\n", ""))


def silent(number, name, script):
    """A script that checks by itself, and succeeds."""
    return case(number, name, [], f"{script} $TC $IP", prints("", "true", 0), teardown=[])


# id, arguments, and in JSON: overhead, mpu, framing
FRAMING = (
    ("d377", "overhead -64", -64, 0, "noatm"),
    ("d378", "overhead 256", 256, 0, "noatm"),
    ("d379", "mpu 256", 0, 256, "noatm"),
    ("d37a", "atm", 0, 0, "atm"),
    ("d37b", "ptm", 0, 0, "ptm"),
    ("d37c", "noatm", 0, 0, "noatm"),
    ("d37d", "raw", 0, 0, "raw"),
    ("d37e", "overhead 18 mpu 64 raw", 0, 0, "raw"),
    ("d37f", "raw overhead 18", 18, 0, "noatm"),
    ("d380", "conservative", 48, 0, "atm"),
    ("d381", "ipoa-vcmux", 8, 0, "atm"),
    ("d382", "ipoa-llcsnap", 16, 0, "atm"),
    ("d383", "bridged-vcmux", 24, 0, "atm"),
    ("d384", "bridged-llcsnap", 32, 0, "atm"),
    ("d385", "pppoa-vcmux", 10, 0, "atm"),
    ("d386", "pppoa-llc", 14, 0, "atm"),
    ("d387", "pppoe-vcmux", 32, 0, "atm"),
    ("d388", "pppoe-llcsnap", 40, 0, "atm"),
    ("d389", "pppoe-ptm", 30, 0, "ptm"),
    ("d38a", "bridged-ptm", 22, 0, "ptm"),
    ("d38b", "docsis", 18, 64, "noatm"),
    ("d38c", "ethernet", 38, 84, "noatm"),
    ("d38d", "pppoe-ptm ether-vlan", 34, 0, "ptm"),
    ("d38e", "ethernet ether-vlan ether-vlan ether-vlan", 50, 84, "noatm"),
    ("d38f", "docsis overhead 20", 20, 64, "noatm"),
    ("d390", "overhead 20 mpu 5 atm docsis", 18, 64, "noatm"),
)
ALL_DSCPS = ",".join(map(str, range(64)))
EXCLUDE = "Error: dualpi2: bypass conflicts with bandwidth: the shaper must see every packet; use one of the two."
OF_40_MBIT = ("limit 19531p", "memlimit 2500000B", "bandwidth 40Mbit")

OUR_OWN_CASES = [
    *(accepted(number, args, {"overhead": overhead, "mpu": mpu, "framing": framing})
      for number, args, overhead, mpu, framing in FRAMING),
    added("d300", "dualpi2 without options shows its defaults completely", "", prints_all()),
    added("d301", "dualpi2 without options has its defaults completely in JSON", "", shows_options(json_of())),
    added("d302", "dualpi2 with every option shows them as given", ALL_ARGS, prints_all(column="other")),
    added("d304", "dualpi2 with every option has them in JSON", ALL_ARGS, shows_options(json_of(column="other"))),
    added("d305", "dualpi2 with every option shown is restored from its text", text_of(column="other"),
          prints_all(column="other")),
    changed("d306", "change without options leaves everything", ALL_ARGS, "", prints_all(column="other")),
    instead("d31a", "l4s", "no_l4s"),
    instead("d31b", "recur", "random"),
    instead("d31c", "l4s_ect", "cla_ect"),
    changed("d321", "ramp that was not set follows step_thresh", "", "step_thresh 5ms",
            prints_all("step_thresh 5ms", "ramp 2ms")),
    changed("d322", "ramp that was set survives a change of step_thresh", "ramp 100us", "step_thresh 5ms",
            prints_all("step_thresh 5ms", "ramp 100us")),
    changed("d323", "ramp of a step in packets is that of the time", "", "step_thresh 5p",
            prints_all("step_thresh 5p")),
    *(added(number, f"{args} {effect}", args, prints_all(*shown.split(", ")))
      for number, args, effect, shown in (
          ("d324", "max_rtt 100ms", "alone takes a sixth as typical_rtt",
           "target 16.666ms, tupdate 16.666ms, alpha 0.167969, beta 3.000000"),
          ("d325", "typical_rtt 20ms", "alone takes six times it as max_rtt",
           "target 20ms, tupdate 20ms, alpha 0.140625, beta 2.500000"),
          ("d326", "max_rtt 200ms typical_rtt 20ms", "decides target, tupdate and gains",
           "target 20ms, tupdate 20ms, alpha 0.050781, beta 1.500000"),
          ("d327", "max_rtt 30ms typical_rtt 30ms", "keeps tupdate to a third of max_rtt",
           "target 30ms, tupdate 10ms, alpha 1.109375, beta 10.000000"))),
    added("d328", "max_rtt before target leaves target as given", "max_rtt 200ms typical_rtt 20ms target 5ms",
          shows_options({"target": 5000, "tupdate": 20000})),
    rejected("d343", "limit 5 limit 6", "once", 'limit: given twice, the second time with "6"; expected once',
             "limit given twice"),
    rejected("d344", "ramp", "missing", "ramp: the value is missing; expected 0us to 4.294967s",
             "ramp without a value"),
    rejected("d345", "overflow overflow", "once", "overflow: given twice; expected once", "overflow given twice"),
    rejected("d346", "max_rtt 20ms typical_rtt 30ms", "at most max_rtt",
             'typical_rtt: "30ms" is not in range; expected at most max_rtt, 20ms', "typical_rtt above max_rtt"),
    case("d347", "option that is none is refused: suggests the nearest one", [f"{ADD} {ALL_ARGS}"],
         f"{CHANGE} limit 5 tarhet 5ms",
         prints(r'^dualpi2: unknown option "tarhet" \(did you mean "target"\?\); see: tc qdisc add dualpi2 help\n',
                with_errors(f"{CHANGE} limit 5 tarhet 5ms")), 1),
    case("d3d0", "help without a device prints the usage", [], "$TC qdisc add dualpi2 help",
         prints(r'^Usage: \.\.\. dualpi2 \[ limit PACKETS \]', "sh -c '$TC qdisc add dualpi2 help 2>&1'"), 1, []),
    case("d348", "limit 0 at add is refused: nothing is added", [], f"{ADD} limit 0",
         prints(r'^dualpi2: limit: "0" is not in range; expected 1p to 4294967295p\n'
                "qdisc noqueue 0: root refcnt [0-9]+ $", with_errors(f"{ADD} limit 0")), 1, []),
    silent("d349", "text of every option set is a fixed point of save and restore", f"{HERE}/save_restore.sh options"),
    silent("d34a", "text of every gain is a fixed point of save and restore", f"{HERE}/save_restore.sh gains"),
    case("d34b", "statistics of an idle dualpi2 are all zero", [DOWN], ADD,
         shows({"kind": "dualpi2", "credit": -121120, "memory-limit": 30280000, "limit-pkts": 10000,
                "nqb-limit-bytes": None, "effective-target-ns": 15000000, "ramp-min-ns": 800000, "ramp-max-ns": 1200000,
                "classic": queue_statistics(65536), "l4s": queue_statistics(8192),
                "overload": False, "overload-start": None, "overload-end": None, "drain-rate": None,
                **zeros("prob-c prob-cl overload-count overload-ns overload-start-ns overload-duration-ns "
                        "overload-reports unparsed filter-dropped gso-failed mark-failed throttled burst-ns "
                        "nqb-arrived nqb-dropped")}, command=STATISTICS), teardown=[REMOVE, UP]),
    instead("d357", "p_cmax 0", "p_cmax 30", name="p_cmax 0 in place of 30"),
    instead("d35b", "overload_report 0", "overload_report 2s", "overload_report 0us",
            name="overload_report 0 in place of 2s"),
    changed("d35c", "p_cmax that was not set is not shown after a change of coupling_factor", "", "coupling_factor 3",
            prints_all("coupling_factor 3")),
    case("d368", "statistics of the classes of an idle dualpi2 are those of its queues", [DOWN], ADD,
         prints(f'^{class_statistics(1, "L4S")}{class_statistics(3, "Classic")}$', "$TC -s -d class show dev $DUMMY"),
         teardown=[REMOVE, UP]),
    accepted("d376", "unlimited", {"bandwidth": 0}),
    accepted("d395", f"nqb {ALL_DSCPS}", {"nqb": ALL_DSCPS}, "nqb of all DSCPs"),
    accepted("d398", "no_nqb", {"nqb": ""}),
    accepted("d3d2", "metro", {"target": 1666, "tupdate": 1666}, "cake's keyword metro"),
    changed("d399", "bandwidth 40mbit changed alone has the limits follow it", "", "bandwidth 40mbit",
            prints_all(*OF_40_MBIT)),
    instead("d39a", "unlimited", "bandwidth 40mbit", name="unlimited in place of bandwidth"),
    changed("d39b", "bandwidth leaves the limits that were set", "limit 10000 memlimit 30280000", "bandwidth 40mbit",
            prints_all("bandwidth 40Mbit")),
    changed("d39c", "overhead 18 changed alone has noatm", "", "overhead 18", prints_all("overhead 18 mpu 0 noatm")),
    changed("d39d", "mpu 64 changed alone leaves the rest", "overhead 18 atm", "mpu 64",
            prints_all("overhead 18 mpu 64 atm")),
    changed("d39e", "atm changed alone leaves the rest", "docsis", "atm", prints_all("overhead 18 mpu 64 atm")),
    changed("d39f", "raw forgets overhead and mpu", "docsis", "raw", prints_all()),
    changed("d3a0", "pppoe-ptm in place of docsis leaves nothing of it", "docsis", "pppoe-ptm",
            prints_all("overhead 30 mpu 0 ptm")),
    instead("d3a2", "egress", "ingress"),
    instead("d3a4", "no_nqb", "nqb 1,2", "no_nqb", name="no_nqb in place of nqb"),
    instead("d3a5", "nqb 45", "no_nqb"),
    instead("d3a7", "burst_max 0", "burst_max 8ms", "burst_max 0us", name="burst_max 0 in place of 8ms"),
    rejected("d3b3", "docsis ethernet", "one preset", "ethernet: conflicts with docsis; use one of the two"),
    rejected("d3b4", "docsis docsis", "once", "docsis: given twice; expected once"),
    rejected("d3b5", "ether-vlan", "after a preset",
             "ether-vlan: no overhead to add to; give it after a preset or overhead"),
    rejected("d3b6", "docsis ether-vlan ether-vlan ether-vlan ether-vlan", "three at most",
             "ether-vlan: given too often; expected at most 3 times"),
    rejected("d3b7", "overhead 255 ether-vlan", "-64 to 256",
             'ether-vlan: overhead would be "259", which is not in range; expected -64 to 256'),
    rejected("d3b9", "nqb 45,0x2d", "once", 'nqb: "45,0x2d" contains 45 twice; expected once'),
    silent("d3bd", "presets are those of cake", f"{ROOT}/selftests/tc/presets_as_cake.sh"),
    accepted("d3c9", "unlimited bypass", {"bandwidth": 0, "bypass": True}),
    instead("d3c2", "no_bypass", "bypass"),
    added("d3c3", "bypass shown with the others is restored from its text",
          text_of("overhead -4 mpu 64 ptm", "ingress", "nqb 2,46", "burst_max 8ms", "bypass", "no_l4s"),
          prints_all("overhead -4 mpu 64 ptm", "ingress", "nqb 2,46", "burst_max 8ms", "bypass", "no_l4s")),
    instead("d3c4", "unlimited bypass", "bandwidth 40mbit", "bypass", name="unlimited bypass in place of bandwidth"),
    instead("d3c5", "bandwidth 40mbit no_bypass", "bypass", *OF_40_MBIT, name="bandwidth no_bypass in place of bypass"),
    refused("d3c6", "bypass with bandwidth is refused: one of the two", "bypass bandwidth 40mbit",
            "dualpi2: bypass: conflicts with bandwidth; use one of the two", "", text_of()),
    refused("d3c7", "bypass is refused by the kernel where bandwidth is", "bypass", EXCLUDE, "bandwidth 40mbit",
            text_of(*OF_40_MBIT), code=2),
    refused("d3c8", "bandwidth is refused by the kernel where bypass is", "bandwidth 40mbit", EXCLUDE, "bypass",
            text_of("bypass"), code=2),
]


# All cases

def file_of(number):
    return "dualpi2-ext" if number >= "d3" else "dualpi2-stock" if number >= "d2c" else "dualpi2"


def all_cases():
    """{file: its cases}, by id."""
    cases = [case for option in OPTIONS for case in cases_of(option)] + IN_TREE_CASES + OUR_OWN_CASES
    files = {"dualpi2": [], "dualpi2-ext": [], "dualpi2-stock": []}
    for one in sorted(cases, key=lambda one: one["id"]):
        files[file_of(one["id"])].append(one)
    return files


def settings():
    """Every option alone and all together, each as arguments of tc."""
    return ["", *(option.args(value) for option in OPTIONS for value, _ in (*option.accepted.values(), option.other)
                  if value), ALL_ARGS]


def main():
    if sys.argv[1:] == ["--settings"]:
        print("\n".join(settings()))
        return
    folder = sys.argv[1] if len(sys.argv) > 1 else f"{ROOT}/build/tdc"
    os.makedirs(folder, exist_ok=True)
    for name, cases in all_cases().items():
        with open(f"{folder}/{name}.json", "w", encoding="utf-8") as file:
            json.dump(cases, file, indent=4)
            file.write("\n")


if __name__ == "__main__":
    main()
