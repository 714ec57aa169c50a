//! Paths between two sites over time: which satellites carry them, and how long they are.

use crate::constellation::Constellation;
use crate::earth::{LIGHT, radians};
use crate::error::OrbitError;
use crate::passes::Watch;
use crate::site::Site;
use crate::vector::Vector;

/// How packets get from the satellite of one site to the other site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routing {
    /// Over one satellite, which both sites see.
    BentPipe,
    /// Over links between satellites, on the shortest path.
    InterSatellite,
}

/// Rule for the serving satellite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// The one with the highest elevation at the terminal.
    Highest,
    /// The one that stays in sight for the longest time; it serves until it sets.
    Longest,
    /// The one with the shortest path.
    Shortest,
}

/// A path to compute.
#[derive(Clone, Debug)]
pub struct PathRequest<'a> {
    /// The satellites.
    pub constellation: &'a Constellation,
    /// The terminal.
    pub from: &'a Site,
    /// The other end: one of these gateways.
    pub to: &'a [&'a Site],
    /// How packets get there.
    pub routing: Routing,
    /// Rule for the serving satellite.
    pub selection: Selection,
    /// Time between two decisions, in seconds.
    pub slot: f64,
    /// With [`Selection::Highest`]: by how many degrees another satellite must be higher than the
    /// serving one.
    pub hysteresis: f64,
    /// Seconds from the start to the end.
    pub duration: f64,
    /// Seconds between samples.
    pub step: f64,
}

impl<'a> PathRequest<'a> {
    /// Returns a bent pipe with the highest satellite, in slots of 15 s, with a sample per second.
    #[must_use]
    pub fn bent_pipe(
        constellation: &'a Constellation,
        from: &'a Site,
        to: &'a [&'a Site],
        duration: f64,
    ) -> Self {
        Self {
            constellation,
            from,
            to,
            routing: Routing::BentPipe,
            selection: Selection::Highest,
            slot: 15.0,
            hysteresis: 0.0,
            duration,
            step: 1.0,
        }
    }
}

/// The satellites of a path in the order of its packets, and the gateway at its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Indices of the satellites.
    pub satellites: Vec<u32>,
    /// Index of the gateway.
    pub gateway: usize,
}

impl Route {
    /// Returns the satellite that serves the terminal.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.satellites[0] as usize
    }

    fn last(&self) -> usize {
        self.satellites[self.satellites.len() - 1] as usize
    }

    /// Whether a change to another route is a handover of the terminal or of the gateway.
    #[must_use]
    pub fn is_handover_to(&self, other: &Self) -> bool {
        (self.serving(), self.last(), self.gateway)
            != (other.serving(), other.last(), other.gateway)
    }
}

/// A path at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Length of the path in metres.
    pub length: f64,
    /// Elevation of the serving satellite at the terminal, in degrees.
    pub elevation: f64,
    /// Azimuth of the serving satellite at the terminal, in degrees.
    pub azimuth: f64,
    /// Distance from the terminal to the serving satellite, in metres.
    pub range: f64,
    /// Elevation of the last satellite at the gateway, in degrees.
    pub far_elevation: f64,
    /// Distance from the gateway to the last satellite, in metres.
    pub far_range: f64,
}

impl Sample {
    /// Returns the propagation delay in one direction, in seconds.
    #[must_use]
    pub fn delay_s(&self) -> f64 {
        self.length / LIGHT
    }
}

/// A time during which a path keeps its satellites, or during which there is none.
#[derive(Clone, PartialEq, Debug)]
pub struct Stretch {
    /// Its start in seconds.
    pub begins: f64,
    /// Its end in seconds.
    pub ends: f64,
    /// The satellites and the gateway, or `None` in a gap.
    pub route: Option<Route>,
    /// Samples from the start to the end; none in a gap.
    pub samples: Vec<Sample>,
}

/// A path over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// Stretches from the start to the end, without space between them.
    pub stretches: Vec<Stretch>,
}

impl Timeline {
    /// Returns the number of changes of the serving or last satellite, or of the gateway, without a
    /// gap before them.
    #[must_use]
    pub fn handovers(&self) -> usize {
        let pairs = self.stretches.windows(2);
        pairs
            .filter(|pair| match (&pair[0].route, &pair[1].route) {
                (Some(before), Some(after)) => before.is_handover_to(after),
                _ => false,
            })
            .count()
    }

    /// Returns the time without a path, in seconds.
    #[must_use]
    pub fn gaps(&self) -> f64 {
        let gaps = self
            .stretches
            .iter()
            .filter(|stretch| stretch.route.is_none());
        gaps.map(|stretch| stretch.ends - stretch.begins).sum()
    }
}

/// Most samples of a path.
const MOST_SAMPLES: f64 = 4e6;

/// Computes a path over time.
///
/// At the start of each slot a satellite is chosen. One that stays in sight of both ends during the
/// whole slot is preferred. If the serving satellite sets before the end of the slot, there is a
/// gap until then.
///
/// # Errors
/// Inter-satellite links without a mesh, or too many samples.
pub fn timeline(request: &PathRequest<'_>) -> Result<Timeline, OrbitError> {
    if request.routing == Routing::InterSatellite && request.constellation.mesh.is_none() {
        let message = "expected a shell of at least 3 planes with 3 satellites each: only there it is known which satellites are neighbours";
        return Err(OrbitError::new(message));
    }
    if request.duration / request.step.min(request.slot) > MOST_SAMPLES {
        return Err(OrbitError::new(
            "expected at most 4 million samples: a shorter run, or a longer step",
        ));
    }
    let mut builder = Builder {
        request,
        watch: Watch::new(request.constellation, request.from),
        stretches: Vec::new(),
    };
    let mut slot = 0_u32;
    loop {
        let begins = f64::from(slot) * request.slot;
        if begins >= request.duration {
            break;
        }
        slot += 1;
        let ends = (f64::from(slot) * request.slot).min(request.duration);
        let route = builder.choose(begins, ends);
        builder.extend(route, begins, ends);
    }
    Ok(Timeline {
        stretches: builder.stretches,
    })
}

struct Builder<'a> {
    request: &'a PathRequest<'a>,
    watch: Watch<'a>,
    stretches: Vec<Stretch>,
}

/// A candidate for the serving satellite of a site.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    satellite: usize,
    gateway: usize,
    /// Whether it stays in sight until the end of the slot.
    stays: bool,
    /// Greater is better.
    merit: f64,
}

impl Candidate {
    fn is_better_than(&self, other: &Self) -> bool {
        (self.stays, self.merit) > (other.stays, other.merit)
    }
}

/// Step and end of the search for the time at which a satellite sets, in seconds.
const SETTING_STEP: f64 = 5.0;
const SETTING_END: f64 = 7_200.0;

impl Builder<'_> {
    /// Returns the route of the slot before, if there is one.
    fn current(&self) -> Option<&Route> {
        self.stretches
            .last()
            .and_then(|stretch| stretch.route.as_ref())
    }

    fn choose(&mut self, begins: f64, ends: f64) -> Option<Route> {
        let mut visible = Vec::new();
        self.watch.in_sight(begins, |satellite, position| {
            visible.push((satellite, position))
        });
        match self.request.routing {
            Routing::BentPipe => self.bent_pipe(&visible, begins, ends),
            Routing::InterSatellite => self.over_mesh(&visible, begins, ends),
        }
    }

    fn bent_pipe(&self, visible: &[(usize, Vector)], begins: f64, ends: f64) -> Option<Route> {
        let request = self.request;
        let current = self.current();
        let terminal = request.from.ground(begins);
        let mut candidates: Vec<Candidate> = Vec::new();
        for (satellite, position) in visible {
            // The gateway with the shortest path, or the one in use.
            let mut best: Option<(bool, bool, f64, usize)> = None;
            for (gateway, site) in request.to.iter().enumerate() {
                let ground = site.ground(begins);
                if !site.sees(&ground, *position) {
                    continue;
                }
                let stays = self.stays(*satellite, Some(site), ends);
                let in_use = current
                    .is_some_and(|route| (route.serving(), route.gateway) == (*satellite, gateway));
                let length = ground.position.distance(*position);
                let is_better = best.is_none_or(|(stayed, was_in_use, shortest, _)| {
                    (stays, in_use, -length) > (stayed, was_in_use, -shortest)
                });
                if is_better {
                    best = Some((stays, in_use, length, gateway));
                }
            }
            if let Some((stays, _, length, gateway)) = best {
                let merit = match request.selection {
                    Selection::Highest => terminal.sine_of_elevation(*position),
                    Selection::Shortest => -(terminal.position.distance(*position) + length),
                    Selection::Longest => {
                        self.in_sight_until(*satellite, Some(request.to[gateway]), begins)
                    }
                };
                candidates.push(Candidate {
                    satellite: *satellite,
                    gateway,
                    stays,
                    merit,
                });
            }
        }
        let serving = current.map(Route::serving);
        let chosen = self.select(&candidates, serving)?;
        Some(Route {
            satellites: vec![chosen.satellite as u32],
            gateway: chosen.gateway,
        })
    }

    /// Returns the best candidate, or the serving one as long as the rule keeps it.
    fn select(&self, candidates: &[Candidate], serving: Option<usize>) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for candidate in candidates {
            if best.is_none_or(|best| candidate.is_better_than(&best)) {
                best = Some(*candidate);
            }
        }
        let best = best?;
        let kept = candidates
            .iter()
            .find(|candidate| Some(candidate.satellite) == serving && candidate.stays);
        let Some(kept) = kept else {
            return Some(best);
        };
        let keeps = match self.request.selection {
            Selection::Longest => true,
            Selection::Shortest => false,
            Selection::Highest => {
                let elevation =
                    |candidate: &Candidate| libm::asin(candidate.merit.clamp(-1.0, 1.0));
                elevation(&best) <= elevation(kept) + radians(self.request.hysteresis)
            }
        };
        Some(if keeps { *kept } else { best })
    }

    fn over_mesh(&self, visible: &[(usize, Vector)], begins: f64, ends: f64) -> Option<Route> {
        let request = self.request;
        let mesh = request.constellation.mesh.as_ref()?;
        let all = 0..request.constellation.satellites.len();
        let positions: Vec<Option<Vector>> = all
            .map(|index| request.constellation.position(index, begins))
            .collect();
        let serving = self.current().map(Route::serving);
        let entries = self.ends_at(request.from, visible, serving, begins, ends);
        let mut best: Option<(Vec<u32>, f64, usize)> = None;
        for (gateway, site) in request.to.iter().enumerate() {
            let ground = site.ground(begins);
            let visible: Vec<(usize, Vector)> = positions
                .iter()
                .enumerate()
                .filter_map(|(index, position)| position.map(|position| (index, position)))
                .filter(|(_, position)| site.sees(&ground, *position))
                .collect();
            let serving = self
                .current()
                .filter(|route| route.gateway == gateway)
                .map(Route::last);
            let exits = self.ends_at(site, &visible, serving, begins, ends);
            let found = mesh.shortest(&positions, &entries, &exits);
            if let Some((path, length)) = found
                && best
                    .as_ref()
                    .is_none_or(|(_, shortest, _)| length < *shortest)
            {
                best = Some((path, length, gateway));
            }
        }
        best.map(|(satellites, _, gateway)| Route {
            satellites,
            gateway,
        })
    }

    /// Returns the satellites over which a path may enter or leave the mesh at a site, with the
    /// distances to them: those that stay in sight for the slot, and of these the one that the rule
    /// selects, if it is not the shortest path.
    fn ends_at(
        &self,
        site: &Site,
        visible: &[(usize, Vector)],
        serving: Option<usize>,
        begins: f64,
        ends: f64,
    ) -> Vec<(usize, f64)> {
        let ground = site.ground(begins);
        let candidates: Vec<Candidate> = visible
            .iter()
            .map(|(satellite, position)| Candidate {
                satellite: *satellite,
                gateway: 0,
                stays: self.stays_of(site, *satellite, ends),
                merit: match self.request.selection {
                    Selection::Highest => ground.sine_of_elevation(*position),
                    Selection::Shortest => -ground.position.distance(*position),
                    Selection::Longest => self.in_sight_until_of(site, *satellite, begins),
                },
            })
            .collect();
        let distance = |satellite: usize| {
            let found = visible.iter().find(|(index, _)| *index == satellite);
            found.map_or(f64::INFINITY, |(_, position)| {
                ground.position.distance(*position)
            })
        };
        if self.request.selection != Selection::Shortest {
            let chosen = self.select(&candidates, serving);
            return chosen
                .map(|chosen| (chosen.satellite, distance(chosen.satellite)))
                .into_iter()
                .collect();
        }
        let any_stays = candidates.iter().any(|candidate| candidate.stays);
        candidates
            .iter()
            .filter(|candidate| candidate.stays || !any_stays)
            .map(|candidate| (candidate.satellite, distance(candidate.satellite)))
            .collect()
    }

    fn stays_of(&self, site: &Site, satellite: usize, at: f64) -> bool {
        let position = self.request.constellation.position(satellite, at);
        position.is_some_and(|position| site.sees(&site.ground(at), position))
    }

    /// Whether a satellite is in sight of the terminal, and of a gateway, at a time.
    fn stays(&self, satellite: usize, gateway: Option<&Site>, at: f64) -> bool {
        let Some(position) = self.request.constellation.position(satellite, at) else {
            return false;
        };
        let sees = |site: &Site| site.sees(&site.ground(at), position);
        sees(self.request.from) && gateway.is_none_or(sees)
    }

    fn in_sight_until(&self, satellite: usize, gateway: Option<&Site>, begins: f64) -> f64 {
        setting_time(begins, |at| self.stays(satellite, gateway, at))
    }

    fn in_sight_until_of(&self, site: &Site, satellite: usize, begins: f64) -> f64 {
        setting_time(begins, |at| self.stays_of(site, satellite, at))
    }

    /// Adds a slot with the chosen route, up to the instant at which the route breaks.
    fn extend(&mut self, route: Option<Route>, begins: f64, ends: f64) {
        let Some(route) = route else {
            self.gap(begins, ends);
            return;
        };
        if self.current() != Some(&route) {
            self.stretches.push(Stretch {
                begins,
                ends: begins,
                route: Some(route.clone()),
                samples: Vec::new(),
            });
        }
        let step = self.request.step;
        let mut number = (begins / step) as u64 + 1;
        let mut at = begins;
        loop {
            let sample = self.sample(&route, at);
            let Some(stretch) = self.stretches.last_mut() else {
                return;
            };
            let Some(sample) = sample else {
                // The start of a slot has a valid route, so a break has a sample before it.
                self.gap(at, ends);
                return;
            };
            stretch.ends = at;
            if stretch.samples.last().is_none_or(|last| last.at < at) {
                stretch.samples.push(sample);
            }
            if at >= ends {
                return;
            }
            at = (number as f64 * step).min(ends);
            number += 1;
        }
    }

    /// Adds a gap. The stretch before it lasts until then.
    fn gap(&mut self, begins: f64, ends: f64) {
        match self.stretches.last_mut() {
            Some(stretch) if stretch.route.is_none() => stretch.ends = ends,
            last => {
                if let Some(stretch) = last {
                    stretch.ends = begins;
                }
                self.stretches.push(Stretch {
                    begins,
                    ends,
                    route: None,
                    samples: Vec::new(),
                });
            }
        }
    }

    /// Returns the path at an instant, or `None` if an end does not see its satellite.
    fn sample(&self, route: &Route, at: f64) -> Option<Sample> {
        let request = self.request;
        let position = |satellite: usize| request.constellation.position(satellite, at);
        let near = request.from.ground(at);
        let gateway = request.to[route.gateway];
        let far = gateway.ground(at);
        let first = position(route.serving())?;
        let last = if route.satellites.len() == 1 {
            first
        } else {
            position(route.last())?
        };
        if !request.from.sees(&near, first) || !gateway.sees(&far, last) {
            return None;
        }
        let mut before = first;
        let mut between = 0.0;
        for satellite in &route.satellites[1..] {
            let next = position(*satellite as usize)?;
            between += before.distance(next);
            before = next;
        }
        let look = near.look(first);
        let beyond = far.look(last);
        Some(Sample {
            at,
            length: look.range + between + beyond.range,
            elevation: look.elevation,
            azimuth: look.azimuth,
            range: look.range,
            far_elevation: beyond.elevation,
            far_range: beyond.range,
        })
    }
}

/// Returns about when `is_up` ends to hold after `begins`.
fn setting_time(begins: f64, is_up: impl Fn(f64) -> bool) -> f64 {
    let mut seconds = 0.0;
    while seconds < SETTING_END && is_up(begins + seconds + SETTING_STEP) {
        seconds += SETTING_STEP;
    }
    begins + seconds
}
