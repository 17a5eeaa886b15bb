# SPDX-License-Identifier: GPL-2.0-only
# suite: check kernel=debug lockdep=off
"""`dualpi2 set`, what `up` keeps, and the command line: syntax, options, help, completion, examples."""

import glob
import json
import os
import re
import shutil
import subprocess

from lib_up import (COMMAND, ROOT, RUN, counting, dualpi2, ifbs, pair, root, snapshot, stand_in, systemd, write)
from lib import each, expect, expect_equal, in_netns, main, run, tc, test
from dualpi2 import Trouble
from dualpi2.up import arguments, commands

TBF = "qdisc add dev wan root handle 7: tbf rate 1mbit burst 5k limit 10k"
CONF = "/etc/dualpi2/wan.conf"
# A configuration with every value, and after it with one of them changed.
WHOLE = {"--upload": "4mbit", "--download": "8mbit", "--link": "pppoe-ptm ether-vlan", "--rtt": "50ms",
         "--": "target 12ms nqb 45,46 no_split_gso"}
CHANGES = {"upload": ("--upload 5mbit", {"--upload": "5mbit"}),
           "download": ("--download 9mbit", {"--download": "9mbit"}),
           "link": ("--link docsis", {"--link": "docsis"}),
           "rtt": ("--rtt regional", {"--rtt": "30ms"}),
           "option": ("-- target 20ms", {"--": "nqb 45,46 no_split_gso target 20ms"}),
           "dscps": ("-- nqb 10", {"--": "target 12ms no_split_gso nqb 10"}),
           "switch": ("-- split_gso", {"--": "target 12ms nqb 45,46 split_gso"}),
           "several": ("--upload 5M --rtt 20ms -- limit 900",
                       {"--upload": "5mbit", "--rtt": "20ms", "--": "target 12ms nqb 45,46 no_split_gso limit 900"})}


def line(verb, values):
    """A command as a list of arguments."""
    command = [verb, "wan"]
    for name in sorted(values, key="--".__eq__):
        command += [name, *(values[name].split() if name == "--" else [values[name]])]
    return command


def said_on(command, netns, uid=None):
    """(code, stdout, stderr)."""
    with in_netns(netns):
        done = subprocess.run([*COMMAND, *command.split()], text=True, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL, preexec_fn=(lambda: os.setuid(uid)) if uid else None)
    return done.returncode, done.stdout, done.stderr


def indices(netns):
    """Indices of both devices: a device that is made again has another one."""
    return [json.loads(run(f"ip -json link show {dev}", netns).stdout)[0]["ifindex"] for dev in ("wan", "dp2-wan")]


def both(netns):
    """Options of both qdiscs."""
    return root(netns, "wan")["options"], root(netns, "dp2-wan")["options"]


@each(sorted(CHANGES))
def set_changes_CASE_and_keeps_all_others(name):
    change, values = CHANGES[name]
    with pair() as one, pair() as two:
        dualpi2(line("up", {**WHOLE, **values}), one.here)
        expected = both(one.here)
        dualpi2(line("up", WHOLE), two.here)
        before = indices(two.here)
        dualpi2("set wan " + change, two.here)
        expect_equal(both(two.here), expected)
        expect_equal(indices(two.here), before)
        expect_equal(root(two.here, "wan")["handle"], "d50:", "changed in place")


@test("set, and a step fails")
def set_that_fails_is_undone():
    with pair() as net, stand_in(ip=counting("$FAIL_AT", "eq"), tc=counting("$FAIL_AT", "eq")) as path:
        dualpi2(line("up", WHOLE), net.here)
        before = snapshot(net.here)
        for number in range(2):
            write("/tmp/count", b"0\n")
            said = dualpi2("set wan --rtt 30ms --upload 5mbit -- target 30ms", net.here, code=1, path=path,
                           env={"FAIL_AT": str(number)})
            expect("made to fail" in said, said)
            expect_equal(snapshot(net.here), before, f"after the failure of line {number}")


@test("set of a device that is not set up")
def set_starts_from_the_saved_configuration():
    saved = b'UPLOAD="4mbit"\nDOWNLOAD=8mbit\nLINK="docsis"\nQUEUES=all\nREPLACE="yes"\n'
    with systemd() as (path, _), pair() as net:
        write(CONF, saved)
        tc(TBF, net.here)
        said = dualpi2("set wan --upload 5mbit", net.here, path=path)
        expect(CONF + " is unchanged" in said, said)
        expect_equal([found["bandwidth"] for found in both(net.here)], [625000, 1000000])
        with open(CONF, "rb") as file:
            expect_equal(file.read(), saved)
        dualpi2("set wan --download 9mbit --persist", net.here, path=path)
        with open(CONF, encoding="ascii") as file:
            expect_equal(re.findall(r'^(\w+)="(.*)"$', file.read(), re.M), [
                ("DOWNLOAD", "9mbit"), ("UPLOAD", "5mbit"), ("LINK", "docsis"), ("QUEUES", "all"),
                ("REPLACE", "yes")])
        expect_equal(root(net.here, "wan")["kind"], "dualpi2_mq")
        dualpi2("down wan", net.here, path=path)
        write(CONF, b"UPLOAD=fast\n")
        for args in ("set wan --download 9mbit", "up wan --download 9mbit"):
            said = dualpi2(args, net.here, code=2, path=path)
            expect(said.startswith(f"dualpi2: {CONF}: --upload: 'fast' is not a rate"), said)


@test("up with one direction")
def up_direction_not_named_is_kept():
    with systemd() as (path, _), pair() as net:
        dualpi2("up wan --upload 4mbit --download 8mbit --persist", net.here, path=path)
        before = indices(net.here)
        said = dualpi2("up wan --upload 5mbit --persist", net.here, path=path)
        expect("upload 5mbit download 8mbit (dp2-wan)" in said, said)
        expect_equal([found["bandwidth"] for found in both(net.here)], [625000, 1000000])
        expect_equal(indices(net.here), before)
        with open(CONF, encoding="ascii") as file:
            expect('DOWNLOAD="8mbit"\nUPLOAD="5mbit"' in file.read(), "the saved configuration follows")
        # Without the state, the kernel has the rates.
        shutil.rmtree(RUN)
        dualpi2("up wan --download 7mbit", net.here, path=path)
        expect_equal([found["bandwidth"] for found in both(net.here)], [625000, 875000])
        # A file is the whole configuration.
        write(CONF, b"UPLOAD=6mbit\nDOWNLOAD=off\n")
        dualpi2("up wan --from-config", net.here, path=path)
        expect_equal((root(net.here, "wan")["options"]["bandwidth"], ifbs(net.here)), (750000, {}))
        dualpi2("up wan --download off --upload 1mbit --persist", net.here, path=path)
        with open(CONF, encoding="ascii") as file:
            expect("DOWNLOAD" not in file.read(), "off is saved")


@test("up resets what is not named")
def up_names_the_values_that_it_resets():
    with pair() as net:
        dualpi2(line("up", WHOLE), net.here)
        said = dualpi2("up wan --upload 5mbit --rtt 50ms", net.here)
        expect("reset to the default: --link 'pppoe-ptm ether-vlan', -- target 12ms nqb 45,46 no_split_gso; "
               "`dualpi2 set` keeps such values" in said, said)
        expect_equal(both(net.here)[0].get("overhead", 0), 0)
        expect("reset" not in dualpi2("up wan --upload 5mbit --rtt 50ms", net.here), "nothing is lost")


WRONG = {
    "nothing_is_set_up": ("set wan --upload 1mbit", 1, "dualpi2: dualpi2 is not set up on 'wan'; set it up with: "
                          "dualpi2 up wan --download RATE --upload RATE\n"),
    "device_misspelled": ("set wna --upload 1mbit", 1,
                          "dualpi2: there is no device 'wna' (did you mean 'wan'?); list devices with: ip link\n"),
    "set_without_a_value": ("set wan", 2, "dualpi2: no value to change; give --download, --upload, --link, --rtt, "
                            "--queues or, after --, options of tc\n"),
    "queues_misspelled": ("up wan --upload 5mbit --queues al", 2, "dualpi2: --queues: 'al' is neither one nor all (did "
                          "you mean 'all'?)\n"),
    "off_of_all": ("up wan --upload off", 2, "dualpi2: no direction is left to shape; to remove dualpi2, run: dualpi2 "
                   "down wan\n"),
    "command_misspelled": ("stattus", 2, "dualpi2: unknown command 'stattus' (did you mean 'status'?); see: dualpi2 "
                           "--help\n"),
    "command_missing": ("", 2, "dualpi2: COMMAND is missing; see: dualpi2 --help\n"),
    "help_of_nothing": ("help upp", 2, "dualpi2: unknown command 'upp' (did you mean 'up'?); see: dualpi2 --help\n"),
    "option_misspelled": ("up wan --uplaod 3mbit", 2, "dualpi2 up: unknown option '--uplaod' (did you mean "
                          "'--upload'?); see: dualpi2 up --help\n"),
    "option_misspelled_without_device": ("up --uplaod=3mbit", 2, "dualpi2 up: unknown option '--uplaod' (did you mean "
                                         "'--upload'?); see: dualpi2 up --help\n"),
    "option_unlike_any": ("status -x", 2, "dualpi2 status: unknown option '-x'; see: dualpi2 status --help\n"),
    "option_ambiguous": ("up wan --d 3mbit", 2, "dualpi2 up: ambiguous option '--d': it could match --download, "
                         "--dry-run; see: dualpi2 up --help\n"),
    "value_missing": ("up wan --upload", 2, "dualpi2 up: --upload needs a value: RATE; see: dualpi2 up --help\n"),
    "value_for_a_switch": ("up wan --yes=3", 2, "dualpi2 up: --yes takes no value; see: dualpi2 up --help\n"),
    "argument_missing": ("down", 2, "dualpi2 down: DEV is missing; see: dualpi2 down --help\n"),
    "argument_too_many": ("list wan", 2, "dualpi2 list: unexpected argument 'wan'; see: dualpi2 list --help\n"),
    "options_of_tc_for_down": ("down wan -- x", 2, "dualpi2 down: 'x' after --: down has no options of tc; see: "
                               "dualpi2 down --help\n"),
    "option_after_the_dashes": ("up wan --upload 4mbit -- nqb 46 --dry-run", 2, "dualpi2: '--dry-run' must not stand "
                                "after --, where only options of tc are accepted; write it before --\n"),
    "persist_elsewhere": ("up wan --upload 4mbit --persist -n other", 2, "dualpi2: --persist works without --netns "
                          "only; omit one of them\n"),
    "netns_missing": ("up wan --upload 4mbit -n nowhere", 1, "dualpi2: there is no network namespace nowhere; `ip "
                      "netns` lists them\n"),
    "rate_is_far_too_low": ("up wan --upload 20", 2, "dualpi2: --upload: '20' is in bit/s, as in tc; for kbit/s, write "
                            "20kbit\n"),
}


@each(sorted(WRONG))
def wrong_CASE_is_one_line(name):
    args, code, text = WRONG[name]
    with pair() as net:
        before = snapshot(net.here)
        expect_equal(said_on(args, net.here), (code, "", text))
        expect_equal(snapshot(net.here), before)


@each(["dry_run", "real"])
def options_that_tc_rejects_are_told_in_a_CASE(how):
    with pair() as net:
        before = snapshot(net.here)
        for option in ("tgt 5ms", "target 9ms target 8ms", "nqb 99"):
            said = dualpi2(f"up wan --upload 4mbit {'--dry-run' if how == 'dry_run' else ''} -- nqb 46 {option}",
                           net.here, code=2)
            expect(option.split()[0] in said and said.count("\n") == 1 and "expected one of" not in said, said)
            expect_equal(snapshot(net.here), before)


@test("--yes")
def yes_replaces_without_a_question():
    with pair() as net:
        tc(TBF, net.here)
        dualpi2("up wan --upload 4mbit", net.here, code=1)
        dualpi2("up wan --upload 4mbit -y", net.here)
        expect_equal(root(net.here, "wan")["kind"], "dualpi2")


@test("-v")
def verbose_prints_the_lines_of_a_dry_run():
    with pair() as net:
        for args in ("up wan --upload 4mbit --download 8mbit", "set wan --upload 5mbit", "down wan"):
            planned = dualpi2(args + " --dry-run", net.here)
            code, _, said = said_on(args + " -v", net.here)
            expect_equal((code, said), (0, re.sub("^", "+ ", planned, flags=re.M).removesuffix("+ ")))


@test("-n")
def netns_is_worked_in_from_outside():
    with pair() as net:
        before = snapshot(net.here)
        # A saved configuration of that name belongs to the first namespace.
        write(CONF, b"UPLOAD=3mbit\n")
        try:
            dualpi2(f"up wan --upload 4mbit -n {net.here}", net.there)
            expect_equal(root(net.here, "wan")["options"]["bandwidth"], 500000)
            expect("wan: upload 4mbit" in dualpi2(f"status -n {net.here}", net.there), "status")
            expect_equal(dualpi2("list", net.there).count("\n"), 2)
            dualpi2(f"down wan -n {net.here}", net.there)
            expect(os.path.exists(CONF), "down removed a file of another namespace")
        finally:
            shutil.rmtree("/etc/dualpi2")
        expect_equal(snapshot(net.here), before)


@test("commands that print")
def results_are_on_stdout():
    with pair() as net:
        expect_equal(said_on("status", net.here), (0, "dualpi2: no device is set up; see: dualpi2 up --help\n", ""))
        expect_equal(said_on("list", net.here), (0, "DEVICE  UPLOAD  DOWNLOAD  AT BOOT  STATE\n", ""))
        dualpi2("up wan --upload 4mbit", net.here)
        dualpi2("up lan --upload 4mbit --download 8mbit", net.here)
        tc("qdisc del dev lan root", net.here)
        expect_equal(said_on("list", net.here), (0, "DEVICE  UPLOAD  DOWNLOAD  AT BOOT  STATE\n"
                                                 "lan     4mbit   8mbit     no       fault\n"
                                                 "wan     4mbit   -         no       ok\n", ""))
        code, out, err = said_on("list -j", net.here)
        expect_equal((code, [one["device"] for one in json.loads(out)], err), (0, ["lan", "wan"], ""))
        expect_equal(json.loads(said_on("status -j", net.here)[1]), json.loads(out))
        dualpi2("down lan", net.here)
        dualpi2("down wan", net.here)
        expect_equal(said_on("down wan", net.here), (0, "dualpi2: nothing to remove on wan\n", ""))
        version = run("cat /sys/module/sch_dualpi2/version").stdout.strip()
        first = said_on("-V", net.here)[1]
        expect(re.fullmatch(r"dualpi2 \S+\n", first), first)
        code, out, err = said_on("version", net.here)
        expect_equal((code, err), (0, ""))
        expect(re.fullmatch(rf"{first}module sch_dualpi2 {version}\ntc .*, with the plugin of dualpi2\n", out), out)


@test("help")
def help_has_a_description_an_example_and_exit_codes():
    from dualpi2 import cli
    with pair() as net:
        verbs = [verb for verb in next(one for one in cli.parser()._actions if one.choices).choices if verb != "doctor"]
        expect_equal(verbs, ["up", "set", "down", "status", "list", "play", "version", "help"])
        for verb in verbs:
            code, out, err = said_on(f"help {verb}", net.here)
            expect_equal((code, err, said_on(f"{verb} --help", net.here)[1]), (0, "", out))
            for text in (r"^example", r"^exit status:\n  0 ", r"^[A-Z].*\.$", rf"^  dualpi2 {verb}"):
                expect(re.search(text, out, re.M), f"{verb}: no '{text}' in {out}")
        expect_equal(said_on("help", net.here), said_on("--help", net.here))
        expect("show this help" in said_on("help doctor", net.here)[1], "doctor")


def wanted(text):
    """(text for tc, bytes/s) of a rate, or the trouble."""
    try:
        return arguments.rate(text, "--upload")[:2]
    except Trouble as trouble:
        return str(trouble)


@test("options of tc")
def options_of_tc_are_merged_by_name():
    for old, new, expected in (("nqb EF target 5ms", "nqb CS5", "target 5ms nqb CS5"),
                               ("l4s target 5ms no_nqb", "target 6ms bypass", "l4s no_nqb target 6ms bypass"),
                               ("overhead -4", "limit 9", "overhead -4 limit 9"), ("", "ramp 1ms", "ramp 1ms")):
        expect_equal(" ".join(arguments.merged(old.split(), new.split())), expected)
    # A name left out makes a new qdisc, a value left out does not.
    want = commands.Want(upload="1mbit", options="nqb EF target 5ms l4s".split())
    expect_equal(want.named(), {"nqb", "target", "l4s"})


@test("rates")
def rates_are_read_as_people_write_them():
    for text, tc_text, mbit in (("20M", "20Mbit", 20), ("20Mbit/s", "20Mbit", 20), ("20 Mbit/s", "20Mbit", 20),
                                ("20mbit", "20mbit", 20), ("500k", "500kbit", 0.5), ("2.5G", "2.5Gbit", 2500),
                                ("20000kbit", "20000kbit", 20), ("20000K", "20000Kbit", 20), ("1mbps", "1mbps", 8),
                                ("20000000", "20000000", 20), ("20000000 bit/s", "20000000bit", 20)):
        expect_equal(wanted(text), (tc_text, mbit * 125000), text)
    for text in ("20MB", "20Mb/s", "20 M bit", "M", "20Mi", "1e6", "20mbit/ms", "\uff12mbit"):
        expect(f"'{text}' is not a rate" in wanted(text), text)
    for text, hint in (("20000000", "for kbit/s, write 20000000kbit"), ("20mbps", "for bits per second, write 20mbit")):
        with pair() as net:
            code, out, err = said_on(f"up wan --upload {text} --dry-run", net.here)
            expect(code == 0 and hint in err and err.count("\n") == 1, err)


@each(sorted(arguments.RTTS))
def rtt_CASE_is_that_of_the_list_of_options(name):
    import option_list
    with open(os.path.join(ROOT, option_list.PATH), encoding="utf-8") as file:
        rows = {row.word: row for row in option_list.rows(file.read()) if row.macro == "RTT"}
    us = [int(arguments.fractions.Fraction(re.sub("[a-z]", "", text)) * {"us": 1, "ms": 1000, "s": 10**6}[
        re.sub("[^a-z]", "", text)]) if text else 0 for text in arguments.RTTS[name]]
    if rows:
        expect_equal((sorted(rows), [int(rows[name].max), int(rows[name].typical)]), (sorted(arguments.RTTS), us))
    with pair() as net:
        dualpi2(f"up wan --upload 4mbit --rtt {name}", net.here)
        tc(["qdisc", "add", "dev", "lan", "root", "dualpi2", "bandwidth", "4mbit", "qprotect", "max_rtt", f"{us[0]}us",
            *(["typical_rtt", f"{us[1]}us"] if us[1] else [])], net.here)
        expect_equal(root(net.here, "wan")["options"], root(net.here, "lan")["options"])


COMPLETED = {"dualpi2 d": "down doctor", "dualpi2 set --link doc": "docsis", "dualpi2 up --rtt re": "regional",
             "dualpi2 up --dry": "--dry-run", "dualpi2 status wa": "wan", "dualpi2 help st": "status",
             "dualpi2 play wan --example sa": "satellite", "dualpi2 up wan -- ta": "",
             "dualpi2 up wan --download ": "off", "dualpi2-top --dev": "--device"}


@test("completion for bash")
def bash_completes_words_options_and_devices():
    script = """source "$2/$3"; IFS=' ' read -ra COMP_WORDS <<<"$1"; [[ $1 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "_${3//-/_}"; echo "${COMPREPLY[*]}\""""
    for line, expected in COMPLETED.items():
        done = subprocess.run(["bash", "-c", script, "-", line, os.path.join(ROOT, "tools/completion/bash"),
                               line.split()[0]], text=True, capture_output=True, check=False)
        # A namespace has its own /sys only if that is mounted there.
        if line != "dualpi2 status wa":
            expect_equal((done.stdout, done.stderr), (expected + "\n", ""), line)


@each(["networkmanager-dispatcher.sh wan up", "networkmanager-dispatcher.sh wan reapply", "ppp-ip-up.sh wan /dev/x 0"],
      name=lambda line: re.sub(r"\W", "_", line.partition(" /")[0]))
def example_CASE_applies_the_file(line):
    program, *args = line.split()
    command = [os.path.join(ROOT, "tools/share/examples", program), *args]
    with pair() as net, stand_in(dualpi2=f'exec {" ".join(COMMAND)} "$@"') as path:
        env = {"PATH": f"{path}:{os.environ['PATH']}", "TC_LIB_DIR": os.environ.get("TC_LIB_DIR", "")}
        with in_netns(net.here):
            expect_equal(subprocess.run(command, env=env, check=False).returncode, 0, "without a file")
        write(CONF, b"UPLOAD=3mbit\n")
        try:
            with in_netns(net.here):
                if args[1] == "up":
                    subprocess.run([command[0], "wan", "pre-up"], env=env, check=True)
                    expect_equal(root(net.here, "wan")["kind"], "noqueue", "another event")
                subprocess.run(command, env=env, check=True)
            expect_equal(root(net.here, "wan")["options"]["bandwidth"], 375000)
        finally:
            shutil.rmtree("/etc/dualpi2")


@test("the unit")
def unit_reloads_by_the_file():
    with open(os.path.join(ROOT, "tools/share/dualpi2@.service"), encoding="ascii") as file:
        found = dict(re.findall(r"^(Exec\w+)=/usr/bin/dualpi2 (.*)$", file.read(), re.M))
    expect_equal(found["ExecReload"], found["ExecStart"])
    expect_equal(sorted(found), ["ExecReload", "ExecStart", "ExecStop"])
    with open(os.path.join(ROOT, "tools/share/examples/README"), encoding="ascii") as file:
        text = file.read()
    for path in glob.glob(os.path.join(ROOT, "tools/share/examples/*.*")):
        expect(os.path.basename(path) in text, path)


if __name__ == "__main__":
    main()
