//! Runs a scenario in real time between Linux hosts, or hosts with our TCP among them.
//!
//! Every Linux host is a network namespace with a TUN device. The scenario's links, queues, error
//! models, return-link methods and gateways are the [`Engine`]'s network between the devices. Flows
//! are ordinary sockets. Nothing has a name outside this process: namespaces and devices vanish
//! with it, however it ends. Only a user's own command may outlive it, see [`command`].

pub mod command;
mod flows;
mod host;
mod kernel;
mod route_keeper;

mod our_hosts;
mod outcome;
mod tcp_info;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ScopedJoinHandle};

use bentpipe_scenario::{
    Flow, Interval, IpName, NodeKind, Outside, RunOptions, Scenario, TcpSettings,
};
use bentpipe_sim::{FlowOutcome, FlowPlan, NodeId};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Agent, Series, Span, Time};
use bentpipe_wire::NodeAddresses;
use nix::sys::eventfd::EventFd;

use crate::engine::{Prefix, Refusals};
use crate::{Clock, Engine};
use flows::FlowApplications;
use host::Host;
use tcp_info::SenderSamples;

/// A scenario to emulate, with its options.
#[derive(Debug)]
pub struct Request {
    /// The scenario.
    pub scenario: Scenario,
    /// Seed, captures, probes.
    pub options: RunOptions,
    /// User commands that run instead of the scenario's flows.
    pub commands: Vec<command::Command>,
    /// Names of hosts with our TCP instead of the kernel's.
    pub ours: Vec<String>,
}

/// Controls and observes a running emulation from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Interrupts the run: everything is removed, and the results so far are returned.
    pub stop: AtomicBool,
    /// Milliseconds since the start.
    pub elapsed_ms: AtomicU64,
    /// Bytes that the receivers of each flow have read, once the flows have started.
    pub delivered: OnceLock<Vec<Arc<AtomicU64>>>,
}

/// Results of an emulation.
#[derive(Debug)]
pub struct EmulationResult {
    /// The result as in `run --json`, with `late_ms`, `too_late`, `refusal_counts` and `notes` in
    /// addition.
    pub summary: serde_json::Value,
    /// Probes of links, TCP_INFO of the flows' senders, and the bytes that receivers have read.
    pub series: Vec<Series>,
    /// Exit status of the last command, if there was one.
    pub status: Option<i32>,
}

/// Why there is no result, in one line.
#[derive(Debug)]
pub enum EmulateError {
    /// The request is invalid.
    Request(String),
    /// The run failed.
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

/// Most hosts: each has a namespace, a device and two threads.
const MAX_HOSTS: usize = 1000;

/// Time between the end of the set-up and the scenario's start, so that no thread starts late.
const START_DELAY: Span = Span::from_millis(5);

/// Limits of the 99th and the 99.9th percentile of lateness, beyond which the result is marked as
/// not trustworthy. Fractions of the longest link's propagation delay there and back.
const TOO_LATE: [f64; 2] = [0.05, 0.5];

/// Returns how long due work may wait, so that several packets share one wake-up. It is a fraction
/// of the longest link's propagation delay there and back that is small against [`TOO_LATE`], and
/// no longer than the interrupt coalescing of real interfaces.
fn wake_interval(scenario: &Scenario) -> Span {
    (outcome::longest_link(scenario) / 2500).min(Span::from_micros(250))
}

/// Returns an error message if this machine cannot emulate.
#[must_use]
pub fn obstacle() -> Option<String> {
    let cure = "run as root, or permit it for all users with `chmod 666 /dev/net/tun`";
    if let Some(obstacle) = crate::tun::obstacle(cure) {
        return Some(obstacle);
    }
    let namespace = match crate::Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => {
            return Some(format!(
                "cannot create a network namespace ({error}): run as root, or allow user namespaces with `sysctl kernel.unprivileged_userns_clone=1`"
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
    match namespace.enter(|| crate::Tun::open(&settings).map(drop)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(format!(
            "cannot open a TUN device in a namespace ({error}): CAP_NET_ADMIN is needed"
        )),
    }
}

/// Runs the scenario in real time.
///
/// # Errors
/// If the request is invalid or the machine refuses something.
pub fn emulate(request: &Request, control: &Control) -> Result<EmulationResult, EmulateError> {
    let scenario = &request.scenario;
    let outside = host_indices(scenario)?;
    let ours = our_host_indices(request)?;
    let kernel_hosts: Vec<usize> = (outside.iter().copied())
        .filter(|index| !ours.contains(index))
        .collect();
    let flows = request.commands.is_empty();
    let mut notes = check_scenario(scenario, &kernel_hosts, &ours, !flows)?;
    let mut options = request.options.clone();
    options.default_probes |= scenario.probes.series.is_empty();
    let mut applications: Option<FlowApplications> = None;
    let mut failed = None;
    let make_host =
        |index: usize, config: Config, plans: &[FlowPlan]| -> Option<Box<dyn Agent + Send>> {
            if !ours.contains(&index) {
                return None;
            }
            let plans = if flows { plans } else { &[] };
            let applications =
                applications.get_or_insert_with(|| FlowApplications::new(plans, &ours));
            match applications.our_host(index, &config, plans, scenario.ip == IpName::V6) {
                Ok(host) => Some(Box::new(host)),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        };
    let built = Outside::new(scenario, &options, &outside, make_host)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let Outside {
        network,
        nodes,
        plans,
        mut closing,
    } = built;
    let plans = if flows { plans } else { Vec::new() };
    let applications = applications.unwrap_or_else(|| FlowApplications::new(&plans, &ours));

    let mut engine = Engine::new(network);
    engine.set_wake_interval(wake_interval(scenario));
    let mut hosts = Vec::new();
    let mut names = Vec::new();
    for &index in &outside {
        let address = ip_of(scenario, index);
        names.push((scenario.nodes[index].name.clone(), address));
        if ours.contains(&index) {
            engine.add_prefix(nodes[index], Prefix::of(address));
            continue;
        }
        let tcp = scenario.tcp_of(index).ok_or_else(|| {
            EmulateError::Failed(format!("{} is not a host", scenario.nodes[index].name))
        })?;
        let name = &scenario.nodes[index].name;
        let (host, tun) = Host::new(index, name, address, &tcp.config)
            .map_err(|error| EmulateError::Failed(format!("host {name}: {error}")))?;
        engine.attach(nodes[index], Box::new(tun), &[Prefix::of(address)]);
        hosts.push(host);
    }
    for channel in plans.iter().filter_map(|plan| plan.channel) {
        if let Some(stands_for) = NodeId::of_channel(channel) {
            let group = ip(scenario.ip == IpName::V6, channel);
            engine.add_prefix(stands_for, Prefix::of(group));
        }
    }
    let end = EventFd::new().map_err(io::Error::from)?;
    let (clock, result) = thread::scope(|scope| {
        let route_keeper = scope.spawn(|| route_keeper::restore_routes(&hosts, &end));
        let result = if flows {
            let flow_run = flows::FlowRun {
                scenario,
                hosts: &hosts,
                plans: &plans,
            };
            flow_run.run(&mut engine, applications, control)
        } else {
            let clock = Clock::start();
            let commands = &request.commands;
            run_commands(&mut engine, &hosts, &names, commands, clock, control)
                .map(|result| (clock, result))
        };
        end.write(1).map_err(io::Error::from)?;
        let result = result?;
        join_thread(route_keeper)?;
        Ok::<_, EmulateError>(result)
    })?;
    engine.network_mut().finish();
    let (late, refusals) = (engine.lateness().clone(), *engine.refusals());
    let mut result = result;
    let outcomes = std::mem::take(&mut result.outcomes);
    // Completes the captures. If one was truncated, the results are returned all the same.
    drop(engine.network_mut().take_taps());
    notes.extend(closing.cut_captures());
    let output = closing.finish(engine.into_network(), scenario, outcomes, result.ended)?;
    Ok(outcome::emulation_result(outcome::RunData {
        scenario,
        output,
        result,
        late: &late,
        refusals: &refusals,
        notes,
        clock,
    }))
}

/// Results of the flows or commands.
#[derive(Debug, Default)]
struct RunResult {
    /// Results by flow, as in a simulation.
    outcomes: Vec<FlowOutcome>,
    /// Further results by flow.
    flows: Vec<FlowResult>,
    status: Option<i32>,
    ended: Time,
}

/// Results of an emulated flow that a simulation does not have.
#[derive(Debug, Default)]
struct FlowResult {
    /// Whether its sender uses kernel sockets.
    kernel_sends: bool,
    samples: SenderSamples,
    /// Points in time, and bytes that its receiver had read until then.
    curve: Vec<(Time, u64)>,
    /// Retransmission timeouts and fast recoveries of its host, if no other flow uses that host.
    timeouts: Option<u64>,
    recoveries: Option<u64>,
    /// Stream offset at which received bytes first differed from those sent.
    mismatch: Option<u64>,
    /// Number of datagrams that were lengthened to hold their label.
    lengthened: u64,
}

/// Returns the IP address of a node.
fn ip_of(scenario: &Scenario, node: usize) -> IpAddr {
    ip(scenario.ip == IpName::V6, Address(node as u16))
}

fn ip(is_v6: bool, node: Address) -> IpAddr {
    if is_v6 {
        NodeAddresses::ipv6(node).into()
    } else {
        NodeAddresses::ipv4(node).into()
    }
}

fn host_indices(scenario: &Scenario) -> Result<Vec<usize>, EmulateError> {
    let hosts: Vec<usize> = (0..scenario.nodes.len())
        .filter(|&index| matches!(scenario.nodes[index].kind, NodeKind::Host(_)))
        .collect();
    if hosts.len() > MAX_HOSTS {
        return Err(EmulateError::Request(format!(
            "{}: {} hosts; at most {MAX_HOSTS} can be emulated",
            scenario.name,
            hosts.len()
        )));
    }
    Ok(hosts)
}

/// Returns the indices of the hosts with our TCP.
fn our_host_indices(request: &Request) -> Result<Vec<usize>, EmulateError> {
    let scenario = &request.scenario;
    let hosts = host_indices(scenario)?;
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

/// Checks that the kernel can run the scenario. Returns notes on settings without effect.
fn check_scenario(
    scenario: &Scenario,
    hosts: &[usize],
    ours: &[usize],
    commands: bool,
) -> Result<Vec<String>, EmulateError> {
    let mut notes: Vec<String> = Vec::new();
    for &host in hosts {
        if let Some(line) = host::mtu_error(scenario, host) {
            return Err(EmulateError::Request(line));
        }
        notes.extend(host::unsupported_settings(scenario, host));
    }
    for node in &scenario.nodes {
        if matches!(&node.kind, NodeKind::Host(host) if host.processing.is_some()) {
            notes.push(format!(
                "hosts.{}.processing: no effect, a real host has its own processing time",
                node.name
            ));
        }
    }
    for link in scenario.links.iter().filter(|link| link.arp.is_some()) {
        notes.push(format!(
            "links.{}.arp: no effect, the hosts' devices have no link addresses",
            link.name
        ));
    }
    if commands {
        return Ok(notes);
    }
    let of_ours = |flow: &&Flow| {
        flow.channel.is_some() && (ours.contains(&flow.from) || ours.contains(&flow.to))
    };
    if let Some(flow) = scenario.flows.iter().find(of_ours) {
        return Err(EmulateError::Request(format!(
            "flows.{}.to: a host with our TCP neither sends nor receives multicast in an emulation; hosts with the kernel's do",
            flow.table
        )));
    }
    let mut offered: BTreeMap<String, bool> = BTreeMap::new();
    for flow in &scenario.flows {
        if ours.contains(&flow.from) && flows::pings_by_icmp(&flow.app) {
            return Err(EmulateError::Request(format!(
                "flows.{}.app.protocol: a host with our TCP sends no ICMP echo requests in an emulation; expected \"udp\"",
                flow.name
            )));
        }
        for node in flows::senders(flow) {
            if !hosts.contains(&node) {
                continue;
            }
            let name = congestion_control_of(scenario, node);
            // Without root, the control may still be permitted in a namespace of the user's own.
            let is_offered = offered.entry(name.clone()).or_insert_with(|| {
                let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
                host::check_congestion_control(&name).map_or_else(denied, |()| true)
            });
            if !*is_offered {
                return Err(EmulateError::Request(format!(
                    "hosts.{}.tcp.congestion_control: the kernel has no \"{name}\"; it has {}",
                    scenario.nodes[node].name,
                    available_congestion_controls()
                )));
            }
        }
    }
    Ok(notes)
}

/// Returns the congestion controls that the kernel lists as available.
fn available_congestion_controls() -> String {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(", ")
}

fn congestion_control_of(scenario: &Scenario, host: usize) -> String {
    let tcp: Option<&TcpSettings> = scenario.tcp_of(host);
    let name = tcp.map_or_else(String::new, |tcp| tcp.file.congestion_control.to_string());
    // The kernel's "bbr" is version 1.
    if name == "bbr1" {
        "bbr".to_owned()
    } else {
        name
    }
}

/// Returns the interval between TCP_INFO samples: the scenario's, from 10 ms to 1 s.
fn sample_interval(scenario: &Scenario) -> Span {
    let asked = match scenario.probes.interval {
        Interval::Every(span) => span,
        Interval::EveryChange => Span::from_millis(10),
    };
    asked.max(Span::from_millis(10)).min(Span::from_secs(1))
}

fn join_thread<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    let panicked = |_| Err(io::Error::other("a thread of the emulation panicked"));
    thread.join().unwrap_or_else(panicked)
}

fn run_commands(
    engine: &mut Engine,
    hosts: &[Host],
    names: &[(String, IpAddr)],
    commands: &[command::Command],
    clock: Clock,
    control: &Control,
) -> Result<RunResult, EmulateError> {
    let mut running = command::RunningCommands::default();
    for command in commands {
        let Some(host) = hosts.iter().find(|host| host.name == command.host) else {
            let known: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
            return Err(EmulateError::Request(format!(
                "no host with the kernel's TCP is \"{}\"; known: {}",
                command.host,
                known.join(", ")
            )));
        };
        running
            .start(command, &host.namespace, names)
            .map_err(|error| {
                EmulateError::Failed(format!("{}: {error}", command.words.join(" ")))
            })?;
    }
    let mut status = None;
    let elapsed = &control.elapsed_ms;
    let day = Span::from_secs(24 * 3600);
    engine.run(clock, day, |_, now| {
        elapsed.store(now.as_nanos() / 1_000_000, Ordering::Relaxed);
        status = running.exit_status();
        status.is_some() || control.stop.load(Ordering::Relaxed)
    })?;
    drop(running);
    Ok(RunResult {
        status: Some(status.unwrap_or(130)),
        ended: clock.now(),
        ..RunResult::default()
    })
}

pub(crate) fn refusal_counts(refusals: &Refusals) -> std::collections::BTreeMap<&'static str, u64> {
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
