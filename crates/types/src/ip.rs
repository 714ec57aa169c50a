//! Fields of the IP header.

use serde::{Deserialize, Serialize};

/// The version of the IP header in front of the TCP header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum IpVersion {
    /// A 20-byte header.
    #[default]
    V4,
    /// A 40-byte header.
    V6,
}

impl IpVersion {
    /// Returns the length of the header without options or extension headers.
    #[must_use]
    pub const fn header_length(self) -> u8 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Returns the MSS for an MTU: the packet without IP and TCP headers (RFC 9293 section 3.7.1).
    #[must_use]
    pub fn mss_within(self, mtu: u32) -> u16 {
        let headers = u32::from(self.header_length()) + 20;
        u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
    }
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// Congestion experienced.
    Congestion,
}

/// Fields of an IP header that the record of a segment does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IpFields {
    /// Flow label (RFC 6437), 20 bits; 0 with IPv4.
    pub flow_label: u32,
    /// Differentiated services code point (RFC 2474), 6 bits.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

impl Default for IpFields {
    /// Default class, no flow label, and the hop limit of Linux and RFC 1700.
    fn default() -> Self {
        Self {
            flow_label: 0,
            dscp: 0,
            hop_limit: 64,
        }
    }
}

impl IpFields {
    /// Reads the fields of a packet with `hops` hops less than its header has.
    pub(crate) fn read(bytes: &[u8], hops: u8) -> Option<Self> {
        let header = bytes.first_chunk::<20>()?;
        let (flow_label, class, hop_limit) = match header[0] >> 4 {
            4 => (0, header[1], header[8]),
            6 => {
                let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
                (word & 0x000f_ffff, (word >> 20) as u8, header[7])
            }
            _ => return None,
        };
        Some(Self {
            flow_label,
            dscp: class >> 2,
            hop_limit: hop_limit.saturating_sub(hops),
        })
    }
}
