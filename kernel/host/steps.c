/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Calls a window rule as the kernel does, on the host: the counterpart of the rule's simulated
 * version in a property test (crates/tcp/src/congestion/kernel_rules.rs).
 *
 * cc -DRULE_FILE='"../hybla.bpf.c"' steps.c. Reads steps of six numbers of 64 bits from standard
 * input: kind, time in microseconds, and four operands. After each step, writes window, fraction of
 * a segment in 2^-32, and threshold, as three numbers of 64 bits.
 */
#include <stdio.h>
#include <string.h>

#include RULE_FILE

/* The part of the window below a segment, which is first in the state of a rule that has one. */
#ifdef BENTPIPE_HYBLA_GROWTH_H
#define FRACTION(state) ((struct hybla_growth *)(state))->fraction
#else
#define FRACTION(state) 0
#endif

enum step {
	/* New connection: window in segments, smoothed RTT in eighths of a us, payload of a segment. */
	CONNECT,
	/* Settings: RTT0 and time constant in us, capacity in bytes per second. */
	SETTINGS,
	/* Acknowledgment: segments, smoothed RTT, RTT in us, whether the window limits the sender. */
	ACK,
	/* Acknowledgment in recovery: the same operands. */
	ACK_IN_RECOVERY,
	/* Loss or ECN mark, and the recovery after it. */
	LOSS,
	TIMEOUT,
	/* Timeout of a segment that has been retransmitted before. */
	REPEATED_TIMEOUT,
	SPURIOUS,
	/* Window after an idle period: window, threshold. */
	RESTART,
	/* Sets window and threshold, without the rule. */
	SET,
};

struct settings settings;

static struct tcp_sock tp;

static void event(u32 number)
{
	if (bentpipe_rule.cwnd_event)
		bentpipe_rule.cwnd_event((struct sock *)&tp, number);
}

static void set_state(u8 state)
{
	if (bentpipe_rule.set_state)
		bentpipe_rule.set_state((struct sock *)&tp, state);
}

static void timeout(void)
{
	tp.snd_cwnd = 1;
	set_state(STATE_LOSS);
}

static void acknowledge(const u64 *operands)
{
	struct ack_sample sample = {.pkts_acked = operands[0], .rtt_us = (s32)operands[2]};

	tp.delivered += operands[0];
	tp.srtt_us = operands[1];
	tp.is_cwnd_limited = operands[3];
	if (bentpipe_rule.pkts_acked)
		bentpipe_rule.pkts_acked((struct sock *)&tp, &sample);
}

static void take(enum step kind, u64 now, const u64 *operands)
{
	static u32 threshold_before;
	struct sock *sk = (struct sock *)&tp;

	tp.tcp_mstamp = now;
	switch (kind) {
	case CONNECT:
		memset(&tp, 0, sizeof(tp));
		tp.tcp_mstamp = now;
		tp.snd_cwnd = operands[0];
		tp.snd_ssthresh = INFINITE_THRESHOLD;
		tp.srtt_us = operands[1];
		tp.mss_cache = operands[2];
		tp.delivered = 1;
		bentpipe_rule.init(sk);
		break;
	case SETTINGS:
		settings.reference_rtt_us = operands[0];
		settings.time_constant_us = operands[1];
		settings.channel_capacity = operands[2];
		break;
	case ACK:
		acknowledge(operands);
		bentpipe_rule.cong_avoid(sk, 0, operands[0]);
		break;
	case ACK_IN_RECOVERY:
		acknowledge(operands);
		break;
	case LOSS:
	case TIMEOUT:
		tp.prior_cwnd = tp.snd_cwnd;
		threshold_before = tp.snd_ssthresh;
		tp.snd_ssthresh = bentpipe_rule.ssthresh(sk);
		if (kind == LOSS) {
			set_state(STATE_RECOVERY);
			tp.snd_cwnd = tp.snd_ssthresh;
			event(EVENT_COMPLETE_CWR);
			set_state(STATE_OPEN);
		} else {
			event(EVENT_LOSS);
			timeout();
		}
		break;
	case REPEATED_TIMEOUT:
		timeout();
		break;
	case SPURIOUS:
		tp.snd_cwnd = bentpipe_rule.undo_cwnd(sk);
		if (threshold_before > tp.snd_ssthresh)
			tp.snd_ssthresh = threshold_before;
		break;
	case RESTART:
		tp.snd_cwnd = operands[0];
		tp.snd_ssthresh = operands[1];
		event(EVENT_CWND_RESTART);
		break;
	case SET:
		tp.snd_cwnd = operands[0];
		tp.snd_ssthresh = operands[1];
		break;
	}
}

int main(void)
{
	u64 step[6];

	while (fread(step, sizeof(step), 1, stdin) == 1) {
		u64 answer[3];

		take(step[0], step[1], step + 2);
		answer[0] = tp.snd_cwnd;
		answer[1] = FRACTION(state_of((struct sock *)&tp));
		answer[2] = tp.snd_ssthresh;
		fwrite(answer, sizeof(answer), 1, stdout);
	}
	return 0;
}
