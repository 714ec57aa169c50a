//! Delivery rate estimation: what the network delivered between a segment's departure and its
//! acknowledgment (draft-ietf-ccwg-bbr section 4.1, before that
//! draft-cheng-iccrg-delivery-rate-estimation; Linux's tcp_rate.c).
//!
//! Only a rule that models the path asks for it; without one, no connection has an estimator.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// Segments remembered at most. Beyond that (a flood of tiny segments), some give no sample.
const CAPACITY: usize = 1 << 17;

/// Where loss recovery stands after an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum RecoveryPhase {
    /// Nothing is being repaired.
    Open,
    /// Fast recovery.
    FastRecovery,
    /// What a timeout took for lost is not acknowledged yet.
    AfterTimeout,
}

/// What one acknowledgment tells of the path. Amounts are bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateSample {
    /// The time.
    pub now: Time,
    /// Delivered between departure and acknowledgment of the segment that was sent last of those
    /// acknowledged: RS.delivered.
    pub delivered: u64,
    /// The time that took: RS.interval, never zero. `None`: there is no reliable sample.
    pub interval: Option<Span>,
    /// All that had been delivered when that segment left: RS.prior_delivered.
    pub prior_delivered: u64,
    /// The application, not the path, may have been what limited the sample.
    pub app_limited: bool,
    /// In flight just after that segment left: RS.tx_in_flight.
    pub sent_in_flight: u64,
    /// Taken for lost between departure and acknowledgment of that segment: RS.lost.
    pub lost_since_sent: u64,
    /// Newly acknowledged, cumulatively or selectively: RS.newly_acked.
    pub acknowledged: u64,
    /// Newly taken for lost: RS.newly_lost.
    pub newly_lost: u64,
    /// All that was delivered: C.delivered.
    pub total_delivered: u64,
    /// All that was taken for lost: C.lost.
    pub total_lost: u64,
    /// In flight before the acknowledgment.
    pub prior_in_flight: u64,
    /// In flight after it: C.inflight.
    pub in_flight: u64,
    /// The round-trip time that it measured: RS.rtt.
    pub rtt: Option<Span>,
    /// It is of a lone small segment, so that the peer may have delayed it.
    pub delayed: bool,
    /// Was the congestion window what stopped the sender, in the last round trip?
    pub window_limited: bool,
    /// The earliest time at which pacing lets the next segment leave.
    pub next_send: Time,
    /// Where loss recovery stands.
    pub phase: RecoveryPhase,
    /// SACK is in use: more than one loss a round trip shows.
    pub selective: bool,
}

/// A segment that is taken for lost. Amounts are bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossSample {
    /// The time.
    pub now: Time,
    /// Where in the stream it begins.
    pub position: u64,
    /// Its length.
    pub length: u64,
    /// In flight just after it left: P.tx_in_flight.
    pub sent_in_flight: u64,
    /// Taken for lost since it left, with itself.
    pub lost_since_sent: u64,
    /// The application limited the rate when it left.
    pub app_limited: bool,
    /// All that was delivered.
    pub total_delivered: u64,
    /// SACK is in use.
    pub selective: bool,
}

impl RateSample {
    /// The delivery rate, in bytes per second: RS.delivery_rate.
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

/// What was true when a segment last left: section 4.1.2.1.2's P.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Departure {
    at: Time,
    first_sent_at: Time,
    delivered_at: Time,
    delivered: u64,
    lost: u64,
    in_flight: u64,
}

/// One that was sent: a cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Segment {
    departure: Departure,
    // The position after its last.
    end: u64,
    length: u32,
    // A SACK block has covered it.
    delivered: bool,
    // The application limited the rate when it left.
    app_limited: bool,
}

impl Segment {
    /// Where it begins.
    fn start(&self) -> u64 {
        self.end - u64::from(self.length)
    }
}

/// What the connection knows besides, when it asks for a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    pub(crate) now: Time,
    pub(crate) in_flight: u64,
    pub(crate) rtt: Option<Span>,
    pub(crate) window_limited: bool,
    pub(crate) next_send: Time,
    pub(crate) phase: RecoveryPhase,
    pub(crate) selective: bool,
    pub(crate) segment: u32,
}

/// The estimator of one connection: section 4.1.2.1.1's C.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeliveryRate {
    segments: VecDeque<Segment>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    // The sample is limited by the application until more than this is delivered; 0: it isn't.
    app_limited: u64,
    lost: u64,
    minimum_rtt: Option<Span>,
    // What a segment counts for, however short it is; 0: bytes count.
    unit: u32,
    // Delivered by the evidence of duplicate acknowledgments, and not yet acknowledged.
    by_duplicates: u64,
    // Since the last sample:
    prior_in_flight: u64,
    delivered_before: u64,
    lost_before: u64,
    arrived: Arrived,
    // How many segments have left the front, and which comes after the one that was SACKed last, counted from
    // the very first: mostly that is the next to be.
    forgotten: u64,
    after_sacked: u64,
}

/// What one acknowledgment tells of.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Arrived {
    // That of them which left last.
    newest: Option<Segment>,
    records: u32,
}

impl Arrived {
    /// Section 4.1.2.3's UpdateRateSample: the segment that left last is the one to measure by. True: it is this
    /// one, so far.
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
    /// A short segment counts for one of so many bytes: Linux's tp->delivered and tp->lost are packets.
    pub(crate) fn count_segments(&mut self, segment: u32) {
        self.unit = segment;
    }

    /// The segment from `start` to `end` has left; `in_flight` counts it. `idle`: nothing was
    /// outstanding before.
    pub(crate) fn on_sent(&mut self, start: u64, end: u64, in_flight: u64, idle: bool, now: Time) {
        // Section 4.1.2.2. As in Linux by what is outstanding, not by what is thought to be in
        // flight.
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
            // One that was SACKed is sent again if the peer has taken that back.
            segment.delivered = false;
        }
    }

    /// An acknowledgment is about to be taken in.
    pub(crate) fn begin(&mut self, in_flight: u64) {
        self.prior_in_flight = in_flight;
        self.delivered_before = self.delivered;
        self.lost_before = self.lost;
        self.arrived = Arrived::default();
    }

    /// Everything up to `position` is acknowledged, `bytes` of it newly.
    // As a function of its own it costs a packet 30 instructions more.
    #[inline(always)]
    pub(crate) fn on_acknowledged(&mut self, position: u64, bytes: u64, now: Time) {
        let by_duplicates = self.by_duplicates.min(bytes);
        self.by_duplicates -= by_duplicates;
        let (sacked, besides) = self.forget(position);
        let newly = bytes.saturating_sub(by_duplicates + sacked);
        self.deliver(newly + besides, now);
    }

    /// The same, where duplicates count as segments that have arrived: `bytes` are those that it newly tells of.
    pub(crate) fn on_counted(&mut self, position: u64, bytes: u64, now: Time) {
        self.forget(position);
        self.deliver(bytes, now);
    }

    /// What lies before `position` has arrived. Returns how many bytes of it were known to have, and what the others are short
    /// of whole units.
    #[inline(always)]
    fn forget(&mut self, position: u64) -> (u64, u64) {
        let (mut known, mut short) = (0, 0);
        while let Some(segment) = self.segments.front()
            && segment.end <= position
        {
            if segment.delivered {
                known += u64::from(segment.length);
            } else {
                short += short_by(self.unit, segment.length);
                if self.arrived.consider(segment) {
                    self.first_sent_at = segment.departure.at;
                }
            }
            self.segments.pop_front();
            self.forgotten += 1;
        }
        (known, short)
    }

    /// A SACK block covers `start` to `end`; what it covered before does not count again.
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
                if self.arrived.consider(segment) {
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

    /// A duplicate acknowledgment without SACK: some segment was delivered (section 4.1.3.5.1).
    pub(crate) fn on_duplicate(&mut self, segment: u32, outstanding: u64, now: Time) {
        let bytes = u64::from(segment).min(outstanding.saturating_sub(self.by_duplicates));
        self.by_duplicates += bytes;
        self.deliver(bytes, now);
    }

    /// The segment at `position` is taken for lost: up to `length` bytes.
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

    /// There was nothing to send, and nothing but the application to blame: samples are marked until
    /// what is in flight is delivered (section 4.1.2.4).
    pub(crate) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// Is the application what limits the rate?
    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// What the acknowledgment told: section 4.1.2.3's GenerateRateSample.
    pub(crate) fn sample(&mut self, around: &Surroundings) -> RateSample {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if around.phase == RecoveryPhase::Open {
            // Duplicates that the network made tell of nothing.
            self.by_duplicates = 0;
        }
        if let Some(rtt) = around.rtt {
            self.minimum_rtt = Some(self.minimum_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let acknowledged = self.delivered - self.delivered_before;
        let mut sample = RateSample {
            now: around.now,
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
            in_flight: around.in_flight,
            rtt: around.rtt,
            delayed: false,
            window_limited: around.window_limited,
            next_send: around.next_send,
            phase: around.phase,
            selective: around.selective,
        };
        let Some(Segment {
            departure,
            app_limited,
            length,
            ..
        }) = self.arrived.newest
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
        sample.delayed = self.arrived.records == 1
            && bytes < u64::from(around.segment)
            && sample.delivered == acknowledged;
        // The longer of the two phases: acknowledgments may come compressed, and departures, too.
        let send_elapsed = departure.at.since(departure.first_sent_at);
        let ack_elapsed = around.now.since(departure.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        // Shorter than a round trip: the first transmission of something sent twice has arrived.
        let least = self.minimum_rtt.unwrap_or(Span::from_nanos(1));
        sample.interval = (interval >= least && interval > Span::ZERO).then_some(interval);
        sample
    }

    /// The first segment that begins at a position or behind it: only whole ones count.
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

    /// The first segment that ends beyond a position.
    fn first_beyond(&self, position: u64) -> usize {
        let Some(first) = self.segments.front() else {
            return 0;
        };
        // Most segments are as long as the first; a search would wait for memory at each of its steps.
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

/// What a segment of this length counts for beside its bytes, where one counts for `unit`; 0: bytes count.
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
