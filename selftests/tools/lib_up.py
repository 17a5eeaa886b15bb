# SPDX-License-Identifier: GPL-2.0-only
"""Devices, namespaces and calls of `dualpi2`, for test_up.py, test_up_config.py and test_up_set.py."""

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
import types
import unittest.mock

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests/net"))

from installed import TOOLS  # noqa: E402

sys.path.insert(0, TOOLS)

import lib  # noqa: E402
from dualpi2 import cli  # noqa: E402
from dualpi2.up import system  # noqa: E402
from lib import expect, expect_equal, in_netns, run, tc  # noqa: E402

COMMAND = ["/usr/bin/python3", os.path.join(TOOLS, "bin/dualpi2")]
RUN = "/run/dualpi2"


def forked(words, env, stdin=None, uid=None):
    """(exit code, stdout and stderr) of `dualpi2` with these arguments and additions to the environment.

    It runs in a fork of this process, which has loaded its modules: on the kernel with sanitizers, to start Python and
    load them takes longer than most commands.
    """
    sys.stdout.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            code = 1
            try:
                for number, file in enumerate((stdin or open(os.devnull, "rb"), out, err)):
                    os.dup2(file.fileno(), number)
                if uid:
                    os.setuid(uid)
                os.environ.update(env)
                code = cli.main(words)
            except SystemExit as ended:
                code = ended.code
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code if isinstance(code, int) else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        return code, (out.read() + err.read()).decode()


def dualpi2(line, netns, code=0, path=None, env=None, stdin=None, uid=None, lines=1):
    """Run it; what it printed on both, in one text. It says what is wrong in one line."""
    more = dict(env or {})
    if path:
        more["PATH"] = path + ":" + os.environ["PATH"]
    with in_netns(netns):
        got, said = forked(line if isinstance(line, list) else line.split(), more, stdin, uid)
    expect("Traceback" not in said, said)
    expect(got == code, f"`dualpi2 {line}`: code {got}, expected {code}: {said.strip()}")
    if code == 1 and lines:
        expect_equal(said.count("\n"), lines, f"lines of `{said.strip()}`")
    return said


def snapshot(netns):
    """All that `up` may change, except for counters, times and the numbers that the kernel gives actions."""
    links = re.sub(r"NO-CARRIER,|LOWER_UP|state \w+", "", run("ip -details -oneline link show", netns).stdout)
    found = [links, tc("qdisc show", netns).stdout]
    for dev in re.findall(r"^qdisc (?:clsact|ingress) \S+ dev (\S+)", found[1], re.M):
        found += [re.sub(r"index \d+", "", tc(f"filter show dev {dev} {side}", netns).stdout)
                  for side in ("ingress", "egress")]
    files = sorted(os.path.join(top, name) for top, dirs, names in os.walk(RUN) for name in [*dirs, *names])
    return [*found, files]


def old_kernel(*devices):
    """A kernel that shows no bandwidth on these devices, or on any."""
    real = system.qdiscs

    def qdiscs(dev):
        return [{**found, "bandwidth": None} if not devices or dev in devices else found for found in real(dev)]

    return unittest.mock.patch.object(system, "qdiscs", qdiscs)


@contextlib.contextmanager
def pair(names=("wan", "lan")):
    """A namespace with veth devices of these names, up; their peers are in another one."""
    # Of namespaces that are gone.
    shutil.rmtree(RUN, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        tag = f"dpup{os.getpid()}-{next(lib._serial)}"
        here, there = tag + "-a", tag + "-b"
        lib.quiet_netns(stack, here, there)
        add_devices(here, there, *names)
        yield types.SimpleNamespace(here=here, there=there)


def add_devices(here, there, *names):
    """More of them."""
    run(["ip", "-batch", "-"], here, stdin="".join(
        f"link add {name} type veth peer name {name} netns {there}\nlink set {name} up\n" for name in names))
    run(["ip", "-batch", "-"], there, stdin="".join(f"link set {name} up\n" for name in names))


def root(netns, dev):
    """The root qdisc as JSON."""
    return next(item for item in json.loads(tc(f"-json qdisc show dev {dev}", netns).stdout) if item.get("root"))


def ifbs(netns):
    """{name: alias} of the ifb devices."""
    return {item["ifname"]: item.get("ifalias") for item in
            json.loads(run("ip -json -details link show type ifb", netns).stdout or "[]") if item}


@contextlib.contextmanager
def stand_in(**programs):
    """A directory with programs of these names, shell text each, to be found before the real ones; $REAL is that."""
    directory = f"/tmp/dualpi2-stub-{os.getpid()}-{next(lib._serial)}"
    os.mkdir(directory)
    for name, text in programs.items():
        path = os.path.join(directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nREAL={shutil.which(name) or '/sbin/' + name}\n{text}\n")
        os.chmod(path, 0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def systemd(**more):
    """What --persist asks of systemd, without one: systemctl writes down what it is asked; (path, reader of that)."""
    made = [path for path in ("/run/systemd", "/run/systemd/system") if not os.path.exists(path)]
    for path in made:
        os.mkdir(path)
    try:
        with stand_in(systemctl="""echo "$*" >>/tmp/systemctl.log
case $1 in is-active | is-enabled) [ -e /tmp/systemctl.active ]; exit ;;
start | restart) [ ! -e /tmp/systemctl.fails ] || { echo no >&2; exit 1; } ;; esac""", **more) as path:
            for name in ("log", "active", "fails"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink("/tmp/systemctl." + name)

            def asked():
                with open("/tmp/systemctl.log", encoding="ascii") as file:
                    return file.read()

            yield path, asked
    finally:
        shutil.rmtree("/etc/dualpi2", ignore_errors=True)
        for path in reversed(made):
            os.rmdir(path)


def write(path, content=b""):
    """A file with that."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def rename(netns, old, new):
    """A device has another name."""
    for line in (f"{old} down", f"{old} name {new}", f"{new} up"):
        run("ip link set " + line, netns)


def counting(number, failing):
    """Text of an ip or tc that fails at the so-many-th line that changes something."""
    return f"""case " $* " in *" show "* | *" help "* | *" dev / "*) exec $REAL "$@" ;; esac
n=$(cat /tmp/count); echo $((n + 1)) >/tmp/count
[ $n -{failing} {number} ] || exec $REAL "$@"
echo "this line is made to fail" >&2; exit 1"""
