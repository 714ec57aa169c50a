/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Westwood+: a loss sets the window to the bandwidth-delay product, from one bandwidth sample per
 * round trip.
 *
 * L. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas
 * TCP congestion control", ACM CCR 34(2) 2004.
 */

#include "bandwidth.h"
#include "westwood_reaction.h"

struct state {
	struct round_trip_bandwidth bandwidth;
	struct low_pass_filter filter;
	struct westwood_reaction reaction;
};

HOOK1(void, westwood_init)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	start_bandwidth(&state->bandwidth, tp);
	state->filter.once = 0;
	state->filter.twice = 0;
	state->reaction.credit = 0;
	state->reaction.threshold = 0;
	set_initial_threshold(tp);
}

HOOK2(void, westwood_pkts_acked, const struct ack_sample *, sample)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	if (sample_bandwidth(&state->bandwidth, tp, sample->rtt_us))
		add_to_filter(&state->filter, state->bandwidth.last_sample);
}

HOOK3(void, westwood_cong_avoid, u32, ack, u32, acked)
{
	struct state *state = state_of(sk);

	grow_as_reno(&state->reaction.credit, tcp_of(sk), acked);
}

HOOK1(u32, westwood_ssthresh)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	u64 bandwidth = state->filter.twice;
	u32 rtt = state->bandwidth.minimum_rtt;

	return reduce(&state->reaction, tp, bandwidth && rtt, segments_in(bandwidth, rtt));
}

HOOK2(void, westwood_cwnd_event, u32, event)
{
	struct state *state = state_of(sk);

	if (event == EVENT_COMPLETE_CWR)
		restore_threshold(&state->reaction, tcp_of(sk));
}

HOOK2(void, westwood_set_state, u8, new_state)
{
	struct state *state = state_of(sk);

	if (new_state == STATE_LOSS)
		restore_threshold(&state->reaction, tcp_of(sk));
}

HOOK1(u32, westwood_undo_cwnd)
{
	return larger_window(tcp_of(sk));
}

RULE(westwood, .init = (void *)westwood_init, .pkts_acked = (void *)westwood_pkts_acked,
     .cong_avoid = (void *)westwood_cong_avoid, .ssthresh = (void *)westwood_ssthresh,
     .cwnd_event = (void *)westwood_cwnd_event, .set_state = (void *)westwood_set_state,
     .undo_cwnd = (void *)westwood_undo_cwnd);
