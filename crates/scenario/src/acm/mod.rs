//! Adaptive coding and modulation: rate and outages of a direction from the attenuation.

pub mod modcod;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
