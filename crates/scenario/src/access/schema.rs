//! `access = { ... }` of a link or a direction, and `[carriers.NAME]`.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::rate::Rate;
use crate::quantity::time::{Delay, Length};

/// How a direction gets capacity to send.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessFile {
    /// Whether the direction has its rate for itself, or requests capacity from a hub.
    pub kind: AccessKind,
    /// Capacity that the direction has in each frame without a request (CRA), used or not. At most
    /// its `rate`. In a fade it takes more of the carrier, until it takes all of the terminal's
    /// time. Default: none.
    pub constant: Option<Rate>,
    /// Highest rate that the direction requests by rate (RBDC), in addition to `constant`. In each
    /// frame it requests the arrival rate of packets or the rate that empties its backlog,
    /// whichever is higher. At most its `rate`. The carrier refuses requests beyond its capacity,
    /// and they are repeated. Default: none.
    pub rate_based: Option<Rate>,
    /// Request capacity by volume (VBDC) for the backlog, except for bytes that are already
    /// requested or granted in this frame. The carrier grants the rest of a request in later
    /// frames. Default: true if neither `constant` nor `rate_based` is given.
    pub volume_based: Option<bool>,
    /// Take a share of the capacity that no terminal has requested (FCA), without a request.
    /// Default: false.
    pub free: Option<bool>,
    /// The carrier of `[carriers.NAME]` that this direction shares with all links of a counted host
    /// or gateway, and with all links that name it. Default: a carrier of its own with its `rate`.
    pub carrier: Option<String>,
    /// Duration of a frame. For a shared carrier, set it in `[carriers.NAME]`. "1 ms" to "10 s".
    /// Default: "26.5 ms", as in OpenSAND.
    pub frame: Option<Length>,
    /// Time from the arrival of a request at the hub until the hub transmits the plan that answers
    /// it. For a shared carrier, set it in `[carriers.NAME]`. Default: "0 s".
    pub processing: Option<Delay>,
    /// Delay of a request on the way to the hub. Default: this direction's `delay`.
    pub request_delay: Option<Delay>,
    /// Delay of the hub's plan on the way back. Default: the other direction's `delay`; on a
    /// one-way link, this direction's.
    pub grant_delay: Option<Delay>,
}

words! {
    /// How a direction gets capacity to send.
    AccessKind {
        /// The direction may always send: its rate is for itself.
        Continuous = "continuous",
        /// A hub assigns capacity: MF-TDMA with capacity on demand, as on the return link of
        /// DVB-RCS2. The direction requests capacity at the beginning of each frame, and the hub
        /// grants it a part of a later frame.
        OnDemand = "on-demand",
    }
}

impl AccessFile {
    /// Returns the keys that the file gives, except `kind`.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        macro_rules! given {
            ($($key:ident),*) => {
                [$((stringify!($key), self.$key.is_some())),*]
            };
        }
        let all = given![
            constant,
            rate_based,
            volume_based,
            free,
            carrier,
            frame,
            processing,
            request_delay,
            grant_delay
        ];
        all.into_iter()
            .filter_map(|(key, given)| given.then_some(key))
    }
}

/// A carrier shared by directions with `access = { kind = "on-demand", carrier = "NAME" }`, or
/// several carriers that a hub plans together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CarrierFile {
    /// Total rate of all directions that share the carrier, in bit/s.
    pub rate: Rate,
    /// Duration of a frame. "1 ms" to "10 s". Default: "26.5 ms".
    pub frame: Option<Length>,
    /// Time from the arrival of a request at the hub until the hub transmits the plan that answers
    /// it. Default: "0 s".
    pub processing: Option<Delay>,
}
