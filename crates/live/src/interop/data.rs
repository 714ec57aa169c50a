//! The bytes that are sent, and the hashes that compare them.

use bentpipe_wire::payload;
use sha2::{Digest, Sha256};

/// Bytes produced or read at once.
pub(super) const CHUNK: usize = 64 << 10;

/// A stream of `size` bytes, and the hash of those that were taken from it.
#[derive(Debug)]
pub(super) struct Source {
    base: u64,
    size: u64,
    taken: u64,
    hash: Sha256,
    chunk: Vec<u8>,
    // What of the chunk has been taken.
    used: usize,
}

impl Source {
    /// Streams with different keys have different bytes.
    pub(super) fn new(key: u64, size: u64) -> Self {
        Self {
            base: key << 40,
            size,
            taken: 0,
            hash: Sha256::new(),
            chunk: Vec::new(),
            used: 0,
        }
    }

    pub(super) fn left(&self) -> u64 {
        self.size - self.taken
    }

    /// The next bytes, at most [`CHUNK`]; none at the end.
    pub(super) fn peek(&mut self) -> &[u8] {
        if self.used == self.chunk.len() {
            let length = self.left().min(CHUNK as u64) as usize;
            self.chunk.resize(length, 0);
            payload::fill(self.base + self.taken, &mut self.chunk);
            self.used = 0;
        }
        &self.chunk[self.used..]
    }

    /// So many of them were taken.
    pub(super) fn take(&mut self, length: usize) {
        self.hash.update(&self.chunk[self.used..self.used + length]);
        self.used += length;
        self.taken += length as u64;
    }

    /// What was taken.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            bytes: self.taken,
            hash: hex(self.hash.clone()),
        }
    }
}

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Destination {
    bytes: u64,
    hash: Sha256,
}

impl Destination {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn tally(&self) -> Tally {
        Tally {
            bytes: self.bytes,
            hash: hex(self.hash.clone()),
        }
    }
}

/// How much, and the SHA-256 of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, in hexadecimal.
    pub hash: String,
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
