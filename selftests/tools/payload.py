# SPDX-License-Identifier: GPL-2.0-only
"""Statistics as a kernel sends them, made from include/uapi/linux/dualpi2.h."""

import os
import struct
import sys

ROOT = os.environ.get("DUALPI2_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, "tools")
sys.path.insert(0, os.path.join(ROOT, "selftests/lib"))

from netlink import EXT_MAGIC, EXT_OFFSET, HEADER, NLA_F_NESTED, STATS_C, STATS_L, attr  # noqa: E402

enum = HEADER.number


def pack(name, **values):
    """A struct; fields that are not given are 0."""
    return HEADER.layout("tc_dualpi2_" + name).write(values)


def queue(counters, delay=None, hist=()):
    """The nest of a queue; without delay it has no histogram."""
    data = attr(enum("TCA_DUALPI2_QUEUE_COUNTERS"), pack("counters", **counters))
    if delay is not None:
        data += attr(enum("TCA_DUALPI2_QUEUE_DELAY"),
                     pack("delay", **{"unit_ns": 8192, "buckets": 96, "generation": 1} | delay))
        data += attr(enum("TCA_DUALPI2_QUEUE_HIST"), struct.pack(f"={len(hist)}Q", *hist))
    return data


def app(xstats=None, ext=None, c=None, l=None, overload=None, link=None, more=b"", longer=b"", qprotect=None):
    """TCA_STATS_APP; without ext that of the in-tree dualpi2.

    longer: bytes appended to the struct of the extension, as a later kernel may; more: attributes appended.
    """
    data = pack("xstats", **xstats or {})
    if ext is None:
        return data
    own = pack("ext_xstats", **ext, magic=EXT_MAGIC) + longer
    own = own[:4] + struct.pack("=I", len(own)) + own[8:]
    data = data.ljust(EXT_OFFSET, b"\0") + own
    if c is not None:
        data += attr(STATS_C | NLA_F_NESTED, c) + attr(STATS_L | NLA_F_NESTED, l)
    if overload is not None:
        data += attr(enum("TCA_DUALPI2_STATS_OVERLOAD"), pack("overload", **overload))
    if link is not None:
        data += attr(enum("TCA_DUALPI2_STATS_LINK"), pack("link", **link))
    if qprotect is not None:
        data += attr(enum("TCA_DUALPI2_STATS_QPROTECT"), pack("qprotect", **qprotect))
    return data + more
