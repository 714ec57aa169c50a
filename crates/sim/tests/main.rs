//! The engine's tests through its public interface: one binary, a module per subject.

mod agents;
mod allocations;
mod applications;
mod multicast;
mod services;
mod two_hosts;
mod work;
