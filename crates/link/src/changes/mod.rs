//! A direction whose rate, delay and losses change with time, that goes away and comes back, and that
//! duplicates, reorders and corrupts packets.
//!
//! What holds for a packet is how the path is when its last bit is sent: the delay and the losses of
//! that instant. Its transmission takes as long as the rates that it meets make it. Everything is drawn
//! or looked up in the order of transmission, each impairment from a random stream of its own, so that
//! adding one changes no other's luck.

mod course;
mod fading;
mod opportunities;
mod outages;
mod profile;
mod rates;

pub use fading::FadingSettings;
pub(crate) use opportunities::OPPORTUNITY;
pub use opportunities::Opportunities;
pub use outages::{InFlight, Outages, Sending};
pub use profile::Profile;

pub(crate) use course::{Course, Fate, Passage, Usual};
pub(crate) use outages::{held, passes};
pub(crate) use rates::Rates;

use bentpipe_types::{Distribution, Span};

/// How a direction changes with time, and what it does to packets besides losing them.
#[derive(Clone, PartialEq, Debug)]
pub struct Changes {
    /// When the transmitter sends how fast.
    pub rate: RateCourse,
    /// The propagation delay; before the first step the direction's own.
    pub delay: Option<Profile<Span>>,
    /// Losses; before the first step none but those of the direction's own error models, which go on
    /// beside them.
    pub losses: Option<Profile<LossRates>>,
    /// When it goes away.
    pub outages: Vec<Outages>,
    /// A link that is clear or faded, at random.
    pub fading: Option<FadingSettings>,
    /// Share of the packets that arrive twice.
    pub duplication: f64,
    /// Share of the packets that arrive with a wrong checksum.
    pub corruption: f64,
    /// Share of the packets that come late, and how late: others overtake them.
    pub reordering: Option<(f64, Distribution)>,
    /// A packet that would overtake another, because the delay has fallen meanwhile, arrives right
    /// after it.
    pub keeps_order: bool,
}

impl Default for Changes {
    /// Nothing changes.
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

/// A transmitter's rate as a function of time.
#[derive(Clone, PartialEq, Debug)]
pub enum RateCourse {
    /// The direction's own.
    Constant,
    /// In bit/s, zero too; before the first step the direction's own.
    Steps(Profile<u64>),
    /// Instants at which so many bytes may go.
    Opportunities(Opportunities),
}

/// Losses of an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LossRates {
    /// Probability that a packet is lost, whatever its length.
    pub packet: f64,
    /// Probability that a bit is wrong.
    pub bit: f64,
}

impl LossRates {
    /// How likely it is that a packet of so many bits is lost, as -ln of the chance that it is not:
    /// such hazards add up. Infinite where it is lost for certain.
    fn hazard(self, bits: u64) -> f64 {
        let of = |probability: f64| {
            if probability > 0.0 {
                -libm::log1p(-probability.min(1.0))
            } else {
                0.0
            }
        };
        of(self.packet) + of(self.bit) * bits as f64
    }
}

#[cfg(test)]
mod tests;
