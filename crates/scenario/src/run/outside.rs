//! The network of a scenario with real hosts, in real time.

use std::sync::Arc;

use bentpipe_sim::{FlowOutcome, FlowPlan, Network, NodeId, local_ports};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Agent, Time};

use crate::flow::build::{starts, traffic_of};
use crate::probe::settings::Series;
use crate::run::capture::FileNaming;
use crate::run::error::RunError;
use crate::run::network::MulticastChannel;
use crate::run::options::{RunOptions, RunOutput};
use crate::run::simulation::Run;
use crate::scenario::settings::Scenario;

/// The network of a scenario with attached nodes in place of hosts, and the state that its results
/// need.
pub struct Outside {
    /// The network. It does not have the flows between real hosts.
    pub network: Network,
    /// Its nodes, in the order of the scenario's.
    pub nodes: Vec<NodeId>,
    /// The scenario's flows in its order, with the ports, starts and random streams of a
    /// simulation.
    pub plans: Vec<FlowPlan>,
    /// State for the summary.
    pub closing: Closing,
}

/// State that a run's results need besides its network.
pub struct Closing(Run);

impl Outside {
    /// Builds the network. The hosts with the indices `outside` are attached nodes, or agents that
    /// `put` creates, given their TCP and all flows. Flows with one end inside are left out, too,
    /// and so are the probes of all flows.
    ///
    /// # Errors
    ///
    /// Those of [`Run::new`].
    pub fn new(
        scenario: &Scenario,
        options: &RunOptions,
        outside: &[usize],
        mut put: impl FnMut(usize, Config, &[FlowPlan]) -> Option<Box<dyn Agent + Send>>,
    ) -> Result<Self, RunError> {
        let mut inside = scenario.clone();
        inside
            .flows
            .retain(|flow| !outside.contains(&flow.from) && !outside.contains(&flow.to));
        let probes = &mut inside.probes.series;
        probes.retain(|probe| matches!(probe.of, Series::Link(..) | Series::Path(..)));
        let plans = plans(scenario, options.seed.unwrap_or(scenario.seed))?;
        let mut put = |index, config| put(index, config, &plans);
        let multicast_channels = multicast_channels(scenario);
        let (mut run, nodes) = Run::build(
            &inside,
            options,
            FileNaming::AtOnce,
            outside,
            &multicast_channels,
            &mut put,
        )?;
        let network = run.exchange(None);
        Ok(Self {
            network,
            nodes,
            plans,
            closing: Closing(run),
        })
    }
}

impl Closing {
    /// Returns a line for each capture that has failed since the last call. The part already
    /// written stays.
    pub fn cut_captures(&mut self) -> Vec<String> {
        let errors = self.0.captures.iter().filter_map(|file| file.check().err());
        let line = |error: RunError| format!("{error}: the capture ends there");
        errors.map(line).collect()
    }

    /// Returns the results of a finished network, and of the flows, which ended at `ended`.
    ///
    /// # Errors
    ///
    /// A capture that could not be written.
    pub fn finish(
        mut self,
        network: Network,
        scenario: &Scenario,
        flows: Vec<FlowOutcome>,
        ended: Time,
    ) -> Result<RunOutput, RunError> {
        self.0.exchange(Some(network));
        self.0.tables = (flows.iter())
            .zip(&scenario.flows)
            .map(|(_, flow)| Arc::clone(&flow.table))
            .collect();
        self.0.finish_with(|outcome| {
            outcome.flows = flows;
            outcome.ended = ended;
        })
    }
}

/// Returns the multicast channels of a scenario with real hosts only: the network has their routes,
/// not their flows.
fn multicast_channels(scenario: &Scenario) -> Vec<MulticastChannel> {
    let mut multicast_channels: Vec<MulticastChannel> = Vec::new();
    for flow in &scenario.flows {
        let Some(channel) = flow.channel.and_then(Address::of_channel) else {
            continue;
        };
        match multicast_channels.last_mut() {
            Some(last) if last.channel == channel => last.members.push(flow.to),
            _ => multicast_channels.push(MulticastChannel {
                channel,
                from: flow.from,
                members: vec![flow.to],
            }),
        }
    }
    multicast_channels
}

/// Returns the flows of a scenario.
fn plans(scenario: &Scenario, seed: u64) -> Result<Vec<FlowPlan>, RunError> {
    let flows = &scenario.flows;
    let traffic: Vec<_> = flows.iter().map(traffic_of).collect();
    let openers = flows.iter().map(|flow| Address(flow.from as u16));
    let ports = local_ports(openers.zip(&traffic));
    let starts = starts(scenario, seed);
    let each = flows.iter().zip(traffic).zip(ports).zip(starts);
    each.map(|(((flow, traffic), ports), opens)| {
        let ports = ports.ok_or_else(|| {
            let (name, flow) = (&scenario.name, &flow.name);
            let message = format!("{name}: flow {flow}: its host has no port left");
            RunError::Request(message)
        })?;
        Ok(FlowPlan {
            name: flow.name.clone(),
            from: Address(flow.from as u16),
            to: Address(flow.to as u16),
            channel: flow.channel.and_then(Address::of_channel),
            opens,
            traffic,
            ports,
            seed,
        })
    })
    .collect()
}
