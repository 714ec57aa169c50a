//! Counters and gauges of a split gateway, for results and probes.

use std::mem;

use bentpipe_tcp::{Connection, Payload, Rings, Socket};
use bentpipe_types::{Gauge, Port, Processing, StreamCheck};

use super::Split;
use super::multiplex::MultiplexedConnection;
use super::split_connection::SplitConnection;

/// Events counted since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Connections split, in total.
    split: u64,
    /// Connections that have not ended.
    pub(super) open: u64,
    /// Largest value of `open`.
    open_maximum: u64,
    /// Connections forwarded because their class is not split.
    pub(super) passed: u64,
    /// Connections forwarded for want of memory.
    pub(super) refused: u64,
    /// Connections that the other host has refused.
    pub(super) refused_by_host: u64,
    /// Connections that the other host has not answered.
    pub(super) unreachable: u64,
    /// Packets from the opening host before its SYN was answered: the answer took another path.
    pub(super) early_packets: u64,
    /// Connections that replaced one in TIME-WAIT between the same endpoints.
    pub(super) replaced: u64,
    /// Connections reset after the idle timeout.
    pub(super) idle: u64,
    /// Connections of which one side was reset because the other had failed.
    aborted: u64,
    /// Trunks opened.
    pub(super) trunks_opened: u64,
    /// Trunks that have failed.
    pub(super) trunks_failed: u64,
    /// Trunks given up because the peer was silent.
    pub(super) trunks_silent: u64,
    /// Multiplexed connections reset because their trunk failed.
    pub(super) carried_reset: u64,
    /// ICMP errors about segments of legs.
    pub(super) icmp_errors: u64,
    pub(super) packets_split: u64,
    pub(super) packets_passed: u64,
    pub(super) packets_dropped: u64,
    /// Totals of legs that no longer exist.
    pub(super) closed_legs: Sums,
}

/// Totals over many legs, on either side of the gateway.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    facing: LegTotals,
    hosts: LegTotals,
    pub(super) check: StreamCheck,
}

/// Totals of legs: counters, and current windows.
#[derive(Clone, Copy, Debug, Default)]
struct LegTotals {
    bytes_delivered: u64,
    segments_sent: u64,
    segments_retransmitted: u64,
    timeouts: u64,
    /// Sum of the congestion windows of connections that have not ended, in bytes.
    windows: u64,
    /// Sum of their advertised windows, in bytes.
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

    fn combine(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
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

    /// Clears the windows: the leg has ended.
    fn close(&mut self) {
        (self.windows, self.offered) = (0, 0);
    }
}

impl Sums {
    /// Returns the totals of one connection.
    pub(super) fn of<P: Payload>(pair: &SplitConnection<P>, facing: Port) -> Self {
        let mut sums = Self::default();
        for (leg, port) in pair.legs.iter().zip(pair.ports) {
            if let Some(leg) = leg {
                sums.add_leg(leg, port == facing, pair.has_ended);
            }
        }
        sums
    }

    fn add_leg<P: Payload>(&mut self, leg: &Socket<P>, facing: bool, has_ended: bool) {
        let mut totals = LegTotals::of(leg.connection());
        if has_ended {
            totals.close();
        }
        let of = if facing {
            &mut self.facing
        } else {
            &mut self.hosts
        };
        of.combine(&totals, |sum, one| *sum += one);
        let found = leg.stream_check();
        self.check.ranges += found.ranges;
        self.check.mismatches += found.mismatches;
    }

    fn combine(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        self.facing.combine(&other.facing, &change);
        self.hosts.combine(&other.hosts, &change);
        change(&mut self.check.ranges, other.check.ranges);
        change(&mut self.check.mismatches, other.check.mismatches);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, |sum, one| *sum += one);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, |sum, one| *sum -= one);
    }

    /// Returns the totals of all connections and trunks of a gateway.
    pub(super) fn of_all<P: Payload>(split: &Split<P>) -> Self {
        let mut sums = *split.pairs.suspended_totals();
        for pair in split.pairs.active() {
            sums.add(&Self::of(pair, split.settings.facing));
        }
        if let Some(multiplex) = &split.multiplex {
            for trunk in multiplex.trunks() {
                sums.add_leg(trunk, true, false);
            }
            for one in multiplex.connections() {
                if let Some(leg) = &one.leg {
                    sums.add_leg(leg, false, one.has_ended);
                }
                sums.check.ranges += one.checked;
                sums.check.mismatches += one.mismatches;
            }
        }
        sums
    }
}

impl Counters {
    /// Records that all open connections are lost, and returns their number. `sums` are the totals
    /// of their legs.
    pub(super) fn connections_lost(&mut self, mut sums: Sums) -> u64 {
        sums.facing.close();
        sums.hosts.close();
        self.closed_legs.add(&sums);
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

    /// Takes back the count of a connection that is opened in another way instead.
    pub(super) fn uncount(&mut self) {
        self.split -= 1;
    }

    /// Adds a closed trunk to the totals of the past.
    pub(super) fn trunk_ended(&mut self, trunk: &Socket<Rings>) {
        self.closed_legs.add_leg(trunk, true, true);
    }

    /// Adds an ended multiplexed connection to the totals of the past.
    pub(super) fn multiplexed_ended<P: Payload>(&mut self, carried: &MultiplexedConnection<P>) {
        self.closed_legs.check.ranges += carried.checked;
        self.closed_legs.check.mismatches += carried.mismatches;
        if let Some(leg) = &carried.leg {
            self.closed_legs.add_leg(leg, false, true);
        }
    }

    pub(super) fn removed<P: Payload>(&mut self, pair: &SplitConnection<P>, facing: Port) {
        debug_assert!(pair.has_ended, "it has windows");
        self.closed_legs.add(&Sums::of(pair, facing));
    }

    /// Returns the result of checking all simulated streams.
    pub(super) fn check<P: Payload>(&self, split: &Split<P>) -> StreamCheck {
        let mut sums = Sums::of_all(split);
        sums.add(&self.closed_legs);
        sums.check
    }

    pub(super) fn report<P: Payload>(&self, split: &Split<P>, visit: &mut dyn FnMut(&str, u64)) {
        let budget = &split.budget;
        let mut sums = Sums::of_all(split);
        sums.add(&self.closed_legs);
        for (name, value) in [
            ("connections.split", self.split),
            ("connections.passed", self.passed),
            ("connections.refused", self.refused),
            ("connections.open", self.open),
            ("connections.open_max", self.open_maximum),
            ("connections.refused_by_host", self.refused_by_host),
            ("connections.unreachable", self.unreachable),
            ("connections.followed", self.replaced),
            ("connections.idle", self.idle),
            ("connections.aborted", self.aborted),
            ("bytes_held.now", budget.held),
            ("bytes_held.max", budget.held_maximum),
            ("bytes_promised.now", budget.used()),
            ("bytes_promised.max", budget.used_maximum),
            ("packets.split", self.packets_split),
            ("packets.passed", self.packets_passed),
            ("packets.dropped", self.packets_dropped),
            ("packets.early", self.early_packets),
            ("packets.icmp_errors", self.icmp_errors),
        ] {
            visit(name, value);
        }
        sums.facing.report("facing", visit);
        sums.hosts.report("hosts", visit);
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
    fn report(&self, part: &str, visit: &mut dyn FnMut(&str, u64)) {
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

/// Gauges that probes may read.
pub const GAUGES: &[Gauge] = &[
    Gauge::new("buffered", "B", "Stream data that the gateway holds."),
    Gauge::new(
        "promised",
        "B",
        "Memory that connections may use: data held and windows advertised.",
    ),
    Gauge::new("connections", "connections", "Open connections."),
    Gauge::new(
        "facing_window",
        "B",
        "Sum of the congestion windows on the `facing` side.",
    ),
    Gauge::new(
        "host_window",
        "B",
        "Sum of the congestion windows on the side of the hosts.",
    ),
    Gauge::new(
        "facing_offered",
        "B",
        "Sum of the windows advertised on the `facing` side.",
    ),
    Gauge::new(
        "host_offered",
        "B",
        "Sum of the windows advertised to the hosts.",
    ),
    Processing::GAUGE,
];

/// Returns the value of one of [`GAUGES`]. Windows are sums over all connections, of congestion
/// windows and of advertised windows.
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
