//! A node of one's own between two hosts: it drops one data segment in a hundred.

use bentpipe_link::{DropTail, Limit, Settings};
use bentpipe_sim::{FlowSettings, FlowState, LinkSettings, NetworkBuilder, Traffic};
use bentpipe_tcp::Config;
use bentpipe_types::{Agent, BitRate, Ctx, DropReason, PacketRef, Port, Routes, Span, Time};

/// Forwards packets, and drops one data segment in a hundred.
#[derive(Debug, Default)]
struct Dropper {
    routes: Routes,
    segments: u64,
    dropped: u64,
}

impl Agent for Dropper {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, _from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let record = cx.packets.get(packet);
        let (length, destination) = (record.payload_length, record.destination.address);
        self.segments += u64::from(length > 0);
        if length > 0 && self.segments.is_multiple_of(100) {
            self.dropped += 1;
            cx.discard(packet, DropReason::Busy);
        } else if let Some(port) = self.routes.port_towards(destination) {
            cx.emit(port, packet);
        } else {
            cx.discard(packet, DropReason::NoRoute);
        }
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("dropped", self.dropped);
    }
}

fn link(name: &str, delay: Span) -> LinkSettings {
    let direction = || {
        Settings::new(
            BitRate::new(5_000_000).expect("not zero"),
            delay,
            DropTail {
                limit: Limit::Packets(1_000),
            },
        )
    };
    LinkSettings {
        name: name.to_owned(),
        forward: Some(direction()),
        backward: Some(direction()),
    }
}

fn main() {
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let dropper = builder.custom("dropper", Box::<Dropper>::default());
    let client = builder.host("client");
    builder.link(server, dropper, link("lan", Span::from_millis(1)));
    builder.link(dropper, client, link("satellite", Span::from_millis(250)));
    builder.flow(FlowSettings {
        name: "download".to_owned(),
        from: server,
        to: client,
        start: Span::ZERO,
        application: Traffic::bulk(Some(1_000_000)),
        sender: Config::default().into(),
        receiver: Config::default().into(),
    });
    let mut network = builder.build().expect("the topology is valid");
    network.run_until(Time::ZERO + Span::from_secs(120));
    let outcome = network.outcome();
    let (flow, node) = (&outcome.flows[0], &outcome.agents[0]);
    println!("{}: {:?}, {:?}", flow.name, flow.state, node.counters);
    assert_eq!(flow.state, FlowState::Finished);
    assert_eq!(flow.bytes_delivered(), 1_000_000);
    assert!(node.counters[0].1 >= 6);
    assert_eq!(network.violations(), []);
}

#[test]
fn it_runs() {
    main();
}
