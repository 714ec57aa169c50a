//! A middlebox defined outside the engine: it holds, duplicates, answers and forwards packets, and
//! names everything that it does.

use std::collections::VecDeque;

use bentpipe_link::{DropTail, ErrorModel, Limit, Settings};
use bentpipe_sim::{
    FlowSettings, FlowState, LinkSettings, Network, NetworkBuilder, Probe, ProbeTarget, Sampling,
    Traffic, Violation,
};
use bentpipe_tcp::{Config, reset_reply};
use bentpipe_types::{
    Agent, BitRate, Ctx, DropReason, Flags, Gauge, Holdings, PacketRef, Port, RandomStream, Routes,
    Span, StreamCheck, Time,
};
use proptest::prelude::*;

/// Holds every third packet for a while; retains every fifth until the next one and sends it twice;
/// answers SYNs to `refused` with RST.
#[derive(Debug, Default)]
struct Middle {
    routes: Routes,
    refused: u16,
    delay: Span,
    seen: u64,
    held: VecDeque<(Time, PacketRef)>,
    retained: Option<PacketRef>,
    forwarded: u64,
    duplicated: u64,
    answered: u64,
    /// Reports one held packet too few, which the engine must detect.
    lies: bool,
    check: StreamCheck,
}

impl Middle {
    fn forward(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let destination = cx.packets.get(packet).destination.address;
        match self.routes.port_towards(destination) {
            Some(port) => {
                self.forwarded += 1;
                cx.emit(port, packet);
            }
            None => cx.discard(packet, DropReason::NoRoute),
        }
    }
}

impl Agent for Middle {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(packet);
        let syn = record.flags.has(Flags::SYN) && !record.flags.has(Flags::ACK);
        if syn && self.refused > 0 {
            self.refused -= 1;
            self.answered += 1;
            reset_reply(packet, from, cx);
            return;
        }
        self.seen += 1;
        if let Some(copy) = self.retained.take() {
            self.duplicated += 1;
            self.forward(copy, cx);
        }
        if self.seen.is_multiple_of(5) {
            // One packet with two holders: this box and the holder of the forwarded reference.
            cx.packets.retain(packet);
            self.retained = Some(packet);
        }
        if self.seen.is_multiple_of(3) {
            self.held.push_back((cx.now + self.delay, packet));
        } else {
            self.forward(packet, cx);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while self.held.front().is_some_and(|(at, _)| *at <= cx.now) {
            if let Some((_, packet)) = self.held.pop_front() {
                self.forward(packet, cx);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.held.front().map(|(at, _)| *at)
    }

    fn holdings(&self) -> Holdings {
        let packets = self.held.len() as u64 + u64::from(self.retained.is_some());
        Holdings {
            packets: packets - u64::from(self.lies && packets > 0),
            bytes: 0,
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("forwarded", self.forwarded);
        visit("duplicated", self.duplicated);
        visit("answered", self.answered);
    }

    fn gauges(&self) -> &'static [Gauge] {
        &[const { Gauge::new("held", "packets", "Packets held.") }]
    }

    fn gauge(&self, index: usize) -> f64 {
        assert_eq!(index, 0);
        self.holdings().packets as f64
    }

    fn stream_check(&self) -> StreamCheck {
        self.check
    }

    fn is_quiet(&self) -> bool {
        self.held.is_empty()
    }
}

fn link(name: &str, loss: f64) -> LinkSettings {
    let way = |way: &str| {
        BitRate::new(5_000_000).map(|rate| Settings {
            errors: vec![ErrorModel::packet_loss(
                loss,
                RandomStream::new(1, &format!("{name}.{way}"), "errors"),
            )],
            ..Settings::new(
                rate,
                Span::from_millis(20),
                DropTail {
                    limit: Limit::Packets(1_000),
                },
            )
        })
    };
    LinkSettings {
        name: name.to_owned(),
        forward: way("forward"),
        backward: way("return"),
    }
}

/// server - box - client, `flows` transfers of 200 kB.
fn network(box_: Middle, flows: usize, loss: f64) -> Network {
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let middle = builder.custom("middle", Box::<Middle>::default());
    let client = builder.host("client");
    let ports = builder.link(server, middle, link("near", loss));
    assert_eq!(ports, [Port(0), Port(0)]);
    let ports = builder.link(middle, client, link("far", loss));
    assert_eq!(ports, [Port(1), Port(0)]);
    // Its ports are known now.
    builder.replace(middle, Box::new(box_));
    for index in 0..flows {
        builder.flow(FlowSettings {
            name: format!("flow-{index}"),
            from: server,
            to: client,
            start: Span::from_millis(index as u64),
            application: Traffic::bulk(Some(200_000)),
            sender: Config::default().into(),
            receiver: Config::default().into(),
        });
    }
    builder.build().expect("it fits together")
}

const LATER: Span = Span::from_secs(4_000);

#[test]
fn a_custom_node_has_the_facilities_of_a_host() {
    let box_ = Middle {
        delay: Span::from_millis(7),
        refused: 1,
        ..Middle::default()
    };
    let mut network = network(box_, 3, 0.0);
    let node = network.node_named("middle").expect("there");
    assert_eq!(network.gauges(node)[0].name, "held");
    let probe = Probe {
        name: "middle.held".to_owned(),
        target: ProbeTarget::Node(node, 0),
    };
    let rates = Span::from_millis(10);
    network.probe(vec![probe], Sampling::EveryChange { rates });
    network.run_until(Time::ZERO + LATER);
    assert_eq!(network.violations(), []);
    let outcome = network.outcome();
    // The box refused one flow; the others are not affected.
    let states: Vec<_> = outcome.flows.iter().map(|flow| flow.state).collect();
    assert_eq!(
        states,
        [FlowState::Refused, FlowState::Finished, FlowState::Finished]
    );
    let [agent] = &outcome.agents[..] else {
        panic!("one agent that is neither host nor router")
    };
    assert_eq!(agent.name, "middle");
    let names: Vec<_> = agent.counters.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["forwarded", "duplicated", "answered"]);
    let [forwarded, duplicated, answered] = [0, 1, 2].map(|i| agent.counters[i].1);
    assert!(
        forwarded > 300 && duplicated > 50 && answered == 1,
        "{agent:?}"
    );
    // A permanently held packet is accounted for and does not extend the run.
    assert!(agent.holdings.packets <= 1);
    assert!(outcome.ended < Time::ZERO + Span::from_secs(20));
    let series = &outcome.series[0];
    assert_eq!((&series.name[..], series.unit), ("middle.held", "packets"));
    let highest = series.values.iter().copied().fold(0.0, f64::max);
    assert!(highest >= 1.0 && series.times_ns.is_sorted());
}

#[test]
fn a_middlebox_that_leaks_a_packet_or_a_stream_is_reported() {
    let delay = Span::from_secs(1_000);
    let mut lies = network(
        Middle {
            delay,
            lies: true,
            ..Middle::default()
        },
        1,
        0.0,
    );
    lies.run_until(Time::ZERO + Span::from_secs(1));
    let found = lies.violations();
    assert!(matches!(found[..], [Violation::Store { .. }]), "{found:?}");
    let check = StreamCheck {
        ranges: 9,
        mismatches: 1,
    };
    let mut mixes = network(
        Middle {
            check,
            ..Middle::default()
        },
        1,
        0.0,
    );
    mixes.run_until(Time::ZERO + Span::from_secs(1));
    let found = mixes.violations();
    let name = "middle".to_owned();
    assert_eq!(found, [Violation::Agent { name, check }]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whenever the run is paused, and under any losses, every packet is accounted for. At the end
    /// all sent data have been delivered.
    #[test]
    fn everything_is_accounted_for(
        delay in 0_u64..400,
        flows in 1_usize..6,
        loss in 0.0_f64..0.1,
        looks in prop::collection::vec(1_u64..3_000, 1..8),
    ) {
        let delay = Span::from_millis(delay);
        let mut network = network(Middle { delay, ..Middle::default() }, flows, loss);
        let mut now = Time::ZERO;
        for look in looks {
            now += Span::from_millis(look);
            network.run_until(now);
            prop_assert_eq!(network.violations(), []);
        }
        network.run_until(now + LATER);
        prop_assert_eq!(network.violations(), []);
        for flow in network.outcome().flows {
            prop_assert_eq!(flow.state, FlowState::Finished);
            prop_assert_eq!(flow.bytes_delivered(), 200_000);
        }
    }
}
