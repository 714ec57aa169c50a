//! A modem's data compression, as a ratio.

use bentpipe_link::{Framing, Tally};
use bentpipe_types::{Bytes, PacketRef, PacketStore};

/// V.42bis as an average ratio. It compresses a stream, not packets; lost frames are repeated by
/// the modems' V.42, which is not modelled.
#[derive(Debug)]
pub struct DataCompression {
    headers: f64,
    payload: f64,
    /// Rounding remainder, which keeps the average exact.
    rest: f64,
    bytes_in: u64,
    bytes_out: u64,
}

impl DataCompression {
    /// Creates a compressor with ratios of output to input for headers and payload. Ratios are
    /// limited to 0 to 1, since V.42bis sends incompressible data unchanged.
    #[must_use]
    pub fn new(headers: f64, payload: f64) -> Self {
        let ratio = |value: f64| if value >= 0.0 { value.min(1.0) } else { 1.0 };
        Self {
            headers: ratio(headers),
            payload: ratio(payload),
            rest: 0.0,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Headers from 40 to 16 bytes (samaraweera1999, section 3.3); payloads unchanged, since they
    /// may be compressed or encrypted.
    #[must_use]
    pub fn v42bis() -> Self {
        Self::new(16.0 / 40.0, 1.0)
    }

    /// Returns the bytes received and sent.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_in, self.bytes_out)
    }
}

impl Framing for DataCompression {
    fn transmit(&mut self, packet: PacketRef, length: Bytes, packets: &mut PacketStore) -> Bytes {
        let payload = u64::from(packets.get(packet).payload_length).min(length.get());
        let headers = length.get() - payload;
        let exact = headers as f64 * self.headers + payload as f64 * self.payload + self.rest;
        let sent = (exact as u64).max(1).min(length.get().max(1));
        self.rest = (exact - sent as f64).clamp(-1.0, 1.0);
        self.bytes_in += length.get();
        self.bytes_out += sent;
        Bytes::new(sent)
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "data_bytes_in", self.bytes_in);
        each(None, "data_bytes_out", self.bytes_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, ack};

    #[test]
    fn the_mean_compression_equals_the_ratio() {
        let mut bench = Bench::default();
        let mut modem = DataCompression::v42bis();
        let mut send = |payload: u16, header: u64| {
            let packet = ack(1).payload(payload).insert(&mut bench.packets);
            let length = Bytes::new(header + u64::from(payload));
            modem.transmit(packet, length, &mut bench.packets).get()
        };
        assert_eq!(send(0, 40), 16);
        assert_eq!(send(1000, 40), 1016);
        let sum: u64 = (0..100).map(|_| send(0, 52)).sum();
        assert_eq!(sum, 2080); // 20.8 each
    }

    #[test]
    fn invalid_ratios_disable_compression() {
        let mut bench = Bench::default();
        let packet = ack(1).insert(&mut bench.packets);
        for ratio in [f64::NAN, -1.0, 2.0] {
            let mut modem = DataCompression::new(ratio, ratio);
            let sent = modem.transmit(packet, Bytes::new(40), &mut bench.packets);
            assert_eq!(sent, Bytes::new(40), "{ratio}");
        }
    }
}
