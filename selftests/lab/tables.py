# SPDX-License-Identifier: GPL-2.0-only
"""The DualPI2 paper's tables, Fig. 8 and 12, and those on partial deployment beside what our runs gave."""

import math

import accept
import scenario
from judge import (OURS, WITHIN, SHARE_POINTS, COUPLING_WITHIN, DROPS_WITHIN, OVERLOAD_PCT, Check, Row, a_mean_ms,
                   a_p99_ms, b_mean_ms, b_p99_ms, utilization_pct, rate_ratio, classic_drop_pct, targets, shown,
                   cell_text, step_ms, ratio_bounds, of, flows_of)

PAPER_AQMS = {"DualPI2": OURS, "PIE": "pie", "FQ-CoDel": "fq_codel"}


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
