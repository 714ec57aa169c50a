//! What clocks packets out.

use bentpipe_types::{BitRate, Bytes, Span};

/// A transmitter of some rate, which knows how long a packet takes.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    redundancy: f64,
}

/// The length of the packet before, and how long it took: most packets are as long as the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    pub(crate) time: Span,
    length: u32,
}

impl Recent {
    /// How long a packet of `length` bytes takes.
    #[inline]
    pub(crate) fn time(&mut self, length: u32, transmitter: &Transmitter) -> Span {
        if length != self.length {
            self.length = length;
            self.time = transmitter.exact(length);
        }
        self.time
    }
}

impl Transmitter {
    /// Bits on the air per bit of packet: `redundancy`.
    pub(crate) fn new(rate: BitRate, redundancy: f64) -> Self {
        Self { rate, redundancy }
    }

    /// Does every packet take some time, a nanosecond at least? At 8 Gbit/s each byte does.
    #[inline]
    pub(crate) fn takes_time(&self) -> bool {
        self.rate.bits_per_second() <= 8_000_000_000 && self.redundancy >= 1.0
    }

    /// How long a packet of `length` bytes takes, worked out.
    #[inline(never)]
    pub(crate) fn exact(&self, length: u32) -> Span {
        if self.redundancy == 1.0 {
            return self.rate.transmission_time(Bytes::new(u64::from(length)));
        }
        let bits = f64::from(length) * 8.0 * self.redundancy;
        Span::from_secs_f64(bits / self.rate.bits_per_second() as f64)
    }
}
