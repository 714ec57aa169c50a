//! One-way links: a queue, a transmitter of some rate, a propagation delay, and errors.
//!
//! A [`Direction`] needs one pending event. Behind a drop-tail queue that is the arrival of the packet
//! at the head of its ring ([`Fifo`]): the departure of a packet is known the moment it is enqueued.
//! Any other queue decides when the transmitter is free: that, too, is caught up with when a packet arrives
//! ([`Queued`]). With something at the ends, on a path that changes, with capacity on demand, or where somebody
//! looks, it is the first of a departure, an arrival, a deadline of the far end and a frame ([`Managed`]).

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
