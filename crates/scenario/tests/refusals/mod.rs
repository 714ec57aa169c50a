//! Invalid files, and the exact message for each: one line with the place, the key, what was
//! expected and what was found.

mod gateways;
mod keys;
mod links;
mod network;
mod overrides;
mod tcp;
mod text;
mod values;

use bentpipe_scenario::Scenario;

/// A valid scenario, of which the tests change one thing.
const GEO: &str = r#"name = "geo"
duration = "20 s"
seed = 7

[hosts.server.tcp]
congestion_control = "reno"
recovery = "newreno"
mss = "1448 B"
[hosts.client]
count = 3
tcp = { receive_buffer = "1 MiB", delayed_ack = "40 ms" }
[gateways.hub]
kind = "router"

[links.satellite]
between = ["server", "hub"]
forward = { rate = "10 Mbit/s", delay = "280 ms", queue = { limit = "500 packets" } }
return = { rate = "64 kbit/s", delay = "200 ms" }
[links.access]
between = ["hub", "client"]
rate = "100 Mbit/s"
delay = "1 ms"
errors = { packet_loss_rate = 0.001 }

[flows.download]
from = "server"
to = "client"
start = "1 s"
app = { kind = "bulk", size = "50 MB" }

[probes]
series = [
    "download.congestion_window",
    "satellite.forward.queue",
]
interval = "100 ms"
"#;

fn refusal(text: &str, overrides: &[(&str, &str)]) -> String {
    match Scenario::parse(text, "geo.toml", overrides) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n'), "{line}");
            line
        }
    }
}

/// Returns `GEO` with the single occurrence of `from` replaced by `to`.
fn changed(from: &str, to: &str) -> String {
    assert_eq!(GEO.matches(from).count(), 1, "{from:?}");
    GEO.replace(from, to)
}

fn check(cases: &[(&str, &str, &str)]) {
    for (from, to, expected) in cases {
        assert_eq!(
            &refusal(&changed(from, to), &[]),
            expected,
            "{from} -> {to}"
        );
    }
}

#[test]
fn valid_files_are_accepted() {
    assert_eq!(refusal(GEO, &[]), "accepted");
}

#[test]
fn an_error_has_parts() {
    let error = Scenario::parse(&changed("280 ms", "2 h"), "geo.toml", &[]).unwrap_err();
    assert_eq!(error.place(), "geo.toml");
    assert_eq!(error.line(), Some(17));
    assert_eq!(error.key(), "links.satellite.forward.delay");
    assert_eq!(
        error.message(),
        r#"expected a delay up to 1 h such as "250 ms" (units: ns, us, ms, s, min, h), got "2 h""#
    );
}
