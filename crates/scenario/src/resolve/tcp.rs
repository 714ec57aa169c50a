//! The TCP of a host, or of a gateway.

use bentpipe_tcp::BufferSizes;
use bentpipe_types::{Bytes, Span};

use super::fault;
use crate::document::Fault;
use crate::quantity::{Buffer, QuickAcks, Size};
use crate::schema::hints;
use crate::schema::{
    CongestionControl, CongestionControlName, IpName, KeepAliveFile, MemoryFile, Profile, Recovery,
    SlowStart, TcpFile,
};
use crate::{CustomControls, TcpSettings};

/// Payload of a full segment in a 1500-byte IPv4 packet without options.
const ETHERNET_MSS: u64 = 1460;
/// Bytes of the timestamps option, padded (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;
/// Headers of a segment with timestamps in an IPv4 packet.
const HEADERS: u32 = 52;
const MSS: (u64, u64) = (64, 65_000);
/// Largest window without scaling, and with the largest scale (RFC 7323 section 2.3).
const UNSCALED: u64 = 65_535;
const SCALED: u64 = 65_535 << 14;
const MAX_SEND_BUFFER: u64 = 1 << 30;
const MAX_MEMORY: u64 = 1 << 30;
/// Linux's SOCK_MIN_RCVBUF, about
const LEAST_MEMORY: u64 = 2304;
/// More than a counter in a connection needs to hold.
const MOST_TIMES: u32 = 1_000;
/// A shorter retransmission timeout is no timeout but a storm.
const SHORTEST_RTO: Span = Span::from_millis(1);
/// Bytes that a header of IPv6 has more than one of IPv4.
const LONGER_V6: u64 = 20;
/// Hybla's RTT0.
const REFERENCE_RTT: (Span, Span) = (Span::from_millis(1), Span::from_secs(10));

/// What a file doesn't say that depends on whose TCP it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) send_buffer: Buffer,
    pub(super) receive_buffer: Buffer,
    pub(super) nagle: bool,
    pub(super) ip: IpName,
}

/// A host's: Linux's.
pub(super) const OF_A_HOST: Defaults = Defaults {
    send_buffer: Buffer::Auto,
    receive_buffer: Buffer::Auto,
    nagle: true,
    ip: IpName::V4,
};

/// `table` is where the file has it: `hosts`, a name, `tcp`.
pub(super) fn resolve(
    table: [&str; 3],
    file: &TcpFile,
    defaults: Defaults,
    custom: &CustomControls,
) -> Result<TcpSettings, Fault> {
    let [section, name, own] = table;
    let refuse = |key: &str, message: String| Err(fault(&[section, name, own, key], message));
    let send_buffer = file.send_buffer.unwrap_or(defaults.send_buffer);
    let receive_buffer = match file.receive_buffer.unwrap_or(defaults.receive_buffer) {
        // What is left to us does not ask for more than a window can be.
        Buffer::Of(size) if file.receive_buffer.is_none() && !file.window_scaling => {
            Buffer::Of(Size(size.0.min(Bytes::new(UNSCALED))))
        }
        buffer => buffer,
    };

    if let CongestionControlName::Custom(name) = &file.congestion_control
        && !custom.has(name)
    {
        let known = CongestionControl::ALL.iter().map(|built| built.name());
        let known: Vec<_> = known.chain(custom.names()).collect();
        return refuse("congestion_control", hints::unknown_word(name, &known));
    }
    let longer = match defaults.ip {
        IpName::V4 => 0,
        IpName::V6 => LONGER_V6,
    };
    let options = if file.timestamps { TIMESTAMPS } else { 0 };
    let default_mss = ETHERNET_MSS - options - longer;
    let mss = file.mss.unwrap_or(Size(Bytes::new(default_mss)));
    if !(MSS.0..=MSS.1).contains(&mss.0.get()) {
        let message = format!(r#"expected "{} B" to "{} B", got "{mss}""#, MSS.0, MSS.1);
        return refuse("mss", message);
    }

    let widest = if file.window_scaling {
        SCALED
    } else {
        UNSCALED
    };
    let without = if file.window_scaling {
        ""
    } else {
        " without window_scaling"
    };
    for (key, buffer, most, clause) in [
        ("send_buffer", send_buffer, MAX_SEND_BUFFER, ""),
        ("receive_buffer", receive_buffer, widest, without),
    ] {
        let Buffer::Of(size) = buffer else {
            if section != "hosts" {
                let message = r#"expected a size such as "1 MiB": a gateway's do not grow"#;
                return refuse(key, message.to_owned());
            }
            continue;
        };
        if size.0.get() > most {
            let most = Size(Bytes::new(most));
            let message = format!(r#"expected at most "{most}"{clause}, got "{size}""#);
            return refuse(key, message);
        }
        if size.0 < mss.0 {
            let message = format!(r#"expected at least one segment ("{mss}"), got "{size}""#);
            return refuse(key, message);
        }
    }
    let memory = |key, memory: &MemoryFile, buffer, default| {
        memory_of(memory, buffer, default)
            .map_err(|(part, message)| fault(&[section, name, own, key, part], message))
    };
    let send = ("send_memory", &file.send_memory);
    let receive = ("receive_memory", &file.receive_memory);
    let send_memory = memory(send.0, send.1, send_buffer, BufferSizes::SEND)?;
    let receive_memory = memory(receive.0, receive.1, receive_buffer, BufferSizes::RECEIVE)?;
    let packet = mss.0.get() as u32 + HEADERS;
    let send_buffer = match send_buffer {
        Buffer::Of(size) => size.0.get(),
        Buffer::Auto => send_memory.map_or(0, |sizes| sizes.sendable(mss.0.get() as u32)),
    };
    let receive_buffer = match receive_buffer {
        Buffer::Of(size) => size.0.get(),
        Buffer::Auto => receive_memory
            .map_or(0, |sizes| sizes.receivable(mss.0.get() as u32, packet))
            .min(widest),
    };

    for (key, rto) in [
        ("minimum_rto", file.minimum_rto),
        ("initial_rto", file.initial_rto),
        ("maximum_rto", file.maximum_rto),
    ] {
        if rto.0 < SHORTEST_RTO {
            return refuse(key, format!(r#"expected at least "1 ms", got "{rto}""#));
        }
    }
    let ceiling = file.maximum_rto;
    for (key, rto) in [
        ("minimum_rto", file.minimum_rto),
        ("initial_rto", file.initial_rto),
    ] {
        if rto.0 > ceiling.0 {
            let message = format!(r#"expected at most maximum_rto ("{ceiling}"), got "{rto}""#);
            return refuse(key, message);
        }
    }

    let reference_rtt = file.hybla.reference_rtt;
    if !(REFERENCE_RTT.0..=REFERENCE_RTT.1).contains(&reference_rtt.0) {
        let message = format!(r#"expected "1 ms" to "10 s", got "{reference_rtt}""#);
        let keys = [section, name, own, "hybla", "reference_rtt"];
        return Err(fault(&keys, message));
    }
    if file.congestion_control == CongestionControlName::BuiltIn(CongestionControl::EnhancedHybla)
        && file.channel_capacity.is_none()
    {
        let message = r#"missing; expected a rate such as "100 Mbit/s" for "enhanced-hybla""#;
        return refuse("channel_capacity", message.to_owned());
    }
    let slow_start = file.slow_start.unwrap_or({
        let cubic = CongestionControlName::BuiltIn(CongestionControl::Cubic);
        match file.profile {
            _ if file.congestion_control != cubic => SlowStart::ByteCounting,
            Profile::Rfc => SlowStart::HyStart,
            Profile::Linux => SlowStart::LinuxHyStart,
        }
    });
    let limitless = matches!(slow_start, SlowStart::Standard | SlowStart::LinuxHyStart);
    if file.slow_start_limit.is_some() && limitless {
        let message = format!(r#"has no effect: slow_start is "{slow_start}""#);
        return refuse("slow_start_limit", message);
    }
    let quick_acks = file.quick_acks.unwrap_or(match file.profile {
        Profile::Rfc => QuickAcks::First(0),
        Profile::Linux => QuickAcks::Auto,
    });
    for (key, count, most) in [
        (
            "maximum_retransmissions",
            file.maximum_retransmissions,
            MOST_TIMES,
        ),
        (
            "maximum_syn_retransmissions",
            file.maximum_syn_retransmissions,
            MOST_TIMES,
        ),
    ] {
        if count > most {
            return refuse(key, format!("expected at most {most}, got {count}"));
        }
    }

    let base_mss = file.base_mss;
    if !(MSS.0..=MSS.1).contains(&base_mss.0.get()) {
        let message = format!(
            r#"expected "{} B" to "{} B", got "{base_mss}""#,
            MSS.0, MSS.1
        );
        return refuse("base_mss", message);
    }
    if let Some(keep_alive) = &file.keep_alive {
        keep_alive_is_sane(keep_alive)
            .map_err(|(key, message)| fault(&[section, name, own, "keep_alive", key], message))?;
    }

    let repair =
        recovery(file).map_err(|(key, message)| fault(&[section, name, own, key], message))?;

    Ok(TcpSettings {
        congestion_control: file.congestion_control.clone(),
        hybla: file.hybla,
        westwood: file.westwood,
        channel_capacity: file.channel_capacity.map(|rate| rate.0),
        bandwidth_filter: file.bandwidth_filter,
        pacing: file.pacing,
        recovery: repair.recovery,
        proportional_rate_reduction: repair.proportional_rate_reduction,
        rack: repair.rack,
        tail_loss_probe: repair.tail_loss_probe,
        f_rto: repair.f_rto,
        undo: repair.undo,
        newreno: file.newreno,
        profile: file.profile,
        slow_start,
        slow_start_limit: file.slow_start_limit.map(|limit| limit.0),
        congestion_avoidance: file.congestion_avoidance,
        window_validation: file.window_validation,
        idle_restart: file.idle_restart,
        initial_window: file.initial_window.0,
        initial_slow_start_threshold: file.initial_slow_start_threshold,
        mss: mss.0,
        send_buffer: Bytes::new(send_buffer),
        receive_buffer: Bytes::new(receive_buffer),
        send_memory,
        receive_memory,
        window_scaling: file.window_scaling,
        timestamps: file.timestamps,
        sack: file.sack,
        delayed_ack: file.delayed_ack,
        quick_acks,
        nagle: file.nagle.unwrap_or(defaults.nagle),
        limited_transmit: file.limited_transmit,
        initial_rto: file.initial_rto.0,
        minimum_rto: file.minimum_rto.0,
        maximum_rto: file.maximum_rto.0,
        rto_rule: file.rto_rule,
        rto_from: file.rto_from,
        ecn: file.ecn,
        keep_alive: file.keep_alive,
        path_mtu_discovery: file.path_mtu_discovery,
        base_mss: base_mss.0,
        maximum_retransmissions: file.maximum_retransmissions,
        maximum_syn_retransmissions: file.maximum_syn_retransmissions,
        time_wait: file.time_wait.0,
    })
}

/// On failure: the key, and what is wrong with it.
fn keep_alive_is_sane(file: &KeepAliveFile) -> Result<(), (&'static str, String)> {
    for (key, length) in [("idle", file.idle), ("interval", file.interval)] {
        if length.0 < SHORTEST_RTO {
            return Err((key, format!(r#"expected at least "1 ms", got "{length}""#)));
        }
    }
    if !(1..=MOST_TIMES).contains(&file.probes) {
        let message = format!("expected 1 to {MOST_TIMES}, got {}", file.probes);
        return Err(("probes", message));
    }
    Ok(())
}

/// The memory of a buffer that grows. On failure: which of its keys, and what is wrong with it.
fn memory_of(
    file: &MemoryFile,
    buffer: Buffer,
    default: BufferSizes,
) -> Result<Option<BufferSizes>, (&'static str, String)> {
    let set = [
        ("minimum", file.minimum, default.least),
        ("initial", file.initial, default.initial),
        ("maximum", file.maximum, default.most),
    ];
    if let Buffer::Of(size) = buffer {
        return match set.iter().find(|(_, value, _)| value.is_some()) {
            Some((key, ..)) => Err((key, format!(r#"has no effect: the buffer is "{size}""#))),
            None => Ok(None),
        };
    }
    let mut least = LEAST_MEMORY;
    for (key, value, _) in set {
        let Some(size) = value else { continue };
        let (bytes, at_least) = (size.0.get(), Size(Bytes::new(least)));
        if bytes > MAX_MEMORY {
            return Err((key, format!(r#"expected at most "1 GiB", got "{size}""#)));
        }
        if bytes < least {
            return Err((
                key,
                format!(r#"expected at least "{at_least}", got "{size}""#),
            ));
        }
        least = bytes;
    }
    // A key that is absent gives way to those that are set.
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
    }))
}

/// Loss recovery and what goes with it.
struct Repair {
    recovery: Recovery,
    proportional_rate_reduction: bool,
    rack: bool,
    tail_loss_probe: bool,
    f_rto: bool,
    undo: bool,
}

/// On failure: the key, and what is wrong with it.
fn recovery(file: &TcpFile) -> Result<Repair, (&'static str, String)> {
    let recovery = file.recovery.unwrap_or(if file.sack {
        Recovery::Sack
    } else {
        Recovery::NewReno
    });
    let sack = recovery == Recovery::Sack;
    let selective = sack || recovery == Recovery::Fack;
    if selective && !file.sack {
        let message = "needs selective acknowledgments, and sack is false";
        return Err(("recovery", message.to_owned()));
    }
    let wanted = |key, set: Option<bool>, possible: bool, reason: &str| match set {
        Some(true) if !possible => Err((key, format!("has no effect: {reason}"))),
        _ => Ok(set.unwrap_or(possible)),
    };
    let not_sack = r#"recovery is not "sack""#;
    let not_selective = r#"recovery is neither "sack" nor "fack""#;
    let rack = wanted("rack", file.rack, sack, not_sack)?;
    let proportional = file.proportional_rate_reduction;
    Ok(Repair {
        recovery,
        proportional_rate_reduction: wanted(
            "proportional_rate_reduction",
            proportional,
            sack,
            not_sack,
        )?,
        rack,
        tail_loss_probe: wanted(
            "tail_loss_probe",
            file.tail_loss_probe,
            rack,
            if sack { "rack is false" } else { not_sack },
        )?,
        f_rto: wanted("f_rto", file.f_rto, selective, not_selective)?,
        undo: wanted("undo", file.undo, selective, not_selective)?,
    })
}
