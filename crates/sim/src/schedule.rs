//! The schedule of events: at most a few entries per component, not one per packet.

use bentpipe_types::{Agenda, Entry, Span, Time};

/// A component of the network: a link direction, a node, or the sampler of the probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ComponentId(pub(crate) u16);

/// Maximum number of components: an entry has 16 bits for them.
pub(crate) const COMPONENTS: usize = 1 << 16;

/// Entries of (time, component), each packed into one word: time << 16 | component.
///
/// Comparing one word is fast. Simultaneous entries are ordered by component, so that runs are
/// reproducible. Times are relative to `base`, which is the start of the run, or later with an
/// external clock that runs for days.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    agenda: Agenda<Key>,
    base: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key(u64);

impl Key {
    fn component(self) -> ComponentId {
        ComponentId(self.0 as u16)
    }
}

impl Entry for Key {
    #[inline]
    fn at(self) -> Time {
        Time::from_nanos(self.0 >> 16)
    }
}

impl Schedule {
    fn key(&self, at: Time, component: ComponentId) -> Key {
        // A time beyond the clock's range saturates; the run ends before it.
        let at = at.since(self.base).as_nanos().min(Time::LAST.as_nanos());
        Key(at << 16 | u64::from(component.0))
    }

    /// Called at time `now`: moves `base` forward once half of the range has passed. An entry that
    /// was out of range may then come up early, as a node's may in any case.
    pub(crate) fn keep_up(&mut self, now: Time) {
        let passed = now.since(self.base);
        if passed.as_nanos() <= Time::LAST.as_nanos() / 2 {
            return;
        }
        let passed = passed.as_nanos() << 16;
        let later = |Key(key): Key| Key(key.checked_sub(passed).unwrap_or(key & 0xffff));
        self.agenda.change(later);
        self.base = now;
    }

    pub(crate) fn push(&mut self, at: Time, component: ComponentId) {
        self.agenda.push(self.key(at, component));
    }

    /// Returns the first entry.
    pub(crate) fn first(&self) -> Option<(Time, ComponentId)> {
        let first = self.agenda.first()?;
        let since = Span::from_nanos(first.at().as_nanos());
        Some((self.base + since, first.component()))
    }

    /// Whether there are more than `count` entries.
    pub(crate) fn exceeds(&self, count: usize) -> bool {
        self.agenda.exceeds(count)
    }

    /// Returns the component of the entry that follows `others` others, if there are many entries
    /// and it is known.
    #[inline(always)]
    pub(crate) fn upcoming(&self, others: usize) -> Option<ComponentId> {
        Some(self.agenda.upcoming(others)?.component())
    }

    /// Moves the first entry to a later time: cheaper than removing it and pushing another.
    #[inline(always)]
    pub(crate) fn postpone_first(&mut self, at: Time) {
        let key = self.key(at, ComponentId(0));
        self.agenda
            .postpone_first(|first| Key(key.0 | u64::from(first.component().0)));
    }

    /// Moves the first entry to a later time, or removes it.
    #[inline]
    pub(crate) fn first_goes_on(&mut self, at: Option<Time>) {
        match at {
            Some(at) => self.postpone_first(at),
            None => self.remove_first(),
        }
    }

    pub(crate) fn remove_first(&mut self) {
        self.agenda.pop();
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
    fn entries_are_kept_when_the_clock_base_advances_for_days() {
        let day = Span::from_secs(86_400);
        let mut schedule = Schedule::default();
        let mut now = Time::ZERO;
        schedule.push(now + day, ComponentId(7));
        // A lazy deadline a year ahead, which comes up in between.
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
