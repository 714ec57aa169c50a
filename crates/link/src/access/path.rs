//! A terminal's path, which may change or fail.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};

use super::capacity::Capacity;
use crate::changes::{OutageGroup, Outages, Rates, Sending, grouped, held, passes};

/// Effects of a path on bursts and requests.
#[derive(Debug, Default)]
pub(crate) struct Path {
    rates: Option<Rates>,
    outages: Vec<OutageGroup>,
    /// Volumes in lost requests, with the frame whose plan would have included each.
    in_vain: VecDeque<(u64, Capacity)>,
    lost: u64,
}

/// Arrival of a request at the hub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    InTime,
    HeldUntil(Time),
    Never,
}

impl Path {
    /// Creates a path with these rates, if they change, and outages.
    pub(crate) fn new(rates: Rates, outages: &[Outages]) -> Self {
        Self {
            rates: rates.change().then_some(rates),
            outages: grouped(outages),
            ..Self::default()
        }
    }

    /// Returns its rates, if they change.
    pub(super) fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// Whether it has no outages.
    pub(super) fn stays(&self) -> bool {
        self.outages.is_empty()
    }

    /// Returns until when nothing can be sent at `at`, as far as the terminal knows.
    pub(super) fn held(&self, at: Time) -> Option<Time> {
        held(&self.outages, at)
    }

    /// Returns when, after `at`, transmission is next impossible.
    pub(super) fn next_held(&self, at: Time) -> Option<Time> {
        let holding = self.outages.iter().filter(|of| of.sending == Sending::Held);
        holding.filter_map(|outages| outages.next(at)).min()
    }

    /// Returns the fate of a request made at `now`, the same as a packet's.
    pub(super) fn request(&mut self, now: Time, delay: Span) -> Arrival {
        if self.stays() {
            return Arrival::InTime;
        }
        let (arrival, lost) = passes(&self.outages, now, now, now + delay);
        if lost {
            self.lost += 1;
            Arrival::Never
        } else if arrival > now + delay {
            Arrival::HeldUntil(arrival)
        } else {
            Arrival::InTime
        }
    }

    /// Records the volume of a lost request that this frame's plan would have included.
    pub(super) fn asked_in_vain(&mut self, frame: u64, by_volume: Capacity) {
        self.in_vain.push_back((frame, by_volume));
    }

    /// Returns the volume of lost requests that the terminal detects in this frame.
    pub(super) fn unheard_by(&mut self, frame: u64) -> Capacity {
        let mut unheard = Capacity::ZERO;
        while let Some((_, volume)) = self.in_vain.front().filter(|(due, _)| *due <= frame) {
            unheard += *volume;
            self.in_vain.pop_front();
        }
        unheard
    }

    /// Returns the number of lost requests, or `None` if none can be lost.
    pub(super) fn lost_requests(&self) -> Option<u64> {
        (!self.stays()).then_some(self.lost)
    }
}
