//! The hub: what it has been asked for, and its plan of the present frame.

use std::collections::BTreeMap;

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;
use super::carrier::{CarrierSettings, Grant, Request, TerminalSettings};
use super::prefix::PrefixSums;
use super::sharing::{evenly, in_proportion};
use super::takers::{Asker, FreeShares, Takers};

/// What the hub knows.
///
/// A plan costs a step for each terminal that has asked for something, and none for one that has not: what that one has of
/// a frame is worked out when it comes and asks, from what stands for good and from sums.
#[derive(Debug)]
pub(super) struct Hub {
    frame: Span,
    capacity: Capacity,
    terminals: Vec<TerminalSettings>,
    /// What all have of a frame without asking.
    constant: Capacity,
    /// How long the burst of each takes that asks for nothing, in nanoseconds, but for those who take what is free.
    bursts: PrefixSums,
    takers: Takers,
    /// What has been asked for and not given, by terminal, in their order. What is asked for by volume stays owed.
    wants: Vec<Want>,
    given: Vec<Capacity>,
    /// By the first frame whose plan heeds them.
    requests: BTreeMap<u64, Vec<(usize, Request)>>,
    /// The frame that is planned next.
    next: u64,
    plan: Plan,
}

/// What a terminal is to get besides what is constant.
#[derive(Clone, Copy, Debug)]
struct Want {
    terminal: usize,
    by_rate: Capacity,
    owed: Capacity,
}

/// The plan of a frame.
#[derive(Debug, Default)]
struct Plan {
    /// What those get who have asked for something, in their order; when their bursts begin is not in it.
    asked: Vec<(usize, Grant)>,
    /// How much longer the bursts of so many of them take than they would, had they asked for nothing, in nanoseconds.
    longer: Vec<u64>,
    free: FreeShares,
}

impl TerminalSettings {
    /// What it can send in a frame.
    fn own(&self, frame: Span) -> Capacity {
        Capacity::of(self.rate, frame)
    }

    /// What it has of each frame without asking.
    fn constant(&self, frame: Span) -> Capacity {
        let carries = |rate: BitRate| Capacity::of(rate, frame);
        self.constant.map_or(Capacity::ZERO, carries)
    }

    /// What it could be given besides.
    fn room(&self, frame: Span) -> Capacity {
        self.own(frame) - self.constant(frame)
    }
}

impl Hub {
    pub(super) fn new(settings: CarrierSettings, terminals: &[TerminalSettings]) -> Self {
        let frame = settings.frame;
        let mut bursts = PrefixSums::new(terminals.len());
        let mut takers = Takers::default();
        let mut constant = Capacity::ZERO;
        for (terminal, of) in terminals.iter().enumerate() {
            constant += of.constant(frame);
            if of.free {
                takers.add(terminal, of.room(frame), of.rate);
            } else {
                let takes = of.constant(frame).time_at(of.rate);
                bursts.change(terminal, 0, takes.as_nanos());
            }
        }
        Self {
            frame,
            capacity: Capacity::of(settings.rate, frame),
            terminals: terminals.to_vec(),
            constant,
            bursts,
            takers,
            wants: Vec::new(),
            given: vec![Capacity::ZERO; terminals.len()],
            requests: BTreeMap::new(),
            next: 0,
            plan: Plan::default(),
        }
    }

    /// A request that the plan of `frame` heeds.
    pub(super) fn ask(&mut self, frame: u64, terminal: usize, request: Request) {
        let requests = self.requests.entry(frame).or_default();
        requests.push((terminal, request));
    }

    /// What a terminal has ever been given by volume.
    pub(super) fn given(&self, terminal: usize) -> Capacity {
        self.given[terminal]
    }

    /// Plans all frames up to this one. Where nobody has asked for anything, plans are the same, and one will do.
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

    /// What a terminal has of the frame that was planned last.
    pub(super) fn grant(&self, terminal: usize) -> Grant {
        let (of, plan) = (&self.terminals[terminal], &self.plan);
        let asked = plan.asked.binary_search_by_key(&terminal, |(one, _)| *one);
        let grant = match asked {
            Ok(index) => plan.asked[index].1,
            Err(_) => Grant {
                constant: of.constant(self.frame),
                free: if of.free {
                    (plan.free).of(terminal, of.room(self.frame), of.rate)
                } else {
                    Capacity::ZERO
                },
                ..Grant::default()
            },
        };
        // Bursts stand one behind the other, in the order of the terminals.
        let asked_before = asked.unwrap_or_else(|index| index);
        let before = self.bursts.before(terminal)
            + (plan.free).bursts_before(terminal, &self.takers, self.frame)
            + plan.longer[asked_before];
        Grant {
            begins: Span::from_nanos(before % self.frame.as_nanos()),
            ..grant
        }
    }

    /// What was asked for by `frame` is owed from then on.
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
                    // A later request for a rate takes the place of one before it; volumes add up.
                    want.by_rate = later.by_rate;
                    want.owed += later.owed;
                }
                same
            });
        }
    }

    fn plan(&mut self, frame: u64) {
        self.heed(frame);
        let span = self.frame;
        let of = |want: &Want| &self.terminals[want.terminal];
        // What each may still be given in this frame, and what is left of the carrier.
        let mut room: Vec<Capacity> = self.wants.iter().map(|want| of(want).room(span)).collect();
        let mut left = self.capacity - self.constant;
        let mut take = |given: &[Capacity], room: &mut [Capacity]| {
            for (room, given) in room.iter_mut().zip(given) {
                *room = *room - *given;
                left = left - *given;
            }
            left
        };
        let still = take(&[], &mut room);
        let rates = self.wants.iter().zip(&room);
        let rates: Vec<Capacity> = rates.map(|(want, room)| want.by_rate.min(*room)).collect();
        let by_rate = in_proportion(&rates, still);
        let still = take(&by_rate, &mut room);
        let volumes = self.wants.iter().zip(&room);
        let volumes: Vec<Capacity> = volumes.map(|(want, room)| want.owed.min(*room)).collect();
        let by_volume = evenly(&volumes, still);
        let still = take(&by_volume, &mut room);
        let free = if self.takers.are_there() {
            let askers = self.wants.iter().zip(&room);
            let askers = askers.filter(|(want, _)| of(want).free);
            let askers = askers.map(|(want, room)| Asker {
                terminal: want.terminal,
                rate: of(want).rate,
                usual: of(want).room(span),
                wants: *room,
            });
            let askers: Vec<Asker> = askers.collect();
            self.takers.share(still, &askers, self.terminals.len())
        } else {
            FreeShares::default()
        };
        let plan = &mut self.plan;
        plan.asked.clear();
        plan.longer.clear();
        let (mut longer, mut free_shares) = (0, free.askers.iter());
        for (index, want) in self.wants.iter_mut().enumerate() {
            let (terminal, of) = (want.terminal, &self.terminals[want.terminal]);
            want.by_rate = Capacity::ZERO;
            want.owed = want.owed - by_volume[index];
            self.given[terminal] += by_volume[index];
            let constant = of.constant(span);
            let grant = Grant {
                constant,
                by_rate: by_rate[index],
                by_volume: by_volume[index],
                free: (of.free.then(|| free_shares.next()).flatten().copied()).unwrap_or_default(),
                begins: Span::ZERO,
            };
            plan.asked.push((terminal, grant));
            plan.longer.push(longer);
            let usual = if of.free { Capacity::ZERO } else { constant };
            longer += (grant.all().time_at(of.rate) - usual.time_at(of.rate)).as_nanos();
        }
        plan.longer.push(longer);
        plan.free = free;
        self.wants.retain(|want| !want.owed.is_zero());
    }
}
