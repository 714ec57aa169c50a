//! TCP settings of a host or a gateway.

use bentpipe_tcp::congestion::{ChannelCapacity, WindowRule};
use bentpipe_tcp::{
    BufferSizes, Config, GRANULE, HYSTART_LIMIT, KeepAlive, LinuxQuirks, NewRenoKind, RecoveryKind,
    RtoRule, SlowStartKind, memory_for,
};
use bentpipe_types::{Bytes, IpVersion, Span};

use crate::custom::CustomControls;
use crate::fault::{Fault, fault};
use crate::hints;
use crate::ip::IpName;
use crate::quantity::buffer::{Buffer, QuickAcks};
use crate::quantity::count::Window;
use crate::quantity::pacing::Pacing;
use crate::quantity::size::Size;
use crate::quantity::time::{DelayedAck, Length};
use crate::tcp::congestion::CongestionControlName;
use crate::tcp::schema::{KeepAliveFile, MemoryFile, Profile, SlowStart, TcpFile};
use crate::tcp::settings::TcpSettings;

/// Payload of a full segment in a 1500-byte IPv4 packet without options.
const ETHERNET_MSS: u64 = 1460;

/// Bytes of the timestamps option, padded (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;

/// Headers of a segment with timestamps in an IPv4 packet.
const HEADERS: u32 = 52;

const MSS: (u64, u64) = (64, 65_000);

/// Largest windows without scaling, and with the largest scale (RFC 7323 section 2.3).
const UNSCALED: u64 = 65_535;

const MAXIMUM_SCALE: u8 = 14;

const SCALED: u64 = UNSCALED << MAXIMUM_SCALE;

const MAX_SEND_BUFFER: u64 = 1 << 30;

const MAX_MEMORY: u64 = 1 << 30;

/// Minimum of a receive buffer's memory: about Linux's SOCK_MIN_RCVBUF.
const LEAST_MEMORY: u64 = 2304;

/// Most retransmissions or probes, within the counters of a connection.
const MAX_ATTEMPTS: u32 = 1_000;

/// Shortest retransmission timeout.
const SHORTEST_RTO: Span = Span::from_millis(1);

/// Difference between the header lengths of IPv6 and IPv4.
const EXTRA_V6_HEADER: u64 = 20;

/// Range of Hybla's RTT0.
const REFERENCE_RTT: (Span, Span) = (Span::from_millis(1), Span::from_secs(10));

/// Range of the time constant of Westwood's filter of 2001.
const TIME_CONSTANT: (Span, Span) = (Span::from_millis(1), Span::from_secs(100));

/// TcpDefaults that differ between hosts and gateways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpDefaults {
    pub(crate) send_buffer: Buffer,
    pub(crate) receive_buffer: Buffer,
    pub(crate) nagle: bool,
    pub(crate) ip: IpName,
}

/// TcpDefaults of a host: Linux's.
pub(crate) const HOST_DEFAULTS: TcpDefaults = TcpDefaults {
    send_buffer: Buffer::Auto,
    receive_buffer: Buffer::Auto,
    nagle: true,
    ip: IpName::V4,
};

/// The path of a wrong key below the table, and the message.
struct Refusal(Vec<&'static str>, String);

fn refuse<T>(key: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(vec![key], message.into()))
}

/// Resolves the TCP settings at the path `table`: `hosts`, a name, `tcp`.
pub(crate) fn resolve_tcp(
    table: [&str; 3],
    file: &TcpFile,
    defaults: TcpDefaults,
    custom: &CustomControls,
) -> Result<TcpSettings, Fault> {
    resolve_settings(file, defaults, table[0] == "hosts", custom).map_err(
        |Refusal(own, message)| {
            let keys: Vec<&str> = table.into_iter().chain(own).collect();
            fault(&keys, message)
        },
    )
}

/// Fills in the defaults and checks all settings; `grows`: whether buffers may be autotuned.
fn resolve_settings(
    file: &TcpFile,
    defaults: TcpDefaults,
    grows: bool,
    custom: &CustomControls,
) -> Result<TcpSettings, Refusal> {
    is_known(&file.congestion_control, custom)?;
    let mut tcp = TcpSettings {
        file: file.clone(),
        config: Config::default(),
    };
    file.store(&mut tcp.config);
    segment(&mut tcp, defaults.ip)?;
    buffers(&mut tcp, defaults, grows)?;
    timeouts(file)?;
    tcp.config.timer_granularity = timer_granularity(file)?;
    window_rule(&mut tcp)?;
    profile(&mut tcp);
    delayed_acknowledgments(&tcp.file)?;
    linux_buffer_for_window(&mut tcp, grows);
    slow_start(&mut tcp)?;
    retransmission_limits(file)?;
    is_a_segment("base_mss", file.base_mss)?;
    tcp.config.keep_alive = file.keep_alive.as_ref().map(keep_alive).transpose()?;
    recovery(&mut tcp)?;
    let nagle = file.nagle.unwrap_or(defaults.nagle);
    tcp.file.nagle = Some(nagle);
    tcp.config.nagle = nagle;
    Ok(tcp)
}

fn is_known(name: &CongestionControlName, custom: &CustomControls) -> Result<(), Refusal> {
    match name {
        CongestionControlName::Custom(name) if !custom.has(name) => {
            let known = WindowRule::ALL.iter().map(|built| built.name());
            let known: Vec<_> = known.chain(custom.names()).collect();
            refuse("congestion_control", hints::unknown_word(name, &known))
        }
        _ => Ok(()),
    }
}

fn is_a_segment(key: &'static str, size: Size) -> Result<(), Refusal> {
    if (MSS.0..=MSS.1).contains(&size.0.get()) {
        return Ok(());
    }
    let message = format!(r#"expected "{} B" to "{} B", got "{size}""#, MSS.0, MSS.1);
    refuse(key, message)
}

/// Sets the segment size, and the quantities that are counted in segments.
fn segment(tcp: &mut TcpSettings, ip: IpName) -> Result<(), Refusal> {
    let (version, longer) = match ip {
        IpName::V4 => (IpVersion::V4, 0),
        IpName::V6 => (IpVersion::V6, EXTRA_V6_HEADER),
    };
    let file = &mut tcp.file;
    let options = if file.timestamps { TIMESTAMPS } else { 0 };
    let mss = Size(Bytes::new(ETHERNET_MSS - options - longer));
    let mss = *file.mss.get_or_insert(mss);
    is_a_segment("mss", mss)?;
    let threshold = file.initial_slow_start_threshold;
    let threshold = threshold.map(|window| window.bytes(mss.0));
    file.initial_slow_start_threshold = threshold.map(Window::Bytes);
    tcp.config.initial_slow_start_threshold = threshold.map(Bytes::get);
    tcp.config.mss = mss.into();
    tcp.config.ip_version = version;
    Ok(())
}

fn buffers(tcp: &mut TcpSettings, defaults: TcpDefaults, grow: bool) -> Result<(), Refusal> {
    let file = &mut tcp.file;
    let send = file.send_buffer.unwrap_or(defaults.send_buffer);
    let (widest, clause_of_widest) = widest_window(file)?;
    let receive = match file.receive_buffer.unwrap_or(defaults.receive_buffer) {
        // The default buffer is limited to the largest window.
        Buffer::Of(size) if file.receive_buffer.is_none() => {
            Buffer::Of(Size(size.0.min(Bytes::new(widest))))
        }
        buffer => buffer,
    };
    let mss = u32::from(tcp.config.mss);
    for (key, buffer, most, clause) in [
        ("send_buffer", send, MAX_SEND_BUFFER, ""),
        ("receive_buffer", receive, widest, &clause_of_widest),
    ] {
        let Buffer::Of(size) = buffer else {
            if !grow {
                let message = r#"expected a size such as "1 MiB": a gateway's do not grow"#;
                return refuse(key, message);
            }
            continue;
        };
        if size.0.get() > most {
            let most = Size(Bytes::new(most));
            let message = format!(r#"expected at most "{most}"{clause}, got "{size}""#);
            return refuse(key, message);
        }
        if size.0.get() < u64::from(mss) {
            let segment = Size(Bytes::new(mss.into()));
            let message = format!(r#"expected at least one segment ("{segment}"), got "{size}""#);
            return refuse(key, message);
        }
    }
    let (of_send, of_receive) = (file.send_memory, file.receive_memory);
    let send_sizes = memory("send_memory", &of_send, send, BufferSizes::SEND)?;
    let receive_sizes = memory("receive_memory", &of_receive, receive, BufferSizes::RECEIVE)?;
    let most = |buffer, grown: u64| match buffer {
        Buffer::Of(size) => size.0.get(),
        Buffer::Auto => grown,
    };
    let grown = send_sizes.map_or(0, |sizes| sizes.sendable(mss));
    tcp.config.send_buffer = most(send, grown);
    let grown = receive_sizes.map_or(0, |sizes| sizes.receivable(mss, mss + HEADERS));
    tcp.config.receive_buffer = most(receive, grown.min(widest));
    tcp.config.send_sizes = send_sizes;
    tcp.config.receive_sizes = receive_sizes;
    let of = |bytes: u64| Some(Buffer::Of(Size(Bytes::new(bytes))));
    if let Some(scale) = file.window_scale
        && tcp.config.receive_buffer < 2 << scale
    {
        // The field is rounded down to whole units: it could stay 0 (RFC 9293 section 3.8.6.2.2).
        let most = (tcp.config.receive_buffer / 2).max(1).ilog2();
        let message = format!("expected at most {most}, so that two units fit into receive_buffer");
        return refuse("window_scale", message);
    }
    file.send_buffer = of(tcp.config.send_buffer);
    file.receive_buffer = of(tcp.config.receive_buffer);
    file.send_memory = send_sizes.map(MemoryFile::from).unwrap_or_default();
    file.receive_memory = receive_sizes.map(MemoryFile::from).unwrap_or_default();
    Ok(())
}

/// Returns the largest window that can be advertised, and its reason, for messages.
fn widest_window(file: &TcpFile) -> Result<(u64, String), Refusal> {
    match file.window_scale {
        None if file.window_scaling => Ok((SCALED, String::new())),
        None => Ok((UNSCALED, " without window_scaling".to_owned())),
        Some(_) if !file.window_scaling => {
            refuse("window_scale", "has no effect: window_scaling is false")
        }
        Some(scale) if scale > MAXIMUM_SCALE => refuse(
            "window_scale",
            format!("expected at most {MAXIMUM_SCALE}, got {scale}"),
        ),
        Some(scale) => Ok((UNSCALED << scale, format!(" with window_scale = {scale}"))),
    }
}

fn timeouts(file: &TcpFile) -> Result<(), Refusal> {
    let (minimum, initial) = (
        ("minimum_rto", file.minimum_rto),
        ("initial_rto", file.initial_rto),
    );
    for (key, rto) in [minimum, initial, ("maximum_rto", file.maximum_rto)] {
        is_long_enough(key, rto)?;
    }
    let ceiling = file.maximum_rto;
    for (key, rto) in [minimum, initial] {
        if rto.0 > ceiling.0 {
            let message = format!(r#"expected at most maximum_rto ("{ceiling}"), got "{rto}""#);
            return refuse(key, message);
        }
    }
    Ok(())
}

/// Returns the granularity of the retransmission timer, if the file gives one.
fn timer_granularity(file: &TcpFile) -> Result<Option<Span>, Refusal> {
    let Some(granularity) = file.timer_granularity else {
        return Ok(None);
    };
    let key = "timer_granularity";
    let is_multiple = granularity.0.as_nanos().is_multiple_of(GRANULE.as_nanos());
    if !(GRANULE..=Span::from_secs(1)).contains(&granularity.0) || !is_multiple {
        let message =
            format!(r#"expected "10 ms", "20 ms" and so on to "1 s", got "{granularity}""#);
        return refuse(key, message);
    }
    if file.rto_rule != RtoRule::Rfc6298 || file.profile == Profile::Linux {
        let message = r#"has no effect: only rto_rule = "rfc6298" with profile "rfc" has it"#;
        return refuse(key, message.to_owned());
    }
    Ok(Some(granularity.0))
}

/// Most segments that are acknowledged together.
const MOST_PER_ACK: u32 = 1000;

fn delayed_acknowledgments(file: &TcpFile) -> Result<(), Refusal> {
    let every = file.ack_every;
    if !(2..=MOST_PER_ACK).contains(&every) {
        let message = format!("expected 2 to {MOST_PER_ACK}, got {every}");
        return refuse("ack_every", message);
    }
    if every == 2 {
        return Ok(());
    }
    if file.delayed_ack == DelayedAck::Off {
        let message = r#"has no effect with delayed_ack = "off""#;
        return refuse("ack_every", message.to_owned());
    }
    if file.quick_acks == Some(QuickAcks::Auto) {
        let message = r#"has no effect with quick_acks = "auto", which is Linux's own rule"#;
        return refuse("ack_every", message.to_owned());
    }
    Ok(())
}

fn is_long_enough(key: &'static str, length: Length) -> Result<(), Refusal> {
    if length.0 < SHORTEST_RTO {
        return refuse(key, format!(r#"expected at least "1 ms", got "{length}""#));
    }
    Ok(())
}

/// Sets the settings of congestion control. The run creates the algorithm itself.
fn window_rule(tcp: &mut TcpSettings) -> Result<(), Refusal> {
    let file = &tcp.file;
    let reference_rtt = file.hybla.reference_rtt;
    if !(REFERENCE_RTT.0..=REFERENCE_RTT.1).contains(&reference_rtt.0) {
        let message = format!(r#"expected "1 ms" to "10 s", got "{reference_rtt}""#);
        return Err(Refusal(vec!["hybla", "reference_rtt"], message));
    }
    let time_constant = file.westwood.time_constant;
    if !(TIME_CONSTANT.0..=TIME_CONSTANT.1).contains(&time_constant.0) {
        let message = format!(r#"expected "1 ms" to "100 s", got "{time_constant}""#);
        return Err(Refusal(vec!["westwood", "time_constant"], message));
    }
    if let CongestionControlName::BuiltIn(rule) = file.congestion_control
        && rule.needs_capacity()
        && file.hybla.channel_capacity == ChannelCapacity::Configured
        && file.channel_capacity.is_none()
    {
        let message = format!(r#"missing; expected a rate such as "100 Mbit/s" for "{rule}""#);
        return refuse("channel_capacity", message);
    }
    tcp.config.channel_capacity = file.channel_capacity.map(|rate| rate.0);
    Ok(())
}

/// Sets the parts of a profile: Linux's quirks, which have no keys, and the defaults of `newreno`
/// and `quick_acks`.
fn profile(tcp: &mut TcpSettings) {
    let (linux_quirks, quick_acks, newreno) = match tcp.file.profile {
        Profile::Rfc | Profile::TcpLinux => (
            LinuxQuirks::NONE,
            QuickAcks::First(0),
            NewRenoKind::Impatient,
        ),
        // Linux restarts the retransmission timer at each acknowledgment of new data, partial ones
        // included (tcp_rearm_rto).
        Profile::Linux => (
            LinuxQuirks::ALL,
            QuickAcks::Auto,
            NewRenoKind::SlowButSteady,
        ),
    };
    tcp.config.linux_quirks = linux_quirks;
    tcp.config.tcp_linux = tcp.file.profile == Profile::TcpLinux;
    tcp.config.newreno = *tcp.file.newreno.get_or_insert(newreno);
    tcp.config.quick_acks = (*tcp.file.quick_acks.get_or_insert(quick_acks)).into();
}

/// Interprets a fixed receive window as a Linux application's SO_RCVBUF, if this end may have such
/// a buffer: the advertised window is computed from the memory that holds this much in full
/// segments.
fn linux_buffer_for_window(tcp: &mut TcpSettings, grows: bool) {
    let config = &mut tcp.config;
    if !grows || tcp.file.profile != Profile::Linux || config.receive_sizes.is_some() {
        return;
    }
    let (window, mss) = (config.receive_buffer, u32::from(config.mss));
    let headers = match (config.ip_version, config.timestamps) {
        (IpVersion::V4, true) => HEADERS,
        (IpVersion::V4, false) => HEADERS - TIMESTAMPS as u32,
        (IpVersion::V6, true) => HEADERS + EXTRA_V6_HEADER as u32,
        (IpVersion::V6, false) => HEADERS + (EXTRA_V6_HEADER - TIMESTAMPS) as u32,
    };
    config.receive_sizes = Some(BufferSizes::locked(memory_for(window, mss, mss + headers)));
    config.window_clamp = Some(window);
}

fn slow_start(tcp: &mut TcpSettings) -> Result<(), Refusal> {
    let file = &mut tcp.file;
    let cubic = CongestionControlName::BuiltIn(WindowRule::Cubic);
    let usual = match file.profile {
        Profile::TcpLinux => SlowStart::Standard,
        _ if file.congestion_control != cubic => SlowStart::ByteCounting,
        Profile::Rfc => SlowStart::HyStart,
        Profile::Linux => SlowStart::LinuxHyStart,
    };
    let slow_start = *file.slow_start.get_or_insert(usual);
    let limit = file.slow_start_limit.map(|limit| limit.0);
    tcp.config.slow_start = match slow_start {
        SlowStart::Standard | SlowStart::LinuxHyStart if limit.is_some() => {
            let message = format!(r#"has no effect: slow_start is "{slow_start}""#);
            return refuse("slow_start_limit", message);
        }
        SlowStart::Standard => SlowStartKind::Standard,
        SlowStart::LinuxHyStart => SlowStartKind::LinuxHyStart,
        SlowStart::ByteCounting => SlowStartKind::AppropriateByteCounting {
            limit_segments: limit.unwrap_or(u32::MAX),
        },
        SlowStart::HyStart => SlowStartKind::HyStart {
            // RFC 9406 section 4.3: no limit with pacing.
            limit_segments: limit.unwrap_or(match file.pacing {
                Pacing::Auto | Pacing::Off => HYSTART_LIMIT,
                Pacing::On | Pacing::AtMost(_) => u32::MAX,
            }),
        },
    };
    Ok(())
}

/// Sets the number of retransmissions and probes.
fn retransmission_limits(file: &TcpFile) -> Result<(), Refusal> {
    for (key, count) in [
        ("maximum_retransmissions", file.maximum_retransmissions),
        (
            "maximum_syn_retransmissions",
            file.maximum_syn_retransmissions,
        ),
    ] {
        if count > MAX_ATTEMPTS {
            return refuse(key, format!("expected at most {MAX_ATTEMPTS}, got {count}"));
        }
    }
    Ok(())
}

fn keep_alive(file: &KeepAliveFile) -> Result<KeepAlive, Refusal> {
    let below = |Refusal(keys, message)| Refusal([vec!["keep_alive"], keys].concat(), message);
    is_long_enough("idle", file.idle).map_err(below)?;
    is_long_enough("interval", file.interval).map_err(below)?;
    if !(1..=MAX_ATTEMPTS).contains(&file.probes) {
        let message = format!("expected 1 to {MAX_ATTEMPTS}, got {}", file.probes);
        return Err(Refusal(vec!["keep_alive", "probes"], message));
    }
    let mut keep_alive = KeepAlive::default();
    file.store(&mut keep_alive);
    Ok(keep_alive)
}

/// Returns the memory of an autotuned buffer.
fn memory(
    table: &'static str,
    file: &MemoryFile,
    buffer: Buffer,
    default: BufferSizes,
) -> Result<Option<BufferSizes>, Refusal> {
    let refuse = |key, message| Err(Refusal(vec![table, key], message));
    let set = [
        ("minimum", file.minimum, default.least),
        ("initial", file.initial, default.initial),
        ("maximum", file.maximum, default.most),
    ];
    if let Buffer::Of(size) = buffer {
        return match set.iter().find(|(_, value, _)| value.is_some()) {
            Some((key, ..)) => refuse(key, format!(r#"has no effect: the buffer is "{size}""#)),
            None => Ok(None),
        };
    }
    let mut least = LEAST_MEMORY;
    for (key, value, _) in set {
        let Some(size) = value else { continue };
        let (bytes, at_least) = (size.0.get(), Size(Bytes::new(least)));
        if bytes > MAX_MEMORY {
            return refuse(key, format!(r#"expected at most "1 GiB", got "{size}""#));
        }
        if bytes < least {
            return refuse(
                key,
                format!(r#"expected at least "{at_least}", got "{size}""#),
            );
        }
        least = bytes;
    }
    // The default of an absent key is limited by the keys that are set.
    let of = |index: usize| {
        let (_, value, default) = set[index];
        value.map_or(default, |size| size.0.get())
    };
    let most = of(2).max(if file.maximum.is_some() { 0 } else { of(1) });
    let initial = of(1).min(most);
    Ok(Some(BufferSizes {
        least: of(0).min(initial),
        initial,
        most,
        locked: false,
    }))
}

/// Sets loss recovery and the settings that depend on it.
fn recovery(tcp: &mut TcpSettings) -> Result<(), Refusal> {
    let (file, config) = (&mut tcp.file, &mut tcp.config);
    let recovery = *file.recovery.get_or_insert(if file.sack {
        RecoveryKind::Sack
    } else {
        RecoveryKind::NewReno
    });
    let sack = recovery == RecoveryKind::Sack;
    let selective = sack || recovery == RecoveryKind::Fack;
    if selective && !file.sack {
        let message = "needs selective acknowledgments, and sack is false";
        return refuse("recovery", message);
    }
    // Linux without SACK counts duplicate acknowledgments as SACKed segments (tcp_add_reno_sack).
    let counted = config.linux_quirks.recovery.counts_duplicates_as_sacks
        && !file.sack
        && recovery == RecoveryKind::NewReno;
    config.recovery = if counted {
        RecoveryKind::Sack
    } else {
        recovery
    };
    // The default is true if the setting is possible.
    let wanted = |key, set: &mut Option<bool>, possible: bool, reason: &str| match *set {
        Some(true) if !possible => refuse(key, format!("has no effect: {reason}")),
        _ => Ok(*set.get_or_insert(possible)),
    };
    let not_sack = r#"recovery is not "sack""#;
    let not_selective = r#"recovery is neither "sack" nor "fack""#;
    let rack = wanted("rack", &mut file.rack, sack, not_sack)?;
    config.rack = rack;
    config.proportional_rate_reduction = wanted(
        "proportional_rate_reduction",
        &mut file.proportional_rate_reduction,
        sack || counted,
        not_sack,
    )?;
    let reason = if sack { "rack is false" } else { not_sack };
    let probe = &mut file.tail_loss_probe;
    config.tail_loss_probe = wanted("tail_loss_probe", probe, rack, reason)?;
    let knows = selective || counted;
    config.f_rto = wanted("f_rto", &mut file.f_rto, knows, not_selective)?;
    config.undo = wanted("undo", &mut file.undo, knows, not_selective)?;
    Ok(())
}
