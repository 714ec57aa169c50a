//! Rate limits of classes, and limits of the connections of a source.

use bentpipe_tcp::State;
use bentpipe_types::{Agent, BitRate, Span};

use super::Net;
use super::test_network::{CLIENT, SERVER, settings};
use crate::ConnectionClass;
use crate::split::{RateLimit, Settings, Split};

fn of_port(port: u16, bits_per_second: u64) -> RateLimit {
    let ports = Some(vec![(port, port)]);
    let class = ConnectionClass {
        ports,
        ..ConnectionClass::default()
    };
    RateLimit {
        class: Some(class),
        dscp: None,
        rate: BitRate::new(bits_per_second).expect("above 0"),
        longest_wait: Span::from_millis(250),
    }
}

/// Returns the rate of a transfer in Mbit/s through a gateway with these limits, and the gateway's
/// count of dropped packets.
fn transfer(limits: Vec<RateLimit>, sender: usize) -> (f64, u64) {
    let settings = Settings {
        rate_limits: limits,
        ..settings(1)
    };
    let mut net = Net::new(vec![settings], &[1, 20]);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    let bytes = 4_000_000;
    let begun = net.world.now;
    net.at(1 - sender, |socket, _| socket.set_sink());
    net.at(sender, |socket, cx| socket.feed(bytes, true, cx));
    let done = |net: &Net| net.state(1 - sender) == State::CloseWait;
    assert!(net.run_until(begun + Span::from_secs(60), done));
    let mut dropped = 0;
    net.gateways[0].counters(&mut |name, count| {
        if name == "packets.over_rate" {
            dropped = count;
        }
    });
    let elapsed = net.world.now.since(begun).as_secs_f64();
    (bytes as f64 * 8e-6 / elapsed, dropped)
}

#[test]
fn a_class_has_at_most_its_rate_in_either_direction() {
    for sender in [CLIENT, SERVER] {
        let (rate, _) = transfer(vec![of_port(80, 4_000_000)], sender);
        assert!((3.0..4.0).contains(&rate), "{rate} Mbit/s");
        let (other, dropped) = transfer(vec![of_port(81, 4_000_000)], sender);
        assert!(other > 8.0, "{other} Mbit/s");
        assert_eq!(dropped, 0);
    }
}

#[test]
fn the_first_limit_that_matches_applies() {
    let limits = vec![of_port(80, 8_000_000), of_port(80, 1_000_000)];
    let (rate, _) = transfer(limits, CLIENT);
    assert!((6.0..8.0).contains(&rate), "{rate} Mbit/s");
}

/// A packet waits at most as long as the limit says.
#[test]
fn packets_that_would_wait_too_long_are_dropped() {
    let short = RateLimit {
        longest_wait: Span::from_millis(5),
        ..of_port(80, 4_000_000)
    };
    let (_, dropped) = transfer(vec![short], CLIENT);
    assert!(dropped > 0);
    let long = RateLimit {
        longest_wait: Span::from_secs(10),
        ..of_port(80, 4_000_000)
    };
    let (rate, dropped) = transfer(vec![long], CLIENT);
    assert_eq!(dropped, 0);
    assert!(rate > 3.5, "{rate} Mbit/s");
}

#[test]
fn limits_change_while_packets_wait() {
    let settings = |bits_per_second| Settings {
        rate_limits: vec![of_port(80, bits_per_second)],
        ..settings(1)
    };
    let mut net = Net::new(vec![settings(100_000)], &[1, 20]);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(2));
    net.at(SERVER, |socket, _| socket.set_sink());
    net.at(CLIENT, |socket, cx| socket.feed(1_000_000, true, cx));
    net.run(Span::from_millis(100));
    assert!(net.gateways[0].holdings().packets > 0);
    let mut other: Split = super::test_network::gateway(0, settings(50_000_000));
    let adopted = net.gateways[0]
        .managed()
        .map(|managed| managed.adopt_settings(other.managed().expect("a gateway")));
    assert_eq!(adopted, Some(Ok(())));
    let begun = net.world.now;
    let done = |net: &Net| net.state(SERVER) == State::CloseWait;
    assert!(net.run_until(begun + Span::from_secs(5), done));
    net.run(Span::from_secs(5));
    assert_eq!(net.gateways[0].holdings().packets, 0);
}

#[test]
fn a_source_has_at_most_its_connections_split() {
    let settings = Settings {
        source_connections: Some(3),
        ..settings(1)
    };
    let mut net = Net::new(vec![settings], &[1, 1]);
    for port in 0..5 {
        net.client_port = 10_000 + port;
        net.hosts = [None, None];
        net.connect(CLIENT, 7);
        net.run(Span::from_millis(10));
        assert_eq!(net.state(CLIENT), State::Established);
    }
    assert_eq!(net.count(0, "connections.split"), 3);
    assert_eq!(net.count(0, "connections.refused"), 2);
}
