//! Errors in `--set` options.

use bentpipe_scenario::Scenario;

use super::{GEO, changed, refusal};

#[test]
fn overrides() {
    let cases: &[(&str, &str, &str)] = &[
        ("hosts.server.tcp.congestion_control", "reno", "accepted"),
        ("hosts.server.tcp.congestion_control", "hybla", "accepted"),
        ("hosts.server.tcp.slow_start", "hystart++", "accepted"),
        (
            "hosts.server.tcp.hybla",
            "{ reference_rtt = \"25 ms\" }",
            "accepted",
        ),
        (
            "hosts.server.tcp.congestion_control",
            "enhanced-hybla",
            r#"geo.toml:5: hosts.server.tcp.channel_capacity: missing; expected a rate such as "100 Mbit/s" for "enhanced-hybla""#,
        ),
        (
            "hosts.server.tcp.hybla.reference_rtt",
            "0 s",
            r#"--set hosts.server.tcp.hybla.reference_rtt=0 s: expected "1 ms" to "10 s", got "0 s""#,
        ),
        ("hosts.server.tcp.nagle", "false", "accepted"),
        ("links.satellite.forward.rate", "2 Mbit/s", "accepted"),
        (
            "links.satellite.forward.errors.bit_error_rate",
            "1e-7",
            "accepted",
        ),
        ("flows.download.app", "{ kind = \"bulk\" }", "accepted"),
        (
            "hosts.server.tcp.congestion_controll",
            "reno",
            r#"--set hosts.server.tcp.congestion_controll=reno: unknown key; did you mean "congestion_control"?"#,
        ),
        (
            "hosts.server.tpc.nagle",
            "true",
            r#"--set hosts.server.tpc.nagle=true: hosts.server.tpc: unknown key; did you mean "tcp"?"#,
        ),
        (
            "hosts.server.tcp.congestion_control",
            "cubik",
            r#"--set hosts.server.tcp.congestion_control=cubik: expected one of "reno", "westwood", "westwood-2001", "hybla", "enhanced-hybla", "cubic", "bbr", "bbr1", "bbr3", got "cubik"; did you mean "cubic"?"#,
        ),
        (
            "links.satellite.forward.rate",
            "2",
            r#"--set links.satellite.forward.rate=2: expected a rate such as "10 Mbit/s", got 2"#,
        ),
        (
            "links.satellite.rate",
            "2 Mbit/s",
            "--set links.satellite.rate=2 Mbit/s: has no effect: forward.rate and return.rate overrule it",
        ),
        (
            "duration.seconds",
            "3",
            r#"--set duration.seconds=3: "duration" is not a table: it has no keys to set"#,
        ),
        (
            "links.extra.rate",
            "1 Mbit/s",
            r#"--set links.extra.rate=1 Mbit/s: no link is named "extra"; known: satellite, access"#,
        ),
        (
            "links.satelite.forward.rate",
            "1 Mbit/s",
            r#"--set links.satelite.forward.rate=1 Mbit/s: no link is named "satelite"; did you mean "satellite"?"#,
        ),
        (
            "links.extra.between",
            "[\"hub\", \"client\"]",
            r#"--set links.extra.between=["hub", "client"]: links.extra.rate: missing; expected a rate such as "10 Mbit/s""#,
        ),
        (
            "hosts.servr.tcp.congestion_control",
            "bbr",
            r#"--set hosts.servr.tcp.congestion_control=bbr: no host is named "servr"; did you mean "server"?"#,
        ),
        (
            "hosts.hub.tcp.nagle",
            "true",
            r#"--set hosts.hub.tcp.nagle=true: no host is named "hub"; it is a gateway, gateways.hub"#,
        ),
        (
            "gateways.hubb.kind",
            "split",
            r#"--set gateways.hubb.kind=split: no gateway is named "hubb"; did you mean "hub"?"#,
        ),
        (
            "flows.dwnload.to",
            "server",
            r#"--set flows.dwnload.to=server: no flow is named "dwnload"; did you mean "download"?"#,
        ),
        (
            "flows.upload.to",
            "server",
            r#"--set flows.upload.to=server: flows.upload.from: missing; expected the name of the host that sends"#,
        ),
        (
            "flows.upload.start",
            "1 s",
            r#"--set flows.upload.start=1 s: no flow is named "upload"; known: download"#,
        ),
        (
            "links.access.between",
            "[\"hub\", \"clinet\"]",
            r#"--set links.access.between=["hub", "clinet"]: no node is named "clinet"; did you mean "client"?"#,
        ),
        (
            "flows.download.app",
            "{ kind = \"bulk\", sise = \"1 MB\" }",
            r#"--set flows.download.app={ kind = "bulk", sise = "1 MB" }: flows.download.app.sise: unknown key; did you mean "size"?"#,
        ),
        (
            "hosts..tcp",
            "1",
            "--set hosts..tcp=1: expected a key such as hosts.server.tcp.congestion_control",
        ),
        (
            "",
            "1",
            "--set =1: expected a key such as hosts.server.tcp.congestion_control",
        ),
        (
            "name",
            "two\nlines",
            r#"--set name=two\nlines: expected a name of letters, digits, "-" and "_" (at most 64), got "two\nlines""#,
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(
            &refusal(GEO, &[(key, value)]),
            expected,
            "--set {key}={value}"
        );
    }
    // Several options may describe a new node, but a node without links is refused.
    let host = ("hosts.third.tcp.nagle", "false");
    let link = ("links.more.between", "[\"hub\", \"third\"]");
    let rate = ("links.more.rate", "1 Mbit/s");
    let delay = ("links.more.delay", "1 ms");
    assert_eq!(refusal(GEO, &[host, link, rate, delay]), "accepted");
    assert_eq!(
        refusal(GEO, &[host, ("hosts.third.tcp.mss", "500 B")]),
        r#"--set hosts.third.tcp.nagle=false: no host is named "third"; known: server, client"#
    );
    // The last option counts, and an error in the file is attributed to the file.
    let twice = [("seed", "x"), ("seed", "9")];
    assert_eq!(Scenario::parse(GEO, "geo.toml", &twice).unwrap().seed, 9);
    assert_eq!(
        refusal(&changed("seed = 7", "sed = 7"), &twice),
        r#"geo.toml:3: sed: unknown key; did you mean "seed"?"#
    );
}
