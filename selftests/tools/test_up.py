# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
"""`dualpi2 up`, `down` and `status` on real devices in network namespaces.

Not here: the unit of systemd (test_systemd.sh), OpenWrt's script (test_qos.sh), doctor (test_doctor.py).
"""

import contextlib
import os
import re
import subprocess
import time
import types

from lib_up import COMMAND, counting, dualpi2, ifbs, old_kernel, pair, root, snapshot, stand_in, write
import lib
from lib import (ECT1, NOT_ECT, Net, Stream, Traffic, each, expect, expect_between, expect_equal, in_netns, main,
                 run, tc, test)
from dualpi2.up import arguments


# What it does

@test("up: both directions, L4S queues in use")
def up_both_directions_shapes_each_at_its_rate():
    with Net() as net:
        # The bursts are such as queue protection redirects.
        dualpi2("up down --upload 20mbit --download 30mbit -- no_qprotect", net.rtr)
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


@test()
def up_protects_the_l4s_queue_unless_told_otherwise():
    with pair() as net:
        for after, shown in (("", "tuple"), ("-- no_qprotect", "off"), ("-- qprotect_hash", "hash"), ("", "tuple")):
            dualpi2(f"up wan --upload 5mbit --download 5mbit {after}", net.here)
            expect_equal({root(net.here, dev)["options"]["qprotect"] for dev in ("wan", "dp2-wan")}, {shown}, after)


@each(sorted(arguments.PRESETS))
def up_preset_CASE_is_that_of_tc(preset):
    with pair() as net:
        dualpi2(["up", "wan", "--upload", "1mbit", "--link", preset + " ether-vlan"], net.here)
        tc(f"qdisc add dev lan root handle d50: dualpi2 bandwidth 1mbit {preset} ether-vlan qprotect", net.here)
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
        tc("qdisc add dev lan root dualpi2 bandwidth 4mbit qprotect", net.here)
        expect_equal(root(net.here, "wan")["options"], root(net.here, "lan")["options"])
        expect_equal(root(net.here, "wan")["handle"], "d51:")
        dualpi2("down wan", net.here)
        expect_equal(root(net.here, "wan")["kind"], "noqueue")


def kinds(net):
    """What both directions of `quad` have: (kind, rate in Mbit/s)."""
    return [(found["kind"], found["options"]["bandwidth"] * 8 / 1e6)
            for found in (root(net.here, "quad"), root(net.here, next(iter(ifbs(net.here)))))]


@contextlib.contextmanager
def four_queues():
    """pair() with a device `quad`, which has four queues for each direction."""
    with pair() as net:
        run(["ip", "link", "add", "quad", "numtxqueues", "4", "numrxqueues", "4", "type", "veth", "peer", "name", "far",
             "netns", net.there], net.here)
        run("ip link set quad up", net.here)
        run("ip link set far up", net.there)
        yield net


@test("up --queues")
def up_shares_the_rate_among_all_queues_or_not():
    with four_queues() as net:
        empty = snapshot(net.here)
        dualpi2("up quad --upload 4mbit --download 8mbit --queues all --link docsis", net.here)
        expect_equal(kinds(net), [("dualpi2_mq", 4), ("dualpi2_mq", 8)])
        shown = tc("class show dev dp2-quad", net.here).stdout
        expect_equal(shown.count("class dualpi2_mq"), 4, "queues of the ifb device")
        dualpi2("set quad --upload 5mbit", net.here)
        said = dualpi2("up quad --upload 6mbit", net.here)
        expect("queues all" in said, said)
        expect_equal(kinds(net), [("dualpi2_mq", 6), ("dualpi2_mq", 8)], "changed, kept")
        dualpi2("set quad --queues one", net.here)
        expect_equal(kinds(net), [("dualpi2", 6), ("dualpi2", 8)])
        tc("qdisc del dev quad root", net.here)
        said = dualpi2("status quad", net.here, code=1, lines=0)
        expect("fix: dualpi2 up quad --download 8mbit --upload 6mbit --queues one" in said, said)
        dualpi2("down quad", net.here)
        expect_equal(snapshot(net.here), empty)


@test("set --queues all of an ifb device with one queue")
def set_queues_puts_another_ifb_device_in_place():
    with four_queues() as net, stand_in(ip=counting("$FAIL_AT", "eq"), tc=counting("$FAIL_AT", "eq")) as path:
        dualpi2("up quad --upload 4mbit --download 8mbit", net.here)
        before, old = snapshot(net.here), ifbs(net.here)
        # In place of line 4, the filter, comes one of another kind.
        for number in (0, 1, 2, 3, 5, 6):
            write("/tmp/count", b"0\n")
            said = dualpi2("set quad --queues all", net.here, code=1, path=path, env={"FAIL_AT": str(number)})
            expect("made to fail" in said, said)
            expect_equal(snapshot(net.here), before, f"after the failure of line {number}")
        dualpi2("set quad --queues all", net.here)
        expect_equal(kinds(net), [("dualpi2_mq", 4), ("dualpi2_mq", 8)])
        new = ifbs(net.here)
        expect(len(new) == 1 and new != old, f"{old}, then {new}")
        dualpi2("status quad", net.here)
        expect(f"to device {next(iter(new))}" in tc("filter show dev quad ingress", net.here).stdout, "the filter")


@each(["up", "set"])
def CASE_direction_off_is_removed(verb):
    with pair() as net:
        empty = snapshot(net.here)
        dualpi2("up wan --upload 4mbit --download 8mbit", net.here)
        dualpi2(f"{verb} wan --download off", net.here)
        expect_equal(ifbs(net.here), {})
        expect("clsact" not in tc("qdisc show dev wan", net.here).stdout, "clsact is left")
        said = dualpi2(f"{verb} wan --upload off", net.here, code=2)
        expect("dualpi2 down wan" in said, said)
        dualpi2(f"{verb} wan --download 8mbit --upload off", net.here)
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
        expect("nothing to remove" in dualpi2("down wan", net.here), "a second time")


@test("--dry-run")
def dry_run_lines_by_hand_do_the_same():
    line = [*"up wan --upload 4mbit --download 8mbit --link".split(), "pppoe-ptm ether-vlan", "--", "target", "9ms"]

    def without_numbers(found):
        return [re.sub(r"^\d+: |link/ether \S+|\w+@if\d+|link-netns \S+|link-netnsid \d+|(promiscuity|minmtu)\s\d+|"
                       r"ifindex \d+ |index \d+|/netns-c?\d+", "", str(text), flags=re.M) for text in found[:-1]]

    with pair() as one, pair() as two:
        before = snapshot(two.here)
        lines = dualpi2([*line[:2], "--dry-run", *line[2:]], two.here, uid=65534)
        # Another user cannot read the plugin in a source tree.
        lines = re.sub("^dualpi2: the options after -- are not checked.*\n", "", lines, flags=re.M)
        expect_equal(snapshot(two.here), before, "after --dry-run")
        expect(all(text.startswith(("ip ", "tc ")) for text in lines.splitlines()), lines)
        run(["sh", "-e", "-c", lines], two.here)
        dualpi2(line, one.here)
        expect_equal(without_numbers(snapshot(two.here)), without_numbers(snapshot(one.here)))
        # What was set by hand belongs to `up`, too.
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
        # The root qdisc does not matter for a download.
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
        said = dualpi2("up wan --upload 4mbit --download 8mbit -- target nonsense", net.here, code=2)
        expect("nonsense" in said and said.count("\n") == 1, said)
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


@test("--replace, and the kernel does not know bandwidth")
def replace_on_an_old_kernel_leaves_what_is_there():
    with pair() as net, old_kernel():
        tc(TBF, net.here)
        before = snapshot(net.here)
        said = dualpi2("up wan --upload 4mbit --replace", net.here, code=1)
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
    with pair() as net, old_kernel("wan"):
        tc(TBF, net.here)
        said = dualpi2("up wan --upload 4mbit --replace", net.here, code=1)
        expect("gone is the qdisc tbf 7:, which was there before" in said, said)
        expect_equal((root(net.here, "wan")["kind"], ifbs(net.here)), ("noqueue", {}))


@test("--replace, and a filter cannot be deleted")
def replace_deletes_filters_before_the_root():
    with pair() as net, stand_in(tc='case "$*" in "filter del"*) exit 1 ;; esac; exec $REAL "$@"') as path:
        tc(TBF, net.here)
        tc("qdisc add dev wan clsact", net.here)
        tc("filter add dev wan ingress pref 9 protocol ip matchall action ok", net.here)
        # The qdisc of `up` cannot be deleted, either, and a message says which.
        dualpi2("up wan --upload 4mbit --download 5mbit --replace", net.here, code=1, path=path, lines=None)
        expect_equal(root(net.here, "wan")["kind"], "tbf")


@each(["before", "after"])
def signal_CASE_a_line_took_effect_undoes_all(when):
    real = '$REAL "$@"'
    for replaced in (False, True):
        # The second signal comes during the undo.
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
    # As iproute2 5.10 does of u32.
    text = """case "$*" in *matchall*) exit 1 ;; "-json filter show"*) shift; echo '[{'; exec $REAL "$@" ;; esac
exec $REAL "$@\""""
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


if __name__ == "__main__":
    main()
