//! Runs the applications of the simulator over the kernel's sockets, through a
//! [`KernelSocketContext`].
//!
//! One thread runs all openers of flows, another all servers. With two threads per flow, a thousand
//! flows took seconds to start, and packets were three times as late.

mod application_state;
mod kernel_connection;
mod socket_context;
mod socket_table;
mod tag;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bentpipe_host::{Application, Deadlines, Member, Ports, SocketBackend};
use bentpipe_types::{Address, Span, Time};
use nix::sys::epoll::EpollFlags;

use super::host::Host;
use crate::Clock;
use crate::realtime_priority::{PriorityLevel, RealtimePriority};
pub(crate) use application_state::ApplicationResult;
pub(crate) use socket_context::KernelSocketContext;
use socket_table::SocketTable;

/// Longest wait between checks whether the run has ended.
const MAX_WAIT: Span = Span::from_millis(50);

/// The kernel's sockets as the environment of applications.
#[derive(Debug)]
pub(crate) enum Kernel {}

impl SocketBackend for Kernel {
    type Api<'a, 'c>
        = KernelSocketContext<'a, 'c>
    where
        'c: 'a;
}

/// When the run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnd<'a> {
    pub(crate) clock: Clock,
    pub(crate) end: Time,
    /// Set when the run was interrupted or has become idle.
    pub(crate) stopped: &'a AtomicBool,
}

impl RunEnd<'_> {
    fn is_over(&self) -> bool {
        self.clock.now() >= self.end || self.stopped.load(Ordering::Relaxed)
    }
}

/// Whether a runner is active, for other threads.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Whether connections or deadlines are pending.
    busy: AtomicBool,
    /// Time of its last activity, in nanoseconds.
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            busy: AtomicBool::new(true),
            last: AtomicU64::new(0),
        }
    }

    /// Returns the time of the last activity if nothing is pending.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        let idle = !self.busy.load(Ordering::Acquire);
        idle.then(|| Time::from_nanos(self.last.load(Ordering::Relaxed)))
    }
}

/// An end of a flow at the kernel's sockets.
pub(crate) struct KernelEnd {
    /// Index of its host in the list of hosts.
    pub(crate) host: usize,
    /// Name of its host's congestion control, and whether Nagle's algorithm is off.
    pub(crate) control: String,
    pub(crate) no_delay: bool,
    pub(crate) member: Member,
    pub(crate) application: Box<dyn Application<Kernel>>,
    /// The ports it listens on, and its peers: a node and a range of ports.
    pub(crate) listen_ports: Vec<u16>,
    pub(crate) peers: (Address, Ports),
    /// The channel it receives, besides packets for its host.
    pub(crate) channel: Option<Address>,
    /// Counts the bytes delivered to it.
    pub(crate) delivered: Arc<AtomicU64>,
}

/// Runs applications, all in the calling thread.
pub(crate) struct ApplicationRunner<'h> {
    applications: Vec<Box<dyn Application<Kernel>>>,
    table: SocketTable<'h>,
    deadlines: Deadlines,
}

impl<'h> ApplicationRunner<'h> {
    /// Creates a runner for these ends. Servers listen from now on.
    pub(crate) fn new(
        hosts: &'h [Host],
        nodes: &'h BTreeMap<IpAddr, Address>,
        ends: Vec<KernelEnd>,
    ) -> io::Result<Self> {
        let mut runner = Self {
            applications: Vec::new(),
            table: SocketTable::new(hosts, nodes)?,
            deadlines: Deadlines::default(),
        };
        for end in ends {
            let me = runner.applications.len();
            runner.deadlines.reserve(me as u32);
            if let Some(at) = end.member.starts {
                runner.deadlines.arm(me as u32, at);
            }
            runner.table.add(
                end.host,
                end.control,
                end.no_delay,
                end.member,
                &end.listen_ports,
                end.peers,
                end.channel,
                end.application.speaks_first(),
                end.delivered,
            )?;
            runner.applications.push(end.application);
        }
        Ok(runner)
    }

    /// Runs the applications until the end of the run.
    pub(crate) fn run(&mut self, run_end: RunEnd<'_>, activity: &Activity) -> io::Result<()> {
        let clock = run_end.clock;
        let _priority = RealtimePriority::new(PriorityLevel::Applications);
        self.table.forget_namespace();
        let mut ready = Vec::new();
        while !run_end.is_over() {
            let now = clock.now();
            self.table.now = now;
            while let Some(number) = self.deadlines.due(now) {
                activity.last.store(now.as_nanos(), Ordering::Relaxed);
                self.run_application(number as usize);
            }
            if self.table.next_query_at.is_some_and(|at| at <= now) {
                self.table.query_acknowledged();
                self.deliver_events();
            }
            if self.table.has_unfinished_writes() {
                self.table.continue_writes();
                self.deliver_events();
            }
            activity.busy.store(self.is_busy(), Ordering::Release);
            let next = (self.deadlines.next().into_iter())
                .chain(self.table.next_query_at)
                .fold(run_end.end, Time::min);
            let span = if self.table.has_unfinished_writes() {
                Span::ZERO
            } else {
                clock.until(next).min(MAX_WAIT)
            };
            (self.table.poller).wait_for(span, |tag, what| ready.push((tag, what)))?;
            if ready.is_empty() {
                continue;
            }
            activity.busy.store(true, Ordering::Release);
            for (tag, what) in ready.drain(..) {
                self.table.now = clock.now();
                self.on_ready(tag, what);
            }
            let now = clock.now();
            activity.last.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.table.now = clock.now().min(run_end.end);
        Ok(())
    }

    /// Resets the remaining connections and returns the results of the applications, in order.
    pub(crate) fn finish(mut self) -> Vec<ApplicationResult> {
        let now = self.table.now;
        let applications = self.table.finish();
        let results = applications.into_iter().zip(&self.applications);
        results
            .map(|(mut result, application)| {
                result.report = application.metrics(now);
                result.datagram_bytes = application.datagram_bytes();
                result
            })
            .collect()
    }

    fn is_busy(&self) -> bool {
        // A deadline in the queue may be stale; the application states its own.
        let waits = |me: usize| {
            self.table.has_not_started(me) || self.applications[me].progress().next.is_some()
        };
        self.table.is_busy() || (0..self.applications.len()).any(waits)
    }

    fn on_ready(&mut self, tag: u64, what: EpollFlags) {
        match tag::Tag::of(tag) {
            tag::Tag::Connection(place) => self.table.on_ready(place, what),
            tag::Tag::Listener(index) => {
                while let Some((owner, socket)) = self.table.accept(index) {
                    let mut context = KernelSocketContext::new(&mut self.table, owner);
                    self.applications[owner].on_accept(socket, &mut context);
                    self.arm(owner);
                }
            }
            tag::Tag::Datagrams(index) => {
                // Bounded, so that other sockets have their turn.
                for _ in 0..64 {
                    let Some(received) = self.table.receive(index) else {
                        break;
                    };
                    let Some((owner, arrival)) = received else {
                        continue;
                    };
                    let mut context = KernelSocketContext::new(&mut self.table, owner);
                    self.applications[owner].on_datagram(arrival, &mut context);
                    self.arm(owner);
                }
            }
        }
        self.deliver_events();
    }

    /// Starts an application or runs its expired deadline.
    fn run_application(&mut self, me: usize) {
        let now = self.table.now;
        let application = &mut self.applications[me];
        if self.table.take_start(me, now) {
            application.start(&mut KernelSocketContext::new(&mut self.table, me));
        }
        if application.progress().next.is_some_and(|at| at <= now) {
            application.on_deadline(&mut KernelSocketContext::new(&mut self.table, me));
        }
        if let Some(at) = self.table.start_time(me) {
            self.deadlines.arm(me as u32, at);
        }
        self.arm(me);
        self.deliver_events();
    }

    fn arm(&mut self, me: usize) {
        if let Some(at) = self.applications[me].progress().next {
            self.deadlines.arm(me as u32, at);
        }
    }

    /// Delivers the events of connections to their applications, until there are none left.
    fn deliver_events(&mut self) {
        while let Some((owner, socket, events)) = self.table.next_events() {
            let mut context = KernelSocketContext::new(&mut self.table, owner);
            self.applications[owner].on_events(socket, events, &mut context);
            self.arm(owner);
            self.table.events_delivered(socket, events);
        }
    }
}
