//! When which connection wants to run: one entry each, however often it changes its mind.

use std::collections::BTreeSet;

use bentpipe_types::Time;

/// The earliest time at which somebody must look at each connection.
///
/// A deadline that moves to later costs nothing: the entry stays, and when its time comes the
/// connection says that there is nothing to do, and is armed anew.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    entries: BTreeSet<(Time, u16)>,
    armed: Vec<Option<Time>>,
}

impl Deadlines {
    /// One more connection may be armed.
    pub(super) fn add(&mut self) {
        self.armed.push(None);
    }

    /// Somebody must look at this connection at `at` or before.
    pub(super) fn arm(&mut self, slot: u16, at: Time) {
        let armed = &mut self.armed[usize::from(slot)];
        match *armed {
            Some(earlier) if earlier <= at => return,
            Some(later) => {
                self.entries.remove(&(later, slot));
            }
            None => {}
        }
        *armed = Some(at);
        self.entries.insert((at, slot));
    }

    /// The connection is gone.
    pub(super) fn disarm(&mut self, slot: u16) {
        if let Some(at) = self.armed[usize::from(slot)].take() {
            self.entries.remove(&(at, slot));
        }
    }

    /// Takes a connection whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<u16> {
        let &(at, slot) = self.entries.first()?;
        if at > now {
            return None;
        }
        self.entries.pop_first();
        self.armed[usize::from(slot)] = None;
        Some(slot)
    }

    /// The earliest.
    pub(super) fn next(&self) -> Option<Time> {
        self.entries.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_each_and_the_earliest_counts() {
        let at = Time::from_nanos;
        let mut deadlines = Deadlines::default();
        deadlines.add();
        deadlines.add();
        for time in [30, 10, 20] {
            deadlines.arm(0, at(time));
            deadlines.arm(1, at(time + 5));
        }
        assert_eq!(deadlines.entries.len(), 2);
        assert_eq!(deadlines.next(), Some(at(10)));
        assert_eq!(deadlines.due(at(9)), None);
        assert_eq!(deadlines.due(at(40)), Some(0));
        deadlines.disarm(1);
        assert_eq!(deadlines.due(at(40)), None);
    }
}
