//! Packets of a capture file, one by one.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError};

use crate::packet::{Packet, packet};

/// Longest block that is read: a packet and its metadata. Captures of segmentation offload have
/// packets of up to 64 KiB, and loopback interfaces with BIG TCP up to 512 KiB.
const LONGEST_BLOCK: usize = 1 << 20;
/// Most interfaces of a section. It limits memory for a file of nothing but interfaces.
const MOST_INTERFACES: usize = 1 << 12;
const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;

/// The reason why a file cannot be read as a capture.
#[derive(Debug)]
pub enum CaptureError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file does not begin as a capture does.
    NotACapture,
    /// The block after so many packets is invalid.
    InvalidBlock {
        /// Packets before it.
        packets: u64,
    },
    /// The capture has a link type that is not supported.
    LinkType(i32),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(formatter),
            Self::NotACapture => formatter.write_str("expected a capture (pcap or pcapng)"),
            Self::InvalidBlock { packets } => write!(
                formatter,
                "expected a block of a capture after packet {packets}, got invalid data"
            ),
            Self::LinkType(number) => write!(
                formatter,
                "expected packets on Ethernet, Linux cooked, loopback, PPP or raw IP, got link type {number}"
            ),
        }
    }
}

impl std::error::Error for CaptureError {}

/// Link type and clock of one interface.
#[derive(Clone, Copy)]
struct Interface {
    linktype: Linktype,
    ticks_per_second: u64,
    offset_s: i64,
}

/// Counts the bytes that are read from a file.
struct Counted<R> {
    input: R,
    read: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read
            .fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(count)
    }
}

/// Reads a capture packet by packet.
pub struct Reader {
    blocks: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    read: std::sync::Arc<std::sync::atomic::AtomicU64>,
    packets: u64,
    cut: bool,
}

impl Reader {
    /// Opens a capture.
    ///
    /// # Errors
    /// If the file cannot be read, or does not begin as a capture does.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::new(File::open(path).map_err(CaptureError::Io)?)
    }

    /// Reads a capture from any input.
    ///
    /// # Errors
    /// If the input does not begin as a capture does.
    pub fn new(input: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let read = std::sync::Arc::default();
        let input = Counted {
            input,
            read: std::sync::Arc::clone(&read),
        };
        let blocks =
            pcap_parser::create_reader(LONGEST_BLOCK, input).map_err(|error| match error {
                PcapError::ReadError => CaptureError::Io(io::Error::other("cannot be read")),
                _ => CaptureError::NotACapture,
            })?;
        Ok(Self {
            blocks,
            interfaces: Vec::new(),
            read,
            packets: 0,
            cut: false,
        })
    }

    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.read.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns the number of packets so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether the file ended within a block, as the file of an interrupted capture does.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the next packet, or `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or has an invalid block.
    pub fn read(&mut self) -> Result<Option<Packet>, CaptureError> {
        loop {
            match self.blocks.next() {
                Ok((offset, block)) => {
                    let found = of_block(&block, &mut self.interfaces);
                    self.blocks.consume(offset);
                    if let Some(found) = found? {
                        self.packets += 1;
                        return Ok(Some(found));
                    }
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::UnexpectedEof) => {
                    self.cut = true;
                    return Ok(None);
                }
                Err(PcapError::Incomplete(_)) => {
                    if self.blocks.reader_exhausted() {
                        self.cut = true;
                        return Ok(None);
                    }
                    self.blocks.refill().map_err(|error| match error {
                        PcapError::ReadError => {
                            CaptureError::Io(io::Error::other("cannot be read"))
                        }
                        _ => CaptureError::InvalidBlock {
                            packets: self.packets,
                        },
                    })?;
                }
                Err(PcapError::HeaderNotRecognized) => return Err(CaptureError::NotACapture),
                Err(PcapError::ReadError) => {
                    return Err(CaptureError::Io(io::Error::other("cannot be read")));
                }
                Err(_) => {
                    return Err(CaptureError::InvalidBlock {
                        packets: self.packets,
                    });
                }
            }
        }
    }
}

/// Returns the packet of a block, if it has one.
fn of_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Packet>, CaptureError> {
    let (interface, ticks, data, captured, length) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let ticks_per_second = if header.is_nanosecond_precision() {
                1_000_000_000
            } else {
                1_000_000
            };
            *interfaces = vec![Interface {
                linktype: header.network,
                ticks_per_second,
                offset_s: i64::from(header.thiszone),
            }];
            return Ok(None);
        }
        PcapBlockOwned::Legacy(found) => {
            let Some(interface) = interfaces.first() else {
                return Ok(None);
            };
            let seconds = i128::from(found.ts_sec) * i128::from(interface.ticks_per_second);
            let ticks = seconds + i128::from(found.ts_usec);
            (interface, ticks, found.data, found.caplen, found.origlen)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return Ok(None);
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() < MOST_INTERFACES {
                interfaces.push(Interface {
                    linktype: description.linktype,
                    ticks_per_second: description.ts_resolution().unwrap_or(1_000_000).max(1),
                    offset_s: description.ts_offset(),
                });
            }
            return Ok(None);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(found)) => {
            let Some(interface) = interfaces.get(found.if_id as usize) else {
                return Ok(None);
            };
            let ticks = i128::from(found.ts_high) << 32 | i128::from(found.ts_low);
            (interface, ticks, found.data, found.caplen, found.origlen)
        }
        PcapBlockOwned::NG(_) => return Ok(None),
    };
    let data = data.get(..captured as usize).unwrap_or(data);
    let since = ticks * NANOSECONDS_PER_SECOND / i128::from(interface.ticks_per_second);
    let time = since + i128::from(interface.offset_s) * NANOSECONDS_PER_SECOND;
    let time_ns = i64::try_from(time).unwrap_or(i64::MAX);
    packet(interface.linktype, data, length, time_ns)
        .map(Some)
        .ok_or(CaptureError::LinkType(interface.linktype.0))
}
