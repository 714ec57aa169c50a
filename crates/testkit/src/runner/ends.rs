//! Who talks to whom in a script, and from which numbers on.

use bentpipe_types::{Address, Seq};

/// The host's address, and that of the world outside.
pub(super) const LOCAL: Address = Address(1);
pub(super) const REMOTE: Address = Address(2);

/// The port that listening sockets have, and that we connect to.
pub(super) const SERVICE: u16 = 8080;

/// Our first sequence number: it wraps soon, so that every script sees it wrap.
pub(super) const INITIAL_SEQUENCE: Seq = Seq::new(u32::MAX - 2_000);
