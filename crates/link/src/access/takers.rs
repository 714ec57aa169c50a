//! Those who take what is free, without a step for each that is idle.

use std::collections::BTreeMap;

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;

/// Terminals with free capacity. What those get who have asked for nothing depends on what they can take and on their
/// place in the row alone, so that all who can take the same are one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Takers {
    /// By what each can take and its rate: its members, in their order.
    groups: BTreeMap<(Capacity, BitRate), Vec<usize>>,
}

/// A taker that has asked for something in this frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) terminal: usize,
    pub(super) rate: BitRate,
    /// What it could take, had it asked for nothing.
    pub(super) usual: Capacity,
    /// What it can take.
    pub(super) wants: Capacity,
}

/// What each member of a group gets that has asked for nothing.
#[derive(Clone, Debug)]
struct Share {
    /// Those before this one get `low`, and it and those behind it `high`.
    high_from: usize,
    low: Capacity,
    high: Capacity,
    /// Members that have asked for something.
    gone: Vec<usize>,
}

/// How what is free in a frame is shared out.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeShares {
    groups: BTreeMap<(Capacity, BitRate), Share>,
    /// What those get who have asked for something, in their order.
    pub(super) askers: Vec<Capacity>,
}

/// All who can take the same: groups, and askers in their order.
#[derive(Debug, Default)]
struct Equals<'a> {
    groups: Vec<(BitRate, &'a [usize], Vec<usize>)>,
    askers: Vec<usize>,
}

fn before(row: &[usize], terminal: usize) -> usize {
    row.partition_point(|one| *one < terminal)
}

impl Equals<'_> {
    /// How many there are before this terminal.
    fn before(&self, terminal: usize) -> usize {
        let groups = self.groups.iter();
        let of_groups: usize = groups
            .map(|(_, members, gone)| before(members, terminal) - before(gone, terminal))
            .sum();
        of_groups + before(&self.askers, terminal)
    }

    /// The first terminal before which there are so many.
    fn first_behind(&self, count: usize, terminals: usize) -> usize {
        let (mut least, mut most) = (0, terminals);
        while least < most {
            let middle = usize::midpoint(least, most);
            if self.before(middle) < count {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        least
    }
}

impl Takers {
    pub(super) fn are_there(&self) -> bool {
        !self.groups.is_empty()
    }

    /// One more, that can take so much unless it asks for something.
    pub(super) fn add(&mut self, terminal: usize, usual: Capacity, rate: BitRate) {
        let members = self.groups.entry((usual, rate)).or_default();
        members.insert(before(members, terminal), terminal);
    }

    /// One less, that could have taken so much.
    pub(super) fn remove(&mut self, terminal: usize, usual: Capacity, rate: BitRate) {
        if let Some(members) = self.groups.get_mut(&(usual, rate)) {
            if let Ok(index) = members.binary_search(&terminal) {
                members.remove(index);
            }
            if members.is_empty() {
                self.groups.remove(&(usual, rate));
            }
        }
    }

    /// Shares `left` among all of `terminals`: as [`evenly`](super::sharing::evenly) does, to the last remainder.
    ///
    /// In the order of what they can take, each gets its part of what is left, and no more than it can take. From the
    /// first on who can take more than its part all do; they get equal parts, and the last of them one more
    /// each, as far as the division's remainder goes.
    pub(super) fn share(&self, left: Capacity, askers: &[Asker], terminals: usize) -> FreeShares {
        let mut equals: BTreeMap<Capacity, Equals<'_>> = BTreeMap::new();
        for (key, members) in &self.groups {
            let of_this = |one: &&Asker| (one.usual, one.rate) == *key;
            let gone = askers.iter().filter(of_this).map(|one| one.terminal);
            let group = (key.1, members.as_slice(), gone.collect());
            equals.entry(key.0).or_default().groups.push(group);
        }
        for one in askers {
            let same = equals.entry(one.wants).or_default();
            same.askers.push(one.terminal);
        }
        let mut left = left;
        let mut open: usize = equals.values().map(|all| all.before(terminals)).sum();
        // Of those who can take more than their part: the part, how many come before the remainder, and how many have passed.
        let mut level: Option<(Capacity, usize, usize)> = None;
        let mut shares = FreeShares::default();
        let mut of_askers: BTreeMap<usize, Capacity> = BTreeMap::new();
        for (wants, all) in equals {
            let count = all.before(terminals);
            if level.is_none() && wants > left.share_of(open) {
                let part = left.share_of(open);
                level = Some((part, open - left.remainder_of(open), 0));
            }
            let (low, high, high_from) = match &mut level {
                None => {
                    left = left - wants * count as u64;
                    open -= count;
                    (wants, wants, usize::MAX)
                }
                Some((part, plain, passed)) => {
                    let plain_here = plain.saturating_sub(*passed);
                    *passed += count;
                    let high_from = if plain_here >= count {
                        usize::MAX
                    } else {
                        all.first_behind(plain_here, terminals)
                    };
                    (*part, *part + Capacity::LEAST, high_from)
                }
            };
            for terminal in &all.askers {
                let gets = if *terminal < high_from { low } else { high };
                of_askers.insert(*terminal, gets);
            }
            for (rate, _, gone) in all.groups {
                let share = Share {
                    high_from,
                    low,
                    high,
                    gone,
                };
                shares.groups.insert((wants, rate), share);
            }
        }
        shares.askers = of_askers.into_values().collect();
        shares
    }
}

impl FreeShares {
    /// What one gets that has asked for nothing and can take so much.
    pub(super) fn of(&self, terminal: usize, usual: Capacity, rate: BitRate) -> Capacity {
        let share = self.groups.get(&(usual, rate));
        share.map_or(Capacity::ZERO, |share| {
            if terminal < share.high_from {
                share.low
            } else {
                share.high
            }
        })
    }

    /// How long the bursts take, in nanoseconds, of all before this terminal that have asked for nothing: each of what it
    /// has all of, and of what is free.
    pub(super) fn bursts_before(&self, terminal: usize, takers: &Takers, frame: Span) -> u64 {
        let groups = takers.groups.iter().zip(&self.groups);
        let bursts = groups.map(|((key, members), (_, share))| {
            let count = |until: usize| (before(members, until) - before(&share.gone, until)) as u64;
            let low = count(terminal.min(share.high_from));
            let high = count(terminal) - low;
            let (usual, rate) = *key;
            let constant = Capacity::of(rate, frame).less(usual);
            let time = |free: Capacity| (constant + free).time_at(rate).as_nanos();
            low * time(share.low) + high * time(share.high)
        });
        bursts.sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sharing::evenly;
    use super::*;

    const FRAME: Span = Span::from_nanos(7);

    proptest! {
        #[test]
        fn shares_and_bursts_are_those_of_a_step_for_each(
            // Each one's rate, what is constant, whether it takes what is free, and what it can take if it has asked.
            terminals in prop::collection::vec(
                (1_u64..4, 0_u64..3, any::<bool>(), prop::option::of(0_u64..30)),
                1..24,
            ),
            left in 0_u64..400,
        ) {
            let left = Capacity::LEAST * left;
            let mut takers = Takers::default();
            let (mut wants, mut askers) = (Vec::new(), Vec::new());
            let mut all = Vec::new();
            for (terminal, (rate, constant, takes, asked)) in terminals.into_iter().enumerate() {
                let rate = BitRate::new(rate).expect("not zero");
                let own = Capacity::of(rate, FRAME);
                let usual = own.less(Capacity::LEAST * constant);
                let can = asked.map_or(usual, |asked| usual.min(Capacity::LEAST * asked));
                if takes {
                    takers.add(terminal, usual, rate);
                }
                if takes && asked.is_some() {
                    askers.push(Asker { terminal, rate, usual, wants: can });
                }
                wants.push(if takes { can } else { Capacity::ZERO });
                all.push((rate, usual, takes, asked.is_some(), own - usual));
            }
            let expected = evenly(&wants, left);
            let shares = takers.share(left, &askers, wants.len());
            let mut of_askers = shares.askers.iter();
            let mut before = 0;
            for (terminal, (rate, usual, takes, asked, constant)) in all.into_iter().enumerate() {
                prop_assert_eq!(shares.bursts_before(terminal, &takers, FRAME), before);
                if takes && asked {
                    prop_assert_eq!(of_askers.next(), Some(&expected[terminal]));
                } else if takes {
                    prop_assert_eq!(shares.of(terminal, usual, rate), expected[terminal]);
                    before += (constant + expected[terminal]).time_at(rate).as_nanos();
                }
            }
        }
    }
}
