//! Node addresses and the endpoints of connections.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node's address inside one network. At the edge, `wire` maps it to an IP address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Address(pub u16);

/// First multicast channel address.
const FIRST_CHANNEL: u16 = u16::MAX - Address::CHANNELS + 1;

impl Address {
    /// Number of multicast channels in a network. They use the highest addresses; nodes never do.
    pub const CHANNELS: u16 = 1024;

    /// Returns the address of a multicast channel, or `None` beyond the last one. Every member of
    /// the channel receives what its source sends there (RFC 4607 section 1).
    #[must_use]
    pub const fn of_channel(number: usize) -> Option<Self> {
        if number < Self::CHANNELS as usize {
            Some(Self(FIRST_CHANNEL + number as u16))
        } else {
            None
        }
    }

    /// Returns the channel number of this address, or `None` for a node's address.
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
