//! What an application that has more to say writes in one call. Where a call ends, Linux pushes what there is and asks for
//! memory anew (`send_sizing`); nothing else depends on it.

use serde::{Deserialize, Serialize};

/// So many bytes.
pub const CALL: u64 = 256 << 10;

/// Such an application's calls: the one after a call that was cut short writes what that has left.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub struct Calls {
    left: u32,
}

impl Calls {
    /// How many bytes the next call is to write, of so many that there are.
    #[must_use]
    pub fn next(self, bytes: u64) -> u64 {
        match self.left {
            0 => bytes.min(CALL),
            left => left.into(),
        }
    }

    /// Of a call that was to write so many bytes, so many were `taken`: all of them?
    pub fn wrote(&mut self, call: u64, taken: u64) -> bool {
        self.left = (call - taken) as u32;
        self.left == 0
    }
}
