//! Maximum over a sliding window of ticks.

use serde::{Deserialize, Serialize};

/// Maximum over the last `N` ticks of a virtual clock, including the current one. Exact, unlike
/// Linux's filter, which version 1 uses (`v1/running_maximum.rs`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WindowedMaximum<const N: usize> {
    // Maximum of each tick, at index tick modulo N.
    #[serde(with = "ticks")]
    ticks: [u64; N],
    now: u64,
    // Index of the current tick.
    tick: usize,
    maximum: u64,
}

impl<const N: usize> WindowedMaximum<N> {
    pub(super) const fn new() -> Self {
        Self {
            ticks: [0; N],
            now: 0,
            tick: 0,
            maximum: 0,
        }
    }

    /// Returns the maximum.
    pub(super) const fn get(&self) -> u64 {
        self.maximum
    }

    /// Adds `value` at tick `now`, which is the current tick or a later one.
    pub(super) fn update(&mut self, now: u64, value: u64) {
        if now > self.now {
            self.advance(now);
        }
        let tick = &mut self.ticks[self.tick];
        if value > *tick {
            *tick = value;
            self.maximum = self.maximum.max(value);
        }
    }

    #[cold]
    fn advance(&mut self, now: u64) {
        let passed = (now - self.now).min(N as u64);
        for n in 1..=passed {
            self.ticks[((self.now + n) % N as u64) as usize] = 0;
        }
        if passed == N as u64 {
            self.ticks = [0; N];
        }
        self.now = now;
        self.tick = (now % N as u64) as usize;
        self.maximum = self.ticks.iter().copied().max().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_the_maximum_of_the_last_ticks(steps in proptest::collection::vec((0_u64..6, 1_u64..100), 1..100)) {
            let mut filter = WindowedMaximum::<4>::new();
            let mut seen = Vec::new();
            let mut now = 0;
            for (step, value) in steps {
                now += step;
                seen.push((now, value));
                filter.update(now, value);
                let expected = seen.iter().filter(|(at, _)| at + 4 > now).map(|(_, v)| *v).max();
                prop_assert_eq!(Some(filter.get()), expected);
            }
        }
    }
}

/// Serialization of arrays of any length, which serde lacks.
mod ticks {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, const N: usize>(
        ticks: &[u64; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        ticks.as_slice().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u64; N], D::Error> {
        let ticks = Vec::deserialize(deserializer)?;
        ticks
            .try_into()
            .map_err(|ticks: Vec<u64>| Error::invalid_length(ticks.len(), &"another length"))
    }
}
