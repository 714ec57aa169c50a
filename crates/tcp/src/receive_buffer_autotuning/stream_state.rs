//! State of the received stream, as seen by the receive buffer.

/// State of the received stream, in positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamState {
    /// RCV.NXT.
    pub(crate) next: u64,
    /// Position up to which the application has read.
    pub(crate) read: u64,
    /// Bytes out of order.
    pub(crate) ahead: u64,
    /// End of the highest out-of-order data, if any.
    pub(crate) highest: Option<u64>,
}
