//! Every congestion control and every queue in the tables runs, given its name alone.

use bentpipe_scenario::schema::QueueKind;
use bentpipe_scenario::{RunOptions, Scenario, WindowRule};

/// Runs 100 kB through 1 Mbit/s, with a backlog larger than the queue. A debug build checks at the
/// end of every run that each packet offered to a link is accounted for.
fn completes(tcp: &str, queue: &str) {
    let text = format!(
        r#"
        name = "one-of-each"
        duration = "60 s"
        hosts = {{ server = {{ tcp = {{ {tcp} }} }}, client = {{}} }}
        [links.satellite]
        between = ["server", "client"]
        rate = "1 Mbit/s"
        delay = "100 ms"
        queue = {{ limit = "8 packets", {queue} }}
        [classes.bulk]
        flows = ["download"]
        [flows.download]
        from = "server"
        to = "client"
        app = {{ kind = "bulk", size = "100 kB" }}"#
    );
    let scenario = Scenario::parse(&text, "one-of-each.toml", &[]).expect("a sound file");
    let output = scenario.run(&RunOptions::default()).expect("a run");
    let flow = &output.summary.flows[0];
    assert_eq!(flow.bytes_delivered, 100_000, "{tcp} {queue}");
}

#[test]
fn every_window_rule_completes_a_transfer() {
    for rule in WindowRule::ALL {
        let more = match rule {
            WindowRule::EnhancedHybla => r#", channel_capacity = "1 Mbit/s""#,
            _ => "",
        };
        completes(&format!(r#"congestion_control = "{rule}"{more}"#), "");
    }
}

#[test]
fn every_queue_completes_a_transfer() {
    for kind in QueueKind::ALL {
        let more = match kind {
            QueueKind::Priority => r#", classes = ["bulk"]"#,
            QueueKind::Weighted => ", weights = { bulk = 2 }",
            _ => "",
        };
        completes("", &format!(r#"kind = "{kind}"{more}"#));
    }
}
