/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2, the algorithm: a map of its headers.
 *
 *   dualpi2_params.h    options, and the parameters that follow from them
 *   dualpi2_state.h     the state of one instance
 *   dualpi2_pi.h        PI controller: p', p_C, p_CL
 *   dualpi2_mark.h      what happens to a packet: profile, native marker, verdict
 *   dualpi2_sched.h     which queue sends next
 *   dualpi2_overload.h  overload and its reports
 *   dualpi2_delay.h     histogram of delays
 *   dualpi2_shaper.h    our own shaper
 *   dualpi2_drain.h     rate of a link that is shaped elsewhere
 *   dualpi2_burst.h     bursts of L4S packets
 *   dualpi2_link.h      lengths and times on the link
 *   dualpi2_units.h     fixed-point formats and conversions
 *   dualpi2_options.h   ranges and defaults, from the list of options
 *   dualpi2_seam.h      what all of this takes from the kernel
 *
 * Integers in, a verdict out.  Nothing here knows packets, queues, locks, a clock or
 * a source of random numbers; the caller passes these.  The headers compile in user
 * space, too, where selftests/unit tests them.
 *
 * Sources: RFC 9332 (sections are named below), "PI2" (De Schepper et al., CoNEXT
 * 2016) and "DualPI2" (De Schepper et al., 2022).
 */
#ifndef _NET_DUALPI2_H
#define _NET_DUALPI2_H

#include <net/dualpi2_delay.h>
#include <net/dualpi2_drain.h>
#include <net/dualpi2_mark.h>
#include <net/dualpi2_sched.h>

#endif /* _NET_DUALPI2_H */
