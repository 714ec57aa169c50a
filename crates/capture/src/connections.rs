//! The TCP connections of a capture.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::packet::{Endpoint, Handshake, Segment};
use crate::reader::{CaptureError, Reader};

/// Most connections that a listing holds. Segments of further ones count as other packets.
const MOST_CONNECTIONS: usize = 1 << 16;
/// Packets between two calls of a progress function.
const STEP: u64 = 1 << 16;

/// A TCP connection. Its first end is the one that opened it, or else sent the first segment.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Both ends.
    pub ends: [Endpoint; 2],
    /// Bytes of payload that each end sent, retransmissions included.
    pub payload: [u64; 2],
    /// Segments that each end sent.
    pub segments: [u64; 2],
    /// Options of each end's SYN, if it was captured.
    pub handshakes: [Option<Handshake>; 2],
    /// Times of the first and the last segment in nanoseconds.
    pub times_ns: [i64; 2],
}

/// The connections of a capture, in the order of their first segments.
#[derive(Clone, Default, Debug)]
pub struct Listing {
    /// The connections.
    pub connections: Vec<Connection>,
    /// Packets of the capture.
    pub packets: u64,
    /// Packets that are in none of the connections.
    pub others: u64,
    /// IP bytes of those.
    pub other_bytes: u64,
    /// Whether the file ends within a packet.
    pub cut: bool,
}

/// Segments of one connection, as columns.
#[derive(Clone, Default, Debug)]
pub struct Columns {
    /// Time in nanoseconds since the Unix epoch.
    pub time_ns: Vec<i64>,
    /// The end that sent it: 0 or 1.
    pub sender: Vec<u8>,
    /// Length of the IP packet.
    pub length: Vec<u32>,
    /// Bytes of payload.
    pub payload: Vec<u32>,
    /// Sequence number.
    pub sequence: Vec<u32>,
    /// Acknowledgment number.
    pub acknowledgment: Vec<u32>,
    /// Flags: see [`Segment::flags`].
    pub flags: Vec<u8>,
    /// Window, not scaled.
    pub window: Vec<u16>,
    /// Timestamp value.
    pub timestamp: Vec<u32>,
    /// Timestamp echo reply.
    pub echo: Vec<u32>,
    /// Index of the segment that has a block of selective acknowledgment.
    pub sack_segment: Vec<u32>,
    /// First byte of the block.
    pub sack_from: Vec<u32>,
    /// Byte after the last of the block.
    pub sack_to: Vec<u32>,
    /// Whether segments are missing at the end, because there are more than were asked for.
    pub limited: bool,
}

/// Assigns segments to connections.
#[derive(Default)]
struct Demultiplexer {
    places: FxHashMap<[Endpoint; 2], usize>,
    connections: Vec<Connection>,
}

impl Demultiplexer {
    /// Returns the connection of a segment, and the end that sent it.
    fn place(&mut self, segment: &Segment, time_ns: i64) -> Option<(usize, usize)> {
        let ends = [segment.from, segment.to];
        let known = self.places.get(&ends).map(|place| (*place, 0)).or_else(|| {
            self.places
                .get(&[ends[1], ends[0]])
                .map(|place| (*place, 1))
        });
        let opens = segment.is_syn() && !segment.is_ack();
        // A SYN after data opens a new connection with the ports of an earlier one.
        let known = known.filter(|(place, _)| {
            !opens || self.connections[*place].payload.iter().sum::<u64>() == 0
        });
        if known.is_some() {
            return known;
        }
        if self.connections.len() == MOST_CONNECTIONS {
            return None;
        }
        self.places.remove(&[ends[1], ends[0]]);
        // The end that answers a SYN is not the one that opened the connection.
        let answers = segment.is_syn() && segment.is_ack();
        let (ends, sender) = if answers {
            ([ends[1], ends[0]], 1)
        } else {
            (ends, 0)
        };
        let place = self.connections.len();
        self.places.insert(ends, place);
        self.connections.push(Connection {
            ends,
            payload: [0; 2],
            segments: [0; 2],
            handshakes: [None; 2],
            times_ns: [time_ns; 2],
        });
        Some((place, sender))
    }

    fn count(&mut self, place: usize, sender: usize, segment: &Segment, time_ns: i64) {
        let connection = &mut self.connections[place];
        connection.payload[sender] += u64::from(segment.payload);
        connection.segments[sender] += 1;
        connection.times_ns[1] = time_ns;
        if segment.is_syn() {
            connection.handshakes[sender].get_or_insert(segment.handshake);
        }
    }
}

/// Lists the connections of a capture. `progress` gets the bytes read so far from time to time, and
/// ends the reading with an error.
///
/// # Errors
/// If the file is no capture, or `progress` fails.
pub fn connections<E: From<CaptureError>>(
    path: &Path,
    mut progress: impl FnMut(u64) -> Result<(), E>,
) -> Result<Listing, E> {
    let mut reader = Reader::open(path)?;
    let mut listing = Listing::default();
    let mut demultiplexer = Demultiplexer::default();
    while let Some(packet) = reader.read()? {
        let place = packet
            .segment
            .and_then(|segment| Some((demultiplexer.place(&segment, packet.time_ns)?, segment)));
        match place {
            Some(((place, sender), segment)) => {
                demultiplexer.count(place, sender, &segment, packet.time_ns);
            }
            None => {
                listing.others += 1;
                listing.other_bytes += u64::from(packet.length);
            }
        }
        if reader.packets().is_multiple_of(STEP) {
            progress(reader.bytes_read())?;
        }
    }
    listing.packets = reader.packets();
    listing.cut = reader.is_cut();
    listing.connections = demultiplexer.connections;
    Ok(listing)
}

/// Returns the first segments of a connection, at most `most`: that with the index `wanted` in the
/// listing. `progress` is as in [`connections`].
///
/// # Errors
/// If the file is no capture, or `progress` fails.
pub fn segments<E: From<CaptureError>>(
    path: &Path,
    wanted: usize,
    most: usize,
    mut progress: impl FnMut(u64) -> Result<(), E>,
) -> Result<Columns, E> {
    let mut reader = Reader::open(path)?;
    let mut demultiplexer = Demultiplexer::default();
    let mut columns = Columns::default();
    while let Some(packet) = reader.read()? {
        if reader.packets().is_multiple_of(STEP) {
            progress(reader.bytes_read())?;
        }
        let Some(segment) = packet.segment else {
            continue;
        };
        let Some((place, sender)) = demultiplexer.place(&segment, packet.time_ns) else {
            continue;
        };
        demultiplexer.count(place, sender, &segment, packet.time_ns);
        if place != wanted {
            continue;
        }
        if columns.time_ns.len() == most {
            columns.limited = true;
            break;
        }
        columns.push(&segment, sender, packet.time_ns, packet.length);
    }
    Ok(columns)
}

impl Columns {
    fn push(&mut self, segment: &Segment, sender: usize, time_ns: i64, length: u32) {
        let index = u32::try_from(self.time_ns.len()).unwrap_or(u32::MAX);
        self.time_ns.push(time_ns);
        self.sender.push(u8::from(sender == 1));
        self.length.push(length);
        self.payload.push(segment.payload);
        self.sequence.push(segment.sequence);
        self.acknowledgment.push(segment.acknowledgment);
        self.flags.push(segment.flags);
        self.window.push(segment.window);
        let (value, echo) = segment.timestamps.unwrap_or_default();
        self.timestamp.push(value);
        self.echo.push(echo);
        for (from, to) in &segment.sack[..usize::from(segment.sack_blocks)] {
            self.sack_segment.push(index);
            self.sack_from.push(*from);
            self.sack_to.push(*to);
        }
    }
}
