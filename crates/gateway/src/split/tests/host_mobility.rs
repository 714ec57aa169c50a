//! RFC 3135 section 4.3: a host moves to another gateway, and the state of its connections stays
//! behind.

use bentpipe_tcp::{Events, Source, State};
use bentpipe_types::{Span, Time};

use super::Net;
use super::test_network::{CLIENT, SERVER, two};

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

/// Nothing is in flight. The new gateway forwards a connection whose SYN it has not seen, with the
/// hosts' own sequence numbers.
#[test]
fn an_idle_connection_survives_a_move() {
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

/// Bytes that the old gateway has acknowledged and not passed on stay there. Of an upload these are
/// nearly all, and the connection is lost. Of a download there are none, and the gateway across
/// continues with the client itself. Neither host is told that everything has arrived unless it
/// has.
#[test]
fn a_busy_connection_loses_the_data_held_by_the_old_gateway() {
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
        // The client gives up. The server has sent everything, and waits for the client's FIN until
        // the idle timeout of its gateway.
        let longest = [1_200, 7_500][from];
        assert!(heard[from].is_some_and(|after| after < Span::from_secs(longest)));
        assert_eq!(got == 3_000_000, from == SERVER);
    }
}
