//! The same rules, the long way: every frame of every terminal, one after the other, and nothing remembered that could be
//! looked up. Capacity is in bit/s times nanoseconds, times are not rounded.

use super::*;

const BYTE: u128 = 8_000_000_000;

pub(super) struct Walked {
    /// When each packet's last bit went, in nanoseconds.
    pub(super) departures: Vec<Option<f64>>,
    pub(super) asked_by_volume: Vec<u128>,
}

#[derive(Clone, Copy, Default)]
struct Asked {
    /// The frame that it is for.
    frame: u64,
    by_rate: u128,
    by_volume: u128,
}

/// Shares `left` evenly, a little at a time: whoever wants least is served first.
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
    // Of each terminal: all that it has asked for, and been given by volume.
    let mut asked: Vec<Vec<Asked>> = vec![Vec::new(); count];
    let mut given = vec![0_u128; count];
    // Of each packet, what is to go.
    let mut to_go: Vec<u128> = offers
        .iter()
        .map(|(.., length)| u128::from(*length) * BYTE)
        .collect();
    let mut departures = vec![None; offers.len()];
    for frame in 0..frames {
        let start = u128::from(frame) * span;
        // The plan.
        let asked_for = |terminal: usize| asked[terminal].iter().filter(|of| of.frame <= frame);
        let owed = |terminal: usize| {
            asked_for(terminal).map(|of| of.by_volume).sum::<u128>() - given[terminal]
        };
        let constant: Vec<u128> = terminals.iter().map(|of| per_frame(of.constant)).collect();
        let mut left = per_frame(Some(carrier.rate)) - constant.iter().sum::<u128>();
        let own: Vec<u128> = terminals
            .iter()
            .map(|of| per_frame(Some(of.rate)))
            .collect();
        let wants: Vec<u128> = (0..count)
            .map(|one| {
                let now = asked_for(one).filter(|of| of.frame == frame);
                now.map(|of| of.by_rate)
                    .sum::<u128>()
                    .min(own[one] - constant[one])
            })
            .collect();
        let all: u128 = wants.iter().sum();
        let by_rate: Vec<u128> = wants
            .iter()
            .map(|want| if all > left { want * left / all } else { *want })
            .collect();
        left -= by_rate.iter().sum::<u128>();
        let room = |one: usize| own[one] - constant[one] - by_rate[one];
        let wants: Vec<u128> = (0..count).map(|one| owed(one).min(room(one))).collect();
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
        let grants: Vec<u128> = (0..count)
            .map(|one| constant[one] + by_rate[one] + by_volume[one] + free[one])
            .collect();
        assert!(grants.iter().sum::<u128>() <= per_frame(Some(carrier.rate)));
        // What each asks for. What comes with the frame comes too late.
        for one in 0..count {
            given[one] += by_volume[one];
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
            let to_come = grants[one] + coming + (all_asked - given[one]);
            let missing = backlog.saturating_sub(to_come);
            let most = per_frame(terminals[one].rate_based);
            let by_rate = missing.max(arrived.saturating_sub(constant[one])).min(most);
            let by_volume = if terminals[one].volume_based {
                missing.saturating_sub(by_rate)
            } else {
                0
            };
            asked[one].push(Asked {
                frame: frame + lags[one],
                by_rate,
                by_volume,
            });
        }
        // What each sends: bursts one behind the other on a line as long as all carriers together.
        let mut line = 0_u128;
        for one in 0..count {
            let speed = u128::from(terminals[one].rate.bits_per_second());
            let (begins, takes) = (line % span, (grants[one] + speed / 2) / speed);
            line += takes;
            let tail = grants[one].min((span - begins) * speed);
            let parts = [(start, grants[one] - tail), (start + begins, tail)];
            for (from, carries) in parts {
                let mut used = 0;
                for index in (0..offers.len()).filter(|index| offers[*index].1 == one) {
                    if to_go[index] == 0 {
                        continue;
                    }
                    // What has passed before it came is gone.
                    let came = u128::from(offers[index].0.as_nanos());
                    used = carries.min(used.max(came.saturating_sub(from) * speed));
                    let goes = to_go[index].min(carries - used);
                    used += goes;
                    to_go[index] -= goes;
                    if goes > 0 && to_go[index] == 0 {
                        departures[index] = Some(from as f64 + used as f64 / speed as f64);
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
    Walked {
        departures,
        asked_by_volume,
    }
}
