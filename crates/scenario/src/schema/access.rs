//! `access = { ... }` of a link or a direction, and `[carriers.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::{Delay, Length, Rate};
use bentpipe_types::words;

/// When a direction may send.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessFile {
    /// Whether it has its rate to itself, or asks for it.
    pub kind: AccessKind,
    /// Capacity that it has in each frame without asking (CRA), used or not. At most its `rate`. In a fade it takes more of
    /// the carrier, until it takes all of the terminal's time. Default: none.
    pub constant: Option<Rate>,
    /// The most that it asks for by rate (RBDC), besides what is constant: each frame the rate at which packets come, or
    /// what takes away those that wait, whichever is more. At most its `rate`. What a carrier cannot give is refused, and asked for anew.
    /// Default: none.
    pub rate_based: Option<Rate>,
    /// Ask for what waits by volume (VBDC), and is neither asked for already nor granted in this frame. What a carrier cannot give at once stays owed. Default: true, where neither `constant` nor `rate_based` is given.
    pub volume_based: Option<bool>,
    /// Take a share of what nobody has asked for (FCA), without asking. Default: false.
    pub free: Option<bool>,
    /// The carrier of `[carriers.NAME]` that it shares with others: with all links of a counted host or gateway,
    /// and with all links that name it. Default: a carrier of its own, of its `rate`.
    pub carrier: Option<String>,
    /// How long a frame is. Of a carrier that is shared, the carrier says so. "1 ms" to "10 s". Default: "26.5 ms", as in
    /// OpenSAND.
    pub frame: Option<Length>,
    /// What the hub takes from a request's arrival to sending out the plan that heeds it. Of a carrier that is shared, the
    /// carrier says so. Default: "0 s".
    pub processing: Option<Delay>,
    /// How long a request takes to the hub. Default: this direction's `delay`.
    pub request_delay: Option<Delay>,
    /// How long the hub's plan takes back. Default: the other direction's `delay`; on a one-way link, this one's.
    pub grant_delay: Option<Delay>,
}

words! {
    /// When a direction may send.
    AccessKind {
        /// Always: its rate is its own.
        Continuous = "continuous",
        /// When a hub lets it: at the beginning of each frame it asks for capacity, and the hub grants it a part of a
        /// later frame (MF-TDMA with capacity on demand, as the return link of DVB-RCS2).
        OnDemand = "on-demand",
    }
}

impl AccessFile {
    /// The keys that the file gives, besides `kind`.
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

/// A carrier that directions with `access = { kind = "on-demand", carrier = "NAME" }` share, or several carriers of a
/// hub that plans them together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CarrierFile {
    /// What all send together at most, in bit/s.
    pub rate: Rate,
    /// How long a frame is. "1 ms" to "10 s". Default: "26.5 ms".
    pub frame: Option<Length>,
    /// What the hub takes from a request's arrival to sending out the plan that heeds it. Default: "0 s".
    pub processing: Option<Delay>,
}
