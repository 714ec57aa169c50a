/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Window growth of Hybla and Enhanced Hybla: HyblaGrowth in crates/tcp/src/congestion/hybla.rs.
 *
 * C. Caini and R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J.
 * Satellite Communications and Networking 22(5) 2004.
 *
 * Numbers with 16 fractional bits end in _q16. A window has 32 fractional bits: whole segments in
 * snd_cwnd, and the rest in the state of the rule.
 */
#ifndef BENTPIPE_HYBLA_GROWTH_H
#define BENTPIPE_HYBLA_GROWTH_H

#include "window_rule.h"

#define ONE_Q16 (1ull << 16)

/* RTT0 in the paper and in Linux. */
#define DEFAULT_REFERENCE_RTT_US 25000

/* Largest rho, and largest rho in 2^rho: both keep products within 64 bits. */
#define LARGEST_RHO 256
#define LARGEST_EXPONENT 24

struct hybla_growth {
	/* 2^rho - 1 */
	u64 slow_start_gain_q16;
	/* Minimum of the smoothed round-trip time, in eighths of a microsecond. */
	u32 lowest_rtt;
	u32 rho_q16;
	/* The part of the window below a segment, in 2^-32 segments; and before the last loss. */
	u32 fraction;
	u32 fraction_before;
};

/* Returns 2^exponent with 16 fractional bits, for exponents up to LARGEST_EXPONENT. */
static ALWAYS_INLINE u64 power_of_two_q16(u32 exponent_q16)
{
	/* The n-th is 2^(2^-n), with 31 fractional bits. */
	static const u32 roots[16] = {
		3037000500u, 2553802834u, 2341847524u, 2242560872u,
		2194507417u, 2170868212u, 2159144272u, 2153306067u,
		2150392887u, 2148937775u, 2148210589u, 2147847087u,
		2147665360u, 2147574502u, 2147529075u, 2147506361u,
	};
	u64 power = 1ull << 31;

#pragma clang loop unroll(full)
	for (int n = 0; n < 16; n++)
		if (exponent_q16 & (ONE_Q16 >> (n + 1)))
			power = power * roots[n] >> 31;
	return power << (exponent_q16 >> 16) >> 15;
}

/* Updates rho = RTT / RTT0, at least 1. RTT is the minimum of the smoothed round-trip time. */
static ALWAYS_INLINE void update_rho(struct hybla_growth *growth, const struct tcp_sock *tp)
{
	u32 rtt = tp->srtt_us;
	u64 rho_q16;

	if (!rtt || (growth->lowest_rtt && rtt >= growth->lowest_rtt))
		return;
	growth->lowest_rtt = rtt;
	u64 reference = settings.reference_rtt_us ? settings.reference_rtt_us
						  : DEFAULT_REFERENCE_RTT_US;
	rho_q16 = most(((u64)rtt << 16) / (8 * reference), ONE_Q16);
	growth->rho_q16 = least(rho_q16, LARGEST_RHO * ONE_Q16);
	growth->slow_start_gain_q16 =
		power_of_two_q16(least(growth->rho_q16, LARGEST_EXPONENT * ONE_Q16)) - ONE_Q16;
}

/* W(0) = rho, or the kernel's initial window if that is larger. */
static ALWAYS_INLINE void start_growth(struct hybla_growth *growth, struct tcp_sock *tp)
{
	growth->rho_q16 = ONE_Q16;
	growth->slow_start_gain_q16 = ONE_Q16;
	growth->lowest_rtt = 0;
	growth->fraction = 0;
	growth->fraction_before = 0;
	update_rho(growth, tp);
	tp->snd_cwnd = most(tp->snd_cwnd, growth->rho_q16 >> 16);
}

/* Returns the quotient of two numbers with 16 fractional bits, with 32 fractional bits. */
static ALWAYS_INLINE u64 quotient_q32(u64 dividend_q16, u64 divisor_q16)
{
	u64 whole = dividend_q16 / divisor_q16;
	u64 rest = dividend_q16 % divisor_q16 << 16;
	u64 high = rest / divisor_q16;
	u64 low = (rest % divisor_q16 << 16) / divisor_q16;

	return whole << 32 | high << 16 | low;
}

static ALWAYS_INLINE void add_to_window(struct hybla_growth *growth, struct tcp_sock *tp,
					u64 segments_q32)
{
	u64 fraction = growth->fraction + (segments_q32 & 0xffffffffu);

	growth->fraction = fraction;
	tp->snd_cwnd += (segments_q32 >> 32) + (fraction >> 32);
}

/* Grows by 2^rho - 1 per acknowledged segment, up to the threshold. Returns what is left. */
static ALWAYS_INLINE u64 grow_in_slow_start(struct hybla_growth *growth, struct tcp_sock *tp,
					    u64 acked_q16)
{
	u64 segments_q16 = (acked_q16 >> 16) * growth->slow_start_gain_q16;
	u64 room_q16 = ((u64)(tp->snd_ssthresh - tp->snd_cwnd) << 16) - (growth->fraction >> 16);
	u64 counted_q16;

	if (segments_q16 < room_q16) {
		add_to_window(growth, tp, segments_q16 << 16);
		return 0;
	}
	tp->snd_cwnd = tp->snd_ssthresh;
	growth->fraction = 0;
	counted_q16 = least(segments_q16, acked_q16);
	return counted_q16 > room_q16 ? counted_q16 - room_q16 : 0;
}

/* Grows by rho^2 / W per acknowledged segment. */
static ALWAYS_INLINE void grow_in_avoidance(struct hybla_growth *growth, struct tcp_sock *tp,
					    u64 acked_q16)
{
	u64 window_q16 = ((u64)tp->snd_cwnd << 16) + (growth->fraction >> 16);
	u64 rho_squared_q16 = (u64)growth->rho_q16 * growth->rho_q16 >> 16;

	add_to_window(growth, tp,
		      quotient_q32(rho_squared_q16 * (acked_q16 >> 2) >> 14, most(window_q16, 1)));
}

/* Returns three quarters of the window in segments. */
static ALWAYS_INLINE u64 three_quarters(const struct hybla_growth *growth, u32 window)
{
	return (((u64)window << 16) + (growth->fraction >> 16)) * 3 >> 18;
}

/* cong_avoid: an acknowledgment outside of recovery. */
static ALWAYS_INLINE void grow(struct hybla_growth *growth, struct tcp_sock *tp, u32 acked)
{
	u64 acked_q16 = least(acked, 1u << 14) << 16;

	if (!may_grow(tp))
		return;
	update_rho(growth, tp);
	if (in_slow_start(tp))
		acked_q16 = grow_in_slow_start(growth, tp, acked_q16);
	if (acked_q16)
		grow_in_avoidance(growth, tp, acked_q16);
}

/* A congestion event: windows are whole segments after it. */
static ALWAYS_INLINE void round_down(struct hybla_growth *growth)
{
	growth->fraction_before = growth->fraction;
	growth->fraction = 0;
}

/* set_state: after a timeout the window is what the kernel or the rule sets. */
static ALWAYS_INLINE void enter_state(struct hybla_growth *growth, u8 state)
{
	if (state == STATE_LOSS)
		growth->fraction = 0;
}

/* cwnd_event: an idle period has reduced the window. */
static ALWAYS_INLINE void take_event(struct hybla_growth *growth, u32 event)
{
	if (event == EVENT_CWND_RESTART)
		growth->fraction = 0;
}

/* undo_cwnd: the last congestion event was spurious. Returns the window before it. */
static ALWAYS_INLINE u32 undo_reduction(struct hybla_growth *growth, const struct tcp_sock *tp)
{
	if (tp->snd_cwnd > tp->prior_cwnd)
		return tp->snd_cwnd;
	if (tp->snd_cwnd < tp->prior_cwnd || growth->fraction < growth->fraction_before)
		growth->fraction = growth->fraction_before;
	return tp->prior_cwnd;
}

#endif
