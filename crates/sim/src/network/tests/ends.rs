//! Tests of how flows and runs end.

use std::sync::{Arc, Mutex};

use bentpipe_tcp::reset_reply;
use bentpipe_types::{Agent, Ctx, PacketRef, PacketStore, Port};

use super::*;
use crate::{End, FlowState, Tap};

/// server --10 Mbit/s, 280 ms--> client; the given packets that enter the link are lost.
fn lossy(lost: std::ops::Range<u64>) -> Network {
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let client = builder.host("client");
    let delay = Span::from_millis(280);
    let errors = vec![ErrorModel::listed_losses(lost)];
    let link = duplex(
        "satellite",
        direction(10_000_000, delay, PLENTY, errors),
        direction(1_000_000, delay, PLENTY, vec![]),
    );
    builder.link(server, client, link);
    builder.flow(bulk("download", server, client, Some(5_000_000)));
    builder.build().expect("it fits together")
}

/// Records when the last packet was sent.
struct LastSent(Arc<Mutex<Time>>);

impl Tap for LastSent {
    fn sent(&mut self, at: Time, _: PacketRef, _: &PacketStore) {
        *self.0.lock().expect("not poisoned") = at;
    }

    fn received(&mut self, _: Time, _: PacketRef, _: &PacketStore) {}
}

#[test]
fn a_run_ends_when_its_connection_gives_up() {
    let mut ends = Vec::new();
    let interval = Span::from_millis(100);
    for sampling in [None, Some(Sampling::Interval(interval))] {
        let mut network = lossy(100..1_000);
        if let Some(sampling) = sampling {
            let target = ProbeTarget::Flow(0, FlowQuantity::Goodput);
            let name = "download.goodput".to_owned();
            network.probe(vec![Probe { name, target }], sampling);
        }
        let last_sent = Arc::default();
        let tap = LastSent(Arc::clone(&last_sent));
        network.tap("satellite", End::First, Box::new(tap));
        let outcome = run(network, 7_200);
        let flow = &outcome.flows[0];
        assert_eq!(flow.state, FlowState::GaveUp);
        assert_eq!(flow.finish, None);
        assert_eq!(flow.ended, Some(outcome.ended));
        // RFC 6298 sections 5.5 and 5.7: the timeout doubles with each retransmission, up to 120 s;
        // the connection is given up one timeout after the last one.
        let last_sent = *last_sent.lock().expect("not poisoned");
        let waited = outcome.ended.since(last_sent);
        assert_eq!(waited, Config::default().maximum_rto, "{last_sent:?}");
        assert!(last_sent > Time::ZERO + Span::from_secs(600));
        // Utilisation is relative to the whole run, not to its first second.
        let busy = outcome.directions[0].utilization * outcome.ended.as_secs_f64();
        let bytes = outcome.directions[0].counters.delivered_bytes;
        assert!(busy > bytes as f64 * 8.0 / 10e6, "{busy} s for {bytes} B");
        ends.push(outcome.ended);
    }
    assert_eq!(ends[0], ends[1], "probes change nothing");
}

#[test]
fn a_transfer_finishes_at_delivery_even_if_its_last_acknowledgments_are_lost() {
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let client = builder.host("client");
    let way = |errors| direction(10_000_000, Span::from_millis(10), PLENTY, errors);
    // The client's SYN+ACK is delivered, and nothing after it.
    let link = duplex(
        "lan",
        way(vec![]),
        way(vec![ErrorModel::listed_losses(2..1_000)]),
    );
    builder.link(server, client, link);
    builder.flow(bulk("download", server, client, Some(10_000)));
    let outcome = run(builder.build().expect("it fits together"), 7_200);
    let flow = &outcome.flows[0];
    assert_eq!(flow.state, FlowState::Finished);
    assert_eq!(flow.ended, flow.finish);
    assert!(flow.finish < Some(Time::ZERO + Span::from_secs(1)));
    // The sender, which never learns of it, continues for a while.
    assert!(outcome.ended > Time::ZERO + Span::from_secs(60));
}

#[test]
fn flows_are_running_at_the_end_of_a_truncated_run() {
    let outcome = run(satellite(0.0, 1, Some(5_000_000)), 2);
    assert_eq!(outcome.flows[0].state, FlowState::Running);
    assert_eq!(outcome.flows[0].ended, None);
    assert_eq!(outcome.ended, Time::ZERO + Span::from_secs(2));
}

#[test]
fn a_transfer_is_over_before_time_wait_is() {
    let outcome = run(satellite(0.0, 1, Some(5_000_000)), 7_200);
    let flow = &outcome.flows[0];
    assert_eq!(flow.state, FlowState::Finished);
    let after = outcome.ended.since(flow.finish.expect("finished"));
    // FIN and its acknowledgment: two crossings.
    assert!(after < Span::from_secs(1), "{after:?}");
}

/// A firewall between two ports. It answers the `nth` packet from port 0 and later ones with RST,
/// and forwards the others.
struct Firewall {
    nth: u64,
    seen: u64,
}

impl Agent for Firewall {
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if from == Port(0) {
            self.seen += 1;
            if self.seen >= self.nth {
                reset_reply(packet, from, cx);
                return;
            }
        }
        cx.emit(Port(1 - from.0), packet);
    }

    fn on_deadline(&mut self, _: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

#[test]
fn refused_and_reset_connections_are_reported_as_such() {
    // The SYN is the first packet; data follow the two packets of the handshake.
    for (nth, expected) in [(1, FlowState::Refused), (5, FlowState::Reset)] {
        let mut builder = NetworkBuilder::new(1);
        let server = builder.host("server");
        let wall = builder.custom("wall", Box::new(Firewall { nth, seen: 0 }));
        let client = builder.host("client");
        let way = || direction(10_000_000, Span::from_millis(10), PLENTY, vec![]);
        builder.link(server, wall, duplex("outside", way(), way()));
        builder.link(wall, client, duplex("inside", way(), way()));
        builder.flow(bulk("download", server, client, Some(1_000_000)));
        let outcome = run(builder.build().expect("it fits together"), 7_200);
        let flow = &outcome.flows[0];
        assert_eq!(flow.state, expected);
        let ended = flow.ended.expect("it is over");
        assert!(ended <= outcome.ended && ended < Time::ZERO + Span::from_secs(1));
    }
}
