# SPDX-License-Identifier: GPL-2.0-only
"""What a job is: a dictionary that scenario.py makes of a scenario and dumbbell.py runs, as JSON between them.

A job must have KEYS[""], and each of its groups the keys of its kind. Times are seconds after the start of the run,
rates are tc's. "stop" may be null, "changes" is a list of {"at", "rate"} of the link, "module" is one to load before, a
list of companions, or null, "qdisc" what stands after `tc qdisc add ... handle 10:`. "ecn" of TCP and web is off,
classic (ECT(0)) or l4s (rewritten to ECT(1)), of UDP not-ect, ect0 or ect1; the "rate" of UDP is that of its payload.
There may be "shaper", which is "own" where the qdisc has the link's rate itself ("bandwidth RATE"), "child", the qdisc
below it, which then has that rate, and in a group "aggregate_ms": its packets arrive together, so many ms after the
first of them was sent, and "tvf": the class of its packets at the qdisc. Groups with TCP may have "pacing", which is
false where fq does not pace, and "parameters" of the module of their "cc", {name: number, true or false}; such a group
has its name in senders.toml as "sender". Other keys are kept as they are. A "tcp" group has always data to send; with a
"cc" of UDP_PRAGUE its flows are the programs of udp_prague, over UDP.
"""

import re

FORMAT = 1
# prio has no more bands, and one is needed for each round-trip time.
MOST_RTTS = 16
# An address ends with the number of the flow.
MOST_FLOWS = 250
SHAPERS = ("htb", "own")
# Senders that are programs of scripts/udp-prague.sh: options of udp_prague_sender.
UDP_PRAGUE = {"udp_prague": [], "udp_prague-no-fallback": ["--no-classic-aqm-fallback"]}
# They pace themselves, without fq.
PACE_THEMSELVES = ("prague", "bbr", *UDP_PRAGUE)
KEYS = {
    "": {"format", "rate", "changes", "module", "qdisc", "warmup", "seconds", "groups", "seed"},
    "tcp": {"name", "kind", "cc", "ecn", "rtt_ms", "count", "start", "stop"},
    "udp": {"name", "kind", "ecn", "rtt_ms", "count", "rate", "payload", "start", "stop"},
    "web": {"name", "kind", "cc", "ecn", "rtt_ms", "per_second", "alpha", "least", "most", "start", "stop"},
}
RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmg]?)bit")
MBIT = {"": 1e-6, "k": 1e-3, "m": 1, "g": 1e3}


class JobError(Exception):
    """What is wrong with a job or a scenario, in one line."""


def _rate(text, factor):
    found = RATE.fullmatch(text) if isinstance(text, str) else None
    if not found or not float(found[1]):
        raise JobError(f"{text!r} is no rate above nothing; write one like \"40mbit\"")
    return float(found[1]) * (MBIT[found[2]] * factor)


def mbit_of(text):
    """Mbit/s, above 0, of tc's "40mbit"; JobError for what is no such rate."""
    return _rate(text, 1)


def bits_per_second(text):
    """The same in bit/s, of text in capitals, too."""
    return _rate(text.lower(), 1e6)


def aggregated(job):
    """[(number of the group, ms)] of the groups whose packets come in aggregates."""
    return [(n, g["aggregate_ms"]) for n, g in enumerate(job["groups"], 1) if g.get("aggregate_ms")]


def uses_udp_prague(job):
    """Whether a flow of the job is udp_prague."""
    return any(g.get("cc") in UDP_PRAGUE for g in job["groups"])


def parameters(job):
    """{name: value} of the parameters of tcp_prague; JobError if two groups want different ones."""
    users = [g for g in job["groups"] if g.get("cc") == "prague"]
    for group in users[1:]:
        if group.get("parameters") != users[0].get("parameters"):
            raise JobError(f"groups {users[0]['name']} and {group['name']} want different parameters of the module "
                           f"tcp_prague: {users[0].get('parameters', 'none')} and {group.get('parameters', 'none')}")
    return users[0].get("parameters", {}) if users else {}


def _check_sender(group):
    cc = group.get("cc")
    if "pacing" in group and cc in PACE_THEMSELVES:
        raise JobError(f"group {group['name']}: {cc} paces by itself; pacing = false is for other senders")
    if "parameters" in group and cc != "prague":
        raise JobError(f"group {group['name']}: parameters of {cc}; only prague has some")


def check(job):
    """JobError if dumbbell.py cannot run the job."""
    if job.get("format") != FORMAT:
        raise JobError(f"a job of format {job.get('format')}; this program runs format {FORMAT}: write it again")
    if missing := KEYS[""] - set(job):
        raise JobError(f"the job lacks {', '.join(sorted(missing))}")
    for group in job["groups"]:
        if group.get("kind") not in KEYS:
            raise JobError(f"group {group.get('name')} is of kind '{group.get('kind')}'; there are tcp, udp, web")
        if missing := KEYS[group["kind"]] - set(group):
            raise JobError(f"group {group.get('name')} lacks {', '.join(sorted(missing))}")
        if not 0 <= group.get("count", 1) <= MOST_FLOWS:
            raise JobError(f"group {group['name']} has {group['count']} flows; at most {MOST_FLOWS} can be")
        if group["kind"] == "web" and group["cc"] in UDP_PRAGUE:
            raise JobError(f"group {group['name']} of kind web has the sender {group['cc']}; web objects need TCP")
        _check_sender(group)
    parameters(job)
    for rate in (job["rate"], *(c["rate"] for c in job["changes"])):
        mbit_of(rate)
    if len({g["rtt_ms"] for g in job["groups"]}) > MOST_RTTS:
        raise JobError(f"more than {MOST_RTTS} different round-trip times; give groups the same")
    if len(aggregated(job)) >= MOST_RTTS:
        raise JobError(f"{len(aggregated(job))} groups come in aggregates; at most {MOST_RTTS - 1} can")
    if job.get("shaper", "htb") not in SHAPERS:
        raise JobError(f"the job's shaper is '{job['shaper']}'; there are {', '.join(SHAPERS)}")
