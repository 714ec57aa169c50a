//! Counters of a gateway in Prometheus' text format, version 0.0.4.

use std::fmt;

use bentpipe_types::RoundTripHistogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::statistics::{Histogram, LATENESS_BOUNDS_US, Statistics};

/// Media type of the text.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric, and the counters behind it.
struct CounterFamily {
    metric: &'static str,
    help: &'static str,
    label: &'static str,
    /// Value of the label, and counter.
    values: &'static [(&'static str, &'static str)],
}

/// Counters with a metric of their own. All others are in `bentpipe_gateway_events`.
const COUNTERS: &[CounterFamily] = &[
    CounterFamily {
        metric: "bentpipe_gateway_connections_taken",
        help: "Connections that the gateway has taken on.",
        label: "treatment",
        values: &[
            ("split", "connections.split"),
            ("tracked", "connections.tracked"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_connections_passed",
        help: "Connections forwarded unchanged: their class is not to be split, memory or the table was full, or the gateway is about to end.",
        label: "reason",
        values: &[
            ("class", "connections.passed"),
            ("full", "connections.refused"),
            ("draining", "connections.passed_draining"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_connections_failed",
        help: "Connections that did not end by both hosts' FINs.",
        label: "reason",
        values: &[
            ("refused_by_host", "connections.refused_by_host"),
            ("unreachable", "connections.unreachable"),
            ("idle", "connections.idle"),
            ("aborted", "connections.aborted"),
            ("given_up", "connections.given_up"),
            ("reset", "connections.reset"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_leg_bytes",
        help: "Bytes that the receivers of a leg have acknowledged.",
        label: "leg",
        values: &[
            ("facing", "facing.bytes_delivered"),
            ("hosts", "hosts.bytes_delivered"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_leg_segments",
        help: "Segments sent on a leg.",
        label: "leg",
        values: &[
            ("facing", "facing.segments_sent"),
            ("hosts", "hosts.segments_sent"),
            ("to_host", "to_host.segments"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_leg_retransmissions",
        help: "Segments retransmitted on a leg.",
        label: "leg",
        values: &[
            ("facing", "facing.segments_retransmitted"),
            ("hosts", "hosts.segments_retransmitted"),
            ("to_host", "to_host.retransmissions"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_leg_timeouts",
        help: "Retransmission timeouts on a leg.",
        label: "leg",
        values: &[
            ("facing", "facing.timeouts"),
            ("hosts", "hosts.timeouts"),
            ("to_host", "to_host.timeouts"),
        ],
    },
    CounterFamily {
        metric: "bentpipe_gateway_packets",
        help: "Packets by treatment.",
        label: "treatment",
        values: &[
            ("split", "packets.split"),
            ("passed", "packets.passed"),
            ("passed", "packets_passed"),
            ("dropped", "packets.dropped"),
            ("dropped", "packets_dropped"),
            ("early", "packets.early"),
        ],
    },
];

/// Current values with a metric of their own.
const GAUGES: &[(&str, &str, &str)] = &[
    (
        "bentpipe_gateway_connections_open",
        "Open connections that the gateway has taken on.",
        "connections.open",
    ),
    (
        "bentpipe_gateway_held_bytes",
        "Bytes that one host has sent and the other has not acknowledged.",
        "bytes_held.now",
    ),
    (
        "bentpipe_gateway_promised_bytes",
        "Memory that connections may use: data held and windows advertised.",
        "bytes_promised.now",
    ),
    (
        "bentpipe_gateway_persistent_connections",
        "Persistent connections to the other gateway.",
        "multiplex.connections",
    ),
];

/// Returns the counters in Prometheus' text format.
pub(super) fn text(statistics: Statistics) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(statistics)));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Families(Statistics);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self(statistics) = self;
        self.information(&mut encoder)?;
        self.counters(&mut encoder)?;
        for (metric, help, name) in GAUGES {
            let mut family = encoder.encode_descriptor(metric, help, None, MetricType::Gauge)?;
            for (gateway, gauges) in &statistics.gauges {
                if let Some(value) = gauges.get(*name) {
                    let labels = [("gateway", gateway.as_str())];
                    family.encode_family(&labels)?.encode_gauge(value)?;
                }
            }
        }
        let mut family = encoder.encode_descriptor(
            "bentpipe_gateway_refused_packets",
            "Packets that could not enter or leave.",
            None,
            MetricType::Counter,
        )?;
        for (reason, value) in &statistics.totals.refused {
            count(&mut family, &[("reason", reason.as_str())], *value)?;
        }
        self.histograms(&mut encoder)
    }
}

impl Families {
    fn information(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Self(statistics) = self;
        let mut family = encoder.encode_descriptor(
            "bentpipe_gateway_build_info",
            "Version of the program; always 1.",
            None,
            MetricType::Gauge,
        )?;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        family.encode_family(&version)?.encode_gauge(&1_i64)?;
        let mut gauge = |name, help, value: f64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            family.encode_gauge(&value)
        };
        gauge(
            "bentpipe_gateway_uptime_seconds",
            "Time since the process was started.",
            statistics.uptime_s,
        )?;
        gauge(
            "bentpipe_gateway_draining",
            "1 if new connections are forwarded because the gateway is about to end.",
            f64::from(u8::from(statistics.draining)),
        )?;
        let mut family = encoder.encode_descriptor(
            "bentpipe_gateway_packets_in",
            "Packets that entered.",
            None,
            MetricType::Counter,
        )?;
        family.encode_counter::<NoLabelSet, u64, u64>(&statistics.totals.packets_in, None)
    }

    fn counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counters = &self.0.totals.counters;
        for CounterFamily {
            metric,
            help,
            label,
            values,
        } in COUNTERS
        {
            let mut family = encoder.encode_descriptor(metric, help, None, MetricType::Counter)?;
            for (gateway, all) in counters {
                for (value, name) in *values {
                    if let Some(number) = all.get(*name) {
                        let labels = [("gateway", gateway.as_str()), (label, value)];
                        count(&mut family, &labels, *number)?;
                    }
                }
            }
        }
        let has_metric = |name: &str| {
            (COUNTERS.iter()).any(|family| family.values.iter().any(|(_, of)| *of == name))
        };
        let mut family = encoder.encode_descriptor(
            "bentpipe_gateway_events",
            "All other counters of a gateway, by their name in results.",
            None,
            MetricType::Counter,
        )?;
        for (gateway, all) in counters {
            for (name, number) in all.iter().filter(|(name, _)| !has_metric(name)) {
                let labels = [("gateway", gateway.as_str()), ("event", name.as_str())];
                count(&mut family, &labels, *number)?;
            }
        }
        Ok(())
    }

    fn histograms(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let totals = &self.0.totals;
        let mut family = encoder.encode_descriptor(
            "bentpipe_gateway_round_trip_seconds",
            "Smoothed round-trip time of each leg, when it ends and every 10 s while it is active.",
            None,
            MetricType::Histogram,
        )?;
        for (gateway, both) in &totals.round_trips {
            for (leg, histogram) in ["facing", "hosts"].into_iter().zip(both) {
                let labels = [("gateway", gateway.as_str()), ("leg", leg)];
                let mut metric = family.encode_family(&labels)?;
                let bounds = RoundTripHistogram::BOUNDS_MS;
                observe(&mut metric, histogram, &bounds, 1e-3)?;
            }
        }
        let mut metric = encoder.encode_descriptor(
            "bentpipe_gateway_lateness_seconds",
            "How late packets left, compared with the time they were due.",
            None,
            MetricType::Histogram,
        )?;
        observe(&mut metric, &totals.lateness, &LATENESS_BOUNDS_US, 1e-6)
    }
}

fn count(family: &mut MetricEncoder<'_>, labels: &[(&str, &str)], number: u64) -> fmt::Result {
    family
        .encode_family(&labels)?
        .encode_counter::<NoLabelSet, u64, u64>(&number, None)
}

fn observe(
    metric: &mut MetricEncoder<'_>,
    histogram: &Histogram,
    bounds: &[u64],
    unit_s: f64,
) -> fmt::Result {
    let bounds = bounds.iter().map(|bound| *bound as f64 * unit_s);
    let counts = histogram.counts.iter().copied().chain(std::iter::repeat(0));
    let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
    // The last count is of what exceeds all bounds. The library writes that bucket, `+Inf`.
    let all = histogram.counts.iter().sum();
    metric.encode_histogram::<NoLabelSet>(histogram.sum_s, all, &buckets, None)
}

/// Values of one gateway by name, for tests.
#[cfg(test)]
type Values = std::collections::BTreeMap<String, u64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_in_the_text_once() {
        let counters: Values = [
            ("connections.split", 12),
            ("connections.passed", 3),
            ("facing.segments_retransmitted", 7),
            ("multiplex.failed", 5),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
        let gauges: Values = [("connections.open".to_owned(), 2)].into();
        let mut statistics = Statistics {
            gauges: [("hub".to_owned(), gauges)].into(),
            ..Statistics::default()
        };
        let totals = &mut statistics.totals;
        totals.counters.insert("hub".to_owned(), counters);
        let round_trips = Histogram {
            counts: [&[0; 9][..], &[4, 1]].concat(),
            sum_s: 2.6,
        };
        let both = [round_trips, Histogram::default()];
        totals.round_trips.insert("hub".to_owned(), both);
        let text = text(statistics).expect("text");
        for line in [
            "# TYPE bentpipe_gateway_connections_taken_total counter",
            "bentpipe_gateway_connections_taken_total{gateway=\"hub\",treatment=\"split\"} 12",
            "bentpipe_gateway_connections_passed_total{gateway=\"hub\",reason=\"class\"} 3",
            "bentpipe_gateway_leg_retransmissions_total{gateway=\"hub\",leg=\"facing\"} 7",
            "bentpipe_gateway_events_total{gateway=\"hub\",event=\"multiplex.failed\"} 5",
            "bentpipe_gateway_connections_open{gateway=\"hub\"} 2",
            "bentpipe_gateway_round_trip_seconds_bucket{gateway=\"hub\",leg=\"facing\",le=\"0.5\"} 4",
            "bentpipe_gateway_round_trip_seconds_bucket{gateway=\"hub\",leg=\"facing\",le=\"+Inf\"} 5",
            "bentpipe_gateway_round_trip_seconds_sum{gateway=\"hub\",leg=\"facing\"} 2.6",
        ] {
            assert_eq!(
                text.lines().filter(|each| *each == line).count(),
                1,
                "{line}\n{text}"
            );
        }
    }
}
