# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel sends, for all commands.

    layout    structs and numbers of include/uapi/linux/dualpi2.h
    netlink   attributes, messages and sockets, without their meaning
    qdisc     qdiscs, and reports of overload
    stats     statistics of a dualpi2: decoding, differences, percentiles; no socket, no clock, no terminal
    text      rates, times, counts and shares for a person
"""
