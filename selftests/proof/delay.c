// SPDX-License-Identifier: GPL-2.0-only
/* The histogram of delays, the estimates of rate and bursts. */
#include "proof.h"

/* A histogram after any packets: what dualpi2_delay_add() relies on. */
static bool delay_holds(const struct dualpi2_delay *d)
{
	u64 first_ns = (u64)DUALPI2_HIST_SUB << d->shift, end_ns;

	if (d->shift < 10 || d->shift > 24)
		return false;
	if (d->bias != (d->shift + DUALPI2_HIST_SUB_BITS) * DUALPI2_HIST_SUB)
		return false;
	if (!d->watch_ns)	/* no packet yet */
		return !d->short_ns && !d->max_ns;
	end_ns = 1ULL << (d->shift + DUALPI2_HIST_SUB_BITS + DUALPI2_HIST_OCTAVES);
	return d->watch_ns == (d->max_ns < end_ns ? d->max_ns + 1 : end_ns) &&
	       d->short_ns == (d->max_ns < first_ns ? d->max_ns + 1 : first_ns);
}

/* proof: long */
void prove_delay_is_in_its_bucket(void)
{
	struct dualpi2_hist hist;
	struct dualpi2_delay d;
	u64 delay_ns, beyond, before, width, from;
	u32 i, octave;

	d.hist = &hist;
	assume(delay_holds(&d));
	assume(d.beyond <= NOW_MAX && i < DUALPI2_HIST_BUCKETS);
	beyond = d.beyond;
	before = dualpi2_delay_bucket(&d, i);
	assume(before < 1ULL << 47);
	dualpi2_delay_add(&d, delay_ns);
	prove(delay_holds(&d));
	/* Bounds of bucket i, in words of the documentation. */
	if (i < 2 * DUALPI2_HIST_SUB) {
		from = (u64)i << d.shift;
		width = 1ULL << d.shift;
	} else {
		octave = i / DUALPI2_HIST_SUB - 1;
		width = 1ULL << (d.shift + octave);
		from = (i % DUALPI2_HIST_SUB + DUALPI2_HIST_SUB) * width;
	}
	prove(dualpi2_delay_bucket(&d, i) ==
	      before + (delay_ns >= from && delay_ns < from + width));
	prove(d.beyond == beyond + (delay_ns >= dualpi2_delay_first_ns(&d) << DUALPI2_HIST_OCTAVES));
}

void prove_histogram_begins_empty(void)
{
	struct dualpi2_hist hist;
	struct dualpi2_delay d;
	u32 us, i;

	d.hist = &hist;
	assume(IN_RANGE(us, DUALPI2_HIST_C_MIN, DUALPI2_HIST_C_MAX));
	assume(i < DUALPI2_HIST_BUCKETS && d.generation < U32_MAX);
	/* The counts of nine years at a million a second. */
	for (u32 j = 0; j < DUALPI2_HIST_BUCKETS; j++)
		assume(hist.high[j] < 1 << 15);
	assume(d.beyond < 1ULL << 60 && d.not_shown < 1ULL << 60);
	dualpi2_delay_init(&d, dualpi2_hist_shift(us));
	prove(1ULL << d.shift >= (u64)us * DUALPI2_NS_PER_US);
	prove(1ULL << d.shift < 2ULL * us * DUALPI2_NS_PER_US);
	prove(delay_holds(&d));
	prove(!dualpi2_delay_bucket(&d, i) && !d.beyond);
}

void prove_drain_does_not_divide_by_zero(void)
{
	struct dualpi2_drain d;
	u64 now_ns;
	u32 bytes;
	bool left;

	assume(d.ns_per_byte_q20 <= (1ULL << 20) * 1000000);
	/* What was not added since the last update is what is known. */
	assume(d.busy_bytes <= 1ULL << 60 && d.busy_ns <= NOW_MAX && d.since_ns <= now_ns);
	assume(now_ns && now_ns <= NOW_MAX);
	dualpi2_drain_sent(&d, bytes, left, now_ns);
	assume(d.busy_bytes || !d.known_bytes);
	dualpi2_drain_update(&d, now_ns);
	prove(d.ns_per_byte_q20 <= (1ULL << 20) * 1000000);
}

/* proof: long cvc5 */
void prove_bursts_do_not_overflow(void)
{
	struct dualpi2_link link;
	struct dualpi2_burst b;
	u32 bytes, mtu_bytes, max_ns;
	u64 now_ns;

	assume(link_holds(&link) && max_ns <= 100U * DUALPI2_NS_PER_MS);
	assume(b.first_ns <= b.last_ns && b.last_ns <= now_ns && now_ns <= NOW_MAX);
	assume(b.ns_per_byte_q20 <= (1ULL << 20) * 1000000);
	assume(b.max_bytes <= DUALPI2_BURST_BYTES_MAX);
	assume(b.sum_bytes < DUALPI2_BURSTS_BYTES_MAX + (1ULL << 32));
	assume(b.sum <= b.sum_bytes << 28);
	assume(b.mean_ns <= 1U << 28);
	dualpi2_burst_next(&b, bytes, now_ns);
	prove(b.sum_bytes < DUALPI2_BURSTS_BYTES_MAX + (1ULL << 32));
	prove(b.sum <= b.sum_bytes << 28);
	prove(b.first_ns <= b.last_ns && b.last_ns <= now_ns);
}

void prove_burst_tolerance_is_bounded(void)
{
	struct dualpi2_link link;
	struct dualpi2_burst b;
	u32 mtu_bytes, max_ns;

	assume(link_holds(&link) && max_ns <= 100U * DUALPI2_NS_PER_MS);
	assume(b.first_ns <= b.last_ns && b.last_ns <= NOW_MAX);
	assume(b.ns_per_byte_q20 <= (1ULL << 20) * 1000000);
	assume(b.max_bytes <= DUALPI2_BURST_BYTES_MAX);
	assume(b.sum_bytes < DUALPI2_BURSTS_BYTES_MAX + (1ULL << 32));
	assume(b.sum <= b.sum_bytes << 28);
	assume(b.mean_ns <= 1U << 28);
	dualpi2_burst_update(&b, link.ns_per_byte_q20, mtu_bytes, max_ns);
	prove(b.burst_ns <= max_ns);
	prove(b.mean_ns <= 1U << 28);
}

/* proof: slow */
void prove_merged_histograms_add_up(void)
{
	struct dualpi2_hist to_hist, from_hist;
	struct dualpi2_delay to, from;
	u64 beyond, not_shown, sum, max_ns;
	u32 i;

	to.hist = &to_hist;
	from.hist = &from_hist;
	assume(i < DUALPI2_HIST_BUCKETS);
	for (u32 j = 0; j < DUALPI2_HIST_BUCKETS; j++)
		assume(to_hist.high[j] < 1 << 15 && from_hist.high[j] < 1 << 15);
	assume(to.beyond <= NOW_MAX && from.beyond <= NOW_MAX && to.not_shown <= NOW_MAX && from.not_shown <= NOW_MAX);
	assume(to.sum_ns <= NOW_MAX && from.sum_ns <= NOW_MAX);
	beyond = to.beyond + from.beyond;
	not_shown = to.not_shown + from.not_shown;
	max_ns = to.max_ns > from.max_ns ? to.max_ns : from.max_ns;
	sum = dualpi2_delay_bucket(&to, i) + dualpi2_delay_bucket(&from, i);
	dualpi2_delay_merge(&to, &from);
	prove(dualpi2_delay_bucket(&to, i) == sum);
	prove(to.beyond == beyond && to.not_shown == not_shown && to.max_ns == max_ns);
}
