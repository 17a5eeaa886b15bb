# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel sends, for all commands.

    netlink   sockets and messages, without their meaning
    stats     statistics of a dualpi2: decoding, differences, percentiles; no socket, no clock, no terminal
"""
