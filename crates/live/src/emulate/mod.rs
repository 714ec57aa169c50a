//! A scenario in real time, between hosts of the kernel's.
//!
//! Every host is a network namespace with a TUN device; the scenario's links, queues, error models,
//! return-link methods and gateways are the [`Engine`]'s network between the devices. Flows are
//! ordinary sockets. Nothing has a name outside this process: namespaces and devices are gone when it
//! is, however it ends; only a user's own command may outlive it, see [`command`].

pub mod command;
mod ends;
mod host;
mod netlink;
mod outcome;
mod watch;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

use bentpipe_scenario::{App, Interval, NodeKind, Outside, RunOptions, Scenario, TcpSettings};
use bentpipe_types::{Bytes, Series, Span, Time};
use bentpipe_wire::NodeAddresses;

use crate::engine::{Prefix, Refusals};
use crate::{Clock, Engine};
use ends::{Ending, Passed};
use host::Host;
use watch::{Seen, Watched};

/// What is to be emulated, and how.
#[derive(Debug)]
pub struct Request {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed, captures, probes.
    pub options: RunOptions,
    /// Commands of the user's own, instead of the scenario's flows.
    pub commands: Vec<command::Command>,
}

/// What others may see of an emulation, and do to it, while it runs.
#[derive(Debug, Default)]
pub struct Control {
    /// Breaks it off: everything is removed, and what was measured is told.
    pub stop: AtomicBool,
    /// Milliseconds since it began.
    pub elapsed_ms: std::sync::atomic::AtomicU64,
}

/// What came of it.
#[derive(Debug)]
pub struct Emulated {
    /// The result, as `run --json` has it, and `late_ms`, `too_late`, `refused`, `notes`.
    pub summary: serde_json::Value,
    /// Probes: those of links, TCP_INFO of the flows' senders, what the receivers had read.
    pub series: Vec<Series>,
    /// The exit status of the last command, if there was one.
    pub status: Option<i32>,
}

/// Why there is no result; one line each.
#[derive(Debug)]
pub enum EmulateError {
    /// What was asked for cannot be.
    Request(String),
    /// It failed.
    Failed(String),
}

impl From<io::Error> for EmulateError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<bentpipe_scenario::RunError> for EmulateError {
    fn from(error: bentpipe_scenario::RunError) -> Self {
        match error {
            bentpipe_scenario::RunError::Request(message) => Self::Request(message),
            bentpipe_scenario::RunError::Failed(message) => Self::Failed(message),
        }
    }
}

/// Hosts at most: each has a namespace, a device and two threads.
const HOSTS: usize = 1000;

/// The first port on which a receiver listens; as in a simulation.
const FIRST_PORT: u16 = 5001;
/// The first port from which a sender opens (RFC 6335 section 6).
const FIRST_SENDER: u16 = 20_000;
/// Flows at most: between those two.
const FLOWS: usize = (FIRST_SENDER - FIRST_PORT) as usize;

/// How late packets may leave before the figures are not to be trusted, in shares of the propagation
/// there and back on the scenario's longest link: one in a hundred, one in a thousand.
const TOO_LATE: [f64; 2] = [0.05, 0.5];

/// A line that says why nothing can be emulated here; none if it can.
#[must_use]
pub fn obstacle() -> Option<String> {
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun: load the kernel's module with `modprobe tun`, or give the container the device".to_owned());
    }
    let space = match crate::Namespace::new() {
        Ok(space) => space,
        Err(error) => {
            return Some(format!(
                "no network namespace can be made ({error}): run as root, or allow user namespaces with `sysctl kernel.unprivileged_userns_clone=1`"
            ));
        }
    };
    let settings = crate::TunSettings {
        name: "bentpipe".into(),
        ipv4: Some((Ipv4Addr::new(10, 0, 0, 1), 32)),
        ipv6: None,
        mtu: 1500,
        queue_packets: 100,
    };
    match space.enter(|| crate::Tun::open(&settings).map(drop)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(format!(
            "no TUN device can be opened in a namespace ({error}): CAP_NET_ADMIN is needed"
        )),
    }
}

/// Runs the scenario in real time.
///
/// # Errors
/// When the machine refuses something, or the request is wrong.
pub fn emulate(request: &Request, control: &Control) -> Result<Emulated, EmulateError> {
    let scenario = &request.scenario;
    let outside = hosts_of(scenario)?;
    let notes = check(scenario, &outside, !request.commands.is_empty())?;
    let mut options = request.options.clone();
    options.default_probes |= scenario.probes.series.is_empty();
    let Outside {
        network,
        nodes,
        closing,
    } = Outside::new(scenario, &options, &outside)?;

    let mut engine = Engine::new(network);
    let mut hosts = Vec::new();
    for &index in &outside {
        let tcp = scenario.tcp_of(index).ok_or_else(|| {
            EmulateError::Failed(format!("{} is no host", scenario.nodes[index].name))
        })?;
        let node = nodes[index];
        let address = NodeAddresses::ipv4(node.address());
        let name = &scenario.nodes[index].name;
        let (host, tun) = Host::new(name, address, tcp)
            .map_err(|error| EmulateError::Failed(format!("host {name}: {error}")))?;
        engine.attach(node, Box::new(tun), &[Prefix::of(address.into())]);
        hosts.push(host);
    }
    let clock = Clock::start();
    let ran = if request.commands.is_empty() {
        let flows = prepare(scenario, &outside, &hosts)?;
        run_flows(scenario, &mut engine, &hosts, flows, clock, control)?
    } else {
        run_commands(&mut engine, &hosts, &request.commands, clock, control)?
    };
    engine.network_mut().finish();
    let (late, refusals) = (engine.lateness().clone(), *engine.refusals());
    let output = closing.finish(engine.into_network())?;
    Ok(outcome::emulated(outcome::Known {
        scenario,
        output,
        ran,
        late: &late,
        refusals: &refusals,
        notes,
        clock,
    }))
}

/// What flows or commands did.
#[derive(Debug, Default)]
struct Ran {
    flows: Vec<FlowRan>,
    status: Option<i32>,
    ended: Time,
}

/// What a flow's two ends did.
#[derive(Debug)]
struct FlowRan {
    /// Its index in the scenario.
    index: usize,
    sent: Passed,
    received: Passed,
    seen: Seen,
    /// Retransmission timeouts and fast recoveries of its host, where no other flow sends there.
    timeouts: Option<u64>,
    recoveries: Option<u64>,
}

fn hosts_of(scenario: &Scenario) -> Result<Vec<usize>, EmulateError> {
    let hosts: Vec<usize> = (0..scenario.nodes.len())
        .filter(|&index| matches!(scenario.nodes[index].kind, NodeKind::Host(_)))
        .collect();
    if hosts.len() > HOSTS {
        return Err(EmulateError::Request(format!(
            "{}: {} hosts; at most {HOSTS} can be emulated",
            scenario.name,
            hosts.len()
        )));
    }
    Ok(hosts)
}

/// Notes on what the kernel cannot do as the scenario says.
fn check(
    scenario: &Scenario,
    hosts: &[usize],
    commands: bool,
) -> Result<Vec<String>, EmulateError> {
    if scenario.flows.len() > FLOWS {
        return Err(EmulateError::Request(format!(
            "{}: {} flows; at most {FLOWS} can be emulated",
            scenario.name,
            scenario.flows.len()
        )));
    }
    let mut notes: Vec<String> = Vec::new();
    for &host in hosts {
        notes.extend(host::impossible(scenario, host));
    }
    if commands {
        return Ok(notes);
    }
    for flow in &scenario.flows {
        let name = control_of(scenario, flow.from);
        // Somebody who is not root may have it in a namespace of their own.
        if let Err(error) = ends::sender_socket(&name)
            && error.kind() != io::ErrorKind::PermissionDenied
        {
            return Err(EmulateError::Request(format!(
                "hosts.{}.tcp.congestion_control: the kernel has no \"{name}\" ({error}); it has {}",
                scenario.nodes[flow.from].name,
                available()
            )));
        }
    }
    Ok(notes)
}

/// The congestion controls that the kernel has now, or could load.
fn available() -> String {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(", ")
}

fn control_of(scenario: &Scenario, host: usize) -> String {
    let tcp: Option<&TcpSettings> = scenario.tcp_of(host);
    let name = tcp.map_or_else(String::new, |tcp| tcp.congestion_control.to_string());
    // Which of the two the kernel's is.
    if name == "bbr1" {
        "bbr".to_owned()
    } else {
        name
    }
}

/// A flow whose sockets are there.
struct Prepared {
    index: usize,
    socket: socket2::Socket,
    listener: TcpListener,
    from: usize,
    local: SocketAddrV4,
    to: SocketAddrV4,
    start: Time,
    size: Option<u64>,
}

fn prepare(
    scenario: &Scenario,
    outside: &[usize],
    hosts: &[Host],
) -> Result<Vec<Prepared>, EmulateError> {
    let place = |index: usize| outside.iter().position(|&host| host == index);
    let mut prepared = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let (Some(from), Some(to)) = (place(flow.from), place(flow.to)) else {
            return Err(EmulateError::Failed(format!("{}: no host", flow.name)));
        };
        let App::Bulk { size } = flow.app else {
            let name = &flow.name;
            return Err(EmulateError::Request(format!(
                "flows.{name}.app: emulated flows are single bulk uploads as yet"
            )));
        };
        let local = SocketAddrV4::new(hosts[from].address, FIRST_SENDER + index as u16);
        let remote = SocketAddrV4::new(hosts[to].address, FIRST_PORT + index as u16);
        let listener = hosts[to].space.enter(|| ends::listen(remote))??;
        let control = control_of(scenario, flow.from);
        let socket = hosts[from].space.enter(|| {
            let socket = ends::sender_socket(&control)?;
            socket.bind(&std::net::SocketAddr::V4(local).into())?;
            Ok::<_, io::Error>(socket)
        })??;
        prepared.push(Prepared {
            index,
            socket,
            listener,
            from,
            local,
            to: remote,
            start: flow.start,
            size: size.map(Bytes::get),
        });
    }
    Ok(prepared)
}

/// The interval of TCP_INFO: the scenario's, within reason.
fn interval(scenario: &Scenario) -> Span {
    let asked = match scenario.probes.interval {
        Interval::Every(span) => span,
        Interval::EveryChange => Span::from_millis(10),
    };
    asked.max(Span::from_millis(10)).min(Span::from_secs(1))
}

fn run_flows(
    scenario: &Scenario,
    engine: &mut Engine,
    hosts: &[Host],
    flows: Vec<Prepared>,
    clock: Clock,
    control: &Control,
) -> Result<Ran, EmulateError> {
    // A little later, so that threads do not start late.
    let start = clock.now() + Span::from_millis(5);
    let duration = scenario.duration;
    let ending = Ending {
        clock,
        end: start + duration,
        stopped: &control.stop,
    };
    let watched: Vec<Watched> = flows
        .iter()
        .map(|flow| Watched {
            host: flow.from,
            local: flow.local,
        })
        .collect();
    let over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let mut ends = Vec::new();
        for flow in flows {
            let (index, from) = (flow.index, flow.from);
            let listener = flow.listener;
            let receiver = spawn(scope, move || ends::receive(&listener, ending))?;
            let begins = start + flow.start.since(Time::ZERO);
            let sender = spawn(scope, move || {
                ends::send(flow.socket, flow.to, begins, flow.size, ending)
            })?;
            ends.push((index, from, sender, receiver));
        }
        let watcher = {
            let (watched, over) = (&watched, &over);
            let interval = interval(scenario);
            spawn(scope, move || {
                watch::watch(hosts, watched, clock, interval, over)
            })?
        };
        let elapsed = &control.elapsed_ms;
        let limit = duration + Span::from_secs(30);
        let mut ended = None;
        let driven = engine.run(clock, limit, |_, now| {
            elapsed.store(now.as_nanos() / 1_000_000, Ordering::Relaxed);
            if ended.is_none()
                && ends
                    .iter()
                    .all(|(_, _, sender, receiver)| sender.is_finished() && receiver.is_finished())
            {
                ended = Some(now);
                over.store(true, Ordering::Release);
            }
            watcher.is_finished()
        });
        // Whatever happened to the engine, nobody waits for it.
        if driven.is_err() {
            control.stop.store(true, Ordering::Relaxed);
        }
        over.store(true, Ordering::Release);
        let panicked = || io::Error::other("an end of a flow panicked");
        let seen = watcher.join().map_err(|_| panicked())??;
        let mut ran = Ran {
            ended: ended.unwrap_or(clock.now()).min(ending.end),
            ..Ran::default()
        };
        for ((index, from, sender, receiver), seen) in ends.into_iter().zip(seen) {
            let sent = sender.join().map_err(|_| panicked())?;
            let received = receiver.join().map_err(|_| panicked())?;
            let alone = watched.iter().filter(|flow| flow.host == from).count() == 1;
            let count = |names: &[&str]| -> io::Result<Option<u64>> {
                alone
                    .then(|| watch::counter(&hosts[from], names))
                    .transpose()
            };
            ran.flows.push(FlowRan {
                index,
                timeouts: count(&["TCPTimeouts"])?,
                recoveries: count(&["TCPSackRecovery", "TCPRenoRecovery"])?,
                sent,
                received,
                seen,
            });
        }
        driven?;
        Ok::<_, io::Error>(ran)
    });
    let mut ran = result?;
    shift(&mut ran, start);
    for flow in &ran.flows {
        for stream in [&flow.sent.stream, &flow.received.stream]
            .into_iter()
            .flatten()
        {
            ends::cut(stream);
        }
    }
    Ok(ran)
}

/// Time zero is when the scenario began.
fn shift(ran: &mut Ran, start: Time) {
    let since = |time: Time| Time::ZERO + time.since(start);
    ran.ended = since(ran.ended);
    for flow in &mut ran.flows {
        for end in [&mut flow.sent, &mut flow.received] {
            end.connected = end.connected.map(since);
            end.finished = end.finished.map(since);
            for (at, _) in &mut end.curve {
                *at = since(*at);
            }
        }
        flow.seen.shift(start);
    }
}

/// A thread with a small stack: there may be thousands.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new()
        .stack_size(256 << 10)
        .spawn_scoped(scope, work)
}

fn run_commands(
    engine: &mut Engine,
    hosts: &[Host],
    commands: &[command::Command],
    clock: Clock,
    control: &Control,
) -> Result<Ran, EmulateError> {
    let names: Vec<(String, Ipv4Addr)> = hosts
        .iter()
        .map(|host| (host.name.clone(), host.address))
        .collect();
    let mut running = command::Running::default();
    for command in commands {
        let Some(host) = hosts.iter().find(|host| host.name == command.host) else {
            return Err(EmulateError::Request(format!(
                "no host is \"{}\"; known: {}",
                command.host,
                names
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        };
        running
            .start(command, &host.space, &names)
            .map_err(|error| {
                EmulateError::Failed(format!("{}: {error}", command.words.join(" ")))
            })?;
    }
    let mut status = None;
    let elapsed = &control.elapsed_ms;
    let day = Span::from_secs(24 * 3600);
    engine.run(clock, day, |_, now| {
        elapsed.store(now.as_nanos() / 1_000_000, Ordering::Relaxed);
        status = running.finished();
        status.is_some() || control.stop.load(Ordering::Relaxed)
    })?;
    drop(running);
    Ok(Ran {
        flows: Vec::new(),
        status: Some(status.unwrap_or(130)),
        ended: clock.now(),
    })
}

fn refused(refusals: &Refusals) -> std::collections::BTreeMap<&'static str, u64> {
    let mut counts: std::collections::BTreeMap<_, _> =
        refusals.each().filter(|(_, count)| *count > 0).collect();
    for (name, count) in [
        ("unencodable", refusals.unencodable),
        ("not_taken", refusals.not_taken),
    ] {
        if count > 0 {
            counts.insert(name, count);
        }
    }
    counts
}
