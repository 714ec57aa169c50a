//! Whether a run can have bit errors at all: the first wrong bit may come after everything a link
//! can send.

use bentpipe_types::Span;

use crate::link::errors::error_model;
use crate::link::settings::{Direction, Link, RandomErrors};
use crate::scenario::settings::Scenario;

impl Scenario {
    /// Whether a packet may be lost to errors. It is false if links have no errors. It is also
    /// false if the first wrong bit, drawn with the scenario's seed, comes after everything that
    /// the link can send before the run ends. In case of doubt it is true.
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
    let sure = error_model(direction, component, seed).map_or(u64::MAX, |model| model.sure_bits());
    // One percent more, because transmission times are rounded to whole nanoseconds.
    let most = direction.rate.bits_per_second() as f64 * duration.as_secs_f64() * 1.01;
    most >= sure as f64
}
