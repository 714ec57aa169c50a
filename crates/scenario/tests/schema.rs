//! The JSON Schema against real scenario files: files that load are valid.

use std::collections::BTreeSet;
use std::path::Path;

use bentpipe_scenario::{Scenario, json_schema};
use serde_json::{Value, json};

/// Returns why the value is not valid, for the part of draft 7 that the schema uses. Any other
/// keyword is an error, because a validator that ignores keywords proves nothing.
fn violation(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    let keywords = match schema {
        Value::Bool(true) => return None,
        Value::Bool(false) => return Some(format!("{path}: not allowed")),
        schema => schema.as_object().expect("a sound schema"),
    };
    let wrong = |what: String| Some(format!("{path}: {what}, got {value}"));
    for (keyword, argument) in keywords {
        let found = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "examples" | "format"
            | "x-quantities" | "definitions" => None,
            "$ref" => {
                let pointer = argument
                    .as_str()
                    .expect("a sound schema")
                    .trim_start_matches('#');
                violation(
                    root,
                    root.pointer(pointer).expect("a sound schema"),
                    value,
                    path,
                )
            }
            "type" => {
                let types = argument
                    .as_array()
                    .cloned()
                    .unwrap_or(vec![argument.clone()]);
                let fits = types
                    .iter()
                    .any(|kind| match kind.as_str().expect("a sound schema") {
                        "object" => value.is_object(),
                        "array" => value.is_array(),
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "integer" => value.is_i64() || value.is_u64(),
                        "number" => value.is_number(),
                        "null" => value.is_null(),
                        other => panic!("type {other}"),
                    });
                if fits {
                    None
                } else {
                    wrong(format!("expected {argument}"))
                }
            }
            "const" => (argument != value).then(|| format!("{path}: not {argument}")),
            "enum" => {
                let fits = argument.as_array().expect("a sound schema").contains(value);
                if fits {
                    None
                } else {
                    wrong(format!("expected one of {argument}"))
                }
            }
            "oneOf" | "anyOf" => {
                let branches = argument.as_array().expect("a sound schema");
                let fits = branches
                    .iter()
                    .filter(|branch| violation(root, branch, value, path).is_none())
                    .count();
                if fits == 1 || (fits > 1 && keyword == "anyOf") {
                    None
                } else {
                    wrong(format!("fits {fits} of {argument}"))
                }
            }
            "allOf" => {
                let mut branches = argument.as_array().expect("a sound schema").iter();
                branches.find_map(|branch| violation(root, branch, value, path))
            }
            "pattern" => match value.as_str() {
                Some(text)
                    if !regex_lite::Regex::new(argument.as_str().expect("a sound schema"))
                        .expect("a sound schema")
                        .is_match(text) =>
                {
                    wrong(format!("expected {argument}"))
                }
                _ => None,
            },
            "minimum" => match value.as_f64() {
                Some(number) if number < argument.as_f64().expect("a sound schema") => {
                    wrong("too small".into())
                }
                _ => None,
            },
            "exclusiveMinimum" => match value.as_f64() {
                Some(number) if number <= argument.as_f64().expect("a sound schema") => {
                    wrong("too small".into())
                }
                _ => None,
            },
            "maximum" => match value.as_f64() {
                Some(number) if number > argument.as_f64().expect("a sound schema") => {
                    wrong("too large".into())
                }
                _ => None,
            },
            "minItems" => match value.as_array() {
                Some(items)
                    if (items.len() as u64) < argument.as_u64().expect("a sound schema") =>
                {
                    wrong("too short".into())
                }
                _ => None,
            },
            "maxItems" => match value.as_array() {
                Some(items) if items.len() as u64 > argument.as_u64().expect("a sound schema") => {
                    wrong("too long".into())
                }
                _ => None,
            },
            "items" => value.as_array().and_then(|items| {
                let mut items = items.iter().enumerate();
                items.find_map(|(i, item)| violation(root, argument, item, &format!("{path}[{i}]")))
            }),
            "required" => value.as_object().and_then(|object| {
                let mut names = argument.as_array().expect("a sound schema").iter();
                let missing = names
                    .find(|name| !object.contains_key(name.as_str().expect("a sound schema")))?;
                Some(format!("{path}: {missing} is missing"))
            }),
            "propertyNames" => value.as_object().and_then(|object| {
                let mut names = object.keys();
                names.find_map(|name| violation(root, argument, &json!(name), path))
            }),
            "properties" | "additionalProperties" => value.as_object().and_then(|object| {
                let known = keywords.get("properties").and_then(Value::as_object);
                object.iter().find_map(|(name, value)| {
                    let own = known.and_then(|known| known.get(name));
                    let schema = match (keyword.as_str(), own) {
                        ("properties", Some(own)) => own,
                        ("additionalProperties", None) => argument,
                        _ => return None,
                    };
                    violation(root, schema, value, &format!("{path}.{name}"))
                })
            }),
            other => panic!("{path}: the validator does not know {other}"),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn to_json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).expect("a sound schema"))
        .expect("a sound schema")
}

fn check(text: &str) -> Option<String> {
    let schema = json_schema();
    violation(&schema, &schema, &to_json(text), "")
}

const EVERY_KEY: &str = r#"
name = "every-key"
description = "All that a file can say"
duration = "1.5 min"
seed = 12
ip = "v6"
[hosts.server.tcp]
congestion_control = "enhanced-hybla"
channel_capacity = "100 Mbit/s"
bandwidth_filter = "westwood"
hybla = { reference_rtt = "25 ms", initial_threshold = "bandwidth-estimate", channel_capacity = "packet-pairs", after_loss = "quarter", after_timeout = "rho" }
westwood = { after_loss = "at-least-half", time_constant = "0.5 s" }
pacing = "10 Mbit/s"
recovery = "newreno"
proportional_rate_reduction = false
rack = false
tail_loss_probe = false
f_rto = false
undo = false
newreno = "slow-but-steady"
profile = "linux"
slow_start = "byte-counting"
slow_start_limit = "2 segments"
congestion_avoidance = "per-acknowledgment"
window_validation = false
idle_restart = "restart-window"
initial_window = "1 segment"
initial_slow_start_threshold = "64 KiB"
mss = "536 B"
send_buffer = "auto"
send_memory = { minimum = "4 KiB", initial = "16 KiB", maximum = "1 MB" }
receive_buffer = "auto"
receive_memory = { minimum = "4 KiB", initial = "128 KiB", maximum = "6 MiB" }
window_scaling = true
window_scale = 10
keep_alive = { idle = "5 s", interval = "1 s", probes = 3 }
path_mtu_discovery = "search"
base_mss = "512 B"
timestamps = false
sack = false
delayed_ack = "off"
ack_every = 2
quick_acks = 16
nagle = false
blocking_writes = true
limited_transmit = false
fast_open = true
initial_rto = "3 s"
minimum_rto = "1 s"
maximum_rto = "64 s"
rto_rule = "rfc6298"
rto_from = "oldest-segment"
ecn = "request"
maximum_retransmissions = 12
maximum_syn_retransmissions = 5
time_wait = "4 min"
[hosts.server.quic]
congestion_control = "hybla"
initial_window = "14720 B"
stream_window = "8 MB"
connection_window = "16 MB"
send_window = "16 MB"
streams = 50
ack_threshold = 10
ack_delay = "50 ms"
initial_rtt = "600 ms"
idle_timeout = "60 s"
keep_alive = "20 s"
mtu = "1252 B"
max_mtu = "1452 B"
burst = 4
early_data = true
certificate = "3 kB"
[hosts.server.resume]
window = "2 MB"
rtt = "600 ms"
expires = "1 h"
[hosts.client]
count = 2
processing = { time = "20 us" }
tcp = { rto_rule = "rfc6298", timer_granularity = "500 ms" }
[gateways.hub]
kind = "router"
icmp = false
[gateways.pop]
kind = "nat"
facing = "over-leo"
[gateways.splitter]
kind = "split"
facing = "one"
tcp = { congestion_control = "hybla" }
host_tcp = { receive_buffer = "64 KiB" }
set_up = "early"
close = "early"
memory = "64 MiB"
only = { ports = [80, "8000-8999"], hosts = ["server"] }
except = { hosts = ["client"], addresses = ["192.0.2.7", "2001:db8::/32"], addresses_file = "tests/data/except.txt" }
processing = { time = "10 us", queue = "500 packets" }
source_connections = 500
rate_limits = [
    { class = { ports = [20, 21] }, rate = "2 Mbit/s", longest_wait = "100 ms" },
    { dscp = [8, 10], rate = "500 kbit/s" },
]
warm_path = true
idle_timeout = "2 h"
[gateways.near]
kind = "split"
facing = "trunk"
multiplex = 4
[gateways.far]
kind = "split"
facing = "trunk"
multiplex = 4
[gateways.answerer]
kind = "hybrid"
facing = "three"
tcp = { congestion_control = "reno" }
receive_buffer = "64 kB"
store = "128 kB"
ack_timeout = "200 ms"
ack_every = 2
anticipation = "strict"
adaptive_timeout = true
congestion_window = true
give_up = "60 s"
crashes = [{ at = "3 s", lasts = "1 s" }]
connections = 100
[gateways.factor]
kind = "hybrid"
facing = "four"
window_factor = 1.5
retransmission_timeout = "3 s"
[links.trunk]
between = ["near", "far"]
rate = "1 Mbit/s"
delay = "1 ms"
[links.to-near]
between = ["splitter", "near"]
rate = "1 Mbit/s"
delay = "1 ms"
[links.three]
between = ["splitter", "answerer"]
rate = "1 Mbit/s"
delay = "1 ms"
errors = { packet_loss_rate = 0.01, mean_burst_packets = 4, loss_in_burst = 0.5, loss_between_bursts = 0.001 }
[links.four]
between = ["splitter", "factor"]
rate = "1 Mbit/s"
delay = "1 ms"
[links.one]
between = ["server", "splitter"]
rate = "1e-3 Gbit/s"
delay = "250 us"
mtu = "1400 B"
fragment = true
framing = "ethernet"
arp = { timeout = "30 s", queue = "3 packets" }
redundancy = "16/15"
forward = { queue = { kind = "red", limit = "60 packets", minimum_threshold = "5 packets", maximum_threshold = "15 packets", maximum_probability = 0.02, weight = 0.002, gentle = false, ecn = true, mean_packet = "1500 B" } }
queue = { kind = "early-random-drop", limit = "10 packets", drop_level = "4 kB", drop_probability = 0.05 }
errors = { bit_error_rate = 1e-7 }
[links.modem]
between = ["server", "hub"]
rate = "9.6 kbit/s"
delay = "100 ms"
tunnel = true
forward = { acks = { kind = "compaction", low = 4, high = 60, duplicates = 3, spacing = "per-flow" } }
compression = "v42bis"
return = { tunnel = false, acks = { kind = "filter", mode = "aggressive" } }
[links.isdn]
between = ["server", "hub"]
rate = "64 kbit/s"
delay = "100 ms"
acks = { kind = "reconstruction", threshold = "1448 B" }
[links.two]
between = ["hub", "client"]
forward = { rate = "1 Mbit/s", delay = "1 ms", redundancy = 1.0667, queue = { limit = "9 kB" }, errors = { lost_packets = [1, 2] } }
return = { rate = "1 Mbit/s", delay = "0 s", queue = { kind = "fair", quantum = "1500 B", flows = 16 }, errors = { packet_loss_rate = 1 } }
[links.classed]
between = ["hub", "client"]
rate = "1 Mbit/s"
delay = "30 ms"
forward = { queue = { kind = "priority", classes = ["calls", "others"] } }
return = { queue = { kind = "weighted", weights = { calls = 4, others = 0.5 } } }
[links.nine]
between = ["splitter", "factor"]
rate = "1 Mbit/s"
delay = "1 ms"
forward = { queue = { kind = "fq-codel", target = "30 ms", interval = "600 ms", quantum = "300 B", flows = 64, ecn = false } }
return = { queue = { kind = "pie", target = "50 ms", update_interval = "20 ms", burst_allowance = "0 s", ecn = true } }
[classes.calls]
applications = ["voice"]
flows = ["down"]
hosts = ["client"]
ports = [443, "8000-8999"]
[links.eight]
between = ["hub", "client"]
rate = "1 Mbit/s"
delay = "250 ms"
forward = { access = { kind = "on-demand", carrier = "uplink", constant = "16 kbit/s", rate_based = "64 kbit/s", volume_based = true } }
return = { access = { kind = "on-demand", free = true, frame = "40 ms", processing = "10 ms", request_delay = "125 ms", grant_delay = "125 ms" } }
[carriers.uplink]
rate = "4 Mbit/s"
frame = "26.5 ms"
processing = "53 ms"
[links.five]
between = ["hub", "client"]
one_way = true
rate = "1 Mbit/s"
delay = "30 ms"
schedule = [{ at = "0 s", rate = "0 bit/s", delay = "40 ms" }, { at = "1 s", rate = "1 Mbit/s", packet_loss_rate = 0.01, bit_error_rate = 1e-7 }]
schedule_every = "15 s"
outages = [{ at = "1 s", lasts = "100 ms", every = "15 s", sending = "held", in_flight = "held" }]
fading = { clear = "exponential(10 s)", faded = "1 s", rate = "100 kbit/s", packet_loss_rate = 0.1, bit_error_rate = 1e-6 }
duplication = 0.01
corruption = 1e-3
reordering = { probability = 0.01, late_by = "uniform(1 ms, 20 ms)" }
in_order = false
[links.rain]
between = ["server", "client"]
delay = "20 ms"
acm = { modes = "dvb-s2", symbol_rate = "1 Mbaud", es_n0 = "12 dB", margin = "1.5 dB", hysteresis = "0.3 dB", sending = "held", in_flight = "arrive" }
schedule = [{ at = "1 s", attenuation = "5 dB" }]
[constellations.leo]
preset = "starlink-shell-1"
ascending_node = "10 deg"
phase = "3 deg"
[constellations.station]
file = "tests/data/station.tle"
start = "2008-09-20T12:00:00Z"
[constellations.geostationary]
longitudes = ["13 deg"]
[constellations.polar]
altitude = "800 km"
inclination = "87 deg"
planes = 6
satellites_per_plane = 11
phasing = 3
pattern = "star"
[sites.office]
latitude = "52.5 deg"
longitude = "13.4 deg"
height = "40 m"
min_elevation = "25 deg"
mask = [{ from = "350 deg", to = "10 deg", elevation = "45 deg" }]
[sites.ship]
track = "tests/data/river.csv"
[links.over-leo]
between = ["pop", "hub"]
acm = { modes = "dvb-s2", symbol_rate = "1 Mbaud", es_n0 = "12 dB" }
path = { constellation = "leo", from = "office", to = ["ship"], over = "bent-pipe", select = "highest", slot = "15 s", hysteresis = "3 deg", extra_delay = "5 ms", variation = { preset = "starlink-europe-2023", offset = "uniform(0 ms, 8 ms)", jitter = "exponential(1 ms)", jitter_every = "10 ms", spike = "20 ms", spike_before = "0 s", spike_after = "100 ms", packet_loss_rate = 0.001, boundary_loss_rate = 0.1 }, handover = "50 ms", gateway_handover = "100 ms", sending = "held", in_flight = "arrive", es_n0_range = "550 km", step = "1 s" }
[links.six]
between = ["hub", "client"]
forward = { rate = "1 Mbit/s", traces = [{ file = "tests/data/irtt.csv", format = "irtt", column = "downlink" }] }
return = { delay = "30 ms", traces = [{ file = "tests/data/rain.csv", every = "3 min" }] }
[links.seven]
between = ["hub", "client"]
one_way = true
broadcast = true
rate = "1 Mbit/s"
delay = "30 ms"
[groups.all]
members = ["client"]
[flows.bulletin]
from = "server"
to = "all"
app = { kind = "carousel", size = "10 kB", datagram = "1 kB", rate = "1 Mbit/s", turns = 2, interval = "10 s", files = 2 }
[flows.down]
from = "server"
to = "client"
spacing = "20 ms"
start = "0.5 s"
app = { kind = "bulk", size = "10 kB", direction = "both", transfers = 3, pause = "1 s" }
[flows.encrypted]
from = "client"
to = "server"
app = { kind = "bulk", size = "10 kB", transport = "quic" }
[flows.ask]
from = "server"
to = "client"
app = { kind = "request-response", request = "uniform(100 B, 1 kB)", response = "pareto(10 kB, 1.2)", think = "50 ms", pause = "exponential(2 s)", requests = 7 }
[flows.browse]
from = "server"
to = "client"
app = { kind = "web", http = "1.1", tls = "1.2", resumption = true, page = "fixed", document = "20 kB", objects = 3, object_size = "5 kB", levels = 2, request = "500 B", think = "10 ms", reading = "exponential(5 s)", pages = 2 }
[flows.noise]
from = "server"
to = "client"
app = { kind = "packets", transport = "tcp", size = "exponential(500 B)", interval = "exponential(20 ms)", on = "exponential(1 s)", off = "2 s", lasts = "5 s" }
[flows.files]
from = "server"
to = "client"
app = { kind = "ftp", mode = "active", direction = "upload", size = "10 kB", pause = "1 s", files = 2 }
[flows.letters]
from = "server"
to = "client"
app = { kind = "mail", size = "10 kB", pause = "1 s", mails = 2, pipelining = true }
[flows.speech]
from = "server"
to = "client"
app = { kind = "voice", codec = "g729", packet = "40 ms", jitter_buffer = "50 ms", lasts = "3 s", pause = "1 s", calls = 2 }
[flows.meeting]
from = "server"
to = "client"
app = { kind = "video-call", min_rate = "100 kbit/s", max_rate = "500 kbit/s", frame_rate = 15, datagram = "1 kB", lasts = "3 s", pause = "1 s", calls = 2 }
[flows.film]
from = "server"
to = "client"
app = { kind = "video", segment = "2 s", ladder = ["100 kbit/s", "300 kbit/s"], buffer = "10 s", start_up = "4 s", lasts = "20 s" }
[flows.echo]
from = "server"
to = "client"
app = { kind = "ping", protocol = "udp", size = "100 B", interval = "1 s", requests = 3 }
[flows.people]
from = "server"
to = "client"
mix = "office"
[mixes.office]
web = { share = 0.7, app = { kind = "web" } }
voice = 0.1
pause = "exponential(5 s)"
[randomness]
host_timing = false
[probes]
series = ["down.goodput", "one.forward.queue"]
interval = "every-change"
averages_every = "1 s"
"#;

#[test]
fn files_that_load_validate() {
    Scenario::parse(EVERY_KEY, "every-key.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(check(EVERY_KEY), None);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert_eq!(check(&text), None);
    }
}

#[test]
fn the_example_contains_every_key() {
    fn known(schema: &Value, keys: &mut BTreeSet<String>) {
        for (name, part) in schema.as_object().into_iter().flatten() {
            if name == "properties" {
                keys.extend(part.as_object().unwrap().keys().cloned());
            }
            known(part, keys);
        }
    }
    fn used(value: &Value, keys: &mut BTreeSet<String>) {
        for (name, part) in value.as_object().into_iter().flatten() {
            keys.insert(name.clone());
            used(part, keys);
        }
        for part in value.as_array().into_iter().flatten() {
            used(part, keys);
        }
    }
    let (mut known_keys, mut used_keys) = (BTreeSet::new(), BTreeSet::new());
    known(&json_schema(), &mut known_keys);
    used(&to_json(EVERY_KEY), &mut used_keys);
    let unused: Vec<_> = known_keys.difference(&used_keys).collect();
    assert_eq!(unused, Vec::<&String>::new());
}

#[test]
fn invalid_files_do_not_validate() {
    let wrong = [
        ("duration = \"1.5 min\"", "duration = 90"),
        ("\"1e-3 Gbit/s\"", "\"1 Mbps\""),
        ("newreno = \"slow", "newrenno = \"slow"),
        ("voice = 0.1", "voice = 0"),
        ("\"16/15\"", "0.5"),
        ("packet_loss_rate = 1", "packet_loss_rate = 1.1"),
        ("[\"server\", \"hub\"]", "[\"server\"]"),
        ("kind = \"router\"", "kind = \"switch\""),
        ("[gateways.hub]", "[gateways.\"the hub\"]"),
        ("name = \"every-key\"", ""),
    ];
    for (from, to) in wrong {
        assert!(check(&EVERY_KEY.replace(from, to)).is_some(), "{to}");
    }
}

#[test]
fn the_schema_does_not_contain_null() {
    assert!(!json_schema().to_string().contains("null"));
}

#[test]
fn everything_is_described() {
    fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
        let Some(object) = schema.as_object() else {
            return;
        };
        for (name, property) in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let path = format!("{path}.{name}");
            if property
                .get("description")
                .and_then(Value::as_str)
                .is_none_or(|text| text.len() < 10)
            {
                found.push(path.clone());
            }
            undescribed(property, &path, found);
        }
        for (name, definition) in object
            .get("definitions")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            undescribed(definition, name, found);
        }
    }
    let mut found = Vec::new();
    undescribed(&json_schema(), "", &mut found);
    assert_eq!(found, Vec::<String>::new());
}
