// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Prague's rate while the round-trip time moves.
 */
#include "prague_test.h"

UNIT_TEST(prague_rate_is_held_while_the_rtt_moves_below_the_virtual_one)
{
	int i;

	for (i = 0; i < 20000; i++) {
		u32 from_us = unit_any(100, 24000), sample_us = unit_any(100, 25000);
		u64 window = unit_any(PRAGUE_PKT, 4096 * PRAGUE_PKT);
		struct prague p = prague_state(window, from_us);
		long double ratio;

		p.undo_q32 = 2 * window;
		prague_add_rtt(&p, &prague_defaults, sample_us);
		ratio = p.rtt_us8 / (8.0L * from_us);
		CHECK(fabsl(p.window_q32 - window * ratio) <= 1, "%llu of %llu, %u us to %u / 8",
		      (ull)p.window_q32, (ull)window, from_us, p.rtt_us8);
		CHECK(fabsl(p.undo_q32 - 2 * window * ratio) <= 1, "undo");
	}
}

UNIT_TEST(prague_window_is_held_while_the_rtt_moves_elsewhere)
{
	struct prague_params params = prague_defaults;
	struct prague p = prague_state(100 * PRAGUE_PKT, 10000);

	/* before the transition */
	p.rounds = 3;
	prague_add_rtt(&p, &params, 18000);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	/* in slow start */
	p.rounds = 4;
	p.slow_start = true;
	prague_add_rtt(&p, &params, 18000);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	/* above the virtual RTT */
	p = prague_state(100 * PRAGUE_PKT, 30000);
	prague_add_rtt(&p, &params, 80000);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	/* without independence */
	params.rtt_virt_us = 0;
	p = prague_state(100 * PRAGUE_PKT, 10000);
	prague_add_rtt(&p, &params, 18000);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	/* across the virtual RTT it moves as far as that, in both directions */
	p = prague_state(100 * PRAGUE_PKT, 20000);
	prague_add_rtt(&p, &prague_defaults, 20000 + 8 * 20000);
	CHECK_EQ(p.rtt_us8, 8 * 40000);
	CHECK_EQ(p.window_q32, 125 * PRAGUE_PKT);
	p = prague_state(100 * PRAGUE_PKT, 28000);
	prague_add_rtt(&p, &prague_defaults, 4000);
	CHECK_EQ(p.rtt_us8, 8 * 25000);
	CHECK_EQ(p.window_q32, 100 * PRAGUE_PKT);
	prague_add_rtt(&p, &prague_defaults, 5000);
	CHECK_EQ(p.window_q32, 90 * PRAGUE_PKT);
}

UNIT_TEST(prague_rate_held_stays_in_the_range_of_windows)
{
	struct prague p = prague_state(PRAGUE_MOST_CWND * PRAGUE_PKT, 1);

	prague_add_rtt(&p, &prague_defaults, PRAGUE_RTT_MOST_US);
	CHECK_EQ(p.window_q32, PRAGUE_MOST_CWND * PRAGUE_PKT);
	p = prague_state(PRAGUE_MOST_CWND * PRAGUE_PKT / 2, 8000);
	prague_add_rtt(&p, &prague_defaults, 8000 * 8);
	CHECK_NEAR(p.window_q32, PRAGUE_MOST_CWND * PRAGUE_PKT / 16 * 15, PRAGUE_PKT);
	p = prague_state(PRAGUE_LEAST, 8000);
	prague_add_rtt(&p, &prague_defaults, 1);
	CHECK_EQ(p.window_q32, PRAGUE_LEAST);
}
