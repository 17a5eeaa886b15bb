# SPDX-License-Identifier: GPL-2.0-only
"""Rates, times, counts and shares as text; "-" for None."""

from __future__ import annotations

from typing import Optional

PREFIXES = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18))


def scaled(value: Optional[float]) -> str:
    """Three digits and a prefix: 12.3 M"""
    if value is None:
        return "-"
    chosen = PREFIXES[0]
    for prefix in PREFIXES:
        if value >= prefix[1] * 0.9995:
            chosen = prefix
    number = value / chosen[1]
    digits = 0 if number >= 99.95 or float(number).is_integer() and chosen[1] == 1 else 1 if number >= 9.995 else 2
    return f"{number:.{digits}f} {chosen[0]}"


def bits(value: Optional[float]) -> str:
    """12.3 Mbit/s"""
    return "-" if value is None else scaled(value) + "bit/s"


def count(value: Optional[float], unit: str) -> str:
    """1.23 kpkt"""
    return "-" if value is None else scaled(value) + unit


def percent(share: Optional[float]) -> str:
    """7.4 %; small values with three decimals: 0.003 %"""
    if share is None:
        return "-"
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f} %"
    # 100 % and 0 % mean exactly all and nothing.
    if value >= 99.95:
        return "99.9 %"
    return f"{value:.1f} %" if value >= 9.95 else f"{value:.2f} %" if value >= 0.095 else f"{max(value, 0.001):.3f} %"


def delay(ns: Optional[float]) -> str:
    """1.23ms"""
    if ns is None:
        return "-"
    for unit, size in (("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if ns < 999.5 * size or unit == "s":
            break
    number = ns / size
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}{unit}"


def ago(seconds: float) -> str:
    """5 s, 3 min, 2 h, 4 d"""
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172800)):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"
