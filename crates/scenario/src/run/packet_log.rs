//! A log of the packets at all link ends, kept in memory.

use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_sim::{End, Tap};
use bentpipe_types::{Packet, PacketRef, PacketStore, Time};

/// A packet at one end of a link.
#[derive(Clone, Copy, Debug)]
pub struct LoggedPacket {
    /// Start of its transmission, or its arrival.
    pub at: Time,
    /// Index of the link.
    pub link: usize,
    /// The end of the link.
    pub end: End,
    /// Whether this end received it; else it sent it.
    pub received: bool,
    /// The packet. Of its SACK blocks, at most three are valid.
    pub packet: Packet,
}

/// The packets of a run at all link ends, in order of time.
#[derive(Clone, Default, Debug)]
pub struct PacketLog {
    packets: Vec<LoggedPacket>,
    most: usize,
    omitted: u64,
}

impl PacketLog {
    /// Returns the packets in order of time.
    #[must_use]
    pub fn packets(&self) -> &[LoggedPacket] {
        &self.packets
    }

    /// Returns the number of packets that were not logged, because the log was full. They are the
    /// last ones.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    fn add(&mut self, packet: LoggedPacket) {
        if self.packets.len() < self.most {
            self.packets.push(packet);
        } else {
            self.omitted += 1;
        }
    }
}

/// The log of a run in progress, shared by the taps of all link ends.
#[derive(Clone, Default)]
pub(crate) struct SharedLog(Arc<Mutex<PacketLog>>);

impl SharedLog {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(PacketLog {
            most,
            ..PacketLog::default()
        })))
    }

    /// Returns a tap for one end of a link.
    pub(crate) fn tap(&self, link: usize, end: End) -> Box<dyn Tap + Send> {
        let log = self.clone();
        Box::new(LogTap { log, link, end })
    }

    /// Returns the log in order of time. Taps report a sent packet when it is queued, so the
    /// packets are sorted here.
    pub(crate) fn into_log(self) -> PacketLog {
        let mut log = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        log.packets.sort_by_key(|packet| packet.at);
        log
    }
}

/// Logs the packets of one end of a link.
struct LogTap {
    log: SharedLog,
    link: usize,
    end: End,
}

impl LogTap {
    fn add(&self, at: Time, received: bool, packet: PacketRef, packets: &PacketStore) {
        let mut log = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.add(LoggedPacket {
            at,
            link: self.link,
            end: self.end,
            received,
            packet: *packets.get(packet),
        });
    }
}

impl Tap for LogTap {
    fn sent(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        self.add(at, false, packet, packets);
    }

    fn received(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        self.add(at, true, packet, packets);
    }
}
