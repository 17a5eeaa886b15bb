#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Put every target of the papers beside what our runs gave, on one page of Markdown.

The papers' numbers are in targets/, the bounds are those that the project set itself beforehand and stand in this file
once each; nothing is judged that was not run, and where a paper gives no number a value stands without a verdict.
A value is the mean over the seeds, with [least to most] where there are several, and it is the mean that is judged.
Pictures are plots.py's, flent's files flentfile.py's; how a figure is measured is measure.py's matter.
"""

import argparse
import csv
import dataclasses
import math
import os
import sys

import accept
import flentfile
import plots
import results
import runs
import scenario
import store

HERE = os.path.dirname(os.path.abspath(__file__))
INF = math.inf

OURS, IN_TREE = plots.OURS, "dualpi2-in-tree"
PAPER_AQMS = {"DualPI2": OURS, "PIE": "pie", "FQ-CoDel": "fq_codel"}

WITHIN = 0.20               # rate ratio, and the rows of PIE and FQ-CoDel, of the paper's
SHARE_POINTS = 3            # UDP's share of the link
COUPLING_WITHIN = 0.03      # L mark against 2 sqrt(C drop)
DROPS_WITHIN = 0.10         # drops of both classes in overload
OVERLOAD_PCT = 25           # Classic drop from which on it is overload: 100 % / k^2 with k = 2
ALWAYS_MARKED_PCT = 99      # the papers' 100 % of L4S marks in overload, less what is between two updates
OWN_LEVELS = ("p50", "p90", "p99", "p99_9")
SHAPER_RATIO = 0.7          # L P99 with the shaper of its own, of that below htb
BURST_MBIT = 36             # of 40, for an L4S flow that comes in aggregates
SMOOTH_WITHIN = 0.02        # L P99 with tolerance of bursts, of that without, where there are none
OWN_WITHIN_PCT = 6          # P99 as the qdisc has it, of the one seen: half of the widest bucket
START_S = 5                 # of a run: flows in slow start; the papers leave out this and more
FEW_MBIT = 5                # "within a few Mbit/s" of 47.5: 5 % of the link
SAMPLE_S = 0.1              # as the PI2 paper samples its peaks
STEP_MS, FLOOR_PACKETS, PACKET_BITS = 1, 2, 1514 * 8   # the papers' native threshold: 1 ms, but two packets at least


@dataclasses.dataclass
class Check:
    """A value against its bounds, both included; `value` None: the run gave none. `because`: why a miss may be."""

    what: str
    value: results.Value | None
    least: float = -INF
    most: float = INF
    paper: float | None = None
    step: float = 0             # a paper's figure stands for all up to this much more
    judged: bool = True
    because: str = ""

    def verdict(self):
        """"reached" or "missed"; "value" if there is nothing to reach."""
        if not self.judged:
            return "value"
        good = self.value and not self.value.lacking and self.least <= self.value.mean <= self.most
        return "reached" if good else "missed"

    def why(self):
        """By how much it is missed, and what the seeds and the paper's own resolution say of it; "" if it is not."""
        if self.verdict() != "missed":
            return ""
        if not self.value:
            return f"{self.what}: the run gave none"
        if self.value.lacking:
            return f"{self.what}: no figure in {self.value.lacking} of {self.value.lacking + self.value.seeds} seeds"
        mean = self.value.mean
        bound = self.most if mean > self.most else self.least
        text = f"{self.what} {mean:.4g}, to reach {'≤' if mean > self.most else '≥'} {bound:.4g}"
        if bound:
            off = (mean / bound - 1) * 100
            text += f" ({off:+.0f} %)" if abs(off) >= 10 else f" ({off:+.2g} %)"
        if 0 < mean - self.most <= self.step:
            text += ", less than a step of the paper's scale"
        if any(self.least <= v <= self.most for v in (self.value.least, self.value.most)):
            text += ", reached by some seeds"
        return text + (f" ({self.because})" if self.because else "")


@dataclasses.dataclass
class Row:
    """A line of the report: what it is of, and its checks; None: not run."""

    label: list
    checks: list | None
    cells: list = ()

    def verdict(self):
        if self.checks is None:
            return "not run"
        found = {c.verdict() for c in self.checks}
        return next((v for v in ("missed", "reached", "value") if v in found), "not run")

    def why(self):
        return "; ".join(filter(None, (c.why() for c in self.checks or [])))


# Figures of a result, in the unit that the name ends in

def a_mean_ms(result):
    """Mean queue delay of A's packets in ms; as with all of these, None if the run has none."""
    return result.of("A", "delay_ms")


def a_p99_ms(result):
    """99th percentile of A's queue delay in ms."""
    return result.of("A", "delay_ms", "p99")


def l_p99_ms(result):
    """99th percentile of the queue delay in ms of all L4S packets, web objects' too."""
    return result.of_class(True, "delay_ms", "p99")


def b_mean_ms(result):
    """Mean queue delay of B's packets in ms."""
    return result.of("B", "delay_ms")


def b_p99_ms(result):
    """99th percentile of B's queue delay in ms."""
    return result.of("B", "delay_ms", "p99")


def utilization_pct(result):
    """Mean of the seconds' utilization in per cent of the link."""
    return result.figure("all", "utilization_pct")


rate_ratio, window_ratio = results.Result.rate_ratio, results.Result.window_ratio


def classic_drop_pct(result):
    """Packets lost of all of the Classic groups in per cent."""
    return result.class_drop_pct(False)


def targets(name):
    """Rows of targets/NAME as {column: text}; numbers are the caller's to make."""
    with open(os.path.join(HERE, "targets", name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def shown(value, digits=3):
    """"1.23", or with several seeds "1.23 [1.20 to 1.25]"; "–" for None."""
    if value is None:
        return "–"
    text = f"{value.mean:.{digits}f}"
    if value.seeds > 1:
        text += f" [{value.least:.{digits}f} to {value.most:.{digits}f}]"
    return text + f" (none in {value.lacking} of {value.lacking + value.seeds})" * bool(value.lacking)


def cell_text(check, digits):
    """Ours / the paper's, ours in bold where it misses its bound."""
    ours = shown(check.value, digits)
    if check.verdict() == "missed":
        ours = f"**{ours}**"
    return ours if check.paper is None else f"{ours} / {check.paper:.{digits}f}"


def markdown(head, rows):
    """A table of Markdown; rows are lists of text."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def step_ms(ms):
    """Resolution of the paper's delays at a delay: the qdisc there kept 7 bits of a float in units of 32.768 us."""
    return 0.032768 * 2 ** max(0, math.floor(math.log2(max(ms, 1e-9) / 4.194304)))


def ratio_bounds(paper):
    """A rate ratio is good within 20 % of the paper's, or if it is closer to 1 on a scale of ratios."""
    away = max(paper, 1 / paper)
    return min((1 - WITHIN) * paper, 1 / away), max((1 + WITHIN) * paper, away)


# Fig. 8

FIG8_COLUMNS = (  # column of targets/fig8.csv, name, figure of the result, digits shown
    ("a_mean_ms", "A mean ms", a_mean_ms, 3),
    ("a_p99_ms", "A P99 ms", a_p99_ms, 3),
    ("b_mean_ms", "B mean ms", b_mean_ms, 2),
    ("b_p99_ms", "B P99 ms", b_p99_ms, 2),
    ("util_pct", "utilization %", utilization_pct, 2),
    ("rate_ratio", "rate A : B", rate_ratio, 2),
)


def fig8_cell(cells, target):
    """Our cell for a row of targets/fig8.csv, found by AQM, RTTs and congestion control; None if it was not run."""
    for cell in cells:
        if cell.experiment != "fig8" or cell.aqm != PAPER_AQMS[target["aqm"]]:
            continue
        a, b = cell.one.sender("A"), cell.one.sender("B")
        if not a or a["rtt_ms"] != float(target["rtt_a_ms"]):
            continue
        if b:
            same = target["rtt_b_ms"] and b["rtt_ms"] == float(target["rtt_b_ms"]) and b["cc"] == target["set"].lower()
        else:
            said = [cc for cc in ("cubic", "reno") if cc in cell.case]
            same = not target["rtt_b_ms"] and said in ([], [target["set"].lower()])
        if same:
            return cell
    return None


def fig8_check(aqm, column, name, value, paper):
    """The bound of one column of Fig. 8; see WITHIN and the head of the section in the report."""
    check = Check(name, value, paper=paper)
    if aqm != OURS:
        check.least, check.most = (1 - WITHIN) * paper, (1 + WITHIN) * paper
    elif column in ("a_mean_ms", "a_p99_ms"):
        check.most, check.step = paper, step_ms(paper)
    elif column == "util_pct":
        check.least = paper
    elif column == "rate_ratio":
        check.least, check.most = ratio_bounds(paper)
    else:
        check.judged = False
    return check


def balance(result):
    """Rate A : B that the coupling gives senders without RTT independence: accept.balance(), with an RTT for each.

    It takes CUBIC, too, for Reno's window of 1.22 / sqrt(p): its Reno mode is made to have that (RFC 9438, 4.3). The
    1.68 of the PI2 paper (section 4) is of one that grows by a whole packet a round trip. None for other senders.
    """
    a, b = result.sender("A"), result.sender("B")
    if not a or a["cc"] != "dctcp" or not b or b["cc"] not in ("reno", "cubic") or None in (
            a_mean_ms(result), b_mean_ms(result)):
        return None
    return accept.balance(0, b["rtt_ms"] + b_mean_ms(result), a["rtt_ms"] + a_mean_ms(result))


def fig8_rows(cells, paper_aqm):
    """A Row for each of the paper's runs with one AQM."""
    rows = []
    for target in targets("fig8.csv"):
        if target["aqm"] != paper_aqm:
            continue
        cell = fig8_cell(cells, target)
        label = [target["set"], "A5 : " + (f"B{target['rtt_b_ms']}" if target["rtt_b_ms"] else "–")]
        if not cell:
            rows.append(Row(label, None))
            continue
        checks = [fig8_check(cell.aqm, column, name, cell.value(figure), float(target[column])) if target[column]
                  else None for column, name, figure, _ in FIG8_COLUMNS]
        own = cell.value(balance) if cell.aqm == OURS else None
        if own and checks[-1] and checks[-1].value:
            checks[-1].because = (f"DCTCP does not even out RTTs as Prague does: its formula gives {own.mean:.2f}, so "
                                  f"{(checks[-1].value.mean / own.mean - 1) * 100:+.0f} % is not explained by it")
        rows.append(Row(label, [c for c in checks if c],
                        ["–" if c is None else cell_text(c, column[3]) for c, column in zip(checks, FIG8_COLUMNS)]))
    return rows


# Fig. 12

def two_sqrt_pct(drop_pct):
    """L4S marks that belong to a Classic drop, both in per cent: k sqrt(p), k = 2, 100 at most (RFC 9332, 2.1)."""
    return min(100.0, 200 * math.sqrt(drop_pct / 100))


def fig12_cell(cells, target):
    """Our cell for a row of targets/fig12.csv, by UDP's class and rate and the Classic congestion control; or None."""
    for cell in cells:
        udp, b = cell.one.groups("udp"), cell.one.sender("B")
        if (cell.experiment == "fig12" and cell.aqm == OURS and len(udp) == 1 and b
                and udp[0]["ecn"] == target["udp_class"] and b["cc"] == target["cc_c"].lower()
                and scenario.mbit_of(udp[0]["rate"]) == float(target["udp_mbps"])):
            return cell
    return None


def udp_share_pct(result):
    """UDP's part of the link in per cent, all UDP groups together."""
    rates = [result.figure(g["name"], "mbit") for g in result.groups("udp")]
    return None if not rates or None in rates else sum(rates) / result.rate_mbit * 100


def coupling_error(result):
    """L mark over 2 sqrt(C drop), of the TCP flows; None without Classic drops."""
    mark, drop = result.of("A", "mark_pct"), result.of("B", "drop_pct")
    return mark / two_sqrt_pct(drop) if mark is not None and drop else None


def drops_ratio(result):
    """Share lost of all L4S packets over that of all Classic ones, UDP with its class; None without Classic drops."""
    low, classic = result.class_drop_pct(True), result.class_drop_pct(False)
    return low / classic if low is not None and classic else None


def forced_loss_pct(job):
    """What UDP alone would have to lose of what it offers on the wire, whichever its class; 0 below the link's rate."""
    offered = sum(scenario.mbit_of(g["rate"]) * g["count"] * (g["payload"] + 42) / g["payload"]
                  for g in job["groups"] if g["kind"] == "udp")
    return max(0.0, 1 - scenario.mbit_of(job["rate"]) / offered) * 100 if offered else 0.0


def fig12_rows(cells):
    """A Row for each of the paper's runs."""
    rows = []
    for target in targets("fig12.csv"):
        cell = fig12_cell(cells, target)
        label = [target["cc_c"], {"ect1": "ECT(1)", "not-ect": "Not-ECT"}[target["udp_class"]], target["udp_mbps"]]
        if not cell:
            rows.append(Row(label, None))
            continue
        share, mean, p99 = (float(target[k]) for k in ("rate_udp_mbps", "l_mean_ms", "l_p99_ms"))
        checks = [
            Check("UDP share %", cell.value(udp_share_pct), share - SHARE_POINTS, share + SHARE_POINTS, share),
            Check("L mean ms", cell.value(a_mean_ms), most=mean, paper=mean, step=step_ms(mean)),
            Check("L P99 ms", cell.value(a_p99_ms), most=p99, paper=p99, step=step_ms(p99)),
            Check("L mark / 2√(C drop)", cell.value(coupling_error), 1 - COUPLING_WITHIN, 1 + COUPLING_WITHIN,
                  float(target["mark_l_pct"]) / two_sqrt_pct(float(target["drop_c_pct"])))]
        forced = forced_loss_pct(cell.job)
        drops = Check("L drop / C drop", cell.value(drops_ratio), 1 - DROPS_WITHIN, 1 + DROPS_WITHIN,
                      float(target["drop_l_pct"]) / float(target["drop_c_pct"]), judged=forced > OVERLOAD_PCT)
        rows.append(Row(label, checks + [drops] * (forced > 0), [
            *(cell_text(c, d) for c, d in zip(checks, (1, 2, 2, 3))),
            cell_text(drops, 3) if forced else "–", shown(cell.value(classic_drop_pct), 1)]))
    return rows


# Partial deployment

DEPLOY_AQMS = {"FIFO": "fifo", "PIE drop-based": "pie-drop", "CoDel drop-based": "codel-drop", "FIFO+ECN": "fifo-ecn",
               "CoDel+ECN": "codel", "FQ": "fq-ecn", "FQ-CoDel": "fq_codel", "FQ-CoDel L4S": "fq_codel-l4s",
               "DualPI2": OURS}


def buffer_bdp(job):
    """The buffer in BDP that a case of the experiment "deploy" is named for, "l4s-cubic-0.5bdp"."""
    return float(job["case"].rpartition("-")[2].removesuffix("bdp"))


def deploy_rows(cells):
    """Rates and delays beside the paper's, [[text]]; nothing is judged: its senders and its delays are others."""
    rows = []
    for target in targets("partial-deployment.csv"):
        for cell in cells:
            b = cell.one.sender("B")
            if (cell.experiment, cell.aqm) != ("deploy", DEPLOY_AQMS[target["aqm"]]) or not b or (
                    b["cc"], b["ecn"], buffer_bdp(cell.job)) != (
                    target["cc_b"], target["ecn_b"], float(target["buffer_bdp"])):
                continue
            texts = []
            for what, digits, columns in (("mbit", 1, ("rate_a_mbps", "rate_b_mbps")),
                                          ("delay_ms", 2, ("delay_a_ms", "delay_b_ms"))):
                for letter, column in zip("AB", columns):
                    paper = f" / {target[column]}" if target[column] else ""
                    texts.append(shown(cell.value(lambda r, x=letter, w=what: r.of(x, w)), digits) + paper)
            sender = target["cc_b"] + {"off": "", "classic": " (ECN)"}[target["ecn_b"]]
            rows.append([sender, cell.aqm, target["buffer_bdp"], *texts])
    return rows


def deploy_flows_rows(cells):
    """Rates of a flow and delays beside the paper's for many flows, [[text]]; nothing is judged, see deploy_rows()."""
    rows = []
    for target in targets("deploy-flows.csv"):
        wanted = flows_of(int(target["flows_a"]), int(target["flows_b"]))
        for cell in of("deploy-flows", wanted)(cells):
            if cell.aqm != DEPLOY_AQMS[target["aqm"]]:
                continue
            texts = []
            for letter in "AB":
                for digits, column, figure in ((2, "rate_{}_mbps", lambda r, x=letter: r.summary["groups"][x][
                        "mbit_per_flow"]), (2, "delay_{}_ms", lambda r, x=letter: r.of(x, "delay_ms"))):
                    paper = target[column.format(letter.lower())]
                    texts.append(shown(cell.value(figure), digits) + (f" / {paper}" if paper else ""))
            rows.append([f"{target['flows_a']} : {target['flows_b']}", cell.aqm, *texts[::2], *texts[1::2]])
    return rows


# What the papers say in words. Each statement: its number in the project's list of targets, what it says, and a
# function from cells to checks; no check means that no run shows it.

def ours_with(cells, experiment=None):
    """Our cells of one experiment, or of all: but for the smoke runs, too short to prove anything, and bursts."""
    return [c for c in cells if c.aqm == OURS and experiment in (None, c.experiment)
            and c.experiment not in ("smoke", "bursts")]


def named(cell):
    """How a cell is called in reasons."""
    return f"{cell.experiment} {cell.case} {cell.aqm}"


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


def of(experiment, wanted=lambda cell: True):
    """What picks the cells of one experiment that are wanted, for for_prague()."""
    return lambda cells: [c for c in cells if c.experiment == experiment and wanted(c)]


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


def flows_of(a, b):
    """Whether a cell or a result has these numbers of flows, for of()."""
    return lambda one: [g["count"] for g in one.job["groups"]] == [a, b]


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


# Ours against the one in the kernel

def in_tree_rows(cells):
    """Every case with an L4S sender A that either dualpi2 ran: A's P99, its ratio, utilization, rate ratio, [[text]].

    Empty if the one in the kernel was not run at all.
    """
    if IN_TREE not in {c.aqm for c in cells}:
        return []
    pairs = {}
    for cell in cells:
        sender = cell.one.sender("A")
        if cell.aqm in (OURS, IN_TREE) and sender and sender["ecn"] in results.L4S:
            pairs.setdefault((cell.experiment, cell.case), {})[cell.aqm] = cell
    rows = []
    for (experiment, case), pair in pairs.items():

        def both(figure, digits, pair=pair):
            found = [aqm in pair and pair[aqm].value(figure) for aqm in (OURS, IN_TREE)]
            return found, " / ".join("not run" if v is False else shown(v, digits) for v in found)
        p99, text = both(a_p99_ms, 3)
        ratio = f"{p99[0].mean / p99[1].mean:.2f}" if all(p99) and p99[1].mean else "–"
        rows.append([f"{experiment} {case}", text, ratio,
both(utilization_pct, 2)[1], both(rate_ratio, 2)[1]])
    return rows


# The shaper, and bursts

SHAPER = "dualpi2-shaper"
TOLERANT = ("dualpi2-burst", "dualpi2-shaper-burst")     # with burst_max 5 ms
SHAPER_FIGURES = (("L mean ms", a_mean_ms, 3), ("L P99 ms", a_p99_ms, 3), ("C mean ms", b_mean_ms, 2),
                  ("C P99 ms", b_p99_ms, 2), ("rate L : C", rate_ratio, 2), ("utilization %", utilization_pct, 2))


def by_case(cells, experiment):
    """{case: {aqm: cell}} of one experiment, in the order of the results."""
    found = {}
    for cell in cells:
        if cell.experiment == experiment:
            found.setdefault(cell.case, {})[cell.aqm] = cell
    return dict(sorted(found.items(), key=lambda item: (next(iter(item[1].values())).one.rate_mbit, item[0])))


def over_value(value, other):
    """The mean of a Value over that of another one, as a Value; None without both."""
    return results.Value(*(value.mean / other.mean,) * 3, 1) if value and other and other.mean else None


def shaper_rows(cells):
    """A Row for each link: L P99 of our shaper over that of our qdisc and of the kernel's below htb."""
    rows = []
    for case, aqms in by_case(cells, "shaper").items():
        p99 = {aqm: cell.value(a_p99_ms) for aqm, cell in aqms.items()}
        checks = [Check(what, over_value(p99.get(SHAPER), p99.get(aqm)), most=SHAPER_RATIO, judged=judged)
                  for what, aqm, judged in (("of ours below htb", OURS, False), ("of the kernel's", IN_TREE, True))
                  if p99.get(SHAPER) and p99.get(aqm)]
        texts = {c.what: cell_text(c, 2) for c in checks}
        rows.append(Row([case], checks or None, [
            *(shown(p99.get(aqm)) for aqm in (SHAPER, OURS, IN_TREE)),
            texts.get("of ours below htb", "–"), texts.get("of the kernel's", "–")]))
    return rows


def shaper_table(cells):
    """All figures of each run with a shaper, [[text]]."""
    return [[case, aqm, *(shown(cell.value(figure), digits) for _, figure, digits in SHAPER_FIGURES)]
            for case, aqms in by_case(cells, "shaper").items() for aqm, cell in aqms.items()]


def aggregated(cell):
    """Whether the first group comes in aggregates."""
    return bool(cell.job["groups"][0].get("aggregate_ms"))


def burst_rows(cells):
    """A Row for each case: an L4S flow alone in aggregates has its link, a smooth one the P99 that it would have."""
    rows = []
    for case, aqms in by_case(cells, "bursts").items():
        checks, one = [], next(iter(aqms.values()))
        for aqm in TOLERANT:
            if aqm not in aqms:
                continue
            if aggregated(one):
                judged = len(one.job["groups"]) == 1
                checks.append(Check(f"{aqm}: L Mbit/s", aqms[aqm].value(lambda r: r.of("A", "mbit")), BURST_MBIT,
                                    judged=judged))
            elif aqm == TOLERANT[0] and OURS in aqms:
                checks.append(Check("L P99, of that with burst_max 0", over_value(
                    *(aqms[a].value(a_p99_ms) for a in (aqm, OURS))), 1 - SMOOTH_WITHIN, 1 + SMOOTH_WITHIN))
        rows.append(Row([case], checks or None, ["; ".join(f"{c.what} {cell_text(c, 2)}" for c in checks) or "–"]))
    return rows


def burst_table(cells):
    """All figures of each run with bursts, [[text]]."""
    return [[case, aqm, shown(cell.value(lambda r: r.of("A", "mbit")), 2),
             *(shown(cell.value(f), d) for f, d in ((utilization_pct, 2), (a_mean_ms, 3), (a_p99_ms, 3))),
             shown(cell.value(lambda r: r.summary["groups"]["A"].get("aggregates", {}).get("packets", {}).get("mean")),
                   1)]
            for case, aqms in by_case(cells, "bursts").items() for aqm, cell in aqms.items()]


# The lab itself

def repeated(cells, again):
    """The Row on runs that another directory repeats: made of the same, they must have seen the same packets."""
    second = {store.label(r.job): r.meta for c in again for r in c.runs}
    checks = []
    for result in (r for c in cells for r in c.runs):
        mine, other = result.meta, second.get(store.label(result.job), {})
        digests = [m.get("sightings_sha256") for m in (mine, other)]
        if None not in digests and mine["made_of"] == other["made_of"]:
            same = float(digests[0] == digests[1])
            checks.append(Check(f"{store.label(result.job)}: the same", results.Value(same, same, same, 1), least=1))
    text = f"{sum(c.value.mean for c in checks):.0f} of {len(checks)} repeated runs saw the same packets at the same ns"
    return Row(["two runs of the same seed are the same to the bit"], checks or None, [text if checks else (
        f"the commands in meta.json repeat runs in {runs.AGAIN}; selftests/lab/test_smoke.py repeats two")])


def own_off(which, level, queue, span):
    """How far the qdisc's own figure is from what was seen, of a result: in per cent ("pct") or buckets ("buckets").

    None if the qdisc says nothing of it.
    """
    def figure(result):
        found = result.summary.get("own", {}).get(queue, {}).get(span, {}).get(level)
        if not found:
            return None
        off = abs(found["own_ms"] - found["seen_ms"])
        if which == "pct":
            return off / found["seen_ms"] * 100 if found["seen_ms"] else None
        return off / (found["to_ms"] - found["from_ms"])
    return figure


QUEUES, SPANS = ("l4s", "classic"), {"measured": "of the measured seconds", "since_start": "as tc prints it"}


def own_percentiles(cells):
    """The Row on what the qdisc says of its delays, in the runs that are there for that; see OWN_WITHIN_PCT."""
    checks = []
    for cell in ours_with(cells, "percentiles"):
        for queue in QUEUES:
            for span, words in SPANS.items():
                for level in OWN_LEVELS:
                    what = f"{named(cell)}: {queue} {level} {words}"
                    if value := cell.value(own_off("buckets", level, queue, span)):
                        checks.append(Check(f"{what}, buckets off", value, most=1))
                    if level == "p99" and (value := cell.value(own_off("pct", level, queue, span))):
                        checks.append(Check(f"{what}, % off", value, most=OWN_WITHIN_PCT))
    good = sum(c.verdict() == "reached" for c in checks)
    return Row(["what `tc -s` prints of delays is what was seen: P50 to P99.9 within one bucket, P99 within "
                f"{OWN_WITHIN_PCT} %"], checks or None, [f"{good} of {len(checks)} hold" if checks else (
                    "`scripts/lab.sh run percentiles` runs what shows it")])


def own_rows(cells):
    """The qdisc's own figures / what was seen, and how far apart, for own_percentiles(), [[text]]."""
    rows = []
    for cell in sorted(ours_with(cells, "percentiles"), key=lambda c: c.one.rate_mbit):
        for queue in QUEUES:
            for span, words in SPANS.items():
                found = cell.one.summary.get("own", {}).get(queue, {}).get(span)
                if not found:
                    continue
                texts = [f"{f['own_ms']:.3f} / {f['seen_ms']:.3f} ({(f['own_ms'] / f['seen_ms'] - 1) * 100:+.1f} %)"
                         if (f := found.get(level)) and f["seen_ms"] else "–" for level in ("mean", *OWN_LEVELS, "max")]
                rows.append([cell.case, queue, words, f"{found['packets']['own']} / {found['packets']['seen']}",
                             *texts])
    return rows


def lab_rows(cells, again):
    """A Row for each thing that the lab claims of itself."""
    return [repeated(cells, again), own_percentiles(cells)]


# The page

def statement_rows(cells):
    """A Row for each statement, its cells the number that hold of those that are judged."""
    rows = []
    for number, text, function in STATEMENTS:
        checks = list(function(cells))
        row = Row([number, text], checks or None)
        judged = [c for c in checks if c.judged]
        if len(judged) > 2:
            row.cells = [f"{sum(c.verdict() == 'reached' for c in judged)} of {len(judged)} hold"]
        else:
            row.cells = ["; ".join(f"{c.what} {shown(c.value)}" for c in checks) or "–"]
        rows.append(row)
    return rows


def shorten(text, parts=4):
    """The first few of many reasons."""
    found = text.split("; ")
    return text if len(found) <= parts else "; ".join(found[:parts]) + f"; and {len(found) - parts} more"


def count(rows):
    """How many rows there are of each verdict, as text."""
    found = [r.verdict() for r in rows]
    return [str(found.count(v)) for v in ("reached", "missed", "not run", "value")]


def verdict_table(head, rows, experiment=None):
    """Table of rows with their verdicts, and under it what was not run, and which experiment would."""
    ran = [r for r in rows if r.checks is not None]
    left = "; ".join(" ".join(r.label) for r in rows if r.checks is None)
    parts = [markdown(head, [[*r.label, *r.cells, r.verdict(), shorten(r.why())] for r in ran])] if ran else []
    hint = f" `scripts/lab.sh run {experiment}` runs them." if experiment else ""
    return "\n\n".join(parts + [f"Not run: {left}.{hint}"] * bool(left))


def shaper_parts(cells, rows):
    """The section on the shaper, as a list of paragraphs."""
    parts = [f"## The shaper of its own\n\nOne flow each, L is DCTCP. To reach: L P99 ≤ {SHAPER_RATIO} of that of the "
             "kernel's dualpi2 below htb; of ours below htb it is a value."]
    if not rows:
        return [*parts, "Not run. `scripts/lab.sh run shaper` runs it."]
    return [*parts, verdict_table(["link, RTT", "L P99 ms: own shaper", "ours below htb", "the kernel's below htb",
                                   "of ours", "of the kernel's", "", "why"], rows, "shaper"),
            markdown(["link, RTT", "", *(name for name, *_ in SHAPER_FIGURES)], shaper_table(cells))]


def burst_parts(cells, rows):
    """The section on bursts, as a list of paragraphs."""
    parts = ["## Bursts\n\n40 Mbit/s; the case is aggregation (0: none), RTT, and what is beside the L4S flow. "
             f"To reach: alone, in aggregates, ≥ {BURST_MBIT} Mbit/s with burst_max 5 ms; without aggregation L P99 as "
             f"with burst_max 0, within {SMOOTH_WITHIN:.0%}."]
    if not rows:
        return [*parts, "Not run. `scripts/lab.sh run bursts` runs it."]
    return [*parts, verdict_table(["case", "", "", "why"], rows, "bursts"),
            markdown(["case", "AQM", "L Mbit/s", "utilization %", "L mean ms", "L P99 ms", "packets in an aggregate"],
                     burst_table(cells))]


def page(cells, pictures=None, again=()):
    """The report as Markdown; `pictures`: {figure: file or None}, left out if None; `again`: cells of repeated runs."""
    fig8 = {aqm: fig8_rows(cells, aqm) for aqm in PAPER_AQMS}
    fig12, statements, own = fig12_rows(cells), statement_rows(cells), lab_rows(cells, again)
    shaper, bursts = shaper_rows(cells), burst_rows(cells)
    all_runs = [r for c in cells for r in c.runs]
    mixed = store.mixtures((c.experiment, c.case, c.aqm, r.job["seed"], r.path, r.meta) for c in cells for r in c.runs)
    made = sorted({f"commit {(r.meta.get('commit') or 'unknown')[:12]}{' with changes' * bool(r.meta.get('dirty'))}, "
                   f"kernel {r.meta.get('made_of', {}).get('kernel', 'unknown')}" for r in all_runs})
    seconds = " or ".join(f"{s:g}" for s in sorted({r.seconds_measured for r in all_runs}))
    low = sorted({g["cc"] for r in all_runs for g in r.groups("tcp", True)})
    columns = [c[1] for c in FIG8_COLUMNS]
    parts = [
        "# The papers' targets and our runs",
        *(f"**WARNING, not all made alike:** {line}" for line in mixed),
        f"{len(all_runs)} runs of {len(cells)} cells, {seconds} s measured. Made of {'; '.join(made)}; "
        f"{'; '.join(sorted({store.made_with(r.meta) for r in all_runs}))}. "
        f"L4S senders: {', '.join(low) or 'none'}; the papers' are Prague, which counts RTTs below 25 ms as 25 ms. "
        "\"ours / the paper's\"; a miss is **bold**; [least to most] over the seeds, whose mean is judged. "
        "\"value\": the paper gives no number to reach.",
        markdown(["", "reached", "missed", "not run", "value"], [
            *([f"Fig. 8, {aqm}", *count(rows)] for aqm, rows in fig8.items()),
            ["Fig. 12", *count(fig12)], ["statements", *count(statements)], ["the shaper", *count(shaper)],
            ["bursts", *count(bursts)], ["the lab itself", *count(own)]])]
    for aqm, rows in fig8.items():
        parts.append(f"## Fig. 8, {aqm}\n\n" + (
            "To reach: A (L4S) mean and P99 ≤ the paper's, utilization ≥, rate ratio within 20 % of it or closer to 1 "
            "(1/2 is as close as 2); "
            "B's delays are not judged." if PAPER_AQMS[aqm] == OURS else
            "To reach: all six columns within 20 % of the paper's. Utilization within 20 % of 100 % proves little."))
        parts.append(verdict_table(["B's", "RTTs (ms)", *columns, "", "why"], rows, "fig8"))
    parts.append("## Fig. 12, DualPI2 in overload\n\nTo reach: UDP's share of the link within 3 points, L (TCP) mean "
                 "and P99 ≤ the paper's, L mark over 2√(C drop) (100 % at most) within 3 % of 1, and where UDP alone "
                 "has to lose over 25 %, drops of both classes (with UDP) equal within 10 % (the "
                 "paper's drops are of TCP alone).")
    parts.append(verdict_table(["C", "UDP", "Mbit/s", "UDP share %", "L mean ms", "L P99 ms", "L mark / 2√(C drop)",
                                "L drop / C drop", "C drop %", "", "why"], fig12, "fig12"))
    parts.append("## What the papers say in words")
    parts.append(verdict_table(["", "statement", "ours", "", "why"], statements))
    parts.append("Not shown by any experiment here:\n\n" + "\n".join(f"- {n}: {why}" for n, why in NOT_HERE))
    parts.append("## Ours / the one in the kernel")
    rows = in_tree_rows(cells)
    parts.append(markdown(["cell", "A P99 ms", "ratio", "utilization %", "A : B"], rows) if rows else "Not run.")
    parts += shaper_parts(cells, shaper) + burst_parts(cells, bursts)
    parts.append("## Partial deployment\n\n100 Mbit/s, 10 ms, A is L4S. The paper's rates are goodput (5 % less), its "
                 "delays the senders' smoothed RTT less the base RTT.")
    rows = deploy_rows(cells)
    parts.append(markdown(["B", "AQM", "BDP", "A Mbit/s", "B Mbit/s", "A ms", "B ms"], rows) if rows else "Not run.")
    parts.append("Many flows, buffers of 2 BDP; the paper's delays are those of the first flow. Rates are of a flow.")
    rows = deploy_flows_rows(cells)
    parts.append(markdown(["A : B", "AQM", "A Mbit/s", "B Mbit/s", "A ms", "B ms"], rows) if rows else "Not run.")
    parts.append("## Of the lab itself")
    parts.append(markdown(["claim", "", "", "why"], [[*r.label, *r.cells, r.verdict(), shorten(r.why())] for r in own]))
    if rows := own_rows(cells):
        parts.append("The qdisc's own figures / those of the packets seen, in ms. Of the measured seconds the qdisc "
                     "knows no greatest delay: it keeps that since the start only.")
        parts.append(markdown(["link", "queue", "", "packets", "mean", "P50", "P90", "P99", "P99.9", "max"], rows))
    if pictures is not None:
        parts.append("## Figures")
        parts += [f"![{name}]({file})" for name, file in pictures.items() if file]
        left = [name for name, file in pictures.items() if not file]
        if left:
            parts.append(f"Not run, so not drawn: {', '.join(left)}.")
    return "\n\n".join(parts) + "\n"


def main(results_dir, out_dir, brief=False):
    """Write out_dir/report.md, and without `brief` the pictures and files for flent beside it.

    Says where it is. results.StoreError if there are no results, or one cannot be read.
    """
    cells = results.load(results_dir)
    again = os.path.join(runs.ROOT, runs.AGAIN)
    again = results.load(again) if store.Store(again).runs() else []
    os.makedirs(out_dir, exist_ok=True)
    pictures = None
    if not brief:
        paper = {name: [(cell, target) for target in targets(f"{name}.csv") if (cell := find(cells, target))]
                 for name, find in (("fig8", fig8_cell), ("fig12", fig12_cell))}
        pictures = plots.draw(cells, out_dir, paper)
        os.makedirs(os.path.join(out_dir, "flent"), exist_ok=True)
        for result in (r for c in cells for r in c.runs):
            flentfile.write(result, os.path.join(out_dir, "flent"))
    path = os.path.join(out_dir, "report.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(cells, pictures, again))
    print(f"report: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("results", help="directory of results")
    parser.add_argument("out", help="directory for report.md and the pictures")
    parser.add_argument("--brief", action="store_true", help="the tables only, without pictures and files for flent")
    args = parser.parse_args()
    try:
        main(args.results, args.out, args.brief)
    except (results.StoreError, OSError) as error:
        sys.exit(f"report: {error}")
