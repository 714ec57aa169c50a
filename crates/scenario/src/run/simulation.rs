//! Builds the network of a scenario, runs it, and summarises the results.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_sim::{End, Network, NodeId, Outcome, Progress, WindowTimes};
use bentpipe_types::{Series, Time};

use crate::gateway::summary::{GatewayInfo, gateway_info};
use crate::limits::{MAX_RECORDS, MAX_TAKEN_RECORDS};
use crate::link::summary::{DirectionInfo, direction_info};
use crate::probe::build::set_probes;
use crate::run::capture::{Capture, CaptureFile, FileNaming};
use crate::run::engine::{Cores, Engine};
use crate::run::error::RunError;
use crate::run::network::{AgentFactory, MulticastChannel, build_network};
use crate::run::options::{MANY_RECORDS, RunOptions, RunOutput};
use crate::run::packet_log::SharedLog;
use crate::run::summary::Summary;
use crate::scenario::settings::Scenario;
use crate::suggest::suggest;

/// A run in progress.
pub struct Run {
    engine: Engine,
    cores: Cores,
    end: Time,
    scenario: String,
    seed: u64,
    directions: Vec<DirectionInfo>,
    /// Names of the flows' tables.
    pub(crate) tables: Vec<Arc<str>>,
    /// Properties of the gateways, by name.
    gateways: BTreeMap<String, GatewayInfo>,
    pub(crate) captures: Vec<CaptureFile>,
    packet_log: Option<SharedLog>,
    /// Number of samples that were taken out.
    taken: u64,
    most_records: u64,
}

/// Most packets that may be queued, in transit or stored at once: 2 GiB of them.
const MOST_PACKETS: usize = 1 << 25;

impl Run {
    /// Builds the scenario's network, ready to run.
    ///
    /// # Errors
    ///
    /// A capture of an unknown place, a file that cannot be written, or an inconsistent network.
    pub fn new(scenario: &Scenario, options: &RunOptions) -> Result<Self, RunError> {
        Ok(Self::build(
            scenario,
            options,
            FileNaming::Whole,
            &[],
            &[],
            &mut |_, _| None,
        )?
        .0)
    }

    /// As [`new`](Self::new), with real hosts at the indices `outside`. Also returns the network's
    /// nodes.
    pub(crate) fn build(
        scenario: &Scenario,
        options: &RunOptions,
        captures_named: FileNaming,
        outside: &[usize],
        multicast_channels: &[MulticastChannel],
        put: &mut AgentFactory<'_>,
    ) -> Result<(Self, Vec<NodeId>), RunError> {
        let seed = options.seed.unwrap_or(scenario.seed);
        let directions = direction_info(scenario);
        let (mut network, nodes) = build_network(
            scenario,
            seed,
            &options.custom_controls,
            outside,
            multicast_channels,
            put,
        )?;
        if !options.no_series {
            let real_time = !outside.is_empty();
            set_probes(scenario, options, real_time, &mut network);
        }
        let mut captures = Vec::new();
        for request in &options.captures {
            let (link, end) = place(scenario, &request.place)?;
            let (capture, file) = Capture::create(request, captures_named, options)?;
            network.tap(link, end, Box::new(capture));
            captures.push(file);
        }
        let packet_log = options.packet_log.map(|most| {
            let log = SharedLog::new(most);
            for (index, link) in scenario.links.iter().enumerate() {
                for end in [End::First, End::Second] {
                    network.tap(&link.name, end, log.tap(index, end));
                }
            }
            log
        });
        let (engine, cores) = Engine::new(network, options, scenario.flows.len());
        let run = Self {
            packet_log,
            engine,
            cores,
            end: Time::ZERO + scenario.duration,
            scenario: scenario.name.clone(),
            seed,
            directions,
            tables: scenario
                .flows
                .iter()
                .map(|flow| Arc::clone(&flow.table))
                .collect(),
            gateways: gateway_info(scenario),
            captures,
            taken: 0,
            most_records: options.most_records.unwrap_or(MAX_RECORDS),
        };
        Ok((run, nodes))
    }

    /// Takes the network out and puts another in; `None` stands for an empty one.
    pub(crate) fn exchange(&mut self, network: Option<Network>) -> Network {
        let network = Engine::Whole(Box::new(network.unwrap_or_default()));
        match std::mem::replace(&mut self.engine, network) {
            Engine::Whole(network) => *network,
            Engine::Parts(_) => Network::default(),
        }
    }

    /// Runs for at most `budget` events. Stops earlier once there are [`MANY_RECORDS`] samples to
    /// take.
    ///
    /// # Errors
    ///
    /// Too many packets at once or too many samples for the memory, or a capture that cannot be
    /// written.
    pub fn advance(&mut self, budget: u64) -> Result<Progress, RunError> {
        let mut progress = Progress::Running;
        let mut left = budget;
        while progress == Progress::Running && left > 0 {
            let events = left.min(EVENTS_AT_ONCE);
            left -= events;
            progress = self.engine.run(self.end, events);
            self.check_held()?;
            self.captures.iter().try_for_each(CaptureFile::check)?;
            if self.engine.records() > MANY_RECORDS {
                break;
            }
        }
        Ok(progress)
    }

    /// Takes the samples since the last call, so that they need not be kept until the end. Every
    /// series is there each time, in the same order.
    pub fn take_records(&mut self) -> Vec<Series> {
        self.taken += self.engine.records();
        (self.engine.whole()).map_or_else(Vec::new, Network::take_records)
    }

    /// Returns the number of samples that are kept.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.engine.records()
    }

    fn check_held(&self) -> Result<(), RunError> {
        if self.engine.packets_held() > MOST_PACKETS {
            let message = format!(
                "more than {MOST_PACKETS} packets at once at {:.3} s: windows or queues are too large",
                self.engine.now().as_secs_f64()
            );
            return Err(RunError::Failed(message));
        }
        let kept = self.engine.records();
        let (all, most) = if self.taken > 0 {
            (self.taken + kept, MAX_TAKEN_RECORDS)
        } else {
            (kept, self.most_records)
        };
        if all > most {
            let message = format!(
                "more than {most} records of probes at {:.3} s: name fewer series, or an interval in place of \"every-change\"",
                self.engine.now().as_secs_f64()
            );
            return Err(RunError::Failed(message));
        }
        Ok(())
    }

    /// Returns the number of processors that the run uses.
    #[must_use]
    pub fn cores(&self) -> Cores {
        self.cores
    }

    /// Returns the times of a divided network's windows, if the options request them.
    #[must_use]
    pub fn window_times(&self) -> Option<WindowTimes> {
        self.engine.window_times()
    }

    /// Returns the simulated time so far, as a share of the scenario's duration.
    #[must_use]
    pub fn share_done(&self) -> f64 {
        self.engine.now().as_secs_f64() / self.end.as_secs_f64()
    }

    /// Returns the results of a finished run.
    ///
    /// # Errors
    ///
    /// A capture that could not be written.
    pub fn finish(self) -> Result<RunOutput, RunError> {
        self.finish_with(|_| ())
    }

    /// As [`finish`](Self::finish), after `know` has completed the outcome.
    pub(crate) fn finish_with(
        mut self,
        know: impl FnOnce(&mut Outcome),
    ) -> Result<RunOutput, RunError> {
        // Dropping a tap closes its file.
        drop(self.engine.whole().map(Network::take_taps));
        self.captures.iter().try_for_each(CaptureFile::check)?;
        self.captures.iter_mut().try_for_each(CaptureFile::keep)?;
        let mut outcome = self.engine.outcome();
        know(&mut outcome);
        let duration = self.end.since(Time::ZERO);
        let summary = Summary::new(
            self.scenario,
            self.seed,
            duration,
            &outcome,
            &self.directions,
            &self.tables,
            &self.gateways,
        );
        Ok(RunOutput {
            summary,
            series: outcome.series,
            packets: self.packet_log.map(SharedLog::into_log).unwrap_or_default(),
        })
    }
}

impl Scenario {
    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// Those of [`Run`].
    pub fn run(&self, options: &RunOptions) -> Result<RunOutput, RunError> {
        let mut run = Run::new(self, options)?;
        while run.advance(u64::MAX)? == Progress::Running {}
        run.finish()
    }
}

/// Events between two checks of the memory.
const EVENTS_AT_ONCE: u64 = 50_000;

/// Returns the link and the end that a capture's place names.
fn place<'s>(scenario: &'s Scenario, place: &str) -> Result<(&'s str, End), RunError> {
    let (name, node) = match place.split_once('@') {
        Some((link, node)) => (link, Some(node)),
        None => (place, None),
    };
    let refuse = |message: String| RunError::capture_place(place, &message);
    let Some(link) = scenario.links.iter().find(|link| link.name == name) else {
        let names = scenario.links.iter().map(|link| link.name.as_str());
        let hint = match suggest(name, names.clone()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("known: {}", names.take(20).collect::<Vec<_>>().join(", ")),
        };
        return Err(refuse(format!("no link is \"{name}\"; {hint}")));
    };
    let ends = link.between.map(|end| scenario.nodes[end].name.as_str());
    match node {
        None => Ok((&link.name, End::First)),
        Some(node) if node == ends[0] => Ok((&link.name, End::First)),
        Some(node) if node == ends[1] => Ok((&link.name, End::Second)),
        Some(node) => Err(refuse(format!(
            "expected one of its ends, \"{}\" or \"{}\", got \"{node}\"",
            ends[0], ends[1]
        ))),
    }
}

#[cfg(test)]
mod tests;
