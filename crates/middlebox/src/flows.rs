//! A bounded table of flows.

use bentpipe_link::Flow;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// Index of a flow in a [`FlowTable`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u32);

impl Slot {
    /// Returns the index, from 0.
    pub(crate) fn index(self) -> u32 {
        self.0
    }

    /// Returns the slot with this index, which must exist.
    pub(crate) fn at(index: u32) -> Self {
        Self(index)
    }
}

/// State per flow, for a bounded number of flows. A new flow replaces the one that has been idle
/// for longest; busy flows stay.
///
/// Allocates nothing once the table has grown to its capacity.
#[derive(Debug)]
pub(crate) struct FlowTable<S> {
    capacity: usize,
    slots: Vec<Entry<S>>,
    // Hash collisions chosen by an attacker are limited by the table's size.
    index: FxHashMap<Flow, u32>,
    /// The flow looked up last: most packets follow one of their own flow.
    last: u32,
    // Idle flows, a doubly linked list, longest idle first.
    oldest: u32,
    newest: u32,
    evicted: u64,
    refused: u64,
}

#[derive(Debug)]
struct Entry<S> {
    flow: Flow,
    state: S,
    busy: bool,
    before: u32,
    after: u32,
}

impl<S> FlowTable<S> {
    /// Creates an empty table for at most `capacity` flows, and at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1 << 20);
        Self {
            capacity,
            slots: Vec::new(),
            index: FxHashMap::default(),
            last: NONE,
            oldest: NONE,
            newest: NONE,
            evicted: 0,
            refused: 0,
        }
    }

    /// Returns the flow's slot and whether it is new, or `None` if it is new and every flow is
    /// busy.
    ///
    /// Calls `evict` with the state of a flow that is replaced.
    pub(crate) fn enter(
        &mut self,
        flow: Flow,
        make: impl FnOnce() -> S,
        evict: impl FnOnce(Flow, S),
    ) -> Option<Slot> {
        if let Some(slot) = self.find(flow) {
            self.last = slot;
            if !self.slots[slot as usize].busy && self.newest != slot {
                self.unlink(slot);
                self.append(slot);
            }
            return Some(Slot(slot));
        }
        let entry = Entry {
            flow,
            state: make(),
            busy: false,
            before: NONE,
            after: NONE,
        };
        let slot = if self.slots.len() < self.capacity {
            if self.slots.is_empty() {
                // Twice the capacity, so that insertions and removals never make it grow.
                self.index.reserve(2 * self.capacity);
            }
            self.slots.push(entry);
            (self.slots.len() - 1) as u32
        } else if self.oldest != NONE {
            let slot = self.oldest;
            self.unlink(slot);
            let old = std::mem::replace(&mut self.slots[slot as usize], entry);
            self.index.remove(&old.flow);
            self.evicted += 1;
            evict(old.flow, old.state);
            slot
        } else {
            self.refused += 1;
            return None;
        };
        self.index.insert(flow, slot);
        self.last = slot;
        self.append(slot);
        Some(Slot(slot))
    }

    fn find(&self, flow: Flow) -> Option<u32> {
        let last = self.slots.get(self.last as usize);
        if last.is_some_and(|entry| entry.flow == flow) {
            return Some(self.last);
        }
        self.index.get(&flow).copied()
    }

    /// Marks a flow as busy or idle. Busy flows are not evicted.
    pub(crate) fn set_busy(&mut self, slot: Slot, busy: bool) {
        if self.slots[slot.0 as usize].busy == busy {
            return;
        }
        self.slots[slot.0 as usize].busy = busy;
        if busy {
            self.unlink(slot.0);
        } else {
            self.append(slot.0);
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> &S {
        &self.slots[slot.0 as usize].state
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut S {
        &mut self.slots[slot.0 as usize].state
    }

    /// Iterates over the flows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Flow, &S)> {
        self.slots.iter().map(|entry| (entry.flow, &entry.state))
    }

    /// Returns the number of evicted flows.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns how often a flow found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { before, after, .. } = self.slots[slot as usize];
        match before {
            NONE => self.oldest = after,
            before => self.slots[before as usize].after = after,
        }
        match after {
            NONE => self.newest = before,
            after => self.slots[after as usize].before = before,
        }
    }

    fn append(&mut self, slot: u32) {
        let newest = self.newest;
        let entry = &mut self.slots[slot as usize];
        entry.before = newest;
        entry.after = NONE;
        match newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest as usize].after = slot,
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_types::{Address, Endpoint};

    fn flow(port: u16) -> Flow {
        let end = |address, port| Endpoint {
            address: Address(address),
            port,
        };
        Flow {
            source: end(1, port),
            destination: end(2, 80),
            ip: None,
        }
    }

    #[test]
    fn the_longest_idle_flow_is_evicted_and_active_flows_are_kept() {
        let mut table = FlowTable::new(2);
        let enter = |table: &mut FlowTable<u16>, port| {
            let mut gone = None;
            let slot = table.enter(flow(port), || port, |flow, _| gone = Some(flow.source.port));
            (slot, gone)
        };
        let (first, _) = enter(&mut table, 1);
        let (second, _) = enter(&mut table, 2);
        table.set_busy(first.unwrap(), true);
        assert_eq!(enter(&mut table, 3), (second, Some(2)));
        table.set_busy(second.unwrap(), true);
        assert_eq!(enter(&mut table, 4), (None, None));
        assert_eq!(enter(&mut table, 1), (first, None));
        // They become idle in this order: first, second; then the first is seen again.
        table.set_busy(first.unwrap(), false);
        table.set_busy(second.unwrap(), false);
        assert_eq!(enter(&mut table, 1), (first, None));
        assert_eq!(enter(&mut table, 5), (second, Some(3)));
        assert_eq!((table.evicted(), table.refused()), (2, 1));
        assert_eq!(table.iter().map(|(_, &s)| s).collect::<Vec<_>>(), [1, 5]);
    }
}
