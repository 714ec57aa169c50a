//! How good a call sounds: ITU-T G.107's E-model with its default values, in the form of Cole and Rosenbluth
//! ("Voice over IP performance monitoring", 2001), which leaves delay and loss.

use bentpipe_types::Span;

/// R of a connection that has no fault: what G.107 (03/2005 and later) comes to with all its defaults.
pub const BEST: f64 = 93.2;

/// What a codec does to R.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Impairment {
    /// Ie: of the codec itself.
    pub codec: f64,
    /// Bpl: how well it bears the loss of packets.
    pub robustness: f64,
}

/// Id: what the delay from mouth to ear takes off R. `delay` is one way.
#[must_use]
pub fn delay_impairment(delay: Span) -> f64 {
    let milliseconds = delay.as_millis_f64();
    0.024 * milliseconds + 0.11 * (milliseconds - 177.3).max(0.0)
}

/// Ie,eff: what codec and loss take off R (G.107 section 7.5, equation 7-29). `lost` is the share of
/// packets that are not played, from 0 to 1; `burst_ratio` how long bursts of loss are beside those of
/// random loss.
#[must_use]
pub fn loss_impairment(of: Impairment, lost: f64, burst_ratio: f64) -> f64 {
    let percent = 100.0 * lost;
    of.codec + (95.0 - of.codec) * percent / (percent / burst_ratio + of.robustness)
}

/// R, from 0 (and below) to [`BEST`].
#[must_use]
pub fn rating(of: Impairment, delay: Span, lost: f64, burst_ratio: f64) -> f64 {
    BEST - delay_impairment(delay) - loss_impairment(of, lost, burst_ratio)
}

/// The mean opinion score that listeners would give, from 1 to 4.5 (G.107 annex B, equation B-4).
#[must_use]
pub fn opinion(rating: f64) -> f64 {
    if rating <= 0.0 {
        1.0
    } else if rating >= 100.0 {
        4.5
    } else {
        let r = rating;
        // The cubic is below 1 for a rating below 6.5.
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G711: Impairment = Impairment {
        codec: 0.0,
        robustness: 25.1,
    };

    #[test]
    fn opinions_are_those_of_annex_b() {
        // G.107 table B.1: the lower limits of R and of MOS for each class of satisfaction; and MOS = 4.41 with
        // all defaults (section 7.7). To half a hundredth, but for R = 80, where the equation gives 4.024.
        for (r, mos) in [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
            (93.2, 4.41),
            (0.0, 1.0),
            (-7.0, 1.0),
            (100.0, 4.5),
        ] {
            assert!((opinion(r) - mos).abs() < 0.0065, "{r}: {}", opinion(r));
        }
        let rising = (0..1000).map(|tenth| opinion(f64::from(tenth) / 10.0));
        assert!(rising.collect::<Vec<_>>().is_sorted());
    }

    /// Id of G.107 (section 7.4) in full, with all defaults: talker's and listener's echo and pure delay.
    fn in_full(ms: f64) -> f64 {
        let (no, rlr, slr, telr, wepl) = (-61.18_f64, 2.0_f64, 8.0_f64, 65.0_f64, 110.0_f64);
        let ro = 15.0 - 1.5 * (slr + no);
        let terv = telr - 40.0 * libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0))
            + 6.0 * libm::exp(-0.3 * ms * ms);
        let roe = -1.5 * (no - rlr);
        let re = 80.0 + 2.5 * (terv - 14.0);
        let talker = ((roe - re) / 2.0 + ((roe - re).powi(2) / 4.0 + 100.0).sqrt() - 1.0)
            * (1.0 - libm::exp(-ms));
        let rle = 10.5 * (wepl + 7.0) * libm::pow(2.0 * ms + 1.0, -0.25);
        let listener = (ro - rle) / 2.0 + ((ro - rle).powi(2) / 4.0 + 169.0).sqrt();
        let x = libm::log2(ms / 100.0);
        let pure = if ms <= 100.0 {
            0.0
        } else {
            25.0 * (libm::pow(1.0 + x.powi(6), 1.0 / 6.0)
                - 3.0 * libm::pow(1.0 + (x / 3.0).powi(6), 1.0 / 6.0)
                + 2.0)
        };
        talker + listener + pure
    }

    #[test]
    fn the_impairment_by_delay_is_near_that_of_the_whole_model() {
        assert!((delay_impairment(Span::from_millis(100)) - 2.4).abs() < 1e-9);
        assert!((delay_impairment(Span::from_millis(300)) - (7.2 + 0.11 * 122.7)).abs() < 1e-9);
        // Cole and Rosenbluth's two lines follow the model within 1.1 up to 350 ms: the most at their corner,
        // which the model rounds off. Beyond, they are pessimists: 3 at 400 ms.
        for ms in 1..=400 {
            let simple = delay_impairment(Span::from_millis(ms));
            let whole = in_full(ms as f64);
            let apart = if ms <= 350 { 1.1 } else { 3.1 };
            assert!((simple - whole).abs() < apart, "{ms} ms: {simple} {whole}");
        }
    }

    #[test]
    fn loss_takes_off_what_equation_7_29_says() {
        assert_eq!(loss_impairment(G711, 0.0, 1.0), 0.0);
        assert!((loss_impairment(G711, 0.01, 1.0) - 95.0 / 26.1).abs() < 1e-9);
        // Bursts are worse than as many losses apart, and all packets lost is all there is to lose.
        assert!(loss_impairment(G711, 0.05, 2.0) > loss_impairment(G711, 0.05, 1.0));
        assert!(rating(G711, Span::ZERO, 0.0, 1.0) == BEST);
        assert!(opinion(rating(G711, Span::from_millis(300), 1.0, 1.0)) < 1.1);
    }
}
