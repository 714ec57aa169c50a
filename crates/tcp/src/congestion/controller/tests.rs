use bentpipe_types::BitRate;
use proptest::prelude::*;

use super::super::{
    AfterLoss, AfterTimeout, BandwidthFilter, ChannelCapacity, CongestionControlKind,
    HyblaSettings, InitialThreshold, WestwoodAfterLoss, WestwoodSettings, WindowRule,
};
use super::*;
use crate::Config;
use crate::pacing::rate_of_window;
use crate::{AvoidanceKind, LinuxQuirks, SlowStartKind};

const SEGMENT: u32 = 1000;

/// Returns the window after an acknowledgment of so many bytes, from a window of 2000.
fn window_after(acknowledged: u64, config: &Config) -> u64 {
    let mut controller = Controller::new(
        &config.congestion_control,
        &config.congestion_settings(),
        SEGMENT,
        2000,
    );
    controller.on_ack(&AckSample::at(Time::ZERO, acknowledged));
    controller.window().congestion_window
}

#[test]
fn slow_start_stops_at_the_threshold_and_the_rest_counts_in_congestion_avoidance() {
    for (slow_start, expected) in [
        (
            SlowStartKind::AppropriateByteCounting {
                limit_segments: u32::MAX,
            },
            2500,
        ),
        (SlowStartKind::Standard, 3000),
    ] {
        let config = Config {
            congestion_control: CongestionControlKind::Reno,
            slow_start,
            initial_slow_start_threshold: Some(2500),
            ..Config::default()
        };
        assert_eq!(window_after(1500, &config), expected);
    }
}

#[test]
fn slow_start_of_tcp_linux_includes_the_threshold() {
    for (rule, tcp_linux, expected) in [
        // Half of the window is acknowledged.
        (CongestionControlKind::Reno, false, 2000),
        (CongestionControlKind::Reno, true, 3000),
        (CongestionControlKind::Westwood, true, 3000),
        // rho^2 / W with rho = 1: congestion avoidance.
        (CongestionControlKind::Hybla, true, 2500),
    ] {
        let config = Config {
            congestion_control: rule,
            initial_slow_start_threshold: Some(2000),
            avoidance: AvoidanceKind::PerAcknowledgment,
            tcp_linux,
            ..Config::default()
        };
        assert_eq!(window_after(1000, &config), expected);
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Ack { bytes: u64, rtt: Option<u64> },
    Duplicate,
    ApplicationLimited,
    IdleEnd(u64),
    Congestion(Congestion, u64),
    RepeatedTimeout(Option<u64>),
    RecoveryExit(Option<u64>),
    Spurious,
    Restart(u64, u64),
    Wait(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let event = prop_oneof![
        Just(Congestion::Loss),
        Just(Congestion::Ecn),
        Just(Congestion::Timeout)
    ];
    let rtt = prop_oneof![Just(0), 1..100u64, 1..2_000_000_000_000u64];
    prop_oneof![
        8 => (prop_oneof![1..3000u64, 1..(1u64 << 40)], proptest::option::of(rtt))
            .prop_map(|(bytes, rtt)| Operation::Ack { bytes, rtt }),
        2 => Just(Operation::Duplicate),
        1 => Just(Operation::ApplicationLimited),
        1 => (0..1_000_000_000_000u64).prop_map(Operation::IdleEnd),
        2 => (event, prop_oneof![0..100_000u64, any::<u64>()])
            .prop_map(|(event, flight)| Operation::Congestion(event, flight)),
        1 => proptest::option::of(any::<u64>()).prop_map(Operation::RepeatedTimeout),
        1 => proptest::option::of(any::<u64>()).prop_map(Operation::RecoveryExit),
        1 => Just(Operation::Spurious),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(w, t)| Operation::Restart(w, t)),
        4 => prop_oneof![0..1_000_000_000u64, 0..1_000_000_000_000_000u64]
            .prop_map(Operation::Wait),
    ]
}

/// Any rule with random settings.
fn config() -> impl Strategy<Value = Config> {
    let hybla = (
        prop::sample::select(InitialThreshold::ALL),
        prop::sample::select(ChannelCapacity::ALL),
        prop::sample::select(AfterLoss::ALL),
        prop::sample::select(AfterTimeout::ALL),
    )
        .prop_map(
            |(initial_threshold, channel_capacity, after_loss, after_timeout)| HyblaSettings {
                initial_threshold,
                channel_capacity,
                after_loss,
                after_timeout,
                ..HyblaSettings::default()
            },
        );
    (
        prop::sample::select(WindowRule::ALL),
        hybla,
        prop::sample::select(WestwoodAfterLoss::ALL),
        prop::sample::select(BandwidthFilter::ALL),
        prop_oneof![Just(1), Just(1_000_000_000_000)],
    )
        .prop_map(|(rule, hybla, after_loss, bandwidth_filter, rate)| Config {
            congestion_control: rule.into(),
            hybla,
            westwood: WestwoodSettings {
                after_loss,
                ..WestwoodSettings::default()
            },
            bandwidth_filter: Some(bandwidth_filter),
            channel_capacity: BitRate::new(rate),
            ..Config::default()
        })
}

proptest! {
    #[test]
    fn window_is_between_one_segment_and_a_terabyte_after_any_operations(
        config in config(),
        slow_start in prop_oneof![
            Just(SlowStartKind::Standard),
            Just(SlowStartKind::AppropriateByteCounting { limit_segments: u32::MAX }),
            Just(SlowStartKind::HyStart { limit_segments: 8 }),
            Just(SlowStartKind::LinuxHyStart),
        ],
        linux_quirks in prop_oneof![Just(LinuxQuirks::NONE), Just(LinuxQuirks::ALL)],
        avoidance in prop_oneof![
            Just(AvoidanceKind::ByteCounting),
            Just(AvoidanceKind::PerAcknowledgment),
        ],
        operations in prop::collection::vec(operation(), 1..200),
    ) {
        let config = Config {
            slow_start,
            avoidance,
            linux_quirks,
            ..config
        };
        let mut controller = Controller::new(&config.congestion_control, &config.congestion_settings(), SEGMENT, 10_000);
        let mut sample = AckSample::at(Time::ZERO, 0);
        controller.on_established(Some(Span::from_millis(600)), Time::ZERO);
        for operation in operations {
            match operation {
                Operation::Ack { bytes, rtt } => {
                    let rtt = rtt.map(Span::from_nanos);
                    sample.acknowledged = bytes;
                    sample.delivered = sample.delivered.saturating_add(bytes);
                    sample.unacknowledged = sample.unacknowledged.saturating_add(bytes);
                    sample.next = sample.unacknowledged.saturating_add(10_000);
                    sample.rtt = rtt;
                    sample.smoothed_rtt = rtt.or(sample.smoothed_rtt);
                    sample.minimum_rtt = match (rtt, sample.minimum_rtt) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    };
                    controller.on_delivery(&sample);
                    controller.on_ack(&sample);
                }
                Operation::Duplicate => {
                    sample.acknowledged = 0;
                    sample.delivered = sample.delivered.saturating_add(1000);
                    controller.on_delivery(&sample);
                }
                Operation::ApplicationLimited => controller.on_application_limited(),
                Operation::IdleEnd(nanos) => {
                    let before = sample.now.since(Time::ZERO).as_nanos().saturating_sub(nanos);
                    controller.on_idle_end(Time::ZERO + Span::from_nanos(before), sample.now);
                }
                Operation::Congestion(event, flight_size) => {
                    controller.on_congestion(event, flight_size, sample.now);
                    prop_assert!(controller.window().slow_start_threshold >= 2000);
                }
                Operation::RepeatedTimeout(flight_size) => controller.on_repeated_timeout(flight_size),
                Operation::RecoveryExit(limit) => controller.on_recovery_exit(limit, sample.now),
                Operation::Spurious => controller.on_spurious(),
                Operation::Restart(window, threshold) => controller.restart(window, threshold),
                Operation::Wait(nanos) => sample.now += Span::from_nanos(nanos),
            }
            let window = controller.window();
            prop_assert!(
                (u64::from(SEGMENT)..=MAXIMUM_WINDOW).contains(&window.congestion_window),
                "{window:?} after {operation:?}"
            );
            // Only rules that pace set a rate. The rate of the window is always finite and
            // positive.
            prop_assert!(controller.wants_pacing() || controller.pacing_rate().is_none());
            for rtt in [1, 1_000_000_000, u64::MAX] {
                let rate = rate_of_window(window, 0, Span::from_nanos(rtt));
                prop_assert!(rate.is_some_and(|rate| rate.bits_per_second() > 0));
            }
        }
    }
}
