//! Several gateways in one table: sites behind a hub.

use bentpipe_scenario::Scenario;

/// Two sites, each with a split gateway that faces its own link, and a router's LAN of two hosts
/// behind it.
const COUNTED: &str = r#"
name = "sites"
duration = "20 s"
hosts = { centre = {}, desk = { count = 2 }, phone = { count = 2 } }
links.fibre = { between = ["centre", "hub"], rate = "1 Gbit/s", delay = "5 ms" }
gateways.hub = {}
gateways.site = { count = 2, kind = "split", facing = "sky", tcp = { congestion_control = "hybla" } }
links.sky = { between = ["hub", "site"], delay = "260 ms", forward = { rate = "5 Mbit/s" }, return = { rate = "1 Mbit/s" } }
links.desks = { between = ["site", "desk"], rate = "100 Mbit/s", delay = "1 ms" }
links.phones = { between = ["site", "phone"], rate = "100 Mbit/s", delay = "1 ms" }
flows.pull = { from = "desk", to = "centre", app = { kind = "bulk", direction = "download", size = "2 MB" } }
flows.call = { from = "phone", to = "centre", app = { kind = "voice", lasts = "15 s" } }
probes = { series = ["site.buffered", "sky.forward.queue"], interval = "1 s" }
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "sites.toml", &[]).map_err(|error| error.to_string())
}

/// Returns the same network without counts: each table twice.
fn written_out() -> String {
    let twice = |line: &str, names: &[&str]| {
        let one = |n: usize| {
            let mut line = line.replace("count = 2, ", "");
            for name in names {
                line = line.replace(&format!(".{name} "), &format!(".{name}-{n} "));
                line = line.replace(&format!("\"{name}\""), &format!("\"{name}-{n}\""));
            }
            line
        };
        format!("{}\n{}", one(1), one(2))
    };
    let names = [
        "site", "sky", "desks", "phones", "desk", "phone", "pull", "call",
    ];
    let lines = COUNTED.lines().map(|line| match line {
        _ if line.starts_with("hosts") => {
            "hosts = { centre = {}, desk-1 = {}, desk-2 = {}, phone-1 = {}, phone-2 = {} }".to_owned()
        }
        _ if line.starts_with("probes") => {
            r#"probes = { series = ["site-1.buffered", "site-2.buffered", "sky-1.forward.queue", "sky-2.forward.queue"], interval = "1 s" }"#.to_owned()
        }
        _ if names.iter().any(|name| line.contains(&format!(".{name} = "))) => twice(line, &names),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn counted_gateways_equal_gateways_written_out_one_by_one() {
    let counted = parse(COUNTED).unwrap_or_else(|error| panic!("{error}"));
    let text = written_out();
    let written = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let [counted, written] = [counted, written]
        .map(|scenario| serde_json::to_value(&scenario).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(counted["nodes"], written["nodes"]);
    assert_eq!(counted["links"], written["links"]);
    assert_eq!(counted["probes"], written["probes"]);
    for n in 0..4 {
        // Their tables have different names.
        let [flow, other] = [&counted, &written].map(|scenario| &scenario["flows"][n]);
        for key in ["name", "from", "to", "app", "route"] {
            assert_eq!(flow[key], other[key], "{key} of flow {n}");
        }
    }
    let sites: Vec<_> = counted["nodes"].as_array().into_iter().flatten().collect();
    assert_eq!(sites[7]["name"], "site-2");
    assert_eq!(sites[7]["facing"], "sky-2");
}

#[test]
fn impossible_counts_are_refused() {
    for (from, to, said) in [
        (
            "count = 2, kind",
            "count = 0, kind",
            "gateways.site.count: expected 1 to 60000 gateways, got 0",
        ),
        (
            "count = 2, kind",
            "count = 3, kind",
            "links.desks.between: expected the same count at both ends, got 3 site and 2 desk",
        ),
        (
            "count = 2, kind",
            "kind",
            "gateways.site.facing: expected one link: sky is sky-1 to sky-2",
        ),
        (
            "facing = \"sky\"",
            "facing = \"fibre\"",
            "gateways.site.facing: expected a link that ends at \"site\", got \"fibre\"",
        ),
        (
            "phone = { count = 2 }",
            "phone = { count = 2 }, site-2 = {}",
            "hosts.site-2: expected another name: count = 2 makes site-1 to site-2",
        ),
        (
            "gateways.hub = {}",
            "gateways.hub = {}\ngateways.desk = { count = 2 }",
            "gateways.desk: expected another name: a host is called this, too",
        ),
    ] {
        assert!(COUNTED.contains(from), "{from}");
        let text = COUNTED.replacen(from, to, 1);
        let text = if said.contains("is sky-1") {
            // One gateway, and a link to each of two desks.
            text.replace(r#"["hub", "site"]"#, r#"["site", "desk"]"#)
        } else {
            text
        };
        let error = parse(&text).err().unwrap_or_default();
        assert!(error.contains(said), "{error}\n{said}");
    }
}
