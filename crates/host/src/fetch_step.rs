//! Steps of prefetching a connection.

/// Steps of [prefetching](crate::Host::fetch) a connection; each needs the previous one's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Its place, which contains its address.
    Place,
    /// Its timers only.
    Timers,
    /// The part that nearly every segment needs.
    Connection,
    /// The rest of it, or the heap data that the sending or receiving half needs.
    More,
    /// Heap data of the sending half.
    Senders,
    /// Heap data referred to by those.
    Last,
}
