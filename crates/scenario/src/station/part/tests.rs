use super::*;
use crate::station::links::{OPEN_RATE, open};
use crate::{Acks, Gateway};

const SCENARIO: &str = r#"
name = "office"
duration = "60 s"
hosts = { server = {}, client = {} }

[gateways.hub]
kind = "split"
facing = "satellite"
memory = "3 MiB"
processing = { time = "10 us" }

[gateways.terminal]
kind = "hybrid"
facing = "satellite"

[links.lan]
between = ["server", "hub"]
rate = "100 Mbit/s"
delay = "1 ms"

[links.satellite]
between = ["hub", "terminal"]
forward = { rate = "10 Mbit/s", delay = "250 ms", errors = { packet_loss_rate = 0.01 } }
return = { rate = "64 kbit/s", delay = "250 ms", acks = { kind = "reconstruction" } }

[links.home]
between = ["terminal", "client"]
rate = "100 Mbit/s"
delay = "1 ms"

[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
"#;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    Scenario::parse(SCENARIO, "office.toml", settings).expect("a scenario")
}

fn side(link: &str, shaped: bool) -> Side {
    Side {
        link: link.to_owned(),
        other_way: None,
        mtu: 1400,
        shaped,
    }
}

fn refusal(settings: &[(&str, &str)], name: &str, sides: [Side; 2]) -> String {
    let error = Station::gateway(&scenario(settings), name, &sides, None).expect_err("a refusal");
    error.in_file("office.toml", SCENARIO)
}

#[test]
fn a_gateway_has_its_settings_between_open_links() {
    let sides = [side("satellite", false), side("lan", false)];
    let station = Station::gateway(&scenario(&[]), "hub", &sides, None).expect("a station");
    let part = &station.scenario;
    let names: Vec<&str> = part.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["(satellite)", "(lan)", "hub"]);
    let between: Vec<[usize; 2]> = part.links.iter().map(|link| link.between).collect();
    // As in the file: from the hub, and to it.
    assert_eq!(between, [[2, 0], [1, 2]]);
    for (_, direction) in part.links.iter().flat_map(Link::directions) {
        assert_eq!(*direction, open());
    }
    let NodeKind::Gateway(Gateway::Split(split)) = &part.nodes[2].kind else {
        panic!("a split gateway");
    };
    assert_eq!(split.facing, 0);
    assert_eq!(split.memory.get(), 3 << 20);
    assert_eq!(split.processing, None);
    // Packets that a gateway creates fit the interfaces; for forwarded packets of a router the
    // kernel checks it.
    let mtus = |part: &Scenario| part.links.iter().map(|link| link.mtu).collect::<Vec<_>>();
    assert_eq!(mtus(part), [Some(1400); 2]);
    let router = scenario(&[("gateways.hub", "{}")]);
    let routing = Station::gateway(&router, "hub", &sides, None).expect("a station");
    assert_eq!(mtus(&routing.scenario), [None; 2]);
    assert_eq!(
        station.notes,
        ["gateways.hub.processing: no effect, a real processor takes its own time"]
    );
    assert!(station.simulated.is_empty());
}

#[test]
fn a_shaped_link_has_the_transmitter_and_no_path() {
    let sides = [side("lan", false), side("satellite", true)];
    let file = scenario(&[]);
    let station = Station::gateway(&file, "hub", &sides, None).expect("a station");
    let satellite = &station.scenario.links[1];
    assert_eq!(satellite.forward.rate.bits_per_second(), 10_000_000);
    assert_eq!(satellite.forward.queue, file.links[1].forward.queue);
    assert_eq!(satellite.forward.delay, Span::ZERO);
    assert_eq!(satellite.forward.errors, open().errors);
    // This end fills in the acknowledgments that the other end has removed.
    let back = satellite.backward.as_ref().expect("both directions");
    assert!(matches!(back.acks, Acks::Reconstruction { .. }));
    assert_eq!(back.rate, OPEN_RATE);
    assert_eq!(station.simulated, ["satellite.forward"]);
    assert!(
        station
            .notes
            .iter()
            .any(|note| note.contains("links.satellite.forward.errors"))
    );
    // The return direction leaves at the terminal.
    let sides = [side("satellite", true), side("home", false)];
    let station = Station::gateway(&file, "terminal", &sides, None).expect("a station");
    let back = station.scenario.links[0]
        .backward
        .as_ref()
        .expect("both directions");
    assert!(matches!(back.acks, Acks::Suppression(_)));
    assert_eq!(back.rate.bits_per_second(), 64_000);
    assert_eq!(station.simulated, ["satellite.return"]);
}

#[test]
fn persistent_connections_have_their_own_addresses() {
    let file = scenario(&[
        ("gateways.hub.multiplex", "2"),
        ("gateways.terminal.kind", "split"),
        ("gateways.terminal.multiplex", "2"),
    ]);
    let addresses = |own: &str, peer: &str| Addresses {
        own: own.parse().expect("an address"),
        peer: peer.parse().expect("an address"),
    };
    let (lower, higher) = ("192.0.2.250", "198.51.100.250");
    let at = |name: &str, other: &str, between| {
        let sides = [side(other, false), side("satellite", false)];
        Station::gateway(&file, name, &sides, Some(between)).expect("a station")
    };
    // The node that stands for the other gateway is on the facing side; hosts are on the other
    // side.
    let hub = at("hub", "lan", addresses(lower, higher));
    let ends = [(2, lower), (1, higher)].map(|(node, ip)| (node, ip.parse().expect("an address")));
    assert_eq!(hub.persistent_connections(), Some(ends));
    let NodeKind::Gateway(Gateway::Split(split)) = &hub.scenario.nodes[2].kind else {
        panic!("a split gateway");
    };
    let real = split.multiplex.and_then(|with| with.real);
    assert_eq!(real.map(|real| real.hosts), Some(0));
    let terminal = at("terminal", "home", addresses(higher, lower));
    assert!(terminal.persistent_connections().is_some());
    for (own, peer, wrong) in [
        (lower, "2001:db8::1", "two versions"),
        (lower, lower, "no addresses"),
        (lower, "0.0.0.0", "no addresses"),
        (lower, "224.0.0.1", "no addresses"),
        ("127.0.0.1", lower, "no addresses"),
    ] {
        let sides = [side("lan", false), side("satellite", false)];
        let error = Station::gateway(&file, "hub", &sides, Some(addresses(own, peer)));
        let said = error
            .expect_err("a refusal")
            .in_file("office.toml", SCENARIO);
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn a_link_has_its_settings_in_both_directions() {
    let file = scenario(&[]);
    for (ends, between) in [(["hub", "terminal"], [0, 1]), (["terminal", "hub"], [1, 0])] {
        let station = Station::link(&file, "satellite", ends).expect("a station");
        let [link] = &station.scenario.links[..] else {
            panic!("one link");
        };
        assert_eq!(link.between, between);
        assert_eq!(link.forward, file.links[1].forward);
        assert_eq!(link.backward, file.links[1].backward);
        assert_eq!(station.simulated, ["satellite.forward", "satellite.return"]);
    }
}

#[test]
fn impossible_parts_are_refused_with_their_position() {
    let both = || [side("lan", false), side("satellite", true)];
    /// `--set` options, the gateway, its sides, and the beginning of the expected line.
    type Case = (
        &'static [(&'static str, &'static str)],
        &'static str,
        [Side; 2],
        &'static str,
    );
    let cases: [Case; 13] = [
        (
            &[("links.satellite.forward.access", "{ kind = \"on-demand\" }")],
            "hub",
            both(),
            "office.toml:23: links.satellite.forward.access: the real carrier's hub grants capacity",
        ),
        (
            &[],
            "hup",
            both(),
            "no gateway is \"hup\"; did you mean \"hub\"?",
        ),
        (
            &[],
            "server",
            both(),
            "no gateway is \"server\"; known: hub, terminal",
        ),
        (
            &[],
            "hub",
            [side("lan", false), side("home", false)],
            "no link of \"hub\" is \"home\"; known: lan, satellite",
        ),
        (
            &[],
            "hub",
            [side("lan", false), side("lan", false)],
            "\"lan\" was given twice: a gateway stands between two links",
        ),
        (
            &[("links.satellite.forward.compression", "rfc1144")],
            "hub",
            both(),
            "office.toml:23: links.satellite.forward.compression: a real interface carries",
        ),
        (
            &[("links.satellite.forward.tunnel", "true")],
            "hub",
            both(),
            "office.toml:23: links.satellite.forward.tunnel: not between real networks",
        ),
        (
            &[("links.satellite.return.acks", "{ kind = \"compaction\" }")],
            "terminal",
            [side("satellite", true), side("home", false)],
            "office.toml:24: links.satellite.return.acks: compaction is a tunnel",
        ),
        // The same holds at the receiving end of the acknowledgments, which would have to restore
        // them.
        (
            &[("links.satellite.return.acks", "{ kind = \"compaction\" }")],
            "hub",
            both(),
            "office.toml:24: links.satellite.return.acks: compaction is a tunnel",
        ),
        (
            &[("links.satellite.return.compression", "rfc1144")],
            "hub",
            both(),
            "office.toml:24: links.satellite.return.compression: a real interface carries",
        ),
        (
            &[("links.satellite.return.tunnel", "true")],
            "hub",
            both(),
            "office.toml:24: links.satellite.return.tunnel: not between real networks",
        ),
        (
            &[("gateways.hub.only", "{ hosts = [\"client\"] }")],
            "hub",
            both(),
            "office.toml:6: gateways.hub.only.hosts: which addresses",
        ),
        (
            &[("gateways.terminal.facing", "home")],
            "terminal",
            [side("satellite", false), side("satellite", false)],
            "\"satellite\" was given twice",
        ),
    ];
    for (settings, name, sides, expected) in cases {
        let line = refusal(settings, name, sides);
        assert!(line.starts_with(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
    let wrong = Station::link(&scenario(&[]), "satellite", ["hub", "client"]);
    let expected =
        "link \"satellite\" is between \"hub\" and \"terminal\", not \"hub\" and \"client\"";
    assert_eq!(wrong.expect_err("a refusal").to_string(), expected);
}

#[test]
fn classes_of_real_packets_depend_on_ports_only() {
    let settings = |class: &'static str| {
        [
            ("classes.calls", class),
            (
                "links.satellite.forward.queue",
                "{ kind = \"priority\", classes = [\"calls\"] }",
            ),
        ]
    };
    let sides = [side("lan", false), side("satellite", true)];
    let by_ports = scenario(&settings("{ ports = [5060] }"));
    assert!(Station::gateway(&by_ports, "hub", &sides, None).is_ok());
    let line = refusal(&settings("{ flows = [\"download\"] }"), "hub", sides);
    assert_eq!(
        line,
        "office.toml: classes.calls.flows: real packets are distinguished by ports only; expected \"ports\""
    );
}

/// A gateway with a dish, by which it receives, and a modem, by which it sends.
#[test]
fn two_one_way_links_are_one_side() {
    let text = r#"
name = "dish"
duration = "10 s"
hosts = { server = {}, client = {} }
[gateways.provider]
[gateways.terminal]
kind = "split"
facing = "modem"
[links.backbone]
between = ["server", "provider"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.dish]
between = ["provider", "terminal"]
one_way = true
rate = "10 Mbit/s"
delay = "250 ms"
[links.modem]
between = ["terminal", "provider"]
one_way = true
rate = "56 kbit/s"
delay = "50 ms"
[links.lan]
between = ["terminal", "client"]
rate = "100 Mbit/s"
delay = "1 ms"
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
"#;
    let file = Scenario::parse(text, "dish.toml", &[]).expect("a scenario");
    for first in ["dish", "modem"] {
        let other = if first == "dish" { "modem" } else { "dish" };
        let names = [first, "lan", other].map(str::to_owned);
        let sides = Station::links_by_side(&file, "terminal", &names).expect("links");
        let expected = [
            (first.to_owned(), Some(other.to_owned())),
            ("lan".to_owned(), None),
        ];
        assert_eq!(sides, expected);
        let mut satellite = side(first, true);
        satellite.other_way = Some(other.to_owned());
        let sides = [satellite, side("lan", false)];
        let station = Station::gateway(&file, "terminal", &sides, None).expect("a station");
        assert_eq!(station.facing_end(), Some(0));
        // What leaves has the modem's rate.
        let link = &station.scenario.links[0];
        let leaves = link
            .directions()
            .find(|(way, _)| (*way == Way::Forward) == (link.between[0] == 2));
        let (way, direction) = leaves.expect("a direction");
        assert_eq!(direction.rate.bits_per_second(), 56_000);
        assert_eq!(station.simulated, [format!("{first}.{way}")]);
    }
    let alone = [side("modem", false), side("lan", false)];
    let error = Station::gateway(&file, "terminal", &alone, None).expect_err("a refusal");
    assert!(error.in_file("dish.toml", text).contains("both directions"));
}
