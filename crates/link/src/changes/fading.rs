//! A link that is clear or faded, for random times: the two-state model of E. Lutz et al., "The Land
//! Mobile Satellite Communication Channel - Recording, Statistics, and Channel Model", IEEE Transactions
//! on Vehicular Technology 40(2), 1991, section III, packets for bits.

use bentpipe_types::{Distribution, RandomStream, Span, Time};

use super::LossRates;

/// How long it is clear and how long faded, in turn, and what a fade does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FadingSettings {
    /// Times without a fade, in seconds.
    pub clear: Distribution,
    /// Fades, in seconds.
    pub faded: Distribution,
    /// The transmitter's rate in a fade, in bit/s, where it adapts.
    pub rate: Option<u64>,
    /// Losses in a fade, besides all others.
    pub losses: LossRates,
}

impl FadingSettings {
    /// The share of time that is faded, in the long run.
    #[must_use]
    pub fn share(&self) -> f64 {
        let (clear, faded) = (self.clear.mean(), self.faded.mean());
        if clear + faded > 0.0 {
            faded / (clear + faded)
        } else {
            0.0
        }
    }
}

/// The shortest time in a state. A draw may come out next to nothing, and a distribution of nothing but
/// that would never let the clock run on.
const SHORTEST: Span = Span::from_micros(100);

/// The link as it comes to be asked about, at times that never go back. It begins clear.
#[derive(Clone, Debug)]
pub(super) struct Fading {
    pub(super) settings: FadingSettings,
    random: RandomStream,
    faded: bool,
    until: Time,
}

impl Fading {
    pub(super) fn new(settings: FadingSettings, mut random: RandomStream) -> Self {
        let until = Time::ZERO + settings.clear.span(&mut random).max(SHORTEST);
        Self {
            settings,
            random,
            faded: false,
            until,
        }
    }

    /// Is it faded at `now`, and until when is it as it is?
    pub(super) fn at(&mut self, now: Time) -> (bool, Time) {
        while self.until <= now {
            self.faded = !self.faded;
            let lasts = if self.faded {
                self.settings.faded
            } else {
                self.settings.clear
            };
            self.until += lasts.span(&mut self.random).max(SHORTEST);
        }
        (self.faded, self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_time_is_that_of_the_means() {
        let settings = FadingSettings {
            clear: Distribution::Exponential(3.0),
            faded: Distribution::Exponential(1.0),
            rate: None,
            losses: LossRates::default(),
        };
        let mut fading = Fading::new(settings, RandomStream::new(5, "test", "fading"));
        let end = Time::ZERO + Span::from_secs(200_000);
        let (mut now, mut faded_s, mut fades) = (Time::ZERO, 0.0, 0_u32);
        while now < end {
            let (faded, until) = fading.at(now);
            if faded {
                faded_s += until.since(now).as_secs_f64();
                fades += 1;
            }
            now = until;
        }
        // 50,000 fades of a second each; a share's standard error is about 0.25 * 0.75 * sqrt(2 / n).
        let share = faded_s / now.as_secs_f64();
        assert!((share - settings.share()).abs() < 4.0 * 0.0012, "{share}");
        let mean = faded_s / f64::from(fades);
        assert!((mean - 1.0).abs() < 4.0 / f64::from(fades).sqrt(), "{mean}");
    }
}
