//! A quantity as a function of time.

use std::sync::Arc;

use bentpipe_types::{Span, Time};

/// Values with their start times, from the start of the run, optionally periodic.
///
/// Before the first step there is no value: the direction's own applies.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile<T> {
    steps: Arc<[(Span, T)]>,
    period: Option<Span>,
    ramps: bool,
}

impl<T: Copy> Profile<T> {
    /// Creates a profile. Returns `None` if it is empty, not sorted, or does not end within its
    /// period.
    #[must_use]
    pub fn new(steps: impl Into<Arc<[(Span, T)]>>, period: Option<Span>) -> Option<Self> {
        let steps = steps.into();
        let last = steps.last()?.0;
        let ascends = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = period.is_none_or(|period| period > last && period > Span::ZERO);
        (ascends && fits).then_some(Self {
            steps,
            period,
            ramps: false,
        })
    }

    /// Returns the steps.
    #[must_use]
    pub fn steps(&self) -> &[(Span, T)] {
        &self.steps
    }

    /// Returns the period.
    #[must_use]
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// Whether the value is interpolated linearly between steps.
    #[must_use]
    pub fn ramps(&self) -> bool {
        self.ramps
    }

    /// Returns the start of the period that contains `now`, and the time since then.
    fn round(&self, now: Time) -> (Time, Span) {
        let into = match self.period {
            Some(period) => now.as_nanos() % period.as_nanos(),
            None => now.as_nanos(),
        };
        let began = Time::from_nanos(now.as_nanos() - into);
        (began, Span::from_nanos(into))
    }

    /// Returns the index of the current step, and until when it is valid; `None` for ever.
    pub(crate) fn step(&self, now: Time) -> (Option<usize>, Option<Time>) {
        let (began, into) = self.round(now);
        let later = self.steps.partition_point(|(at, _)| *at <= into);
        let until = match self.steps.get(later) {
            Some((at, _)) => Some(began + *at),
            None => self.period.map(|period| began + period),
        };
        (later.checked_sub(1), until)
    }

    /// Returns the current value, and until when it is valid.
    #[must_use]
    pub fn at(&self, now: Time) -> (Option<T>, Option<Time>) {
        let (step, until) = self.step(now);
        (step.map(|step| self.steps[step].1), until)
    }

    /// Returns the time average over the first `lasts` of the run; `before` applies where there is
    /// no value.
    #[must_use]
    pub fn mean(&self, lasts: Span, before: T, value: impl Fn(T) -> f64) -> f64 {
        let over = |length: Span| {
            let mut sum = 0.0;
            let mut since = Span::ZERO;
            let mut held = value(before);
            for (at, next) in self.steps.iter() {
                let at = (*at).min(length);
                let next = value(*next);
                let until = (at - since).as_secs_f64();
                let first = since == Span::ZERO && at == Span::ZERO;
                sum += until
                    * if self.ramps && !first {
                        f64::midpoint(held, next)
                    } else {
                        held
                    };
                (since, held) = (at, next);
            }
            sum + length.saturating_sub(since).as_secs_f64() * held
        };
        if lasts == Span::ZERO {
            return value(before);
        }
        let whole = match self.period {
            Some(period) if period < lasts => {
                let rounds = (lasts.as_nanos() / period.as_nanos()) as f64;
                let rest = Span::from_nanos(lasts.as_nanos() % period.as_nanos());
                rounds * over(period) + over(rest)
            }
            _ => over(lasts),
        };
        whole / lasts.as_secs_f64()
    }
}

impl Profile<Span> {
    /// Creates a profile with linear interpolation. It may repeat at the very end.
    #[must_use]
    pub fn ramps_through(
        steps: impl Into<Arc<[(Span, Span)]>>,
        period: Option<Span>,
    ) -> Option<Self> {
        let steps = steps.into();
        let last = steps.last()?.0;
        if period.is_some_and(|period| period < last || period == Span::ZERO) {
            return None;
        }
        let profile = Self::new(steps, None)?;
        Some(Self {
            period,
            ramps: true,
            ..profile
        })
    }

    /// Returns the value at an instant, to the nearest nanosecond.
    #[must_use]
    pub fn value(&self, now: Time) -> Option<Span> {
        let index = self.step(now).0?;
        let (from, value) = self.steps[index];
        let Some((to, next)) = self.steps.get(index + 1).filter(|_| self.ramps) else {
            return Some(value);
        };
        let into = (self.round(now).1 - from).as_nanos();
        let length = (*to - from).as_nanos();
        let part = |change: Span| {
            // Within 64 bits for all but long ramps between very different delays.
            let small = change.as_nanos().checked_mul(into);
            let nanoseconds = match small.and_then(|product| product.checked_add(length / 2)) {
                Some(product) => product / length,
                None => {
                    let product = u128::from(change.as_nanos()) * u128::from(into);
                    ((product + u128::from(length / 2)) / u128::from(length)) as u64
                }
            };
            Span::from_nanos(nanoseconds)
        };
        Some(if *next >= value {
            value + part(*next - value)
        } else {
            value - part(value - *next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Span {
        Span::from_millis(milliseconds)
    }

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + ms(milliseconds)
    }

    #[test]
    fn a_step_holds_until_the_next() {
        let profile = Profile::new([(ms(10), 'a'), (ms(30), 'b')], None).expect("sound");
        assert_eq!(profile.at(at(0)), (None, Some(at(10))));
        assert_eq!(profile.at(at(10)), (Some('a'), Some(at(30))));
        assert_eq!(profile.at(at(29)), (Some('a'), Some(at(30))));
        assert_eq!(profile.at(at(1_000_000)), (Some('b'), None));
        assert_eq!(Profile::new([(ms(10), 1), (ms(10), 2)], None), None);
        assert_eq!(Profile::<u8>::new([], None), None);
        assert_eq!(Profile::new([(ms(10), 1)], Some(ms(10))), None);
        assert_eq!(Profile::new([(ms(0), 1)], Some(ms(0))), None);
    }

    #[test]
    fn a_period_starts_over() {
        let profile = Profile::new([(ms(0), 1), (ms(30), 2)], Some(ms(40))).expect("sound");
        assert_eq!(profile.at(at(75)), (Some(2), Some(at(80))));
        assert_eq!(profile.at(at(80)), (Some(1), Some(at(110))));
        let late = Profile::new([(ms(5), 1)], Some(ms(40))).expect("sound");
        assert_eq!(late.at(at(41)), (None, Some(at(45))));
    }

    #[test]
    fn a_ramp_is_straight() {
        let profile = Profile::ramps_through(
            [(ms(0), ms(100)), (ms(1_000), ms(200)), (ms(2_000), ms(0))],
            Some(ms(2_500)),
        );
        let profile = profile.expect("sound");
        assert_eq!(profile.value(at(250)), Some(ms(125)));
        assert_eq!(profile.value(at(1_000)), Some(ms(200)));
        assert_eq!(profile.value(at(1_750)), Some(ms(50)));
        assert_eq!(profile.value(at(2_400)), Some(ms(0)));
        assert_eq!(profile.value(at(2_750)), Some(ms(125)));
        // 150 ms for a second, 100 ms for the next, 0 for half a second.
        let mean = profile.mean(ms(2_500), ms(7), Span::as_secs_f64);
        assert!((mean - 0.25 / 2.5).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn a_mean_weighs_by_time() {
        let profile = Profile::new([(ms(10), 4.0), (ms(20), 8.0)], Some(ms(40))).expect("sound");
        let mean = |lasts| profile.mean(ms(lasts), 1.0, |value| value);
        assert!((mean(10) - 1.0).abs() < 1e-12);
        assert!((mean(20) - 2.5).abs() < 1e-12);
        assert!((mean(40) - (10.0 + 40.0 + 160.0) / 40.0).abs() < 1e-12);
        assert!((mean(400) - 5.25).abs() < 1e-12);
        assert!((mean(50) - (210.0 + 10.0) / 50.0).abs() < 1e-12);
    }
}
