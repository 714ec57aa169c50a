//! Protocol numbers used by several headers.

/// TCP (RFC 9293).
pub(crate) const TCP: u8 = 6;
