//! Control of a running emulation.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Controls and observes a running emulation from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Interrupts the run: everything is removed, and the results so far are returned.
    pub stop: AtomicBool,
    /// Milliseconds since the start.
    pub elapsed_ms: AtomicU64,
    /// Bytes that the receivers of each flow have read, once the flows have started.
    pub delivered: OnceLock<Vec<Arc<AtomicU64>>>,
}
