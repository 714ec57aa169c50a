//! [`SocketId`].

/// Identifies a connection of a host. Valid until it is closed and its application was notified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

impl SocketId {
    /// Creates the identifier of a place, for tables of other connections. The next connection in a
    /// place has another generation.
    #[must_use]
    pub fn new(place: u32, generation: u32) -> Self {
        Self { place, generation }
    }

    /// Returns place and generation.
    #[must_use]
    pub fn parts(self) -> (u32, u32) {
        (self.place, self.generation)
    }
}
