# SPDX-License-Identifier: GPL-2.0-only
"""dualpi2: low latency on a link in one command, and why there is none.

    words    rates and link layers as a person writes them: text in, numbers out
    system   ip and tc, and what the kernel has now
    state    what `dualpi2 up` did, in /run; what is to last, in /etc
    up       the steps of `up` and `down`, and the way back when one of them fails
    service  the systemd unit
    status   what is set, and whether it is still so
    doctor   why there is no L4S here
    cli      options, and which of these a person wants
"""

from dualpi2_top import Trouble, version

__all__ = ["Trouble", "version"]
