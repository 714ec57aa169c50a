//! Queues that limit delay, with TCP: CoDel, FQ-CoDel, PIE.

use bentpipe_scenario::Summary;
use serde_json::Value;

use crate::runs::run_text;

/// Four downloads and a call share a satellite link of 10 Mbit/s.
const NETWORK: &str = r#"
name = "delays"
duration = "120 s"
seed = 3
[hosts]
server = {}
client = {}
[links.satellite]
between = ["server", "client"]
rate = "10 Mbit/s"
delay = "270 ms"
forward = { queue = { limit = "1000 packets" } }
[flows.download]
from = "server"
to = "client"
count = 4
app = { kind = "bulk" }
[flows.call]
from = "server"
to = "client"
app = { kind = "voice" }
"#;

fn run(queue: &str, settings: &[(&str, &str)]) -> Summary {
    let queue = format!(r#"{{ limit = "1000 packets", {queue} }}"#);
    let mut all = vec![("links.satellite.forward.queue", queue.as_str())];
    all.extend(settings);
    let output = run_text(NETWORK, &all);
    output.summary
}

/// Results of a run.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Total goodput of the downloads, in Mbit/s.
    goodput: f64,
    /// Mean round-trip time of a download, in ms.
    round_trip_ms: f64,
    /// Percentage of the call's packets that are lost or late at the receiver.
    call_missed: f64,
    retransmitted: u64,
    dropped: u64,
    marked: u64,
}

fn outcome(queue: &str, settings: &[(&str, &str)]) -> Outcome {
    let summary = run(queue, settings);
    let results = serde_json::to_value(&summary).expect("an object");
    let number = |value: &Value| value.as_f64().expect("a number");
    let flows = results["flows"].as_array().expect("flows");
    let downloads = || flows[..4].iter();
    let sum = |key: &str| downloads().map(|flow| number(&flow[key])).sum::<f64>();
    let call = &flows[4]["calls"][0]["there"];
    let missed = number(&call["lost"]) + number(&call["late"]);
    let forward = &results["links"][0];
    let counter = |name: &str| forward["counters"]["total"][name].as_u64().unwrap_or(0);
    let outcome = Outcome {
        goodput: sum("goodput_bps") / 1e6,
        round_trip_ms: number(&flows[0]["rtt_ms"]["mean"]),
        call_missed: 100.0 * missed / number(&call["packets"]),
        retransmitted: sum("segments_retransmitted") as u64,
        dropped: forward["packets_dropped"].as_u64().expect("a number"),
        marked: counter("marked"),
    };
    let by_reason = ["dropped_for_delay", "dropped_early", "dropped_at_limit"].map(counter);
    if counter("dropped_at_limit") + by_reason[0] + by_reason[1] > 0 {
        assert_eq!(by_reason.iter().sum::<u64>(), outcome.dropped);
    }
    println!("{queue:60} {outcome:?}");
    outcome
}

/// In one deep queue for all flows, the downloads fill it, and the call becomes unusable.
#[test]
fn flow_queueing_keeps_a_call_usable() {
    let deep = outcome("", &[]);
    assert!(deep.call_missed > 90.0 && deep.round_trip_ms > 1300.0);
    let codel = outcome(r#"kind = "codel""#, &[]);
    assert!(codel.call_missed < 2.0 && codel.round_trip_ms < 600.0);
    let flows = outcome(
        r#"kind = "fq-codel", target = "30 ms", interval = "600 ms""#,
        &[],
    );
    assert_eq!(flows.call_missed, 0.0);
    assert!(flows.round_trip_ms < 650.0 && flows.goodput > 8.0);
    let pie = outcome(r#"kind = "pie""#, &[]);
    assert!(pie.round_trip_ms < 600.0 && pie.call_missed < 10.0);
    assert!(pie.retransmitted >= pie.dropped * 9 / 10);
}

/// RFC 8289 section 4.3: the interval should be about a round trip. Over a satellite, Linux's 100
/// ms signal again before senders can have reacted, and reduce throughput.
#[test]
fn an_interval_is_about_a_round_trip() {
    for kind in [
        "codel",
        "fq-codel",
        "fq-codel\", ecn = true, quantum = \"1514 B",
    ] {
        let settings = [("hosts.server.tcp.ecn", "request")];
        let short = outcome(&format!(r#"kind = "{kind}""#), &settings);
        let fitting = r#"target = "30 ms", interval = "600 ms""#;
        let fitting = outcome(&format!(r#"kind = "{kind}", {fitting}"#), &settings);
        assert!(
            fitting.goodput > 1.05 * short.goodput,
            "{fitting:?} {short:?}"
        );
        assert!(fitting.round_trip_ms < 700.0);
    }
}

/// If both ends support ECN, no packet is dropped to limit the delay.
#[test]
fn marks_instead_of_drops() {
    let settings = [("hosts.server.tcp.ecn", "request")];
    let flows = outcome(
        r#"kind = "fq-codel", target = "30 ms", interval = "600 ms""#,
        &settings,
    );
    assert_eq!((flows.dropped, flows.retransmitted), (0, 0));
    assert!(flows.marked > 0 && flows.call_missed == 0.0);
    // The call's packets are not ECN-capable.
    let codel = outcome(
        r#"kind = "codel", ecn = true, target = "30 ms", interval = "600 ms""#,
        &settings,
    );
    assert_eq!(codel.retransmitted, 0);
    assert!(codel.marked > 50 && codel.dropped > 0 && codel.dropped < 20);
    let pie = outcome(r#"kind = "pie", ecn = true"#, &settings);
    assert!(pie.marked > 50 && pie.retransmitted > 0);
}
