//! Captures as devices: one that is played, one that is written.

use std::fs::File;
use std::io;
use std::path::Path;

use bentpipe_types::{Span, Time};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError};

use super::{Batch, Device, Sent};
use crate::Capture;

/// The longest block that is read: a packet and what is said of it.
const LONGEST_BLOCK: usize = 1 << 18;

/// What the timestamps of one interface count.
#[derive(Clone, Copy)]
struct Interface {
    linktype: Linktype,
    ticks_per_second: u64,
}

/// A capture (pcap or pcapng) that is played: each packet is there when it was there then, counted
/// from the first. What is sent to it is gone.
pub struct Replay {
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    start: Time,
    first: Option<u128>,
    next: Option<(Time, Vec<u8>)>,
}

impl Replay {
    /// Plays the file from `start` on.
    ///
    /// # Errors
    /// When the file cannot be read, or is no capture.
    pub fn open(path: &Path, start: Time) -> io::Result<Self> {
        let file = File::open(path)?;
        let reader = pcap_parser::create_reader(LONGEST_BLOCK, file).map_err(of_capture)?;
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
                Err(PcapError::Incomplete(_)) => self.reader.refill().map_err(of_capture)?,
                Err(error) => return Err(of_capture(error)),
            }
        }
        Ok(())
    }
}

fn of_capture<I: std::fmt::Debug>(error: PcapError<I>) -> io::Error {
    // The input that it could not read is no news.
    let message = match error {
        PcapError::HeaderNotRecognized | PcapError::BufferTooSmall => "not a capture",
        PcapError::UnexpectedEof | PcapError::Eof => "the capture ends within a block",
        _ => "the capture has a wrong block",
    };
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The packet of a block, from its IP header on, and when it was: nanoseconds.
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
            // A file of nothing but these shall not fill the memory.
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

/// A device whose every packet is written to a capture.
pub struct Recorder<D> {
    device: D,
    capture: Capture,
}

impl<D: Device> Recorder<D> {
    /// Writes down what passes `device`.
    #[must_use]
    pub fn new(device: D, capture: Capture) -> Self {
        Self { device, capture }
    }

    /// Ends the capture; the device goes on.
    ///
    /// # Errors
    /// Those of the file.
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
