//! Orbits: from satellites and sites to the paths between them, over time.
//!
//! * [`Constellation`]: satellites from a [`Shell`], from element sets (TLE or OMM), or at a
//!   geostationary longitude; [`presets`] has published ones.
//! * [`Site`]: a fixed or moving place, its least elevation and its mask.
//! * [`Timeline`]: the satellites, the length and the gaps of a path between two sites.
//! * [`passes`]: when satellites are in sight of a site.
//!
//! Times are seconds since the start of a run, lengths are metres, angles are degrees. Nothing
//! reads a clock or a file.
//!
//! ```
//! use bentpipe_orbits::{Constellation, Geodetic, PathRequest, Site, presets, timeline};
//!
//! let preset = presets::find("starlink-shell-1").expect("a preset");
//! let shell = Constellation::of_shell(&preset.shell)?;
//! let site = |latitude, longitude| {
//!     let place = Geodetic { latitude, longitude, height: 0.0 };
//!     Site::fixed("site", place, 25.0)
//! };
//! let [office, gateway] = [site(52.5, 13.4), site(50.1, 8.7)];
//! let path = timeline(&PathRequest::bent_pipe(&shell, &office, &[&gateway], 600.0))?;
//! let delay_ms = path.stretches[0].samples[0].delay_s() * 1e3;
//! // Up and down again: at least twice 550 km.
//! assert!((3.67..8.0).contains(&delay_ms), "{delay_ms}");
//! # Ok::<(), bentpipe_orbits::OrbitError>(())
//! ```

mod constellation;
mod earth;
mod elements;
mod error;
mod instant;
mod mesh;
mod passes;
pub mod presets;
mod shell;
mod site;
mod timeline;
mod vector;

pub use constellation::{Constellation, Satellite};
pub use earth::{
    EQUATORIAL_RADIUS, Geodetic, Ground, LIGHT, Look, coverage_angle, degrees, geodetic, radians,
    slant_range,
};
pub use elements::{ElementSet, MOST_SATELLITES, parse_elements};
pub use error::OrbitError;
pub use instant::Instant;
pub use mesh::Mesh;
pub use passes::{Pass, passes, worst_gap};
pub use shell::{Pattern, Shell};
pub use site::{MaskSector, Site, TrackPoint, parse_track};
pub use timeline::{PathRequest, Route, Routing, Sample, Selection, Stretch, Timeline, timeline};
pub use vector::Vector;
