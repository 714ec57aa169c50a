//! The network of a run: whole, or in parts that run on several processors.

use bentpipe_sim::{Network, Outcome, Parts, Progress, Undivided, WindowTimes};
use bentpipe_types::Time;

use super::options::{LARGE_NETWORK, RunOptions};

/// The network of a run.
pub(crate) enum Engine {
    Whole(Box<Network>),
    Parts(Box<Parts>),
}

/// Number of processors that a run uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cores {
    /// Number of parts, each on a processor.
    pub used: usize,
    /// Why the network is not divided although more than one processor was requested.
    pub undivided: Option<Undivided>,
}

impl Engine {
    /// Divides a network with this number of flows as the options request, if that is possible.
    pub(crate) fn new(network: Network, options: &RunOptions, flows: usize) -> (Self, Cores) {
        let whole = |network, undivided| {
            let used = Cores { used: 1, undivided };
            (Self::Whole(network), used)
        };
        // A rule of the caller's own may share state among connections.
        let own_rules = !options.custom_controls.is_empty();
        let is_small = options.divide_only_large && flows < LARGE_NETWORK;
        if options.cores < 2 || own_rules || is_small {
            return whole(Box::new(network), None);
        }
        match network.split(options.cores) {
            Ok(mut parts) => {
                if let Some(clock) = options.measure_windows {
                    parts.measure_windows(clock);
                }
                let used = Cores {
                    used: parts.count(),
                    undivided: None,
                };
                (Self::Parts(Box::new(parts)), used)
            }
            Err((network, _)) if options.divide_only_large => whole(network, None),
            Err((network, reason)) => whole(network, Some(reason)),
        }
    }

    /// Returns the undivided network. Only such a network has probes, captures and real hosts.
    pub(crate) fn whole(&mut self) -> Option<&mut Network> {
        match self {
            Self::Whole(network) => Some(network),
            Self::Parts(_) => None,
        }
    }

    /// Returns the times of windows, if they were measured.
    pub(crate) fn window_times(&self) -> Option<WindowTimes> {
        match self {
            Self::Whole(_) => None,
            Self::Parts(parts) => parts.window_times(),
        }
    }

    pub(crate) fn run(&mut self, until: Time, budget: u64) -> Progress {
        match self {
            Self::Whole(network) => network.run(until, budget),
            Self::Parts(parts) => parts.run(until, budget),
        }
    }

    pub(crate) fn now(&self) -> Time {
        match self {
            Self::Whole(network) => network.now(),
            Self::Parts(parts) => parts.now(),
        }
    }

    pub(crate) fn packets_held(&self) -> usize {
        match self {
            Self::Whole(network) => network.packets_held(),
            Self::Parts(parts) => parts.packets_held(),
        }
    }

    /// Returns the number of samples that were not taken yet.
    pub(crate) fn records(&self) -> u64 {
        match self {
            Self::Whole(network) => network.records(),
            Self::Parts(_) => 0,
        }
    }

    pub(crate) fn outcome(&mut self) -> Outcome {
        match self {
            Self::Whole(network) => network.outcome(),
            Self::Parts(parts) => parts.outcome(),
        }
    }
}
