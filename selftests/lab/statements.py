# SPDX-License-Identifier: GPL-2.0-only
"""What the papers say in words: statements, and the checks that show them; see STATEMENTS."""

import math
import sys

import plots
import results
import scenario
from judge import (OURS, IN_TREE, SHARE_POINTS, COUPLING_WITHIN, DROPS_WITHIN, OVERLOAD_PCT, Check, a_mean_ms, l_p99_ms,
                   b_mean_ms, b_p99_ms, rate_ratio, window_ratio, targets, ratio_bounds, of, flows_of, ours_with, named)
from tables import buffer_bdp, coupling_error, drops_ratio, fig12_cell, forced_loss_pct, udp_share_pct

ALWAYS_MARKED_PCT = 99      # the papers' 100 % of L4S marks in overload, less what is between two updates
START_S = 5                 # of a run: flows in slow start; the papers leave out this and more
FEW_MBIT = 5                # "within a few Mbit/s" of 47.5: 5 % of the link
SAMPLE_S = 0.1              # as the PI2 paper samples its peaks
STEP_MS, FLOOR_PACKETS, PACKET_BITS = 1, 2, 1514 * 8   # the papers' native threshold: 1 ms, but two packets at least


# What the papers say in words. Each statement: its number in the project's list of targets, what it says, and a
# function from cells to checks; no check means that no run shows it.

def no_loss_for_l4s(cells):
    """S0-2, without the first START_S of each run."""
    for cell in ours_with(cells):
        low, classic = (cell.value(lambda r, x=x: r.since_pct(r.groups(l4s=x), "dropped", START_S))
                        for x in (True, False))
        if cell.one.groups(l4s=True) and not (classic and classic.mean >= OVERLOAD_PCT):
            yield Check(f"{named(cell)}: L drop %", low, most=0)


def coupled_as_squared(cells):
    """S0-7, in the runs of Fig. 12 that its table does not judge already."""
    table = [fig12_cell(cells, t) for t in targets("fig12.csv")]
    for cell in (c for c in ours_with(cells, "fig12") if c not in table):
        yield Check(f"{named(cell)}: L mark / 2√(C drop)", cell.value(coupling_error), 1 - COUPLING_WITHIN,
                    1 + COUPLING_WITHIN)


def below_native(cells):
    """S0-9: the median of L below the step of 1 ms, or two packets at low rates."""
    for cell in ours_with(cells):
        a, b = cell.one.sender("A"), cell.one.sender("B")
        if a and b and a["ecn"] in results.L4S and b["ecn"] not in results.L4S and not cell.one.groups("udp"):
            threshold = max(STEP_MS, FLOOR_PACKETS * PACKET_BITS / cell.one.rate_mbit / 1e3)
            yield Check(f"{named(cell)}: L P50 ms", cell.value(lambda r: r.of("A", "delay_ms", "p50")), most=threshold)


def udp_subtracts(cells):
    """S0-11, in the runs of Fig. 12 with UDP below the link's rate."""
    for cell in ours_with(cells, "fig12"):
        udp = cell.one.groups("udp")
        offered = sum(scenario.mbit_of(g["rate"]) * g["count"] * (g["payload"] + 42) / g["payload"] for g in udp)
        share = offered / cell.one.rate_mbit * 100
        if udp and share < 100:
            yield Check(f"{named(cell)}: UDP share %", cell.value(udp_share_pct), share - SHARE_POINTS,
                        share + SHARE_POINTS)


def coupled_pct(result):
    """Coupled marks among all of the L4S queue, as dualpi2 counts them; None without marks, or if it does not count."""
    coupled, native = (result.counted("l4s", f"marked-{cause}") for cause in ("coupled", "native"))
    return None if coupled is None or native is None or not coupled + native else coupled / (coupled + native) * 100


def coupled_pct_in_tree(result):
    """coupled_pct() of the one in the kernel, which counts marks of all kinds and those of the step."""
    marks, step = result.counted("ecn-mark"), result.counted("step-mark")
    return (marks - step) / marks * 100 if marks and step is not None else None


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
    """Coupled marks of a lone L4S flow over what reflected_p() makes of its packets; see lone_l4s_by_step_only()."""
    packets = result.of_class(True, "packets")
    k = float(results.options(result.job).get("coupling_factor", 2))
    return over_reflected(result, result.counted("l4s", "marked-coupled"), None if packets is None else k * packets)


def lone_l4s_by_step_only(cells):
    """S0-12, by the qdisc's own counters; runs of qdiscs without them are left out.

    The paper (footnote 10) has p' driven to zero; there it is reflected: a delay that rises within one update makes it
    positive for an update or two, whatever the delay is. So not a coupled mark is too much to ask; what such rises can
    cause is the bound, of the marks and of p' when it is read, and the delay must stay below the target.
    """
    peers = {(c.experiment, c.case): c for c in cells if c.aqm == IN_TREE}
    for cell in ours_with(cells):
        value = cell.value(coupled_pct)
        if not value or cell.one.groups(l4s=False) or cell.one.groups("udp"):
            continue
        yield Check(f"{named(cell)}: coupled of all marks %", value, judged=False)
        peer = peers.get((cell.experiment, cell.case))
        if peer and (beside := peer.value(coupled_pct_in_tree)):
            yield Check(f"{named(peer)}: coupled of all marks %", beside, judged=False)
        yield Check(f"{named(cell)}: coupled marks / their bound", cell.value(coupled_over_bound), most=1)
        yield Check(f"{named(cell)}: greatest delay / target", cell.value(
            lambda r: (aim := target_ms(r)) and r.figure("all", "delay_ms", "max") / aim), most=1)
        yield Check(f"{named(cell)}: p' when read / its bound", cell.value(lambda r: max(
            (over_reflected(r, p) for p in (r.stat("before", "prob"), r.stat("after", "prob")) if p is not None),
            key=lambda share: math.inf if share is None else share, default=None)), most=1)


def overload_in_both(cells):
    """S0-13, in the runs of Fig. 12 that are in overload."""
    for cell in ours_with(cells, "fig12"):
        if forced_loss_pct(cell.job) > OVERLOAD_PCT:
            yield Check(f"{named(cell)}: L drop / C drop", cell.value(drops_ratio), 1 - DROPS_WITHIN, 1 + DROPS_WITHIN)
            yield Check(f"{named(cell)}: L mark %", cell.value(lambda r: r.of("A", "mark_pct")), ALWAYS_MARKED_PCT)


def ect0_is_marked(cells):
    """S0-14: an ECT(0) sender sees marks, and no drop, without the first START_S of each run."""
    for cell in ours_with(cells):
        for group in cell.one.groups("tcp"):
            if group["ecn"] == "classic":
                dropped, marked = (cell.value(lambda r, g=group, x=x: r.since_pct([g], x, START_S))
                                   for x in ("dropped", "marked"))
                yield Check(f"{named(cell)}: drop % of {group['name']}", dropped, most=0)
                yield Check(f"{named(cell)}: mark % of {group['name']}", marked, sys.float_info.min)


def classic_p99_below_pie(cells):
    """S0-21; PIE's run of the same case is the bound, but not at 4 and 12 Mbit/s, "the lowest link rates"."""
    peers = {c.case: c for c in cells if c.experiment == "fig6" and c.aqm == "pie"}
    for cell in ours_with(cells, "fig6"):
        peer = peers.get(cell.case)
        bound = peer and peer.value(b_p99_ms)
        if bound and cell.one.rate_mbit not in (4, 12):
            yield Check(f"{named(cell)}: C P99 ms (PIE's is the bound)", cell.value(b_p99_ms), most=bound.mean,
                        because="the paper's own pair A5 : B5 at 40 Mbit/s is 24.1 against PIE's 22.8")


def peers_are_fair(cells):
    """S0-24; "near 1" is not a number, taken is the bound that rate ratios have in Fig. 8."""
    for cell in cells:
        if cell.experiment == "fig6" and cell.aqm in ("pie", "fq_codel"):
            for what, figure in (("rate", rate_ratio), ("window", window_ratio)):
                yield Check(f"{named(cell)}: {what} ratio", cell.value(figure), *ratio_bounds(1))


def values(what, figure, experiment, aqms):
    """A statement without a number: only what we have."""
    return lambda cells: over(what, figure, [c for c in cells if c.experiment == experiment and c.aqm in aqms])


def against(cc):
    """Whether a cell's B has that congestion control, for of()."""
    return lambda cell: (b := cell.one.sender("B")) is not None and b["cc"] == cc


def for_prague(what, figure, least, most, picked):
    """A statement on Prague: judged where A is Prague, and a value where it is another L4S sender.

    figure: of a result; least, most: its bounds; picked: a function of all cells to those that it is on.
    """
    def function(cells):
        mine = [c for c in ours_with(picked(cells)) if (a := c.one.sender("A")) and a["ecn"] in results.L4S]
        for cell in mine:
            value = cell.value(figure)
            if value and cell.one.sender("A")["cc"] == "prague":
                yield Check(f"{named(cell)}: {what}", value, least, most)
        yield from over(what, figure, [c for c in mine if c.one.sender("A")["cc"] != "prague"])
    return function


def over(what, figure, cells):
    """One value without a verdict: mean and range of a figure over cells; nothing if none has it."""
    found = [v.mean for c in cells if (v := c.value(figure))]
    if found:
        yield Check(f"{what}, mean and range over {len(found)} cells",
                    results.Value(sum(found) / len(found), min(found), max(found), len(found)), judged=False)


def fair_to_cubic(cells):
    """S2-8, with B CUBIC and buffers of 2 BDP and more."""
    for cell in cells:
        if (cell.experiment == "deploy" and cell.aqm in ("fq-ecn", "fq_codel") and against("cubic")(cell)
                and buffer_bdp(cell.job) >= 2):
            yield Check(f"{named(cell)}: A and B apart by Mbit/s", cell.value(
                lambda r: None if None in (rates := [r.of(x, "mbit") for x in "AB"]) else abs(rates[0] - rates[1])),
                most=FEW_MBIT)


def rates_of(letter, aqms, experiment="deploy", wanted=lambda cell: True):
    """A statement of which only the rate of a flow of A or B is shown, in Mbit/s."""
    def figure(result):
        group = result.sender(letter)
        return group and result.summary["groups"][group["name"]]["mbit_per_flow"]
    return lambda cells: over(f"{letter} Mbit/s a flow", figure, [c for c in of(experiment, wanted)(cells)
                                                                  if c.aqm in aqms])


def delays_of(letter, aqms, wanted=lambda cell: True):
    """A statement of which only the mean delay of A or B is shown, in ms."""
    return lambda cells: over(f"{letter} mean ms", lambda r: r.of(letter, "delay_ms"),
                              [c for c in of("deploy", wanted)(cells) if c.aqm in aqms])


def all_of(*functions):
    """The checks of several statements that are one."""
    return lambda cells: [check for function in functions for check in function(cells)]


def fair_share(result):
    """Rate of an A flow over the link's rate by the number of flows."""
    rate = result.summary["groups"]["A"]["mbit_per_flow"]
    return rate and rate * sum(g["count"] for g in result.job["groups"]) / result.rate_mbit


def peak_after_drop(cells):
    """S1-1: the highest sample after the link got slower, PI2's 250 ms the bound, and whether it rose again."""
    for cell in cells:
        if first_drop(cell.job) is None or cell.experiment != "pi2-fig12" or cell.aqm not in (OURS, "pie"):
            continue
        judged, flows = cell.aqm == OURS, sum(g["count"] for g in cell.job["groups"])
        because = f"the paper does not say how many flows; {flows} here"
        for what, figure, most in (("peak ms", peak_ms, 250), ("further peaks above 100 ms", further_peaks, 0)):
            yield Check(f"{cell.aqm}: {what}", cell.value(figure), most=most, judged=judged, because=because)


def on_slow_link(result):
    """Samples of the delay in ms from the first drop of the link's rate until its next change."""
    job, at = result.job, first_drop(result.job)
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


def calmer_than_pie(experiment):
    """S1-2: the highest second (mean delay) and the spread of the seconds are not above PIE's."""
    def function(cells):
        peers = {c.case: c for c in cells if c.experiment == experiment and c.aqm == "pie"}
        for cell in ours_with(cells, experiment):
            if cell.case not in peers:
                continue
            for what, figure in (("highest second ms", plots.highest_second), ("spread of seconds ms", plots.spread)):
                bound = peers[cell.case].value(figure)
                if bound:
                    yield Check(f"{named(cell)}: {what} (PIE's is the bound)", cell.value(figure), most=bound.mean)
    return function


def calmer_after_each_change(cells):
    """S1-3: after each change of the number of flows the highest second (its P99) is not above PIE's."""
    peers = {c.case: c for c in cells if c.experiment == "pi2-fig13" and c.aqm == "pie"}
    for cell in ours_with(cells, "pi2-fig13"):
        end = cell.job["warmup"] + cell.job["seconds"]
        times = {t for g in cell.job["groups"] for t in (g["start"], g["stop"]) if t and t < end}
        edges = [*sorted(times), end]
        for begin, until in zip(edges, edges[1:]):

            def highest(result, begin=begin, until=until):
                return max((v for s, v in result.seconds("all", "delay_p99_ms") if begin <= s < until), default=None)
            bound = cell.case in peers and peers[cell.case].value(highest)
            if bound:
                yield Check(f"{named(cell)}: highest P99 of a second from {begin:g} s on, ms (PIE's is the bound)",
                            cell.value(highest), most=bound.mean)


def similar_to_pie(cells):
    """S1-4: no number is given; ours and PIE's mean delay side by side."""
    for cell in cells:
        if cell.experiment == "pi2-fig14" and cell.aqm in (OURS, "pie"):
            yield Check(f"{cell.case} {cell.aqm}: mean ms", cell.value(lambda r: r.figure("all", "delay_ms")),
                        judged=False)


STATEMENTS = (
    ("S0-1, S0-3", "L median at most 300 µs (Prague; Fig. 6)",
     for_prague("L P50 ms", lambda r: r.of_class(True, "delay_ms", "p50"), 0, 0.3, of("fig6"))),
    ("S0-1, S0-3", "L P99 below 2 ms, under dynamic load too (Prague; Fig. 6, 11)",
     for_prague("L P99 ms", l_p99_ms, 0, 2, lambda cells: of("fig6")(cells) + plots.of_web(cells, "fig11"))),
    ("S0-2", "no congestion loss for L4S below 25 % Classic drop (after 5 s)", no_loss_for_l4s),
    ("S0-7", "Classic probability is (p_CL / 2)², within 3 % (Fig. 12's other rates; its table judges the rest)",
     coupled_as_squared),
    ("S0-9", "with both queues busy, L stays below its native threshold most of the time (P50)", below_native),
    ("S0-11", "unresponsive traffic below the link rate just subtracts (UDP share within 3 points of what is offered)",
     udp_subtracts),
    ("S0-12", "a lone L4S flow is marked by the native AQM only: p' is driven to 0", lone_l4s_by_step_only),
    ("S0-13", "above 25 % Classic drop both classes are dropped alike (within 10 %), and L goes on marking (99 %)",
     overload_in_both),
    ("S0-14", "ECT(0) in the Classic queue is marked where Not-ECT is dropped (after 5 s)", ect0_is_marked),
    ("S0-21", "Classic P99 below PIE's but for the lowest link rates, 4 and 12 Mbit/s (Fig. 6)", classic_p99_below_pie),
    ("S0-21", "Classic mean ≈ 15 ms (Fig. 6)", values("C mean ms", b_mean_ms, "fig6", (OURS,))),
    ("S0-22", "rate ratio 0.85 to 2.5 but for the smallest BDP (Prague; Fig. 6)",
     for_prague("rate ratio", rate_ratio, 0.85, 2.5, of("fig6", lambda c: c.case != "4mbit-5ms"))),
    ("S0-24", "PIE, FQ-CoDel: rate and window ratio near 1 (Fig. 6; taken as within 20 %)", peers_are_fair),
    ("S0-25", "DualPI2 doubles the signal of L4S and squares the Classic one (Fig. 6)",
     values("L mark / 2√(C drop)", coupling_error, "fig6", (OURS,))),
    ("S0-41", "L P99 below 1 ms under web load at 120 Mbit/s (Prague; Fig. 10)",
     for_prague("L P99 ms", l_p99_ms, 0, 1, lambda cells: [c for c in plots.of_web(cells, "fig10")
                                                           if c.case == plots.WEB_CASE])),
    ("S0-43", "short CUBIC flows show stripes at 0.3 s and 1 s (Fig. 9)", all_of(*(
        values(f"{aqm}: {what}", figure, "fig9", (aqm,)) for aqm in (OURS, "pie") for what, figure in (
            ("CUBIC's objects below 50 kB that took over 0.3 s or did not end, %", plots.late_objects_pct),
            ("objects of all that did not end", plots.unended))))),
    ("S1-1", "capacity 100:20:100: peak 250 ms (PIE 510), no second peak above 100 ms", peak_after_drop),
    ("S1-2", "5, 50 flows, and UDP mix: less overshoot and oscillation than PIE", calmer_than_pie("pi2-fig11")),
    ("S1-3", "10:30:50:30:10 flows: less overshoot at each change than PIE", calmer_after_each_change),
    ("S1-4", "delays for targets 5 and 20 ms similar to PIE's",
     similar_to_pie),
    ("S1-6", "L4S : Classic rate close to 1 over 4–200 Mbit/s × 5–100 ms (Fig. 6's cells)",
     values("rate ratio", rate_ratio, "fig6", (OURS,))),
    ("S1-8", "equal rates for any mix of flow numbers (Fig. 7's cells)",
     values("rate ratio per flow", rate_ratio, "fig7", (OURS,))),
    ("S2-1", "against CUBIC the L4S flow has 0.79 to 0.84 of its rate (Prague; partial deployment)",
     for_prague("rate ratio", rate_ratio, 0.79, 0.84, of("deploy", against("cubic")))),
    ("S2-2", "L delay below 0.5 ms with target 5 ms (Prague; partial deployment)",
     for_prague("L mean ms", a_mean_ms, 0, 0.5, of("deploy", against("cubic")))),
    ("S2-3", "FQ-CoDel for L4S: L delay 0.9 to 1.3 ms (Prague against CUBIC)",
     delays_of("A", ("fq_codel-l4s",), against("cubic"))),
    ("S2-5", "BBRv1 dominates an L4S flow: 12.5 / 81.7 Mbit/s (Prague)",
     all_of(*(rates_of(x, (OURS,), wanted=against("bbr")) for x in "AB"))),
    ("S2-8", "FQ and FQ-CoDel: rates within a few Mbit/s of 47.5 (CUBIC, 2 BDP and more; taken as at most 5 apart)",
     fair_to_cubic),
    ("S2-9", "FIFO with ECN: against CUBIC without, L4S starves at 0.2 to 1.6 Mbit/s (Prague, 1 BDP and more)",
     rates_of("A", ("fifo-ecn",), wanted=lambda c: against("cubic")(c) and c.one.sender("B")["ecn"] == "off"
              and buffer_bdp(c.job) >= 1)),
    ("S2-10", "CoDel with ECN: L4S takes 88 of 95 Mbit/s from CUBIC, delays 8.5–8.9 and 11.5–12.3 ms (Prague, 2 BDP "
     "and more)", all_of(*(f(x, ("codel",), wanted=lambda c: against("cubic")(c) and buffer_bdp(c.job) >= 2)
                         for f in (rates_of, delays_of) for x in "AB"))),
    ("S2-11", "PIE and CoDel that drop: L4S acts as Reno, 34–42 against 51–61 Mbit/s (Prague against CUBIC)",
     all_of(*(rates_of(x, ("pie-drop", "codel-drop"), wanted=against("cubic")) for x in "AB"))),
    ("S2-12", "CoDel with ECN: one L4S flow takes 4.4, 6.6, 9.8 times its share against 5, 10, 25 CUBIC flows (Prague)",
     all_of(*(values(f"of its share against {n}", lambda r, n=n: fair_share(r) if flows_of(1, n)(r) else None,
                   "deploy-flows", ("codel",)) for n in (5, 10, 25)))),
    ("S2-13", "L4S flows have 0.70 to 0.91 of their share against CUBIC, whatever their numbers (Prague)",
     values("of its share", fair_share, "deploy-flows", (OURS,))),
    ("S2-15", "25 L4S flows against one CUBIC flow: it has the 10 Mbit/s of the Classic weight (Prague)",
     rates_of("B", (OURS,), "deploy-flows", flows_of(25, 1))),
)
NOT_HERE = (
    ("S0-4, S0-42, S0-44", "of Prague under web load; Fig. 10 and 11 draw what our L4S sender does, without a verdict"),
    ("S0-5, S0-6", "arithmetic that no test repeats"),
    ("S0-8, S0-10, S0-15", "shown by the unit tests and by tc's own tests, not by traffic"),
    ("S0-20, S0-23, S0-26", "of Prague's pacing, RTT independence and smallest window; Fig. 6 draws our L4S sender"),
    ("S0-27", "of Prague at 1 ms; Fig. 2 draws our L4S sender"),
    ("S0-28, S0-29", "of Prague, without a number; Fig. 7 draws our L4S sender"),
    ("S1-5, S1-9", "of qdiscs that are not here: PI without square, bare PIE"),
    ("S1-7, S1-10", "of the single-queue PI2: `scripts/lab.sh companions`, and the tests of pi2"),
    ("S1-11, S1-12", "arithmetic on stability and windows that no test repeats"),
    ("S1-13", "arithmetic; the unit tests count verdicts against p'²"),
    ("S2-4", "of Prague's fallback for Classic ECN"),
    ("S2-6, S2-7, S2-14, S2-16", "of BBRv2 and BBRv3; so are parts of S2-5, S2-12 and S2-13"),
    ("S3-1 to S3-7", "of another DualPI2 at 1 Gbit/s; ours beside VDQ-CSAQM: `scripts/lab.sh companions`"),
    ("S4-1 to S4-10", "of STEP, PI2 and CSAQM: `scripts/lab.sh companions`"),
)
