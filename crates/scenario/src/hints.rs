//! Suggestions in messages about unknown keys and values.

use crate::error::quoted;
use crate::suggest::suggest;

/// Describes the value of a missing key.
pub(crate) fn expected(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => r#"a name such as "geo-download""#,
        "duration" => r#"a length of time such as "120 s""#,
        "hosts" => "at least two hosts: [hosts.server] and [hosts.client]",
        "links" => "at least one link: [links.satellite]",
        "flows" => "at least one flow: [flows.download]",
        "between" => r#"two nodes such as ["server", "client"]"#,
        "from" => "the name of the host that sends",
        "to" => "the name of the host that receives",
        "app" => r#"an application such as { kind = "bulk" }"#,
        "at" => r#"when it happens, such as "10 s""#,
        "lasts" => r#"how long it lasts, such as "500 ms""#,
        "clear" => r#"how long it is clear, such as "exponential(60 s)""#,
        "faded" => r#"how long it is faded, such as "exponential(5 s)""#,
        "probability" => "the share of the packets, such as 0.01",
        "late_by" => r#"how late they come, such as "uniform(1 ms, 30 ms)""#,
        "members" => r#"hosts such as ["terminal"]"#,
        "rate" => r#"a rate such as "10 Mbit/s""#,
        "file" => r#"a file such as "rate.csv""#,
        "time" => r#"how long a packet takes, such as "1 ms""#,
        "share" => "a weight relative to the others, such as 0.7",
        "constellation" => r#"a constellation such as "leo""#,
        _ => return None,
    })
}

/// Returns an example of the table or array of this name, for the message that one was expected.
pub(crate) fn shape(key: &str, expected: &str) -> Option<&'static str> {
    Some(match (expected, key) {
        ("expected a table", "app") => r#"{ kind = "bulk" }"#,
        ("expected a table", "queue") => r#"{ kind = "fq-codel" }"#,
        ("expected a table", "acks") => r#"{ kind = "filter" }"#,
        ("expected a table", "access") => r#"{ kind = "on-demand" }"#,
        ("expected a table", "errors") => "{ packet_loss_rate = 0.01 }",
        ("expected a table", "reordering") => r#"{ probability = 0.01, late_by = "20 ms" }"#,
        ("expected a table", "fading") => {
            r#"{ clear = "exponential(60 s)", faded = "exponential(5 s)" }"#
        }
        ("expected a table", "arp" | "keep_alive") => "{}, which has the defaults",
        ("expected a table", "tcp" | "host_tcp") => r#"{ congestion_control = "bbr" }"#,
        ("expected a table", "processing") => r#"{ time = "1 ms" }"#,
        ("expected a table", "path") => {
            r#"{ constellation = "leo", from = "office", to = "gateway" }"#
        }
        ("expected a table", "forward" | "return") => r#"{ rate = "10 Mbit/s", delay = "250 ms" }"#,
        ("expected a table", "only" | "except") => "{ ports = [80] }",
        ("expected a table of names", "hosts") => "{ server = {}, client = {} }",
        ("expected an array", "outages") => r#"[{ at = "60 s", lasts = "5 s" }]"#,
        ("expected an array", "schedule") => r#"[{ at = "60 s", rate = "1 Mbit/s" }]"#,
        ("expected an array", "traces") => r#"[{ file = "rate.csv" }]"#,
        ("expected an array", "crashes") => r#"[{ at = "60 s" }]"#,
        ("expected an array", "members" | "hosts") => r#"["client"]"#,
        ("expected an array", "series") => r#"["download.goodput"]"#,
        ("expected an array", "ports") => r#"[80, "8000-8999"]"#,
        ("expected an array", "applications") => r#"["voice"]"#,
        ("expected an array", "flows") => r#"["download"]"#,
        ("expected an array", "classes") => r#"["calls", "web"]"#,
        ("expected an array", "ladder") => r#"["1 Mbit/s", "3 Mbit/s"]"#,
        ("expected an array", "lost_packets") => "[20, 21]",
        _ => return None,
    })
}

/// Describes the missing `kind` in a table of this name.
pub(crate) fn kind_of(table: &str) -> Option<&'static str> {
    Some(match table {
        "app" => r#"an application such as "bulk""#,
        "access" => r#"a way such as "on-demand""#,
        "acks" => r#"a method such as "suppression""#,
        "queue" => r#"a queue such as "red""#,
        _ => return None,
    })
}

/// Other names of a gateway that splits connections.
const SPLITTING: [&str; 6] = [
    "pep",
    "proxy",
    "splitting",
    "split-tcp",
    "spoofing",
    "accelerator",
];

/// Other programs' names of keys. The path of a key in a subtable includes the subtable.
const KEYS: [(&str, &str); 47] = [
    ("cra", "constant"),
    ("rbdc", "rate_based"),
    ("vbdc", "volume_based"),
    ("fca", "free"),
    ("superframe", "frame"),
    ("dama", "access"),
    ("bandwidth", "rate"),
    ("bitrate", "rate"),
    ("bw", "rate"),
    ("capacity", "rate"),
    ("data_rate", "rate"),
    ("speed", "rate"),
    ("latency", "delay"),
    ("propagation_delay", "delay"),
    ("loss", "packet_loss_rate"),
    ("loss", "errors.packet_loss_rate"),
    ("loss_rate", "packet_loss_rate"),
    ("loss_rate", "errors.packet_loss_rate"),
    ("packet_loss", "packet_loss_rate"),
    ("packet_loss", "errors.packet_loss_rate"),
    ("packet_loss_rate", "errors.packet_loss_rate"),
    ("plr", "packet_loss_rate"),
    ("plr", "errors.packet_loss_rate"),
    ("ber", "bit_error_rate"),
    ("ber", "errors.bit_error_rate"),
    ("bit_error_rate", "errors.bit_error_rate"),
    ("buffer", "queue"),
    ("length", "limit"),
    ("size", "limit"),
    ("depth", "limit"),
    ("capacity", "limit"),
    ("queue_limit", "queue"),
    ("queue_size", "queue"),
    ("duplicate", "duplication"),
    ("corrupt", "corruption"),
    ("cc", "congestion_control"),
    ("congestion", "congestion_control"),
    ("cwnd", "initial_window"),
    ("initcwnd", "initial_window"),
    ("iw", "initial_window"),
    ("ssthresh", "initial_slow_start_threshold"),
    ("rwnd", "receive_buffer"),
    ("rcvbuf", "receive_buffer"),
    ("sndbuf", "send_buffer"),
    ("source", "from"),
    ("destination", "to"),
    ("length", "duration"),
];

/// Returns the key of `known`, or the path to a key in a table of `known`, that others call
/// `written`.
pub(crate) fn suggested_key(written: &str, known: &[&str]) -> Option<&'static str> {
    let written = written.to_lowercase().replace('-', "_");
    let of_this_table = |path: &str| {
        let first = path.split('.').next().unwrap_or(path);
        known.contains(&first)
    };
    let mut meant = KEYS.iter().filter(|(name, _)| *name == written);
    meant
        .find(|(_, path)| of_this_table(path))
        .map(|(_, path)| *path)
}

/// Other programs' names of series.
const SERIES: [(&str, &str); 14] = [
    ("cwnd", "congestion_window"),
    ("window", "congestion_window"),
    ("ssthresh", "slow_start_threshold"),
    ("inflight", "in_flight"),
    ("rtt", "measured_rtt"),
    ("srtt", "smoothed_rtt"),
    ("rttvar", "rtt_deviation"),
    ("rto", "retransmission_timeout"),
    ("rwnd", "peer_window"),
    ("throughput", "goodput"),
    ("drops", "dropped"),
    ("losses", "lost"),
    ("backlog", "queue_bytes"),
    ("load", "utilization"),
];

/// Returns the series of `known` that others call `written`.
pub(crate) fn suggested_series<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let (_, meant) = SERIES.iter().find(|(name, _)| *name == written)?;
    known.iter().copied().find(|name| name == meant)
}

/// Returns the message about an unknown key that resembles this one.
pub(crate) fn unknown_key_near(near: &str) -> String {
    format!("unknown key; did you mean {}?", quoted(near))
}

/// Largest table whose keys are all listed.
const LISTED_WHOLE: usize = 24;

/// Number of keys that are listed of a larger table.
const CLOSEST: usize = 12;

/// Returns the keys of a table to list in a message about an unknown key, the most similar first,
/// and whether the list is complete.
pub(crate) fn keys_to_name<'k>(unknown: &str, known: &[&'k str]) -> (Vec<&'k str>, bool) {
    let unknown = unknown.to_lowercase().replace('-', "_");
    // Short words such as "of", "to" and "rto" show no similarity.
    let words = || unknown.split('_').filter(|word| word.len() > 3);
    let shares_a_word = |key: &str| {
        let mut parts = key.split('_');
        parts.any(|part| words().any(|word| suggest(word, [part]).is_some()))
    };
    let mut keys = known.to_vec();
    // The sort is stable: other keys keep the table's order.
    keys.sort_by_key(|key| !shares_a_word(key));
    let complete = keys.len() <= LISTED_WHOLE;
    if !complete {
        let sharing = keys.iter().filter(|key| shares_a_word(key)).count();
        if sharing == 0 {
            let similarity = |key: &str| strsim::jaro_winkler(&unknown, key);
            keys.sort_by(|one, other| similarity(other).total_cmp(&similarity(one)));
            keys.truncate(CLOSEST);
        } else {
            keys.truncate(sharing.min(CLOSEST));
        }
    }
    (keys, complete)
}

/// Other programs' words for values.
const WORDS: [(&str, &str); 16] = [
    ("ipv4", "v4"),
    ("ipv6", "v6"),
    ("fifo", "drop-tail"),
    ("pfifo", "drop-tail"),
    ("bfifo", "drop-tail"),
    ("fq", "fair"),
    ("drr", "fair"),
    ("sfq", "fair"),
    ("fq_codel", "fq-codel"),
    ("prio", "priority"),
    ("wrr", "weighted"),
    ("wfq", "weighted"),
    ("iperf", "bulk"),
    ("voip", "voice"),
    ("videoconference", "video-call"),
    ("webrtc", "video-call"),
];

/// Queue disciplines of other programs that do not exist here.
const DELAY_QUEUES: [&str; 5] = ["cake", "cobalt", "fq_pie", "fq-pie", "dualpi2"];

/// Returns the message about a word that is not in `known`.
pub(crate) fn unknown_word(word: &str, known: &[&str]) -> String {
    if known.first() == Some(&"router") && SPLITTING.contains(&word) {
        let expected = one_of(known);
        let hint = "a gateway that ends connections is \"split\"";
        format!("expected {expected}, got {}; {hint}", quoted(word))
    } else if known.first() == Some(&"drop-tail") && DELAY_QUEUES.contains(&word) {
        let expected = one_of(known);
        let hint = "\"fq-codel\" keeps flows apart and their delays short";
        format!("expected {expected}, got {}; {hint}", quoted(word))
    } else if let Some(near) =
        suggested_word(word, known).or_else(|| suggest(word, known.iter().copied()))
    {
        format!(
            "expected {}, got {}; did you mean {}?",
            one_of(known),
            quoted(word),
            quoted(near)
        )
    } else {
        format!("expected {}, got {}", one_of(known), quoted(word))
    }
}

fn suggested_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let (_, meant) = WORDS
        .iter()
        .find(|(written, _)| word.eq_ignore_ascii_case(written))?;
    known.iter().copied().find(|known| known == meant)
}

/// `"a", "b"`
pub(crate) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    quoted.join(", ")
}

/// `"a"`, or `one of "a", "b"`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [word] => format!("\"{word}\""),
        _ => format!("one of {}", list(words)),
    }
}
