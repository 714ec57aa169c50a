//! Reference model: the same rules computed for every frame of every terminal, without caching.
//! Capacity is in bit/s times nanoseconds; times are not rounded.

use super::*;

const BYTE: u128 = 8_000_000_000;

pub(super) struct Walked {
    /// Times in nanoseconds at which each packet's first and last bit were sent.
    pub(super) starts: Vec<Option<f64>>,
    pub(super) departures: Vec<Option<f64>>,
    pub(super) asked_by_volume: Vec<u128>,
    /// Capacity granted to each terminal in a mode that its path supported.
    pub(super) granted: Vec<u128>,
    pub(super) constant: Vec<u128>,
    pub(super) faded: Vec<u128>,
    pub(super) requests_lost: Vec<u64>,
}

/// A path: its rate over time in nanoseconds and bit/s, and its outages.
#[derive(Clone, Default, Debug)]
pub(super) struct Sky {
    pub(super) steps: Vec<(u64, u64)>,
    pub(super) away: Vec<Away>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Away {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) every: Option<u64>,
    pub(super) sending: Sending,
    pub(super) in_flight: InFlight,
}

impl Away {
    /// Returns all outages up to a time.
    pub(super) fn all(self, until: u64) -> Vec<Self> {
        let (mut all, mut at) = (Vec::new(), 0);
        while self.from + at < until {
            all.push(Self {
                from: self.from + at,
                to: self.to + at,
                every: None,
                ..self
            });
            at += self.every.unwrap_or(until);
        }
        all
    }
}

impl Sky {
    fn rate(&self, at: u128, own: u64) -> u128 {
        let mut past = self
            .steps
            .iter()
            .filter(|(from, _)| u128::from(*from) <= at);
        u128::from(past.next_back().map_or(own, |(_, rate)| *rate))
    }

    /// Returns when data sent at an instant arrive, if they do.
    fn passes(&self, sent: u128, delay: u128) -> Option<u128> {
        let mut arrival = sent + delay;
        loop {
            let before = arrival;
            for away in &self.away {
                let (from, to) = (u128::from(away.from), u128::from(away.to));
                if away.sending == Sending::Lost && from <= sent && sent < to {
                    return None;
                }
                if sent < from && from < arrival {
                    match away.in_flight {
                        InFlight::Arrive => {}
                        InFlight::Lost => return None,
                        InFlight::Held => arrival = arrival.max(to),
                    }
                }
            }
            if arrival == before {
                return Some(arrival);
            }
        }
    }

    fn holds(&self, at: u128) -> Option<u128> {
        let holding = self.away.iter().filter(|away| {
            away.sending == Sending::Held && u128::from(away.from) <= at && at < u128::from(away.to)
        });
        holding.map(|away| u128::from(away.to)).max()
    }
}

#[derive(Clone, Copy, Default)]
struct Asked {
    /// The frame that it is for.
    frame: u64,
    by_rate: u128,
    by_volume: u128,
}

/// Shares `left` equally, smallest demand first.
fn fill(wants: &[u128], mut left: u128) -> Vec<u128> {
    let mut given = vec![0; wants.len()];
    let mut open: Vec<usize> = (0..wants.len()).collect();
    while !open.is_empty() {
        let least = open.iter().copied().min_by_key(|one| (wants[*one], *one));
        let least = least.expect("not empty");
        let share = left / open.len() as u128;
        given[least] = wants[least].min(share);
        left -= given[least];
        open.retain(|one| *one != least);
    }
    given
}

pub(super) fn walk(
    carrier: CarrierSettings,
    terminals: &[TerminalSettings],
    skies: &[Sky],
    offers: &[Offer],
    frames: u64,
) -> Walked {
    let count = terminals.len();
    let span = u128::from(carrier.frame.as_nanos());
    let per_frame =
        |rate: Option<BitRate>| rate.map_or(0, |of| u128::from(of.bits_per_second()) * span);
    let farthest = terminals
        .iter()
        .map(|of| of.grant_delay)
        .max()
        .unwrap_or_default();
    let lags: Vec<u64> = terminals
        .iter()
        .map(|of| {
            let wait = of.request_delay + carrier.processing + farthest;
            wait.as_nanos().div_ceil(carrier.frame.as_nanos()).max(1)
        })
        .collect();
    // Per terminal: all requests, the time at which it detects lost ones, and the volume granted.
    let mut asked: Vec<Vec<Asked>> = vec![Vec::new(); count];
    let mut heard: Vec<Vec<Asked>> = vec![Vec::new(); count];
    let mut unheard: Vec<Vec<(u64, u128)>> = vec![Vec::new(); count];
    let mut given = vec![0_u128; count];
    let mut granted = vec![0_u128; count];
    let mut all_constant = vec![0_u128; count];
    let mut faded = vec![0_u128; count];
    // Remaining part of each packet.
    let mut to_go: Vec<u128> = offers
        .iter()
        .map(|(.., length)| u128::from(*length) * BYTE)
        .collect();
    let mut starts = vec![None; offers.len()];
    let mut departures = vec![None; offers.len()];
    for frame in 0..frames {
        let start = u128::from(frame) * span;
        // Modes: the plan's knowledge, and the path's capability.
        let own: Vec<u128> = terminals
            .iter()
            .map(|of| u128::from(of.rate.bits_per_second()))
            .collect();
        let path: Vec<u128> = (0..count)
            .map(|one| skies[one].rate(start, own[one] as u64))
            .collect();
        let known: Vec<u128> = (0..count)
            .map(|one| {
                let heard = u128::from(frame.saturating_sub(lags[one])) * span;
                skies[one].rate(heard, own[one] as u64)
            })
            .collect();
        let on_air = |one: usize, bits: u128| match known[one] {
            0 => 0,
            known => (bits * own[one]).div_ceil(known),
        };
        let good_for = |one: usize, air: u128| air * known[one] / own[one];
        // The plan.
        let asked_for = |terminal: usize| heard[terminal].iter().filter(|of| of.frame <= frame);
        let owed = |terminal: usize| {
            asked_for(terminal).map(|of| of.by_volume).sum::<u128>() - given[terminal]
        };
        let whole = per_frame(Some(carrier.rate));
        let promised: Vec<u128> = (0..count)
            .map(|one| per_frame(terminals[one].constant).min(known[one] * span))
            .collect();
        let needs: Vec<u128> = (0..count).map(|one| on_air(one, promised[one])).collect();
        let all: u128 = needs.iter().sum();
        let constant: Vec<u128> = needs
            .iter()
            .map(|need| {
                if all > whole {
                    need * whole / all
                } else {
                    *need
                }
            })
            .collect();
        let mut left = whole - constant.iter().sum::<u128>();
        let most: Vec<u128> = (0..count)
            .map(|one| {
                if known[one] == 0 {
                    0
                } else {
                    own[one] * span - constant[one]
                }
            })
            .collect();
        // Of requests that arrive together, the last one determines the rate.
        let rate_now = |one: usize| {
            let mut now = asked_for(one).filter(|of| of.frame == frame);
            now.next_back().map_or(0, |of| of.by_rate)
        };
        let wants: Vec<u128> = (0..count)
            .map(|one| on_air(one, rate_now(one)).min(most[one]))
            .collect();
        let all: u128 = wants.iter().sum();
        let by_rate: Vec<u128> = wants
            .iter()
            .map(|want| if all > left { want * left / all } else { *want })
            .collect();
        left -= by_rate.iter().sum::<u128>();
        let room = |one: usize| most[one] - by_rate[one];
        let wants: Vec<u128> = (0..count)
            .map(|one| on_air(one, owed(one)).min(room(one)))
            .collect();
        let by_volume = fill(&wants, left);
        left -= by_volume.iter().sum::<u128>();
        let wants: Vec<u128> = (0..count)
            .map(|one| {
                if terminals[one].free {
                    room(one) - by_volume[one]
                } else {
                    0
                }
            })
            .collect();
        let free = fill(&wants, left);
        let air: Vec<u128> = (0..count)
            .map(|one| constant[one] + by_rate[one] + by_volume[one] + free[one])
            .collect();
        assert!(air.iter().sum::<u128>() <= whole);
        let kept = |one: usize, bits: u128| {
            if path[one] < known[one] {
                bits * path[one] / known[one]
            } else {
                bits
            }
        };
        let constant: Vec<u128> = (0..count)
            .map(|one| good_for(one, constant[one]).min(promised[one]))
            .collect();
        let volume: Vec<u128> = (0..count)
            .map(|one| good_for(one, by_volume[one]).min(owed(one)))
            .collect();
        let parts = |one: usize| {
            [
                constant[one],
                good_for(one, by_rate[one]).min(rate_now(one)),
                volume[one],
                good_for(one, free[one]),
            ]
        };
        let grants: Vec<u128> = (0..count)
            .map(|one| parts(one).iter().map(|part| kept(one, *part)).sum())
            .collect();
        for one in 0..count {
            granted[one] += grants[one];
            all_constant[one] += kept(one, constant[one]);
            faded[one] += parts(one).iter().sum::<u128>() - grants[one];
        }
        // Requests. Packets that arrive with the frame are too late.
        for one in 0..count {
            given[one] += volume[one];
            let mine = |index: &usize| offers[*index].1 == one;
            let came = |index: &usize| u128::from(offers[*index].0.as_nanos());
            let earlier = (0..offers.len()).filter(mine).filter(|of| came(of) < start);
            let backlog: u128 = earlier.clone().map(|of| to_go[of]).sum();
            let arrived: u128 = earlier
                .filter(|of| came(of) + span >= start)
                .map(|of| u128::from(offers[of].2) * BYTE)
                .sum();
            let coming: u128 = asked[one]
                .iter()
                .filter(|of| of.frame > frame)
                .map(|of| of.by_rate)
                .sum();
            let all_asked: u128 = asked[one].iter().map(|of| of.by_volume).sum();
            let vain: u128 = unheard[one]
                .iter()
                .filter(|(due, _)| *due <= frame)
                .map(|(_, volume)| volume)
                .sum();
            let to_come = grants[one] + coming + (all_asked - given[one] - vain);
            let missing = backlog.saturating_sub(to_come);
            let most = per_frame(terminals[one].rate_based);
            let by_rate = missing
                .max(arrived.saturating_sub(kept(one, constant[one])))
                .min(most);
            let by_volume = if terminals[one].volume_based {
                missing.saturating_sub(by_rate)
            } else {
                0
            };
            if path[one] == 0 || skies[one].holds(start).is_some() || by_rate + by_volume == 0 {
                continue;
            }
            let delay = u128::from(terminals[one].request_delay.as_nanos());
            let back = u128::from((carrier.processing + farthest).as_nanos());
            let expected = frame + lags[one];
            let heeded = skies[one].passes(start, delay).map(|arrival| {
                let plan = (arrival + back).div_ceil(span) as u64;
                plan.max(frame + 1)
            });
            let request = |frame: u64| Asked {
                frame,
                by_rate,
                by_volume,
            };
            match heeded {
                Some(heeded) => {
                    heard[one].push(request(heeded));
                    asked[one].push(request(heeded));
                }
                None => {
                    asked[one].push(request(expected));
                    unheard[one].push((expected, by_volume));
                }
            }
        }
        // Transmissions: bursts in sequence on a line as long as all carriers together.
        let mut line = 0_u128;
        for one in 0..count {
            // Its place has the length of its carrier time; its data follow from its mode.
            let (begins, takes) = (line % span, (air[one] + own[one] / 2) / own[one]);
            line += takes;
            let speed = known[one].min(path[one]);
            if speed == 0 {
                continue;
            }
            let tail = grants[one].min((span - begins) * speed);
            let parts = [(start, grants[one] - tail), (start + begins, tail)];
            for (from, carries) in parts {
                let mut used = 0;
                for index in (0..offers.len()).filter(|index| offers[*index].1 == one) {
                    // Capacity that passed before the packet arrived is lost.
                    let came = u128::from(offers[index].0.as_nanos());
                    while to_go[index] > 0 {
                        used = carries.min(used.max(came.saturating_sub(from) * speed));
                        if used == carries {
                            break;
                        }
                        // Capacity that passes during an outage is lost as well.
                        let away = skies[one].away.iter();
                        let away = away.filter(|away| away.sending == Sending::Held);
                        let place = |at: u64| u128::from(at).saturating_sub(from) * speed;
                        let gaps: Vec<(u128, u128)> =
                            away.map(|of| (place(of.from), place(of.to))).collect();
                        if let Some((_, over)) =
                            gaps.iter().find(|(gap, over)| *gap <= used && used < *over)
                        {
                            used = carries.min(*over);
                            continue;
                        }
                        let next = gaps.iter().map(|(gap, _)| *gap).filter(|gap| *gap > used);
                        let until = next.min().unwrap_or(carries).min(carries);
                        let at = |used: u128| from as f64 + used as f64 / speed as f64;
                        starts[index] = starts[index].or(Some(at(used)));
                        let goes = to_go[index].min(until - used);
                        used += goes;
                        to_go[index] -= goes;
                        if to_go[index] == 0 {
                            departures[index] = Some(at(used));
                        }
                    }
                    if to_go[index] > 0 {
                        break;
                    }
                }
            }
        }
    }
    let asked_by_volume = asked
        .iter()
        .map(|all| all.iter().map(|of| of.by_volume).sum())
        .collect();
    let requests_lost = unheard.iter().map(|all| all.len() as u64).collect();
    Walked {
        starts,
        departures,
        asked_by_volume,
        granted,
        constant: all_constant,
        faded,
        requests_lost,
    }
}
