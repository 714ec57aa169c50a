//! Whether there is room for more connections, as far as anybody needs to hear of it.

/// What was last found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Room {
    /// Nobody was turned away yet.
    #[default]
    Enough,
    /// Somebody was.
    Full,
    /// Somebody was, and there is room again.
    Again,
}

impl Room {
    /// There was none for a connection.
    pub(crate) fn turned_away(&mut self) {
        *self = Self::Full;
    }

    /// There was for one; `ample`: so much that it will not be gone at once.
    pub(crate) fn found(&mut self, ample: bool) {
        if *self == Self::Full && ample {
            *self = Self::Again;
        }
    }
}
