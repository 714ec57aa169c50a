//! A scenario's network whose hosts are outside: real ones, in real time.

use bentpipe_sim::{Network, NodeId};
use bentpipe_tcp::Config;
use bentpipe_types::Agent;

use super::{Run, RunError, RunOptions, RunOutput};
use crate::{Scenario, Series};

/// A network of a scenario with attached nodes in the place of hosts, and what its results need.
pub struct Outside {
    /// The network. Flows between hosts that are outside are none of its own.
    pub network: Network,
    /// Its nodes, in the order of the scenario's.
    pub nodes: Vec<NodeId>,
    /// What is needed besides to sum up.
    pub closing: Closing,
}

/// What a run's results need besides its network.
pub struct Closing(Run);

impl Outside {
    /// Builds the network. `outside` are the hosts that are attached, by index, or have the agent that
    /// `put` makes for them, given their TCP; flows with one end inside are left out, too, and so are the
    /// probes of all flows.
    ///
    /// # Errors
    ///
    /// Those of [`Run::new`].
    pub fn new(
        scenario: &Scenario,
        options: &RunOptions,
        outside: &[usize],
        mut put: impl FnMut(usize, Config) -> Option<Box<dyn Agent + Send>>,
    ) -> Result<Self, RunError> {
        let mut inside = scenario.clone();
        inside
            .flows
            .retain(|flow| !outside.contains(&flow.from) && !outside.contains(&flow.to));
        let probes = &mut inside.probes.series;
        probes.retain(|probe| matches!(probe.of, Series::Link(..)));
        let (mut run, nodes) = Run::build(&inside, options, outside, &mut put)?;
        let network = run.exchange(None);
        Ok(Self {
            network,
            nodes,
            closing: Closing(run),
        })
    }
}

impl Closing {
    /// The results of a network that has finished.
    ///
    /// # Errors
    ///
    /// A capture that could not be written.
    pub fn finish(mut self, network: Network) -> Result<RunOutput, RunError> {
        self.0.exchange(Some(network));
        self.0.finish()
    }
}
