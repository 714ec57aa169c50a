//! Call quality: the E-model of ITU-T G.107 with default values, which leave delay and loss.

use bentpipe_types::Span;

/// R of a connection without impairments: the value of G.107 (03/2005 and later) with all defaults.
pub const BEST: f64 = 93.2;

/// Impairment by a codec.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Impairment {
    /// Ie: impairment without packet loss.
    pub codec: f64,
    /// Bpl: robustness against packet loss.
    pub robustness: f64,
}

/// Id: impairment by the one-way mouth-to-ear delay (G.107 section 7.4), relative to zero delay,
/// which is included in [`BEST`].
///
/// For some milliseconds the echo equation gives slightly less than for zero; that counts as zero.
///
/// The two lines by which Cole and Rosenbluth ("Voice over IP performance monitoring", 2001)
/// approximate it are within 1.1 of it up to 350 ms, and far too strict beyond, where calls over
/// two satellites are.
#[must_use]
pub fn delay_impairment(delay: Span) -> f64 {
    (whole_delay_impairment(delay.as_millis_f64()) - whole_delay_impairment(0.0)).max(0.0)
}

/// G.107 equations 7-18 to 7-28: talker echo, listener echo and absolute delay, in milliseconds one
/// way; T, Ta and half of Tr all equal this delay.
fn whole_delay_impairment(delay_ms: f64) -> f64 {
    // Defaults of table 2: resulting noise in dBm0p, send and receive loudness rating, talker echo
    // loudness rating, weighted echo path loss.
    const NOISE: f64 = -61.18;
    const SEND_LOUDNESS: f64 = 8.0;
    const RECEIVE_LOUDNESS: f64 = 2.0;
    const TALKER_ECHO_LOUDNESS: f64 = 65.0;
    const ECHO_PATH_LOSS: f64 = 110.0;

    let ro = 15.0 - 1.5 * (SEND_LOUDNESS + NOISE);
    let terv = TALKER_ECHO_LOUDNESS
        - 40.0 * libm::log10((1.0 + delay_ms / 10.0) / (1.0 + delay_ms / 150.0))
        + 6.0 * libm::exp(-0.3 * delay_ms * delay_ms);
    let roe = -1.5 * (NOISE - RECEIVE_LOUDNESS);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let echo = (roe - re) / 2.0;
    let talker = (echo + (echo * echo + 100.0).sqrt() - 1.0) * (1.0 - libm::exp(-delay_ms));

    let rle = 10.5 * (ECHO_PATH_LOSS + 7.0) * libm::pow(2.0 * delay_ms + 1.0, -0.25);
    let echo = (ro - rle) / 2.0;
    let listener = echo + (echo * echo + 169.0).sqrt();

    let pure = if delay_ms <= 100.0 {
        0.0
    } else {
        let x = libm::log2(delay_ms / 100.0);
        let sixth_root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
        25.0 * (sixth_root(x) - 3.0 * sixth_root(x / 3.0) + 2.0)
    };
    talker + listener + pure
}

/// Ie,eff: impairment by codec and loss (G.107 section 7.5, equation 7-29). `lost` is the share of
/// packets that are not played, from 0 to 1; `burst_ratio` is the mean loss burst relative to
/// random loss.
#[must_use]
pub fn loss_impairment(of: Impairment, lost: f64, burst_ratio: f64) -> f64 {
    let percent = 100.0 * lost;
    of.codec + (95.0 - of.codec) * percent / (percent / burst_ratio + of.robustness)
}

/// R, at most [`BEST`]; below 0 for unusable calls.
#[must_use]
pub fn rating(of: Impairment, delay: Span, lost: f64, burst_ratio: f64) -> f64 {
    BEST - delay_impairment(delay) - loss_impairment(of, lost, burst_ratio)
}

/// Returns the mean opinion score from 1 to 4.5 (G.107 annex B, equation B-4).
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
        // G.107 table B.1: lower limits of R and MOS for each class of satisfaction; MOS = 4.41
        // with all defaults (section 7.7). To half a hundredth, except R = 80, where the equation
        // gives 4.024.
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

    #[test]
    fn delay_impairment_is_within_1_1_of_cole_and_rosenbluth_up_to_350_ms() {
        // Cole and Rosenbluth's approximation, independent of the equations; the largest difference
        // is at its corner.
        for ms in 0_u32..=350 {
            let lines = 0.024 * f64::from(ms) + 0.11 * (f64::from(ms) - 177.3).max(0.0);
            let model = whole_delay_impairment(f64::from(ms));
            assert!((lines - model).abs() < 1.1, "{ms} ms: {lines} {model}");
        }
    }

    #[test]
    fn delay_impairment_is_monotonic_and_bounded() {
        let of = |ms| delay_impairment(Span::from_millis(ms));
        assert_eq!(of(0), 0.0);
        let rising: Vec<_> = (0..3000).map(of).collect();
        assert!(rising.is_sorted());
        // Idd is at most 50 (its roots tend to x and x / 3).
        assert!((60.0..65.0).contains(&of(3000)), "{}", of(3000));
        // Two satellites in sequence: G.109 does not recommend R below 50, and this is at that
        // limit.
        let two_hops = rating(G711, Span::from_millis(600), 0.0, 1.0);
        assert!((49.0..50.0).contains(&two_hops), "{two_hops}");
    }

    #[test]
    fn loss_impairment_follows_g107_equation_7_29() {
        assert_eq!(loss_impairment(G711, 0.0, 1.0), 0.0);
        assert!((loss_impairment(G711, 0.01, 1.0) - 95.0 / 26.1).abs() < 1e-9);
        // Bursts are worse than the same number of separate losses, and losing all packets is the
        // maximum.
        assert!(loss_impairment(G711, 0.05, 2.0) > loss_impairment(G711, 0.05, 1.0));
        assert!(rating(G711, Span::ZERO, 0.0, 1.0) == BEST);
        assert!(opinion(rating(G711, Span::from_millis(300), 1.0, 1.0)) < 1.1);
    }
}
