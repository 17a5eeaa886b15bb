# SPDX-License-Identifier: GPL-2.0-only
"""Write a run as a data file of flent (its format, version 4), so that flent's own plots open it.

The run takes the form of flent's test rrul_be, whose plots know four uploads and four pings. A group of flows, whatever
their number, is one of each, in the job's order: the group's rate on the wire in Mbit/s, and the mean delay of its
packets in the queue in ms, without the base RTT. What is called ICMP is the fourth group's; a fifth is in the file, but
not in the plots. Nothing is downloaded. A value belongs to the end of its second; where nothing was sent there is no
delay.
"""

import gzip
import json
import os
from datetime import datetime, timezone

VERSION = 4
STEP_S = 1.0
UPLOADS = ("TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4")
PINGS = ("Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP")


def content(result):
    """What flent reads, as a dictionary, of a results.Result."""
    job = result.job
    began = start_s(result)
    seconds = sorted({s for s, _ in result.seconds("all", "mbit")})
    series, meta = {}, {}
    for number, group in enumerate(job["groups"]):
        for names, prefix, column, units in ((UPLOADS, "TCP upload", "mbit", "Mbits/s"),
                                             (PINGS, "Ping (ms)", "delay_mean_ms", "ms")):
            name = names[number] if number < len(names) else f"{prefix} BE{number + 1}"
            series[name] = dict(result.seconds(group["name"], column))
            meta[name] = {"UNITS": units, "RUNNER": "lab", "GROUP": group}
    for name, units in (("TCP upload", "Mbits/s"), ("Ping (ms)", "ms")):
        parts = [values for key, values in series.items() if key.startswith(name)]
        there = {s: [v[s] for v in parts if s in v] for s in seconds}
        for word, figure in (("avg", lambda v: sum(v) / len(v)), ("sum", sum)):
            if (name, word) != ("Ping (ms)", "sum"):
                series[f"{name} {word}"] = {s: figure(v) for s, v in there.items() if v}
                meta[f"{name} {word}"] = {"UNITS": units, "RUNNER": "lab"}
    series["TCP totals"] = series["TCP upload sum"]
    meta["TCP totals"] = meta["TCP upload sum"]
    stamp = datetime.fromtimestamp(began, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "version": VERSION,
        "x_values": [s + STEP_S for s in seconds],
        "results": {name: [values.get(s) for s in seconds] for name, values in series.items()},
        "raw_values": {name: [{"t": began + s + STEP_S, "val": v} for s, v in sorted(values.items())]
                       for name, values in series.items()},
        "metadata": {
            "NAME": "rrul_be", "TITLE": f"{job['experiment']} {job['case']} {job['aqm']} seed {job['seed']}",
            "NOTE": job["qdisc"], "HOST": "rcv", "HOSTS": ["rcv"], "LOCAL_HOST": "snd", "IP_VERSION": 4,
            "TIME": stamp, "T0": stamp, "LENGTH": job["seconds"], "TOTAL_LENGTH": job["warmup"] + job["seconds"],
            "STEP_SIZE": STEP_S, "FLENT_VERSION": "2.0.0", "DATA_FILENAME": file_name(result), "BATCH_NAME": None,
            "TEST_PARAMETERS": {}, "SERIES_META": meta}}


def start_s(result):
    """When the run began, in seconds since 1970 of the machine's own clock; 0 if it left no run.json."""
    path = os.path.join(result.path, "run.json")
    if not os.path.exists(path):
        return 0.0
    with open(path, encoding="utf-8") as file:
        return json.load(file)["start_ns"] / 1e9


def file_name(result):
    """EXPERIMENT-CASE-AQM-N.flent.gz."""
    job = result.job
    return f"{job['experiment']}-{job['case']}-{job['aqm']}-{job['seed']}.flent.gz"


def write(result, directory):
    """Write a run's file into a directory. Returns its path."""
    path = os.path.join(directory, file_name(result))
    # Without a time of writing in its head, the same run gives the same file.
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(json.dumps(content(result)).encode())
    return path
