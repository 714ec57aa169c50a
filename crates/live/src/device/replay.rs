//! Captures as devices: [`Replay`] plays one, [`Recorder`] writes one.

use std::fs::File;
use std::io;
use std::path::Path;

use bentpipe_types::{Span, Time};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError};

use super::{Batch, Device, Sent};
use crate::Capture;

/// Longest block that is read: a packet and its metadata.
const LONGEST_BLOCK: usize = 1 << 18;

/// Link type and timestamp unit of one interface.
#[derive(Clone, Copy)]
struct Interface {
    linktype: Linktype,
    ticks_per_second: u64,
}

/// A device that plays a capture (pcap or pcapng). Packets are readable at their original times,
/// counted from the first. Packets sent to it are discarded.
pub struct Replay {
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    start: Time,
    first: Option<u128>,
    next: Option<(Time, Vec<u8>)>,
}

impl Replay {
    /// Opens a capture and plays it from `start` on.
    ///
    /// # Errors
    /// If the file cannot be read or is not a capture.
    pub fn open(path: &Path, start: Time) -> io::Result<Self> {
        let file = File::open(path)?;
        let reader = pcap_parser::create_reader(LONGEST_BLOCK, file).map_err(capture_error)?;
        let mut replay = Self {
            reader,
            interfaces: Vec::new(),
            start,
            first: None,
            next: None,
        };
        replay.read_next()?;
        Ok(replay)
    }

    fn read_next(&mut self) -> io::Result<()> {
        self.next = None;
        while self.next.is_none() {
            match self.reader.next() {
                Ok((offset, block)) => {
                    let packet = packet_of(&block, &mut self.interfaces);
                    if let Some((nanoseconds, packet)) = packet {
                        let first = *self.first.get_or_insert(nanoseconds);
                        let since = u64::try_from(nanoseconds.saturating_sub(first));
                        let at = self.start + Span::from_nanos(since.unwrap_or(u64::MAX));
                        self.next = Some((at, packet));
                    }
                    self.reader.consume(offset);
                }
                Err(PcapError::Eof) => return Ok(()),
                Err(PcapError::Incomplete(_)) => self.reader.refill().map_err(capture_error)?,
                Err(error) => return Err(capture_error(error)),
            }
        }
        Ok(())
    }
}

fn capture_error<I: std::fmt::Debug>(error: PcapError<I>) -> io::Error {
    // The parser's message contains the unread input, which is not useful to the user.
    let message = match error {
        PcapError::HeaderNotRecognized | PcapError::BufferTooSmall => "not a capture",
        PcapError::UnexpectedEof | PcapError::Eof => "the capture ends within a block",
        _ => "the capture has an invalid block",
    };
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Returns the packet of a block, from its IP header on, and its timestamp in nanoseconds.
fn packet_of(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
) -> Option<(u128, Vec<u8>)> {
    let (interface, ticks, data, captured) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            *interfaces = vec![Interface {
                linktype: header.network,
                ticks_per_second: if header.is_nanosecond_precision() {
                    1_000_000_000
                } else {
                    1_000_000
                },
            }];
            return None;
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = *interfaces.first()?;
            let seconds = u128::from(packet.ts_sec) * u128::from(interface.ticks_per_second);
            let ticks = seconds + u128::from(packet.ts_usec);
            (interface, ticks, packet.data, packet.caplen)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return None;
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            // Bounds the memory for a file with nothing but interface blocks.
            if interfaces.len() < 1 << 16 {
                interfaces.push(Interface {
                    linktype: description.linktype,
                    ticks_per_second: description.ts_resolution().unwrap_or(1_000_000).max(1),
                });
            }
            return None;
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = *interfaces.get(packet.if_id as usize)?;
            let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
            (interface, ticks, packet.data, packet.caplen)
        }
        PcapBlockOwned::NG(_) => return None,
    };
    let data = data.get(..captured as usize).unwrap_or(data);
    let packet = match interface.linktype {
        Linktype::ETHERNET => data.get(14..)?,
        _ => data,
    };
    let nanoseconds = ticks * 1_000_000_000 / u128::from(interface.ticks_per_second);
    Some((nanoseconds, packet.to_vec()))
}

impl Device for Replay {
    fn receive(&mut self, now: Time, batch: &mut Batch) -> io::Result<bool> {
        let Some((_, packet)) = self.next.take_if(|(at, _)| *at <= now) else {
            return Ok(false);
        };
        batch.put(&packet);
        self.read_next()?;
        Ok(true)
    }

    fn send(&mut self, _now: Time, _packet: &[u8]) -> io::Result<Sent> {
        Ok(Sent::Taken)
    }

    fn next_arrival(&self) -> Option<Time> {
        self.next.as_ref().map(|(at, _)| *at)
    }
}

/// A device wrapper that writes every packet to a capture.
pub struct Recorder<D> {
    device: D,
    capture: Capture,
}

impl<D: Device> Recorder<D> {
    /// Records the packets of `device`.
    #[must_use]
    pub fn new(device: D, capture: Capture) -> Self {
        Self { device, capture }
    }

    /// Completes the capture and returns the device.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<D> {
        self.capture.finish()?;
        Ok(self.device)
    }
}

impl<D: Device> Device for Recorder<D> {
    fn receive(&mut self, now: Time, batch: &mut Batch) -> io::Result<bool> {
        let any = self.device.receive(now, batch)?;
        if any {
            for packet in batch.packets() {
                self.capture.received(now, packet)?;
            }
        }
        Ok(any)
    }

    fn send(&mut self, now: Time, packet: &[u8]) -> io::Result<Sent> {
        self.capture.sent(now, packet)?;
        self.device.send(now, packet)
    }

    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.device.descriptor()
    }

    fn next_arrival(&self) -> Option<Time> {
        self.device.next_arrival()
    }
}
