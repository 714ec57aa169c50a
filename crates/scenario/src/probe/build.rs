//! The probes of a run: those of the scenario, or the default ones.

use std::collections::BTreeMap;

use bentpipe_sim::{FlowQuantity, LinkQuantity, Network, Probe, ProbeTarget, Sampling};
use bentpipe_types::{Span, Time};

use crate::link::settings::Way;
use crate::probe::settings::Series;
use crate::quantity::time::Interval;
use crate::run::options::{MANY_RECORDS, RunOptions};
use crate::scenario::settings::Scenario;

/// Most flows and links with default probes.
const DEFAULT_PROBES_OF: usize = 8;

/// Most flows with a default probe of goodput, because one figure can show many flows. Above this,
/// the flows of a table are recorded together.
const GOODPUT_OF: usize = 100;

/// Sets the probes that the options choose: the scenario's, the default ones, or the workbench's.
///
/// `real_time`: whether the run takes real time, so that its duration is known, and frequent
/// samples would delay packets.
pub(crate) fn set_probes(
    scenario: &Scenario,
    options: &RunOptions,
    real_time: bool,
    network: &mut Network,
) {
    let named = &scenario.probes;
    let default_probes = options.default_probes;
    if options.workbench_probes {
        let mut probes = choose_probes(scenario, &WORKBENCH_PROBES);
        for probe in &named.series {
            let target = target(scenario, probe.of, network);
            if probes.iter().all(|there| there.target != target) {
                let name = probe.name.clone();
                probes.push(Probe { name, target });
            }
        }
        let sampling = default_sampling(scenario.duration, probes.len(), real_time);
        network.probe(probes, sampling);
    } else if !named.series.is_empty() {
        let mut probes: Vec<Probe> = named
            .series
            .iter()
            .map(|probe| Probe {
                name: probe.name.clone(),
                target: target(scenario, probe.of, network),
            })
            .collect();
        if default_probes {
            add_queue_maxima(&mut probes);
        }
        let sampling = match named.interval {
            Interval::Every(interval) => Sampling::Interval(interval),
            Interval::EveryChange => Sampling::EveryChange {
                rates: named.averages_every,
            },
        };
        network.probe(probes, sampling);
    } else if default_probes {
        let probes = choose_probes(scenario, &DEFAULT_PROBES);
        let sampling = default_sampling(scenario.duration, probes.len(), real_time);
        network.probe(probes, sampling);
    }
}

/// Returns the sampling of default probes: about two thousand points, as many as a plot has pixels.
/// A run may end early, with its last transfer. So the interval is short at first, and doubles when
/// there are twice as many points. If that would exceed [`MANY_RECORDS`], the interval is fixed.
fn default_sampling(duration: Span, probes: usize, real_time: bool) -> Sampling {
    const POINTS: u32 = 2_000;
    const FINEST: Span = Span::from_millis(1);
    let interval = (duration / u64::from(POINTS)).max(FINEST);
    let most = 2 * POINTS;
    if real_time || probes as u64 * u64::from(most + 1) > MANY_RECORDS {
        return Sampling::Interval(interval);
    }
    let halvings = (interval.as_nanos() / FINEST.as_nanos()).ilog2();
    Sampling::AsItLasts {
        finest: interval / (1 << halvings),
        most,
    }
}

/// Adds a series of maxima for each sampled queue length, because the queue may be longer between
/// samples.
fn add_queue_maxima(probes: &mut Vec<Probe>) {
    let of = |quantity| {
        move |probe: &Probe| match probe.target {
            ProbeTarget::Direction(direction, of) if of == quantity => Some(direction),
            _ => None,
        }
    };
    let peaks: Vec<usize> = probes
        .iter()
        .filter_map(of(LinkQuantity::QueueMax))
        .collect();
    let queues: Vec<(usize, String)> = probes
        .iter()
        .filter_map(|probe| Some((of(LinkQuantity::Queue)(probe)?, probe.name.clone())))
        .collect();
    for (direction, name) in queues {
        if !peaks.contains(&direction) {
            probes.push(Probe {
                name: format!("{name}_max"),
                target: ProbeTarget::Direction(direction, LinkQuantity::QueueMax),
            });
        }
    }
}

/// The quantities of each flow and of each link direction that are recorded without being named,
/// besides each flow's goodput.
struct ProbedQuantities {
    of_flow: &'static [FlowQuantity],
    of_link: &'static [LinkQuantity],
}

const DEFAULT_PROBES: ProbedQuantities = ProbedQuantities {
    of_flow: &[
        FlowQuantity::CongestionWindow,
        FlowQuantity::SlowStartThreshold,
        FlowQuantity::Sent,
        FlowQuantity::Retransmitted,
        FlowQuantity::Acknowledged,
        FlowQuantity::SmoothedRtt,
    ],
    of_link: &[
        LinkQuantity::Queue,
        LinkQuantity::QueueMax,
        LinkQuantity::Dropped,
        LinkQuantity::Lost,
    ],
};

const WORKBENCH_PROBES: ProbedQuantities = ProbedQuantities {
    of_flow: &[
        FlowQuantity::CongestionWindow,
        FlowQuantity::SlowStartThreshold,
        FlowQuantity::InFlight,
        FlowQuantity::LimitedBy,
        FlowQuantity::Sent,
        FlowQuantity::Retransmitted,
        FlowQuantity::Acknowledged,
        FlowQuantity::SmoothedRtt,
    ],
    of_link: &[
        LinkQuantity::Queue,
        LinkQuantity::QueueMax,
        LinkQuantity::Utilization,
        LinkQuantity::Dropped,
        LinkQuantity::Lost,
    ],
};

fn choose_probes(scenario: &Scenario, quantities: &ProbedQuantities) -> Vec<Probe> {
    let of_flow = |index: usize, quantity: FlowQuantity| Probe {
        name: format!("{}.{}", scenario.flows[index].name, quantity.name()),
        target: ProbeTarget::Flow(index, quantity),
    };
    let mut goodputs = Vec::new();
    let mut first = 0;
    for flows in scenario
        .flows
        .chunk_by(|one, other| one.table == other.table)
    {
        if flows.len() > GOODPUT_OF {
            goodputs.push(Probe {
                name: format!("{}.goodput", flows[0].table),
                target: ProbeTarget::Goodput(first, flows.len()),
            });
        } else {
            let indices = first..first + flows.len();
            goodputs.extend(indices.map(|index| of_flow(index, FlowQuantity::Goodput)));
        }
        first += flows.len();
    }
    let tables = scenario.flows.iter().map(|flow| &*flow.table);
    let flows = round_robin_by_table(tables, DEFAULT_PROBES_OF)
        .into_iter()
        .flat_map(move |index| {
            let all = quantities.of_flow.iter();
            all.map(move |quantity| of_flow(index, *quantity))
        });
    let links = scenario
        .links
        .iter()
        .enumerate()
        .take(DEFAULT_PROBES_OF)
        .flat_map(|(index, link)| {
            let numbered = Way::ALL.iter().filter_map(move |way| {
                let number = scenario.direction_index(index, *way)?;
                Some((number, way))
            });
            numbered.flat_map(move |(number, way)| {
                quantities.of_link.iter().map(move |quantity| Probe {
                    name: format!("{}.{way}.{}", link.name, quantity.name()),
                    target: ProbeTarget::Direction(number, *quantity),
                })
            })
        });
    flows.chain(goodputs).chain(links).collect()
}

/// Chooses at most `most` of the items in `tables`: the first of each table, then the second of
/// each, and so on. Returns their indices in order.
fn round_robin_by_table<'t>(tables: impl Iterator<Item = &'t str>, most: usize) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let mut chosen: Vec<(usize, usize)> = tables
        .enumerate()
        .map(|(index, table)| {
            let turn: &mut usize = seen.entry(table).or_default();
            *turn += 1;
            (*turn, index)
        })
        .collect();
    chosen.sort_unstable();
    chosen.truncate(most);
    let mut indices: Vec<usize> = chosen.into_iter().map(|(_, index)| index).collect();
    indices.sort_unstable();
    indices
}

/// Returns the probe target of a series.
fn target(scenario: &Scenario, series: Series, network: &mut Network) -> ProbeTarget {
    match series {
        Series::Flow(flow, of) => ProbeTarget::Flow(flow, of),
        Series::Node(node, gauge, _) => ProbeTarget::Node(node, gauge),
        Series::Path(link, of) => {
            let path = scenario.links[link].path.clone();
            let value = move |now: Time| path.as_ref()?.value(of, now.since(Time::ZERO));
            ProbeTarget::Known(network.add_known(of.unit(), Box::new(value)))
        }
        // A direction that does not exist cannot be named: the file would have been refused.
        Series::Link(link, way, of) => ProbeTarget::Direction(
            scenario.direction_index(link, way).unwrap_or(usize::MAX),
            of,
        ),
    }
}
