#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check needs=debug -- --short
# suite: long needs=plain
"""The lab as a whole: the experiment "smoke" in real machines, four minutes on two cores. KTAP on stdout.

usage: test_smoke.py [--short]     only six short runs and the tests that need no others, on the debug kernel; a minute

What the runs are held against is what must be so whatever an AQM does: what was counted outside of the queue is
what the qdisc counted, no ECN field changed but to CE, a busy link is full, the same seed is the same run. The papers'
figures are the report's business.
"""

import filecmp
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import measure
import numpy as np
import results
import runs
import store
from ktap import expect_equal as equal, main, test

MADE = os.path.join(runs.BUILD, "check", "lab")
AGAIN = MADE + "-again"
CAPTURE_HEAD_BYTES, CAPTURED = 24, struct.Struct("=IIII")
KEPT = ("summary.json", "seconds.csv", "histogram.csv")
SHORT = "--short" in sys.argv[1:]
SHORT_RUNS = {"two-flows": ("dualpi2", "dualpi2-in-tree", "pfifo"), "udp": ("dualpi2", "dualpi2-time-shift"),
              "values": ("vdq_csaqm",)}
RUN = ("run", "smoke", *(("--seconds", "5") if SHORT else ()))


def lab(*words, root=runs.ROOT):
    """Run the lab's command line; its words go to stderr, its exit code comes back."""
    return subprocess.run([sys.executable, os.path.join(root, "selftests", "lab", "lab.py"), *words], stdout=sys.stderr,
                          env=os.environ | ({"DUALPI2_LAB_KERNEL": "debug"} if SHORT else {}), check=False).returncode


def made(directory=MADE):
    """{(case, aqm): (directory, result)} of the finished runs."""
    return {(run.case, run.aqm): (run.directory, results.Result(run.directory, run.meta))
            for run in store.Store(directory).runs()}


def read(path, name):
    with open(os.path.join(path, name), encoding="utf-8") as file:
        return json.load(file)


def read_bytes(path, name):
    with open(os.path.join(path, name), "rb") as file:
        return file.read()


def test_of_all_runs(function):
    """A test that needs more than the short runs."""
    return function if SHORT else test(function)


@test
def every_run_of_every_aqm_and_load_ends_well():
    if SHORT:
        for case, aqms in SHORT_RUNS.items():
            for aqm in aqms:
                equal(lab(*RUN, "--case", case, "--aqm", aqm, "--results", MADE), 0, f"{case}, {aqm}")
        equal(set(made()), {(case, aqm) for case, aqms in SHORT_RUNS.items() for aqm in aqms})
        return
    equal(lab(*RUN, "--results", MADE), 0, "exit code")
    found = made()
    assert {"dualpi2", "dualpi2-in-tree", "pie", "fq_codel", "fq_codel-l4s", "codel", "cake", "fq", "pfifo", "pi2",
            "step", "csaqm", "vdq_csaqm"} <= {aqm for _, aqm in found}, sorted(found)


@test
def packets_counted_outside_are_those_that_the_qdisc_counted():
    """But for the few at either edge: the qdisc is asked some packets before or after the second ends."""
    for name, (path, _) in made().items():
        run, summary = read(path, "run.json"), read(path, "summary.json")["all"]
        sent = run["after"]["packets"] - run["before"]["packets"]
        assert abs(sent - summary["packets"]) <= 3, f"{name}: {sent} sent by the qdisc, {summary['packets']} seen"
        dropped = run["after"]["drops"] - run["before"]["drops"]
        # A packet is missing from when it came; it is dropped when its turn comes, behind those that are queued.
        queued = max(run["before"]["qlen"], run["after"]["qlen"])
        assert abs(dropped - summary["dropped"]) <= 3 + queued, \
            f"{name}: {dropped} dropped, {summary['dropped']} missing, {queued} queued"


@test
def delays_that_the_qdisc_tells_are_those_seen():
    """Percentiles within one bucket under any load, mean and maximum as they are."""
    for name, (path, _) in made().items():
        if name[1] != "dualpi2":
            continue
        own = read(path, "summary.json")["own"]
        equal(set(own), {"l4s", "classic"}, str(name))
        for queue, spans in own.items():
            equal(set(spans), {"measured", "since_start"}, f"{name}, {queue}")
            for span, found in spans.items():
                packets = found["packets"]
                assert abs(packets["own"] - packets["seen"]) <= 3, f"{name}, {queue}, {span}: {packets}"
                for level in ("p50", "p90", "p99", "p99_9"):
                    one = found[level]
                    assert abs(one["own_ms"] - one["seen_ms"]) <= one["to_ms"] - one["from_ms"], \
                        f"{name}, {queue}, {span}: {level} {one}"
                mean = found["mean"]
                assert abs(mean["own_ms"] / mean["seen_ms"] - 1) < 0.001, f"{name}, {queue}, {span}: mean {mean}"
            greatest = spans["since_start"]["max"]
            assert abs(greatest["own_ms"] - greatest["seen_ms"]) < 1e-6, f"{name}, {queue}: max {greatest}"
    # The figures that a user reads, on the link that most tests have.
    for queue, spans in read(made()["two-flows", "dualpi2"][0], "summary.json")["own"].items():
        p99 = spans["since_start"]["p99"]
        assert abs(p99["own_ms"] / p99["seen_ms"] - 1) <= 0.06, f"{queue}: P99 {p99}"


@test
def no_ecn_field_changes_but_to_ce():
    for name, (path, _) in made().items():
        equal(read(path, "summary.json")["all"]["rewritten_wrongly"], 0, str(name))


@test
def an_l4s_flow_waits_less_than_a_classic_one_and_the_link_is_full():
    for aqm in ("dualpi2", "dualpi2-in-tree"):
        result = made()["two-flows", aqm][1]
        low, classic = result.of("A", "delay_ms"), result.of("B", "delay_ms")
        assert low < classic / 5, f"{aqm}: {low} and {classic} ms"
        assert result.figure("all", "utilization_pct") > 99, aqm
    # A tail-drop queue is the same for all.
    result = made()["two-flows", "pfifo"][1]
    assert result.of("A", "delay_ms") > 10, result.of("A", "delay_ms")


@test
def in_a_time_shifted_fifo_classic_waits_longer_by_the_shift():
    """Behind more L4S packets than the link takes, which the round robin shares with Classic."""
    delay = {aqm: made()["udp", aqm][1].figure("B", "delay_ms", "p99") for aqm in SHORT_RUNS["udp"]}
    shift = runs.TIME_SHIFT_US / 1000
    assert delay["dualpi2"] < shift / 2 and 0.8 * shift < delay["dualpi2-time-shift"] < 1.5 * shift, delay


@test
def packets_have_the_value_of_their_class_and_the_queue_reads_it():
    path, result = made()["values", "vdq_csaqm"]
    after = read(path, "run.json")["after"]
    child = after["child"]
    equal((child["kind"], child["l4s"]["no-value"], child["classic"]["no-value"]), ("vdq_csaqm", 0, 0))
    assert child["l4s"]["marked"] > 100 and child["classic"]["dropped-value"] > 0, child
    assert after["valued"] >= after["packets"] > 10000, after
    # Of two flows that are alike but for their class, Gold is to have more; how much more is the report's business.
    assert result.of("A", "mbit") > 1.3 * result.of("B", "mbit"), (result.of("A", "mbit"), result.of("B", "mbit"))
    assert result.figure("all", "utilization_pct") > 90, result.figure("all", "utilization_pct")


@test
def tcp_info_fits_what_was_seen_of_the_packets():
    """Smoothed RTT against base RTT and delay, goodput against the rate, without headers."""
    seen = 0
    for name, (_, result) in made().items():
        for group in result.groups("tcp"):
            own, where = result.summary["groups"][group["name"]], f"{name}, {group['name']}"
            # A sample a second of an RTT that rises and falls. An ACK in a burst of others, or of an aggregate, comes
            # later than its packet left.
            share = own["srtt_ms"] / (group["rtt_ms"] + own["delay_ms"]["mean"])
            assert 0.8 < share < 2, f"{where}: smoothed RTT {own['srtt_ms']} ms, {share} of what was seen"
            # 1448 bytes of 1514, less with the options of Accurate ECN; some packets are on their way at either end.
            share, edge = own["goodput_mbit"] / own["mbit"]["mean"], 10 / own["packets"]
            assert 0.945 - edge < share < 0.96 + edge, f"{where}: goodput {own['goodput_mbit']} Mbit/s, {share} of " \
                "what was seen"
            seconds = result.seconds(group["name"], "cwnd_packets")
            assert len(seconds) >= own["active_seconds"] and own["cwnd_packets"] >= 1, f"{where}: {seconds}"
            seen += 1
    assert seen >= 2 * len(SHORT_RUNS["two-flows"]), seen
    own = made()["two-flows", "dualpi2"][1].summary["groups"]["A"]
    window = own["mbit_per_flow"] * 1e3 / 8 * own["srtt_ms"] / 1514
    assert abs(own["cwnd_packets"] / window - 1) < 0.1, f"{own['cwnd_packets']} packets, {window} by rate and RTT"


@test_of_all_runs
def prague_is_an_l4s_sender_by_itself():
    path, result = made()["prague", "dualpi2"]
    prague = read(path, "summary.json")["groups"]["A"]
    equal(prague["ecn_packets"], prague["packets"], "packets with ECT or CE")
    assert prague["packets"] > 10000 and prague["marked"] > 100, prague
    assert result.of("A", "delay_ms") < 0.5 and result.figure("all", "utilization_pct") > 99, prague
    assert 0.4 < result.of("A", "mbit") / result.of("B", "mbit") < 2.5, result.of("A", "mbit")


@test_of_all_runs
def a_sender_without_pacing_has_bursts():
    paced, unpaced = (made()[case, "dualpi2"][1].of("A", "delay_ms", "p99") for case in ("two-flows", "dctcp-unpaced"))
    assert unpaced > 1.15 * paced, f"P99 {unpaced} ms without pacing, {paced} ms with it"


@test_of_all_runs
def a_parameter_of_prague_has_its_effect():
    """Without RTT independence a flow of 10 ms gains on CUBIC."""
    with_, without = (made()[case, "dualpi2"][1].rate_ratio() for case in ("prague", "prague-rtt0"))
    assert without > 1.5 * with_, f"rate A : B {without} without RTT independence, {with_} with it"


@test_of_all_runs
def every_web_object_arrives_and_none_faster_than_light():
    path, _ = made()["web", "dualpi2"]
    with open(os.path.join(path, "web.csv"), encoding="ascii") as file:
        objects = [line.strip().split(",") for line in list(file)[1:]]
    last = max(float(start) for _, start, _, _ in objects)
    # Those of the end may still be on their way.
    late = [start for _, start, _, took in objects if not took and float(start) < last - 2]
    assert len(objects) > 1000 and not late, f"{len(objects)} objects, without an end: {late[:5]}"
    least = min(float(took) for *_, took in objects if took)
    # The base RTT, less half a packet's time of jitter.
    assert least >= 0.00984, f"{least} s with a base RTT of 10 ms"


@test_of_all_runs
def a_link_that_slows_down_is_seen_to():
    """Whether htb or the qdisc itself has the rate."""
    found = [name for name in made() if name[0] == "changes"]
    equal({aqm for _, aqm in found}, {"dualpi2", "dualpi2-shaper", "cake-shaper", "vdq_csaqm"})
    for name in found:
        with open(os.path.join(made()[name][0], "seconds.csv"), encoding="ascii") as file:
            rows = [line.split(",") for line in list(file)[1:]]
        mbit = {int(row[0]): float(row[3]) for row in rows if row[1] == "all"}
        # How soon the senders use all of it again is theirs and the AQM's.
        assert mbit[8] > 35 and mbit[12] < 10.1 and max(mbit[s] for s in range(16, 20)) > 35, f"{name}: {mbit}"


@test_of_all_runs
def aggregates_arrive_back_to_back_and_the_other_flow_does_not():
    summary = read(made()["aggregates", "dualpi2"][0], "summary.json")
    found = summary["groups"]["A"]["aggregates"]
    assert found["count"] > 1000 and found["packets"]["mean"] > 3, found
    assert found["long_ms"]["max"] < 0.001 and found["apart_ms"]["p1"] >= 4, found
    equal("aggregates" in summary["groups"]["B"], False)


def copy_the_repository(copy):
    """One that differs in what must not matter: fewer files built, more files beside them."""
    def left_out(directory, names):
        if directory == runs.BUILD:
            return set(names) - {"net", "tc", "in-lab"}
        return {".git", "__pycache__"} & set(names)

    shutil.copytree(runs.ROOT, copy, symlinks=True, ignore=left_out)
    for n in range(500):
        with open(os.path.join(copy, "docs", f"note-{n}"), "w", encoding="ascii") as file:
            file.write(f"{n}\n" * n)


@test
def the_same_seed_makes_the_same_run_to_the_bit_and_another_another():
    """The same run also with a capture."""
    shutil.rmtree(AGAIN, ignore_errors=True)
    for case in ("two-flows",) if SHORT else ("two-flows", "web"):
        equal(lab(*RUN, "--case", case, "--aqm", "dualpi2", "--results", AGAIN, "--seeds", "2", "--keep-raw"), 0, case)
        first, same = (os.path.join(d, "smoke", case, "dualpi2", "dctcp", "seed-1") for d in (MADE, AGAIN))
        equal(read(same, "meta.json")["sightings_sha256"], read(first, "meta.json")["sightings_sha256"], case)
        for file in (*KEPT, *(["web.csv"] if case == "web" else [])):
            assert filecmp.cmp(os.path.join(first, file), os.path.join(same, file), False), f"{case}: {file} differs"
        other = os.path.join(AGAIN, "smoke", case, "dualpi2", "dctcp", "seed-2")
        assert not filecmp.cmp(os.path.join(first, "histogram.csv"), os.path.join(other, "histogram.csv"), False), case


@test_of_all_runs
def a_run_from_other_paths_is_the_same_to_the_bit():
    """And beside other files. In a machine /tmp is another file system, so that a path there needs more work."""
    run = "smoke/two-flows/dualpi2/dctcp/seed-1"
    first = read(os.path.join(MADE, run), "meta.json")["sightings_sha256"]
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="dualpi2-lab-") as top:
        root = os.path.join(top, "copied")
        copy_the_repository(root)
        for n in range(4):
            moved = os.path.join(top, *("a", "longer", "path") * n, "moved", "repository")
            os.renames(root, moved)
            root, results = moved, os.path.join(moved, "results")
            equal(lab("run", "smoke", "--case", "two-flows", "--aqm", "dualpi2", "--results", results, root=root), 0,
                  root)
            equal(read(os.path.join(results, run), "meta.json")["sightings_sha256"], first, root)
            shutil.rmtree(results)


@test
def the_capture_has_the_packets_of_the_first_5_seconds():
    """Those behind the qdisc are what was seen there, with their ECN fields; ACKs beside them."""
    run = os.path.join(AGAIN, "smoke", "two-flows", "dualpi2", "dctcp", "seed-1")
    data, at, times, found = read_bytes(run, "capture.pcap"), CAPTURE_HEAD_BYTES, [], []
    while at < len(data):
        sec, nsec, captured, size = CAPTURED.unpack_from(data, at)
        frame = data[at + CAPTURED.size:at + CAPTURED.size + captured]
        at += CAPTURED.size + captured
        times.append(sec * 10**9 + nsec)
        found.append((times[-1], int.from_bytes(frame[26:30], "big"), size, frame[15] & 3))
    equal(at, len(data), "end of the last packet")
    assert times == sorted(times) and 4.9e9 < times[-1] - times[0] < 5e9, times[-1] - times[0]
    seen = np.frombuffer(read_bytes(run, "sightings"), measure.SIGHTING)
    seen = seen[(seen["outgoing"] == 1) & (seen["ns"] <= times[-1])]
    sent = [packet for packet in found if packet[1] >> 16 == 0x0a08]
    equal(len(sent), len(seen), "packets sent")
    for packet, sight in zip(sent, seen, strict=True):
        equal(packet, tuple(int(sight[key]) for key in ("ns", "saddr", "bytes", "ecn")))
    assert len(found) > len(sent) * 1.2, f"{len(found)} packets, of which {len(sent)} were sent: no ACKs"


@test
def the_report_of_them_is_written():
    out = MADE + "-report"
    shutil.rmtree(out, ignore_errors=True)
    equal(lab("report", "--results", MADE, "--out", out), 0)
    assert os.path.getsize(os.path.join(out, "report.md")) > 1000


if __name__ == "__main__":
    sys.argv[1:] = [word for word in sys.argv[1:] if word != "--short"]
    for directory in (MADE, AGAIN):
        shutil.rmtree(directory, ignore_errors=True)
    main()
