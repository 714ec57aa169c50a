//! The TCP of a host, or of a gateway.

use bentpipe_types::{Bytes, Span};

use super::fault;
use crate::document::Fault;
use crate::quantity::Size;
use crate::schema::hints;
use crate::schema::{
    CongestionControl, CongestionControlName, KeepAliveFile, Profile, Recovery, SlowStart, TcpFile,
};
use crate::{CustomControls, TcpSettings};

/// Payload of a full segment in a 1500-byte IPv4 packet without options.
const ETHERNET_MSS: u64 = 1460;
/// Bytes of the timestamps option, padded (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;
const MSS: (u64, u64) = (64, 65_000);
/// Largest window without scaling, and with the largest scale (RFC 7323 section 2.3).
const UNSCALED: u64 = 65_535;
const SCALED: u64 = 65_535 << 14;
const MAX_SEND_BUFFER: u64 = 1 << 30;
/// More than a counter in a connection needs to hold.
const MOST_TIMES: u32 = 1_000;
/// Linux acknowledges every segment while its window opens: 370,000 for one of 1 GiB.
const MOST_QUICK_ACKS: u32 = 1_000_000;
/// A shorter retransmission timeout is no timeout but a storm.
const SHORTEST_RTO: Span = Span::from_millis(1);
/// Linux's TCP_MAX_QUICKACKS
const QUICK_ACKS: u32 = 16;
/// Hybla's RTT0.
const REFERENCE_RTT: (Span, Span) = (Span::from_millis(1), Span::from_secs(10));

/// What a file doesn't say that depends on whose TCP it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) send_buffer: Bytes,
    pub(super) receive_buffer: Bytes,
    pub(super) nagle: bool,
}

/// A host's: what Linux grows its buffers to.
pub(super) const OF_A_HOST: Defaults = Defaults {
    send_buffer: Bytes::new(6 << 20),
    receive_buffer: Bytes::new(6 << 20),
    nagle: true,
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
    let send_buffer = file.send_buffer.unwrap_or(Size(defaults.send_buffer));

    if let CongestionControlName::Custom(name) = &file.congestion_control
        && !custom.has(name)
    {
        let known = CongestionControl::ALL.iter().map(|built| built.name());
        let known: Vec<_> = known.chain(custom.names()).collect();
        return refuse("congestion_control", hints::unknown_word(name, &known));
    }
    let default_mss = ETHERNET_MSS - if file.timestamps { TIMESTAMPS } else { 0 };
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
    let receive_buffer = file
        .receive_buffer
        .unwrap_or(Size(defaults.receive_buffer.min(Bytes::new(widest))));
    if receive_buffer.0.get() > widest {
        let without = if file.window_scaling {
            ""
        } else {
            " without window_scaling"
        };
        let message = format!(r#"expected at most "{widest} B"{without}, got "{receive_buffer}""#);
        return refuse("receive_buffer", message);
    }
    if send_buffer.0.get() > MAX_SEND_BUFFER {
        let message = format!(r#"expected at most "1 GiB", got "{send_buffer}""#);
        return refuse("send_buffer", message);
    }
    for (key, buffer) in [
        ("send_buffer", send_buffer),
        ("receive_buffer", receive_buffer),
    ] {
        if buffer.0 < mss.0 {
            let message = format!(r#"expected at least one segment ("{mss}"), got "{buffer}""#);
            return refuse(key, message);
        }
    }

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
        Profile::Rfc => 0,
        Profile::Linux => QUICK_ACKS,
    });
    for (key, count, most) in [
        ("quick_acks", quick_acks, MOST_QUICK_ACKS),
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
        send_buffer: send_buffer.0,
        receive_buffer: receive_buffer.0,
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
