//! Whether new connections are refused, for the operator's notice.

/// Whether connections were refused, as of the last new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RefusalNotice {
    /// No connection was ever refused.
    #[default]
    None,
    /// Connections are being refused for want of memory.
    Refusing,
    /// Connections are being refused, since many are half-open, or of one source.
    RefusingHalfOpen,
    /// Connections were refused, and are accepted again.
    AcceptingAgain,
}

impl RefusalNotice {
    /// Notes that a connection was refused for want of memory.
    pub(crate) fn note_refusal(&mut self) {
        *self = Self::Refusing;
    }

    /// Notes that a connection was refused by the limits of half-open connections or of a source.
    pub(crate) fn note_half_open_refusal(&mut self) {
        *self = Self::RefusingHalfOpen;
    }

    /// Notes that a connection was accepted. `ample` means that the next ones will be accepted as
    /// well.
    pub(crate) fn note_admission(&mut self, ample: bool) {
        if matches!(self, Self::Refusing | Self::RefusingHalfOpen) && ample {
            *self = Self::AcceptingAgain;
        }
    }
}
