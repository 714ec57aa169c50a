//! `[flows.NAME]`.

use bentpipe_sim::Distribution;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::application::schema::AppFile;
use crate::quantity::random::RandomLength;

/// A flow: an application at each of two hosts, and the connections between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// The host that begins: it opens connections, and sends if only one end does.
    pub from: String,
    /// The other host; or a group, whose members all receive what is sent, by multicast. NAME-1 is
    /// then what the first member receives. Only datagrams can be sent to a group: those of
    /// `carousel`, and of `packets` over UDP.
    pub to: String,
    /// Start time. It may be random: with "uniform(0 s, 1 s)" each seed gives another start, even
    /// if nothing else is random, and each of several flows has its own. Default: "0 s".
    #[serde(default = "at_once")]
    pub start: RandomLength,
    /// Creates this many flows, NAME-1 to NAME-count, between two hosts that have no count of their
    /// own.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<i64>,
    /// With `count`: time from the start of one flow to the start of the next. It may be random:
    /// "exponential(2 s)" makes the starts a Poisson process, which begins at `start`. Default: "0
    /// s", all at once.
    #[serde(default = "none_between")]
    pub spacing: RandomLength,
    /// The application. Either `app` or `mix` is required.
    pub app: Option<AppFile>,
    /// Makes the flow a user of this mix, who uses one application after another.
    pub mix: Option<String>,
}

fn none_between() -> RandomLength {
    RandomLength(Distribution::Constant(0.0))
}

fn at_once() -> RandomLength {
    RandomLength(Distribution::Constant(0.0))
}
