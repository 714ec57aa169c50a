use bentpipe_link::{DropTail, ErrorModel, Limit, Settings};
use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::{BitRate, Bytes, RandomStream, Span, Time};
use proptest::prelude::*;

use crate::{
    FlowQuantity, FlowSettings, LinkQuantity, LinkSettings, Network, NetworkBuilder, NodeId,
    Outcome, Probe, ProbeTarget, Sampling, Traffic,
};

mod ends;
mod external_clock;
mod host_run_ahead;
mod link_chains;
mod parts;
mod path_mtu;
mod wake_up_order;

fn direction(rate: u64, delay: Span, queue: Limit, errors: Vec<ErrorModel>) -> Settings {
    Settings {
        errors,
        ..Settings::new(
            BitRate::new(rate).expect("not zero"),
            delay,
            DropTail { limit: queue },
        )
    }
}

fn duplex(name: &str, forward: Settings, backward: Settings) -> LinkSettings {
    LinkSettings {
        name: name.to_owned(),
        forward: Some(forward),
        backward: Some(backward),
    }
}

fn bulk(name: &str, from: NodeId, to: NodeId, size: Option<u64>) -> FlowSettings {
    FlowSettings {
        name: name.to_owned(),
        from,
        to,
        start: Span::ZERO,
        application: Traffic::bulk(size),
        sender: Config::default().into(),
        receiver: Config::default().into(),
    }
}

const PLENTY: Limit = Limit::Packets(1_000_000);

/// server --10 Mbit/s, 280 ms--> client, 1 Mbit/s back.
fn satellite(errors: f64, seed: u64, size: Option<u64>) -> Network {
    let mut builder = NetworkBuilder::new(seed);
    let server = builder.host("server");
    let client = builder.host("client");
    let lossy = ErrorModel::bit_errors(
        errors,
        RandomStream::new(seed, "satellite.forward", "errors"),
    );
    let delay = Span::from_millis(280);
    let link = duplex(
        "satellite",
        direction(10_000_000, delay, PLENTY, vec![lossy]),
        direction(1_000_000, delay, PLENTY, vec![]),
    );
    builder.link(server, client, link);
    builder.flow(bulk("download", server, client, size));
    builder.build().expect("it fits together")
}

fn run(mut network: Network, seconds: u64) -> Outcome {
    network.run_until(Time::ZERO + Span::from_secs(seconds));
    assert_eq!(network.violations(), []);
    network.outcome()
}

#[test]
fn a_transfer_ends_and_its_link_is_idle() {
    let outcome = run(satellite(0.0, 1, Some(5_000_000)), 1_000);
    let flow = &outcome.flows[0];
    assert_eq!(flow.bytes_delivered(), 5_000_000);
    let finish = flow.finish.expect("finished").as_secs_f64();
    // 5 MB at 10 Mbit/s are 4 s; slow start from ten segments over 0.56 s takes some seconds more.
    assert!((4.0..12.0).contains(&finish), "{finish}");
    assert!(
        outcome.ended < Time::ZERO + Span::from_secs(20),
        "{:?}",
        outcome.ended
    );
    assert!(
        outcome
            .directions
            .iter()
            .all(|direction| direction.in_transit == 0)
    );
    assert_eq!(
        flow.sender
            .as_ref()
            .map(|sender| sender.segments_retransmitted),
        Some(0)
    );
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let key = |seed| {
        let outcome = run(satellite(1e-6, seed, Some(5_000_000)), 1_000);
        let lost = outcome.directions[0].counters.lost;
        (outcome.flows[0].finish, outcome.packet_hops, lost)
    };
    assert_eq!(key(1), key(1));
    assert_ne!(key(1), key(2));
}

#[test]
fn the_windowed_transfer_agrees_with_the_closed_form() {
    // A window of 10 segments of 1448 bytes gives 10 segments per round trip R, where R = 2 x 280
    // ms + 1500 B / 10 Mbit/s + 52 B / 1 Mbit/s if every segment is acknowledged.
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let client = builder.host("client");
    let delay = Span::from_millis(280);
    let link = duplex(
        "satellite",
        direction(10_000_000, delay, PLENTY, vec![]),
        direction(1_000_000, delay, PLENTY, vec![]),
    );
    builder.link(server, client, link);
    let mut flow = bulk("download", server, client, Some(1448 * 1_000));
    let receiver = Arc::make_mut(&mut flow.receiver);
    receiver.receive_buffer = 14_480;
    receiver.delayed_ack = None;
    builder.flow(flow);
    let outcome = run(builder.build().expect("it fits together"), 1_000);
    let sender = outcome.flows[0].sender.as_ref().expect("begun");
    let first = sender.first_data_at.expect("data was sent");
    let took = outcome.flows[0]
        .finish
        .expect("finished")
        .since(first)
        .as_secs_f64();
    let round_trip = 0.56 + 1500.0 * 8.0 / 10e6 + 52.0 * 8.0 / 1e6;
    // The last of 100 windows needs no acknowledgment: one way, and its ten segments in a row.
    let expected = 99.0 * round_trip + 0.28 + 10.0 * 1500.0 * 8.0 / 10e6;
    assert!((took - expected).abs() < 1e-3, "{took} against {expected}");
}

#[test]
fn routers_forward_along_the_shortest_path() {
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let hub = builder.router("hub");
    let terminal = builder.router("terminal");
    let client = builder.host("client");
    let lan = || direction(100_000_000, Span::from_millis(1), PLENTY, vec![]);
    let sky = || direction(2_000_000, Span::from_millis(270), PLENTY, vec![]);
    builder.link(server, hub, duplex("lan", lan(), lan()));
    builder.link(hub, terminal, duplex("satellite", sky(), sky()));
    builder.link(terminal, client, duplex("home", lan(), lan()));
    builder.flow(bulk("download", server, client, Some(300_000)));
    builder.flow(bulk("upload", client, server, Some(100_000)));
    let outcome = run(builder.build().expect("it fits together"), 100);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
    // Three hops per packet.
    assert_eq!(outcome.packet_hops % 3, 0);
}

#[test]
fn an_unreachable_end_is_refused() {
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let client = builder.host("client");
    let forward = Some(direction(1_000_000, Span::ZERO, PLENTY, vec![]));
    let link = LinkSettings {
        name: "one-way".to_owned(),
        forward,
        backward: None,
    };
    builder.link(server, client, link);
    builder.flow(bulk("download", server, client, None));
    assert!(builder.build().is_err());
}

#[test]
fn probes_record_values_without_changing_the_run() {
    let plain = run(satellite(0.0, 1, Some(2_000_000)), 1_000);
    let probes = |network: &Network| {
        let probe = |name: &str, target| Probe {
            name: name.to_owned(),
            target,
        };
        let forward = network.direction_named("satellite.forward").expect("there");
        vec![
            probe("download.sent", ProbeTarget::Flow(0, FlowQuantity::Sent)),
            probe(
                "download.goodput",
                ProbeTarget::Flow(0, FlowQuantity::Goodput),
            ),
            probe(
                "satellite.forward.queue",
                ProbeTarget::Direction(forward, LinkQuantity::Queue),
            ),
        ]
    };
    let rates = Span::from_millis(100);
    let finest = Span::from_millis(1);
    let as_it_lasts = Sampling::AsItLasts { finest, most: 200 };
    let every_change = Sampling::EveryChange { rates };
    for sampling in [Sampling::Interval(rates), as_it_lasts, every_change] {
        let mut network = satellite(0.0, 1, Some(2_000_000));
        let wanted = probes(&network);
        network.probe(wanted, sampling);
        let probed = run(network, 1_000);
        assert_eq!(plain.flows[0].finish, probed.flows[0].finish);
        assert_eq!(plain.packet_hops, probed.packet_hops);
        assert_eq!(plain.ended, probed.ended);
        let [sent, goodput, queue] = &probed.series[..] else {
            panic!("three series")
        };
        assert_eq!(sent.values.last(), Some(&2_000_000.0));
        for series in &probed.series {
            assert!(series.times_ns.is_sorted(), "{}", series.name);
            assert!(
                series
                    .times_ns
                    .iter()
                    .all(|at| *at <= probed.ended.as_nanos())
            );
        }
        let bits: f64 = goodput
            .times_ns
            .windows(2)
            .zip(&goodput.values[1..])
            .map(|(pair, rate)| (pair[1] - pair[0]) as f64 * 1e-9 * rate)
            .sum();
        assert!(
            (bits - 16e6).abs() < 1.0,
            "{bits} bits under the goodput curve"
        );
        let highest = queue.values.iter().copied().fold(0.0, f64::max);
        let counted = probed.directions[0].counters.queue_max_packets as f64;
        match sampling {
            Sampling::EveryChange { .. } => assert_eq!(highest, counted),
            Sampling::Interval(_) | Sampling::AsItLasts { .. } => assert!(highest <= counted),
        }
        assert_eq!(queue.values.last(), Some(&0.0));
    }
}

#[test]
fn adaptive_sampling_equals_fixed_sampling_at_the_final_interval() {
    let finest = Span::from_millis(10);
    let most = 100;
    let as_it_lasts = Sampling::AsItLasts { finest, most };
    let outcome = |sampling| {
        let mut network = satellite(1e-6, 1, Some(2_000_000));
        let forward = network.direction_named("satellite.forward").expect("there");
        let of_flow = |of| ProbeTarget::Flow(0, of);
        let of_link = |of| ProbeTarget::Direction(forward, of);
        let targets = [
            of_flow(FlowQuantity::Goodput),
            of_flow(FlowQuantity::CongestionWindow),
            ProbeTarget::Goodput(0, 1),
            of_link(LinkQuantity::Queue),
            of_link(LinkQuantity::QueueMax),
            of_link(LinkQuantity::Utilization),
            of_link(LinkQuantity::Lost),
        ];
        let probes = targets.map(|target| Probe {
            name: format!("{target:?}"),
            target,
        });
        network.probe(probes.into(), sampling);
        run(network, 1_000)
    };
    let halved = outcome(as_it_lasts);
    let mut interval = finest;
    while halved.ended >= Time::ZERO + interval * u64::from(most) {
        interval = interval * 2;
    }
    assert!(interval > finest * 4, "it is not long enough to tell");
    let at_once = outcome(Sampling::Interval(interval));
    for (halved, at_once) in halved.series.iter().zip(&at_once.series) {
        assert!((50..=102).contains(&halved.values.len()), "{}", halved.name);
        assert_eq!(halved.times_ns, at_once.times_ns, "{}", halved.name);
        for (one, other) in halved.values.iter().zip(&at_once.values) {
            assert!(
                (one - other).abs() <= 1e-12 * other.abs(),
                "{}",
                halved.name
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Random chains of routers with random links and flows: every packet is accounted for, and the
    /// delivered data are the sent data.
    #[test]
    fn everything_is_accounted_for(
        seed in any::<u64>(),
        hops in prop::collection::vec((10_000_u64..50_000_000, 0_u64..300, 1_u64..60, 0.0_f64..0.05), 1..4),
        flows in prop::collection::vec((1_u64..400_000, any::<bool>(), 0_u64..2_000), 1..6),
        seconds in 1_u64..60,
    ) {
        let mut builder = NetworkBuilder::new(seed);
        let first = builder.host("first");
        let mut last = first;
        for (index, (rate, delay, queue, loss)) in hops.iter().enumerate() {
            let is_end = index + 1 == hops.len();
            let next = if is_end { builder.host("last") } else { builder.router(&format!("r{index}")) };
            let name = format!("link{index}");
            let way = |direction_name: &str| {
                let stream = RandomStream::new(seed, &format!("{name}.{direction_name}"), "errors");
                direction(*rate, Span::from_millis(*delay), Limit::Packets(*queue),
                    vec![ErrorModel::packet_loss(*loss, stream)])
            };
            builder.link(last, next, duplex(&name, way("forward"), way("return")));
            last = next;
        }
        for (index, (size, down, start)) in flows.iter().enumerate() {
            let (from, to) = if *down { (first, last) } else { (last, first) };
            let mut flow = bulk(&format!("flow{index}"), from, to, Some(*size));
            flow.start = Span::from_millis(*start);
            builder.flow(flow);
        }
        let mut network = builder.build().expect("it fits together");
        network.run_until(Time::ZERO + Span::from_secs(seconds));
        prop_assert_eq!(network.violations(), []);
        let outcome = network.outcome();
        for (flow, (size, ..)) in outcome.flows.iter().zip(&flows) {
            prop_assert!(flow.bytes_delivered() <= *size);
            prop_assert_eq!(flow.finish.is_some(), flow.bytes_delivered() == *size);
        }
        for (direction, (rate, ..)) in outcome.directions.chunks(2).zip(&hops).flat_map(|(pair, hop)| pair.iter().map(move |d| (d, hop))) {
            let capacity = BitRate::new(*rate).expect("not zero").bytes_in(outcome.ended.since(Time::ZERO));
            prop_assert!(Bytes::new(direction.counters.delivered_bytes) <= capacity + Bytes::new(1500));
        }
    }
}
