//! Checks that both sides of a cell behaved correctly.

use std::fmt;
use std::io;

use bentpipe_types::Span;
use serde::Serialize;

use super::cell::{Cell, Exchange, Role};
use super::data::Tally;
use super::network::{OURS, PATH};
use super::{kernel, ours};
use crate::Engine;

/// Counters of a completed cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Duration in seconds of the wall clock.
    pub seconds: f64,
    /// Bytes that our end received.
    pub bytes_received: u64,
    /// Bytes that our end sent and the kernel acknowledged.
    pub bytes_sent: u64,
    /// Completed connections.
    pub connections: u64,
    /// Packets that entered the network.
    pub packets_received: u64,
    /// Packets that left the network.
    pub packets_sent: u64,
    /// Data segments that our end retransmitted.
    pub segments_retransmitted: u64,
    /// Retransmission timeouts at our end.
    pub timeouts: u64,
    /// Zero-window probes that our end sent.
    pub window_probes: u64,
    /// Packets lost by the path, both directions.
    pub lost: u64,
    /// Packets duplicated by the path.
    pub duplicated: u64,
    /// Packets delayed by the path.
    pub reordered: u64,
    /// Packets that the device refused.
    pub device_refused: u64,
    /// Packets refused for a reason that indicates a fault of our host or the kernel.
    pub faults: u64,
}

impl Outcome {
    /// Collects the counters of the network, the host and its connections.
    pub(super) fn new(engine: Engine, elapsed: Span, reports: &[ours::Report]) -> Self {
        let sum = |of: fn(&ours::Report) -> u64| reports.iter().map(of).sum();
        let (entered, refusals) = (engine.entered(), *engine.refusals());
        let left = engine.lateness().count();
        let agents = engine.into_network().outcome().agents;
        let counter = |node: &str, name: &str| {
            let agent = agents.iter().find(|agent| agent.name == node);
            let mut counters = agent.into_iter().flat_map(|agent| &agent.counters);
            let counter = counters.find(|(counter, _)| counter == name);
            counter.map_or(0, |(_, count)| *count)
        };
        // The kernel's multicast packets have no route.
        let not_entered = refusals.each().filter(|(reason, _)| *reason != "no_route");
        let not_entered: u64 = not_entered.map(|(_, count)| count).sum();
        Self {
            seconds: elapsed.as_secs_f64(),
            bytes_received: sum(|r| r.received.bytes),
            bytes_sent: sum(|r| r.statistics.bytes_acknowledged),
            connections: reports.len() as u64,
            packets_received: entered,
            packets_sent: left,
            segments_retransmitted: sum(|r| r.statistics.segments_retransmitted),
            timeouts: sum(|r| r.statistics.timeouts),
            window_probes: sum(|r| r.statistics.window_probes),
            lost: counter(PATH, "lost"),
            duplicated: counter(PATH, "duplicated"),
            reordered: counter(PATH, "reordered"),
            device_refused: refusals.not_taken,
            // None of these occurs between two correct ends, whatever the path loses.
            faults: refusals.unencodable
                + not_entered
                + counter(OURS, "malformed")
                + counter(OURS, "martian")
                + counter(PATH, "overflowed"),
        }
    }
}

/// Why a cell failed.
#[derive(Debug)]
pub enum Failure {
    /// The machine refused something.
    Machine(io::Error),
    /// One side behaved incorrectly.
    Protocol(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Machine(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(error) => write!(f, "the machine: {error}"),
            Self::Protocol(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

/// Checks that each end received what the other sent, and that the connections ended as planned.
pub(super) fn check_results(
    cell: &Cell,
    finished: bool,
    ours: &[ours::Report],
    theirs: io::Result<Vec<kernel::Report>>,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    let mut problems = Problems::default();
    problems.require(finished, || "it took too long".into());
    problems.require(outcome.device_refused == 0, || {
        format!("the device refused {} packets", outcome.device_refused)
    });
    problems.require(outcome.faults == 0, || {
        format!("{} packets wrongly refused", outcome.faults)
    });
    for report in ours {
        problems.require(!report.timed_out, || "our end timed out".into());
        let mismatches = report.statistics.payload_mismatches;
        problems.require(mismatches == 0, || format!("{mismatches} mismatches"));
    }
    if cell.exchange == Exchange::Refused {
        check_refusal(cell, ours, theirs, &mut problems);
        return problems.verdict(outcome);
    }
    let theirs = match theirs {
        Ok(theirs) => theirs,
        Err(error) => {
            problems.add(format!("the kernel's end: {error}"));
            return problems.verdict(outcome);
        }
    };
    problems.require(ours.len() == theirs.len(), || {
        format!("{} connections here, {} there", ours.len(), theirs.len())
    });
    for (our, their) in ours.iter().zip(&theirs) {
        match cell.exchange {
            Exchange::OurReset => {
                let seen = their.write_error.or(their.read_error);
                let expected = matches!(
                    seen,
                    Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
                );
                problems.require(expected, || format!("our RST: the kernel saw {seen:?}"));
                check_prefix(
                    "the kernel",
                    &their.sent,
                    "ours",
                    &our.received,
                    &mut problems,
                );
            }
            Exchange::TheirReset => {
                problems.require(our.reset, || "the kernel's RST did not reset ours".into());
                check_prefix(
                    "ours",
                    &our.sent,
                    "the kernel",
                    &their.received,
                    &mut problems,
                );
            }
            _ => check_streams(cell, our, their, &mut problems),
        }
    }
    problems.verdict(outcome)
}

fn check_streams(cell: &Cell, our: &ours::Report, their: &kernel::Report, problems: &mut Problems) {
    for (error, what) in [
        (their.read_error, "reading"),
        (their.write_error, "writing"),
    ] {
        problems.require(error.is_none(), || format!("the kernel, {what}: {error:?}"));
    }
    problems.require(our.peer_closed, || "our end received no FIN".into());
    problems.require(!our.reset, || "our end was reset".into());
    for (sent, received, way) in [
        (&our.sent, &their.received, "to the kernel"),
        (&their.sent, &our.received, "from the kernel"),
    ] {
        problems.require(sent == received, || {
            format!("{way}: sent {sent:?}, received {received:?}")
        });
    }
    match cell.exchange {
        Exchange::OurPause => {
            let open = our.window_after_pause;
            let closed = open.is_some_and(|window| window < u64::from(cell.mtu));
            problems.require(closed, || {
                format!("our window was not closed after the pause: {open:?}")
            });
        }
        Exchange::TheirPause => {
            let probes = our.statistics.window_probes;
            problems.require(our.peer_window_closed || probes > 0, || {
                "the kernel's window was never closed".into()
            });
            problems.require(probes > 0, || "no probe of the closed window".into());
        }
        _ => {}
    }
}

/// Checks that a reset connection delivered a prefix of what was sent.
fn check_prefix(
    sender: &str,
    sent: &Tally,
    receiver: &str,
    received: &Tally,
    problems: &mut Problems,
) {
    let enough = received.bytes >= 1_000_000 && received.bytes <= sent.bytes;
    problems.require(enough, || {
        format!(
            "{sender} sent {} bytes, {receiver} received {}",
            sent.bytes, received.bytes
        )
    });
}

fn check_refusal(
    cell: &Cell,
    ours: &[ours::Report],
    theirs: io::Result<Vec<kernel::Report>>,
    problems: &mut Problems,
) {
    match cell.role {
        Role::Client => {
            let reset = ours.len() == 1 && ours[0].reset;
            problems.require(reset, || format!("not refused: {ours:?}"));
        }
        Role::Server => {
            let kind = theirs.err().map(|error| error.kind());
            problems.require(kind == Some(io::ErrorKind::ConnectionRefused), || {
                format!("the kernel was not refused: {kind:?}")
            });
        }
    }
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, problem: String) {
        self.0.push(problem);
    }

    fn require(&mut self, good: bool, problem: impl FnOnce() -> String) {
        if !good {
            self.add(problem());
        }
    }

    fn verdict(self, outcome: Outcome) -> Result<Outcome, Failure> {
        if self.0.is_empty() {
            return Ok(outcome);
        }
        let first: Vec<_> = self.0.iter().take(5).cloned().collect();
        Err(Failure::Protocol(format!(
            "{} [{} s, {} packets in, {} out]",
            first.join("; "),
            outcome.seconds,
            outcome.packets_received,
            outcome.packets_sent
        )))
    }
}
