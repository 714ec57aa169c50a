//! The decompressor (RFC 1144 section 3.2.4).

use std::fmt;

use super::format::{
    Headers, NEW_ACKNOWLEDGMENT, NEW_CONNECTION, NEW_IDENTIFICATION, NEW_SEQUENCE, NEW_WINDOW, PSH,
    PUSH, PacketType, SPECIAL_DATA, SPECIAL_ECHO, SPECIALS, SlotsError, URG, URGENT,
};
use crate::tcp;

/// Reason why a frame yields no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecompressError {
    /// A frame was lost; frames are discarded until one contains its connection number.
    Tossed,
    /// The connection was never sent uncompressed, or has no slot.
    UnknownConnection {
        /// Connection number, or `None` if it was omitted and there is no previous frame.
        connection: Option<u8>,
    },
    /// The frame is shorter than its change mask requires.
    Truncated,
    /// An uncompressed packet that is not TCP/IPv4, or has a wrong header checksum.
    Malformed,
    /// The packet would exceed the maximum IP packet length.
    TooLong,
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tossed => write!(f, "tossed after a lost frame"),
            Self::UnknownConnection {
                connection: Some(connection),
            } => write!(f, "connection {connection} was never sent uncompressed"),
            Self::UnknownConnection { connection: None } => write!(f, "no connection named yet"),
            Self::Truncated => write!(f, "shorter than its change mask says"),
            Self::Malformed => write!(f, "not a TCP/IPv4 packet"),
            Self::TooLong => write!(f, "more than 65535 bytes"),
        }
    }
}

impl std::error::Error for DecompressError {}

/// The receiving end of a link with compressed headers.
#[derive(Debug)]
pub struct Decompressor {
    slots: Vec<Option<Headers>>,
    last: Option<u8>,
    toss: bool,
}

impl Decompressor {
    /// Creates a decompressor for `slots` connections: at least as many as the compressor has.
    ///
    /// # Errors
    /// Returns an error if the format cannot number so many connections.
    pub fn new(slots: usize) -> Result<Self, SlotsError> {
        if !(1..=256).contains(&slots) {
            return Err(SlotsError { slots });
        }
        Ok(Self {
            slots: vec![None; slots],
            last: None,
            toss: false,
        })
    }

    /// Reports a lost frame (TYPE_ERROR): frames without connection number are discarded until one
    /// contains it.
    pub fn error(&mut self) {
        self.toss = true;
    }

    /// Decompresses a frame, payload included, into `packet`, replacing its content.
    ///
    /// # Errors
    /// Returns an error if the frame yields no packet; `packet` is then empty.
    pub fn decompress(
        &mut self,
        packet_type: PacketType,
        frame: &[u8],
        packet: &mut Vec<u8>,
    ) -> Result<(), DecompressError> {
        let consumed = self.decompress_headers(packet_type, frame, 0, packet)?;
        packet.extend_from_slice(&frame[consumed..]);
        Ok(())
    }

    /// Decompresses the headers of a frame; `frame` need not contain more than the compressor
    /// wrote, and `beyond` payload bytes follow outside it. Returns the length of the compressed
    /// headers in `frame`; the rest is payload.
    ///
    /// # Errors
    /// Returns an error if the frame yields no packet; `packet` is then empty.
    pub fn decompress_headers(
        &mut self,
        packet_type: PacketType,
        frame: &[u8],
        beyond: usize,
        packet: &mut Vec<u8>,
    ) -> Result<usize, DecompressError> {
        packet.clear();
        let decompressed = match packet_type {
            PacketType::Ip => return Ok(0),
            PacketType::UncompressedTcp => self.uncompressed(frame),
            PacketType::CompressedTcp => self.compressed(frame, beyond),
        };
        match decompressed {
            Ok((headers, consumed)) => {
                packet.extend_from_slice(headers.bytes());
                Ok(consumed)
            }
            Err(error) => {
                // Later frames may depend on this one.
                self.toss = true;
                Err(error)
            }
        }
    }

    fn uncompressed(&mut self, frame: &[u8]) -> Result<(Headers, usize), DecompressError> {
        let mut headers = Headers::read(frame, None).ok_or(DecompressError::Malformed)?;
        let connection = headers.protocol();
        headers.set_protocol(tcp::PROTOCOL);
        if !headers.is_checksum_right() {
            return Err(DecompressError::Malformed);
        }
        let slot = self.slots.get_mut(usize::from(connection)).ok_or(
            DecompressError::UnknownConnection {
                connection: Some(connection),
            },
        )?;
        *slot = Some(headers);
        self.last = Some(connection);
        self.toss = false;
        Ok((headers, headers.length()))
    }

    fn compressed(
        &mut self,
        frame: &[u8],
        beyond: usize,
    ) -> Result<(Headers, usize), DecompressError> {
        let mut reader = Reader { frame, at: 0 };
        let mask = reader.byte()?;
        let connection = if mask & NEW_CONNECTION != 0 {
            let connection = reader.byte()?;
            if self.slot(connection).is_none() {
                return Err(DecompressError::UnknownConnection {
                    connection: Some(connection),
                });
            }
            self.toss = false;
            self.last = Some(connection);
            connection
        } else if self.toss {
            return Err(DecompressError::Tossed);
        } else {
            self.last
                .ok_or(DecompressError::UnknownConnection { connection: None })?
        };
        let old = self
            .slot(connection)
            .ok_or(DecompressError::UnknownConnection {
                connection: Some(connection),
            })?;
        let mut new = *old;
        apply(mask, &mut reader, &mut new)?;
        let payload = frame.len() - reader.at + beyond;
        let total = u16::try_from(new.length() + payload).map_err(|_| DecompressError::TooLong)?;
        new.set_total_length(total);
        new.seal();
        self.slots[usize::from(connection)] = Some(new);
        Ok((new, reader.at))
    }

    fn slot(&self, connection: u8) -> Option<&Headers> {
        self.slots.get(usize::from(connection))?.as_ref()
    }
}

/// Applies the changes of a frame to the previous headers.
fn apply(mask: u8, reader: &mut Reader<'_>, headers: &mut Headers) -> Result<(), DecompressError> {
    let last_payload = u32::from(headers.payload());
    headers.set_tcp_checksum(reader.word()?);
    headers.set_flag(PSH, mask & PUSH != 0);
    // Also in special cases, where the RFC's code does not clear URG.
    headers.set_flag(URG, false);
    let advance = |number: u32, by: u32| number.wrapping_add(by);
    match mask & SPECIALS {
        SPECIAL_ECHO => {
            headers.set_acknowledgment(advance(headers.acknowledgment(), last_payload));
            headers.set_sequence(advance(headers.sequence(), last_payload));
        }
        SPECIAL_DATA => headers.set_sequence(advance(headers.sequence(), last_payload)),
        _ => {
            if mask & URGENT != 0 {
                headers.set_flag(URG, true);
                headers.set_urgent_pointer(reader.change()?);
            }
            if mask & NEW_WINDOW != 0 {
                headers.set_window(headers.window().wrapping_add(reader.change()?));
            }
            if mask & NEW_ACKNOWLEDGMENT != 0 {
                let by = u32::from(reader.change()?);
                headers.set_acknowledgment(advance(headers.acknowledgment(), by));
            }
            if mask & NEW_SEQUENCE != 0 {
                let by = u32::from(reader.change()?);
                headers.set_sequence(advance(headers.sequence(), by));
            }
        }
    }
    let by = if mask & NEW_IDENTIFICATION != 0 {
        reader.change()?
    } else {
        1
    };
    headers.set_identification(headers.identification().wrapping_add(by));
    Ok(())
}

struct Reader<'a> {
    frame: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, DecompressError> {
        let byte = *self.frame.get(self.at).ok_or(DecompressError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn word(&mut self) -> Result<u16, DecompressError> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// Reads a change: one byte, or zero and two bytes.
    fn change(&mut self) -> Result<u16, DecompressError> {
        match self.byte()? {
            0 => self.word(),
            byte => Ok(u16::from(byte)),
        }
    }
}
