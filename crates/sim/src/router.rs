//! A router: sends each packet on, along the shortest path.

use bentpipe_types::{
    Address, Agent, Ctx, DropReason, IcmpError, Packet, PacketRef, Port, Routes, Time,
};

/// A router without a queue of its own: packets wait at the links.
#[derive(Debug, Default)]
pub struct Router {
    routes: Routes,
    limits: Option<Limits>,
}

/// Links that take no longer packets than so.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Of the router itself: who says so.
    pub(crate) address: Address,
    /// By port, in bytes of IP packet; `u32::MAX`, and ports beyond: any.
    pub(crate) mtus: Vec<u32>,
    /// What is too long is dropped without a word.
    pub(crate) silent: bool,
}

impl Limits {
    /// What a link beyond `port` doesn't take of this packet's length.
    fn exceeded(&self, port: Port, packet: &Packet) -> Option<IcmpError> {
        let mtu = *self.mtus.get(usize::from(port.0))?;
        (packet.length().get() > u64::from(mtu)).then_some(IcmpError::TooBig { mtu })
    }
}

impl Router {
    /// A router some of whose links don't take packets of any length.
    pub(crate) fn limited(limits: Limits) -> Self {
        Self {
            routes: Routes::default(),
            limits: Some(limits),
        }
    }

    /// A packet is too long for the next link. Nothing is fragmented here: its sender is told (RFC 1191
    /// section 4), by a packet like any other.
    #[cold]
    fn refuse(&self, limits: &Limits, packet: PacketRef, error: IcmpError, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(packet);
        cx.discard(packet, DropReason::TooBig);
        if limits.silent {
            return;
        }
        if let Some(complaint) = Packet::icmp_error(limits.address, &record, error)
            && let Some(port) = self.routes.port_towards(record.source.address)
        {
            let complaint = cx.packets.insert(complaint);
            cx.emit(port, complaint);
        }
    }
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
        let record = cx.packets.get(packet);
        let Some(port) = self.routes.port_towards(record.destination.address) else {
            cx.discard(packet, DropReason::NoRoute);
            return;
        };
        if let Some(limits) = &self.limits
            && let Some(error) = limits.exceeded(port, record)
        {
            self.refuse(limits, packet, error, cx);
            return;
        }
        cx.emit(port, packet);
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
