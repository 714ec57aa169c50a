//! A gateway of a scenario, or one of its links, on a machine between real networks: `bentpipe-gateway`.
//!
//! What the kernel would forward between the interfaces of the two sides goes through the [`Engine`]'s
//! network instead: a gateway between two open links, or a link between two machines. [`diversion`] is how
//! it gets here and back.

mod device;
mod diversion;
mod machine;
mod standstill;

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bentpipe_scenario::{Addresses, Outside, RunOptions, Scenario, Side, Station, StationError};
use bentpipe_types::{Span, Time};
use serde_json::Value;

use crate::emulate::refused;
use crate::engine::Own;
use crate::netlink::forwarding::Interface;
use crate::{Clock, Engine};
use device::Diverted;
use diversion::Diversion;
use standstill::{Standstill, slept};

pub use crate::emulate::EmulateError as GatewayError;
pub use diversion::{Leftovers, remove_leftovers};
pub use machine::obstacle;

/// How long it may take at its end until all that it still has to send is gone: a queue at the file's rate may
/// hold seconds, and who ends it waits.
const FAREWELL: Span = Span::from_secs(1);

/// What a machine plays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A gateway, by name; each side is one of its links, and those that are shaped are named.
    Gateway {
        /// The gateway.
        name: String,
        /// Links at which the file's transmitter and queue are wanted.
        shaped: Vec<String>,
    },
    /// A link, by name; each side is one of its nodes.
    Link(String),
}

/// What a machine is to do.
#[derive(Debug)]
pub struct Request {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed, captures.
    pub options: RunOptions,
    /// What of it the machine plays.
    pub part: Part,
    /// The addresses of this gateway's persistent connections to another one, and of that one's.
    pub addresses: Option<Addresses>,
    /// Names of interfaces, each with the link or the node of the file that is behind it.
    pub interfaces: Vec<(String, String)>,
    /// It ends by itself after so long.
    pub duration: Option<Span>,
    /// What errors call the file.
    pub source: String,
    /// The file's text, for the lines of its keys.
    pub text: String,
}

/// What others may see of it, and do to it, while it runs.
#[derive(Debug, Default)]
pub struct Control {
    /// Ends it: everything is removed, and what was counted is told.
    pub stop: AtomicBool,
    /// Lines that somebody should read, in order; whoever reads them takes them out.
    pub lines: Mutex<Vec<String>>,
}

impl Control {
    fn say(&self, line: String) {
        if let Ok(mut lines) = self.lines.lock() {
            lines.push(line);
        }
    }
}

/// What is ready to be set up.
#[derive(Debug)]
pub struct Plan {
    station: Station,
    sides: [Vec<Interface>; 2],
    names: [String; 2],
    hop_between: bool,
    what: String,
    /// Settings that have no effect here, and what the machine lacks: a line each.
    pub notes: Vec<String>,
}

/// Finds out whether all that was asked for can be had here, and changes nothing.
///
/// # Errors
/// What was asked for cannot be, or this machine cannot do it.
pub fn plan(request: &Request) -> Result<Plan, GatewayError> {
    let names = side_names(request)?;
    // What is wrong with the request is said before what is wrong with the machine.
    station(request, &names, [u32::MAX; 2])?;
    let of = |name: &String| -> Vec<String> {
        let own = request.interfaces.iter().filter(|(of, _)| of == name);
        own.map(|(_, interface)| interface.clone()).collect()
    };
    let interfaces = names.each_ref().map(of);
    let wanted = interfaces.each_ref().map(Vec::as_slice);
    let sides = diversion::interfaces(&wanted)?.map_err(GatewayError::Request)?;
    let shortest = |side: &Vec<Interface>| side.iter().map(|one| one.mtu).min();
    let mtus = sides
        .each_ref()
        .map(|side| shortest(side).unwrap_or(u32::MAX));
    let station = station(request, &names, mtus)?;
    let (hop_between, what) = match &request.part {
        Part::Gateway { name, .. } => (true, format!("gateway {name}")),
        Part::Link(name) => (false, format!("link {name}")),
    };
    let mut notes = station.notes.clone();
    notes.extend(machine::lacks(sides.iter().flatten()));
    if let Some([(_, own), _]) = station.persistent_connections()
        && machine::owns(own)
    {
        notes.push(format!(
            "{own} is this machine's own address, so that its kernel takes what is for the gateway: give --address one that nobody has"
        ));
    }
    Ok(Plan {
        station,
        sides,
        names,
        hop_between,
        what,
        notes,
    })
}

/// The part of the file, behind interfaces of these MTUs.
fn station(
    request: &Request,
    names: &[String; 2],
    mtus: [u32; 2],
) -> Result<Station, GatewayError> {
    let scenario = &request.scenario;
    let station = match &request.part {
        Part::Gateway { name, shaped } => {
            if let Some(other) = shaped.iter().find(|link| !names.contains(link)) {
                let message =
                    format!("no interface is for the link \"{other}\", which is to be shaped");
                return Err(GatewayError::Request(message));
            }
            let side = |at: usize| Side {
                link: names[at].clone(),
                mtu: mtus[at],
                shaped: shaped.contains(&names[at]),
            };
            Station::gateway(scenario, name, &[side(0), side(1)], request.addresses)
        }
        Part::Link(name) => Station::link(scenario, name, [&names[0], &names[1]]),
    };
    station.map_err(|error| placed(request, &error))
}

/// What is wrong with the file has a place in it.
fn placed(request: &Request, error: &StationError) -> GatewayError {
    GatewayError::Request(error.in_file(&request.source, &request.text))
}

/// The two links, or nodes, that the interfaces are for, in the order in which they were first named.
fn side_names(request: &Request) -> Result<[String; 2], GatewayError> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in &request.interfaces {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names[..] {
        [first, second] => Ok([first.clone(), second.clone()]),
        _ => {
            let what = match &request.part {
                Part::Gateway { .. } => "links",
                Part::Link(_) => "ends of the link",
            };
            let message = format!(
                "interfaces are wanted for two {what}, got {}; a machine stands between two sides, each of which may have several",
                names.len()
            );
            Err(GatewayError::Request(message))
        }
    }
}

impl Plan {
    /// What is set up: a line for each side, and one for persistent connections.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, side) in self.names.iter().zip(&self.sides) {
            let interfaces: Vec<String> = (side.iter())
                .map(|interface| format!("{} (MTU {})", interface.name, interface.mtu))
                .collect();
            lines.push(format!(
                "{}: {name} is {}",
                self.what,
                interfaces.join(", ")
            ));
        }
        if let Some([(_, own), (_, peer)]) = self.station.persistent_connections() {
            lines.push(format!(
                "{}: persistent connections are between {own} and {peer}",
                self.what
            ));
        }
        lines
    }

    /// Runs until somebody stops it.
    ///
    /// # Errors
    /// When the machine refuses something.
    pub fn run(self, request: &Request, control: &Control) -> Result<Value, GatewayError> {
        let clock = Clock::start();
        let options = RunOptions {
            no_series: true,
            captures_begin_ns: clock.began_at_ns(),
            ..request.options.clone()
        };
        let scenario = &self.station.scenario;
        let outside = Outside::new(scenario, &options, &Station::ENDS, |_, _, _| None)?;
        let left = remove_leftovers()?;
        if left != Leftovers::default() {
            control.say(format!(
                "removed {} rules of a bentpipe-gateway that was killed, and took {} interfaces out of its groups",
                left.rules, left.groups
            ));
        }
        let lines = self.lines();
        // A link has no segments of its own that anybody could find too long.
        let errors = matches!(request.part, Part::Gateway { .. });
        let (mut diversion, tuns) = Diversion::start(self.sides, errors)?;
        let mut engine = Engine::new(outside.network);
        let nodes = Station::ENDS.map(|end| outside.nodes[end]);
        for (at, tun) in tuns.into_iter().enumerate() {
            let device = Diverted::new(tun, self.hop_between);
            engine.attach_towards(nodes[at], Box::new(device), nodes[1 - at]);
        }
        if let Some(ends) = self.station.persistent_connections() {
            let [node, peer] = ends.map(|(index, ip)| (outside.nodes[index], ip));
            engine.speaks(Own { node, peer });
        }
        for (at, line) in lines.into_iter().enumerate() {
            control.say(match diversion.sides.get(at) {
                Some(side) => format!("{line}, through {}", side.device),
                None => line,
            });
        }
        control.say("ready".to_owned());
        let limit = request.duration.unwrap_or(match request.part {
            // Twenty years. (A time and a span still add up.)
            Part::Gateway { .. } => Span::from_secs(20 * 365 * 86_400),
            // What changes along a link is worked out for the clock of a simulation.
            Part::Link(_) => Time::LAST.since(Time::ZERO),
        });
        let stop = &control.stop;
        let (mut closing, mut notes) = (outside.closing, self.notes);
        let (mut remark, mut standstill) = (None, Standstill::default());
        let ran = engine.run(clock, limit, |network, now| {
            // Before what was noticed because of it.
            if let Some(line) = standstill.look(now, slept()) {
                control.say(format!("{}: {line}", self.what));
            }
            for line in diversion.keep() {
                control.say(line);
            }
            for line in closing.cut_captures() {
                control.say(line.clone());
                notes.push(line);
            }
            let now = network.remarks().next();
            if now != remark {
                remark = now;
                if let Some(text) = now {
                    control.say(format!("{}: {text}", self.what));
                }
            }
            stop.load(Ordering::Relaxed)
        });
        let ran = ran.map_err(|error| match diversion.deleted() {
            Some(device) => io::Error::other(format!("somebody has deleted {device}")),
            None => error,
        });
        // Before anything else: whoever comes now goes by himself.
        let ended = diversion.end();
        let ran = ran.and_then(|_| {
            engine.network_mut().retire();
            // What is on its way, resets behind it, gets there.
            engine.run(clock, FAREWELL, |network, _| network.packets_held() == 0)
        });
        let (late, refusals, entered) = (
            engine.lateness().clone(),
            *engine.refusals(),
            engine.entered(),
        );
        engine.network_mut().finish();
        // Captures are written to their ends; where one was cut short, what was counted is told all the same.
        drop(engine.network_mut().take_taps());
        notes.extend(closing.cut_captures());
        let output = closing.finish(engine.into_network(), scenario, Vec::new(), clock.now())?;
        drop(diversion);
        ran?;
        ended?;
        let mut summary = summary(&output.summary, &self.station.simulated)?;
        let more: BTreeMap<&str, Value> = BTreeMap::from([
            (
                "duration_s",
                request
                    .duration
                    .map_or(Value::Null, |span| span.as_secs_f64().into()),
            ),
            ("wall_s", clock.now().as_secs_f64().into()),
            ("packets_in", entered.into()),
            ("late_ms", told(&late.summary())?),
            ("refused", told(&refused(&refusals))?),
            ("notes", told(&notes)?),
        ]);
        for (name, value) in more {
            summary.insert(name.to_owned(), value);
        }
        Ok(Value::Object(summary))
    }
}

fn told(what: &impl serde::Serialize) -> Result<Value, GatewayError> {
    serde_json::to_value(what).map_err(|error| GatewayError::Failed(error.to_string()))
}

/// The result, as `run --json` has it, without what no machine between others knows. Of directions that are
/// not `simulated` that is all but what crossed them.
fn summary(
    summary: &bentpipe_scenario::Summary,
    simulated: &[String],
) -> Result<serde_json::Map<String, Value>, GatewayError> {
    let Value::Object(mut all) = told(summary)? else {
        return Err(GatewayError::Failed("a summary is an object".to_owned()));
    };
    for name in ["flows", "groups"] {
        all.remove(name);
    }
    for link in all
        .get_mut("links")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(link) = link.as_object_mut() else {
            continue;
        };
        let name = link.get("name").and_then(Value::as_str).unwrap_or_default();
        if !simulated.iter().any(|direction| direction == name) {
            link.retain(|name, _| {
                ["name", "packets_delivered", "bytes_delivered"].contains(&name.as_str())
            });
        }
    }
    Ok(all)
}
