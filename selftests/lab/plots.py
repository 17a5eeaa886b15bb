# SPDX-License-Identifier: GPL-2.0-only
"""Draw the papers' figures from our runs, in the papers' own arrangement: ours in colour, peers in grey.

One function a figure; each takes cells (results.py) and returns a matplotlib figure, or None if no run of it is
there. Bars go from the first to the 99th percentile, the mark is the mean, of the first seed; the papers' own values,
where targets/ has them, are black crosses. It judges nothing.
"""

import functools
import math
import os
import statistics

import matplotlib
import numpy as np
import results

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

OURS = "dualpi2"
COLOURS = {"A": "tab:blue", "B": "tab:orange", "U": "tab:green", "all": "tab:blue"}
GREYS = {"A": "0.35", "B": "0.65", "U": "0.8", "all": "0.35"}
STYLES = ("-", "--", ":", "-.")
ORDER = (OURS, "dualpi2-in-tree", "pie", "fq_codel")  # the papers' order of columns; others after these
KEY = "A blue, B orange, of peers dark and light grey; bars P1 to P99"


def colour(aqm, group):
    """Of a group under an AQM: ours has colours, every other one greys."""
    return (COLOURS if aqm == OURS else GREYS).get(group, "tab:purple" if aqm == OURS else "0.5")


def of(cells, experiment):
    """The cells of one experiment in the papers' order of AQMs."""
    return sorted((c for c in cells if c.experiment == experiment),
                  key=lambda c: ORDER.index(c.aqm) if c.aqm in ORDER else len(ORDER))


def distinct(values):
    """Values without repetition, in their order."""
    return list(dict.fromkeys(values))


def number(text):
    """A key that sorts names by the numbers in them."""
    return [float(p) if p.replace(".", "", 1).isdigit() else 0.0 for p in
            "".join(ch if ch.isdigit() or ch == "." else " " for ch in text).split()]


def canvas(rows, columns, width=4.2, height=2.6, **options):
    """A figure and its axes, always as a two-dimensional array."""
    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained",
                        **options)


# Figures of a run that report.py uses too

@functools.cache
def samples(result, step_s):
    """Mean delay of all packets in steps of time: [(second, ms)]; empty if the run's sightings were not kept."""
    found = result.packets()
    if found is None:
        return []
    step = (found[0] / step_s).astype(int)
    counts, sums = np.bincount(step), np.bincount(step, found[1])
    return [(n * step_s, sums[n] / counts[n]) for n in np.flatnonzero(counts)]


def late_objects_pct(result):
    """Objects of senders without ECN below 50 kB that took over 0.3 s or did not end, in per cent of them; or None."""
    short = [t for g in result.groups("web") if g["ecn"] == "off" for size, t in result.web(g["name"]) if size < 50_000]
    return sum(t > 0.3 for t in short) / len(short) * 100 if short else None


def unended(result):
    """How many web objects did not end; None without any object."""
    objects = [took for g in result.groups("web") for _, took in result.web(g["name"])]
    return float(sum(math.isinf(took) for took in objects)) if objects else None


def highest_second(result):
    """The greatest mean delay of a second in ms; None without seconds."""
    return max((v for _, v in result.seconds("all", "delay_mean_ms")), default=None)


def spread(result):
    """Standard deviation in ms of the seconds' mean delays; None with fewer than two."""
    means = [v for _, v in result.seconds("all", "delay_mean_ms")]
    return statistics.stdev(means) if len(means) > 1 else None


def efficiency(result, group):
    """Completion efficiency of a web group's objects by size: [(bytes, mean, P1, P99)].

    The time that a handshake and a transfer at the link's rate take, over the time it took (DualPI2 paper, section
    IV-F), 0 of one that did not end; sizes in bins of a factor of 3 as there, named by their geometric middle.
    """
    bins = {}
    for size, took in result.web(group["name"]):
        ideal = group["rtt_ms"] / 1e3 + size * 8 / (result.rate_mbit * 1e6)
        bins.setdefault(math.floor(math.log(size, 3)), []).append(ideal / took)
    return [(3 ** (k + 0.5), float(np.mean(v)), *np.percentile(v, (1, 99), method="inverted_cdf"))
            for k, v in sorted(bins.items())]


def side_delay_ms(result, letter):
    """{"mean", "p1", "p99"} in ms of all packets of A's or B's kind, web objects with the long flows; None without any.

    Of the histogram, so up to 0.8 % too high: the summary has the two classes, but not ECN-CUBIC apart from CUBIC.
    """
    edges, above = ccdf(found := result.histogram(*result.side(letter)))
    if not found:
        return dict.fromkeys(("mean", "p1", "p99"))
    return {"mean": float(np.average(edges, weights=[n for _, n in found])),
            **{key: float(edges[np.argmax(above <= 1 - level)]) for key, level in (("p1", 0.01), ("p99", 0.99))}}


# Of Fig. 10, and of Fig. 11 where both papers' figures show the same run.
WEB_CASE = "120mbit-10ms"


def of_web(cells, experiment):
    """The cells of "fig10" or "fig11", with the other one's of the run that both show where the own was not made."""
    mine = of(cells, experiment)
    other = [c for c in of(cells, "fig11" if experiment == "fig10" else "fig10") if c.case == WEB_CASE]
    return mine + [c for c in other if (c.case, c.aqm) not in {(m.case, m.aqm) for m in mine}]


# Parts of figures

def points(axis, x, cell, letter, what, low="p1", scale=1.0, figures=None):
    """One mark with its bar for a figure of sender A or B, or of "all"; `figures`: in place of the summary's."""
    figure = cell.one.figure if letter == "all" else cell.one.of
    mean, least, most = (figures[k] if figures else figure(letter, what, k) for k in ("mean", low, "p99"))
    if mean is None:
        return
    paint = colour(cell.aqm, letter)
    if least is not None and most is not None:
        axis.plot([x, x], [least * scale, most * scale], "-", color=paint, lw=1.5, alpha=0.6)
    axis.plot(x, mean * scale, "o", color=paint, ms=3.5)


def cases_axis(axis, names):
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.grid(alpha=0.3)


def delay_row(axis, cells, names, log=False):
    for cell in cells:
        for letter, shift in (("A", -0.12), ("B", 0.12)):
            figures = side_delay_ms(cell.one, letter) if cell.one.groups("web") else None
            points(axis, names.index(cell.case) + shift, cell, letter, "delay_ms", figures=figures)
    if log:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)


def ratio_row(axis, cells, names, figure):
    for cell in cells:
        value = cell.value(figure)
        if value:
            x = names.index(cell.case)
            axis.plot([x, x], [value.least, value.most], "-", color=colour(cell.aqm, "A"), lw=1)
            axis.plot(x, value.mean, "o", color=colour(cell.aqm, "A"), ms=3.5)
    axis.axhline(1, color="0.8", lw=0.8, zorder=0)
    axis.set_yscale("log")


def signals_row(axis, cells, names):
    for cell in cells:
        x = names.index(cell.case)
        points(axis, x - 0.12, cell, "A", "mark_pct", "p25")
        points(axis, x + 0.12, cell, "B", "drop_pct", "p25")
    axis.set_yscale("symlog", linthresh=0.01)


ROWS = {
    "queue delay (ms)": delay_row,
    "queue delay (ms), log": lambda axis, cells, names: delay_row(axis, cells, names, log=True),
    "utilization (%)": lambda axis, cells, names: [points(axis, names.index(c.case), c, "all", "utilization_pct")
                                                   for c in cells],
    "rate A / B": lambda axis, cells, names: ratio_row(axis, cells, names, results.Result.rate_ratio),
    "window A / B": lambda axis, cells, names: ratio_row(axis, cells, names, results.Result.window_ratio),
    "mark A, drop B (%)": signals_row,
}


def grid(cells, title, rows, names=None):
    """The papers' usual arrangement: a column of axes for each AQM, a row for each figure, cases along x."""
    if not cells:
        return None
    aqms = distinct(c.aqm for c in cells)
    names = names or sorted(distinct(c.case for c in cells), key=number)
    figure, axes = canvas(len(rows), len(aqms), sharex=True, sharey="row", width=max(3.0, 0.17 * len(names)))
    for column, aqm in enumerate(aqms):
        mine = [c for c in cells if c.aqm == aqm]
        for row, name in enumerate(rows):
            axis = axes[row][column]
            ROWS[name](axis, mine, names)
            cases_axis(axis, names)
            if not column:
                axis.set_ylabel(name, fontsize=8)
        axes[0][column].set_title(title_of(mine))
    figure.suptitle(f"{title}\n({KEY})", fontsize=10)
    return figure


def title_of(cells):
    """An AQM's name and who its A and B are: "dualpi2: A dctcp (L4S), B cubic"."""
    one = next((c.one for c in cells if c.one.sender("A") and c.one.sender("B")), cells[0].one)
    parts = [f"{x} {g.get('sender', g['cc'])}" + {"l4s": " (L4S)", "classic": " (ECN)"}.get(g["ecn"], "")
             for x in "AB" if (g := one.sender(x))]
    return f"{cells[0].aqm}: " + ", ".join(parts)


# The figures

def fig2(cells):
    """A lone flow under two targets of FQ-CoDel, and L4S: delay and utilization over rates and RTTs."""
    mine = sorted(of(cells, "fig2"), key=lambda c: (c.aqm == OURS, c.aqm))
    return grid(mine, "DualPI2 paper, Fig. 2: one flow, three queues",
                ["queue delay (ms)", "queue delay (ms), log", "utilization (%)"])


def fig4(cells):
    """Delay of the L4S queue over time in packets: of each packet if the sightings were kept, of each second if not."""
    mine = [c for c in of(cells, "fig4") if c.aqm == OURS]
    if not mine:
        return None
    result = mine[0].one
    figure, axes = canvas(1, 1, width=9)
    axis = axes[0][0]
    packet_ms = 1514 * 8 / result.rate_mbit / 1e3
    found = result.packets()
    if found:
        low = (found[2] == 1) & (found[0] >= result.warmup)
        axis.plot(found[0][low], found[1][low] / packet_ms, ".", ms=1, color=COLOURS["A"], rasterized=True)
    else:
        series = result.seconds("A", "delay_mean_ms")
        axis.plot([s for s, _ in series], [v / packet_ms for _, v in series], color=COLOURS["A"])
    axis.set(xlabel="time (s)", ylabel=f"L4S queue (packets of {packet_ms:.3f} ms)", ylim=(0, None))
    axis.grid(alpha=0.3)
    figure.suptitle("DualPI2 paper, Fig. 4: the L4S queue over time, 120 Mbit/s, 10 ms")
    return figure


def fig6(cells):
    """All metrics over five rates and five RTTs for three AQMs."""
    return grid(of(cells, "fig6"), "DualPI2 paper, Fig. 6: one flow each, equal RTT", list(ROWS))


def fig7(cells):
    """Rate of a flow over the fair rate, for 0 to 10 flows of each class; a row for each Classic sender."""
    cells = of(cells, "fig7")
    if not cells:
        return None
    aqms, ccs = distinct(c.aqm for c in cells), distinct(c.case.rpartition("-")[2] for c in cells)
    figure, axes = canvas(len(ccs), len(aqms), sharey=True)
    for row, cc in enumerate(ccs):
        names = sorted((n for n in distinct(c.case for c in cells) if n.endswith(cc)), key=number)
        for column, aqm in enumerate(aqms):
            axis = axes[row][column]
            mine = [c for c in cells if c.aqm == aqm and c.case in names]
            for cell in mine:
                flows = sum(g["count"] for g in cell.job["groups"])
                for letter, shift in (("A", -0.12), ("B", 0.12)):
                    group = cell.one.sender(letter)
                    if group:
                        points(axis, names.index(cell.case) + shift, cell, letter, "mbit",
                               scale=flows / group["count"] / cell.one.rate_mbit)
            cases_axis(axis, names)
            axis.axhline(1, color="0.8", lw=0.8, zorder=0)
            axis.set_yscale("log")
            if mine:
                axis.set_title(title_of(mine), fontsize=9)
        axes[row][0].set_ylabel("rate of a flow / fair rate")
    figure.suptitle(f"DualPI2 paper, Fig. 7: many flows, 40 Mbit/s, 10 ms\n({KEY})", fontsize=10)
    return figure


def fig8(cells, paper=()):
    """Delay, utilization, ratios and signals for mixed RTTs; `paper`: [(cell, row of targets/fig8.csv)]."""
    cells = of(cells, "fig8")
    rows = list(ROWS)
    figure = grid(cells, "DualPI2 paper, Fig. 8: mixed RTTs, 40 Mbit/s; crosses are the paper's means", rows,
                  names := sorted(distinct(c.case for c in cells), key=lambda n: (n.rpartition("-")[2], number(n))))
    if figure:
        aqms = distinct(c.aqm for c in cells)
        axes = np.array(figure.axes).reshape(len(rows), len(aqms))
        place = {"a_mean_ms": (0, 1, -0.12), "b_mean_ms": (0, 1, 0.12), "util_pct": (2, 0), "rate_ratio": (3, 0),
                 "window_ratio": (4, 0)}
        for cell, target in paper:
            for column, (*places, shift) in place.items():
                for row in places if target[column] else ():
                    cross(axes[row][aqms.index(cell.aqm)], names.index(cell.case) + shift, target[column])
    return figure


def cross(axis, x, text):
    """The paper's value."""
    axis.plot(x, float(text), "kx", ms=4, mew=0.8, zorder=3)


def fig9(cells):
    """Completion time of web objects over their size, and the same as efficiency."""
    cells = [c for c in of(cells, "fig9") if c.one.groups("web")]
    if not cells:
        return None
    figure, axes = canvas(len(cells), 2, width=5.5, height=4)
    for row, cell in enumerate(cells):
        result = cell.one
        for group in result.groups("web"):
            paint = colour(cell.aqm, "A" if group["ecn"] in results.L4S else "B")
            objects = result.web(group["name"])
            ended = [(b, s) for b, s in objects if math.isfinite(s)]
            axes[row][0].plot([b for b, _ in ended], [s for _, s in ended], ".", ms=2, color=paint, rasterized=True,
                              label=f"{group['cc']} ({group['ecn']}), {len(objects) - len(ended)} of {len(objects)} "
                                    "did not end")
            efficiency_lines(axes[row][1], efficiency(result, group), paint)
        sizes = np.geomspace(1e3, 1e6, 50)
        axes[row][0].plot(sizes, result.groups("web")[0]["rtt_ms"] / 1e3 + sizes * 8 / (result.rate_mbit * 1e6), "g-")
        axes[row][0].set(xscale="log", yscale="log", xlabel="size (bytes)", ylabel="completion time (s)",
                         title=cell.aqm)
        axes[row][0].legend(markerscale=5)
        axes[row][1].set(xscale="log", xlabel="size (bytes)", ylabel="completion efficiency", ylim=(0, 1.05))
        for axis in axes[row]:
            axis.grid(alpha=0.3)
    figure.suptitle("DualPI2 paper, Fig. 9: web objects, 40 Mbit/s, 10 ms, high load")
    return figure


def efficiency_lines(axis, bins, paint):
    for size, mean, low, high in bins:
        axis.plot([size, size], [low, high], "-", color=paint, alpha=0.5)
        axis.plot(size, mean, "o", color=paint, ms=4)
    axis.axhline(1, color="g", lw=1)


def ccdf(histogram):
    """Upper edges in ms and the share of packets above them, of a histogram."""
    edges = np.array([e for e, _ in histogram])
    counts = np.array([n for _, n in histogram], dtype=float)
    return edges, 1 - np.cumsum(counts) / max(counts.sum(), 1)


def fig10(cells):
    """Complementary distribution of delays under web load: a panel for each AQM in colour, the others in grey."""
    cells = [c for c in of_web(cells, "fig10") if c.case == WEB_CASE]
    if not cells:
        return None
    figure, axes = canvas(1, len(cells), height=3.6, sharey=True)
    for axis, under_test in zip(axes[0], cells, strict=True):
        for cell in sorted(cells, key=lambda c: c is under_test):
            for letter, style in (("A", "-"), ("B", "--")):
                edges, above = ccdf(cell.one.histogram(*cell.one.side(letter)))
                axis.plot(edges, above, style, label=f"{cell.aqm} {letter}" if cell is under_test else None,
                          color=COLOURS[letter] if cell is under_test else GREYS["B"])
        axis.set(xscale="log", yscale="log", xlim=(0.01, 300), ylim=(1e-5, 1), xlabel="queue delay (ms)",
                 title=under_test.aqm)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, loc="lower left")
    axes[0][0].set_ylabel("packets delayed by more")
    figure.suptitle("DualPI2 paper, Fig. 10: web load, 120 Mbit/s, 10 ms")
    return figure


def fig11(cells):
    """Completion efficiency at 120 Mbit/s and 10 ms, and delay and utilization over all rates and RTTs."""
    cells = of_web(cells, "fig11")
    rows = ["completion efficiency", "queue delay (ms)", "queue delay (ms), log", "utilization (%)"]
    if not cells:
        return None
    aqms = distinct(c.aqm for c in cells)
    names = sorted(distinct(c.case for c in cells), key=number)
    figure, axes = canvas(len(rows), len(aqms), sharey="row", width=max(3.5, 0.17 * len(names)))
    for column, aqm in enumerate(aqms):
        mine = [c for c in cells if c.aqm == aqm]
        for cell in mine:
            if cell.case == WEB_CASE:
                for group in cell.one.groups("web"):
                    efficiency_lines(axes[0][column], efficiency(cell.one, group),
                                     colour(aqm, "A" if group["name"].endswith("A") else "B"))
        axes[0][column].set(xscale="log", xlabel="size (bytes)", title=title_of(mine), ylim=(0, 1.05))
        for row, name in enumerate(rows[1:], 1):
            ROWS[name](axes[row][column], mine, names)
            cases_axis(axes[row][column], names)
        for row, name in enumerate(rows):
            if not column:
                axes[row][0].set_ylabel(name, fontsize=8)
    figure.suptitle(f"DualPI2 paper, Fig. 11: web load\n({KEY})", fontsize=10)
    return figure


def fig12(cells, paper=()):
    """Rates, delays and probabilities over the rate of an unresponsive UDP flow, by its class; `paper` as in fig8()."""
    cells = [c for c in of(cells, "fig12") if c.one.groups("udp")]
    if not cells:
        return None
    kinds = distinct((c.aqm, c.one.groups("udp")[0]["ecn"]) for c in cells)
    figure, axes = canvas(3, len(kinds), sharex="col", sharey="row")
    for column, kind in enumerate(kinds):
        mine = [c for c in cells if (c.aqm, c.one.groups("udp")[0]["ecn"]) == kind]
        names = sorted(distinct(c.case for c in mine), key=lambda n: (n.rpartition("-")[2], number(n)))
        for cell in mine:
            x = names.index(cell.case)
            udp = cell.one.groups("udp")[0]["name"]
            for letter, group, shift in (("A", "A", -0.15), ("B", "B", 0), ("U", udp, 0.15)):
                for row, what in enumerate(("mbit", "delay_ms")):
                    mean = cell.one.figure(group, what)
                    if mean is None:
                        continue
                    ends = [cell.one.figure(group, what, k) for k in ("p1", "p99")]
                    if None not in ends:
                        axes[row][column].plot([x + shift] * 2, ends, "-", color=colour(kind[0], letter), alpha=0.6)
                    axes[row][column].plot(x + shift, mean, "o", ms=4, color=colour(kind[0], letter))
            for group, what, mark, letter in (("A", "mark_pct", "o", "A"), ("A", "drop_pct", "x", "A"),
                                              ("B", "drop_pct", "x", "B")):
                mean = cell.one.figure(group, what)
                if mean is not None:
                    axes[2][column].plot(x, mean, mark, ms=5, color=colour(kind[0], letter))
        for cell, target in paper:
            if cell in mine:
                for row, shift, name in ((0, -0.15, "rate_l_mbps"), (0, 0, "rate_c_mbps"), (0, 0.15, "rate_udp_mbps"),
                                         (1, -0.15, "l_mean_ms"), (1, 0, "c_mean_ms"), (2, 0, "mark_l_pct"),
                                         (2, 0, "drop_l_pct"), (2, 0, "drop_c_pct")):
                    cross(axes[row][column], names.index(cell.case) + shift, target[name])
        for row in range(3):
            cases_axis(axes[row][column], names)
        axes[0][column].set_title(f"{kind[0]}, UDP {kind[1]}")
        axes[2][column].set_yscale("symlog", linthresh=0.1)
    for row, name in enumerate(("rate (Mbit/s): A, B, UDP", "queue delay (ms)", "A mark o, drop x; B drop x (%)")):
        axes[row][0].set_ylabel(name, fontsize=8)
    figure.suptitle("DualPI2 paper, Fig. 12: unresponsive UDP (green) and 5 flows of each class, 100 Mbit/s, 10 ms\n"
                    "(crosses are the paper's)")
    return figure


def timelines(cells, title, with_rate=False):
    """Mean delay (and rate of all) of each second; a column for each case, a line for each AQM."""
    if not cells:
        return None
    names = sorted(distinct(c.case for c in cells), key=lambda n: (n != "light", n))
    figure, axes = canvas(1 + with_rate, len(names), width=max(4.5, 9 / len(names)), sharey="row", sharex="col")
    for column, name in enumerate(names):
        for cell, style in zip([c for c in cells if c.case == name][::-1], STYLES * 3):
            paint = colour(cell.aqm, "all")
            for row, what in enumerate(("delay_mean_ms", "mbit")[:1 + with_rate]):
                series = cell.one.seconds("all", what)
                axes[row][column].plot([s for s, _ in series], [v for _, v in series], color=paint, label=cell.aqm,
                                       ls="-" if cell.aqm == OURS else style)
        axes[0][column].set_title(name)
        axes[-1][column].set_xlabel("time (s)")
        axes[0][column].legend(fontsize=7)
    for row, name in enumerate(("mean queue delay of a second (ms)", "rate of all (Mbit/s)")[:1 + with_rate]):
        axes[row][0].set_ylabel(name, fontsize=8)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    figure.suptitle(title)
    return figure


def pi2_fig11(cells):
    """Delay and rate over time for light and heavy load and a mix with UDP."""
    return timelines(of(cells, "pi2-fig11"), "PI2 paper, Fig. 11: 10 Mbit/s, 100 ms", with_rate=True)


def pi2_fig12(cells):
    """Delay over time while the link's rate changes."""
    return timelines(of(cells, "pi2-fig12"), "PI2 paper, Fig. 12: the link's rate changes")


def pi2_fig13(cells):
    """Delay over time while the number of flows changes."""
    return timelines(of(cells, "pi2-fig13"), "PI2 paper, Fig. 13: 10, 30, 50, 30, 10 flows, 10 Mbit/s, 100 ms")


def pi2_fig14(cells):
    """Distribution of delays: a row for each target, a column for each load."""
    cells = of(cells, "pi2-fig14")
    if not cells:
        return None
    loads = sorted(distinct(c.case.rpartition("-")[0] for c in cells))
    aims = sorted(distinct(c.case.rpartition("-")[2] for c in cells), key=number)
    figure, axes = canvas(len(aims), len(loads), sharey=True)
    for cell in cells:
        load, _, aim = cell.case.rpartition("-")
        axis = axes[aims.index(aim)][loads.index(load)]
        edges, above = ccdf(cell.one.histogram("all"))
        axis.plot([0, *edges], [0, *(1 - above)], label=cell.aqm, color=colour(cell.aqm, "all"))
        axis.set(title=f"{load}, target {aim}", xlabel="queue delay (ms)", xlim=(0, 100), ylim=(0, 1),
                 ylabel="share of packets")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.suptitle("PI2 paper, Fig. 14: 10 Mbit/s, 100 ms")
    return figure


def matrix(cells, title):
    """AQMs by buffers for each pair of senders: rates, then delays, of A (B in brackets), as the paper has them."""
    if not cells:
        return None
    pairs = distinct(c.case.rpartition("-")[0] for c in cells)
    buffers = sorted(distinct(c.case.rpartition("-")[2] for c in cells), key=number)
    aqms = distinct(c.aqm for c in cells)[::-1]
    figure, axes = canvas(len(pairs), 2, width=6.5, height=0.7 + 0.32 * len(aqms))
    for row, pair in enumerate(pairs):
        for column, (what, digits, name) in enumerate((("mbit", 1, "Mbit/s"), ("delay_ms", 2, "queue delay, ms"))):
            axis = axes[row][column]
            share = np.full((len(aqms), len(buffers)), np.nan)
            for cell in cells:
                case, _, buffer = cell.case.rpartition("-")
                a, b = cell.one.of("A", what), cell.one.of("B", what)
                if case != pair or a is None or b is None:
                    continue
                y, x = aqms.index(cell.aqm), buffers.index(buffer)
                share[y, x] = a / (a + b) if a + b else np.nan
                axis.text(x, y, f"{a:.{digits}f} ({b:.{digits}f})", ha="center", va="center", fontsize=7,
                          color=COLOURS["A"] if cell.aqm == OURS else "black",
                          weight="bold" if cell.aqm == OURS else "normal")
            axis.imshow(share, vmin=0, vmax=1, cmap="Greys", alpha=0.4, aspect="auto")
            axis.set_xticks(range(len(buffers)), buffers, fontsize=7)
            axis.set_yticks(range(len(aqms)), aqms, fontsize=7)
            axis.set_title(f"{pair}: {name} of A (B)", fontsize=9)
    figure.suptitle(title)
    return figure


def deploy(cells):
    """The partial-deployment paper's matrix."""
    return matrix(of(cells, "deploy"), "Partial deployment: 100 Mbit/s, 10 ms, buffers in BDP (grey: A's share)")


FIGURES = {"fig2": fig2, "fig4": fig4, "fig6": fig6, "fig7": fig7, "fig8": fig8, "fig9": fig9, "fig10": fig10,
           "fig11": fig11, "fig12": fig12, "pi2-fig11": pi2_fig11, "pi2-fig12": pi2_fig12, "pi2-fig13": pi2_fig13,
           "pi2-fig14": pi2_fig14, "deploy": deploy}


def draw(cells, directory, paper):
    """Write a PNG for each figure that has data.

    `paper`: {figure: [(cell, row of targets/FIGURE.csv)]}. Returns {figure: file name, None where there are no runs}.
    """
    done = {}
    for name, function in FIGURES.items():
        figure = function(cells, paper[name]) if name in paper else function(cells)
        done[name] = figure and f"{name}.png"
        if figure:
            figure.savefig(os.path.join(directory, f"{name}.png"), dpi=110)
            plt.close(figure)
    return done
