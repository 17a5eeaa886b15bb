# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2 doctor: why there is no L4S on a device.

    cli       options and output
    net       devices, qdiscs, classes and filters, by netlink
    packets   packets of the device, by packet sockets
    probe     the facts: results of all of the above
    findings  a finding and how it is printed
    rules     conclusions from the facts
"""
