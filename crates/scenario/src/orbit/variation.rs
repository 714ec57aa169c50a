//! Variation of a path's delay and losses from slot to slot, beyond what the geometry gives.

use bentpipe_link::{LossRates, Profile};
use bentpipe_types::{Distribution, RandomStream, Span, Time};
use serde_json::{Value, json};

use crate::error::quoted;
use crate::hints::one_of;
use crate::orbit::schema::{VariationFile, VariationTable};
use crate::quantity::random::RandomLength;
use crate::quantity::time::{LONGEST_DELAY, length_within};
use crate::suggest::suggest;

/// Variation of a path's delay and losses.
///
/// Invariant: `spike_before + spike_after` is less than a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variation {
    /// Name of the preset that it is from.
    pub preset: Option<&'static str>,
    /// Delay of each slot, the same in both directions.
    pub offset: Distribution,
    /// Delay that changes within a slot, in each direction on its own.
    pub jitter: Distribution,
    /// Time between two changes of the jitter.
    pub jitter_every: Span,
    /// Delay around each boundary of slots, in each direction.
    pub spike: Distribution,
    /// Duration of the spike before the boundary.
    pub spike_before: Span,
    /// Duration of the spike after the boundary.
    pub spike_after: Span,
    /// Share of packets lost within a slot.
    pub loss: f64,
    /// Share of packets lost during a spike.
    pub boundary_loss: f64,
}

const NONE: Distribution = Distribution::Constant(0.0);

/// Default time between two changes of the jitter: that of LeoReplayer's delays is 10 ms.
const JITTER_EVERY: Span = Span::from_millis(20);

/// Default duration of a spike before and after a boundary (Casparsen et al., 2026).
const SPIKE_BEFORE: Span = Span::from_millis(75);
const SPIKE_AFTER: Span = Span::from_millis(140);

/// Most points of a delay with jitter.
const MOST_POINTS: u64 = 8_000_000;

/// A published measurement.
struct Preset {
    name: &'static str,
    description: &'static str,
    source: &'static str,
    variation: Variation,
}

const MILLISECOND: f64 = 1e-3;

const fn uniform_ms(low: f64, high: f64) -> Distribution {
    Distribution::Uniform(low * MILLISECOND, high * MILLISECOND)
}

const PRESETS: [Preset; 3] = [
    Preset {
        name: "starlink-europe-2023",
        description: "Round trips of a terminal in Osnabrück to its point of presence, September 2023 to March 2024",
        source: "Laniewski et al., WetLinks, TMA 2024, figure 7b (quartiles, to which the offset was fitted); Casparsen et al., arXiv 2601.08439 (duration of spikes); Huston, APNIC 2024 (height of spikes)",
        variation: Variation {
            preset: Some("starlink-europe-2023"),
            offset: uniform_ms(5.0, 16.0),
            jitter: Distribution::Exponential(0.5 * MILLISECOND),
            jitter_every: JITTER_EVERY,
            spike: uniform_ms(15.0, 25.0),
            spike_before: SPIKE_BEFORE,
            spike_after: SPIKE_AFTER,
            loss: 0.0,
            boundary_loss: 0.0,
        },
    },
    Preset {
        name: "starlink-australia-2024",
        description: "Jitter of 6.7 ms between round trips, spikes of 30 to 50 ms, and 1.5% of the packets lost",
        source: "Huston, A transport protocol's view of Starlink, APNIC 2024 (jitter, spikes, losses of 1 to 2%; slots of 30 to 50 ms, rounded); Casparsen et al., arXiv 2601.08439 (duration of spikes); Kassem et al., IMC 2022 (up to half of the packets lost at handovers)",
        variation: Variation {
            preset: Some("starlink-australia-2024"),
            offset: uniform_ms(3.0, 13.0),
            jitter: uniform_ms(0.0, 14.4),
            jitter_every: JITTER_EVERY,
            spike: uniform_ms(15.0, 25.0),
            spike_before: SPIKE_BEFORE,
            spike_after: SPIKE_AFTER,
            loss: 0.008,
            boundary_loss: 0.5,
        },
    },
    Preset {
        name: "starlink-replayer-2025",
        description: "A quiet downlink: one-way delays of 10 to 12 ms within slots, and peaks of 30 to 68 ms at their boundaries",
        source: "Lai et al., LeoCC, SIGCOMM 2025: example trace of LeoReplayer, to which offset, jitter and spikes were fitted, and its loss rate of the downlink",
        variation: Variation {
            preset: Some("starlink-replayer-2025"),
            offset: uniform_ms(5.1, 7.3),
            jitter: Distribution::Exponential(0.75 * MILLISECOND),
            jitter_every: Span::from_millis(10),
            spike: uniform_ms(20.0, 55.0),
            spike_before: Span::ZERO,
            spike_after: Span::from_millis(40),
            loss: 0.000_1,
            boundary_loss: 0.000_1,
        },
    },
];

/// Returns the presets of variation: name, description and source.
#[must_use]
pub fn variations() -> Vec<(&'static str, &'static str, &'static str)> {
    let presets = PRESETS.iter();
    presets
        .map(|preset| (preset.name, preset.description, preset.source))
        .collect()
}

impl Variation {
    /// Returns a variation of slots only.
    const fn of_slots(offset: Distribution) -> Self {
        Self {
            preset: None,
            offset,
            jitter: NONE,
            jitter_every: JITTER_EVERY,
            spike: NONE,
            spike_before: SPIKE_BEFORE,
            spike_after: SPIKE_AFTER,
            loss: 0.0,
            boundary_loss: 0.0,
        }
    }

    /// Resolves the key `variation` of a path.
    pub(crate) fn resolve(
        file: &VariationFile,
        slot: Span,
        duration: Span,
    ) -> Result<Self, (&'static str, String)> {
        let variation = match file {
            VariationFile::Slots(RandomLength(offset)) => Self::of_slots(*offset),
            VariationFile::Preset(name) => preset(name).map_err(|message| ("", message))?,
            VariationFile::Table(table) => of_table(table, slot)?,
        };
        let spike = variation.spike_before + variation.spike_after;
        if variation.has_spikes() && spike >= slot {
            let message = "expected less than a slot, together with spike_before";
            return Err(("spike_after", message.to_owned()));
        }
        if variation.jitter != NONE {
            let points = 2 * duration.as_nanos() / variation.jitter_every.as_nanos().max(1);
            if points > MOST_POINTS {
                let message = "expected a longer time: the jitter of this run changes more than 4 million times";
                return Err(("jitter_every", message.to_owned()));
            }
        }
        Ok(variation)
    }

    fn has_spikes(&self) -> bool {
        self.spike != NONE || self.boundary_loss != self.loss
    }

    /// Returns the delay that it adds on average.
    pub(crate) fn mean(&self, slot: Span) -> Span {
        let spike = (self.spike_before + self.spike_after).as_secs_f64() / slot.as_secs_f64();
        let seconds = self.offset.mean() + self.jitter.mean() + self.spike.mean() * spike;
        Span::from_secs_f64(seconds)
    }

    /// Returns the loss rates over time, or `None` if nothing is lost.
    pub(crate) fn losses(&self, slot: Span, duration: Span) -> Option<Profile<LossRates>> {
        if self.loss == 0.0 && self.boundary_loss == 0.0 {
            return None;
        }
        let rates = |packet| LossRates { packet, bit: 0.0 };
        let mut steps = vec![(Span::ZERO, rates(self.loss))];
        let mut boundary = slot;
        while self.boundary_loss != self.loss && boundary < duration {
            steps.push((boundary - self.spike_before, rates(self.boundary_loss)));
            steps.push((boundary + self.spike_after, rates(self.loss)));
            boundary += slot;
        }
        Profile::new(steps, None)
    }

    /// Returns a delay with this variation in place of its mean, drawn from the seed. The offset of
    /// a slot is the same in both directions (`way`); jitter and spikes are not.
    pub(crate) fn vary(
        &self,
        delay: &Profile<Span>,
        slot: Span,
        duration: Span,
        random: &dyn Fn(&str) -> RandomStream,
        way: &str,
    ) -> Option<Profile<Span>> {
        let added = self.added(slot, duration, random, way);
        let mean = self.mean(slot);
        let moment = Span::from_nanos(1);
        let mut times: Vec<Span> = delay.steps().iter().map(|(at, _)| *at).collect();
        times.extend(added.iter().map(|(at, _)| *at));
        // The delay jumps at these times.
        times.extend(added[1..].iter().map(|(at, _)| *at - moment));
        times.sort_unstable();
        times.dedup();
        let mut place = 0;
        let points: Vec<(Span, Span)> = times
            .into_iter()
            .map(|at| {
                while added.get(place + 1).is_some_and(|(next, _)| *next <= at) {
                    place += 1;
                }
                let geometry = delay.value(Time::ZERO + at).unwrap_or(mean);
                (at, geometry.saturating_sub(mean) + added[place].1)
            })
            .collect();
        Profile::ramps_through(points, None)
    }

    /// Returns the further delay over time, as steps from the start.
    fn added(
        &self,
        slot: Span,
        duration: Span,
        random: &dyn Fn(&str) -> RandomStream,
        way: &str,
    ) -> Vec<(Span, Span)> {
        let mut offsets = random("slot variation");
        let mut jitters = random(&format!("slot jitter {way}"));
        let mut spikes = random(&format!("slot spikes {way}"));
        let draw = |of: Distribution, random: &mut RandomStream| of.span(random).min(LONGEST_DELAY);
        let mut offset = draw(self.offset, &mut offsets);
        let mut jitter = draw(self.jitter, &mut jitters);
        let mut spike = Span::ZERO;
        let mut steps = vec![(Span::ZERO, offset + jitter)];
        let never = Span::from_nanos(u64::MAX);
        let mut boundary = slot;
        let mut next_jitter = if self.jitter == NONE {
            never
        } else {
            self.jitter_every
        };
        let [mut spike_begins, mut spike_ends] = [never, never];
        if self.spike != NONE {
            spike_begins = boundary - self.spike_before;
        }
        loop {
            let at = boundary.min(next_jitter).min(spike_begins).min(spike_ends);
            if at >= duration {
                return steps;
            }
            if at == spike_begins {
                spike = draw(self.spike, &mut spikes);
                (spike_begins, spike_ends) = (never, boundary + self.spike_after);
            }
            if at == spike_ends {
                spike = Span::ZERO;
                (spike_begins, spike_ends) = (boundary - self.spike_before, never);
            }
            if at == boundary {
                offset = draw(self.offset, &mut offsets);
                boundary += slot;
                // The spike around this boundary ends after it.
                if spike_ends != never {
                    spike_ends = at + self.spike_after;
                }
            }
            if at == next_jitter {
                jitter = draw(self.jitter, &mut jitters);
                next_jitter += self.jitter_every;
            }
            steps.push((at, offset + jitter + spike));
        }
    }

    /// Returns it as data: the distribution, if only slots vary.
    pub(crate) fn data(&self) -> Value {
        let text = |of: Distribution| RandomLength(of).to_string();
        if *self == Self::of_slots(self.offset) {
            return json!(text(self.offset));
        }
        json!({
            "preset": self.preset,
            "offset": text(self.offset),
            "jitter": text(self.jitter),
            "jitter_every_s": self.jitter_every.as_secs_f64(),
            "spike": text(self.spike),
            "spike_before_s": self.spike_before.as_secs_f64(),
            "spike_after_s": self.spike_after.as_secs_f64(),
            "packet_loss_rate": self.loss,
            "boundary_loss_rate": self.boundary_loss,
        })
    }
}

fn preset(name: &str) -> Result<Variation, String> {
    let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.map(|preset| preset.variation).ok_or_else(|| {
        let hint = suggest(name, known.iter().copied()).map_or(String::new(), |near| {
            format!("; did you mean {}?", quoted(near))
        });
        format!("expected {}, got {}{hint}", one_of(&known), quoted(name))
    })
}

fn of_table(table: &VariationTable, slot: Span) -> Result<Variation, (&'static str, String)> {
    let mut variation = match &table.preset {
        Some(name) => preset(name).map_err(|message| ("preset", message))?,
        None => Variation::of_slots(NONE),
    };
    let replace = |of: &mut Distribution, given: Option<RandomLength>| {
        if let Some(RandomLength(given)) = given {
            *of = given;
        }
    };
    replace(&mut variation.offset, table.offset);
    replace(&mut variation.jitter, table.jitter);
    replace(&mut variation.spike, table.spike);
    let length = |key, given, default, range| length_within(key, given, default, range);
    let shortest = Span::from_millis(1);
    variation.jitter_every = length(
        "jitter_every",
        table.jitter_every,
        variation.jitter_every,
        [shortest, slot],
    )?;
    variation.spike_before = length(
        "spike_before",
        table.spike_before,
        variation.spike_before,
        [Span::ZERO, slot],
    )?;
    variation.spike_after = length(
        "spike_after",
        table.spike_after,
        variation.spike_after,
        [shortest, slot],
    )?;
    if let Some(loss) = table.packet_loss_rate {
        variation.loss = loss.get();
    }
    match table.boundary_loss_rate {
        Some(loss) => variation.boundary_loss = loss.get(),
        None if table.preset.is_none() => variation.boundary_loss = variation.loss,
        None => {}
    }
    if variation.jitter == NONE && table.jitter_every.is_some() {
        let message = "has no effect: there is no jitter".to_owned();
        return Err(("jitter_every", message));
    }
    Ok(variation)
}
