//! A host of the scenario as a network namespace, and the mapping of its TCP settings to Linux.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_scenario::{IpName, Scenario};
use bentpipe_tcp::{BufferSizes, Config, EcnMode, RecoveryKind, memory_for};
use bentpipe_types::Span;
use netlink_packet_route::route::RouteMetric;
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::netlink::Netlink;
use crate::{Namespace, Tun, TunSettings};

/// A namespace with a TUN device that leads into the network.
#[derive(Debug)]
pub(crate) struct Host {
    /// Index of the scenario's node.
    pub(crate) node: usize,
    pub(crate) name: String,
    pub(crate) namespace: Namespace,
    pub(crate) address: IpAddr,
    /// Index of the TUN device within the namespace.
    pub(crate) interface: u32,
    metrics: Vec<RouteMetric>,
}

/// Prefixes of the network's addresses, which [`NodeAddresses`](bentpipe_wire::NodeAddresses)
/// assigns.
const NETWORK_V4: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 15);
const NETWORK_V6: (IpAddr, u8) = (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), 111);

/// Default route.
const DEFAULT_V4: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const DEFAULT_V6: (IpAddr, u8) = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Minimum MTU of a link that carries IPv6 (RFC 8200 section 5). Linux disables IPv6 below it.
const MIN_MTU_V6: u64 = 1280;

/// Queue length of the TUN device: a whole window may be sent at once.
const QUEUE_PACKETS: u32 = 20_000;

/// Bytes of IP and TCP headers, without options.
const HEADERS_V4: u64 = 40;
const HEADERS_V6: u64 = 60;
const TIMESTAMPS: u64 = 12;

impl Host {
    /// Creates the namespace, applies the scenario's TCP settings, and opens the device.
    pub(crate) fn new(
        node: usize,
        name: &str,
        address: IpAddr,
        tcp: &Config,
    ) -> io::Result<(Self, Tun)> {
        let namespace = Namespace::new()?;
        // Keeps IPv6 addresses of an interface that is taken down and up again, as IPv4 does.
        let _ = namespace.set("net.ipv6.conf.default.keep_addr_on_down", "1");
        // Allows all groups to send echo requests.
        let anybody = ["0 2147483647", "0 0"];
        (anybody.iter()).any(|groups| namespace.set("net.ipv4.ping_group_range", groups).is_ok());
        for (parameter, value) in parameters(tcp, address.is_ipv6()) {
            // Old kernels lack some of these parameters.
            if let Err(error) = namespace.set(parameter, &value)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
        }
        let settings = TunSettings {
            name: "bentpipe".into(),
            ipv4: match address {
                IpAddr::V4(address) => Some((address, 32)),
                IpAddr::V6(_) => None,
            },
            ipv6: match address {
                IpAddr::V4(_) => None,
                IpAddr::V6(address) => Some((address, 128)),
            },
            mtu: u16::try_from(mtu(address.is_ipv6(), tcp)).unwrap_or(u16::MAX),
            queue_packets: QUEUE_PACKETS,
        };
        let (tun, interface) = namespace.enter(|| {
            let tun = Tun::open(&settings)?;
            let interface = nix::net::if_::if_nametoindex("bentpipe")?;
            let mut netlink = Netlink::routes()?;
            netlink.loopback_up()?;
            netlink.queue_length(interface, QUEUE_PACKETS)?;
            Ok::<_, io::Error>((tun, interface))
        })??;
        let host = Self {
            node,
            name: name.to_owned(),
            namespace,
            address,
            interface,
            metrics: metrics(tcp),
        };
        host.namespace.enter(|| host.set_routes())??;
        Ok((host, tun))
    }

    /// Routes everything through the device, with the scenario's metrics. Must be called in the
    /// namespace.
    pub(crate) fn set_routes(&self) -> io::Result<()> {
        let mut netlink = Netlink::routes()?;
        // The network's own prefix, and a default route to a node that stands for the Internet.
        let prefixes = match self.address {
            IpAddr::V4(_) => [NETWORK_V4, DEFAULT_V4],
            IpAddr::V6(_) => [NETWORK_V6, DEFAULT_V6],
        };
        for prefix in prefixes {
            netlink.route(prefix, self.interface, self.address, self.metrics.clone())?;
        }
        Ok(())
    }
}

/// Tests whether the kernel supports a congestion control.
pub(crate) fn check_congestion_control(congestion_control: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_congestion(congestion_control.as_bytes())
}

/// Returns the MTU of a host's device, in bytes, from the scenario's MSS.
fn mtu(is_v6: bool, tcp: &Config) -> u64 {
    let headers = if is_v6 { HEADERS_V6 } else { HEADERS_V4 };
    let options = if tcp.timestamps { TIMESTAMPS } else { 0 };
    u64::from(tcp.mss) + headers + options
}

/// Returns an error message with the key if the kernel cannot provide this host.
pub(crate) fn mtu_error(scenario: &Scenario, host: usize) -> Option<String> {
    let tcp = &scenario.tcp_of(host)?.config;
    let mtu = mtu(true, tcp);
    (scenario.ip == IpName::V6 && mtu < MIN_MTU_V6).then(|| {
        let name = &scenario.nodes[host].name;
        let min_mss = u64::from(tcp.mss) + MIN_MTU_V6 - mtu;
        format!(
            "hosts.{name}.tcp.mss: expected at least {min_mss} B, since IPv6 on Linux needs an MTU of 1280 B, got {} B",
            tcp.mss
        )
    })
}

/// Returns the receive buffer's sizes if it is autotuned.
fn autotuned_receive_buffer(tcp: &Config) -> Option<BufferSizes> {
    tcp.receive_sizes.filter(|sizes| !sizes.locked)
}

/// Returns the sysctl parameters that configure the kernel's TCP as in the scenario.
fn parameters(tcp: &Config, is_v6: bool) -> Vec<(&'static str, String)> {
    let flag = |on: bool| u8::from(on).to_string();
    // Linux accounts buffers by the memory that packets take, not by their payload. Once a full
    // segment was received, the receive window is the payload's share of that memory, regardless of
    // the route metric (tcp_measure_rcv_mss). An eighth of the send buffer is lost to this
    // overhead.
    let receive = match autotuned_receive_buffer(tcp) {
        Some(sizes) => format!("{} {} {}", sizes.least, sizes.initial, sizes.most),
        None => {
            let packet = u32::try_from(mtu(is_v6, tcp)).unwrap_or(u32::MAX);
            let memory = memory_for(tcp.receive_buffer, tcp.mss.into(), packet);
            format!("4096 {memory} {memory}")
        }
    };
    let send = match tcp.send_sizes {
        Some(sizes) => format!("{} {} {}", sizes.least, sizes.initial, sizes.most),
        None => {
            let send = tcp.send_buffer + tcp.send_buffer / 8;
            format!("4096 {send} {send}")
        }
    };
    let ecn = match tcp.ecn {
        EcnMode::Off => "0",
        EcnMode::Request => "1",
        EcnMode::Accept => "2",
    };
    vec![
        ("net.ipv4.tcp_rmem", receive),
        ("net.ipv4.tcp_wmem", send),
        (
            "net.ipv4.tcp_moderate_rcvbuf",
            flag(autotuned_receive_buffer(tcp).is_some()),
        ),
        ("net.ipv4.tcp_no_metrics_save", flag(true)),
        ("net.ipv4.tcp_sack", flag(tcp.sack)),
        ("net.ipv4.tcp_timestamps", flag(tcp.timestamps)),
        ("net.ipv4.tcp_window_scaling", flag(tcp.window_scaling)),
        ("net.ipv4.tcp_ecn", ecn.to_owned()),
        // 1: Fast Open as a client; 2: as a server; 0x400: server without a socket option. Linux's
        // default is client only.
        (
            "net.ipv4.tcp_fastopen",
            if tcp.fast_open { "1027" } else { "1" }.to_owned(),
        ),
        ("net.ipv4.tcp_recovery", flag(tcp.rack)),
        (
            "net.ipv4.tcp_early_retrans",
            if tcp.tail_loss_probe { "3" } else { "0" }.to_owned(),
        ),
        (
            "net.ipv4.tcp_frto",
            if tcp.f_rto { "2" } else { "0" }.to_owned(),
        ),
        (
            "net.ipv4.tcp_retries2",
            tcp.maximum_retransmissions.min(255).to_string(),
        ),
        (
            "net.ipv4.tcp_syn_retries",
            tcp.maximum_syn_retransmissions.clamp(1, 127).to_string(),
        ),
    ]
}

fn metrics(tcp: &Config) -> Vec<RouteMetric> {
    let window = u32::try_from(tcp.receive_buffer).unwrap_or(u32::MAX);
    let mut metrics = vec![
        RouteMetric::InitCwnd(tcp.initial_window),
        RouteMetric::RtoMin((tcp.minimum_rto / 1_000_000).as_nanos() as u32),
    ];
    if autotuned_receive_buffer(tcp).is_none() {
        // The route metric bounds the window until a full segment was received, and sets its scale.
        metrics.push(RouteMetric::Window(window));
    }
    if tcp.delayed_ack.is_none() {
        metrics.push(RouteMetric::QuickAck(1));
    }
    metrics
}

/// Keys of a resolved scenario that Linux supports.
const SUPPORTED: [&str; 20] = [
    "congestion_control",
    "mss_bytes",
    "send_buffer_bytes",
    "receive_buffer_bytes",
    "send_memory_bytes",
    "receive_memory_bytes",
    "window_scaling",
    "timestamps",
    "sack",
    "initial_window_segments",
    "minimum_rto_s",
    "ecn",
    "fast_open",
    "rack",
    "tail_loss_probe",
    "f_rto",
    "maximum_retransmissions",
    "maximum_syn_retransmissions",
    "nagle",
    // The kernel itself is the profile.
    "profile",
];

/// Returns a note, with its key, for each setting of a host that Linux does not support.
///
/// Settings at Linux's default need no note. `loaded`: the host's window rule is a BPF program of
/// this package, which has settings of its own.
pub(crate) fn unsupported_settings(scenario: &Scenario, host: usize, loaded: bool) -> Vec<String> {
    let Some(tcp) = scenario.tcp_of(host).map(|tcp| &tcp.config) else {
        return Vec::new();
    };
    let resolved = serde_json::to_value(scenario).unwrap_or_default();
    let default_settings = default_settings(&resolved["nodes"][host]["tcp"]);
    let Value::Object(ours) = &resolved["nodes"][host]["tcp"] else {
        return Vec::new();
    };
    let name = &scenario.nodes[host].name;
    let mut lines = Vec::new();
    for (key, value) in ours {
        let supported = match key.as_str() {
            "recovery" => {
                tcp.sack && tcp.recovery == RecoveryKind::Sack
                    || !tcp.sack && tcp.recovery == RecoveryKind::NewReno
            }
            "delayed_ack_s" => tcp
                .delayed_ack
                .is_none_or(|delay| delay == Span::from_millis(40)),
            "quick_acks" => value == "auto",
            key if loaded && is_rule_setting(key, value, &default_settings[key]) => true,
            key => SUPPORTED.contains(&key),
        };
        if !supported && default_settings.get(key) != Some(value) {
            let key = ["_bytes", "_s", "_segments", "_bps"]
                .into_iter()
                .fold(key.as_str(), |key, unit| {
                    key.strip_suffix(unit).unwrap_or(key)
                });
            lines.push(format!(
                "hosts.{name}.tcp.{key}: no effect, the kernel has no such setting"
            ));
        }
    }
    lines
}

/// Whether a window rule that was loaded for the run has this setting.
fn is_rule_setting(key: &str, value: &Value, default: &Value) -> bool {
    let supported = match key {
        "channel_capacity_bps" | "initial_slow_start_threshold_bytes" => return true,
        "hybla" => "reference_rtt_s",
        "westwood" => "time_constant_s",
        _ => return false,
    };
    let mut others = value.clone();
    others[supported] = default[supported].clone();
    others == *default
}

/// Returns the resolved settings of a host for which only the congestion control and the profile
/// are given.
fn default_settings(tcp: &Value) -> Value {
    let control = tcp["congestion_control"].as_str().unwrap_or("cubic");
    let profile = tcp["profile"].as_str();
    let profile = profile.map_or_else(String::new, |name| format!(", profile = \"{name}\""));
    // A rule that needs the capacity has no default.
    let capacity = if control == "enhanced-hybla" {
        ", channel_capacity = \"1 Mbit/s\""
    } else {
        ""
    };
    let text = format!(
        "name = \"usual\"\nduration = \"1 s\"\n\
         hosts.a.tcp = {{ congestion_control = \"{control}\"{profile}{capacity} }}\nhosts.b = {{}}\n\
         links.l = {{ between = [\"a\", \"b\"], rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n\
         flows.f = {{ from = \"a\", to = \"b\", app = {{ kind = \"bulk\" }} }}\n"
    );
    let default_settings = Scenario::parse(&text, "usual", &[]).ok();
    let default_settings =
        default_settings.and_then(|default_settings| serde_json::to_value(&default_settings).ok());
    default_settings.map_or(Value::Null, |default_settings| {
        default_settings["nodes"][0]["tcp"].clone()
    })
}
