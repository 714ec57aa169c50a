/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Measured bandwidth of a connection: crates/tcp/src/congestion/bandwidth.rs.
 *
 * Rates are segments per microsecond with 32 fractional bits.
 */
#ifndef BENTPIPE_BANDWIDTH_H
#define BENTPIPE_BANDWIDTH_H

#include "window_rule.h"

/* Minimum length of a sample period, as in Linux's tcp_westwood.c. */
#define SHORTEST_PERIOD_US 50000

/* Largest rate: it keeps products within 64 bits. */
#define LARGEST_RATE (512ull << 32)

/* Returns a rate. */
static ALWAYS_INLINE u64 rate_of(u32 segments, u64 microseconds)
{
	return least(((u64)segments << 32) / most(microseconds, 1), LARGEST_RATE);
}

/* Returns the segments that a rate delivers in a round trip. */
static ALWAYS_INLINE u64 segments_in(u64 rate, u32 rtt_us)
{
	return (rate >> 32) * rtt_us + ((rate & 0xffffffffu) * rtt_us >> 32);
}

/* Samples once per round trip: RoundTripBandwidth, of Westwood+. */
struct round_trip_bandwidth {
	u64 started;
	u64 last_sample;
	u32 delivered_at_start;
	/* Segments delivered by previous acknowledgments. */
	u32 delivered;
	/* Minimum round-trip time of the connection in microseconds; 0 if unknown. */
	u32 minimum_rtt;
};

static ALWAYS_INLINE void note_rtt(u32 *minimum_rtt, s32 rtt_us)
{
	if (rtt_us > 0 && (!*minimum_rtt || (u32)rtt_us < *minimum_rtt))
		*minimum_rtt = rtt_us;
}

static ALWAYS_INLINE void start_bandwidth(struct round_trip_bandwidth *bandwidth,
					  const struct tcp_sock *tp)
{
	bandwidth->started = tp->tcp_mstamp;
	bandwidth->last_sample = 0;
	bandwidth->delivered_at_start = tp->delivered;
	bandwidth->delivered = tp->delivered;
	bandwidth->minimum_rtt = tp->srtt_us >> 3;
}

/* Processes an acknowledgment. Returns whether there is a new sample. */
static ALWAYS_INLINE int sample_bandwidth(struct round_trip_bandwidth *bandwidth,
					  const struct tcp_sock *tp, s32 rtt_us)
{
	/* The acknowledgment that ends a period counts in the next one. */
	u32 delivered = bandwidth->delivered;
	u64 period = tp->tcp_mstamp - bandwidth->started;

	bandwidth->delivered = tp->delivered;
	note_rtt(&bandwidth->minimum_rtt, rtt_us);
	if (!tp->srtt_us || 8 * period <= most(tp->srtt_us, 8 * SHORTEST_PERIOD_US))
		return 0;
	bandwidth->last_sample = rate_of(delivered - bandwidth->delivered_at_start, period);
	bandwidth->started = tp->tcp_mstamp;
	bandwidth->delivered_at_start = delivered;
	return 1;
}

/* Two low-pass filters in series, each with weight 7/8 for the old value: LinuxFilter. */
struct low_pass_filter {
	u64 once;
	u64 twice;
};

static ALWAYS_INLINE void add_to_filter(struct low_pass_filter *filter, u64 sample)
{
	if (filter->twice) {
		filter->once = (7 * filter->once + sample + 4) / 8;
		filter->twice = (7 * filter->twice + filter->once + 4) / 8;
	} else {
		filter->once = sample;
		filter->twice = sample;
	}
}

/* The filter of Westwood of 2001, with a sample per acknowledgment: AckBandwidth. */
struct ack_bandwidth {
	/* Time of the last sample, virtual ones included. */
	u64 sampled;
	u64 last_sample;
	u64 estimate;
	u32 delivered;
	u32 minimum_rtt;
	/* Whether there was a sample. The estimate may have decayed to 0 since. */
	u32 is_estimated;
};

#define DEFAULT_TIME_CONSTANT_US 500000
/* Virtual samples per time constant: m of the paper. */
#define SAMPLES_PER_TIME_CONSTANT 2

static ALWAYS_INLINE u64 time_constant(void)
{
	/* Up to 8 s, so that products stay within 64 bits. */
	return settings.time_constant_us ? least(settings.time_constant_us, 8000000)
					 : DEFAULT_TIME_CONSTANT_US;
}

/* Adds a sample that stands for an interval of microseconds: Tustin's method. */
static ALWAYS_INLINE void add_sample(struct ack_bandwidth *bandwidth, u64 sample, u64 interval)
{
	u64 twice = 2 * time_constant();
	u64 mean = (sample + bandwidth->last_sample) / 2;
	u64 sum = twice + interval;

	/* Split at the binary point, so that the products stay within 64 bits. */
	u64 whole = (bandwidth->estimate >> 24) * (twice - interval) + (mean >> 24) * 2 * interval;
	u64 part = (bandwidth->estimate & 0xffffff) * (twice - interval) +
		   (mean & 0xffffff) * 2 * interval;

	bandwidth->estimate = (whole / sum << 24) + (((whole % sum) << 24) + part + sum / 2) / sum;
	bandwidth->last_sample = sample;
	bandwidth->is_estimated |= sample != 0;
}

static ALWAYS_INLINE void add_virtual_samples(struct ack_bandwidth *bandwidth, u64 now)
{
	u64 spacing = most(time_constant() / SAMPLES_PER_TIME_CONSTANT, 1);
	u64 elapsed = now - bandwidth->sampled;
	u64 count;

	if (elapsed <= spacing)
		return;
	count = (elapsed - 1) / spacing;
	/* The first one still has the last sample in its mean; the others only decay. */
	add_sample(bandwidth, 0, spacing);
	for (int n = 1; n < 64 && n < (int)least(count, 64); n++)
		add_sample(bandwidth, 0, spacing);
	/* 0.6^63 of any rate is less than the resolution. */
	if (count > 64)
		bandwidth->estimate = 0;
	bandwidth->sampled += count * spacing;
}

#endif
