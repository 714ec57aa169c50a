/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Reno that gives up a tenth of its window on a loss instead of half, for Linux. */
#include "window_rule.h"

/* Growth in congestion avoidance: a segment more each round trip. Windows are in segments. */
HOOK3(void, gentle_cong_avoid, u32, ack, u32, acked)
{
	grow_as_reno(state_of(sk), tcp_of(sk), acked);
}

/* Threshold after a loss. The kernel reduces the window to it, or to one segment by timeout. */
HOOK1(u32, gentle_ssthresh)
{
	u32 *credit = state_of(sk);

	*credit = 0;
	return most(tcp_of(sk)->snd_cwnd * 9ull / 10, 2);
}

HOOK1(u32, gentle_undo_cwnd)
{
	return larger_window(tcp_of(sk));
}

RULE(gentle, .cong_avoid = (void *)gentle_cong_avoid, .ssthresh = (void *)gentle_ssthresh,
     .undo_cwnd = (void *)gentle_undo_cwnd);
