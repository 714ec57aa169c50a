//! Connections begin: answered, refused, unreachable, early, again.

use bentpipe_tcp::{Events, PassiveFastOpen, State};
use bentpipe_types::{Address, Agent, Flags, IpVersion, Packet, Port, Span, Time};

use super::Net;
use super::net::{CLIENT, SERVER, settings, two};
use crate::Class;
use crate::split::Answer;

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

#[test]
fn a_set_up_end_to_end_takes_a_round_trip_of_all() {
    let mut net = Net::new(two(|_| {}), &[1, 250, 2]);
    net.connect(CLIENT, 7);
    assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
    assert_eq!(net.world.now, ms(506));
    // Neither host can tell: they have each other's sequence numbers.
    let server = net.hosts[SERVER].as_ref().expect("accepted").connection();
    assert_eq!(server.peer_initial_sequence().map(|s| s.get()), Some(7));
    let client = net.hosts[CLIENT].as_ref().expect("opened").connection();
    assert_eq!(
        client.peer_initial_sequence().map(|s| s.get()),
        Some(900_000)
    );
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

#[test]
fn an_early_answer_takes_the_lans_round_trip() {
    let mut net = Net::new(two(|s| s.set_up = Answer::Early), &[1, 250, 2]);
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
    // The part over the satellite opens first: a round trip and a half of it, as without. Only the
    // LANs' round trip is saved.
    assert_eq!(net.world.now, ms(1 + 3 * 250 + 2));
}

#[test]
fn who_is_refused_is_refused_by_the_other_side() {
    for (set_up, refused) in [(Answer::EndToEnd, 1), (Answer::Early, 0)] {
        let mut net = Net::new(two(|s| s.set_up = set_up), &[1, 250, 1]);
        net.listens = false;
        net.connect(CLIENT, 7);
        assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Closed));
        let events = net.at(CLIENT, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET));
        // Answered early, it was established first: the price of it.
        assert_eq!(events.has(Events::ESTABLISHED), set_up == Answer::Early);
        assert_eq!(net.count(0, "connections.refused_by_host"), refused);
        assert_eq!(net.world.now, ms(504), "{set_up:?}");
        net.expect_nothing_left();
    }
}

#[test]
fn who_doesnt_answer_is_not_answered_for() {
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
fn a_syn_that_is_lost_goes_again_on_each_part() {
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

#[test]
fn both_may_open_at_once() {
    let mut net = Net::new(two(|_| {}), &[1, 250, 1]);
    net.connect(CLIENT, 7);
    net.connect(SERVER, 9);
    net.run(Span::from_secs(3));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.state(side), State::Established);
        net.at(side, |socket, cx| {
            socket.write(bentpipe_tcp::Source::Filler(5_000), cx);
            socket.close(cx);
        });
    }
    net.run(Span::from_secs(5));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.at(side, |socket, cx| socket.read(u64::MAX, cx)), 5_000);
    }
    net.expect_nothing_left();
}

#[test]
fn a_port_may_be_used_again_while_time_wait_lasts() {
    let mut net = Net::new(two(|_| {}), &[1, 250, 1]);
    for round in 0..3 {
        net.connect(CLIENT, 1_000 * (round + 1));
        assert!(net.run_until(ms(60_000), |net| net.state(CLIENT) == State::Established));
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, cx| socket.close(cx));
        }
        net.run(Span::from_secs(3));
        // The host forgets early; the gateways don't.
        net.hosts = [None, None];
    }
    assert_eq!(net.count(0, "connections.split"), 3);
    assert_eq!(net.count(0, "connections.followed"), 2);
    net.expect_nothing_left();
}

#[test]
fn fast_open_passes() {
    use bentpipe_tcp::{ActiveFastOpen, Opening, Socket, Source};
    let cookie = bentpipe_types::FastOpen::new(b"12345678", false).expect("a cookie");
    let request = bentpipe_types::FastOpen::new(b"", false).expect("a request");
    for (option, bytes, answer) in [
        (request, 0, PassiveFastOpen::Offer(cookie)),
        (cookie, 500, PassiveFastOpen::Take),
        // The server doesn't know the cookie any more: the text goes again.
        (cookie, 500, PassiveFastOpen::Ignore),
    ] {
        let mut net = Net::new(two(|s| s.set_up = Answer::Early), &[1, 250, 1]);
        net.fast_open = answer;
        let config = net.configs[CLIENT].clone().into();
        let opening = Opening {
            config: &config,
            local: net.endpoint(CLIENT),
            remote: net.endpoint(SERVER),
            egress: Port(0),
            initial_sequence: bentpipe_types::Seq::new(7),
        };
        let fast = ActiveFastOpen {
            option: Some(option),
            bytes,
            room: 1_000,
        };
        let (socket, taken) = Socket::connect_fast(
            &opening,
            None,
            fast,
            Source::Filler(bytes),
            &mut net.world.cx(),
        );
        assert_eq!(taken, bytes);
        net.hosts[CLIENT] = Some(socket);
        net.at(CLIENT, |_, _| {});
        let there = move |net: &Net| {
            net.hosts[SERVER]
                .as_ref()
                .is_some_and(|s| s.readable() == bytes)
        };
        assert!(net.run_until(ms(10_000), there));
        if answer == PassiveFastOpen::Take {
            assert_eq!(net.world.now, ms(252), "with the SYN");
        }
        net.run(Span::from_secs(3));
        let client = net.hosts[CLIENT].as_ref().expect("opened").connection();
        assert_eq!(client.state(), State::Established);
        if bytes == 0 {
            assert_eq!(client.offered_cookie(), Some(cookie));
        }
        assert_eq!(client.acknowledged_offset(), bytes);
        net.at(CLIENT, |socket, cx| {
            socket.write(Source::Filler(10_000), cx)
        });
        net.run(Span::from_secs(3));
        let read = net.at(SERVER, |socket, cx| socket.read(u64::MAX, cx));
        assert_eq!(read, bytes + 10_000);
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, cx| socket.close(cx));
        }
        net.expect_nothing_left();
    }
}

/// What a router says of a SYN that a gateway has sent on: the gateway gives up with it, and the host hears it,
/// too. What is said of a connection that passed passes.
#[test]
fn what_a_router_says_reaches_the_leg_that_it_speaks_of() {
    use bentpipe_types::IcmpError;
    for (only, hears) in [
        (None, true),
        (
            Some(Class {
                ports: Some(vec![(9, 9)]),
                hosts: None,
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
        // Beyond the second gateway there is nobody of that name, then nobody at that port.
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
        // The hard one ends the attempt at the gateways.
        assert_eq!(
            [0, 1].map(|at| net.count(at, "connections.unreachable")),
            [u64::from(hears); 2]
        );
    }
}

#[test]
fn what_finds_no_memory_passes_unsplit_and_is_counted() {
    let mut net = Net::new(two(|s| s.memory = 9_000), &[1, 250, 1]);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    assert_eq!(net.count(0, "connections.refused"), 1);
    assert_eq!(net.count(0, "connections.split"), 0);
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
fn what_is_not_tcp_or_was_not_seen_to_begin_passes_as_it_is() {
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
fn only_the_class_that_is_wanted_is_split() {
    for (class, split) in [
        (
            Class {
                ports: Some(vec![(80, 80)]),
                hosts: None,
            },
            1,
        ),
        (
            Class {
                ports: Some(vec![(443, 443)]),
                hosts: None,
            },
            0,
        ),
        (
            Class {
                ports: None,
                hosts: Some(vec![Address(2).into()]),
            },
            1,
        ),
        (
            Class {
                ports: None,
                hosts: Some(vec![Address(3).into()]),
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
