//! `[randomness]`.

use schemars::JsonSchema;
use serde::Deserialize;

/// Random behaviour of hosts, drawn from the seed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RandomnessFile {
    /// Whether hosts with `profile` "linux" draw their timing from the seed, as it is random in a
    /// real host: the phase of the clock in a tick of 4 ms, the wake-up delays of packets and
    /// applications, and the start of flows within a millisecond. `bentpipe run --seeds` shows how
    /// far results differ. `false`: all clocks begin together, wake-up delays are fixed, and flows
    /// start exactly at their `start`. Default: true.
    pub host_timing: bool,
}

impl Default for RandomnessFile {
    fn default() -> Self {
        Self { host_timing: true }
    }
}
