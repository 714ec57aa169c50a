//! Multicast: a packet is transmitted once per link, reaches each member once, and every copy is
//! accounted for.

use bentpipe_host::Distribution;
use bentpipe_host::applications::{CarouselSettings, PacketsSettings, Transport};
use bentpipe_link::{DropTail, ErrorModel, Limit, Settings};
use bentpipe_sim::{FlowSettings, LinkSettings, Network, NetworkBuilder, NodeId, Outcome, Traffic};
use bentpipe_tcp::Config;
use bentpipe_types::{BitRate, RandomStream, Span, Time};
use proptest::prelude::*;

fn direction(rate: u64, queue: u64) -> Settings {
    Settings::new(
        BitRate::new(rate).expect("it is a rate"),
        Span::from_millis(20),
        DropTail {
            limit: Limit::Packets(queue),
        },
    )
}

fn link(name: &str) -> LinkSettings {
    LinkSettings {
        name: name.to_owned(),
        forward: Some(direction(100_000_000, 1_000)),
        backward: Some(direction(100_000_000, 1_000)),
    }
}

fn loss(rate: f64, who: usize) -> Vec<ErrorModel> {
    let random = RandomStream::new(7, &format!("receiver {who}"), "errors");
    vec![ErrorModel::packet_loss(rate, random)]
}

fn datagrams() -> Traffic {
    Traffic::Packets(PacketsSettings {
        transport: Transport::Udp,
        size: Distribution::Constant(1_000.0),
        interval: Distribution::Constant(0.01),
        bursts: None,
        lasts: Some(Span::from_secs(5)),
        largest: PacketsSettings::LARGEST,
    })
}

fn channel(from: NodeId, to: &[NodeId], application: &Traffic) -> Vec<FlowSettings> {
    let flow = |(index, to): (usize, &NodeId)| FlowSettings {
        name: format!("to-{index}"),
        from,
        to: *to,
        start: Span::from_millis(1),
        application: application.clone(),
        sender: Config::default().into(),
        receiver: Config::default().into(),
    };
    to.iter().enumerate().map(flow).collect()
}

fn run(mut network: Network) -> Outcome {
    network.run_until(Time::ZERO + Span::from_secs(100));
    assert_eq!(network.violations(), []);
    network.outcome()
}

fn messages(outcome: &Outcome, flow: usize) -> (u64, u64) {
    let messages = outcome.flows[flow].report.messages.as_ref();
    messages.map_or((0, 0), |messages| (messages.sent, messages.received))
}

/// Returns the packets offered to a direction, and those that left it.
fn passed(outcome: &Outcome, name: &str) -> (u64, u64) {
    let found = outcome.directions.iter().find(|slot| slot.name == name);
    let counters = &found.expect("there is such a direction").counters;
    (counters.offered, counters.delivered)
}

#[test]
fn one_transmission_on_a_broadcast_channel_reaches_all_receivers() {
    let mut builder = NetworkBuilder::new(1);
    let station = builder.host("station");
    let hub = builder.router("hub");
    builder.link(station, hub, link("studio"));
    let terminals: Vec<NodeId> = (0..100).map(|n| builder.host(&format!("t-{n}"))).collect();
    let receivers = terminals.iter().map(|node| (*node, Vec::new())).collect();
    builder.broadcast(hub, receivers, "satellite", direction(10_000_000, 1_000));
    // Members with even numbers only.
    let members: Vec<NodeId> = terminals.iter().copied().step_by(2).collect();
    builder.channel(channel(station, &members, &datagrams()));
    let outcome = run(builder.build().expect("it fits together"));
    assert_eq!(passed(&outcome, "studio.forward"), (499, 499));
    assert_eq!(passed(&outcome, "satellite.forward"), (499, 499 * 50));
    for flow in 0..50 {
        assert_eq!(messages(&outcome, flow), (499, 499));
    }
    // A packet of 1028 bytes over both links without queueing.
    let delays = &outcome.flows[0]
        .report
        .messages
        .as_ref()
        .expect("it receives")
        .delays;
    let expected = 8.0 * 1_028.0 * (1e-8 + 1e-7) + 0.04;
    assert!((delays.mean().expect("some came").as_secs_f64() - expected).abs() < 1e-9);
}

#[test]
fn losses_are_independent_per_member_at_the_configured_rate() {
    let mut builder = NetworkBuilder::new(1);
    let station = builder.host("station");
    let terminals: Vec<NodeId> = (0..50).map(|n| builder.host(&format!("t-{n}"))).collect();
    let receivers = terminals.iter().enumerate();
    let receivers = receivers.map(|(n, node)| (*node, loss(0.1, n))).collect();
    builder.broadcast(
        station,
        receivers,
        "satellite",
        direction(10_000_000, 1_000),
    );
    // Files of 50 datagrams, each sent twice in direct succession.
    let carousel = CarouselSettings {
        size: 50_000,
        datagram: 1_000,
        rate: BitRate::new(1_000_000).expect("it is a rate"),
        turns: 2,
        interval: Span::from_millis(800),
        count: Some(100),
    };
    builder.channel(channel(station, &terminals, &Traffic::Carousel(carousel)));
    let outcome = run(builder.build().expect("it fits together"));
    let (sent, received) = (0..50)
        .map(|flow| messages(&outcome, flow))
        .fold((0, 0), |(sent, received), more| {
            (sent + more.0, received + more.1)
        });
    assert_eq!(sent, 50 * 100 * 100);
    let share = received as f64 / sent as f64;
    assert!(
        (share - 0.9).abs() < 5.0 * (0.09 / sent as f64).sqrt(),
        "{share}"
    );
    // A file is complete with probability (1 - p^2)^50.
    let whole: usize = (outcome.flows.iter())
        .map(|flow| {
            flow.report
                .files
                .as_ref()
                .map_or(0, |files| files.times.len())
        })
        .sum();
    let (files, expected) = (50.0 * 100.0, 0.99_f64.powi(50));
    let share = whole as f64 / files;
    let deviation = (expected * (1.0 - expected) / files).sqrt();
    assert!(
        (share - expected).abs() < 5.0 * deviation,
        "{share}, {expected}"
    );
    let counters = &outcome.directions[0].counters;
    assert_eq!(
        counters.offered + counters.copied,
        counters.delivered + counters.lost
    );
    assert_eq!(counters.copied, 49 * counters.offered);
}

#[test]
fn paths_that_branch_and_rejoin_deliver_one_copy() {
    // station - a, a - b, a - c, b - d, c - d: d is reached over one of the two, whatever the
    // members.
    let mut builder = NetworkBuilder::new(1);
    let station = builder.host("station");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| builder.router(name));
    let mut members = Vec::new();
    for (name, near) in [("at-b", b), ("at-d", d), ("at-c", c), ("also-d", d)] {
        let host = builder.host(name);
        builder.link(near, host, link(name));
        members.push(host);
    }
    for (name, one, other) in [
        ("studio", station, a),
        ("ab", a, b),
        ("ac", a, c),
        ("bd", b, d),
        ("cd", c, d),
    ] {
        builder.link(one, other, link(name));
    }
    builder.channel(channel(station, &members, &datagrams()));
    let outcome = run(builder.build().expect("it fits together"));
    for name in ["studio", "ab", "ac", "bd", "at-b", "at-c", "at-d", "also-d"] {
        assert_eq!(
            passed(&outcome, &format!("{name}.forward")),
            (499, 499),
            "{name}"
        );
    }
    assert_eq!(passed(&outcome, "cd.forward"), (0, 0));
}

#[test]
fn a_channel_with_an_unreachable_member_is_refused() {
    let mut builder = NetworkBuilder::new(1);
    let station = builder.host("station");
    let terminal = builder.host("terminal");
    let elsewhere = builder.host("elsewhere");
    builder.broadcast(
        station,
        vec![(terminal, Vec::new())],
        "channel",
        direction(1_000_000, 10),
    );
    builder.channel(channel(station, &[terminal, elsewhere], &datagrams()));
    assert!(builder.build().is_err());
}

/// A network with a station, a mesh of routers, a channel received by hosts and routers, and
/// members anywhere.
#[derive(Clone, Debug)]
struct Mesh {
    routers: usize,
    links: Vec<(usize, usize)>,
    homes: Vec<usize>,
    receivers: usize,
    members: Vec<bool>,
    loss: f64,
    queue: u64,
    transfers: usize,
}

fn meshes() -> impl Strategy<Value = Mesh> {
    (2..6_usize, 1..8_usize, 0..6_usize).prop_flat_map(|(routers, homes, receivers)| {
        (
            prop::collection::vec((0..routers, 0..routers), 0..8),
            prop::collection::vec(0..routers, homes),
            prop::collection::vec(any::<bool>(), homes + 2 * receivers),
            prop_oneof![Just(0.0), 0.0..0.5],
            prop_oneof![Just(2_u64), Just(1_000)],
            0..3_usize,
        )
            .prop_map(
                move |(links, homes, members, loss, queue, transfers)| Mesh {
                    routers,
                    links,
                    homes,
                    receivers,
                    members,
                    loss,
                    queue,
                    transfers,
                },
            )
    })
}

impl Mesh {
    /// Returns the network and the number of members of its channel.
    fn build(&self) -> (Network, usize) {
        let mut builder = NetworkBuilder::new(3);
        let station = builder.host("station");
        let routers: Vec<NodeId> = (0..self.routers)
            .map(|n| builder.router(&format!("r-{n}")))
            .collect();
        builder.link(station, routers[0], link("studio"));
        for n in 1..self.routers {
            builder.link(routers[n - 1], routers[n], link(&format!("chain-{n}")));
        }
        for (n, (one, other)) in self.links.iter().enumerate() {
            if one != other {
                builder.link(routers[*one], routers[*other], link(&format!("more-{n}")));
            }
        }
        let mut hosts = Vec::new();
        for (n, near) in self.homes.iter().enumerate() {
            let host = builder.host(&format!("home-{n}"));
            builder.link(routers[*near], host, link(&format!("home-{n}")));
            hosts.push(host);
        }
        // Behind the last router: a channel received by hosts, and by routers with a host each.
        let last = routers[self.routers - 1];
        let mut receivers = Vec::new();
        for n in 0..self.receivers {
            let host = builder.host(&format!("dish-{n}"));
            receivers.push((host, loss(self.loss, 2 * n)));
            hosts.push(host);
            let site = builder.router(&format!("site-{n}"));
            receivers.push((site, loss(self.loss, 2 * n + 1)));
            let host = builder.host(&format!("behind-{n}"));
            builder.link(site, host, link(&format!("lan-{n}")));
            hosts.push(host);
            for (name, node) in [("dish", hosts[hosts.len() - 2]), ("site", site)] {
                let back = LinkSettings {
                    name: format!("{name}-{n}-back"),
                    forward: Some(direction(1_000_000, 100)),
                    backward: None,
                };
                builder.link(node, last, back);
            }
        }
        builder.broadcast(last, receivers, "channel", direction(5_000_000, self.queue));
        let chosen = hosts
            .iter()
            .zip(&self.members)
            .filter(|(_, chosen)| **chosen);
        let members: Vec<NodeId> = chosen.map(|(host, _)| *host).collect();
        if !members.is_empty() {
            builder.channel(channel(station, &members, &datagrams()));
        }
        for (n, host) in hosts.iter().rev().take(self.transfers).enumerate() {
            builder.flow(FlowSettings {
                name: format!("transfer-{n}"),
                from: station,
                to: *host,
                start: Span::from_millis(3),
                application: Traffic::bulk(Some(20_000)),
                sender: Config::default().into(),
                receiver: Config::default().into(),
            });
        }
        (builder.build().expect("it fits together"), members.len())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn members_receive_at_most_what_was_sent_and_all_copies_are_accounted_for(mesh in meshes()) {
        let (mut network, members) = mesh.build();
        for second in 1..30 {
            network.run_until(Time::ZERO + Span::from_millis(777 * second));
            prop_assert_eq!(network.violations(), []);
        }
        network.run_until(Time::ZERO + Span::from_secs(60));
        let outcome = network.outcome();
        let certain = mesh.loss == 0.0 && mesh.queue > 2;
        for flow in &outcome.flows[..members] {
            let messages = flow.report.messages.as_ref().expect("it is a source's");
            prop_assert!(messages.received <= messages.sent);
            prop_assert!(!certain || messages.received == messages.sent, "{:?}", messages);
        }
        if members > 0 {
            // No packet is sent twice over any link; there is at most one other transfer.
            for direction in outcome.directions.iter().filter(|_| mesh.transfers == 0) {
                prop_assert!(direction.counters.offered <= 499, "{}", direction.name);
            }
        }
        let (mut again, _) = mesh.build();
        again.run_until(Time::ZERO + Span::from_secs(60));
        let again = again.outcome();
        prop_assert_eq!(again.packet_hops, outcome.packet_hops);
    }
}
