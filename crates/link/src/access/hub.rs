//! The hub: outstanding requests, and the plan of the current frame.

use std::collections::BTreeMap;

use bentpipe_types::Span;

use super::capacity::Capacity;
use super::constant::{Constants, Granted};
use super::grant::{Grant, Request};
use super::modes::Modes;
use super::prefix::PrefixSums;
use super::settings::{CarrierSettings, TerminalSettings};
use super::sharing::{evenly, in_proportion};
use super::takers::{Asker, FreeShares, Takers};
use crate::changes::Rates;

/// State of the hub.
///
/// A plan costs one step per terminal with a request, and none for others: their share of a frame
/// is computed on demand, from constants and prefix sums.
#[derive(Debug)]
pub(super) struct Hub {
    frame: Span,
    capacity: Capacity,
    terminals: Vec<TerminalSettings>,
    modes: Modes,
    constants: Constants,
    /// Modes and constants of a frame at which a probe has looked before any terminal entered it.
    looked_at: Option<Box<LookedAt>>,
    /// Burst lengths in nanoseconds of terminals without requests, except those that receive free
    /// capacity.
    bursts: PrefixSums,
    takers: Takers,
    /// State of each terminal as included in the sums.
    asleep: Vec<Asleep>,
    /// Outstanding requests by terminal, in order. Requested volume stays owed.
    wants: Vec<Want>,
    given: Vec<Capacity>,
    /// Requests by the first frame whose plan includes them.
    requests: BTreeMap<u64, Vec<(usize, Request)>>,
    /// Next frame to be planned.
    next: u64,
    plan: Plan,
}

/// Copies of modes and constants, advanced to a later frame.
#[derive(Debug)]
struct LookedAt {
    frame: u64,
    modes: Modes,
    constants: Constants,
}

/// A terminal without requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Asleep {
    /// Carrier capacity that it can use in addition to its constant capacity.
    room: Capacity,
    /// Length of its burst of constant capacity in nanoseconds.
    burst: u64,
    /// Whether it receives free capacity.
    takes: bool,
}

/// Demand of a terminal in addition to its constant capacity.
#[derive(Clone, Copy, Debug)]
struct Want {
    terminal: usize,
    by_rate: Capacity,
    owed: Capacity,
}

/// The plan of a frame.
#[derive(Debug, Default)]
struct Plan {
    /// Grants of terminals with requests, in order, without burst positions.
    asked: Vec<(usize, Grant)>,
    /// Entry `i`: nanoseconds by which the bursts of the first `i` terminals in `asked` exceed the
    /// bursts that these terminals would have without requests.
    longer: Vec<u64>,
    free: FreeShares,
}

impl Hub {
    pub(super) fn new(settings: CarrierSettings, terminals: &[TerminalSettings]) -> Self {
        let frame = settings.frame;
        let capacity = Capacity::of(settings.rate, frame);
        let mut hub = Self {
            frame,
            capacity,
            terminals: terminals.to_vec(),
            modes: Modes::new(frame, terminals.iter().map(|of| of.rate)),
            constants: Constants::new(frame, capacity, terminals),
            looked_at: None,
            bursts: PrefixSums::new(terminals.len()),
            takers: Takers::default(),
            asleep: vec![Asleep::default(); terminals.len()],
            wants: Vec::new(),
            given: vec![Capacity::ZERO; terminals.len()],
            requests: BTreeMap::new(),
            next: 0,
            plan: Plan::default(),
        };
        for terminal in 0..terminals.len() {
            hub.place(terminal);
        }
        hub
    }

    /// Sets the changing rate of a terminal's path, which the hub knows `lag` frames late.
    pub(super) fn follow(&mut self, terminal: usize, rates: Rates, lag: u64) {
        self.modes.follow(terminal, rates, lag);
    }

    /// Updates the sums after a change of a terminal's mode or constant capacity.
    fn place(&mut self, terminal: usize) {
        let of = &self.terminals[terminal];
        let rate = of.rate;
        let constant = self.constants.of(terminal).on_air;
        let has_mode = self.modes.of(terminal).is_known();
        let now = Asleep {
            room: if has_mode {
                Capacity::of(rate, self.frame) - constant
            } else {
                Capacity::ZERO
            },
            burst: constant.time_at(rate).as_nanos(),
            takes: of.free && has_mode,
        };
        let before = std::mem::replace(&mut self.asleep[terminal], now);
        if now == before {
            return;
        }
        if of.free {
            // Their bursts depend on the free capacity.
            if before.takes {
                self.takers.remove(terminal, before.room, rate);
            }
            if now.takes {
                self.takers.add(terminal, now.room, rate);
            }
        } else {
            self.bursts.change(terminal, before.burst, now.burst);
        }
    }

    /// Returns the constant capacity of a terminal in all frames before this one and in this one,
    /// or `None` if all frames are equal. Works on copies: it changes neither plans nor later
    /// answers about earlier frames.
    pub(super) fn constant(&mut self, terminal: usize, frame: u64) -> Option<(Granted, Granted)> {
        if !self.modes.change() {
            return None;
        }
        let constants = match self.modes.next(frame) {
            None => &self.constants,
            Some(_) => self.constants_in(frame),
        };
        let constant = constants.of(terminal);
        Some((constant.before(frame), constant.of_each()))
    }

    /// Returns the constants of a frame that no terminal has entered.
    fn constants_in(&mut self, frame: u64) -> &Constants {
        let kept = self.looked_at.take().filter(|kept| kept.frame <= frame);
        let mut looked_at = kept.unwrap_or_else(|| {
            Box::new(LookedAt {
                frame,
                modes: self.modes.clone(),
                constants: self.constants.clone(),
            })
        });
        looked_at.frame = frame;
        while let Some(next) = looked_at.modes.next(frame) {
            let changed = looked_at.modes.enter(next);
            (looked_at.constants).change(next, &changed, &looked_at.modes);
        }
        &self.looked_at.insert(looked_at).constants
    }

    /// Enters all frames up to this one in which a terminal's mode changes.
    fn enter_modes(&mut self, frame: u64) {
        while let Some(next) = self.modes.next(frame) {
            self.looked_at = None;
            let changed = self.modes.enter(next);
            let others = self.constants.change(next, &changed, &self.modes);
            for terminal in changed.into_iter().chain(others) {
                self.place(terminal);
            }
        }
    }

    /// Stores a request that the plan of `frame` includes.
    pub(super) fn ask(&mut self, frame: u64, terminal: usize, request: Request) {
        let requests = self.requests.entry(frame).or_default();
        requests.push((terminal, request));
    }

    /// Returns all volume granted to a terminal so far.
    pub(super) fn given(&self, terminal: usize) -> Capacity {
        self.given[terminal]
    }

    /// Plans all frames up to this one. While there are no requests all plans are equal, and one
    /// suffices.
    pub(super) fn plan_until(&mut self, frame: u64) {
        while self.next <= frame {
            let asked_for = match self.requests.first_key_value() {
                _ if !self.wants.is_empty() => self.next,
                Some((first, _)) => self.next.max(*first),
                None => frame,
            };
            let planned = asked_for.min(frame);
            self.plan(planned);
            self.next = planned + 1;
        }
    }

    /// Returns a terminal's grant in the frame planned last.
    pub(super) fn grant(&self, terminal: usize) -> Grant {
        let (of, mode, plan) = (
            &self.terminals[terminal],
            self.modes.of(terminal),
            &self.plan,
        );
        let asked = plan.asked.binary_search_by_key(&terminal, |(one, _)| *one);
        let planned = match asked {
            Ok(index) => plan.asked[index].1,
            Err(_) => Grant {
                constant: self.constants.of(terminal).planned,
                free: if of.free {
                    let on_air = (plan.free).of(terminal, self.asleep[terminal].room, of.rate);
                    mode.planned(on_air)
                } else {
                    Capacity::ZERO
                },
                ..Grant::default()
            },
        };
        // Bursts follow each other in the order of terminals.
        let asked_before = asked.unwrap_or_else(|index| index);
        let before = self.bursts.before(terminal)
            + (plan.free).bursts_before(terminal, &self.takers, self.frame)
            + plan.longer[asked_before];
        let grant = Grant {
            constant: mode.left_of(planned.constant),
            by_rate: mode.left_of(planned.by_rate),
            by_volume: mode.left_of(planned.by_volume),
            free: mode.left_of(planned.free),
            begins: Span::from_nanos(before % self.frame.as_nanos()),
            rate: mode.rate(),
            reaches: mode.reaches(),
            faded: Capacity::ZERO,
            on_air: planned.on_air,
        };
        Grant {
            faded: planned.all() - grant.all(),
            ..grant
        }
    }

    /// Adds the requests included from `frame` on to the outstanding ones.
    fn heed(&mut self, frame: u64) {
        let asked_before = self.wants.len();
        while let Some(requests) = self.requests.first_entry()
            && *requests.key() <= frame
        {
            let requests = requests.remove().into_iter();
            self.wants.extend(requests.map(|(terminal, request)| Want {
                terminal,
                by_rate: request.by_rate,
                owed: request.by_volume,
            }));
        }
        if self.wants.len() > asked_before {
            self.wants.sort_by_key(|want| want.terminal);
            self.wants.dedup_by(|later, want| {
                let same = later.terminal == want.terminal;
                if same {
                    // A later rate replaces an earlier one; volumes add up.
                    want.by_rate = later.by_rate;
                    want.owed += later.owed;
                }
                same
            });
        }
    }

    /// Plans a frame. Carrier time is shared, so a faded terminal gets less capacity for the same
    /// share.
    fn plan(&mut self, frame: u64) {
        self.enter_modes(frame);
        self.heed(frame);
        // Capacity that each terminal may still get in this frame, and that remains on the carrier.
        let wants = self.wants.iter();
        let mut room: Vec<Capacity> = wants.map(|want| self.asleep[want.terminal].room).collect();
        let mut left = self.capacity - self.constants.on_air;
        let mut take = |given: &[Capacity], room: &mut [Capacity]| {
            for (room, given) in room.iter_mut().zip(given) {
                *room = *room - *given;
                left = left - *given;
            }
            left
        };
        let wanted = |of: fn(&Want) -> Capacity, room: &[Capacity]| -> Vec<Capacity> {
            let wants = self.wants.iter().zip(room);
            let on_air = |want: &Want| self.modes.of(want.terminal).on_air(of(want));
            wants.map(|(want, room)| on_air(want).min(*room)).collect()
        };
        let still = take(&[], &mut room);
        let by_rate = in_proportion(&wanted(|want| want.by_rate, &room), still);
        let still = take(&by_rate, &mut room);
        let by_volume = evenly(&wanted(|want| want.owed, &room), still);
        let still = take(&by_volume, &mut room);
        let free = self.share_free(&room, still);
        let plan = &mut self.plan;
        plan.asked.clear();
        plan.longer.clear();
        let (mut longer, mut free_shares) = (0, free.askers.iter());
        for (index, want) in self.wants.iter_mut().enumerate() {
            let (terminal, of) = (want.terminal, &self.terminals[want.terminal]);
            let (mode, constant) = (self.modes.of(terminal), self.constants.of(terminal));
            let free = if self.asleep[terminal].takes {
                free_shares.next().copied().unwrap_or_default()
            } else {
                Capacity::ZERO
            };
            let on_air = constant.on_air + by_rate[index] + by_volume[index] + free;
            let grant = Grant {
                constant: constant.planned,
                by_rate: mode.planned(by_rate[index]).min(want.by_rate),
                by_volume: mode.planned(by_volume[index]).min(want.owed),
                free: mode.planned(free),
                on_air: by_rate[index] + by_volume[index],
                ..Grant::default()
            };
            want.by_rate = Capacity::ZERO;
            want.owed = want.owed - grant.by_volume;
            self.given[terminal] += grant.by_volume;
            plan.asked.push((terminal, grant));
            plan.longer.push(longer);
            let usual = if of.free {
                0
            } else {
                self.asleep[terminal].burst
            };
            longer += on_air.time_at(of.rate).as_nanos() - usual;
        }
        plan.longer.push(longer);
        plan.free = free;
        self.wants.retain(|want| !want.owed.is_zero());
    }

    /// Shares free capacity; terminals with requests can still use `room`.
    fn share_free(&self, room: &[Capacity], left: Capacity) -> FreeShares {
        if !self.takers.are_there() {
            return FreeShares::default();
        }
        let askers = self.wants.iter().zip(room);
        let askers = askers.filter(|(want, _)| self.asleep[want.terminal].takes);
        let askers = askers.map(|(want, room)| Asker {
            terminal: want.terminal,
            rate: self.terminals[want.terminal].rate,
            usual: self.asleep[want.terminal].room,
            wants: *room,
        });
        let askers: Vec<Asker> = askers.collect();
        self.takers.share(left, &askers, self.terminals.len())
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::BitRate;

    use super::*;

    #[test]
    fn a_plan_has_entries_for_requesting_terminals_only() {
        let rate = BitRate::new(8_000).expect("not zero");
        let terminal = |constant, free| TerminalSettings {
            rate,
            constant: BitRate::new(constant),
            rate_based: Some(rate),
            volume_based: true,
            free,
            request_delay: Span::ZERO,
            grant_delay: Span::ZERO,
        };
        let mut terminals = vec![terminal(8, false); 500];
        terminals.extend([terminal(0, true); 500]);
        let settings = CarrierSettings {
            rate,
            frame: Span::from_millis(10),
            processing: Span::ZERO,
        };
        let mut hub = Hub::new(settings, &terminals);
        for frame in 1..100 {
            for asking in [499, 999] {
                let request = Request {
                    by_rate: Capacity::of(rate, Span::from_millis(1)),
                    by_volume: Capacity::ZERO,
                };
                hub.ask(frame, asking, request);
            }
            hub.plan_until(frame);
            assert_eq!(hub.plan.asked.len(), 2);
            // All receivers of free capacity without requests are one group.
            assert_eq!(hub.plan.free.askers.len(), 1);
            let all: Vec<Grant> = (0..1_000).map(|terminal| hub.grant(terminal)).collect();
            let granted = all.iter().fold(Capacity::ZERO, |sum, one| sum + one.all());
            assert_eq!(granted, Capacity::of(rate, settings.frame));
            assert_eq!(all[499].by_rate, all[999].by_rate);
            // Each begins where the previous one ends, to half a nanosecond.
            let apart = |one: &Grant, next: &Grant| {
                (one.begins + one.all().time_at(rate))
                    .as_nanos()
                    .abs_diff(next.begins.as_nanos())
            };
            assert!(all.windows(2).all(|pair| apart(&pair[0], &pair[1]) == 0));
        }
    }
}
