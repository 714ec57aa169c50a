//! Queue history: backlog and transmitter work of a chained drop-tail queue at interval probes.
//!
//! A direction in a chain contains packets that reach it later, so its ring does not show the
//! current backlog. For each packet, the times of its offer and of the start of its transmission
//! are recorded: the backlog at any time is what was offered and has not begun. The maximum since
//! the last sample follows from the same records, without observing each change.

use std::collections::VecDeque;

use bentpipe_link::Fifo;
use bentpipe_types::{Bytes, Span, Time};

use crate::probe::LinkQuantity;

/// A packet that was offered and not dropped.
#[derive(Debug)]
struct Offered {
    at: Time,
    /// Start of its transmission, and its duration.
    start: Time,
    transmission: Span,
    /// Bytes of all packets offered before it.
    before: u64,
    /// Backlog in packets after its arrival, itself included.
    waiting: u64,
}

impl Offered {
    fn departure(&self) -> Time {
        self.start + self.transmission
    }
}

/// Recorded packets in order, as far as later questions can concern them.
#[derive(Debug, Default)]
pub(super) struct QueueHistory {
    offered: VecDeque<Offered>,
    /// Number of these whose transmission had begun when the last one was offered.
    begun: usize,
    /// Number of these that are included in `most`.
    looked_at: usize,
    /// Maximum backlog since the last sample, as far as computed.
    most: u64,
    /// Total bytes offered.
    bytes: u64,
    /// Transmission time of all packets that are no longer recorded.
    busy: Span,
}

impl QueueHistory {
    /// Records a packet that is offered `at` this time and will be transmitted. Times before `now`
    /// are no longer needed.
    pub(super) fn note(&mut self, now: Time, at: Time, fifo: &Fifo, length: Bytes) {
        if self.offered.len() == self.offered.capacity() {
            self.forget_before(now);
        }
        let start = fifo.last_start();
        let is_begun = |next: &Offered| next.start <= at;
        while self.offered.get(self.begun).is_some_and(is_begun) {
            self.begun += 1;
        }
        let before_it = (self.offered.len() - self.begun) as u64;
        self.offered.push_back(Offered {
            at,
            start,
            transmission: fifo.last_departure().since(start),
            before: self.bytes,
            waiting: before_it + u64::from(start > at),
        });
        self.bytes += length.get();
    }

    /// Returns the present value of a quantity, if it follows from the history. For utilization:
    /// the seconds for which the transmitter has worked.
    pub(super) fn read(&mut self, quantity: LinkQuantity, now: Time) -> Option<f64> {
        match quantity {
            LinkQuantity::Queue => Some(self.waiting_packets(now) as f64),
            LinkQuantity::QueueBytes => Some(self.waiting_bytes(now) as f64),
            LinkQuantity::QueueMax => Some(self.take_most(now) as f64),
            LinkQuantity::Utilization => Some(self.busy(now).as_secs_f64()),
            _ => None,
        }
    }

    #[inline(never)]
    fn forget_before(&mut self, now: Time) {
        while let Some(first) = self.offered.front()
            && first.departure() <= now
        {
            self.busy += first.transmission;
            if self.looked_at == 0 {
                self.most = self.most.max(first.waiting);
            }
            self.looked_at = self.looked_at.saturating_sub(1);
            self.begun = self.begun.saturating_sub(1);
            self.offered.pop_front();
        }
    }

    /// Returns the range of packets that are queued now.
    fn waits_at(&self, now: Time) -> std::ops::Range<usize> {
        let begun = self.offered.partition_point(|each| each.start <= now);
        begun
            ..self
                .offered
                .partition_point(|each| each.at <= now)
                .max(begun)
    }

    /// Returns the backlog in packets.
    fn waiting_packets(&self, now: Time) -> u64 {
        self.waits_at(now).len() as u64
    }

    /// Returns the backlog in bytes.
    fn waiting_bytes(&self, now: Time) -> u64 {
        let waits = self.waits_at(now);
        let before = |place| {
            self.offered
                .get(place)
                .map_or(self.bytes, |each| each.before)
        };
        before(waits.end) - before(waits.start)
    }

    /// Returns for how long the transmitter has worked by now.
    fn busy(&mut self, now: Time) -> Span {
        self.forget_before(now);
        let under_way = self.offered.front();
        self.busy + under_way.map_or(Span::ZERO, |first| now.since(first.start))
    }

    /// Returns the maximum backlog since the previous call. The current backlog begins the next
    /// interval.
    fn take_most(&mut self, now: Time) -> u64 {
        self.forget_before(now);
        let come = self.offered.partition_point(|each| each.at <= now);
        let new = self.offered.range(self.looked_at.min(come)..come);
        let most = new.fold(self.most, |most, each| most.max(each.waiting));
        self.looked_at = come;
        self.most = self.waiting_packets(now);
        most
    }
}
