/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DualPI2, the algorithm: a map of its headers.
 *
 *   dualpi2_params.h    options, and the parameters that follow from them
 *   dualpi2_state.h     the state of one instance
 *   dualpi2_pi.h        PI controller: p', p_C, p_CL
 *   dualpi2_mark.h      the verdict on a packet: profile, native marker, signal
 *   dualpi2_sched.h     which queue sends next
 *   dualpi2_overload.h  overload and its reports
 *   dualpi2_qprotect.h  queue protection: flows that build the L4S queue
 *   dualpi2_delay.h     histogram of delays
 *   dualpi2_shaper.h    the shaper
 *   dualpi2_mq.h        a shaper that several transmit queues share
 *   dualpi2_drain.h     rate estimate of a link that another qdisc shapes
 *   dualpi2_burst.h     bursts of L4S packets
 *   dualpi2_link.h      lengths and times on the link
 *   dualpi2_units.h     fixed-point formats and conversions
 *   dualpi2_options.h   ranges and defaults, from the list of options
 *   dualpi2_seam.h      the kernel functions and types that the headers use
 *
 * The input is integers, the output a verdict.  The headers use no packets, queues,
 * locks, clocks or random number generators; the caller passes times, lengths and
 * random bits.  They also compile in user space, where unit tests run them.
 *
 * Sources: RFC 9332 (sections are named below), "PI2" (De Schepper et al., CoNEXT
 * 2016) and "DualPI2" (De Schepper et al., 2022).
 */
#ifndef _NET_DUALPI2_H
#define _NET_DUALPI2_H

#include <net/dualpi2_delay.h>
#include <net/dualpi2_drain.h>
#include <net/dualpi2_mark.h>
#include <net/dualpi2_mq.h>
#include <net/dualpi2_qprotect.h>
#include <net/dualpi2_sched.h>

#endif /* _NET_DUALPI2_H */
