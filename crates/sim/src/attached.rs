//! A node that stands for something outside the network.

use bentpipe_types::{Agent, Ctx, DropReason, PacketRef, Port, Routes, Time};

/// The port behind which the outside is: no link is ever there.
pub(crate) const OUTSIDE: Port = Port(u16::MAX);

/// Where a network ends and a device begins: what arrives here leaves the network
/// ([`Network::departures`](crate::Network::departures)), what enters here
/// ([`Network::inject`](crate::Network::inject)) goes its way. It has no TCP, and it passes nothing on.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    routes: Routes,
}

impl Attached {
    /// A packet comes in from outside.
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
