//! The result of a run as text for people. Multiples are decimal: 1 kB is 1000 bytes.

use serde_json::Value;

use super::table::{Table, terminal_width};

/// Counters of connections, in the order of the table.
const COUNTED: [&str; 4] = ["split", "tracked", "passed", "refused"];

/// Describes a result of [`Plan::run`](super::Plan::run).
pub(super) fn result(result: &Value) -> String {
    let scenario = result["scenario"].as_str().unwrap_or_default();
    let (ran, entered) = (
        seconds(&result["ended_s"], 1.0),
        count(&result["packets_in"]),
    );
    let mut text = format!("{scenario}: {ran}, {entered} packets came in\n");
    for table in [gateways(&result["gateways"]), links(&result["links"])] {
        if !table.is_empty() {
            text += "\n";
            text += &table.text(terminal_width());
        }
    }
    let late = &result["late_ms"];
    let [mean, p99, most] = ["mean", "p99", "max"].map(|name| seconds(&late[name], 1e-3));
    text += &format!("\npackets left late by {mean} in the mean, {p99} (99%), {most} at most\n");
    for (reason, number) in result["refused"].as_object().into_iter().flatten() {
        text += &format!("refused, {reason}: {}\n", count(number));
    }
    text
}

fn gateways(gateways: &Value) -> Table {
    let mut table = Table::new(&["gateway", "kind", "connections", "bytes held at most"], 2);
    for gateway in gateways.as_array().into_iter().flatten() {
        let connections = &gateway["connections"];
        let shown: Vec<String> = (COUNTED.iter())
            .filter_map(|name| Some((name, connections.get(name)?)))
            .map(|(name, number)| format!("{} {name}", count(number)))
            .collect();
        let held = gateway.get("bytes_held").map(|held| bytes(&held["max"]));
        table.add(vec![
            word(&gateway["name"]),
            word(&gateway["kind"]),
            if shown.is_empty() {
                "–".to_owned()
            } else {
                shown.join(", ")
            },
            held.unwrap_or_else(|| "–".to_owned()),
        ]);
    }
    table
}

fn links(links: &Value) -> Table {
    let headings = [
        "link",
        "packets",
        "bytes",
        "lost",
        "dropped",
        "longest queue",
    ];
    let mut table = Table::new(&headings, 1);
    for link in links.as_array().into_iter().flatten() {
        table.add(vec![
            word(&link["name"]),
            count(&link["packets_delivered"]),
            bytes(&link["bytes_delivered"]),
            count(&link["packets_lost"]),
            count(&link["packets_dropped"]),
            match link["queue_max_packets"].as_u64() {
                Some(0) => "none".to_owned(),
                Some(1) => "1 packet".to_owned(),
                _ if link["queue_max_packets"].is_null() => "–".to_owned(),
                _ => format!("{} packets", count(&link["queue_max_packets"])),
            },
        ]);
    }
    table
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Writes a number with separators of thousands; a dash for null.
pub(super) fn count(value: &Value) -> String {
    let Some(number) = value.as_u64() else {
        return "–".to_owned();
    };
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number of bytes: "1.02 MB".
pub(super) fn bytes(value: &Value) -> String {
    let number = value.as_f64().unwrap_or_default();
    for (prefix, scale) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if number >= scale {
            return format!("{} {prefix}B", three_digits(number / scale));
        }
    }
    format!("{} B", three_digits(number))
}

/// Writes a time in units of `unit` seconds: "250 ms", "12.3 s"; a dash for null.
pub(super) fn seconds(value: &Value, unit: f64) -> String {
    let Some(time_s) = value.as_f64().map(|time| time * unit) else {
        return "–".to_owned();
    };
    if time_s != 0.0 && time_s.abs() < 1e-3 {
        format!("{} µs", three_digits(time_s * 1e6))
    } else if time_s != 0.0 && time_s.abs() < 1.0 {
        format!("{} ms", three_digits(time_s * 1e3))
    } else {
        format!("{} s", three_digits(time_s))
    }
}

/// Writes a number with three significant digits, or all of those before the point.
fn three_digits(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.0}");
    }
    // The exponent of the rounded value, as in "1.00e1".
    let exponent = format!("{value:.2e}");
    let exponent = exponent
        .split('e')
        .nth(1)
        .and_then(|text| text.parse().ok());
    let decimals = usize::try_from(2 - exponent.unwrap_or(0_i32)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.001, "0.001"),
            (0.012_345, "0.0123"),
            (1.0, "1"),
            (1.005, "1"),
            (9.996, "10"),
            (12.34, "12.3"),
            (99.96, "100"),
            (100.4, "100"),
            (1234.5, "1234"),
        ] {
            assert_eq!(three_digits(value), text, "{value}");
        }
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!(bytes(&json!(999)), "999 B");
        assert_eq!(bytes(&json!(1_024_000)), "1.02 MB");
        assert_eq!(seconds(&json!(0.0), 1.0), "0 s");
        assert_eq!(seconds(&json!(0.25), 1.0), "250 ms");
        assert_eq!(seconds(&json!(0.0123), 1e-3), "12.3 µs");
        assert_eq!(seconds(&json!(null), 1.0), "–");
        assert_eq!(count(&json!(1_234_567)), "1,234,567");
        assert_eq!(count(&json!(null)), "–");
    }
}
