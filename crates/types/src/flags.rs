//! The control bits of the TCP header.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The control bits of the TCP header, as in its 14th byte (RFC 9293 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Returns the union with `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether any flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether these flags open a connection: SYN without ACK, RST and FIN.
    #[must_use]
    pub const fn opens(self) -> bool {
        self.has(Self::SYN) && !self.has(Self::ACK.with(Self::RST).with(Self::FIN))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Letters and order of tcpdump.
        for (flag, letter) in [
            (Self::FIN, 'F'),
            (Self::SYN, 'S'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::ACK, '.'),
            (Self::URG, 'U'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
        ] {
            if self.has(flag) {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}
