//! Gateways: nodes in the middle of a path that end connections or answer for hosts.
//!
//! Each is an [`Agent`](bentpipe_types::Agent): the same code in a simulation and between devices.
//!
//! * [`hybrid`]: acknowledges on behalf of hosts that receive by satellite and send by another way
//!   (Asymmetric TCP/IP, gaid1998).

pub mod hybrid;
