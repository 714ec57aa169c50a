//! A host, the gateway and a server, and hostile paths between them.

mod behaviour;
mod black_hole;
mod network;
mod properties;
mod scale;
