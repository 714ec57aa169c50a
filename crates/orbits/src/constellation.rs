//! Constellations: where their satellites are.

use std::f64::consts::TAU;

use crate::earth::{EQUATORIAL_RADIUS, GRAVITATION, J2, ROTATION, radians};
use crate::elements::ElementSet;
use crate::error::OrbitError;
use crate::instant::Instant;
use crate::mesh::Mesh;
use crate::shell::Shell;
use crate::vector::Vector;

/// A satellite.
#[derive(Clone, Debug)]
pub struct Satellite {
    /// Its name: that of the file, or plane and place in it ("12-3").
    pub name: String,
    /// Catalogue number, if it is from a file.
    pub number: Option<u64>,
    motion: Motion,
    /// Greatest distance from the Earth's centre in metres.
    pub(crate) farthest: f64,
    /// Greatest angular rate as seen from the rotating Earth's centre, in rad/s.
    pub(crate) fastest: f64,
}

#[derive(Clone, Debug)]
enum Motion {
    /// A circular orbit, in closed form.
    Circle(Circle),
    /// Mean elements, propagated with SGP4 and the constants of WGS 72, from which the elements are
    /// made. The time is that from the epoch to the start.
    Elements {
        constants: Box<sgp4::Constants>,
        minutes_at_start: f64,
        sidereal_at_start: f64,
    },
    /// A point that moves with the Earth: a geostationary satellite.
    Fixed(Vector),
}

/// A circular orbit with the secular effects of the Earth's flattening.
#[derive(Clone, Copy, Debug)]
struct Circle {
    radius: f64,
    sin_inclination: f64,
    cos_inclination: f64,
    /// Longitude of the ascending node at the start, and its rate: radians.
    node: f64,
    node_rate: f64,
    /// Angle from the node at the start, and its rate: radians.
    angle: f64,
    angle_rate: f64,
}

impl Circle {
    fn position(&self, seconds: f64) -> Vector {
        let (sin_node, cos_node) = libm::sincos(self.node + self.node_rate * seconds);
        let (sin_angle, cos_angle) = libm::sincos(self.angle + self.angle_rate * seconds);
        let across = sin_angle * self.cos_inclination;
        Vector::new(
            self.radius * (cos_node * cos_angle - sin_node * across),
            self.radius * (sin_node * cos_angle + cos_node * across),
            self.radius * sin_angle * self.sin_inclination,
        )
    }
}

/// Satellites of one system.
#[derive(Clone, Debug)]
pub struct Constellation {
    /// The satellites, in the order of the file, or plane by plane.
    pub satellites: Vec<Satellite>,
    /// Links between the satellites of a shell with at least three planes of three satellites.
    pub mesh: Option<Mesh>,
    /// The instant at which a run starts, if the satellites are from a file.
    pub start: Option<Instant>,
}

/// Radius of a geostationary orbit: one sidereal rotation per revolution.
fn geostationary_radius() -> f64 {
    libm::cbrt(GRAVITATION / (ROTATION * ROTATION))
}

impl Constellation {
    /// Returns the satellites of a shell. They move on circles, whose planes and phases drift as
    /// the Earth's flattening makes them (the secular terms of J2; Vallado 2013, section 9.6).
    ///
    /// # Errors
    /// The shell has no satellites or too many, or its orbit would meet the Earth.
    pub fn of_shell(shell: &Shell) -> Result<Self, OrbitError> {
        let most = crate::elements::MOST_SATELLITES;
        if !(1..=most).contains(&shell.satellites()) {
            let got = shell.satellites();
            return Err(OrbitError::new(format!(
                "expected 1 to {most} satellites, got {got}"
            )));
        }
        let radius = EQUATORIAL_RADIUS + shell.altitude;
        if shell.altitude < 100e3 {
            return Err(OrbitError::new("expected an altitude of 100 km or more"));
        }
        let (sin_inclination, cos_inclination) = libm::sincos(radians(shell.inclination));
        let motion = libm::sqrt(GRAVITATION / (radius * radius * radius));
        let flattened =
            1.5 * J2 * motion * (EQUATORIAL_RADIUS / radius) * (EQUATORIAL_RADIUS / radius);
        let squared = sin_inclination * sin_inclination;
        let node_rate = -flattened * cos_inclination - ROTATION;
        // Mean anomaly and argument of perigee together.
        let angle_rate = motion + flattened * ((2.0 - 2.5 * squared) + (1.0 - 1.5 * squared));
        let mut satellites = Vec::with_capacity(shell.satellites());
        for plane in 0..shell.planes {
            for place in 0..shell.satellites_per_plane {
                let circle = Circle {
                    radius,
                    sin_inclination,
                    cos_inclination,
                    node: radians(shell.node(plane)),
                    node_rate,
                    angle: radians(shell.angle(plane, place) % 360.0),
                    angle_rate,
                };
                satellites.push(Satellite {
                    name: format!("{plane}-{place}"),
                    number: None,
                    motion: Motion::Circle(circle),
                    farthest: radius,
                    fastest: angle_rate.abs() + node_rate.abs(),
                });
            }
        }
        Ok(Self {
            satellites,
            mesh: Mesh::of_shell(shell),
            start: None,
        })
    }

    /// Returns geostationary satellites at longitudes in degrees. They stay exactly there.
    #[must_use]
    pub fn geostationary(longitudes: &[f64]) -> Self {
        let radius = geostationary_radius();
        let satellites = longitudes.iter().map(|longitude| {
            let (sine, cosine) = libm::sincos(radians(*longitude));
            Satellite {
                name: format!("{longitude} deg"),
                number: None,
                motion: Motion::Fixed(Vector::new(radius * cosine, radius * sine, 0.0)),
                farthest: radius,
                fastest: 0.0,
            }
        });
        Self {
            satellites: satellites.collect(),
            mesh: None,
            start: None,
        }
    }

    /// Returns satellites from element sets, for a run that starts at `start`; by default at the
    /// newest epoch.
    ///
    /// # Errors
    /// There is none, or none has an orbit.
    pub fn of_elements(sets: &[ElementSet], start: Option<Instant>) -> Result<Self, OrbitError> {
        let newest = sets.iter().map(ElementSet::epoch).max();
        let Some(start) = start.or(newest) else {
            return Err(OrbitError::new("expected element sets, got none"));
        };
        let mut satellites = Vec::with_capacity(sets.len());
        for set in sets {
            let constants = sgp4::Constants::from_elements_afspc_compatibility_mode(&set.elements)
                .map_err(|error| OrbitError::at(set.line, format!("no orbit: {error}")))?;
            // Perigee and apogee of the mean elements, with room for periodic terms.
            let per_second = set.elements.mean_motion * TAU / 86_400.0;
            let axis = libm::cbrt(GRAVITATION / (per_second * per_second));
            let eccentricity = set.elements.eccentricity;
            let closest = (axis * (1.0 - eccentricity) - 50e3).max(EQUATORIAL_RADIUS);
            let at_perigee = libm::sqrt(GRAVITATION * (1.0 + eccentricity) / closest) / closest;
            satellites.push(Satellite {
                name: set.name().to_owned(),
                number: Some(set.elements.norad_id),
                motion: Motion::Elements {
                    constants: Box::new(constants),
                    minutes_at_start: start.seconds_since(set.epoch()) / 60.0,
                    sidereal_at_start: start.sidereal_angle(),
                },
                farthest: axis * (1.0 + eccentricity) + 50e3,
                fastest: at_perigee * 1.01 + ROTATION,
            });
        }
        Ok(Self {
            satellites,
            mesh: None,
            start: Some(start),
        })
    }

    /// Returns the position of a satellite in metres, or `None` if it has decayed by then.
    #[must_use]
    pub fn position(&self, satellite: usize, seconds: f64) -> Option<Vector> {
        match &self.satellites[satellite].motion {
            Motion::Circle(circle) => Some(circle.position(seconds)),
            Motion::Fixed(position) => Some(*position),
            Motion::Elements {
                constants,
                minutes_at_start,
                sidereal_at_start,
            } => {
                let minutes = minutes_at_start + seconds / 60.0;
                let state = constants
                    .propagate_afspc_compatibility_mode(sgp4::MinutesSinceEpoch(minutes))
                    .ok()?;
                let [x, y, z] = state.position.map(|kilometres| kilometres * 1e3);
                let (sine, cosine) = libm::sincos(sidereal_at_start + ROTATION * seconds);
                let turned = Vector::new(x * cosine + y * sine, y * cosine - x * sine, z);
                // SGP4 gives no error for many orbits that have met the ground.
                if !(EQUATORIAL_RADIUS..1e9).contains(&turned.norm()) {
                    return None;
                }
                // Trigonometric functions differ between machines in their last bits if a build
                // links SGP4 to the system's. Whole metres, 3 ns of delay, hide that.
                let whole = |metres: f64| libm::round(metres);
                Some(Vector::new(
                    whole(turned.x),
                    whole(turned.y),
                    whole(turned.z),
                ))
            }
        }
    }

    /// Returns how far the epochs of the element sets are from the start: the least and greatest
    /// age in days, negative if the start is before the epoch.
    #[must_use]
    pub fn ages_days(&self) -> Option<[f64; 2]> {
        let ages = self.satellites.iter().filter_map(|of| match of.motion {
            Motion::Elements {
                minutes_at_start, ..
            } => Some(minutes_at_start / 1440.0),
            _ => None,
        });
        ages.fold(None, |range, age| match range {
            None => Some([age, age]),
            Some([least, most]) => Some([f64::min(least, age), f64::max(most, age)]),
        })
    }

    /// Returns the satellites that have decayed by the start.
    #[must_use]
    pub fn decayed(&self) -> Vec<usize> {
        let all = 0..self.satellites.len();
        all.filter(|index| self.position(*index, 0.0).is_none())
            .collect()
    }
}
