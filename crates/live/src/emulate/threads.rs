//! Threads of an emulation.

use std::io;
use std::thread::ScopedJoinHandle;

/// Waits for a thread and returns its result.
pub(super) fn join_thread<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    let panicked = |_| Err(io::Error::other("a thread of the emulation panicked"));
    thread.join().unwrap_or_else(panicked)
}
