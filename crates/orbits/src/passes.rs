//! When satellites are in sight of a site.

use crate::constellation::Constellation;
use crate::earth::{coverage_angle, degrees, radians};
use crate::site::Site;
use crate::vector::Vector;

/// The satellites that may be in sight of a site. A satellite is propagated again only once it can
/// have come into sight: its angle to the site shrinks at most at a known rate.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    constellation: &'a Constellation,
    site: &'a Site,
    /// Fastest movement of the site, in rad/s.
    site_rate: f64,
    not_before: Vec<f64>,
}

/// Greatest difference between the geodetic and the geocentric vertical, with some room: degrees.
const VERTICALS: f64 = 0.3;

impl<'a> Watch<'a> {
    pub(crate) fn new(constellation: &'a Constellation, site: &'a Site) -> Self {
        Self {
            constellation,
            site,
            site_rate: site.fastest(),
            not_before: vec![f64::NEG_INFINITY; constellation.satellites.len()],
        }
    }

    /// Calls `each` with every satellite that is in sight at `seconds`. Times never decrease.
    pub(crate) fn in_sight(&mut self, seconds: f64, mut each: impl FnMut(usize, Vector)) {
        let ground = self.site.ground(seconds);
        let radius = ground.position.norm();
        let lowest = radians(self.site.min_elevation - VERTICALS);
        for (index, not_before) in self.not_before.iter_mut().enumerate() {
            if *not_before > seconds {
                continue;
            }
            let Some(position) = self.constellation.position(index, seconds) else {
                // It has decayed.
                *not_before = f64::INFINITY;
                continue;
            };
            if self.site.sees(&ground, position) {
                each(index, position);
                continue;
            }
            let satellite = &self.constellation.satellites[index];
            let cosine = ground.position.dot(position) / (radius * position.norm());
            let angle = libm::acos(cosine.clamp(-1.0, 1.0));
            let to_go = angle - coverage_angle(radius, satellite.farthest, lowest);
            let rate = satellite.fastest + self.site_rate;
            if to_go > 0.0 {
                *not_before = if rate > 0.0 {
                    seconds + to_go / rate
                } else {
                    f64::INFINITY
                };
            }
        }
    }
}

/// A satellite's time in sight of a site.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pass {
    /// Index of the satellite.
    pub satellite: usize,
    /// When it comes into sight, in seconds; the start if it is in sight then.
    pub rises: f64,
    /// When it leaves; the end if it is in sight then.
    pub sets: f64,
    /// Greatest elevation in degrees.
    pub highest: f64,
}

/// Step of the search for passes, in seconds: shorter passes may be missed.
const STEP: f64 = 10.0;

/// Precision of a pass's ends, in seconds.
const PRECISION: f64 = 0.05;

/// Returns the passes over a site within `duration` seconds, in the order in which they begin.
/// Passes shorter than 10 s may be missed.
#[must_use]
pub fn passes(constellation: &Constellation, site: &Site, duration: f64) -> Vec<Pass> {
    let sees = |satellite: usize, seconds: f64| {
        constellation
            .position(satellite, seconds)
            .is_some_and(|position| site.sees(&site.ground(seconds), position))
    };
    // The instant between two times at which visibility changes.
    let change = |satellite: usize, mut before: f64, mut after: f64| {
        let is_up = sees(satellite, before);
        while after - before > PRECISION {
            let middle = f64::midpoint(before, after);
            if sees(satellite, middle) == is_up {
                before = middle;
            } else {
                after = middle;
            }
        }
        f64::midpoint(before, after)
    };
    let elevation = |satellite: usize, seconds: f64| {
        let position = constellation.position(satellite, seconds);
        position.map_or(-1.0, |position| {
            site.ground(seconds).sine_of_elevation(position)
        })
    };
    let mut watch = Watch::new(constellation, site);
    // Passes that have begun, each with the time of its highest elevation so far.
    let mut open: Vec<Option<(Pass, f64)>> = vec![None; constellation.satellites.len()];
    let mut up: Vec<usize> = Vec::new();
    let mut found: Vec<(Pass, f64)> = Vec::new();
    let mut seconds = 0.0;
    let mut step = 0_u32;
    loop {
        let ground = site.ground(seconds);
        let mut now: Vec<usize> = Vec::new();
        watch.in_sight(seconds, |satellite, position| {
            let sine = ground.sine_of_elevation(position);
            now.push(satellite);
            match &mut open[satellite] {
                Some((pass, peak)) => {
                    if sine > pass.highest {
                        (pass.highest, *peak) = (sine, seconds);
                    }
                }
                closed => {
                    let rises = if step == 0 {
                        0.0
                    } else {
                        change(satellite, seconds - STEP, seconds)
                    };
                    let pass = Pass {
                        satellite,
                        rises,
                        sets: duration,
                        highest: sine,
                    };
                    *closed = Some((pass, seconds));
                }
            }
        });
        for satellite in &up {
            if now.binary_search(satellite).is_err()
                && let Some((mut pass, peak)) = open[*satellite].take()
            {
                pass.sets = change(*satellite, seconds - STEP, seconds).min(duration);
                found.push((pass, peak));
            }
        }
        up = now;
        if seconds >= duration {
            break;
        }
        step += 1;
        seconds = f64::from(step) * STEP;
    }
    found.extend(open.into_iter().flatten());
    found.retain(|(pass, _)| pass.rises < duration);
    let mut found: Vec<Pass> = found
        .into_iter()
        .map(|(mut pass, peak)| {
            pass.sets = pass.sets.min(duration);
            // The elevation has one maximum around the highest step.
            let mut from = (peak - STEP).max(pass.rises);
            let mut to = (peak + STEP).min(pass.sets);
            while to - from > PRECISION {
                let [early, late] = [from + (to - from) / 3.0, to - (to - from) / 3.0];
                if elevation(pass.satellite, early) < elevation(pass.satellite, late) {
                    from = early;
                } else {
                    to = late;
                }
            }
            let sine = elevation(pass.satellite, f64::midpoint(from, to)).max(pass.highest);
            pass.highest = degrees(libm::asin(sine.clamp(-1.0, 1.0)));
            pass
        })
        .collect();
    found.sort_by(|one, other| {
        let by_time = one.rises.total_cmp(&other.rises);
        by_time.then(one.satellite.cmp(&other.satellite))
    });
    found
}

/// Returns the longest time without any satellite in sight, and when it begins: `(0, 0)` if there
/// is always one. `passes` are in the order in which they begin.
#[must_use]
pub fn worst_gap(passes: &[Pass], duration: f64) -> (f64, f64) {
    let mut worst = (0.0, 0.0);
    let mut covered = 0.0;
    let end = std::iter::once((duration, duration));
    for (rises, sets) in passes.iter().map(|pass| (pass.rises, pass.sets)).chain(end) {
        if rises - covered > worst.0 {
            worst = (rises - covered, covered);
        }
        covered = f64::max(covered, sets);
    }
    worst
}
