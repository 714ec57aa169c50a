//! Queued packets, first in, first out.

use std::collections::VecDeque;

use bentpipe_types::{Bytes, PacketRef, Time};

use super::{Backlog, Limit, Verdict};

/// Packets in the order of arrival, and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    queue: VecDeque<(PacketRef, u32)>,
    bytes: u64,
}

impl Waiting {
    /// Accepts the packet if the limit admits it or the link is idle.
    pub(crate) fn offer(
        &mut self,
        packet: PacketRef,
        length: Bytes,
        limit: Limit,
        idle: bool,
    ) -> Verdict {
        if !idle && self.is_full_for(length, limit) {
            return Verdict::Dropped;
        }
        self.push(packet, length);
        Verdict::Queued
    }

    /// Whether a packet of this length would exceed the limit.
    pub(crate) fn is_full_for(&self, length: Bytes, limit: Limit) -> bool {
        !limit.admits(self.packets(), self.bytes(), length)
    }

    pub(crate) fn push(&mut self, packet: PacketRef, length: Bytes) {
        self.bytes += length.get();
        self.queue.push_back((packet, length.get() as u32));
    }

    pub(crate) fn pop(&mut self) -> Option<(PacketRef, Bytes)> {
        let (packet, length) = self.queue.pop_front()?;
        self.bytes -= u64::from(length);
        Some((packet, Bytes::new(u64::from(length))))
    }

    pub(crate) fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets(),
            bytes: self.bytes,
        }
    }
}

/// Packets in the order of arrival, with arrival times.
#[derive(Debug, Default)]
pub(crate) struct TimedWaiting {
    waiting: Waiting,
    since: VecDeque<Time>,
}

impl TimedWaiting {
    pub(crate) fn push(&mut self, now: Time, packet: PacketRef, length: Bytes) {
        self.waiting.push(packet, length);
        self.since.push_back(now);
    }

    /// Whether a packet of this length would exceed the limit.
    pub(crate) fn is_full_for(&self, length: Bytes, limit: Limit) -> bool {
        self.waiting.is_full_for(length, limit)
    }

    /// Removes the first packet. Returns it with length and arrival time.
    pub(crate) fn pop(&mut self) -> Option<(PacketRef, Bytes, Time)> {
        let (packet, length) = self.waiting.pop()?;
        Some((packet, length, self.since.pop_front()?))
    }

    pub(crate) fn packets(&self) -> u64 {
        self.waiting.packets()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.waiting.bytes()
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }
}
