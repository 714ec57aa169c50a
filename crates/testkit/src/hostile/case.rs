//! One case: two ends' settings, what their applications do, the path, and who lies.

use bentpipe_tcp::{ActiveFastOpen, Config, PacingKind, PassiveFastOpen, PathMtuDiscovery};
use bentpipe_types::{FastOpen, IpVersion, Span, Time};

use super::dice::Dice;
use super::settings::config;

/// What a case puts a connection through, and what therefore must come of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A path that loses, reorders, duplicates, jumps and corrupts, and gets well again: both
    /// streams are exact and both ends close, without an error.
    Path,
    /// And one end lies in ways that a TCP has to see through (acknowledges what was never sent,
    /// SACKs nonsense, splits acknowledgments, sends D-SACKs, moves its window about), for a while:
    /// the same.
    Lies,
    /// And in ways that no TCP can see through (acknowledges what has not arrived, sets flags and
    /// timestamps at random): the streams are exact, or the connection ends with an error, or it waits
    /// for what will never come. What was delivered is the beginning of what was written.
    Fraud,
    /// Something never gets well: the path dies, or an application stops reading, or a window stays
    /// shut. Who waits for an acknowledgment that cannot come gives up; who is answered goes on
    /// probing.
    Stall(Stall),
}

/// What never gets well.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Stall {
    /// Nothing arrives from then on.
    DeadPath,
    /// B's application reads nothing more.
    Asleep,
    /// B's segments all say that its window is shut.
    ShutWindow,
}

/// What one end's application does.
#[derive(Clone, Debug)]
pub(super) struct Application {
    pub(super) to_write: u64,
    pub(super) chunk: u64,
    pub(super) sink: bool,
    pub(super) read_at_most: u64,
    /// It reads nothing in this time.
    pub(super) asleep: (Time, Time),
}

/// What the path does to packets. Probabilities are per packet.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// One-way delays, and when each begins.
    pub(super) delays: Vec<(Time, Span)>,
    /// Up to this much more, drawn for each packet: reorders.
    pub(super) jitter: Span,
    /// Share of packets lost (Gilbert and Elliott: runs of about `burst`, all lost).
    pub(super) loss: f64,
    pub(super) burst: f64,
    /// And what is lost between them.
    pub(super) single_loss: f64,
    pub(super) duplication: f64,
    /// Bits of the headers are changed: the checksum tells.
    pub(super) corruption: f64,
    /// A copy comes whose header is false and whose checksum is true.
    pub(super) unseen_corruption: f64,
    /// Queues mark what is ECN-capable.
    pub(super) marks: f64,
    /// No longer packet passes, ever.
    pub(super) mtu: u32,
    /// And a router says so.
    pub(super) speaks: bool,
    /// Somebody says of a segment on the path what is not so.
    pub(super) false_icmp: f64,
    /// Each packet of the end that lies is a lie with this probability.
    pub(super) lies: f64,
    /// From then on it is a clean path.
    pub(super) until: Time,
}

impl Network {
    /// For who sends other segments than SYNs before the handshake is over: what is made of one can pass for a SYN or a SYN+ACK,
    /// and an error about one for one about the handshake, which it then ends (Linux's tcp_v4_err). So neither is done.
    pub(super) fn leave_handshakes_alone(&mut self) {
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
    /// Who lies.
    pub(super) liar: usize,
    /// A opens with Fast Open: data that goes on its SYN, and what B makes of it.
    pub(super) fast_open: Option<(ActiveFastOpen, PassiveFastOpen)>,
    /// Both ends open at once.
    pub(super) both: bool,
    /// When the case is over, whatever has become of it.
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
        speaks: dice.coin(),
        false_icmp: dice.share(0.1),
        lies: if matches!(kind, Kind::Lies | Kind::Fraud) {
            0.02 + 0.6 * dice.uniform()
        } else {
            0.0
        },
        until,
    }
}

/// RFC 8201 section 4: no IPv6 path is narrower.
pub(super) fn least_mtu(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 100,
        IpVersion::V6 => 1280,
    }
}

/// On a narrow path, each end has a way to learn of it.
pub(super) fn listens_or_looks(dice: &mut Dice, config: &mut Config, speaks: bool) {
    use PathMtuDiscovery::{BlackHole, Icmp, Off, Probe};
    config.path_mtu_discovery = match config.path_mtu_discovery {
        Off | Icmp if !speaks => dice.pick(&[BlackHole, Probe]),
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
        dice.pick(&[PassiveFastOpen::Ignore, offer, PassiveFastOpen::Take]),
    )
}

impl Case {
    /// The case of this seed.
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
                listens_or_looks(dice, config, network.speaks);
            }
        }
        let mut fast_open = dice.one_in(4).then(|| fast_open(dice));
        if fast_open.is_some_and(|(_, answer)| answer == PassiveFastOpen::Take) {
            // Data goes before the handshake is over.
            network.leave_handshakes_alone();
            fast_open = fast_open.filter(|_| kind != Kind::Fraud);
        }
        for side in [0, 1] {
            let segment = u64::from(configs[side].mss.min(configs[1 - side].mss));
            // A small window needs a round trip each time, a slow pace a second for each segment.
            let mut most = 100 * configs[1 - side].most_received().min(65_535);
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
            // An end that has called and been called answers what opens nothing.
            network.leave_handshakes_alone();
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
