//! Results and gauges of a split gateway.

use bentpipe_tcp::Payload;
use bentpipe_types::{Gauge, Processing, StreamCheck};

use super::Split;
use super::leg_totals::Sums;

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

impl<P: Payload> Split<P> {
    /// Returns the totals of all connections and trunks of a gateway.
    pub(super) fn sums(&self) -> Sums {
        let mut sums = *self.pairs.suspended_totals();
        for pair in self.pairs.active() {
            sums.add(&Sums::of(pair, self.settings.facing));
        }
        if let Some(multiplex) = &self.multiplex {
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

    /// Returns the result of checking all simulated streams.
    pub(super) fn check_streams(&self) -> StreamCheck {
        let mut sums = self.sums();
        sums.add(&self.counters.closed_legs);
        sums.check
    }

    /// Reports all counters by name.
    pub(super) fn report_counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        let budget = &self.budget;
        let mut sums = self.sums();
        sums.add(&self.counters.closed_legs);
        for (name, value) in [
            ("connections.split", self.counters.split),
            ("connections.passed", self.counters.passed),
            ("connections.refused", self.counters.refused),
            ("connections.open", self.counters.open),
            ("connections.open_max", self.counters.open_maximum),
            ("connections.refused_by_host", self.counters.refused_by_host),
            ("connections.unreachable", self.counters.unreachable),
            ("connections.followed", self.counters.replaced),
            ("connections.idle", self.counters.idle),
            ("connections.aborted", self.counters.aborted),
            ("bytes_held.now", budget.held),
            ("bytes_held.max", budget.held_maximum),
            ("bytes_promised.now", budget.used()),
            ("bytes_promised.max", budget.used_maximum),
            ("packets.split", self.counters.packets_split),
            ("packets.passed", self.counters.packets_passed),
            ("packets.dropped", self.counters.packets_dropped),
            ("packets.early", self.counters.early_packets),
            ("packets.icmp_errors", self.counters.icmp_errors),
        ] {
            visit(name, value);
        }
        if !self.settings.rate_limits.is_empty() || self.rate_limits.dropped > 0 {
            visit("packets.over_rate", self.rate_limits.dropped);
        }
        // Not in a simulation's results, whose form is fixed.
        if self.settings.secret.is_some() {
            for (name, value) in [
                ("connections.half_open", self.admission.half_open().into()),
                (
                    "connections.refused_half_open",
                    self.counters.refused_half_open,
                ),
                ("connections.half_open_given_up", self.counters.given_up),
                ("packets.over_memory", self.counters.payloads_dropped),
            ] {
                visit(name, value);
            }
        }
        sums.facing.report("facing", visit);
        sums.hosts.report("hosts", visit);
        if let Some(multiplex) = &self.multiplex {
            visit("multiplex.connections", multiplex.trunks().count() as u64);
            visit("multiplex.opened", self.counters.trunks_opened);
            visit("multiplex.failed", self.counters.trunks_failed);
            visit("multiplex.silent", self.counters.trunks_silent);
            visit("multiplex.reset", self.counters.carried_reset);
        }
    }

    /// Returns the value of one of [`GAUGES`]. Windows are sums over all connections, of congestion
    /// windows and of advertised windows.
    pub(super) fn gauge_value(&self, index: usize) -> f64 {
        let sums = || self.sums();
        match GAUGES.get(index).map(|gauge| gauge.name) {
            Some("buffered") => self.budget.held as f64,
            Some("promised") => self.budget.used() as f64,
            Some("connections") => self.counters.open as f64,
            Some("facing_window") => sums().facing.windows as f64,
            Some("host_window") => sums().hosts.windows as f64,
            Some("facing_offered") => sums().facing.offered as f64,
            Some("host_offered") => sums().hosts.offered as f64,
            Some("processing") => self
                .processor
                .as_ref()
                .map_or(0.0, |processor| processor.packets() as f64),
            _ => f64::NAN,
        }
    }
}
