//! Gateways: nodes in the middle of a path that end connections or answer for hosts.
//!
//! Each is an [`Agent`](bentpipe_types::Agent): the same code in a simulation and between devices.
//!
//! * [`split`]: ends every TCP connection that passes, and makes another one on each side (karir1999,
//!   RFC 3135).
//! * [`hybrid`]: acknowledges on behalf of hosts that receive by satellite and send by another way
//!   (Asymmetric TCP/IP, gaid1998).
//!
//! [`Class`] says which connections a gateway is to handle, [`Mortal`] when it dies.

mod class;
mod crash;
mod deadlines;
pub mod hybrid;
mod icmp;
mod room;
mod slab;
pub mod split;

pub use class::{Class, Hosts};
pub use crash::{Crash, Mortal, Volatile};
