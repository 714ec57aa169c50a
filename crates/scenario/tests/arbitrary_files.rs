//! Arbitrary files: the reader accepts them or returns an error of one line, and never panics.

use bentpipe_scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const GOOD: &str = include_str!("../../../scenarios/geo-consumer.toml");

/// Valid and invalid fragments of scenario files.
const PIECES: &[&str] = &[
    "\n",
    "\n[",
    "]",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'",
    "'''",
    "#",
    " ",
    "\r\n",
    "\u{feff}",
    "name",
    "hosts",
    "links",
    "flows",
    "probes",
    "count = 60000",
    "count = -1",
    "tcp",
    "between",
    "\"server\"",
    "\"client\"",
    "\"client-2\"",
    "forward = {}",
    "return",
    "rate = \"1e300 bit/s\"",
    "delay = \"0 s\"",
    "duration = \"1 ns\"",
    "\"every-change\"",
    "1e400",
    "nan",
    "-0.0",
    "0x10",
    "99999999999999999999",
    "1979-05-27",
    "true",
    "[[links]]",
    "\"16/15\"",
    "errors",
    "lost_packets = [0]",
    "queue",
    "\u{0}",
    "\u{2028}",
    "é",
    "\\u0000",
];

fn answers(text: &str, overrides: &[(&str, &str)]) {
    let answer = Scenario::parse(text, "file.toml", overrides);
    if let Err(error) = answer {
        let line = error.to_string();
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        assert!(line.len() < 2_000, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text(text in any::<String>()) {
        answers(&text, &[]);
    }

    #[test]
    fn pieces_of_scenarios(pieces in prop::collection::vec(select(PIECES), 0..40)) {
        answers(&pieces.concat(), &[]);
    }

    #[test]
    fn a_scenario_with_pieces_cut_out_and_put_in(
        edits in prop::collection::vec((any::<Index>(), 0..30_usize, select(PIECES)), 1..4),
    ) {
        let mut text: Vec<char> = GOOD.chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, piece.chars());
        }
        answers(&text.iter().collect::<String>(), &[]);
    }

    #[test]
    fn a_scenario_with_values_replaced(at in any::<Index>(), piece in select(PIECES)) {
        let values: Vec<usize> = GOOD.match_indices("= ").map(|(i, _)| i + 2).collect();
        let start = values[at.index(values.len())];
        let end = start + GOOD[start..].find('\n').unwrap_or(0);
        answers(&format!("{}{piece}{}", &GOOD[..start], &GOOD[end..]), &[]);
    }

    #[test]
    fn any_override(
        key in prop_oneof![any::<String>(), "[a-z.]{0,20}", select(&[
            "hosts.client.count", "hosts.server", "hosts", "links.satellite.forward.delay",
            "links.satellite.between", "flows.download.from", "probes.series", "probes.interval",
            "duration", "links.new.rate", "hosts.server.tcp.mss", "gateways.client-1",
        ][..]).prop_map(str::to_owned)],
        value in prop_oneof![any::<String>(), select(PIECES).prop_map(str::to_owned)],
    ) {
        answers(GOOD, &[(&key, &value)]);
    }
}

/// Files of the maximum size, built to take as long as possible.
#[test]
fn large_files_are_answered() {
    let head = "name = \"x\"\nduration = \"1 s\"\n";
    let megabyte = |piece: &dyn Fn(usize) -> String| {
        let mut text = head.to_owned();
        let mut n = 0;
        while text.len() < (1 << 20) - 200 {
            text += &piece(n);
            n += 1;
        }
        text
    };
    let hosts = megabyte(&|n| format!("[hosts.h{n}]\n"));
    let counted = megabyte(&|n| format!("[hosts.h{n}]\ncount = 60000\n"));
    let keys = megabyte(&|n| format!("k{n} = {n}\n"));
    let a_key = format!("{head}{} = 1\n", "k".repeat(1_000_000));
    let listed: Vec<String> = (1..=100_000).map(|n| n.to_string()).collect();
    let losses = format!(
        "{head}hosts = {{ a = {{}}, b = {{ count = 19000 }} }}\n\
         flows.f = {{ from = \"a\", to = \"b\", app = {{ kind = \"bulk\" }} }}\n\
         [links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n\
         forward.errors.lost_packets = [{}]\n",
        listed.join(",")
    );
    let arrays = format!(
        "{head}probes.series = {}{}\n",
        "[".repeat(500_000),
        "]".repeat(500_000)
    );
    for text in [hosts, counted, keys, a_key, losses.clone(), arrays] {
        answers(&text, &[]);
    }
    let error = Scenario::parse(&losses, "file.toml", &[]).unwrap_err();
    assert_eq!(
        error.message(),
        "expected at most 1000000 lost_packets in all"
    );
}

/// The maximum number of hosts, links and flows, joined in the most expensive way.
#[test]
fn the_largest_network_is_checked_quickly() {
    let mut text = "name = \"x\"\nduration = \"1 s\"\n".to_owned();
    text += "hosts = { a = { count = 10 }, b = { count = 10 } }\n";
    for gateway in 0..1_200 {
        text += &format!("gateways.g{gateway} = {{}}\n");
        for side in ["a", "b"] {
            text += &format!(
                "links.{side}{gateway} = {{ between = [\"{side}\", \"g{gateway}\"], rate = \"1 Mbit/s\", delay = \"1 s\" }}\n"
            );
        }
    }
    for flow in 0..2_000 {
        text += &format!(
            "flows.f{flow} = {{ from = \"a\", to = \"b\", app = {{ kind = \"bulk\" }} }}\n"
        );
    }
    let scenario = Scenario::parse(&text, "file.toml", &[]).unwrap();
    assert_eq!(
        (scenario.links.len(), scenario.flows.len()),
        (24_000, 20_000)
    );
}
