#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of the scenarios: what the shipped ones become, and what is said of mistakes in one. KTAP on stdout.
"""

import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "lib"))

from mock_machine import SMOKE, WORK, Place, holds, main  # noqa: E402

import runs  # noqa: E402
import scenario  # noqa: E402
import store  # noqa: E402
from ktap import expect_equal as equal, test  # noqa: E402


# Scenarios

@test
def scenarios_as_shipped_have_the_papers_runs():
    counts = {name: len(scenario.Experiment(name).jobs()) for name in scenario.names()}
    equal({k: counts[k] for k in ("fig2", "fig4", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "fig12")},
          {"fig2": 75, "fig4": 1, "fig6": 75, "fig7": 66, "fig8": 72, "fig9": 2, "fig10": 3, "fig11": 75, "fig12": 20})
    equal({k: counts[k] for k in counts if k.startswith(("pi2", "deploy"))},
          {"deploy": 180, "deploy-flows": 36, "pi2-fig6": 4, "pi2-fig11": 9, "pi2-fig12": 5, "pi2-fig12-flows": 12,
           "pi2-fig13": 3, "pi2-fig14": 12, "pi2-fig15": 100, "pi2-fig19": 22})
    equal({k: counts[k] for k in counts if k.startswith(("vdq", "csaqm"))},
          {"vdq-equal": 72, "vdq-rtt": 32, "vdq-policy": 12, "vdq-cc": 32, "vdq-phases": 2,
           "vdq-policy-phases": 1, "csaqm-cc": 144, "csaqm-rtt": 48})
    equal(counts["traces"], 12)
    equal(list(counts)[0], "smoke")


@test
def scenarios_as_shipped_are_on_the_papers_grid():
    def seen(name, figure, aqm="dualpi2"):
        return {figure(j) for j in scenario.Experiment(name).jobs() if j["aqm"] == aqm}

    def of_flows(job):
        return job["rate"], *((g["rtt_ms"], g["count"]) for g in job["groups"])
    rtts = (5, 10, 20, 50, 100)
    # Appendix B of the DualPI2 paper: 5 s + rate * RTT / 100 s.
    equal(seen("fig6", lambda j: (*of_flows(j), j["warmup"], j["seconds"])), {
        (f"{r}mbit", (t, 1), (t, 1), -(-(500 + r * t) // 100), 250) for r in (4, 12, 40, 120, 200) for t in rtts})
    equal(seen("fig8", of_flows), {("40mbit", (a, 1), *rest) for a in (5, 100)
                                   for rest in ((), *(((b, 1),) for b in rtts))})
    equal(seen("fig12", lambda j: (j["rate"], *((g["cc"], g["count"]) for g in j["groups"][:2]),
                                   j["groups"][2]["ecn"], j["groups"][2]["rate"])),
          {("100mbit", ("dctcp", 5), (cc, 5), ecn, f"{udp}mbit") for cc in ("cubic", "reno")
           for ecn in ("ect1", "not-ect") for udp in (50, 70, 100, 140, 200)})
    lines = {"dualpi2": "dualpi2 limit 40000 target 15ms tupdate 16ms alpha 0.15625 beta 3.1953125",
             "pie": "pie limit 40000 target 15ms tupdate 16ms alpha 2 beta 20 ecn",
             "fq_codel": "fq_codel limit 40000 flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn"}
    for name in ("fig6", "fig8", "fig12"):
        for aqm in lines if name != "fig12" else ("dualpi2",):
            equal(seen(name, lambda j: j["qdisc"], aqm), {lines[aqm]}, f"{name} {aqm}")
    for name, targets in (("pi2-fig11", (20,)), ("pi2-fig12", (20,)), ("pi2-fig13", (20,)), ("pi2-fig14", (5, 20))):
        equal(seen(name, lambda j: j["qdisc"]), {
            f"dualpi2 limit 40000 target {t}ms tupdate 32ms alpha 0.3125 beta 3.125" for t in targets}, name)
        equal(seen(name, lambda j: j["qdisc"], "pie"), {
            f"pie limit 40000 target {t}ms tupdate 32ms alpha 2 beta 20 ecn" for t in targets}, name)
        equal(seen(name, lambda j: j["qdisc"], "pi2"), {
            f"pi2 limit 40000 target {t}ms tupdate 32ms alpha 0.3125 beta 3.125 coupling_factor 2 ecn"
            for t in targets}, name)
    reno, udp = (lambda n: (100, n, "reno", "off", 0, None)), (100, 2, "6mbit", "not-ect", 0, None)
    groups = {"pi2-fig11": {("10mbit", reno(5)), ("10mbit", reno(50)), ("10mbit", reno(5), udp)},
              "pi2-fig12": {("100mbit", reno(20))},
              "pi2-fig13": {("10mbit", reno(10), (100, 20, "reno", "off", 50, 200),
                             (100, 20, "reno", "off", 100, 150))},
              "pi2-fig14": {("10mbit", reno(20)), ("10mbit", reno(5), udp)}}
    for name, wanted in groups.items():
        equal(seen(name, lambda j: (j["rate"], *(
            (g["rtt_ms"], g["count"], g.get("cc") or g["rate"], g["ecn"], g["start"], g["stop"])
            for g in j["groups"]))), wanted, name)
    equal(seen("pi2-fig12", lambda j: tuple((c["at"], c["rate"]) for c in j["changes"])),
          {((50, "20mbit"), (100, "100mbit"))})
    equal(seen("pi2-fig15", lambda j: (*of_flows(j), *((g["cc"], g["ecn"]) for g in j["groups"])), "pie"), {
        (f"{r}mbit", (t, 1), (t, 1), a, ("cubic", "off")) for r in (4, 12, 40, 120, 200) for t in rtts
        for a in (("dctcp", "l4s"), ("cubic", "classic"))})
    equal({j["qdisc"] for j in scenario.Experiment("pi2-fig15").jobs()}, {
        "pie limit 40000 target 20ms tupdate 32ms alpha 2 beta 20 ecn",
        "pi2 limit 40000 target 20ms tupdate 32ms alpha 0.3125 beta 3.125 coupling_factor 2 ecn"})


@test
def scenarios_of_pi2_variants_have_their_options():
    """Each as pi2, but for the options that are named."""
    for name, aqm, gains, k, more, targets in (
            ("pi2-fig6", "pi", "alpha 0.125 beta 1.25", 1, "no_square", (20,)),
            ("pi2-fig12", "pi2-random", "alpha 0.3125 beta 3.125", 2, "signal random", (20,)),
            ("pi2-fig6", "pi-paper", "alpha 0.125 beta 1.25", 1, "signal random drop_enqueue no_square", (20,)),
            ("pi2-fig12", "pi2-k1", "alpha 0.3125 beta 3.125", 1, "", (20,)),
            ("pi2-fig12", "pi2-enqueue", "alpha 0.3125 beta 3.125", 2, "drop_enqueue", (20,)),
            ("pi2-fig12", "pi2-paper", "alpha 0.3125 beta 3.125", 1, "signal random drop_enqueue", (20,)),
            ("pi2-fig14", "pi2-random", "alpha 0.3125 beta 3.125", 2, "signal random", (5, 20)),
            ("pi2-fig14", "pi2-paper", "alpha 0.3125 beta 3.125", 1, "signal random drop_enqueue", (5, 20)),
            ("pi2-fig15", "pi2-paper", "alpha 0.3125 beta 3.125", 2, "signal random drop_enqueue", (20,)),
            ("pi2-fig19", "pi2-paper", "alpha 0.3125 beta 3.125", 2, "signal random drop_enqueue", (20,))):
        wanted = {f"pi2 limit 40000 target {t}ms tupdate 32ms {gains} coupling_factor {k} ecn {more}".rstrip()
                  for t in targets}
        equal({job["qdisc"] for job in scenario.Experiment(name).jobs([aqm])}, wanted, f"{name} {aqm}")


@test
def scenarios_of_values_are_on_the_papers_grid():
    def seen(name, figure, aqm="vdq_csaqm"):
        return [figure(j) for j in scenario.Experiment(name).jobs([aqm])]

    def counts(job):
        return {g["name"]: g["count"] for g in job["groups"]}
    # The phases of the VDQ-CSAQM paper, section 4.
    equal(seen("vdq-equal", lambda j: "-".join(str(counts(j).get(x, 0)) for x in "AB")),
          ["1-0", "1-1", "10-1", "10-10", "50-10", "50-50", "10-50", "1-10", "0-1"])
    for name in ("vdq-rtt", "vdq-policy", "vdq-cc"):
        equal(seen(name, lambda j: set(counts(j).values())), [{1}, {2}, {5}, {10}], name)
    for name, groups in (
            ("vdq-equal", {(5, "dctcp", "l4s", None), (5, "cubic", "off", None)}),
            ("vdq-rtt", {(t, *x, None) for t in (5, 40) for x in (("dctcp", "l4s"), ("cubic", "off"))}),
            ("vdq-policy", {(5, *x, f) for f in (1, 2) for x in (("dctcp", "l4s"), ("cubic", "off"))}),
            ("vdq-cc", {(5, *x, None) for x in (("dctcp", "l4s"), ("cubic", "off"), ("bbr", "off"))})):
        equal({(g["rtt_ms"], g["cc"], g["ecn"], g.get("tvf")) for j in scenario.Experiment(name).jobs(["vdq_csaqm"])
               for g in j["groups"]}, groups, name)
        # The senders are the same whatever the AQM knows of L4S.
        for aqm in ("fq_codel", "dualpi2"):
            equal(seen(name, lambda j: [g["cc"] + g["ecn"] for g in j["groups"]], aqm),
                  seen(name, lambda j: [g["cc"] + g["ecn"] for g in j["groups"]]), f"{name} {aqm}")


@test
def scenarios_of_targets_have_them_as_each_aqm_counts():
    found = {}
    for name in ("csaqm-cc", "csaqm-rtt"):
        for job in scenario.Experiment(name).jobs():
            where = f"{name} {job['case']}"
            line = job.get("child", job["qdisc"]).split()
            option = {"step": "min", "step-dualpi2": "step_thresh"}.get(job["aqm"], "target")
            text = line[line.index(option) + 1]
            if job["aqm"] == "step":
                equal([line[line.index(w) + 1] for w in ("max", "avpkt")], [text, text], where)
                text = f"{int(text) * 8 / scenario.mbit_of(job['rate']) / 1e3:g}ms"
            factor = float(job["case"].rpartition("K")[2])
            equal(text, f"{factor * min(g['rtt_ms'] for g in job['groups']):g}ms", f"{where} {job['aqm']}")
            found.setdefault((name, factor), set()).update(g["rtt_ms"] for g in job["groups"])
    equal(found, {("csaqm-cc", k): {5, 50} for k in (0.17, 1, 2)} | {
        ("csaqm-rtt", k): {5, 50} for k in (0.17, 1, 2, 10)})


@test
def scenario_with_a_trace_changes_the_rate_every_step():
    job, = scenario.Experiment("traces").jobs(["dualpi2"], "lte")
    trace = scenario.traces.Trace(scenario.traces.example("lte"))
    rates = {0: job["rate"]} | {c["at"]: c["rate"] for c in job["changes"]}
    equal(rates[0], f"{8 * trace.rate(0, 50)}bit")
    equal((rates[1.05], rates[31.05]), (f"{8 * trace.rate(1050, 1100)}bit",) * 2)
    # In a handover, one packet in a step.
    equal([rates.get(at, "the same") for at in (8.9, 8.95)], ["240000bit", "the same"])
    equal(len(rates) > 1300 and max(rates) < 70, True)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("10\n50\n")
        file.flush()
        equal(scenario.traced(file.name, 1), ("480000bit", []))


@test
def scenario_becomes_exactly_this_job():
    job, = scenario.Experiment("fig8").jobs(["dualpi2"], "A5-B10-cubic", [3])
    equal(job, {
        "format": 1, "experiment": "fig8", "case": "A5-B10-cubic", "aqm": "dualpi2", "seed": 3, "rate": "40mbit",
        "changes": [], "module": "dualpi2",
        "qdisc": "dualpi2 limit 40000 target 15ms tupdate 16ms alpha 0.15625 beta 3.1953125",
        "warmup": 9, "seconds": 250, "groups": [
            {"name": "A", "kind": "tcp", "rtt_ms": 5, "count": 1, "start": 0, "stop": None, "cc": "dctcp",
             "ecn": "l4s"},
            {"name": "B", "kind": "tcp", "rtt_ms": 10, "count": 1, "start": 0, "stop": None, "cc": "cubic",
             "ecn": "off"}]})


@test
def scenario_ecn_sender_follows_the_aqm():
    found = {j["aqm"]: (j["groups"][0]["cc"], j["groups"][0]["ecn"])
             for j in scenario.Experiment("fig8").jobs(case_pattern="A5-B5-cubic")}
    equal(found, {"dualpi2": ("dctcp", "l4s"), "pie": ("cubic", "classic"), "fq_codel": ("cubic", "classic")})


@test
def scenario_l4s_sender_may_be_another():
    found = {j["aqm"]: (j["groups"][0]["cc"], j["groups"][0]["ecn"])
             for j in scenario.Experiment("fig8", l4s_cc="prague").jobs(case_pattern="A5-B5-cubic")}
    equal(found, {"dualpi2": ("prague", "l4s"), "pie": ("cubic", "classic"), "fq_codel": ("cubic", "classic")})
    try:
        scenario.Experiment("fig8", l4s_cc="vegas")
    except scenario.ScenarioError as error:
        holds(str(error), "l4s_cc", "prague")
    else:
        raise AssertionError("vegas was taken")


@test
def run_with_another_l4s_sender_says_so_in_what_repeats_it():
    place = Place()
    code, _, _ = place.lab(*SMOKE, "--case", "two-rtts-reno", "--l4s", "prague")
    equal(code, 0)
    (*_, sender, _, _, meta), = place.store.runs()
    equal(sender, "prague")
    equal([g["cc"] for g in meta["made_of"]["job"]["groups"]], ["prague", "reno"])
    holds(meta["command"], "--l4s prague")
    assert "prague" in meta["made_of"], meta["made_of"]
    code, _, err = place.lab(*SMOKE, "--l4s", "vegas")
    equal(code, 2)
    holds(err, "vegas", "prague")


@test
def scenario_variant_takes_the_l4s_senders_place_by_name():
    for name, given in (("dctcp-unpaced", {"cc": "dctcp", "pacing": False}),
                        ("prague-rtt0", {"cc": "prague", "parameters": {"rtt_virt_us": 0}}),
                        ("prague-late-cut", {"cc": "prague", "parameters": {"late_cut": True}})):
        job, = scenario.Experiment("fig8", l4s_cc=name).jobs(["dualpi2"], "A5-B5-cubic")
        equal(job["groups"], [
            {"name": "A", "kind": "tcp", "rtt_ms": 5, "count": 1, "start": 0, "stop": None, "ecn": "l4s",
             "sender": name} | given,
            {"name": "B", "kind": "tcp", "rtt_ms": 5, "count": 1, "start": 0, "stop": None, "cc": "cubic",
             "ecn": "off"}], name)
        equal(store.label(job), f"fig8/A5-B5-cubic/dualpi2/{name}/seed-1")
        assert name in scenario.instead() and name in scenario.scalable(), name
        # An AQM without L4S has the same run with each of them.
        job, = scenario.Experiment("fig8", l4s_cc=name).jobs(["pie"], "A5-B5-cubic")
        equal(job, scenario.Experiment("fig8").jobs(["pie"], "A5-B5-cubic")[0])


@test
def scenario_variants_set_parameters_that_the_module_has():
    with open(os.path.join(runs.ROOT, "extra", "prague", "tcp_prague.c"), encoding="utf-8") as file:
        there = set(re.findall(r"^module_param(?:_cb)?\((\w+),.*0644\);", file.read(), re.M))
    assert "rtt_virt_us" in there, there
    wanted = {name for sender in scenario.senders().values() for name in sender.get("parameters", {})}
    assert wanted and wanted <= there, wanted


@test
def run_of_a_variant_has_its_name_in_path_and_command():
    place = Place()
    for name in ("dctcp-unpaced", "prague-rtt0"):
        equal(place.lab(*SMOKE, "--case", "two-rtts-reno", "--l4s", name)[0], 0)
    found = {run.sender: run.meta for run in place.store.runs()}
    equal(sorted(found), ["dctcp-unpaced", "prague-rtt0"])
    for name, meta in found.items():
        holds(meta["command"], f"--l4s {name}")
    equal(["prague" in found[name]["made_of"] for name in sorted(found)], [False, True])


@test
def scenario_variant_in_error_is_rejected():
    def with_(cc, more):
        return refusal(senders=GOOD_SENDERS.replace("cubic", cc) + more + "\n")
    for cc in ("dctcp", "cubic", "reno"):
        equal(with_(cc, "pacing = false"), "", cc)
    for cc in ("prague", "bbr", "udp_prague"):
        holds(with_(cc, "pacing = false"), f"x.toml: c: group A: {cc} paces by itself")
    holds(with_("cubic", "pacing = true"), "senders.toml: s: pacing = True should be false")
    equal(with_("prague", "parameters = { rtt_virt_us = 0 }"), "")
    holds(with_("dctcp", "parameters = { shift_g = 4 }"), "group A: parameters of dctcp; only prague")
    for wrong in ("{}", '{ late_cut = "Y" }', "{ rtt_virt_us = 0.5 }", "3"):
        holds(with_("prague", f"parameters = {wrong}"), "senders.toml: s: parameters = ", "whole numbers")
    # One module has one set of parameters.
    two = GOOD + '[[case.group]]\nname = "B"\nsender = "t"\nrtt_ms = 5\n'
    for mine, other, same in (("parameters = { rtt_virt_us = 0 }", "", False),
                              ("parameters = { rtt_virt_us = 0 }", "parameters = { late_cut = true }", False),
                              ("parameters = { rtt_virt_us = 0 }", "parameters = { rtt_virt_us = 0 }", True),
                              ("", "", True)):
        said = refusal(two, senders=f'l4s_cc = "dctcp"\n[s]\ncc = "prague"\necn = "l4s"\n{mine}\n'
                                    f'[t]\ncc = "prague"\necn = "l4s"\n{other}\n')
        if same:
            equal(said, "")
        else:
            holds(said, "x.toml: c: groups A and B want different parameters of the module tcp_prague", "'rtt_virt_us'")


@test
def scenario_of_companions_becomes_exactly_this_job():
    job, = scenario.Experiment("vdq-policy").jobs(["vdq_csaqm"], "2-each")
    flows = {"kind": "tcp", "rtt_ms": 5, "count": 2, "start": 0, "stop": None}
    equal(job, {
        "format": 1, "experiment": "vdq-policy", "case": "2-each", "aqm": "vdq_csaqm", "seed": 1, "rate": "1gbit",
        "changes": [], "module": ["ppv", "csaqm"], "qdisc": "ppv", "child": "vdq_csaqm bandwidth 1gbit",
        "shaper": "own", "warmup": 5, "seconds": 15, "groups": [
            flows | {"name": name, "tvf": tvf, "cc": cc, "ecn": ecn} for name, tvf, cc, ecn in (
                ("A-gold", 1, "dctcp", "l4s"), ("A-silver", 2, "dctcp", "l4s"),
                ("B-gold", 1, "cubic", "off"), ("B-silver", 2, "cubic", "off"))]})
    # A qdisc without classes of values runs what it would run without them.
    for aqm in ("dualpi2", "pi2", "cake-shaper"):
        job, = scenario.Experiment("vdq-policy").jobs([aqm], "2-each")
        assert not any("tvf" in g for g in job["groups"]) and "child" not in job, job


@test
def scenario_of_companions_is_refused_if_it_cannot_be():
    child = '[q]\nqdisc = "q"\nshaper = "own"\nchild = "c bandwidth {rate}"\nmodule = ["ppv", "csaqm"]\n'
    equal(refusal(aqms=child), "")
    holds(refusal(aqms=child.replace('shaper = "own"\n', "")), "aqms.toml: q", "child needs shaper")
    holds(refusal(aqms=child.replace(" bandwidth {rate}", "")), "aqms.toml: q", "'bandwidth {rate}' in child")
    holds(refusal(aqms=child.replace('"csaqm"]', '"cake"]')), "module = ['ppv', 'cake']", "pi2, csaqm, ppv")
    holds(refusal(aqms=child.replace('["ppv", "csaqm"]', "[]")), "module = []", "a list")
    holds(refusal(aqms=child.replace('["ppv", "csaqm"]', '"ppv"')), "module = 'ppv'", "dualpi2-in-tree")
    for number in ("0", "17", "true", '"2"'):
        holds(refusal(GOOD.replace("rtt_ms = 5", f"rtt_ms = 5\ntvf = {number}"), aqms=child), "group A", "1 to 16")
    equal(refusal(GOOD.replace("rtt_ms = 5", "rtt_ms = 5\ntvf = 16"), aqms=child), "")


@test
def scenario_without_flow_b_has_one_group():
    equal([g["name"] for g in scenario.Experiment("fig8").jobs(case_pattern="A100-alone-reno")[0]["groups"]], ["A"])
    equal([g["name"] for g in scenario.Experiment("fig7").jobs(case_pattern="A0-B10-*")[0]["groups"]], ["B"])


@test
def scenario_buffers_in_bdp():
    lines = {j["aqm"]: j["qdisc"] for j in scenario.Experiment("deploy").jobs(case_pattern="l4s-cubic-2bdp")}
    # 100 Mbit/s * 10 ms = 125000 bytes; 250000 / 1500 + 1.
    equal(lines["fifo"], "bfifo limit 250000")
    equal(lines["fifo-ecn"], "fq limit 167 flow_limit 167 ce_threshold 5ms orphan_mask 0")
    holds(lines["dualpi2"], "limit 10000 target 5ms")


@test
def scenario_with_a_shaper_of_its_own_has_the_rate_in_the_qdisc():
    found = {j["aqm"]: j for j in scenario.Experiment("shaper").jobs(case_pattern="4mbit-10ms")}
    line = "dualpi2 limit 40000 target 15ms tupdate 16ms alpha 0.15625 beta 3.1953125"
    equal({n: (j.get("shaper"), j["qdisc"]) for n, j in found.items()}, {
        "dualpi2-shaper": ("own", f"{line} bandwidth 4mbit"), "dualpi2": (None, line), "dualpi2-in-tree": (None, line),
        "cake-shaper": ("own", "cake bandwidth 4mbit besteffort flows")})


@test
def scenario_with_aggregates_says_so_of_the_group():
    found = {j["case"]: [g.get("aggregate_ms") for g in j["groups"]]
             for j in scenario.Experiment("bursts").jobs(["dualpi2"], "*-10ms-*")}
    equal(found, {"4ms-10ms-alone": [4], "4ms-10ms-cubic": [4, None], "0ms-10ms-alone": [None],
                  "0ms-10ms-cubic": [None, None]})
    assert "aggregate_ms" not in scenario.Experiment("bursts").jobs(["dualpi2"], "0ms-10ms-alone")[0]["groups"][0]


GOOD_AQMS = '[q]\nqdisc = "q limit {limit}"\nvalues = { limit = 1 }\n'
GOOD_SENDERS = 'l4s_cc = "dctcp"\n[s]\ncc = "cubic"\necn = "off"\n'
GOOD = """title = "t"
aqms = ["q"]
seconds = 5
warmup = 1
[[case]]
name = "c"
rate = "4mbit"
[[case.group]]
name = "A"
sender = "s"
rtt_ms = 5
"""


def refusal(text=GOOD, aqms=GOOD_AQMS, senders=GOOD_SENDERS):
    """What is said of an experiment "x" with these files; empty if it is taken."""
    directory = tempfile.mkdtemp(dir=WORK)
    for name, what in (("x", text), ("aqms", aqms), ("senders", senders)):
        with open(os.path.join(directory, f"{name}.toml"), "w", encoding="utf-8") as file:
            file.write(what)
    try:
        scenario.Experiment("x", directory).jobs()
    except scenario.ScenarioError as error:
        assert "\n" not in str(error), error
        return str(error)
    return ""


@test
def scenario_errors_name_file_key_and_what_there_is():
    equal(refusal(), "")
    for old, new, *parts in (
            ('title = "t"', 'titel = "t"', "x.toml", "unknown key 'titel'", "title"),
            ('title = "t"\n', "", "x.toml", "title is missing"),
            ("seconds = 5", 'seconds = "5"', "x.toml", "seconds = '5'", "whole number"),
            ("seconds = 5", "seconds = true", "x.toml", "seconds = True"),
            ("warmup = 1", 'warmup = "some"', "x.toml", "warmup", '"paper"'),
            ('"q"', '"p"', "x.toml", "no AQM", "'p'", "there are q"),
            ('name = "c"', 'name = "a/b"', "x.toml", "name = 'a/b'"),
            ('name = "c"', 'name = "c-{n}"', "x.toml: case 1", "no value for '{n}'"),
            ('name = "c"', 'name = "c"\nover.n = [1, 2]', "two cases are called 'c'"),
            ('name = "c"', 'name = "c"\nover.n = 1', "over.n should be a list"),
            ('name = "c"', 'name = "c"\nfoo = 1', "x.toml: case 1: unknown key 'foo'", "rate"),
            ('"4mbit"', '"4 Mbit"', "x.toml: case 1", "rate = '4 Mbit'", "40mbit"),
            ('"4mbit"', '"0mbit"', "rate = '0mbit'"),
            ('rate = "4mbit"', 'rate = "4mbit"\nchanges = [{ at = 1, speed = 2 }]', "x.toml: c: changes", "'speed'"),
            ('rate = "4mbit"', 'rate = "4mbit"\nchanges = [{ at = 6, rate = "5mbit" }]', "changes: at = 6", "end at 6"),
            ("rtt_ms = 5", 'rtt_ms = 5\nkind = "web"\nper_second = 2\ncount = 2', "group A", "count = 2", "0 or 1"),
            ('sender = "s"', 'sender = "z"', "x.toml: c: group A", "no sender 'z'", "there are s"),
            ("rtt_ms = 5", "rtt_ms = -5", "group A", "rtt_ms = -5"),
            ("rtt_ms = 5", "rtt_ms = 5\naggregate_ms = -1", "group A", "aggregate_ms = -1"),
            ("rtt_ms = 5", "rtt = 5", "group A", "unknown key 'rtt'", "rtt_ms"),
            ("rtt_ms = 5", "rtt_ms = 5\ncount = 0", "x.toml: c", "no group has a flow"),
            ("rtt_ms = 5", 'rtt_ms = 5\nkind = "sctp"', "kind = 'sctp'", "tcp, udp, web"),
            ("rtt_ms = 5", "rtt_ms = 5\nstart = 6", "group A", "no time between"),
            ("rtt_ms = 5", 'rtt_ms = 5\nkind = "udp"', "group A", "unknown key 'sender'"),
            ("seconds = 5", "seconds = 5\nvalues = { p = {} }", "x.toml", "no AQM", "'p'"),
            ("seconds = 5", "seconds = 5\nvalues.q = { limits = 2 }", "x.toml: values: q", "'limits'", "limit"),
            ("seconds = 5", "seconds 5", "x.toml")):
        assert old in GOOD, old
        holds(refusal(GOOD.replace(old, new, 1)), *parts)
    # what the machine would refuse
    holds(refusal(GOOD + "count = 251\n"), "x.toml: c: group A has 251 flows", "at most 250")
    holds(refusal(aqms='[q]\nqdisk = "q"'), "aqms.toml: q", "unknown key 'qdisk'", "qdisc")
    holds(refusal(aqms='q = "q"'), "aqms.toml", "q = 'q' should be a table")
    holds(refusal(aqms='[q]\nqdisc = "q"\nmodule = "m"'), "module = 'm'",
          "dualpi2, dualpi2-time-shift, dualpi2-in-tree")
    holds(refusal(aqms='[q]\nqdisc = "q"\nshaper = "htb"'), "shaper = 'htb'", "one of own")
    holds(refusal(aqms='[q]\nqdisc = "q"\nshaper = "own"'), "aqms.toml: q", "bandwidth {rate}")
    holds(refusal(aqms='[q]\nqdisc = "q bandwidth {rate}"'), "no value for '{rate}'")
    holds(refusal(aqms='[q]\nqdisc = "q limit {buffer_packets}"'), "no value for '{buffer_packets}'")
    holds(refusal(aqms=GOOD_AQMS.replace("1 }", '"{buffer_packets}" }')), "q needs buffer_bdp")
    holds(refusal(senders=GOOD_SENDERS.replace('"cubic"', '"qubic"')), "senders.toml: s", "cc = 'qubic'", "reno")
    holds(refusal(senders=GOOD_SENDERS.replace('"dctcp"', '"x"')), "senders.toml", "l4s_cc = 'x'", "dctcp")


if __name__ == "__main__":
    main()
