//! A scenario in real time, between hosts of the kernel's, or some of ours among them.
//!
//! Every host of the kernel's is a network namespace with a TUN device; the scenario's links, queues, error models,
//! return-link methods and gateways are the [`Engine`]'s network between the devices. Flows are
//! ordinary sockets. Nothing has a name outside this process: namespaces and devices are gone when it
//! is, however it ends; only a user's own command may outlive it, see [`command`].

pub mod command;
mod ends;
mod host;
mod keeper;
mod netlink;
mod ours;
mod outcome;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use bentpipe_scenario::{
    App, Flow, Interval, IpName, NodeKind, Outside, RunOptions, Scenario, TcpSettings,
};
use bentpipe_tcp::{Config, Statistics};
use bentpipe_types::{Address, Agent, Bytes, Series, Span, Time};
use bentpipe_wire::NodeAddresses;
use nix::sys::eventfd::EventFd;

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
    /// Hosts, by name, that have our own TCP in the place of the kernel's.
    pub ours: Vec<String>,
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

/// When the scenario begins, by the clock of its network: a little later than that, so that threads do
/// not start late.
const STARTS: Time = Time::from_nanos(5_000_000);

/// How late packets may leave before the figures are not to be trusted, in shares of the propagation
/// there and back on the scenario's longest link: one in a hundred, one in a thousand.
const TOO_LATE: [f64; 2] = [0.05, 0.5];

/// How long what is due may wait for what is due next, so that they cost one wake: a share of the
/// propagation there and back on the longest link that is nothing beside [`TOO_LATE`], and no more than
/// the interfaces of real hosts wait before they interrupt.
fn grain(scenario: &Scenario) -> Span {
    (outcome::longest_link(scenario) / 2500).min(Span::from_micros(250))
}

/// A line that says why nothing can be emulated here; none if it can.
#[must_use]
pub fn obstacle() -> Option<String> {
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun: load the kernel's module with `modprobe tun`, or give the container the device".to_owned());
    }
    let opened = (std::fs::File::options().read(true).write(true)).open("/dev/net/tun");
    if let Err(error) = opened {
        return Some(format!(
            "this user may not open /dev/net/tun ({error}): run as root, or let everybody with `chmod 666 /dev/net/tun`"
        ));
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
    let ours = ours_of(request)?;
    let kernels: Vec<usize> = (outside.iter().copied())
        .filter(|index| !ours.contains(index))
        .collect();
    let notes = check(scenario, &kernels, !request.commands.is_empty())?;
    let mut options = request.options.clone();
    options.default_probes |= scenario.probes.series.is_empty();
    let mut ends = ours::Ends::default();
    let mut failed = None;
    let put = |index: usize, config: Config| -> Option<Box<dyn Agent + Send>> {
        if !ours.contains(&index) {
            return None;
        }
        let flows = request.commands.is_empty();
        match ours::host(scenario, index, &config, flows, &mut ends) {
            Ok(host) => Some(Box::new(host)),
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    };
    let built = Outside::new(scenario, &options, &outside, put)?;
    if let Some(error) = failed {
        return Err(error);
    }
    let Outside {
        network,
        nodes,
        closing,
    } = built;

    let mut engine = Engine::new(network);
    engine.set_grain(grain(scenario));
    let mut hosts = Vec::new();
    let mut names = Vec::new();
    for &index in &outside {
        let address = ip_of(scenario, index);
        names.push((scenario.nodes[index].name.clone(), address));
        if ours.contains(&index) {
            engine.locate(nodes[index], Prefix::of(address));
            continue;
        }
        let tcp = scenario.tcp_of(index).ok_or_else(|| {
            EmulateError::Failed(format!("{} is no host", scenario.nodes[index].name))
        })?;
        let name = &scenario.nodes[index].name;
        let (host, tun) = Host::new(index, name, address, &tcp.config)
            .map_err(|error| EmulateError::Failed(format!("host {name}: {error}")))?;
        engine.attach(nodes[index], Box::new(tun), &[Prefix::of(address)]);
        hosts.push(host);
    }
    let end = EventFd::new().map_err(io::Error::from)?;
    let (clock, ran) = thread::scope(|scope| {
        let keeper = scope.spawn(|| keeper::keep(&hosts, &end));
        let ran = if request.commands.is_empty() {
            prepare(scenario, &hosts, &ends).and_then(|flows| {
                let clock = Clock::start();
                let ran = run_flows(scenario, &mut engine, &hosts, flows, &ends, clock, control)?;
                Ok((clock, ran))
            })
        } else {
            let clock = Clock::start();
            let commands = &request.commands;
            run_commands(&mut engine, &hosts, &names, commands, clock, control)
                .map(|ran| (clock, ran))
        };
        end.write(1).map_err(io::Error::from)?;
        let ran = ran?;
        joined(keeper)?;
        Ok::<_, EmulateError>(ran)
    })?;
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
    /// What a sender of ours has counted.
    statistics: Option<Box<Statistics>>,
    /// Retransmission timeouts and fast recoveries of its host, where no other flow sends there.
    timeouts: Option<u64>,
    recoveries: Option<u64>,
}

/// The IP address that a node has.
fn ip_of(scenario: &Scenario, node: usize) -> IpAddr {
    let address = Address(node as u16);
    match scenario.ip {
        IpName::V4 => NodeAddresses::ipv4(address).into(),
        IpName::V6 => NodeAddresses::ipv6(address).into(),
    }
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

/// The hosts of ours, by index.
fn ours_of(request: &Request) -> Result<Vec<usize>, EmulateError> {
    let scenario = &request.scenario;
    let hosts = hosts_of(scenario)?;
    let find = |name: &String| {
        let named = |index: &&usize| scenario.nodes[**index].name == *name;
        hosts.iter().find(named).copied().ok_or_else(|| {
            let known: Vec<_> = (hosts.iter().take(20))
                .map(|index| scenario.nodes[*index].name.as_str())
                .collect();
            let known = known.join(", ");
            EmulateError::Request(format!("no host is \"{name}\"; known: {known}"))
        })
    };
    request.ours.iter().map(find).collect()
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
        if let Some(line) = host::refusal(scenario, host) {
            return Err(EmulateError::Request(line));
        }
        notes.extend(host::impossible(scenario, host));
    }
    if commands {
        return Ok(notes);
    }
    for flow in &scenario.flows {
        if !hosts.contains(&flow.from) {
            continue;
        }
        let name = control_of(scenario, flow.from);
        // Somebody who is not root may have it in a namespace of their own.
        if let Err(error) = ends::offers(&name)
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
    let name = tcp.map_or_else(String::new, |tcp| tcp.file.congestion_control.to_string());
    // Which of the two the kernel's is.
    if name == "bbr1" {
        "bbr".to_owned()
    } else {
        name
    }
}

/// The flows, with their ends there.
#[derive(Default)]
struct Prepared {
    senders: Vec<ends::Sender>,
    receivers: Vec<ends::Receiver>,
    /// The kernel's senders, to be looked at, and of which flow each is.
    watched: Vec<Watched>,
    watched_flows: Vec<usize>,
}

/// The two ends of a flow: its sender's address and its receiver's.
fn ends_of(scenario: &Scenario, flow: usize) -> (SocketAddr, SocketAddr) {
    let Flow { from, to, .. } = &scenario.flows[flow];
    let port = flow as u16; // there are FLOWS at most
    (
        SocketAddr::new(ip_of(scenario, *from), FIRST_SENDER + port),
        SocketAddr::new(ip_of(scenario, *to), FIRST_PORT + port),
    )
}

fn prepare(
    scenario: &Scenario,
    hosts: &[Host],
    ours: &ours::Ends,
) -> Result<Prepared, EmulateError> {
    let mut flows_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if !matches!(flow.app, App::Bulk { .. }) {
            let name = &flow.name;
            return Err(EmulateError::Request(format!(
                "flows.{name}.app: emulated flows are single bulk uploads as yet"
            )));
        }
        for node in [flow.from, flow.to] {
            flows_of.entry(node).or_default().push(index);
        }
    }
    let mut prepared = Prepared::default();
    for (place, host) in hosts.iter().enumerate() {
        let flows = flows_of.remove(&host.node).unwrap_or_default();
        let open = || -> io::Result<()> {
            for index in flows {
                let flow = &scenario.flows[index];
                let (local, remote) = ends_of(scenario, index);
                if flow.to == host.node && ours.receiver(index).is_none() {
                    let listener = ends::listen(remote)?;
                    let flow = index;
                    prepared.receivers.push(ends::Receiver { flow, listener });
                }
                if flow.from == host.node && ours.sender(index).is_none() {
                    let App::Bulk { size } = flow.app else {
                        continue; // refused above
                    };
                    let control = control_of(scenario, flow.from);
                    prepared.senders.push(ends::Sender {
                        flow: index,
                        socket: ends::sender_socket(local, &control)?,
                        to: remote,
                        start: STARTS + flow.start.since(Time::ZERO),
                        size: size.map(Bytes::get),
                    });
                    let host = place;
                    prepared.watched.push(Watched { host, local });
                    prepared.watched_flows.push(index);
                }
            }
            Ok(())
        };
        // One visit to each host: a visit is a thread.
        host.space.enter(open)??;
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
    prepared: Prepared,
    ours: &ours::Ends,
    clock: Clock,
    control: &Control,
) -> Result<Ran, EmulateError> {
    let start = STARTS;
    let duration = scenario.duration;
    let ending = Ending {
        clock,
        end: start + duration,
        stopped: &control.stop,
    };
    let Prepared {
        senders,
        receivers,
        watched,
        watched_flows,
    } = prepared;
    let over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let receiving = scope.spawn(move || ends::receive(receivers, ending));
        let sending = scope.spawn(move || ends::send(senders, ending));
        let watcher = {
            let (watched, over) = (&watched, &over);
            let interval = interval(scenario);
            scope.spawn(move || watch::watch(hosts, watched, clock, interval, over))
        };
        let elapsed = &control.elapsed_ms;
        let limit = duration + Span::from_secs(30);
        let mut ended = None;
        let driven = engine.run(clock, limit, |_, now| {
            elapsed.store(now.as_nanos() / 1_000_000, Ordering::Relaxed);
            let stopped = control.stop.load(Ordering::Relaxed);
            let kernels = receiving.is_finished() && sending.is_finished();
            if ended.is_none() && kernels && (stopped || ours.are_over()) {
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
        let seen = joined(watcher)?;
        let (mut sent, mut received) = (by_flow(joined(sending)?), by_flow(joined(receiving)?));
        let mut seen: BTreeMap<usize, Seen> = watched_flows.into_iter().zip(seen).collect();
        let mut ran = Ran {
            ended: ended.unwrap_or(clock.now()).min(ending.end),
            ..Ran::default()
        };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let sent = ours.take(ours.sender(index), sent.remove(&index));
            let received = ours.take(ours.receiver(index), received.remove(&index));
            let from = hosts.iter().position(|host| host.node == flow.from);
            let alone = from.filter(|from| {
                let mut flows = watched.iter().filter(|flow| flow.host == *from);
                flows.next().is_some() && flows.next().is_none()
            });
            let count = |names: &[&str]| -> io::Result<Option<u64>> {
                alone
                    .map(|from| watch::counter(&hosts[from], names))
                    .transpose()
            };
            ran.flows.push(FlowRan {
                index,
                timeouts: count(&["TCPTimeouts"])?,
                recoveries: count(&["TCPSackRecovery", "TCPRenoRecovery"])?,
                seen: seen.remove(&index).unwrap_or(sent.seen),
                statistics: sent.statistics,
                sent: sent.passed,
                received: received.passed,
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

fn joined<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    let panicked = |_| Err(io::Error::other("a thread of the emulation panicked"));
    thread.join().unwrap_or_else(panicked)
}

fn by_flow(ends: Vec<(usize, Passed)>) -> BTreeMap<usize, Passed> {
    ends.into_iter().collect()
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
        if let Some(statistics) = &mut flow.statistics {
            statistics.first_data_at = statistics.first_data_at.map(since);
        }
    }
}

fn run_commands(
    engine: &mut Engine,
    hosts: &[Host],
    names: &[(String, IpAddr)],
    commands: &[command::Command],
    clock: Clock,
    control: &Control,
) -> Result<Ran, EmulateError> {
    let mut running = command::Running::default();
    for command in commands {
        let Some(host) = hosts.iter().find(|host| host.name == command.host) else {
            let known: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
            return Err(EmulateError::Request(format!(
                "no host of the kernel's is \"{}\"; known: {}",
                command.host,
                known.join(", ")
            )));
        };
        running
            .start(command, &host.space, names)
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
        ("device_down", refusals.device_down),
        ("uncut", refusals.uncut),
    ] {
        if count > 0 {
            counts.insert(name, count);
        }
    }
    counts
}
