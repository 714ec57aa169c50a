//! Defaults and checks of QUIC settings.

use std::ops::RangeInclusive;

use bentpipe_tcp::congestion::WindowRule;
use bentpipe_types::Span;

use crate::custom::CustomControls;
use crate::fault::{Fault, fault};
use crate::hints;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::quic::schema::QuicFile;
use crate::quic::settings::{QuicControlName, QuicHostSettings};
use crate::tcp::congestion::CongestionControlName;

/// Windows: at least one packet, and at most what quinn's integers and the memory allow.
const WINDOW: RangeInclusive<u64> = 1_200..=1 << 32;

/// Payloads of UDP datagrams (RFC 9000 sections 14.1 and 18.2).
const MTU: RangeInclusive<u64> = 1_200..=65_527;

/// Lengths of certificates.
const CERTIFICATE: RangeInclusive<u64> = 100..=15_000;

/// Shortest round-trip time before the first measurement.
const SHORTEST: Span = Span::from_millis(1);

type Refusal = (&'static str, String);

fn within(
    key: &'static str,
    size: Option<Size>,
    range: &RangeInclusive<u64>,
) -> Result<Option<u64>, Refusal> {
    match size {
        Some(size) if !range.contains(&size.0.get()) => {
            let (least, most) = (range.start(), range.end());
            Err((
                key,
                format!(r#"expected "{least} B" to "{most} B", got "{size}""#),
            ))
        }
        size => Ok(size.map(|size| size.0.get())),
    }
}

fn count(
    key: &'static str,
    number: Option<u32>,
    range: &RangeInclusive<u32>,
) -> Result<Option<u32>, Refusal> {
    match number {
        Some(number) if !range.contains(&number) => {
            let (least, most) = (range.start(), range.end());
            Err((key, format!("expected {least} to {most}, got {number}")))
        }
        number => Ok(number),
    }
}

/// A length of time of at least a millisecond.
fn long_enough(key: &'static str, length: Option<Length>) -> Result<Option<Span>, Refusal> {
    match length {
        Some(length) if length.0 < SHORTEST => {
            Err((key, format!(r#"expected at least "1 ms", got "{length}""#)))
        }
        length => Ok(length.map(|length| length.0)),
    }
}

/// Fills in the defaults of the host `name` and checks all settings.
pub(crate) fn resolve_quic(
    name: &str,
    file: &QuicFile,
    custom: &CustomControls,
) -> Result<QuicHostSettings, Fault> {
    settings(file, custom).map_err(|(key, message)| fault(&["hosts", name, "quic", key], message))
}

fn settings(file: &QuicFile, custom: &CustomControls) -> Result<QuicHostSettings, Refusal> {
    let congestion_control = match &file.congestion_control {
        None => QuicControlName::QuinnCubic,
        Some(name) => QuicControlName::named(name),
    };
    if let QuicControlName::Tcp(CongestionControlName::Custom(name)) = &congestion_control
        && !custom.has(name)
    {
        let quinn = [
            QuicControlName::QUINN_CUBIC,
            QuicControlName::QUINN_NEW_RENO,
        ];
        let known = WindowRule::ALL.iter().map(|rule| rule.name());
        let known: Vec<_> = quinn
            .into_iter()
            .chain(known)
            .chain(custom.names())
            .collect();
        return Err(("congestion_control", hints::unknown_word(name, &known)));
    }
    if file.ack_delay.is_some() && file.ack_threshold.is_none() {
        let message = "has no effect without `ack_threshold`".to_owned();
        return Err(("ack_delay", message));
    }
    let mtu = within("mtu", file.mtu, &MTU)?.unwrap_or(1_200);
    let max_mtu = within("max_mtu", file.max_mtu, &MTU)?.unwrap_or(mtu.max(1_452));
    if max_mtu < mtu {
        let message = format!(r#"expected at least `mtu` ("{mtu} B"), got "{max_mtu} B""#);
        return Err(("max_mtu", message));
    }
    let defaults = QuicHostSettings::default();
    let sizes = |key, size, otherwise: u64| Ok(within(key, size, &WINDOW)?.unwrap_or(otherwise));
    Ok(QuicHostSettings {
        congestion_control,
        initial_window: within("initial_window", file.initial_window, &WINDOW)?,
        stream_window: sizes("stream_window", file.stream_window, defaults.stream_window)?,
        connection_window: within("connection_window", file.connection_window, &WINDOW)?,
        send_window: sizes("send_window", file.send_window, defaults.send_window)?,
        streams: count("streams", file.streams, &(1..=65_535))?.unwrap_or(defaults.streams),
        ack_threshold: count("ack_threshold", file.ack_threshold, &(1..=1_000))?,
        ack_delay: long_enough("ack_delay", file.ack_delay)?,
        initial_rtt: long_enough("initial_rtt", file.initial_rtt)?.unwrap_or(defaults.initial_rtt),
        idle_timeout: match file.idle_timeout {
            None => defaults.idle_timeout,
            Some(Length(Span::ZERO)) => None,
            length => long_enough("idle_timeout", length)?,
        },
        keep_alive: long_enough("keep_alive", file.keep_alive)?,
        mtu: mtu as u16,
        max_mtu: max_mtu as u16,
        burst: count("burst", file.burst, &(1..=64))?.unwrap_or(defaults.burst),
        early_data: file.early_data.unwrap_or(defaults.early_data),
        certificate: within("certificate", file.certificate, &CERTIFICATE)?
            .map_or(defaults.certificate, |bytes| bytes as u16),
    })
}
