//! Gateways: nodes in the middle of a path that terminate TCP connections or acknowledge for hosts.
//!
//! Each is an [`Agent`](bentpipe_types::Agent), so the same code runs in a simulation and between
//! network devices.
//!
//! * [`split`]: terminates every TCP connection that passes, and opens another one on each side
//!   (karir1999, RFC 3135).
//! * [`hybrid`]: acknowledges on behalf of hosts that receive by satellite and send by another path
//!   (Asymmetric TCP/IP, gaid1998).
//!
//! [`AddressChanger`] forwards packets, and breaks connections whose outside address has changed.
//! [`ConnectionClass`] selects the connections that a gateway handles. [`CrashingAgent`] makes a
//! gateway crash at given times.

mod address_change;
mod connection_class;
mod crash;
mod deadlines;
pub mod hybrid;
mod icmp;
mod refusal_notice;
mod slab;
pub mod split;

pub use address_change::{AddressChanger, AddressChangerSettings};
pub use connection_class::{ConnectionClass, HostMatch, PrefixSet};
pub use crash::{Crash, CrashingAgent, VolatileAgent};
