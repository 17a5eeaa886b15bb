# SPDX-License-Identifier: GPL-2.0-only
"""Netlink and statistics, shared by all commands.

    layout    structs and numbers of include/uapi/linux/dualpi2.h
    netlink   attributes, messages and sockets
    qdisc     qdiscs, and reports of overload
    stats     statistics of a dualpi2: decoding, differences, percentiles; without sockets or clocks
    text      rates, times, counts and shares as text
"""
