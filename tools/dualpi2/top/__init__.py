# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2-top.

    watch     samples of all qdiscs, and the intervals between them
    names     names of qdiscs from a file
    report    JSON, phrases, styles
    table     one line per qdisc: columns, order, filter, severity
    details   5 to 12 lines per qdisc
    screen    the interactive view: terminal and keys
    metrics   Prometheus
    cli       options
"""
