//! Counters of a running gateway for its operator, and their sums over several runs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use bentpipe_types::{RoundTripHistogram, Span, Time};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Lateness, Refusals};

/// Upper bounds of the buckets of lateness but the last, in microseconds.
pub(super) const LATENESS_BOUNDS_US: [u64; 11] = [
    20, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000,
];

/// Counters of a running gateway.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Statistics {
    /// Time since the start of the process.
    pub uptime_s: f64,
    /// Whether new connections are forwarded, because the gateway is about to end.
    pub draining: bool,
    /// Current values and maxima, by gateway and name. They start anew with each process.
    pub gauges: BTreeMap<String, BTreeMap<String, u64>>,
    /// Counters that survive a restart.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Counters that only grow, since the first start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Counters by gateway and name.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
    /// Packets that entered.
    pub packets_in: u64,
    /// Packets that could not enter or leave, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Round-trip times by gateway: over the facing link, and to the hosts.
    pub round_trips: BTreeMap<String, [Histogram; 2]>,
    /// How late packets left.
    pub lateness: Histogram,
}

/// A histogram; the last bucket has no bound.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Samples per bucket.
    pub counts: Vec<u64>,
    /// Sum of all samples, in seconds.
    pub sum_s: f64,
}

impl Histogram {
    fn add(&mut self, other: &Self) {
        self.counts
            .resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.sum_s += other.sum_s;
    }
}

impl From<RoundTripHistogram> for Histogram {
    fn from(of: RoundTripHistogram) -> Self {
        Self {
            counts: of.counts().to_vec(),
            sum_s: of.sum().as_secs_f64(),
        }
    }
}

impl From<&Lateness> for Histogram {
    fn from(of: &Lateness) -> Self {
        let mut counts = vec![0; LATENESS_BOUNDS_US.len() + 1];
        for (late, count) in of.histogram() {
            let fits = |bound: &u64| late <= Span::from_micros(*bound);
            let bucket = LATENESS_BOUNDS_US.iter().position(fits);
            counts[bucket.unwrap_or(LATENESS_BOUNDS_US.len())] += count;
        }
        let mean_s = of.mean().map_or(0.0, Span::as_secs_f64);
        Self {
            counts,
            sum_s: mean_s * of.count() as f64,
        }
    }
}

/// Whether a counter of a gateway is a current value or a maximum.
fn is_gauge(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "now" | "max" | "open" | "open_max" | "max_of_one")
        || name == "multiplex.connections"
}

impl Statistics {
    /// Reads the counters of an engine.
    pub(super) fn of(engine: &mut Engine, now: Time, draining: bool) -> Self {
        let mut statistics = Self {
            uptime_s: now.as_secs_f64(),
            draining,
            ..Self::default()
        };
        let mut counters: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        engine.network().counters(&mut |node, name, value| {
            let node = counters.entry(node.to_owned()).or_default();
            node.insert(name.to_owned(), value);
        });
        let totals = &mut statistics.totals;
        for (name, gateway) in engine.network_mut().managed() {
            let own = counters.entry(name.to_owned()).or_default();
            gateway.more_counters(&mut |counter, value| {
                own.insert(counter.to_owned(), value);
            });
            let round_trips = gateway.round_trips().map(Histogram::from);
            totals.round_trips.insert(name.to_owned(), round_trips);
        }
        // Nodes without an interface for an operator are the ends of the network.
        counters.retain(|name, _| totals.round_trips.contains_key(name));
        for (name, all) in counters {
            let (gauges, growing) = all.into_iter().partition(|(counter, _)| is_gauge(counter));
            statistics.gauges.insert(name.clone(), gauges);
            totals.counters.insert(name, growing);
        }
        totals.packets_in = engine.entered();
        totals.refused = refusals(engine.refusals());
        totals.lateness = engine.lateness().into();
        statistics
    }
}

/// Returns the packets that could not enter or leave, by reason.
fn refusals(of: &Refusals) -> BTreeMap<String, u64> {
    let inward = of.each();
    let outward = [
        ("unencodable", of.unencodable),
        ("not_taken", of.not_taken),
        ("device_down", of.device_down),
    ];
    (inward.chain(outward))
        .map(|(reason, count)| (reason.to_owned(), count))
        .collect()
}

impl Totals {
    /// Adds the totals of another run.
    pub fn add(&mut self, other: &Self) {
        for (name, all) in &other.counters {
            let own = self.counters.entry(name.clone()).or_default();
            add_counts(own, all);
        }
        self.packets_in = self.packets_in.saturating_add(other.packets_in);
        add_counts(&mut self.refused, &other.refused);
        for (name, both) in &other.round_trips {
            let own = self.round_trips.entry(name.clone()).or_default();
            for (histogram, more) in own.iter_mut().zip(both) {
                histogram.add(more);
            }
        }
        self.lateness.add(&other.lateness);
    }

    /// Reads totals from a file; no totals if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or has other content.
    pub fn load(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(content) => Ok(serde_json::from_slice(&content)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes totals to a file, which is replaced as a whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("new");
        fs::write(&beside, serde_json::to_vec(self)?)?;
        fs::rename(&beside, path)
    }
}

fn add_counts(own: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, count) in more {
        let own = own.entry(name.clone()).or_default();
        *own = own.saturating_add(*count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(split: u64, late: &[u64]) -> Totals {
        let counters = BTreeMap::from([("connections.split".to_owned(), split)]);
        Totals {
            counters: BTreeMap::from([("hub".to_owned(), counters)]),
            packets_in: 10 * split,
            lateness: Histogram {
                counts: late.to_vec(),
                sum_s: 0.5,
            },
            ..Totals::default()
        }
    }

    #[test]
    fn totals_add_up_over_runs() {
        let mut all = Totals::default();
        all.add(&totals(3, &[1, 2]));
        all.add(&totals(4, &[0, 5, 6]));
        assert_eq!(all.counters["hub"]["connections.split"], 7);
        assert_eq!(all.packets_in, 70);
        assert_eq!(all.lateness.counts, [1, 7, 6]);
        assert!((all.lateness.sum_s - 1.0).abs() < 1e-12);
        let text = serde_json::to_vec(&all).expect("JSON");
        assert_eq!(
            serde_json::from_slice::<Totals>(&text).expect("totals"),
            all
        );
    }

    #[test]
    fn current_values_are_told_from_counters() {
        for name in [
            "connections.open",
            "connections.open_max",
            "bytes_held.now",
            "bytes_promised.max",
            "multiplex.connections",
        ] {
            assert!(is_gauge(name), "{name}");
        }
        for name in ["connections.split", "multiplex.opened", "facing.timeouts"] {
            assert!(!is_gauge(name), "{name}");
        }
    }
}
