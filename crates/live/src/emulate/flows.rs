//! Runs the scenario's flows: creates the applications at both ends and collects their results.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use bentpipe_host::applications::{EchoBy, Ends, Side};
use bentpipe_host::{Application, Limits, Ports};
use bentpipe_scenario::{App, Flow, Interval, Scenario};
use bentpipe_sim::{FlowEndData, FlowOutcome, FlowPlan, Traffic};
use bentpipe_tcp::{Config, Rings};
use bentpipe_types::{Address, Span, Time};

use super::addresses::{ip, ip_of};
use super::host::Host;
use super::kernel::{Activity, ApplicationResult, ApplicationRunner, Kernel, KernelEnd, RunEnd};
use super::kernel_rules::{KernelRules, congestion_control_of};
use super::our_hosts::{OurEnd, SharedHost};
use super::outcome::longest_link;
use super::run_result::{FlowResult, RunResult};
use super::tcp_info::{self, WatchedSender};
use super::threads::join_thread;
use super::{Control, EmulateError};
use crate::{Clock, Engine, LiveHost};

/// Time between the end of the set-up and the scenario's start, so that no thread starts late.
const START_DELAY: Span = Span::from_millis(5);

/// The run ends after this time without activity, plus two of the longest round trips.
const IDLE_TIME: Span = Span::from_millis(100);

/// Time allowed for runners and sampler to end after they are told to.
const SHUTDOWN_TIME: Span = Span::from_secs(30);

/// Returns the nodes that send a flow's data.
pub(super) fn senders(flow: &Flow) -> Vec<usize> {
    let side = match &flow.app {
        App::Bulk { .. } => Side::Opener,
        App::Other(_, traffic) | App::Mix(_, traffic) => traffic.sender(),
    };
    match side {
        Side::Opener => vec![flow.from],
        Side::Server => vec![flow.to],
        Side::Both => vec![flow.from, flow.to],
    }
}

/// Whether an application sends ICMP echo requests.
pub(super) fn pings_by_icmp(app: &App) -> bool {
    let of = |traffic: &Traffic| matches!(traffic, Traffic::Ping(ping) if ping.by == EchoBy::Icmp);
    match app {
        App::Bulk { .. } => false,
        App::Other(_, traffic) => of(traffic),
        App::Mix(_, Traffic::Mix(mix)) => mix.shares.iter().any(|share| of(&share.traffic)),
        App::Mix(..) => false,
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

/// An application at the kernel's sockets, or at a host with our TCP.
enum FlowApplication {
    Kernel(Box<dyn Application<Kernel>>),
    Ours(Box<dyn Application<Rings>>),
}

/// The applications of all flows. [`our_host`](Self::our_host) moves those at hosts with our TCP
/// into their hosts.
pub(super) struct FlowApplications {
    /// Applications by flow: opener and server.
    applications: Vec<[Option<FlowApplication>; 2]>,
    ours: Vec<OurEnd>,
}

impl FlowApplications {
    pub(super) fn new(plans: &[FlowPlan], ours: &[usize]) -> Self {
        let is_ours = |node: Address| ours.contains(&usize::from(node.0));
        let applications = plans.iter().map(|plan| {
            let [opener, server] = match (is_ours(plan.from), is_ours(plan.to)) {
                (false, false) => {
                    let Ends { opener, server } = plan.ends::<Kernel, Kernel>();
                    [
                        FlowApplication::Kernel(opener),
                        FlowApplication::Kernel(server),
                    ]
                }
                (true, false) => {
                    let Ends { opener, server } = plan.ends::<Rings, Kernel>();
                    [
                        FlowApplication::Ours(opener),
                        FlowApplication::Kernel(server),
                    ]
                }
                (false, true) => {
                    let Ends { opener, server } = plan.ends::<Kernel, Rings>();
                    [
                        FlowApplication::Kernel(opener),
                        FlowApplication::Ours(server),
                    ]
                }
                (true, true) => {
                    let Ends { opener, server } = plan.ends::<Rings, Rings>();
                    [FlowApplication::Ours(opener), FlowApplication::Ours(server)]
                }
            };
            [Some(opener), Some(server)]
        });
        Self {
            applications: applications.collect(),
            ours: Vec::new(),
        }
    }

    /// Creates a host with our TCP and its ends of the flows.
    pub(super) fn our_host(
        &mut self,
        node: usize,
        config: &Config,
        plans: &[FlowPlan],
        is_v6: bool,
    ) -> io::Result<SharedHost> {
        let mut live = LiveHost::new(Limits::default())?;
        let host = live.host_mut();
        host.set_addresses(if is_v6 {
            |node| ip(true, node)
        } else {
            |node| ip(false, node)
        });
        let mut added = Vec::new();
        for (flow, (plan, applications)) in plans.iter().zip(&mut self.applications).enumerate() {
            for (side, at) in [plan.from, plan.to].into_iter().enumerate() {
                if usize::from(at.0) != node {
                    continue;
                }
                if let Some(FlowApplication::Ours(application)) = applications[side].take() {
                    let config = config.clone();
                    let id = if side == 0 {
                        plan.add_opener(host, config, application)
                    } else {
                        plan.add_server(host, config, application)
                    };
                    added.push((flow, side == 0, id));
                }
            }
        }
        let shared = SharedHost::new(live);
        let ends = added.into_iter().map(|(flow, is_opener, id)| {
            let host = shared.clone();
            OurEnd::new(flow, is_opener, host, id)
        });
        self.ours.extend(ends);
        Ok(shared)
    }
}

/// The flows to run, and the kernel hosts they run on.
pub(super) struct FlowRun<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) hosts: &'a [Host],
    pub(super) plans: &'a [FlowPlan],
    pub(super) rules: &'a KernelRules,
}

/// The ends that one runner has, each with its flow.
type RunnerEnds = Vec<(usize, KernelEnd)>;

impl FlowRun<'_> {
    /// Runs all flows to completion, or for the scenario's duration.
    pub(super) fn run(
        &self,
        engine: &mut Engine,
        applications: FlowApplications,
        control: &Control,
    ) -> Result<(Clock, RunResult), EmulateError> {
        let FlowApplications {
            applications,
            mut ours,
        } = applications;
        let counters = || self.plans.iter().map(|_| Arc::default()).collect();
        let delivered = control.delivered.get_or_init(counters);
        let [openers, servers] = self.kernel_ends(applications, delivered);
        let (watched, watched_flows) = self.watched(&ours);
        let addresses = 0..self.scenario.nodes.len();
        let nodes: BTreeMap<IpAddr, Address> = addresses
            .map(|index| (ip_of(self.scenario, index), Address(index as u16)))
            .collect();
        let (stopped, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let activities = [Activity::new(), Activity::new()];
        let sample_interval = sample_interval(self.scenario);
        let end = Time::ZERO + self.scenario.duration;
        let mut ended = None;
        let (clock, mut results, samples) = thread::scope(|scope| {
            let (hosts, nodes, stopped, over) = (self.hosts, &nodes, &stopped, &over);
            // A separate thread opens the sockets, since it has to enter one namespace after
            // another.
            let opening = scope.spawn(move || {
                let new = |runner_ends: RunnerEnds| -> io::Result<_> {
                    let (flows, ends): (Vec<usize>, Vec<KernelEnd>) =
                        runner_ends.into_iter().unzip();
                    Ok((flows, ApplicationRunner::new(hosts, nodes, ends)?))
                };
                Ok::<_, io::Error>([new(openers)?, new(servers)?])
            });
            let runners = join_thread(opening)?;
            let clock = Clock::starting_in(START_DELAY);
            let run_end = RunEnd {
                clock,
                end,
                stopped,
            };
            let running = runners.into_iter().zip(&activities);
            let running = running.map(|((flows, mut runner), activity)| {
                scope.spawn(move || {
                    runner.run(run_end, activity)?;
                    let results = flows.into_iter().zip(runner.finish());
                    Ok::<_, io::Error>(results.collect::<BTreeMap<usize, ApplicationResult>>())
                })
            });
            let running: Vec<_> = running.collect();
            let watched = &watched;
            let sampler = scope.spawn(move || {
                tcp_info::sample_until_stopped(hosts, watched, clock, sample_interval, over)
            });
            let mut next_sample = Time::ZERO;
            let idle_time = IDLE_TIME + longest_link(self.scenario) * 2;
            let mut idle: Option<(Time, Time)> = None;
            let driven = engine.run(clock, self.scenario.duration + SHUTDOWN_TIME, |_, now| {
                let elapsed = now.as_nanos() / 1_000_000;
                control.elapsed_ms.store(elapsed, Ordering::Relaxed);
                if now >= next_sample {
                    next_sample = now + sample_interval;
                    for end in &mut ours {
                        end.sample(now);
                        if end.is_opener == self.opener_receives(end.flow) {
                            delivered[end.flow].store(end.delivered(), Ordering::Relaxed);
                        }
                    }
                }
                // The time since when the flows have been idle, and the time when that was first
                // seen. A host with our TCP only states that it is idle, not since when.
                idle = idle_since(&activities)
                    .filter(|_| ours.iter().all(OurEnd::is_over))
                    .map(|since| {
                        let noticed = idle.map_or(now, |(_, noticed)| noticed);
                        (if ours.is_empty() { since } else { noticed }, noticed)
                    });
                let is_quiet = idle.is_some_and(|(_, noticed)| now.since(noticed) > idle_time);
                let interrupted = control.stop.load(Ordering::Relaxed);
                if ended.is_none() && (is_quiet || interrupted || now >= end) {
                    let last = idle.map(|(since, _)| since).filter(|_| is_quiet);
                    ended = Some(last.unwrap_or(now).min(end));
                    stopped.store(true, Ordering::Relaxed);
                    // The sampler's last sample must come before the connections are closed.
                    over.store(true, Ordering::Release);
                }
                sampler.is_finished() && running.iter().all(|runner| runner.is_finished())
            });
            // The runners and the sampler must end even if the engine failed.
            stopped.store(true, Ordering::Relaxed);
            over.store(true, Ordering::Release);
            let mut results = Vec::new();
            for runner in running {
                results.push(join_thread(runner)?);
            }
            let samples = join_thread(sampler)?;
            driven?;
            Ok::<_, io::Error>((clock, results, samples))
        })?;
        let ended = ended.unwrap_or(end);
        let (Some(mut servers), Some(mut openers)) = (results.pop(), results.pop()) else {
            return Err(EmulateError::Failed("no runners".to_owned()));
        };
        for end in &mut ours {
            let side = if end.is_opener {
                &mut openers
            } else {
                &mut servers
            };
            side.insert(end.flow, end.result(ended));
        }
        let mut samples: BTreeMap<usize, tcp_info::SenderSamples> =
            watched_flows.into_iter().zip(samples).collect();
        for end in ours {
            if end.is_opener == (self.plans[end.flow].traffic.sender() != Side::Server) {
                samples.insert(end.flow, end.samples);
            }
        }
        let mut result = RunResult {
            ended,
            ..RunResult::default()
        };
        for (index, plan) in self.plans.iter().enumerate() {
            let take =
                |of: &mut BTreeMap<usize, ApplicationResult>| of.remove(&index).unwrap_or_default();
            // The counts of a channel's source are copied to every member's flow, the last one
            // included.
            let opener = match plan.channel {
                Some(_) => openers.get(&self.first_of_channel(index)).cloned(),
                None => openers.remove(&index),
            };
            let ends = [opener.unwrap_or_default(), take(&mut servers)];
            let flow_result = self.flow_result(index, plan, ends, samples.remove(&index))?;
            result.outcomes.push(flow_result.0);
            result.flows.push(flow_result.1);
        }
        Ok((clock, result))
    }

    /// Returns the ends for the two runners: openers and servers at kernel sockets.
    fn kernel_ends(
        &self,
        applications: Vec<[Option<FlowApplication>; 2]>,
        delivered: &[Arc<AtomicU64>],
    ) -> [RunnerEnds; 2] {
        let mut kernel_ends = [RunnerEnds::new(), RunnerEnds::new()];
        for (flow, (plan, applications)) in self.plans.iter().zip(applications).enumerate() {
            for (side, application) in applications.into_iter().enumerate() {
                let Some(FlowApplication::Kernel(application)) = application else {
                    continue;
                };
                let first = self.first_of_channel(flow);
                // A channel has one source: the opener of its first flow.
                if side == 0 && first != flow {
                    continue;
                }
                let (at, other) = match side {
                    0 => (plan.from, plan.to),
                    _ => (plan.to, plan.from),
                };
                let Some(host) = self.host_index(at) else {
                    continue;
                };
                let config = self.scenario.tcp_of(usize::from(at.0));
                let config = config.map(|tcp| tcp.config.clone()).unwrap_or_default();
                let no_delay = !config.nagle;
                let (member, listen_ports, ports) = match side {
                    0 => {
                        let back = plan.traffic.calls_back_from().unwrap_or_default();
                        (plan.opener(config), Vec::new(), Ports::range(back, back))
                    }
                    _ => {
                        let from = self.plans[first].ports;
                        (plan.listener(config), plan.traffic.ports(), from)
                    }
                };
                let end = KernelEnd {
                    host,
                    control: congestion_control_of(self.scenario, usize::from(at.0), self.rules),
                    no_delay,
                    member,
                    application,
                    listen_ports,
                    peers: (other, ports),
                    channel: plan.channel.filter(|_| side == 1),
                    delivered: if (side == 0) == self.opener_receives(flow) {
                        delivered[flow].clone()
                    } else {
                        Arc::default()
                    },
                };
                kernel_ends[side].push((flow, end));
            }
        }
        kernel_ends
    }

    /// Whether the opener of a flow receives its data, not the server.
    fn opener_receives(&self, flow: usize) -> bool {
        self.plans[flow].traffic.sender() == Side::Server
    }

    /// Returns the first flow of a flow's channel; for unicast, the flow itself.
    fn first_of_channel(&self, flow: usize) -> usize {
        let channel = self.plans[flow].channel;
        let same = |plan: &FlowPlan| channel.is_some() && plan.channel == channel;
        self.plans.iter().position(same).unwrap_or(flow)
    }

    fn host_index(&self, node: Address) -> Option<usize> {
        let mut hosts = self.hosts.iter();
        hosts.position(|host| host.node == usize::from(node.0))
    }

    /// Returns the senders at kernel sockets, to be sampled, and the flow of each.
    fn watched(&self, ours: &[OurEnd]) -> (Vec<WatchedSender>, Vec<usize>) {
        let mut watched = Vec::new();
        let mut flows = Vec::new();
        for (index, plan) in self.plans.iter().enumerate() {
            let is_server = plan.traffic.sender() == Side::Server;
            let is_ours = |end: &OurEnd| end.flow == index && end.is_opener != is_server;
            let at = if is_server { plan.to } else { plan.from };
            let Some(host) = self.host_index(at).filter(|_| !ours.iter().any(is_ours)) else {
                continue;
            };
            let opener = ip_of(self.scenario, usize::from(plan.from.0));
            watched.push(WatchedSender {
                host,
                ports: plan.ports.bounds(),
                client: is_server.then_some(opener),
            });
            flows.push(index);
        }
        (watched, flows)
    }

    /// Combines the results of both ends into the result of a flow.
    fn flow_result(
        &self,
        index: usize,
        plan: &FlowPlan,
        [opener, server]: [ApplicationResult; 2],
        samples: Option<tcp_info::SenderSamples>,
    ) -> io::Result<(FlowOutcome, FlowResult)> {
        let side = plan.traffic.sender();
        let reports = [opener.report.clone(), server.report.clone()];
        let (sends, node, receives) = match side {
            Side::Opener | Side::Both => (opener, plan.from, server),
            Side::Server => (server, plan.to, opener),
        };
        let host = self.host_index(node);
        let kernel_sends = host.is_some() && sends.statistics.is_some();
        let here = |plan: &&FlowPlan| plan.from == node || plan.to == node;
        let is_alone = self.plans.iter().filter(here).count() == 1;
        let count = |names: &[&str]| -> io::Result<Option<u64>> {
            let host = host.filter(|_| kernel_sends && is_alone);
            host.map(|host| tcp_info::counter(&self.hosts[host], names))
                .transpose()
        };
        let result = FlowResult {
            kernel_sends,
            timeouts: count(&["TCPTimeouts"])?,
            recoveries: count(&["TCPSackRecovery", "TCPRenoRecovery"])?,
            samples: samples.unwrap_or_default(),
            mismatch: receives.mismatch.or(sends.mismatch),
            lengthened: sends.lengthened + receives.lengthened,
            curve: receives.curve,
        };
        debug_assert_eq!(
            plan.name, self.scenario.flows[index].name,
            "plans and flows in the same order"
        );
        let outcome = FlowOutcome::of(FlowEndData {
            multicast: plan.channel.is_some(),
            name: plan.name.clone(),
            start: plan.opens,
            size: plan.traffic.size(),
            both: side == Side::Both,
            sender: sends.statistics,
            receiver: receives.statistics,
            datagram_bytes: [sends.datagram_bytes, receives.datagram_bytes],
            reports,
        });
        Ok((outcome, result))
    }
}

/// Returns the time since when all runners have been idle; `None` while one is busy.
fn idle_since(activities: &[Activity]) -> Option<Time> {
    let mut since = Time::ZERO;
    for activity in activities {
        since = since.max(activity.idle_since()?);
    }
    Some(since)
}
