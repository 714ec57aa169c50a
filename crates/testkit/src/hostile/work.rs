//! How much work a case is: events, packets under way, and calls at one time.

use bentpipe_types::{Time, World};

use super::Counts;

/// What is too much.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) events: u64,
    /// Packets under way.
    pub(super) packets: usize,
    /// So many calls at one time, at the deadlines that somebody names, are a loop without an end.
    pub(super) at_once: u64,
}

pub(super) struct Work {
    bounds: Bounds,
    pub(super) counts: Counts,
    at_once: u64,
}

impl Work {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            counts: Counts::default(),
            at_once: 0,
        }
    }

    /// The next thing happens, at this time.
    pub(super) fn event(&mut self, at: Time, world: &mut World) {
        self.counts.events += 1;
        self.at_once = if at > world.now { 0 } else { self.at_once + 1 };
        world.now = world.now.max(at);
    }

    /// It was something that came: nobody asked for it.
    pub(super) fn came(&mut self) {
        self.at_once = 0;
    }

    /// # Errors
    /// What there is too much of.
    pub(super) fn check(&self, world: &World) -> Result<(), String> {
        let held = world.packets.held();
        if held > self.bounds.packets {
            return Err(format!("{held} packets"));
        }
        if self.counts.events > self.bounds.events {
            return Err(format!("{} events", self.counts.events));
        }
        if self.at_once > self.bounds.at_once {
            return Err("somebody wants to run again and again".to_owned());
        }
        Ok(())
    }
}
