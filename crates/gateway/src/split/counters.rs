//! What a result and a probe see of a split gateway.

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
    /// ICMP errors about segments of legs.
    pub(super) icmp_errors: u64,
    pub(super) packets_split: u64,
    pub(super) packets_passed: u64,
    pub(super) packets_dropped: u64,
    pub(super) check: StreamCheck,
    facing: LegTotals,
    hosts: LegTotals,
}

/// What legs have done.
#[derive(Clone, Copy, Debug, Default)]
struct LegTotals {
    bytes_delivered: u64,
    segments_sent: u64,
    segments_retransmitted: u64,
    timeouts: u64,
}

impl LegTotals {
    fn add<P: Payload>(&mut self, leg: &Socket<P>) {
        let statistics = leg.connection().statistics();
        self.bytes_delivered += leg.connection().acknowledged_offset();
        self.segments_sent += statistics.segments_sent;
        self.segments_retransmitted += statistics.segments_retransmitted;
        self.timeouts += statistics.timeouts;
    }
}

impl Counters {
    pub(super) fn opened(&mut self) {
        self.split += 1;
        self.open += 1;
        self.open_maximum = self.open_maximum.max(self.open);
    }

    pub(super) fn ended(&mut self, aborted: bool) {
        self.open -= 1;
        self.aborted += u64::from(aborted);
    }

    /// A persistent connection is no more.
    pub(super) fn trunk_ended(&mut self, trunk: &Socket<Rings>) {
        self.facing.add(trunk);
        let found = trunk.stream_check();
        self.check.ranges += found.ranges;
        self.check.mismatches += found.mismatches;
    }

    /// Nor is a connection that one has carried.
    pub(super) fn carried_ended<P: Payload>(&mut self, carried: &Carried<P>) {
        self.check.ranges += carried.checked;
        self.check.mismatches += carried.mismatches;
        if let Some(leg) = &carried.leg {
            self.hosts.add(leg);
            let found = leg.stream_check();
            self.check.ranges += found.ranges;
            self.check.mismatches += found.mismatches;
        }
    }

    pub(super) fn removed<P: Payload>(&mut self, pair: &Pair<P>, facing: Port) {
        let Self {
            facing: f,
            hosts,
            check,
            ..
        } = self;
        add(pair, facing, f, hosts);
        for leg in pair.legs.iter().flatten() {
            let leg = leg.stream_check();
            check.ranges += leg.ranges;
            check.mismatches += leg.mismatches;
        }
    }

    pub(super) fn tell<P: Payload>(&self, split: &Split<P>, visit: &mut dyn FnMut(&str, u64)) {
        let budget = &split.budget;
        let (mut facing, mut hosts) = (self.facing, self.hosts);
        for pair in split.pairs.iter() {
            add(pair, split.settings.facing, &mut facing, &mut hosts);
        }
        if let Some(multiplex) = &split.multiplex {
            multiplex.trunks().for_each(|trunk| facing.add(trunk));
            let legs = multiplex.carried().filter_map(|one| one.leg.as_ref());
            legs.for_each(|leg| hosts.add(leg));
        }
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
        facing.tell("facing", visit);
        hosts.tell("hosts", visit);
        if let Some(multiplex) = &split.multiplex {
            visit("multiplex.connections", multiplex.trunks().count() as u64);
            visit("multiplex.opened", self.trunks_opened);
            visit("multiplex.failed", self.trunks_failed);
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

fn add<P: Payload>(pair: &Pair<P>, at: Port, facing: &mut LegTotals, hosts: &mut LegTotals) {
    for (leg, port) in pair.legs.iter().zip(pair.ports) {
        if let Some(leg) = leg {
            if port == at {
                facing.add(leg);
            } else {
                hosts.add(leg);
            }
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
    let sum = |facing: bool, of: fn(&Connection) -> u64| {
        let legs = split
            .pairs
            .iter()
            .filter(|pair| !pair.over)
            .flat_map(|pair| {
                let ports = pair.ports;
                (pair.legs.iter().zip(ports)).filter_map(|(leg, port)| Some((leg.as_ref()?, port)))
            });
        let own: u64 = legs
            .filter(|(_, port)| (*port == split.settings.facing) == facing)
            .map(|(leg, _)| of(leg.connection()))
            .sum();
        let Some(multiplex) = &split.multiplex else {
            return own as f64;
        };
        let carried = multiplex.carried().filter(|one| !one.over);
        let carried = carried.filter_map(|one| one.leg.as_ref());
        let more: u64 = if facing {
            multiplex.trunks().map(|trunk| of(trunk.connection())).sum()
        } else {
            carried.map(|leg| of(leg.connection())).sum()
        };
        (own + more) as f64
    };
    let congestion = Connection::congestion_window;
    let offered = Connection::advertised_window;
    match GAUGES.get(index).map(|gauge| gauge.name) {
        Some("buffered") => split.budget.held as f64,
        Some("promised") => split.budget.used() as f64,
        Some("connections") => split.counters.open as f64,
        Some("facing_window") => sum(true, congestion),
        Some("host_window") => sum(false, congestion),
        Some("facing_offered") => sum(true, offered),
        Some("host_offered") => sum(false, offered),
        Some("processing") => split
            .processor
            .as_ref()
            .map_or(0.0, |processor| processor.packets() as f64),
        _ => f64::NAN,
    }
}
