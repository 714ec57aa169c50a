//! A link that alternates between clear and faded states of random duration: the two-state model of
//! E. Lutz et al., "The Land Mobile Satellite Communication Channel - Recording, Statistics, and
//! Channel Model", IEEE Transactions on Vehicular Technology 40(2), 1991, section III, for packets
//! instead of bits.

use bentpipe_types::{Distribution, RandomStream, Span, Time};

use super::loss_rates::LossRates;

/// Durations of both states, and the effect of a fade.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FadingSettings {
    /// Durations of the clear state in seconds.
    pub clear: Distribution,
    /// Durations of fades in seconds.
    pub faded: Distribution,
    /// Transmission rate during a fade in bit/s, if it adapts.
    pub rate: Option<u64>,
    /// Additional losses during a fade.
    pub losses: LossRates,
}

impl FadingSettings {
    /// Returns the long-term share of time in fades.
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

/// Minimum duration of a state. Without it, a distribution of nearly zero durations would stop the
/// clock.
const SHORTEST: Span = Span::from_micros(100);

/// State of the link. Queried at times that never decrease; begins clear.
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

    /// Returns whether it is faded at `now`, and until when that holds.
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
    fn the_faded_share_of_time_follows_from_the_means() {
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
        // 50,000 fades of one second; the standard error of the share is about 0.25 * 0.75 * sqrt(2
        // / n).
        let share = faded_s / now.as_secs_f64();
        assert!((share - settings.share()).abs() < 4.0 * 0.0012, "{share}");
        let mean = faded_s / f64::from(fades);
        assert!((mean - 1.0).abs() < 4.0 / f64::from(fades).sqrt(), "{mean}");
    }
}
