//! Random networks, each the text of a scenario file generated from a seed: every kind of node,
//! application, impairment, queue, access and TCP profile.

use std::fmt::Write;

use bentpipe_scenario::Scenario;
use bentpipe_types::RandomStream;

/// Random draws from one seed.
pub(crate) struct Dice(RandomStream);

impl Dice {
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        Self(RandomStream::new(seed, "network", purpose))
    }

    /// Returns a number from 0 to `end` - 1.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.bits() % end.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns a time in this range: each doubling is equally likely, and few are round.
    fn time(&mut self, least_us: u64, most_us: u64) -> String {
        let doublings = u64::from((most_us / least_us).ilog2()) + 1;
        let begin = least_us << self.below(doublings);
        format!("{} us", (begin + self.below(begin)).min(most_us))
    }
}

/// A network: its scenario file.
pub(crate) struct Network {
    pub(crate) text: String,
    /// Error messages of the refused files before the first valid one.
    pub(crate) refused: Vec<String>,
}

/// Creates the network of this seed. Files that the reader refuses are drawn again.
pub(crate) fn network(seed: u64) -> Network {
    let mut refused = Vec::new();
    for attempt in 0..200 {
        let mut dice = Dice::new(seed, &format!("attempt {attempt}"));
        let text = Draft::draw(&mut dice);
        match Scenario::parse(&text, "random.toml", &[]) {
            Ok(_) => return Network { text, refused },
            Err(error) => refused.push(error.to_string()),
        }
    }
    panic!("network {seed}: nothing that the reader accepts: {refused:#?}");
}

/// An unfinished file: its tables, and the names that other tables may use.
struct Draft {
    text: String,
    /// Pairs of hosts that a flow may join.
    pairs: Vec<(&'static str, &'static str)>,
    /// A group, and the host that may send to it.
    group: Option<(&'static str, &'static str)>,
    duration_s: u64,
}

impl Draft {
    fn draw(dice: &mut Dice) -> String {
        let duration_s = dice.pick(&[2, 5, 10, 20, 40]);
        let mut draft = Self {
            text: format!(
                "name = \"random\"\nduration = \"{duration_s} s\"\nseed = {}\n",
                dice.below(1 << 40)
            ),
            pairs: Vec::new(),
            group: None,
            duration_s,
        };
        if dice.one_in(8) {
            draft.line("ip = \"v6\"");
        }
        draft.line("[classes.calls]\napplications = [\"voice\", \"video-call\", \"ping\"]");
        match dice.below(8) {
            0 => draft.two_hosts(dice),
            1 => draft.routers(dice),
            2 | 3 => draft.split(dice),
            4 => draft.hybrid(dice),
            5 => draft.broadcast(dice),
            6 => draft.on_demand(dice),
            _ => draft.dish_and_modem(dice),
        }
        draft.flows(dice);
        draft.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn host(&mut self, name: &str, count: Option<u64>, dice: &mut Dice) {
        self.line(&format!("[hosts.{name}]"));
        if let Some(count) = count {
            self.line(&format!("count = {count}"));
        }
        if dice.one_in(8) {
            let time = dice.time(10, 2_000);
            self.line(&format!("processing = {{ time = \"{time}\" }}"));
        }
        let tcp = tcp(dice);
        self.line(&format!("tcp = {{ {tcp} }}"));
    }

    /// Adds a link with both directions and with keys of its own.
    fn link(&mut self, name: &str, between: [&str; 2], dice: &mut Dice) {
        self.line(&format!("[links.{name}]"));
        self.line(&format!(
            "between = [\"{}\", \"{}\"]",
            between[0], between[1]
        ));
        for line in of_link(dice) {
            self.line(&line);
        }
        for way in ["forward", "return"] {
            let mut keys = direction(dice, self.duration_s);
            if dice.one_in(8) {
                keys.push(access(dice, None));
            }
            self.line(&format!("{way} = {{ {} }}", keys.join(", ")));
        }
    }

    /// Adds a link with one direction.
    fn one_way(&mut self, name: &str, between: [&str; 2], more: &[&str], dice: &mut Dice) {
        self.line(&format!("[links.{name}]"));
        self.line(&format!(
            "between = [\"{}\", \"{}\"]",
            between[0], between[1]
        ));
        self.line("one_way = true");
        for line in more {
            self.line(line);
        }
        for key in direction(dice, self.duration_s) {
            self.line(&key);
        }
    }

    fn two_hosts(&mut self, dice: &mut Dice) {
        self.host("a", None, dice);
        self.host("b", None, dice);
        self.link("one", ["a", "b"], dice);
        if dice.one_in(5) {
            self.link("other", ["a", "b"], dice);
        }
        self.pairs = vec![("a", "b"), ("b", "a")];
    }

    fn routers(&mut self, dice: &mut Dice) {
        self.host("a", None, dice);
        self.host("b", Some(1 + dice.below(3)), dice);
        self.host("c", None, dice);
        self.line("[gateways.left]");
        self.line("[gateways.right]");
        if dice.one_in(3) {
            self.line("processing = { time = \"100 us\", queue = \"20 packets\" }");
        }
        self.link("first", ["a", "left"], dice);
        self.link("trunk", ["left", "right"], dice);
        self.link("last", ["right", "b"], dice);
        self.link("cross", ["right", "c"], dice);
        self.pairs = vec![("a", "b"), ("b", "a"), ("c", "a"), ("b", "c")];
    }

    fn split(&mut self, dice: &mut Dice) {
        self.host("server", None, dice);
        self.host("client", Some(1 + dice.below(3)), dice);
        let pair = !dice.one_in(3);
        let multiplex = pair && dice.one_in(2);
        for name in ["hub", "terminal"] {
            self.line(&format!("[gateways.{name}]"));
            if name == "terminal" && !pair {
                continue;
            }
            self.line("kind = \"split\"\nfacing = \"satellite\"");
            if multiplex {
                self.line("multiplex = 2");
            }
            for (one_in, key) in [
                (3, "set_up = \"early\""),
                (3, "close = \"early\""),
                (3, "warm_path = true"),
                (5, "memory = \"300 KiB\""),
                (5, "idle_timeout = \"2 s\""),
                (5, "processing = { time = \"50 us\" }"),
                (6, "crashes = [{ at = \"1500 ms\", lasts = \"300 ms\" }]"),
            ] {
                if dice.one_in(one_in) {
                    self.line(key);
                }
            }
            if dice.one_in(2) {
                let tcp = tcp(dice);
                self.line(&format!("tcp = {{ {tcp} }}"));
            }
        }
        self.link("lan", ["server", "hub"], dice);
        self.link("satellite", ["hub", "terminal"], dice);
        self.link("home", ["terminal", "client"], dice);
        self.pairs = vec![("server", "client"), ("client", "server")];
    }

    fn hybrid(&mut self, dice: &mut Dice) {
        self.host("server", None, dice);
        self.host("home", None, dice);
        self.line("[gateways.hub]\nkind = \"hybrid\"\nfacing = \"satellite\"");
        for (one_in, key) in [
            (4, "store = \"200 kB\""),
            (4, "anticipation = \"strict\""),
            (4, "adaptive_timeout = true"),
            (4, "ack_every = 2"),
            (5, "memory = \"300 KiB\""),
            (5, "idle_timeout = \"2 s\""),
            (5, "give_up = \"3 s\""),
            (5, "processing = { time = \"50 us\" }"),
            (6, "crashes = [{ at = \"1500 ms\", lasts = \"300 ms\" }]"),
            (4, "tcp = { congestion_control = \"hybla\" }"),
        ] {
            if dice.one_in(one_in) {
                self.line(key);
            }
        }
        self.link("lan", ["server", "hub"], dice);
        self.link("satellite", ["hub", "home"], dice);
        self.pairs = vec![("server", "home"), ("home", "server")];
    }

    fn broadcast(&mut self, dice: &mut Dice) {
        self.host("station", None, dice);
        self.host("terminal", Some(2 + dice.below(3)), dice);
        self.line("[gateways.hub]");
        self.link("studio", ["station", "hub"], dice);
        let channel = ["broadcast = true"];
        self.one_way("satellite", ["hub", "terminal"], &channel, dice);
        self.one_way("modem", ["terminal", "hub"], &[], dice);
        self.line("[groups.everybody]\nmembers = [\"terminal\"]");
        self.group = Some(("station", "everybody"));
        self.pairs = vec![("station", "terminal"), ("terminal", "station")];
    }

    fn on_demand(&mut self, dice: &mut Dice) {
        self.host("internet", None, dice);
        self.host("home", Some(1 + dice.below(4)), dice);
        self.host("office", None, dice);
        self.line("[gateways.hub]");
        let frame = dice.pick(&["5 ms", "26.5 ms", "100 ms"]);
        let rate = dice.pick(&["4 Mbit/s", "1 Mbit/s", "10 Mbit/s"]);
        self.line(&format!(
            "[carriers.uplink]\nrate = \"{rate}\"\nframe = \"{frame}\"\nprocessing = \"{} ms\"",
            dice.below(30)
        ));
        self.link("backbone", ["internet", "hub"], dice);
        for (name, host) in [("homes", "home"), ("offices", "office")] {
            self.line(&format!("[links.{name}]\nbetween = [\"{host}\", \"hub\"]"));
            self.line("rate = \"1 Mbit/s\"");
            let delay = dice.pick(&["5 ms", "250 ms", "9983 us"]);
            self.line(&format!("delay = \"{delay}\""));
            let mut forward = vec![access(dice, Some("uplink"))];
            forward.extend(queue(dice));
            let fades = "fading = { clear = \"exponential(2 s)\", faded = \"exponential(1 s)\", rate = \"300 kbit/s\" }";
            let outages = "outages = [{ at = \"2 s\", lasts = \"500 ms\", every = \"3 s\" }]";
            for (one_in, key) in [(3, fades), (4, outages)] {
                if dice.one_in(one_in) {
                    forward.push(key.to_owned());
                }
            }
            self.line(&format!("forward = {{ {} }}", forward.join(", ")));
        }
        self.pairs = vec![
            ("home", "internet"),
            ("internet", "home"),
            ("office", "internet"),
            ("office", "home"),
        ];
    }

    fn dish_and_modem(&mut self, dice: &mut Dice) {
        self.host("server", None, dice);
        self.host("home", None, dice);
        let kind = dice.pick(&["router", "hybrid", "split"]);
        self.line(&format!("[gateways.hub]\nkind = \"{kind}\""));
        if kind != "router" {
            self.line("facing = \"dish\"");
        }
        self.link("lan", ["server", "hub"], dice);
        self.one_way("dish", ["hub", "home"], &[], dice);
        self.one_way("modem", ["home", "hub"], &[], dice);
        self.pairs = vec![("server", "home"), ("home", "server")];
    }

    fn flows(&mut self, dice: &mut Dice) {
        let count = 1 + dice.below(3);
        for number in 0..count {
            let (from, to, app) = match self.group {
                Some((from, to)) if number == 0 => {
                    let app = dice.pick(&[
                        "{ kind = \"carousel\", size = \"100 kB\", rate = \"500 kbit/s\", turns = 2, files = 2 }",
                        "{ kind = \"packets\", size = \"500 B\", interval = \"20 ms\", lasts = \"2 s\" }",
                    ]);
                    (from, to, app.to_owned())
                }
                _ => {
                    let (from, to) = dice.pick(&self.pairs);
                    (from, to, app(dice))
                }
            };
            self.line(&format!(
                "[flows.f{number}]\nfrom = \"{from}\"\nto = \"{to}\""
            ));
            if dice.one_in(2) {
                let start = dice.time(100, 2_000_000);
                self.line(&format!("start = \"{start}\""));
            }
            self.line(&format!("app = {app}"));
        }
        if dice.one_in(6) {
            let (from, to) = dice.pick(&self.pairs);
            self.line("[mixes.user]\npause = \"exponential(500 ms)\"\nping = 1\nmail = 1");
            self.line("request-response = { share = 1, app = { kind = \"request-response\", response = \"3 kB\", pause = \"50 ms\", requests = 3 } }");
            self.line(&format!(
                "[flows.user]\nfrom = \"{from}\"\nto = \"{to}\"\nmix = \"user\""
            ));
        }
    }
}

/// Returns the settings of a TCP.
fn tcp(dice: &mut Dice) -> String {
    let mut keys = Vec::new();
    let mut key = |dice: &mut Dice, one_in: u64, name: &str, values: &[&str]| {
        if dice.one_in(one_in) {
            keys.push(format!("{name} = {}", dice.pick(values)));
        }
    };
    key(dice, 2, "profile", &["\"linux\""]);
    let rules = [
        "\"reno\"",
        "\"westwood\"",
        "\"hybla\"",
        "\"cubic\"",
        "\"bbr\"",
        "\"bbr3\"",
    ];
    key(dice, 2, "congestion_control", &rules);
    key(dice, 5, "pacing", &["\"on\"", "\"off\"", "\"2 Mbit/s\""]);
    key(dice, 6, "sack", &["false"]);
    key(dice, 6, "timestamps", &["false"]);
    key(dice, 6, "delayed_ack", &["\"off\"", "\"200 ms\""]);
    key(dice, 6, "nagle", &["false"]);
    key(dice, 4, "fast_open", &["true"]);
    key(dice, 4, "ecn", &["\"request\"", "\"off\""]);
    key(dice, 6, "time_wait", &["\"0 s\"", "\"500 ms\"", "\"5 s\""]);
    key(
        dice,
        6,
        "receive_buffer",
        &["\"8 KiB\"", "\"64 KiB\"", "\"1 MiB\""],
    );
    key(
        dice,
        6,
        "send_buffer",
        &["\"8 KiB\"", "\"64 KiB\"", "\"1 MiB\""],
    );
    key(dice, 8, "blocking_writes", &["true"]);
    let probes = ["{ idle = \"1 s\", interval = \"500 ms\", probes = 3 }"];
    key(dice, 8, "keep_alive", &probes);
    key(
        dice,
        8,
        "path_mtu_discovery",
        &["\"off\"", "\"black-hole\"", "\"search\""],
    );
    key(dice, 8, "maximum_retransmissions", &["2"]);
    key(dice, 8, "maximum_syn_retransmissions", &["1"]);
    key(dice, 8, "idle_restart", &["\"off\"", "\"restart-window\""]);
    keys.join(", ")
}

fn rate_and_delay(dice: &mut Dice) -> Vec<String> {
    let rates = [
        "64 kbit/s",
        "200 kbit/s",
        "1 Mbit/s",
        "1.536 Mbit/s",
        "5 Mbit/s",
        "20 Mbit/s",
    ];
    let rate = dice.pick(&rates);
    let delay = match dice.below(4) {
        0 => dice.pick(&["0 s", "1 ms", "5 ms", "250 ms"]).to_owned(),
        _ => dice.time(100, 300_000),
    };
    vec![format!("rate = \"{rate}\""), format!("delay = \"{delay}\"")]
}

/// Returns the keys of a link that both of its directions share.
fn of_link(dice: &mut Dice) -> Vec<String> {
    let mut lines = Vec::new();
    if dice.one_in(8) {
        lines.push(format!(
            "mtu = \"{}\"",
            dice.pick(&["576 B", "1000 B", "1500 B"])
        ));
        if dice.one_in(2) {
            lines.push("fragment = true".to_owned());
        }
    }
    if dice.one_in(8) {
        lines.push("framing = \"ethernet\"".to_owned());
        if dice.one_in(2) {
            lines.push("arp = { timeout = \"2 s\" }".to_owned());
        }
    }
    if dice.one_in(12) {
        lines.push("redundancy = \"16/15\"".to_owned());
    }
    lines
}

/// One direction: behind any queue, or thinning acknowledgments out and making headers shorter.
fn direction(dice: &mut Dice, duration_s: u64) -> Vec<String> {
    if dice.one_in(10) {
        return rain(dice, duration_s);
    }
    let mut keys = rate_and_delay(dice);
    if dice.one_in(4) {
        keys.extend(return_link(dice));
        if dice.one_in(2) {
            keys.push("errors = { packet_loss_rate = 0.01 }".to_owned());
        }
        return keys;
    }
    if !dice.one_in(3) {
        keys.extend(queue(dice));
    }
    keys.extend(impairments(dice, duration_s));
    keys
}

/// A direction whose rate and outages follow from a rain fade.
fn rain(dice: &mut Dice, duration_s: u64) -> Vec<String> {
    let modes = dice.pick(&["dvb-s2", "dvb-s2x"]);
    let symbol_rate = dice.pick(&["50 kbaud", "500 kbaud", "3 Mbaud"]);
    let clear_sky = dice.pick(&["6 dB", "12 dB", "17 dB"]);
    let sending = dice.pick(&["lost", "held"]);
    let in_flight = dice.pick(&["lost", "held", "arrive"]);
    let mut acm = format!(
        "modes = \"{modes}\", symbol_rate = \"{symbol_rate}\", es_n0 = \"{clear_sky}\", \
         sending = \"{sending}\", in_flight = \"{in_flight}\""
    );
    if dice.one_in(2) {
        acm += ", margin = \"0 dB\", hysteresis = \"0 dB\"";
    }
    let mut at_ms = 0;
    let steps: Vec<String> = (0..1 + dice.below(6))
        .map(|_| {
            at_ms += 1 + dice.below(400 * duration_s);
            let attenuation = dice.below(25);
            format!("{{ at = \"{at_ms} ms\", attenuation = \"{attenuation} dB\" }}")
        })
        .collect();
    let delay = dice.time(100, 300_000);
    let mut keys = vec![
        format!("delay = \"{delay}\""),
        format!("acm = {{ {acm} }}"),
        format!("schedule = [{}]", steps.join(", ")),
    ];
    if dice.one_in(3) {
        keys.push(format!("schedule_every = \"{} ms\"", at_ms + 500));
    }
    if dice.one_in(2) {
        keys.extend(queue(dice));
    }
    keys
}

fn queue(dice: &mut Dice) -> Vec<String> {
    let kind = dice.pick(&[
        "drop-tail",
        "drop-tail",
        "red",
        "early-random-drop",
        "fair",
        "codel",
        "fq-codel",
        "pie",
        "priority",
        "weighted",
    ]);
    let mut keys = format!("kind = \"{kind}\"");
    if dice.one_in(2) {
        let limit = match kind {
            "red" => "60 packets",
            _ => dice.pick(&["3 packets", "20 packets", "100 packets", "30 kB"]),
        };
        let _ = write!(keys, ", limit = \"{limit}\"");
    }
    match kind {
        "priority" => keys += ", classes = [\"calls\"]",
        "weighted" => keys += ", weights = { calls = 3, others = 1 }",
        "codel" | "red" | "pie" if dice.one_in(2) => keys += ", ecn = true",
        _ => {}
    }
    let details: &[&str] = match kind {
        "red" => &[
            "minimum_threshold = \"5 packets\", maximum_threshold = \"15 packets\"",
            "maximum_probability = 0.02",
            "weight = 0.1",
            "gentle = false",
            "mean_packet = \"500 B\"",
        ],
        "early-random-drop" => &["drop_level = \"2 packets\"", "drop_probability = 0.2"],
        "fair" => &["quantum = \"300 B\"", "flows = 2"],
        "codel" => &["target = \"20 ms\"", "interval = \"600 ms\""],
        "fq-codel" => &[
            "target = \"20 ms\"",
            "interval = \"600 ms\"",
            "quantum = \"300 B\"",
            "flows = 2",
            "ecn = false",
        ],
        "pie" => &[
            "target = \"40 ms\"",
            "update_interval = \"7 ms\"",
            "burst_allowance = \"0 s\"",
        ],
        _ => &[],
    };
    for detail in details {
        if dice.one_in(4) {
            let _ = write!(keys, ", {detail}");
        }
    }
    vec![format!("queue = {{ {keys} }}")]
}

/// Returns the impairments and changes of a direction.
fn impairments(dice: &mut Dice, duration_s: u64) -> Vec<String> {
    let mut keys = Vec::new();
    if dice.one_in(4) {
        keys.push(
            dice.pick(&[
                "errors = { packet_loss_rate = 0.01 }",
                "errors = { bit_error_rate = 1e-6 }",
                "errors = { packet_loss_rate = 0.02, mean_burst_packets = 3 }",
            ])
            .to_owned(),
        );
    }
    for (one_in, key) in [
        (8, "duplication = 0.02"),
        (8, "corruption = 0.02"),
        (
            8,
            "reordering = { probability = 0.05, late_by = \"uniform(1 ms, 30 ms)\" }",
        ),
    ] {
        if dice.one_in(one_in) {
            keys.push(key.to_owned());
        }
    }
    match dice.below(16) {
        0 => {
            let (rate, delay) = (dice.pick(&["100 kbit/s", "2 Mbit/s"]), dice.time(100, 200_000));
            keys.push(format!(
                "schedule = [{{ at = \"1 s\", rate = \"{rate}\" }}, {{ at = \"{} s\", delay = \"{delay}\" }}]",
                1 + duration_s / 2
            ));
            if dice.one_in(3) {
                keys.push("in_order = false".to_owned());
            }
        }
        1 => {
            let sending = dice.pick(&["lost", "held"]);
            let in_flight = dice.pick(&["lost", "held", "arrive"]);
            keys.push(format!(
                "outages = [{{ at = \"800 ms\", lasts = \"300 ms\", every = \"2 s\", sending = \"{sending}\", in_flight = \"{in_flight}\" }}]"
            ));
        }
        2 => keys.push(
            "fading = { clear = \"exponential(2 s)\", faded = \"exponential(300 ms)\", packet_loss_rate = 0.3 }"
                .to_owned(),
        ),
        _ => {}
    }
    keys
}

/// Returns random keys of a return link: maybe a method that removes acknowledgments, and maybe
/// header compression, data compression or a tunnel.
fn return_link(dice: &mut Dice) -> Vec<String> {
    let mut keys = Vec::new();
    if !dice.one_in(4) {
        keys.push(
            dice.pick(&[
                "acks = { kind = \"suppression\" }",
                "acks = { kind = \"compaction\" }",
                "acks = { kind = \"compaction\", spacing = true }",
                "acks = { kind = \"compaction\", spacing = \"per-flow\" }",
                "acks = { kind = \"filter\" }",
                "acks = { kind = \"filter\", mode = \"aggressive\" }",
                "acks = { kind = \"reconstruction\" }",
            ])
            .to_owned(),
        );
    }
    if dice.one_in(8) {
        keys.push(
            dice.pick(&[
                "compression = \"rfc1144\"",
                "compression = \"v42bis\"",
                "tunnel = true",
            ])
            .to_owned(),
        );
    }
    keys
}

/// Returns capacity on demand.
fn access(dice: &mut Dice, carrier: Option<&str>) -> String {
    let mut keys = vec!["kind = \"on-demand\"".to_owned()];
    for key in [
        "constant = \"16 kbit/s\"",
        "rate_based = \"40 kbit/s\"",
        "volume_based = true",
        "free = true",
    ] {
        if dice.one_in(2) {
            keys.push(key.to_owned());
        }
    }
    if let Some(carrier) = carrier {
        keys.push(format!("carrier = \"{carrier}\""));
    }
    format!("access = {{ {} }}", keys.join(", "))
}

fn app(dice: &mut Dice) -> String {
    let direction = dice.pick(&["upload", "download", "both"]);
    let size = dice.pick(&["1 B", "10 kB", "100 kB", "1 MB"]);
    let pause = dice.time(1_000, 3_000_000);
    let transport = dice.pick(&["udp", "tcp"]);
    let protocol = dice.pick(&["icmp", "udp"]);
    let mode = dice.pick(&["active", "passive"]);
    let http = dice.pick(&["1.1", "2"]);
    let tls = dice.pick(&["1.3", "1.2", "off"]);
    match dice.below(13) {
        0 => format!("{{ kind = \"bulk\", direction = \"{direction}\", size = \"{size}\" }}"),
        1 => format!("{{ kind = \"bulk\", direction = \"{direction}\" }}"),
        2 => format!(
            "{{ kind = \"bulk\", direction = \"{direction}\", size = \"{size}\", transfers = 3, pause = \"{pause}\" }}"
        ),
        3 => format!(
            "{{ kind = \"request-response\", response = \"exponential(5 kB)\", pause = \"exponential({pause})\", requests = 10 }}"
        ),
        4 => format!(
            "{{ kind = \"web\", page = \"3gpp\", http = \"{http}\", tls = \"{tls}\", reading = \"exponential({pause})\" }}"
        ),
        5 => format!(
            "{{ kind = \"packets\", transport = \"{transport}\", size = \"exponential(400 B)\", interval = \"exponential(20 ms)\", lasts = \"{pause}\" }}"
        ),
        6 => format!(
            "{{ kind = \"ftp\", mode = \"{mode}\", direction = \"{}\", size = \"50 kB\", files = 3, pause = \"{pause}\" }}",
            if direction == "upload" { "upload" } else { "download" }
        ),
        7 => format!("{{ kind = \"mail\", size = \"exponential(20 kB)\", pause = \"exponential({pause})\" }}"),
        8 => format!(
            "{{ kind = \"voice\", calls = 2, lasts = \"{pause}\", pause = \"100 ms\", jitter_buffer = \"{}\" }}",
            dice.pick(&["60 ms", "0 s", "adaptive"])
        ),
        9 => "{ kind = \"video\", segment = \"1 s\", lasts = \"8 s\", buffer = \"4 s\", ladder = [\"50 kbit/s\", \"400 kbit/s\", \"2 Mbit/s\"] }"
            .to_owned(),
        10 => format!("{{ kind = \"ping\", protocol = \"{protocol}\", interval = \"{pause}\", requests = 5 }}"),
        11 => format!(
            "{{ kind = \"video-call\", lasts = \"{pause}\", calls = 2, pause = \"100 ms\", frame_rate = {}, max_rate = \"{}\" }}",
            dice.pick(&[5, 30, 60]),
            dice.pick(&["300 kbit/s", "1.5 Mbit/s", "6 Mbit/s"])
        ),
        _ => "{ kind = \"carousel\", size = \"30 kB\", rate = \"300 kbit/s\", files = 3, interval = \"1500 ms\" }"
            .to_owned(),
    }
}
