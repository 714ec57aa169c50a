/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Hybla: on a long path, the window grows so that the sending rate grows as on a short path. */

#include "hybla_growth.h"

HOOK1(void, hybla_init)
{
	start_growth(state_of(sk), tcp_of(sk));
	set_initial_threshold(tcp_of(sk));
}

HOOK3(void, hybla_cong_avoid, u32, ack, u32, acked)
{
	grow(state_of(sk), tcp_of(sk), acked);
}

/* A loss or an ECN mark halves the window, as in NewReno. */
HOOK1(u32, hybla_ssthresh)
{
	round_down(state_of(sk));
	return most(tcp_of(sk)->snd_cwnd / 2, 2);
}

HOOK2(void, hybla_cwnd_event, u32, event)
{
	take_event(state_of(sk), event);
}

HOOK2(void, hybla_set_state, u8, new_state)
{
	enter_state(state_of(sk), new_state);
}

HOOK1(u32, hybla_undo_cwnd)
{
	return undo_reduction(state_of(sk), tcp_of(sk));
}

RULE(hybla, .init = (void *)hybla_init, .cong_avoid = (void *)hybla_cong_avoid,
     .ssthresh = (void *)hybla_ssthresh, .cwnd_event = (void *)hybla_cwnd_event,
     .set_state = (void *)hybla_set_state, .undo_cwnd = (void *)hybla_undo_cwnd);
