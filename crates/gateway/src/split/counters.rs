//! What a result and a probe see of a split gateway.

use std::mem;

use bentpipe_tcp::{Connection, Payload, Rings, Socket};
use bentpipe_types::{Gauge, Port, StreamCheck};

use super::Split;
use super::multiplex::Carried;
use super::pair::Pair;

/// What has happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Connections split, ever; those that aren't over, now and at most.
    split: u64,
    pub(super) open: u64,
    open_maximum: u64,
    /// Passed because they belong to no class that is split.
    pub(super) passed: u64,
    /// Passed for want of memory.
    pub(super) refused: u64,
    /// The other side has refused.
    pub(super) refusals: u64,
    /// The other side hasn't answered.
    pub(super) unreachable: u64,
    /// Packets of the side that opens, before it was answered: the answer went another way.
    pub(super) early_words: u64,
    /// New connections between the ends of one in TIME-WAIT.
    pub(super) followed: u64,
    /// Reset after nothing had come for too long.
    pub(super) idle: u64,
    /// One side reset, because the other had failed.
    aborted: u64,
    /// Persistent connections that were there, and those that have failed.
    pub(super) trunks_opened: u64,
    pub(super) trunks_failed: u64,
    /// Of these, those that were given up since nothing was heard on them,
    pub(super) trunks_silent: u64,
    /// and the hosts' connections that were reset with any.
    pub(super) carried_reset: u64,
    /// ICMP errors about segments of legs.
    pub(super) icmp_errors: u64,
    pub(super) packets_split: u64,
    pub(super) packets_passed: u64,
    pub(super) packets_dropped: u64,
    /// Of legs that are no more.
    pub(super) past: Sums,
}

/// What legs have come to, and have now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    facing: LegTotals,
    hosts: LegTotals,
    pub(super) check: StreamCheck,
}

/// What legs have done.
#[derive(Clone, Copy, Debug, Default)]
struct LegTotals {
    bytes_delivered: u64,
    segments_sent: u64,
    segments_retransmitted: u64,
    timeouts: u64,
    /// Congestion windows, and what is offered to the other ends, in bytes: of connections that aren't
    /// over.
    windows: u64,
    offered: u64,
}

impl LegTotals {
    fn of(connection: &Connection) -> Self {
        let statistics = connection.statistics();
        Self {
            bytes_delivered: connection.acknowledged_offset(),
            segments_sent: statistics.segments_sent,
            segments_retransmitted: statistics.segments_retransmitted,
            timeouts: statistics.timeouts,
            windows: connection.congestion_window(),
            offered: connection.advertised_window(),
        }
    }

    fn each(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        change(&mut self.bytes_delivered, other.bytes_delivered);
        change(&mut self.segments_sent, other.segments_sent);
        change(
            &mut self.segments_retransmitted,
            other.segments_retransmitted,
        );
        change(&mut self.timeouts, other.timeouts);
        change(&mut self.windows, other.windows);
        change(&mut self.offered, other.offered);
    }

    /// It has no windows any more.
    fn close(&mut self) {
        (self.windows, self.offered) = (0, 0);
    }
}

impl Sums {
    /// Of one connection.
    pub(super) fn of<P: Payload>(pair: &Pair<P>, facing: Port) -> Self {
        let mut sums = Self::default();
        for (leg, port) in pair.legs.iter().zip(pair.ports) {
            if let Some(leg) = leg {
                sums.add_leg(leg, port == facing, pair.over);
            }
        }
        sums
    }

    fn add_leg<P: Payload>(&mut self, leg: &Socket<P>, facing: bool, over: bool) {
        let mut totals = LegTotals::of(leg.connection());
        if over {
            totals.close();
        }
        let of = if facing {
            &mut self.facing
        } else {
            &mut self.hosts
        };
        of.each(&totals, |sum, one| *sum += one);
        let found = leg.stream_check();
        self.check.ranges += found.ranges;
        self.check.mismatches += found.mismatches;
    }

    fn each(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        self.facing.each(&other.facing, &change);
        self.hosts.each(&other.hosts, &change);
        change(&mut self.check.ranges, other.check.ranges);
        change(&mut self.check.mismatches, other.check.mismatches);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.each(other, |sum, one| *sum += one);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.each(other, |sum, one| *sum -= one);
    }

    /// Of all the connections of a gateway, and what carries them.
    pub(super) fn of_all<P: Payload>(split: &Split<P>) -> Self {
        let mut sums = *split.pairs.resting();
        for pair in split.pairs.awake() {
            sums.add(&Self::of(pair, split.settings.facing));
        }
        if let Some(multiplex) = &split.multiplex {
            for trunk in multiplex.trunks() {
                sums.add_leg(trunk, true, false);
            }
            for one in multiplex.carried() {
                if let Some(leg) = &one.leg {
                    sums.add_leg(leg, false, one.over);
                }
                sums.check.ranges += one.checked;
                sums.check.mismatches += one.mismatches;
            }
        }
        sums
    }
}

impl Counters {
    /// All that were open are no more; returns how many. `sums`: what legs have come to.
    pub(super) fn lost(&mut self, mut sums: Sums) -> u64 {
        sums.facing.close();
        sums.hosts.close();
        self.past.add(&sums);
        mem::take(&mut self.open)
    }

    pub(super) fn opened(&mut self) {
        self.split += 1;
        self.open += 1;
        self.open_maximum = self.open_maximum.max(self.open);
    }

    pub(super) fn ended(&mut self, aborted: bool) {
        self.open -= 1;
        self.aborted += u64::from(aborted);
    }

    /// It was not to be split this way, after all.
    pub(super) fn taken_back(&mut self) {
        self.split -= 1;
    }

    /// A persistent connection is no more.
    pub(super) fn trunk_ended(&mut self, trunk: &Socket<Rings>) {
        self.past.add_leg(trunk, true, true);
    }

    /// Nor is a connection that one has carried.
    pub(super) fn carried_ended<P: Payload>(&mut self, carried: &Carried<P>) {
        self.past.check.ranges += carried.checked;
        self.past.check.mismatches += carried.mismatches;
        if let Some(leg) = &carried.leg {
            self.past.add_leg(leg, false, true);
        }
    }

    pub(super) fn removed<P: Payload>(&mut self, pair: &Pair<P>, facing: Port) {
        debug_assert!(pair.over, "it has windows");
        self.past.add(&Sums::of(pair, facing));
    }

    /// What all streams have come to.
    pub(super) fn check<P: Payload>(&self, split: &Split<P>) -> StreamCheck {
        let mut sums = Sums::of_all(split);
        sums.add(&self.past);
        sums.check
    }

    pub(super) fn tell<P: Payload>(&self, split: &Split<P>, visit: &mut dyn FnMut(&str, u64)) {
        let budget = &split.budget;
        let mut sums = Sums::of_all(split);
        sums.add(&self.past);
        for (name, value) in [
            ("connections.split", self.split),
            ("connections.passed", self.passed),
            ("connections.refused", self.refused),
            ("connections.open", self.open),
            ("connections.open_max", self.open_maximum),
            ("connections.refused_by_host", self.refusals),
            ("connections.unreachable", self.unreachable),
            ("connections.followed", self.followed),
            ("connections.idle", self.idle),
            ("connections.aborted", self.aborted),
            ("bytes_held.now", budget.held),
            ("bytes_held.max", budget.held_maximum),
            ("bytes_promised.now", budget.used()),
            ("bytes_promised.max", budget.used_maximum),
            ("packets.split", self.packets_split),
            ("packets.passed", self.packets_passed),
            ("packets.dropped", self.packets_dropped),
            ("packets.early", self.early_words),
            ("packets.icmp_errors", self.icmp_errors),
        ] {
            visit(name, value);
        }
        sums.facing.tell("facing", visit);
        sums.hosts.tell("hosts", visit);
        if let Some(multiplex) = &split.multiplex {
            visit("multiplex.connections", multiplex.trunks().count() as u64);
            visit("multiplex.opened", self.trunks_opened);
            visit("multiplex.failed", self.trunks_failed);
            visit("multiplex.silent", self.trunks_silent);
            visit("multiplex.reset", self.carried_reset);
        }
    }
}

impl LegTotals {
    fn tell(&self, part: &str, visit: &mut dyn FnMut(&str, u64)) {
        for (name, value) in [
            ("bytes_delivered", self.bytes_delivered),
            ("segments_sent", self.segments_sent),
            ("segments_retransmitted", self.segments_retransmitted),
            ("timeouts", self.timeouts),
        ] {
            visit(&format!("{part}.{name}"), value);
        }
    }
}

/// What probes may look at.
pub const GAUGES: &[Gauge] = &[
    Gauge {
        name: "buffered",
        unit: "B",
    },
    Gauge {
        name: "promised",
        unit: "B",
    },
    Gauge {
        name: "connections",
        unit: "connections",
    },
    Gauge {
        name: "facing_window",
        unit: "B",
    },
    Gauge {
        name: "host_window",
        unit: "B",
    },
    Gauge {
        name: "facing_offered",
        unit: "B",
    },
    Gauge {
        name: "host_offered",
        unit: "B",
    },
    Gauge {
        name: "processing",
        unit: "packets",
    },
];

/// One of [`GAUGES`]. Windows are the sums over all connections: congestion windows, and what is
/// offered to the other end.
pub(super) fn gauge<P: Payload>(split: &Split<P>, index: usize) -> f64 {
    let sums = || Sums::of_all(split);
    match GAUGES.get(index).map(|gauge| gauge.name) {
        Some("buffered") => split.budget.held as f64,
        Some("promised") => split.budget.used() as f64,
        Some("connections") => split.counters.open as f64,
        Some("facing_window") => sums().facing.windows as f64,
        Some("host_window") => sums().hosts.windows as f64,
        Some("facing_offered") => sums().facing.offered as f64,
        Some("host_offered") => sums().hosts.offered as f64,
        Some("processing") => split
            .processor
            .as_ref()
            .map_or(0.0, |processor| processor.packets() as f64),
        _ => f64::NAN,
    }
}
