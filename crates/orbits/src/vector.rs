//! Vectors in three dimensions.

use std::ops::{Add, Mul, Sub};

/// A vector in metres or metres per second, in axes that rotate with the Earth: `x` through the
/// equator at longitude 0, `z` through the north pole.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Vector {
    /// Component through longitude 0 on the equator.
    pub x: f64,
    /// Component through longitude 90 degrees east on the equator.
    pub y: f64,
    /// Component through the north pole.
    pub z: f64,
}

impl Vector {
    /// Creates a vector.
    #[must_use]
    pub const fn new(x: f64, y: f64, z: f64) -> Self {
        Self { x, y, z }
    }

    /// Returns the scalar product.
    #[must_use]
    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// Returns the length.
    #[must_use]
    pub fn norm(self) -> f64 {
        libm::sqrt(self.dot(self))
    }

    /// Returns the distance between two points.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        (self - other).norm()
    }
}

impl Add for Vector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y, self.z + other.z)
    }
}

impl Sub for Vector {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y, self.z - other.z)
    }
}

impl Mul<f64> for Vector {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self::new(self.x * factor, self.y * factor, self.z * factor)
    }
}
