//! Network address translation whose outside address changes at given times, as at the point of
//! presence of an operator that assigns terminals to gateways.
//!
//! * A connection keeps the outside address with which it began (RFC 4787 section 4.1, RFC 5382
//!   section 7.1). After a change, segments of older connections from the inside reach the server
//!   from an address that it does not know: it resets the connection (RFC 9293 section 3.10.7.1).
//!   The translator sends this reset itself, without the round trip to the server.
//! * Packets from the outside to an earlier address are lost.
//! * The next datagram from the inside gets the new address, and answers arrive again.
//!
//! Addresses themselves are not translated: no model depends on them.

use bentpipe_types::{
    Agent, Ctx, DropReason, Endpoint, Flags, FlowKey, Packet, PacketRef, Port, Routes, Time,
};
use rustc_hash::FxHashMap;

/// Settings of an [`AddressChanger`].
#[derive(Clone, Debug, Default)]
pub struct AddressChangerSettings {
    /// Ports of the inside.
    pub inside: Vec<Port>,
    /// Times at which the outside address changes, ascending.
    pub changes: Vec<Time>,
}

/// A translator whose outside address changes.
#[derive(Debug, Default)]
pub struct AddressChanger {
    settings: AddressChangerSettings,
    routes: Routes,
    /// The mappings by the flow from the inside to the outside.
    mappings: FxHashMap<FlowKey, Mapping>,
    broken: u64,
    renewed: u64,
    stale: u64,
    now: Time,
}

/// A mapping of a flow.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    /// Changes of the outside address before the flow began.
    address: usize,
    /// Whether a packet has met another address since.
    broken: bool,
}

impl AddressChanger {
    /// Creates a translator.
    #[must_use]
    pub fn new(settings: AddressChangerSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    fn changes_until(&self, now: Time) -> usize {
        self.settings.changes.partition_point(|at| *at <= now)
    }

    /// Whether a packet passes: its flow has the present address, or gets it.
    fn passes(&mut self, from: Port, packet: PacketRef, cx: &Ctx<'_>) -> bool {
        let inside = self.settings.inside.contains(&from);
        let record = cx.packets.get(packet);
        let opens = record.flags.has(Flags::SYN) && !record.flags.has(Flags::ACK);
        // A packet of a connection or datagrams from the inside begin a mapping.
        let renews = if record.is_tcp() { opens } else { inside };
        let flow = FlowKey::of(cx.packets, packet);
        let flow = if inside { flow } else { flow.reversed() };
        let address = self.changes_until(cx.now);
        let fresh = Mapping {
            address,
            broken: false,
        };
        let mapping = self.mappings.entry(flow).or_insert(fresh);
        if mapping.address == address {
            return true;
        }
        if renews {
            *mapping = fresh;
            self.renewed += 1;
            return true;
        }
        if !mapping.broken {
            mapping.broken = true;
            self.broken += u64::from(record.is_tcp());
        }
        false
    }

    /// Answers a segment of a connection that is no more, as a host without it does.
    fn reset(to: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(packet);
        if !record.is_tcp() || record.flags.has(Flags::RST) {
            return;
        }
        let (source, destination): (Endpoint, Endpoint) = (record.destination, record.source);
        let mut reset = Packet::new(source, destination, record.ip_version());
        if record.flags.has(Flags::ACK) {
            reset.flags = Flags::RST;
            reset.sequence = record.acknowledgment;
        } else {
            reset.flags = Flags::RST.with(Flags::ACK);
            reset.acknowledgment = record.sequence_end();
        }
        let ip = cx.packets.ip(packet);
        let reference = cx.packets.insert(reset);
        if let Some((source, destination)) = ip {
            cx.packets.set_ip(reference, (destination, source));
        }
        cx.emit(to, reference);
    }
}

impl Agent for AddressChanger {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.now = cx.now;
        if !self.passes(from, packet, cx) {
            self.stale += 1;
            if self.settings.inside.contains(&from) {
                Self::reset(from, packet, cx);
            }
            return cx.discard(packet, DropReason::NoRoute);
        }
        if !cx.packets.hop(packet) {
            return cx.discard(packet, DropReason::HopLimit);
        }
        let destination = cx.packets.get(packet).destination.address;
        match self.routes.port_towards(destination) {
            Some(port) => cx.emit(port, packet),
            None => cx.discard(packet, DropReason::NoRoute),
        }
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("addresses.changes", self.changes_until(self.now) as u64);
        visit("addresses.connections_broken", self.broken);
        visit("addresses.mappings_renewed", self.renewed);
        visit("addresses.packets_lost", self.stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_types::{Address, IpVersion, RandomStream, Span, World};

    const INSIDE: Port = Port(0);
    const OUTSIDE: Port = Port(1);
    const TERMINAL: Address = Address(1);
    const SERVER: Address = Address(2);

    fn translator() -> (AddressChanger, World) {
        let mut agent = AddressChanger::new(AddressChangerSettings {
            inside: vec![INSIDE],
            changes: vec![Time::ZERO + Span::from_secs(10)],
        });
        let mut routes = Routes::new(Address(0), 2, 3);
        routes.add(TERMINAL, INSIDE);
        routes.add(SERVER, OUTSIDE);
        agent.routes(routes);
        (agent, World::new(RandomStream::new(1, "test", "test")))
    }

    fn packet(from: Address, to: Address, flags: Option<Flags>) -> Packet {
        let end = |address| Endpoint { address, port: 7 };
        match flags {
            Some(flags) => {
                let mut packet = Packet::new(end(from), end(to), IpVersion::V4);
                packet.flags = flags;
                packet
            }
            None => Packet::datagram(end(from), end(to), IpVersion::V4, 17),
        }
    }

    /// Returns the port and the flags of what the agent emits for a packet at a time.
    fn emitted(
        agent: &mut AddressChanger,
        world: &mut World,
        seconds: u64,
        of: Packet,
    ) -> Vec<(Port, Flags)> {
        let from = if of.source.address == TERMINAL {
            INSIDE
        } else {
            OUTSIDE
        };
        let reference = world.packets.insert(of);
        let mut cx = world.at(Time::ZERO + Span::from_secs(seconds));
        agent.on_packet(from, reference, &mut cx);
        let outbox = std::mem::take(&mut world.outbox);
        let flags = |(port, packet): (Port, PacketRef)| (port, world.packets.get(packet).flags);
        outbox.into_iter().map(flags).collect()
    }

    fn counter(agent: &AddressChanger, name: &str) -> u64 {
        let mut found = 0;
        agent.counters(&mut |each, value| {
            if each == name {
                found = value;
            }
        });
        found
    }

    #[test]
    fn a_connection_breaks_when_the_address_changes() {
        let (mut agent, mut world) = translator();
        let mut send = |seconds, from, to, flags| {
            emitted(
                &mut agent,
                &mut world,
                seconds,
                packet(from, to, Some(flags)),
            )
        };
        let ack = Flags::ACK;
        assert_eq!(
            send(1, TERMINAL, SERVER, Flags::SYN),
            [(OUTSIDE, Flags::SYN)]
        );
        assert_eq!(send(2, SERVER, TERMINAL, ack), [(INSIDE, ack)]);
        assert_eq!(send(9, TERMINAL, SERVER, ack), [(OUTSIDE, ack)]);
        // To the earlier address: lost. From the inside: reset.
        assert_eq!(send(10, SERVER, TERMINAL, ack), []);
        assert_eq!(send(11, TERMINAL, SERVER, ack), [(INSIDE, Flags::RST)]);
        assert_eq!(send(12, TERMINAL, SERVER, Flags::RST), []);
        // A new connection of the same ports has the new address.
        assert_eq!(
            send(13, TERMINAL, SERVER, Flags::SYN),
            [(OUTSIDE, Flags::SYN)]
        );
        assert_eq!(send(14, SERVER, TERMINAL, ack), [(INSIDE, ack)]);
        assert_eq!(counter(&agent, "addresses.changes"), 1);
        assert_eq!(counter(&agent, "addresses.connections_broken"), 1);
        assert_eq!(counter(&agent, "addresses.packets_lost"), 3);
    }

    #[test]
    fn datagrams_from_the_inside_get_the_new_address() {
        let (mut agent, mut world) = translator();
        let mut send = |seconds, from, to| {
            emitted(&mut agent, &mut world, seconds, packet(from, to, None)).len()
        };
        assert_eq!(send(1, TERMINAL, SERVER), 1);
        assert_eq!(send(2, SERVER, TERMINAL), 1);
        assert_eq!(send(10, SERVER, TERMINAL), 0);
        assert_eq!(send(11, TERMINAL, SERVER), 1);
        assert_eq!(send(12, SERVER, TERMINAL), 1);
        assert_eq!(counter(&agent, "addresses.connections_broken"), 0);
        assert_eq!(counter(&agent, "addresses.mappings_renewed"), 1);
    }
}
