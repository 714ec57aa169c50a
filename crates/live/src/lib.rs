//! Real-time operation on a Linux machine: TUN devices, network namespaces, the wall clock.
//!
//! * [`Tun`], [`Namespace`], [`Clock`]: real packets, isolated networks, and the time.
//! * [`Device`], [`Engine`]: a simulated network in real time, with devices at its edge nodes.
//! * [`LiveHost`]: a host with our TCP as a node of such a network.
//! * [`ImpairedPath`]: a node between two others that loses, reorders and duplicates packets.
//! * [`emulate`]: a scenario in real time between Linux hosts.
//! * [`gateway`]: a gateway or a link of a scenario between a machine's own interfaces.
//! * [`witness`]: the kernel's congestion control over a simulated link.
//! * [`interop`]: interoperability tests of our TCP with the kernel's.

mod clock;
mod host;
mod impairment;

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
pub mod engine;
#[cfg(target_os = "linux")]
pub mod gateway;
#[cfg(target_os = "linux")]
pub mod interop;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod poller;
#[cfg(target_os = "linux")]
mod realtime_priority;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
pub mod witness;

pub use clock::Clock;
pub use host::{LiveHost, secret};
pub use impairment::{ImpairedPath, Impairment};

#[cfg(target_os = "linux")]
pub use capture::Capture;
#[cfg(target_os = "linux")]
pub use device::{Batch, Device, Lost, Memory, Recorder, Replay, Sent, memory_pair};
#[cfg(target_os = "linux")]
pub use engine::Engine;
#[cfg(target_os = "linux")]
pub use namespace::Namespace;
#[cfg(target_os = "linux")]
pub use tun::{Tun, TunSettings};
