//! A case: settings of both ends, their applications, the path, and the lying end.

use bentpipe_tcp::{ActiveFastOpen, Config, PacingKind, PassiveFastOpen, PathMtuDiscovery};
use bentpipe_types::{FastOpen, IpVersion, Span, Time};

use super::dice::Dice;
use super::settings::config;

/// Kind of a case, which determines the required outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A path that loses, reorders, duplicates, delays and corrupts for a time, then a clean path.
    /// Both streams must be exact, and both ends must close without error.
    Path,
    /// As `Path`, and one end lies for a time in ways that TCP must detect: it acknowledges data
    /// never sent, sends false SACK and D-SACK blocks, splits acknowledgments, moves its window.
    /// Same requirement.
    Lies,
    /// As `Lies`, with lies that TCP cannot detect: it acknowledges data in flight, and draws flags
    /// and timestamps. Streams must be exact, or the connection ends with an error, or it waits for
    /// ever. Delivered data are a prefix of the written data.
    Fraud,
    /// A permanent failure: a dead path, an application that stops reading, or a closed window. An
    /// end without acknowledgments must give up; an end that is answered must keep probing.
    Stall(Stall),
}

/// Kind of a permanent failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Stall {
    /// No packet arrives from then on.
    DeadPath,
    /// B's application stops reading.
    Asleep,
    /// All of B's segments advertise window 0.
    ShutWindow,
}

/// Behaviour of one end's application.
#[derive(Clone, Debug)]
pub(super) struct Application {
    pub(super) to_write: u64,
    pub(super) chunk: u64,
    pub(super) sink: bool,
    pub(super) read_at_most: u64,
    /// Interval in which it does not read.
    pub(super) asleep: (Time, Time),
}

/// Impairments of the path. Probabilities are per packet.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// One-way delays with their start times.
    pub(super) delays: Vec<(Time, Span)>,
    /// Maximum additional delay, drawn per packet; causes reordering.
    pub(super) jitter: Span,
    /// Share of packets lost in bursts of about `burst` (Gilbert-Elliott; all packets of a burst
    /// are lost).
    pub(super) loss: f64,
    pub(super) burst: f64,
    /// Share of packets lost between bursts.
    pub(super) single_loss: f64,
    pub(super) duplication: f64,
    /// Header bits are inverted, which the checksum reveals.
    pub(super) corruption: f64,
    /// A copy with a false header and a valid checksum is delivered.
    pub(super) unseen_corruption: f64,
    /// ECN-capable packets are marked.
    pub(super) marks: f64,
    /// Longer packets never pass.
    pub(super) mtu: u32,
    /// Whether a router reports packets that are too long.
    pub(super) sends_icmp: bool,
    /// A false ICMP error about a segment is sent.
    pub(super) false_icmp: f64,
    /// Probability that a packet of the lying end is a lie.
    pub(super) lies: f64,
    /// From then on the path is clean.
    pub(super) until: Time,
}

impl Network {
    /// Avoids forgeries that could end a handshake, for ends that send other segments than SYNs
    /// before it is complete: such a segment can be forged into a SYN or SYN+ACK, and an ICMP error
    /// about it can be taken for one about the handshake, which it then ends (Linux's tcp_v4_err).
    pub(super) fn avoid_handshake_forgeries(&mut self) {
        self.unseen_corruption = 0.0;
        self.false_icmp = 0.0;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) configs: [Config; 2],
    pub(super) applications: [Application; 2],
    pub(super) network: Network,
    /// The lying end.
    pub(super) liar: usize,
    /// Settings with which A opens by Fast Open with data on its SYN, and B's policy.
    pub(super) fast_open: Option<(ActiveFastOpen, PassiveFastOpen)>,
    /// Whether both ends open at once.
    pub(super) both: bool,
    /// Time at which the case ends.
    pub(super) end: Time,
}

fn at(span: Span) -> Time {
    Time::ZERO + span
}

fn application(dice: &mut Dice) -> Application {
    let small = dice.one_in(3);
    let chunk = if small { dice.between(1, 300) } else { 1 << 30 };
    let from = dice.millis(2_000);
    let length = dice.millis(20_000);
    Application {
        to_write: match dice.below(4) {
            0 => 0,
            _ if small => dice.below(5_000),
            1 => dice.below(10_000),
            _ => dice.below(120_000),
        },
        chunk,
        sink: dice.coin(),
        read_at_most: dice.between(50, 20_000),
        asleep: (at(from), at(from + length)),
    }
}

fn network(dice: &mut Dice, kind: Kind) -> Network {
    let until = at(Span::from_millis(dice.between(1_000, 40_000)));
    let mut delays = vec![(Time::ZERO, dice.millis(300))];
    while delays.len() < 6 && dice.coin() {
        delays.push((at(dice.millis(40_000)), dice.millis(1_500)));
    }
    delays.sort_by_key(|&(from, _)| from);
    Network {
        delays,
        jitter: if dice.coin() {
            Span::ZERO
        } else {
            dice.millis(150)
        },
        loss: dice.share(0.4),
        burst: 1.0 + 9.0 * dice.uniform(),
        single_loss: dice.share(0.1),
        duplication: dice.share(0.3),
        corruption: dice.share(0.2),
        unseen_corruption: dice.share(0.2),
        marks: dice.share(0.3),
        mtu: u32::MAX,
        sends_icmp: dice.coin(),
        false_icmp: dice.share(0.1),
        lies: if matches!(kind, Kind::Lies | Kind::Fraud) {
            0.02 + 0.6 * dice.uniform()
        } else {
            0.0
        },
        until,
    }
}

/// Returns the least MTU. RFC 8201 section 4: 1280 bytes for IPv6.
pub(super) fn least_mtu(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 100,
        IpVersion::V6 => 1280,
    }
}

/// Ensures that each end can detect a small MTU.
pub(super) fn detects_small_mtu(dice: &mut Dice, config: &mut Config, sends_icmp: bool) {
    use PathMtuDiscovery::{BlackHole, Icmp, Off, Probe};
    config.path_mtu_discovery = match config.path_mtu_discovery {
        Off | Icmp if !sends_icmp => dice.pick(&[BlackHole, Probe]),
        Off => Icmp,
        other => other,
    };
}

fn fast_open(dice: &mut Dice) -> (ActiveFastOpen, PassiveFastOpen) {
    let cookie = |text: &[u8]| FastOpen::new(text, false);
    let bytes = if dice.coin() { dice.below(3_000) } else { 0 };
    let asks = ActiveFastOpen {
        option: cookie(if bytes > 0 { b"cookie" } else { b"" }).filter(|_| !dice.one_in(4)),
        bytes,
        room: dice.between(1, 1400) as u16,
    };
    let offer = cookie(b"another!").map_or(PassiveFastOpen::Ignore, PassiveFastOpen::Offer);
    (
        asks,
        dice.pick(&[PassiveFastOpen::Ignore, offer, PassiveFastOpen::Accept]),
    )
}

impl Case {
    /// Creates the case of a seed.
    pub(super) fn new(seed: u64) -> Self {
        let dice = &mut Dice::new(seed, "case");
        let kind = match dice.below(20) {
            0..=7 => Kind::Path,
            8..=13 => Kind::Lies,
            14..=16 => Kind::Fraud,
            17 => Kind::Stall(Stall::DeadPath),
            18 => Kind::Stall(Stall::Asleep),
            _ => Kind::Stall(Stall::ShutWindow),
        };
        let version = dice.pick(&[IpVersion::V4, IpVersion::V6]);
        let mut configs = [config(dice, version), config(dice, version)];
        let mut applications = [application(dice), application(dice)];
        let mut network = network(dice, kind);
        if dice.one_in(3) {
            let least = u64::from(least_mtu(version));
            network.mtu = dice.between(least, 1700) as u32;
            for config in &mut configs {
                detects_small_mtu(dice, config, network.sends_icmp);
            }
        }
        let mut fast_open = dice.one_in(4).then(|| fast_open(dice));
        if fast_open.is_some_and(|(_, answer)| answer == PassiveFastOpen::Accept) {
            // Data are sent before the handshake is complete.
            network.avoid_handshake_forgeries();
            fast_open = fast_open.filter(|_| kind != Kind::Fraud);
        }
        for side in [0, 1] {
            let segment = u64::from(configs[side].mss.min(configs[1 - side].mss));
            // A small window needs a round trip each time, a slow pace a second per segment.
            let mut most = 100 * configs[1 - side].maximum_received().min(65_535);
            if let PacingKind::AtMost(rate) = configs[side].pacing {
                let seconds = 300;
                most = most.min((rate.bits_per_second() / 8).max(segment) * seconds);
            }
            applications[side].to_write = applications[side].to_write.min(most).min(600 * segment);
        }
        if kind == Kind::Stall(Stall::Asleep) {
            applications[1].sink = false;
            applications[1].asleep.1 = Time::LAST;
        }
        let seconds = if matches!(kind, Kind::Stall(Stall::Asleep | Stall::ShutWindow)) {
            200
        } else {
            4_000
        };
        let liar = dice.below(2) as usize;
        let both = dice.one_in(8);
        if both && kind != Kind::Fraud {
            // With simultaneous open, an end answers segments that open nothing.
            network.avoid_handshake_forgeries();
        }
        Self {
            kind,
            configs,
            applications,
            network,
            liar,
            fast_open,
            both,
            end: at(Span::from_secs(seconds)),
        }
    }
}
