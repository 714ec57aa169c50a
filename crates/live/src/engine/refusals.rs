//! What came out of a device and was not let into the network, by reason.

use bentpipe_wire::{ParseError, Refused};

/// Reasons, in the order of [`Refusals::NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    Truncated,
    Version,
    Ipv4Header,
    Ipv4Checksum,
    NoRoute,
    PoolFull,
    Crowded,
}

/// How many packets were refused, by reason; and those that could not leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refusals {
    inward: [u64; 7],
    /// Packets without bytes that the outside would understand.
    pub unencodable: u64,
    /// Packets that a device did not take.
    pub not_taken: u64,
    /// Packets for a device that was down.
    pub device_down: u64,
    /// Reads of several packets that came as one, and could not be cut into them.
    pub uncut: u64,
}

impl Refusals {
    /// The names of the reasons, as results have them.
    pub const NAMES: [&str; 7] = [
        "truncated",
        "version",
        "ipv4_header",
        "ipv4_checksum",
        "no_route",
        "no_memory",
        "crowded",
    ];

    pub(super) fn count(&mut self, refused: Refused) {
        let reason = match refused {
            Refused::NoRoute => Reason::NoRoute,
            Refused::PoolFull(_) => Reason::PoolFull,
            Refused::Malformed(error) => match error {
                ParseError::Version { .. } => Reason::Version,
                ParseError::Ipv4HeaderLength { .. } | ParseError::Ipv4TotalLength { .. } => {
                    Reason::Ipv4Header
                }
                ParseError::Ipv4Checksum { .. } => Reason::Ipv4Checksum,
                // The others are of what an IP packet carries, which nobody is refused for.
                _ => Reason::Truncated,
            },
        };
        self.inward[reason as usize] += 1;
    }

    pub(super) fn crowded(&mut self) {
        self.inward[Reason::Crowded as usize] += 1;
    }

    /// Each reason and its count.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::NAMES.into_iter().zip(self.inward)
    }

    /// Packets that were not let in.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.inward.iter().sum()
    }
}
