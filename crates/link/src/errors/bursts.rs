//! Losses in bursts: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical
//! Journal 39(5), 1960, and E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise
//! Channels", ibid. 42(5), 1963, for packets instead of bits.

use bentpipe_types::{RandomStream, Trials};

/// Long-term properties of losses in bursts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BurstSettings {
    /// Total share of lost packets.
    pub loss_rate: f64,
    /// Average number of packets per bad period; at least 1.
    pub mean_length: f64,
    /// Share of packets lost in bad periods: Elliott's 1 - h.
    pub loss_in_burst: f64,
    /// Share of packets lost in good periods: 1 - k.
    pub loss_between: f64,
}

impl BurstSettings {
    /// Returns the share of packets in bad periods, or `None` if the properties contradict each
    /// other.
    #[must_use]
    pub fn share_in_burst(&self) -> Option<f64> {
        let Self {
            loss_rate,
            mean_length,
            loss_in_burst,
            loss_between,
        } = *self;
        let sound = mean_length >= 1.0
            && mean_length.is_finite()
            && loss_in_burst > loss_between
            && (loss_between..=loss_in_burst).contains(&loss_rate);
        if !sound {
            return None;
        }
        let share = (loss_rate - loss_between) / (loss_in_burst - loss_between);
        // A good period has at least one packet, so length / (length + 1) is the largest share.
        let always = share >= 1.0;
        // Tolerance for rounding: 0.8 and 4 are just possible.
        let shortest = share / (1.0 - share) * (1.0 - 1e-12);
        (always || shortest <= mean_length).then_some(share)
    }
}

/// A link that is good or bad, and may change with each packet.
///
/// It leaves a bad period with probability r = 1 / mean length, and enters one with p such that the
/// share of packets in bad periods, p / (p + r), gives the loss rate. It starts in its stationary
/// distribution.
#[derive(Clone, Debug)]
pub struct BurstLosses {
    /// Per packet: success is a change of state, in good and in bad periods.
    changes: [Trials; 2],
    loss: [f64; 2],
    bad: bool,
    /// Packets until the next change.
    left: u64,
    random: RandomStream,
}

impl BurstLosses {
    /// Creates losses in bursts. Contradictory settings are replaced by the nearest possible ones.
    #[must_use]
    pub fn new(settings: BurstSettings, mut random: RandomStream) -> Self {
        let share = settings.share_in_burst().unwrap_or(settings.loss_rate);
        let leave = if share >= 1.0 {
            0.0
        } else {
            1.0 / settings.mean_length.max(1.0)
        };
        let enter = if share >= 1.0 {
            1.0
        } else {
            (leave * share / (1.0 - share)).min(1.0)
        };
        let bad = random.happens(share);
        let mut model = Self {
            changes: [Trials::new(enter), Trials::new(leave)],
            loss: [settings.loss_between, settings.loss_in_burst],
            bad,
            left: 0,
            random,
        };
        model.stay();
        model
    }

    /// Draws the length of a period: geometric, at least one packet.
    fn stay(&mut self) {
        let changes = self.changes[usize::from(self.bad)];
        self.left = (self.random)
            .failures_before_success(changes)
            .saturating_add(1);
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        if self.left == 0 {
            self.bad = !self.bad;
            self.stay();
        }
        // `u64::MAX` means for ever.
        if self.left != u64::MAX {
            self.left -= 1;
        }
        match self.loss[usize::from(self.bad)] {
            0.0 => false,
            1.0 => true,
            rate => self.random.happens(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(loss_rate: f64, mean_length: f64, in_burst: f64, between: f64) -> BurstLosses {
        let settings = BurstSettings {
            loss_rate,
            mean_length,
            loss_in_burst: in_burst,
            loss_between: between,
        };
        assert!(settings.share_in_burst().is_some(), "{settings:?}");
        BurstLosses::new(settings, RandomStream::new(7, "test", "bursts"))
    }

    /// Returns loss rate, mean run of losses, and the share of losses that are followed by a loss.
    fn measured(model: &mut BurstLosses, packets: u64) -> (f64, f64, f64) {
        let (mut lost, mut runs, mut pairs, mut before) = (0_u64, 0_u64, 0_u64, false);
        for _ in 0..packets {
            let now = model.loses();
            lost += u64::from(now);
            runs += u64::from(now && !before);
            pairs += u64::from(now && before);
            before = now;
        }
        let (l, r) = (lost as f64, runs as f64);
        (l / packets as f64, l / r, pairs as f64 / l)
    }

    #[test]
    fn loss_rate_and_burst_length_match_gilbert_model() {
        for (rate, length) in [
            (0.01, 1.0),
            (0.01, 4.0),
            (0.05, 20.0),
            (0.3, 2.5),
            (0.6, 1.5),
        ] {
            let (lost, run, again) = measured(&mut model(rate, length, 1.0, 0.0), 4_000_000);
            // n packets contain n (1 - rate) / (gap length) bursts; each mean has the standard
            // error of that many geometric draws, of burst and gap. Four of them are allowed.
            let bursts = 4_000_000.0 * rate / length;
            let error = 4.0 * 1.5 / bursts.sqrt();
            assert!((lost / rate - 1.0).abs() < error, "{rate} {length}: {lost}");
            assert!((run / length - 1.0).abs() < error, "{rate} {length}: {run}");
            // A burst continues with probability 1 - r.
            let expected = 1.0 - 1.0 / length;
            assert!((again - expected).abs() < error, "{rate} {length}: {again}");
        }
    }

    #[test]
    fn loss_rate_and_correlation_match_gilbert_elliott_model() {
        let (rate, length, in_burst, between) = (0.05, 10.0, 0.4, 0.01);
        let mut model = model(rate, length, in_burst, between);
        let (lost, _, again) = measured(&mut model, 4_000_000);
        assert!((lost / rate - 1.0).abs() < 0.02, "{lost}");
        // Two packets in a row are both lost with the probability of the hidden chain: pi (h_b
        // (1-r) h_b + h_b r h_g) + (1-pi) (h_g p h_b + h_g (1-p) h_g).
        let share = (rate - between) / (in_burst - between);
        let r = 1.0 / length;
        let p = r * share / (1.0 - share);
        let both = share * in_burst * ((1.0 - r) * in_burst + r * between)
            + (1.0 - share) * between * (p * in_burst + (1.0 - p) * between);
        assert!((again / (both / rate) - 1.0).abs() < 0.03, "{again}");
    }

    #[test]
    fn extreme_settings_lose_all_or_no_packets() {
        let mut never = model(0.0, 3.0, 1.0, 0.0);
        assert!((0..10_000).all(|_| !never.loses()));
        let mut always = model(1.0, 3.0, 1.0, 0.0);
        assert!((0..10_000).all(|_| always.loses()));
        // Four of five packets lost, in bursts of four: gaps of one.
        let mut dense = model(0.8, 4.0, 1.0, 0.0);
        let (lost, run, _) = measured(&mut dense, 1_000_000);
        assert!((lost - 0.8).abs() < 0.005 && (run - 4.0).abs() < 0.05);
        let impossible = |loss_rate, mean_length, loss_in_burst, loss_between| BurstSettings {
            loss_rate,
            mean_length,
            loss_in_burst,
            loss_between,
        };
        for settings in [
            impossible(0.9, 4.0, 1.0, 0.0),
            impossible(0.1, 0.5, 1.0, 0.0),
            impossible(0.1, f64::NAN, 1.0, 0.0),
            impossible(0.5, 4.0, 0.4, 0.0),
            impossible(0.01, 4.0, 0.4, 0.02),
            impossible(0.1, 4.0, 0.1, 0.1),
        ] {
            assert_eq!(settings.share_in_burst(), None, "{settings:?}");
        }
    }
}
