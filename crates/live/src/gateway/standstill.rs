//! Detects times in which the process did not run although the wall clock advanced.

use std::time::Duration;

use bentpipe_types::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Shortest interruption that is reported. Hosts and the other gateway hardly notice shorter ones.
const LEAST: Span = Span::from_secs(1);

/// Returns how long this machine has been suspended since its start: CLOCK_BOOTTIME less
/// CLOCK_MONOTONIC. The latter, which the engine and the kernel's TCP use, stops during suspension.
pub(super) fn slept() -> Span {
    let of = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    let awake = of(ClockId::CLOCK_MONOTONIC);
    let all = of(ClockId::CLOCK_BOOTTIME);
    Span::from_nanos(u64::try_from(all.saturating_sub(awake).as_nanos()).unwrap_or(0))
}

/// Time of the last check, by both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standstill {
    last: Option<(Time, Span)>,
}

impl Standstill {
    /// Returns a message if the process did not run for a long time. Called many times a second.
    pub(super) fn look(&mut self, now: Time, slept: Span) -> Option<String> {
        let (before, had_slept) = self.last.replace((now, slept))?;
        let lay = Span::from_nanos(slept.as_nanos().saturating_sub(had_slept.as_nanos()));
        let stood = now.since(before);
        if lay >= LEAST {
            let seconds = lay.as_secs_f64();
            return Some(format!(
                "the machine slept for {seconds:.1} s: others may have given up what went through it"
            ));
        }
        (stood >= LEAST).then(|| {
            let seconds = stood.as_secs_f64();
            format!(
                "nothing was done for {seconds:.1} s: the process was stopped, or had no processor"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stood_still_is_told_once_and_why() {
        let mut standstill = Standstill::default();
        let mut look = |now, slept| {
            let said = standstill.look(Time::from_nanos(now), Span::from_millis(slept));
            said.unwrap_or_default()
        };
        // The first call reports nothing, however long ago the machine was started.
        assert_eq!(look(5_000_000_000, 100_000), "");
        assert_eq!(look(5_500_000_000, 100_000), "");
        assert!(look(8_500_000_000, 100_000).starts_with("nothing was done for 3.0 s"));
        assert_eq!(look(8_502_000_000, 100_000), "");
        // The two clocks are not read at the same instant.
        assert_eq!(look(8_504_000_000, 99_999), "");
        assert!(look(8_506_000_000, 3_700_000).starts_with("the machine slept for 3600.0 s"));
        assert_eq!(look(8_508_000_000, 3_700_000), "");
    }
}
