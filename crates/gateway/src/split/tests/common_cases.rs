//! Test cases that hold with trunks and without; the calling tests choose the gateways.

use bentpipe_tcp::{
    ActiveFastOpen, Events, Opening, PassiveFastOpen, Rings, Socket, Source, State,
};
use bentpipe_types::{FastOpen, Port, Seq, Span, Time};

use super::Net;
use super::test_network::{self, CLIENT, SERVER};

pub(super) fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

pub(super) fn write(net: &mut Net, side: usize, bytes: u64) {
    let written = net.at(side, |socket, cx| socket.write(Source::Filler(bytes), cx));
    assert_eq!(written, bytes);
}

pub(super) fn read(net: &mut Net, side: usize) -> u64 {
    net.at(side, |socket, cx| socket.read(u64::MAX, cx))
}

pub(super) fn close(net: &mut Net) {
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.close(cx));
    }
}

/// Each host sends this much and closes, and within this time each has received everything.
pub(super) fn exchange(net: &mut Net, bytes: u64, within: Span) {
    for side in [CLIENT, SERVER] {
        write(net, side, bytes);
    }
    close(net);
    net.run(within);
    for side in [CLIENT, SERVER] {
        assert_eq!(read(net, side), bytes);
    }
}

/// Waits until the client's connection is open.
pub(super) fn is_open<P: bentpipe_tcp::Payload>(net: &test_network::Net<P>) -> bool {
    net.state(CLIENT) == State::Established
}

/// Checks that each host sees the other's sequence numbers.
pub(super) fn numbers_are_the_hosts_own(net: &Net) {
    let seen = [SERVER, CLIENT].map(|side| {
        let tcp = net.hosts[side].as_ref().expect("a socket").connection();
        tcp.peer_initial_sequence().map(Seq::get)
    });
    assert_eq!(seen, [Some(7), Some(900_000)]);
}

/// The server opens the same connection this long after the client.
pub(super) fn both_open(mut net: Net, after: Span) {
    net.connect(CLIENT, 7);
    net.run(after);
    net.connect(SERVER, 9);
    net.run(Span::from_secs(5));
    for side in [CLIENT, SERVER] {
        assert_eq!(net.state(side), State::Established, "{after:?}");
        write(&mut net, side, 5_000);
    }
    close(&mut net);
    net.run(Span::from_secs(5));
    for side in [CLIENT, SERVER] {
        assert_eq!(read(&mut net, side), 5_000);
    }
    net.expect_nothing_left();
}

/// Opens three connections from one port. Checks how many replaced an ended one because of their
/// sequence numbers.
pub(super) fn a_port_again(mut net: Net) -> u64 {
    for round in 0..3 {
        net.connect(CLIENT, 1_000 * (round + 1));
        assert!(net.run_until(ms(60_000), is_open));
        close(&mut net);
        net.run(Span::from_secs(3));
        // The host drops TIME-WAIT early; the gateways do not.
        net.hosts = [None, None];
    }
    assert_eq!(net.count(0, "connections.split"), 3);
    let followed = net.count(0, "connections.followed");
    net.expect_nothing_left();
    followed
}

/// A cookie request, then a cookie with data, then the same with a server that no longer accepts
/// the cookie, so that the data is retransmitted. `one_way` is the time after which data on a SYN
/// arrives.
pub(super) fn fast_open(make: impl Fn() -> Net, one_way: Span) {
    let cookie = FastOpen::new(b"12345678", false).expect("a cookie");
    let request = FastOpen::new(b"", false).expect("a request");
    for (option, bytes, answer) in [
        (request, 0, PassiveFastOpen::Offer(cookie)),
        (cookie, 500, PassiveFastOpen::Accept),
        (cookie, 500, PassiveFastOpen::Ignore),
    ] {
        let mut net = make();
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
        let (socket, taken) = Socket::connect_fast(&opening, None, fast, text, &mut net.world.cx());
        assert_eq!(taken, bytes);
        net.hosts[CLIENT] = Some(socket);
        net.at(CLIENT, |_, _| {});
        let there = move |net: &Net| {
            let server = net.hosts[SERVER].as_ref();
            server.is_some_and(|server| server.readable() == bytes)
        };
        assert!(net.run_until(begin + Span::from_secs(10), there));
        if answer == PassiveFastOpen::Accept {
            assert_eq!(net.world.now.since(begin), one_way, "with the SYN");
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
        close(&mut net);
        net.expect_nothing_left();
    }
}

/// A half-closed connection goes on. (PEPsal ends both directions when one has ended.)
pub(super) fn half_close(mut net: Net) {
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

/// Returns the time until the client's FIN is acknowledged.
pub(super) fn close_confirmed_after(net: &mut Net) -> Span {
    let begin = net.world.now;
    net.at(CLIENT, |socket, cx| socket.close(cx));
    let confirmed = |net: &Net| net.state(CLIENT) == State::FinWait2;
    assert!(net.run_until(begin + Span::from_secs(10), confirmed));
    net.world.now.since(begin)
}

/// One side resets the connection, and the other is reset too.
pub(super) fn reset(mut net: Net, side: usize) {
    net.run(Span::from_secs(1));
    net.at(side, |socket, cx| socket.abort(cx));
    net.run(Span::from_secs(1));
    let events = net.at(1 - side, |socket, _| socket.take_events());
    assert!(events.has(Events::RESET));
    let aborted = [0, 1].map(|gateway| net.count(gateway, "connections.aborted"));
    assert_eq!(aborted.iter().max(), Some(&1));
    net.expect_nothing_left();
}

/// Returns bytes that are never the same at two offsets for long.
fn text(side: usize, from: usize, length: usize) -> Vec<u8> {
    (from..from + length)
        .map(|at| (at.wrapping_mul(2_654_435_761 + 2 * side) >> 7) as u8)
        .collect()
}

/// 700 kB in each direction, at the same time, over a link that loses every 13th packet.
pub(super) fn every_byte(mut net: test_network::Net<Rings>) {
    const LENGTH: usize = 700_000;
    let mut count = 0_u32;
    net.hook(
        1,
        Box::new(move |_, _, _| {
            count += 1;
            (!count.is_multiple_of(13)).then_some(())
        }),
    );
    net.connect(CLIENT, u32::MAX - 20_000);
    assert!(net.run_until(ms(20_000), is_open));
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
