//! Fuzzes the window rules as congestion controllers of QUIC with any sequence of calls.

use std::time::Duration;

use arbitrary::Arbitrary;
use bentpipe_quic::{Controller, WindowRule, instant};
use bentpipe_tcp::congestion::{SavedPath, WindowRule as Kind};
use bentpipe_tcp::{Config, CongestionControlKind};
use bentpipe_types::{BitRate, Span, Time};

/// A rule, its settings, and calls.
#[derive(Arbitrary, Debug)]
pub struct Input {
    rule: u8,
    initial_window: Option<u16>,
    mtu: u16,
    saved: Option<u32>,
    calls: Vec<Call>,
}

#[derive(Arbitrary, Debug)]
enum Call {
    /// Milliseconds to advance.
    Wait(u16),
    Sent {
        packets: u8,
        bytes: u16,
    },
    /// A packet that was sent some milliseconds ago is acknowledged.
    Acknowledged {
        age: u16,
        bytes: u16,
        rtt: u16,
    },
    AcksEnd {
        in_flight: u32,
        application_limited: bool,
    },
    Congestion {
        age: u16,
        persistent: bool,
        lost: u32,
    },
    Mtu(u16),
}

/// Runs the calls.
///
/// # Panics
///
/// A window is below two packets.
pub fn run(input: &Input) {
    let mtu = |bytes: u16| bytes.max(1_200);
    let mut config = Config {
        congestion_control: kind(input.rule),
        channel_capacity: BitRate::new(10_000_000),
        ..Config::default()
    };
    if let Some(window) = input.saved {
        config.congestion_control = config.resuming(SavedPath {
            window: window.into(),
            rtt: Span::from_millis(100),
            expires: Time::NEVER,
        });
    }
    let initial = input.initial_window.map(u64::from);
    let mut now = Time::ZERO + Span::from_secs(100);
    let mut packet = mtu(input.mtu);
    let mut rule = WindowRule::new(config.into(), initial, 1, packet, instant(now));
    let mut number = 0;
    for call in input.calls.iter().take(500) {
        let before = |age: u16| instant(now) - Duration::from_millis(age.into());
        match *call {
            Call::Wait(milliseconds) => now += Span::from_millis(milliseconds.into()),
            Call::Sent { packets, bytes } => {
                for _ in 0..packets {
                    number += 1;
                    rule.on_sent(instant(now), bytes.into(), number);
                }
            }
            Call::Acknowledged { age, bytes, rtt } => {
                rule.acknowledge(before(age), bytes.into(), Span::from_millis(rtt.into()));
            }
            Call::AcksEnd {
                in_flight,
                application_limited,
            } => rule.on_end_acks(instant(now), in_flight.into(), application_limited, None),
            Call::Congestion {
                age,
                persistent,
                lost,
            } => rule.on_congestion_event(instant(now), before(age), persistent, lost.into()),
            Call::Mtu(bytes) => {
                packet = mtu(bytes);
                rule.on_mtu_update(packet);
            }
        }
        let window = rule.window();
        assert!(window >= 2 * u64::from(packet), "{window}");
        let metrics = rule.metrics();
        assert_eq!(metrics.congestion_window, window);
        assert_ne!(metrics.pacing_rate, Some(0));
    }
}

/// Returns the kind of a window rule.
fn kind(rule: u8) -> CongestionControlKind {
    let all = Kind::ALL;
    all[usize::from(rule) % all.len()].into()
}
