//! Tests of which hosts run ahead, and how far. That results do not change is tested with the
//! chains, on random networks.

use bentpipe_tcp::{CongestionControlKind, SlowStartKind};
use bentpipe_types::{PacketRef, PacketStore};

use super::*;
use crate::applications::RequestResponseSettings;
use crate::{Distribution, End, Progress, Tap};

struct Nobody;

impl Tap for Nobody {
    fn sent(&mut self, _: Time, _: PacketRef, _: &PacketStore) {}

    fn received(&mut self, _: Time, _: PacketRef, _: &PacketStore) {}
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

/// Returns the number of hosts that run ahead, once the run has begun.
fn number_that_run_ahead(mut network: Network) -> usize {
    network.run(at(0), 1);
    network
        .directions
        .iter()
        .filter(|slot| slot.runs_ahead())
        .count()
}

#[test]
fn hosts_run_ahead_unless_each_event_is_observed() {
    let network = || satellite(1e-6, 1, None);
    assert_eq!(number_that_run_ahead(network()), 2);

    let mut captured = network();
    captured.tap("satellite", End::First, Box::new(Nobody));
    assert_eq!(number_that_run_ahead(captured), 0);

    let probe = |target, sampling| {
        let mut network = network();
        let probe = Probe {
            name: "probe".to_owned(),
            target,
        };
        network.probe(vec![probe], sampling);
        number_that_run_ahead(network)
    };
    let rates = Span::from_millis(10);
    let window = ProbeTarget::Flow(0, FlowQuantity::CongestionWindow);
    let queue = ProbeTarget::Direction(0, LinkQuantity::Queue);
    for target in [window, queue] {
        assert_eq!(probe(target, Sampling::Interval(rates)), 2);
    }
    let each_change = Sampling::EveryChange { rates };
    assert_eq!(probe(window, each_change), 1, "the client is not looked at");
    assert_eq!(probe(queue, each_change), 0);
}

#[test]
fn hosts_with_two_links_or_interacting_applications_do_not_run_ahead() {
    let build = |traffic: Traffic, second: bool| {
        let mut builder = NetworkBuilder::new(1);
        let [server, client] = ["server", "client"].map(|name| builder.host(name));
        let way = || direction(10_000_000, Span::from_millis(10), PLENTY, vec![]);
        builder.link(server, client, duplex("one", way(), way()));
        if second {
            builder.link(server, client, duplex("other", way(), way()));
        }
        builder.flow(FlowSettings {
            application: traffic,
            ..bulk("flow", server, client, None)
        });
        builder.build().expect("it fits together")
    };
    assert_eq!(number_that_run_ahead(build(Traffic::bulk(None), false)), 2);
    assert_eq!(number_that_run_ahead(build(Traffic::bulk(None), true)), 0);
    // A request's content is passed beside the network.
    let some = Distribution::Constant(1_000.0);
    let requests = Traffic::RequestResponse(RequestResponseSettings {
        request: some,
        response: some,
        think: Span::ZERO,
        pause: some,
        count: None,
    });
    assert_eq!(number_that_run_ahead(build(requests, false)), 0);
}

#[test]
fn the_clock_advances_while_hosts_run_ahead() {
    let mut network = satellite(0.0, 1, None);
    let mut clocks = Vec::new();
    while network.run(at(60_000), 1_000) == Progress::Running {
        clocks.push(network.now());
    }
    let steps = clocks.windows(2).map(|pair| {
        assert!(pair[0] <= pair[1], "it goes back");
        pair[1].since(pair[0])
    });
    // A thousand events take half a second, and the horizon moves by one second.
    let longest = steps.max().expect("more than one");
    assert!(longest < Span::from_millis(2_500), "{longest:?} at once");
}

#[test]
fn continuing_with_an_external_clock_gives_the_same_results() {
    let known = |network: &mut Network| {
        let statistics = format!("{:?}", network.outcome().flows);
        (statistics, network.violations())
    };
    let mut ahead = satellite(1e-6, 3, None);
    ahead.run_until(at(20_000));
    let mut in_turn = satellite(1e-6, 3, None);
    in_turn.run_until(at(7_777));
    assert!(in_turn.advance(at(20_000), u64::MAX));
    assert_eq!(known(&mut in_turn), known(&mut ahead));
}

/// Of segments sent at once, the fifth and sixth do not fit into a queue of this many bytes, but
/// the last, which is shorter, does.
#[test]
fn a_queue_accepts_a_shorter_packet_after_dropping_longer_ones() {
    let outcome = |ahead: bool| {
        let mut builder = NetworkBuilder::new(1);
        let [server, client] = ["server", "client"].map(|name| builder.host(name));
        let way = |limit| direction(10_000_000, Span::from_millis(10), limit, vec![]);
        let short = Limit::Bytes(Bytes::new(4_000));
        builder.link(server, client, duplex("link", way(short), way(PLENTY)));
        // Segments of 1000 bytes, and a last one.
        builder.flow(bulk("flow", server, client, Some(6_100)));
        let mut network = builder.build().expect("it fits together");
        if !ahead {
            network.without_lookahead();
        }
        network.run_until(at(35));
        format!("{:?}", network.outcome().directions)
    };
    let told = outcome(true);
    assert!(told.contains("dropped: 2"), "{told}");
    assert_eq!(told, outcome(false));
}

/// Retransmissions of a window that overflows the queue: those for which the queue has no room are
/// not created, with the same results.
#[test]
fn retransmissions_a_full_queue_would_drop_are_not_created() {
    let outcome = |ahead: bool| {
        let mut builder = NetworkBuilder::new(1);
        let [server, client] = ["server", "client"].map(|name| builder.host(name));
        let way = |limit| direction(10_000_000, Span::from_millis(300), limit, vec![]);
        let few = way(Limit::Packets(500));
        builder.link(server, client, duplex("link", few, way(PLENTY)));
        let ample = Config {
            congestion_control: CongestionControlKind::Hybla,
            slow_start: SlowStartKind::Standard,
            proportional_rate_reduction: false,
            send_buffer: 20_000_000,
            receive_buffer: 20_000_000,
            ..Config::default()
        };
        builder.flow(FlowSettings {
            sender: ample.clone().into(),
            receiver: ample.into(),
            ..bulk("flow", server, client, None)
        });
        let mut network = builder.build().expect("it fits together");
        if !ahead {
            network.without_lookahead();
        }
        network.run_until(at(60_000));
        assert_eq!(network.violations(), []);
        let made = network.packets.inserted();
        (made, format!("{:?}", network.outcome()))
    };
    let ((made, told), (all, in_turn)) = (outcome(true), outcome(false));
    assert_eq!(told, in_turn);
    assert!(made + 10_000 < all, "{made} of {all} packets were made");
}
