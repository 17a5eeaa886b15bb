# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug tree=top lockdep=off
# suite: long kernel=5.10 tree=top
"""The commands of docs/guides, run as they stand there. KTAP on stdout.

Each guide is one test: all its blocks of commands (```sh), from top to bottom, in one network namespace with the
devices and addresses of a reader's machine (lib_guides.Machine) and nothing else. Comments before a block:

    <!-- test: NAME -->         the step of this name runs the block, and measures or checks more
    <!-- not run: REASON -->    it cannot be run; the number of these is printed
    (none)                      it is run

A block prints what the next ```text block shows, from the first to the last line, and nothing if there is none before
the next block or heading. "..." stands for anything in a line, and alone for any number of lines; runs of blanks are
all alike.

At its end a guide has undone what it did. A block with `tc qdisc change` leaves all qdiscs and classes in place.
Traffic that a guide asks the reader for is made by the steps. Other documents: no `tc qdisc change` without a handle,
and the rates of all examples are those of docs/guides/rates.md.
"""

import glob
import os
import re
import time

from lib_guides import GUIDES, ROOT, STEPS, TABLE_LENGTH, Machine, all_blocks, blocks_of, comment_in, execute, \
    flowing, guide, leaves, load, options, part, programs, read, step
import lib
import lib_guides_flent  # noqa: F401
import lib_guides_vpn  # noqa: F401
from lib import ECT0, ECT1, NOT_ECT, Failure, Skip, Stream, Traffic, expect, expect_between, expect_equal, main, note, \
    run, tc, test

DOCUMENTS = sorted(glob.glob(os.path.join(ROOT, "*.md")) + glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True)
                   + glob.glob(os.path.join(ROOT, "packaging/**/*.md"), recursive=True)
                   + glob.glob(os.path.join(ROOT, "tools/share/*.8"))
                   + glob.glob(os.path.join(ROOT, "iproute2-patch/man/man8/*.8"))
                   + glob.glob(os.path.join(ROOT, "extra/*/*.8")))
# The links of the examples in docs/guides/rates.md, kbit/s: download and upload as measured.
LINKS = ((100000, 20000), (50000, 10000))
UNITS = {"": 1, "kbit": 1, "mbit": 1000}


# The documents

@test("every block can be run")
def guides_blocks_all_have_a_test_or_a_reason():
    found = all_blocks()
    expect(len(GUIDES) >= 8 and len(found) > 60, f"{len(GUIDES)} guides, {len(found)} blocks")
    for block in found:
        expect(not block.name or block.name in STEPS, f"{block}: there is no step {block.name}")
        for line in block.commands:
            expect(not comment_in(line) or line.startswith("#!"), f"{block}: a comment, which an interactive zsh runs: "
                                                                  f"{line}")
    for name in STEPS:
        expect(any(block.name == name for block in found), f"step {name} has no block")
    left_out = [block for block in found if block.reason]
    note(f"{len(found) - len(left_out)} blocks are run, {len(left_out)} are not:")
    for block in left_out:
        note(f"{block}: {block.reason}")
    expect(len(left_out) <= 12, f"{len(left_out)} blocks are not run")


@test("links")
def guides_links_lead_to_files():
    for path in GUIDES:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", read(path)):
            there = os.path.join(os.path.dirname(path), target) if target else path
            expect(os.path.exists(there), f"{os.path.basename(path)}: {target} is not there")
            expect(not anchor or anchor in anchors(there), f"{os.path.basename(path)}: {target}#{anchor} is not there")


def headings(path):
    return re.findall(r"^##+ (.*)$", re.sub(r"^```.*?^```$", "", read(path), flags=re.M | re.S), flags=re.M)


def anchors(path):
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings(path)]


@test("form")
def guides_have_contents_and_say_run_as_root_once():
    for path in GUIDES:
        name, text = os.path.basename(path), read(path)
        top = re.findall(r"^## .*$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)
        expect(("Contents: [" in text) == (len(top) > TABLE_LENGTH), f"{name}: {len(top)} sections, contents or not")
        if "```sh" in text:
            expect_equal(len(re.findall(r"\b[Rr]un\s+(?:all|the)\s+commands\s+as\s+root", text)), 1,
                         f"{name}: times that it says to run as root")


def changes_without_handle(text):
    """Each `tc qdisc change` of a device in a document that does not name the handle."""
    plain = re.sub(r"\\f[BIRP]|^\.[A-Z]+ +|\\(?=[-\n])", "", text, flags=re.M)
    lines = re.sub(r"\\?\n[ \t]+", " ", plain).splitlines()
    return [line for line in lines for command in re.findall(r"qdisc change[^|;`]*\bdev\b[^|;`]*", line)
            if " handle " not in command and "would delete" not in line]


@test("qdisc change")
def documents_name_the_handle_in_every_change():
    for bad in ("tc qdisc change dev eth0 root dualpi2 no_nqb", "`tc qdisc change dev x parent 1:1 dualpi2`",
                ".B # tc qdisc change dev eth0 root dualpi2 \\\n.B nqb 45"):
        expect(changes_without_handle(bad), f"accepted: {bad}")
    expect(not changes_without_handle("tc qdisc change dev eth0 root handle d50: dualpi2\nuse `tc qdisc change`"), "?")
    found = [f"{os.path.relpath(path, ROOT)}: {line}" for path in DOCUMENTS
             for line in changes_without_handle(read(path))]
    expect(not found, "tc qdisc change without handle: " + "; ".join(found))


def wrong_rates(text):
    """Pairs of --download and --upload, and of sqm's options, that the table of docs/guides/rates.md does not allow."""
    text = text.replace("\\-", "-")
    pairs = re.findall(r"--download (\d+)(\w*) --upload (\d+)(\w*)", text)
    pairs += [(*pair[2:], *pair[:2]) for pair in re.findall(r"--upload (\d+)(\w*) --download (\d+)(\w*)", text)]
    pairs += [(down, "", up, "") for down, up in re.findall(r"\.download=(\d+).*?\.upload=(\d+)", text)]
    found = []
    for down, unit_down, up, unit_up in pairs:
        download, upload = int(down) * UNITS[unit_down], int(up) * UNITS[unit_up]
        if not any(0.8 * most[0] <= download <= 0.9 * most[0] and 0.8 * most[1] <= upload <= 0.95 * most[1]
                   for most in LINKS):
            found.append(f"{down}{unit_down} and {up}{unit_up}")
    return found


@test("rates")
def documents_use_the_rates_of_the_table():
    expect_equal(wrong_rates("dualpi2 up x --download 90mbit --upload 9500kbit --upload 19mbit --download 90mbit "
                             "download=1 .download=95000 && .upload=19000; \\-\\-download 100mbit \\-\\-upload 20mbit"),
                 ["90mbit and 9500kbit", "100mbit and 20mbit", "95000 and 19000"])
    found = [f"{os.path.relpath(path, ROOT)}: {pair}" for path in DOCUMENTS if os.path.basename(path) != "vpn.md"
             for pair in wrong_rates(read(path))]
    expect(not found, "rates that docs/guides/rates.md does not have: " + "; ".join(found))


# The convention itself

def refused(text, *expected):
    """A guide with this text must fail, and say what is expected."""
    with programs() as directory:
        try:
            for block in blocks_of(text, "x.md"):
                execute(block, None, directory)
        except Failure as failure:
            for one in expected:
                expect(one in str(failure), f"{one!r} is not in: {failure}")
            return
    raise Failure(f"not refused: {text!r}")


@test("a guide that is wrong")
def guides_wrong_ones_fail():
    block = "```sh\n{}\n```\n"
    refused(block.format("echo 1\nfalse\necho 2"), "x.md:1", "code 1")
    refused(block.format("echo $missing_one"), "missing_one")
    refused(block.format("echo one"), "nothing", "one")
    refused(block.format("echo one\necho two") + "```text\none\n```\n", "two")
    refused(block.format("echo one\necho two") + "\nWords.\n\n```text\n...\none\n```\n", "two")
    refused(block.format("echo a b") + "```text\na ... c\n```\n", "a ... c")
    refused(block.format("echo a; echo b") + "```text\nb\na\n```\n", "b\na")
    refused("```text\na\n```\n", "output without commands")
    refused("```sh\necho\n", "no end")
    expect(comment_in("ls # all") and comment_in("# -> all") and not comment_in("echo ${a##*/} $#"), "comments")
    found = blocks_of("<!-- test: x -->\n\n```sh\necho\n```\n\nWords.\n\n```sh\necho\n```\n<!-- not run: y -->\n"
                      "```sh\n```\n## Words\n", "x.md")
    expect_equal([(one.name, one.reason, one.shown) for one in found],
                 [("x", None, []), (None, None, []), (None, "y", [])])


@test("a guide that is right")
def guides_right_one_passes():
    text = ("```sh\necho a   b 17\necho c\n```\nWords.\n\n```text\na b ...7\nc\n```\n"
            "<!-- test: x -->\n```sh\ncat <<EOF\nseen\n\n1\n2\nEOF\n```\n```text\nseen\n...\n2\n```\n")
    with programs() as directory:
        expect_equal([execute(block, None, directory) for block in blocks_of(text, "x.md")],
                     ["a b 17\nc\n", "seen\n\n1\n2\n"])


@test("a guide that does harm")
def guides_that_lose_qdiscs_fail():
    def follow(text):
        for block in blocks_of(text, "x.md"):
            machine.run(block)

    with programs() as directory, Machine(directory) as machine:
        follow("```sh\ntc qdisc replace dev eth0 root handle 1: htb\n"
               "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n```\n")
        try:
            follow("```sh\ntc qdisc change dev eth0 root dualpi2 no_nqb\n```\n")
        except Failure as failure:
            note(str(failure)[:200])
        else:
            raise Failure("`tc qdisc change` without handle passes")
        refused("```sh\ntc qdisc change dev lo root handle 9: dualpi2 no_nqb\n```\n", "code 2")


# Rates

LINK = {"overhead": 18, "mpu": 64}


def expect_link(machine, download, upload):
    """Both directions have these rates, and the link layer of the guide."""
    for dev, rate in (("eth0", upload), ("dp2-eth0", download)):
        found = options(machine.rtr, dev)
        expect_equal({name: found.get(name) for name in ("bandwidth", *LINK)},
                     {"bandwidth": rate * 125000, **LINK}, dev)


def average(printed):
    """Of ping, ms."""
    return float(re.search(r"= [\d.]+/([\d.]+)/", printed).group(1))


@step("rates-idle")
def rates_idle(machine, block):
    machine.idle_ms = average(machine.run(block))


@step("rates-load")
def rates_load(machine, block):
    with flowing(machine, *load(19), warmup=3):
        expect_between(average(machine.run(block)) - machine.idle_ms, 10, 25, "ms more than idle")


@step("rates-change")
def rates_change(machine, block):
    machine.run(block)
    expect_link(machine, 85, 19)


# Home router

@step("home-up")
def home_up(machine, block):
    machine.run(block)
    expect_link(machine, 90, 19)
    for dev, rate in (("eth0", 19), ("dp2-eth0", 90)):
        where, dst = (machine, "10.2.0.1") if dev == "eth0" else (machine.back(), "10.1.0.1")
        found = Traffic(where, 8, load(rate, dst=dst), 3).wait()
        expect_between(found["l"].delay_us["p99"], 0, 2000, f"{dev}: P99 of L4S, us")
        expect_between(found["c"].delay_us["mean"], 10000, 20000, f"{dev}: Classic, us")


@step("home-doctor")
def home_doctor(machine, block):
    with flowing(machine, *load(19)):
        machine.run(block)


@step("home-statistics")
def home_statistics(machine, block):
    with flowing(machine.back(), *load(90, dst="10.1.0.1")):
        machine.run(block)


@step("home-rate")
def home_rate(machine, block):
    time.sleep(1)       # until the queue is empty
    before = lib.stats(machine.rtr, "dp2-eth0", "d50:")
    machine.run(block)
    expect_link(machine, 85, 19)
    expect_equal(lib.stats(machine.rtr, "dp2-eth0", "d50:")["drops"], before["drops"], "packets dropped by the change")


@step("home-nqb")
def home_nqb(machine, block):
    machine.run(block)
    expect_link(machine, 85, 19)
    expect_equal(options(machine.rtr, "dp2-eth0")["nqb"], [45, 46])


@step("home-burst")
def home_burst(machine, block):
    machine.run(block)
    expect_link(machine, 85, 19)
    found = options(machine.rtr, "dp2-eth0")
    expect_equal((found["burst-max"], found["nqb"]), (8000, [45, 46]))


@step("home-down")
def home_down(machine, block):
    machine.run(block)
    expect_equal(tc("qdisc show dev eth0", machine.rtr).stdout.count("dualpi2"), 0, "dualpi2 after down")


@step("home-dsl")
def home_dsl(machine, block):
    before = machine.state()
    machine.run(block)
    expect_equal(machine.state(), before, "after --dry-run")


@step("home-ppp")
def home_ppp(machine, block):
    machine.run(block)
    env = ["ip", "netns", "exec", machine.rtr, "env", f"PATH={machine.directory}:{os.environ['PATH']}"]
    run([*env, "PPP_IFACE=ppp1", "/etc/ppp/ip-up.d/dualpi2"])
    expect("dualpi2" not in tc("qdisc show dev ppp0", machine.rtr).stdout, "done for another device")
    run([*env, "PPP_IFACE=ppp0", "/etc/ppp/ip-up.d/dualpi2"])
    expect_equal(options(machine.rtr, "ppp0")["bandwidth"], 9500000 // 8)


@step("home-host")
def home_host(machine, block):
    if not os.path.exists("/proc/sys/net/ipv4/tcp_ecn_option"):
        raise Skip("this kernel has no AccECN")
    expect_equal(run("sysctl -n net.ipv4.tcp_ecn", machine.snd).stdout.strip(), "2", "the default of tcp_ecn")
    try:
        machine.run(block, machine.snd)
    finally:
        os.unlink("/etc/sysctl.d/90-accecn.conf")


# From cake

@step("cake-replace")
def cake_replace(machine, block):
    machine.run(block)
    expect_link(machine, 90, 19)


@step("cake-autorate")
def cake_autorate(machine, block):
    path = os.path.join(machine.directory, "guide", "cake-autorate.sh")
    with open(path, "w", encoding="ascii") as file:
        file.write('tc qdisc change root dev "${interface[${direction}]}" cake bandwidth "${rate}Kbit" 2> /dev/null\n'
                   "printf 'qdisc change root dev %s cake bandwidth %s\\n' eth0 1000Kbit\n")
    expect_equal(machine.run(block), "2\n", "commands that were changed")
    expect_equal(len(changes_without_handle(read(path))), 0, "commands without a handle")


@step("cake-hook")
def cake_hook(machine, block):
    machine.run(block)
    expect_equal(options(machine.rtr, "dp2-eth0")["bandwidth"], 90 * 125000, "the other direction")


# Rate traces

@step("traces-play")
def traces_play(machine, block):
    with flowing(machine, *load(25)):
        machine.run(block)


# Troubleshooting

@step("trouble-load")
def trouble_load(machine, block):
    with flowing(machine, *load(19)):
        machine.run(block)


# ISP edge

@step("isp-htb")
def isp_htb(machine, block):
    machine.run(block)
    expect_equal(len({one["handle"] for one in leaves(machine.rtr)}), 200, "leaves")
    streams = [Stream(f"{kind}{host}", ecn=ecn, bps=bps, jitter=1, dst=f"100.64.0.{host}", count=None)
               for host in (11, 12) for kind, ecn, bps in (("l", ECT1, 20e6), ("c", NOT_ECT, 32e6))]
    result = Traffic(machine, 5, streams, 1).wait()
    for host in (11, 12):
        bits = sum(result[f"{kind}{host}"].received for kind in "lc") * 1000 * 8 / 4
        expect_between(bits / 50e6, 0.98, 1.02, f"subscriber {host}: part of the rate sold")
        expect(result[f"l{host}"].delay_us["p99"] < 2000, f"L P99 {result[f'l{host}'].delay_us['p99']} us")


def arrived(machine, handle, dst, dscp=0, ecn=NOT_ECT):
    """100 packets to an address: how many came to this leaf, how many were taken for NQB; and the traffic's result."""
    before = lib.stats(machine.rtr, "eth0", handle)
    found = Traffic(machine, 1, [Stream("one", dscp=dscp, ecn=ecn, pps=100, dst=dst)], 0).wait()["one"]
    after = lib.stats(machine.rtr, "eth0", handle)
    return (after["packets"] - before["packets"], after["link"]["nqb_arrived"] - before["link"]["nqb_arrived"], found)


@step("isp-observe")
def isp_observe(machine, block):
    with flowing(machine, *load(50, dst="100.64.0.11")):
        machine.run(block)


@step("isp-add")
def isp_add(machine, block):
    machine.run(block)
    for dst in ("100.64.0.211", "2001:db8:211::1"):
        expect_between(arrived(machine, "1d3:", dst)[0], 95, 101, f"packets of {dst}")


@step("isp-rate")
def isp_rate(machine, block):
    before = lib.stats(machine.rtr, "eth0", "1d3:")
    machine.run(block)
    expect_equal(lib.stats(machine.rtr, "eth0", "1d3:")["packets"], before["packets"], "counters of the leaf")


@step("isp-move")
def isp_move(machine, block):
    machine.run(block)
    run("ip addr add 100.64.0.212/16 dev eth0", machine.rcv)
    run("ip neigh add 100.64.0.212 lladdr 02:00:00:00:02:01 nud permanent dev eth0", machine.rtr)
    expect_between(arrived(machine, "1d3:", "100.64.0.212")[0], 95, 101, "packets to the new address")
    expect_equal(arrived(machine, "1d3:", "100.64.0.211")[0], 0, "packets to the old address")


@step("isp-remove")
def isp_remove(machine, block):
    machine.run(block)
    expect("10b" in tc("class show dev eth0", machine.rtr).stdout, "another subscriber is gone, too")


@step("isp-batch-rest")
def isp_batch_rest(machine, block):
    machine.run(block)
    expect_between(arrived(machine, "1d3:", "100.64.0.211")[0], 95, 101, "packets of the subscriber")


@step("isp-names")
def isp_names(machine, block):
    with flowing(machine, *load(50, dst="100.64.0.11")):
        printed = machine.run(block)
    expect_equal(printed.count("subscriber-011"), 2, f"the one with traffic, first of all and alone: {printed}")
    expect_equal(printed.count("subscriber-"), 6, "five subscribers and one")


@step("isp-upstream")
def isp_upstream(machine, block):
    machine.run(block)
    run("ip addr add 100.64.0.11/32 dev lo", machine.rcv)
    before = lib.stats(machine.rtr, "eth1", "10b:")["packets"]
    run("ping -q -c 20 -i 0.01 -I 100.64.0.11 10.1.0.1", machine.rcv, check=False)
    expect_between(lib.stats(machine.rtr, "eth1", "10b:")["packets"] - before, 20, 22, "uploads")


@step("isp-wash")
def isp_wash(machine, block):
    def nqb(dst, ecn):
        _, taken, found = arrived(machine, "10b:", dst, dscp=45, ecn=ecn)
        expect_equal(found.lost, 0, "packets lost")
        return taken, found.dscp_changed, found.ecn[ecn]

    hosts = ("100.64.0.11", "2001:db8:11::1")
    for dst in hosts:
        expect_between(nqb(dst, NOT_ECT)[0], 95, 101, f"{dst}: packets taken for NQB before")
    machine.run(block)
    for dst in hosts:
        taken, changed, _ = nqb(dst, NOT_ECT)
        expect(not taken and changed >= 95, f"{dst}: {taken} packets taken for NQB, {changed} without their DSCP")
        expect_between(nqb(dst, ECT1)[2], 95, 101, f"{dst}: packets that keep ECT(1)")


@step("isp-no-nqb")
def isp_no_nqb(machine, block):
    machine.run(block)
    _, taken, found = arrived(machine, "10b:", "100.64.0.11", dscp=45)
    expect_equal((taken, found.dscp_changed), (0, 0), "packets taken for NQB, DSCPs changed")


@step("isp-overload")
def isp_overload(machine, block):
    machine.run(block)
    expect_equal(sum(one["options"]["p-cmax"] == 20 for one in leaves(machine.rtr)), 200, "leaves with p_cmax 20 %")


@step("isp-qprotect")
def isp_qprotect(machine, block):
    machine.run(block)
    expect_equal(sum(one["options"]["qprotect"] == "tuple" for one in leaves(machine.rtr)), 200, "leaves with qprotect")


@step("isp-map")
def isp_map(machine, block):
    machine.run(block)
    expect_equal(tc("filter show dev eth0 parent 1:", machine.rtr).stdout, "", "filters")
    for dst in ("100.64.0.11", "2001:db8:11::1"):
        expect_between(arrived(machine, "10b:", dst)[0], 95, 101, f"packets of {dst}")


@step("isp-device")
def isp_device(machine, block):
    machine.run(block)
    for vid in range(101, 104):
        found = options(machine.rtr, f"eth2.{vid}")
        expect_equal((found["bandwidth"], found["overhead"]), (50_000_000 // 8, 42), f"eth2.{vid}")


@step("isp-device-up")
def isp_device_up(machine, block):
    machine.run(block)
    expect_equal(options(machine.rtr, "eth2.101")["bandwidth"], 50_000_000 // 8, "the other direction")
    expect_equal(options(machine.rtr, "dp2-eth2.101")["bandwidth"], 10_000_000 // 8)


# Data centre

@step("dc-mq")
def dc_mq(machine, block):
    machine.run(block)
    found = leaves(machine.rtr)
    expect_equal(sorted(one["parent"] for one in found), ["1:1", "1:2", "1:3", "1:4"])
    for one in found:
        expect_equal((one["options"]["limit"], one["options"]["target"]), (25000, 166), one["parent"])


@step("dc-ect")
def dc_ect(machine, block):
    def queued(name):
        return sum(lib.stats(machine.rtr, "eth0", one["handle"])[name]["enqueued"] for one in leaves(machine.rtr))

    machine.run(block)
    for one in leaves(machine.rtr):
        expect_equal((one["options"]["limit"], one["options"]["target"]), (25000, 166), one["parent"])
    before = queued("l"), queued("c")
    Traffic(machine, 1, [Stream("dctcp", ecn=ECT0, bps=2e6)], 0).wait()
    expect(queued("l") - before[0] > 200 and queued("c") == before[1], "ECT(0) is not in the L4S queue")


@step("dc-verify")
def dc_verify(machine, block):
    with flowing(machine, Stream("dctcp", ecn=ECT0, bps=20e6)):
        machine.run(block)


@step("dc-default")
def dc_default(machine, block):
    # The setting is of the whole machine, and not there in other namespaces.
    before = read("/proc/sys/net/core/default_qdisc")
    try:
        for name, kind in (("dpg0", "ifb"), ("dpg1", "ifb"), ("dpg2", "dummy")):
            if name == "dpg1":
                execute(block, None, machine.directory)
            run(f"ip link add {name} type {kind}")
            run(f"ip link set {name} up")
        # One that was there, one that came afterwards, one without a queue.
        found = [tc(f"qdisc show dev {name}").stdout.split()[1] for name in ("dpg0", "dpg1", "dpg2")]
        expect_equal((found[0] == "dualpi2", *found[1:]), (False, "dualpi2", "noqueue"), "default qdiscs")
    finally:
        for name in ("dpg0", "dpg1", "dpg2"):
            run(f"ip link del {name}", check=False)
        with open("/proc/sys/net/core/default_qdisc", "w", encoding="ascii") as file:
            file.write(before)


for each_guide in GUIDES:
    guide(os.path.basename(each_guide)[:-3])
part("home-host", "home-router")
part("vpn-xfrm", "vpn")


if __name__ == "__main__":
    main()
