//! Who sends, and who is to get it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node's address inside one network. At the edge, `wire` maps it to an IP address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Address(pub u16);

/// The first address that is a channel's.
const FIRST_CHANNEL: u16 = u16::MAX - Address::CHANNELS + 1;

impl Address {
    /// How many channels a network may have. They have the last of all addresses, which no node has.
    pub const CHANNELS: u16 = 1024;

    /// The address of a network's channel of this number: what a source sends there, each of the channel's
    /// members gets (RFC 4607 section 1: a destination that belongs to one source). `None` beyond the last.
    #[must_use]
    pub const fn of_channel(number: usize) -> Option<Self> {
        if number < Self::CHANNELS as usize {
            Some(Self(FIRST_CHANNEL + number as u16))
        } else {
            None
        }
    }

    /// The number of the channel whose address it is; `None` of a node's.
    #[must_use]
    pub const fn channel(self) -> Option<u16> {
        self.0.checked_sub(FIRST_CHANNEL)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.channel() {
            Some(number) => write!(f, "channel {number}"),
            None => write!(f, "node {}", self.0),
        }
    }
}

/// One end of a TCP connection.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct Endpoint {
    /// The node.
    pub address: Address,
    /// The TCP port.
    pub port: u16,
}
