#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
"""dualpi2 doctor: each fault is made in a namespace, must be named, and must be gone after the command that the doctor
suggests has run. KTAP on stdout. Its rules without a kernel are in test_doctor_rules.py.

The doctor looks from the router of lib.Net; what repairs a fault is the doctor's command, unchanged.
"""

import contextlib
import json
import os
import re
import socket
import threading
import time

from lib_doctor import DUALPI2, L4S, LINK, ask, expect_first, expect_repaired, flowing, ids, ifb, qdisc, repair
from lib import (ECT0, ECT1, NOT_ECT, Net, Skip, Stream, expect, expect_equal, in_netns, load_module, main, note,
                 run, shared_net, tc, test)


# What is set, or missing

@test("no-device")
def device_missing_is_named_with_those_there():
    net = shared_net()
    expect_first(ask(net.rtr, "eth7"), "no-device", "down", "up")


@test("device-down")
def device_down_is_named_and_mended():
    net = shared_net()
    run("ip link add d0 type dummy", net.rtr)
    try:
        first = expect_first(ask(net.rtr, "d0", 1), "device-down")
        repair(first, net.rtr)
        expect("device-down" not in ids(ask(net.rtr, "d0", 1)), "still down")
    finally:
        run("ip link del d0", net.rtr)


@test("no-module")
def module_missing_is_named():
    net = shared_net()
    if run("modinfo -F filename sch_dualpi2", check=False).returncode == 0:
        raise Skip("this kernel has an in-tree dualpi2 installed")
    run("rmmod sch_dualpi2")
    try:
        expect_first(ask(net.rtr, watch=1), "no-module", "dualpi2-dkms")
    finally:
        load_module()
    expect("no-module" not in ids(ask(net.rtr, watch=1)), "still missing")


@test("module-not-ours")
def module_of_the_kernel_is_told_from_ours():
    net = shared_net()
    own = os.environ.get("DUALPI2_IN_TREE") or run("modinfo -F filename sch_dualpi2", check=False).stdout.strip()
    if not own:
        raise Skip("this kernel has no in-tree dualpi2; give DUALPI2_IN_TREE, as scripts/run does")
    for module in (own, None):
        run("rmmod sch_dualpi2", check=False)
        try:
            if module:
                run(["insmod", module])
            else:
                load_module()
            with qdisc(net, "handle 1: htb default 10"):
                tc("class add dev down parent 1: classid 1:10 htb rate 10mbit burst 1514 cburst 1514", net.rtr)
                tc("qdisc add dev down parent 1:10 handle 10: dualpi2", net.rtr)
                with flowing(net, *L4S):
                    found = ask(net.rtr)
                if module:
                    expect_first(found, "module-not-ours", "dualpi2-dkms")
                else:
                    expect_equal(found["verdict"], "healthy", f"with this module ({ids(found)})")
        finally:
            tc("qdisc del dev down root", net.rtr, check=False)
            if module:
                run("rmmod sch_dualpi2", check=False)
    load_module()


@test("tc-not-ours")
def tc_without_the_plugin_is_named():
    net = shared_net()
    with net.aqm(LINK), flowing(net, *L4S):
        expect_first(ask(net.rtr, env=["env", "TC_LIB_DIR=/nonexistent"]), "tc-not-ours", "q_dualpi2.so")
        expect("tc-not-ours" not in ids(ask(net.rtr)), "with the plugin, too")


@test("no-dualpi2")
def other_qdisc_is_named_and_replaced():
    net = shared_net()
    with qdisc(net, "fq_codel"):
        found = ask(net.rtr, watch=1)
        expect_equal((found["verdict"], ids(found)), ("unknown", []), "without traffic")
        expect("fq_codel" in found["doubts"][0], str(found["doubts"]))
        with flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "no-dualpi2", "fq_codel", "dualpi2 up down --download RATE")
        expect_equal((first["fixes"], first["condition"]), (False, "you know the rates of the link"))
        run(["ip", "netns", "exec", net.rtr, DUALPI2, *first["command"].replace("RATE", "10mbit").split()[1:]])
        try:
            expect("no-dualpi2" not in ids(ask(net.rtr)), "still there")
        finally:
            run(["ip", "netns", "exec", net.rtr, DUALPI2, "down", "down"])


@test("no-dualpi2")
def other_qdisc_below_a_shaper_is_replaced_at_its_place():
    net = shared_net()
    with qdisc(net, "handle 1: htb default 10"):
        tc("class add dev down parent 1: classid 1:10 htb rate 10mbit burst 1514 cburst 1514", net.rtr)
        tc("qdisc add dev down parent 1:10 fq_codel", net.rtr)
        with flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "no-dualpi2", "htb 1:", "parent 1:10 dualpi2")
        found = expect_repaired(net, "no-dualpi2", first)
        expect_equal(found["verdict"], "healthy", "after that")


@test("no-dualpi2")
def class_with_the_kernels_own_queue_is_given_a_dualpi2_if_it_is_known():
    net = shared_net()
    with qdisc(net, "handle 1: htb default 10"):
        tc("class add dev down parent 1: classid 1:1 htb rate 10mbit burst 1514 cburst 1514", net.rtr)
        tc("class add dev down parent 1:1 classid 1:10 htb rate 10mbit burst 1514 cburst 1514", net.rtr)
        with flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "no-dualpi2", "htb 1:", "parent 1:10 dualpi2")
            tc("class add dev down parent 1:1 classid 1:20 htb rate 5mbit burst 1514 cburst 1514", net.rtr)
            other = expect_first(ask(net.rtr), "no-dualpi2", "tc -s class show dev down")
            expect(not other["fixes"], "which of the two?")
            repair(first, net.rtr)
            time.sleep(1)
            found = ask(net.rtr)
            expect_equal(found["verdict"], "healthy", f"after that ({ids(found)})")


@test("no-dualpi2")
def classes_of_a_prio_are_left_alone():
    net = shared_net()
    with qdisc(net, "handle 1: prio"):
        first = expect_first(ask(net.rtr, watch=1), "no-dualpi2", "prio 1:", "tc -s class show dev down")
        expect(not first["fixes"], "it would be removed")


@test("no-dualpi2")
def cake_with_a_bandwidth_is_replaced_with_the_same():
    net = shared_net()
    for args, want in (("", ""), ("docsis ingress", " overhead 18 mpu 64 noatm ingress"),
                        ("overhead -4 atm", " overhead -4 mpu 0 atm")):
        with qdisc(net, f"cake bandwidth 10mbit {args}"):
            first = expect_first(ask(net.rtr, watch=1), "no-dualpi2", "cake")
            expect_equal(first["command"], f"tc qdisc replace dev down root dualpi2 bandwidth 10mbit{want}", args)
            repair(first, net.rtr)
            expect(want.replace("mpu 0 ", "") in tc("qdisc show dev down", net.rtr).stdout.replace("mpu 0 ", ""), args)


@test("no-device")
def device_that_goes_away_meanwhile_is_named():
    net = shared_net()
    run("ip link add d1 type dummy", net.rtr)
    run("ip link set d1 up", net.rtr)
    answer = []
    thread = threading.Thread(target=lambda: answer.append(ask(net.rtr, "d1", 3)))
    thread.start()
    time.sleep(1.5)
    run("ip link del d1", net.rtr)
    thread.join()
    expect_first(answer[0], "no-device", "disappeared")


@test("l4s-off")
def l4s_switched_off_is_named_and_mended():
    net = shared_net()
    with net.aqm(LINK, l4s=0), flowing(net, *L4S):
        first = expect_first(ask(net.rtr), "l4s-off", "no_l4s")
        repair(first, net.rtr)
        expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")


@test("wrong-mask")
def mask_that_excludes_ect1_is_named_and_mended():
    net = shared_net()
    with net.aqm(LINK, ecn_mask=2), flowing(net, *L4S):
        first = expect_first(ask(net.rtr), "wrong-mask", "cla_ect")
        repair(first, net.rtr)
        expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")


@test("wrong-mask")
def mask_that_takes_classic_ecn_is_named_where_there_is_some():
    net = shared_net()
    with net.aqm(LINK, ecn_mask=3), flowing(net, *L4S):
        expect_equal(ids(ask(net.rtr)), [], "without ECT(0)")
    with net.aqm(LINK, ecn_mask=3), flowing(net, *L4S, Stream("e", ecn=ECT0, bps=1e6)):
        expect_first(ask(net.rtr), "wrong-mask", "any_ect", "ECT(0)")


@test("filter")
def filter_to_the_classic_class_is_named_and_removed():
    net = shared_net()
    with net.aqm(LINK) as q, flowing(net, *L4S):
        q.filter("protocol ip pref 7 flower ip_proto udp classid 10:3")
        first = expect_first(ask(net.rtr), "filter", "pref 7")
        expect_equal((first["level"], first["fixes"]), ("note", False), "it can be on purpose")
        tc(f"filter del dev {q.dev} parent {q.handle} pref 7", net.rtr)
        found = ask(net.rtr)
        expect_equal((found["verdict"], found["notes"]), ("healthy", []), "after that")


# The bottleneck

@test("no-queue")
def unshaped_device_has_no_queue_and_gets_one():
    net = shared_net()
    with qdisc(net, "handle 10: dualpi2"), flowing(net, *L4S):
        first = expect_first(ask(net.rtr), "no-queue", "tc qdisc change dev down root handle 10: dualpi2 bandwidth")
        expect_equal(first["fixes"], False, "a guess")
        expect("is the rate of the link" in first["condition"], first["condition"])
        # 95 % of what these streams send, so that they have a queue now.
        run(["ip", "netns", "exec", net.rtr, *first["command"].split()])
        time.sleep(1)
        found = ask(net.rtr)
        expect_equal(found["verdict"], "healthy", f"after that ({ids(found)}, {found['doubts']})")


@test("shaper-elsewhere")
def shaper_below_a_vlan_is_named_and_given_a_dualpi2():
    net = shared_net()
    to_vlan = [Stream("l", ecn=ECT1, bps=4e6, dst="10.3.0.1"), Stream("c", bps=6.3e6, dst="10.3.0.1")]
    net.vlan(5)
    run("ip route add 10.3.0.0/24 via 10.1.0.2", net.snd)
    try:
        with qdisc(net, "handle 5: dualpi2", "down.5"), \
             qdisc(net, "handle 1: tbf rate 10mbit burst 1600 limit 50000"), flowing(net, *to_vlan):
            first = expect_first(ask(net.rtr, "down.5"), "shaper-elsewhere", "tbf 1: on down (a lower device)",
                                 "parent 1:1")
            repair(first, net.rtr)
            time.sleep(1)
            found = ask(net.rtr, "down.5")
            note(found["doubts"])
            expect_equal((found["verdict"], ids(found)), ("unknown", []), "there now")
            expect("dualpi2 doctor down" in found["doubts"][0], "where to ask next is not said")
            expect_equal(ask(net.rtr)["verdict"], "healthy", "where it is now")
    finally:
        run("ip link del down.5", net.rtr, check=False)
        run("ip link del eth0.5", net.rcv, check=False)


@test("shaper-elsewhere")
def shaper_on_the_port_of_a_bridge_is_named():
    with Net() as net:
        run(["ip", "-batch", "-"], net.rtr, stdin="""\
link add br0 type bridge
link set dev br0 address 02:00:00:00:02:02 up
addr del 10.2.0.2/24 dev down
link set dev down master br0
addr add 10.2.0.2/24 dev br0
neigh add 10.2.0.1 lladdr 02:00:00:00:02:01 nud permanent dev br0
""")
        with qdisc(net, "handle 5: dualpi2", "br0"), qdisc(net, "handle 1: htb default 10"):
            tc("class add dev down parent 1: classid 1:10 htb rate 10mbit burst 1514 cburst 1514", net.rtr)
            tc("qdisc add dev down parent 1:10 handle 20: fq_codel", net.rtr)
            with flowing(net, *L4S):
                first = expect_first(ask(net.rtr, "br0"), "shaper-elsewhere", "htb 1: on down (a lower device)",
                                     "parent 1:10")
                repair(first, net.rtr)
                expect("shaper-elsewhere" not in ids(ask(net.rtr, "br0")), "still there")


@test("shaper-elsewhere")
def shaper_on_the_ifb_that_receives_is_named():
    net = shared_net()
    with ifb(net, "handle 1: tbf rate 10mbit burst 1600 limit 50000"), qdisc(net, "handle 5: dualpi2"), \
         flowing(net, *L4S):
        first = expect_first(ask(net.rtr), "shaper-elsewhere", "tbf 1: on ifb7 (another device)")
        repair(first, net.rtr)
        expect("shaper-elsewhere" not in ids(ask(net.rtr)), "still there")


@test("shaper-elsewhere")
def shaper_of_another_link_is_no_fault_of_this_one():
    net = shared_net()
    with net.aqm(LINK), qdisc(net, "tbf rate 100kbit burst 1600 limit 5000", "up"), flowing(net, *L4S):
        expect_equal(ids(ask(net.rtr)), [], "findings")


@test("shaper-elsewhere")
def shaper_beyond_a_veth_is_named_with_its_namespace():
    with Net() as net:
        run(["ip", "-batch", "-"], net.rcv, stdin="""\
link add d9 type dummy
link set dev d9 up
addr add 10.9.0.1/24 dev d9
neigh add 10.9.0.2 lladdr 02:00:00:00:09:02 nud permanent dev d9
""")
        run("ip route add 10.9.0.0/24 via 10.2.0.1", net.rtr)
        tc("qdisc add dev d9 root handle 1: tbf rate 10mbit burst 1600 limit 50000", net.rcv)
        with qdisc(net, "handle 5: dualpi2"), udp(net, "10.9.0.2", ECT1, 500), udp(net, "10.9.0.2", NOT_ECT, 900):
            first = expect_first(ask(net.rtr), "shaper-elsewhere", "tbf 1: on d9", "namespace " + net.rcv,
                                 f"ip netns exec {net.rcv} tc qdisc replace dev d9 parent 1:1 dualpi2")
            repair(first, net.rtr)
            time.sleep(1)
            found = ask(net.rtr)
            expect_equal((found["verdict"], ids(found)), ("unknown", []), "there now")
            expect(f"ip netns exec {net.rcv} dualpi2 doctor d9" in found["doubts"][0], str(found["doubts"]))


@test("parent-burst")
def burst_of_htb_is_named_and_mended():
    net = shared_net()
    with qdisc(net, "handle 1: htb default 10"):
        tc("class add dev down parent 1: classid 1:10 htb rate 10mbit burst 64k cburst 64k prio 3 quantum 3000 "
           "overhead 18 mpu 64", net.rtr)
        tc("qdisc add dev down parent 1:10 handle 10: dualpi2", net.rtr)
        with flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "parent-burst", "52.4ms",
                                 "burst 1514 cburst 1514 prio 3 quantum 3000 overhead 18 mpu 64")
            repair(first, net.rtr)
            found = ask(net.rtr)
            expect_equal(found["verdict"], "healthy", f"after that ({ids(found)})")
            shown = tc("class show dev down", net.rtr).stdout
            # Less what the kernel's ticks round off.
            expect(re.search(r"prio 3 rate 10Mbit overhead 18 (mpu 64 )?ceil 10Mbit .*burst 151[0-4]b cburst 151[0-4]b",
                             shown), shown)


@test("parent-burst")
def burst_of_tbf_is_named_and_mended():
    net = shared_net()
    with qdisc(net, "handle 1: tbf rate 10mbit burst 50000 limit 100000 peakrate 100mbit "
               "minburst 1600 overhead 18 mpu 64"):
        tc("qdisc add dev down parent 1:1 handle 10: dualpi2", net.rtr)
        with flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "parent-burst", "40.0ms", "tbf rate 10mbit burst 1514",
                                 "overhead 18 mpu 64 peakrate 100mbit minburst 1")
            repair(first, net.rtr)
            time.sleep(1)
            expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")


@test("parent-burst")
def burst_of_one_packet_on_a_slow_link_is_no_fault():
    net = shared_net()
    slow = (Stream("l", ecn=ECT1, bps=4e5, jitter=1), Stream("c", bps=6.3e5, jitter=1))
    with net.aqm(1e6), flowing(net, *slow):
        expect("parent-burst" not in ids(ask(net.rtr, watch=4)), "two packets are a burst")


@test("step-huge")
def step_beyond_the_target_is_named_and_mended():
    net = shared_net()
    with net.aqm(LINK, step_thresh_us=50000), flowing(net, *L4S):
        first = expect_first(ask(net.rtr), "step-huge", "50.0ms")
        repair(first, net.rtr)
        expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")


@test("gro-step-packets")
def step_in_packets_with_gro_is_named_and_mended():
    with Net(offloads=True) as net:
        with net.aqm(LINK, step_thresh_pkts=10), flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "gro-step-packets", "10 packets")
            repair(first, net.rtr)
            expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")


@test("gro-step-packets")
def step_in_packets_without_offloads_is_no_fault():
    net = shared_net()
    with net.aqm(LINK, step_thresh_pkts=10), flowing(net, *L4S):
        expect_equal(ids(ask(net.rtr)), [], "findings")


@test("overload")
def overload_is_named_with_the_flow_that_makes_it():
    net = shared_net()
    flood = (Stream("flood", ecn=ECT1, bps=30e6, jitter=1), Stream("c", bps=1e6))
    with net.aqm(LINK), flowing(net, *flood):
        time.sleep(3)
        first = expect_first(ask(net.rtr), "overload", "dst_port 5000")
        repair(first, net.rtr)
        time.sleep(3)
        expect("overload" not in ids(ask(net.rtr)), "still there")


@test("unparsed")
def packets_without_an_ip_header_are_named():
    net = shared_net()
    with net.aqm(LINK), mpls(net):
        first = expect_first(ask(net.rtr), "unparsed", "MPLS")
        expect(not first["fixes"], "no fix is known here")


@contextlib.contextmanager
def mpls(net, pps=1000):
    """Frames of MPLS through the router's `down`."""
    frame = bytes.fromhex("020000000201020000000202" "8847" "00040140") + bytes(1000)
    with in_netns(net.rtr):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.bind(("down", 0))
    with sending(sock, lambda: sock.send(frame), pps):
        yield


@contextlib.contextmanager
def udp(net, dst, ecn, pps):
    """Datagrams from snd to where nobody receives them."""
    with in_netns(net.snd):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
    with sending(sock, lambda: sock.sendto(bytes(958), (dst, 5000)), pps):
        yield


@contextlib.contextmanager
def sending(sock, send, pps):
    """Do so from a thread."""
    stop = threading.Event()
    sock.setblocking(False)

    def work():
        while not stop.wait(0.02):
            for _ in range(pps // 50):
                with contextlib.suppress(OSError):
                    send()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sock.close()


# The command itself

@test("doctor")
def text_is_a_line_with_the_command_below_it():
    net = shared_net()
    with net.aqm(LINK, l4s=0), flowing(net, *L4S):
        done = run(f"ip netns exec {net.rtr} {DUALPI2} doctor down --watch 2s", check=False)
        expect_equal((done.returncode, done.stderr), (1, ""))
        expect_equal(done.stdout.count("\n"), 2, done.stdout)
        expect(done.stdout.startswith("fault l4s-off down: ") and "\n  fix: tc qdisc change dev down parent 1:10 "
               "handle 10: dualpi2 l4s\n" in done.stdout, done.stdout)
        done = run(f"ip netns exec {net.rtr} {DUALPI2} doctor down --watch 2 -v", check=False)
        for kind in ("no-device", "no-module", "l4s-off", "no-queue", "bleached", "parent-burst"):
            expect(f" {kind} " in done.stdout, f"{kind} is not listed: {done.stdout}")


@test("doctor")
def usage_and_missing_rights_are_one_line():
    net = shared_net()
    for args, code in (("--watch 0 down", 2), ("--fix", 2), ("--whatch 2 down", 2)):
        done = run(f"ip netns exec {net.rtr} {DUALPI2} doctor {args}", check=False)
        expect_equal((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), args)
    done = run(["setpriv", "--reuid=65534", "--clear-groups", DUALPI2, "doctor", "lo"], check=False)
    expect_equal((done.returncode, done.stdout), (3, ""))
    expect("sudo dualpi2 doctor lo" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


@test("doctor")
def fix_runs_one_command_and_checks_again():
    net = shared_net()
    command = f"ip netns exec {net.rtr} {DUALPI2} doctor down --watch 2 --fix"
    with net.aqm(LINK, l4s=0), flowing(net, *L4S):
        done = run(command, check=False)
        expect_equal((done.returncode, done.stderr.count("\n")), (1, 1), "nobody to ask: " + done.stderr)
        expect("no_l4s" in tc("qdisc show dev down", net.rtr).stdout, "changed without a confirmation")
        done = run(command + " --yes", check=False)
        expect_equal((done.returncode, done.stderr), (0, ""), done.stdout)
        lines = done.stdout.split("\n")
        expect(lines[2].startswith("run: tc qdisc change dev down ") and lines[3] == "fixed l4s-off down" and
               lines[4].startswith("healthy down: "), done.stdout)


@test("doctor -n")
def netns_is_checked_and_fixed_from_outside():
    net = shared_net()
    words = f"{DUALPI2} doctor down --watch 2 -n {net.rtr}"
    with net.aqm(LINK, l4s=0), flowing(net, *L4S):
        done = run(words, check=False)
        command = [line for line in done.stdout.split("\n") if line.startswith("  fix: ")][0].removeprefix("  fix: ")
        expect(command.startswith(f"ip netns exec {net.rtr} tc qdisc change dev down "), done.stdout)
        done = run(words + " --fix --yes", check=False)
        expect_equal((done.returncode, done.stderr), (0, ""), done.stdout)
        expect(f"\nrun: {command}\nfixed l4s-off down\nhealthy down: " in done.stdout, done.stdout)
    done = run(f"{DUALPI2} doctor down -n nowhere", check=False)
    expect_equal((done.returncode, done.stderr), (3, "dualpi2 doctor: there is no network namespace nowhere; "
                                                     "`ip netns` lists them\n"))


@test("doctor")
def devices_with_dualpi2_or_a_default_route_are_checked_without_a_name():
    net = shared_net()
    for device in ("d2", "d3"):
        run(f"ip link add {device} type dummy", net.rtr)
        run(f"ip link set {device} up", net.rtr)
    try:
        run("ip route add default dev d2", net.rtr)
        with ifb(net, "handle 10: dualpi2 bandwidth 10mbit ingress"), qdisc(net, "handle 10: dualpi2"):
            done = run(f"ip netns exec {net.rtr} {DUALPI2} doctor -j --watch 1", check=False)
            found = json.loads(done.stdout)
            expect_equal([one["device"] for one in found], ["d2", "down", "up"], "devices")
            expect_equal(done.returncode, 1, "the worst: d2 has no queue")
            expect_equal([ids(one)[:1] for one in found], [["no-dualpi2"], [], []], "findings")
    finally:
        for device in ("d2", "d3"):
            run(f"ip link del {device}", net.rtr)


@test("l4s-off")
def what_up_made_is_repaired_by_set():
    net = shared_net()
    run(f"ip netns exec {net.rtr} {DUALPI2} up down --upload 10mbit --link docsis -- no_l4s target 20ms")
    try:
        with flowing(net, *L4S):
            first = expect_first(ask(net.rtr), "l4s-off", "dualpi2 set down -- l4s")
            run(["ip", "netns", "exec", net.rtr, DUALPI2, *first["command"].split()[1:]])
            expect_equal(ask(net.rtr)["verdict"], "healthy", "after that")
        shown = tc("qdisc show dev down", net.rtr).stdout
        expect("overhead 18" in shown and "target 20ms" in shown, "lost: " + shown)
    finally:
        run(f"ip netns exec {net.rtr} {DUALPI2} down down")


@test("doctor")
def nothing_is_changed_or_sent():
    net = shared_net()
    with net.aqm(LINK):
        shown = [run(command, net.rtr).stdout for command in ("ip -d link", "tc qdisc show", "nft list ruleset")]
        counts = [net_counts(net)]
        ask(net.rtr)
        counts.append(net_counts(net))
        expect_equal(counts[1], counts[0], "packets of the devices")
        after = [run(command, net.rtr).stdout for command in ("ip -d link", "tc qdisc show", "nft list ruleset")]
        expect_equal(after, shown, "devices, qdiscs and rules")


def net_counts(net):
    """Packets of each device of the router."""
    return {link["ifname"]: [link["stats64"][side]["packets"] for side in ("rx", "tx")]
            for link in json.loads(run("ip -j -s link", net.rtr).stdout)}


if __name__ == "__main__":
    main()
