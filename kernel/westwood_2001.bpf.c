/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Westwood as published in 2001: a loss sets the window to the bandwidth-delay product, from a
 * bandwidth sample per acknowledgment.
 *
 * C. Casetti and others, "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless
 * Links", MobiCom 2001.
 */

#include "bandwidth.h"
#include "westwood_reaction.h"

struct state {
	struct ack_bandwidth bandwidth;
	struct westwood_reaction reaction;
};

HOOK1(void, westwood_2001_init)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	state->bandwidth.sampled = tp->tcp_mstamp;
	state->bandwidth.last_sample = 0;
	state->bandwidth.estimate = 0;
	state->bandwidth.delivered = tp->delivered;
	state->bandwidth.is_estimated = 0;
	state->bandwidth.minimum_rtt = tp->srtt_us >> 3;
	state->reaction.credit = 0;
	state->reaction.threshold = 0;
	set_initial_threshold(tp);
}

HOOK2(void, westwood_2001_pkts_acked, const struct ack_sample *, sample)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	struct ack_bandwidth *bandwidth = &state->bandwidth;
	u64 now = tp->tcp_mstamp;
	u64 interval;

	note_rtt(&bandwidth->minimum_rtt, sample->rtt_us);
	/* Acknowledgments that arrive in the same microsecond are one sample. */
	if (now <= bandwidth->sampled)
		return;
	add_virtual_samples(bandwidth, now);
	interval = now - bandwidth->sampled;
	add_sample(bandwidth, rate_of(tp->delivered - bandwidth->delivered, interval), interval);
	bandwidth->delivered = tp->delivered;
	bandwidth->sampled = now;
}

HOOK3(void, westwood_2001_cong_avoid, u32, ack, u32, acked)
{
	struct state *state = state_of(sk);

	grow_as_reno(&state->reaction.credit, tcp_of(sk), acked);
}

HOOK1(u32, westwood_2001_ssthresh)
{
	struct state *state = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	struct ack_bandwidth *bandwidth = &state->bandwidth;
	u32 rtt = bandwidth->minimum_rtt;

	add_virtual_samples(bandwidth, tp->tcp_mstamp);
	return reduce(&state->reaction, tp, bandwidth->is_estimated && rtt,
		      segments_in(bandwidth->estimate, rtt));
}

HOOK2(void, westwood_2001_cwnd_event, u32, event)
{
	struct state *state = state_of(sk);

	if (event == EVENT_COMPLETE_CWR)
		restore_threshold(&state->reaction, tcp_of(sk));
}

HOOK2(void, westwood_2001_set_state, u8, new_state)
{
	struct state *state = state_of(sk);

	if (new_state == STATE_LOSS)
		restore_threshold(&state->reaction, tcp_of(sk));
}

HOOK1(u32, westwood_2001_undo_cwnd)
{
	return larger_window(tcp_of(sk));
}

RULE(westwood_2001, .init = (void *)westwood_2001_init, .pkts_acked = (void *)westwood_2001_pkts_acked,
     .cong_avoid = (void *)westwood_2001_cong_avoid, .ssthresh = (void *)westwood_2001_ssthresh,
     .cwnd_event = (void *)westwood_2001_cwnd_event, .set_state = (void *)westwood_2001_set_state,
     .undo_cwnd = (void *)westwood_2001_undo_cwnd);
