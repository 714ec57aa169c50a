//! A pool of reusable buffers for packet bytes.

/// Reference to a buffer of a [`Pool`]. Valid until its last holder releases it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BufferRef(u32);

/// Error: no buffer is free and the pool is at its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolFull {
    /// Memory limit of the pool in bytes.
    pub limit: usize,
}

impl std::fmt::Display for PoolFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "packets take all of the {} bytes they may", self.limit)
    }
}

impl std::error::Error for PoolFull {}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    holders: u32,
}

/// Reference-counted buffers, one per packet. A buffer is written once, so that copies of a packet
/// can share it.
#[derive(Debug)]
pub(crate) struct Pool {
    buffers: Vec<Buffer>,
    free: Vec<u32>,
    /// Capacity of all buffers, free ones included, in bytes.
    allocated: usize,
    limit: usize,
}

/// Smallest capacity of a buffer. Acknowledgments fit, and a flood of empty packets cannot use up
/// the memory with bookkeeping alone.
const SHORTEST: usize = 128;

/// Bookkeeping per buffer, counted against the limit, so that a pool of empty packets is bounded.
const OVERHEAD: usize = size_of::<Buffer>() + size_of::<u32>();

impl Default for Pool {
    /// Limit of 256 MiB; a window at 100 Mbit/s and 600 ms is 7.5 MB.
    fn default() -> Self {
        Self {
            buffers: Vec::new(),
            free: Vec::new(),
            allocated: 0,
            limit: 256 << 20,
        }
    }
}

impl Pool {
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns the allocated memory in bytes.
    pub(crate) fn allocated(&self) -> usize {
        self.allocated + self.buffers.len() * OVERHEAD
    }

    /// Stores a copy of `bytes`, or fails if the limit would be exceeded.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Result<BufferRef, PoolFull> {
        if !self.has_room(bytes.len()) {
            return Err(PoolFull { limit: self.limit });
        }
        Ok(self.fill(bytes.len(), |buffer| buffer.copy_from_slice(bytes)))
    }

    /// Returns a buffer of `length` bytes, filled by `write`. Its initial content is arbitrary.
    pub(crate) fn fill(&mut self, length: usize, write: impl FnOnce(&mut [u8])) -> BufferRef {
        let index = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Buffer::default());
            (self.buffers.len() - 1) as u32
        });
        let buffer = &mut self.buffers[index as usize];
        debug_assert_eq!(buffer.holders, 0);
        buffer.holders = 1;
        let before = buffer.bytes.capacity();
        if length > before || before == 0 {
            // Exact capacity: a hostile packet takes its length, not the next power of two.
            buffer.bytes.clear();
            buffer.bytes.reserve_exact(length.max(SHORTEST));
        }
        buffer.bytes.resize(length, 0);
        self.allocated = self.allocated + buffer.bytes.capacity() - before;
        write(&mut self.buffers[index as usize].bytes);
        BufferRef(index)
    }

    /// Whether a buffer of this length fits into the limit. Releases free buffers if that makes
    /// room.
    fn has_room(&mut self, length: usize) -> bool {
        let length = length.max(SHORTEST);
        let spare = self.free.last().map(|&index| {
            let bytes = &self.buffers[index as usize].bytes;
            bytes.capacity()
        });
        let needed = match spare {
            Some(capacity) => length.saturating_sub(capacity),
            None => length + OVERHEAD,
        };
        if self.allocated() + needed <= self.limit {
            return true;
        }
        // A short packet may be in a large buffer left by a long packet.
        for &index in &self.free {
            let bytes = &mut self.buffers[index as usize].bytes;
            self.allocated -= bytes.capacity();
            *bytes = Vec::new();
        }
        let own = if self.free.is_empty() { OVERHEAD } else { 0 };
        self.allocated() + own + length <= self.limit
    }

    pub(crate) fn bytes(&self, buffer: BufferRef) -> &[u8] {
        &self.buffers[buffer.0 as usize].bytes
    }

    pub(crate) fn retain(&mut self, buffer: BufferRef) {
        self.buffers[buffer.0 as usize].holders += 1;
    }

    pub(crate) fn release(&mut self, buffer: BufferRef) {
        let slot = &mut self.buffers[buffer.0 as usize];
        debug_assert!(slot.holders > 0, "released twice");
        slot.holders -= 1;
        if slot.holders == 0 {
            self.free.push(buffer.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_shared_and_reused() {
        let mut pool = Pool::default();
        let first = pool.copy(b"one").expect("room");
        pool.retain(first);
        pool.release(first);
        let second = pool.copy(b"two").expect("room");
        assert_eq!(pool.bytes(first), b"one");
        assert_eq!(pool.bytes(second), b"two");
        pool.release(first);
        let third = pool.copy(b"3").expect("room");
        assert_eq!(third, first);
        assert_eq!(pool.bytes(third), b"3");
    }

    #[test]
    fn pool_memory_is_bounded_for_any_buffer_lengths() {
        let mut pool = Pool::default();
        pool.set_limit(100_000);
        for round in 0..50 {
            let length = [0, 1, 60_000, 1500, 20][round % 5];
            let mut held = Vec::new();
            while let Ok(buffer) = pool.copy(&vec![7; length]) {
                held.push(buffer);
                assert!(held.len() < 10_000, "{} bytes", pool.allocated());
            }
            assert!(pool.allocated() <= 100_000, "{}", pool.allocated());
            assert!(!held.is_empty(), "length {length}");
            held.into_iter().for_each(|buffer| pool.release(buffer));
        }
    }
}
