//! What happens next: a heap with at most a few entries per component, not one per packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::Time;

/// A component of the network: a link direction, a node, or the sampler of the probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ComponentId(pub(crate) u16);

/// Components a network may have: an entry keeps 16 bits for them.
pub(crate) const COMPONENTS: usize = 1 << 16;

/// A heap of (time, component), each entry packed into one word: time << 16 | component.
///
/// Comparing one word is what makes it quick. Equal times are ordered by component, so that a run
/// is the same every time.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<u64>>,
}

impl Schedule {
    fn key(at: Time, component: ComponentId) -> Reverse<u64> {
        // A time past the clock's end never comes: it saturates, and the run ends before it.
        let at = at.min(Time::LAST);
        Reverse(at.as_nanos() << 16 | u64::from(component.0))
    }

    pub(crate) fn push(&mut self, at: Time, component: ComponentId) {
        self.heap.push(Self::key(at, component));
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<(Time, ComponentId)> {
        let Reverse(key) = *self.heap.peek()?;
        Some((Time::from_nanos(key >> 16), ComponentId(key as u16)))
    }

    /// Moves the first entry to a later time: cheaper than removing it and pushing another.
    pub(crate) fn postpone_first(&mut self, at: Time) {
        if let Some(mut first) = self.heap.peek_mut() {
            let component = ComponentId(first.0 as u16);
            *first = Self::key(at, component);
        }
    }

    /// The first entry's component goes on at a later time, or has nothing to come any more.
    #[inline]
    pub(crate) fn first_goes_on(&mut self, at: Option<Time>) {
        match at {
            Some(at) => self.postpone_first(at),
            None => self.remove_first(),
        }
    }

    pub(crate) fn remove_first(&mut self) {
        self.heap.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_order_of_time_then_component() {
        let mut schedule = Schedule::default();
        for (at, component) in [(30, 1), (10, 2), (10, 1), (20, 9)] {
            schedule.push(Time::from_nanos(at), ComponentId(component));
        }
        schedule.postpone_first(Time::from_nanos(25));
        let mut order = Vec::new();
        while let Some((at, component)) = schedule.first() {
            order.push((at.as_nanos(), component.0));
            schedule.remove_first();
        }
        assert_eq!(order, [(10, 2), (20, 9), (25, 1), (30, 1)]);
    }
}
