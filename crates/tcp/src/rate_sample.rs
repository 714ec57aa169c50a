//! Delivery rate estimation: the amount delivered between a segment's transmission and its
//! acknowledgment (draft-ietf-ccwg-bbr section 4.1, formerly
//! draft-cheng-iccrg-delivery-rate-estimation; Linux's tcp_rate.c).
//!
//! Only connections with model-based congestion control have an estimator.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Maximum number of tracked segments. Beyond that (very many tiny segments), some give no sample.
const CAPACITY: usize = 1 << 17;

/// Phase of loss recovery after an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum RecoveryPhase {
    /// No recovery in progress.
    Open,
    /// Fast recovery.
    FastRecovery,
    /// The data marked lost by a timeout is not completely acknowledged.
    AfterTimeout,
}

/// Rate sample of one acknowledgment. Amounts are in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSample {
    /// The current time.
    pub now: Time,
    /// RS.delivered: delivered between the transmission and the acknowledgment of the acknowledged
    /// segment that was sent last.
    pub delivered: u64,
    /// RS.interval: the duration, never zero. `None`: no reliable sample.
    pub interval: Option<Span>,
    /// RS.prior_delivered: total delivered when that segment was sent.
    pub prior_delivered: u64,
    /// The application, not the path, may have limited the sample.
    pub app_limited: bool,
    /// RS.tx_in_flight: in flight just after that segment was sent.
    pub sent_in_flight: u64,
    /// RS.lost: marked lost between the transmission and the acknowledgment of that segment.
    pub lost_since_sent: u64,
    /// RS.newly_acked: newly acknowledged, cumulatively or selectively.
    pub acknowledged: u64,
    /// RS.newly_lost: newly marked lost.
    pub newly_lost: u64,
    /// C.delivered: total delivered.
    pub total_delivered: u64,
    /// C.lost: total marked lost.
    pub total_lost: u64,
    /// In flight before the acknowledgment.
    pub prior_in_flight: u64,
    /// C.inflight: in flight after the acknowledgment.
    pub in_flight: u64,
    /// RS.rtt: the round-trip time that it measured.
    pub rtt: Option<Span>,
    /// It acknowledges a single small segment, so the peer may have delayed it.
    pub delayed: bool,
    /// The congestion window limited the sender in the last round trip.
    pub window_limited: bool,
    /// Earliest time at which the pacer admits the next segment.
    pub next_send: Time,
    /// Phase of loss recovery.
    pub phase: RecoveryPhase,
    /// SACK is in use, so that several losses per round trip can be detected.
    pub selective: bool,
}

/// A segment marked lost. Amounts are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossSample {
    /// The current time.
    pub now: Time,
    /// Its first position.
    pub position: u64,
    /// Its length.
    pub length: u64,
    /// P.tx_in_flight: in flight just after it was sent.
    pub sent_in_flight: u64,
    /// Marked lost since it was sent, including itself.
    pub lost_since_sent: u64,
    /// The rate was application-limited when it was sent.
    pub app_limited: bool,
    /// Total delivered.
    pub total_delivered: u64,
    /// SACK is in use.
    pub selective: bool,
}

impl RateSample {
    /// RS.delivery_rate: the delivery rate, in bytes per second.
    #[must_use]
    pub fn rate(&self) -> Option<u64> {
        const SECOND: u64 = 1_000_000_000;
        let interval = self.interval?.as_nanos();
        if let Some(product) = self.delivered.checked_mul(SECOND) {
            return product.checked_div(interval);
        }
        let rate = u128::from(self.delivered) * u128::from(SECOND);
        let rate = rate.checked_div(u128::from(interval))?;
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// State at the last transmission of a segment (P of draft-ietf-ccwg-bbr section 4.1.2.1.2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Departure {
    at: Time,
    first_sent_at: Time,
    delivered_at: Time,
    delivered: u64,
    lost: u64,
    in_flight: u64,
}

/// A sent segment, in one cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Segment {
    departure: Departure,
    // The position after its last.
    end: u64,
    length: u32,
    // Covered by a SACK block.
    delivered: bool,
    // The rate was application-limited when it was sent.
    app_limited: bool,
}

impl Segment {
    /// Its first position.
    fn start(&self) -> u64 {
        self.end - u64::from(self.length)
    }
}

/// Further inputs for a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleContext {
    pub(crate) now: Time,
    pub(crate) in_flight: u64,
    pub(crate) rtt: Option<Span>,
    pub(crate) window_limited: bool,
    pub(crate) next_send: Time,
    pub(crate) phase: RecoveryPhase,
    pub(crate) selective: bool,
    pub(crate) segment: u32,
}

/// The estimator of one connection (C of draft-ietf-ccwg-bbr section 4.1.2.1.1).
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeliveryRate {
    segments: VecDeque<Segment>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    // Samples are application-limited until more than this is delivered; 0: not limited.
    app_limited: u64,
    lost: u64,
    minimum_rtt: Option<Span>,
    // Length that a short segment counts as; 0: bytes count.
    unit: u32,
    // Delivered according to duplicate acknowledgments, and not yet acknowledged.
    by_duplicates: u64,
    // Since the last sample:
    prior_in_flight: u64,
    delivered_before: u64,
    lost_before: u64,
    newly_delivered: NewlyDelivered,
    // Number of segments removed at the front, and the number of the one after the last SACKed,
    // which usually is the next to be SACKed. Both count from the first segment ever sent.
    forgotten: u64,
    after_sacked: u64,
}

/// Segments newly delivered by one acknowledgment.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct NewlyDelivered {
    // The one that was sent last.
    newest: Option<Segment>,
    records: u32,
}

impl NewlyDelivered {
    /// draft-ietf-ccwg-bbr section 4.1.2.3, UpdateRateSample: the sample uses the segment sent
    /// last. Returns whether it is this one so far.
    #[inline]
    fn consider(&mut self, segment: &Segment) -> bool {
        self.records += 1;
        let at = segment.departure.at;
        let newer = self.newest.is_none_or(|newest| {
            at > newest.departure.at || at == newest.departure.at && segment.end > newest.end
        });
        if newer {
            self.newest = Some(*segment);
        }
        newer
    }
}

impl DeliveryRate {
    /// Counts short segments as having this length: Linux's tp->delivered and tp->lost are packets.
    pub(crate) fn count_segments(&mut self, segment: u32) {
        self.unit = segment;
    }

    /// Records the transmission of the segment from `start` to `end`, which `in_flight` includes.
    /// `idle`: nothing was outstanding before.
    pub(crate) fn on_sent(&mut self, start: u64, end: u64, in_flight: u64, idle: bool, now: Time) {
        // draft-ietf-ccwg-bbr section 4.1.2.2. As in Linux by the outstanding data, not by the
        // estimate of the bytes in flight.
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let departure = Departure {
            at: now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            in_flight,
        };
        let app_limited = self.app_limited > 0;
        if self.segments.back().is_none_or(|last| start >= last.end) {
            if self.segments.len() < CAPACITY {
                self.segments.push_back(Segment {
                    end,
                    length: end.saturating_sub(start) as u32,
                    delivered: false,
                    app_limited,
                    departure,
                });
            }
            return;
        }
        let first = self.first_beyond(start);
        for segment in self.segments.range_mut(first..) {
            if segment.start() >= end {
                break;
            }
            segment.departure = departure;
            segment.app_limited = app_limited;
            // A SACKed segment is only retransmitted if the peer has reneged.
            segment.delivered = false;
        }
    }

    /// Begins the processing of an acknowledgment.
    pub(crate) fn begin(&mut self, in_flight: u64) {
        self.prior_in_flight = in_flight;
        self.delivered_before = self.delivered;
        self.lost_before = self.lost;
        self.newly_delivered = NewlyDelivered::default();
    }

    /// Processes an acknowledgment up to `position`, with `bytes` newly acknowledged.
    // Inlined: a separate call costs 30 more instructions per packet.
    #[inline(always)]
    pub(crate) fn on_acknowledged(&mut self, position: u64, bytes: u64, now: Time) {
        let by_duplicates = self.by_duplicates.min(bytes);
        self.by_duplicates -= by_duplicates;
        let (sacked, besides) = self.remove_acknowledged(position);
        let newly = bytes.saturating_sub(by_duplicates + sacked);
        self.deliver(newly + besides, now);
    }

    /// Processes an acknowledgment where duplicates count as delivered segments; `bytes` are newly
    /// reported.
    pub(crate) fn on_acknowledged_or_duplicate(&mut self, position: u64, bytes: u64, now: Time) {
        self.remove_acknowledged(position);
        self.deliver(bytes, now);
    }

    /// Removes the segments before `position`. Returns how many of their bytes were delivered
    /// before, and by how much the others fall short of whole units.
    #[inline(always)]
    fn remove_acknowledged(&mut self, position: u64) -> (u64, u64) {
        let (mut known, mut short) = (0, 0);
        while let Some(segment) = self.segments.front()
            && segment.end <= position
        {
            if segment.delivered {
                known += u64::from(segment.length);
            } else {
                short += short_by(self.unit, segment.length);
                if self.newly_delivered.consider(segment) {
                    self.first_sent_at = segment.departure.at;
                }
            }
            self.segments.pop_front();
            self.forgotten += 1;
        }
        (known, short)
    }

    /// Processes a SACK block from `start` to `end`; data covered before does not count again.
    pub(crate) fn on_sacked(&mut self, start: u64, end: u64, now: Time) {
        let first = self.first_from(start);
        let unit = self.unit;
        let mut bytes = 0;
        let mut index = first;
        while let Some(segment) = self.segments.get_mut(index)
            && segment.end <= end
        {
            if !segment.delivered {
                segment.delivered = true;
                bytes += u64::from(segment.length) + short_by(unit, segment.length);
                if self.newly_delivered.consider(segment) {
                    self.first_sent_at = segment.departure.at;
                }
            }
            index += 1;
            if segment.end == end {
                break;
            }
        }
        self.after_sacked = self.forgotten + index as u64;
        self.deliver(bytes, now);
    }

    /// Processes a duplicate acknowledgment without SACK: one segment was delivered
    /// (draft-ietf-ccwg-bbr section 4.1.3.5.1).
    pub(crate) fn on_duplicate(&mut self, segment: u32, outstanding: u64, now: Time) {
        let bytes = u64::from(segment).min(outstanding.saturating_sub(self.by_duplicates));
        self.by_duplicates += bytes;
        self.deliver(bytes, now);
    }

    /// Records that the segment at `position`, up to `length` bytes, was marked lost.
    pub(crate) fn on_lost(
        &mut self,
        position: u64,
        length: u64,
        selective: bool,
        now: Time,
    ) -> LossSample {
        let index = self.first_beyond(position);
        let known = self.segments.get(index);
        let length = known.map_or(length, |s| length.min(s.end.saturating_sub(position)));
        let length = length + short_by(self.unit, length as u32);
        self.lost += length;
        LossSample {
            now,
            position,
            length,
            sent_in_flight: known.map_or(0, |s| s.departure.in_flight),
            lost_since_sent: self.lost - known.map_or(self.lost, |s| s.departure.lost),
            app_limited: known.is_none_or(|s| s.app_limited),
            total_delivered: self.delivered,
            selective,
        }
    }

    /// Marks samples as application-limited until the data in flight is delivered
    /// (draft-ietf-ccwg-bbr section 4.1.2.4).
    pub(crate) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// Whether the rate is application-limited.
    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// draft-ietf-ccwg-bbr section 4.1.2.3, GenerateRateSample: the sample of the acknowledgment.
    pub(crate) fn sample(&mut self, context: &SampleContext) -> RateSample {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if context.phase == RecoveryPhase::Open {
            // Duplicates created by the network are no evidence of delivery.
            self.by_duplicates = 0;
        }
        if let Some(rtt) = context.rtt {
            self.minimum_rtt = Some(self.minimum_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let acknowledged = self.delivered - self.delivered_before;
        let mut sample = RateSample {
            now: context.now,
            delivered: 0,
            interval: None,
            prior_delivered: 0,
            app_limited: false,
            sent_in_flight: 0,
            lost_since_sent: 0,
            acknowledged,
            newly_lost: self.lost - self.lost_before,
            total_delivered: self.delivered,
            total_lost: self.lost,
            prior_in_flight: self.prior_in_flight,
            in_flight: context.in_flight,
            rtt: context.rtt,
            delayed: false,
            window_limited: context.window_limited,
            next_send: context.next_send,
            phase: context.phase,
            selective: context.selective,
        };
        let Some(Segment {
            departure,
            app_limited,
            length,
            ..
        }) = self.newly_delivered.newest
        else {
            return sample;
        };
        sample.delivered = self.delivered.saturating_sub(departure.delivered);
        sample.prior_delivered = departure.delivered;
        sample.app_limited = app_limited;
        sample.sent_in_flight = departure.in_flight;
        sample.lost_since_sent = self.lost.saturating_sub(departure.lost);
        let bytes = match self.unit {
            0 => acknowledged,
            _ => u64::from(length),
        };
        // Linux's FLAG_ACK_MAYBE_DELAYED
        sample.delayed = self.newly_delivered.records == 1
            && bytes < u64::from(context.segment)
            && sample.delivered == acknowledged;
        // The longer of the send and the acknowledgment phase, because both transmissions and
        // acknowledgments may be compressed.
        let send_elapsed = departure.at.since(departure.first_sent_at);
        let ack_elapsed = context.now.since(departure.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        // Shorter than a round trip: the first transmission of a retransmitted segment arrived.
        let least = self.minimum_rtt.unwrap_or(Span::from_nanos(1));
        sample.interval = (interval >= least && interval > Span::ZERO).then_some(interval);
        sample
    }

    /// Index of the first segment that begins at or behind a position; only whole segments count.
    fn first_from(&self, position: u64) -> usize {
        if let Some(next) = self.after_sacked.checked_sub(self.forgotten)
            && let Some(segment) = self.segments.get(next as usize)
            && segment.start() == position
        {
            return next as usize;
        }
        let holds = self.first_beyond(position);
        let begins_before = |segment: &Segment| segment.start() < position;
        holds + usize::from(self.segments.get(holds).is_some_and(begins_before))
    }

    /// Index of the first segment that ends beyond a position.
    fn first_beyond(&self, position: u64) -> usize {
        let Some(first) = self.segments.front() else {
            return 0;
        };
        // Most segments are as long as the first; a binary search would access memory at each step.
        let length = u64::from(first.length.max(1));
        let behind = (position + length).saturating_sub(first.end);
        let guess = (behind / length) as usize;
        let ends_beyond = |index| {
            let segment: Option<&Segment> = self.segments.get(index);
            segment.is_none_or(|segment| segment.end > position)
        };
        if guess <= self.segments.len()
            && ends_beyond(guess)
            && (guess == 0 || !ends_beyond(guess - 1))
        {
            return guess;
        }
        self.segments.partition_point(|s| s.end <= position)
    }

    fn deliver(&mut self, bytes: u64, now: Time) {
        if bytes > 0 {
            self.delivered += bytes;
            self.delivered_at = now;
        }
    }
}

/// Additional amount for a segment of this length that counts in multiples of `unit`; 0 if bytes
/// count.
#[inline(always)]
fn short_by(unit: u32, length: u32) -> u64 {
    if unit == 0 || length == unit {
        0
    } else {
        u64::from(length.next_multiple_of(unit) - length)
    }
}

#[cfg(test)]
mod tests;
