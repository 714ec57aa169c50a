//! Changes of a direction over time.

use bentpipe_link::{Changes, FadingSettings, InFlight, LossRates, Outages, Profile, RateCourse};
use bentpipe_types::{Distribution, Span, Time};

use crate::acm::modcod::Acm;
use crate::changes::outages::{MOST_OUTAGES, outage};
use crate::changes::schema::{FadingFile, StepFile, TraceFile, TraceFormat};
use crate::fault::{Fault, Segment, fault};
use crate::link::settings::Way;
use crate::link::table::{LinkTable, PacketConstraints, key};
use crate::orbit::settings::LinkPath;
use crate::quantity::probability::Probability;
use crate::quantity::random::RandomLength;
use crate::quantity::time::Length;
use crate::traces::files::Files;
use crate::traces::trace::{
    ATTENUATIONS_TOO_CLOSE, CLOSEST_ATTENUATIONS, CLOSEST_RATES, Reading, Trace, TraceError,
};

/// Attenuation over time in dB, and the key that it is from.
type Attenuation = (Profile<f64>, Vec<Segment>);

/// Shortest period of a schedule.
const SHORTEST_ROUND: Span = Span::from_millis(1);

/// Shortest mean of a random time of fading, in seconds.
const SHORTEST_FADING: f64 = 1e-3;

impl LinkTable<'_> {
    /// Returns the changes of the direction, and its adaptive coding and modulation, each `None`
    /// without any.
    pub(crate) fn changes(
        &self,
        way: Way,
        files: &Files<'_>,
        framed: &PacketConstraints,
    ) -> Result<(Option<Changes>, Option<Acm>), Fault> {
        let mut changes = Changes::default();
        let mut any = false;
        let mut attenuation = None;
        let scheduled = self.schedule(way)?;
        if let Some(trace) = scheduled {
            any = true;
            (changes.delay, changes.losses) = (trace.delay, trace.losses);
            changes.rate = trace.rate.unwrap_or(RateCourse::Constant);
            attenuation = trace
                .attenuation
                .map(|profile| (profile, self.steps_path(way)));
        }
        any |= self.traces(way, files, &mut changes, &mut attenuation)?;
        if let Some(route) = self.route {
            any = true;
            if changes.delay.is_some() {
                let message =
                    "the delay is given twice: expected it here, or in schedule or traces";
                return Err(fault(&["links", self.name, "path"], message));
            }
            if changes.losses.is_some() && route.losses().is_some() {
                let message =
                    "the loss rate is given twice: expected it here, or in schedule or traces";
                let keys = ["links", self.name, "path", "variation"];
                return Err(fault(&keys, message));
            }
            route.add_to(&mut changes);
        }
        let adapts = key!(self, way, acm);
        let mut acm = self.acm(&adapts, way)?;
        if acm.is_some() && !matches!(changes.rate, RateCourse::Constant) {
            let message = "expected no acm together with rates of schedule or traces: acm determines the rate from the attenuation";
            return Err(Fault::new(self.path(way, adapts.own, &["acm"]), message));
        }
        if let (Some(route), true) = (self.route, acm.is_some()) {
            attenuation = self.with_spreading(way, route, attenuation)?;
        }
        match (&mut acm, attenuation) {
            (Some(acm), Some((attenuation, _))) => {
                any = true;
                self.fade(way, &adapts, acm, &attenuation, &mut changes)?;
            }
            (None, Some((_, path))) => {
                return Err(Fault::new(path, "has no effect without acm"));
            }
            (_, None) => {}
        }
        let outages = key!(self, way, outages);
        for (index, file) in outages.value.into_iter().flatten().enumerate() {
            any = true;
            if index >= MOST_OUTAGES {
                let message = format!("expected at most {MOST_OUTAGES}: \"every\" repeats one");
                return Err(Fault::new(
                    self.path(way, outages.own, &["outages"]),
                    message,
                ));
            }
            let outage = outage(file).map_err(|(key, message)| {
                let mut path = self.path(way, outages.own, &["outages"]);
                path.extend([Segment::Index(index), Segment::Key(key.to_owned())]);
                Fault::new(path, message)
            })?;
            changes.outages.push(outage);
        }
        let fades = key!(self, way, fading);
        if let Some(file) = fades.value {
            any = true;
            let wrong = |(key, message): (&str, String)| {
                Fault::new(self.path(way, fades.own, &["fading", key]), message)
            };
            changes.fading = Some(fading(file).map_err(wrong)?);
            if file.rate.is_some() && matches!(changes.rate, RateCourse::Opportunities(_)) {
                let message =
                    "has no effect: the trace determines when packets are sent".to_owned();
                return Err(wrong(("rate", message)));
            }
        }
        any |= self.packet_impairments(way, framed, &mut changes)?;
        Ok((any.then_some(changes), acm))
    }

    /// Returns the attenuation of a path over satellites, which grows with the distance, in
    /// addition to that of rain.
    fn with_spreading(
        &self,
        way: Way,
        route: &LinkPath,
        rain: Option<Attenuation>,
    ) -> Result<Option<Attenuation>, Fault> {
        let Some(reference) = route.es_n0_range else {
            let message =
                r#"missing; expected the distance for which es_n0 holds, such as "550 km""#;
            return Err(fault(&["links", self.name, "path", "es_n0_range"], message));
        };
        let spreading = route.spreading(reference);
        let (rain, path) = match rain {
            Some((rain, path)) => (Some(rain), path),
            None => (None, self.path(way, false, &["path"])),
        };
        let Some(rain) = rain else {
            return Ok(Profile::new(spreading, None).map(|profile| (profile, path)));
        };
        // Both change at times of their own.
        let mut times: Vec<Span> = spreading.iter().map(|(at, _)| *at).collect();
        let rounds = match rain.period() {
            Some(period) => self.duration.as_nanos() / period.as_nanos() + 1,
            None => 1,
        };
        for round in 0..rounds {
            let began = rain.period().map_or(0, |period| period.as_nanos() * round);
            times.push(Span::from_nanos(began));
            times.extend(
                rain.steps()
                    .iter()
                    .map(|(at, _)| *at + Span::from_nanos(began)),
            );
        }
        times.sort_unstable();
        times.retain(|at| *at <= self.duration);
        times.dedup_by(|later, earlier| later.saturating_sub(*earlier) < CLOSEST_ATTENUATIONS);
        let steps: Vec<(Span, f64)> = times
            .into_iter()
            .map(|at| {
                let index = spreading.partition_point(|(begins, _)| *begins <= at);
                let range = index.checked_sub(1).map_or(0.0, |index| spreading[index].1);
                // A step dropped for being too close counts at the one before it.
                let soon =
                    Time::ZERO + at + CLOSEST_ATTENUATIONS.saturating_sub(Span::from_nanos(1));
                (at, range + rain.at(soon).0.unwrap_or(0.0))
            })
            .collect();
        Ok(Profile::new(steps, None).map(|profile| (profile, path)))
    }

    /// Sets corruption, duplication and reordering, and returns whether packets keep their order.
    fn packet_impairments(
        &self,
        way: Way,
        framed: &PacketConstraints,
        changes: &mut Changes,
    ) -> Result<bool, Fault> {
        let mut any = false;
        let share = |probability: &Probability| probability.get();
        let duplication = key!(self, way, duplication);
        let corruption = key!(self, way, corruption);
        changes.duplication = duplication.value.map_or(0.0, share);
        changes.corruption = corruption.value.map_or(0.0, share);
        any |= duplication.value.is_some() || corruption.value.is_some();
        if changes.corruption > 0.0 && framed.compacts {
            let message = "expected none where acknowledgments are compacted: those are no IP packets, and have no checksum";
            return Err(Fault::new(
                self.path(way, corruption.own, &["corruption"]),
                message,
            ));
        }
        let in_order =
            "compression, framings and tunnels need packets in the order in which they were sent";
        let reordering = key!(self, way, reordering);
        if let Some(file) = reordering.value {
            any = true;
            if framed.keeps_order {
                let path = self.path(way, reordering.own, &["reordering"]);
                return Err(Fault::new(path, format!("expected none: {in_order}")));
            }
            changes.reordering = Some((file.probability.get(), file.late_by.0));
        }
        let order = key!(self, way, in_order);
        if order.value == Some(&false) {
            let wrong = |message: &str| {
                Err(Fault::new(
                    self.path(way, order.own, &["in_order"]),
                    message,
                ))
            };
            let holds = |outages: &Outages| outages.in_flight == InFlight::Held;
            if changes.delay.is_none() && !changes.outages.iter().any(holds) {
                return wrong("has no effect: the delay does not change");
            }
            if framed.keeps_order {
                return wrong(&format!("expected true: {in_order}"));
            }
            changes.keeps_order = false;
        }
        Ok(any)
    }

    /// Returns the path of the schedule.
    fn steps_path(&self, way: Way) -> Vec<Segment> {
        self.path(way, key!(self, way, schedule).own, &["schedule"])
    }

    fn schedule(&self, way: Way) -> Result<Option<Trace>, Fault> {
        let schedule = key!(self, way, schedule);
        let every = key!(self, way, schedule_every);
        let Some(steps) = schedule.value else {
            if every.value.is_some() {
                let path = self.path(way, every.own, &["schedule_every"]);
                return Err(Fault::new(path, "has no effect: there is no schedule"));
            }
            return Ok(None);
        };
        let at = |index: usize, key: &str| {
            let mut path = self.path(way, schedule.own, &["schedule"]);
            path.extend([Segment::Index(index), Segment::Key(key.to_owned())]);
            path
        };
        if steps.is_empty() {
            let path = self.path(way, schedule.own, &["schedule"]);
            let message = r#"expected steps such as { at = "15 s", rate = "5 Mbit/s" }, got none"#;
            return Err(Fault::new(path, message));
        }
        for (index, step) in steps.iter().enumerate() {
            if step.says_nothing() {
                let message = "expected a new value: rate, attenuation, delay, packet_loss_rate or bit_error_rate";
                return Err(Fault::new(at(index, "at"), message));
            }
            let earliest = (index > 0).then(|| steps[index - 1].at.0 + CLOSEST_RATES);
            if earliest.is_some_and(|earliest| step.at.0 < earliest) {
                let message = format!(
                    r#"expected 100 us or more after "{}", where the step before it is, got "{}""#,
                    steps[index - 1].at,
                    step.at
                );
                return Err(Fault::new(at(index, "at"), message));
            }
        }
        let mut before: Option<Span> = None;
        for (index, step) in steps.iter().enumerate() {
            let Some(attenuation) = step.attenuation else {
                continue;
            };
            let db = attenuation.not_negative();
            db.map_err(|message| Fault::new(at(index, "attenuation"), message))?;
            if before.is_some_and(|before| step.at.0 < before + CLOSEST_ATTENUATIONS) {
                return Err(Fault::new(at(index, "at"), ATTENUATIONS_TOO_CLOSE));
            }
            before = Some(step.at.0);
        }
        let round = every.value.map(|Length(round)| *round);
        let last = steps.last().map_or(Span::ZERO, |step| step.at.0);
        if round.is_some_and(|round| round < SHORTEST_ROUND.max(last + CLOSEST_RATES)) {
            let message = format!(
                r#"expected 1 ms or more, and 100 us or more after the last step, at "{}""#,
                Length(last)
            );
            return Err(Fault::new(
                self.path(way, every.own, &["schedule_every"]),
                message,
            ));
        }
        Ok(Some(step_profiles(steps, round)))
    }

    /// Adds the contents of trace files. Returns whether there are any.
    fn traces(
        &self,
        way: Way,
        files: &Files<'_>,
        changes: &mut Changes,
        attenuation: &mut Option<(Profile<f64>, Vec<Segment>)>,
    ) -> Result<bool, Fault> {
        let traces = key!(self, way, traces);
        let Some(list) = traces.value else {
            return Ok(false);
        };
        for (index, file) in list.iter().enumerate() {
            let at = |key: &str| {
                let mut path = self.path(way, traces.own, &["traces"]);
                path.extend([Segment::Index(index), Segment::Key(key.to_owned())]);
                path
            };
            let reading = reading(file).map_err(|(key, message)| Fault::new(at(key), message))?;
            let trace = files.trace(&file.file, reading).map_err(|(name, wrong)| {
                Fault::new(at("file"), trace_error_message(&name, &wrong))
            })?;
            let twice = |what: &str| {
                let message = format!(
                    "the {what} is given twice: expected it here, or in the schedule or another file"
                );
                Err(Fault::new(at("file"), message))
            };
            if let Some(rate) = trace.rate {
                if !matches!(changes.rate, RateCourse::Constant) {
                    return twice("rate");
                }
                changes.rate = rate;
            }
            if trace.delay.is_some() && changes.delay.is_some() {
                return twice("delay");
            }
            if trace.losses.is_some() && changes.losses.is_some() {
                return twice("loss rate");
            }
            if let Some(profile) = trace.attenuation {
                if attenuation.is_some() {
                    return twice("attenuation");
                }
                *attenuation = Some((profile, at("file")));
            }
            changes.delay = changes.delay.take().or(trace.delay);
            changes.losses = changes.losses.take().or(trace.losses);
        }
        Ok(!list.is_empty())
    }
}

/// Formats an error as `name:line: message`.
fn trace_error_message(name: &str, wrong: &TraceError) -> String {
    match wrong.line {
        Some(line) => format!("{name}:{line}: {}", wrong.message),
        None => format!("{name}: {}", wrong.message),
    }
}

fn reading(file: &TraceFile) -> Result<Reading, (&'static str, String)> {
    let extension = file.file.rsplit_once('.').map(|(_, extension)| extension);
    let guess = match (file.column, extension) {
        (Some(_), _) => Some(TraceFormat::Irtt),
        (None, Some("csv" | "CSV")) => Some(TraceFormat::Csv),
        (None, Some("parquet" | "pq")) => Some(TraceFormat::Parquet),
        _ => None,
    };
    let Some(format) = file.format.or(guess) else {
        let words: Vec<&str> = TraceFormat::ALL
            .iter()
            .map(|format| format.name())
            .collect();
        let expected = crate::hints::one_of(&words);
        return Err(("format", format!("missing; expected {expected}")));
    };
    if file.column.is_some() && format != TraceFormat::Irtt {
        let message = format!("has no effect: \"{format}\" has no columns to choose from");
        return Err(("column", message));
    }
    let every = file.every.map(|Length(every)| every);
    if every.is_some() && !matches!(format, TraceFormat::Csv | TraceFormat::Parquet) {
        let message = format!("has no effect: \"{format}\" begins again at its end");
        return Err(("every", message));
    }
    if every.is_some_and(|every| every < SHORTEST_ROUND) {
        return Err(("every", "expected 1 ms or more".to_owned()));
    }
    Ok(Reading {
        format,
        column: file.column,
        every,
    })
}

impl StepFile {
    fn says_nothing(&self) -> bool {
        self.rate.is_none()
            && self.attenuation.is_none()
            && self.delay.is_none()
            && self.packet_loss_rate.is_none()
            && self.bit_error_rate.is_none()
    }
}

/// Returns a profile of each quantity that the steps change. The steps are in order.
fn step_profiles(steps: &[StepFile], every: Option<Span>) -> Trace {
    let mut rate = Vec::new();
    let mut attenuation = Vec::new();
    let mut delay = Vec::new();
    let mut losses: Vec<(Span, LossRates)> = Vec::new();
    for step in steps {
        let at = step.at.0;
        rate.extend(step.rate.map(|rate| (at, rate.0)));
        attenuation.extend(step.attenuation.map(|attenuation| (at, attenuation.0)));
        delay.extend(step.delay.map(|delay| (at, delay.0)));
        let mut rates = losses
            .last()
            .map_or_else(LossRates::default, |(_, rates)| *rates);
        if let Some(packet) = step.packet_loss_rate {
            rates.packet = packet.get();
        }
        if let Some(bit) = step.bit_error_rate {
            rates.bit = bit.get();
        }
        if step.packet_loss_rate.is_some() || step.bit_error_rate.is_some() {
            losses.push((at, rates));
        }
    }
    Trace {
        rate: Profile::new(rate, every).map(RateCourse::Steps),
        attenuation: Profile::new(attenuation, every),
        delay: Profile::new(delay, every),
        losses: Profile::new(losses, every),
    }
}

fn fading(file: &FadingFile) -> Result<FadingSettings, (&'static str, String)> {
    let mean = |key, length: RandomLength| -> Result<Distribution, (&'static str, String)> {
        if length.0.mean() < SHORTEST_FADING {
            return Err((key, "expected 1 ms or more on average".to_owned()));
        }
        Ok(length.0)
    };
    let share = |probability: Option<Probability>| probability.map(Probability::get);
    let nothing_else = file.rate.is_none() && file.bit_error_rate.is_none();
    Ok(FadingSettings {
        clear: mean("clear", file.clear)?,
        faded: mean("faded", file.faded)?,
        rate: file.rate.map(|rate| rate.0),
        losses: LossRates {
            packet: share(file.packet_loss_rate).unwrap_or(if nothing_else { 1.0 } else { 0.0 }),
            bit: share(file.bit_error_rate).unwrap_or(0.0),
        },
    })
}
