# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2 up, set, down, status and list.

    arguments  rates, times and link layers: text in, numbers out
    system     runs ip and tc, and parses what they print
    state      the state in /run, and the saved configuration in /etc
    commands   the steps of `up`, `set` and `down`, and how they are undone when one of them fails
    service    the systemd unit
    status     the configuration of each device, and whether the kernel still has it
"""
