//! Reader of captures (pcap, pcapng): TCP connections and the headers of their segments.
//!
//! A capture is read as a stream. Memory depends on the number of connections and on the number of
//! segments that the caller asks for, not on the size of the file.
//!
//! - [`Reader`] yields the packets of a file, one by one.
//! - [`connections`] lists the TCP connections of a file.
//! - [`segments`] returns the segments of one of them, as columns.

mod connections;
mod packet;
mod reader;

pub use connections::{Columns, Connection, Listing, connections, segments};
pub use packet::{Endpoint, Handshake, Packet, Segment};
pub use reader::{CaptureError, Reader};
