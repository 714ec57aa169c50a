//! Opening of connections: answered, refused, unreachable, early, repeated.

use std::cell::RefCell;
use std::rc::Rc;

use bentpipe_tcp::{Events, Ranges, Rings, Source, State};
use bentpipe_types::{
    Address, Agent, Flags, IpVersion, Managed, Packet, PacketStore, Port, Seq, Span,
};

use super::Net;
use super::common_cases::{self, ms};
use super::test_network::{CLIENT, SERVER, settings, two};
use crate::ConnectionClass;
use crate::split::{Confirmation, HostSecret, Settings, Split};

#[test]
fn an_end_to_end_handshake_takes_one_end_to_end_round_trip() {
    let mut net = Net::new(two(|_| {}), &[1, 250, 2]);
    net.connect(CLIENT, 7);
    assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
    assert_eq!(net.world.now, ms(506));
    // Neither host can detect the gateways: each sees the other's sequence numbers.
    common_cases::numbers_are_the_hosts_own(&net);
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

#[test]
fn an_early_answer_takes_the_lan_round_trip() {
    let mut net = Net::new(two(|s| s.set_up = Confirmation::Early), &[1, 250, 2]);
    net.connect(CLIENT, 7);
    assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
    assert_eq!(net.world.now, ms(2));
    net.at(CLIENT, |socket, cx| {
        socket.write(bentpipe_tcp::Source::Filler(100), cx)
    });
    let there = |net: &Net| {
        net.hosts[SERVER]
            .as_ref()
            .is_some_and(|s| s.readable() == 100)
    };
    assert!(net.run_until(ms(5_000), there));
    // The leg over the satellite opens first, which takes one and a half round trips as without a
    // gateway. Only the LANs' round trip is saved.
    assert_eq!(net.world.now, ms(1 + 3 * 250 + 2));
}

#[test]
fn a_refusal_by_the_other_host_is_passed_on() {
    for (set_up, refused) in [(Confirmation::EndToEnd, 1), (Confirmation::Early, 0)] {
        let mut net = Net::new(two(|s| s.set_up = set_up), &[1, 250, 1]);
        net.listens = false;
        net.connect(CLIENT, 7);
        assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Closed));
        let events = net.at(CLIENT, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET));
        // With an early answer the connection was established first, which is the price of it.
        assert_eq!(
            events.has(Events::ESTABLISHED),
            set_up == Confirmation::Early
        );
        assert_eq!(net.count(0, "connections.refused_by_host"), refused);
        assert_eq!(net.world.now, ms(504), "{set_up:?}");
        net.expect_nothing_left();
    }
}

#[test]
fn an_unreachable_host_is_not_answered_for() {
    let mut net = Net::new(two(|_| {}), &[1, 250, 1]);
    net.answers = false;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(300));
    assert_eq!(net.state(CLIENT), State::Closed);
    let events = net.at(CLIENT, |socket, _| socket.take_events());
    assert!(events.has(Events::TIMED_OUT));
    assert_eq!(net.arrived[CLIENT], 0);
    assert_eq!(net.count(0, "connections.unreachable"), 1);
    net.expect_nothing_left();
}

#[test]
fn a_lost_syn_is_retransmitted_on_each_leg() {
    for hop in 0..3 {
        let mut net = Net::new(two(|_| {}), &[1, 250, 1]);
        let mut lost = 0;
        net.hook(
            hop,
            Box::new(move |_, _, _| {
                lost += 1;
                (lost > 1).then_some(())
            }),
        );
        net.connect(CLIENT, 7);
        assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
        assert_eq!(net.world.now, ms(504 + 1_000), "hop {hop}");
    }
}

/// A retransmitted SYN belongs to the connection that was forwarded. A SYN with another sequence
/// number opens another connection from the same port.
#[test]
fn a_retransmitted_syn_of_a_forwarded_connection_is_counted_once() {
    let only = ConnectionClass {
        ports: Some(vec![(443, 443)]),
        hosts: None,
        prefixes: None,
    };
    for draining in [false, true] {
        let mut settings = settings(1);
        if !draining {
            settings.only = Some(only.clone());
        }
        let mut net = Net::new(vec![settings], &[1, 1]);
        net.gateways[0].set_draining(draining);
        net.answers = false;
        for (sequence, counted) in [(7, 1), (7, 1), (8, 2), (8, 2)] {
            let (from, to) = (net.endpoint(CLIENT), net.endpoint(SERVER));
            let mut syn = Packet::new(from, to, IpVersion::V4);
            syn.flags = Flags::SYN;
            syn.sequence = Seq::new(sequence);
            let syn = net.world.packets.insert(syn);
            net.gateways[0].on_packet(Port(0), syn, &mut net.world.cx());
            let (port, left) = net.world.outbox.pop().expect("it is forwarded");
            assert_eq!((port, left), (Port(1), syn));
            net.world.packets.release(syn);
            let counters = &net.gateways[0].counters;
            let expected = if draining { (0, counted) } else { (counted, 0) };
            assert_eq!((counters.passed, counters.passed_draining), expected);
        }
    }
}

#[test]
fn simultaneous_open_works() {
    common_cases::both_open(Net::new(two(|_| {}), &[1, 250, 1]), Span::ZERO);
}

#[test]
fn a_port_may_be_reused_during_time_wait() {
    let net = Net::new(two(|_| {}), &[1, 250, 1]);
    assert_eq!(common_cases::a_port_again(net), 2);
}

#[test]
fn fast_open_works_through_gateways() {
    let make = || Net::new(two(|s| s.set_up = Confirmation::Early), &[1, 250, 1]);
    common_cases::fast_open(make, Span::from_millis(252));
}

/// An ICMP error about a SYN that a gateway has sent: the gateway gives up, and the host receives
/// the error as well. An error about a connection that is not split is forwarded.
#[test]
fn icmp_errors_reach_the_leg_that_they_are_about() {
    use bentpipe_types::IcmpError;
    for (only, hears) in [
        (None, true),
        (
            Some(ConnectionClass {
                ports: Some(vec![(9, 9)]),
                hosts: None,
                prefixes: None,
            }),
            false,
        ),
    ] {
        let mut net = Net::new(two(|s| s.only = only.clone()), &[1, 250, 1]);
        net.answers = false;
        net.connect(CLIENT, 7);
        net.run(Span::from_secs(2));
        let (from, to) = (net.endpoint(CLIENT), net.endpoint(SERVER));
        let mut segment = Packet::new(from, to, IpVersion::V4);
        segment.flags = Flags::SYN;
        segment.sequence = bentpipe_types::Seq::new(7);
        let arrived = net.arrived[CLIENT];
        // Beyond the second gateway there is first no such host, and then no such port.
        for error in [IcmpError::HostUnreachable, IcmpError::ProtocolUnreachable] {
            let said = Packet::icmp_error(Address(9), &segment, error).expect("about TCP");
            let said = net.world.packets.insert(said);
            net.gateways[1].on_packet(Port(1), said, &mut net.world.cx());
            net.carry(2);
            net.run(Span::from_millis(300));
        }
        assert_eq!(net.arrived[CLIENT], arrived + 2, "the host hears it, too");
        assert_eq!(
            net.count(1, "packets.icmp_errors"),
            if hears { 2 } else { 0 }
        );
        // The hard error ends the attempt at the gateways.
        assert_eq!(
            [0, 1].map(|at| net.count(at, "connections.unreachable")),
            [u64::from(hears); 2]
        );
    }
}

#[test]
fn connections_without_memory_are_forwarded_and_counted() {
    let mut net = Net::new(two(|s| s.memory = 9_000), &[1, 250, 1]);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    assert_eq!(net.count(0, "connections.refused"), 1);
    assert_eq!(net.count(0, "connections.split"), 0);
    let said = net.gateways[0].remark().unwrap_or_default();
    assert!(said.contains("no memory left"), "{said}");
    net.at(CLIENT, |socket, cx| {
        socket.write(bentpipe_tcp::Source::Filler(100_000), cx)
    });
    net.run(Span::from_secs(20));
    assert_eq!(
        net.at(SERVER, |socket, cx| socket.read(u64::MAX, cx)),
        100_000
    );
}

#[test]
fn other_protocols_and_connections_without_syn_are_forwarded_unchanged() {
    let mut net = Net::new(vec![settings(1)], &[1, 1]);
    let (from, to) = (net.endpoint(CLIENT), net.endpoint(SERVER));
    let datagram = Packet::datagram(from, to, IpVersion::V4, 17);
    let mut text = Packet::new(from, to, IpVersion::V4);
    text.flags = Flags::ACK;
    text.payload_length = 10;
    net.answers = false;
    for packet in [datagram, text] {
        let packet = net.world.packets.insert(packet);
        net.gateways[0].on_packet(Port(0), packet, &mut net.world.cx());
        let (port, left) = net.world.outbox.pop().expect("it leaves");
        assert_eq!((port, left), (Port(1), packet));
        net.world.packets.release(packet);
    }
    assert_eq!(net.count(0, "packets.passed"), 2);
}

#[test]
fn only_the_selected_class_is_split() {
    for (class, split) in [
        (
            ConnectionClass {
                ports: Some(vec![(80, 80)]),
                hosts: None,
                prefixes: None,
            },
            1,
        ),
        (
            ConnectionClass {
                ports: Some(vec![(443, 443)]),
                hosts: None,
                prefixes: None,
            },
            0,
        ),
        (
            ConnectionClass {
                ports: None,
                hosts: Some(vec![Address(2).into()]),
                prefixes: None,
            },
            1,
        ),
        (
            ConnectionClass {
                ports: None,
                hosts: Some(vec![Address(3).into()]),
                prefixes: None,
            },
            0,
        ),
    ] {
        let mut net = Net::new(two(|s| s.only = Some(class.clone())), &[1, 250, 1]);
        net.connect(CLIENT, 7);
        net.run(Span::from_secs(2));
        assert_eq!(net.state(CLIENT), State::Established);
        assert_eq!(net.count(0, "connections.split"), split);
        let mut net = Net::new(two(|s| s.except = Some(class.clone())), &[1, 250, 1]);
        net.connect(CLIENT, 7);
        net.run(Span::from_secs(2));
        assert_eq!(net.count(0, "connections.split"), 1 - split);
        assert_eq!(net.count(0, "connections.passed"), split);
    }
}

/// Idle connections take only their state: before, a SYN reserved the windows of both directions.
#[test]
fn many_idle_connections_are_split_in_little_memory() {
    let mut net = Net::new(vec![settings_with(4 << 20)], &[1, 1]);
    for port in 0..400 {
        net.client_port = 10_000 + port;
        net.hosts = [None, None];
        net.connect(CLIENT, 7);
        net.run(Span::from_millis(10));
    }
    assert_eq!(net.count(0, "connections.split"), 400);
    assert_eq!(net.count(0, "connections.open"), 400);
}

/// SYNs of one source that nobody answers leave room for others, and are counted.
#[test]
fn half_open_connections_of_a_source_are_limited() {
    let mut net = Net::new(vec![settings_with(16 << 20)], &[1, 1]);
    net.answers = false;
    for port in 0..400 {
        net.client_port = 10_000 + port;
        net.hosts = [None, None];
        net.connect(CLIENT, 7);
        net.run(Span::from_micros(2_500));
    }
    let gateway = &net.gateways[0];
    let limit = (16 << 20) / 8 / Split::<Ranges>::state_bytes() as u32;
    assert_eq!(gateway.admission.half_open(), limit / 2 + 1);
    assert_eq!(
        gateway.counters.refused_half_open,
        u64::from(400 - limit / 2 - 1)
    );
    let said = gateway.remark().unwrap_or_default();
    assert!(said.contains("wait for an answer"), "{said}");
}

fn settings_with(memory: u64) -> Settings {
    Settings {
        memory,
        ..settings(1)
    }
}

/// A secret of a machine that has been up for an hour.
fn secret(key: u64) -> HostSecret {
    HostSecret {
        keys: [key, 2],
        clock_ms: 3_600_000,
    }
}

/// Returns the timestamps of the SYN and of its answer, before and behind a gateway.
fn handshake_timestamps(key: u64, hosts_have_them: bool, set_up: Confirmation) -> Vec<u32> {
    let settings = Settings {
        secret: Some(secret(key)),
        set_up,
        ..settings(1)
    };
    let mut net = super::test_network::Net::<Rings>::new(vec![settings], &[1, 250]);
    if !hosts_have_them {
        for config in &mut net.configs {
            config.timestamps = false;
        }
    }
    let seen = Rc::new(RefCell::new(Vec::new()));
    for hop in [0, 1] {
        let seen = Rc::clone(&seen);
        let note = move |_, packet, packets: &mut PacketStore| {
            let record = packets.get(packet);
            if record.flags.has(Flags::SYN) {
                seen.borrow_mut()
                    .push(record.timestamps().map_or(0, |(value, _)| value));
            }
            Some(())
        };
        net.hook(hop, Box::new(note));
    }
    // The client's clock shows 5 s, the server's later.
    net.run(Span::from_secs(5));
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    assert_eq!(net.state(CLIENT), State::Established);
    let sent = [1; 100_000];
    net.at(CLIENT, |socket, cx| socket.write(Source::Bytes(&sent), cx));
    net.run(Span::from_secs(3));
    assert_eq!(
        net.at(SERVER, |socket, cx| socket.read(u64::MAX, cx)),
        100_000
    );
    seen.take()
}

#[test]
fn timestamps_continue_those_of_the_hosts() {
    let [client, facing, server, host] = handshake_timestamps(1, true, Confirmation::EndToEnd)[..]
    else {
        panic!("two SYNs and two answers");
    };
    assert_eq!((facing, host), (client, server));
    assert_eq!((client, server), (5_001, 5_252));
}

/// RFC 7323 section 5.4: for hosts without timestamps, they are those of a keyed hash.
#[test]
fn timestamps_of_their_own_cannot_be_predicted() {
    let facing = |key| handshake_timestamps(key, false, Confirmation::EndToEnd)[1];
    assert_eq!(facing(1), facing(1));
    assert_ne!(facing(1), facing(2));
    assert!(facing(1) > 10_000, "no time since the start");
    // With an early answer, the server's timestamp is yet unknown.
    let early = |key| handshake_timestamps(key, true, Confirmation::Early);
    let answers = |key: u64| -> Vec<u32> {
        early(key)
            .into_iter()
            .filter(|value| *value > 10_000)
            .collect()
    };
    assert_ne!(answers(1), answers(2));
}
