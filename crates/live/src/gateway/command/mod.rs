//! Command line of `bentpipe-gateway`: the program, and `bentpipe gateway` of the Python package.
//!
//! [`run`] is the command without a process around it: a [`Console`] has its streams and signals.

mod captures;
mod client;
mod console;
mod options;
mod report;
mod scenario_source;
mod service;
mod table;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use bentpipe_scenario::{Addresses, CaptureRequest, RunOptions};
use bentpipe_types::Span;
use serde_json::{Value, json};

use super::control::Line;
use super::{Control, Part, Plan, Request, log_format};
use captures::Captures;
use console::print_pretty;
use options::{Options, Parsed, duration};
use scenario_source::ScenarioSource;
use service::{RunningService, Service};

pub use console::{CommandError, Console, Wake};
pub use options::{ParameterDescription, command_line, parameters};

/// Runs the command with the words after its name, and returns the exit status.
///
/// # Errors
/// If the request is wrong or the work fails.
pub fn run(words: Vec<OsString>, console: &mut dyn Console) -> Result<u8, CommandError> {
    if let Some(tables) = watched_tables(&words) {
        super::watchdog::watch(tables)?;
        return Ok(0);
    }
    match options::parse(words)? {
        Parsed::Help(text) => {
            console.print(&text)?;
            Ok(0)
        }
        Parsed::Client(action) => client::run(&action, console),
        Parsed::Options(options) if options.clean => clean(&options, console),
        Parsed::Options(options) => forward(*options, console),
    }
}

/// Returns the routing tables in the command line of the watchdog's second process.
fn watched_tables(words: &[OsString]) -> Option<[u32; 2]> {
    let [command, one, other] = words else {
        return None;
    };
    let table = |word: &OsString| word.to_str()?.parse().ok();
    (command == super::watchdog::COMMAND).then_some([table(one)?, table(other)?])
}

fn clean(options: &Options, console: &mut dyn Console) -> Result<u8, CommandError> {
    if let Some(obstacle) = super::obstacle() {
        let message = format!("nothing can be removed: {obstacle}");
        return Err(CommandError::Failed(message));
    }
    let left = super::remove_leftovers()?;
    let (rules, groups) = (left.rules, left.groups);
    if options.json {
        print_pretty(console, &json!({ "rules": rules, "groups": groups }))?;
    } else {
        let line = format!("removed {rules} rules, and took {groups} interfaces out of groups\n");
        console.print(&line)?;
    }
    Ok(0)
}

/// Forwards packets until a signal arrives; with `--check`, only describes what would be set up.
fn forward(options: Options, console: &mut dyn Console) -> Result<u8, CommandError> {
    let Some(file) = &options.file else {
        let message = "which scenario? bentpipe-gateway FILE --gateway NAME; see --help";
        return Err(CommandError::Request(message.to_owned()));
    };
    let part = part(&options)?;
    let source = ScenarioSource::find(file, console)?;
    let scenario = source.resolve(&options.settings()?)?;
    let interfaces = options.interfaces()?;
    let pcap = if options.check {
        &[][..]
    } else {
        &options.pcap
    };
    let captures = Captures::reserve(pcap)?;
    let duration = |option, text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| duration(option, text)).transpose()
    };
    let (drain, duration) = (
        duration("--drain", &options.drain)?,
        duration("--duration", &options.duration)?,
    );
    let request = Request {
        scenario,
        options: RunOptions {
            seed: options.seed,
            snap_length: options.snap,
            captures: (captures.files())
                .map(|(place, path)| CaptureRequest {
                    place: place.to_owned(),
                    path: path.to_owned(),
                })
                .collect(),
            ..RunOptions::default()
        },
        part,
        addresses: addresses(options.address.as_deref(), options.peer.as_deref())?,
        interfaces,
        duration,
        command: console.command(),
        source: source.name(),
        text: source.text(),
    };
    if !options.check {
        console.handle_signals()?;
    }
    let plan = super::plan(&request)?;
    if options.check {
        return describe(&plan, options.json, console);
    }
    if let Some(obstacle) = super::obstacle() {
        let message = format!("this machine cannot run a gateway: {obstacle}");
        return Err(CommandError::Failed(message));
    }
    for note in &plan.notes {
        log(console, note);
    }
    let service = Service::open(&options)?;
    let file = match source {
        ScenarioSource::File(path) => Some((path, options.settings()?)),
        ScenarioSource::Text { .. } => None,
    };
    let control = Arc::new(Control::default());
    if let Some(format) = options.log_format()? {
        let level = options.log_level()?;
        control.set_dispatch(log_format::dispatch(format, level, &control));
    }
    if console.drops_privileges() {
        control.drop_privileges();
    }
    let service = service.start(&plan, &request, file, &control);
    let summary = run_plan(plan, &request, (&control, drain), service, console)?;
    if options.json {
        console.print(&format!("{summary}\n"))?;
    } else {
        console.print(&report::result(&summary))?;
        for (_, path) in captures.files() {
            console.print(&format!("wrote {}\n", path.display()))?;
        }
    }
    Ok(0)
}

/// Returns the part of the scenario that this machine runs.
fn part(options: &Options) -> Result<Part, CommandError> {
    let refusal = match (&options.gateway, &options.link) {
        (Some(name), None) => {
            return Ok(Part::Gateway {
                name: name.clone(),
                shaped: options.shape.clone(),
            });
        }
        (None, Some(_)) if !options.shape.is_empty() => {
            "--shape is for a gateway; a --link is as the file has it anyway"
        }
        (None, Some(_)) if options.address.is_some() || options.peer.is_some() => {
            "--address is for a gateway; a link has no persistent connections"
        }
        (None, Some(link)) => return Ok(Part::Link(link.clone())),
        _ => "expected --gateway NAME, or --link NAME: what of the file this machine is",
    };
    Err(CommandError::Request(refusal.to_owned()))
}

/// Prints what would be set up. The status is 1 if this machine cannot run a gateway.
fn describe(plan: &Plan, as_json: bool, console: &mut dyn Console) -> Result<u8, CommandError> {
    let obstacle = super::obstacle();
    if as_json {
        let said = json!({ "would": plan.lines(), "notes": plan.notes, "obstacle": obstacle });
        print_pretty(console, &said)?;
    } else {
        for line in plan.lines() {
            console.print(&format!("{line}\n"))?;
        }
        for note in &plan.notes {
            console.print(&format!("note: {note}\n"))?;
        }
        if let Some(obstacle) = &obstacle {
            console.print(&format!("in the way: {obstacle}\n"))?;
        }
    }
    Ok(u8::from(obstacle.is_some()))
}

/// Runs the plan in a thread of its own, so that the console does not delay packets.
fn run_plan(
    plan: Plan,
    request: &Request,
    (control, drain): (&Control, Option<Span>),
    mut service: RunningService,
    console: &mut dyn Console,
) -> Result<Value, CommandError> {
    let mut failure = None;
    let mut may_drain = drain;
    let ended = thread::scope(|scope| {
        let running = scope.spawn(|| plan.run(request, control));
        while !running.is_finished() {
            let wake = console.wait();
            service.tick();
            log_lines(control, console);
            match wake {
                Ok(Wake::Nothing) => continue,
                Ok(Wake::Reload) => {
                    service.reload();
                    continue;
                }
                Ok(Wake::End) => {
                    service.announce_end();
                    // A second signal ends it at once.
                    if let Some(within) = may_drain.take() {
                        control.drain(within);
                        continue;
                    }
                }
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
            control.stop.store(true, Ordering::Relaxed);
        }
        running.join()
    });
    service.finish();
    if let Some(error) = failure {
        return Err(error.into());
    }
    log_lines(control, console);
    // Messages that were given to the formatter.
    log_lines(control, console);
    let panicked = |_| CommandError::Failed("internal error: the gateway panicked".to_owned());
    Ok(ended.map_err(panicked)??)
}

fn log_lines(control: &Control, console: &mut dyn Console) {
    for line in control.take_lines() {
        match (line, control.dispatch()) {
            (Line::Formatted(line), _) => console.log(&line),
            (Line::Message(line), None) => log(console, &line),
            (Line::Message(line), Some(dispatch)) => {
                tracing::dispatcher::with_default(&dispatch, || tracing::info!("{line}"));
            }
        }
    }
}

fn log(console: &mut dyn Console, line: &str) {
    console.log(&format!("bentpipe-gateway: {line}"));
}

fn addresses(own: Option<&str>, peer: Option<&str>) -> Result<Option<Addresses>, CommandError> {
    let parse = |option: &str, text: &str| {
        let expected =
            |_| CommandError::Request(format!("{option} {text}: expected an IP address"));
        text.parse().map_err(expected)
    };
    match (own, peer) {
        (None, None) => Ok(None),
        (Some(own), Some(peer)) => Ok(Some(Addresses {
            own: parse("--address", own)?,
            peer: parse("--peer", peer)?,
        })),
        _ => {
            let message = "--address and --peer go together: the two ends of persistent connections between gateways";
            Err(CommandError::Request(message.to_owned()))
        }
    }
}
