#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: quick kernel=debug kmemleak
# suite: long kernel=stock
"""The module: loading and unloading, default_qdisc, namespaces that are deleted.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time

import frames
import lib
from frames import ether, ipv4
from lib import Failure, expect, expect_equal, test
from packets import ECNS, Bed

MODULE = os.environ.get("DUALPI2_MODULE")
NAME = "sch_dualpi2"


def loaded():
    return os.path.exists(f"/sys/module/{NAME}")


def wait_unused(others=0):
    """Namespaces are taken apart in the background.  Others: users that there were before the test."""
    for _ in range(600):
        if lib.users() <= others:
            return
        time.sleep(0.05)
    raise Failure(f"{lib.users()} users of the module are left, of {others}")


@contextlib.contextmanager
def installed():
    """The module is not loaded, but is where modprobe looks for it, alone."""
    if not MODULE:
        raise lib.Skip("DUALPI2_MODULE does not say which module")
    release = os.uname().release
    root = f"/tmp/dualpi2-modules-{os.getpid()}-{next(Bed.serial)}"
    tree = f"{root}/lib/modules/{release}"
    os.makedirs(f"{tree}/updates")
    shutil.copy(MODULE, f"{tree}/updates/{NAME}.ko")
    for name in ("modules.builtin", "modules.order"):
        with open(f"{tree}/{name}", "w", encoding="ascii"):
            pass
    if loaded():
        wait_unused()
        lib.run(["rmmod", NAME])
    lib.run(["depmod", "-b", root, release])
    lib.run(["mount", "--bind", tree, f"/lib/modules/{release}"])
    try:
        yield
    finally:
        lib.run(["umount", f"/lib/modules/{release}"])
        shutil.rmtree(root)
        lib.load_module()


@test("C12")
def modinfo_shows_both_aliases_licence_and_version():
    if not MODULE:
        raise lib.Skip("DUALPI2_MODULE does not say which module")
    found = {}
    for line in lib.run(["modinfo", MODULE]).stdout.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), []).append(value.strip())
    expect_equal(sorted(found["alias"]), ["net-sch-dualpi2", "net-sch-dualpi2_mq", "sch_dualpi2", "sch_dualpi2_mq"],
                 "aliases")
    expect_equal(found["license"], ["GPL"], "licence")
    expect_equal(len(found["version"]), 1, "versions")
    expect(found["version"][0][0].isdigit(), f"version {found['version'][0]}")
    expect(found["description"][0] and found["author"][0], "no description or author")
    # On what notes the blocks that have run, if it is built for that.
    expect_equal(found.get("depends"), ["dualpi2_trace_pc" if "DUALPI2_TRACE_PC" in os.environ else ""], "depends")


@test("ee1ba0add3fb", needs="destructive")
def autoload_by_tc_add_without_modprobe():
    """With no options at all, and by a tc that does not know the qdisc."""
    with Bed() as bed:
        lib.tc("qdisc del dev out root", bed.netns)
        with installed():
            expect(not loaded(), "the module is loaded already")
            error, text = lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out",
                                         "10:", "root", "dualpi2", None)
            expect_equal((error, text), (0, ""), "add without TCA_OPTIONS")
            expect(loaded(), "the module is not loaded")
            bed.send()
            st = bed.stats()
            expect_equal((st["packets"], st["knobs"]["limit"]), (40, 10000), "packets, limit")
            lib.tc("qdisc del dev out root", bed.netns)
        with installed():
            with lib.in_netns(bed.netns):
                done = subprocess.run(["tc", "qdisc", "add", "dev", "out", "root", "handle", "10:", "dualpi2"],
                                      env=os.environ | {"TC_LIB_DIR": "/nonexistent"}, capture_output=True,
                                      text=True, check=False)
            expect_equal((done.returncode, done.stderr), (0, ""), "tc without the plugin")
            expect_equal(bed.stats()["kind"], "dualpi2", "kind")
            lib.tc("qdisc del dev out root", bed.netns)


@test("ee1ba0add3fb", "need 16", needs="destructive ext")
def autoload_by_default_qdisc_serves_new_devices_and_mq():
    path = "/proc/sys/net/core/default_qdisc"
    with open(path, encoding="ascii") as file:
        old = file.read()
    with Bed() as bed, contextlib.ExitStack() as stack:
        lib.tc("qdisc del dev out root", bed.netns)
        # Loads its module before the search path has this module only.
        frames.Tap(bed.netns, "tap9").close()
        with installed():
            expect(not loaded(), "the module is loaded already")
            try:
                with open(path, "w", encoding="ascii") as file:
                    file.write("dualpi2")
                expect(loaded(), "the module is not loaded")
                for name, multi in (("tap1", 0), ("tap2", 4)):
                    tap = frames.Tap(bed.netns, name, multi=multi)
                    stack.callback(tap.close)
                    kinds = [q["kind"] for q in lib.qdisc_dump(bed.netns, name)]
                    if not multi:
                        expect_equal(kinds, ["dualpi2"], "qdiscs of a new device")
                    else:
                        # As many transmit queues as the device can have, four of them in use.
                        expect_equal((kinds[0], set(kinds[1:]), len(kinds) > 4), ("mq", {"dualpi2"}, True),
                                     "qdiscs of a device with four queues")
                    sender = frames.Sender(bed.netns, name)
                    for number in range(20):
                        sender.send(ether(number, 0x0800, ipv4(ecn=ECNS[number % 4])))
                    # These qdiscs have no handle: a small priority, as from the TOS byte, is no class.
                    for priority in (1, 2, 3):
                        sender.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
                        for ecn in ECNS:
                            sender.send(ether(20 + 4 * priority + ecn, 0x0800, ipv4(ecn=ecn)))
                    sender.close()
                    expect_equal(len(tap.drain(0.1)), 32, "packets through")
                    counts = [lib.parse_xstats(q["app"]) for q in lib.qdisc_dump(bed.netns, name)
                              if q["kind"] == "dualpi2"]
                    expect_equal((sum(st["c"]["sent"] for st in counts), sum(st["l"]["sent"] for st in counts)),
                                 (16, 16), "Classic and L4S packets that dualpi2 sent")
            finally:
                with open(path, "w", encoding="ascii") as file:
                    file.write(old)
                stack.close()


@test("module unload in use", needs="destructive")
def rmmod_while_in_use_refused():
    with Bed() as bed:
        bed.send()
        expect(lib.users() >= 1, "the module has no users")
        done = lib.run(["rmmod", NAME], check=False)
        expect(done.returncode != 0 and "in use" in done.stderr, f"rmmod: {done.returncode} {done.stderr}")
        bed.send()
        time.sleep(1)
        expect_equal(bed.stats()["packets"], 80, "packets")
        lib.tc("qdisc del dev out root", bed.netns)
        wait_unused()
        if not MODULE:
            return
        lib.run(["rmmod", NAME])
        expect(not loaded(), "still loaded")
        error, _ = lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out", "10:",
                                  "root", "no_such_qdisc", None)
        expect_equal(error, 2, "error of an unknown qdisc")
        lib.load_module()


@test("C12", needs="destructive ext")
def module_beside_another_dualpi2_is_refused_and_says_why():
    """As on a kernel with a dualpi2 of its own, which is played by this one under another name."""
    if not MODULE:
        raise lib.Skip("DUALPI2_MODULE does not say which module")
    other = f"/tmp/sch_dualpiX-{os.getpid()}.ko"
    with open(MODULE, "rb") as file:
        module = file.read()
    with open(other, "wb") as file:
        file.write(module.replace(b"sch_dualpi2\0", b"sch_dualpiX\0"))
    wait_unused()
    lib.run(["rmmod", NAME])
    lib.run(["insmod", other])
    try:
        with open("/dev/kmsg", "rb", buffering=0) as log:
            log.seek(0, os.SEEK_END)
            os.set_blocking(log.fileno(), False)
            done = lib.run(["insmod", MODULE], check=False)
            expect(done.returncode != 0 and "busy" in done.stderr, f"insmod: {done.returncode} {done.stderr}")
            expect(not loaded(), "the module is loaded")
            said = b""
            while record := log.read(8192):
                said += record
        expect(b"sch_dualpi2: the kernel has a dualpi2 already" in said, f"in the kernel log: {said}")
    finally:
        lib.run(["rmmod", "sch_dualpiX"])
        os.unlink(other)
        lib.load_module()


def packets_in_memory():
    """Packet heads that the kernel holds; per-cpu slabs make it imprecise by some hundred."""
    with open("/proc/slabinfo", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file
                   if line.startswith(("skbuff_head_cache", "skbuff_fclone_cache")))


@test("lifetime", needs="virtual_time")
def qdisc_added_and_deleted_200_times_with_backlog_leaks_nothing():
    """Each time 50 packets are queued when it goes: a leak would be 10000 packets."""
    with Bed("8kbit") as bed:
        before = packets_in_memory()
        for n in range(200):
            bed.send(count=20)
            st = bed.stats()
            expect(st["qlen"] >= 40, f"only {st['qlen']} queued")
            if n % 2:
                lib.tc("qdisc del dev out parent 1:10", bed.netns)
                left = lib.stats(bed.netns, "out", "1:")
                expect_equal((left["qlen"], left["backlog"]), (0, 0), "left in htb")
                expect_equal(lib.tc_request(bed.netns, lib.RTM_NEWQDISC, lib.NLM_F_CREATE | lib.NLM_F_EXCL, "out",
                                            "10:", "1:10", "dualpi2", None), (0, ""), "add")
            else:
                expect_equal(lib.tc_request(bed.netns, lib.RTM_DELQDISC, 0, "out", "1:", "root"), (0, ""), "delete")
                bed.add()
        lib.tc("qdisc del dev out root", bed.netns)
        time.sleep(1)
        wait_unused()
        grown = packets_in_memory() - before
        lib.note(f"{grown} packets more in memory than before")
        # KASAN keeps what is freed for a while; its kernel has kmemleak, which scripts/vm/init.sh asks at the end.
        kept = os.path.exists("/sys/kernel/debug/kmemleak")
        expect(grown < 1000 or kept, f"{grown} packets more in memory than before 10000 were queued and thrown away")


@test("netns teardown under traffic", needs="")
def netns_deleted_under_traffic_frees_everything():
    """The sender is still sending when the namespace loses its name, and is killed after it: the
    kernel takes devices, qdiscs and queued packets apart.
    """
    others = lib.users()

    def end(pid):
        os.kill(pid, 9)
        os.waitpid(pid, 0)

    for n in range(8):
        with contextlib.ExitStack() as stack:
            with Bed("100kbit") as bed:
                lib.tc("filter add dev out parent 10: matchall classid 10:1", bed.netns)
                pid = os.fork()
                if not pid:
                    try:
                        with lib.in_netns(bed.netns):
                            sender = frames.Sender(None, "out")
                            while True:
                                for ecn in ECNS:
                                    sender.send(ether(n, 0x0800, ipv4(ecn=ecn)))
                                time.sleep(0.001)
                    finally:
                        os._exit(0)
                stack.callback(end, pid)
                for _ in range(100):
                    time.sleep(0.2)
                    if bed.stats()["qlen"] > 50:
                        break
                else:
                    raise Failure("too few packets queued")
            # The namespace's name is gone, and the socket of this test in it.
            time.sleep(0.05 * n)
    wait_unused(others)


if __name__ == "__main__":
    if not hasattr(os, "fork"):
        sys.exit("needs fork()")
    lib.main()
