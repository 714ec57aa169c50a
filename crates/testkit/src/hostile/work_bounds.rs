//! Bounds on the work of a case: events, packets in transit, and calls at one time.

use bentpipe_types::{Time, World};

use super::Counts;

/// Maximum work.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) events: u64,
    /// Packets in transit.
    pub(super) packets: usize,
    /// Calls at one time. More are an endless loop of deadlines.
    pub(super) calls_at_one_time: u64,
}

pub(super) struct Work {
    bounds: Bounds,
    pub(super) counts: Counts,
    calls_at_one_time: u64,
}

impl Work {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            counts: Counts::default(),
            calls_at_one_time: 0,
        }
    }

    /// Counts an event at this time.
    pub(super) fn event(&mut self, at: Time, world: &mut World) {
        self.counts.events += 1;
        self.calls_at_one_time = if at > world.now {
            0
        } else {
            self.calls_at_one_time + 1
        };
        world.now = world.now.max(at);
    }

    /// Excludes an arrival from the count of deadlines.
    pub(super) fn came(&mut self) {
        self.calls_at_one_time = 0;
    }

    /// # Errors
    /// Returns the exceeded bound.
    pub(super) fn check(&self, world: &World) -> Result<(), String> {
        let held = world.packets.held();
        if held > self.bounds.packets {
            return Err(format!("{held} packets"));
        }
        if self.counts.events > self.bounds.events {
            return Err(format!("{} events", self.counts.events));
        }
        if self.calls_at_one_time > self.bounds.calls_at_one_time {
            return Err("somebody wants to run again and again".to_owned());
        }
        Ok(())
    }
}
