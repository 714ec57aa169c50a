//! Tests with a host, the gateway and a server, also over hostile paths.

mod behaviour;
mod black_hole;
mod fleet;
mod network;
mod packets;
mod properties;
mod scale;
