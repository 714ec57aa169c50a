//! State of an opening connection, and the options that it has negotiated.

use std::net::IpAddr;

use bentpipe_types::{Endpoint, IpVersion, Seq};

/// Contents of an end's SYN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) initial: Seq,
    /// Window, which is never scaled in a SYN (RFC 7323 section 2.2).
    pub(super) window: u16,
    pub(super) mss: Option<u16>,
    pub(super) shift: Option<u8>,
    pub(super) sack: bool,
    /// Its timestamp, and the echoed one.
    pub(super) timestamps: Option<(u32, u32)>,
}

/// State of one end while the connection opens: the paper's SYN_RECEIVED and CONNECTION_ESTAB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    pub(super) syn: Option<Syn>,
    pub(super) established: bool,
    /// Sequence number after the last one that it has sent.
    pub(super) next: Seq,
    /// Position up to which it has acknowledged the other end's stream: the SYN, and data sent with
    /// it (RFC 7413). 0 if it has acknowledged nothing.
    pub(super) acknowledged: u32,
}

/// A connection whose ends are both established.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedConnection {
    pub(super) host: Endpoint,
    pub(super) server: Endpoint,
    pub(super) ip: Option<(IpAddr, IpAddr)>,
    pub(super) version: IpVersion,
    pub(super) ends: [End; 2],
    pub(super) negotiated: NegotiatedOptions,
}

/// Options negotiated in the two SYNs.
#[derive(Clone, Copy, Debug)]
pub(super) struct NegotiatedOptions {
    /// Initial sequence number of the server.
    pub(super) initial: Seq,
    pub(super) host_shift: u8,
    pub(super) announced_shift: u8,
    /// Shift of the server's own windows.
    pub(super) server_shift: u8,
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    pub(super) segment: u32,
    /// Largest window offered to the server.
    pub(super) window: u64,
}
