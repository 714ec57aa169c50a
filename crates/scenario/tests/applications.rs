//! Applications in a scenario file: what is understood, what is refused and how, and what comes out.

use bentpipe_scenario::{RunOptions, Scenario};
use serde_json::Value;

/// server and browser over a satellite of 50 Mbit/s and 600 ms, and a flow of this application.
fn file(app: &str) -> String {
    format!(
        r#"
name = "page"
duration = "200 s"
seed = 1
[hosts.server]
[hosts.browser]
[links.satellite]
between = ["server", "browser"]
rate = "50 Mbit/s"
delay = "300 ms"
[flows.office]
from = "browser"
to = "server"
app = {app}
"#
    )
}

fn scenario(app: &str) -> Result<Scenario, String> {
    Scenario::parse(&file(app), "page.toml", &[]).map_err(|error| error.to_string())
}

fn flow(app: &str) -> Value {
    let scenario = scenario(app).expect("it is understood");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    let summary = serde_json::to_value(&output.summary).expect("it is JSON");
    summary["flows"][0].clone()
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    for (app, message) in [
        (
            r#"{ kind = "bulk", pages = 3 }"#,
            r#"pages: has no effect: a "bulk" application has size, direction, transfers, pause"#,
        ),
        (
            r#"{ kind = "bulk", size = "exponential(1 MB)" }"#,
            "size: expected one size, not a random one: a bulk transfer's",
        ),
        (
            r#"{ kind = "bulk", transfers = 3 }"#,
            "transfers: has no effect: a transfer without a size has no end",
        ),
        (
            r#"{ kind = "bulk", size = "1 MB", pause = "1 s" }"#,
            "pause: has no effect: there is one transfer",
        ),
        (
            r#"{ kind = "bulk", direction = "up" }"#,
            r#"direction: expected one of "upload", "download", "both", got "up""#,
        ),
        (
            r#"{ kind = "request-response" }"#,
            r#"response: missing; expected a size such as "10 kB""#,
        ),
        (
            r#"{ kind = "packets", interval = "20 ms" }"#,
            r#"size: missing; expected a size such as "exponential(1000 B)""#,
        ),
        (
            r#"{ kind = "packets", size = "1 kB", interval = "0 s" }"#,
            r#"interval: expected at least "1 us" on average, got "0 s""#,
        ),
        (
            r#"{ kind = "packets", size = "1 kB", interval = "1 s", on = "1 s" }"#,
            "off: missing; expected with `on` also how long it is off",
        ),
        (
            r#"{ kind = "packets", size = "100 kB", interval = "1 s" }"#,
            r#"size: expected at most "65507 B", what a datagram holds, got "100 kB""#,
        ),
        (
            r#"{ kind = "packets", size = "gamma(1 kB)", interval = "1 s" }"#,
            "size: expected exponential(MEAN), uniform(LOW, HIGH) or pareto(MEAN, SHAPE), got \"gamma(1 kB)\"",
        ),
        (
            r#"{ kind = "web", objects = 3 }"#,
            r#"objects: has no effect: page = "web-almanac", not "fixed""#,
        ),
        (
            r#"{ kind = "web", tls = "off", resumption = true }"#,
            r#"resumption: has no effect: there is no TLS (tls = "off")"#,
        ),
        (
            r#"{ kind = "web", levels = 0 }"#,
            "levels: expected 1 to 100, got 0",
        ),
        (
            r#"{ kind = "web", pages = 0 }"#,
            "pages: expected at least 1, got 0",
        ),
    ] {
        let error = scenario(app).err().unwrap_or_default();
        let expected = format!("flows.office.app.{message}");
        assert!(error.contains(&expected), "{app}:\n{error}\n{expected}");
    }
}

#[test]
fn pages_are_in_the_results() {
    let flow = flow(
        r#"{ kind = "web", page = "fixed", document = "10 kB", objects = 4, object_size = "1 kB", levels = 1, reading = "5 s", pages = 3 }"#,
    );
    assert_eq!(flow["outcome"], "finished");
    let pages = flow["pages"].as_array().expect("pages");
    assert_eq!((pages.len(), &flow["navigations"]), (3, &Value::from(3)));
    // TCP, TLS, document, objects: four round trips of 0.6 s; the next pages have their connection.
    for (page, rounds) in pages.iter().zip([4.0, 2.0, 2.0]) {
        let load = page["load_s"].as_f64().expect("a number");
        assert!((load - 0.6 * rounds).abs() < 0.02, "{page}");
        assert_eq!(
            (&page["objects"], &page["bytes"]),
            (&5.into(), &14_000.into())
        );
    }
    let median = flow["page_load_ms"]["p50"].as_f64().expect("a number");
    assert!((median - 1_200.0).abs() < 20.0);
    assert!(flow["first_byte_ms"]["max"].as_f64() > flow["first_byte_ms"]["min"].as_f64());
}

#[test]
fn answers_and_packets_are_in_the_results() {
    let asked = flow(
        r#"{ kind = "request-response", request = "uniform(100 B, 300 B)", response = "2 kB", think = "50 ms", pause = "exponential(1 s)", requests = 40 }"#,
    );
    assert_eq!(asked["outcome"], "finished");
    let responses = &asked["responses"];
    assert_eq!(
        (&responses["requests"], &responses["count"]),
        (&40.into(), &40.into())
    );
    let median = responses["time_ms"]["p50"].as_f64().expect("a number");
    assert!((median - 650.0).abs() < 2.0, "{median}");
    for transport in ["udp", "tcp"] {
        let sent = flow(&format!(
            r#"{{ kind = "packets", transport = "{transport}", size = "exponential(500 B)", interval = "exponential(50 ms)", lasts = "100 s" }}"#
        ));
        assert_eq!(sent["outcome"], "finished", "{transport}");
        let messages = &sent["messages"];
        assert_eq!(messages["sent"], messages["received"]);
        assert_eq!(messages["bytes"], sent["bytes_delivered"]);
        let count = messages["sent"].as_u64().expect("a number");
        assert!((1_800..2_200).contains(&count), "{count}");
        let delay = messages["delay_ms"]["min"].as_f64().expect("a number");
        assert!((300.0..301.0).contains(&delay), "{delay}");
    }
}

#[test]
fn bulk_goes_either_way() {
    let down = flow(r#"{ kind = "bulk", size = "1 MB", direction = "download" }"#);
    let both = flow(r#"{ kind = "bulk", size = "1 MB", direction = "both" }"#);
    let twice = flow(r#"{ kind = "bulk", size = "1 MB", transfers = 2, pause = "3 s" }"#);
    for (flow, bytes) in [(&down, 1_000_000), (&both, 2_000_000), (&twice, 2_000_000)] {
        assert_eq!(flow["outcome"], "finished");
        assert_eq!(flow["bytes_delivered"], bytes);
        assert!(flow["segments_sent"].as_u64() >= Some(690), "{flow}");
        // What is not said is not there.
        assert!(flow.get("pages").is_none() && flow.get("responses").is_none());
    }
}

#[test]
fn a_resolved_application_says_all_of_itself() {
    for (app, kind, key) in [
        (r#"{ kind = "web" }"#, "web", "reading"),
        (
            r#"{ kind = "request-response", response = "1 kB" }"#,
            "request-response",
            "think_s",
        ),
        (
            r#"{ kind = "packets", size = "1 kB", interval = "1 s" }"#,
            "packets",
            "transport",
        ),
        (
            r#"{ kind = "bulk", direction = "both" }"#,
            "bulk",
            "direction",
        ),
    ] {
        let resolved = serde_json::to_value(scenario(app).expect(app)).expect("JSON");
        let app = &resolved["flows"][0]["app"];
        assert_eq!(app["kind"], kind);
        assert!(app.get(key).is_some(), "{app}");
    }
}
