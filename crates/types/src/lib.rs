//! Common types of bentpipe. Every other crate imports this one; it imports none of them.
//!
//! * [`Time`], [`Span`], [`BitRate`], [`Bytes`], [`Seq`]: newtypes for quantities.
//! * [`Packet`] and [`PacketStore`]: 64-byte records in a slab, passed by [`PacketRef`].
//! * Bytes and IP addresses of real packets ([`PacketStore::bytes`], [`PacketStore::ip`]);
//!   [`FlowKey`] identifies flows with and without them.
//! * [`Fragment`]: fragments of a packet.
//! * [`Agent`] and [`Ctx`]: the interface of hosts, routers and middleboxes.
//! * [`Managed`]: the interface for the operator of a running gateway.
//! * [`Agenda`]: a priority queue of timed entries.
//! * [`ByAddress`]: a map from node addresses.
//! * [`filler`]: the bytes that a simulated stream stands for.
//! * [`IcmpError`]: ICMP errors.
//! * [`SpanStatistics`]: a histogram of times; [`rank`]: the rank of a quantile.
//! * [`RandomStream`]: random numbers keyed by (seed, component, purpose).
//! * [`words!`]: enums with names for scenario files.
//! * [`Trace`]: time series of probes.
//!
//! ```
//! use bentpipe_types::{BitRate, Bytes, RandomStream, Seq, Span, Time};
//!
//! // A packet of 1500 bytes takes 6 ms at 2 Mbit/s, and then 250 ms to the other side.
//! let rate = BitRate::new(2_000_000).expect("not zero");
//! let arrival = Time::ZERO + rate.transmission_time(Bytes::new(1500)) + Span::from_millis(250);
//! assert_eq!(arrival, Time::from_nanos(256_000_000));
//!
//! // Sequence numbers wrap.
//! assert!(Seq::new(u32::MAX).before(Seq::new(5)));
//!
//! // A stream depends on the seed, the component and the purpose, and on nothing else.
//! let mut losses = RandomStream::new(1, "satellite.forward", "errors");
//! let mut others = RandomStream::new(1, "satellite.return", "errors");
//! assert_ne!(losses.bits(), others.bits());
//! ```

mod address;
mod agenda;
mod agent;
mod by_address;
mod bytes;
mod distribution;
pub mod filler;
mod flags;
mod histogram;
mod icmp;
mod ip;
mod managed;
mod packet;
mod packet_ref;
mod pool;
mod port;
mod prefetch;
mod processor;
mod quantile;
mod random;
mod rate;
mod routes;
mod sack_blocks;
mod seq;
mod span_statistics;
mod store;
mod syn_options;
mod time;
mod trace;
pub mod words;

pub use address::{Address, Endpoint};
pub use agenda::{Agenda, Entry};
pub use agent::{
    Agent, Ctx, Discards, DropReason, Gauge, Holdings, Outbox, Room, StreamCheck, World,
};
pub use by_address::ByAddress;
pub use bytes::Bytes;
pub use distribution::Distribution;
pub use flags::Flags;
pub use icmp::{ECHO_HEADER, Echo, IcmpError, IcmpQuote};
pub use ip::{Ecn, IpFields, IpVersion};
pub use managed::{
    ConnectionChange, ConnectionReport, LegReport, Managed, RoundTripHistogram, check_unchanged,
    of_same_kind,
};
pub use packet::{Packet, Resolution};
pub use packet_ref::PacketRef;
pub use pool::PoolFull;
pub use port::Port;
pub use prefetch::{fetch, fetch_behind, fetch_whole};
pub use processor::{Processing, Processor, WithProcessor};
pub use quantile::rank;
pub use random::{RandomStream, Trials, splitmix64};
pub use rate::BitRate;
pub use routes::Routes;
pub use sack_blocks::{SackBlock, SackBlocks, tell_first};
pub use seq::Seq;
pub use span_statistics::SpanStatistics;
pub use store::{
    Compaction, Extension, FlowKey, Fragment, HostAddress, MovedPacket, PacketStore, Party, Tunnel,
};
pub use syn_options::{FastOpen, SynOptions};
pub use time::{Span, Time};
pub use trace::{Series, SeriesId, Trace};
