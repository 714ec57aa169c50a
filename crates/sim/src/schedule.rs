//! What happens next: a heap with at most a few entries per component, not one per packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_types::{Span, Time};

/// A component of the network: a link direction, a node, or the sampler of the probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ComponentId(pub(crate) u16);

/// Components a network may have: an entry keeps 16 bits for them.
pub(crate) const COMPONENTS: usize = 1 << 16;

/// A heap of (time, component), each entry packed into one word: time << 16 | component.
///
/// Comparing one word is what makes it quick. Equal times are ordered by component, so that a run
/// is the same every time. The times are since `base`, which is the start, unless somebody's clock goes on
/// for days.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<u64>>,
    base: Time,
}

impl Schedule {
    fn key(&self, at: Time, component: ComponentId) -> Reverse<u64> {
        // A time past the clock's end never comes: it saturates, and the run ends before it.
        let at = at.since(self.base).as_nanos().min(Time::LAST.as_nanos());
        Reverse(at << 16 | u64::from(component.0))
    }

    /// It is `now`: half of what the entries can hold has passed, perhaps, and is let go. An entry that was
    /// out of reach may come up early then, as a node's may in any case.
    pub(crate) fn keep_up(&mut self, now: Time) {
        let passed = now.since(self.base);
        if passed.as_nanos() <= Time::LAST.as_nanos() / 2 {
            return;
        }
        let passed = passed.as_nanos() << 16;
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        for Reverse(key) in &mut entries {
            *key = key.checked_sub(passed).unwrap_or(*key & 0xffff);
        }
        self.heap = entries.into();
        self.base = now;
    }

    pub(crate) fn push(&mut self, at: Time, component: ComponentId) {
        self.heap.push(self.key(at, component));
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<(Time, ComponentId)> {
        let Reverse(key) = *self.heap.peek()?;
        Some((
            self.base + Span::from_nanos(key >> 16),
            ComponentId(key as u16),
        ))
    }

    /// Whose the entries are on this level of the heap: the first is on level 0, the one after it on level 1, the third
    /// on level 1 or 2.
    #[inline(always)]
    pub(crate) fn level(&self, level: u32) -> impl Iterator<Item = ComponentId> {
        let entries = self.heap.as_slice().iter().skip((1 << level) - 1);
        let entries = entries.take(1 << level);
        entries.map(|Reverse(key)| ComponentId(*key as u16))
    }

    /// Moves the first entry to a later time: cheaper than removing it and pushing another.
    pub(crate) fn postpone_first(&mut self, at: Time) {
        let key = self.key(at, ComponentId(0));
        if let Some(mut first) = self.heap.peek_mut() {
            *first = Reverse(key.0 | u64::from(first.0 as u16));
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

    /// Removes all entries of a component.
    #[cold]
    pub(crate) fn remove(&mut self, component: ComponentId) {
        self.heap.retain(|Reverse(key)| *key as u16 != component.0);
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

    #[test]
    fn a_clock_that_goes_on_for_days_takes_its_entries_along() {
        let day = Span::from_secs(86_400);
        let mut schedule = Schedule::default();
        let mut now = Time::ZERO;
        schedule.push(now + day, ComponentId(7));
        // One that waits for a year, and comes up in between, as lazy deadlines may.
        let never = now + day * 365;
        schedule.push(never, ComponentId(9));
        let mut ups = Vec::new();
        while now < never + day {
            now += day;
            schedule.keep_up(now);
            while let Some((at, component)) = schedule.first().filter(|(at, _)| *at <= now) {
                if component.0 == 7 {
                    assert_eq!(at, now, "each day, at its time");
                    schedule.postpone_first(now + day);
                } else {
                    assert!(at <= never);
                    ups.push(at);
                    schedule.first_goes_on((at < never).then_some(never));
                }
            }
        }
        assert_eq!(ups.last(), Some(&never));
        assert_eq!(schedule.first().map(|(_, component)| component.0), Some(7));
    }
}
