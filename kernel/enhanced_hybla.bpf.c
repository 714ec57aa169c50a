/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Enhanced Hybla: on a loss, the window is larger the less of a known channel capacity is used.
 *
 * R. Vanzara and H. Bhatt, "Enhanced TCP Hybla and performance comparison for satellite link",
 * IJARET 5(4) 2014, section III.B.
 */

#include "bandwidth.h"
#include "hybla_growth.h"

struct state {
	struct hybla_growth growth;
	struct round_trip_bandwidth bandwidth;
};

HOOK1(void, enhanced_hybla_init)
{
	struct state *state = state_of(sk);

	start_growth(&state->growth, tcp_of(sk));
	start_bandwidth(&state->bandwidth, tcp_of(sk));
	set_initial_threshold(tcp_of(sk));
}

HOOK2(void, enhanced_hybla_pkts_acked, const struct ack_sample *, sample)
{
	struct state *state = state_of(sk);

	sample_bandwidth(&state->bandwidth, tcp_of(sk), sample->rtt_us);
}

HOOK3(void, enhanced_hybla_cong_avoid, u32, ack, u32, acked)
{
	struct state *state = state_of(sk);

	grow(&state->growth, tcp_of(sk), acked);
}

/* The threshold may be above the window: a loss is then taken for an error of the channel. */
HOOK1(u32, enhanced_hybla_ssthresh)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	/* CC and BWE of the paper. */
	u64 capacity = (settings.channel_capacity << 26) / (15625ull * most(tp->mss_cache, 1));
	u64 bandwidth = state->bandwidth.last_sample;
	u32 rtt = state->bandwidth.minimum_rtt;
	u64 pipe = bandwidth < capacity / 2 ? segments_in(capacity - bandwidth, rtt)
					    : segments_in(bandwidth, rtt);
	u64 threshold = most(pipe, three_quarters(&state->growth, tp->snd_cwnd));

	round_down(&state->growth);
	return least(most(threshold, 2), INFINITE_THRESHOLD - 1);
}

/* After a timeout the window is rho. The kernel has just set it to one segment. */
HOOK2(void, enhanced_hybla_set_state, u8, new_state)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	enter_state(&state->growth, new_state);
	if (new_state == STATE_LOSS)
		tp->snd_cwnd = most(tp->snd_cwnd, state->growth.rho_q16 >> 16);
}

HOOK2(void, enhanced_hybla_cwnd_event, u32, event)
{
	struct state *state = state_of(sk);

	take_event(&state->growth, event);
}

HOOK1(u32, enhanced_hybla_undo_cwnd)
{
	struct state *state = state_of(sk);

	return undo_reduction(&state->growth, tcp_of(sk));
}

RULE(enhanced_hybla, .init = (void *)enhanced_hybla_init,
     .pkts_acked = (void *)enhanced_hybla_pkts_acked,
     .cong_avoid = (void *)enhanced_hybla_cong_avoid, .ssthresh = (void *)enhanced_hybla_ssthresh,
     .set_state = (void *)enhanced_hybla_set_state, .cwnd_event = (void *)enhanced_hybla_cwnd_event,
     .undo_cwnd = (void *)enhanced_hybla_undo_cwnd);
