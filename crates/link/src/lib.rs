//! One-way links: a queue, a transmitter, a propagation delay, and errors.
//!
//! A [`Direction`] has one pending event. With a drop-tail queue it is the arrival of the head of
//! its ring ([`Fifo`]), since departures are known at enqueueing. Other queues select when the
//! transmitter is free, which is processed when a packet arrives ([`Queued`]). With processing at
//! its ends, a changing path, capacity on demand or an observer it is the first of departure,
//! arrival, far-end deadline and frame ([`Managed`]).
//!
//! A drop-tail queue of two packets, with one packet in transmission
//! (`examples/own_queue.rs` defines a queue discipline):
//!
//! ```
//! use bentpipe_link::{DropTail, Limit, Verdict};
//! use bentpipe_types::Bytes;
//!
//! let queue = DropTail { limit: Limit::Packets(2) };
//! let length = Bytes::new(1500);
//! assert_eq!(queue.enqueue(1, length, length), Verdict::Queued);
//! assert_eq!(queue.enqueue(2, Bytes::new(3000), length), Verdict::Dropped);
//! ```

mod access;
mod changes;
mod counters;
mod direction;
mod divider;
mod ends;
mod errors;
mod far_end;
mod fifo;
mod flight;
mod framing;
mod managed;
mod most;
mod queue;
mod queued;
mod ring;
mod row;
mod tally;
mod transmitter;

pub use access::{Access, AccessCounts, Carrier, CarrierSettings, OnAir, TerminalSettings};
pub use changes::{
    Changes, FadingSettings, InFlight, LossRates, Opportunities, Outages, Profile, RateCourse,
    Sending,
};
pub use counters::Counters;
pub use direction::{Direction, Queueing, Settings, Streams};
pub use divider::Divider;
pub use ends::Ends;
pub use errors::{BitErrors, BurstLosses, BurstSettings, ErrorModel, Listed, PacketLoss};
pub use far_end::{EndCtx, FarEnd};
pub use fifo::{Arrival, Fifo, Head};
pub use framing::Framing;
pub use managed::{Managed, Watch};
pub use queue::*;
pub use queued::Queued;
pub use tally::{Flow, Tally};
