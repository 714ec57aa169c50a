//! Sizes of an application's write calls. At the end of a call, Linux pushes the data and checks
//! for memory (`send_buffer_autotuning`); the sizes have no other effect.

use serde::{Deserialize, Serialize};

/// Bytes per write call.
pub const CALL: u64 = 256 << 10;

/// Write calls of an application: a call after one that was cut short writes the rest.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub struct Calls {
    left: u32,
}

impl Calls {
    /// Number of bytes to write in the next call, with `bytes` bytes left.
    #[must_use]
    pub fn next(self, bytes: u64) -> u64 {
        match self.left {
            0 => bytes.min(CALL),
            left => left.into(),
        }
    }

    /// Records a call of `call` bytes, of which `taken` were accepted. Returns whether all were.
    pub fn wrote(&mut self, call: u64, taken: u64) -> bool {
        self.left = (call - taken) as u32;
        self.left == 0
    }
}

/// Data to be written as the send buffer accepts it. Belongs to the socket; stored in the
/// connection next to fields needed for each segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Feed {
    pub(crate) left: u64,
    pub(crate) calls: Calls,
    pub(crate) closes: bool,
}
