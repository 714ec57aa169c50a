//! Runs a scenario in real time between Linux hosts, or hosts with our TCP among them.
//!
//! Every Linux host is a network namespace with a TUN device. The scenario's links, queues, error
//! models, return-link methods and gateways are the [`Engine`]'s network between the devices. Flows
//! are ordinary sockets. Nothing has a name outside this process: namespaces and devices vanish
//! with it, however it ends. Only a user's own command may outlive it, see [`command`].

mod addresses;
pub mod command;
mod control;
mod error;
mod flows;
mod host;
mod kernel;
mod kernel_rules;
mod our_hosts;
mod outcome;
mod route_keeper;
mod run_result;
mod tcp_info;
mod threads;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;
use std::thread;

use bentpipe_scenario::{Flow, IpName, NodeKind, Outside, RunOptions, Scenario};
use bentpipe_sim::{FlowPlan, NodeId};
use bentpipe_tcp::Config;
use bentpipe_types::{Agent, Span};
use nix::sys::eventfd::EventFd;

use crate::engine::Prefix;
use crate::{Clock, Engine};
use addresses::{ip, ip_of};
use flows::FlowApplications;
use host::Host;
use kernel_rules::{congestion_control_of, name_in_scenario};
use run_result::RunResult;
use threads::join_thread;

pub use control::Control;
pub use error::EmulateError;
pub use kernel_rules::KernelRules;
pub use outcome::EmulationResult;
pub(crate) use outcome::refusal_counts;

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
    /// Window rules loaded into the kernel for this run.
    pub rules: KernelRules,
}

/// Most hosts: each has a namespace, a device and two threads.
const MAX_HOSTS: usize = 1000;

/// Returns how long due work may wait, so that several packets share one wake-up. It is a fraction
/// of the longest link's propagation delay there and back that is small against
/// [`TOO_LATE`](outcome::TOO_LATE), and no longer than the interrupt coalescing of real interfaces.
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
    let mut notes = check_scenario(request, &kernel_hosts, &ours, !flows)?;
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
                rules: &request.rules,
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
    request: &Request,
    hosts: &[usize],
    ours: &[usize],
    commands: bool,
) -> Result<Vec<String>, EmulateError> {
    let (scenario, rules) = (&request.scenario, &request.rules);
    let mut notes: Vec<String> = Vec::new();
    for &host in hosts {
        if let Some(line) = host::mtu_error(scenario, host) {
            return Err(EmulateError::Request(line));
        }
        let loaded = rules.names.contains_key(&scenario.nodes[host].name);
        notes.extend(host::unsupported_settings(scenario, host, loaded));
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
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.quic) {
        return Err(EmulateError::Request(format!(
            "flows.{}.app.transport: an emulation has no QUIC hosts of its own; run a QUIC program in it, or simulate it",
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
            let name = congestion_control_of(scenario, node, rules);
            // Without root, the control may still be permitted in a namespace of the user's own.
            let is_offered = offered.entry(name.clone()).or_insert_with(|| {
                let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
                host::check_congestion_control(&name).map_or_else(denied, |()| true)
            });
            if !*is_offered {
                let given = name_in_scenario(scenario, node);
                let obstacle = rules.obstacles.get(&given);
                let obstacle = obstacle.map_or_else(String::new, |why| format!("; {why}"));
                return Err(EmulateError::Request(format!(
                    "hosts.{}.tcp.congestion_control: the kernel has no \"{name}\"; it has {}{obstacle}",
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
