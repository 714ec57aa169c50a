//! Constellations as they were published. A system in orbit differs: for that, read its elements
//! from a file.

use crate::shell::{Pattern, Shell};

/// A published constellation.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// Its name in scenario files.
    pub name: &'static str,
    /// Description.
    pub description: &'static str,
    /// Sources of its figures.
    pub source: &'static str,
    /// The shell.
    pub shell: Shell,
}

const fn shell(
    altitude_km: f64,
    inclination: f64,
    planes: usize,
    satellites_per_plane: usize,
    phasing: usize,
    pattern: Pattern,
) -> Shell {
    Shell {
        altitude: altitude_km * 1e3,
        inclination,
        planes,
        satellites_per_plane,
        phasing,
        pattern,
        ascending_node: 0.0,
        phase: 0.0,
    }
}

/// The presets.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "starlink-shell-1",
        description: "Starlink's first shell: 72 planes of 22 satellites at 550 km, 53 degrees",
        source: "FCC SAT-MOD-20190830-00087; planes half a spacing apart as in Hypatia (IMC 2020)",
        shell: shell(550.0, 53.0, 72, 22, 36, Pattern::Delta),
    },
    Preset {
        name: "kuiper-shell-1",
        description: "Kuiper's first shell: 34 planes of 34 satellites at 630 km, 51.9 degrees",
        source: "FCC SAT-LOA-20190704-00057; planes half a spacing apart as in Hypatia (IMC 2020)",
        shell: shell(630.0, 51.9, 34, 34, 17, Pattern::Delta),
    },
    Preset {
        name: "oneweb",
        description: "OneWeb: 12 planes of 49 satellites at 1,200 km, 87.9 degrees",
        source: "ISRO, launch of 36 OneWeb satellites (12 rings of 49 at 1,200 km); inclination: Bassa et al., A&A 657, 2022, table 1; half a spacing between planes: assumed",
        shell: shell(1_200.0, 87.9, 12, 49, 6, Pattern::Star),
    },
    Preset {
        name: "iridium",
        description: "Iridium: 6 planes of 11 satellites at 780 km, 86.4 degrees",
        source: "Wikipedia, Iridium satellite constellation; half a spacing between planes: assumed",
        shell: shell(780.0, 86.4, 6, 11, 3, Pattern::Star),
    },
    Preset {
        name: "meo-ring",
        description: "A ring of 20 satellites over the equator at 8,062 km, as O3b's",
        source: "Wikipedia, O3b: 8,062 km, 20 satellites planned; equal spacing: assumed",
        shell: shell(8_062.0, 0.0, 1, 20, 0, Pattern::Delta),
    },
];

/// Returns the preset of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
