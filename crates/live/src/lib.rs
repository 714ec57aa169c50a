//! The protocol code on a Linux machine: TUN devices, network namespaces, the wall clock.
//!
//! * [`Tun`], [`Namespace`], [`Clock`]: where packets come from, where it is safe to make them, and
//!   the time.
//! * [`Device`], [`Engine`]: a simulated network in real time, with devices at its attached nodes.
//! * [`LiveHost`]: a host of ours as a node of such a network.
//! * [`Path`]: a node between two others, for loss, reordering and duplication.
//! * [`emulate`]: a scenario in real time, between hosts of the kernel's.
//! * [`gateway`]: a gateway of a scenario, or a link, between a machine's own interfaces.
//! * [`witness`]: the kernel's congestion control over such a link.
//! * [`interop`]: a host of ours and the kernel's TCP, judging each other.

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
mod punctual;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
pub mod witness;

pub use clock::Clock;
pub use host::{LiveHost, secret};
pub use impairment::{Impairment, Path};

#[cfg(target_os = "linux")]
pub use capture::Capture;
#[cfg(target_os = "linux")]
pub use device::{Batch, Device, Memory, Recorder, Replay, Sent, memory_pair};
#[cfg(target_os = "linux")]
pub use engine::Engine;
#[cfg(target_os = "linux")]
pub use namespace::Namespace;
#[cfg(target_os = "linux")]
pub use tun::{Tun, TunSettings};
