//! The path of a link over satellites, as changes of its delay and outages.

use bentpipe_link::{Changes, LossRates, Outages, Profile};
use bentpipe_orbits::{LIGHT, PathRequest, Routing, Sample, Selection, Site, Stretch, timeline};
use bentpipe_types::{RandomStream, Span};

use crate::changes::outages::{in_flight, sending};
use crate::error::quoted;
use crate::fault::{Fault, Segment, fault};
use crate::link::settings::Way;
use crate::orbit::schema::{OverName, PathFile, SelectName};
use crate::orbit::settings::{LinkPath, Orbits};
use crate::orbit::variation::Variation;
use crate::quantity::time::{Length, length_within};
use crate::suggest::suggest;

/// Default time between two decisions: Starlink's (Mohan et al., WWW 2024).
const SLOT: Span = Span::from_secs(15);

/// Default time between two samples. At 550 km, linear interpolation is then within 0.1 us.
const STEP: Span = Span::from_secs(1);

/// Shortest outage.
const SHORTEST_OUTAGE: Span = Span::from_millis(1);

/// Resolves the path of a link, and computes its satellites over time.
pub(crate) fn resolve_path(
    link: &str,
    file: &PathFile,
    orbits: &Orbits,
    duration: Span,
) -> Result<LinkPath, Fault> {
    let wrong = |key: &str, message: String| {
        let keys = ["links", link, "path", key];
        fault(if key.is_empty() { &keys[..3] } else { &keys }, message)
    };
    let constellations = orbits.constellations.iter().map(|each| each.name.as_str());
    let constellation = find("constellation", &file.constellation, constellations)
        .map_err(|message| wrong("constellation", message))?;
    let sites = || orbits.sites.iter().map(|site| site.name.as_str());
    let from = find("site", &file.from, sites()).map_err(|message| wrong("from", message))?;
    if file.to.0.is_empty() {
        return Err(wrong(
            "to",
            r#"expected a site such as "gateway", got none"#.to_owned(),
        ));
    }
    let mut to = Vec::new();
    for (index, name) in file.to.0.iter().enumerate() {
        let found = find("site", name, sites()).map_err(|message| {
            if file.to.0.len() == 1 {
                return wrong("to", message);
            }
            let mut path = crate::fault::path(&["links", link, "path", "to"]);
            path.push(Segment::Index(index));
            Fault::new(path, message)
        })?;
        to.push(found);
    }
    let routing = match file.over.unwrap_or(OverName::BentPipe) {
        OverName::BentPipe => Routing::BentPipe,
        OverName::InterSatelliteLinks => Routing::InterSatellite,
    };
    let selection = match (file.select, routing) {
        (Some(SelectName::Highest), _) | (None, Routing::BentPipe) => Selection::Highest,
        (Some(SelectName::Longest), _) => Selection::Longest,
        (Some(SelectName::Shortest), _) | (None, Routing::InterSatellite) => Selection::Shortest,
    };
    let length = |key, given, default, range| {
        length_within(key, given, default, range).map_err(|(key, message)| wrong(key, message))
    };
    let an_hour = Span::from_secs(3600);
    let slot = length("slot", file.slot, SLOT, [Span::from_millis(100), an_hour])?;
    let steps = [Span::from_millis(10), Span::from_secs(60)];
    let step = length("step", file.step, STEP, steps)?;
    let outage = |key, given: Option<Length>, default: Span| {
        let lasts = length(key, given, default, [Span::ZERO, slot])?;
        if lasts > Span::ZERO && lasts < SHORTEST_OUTAGE {
            return Err(wrong(
                key,
                r#"expected "0 s", or "1 ms" or more"#.to_owned(),
            ));
        }
        Ok(lasts)
    };
    let handover = outage("handover", file.handover, Span::ZERO)?;
    let gateway_handover = outage("gateway_handover", file.gateway_handover, handover)?;
    let variation = match &file.variation {
        None => None,
        Some(of) => Some(
            Variation::resolve(of, slot, duration).map_err(|(key, message)| {
                let keys = ["links", link, "path", "variation", key];
                fault(if key.is_empty() { &keys[..4] } else { &keys }, message)
            })?,
        ),
    };
    let hysteresis = match file.hysteresis {
        None => 0.0,
        Some(_) if selection != Selection::Highest => {
            let message = r#"has no effect: only select = "highest" compares elevations"#;
            return Err(wrong("hysteresis", message.to_owned()));
        }
        Some(angle) => angle
            .within(0.0, 90.0)
            .map_err(|message| wrong("hysteresis", message))?,
    };
    let satellites = &orbits.constellations[constellation];
    let gateways: Vec<&Site> = to.iter().map(|index| &orbits.sites[*index]).collect();
    let request = PathRequest {
        constellation: &satellites.satellites,
        from: &orbits.sites[from],
        to: &gateways,
        routing,
        selection,
        slot: slot.as_secs_f64(),
        hysteresis,
        duration: duration.as_secs_f64(),
        step: step.as_secs_f64(),
    };
    let timeline = timeline(&request).map_err(|error| {
        let key = if routing == Routing::InterSatellite && satellites.satellites.mesh.is_none() {
            "over"
        } else {
            "step"
        };
        wrong(key, error.message)
    })?;
    if timeline
        .stretches
        .iter()
        .all(|stretch| stretch.route.is_none())
    {
        let ends = file
            .to
            .0
            .iter()
            .map(|name| quoted(name))
            .collect::<Vec<_>>();
        let message = format!(
            "no satellite of {} joins {} and {} at any time of the run",
            quoted(&file.constellation),
            quoted(&file.from),
            ends.join(" or ")
        );
        return Err(wrong("", message));
    }
    Ok(LinkPath {
        constellation,
        from,
        to,
        routing,
        selection,
        slot,
        hysteresis,
        extra_delay: file.extra_delay.map_or(Span::ZERO, |delay| delay.0),
        variation,
        handover,
        gateway_handover,
        sending: sending(file.sending),
        in_flight: in_flight(file.in_flight),
        es_n0_range: file
            .es_n0_range
            .map(|range| range.0)
            .or(satellites.altitude),
        duration,
        timeline,
    })
}

fn find<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, String> {
    if let Some(index) = known.clone().position(|each| each == name) {
        return Ok(index);
    }
    let hint = match suggest(name, known.clone()) {
        Some(near) => format!("; did you mean {}?", quoted(near)),
        None if known.clone().next().is_none() => {
            format!(": there is none, expected [{what}s.{name}]")
        }
        None => format!("; known: {}", known.collect::<Vec<_>>().join(", ")),
    };
    Err(format!("no {what} is named {}{hint}", quoted(name)))
}

/// Converts a time of a timeline.
fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9 + 0.5) as u64)
}

impl LinkPath {
    /// Adds the delay over time, and the outages, to a direction's changes. The delay must not be
    /// given otherwise.
    pub(crate) fn add_to(&self, changes: &mut Changes) {
        changes.delay = self.delays();
        if let Some(losses) = self.losses() {
            changes.losses = Some(losses);
        }
        changes.outages.extend(self.outages());
    }

    /// Returns the delay in addition to propagation, on average over the slots.
    pub(crate) fn further_delay(&self) -> Span {
        let mean = self.variation.map(|of| of.mean(self.slot));
        self.extra_delay + mean.unwrap_or(Span::ZERO)
    }

    /// Draws the variation of a direction's delay from the seed.
    pub(crate) fn vary(&self, changes: &mut Changes, link: &str, way: Way, seed: u64) {
        let (Some(variation), Some(profile)) = (self.variation, &changes.delay) else {
            return;
        };
        let random = |purpose: &str| RandomStream::new(seed, link, purpose);
        changes.delay = variation.vary(profile, self.slot, self.duration, &random, way.name());
    }

    /// Returns the delay over time. It is linear between samples, and changes at once at a
    /// handover.
    fn delays(&self) -> Option<Profile<Span>> {
        let mut points: Vec<(Span, Span)> = Vec::new();
        for stretch in &self.timeline.stretches {
            for sample in &stretch.samples {
                let delay = self.further_delay() + span(sample.length / LIGHT);
                let mut at = span(sample.at);
                // The first point also holds before it, and a jump takes a nanosecond.
                match points.last() {
                    None if at > Span::ZERO => points.push((Span::ZERO, delay)),
                    Some((before, _)) if at <= *before => at = *before + Span::from_nanos(1),
                    _ => {}
                }
                let jumps = sample.at == stretch.begins;
                if let Some((before, value)) = points.last().copied()
                    && jumps
                    && at > before + Span::from_nanos(1)
                {
                    // In a gap, the delay stays what it was.
                    points.push((at.saturating_sub(Span::from_nanos(1)), value));
                }
                points.push((at, delay));
            }
        }
        Profile::ramps_through(points, None)
    }

    /// Returns the loss rates of its variation over time, or `None` without losses.
    pub(crate) fn losses(&self) -> Option<Profile<LossRates>> {
        self.variation?.losses(self.slot, self.duration)
    }

    /// Returns a quantity at an instant, or `None` in a gap.
    pub(crate) fn value(&self, quantity: PathQuantity, at: Span) -> Option<f64> {
        let seconds = at.as_secs_f64();
        let stretches = &self.timeline.stretches;
        let place = stretches.partition_point(|stretch| stretch.begins <= seconds);
        let stretch = stretches.get(place.checked_sub(1)?)?;
        let route = stretch.route.as_ref()?;
        let samples = &stretch.samples;
        let after = samples.partition_point(|sample| sample.at <= seconds);
        let before = samples.get(after.saturating_sub(1))?;
        let after = samples.get(after).unwrap_or(before);
        let part = if after.at > before.at {
            (seconds - before.at) / (after.at - before.at)
        } else {
            0.0
        };
        let between = |of: fn(&Sample) -> f64| of(before) + part * (of(after) - of(before));
        Some(match quantity {
            PathQuantity::Delay => between(Sample::delay_s) + self.further_delay().as_secs_f64(),
            PathQuantity::Elevation => between(|sample| sample.elevation),
            PathQuantity::Range => between(|sample| sample.range),
            PathQuantity::Satellite => route.serving() as f64,
            PathQuantity::Satellites => route.satellites.len() as f64,
            PathQuantity::Gateway => route.gateway as f64,
        })
    }

    /// Returns the outages with their effects on packets.
    fn outages(&self) -> impl Iterator<Item = Outages> {
        self.interruptions().into_iter().map(|of| Outages {
            at: of.at,
            lasts: of.lasts,
            every: None,
            sending: self.sending,
            in_flight: self.in_flight,
        })
    }

    /// Returns the gaps and handovers with an outage.
    pub(crate) fn interruptions(&self) -> Vec<Interruption> {
        let mut found = Vec::new();
        let mut before: Option<&Stretch> = None;
        for stretch in &self.timeline.stretches {
            let gap = span(stretch.ends).saturating_sub(span(stretch.begins));
            let (kind, lasts) = match (&stretch.route, before.map(|before| &before.route)) {
                (None, _) => ("gap", gap),
                (Some(route), Some(Some(was))) if was.gateway != route.gateway => {
                    ("gateway-handover", self.gateway_handover)
                }
                (Some(route), Some(Some(was))) if was.is_handover_to(route) => {
                    ("handover", self.handover)
                }
                _ => ("", Span::ZERO),
            };
            if lasts >= SHORTEST_OUTAGE {
                let at = span(stretch.begins);
                found.push(Interruption { kind, at, lasts });
            }
            before = Some(stretch);
        }
        found
    }

    /// Returns the times at which another gateway than the one before begins to serve, also after a
    /// gap.
    pub(crate) fn gateway_changes(&self) -> Vec<Span> {
        let mut serving = None;
        let mut changes = Vec::new();
        for stretch in &self.timeline.stretches {
            let Some(route) = &stretch.route else {
                continue;
            };
            if serving.is_some_and(|serving| serving != route.gateway) {
                changes.push(span(stretch.begins));
            }
            serving = Some(route.gateway);
        }
        changes
    }

    /// Returns the attenuation of the terminal's signal over time in dB, relative to the distance
    /// for which its Es/N0 is given: it grows with the square of the distance.
    pub(crate) fn spreading(&self, reference: f64) -> Vec<(Span, f64)> {
        let samples = self
            .timeline
            .stretches
            .iter()
            .flat_map(|stretch| &stretch.samples);
        let mut steps: Vec<(Span, f64)> = Vec::new();
        for sample in samples {
            let at = span(sample.at);
            let decibels = (20.0 * libm::log10(sample.range / reference)).max(0.0);
            match steps.last_mut() {
                // The later sample of a handover counts.
                Some((before, value)) if *before == at => *value = decibels,
                _ => steps.push((at, decibels)),
            }
        }
        steps
    }
}

/// Declares the quantities of a path that probes can record.
macro_rules! path_quantities {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal in $unit:literal,)+) => {
        /// A quantity of a path over satellites.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum PathQuantity {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl PathQuantity {
            /// All quantities.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name in scenario files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the unit.
            #[must_use]
            pub fn unit(self) -> &'static str {
                match self {
                    $(Self::$variant => $unit,)+
                }
            }

            /// Returns the meaning: the documentation of the variant.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

path_quantities! {
    /// Delay in one direction as in the table `paths` of `bentpipe orbit`: propagation,
    /// `extra_delay`, and the mean of `variation`.
    Delay = "delay" in "s",
    /// Elevation of the serving satellite at the terminal.
    Elevation = "elevation" in "deg",
    /// Distance from the terminal to the serving satellite.
    Range = "range" in "m",
    /// Number of the serving satellite in its constellation, from 0.
    Satellite = "satellite" in "code",
    /// Satellites on the path.
    Satellites = "satellites" in "satellites",
    /// Number of the gateway in `to`, from 0.
    Gateway = "gateway" in "code",
}

/// A time at which a path carries nothing.
pub(crate) struct Interruption {
    pub(crate) kind: &'static str,
    pub(crate) at: Span,
    pub(crate) lasts: Span,
}
