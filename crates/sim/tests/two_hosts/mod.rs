//! Two hosts and a link, for tests of applications.

use bentpipe_link::{DropTail, ErrorModel, Limit, Settings};
use bentpipe_sim::{FlowSettings, LinkSettings, Network, NetworkBuilder, Outcome, Traffic};
use bentpipe_tcp::{Config, SlowStartKind};
use bentpipe_types::{BitRate, RandomStream, Span, Time};

#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) rate: u64,
    pub(crate) delay: Span,
    pub(crate) loss: f64,
    pub(crate) seed: u64,
}

pub(crate) const IDLE: Path = Path {
    rate: 100_000_000_000,
    delay: Span::from_millis(300),
    loss: 0.0,
    seed: 1,
};

/// left - right, with these flows from left to right.
fn network(path: Path, flows: &[(&str, Traffic)]) -> Network {
    let mut builder = NetworkBuilder::new(path.seed);
    let left = builder.host("left");
    let right = builder.host("right");
    let way = |way: &str| {
        let luck = RandomStream::new(path.seed, way, "errors");
        BitRate::new(path.rate).map(|rate| Settings {
            errors: vec![ErrorModel::packet_loss(path.loss, luck)],
            ..Settings::new(
                rate,
                path.delay,
                DropTail {
                    limit: Limit::Packets(1_000_000),
                },
            )
        })
    };
    let link = LinkSettings {
        name: "link".to_owned(),
        forward: way("forward"),
        backward: way("return"),
    };
    builder.link(left, right, link);
    let config = Config {
        delayed_ack: None,
        initial_window: 10,
        mss: 1448,
        slow_start: SlowStartKind::Standard,
        ..Config::default()
    };
    for (name, traffic) in flows {
        builder.flow(FlowSettings {
            name: (*name).to_owned(),
            from: left,
            to: right,
            start: Span::ZERO,
            application: traffic.clone(),
            sender: config.clone().into(),
            receiver: config.clone().into(),
        });
    }
    builder.build().expect("it fits together")
}

pub(crate) fn run(path: Path, flows: &[(&str, Traffic)], seconds: u64) -> Outcome {
    let mut network = network(path, flows);
    network.run_until(Time::ZERO + Span::from_secs(seconds));
    assert_eq!(network.violations(), []);
    network.outcome()
}
