//! Whether errors so seldom come to anything: the first bit that goes wrong may lie beyond all that a link can carry.

use bentpipe_types::Span;

use super::direction::random_errors;
use crate::{Direction, Link, RandomErrors, Scenario};

impl Scenario {
    /// May a packet be lost to errors? Not on links without any, nor where the first wrong bit, as it is drawn with the
    /// scenario's seed, comes after all that the link can send before the run ends. What cannot be said is answered by yes.
    #[must_use]
    pub fn may_meet_errors(&self) -> bool {
        self.links.iter().any(|link| {
            link.directions().any(|(way, direction)| {
                let component = format!("{}.{way}", link.name);
                reaches_errors(link, direction, &component, self.seed, self.duration)
            })
        })
    }
}

fn reaches_errors(
    link: &Link,
    direction: &Direction,
    component: &str,
    seed: u64,
    duration: Span,
) -> bool {
    if !direction.errors.lost_packets.is_empty() {
        return true;
    }
    let RandomErrors::BitErrorRate(rate) = direction.errors.random else {
        return direction.errors.random != RandomErrors::None;
    };
    if link.broadcast || direction.changes.is_some() {
        return rate > 0.0;
    }
    let sure =
        random_errors(direction, component, seed).map_or(u64::MAX, |model| model.sure_bits());
    // (A hundredth more: how long a packet takes is rounded to whole nanoseconds.)
    let most = direction.rate.bits_per_second() as f64 * duration.as_secs_f64() * 1.01;
    most >= sure as f64
}
