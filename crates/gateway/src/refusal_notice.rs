//! Whether new connections are refused for want of memory, for the operator's notice.

/// Whether connections were refused, as of the last new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RefusalNotice {
    /// No connection was ever refused.
    #[default]
    None,
    /// Connections are being refused.
    Refusing,
    /// Connections were refused, and are accepted again.
    AcceptingAgain,
}

impl RefusalNotice {
    /// Notes that a connection was refused.
    pub(crate) fn note_refusal(&mut self) {
        *self = Self::Refusing;
    }

    /// Notes that a connection was accepted. `ample` means that the next ones will be accepted as
    /// well.
    pub(crate) fn note_admission(&mut self, ample: bool) {
        if *self == Self::Refusing && ample {
            *self = Self::AcceptingAgain;
        }
    }
}
