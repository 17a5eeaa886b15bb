# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug
"""`dualpi2 up`, `down` and `status` on real devices in network namespaces.

Not here: the unit of systemd (test_systemd.sh), OpenWrt's script (test_qos.sh), doctor (test_doctor.py).
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import types

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "selftests/net"), os.path.join(ROOT, "tools")]

import lib  # noqa: E402
from installed import TOOLS  # noqa: E402
from lib import (ECT1, NOT_ECT, Net, Stream, Traffic, each, expect, expect_between, expect_equal,  # noqa: E402
                 in_netns, main, run, tc, test)

from dualpi2.up import arguments  # noqa: E402

COMMAND = ["/usr/bin/python3", os.path.join(TOOLS, "bin/dualpi2")]
RUN = "/run/dualpi2"


def dualpi2(line, netns, code=0, path=None, env=None, stdin=None, uid=None, lines=1):
    """Run it; what it printed on both, in one text. It says what is wrong in one line."""
    more = dict(os.environ, **(env or {}))
    if path:
        more["PATH"] = path + ":" + os.environ["PATH"]
    with in_netns(netns):
        done = subprocess.run([*COMMAND, *(line if isinstance(line, list) else line.split())], text=True, env=more,
                              stdin=stdin or subprocess.DEVNULL, capture_output=True, check=False,
                              preexec_fn=(lambda: os.setuid(uid)) if uid else None)
    said = done.stdout + done.stderr
    expect("Traceback" not in said, said)
    expect(done.returncode == code, f"`dualpi2 {line}`: code {done.returncode}, expected {code}: {said.strip()}")
    if code == 1 and lines:
        expect_equal(said.count("\n"), lines, f"lines of `{said.strip()}`")
    return said


def snapshot(netns):
    """All that `up` may change, but for counters and times."""
    links = re.sub(r"NO-CARRIER,|LOWER_UP|state \w+", "", run("ip -details -oneline link show", netns).stdout)
    found = [links, tc("qdisc show", netns).stdout]
    for dev in re.findall(r"^qdisc (?:clsact|ingress) \S+ dev (\S+)", found[1], re.M):
        found += [tc(f"filter show dev {dev} {side}", netns).stdout for side in ("ingress", "egress")]
    files = sorted(os.path.join(top, name) for top, dirs, names in os.walk(RUN) for name in [*dirs, *names])
    return [*found, files]


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
    directory = f"/tmp/dualpi2-stand-in-{os.getpid()}-{next(lib._serial)}"
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
    return f"""case " $* " in *" show "* | *" help "*) exec $REAL "$@" ;; esac
n=$(cat /tmp/count); echo $((n + 1)) >/tmp/count
[ $n -{failing} {number} ] || exec $REAL "$@"
echo "this line is made to fail" >&2; exit 1"""


# What it does

@test("up: both directions, L4S queues in use")
def up_both_directions_shapes_each_at_its_rate():
    with Net() as net:
        dualpi2("up down --upload 20mbit --download 30mbit", net.rtr)
        back = types.SimpleNamespace(snd=net.rcv, rtr=net.rtr, rcv=net.snd)
        for which, dev, rate, where, dst in (("upload", "down", 20e6, net, "10.2.0.1"),
                                             ("download", "dp2-down", 30e6, back, "10.1.0.1")):
            # Two bursts at once, one for each queue, that are over before the next ones: no packet is dropped.
            streams = [Stream(name, ecn=ecn, pps=30, burst=15, dst=dst, trace=True)
                       for name, ecn in (("l", ECT1), ("c", NOT_ECT))]
            found = Traffic(where, 2, streams, 0).wait()
            delays = [delay for name in "lc" for _, delay, _ in found[name].records]
            expect_equal((delays.count(None), len(delays)), (0, 120), f"{which}: packets lost, and of how many")
            left = sorted(sent + delay for name in "lc" for sent, delay, _ in found[name].records)
            for burst in range(0, 120, 30):
                bits = 29 * 1000 * 8 / ((left[burst + 29] - left[burst]) / 1e9)
                expect_between(bits / rate, 0.99, 1.01, f"{which}: of the rate set")
            st = lib.stats(net.rtr, dev, "d50:")
            expect_equal((st["l"]["sent"], st["c"]["sent"]), (60, 60), f"{which}: packets of the queues")
            lib.check_identities(st)
        dualpi2("down down", net.rtr)


@test("up: what is set is what was asked for")
def up_words_reach_the_qdiscs():
    with pair() as net:
        said = dualpi2("up wan --upload 2.5mbit --download 100kbit --link docsis --rtt 50ms -- target 12ms", net.here)
        expect("wan: upload 2.5mbit download 100kbit (dp2-wan), docsis" in said.replace("link ", ""), said)
        for dev, rate, ingress in (("wan", 312500, False), ("dp2-wan", 12500, True)):
            options = root(net.here, dev)["options"]
            expect_equal(options["bandwidth"], rate, dev)
            shown = tc(f"qdisc show dev {dev}", net.here).stdout
            expect("overhead 18 mpu 64 noatm" in shown and "target 12ms" in shown, shown)
            expect_equal(" ingress" in shown.replace("qdisc ingress", ""), ingress, f"ingress on {dev}")
        expect_equal(ifbs(net.here), {"dp2-wan": "dualpi2 of wan"})


@each(sorted(arguments.PRESETS))
def up_preset_CASE_is_that_of_tc(preset):
    with pair() as net:
        dualpi2(["up", "wan", "--upload", "1mbit", "--link", preset + " ether-vlan"], net.here)
        tc(f"qdisc add dev lan root handle d50: dualpi2 bandwidth 1mbit {preset} ether-vlan", net.here)
        expect_equal(root(net.here, "wan")["options"], root(net.here, "lan")["options"])


@test("up again")
def up_again_changes_in_place():
    with Net() as net:
        dualpi2("up down --upload 4mbit --link docsis", net.rtr)
        run_ = net.start(6, Stream("c", bps=6e6, stop=4))
        time.sleep(2)
        before = lib.stats(net.rtr, "down", "d50:")
        dualpi2("up down --upload 5mbit", net.rtr)
        after = lib.stats(net.rtr, "down", "d50:")
        run_.wait()
        expect(before["qlen"] > 3 and after["qlen"] > 3, f"queued: {before['qlen']}, {after['qlen']}")
        expect(after["c"]["enqueued"] >= before["c"]["enqueued"], "the queue is a new one")
        expect_equal(after["c"]["dropped_purge"], 0, "packets lost by the change")
        options = root(net.rtr, "down")["options"]
        expect_equal((options["bandwidth"], options.get("overhead", 0)), (625000, 0))
        dualpi2("down down", net.rtr)


@test("up again without an option")
def up_option_left_out_is_a_default_again():
    with pair() as net:
        dualpi2("up wan --upload 4mbit -- target 40ms no_split_gso", net.here)
        dualpi2("up wan --upload 4mbit -- target 30ms no_split_gso", net.here)
        expect_equal(root(net.here, "wan")["handle"], "d50:", "a new value only")
        dualpi2("up wan --upload 4mbit", net.here)
        tc("qdisc add dev lan root dualpi2 bandwidth 4mbit", net.here)
        expect_equal(root(net.here, "wan")["options"], root(net.here, "lan")["options"])
        expect_equal(root(net.here, "wan")["handle"], "d51:")
        dualpi2("down wan", net.here)
        expect_equal(root(net.here, "wan")["kind"], "noqueue")


@test("up again with one direction")
def up_direction_left_out_is_removed():
    with pair() as net:
        empty = snapshot(net.here)
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        dualpi2("up wan --upload 4mbit", net.here)
        expect_equal(ifbs(net.here), {})
        expect("clsact" not in tc("qdisc show dev wan", net.here).stdout, "clsact is left")
        dualpi2("up wan --download 8mbit", net.here)
        expect_equal(root(net.here, "wan")["kind"], "noqueue")
        dualpi2("down wan", net.here)
        expect_equal(snapshot(net.here), empty)


@each(["--upload 4mbit --download 8mbit", "--upload 4mbit", "--download 8mbit"],
      name=lambda line: line.replace("-", "").replace(" ", "_"))
def down_after_CASE_leaves_nothing(line):
    with pair() as net:
        before = snapshot(net.here)
        dualpi2("up wan " + line, net.here)
        expect(snapshot(net.here) != before, "nothing was done")
        dualpi2("down wan", net.here)
        expect_equal(snapshot(net.here), before)
        expect("nothing of ours" in dualpi2("down wan", net.here), "a second time")


@test("--dry-run")
def dry_run_lines_by_hand_do_the_same():
    line = [*"up wan --upload 4mbit --download 8mbit --link".split(), "pppoe-ptm ether-vlan", "--", "target", "9ms"]

    def without_numbers(found):
        return [re.sub(r"^\d+: |link/ether \S+|\w+@if\d+|link-netns \S+|link-netnsid \d+|(promiscuity|minmtu)\s\d+|"
                       r"ifindex \d+ |index \d+|/netns-c?\d+", "", str(text), flags=re.M) for text in found[:-1]]

    with pair() as one, pair() as two:
        before = snapshot(two.here)
        lines = dualpi2([*line[:2], "--dry-run", *line[2:]], two.here, uid=65534)
        expect_equal(snapshot(two.here), before, "after --dry-run")
        expect(all(text.startswith(("ip ", "tc ")) for text in lines.splitlines()), lines)
        run(["sh", "-e", "-c", lines], two.here)
        dualpi2(line, one.here)
        expect_equal(without_numbers(snapshot(two.here)), without_numbers(snapshot(one.here)))
        # What was done by hand is ours, too.
        lines = dualpi2("down wan --dry-run", one.here)
        run(["sh", "-e", "-c", lines], two.here)
        expect_equal(snapshot(two.here)[:-1], before[:-1])
        lines = dualpi2("up wan --dry-run --upload 5mbit --download 8mbit -- target 9ms", one.here)
        expect_equal(lines.count("tc qdisc change"), 2, lines)


# Others

@test("another qdisc at the root")
def up_root_of_others_is_refused_and_replaced():
    with pair() as net:
        tc("qdisc add dev wan root handle 7: tbf rate 1mbit burst 5k limit 10k", net.here)
        before = snapshot(net.here)
        said = dualpi2("up wan --upload 4mbit --download 8mbit", net.here, code=1)
        expect("tbf 7:" in said and "--replace" in said, said)
        dualpi2("up wan --upload 4mbit --dry-run", net.here, code=1)
        expect_equal(snapshot(net.here), before)
        # One direction does not care for the other.
        dualpi2("up wan --download 8mbit", net.here)
        dualpi2("down wan", net.here)
        expect_equal(snapshot(net.here), before)
        dualpi2("up wan --upload 4mbit --replace", net.here)
        expect_equal(root(net.here, "wan")["kind"], "dualpi2")


@test("another qdisc at the root, on a terminal")
def up_on_a_terminal_asks():
    import pty
    for answer, code, kind in (("n", 1, "tbf"), ("", 1, "tbf"), ("y", 0, "dualpi2")):
        with pair() as net:
            tc("qdisc add dev wan root handle 7: tbf rate 1mbit burst 5k limit 10k", net.here)
            with in_netns(net.here):
                pid, terminal = pty.fork()
                if not pid:
                    os.execv(COMMAND[0], [*COMMAND, "up", "wan", "--upload", "4mbit"])
            said = os.read(terminal, 1000).decode()
            expect("tbf 7:" in said and "[y/N]" in said, said)
            os.write(terminal, f"{answer}\n".encode())
            with contextlib.suppress(OSError):
                while os.read(terminal, 1000):
                    pass
            expect_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), code, f"answer '{answer}'")
            os.close(terminal)
            expect_equal(root(net.here, "wan")["kind"], kind)


@each(["pfifo_fast", "fq_codel", "dualpi2"])
def up_default_qdisc_CASE_is_not_of_others(kind):
    with pair() as net:
        # A veth has no queue by default; with more than one queue length it has the default qdisc.
        path = "/proc/sys/net/core/default_qdisc"
        with open(path, encoding="ascii") as file:
            default = file.read()
        try:
            with open(path, "w", encoding="ascii") as file:
                file.write(kind)
            run("ip link add wan2 txqueuelen 100 type ifb", net.here)
            run("ip link set wan2 up", net.here)
        finally:
            with open(path, "w", encoding="ascii") as file:
                file.write(default)
        expect_equal(root(net.here, "wan2")["kind"], kind)
        dualpi2("up wan2 --upload 4mbit", net.here)
        expect_equal(root(net.here, "wan2")["handle"], "d50:")


@test("clsact of others")
def up_clsact_of_others_is_shared_and_stays():
    for kind in ("clsact", "ingress"):
        with pair() as net:
            tc(f"qdisc add dev wan {kind}", net.here)
            if kind == "clsact":
                tc("filter add dev wan egress pref 5 protocol ip matchall action ok", net.here)
            before = snapshot(net.here)
            dualpi2("up wan --download 8mbit", net.here)
            expect_equal(ifbs(net.here), {"dp2-wan": "dualpi2 of wan"})
            dualpi2("down wan", net.here)
            expect_equal(snapshot(net.here), before, kind)


@test("filters of others")
def up_filters_of_others_are_refused_and_replaced():
    with pair() as net:
        tc("qdisc add dev wan clsact", net.here)
        tc("filter add dev wan egress pref 5 protocol ip matchall action ok", net.here)
        tc("filter add dev wan ingress pref 9 protocol ip matchall action ok", net.here)
        tc("filter add dev wan ingress pref 3408 protocol ip matchall action mirred egress redirect dev lan", net.here)
        before = snapshot(net.here)
        said = dualpi2("up wan --download 8mbit", net.here, code=1)
        expect("matchall pref 9" in said and "--replace" in said, said)
        expect_equal(snapshot(net.here), before)
        tc("filter del dev wan ingress pref 3408", net.here)
        dualpi2("up wan --download 8mbit --replace", net.here)
        shown = tc("filter show dev wan ingress", net.here).stdout
        expect("dp2-wan" in shown and "pref 9" not in shown, shown)
        expect("pref 5" in tc("filter show dev wan egress", net.here).stdout, "the filter of the other side is gone")
        dualpi2("down wan", net.here)
        expect("clsact" in tc("qdisc show dev wan", net.here).stdout, "clsact was theirs")


@test("a qdisc put in the place of ours")
def down_root_of_others_is_left():
    with pair() as net:
        dualpi2("up wan --upload 4mbit", net.here)
        tc("qdisc replace dev wan root handle 7: tbf rate 1mbit burst 5k limit 10k", net.here)
        expect("tbf 7: is on wan" in dualpi2("status --json", net.here, code=1), "status does not name it")
        said = dualpi2("down wan", net.here)
        expect("tbf 7:" in said, said)
        expect_equal(root(net.here, "wan")["kind"], "tbf")


# All or nothing

@test("a step fails")
def up_step_that_fails_is_undone():
    with pair() as net, stand_in(ip=counting("$FAIL_AT", "eq"), tc=counting("$FAIL_AT", "eq")) as path:
        before = snapshot(net.here)
        lines = dualpi2("up wan --dry-run --upload 4mbit --download 8mbit", net.here).splitlines()
        for number, line in enumerate(lines):
            with open("/tmp/count", "w", encoding="ascii") as file:
                file.write("0\n")
            # Where this one fails, u32 is tried.
            fails = "matchall" not in line
            said = dualpi2("up wan --upload 4mbit --download 8mbit", net.here, code=1 if fails else 0, path=path,
                           env={"FAIL_AT": str(number)})
            expect(not fails or "made to fail" in said, said)
            if not fails:
                dualpi2("down wan", net.here)
            expect_equal(snapshot(net.here), before, f"after the failure of `{line}`")
        expect_equal(len(lines), 6, "lines")


@test("a step of a change fails")
def up_change_that_fails_is_undone():
    with pair() as net, stand_in(ip=counting("$FAIL_AT", "eq"), tc=counting("$FAIL_AT", "eq")) as path:
        dualpi2("up wan --upload 4mbit --download 8mbit --link docsis -- target 20ms", net.here)
        before = snapshot(net.here)
        # In place, and by new qdiscs.
        for options in ("-- target 30ms", ""):
            for number in range(2):
                with open("/tmp/count", "w", encoding="ascii") as file:
                    file.write("0\n")
                dualpi2("up wan --upload 5mbit --download 9mbit " + options, net.here, code=1, path=path,
                        env={"FAIL_AT": str(number)})
                expect_equal(snapshot(net.here), before, f"after the failure of line {number} {options}")


@test("a bad option of dualpi2's own")
def up_option_that_tc_refuses_is_told_and_undone():
    with pair() as net:
        before = snapshot(net.here)
        said = dualpi2("up wan --upload 4mbit --download 8mbit -- target nonsense", net.here, code=1)
        expect("nonsense" in said, said)
        expect_equal(snapshot(net.here), before)


@test("no matchall")
def up_without_matchall_takes_u32():
    older = 'case "$*" in *matchall*) echo no such >&2; exit 2 ;; esac; exec $REAL "$@"'
    with pair() as net, stand_in(tc=older) as path:
        before = snapshot(net.here)
        dualpi2("up wan --download 8mbit", net.here, path=path)
        expect(" u32 " in tc("filter show dev wan ingress", net.here).stdout, "no u32")
        expect_equal(dualpi2("up wan --download 8mbit", net.here, path=path).count("\n"), 1)
        dualpi2("down wan", net.here)
        expect_equal(snapshot(net.here), before)


@test("two at once")
def up_twice_at_once_ends_as_one():
    with pair() as net:
        before = snapshot(net.here)
        with in_netns(net.here):
            both = [subprocess.Popen([*COMMAND, "up", "wan", "--upload", rate, "--download", rate], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rate in ("4mbit", "5mbit")]
        for one in both:
            said = one.communicate()[0]
            expect_equal(one.returncode, 0, said)
        expect_equal(root(net.here, "wan")["options"]["bandwidth"], root(net.here, "dp2-wan")["options"]["bandwidth"])
        expect_equal(list(ifbs(net.here)), ["dp2-wan"])
        dualpi2("down wan", net.here)
        expect_equal(snapshot(net.here), before)


# What is put in the place of others' comes last, and what cannot be brought back is named

TBF = "qdisc add dev wan root handle 7: tbf rate 1mbit burst 5k limit 10k"


def old_kernel(devices):
    """Text of a tc that shows no bandwidth on these devices."""
    return f"""case "$*" in "-json qdisc show dev "{devices}) $REAL "$@" | sed "s/.bandwidth.:[0-9]*,*//g"; exit ;; esac
exec $REAL "$@\""""


@test("--replace, and the kernel does not know bandwidth")
def replace_on_an_old_kernel_leaves_what_is_there():
    with pair() as net, stand_in(tc=old_kernel("*")) as path:
        tc(TBF, net.here)
        before = snapshot(net.here)
        said = dualpi2("up wan --upload 4mbit --replace", net.here, code=1, path=path)
        expect("too old" in said and "gone" not in said, said)
        expect_equal(snapshot(net.here), before)


@each(["1.0", "2.2.9", "unknown"])
def replace_with_module_CASE_is_refused_first(version):
    write("/tmp/version", version.encode())
    with pair() as net:
        # Without ifb, so that nothing can be tried.
        with stand_in(ip='case "$*" in *"type ifb") exit 2 ;; esac; exec $REAL "$@"') as path:
            tc(TBF, net.here)
            before = snapshot(net.here)
            run("mount --bind /tmp/version /sys/module/sch_dualpi2/version")
            try:
                said = dualpi2("up wan --upload 4mbit --replace", net.here, code=1, path=path)
            finally:
                run("umount /sys/module/sch_dualpi2/version")
            expect("too old" in said and "gone" not in said, said)
            expect_equal(snapshot(net.here), before)
            dualpi2("up wan --upload 4mbit --replace", net.here, path=path)


@test("--replace, and undone after that")
def replace_that_fails_names_what_is_gone():
    with pair() as net, stand_in(tc=old_kernel("wan")) as path:
        tc(TBF, net.here)
        said = dualpi2("up wan --upload 4mbit --replace", net.here, code=1, path=path)
        expect("gone is the qdisc tbf 7:, which was there before" in said, said)
        expect_equal((root(net.here, "wan")["kind"], ifbs(net.here)), ("noqueue", {}))


@test("--replace, and a filter cannot be deleted")
def replace_deletes_filters_before_the_root():
    with pair() as net, stand_in(tc='case "$*" in "filter del"*) exit 1 ;; esac; exec $REAL "$@"') as path:
        tc(TBF, net.here)
        tc("qdisc add dev wan clsact", net.here)
        tc("filter add dev wan ingress pref 9 protocol ip matchall action ok", net.here)
        # Our own cannot be deleted, either, and that is told.
        dualpi2("up wan --upload 4mbit --download 5mbit --replace", net.here, code=1, path=path, lines=None)
        expect_equal(root(net.here, "wan")["kind"], "tbf")


@each(["before", "after"])
def signal_CASE_a_line_took_effect_undoes_all(when):
    real = '$REAL "$@"'
    for replaced in (False, True):
        # The second one comes during the way back.
        done = real if when == "after" else ":"
        text = f"""case "$*" in *"dev wan root handle"*) {done}; kill -TERM $PPID; exec sleep 9 ;;
*" del "*) kill -TERM $PPID; {real} ;; *) exec {real} ;; esac"""
        with pair() as net, stand_in(tc=text, ip=text) as path:
            if replaced:
                tc(TBF, net.here)
            before = snapshot(net.here)
            said = dualpi2("up wan --upload 4mbit --download 8mbit" + (" --replace" if replaced else ""), net.here,
                           code=143, path=path)
            if replaced and when == "after":
                expect("gone is the qdisc tbf 7:" in said, said)
                expect_equal(ifbs(net.here), {})
            else:
                expect("gone" not in said, said)
                expect_equal(snapshot(net.here), before)


@test("a tc without JSON of others")
def up_with_a_tc_that_prints_no_json():
    # As iproute2 5.10 does of u32 and hfsc.
    text = """case "$*" in *matchall*) exit 1 ;; "-json filter show"*) shift; echo '[{'; exec $REAL "$@" ;;
"-json qdisc show dev wan") shift; echo '[{'; exec $REAL "$@" ;; esac; exec $REAL "$@\""""
    with pair() as net, stand_in(tc=text) as path:
        tc(TBF, net.here)
        before = snapshot(net.here)
        said = dualpi2("up wan --upload 8mbit", net.here, code=1, path=path)
        expect("the root qdisc tbf 7:" in said, said)
        for _ in range(2):
            dualpi2("up wan --download 8mbit", net.here, path=path)
        dualpi2("status", net.here, path=path)
        dualpi2("down wan", net.here, path=path)
        expect_equal(snapshot(net.here), before)


# What is to last

@test("--persist")
def persist_leaves_a_running_unit_alone():
    with systemd() as (path, asked), pair() as net:
        dualpi2("up wan --upload 4mbit --persist", net.here, path=path)
        expect("start dualpi2@wan.service" in asked(), asked())
        write("/tmp/systemctl.active")
        dualpi2("up wan --upload 5mbit --persist", net.here, path=path)
        expect("restart" not in asked(), asked())
        with open("/etc/dualpi2/wan.conf", encoding="ascii") as file:
            expect('UPLOAD="5mbit"' in file.read(), "the new rate")


@test("--persist fails")
def persist_that_fails_keeps_what_was_there():
    with systemd() as (path, asked), pair() as net:
        for before in (None, b"# mine\nUPLOAD=3mbit\n"):
            if before:
                write("/etc/dualpi2/wan.conf", before)
            write("/tmp/systemctl.fails")
            said = dualpi2("up wan --upload 4mbit --persist", net.here, code=1, path=path)
            expect(("as it was persisted before" if before else "not for the next boot") in said, said)
            expect_equal(root(net.here, "wan")["handle"], "d50:", "the link")
            expect(before or "disable dualpi2@wan.service" in asked().splitlines(), asked())
            if before:
                with open("/etc/dualpi2/wan.conf", "rb") as file:
                    expect_equal(file.read(), before)
            else:
                expect(not os.path.exists("/etc/dualpi2"), "a file is left")


@test("down fails")
def down_that_fails_is_told_though_it_was_persisted():
    with systemd(tc='case "$*" in "qdisc del"*) echo busy >&2; exit 1 ;; esac; exec $REAL "$@"') as (path, _), \
            pair() as net:
        dualpi2("up wan --upload 4mbit --persist", net.here, path=path)
        said = dualpi2("down wan", net.here, code=1, path=path)
        expect("busy" in said, said)


@test("a persisted device is unplugged")
def status_of_a_persisted_device_that_is_not_there():
    try:
        with pair() as net:
            write("/etc/dualpi2/usb0.conf", b"UPLOAD=3mbit\n")
            expect_equal(dualpi2("status usb0", net.here), "usb0: waits for the device\n")
            expect_equal(json.loads(dualpi2("status --json", net.here))[0]["problems"], [])
            dualpi2("up wan --upload 4mbit", net.here)
            write("/etc/dualpi2/wan.conf", b"UPLOAD=4mbit\n")
            run("ip link del wan", net.here)
            mend = json.loads(dualpi2("status wan --json", net.here, code=1))[0]["mend"]
            dualpi2(mend.partition(" ")[2], net.here)
            expect(os.path.exists("/etc/dualpi2/wan.conf"), "the mend deletes what is persisted")
    finally:
        shutil.rmtree("/etc/dualpi2")


@test("--persist and names")
def persist_and_down_after_a_rename():
    with systemd() as (path, asked), pair() as net:
        dualpi2("up wan --upload 4mbit --persist", net.here, path=path)
        rename(net.here, "wan", "dsl")
        dualpi2("up wan --upload 5mbit --persist", net.here, path=path)
        expect_equal(sorted(os.listdir("/etc/dualpi2")), ["dsl.conf", "wan.conf"])
        # Of a device that has the name now.
        write("/etc/dualpi2/lan.conf", b"UPLOAD=3mbit\n")
        write("/tmp/systemctl.active")
        dualpi2("down dsl", net.here, path=path)
        expect_equal(os.listdir("/etc/dualpi2"), ["lan.conf"])
        expect("disable --now dualpi2@wan.service" in asked(), asked())


@test("names that are paths")
def down_of_a_path_deletes_nothing():
    os.makedirs("/etc/dualpi2", exist_ok=True)
    with pair() as net:
        for name in ("../victim", "/etc/victim", ".", "..", "", "a b", "x" * 16, "\u00e4" * 8):
            write("/etc/victim.conf", b"UPLOAD=3mbit\n")
            for line in (["down", name], ["up", name, "--from-config"], ["status", name]):
                said = dualpi2(line, net.here, code=2)
                expect("is no name of a device" in said and said.count("\n") == 1, said)
            os.unlink("/etc/victim.conf")
    shutil.rmtree("/etc/dualpi2")


@test("a state of a namespace that had this number")
def state_of_another_namespace_is_not_ours():
    with pair() as net:
        with in_netns(net.here):
            number = os.stat("/proc/thread-self/ns/net").st_ino
        write(f"{RUN}/netns-{number}/wan.json", json.dumps({"device": "wan", "ifindex": 1}).encode())
        expect("nothing is set" in dualpi2("status", net.here), "a state is taken for ours")
        shutil.rmtree(RUN)


# Names that change

@each(["old", "new"])
def down_by_the_CASE_name_after_a_rename(which):
    with pair() as net:
        before = snapshot(net.here)
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        run("ip link set wan down", net.here)
        run("ip link set wan name dsl", net.here)
        run("ip link set dsl up", net.here)
        said = dualpi2("status wan", net.here)
        expect("wan is called dsl now" in said or "dsl: upload 4mbit" in said, said)
        said = dualpi2("down " + ("wan" if which == "old" else "dsl"), net.here)
        expect_equal("wan is called dsl now" in said, which == "old")
        run("ip link set dsl down", net.here)
        run("ip link set dsl name wan", net.here)
        run("ip link set wan up", net.here)
        expect_equal(snapshot(net.here), before)


@test("renamed, and another device has the name now")
def up_name_taken_over_by_another_device():
    with pair() as net:
        before = snapshot(net.here)[1]
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        run("ip link set wan down", net.here)
        run("ip link set wan name dsl", net.here)
        run("ip link set dsl up", net.here)
        run("ip link set lan down", net.here)
        run("ip link set lan name wan", net.here)
        run("ip link set wan up", net.here)
        dualpi2("up wan --upload 1mbit --download 2mbit", net.here)
        expect_equal(sorted(ifbs(net.here).values()), ["dualpi2 of wan", "dualpi2 of wan"])
        expect_equal(root(net.here, "dsl")["options"]["bandwidth"], 500000)
        expect_equal(root(net.here, "wan")["options"]["bandwidth"], 125000)
        dualpi2("up dsl --upload 3mbit --download 2mbit", net.here)
        expect_equal(sorted(ifbs(net.here).values()), ["dualpi2 of dsl", "dualpi2 of wan"])
        dualpi2("down dsl", net.here)
        expect_equal(root(net.here, "wan")["options"]["bandwidth"], 125000)
        dualpi2("down wan", net.here)
        expect_equal(sorted(snapshot(net.here)[1].splitlines()),
                     sorted(before.replace("wan", "dsl").replace("lan", "wan").splitlines()))
        expect(not os.path.exists(RUN), "a state is left")


@test("the device is gone")
def down_of_a_device_that_is_gone_leaves_nothing():
    with pair() as net:
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        run("ip link del wan", net.here)
        found = json.loads(dualpi2("status --json", net.here, code=1))[0]
        expect_equal((found["problems"], found["mend"]), (["the device is gone"], "dualpi2 down wan"))
        dualpi2("down wan", net.here)
        expect_equal(ifbs(net.here), {})
        expect(not os.path.exists(RUN), "a state is left")
        said = dualpi2("down wan", net.here, code=1)
        expect("there is no device wan" in said, said)


@test("the device came back")
def up_of_a_device_that_came_back_is_as_new():
    with pair() as net:
        before = snapshot(net.here)[1]
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        run("ip link del wan", net.here)
        add_devices(net.here, net.there, "wan")
        expect("no qdisc on wan" in dualpi2("status --json", net.here, code=1), "status takes it for the old one")
        tc("qdisc add dev wan clsact", net.here)
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        expect_equal(ifbs(net.here), {"dp2-wan": "dualpi2 of wan"})
        expect("dp2-wan" in tc("filter show dev wan ingress", net.here).stdout, "nothing leads to the ifb device")
        dualpi2("down wan", net.here)
        expect("clsact" in tc("qdisc show dev wan", net.here).stdout, "clsact was not ours")
        tc("qdisc del dev wan clsact", net.here)
        expect_equal(sorted(snapshot(net.here)[1].splitlines()), sorted(before.splitlines()))


@test("long names")
def up_long_names_have_ifb_devices_of_their_own():
    with pair(("averylongname-1", "averylongname-2")) as net:
        before = snapshot(net.here)
        for number in "12":
            dualpi2(f"up averylongname-{number} --download {number}mbit", net.here)
        expect_equal(sorted(ifbs(net.here).values()), ["dualpi2 of averylongname-1", "dualpi2 of averylongname-2"])
        for number in "21":
            dualpi2(f"down averylongname-{number}", net.here)
        expect_equal(snapshot(net.here), before)


@test("the state is lost")
def down_without_a_state_leaves_nothing():
    with pair() as net:
        before = snapshot(net.here)
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        shutil.rmtree(RUN)
        dualpi2("up wan --upload 5mbit --download 8mbit", net.here)
        expect_equal(ifbs(net.here), {"dp2-wan": "dualpi2 of wan"})
        shutil.rmtree(RUN)
        dualpi2("down wan", net.here)
        expect_equal(snapshot(net.here), before)


# What is said

REFUSED = {
    "rate_1bit": ("up wan --upload 1bit", 2, "8kbit to 1tbit"),
    "rate_10tbit": ("up wan --download 10tbit", 2, "8kbit to 1tbit"),
    "rate_nonsense": ("up wan --download fast", 2, "'fast' is no rate"),
    "rate_negative": ("up wan --download=-5mbit", 2, "'-5mbit' is no rate"),
    "rate_without_unit_prefix": ("up wan --download 5m", 2, "'5m' is no rate"),
    "rate_missing": ("up wan", 2, "--download RATE"),
    "preset_unknown": ("up wan --download 5mbit --link isdn", 2, "'isdn'"),
    "preset_twice": (["up", "wan", "--download", "5mbit", "--link", "docsis ethernet"], 2, "docsis and ethernet"),
    "overhead_huge": (["up", "wan", "--download", "5mbit", "--link", "overhead 2000"], 2, "-64 to 256"),
    "overhead_negative": (["up", "wan", "--download", "5mbit", "--link", "overhead -65"], 2, "-64 to 256"),
    "mpu_negative": (["up", "wan", "--download", "5mbit", "--link", "mpu -1"], 2, "0 to 256"),
    "rtt_long": ("up wan --download 5mbit --rtt 9s", 2, "1ms to 8.5s"),
    "rate_of_many_digits": ("up wan --download " + "9" * 5000, 2, "is no rate"),
    "rtt_of_many_digits": ("up wan --download 5mbit --rtt " + "9" * 5000 + "ms", 2, "is no time"),
    "link_apostrophe": (["up", "wan", "--download", "5mbit", "--link", "'docsis"], 2, "apostrophe"),
    "overhead_with_vlan": (["up", "wan", "--upload", "5mbit", "--link", "overhead 256 ether-vlan"], 2, "260"),
    "vlan_alone": (["up", "wan", "--download", "5mbit", "--link", "ether-vlan"], 2, "after a preset or an overhead"),
    "line_end": (["up", "wan", "--download", "5mbit", "--link", "docsis\x0bptm"], 2, "cannot be printed"),
    "rtt_nonsense": ("up wan --download 5mbit --rtt long", 2, "'long' is no time"),
    "bandwidth_as_an_option": ("up wan --download 5mbit -- bandwidth 7mbit", 2, "leave out bandwidth"),
    "device_missing": ("up nothere --download 5mbit", 1, "there is no device nothere"),
    "device_loopback": ("up lo --download 5mbit", 1, "loopback"),
    "device_down": ("up lan --download 5mbit", 1, "ip link set lan up"),
    "device_of_ours": ("up dp2-wan --download 5mbit", 1, "part of what dualpi2 did"),
    "device_missing_for_down": ("down nothere", 1, "there is no device nothere"),
    "persist_without_systemd": ("up wan --download 5mbit --persist", 1, "needs systemd"),
    "config_missing": ("up wan --from-config", 1, "/etc/dualpi2/wan.conf"),
    "status_of_nothing": ("status lan", 1, "nothing of dualpi2 is set on lan"),
}


@each(sorted(REFUSED))
def refused_CASE(name):
    line, code, text = REFUSED[name]
    with pair() as net:
        dualpi2("up wan --download 1mbit", net.here)
        run("ip link set lan down", net.here)
        before = snapshot(net.here)
        said = dualpi2(line, net.here, code=code)
        expect(text in said and said.count("\n") == 1, said)
        expect_equal(snapshot(net.here), before)
        dualpi2("down wan", net.here)


@test("overhead below zero")
def up_negative_overhead_is_taken():
    with pair() as net:
        dualpi2(["up", "wan", "--upload", "5mbit", "--link", "overhead -20 ether-vlan"], net.here)
        expect_equal(root(net.here, "wan")["options"]["overhead"], -16)
        dualpi2(["up", "wan", "--upload", "5mbit", "--link", "overhead -20"], net.here)
        expect_equal(root(net.here, "wan")["options"]["overhead"], -20)


MISSING = {
    "root": (dict(uid=65534), {}, "needs root"),
    "tc": (dict(env={"PATH": "/tmp/only-ip"}), {}, "no command tc"),
    "plugin": (dict(env={"TC_LIB_DIR": "/nonexistent"}), {}, "dualpi2-tools"),
    "bandwidth_in_tc": ({}, {"tc": 'case "$*" in *help*) echo "... dualpi2 [ step_thresh TIME ]"; exit 1 ;; esac; '
                                   'exec $REAL "$@"'}, "without `bandwidth`"),
    "ifb": ({}, {"ip": 'case "$*" in *"type ifb") echo "Error: Unknown device type." >&2; exit 2 ;; esac; '
                       'exec $REAL "$@"'}, "has no ifb"),
    "bandwidth_in_the_kernel": ({}, {"tc": 'case "$*" in "-json qdisc show"*) $REAL "$@" | '
                                           'sed "s/.bandwidth.:[0-9]*,*//g"; exit ;; esac; exec $REAL "$@"'},
                                "not this project's, or too old"),
}


@each(sorted(MISSING))
def missing_CASE_is_told(name):
    more, programs, text = MISSING[name]
    shutil.rmtree("/tmp/only-ip", ignore_errors=True)
    os.mkdir("/tmp/only-ip")
    os.symlink(shutil.which("ip"), "/tmp/only-ip/ip")
    if name == "tc" and (os.path.exists("/usr/sbin/tc") or os.path.exists("/sbin/tc")):
        # It is looked for there, too.
        hidden = os.path.realpath(shutil.which("tc"))
        places = {place for place in (shutil.which("tc"), "/usr/sbin/tc", "/sbin/tc") if os.path.exists(place)}
    else:
        hidden, places = None, ()
    with pair() as net, stand_in(**programs) as path:
        before = snapshot(net.here)
        moved = [(place, place + ".hidden") for place in {os.path.realpath(os.path.dirname(p)) + "/tc" for p in places}]
        if hidden:
            moved.append((hidden, hidden + ".hidden"))
        moved = sorted(set(moved))
        for old, new in moved:
            os.rename(old, new)
        try:
            said = dualpi2("up wan --upload 4mbit --download 8mbit", net.here, code=1,
                           path=path if "env" not in more or "PATH" not in more["env"] else None, **more)
        finally:
            for old, new in moved:
                os.rename(new, old)
        expect(text in said, said)
        expect_equal(snapshot(net.here), before)


@test("no module")
def missing_module_is_told():
    with pair() as net:
        before = snapshot(net.here)
        for _ in range(100):
            # Namespaces of earlier tests may still be on their way out.
            if not run("rmmod sch_dualpi2", check=False).returncode:
                break
            time.sleep(0.1)
        expect(not os.path.exists("/sys/module/sch_dualpi2"), "the module is in use")
        try:
            said = dualpi2("up wan --upload 4mbit --download 8mbit", net.here, code=1)
        finally:
            lib.load_module()
        expect("the kernel has no dualpi2" in said and "modprobe sch_dualpi2" in said, said)
        expect_equal(snapshot(net.here), before)


@test("the file of --persist")
def config_lines_are_read_and_bad_ones_told():
    os.makedirs("/etc/dualpi2", exist_ok=True)
    with pair() as net:
        try:
            for text, code, want in (
                    ("UPLOAD=4mbit\r\nLINK='docsis\tmpu 70'\r\n", 0, "upload 4mbit"),
                    ('UPLOAD="4mbit"\n# more\nDOWNLOAD=8mbit\nLINK="docsis ether-vlan"\nOPTIONS=\'target 9ms\'\n', 0,
                     "upload 4mbit download 8mbit"),
                    ("UPLOAD=4mbit\nSPEED=3\n", 1, "line 2"),
                    ("UPLOAD=4mbit\nLINK='docsis\x0bmpu 70'\n", 2, "cannot be printed"),
                    ("UPLOAD=4mbit\nLINK=\"'\"\n", 2, "apostrophe"),
                    ("UPLOAD=4mbit\nOPTIONS=\"'\"\n", 2, "apostrophe"),
                    ("UPLOAD=4mbit\nLINK=\xe4\n", 1, "no text"), ("UPLOAD=4mbit; rm x\n", 1, "line 1"),
                    ("UPLOAD=\n", 2, "--download RATE"), ("UPLOAD=4mbit\nLINK=isdn\n", 2, "isdn")):
                with open("/etc/dualpi2/wan.conf", "w", encoding="latin-1", newline="") as file:
                    file.write(text)
                said = dualpi2("up wan --from-config", net.here, code=code)
                expect(want in said, said)
            expect("docsis ether-vlan" in dualpi2("status wan", net.here), "link")
            expect("overhead 22 mpu 64" in tc("qdisc show dev wan", net.here).stdout, "overhead")
            dualpi2("down wan", net.here)
            expect(not os.path.exists("/etc/dualpi2"), "the file is left")
        finally:
            shutil.rmtree("/etc/dualpi2", ignore_errors=True)


@test("status")
def status_says_what_is_set_and_what_is_not():
    with pair() as net:
        expect("nothing is set" in dualpi2("status", net.here), "nothing")
        dualpi2("up wan --upload 4mbit --download 8mbit --link docsis", net.here)
        dualpi2("up lan --upload 1mbit", net.here)
        found = {one["device"]: one for one in json.loads(dualpi2("status --json", net.here))}
        expect_equal(sorted(found), ["lan", "wan"])
        expect_equal((found["wan"]["upload"]["rate"], found["wan"]["download"]["device"], found["wan"]["problems"]),
                     ("4mbit", "dp2-wan", []))
        tc("filter del dev wan ingress pref 3408", net.here)
        tc("qdisc del dev lan root", net.here)
        with in_netns(net.here):
            done = subprocess.run([*COMMAND, "status"], text=True, capture_output=True, check=False)
        expect_equal(done.returncode, 1)
        expect("lan: upload: no qdisc on lan; mend it with: dualpi2 up lan --upload 1mbit" in done.stdout, done.stdout)
        expect("wan: download: the filter of wan" in done.stdout and "--link docsis" in done.stdout, done.stdout)
        for one in found:
            mend = next(line.partition("mend it with: dualpi2 ")[2] for line in done.stdout.splitlines()
                        if line.startswith(one + ":") and "mend" in line)
            dualpi2(shlex.split(mend), net.here)
        dualpi2("status", net.here)
        for one in found:
            dualpi2("down " + one, net.here)


@test("the manual")
def manual_names_every_option_and_finding():
    from dualpi2 import cli
    from dualpi2.doctor import rules
    with open(os.path.join(ROOT, "tools/share/dualpi2.8"), encoding="ascii") as file:
        manual = file.read().replace("\\-", "-")
    with open(os.path.join(ROOT, "tools/share/dualpi2.bash-completion"), encoding="ascii") as file:
        completion = file.read()
    verbs = next(action for action in cli._parser()._actions if action.choices).choices
    found = [option for parser in verbs.values() for action in parser._actions for option in action.option_strings]
    found = sorted(set(found) - {"-h", "--help"}) + sorted(arguments.PRESETS)
    expect_equal([text for text in found if text not in completion], [], "not in the completion")
    found += [kind for kind, *_ in rules.RULES]
    expect_equal([text for text in found if text not in manual], [], "not in the manual")


if __name__ == "__main__":
    main()
