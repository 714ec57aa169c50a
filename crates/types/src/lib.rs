//! The vocabulary of bentpipe. Every other crate speaks it; it imports none of them.
//!
//! * [`Time`], [`Span`], [`BitRate`], [`Bytes`], [`Seq`]: newtypes for what the field measures.
//! * [`Packet`] and [`PacketStore`]: 64-byte records in a slab, passed by [`PacketRef`].
//! * Beside a record, where there is a real network: bytes, addresses ([`PacketStore::bytes`],
//!   [`PacketStore::ip`]); [`FlowKey`] tells flows apart with and without.
//! * [`Fragment`]: a packet in pieces.
//! * [`Agent`] and [`Ctx`]: what a host, a router or a middlebox is, and all that it may touch.
//! * [`Agenda`]: what comes next, of few or of many.
//! * [`ByAddress`]: something for each of some nodes.
//! * [`filler`]: the bytes that a simulated stream stands for.
//! * [`IcmpError`]: what the path says of a packet that did not arrive.
//! * [`SpanStatistics`]: how lengths of time are distributed; [`rank`], which of many values a quantile is.
//! * [`RandomStream`]: randomness keyed by (seed, component, purpose).
//! * [`words!`]: settings that are one word of a list.
//! * [`Trace`]: time series for the probes that a scenario names.

mod address;
mod agenda;
mod agent;
mod beside;
mod by_address;
mod bytes;
mod distribution;
mod fetch;
pub mod filler;
mod flags;
mod fragment;
mod histogram;
mod icmp;
mod ip;
mod packet;
mod pool;
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
    Agent, Ctx, Discards, DropReason, Gauge, Holdings, Outbox, Port, Room, StreamCheck, World,
};
pub use beside::{FlowKey, HostAddress, Party};
pub use by_address::ByAddress;
pub use bytes::Bytes;
pub use distribution::Distribution;
pub use fetch::{fetch, fetch_behind, fetch_whole};
pub use flags::Flags;
pub use fragment::Fragment;
pub use icmp::{ECHO_HEADER, Echo, IcmpError, IcmpQuote};
pub use ip::{Ecn, IpVersion};
pub use packet::{Packet, Resolution};
pub use pool::PoolFull;
pub use processor::{Processing, Processor, Served};
pub use quantile::rank;
pub use random::{RandomStream, Trials, splitmix64};
pub use rate::BitRate;
pub use routes::Routes;
pub use sack_blocks::{SackBlock, SackBlocks, tell_first};
pub use seq::Seq;
pub use span_statistics::SpanStatistics;
pub use store::{Compaction, Extension, PacketRef, PacketStore, Tunnel};
pub use syn_options::{FastOpen, SynOptions};
pub use time::{Span, Time};
pub use trace::{Series, SeriesId, Trace};
