//! Attached nodes: the border between a network and a device.

use bentpipe_types::{Agent, Ctx, DropReason, PacketRef, Port, Routes, Time};

/// The port that leads out of the network; no link has it.
pub(crate) const OUTSIDE: Port = Port(u16::MAX);

/// A node that represents hosts behind a device. Packets that arrive here leave the network
/// ([`Network::departures`](crate::Network::departures)); packets from the device enter here
/// ([`Network::inject`](crate::Network::inject)). It has no TCP and forwards nothing.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    routes: Routes,
}

impl Attached {
    /// Handles a packet from the device.
    pub(crate) fn enter(&self, packet: PacketRef, cx: &mut Ctx<'_>) {
        match self
            .routes
            .port_towards(cx.packets.get(packet).destination.address)
        {
            Some(port) => cx.emit(port, packet),
            None => cx.discard(packet, DropReason::NoRoute),
        }
    }
}

impl Agent for Attached {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, _from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        cx.emit(OUTSIDE, packet);
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
