//! Connection states.

use serde::{Deserialize, Serialize};

/// Connection states of RFC 9293 section 3.3.2. LISTEN is missing: the host listens, and
/// [`Connection::accept`](super::Connection::accept) creates a connection from a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum State {
    /// SYN sent, none received.
    SynSent,
    /// SYN sent and received; our SYN is not acknowledged.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// We have closed, and the peer has acknowledged our FIN.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both have closed at once; our FIN is not acknowledged.
    Closing,
    /// Both have closed, the peer first; our FIN is not acknowledged.
    LastAck,
    /// Both have closed; waits until old segments have left the network.
    TimeWait,
    /// No connection.
    Closed,
}

impl State {
    /// Whether the application may write, or written data may still have to be sent.
    #[must_use]
    pub const fn can_send(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Whether data may still arrive from the peer.
    #[must_use]
    pub const fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether the peer has closed and our end is not finished.
    #[must_use]
    pub const fn has_peers_fin(self) -> bool {
        matches!(self, Self::CloseWait | Self::Closing | Self::LastAck)
    }

    /// Whether both SYNs are acknowledged.
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
}
