/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Window of Westwood and Westwood+: WestwoodRule in crates/tcp/src/congestion/westwood.rs.
 *
 * The window grows as in Reno. A loss sets the threshold to the measured bandwidth-delay product,
 * and reduces the window to it, but does not enlarge the window.
 */
#ifndef BENTPIPE_WESTWOOD_REACTION_H
#define BENTPIPE_WESTWOOD_REACTION_H

#include "window_rule.h"

struct westwood_reaction {
	/* See grow_as_reno. */
	u32 credit;
	/* Threshold after the last loss. */
	u32 threshold;
};

/* Returns the window for the following recovery. `pipe` is 0 before the first estimate. */
static ALWAYS_INLINE u32 reduce(struct westwood_reaction *reaction, const struct tcp_sock *tp,
				int is_estimated, u64 pipe)
{
	reaction->credit = 0;
	/* Without an estimate, a loss halves the window, as in Reno. */
	if (!is_estimated)
		pipe = tp->snd_cwnd / 2;
	reaction->threshold = least(most(pipe, 2), INFINITE_THRESHOLD);
	return is_estimated ? least(reaction->threshold, tp->snd_cwnd) : reaction->threshold;
}

/* Recovery has ended, or the retransmission timer expired: slow start goes up to the threshold. */
static ALWAYS_INLINE void restore_threshold(const struct westwood_reaction *reaction,
					    struct tcp_sock *tp)
{
	tp->snd_ssthresh = most(tp->snd_ssthresh, reaction->threshold);
}

#endif
