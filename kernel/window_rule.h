/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Interface between window rules and Linux's TCP, and the arithmetic that the rules share.
 *
 * A rule is compiled for BPF, where it runs in the kernel, or for the host, where host/steps.c
 * calls it. Structures have only the fields that rules use: with preserve_access_index, libbpf
 * looks up their offsets in the running kernel (CO-RE), so that one object file serves all kernels.
 */
#ifndef BENTPIPE_WINDOW_RULE_H
#define BENTPIPE_WINDOW_RULE_H

typedef signed int s32;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ALWAYS_INLINE inline __attribute__((always_inline))

#ifdef __bpf__
#define KERNEL_TYPE __attribute__((preserve_access_index))
#else
#define KERNEL_TYPE
#endif

/* Congestion states of a connection, in set_state: enum tcp_ca_state of the kernel. */
enum {
	STATE_OPEN = 0,
	STATE_DISORDER = 1,
	STATE_CWR = 2,
	STATE_RECOVERY = 3,
	STATE_LOSS = 4,
};

/* Events, in cwnd_event: enum tcp_ca_event of the kernel. */
enum {
	/* The first segment is sent after an idle period. */
	EVENT_TX_START = 0,
	/* An idle period has reduced the window. */
	EVENT_CWND_RESTART = 1,
	/* Recovery, or the reaction to ECN, has ended; the window is the threshold. */
	EVENT_COMPLETE_CWR = 2,
	/* The retransmission timer expired; ssthresh has just been called. */
	EVENT_LOSS = 3,
};

/* Threshold before the first congestion event: TCP_INFINITE_SSTHRESH. */
#define INFINITE_THRESHOLD 0x7fffffffu

struct sock {
	unsigned long sk_pacing_rate;
} KERNEL_TYPE;

struct inet_connection_sock {
	/* Private state of the rule. */
	u64 icsk_ca_priv[13];
} KERNEL_TYPE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	/* Segments that fit into the window, and the threshold of slow start in segments. */
	u32 snd_cwnd;
	u32 snd_ssthresh;
	/* Window before the last congestion event. */
	u32 prior_cwnd;
	/* Largest number of segments in flight in this round trip. */
	u32 max_packets_out;
	/* Segments known to have reached the receiver. */
	u32 delivered;
	/* Payload of a full segment. */
	u32 mss_cache;
	/* Smoothed round-trip time in eighths of a microsecond. */
	u32 srtt_us;
	/* Time of the last segment received or sent, in microseconds. */
	u64 tcp_mstamp;
	/* Whether the window, not the application, limits the sender. */
	u8 is_cwnd_limited : 1;
} KERNEL_TYPE;

/* An acknowledgment, in pkts_acked. */
struct ack_sample {
	u32 pkts_acked;
	/* Round-trip time in microseconds; negative if it was not measured. */
	s32 rtt_us;
	u32 in_flight;
} KERNEL_TYPE;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
} KERNEL_TYPE;

/*
 * HOOK1(u32, hybla_ssthresh) { ... } defines a callback with the parameter sk, HOOK2 and HOOK3 one
 * with more parameters. RULE(hybla, .init = (void *)hybla_init, ...) registers the callbacks.
 */
#ifdef __bpf__

#define SECTION(name) __attribute__((section(name), used))
#define HOOK1(type, name)                                                                          \
	static ALWAYS_INLINE type name##_body(struct sock *sk);                                    \
	SECTION("struct_ops/" #name) type name(u64 *arguments)                                     \
	{                                                                                          \
		return name##_body((struct sock *)arguments[0]);                                   \
	}                                                                                          \
	static ALWAYS_INLINE type name##_body(struct sock *sk)
#define HOOK2(type, name, type2, second)                                                           \
	static ALWAYS_INLINE type name##_body(struct sock *sk, type2 second);                      \
	SECTION("struct_ops/" #name) type name(u64 *arguments)                                     \
	{                                                                                          \
		return name##_body((struct sock *)arguments[0], (type2)arguments[1]);              \
	}                                                                                          \
	static ALWAYS_INLINE type name##_body(struct sock *sk, type2 second)
#define HOOK3(type, name, type2, second, type3, third)                                             \
	static ALWAYS_INLINE type name##_body(struct sock *sk, type2 second, type3 third);         \
	SECTION("struct_ops/" #name) type name(u64 *arguments)                                     \
	{                                                                                          \
		return name##_body((struct sock *)arguments[0], (type2)arguments[1],               \
				   (type3)arguments[2]);                                           \
	}                                                                                          \
	static ALWAYS_INLINE type name##_body(struct sock *sk, type2 second, type3 third)

#define RULE(rule, ...)                                                                            \
	SECTION("license") char bentpipe_license[] = "Dual MIT/GPL";                                        \
	SECTION(".struct_ops") struct tcp_congestion_ops rule = {.name = #rule, __VA_ARGS__}

#else

#define SECTION(name)
#define HOOK1(type, name) type name(struct sock *sk)
#define HOOK2(type, name, type2, second) type name(struct sock *sk, type2 second)
#define HOOK3(type, name, type2, second, type3, third)                                             \
	type name(struct sock *sk, type2 second, type3 third)
#define RULE(rule, ...) struct tcp_congestion_ops bentpipe_rule = {.name = #rule, __VA_ARGS__}

#endif

/* Settings, which the loader writes before the rule runs. Zero stands for the default. */
struct settings {
	/* RTT0 of Hybla, in microseconds. */
	u64 reference_rtt_us;
	/* Capacity of the channel for Enhanced Hybla, in bytes of payload per second. */
	u64 channel_capacity;
	/* Time constant of the filter of Westwood of 2001, in microseconds. */
	u64 time_constant_us;
	/* Slow-start threshold of a new connection, in segments; without it, the kernel's. */
	u64 initial_threshold;
};

#ifdef __bpf__
SECTION(".rodata.settings") const volatile struct settings settings;
#else
extern struct settings settings;
#endif

static ALWAYS_INLINE struct tcp_sock *tcp_of(struct sock *sk)
{
	/* The verifier takes sk for the tcp_sock that it is. */
	return (struct tcp_sock *)sk;
}

/* Returns the rule's private state, of at most 104 bytes. It is zero before init. */
static ALWAYS_INLINE void *state_of(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static ALWAYS_INLINE u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static ALWAYS_INLINE u64 most(u64 a, u64 b)
{
	return a > b ? a : b;
}

static ALWAYS_INLINE int in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* tp->is_cwnd_limited. A bit has no address: its place is a relocation of its own. */
static ALWAYS_INLINE int window_limited(const struct tcp_sock *tp)
{
#ifdef __bpf__
	u64 bits = *((const u8 *)tp +
		     __builtin_preserve_field_info(tp->is_cwnd_limited, 0 /* byte offset */));

	bits <<= __builtin_preserve_field_info(tp->is_cwnd_limited, 4 /* shift left */);
	return bits >> __builtin_preserve_field_info(tp->is_cwnd_limited, 5 /* shift right */) != 0;
#else
	return tp->is_cwnd_limited;
#endif
}

/* Sets the threshold of a new connection. Called by init. */
static ALWAYS_INLINE void set_initial_threshold(struct tcp_sock *tp)
{
	if (settings.initial_threshold && tp->snd_ssthresh >= INFINITE_THRESHOLD)
		tp->snd_ssthresh = most(settings.initial_threshold, 2);
}

/* Whether an acknowledgment may grow the window: tcp_is_cwnd_limited of the kernel. */
static ALWAYS_INLINE int may_grow(const struct tcp_sock *tp)
{
	return window_limited(tp) ||
	       (in_slow_start(tp) && tp->snd_cwnd < 2 * (u64)tp->max_packets_out);
}

/* Grows in slow start. Returns the segments left for congestion avoidance. */
static ALWAYS_INLINE u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 grown = least(acked, tp->snd_ssthresh - tp->snd_cwnd);

	tp->snd_cwnd += grown;
	return acked - grown;
}

/*
 * Grows in slow start, and by a segment per round trip in congestion avoidance (RFC 5681). `credit`
 * has the acknowledged segments that count towards the next segment of growth.
 */
static ALWAYS_INLINE void grow_as_reno(u32 *credit, struct tcp_sock *tp, u32 acked)
{
	if (!may_grow(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (!acked)
		return;
	*credit += acked;
	for (int n = 0; n < 64 && *credit >= tp->snd_cwnd; n++) {
		*credit -= tp->snd_cwnd;
		tp->snd_cwnd++;
	}
}

/* undo_cwnd of most rules: the last congestion event was spurious. Returns the window before it. */
static ALWAYS_INLINE u32 larger_window(const struct tcp_sock *tp)
{
	return most(tp->snd_cwnd, tp->prior_cwnd);
}

#endif
