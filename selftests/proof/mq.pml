/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared clock of include/net/dualpi2_mq.h as a model for spin: QUEUES queues, one atomic operation a step,
 * all orders, time that goes on between any two steps. test_mq_model.sh runs it.
 *
 * Link time is in units of a packet. Each queue sends so many CLASSIC packets, by a ticket each, and L4S packets, by a
 * ticket or a debt of one packet, in any order. Time ends at END: a queue that must wait longer gives up.
 *
 * Not in the model: fractions, tickets of several packets, drops, the sum of backlogs, changes of the rate.
 *
 * FAULT: 1 the hand is moved to the floor without a comparison; 2 the addition is not atomic; 3 a Classic packet does
 * not wait; 4 a settled debt does not count as time that L4S used; 5 a queue that became empty stays counted.
 */
#ifndef QUEUES
#define QUEUES	3
#endif
#ifndef CLASSIC
#define CLASSIC	1
#endif
#ifndef L4S
#define L4S	1
#endif
#ifndef END
#define END	2
#endif
#define LATE	1
#define SLOTS	12
#ifndef FAULT
#define FAULT	0
#endif

byte now, used, l_hand, c_hand, waiting, c_sent, l_sent, rest;
bool taken[2 * SLOTS];	/* units reserved: Classic, L4S */

/* Reserve one unit at the floor or later. */
inline reserve(hand, first, floor) {
	x = hand;
	do
	:: x >= floor -> break
	:: else ->
		atomic {
			if
			:: hand == x || FAULT == 1 ->
				assert(hand <= floor);	/* never falls */
				hand = floor;
				break
			:: else -> assert(hand > x); x = hand
			fi
		}
	od;
#if FAULT == 2
	start = hand;
	hand = start + 1;
#else
	atomic { start = hand; hand = hand + 1 }
#endif
	d_step {
		assert(start >= floor && start < SLOTS);
		assert(!taken[first + start]);
		taken[first + start] = true;
		x = 0
	}
}

/* Cumulative bound: one Classic ticket, one L4S ticket, a debt for each queue. */
#define HOLDS	(c_sent + l_sent <= now + 1 + 1 + QUEUES)

inline settle() {
	if
	:: owed ->
		if
		:: FAULT == 4 -> skip
		:: else -> used = used + 1
		fi;
		reserve(l_hand, SLOTS, since);
		owed = false
	:: else -> skip
	fi
}

inline send_l4s() {
	seen = now;
	if
	:: !owed && l_hand <= seen -> owed = true; since = seen; d_step { l_sent++; assert(HOLDS) }
	:: else ->
		settle();
		reserve(l_hand, SLOTS, seen);
		if
		:: now >= start -> d_step { l_sent++; assert(HOLDS) }; used = used + 1
		:: now == END && now < start -> skip	/* lapses */
		fi
	fi;
	start = 0; seen = 0
}

inline send_classic() {
	waiting = waiting + 1;
	seen = now;
	seen = (seen > used -> seen - used : 0);
	if
	:: busy && seen > LATE -> seen = seen - LATE
	:: else -> skip
	fi;
	reserve(c_hand, 0, seen);
	busy = true;
	seen = 0;
	if
	:: now >= used + start || FAULT == 3 -> d_step { c_sent++; assert(HOLDS) }
	:: now == END && now < used + start -> skip
	fi;
	start = 0;
	if
	:: FAULT == 5 && _pid == 1 -> skip
	:: else -> waiting = waiting - 1
	fi
}

proctype queue() {
	byte x, start, seen, since, c_left = CLASSIC, l_left = L4S;
	bool owed, busy;

	do
	:: c_left -> c_left--; send_classic()
	:: l_left -> l_left--; send_l4s()
	:: !c_left && !l_left -> break
	od;
	settle();
	rest = rest + 1
}

init {
	byte begun;

	atomic {
		do
		:: begun < QUEUES -> run queue(); begun++
		:: else -> break
		od;
		begun = 0
	}
	do
	:: rest == QUEUES -> break
	:: now < END -> now = now + 1
	od;
	assert(waiting == 0);
	assert(used == l_sent)
}
