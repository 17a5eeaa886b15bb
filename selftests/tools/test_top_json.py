#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top lockdep=off
"""JSON of dualpi2-top and tc with a real dualpi2, against the kernel and docs/schema; examples of the manual. KTAP on
stdout.
"""

import json
import os
import signal
import subprocess
import tempfile
import time

from installed import ROOT, TOOLS
from lib_top_live import MIX, TOP, bottleneck, prepare, top, top_json
from lib import (ECT1, NOT_ECT, Stream, expect, expect_equal, in_netns, main, note, shared_net, stats, tc, tc_stats,
                 test)
from manpage import examples
import schema


# Numbers

@test("dualpi2-top --once --json")
def json_since_start_is_what_the_kernel_counted():
    with bottleneck() as (net, q):
        net.traffic(3, *MIX)
        q.until_idle()
        st = q.stats()
        found = top_json(f"--netns {net.rtr} --once --since-start --json", None)
        expect_equal(sorted(found), [("down", "10:"), ("up", "20:")], "qdiscs")
        one = found["down", "10:"]
        expect_equal((one["parent"], one["level"], one["missing"]), ("1:10", "full", []))
        for key, name in (("c", "classic"), ("l", "l4s")):
            got = one["queues"][name]
            want = {field: st[key]["counters"][field] for field in got["counters"]}
            expect_equal(got["counters"], want, name)
            expect_equal(len(want), 29, "fields")
            expect(want["forwarded"] > 100, f"{name}: no traffic")
            histogram = got["histogram"]
            expect_equal(histogram["packets"], list(st[key]["delay"]["hist"]), f"{name}: histogram")
            expect_equal(sum(histogram["packets"]) + histogram["beyond"], want["forwarded"], f"{name}: its sum")
            expect_equal(got["interval"]["delay"]["max_ns"], st[key]["delay"]["max_ns"], f"{name}: max")
            expect_equal(got["interval"]["counters"]["forwarded"], want["forwarded"], f"{name}: since start")
        expect_equal(one["total"]["packets"], st["packets"], "packets of the qdisc")
        expect(abs(one["probability"]["p"] - st["p"]) < 0.05, "p'")


@test("dualpi2-top --once --json", "tc -s")
def json_percentiles_are_those_of_tc():
    with bottleneck() as (net, q):
        net.traffic(3, *MIX)
        q.until_idle()
        shown = json.dumps(tc_stats(net.rtr, "down"))
        for queue in top_json(f"--netns {net.rtr} --since-start --json", None)["down", "10:"]["queues"].values():
            delay = queue["interval"]["delay"]
            for name in ("mean", "p50", "p90", "p99", "p999", "max"):
                expect(f'"{name}-ns": {delay[name + "_ns"]},' in shown, f"{name}: {delay} is not in {shown}")


@test("dualpi2-top --once --json", "link")
def json_of_the_link_is_what_the_kernel_says():
    net = shared_net()
    tc("qdisc add dev down root handle 10: dualpi2 bandwidth 10mbit", net.rtr)
    try:
        net.traffic(2, Stream("l", ecn=ECT1, bps=4e6), Stream("c", ecn=NOT_ECT, bps=8e6),
                    Stream("n", dscp=45, bps=4e5))
        time.sleep(1)
        found = top_json("--since-start --json", net.rtr)["down", "10:"]
        kernel = stats(net.rtr, "down", "10:")["link"]
        note(kernel)
        kernel.pop("pad", None)
        expect_equal(found["link"], kernel, "link")
        expect_equal(found["link"]["drain_rate"], 1250000, "that of the shaper")
        expect(found["link"]["throttled"] and found["link"]["nqb_arrived"], f"nothing was counted: {found['link']}")
        expect_equal(found["link_interval"], {name: kernel[name] for name in found["link_interval"]})
        expect_equal(sorted(found["link_interval"]), ["nqb_arrived", "nqb_dropped", "throttled"], "counters")
        shown = " ".join(top("--since-start --details", net.rtr).stdout.split())
        for text in ("link 10.0 Mbit/s", "ramp ", "NQB "):
            expect(text in shown, f"'{text}' is not in: {shown}")
    finally:
        tc("qdisc del dev down root", net.rtr)


@test("dualpi2-top --json")
def json_intervals_add_up():
    with bottleneck(6, *MIX) as (net, q):
        lines = []
        with subprocess.Popen([TOP, "--netns", net.rtr, "--json", "--interval", "0.5", "--device", "down"],
                              stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                lines.append(json.loads(line))
                if len(lines) == 8:
                    process.send_signal(signal.SIGINT)
                    break
            process.stdout.read()
            expect_equal(process.wait(), 130, "code")
        queues = [line["qdiscs"][0]["queues"]["l4s"] for line in lines]
        expect_equal([len(line["qdiscs"]) for line in lines], [1] * 8, "--device")
        grown = sum(queue["interval"]["counters"]["forwarded"] for queue in queues[1:])
        first, last = (queues[index]["counters"]["forwarded"] for index in (0, -1))
        expect_equal(grown, last - first, "sum of intervals")
        for line in lines:
            expect(0.4 < line["qdiscs"][0]["interval_seconds"] < 0.6, "interval")
        rates = [sum(queue["interval"]["bits_per_second"] for queue in line["qdiscs"][0]["queues"].values())
                 for line in lines[2:]]
        note(f"rates: {rates}")
        expect(all(9.5e6 < rate < 10.5e6 for rate in rates), "the rate is not the link's")


@test("dualpi2-top, many qdiscs")
def json_lists_three_hundred_qdiscs():
    net = shared_net()
    net.idle_instances(300)
    try:
        found = top_json(f"--netns {net.rtr} --since-start --json", None)
        expect_equal(len(found), 300, "qdiscs")
    finally:
        net.idle_instances(0)


@test("dualpi2-top, reader with a small buffer")
def json_with_the_smallest_socket_buffer_is_whole():
    net = shared_net()
    net.idle_instances(50)
    path = "/proc/sys/net/core/rmem_default"
    with open(path, encoding="ascii") as file:
        before = file.read()
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write("2304")
        expect_equal(len(top_json(f"--netns {net.rtr} --since-start --json", None)), 50, "qdiscs")
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)
        net.idle_instances(0)


@test("dualpi2-top, dump during change and delete")
def json_survives_change_and_delete():
    net = shared_net()
    net.idle_instances(40)
    try:
        # To a file, for a pipe that nobody reads would hold it up.
        with tempfile.TemporaryFile("w+") as out, subprocess.Popen(
                [TOP, "--netns", net.rtr, "--json", "--interval", "0.1"], stdout=out, stderr=subprocess.PIPE,
                text=True) as process:
            for number in range(60):
                tc(f"qdisc del dev d{number % 40} root", net.rtr)
                tc(f"qdisc change dev d{(number + 7) % 40} root handle 10: dualpi2 limit {1000 + number} hist_l 1ms",
                   net.rtr, check=False)
                time.sleep(0.03)
                tc(f"qdisc add dev d{number % 40} root handle 10: dualpi2", net.rtr)
            process.send_signal(signal.SIGTERM)
            err = process.communicate()[1]
            expect_equal((process.returncode, err), (143, ""), "end")
            out.seek(0)
            counts = [len(json.loads(line)["qdiscs"]) for line in out]
            expect(len(counts) >= 10 and set(counts) <= {39, 40}, f"qdiscs: {counts}")
    finally:
        net.idle_instances(0)


@test("dualpi2-top, changed edges")
def json_goes_on_after_a_change_of_the_edges():
    with bottleneck(5, *MIX) as (net, q):
        with subprocess.Popen([TOP, "--netns", net.rtr, "--json", "--interval", "0.5", "--device", "down"],
                              stdout=subprocess.PIPE, text=True) as process:
            lines = [json.loads(process.stdout.readline()) for _ in range(3)]
            q.change(hist_l=1000)
            lines += [json.loads(process.stdout.readline()) for _ in range(3)]
            process.kill()
        for line in lines:
            delay = line["qdiscs"][0]["queues"]["l4s"]["interval"]["delay"]
            expect(delay["packets"] and delay["p99_ns"] <= delay["max_ns"] < 10**8, f"delays: {delay}")
        units = [line["qdiscs"][0]["queues"]["l4s"]["histogram"]["unit_ns"] for line in lines]
        expect_equal((units[0], units[-1]), (8192, 1 << 20), "units")


# Schemas and examples

def conforms(name, *values):
    """The values are valid by a schema of docs/schema."""
    found = schema.load(f"{ROOT}/docs/schema/{name}.schema.json")
    for value in values:
        wrong = schema.errors(value, found)
        expect(not wrong, f"{name}: {wrong[:5]} in {json.dumps(value)[:2000]}")


@test("dualpi2-top --json", "docs/schema")
def json_of_top_conforms_to_its_schema():
    with bottleneck() as (net, q):
        conforms("dualpi2-top", json.loads(top("--since-start --json", net.rtr).stdout))
        net.traffic(2, *MIX)
        q.until_idle()
        conforms("dualpi2-top", json.loads(top("--once --json --interval 0.5", net.rtr).stdout))
        whole = json.loads(top("--since-start --json", net.rtr).stdout)
        conforms("dualpi2-top", whole)
        # It does find what is wrong.
        for change in ({"level": "half"}, {"ifindex": -1}, {"device": None}, {"frob": 1}):
            bad = dict(whole, qdiscs=[dict(whole["qdiscs"][0], **change)])
            expect(schema.errors(bad, schema.load(f"{ROOT}/docs/schema/dualpi2-top.schema.json")), change)


@test("dualpi2-top --events --json", "docs/schema")
def json_of_events_conforms_to_its_schema():
    with bottleneck(overload_report=100000) as (net, q), tempfile.NamedTemporaryFile("w+") as names:
        names.write("10: Alice\n")
        names.flush()
        with subprocess.Popen([TOP, "--events", "--json", "--netns", net.rtr, "--names", names.name], text=True,
                              stdout=subprocess.PIPE) as process:
            time.sleep(1)
            net.traffic(4, Stream("c", ecn=NOT_ECT, bps=60e6))
            q.until_idle()
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            events = [json.loads(line) for line in process.communicate()[0].splitlines()]
        expect(len(events) >= 2 and events[0]["name"] == "Alice", f"events: {events}")
        conforms("dualpi2-top-events", *events, {"lost": True})


@test("tc -s -j", "docs/schema")
def json_of_tc_conforms_to_its_schema():
    net = shared_net()
    for options in ("", "bypass no_l4s no_split_gso", "bandwidth 10mbit docsis ingress nqb 45,46",
                    "bandwidth 10mbit step_thresh 5p overflow drop_enqueue any_ect random no_nqb p_cmax 20%",
                    "bandwidth 10mbit qprotect"):
        tc(f"qdisc add dev down root handle 10: dualpi2 {options}", net.rtr)
        try:
            conforms("tc-dualpi2", tc_stats(net.rtr, "down"))
            if options == "bandwidth 10mbit qprotect":
                net.traffic(3, Stream("c", ecn=NOT_ECT, bps=60e6), Stream("l", ecn=ECT1, bps=3e6))
                time.sleep(2)
                shown = tc_stats(net.rtr, "down")
                conforms("tc-dualpi2", shown)
                expect(shown["overload-count"] and shown["l4s"]["delay"]["buckets"], f"no load: {shown}")
                keys = {"kind", "handle", "options", "dev", *shown}
                documented = set(schema.load(f"{ROOT}/docs/schema/tc-dualpi2.schema.json")["properties"])
                expect_equal(sorted(documented - keys), ["parent", "qprotect-flows"],
                             "keys that a loaded root qdisc lacks")
        finally:
            tc("qdisc del dev down root", net.rtr)


@test("dualpi2-top(8)")
def examples_of_the_manual_run_as_they_are_printed():
    [setup, *blocks] = examples(f"{TOOLS}/share/dualpi2-top.8")
    expect("systemctl enable" in setup, setup)
    expect(len(blocks) >= 6, f"examples: {blocks}")
    path = os.environ["PATH"]
    with bottleneck() as (net, _), tempfile.TemporaryDirectory() as directory, in_netns(net.rtr):
        for block in blocks:
            # The devices of this network have other names.
            block = block.replace("eth0", "up")
            forever = "--events" in block
            done = subprocess.run(["timeout", "-s", "INT", "3" if forever else "60", "bash", "-euo", "pipefail", "-c",
                                   block], cwd=directory, text=True, capture_output=True, check=False,
                                  env={**os.environ, "PATH": f"{TOOLS}/bin:{path}"})
            note(f"{block} -> {done.returncode} {done.stdout[:300]}")
            expect_equal((done.returncode, done.stderr), (124 if forever else 0, ""), block)
            if "--filter bob" in block:
                expect("Bob" in done.stdout and len(done.stdout.splitlines()) == 2, done.stdout)
            elif "p99_ns" in block:
                expect_equal(done.stdout.split(), ["null", "null"], "P99 without traffic")
            elif "--sort p99" in block:
                expect_equal(len(done.stdout.splitlines()), 3, "lines")
        expect_equal(sorted(os.listdir(directory)), ["dualpi2.prom", "names", "overloads.json"])


if __name__ == "__main__":
    main(prepare=prepare)
