//! Numbers of sockets in the poller.

/// Kind and index of a socket, as the poller's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    Connection(u32),
    Listener(u32),
    Datagrams(u32),
}

impl Tag {
    pub(super) fn of(number: u64) -> Self {
        let index = number as u32;
        match number >> 32 {
            0 => Self::Connection(index),
            1 => Self::Listener(index),
            _ => Self::Datagrams(index),
        }
    }

    pub(super) fn number(self) -> u64 {
        let (kind, index) = match self {
            Self::Connection(index) => (0, index),
            Self::Listener(index) => (1, index),
            Self::Datagrams(index) => (2, index),
        };
        kind << 32 | u64::from(index)
    }
}
