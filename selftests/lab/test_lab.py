#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check
"""Tests of the lab's host side: runner, results, planner, comparison, companions. KTAP on stdout, about 15 s.

No machine is booted, see mock_machine.py. What happens in a machine is not tested here.
"""

import contextlib
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "lib"))

from mock_machine import LAST_RESORT_S, SMOKE, WORK, Place, holds, main, until  # noqa: E402

import dumbbell  # noqa: E402
import lab       # noqa: E402  (it reads the environment)
import runs      # noqa: E402
import scenario  # noqa: E402
import store     # noqa: E402
from ktap import expect_equal as equal, test  # noqa: E402


# Runner

@test
def run_again_goes_on_where_it_stopped():
    place = Place()
    code, out, _ = place.lab(*SMOKE, "--case", "two-*", do={"two-rtts-bbr": "fail"})
    equal((code, place.finished()), (1, ["two-flows", "two-rtts-ecn-cubic", "two-rtts-reno"]))
    machines = len(place.pids())
    code, out, _ = place.lab(*SMOKE, "--case", "two-*")
    holds(out, "3 of 4 runs are finished", "1 runs finished, 0 failed")
    equal((code, len(place.pids()), len(place.finished())), (0, machines + 2, 4))
    code, out, _ = place.lab(*SMOKE, "--case", "two-*")
    holds(out, "nothing to run")
    equal((code, len(place.pids())), (0, machines + 2))


@test
def run_leaves_what_it_was_made_of():
    place = Place()
    equal(place.lab(*SMOKE, "--case", "udp", "--seeds", "2-2")[0], 0)
    (*path, directory, meta), = place.store.runs()
    equal(path, ["smoke", "udp", "dualpi2", "dctcp", 2])
    equal(sorted(os.listdir(directory)),
          ["histogram.csv", "job.json", "log", "meta.json", "run.json", "seconds.csv", "summary.json"])
    holds(meta["command"], "scripts/lab.sh run smoke --case udp --aqm dualpi2 --seeds 2-2 --results build/lab/again")
    equal(meta["sightings_sha256"], hashlib.sha256(b"{}").hexdigest())
    equal((meta["format"], meta["seed"], meta["made_of"]["job"]["rate"]), (2, 2, "40mbit"))
    holds(meta["tc"], "tc qdisc add", "dualpi2 limit 40000")


@test
def run_of_something_else_is_stale():
    place = Place()
    equal(place.lab(*SMOKE, "--case", "udp")[0], 0)
    (*_, directory, meta), = place.store.runs()
    made_of = meta["made_of"]
    equal(lab.stale_because(meta, made_of), [])
    for key in ("kernel", "module", "method"):
        equal(lab.stale_because(meta, made_of | {key: "x"}), [key])
    store.write_json(os.path.join(directory, "meta.json"), meta | {
        "made_of": made_of | {"kernel": "6.1", "job": made_of["job"] | {"qdisc": "dualpi2 limit 3"}}})
    code, out, _ = place.lab(*SMOKE, "--case", "udp")
    holds(out, "1 finished with another kernel, qdisc, run again: smoke/udp/dualpi2/dctcp/seed-1")
    equal((code, place.store.runs()[0].meta["made_of"]), (0, made_of))


@test
def run_keeps_sightings_if_asked():
    place = Place()
    equal(place.lab(*SMOKE, "--case", "udp")[0], 0)
    raw = os.path.join(place.store.runs()[0].directory, "sightings")
    assert not os.path.exists(raw)
    code, out, _ = place.lab(*SMOKE, "--case", "udp", "--keep-raw")
    holds(out, "--keep-raw")
    assert code == 0 and os.path.exists(raw)
    holds(place.store.runs()[0].meta["command"], "--seeds 1-1 --keep-raw --results build/lab/again")


@test
def run_killed_while_it_is_replaced_is_brought_back():
    place = Place()
    equal(place.lab(*SMOKE, "--case", "udp")[0], 0)
    (*_, directory, _), = place.store.runs()
    os.rename(directory, os.path.join(place.store.partial, "smoke+udp+dualpi2+dctcp+seed-1.old"))
    equal(place.finished(), [])
    holds(place.lab(*SMOKE, "--case", "udp")[1], "nothing to run")
    equal(place.finished(), ["udp"])


@test
def method_is_all_that_makes_the_figures():
    bench, (one,) = runs.Bench(), scenario.Experiment("smoke").jobs(["pie"], "udp")
    before = bench.made_of(one)["method"]
    memory, method = runs.MACHINE_MEMORY, runs.METHOD
    try:
        runs.MACHINE_MEMORY = "4G"
        assert bench.made_of(one)["method"] != before
        runs.MACHINE_MEMORY = memory
        for file in method:
            assert os.path.exists(os.path.join(runs.ROOT, file)), file
            runs.METHOD = tuple(f for f in method if f != file)
            assert bench.made_of(one)["method"] != before, file
    finally:
        runs.MACHINE_MEMORY, runs.METHOD = memory, method


@test
def method_is_of_what_programs_execute():
    text = "def f():\n    return 1\n"
    equal(runs.executed('"""Doc."""\ndef f():\n    """Doc."""\n    return 1  # why\n'), runs.executed(text))
    assert runs.executed(text.replace("1", "2")) != runs.executed(text)
    assert runs.executed(text + "'text'\n") != runs.executed(text)


def interrupted(number):
    """Send a signal to a run of three, when one is finished and two hang."""
    place = Place()
    process = place.start(*SMOKE, "--case", "two-rtts-*", do={"two-rtts-bbr": "hang", "two-rtts-ecn-cubic": "hang"})
    until(lambda: place.finished() and len(place.alive()) == 2)
    process.send_signal(number)
    return place, process


@test
def run_interrupted_stops_the_machines_and_keeps_what_is_finished():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        place, process = interrupted(number)
        _, err = process.communicate(timeout=LAST_RESORT_S)
        holds(err, "interrupted")
        equal((process.returncode, place.alive(), place.finished()), (130, [], ["two-rtts-reno"]))
        equal(os.listdir(place.store.partial), [])
    code, out, _ = place.lab(*SMOKE, "--case", "two-rtts-*")
    holds(out, "1 of 3 runs are finished")
    equal((code, len(place.finished())), (0, 3))


@test
def run_killed_takes_its_machines_with_it():
    place, process = interrupted(signal.SIGKILL)
    process.communicate(timeout=LAST_RESORT_S)
    until(lambda: not place.alive())
    equal(place.finished(), ["two-rtts-reno"])
    # What it left half done is cleared away, not taken for finished.
    assert os.listdir(place.store.partial)
    code, out, _ = place.lab(*SMOKE, "--case", "two-rtts-*")
    holds(out, "1 of 3 runs are finished")
    equal((code, len(place.finished()), os.listdir(place.store.partial)), (0, 3, []))


@test
def run_that_fails_is_reported_and_the_others_go_on():
    place = Place()
    do = {"two-flows": "fail", "udp": "die", "web": "silent", "changes": "bad data", "two-rtts-reno": "limit"}
    code, out, err = place.lab(*SMOKE, do=do)
    equal((code, place.finished()), (1, ["aggregates", "dctcp-unpaced", "prague", "prague-rtt0", "two-rtts-bbr",
                                       "two-rtts-ecn-cubic", "values"]))
    holds(out, "7 runs finished, 5 failed",
          "smoke/two-flows/dualpi2/dctcp/seed-1: machine failed with code 1: dumbbell: no such qdisc",
          "smoke/udp/dualpi2/dctcp/seed-1: machine failed with code -9",
          "smoke/web/dualpi2/dctcp/seed-1: left no summary.json",
          "smoke/changes/dualpi2/dctcp/seed-1: evaluation failed with code 1: measure: no packet",
          "smoke/two-rtts-reno/dualpi2/dctcp/seed-1: the machine took more than")
    holds(err, "FAILED", "smoke+two-flows+dualpi2+dctcp+seed-1.log")
    equal(len(os.listdir(place.store.failed)), 5)
    equal(os.listdir(place.store.partial), [])


@test
def run_that_hangs_is_killed():
    place = Place()
    os.environ |= {"FAKE_DIR": place.directory, "FAKE_DO": '{"udp": "deaf"}'}
    grace, runs.GRACE_S = runs.GRACE_S, 0
    patience, runs.STOP_S = runs.STOP_S, 1
    try:
        place.store.lock()
        job, = scenario.Experiment("smoke").jobs(["dualpi2"], "udp")
        run = runs.JobRun(job, runs.Bench(), place.store, 1)
        with contextlib.redirect_stderr(io.StringIO()):
            runs.run_all([run], run.bench.built, 1)
        holds(run.failure, "took more than 1 s and was stopped")
        equal((place.alive(), place.finished()), ([], []))
    finally:
        runs.GRACE_S, runs.STOP_S = grace, patience


@test
def two_runs_on_one_directory_are_kept_apart():
    place, process = interrupted(0)
    code, _, err = place.lab(*SMOKE, "--case", "udp")
    process.terminate()
    process.communicate(timeout=LAST_RESORT_S)
    equal((code, err.count("\n")), (1, 1))
    holds(err, "another lab run is at work", "--results")


@test
def results_of_another_format_are_refused():
    place = Place()
    equal(place.lab(*SMOKE, "--case", "udp")[0], 0)
    path = os.path.join(place.store.runs()[0].directory, "meta.json")
    store.write_json(path, {"format": 0})
    for command in (SMOKE, ("compare", "dualpi2", "pie"), ("report",), ("list",)):
        code, _, err = place.lab(*command)
        equal((code, err.count("\n")), (1, 1))
        holds(err, "has format 0, this lab reads 2", "move")
    with open(path, "w", encoding="ascii") as file:
        file.write("{")
    code, _, err = place.lab("compare", "dualpi2", "pie")
    holds(err, path, "cannot be read")
    equal(code, 1)


@test
def no_disk_or_memory_is_said_before():
    jobs = scenario.Experiment("fig6").jobs()
    equal(list(runs.obstacles(jobs[:1], 1, WORK, False)), [])
    real, store.free_bytes = store.free_bytes, lambda path: 100e6
    try:
        found = list(runs.obstacles(jobs, 2, "/nowhere", False))
    finally:
        store.free_bytes = real
    equal(len(found), 2)
    holds(found[0], "only 0.1 GB free in /nowhere", "--results")
    # A machine to start, and beside it another one with what it has seen.
    holds(found[1], "0.1 GiB free in /dev/shm, 2 runs at a time need 3.", "--jobs")
    text = io.StringIO()
    store.free_bytes = lambda path: 100e6
    try:
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(io.StringIO()):
            code = lab.main([*SMOKE, "--case", "udp", "--results", Place().results])
    finally:
        store.free_bytes = real
    equal((code, text.getvalue().count("lab: only")), (1, 2), text.getvalue())
    # With raw data kept, all of them count.
    store.free_bytes = lambda path: 4e9
    try:
        equal([len(list(runs.obstacles(jobs, 1, "/nowhere", keep))) for keep in (False, True)], [0, 1])
    finally:
        store.free_bytes = real


@test
def other_programs_run_all_ends_at_the_first_failure():
    place = Place()
    os.makedirs(os.path.join(place.directory, "lab"))
    os.environ |= {"FAKE_DIR": place.directory}
    build, runs.BUILD = runs.BUILD, place.directory
    try:
        one = runs.Run("x", aqm="pie", seconds=3)
        store.write_json(os.path.join(one.out, "job.json"), {"case": "udp"})
        os.environ["FAKE_DO"] = '{"udp": ""}'
        with contextlib.redirect_stderr(io.StringIO()):
            runs.run_all([one], ("m.ko", "tc", "meter"))
        holds(" ".join(one.process.args), "--virtual-time --kernel 6.1", "--aqm pie --seconds 3", "--module m.ko")
        os.environ["FAKE_DO"] = '{"udp": "fail"}'
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                runs.run_all([one], ("m.ko", "tc", "meter"))
        except SystemExit as error:
            holds(error.code, "x: failed with code 1", "no such qdisc")
        else:
            raise AssertionError("taken for good")
    finally:
        runs.BUILD = build


# The companions

def commands(job, changes=()):
    """What a machine is told for a job's bottleneck and changes of its rate, and what it says it was told."""
    told = []
    kept = {name: getattr(dumbbell, name) for name in ("in_ns", "run")}
    done = subprocess.CompletedProcess("", 0, "", "")
    real_run = subprocess.run
    try:
        for name in kept:
            setattr(dumbbell, name, lambda *words: told.append(words[-1]))
        subprocess.run = lambda command, **_: told.append(command.removeprefix("ip netns exec rtr ")) or done
        said = dumbbell.build_bottleneck(job, "tc")
        for rate in changes:
            dumbbell.set_rate(job, rate, "tc")
    finally:
        subprocess.run = real_run
        for name, function in kept.items():
            setattr(dumbbell, name, function)
    return told, said


@test
def companions_stand_as_the_job_says():
    job, = scenario.Experiment("vdq-policy").jobs(["vdq_csaqm"], "2-each")
    told, said = commands(job, ["20mbit"])
    add = "tc qdisc add dev to_rcv"
    equal(told, [
        f"{add} root handle 10: ppv", f"{add} parent 10:1 handle 20: vdq_csaqm bandwidth 1gbit",
        *(f"tc filter add dev to_rcv parent 10: protocol ip u32 match ip src 10.8.{net}.0/24 flowid 10:{number}"
          for net, number in ((1, 1), (2, 2), (3, 1), (4, 2))),
        "tc qdisc change dev to_rcv parent 10:1 handle 20: vdq_csaqm bandwidth 20mbit"])
    equal(said, f"{add} root handle 10: ppv; {add} parent 10:1 handle 20: vdq_csaqm bandwidth 1gbit")
    equal("; ".join(runs.tc_lines(job)), said)
    # One alone is below htb, which has the rate.
    job, = scenario.Experiment("pi2-fig12").jobs(["pi2"])
    told, said = commands(job, ["20mbit"])
    equal([line.split()[:3] for line in told], [["tc", "qdisc", "add"], ["tc", "class", "add"], ["tc", "qdisc", "add"],
                                                ["tc", "class", "change"]])
    holds(told[-1], "htb rate 20mbit ceil 20mbit")
    holds(said, f"{add} parent 1:10 handle 10: pi2 limit 40000")
    equal("; ".join(runs.tc_lines(job)), said)


@test
def companions_modules_are_loaded_in_order_or_missed():
    directory = tempfile.mkdtemp(dir=WORK)
    job, = scenario.Experiment("vdq-equal").jobs(["vdq_csaqm"], "A1-B1")
    told, kept = [], dumbbell.run
    try:
        dumbbell.run = told.append
        for name in ("ppv", "csaqm"):
            try:
                dumbbell.load_module(job, {}, directory)
            except SystemExit as error:
                holds(str(error), f"wants the module {name}", f"sch_{name}.ko")
            else:
                raise AssertionError("loaded what is not there")
            with open(os.path.join(directory, f"sch_{name}.ko"), "w", encoding="ascii"):
                pass
        told.clear()
        dumbbell.load_module(job, {}, directory)
    finally:
        dumbbell.run = kept
    equal(told, [f"insmod {directory}/sch_{name}.ko" for name in ("ppv", "csaqm")])


@test
def companions_statistics_have_those_of_the_child():
    kept = dumbbell.in_ns
    try:
        dumbbell.in_ns = lambda *_: json.dumps([{"kind": "ppv", "handle": "10:", "packets": 3},
                                               {"kind": "vdq_csaqm", "handle": "20:", "packets": 2}])
        equal(dumbbell.queue_stats("tc"), {"kind": "ppv", "handle": "10:", "packets": 3, "child": {
            "kind": "vdq_csaqm", "handle": "20:", "packets": 2}})
        dumbbell.in_ns = lambda *_: json.dumps([{"kind": "htb", "handle": "1:"}, {"kind": "pi2", "handle": "10:"}])
        equal(dumbbell.queue_stats("tc"), {"kind": "pi2", "handle": "10:"})
    finally:
        dumbbell.in_ns = kept


@test
def run_of_companions_depends_on_their_modules():
    place = Place()
    os.environ |= {"FAKE_DIR": place.directory, "FAKE_DO": "{}"}
    place.store.lock()
    bench = runs.Bench(True)
    own, = scenario.Experiment("vdq-rtt").jobs(["dualpi2"], "1-each")
    job, = scenario.Experiment("vdq-rtt").jobs(["vdq_csaqm"], "1-each")
    for one in (own, job):
        run = runs.JobRun(one, bench, place.store, 60)
        run.start(bench.built)
        run.process.wait()
        holds(" ".join(run.process.args), os.path.join(runs.LAB, "dumbbell.py"))
        equal("--companions" in run.process.args, one is job)
        run.stop()
    # What is of the companions is no reason to repeat a run without them.
    made = bench.made_of(own)
    bench.companions = dict.fromkeys(bench.companions, "other")
    equal(bench.made_of(own), made)
    equal(bench.made_of(job)["module"], "ppv other csaqm other")
    equal(bench.made_of(own)["module"], "none")


# Senders

@test
def senders_without_pacing_bypass_fq():
    told, kept = [], dumbbell.in_ns
    try:
        dumbbell.in_ns = lambda name, command: told.append(f"{name}: {command}")
        for case, l4s in (("A50-B10", None), ("A50-B10", "dctcp-unpaced")):
            job, = scenario.Experiment("vdq-equal", l4s_cc=l4s).jobs(["dualpi2"], case)
            dumbbell.build_pacing(job)
    finally:
        dumbbell.in_ns = kept
    add, fq = "snd: tc qdisc add dev to_rtr", "fq limit 100000 flow_limit 100000 quantum 1514 initial_quantum 1514"
    equal(told, [
        f"{add} root handle 1: {fq}",
        f"{add} root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
        f"{add} parent 1:1 handle 2: {fq}", f"{add} parent 1:2 handle 3: pfifo limit 100000",
        "snd: tc filter add dev to_rtr parent 1: protocol ip u32 match ip src 10.8.1.0/24 flowid 1:2"])


@test
def senders_set_the_parameters_of_their_module():
    directory = tempfile.mkdtemp(dir=WORK)
    for name in ("late_cut", "rtt_virt_us"):
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write("?")
    dumbbell.set_parameters({"late_cut": True, "rtt_virt_us": 1}, directory)

    def now():
        return [open(os.path.join(directory, name), encoding="ascii").read()  # noqa: SIM115
                for name in ("late_cut", "rtt_virt_us")]
    equal(now(), ["Y", "1"])
    dumbbell.set_parameters({"late_cut": False}, directory)
    equal(now(), ["N", "1"])
    # insmod ignores a parameter that a module does not have.
    for wanted, *parts in (({"late": True}, "no parameter 'late'", "late_cut, rtt_virt_us"),
                           ({"rtt_virt_us": 5}, "rejects rtt_virt_us = 5")):
        if "rtt_virt_us" in wanted:
            os.remove(os.path.join(directory, "rtt_virt_us"))
            os.mkdir(os.path.join(directory, "rtt_virt_us"))
        try:
            dumbbell.set_parameters(wanted, directory)
        except SystemExit as error:
            holds(str(error), *parts)
        else:
            raise AssertionError(f"{wanted} was set")


@test
def senders_load_their_module_with_its_parameters():
    told, kept = [], {name: getattr(dumbbell, name) for name in ("run", "set_parameters")}
    try:
        dumbbell.run = lambda command, _=True: told.append(command) or "prague cubic"
        dumbbell.set_parameters = told.append
        job, = scenario.Experiment("pi2-fig15", l4s_cc="prague-rtt0").jobs(["pi2"], "dctcp-40mbit-20ms")
        dumbbell.allow_congestion_control(job, __file__)
    finally:
        for name, function in kept.items():
            setattr(dumbbell, name, function)
    equal(told[:2], [f"insmod {__file__} classic_queue_us=0", {"rtt_virt_us": 0}])


# Planner

@test
def planner_counts_packets():
    job = {"rate": "100mbit", "warmup": 10, "seconds": 90, "groups": [], "changes": []}
    full = 100e6 / 8 / 1514 * 100
    equal(round(runs.packets(job)), round(full))
    equal(round(runs.packets(job | {"changes": [{"at": 50, "rate": "20mbit"}]})), round(full * 0.6))
    equal(round(runs.packets(job | {"changes": [{"at": 200, "rate": "20mbit"}]})), round(full))
    udp = [{"kind": "udp", "rate": "100mbit", "count": 2}]
    equal(round(runs.packets(job | {"groups": udp})), round(full * 2))
    web = runs.predicted_s(job | {"groups": [{"kind": "web", "per_second": 50}]})
    equal(round(web - runs.predicted_s(job), 6), 4)  # 5000 objects, 0.8 ms each


@test
def planner_learns():
    job = {"rate": "40mbit", "warmup": 0, "seconds": 100, "groups": [], "changes": []}
    fresh = runs.Planner()
    equal(fresh.seconds(job), runs.predicted_s(job))
    fresh.learn(10, 30)
    equal(fresh.seconds(job), 3 * runs.predicted_s(job))
    # Two at a time, but never less than the longest; one under way has a part behind it.
    one = fresh.seconds(job)
    equal(fresh.left([job] * 4, [], 2), 2 * one)
    equal(fresh.left([job], [], 2), one)
    equal(fresh.left([], [(job, one / 4, 0)], 2), 0.75 * one)
    equal(fresh.left([], [(job, 2 * one, 0)], 2), 0)
    # It is slower than the plan says.
    equal(fresh.left([], [(job, 2 * one, 0.5)], 2), 2 * one)
    equal(fresh.left([], [], 2), 0)


@test
def plan_runs_nothing():
    place = Place()
    code, out, _ = place.lab("run", "fig8", "--case", "A5-B5-cubic", "--aqm", "pie,dualpi2,*-in-tree", "--plan")
    holds(out, "fig8/A5-B5-cubic/pie/ecn-cubic/seed-1", "fig8/A5-B5-cubic/dualpi2/dctcp/seed-1", "dualpi2-in-tree",
          "3 runs, about ", "pie limit 40000")
    # Experiments without such a case are passed over.
    holds(place.lab("run", "fig*", "--case", "40mbit-10ms", "--plan")[1], "fig6/40mbit-10ms/pie", "fig9/40mbit-10ms")
    equal((code, place.pids(), os.path.exists(place.results)), (0, [], False))


# Comparison

def synthetic(place, aqm, seed, p99, mean, utilization, rates, case="c", method="m1"):
    """A finished run with these figures."""
    groups = [{"name": name, "kind": "tcp", "count": 2, "ecn": "off", "cc": "reno", "rtt_ms": 1}
              for name in "AB"[:len(rates)]]
    job = {"experiment": "fig8", "case": case, "aqm": aqm, "seed": seed, "groups": groups, "rate": "40mbit",
           "warmup": 1, "seconds": 5}
    os.makedirs(place.store.partial, exist_ok=True)
    out = place.store.begin(job)
    always = {"packets": 9, "dropped": 0, "window_bytes": 9, "delay_ms": {"p99": p99, "mean": mean}}
    store.write_json(os.path.join(out, "summary.json"), {
        "groups": {g["name"]: always | {"mbit": {"mean": rate}, "mbit_per_flow": rate / 2}
                   for g, rate in zip(groups, rates, strict=True)},
        "all": {"utilization_pct": {"mean": utilization}}})
    place.store.finish(job, out, {"predicted_seconds": 1, "wall_seconds": 1,
                                  "made_of": {"module": None, "method": method}})


@test
def compare_shows_the_mean_of_common_seeds():
    place = Place()
    synthetic(place, "dualpi2", 1, 1.0, 0.5, 99.5, (30, 10))
    synthetic(place, "dualpi2", 2, 2.0, 0.5, 98.5, (30, 10))
    synthetic(place, "dualpi2", 3, 9.0, 0.5, 98.5, (30, 10))
    synthetic(place, "pie", 1, 3.0, 2.0, 100, (20, 20))
    synthetic(place, "pie", 2, 3.0, 2.0, 100, (20, 20))
    synthetic(place, "dualpi2", 1, 4.0, 1, 99, (40,), case="alone")
    synthetic(place, "pie", 1, 1.0, 1, 98, (40,), case="alone", method="m2")
    synthetic(place, "pie", 1, 1.0, 1, 98, (40,), case="only-pie")
    code, out, _ = place.lab("compare", "dualpi2", "pie")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line[:2] == "| "]
    equal(code, 0)
    equal(rows[0], ["cell", "seeds", "A P99 ms", "", "ratio", "A mean ms", "", "ratio", "utilization %", "",
                    "rate A/B", ""])
    equal(rows[2:], [
        ["fig8/alone", "1", "4.000", "1.000", "4.00", "1.000", "1.000", "1.00", "99.00", "98.00", "-", "-"],
        ["fig8/c", "2", "1.500", "3.000", "0.50", "0.500", "2.000", "0.25", "99.00", "100.00", "3.00", "1.00"]])
    # sqrt(4 * 0.5)
    holds(out, "cells: 2; P99 ratio: geometric mean 1.414, 0.50 to 4.00", "A is the group named A")
    holds(out, "dualpi2: module none, method m1", "WARNING, not all made alike: fig8, pie: with module none, method m2 "
          "alone/reno/seed-1; with module none, method m1 c/reno/seed-1, c/reno/seed-2, only-pie/reno/seed-1")
    equal(out.count("WARNING"), 1)


@test
def compare_of_directories():
    left, right = Place(), Place()
    synthetic(left, "pie", 1, 1.0, 0.5, 99.5, (30, 10))
    synthetic(right, "pie", 1, 2.0, 0.5, 99.5, (30, 10))
    code, out, _ = left.lab("compare", left.results, right.results)
    holds(out, "fig8/c/pie/reno", "0.50")
    equal(code, 0)


# Bad input

@test
def bad_input_gets_one_line():
    place = Place()
    for code, args, *parts in (
            (2, ("run", "fig99"), "no experiment 'fig99'", "there are smoke"),
            (2, ("list", "fig99"), "no experiment 'fig99'"),
            (2, ("run", "smoke", "--case", "x"), "no case 'x' in smoke", "udp"),
            (2, ("run", "smoke", "--aqm", "red"), "no AQM 'red'", "dualpi2"),
            (2, ("run", "smoke", "--seeds", "0"), "'0' is neither"),
            (2, ("run", "smoke", "--seeds", "3-2"), "'3-2' is neither"),
            (2, ("run", "smoke", "--jobs", "0"), "'0' is no whole number"),
            (2, ("compare", "dualpi2", "red"), "no AQM or directory 'red'"),
            (1, ("compare", "dualpi2", "pie"), "no cell in common"),
            (1, ("report",), "no results in"),
            (1, ("companions",), "has no results"),
            (2, ("run",), "required"),
            (2, ("walk",), "invalid choice: 'walk'")):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            try:
                got = lab.main([*args, "--results", place.results])
            except SystemExit as end:
                got = end.code
        equal((args, got, err.getvalue().count("\n")), (args, code, 1))
        holds(err.getvalue(), *parts)
    equal(place.pids(), [])


@test
def short_runs_do_not_replace_long_ones():
    args = lab.parser().parse_args(["run", "smoke", "--seconds", "3"])
    equal(lab.directory_of(args), lab.RESULTS + "-3s")
    args = lab.parser().parse_args(["run", "smoke"])
    equal(lab.directory_of(args), lab.RESULTS)


if __name__ == "__main__":
    main()
