//! Address resolution on a link with two ends: ARP (RFC 826), as hosts are to do it (RFC 1122 section 2.3.2).

use std::collections::VecDeque;

use bentpipe_types::{
    Address, Ctx, DropReason, IpVersion, Packet, PacketRef, Port, Resolution, Span, Time,
};

/// How link addresses are found out at one end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbourhood {
    /// The node at this end.
    pub own: Address,
    /// The node at the other: routes say so, as they say a real node its next hop's IP address.
    pub other: Address,
    /// IPv6 asks by neighbour discovery, in longer packets.
    pub version: IpVersion,
    /// How long a link address is good for after it was last heard (RFC 1122 section 2.3.2.1).
    pub timeout: Span,
    /// Packets that wait for it at most; one more drops the oldest, as Linux does.
    pub queue_packets: usize,
}

/// From one request to the next: no more than one a second (RFC 1122 section 2.3.2.1).
const AGAIN: Span = Span::from_secs(1);
/// Requests before what waits is given up: Linux's mcast_solicit, and RFC 4861's MAX_MULTICAST_SOLICIT.
const REQUESTS: u32 = 3;

/// The node at the other end of a link, whose link address has to be known before anything is sent there.
#[derive(Debug)]
pub(crate) struct Neighbour {
    settings: Neighbourhood,
    port: Port,
    /// Its address is good until then.
    known: Option<Time>,
    waiting: VecDeque<PacketRef>,
    requests: u32,
    /// When to ask again, or to give up. Means something where packets wait.
    again: Time,
}

impl Neighbour {
    pub(crate) fn new(settings: Neighbourhood, port: Port) -> Self {
        Self {
            settings,
            port,
            known: None,
            waiting: VecDeque::new(),
            requests: 0,
            again: Time::ZERO,
        }
    }

    /// Packets that wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.again)
    }

    /// A packet is to go there.
    pub(crate) fn send(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        // A group's link address follows from the group's own (RFC 1112 section 6.4).
        let of_group = cx
            .packets
            .get(packet)
            .destination
            .address
            .channel()
            .is_some();
        if of_group || self.known.is_some_and(|until| cx.now < until) {
            cx.emit(self.port, packet);
            return;
        }
        let asks = self.waiting.is_empty();
        if self.waiting.len() >= self.settings.queue_packets.max(1)
            && let Some(oldest) = self.waiting.pop_front()
        {
            cx.discard(oldest, DropReason::Unresolved);
        }
        self.waiting.push_back(packet);
        if asks {
            self.requests = 0;
            self.request(cx);
        }
    }

    /// The other end asks, or answers. In either case it has said where it is.
    pub(crate) fn hear(&mut self, step: Resolution, packet: PacketRef, cx: &mut Ctx<'_>) {
        if cx.packets.get(packet).is_corrupt() {
            cx.discard(packet, DropReason::Checksum);
            return;
        }
        cx.packets.release(packet);
        self.known = Some(cx.now + self.settings.timeout);
        if step == Resolution::Request {
            self.say(Resolution::Reply, cx);
        }
        for packet in self.waiting.drain(..) {
            cx.outbox.push((self.port, packet));
        }
    }

    pub(crate) fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        if self.next_deadline().is_none_or(|at| at > cx.now) {
            return;
        }
        if self.requests < REQUESTS {
            self.request(cx);
            return;
        }
        while let Some(packet) = self.waiting.pop_front() {
            cx.discard(packet, DropReason::Unresolved);
        }
    }

    fn request(&mut self, cx: &mut Ctx<'_>) {
        self.requests += 1;
        self.again = cx.now + AGAIN;
        self.say(Resolution::Request, cx);
    }

    fn say(&self, step: Resolution, cx: &mut Ctx<'_>) {
        let Neighbourhood {
            own,
            other,
            version,
            ..
        } = self.settings;
        let packet = Packet::resolution(own, other, version, step);
        let packet = cx.packets.insert(packet);
        cx.emit(self.port, packet);
    }
}
