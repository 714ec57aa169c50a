//! Events for the application.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use serde::{Deserialize, Serialize};

/// A set of events. RFC 9293 section 3.6: the application is told whether the peer has closed
/// ([`PEER_CLOSED`](Self::PEER_CLOSED)) or reset the connection ([`RESET`](Self::RESET)).
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Events(u16);

impl Events {
    /// No event.
    pub const NONE: Self = Self(0);
    /// The connection is established.
    pub const ESTABLISHED: Self = Self(1);
    /// Data can be read.
    pub const READABLE: Self = Self(1 << 1);
    /// A write that was cut short can continue.
    pub const WRITABLE: Self = Self(1 << 2);
    /// The peer has closed its direction, and all its data has arrived.
    pub const PEER_CLOSED: Self = Self(1 << 3);
    /// The connection is in CLOSED and has ended.
    pub const CLOSED: Self = Self(1 << 4);
    /// The peer has reset or refused the connection. Raised together with `CLOSED`.
    pub const RESET: Self = Self(1 << 5);
    /// The peer no longer answers. Raised together with `CLOSED`.
    pub const TIMED_OUT: Self = Self(1 << 6);
    /// A router reported the peer unreachable. Raised together with `CLOSED`.
    pub const UNREACHABLE: Self = Self(1 << 8);
    /// All written data, and the FIN if there is one, has been acknowledged.
    pub const DRAINED: Self = Self(1 << 7);

    /// The set without the events of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets have an event in common.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Events {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_set();
        for (event, name) in [
            (Self::ESTABLISHED, "established"),
            (Self::READABLE, "readable"),
            (Self::WRITABLE, "writable"),
            (Self::PEER_CLOSED, "peer closed"),
            (Self::CLOSED, "closed"),
            (Self::RESET, "reset"),
            (Self::TIMED_OUT, "timed out"),
            (Self::UNREACHABLE, "unreachable"),
            (Self::DRAINED, "drained"),
        ] {
            if self.has(event) {
                set.entry(&name);
            }
        }
        set.finish()
    }
}
