//! The Earth: its shape, its rotation, and directions as seen from a point on it.

use std::f64::consts::{PI, TAU};

use crate::vector::Vector;

/// Equatorial radius in metres (WGS 84, NIMA TR8350.2, table 3.1).
pub const EQUATORIAL_RADIUS: f64 = 6_378_137.0;

/// Flattening (WGS 84, NIMA TR8350.2, table 3.1).
pub(crate) const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// Gravitational constant times mass in m^3/s^2 (WGS 84, NIMA TR8350.2, table 3.1).
pub(crate) const GRAVITATION: f64 = 3.986_004_418e14;

/// Second zonal harmonic of the gravity field (EGM96).
pub(crate) const J2: f64 = 1.082_626_68e-3;

/// Speed of light in vacuum in m/s.
pub const LIGHT: f64 = 299_792_458.0;

/// Sidereal rotations in a day of universal time (Aoki et al. 1982).
const ROTATIONS_PER_DAY: f64 = 1.002_737_909_350_795;

/// Rate of the sidereal angle in radians per second.
pub(crate) const ROTATION: f64 = ROTATIONS_PER_DAY * TAU / 86_400.0;

/// Converts degrees to radians.
#[must_use]
pub fn radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}

/// Converts radians to degrees.
#[must_use]
pub fn degrees(radians: f64) -> f64 {
    radians * (180.0 / PI)
}

/// A point above the WGS 84 ellipsoid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Geodetic {
    /// Degrees north, from -90 to 90.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Metres above the ellipsoid.
    pub height: f64,
}

/// A point with its local vertical.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ground {
    /// Position in metres.
    pub position: Vector,
    up: Vector,
    east: Vector,
    north: Vector,
}

/// Direction and distance from a point on the ground.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Look {
    /// Degrees above the horizontal plane.
    pub elevation: f64,
    /// Degrees clockwise from north, from 0 to 360.
    pub azimuth: f64,
    /// Distance in metres.
    pub range: f64,
}

impl Geodetic {
    /// Returns the point with its local vertical.
    #[must_use]
    pub fn ground(self) -> Ground {
        let (sin_latitude, cos_latitude) = libm::sincos(radians(self.latitude));
        let (sin_longitude, cos_longitude) = libm::sincos(radians(self.longitude));
        let squared_eccentricity = FLATTENING * (2.0 - FLATTENING);
        let curvature = EQUATORIAL_RADIUS
            / libm::sqrt(1.0 - squared_eccentricity * sin_latitude * sin_latitude);
        let across = (curvature + self.height) * cos_latitude;
        Ground {
            position: Vector::new(
                across * cos_longitude,
                across * sin_longitude,
                (curvature * (1.0 - squared_eccentricity) + self.height) * sin_latitude,
            ),
            up: Vector::new(
                cos_latitude * cos_longitude,
                cos_latitude * sin_longitude,
                sin_latitude,
            ),
            east: Vector::new(-sin_longitude, cos_longitude, 0.0),
            north: Vector::new(
                -sin_latitude * cos_longitude,
                -sin_latitude * sin_longitude,
                cos_latitude,
            ),
        }
    }

    /// Returns the great-circle distance to another point in metres, on a sphere of the Earth's
    /// mean radius.
    #[must_use]
    pub fn surface_distance(self, other: Self) -> f64 {
        const MEAN_RADIUS: f64 = 6_371_008.8;
        let half = |one: f64, other: f64| {
            let sine = libm::sin(radians(one - other) / 2.0);
            sine * sine
        };
        let cosines = libm::cos(radians(self.latitude)) * libm::cos(radians(other.latitude));
        let haversine =
            half(self.latitude, other.latitude) + cosines * half(self.longitude, other.longitude);
        2.0 * MEAN_RADIUS * libm::asin(libm::sqrt(haversine.min(1.0)))
    }
}

impl Ground {
    /// Returns the sine of the elevation of a point, which orders points as the elevation does.
    #[must_use]
    pub fn sine_of_elevation(&self, point: Vector) -> f64 {
        let towards = point - self.position;
        towards.dot(self.up) / towards.norm()
    }

    /// Returns direction and distance of a point.
    #[must_use]
    pub fn look(&self, point: Vector) -> Look {
        let towards = point - self.position;
        let range = towards.norm();
        let sine = (towards.dot(self.up) / range).clamp(-1.0, 1.0);
        let azimuth = libm::atan2(towards.dot(self.east), towards.dot(self.north));
        Look {
            elevation: degrees(libm::asin(sine)),
            azimuth: degrees(if azimuth < 0.0 {
                azimuth + TAU
            } else {
                azimuth
            }),
            range,
        }
    }
}

/// Returns the geodetic latitude and longitude in degrees below a point, and its height in metres
/// above the ellipsoid (Bowring 1985, one step: better than a centimetre up to geostationary
/// heights).
#[must_use]
pub fn geodetic(point: Vector) -> Geodetic {
    let squared_eccentricity = FLATTENING * (2.0 - FLATTENING);
    let polar_radius = EQUATORIAL_RADIUS * (1.0 - FLATTENING);
    let across = libm::hypot(point.x, point.y);
    let distance = point.norm();
    let second = squared_eccentricity / (1.0 - squared_eccentricity);
    let reduced = libm::atan2(
        polar_radius * point.z * (1.0 + second * polar_radius / distance),
        EQUATORIAL_RADIUS * across,
    );
    let (sine, cosine) = libm::sincos(reduced);
    let latitude = libm::atan2(
        point.z + second * polar_radius * sine * sine * sine,
        across - squared_eccentricity * EQUATORIAL_RADIUS * cosine * cosine * cosine,
    );
    let (sine, cosine) = libm::sincos(latitude);
    let root = libm::sqrt(1.0 - squared_eccentricity * sine * sine);
    Geodetic {
        latitude: degrees(latitude),
        longitude: degrees(libm::atan2(point.y, point.x)),
        height: across * cosine + point.z * sine - EQUATORIAL_RADIUS * root,
    }
}

/// Returns the largest angle at the Earth's centre, in radians, between a site at `radius` metres
/// and a satellite at `orbit` metres from the centre that is at least `elevation` radians above the
/// horizon.
#[must_use]
pub fn coverage_angle(radius: f64, orbit: f64, elevation: f64) -> f64 {
    let cosine = (radius / orbit * libm::cos(elevation)).min(1.0);
    (libm::acos(cosine) - elevation).max(0.0)
}

/// Returns the distance in metres to a satellite at `orbit` metres from the centre of a spherical
/// Earth, seen at `elevation` radians from `radius` metres.
#[must_use]
pub fn slant_range(radius: f64, orbit: f64, elevation: f64) -> f64 {
    let (sine, cosine) = libm::sincos(elevation);
    let across = radius * cosine;
    libm::sqrt(orbit * orbit - across * across) - radius * sine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_the_ellipsoid() {
        let at = |latitude, longitude, height| {
            let place = Geodetic {
                latitude,
                longitude,
                height,
            };
            place.ground().position
        };
        assert!(at(0.0, 0.0, 0.0).distance(Vector::new(6_378_137.0, 0.0, 0.0)) < 1e-6);
        // The polar radius of WGS 84.
        assert!(at(90.0, 17.0, 10.0).distance(Vector::new(0.0, 0.0, 6_356_762.314_2)) < 1e-3);
        // Vallado 2013, example 3-3: 34.352496 N, 46.4464 E, 5085.22 km.
        let back = geodetic(Vector::new(6_524_834.0, 6_862_875.0, 6_448_296.0));
        assert!((back.latitude - 34.352_496).abs() < 1e-6, "{back:?}");
        assert!((back.longitude - 46.446_4).abs() < 1e-4, "{back:?}");
        assert!((back.height - 5_085_220.0).abs() < 10.0, "{back:?}");
        for (latitude, longitude) in [(-90.0, 0.0), (-33.9, 151.2), (0.1, 180.0), (78.2, -15.6)] {
            let back = geodetic(at(latitude, longitude, 550e3));
            assert!((back.latitude - latitude).abs() < 1e-9, "{back:?}");
            assert!((back.height - 550e3).abs() < 0.01, "{back:?}");
        }
    }

    #[test]
    fn a_look_along_the_axes() {
        let site = Geodetic {
            latitude: 0.0,
            longitude: 0.0,
            height: 0.0,
        };
        let site = site.ground();
        let above = site.look(site.position + Vector::new(1000.0, 0.0, 0.0));
        assert!((above.elevation - 90.0).abs() < 1e-9 && (above.range - 1000.0).abs() < 1e-6);
        let east = site.look(site.position + Vector::new(0.0, 5.0, 0.0));
        assert!(east.elevation.abs() < 1e-9 && (east.azimuth - 90.0).abs() < 1e-9);
        let south = site.look(site.position + Vector::new(5.0, 0.0, -5.0));
        assert!((south.elevation - 45.0).abs() < 1e-9 && (south.azimuth - 180.0).abs() < 1e-9);
    }

    #[test]
    fn the_slant_range_meets_the_coverage_angle() {
        // Law of cosines from the angle that the coverage formula gives.
        let (radius, orbit) = (6_371e3, 6_921e3);
        for elevation in [0.0, 0.2, 0.436, 1.0, 1.5] {
            let angle = coverage_angle(radius, orbit, elevation);
            let squared = radius * radius + orbit * orbit - 2.0 * radius * orbit * libm::cos(angle);
            let range = slant_range(radius, orbit, elevation);
            assert!((range - libm::sqrt(squared)).abs() < 1e-3, "{elevation}");
        }
        // 550 km at 25 degrees, by hand: sqrt(6921^2 - 5774.1^2) - 2692.5 = 1123.4 km.
        let range = slant_range(radius, orbit, radians(25.0));
        assert!((range - 1.1232e6).abs() < 1e3, "{range}");
    }

    #[test]
    fn distance_between_cities() {
        let place = |latitude, longitude| Geodetic {
            latitude,
            longitude,
            height: 0.0,
        };
        let quarter = place(0.0, 170.0).surface_distance(place(0.0, -100.0));
        assert!((quarter - 6_371_008.8 * PI / 2.0).abs() < 1.0, "{quarter}");
    }
}
