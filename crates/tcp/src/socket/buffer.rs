//! The bytes of a stream, while they are somebody's to send again or to read.
//!
//! Inside the protocol code a payload is a range of offsets. These two keep the bytes that the
//! offsets stand for: what the application wrote and the peer has not acknowledged, and what the
//! peer sent and the application has not read.

use serde::{Deserialize, Serialize};

/// Bytes addressed by their offset in a stream: offset `n` lies in slot `n` modulo the length, a
/// power of two. It doubles when the range that it holds outgrows it, and never exceeds what its
/// owner asks for.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ring {
    slots: Vec<u8>,
}

/// The least that a ring takes once it holds anything.
const FIRST_LENGTH: u64 = 4096;

impl Ring {
    /// Makes room for the offsets `start..end`, of which `start..kept` are to stay.
    fn reserve(&mut self, start: u64, kept: u64, end: u64) {
        let needed = end - start;
        if needed <= self.slots.len() as u64 {
            return;
        }
        let length = needed.max(FIRST_LENGTH).next_power_of_two() as usize;
        let mut larger = Self {
            slots: vec![0; length],
        };
        let mut at = start;
        while at < kept {
            let piece = self.piece(at, kept - at);
            let bytes = &self.slots[piece];
            larger.write(at, bytes);
            at += bytes.len() as u64;
        }
        *self = larger;
    }

    /// The slots of up to `length` bytes from `offset` on, as far as they lie in one run.
    fn piece(&self, offset: u64, length: u64) -> std::ops::Range<usize> {
        let at = (offset & (self.slots.len() as u64 - 1)) as usize;
        let end = (at as u64 + length).min(self.slots.len() as u64) as usize;
        at..end
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.slots.len(), "more than the ring holds");
        let mut done = 0;
        while done < bytes.len() {
            let piece = self.piece(offset + done as u64, (bytes.len() - done) as u64);
            let next = done + piece.len();
            self.slots[piece].copy_from_slice(&bytes[done..next]);
            done = next;
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let piece = self.piece(offset + done as u64, (out.len() - done) as u64);
            let next = done + piece.len();
            out[done..next].copy_from_slice(&self.slots[piece]);
            done = next;
        }
    }
}

/// What was written and is not acknowledged.
///
/// The connection's send buffer bounds it: nobody writes more than
/// [`Connection::writable`](crate::Connection::writable) takes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SendBuffer {
    ring: Ring,
    start: u64,
    end: u64,
}

impl SendBuffer {
    /// Appends bytes, dropping those before `acknowledged`.
    pub fn write(&mut self, acknowledged: u64, bytes: &[u8]) {
        self.start = acknowledged.clamp(self.start, self.end);
        let end = self.end + bytes.len() as u64;
        self.ring.reserve(self.start, self.end, end);
        self.ring.write(self.end, bytes);
        self.end = end;
    }

    /// Forgets what was written from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.end = end.clamp(self.start, self.end);
    }

    /// The offset of the next byte to be written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Fills `out` with the bytes from `offset` on. False, and nothing is filled, if they are not
    /// there: never written, or acknowledged long ago.
    pub fn copy(&self, offset: u64, out: &mut [u8]) -> bool {
        let end = offset.saturating_add(out.len() as u64);
        let held = out.is_empty() || (self.start <= offset && end <= self.end);
        if held {
            self.ring.read(offset, out);
        }
        held
    }

    /// Drops what is before `acknowledged`, and with the last byte the memory.
    pub(super) fn shrink(&mut self, acknowledged: u64) {
        self.start = acknowledged.clamp(self.start, self.end);
        if self.start == self.end {
            self.ring = Ring::default();
        }
    }

    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        self.ring.slots.len()
    }
}

/// What has arrived and was not read, with gaps where something is missing.
///
/// The connection says which bytes are in order; this only keeps them. The receive window bounds it:
/// what lies further ahead of what was read than `limit` is refused.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReceiveBuffer {
    ring: Ring,
    limit: u64,
    start: u64,
    highest: u64,
}

impl ReceiveBuffer {
    /// For a connection with a receive buffer of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            ring: Ring::default(),
            limit,
            start: 0,
            highest: 0,
        }
    }

    /// Keeps bytes that the connection has accepted at `offset`. False if they do not fit, which an
    /// accepted range always does.
    pub fn store(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let end = offset.saturating_add(bytes.len() as u64);
        if offset < self.start || end - self.start > self.limit {
            return false;
        }
        let highest = self.highest.max(end);
        self.ring.reserve(self.start, self.highest, highest);
        self.ring.write(offset, bytes);
        self.highest = highest;
        true
    }

    /// The offset of the first byte that was not read.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Lets go of the next `length` bytes, all of them in order.
    pub(super) fn skip(&mut self, length: u64) {
        debug_assert!(self.start + length <= self.highest, "not arrived");
        self.start += length;
    }

    /// Hands on the next `length` bytes, all of them in order, in pieces.
    pub(super) fn give(&mut self, length: u64, mut take: impl FnMut(&[u8])) {
        debug_assert!(self.start + length <= self.highest, "not arrived");
        let mut done = 0;
        while done < length {
            let piece = self.ring.piece(self.start + done, length - done);
            let bytes = &self.ring.slots[piece];
            take(bytes);
            done += bytes.len() as u64;
        }
        self.start += length;
    }

    /// Gives the memory back, if nothing is in it.
    pub(super) fn shrink(&mut self) {
        if self.highest <= self.start {
            self.ring = Ring::default();
        }
    }

    /// Takes the next `out.len()` bytes, all of them in order.
    pub fn take(&mut self, out: &mut [u8]) {
        debug_assert!(self.start + out.len() as u64 <= self.highest, "not arrived");
        if out.is_empty() {
            return;
        }
        self.ring.read(self.start, out);
        self.start += out.len() as u64;
    }

    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        self.ring.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bentpipe_types::filler::fill(offset, &mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_can_be_sent_until_it_is_acknowledged() {
        let mut buffer = SendBuffer::default();
        let mut end = 0;
        // Grows twice, and wraps many times, with 10 kB held.
        for step in 0..200 {
            let acknowledged = end - end.min(10_000);
            buffer.write(acknowledged, &pattern(end, 700 + step));
            end += 700 + step as u64;
            let mut out = vec![0; (end - acknowledged) as usize];
            assert!(buffer.copy(acknowledged, &mut out));
            assert_eq!(out, pattern(acknowledged, out.len()));
        }
        assert_eq!(buffer.memory(), 16_384);
        let mut out = [0; 2];
        assert!(!buffer.copy(end - 1, &mut out), "beyond what was written");
        assert!(!buffer.copy(0, &mut out), "acknowledged long ago");
        assert!(!buffer.copy(u64::MAX, &mut out));
    }

    #[test]
    fn what_arrives_ahead_of_a_gap_waits_for_it() {
        let mut buffer = ReceiveBuffer::new(100_000);
        assert!(buffer.store(50_000, &pattern(50_000, 30_000)));
        assert!(buffer.store(0, &pattern(0, 50_000)));
        let mut out = vec![0; 80_000];
        buffer.take(&mut out[..1]);
        buffer.take(&mut out[1..]);
        assert_eq!(out, pattern(0, 80_000));
        assert!(!buffer.store(79_999, &[0; 2]), "read already");
        assert!(!buffer.store(180_000, &[0]), "beyond the window");
        assert!(!buffer.store(u64::MAX, &[0]));
        assert!(buffer.store(179_999, &[0]));
    }

    #[test]
    fn nothing_is_kept_for_a_connection_that_carries_nothing() {
        let mut out = [];
        let buffer = SendBuffer::default();
        assert!(buffer.copy(0, &mut out));
        assert_eq!(buffer.memory() + ReceiveBuffer::new(1 << 20).memory(), 0);
    }
}
