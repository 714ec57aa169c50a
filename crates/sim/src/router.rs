//! Routers, which forward packets on the shortest path.

use bentpipe_types::{
    Address, Agent, Ctx, DropReason, IcmpError, Packet, PacketRef, PacketStore, Port, Routes, Time,
};

/// A router without a queue of its own: packets queue at the links.
#[derive(Debug, Default)]
pub struct Router {
    routes: Routes,
    limits: Option<Limits>,
}

/// MTUs of a router's links.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Address of the router, the source of ICMP errors.
    pub(crate) address: Address,
    /// MTU by port in bytes; `u32::MAX`, and ports beyond the end, are unlimited.
    pub(crate) mtus: Vec<u32>,
    /// Ports whose links fragment packets.
    pub(crate) dividing: Vec<Port>,
    /// Whether packets that are too long are dropped without an ICMP error.
    pub(crate) silent: bool,
}

/// Reason why a packet is not forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// It is dropped without notice.
    Drop(DropReason),
    /// It is too long, which its sender is told by ICMP.
    TooLong(IcmpError),
}

impl Limits {
    /// Returns the MTU of the link behind `port`, if the packet exceeds it.
    #[inline(never)]
    fn exceeded(
        &self,
        port: Port,
        reference: PacketRef,
        packets: &PacketStore,
    ) -> Option<IcmpError> {
        let mtu = *self.mtus.get(usize::from(port.0))?;
        if packets.get(reference).length().get() <= u64::from(mtu) {
            return None;
        }
        let cut = self.dividing.contains(&port) && packets.may_be_divided(reference);
        (!cut).then_some(IcmpError::TooBig { mtu })
    }
}

impl Router {
    /// Whether it fragments packets.
    pub(crate) fn divides(&self) -> bool {
        (self.limits.as_ref()).is_some_and(|limits| !limits.dividing.is_empty())
    }

    /// Creates a router with MTUs.
    pub(crate) fn limited(limits: Limits) -> Self {
        Self {
            routes: Routes::default(),
            limits: Some(limits),
        }
    }

    /// Returns the port on which a packet is forwarded.
    #[inline(always)]
    pub(crate) fn way(
        &self,
        packet: PacketRef,
        packets: &mut PacketStore,
    ) -> Result<Port, Refusal> {
        if !packets.hop(packet) {
            return Err(Refusal::Drop(DropReason::HopLimit));
        }
        let record = packets.get(packet);
        let Some(port) = self.routes.port_towards(record.destination.address) else {
            return Err(Refusal::Drop(DropReason::NoRoute));
        };
        if let Some(limits) = &self.limits
            && let Some(error) = limits.exceeded(port, packet, packets)
        {
            return Err(Refusal::TooLong(error));
        }
        Ok(port)
    }

    /// Drops a packet. The sender of a packet that exceeds an MTU, and must not be fragmented,
    /// receives an ICMP error (RFC 1191 section 4).
    #[cold]
    pub(crate) fn refuse(&self, packet: PacketRef, refusal: Refusal, cx: &mut Ctx<'_>) {
        let error = match refusal {
            Refusal::Drop(reason) => return cx.discard(packet, reason),
            Refusal::TooLong(error) => error,
        };
        let record = *cx.packets.get(packet);
        cx.discard(packet, DropReason::TooBig);
        let Some(limits) = self.limits.as_ref().filter(|limits| !limits.silent) else {
            return;
        };
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
        match self.way(packet, cx.packets) {
            Ok(port) => cx.emit(port, packet),
            Err(refusal) => self.refuse(packet, refusal, cx),
        }
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
