//! The table of tracked connections (the paper's TCB), with their timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::{FlowKey, Time};
use rustc_hash::FxHashMap;

use super::relay::Relay;
use super::tracked_connection::{Phase, TrackedConnection};

/// Tracked connections by flow. A connection keeps its slot number while it exists.
#[derive(Debug)]
pub(super) struct TrackingTable {
    capacity: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: FxHashMap<FlowKey, u32>,
    // Lazy timers: one that is moved to a later time keeps its entry.
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

#[derive(Debug)]
struct Slot {
    tracked: Option<TrackedConnection>,
    /// Time of this slot's earliest entry in the heap; `Time::NEVER` if it has none.
    armed: Time,
}

impl TrackingTable {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.clamp(1, 1 << 20),
            slots: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            heap: BinaryHeap::new(),
        }
    }

    pub(super) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// Adds a connection. Returns `None` if the table is full.
    pub(super) fn insert(&mut self, tracked: TrackedConnection) -> Option<u32> {
        let key = tracked.key;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.capacity => {
                self.slots.push(Slot {
                    tracked: None,
                    armed: Time::NEVER,
                });
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        self.slots[slot as usize].tracked = Some(tracked);
        self.index.insert(key, slot);
        Some(slot)
    }

    pub(super) fn is_half_empty(&self) -> bool {
        self.index.len() <= self.capacity / 2
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(tracked) = self.slots[slot as usize].tracked.take() {
            self.index.remove(&tracked.key);
            self.free.push(slot);
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&TrackedConnection> {
        self.slots.get(slot as usize)?.tracked.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut TrackedConnection> {
        self.slots.get_mut(slot as usize)?.tracked.as_mut()
    }

    /// Arms a timer: the slot has to be checked at `at` or earlier.
    pub(super) fn arm(&mut self, slot: u32, at: Time) {
        let armed = &mut self.slots[slot as usize].armed;
        if at < *armed {
            *armed = at;
            self.heap.push(Reverse((at, slot)));
        }
    }

    /// Takes a slot whose timer has expired.
    pub(super) fn due(&mut self, now: Time) -> Option<u32> {
        while let Some(&Reverse((at, slot))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let entry = &mut self.slots[slot as usize];
            if entry.armed == at {
                entry.armed = Time::NEVER;
                if entry.tracked.is_some() {
                    return Some(slot);
                }
            }
        }
        None
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a bound: all slots are below it.
    pub(super) fn end(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns all connections.
    pub(super) fn into_connections(self) -> impl Iterator<Item = TrackedConnection> {
        self.slots.into_iter().filter_map(|slot| slot.tracked)
    }

    /// Bytes of memory used, connections included.
    pub(super) fn memory(&self) -> usize {
        let relays: usize = self
            .slots
            .iter()
            .filter_map(|slot| match &slot.tracked.as_ref()?.phase {
                Phase::Open(relay) => Some(size_of::<Relay>() + relay.allocated()),
                _ => None,
            })
            .sum();
        self.slots.capacity() * size_of::<Slot>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.capacity() * (size_of::<(FlowKey, u32)>() + 1)
            + self.heap.capacity() * size_of::<(Time, u32)>()
            + relays
    }
}
