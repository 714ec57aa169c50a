//! The ends of a connection.

/// End of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Host,
    Server,
}

impl Side {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Host => Self::Server,
            Self::Server => Self::Host,
        }
    }
}
