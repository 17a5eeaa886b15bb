# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2 up, down and status.

    arguments  rates and link layers as a person writes them: text in, numbers out
    system     ip and tc, and what the kernel has now
    state      what `dualpi2 up` did, in /run; what is to last, in /etc
    commands   the steps of `up` and `down`, and the way back when one of them fails
    service    the systemd unit
    status     what is set, and whether it is still so
"""
