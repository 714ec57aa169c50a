//! Shells of satellites in circular orbits (Walker patterns).

/// Spacing of the orbital planes around the equator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Over 360 degrees: all planes are crossed by northbound and by southbound satellites.
    Delta,
    /// Over 180 degrees: neighbouring planes move in the same direction, but for the seam.
    Star,
}

/// A shell of circular orbits with the same altitude and inclination.
#[derive(Clone, PartialEq, Debug)]
pub struct Shell {
    /// Metres above the equatorial radius.
    pub altitude: f64,
    /// Degrees.
    pub inclination: f64,
    /// Number of planes.
    pub planes: usize,
    /// Number of satellites in a plane, equally spaced.
    pub satellites_per_plane: usize,
    /// Walker's phasing F: a satellite is `360 F / T` degrees ahead of its neighbour in the plane
    /// to the west, with T satellites in all.
    pub phasing: usize,
    /// Spacing of the planes.
    pub pattern: Pattern,
    /// Longitude at which the first plane crosses the equator northbound at the start, in degrees.
    pub ascending_node: f64,
    /// Angle of the first satellite from there along its orbit at the start, in degrees.
    pub phase: f64,
}

impl Shell {
    /// Returns the number of satellites.
    #[must_use]
    pub fn satellites(&self) -> usize {
        self.planes.saturating_mul(self.satellites_per_plane)
    }

    /// Returns the longitude of a plane's ascending node in degrees, at the start.
    #[must_use]
    pub(crate) fn node(&self, plane: usize) -> f64 {
        let around = match self.pattern {
            Pattern::Delta => 360.0,
            Pattern::Star => 180.0,
        };
        self.ascending_node + around * plane as f64 / self.planes as f64
    }

    /// Returns a satellite's angle from the ascending node in degrees, at the start.
    #[must_use]
    pub(crate) fn angle(&self, plane: usize, satellite: usize) -> f64 {
        let spacing = 360.0 / self.satellites_per_plane as f64;
        let shift = self.phasing as f64 * plane as f64 / self.planes as f64;
        self.phase + spacing * (satellite as f64 + shift)
    }
}
