//! One-way links: a queue, a transmitter of some rate, a propagation delay, and errors.
//!
//! A [`Direction`] needs one pending event, the arrival of the packet at the head of its ring: the
//! departure of a packet from a first-in-first-out queue is known the moment it is enqueued.

mod direction;
mod errors;
mod far_end;
mod framing;
mod queue;
mod ring;
mod tally;

pub use direction::{Arrival, Counters, Direction, Settings};
pub use errors::{BitErrors, ErrorModel, Listed, PacketLoss};
pub use far_end::FarEnd;
pub use framing::Framing;
pub use queue::{DropTail, GivenUp, Limit, QueueCtx, QueueDiscipline, Verdict};
pub use tally::{Flow, Tally};
