//! Totals and counters over all connections of a gateway.

use std::net::IpAddr;

use bentpipe_types::{Ctx, Packet, Port};

use super::side::Side;

/// Sums over all connections, and the ports of the current one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Sequence numbers of stored segments, now.
    pub(super) bytes: u64,
    pub(super) bytes_maximum: u64,
    /// Stored packets, now.
    pub(super) packets: u64,
    /// Most bytes stored of one connection.
    pub(super) connection_maximum: u64,
    /// Established connections, now.
    pub(super) open: u64,
    /// Established connections, in total.
    pub(super) tracked: u64,
    /// SYNs of connections that were not tracked for want of space.
    pub(super) refused: u64,
    /// Packets forwarded unchanged.
    pub(super) passed: u64,
    /// ACKs sent to servers on behalf of hosts.
    pub(super) acknowledgments: u64,
    /// ACKs of hosts that contained nothing new for the server, and were dropped.
    pub(super) consumed: u64,
    /// Segments sent to hosts for the first time.
    pub(super) segments: u64,
    /// Segments retransmitted to hosts.
    pub(super) retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub(super) timeouts: u64,
    /// Zero-window probes sent to hosts.
    pub(super) probes: u64,
    /// Segments sent to hosts as parts of a server's segment, because of the path MTU.
    pub(super) parts: u64,
    /// ICMP errors about segments to hosts.
    pub(super) icmp_errors: u64,
    /// Duplicate segments from servers.
    pub(super) duplicates: u64,
    /// Packets dropped because the processor's queue was full.
    pub(super) dropped: u64,
    /// Segments from servers that arrived out of order.
    pub(super) out_of_order: u64,
    /// Segments from servers dropped for want of buffer space.
    pub(super) no_room: u64,
    /// Segments sent beyond the host's advertised window.
    pub(super) beyond_window: u64,
    /// Connections given up because the host did not answer.
    pub(super) given_up: u64,
    /// Connections reset by either end.
    pub(super) resets: u64,
    pub(super) toward_host: Port,
    pub(super) toward_server: Port,
}

impl Totals {
    /// Sends a packet that the gateway has made, towards one end.
    pub(super) fn emit(
        &self,
        packet: Packet,
        ip: Option<(IpAddr, IpAddr)>,
        towards: Side,
        cx: &mut Ctx<'_>,
    ) {
        let reference = cx.packets.insert(packet);
        if let Some(ip) = ip {
            cx.packets.set_ip(reference, ip);
        }
        cx.emit(self.port(towards), reference);
    }

    pub(super) fn port(&self, towards: Side) -> Port {
        match towards {
            Side::Host => self.toward_host,
            Side::Server => self.toward_server,
        }
    }

    /// Records that a connection now holds `after` instead of `before`, as (bytes, packets).
    pub(super) fn record_held(&mut self, before: (u64, u64), after: (u64, u64)) {
        self.bytes = self.bytes - before.0 + after.0;
        self.packets = self.packets - before.1 + after.1;
        self.bytes_maximum = self.bytes_maximum.max(self.bytes);
        self.connection_maximum = self.connection_maximum.max(after.0);
    }
}
