//! Execution of a script in simulated time: its actions on the host under test, and its
//! expectations.

mod calls;
mod clock;
mod constants;
mod ends;
mod expect;
mod fast_open;
mod host;
mod icmp;
mod info;
mod segment;
mod setup;
mod sockets;
mod verdict;

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};

use crate::python::{self, Fault, Names};
use crate::script::{Action, Direction, Event, Script, When};
use calls::Pending;
use clock::{BEGINNING, EVER};
use host::Host;
use setup::Setup;
use sockets::Sockets;
use verdict::Problem;

pub use verdict::Verdict;

/// Maximum number of times that the host runs. More indicate an endless loop.
const MOST_STEPS: u64 = 1_000_000;

/// Runs a script.
#[must_use]
pub fn run(script: &Script) -> Verdict {
    if let Some(event) = script.events.iter().find(|e| unsupported(e).is_some()) {
        let missing = unsupported(event).unwrap_or_default().to_owned();
        return Problem::Missing(missing).at(event.line);
    }
    let mut setup = Setup::default();
    for option in &script.options {
        if let Err(problem) = setup.option(&option.name, option.value.as_deref()) {
            return problem.at(option.line);
        }
    }
    for (line, command) in &script.commands {
        if let Err(problem) = setup.command(command) {
            return problem.at(*line);
        }
    }
    let timed = script
        .events
        .iter()
        .filter_map(|event| match &event.action {
            Action::Command(command) => Some((event.line, command)),
            _ => None,
        });
    for (line, command) in timed {
        // Only checks that the command is known; it is executed at its time.
        if let Err(problem) = setup.clone().command(command) {
            return problem.at(line);
        }
    }
    Runner::new(setup).run(&script.events)
}

/// Returns an action that no part of the runner supports.
fn unsupported(event: &Event) -> Option<&str> {
    match &event.action {
        Action::Unsupported(missing) => Some(missing),
        _ => None,
    }
}

/// A running script.
struct Runner {
    setup: Setup,
    host: Host,
    sockets: Sockets,
    /// Segments sent by the host and not examined yet.
    sent: VecDeque<segment::Sent>,
    flow: segment::Flow,
    pending: Option<Pending>,
    names: Names,
    learnt: fast_open::KnownCookie,
    /// Scheduled time of the previous event, if that was an incoming packet.
    anchor: Option<Time>,
    /// Scheduled time of the previous event.
    previous: Time,
    steps: u64,
}

impl Runner {
    fn new(setup: Setup) -> Self {
        Self {
            host: Host::new(BEGINNING),
            sockets: Sockets::default(),
            sent: VecDeque::new(),
            flow: segment::Flow::new(setup.version()),
            pending: None,
            names: Names::new(),
            learnt: fast_open::KnownCookie::default(),
            anchor: None,
            previous: BEGINNING,
            steps: 0,
            setup,
        }
    }

    fn run(mut self, events: &[Event]) -> Verdict {
        for event in events {
            if let Err(problem) = self.event(event) {
                // A call that should have returned by now is the error, not its effects.
                return match self.overdue() {
                    Some((line, problem)) => problem.at(line),
                    None => problem.at(event.line),
                };
            }
            if let Some((line, problem)) = self.overdue() {
                return problem.at(line);
            }
        }
        self.finish()
    }

    /// Checks that a call that still blocks returns in time.
    fn finish(mut self) -> Verdict {
        if let Some(pending) = &self.pending {
            let until = pending.until + self.setup.tolerance;
            if let Err(problem) = self.advance(until) {
                return problem.at(0);
            }
        }
        match self.overdue() {
            Some((line, problem)) => problem.at(line),
            None => match self.pending {
                Some(pending) => pending.never_returned().at(pending.line),
                None => Verdict::Passed,
            },
        }
    }

    fn overdue(&mut self) -> Option<(u32, Problem)> {
        let pending = self.pending.as_ref()?;
        if let Some(problem) = &pending.problem {
            return Some((pending.line, problem.clone()));
        }
        if pending.is_over {
            self.pending = None;
        }
        None
    }

    fn event(&mut self, event: &Event) -> Result<(), Problem> {
        // As in packetdrill (adjust_relative_event_times), times are relative to the actual time of
        // the previous event, except for consecutive incoming packets.
        let inbound = matches!(
            &event.action,
            Action::Packet(packet) if packet.direction == Direction::Inbound
        );
        let origin = match self.anchor {
            Some(anchor) if inbound => anchor,
            _ => self.host.world.now,
        };
        let (from, to) = match event.time {
            When::Relative(after) => (origin + Span::from_nanos(after), None),
            When::Absolute(at) => (BEGINNING + Span::from_nanos(at), None),
            When::Any => (self.host.world.now, Some(self.host.world.now + EVER)),
            When::RelativeRange(a, b) => (
                origin + Span::from_nanos(a),
                Some(origin + Span::from_nanos(b)),
            ),
            When::AbsoluteRange(a, b) => (
                BEGINNING + Span::from_nanos(a),
                Some(BEGINNING + Span::from_nanos(b)),
            ),
        };
        self.anchor = inbound.then_some(from);
        let outbound = matches!(
            &event.action,
            Action::Packet(packet) if packet.direction == Direction::Outbound
        );
        if !outbound {
            self.advance(from)?;
        }
        match &event.action {
            Action::Packet(packet) if outbound => {
                self.expect_packet(packet, from, to.unwrap_or(from))?;
            }
            Action::Packet(packet) => self.inject(packet)?,
            Action::Icmp(icmp) => self.icmp(icmp)?,
            Action::Call(call) => {
                let relative = matches!(event.time, When::Relative(_));
                let origin = if relative { origin } else { BEGINNING };
                self.call(call, event.line, origin)?;
            }
            Action::Command(command) => {
                self.setup.command(command)?;
                self.counted(command)?;
                if std::mem::take(&mut self.setup.flush_cookies) {
                    self.learnt = fast_open::KnownCookie::default();
                }
            }
            Action::Code(code) => self.code(code)?,
            Action::Unsupported(missing) => return Err(Problem::missing(missing.clone())),
        }
        self.previous = from;
        Ok(())
    }

    /// Runs the host until `time`, deadlines at that time included.
    fn advance(&mut self, time: Time) -> Result<(), Problem> {
        while let Some(deadline) = self.next_deadline()
            && deadline <= time
        {
            self.step(deadline)?;
        }
        self.host.world.now = self.host.world.now.max(time);
        Ok(())
    }

    /// Returns the next deadline of the host or of a waiting call.
    fn next_deadline(&self) -> Option<Time> {
        let call = self.pending.as_ref().and_then(Pending::deadline);
        self.host.next_deadline().into_iter().chain(call).min()
    }

    /// Runs the host at its next deadline.
    fn step(&mut self, deadline: Time) -> Result<(), Problem> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(Problem::wrong("an end", "a host that runs for ever"));
        }
        self.host.world.now = self.host.world.now.max(deadline);
        self.host.on_deadline();
        self.after_host()
    }

    /// Collects what the host sent, and lets a blocked call continue.
    fn after_host(&mut self) -> Result<(), Problem> {
        self.host.settle();
        self.sockets.settle(&mut self.host);
        self.learn_cookies();
        self.collect()?;
        self.resume();
        // Packets sent because of the call.
        self.collect()
    }

    fn collect(&mut self) -> Result<(), Problem> {
        let now = self.host.world.now;
        for reference in self.host.take_outbox() {
            let sent = segment::Sent::read(&self.host.world.packets, reference, now);
            self.host.world.packets.release(reference);
            self.sent.push_back(sent?);
        }
        Ok(())
    }

    fn code(&mut self, code: &str) -> Result<(), Problem> {
        let known = info::names(self);
        match python::run(code, &known, &mut self.names) {
            Ok(()) => Ok(()),
            Err(Fault::Assertion { expected, got, .. }) => Err(Problem::wrong(expected, got)),
            Err(Fault::Error { message, .. }) => Err(Problem::wrong("Python that runs", message)),
            Err(Fault::Unsupported { message, .. }) => Err(Problem::Missing(message)),
        }
    }
}
