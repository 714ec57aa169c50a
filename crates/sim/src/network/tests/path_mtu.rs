//! Tests of links with an MTU, and of routers that report it or not.

use bentpipe_tcp::{PathMtuDiscovery, Statistics};
use bentpipe_types::DropReason;

use super::*;

const RATE: u64 = 10_000_000;

/// server -- hub --1000 B-- terminal -- client, 80 ms each way. The return link from the terminal
/// loses this share of packets, ICMP errors of the hub included.
fn narrow(discovery: PathMtuDiscovery, silent: bool, loss: f64, mtu: u32) -> Network {
    let mut builder = NetworkBuilder::new(7);
    let server = builder.host("server");
    let hub = builder.router("hub");
    let terminal = builder.router("terminal");
    let client = builder.host("client");
    let clean = |ms| direction(RATE, Span::from_millis(ms), PLENTY, vec![]);
    let lossy = ErrorModel::packet_loss(loss, RandomStream::new(7, "lan.return", "errors"));
    let back = direction(RATE, Span::from_millis(10), PLENTY, vec![lossy]);
    builder.link(server, hub, duplex("lan", clean(10), back));
    let ports = builder.link(hub, terminal, duplex("satellite", clean(60), clean(60)));
    builder.limit(hub, ports[0], mtu);
    builder.limit(terminal, ports[1], mtu);
    builder.link(terminal, client, duplex("home", clean(10), clean(10)));
    if silent {
        builder.silence(hub);
        builder.silence(terminal);
    }
    let mut flow = bulk("download", server, client, Some(1_000_000));
    Arc::make_mut(&mut flow.sender).path_mtu_discovery = discovery;
    builder.flow(flow);
    builder.build().expect("it fits together")
}

fn sender(outcome: &Outcome) -> &Statistics {
    outcome.flows[0].sender.as_ref().expect("it has begun")
}

#[test]
fn a_router_reports_the_mtu_of_the_next_link() {
    let outcome = run(narrow(PathMtuDiscovery::Icmp, false, 0.0, 1000), 60);
    assert_eq!(outcome.flows[0].bytes_delivered(), 1_000_000);
    // All segments of the initial window are too long, and none after it.
    assert_eq!(outcome.discards.of(DropReason::TooBig), 10);
    let sent = sender(&outcome);
    assert_eq!((sent.icmp_errors, sent.path_mtu_reductions), (10, 1));
    assert_eq!((sent.timeouts, sent.fast_recoveries), (0, 0));
    // The cost is a round trip to the hub, and the headers of shorter segments: 1,000,000 bytes in
    // segments of 948 instead of 1448.
    let plain = run(narrow(PathMtuDiscovery::Icmp, false, 0.0, 1500), 60);
    assert_eq!(sender(&plain).icmp_errors, 0);
    let finish = |outcome: &Outcome| outcome.flows[0].finish.expect("it is over");
    let longer = finish(&outcome).since(finish(&plain)).as_millis_f64();
    assert!((20.0..400.0).contains(&longer), "{longer} ms longer");
}

#[test]
fn icmp_errors_of_routers_are_subject_to_loss() {
    let outcome = run(narrow(PathMtuDiscovery::Icmp, false, 0.3, 1000), 2_000);
    assert_eq!(outcome.flows[0].bytes_delivered(), 1_000_000);
    let said = outcome.discards.of(DropReason::TooBig);
    let sent = sender(&outcome);
    assert!(sent.icmp_errors < said, "{said} were said");
    assert_eq!(sent.path_mtu_reductions, 1);
}

#[test]
fn a_black_hole_stops_the_transfer_without_black_hole_detection() {
    let outcome = run(narrow(PathMtuDiscovery::Icmp, true, 0.0, 1000), 60);
    assert_eq!(outcome.flows[0].bytes_delivered(), 0);
    assert_eq!(sender(&outcome).icmp_errors, 0);
    let outcome = run(narrow(PathMtuDiscovery::BlackHole, true, 0.0, 1200), 60);
    assert_eq!(outcome.flows[0].bytes_delivered(), 1_000_000);
    let outcome = run(narrow(PathMtuDiscovery::Probe, true, 0.0, 1300), 60);
    assert_eq!(outcome.flows[0].bytes_delivered(), 1_000_000);
    assert_eq!(sender(&outcome).timeouts, 0);
    assert!(sender(&outcome).path_mtu_probes > 3);
}
