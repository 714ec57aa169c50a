//! Detects times in which the process did not run although the wall clock advanced.

use std::time::Duration;

use bentpipe_types::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// Shortest interruption that is reported. Hosts and the other gateway hardly notice shorter ones.
const MIN_REPORTED: Span = Span::from_secs(1);

/// Returns how long this machine has been suspended since its start: CLOCK_BOOTTIME less
/// CLOCK_MONOTONIC. The latter, which the engine and the kernel's TCP use, stops during suspension.
pub(super) fn time_suspended() -> Span {
    let of = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    let awake = of(ClockId::CLOCK_MONOTONIC);
    let all = of(ClockId::CLOCK_BOOTTIME);
    Span::from_nanos(u64::try_from(all.saturating_sub(awake).as_nanos()).unwrap_or(0))
}

/// Time of the last check, by both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InterruptionDetector {
    last: Option<(Time, Span)>,
}

impl InterruptionDetector {
    /// Returns a message if the process did not run for a long time. Called many times a second.
    pub(super) fn check(&mut self, now: Time, suspended: Span) -> Option<String> {
        let (before, suspended_before) = self.last.replace((now, suspended))?;
        let suspension = Span::from_nanos(
            suspended
                .as_nanos()
                .saturating_sub(suspended_before.as_nanos()),
        );
        let interruption = now.since(before);
        if suspension >= MIN_REPORTED {
            let seconds = suspension.as_secs_f64();
            return Some(format!(
                "the machine was suspended for {seconds:.1} s: connections through it may have timed out"
            ));
        }
        (interruption >= MIN_REPORTED).then(|| {
            let seconds = interruption.as_secs_f64();
            format!(
                "the process did not run for {seconds:.1} s: it was stopped, or had no processor"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_reported_once_with_their_cause() {
        let mut detector = InterruptionDetector::default();
        let mut check = |now, suspended| {
            let message = detector.check(Time::from_nanos(now), Span::from_millis(suspended));
            message.unwrap_or_default()
        };
        // The first call reports nothing, however long ago the machine was started.
        assert_eq!(check(5_000_000_000, 100_000), "");
        assert_eq!(check(5_500_000_000, 100_000), "");
        assert!(check(8_500_000_000, 100_000).starts_with("the process did not run for 3.0 s"));
        assert_eq!(check(8_502_000_000, 100_000), "");
        // The two clocks are not read at the same instant.
        assert_eq!(check(8_504_000_000, 99_999), "");
        assert!(
            check(8_506_000_000, 3_700_000).starts_with("the machine was suspended for 3600.0 s")
        );
        assert_eq!(check(8_508_000_000, 3_700_000), "");
    }
}
