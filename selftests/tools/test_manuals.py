# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top lockdep=off
"""Runs the EXAMPLES of dualpi2(8) and dualpi2-top(8) as a reader sees them: from the rendered pages, build/man/*.txt.

selftests/tc/test_manual.py does so for tc-dualpi2(8).
"""
import os
import subprocess

from lib_guides import ROOT, Machine, flowing, load, options, programs
from lib_up import systemd
from lib import Failure, expect, expect_equal, main, note, run, test

# A command that goes on until it is interrupted: SIGINT after so many seconds, and the exit code then.
ENDLESS = {"dualpi2-top --events": (2, 130)}


def examples(page):
    """The commands of the section EXAMPLES: the lines that are indented further than the text, without "# "."""
    with open(os.path.join(ROOT, "build/man", page + ".txt"), encoding="utf-8") as file:
        section = file.read().partition("\nEXAMPLES\n")[2]
    found = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            break
        if line.startswith(" " * 8):
            found.append(line.strip().removeprefix("# "))
    return found


def execute(machine, command, path=""):
    """Run a command on the router; what it printed."""
    seconds, code = next((about for name, about in ENDLESS.items() if command.startswith(name)), (None, 0))
    timeout = ["timeout", "--signal=INT", "--preserve-status", str(seconds)] if seconds else []
    path = ":".join(filter(None, (path, machine.directory, os.environ["PATH"])))
    done = subprocess.run(["ip", "netns", "exec", machine.rtr, *timeout, "bash", "-euo", "pipefail", "-c",
                           "exec " + command if seconds else command], text=True, cwd=machine.directory,
                          env=dict(os.environ, PATH=path, LC_ALL="C.UTF-8"), capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)
    note(f"{command}: {done.stdout[:300]!r}")
    if done.returncode != code:
        raise Failure(f"`{command}`: code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


@test("dualpi2(8)")
def examples_of_dualpi2_work_and_leave_nothing():
    commands = examples("dualpi2.8")
    expect_equal([command.split()[1] for command in commands], ["up", "up", "set", "play", "play", "down"], "commands")
    with programs() as directory, Machine(directory) as machine, systemd() as (path, asked):
        before = machine.state()
        shown = [execute(machine, commands[0], path)]
        expect("dualpi2@eth0.service" in asked(), asked())
        here = machine.state()
        shown.append(execute(machine, commands[1], path))
        expect_equal(machine.state(), here, "after --dry-run")
        shown.append(execute(machine, commands[2], path))
        rates = [options(machine.rtr, dev)["bandwidth"] for dev in ("eth0", "dp2-eth0")]
        expect_equal(rates, [18 * 125000, 90 * 125000], "rates after set")
        execute(machine, commands[3], path)
        expect("restored: 18.0 Mbit/s" in execute(machine, commands[4], path), "the report of play")
        shown.append(execute(machine, commands[5], path))
        expect(all(shown[:3]) and not shown[3], f"printed: {shown}")
        expect_equal(machine.state(), before, "after down")


@test("dualpi2-top(8)")
def examples_of_dualpi2_top_work():
    commands = examples("dualpi2-top.8")
    expect(len(commands) >= 8, f"commands: {commands}")
    with programs() as directory, Machine(directory) as machine:
        run(["tc", "-batch", "-"], machine.rtr, stdin="""\
qdisc replace dev eth0 root handle 1: htb default 10
class add dev eth0 parent 1: classid 1:10 htb rate 20mbit burst 1514 cburst 1514
class add dev eth0 parent 1: classid 1:20 htb rate 20mbit burst 1514 cburst 1514
qdisc add dev eth0 parent 1:10 handle 10: dualpi2
qdisc add dev eth0 parent 1:20 handle 20: dualpi2
""")
        shown = {}
        with flowing(machine, *load(20), seconds=120):
            for command in commands:
                shown[command] = execute(machine, command)

        def printed(*parts):
            [text] = [text for command, text in shown.items() if all(part in command for part in parts)]
            return text

        expect("eth0 10:" in printed("--sort p99") and "eth0 10:" in printed("--since-start"), "not shown")
        expect("Bob" in printed("--filter bob") and "Alice" not in printed("--filter bob"), printed("--filter bob"))
        p99 = printed("p99_ns").split()
        expect(len(p99) == 2 and p99[0].isdigit(), f"P99: {p99}")
        with open(os.path.join(directory, "dualpi2.prom"), encoding="ascii") as file:
            expect("dualpi2_qdiscs 2.0" in file.read(), "metrics")


if __name__ == "__main__":
    main()
