//! The connections of a gateway: those at which something happens, and those at rest.
//!
//! Two legs are two whole TCP connections, 5 kB. Most connections say nothing most of the time; then all
//! that they are fits into a few hundred bytes, and costs a microsecond or two to have back.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use bentpipe_tcp::{Config, Payload};
use bentpipe_types::{Port, Span, Time};

use super::counters::Sums;
use super::pair::Pair;
use crate::slab::Slab;

/// A gateway's connections, by index.
#[derive(Debug)]
pub(super) struct Pairs<P> {
    places: Slab<Place<P>>,
    /// When those that are awake are next to be looked at, the earliest first. One that was looked at then,
    /// or is gone, leaves its entry.
    looks: VecDeque<(Time, u32)>,
    /// What those at rest have come to.
    sums: Sums,
    facing: Port,
    /// After so long without a packet, twice that at most, a connection is put to rest.
    patience: Span,
    /// The time at which somebody comes.
    pub(super) now: Time,
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Place<P> {
    Awake {
        pair: Box<Pair<P>>,
        /// Its entry among `looks`.
        look: Time,
    },
    Resting {
        /// The pair, without its legs' settings,
        bytes: Box<[u8]>,
        /// and those.
        settings: [Option<Arc<Config>>; 2],
    },
}

impl<P: Payload> Place<P> {
    /// Wakes one that rests; it is looked at next at `look`.
    #[cold]
    fn wake(&mut self, look: Time) -> Option<&Pair<P>> {
        let Self::Resting { bytes, settings } = self else {
            return None;
        };
        let Ok(mut pair) = postcard::from_bytes::<Box<Pair<P>>>(bytes) else {
            debug_assert!(false, "what was written can't be read");
            return None;
        };
        for (leg, settings) in pair.legs.iter_mut().zip(settings) {
            if let (Some(leg), Some(settings)) = (leg, settings.take()) {
                leg.put_settings(settings);
            }
        }
        *self = Self::Awake { pair, look };
        match self {
            Self::Awake { pair, .. } => Some(pair),
            Self::Resting { .. } => None,
        }
    }
}

impl<P: Payload> Pairs<P> {
    /// None yet, of a gateway that faces the link there.
    pub(super) fn new(facing: Port, patience: Span) -> Self {
        Self {
            places: Slab::default(),
            looks: VecDeque::new(),
            sums: Sums::default(),
            facing,
            patience,
            now: Time::ZERO,
            scratch: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, pair: Pair<P>) -> u32 {
        let look = self.now + self.patience;
        let pair = Box::new(pair);
        let index = self.places.insert(Place::Awake { pair, look });
        self.looks.push_back((look, index));
        index
    }

    /// A connection, awake.
    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Pair<P>> {
        let place = self.places.get_mut(index)?;
        if let Place::Resting { .. } = place {
            let look = self.now + self.patience;
            if let Some(pair) = place.wake(look) {
                self.sums.subtract(&Sums::of(pair, self.facing));
                self.looks.push_back((look, index));
            }
        }
        match place {
            Place::Awake { pair, .. } => Some(pair),
            Place::Resting { .. } => None,
        }
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<Box<Pair<P>>> {
        self.get_mut(index)?;
        let pair = match self.places.remove(index)? {
            Place::Awake { pair, .. } => Some(pair),
            Place::Resting { .. } => None,
        };
        self.forget_looks();
        pair
    }

    /// The next look is at somebody.
    fn forget_looks(&mut self) {
        while let Some((at, index)) = self.looks.front().copied()
            && !matches!(self.places.get_mut(index), Some(Place::Awake { look, .. }) if *look == at)
        {
            self.looks.pop_front();
        }
    }

    /// Puts those to rest of which nothing is under way.
    pub(super) fn put_to_rest(&mut self) {
        while let Some((at, index)) = self.looks.front().copied()
            && at <= self.now
        {
            self.looks.pop_front();
            if let Some(Place::Awake { pair, look }) = self.places.get_mut(index)
                && *look == at
                // What is over is gone in a minute: to pack it would cost more than it saves.
                && !pair.over
            {
                let silent = self.now.since(pair.touched) >= self.patience;
                *look = self.now + self.patience;
                if !silent || !self.rest(index) {
                    self.looks.push_back((self.now + self.patience, index));
                }
            }
        }
        self.forget_looks();
    }

    /// Puts one to rest, if it may be.
    fn rest(&mut self, index: u32) -> bool {
        let Some(place) = self.places.get_mut(index) else {
            return false;
        };
        let Place::Awake { pair, .. } = place else {
            return false;
        };
        if !pair.is_at_rest() {
            return false;
        }
        for leg in pair.legs.iter_mut().flatten() {
            leg.shrink();
        }
        let mut scratch = mem::take(&mut self.scratch);
        scratch.clear();
        let Ok(scratch) = postcard::to_extend(pair, scratch) else {
            // A window rule that somebody has brought along: nobody knows what it keeps.
            return false;
        };
        self.sums.add(&Sums::of(pair, self.facing));
        let legs = pair.legs.each_ref();
        *place = Place::Resting {
            settings: legs.map(|leg| Some(Arc::clone(leg.as_ref()?.connection().settings()))),
            bytes: scratch.as_slice().into(),
        };
        self.scratch = scratch;
        true
    }

    /// When somebody is next to be put to rest.
    #[inline]
    pub(super) fn next_look(&self) -> Option<Time> {
        self.looks.front().map(|(at, _)| *at)
    }

    /// Those that are awake,
    pub(super) fn awake(&self) -> impl Iterator<Item = &Pair<P>> {
        self.places.iter().filter_map(|place| match place {
            Place::Awake { pair, .. } => Some(&**pair),
            Place::Resting { .. } => None,
        })
    }

    /// and what the others have come to.
    pub(super) fn resting(&self) -> &Sums {
        &self.sums
    }

    /// All indices are below this.
    pub(super) fn end(&self) -> u32 {
        self.places.end()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many of them are at rest.
    #[cfg(test)]
    pub(super) fn at_rest(&self) -> usize {
        self.len() - self.awake().count()
    }

    /// Places, used or free.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.places.places()
    }
}
