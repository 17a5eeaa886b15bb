# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2-top.

    watch     samples, one after the other, and what lies between two of them
    report    what is shown, as JSON and as text
    screen    the terminal: keys, sizes, what fits
    metrics   Prometheus
    cli       options, and which of these a person wants
"""
