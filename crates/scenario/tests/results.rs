//! The names in results are a contract: each field keeps its name and type, or `RESULTS_VERSION` is
//! incremented.

use std::collections::BTreeSet;
use std::fs;

use bentpipe_scenario::{RESULTS_VERSION, RunOptions, Scenario, results_schema};
use serde_json::Value;

use crate::runs::run_text;

/// The fields of version 1, each with its type. A new field needs a new line. If a line must be
/// changed or removed, which breaks other programs, the version is incremented.
const VERSION_1: &str = include_str!("results-1.txt");

/// Adds a line such as `flows[].rtt_ms.p95 number null` for every field of the schema.
fn fields(root: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let references = [
        Some(schema),
        schema.pointer("/allOf/0"),
        schema.pointer("/anyOf/0"),
    ];
    let reference = references
        .into_iter()
        .flatten()
        .find_map(|part| part.get("$ref")?.as_str());
    if let Some(reference) = reference {
        let target = root.pointer(reference.trim_start_matches('#'));
        fields(root, target.expect("a sound schema"), path, found);
        return;
    }
    let types = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(|kind| kind.as_str().map(str::to_owned))
            .collect(),
        _ => vec!["string".to_owned()],
    };
    if !path.is_empty() {
        found.insert(format!("{path} {}", types.join(" ")));
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, part) in properties {
            let dot = if path.is_empty() { "" } else { "." };
            fields(root, part, &format!("{path}{dot}{name}"), found);
        }
    }
    if let Some(items) = schema.get("items") {
        fields(root, items, &format!("{path}[]"), found);
    }
}

#[test]
fn a_renamed_field_breaks_this_test() {
    let schema = results_schema();
    let mut now = BTreeSet::new();
    fields(&schema, &schema, "", &mut now);
    let then: BTreeSet<String> = VERSION_1.lines().map(str::to_owned).collect();
    assert_eq!(RESULTS_VERSION, 1, "a new version needs a new list");
    let gone: Vec<_> = then.difference(&now).collect();
    assert!(
        gone.is_empty(),
        "fields of version 1 that are no more: {gone:#?}"
    );
    let new: Vec<_> = now.difference(&then).collect();
    assert!(
        new.is_empty(),
        "add these lines to tests/results-1.txt: {new:#?}"
    );
}

/// The output of a run has all of the fields, and no others.
#[test]
fn a_run_has_the_fields_of_the_schema() {
    let text = r#"
        name = "n"
        duration = "10 s"
        hosts = { a = {}, b = {}, c = {} }
        groups.all.members = ["c"]
        links.many = { between = ["a", "c"], one_way = true, broadcast = true, rate = "1 Mbit/s", delay = "10 ms" }
        flows.r = { from = "a", to = "all", app = { kind = "carousel", size = "1 kB", rate = "1 Mbit/s", files = 1 } }
        classes.c.applications = ["ping"]
        links.l = { between = ["a", "b"], rate = "1 Mbit/s", delay = "10 ms", forward = { acks.kind = "filter", access.kind = "on-demand", fading = { clear = "1 s", faded = "1 s", rate = "500 kbit/s" } }, return.queue = { kind = "priority", classes = ["c"] } }
        flows.f = { from = "a", to = "b", app = { kind = "bulk", size = "10 kB" } }
        flows.g = { from = "a", to = "b", app = { kind = "request-response", response = "1 kB", pause = "1 s" } }
        flows.h = { from = "a", to = "b", app = { kind = "web", page = "fixed", objects = 1, pages = 1 } }
        flows.i = { from = "a", to = "b", app = { kind = "packets", size = "10 B", interval = "1 s" } }
        flows.j = { from = "a", to = "b", app = { kind = "ftp", size = "1 kB", files = 1 } }
        flows.k = { from = "a", to = "b", app = { kind = "mail", size = "1 kB", mails = 1 } }
        flows.m = { from = "a", to = "b", app = { kind = "voice", codec = "g729", lasts = "1 s" } }
        flows.n = { from = "a", to = "b", app = { kind = "video-call", lasts = "1 s" } }
        flows.o = { from = "a", to = "b", app = { kind = "video", ladder = ["50 kbit/s"], segment = "1 s" } }
        flows.p = { from = "a", to = "b", app = { kind = "ping" } }
        flows.q = { from = "a", to = "b", mix = "x" }
        flows.s = { from = "a", to = "b", app = { kind = "bulk", size = "10 kB", transport = "quic" } }
        mixes.x = { pause = "1 s", ping = 1 }
    "#;
    let output = run_text(text, &[]);
    let json = serde_json::to_value(&output.summary).expect("JSON");
    assert_eq!(json["results_version"], RESULTS_VERSION);
    let schema = results_schema();
    let mut described = BTreeSet::new();
    fields(&schema, &schema, "", &mut described);
    let names: BTreeSet<&str> = described
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let mut seen = BTreeSet::new();
    walk(&json, "", &mut seen);
    let counted = |name: &&String| {
        name.starts_with("links[].counters.") || name.starts_with("groups[].outcomes.")
    };
    let unknown: Vec<_> = seen
        .iter()
        .filter(|name| !names.contains(name.as_str()) && !counted(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !seen.contains(**name) && !name.starts_with("gateways[]"))
        // Fields that only groups have, or do not have.
        .filter(|name| !(name.starts_with("flows[]") && name.contains(".percentiles")))
        .filter(|name| {
            let of_flows = [
                "groups[].pages",
                "groups[].calls",
                "groups[].video_calls",
                "groups[].quic",
            ];
            of_flows.iter().all(|of| {
                let below = name.strip_prefix(of);
                below.is_none_or(|below| !matches!(below.bytes().next(), None | Some(b'[' | b'.')))
            })
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

fn walk(value: &Value, path: &str, seen: &mut BTreeSet<String>) {
    if !path.is_empty() {
        seen.insert(path.to_owned());
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let dot = if path.is_empty() { "" } else { "." };
                walk(member, &format!("{path}{dot}{name}"), seen);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| walk(item, &format!("{path}[]"), seen)),
        _ => {}
    }
}

/// Adds the paths at which a value does not match the schema; unknown fields are errors, too.
fn schema_mismatches(
    root: &Value,
    schema: &Value,
    value: &Value,
    path: &str,
    found: &mut Vec<String>,
) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#'));
        schema_mismatches(root, target.expect("a sound schema"), value, path, found);
    }
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        schema_mismatches(root, part, value, path, found);
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(Value::Array(parts)) = schema.get(choice) {
            let fits = |part: &Value| {
                let mut own = Vec::new();
                schema_mismatches(root, part, value, path, &mut own);
                own.is_empty()
            };
            if !parts.iter().any(fits) {
                found.push(format!("{path}: none of {choice}"));
            }
        }
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |word: &Value| word == kind || (word == "number" && kind == "integer");
    let is_right = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_kind),
        Some(word) => is_kind(word),
        None => true,
    };
    if !is_right {
        found.push(format!("{path}: {kind}, not {}", schema["type"]));
    }
    if let Some(Value::Array(words)) = schema.get("enum")
        && !words.contains(value)
    {
        found.push(format!("{path}: {value} is none of {words:?}"));
    }
    if schema.get("const").is_some_and(|word| word != value) {
        found.push(format!("{path}: {value}, not {}", schema["const"]));
    }
    if let (Some(items), Value::Array(values)) = (schema.get("items"), value) {
        for (index, value) in values.iter().enumerate() {
            schema_mismatches(root, items, value, &format!("{path}[{index}]"), found);
        }
    }
    let Value::Object(fields) = value else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            found.push(format!("{path}.{name}: missing"));
        }
    }
    let others = schema
        .get("additionalProperties")
        .filter(|others| others.is_object());
    for (name, value) in fields {
        match schema
            .get("properties")
            .and_then(|known| known.get(name))
            .or(others)
        {
            Some(part) => schema_mismatches(root, part, value, &format!("{path}.{name}"), found),
            None if schema.get("properties").is_some() => {
                found.push(format!("{path}.{name}: unknown"));
            }
            None => {}
        }
    }
}

/// Runs each ready-made scenario until every kind of result exists. The output matches the schema,
/// and each packet offered to a link direction is accounted for.
#[test]
fn results_of_ready_made_scenarios_match_the_schema() {
    let schema = results_schema();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let files = fs::read_dir(folder).expect("it is there");
    let paths = files.map(|file| file.expect("it can be read").path());
    let paths: BTreeSet<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    assert!(paths.len() > 20, "{paths:?}");
    let mut in_flight = 0;
    for path in paths {
        let scenario = Scenario::load(&path, &[("duration", "\"20 s\"")]).expect("it is right");
        let output = scenario.run(&RunOptions::default()).expect("it runs");
        let json = serde_json::to_value(&output.summary).expect("JSON");
        let mut found = Vec::new();
        schema_mismatches(&schema, &schema, &json, "", &mut found);
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        for link in &output.summary.links {
            let came =
                link.packets_offered + link.packets_duplicated + link.packets_copied.unwrap_or(0);
            let gone = link.packets_delivered
                + link.packets_lost
                + link.packets_dropped
                + link.packets_removed
                + link.packets_undecodable;
            assert_eq!(
                came,
                gone + link.packets_in_flight,
                "{}: {link:?}",
                path.display()
            );
            in_flight += link.packets_in_flight;
        }
    }
    assert!(in_flight > 0, "some run ends with packets on their way");
}

/// The schema in the docs equals the one that is printed.
#[test]
fn the_schema_in_the_docs_is_up_to_date() {
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/results.schema.json"
    );
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(kept).expect("it is there")).expect("JSON");
    assert_eq!(kept, results_schema(), "run `make docs`");
}
