//! Address resolution on a link with two ends: ARP (RFC 826) with the host requirements (RFC 1122
//! section 2.3.2).

use std::collections::VecDeque;

use bentpipe_types::{
    Address, Ctx, DropReason, IpVersion, Packet, PacketRef, Port, Resolution, Span, Time,
};

/// Settings of address resolution at one end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpSettings {
    /// Node at this end.
    pub own: Address,
    /// Node at the other end. Routes contain it, as a real route contains the next hop's IP
    /// address.
    pub other: Address,
    /// IP version. IPv6 uses neighbour discovery, whose packets are longer.
    pub version: IpVersion,
    /// Time for which a link address is valid after it was received (RFC 1122 section 2.3.2.1).
    pub timeout: Span,
    /// Maximum number of waiting packets. A further one drops the oldest, as in Linux.
    pub queue_packets: usize,
}

/// Interval between requests: at most one per second (RFC 1122 section 2.3.2.1).
const AGAIN: Span = Span::from_secs(1);
/// Number of requests before waiting packets are dropped: Linux's mcast_solicit, RFC 4861's
/// MAX_MULTICAST_SOLICIT.
const REQUESTS: u32 = 3;

/// State of address resolution for the node at the other end of a link.
#[derive(Debug)]
pub(crate) struct Neighbour {
    settings: ArpSettings,
    port: Port,
    /// Expiry time of its link address, if known.
    known: Option<Time>,
    waiting: VecDeque<PacketRef>,
    requests: u32,
    /// Time of the next request or of giving up. Valid while packets are waiting.
    again: Time,
}

impl Neighbour {
    pub(crate) fn new(settings: ArpSettings, port: Port) -> Self {
        Self {
            settings,
            port,
            known: None,
            waiting: VecDeque::new(),
            requests: 0,
            again: Time::ZERO,
        }
    }

    /// Returns the number of waiting packets.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.again)
    }

    /// Sends a packet to the neighbour, or queues it until the link address is known.
    pub(crate) fn send(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        // A group's link address follows from its IP address (RFC 1112 section 6.4).
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

    /// Handles a request or reply of the neighbour. Both contain its link address.
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
        let ArpSettings {
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
