//! Applications in a scenario file: valid and refused keys, and results.

use bentpipe_scenario::{RunOptions, Scenario};
use serde_json::Value;

use crate::runs::run_text;

/// Returns a scenario with server and browser over a satellite of 50 Mbit/s and 600 ms, and a flow
/// of this application.
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

/// A source finishes with its last packet, and its flow when that has arrived or would have
/// arrived: no flow is faster than its link.
#[test]
fn a_flow_finishes_with_its_last_packet() {
    for app in [
        r#"{ kind = "packets", size = "972 B", interval = "10 ms", lasts = "4 s" }"#,
        r#"{ kind = "packets", transport = "tcp", size = "1 kB", interval = "10 ms", lasts = "4 s" }"#,
        r#"{ kind = "carousel", size = "100 kB", rate = "800 kbit/s", files = 4 }"#,
    ] {
        let run = |duration: &str| {
            let scenario = Scenario::parse(
                &file(app),
                "page.toml",
                &[
                    ("links.satellite.rate", "100 kbit/s"),
                    ("links.satellite.queue.limit", "1000 packets"),
                    ("duration", duration),
                ],
            );
            let output = scenario.expect("it is right").run(&RunOptions::default());
            output.expect("it runs").summary.flows[0].clone()
        };
        // 400 packets of 1 kB take 32 s on the link, and four files of 100 kB a little more.
        let flow = run("200 s");
        let finish_s = flow.finish_s.expect("it finishes");
        assert!((32.0..37.0).contains(&finish_s), "{app}: {finish_s}");
        assert!(flow.goodput_bps < 100e3, "{app}: {}", flow.goodput_bps);
        // Written packets that are still in transit are missing; datagrams may be lost.
        let cut = run("10 s");
        assert!(cut.goodput_bps < 100e3, "{app}: {}", cut.goodput_bps);
        assert_eq!(cut.finish_s.is_some(), !app.contains("tcp"), "{app}");
    }
}

#[test]
fn inconsistent_applications_are_refused_with_a_suggestion() {
    for (app, message) in [
        (
            r#"{ kind = "bulk", pages = 3 }"#,
            r#"pages: has no effect: a "bulk" application has size, direction, transfers, pause, transport"#,
        ),
        // A key of another kind is refused for any value.
        (
            r#"{ kind = "bulk", codec = "g7" }"#,
            r#"codec: has no effect: a "bulk" application has size, direction, transfers, pause, transport"#,
        ),
        (
            r#"{ kind = "bulk", version = 3 }"#,
            r#"version: unknown key; a "bulk" application has size, direction, transfers, pause, transport"#,
        ),
        (
            r#"{ kind = "bulk", transfer = 3 }"#,
            r#"transfer: unknown key; did you mean "transfers"?"#,
        ),
        (
            r#"{ kind = "bluk", codec = "g7" }"#,
            r#"kind: expected one of"#,
        ),
        (
            r#"{ kind = "bulk", size = "exponential(1 MB)" }"#,
            r#"size: expected one size such as "64 KiB", not a random one: a bulk transfer's"#,
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
            r#"size: expected at most "65507 B", the size of a datagram, got "100 kB""#,
        ),
        (
            r#"{ kind = "ping", size = "65508 B" }"#,
            r#"size: expected at most "65507 B", the size of a datagram, got "65508 B""#,
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
    // TCP, TLS, document, objects: four round trips of 0.6 s; later pages reuse the connection.
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
fn responses_and_packets_are_in_the_results() {
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
fn bulk_transfers_work_in_both_directions() {
    let down = flow(r#"{ kind = "bulk", size = "1 MB", direction = "download" }"#);
    let both = flow(r#"{ kind = "bulk", size = "1 MB", direction = "both" }"#);
    let twice = flow(r#"{ kind = "bulk", size = "1 MB", transfers = 2, pause = "3 s" }"#);
    for (flow, bytes) in [(&down, 1_000_000), (&both, 2_000_000), (&twice, 2_000_000)] {
        assert_eq!(flow["outcome"], "finished");
        assert_eq!(flow["bytes_delivered"], bytes);
        assert!(flow["segments_sent"].as_u64() >= Some(690), "{flow}");
        // Metrics of other applications are absent.
        assert!(flow.get("pages").is_none() && flow.get("responses").is_none());
    }
}

#[test]
fn a_resolved_application_has_all_its_settings() {
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

/// Returns a scenario with a server and users over a satellite, and these tables.
fn users(tables: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
name = "office"
duration = "300 s"
seed = 7
[hosts.server]
[hosts.users]
count = 12
[hosts.one]
[gateways.hub]
[links.lan]
between = ["users", "hub"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.own]
between = ["one", "hub"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.satellite]
between = ["hub", "server"]
rate = "50 Mbit/s"
delay = "250 ms"
{tables}
"#
    );
    Scenario::parse(&text, "office.toml", &[]).map_err(|error| error.to_string())
}

fn summary(scenario: &Scenario) -> Value {
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    serde_json::to_value(&output.summary).expect("it is JSON")
}

#[test]
fn users_follow_their_mix_and_have_summaries() {
    let scenario = users(
        r#"
[mixes.office]
web = { share = 0.7, app = { kind = "web", page = "3gpp" } }
mail = 0.2
voice = 0.1
pause = "exponential(5 s)"
[flows.office]
from = "users"
to = "server"
mix = "office"
spacing = "exponential(1 s)"
"#,
    );
    let json = summary(&scenario.expect("it is understood"));
    let flows = json["flows"].as_array().expect("flows");
    let names: Vec<_> = flows
        .iter()
        .filter_map(|flow| flow["name"].as_str())
        .collect();
    assert_eq!(
        (names.len(), names[0], names[11]),
        (12, "office-1", "office-12")
    );
    let starts: Vec<_> = flows
        .iter()
        .filter_map(|flow| flow["start_s"].as_f64())
        .collect();
    assert!(
        starts.is_sorted() && starts[0] > 0.0 && starts[11] > 3.0,
        "{starts:?}"
    );
    let group = &json["groups"][0];
    assert_eq!(
        (&group["name"], &group["flows"]),
        (&"office".into(), &12.into())
    );
    let sum = |of: &dyn Fn(&Value) -> u64| flows.iter().map(of).sum::<u64>();
    let pages = sum(&|flow| flow["pages"].as_array().map_or(0, Vec::len) as u64);
    assert_eq!(group["pages_loaded"], pages);
    assert!(pages > 100, "{pages}");
    assert_eq!(
        group["bytes_delivered"],
        sum(&|flow| flow["bytes_delivered"].as_u64().unwrap_or(0))
    );
    let percentiles = group["page_load_ms"]["percentiles"]
        .as_array()
        .expect("of a group");
    assert_eq!(percentiles.len(), 101);
    for (activity, share) in group["activities"]
        .as_array()
        .expect("a mix")
        .iter()
        .zip([0.7, 0.2, 0.1])
    {
        assert_eq!(activity["failed"], 0, "{activity}");
        assert!(
            activity["begun"].as_f64() > Some(share * 100.0),
            "{activity}"
        );
    }
    assert!(group["call_mos"]["mean"].as_f64() > Some(3.5));
}

#[test]
fn flow_starts_form_a_poisson_process_that_depends_on_the_seed() {
    let scenario = users(
        r#"
[flows.asks]
from = "one"
to = "server"
count = 400
spacing = "exponential(500 ms)"
start = "10 s"
app = { kind = "ping", requests = 1 }
"#,
    );
    let scenario = scenario.expect("it is understood");
    let starts = |seed| {
        let options = RunOptions {
            seed: Some(seed),
            ..RunOptions::default()
        };
        let output = scenario.run(&options).expect("it runs");
        let flows = output.summary.flows.iter();
        flows.map(|flow| flow.start_s).collect::<Vec<_>>()
    };
    let (one, other) = (starts(1), starts(2));
    assert_ne!(one, other);
    assert_eq!(one, starts(1));
    let mut gaps: Vec<f64> = one.windows(2).map(|two| two[1] - two[0]).collect();
    gaps.push(one[0] - 10.0);
    assert!(gaps.iter().all(|gap| *gap >= 0.0));
    // 400 gaps: the mean is within four standard deviations of 0.5 s, and the variance is that of
    // an exponential.
    let mean = gaps.iter().sum::<f64>() / 400.0;
    assert!((mean - 0.5).abs() < 0.1, "{mean}");
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 400.0;
    assert!((0.15..0.4).contains(&variance), "{variance}");
}

#[test]
fn random_starts_differ_between_flows_and_seeds() {
    let asks = |start: &str| {
        users(&format!(
            r#"
[flows.asks]
from = "one"
to = "server"
count = 400
start = "{start}"
app = {{ kind = "ping", requests = 1 }}
"#
        ))
    };
    let starts = |start: &str, seed| {
        let options = RunOptions {
            seed: Some(seed),
            ..RunOptions::default()
        };
        let scenario = asks(start).expect("it is understood");
        let output = scenario.run(&options).expect("it runs");
        let flows = output.summary.flows.iter();
        flows.map(|flow| flow.start_s).collect::<Vec<_>>()
    };
    let (one, other) = (
        starts("uniform(2 s, 4 s)", 1),
        starts("uniform(2 s, 4 s)", 2),
    );
    assert_ne!(one, other);
    assert_eq!(one, starts("uniform(2 s, 4 s)", 1));
    assert!(one.iter().all(|start| (2.0..4.0).contains(start)));
    // The mean of 400 draws is within four standard deviations: 2 / sqrt(12 * 400).
    let mean = one.iter().sum::<f64>() / 400.0;
    assert!((mean - 3.0).abs() < 0.12, "{mean}");
    assert_ne!(one[0], one[1]);
    assert_eq!(starts("1 s", 1), vec![1.0; 400]);
    let late = asks("exponential(1 h)").expect_err("it is over by then");
    assert!(
        late.to_string()
            .contains("flows.asks.start: expected before the end"),
        "{late}"
    );
}

#[test]
fn inconsistent_mixes_are_refused() {
    let flow = |keys: &str| format!("[flows.f]\nfrom = \"users\"\nto = \"server\"\n{keys}\n");
    let ping = r#"app = { kind = "ping" }"#;
    for (tables, message) in [
        (
            flow(r#"mix = "offce""#) + "[mixes.office]\nweb = 1\n",
            r#"flows.f.mix: no mix is named "offce"; did you mean "office"?"#,
        ),
        (
            flow(r#"mix = "office""#),
            "flows.f.mix: no mix is named \"office\"; expected a table such as [mixes.office]",
        ),
        (
            flow(""),
            "flows.f.app: missing; expected an application such as",
        ),
        (
            flow(&format!("{ping}\nmix = \"m\"")) + "[mixes.m]\nweb = 1\n",
            "flows.f.mix: has no effect: `app` sets the application of the flow",
        ),
        (
            flow(&format!("{ping}\ncount = 3")),
            "flows.f.count: expected none: the hosts of one of its ends have a count",
        ),
        (
            flow(ping) + "[mixes.m]\nwebb = 1\n",
            r#"mixes.m.webb: no application is named "webb"; did you mean "web"?"#,
        ),
        (
            flow(ping) + "[mixes.m]\nweb = 0\n",
            "mixes.m.web: expected a share above 0, got 0.0",
        ),
        (
            flow(ping) + "[mixes.m]\nweb = \"often\"\n",
            r#"mixes.m.web: expected a share such as 0.7, or { share = 0.7, app = { ... } }, got "often""#,
        ),
        (
            flow(ping) + "[mixes.m]\nbulk = 1\n",
            "mixes.m.bulk.app.size: missing; expected one: activities of users must end",
        ),
        (
            flow(ping) + "[mixes.m]\n",
            "mixes.m: expected 1 to 32 applications and their shares: web = 0.7",
        ),
        (
            flow(ping)
                + "[mixes.m]\nvoice = 1\nradio = { share = 1, app = { kind = \"voice\" } }\n",
            r#"mixes.m.radio: expected one application over UDP or ICMP of its kind, and there is "voice""#,
        ),
    ] {
        let error = users(&tables).err().unwrap_or_default();
        assert!(error.contains(message), "{tables}\n{error}\n{message}");
    }
    // All keys of this kind are listed, so the number of keys of all kinds is not mentioned.
    let error = scenario(r#"{ kind = "bulk", version = 3 }"#).err();
    assert!(error.is_some_and(|error| error.ends_with("direction, transfers, pause, transport")));
}

#[test]
fn services_are_in_the_results() {
    let ftp = flow(r#"{ kind = "ftp", mode = "active", size = "1 MB", files = 2 }"#);
    assert_eq!(
        (&ftp["outcome"], &ftp["files"]["count"]),
        (&"finished".into(), &2.into())
    );
    let mail = flow(r#"{ kind = "mail", mails = 2, pause = "1 s", pipelining = true }"#);
    assert_eq!(
        (&mail["outcome"], &mail["mails"]["count"]),
        (&"finished".into(), &2.into())
    );
    let ping = flow(r#"{ kind = "ping", protocol = "udp", requests = 5 }"#);
    assert_eq!(
        (&ping["outcome"], &ping["echoes"]["count"]),
        (&"finished".into(), &5.into())
    );
    let rtt = ping["echoes"]["time_ms"]["max"].as_f64().expect("a number");
    assert!((600.0..600.1).contains(&rtt), "{rtt}");
    let voice =
        flow(r#"{ kind = "voice", codec = "g729", lasts = "10 s", calls = 2, pause = "1 s" }"#);
    let calls = voice["calls"].as_array().expect("calls");
    assert_eq!((&voice["outcome"], calls.len()), (&"finished".into(), 2));
    // 93.2 - 11, and for a delay of 385 ms: 5.68 for talker echo, 1.21 for listener echo, of which
    // 0.15 are in the 93.2, and 22.87 for the delay itself (G.107 equations 7-18 to 7-28, computed
    // independently of this code).
    let rating = calls[0]["back"]["rating"].as_f64().expect("a number");
    assert!((rating - 52.59).abs() < 0.1, "{rating}");
    let video = flow(r#"{ kind = "video", lasts = "60 s" }"#);
    assert_eq!(
        (&video["outcome"], &video["video"]["segments"]),
        (&"finished".into(), &15.into())
    );
    assert_eq!(video["video"]["played_s"], 60.0);
    for (app, message) in [
        (
            r#"{ kind = "ftp", direction = "both" }"#,
            r#"direction: expected "download" or "upload": a file has one direction"#,
        ),
        (
            r#"{ kind = "voice", calls = 3 }"#,
            "calls: has no effect: a call without a length (lasts) has no end",
        ),
        (
            r#"{ kind = "voice", packet = "1 s" }"#,
            r#"packet: expected "10 ms" to "200 ms", got "1 s""#,
        ),
        (
            r#"{ kind = "video", ladder = ["2 Mbit/s", "1 Mbit/s"] }"#,
            "ladder: expected 1 to 32 rates, each above the one before it",
        ),
        (
            r#"{ kind = "ping", interval = "exponential(1 s)" }"#,
            r#"interval: expected one length of time such as "250 ms", not a random one"#,
        ),
    ] {
        let error = scenario(app).err().unwrap_or_default();
        assert!(error.contains(message), "{app}:\n{error}\n{message}");
    }
}

/// Each user needs up to 256 of 60,000 local ports: they share them.
#[test]
fn a_thousand_users_of_a_mix_share_a_host() {
    let text = r#"
        name = "thousand"
        duration = "3 s"
        hosts = { users = {}, server = {} }
        links.l = { between = ["users", "server"], rate = "500 Mbit/s", delay = "50 ms" }
        mixes.office = { web = 0.7, mail = 0.2, voice = 0.1 }
        flows.office = { from = "users", to = "server", mix = "office", count = 1000, spacing = "1 ms" }
    "#;
    let output = run_text(text, &[]);
    assert_eq!(output.summary.flows.len(), 1000);
    let busy = output
        .summary
        .flows
        .iter()
        .filter(|f| f.bytes_delivered > 0);
    assert!(busy.count() > 990);
}

/// The flows of a server share its port; retransmissions must be counted for the right flow.
#[test]
fn server_retransmissions_are_counted_for_the_right_flow() {
    let text = r#"
name = "shared"
duration = "60 s"
seed = 1
[hosts.server]
[hosts.browser]
count = 3
[gateways.hub]
[links.satellite]
between = ["server", "hub"]
rate = "20 Mbit/s"
delay = "50 ms"
forward = { errors = { packet_loss_rate = 0.01 } }
[links.home]
between = ["hub", "browser"]
rate = "20 Mbit/s"
delay = "1 ms"
[flows.ask]
from = "browser"
to = "server"
app = { kind = "request-response", request = "100 B", response = "500 kB", pause = "1 s" }
[probes]
series = ["ask.retransmitted", "ask.sent_segment"]
interval = "every-change"
"#;
    let output = run_text(text, &[]);
    assert_eq!(output.summary.flows.len(), 3);
    for flow in &output.summary.flows {
        let told = |quantity: &str| {
            let name = format!("{}.{quantity}", flow.name);
            let series = output.series.iter().find(|series| series.name == name);
            series.expect("it was asked for").values.len() as u64
        };
        assert!(flow.segments_retransmitted > 20, "{}", flow.name);
        assert_eq!(told("retransmitted"), flow.segments_retransmitted);
        assert!(told("sent_segment") <= flow.segments_sent);
    }
}
