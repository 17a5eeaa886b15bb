# SPDX-License-Identifier: GPL-2.0-only
"""The pages of the evaluation as static HTML, made of its tables: index, claims, matrix, a page a paper, a page a case.

They need no server and no script; drawings are inline (svg.py). evaluation/html has only pages of what was run.
"""

import statistics
from html import escape

import published
import svg
from readme import bound, counts, done, drawing_file, finding, findings, made_of, number, paper_said, summary, value

INK = """/* Made by `scripts/lab.sh publish`; do not edit. */
:root { color-scheme: light dark; --ink: #1a1a1a; --back: #fff; --line: #ccc; --soft: #f3f3f3; --link: #0645ad }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --back: #161616; --line: #444; --soft: #242424; --link: #8ab4f8 }
}
"""
STYLE = """body { font: 16px/1.5 sans-serif; color: var(--ink); background: var(--back) }
body { max-width: 64rem; margin: 0 auto; padding: 0 1rem 3rem }
a { color: var(--link) } nav a { margin-right: 1rem } h2 { margin-top: 2.5rem }
code, pre { font-size: .85rem; overflow-wrap: anywhere; white-space: pre-wrap }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .85rem } th { background: var(--soft) }
th, td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; vertical-align: top }
.v { padding: 0 .35rem; border-radius: .25rem; color: #000; white-space: nowrap }
.warning { background: #b00020; color: #fff; padding: .5rem }
"""
DRAWING_STYLE = """svg { width: 100%; height: auto; min-width: 34rem; max-width: 45rem; font: 12px sans-serif }
svg text { fill: var(--ink) } svg rect + text { fill: #000 } .paper { font-size: 18px; font-weight: bold }
polyline { fill: none; stroke-width: 1.5 } line { stroke-width: 2 }
line.grid { stroke: var(--line); stroke-width: 1 }
"""
VERDICT_COLOURS = {"reproduced": "#7fc97f", "direction only": "#b8d98a", "within noise": "#ffd966",
                   "contradicted": "#f08a7a", "not run": "#d9d9d9", "unsupported": "#bdbdbd"}
# Distinct for the colour-blind (Okabe and Ito), and on light and dark.
SERIES_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6d31", "#888888")
CHARTED = 40  # most rows of a drawing


def style(pages=STYLE):
    """The style sheet of all pages; without `pages`, of a drawing alone."""
    lines = [f".v-{name.replace(' ', '-')} {{ background: {colour}; fill: {colour} }}"
             for name, colour in VERDICT_COLOURS.items()]
    lines += [f".s{n} {{ fill: {colour} }} .l{n} {{ stroke: {colour} }}" for n, colour in enumerate(SERIES_COLOURS)]
    return INK + pages + DRAWING_STYLE + "\n".join(lines) + "\n"


def page(title, *parts):
    """A whole page."""
    return "\n".join([
        "<!DOCTYPE html>", "<!-- Made by `scripts/lab.sh publish`; do not edit. -->",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>", '<link rel="stylesheet" href="style.css"></head><body>',
        '<nav><a href="index.html">Index</a><a href="claims.html">Claims</a><a href="matrix.html">Matrix</a></nav>',
        f"<main><h1>{escape(title)}</h1>", *parts, "</main></body></html>", ""])


def table(head, rows):
    """A table that scrolls where it is too wide; head is text, the cells of rows are HTML."""
    return "\n".join(['<div class="wide"><table><thead><tr>' + "\n".join(f"<th>{escape(h)}</th>" for h in head)
                      + "</tr></thead><tbody>", *("<tr>" + "\n".join(f"<td>{c}</td>" for c in row) + "</tr>"
                                                  for row in rows), "</tbody></table></div>"])


def chip(verdict, words=None):
    """A verdict in its colour."""
    return f'<span class="v v-{verdict.replace(" ", "-")}">{escape(words or verdict)}</span>'


def cell_file(experiment, case):
    """The page of a case."""
    return f"cell-{experiment}-{case}.html"


def link(row):
    """A link to the page of the cell of a row of claims.csv; those of pooled ones are not known."""
    case = escape(row["case"])
    return case if "*" in row["case"] else f'<a href="{cell_file(row["experiment"], row["case"])}">{case}</a>'


def command(claim, *more):
    """The command that runs what a claim is judged by."""
    words = ["scripts/lab.sh campaign", f"--experiment '{','.join(claim['experiments'])}'", *more]
    return f"<code>{escape(' '.join(words))}</code>"


def chart(evaluation, claim):
    """A claim's values by cell beside the paper's, of every AQM and sender; empty without a value."""
    found = {}
    for (aqm, sender), rows in evaluation.groups(claim).items():
        for row in rows:
            if row["value"]:
                mine = found.setdefault((row["experiment"], row["case"]), [None, {}])
                mine[0] = float(row["paper_value"]) if row["paper_value"] else None
                mine[1][f"{aqm}, {sender}"] = tuple(float(row[k]) if row[k] else None
                                                    for k in ("value", "ci95_low", "ci95_high"))
    rows = [(case, *both) for (_, case), both in list(found.items())[:CHARTED]]
    return svg.dots(claim["words"], evaluation.called(claim), rows) if rows else ""


def index(evaluation):
    """Findings, each with a drawing, and verdicts by paper."""
    parts = [f"<p>{done(evaluation)} {escape(made_of(evaluation)).replace('`', '')}</p>"]
    if evaluation.mixed:
        parts.append(f'<p class="warning">Runs are of more than one build: {escape("; ".join(evaluation.mixed))}</p>')
    parts.append("<p>" + " ".join(chip(v) for v in evaluation.verdicts) + "</p>")
    for name, paper in evaluation.papers.items():
        found = counts(evaluation, name)
        said = ", ".join(f"{n} {v}" for v, n in found.items() if n)
        parts += [f'<h3><a href="paper-{name}.html">{escape(paper["name"])}</a></h3>', f"<p>{said or 'no claim'}</p>",
                  svg.bar(f"Claims of {paper['name']}: {said}", found)]
    parts.append("<h2>Findings</h2>")
    for claim in findings(evaluation):
        parts += [f"<p>{escape(finding(evaluation, claim)).replace('**', '')}</p>", chart(evaluation, claim)]
    steps = evaluation.manifest["steps"]
    parts += ["<h2>Steps</h2>", table(["step", "", "planned", "done", "failed", "wall clock, minutes"], [
        [str(s["step"]), escape(s["title"]), *(str(s[k]) for k in ("planned", "done", "failed")),
         f"{s['wall_minutes']:g}"] for s in steps])]
    return page("Evaluation", *parts)


def claims_page(evaluation):
    """Every claim with every AQM and sender."""
    rows = []
    for n, claim in enumerate(evaluation.claims, 1):
        first = f'<span id="{claim["id"]}">C{n}</span>: {escape(claim["words"])}'
        for number_, ((aqm, sender), mine) in enumerate(evaluation.groups(claim).items()):
            minutes = sum(float(row["wall_s"]) for row in mine if row["wall_s"]) / 60
            verdict = evaluation.worst(mine)
            seeds = max(int(row["n"] or 1) for row in mine)
            rows.append([first if not number_ else "", f'<a href="paper-{claim["paper"]}.html#{claim["id"]}">'
                         f"{claim['paper']}</a>, {escape(claim['place'])}",
                         escape(", ".join(filter(None, (aqm, sender)))), summary(mine),
                         escape(paper_said(claim, mine)), chip(verdict), f"{minutes:.1f}" if minutes else "",
                         escape(claim["unsupported"]) if "unsupported" in claim else command(
                             claim, *[f"--aqm {aqm} --sender {sender} --seeds 1-{seeds} --again"] * bool(aqm))])
    head = ["claim", "paper", "AQM, sender", "value", "bound (of)", "verdict", "minutes", "command"]
    return page("Claims", "<p>Of several cells the range of the values, and how many hold. A claim is judged by its "
                "first AQM and sender. The page of its paper has its cells.</p>", table(head, rows))


def beside(groups, sender):
    """The congestion controls that run beside a sender, as text."""
    plain = sender.removeprefix("ecn-")
    mine = [row for row in groups if row["cc"] == plain]
    # Beside ECN-CUBIC may be CUBIC; the tables do not tell them apart, but the sender is the first.
    mine = mine[:1] if plain != sender else mine
    return " + ".join(dict.fromkeys(row["cc"] for row in groups if row not in mine)) or "–"


def matrix(evaluation):
    """AQMs by pairs of senders: claims in their colours, and the P99 of L4S over the cells."""
    runs_, found, columns = {}, {}, {}
    for row in evaluation.cells:
        if row["group"] != "all":
            runs_.setdefault(tuple(row[k] for k in ("experiment", "case", "aqm", "sender", "seed")), []).append(row)
    for (_, _, aqm, sender, _), groups in runs_.items():
        pair = f"{sender} : {beside(groups, sender)}"
        columns[pair] = None
        count, p99 = found.setdefault((aqm, pair), ([], []))
        count.append(1)
        p99 += [float(r["delay_p99_ms"]) for r in groups if r["class"] == "l4s" and r["delay_p99_ms"]]
    letters = {}
    for n, claim in enumerate(evaluation.claims, 1):
        for (aqm, sender), rows in evaluation.groups(claim).items():
            if any(row["value"] for row in rows):
                letters.setdefault((aqm, sender), []).append(
                    f'<a href="claims.html#{claim["id"]}">{chip(evaluation.worst(rows), f"C{n}")}</a>')
    rows = []
    for aqm in sorted({aqm for aqm, _ in found}):
        cells = [escape(aqm)]
        for pair in columns:
            if (aqm, pair) not in found:
                cells.append("")
                continue
            count, p99 = found[aqm, pair]
            text = f"{len(count)} runs"
            if p99:
                spread = f" ± {number(statistics.stdev(p99))}" if len(p99) > 1 else ""
                text += f"<br>L4S P99 {number(statistics.fmean(p99))}{spread} ms"
            cells.append(text + "<br>" + "\n".join(letters.get((aqm, pair.split(" : ")[0]), [])))
        rows.append(cells)
    return page("Matrix", "<p>AQMs by pairs of senders. C1, C2 are claims of that AQM and first sender; P99 is the "
                "mean and standard deviation over all runs of the pair, of whatever rate and RTT.</p>",
                table(["AQM", *columns], rows) if rows else "<p>Nothing was run yet.</p>")


def paper_page(evaluation, name):
    """A paper's claims by figure, with drawings over its own values."""
    paper, parts, place = evaluation.papers[name], [], None
    said = [escape(str(paper[key])) for key in ("authors", "title", "year") if key in paper]
    parts.append(f"<p>{'. '.join(said)}.</p>")
    mine = [(n, claim) for n, claim in enumerate(evaluation.claims, 1) if claim["paper"] == name]
    places = [claim["place"] for _, claim in mine]
    for n, claim in sorted(mine, key=lambda one: places.index(one[1]["place"])):
        if claim["place"] != place:
            place = claim["place"]
            parts.append(f"<h2>{escape(place)}</h2>")
        rows = evaluation.main(claim)
        parts.append(f'<h3 id="{claim["id"]}">C{n}: {escape(claim["words"])} {chip(evaluation.worst(rows))}</h3>')
        if "unsupported" in claim:
            parts.append(f"<p>{escape(claim['unsupported'])}</p>")
            continue
        if claim["note"]:
            parts.append(f"<p>{escape(claim['note'])}</p>")
        found = [row for rows in evaluation.groups(claim).values() for row in rows]
        ran = [row for row in found if row["value"]]
        parts.append(chart(evaluation, claim))
        if len(ran) < len(found):
            parts.append(f"<p>{len(found) - len(ran)} of {len(found)} not run: {command(claim)}</p>")
        if ran:
            parts.append(table(["AQM, sender", "cell", "value", "paper", "bound", "verdict", ""], [
                [escape(f"{row['aqm']}, {row['sender']}"), link(row), value(row),
                 number(row["paper_value"]), bound(row), chip(row["verdict"]), escape(row["why"])] for row in ran]))
    return page(paper["name"], *parts)


def mean_sd(rows, key):
    """Mean over the seeds, with the standard deviation where there are several."""
    found = [float(row[key]) for row in rows if row[key]]
    if len(found) < 2:
        return number(found[0]) if found else ""
    return f"{number(statistics.fmean(found))} ± {number(statistics.stdev(found))}"


# All that thousands of runs leave is too much to keep.
LEAVES = ("<p>The command of a run leaves in <code>build/lab/again</code> the output of <code>tc -s -j</code> before "
          "and after (<code>run.json</code>), and with <code>--keep-raw</code> a capture of the link's first 5 s "
          "(<code>capture.pcap</code>). <code>scripts/lab.sh report --results build/lab/again</code> adds the file "
          "for flent. On the commit of the run the packets are the same.</p>")
COLUMNS = (("mbit_per_flow", "Mbit/s a flow"), ("delay_mean_ms", "mean ms"), ("delay_p50_ms", "P50"),
           ("delay_p99_ms", "P99"), ("delay_p99_9_ms", "P99.9"), ("delay_max_ms", "max"), ("mark_pct", "marks %"),
           ("drop_pct", "drops %"))


def cell_page(evaluation, experiment, case):
    """Every AQM and sender of a case: figures of each group, delay over time, and how each run was made."""
    mine = [r for r in evaluation.cells if (r["experiment"], r["case"]) == (experiment, case)]
    rows, below = [], []
    for aqm, sender in dict.fromkeys((r["aqm"], r["sender"]) for r in mine):
        here = [r for r in mine if (r["aqm"], r["sender"]) == (aqm, sender)]
        whole = [r for r in here if r["group"] == "all"]
        for group in dict.fromkeys(r["group"] for r in here if r["group"] != "all"):
            seeds = [r for r in here if r["group"] == group]
            one = seeds[0]
            rows.append([f'<a href="#{aqm}-{sender}">{escape(aqm)}, {escape(sender)}</a>', escape(
                f"{group}: {one['flows']} {one['cc']}, {one['class']}, {one['rtt_ms']} ms"), str(len(seeds)),
                *(mean_sd(seeds, key) for key, _ in COLUMNS), mean_sd(whole, "util_mean")])
        below += run_parts(evaluation, whole)
    one = next(r for r in mine if r["group"] == "all")
    return page(f"{experiment}: {case}", f"<p>{number(one['rate_mbit'])} Mbit/s, {one['warmup_s']} s of warm-up, "
                f"{one['seconds']} s measured. Figures are means over the seeds, ± their standard deviation.</p>",
                LEAVES,
                table(["AQM, sender", "group", "seeds", *(name for _, name in COLUMNS), "utilization %"], rows), *below)


def over_time(evaluation, one, what):
    """{group: [(second, value)]} of a run for svg.lines(): a delay, or the rate of each flow."""
    found = {}
    for r in evaluation.series_of.get(published.label(one), ()):
        if r["what"] == what:
            begin, step = float(r["begin_s"]), float(r["step_s"])
            flows = evaluation.flows[published.label(one), r["group"]] if what == "mbit" else 1
            values = [float(v) / flows for v in r["values"].split()]
            found[r["group"]] = [(begin + (n + 0.5) * step, v) for n, v in enumerate(values)]
    return found


def run_parts(evaluation, whole):
    """What a cell page has of the runs of one AQM and sender, of their rows "all", below its table."""
    one = whole[0]
    aqm, sender = one["aqm"], one["sender"]
    parts = [f'<h2 id="{aqm}-{sender}">{escape(aqm)} with {escape(sender)}</h2>']
    for what, title, up in (("delay_ms", "Delay", "ms, mean of each step"),
                            ("mbit", "Rate of a flow", "Mbit/s a flow")):
        if drawn := over_time(evaluation, one, what):
            if len(drawn) > svg.SERIES:
                up += f"; {svg.SERIES} of {len(drawn)} groups"
                drawn = dict(list(drawn.items())[:svg.SERIES])
            parts.append(svg.lines(f"{title} over time, {aqm} with {sender}, seed {one['seed']}", "seconds", up, drawn))
    parts.append(f"<pre>{escape(one['tc_line'])}\n{escape(evaluation.command(one))}</pre>")
    if one["counters"]:
        parts.append(f"<p>Counters of the qdisc rose by: <code>{escape(one['counters'])}</code> "
                     f"(seed {one['seed']})</p>")
    return [*parts, table(["seed", "sightings, SHA-256", "module", "commit", "wall clock, s"], [
        [escape(r[k]) or "–" for k in ("seed", "sightings_sha256", "module", "commit", "wall_s")] for r in whole])]


def drawings(evaluation):
    """{name: text} of the findings' drawings as files of their own, for readme.py."""
    found = {drawing_file(claim): svg.file(chart(evaluation, claim), style("")) for claim in findings(evaluation)}
    return {name: text for name, text in found.items() if text}


def pages(evaluation):
    """{name: text} of all of them."""
    found = {"style.css": style(), "index.html": index(evaluation), "claims.html": claims_page(evaluation),
             "matrix.html": matrix(evaluation), **{f"paper-{name}.html": paper_page(evaluation, name)
                                                   for name in evaluation.papers}}
    for key in dict.fromkeys((r["experiment"], r["case"]) for r in evaluation.cells):
        found[cell_file(*key)] = cell_page(evaluation, *key)
    return found
