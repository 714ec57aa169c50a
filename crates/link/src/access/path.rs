//! A terminal's path, where it changes or goes away.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};

use super::capacity::Capacity;
use crate::changes::{Outages, Rates, Sending, held, passes};

/// What a path does to bursts and requests.
#[derive(Debug, Default)]
pub(crate) struct Path {
    rates: Option<Rates>,
    outages: Vec<Outages>,
    /// Volumes in requests that the hub does not get, and the frame whose plan should heed each.
    in_vain: VecDeque<(u64, Capacity)>,
    lost: u64,
}

/// When a request arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    InTime,
    HeldUntil(Time),
    Never,
}

impl Path {
    /// One whose rate is as these say, if they say more than one, and that goes away so.
    pub(crate) fn new(rates: Rates, outages: &[Outages]) -> Self {
        Self {
            rates: rates.change().then_some(rates),
            outages: outages.to_vec(),
            ..Self::default()
        }
    }

    /// Its rate, where that changes.
    pub(super) fn rates(&self) -> Option<&Rates> {
        self.rates.as_ref()
    }

    /// It never goes away.
    pub(super) fn stays(&self) -> bool {
        self.outages.is_empty()
    }

    /// Until when nothing can be sent at `at`, as the terminal knows.
    pub(super) fn held(&self, at: Time) -> Option<Time> {
        held(&self.outages, at)
    }

    /// When, after `at`, nothing can be sent next.
    pub(super) fn next_held(&self, at: Time) -> Option<Time> {
        let holding = self.outages.iter().filter(|of| of.sending == Sending::Held);
        holding.filter_map(|outages| outages.next(at)).min()
    }

    /// What becomes of a request that is made at `now`: what would become of a packet.
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

    /// So much has been asked for by volume, in a request that was to be heeded in this frame's plan, and is lost.
    pub(super) fn asked_in_vain(&mut self, frame: u64, by_volume: Capacity) {
        self.in_vain.push_back((frame, by_volume));
    }

    /// What of it the terminal knows of in this frame.
    pub(super) fn unheard_by(&mut self, frame: u64) -> Capacity {
        let mut unheard = Capacity::ZERO;
        while let Some((_, volume)) = self.in_vain.front().filter(|(due, _)| *due <= frame) {
            unheard += *volume;
            self.in_vain.pop_front();
        }
        unheard
    }

    /// How many requests were lost; `None` where none can be.
    pub(super) fn lost_requests(&self) -> Option<u64> {
        (!self.stays()).then_some(self.lost)
    }
}
