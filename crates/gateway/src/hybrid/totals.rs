//! What all connections of a gateway hold and have counted.

use std::net::IpAddr;

use bentpipe_types::{Ctx, Packet, Port};

use super::tracked::Side;

/// Sums over all connections, and the ports of the one at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Positions of streams held now.
    pub(super) bytes: u64,
    pub(super) bytes_maximum: u64,
    /// Packets held now.
    pub(super) packets: u64,
    /// The most held of one connection.
    pub(super) connection_maximum: u64,
    /// Connections being answered for now.
    pub(super) open: u64,
    /// Connections ever answered for.
    pub(super) tracked: u64,
    /// SYNs of connections for which there was no room.
    pub(super) refused: u64,
    /// Packets that passed as they were.
    pub(super) passed: u64,
    /// Acknowledgments made on behalf of hosts.
    pub(super) acknowledgments: u64,
    /// Acknowledgments of hosts that said nothing new to the server.
    pub(super) consumed: u64,
    /// Segments sent to hosts for the first time.
    pub(super) segments: u64,
    /// Segments sent to hosts again.
    pub(super) retransmissions: u64,
    /// Times that the retransmission timer expired.
    pub(super) timeouts: u64,
    /// Probes of windows of zero.
    pub(super) probes: u64,
    /// Segments that went to hosts as parts of the server's, where the way takes less.
    pub(super) parts: u64,
    /// ICMP errors about segments to hosts.
    pub(super) icmp_errors: u64,
    /// Segments of servers that were there already.
    pub(super) duplicates: u64,
    /// Packets for which the processor had no room.
    pub(super) dropped: u64,
    /// Segments of servers that came ahead of a gap.
    pub(super) ahead: u64,
    /// Segments of servers for which there was no room.
    pub(super) no_room: u64,
    /// Segments sent beyond the window that the host had advertised.
    pub(super) beyond_window: u64,
    /// Connections given up.
    pub(super) given_up: u64,
    /// Connections reset by an end.
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

    /// A connection holds `after` instead of `before`: (bytes, packets).
    pub(super) fn held(&mut self, before: (u64, u64), after: (u64, u64)) {
        self.bytes = self.bytes - before.0 + after.0;
        self.packets = self.packets - before.1 + after.1;
        self.bytes_maximum = self.bytes_maximum.max(self.bytes);
        self.connection_maximum = self.connection_maximum.max(after.0);
    }
}
