//! Connections over persistent ones: what is the same as without, and what is not.

use bentpipe_tcp::{Events, Source, State};
use bentpipe_types::{Agent, Flags, PacketRef, PacketStore, Port, Seq, Span, Time};

use super::Net;
use super::bodies::{self, ms, read, write};
use super::net::{CLIENT, SERVER, multiplexed, two};
use crate::split::Confirmation;

const HOPS: [u64; 3] = [1, 250, 2];

/// The client has opened one connection, and let it go: the persistent one is there.
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
fn a_set_up_takes_no_handshake_over_the_satellite() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    net.connect(CLIENT, 7);
    assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
    // The first waits for the persistent connection to open: one round trip more.
    assert_eq!(net.world.now, ms(506 + 500));
    let mut net = opened(multiplexed(1, |_| {}));
    bodies::numbers_are_the_hosts_own(&net);
    assert_eq!(net.count(0, "multiplex.opened"), 1);
    assert_eq!(net.count(1, "multiplex.opened"), 1);
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

#[test]
fn with_an_early_answer_data_goes_with_the_opening() {
    let mut net = warm(multiplexed(2, |s| s.set_up = Confirmation::Early));
    let begin = net.world.now;
    net.connect(CLIENT, 7);
    let end = begin + Span::from_secs(5);
    assert!(net.run_until(end, |net| net.state(CLIENT) == State::Established));
    assert_eq!(net.world.now.since(begin), Span::from_millis(2));
    write(&mut net, CLIENT, 100);
    let there = |net: &Net| (net.hosts[SERVER].as_ref()).is_some_and(|s| s.readable() == 100);
    assert!(net.run_until(end, there));
    // One way over the satellite: the data is there before the server has answered. (Without persistent
    // connections it waits for a handshake over the satellite.)
    let took = net.world.now.since(begin);
    assert_eq!(took, Span::from_millis(1 + 250 + 3 * 2));
    net.at(CLIENT, |socket, cx| socket.close(cx));
    net.at(SERVER, |socket, cx| socket.close(cx));
    net.expect_nothing_left();
}

#[test]
fn who_is_refused_or_not_answered_hears_it_as_without() {
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
fn a_client_that_gives_up_takes_its_opening_along() {
    let mut net = warm(multiplexed(1, |_| {}));
    net.answers = false;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    net.at(CLIENT, |socket, cx| socket.abort(cx));
    // (It has sent nothing: in SYN-SENT there is nobody to reset.)
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
fn both_may_open_at_once() {
    // At the same time, and so that one side's has come when the other opens.
    for wait in [0, 100, 240, 251, 252] {
        bodies::both_open(warm(multiplexed(2, |_| {})), Span::from_millis(wait));
    }
}

#[test]
fn a_port_may_be_used_again_while_time_wait_lasts() {
    bodies::a_port_again(Net::new(multiplexed(1, |_| {}), &HOPS));
}

/// Where a close is confirmed early, the client has come to its end, and may use its port again, while the
/// server has still to be brought what was confirmed: the next connection waits for that.
#[test]
fn a_port_that_is_used_again_takes_nothing_from_the_connection_before() {
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
    bodies::exchange(&mut net, 5_000, Span::from_secs(5));
    net.expect_nothing_left();
}

#[test]
fn fast_open_passes() {
    let make = || warm(multiplexed(1, |s| s.set_up = Confirmation::Early));
    bodies::fast_open(make, Span::from_millis(253));
}

#[test]
fn one_side_may_close_and_the_other_go_on() {
    for close in [Confirmation::EndToEnd, Confirmation::Early] {
        bodies::half_close(opened(multiplexed(1, |s| s.close = close)));
    }
}

#[test]
fn a_close_is_confirmed_when_the_other_side_has() {
    for (close, confirmed_after_ms) in [(Confirmation::EndToEnd, 506), (Confirmation::Early, 2)] {
        let mut net = opened(multiplexed(1, |s| s.close = close));
        write(&mut net, CLIENT, 3_000_000);
        net.run(Span::from_secs(30));
        assert_eq!(read(&mut net, SERVER), 3_000_000);
        let took = bodies::close_confirmed_after(&mut net);
        assert_eq!(took, Span::from_millis(confirmed_after_ms), "{close:?}");
    }
}

#[test]
fn a_reset_goes_on() {
    for side in [CLIENT, SERVER] {
        bodies::reset(opened(multiplexed(1, |_| {})), side);
    }
}

/// All that could be said waits for the other gateway, which is no longer there.
#[test]
fn when_the_middle_dies_while_all_wait_who_waits_hears_of_it() {
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

/// Another connection, and 300 kB on it. How long that takes.
fn second_connection(net: &mut Net) -> Span {
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

/// The client of one connection doesn't read: the others' are not held up, and what the gateways hold of
/// it is bounded.
#[test]
fn who_doesnt_read_holds_up_nobody_else() {
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
    // So that what the persistent connection has carried before makes no difference.
    net.run(Span::from_secs(60));
    let stuck = std::mem::take(&mut net.hosts);
    let took = second_connection(&mut net);
    let mut alone = warm(multiplexed(1, reads_little));
    assert_eq!(took, second_connection(&mut alone));
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.run(Span::from_secs(60));
    // The first goes on.
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
fn when_the_middle_dies_every_host_hears_of_it_and_the_next_opens_it_again() {
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

/// A gateway that was started anew knows of nothing.
#[test]
fn when_a_gateway_begins_anew_every_host_hears_of_it() {
    for which in [0, 1] {
        let mut net = opened(multiplexed(1, |_| {}));
        write(&mut net, CLIENT, 100_000);
        net.run(Span::from_millis(300));
        net.restart(which);
        // Who has nothing to say hears nothing.
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

/// A gateway that ends in order counts as without persistent connections what it has reset, and keeps nothing.
#[test]
fn a_gateway_that_ends_counts_what_it_has_reset() {
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
fn what_the_other_gateway_has_no_memory_for_passes_unsplit() {
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
fn without_memory_for_a_persistent_connection_each_has_a_part_of_its_own() {
    let mut net = Net::new(multiplexed(4, |s| s.memory = 60_000), &HOPS);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Established);
    assert_eq!(net.count(0, "multiplex.opened"), 0);
    assert_eq!(net.count(0, "connections.split"), 1);
}

/// Is it the gateways' own, from the first of them or from the second?
fn is_of_gateway(packets: &PacketStore, packet: PacketRef, which: usize) -> bool {
    let record = packets.get(packet);
    record.source.port == record.destination.port && record.source.address.0 == 10 + which as u16
}

/// Loses what these gateways say to each other in their own names, until then.
fn lose_what_gateways_say(net: &mut Net, which: &'static [usize], until: Time) {
    net.hook(
        1,
        Box::new(move |now, packet, packets| {
            let lost = (which.iter()).any(|which| is_of_gateway(packets, packet, *which));
            (!lost || now >= until).then_some(())
        }),
    );
}

/// The host opens one connection more. How long that takes.
fn next_connection(net: &mut Net) -> Span {
    net.hosts = [None, None];
    net.client_port += 1;
    let begin = net.world.now;
    net.connect(CLIENT, 70);
    let both = |net: &Net| [CLIENT, SERVER].map(|side| net.state(side)) == [State::Established; 2];
    assert!(net.run_until(begin + Span::from_secs(10), both));
    let took = net.world.now.since(begin);
    bodies::exchange(net, 50_000, Span::from_secs(5));
    took
}

#[test]
fn where_no_other_gateway_answers_each_has_a_part_of_its_own() {
    // It is waited for 3 s; then a round trip, as without. Whatever `set_up` says, what may still turn out to be a stream
    // tells its host nothing before (the second gateway, which only passes it on, may answer early).
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
        // Nobody waits again, for as long as there is no answer, however often it is asked.
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
fn when_the_other_gateway_is_there_later_what_comes_then_goes_over_it() {
    let mut net = Net::new(multiplexed(2, |_| {}), &HOPS);
    lose_what_gateways_say(&mut net, &[0, 1], ms(10_000));
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(CLIENT), State::Established);
    let said = |net: &Net| net.gateways[0].remark().unwrap_or_default();
    assert!(said(&net).contains("does not answer"));
    // The third of its SYNs after those is answered.
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
    // The first goes on by itself.
    net.hosts = stays;
    net.client_port -= 1;
    bodies::exchange(&mut net, 50_000, Span::from_secs(5));
    net.expect_nothing_left();
}

/// Both hosts have opened, and one gateway or both have ceased to wait, and only then do the gateways hear from each other:
/// whichever of them has found a persistent connection, both hosts get their connection.
#[test]
fn both_may_open_at_once_where_the_gateways_hear_from_each_other_late() {
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
    // Else it is no simultaneous open.
    if net.hosts[SERVER].is_none() {
        net.connect(SERVER, 9);
    }
    net.run(Span::from_secs(15));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.state(side), State::Established, "{wait:?}");
    }
    bodies::exchange(&mut net, 5_000, Span::from_secs(5));
    net.expect_nothing_left();
}

/// The other gateway's answers are late, and it has been given up: nothing was said yet, and nobody is reset.
#[test]
fn who_waits_for_a_persistent_connection_that_is_reset_has_a_part_of_its_own() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    lose_what_gateways_say(&mut net, &[1], ms(2_000));
    net.connect(CLIENT, 7);
    net.run(Span::from_millis(1_000));
    // The first gateway dies, and with it what it had asked for. The second has answered, and its host waits.
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

/// A gateway has begun anew, and with it the one behind it: of a connection with a part of its own only the other gateway
/// knows. It finds out, and the next one between the same ends is opened.
#[test]
fn a_part_that_the_other_gateway_has_forgotten_makes_way() {
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

/// What has gone over a persistent connection is in TIME-WAIT at the other gateway when the next connection between the same
/// ends has a part of its own.
#[test]
fn a_stream_that_is_over_makes_way_for_a_part() {
    let mut net = opened(multiplexed(1, |_| {}));
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
        net.run(Span::from_secs(2));
    }
    net.hosts = [None, None];
    net.restart(0);
    lose_what_gateways_say(&mut net, &[0, 1], ms(10_000_000));
    let begin = net.world.now;
    // A SYN from before opens nothing.
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(8));
    assert_eq!(net.state(CLIENT), State::SynSent);
    net.restart(0);
    net.connect(CLIENT, 7_000_000);
    let open = |net: &Net| net.state(CLIENT) == State::Established;
    assert!(net.run_until(begin + Span::from_secs(15), open));
    assert_eq!(net.count(1, "connections.followed"), 1);
}

/// One gateway has more persistent connections than the other: those are refused, and what they were to carry goes over
/// the others.
#[test]
fn what_is_refused_goes_over_those_that_are_there() {
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
            // It has its answer, and must still say its own.
            net.connect(SERVER, 90);
        }
        net.run(Span::from_millis(1_100));
        for side in [CLIENT, SERVER] {
            assert_eq!(net.state(side), State::Established, "{both}");
        }
        bodies::exchange(&mut net, 5_000, Span::from_secs(5));
        assert!(net.world.now.since(begin) < Span::from_secs(60));
        assert!(net.gateways.iter().all(|gateway| gateway.pairs.len() == 0));
        let said = [0, 1].map(|at| net.gateways[at].remark().unwrap_or_default());
        assert!(said[0].contains("refuses some"), "{said:?}");
        assert!(said[1].contains("asks for more"), "{said:?}");
        net.hosts = first;
        net.client_port -= 1;
        bodies::close(&mut net);
        net.expect_nothing_left();
    }
}

/// The same ends, one way and then the other.
#[test]
fn a_port_may_be_used_again_one_way_and_the_other() {
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
            bodies::exchange(&mut net, 5_000, Span::from_secs(7));
            net.hosts = [None, None];
        }
        net.expect_nothing_left();
    }
}

/// Whoever speaks on such a connection without being a gateway is cut off.
#[test]
fn what_is_no_frame_ends_the_persistent_connection() {
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
fn every_byte_is_the_one_that_was_written() {
    bodies::every_byte(super::net::Net::new(multiplexed(2, |_| {}), &[1, 20, 1]));
}

/// What it is for: a second connection begins with the window that the first has opened.
#[test]
fn a_connection_begins_with_the_window_of_earlier_ones() {
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
    // 10 segments, 20, 12 more: three flights and a handshake of 500 ms against one round trip.
    assert!(took[0] >= 1_750 && took[1] <= 530, "{took:?}");
}
