//! Counters of packets that could not enter or leave the network, by reason.

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

/// Counters of packets that could not enter, by reason, and of packets that could not leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refusals {
    inward: [u64; 7],
    /// Packets that could not be encoded for the outside.
    pub unencodable: u64,
    /// Packets that a device refused.
    pub not_taken: u64,
    /// Packets for a device that was down.
    pub device_down: u64,
    /// Reads of several packets that could not be split.
    pub uncut: u64,
}

impl Refusals {
    /// Names of the reasons, as in results.
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
                // Errors of the payload of an IP packet, for which no packet is refused.
                _ => Reason::Truncated,
            },
        };
        self.inward[reason as usize] += 1;
    }

    pub(super) fn count_crowded(&mut self) {
        self.inward[Reason::Crowded as usize] += 1;
    }

    /// Returns each reason and its count.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::NAMES.into_iter().zip(self.inward)
    }

    /// Returns the number of packets that could not enter.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.inward.iter().sum()
    }
}
