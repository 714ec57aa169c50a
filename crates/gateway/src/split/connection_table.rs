//! The table of split connections, with those suspended that have been idle for a while.
//!
//! The two legs of a connection take 5 kB. Most connections are idle most of the time. Serialized,
//! an idle connection takes a few hundred bytes, and can be restored in one or two microseconds.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use bentpipe_tcp::{Config, Payload};
use bentpipe_types::{Port, RoundTripHistogram, Span, Time};

use super::counters::record_round_trips;
use super::leg_totals::Sums;
use super::memory_budget::MemoryBudget;
use super::split_connection::SplitConnection;
use crate::slab::Slab;

/// A gateway's split connections, by index.
#[derive(Debug)]
pub(super) struct ConnectionTable<P> {
    entries: Slab<Entry<P>>,
    /// When to check each active connection for idleness, earliest first. An entry is stale if its
    /// connection has a later check or is gone.
    idle_checks: VecDeque<(Time, u32)>,
    /// Totals of the suspended connections' counters.
    suspended_sums: Sums,
    suspended: usize,
    facing: Port,
    /// A connection without packets is suspended after this time, or at most twice this time.
    idle_time: Span,
    /// Current time.
    pub(super) now: Time,
    scratch: Vec<u8>,
}

/// An active connection, or a copy of a suspended one.
pub(super) enum SomeConnection<'a, P> {
    Active(&'a SplitConnection<P>),
    Suspended(Box<SplitConnection<P>>),
}

impl<P> std::ops::Deref for SomeConnection<'_, P> {
    type Target = SplitConnection<P>;

    fn deref(&self) -> &SplitConnection<P> {
        match self {
            Self::Active(pair) => pair,
            Self::Suspended(pair) => pair,
        }
    }
}

#[derive(Debug)]
enum Entry<P> {
    Active {
        pair: Box<SplitConnection<P>>,
        /// Time of its entry in `idle_checks`.
        idle_check: Time,
    },
    Suspended {
        /// The serialized connection, without its legs' settings.
        bytes: Box<[u8]>,
        /// The legs' settings.
        settings: [Option<Arc<Config>>; 2],
    },
}

impl<P: Payload> Entry<P> {
    /// Restores a suspended connection, which is next checked for idleness at `idle_check`.
    #[cold]
    fn restore(&mut self, idle_check: Time) -> Option<&SplitConnection<P>> {
        let Self::Suspended { bytes, settings } = self else {
            return None;
        };
        let Ok(mut pair) = postcard::from_bytes::<Box<SplitConnection<P>>>(bytes) else {
            debug_assert!(false, "what was written can't be read");
            return None;
        };
        for (leg, settings) in pair.legs.iter_mut().zip(settings) {
            if let (Some(leg), Some(settings)) = (leg, settings.take()) {
                leg.restore_settings(settings);
            }
        }
        *self = Self::Active { pair, idle_check };
        match self {
            Self::Active { pair, .. } => Some(pair),
            Self::Suspended { .. } => None,
        }
    }
}

impl<P: Payload> ConnectionTable<P> {
    /// Returns an empty table, for a gateway whose facing link is at port `facing`.
    pub(super) fn new(facing: Port, idle_time: Span) -> Self {
        Self {
            entries: Slab::default(),
            idle_checks: VecDeque::new(),
            suspended_sums: Sums::default(),
            suspended: 0,
            facing,
            idle_time,
            now: Time::ZERO,
            scratch: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, pair: SplitConnection<P>) -> u32 {
        let idle_check = self.now + self.idle_time;
        let pair = Box::new(pair);
        let index = self.entries.insert(Entry::Active { pair, idle_check });
        self.idle_checks.push_back((idle_check, index));
        index
    }

    /// Returns a connection, and restores it if it is suspended.
    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut SplitConnection<P>> {
        let entry = self.entries.get_mut(index)?;
        if let Entry::Suspended { .. } = entry {
            let idle_check = self.now + self.idle_time;
            if let Some(pair) = entry.restore(idle_check) {
                self.suspended_sums.subtract(&Sums::of(pair, self.facing));
                self.suspended -= 1;
                self.idle_checks.push_back((idle_check, index));
            }
        }
        match entry {
            Entry::Active { pair, .. } => Some(pair),
            Entry::Suspended { .. } => None,
        }
    }

    /// Returns a connection, unless it is suspended.
    pub(super) fn get_active(&self, index: u32) -> Option<&SplitConnection<P>> {
        match self.entries.get(index)? {
            Entry::Active { pair, .. } => Some(pair),
            Entry::Suspended { .. } => None,
        }
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<Box<SplitConnection<P>>> {
        self.get_mut(index)?;
        let pair = match self.entries.remove(index)? {
            Entry::Active { pair, .. } => Some(pair),
            Entry::Suspended { .. } => None,
        };
        self.drop_stale_checks();
        pair
    }

    /// Removes stale entries at the front of the queue of checks.
    fn drop_stale_checks(&mut self) {
        while let Some((at, index)) = self.idle_checks.front().copied()
            && !matches!(self.entries.get_mut(index), Some(Entry::Active { idle_check, .. }) if *idle_check == at)
        {
            self.idle_checks.pop_front();
        }
    }

    /// Suspends the connections that are idle, and gives up their reservations.
    pub(super) fn suspend_idle(
        &mut self,
        round_trips: &mut [RoundTripHistogram; 2],
        budget: &mut MemoryBudget,
    ) {
        let before = self.suspended;
        while let Some((at, index)) = self.idle_checks.front().copied()
            && at <= self.now
        {
            self.idle_checks.pop_front();
            if let Some(Entry::Active { pair, idle_check }) = self.entries.get_mut(index)
                && *idle_check == at
                // An ended connection is gone in a minute. To suspend it costs more than it saves.
                && !pair.has_ended
            {
                let silent = self.now.since(pair.last_activity_at) >= self.idle_time;
                *idle_check = self.now + self.idle_time;
                if !silent {
                    record_round_trips(round_trips, pair, self.facing);
                }
                if !silent || !self.suspend(index, budget) {
                    self.idle_checks
                        .push_back((self.now + self.idle_time, index));
                }
            }
        }
        self.drop_stale_checks();
        if self.suspended > before {
            bentpipe_tcp::free_spare_buffers();
        }
    }

    /// Suspends a connection if possible. Returns true if it did.
    fn suspend(&mut self, index: u32, budget: &mut MemoryBudget) -> bool {
        let Some(entry) = self.entries.get_mut(index) else {
            return false;
        };
        let Entry::Active { pair, .. } = entry else {
            return false;
        };
        if !pair.is_quiescent() {
            return false;
        }
        for leg in pair.legs.iter_mut().flatten() {
            leg.shrink();
        }
        pair.release_reservations(budget);
        let mut scratch = mem::take(&mut self.scratch);
        scratch.clear();
        let Ok(scratch) = postcard::to_extend(pair, scratch) else {
            // A user-defined congestion control cannot be serialized, since its state is unknown.
            return false;
        };
        self.suspended_sums.add(&Sums::of(pair, self.facing));
        self.suspended += 1;
        let legs = pair.legs.each_ref();
        *entry = Entry::Suspended {
            settings: legs.map(|leg| Some(Arc::clone(leg.as_ref()?.connection().settings()))),
            bytes: scratch.as_slice().into(),
        };
        self.scratch = scratch;
        true
    }

    /// Time of the next check for idle connections.
    #[inline]
    pub(super) fn next_check(&self) -> Option<Time> {
        self.idle_checks.front().map(|(at, _)| *at)
    }

    /// Returns the active connections.
    pub(super) fn active(&self) -> impl Iterator<Item = &SplitConnection<P>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Active { pair, .. } => Some(&**pair),
            Entry::Suspended { .. } => None,
        })
    }

    /// Returns all connections. Suspended ones are copies, without their legs' settings.
    pub(super) fn all(&self) -> impl Iterator<Item = SomeConnection<'_, P>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Active { pair, .. } => Some(SomeConnection::Active(pair)),
            Entry::Suspended { bytes, .. } => {
                (postcard::from_bytes(bytes).ok()).map(SomeConnection::Suspended)
            }
        })
    }

    /// Returns the totals of the suspended connections.
    pub(super) fn suspended_totals(&self) -> &Sums {
        &self.suspended_sums
    }

    /// Returns a bound: all indices are below it.
    pub(super) fn end(&self) -> u32 {
        self.entries.end()
    }

    /// Number of connections.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of suspended connections.
    pub(super) fn suspended(&self) -> usize {
        self.suspended
    }

    /// Number of table entries, used or free.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.entries.places()
    }
}
