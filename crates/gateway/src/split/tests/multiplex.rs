//! Connections over persistent ones: what is the same as without, and what is not.

use bentpipe_tcp::{
    ActiveFastOpen, Events, Opening, PassiveFastOpen, Rings, Socket, Source, State,
};
use bentpipe_types::{Agent, FastOpen, Flags, Port, Seq, Span, Time};

use super::Net;
use super::net::{CLIENT, SERVER, multiplexed, two};
use crate::split::Answer;

const HOPS: [u64; 3] = [1, 250, 2];

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

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

fn write(net: &mut Net, side: usize, bytes: u64) {
    let written = net.at(side, |socket, cx| socket.write(Source::Filler(bytes), cx));
    assert_eq!(written, bytes);
}

fn read(net: &mut Net, side: usize) -> u64 {
    net.at(side, |socket, cx| socket.read(u64::MAX, cx))
}

#[test]
fn a_set_up_takes_no_handshake_over_the_satellite() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    net.connect(CLIENT, 7);
    assert!(net.run_until(ms(5_000), |net| net.state(CLIENT) == State::Established));
    // The first waits for the persistent connection to open: one round trip more.
    assert_eq!(net.world.now, ms(506 + 500));
    let mut net = opened(multiplexed(1, |_| {}));
    let (server, client) = (&net.hosts[SERVER], &net.hosts[CLIENT]);
    let initial = |socket: &Option<Socket<_>>| {
        let tcp = socket.as_ref().expect("a socket").connection();
        tcp.peer_initial_sequence().map(Seq::get)
    };
    assert_eq!((initial(server), initial(client)), (Some(7), Some(900_000)));
    assert_eq!(net.count(0, "multiplex.opened"), 1);
    assert_eq!(net.count(1, "multiplex.opened"), 1);
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
    net.expect_nothing_left();
}

#[test]
fn with_an_early_answer_data_goes_with_the_opening() {
    let mut net = warm(multiplexed(2, |s| s.set_up = Answer::Early));
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
    for set_up in [Answer::EndToEnd, Answer::Early] {
        let mut net = warm(multiplexed(1, |s| s.set_up = set_up));
        net.listens = false;
        let begin = net.world.now;
        net.connect(CLIENT, 7);
        let closed = |net: &Net| net.state(CLIENT) == State::Closed;
        assert!(net.run_until(begin + Span::from_secs(5), closed));
        assert_eq!(net.world.now.since(begin), Span::from_millis(506));
        let events = net.at(CLIENT, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET));
        assert_eq!(events.has(Events::ESTABLISHED), set_up == Answer::Early);
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
        let mut net = warm(multiplexed(2, |_| {}));
        net.connect(CLIENT, 7);
        net.run(Span::from_millis(wait));
        net.connect(SERVER, 9);
        net.run(Span::from_secs(5));
        for side in [CLIENT, SERVER] {
            assert_eq!(net.state(side), State::Established, "{wait}");
            net.at(side, |socket, cx| {
                socket.write(Source::Filler(5_000), cx);
                socket.close(cx);
            });
        }
        net.run(Span::from_secs(5));
        for side in [CLIENT, SERVER] {
            assert_eq!(read(&mut net, side), 5_000);
        }
        net.expect_nothing_left();
    }
}

#[test]
fn a_port_may_be_used_again_while_time_wait_lasts() {
    let mut net = Net::new(multiplexed(1, |_| {}), &HOPS);
    for round in 0..3 {
        net.connect(CLIENT, 1_000 * (round + 1));
        assert!(net.run_until(ms(60_000), |net| net.state(CLIENT) == State::Established));
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, cx| socket.close(cx));
        }
        net.run(Span::from_secs(3));
        net.hosts = [None, None];
    }
    assert_eq!(net.count(0, "connections.split"), 3);
    net.expect_nothing_left();
}

#[test]
fn fast_open_passes() {
    let cookie = FastOpen::new(b"12345678", false).expect("a cookie");
    let request = FastOpen::new(b"", false).expect("a request");
    for (option, bytes, answer) in [
        (request, 0, PassiveFastOpen::Offer(cookie)),
        (cookie, 500, PassiveFastOpen::Take),
        // The server doesn't know the cookie any more: the text goes again.
        (cookie, 500, PassiveFastOpen::Ignore),
    ] {
        let mut net = warm(multiplexed(1, |s| s.set_up = Answer::Early));
        net.fast_open = answer;
        let begin = net.world.now;
        let config = net.configs[CLIENT].clone().into();
        let opening = Opening {
            config: &config,
            local: net.endpoint(CLIENT),
            remote: net.endpoint(SERVER),
            egress: Port(0),
            initial_sequence: Seq::new(7),
        };
        let fast = ActiveFastOpen {
            option: Some(option),
            bytes,
            room: 1_000,
        };
        let text = Source::Filler(bytes);
        let (socket, _) = Socket::connect_fast(&opening, None, fast, text, &mut net.world.cx());
        net.hosts[CLIENT] = Some(socket);
        net.at(CLIENT, |_, _| {});
        let there = move |net: &Net| {
            let server = net.hosts[SERVER].as_ref();
            server.is_some_and(|server| server.readable() == bytes)
        };
        assert!(net.run_until(begin + Span::from_secs(10), there));
        if answer == PassiveFastOpen::Take {
            assert_eq!(
                net.world.now.since(begin),
                Span::from_millis(253),
                "with the SYN"
            );
        }
        net.run(Span::from_secs(3));
        let client = net.hosts[CLIENT].as_ref().expect("opened").connection();
        assert_eq!(client.state(), State::Established);
        if bytes == 0 {
            assert_eq!(client.offered_cookie(), Some(cookie));
        }
        assert_eq!(client.acknowledged_offset(), bytes);
        write(&mut net, CLIENT, 10_000);
        net.run(Span::from_secs(3));
        assert_eq!(read(&mut net, SERVER), bytes + 10_000);
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, cx| socket.close(cx));
        }
        net.expect_nothing_left();
    }
}

#[test]
fn one_side_may_close_and_the_other_go_on() {
    for close in [Answer::EndToEnd, Answer::Early] {
        let mut net = opened(multiplexed(1, |s| s.close = close));
        write(&mut net, CLIENT, 1_000);
        net.at(CLIENT, |socket, cx| socket.close(cx));
        net.run(Span::from_secs(5));
        assert_eq!(
            (net.state(CLIENT), net.state(SERVER)),
            (State::FinWait2, State::CloseWait)
        );
        let mut got = 0;
        for _ in 0..20 {
            write(&mut net, SERVER, 100_000);
            net.run(Span::from_secs(2));
            got += read(&mut net, CLIENT);
        }
        assert_eq!(got, 2_000_000);
        net.at(SERVER, |socket, cx| socket.close(cx));
        net.run(Span::from_secs(5));
        assert_eq!(read(&mut net, SERVER), 1_000);
        net.expect_nothing_left();
    }
}

#[test]
fn a_close_is_confirmed_when_the_other_side_has() {
    for (close, confirmed_after_ms) in [(Answer::EndToEnd, 506), (Answer::Early, 2)] {
        let mut net = opened(multiplexed(1, |s| s.close = close));
        write(&mut net, CLIENT, 3_000_000);
        net.run(Span::from_secs(30));
        assert_eq!(read(&mut net, SERVER), 3_000_000);
        let begin = net.world.now;
        net.at(CLIENT, |socket, cx| socket.close(cx));
        let confirmed = |net: &Net| net.state(CLIENT) == State::FinWait2;
        assert!(net.run_until(begin + Span::from_secs(10), confirmed));
        let took = net.world.now.since(begin);
        assert_eq!(took, Span::from_millis(confirmed_after_ms), "{close:?}");
    }
}

#[test]
fn a_reset_goes_on() {
    for side in [CLIENT, SERVER] {
        let mut net = opened(multiplexed(1, |_| {}));
        net.run(Span::from_secs(1));
        net.at(side, |socket, cx| socket.abort(cx));
        net.run(Span::from_secs(1));
        let events = net.at(1 - side, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET));
        net.expect_nothing_left();
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
        let settings = net.gateways[which].settings.clone();
        net.restart(which, settings);
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
    let left = gateway.budget.left();
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

/// Whoever speaks on such a connection without being a gateway is cut off.
#[test]
fn what_is_no_frame_ends_the_persistent_connection() {
    let mut net = opened(multiplexed(1, |_| {}));
    let forged = net.gateways[0].multiplex.as_mut().expect("multiplexed");
    forged.say(0, &[0xee; 100], &mut net.world.cx());
    net.carry(1);
    net.run(Span::from_secs(5));
    for side in [CLIENT, SERVER] {
        let events = net.at(side, |socket, _| socket.take_events());
        assert!(events.has(Events::RESET), "{side}");
    }
    assert_eq!([0, 1].map(|at| net.count(at, "multiplex.failed")), [1, 1]);
    net.expect_nothing_left();
}

/// Bytes at no two places the same for long.
fn text(side: usize, from: usize, length: usize) -> Vec<u8> {
    (from..from + length)
        .map(|at| (at.wrapping_mul(2_654_435_761 + 2 * side) >> 7) as u8)
        .collect()
}

#[test]
fn every_byte_is_the_one_that_was_written() {
    let mut net = super::net::Net::<Rings>::new(multiplexed(2, |_| {}), &[1, 20, 1]);
    // Every 13th packet of the satellite's is lost.
    let mut count = 0_u32;
    net.hook(
        1,
        Box::new(move |_, _, _| {
            count += 1;
            (!count.is_multiple_of(13)).then_some(())
        }),
    );
    net.connect(CLIENT, u32::MAX - 20_000);
    let established = |net: &super::net::Net<Rings>| net.state(CLIENT) == State::Established;
    assert!(net.run_until(ms(20_000), established));
    const LENGTH: usize = 700_000;
    let mut written = [0; 2];
    let mut got = [Vec::new(), Vec::new()];
    for _ in 0..20_000 {
        for side in [CLIENT, SERVER] {
            if net.hosts[side].is_none() {
                continue;
            }
            let piece = text(side, written[side], (LENGTH - written[side]).min(30_000));
            if !piece.is_empty() {
                let write = Source::Bytes(&piece);
                written[side] += net.at(side, |socket, cx| socket.write(write, cx)) as usize;
                if written[side] == LENGTH {
                    net.at(side, |socket, cx| socket.close(cx));
                }
            }
            let mut out = vec![0; 10_000];
            let read = net.at(side, |socket, cx| socket.read_bytes(&mut out, cx));
            got[side].extend_from_slice(&out[..read]);
        }
        net.run(Span::from_millis(20));
        if got.iter().all(|got| got.len() == LENGTH) {
            break;
        }
    }
    for side in [CLIENT, SERVER] {
        assert!(got[1 - side] == text(side, 0, LENGTH), "{side}");
    }
    net.expect_nothing_left();
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
