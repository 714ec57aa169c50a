//! Pacing: segments are sent no faster than a rate.
//!
//! `docs/pacing.md` describes which rules pace, and Linux's behaviour. A connection that does not
//! pace has the cost of one predictable branch per call of `output`.

use bentpipe_types::{BitRate, Bytes, Span, Time};
use serde::{Deserialize, Serialize};

use crate::congestion_control::Window;

/// Whether a connection paces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PacingKind {
    /// As the window rule requests: BBR does, the others do not. Linux without the fq queue
    /// discipline.
    #[default]
    AsRule,
    /// Never.
    Off,
    /// Always. If the rule gives no rate, at one computed from the window, as in Linux.
    On,
    /// Always, and never faster than this: Linux's SO_MAX_PACING_RATE.
    AtMost(BitRate),
}

/// Number of segments at the start of a connection that are not paced (tcp_update_skb_after_send in
/// Linux).
const UNPACED_SEGMENTS: u64 = 10;

/// Maximum duration of a burst at the pacing rate: 0.98 ms in Linux (sk_pacing_shift is 10), 1 ms
/// in draft-ietf-ccwg-bbr section 5.6.3.
const BURST_DURATION: Span = Span::from_millis(1);

/// Maximum size of a burst: 64 KiB, the limit of segmentation offload.
const MAXIMUM_BURST: u64 = 64 << 10;

/// Rate in bit/s below which a burst may be one segment; above, it has at least two. Linux's
/// bbr_min_tso_rate, applied to every rule; draft-ietf-ccwg-bbr section 5.6.3 has two at any rate.
const SINGLE_SEGMENT_RATE: u64 = 1_200_000;

/// Minimum pacing rate: one segment in this time. A rate measured on a failing path may be
/// arbitrarily low; the window then limits the sender, not the pacer.
const MAXIMUM_SEGMENT_TIME: Span = Span::from_secs(1);

/// Linux's tcp_pacing_ss_ratio and tcp_pacing_ca_ratio, in percent.
const SLOW_START_RATIO: u64 = 200;
const AVOIDANCE_RATIO: u64 = 120;

/// Bytes that may be sent in one burst at this rate: a whole number of segments.
pub(crate) fn burst(rate: BitRate, segment: u32) -> u64 {
    let segment = u64::from(segment.max(1));
    let bytes = rate.bytes_in(BURST_DURATION).get().min(MAXIMUM_BURST);
    (bytes / segment).max(shortest_burst(rate)) * segment
}

/// Minimum number of segments per burst.
pub(crate) fn shortest_burst(rate: BitRate) -> u64 {
    if rate.bits_per_second() < SINGLE_SEGMENT_RATE {
        1
    } else {
        2
    }
}

/// Bytes that may be sent unpaced, after `sent` segments.
pub(crate) fn unpaced(sent: u64, segment: u32) -> u64 {
    UNPACED_SEGMENTS.saturating_sub(sent) * u64::from(segment)
}

/// Pacing rate for a rule that gives none (tcp_update_pacing_rate in Linux). In slow start twice
/// the current rate, so that pacing does not slow the growth; else a fifth above it, so that the
/// window is the limit.
pub(crate) fn rate_of_window(window: &Window, outstanding: u64, rtt: Span) -> Option<BitRate> {
    let bytes = u128::from(window.congestion_window.max(outstanding));
    let bits = bytes * u128::from(8 * ratio(window) * 10_000_000);
    let rate = bits.checked_div(u128::from(rtt.as_nanos()))?;
    BitRate::new(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
}

/// Whether that rate is below `bytes_per_second`, computed without a division and as far as 64 bits
/// allow.
#[inline]
pub(crate) fn is_window_slower(
    window: &Window,
    outstanding: u64,
    rtt: Span,
    bytes_per_second: u64,
) -> bool {
    let bytes = window.congestion_window.max(outstanding);
    let in_a_second = bytes.saturating_mul(ratio(window) * 10_000_000);
    in_a_second < bytes_per_second.saturating_mul(rtt.as_nanos())
}

/// Pacing rate in percent of one window per round trip.
#[inline]
fn ratio(window: &Window) -> u64 {
    // Linux: cwnd < ssthresh / 2.
    if window.congestion_window < window.slow_start_threshold / 2 {
        SLOW_START_RATIO
    } else {
        AVOIDANCE_RATIO
    }
}

/// Determines when the next segment may be sent.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Pacer {
    most: Option<BitRate>,
    next_send: Time,
    on: bool,
    // See `SendingQuirks::paces_tenth_segment`.
    counts_tenth: bool,
}

impl Pacer {
    /// Creates a pacer. `wanted`: the window rule requests pacing. `counts_tenth`: see
    /// [`LinuxQuirks`](crate::LinuxQuirks).
    pub(crate) const fn new(kind: PacingKind, wanted: bool, counts_tenth: bool) -> Self {
        Self {
            counts_tenth,
            on: match kind {
                PacingKind::AsRule => wanted,
                PacingKind::Off => false,
                PacingKind::On | PacingKind::AtMost(_) => true,
            },
            most: match kind {
                PacingKind::AtMost(rate) => Some(rate),
                _ => None,
            },
            next_send: Time::ZERO,
        }
    }

    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.on
    }

    /// Earliest time at which the next segment may be sent.
    pub(crate) const fn next_send(&self) -> Time {
        self.next_send
    }

    /// The pacing rate, if the rule or the window requests `wanted`.
    #[inline]
    pub(crate) fn limit(&self, wanted: Option<BitRate>, segment: u32) -> Option<BitRate> {
        let slowest =
            MAXIMUM_SEGMENT_TIME.as_nanos() / 1_000_000_000 * 8 * u64::from(segment.max(1));
        let rate = match (wanted, self.most) {
            (Some(wanted), Some(most)) => Some(wanted.min(most)),
            (wanted, most) => wanted.or(most),
        };
        rate.and_then(|rate| BitRate::new(rate.bits_per_second().max(slowest)))
    }

    /// Whether nothing may be sent before `next_send`, at any rate. `sent`: segments sent before.
    #[inline]
    pub(crate) fn holds_back(&self, sent: u64, now: Time) -> bool {
        self.on && now < self.next_send && sent >= UNPACED_SEGMENTS
    }

    /// Bytes that may be sent now; 0: none before `next_send`. `sent`: segments sent before.
    pub(crate) fn allowance(&self, rate: BitRate, segment: u32, sent: u64, now: Time) -> u64 {
        if sent < UNPACED_SEGMENTS {
            return self.unpaced_allowance(sent, rate, segment);
        }
        if now < self.next_send {
            0
        } else {
            burst(rate, segment)
        }
    }

    /// Bytes that may be sent unpaced at the start of a connection.
    #[cold]
    fn unpaced_allowance(&self, sent: u64, rate: BitRate, segment: u32) -> u64 {
        let free = unpaced(sent, segment);
        if self.counts_tenth {
            // The tenth segment is sent with the rest of its buffer.
            free.next_multiple_of(burst(rate, segment))
        } else {
            free
        }
    }

    /// Records a transmission at this rate.
    #[inline]
    pub(crate) fn on_sent(&mut self, left: &SentBurst, rate: BitRate, segment: u32, now: Time) {
        let paced = if left.before < UNPACED_SEGMENTS {
            self.paced_part_of_first(left, rate, segment, now)
        } else {
            Some(left.bytes)
        };
        let Some(bytes) = paced else {
            return;
        };
        let length = rate.transmission_time(Bytes::new(bytes));
        // tcp_update_skb_after_send in Linux: a late sender catches up by at most half of what it
        // sends.
        let late = now.since(self.next_send).min(length / 2);
        self.next_send = now.max(self.next_send) + length.saturating_sub(late);
    }

    /// Bytes of the first segments that count for pacing; `None`: no effect.
    #[cold]
    fn paced_part_of_first(
        &mut self,
        left: &SentBurst,
        rate: BitRate,
        segment: u32,
        now: Time,
    ) -> Option<u64> {
        if !self.counts_tenth {
            return None;
        }
        // tcp_update_skb_after_send: the buffer with the tenth segment is paced.
        if left.after < UNPACED_SEGMENTS {
            return Some(0);
        }
        let buffer = burst(rate, segment);
        if left.bytes > buffer {
            // The preceding buffers were just sent, so the sender is not late.
            self.next_send = now.max(self.next_send);
        }
        Some(left.bytes.min(buffer))
    }
}

/// A transmission of one or more segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentBurst {
    /// Payload bytes.
    pub(crate) bytes: u64,
    /// Number of segments sent before it.
    pub(crate) before: u64,
    /// Number of segments sent after it.
    pub(crate) after: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits_per_second: u64) -> BitRate {
        BitRate::new(bits_per_second).unwrap()
    }

    fn at(microseconds: u64) -> Time {
        Time::ZERO + Span::from_micros(microseconds)
    }

    /// Sends `segments` segments of 1000 bytes.
    fn send(pacer: &mut Pacer, segments: u64, pace: BitRate, before: u64, now: Time) {
        let left = SentBurst {
            bytes: 1000 * segments,
            before,
            after: before + segments,
        };
        pacer.on_sent(&left, pace, 1000, now);
    }

    #[test]
    fn a_burst_is_a_millisecond_in_whole_segments() {
        assert_eq!(burst(rate(1_000_000), 1000), 1000);
        assert_eq!(burst(rate(2_000_000), 1000), 2000);
        assert_eq!(burst(rate(100_000_000), 1000), 12_000);
        assert_eq!(burst(rate(100_000_000_000), 1000), 65_000);
    }

    #[test]
    fn rate_of_a_window_as_in_linux() {
        let rtt = Span::from_millis(100);
        let slow_start = Window::new(1000, 10_000, u64::MAX);
        assert_eq!(rate_of_window(&slow_start, 0, rtt), Some(rate(1_600_000)));
        let avoidance = Window::new(1000, 10_000, 10_000);
        assert_eq!(rate_of_window(&avoidance, 0, rtt), Some(rate(960_000)));
        assert_eq!(rate_of_window(&avoidance, 0, Span::ZERO), None);
    }

    #[test]
    fn ten_segments_are_unpaced_and_then_bursts_follow() {
        let mut pacer = Pacer::new(PacingKind::On, false, false);
        let pace = rate(8_000_000);
        assert_eq!(pacer.allowance(pace, 1000, 0, at(0)), 10_000);
        send(&mut pacer, 10, pace, 0, at(0));
        assert_eq!(pacer.allowance(pace, 1000, 10, at(0)), 2000);
        send(&mut pacer, 2, pace, 10, at(0));
        assert_eq!(pacer.next_send(), at(2000));
        assert_eq!(pacer.allowance(pace, 1000, 12, at(1999)), 0);
        assert_eq!(pacer.allowance(pace, 1000, 12, at(2000)), 2000);
    }

    #[test]
    fn linux_paces_the_buffer_with_the_tenth_segment() {
        let mut pacer = Pacer::new(PacingKind::On, false, true);
        let pace = rate(8_000_000);
        // A first flight of three segments, and one round trip later as much as allowed.
        send(&mut pacer, 3, pace, 0, at(0));
        assert_eq!(pacer.next_send(), at(0));
        assert_eq!(pacer.allowance(pace, 1000, 3, at(600_000)), 8000);
        send(&mut pacer, 8, pace, 3, at(600_000));
        assert_eq!(pacer.next_send(), at(602_000));
        assert_eq!(pacer.allowance(pace, 1000, 11, at(600_000)), 0);
        // The same buffer after a wait is shortened by half.
        let mut pacer = Pacer::new(PacingKind::On, false, true);
        send(&mut pacer, 8, pace, 0, at(0));
        send(&mut pacer, 2, pace, 8, at(600_000));
        assert_eq!(pacer.next_send(), at(601_000));
    }

    #[test]
    fn a_late_sender_catches_up_by_at_most_half() {
        let mut pacer = Pacer::new(PacingKind::On, false, false);
        let pace = rate(8_000_000);
        send(&mut pacer, 2, pace, 10, at(0));
        send(&mut pacer, 2, pace, 12, at(2500));
        assert_eq!(pacer.next_send(), at(4000));
        send(&mut pacer, 2, pace, 14, at(1_000_000));
        assert_eq!(pacer.next_send(), at(1_001_000));
    }

    #[test]
    fn pacing_rate_has_a_minimum() {
        let pacer = Pacer::new(PacingKind::AtMost(rate(1)), false, false);
        let pace = pacer.limit(Some(rate(1_000_000)), 1000).unwrap();
        assert_eq!(
            pace.transmission_time(Bytes::new(burst(pace, 1000))),
            Span::from_secs(1)
        );
        assert_eq!(pacer.limit(None, 1000), Some(pace));
        let free = Pacer::new(PacingKind::On, false, false);
        assert_eq!(free.limit(None, 1000), None);
    }
}
