//! How good the video of a call looks: ITU-T G.1070's video quality estimation function.

/// Coefficients v1 to v12 of G.1070 appendix I for H.264 on a display of VGA size (640 by 480).
const V: [f64; 12] = [
    5.517, 0.0129, 3.459, 178.53, 1.02, 1.15, 0.000_355, 0.114, 513.77, 0.736, -6.451, 13.684,
];

/// The most frames a second that the model knows.
const MOST_FRAMES: f64 = 30.0;

/// The mean opinion score of video, from 1 to 5 (V_q of G.1070): of its rate in kbit/s, of the
/// frames a second that it is coded with, and of the share of packets that are not there in time.
#[must_use]
pub fn opinion(kbit_per_s: f64, frames_per_s: f64, lost: f64) -> f64 {
    let [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12] = V;
    if kbit_per_s <= 0.0 || frames_per_s <= 0.0 {
        return 1.0;
    }
    let frames = frames_per_s.min(MOST_FRAMES);
    let best_frames = (v1 + v2 * kbit_per_s).clamp(1.0, MOST_FRAMES);
    let best = v3 - v3 / (1.0 + libm::pow(kbit_per_s / v4, v5));
    let tolerance = v6 + v7 * kbit_per_s;
    let distance = libm::log(frames) - libm::log(best_frames);
    let coding = best * libm::exp(-distance * distance / (2.0 * tolerance * tolerance));
    let robustness = v10 + v11 * libm::exp(-frames / v8) + v12 * libm::exp(-kbit_per_s / v9);
    (1.0 + coding * libm::exp(-100.0 * lost / robustness)).clamp(1.0, 5.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_follow_the_equations() {
        // 1000 kbit/s and 30 frames, worked out apart from this code: the best frame rate is
        // 18.417, I_Ofr 2.9502, D_FrV 1.505, I_coding 2.7991; D_PplV is 2.6899.
        for (lost, score) in [(0.0, 3.7991), (0.01, 2.9300)] {
            let got = opinion(1_000.0, 30.0, lost);
            assert!((got - score).abs() < 1e-3, "{got}");
        }
    }

    #[test]
    fn scores_rise_with_the_rate_and_fall_with_losses() {
        let rates = (1..=200).map(|n| opinion(50.0 * f64::from(n), 30.0, 0.0));
        assert!(rates.collect::<Vec<_>>().is_sorted());
        let losses = (0..=100).map(|n| -opinion(1_500.0, 30.0, f64::from(n) / 100.0));
        assert!(losses.collect::<Vec<_>>().is_sorted());
        assert!((1.0..1.01).contains(&opinion(1_500.0, 30.0, 1.0)));
        assert_eq!(opinion(0.0, 30.0, 0.0), 1.0);
    }
}
