#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top lockdep=off
"""dualpi2-top on a kernel: errors, reports of overload, and metrics in the programs that read them."""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from lib_top_live import MIX, TOP, bottleneck, prepare, top, top_json
from installed import TOOLS
from lib import NOT_ECT, Failure, Stream, expect, expect_equal, in_netns, main, note, run, shared_net, stats, test


# Errors

@test("dualpi2-top, nothing there")
def nothing_here_is_a_sentence_and_code_1():
    net = shared_net()
    done = top(f"--netns {net.rtr} --once", check=False)
    expect_equal((done.returncode, done.stdout), (1, ""))
    expect("tc qdisc add dev" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = top("--device down --since-start --json", net.rtr, check=False)
    expect_equal((done.returncode, json.loads(done.stdout)["qdiscs"]), (1, []))
    expect("no dualpi2 on down; add one: tc qdisc add dev down root dualpi2" in done.stderr, done.stderr)


@test("dualpi2-top, no permission")
def nobody_may_look_and_is_told_what_is_root_s():
    with bottleneck() as (net, _):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", TOP]
        expect("down 10:" in run([*nobody, "--since-start"], net.rtr).stdout, "nobody sees nothing")
        done = run([*nobody, "--netns", net.rtr, "--since-start"], check=False)
        expect_equal((done.returncode, done.stdout), (1, ""))
        expect("run it as root" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        done = run([*nobody, "--prometheus", "--output", "/run/x.prom"], net.rtr, check=False)
        expect_equal(done.returncode, 1)
        expect("cannot write '/run/x.prom' (Permission denied)" in done.stderr, done.stderr)


# Reports of overload

@test("dualpi2-top --events", "RFC 9332 2.5.2.3")
def events_tell_of_an_overload():
    with bottleneck(overload_report=100000) as (net, q):
        with contextlib.ExitStack() as stack:
            def listen(args):
                process = stack.enter_context(subprocess.Popen([TOP, "--events", *args.split()], text=True,
                                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE))
                # It would go on for ever after a failure.
                stack.callback(process.kill)
                return process

            plain, lines, other = (listen(args) for args in (
                f"--netns {net.rtr}", f"--netns {net.rtr} --json", f"--netns {net.rtr} --json --device up"))
            time.sleep(1)
            net.traffic(6, Stream("c", ecn=NOT_ECT, bps=60e6))
            q.until_idle()
            time.sleep(3)
            info = q.stats()["overload_info"]
            note(f"overload: {info}")
            expect(info["reports"] >= 2 and info["count"] >= 1, "no overload")
            said = []
            for process in (plain, lines, other):
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate()
                expect_equal((process.returncode, err), (143, ""))
                said.append(out.splitlines())
        for line in said[0]:
            note(line)
        events = [json.loads(line) for line in said[1]]
        expect_equal((len(said[0]), len(events), said[2]), (info["reports"], info["reports"], []), "reports")
        expect_equal((events[0]["event"], events[-1]["event"]), ("begin", "end"))
        expect_equal({(one["device"], one["handle"], one["parent"]) for one in events}, {("down", "10:", "1:10")})
        expect_equal(events[0]["start_ns"] // 10**9 > 10**9, True, "time of day")
        expect("down 10: parent 1:10: overload began" in said[0][0] and "overload ended" in said[0][-1], said[0])
        expect_equal(sum(one["duration_ns"] for one in events if one["event"] == "end"), info["total_ns"], "durations")


@test("dualpi2-top --events")
def events_without_a_module_are_a_sentence():
    net = shared_net()
    run("rmmod sch_dualpi2")
    try:
        done = top("--events", net.rtr, check=False)
        expect_equal((done.returncode, done.stdout), (1, ""))
        expect("modprobe sch_dualpi2" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    finally:
        run(["insmod", os.environ["DUALPI2_MODULE"]])


# Metrics

class Monitoring:
    """Debian's node exporter and Prometheus on loopback of a namespace, as their packages start them."""

    def __init__(self, netns):
        self.netns = netns
        self.stack = contextlib.ExitStack()
        self.dir = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.dir = stack.enter_context(tempfile.TemporaryDirectory())
            os.mkdir(self.dir + "/text")
            with open(self.dir + "/prometheus.yml", "w", encoding="ascii") as file:
                json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                           "rule_files": [os.path.join(TOOLS, "share/dualpi2-alerts.yml")], "scrape_configs": [
                    {"job_name": "node", "static_configs": [{"targets": ["127.0.0.1:9100"]}]}]}, file)
            for name, args in (
                    ("prometheus-node-exporter", [
                        "--collector.qdisc", f"--collector.textfile.directory={self.dir}/text",
                        "--web.listen-address=127.0.0.1:9100"]),
                    ("prometheus", [f"--config.file={self.dir}/prometheus.yml", f"--storage.tsdb.path={self.dir}/data",
                                    "--web.listen-address=127.0.0.1:9090"])):
                with in_netns(self.netns), open(f"{self.dir}/{name}.log", "w", encoding="ascii") as log:
                    process = subprocess.Popen([name, *args], stdout=log, stderr=log)
                stack.callback(process.wait)
                stack.callback(process.terminate)
            self.stack = stack.pop_all()
        time.sleep(5)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def get(self, address):
        """A page."""
        with in_netns(self.netns):
            try:
                return urllib.request.urlopen("http://127.0.0.1:" + address, timeout=60).read().decode()
            except urllib.error.HTTPError as error:
                raise Failure(f"{address}: {error.read().decode()}") from error

    def query(self, expression):
        """What Prometheus answers: list of (labels, value)."""
        answer = json.loads(self.get("9090/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def renew(self):
        """As the timer does."""
        top(f"--prometheus --output {self.dir}/text/dualpi2.prom", self.netns)


@test("dualpi2-top --prometheus")
def metrics_pass_promtool():
    with bottleneck() as (net, _):
        net.traffic(2, *MIX)
        exposition = top("--prometheus", net.rtr).stdout
        done = run(["promtool", "check", "metrics"], stdin=exposition, check=False)
        expect_equal((done.returncode, done.stdout + done.stderr), (0, ""), "promtool")
        expect_equal(exposition.count("dualpi2_delay_seconds_bucket"), 2 * 2 * 97, "buckets")
        # It reports an invalid file.
        done = run(["promtool", "check", "metrics"], stdin=exposition.replace(" counter", " gauge"), check=False)
        expect(done.returncode, "promtool finds nothing wrong with anything")


@test("dualpi2-top --prometheus", "Grafana")
def metrics_are_scraped_beside_the_qdisc_collector():
    with bottleneck(8, *MIX, qprotect=1) as (net, q), Monitoring(net.rtr) as monitoring:
        for _ in range(6):
            monitoring.renew()
            time.sleep(1)
        q.running.wait()
        q.running = None
        q.until_idle()
        monitoring.renew()
        time.sleep(3)
        st = stats(net.rtr, "down")

        page = monitoring.get("9100/metrics")
        expect("node_textfile_scrape_error 0" in page, "error of the textfile collector")
        for collector in ("qdisc", "textfile"):
            expect(f'node_scrape_collector_success{{collector="{collector}"}} 1' in page, f"{collector} fails")
        # It shows those at the roots of devices.
        for device, kind in (("down", "htb"), ("up", "dualpi2")):
            [(_, value)] = monitoring.query(f'node_qdisc_packets_total{{device="{device}",kind="{kind}"}}')
            shown = stats(net.rtr, device, "1:" if kind == "htb" else "20:")
            expect_equal(value, shown["packets"], f"qdisc collector, {kind}")
        for line in page.splitlines():
            expect(not line.startswith("# TYPE dualpi2_") or not line.endswith("untyped"), line)

        for queue, key in (("l4s", "l"), ("classic", "c")):
            where = f'{{device="down",handle="10:",parent="1:10",queue="{queue}"}}'
            for metric, want in (("dualpi2_forwarded_packets_total", st[key]["counters"]["forwarded"]),
                                 ("dualpi2_forwarded_bytes_total", st[key]["counters"]["forwarded_bytes"]),
                                 ("dualpi2_delay_seconds_count", st[key]["counters"]["forwarded"])):
                expect_equal([value for _, value in monitoring.query(metric + where)], [want], metric + where)
            [(_, p99)] = monitoring.query(f"histogram_quantile(0.99, dualpi2_delay_seconds_bucket{where})")
            one = top_json("--since-start --json", net.rtr)["down", "10:"]["queues"][queue]["interval"]
            ours = one["delay"]["p99_ns"] / 1e9
            expect(abs(p99 - ours) <= ours / 8,
                   f"P99 of {queue} differs by more than a bucket: Prometheus {p99}, dualpi2-top {ours}")

        [group] = json.loads(monitoring.get("9090/api/v1/rules"))["data"]["groups"]
        for rule in group["rules"]:
            expect_equal((rule["health"], rule.get("lastError")), ("ok", None), rule["name"])
        expect_equal(len(group["rules"]), 7, "alert rules")
        for title, expression in expressions():
            found = monitoring.query(expression)
            # A panel that shows only what is not 0 may be empty, and a ratio without traffic.
            expect(found or "> 0" in expression, f"{title}: no answer to {expression}")


def expressions():
    """(title, expression) of each panel of the dashboard, with its variables filled in as Grafana does for "All"."""
    with open(os.path.join(TOOLS, "share/grafana-dualpi2.json"), encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    for panel in panels:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in (("__rate_interval", "1m"), ("__range", "1m"), ("instance", ".*"), ("netns", ".*"),
                                ("device", ".*"), ("handle", ".*"), ("queue", ".*"), ("top", "10")):
                expression = expression.replace("$" + name, value)
            expect("$" not in expression, f"{panel['title']}: {expression}")
            yield panel["title"], expression


@test("dualpi2-top --prometheus")
def metrics_without_a_dualpi2_say_so():
    net = shared_net()
    exposition = top("--prometheus", net.rtr).stdout
    expect("\ndualpi2_qdiscs 0.0\n" in exposition, exposition)
    expect_equal(run(["promtool", "check", "metrics"], stdin=exposition, check=False).returncode, 0, "promtool")


@test("systemd")
def unit_files_name_what_is_there():
    with open(os.path.join(TOOLS, "share/dualpi2-metrics.service"), encoding="ascii") as file:
        unit = file.read()
    directory, options = re.search(r"^Environment=DIRECTORY=(.*) OPTIONS=(.*)$", unit, re.M).groups()
    args = re.search(r"^ExecStart=/usr/bin/(.*)$", unit, re.M).group(1)
    args = args.replace("${DIRECTORY}", directory).replace("$OPTIONS", options).split()
    net = shared_net()
    # Where Debian's exporter looks.
    path = args[-1]
    expect_equal(os.path.dirname(path), "/var/lib/prometheus/node-exporter")
    expect(os.path.isdir(os.path.dirname(path)), "Debian's exporter has no such directory")
    expect_equal(args[0], "dualpi2-top")
    try:
        run([TOP, *args[1:]], net.rtr)
        with open(path, encoding="ascii") as file:
            expect("dualpi2_qdiscs" in file.read(), "no metrics")
    finally:
        if os.path.exists(path):
            os.unlink(path)


if __name__ == "__main__":
    main(prepare=prepare)
