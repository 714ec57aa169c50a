use bentpipe_types::{Address, DropReason, Endpoint, IpVersion, Packet, PacketRef, Span, Time};

use super::{PLENTY, direction, duplex};
use crate::{Network, NetworkBuilder, NodeId};

/// here --1 Mbit/s, 10 ms-- router --1 Mbit/s, 10 ms-- there.
fn network() -> (Network, NodeId, NodeId) {
    let mut builder = NetworkBuilder::new(1);
    let here = builder.attached("here");
    let router = builder.router("router");
    let there = builder.attached("there");
    let delay = Span::from_millis(10);
    let way = || direction(1_000_000, delay, PLENTY, vec![]);
    builder.link(here, router, duplex("first", way(), way()));
    builder.link(router, there, duplex("second", way(), way()));
    (builder.build().expect("a network"), here, there)
}

fn datagram(network: &mut Network, to: NodeId) -> PacketRef {
    let end = |address| Endpoint {
        address: Address(address),
        port: 9,
    };
    let mut record = Packet::datagram(end(0), end(to.0), IpVersion::V4, 17);
    record.payload_length = 97;
    network.packets_mut().insert(record)
}

#[test]
fn injected_packets_depart_at_the_other_end_on_time() {
    let (mut network, here, there) = network();
    assert_eq!(network.next_event(), None);
    assert!(network.advance(Time::from_nanos(5), 100));
    let packet = datagram(&mut network, there);
    network.inject(here, packet);
    // 125 bytes at 1 Mbit/s take 1 ms, twice, plus 20 ms of propagation.
    assert_eq!(network.next_event(), Some(Time::from_nanos(11_000_005)));
    assert!(!network.advance(Time::from_nanos(22_000_005), 1));
    assert!(network.advance(Time::from_nanos(22_000_005), 100));
    assert_eq!(network.violations(), []);
    let mut departures = Vec::new();
    network.departures(&mut departures);
    let [departure] = departures[..] else {
        panic!("{departures:?}");
    };
    assert_eq!((departure.node, departure.packet), (there, packet));
    assert_eq!(departure.at, Time::from_nanos(22_000_005));
    network.packets_mut().release(packet);
    network.finish();
    let outcome = network.outcome();
    assert_eq!(outcome.directions[2].counters.delivered, 1);
    assert_eq!(network.packets_held(), 0);
}

/// An external clock that runs for longer than the schedule's 48 bits (3.26 days).
#[test]
fn an_external_clock_may_run_for_weeks() {
    let (mut network, here, there) = network();
    let hour = Span::from_secs(3_600);
    let mut departures = Vec::new();
    let mut now = Time::ZERO;
    for _ in 0..24 * 30 {
        now += hour;
        assert!(network.advance(now, 100));
        let packet = datagram(&mut network, there);
        network.inject(here, packet);
        assert_eq!(network.next_event(), Some(now + Span::from_millis(11)));
        assert!(network.advance(now + Span::from_secs(1), 100));
        network.departures(&mut departures);
        assert_eq!(departures.len(), 1);
        assert_eq!(departures[0].at, now + Span::from_millis(22));
        network.packets_mut().release(packet);
    }
    assert_eq!(network.violations(), []);
    assert_eq!(network.packets_held(), 0);
}

#[test]
fn attached_nodes_neither_forward_nor_return_packets() {
    let (mut network, here, there) = network();
    // To itself: the only route is the link, and the router returns it.
    let packet = datagram(&mut network, here);
    network.inject(here, packet);
    network.advance(Time::from_nanos(1_000_000_000), 1000);
    let mut departures = Vec::new();
    network.departures(&mut departures);
    assert_eq!(departures.len(), 1);
    assert_eq!(departures[0].node, here);
    network.packets_mut().release(packet);
    // To a node that does not exist.
    let nobody = NodeId(there.0 + 1);
    let packet = datagram(&mut network, nobody);
    network.inject(here, packet);
    network.advance(Time::from_nanos(2_000_000_000), 1000);
    network.departures(&mut departures);
    assert!(departures.is_empty());
    assert_eq!(network.packets_held(), 0);
    assert_eq!(network.outcome().discards.of(DropReason::NoRoute), 1);
}
