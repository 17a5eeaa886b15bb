# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2 doctor: why there is no L4S on a device.

    cli       options and output
    net       devices, qdiscs, classes and filters, by netlink
    packets   packets of the device, by packet sockets
    probe     the facts: what all others have seen
    rules     what follows from the facts
"""
