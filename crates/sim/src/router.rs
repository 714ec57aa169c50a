//! A router: sends each packet on, along the shortest path.

use bentpipe_types::{Agent, Ctx, DropReason, PacketRef, Port, Routes, Time};

/// A router without a queue of its own: packets wait at the links.
#[derive(Debug, Default)]
pub struct Router {
    routes: Routes,
}

impl Agent for Router {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, _from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if !cx.packets.hop(packet) {
            cx.discard(packet, DropReason::HopLimit);
            return;
        }
        match self
            .routes
            .port_towards(cx.packets.get(packet).destination.address)
        {
            Some(port) => cx.emit(port, packet),
            None => cx.discard(packet, DropReason::NoRoute),
        }
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
