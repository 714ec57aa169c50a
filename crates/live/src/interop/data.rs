//! Generated data, and hashes to compare it.

use bentpipe_wire::payload;
use sha2::{Digest, Sha256};

/// Bytes generated or read at a time.
pub(super) const CHUNK: usize = 64 << 10;

/// A stream of `size` bytes, and the hash of the bytes taken from it.
#[derive(Debug)]
pub(super) struct Source {
    base: u64,
    size: u64,
    taken: u64,
    hash: Sha256,
    chunk: Vec<u8>,
    // Bytes of the chunk that have been taken.
    used: usize,
}

impl Source {
    /// Creates a stream; different keys give different bytes.
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

    pub(super) fn remaining(&self) -> u64 {
        self.size - self.taken
    }

    /// Returns the next bytes, at most [`CHUNK`]; none at the end.
    pub(super) fn peek(&mut self) -> &[u8] {
        if self.used == self.chunk.len() {
            let length = self.remaining().min(CHUNK as u64) as usize;
            self.chunk.resize(length, 0);
            payload::fill(self.base + self.taken, &mut self.chunk);
            self.used = 0;
        }
        &self.chunk[self.used..]
    }

    /// Removes `length` bytes from the stream.
    pub(super) fn take(&mut self, length: usize) {
        self.hash.update(&self.chunk[self.used..self.used + length]);
        self.used += length;
        self.taken += length as u64;
    }

    /// Returns the number and hash of the bytes taken.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            bytes: self.taken,
            hash: hex(self.hash.clone()),
        }
    }
}

/// Bytes that were received.
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

/// Number of bytes, and their SHA-256.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of bytes.
    pub bytes: u64,
    /// SHA-256, in hexadecimal.
    pub hash: String,
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
