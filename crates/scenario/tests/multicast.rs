//! Groups, broadcast channels and carousels: from file to result, and refused files.

use bentpipe_scenario::{RunOptions, Scenario, Summary};

const TEXT: &str = r#"
name = "many"
duration = "30 s"
[hosts.station]
[hosts.dish]
count = 20
[hosts.pc]
[gateways.hub]
[gateways.office]
[links.studio]
between = ["station", "hub"]
rate = "100 Mbit/s"
delay = "5 ms"
[links.satellite]
between = ["hub", "dish", "office"]
broadcast = true
one_way = true
rate = "10 Mbit/s"
delay = "250 ms"
[links.modem]
between = ["dish", "hub"]
one_way = true
rate = "64 kbit/s"
delay = "50 ms"
[links.lan]
between = ["office", "pc"]
rate = "100 Mbit/s"
delay = "1 ms"
[groups.all]
members = ["dish", "pc"]
[flows.news]
from = "station"
to = "all"
app = { kind = "carousel", size = "100 kB", rate = "1 Mbit/s", files = 5 }
"#;

fn parse(text: &str, settings: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::parse(text, "many.toml", settings).map_err(|error| error.to_string())
}

fn run(settings: &[(&str, &str)]) -> Summary {
    let scenario = parse(TEXT, settings).unwrap_or_else(|error| panic!("{error}"));
    let output = scenario.run(&RunOptions::default());
    output.unwrap_or_else(|error| panic!("{error}")).summary
}

#[test]
fn results_cover_each_member_and_the_group() {
    let summary = run(&[]);
    // 72 datagrams per file.
    let names: Vec<&str> = summary
        .flows
        .iter()
        .map(|flow| flow.name.as_str())
        .collect();
    assert_eq!(names.len(), 21);
    assert_eq!((names[0], names[20]), ("news-1", "news-21"));
    for flow in &summary.flows {
        assert_eq!((flow.outcome, flow.bytes_delivered), ("finished", 500_000));
        let messages = flow.application.messages.as_ref().expect("datagrams came");
        assert_eq!((messages.sent, messages.received), (360, 360));
        let files = flow.application.files.as_ref().expect("files came");
        assert_eq!((files.begun, files.count), (5, 5));
        // The last datagram of 600 bytes is sent after 99.4 kB; the longest path takes 256.35 ms.
        let longest = files.time_ms.max.expect("five came");
        let expected = 795.2 + 255.0 + 628.0 * 8.0 * 1.1e-4;
        let further = if flow.name == "news-21" {
            1.0 + 628.0 * 8.0 * 1e-5
        } else {
            0.0
        };
        assert!(
            (longest - expected - further).abs() < 1e-3,
            "{longest}, {expected}"
        );
    }
    let group = &summary.groups[0];
    let received = group.received_percent.as_ref().expect("it is a group's");
    assert_eq!((received.min, received.max), (Some(100.0), Some(100.0)));
    let link = |name: &str| {
        summary
            .links
            .iter()
            .find(|link| link.name == name)
            .expect("there")
    };
    assert_eq!(link("studio.forward").packets_delivered, 360);
    assert_eq!(link("studio.forward").packets_copied, None);
    assert_eq!(link("satellite.forward").packets_delivered, 360 * 21);
    assert_eq!(link("satellite.forward").packets_copied, Some(360 * 20));
    assert_eq!(link("lan.forward").packets_delivered, 360);
}

#[test]
fn another_receiver_changes_no_other_random_draws() {
    let losses = ("links.satellite.errors.packet_loss_rate", "0.05");
    let few = run(&[losses, ("hosts.dish.count", "3")]);
    let many = run(&[losses, ("hosts.dish.count", "30")]);
    let received = |summary: &Summary, flow: usize| {
        let messages = summary.flows[flow].application.messages.as_ref();
        messages.map_or(0, |messages| messages.received)
    };
    for flow in 0..3 {
        assert_eq!(received(&few, flow), received(&many, flow));
        assert!(received(&few, flow) < 360);
    }
    let all: Vec<u64> = (0..30).map(|flow| received(&many, flow)).collect();
    assert!(all.iter().any(|count| *count != all[0]), "each by itself");
}

#[test]
fn a_packet_for_one_receiver_reaches_only_that_one() {
    let app = r#"{ kind = "bulk", size = "200 kB" }"#;
    let text = format!(
        "{TEXT}\n[flows.own]\nfrom = \"station\"\nto = \"dish-7\"\nstart = \"10 s\"\napp = {app}\n"
    );
    let scenario = parse(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let summary = scenario
        .run(&RunOptions::default())
        .expect("it runs")
        .summary;
    let own = summary
        .flows
        .iter()
        .find(|flow| flow.name == "own")
        .expect("there");
    assert_eq!((own.outcome, own.bytes_delivered), ("finished", 200_000));
    let link = summary
        .links
        .iter()
        .find(|link| link.name == "satellite.forward");
    let link = link.expect("there");
    assert_eq!(link.packets_copied, Some(360 * 20));
    assert!((140..160).contains(&(link.packets_delivered - 360 * 21)));
}

#[test]
fn a_hybrid_gateway_can_face_a_broadcast_channel() {
    let kind = r#"{ kind = "hybrid", facing = "satellite" }"#;
    let text = format!(
        "{TEXT}\n[flows.own]\nfrom = \"station\"\nto = \"dish\"\napp = {{ kind = \"bulk\", size = \"50 kB\" }}\n"
    );
    let scenario =
        parse(&text, &[("gateways.hub", kind)]).unwrap_or_else(|error| panic!("{error}"));
    let summary = scenario
        .run(&RunOptions::default())
        .expect("it runs")
        .summary;
    let own = summary
        .groups
        .iter()
        .find(|group| group.name == "own")
        .expect("there");
    assert_eq!(own.outcomes.get("finished"), Some(&20));
    assert_eq!(summary.gateways[0].counters["connections"]["tracked"], 20);
}

#[test]
fn a_split_gateway_behind_a_channel_handles_only_its_own_flows() {
    let text = TEXT
        .replace(
            "\"dish\", \"office\"]\nbroadcast",
            "\"office\", \"dish\"]\nbroadcast",
        )
        .replace(
            "[gateways.office]",
            "[gateways.office]\nkind = \"split\"\nfacing = \"lan\"",
        );
    let own = "[flows.own]\nfrom = \"station\"\nto = \"dish\"\napp = { kind = \"bulk\" }\n";
    assert!(parse(&format!("{text}\n{own}"), &[]).is_ok());
}

#[test]
fn inconsistent_settings_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "one_way = true\nrate = \"10",
            "rate = \"10",
            "many.toml:14: links.satellite.one_way: expected true with broadcast: the opposite direction needs links of its own, such as a one-way link from each receiver",
        ),
        (
            "broadcast = true\n",
            "",
            "many.toml:15: links.satellite.between: expected two nodes such as [\"server\", \"client\"], got 3 (one that several hear has broadcast = true)",
        ),
        (
            "\"dish\", \"office\"]",
            "\"dish\", \"dish-4\"]",
            "many.toml:15: links.satellite.between: expected another node than \"dish-4\": it is there already",
        ),
        (
            "[\"hub\", \"dish\", \"office\"]",
            "[\"dish\", \"hub\"]",
            "many.toml:15: links.satellite.between: expected one node as the first, which sends: there are 20 dish",
        ),
        (
            "rate = \"10 Mbit/s\"",
            "rate = \"10 Mbit/s\"\ncompression = \"rfc1144\"",
            "many.toml:19: links.satellite.compression: a broadcast channel has none: it would need state at each receiver",
        ),
        (
            "rate = \"10 Mbit/s\"",
            "rate = \"10 Mbit/s\"\nforward = { tunnel = true }",
            "many.toml:19: links.satellite.forward.tunnel: a broadcast channel has none: it would need state at each receiver",
        ),
        (
            "to = \"all\"",
            "to = \"al\"",
            "many.toml:33: flows.news.to: no node is named \"al\"; known: station, dish, pc, hub, office; or a group, such as all",
        ),
        (
            "from = \"station\"",
            "from = \"pc\"",
            "many.toml:33: flows.news.to: expected a group of other hosts: pc is in \"all\"",
        ),
        (
            "from = \"station\"",
            "from = \"dish\"",
            "many.toml:32: flows.news.from: expected one host, such as dish-1: \"all\" is a group",
        ),
        (
            "to = \"all\"",
            "to = \"all\"\nspacing = \"1 s\"",
            "many.toml:34: flows.news.spacing: has no effect: all members of \"all\" receive at once",
        ),
        (
            "kind = \"carousel\", size = \"100 kB\", rate = \"1 Mbit/s\", files = 5",
            "kind = \"bulk\"",
            "many.toml:34: flows.news.app.kind: expected \"carousel\" or \"packets\": \"all\" is a group, to which only datagrams can be sent",
        ),
        (
            "kind = \"carousel\", size = \"100 kB\", rate = \"1 Mbit/s\", files = 5",
            "kind = \"packets\", size = \"1 kB\", interval = \"1 s\", transport = \"tcp\"",
            "many.toml:34: flows.news.app.transport: expected \"udp\": \"all\" is a group, and a TCP connection has two ends",
        ),
        (
            "files = 5",
            "files = 5, turns = 3, interval = \"2 s\"",
            "many.toml:34: flows.news.app.interval: expected at least \"2400 ms\", the duration of the turns of a file, got \"2 s\"",
        ),
        (
            "size = \"100 kB\"",
            "size = \"1 GB\"",
            "many.toml:34: flows.news.app.size: expected at most 100000 datagrams in a file, got 714286 of \"1400 B\" (or let a datagram be longer)",
        ),
        (
            "members = [\"dish\", \"pc\"]",
            "members = [\"dish\", \"dish-20\"]",
            "many.toml:30: groups.all.members: expected each host once, got \"dish-20\" again",
        ),
        (
            "members = [\"dish\", \"pc\"]",
            "members = [\"dish\", \"office\"]",
            "many.toml:33: flows.news.to: expected a host, got \"office\" in \"all\", a gateway: flows begin and end at hosts",
        ),
        (
            "members = [\"dish\", \"pc\"]",
            "members = []",
            "many.toml:30: groups.all.members: expected at least one host",
        ),
        (
            "[groups.all]",
            "[groups.dish]",
            "many.toml:29: groups.dish: expected another name: a node is called this, too",
        ),
        (
            "[gateways.hub]",
            "[gateways.hub]\nkind = \"split\"\nfacing = \"satellite\"",
            "many.toml:10: gateways.hub.facing: expected a link with one far end: \"satellite\" has many, and a split connection ends at the gateway across",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(TEXT.matches(from).count(), 1, "{from:?}");
        let said = parse(&TEXT.replace(from, to), &[]).expect_err(to);
        assert_eq!(&said, expected);
    }
}
