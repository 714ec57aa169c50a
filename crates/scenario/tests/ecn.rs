//! Explicit congestion notification (RFC 3168): RED marks, and drops nothing.

use bentpipe_scenario::FlowSummary;

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "ecn"
duration = "60 s"
[hosts.server.tcp]
congestion_control = "reno"
slow_start = "byte-counting"
initial_slow_start_threshold = "100 segments"
[hosts.client.tcp]
[links.satellite]
between = ["server", "client"]
rate = "10 Mbit/s"
delay = "50 ms"
forward = { queue = { kind = "red", limit = "1000 packets", minimum_threshold = "20 packets", maximum_threshold = "200 packets", ecn = true } }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
[probes]
series = ["satellite.forward.marked"]
interval = "1 s"
"#;

fn run(ecn: &str) -> (FlowSummary, u64) {
    let settings = [("hosts.server.tcp.ecn", ecn)];
    let output = run_text(NETWORK, &settings);
    let link = &output.summary.links[0];
    let counted = &link.counters.as_ref().expect("RED counts").total["marked"];
    let recorded = output.series[0].values.last().copied();
    assert_eq!(recorded, Some(*counted as f64));
    (output.summary.flows[0].clone(), link.packets_dropped)
}

#[test]
fn red_marks_ecn_capable_flows_and_drops_others() {
    let (marked, none) = run("request");
    let (dropped, some) = run("accept");
    assert_eq!((none, marked.segments_retransmitted), (0, 0));
    assert!(some > 0 && dropped.segments_retransmitted >= some);
    // Both have a sawtooth window, and nearly fill the link.
    for flow in [&marked, &dropped] {
        assert!(flow.goodput_bps > 8.5e6, "{}", flow.goodput_bps);
    }
    // A long queue would add up to 1.2 s.
    let longest = marked.rtt_ms.max.expect("samples");
    assert!(longest < 500.0, "{longest} ms");
}
