# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
"""`dualpi2 up --persist`, devices that change their names, and messages, on real devices in network namespaces."""

import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import time

from lib_up import (COMMAND, ROOT, RUN, add_devices, dualpi2, ifbs, old_kernel, pair, rename, root, snapshot, stand_in,
                    systemd, write)
import lib
from lib import each, expect, expect_equal, in_netns, main, run, tc, test
from dualpi2.up import arguments


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
            expect(("the former one is applied at boot" if before else "is not applied at boot") in said, said)
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
            fix = json.loads(dualpi2("status wan --json", net.here, code=1))[0]["fix"]
            dualpi2(fix.partition(" ")[2], net.here)
            expect(os.path.exists("/etc/dualpi2/wan.conf"), "the fix deletes what is persisted")
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
                expect("is not a name of a device" in said and said.count("\n") == 1, said)
            os.unlink("/etc/victim.conf")
    shutil.rmtree("/etc/dualpi2")


@test("a state of a namespace that had this number")
def state_of_another_namespace_is_not_ours():
    with pair() as net:
        with in_netns(net.here):
            number = os.stat("/proc/thread-self/ns/net").st_ino
        write(f"{RUN}/netns-{number}/wan.json", json.dumps({"device": "wan", "ifindex": 1}).encode())
        expect("no device is set up" in dualpi2("status", net.here), "the state of another namespace is used")
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
        expect_equal((found["problems"], found["fix"]), (["the device is gone"], "dualpi2 down wan"))
        expect_equal(found["mend"], found["fix"], "the key of version 2.4")
        dualpi2("down wan", net.here)
        expect_equal(ifbs(net.here), {})
        expect(not os.path.exists(RUN), "a state is left")
        said = dualpi2("down wan", net.here, code=1)
        expect("there is no device 'wan'" in said, said)


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
    "rate_nonsense": ("up wan --download fast", 2, "'fast' is not a rate"),
    "rate_negative": ("up wan --download=-5mbit", 2, "'-5mbit' is not a rate"),
    "rate_with_a_prefix_of_the_unit": ("up wan --download 5Mi", 2, "'5Mi' is not a rate"),
    "rate_in_kbit_of_sqm": ("up wan --download 950", 2, "write 950kbit"),
    "rate_missing": ("up wan", 2, "--download RATE"),
    "preset_unknown": ("up wan --download 5mbit --link isdn", 2, "'isdn'"),
    "preset_twice": (["up", "wan", "--download", "5mbit", "--link", "docsis ethernet"], 2, "'docsis' and 'ethernet'"),
    "overhead_huge": (["up", "wan", "--download", "5mbit", "--link", "overhead 2000"], 2, "-64 to 256"),
    "overhead_negative": (["up", "wan", "--download", "5mbit", "--link", "overhead -65"], 2, "-64 to 256"),
    "mpu_negative": (["up", "wan", "--download", "5mbit", "--link", "mpu -1"], 2, "0 to 256"),
    "rtt_keyword_misspelled": ("up wan --download 5mbit --rtt regoinal", 2, "did you mean 'regional'"),
    "rtt_long": ("up wan --download 5mbit --rtt 9s", 2, "1ms to 8.5s"),
    "rate_of_many_digits": ("up wan --download " + "9" * 5000, 2, "is not a rate"),
    "rtt_of_many_digits": ("up wan --download 5mbit --rtt " + "9" * 5000 + "ms", 2, "is not a time"),
    "link_apostrophe": (["up", "wan", "--download", "5mbit", "--link", "'docsis"], 2, "unclosed quotation mark"),
    "overhead_with_vlan": (["up", "wan", "--upload", "5mbit", "--link", "overhead 256 ether-vlan"], 2, "260"),
    "vlan_alone": (["up", "wan", "--download", "5mbit", "--link", "ether-vlan"], 2, "follow a preset or an overhead"),
    "line_end": (["up", "wan", "--download", "5mbit", "--link", "docsis\x0bptm"], 2, "invalid character"),
    "rtt_nonsense": ("up wan --download 5mbit --rtt long", 2, "'long' is not a time"),
    "bandwidth_as_an_option": ("up wan --download 5mbit -- bandwidth 7mbit", 2, "'bandwidth' must not stand after --"),
    "device_missing": ("up nothere --download 5mbit", 1, "there is no device 'nothere'"),
    "device_loopback": ("up lo --download 5mbit", 1, "loopback"),
    "device_down": ("up lan --download 5mbit", 1, "ip link set lan up"),
    "device_of_ours": ("up dp2-wan --download 5mbit", 1, "created by dualpi2"),
    "device_missing_for_down": ("down nothere", 1, "there is no device 'nothere'"),
    "persist_without_systemd": ("up wan --download 5mbit --persist", 1, "needs systemd"),
    "config_missing": ("up wan --from-config", 1, "/etc/dualpi2/wan.conf"),
    "status_of_nothing": ("status lan", 1, "dualpi2 is not set up on 'lan'"),
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
    "tc": (dict(env={"PATH": "/tmp/only-ip"}), {}, "command 'tc' not found"),
    "plugin": (dict(env={"TC_LIB_DIR": "/nonexistent"}), {}, "dualpi2-tools"),
    "bandwidth_in_tc": ({}, {"tc": 'case "$*" in *help*) echo "... dualpi2 [ step_thresh TIME ]"; exit 1 ;; esac; '
                                   'exec $REAL "$@"'}, "without `bandwidth`"),
    "ifb": ({}, {"ip": 'case "$*" in *"type ifb") echo "Error: Unknown device type." >&2; exit 2 ;; esac; '
                       'exec $REAL "$@"'}, "has no ifb device"),
    "bandwidth_in_the_kernel": ({}, {}, "not this project's, or too old"),
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
    old = old_kernel() if name == "bandwidth_in_the_kernel" else contextlib.nullcontext()
    with pair() as net, old, stand_in(**programs) as path:
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
                    ("UPLOAD=4mbit\nLINK='docsis\x0bmpu 70'\n", 2, "invalid character"),
                    ("UPLOAD=4mbit\nLINK=\"'\"\n", 2, "unclosed quotation mark"),
                    ("UPLOAD=4mbit\nOPTIONS=\"'\"\n", 2, "unclosed quotation mark"),
                    ("UPLOAD=4mbit\nLINK=\xe4\n", 1, "not valid UTF-8"), ("UPLOAD=4mbit; rm x\n", 1, "line 1"),
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
        expect("no device is set up" in dualpi2("status", net.here), "nothing")
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
        expect("fault lan: upload: no qdisc on lan\n  fix: dualpi2 up lan --upload 1mbit\n" in done.stdout, done.stdout)
        expect("wan: download: the filter on wan" in done.stdout and "--link docsis" in done.stdout, done.stdout)
        for fix in re.findall("^  fix: dualpi2 (.*)", done.stdout, re.M):
            dualpi2(shlex.split(fix), net.here)
        dualpi2("status", net.here)
        for one in found:
            dualpi2("down " + one, net.here)


@test("the manual")
def manual_names_every_option_and_finding():
    from dualpi2 import cli
    from dualpi2.doctor import rules
    with open(os.path.join(ROOT, "tools/share/dualpi2.8"), encoding="ascii") as file:
        manual = file.read().replace("\\-", "-")
    completion = ""
    for path in glob.glob(os.path.join(ROOT, "tools/completion/bash/*")):
        with open(path, encoding="ascii") as file:
            completion += file.read()
    verbs = next(action for action in cli.parser()._actions if action.choices).choices
    found = [option for parser in verbs.values() for action in parser._actions for option in action.option_strings]
    found = sorted(set(found) - {"-h", "--help"}) + [*verbs, *arguments.PRESETS, *arguments.RTTS]
    expect_equal([text for text in found if text not in completion], [], "not in the completion")
    found += [kind for kind, *_ in rules.RULES]
    expect_equal([text for text in found if text not in manual], [], "not in the manual")


if __name__ == "__main__":
    main()
