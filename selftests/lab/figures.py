# SPDX-License-Identifier: GPL-2.0-only
"""The figures that the papers' claims are about, each a function of one run's result; None where the run has none."""

import math

import companions
import judge
import plots
import results
import scenario
import tables

START_S = 5                 # of a run: flows in slow start; the papers leave out this and more
SAMPLE_S = 0.1              # as the PI2 paper samples its peaks
STEP_MS, FLOOR_PACKETS, PACKET_BITS = 1, 2, 1514 * 8   # the papers' native threshold: 1 ms, but two packets at least
SILVER_MBIT = 10            # from here on a Gold flow has four times the rate of a Silver one


def target_ms(result):
    """The target of a dualpi2 in ms, from the job's options; None if it is not there in ms."""
    aim = results.options(result.job).get("target", "")
    return float(aim.removesuffix("ms")) if aim.endswith("ms") else None


def reflected_p(result):
    """p' that the greatest delay can cause in one update from p' = 0; None without the options or delays.

    max(0, beta q - alpha (target - q)) (RFC 9332, appendix A.1, with the delay one update before as 0), alpha and beta
    in Hz, q in s.
    """
    given, highest = results.options(result.job), result.figure("all", "delay_ms", "max")
    if highest is None or target_ms(result) is None or not {"alpha", "beta"} <= set(given):
        return None
    return max(0.0, float(given["beta"]) * highest - float(given["alpha"]) * (target_ms(result) - highest)) / 1e3


def over_reflected(result, value, scale=1):
    """A value over reflected_p() times the scale; infinite if there is some where that is 0, None without one."""
    bound = reflected_p(result)
    if None in (value, bound, scale):
        return None
    return value / (bound * scale) if bound * scale else math.inf if value else 0.0


def coupled_over_bound(result):
    """Coupled marks of L4S flows without others over what reflected_p() makes of their packets.

    The DualPI2 paper (footnote 10) has p' driven to zero; there it is reflected: a delay that rises within one update
    makes it positive for an update or two, whatever the delay is. So not a coupled mark is too much to ask.
    """
    if result.groups(l4s=False) or result.groups("udp"):
        return None
    packets = result.of_class(True, "packets")
    k = float(results.options(result.job).get("coupling_factor", 2))
    return over_reflected(result, result.counted("l4s", "marked-coupled"), None if packets is None else k * packets)


def fair_share(result):
    """Rate of an A flow over the link's rate by the number of flows."""
    if not result.sender("A"):
        return None
    rate = result.summary["groups"]["A"]["mbit_per_flow"]
    return rate and rate * sum(g["count"] for g in result.job["groups"]) / result.rate_mbit


def on_slow_link(result):
    """Samples of the delay in ms from the first drop of the link's rate until its next change; none without one."""
    job, at = result.job, first_drop(result.job)
    if at is None:
        return []
    end = min([c["at"] for c in job["changes"] if c["at"] > at], default=job["warmup"] + job["seconds"])
    return [d for s, d in plots.samples(result, SAMPLE_S) if at <= s < end]


def peak_ms(result):
    """The highest of them; None without sightings."""
    return max(on_slow_link(result), default=None)


def further_peaks(result):
    """How many times they rose above 100 ms after the first; None without sightings."""
    high = [d > 100 for d in on_slow_link(result)]
    return max(sum(now and not before for before, now in zip([False, *high], high)) - 1, 0) if high else None


def first_drop(job):
    """Second at which the link first gets slower than it began; None if it does not."""
    rate = scenario.mbit_of(job["rate"])
    return next((c["at"] for c in job["changes"] if scenario.mbit_of(c["rate"]) < rate), None)


def balance(result):
    """Rate of a B flow over that of an A flow."""
    found = result.rate_ratio()
    return 1 / found if found else None


def since_start(l4s, column):
    """"marked" or "dropped" of a class in per cent, without the first seconds of slow start."""
    def figure(result):
        return result.since_pct(result.groups(l4s=l4s), column, START_S)
    return figure


def of_ect0(column):
    """The same of the TCP groups with Classic ECN."""
    return lambda result: result.since_pct([g for g in result.groups("tcp") if g["ecn"] == "classic"], column, START_S)


def drop_of_l4s_below_overload(result):
    """L4S packets dropped below overload in per cent.

    Where the qdisc counts them by cause, those of the L4S queue alone: SYNs and retransmissions of L4S flows are not
    ECT(1), so that they wait, and may be dropped, in the Classic queue. Elsewhere those of L4S flows after the start;
    None if the Classic drop of the run is that of overload.
    """
    arrived = result.counted("l4s", "presented")
    if arrived is not None:
        lost = sum(result.counted("l4s", "dropped-" + cause) for cause in ("limit", "memory", "early", "aqm"))
        return lost / arrived * 100 if arrived else None
    classic = since_start(False, "dropped")(result)
    if classic is not None and classic >= judge.OVERLOAD_PCT:
        return None
    return since_start(True, "dropped")(result) if result.groups(l4s=True) else None


def in_overload(figure):
    """A figure of the runs whose UDP alone is so much that a Classic drop above 25 % is needed; None of others."""
    return lambda result: figure(result) if tables.forced_loss_pct(result.job) > judge.OVERLOAD_PCT else None


def over_native(result):
    """Median delay of A over the native threshold, 1 ms or two packets."""
    median = result.of("A", "delay_ms", "p50")
    floor = FLOOR_PACKETS * PACKET_BITS / result.rate_mbit / 1e3
    return median / max(STEP_MS, floor) if median is not None and result.groups("tcp", False) else None


def udp_points(result):
    """Per cent of the link that UDP got above what it offered; None if it offered as much as the link has."""
    offered = sum(scenario.mbit_of(g["rate"]) * g["count"] * (g["payload"] + 42) / g["payload"]
                  for g in result.groups("udp")) / result.rate_mbit * 100
    share = tables.udp_share_pct(result)
    return share - offered if share is not None and offered < 100 else None


def per_flow(letter):
    """Mbit/s of a flow of A or B."""
    def figure(result):
        group = result.sender(letter)
        return result.summary["groups"][group["name"]]["mbit_per_flow"] if group else None
    return figure


def gold_silver(letter):
    """Rate of a Gold flow over that of a Silver one in a class; None where Silver has less than its 10 Mbit/s."""
    def figure(result):
        gold, silver = (result.summary["groups"].get(f"{letter}-{kind}", {}).get("mbit_per_flow")
                        for kind in ("gold", "silver"))
        return gold / silver if gold is not None and silver and silver >= SILVER_MBIT else None
    return figure


def above_base(result):
    """Smoothed RTT of A less its base RTT, in ms, as the partial deployment paper has delays; None without it."""
    group = result.sender("A")
    srtt = result.summary["groups"][group["name"]].get("srtt_ms") if group else None
    return None if srtt is None else srtt - group["rtt_ms"]


def apart(result):
    """Mbit/s that a flow of A and one of B are apart."""
    a, b = per_flow("A")(result), per_flow("B")(result)
    return None if None in (a, b) else abs(a - b)


def target_ratio(result):
    """Mean delay of all packets over the target of csaqm or pi2; None of others."""
    words = (result.job.get("child") or result.job["qdisc"]).split()
    target = words[words.index("target") + 1] if "target" in words else ""
    mean = result.figure("all", "delay_ms")
    return mean / float(target[:-2]) if target.endswith("ms") and mean is not None else None


FIGURES = {  # name: (function of a result, what it is called)
    "l_mean_ms": (lambda r: r.of_class(True, "delay_ms"), "L4S mean, ms"),
    "l_p50_ms": (lambda r: r.of_class(True, "delay_ms", "p50"), "L4S P50, ms"),
    "l_p99_ms": (judge.l_p99_ms, "L4S P99, ms"),
    "c_mean_ms": (lambda r: r.of_class(False, "delay_ms"), "Classic mean, ms"),
    "a_mean_ms": (judge.a_mean_ms, "A mean, ms"),
    "a_p99_ms": (judge.a_p99_ms, "A P99, ms"),
    "b_mean_ms": (judge.b_mean_ms, "B mean, ms"),
    "b_p99_ms": (judge.b_p99_ms, "B P99, ms"),
    "all_p50_ms": (lambda r: r.figure("all", "delay_ms", "p50"), "P50, ms"),
    "all_p99_ms": (lambda r: r.figure("all", "delay_ms", "p99"), "P99, ms"),
    "utilization": (judge.utilization_pct, "utilization, %"),
    "rate_ratio": (judge.rate_ratio, "rate A : B"),
    "rate_ratio_b_a": (balance, "rate B : A"),
    "a_mbit": (per_flow("A"), "A, Mbit/s a flow"),
    "b_mbit": (per_flow("B"), "B, Mbit/s a flow"),
    "a_above_base_ms": (above_base, "A, smoothed RTT less base RTT, ms"),
    "apart_mbit": (apart, "A and B apart, Mbit/s"),
    "a_share": (fair_share, "A, of its fair share"),
    "l_share": (companions.class_share(True), "L4S, of its fair share"),
    "c_share": (companions.class_share(False), "Classic, of its fair share"),
    "jain": (companions.jain, "Jain's index"),
    "gold_silver_l4s": (gold_silver("A"), "Gold : Silver, L4S"),
    "gold_silver_classic": (gold_silver("B"), "Gold : Silver, Classic"),
    "udp_share": (tables.udp_share_pct, "UDP share, %"),
    "udp_points": (udp_points, "UDP share above its offer, points"),
    "coupling": (tables.coupling_error, "L4S mark / 2√(Classic drop)"),
    "drops_in_overload": (in_overload(tables.drops_ratio), "L4S drop / Classic drop"),
    "marks_in_overload": (in_overload(lambda r: r.of("A", "mark_pct")), "L4S marks, %"),
    "ect0_drop": (of_ect0("dropped"), "ECT(0) drops, %"),
    "ect0_mark": (of_ect0("marked"), "ECT(0) marks, %"),
    "l_drop": (drop_of_l4s_below_overload, "L4S drops, %"),
    "l_p50_over_native": (over_native, "L4S P50 / native threshold"),
    "coupled_over_bound": (coupled_over_bound, "coupled marks / their bound"),
    "late_objects": (plots.late_objects_pct, "short CUBIC objects above 0.3 s, %"),
    "highest_second_ms": (plots.highest_second, "highest second, ms"),
    "spread_ms": (plots.spread, "spread of seconds, ms"),
    "peak_ms": (peak_ms, "peak, ms"),
    "further_peaks": (further_peaks, "further peaks above 100 ms"),
    "delay_over_target": (target_ratio, "mean delay / target"),
}
