//! The rate of a path.

use bentpipe_types::{BitRate, Time};

use super::Profile;
use super::fading::Fading;

/// A transmitter's rate with steps and fades. Queried at times that never decrease. A copy goes
/// through the same fades.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    /// Rate where no step applies.
    pub(super) own: BitRate,
    pub(super) steps: Option<Profile<u64>>,
    pub(super) fading: Option<Fading>,
}

impl Rates {
    /// Whether it changes at all.
    pub(crate) fn change(&self) -> bool {
        let fading = self.fading.as_ref();
        self.steps.is_some() || fading.is_some_and(|fading| fading.settings.rate.is_some())
    }

    /// Returns the rate in bit/s, and until when it is valid.
    pub(crate) fn at(&mut self, now: Time) -> (u64, Option<Time>) {
        let own = self.own.bits_per_second();
        let (mut rate, mut until) = match &self.steps {
            Some(profile) => {
                let (rate, until) = profile.at(now);
                (rate.unwrap_or(own), until)
            }
            None => (own, None),
        };
        if let Some(fading) = &mut self.fading
            && let Some(slower) = fading.settings.rate
        {
            let (faded, changes) = fading.at(now);
            until = Some(until.map_or(changes, |until| until.min(changes)));
            if faded {
                rate = rate.min(slower);
            }
        }
        (rate, until)
    }
}
