# SPDX-License-Identifier: GPL-2.0-only
"""Three drawings for the pages of the evaluation as inline SVG: dots with intervals, lines, a stacked bar.

Text without a library, so that the same figures always give the same bytes. Colours are classes of the pages' style
sheet: s0 to s7 of series, v-NAME of verdicts. Each drawing has a title, which is its alternative text.
"""

import math
import re
from html import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 720, 190, 20, 8, 22
HEIGHT = 240     # of lines()
SERIES = 8       # classes of colours


def ticks(low, high, log):
    """Round numbers from low to high for an axis, about five."""
    if log:
        found = [m * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
                 for m in (1, 2, 5)]
        found = [v for v in found if low * 0.999 <= v <= high * 1.001]
        return found if len(found) <= 7 else [v for v in found if f"{v:e}"[0] == "1"]
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(step * m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def wide(values):
    """Whether values need a logarithmic axis: none is below 0, and the greatest is far from the least above 0."""
    found = [v for v in values if v]
    return bool(found) and min(found) > 0 and max(found) / min(found) > 8


class Axis:
    """Values to pixels, linear or logarithmic."""

    def __init__(self, values, begin, end, log=False, zero=False):
        """values: what must be on it; begin, end: pixels; zero: a linear axis begins at 0 if no value is below."""
        values = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)] or [1.0]
        low, high = min(values), max(values)
        self.log = log and low > 0
        if self.log:
            low, high = low / 1.15, high * 1.15
        else:
            low = 0.0 if zero and low >= 0 else low - 0.05 * (high - low)
            high += 0.05 * (high - low) or abs(high) or 1.0
        self.low, self.high, self.begin, self.end = low, high, begin, end
        self.ticks = ticks(low, high, self.log)

    def at(self, value):
        """The pixel of a value; beyond the ends it is the end's."""
        value = min(max(value, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low) if self.log else \
            (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)


def text(x, y, words, anchor="start", name=""):
    """A piece of text; anchor: start, middle, end."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{f" class={chr(34)}{name}{chr(34)}" * bool(name)}>' \
           f"{escape(str(words))}</text>"


def drawing(height, title, parts):
    """The whole of a drawing; it takes the width that there is."""
    return "\n".join(['<div class="wide">',
                      f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">',
                      f"<title>{escape(title)}</title>", *parts, "</svg></div>"])


def file(drawn, style):
    """A drawing as a file of its own with a style sheet; empty if there is none."""
    found = re.search("<svg (.*</svg>)", drawn, re.S)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {found[1]}\n'.replace(
        "<title>", f"<style>\n{style}</style>\n<title>", 1) if found else ""


def legend(names, y):
    """A line of coloured names, [part of a drawing]; and its height."""
    parts, x = [], LEFT
    for n, name in enumerate(names):
        wide = 26 + 7 * len(name)
        if x + wide > WIDTH and x > LEFT:
            x, y = LEFT, y + 18
        parts += [f'<circle cx="{x + 6:g}" cy="{y:g}" r="4" class="s{n % SERIES}"/>', text(x + 15, y + 4, name)]
        x += wide
    return parts, y + 14


def dots(title, unit, rows):
    """Values beside the paper's: rows of (label, the paper's value or None, {series: (value, low, high)}).

    low and high may be None. The paper's value is a cross.
    """
    names = list(dict.fromkeys(name for _, _, found in rows for name in found))
    values = [v for _, paper, found in rows for v in (paper, *(x for triple in found.values() for x in triple))
              if v is not None]
    axis = Axis(values, LEFT, WIDTH - RIGHT, wide(values), zero=True)
    crossed = any(paper is not None for _, paper, _ in rows)
    parts, y = legend(names, TOP + 6)
    if crossed:
        parts += [text(8, TOP + 10, "× the paper")]
    bottom = y + ROW * len(rows)
    for tick in axis.ticks:
        x = axis.at(tick)
        parts += [f'<line x1="{x:g}" x2="{x:g}" y1="{y:g}" y2="{bottom:g}" class="grid"/>',
                  text(x, bottom + 14, f"{tick:g}", "middle")]
    parts.append(text(LEFT, bottom + 30, unit))
    for n, (label, paper, found) in enumerate(rows):
        middle = y + ROW * (n + 0.5)
        parts.append(text(LEFT - 8, middle + 4, label, "end"))
        for name, (value, low, high) in found.items():
            # Series of one row are a little apart.
            number = names.index(name)
            at = middle + (number - (len(names) - 1) / 2) * min(4, 14 / len(names))
            if low is not None:
                parts.append(f'<line x1="{axis.at(low):g}" x2="{axis.at(high):g}" y1="{at:g}" y2="{at:g}" '
                             f'class="l{number % SERIES}"/>')
            parts.append(f'<circle cx="{axis.at(value):g}" cy="{at:g}" r="4" class="s{number % SERIES}"/>')
        if paper is not None:
            parts.append(text(axis.at(paper), middle + 5, "×", "middle", "paper"))
    return drawing(bottom + 36, title, parts)


def wrapped(points, per_line=12):
    """Points of a line as text in lines of moderate length."""
    words = [f"{x:g},{y:g}" for x, y in points]
    return "\n".join(" ".join(words[n:n + per_line]) for n in range(0, len(words), per_line))


def lines(title, across, up, series):
    """Lines of {name: [(x, y)]} with words for both axes."""
    xs, ys = ([p[n] for points in series.values() for p in points] for n in (0, 1))
    parts, top = legend(list(series), TOP + 6)
    bottom = top + HEIGHT
    x_axis, y_axis = Axis(xs, 60, WIDTH - RIGHT), Axis(ys, bottom, top, wide(ys), zero=True)
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        parts += [f'<line x1="60" x2="{WIDTH - RIGHT}" y1="{y:g}" y2="{y:g}" class="grid"/>',
                  text(54, y + 4, f"{tick:g}", "end")]
    parts += [text(x_axis.at(tick), bottom + 16, f"{tick:g}", "middle") for tick in x_axis.ticks]
    parts += [text(60, bottom + 32, across), text(4, top - 4, up)]
    for n, points in enumerate(series.values()):
        placed = [(x_axis.at(x), y_axis.at(y)) for x, y in points if y > 0 or not y_axis.log]
        parts.append(f'<polyline class="l{n % SERIES}" points="{wrapped(placed)}"/>')
    return drawing(bottom + 38, title, parts)


def bar(title, counts):
    """A bar of {name: count}, parts in proportion, each with its count; the classes are v-NAME."""
    whole, x, parts = sum(counts.values()) or 1, 0.0, []
    for name, count in counts.items():
        wide = WIDTH * count / whole
        if count:
            parts += [f'<rect x="{x:.1f}" y="0" width="{wide:.1f}" height="24" class="v-{name.replace(" ", "-")}">'
                      f"<title>{escape(name)}: {count}</title></rect>",
                      text(round(x + wide / 2, 1), 17, count, "middle")]
        x += wide
    return drawing(24, title, parts)
