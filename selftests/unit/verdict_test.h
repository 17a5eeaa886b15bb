/* SPDX-License-Identifier: GPL-2.0-only */
/* Both verdicts on a packet, for the tests of either. */
#ifndef DUALPI2_VERDICT_TEST_H
#define DUALPI2_VERDICT_TEST_H

/* dualpi2_verdict(), after a check that dualpi2_verdict_fast() comes to the same verdict and state, or
 * is undecided and leaves the state alone; *decided counts the former.
 */
static enum dualpi2_verdict verdict_both(const struct dualpi2_params *p, struct dualpi2_vars *v,
					 const struct dualpi2_packet *pkt, unsigned int *decided)
{
	enum dualpi2_queue queue = pkt->profile <= DUALPI2_C_SCALABLE ? DUALPI2_QUEUE_C :
									DUALPI2_QUEUE_L;
	struct dualpi2_vars before = *v, v_fast = *v;
	enum dualpi2_verdict fast = dualpi2_verdict_fast(p, &v_fast, queue, pkt);
	enum dualpi2_verdict slow = dualpi2_verdict(p, v, pkt);

	if (fast == DUALPI2_UNDECIDED) {
		CHECK(!memcmp(&v_fast, &before, sizeof(before)), "the state has changed");
		return slow;
	}
	/* With drop_enqueue, the Classic queue's verdict is not asked for at dequeue. */
	if (queue == DUALPI2_QUEUE_L || !p->drop_early) {
		CHECK_EQ(fast, slow);
		CHECK(!memcmp(&v_fast, v, sizeof(*v)), "another state, verdict %u", slow);
	}
	++*decided;
	return slow;
}

#endif /* DUALPI2_VERDICT_TEST_H */
