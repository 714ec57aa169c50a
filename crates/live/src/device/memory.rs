//! A pair of in-memory devices for tests: packets sent by one are received by the other.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_types::Time;

use super::{Batch, Device, Sent};

type Queue = Arc<Mutex<VecDeque<(Time, Vec<u8>)>>>;

/// Most packets that wait on each side; further ones are refused.
const CAPACITY: usize = 10_000;

/// One of a pair of devices.
#[derive(Clone, Debug)]
pub struct Memory {
    inward: Queue,
    outward: Queue,
}

/// Creates a pair of connected devices.
#[must_use]
pub fn memory_pair() -> (Memory, Memory) {
    let (one, other) = (Queue::default(), Queue::default());
    let near = Memory {
        inward: Arc::clone(&one),
        outward: Arc::clone(&other),
    };
    let far = Memory {
        inward: other,
        outward: one,
    };
    (near, far)
}

impl Memory {
    /// Takes the next packet sent by the other side, with its sending time.
    pub fn take(&self) -> Option<(Time, Vec<u8>)> {
        let mut inward = self.inward.lock().unwrap_or_else(PoisonError::into_inner);
        inward.pop_front()
    }
}

impl Device for Memory {
    fn receive(&mut self, now: Time, batch: &mut Batch) -> io::Result<bool> {
        let mut inward = self.inward.lock().unwrap_or_else(PoisonError::into_inner);
        if inward.front().is_none_or(|(at, _)| *at > now) {
            return Ok(false);
        }
        let Some((_, packet)) = inward.pop_front() else {
            return Ok(false);
        };
        batch.put(&packet);
        Ok(true)
    }

    fn send(&mut self, now: Time, packet: &[u8]) -> io::Result<Sent> {
        let mut outward = self.outward.lock().unwrap_or_else(PoisonError::into_inner);
        if outward.len() >= CAPACITY {
            return Ok(Sent::Refused);
        }
        outward.push_back((now, packet.to_vec()));
        Ok(Sent::Taken)
    }

    fn next_arrival(&self) -> Option<Time> {
        let inward = self.inward.lock().unwrap_or_else(PoisonError::into_inner);
        inward.front().map(|(at, _)| *at)
    }
}
