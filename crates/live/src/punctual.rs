//! Threads that are woken on time.

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

/// Who comes first among them: the lowest of the real-time priorities are above all that have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// Applications, which have all the time that the network leaves.
    Applications = 1,
    /// The network.
    Network = 2,
}

/// While it lives, this thread is woken on time, as far as it may ask for that: the kernel otherwise
/// lets a sleeper sleep 50 us longer than it asked for, and others have their turn first.
pub(crate) struct Punctual {
    /// What it is to be again, where it was made another.
    before: Option<ThreadPriority>,
}

impl Punctual {
    pub(crate) fn new(rank: Rank) -> Self {
        let _ = nix::sys::prctl::set_timerslack(1);
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let thread = thread_native_id();
        let before = nice().and_then(priority_of);
        let first = ThreadPriorityValue::try_from(rank as u8)
            .map(ThreadPriority::Crossplatform)
            .is_ok_and(|value| set_thread_priority_and_policy(thread, value, fifo).is_ok());
        Self {
            before: before.filter(|_| first),
        }
    }
}

impl Drop for Punctual {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = set_thread_priority_and_policy(thread_native_id(), before, ORDINARY);
        }
    }
}

pub(crate) const ORDINARY: ThreadSchedulePolicy =
    ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

/// How nice this thread is: the 19th field of its stat (proc(5)).
pub(crate) fn nice() -> Option<i32> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The name in parentheses may have anything in it; the rest is numbers.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(16)?.parse().ok()
}

/// What the crate calls being so nice. Its least priority is nice to everybody, 19, and a thread that
/// was ordinary would go on as that, and all that it starts.
pub(crate) fn priority_of(nice: i32) -> Option<ThreadPriority> {
    let values = (0..100u8).filter_map(|value| ThreadPriorityValue::try_from(value).ok());
    values
        .map(ThreadPriority::Crossplatform)
        .find(|priority| priority.to_posix(ORDINARY) == Ok(nice))
}
