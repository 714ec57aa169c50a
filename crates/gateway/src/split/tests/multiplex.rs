//! Multiplexed connections: what is the same as without trunks, and what differs.

use bentpipe_tcp::{Events, Source, State};
use bentpipe_types::{Agent, Flags, PacketRef, PacketStore, Port, Seq, Span, Time};

use super::Net;
use super::common_cases::{self, ms, read, write};
use super::test_network::{CLIENT, SERVER, multiplexed, two};
use crate::split::Confirmation;

const HOPS: [u64; 3] = [1, 250, 2];

/// Returns a network in which the client has opened and closed one connection, so that a trunk is
/// open.
fn warm(gateways: Vec<crate::split::Settings>) -> Net {
    let mut net = Net::new(gateways, &HOPS);
    net.connect(CLIENT, 7);
    let both = |net: &Net| [CLIENT, SERVER].map(|side| net.state(side)) == [State::Established; 2];
    assert!(net.run_until(ms(5_000), both));
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.run(Span::from_secs(5));
    net.hosts = [None, None];
    net.client_port += 1;
    net
}

fn opened(gateways: Vec<crate::split::Settings>) -> Net {
    let mut net = warm(gateways);
    net.connect(CLIENT, 7);
    let end = net.world.now + Span::from_secs(5);
    assert!(net.run_until(end, |net| net.state(CLIENT) == State::Established));
    net
}

#[test]
fn opening_needs_no_handshake_over_the_satellite() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    net.connect(CLIENT, 7);
    assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
    // The first connection waits for the trunk to open: one more round trip.
    assert_eq!(net.world.now, ms(506 + 500));
    let mut net = opened(multiplexed(1, |_| {}));
    common_cases::numbers_are_the_hosts_own(&net);
    assert_eq!(net.count(0, "multiplex.opened"), 1);
    assert_eq!(net.count(1, "multiplex.opened"), 1);
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

#[test]
fn with_early_answers_data_follows_the_open_frame_at_once() {
    let mut net = warm(multiplexed(2, |s| s.set_up = Confirmation::Early));
    let begin = net.world.now;
    net.connect(CLIENT, 7);
    let end = begin + Span::from_secs(5);
    assert!(net.run_until(end, |net| net.state(CLIENT) == State::Established));
    assert_eq!(net.world.now.since(begin), Span::from_millis(2));
    write(&mut net, CLIENT, 100);
    let there = |net: &Net| (net.hosts[SERVER].as_ref()).is_some_and(|s| s.readable() == 100);
    assert!(net.run_until(end, there));
    // One way over the satellite: the data is there before the server has answered. Without a trunk
    // it waits for a handshake over the satellite.
    let took = net.world.now.since(begin);
    assert_eq!(took, Span::from_millis(1 + 250 + 3 * 2));
    net.at(CLIENT, |socket, cx| socket.close(cx));
    net.at(SERVER, |socket, cx| socket.close(cx));
    net.expect_nothing_left();
}

#[test]
fn refused_and_unreachable_are_reported_as_without_trunks() {
    for set_up in [Confirmation::EndToEnd, Confirmation::Early] {
        let mut net = warm(multiplexed(1, |s| s.set_up = set_up));
        net.listens = false;
        let begin = net.world.now;
        net.connect(CLIENT, 7);
        let closed = |net: &Net| net.state(CLIENT) == State::Closed;
        assert!(net.run_until(begin + Span::from_secs(5), closed));
        assert_eq!(net.world.now.since(begin), Span::from_millis(506));
        let events = net.at(CLIENT, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET));
        assert_eq!(
            events.has(Events::ESTABLISHED),
            set_up == Confirmation::Early
        );
        net.expect_nothing_left();
    }
    let mut net = warm(multiplexed(1, |_| {}));
    net.answers = false;
    let arrived = net.arrived[CLIENT];
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(300));
    let events = net.at(CLIENT, |socket, _| socket.take_events());
    assert!(events.has(Events::TIMED_OUT));
    assert_eq!(net.arrived[CLIENT], arrived, "nothing");
    assert_eq!(net.count(0, "connections.unreachable"), 1);
    net.expect_nothing_left();
}

#[test]
fn a_client_that_gives_up_cancels_its_stream() {
    let mut net = warm(multiplexed(1, |_| {}));
    net.answers = false;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    net.at(CLIENT, |socket, cx| socket.abort(cx));
    // The client has sent nothing: in SYN-SENT there is nothing to reset.
    let mut reset = bentpipe_types::Packet::new(
        net.endpoint(CLIENT),
        net.endpoint(SERVER),
        bentpipe_types::IpVersion::V4,
    );
    reset.flags = Flags::RST;
    reset.sequence = Seq::new(8);
    let reset = net.world.packets.insert(reset);
    net.gateways[0].on_packet(Port(0), reset, &mut net.world.cx());
    net.expect_nothing_left();
}

#[test]
fn simultaneous_open_works() {
    // At the same time, and such that one side's SYN has arrived when the other opens.
    for wait in [0, 100, 240, 251, 252] {
        common_cases::both_open(warm(multiplexed(2, |_| {})), Span::from_millis(wait));
    }
}

#[test]
fn a_port_may_be_reused_during_time_wait() {
    common_cases::a_port_again(Net::new(multiplexed(1, |_| {}), &HOPS));
}

/// With early confirmation of FINs, the client's connection is closed and its port is reused, while
/// the server has yet to receive data. The next connection waits for that.
#[test]
fn a_reused_port_takes_no_data_from_the_earlier_connection() {
    let mut net = warm(multiplexed(2, |s| s.close = Confirmation::Early));
    net.configs[SERVER].receive_buffer = 20_000;
    net.configs[SERVER].receive_sizes = None;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    net.at(SERVER, |socket, cx| socket.close(cx));
    write(&mut net, CLIENT, 100_000);
    net.run(Span::from_secs(20));
    net.at(CLIENT, |socket, cx| socket.close(cx));
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Closed, "all of it is confirmed");
    net.connect(CLIENT, 1_000_000);
    net.run(Span::from_secs(10));
    assert_eq!(net.state(CLIENT), State::SynSent);
    let mut got = 0;
    for _ in 0..20 {
        got += read(&mut net, SERVER);
        net.run(Span::from_millis(50));
    }
    assert_eq!((got, net.state(SERVER)), (100_000, State::TimeWait));
    net.run(Span::from_secs(10));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.state(side), State::Established);
    }
    common_cases::exchange(&mut net, 5_000, Span::from_secs(5));
    net.expect_nothing_left();
}

#[test]
fn fast_open_works_through_gateways() {
    let make = || warm(multiplexed(1, |s| s.set_up = Confirmation::Early));
    common_cases::fast_open(make, Span::from_millis(253));
}

#[test]
fn half_closed_connections_go_on() {
    for close in [Confirmation::EndToEnd, Confirmation::Early] {
        common_cases::half_close(opened(multiplexed(1, |s| s.close = close)));
    }
}

#[test]
fn a_fin_is_acknowledged_when_the_other_host_has() {
    for (close, confirmed_after_ms) in [(Confirmation::EndToEnd, 506), (Confirmation::Early, 2)] {
        let mut net = opened(multiplexed(1, |s| s.close = close));
        write(&mut net, CLIENT, 3_000_000);
        net.run(Span::from_secs(30));
        assert_eq!(read(&mut net, SERVER), 3_000_000);
        let took = common_cases::close_confirmed_after(&mut net);
        assert_eq!(took, Span::from_millis(confirmed_after_ms), "{close:?}");
    }
}

#[test]
fn a_reset_is_passed_on() {
    for side in [CLIENT, SERVER] {
        common_cases::reset(opened(multiplexed(1, |_| {})), side);
    }
}

/// All data that can be sent waits for the other gateway, which is gone.
#[test]
fn hosts_that_wait_are_reset_when_a_gateway_crashes() {
    let mut net = warm(multiplexed(1, reads_little));
    net.configs[SERVER].receive_buffer = 20_000;
    net.configs[SERVER].receive_sizes = None;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    net.at(CLIENT, |socket, cx| {
        socket.write(Source::Filler(10_000_000), cx)
    });
    let sent = |net: &Net| {
        let client = net.hosts[CLIENT].as_ref().expect("a socket");
        client.connection().sent_offset()
    };
    net.run(Span::from_secs(30));
    let before = sent(&net);
    net.run(Span::from_secs(10));
    assert_eq!(before, sent(&net), "it waits");
    let dies = net.world.now;
    net.hook(1, Box::new(move |now, _, _| (now < dies).then_some(())));
    net.run(Span::from_secs(130));
    for side in [CLIENT, SERVER] {
        let events = net.at(side, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET), "{side}");
    }
}

fn reads_little(settings: &mut crate::split::Settings) {
    settings.host_tcp.receive_buffer = 100_000;
    settings.host_tcp.send_buffer = 100_000;
}

/// Opens another connection with 300 kB on it, and returns the time that takes.
fn second_transfer(net: &mut Net) -> Span {
    net.client_port += 1;
    let begin = net.world.now;
    net.connect(CLIENT, 70);
    net.run(Span::from_secs(2));
    assert_eq!(net.state(CLIENT), State::Established);
    write(net, SERVER, 300_000);
    let there = |net: &Net| {
        net.hosts[CLIENT]
            .as_ref()
            .is_some_and(|client| client.readable() == 300_000)
    };
    assert!(net.run_until(begin + Span::from_secs(60), there));
    let took = net.world.now.since(begin);
    assert_eq!(read(net, CLIENT), 300_000);
    took
}

/// The client of one connection does not read. The others are not delayed, and the gateways hold a
/// bounded amount of its data.
#[test]
fn a_client_that_does_not_read_delays_no_other() {
    let mut net = warm(multiplexed(1, reads_little));
    let usual = net.configs[CLIENT].receive_buffer;
    net.configs[CLIENT].receive_buffer = 20_000;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    net.configs[CLIENT].receive_buffer = usual;
    write(&mut net, SERVER, 1_000_000);
    net.run(Span::from_secs(20));
    let held = net.gateways[0].gauge(0);
    assert!((50_000.0..300_000.0).contains(&held), "{held}");
    // So that the earlier data on the trunk makes no difference.
    net.run(Span::from_secs(60));
    let stuck = std::mem::take(&mut net.hosts);
    let took = second_transfer(&mut net);
    let mut alone = warm(multiplexed(1, reads_little));
    assert_eq!(took, second_transfer(&mut alone));
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.run(Span::from_secs(60));
    // The first connection goes on.
    net.hosts = stuck;
    net.client_port -= 1;
    let mut got = 0;
    for _ in 0..400 {
        got += read(&mut net, CLIENT);
        net.run(Span::from_millis(500));
    }
    assert_eq!(got, 1_000_000);
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

#[test]
fn when_the_trunk_fails_all_hosts_are_reset_and_the_next_connection_reopens_it() {
    let mut net = opened(multiplexed(1, |s| {
        s.facing_tcp.maximum_retransmissions = 6;
        s.idle_timeout = Span::from_secs(600);
    }));
    write(&mut net, CLIENT, 500_000);
    net.run(Span::from_millis(300));
    let (dies, lives) = (net.world.now, net.world.now + Span::from_secs(1_200));
    net.hook(
        1,
        Box::new(move |now, _, _| (now < dies || now > lives).then_some(())),
    );
    net.run(Span::from_secs(1_250));
    for side in [CLIENT, SERVER] {
        let events = net.at(side, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET), "{side}");
    }
    assert_eq!(net.count(0, "multiplex.failed"), 1);
    assert_eq!(net.count(0, "multiplex.connections"), 0);
    net.hosts = [None, None];
    net.client_port += 1;
    net.connect(CLIENT, 70);
    net.run(Span::from_secs(10));
    assert_eq!(net.state(CLIENT), State::Established);
    write(&mut net, CLIENT, 50_000);
    net.run(Span::from_secs(10));
    assert_eq!(read(&mut net, SERVER), 50_000);
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

/// A restarted gateway has no state.
#[test]
fn all_hosts_are_reset_when_a_gateway_restarts() {
    for which in [0, 1] {
        let mut net = opened(multiplexed(1, |_| {}));
        write(&mut net, CLIENT, 100_000);
        net.run(Span::from_millis(300));
        net.restart(which);
        // A host that has nothing to send is not reset before it sends.
        write(&mut net, SERVER, 1_000);
        write(&mut net, CLIENT, 1_000);
        net.run(Span::from_secs(600));
        for side in [CLIENT, SERVER] {
            let events = net.at(side, |socket, _| socket.take_events());
            assert!(events.has(Events::RESET), "gateway {which}, host {side}");
        }
        net.hosts = [None, None];
        net.client_port += 1;
        net.connect(CLIENT, 70);
        net.run(Span::from_secs(10));
        assert_eq!(net.state(CLIENT), State::Established);
    }
}

/// A gateway that shuts down counts resets as without trunks, and keeps nothing.
#[test]
fn a_shutdown_counts_the_connections_reset() {
    for which in [0, 1] {
        let mut net = opened(multiplexed(1, |_| {}));
        net.run(Span::from_secs(1));
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, _| socket.take_events());
        }
        write(&mut net, SERVER, 3_000_000);
        net.run(Span::from_millis(900));
        let before = net.count(which, "connections.aborted");
        net.retire(which);
        assert_eq!(net.count(which, "connections.open"), 0);
        assert_eq!(net.count(which, "connections.aborted"), before + 1);
        assert_eq!(net.count(which, "bytes_held.now"), 0);
        assert_eq!(net.count(which, "bytes_promised.now"), 0);
        assert_eq!(net.count(which, "multiplex.connections"), 1);
        net.run(Span::from_secs(1));
        for side in [CLIENT, SERVER] {
            let events = net.at(side, |socket, _| socket.take_events());
            assert!(events.has(Events::RESET), "{which} {side}");
        }
    }
}

#[test]
fn connections_without_memory_at_the_peer_are_forwarded() {
    let settings = multiplexed(1, |s| {
        if s.facing == Port(0) {
            s.memory = 300_000;
        }
    });
    let mut net = warm(settings);
    // All of its memory is promised to others.
    let gateway = &mut net.gateways[1];
    let left = gateway.budget.available();
    gateway.budget.change((0, left), (0, 0));
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Established);
    let refused = [0, 1].map(|gateway| net.count(gateway, "connections.refused"));
    assert_eq!(refused[0], 1);
    assert!(refused[1] >= 1);
    write(&mut net, CLIENT, 50_000);
    net.run(Span::from_secs(10));
    assert_eq!(read(&mut net, SERVER), 50_000);
}

#[test]
fn without_memory_for_a_trunk_connections_are_split_separately() {
    let mut net = Net::new(multiplexed(4, |s| s.memory = 60_000), &HOPS);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Established);
    assert_eq!(net.count(0, "multiplex.opened"), 0);
    assert_eq!(net.count(0, "connections.split"), 1);
}

/// Returns true if a packet is sent by this gateway in its own name.
fn is_of_gateway(packets: &PacketStore, packet: PacketRef, which: usize) -> bool {
    let record = packets.get(packet);
    record.source.port == record.destination.port && record.source.address.0 == 10 + which as u16
}

/// Drops the packets that these gateways send in their own names, until then.
fn lose_what_gateways_say(net: &mut Net, which: &'static [usize], until: Time) {
    net.hook(
        1,
        Box::new(move |now, packet, packets| {
            let lost = (which.iter()).any(|which| is_of_gateway(packets, packet, *which));
            (!lost || now >= until).then_some(())
        }),
    );
}

/// Opens one more connection, and returns the time that takes.
fn next_connection(net: &mut Net) -> Span {
    net.hosts = [None, None];
    net.client_port += 1;
    let begin = net.world.now;
    net.connect(CLIENT, 70);
    let both = |net: &Net| [CLIENT, SERVER].map(|side| net.state(side)) == [State::Established; 2];
    assert!(net.run_until(begin + Span::from_secs(10), both));
    let took = net.world.now.since(begin);
    common_cases::exchange(net, 50_000, Span::from_secs(5));
    took
}

#[test]
fn without_a_peer_connections_are_split_separately() {
    // The connection waits for a trunk for 3 s and then takes a round trip, as without one. Even
    // with early answers a connection that may still become a stream is not answered before. The
    // second gateway, which only splits it, may answer early.
    for (set_up, took) in [
        (Confirmation::EndToEnd, 3_506),
        (Confirmation::Early, 3_502),
    ] {
        let mut net = Net::new(multiplexed(2, |s| s.set_up = set_up), &HOPS);
        lose_what_gateways_say(&mut net, &[0, 1], ms(10_000_000));
        net.connect(CLIENT, 7);
        let begin = net.world.now;
        let open = |net: &Net| net.state(CLIENT) == State::Established;
        assert!(net.run_until(begin + Span::from_secs(5), open));
        assert_eq!(net.world.now.since(begin), Span::from_millis(took));
        write(&mut net, CLIENT, 50_000);
        net.run(Span::from_secs(10));
        assert_eq!(read(&mut net, SERVER), 50_000);
        // Later connections do not wait while there is no answer, however often the peer is tried
        // again.
        for _ in 0..30 {
            let took = Span::from_millis(took - 3_000);
            assert_eq!(next_connection(&mut net), took);
            net.run(Span::from_secs(20));
        }
        assert_eq!(net.count(0, "connections.split"), 31);
        assert_eq!(net.count(0, "multiplex.connections"), 1);
        assert!((10..=31).contains(&net.count(0, "multiplex.opened")));
    }
}

#[test]
fn connections_use_a_trunk_once_the_peer_appears() {
    let mut net = Net::new(multiplexed(2, |_| {}), &HOPS);
    lose_what_gateways_say(&mut net, &[0, 1], ms(10_000));
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Established);
    let said = |net: &Net| net.gateways[0].remark().unwrap_or_default();
    assert!(said(&net).contains("does not answer"));
    // The third SYN after that is answered.
    net.run(Span::from_secs(20));
    assert!(said(&net).contains("other gateway answers"));
    assert_eq!(
        [0, 1].map(|at| net.count(at, "multiplex.connections")),
        [1, 1]
    );
    let stays = std::mem::take(&mut net.hosts);
    assert_eq!(next_connection(&mut net), Span::from_millis(506));
    assert_eq!(net.count(0, "multiplex.failed"), 0);
    let split = [0, 1].map(|at| net.count(at, "connections.split"));
    let parts = [0, 1].map(|at| net.gateways[at].pairs.len());
    assert_eq!((split, parts), ([2, 2], [1, 1]));
    // The first connection goes on by itself.
    net.hosts = stays;
    net.client_port -= 1;
    common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
    net.expect_nothing_left();
}

/// Both hosts have sent a SYN, and one or both gateways have stopped waiting, before the gateways
/// receive each other's frames. Whichever gateway finds a trunk, both hosts get their connection.
#[test]
fn simultaneous_open_works_with_late_frames() {
    for set_up in [Confirmation::EndToEnd, Confirmation::Early] {
        for lost in [&[0, 1][..], &[0], &[1]] {
            for until in [1_500, 2_900, 3_050, 3_300, 4_000, 7_100] {
                for wait in [
                    0, 100, 260, 700, 1_800, 2_700, 3_010, 3_100, 3_240, 3_400, 3_600,
                ] {
                    let mut net = Net::new(multiplexed(2, |s| s.set_up = set_up), &HOPS);
                    lose_what_gateways_say(&mut net, lost, ms(until));
                    late_open(net, Span::from_millis(wait));
                }
            }
        }
    }
}

fn late_open(mut net: Net, wait: Span) {
    net.connect(CLIENT, 7);
    net.run(wait);
    // Otherwise it is no simultaneous open.
    if net.hosts[SERVER].is_none() {
        net.connect(SERVER, 9);
    }
    net.run(Span::from_secs(15));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.state(side), State::Established, "{wait:?}");
    }
    common_cases::exchange(&mut net, 5_000, Span::from_secs(5));
    net.expect_nothing_left();
}

/// The other gateway's answers are late, and the trunk has been given up. Nothing was sent yet, and
/// no connection is reset.
#[test]
fn a_connection_whose_trunk_is_refused_while_waiting_is_split_separately() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    lose_what_gateways_say(&mut net, &[1], ms(2_000));
    net.connect(CLIENT, 7);
    net.run(Span::from_millis(1_000));
    // The first gateway crashes, and its request with it. The second has answered, and its host
    // waits.
    net.restart(0);
    net.hosts[CLIENT] = None;
    net.connect(SERVER, 9);
    net.run(Span::from_millis(200));
    net.connect(CLIENT, 70);
    net.run(Span::from_secs(10));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.state(side), State::Established);
    }
}

/// A gateway and its host have restarted, so only the other gateway knows of a connection without a
/// trunk. It detects that, and the next connection between the same endpoints opens.
#[test]
fn a_separate_connection_forgotten_by_the_peer_is_replaced() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    lose_what_gateways_say(&mut net, &[0, 1], ms(6_000));
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Established);
    net.run(Span::from_secs(5));
    net.restart(0);
    net.hosts[CLIENT] = None;
    net.connect(CLIENT, 7_000_000);
    net.run(Span::from_secs(10));
    let events = net.hosts[SERVER].as_mut().expect("a socket").take_events();
    assert!(events.has(Events::ESTABLISHED));
    assert_eq!(net.state(CLIENT), State::Established);
    write(&mut net, CLIENT, 5_000);
    net.run(Span::from_secs(5));
    assert_eq!(read(&mut net, SERVER), 5_000);
}

/// A multiplexed connection is in TIME-WAIT at the other gateway when the next one between the same
/// endpoints is opened without a trunk.
#[test]
fn an_ended_stream_is_replaced_by_a_separate_connection() {
    let mut net = opened(multiplexed(1, |_| {}));
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
        net.run(Span::from_secs(2));
    }
    net.hosts = [None, None];
    net.restart(0);
    lose_what_gateways_say(&mut net, &[0, 1], ms(10_000_000));
    let begin = net.world.now;
    // An old SYN opens nothing.
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(8));
    assert_eq!(net.state(CLIENT), State::SynSent);
    net.restart(0);
    net.connect(CLIENT, 7_000_000);
    let open = |net: &Net| net.state(CLIENT) == State::Established;
    assert!(net.run_until(begin + Span::from_secs(15), open));
    assert_eq!(net.count(1, "connections.followed"), 1);
}

/// One gateway has more trunks than the other. These are refused, and their streams use the others.
#[test]
fn streams_of_refused_trunks_use_the_open_ones() {
    for both in [false, true] {
        let mut settings = multiplexed(3, |_| {});
        let fewer = multiplexed(1, |_| {}).remove(1);
        settings[1].multiplex = fewer.multiplex;
        let mut net = opened(settings);
        net.client_port += 1;
        let first = std::mem::take(&mut net.hosts);
        let begin = net.world.now;
        net.connect(CLIENT, 70);
        if both {
            // It has received the answer, and must still send its own.
            net.connect(SERVER, 90);
        }
        net.run(Span::from_millis(1_100));
        for side in [CLIENT, SERVER] {
            assert_eq!(net.state(side), State::Established, "{both}");
        }
        common_cases::exchange(&mut net, 5_000, Span::from_secs(5));
        assert!(net.world.now.since(begin) < Span::from_secs(60));
        assert!(net.gateways.iter().all(|gateway| gateway.pairs.len() == 0));
        let said = [0, 1].map(|at| net.gateways[at].remark().unwrap_or_default());
        assert!(said[0].contains("refuses some"), "{said:?}");
        assert!(said[1].contains("opens more"), "{said:?}");
        net.hosts = first;
        net.client_port -= 1;
        common_cases::close(&mut net);
        net.expect_nothing_left();
    }
}

/// The same endpoints, opened in one direction and then in the other.
#[test]
fn a_port_may_be_reused_in_both_directions() {
    for (from, until) in [(0, 5_000), (20_000, 40_000)] {
        let mut net = Net::new(multiplexed(1, |s| s.close = Confirmation::Early), &HOPS);
        net.hook(
            1,
            Box::new(move |now, packet, packets| {
                let lost = (0..2).any(|which| is_of_gateway(packets, packet, which));
                (!lost || now < ms(from) || now >= ms(until)).then_some(())
            }),
        );
        for round in 0..6 {
            net.connect(CLIENT, 1_000_000 * (round + 1));
            let open = |net: &Net| net.state(CLIENT) == State::Established;
            let end = net.world.now + Span::from_secs(400);
            assert!(net.run_until(end, open), "{from} {round}");
            common_cases::exchange(&mut net, 5_000, Span::from_secs(7));
            net.hosts = [None, None];
        }
        net.expect_nothing_left();
    }
}

/// A peer that sends anything but frames is disconnected.
#[test]
fn an_invalid_frame_ends_the_trunk() {
    let mut net = opened(multiplexed(1, |_| {}));
    let forged = net.gateways[0].multiplex.as_mut().expect("multiplexed");
    forged.write_raw(0, &[0xee; 100], &mut net.world.cx());
    net.carry(1);
    net.run(Span::from_secs(5));
    for side in [CLIENT, SERVER] {
        let events = net.at(side, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET), "{side}");
    }
    assert_eq!([0, 1].map(|at| net.count(at, "multiplex.failed")), [1, 1]);
    net.expect_nothing_left();
}

#[test]
fn all_bytes_arrive_unchanged() {
    common_cases::every_byte(super::test_network::Net::new(
        multiplexed(2, |_| {}),
        &[1, 20, 1],
    ));
}

/// The purpose of a trunk: a second connection starts with the window that the first has opened.
#[test]
fn a_connection_starts_with_the_open_window_of_the_trunk() {
    let took = [two(|_| {}), multiplexed(1, |s| s.warm_path = true)].map(|settings| {
        let mut net = opened(settings);
        write(&mut net, SERVER, 2_000_000);
        net.run(Span::from_secs(20));
        assert_eq!(read(&mut net, CLIENT), 2_000_000);
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, cx| socket.close(cx));
        }
        net.run(Span::from_millis(600));
        net.hosts = [None, None];
        net.client_port += 1;
        let begin = net.world.now;
        net.connect(CLIENT, 7);
        let accepted = |net: &Net| net.state(SERVER) == State::Established;
        assert!(net.run_until(begin + Span::from_secs(5), accepted));
        write(&mut net, SERVER, 60_000);
        let there = |net: &Net| {
            net.hosts[CLIENT]
                .as_ref()
                .is_some_and(|s| s.readable() == 60_000)
        };
        assert!(net.run_until(begin + Span::from_secs(20), there));
        net.world.now.since(begin).as_nanos() / 1_000_000
    });
    // 10 segments, 20, 12 more: three round trips and a handshake of 500 ms, against one round
    // trip.
    assert!(took[0] >= 1_750 && took[1] <= 530, "{took:?}");
}
