//! Sharing of free capacity without a step per idle terminal.

use std::collections::BTreeMap;

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;

/// Terminals that receive free capacity. The share of those without a request depends only on what
/// they can use and on their position, so all with equal limits form a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Takers {
    /// Groups by usable capacity and rate, with their members in order.
    groups: BTreeMap<(Capacity, BitRate), Vec<usize>>,
}

/// A terminal with a request in this frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) terminal: usize,
    pub(super) rate: BitRate,
    /// Usable capacity without its request.
    pub(super) usual: Capacity,
    /// Usable capacity.
    pub(super) wants: Capacity,
}

/// Share of a group's members without a request.
#[derive(Clone, Debug)]
struct Share {
    /// Members before this index get `low`, the others `high`.
    high_from: usize,
    low: Capacity,
    high: Capacity,
    /// Members with a request.
    gone: Vec<usize>,
}

/// The shares of free capacity in a frame.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeShares {
    groups: BTreeMap<(Capacity, BitRate), Share>,
    /// Shares of terminals with a request, in order.
    pub(super) askers: Vec<Capacity>,
}

/// All terminals with equal usable capacity: groups, and those with requests, in order.
#[derive(Debug, Default)]
struct Equals<'a> {
    groups: Vec<(BitRate, &'a [usize], Vec<usize>)>,
    askers: Vec<usize>,
}

fn before(row: &[usize], terminal: usize) -> usize {
    row.partition_point(|one| *one < terminal)
}

impl Equals<'_> {
    /// Returns how many precede this terminal.
    fn before(&self, terminal: usize) -> usize {
        let groups = self.groups.iter();
        let of_groups: usize = groups
            .map(|(_, members, gone)| before(members, terminal) - before(gone, terminal))
            .sum();
        of_groups + before(&self.askers, terminal)
    }

    /// Returns the first terminal that is preceded by `count` of them.
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

    /// Adds a terminal with this usable capacity and rate.
    pub(super) fn add(&mut self, terminal: usize, usual: Capacity, rate: BitRate) {
        let members = self.groups.entry((usual, rate)).or_default();
        members.insert(before(members, terminal), terminal);
    }

    /// Removes a terminal with this usable capacity and rate.
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

    /// Shares `left` among all of `terminals` exactly as [`evenly`](super::sharing::evenly),
    /// remainders included.
    ///
    /// In the order of usable capacity, each gets its part of what is left, limited to what it can
    /// use. From the first terminal on that can use more than its part, all can; they get equal
    /// parts, and the last ones one unit more each, up to the remainder of the division.
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
        // Once terminals can use more than their part: the part, how many precede the remainder,
        // and how many have been served.
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
    /// Returns the share of a terminal without a request.
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

    /// Returns the length in nanoseconds of the bursts of all terminals without a request that
    /// precede this one.
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
        fn shares_and_bursts_equal_a_per_terminal_computation(
            // Rate, constant capacity, whether it receives free capacity, and its usable capacity
            // with a request.
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
