//! Gateways.

use super::{GEO, changed, refusal};

#[test]
fn split_gateways() {
    let gateway = r#"kind = "router""#;
    let line = |keys: &str| format!("kind = \"split\"\n{keys}");
    for (keys, message) in [
        (
            "",
            r#"geo.toml:12: gateways.hub.facing: missing; expected the name of a link such as "satellite""#,
        ),
        (
            r#"facing = "satelite""#,
            r#"geo.toml:14: gateways.hub.facing: no link is named "satelite"; did you mean "satellite"?"#,
        ),
        (
            r#"facing = "access""#,
            "geo.toml:14: gateways.hub.facing: expected one link: access is access-1 to access-3",
        ),
        (
            "facing = \"satellite\"\ntcp = { mss = \"1 B\" }",
            r#"geo.toml:15: gateways.hub.tcp.mss: expected "64 B" to "65000 B", got "1 B""#,
        ),
        (
            "facing = \"satellite\"\nhost_tcp = { recovery = \"fack\", sack = false }",
            "geo.toml:15: gateways.hub.host_tcp.recovery: needs selective acknowledgments, and sack is false",
        ),
        (
            "facing = \"satellite\"\nmemory = \"1 kB\"",
            r#"geo.toml:15: gateways.hub.memory: expected "256 KiB" to "1024 GiB", got "1 kB""#,
        ),
        (
            "facing = \"satellite\"\nonly = { ports = [0] }",
            r#"geo.toml:15: gateways.hub.only.ports: expected a port such as 80, or ports such as "8000-8999", got 0"#,
        ),
        (
            "facing = \"satellite\"\nonly = { ports = [\"90-80\"] }",
            r#"geo.toml:15: gateways.hub.only.ports: expected a port such as 80, or ports such as "8000-8999", got "90-80""#,
        ),
        (
            "facing = \"satellite\"\nonly = { ports = [] }",
            "geo.toml:15: gateways.hub.only.ports: has no effect: no ports stands in it",
        ),
        (
            "facing = \"satellite\"\nexcept = { hosts = [\"sever\"] }",
            r#"geo.toml:15: gateways.hub.except.hosts: no node is named "sever"; did you mean "server"?"#,
        ),
        (
            "facing = \"satellite\"\nprocessing = { time = \"0 s\" }",
            r#"geo.toml:15: gateways.hub.processing.time: expected more than "0 s" and at most "1 s", got "0 s""#,
        ),
        (
            "facing = \"satellite\"\nprocessing = { time = \"1 ms\", queue = \"9 kB\" }",
            r#"geo.toml:15: gateways.hub.processing.queue: expected packets such as "100 packets", got "9 kB""#,
        ),
        (
            "facing = \"satellite\"\nsource_connections = 0",
            "geo.toml:15: gateways.hub.source_connections: expected at least 1, got 0",
        ),
        (
            "facing = \"satellite\"\nsource_connections = 5\nmultiplex = 4",
            r#"geo.toml:15: gateways.hub.source_connections: cannot be combined with "multiplex", whose connections are not counted"#,
        ),
        (
            "facing = \"satellite\"\nrate_limits = [{ dscp = [64], rate = \"1 Mbit/s\" }]",
            "geo.toml:15: gateways.hub.rate_limits.dscp: expected 0 to 63, got 64",
        ),
        (
            "facing = \"satellite\"\nrate_limits = [{ class = { ports = [] }, rate = \"1 Mbit/s\" }]",
            "geo.toml:15: gateways.hub.rate_limits.class.ports: has no effect: no ports stands in it",
        ),
        (
            "facing = \"satellite\"\nrate_limits = [{ rate = \"1 Mbit/s\", longest_wait = \"11 s\" }]",
            r#"geo.toml:15: gateways.hub.rate_limits.longest_wait: expected at most "10 s", got "11 s""#,
        ),
        (
            "facing = \"satellite\"\nmultiplex = 17",
            "geo.toml:15: gateways.hub.multiplex: expected 1 to 16, got 17",
        ),
        (
            "facing = \"satellite\"\nmultiplex = 4",
            r#"geo.toml:15: gateways.hub.multiplex: expected the same at the other end of "satellite": "server" is a host"#,
        ),
        (
            "facing = \"satellite\"\ncrashes = [{ at = \"1 s\", lasts = \"2 s\" }, { at = \"3 s\" }]",
            r#"geo.toml:15: gateways.hub.crashes.at: expected a time after "3 s", after its restart, got "3 s""#,
        ),
        (
            "facing = \"satellite\"\nidle_timeout = \"1 ms\"",
            r#"geo.toml:15: gateways.hub.idle_timeout: expected at least "1 s", got "1 ms""#,
        ),
        (
            "facing = \"satellite\"\nset_up = \"late\"",
            r#"geo.toml:15: gateways.hub.set_up: expected one of "end-to-end", "early", got "late""#,
        ),
    ] {
        assert_eq!(refusal(&changed(gateway, &line(keys)), &[]), message);
    }
    // A router does not have the series of a split gateway; series of unknown nodes do not exist.
    assert_eq!(
        refusal(&changed(gateway, "facing = \"satellite\""), &[]),
        r#"geo.toml:13: gateways.hub.facing: has no effect: the gateway's kind is "router""#
    );
    let series = |name: &str| changed("\"satellite.forward.queue\"", &format!("\"{name}\""));
    assert_eq!(
        refusal(&series("hub.buffered"), &[]),
        r#"geo.toml:34: probes.series: "hub" is a gateway of kind "router": it has no series"#
    );
    let split = [
        ("gateways.hub.kind", "\"split\""),
        ("gateways.hub.facing", "\"satellite\""),
    ];
    assert_eq!(
        refusal(&series("hub.bufered"), &split),
        r#"geo.toml:34: probes.series: no series of a "split" gateway is "bufered"; did you mean "buffered"?"#
    );
    assert_eq!(refusal(&series("hub.buffered"), &split), "accepted");
    // A link that ends elsewhere.
    let elsewhere = GEO.replace(
        "[links.access]",
        "[links.side]\nbetween = [\"server\", \"client-1\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[links.access]",
    );
    let split = [
        ("gateways.hub.kind", "\"split\""),
        ("gateways.hub.facing", "\"side\""),
    ];
    assert_eq!(
        refusal(&elsewhere, &split),
        r#"--set gateways.hub.facing="side": expected a link that ends at "hub", got "side""#
    );
}

/// Two gateways with `multiplex` must agree on it.
#[test]
fn gateways_that_face_each_other() {
    let with = |far: &str| {
        let text = GEO.replace(
            "kind = \"router\"",
            &format!("kind = \"split\"\nfacing = \"sky\"\nmultiplex = 4\n[gateways.far]\n{far}"),
        );
        let text = text.replace(
            "[links.access]\nbetween = [\"hub\"",
            "[links.sky]\nbetween = [\"hub\", \"far\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
             [links.access]\nbetween = [\"far\"",
        );
        refusal(&text, &[])
    };
    let split = "kind = \"split\"\nfacing = \"sky\"";
    assert_eq!(with(&format!("{split}\nmultiplex = 4")), "accepted");
    let line = r#"geo.toml:15: gateways.hub.multiplex: expected the same at the other end of "sky": "far""#;
    for (far, what) in [
        ("kind = \"router\"".to_owned(), "is a router"),
        (split.to_owned(), "has no multiplex"),
        (format!("{split}\nmultiplex = 2"), "has 2"),
        (
            "kind = \"hybrid\"\nfacing = \"sky\"".to_owned(),
            "is a hybrid",
        ),
    ] {
        assert_eq!(with(&far), format!("{line} {what}"));
    }
    let one_way = GEO
        .replace(
            "kind = \"router\"",
            "kind = \"split\"\nfacing = \"satellite\"\nmultiplex = 1",
        )
        .replace(
            "return = { rate = \"64 kbit/s\", delay = \"200 ms\" }",
            "one_way = true",
        )
        .replace(
            "between = [\"server\", \"hub\"]",
            "between = [\"hub\", \"server\"]",
        );
    assert_eq!(
        refusal(&one_way, &[]),
        r#"geo.toml:15: gateways.hub.multiplex: expected a link with two directions: "satellite" is one_way"#
    );
}
