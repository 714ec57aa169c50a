//! Data streams, and how they end.

use bentpipe_tcp::{Events, State};
use bentpipe_types::{Agent, Flags, Span, Time};

use super::Net;
use super::common_cases::{self, read, write};
use super::test_network::{CLIENT, SERVER, multiplexed, settings, two};
use crate::split::{Confirmation, HostSecret};

fn opened(gateways: Vec<crate::split::Settings>) -> Net {
    let hops: &[u64] = if gateways.len() == 2 {
        &[1, 250, 1]
    } else {
        &[1, 250]
    };
    let mut net = Net::new(gateways, hops);
    net.connect(CLIENT, 7);
    let established = |net: &Net| net.state(CLIENT) == State::Established;
    assert!(net.run_until(Time::ZERO + Span::from_secs(5), established));
    net
}

/// PEPsal ends both directions when one has ended.
#[test]
fn half_closed_connections_go_on() {
    for close in [Confirmation::EndToEnd, Confirmation::Early] {
        common_cases::half_close(opened(two(|s| s.close = close)));
    }
}

/// Some proxies lose the data in their buffers at a close.
#[test]
fn buffered_data_arrives_after_a_close() {
    for close in [Confirmation::EndToEnd, Confirmation::Early] {
        let mut net = opened(two(|s| s.close = close));
        write(&mut net, CLIENT, 3_000_000);
        net.at(CLIENT, |socket, cx| socket.close(cx));
        net.run(Span::from_secs(60));
        assert_eq!(read(&mut net, SERVER), 3_000_000);
        let events = net.at(SERVER, |socket, _| socket.take_events());
        assert!(events.has(Events::PEER_CLOSED) && !events.has(Events::RESET));
        net.at(SERVER, |socket, cx| socket.close(cx));
        net.expect_nothing_left();
    }
}

#[test]
fn a_fin_is_acknowledged_when_the_other_host_has() {
    for (close, confirmed_after_ms) in [(Confirmation::EndToEnd, 504), (Confirmation::Early, 2)] {
        let mut net = opened(two(|s| s.close = close));
        net.run(Span::from_secs(1));
        let took = common_cases::close_confirmed_after(&mut net);
        assert_eq!(took, Span::from_millis(confirmed_after_ms), "{close:?}");
    }
}

#[test]
fn a_reset_is_passed_on() {
    for side in [CLIENT, SERVER] {
        common_cases::reset(opened(two(|_| {})), side);
    }
}

#[test]
fn urgent_data_is_delivered_in_order() {
    let mut net = opened(two(|_| {}));
    net.hook(
        0,
        Box::new(|_, packet, packets| {
            let record = packets.get_mut(packet);
            if record.payload_length > 0 {
                record.flags = record.flags.with(Flags::URG);
            }
            Some(())
        }),
    );
    write(&mut net, CLIENT, 10_000);
    net.run(Span::from_secs(5));
    assert_eq!(read(&mut net, SERVER), 10_000);
}

#[test]
fn pushed_data_is_not_delayed() {
    let mut net = opened(two(|_| {}));
    // The last acknowledgment of the handshake has arrived, too.
    net.run(Span::from_secs(1));
    let begin = net.world.now;
    for piece in 1..=5_u64 {
        write(&mut net, CLIENT, 10);
        let there = move |net: &Net| {
            net.hosts[SERVER]
                .as_ref()
                .is_some_and(|socket| socket.readable() == 10 * piece)
        };
        assert!(net.run_until(begin + Span::from_secs(60), there));
        // Nagle's algorithm would wait a round trip from the second piece on. (The client's own
        // round trip on its LAN is 2 ms.)
        let late = net.world.now.since(begin);
        assert!(late <= Span::from_millis(piece * 254), "{piece}: {late:?}");
    }
}

/// The client reads one byte at a time, and then nothing for an hour.
#[test]
fn a_slow_reader_stops_only_its_own_server() {
    let mut net = Net::new(
        two(|s| {
            s.facing_tcp.receive_buffer = 100_000;
            s.facing_tcp.send_buffer = 100_000;
            s.host_tcp.receive_buffer = 100_000;
            s.host_tcp.send_buffer = 100_000;
        }),
        &[1, 250, 1],
    );
    net.configs[CLIENT].receive_buffer = 20_000;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    write(&mut net, SERVER, 1_000_000);
    net.run(Span::from_secs(10));
    let mut got = 0;
    for _ in 0..2_000 {
        got += net.at(CLIENT, |socket, cx| socket.read(1, cx));
        net.run(Span::from_millis(20));
    }
    let held = |net: &Net| net.gateways.iter().map(|g| g.budget.held).sum::<u64>();
    assert_eq!(got, 2_000);
    // Both gateways are full, and hold no more than that.
    assert!((200_000..=400_000).contains(&held(&net)), "{}", held(&net));
    net.run(Span::from_secs(3_600));
    assert_eq!(net.state(CLIENT), State::Established);
    assert_eq!(net.state(SERVER), State::Established);
    // The client reads again.
    for _ in 0..2_000 {
        got += read(&mut net, CLIENT);
        net.run(Span::from_millis(200));
    }
    assert_eq!(got, 1_000_000);
}

/// The server has closed, with everything acknowledged, and has dropped the connection. The client
/// has closed too, and still reads. The next connection between the same endpoints waits for that.
#[test]
fn a_new_connection_takes_no_data_from_the_earlier_one() {
    for close in [Confirmation::EndToEnd, Confirmation::Early] {
        for forgets in [false, true] {
            let mut net = Net::new(two(|s| s.close = close), &[1, 250, 1]);
            net.configs[CLIENT].receive_buffer = 20_000;
            net.connect(CLIENT, 7);
            net.run(Span::from_secs(2));
            write(&mut net, SERVER, 100_000);
            common_cases::close(&mut net);
            // A FIN is acknowledged after a minute in any case.
            net.run(Span::from_secs(70));
            if forgets {
                // The gateway beside it has no state either.
                net.restart(1);
            }
            net.hosts[SERVER] = None;
            net.connect(SERVER, 2_000_000);
            net.run(Span::from_secs(10));
            assert_eq!(net.state(SERVER), State::SynSent, "{close:?}");
            let mut got = 0;
            for _ in 0..20 {
                got += read(&mut net, CLIENT);
                net.run(Span::from_secs(2));
            }
            assert_eq!(got, 100_000, "{close:?}");
            let events = net.at(CLIENT, |socket, _| socket.take_events());
            assert!(events.has(Events::PEER_CLOSED) && !events.has(Events::RESET));
            // Then the client has to answer: nothing listens there.
            net.run(Span::from_secs(200));
            assert_eq!(net.state(SERVER), State::Closed);
        }
    }
}

/// The other leg is reset when both streams have ended, and only the last acknowledgment was
/// missing.
#[test]
fn a_reset_after_both_fins_loses_no_data() {
    let mut net = Net::new(two(|s| s.close = Confirmation::Early), &[1, 250, 1]);
    net.configs[CLIENT].receive_buffer = 20_000;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    write(&mut net, SERVER, 100_000);
    net.at(SERVER, |socket, cx| socket.close(cx));
    net.run(Span::from_secs(5));
    net.hook(
        1,
        Box::new(|_, packet, packets| (packets.get(packet).source.port != 80).then_some(())),
    );
    net.at(CLIENT, |socket, cx| socket.close(cx));
    net.run(Span::from_secs(5));
    // A host without the connection answers retransmissions with a RST.
    net.restart(1);
    net.hosts[SERVER] = None;
    net.hook(1, Box::new(|_, _, _| Some(())));
    net.run(Span::from_secs(20));
    let mut got = 0;
    for _ in 0..20 {
        got += read(&mut net, CLIENT);
        net.run(Span::from_secs(2));
    }
    assert_eq!(got, 100_000);
    let events = net.at(CLIENT, |socket, _| socket.take_events());
    assert!(events.has(Events::PEER_CLOSED) && !events.has(Events::RESET));
    net.expect_nothing_left();
}

#[test]
fn both_sides_are_reset_when_the_link_between_gateways_fails() {
    let mut net = opened(two(|s| {
        s.facing_tcp.maximum_retransmissions = 6;
        s.idle_timeout = Span::from_secs(600);
    }));
    write(&mut net, CLIENT, 500_000);
    net.run(Span::from_millis(300));
    let dies = net.world.now;
    net.hook(1, Box::new(move |now, _, _| (now < dies).then_some(())));
    net.run(Span::from_secs(1_200));
    for side in [CLIENT, SERVER] {
        let events = net.at(side, |socket, _| socket.take_events());
        // The server has nothing to send. Its gateway resets it after the idle timeout.
        assert!(events.has(Events::RESET), "{side}");
    }
    assert_eq!(net.count(1, "connections.idle"), 1);
    net.expect_nothing_left();
}

/// A restarted gateway has no state, and the data that it had acknowledged is lost. Both hosts get
/// an error in the end, and neither is told of data or of a FIN that did not arrive.
#[test]
fn a_restart_never_confirms_lost_data() {
    for which in [0, 1] {
        for from in [CLIENT, SERVER] {
            let mut net = opened(two(|s| s.idle_timeout = Span::from_secs(600)));
            for side in [CLIENT, SERVER] {
                net.at(side, |socket, _| socket.take_events());
            }
            write(&mut net, from, 3_000_000);
            net.at(from, |socket, cx| socket.close(cx));
            net.run(Span::from_millis(900));
            let begin = net.world.now;
            net.restart(which);
            let mut heard = [None; 2];
            let mut ended = false;
            for _ in 0..3_000 {
                net.run(Span::from_secs(1));
                for side in [CLIENT, SERVER] {
                    let events = net.at(side, |socket, _| socket.take_events());
                    ended |= side != from && events.has(Events::PEER_CLOSED);
                    if events.has(Events::RESET | Events::TIMED_OUT) && heard[side].is_none() {
                        heard[side] = Some(net.world.now.since(begin));
                    }
                }
            }
            let got = read(&mut net, 1 - from);
            let sender = net.hosts[from].as_ref().expect("a socket").connection();
            let confirmed = sender.is_close_confirmed();
            // Neither host takes a part for everything.
            assert!(got == 3_000_000 || !(ended || confirmed));
            // A sender is reset within minutes, by its retransmission timer or by the other
            // gateway. A host that only waits is reset when a gateway's idle timeout expires.
            assert!(confirmed || heard[from].is_some_and(|after| after < Span::from_secs(1_200)));
            assert!(
                ended || heard[1 - from].is_some(),
                "gateway {which}, from {from}"
            );
        }
    }
}

/// A gateway that shuts down resets both sides of every connection, whether it holds data or has
/// been suspended for long, and so also a gateway beside it.
#[test]
fn a_shutdown_resets_both_sides_at_once() {
    for (which, idle) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut net = opened(two(|s| s.suspend_after = Span::from_secs(10)));
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, _| socket.take_events());
        }
        write(&mut net, SERVER, 3_000_000);
        net.run(Span::from_millis(900));
        if idle {
            net.run(Span::from_secs(30));
            read(&mut net, CLIENT);
            net.run(Span::from_secs(30));
            assert_eq!(net.gateways[which].pairs.suspended(), 1);
        }
        net.retire(which);
        assert_eq!(net.count(which, "connections.open"), 0);
        assert_eq!(net.count(which, "connections.aborted"), 1);
        net.run(Span::from_secs(1));
        for side in [CLIENT, SERVER] {
            let events = net.at(side, |socket, _| socket.take_events());
            assert!(events.has(Events::RESET), "{which} {idle} {side}");
        }
        net.expect_nothing_left();
    }
}

#[test]
fn one_gateway_is_enough() {
    for facing in [0, 1] {
        let mut net = opened(vec![settings(facing)]);
        write(&mut net, CLIENT, 1_000_000);
        write(&mut net, SERVER, 500_000);
        for side in [CLIENT, SERVER] {
            net.at(side, |socket, cx| socket.close(cx));
        }
        net.run(Span::from_secs(30));
        assert_eq!(read(&mut net, SERVER), 1_000_000);
        assert_eq!(read(&mut net, CLIENT), 500_000);
        net.expect_nothing_left();
    }
}

#[test]
fn a_warm_path_starts_with_the_last_window() {
    let mut windows = Vec::new();
    for warm_path in [false, true] {
        let mut net = opened(two(|s| s.warm_path = warm_path));
        for round in 0..3 {
            if round > 0 {
                net.client_port += 1;
                net.hosts = [None, None];
                net.connect(CLIENT, 7);
                net.run(Span::from_secs(2));
            }
            write(&mut net, CLIENT, 2_000_000);
            net.run(Span::from_millis(900));
            if round == 2 {
                windows.push(net.gateways[0].gauge(3));
            }
            net.run(Span::from_secs(20));
            for side in [CLIENT, SERVER] {
                net.at(side, |socket, cx| socket.close(cx));
            }
            net.run(Span::from_secs(100));
        }
    }
    assert!(windows[1] > 4.0 * windows[0], "{windows:?}");
}

/// The first connection is still open and idle, and the second one starts with what it has learnt.
#[test]
fn a_warm_path_learns_from_open_connections() {
    let took = [false, true].map(|warm_path| {
        let mut net = opened(two(|s| {
            s.warm_path = warm_path;
            s.facing_tcp.idle_restart = bentpipe_tcp::IdleRestart::Off;
        }));
        write(&mut net, SERVER, 2_000_000);
        net.run(Span::from_secs(20));
        assert_eq!(read(&mut net, CLIENT), 2_000_000);
        net.hosts = [None, None];
        net.client_port += 1;
        let begin = net.world.now;
        net.connect(CLIENT, 7);
        let accepted = |net: &Net| net.state(SERVER) == State::Established;
        assert!(net.run_until(begin + Span::from_secs(5), accepted));
        write(&mut net, SERVER, 60_000);
        let there = |net: &Net| {
            let client = net.hosts[CLIENT].as_ref();
            client.is_some_and(|client| client.readable() == 60_000)
        };
        assert!(net.run_until(begin + Span::from_secs(20), there));
        net.world.now.since(begin).as_nanos() / 1_000_000
    });
    // A handshake of 500 ms, and three round trips against one.
    assert!(took[0] >= 1_750 && took[1] <= 1_030, "{took:?}");
}

/// Memory is reused: that of one connection serves the next. `make test-slow` opens a million.
fn soak(connections: u32) {
    let mut net = Net::new(vec![settings(1)], &[1, 1]);
    for gateway in &mut net.gateways {
        gateway.settings.facing_tcp.time_wait = Span::from_millis(1_000);
        gateway.settings.host_tcp.time_wait = Span::from_millis(1_000);
    }
    let mut most = (0, 0);
    for count in 0..connections {
        net.client_port = 1_024 + (count % 60_000) as u16;
        net.hosts = [None, None];
        net.connect(CLIENT, count.wrapping_mul(100_000));
        net.run(Span::from_millis(5));
        write(&mut net, CLIENT, 3_000);
        net.at(CLIENT, |socket, cx| socket.close(cx));
        net.run(Span::from_millis(5));
        net.at(SERVER, |socket, cx| socket.close(cx));
        net.run(Span::from_millis(5));
        assert_eq!(read(&mut net, SERVER), 3_000, "{count}");
        let gateway = &net.gateways[0];
        if count == connections / 10 {
            most = (gateway.pairs.places(), gateway.flows.capacity());
        }
    }
    let gateway = &net.gateways[0];
    assert_eq!(net.count(0, "connections.split"), u64::from(connections));
    assert_eq!((gateway.pairs.places(), gateway.flows.capacity()), most);
    net.expect_nothing_left();
}

#[test]
fn memory_is_flat_after_thousands_of_connections() {
    soak(5_000);
}

#[test]
#[ignore = "a minute or more; make test-slow"]
fn memory_is_flat_after_a_million_connections() {
    soak(1_000_000);
}

/// Many short connections in TIME-WAIT take no memory from new ones.
#[test]
fn new_connections_reuse_the_memory_of_time_wait() {
    for settings in [
        two(|settings| settings.memory = 1 << 20),
        multiplexed(1, |settings| settings.memory = 1 << 20),
    ] {
        let mut net = Net::new(settings, &[1, 5, 1]);
        let count = 1_000;
        for number in 0..count {
            net.client_port = 2_000 + number as u16;
            net.hosts = [None, None];
            net.connect(CLIENT, number * 100_000);
            net.run(Span::from_millis(20));
            write(&mut net, CLIENT, 3_000);
            net.at(CLIENT, |socket, cx| socket.close(cx));
            net.run(Span::from_millis(20));
            assert_eq!(read(&mut net, SERVER), 3_000, "{number}");
            net.at(SERVER, |socket, cx| socket.close(cx));
            net.run(Span::from_millis(20));
        }
        for gateway in [0, 1] {
            assert_eq!(
                net.count(gateway, "connections.split"),
                u64::from(count),
                "{gateway}"
            );
            assert_eq!(net.count(gateway, "connections.refused"), 0);
            // Windows are as large as with ample memory.
            assert!(net.gateways[gateway].budget.available() >= 400 << 10);
        }
        net.expect_nothing_left();
    }
}

/// Between real hosts, a stream's buffer is limited to what its path needs, and is no bottleneck.
#[test]
fn a_live_stream_takes_what_its_path_needs() {
    let most_held = |secret: bool, rtt_ms: u64| {
        let mut gateway = settings(1);
        gateway.secret = secret.then_some(HostSecret {
            keys: [1, 2],
            clock_ms: 0,
        });
        let mut net = Net::new(vec![gateway], &[1, rtt_ms / 2]);
        for config in &mut net.configs {
            (config.send_buffer, config.receive_buffer) = (8 << 20, 8 << 20);
            (config.send_sizes, config.receive_sizes) = (None, None);
        }
        net.connect(CLIENT, 7);
        net.run(Span::from_secs(2));
        let bytes = 30_000_000;
        net.at(SERVER, |socket, _| socket.set_sink());
        net.at(CLIENT, |socket, cx| socket.feed(bytes, true, cx));
        let begun = net.world.now;
        let done = |net: &Net| net.state(SERVER) == State::CloseWait;
        assert!(net.run_until(begun + Span::from_secs(60), done));
        (
            net.world.now.since(begun).as_secs_f64(),
            net.count(0, "bytes_held.max"),
        )
    };
    // The gateway's own send buffer limits neither.
    let (free_s, _) = most_held(false, 500);
    let (limited_s, held) = most_held(true, 500);
    assert!(
        limited_s <= 1.02 * free_s,
        "{limited_s} s instead of {free_s} s"
    );
    assert!(held > 1_000_000, "{held}");
}

/// A receiver that reads nothing has only the minimum stored for it, and its window.
#[test]
fn a_live_stream_to_an_idle_reader_takes_little() {
    let mut gateway = settings(1);
    gateway.secret = Some(HostSecret {
        keys: [1, 2],
        clock_ms: 0,
    });
    let mut net = Net::new(vec![gateway], &[1, 250]);
    net.configs[SERVER].receive_buffer = 64 << 10;
    net.configs[SERVER].receive_sizes = None;
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    net.at(CLIENT, |socket, cx| socket.feed(50_000_000, true, cx));
    net.run(Span::from_secs(60));
    // The server's receive buffer is full.
    assert!(net.at(SERVER, |socket, _| socket.readable()) > 50_000);
    let held = net.count(0, "bytes_held.now");
    assert!(held > 60_000 && held < 1_000_000, "{held}");
}
