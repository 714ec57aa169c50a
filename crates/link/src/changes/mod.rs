//! Directions whose rate, delay and losses change with time, with outages, duplication, reordering
//! and corruption.
//!
//! The delay and losses of a packet are those at the instant at which its last bit is sent. Its
//! transmission time follows from the rates in between. All values are determined in the order of
//! transmission, each impairment from a random stream of its own, so adding one changes no other's
//! draws.

mod course;
mod fading;
mod loss_rates;
mod opportunities;
mod outages;
mod profile;
mod rates;

pub use fading::FadingSettings;
pub use loss_rates::LossRates;
pub(crate) use opportunities::OPPORTUNITY;
pub use opportunities::Opportunities;
pub use outages::{InFlight, Outages, Sending};
pub use profile::Profile;

pub(crate) use course::{Course, Fate, Passage, Usual};
pub(crate) use outages::{OutageGroup, grouped, held, passes};
pub(crate) use rates::Rates;

use bentpipe_types::{Distribution, Span};

/// How a direction changes with time, and its impairments other than error models.
#[derive(Clone, PartialEq, Debug)]
pub struct Changes {
    /// Transmission rate over time.
    pub rate: RateCourse,
    /// Propagation delay over time. Before the first step, the direction's own.
    pub delay: Option<Profile<Span>>,
    /// Loss rates over time, in addition to the direction's own error models. Before the first
    /// step, none.
    pub losses: Option<Profile<LossRates>>,
    /// Outages.
    pub outages: Vec<Outages>,
    /// Random fades.
    pub fading: Option<FadingSettings>,
    /// Share of packets that arrive twice.
    pub duplication: f64,
    /// Share of packets that arrive with a wrong checksum.
    pub corruption: f64,
    /// Share of packets with additional delay, and its distribution: others overtake them.
    pub reordering: Option<(f64, Distribution)>,
    /// Whether a packet that would overtake another, because the delay has decreased, arrives
    /// directly after it.
    pub keeps_order: bool,
}

impl Default for Changes {
    /// No changes.
    fn default() -> Self {
        Self {
            rate: RateCourse::Constant,
            delay: None,
            losses: None,
            outages: Vec::new(),
            fading: None,
            duplication: 0.0,
            corruption: 0.0,
            reordering: None,
            keeps_order: true,
        }
    }
}

/// A transmission rate as a function of time.
#[derive(Clone, PartialEq, Debug)]
pub enum RateCourse {
    /// The direction's own rate.
    Constant,
    /// Steps in bit/s, possibly zero. Before the first step, the direction's own rate.
    Steps(Profile<u64>),
    /// Instants at which a number of bytes can be sent.
    Opportunities(Opportunities),
}

#[cfg(test)]
mod tests;
