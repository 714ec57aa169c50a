//! `bentpipe-gateway`: runs a gateway or a link of a scenario on a machine between real networks.
//!
//! Packets that the kernel would forward between the interfaces of the two sides pass through the
//! [`Engine`]'s network: a gateway between two open links, or a link between two machines.
//! [`diversion`] sets up the policy routing for that. [`command`] is the command line.

pub mod command;
mod connection_zones;
mod control;
mod control_socket;
mod device;
mod diversion;
mod host_secret;
mod interruption_detector;
mod journal;
mod log_format;
mod machine_checks;
mod metrics;
mod old_connections;
mod operator;
mod privileges;
mod reload;
mod statistics;
mod watchdog;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use bentpipe_scenario::{Addresses, Outside, RunOptions, Scenario, Side, Station, StationError};
use bentpipe_types::{Span, Time};
use caps::Capability;
use serde_json::Value;

use crate::emulate::refusal_counts;
use crate::engine::OwnAddresses;
use crate::netlink::forwarding::Interface;
use crate::{Clock, Engine};
use connection_zones::{ConnectionZones, ZoneSide};
use control::Drain;
use device::DivertedDevice;
use diversion::Diversion;
use interruption_detector::{InterruptionDetector, time_suspended};
use journal::{Ends, Journal};
use old_connections::OldConnections;
use watchdog::Watchdog;

pub use crate::emulate::EmulateError as GatewayError;
pub use control::{Answer, Control, MAX_CONNECTIONS, Question};
pub use diversion::{Leftovers, remove_leftovers};
pub use machine_checks::obstacle;
pub use statistics::{Histogram, Statistics, Totals};

/// Time allowed to send what is queued when the process ends. A queue may hold seconds of data at
/// the file's rate, and the user waits.
const DRAIN_TIME: Span = Span::from_secs(1);

/// Interval of the checks whether the kernel tracks connections.
const ZONE_CHECK_INTERVAL: Span = Span::from_secs(1);

/// The part of a scenario that a machine runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A gateway; each side is one of its links.
    Gateway {
        /// Name of the gateway.
        name: String,
        /// Links to which the file's transmitter and queue apply.
        shaped: Vec<String>,
    },
    /// A link, by name; each side is one of its nodes.
    Link(String),
}

/// The task of a machine.
#[derive(Clone, Debug)]
pub struct Request {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed and captures.
    pub options: RunOptions,
    /// The part of the scenario.
    pub part: Part,
    /// Addresses of the persistent connections between this gateway and another one.
    pub addresses: Option<Addresses>,
    /// Names of the interfaces, each with the file's link or node that is behind it.
    pub interfaces: Vec<(String, String)>,
    /// Duration; unlimited if `None`.
    pub duration: Option<Span>,
    /// Program and first words of the command that runs the second process of the watchdog; none
    /// if empty.
    pub command: Vec<OsString>,
    /// Name of the file in error messages.
    pub source: String,
    /// Text of the file, to find the lines of its keys.
    pub text: String,
}

/// The file's name of a side: a node, a link, or two one-way links in opposite directions.
type SideName = (String, Option<String>);

/// A validated request.
#[derive(Debug)]
pub struct Plan {
    station: Station,
    sides: [Vec<Interface>; 2],
    names: [SideName; 2],
    network_is_hop: bool,
    what: String,
    /// Notes on settings without effect and on what the machine lacks.
    pub notes: Vec<String>,
}

/// Validates a request against the scenario and this machine, without changing anything.
///
/// # Errors
/// If the request is invalid, or this machine cannot run it.
pub fn plan(request: &Request) -> Result<Plan, GatewayError> {
    let names = side_names(request)?;
    // Errors of the request come before errors of the machine.
    station(request, &names, [u32::MAX; 2])?;
    let of = |(name, other_way): &SideName| -> Vec<String> {
        let interfaces = request.interfaces.iter();
        let own = interfaces.filter(|(of, _)| of == name || Some(of) == other_way.as_ref());
        own.map(|(_, interface)| interface.clone()).collect()
    };
    let interfaces = names.each_ref().map(of);
    let wanted = interfaces.each_ref().map(Vec::as_slice);
    let sides = diversion::interfaces(&wanted)?.map_err(GatewayError::Request)?;
    let mut station = station(request, &names, smallest_mtus(&sides))?;
    station.set_secret(host_secret::host_secret());
    let (network_is_hop, what) = match &request.part {
        Part::Gateway { name, .. } => (true, format!("gateway {name}")),
        Part::Link(name) => (false, format!("link {name}")),
    };
    let mut notes = station.notes.clone();
    notes.extend(machine_checks::setting_notes(sides.iter().flatten()));
    if let Some([(_, own), _]) = station.persistent_connections()
        && machine_checks::is_own_address(own)
    {
        notes.push(format!(
            "{own} is this machine's own address, so that its kernel receives the gateway's packets: give --address an unused one"
        ));
    }
    Ok(Plan {
        station,
        sides,
        names,
        network_is_hop,
        what,
        notes,
    })
}

/// Returns the smallest MTU of each side.
fn smallest_mtus(sides: &[Vec<Interface>; 2]) -> [u32; 2] {
    let smallest = |side: &Vec<Interface>| side.iter().map(|one| one.mtu).min();
    sides
        .each_ref()
        .map(|side| smallest(side).unwrap_or(u32::MAX))
}

/// Returns the requested part of the scenario, with the MTUs of its two sides.
fn station(
    request: &Request,
    names: &[SideName; 2],
    mtus: [u32; 2],
) -> Result<Station, GatewayError> {
    let scenario = &request.scenario;
    let station = match &request.part {
        Part::Gateway { name, shaped } => {
            let is_side = |link: &String| {
                names
                    .iter()
                    .any(|(one, other)| link == one || Some(link) == other.as_ref())
            };
            if let Some(other) = shaped.iter().find(|link| !is_side(link)) {
                let message = format!(
                    "no interface is given for the link \"{other}\", which is to be shaped"
                );
                return Err(GatewayError::Request(message));
            }
            let side = |at: usize| {
                let (link, other_way) = names[at].clone();
                Side {
                    mtu: mtus[at],
                    shaped: shaped
                        .iter()
                        .any(|one| *one == link || Some(one) == other_way.as_ref()),
                    link,
                    other_way,
                }
            };
            Station::gateway(scenario, name, &[side(0), side(1)], request.addresses)
        }
        Part::Link(name) => Station::link(scenario, name, [&names[0].0, &names[1].0]),
    };
    station.map_err(|error| error_in_file(request, &error))
}

/// Adds the position in the file to an error.
fn error_in_file(request: &Request, error: &StationError) -> GatewayError {
    GatewayError::Request(error.in_file(&request.source, &request.text))
}

/// Returns the two links or nodes that the interfaces belong to, in the order of their first
/// mention. Two one-way links in opposite directions are one side.
fn side_names(request: &Request) -> Result<[SideName; 2], GatewayError> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &request.interfaces {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let sides = match &request.part {
        Part::Gateway { name, .. } if names.len() > 2 => {
            Station::links_by_side(&request.scenario, name, &names)
                .map_err(|error| error_in_file(request, &error))?
        }
        _ => names.iter().map(|name| (name.clone(), None)).collect(),
    };
    match <[SideName; 2]>::try_from(sides) {
        Ok(sides) => Ok(sides),
        Err(_) => {
            let what = match &request.part {
                Part::Gateway { .. } => "links",
                Part::Link(_) => "ends of the link",
            };
            let message = format!(
                "expected interfaces for two {what}, got {}; each of the two sides may have several interfaces",
                names.len()
            );
            Err(GatewayError::Request(message))
        }
    }
}

impl Plan {
    /// Describes what will be set up: a line for each side, and one for persistent connections.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((name, other_way), side) in self.names.iter().zip(&self.sides) {
            let other_way =
                (other_way.as_ref()).map_or(String::new(), |name| format!(" with {name}"));
            let interfaces: Vec<String> = (side.iter())
                .map(|interface| format!("{} (MTU {})", interface.name, interface.mtu))
                .collect();
            lines.push(format!(
                "{}: {name}{other_way} is {}",
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

    fn mtus(&self) -> [u32; 2] {
        smallest_mtus(&self.sides)
    }

    /// Opens the journal of this gateway, and returns the connections of a killed process.
    fn journal(&self, request: &Request, control: &Control) -> (Option<Journal>, Vec<Ends>) {
        let Part::Gateway { name, .. } = &request.part else {
            return (None, Vec::new());
        };
        match Journal::open(&journal::path(name)) {
            Ok((journal, left)) => (Some(journal), left),
            Err(error) => {
                control.report(format!(
                    "without a journal, connections are not reset after this process is killed: {error}"
                ));
                (None, Vec::new())
            }
        }
    }

    /// Runs until stopped.
    ///
    /// # Errors
    /// If the machine refuses something.
    pub fn run(self, request: &Request, control: &Control) -> Result<Value, GatewayError> {
        // Before the clock starts, as it takes a tenth of a second.
        let has_tracking_rules = connection_zones::has_rules();
        let clock = Clock::start();
        let options = RunOptions {
            no_series: true,
            captures_begin_ns: clock.start_unix_ns(),
            ..request.options.clone()
        };
        let scenario = &self.station.scenario;
        let outside = Outside::new(scenario, &options, &Station::ENDS, |_, _, _| None)?;
        let left = remove_leftovers()?;
        if left != Leftovers::default() {
            control.report(format!(
                "removed {} rules of a killed bentpipe-gateway, and took {} interfaces out of its groups",
                left.rules, left.groups
            ));
        }
        let lines = self.lines();
        // A link sends no segments of its own, to which ICMP errors could refer.
        let errors = matches!(request.part, Part::Gateway { .. });
        let (mut journal, left) = self.journal(request, control);
        let (mut diversion, tuns) = Diversion::start(self.sides, errors)?;
        let mut watchdog = start_watchdog(&request.command, &diversion, control);
        let old = if left.is_empty() {
            None
        } else {
            control.report(format!(
                "{} connections of a killed bentpipe-gateway are reset",
                left.len()
            ));
            let device = File::from(tuns[0].as_fd().try_clone_to_owned()?);
            let old = OldConnections::new(left, device, clock.now());
            Some(Arc::new(Mutex::new(old)))
        };
        let mut zones = zones(&self.station, &diversion, has_tracking_rules, control);
        let mut engine = Engine::new(outside.network);
        if errors {
            engine.thin_acknowledgments();
        }
        let nodes = Station::ENDS.map(|end| outside.nodes[end]);
        for (at, tun) in tuns.into_iter().enumerate() {
            let device = DivertedDevice::new(tun, self.network_is_hop, old.clone());
            engine.attach_towards(nodes[at], Box::new(device), nodes[1 - at]);
        }
        if let Some(ends) = self.station.persistent_connections() {
            let [node, peer] = ends.map(|(index, ip)| (outside.nodes[index], ip));
            engine.set_own_addresses(OwnAddresses { node, peer });
        }
        for (at, line) in lines.into_iter().enumerate() {
            control.report(match diversion.sides.get(at) {
                Some(side) => format!("{line}, through {}", side.device),
                None => line,
            });
        }
        control.report_ready();
        let limit = request.duration.unwrap_or(match request.part {
            // Twenty years, so that adding a span to a time does not overflow.
            Part::Gateway { .. } => Span::from_secs(20 * 365 * 86_400),
            // The schedule of a changing link covers the time of a simulation.
            Part::Link(_) => Time::LAST.since(Time::ZERO),
        });
        let _log = (control.dispatch()).map(|all| tracing::dispatcher::set_default(&all));
        let (mut drain, mut may_drop_privileges) = (Drain::default(), control.drops_privileges());
        let (mut closing, mut notes) = (outside.closing, self.notes);
        let (mut remark, mut interruption_detector) = (None, InterruptionDetector::default());
        let mut next_zone_check = Time::ZERO;
        let ran = engine.run(clock, limit, |engine, now| {
            // After the set-up, which ends with the priority of this thread.
            if std::mem::take(&mut may_drop_privileges) {
                privileges::keep_only(&[Capability::CAP_NET_ADMIN]);
            }
            // Reported before its consequences.
            if let Some(line) = interruption_detector.check(now, time_suspended()) {
                control.report(format!("{}: {line}", self.what));
            }
            if watchdog.as_mut().is_some_and(|watchdog| watchdog.beat(now)) {
                // Their hosts have exchanged segments without this process.
                engine.network_mut().retire();
                let line = match diversion.divert_again() {
                    Ok(()) => "the process runs again: its connections are reset, and packets are diverted".to_owned(),
                    Err(error) => format!("the process runs again, and cannot divert packets: {error}"),
                };
                control.report(line);
            }
            if let Some(old) = &old
                && let Ok(mut old) = old.lock()
            {
                old.advance(now);
            }
            if let Some(kept) = &mut journal {
                for (_, managed) in engine.network_mut().managed() {
                    managed.take_connection_changes(kept.changes());
                }
                if let Err(error) = kept.write() {
                    control.report(format!("the journal of connections cannot be written: {error}"));
                    journal = None;
                }
            }
            if now >= next_zone_check {
                next_zone_check = now + ZONE_CHECK_INTERVAL;
                if let Some(line) = zones.as_mut().and_then(ConnectionZones::check) {
                    control.report(line);
                }
            }
            for line in diversion.restore() {
                control.report(line);
            }
            for line in closing.cut_captures() {
                control.report(line.clone());
                notes.push(line);
            }
            let latest = engine.network().remarks().next();
            if latest != remark {
                remark = latest;
                if let Some(text) = latest {
                    control.report(format!("{}: {text}", self.what));
                }
            }
            control.serve(engine, now, &mut drain)
        });
        let ran = ran.map_err(|error| match diversion.deleted_device() {
            Some(device) => io::Error::other(format!("{device} was deleted")),
            None => error,
        });
        // First, so that the kernel forwards new packets by itself.
        let ended = diversion.end();
        let ran = ran.and_then(|_| {
            engine.network_mut().retire();
            // Lets queued packets leave, and the resets behind them.
            engine.run(clock, DRAIN_TIME, |engine, _| {
                engine.network().packets_held() == 0
            })
        });
        drop((watchdog, zones));
        if let (Some(journal), Ok(_)) = (&mut journal, &ran) {
            journal.clear();
        }
        let (late, refusals, entered) = (
            engine.lateness().clone(),
            *engine.refusals(),
            engine.entered(),
        );
        control.finish(Statistics::of(&mut engine, clock.now(), true));
        engine.network_mut().finish();
        // Completes the captures. If one was truncated, the counters are returned all the same.
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
            ("late_ms", to_json(&late.summary())?),
            ("refused", to_json(&refusal_counts(&refusals))?),
            ("notes", to_json(&notes)?),
        ]);
        for (name, value) in more {
            summary.insert(name.to_owned(), value);
        }
        Ok(Value::Object(summary))
    }
}

fn start_watchdog(
    command: &[OsString],
    diversion: &Diversion,
    control: &Control,
) -> Option<Watchdog> {
    if command.is_empty() {
        return None;
    }
    match Watchdog::start(command, diversion.tables()) {
        Ok(watchdog) => Some(watchdog),
        Err(error) => {
            control.report(format!(
                "without a watchdog, the rules stay while this process hangs: {error}"
            ));
            None
        }
    }
}

/// Returns the zones of connection tracking for a gateway: the side that it does not face has
/// one of its own.
fn zones(
    station: &Station,
    diversion: &Diversion,
    has_tracking_rules: bool,
    control: &Control,
) -> Option<ConnectionZones> {
    let faced = station.facing_end()?;
    let side = |at: usize| {
        let side = &diversion.sides[at];
        ZoneSide {
            interfaces: (side.interfaces.iter())
                .map(|interface| interface.name.clone())
                .collect(),
            device: side.device.clone(),
        }
    };
    let mut zones = ConnectionZones::new(side(1 - faced), side(faced), diversion.index());
    let message = if has_tracking_rules {
        zones.install()
    } else {
        zones.check()
    };
    if let Some(line) = message {
        control.report(line);
    }
    Some(zones)
}

fn to_json(what: &impl serde::Serialize) -> Result<Value, GatewayError> {
    serde_json::to_value(what).map_err(|error| GatewayError::Failed(error.to_string()))
}

/// Returns the result as in `run --json`, without values that a machine in the path cannot measure.
/// For directions that are not `simulated`, only the delivered packets and bytes remain.
fn summary(
    summary: &bentpipe_scenario::Summary,
    simulated: &[String],
) -> Result<serde_json::Map<String, Value>, GatewayError> {
    let Value::Object(mut all) = to_json(summary)? else {
        return Err(GatewayError::Failed(
            "the summary is not an object".to_owned(),
        ));
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
