//! Runs the applications of the simulator over the kernel's sockets, through a [`Desk`].
//!
//! One thread runs all openers of flows, another all servers. With two threads per flow, a thousand
//! flows took seconds to start, and packets were three times as late.

mod account;
mod datagrams;
mod desk;
mod sockets;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bentpipe_host::{Application, Deadlines, Member, Ports, Report, World};
use bentpipe_tcp::Statistics;
use bentpipe_types::{Address, Span, Time};
use nix::sys::epoll::EpollFlags;

use super::host::Host;
use crate::Clock;
use crate::punctual::{Punctual, Rank};
pub(crate) use desk::Desk;
use table::Table;

/// Longest wait between checks whether the run has ended.
const PATIENCE: Span = Span::from_millis(50);

/// Minimum interval of queries for acknowledged data, if an application waits for that.
const BETWEEN_QUESTIONS: Span = Span::from_millis(1);

/// Minimum time per queried connection, of which the query itself takes a fifth.
const QUESTION: Span = Span::from_micros(100);

/// The kernel's sockets as the environment of applications.
#[derive(Debug)]
pub(crate) enum Kernel {}

impl World for Kernel {
    type Desk<'a, 'c>
        = Desk<'a, 'c>
    where
        'c: 'a;
}

/// When the run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) clock: Clock,
    pub(crate) end: Time,
    /// Set when the run was interrupted or has become idle.
    pub(crate) stopped: &'a AtomicBool,
}

impl Ending<'_> {
    fn is_over(&self) -> bool {
        self.clock.now() >= self.end || self.stopped.load(Ordering::Relaxed)
    }
}

/// Whether a player is active, for other threads.
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

/// Results of an application.
#[derive(Clone, Debug, Default)]
pub(crate) struct Played {
    /// Sum of its connections' counters, as far as the kernel provides them; `None` without a
    /// connection.
    pub(crate) statistics: Option<Statistics>,
    pub(crate) report: Report,
    pub(crate) datagram_bytes: u64,
    /// Points in time, and bytes delivered to it until then.
    pub(crate) curve: Vec<(Time, u64)>,
    /// Stream offset at which received bytes first differed from those sent.
    pub(crate) mismatch: Option<u64>,
    /// Number of datagrams that were lengthened to hold their label.
    pub(crate) lengthened: u64,
}

/// An end of a flow at the kernel's sockets.
pub(crate) struct End {
    /// Index of its host in the list of hosts.
    pub(crate) host: usize,
    /// Name of its host's congestion control, and whether Nagle's algorithm is off.
    pub(crate) control: String,
    pub(crate) no_delay: bool,
    pub(crate) member: Member,
    pub(crate) application: Box<dyn Application<Kernel>>,
    /// The ports it listens on, and its peers: a node and a range of ports.
    pub(crate) listens: Vec<u16>,
    pub(crate) peers: (Address, Ports),
    /// The channel it receives, besides packets for its host.
    pub(crate) channel: Option<Address>,
}

/// Runs applications, all in the calling thread.
pub(crate) struct Player<'h> {
    applications: Vec<Box<dyn Application<Kernel>>>,
    table: Table<'h>,
    deadlines: Deadlines,
}

impl<'h> Player<'h> {
    /// Creates a player for these ends. Servers listen from now on.
    pub(crate) fn new(
        hosts: &'h [Host],
        nodes: &'h BTreeMap<IpAddr, Address>,
        ends: Vec<End>,
    ) -> io::Result<Self> {
        let mut player = Self {
            applications: Vec::new(),
            table: Table::new(hosts, nodes)?,
            deadlines: Deadlines::default(),
        };
        for end in ends {
            let me = player.applications.len();
            player.deadlines.reserve(me as u32);
            if let Some(at) = end.member.starts {
                player.deadlines.arm(me as u32, at);
            }
            player.table.add(
                end.host,
                end.control,
                end.no_delay,
                end.member,
                &end.listens,
                end.peers,
                end.channel,
                end.application.speaks_first(),
            )?;
            player.applications.push(end.application);
        }
        Ok(player)
    }

    /// Runs the applications until the end of the run.
    pub(crate) fn play(&mut self, ending: Ending<'_>, activity: &Activity) -> io::Result<()> {
        let clock = ending.clock;
        let _punctual = Punctual::new(Rank::Applications);
        self.table.moved();
        let mut ready = Vec::new();
        while !ending.is_over() {
            let now = clock.now();
            self.table.now = now;
            while let Some(number) = self.deadlines.due(now) {
                activity.last.store(now.as_nanos(), Ordering::Relaxed);
                self.run(number as usize);
            }
            if self.table.asks_at.is_some_and(|at| at <= now) {
                self.table.ask_drained();
                self.settle();
            }
            if self.table.has_more() {
                self.table.write_on();
                self.settle();
            }
            activity.busy.store(self.is_busy(), Ordering::Release);
            let next = (self.deadlines.next().into_iter())
                .chain(self.table.asks_at)
                .fold(ending.end, Time::min);
            let span = if self.table.has_more() {
                Span::ZERO
            } else {
                clock.until(next).min(PATIENCE)
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
        self.table.now = clock.now().min(ending.end);
        Ok(())
    }

    /// Resets the remaining connections and returns the results of the applications, in order.
    pub(crate) fn finish(mut self) -> Vec<Played> {
        let now = self.table.now;
        let accounts = self.table.finish();
        let told = accounts.into_iter().zip(&self.applications);
        told.map(|(mut played, application)| {
            played.report = application.told(now);
            played.datagram_bytes = application.datagram_bytes();
            played
        })
        .collect()
    }

    fn is_busy(&self) -> bool {
        // A deadline in the queue may be stale; the application states its own.
        let waits =
            |me: usize| self.table.starts(me) || self.applications[me].standing().next.is_some();
        self.table.is_busy() || (0..self.applications.len()).any(waits)
    }

    fn on_ready(&mut self, tag: u64, what: EpollFlags) {
        match table::Tag::of(tag) {
            table::Tag::Connection(place) => self.table.on_ready(place, what),
            table::Tag::Listener(index) => {
                while let Some((owner, socket)) = self.table.accept(index) {
                    let mut desk = Desk::new(&mut self.table, owner);
                    self.applications[owner].on_accept(socket, &mut desk);
                    self.arm(owner);
                }
            }
            table::Tag::Datagrams(index) => {
                // Bounded, so that other sockets have their turn.
                for _ in 0..64 {
                    let Some(received) = self.table.receive(index) else {
                        break;
                    };
                    let Some((owner, arrival)) = received else {
                        continue;
                    };
                    let mut desk = Desk::new(&mut self.table, owner);
                    self.applications[owner].on_datagram(arrival, &mut desk);
                    self.arm(owner);
                }
            }
        }
        self.settle();
    }

    /// Starts an application or runs its expired deadline.
    fn run(&mut self, me: usize) {
        let now = self.table.now;
        let application = &mut self.applications[me];
        if self.table.takes_start(me, now) {
            application.start(&mut Desk::new(&mut self.table, me));
        }
        if application.standing().next.is_some_and(|at| at <= now) {
            application.on_deadline(&mut Desk::new(&mut self.table, me));
        }
        if let Some(at) = self.table.start_of(me) {
            self.deadlines.arm(me as u32, at);
        }
        self.arm(me);
        self.settle();
    }

    fn arm(&mut self, me: usize) {
        if let Some(at) = self.applications[me].standing().next {
            self.deadlines.arm(me as u32, at);
        }
    }

    /// Delivers the events of connections to their applications, until there are none left.
    fn settle(&mut self) {
        while let Some((owner, socket, events)) = self.table.news() {
            let mut desk = Desk::new(&mut self.table, owner);
            self.applications[owner].on_events(socket, events, &mut desk);
            self.arm(owner);
            self.table.told(socket, events);
        }
    }
}
