//! A router: sends each packet on, along the shortest path.

use bentpipe_types::{
    Address, Agent, Ctx, DropReason, IcmpError, Packet, PacketRef, PacketStore, Port, Routes, Time,
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
    /// Ports whose links cut what may be cut.
    pub(crate) dividing: Vec<Port>,
    /// What is too long is dropped without a word.
    pub(crate) silent: bool,
}

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// For a reason that nobody is told.
    Drop(DropReason),
    /// For its length, which its sender is told.
    TooLong(IcmpError),
}

impl Limits {
    /// What a link beyond `port` doesn't take of this packet's length.
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
    /// A router some of whose links don't take packets of any length.
    pub(crate) fn limited(limits: Limits) -> Self {
        Self {
            routes: Routes::default(),
            limits: Some(limits),
        }
    }

    /// Where a packet goes on to, which has come this far.
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

    /// A packet goes no further. The sender of one that is too long for the next link, and not to be cut,
    /// is told (RFC 1191 section 4), by a packet like any other.
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
