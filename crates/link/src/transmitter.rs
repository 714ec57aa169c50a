//! What clocks packets out.

use bentpipe_types::{BitRate, Bytes, Span};

/// A transmitter of some rate, which knows how long a packet takes.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    redundancy: f64,
    last_length: u32,
    last_time: Span,
}

impl Transmitter {
    /// Bits on the air per bit of packet: `redundancy`.
    pub(crate) fn new(rate: BitRate, redundancy: f64) -> Self {
        Self {
            rate,
            redundancy,
            last_length: 0,
            last_time: Span::ZERO,
        }
    }

    /// How long a packet of `length` bytes takes. Most packets are as long as the one before.
    #[inline]
    pub(crate) fn time(&mut self, length: u32) -> Span {
        if length != self.last_length {
            self.last_length = length;
            self.last_time = self.exact(length);
        }
        self.last_time
    }

    /// How long the packet took that was last asked about.
    pub(crate) fn last_time(&self) -> Span {
        self.last_time
    }

    /// How long a packet of `length` bytes takes, worked out.
    pub(crate) fn exact(&self, length: u32) -> Span {
        if self.redundancy == 1.0 {
            return self.rate.transmission_time(Bytes::new(u64::from(length)));
        }
        let bits = f64::from(length) * 8.0 * self.redundancy;
        Span::from_secs_f64(bits / self.rate.bits_per_second() as f64)
    }
}
