//! Fate of each packet on a direction that changes.

use bentpipe_types::{BitRate, Bytes, RandomStream, Span, Time};

use super::fading::Fading;
use super::opportunities::Turns;
use super::outages::{OutageGroup, grouped, held, passes};
use super::rates::Rates;
use super::{Changes, Outages, RateCourse, Sending};
use crate::errors::PacketLoss;
use crate::{Flow, Tally};

/// Fate of a packet in transit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    pub(crate) corrupted: bool,
}

/// Passage of a packet over the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passage {
    /// The end of its transmission.
    pub(crate) departure: Time,
    pub(crate) arrival: Time,
    pub(crate) fate: Fate,
}

/// Source of the rate.
#[derive(Debug)]
enum Clock {
    Rated,
    Turns(Turns),
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    losses: u64,
    outage_losses: u64,
    held: u64,
    reordered: u64,
    duplicated: u64,
    corrupted: u64,
}

/// State of a changing direction. Queried at times that never decrease.
#[derive(Debug)]
pub(crate) struct Course {
    rates: Rates,
    redundancy: f64,
    delay: Span,
    changes: Changes,
    outages: Vec<OutageGroup>,
    clock: Clock,
    losses: Losses,
    duplication: PacketLoss,
    corruption: PacketLoss,
    late: PacketLoss,
    lateness: RandomStream,
    /// Arrival time of the last packet that is subject to ordering.
    last_arrival: Time,
    busy: Span,
    sending_until: Time,
    counted: Counted,
}

/// Losses with a changing probability: the remaining hazard until the next loss.
///
/// A packet that is lost with probability p uses -ln(1 - p) of it. The rest is exponential with
/// mean 1, which is memoryless: the same distribution as one draw per packet, with one draw per
/// loss.
#[derive(Debug)]
struct Losses {
    left: f64,
    random: RandomStream,
}

impl Losses {
    fn new(mut random: RandomStream) -> Self {
        let left = random.exponential(1.0);
        Self { left, random }
    }

    fn loses(&mut self, hazard: f64) -> bool {
        if hazard < self.left {
            self.left -= hazard;
            return false;
        }
        self.left = self.random.exponential(1.0);
        true
    }
}

/// Rate, redundancy and delay of the direction where they do not change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual {
    pub(crate) rate: BitRate,
    pub(crate) redundancy: f64,
    pub(crate) delay: Span,
}

impl Course {
    /// Creates the state. `random` creates the stream for a purpose.
    pub(crate) fn new(
        usual: Usual,
        changes: Changes,
        random: &dyn Fn(&str) -> RandomStream,
    ) -> Self {
        let share = |purpose, share| PacketLoss::new(share, random(purpose));
        let late = changes.reordering.map_or(0.0, |(share, _)| share);
        Self {
            rates: Rates {
                own: usual.rate,
                steps: match &changes.rate {
                    RateCourse::Steps(profile) => Some(profile.clone()),
                    RateCourse::Constant | RateCourse::Opportunities(_) => None,
                },
                fading: (changes.fading).map(|settings| Fading::new(settings, random("fading"))),
            },
            redundancy: usual.redundancy,
            delay: usual.delay,
            clock: match &changes.rate {
                RateCourse::Opportunities(of) => Clock::Turns(Turns::new(of.clone())),
                RateCourse::Constant | RateCourse::Steps(_) => Clock::Rated,
            },
            losses: Losses::new(random("changing losses")),
            duplication: share("duplication", changes.duplication),
            corruption: share("corruption", changes.corruption),
            late: share("reordering", late),
            lateness: random("lateness"),
            outages: grouped(&changes.outages),
            changes,
            last_arrival: Time::ZERO,
            busy: Span::ZERO,
            sending_until: Time::ZERO,
            counted: Counted::default(),
        }
    }

    /// Returns the rates from the start of the run, before any query.
    pub(crate) fn rates(&self) -> Rates {
        self.rates.clone()
    }

    /// Returns the outages.
    pub(crate) fn outages(&self) -> &[Outages] {
        &self.changes.outages
    }

    /// Discards transmission opportunities that have passed before a packet is offered.
    pub(crate) fn offered(&mut self, now: Time) {
        if let Clock::Turns(turns) = &mut self.clock {
            turns.burn(now);
        }
    }

    /// Whether a transmission can begin; otherwise returns when.
    pub(crate) fn ready(&mut self, now: Time) -> Result<(), Time> {
        let outages = &self.outages;
        match &mut self.clock {
            Clock::Turns(turns) => turns.ready(now, |at| held(outages, at)),
            Clock::Rated => Ok(()),
        }
    }

    /// Starts a transmission.
    pub(crate) fn send(&mut self, start: Time, length: Bytes) -> Passage {
        let departure = match &mut self.clock {
            Clock::Turns(turns) => {
                let outages = &self.outages;
                // An opportunity counts for its share of the time.
                let period = turns.of().period().as_nanos();
                let worth = super::OPPORTUNITY * turns.of().count();
                let busy = u128::from(length.get()) * u128::from(period) / u128::from(worth);
                self.busy += Span::from_nanos(busy as u64);
                let on_air = libm::round(length.get() as f64 * self.redundancy);
                turns.send(on_air as u64, |at| held(outages, at))
            }
            Clock::Rated => {
                let departure = self.sent_by(start, length);
                self.busy += departure.since(start);
                self.sending_until = departure;
                departure
            }
        };
        self.leave(start, departure, length)
    }

    /// Determines the fate of a packet whose transmission began at `start` and ends at `departure`.
    pub(crate) fn leave(&mut self, start: Time, departure: Time, length: Bytes) -> Passage {
        let (arrival, fate) = self.way(start, departure, length);
        Passage {
            departure,
            arrival,
            fate,
        }
    }

    /// Returns when the last bit of a packet is sent whose first bit is sent at `start`.
    ///
    /// The remaining part is counted in bit/s times nanoseconds, so each interval at one rate
    /// subtracts a whole number and only the last instant is rounded.
    fn sent_by(&mut self, start: Time, length: Bytes) -> Time {
        let mut to_go = if self.redundancy == 1.0 {
            u128::from(length.bits()) * 1_000_000_000
        } else {
            libm::round(length.bits() as f64 * self.redundancy * 1e9) as u128
        };
        let mut now = start;
        loop {
            let (rate, until) = self.rate_at(now);
            let rate = u128::from(rate);
            let Some(until) = until else {
                // A rate of zero for ever never sends it.
                let Some(left) = (to_go + rate / 2).checked_div(rate) else {
                    return Time::NEVER;
                };
                return now + Span::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            };
            let possible = rate * u128::from(until.since(now).as_nanos());
            if to_go <= possible {
                let left = (to_go + rate / 2) / rate;
                return now + Span::from_nanos(left as u64);
            }
            if until > Time::LAST {
                return Time::NEVER;
            }
            to_go -= possible;
            now = until;
        }
    }

    /// Returns the transmitter's rate in bit/s, and until when it is valid.
    fn rate_at(&mut self, now: Time) -> (u64, Option<Time>) {
        let (mut rate, mut until) = self.rates.at(now);
        let mut sooner = |at: Time| until = Some(until.map_or(at, |until| until.min(at)));
        for outages in &self.outages {
            if outages.sending == Sending::Held {
                match outages.at(now) {
                    Ok(end) => {
                        rate = 0;
                        sooner(end);
                    }
                    Err(next) => next.into_iter().for_each(&mut sooner),
                }
            }
        }
        (rate, until)
    }

    /// Returns when a packet arrives, and with which fate.
    fn way(&mut self, start: Time, departure: Time, length: Bytes) -> (Time, Fate) {
        let delay = self.changes.delay.as_ref().and_then(|d| d.value(departure));
        let mut arrival = departure + delay.unwrap_or(self.delay);
        let mut fate = Fate {
            duplicated: self.duplication.loses(),
            corrupted: self.corruption.loses(),
            lost: self.meets_losses(departure, length),
        };
        self.counted.losses += u64::from(fate.lost);
        let late = self.late.loses();
        if late && let Some((_, lateness)) = self.changes.reordering {
            arrival += lateness.span(&mut self.lateness);
            self.counted.reordered += 1;
        }
        let (held_until, cut) = passes(&self.outages, start, departure, arrival);
        self.counted.held += u64::from(held_until > arrival);
        arrival = held_until;
        self.counted.outage_losses += u64::from(cut && !fate.lost);
        fate.lost |= cut;
        if !late && self.changes.keeps_order {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        self.counted.duplicated += u64::from(fate.duplicated && !fate.lost);
        self.counted.corrupted += u64::from(fate.corrupted && !fate.lost);
        (arrival, fate)
    }

    /// Whether the packet meets one of the time-dependent losses.
    fn meets_losses(&mut self, at: Time, length: Bytes) -> bool {
        let bits = length.bits();
        let mut hazard = 0.0;
        if let Some(losses) = &self.changes.losses
            && let (Some(rates), _) = losses.at(at)
        {
            hazard += rates.hazard(bits);
        }
        if let Some(fading) = &mut self.rates.fading
            && at <= Time::LAST
            && fading.at(at).0
        {
            hazard += fading.settings.losses.hazard(bits);
        }
        hazard > 0.0 && self.losses.loses(hazard)
    }

    /// Returns the time for which the transmitter has worked, up to `now`.
    pub(crate) fn busy(&self, now: Time) -> Span {
        self.busy.saturating_sub(self.sending_until.since(now))
    }

    /// Reports counters by name.
    pub(crate) fn tally(&self, each: &mut Tally<'_>) {
        let mut tell = |is_there: bool, name, value| {
            if is_there {
                each(None::<Flow>, name, value);
            }
        };
        let changes = &self.changes;
        let counted = &self.counted;
        let loses = changes.losses.is_some() || changes.fading.is_some();
        let outages = !changes.outages.is_empty();
        tell(loses, "lost_to_changes", counted.losses);
        tell(outages, "lost_to_outages", counted.outage_losses);
        tell(outages, "held_by_outages", counted.held);
        tell(changes.reordering.is_some(), "reordered", counted.reordered);
        tell(changes.duplication > 0.0, "duplicated", counted.duplicated);
        tell(changes.corruption > 0.0, "corrupted", counted.corrupted);
    }
}
