//! Real-time priority for threads that must wake up on time.

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

/// Real-time priorities. The lowest is above all ordinary threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PriorityLevel {
    /// Applications, which have the time that the network leaves.
    Applications = 1,
    /// The network.
    Network = 2,
}

/// Gives the calling thread real-time priority while it exists, if permitted. Without it, the
/// kernel wakes a thread 50 us later than requested, and may run others first.
pub(crate) struct RealtimePriority {
    /// The priority to restore, if it was changed.
    before: Option<ThreadPriority>,
}

impl RealtimePriority {
    pub(crate) fn new(level: PriorityLevel) -> Self {
        let _ = nix::sys::prctl::set_timerslack(1);
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let thread = thread_native_id();
        let before = nice_value().and_then(priority_of);
        let first = ThreadPriorityValue::try_from(level as u8)
            .map(ThreadPriority::Crossplatform)
            .is_ok_and(|value| set_thread_priority_and_policy(thread, value, fifo).is_ok());
        Self {
            before: before.filter(|_| first),
        }
    }
}

impl Drop for RealtimePriority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = set_thread_priority_and_policy(thread_native_id(), before, NORMAL_POLICY);
        }
    }
}

pub(crate) const NORMAL_POLICY: ThreadSchedulePolicy =
    ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

/// Returns the nice value of this thread: field 19 of its stat (proc(5)).
pub(crate) fn nice_value() -> Option<i32> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The name in parentheses may contain any character; numbers follow it.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(16)?.parse().ok()
}

/// Converts a nice value to a priority of the crate `thread_priority`. Its minimum priority is nice
/// 19, which an ordinary thread would keep, together with all threads that it starts.
pub(crate) fn priority_of(nice_value: i32) -> Option<ThreadPriority> {
    let values = (0..100u8).filter_map(|value| ThreadPriorityValue::try_from(value).ok());
    values
        .map(ThreadPriority::Crossplatform)
        .find(|priority| priority.to_posix(NORMAL_POLICY) == Ok(nice_value))
}
