//! Addresses, ports and initial sequence number of scripts.

use bentpipe_types::{Address, Seq};

/// Addresses of the host and of its peer.
pub(super) const LOCAL: Address = Address(1);
pub(super) const REMOTE: Address = Address(2);

/// Port of listening sockets, and destination port of active opens.
pub(super) const SERVICE: u16 = 8080;

/// Our initial sequence number. It wraps soon, so that every script covers the wrap-around.
pub(super) const INITIAL_SEQUENCE: Seq = Seq::new(u32::MAX - 2_000);
