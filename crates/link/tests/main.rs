//! Queues compared with other simulators: one binary, a module per witness.

mod common;
mod ns2;
mod ns3;
