//! What passes a drop-tail queue at which probes look now and then, when it is known before its time.
//!
//! A direction in a chain is offered packets that come to it later, so that what its ring holds tells what waits then,
//! and not now. So of each packet it is noted when it is offered and when its transmission begins: what waits at any
//! time is what has been offered by then and has not begun. The most that has waited since the last look is known
//! from the same, so that nobody need look at each change.

use std::collections::VecDeque;

use bentpipe_link::Fifo;
use bentpipe_types::{Bytes, Span, Time};

use super::DirectionSlot;

/// Who looks at a direction, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attention {
    /// Nobody, or probes now and then that need nothing noted.
    Nobody,
    /// Probes, now and then: what [passes](Passing) is noted.
    NowAndThen,
    /// A probe or a tap, whenever something happens.
    Always,
}

/// A packet that was offered and not dropped.
#[derive(Debug)]
struct Offered {
    at: Time,
    /// When its transmission begins, and how long that takes.
    start: Time,
    transmission: Span,
    /// Bytes of all that were offered before it.
    before: u64,
    /// Packets that wait when it has come, itself included.
    waiting: u64,
}

impl Offered {
    fn departure(&self) -> Time {
        self.start + self.transmission
    }
}

/// What passes: those packets that may have to do with what is asked for next, in order.
#[derive(Debug, Default)]
pub(super) struct Passing {
    offered: VecDeque<Offered>,
    /// How many of these had begun when the last was offered.
    begun: usize,
    /// How many of these the most since the last look knows of.
    looked_at: usize,
    /// The most that has waited since the last look, as far as it is known.
    most: u64,
    /// Bytes offered in all.
    bytes: u64,
    /// How long all that are gone from here have been transmitted.
    busy: Span,
}

impl Passing {
    /// A packet is offered `at` this time, and will be transmitted; nobody asks any more what was before `now`.
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

    /// Those that wait, by their places.
    fn waits_at(&self, now: Time) -> std::ops::Range<usize> {
        let begun = self.offered.partition_point(|each| each.start <= now);
        begun
            ..self
                .offered
                .partition_point(|each| each.at <= now)
                .max(begun)
    }

    /// Packets that wait now.
    pub(super) fn waiting_packets(&self, now: Time) -> u64 {
        self.waits_at(now).len() as u64
    }

    /// Bytes that wait now.
    pub(super) fn waiting_bytes(&self, now: Time) -> u64 {
        let waits = self.waits_at(now);
        let before = |place| {
            self.offered
                .get(place)
                .map_or(self.bytes, |each| each.before)
        };
        before(waits.end) - before(waits.start)
    }

    /// How long the transmitter has worked by now.
    pub(super) fn busy(&mut self, now: Time) -> Span {
        self.forget_before(now);
        let under_way = self.offered.front();
        self.busy + under_way.map_or(Span::ZERO, |first| now.since(first.start))
    }

    /// The most packets that have waited since this was last asked; what waits now begins the next time.
    pub(super) fn take_most(&mut self, now: Time) -> u64 {
        self.forget_before(now);
        let come = self.offered.partition_point(|each| each.at <= now);
        let new = self.offered.range(self.looked_at.min(come)..come);
        let most = new.fold(self.most, |most, each| most.max(each.waiting));
        self.looked_at = come;
        self.most = self.waiting_packets(now);
        most
    }
}

impl DirectionSlot {
    /// A probe or a tap looks whenever something happens.
    #[inline(always)]
    pub(super) fn is_attended(&self) -> bool {
        self.attention == Attention::Always
    }

    /// From now on it is noted what passes.
    pub(super) fn begin_noting(&mut self) {
        if self.attention == Attention::Nobody {
            self.attention = Attention::NowAndThen;
            self.seldom.passing = Some(Box::default());
        }
    }
}
