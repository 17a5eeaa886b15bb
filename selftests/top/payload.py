# SPDX-License-Identifier: GPL-2.0-only
"""Statistics as a kernel sends them, made from include/uapi/linux/dualpi2.h and not from dualpi2-top's tables."""

import os
import re
import struct

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, "tools")

with open(os.path.join(ROOT, "include/uapi/linux/dualpi2.h"), encoding="ascii") as _file:
    HEADER = re.sub(r"/\*.*?\*/", "", _file.read(), flags=re.S)


def layout(name):
    """[(field, format)] of a struct of the header; structs within it are spelled "c.enqueued"."""
    body = re.search(r"struct " + name + r" \{(.*?)\n\};", HEADER, re.S).group(1)
    found = []
    for kind, field in re.findall(r"((?:struct )?\w+)\s+(\w+);", body):
        if kind.startswith("struct "):
            found += [(f"{field}.{inner}", form) for inner, form in layout(kind[7:])]
        else:
            found.append((field, {"__u64": "Q", "__u32": "I", "__s32": "i"}[kind]))
    return found


def enum(name):
    """The value of an enumerator."""
    for body in re.findall(r"enum[^{;]*\{(.*?)\}", HEADER, re.S):
        value = -1
        for item in [item.strip() for item in body.split(",") if item.strip()]:
            word, _, given = item.partition("=")
            value = int(given, 0) if given else value + 1
            if word.strip() == name:
                return value
    raise KeyError(name)


def pack(name, values):
    """A struct; fields that are not given are 0."""
    fields = layout(name)
    unknown = set(values) - {field for field, _ in fields}
    assert not unknown, f"struct {name} has no {unknown}"
    return struct.pack("=" + "".join(form for _, form in fields), *[values.get(field, 0) for field, _ in fields])


def attr(kind, data, nested=False):
    """A netlink attribute."""
    return struct.pack("=HH", 4 + len(data), kind | (0x8000 if nested else 0)) + data + b"\0" * (-len(data) % 4)


def queue(counters, delay=None, hist=()):
    """The nest of a queue; without delay it has no histogram."""
    data = attr(enum("TCA_DUALPI2_QUEUE_COUNTERS"), pack("tc_dualpi2_counters", counters))
    if delay is not None:
        data += attr(enum("TCA_DUALPI2_QUEUE_DELAY"),
                     pack("tc_dualpi2_delay", dict({"unit_ns": 8192, "buckets": 96, "generation": 1}, **delay)))
        data += attr(enum("TCA_DUALPI2_QUEUE_HIST"), struct.pack(f"={len(hist)}Q", *hist))
    return data


def app(xstats=None, ext=None, c=None, l=None, overload=None, link=None, more=b"", longer=b""):
    """TCA_STATS_APP: without ext as Linux's own, without c and l as modules before 2.2.

    longer: bytes appended to the struct of the extension, as a later kernel may; more: attributes appended.
    """
    data = pack("tc_dualpi2_xstats", xstats or {})
    if ext is None:
        return data
    own = pack("tc_dualpi2_ext_xstats", dict(ext, magic=0x64703278)) + longer
    own = own[:4] + struct.pack("=I", len(own)) + own[8:]
    data = data.ljust(256, b"\0") + own
    if c is not None:
        data += attr(enum("TCA_DUALPI2_STATS_C"), c, True) + attr(enum("TCA_DUALPI2_STATS_L"), l, True)
    if overload is not None:
        data += attr(enum("TCA_DUALPI2_STATS_OVERLOAD"), pack("tc_dualpi2_overload", overload))
    if link is not None:
        data += attr(enum("TCA_DUALPI2_STATS_LINK"), pack("tc_dualpi2_link", link))
    return data + more
