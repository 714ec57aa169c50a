//! Fields of the IP header.

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
