//! Outages of a link, once or periodic: an eclipse, a handover, a tunnel.

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

    /// Returns the start of the first outage after `now`.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        match self.at(now) {
            Err(next) => next,
            // An outage is shorter than the time until the next.
            Ok(end) => self.at(end).err().flatten(),
        }
    }
}

/// Returns until when transmission is held, if it is.
pub(crate) fn held(all: &[Outages], at: Time) -> Option<Time> {
    let holding = all.iter().filter(|of| of.sending == Sending::Held);
    holding.filter_map(|outages| outages.at(at).ok()).max()
}

/// Returns when a packet arrives whose first bit is sent at `start` and its last at `departure`,
/// and whether it is lost.
pub(crate) fn passes(all: &[Outages], start: Time, departure: Time, arrival: Time) -> (Time, bool) {
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
}
