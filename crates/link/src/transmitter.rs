//! Transmission times.

use bentpipe_types::{BitRate, Bytes, Span};

/// A transmitter of constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    redundancy: f64,
}

/// Length and transmission time of the previous packet: most packets have the same length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    pub(crate) time: Span,
    length: u32,
}

impl Recent {
    /// Returns the transmission time of a packet of `length` bytes.
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
    /// Creates a transmitter with `redundancy` transmitted bits per bit of packet.
    pub(crate) fn new(rate: BitRate, redundancy: f64) -> Self {
        Self { rate, redundancy }
    }

    /// Whether every packet takes at least a nanosecond. At 8 Gbit/s each byte does.
    #[inline]
    pub(crate) fn takes_time(&self) -> bool {
        self.rate.bits_per_second() <= 8_000_000_000 && self.redundancy >= 1.0
    }

    /// Computes the transmission time of a packet of `length` bytes.
    #[inline(never)]
    pub(crate) fn exact(&self, length: u32) -> Span {
        if self.redundancy == 1.0 {
            return self.rate.transmission_time(Bytes::new(u64::from(length)));
        }
        let bits = f64::from(length) * 8.0 * self.redundancy;
        Span::from_secs_f64(bits / self.rate.bits_per_second() as f64)
    }
}
