//! What a host counts.

/// Why a host did nothing more with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Its bytes are no IP packet, or no TCP segment, that makes sense.
    Malformed,
    /// A checksum is wrong.
    Checksum,
    /// Another protocol than TCP, or a fragment.
    NotTcp,
    /// Addressed to somebody else.
    NotForUs,
    /// From an address that nobody can have: multicast, broadcast, unspecified, or this host's own.
    Source,
    /// No connection takes it; answered with a RST.
    NoConnection,
    /// A SYN for which there is no room in the table of connections.
    TableFull,
    /// A SYN while as many connections as may be are half open.
    HalfOpenFull,
    /// A segment of ours that could not be written as bytes. Not zero means a fault of ours.
    Unencodable,
    /// Accepted payload for which the buffer had no room. Not zero means a fault of ours; the
    /// connection is aborted.
    Unstorable,
}

impl Refusal {
    /// Every reason, in order.
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::Checksum,
        Self::NotTcp,
        Self::NotForUs,
        Self::Source,
        Self::NoConnection,
        Self::TableFull,
        Self::HalfOpenFull,
        Self::Unencodable,
        Self::Unstorable,
    ];
}

/// Packets in, out, and refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// Packets that came in.
    pub received: u64,
    /// Packets that went out.
    pub sent: u64,
    /// Connections opened, either way.
    pub opened: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl HostCounters {
    /// How many packets were refused for this reason.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    pub(super) fn refuse(&mut self, reason: Refusal) {
        self.refused[reason as usize] += 1;
    }
}

impl From<&bentpipe_wire::ParseError> for Refusal {
    fn from(error: &bentpipe_wire::ParseError) -> Self {
        use bentpipe_wire::ParseError;
        match error {
            error if error.is_checksum() => Self::Checksum,
            ParseError::Protocol { .. } | ParseError::Fragment { .. } => Self::NotTcp,
            _ => Self::Malformed,
        }
    }
}
