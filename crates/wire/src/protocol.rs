//! Protocol numbers that more than one header has.

/// RFC 9293.
pub(crate) const TCP: u8 = 6;
