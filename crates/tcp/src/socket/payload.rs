//! Storage of the bytes of a socket's streams: none in a simulation, ring buffers for real data.

use std::fmt::Debug;
use std::net::IpAddr;

use bentpipe_types::{Ctx, Flags, IpFields, PacketRef, PacketStore, filler};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::buffer::{ReceiveBuffer, SendBuffer};
use crate::Accepted;

/// Data to be written by an application.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// This many bytes of the stream's [`filler`], of which every simulated stream consists.
    Filler(u64),
    /// These bytes.
    Bytes(&'a [u8]),
}

impl Source<'_> {
    /// Number of bytes.
    #[must_use]
    pub fn length(self) -> u64 {
        match self {
            Self::Filler(length) => length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// Header fields of a socket's packets in real networks that the connection does not set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RealHeader {
    /// Real addresses: ours, and the peer's.
    pub ip: Option<(IpAddr, IpAddr)>,
    /// IP header fields.
    pub fields: IpFields,
    /// Added to the timestamps that we send (RFC 7323 section 5.4), and subtracted from the echoes
    /// that we receive.
    pub timestamp_offset: u32,
}

/// Storage of a [`Socket`](super::Socket)'s streams.
///
/// Offsets are stream offsets: byte 0 is the first that the application writes.
pub trait Payload: Debug + Send + Serialize + DeserializeOwned + 'static {
    /// Whether bytes are stored. If not, no method below is called for a packet.
    const KEEPS_BYTES: bool;

    /// Creates the storage for a connection with this receive buffer, in bytes.
    fn new(receive_buffer: u64) -> Self;

    /// Sets what packets carry in real networks, besides the connection's own fields.
    fn set_header(&mut self, header: RealHeader);

    /// Sets the IP header fields of the packets to be sent, except the hop limit.
    fn set_traffic_class(&mut self, fields: IpFields);

    /// Removes the offset of our timestamps from the echo in an arriving packet.
    fn restore_echo(&self, packet: PacketRef, packets: &mut PacketStore);

    /// Discards received data at once.
    fn set_sink(&mut self);

    /// Appends the next bytes of our stream at `at`; those before `acknowledged` are no longer
    /// needed.
    fn write(&mut self, acknowledged: u64, at: u64, source: Source<'_>);

    /// Removes data written from `end` on.
    fn truncate(&mut self, end: u64);

    /// Stores the accepted part of a packet's payload. Returns false if it does not fit, which
    /// never occurs for an accepted part.
    fn store(&mut self, packet: PacketRef, accepted: Accepted, packets: &PacketStore) -> bool;

    /// Reads the next bytes of the peer's stream, from `at` on, into `out`. They must have arrived.
    fn read(&mut self, at: u64, out: &mut [u8]);

    /// Discards the next `length` bytes of the peer's stream.
    fn skip(&mut self, length: u64);

    /// Moves the next `length` bytes of the peer's stream to the end of `to`'s own stream, at `at`.
    /// `to`'s data before `acknowledged` is no longer needed.
    fn relay(&mut self, to: &mut Self, acknowledged: u64, at: u64, length: u64);

    /// Attaches payload and addresses to a packet just emitted by the connection.
    fn attach(&self, packet: PacketRef, cx: &mut Ctx<'_>);

    /// Frees memory not needed at present; bytes of our stream before `acknowledged` are no longer
    /// needed.
    fn shrink(&mut self, acknowledged: u64);

    /// Allocated memory in bytes.
    fn memory(&self) -> usize;
}

/// A simulated stream of offset ranges: written data is not stored, and read data is [`filler`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Ranges;

impl Payload for Ranges {
    const KEEPS_BYTES: bool = false;

    #[inline]
    fn new(_receive_buffer: u64) -> Self {
        Self
    }

    fn set_header(&mut self, _header: RealHeader) {}

    fn set_traffic_class(&mut self, _fields: IpFields) {}

    fn restore_echo(&self, _packet: PacketRef, _packets: &mut PacketStore) {}

    #[inline]
    fn set_sink(&mut self) {}

    #[inline]
    fn write(&mut self, _acknowledged: u64, _at: u64, _source: Source<'_>) {}

    #[inline]
    fn truncate(&mut self, _end: u64) {}

    #[inline]
    fn store(&mut self, _packet: PacketRef, _accepted: Accepted, _packets: &PacketStore) -> bool {
        true
    }

    fn read(&mut self, at: u64, out: &mut [u8]) {
        filler::fill(at, out);
    }

    #[inline]
    fn skip(&mut self, _length: u64) {}

    #[inline]
    fn relay(&mut self, _to: &mut Self, _acknowledged: u64, _at: u64, _length: u64) {}

    #[inline]
    fn attach(&self, _packet: PacketRef, _cx: &mut Ctx<'_>) {}

    #[inline]
    fn shrink(&mut self, _acknowledged: u64) {}

    fn memory(&self) -> usize {
        0
    }
}

/// A real stream: unacknowledged and unread data, each in a ring that grows as needed. The
/// connection's buffers limit both.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rings {
    header: RealHeader,
    sink: bool,
    send: SendBuffer,
    receive: ReceiveBuffer,
}

impl Payload for Rings {
    const KEEPS_BYTES: bool = true;

    fn new(receive_buffer: u64) -> Self {
        Self {
            header: RealHeader::default(),
            sink: false,
            send: SendBuffer::default(),
            receive: ReceiveBuffer::new(receive_buffer),
        }
    }

    fn set_header(&mut self, header: RealHeader) {
        self.header = header;
    }

    fn set_traffic_class(&mut self, fields: IpFields) {
        let hop_limit = self.header.fields.hop_limit;
        self.header.fields = IpFields {
            hop_limit,
            ..fields
        };
    }

    #[inline]
    fn restore_echo(&self, packet: PacketRef, packets: &mut PacketStore) {
        let offset = self.header.timestamp_offset;
        if offset == 0 || !packets.get(packet).flags.has(Flags::ACK) {
            return;
        }
        let record = packets.get_mut(packet);
        if let Some((value, echo)) = record.timestamps() {
            record.renew_timestamps(value, echo.wrapping_sub(offset));
        }
    }

    fn set_sink(&mut self) {
        self.sink = true;
    }

    fn write(&mut self, acknowledged: u64, at: u64, source: Source<'_>) {
        debug_assert_eq!(at, self.send.end(), "written out of order");
        match source {
            Source::Bytes(bytes) => self.send.write(acknowledged, bytes),
            Source::Filler(length) => {
                let mut piece = [0; 2048];
                let mut done = 0;
                while done < length {
                    let next = (length - done).min(piece.len() as u64);
                    let bytes = &mut piece[..next as usize];
                    filler::fill(at + done, bytes);
                    self.send.write(acknowledged, bytes);
                    done += next;
                }
            }
        }
    }

    fn truncate(&mut self, end: u64) {
        self.send.truncate(end);
    }

    fn store(&mut self, packet: PacketRef, accepted: Accepted, packets: &PacketStore) -> bool {
        if self.sink {
            return true;
        }
        let range = accepted.skip as usize..(accepted.skip + accepted.length) as usize;
        match packets.payload(packet) {
            Some(payload) => payload
                .get(range)
                .is_some_and(|bytes| self.receive.store(accepted.offset, bytes)),
            // A packet of a simulated host has no bytes: its payload is the filler.
            None => {
                let mut bytes = vec![0; accepted.length as usize];
                filler::fill(accepted.offset, &mut bytes);
                self.receive.store(accepted.offset, &bytes)
            }
        }
    }

    fn read(&mut self, at: u64, out: &mut [u8]) {
        debug_assert_eq!(at, self.receive.start(), "read out of order");
        self.receive.take(out);
    }

    fn skip(&mut self, length: u64) {
        if !self.sink {
            self.receive.skip(length);
        }
    }

    fn relay(&mut self, to: &mut Self, acknowledged: u64, at: u64, length: u64) {
        debug_assert_eq!(at, to.send.end(), "written out of order");
        self.receive
            .pass_on(length, |bytes| to.send.write(acknowledged, bytes));
    }

    fn attach(&self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let header = &self.header;
        if let Some(ip) = header.ip {
            cx.packets.set_ip(packet, ip);
        }
        if header.fields != IpFields::default() {
            cx.packets.set_ip_fields(packet, header.fields);
        }
        if header.timestamp_offset != 0 {
            let record = cx.packets.get_mut(packet);
            if let Some((value, echo)) = record.timestamps() {
                record.renew_timestamps(value.wrapping_add(header.timestamp_offset), echo);
            }
        }
        let record = cx.packets.get(packet);
        if record.payload_length > 0 {
            let offset = record.payload_offset;
            let mut complete = true;
            cx.packets.set_payload(packet, |out| {
                complete = self.send.copy(offset, out);
            });
            debug_assert!(complete, "sent data that was never written");
        }
    }

    fn shrink(&mut self, acknowledged: u64) {
        self.send.shrink(acknowledged);
        self.receive.shrink();
    }

    fn memory(&self) -> usize {
        self.send.memory() + self.receive.memory()
    }
}
