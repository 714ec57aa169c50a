//! The checksum of TCP segments that a fuzz target has changed.

use std::net::IpAddr;

use bentpipe_wire::checksum::Sum;

/// Sets the checksum of a TCP segment, which has at least a header.
pub(crate) fn correct_tcp_checksum(segment: &mut [u8], source: IpAddr, destination: IpAddr) {
    segment[16..18].fill(0);
    let sum = Sum::default()
        .pseudo_header(source, destination, segment.len())
        .bytes(segment)
        .finish();
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
}
