//! Where the bytes of a socket's two streams are: nowhere in a simulation, in rings where they are real.

use std::fmt::Debug;
use std::net::IpAddr;

use bentpipe_types::{Ctx, PacketRef, PacketStore, filler};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::buffer::{ReceiveBuffer, SendBuffer};
use crate::Accepted;

/// What an application writes.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// So many bytes of the stream's [`filler`]: what every simulated stream consists of.
    Filler(u64),
    /// These.
    Bytes(&'a [u8]),
}

impl Source<'_> {
    /// Bytes.
    #[must_use]
    pub fn length(self) -> u64 {
        match self {
            Self::Filler(length) => length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// What a [`Socket`](super::Socket) does about the bytes of its streams.
///
/// Offsets are those of a stream: byte 0 is the first that its application writes.
pub trait Payload: Debug + Send + Serialize + DeserializeOwned {
    /// Does it keep anything? If not, none of what follows is called for a packet.
    const KEEPS_BYTES: bool;

    /// For a connection with this many bytes of receive buffer.
    fn new(receive_buffer: u64) -> Self;

    /// Packets carry these real addresses: ours, the peer's.
    fn set_ip(&mut self, ip: (IpAddr, IpAddr));

    /// Whatever arrives is read at once by nobody.
    fn set_sink(&mut self);

    /// The next bytes of our stream are written at `at`; those before `acknowledged` are done with.
    fn write(&mut self, acknowledged: u64, at: u64, source: Source<'_>);

    /// Nothing was written from `end` on, after all.
    fn truncate(&mut self, end: u64);

    /// A part of a packet's payload was accepted. False where it doesn't fit, which an accepted part
    /// always does.
    fn store(&mut self, packet: PacketRef, accepted: Accepted, packets: &PacketStore) -> bool;

    /// The next bytes of the peer's stream, from `at` on, which have all arrived, are read into
    /// `out`.
    fn read(&mut self, at: u64, out: &mut [u8]);

    /// The next `length` bytes of the peer's stream are read by nobody.
    fn skip(&mut self, length: u64);

    /// The next `length` bytes of the peer's stream become the next of `to`'s own, at `at`; those of
    /// its own before `acknowledged` are done with.
    fn relay(&mut self, to: &mut Self, acknowledged: u64, at: u64, length: u64);

    /// Gives a packet that the connection has just emitted what belongs beside it.
    fn attach(&self, packet: PacketRef, cx: &mut Ctx<'_>);

    /// Gives back what memory it doesn't need for now; bytes of our stream before `acknowledged` are done
    /// with.
    fn shrink(&mut self, acknowledged: u64);

    /// Bytes of memory it takes.
    fn memory(&self) -> usize;
}

/// A simulated stream: ranges alone. What is written is not kept, and what is read is [`filler`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Ranges;

impl Payload for Ranges {
    const KEEPS_BYTES: bool = false;

    #[inline]
    fn new(_receive_buffer: u64) -> Self {
        Self
    }

    fn set_ip(&mut self, _ip: (IpAddr, IpAddr)) {}

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

/// A real stream: what was written and is not acknowledged, and what has arrived and was not read,
/// each in a ring that grows to what it holds. The connection's buffers bound both.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rings {
    ip: Option<(IpAddr, IpAddr)>,
    sink: bool,
    send: SendBuffer,
    receive: ReceiveBuffer,
}

impl Payload for Rings {
    const KEEPS_BYTES: bool = true;

    fn new(receive_buffer: u64) -> Self {
        Self {
            ip: None,
            sink: false,
            send: SendBuffer::default(),
            receive: ReceiveBuffer::new(receive_buffer),
        }
    }

    fn set_ip(&mut self, ip: (IpAddr, IpAddr)) {
        self.ip = Some(ip);
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
            // A packet of a simulated host that has come here: its bytes are what it stands for.
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
            .give(length, |bytes| to.send.write(acknowledged, bytes));
    }

    fn attach(&self, packet: PacketRef, cx: &mut Ctx<'_>) {
        if let Some(ip) = self.ip {
            cx.packets.set_ip(packet, ip);
        }
        let record = cx.packets.get(packet);
        if record.payload_length > 0 {
            let offset = record.payload_offset;
            let mut complete = true;
            cx.packets.set_payload(packet, |out| {
                complete = self.send.copy(offset, out);
            });
            debug_assert!(complete, "sent what was never written");
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
