//! The ends of flows at a host of ours (`--attach HOST=our`): the simulator's TCP, among real ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_host::{
    Application, Connect, Desk, Limits, Listener, Member, Remote, SocketId, Taker,
};
use bentpipe_scenario::{App, Scenario};
use bentpipe_tcp::{Config, Events, Rings, State, Statistics};
use bentpipe_types::{Address, Bytes, Endpoint, Span, Time, filler};

use super::ends::Passed;
use super::watch::Seen;
use super::{EmulateError, FIRST_PORT, FIRST_SENDER, STARTS, interval, ip_of};
use crate::LiveHost;

/// Read at once.
const CHUNK: usize = 64 << 10;

/// What came of one end of a flow.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) passed: Passed,
    pub(crate) seen: Seen,
    pub(crate) statistics: Option<Box<Statistics>>,
    /// Nothing more will come of it.
    pub(crate) is_over: bool,
}

/// An end that the network's thread plays and others look at.
pub(crate) type Shared = Arc<Mutex<End>>;

pub(crate) fn lock(end: &Shared) -> MutexGuard<'_, End> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What both kinds of ends have in common.
#[derive(Debug)]
struct Course {
    end: Shared,
    socket: Option<SocketId>,
    /// When everything ends.
    until: Time,
}

type AtDesk<'a, 'c> = Desk<'a, 'c, Rings>;

impl Course {
    fn new(until: Time) -> (Self, Shared) {
        let end = Shared::default();
        let course = Self {
            end: Arc::clone(&end),
            socket: None,
            until,
        };
        (course, end)
    }

    /// Takes in what has happened to the connection. True once it is over.
    fn happened(&self, events: Events, desk: &AtDesk<'_, '_>) -> bool {
        let mut end = lock(&self.end);
        let now = desk.now();
        if events.has(Events::ESTABLISHED) {
            end.passed.connected = Some(now);
        }
        if events.has(Events::RESET) {
            let refused = end.passed.connected.is_none();
            end.passed.failure = Some(if refused { "refused" } else { "reset" });
        } else if events.has(Events::TIMED_OUT | Events::UNREACHABLE) {
            end.passed.failure = Some("gave up");
        }
        let connection = self.socket.and_then(|socket| desk.connection(socket));
        let state = connection.map_or(State::Closed, |connection| connection.state());
        // The peer has all, and nothing more comes from it.
        end.is_over |= matches!(state, State::Closed | State::TimeWait);
        end.is_over
    }

    /// Notes how the connection stands.
    fn look(&self, desk: &AtDesk<'_, '_>) {
        let Some(connection) = self.socket.and_then(|socket| desk.connection(socket)) else {
            return;
        };
        let mut end = lock(&self.end);
        end.seen.note(desk.now(), connection);
        end.statistics = Some(Box::new(connection.statistics().clone()));
    }

    /// The run is over: a connection that still is there is cut off, as the kernel's are.
    fn finish(&mut self, desk: &mut AtDesk<'_, '_>) {
        if lock(&self.end).is_over {
            return;
        }
        self.look(desk);
        lock(&self.end).is_over = true;
        if let Some(socket) = self.socket {
            desk.abort(socket);
        }
    }
}

/// The end that opens and sends: as a simulated bulk transfer does, without a size until the end.
#[derive(Debug)]
struct Sender {
    course: Course,
    to: Remote,
    local_port: u16,
    size: Option<u64>,
    interval: Span,
    next_look: Option<Time>,
}

impl Application<Rings> for Sender {
    fn start(&mut self, desk: &mut AtDesk<'_, '_>) {
        let connect = Connect {
            local_port: Some(self.local_port),
            ..Connect::to(self.to)
        };
        match desk.connect_with(&connect) {
            Ok((socket, _)) => {
                self.course.socket = Some(socket);
                self.next_look = Some(desk.now());
            }
            Err(_) => {
                let mut end = lock(&self.course.end);
                end.passed.failure = Some("refused");
                end.is_over = true;
            }
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut AtDesk<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            desk.sink(socket);
            desk.feed(socket, self.size.unwrap_or(u64::MAX), true);
        }
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
        let was_over = lock(&self.course.end).is_over;
        if self.course.happened(events, desk) && !was_over {
            self.next_look = None;
            self.course.look(desk);
        }
    }

    fn on_deadline(&mut self, desk: &mut AtDesk<'_, '_>) {
        if desk.now() >= self.course.until {
            self.next_look = None;
            self.course.finish(desk);
        } else {
            self.course.look(desk);
            let next = desk.now() + self.interval;
            self.next_look = Some(next.min(self.course.until));
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_look
    }
}

/// The end that takes and reads, and compares every byte.
#[derive(Debug)]
struct Receiver {
    course: Course,
    buffer: Vec<u8>,
    until: Option<Time>,
}

impl Application<Rings> for Receiver {
    fn on_accept(&mut self, socket: SocketId, _: &mut AtDesk<'_, '_>) {
        // There is one connection to each flow's port.
        self.course.socket.get_or_insert(socket);
        self.until = Some(self.course.until);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut AtDesk<'_, '_>) {
        if self.course.socket != Some(socket) {
            return;
        }
        loop {
            let length = desk.read_bytes(socket, &mut self.buffer);
            if length == 0 {
                break;
            }
            let passed = &mut lock(&self.course.end).passed;
            if let Some(at) = filler::first_difference(passed.bytes, &self.buffer[..length]) {
                passed.mismatch.get_or_insert(passed.bytes + at as u64);
            }
            passed.note(desk.now(), passed.bytes + length as u64);
        }
        if events.has(Events::PEER_CLOSED) {
            lock(&self.course.end).passed.finished = Some(desk.now());
            desk.close(socket);
        }
        if self.course.happened(events, desk) {
            self.until = None;
        }
    }

    fn on_deadline(&mut self, desk: &mut AtDesk<'_, '_>) {
        self.until = None;
        self.course.finish(desk);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.until
    }
}

/// What the ends of a flow are that hosts of ours have: of each flow, by index in the scenario.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) senders: Vec<(usize, Shared)>,
    pub(crate) receivers: Vec<(usize, Shared)>,
}

impl Ends {
    pub(crate) fn sender(&self, flow: usize) -> Option<&Shared> {
        find(&self.senders, flow)
    }

    pub(crate) fn receiver(&self, flow: usize) -> Option<&Shared> {
        find(&self.receivers, flow)
    }
}

impl Ends {
    /// Nothing more will come of any of them.
    pub(crate) fn are_over(&self) -> bool {
        let mut ends = self.senders.iter().chain(&self.receivers);
        ends.all(|(_, end)| lock(end).is_over)
    }

    /// What came of an end: of ours, or of the kernel's.
    pub(crate) fn take(&self, ours: Option<&Shared>, kernels: Option<Passed>) -> End {
        match ours {
            Some(end) => std::mem::take(&mut *lock(end)),
            None => End {
                passed: kernels.unwrap_or_default(),
                ..End::default()
            },
        }
    }
}

fn find(ends: &[(usize, Shared)], flow: usize) -> Option<&Shared> {
    let place = ends.binary_search_by_key(&flow, |(index, _)| *index).ok()?;
    Some(&ends[place].1)
}

/// A host of ours with its ends of the scenario's flows.
pub(crate) fn host(
    scenario: &Scenario,
    node: usize,
    config: &Config,
    flows: bool,
    ends: &mut Ends,
) -> Result<LiveHost, EmulateError> {
    let mut live = LiveHost::new(Limits::default())?;
    let until = STARTS + scenario.duration;
    for (index, flow) in scenario.flows.iter().enumerate().filter(|_| flows) {
        let App::Bulk { size } = flow.app else {
            continue; // refused before
        };
        let ports = (FIRST_SENDER + index as u16, FIRST_PORT + index as u16);
        if flow.from == node {
            let (course, end) = Course::new(until);
            let sender = Sender {
                course,
                to: remote(scenario, flow.from, flow.to, ports.1),
                local_port: ports.0,
                size: size.map(Bytes::get),
                interval: interval(scenario),
                next_look: None,
            };
            let member = Member {
                starts: Some(STARTS + flow.start.since(Time::ZERO)),
                ..Member::new(config.clone())
            };
            live.host_mut().add(member, Box::new(sender));
            ends.senders.push((index, end));
        }
        if flow.to == node {
            let (course, end) = Course::new(until);
            let receiver = Receiver {
                course,
                buffer: vec![0; CHUNK],
                until: Some(until),
            };
            let host = live.host_mut();
            let receiver = host.add(Member::new(config.clone()), Box::new(receiver));
            host.listen(ports.1, Listener::new(Taker::One(receiver)));
            ends.receivers.push((index, end));
        }
    }
    ends.senders.sort_by_key(|(index, _)| *index);
    ends.receivers.sort_by_key(|(index, _)| *index);
    Ok(live)
}

fn remote(scenario: &Scenario, from: usize, to: usize, port: u16) -> Remote {
    Remote {
        endpoint: Endpoint {
            address: Address(to as u16),
            port,
        },
        ip: Some((ip_of(scenario, from), ip_of(scenario, to))),
    }
}
