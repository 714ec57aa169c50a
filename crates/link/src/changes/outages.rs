//! Outages of a link, once or periodic: an eclipse, a handover, a tunnel.

use std::sync::Arc;

use bentpipe_types::{Span, Time};

/// Times at which a direction is down, and the effect on packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outages {
    /// Start of the first outage.
    pub at: Span,
    /// Duration; less than `every`.
    pub lasts: Span,
    /// Period, or `None` for a single outage.
    pub every: Option<Span>,
    /// Behaviour of the transmitter during an outage.
    pub sending: Sending,
    /// Effect on packets in flight when it begins.
    pub in_flight: InFlight,
}

/// Behaviour of a transmitter during an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// It waits: packets stay in the queue, and a transmission is continued afterwards.
    Held,
    /// It continues, and whatever it sends during the outage is lost.
    Lost,
}

/// Effect on packets whose first bit was sent and whose last bit has not arrived when an outage
/// begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFlight {
    /// They arrive on time.
    Arrive,
    /// They are lost.
    Lost,
    /// They arrive when it ends, or on time if that is later.
    Held,
}

impl Outages {
    /// Returns the end of the outage at `now`, or as an error the start of the next one, if any.
    fn at(&self, now: Time) -> Result<Time, Option<Time>> {
        let since = match now.as_nanos().checked_sub(self.at.as_nanos()) {
            None => return Err(Some(Time::ZERO + self.at)),
            Some(since) => since,
        };
        let into = match self.every {
            Some(every) => since % every.as_nanos().max(1),
            None => since,
        };
        let began = Time::from_nanos(now.as_nanos() - into);
        if into < self.lasts.as_nanos() {
            return Ok(began + self.lasts);
        }
        Err(self.every.map(|every| began + every))
    }

    /// Returns the start of the first outage after `now`.
    fn next(&self, now: Time) -> Option<Time> {
        match self.at(now) {
            Err(next) => next,
            // An outage is shorter than the time until the next.
            Ok(end) => self.at(end).err().flatten(),
        }
    }
}

/// Outages with the same effects on packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OutageGroup {
    times: Times,
    pub(crate) sending: Sending,
    pub(crate) in_flight: InFlight,
}

/// Times of a group's outages.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Times {
    Periodic(Outages),
    /// Starts and ends in order of time, without overlap: thousands of handovers are searched as
    /// fast as a few.
    Listed(Arc<[(Time, Time)]>),
}

impl OutageGroup {
    /// Returns the end of the outage at `now`, or as an error the start of the next one, if any.
    pub(crate) fn at(&self, now: Time) -> Result<Time, Option<Time>> {
        match &self.times {
            Times::Periodic(outages) => outages.at(now),
            Times::Listed(listed) => {
                let later = listed.partition_point(|(begins, _)| *begins <= now);
                let current = later.checked_sub(1).map(|index| listed[index].1);
                match current.filter(|end| now < *end) {
                    Some(end) => Ok(end),
                    None => Err(listed.get(later).map(|(begins, _)| *begins)),
                }
            }
        }
    }

    /// Returns the start of the first outage after `now`.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        match &self.times {
            Times::Periodic(outages) => outages.next(now),
            Times::Listed(listed) => {
                let later = listed.partition_point(|(begins, _)| *begins <= now);
                listed.get(later).map(|(begins, _)| *begins)
            }
        }
    }
}

/// Groups outages: single ones with the same effects that do not overlap are searched together.
pub(crate) fn grouped(all: &[Outages]) -> Vec<OutageGroup> {
    let mut groups = Vec::new();
    let mut single: Vec<Outages> = Vec::new();
    for outages in all {
        if outages.every.is_none() {
            single.push(*outages);
        } else {
            groups.push(OutageGroup {
                times: Times::Periodic(*outages),
                sending: outages.sending,
                in_flight: outages.in_flight,
            });
        }
    }
    single.sort_by_key(|outages| (outages.at, outages.lasts));
    let mut lists: Vec<(Outages, Vec<(Time, Time)>)> = Vec::new();
    for outages in single {
        let begins = Time::ZERO + outages.at;
        let with_room = lists.iter_mut().find(|(like, list)| {
            (like.sending, like.in_flight) == (outages.sending, outages.in_flight)
                && list.last().is_none_or(|(_, end)| *end < begins)
        });
        let interval = (begins, begins + outages.lasts);
        match with_room {
            Some((_, list)) => list.push(interval),
            None => lists.push((outages, vec![interval])),
        }
    }
    groups.extend(lists.into_iter().map(|(like, list)| OutageGroup {
        times: Times::Listed(list.into()),
        sending: like.sending,
        in_flight: like.in_flight,
    }));
    groups
}

/// Returns until when transmission is held, if it is.
pub(crate) fn held(all: &[OutageGroup], at: Time) -> Option<Time> {
    let holding = all.iter().filter(|of| of.sending == Sending::Held);
    holding.filter_map(|outages| outages.at(at).ok()).max()
}

/// Returns when a packet arrives whose first bit is sent at `start` and its last at `departure`,
/// and whether it is lost.
pub(crate) fn passes(
    all: &[OutageGroup],
    start: Time,
    departure: Time,
    arrival: Time,
) -> (Time, bool) {
    let mut lost = false;
    let mut arrival = arrival;
    // A packet held by one outage may meet the next.
    loop {
        let before = arrival;
        for outages in all {
            let Some(begins) = outages.next(start).filter(|begins| *begins < arrival) else {
                continue;
            };
            match outages.in_flight {
                InFlight::Arrive => {}
                InFlight::Lost => lost = true,
                InFlight::Held => {
                    let mut begins = Some(begins);
                    while let Some(down) = begins.filter(|down| *down < arrival) {
                        arrival = arrival.max(outages.at(down).unwrap_or(down));
                        begins = outages.next(down).filter(|_| arrival <= Time::LAST);
                    }
                }
            }
        }
        if arrival == before {
            break;
        }
    }
    lost |= all.iter().any(|outages| {
        outages.sending == Sending::Lost
            && (outages.at(start).is_ok()
                || outages.next(start).is_some_and(|begins| begins < departure))
    });
    (arrival, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_and_up_periods_alternate() {
        let ms = Span::from_millis;
        let at = |milliseconds| Time::ZERO + ms(milliseconds);
        let every = Outages {
            at: ms(10),
            lasts: ms(5),
            every: Some(ms(100)),
            sending: Sending::Held,
            in_flight: InFlight::Lost,
        };
        assert_eq!(every.at(at(0)), Err(Some(at(10))));
        assert_eq!(every.at(at(10)), Ok(at(15)));
        assert_eq!(every.at(at(15)), Err(Some(at(110))));
        assert_eq!(every.at(at(1_012)), Ok(at(1_015)));
        assert_eq!(every.next(at(9)), Some(at(10)));
        assert_eq!(every.next(at(10)), Some(at(110)));
        let once = Outages {
            every: None,
            ..every
        };
        assert_eq!(once.at(at(14)), Ok(at(15)));
        assert_eq!(once.at(at(15)), Err(None));
        assert_eq!(once.next(at(10)), None);
    }

    #[test]
    fn a_list_equals_its_outages_one_by_one() {
        let ms = Span::from_millis;
        let at = |milliseconds| Time::ZERO + ms(milliseconds);
        let single = |begins, lasts, sending| Outages {
            at: ms(begins),
            lasts: ms(lasts),
            every: None,
            sending,
            in_flight: InFlight::Held,
        };
        // The second overlaps the first, and the fourth has another effect.
        let all = [
            single(100, 50, Sending::Held),
            single(140, 30, Sending::Held),
            single(200, 10, Sending::Held),
            single(205, 20, Sending::Lost),
            single(300, 1, Sending::Held),
        ];
        let groups = grouped(&all);
        assert_eq!(groups.len(), 3);
        for now in (0..320).map(at) {
            let of_one = all.iter().filter(|of| of.sending == Sending::Held);
            let end = of_one.filter_map(|of| of.at(now).ok()).max();
            assert_eq!(held(&groups, now), end, "{now:?}");
            let next = all.iter().filter_map(|of| of.next(now)).min();
            assert_eq!(
                groups.iter().filter_map(|of| of.next(now)).min(),
                next,
                "{now:?}"
            );
        }
    }
}
