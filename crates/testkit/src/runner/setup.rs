//! Setup of the host: a script's options, and shell commands at its beginning that set Linux
//! parameters.

use std::num::NonZeroU32;

use bentpipe_tcp::{
    BufferSizes, Config, CongestionControlKind, EcnMode, IdleRestart, KeepAlive, PacingKind,
    PathMtuDiscovery, SlowStartKind,
};
use bentpipe_types::{IpVersion, Span};

use super::sockets::Options;
use super::{Problem, fast_open};

/// Receive buffer in the RFC profile, with its window scale.
const RECEIVE_BUFFER: u64 = 1 << 16;
const WINDOW_SHIFT: u8 = 8;
/// Receive buffer of the public scripts' defaults.sh (tcp_rmem) and of benches/witness/dialogue.py.
const RECEIVE_SIZES: BufferSizes = BufferSizes {
    least: 4096,
    initial: 540_000,
    most: 15 << 20,
    locked: false,
};
/// Send buffer of the same scripts (tcp_wmem).
const SEND_SIZES: BufferSizes = BufferSizes {
    least: 4096,
    initial: 256 << 10,
    most: 4 << 20,
    locked: false,
};
/// Send buffer in the RFC profile, in bytes of payload.
const SEND_BUFFER: u64 = 256 << 10;

/// packetdrill's tolerance.
const TOLERANCE: Span = Span::from_millis(4);
/// packetdrill's tolerance as a share of the time since the last event, in thousandths.
const TOLERANCE_SHARE: u64 = 125;

/// Converts TCP_NOTSENT_LOWAT. A value that no stream reaches means off.
pub(super) fn low_water(bytes: u64) -> Option<NonZeroU32> {
    let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes < u32::MAX);
    bytes.and_then(NonZeroU32::new)
}

#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Initial configuration of every socket.
    pub(super) config: Config,
    pub(super) tolerance: Span,
    tolerance_share: u64,
    /// Whether segments are compared without merging.
    pub(super) strict_segments: bool,
    /// Timestamp tick, if timestamps are to be compared.
    pub(super) timestamp_tick: Option<Span>,
    /// Whether echoes that match no segment of ours are interpreted relative to the first.
    pub(super) scale_echoes: bool,
    /// Minimum segments in one offload buffer (tcp_min_tso_segs).
    pub(super) maximum_segment: u16,
    pub(super) fast_open: fast_open::Settings,
    /// Keep-alive of a socket with SO_KEEPALIVE and no further options.
    keep_alive: KeepAlive,
    /// Whether cookies of servers are to be forgotten.
    pub(super) flush_cookies: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let mut config = Config::linux();
        // Scripts state what they expect of growing buffers.
        config.send_sizes = Some(SEND_SIZES);
        config.receive_sizes = Some(RECEIVE_SIZES);
        config.receive_buffer = RECEIVE_BUFFER;
        config.window_shift = WINDOW_SHIFT;
        config.send_buffer = SEND_BUFFER;
        Self {
            config,
            tolerance: TOLERANCE,
            tolerance_share: TOLERANCE_SHARE,
            strict_segments: false,
            timestamp_tick: None,
            scale_echoes: false,
            maximum_segment: 1460,
            fast_open: fast_open::Settings::default(),
            keep_alive: KeepAlive::default(),
            flush_cookies: false,
        }
    }
}

impl Setup {
    pub(super) fn version(&self) -> IpVersion {
        self.config.ip_version
    }

    /// Returns the tolerance of an event scheduled this long after the previous one.
    pub(super) fn tolerance_around(&self, since: Span) -> Span {
        self.tolerance.max(since * self.tolerance_share / 1000)
    }

    /// Returns the configuration of a connection that announces `maximum_segment`.
    pub(super) fn with_segment(&self, config: &Config, maximum_segment: Option<u16>) -> Config {
        let announced = self
            .maximum_segment
            .min(maximum_segment.unwrap_or(u16::MAX));
        let options = if config.timestamps { 12 } else { 0 };
        Config {
            mss: announced.saturating_sub(options).max(1),
            ..config.clone()
        }
    }

    /// Returns the keep-alive settings of a socket with these options.
    pub(super) fn keep_alive(&self, options: &Options) -> Option<KeepAlive> {
        options.keep_alive_enabled.then(|| KeepAlive {
            idle: options.keep_idle.unwrap_or(self.keep_alive.idle),
            interval: options.keep_interval.unwrap_or(self.keep_alive.interval),
            probes: options.keep_probes.unwrap_or(self.keep_alive.probes),
        })
    }

    /// Executes `ip route change ADDRESS ... advmss A mtu lock M initcwnd C` for the only path.
    /// Open connections keep their settings until they learn otherwise.
    fn route(&mut self, arguments: &[&str]) -> Result<(), Problem> {
        let mut words = arguments.iter();
        while let Some(&word) = words.next() {
            let mut number = || {
                let word = words.next().filter(|&&word| word != "lock");
                let word = word.or_else(|| words.next());
                word.and_then(|word| word.parse::<u32>().ok())
            };
            let known = match word {
                "advmss" => number().is_some_and(|mss| {
                    self.config.announced_mss = u16::try_from(mss).ok();
                    self.config.announced_mss.is_some()
                }),
                "mtu" => {
                    self.config.path_mtu = number();
                    self.config.path_mtu.is_some()
                }
                "initcwnd" => number().is_some_and(|segments| {
                    self.config.initial_window = segments;
                    true
                }),
                "via" | "dev" => words.next().is_some(),
                _ => word.parse::<std::net::Ipv4Addr>().is_ok(),
            };
            if !known {
                return Err(Problem::missing(format!("a route with {word}")));
            }
        }
        Ok(())
    }

    /// Applies `--name=value`.
    pub(super) fn option(&mut self, name: &str, value: Option<&str>) -> Result<(), Problem> {
        let wrong = || Problem::wrong(format!("a value that --{name} takes"), format!("{value:?}"));
        let number = || value.and_then(|v| v.parse::<u64>().ok()).ok_or_else(wrong);
        match (name, value) {
            ("tolerance_usecs", _) => {
                self.tolerance = Span::from_micros(number()?.min(100_000_000));
            }
            ("tolerance_percent", Some(percent)) => {
                let percent: f64 = percent.parse().map_err(|_| wrong())?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(wrong());
                }
                self.tolerance_share = (percent * 10.0) as u64;
            }
            ("tcp_ts_tick_usecs", _) => {
                let tick = number()?.min(10_000_000);
                self.timestamp_tick = (tick > 0).then(|| Span::from_micros(tick));
            }
            ("tcp_ts_ecr_scaled", None) => self.scale_echoes = true,
            ("strict_segments", None) => self.strict_segments = true,
            ("ip_version", Some("ipv4")) => {}
            ("ip_version", Some("ipv6")) => {
                self.config.ip_version = IpVersion::V6;
                // packetdrill's device has 20 bytes more for IPv6, so that scripts are equal.
            }
            // Our own option: the RFC profile.
            ("profile", Some("rfc")) => {
                self.config = Config {
                    receive_buffer: self.config.receive_buffer,
                    window_shift: self.config.window_shift,
                    send_buffer: self.config.send_buffer,
                    ..Config::default()
                };
            }
            ("profile", Some("linux")) => {}
            // Segment size within a large incoming packet; here it is one segment.
            ("mss", _) => {
                number()?;
            }
            ("local_ip" | "remote_ip", Some(address)) => {
                // Visible only in Fast Open cookies, which are implemented for IPv4.
                if let Ok(address) = address.parse() {
                    match name {
                        "local_ip" => self.fast_open.local = address,
                        _ => self.fast_open.remote = address,
                    }
                }
            }
            (
                "gateway_ip" | "netmask_ip" | "connect_port" | "bind_port" | "init_scripts"
                | "send_omit_free",
                _,
            ) => {}
            _ => return Err(Problem::missing(format!("the option --{name}"))),
        }
        Ok(())
    }

    /// Executes one or more shell commands.
    pub(super) fn command(&mut self, text: &str) -> Result<(), Problem> {
        let joined = text
            .replace("\\\n", " ")
            .replace("&&", "\n")
            .replace("||", "\n");
        for line in joined.split(['\n', ';']) {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.line(line)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Problem> {
        let words = split(line);
        let unknown = || Err(Problem::missing(format!("the command {line:?}")));
        let Some((program, arguments)) = words.split_first() else {
            return Ok(());
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match program.rsplit('/').next().unwrap_or_default() {
            "defaults.sh" => {
                self.config.idle_restart = IdleRestart::Off;
                self.config.maximum_syn_retransmissions = 5;
                self.config.ecn = EcnMode::Off;
                self.fast_open.bits = 0x70403;
                self.fast_open.key = fast_open::key("a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4")?;
                Ok(())
            }
            "sysctl" | "set_sysctls.py" => {
                let settings = arguments.iter().filter(|a| a.contains('='));
                for setting in settings {
                    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
                    self.sysctl(key, value)?;
                }
                Ok(())
            }
            name if name.starts_with("sysctl_restore_") => Ok(()),
            // There are no counters, and no caches of earlier connections.
            "nstat" | "true" => Ok(()),
            // Both halves of HyStart, the default.
            "echo" if line.ends_with("/tcp_cubic/parameters/hystart_detect") => {
                match arguments.first() {
                    Some(&"3") => Ok(()),
                    _ => unknown(),
                }
            }
            "ip" if arguments.starts_with(&["route", "change"]) => self.route(&arguments[2..]),
            "ip" if arguments.starts_with(&["tcp_metrics", "flush"]) => {
                self.flush_cookies = true;
                Ok(())
            }
            // Segments are sent one by one and merged before comparison.
            "ethtool" if arguments.starts_with(&["-K"]) => Ok(()),
            "tc" => match &arguments[..] {
                ["qdisc", "add" | "replace", "dev", _, "root", "fq"] => {
                    self.config.pacing = PacingKind::On;
                    Ok(())
                }
                ["qdisc", "add" | "replace", "dev", _, "root", "pfifo"] => Ok(()),
                _ => unknown(),
            },
            _ => unknown(),
        }
    }

    /// Sets net.ipv4.tcp_*, given as a dotted name or a path.
    fn sysctl(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let name = key.rsplit(['.', '/']).next().unwrap_or_default();
        let unknown = || Err(Problem::missing(format!("the sysctl {name}={value}")));
        let words: Vec<&str> = value.split_whitespace().collect();
        let Some(first) = words.first() else {
            return unknown();
        };
        let number = match first.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => first.parse::<u64>().ok(),
        };
        let flag = number.map(|n| n != 0);
        let config = &mut self.config;
        match (name, flag, number) {
            ("tcp_timestamps", Some(flag), _) => config.timestamps = flag,
            ("tcp_sack", Some(flag), _) => config.sack = flag,
            ("tcp_window_scaling", Some(flag), _) => config.window_scaling = flag,
            ("tcp_slow_start_after_idle", Some(flag), _) => {
                config.idle_restart = if flag {
                    IdleRestart::Decay
                } else {
                    IdleRestart::Off
                };
            }
            ("tcp_early_retrans", _, Some(n)) => config.tail_loss_probe = n >= 3,
            ("tcp_recovery", _, Some(n)) => config.rack = n & 1 != 0,
            ("tcp_frto", Some(flag), _) => config.f_rto = flag,
            ("tcp_syn_retries" | "tcp_synack_retries", _, Some(n)) => {
                config.maximum_syn_retransmissions = n.min(255) as u32;
            }
            ("tcp_retries2", _, Some(n)) => config.maximum_retransmissions = n.min(255) as u32,
            ("tcp_wmem", _, _) => {
                let default = words.get(1).and_then(|w| w.parse().ok());
                let Some(default) = default else {
                    return unknown();
                };
                config.send_buffer = default;
                if let Some(sizes) = &mut config.send_sizes {
                    sizes.initial = default;
                    if let Some(most) = words.get(2).and_then(|w| w.parse().ok()) {
                        sizes.most = most;
                    }
                }
            }
            ("tcp_notsent_lowat", _, Some(n)) => config.unsent_low_water = low_water(n),
            ("tcp_congestion_control", _, _) => match *first {
                "cubic" => config.congestion_control = CongestionControlKind::Cubic,
                "reno" => {
                    config.congestion_control = CongestionControlKind::Reno;
                    config.slow_start = SlowStartKind::AppropriateByteCounting {
                        limit_segments: u32::MAX,
                    };
                }
                other => {
                    return Err(Problem::missing(format!("the congestion control {other}")));
                }
            },
            ("tcp_fastopen", _, Some(bits)) => self.fast_open.bits = bits,
            // An old kernel's way to flush the cache, which scripts try before `ip tcp_metrics
            // flush`.
            ("tcp_fastopen_cookies", _, _) => {}
            ("tcp_fastopen_key", _, _) => self.fast_open.key = fast_open::key(first)?,
            ("tcp_fastopen_blackhole_timeout_sec", _, Some(0)) => {}
            ("tcp_ecn", _, Some(0)) => config.ecn = EcnMode::Off,
            ("tcp_ecn", _, Some(1)) => config.ecn = EcnMode::Request,
            ("tcp_ecn", _, Some(2)) => config.ecn = EcnMode::Accept,
            ("tcp_mtu_probing", _, Some(0)) => config.path_mtu_discovery = PathMtuDiscovery::Icmp,
            ("tcp_mtu_probing", _, Some(1)) => {
                config.path_mtu_discovery = PathMtuDiscovery::BlackHole;
            }
            ("tcp_mtu_probing", _, Some(2)) => config.path_mtu_discovery = PathMtuDiscovery::Probe,
            ("tcp_base_mss", _, Some(n)) => config.base_mss = n.min(65_535) as u16,
            ("tcp_keepalive_time", _, Some(n)) => {
                self.keep_alive.idle = Span::from_secs(n.min(32_767));
            }
            ("tcp_keepalive_intvl", _, Some(n)) => {
                self.keep_alive.interval = Span::from_secs(n.min(32_767));
            }
            ("tcp_keepalive_probes", _, Some(n)) => self.keep_alive.probes = n.min(255) as u32,
            ("tcp_reordering", _, Some(3)) | ("tcp_fack", _, _) => {}
            ("tcp_min_tso_segs", _, Some(n)) => config.shortest_burst = n.clamp(1, 65_535) as u16,
            // Parameters that Linux no longer has, that have no effect, or that are always on.
            (
                "tcp_tso_win_divisor"
                | "tcp_dsack"
                | "tcp_pacing_ss_ratio"
                | "tcp_pacing_ca_ratio"
                | "tcp_syncookies"
                | "tcp_ecn_option",
                _,
                _,
            ) => {}
            _ => return unknown(),
        }
        Ok(())
    }
}

/// Splits a command into words; quotes keep spaces together.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (_, c) => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
