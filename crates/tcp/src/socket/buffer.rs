//! Buffers for the bytes of a socket's streams.
//!
//! The protocol code treats payload as a range of stream offsets. These buffers hold the bytes:
//! data written and not acknowledged, and data received and not read.

use std::mem;

use serde::{Deserialize, Serialize};

use super::spare_buffers;

/// Bytes addressed by their stream offset: offset `n` is in slot `n` modulo the length, a power of
/// two. It doubles when the range no longer fits, and never exceeds what its owner requests.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ring {
    slots: Vec<u8>,
}

/// Minimum size of a ring that is not empty.
const FIRST_LENGTH: u64 = 4096;

impl Ring {
    /// Makes room for the offsets `start..end`, and keeps `start..kept`.
    fn reserve(&mut self, start: u64, kept: u64, end: u64) {
        let needed = end - start;
        if needed <= self.slots.len() as u64 {
            return;
        }
        let length = needed.max(FIRST_LENGTH).next_power_of_two() as usize;
        let mut larger = Self {
            slots: spare_buffers::take(length),
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

    /// The contiguous slots of up to `length` bytes from `offset` on.
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

impl Drop for Ring {
    fn drop(&mut self) {
        spare_buffers::give(mem::take(&mut self.slots));
    }
}

/// Data that was written and is not acknowledged.
///
/// Its size is limited by the connection's send buffer: no more may be written than
/// [`Connection::writable`](crate::Connection::writable) allows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SendBuffer {
    ring: Ring,
    start: u64,
    end: u64,
}

impl SendBuffer {
    /// Appends bytes, and drops those before `acknowledged`.
    pub fn write(&mut self, acknowledged: u64, bytes: &[u8]) {
        self.start = acknowledged.clamp(self.start, self.end);
        let end = self.end + bytes.len() as u64;
        self.ring.reserve(self.start, self.end, end);
        self.ring.write(self.end, bytes);
        self.end = end;
    }

    /// Removes data written from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.end = end.clamp(self.start, self.end);
    }

    /// The offset of the next byte to be written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Fills `out` with the bytes from `offset` on. Returns false and fills nothing if they are not
    /// present: never written, or already acknowledged.
    pub fn copy(&self, offset: u64, out: &mut [u8]) -> bool {
        let end = offset.saturating_add(out.len() as u64);
        let held = out.is_empty() || (self.start <= offset && end <= self.end);
        if held {
            self.ring.read(offset, out);
        }
        held
    }

    /// Drops data before `acknowledged`, and frees the memory if nothing is left.
    pub(super) fn shrink(&mut self, acknowledged: u64) {
        self.start = acknowledged.clamp(self.start, self.end);
        if self.start == self.end {
            self.ring = Ring::default();
        }
    }

    /// Allocated memory in bytes.
    pub fn memory(&self) -> usize {
        self.ring.slots.len()
    }
}

/// Data that has arrived and was not read, possibly with gaps.
///
/// The connection knows which bytes are in order. The size is limited by the receive window: data
/// more than `limit` ahead of the reader is refused.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReceiveBuffer {
    ring: Ring,
    limit: u64,
    start: u64,
    highest: u64,
}

impl ReceiveBuffer {
    /// Creates a buffer for a connection with a receive buffer of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            ring: Ring::default(),
            limit,
            start: 0,
            highest: 0,
        }
    }

    /// Stores bytes accepted at `offset`. Returns false if they do not fit, which never occurs for
    /// an accepted range.
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

    /// The offset of the first unread byte.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Drops the next `length` bytes, which must be in order.
    pub(super) fn skip(&mut self, length: u64) {
        debug_assert!(self.start + length <= self.highest, "not arrived");
        self.start += length;
    }

    /// Passes the next `length` bytes, which must be in order, to `take`, in pieces.
    pub(super) fn pass_on(&mut self, length: u64, mut take: impl FnMut(&[u8])) {
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

    /// Frees the memory, if nothing is in it.
    pub(super) fn shrink(&mut self) {
        if self.highest <= self.start {
            self.ring = Ring::default();
        }
    }

    /// Reads the next `out.len()` bytes, which must be in order.
    pub fn take(&mut self, out: &mut [u8]) {
        debug_assert!(self.start + out.len() as u64 <= self.highest, "not arrived");
        if out.is_empty() {
            return;
        }
        self.ring.read(self.start, out);
        self.start += out.len() as u64;
    }

    /// Allocated memory in bytes.
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
    fn written_data_is_available_until_acknowledged() {
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
    fn out_of_order_data_is_stored() {
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
    fn empty_buffers_use_no_memory() {
        let mut out = [];
        let buffer = SendBuffer::default();
        assert!(buffer.copy(0, &mut out));
        assert_eq!(buffer.memory() + ReceiveBuffer::new(1 << 20).memory(), 0);
    }
}
