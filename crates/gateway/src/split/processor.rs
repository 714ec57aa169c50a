//! A processor that takes its time: one packet after the other, the rest wait, or find no room.

use std::collections::VecDeque;

use bentpipe_types::{PacketRef, Port, Time};

use super::Processing;

/// karir1999, "Discussion": each packet passes the IP layer twice, and "this may cause incoming
/// packets to be dropped and queues to overflow on the gateways".
#[derive(Debug)]
pub(super) struct Processor {
    settings: Processing,
    /// The first is being processed.
    waiting: VecDeque<(Port, PacketRef)>,
    done_at: Time,
}

impl Processor {
    pub(super) fn new(settings: Processing) -> Self {
        Self {
            settings,
            waiting: VecDeque::new(),
            done_at: Time::ZERO,
        }
    }

    /// A packet arrives. Handed back where there is no room for it.
    pub(super) fn offer(&mut self, from: Port, packet: PacketRef, now: Time) -> Option<PacketRef> {
        if self.waiting.len() > self.settings.queue_packets {
            return Some(packet);
        }
        if self.waiting.is_empty() {
            self.done_at = now + self.settings.time;
        }
        self.waiting.push_back((from, packet));
        None
    }

    /// When the first is done.
    pub(super) fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.done_at)
    }

    /// Takes the first, if it is done.
    pub(super) fn take(&mut self, now: Time) -> Option<(Port, PacketRef)> {
        if self.next()? > now {
            return None;
        }
        self.done_at += self.settings.time;
        self.waiting.pop_front()
    }

    /// Packets there.
    pub(super) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }
}
