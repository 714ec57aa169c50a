//! RFC 3135, section 4.3: a host moves, and what its gateway knows of its connections stays behind.

use bentpipe_tcp::{Events, Source, State};
use bentpipe_types::{Span, Time};

use super::Net;
use super::net::{CLIENT, SERVER, two};

fn opened() -> Net {
    let mut net = Net::new(two(|_| {}), &[1, 250, 1]);
    net.connect(CLIENT, 7);
    let established = |net: &Net| net.state(CLIENT) == State::Established;
    assert!(net.run_until(Time::ZERO + Span::from_secs(5), established));
    net.run(Span::from_secs(1));
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, _| socket.take_events());
    }
    net
}

/// Nothing was under way: the new gateway lets pass what it did not see begin, and the numbers are the hosts' own.
#[test]
fn a_connection_that_is_silent_moves_along() {
    let mut net = opened();
    let mut left = net.client_moves();
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, cx| socket.write(Source::Filler(100_000), cx));
    }
    for _ in 0..20 {
        net.run_beside(&mut left, Span::from_secs(1));
    }
    for side in [CLIENT, SERVER] {
        assert_eq!(
            net.at(side, |socket, cx| socket.read(u64::MAX, cx)),
            100_000
        );
    }
    assert_eq!(net.count(0, "connections.split"), 0);
}

/// What the gateway had acknowledged and not passed on stays with it. Of an upload that is nearly all, and the
/// connection is lost; of a download nothing, and the gateway across goes on with the client itself. Neither side is
/// told that all is there if it is not.
#[test]
fn a_connection_that_is_busy_leaves_behind_what_its_gateway_held() {
    for from in [CLIENT, SERVER] {
        let mut net = opened();
        net.at(from, |socket, cx| {
            socket.write(Source::Filler(3_000_000), cx);
            socket.close(cx);
        });
        net.run(Span::from_millis(900));
        let begin = net.world.now;
        let mut left = net.client_moves();
        let mut heard = [None; 2];
        let mut ended = false;
        for _ in 0..9_000 {
            net.run_beside(&mut left, Span::from_secs(1));
            for side in [CLIENT, SERVER] {
                let events = net.at(side, |socket, _| socket.take_events());
                ended |= side != from && events.has(Events::PEER_CLOSED);
                if events.has(Events::RESET | Events::TIMED_OUT) && heard[side].is_none() {
                    heard[side] = Some(net.world.now.since(begin));
                }
            }
        }
        let got = net.at(1 - from, |socket, cx| socket.read(u64::MAX, cx));
        println!("from {from}: {got} bytes arrived, heard {heard:?}");
        let sender = net.hosts[from].as_ref().expect("a socket").connection();
        assert!(got == 3_000_000 || !(ended || sender.is_close_confirmed()));
        // The client gives up; the server has sent all, and waits for the client's end until the idle timeout of
        // the gateway beside it.
        let longest = [1_200, 7_500][from];
        assert!(heard[from].is_some_and(|after| after < Span::from_secs(longest)));
        assert_eq!(got == 3_000_000, from == SERVER);
    }
}
