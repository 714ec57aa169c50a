//! Queues with traffic classes: by priority, by weight.

use bentpipe_scenario::{ClassSummary, LinkSummary, Summary};

use crate::runs::run_text;

fn run(text: &str) -> Summary {
    let output = run_text(text, &[]);
    output.summary
}

fn link<'a>(summary: &'a Summary, name: &str) -> &'a LinkSummary {
    let mut links = summary.links.iter();
    links.find(|link| link.name == name).expect("this link")
}

fn class<'a>(link: &'a LinkSummary, name: &str) -> &'a ClassSummary {
    let mut classes = link.classes.iter();
    classes
        .find(|class| class.name == name)
        .expect("this class")
}

/// Returns three Poisson sources of datagrams at a link of 8 Mbit/s.
fn sources(queue: &str, seconds: u64, intervals_us: [f64; 3]) -> String {
    let flow = |name: &str, size: &str, interval: f64| {
        format!(
            r#"
            [flows.{name}]
            from = "a"
            to = "b"
            app = {{ kind = "packets", transport = "udp", size = "{size}", interval = "exponential({interval} us)" }}"#
        )
    };
    let [first, second, third] = intervals_us;
    format!(
        r#"
        name = "classes"
        duration = "{seconds} s"
        [hosts.a]
        [hosts.b]
        [classes.first]
        flows = ["first"]
        [classes.second]
        flows = ["second"]
        [links.l]
        between = ["a", "b"]
        rate = "8 Mbit/s"
        delay = "1 ms"
        queue = {{ limit = "100000 packets", {queue} }}
        {}{}{}
        "#,
        flow("first", "172 B", first),
        flow("second", "uniform(100 B, 1000 B)", second),
        flow("third", "972 B", third)
    )
}

/// Cobham 1954: with rates l_k and service times S_k, class k waits W_0 / ((1 - s_(k-1)) (1 -
/// s_k)), where W_0 = sum l_i E(S_i^2) / 2 and s_k is the load of the classes up to k.
#[test]
fn priority_waiting_times_match_cobham() {
    let intervals_us = [1_000.0, 2_500.0, 3_000.0];
    let summary = run(&sources(
        r#"kind = "priority", classes = ["first", "second"]"#,
        300,
        intervals_us,
    ));
    let link = link(&summary, "l.forward");
    // A byte takes a microsecond; headers are 28 bytes.
    let (low, high) = (128.0_f64, 1028.0_f64);
    let uniform = [
        (low + high) / 2.0,
        (high.powi(3) - low.powi(3)) / (3.0 * (high - low)),
    ];
    let moments = [[200.0, 200.0 * 200.0], uniform, [1000.0, 1_000_000.0]];
    let residual: f64 = (moments.iter().zip(intervals_us))
        .map(|([_, second], interval)| second / interval / 2.0)
        .sum();
    let mut load = 0.0;
    for (name, ([mean, _], interval)) in ["first", "second", "others"]
        .iter()
        .zip(moments.iter().zip(intervals_us))
    {
        let before = 1.0 - load;
        load += mean / interval;
        let expected_ms = residual / (before * (1.0 - load)) / 1_000.0;
        let waited_ms = class(link, name).wait_ms.mean.expect("packets");
        let off = waited_ms / expected_ms - 1.0;
        assert!(
            off.abs() < 0.02,
            "{name}: {waited_ms} ms, not {expected_ms}: {off:+.3}"
        );
    }
    assert_eq!(link.packets_dropped, 0);
}

/// All classes offer more than their share, and each gets exactly that share of the bytes.
#[test]
fn weights_determine_each_class_s_share() {
    let summary = run(&sources(
        r#"kind = "weighted", weights = { first = 3, second = 2 }"#,
        50,
        [300.0, 800.0, 2_000.0],
    )
    .replace("100000 packets", "200 packets"));
    let link = link(&summary, "l.forward");
    for (name, share) in [
        ("first", 3.0_f64 / 6.0),
        ("second", 2.0 / 6.0),
        ("others", 1.0 / 6.0),
    ] {
        let class = class(link, name);
        let of_link = 8.0 * class.bytes_sent as f64 / (8e6 * 50.0);
        assert!(
            (of_link / share - 1.0).abs() < 0.005,
            "{name}: {of_link} of {share}"
        );
        assert!(class.packets_dropped > 0);
    }
    let dropped: u64 = link.classes.iter().map(|class| class.packets_dropped).sum();
    assert_eq!(dropped, link.packets_dropped);
}

/// Capacity that a class does not use goes to the others in proportion to their weights.
#[test]
fn unused_capacity_is_shared_by_weight() {
    let summary = run(&sources(
        r#"kind = "weighted", weights = { first = 3, second = 2 }"#,
        50,
        [2_000.0, 800.0, 1_000.0],
    )
    .replace("100000 packets", "200 packets"));
    let link = link(&summary, "l.forward");
    let bytes = |name| class(link, name).bytes_sent as f64;
    assert_eq!(class(link, "first").packets_dropped, 0);
    assert!((bytes("first") / (50.0 * 500.0 * 200.0) - 1.0).abs() < 0.01);
    assert!((bytes("second") / bytes("others") / 2.0 - 1.0).abs() < 0.01);
}

/// Connections and datagrams in both directions, one application of a mix, hosts and ports: each
/// finds its class.
#[test]
fn packets_are_assigned_to_the_matching_class() {
    let summary = run(r#"
        name = "classes"
        duration = "60 s"
        [hosts.users]
        count = 3
        [hosts.server]
        [gateways.hub]
        [mixes.office]
        web = { share = 1, app = { kind = "web", page = "fixed", objects = 5, pages = 1 } }
        mail = 1
        voice = { share = 1, app = { kind = "voice", calls = 1, lasts = "5 s" } }
        pause = "1 s"
        [classes.calls]
        applications = ["voice"]
        [classes.pages]
        applications = ["web"]
        [classes.third]
        hosts = ["users-3"]
        [classes.mail]
        ports = [25]
        [links.up]
        between = ["users", "hub"]
        rate = "10 Mbit/s"
        delay = "1 ms"
        [links.satellite]
        between = ["hub", "server"]
        rate = "10 Mbit/s"
        delay = "100 ms"
        queue = { kind = "priority", classes = ["calls", "others", "third", "pages", "mail"] }
        [flows.office]
        from = "users"
        to = "server"
        mix = "office"
        [flows.file]
        from = "server"
        to = "users-3"
        app = { kind = "bulk", size = "1 MB" }
        [flows.pings]
        from = "users-1"
        to = "server"
        app = { kind = "ping", interval = "1 s" }
        "#);
    for way in ["satellite.forward", "satellite.return"] {
        let link = link(&summary, way);
        let sent = |name| class(link, name).packets_sent;
        assert!(sent("calls") > 200, "{way}: both ways of each call");
        assert!(sent("pages") > 20 && sent("mail") > 5, "{way}");
        // Activities of the third user other than calls: the file, and all of its own.
        assert!(sent("third") > 300, "{way}");
        // Only pings belong to no class.
        assert!(
            (50..=61).contains(&sent("others")),
            "{way}: {}",
            sent("others")
        );
    }
}
