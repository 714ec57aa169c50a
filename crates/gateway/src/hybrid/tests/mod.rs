//! A host, the gateway and a server, and hostile paths between them.

mod behaviour;
mod network;
mod properties;
mod scale;
