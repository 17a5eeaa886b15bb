# SPDX-License-Identifier: GPL-2.0-only
"""Results that are made up, for the tests of the report: Made is a results directory of them.

They take their jobs from the scenarios and their figures from the papers, unless a test gives others.
"""

import os
import tempfile

import judge
import measure
import numpy as np
import results
import scenario
import store

SECONDS = 6


def spread(mean, **given):
    """What measure.py says of a distribution, all levels at the mean unless given."""
    keys = ("mean", "p1", "p25", "p50", "p75", "p99", "p99_9", "max", "stddev")
    return dict.fromkeys(keys, mean) | {"stddev": 0.0} | given


def figures(job, given=None):
    """summary.json of a job; `given`: {group or "all": {figure: value}} in place of what is taken otherwise."""
    given = given or {}
    link = scenario.mbit_of(job["rate"])
    groups = {}
    for number, group in enumerate(job["groups"]):
        own = {"mean": 0.3 + number * 10, "p99": 1.0 + number * 20, "mbit": link / len(job["groups"]), "mark": 2.0,
               "drop": 0.0} | given.get(group["name"], {})
        own.setdefault("flow_mbit", own["mbit"] / group["count"])
        packets = own.get("packets", 10_000)
        dropped = own.get("dropped", round(packets * own["drop"] / (100 - own["drop"])) if own["drop"] < 100 else 1)
        groups[group["name"]] = {
            "packets": packets, "dropped": dropped, "delay_ms": spread(own["mean"], p99=own["p99"],
                                                                       p50=own.get("p50", own["mean"]),
                                                                       max=own.get("max", own["p99"])),
            "mbit": spread(own["mbit"]), "mark_pct": spread(own["mark"]), "drop_pct": spread(own["drop"]),
            "mbit_per_flow": own["flow_mbit"],
            "window_bytes": own["flow_mbit"] * 125 * (own["mean"] + group["rtt_ms"]),
            **{key: own.get(key) for key in measure.TCP_FIGURES}}
    whole = {"utilization_pct": spread(99.9), "delay_ms": spread(5.0)}
    if "util" in given.get("all", {}):
        whole["utilization_pct"] = spread(given["all"]["util"])
    if "jain" in given.get("all", {}):
        whole["jain"] = given["all"]["jain"]
    if "max" in given.get("all", {}):
        whole["delay_ms"] = spread(5.0, max=given["all"]["max"])
    classes = {}
    for name in ("l4s", "classic"):
        mine = [groups[g["name"]] for g in job["groups"] if (g["ecn"] in results.L4S) == (name == "l4s")]
        if mine:
            classes[name] = mine[0] | {k: sum(g[k] for g in mine) for k in ("packets", "dropped")}
            classes[name]["delay_ms"] = mine[0]["delay_ms"] | given.get(name, {})
    return {"format": 1, "groups": groups, "classes": classes, "all": whole, "flows": []}


class Made:
    """A results directory of made-up runs."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="report-")
        self.store = store.Store(self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path, _, files in os.walk(self.directory, topdown=False):
            for name in files:
                os.remove(os.path.join(path, name))
            os.rmdir(path)

    def run(self, job, given=None, delays=None, coupled=None, prob=0.0, meta=None, own=None, l4s=None):
        """Keep a run; `delays`: mean of each second in ms, `coupled`: rise of that counter, `prob`: p' at the end,
        `own`: what the qdisc says of its delays, `l4s`: rises of more counters of the L4S queue."""
        out = self.store.begin(job)
        summary = figures(job, given) | ({"own": own} if own else {})
        store.write_json(os.path.join(out, "summary.json"), summary)
        counter = {"before": {"prob": 0.0, "ecn-mark": 7, "step-mark": 7,
                              "l4s": {"marked-coupled": 5, "marked-native": 5}},
                   "after": {"prob": prob, "ecn-mark": 107 + (coupled or 0), "step-mark": 107,
                             "l4s": {"marked-coupled": 5 + (coupled or 0), "marked-native": 100}}}
        for name, rise in (l4s or {}).items():
            counter["before"]["l4s"][name], counter["after"]["l4s"][name] = 3, 3 + rise
        if job["aqm"] == "dualpi2-in-tree":
            for when in counter.values():
                del when["l4s"]
        store.write_json(os.path.join(out, "run.json"), {"job": job, "start_ns": 10**18} |
                         (counter if coupled is not None or l4s else {"before": None, "after": None}))
        names = ["all", *(g["name"] for g in job["groups"])]
        with open(os.path.join(out, "seconds.csv"), "w", encoding="ascii") as file:
            file.write("second,group,packets,mbit,delay_mean_ms,delay_p50_ms,delay_p99_ms,marked,ecn_packets,dropped\n")
            for name in names:
                own = summary["groups"].get(name, {"dropped": 0, "mark_pct": {"mean": 1}})
                only = (given or {}).get(name, {}).get("lost_at")
                for n, delay in enumerate(delays or [2.0] * SECONDS):
                    lost = own["dropped"] if only in (None, n) else 0
                    file.write(f"{job['warmup'] + n},{name},10000,{1 + n},{delay},{delay},{2 * delay},"
                               f"{round(own['mark_pct']['mean'] * 100)},10000,{lost}\n")
        with open(os.path.join(out, "histogram.csv"), "w", encoding="ascii") as file:
            file.write("group,delay_us_from,delay_us_to,packets\n")
            for name in names:
                file.write("".join(f"{name},{2 ** k},{2 ** (k + 1)},{1000 >> k}\n" for k in range(8)))
        web = [g["name"] for g in job["groups"] if g["kind"] == "web"]
        if web:
            with open(os.path.join(out, "web.csv"), "w", encoding="ascii") as file:
                file.write("group,start_s,bytes,completion_s\n")
                # One of the warm-up, five after it, one that did not end.
                file.write("".join(f"{name},{job['warmup'] - 0.1},2000,9\n" for name in web))
                file.write("".join(f"{name},{job['warmup'] + n},{1000 * 3 ** n},{0.05 + step * n}\n"
                                   for name, step in zip(web, (0.1, 0.2)) for n in range(5)))
                file.write("".join(f"{name},{job['warmup'] + 9},300000,\n" for name in web))
        self.store.finish(job, out, {"commit": "0123456789abcdef", "made_of": {"kernel": "7.2"}} | (meta or {}))
        return self.store.place(job)

    def cells(self):
        return results.load(self.directory)


def jobs(experiment, case="*", aqms=None, seeds=(1,)):
    return scenario.Experiment(experiment).jobs(aqms, case, seeds)


def job(experiment, case, aqm="dualpi2", seed=1):
    return jobs(experiment, case, [aqm], (seed,))[0]


def fig8_target(aqm, rtt_b="50"):
    return next(t for t in judge.targets("fig8.csv") if (t["aqm"], t["rtt_b_ms"], t["set"]) == (aqm, rtt_b, "CUBIC"))


def fig12_target(udp_class="ect1", mbps="50"):
    return next(t for t in judge.targets("fig12.csv") if (t["udp_class"], t["udp_mbps"], t["cc_c"]) ==
                (udp_class, mbps, "CUBIC"))


def raw(place, delays):
    """Sightings of two packets of the first group in each 0.1 s, with these delays in ms."""
    sightings = []
    for n, delay in enumerate(np.repeat(delays, 2)):
        leave = 10**18 + n * 5 * 10**7 + 10**7
        for outgoing, ns in ((0, leave - int(delay * 1e6)), (1, leave)):
            sightings.append((ns, 0x0A080101, n, n, 1514, 1, outgoing, 0))
    np.array(sightings, dtype=results.measure.SIGHTING).tofile(f"{place}/sightings")
