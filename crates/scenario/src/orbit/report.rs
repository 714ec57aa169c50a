//! Geometry of a scenario's orbits, without traffic: passes, coverage, delays and gaps.

use bentpipe_orbits::{LIGHT, Pass, Timeline, geodetic, passes, worst_gap};
use serde_json::{Value, json};

use crate::link::settings::Link;
use crate::orbit::serialize::path_data;
use crate::orbit::settings::LinkPath;
use crate::scenario::settings::Scenario;

/// A table: its name, and its columns in order.
#[derive(Clone, PartialEq, Debug)]
pub struct OrbitTable {
    /// Name: "paths", "outages", "passes", "satellites", "tracks" or "routes".
    pub name: &'static str,
    /// Columns of equal length.
    pub columns: Vec<(&'static str, OrbitColumn)>,
}

/// A column.
#[derive(Clone, PartialEq, Debug)]
pub enum OrbitColumn {
    /// Numbers; not a number where there is none.
    Numbers(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

/// The geometry of a scenario over its run.
#[derive(Clone, PartialEq, Debug)]
pub struct OrbitReport {
    /// Constellations, sites and paths with their figures.
    pub summary: Value,
    /// The paths over time and their outages, the passes, and the satellites at an instant with
    /// the ground tracks of those in use.
    pub tables: Vec<OrbitTable>,
}

/// Half the length of a ground track in seconds, and the time between its points.
const TRACK: f64 = 900.0;
const TRACK_STEP: f64 = 30.0;

impl Scenario {
    /// Returns what its orbits amount to, with the satellites at `seconds`.
    #[must_use]
    pub fn orbit_report(&self, seconds: f64) -> OrbitReport {
        let duration = self.duration.as_secs_f64();
        let paths: Vec<(&Link, &LinkPath)> = self
            .links
            .iter()
            .filter_map(|link| link.path.as_deref().map(|path| (link, path)))
            .collect();
        let mut seen: Vec<Seen> = Vec::new();
        for (number, site) in self.orbits.sites.iter().enumerate() {
            for (index, constellation) in self.orbits.constellations.iter().enumerate() {
                // The constellations of the site's paths; all, if it is the end of none.
                let ends_here = |path: &&LinkPath| path.from == number || path.to.contains(&number);
                let mut here = paths
                    .iter()
                    .map(|(_, path)| *path)
                    .filter(ends_here)
                    .peekable();
                if here.peek().is_some() && !here.any(|path| path.constellation == index) {
                    continue;
                }
                let passes = passes(&constellation.satellites, site, duration);
                seen.push(Seen {
                    site: number,
                    constellation: index,
                    passes,
                });
            }
        }
        let data = |(link, path): &(&Link, &LinkPath)| {
            let mut data = path_data(path, &self.orbits);
            data["link"] = json!(link.name);
            let figures = figures(&path.timeline, path.further_delay().as_secs_f64(), duration);
            if let (Value::Object(data), Value::Object(figures)) = (&mut data, figures) {
                data.extend(figures);
            }
            data
        };
        OrbitReport {
            summary: json!({
                "scenario": self.name,
                "duration_s": duration,
                "constellations": self.orbits.constellations.iter().map(|each| {
                    let satellites = &each.satellites;
                    json!({
                        "name": each.name,
                        "origin": each.origin,
                        "satellites": satellites.satellites.len(),
                        "start": satellites.start.map(|start| start.to_string()),
                        "ages_days": satellites.ages_days(),
                        "decayed": satellites.decayed().iter()
                            .map(|index| satellites.satellites[*index].name.as_str())
                            .collect::<Vec<_>>(),
                    })
                }).collect::<Vec<_>>(),
                "sites": seen.iter().map(|seen| self.site_data(seen, duration)).collect::<Vec<_>>(),
                "paths": paths.iter().map(data).collect::<Vec<_>>(),
            }),
            tables: vec![
                self.path_table(&paths),
                outage_table(&paths),
                self.pass_table(&seen),
                self.satellite_table(&paths, seconds),
                self.track_table(&paths, seconds),
                self.route_table(&paths, seconds),
            ],
        }
    }

    fn site_data(&self, seen: &Seen, duration: f64) -> Value {
        let site = &self.orbits.sites[seen.site];
        let place = site.place(0.0);
        let whole: Vec<f64> = seen
            .passes
            .iter()
            .filter(|pass| pass.rises > 0.0 && pass.sets < duration)
            .map(|pass| pass.sets - pass.rises)
            .collect();
        let (gap, gap_begins) = worst_gap(&seen.passes, duration);
        let (least, mean, most) = in_sight(&seen.passes, duration);
        json!({
            "site": site.name,
            "constellation": self.orbits.constellations[seen.constellation].name,
            "latitude_deg": place.latitude,
            "longitude_deg": place.longitude,
            "height_m": place.height,
            "moves": site.moves(),
            "min_elevation_deg": site.min_elevation,
            "passes": seen.passes.len(),
            "pass_s": quantiles(whole),
            "in_sight": { "min": least, "mean": mean, "max": most },
            "covered": covered(&seen.passes, duration),
            "worst_gap_s": gap,
            "worst_gap_at_s": gap_begins,
        })
    }

    fn path_table(&self, paths: &[(&Link, &LinkPath)]) -> OrbitTable {
        let mut link = Vec::new();
        let mut serving = Vec::new();
        let mut gateway = Vec::new();
        let mut numbers: [Vec<f64>; 9] = Default::default();
        for (of, path) in paths {
            let satellites = &self.orbits.constellations[path.constellation].satellites;
            for stretch in &path.timeline.stretches {
                let Some(route) = &stretch.route else {
                    continue;
                };
                let place = self.orbits.sites[path.to[route.gateway]].place(stretch.begins);
                for sample in &stretch.samples {
                    link.push(of.name.clone());
                    serving.push(satellites.satellites[route.serving()].name.clone());
                    gateway.push(self.orbits.sites[path.to[route.gateway]].name.clone());
                    let from = self.orbits.sites[path.from].place(sample.at);
                    let values = [
                        sample.at,
                        sample.delay_s() + path.further_delay().as_secs_f64(),
                        route.satellites.len() as f64,
                        sample.elevation,
                        sample.azimuth,
                        sample.range,
                        sample.far_elevation,
                        sample.far_range,
                        from.surface_distance(place),
                    ];
                    for (column, value) in numbers.iter_mut().zip(values) {
                        column.push(value);
                    }
                }
            }
        }
        let names = [
            "at_s",
            "delay_s",
            "satellites",
            "elevation_deg",
            "azimuth_deg",
            "range_m",
            "gateway_elevation_deg",
            "gateway_range_m",
            "surface_m",
        ];
        let mut columns = vec![
            ("link", OrbitColumn::Text(link)),
            ("satellite", OrbitColumn::Text(serving)),
            ("gateway", OrbitColumn::Text(gateway)),
        ];
        columns.extend(names.into_iter().zip(numbers.map(OrbitColumn::Numbers)));
        OrbitTable {
            name: "paths",
            columns,
        }
    }

    fn pass_table(&self, seen: &[Seen]) -> OrbitTable {
        let all = || {
            seen.iter()
                .flat_map(|seen| seen.passes.iter().map(move |pass| (seen, pass)))
        };
        let text = |of: &dyn Fn(&Seen, &Pass) -> String| {
            OrbitColumn::Text(all().map(|(seen, pass)| of(seen, pass)).collect())
        };
        let number =
            |of: fn(&Pass) -> f64| OrbitColumn::Numbers(all().map(|(_, pass)| of(pass)).collect());
        OrbitTable {
            name: "passes",
            columns: vec![
                (
                    "site",
                    text(&|seen, _| self.orbits.sites[seen.site].name.clone()),
                ),
                (
                    "constellation",
                    text(&|seen, _| self.orbits.constellations[seen.constellation].name.clone()),
                ),
                (
                    "satellite",
                    text(&|seen, pass| {
                        let constellation = &self.orbits.constellations[seen.constellation];
                        constellation.satellites.satellites[pass.satellite]
                            .name
                            .clone()
                    }),
                ),
                ("rises_s", number(|pass| pass.rises)),
                ("sets_s", number(|pass| pass.sets)),
                ("highest_deg", number(|pass| pass.highest)),
            ],
        }
    }

    fn satellite_table(&self, paths: &[(&Link, &LinkPath)], seconds: f64) -> OrbitTable {
        let mut names = [Vec::new(), Vec::new()];
        let mut numbers: [Vec<f64>; 4] = Default::default();
        for (index, constellation) in self.orbits.constellations.iter().enumerate() {
            let satellites = &constellation.satellites;
            let used = used_at(paths, index, seconds);
            for (number, satellite) in satellites.satellites.iter().enumerate() {
                let Some(position) = satellites.position(number, seconds) else {
                    continue;
                };
                let below = geodetic(position);
                names[0].push(constellation.name.clone());
                names[1].push(satellite.name.clone());
                let order = used.iter().position(|each| *each == number);
                let values = [
                    below.latitude,
                    below.longitude,
                    below.height,
                    order.map_or(f64::NAN, |order| order as f64),
                ];
                for (column, value) in numbers.iter_mut().zip(values) {
                    column.push(value);
                }
            }
        }
        let [constellation, satellite] = names.map(OrbitColumn::Text);
        let [latitude, longitude, height, order] = numbers.map(OrbitColumn::Numbers);
        OrbitTable {
            name: "satellites",
            columns: vec![
                ("constellation", constellation),
                ("satellite", satellite),
                ("latitude_deg", latitude),
                ("longitude_deg", longitude),
                ("height_m", height),
                ("order_in_path", order),
            ],
        }
    }

    /// Returns the satellites of each path at an instant, in the order of its packets.
    fn route_table(&self, paths: &[(&Link, &LinkPath)], seconds: f64) -> OrbitTable {
        let (mut link, mut satellite) = (Vec::new(), Vec::new());
        for (of, path) in paths {
            let satellites = &self.orbits.constellations[path.constellation].satellites;
            for number in route_at(path, seconds) {
                link.push(of.name.clone());
                satellite.push(satellites.satellites[number].name.clone());
            }
        }
        OrbitTable {
            name: "routes",
            columns: vec![
                ("link", OrbitColumn::Text(link)),
                ("satellite", OrbitColumn::Text(satellite)),
            ],
        }
    }

    fn track_table(&self, paths: &[(&Link, &LinkPath)], seconds: f64) -> OrbitTable {
        let mut satellite = Vec::new();
        let mut numbers: [Vec<f64>; 3] = Default::default();
        for (index, constellation) in self.orbits.constellations.iter().enumerate() {
            let satellites = &constellation.satellites;
            for number in used_at(paths, index, seconds) {
                let points = (2.0 * TRACK / TRACK_STEP) as u32;
                for point in 0..=points {
                    let at = seconds - TRACK + f64::from(point) * TRACK_STEP;
                    let Some(position) = satellites.position(number, at) else {
                        continue;
                    };
                    let below = geodetic(position);
                    satellite.push(satellites.satellites[number].name.clone());
                    for (column, value) in
                        numbers
                            .iter_mut()
                            .zip([at, below.latitude, below.longitude])
                    {
                        column.push(value);
                    }
                }
            }
        }
        let [at, latitude, longitude] = numbers.map(OrbitColumn::Numbers);
        OrbitTable {
            name: "tracks",
            columns: vec![
                ("satellite", OrbitColumn::Text(satellite)),
                ("at_s", at),
                ("latitude_deg", latitude),
                ("longitude_deg", longitude),
            ],
        }
    }
}

/// The passes of a constellation over a site, by their indices.
struct Seen {
    site: usize,
    constellation: usize,
    passes: Vec<Pass>,
}

/// Returns the satellites of all paths over a constellation at an instant, in their order.
fn used_at(paths: &[(&Link, &LinkPath)], constellation: usize, seconds: f64) -> Vec<usize> {
    let mut used = Vec::new();
    for (_, path) in paths {
        if path.constellation == constellation {
            for satellite in route_at(path, seconds) {
                if !used.contains(&satellite) {
                    used.push(satellite);
                }
            }
        }
    }
    used
}

/// Returns the satellites of a path at an instant.
fn route_at(path: &LinkPath, seconds: f64) -> Vec<usize> {
    let mut stretches = path.timeline.stretches.iter().rev();
    let now = stretches
        .find(|stretch| stretch.begins <= seconds)
        .and_then(|stretch| stretch.route.as_ref());
    now.map_or(Vec::new(), |route| {
        let satellites = route.satellites.iter();
        satellites.map(|satellite| *satellite as usize).collect()
    })
}

fn outage_table(paths: &[(&Link, &LinkPath)]) -> OrbitTable {
    let mut link = Vec::new();
    let mut kind = Vec::new();
    let (mut at, mut lasts) = (Vec::new(), Vec::new());
    for (of, path) in paths {
        for outage in path.interruptions() {
            link.push(of.name.clone());
            kind.push(outage.kind.to_owned());
            at.push(outage.at.as_secs_f64());
            lasts.push(outage.lasts.as_secs_f64());
        }
    }
    OrbitTable {
        name: "outages",
        columns: vec![
            ("link", OrbitColumn::Text(link)),
            ("kind", OrbitColumn::Text(kind)),
            ("at_s", OrbitColumn::Numbers(at)),
            ("lasts_s", OrbitColumn::Numbers(lasts)),
        ],
    }
}

/// Returns the figures of a path over a run.
fn figures(timeline: &Timeline, extra_s: f64, duration: f64) -> Value {
    let samples = || {
        timeline
            .stretches
            .iter()
            .flat_map(|stretch| &stretch.samples)
    };
    let delays: Vec<f64> = samples()
        .map(|sample| sample.length / LIGHT + extra_s)
        .collect();
    let served: Vec<f64> = timeline
        .stretches
        .iter()
        .filter(|stretch| stretch.route.is_some())
        .map(|stretch| stretch.ends - stretch.begins)
        .collect();
    let hops = timeline.stretches.iter().flat_map(|stretch| {
        let count = stretch
            .route
            .as_ref()
            .map_or(0, |route| route.satellites.len());
        stretch.samples.iter().map(move |_| count as f64)
    });
    let gaps = timeline
        .stretches
        .iter()
        .filter(|stretch| stretch.route.is_none());
    let worst = gaps
        .clone()
        .map(|gap| gap.ends - gap.begins)
        .fold(0.0, f64::max);
    let jumps: Vec<f64> = timeline
        .stretches
        .windows(2)
        .filter_map(|pair| {
            let before = pair[0].samples.last()?;
            let after = pair[1].samples.first()?;
            Some((after.length - before.length).abs() / LIGHT)
        })
        .collect();
    json!({
        "delay_s": quantiles(delays),
        "elevation_deg": quantiles(samples().map(|sample| sample.elevation).collect()),
        "satellites": quantiles(hops.collect()),
        "served_s": quantiles(served),
        "jump_s": quantiles(jumps),
        "gaps": gaps.count(),
        "worst_gap_s": worst,
        "available": 1.0 - timeline.gaps() / duration,
    })
}

/// Returns least, mean, greatest, and quantiles by rank; null without values.
fn quantiles(mut values: Vec<f64>) -> Value {
    if values.is_empty() {
        return Value::Null;
    }
    values.sort_by(f64::total_cmp);
    let rank = |share: f64| values[((values.len() - 1) as f64 * share + 0.5) as usize];
    json!({
        "min": values[0],
        "p5": rank(0.05),
        "median": rank(0.5),
        "mean": values.iter().sum::<f64>() / values.len() as f64,
        "p95": rank(0.95),
        "max": values[values.len() - 1],
    })
}

/// Returns the least, mean and greatest number of satellites in sight.
fn in_sight(passes: &[Pass], duration: f64) -> (usize, f64, usize) {
    let mut changes: Vec<(f64, i64)> = Vec::with_capacity(2 * passes.len());
    for pass in passes {
        changes.push((pass.rises, 1));
        if pass.sets < duration {
            changes.push((pass.sets, -1));
        }
    }
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut now, mut before, mut sum) = (0_i64, 0.0, 0.0);
    let (mut least, mut most) = (i64::MAX, 0);
    for (at, change) in changes {
        if at > before {
            least = least.min(now);
            sum += now as f64 * (at - before);
            before = at;
        }
        now += change;
        most = most.max(now);
    }
    least = least.min(now);
    sum += now as f64 * (duration - before);
    (least.max(0) as usize, sum / duration, most as usize)
}

/// Returns the share of the time with a satellite in sight.
fn covered(passes: &[Pass], duration: f64) -> f64 {
    let (mut until, mut sum) = (0.0, 0.0);
    for pass in passes {
        let begins = f64::max(pass.rises, until);
        if pass.sets > begins {
            sum += pass.sets - begins;
            until = pass.sets;
        }
    }
    sum / duration
}
