//! The states of a connection.

use serde::{Deserialize, Serialize};

/// RFC 9293 section 3.3.2. LISTEN is not here: it is the host that listens, and
/// [`Connection::accept`](super::Connection::accept) makes a connection of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum State {
    /// SYN sent, none received.
    SynSent,
    /// SYN sent and received, ours not acknowledged.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// We have closed, and the peer knows.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both have closed at once; our FIN is not acknowledged.
    Closing,
    /// Both have closed, the peer first; our FIN is not acknowledged.
    LastAck,
    /// Both have closed; old segments are given time to die.
    TimeWait,
    /// No connection.
    Closed,
}

impl State {
    /// May the application still write, or may what it wrote still have to be sent?
    #[must_use]
    pub const fn can_send(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// May data still come from the peer?
    #[must_use]
    pub const fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Has the peer closed, and is our own end not over?
    #[must_use]
    pub const fn has_peers_fin(self) -> bool {
        matches!(self, Self::CloseWait | Self::Closing | Self::LastAck)
    }

    /// Have both sides seen the other's SYN acknowledged?
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
}
