//! The options of a SYN.

use serde::{Deserialize, Serialize};

/// A TCP Fast Open option (RFC 7413 section 4.1.1) with a cookie, or without one as a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FastOpen {
    cookie: [u8; 16],
    length: u8,
    experimental: bool,
}

impl FastOpen {
    /// Creates an option with a cookie of 4 to 16 bytes, an even number, or none. `experimental`
    /// selects the experimental option kind (RFC 6994).
    #[must_use]
    pub fn new(cookie: &[u8], experimental: bool) -> Option<Self> {
        let valid = cookie.is_empty() || cookie.len() >= 4 && cookie.len().is_multiple_of(2);
        let mut bytes = [0; 16];
        bytes.get_mut(..cookie.len())?.copy_from_slice(cookie);
        valid.then_some(Self {
            cookie: bytes,
            length: cookie.len() as u8,
            experimental,
        })
    }

    /// Returns the cookie; empty in a request.
    #[must_use]
    pub fn cookie(&self) -> &[u8] {
        &self.cookie[..usize::from(self.length)]
    }

    /// Whether it uses the experimental option kind.
    #[must_use]
    pub const fn is_experimental(&self) -> bool {
        self.experimental
    }

    /// Returns the option's length in bytes: kind, length, experiment identifier, cookie.
    #[must_use]
    pub const fn option_length(&self) -> u8 {
        self.length + if self.experimental { 4 } else { 2 }
    }
}

/// The options that occur only in a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SynOptions {
    /// Maximum segment size that the sender accepts (RFC 9293 section 3.7.1).
    pub maximum_segment_size: Option<u16>,
    /// Shift count of the windows that the sender will advertise (RFC 7323 section 2.2).
    pub window_scale: Option<u8>,
    /// Whether the sender supports SACK (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// TCP Fast Open (RFC 7413).
    pub fast_open: Option<FastOpen>,
}
