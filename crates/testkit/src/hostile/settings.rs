//! Random connection settings: every window rule, recovery, slow start and pacing.

use bentpipe_tcp::congestion::{
    AfterLoss, AfterTimeout, BandwidthFilter, ChannelCapacity, HyblaSettings, InitialThreshold,
    WestwoodAfterLoss, WestwoodSettings, WindowRule,
};
use bentpipe_tcp::{
    AvoidanceKind, BufferSizes, Config, EcnMode, IdleRestart, KeepAlive, LinuxQuirks, NewRenoKind,
    PacingKind, PathMtuDiscovery, QuickAcks, RecoveryKind, RtoFrom, RtoRule, SlowStartKind,
};
use bentpipe_types::{BitRate, IpVersion, Span};

use super::dice::Dice;

/// Longest retransmission timeout in these cases.
pub(super) const MAXIMUM_RTO: Span = Span::from_secs(8);

fn rate(dice: &mut Dice, end: u64) -> BitRate {
    BitRate::new(dice.between(1, end)).expect("not zero")
}

fn hybla(dice: &mut Dice) -> HyblaSettings {
    HyblaSettings {
        reference_rtt: Span::from_millis(dice.between(1, 200)),
        initial_threshold: dice.pick(InitialThreshold::ALL),
        channel_capacity: dice.pick(ChannelCapacity::ALL),
        after_loss: dice.pick(AfterLoss::ALL),
        after_timeout: dice.pick(AfterTimeout::ALL),
    }
}

fn slow_start(dice: &mut Dice) -> SlowStartKind {
    match dice.below(4) {
        0 => SlowStartKind::Standard,
        1 => SlowStartKind::AppropriateByteCounting {
            limit_segments: dice.pick(&[1, 2, 8, u32::MAX]),
        },
        2 => SlowStartKind::HyStart {
            limit_segments: dice.pick(&[1, 8, u32::MAX]),
        },
        _ => SlowStartKind::LinuxHyStart,
    }
}

fn pacing(dice: &mut Dice) -> PacingKind {
    match dice.below(6) {
        0..=2 => PacingKind::AsRule,
        3 => PacingKind::Off,
        4 => PacingKind::On,
        _ => PacingKind::AtMost(rate(dice, 10_000_000)),
    }
}

/// Draws keep-alive settings that outlast the impairments of these cases.
pub(super) fn keep_alive(dice: &mut Dice) -> KeepAlive {
    KeepAlive {
        idle: Span::from_millis(dice.between(1, 30_000)),
        interval: Span::from_millis(dice.between(1_000, 5_000)),
        probes: 60,
    }
}

/// Draws the sizes of a growing buffer.
fn sizes(dice: &mut Dice) -> BufferSizes {
    let initial = dice.between(2500, 100_000);
    BufferSizes {
        least: 2500,
        initial,
        most: initial + dice.below(400_000),
        locked: false,
    }
}

/// Draws settings.
pub(super) fn config(dice: &mut Dice, version: IpVersion) -> Config {
    Config {
        mss: if dice.coin() {
            1448
        } else {
            // Segments of one byte would only take long.
            dice.between(60, 3000) as u16
        },
        initial_window: dice.between(1, 20) as u32,
        initial_slow_start_threshold: dice.one_in(4).then(|| dice.between(1, 100_000)),
        send_buffer: dice.between(2000, 100_000),
        receive_buffer: if dice.coin() {
            dice.between(200, 3000)
        } else {
            dice.between(3000, 200_000)
        },
        send_sizes: dice.coin().then(|| sizes(dice)),
        receive_sizes: dice.coin().then(|| sizes(dice)),
        window_shift: dice.below(15) as u8,
        window_scaling: dice.coin(),
        timestamps: dice.coin(),
        sack: !dice.one_in(4),
        delayed_ack: dice.coin().then(|| dice.millis(500)),
        quick_acks: if dice.coin() {
            QuickAcks::Linux
        } else {
            QuickAcks::First(dice.below(17) as u32)
        },
        nagle: dice.coin(),
        rto_rule: dice.pick(RtoRule::ALL),
        rto_from: dice.pick(RtoFrom::ALL),
        minimum_rto: Span::from_millis(dice.between(100, 1000)),
        maximum_rto: MAXIMUM_RTO,
        // No connection gives up during an outage.
        maximum_retransmissions: 30,
        maximum_syn_retransmissions: 30,
        limited_transmit: dice.coin(),
        congestion_control: dice.pick(WindowRule::ALL).into(),
        hybla: hybla(dice),
        westwood: WestwoodSettings {
            after_loss: dice.pick(WestwoodAfterLoss::ALL),
            time_constant: Span::from_millis(dice.between(1, 5_000)),
        },
        channel_capacity: Some(rate(dice, 1_000_000_000)),
        bandwidth_filter: dice.coin().then(|| dice.pick(BandwidthFilter::ALL)),
        pacing: pacing(dice),
        recovery: dice.pick(&[
            RecoveryKind::Reno,
            RecoveryKind::NewReno,
            RecoveryKind::Sack,
            RecoveryKind::Sack,
            RecoveryKind::Sack,
            RecoveryKind::Fack,
        ]),
        proportional_rate_reduction: dice.coin(),
        rack: dice.coin(),
        tail_loss_probe: dice.coin(),
        f_rto: dice.coin(),
        undo: dice.coin(),
        newreno: dice.pick(NewRenoKind::ALL),
        slow_start: slow_start(dice),
        avoidance: dice.pick(AvoidanceKind::ALL),
        window_validation: dice.coin(),
        idle_restart: dice.pick(IdleRestart::ALL),
        ip_version: version,
        ecn: dice.pick(EcnMode::ALL),
        keep_alive: dice.one_in(3).then(|| keep_alive(dice)),
        path_mtu_discovery: dice.pick(PathMtuDiscovery::ALL),
        base_mss: dice.pick(&[512, 1024, 1400]),
        linux_quirks: dice.pick(&[LinuxQuirks::NONE, LinuxQuirks::ALL]),
        tcp_linux: dice.one_in(8),
        ..Config::default()
    }
}
