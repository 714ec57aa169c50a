//! A link that goes away, once or over and over: an eclipse, a handover, a tunnel.

use bentpipe_types::{Span, Time};

/// When a direction is down, and what becomes of packets then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outages {
    /// When it first goes down.
    pub at: Span,
    /// For how long; less than `every`.
    pub lasts: Span,
    /// How often; none: once.
    pub every: Option<Span>,
    /// What the transmitter does meanwhile.
    pub sending: Sending,
    /// What becomes of packets that are on their way when it goes down.
    pub in_flight: InFlight,
}

/// What a transmitter does during an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// It waits: packets stay in the queue, and a transmission goes on afterwards.
    Held,
    /// It does not know, and sends on: what it sends, in part or as a whole, is lost.
    Lost,
}

/// What becomes of packets whose first bit has been sent and whose last has not arrived when an outage
/// begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFlight {
    /// They arrive, when they would have.
    Arrive,
    /// They are lost.
    Lost,
    /// They arrive when it is over, or when they would have if that is later.
    Held,
}

impl Outages {
    /// If it is down at `now`: when that ends. If it is up: when it next goes down, if ever.
    pub(crate) fn at(&self, now: Time) -> Result<Time, Option<Time>> {
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

    /// When it first goes down after `now`, not at it.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        match self.at(now) {
            Err(next) => next,
            // Not longer than it is until the next.
            Ok(end) => self.at(end).err().flatten(),
        }
    }
}

/// Until when nothing goes, if so.
pub(crate) fn held(all: &[Outages], at: Time) -> Option<Time> {
    let holding = all.iter().filter(|of| of.sending == Sending::Held);
    holding.filter_map(|outages| outages.at(at).ok()).max()
}

/// When something arrives whose first bit is sent at `start` and its last at `departure`, and whether it is lost.
pub(crate) fn passes(all: &[Outages], start: Time, departure: Time, arrival: Time) -> (Time, bool) {
    let mut lost = false;
    let mut arrival = arrival;
    // Who is held by one may meet the next.
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
                        arrival = arrival.max(down + outages.lasts);
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
    fn down_and_up_take_turns() {
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
}
