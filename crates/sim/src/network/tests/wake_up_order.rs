//! Tests of the order of simultaneous events by idle time.

use super::*;

/// Returns the packets that the queue dropped in the first three round trips of slow start. In the
/// third, each of twenty acknowledgments, 1.5 ms apart, releases two segments while one departs.
/// With the last of them twenty or twenty-one segments are queued, depending on whether it arrives
/// before the departure at the same time.
fn dropped(sleeps: bool, ahead: bool) -> u64 {
    let mut builder = NetworkBuilder::new(1);
    let [server, client] = ["server", "client"].map(|name| builder.host(name));
    let delay = Span::from_millis(60);
    // Segments of 1500 bytes with headers.
    let config = Config {
        mss: 1448,
        initial_window: 10,
        delayed_ack: None,
        ..Config::default()
    };
    let way = |limit| direction(8_000_000, delay, limit, vec![]);
    let short = way(Limit::Packets(20));
    builder.link(server, client, duplex("link", short, way(PLENTY)));
    builder.flow(FlowSettings {
        sender: config.clone().into(),
        receiver: config.into(),
        ..bulk("flow", server, client, Some(70 * 1448))
    });
    if sleeps {
        builder.sleeps_when_idle(server);
        builder.sleeps_when_idle(client);
    }
    let mut network = builder.build().expect("it fits together");
    if !ahead {
        network.without_lookahead();
    }
    let outcome = run(network, 10);
    assert_eq!(outcome.flows[0].bytes_delivered(), 70 * 1448);
    outcome.directions[0].counters.dropped
}

#[test]
fn a_host_that_was_idle_answers_after_simultaneous_events() {
    for ahead in [true, false] {
        assert_eq!(dropped(false, ahead), 0);
        assert_eq!(dropped(true, ahead), 1, "Linux");
    }
}

/// A held packet belongs to the host's holdings, wherever a run ends.
#[test]
fn a_packet_that_wakes_a_host_is_accounted_for() {
    for nanoseconds in 0..20 {
        let mut builder = NetworkBuilder::new(1);
        let [server, client] = ["server", "client"].map(|name| builder.host(name));
        let way = || direction(8_000_000, Span::from_millis(60), PLENTY, vec![]);
        builder.link(server, client, duplex("link", way(), way()));
        builder.flow(bulk("flow", server, client, Some(1_000)));
        builder.sleeps_when_idle(client);
        let mut network = builder.build().expect("it fits together");
        // The SYN of 60 bytes has arrived.
        let arrival = Time::ZERO + Span::from_millis(60) + Span::from_micros(60);
        network.run_until(arrival + Span::from_nanos(nanoseconds));
        assert_eq!(network.violations(), [], "{nanoseconds} ns");
        network.run_until(Time::ZERO + Span::from_secs(2));
        assert_eq!(network.violations(), []);
        assert_eq!(network.outcome().flows[0].bytes_delivered(), 1_000);
    }
}
