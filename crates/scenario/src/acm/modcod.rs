//! Adaptive coding and modulation (ACM): the mode of DVB-S2 or DVB-S2X that a link uses at an
//! Es/N0, and its rate.
//!
//! A mode is a modulation with a code rate (MODCOD). Thresholds are the ideal Es/N0 of the
//! standards' tables:
//! - DVB-S2: ETSI EN 302 307-1, table 13: packet error ratio 10^-7, normal frames, no pilots.
//! - DVB-S2X: ETSI EN 302 307-2, table 20a, linear channel: frame error ratio 10^-5, normal frames,
//!   no pilots.
//!
//! Efficiencies are bits of baseband frames per symbol, in the same tables.

use bentpipe_types::Span;

/// A mode of modulation and coding.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mode {
    /// Name in the standard.
    pub name: &'static str,
    /// Information bits per symbol.
    pub efficiency: f64,
    /// Lowest Es/N0 in dB at which it works, without implementation losses.
    pub threshold_db: f64,
}

const fn mode(name: &'static str, efficiency: f64, threshold_db: f64) -> Mode {
    Mode {
        name,
        efficiency,
        threshold_db,
    }
}

/// Modes of DVB-S2: ETSI EN 302 307-1, table 13.
pub const DVB_S2: [Mode; 28] = [
    mode("QPSK 1/4", 0.490243, -2.35),
    mode("QPSK 1/3", 0.656448, -1.24),
    mode("QPSK 2/5", 0.789412, -0.30),
    mode("QPSK 1/2", 0.988858, 1.00),
    mode("QPSK 3/5", 1.188304, 2.23),
    mode("QPSK 2/3", 1.322253, 3.10),
    mode("QPSK 3/4", 1.487473, 4.03),
    mode("QPSK 4/5", 1.587196, 4.68),
    mode("QPSK 5/6", 1.654663, 5.18),
    mode("QPSK 8/9", 1.766451, 6.20),
    mode("QPSK 9/10", 1.788612, 6.42),
    mode("8PSK 3/5", 1.779991, 5.50),
    mode("8PSK 2/3", 1.980636, 6.62),
    mode("8PSK 3/4", 2.228124, 7.91),
    mode("8PSK 5/6", 2.478562, 9.35),
    mode("8PSK 8/9", 2.646012, 10.69),
    mode("8PSK 9/10", 2.679207, 10.98),
    mode("16APSK 2/3", 2.637201, 8.97),
    mode("16APSK 3/4", 2.966728, 10.21),
    mode("16APSK 4/5", 3.165623, 11.03),
    mode("16APSK 5/6", 3.300184, 11.61),
    mode("16APSK 8/9", 3.523143, 12.89),
    mode("16APSK 9/10", 3.567342, 13.13),
    mode("32APSK 3/4", 3.703295, 12.73),
    mode("32APSK 4/5", 3.951571, 13.64),
    mode("32APSK 5/6", 4.119540, 14.28),
    mode("32APSK 8/9", 4.397854, 15.69),
    mode("32APSK 9/10", 4.453027, 16.05),
];

/// Additional modes of DVB-S2X: ETSI EN 302 307-2, table 20a.
pub const DVB_S2X: [Mode; 39] = [
    mode("QPSK 2/9", 0.434841, -2.85),
    mode("QPSK 13/45", 0.567805, -2.03),
    mode("QPSK 9/20", 0.889135, 0.22),
    mode("QPSK 11/20", 1.088581, 1.45),
    mode("8APSK 5/9-L", 1.647211, 4.73),
    mode("8APSK 26/45-L", 1.713601, 5.13),
    mode("8PSK 23/36", 1.896173, 6.12),
    mode("8PSK 25/36", 2.062148, 7.02),
    mode("8PSK 13/18", 2.145136, 7.49),
    mode("16APSK 1/2-L", 1.972253, 5.97),
    mode("16APSK 8/15-L", 2.104850, 6.55),
    mode("16APSK 5/9-L", 2.193247, 6.84),
    mode("16APSK 26/45", 2.281645, 7.51),
    mode("16APSK 3/5", 2.370043, 7.80),
    mode("16APSK 3/5-L", 2.370043, 7.41),
    mode("16APSK 28/45", 2.458441, 8.10),
    mode("16APSK 23/36", 2.524739, 8.38),
    mode("16APSK 2/3-L", 2.635236, 8.43),
    mode("16APSK 25/36", 2.745734, 9.27),
    mode("16APSK 13/18", 2.856231, 9.71),
    mode("16APSK 7/9", 3.077225, 10.65),
    mode("16APSK 77/90", 3.386618, 11.99),
    mode("32APSK 2/3-L", 3.291954, 11.10),
    mode("32APSK 32/45", 3.510192, 11.75),
    mode("32APSK 11/15", 3.620536, 12.17),
    mode("32APSK 7/9", 3.841226, 13.05),
    mode("64APSK 32/45-L", 4.206428, 13.98),
    mode("64APSK 11/15", 4.338659, 14.81),
    mode("64APSK 7/9", 4.603122, 15.47),
    mode("64APSK 4/5", 4.735354, 15.87),
    mode("64APSK 5/6", 4.936639, 16.55),
    mode("128APSK 3/4", 5.163248, 17.73),
    mode("128APSK 7/9", 5.355556, 18.53),
    mode("256APSK 29/45-L", 5.065690, 16.98),
    mode("256APSK 2/3-L", 5.241514, 17.24),
    mode("256APSK 31/45-L", 5.417338, 18.10),
    mode("256APSK 32/45", 5.593162, 18.59),
    mode("256APSK 11/15-L", 5.768987, 18.84),
    mode("256APSK 3/4", 5.900855, 19.57),
];

/// Adaptive coding and modulation of a direction.
#[derive(Clone, PartialEq, Debug)]
pub struct Acm {
    /// The modes that it may use.
    pub modes: Vec<Mode>,
    /// Symbols per second.
    pub symbol_rate: u64,
    /// Es/N0 in clear sky, in dB.
    pub clear_sky_db: f64,
    /// Margin above each threshold, in dB.
    pub margin_db: f64,
    /// Additional Es/N0 for changing to a more efficient mode, in dB.
    pub hysteresis_db: f64,
    /// Changes of mode: the time since the start of the run or of the current period, and the index
    /// of the mode in `modes`, or `None` for an outage. Before the first change, the mode is that
    /// in clear sky.
    pub course: Vec<(Span, Option<usize>)>,
}

impl Acm {
    /// Returns the mode that follows `mode` at this Es/N0, or `None` if no mode works.
    ///
    /// If the Es/N0 falls below the threshold and margin of a mode, the most efficient mode that
    /// still has both follows. Changing to a more efficient mode, or to any mode after an outage,
    /// requires the hysteresis in addition.
    fn next(&self, mode: Option<usize>, es_n0_db: f64) -> Option<usize> {
        let current = mode.filter(|mode| self.works(*mode, es_n0_db, 0.0));
        let to_more_robust = mode.is_some() && current.is_none();
        let more_db = if to_more_robust {
            0.0
        } else {
            self.hysteresis_db
        };
        let may_follow = |candidate: &usize| {
            let efficiency = self.modes[*candidate].efficiency;
            current.is_none_or(|current| efficiency > self.modes[current].efficiency)
                && self.works(*candidate, es_n0_db, more_db)
        };
        let best = (0..self.modes.len())
            .filter(may_follow)
            .max_by(|one, other| {
                let (one, other) = (&self.modes[*one], &self.modes[*other]);
                let efficiency = one.efficiency.total_cmp(&other.efficiency);
                efficiency.then(other.threshold_db.total_cmp(&one.threshold_db))
            });
        best.or(current)
    }

    /// Whether the Es/N0 exceeds a mode's threshold and the margin by `more_db`. The comparison
    /// tolerates a millionth of a dB, because sums of decimals are not exact.
    fn works(&self, mode: usize, es_n0_db: f64, more_db: f64) -> bool {
        es_n0_db + 1e-6 >= self.modes[mode].threshold_db + self.margin_db + more_db
    }

    /// Returns the mode in clear sky, with hysteresis, or `None` if no mode works.
    pub(crate) fn in_clear_sky(&self) -> Option<usize> {
        self.next(None, self.clear_sky_db)
    }

    /// Returns the lowest Es/N0 in clear sky, in dB, at which a mode works.
    pub(crate) fn least_clear_sky_db(&self) -> f64 {
        self.modes[self.most_robust()].threshold_db + self.margin_db + self.hysteresis_db
    }

    /// Returns the mode with the lowest threshold.
    fn most_robust(&self) -> usize {
        let by_threshold = |one: &usize, other: &usize| {
            let (one, other) = (&self.modes[*one], &self.modes[*other]);
            one.threshold_db.total_cmp(&other.threshold_db)
        };
        (0..self.modes.len()).min_by(by_threshold).unwrap_or(0)
    }

    /// Returns the rate of a mode in bit/s. In an outage it is the rate of the most robust mode, in
    /// which the modulator continues.
    pub fn rate(&self, mode: Option<usize>) -> u64 {
        let mode = &self.modes[mode.unwrap_or_else(|| self.most_robust())];
        (mode.efficiency * self.symbol_rate as f64 + 0.5) as u64
    }

    /// Computes the changes of mode from the attenuation in dB, beginning in clear sky.
    pub(crate) fn follow(&mut self, attenuation: &[(Span, f64)]) {
        let mut mode = self.in_clear_sky();
        for (at, attenuation_db) in attenuation {
            let next = self.next(mode, self.clear_sky_db - attenuation_db);
            if next != mode || self.course.is_empty() {
                self.course.push((*at, next));
            }
            mode = next;
        }
    }

    /// Returns the outages: start and end, or `None` for an outage without an end.
    pub(crate) fn away(&self) -> impl Iterator<Item = (Span, Option<Span>)> {
        let ends = self.course.iter().skip(1).map(|(at, _)| Some(*at));
        let steps = self.course.iter().zip(ends.chain([None]));
        steps.filter_map(|((at, mode), end)| mode.is_none().then_some((*at, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acm(modes: &[Mode], margin_db: f64, hysteresis_db: f64) -> Acm {
        Acm {
            modes: modes.to_vec(),
            symbol_rate: 10_000_000,
            clear_sky_db: 20.0,
            margin_db,
            hysteresis_db,
            course: Vec::new(),
        }
    }

    /// Returns the payload bits of a baseband frame (Kbch, EN 302 307-1 table 5a and EN 302 307-2)
    /// for the code rate in a mode's name.
    fn payload(name: &str) -> Option<f64> {
        let rate = name.split(' ').nth(1)?;
        let is_linear = rate.ends_with("-L");
        let (numerator, denominator) = rate.trim_end_matches("-L").split_once('/')?;
        let (numerator, denominator): (f64, f64) =
            (numerator.parse().ok()?, denominator.parse().ok()?);
        let coded = 64_800.0 * numerator / denominator;
        // DVB-S2's codes correct 12 errors; at 2/3 and 5/6 they correct 10, and at 8/9 and 9/10
        // they correct 8. All codes of DVB-S2X correct 12. DVB-S2X's 32APSK 2/3-L and 64APSK 5/6
        // use DVB-S2's codes. Each error takes 16 bits.
        let is_s2 = DVB_S2.iter().any(|mode| mode.name == name);
        let errors = match rate {
            "2/3" | "5/6" if is_s2 || name == "64APSK 5/6" => 10.0,
            "2/3-L" if name == "32APSK 2/3-L" && is_linear => 10.0,
            "8/9" | "9/10" => 8.0,
            _ => 12.0,
        };
        Some(coded - 16.0 * errors)
    }

    #[test]
    fn efficiencies_follow_from_the_frames() {
        // (Kbch - 80) bits in 64,800 / bits symbols and a header of 90 (EN 302 307-1 section 5.5).
        for mode in DVB_S2.iter().chain(&DVB_S2X) {
            let bits = match mode.name.split(' ').next() {
                Some("QPSK") => 2.0,
                Some("8PSK" | "8APSK") => 3.0,
                Some("16APSK") => 4.0,
                Some("32APSK") => 5.0,
                Some("64APSK") => 6.0,
                Some("128APSK") => 7.0,
                Some("256APSK") => 8.0,
                other => panic!("{other:?}"),
            };
            // A frame's symbols fill slots of 90: with 7 bits per symbol the last slot is padded.
            let symbols = f64::ceil(64_800.0 / bits / 90.0) * 90.0 + 90.0;
            let expected = (payload(mode.name).expect("a rate") - 80.0) / symbols;
            assert!(
                (mode.efficiency - expected).abs() < 2e-6,
                "{} {expected}",
                mode.name
            );
        }
    }

    #[test]
    fn each_mode_begins_at_its_threshold_and_margin() {
        let acm = acm(&DVB_S2, 1.0, 0.0);
        for (es_n0_db, name) in [
            (-1.36, None),
            (-1.35, Some("QPSK 1/4")),
            (-0.25, Some("QPSK 1/4")),
            (-0.24, Some("QPSK 1/3")),
            // 8PSK 3/5 has a lower threshold than QPSK 8/9, and a higher efficiency.
            (7.4, Some("8PSK 3/5")),
            (30.0, Some("32APSK 9/10")),
        ] {
            let found = acm.next(None, es_n0_db).map(|mode| acm.modes[mode].name);
            assert_eq!(found, name, "{es_n0_db}");
        }
    }

    #[test]
    fn hysteresis_applies_to_more_efficient_modes_only() {
        let acm = acm(&DVB_S2, 0.0, 0.5);
        let name = |mode: Option<usize>| mode.map(|mode| acm.modes[mode].name);
        let after = |steps: &[f64]| {
            let mut mode = Some(0);
            for es_n0_db in steps {
                mode = acm.next(mode, *es_n0_db);
            }
            name(mode)
        };
        // QPSK 1/2 works from 1.0 dB: the link changes to it at 1.5 dB, and from it below 1.0 dB.
        assert_eq!(after(&[1.4]), Some("QPSK 2/5"));
        assert_eq!(after(&[1.5]), Some("QPSK 1/2"));
        assert_eq!(after(&[1.5, 1.0]), Some("QPSK 1/2"));
        assert_eq!(after(&[1.5, 0.99]), Some("QPSK 2/5"));
        // The outage begins below -2.35 dB and ends at -1.85 dB.
        assert_eq!(after(&[-2.36]), None);
        assert_eq!(after(&[-2.36, -1.86]), None);
        assert_eq!(after(&[-2.36, -1.85]), Some("QPSK 1/4"));
        // In clear sky the mode does not depend on the previous modes.
        let clear = acm.in_clear_sky();
        for start in (0..acm.modes.len()).map(Some).chain([None]) {
            assert_eq!(acm.next(start, acm.clear_sky_db), clear);
        }
    }
}
