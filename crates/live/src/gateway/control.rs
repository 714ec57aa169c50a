//! Controls and observes a running gateway from other threads.
//!
//! Other threads put questions into a mailbox. The engine's thread answers them between packets,
//! every 2 to 20 ms ([`Control::serve`]). The asking threads do the slow work, such as formatting.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bentpipe_sim::Network;
use bentpipe_types::{ConnectionReport, Span, Time};
use tracing::Dispatch;

use super::statistics::Statistics;
use crate::Engine;

/// Most connections in one answer, which bounds the time that packets wait for it.
pub const MAX_CONNECTIONS: usize = 1000;

/// Questions that may wait for the engine's thread.
const MAX_QUESTIONS: usize = 64;

/// Messages that wait for the console. Further ones are counted and dropped.
const MAX_LINES: usize = 1024;

/// Lines that are kept per second. The others are counted and dropped.
const LINES_PER_SECOND: u32 = 200;

/// Longest wait for an answer. The engine's thread answers within milliseconds, unless it hangs.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Stands for "not requested" in [`Control::drain_within`].
const NO_DRAIN: u64 = u64::MAX;

/// Controls and observes a running gateway from other threads.
#[derive(Debug)]
pub struct Control {
    /// Ends the run: everything is removed, and the counters are returned.
    pub stop: AtomicBool,
    lines: Mutex<Lines>,
    questions: Mutex<VecDeque<Pending>>,
    /// Time limit of a requested drain in nanoseconds, or [`NO_DRAIN`].
    drain_within: AtomicU64,
    /// Number of calls of [`serve`](Self::serve).
    heartbeat: AtomicU64,
    is_ready: AtomicBool,
    drops_privileges: AtomicBool,
    dispatch: Mutex<Option<Dispatch>>,
    /// The counters at the end.
    last: Mutex<Option<Statistics>>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<Line>,
    dropped: u64,
    /// Start of the current second, and the lines in it.
    second: Option<(Instant, u32)>,
}

/// A line for the console.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A message without time and level.
    Message(String),
    /// A formatted event.
    Formatted(String),
}

#[derive(Debug)]
struct Pending {
    question: Question,
    reply: SyncSender<Answer>,
}

/// A question to the engine's thread.
pub enum Question {
    /// All counters.
    Statistics,
    /// At most `limit` connections, without the `first` ones of the table.
    Connections {
        /// Number of connections to skip.
        first: usize,
        /// Largest number of connections.
        limit: usize,
    },
    /// Takes over the settings of the gateways of a network.
    Adopt(Box<Network>),
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Statistics => "Statistics",
            Self::Connections { .. } => "Connections",
            Self::Adopt(_) => "Adopt",
        })
    }
}

/// An answer of the engine's thread.
#[derive(Debug)]
pub enum Answer {
    /// All counters.
    Statistics(Box<Statistics>),
    /// Connections, and whether there are more.
    Connections(Vec<ConnectionReport>, bool),
    /// Whether the settings were taken over, or why not.
    Adopted(Result<(), String>),
}

impl Default for Control {
    fn default() -> Self {
        Self {
            stop: AtomicBool::default(),
            lines: Mutex::default(),
            questions: Mutex::default(),
            drain_within: AtomicU64::new(NO_DRAIN),
            heartbeat: AtomicU64::default(),
            is_ready: AtomicBool::default(),
            drops_privileges: AtomicBool::default(),
            dispatch: Mutex::default(),
            last: Mutex::default(),
        }
    }
}

impl Control {
    /// Adds a message for the user.
    pub fn report(&self, line: String) {
        self.push(Line::Message(line));
    }

    /// Adds an event that is formatted already.
    pub(super) fn report_formatted(&self, line: String) {
        self.push(Line::Formatted(line));
    }

    fn push(&self, line: Line) {
        let mut lines = locked(&self.lines);
        let now = now();
        let (start, count) = match lines.second {
            Some((start, count)) if now.duration_since(start) < Duration::from_secs(1) => {
                (start, count)
            }
            _ => (now, 0),
        };
        lines.second = Some((start, count + 1));
        if lines.waiting.len() < MAX_LINES && count < LINES_PER_SECOND {
            lines.waiting.push(line);
        } else {
            lines.dropped += 1;
        }
    }

    /// Reports that packets are diverted.
    pub(super) fn report_ready(&self) {
        self.report("ready".to_owned());
        self.is_ready.store(true, Ordering::Relaxed);
    }

    /// Whether packets are diverted.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Keeps the counters at the end.
    pub(super) fn finish(&self, statistics: Statistics) {
        *locked(&self.last) = Some(statistics);
    }

    /// Returns the counters at the end, once.
    pub fn last_statistics(&self) -> Option<Statistics> {
        locked(&self.last).take()
    }

    /// Has events be formatted by `dispatch`.
    pub(super) fn set_dispatch(&self, dispatch: Dispatch) {
        *locked(&self.dispatch) = Some(dispatch);
    }

    /// Returns the formatter of events, if there is one.
    pub(super) fn dispatch(&self) -> Option<Dispatch> {
        locked(&self.dispatch).clone()
    }

    /// Has all threads drop the privileges that they do not need, once they are set up.
    pub(super) fn drop_privileges(&self) {
        self.drops_privileges.store(true, Ordering::Relaxed);
    }

    pub(super) fn drops_privileges(&self) -> bool {
        self.drops_privileges.load(Ordering::Relaxed)
    }

    /// Removes and returns the messages for the user, in order.
    pub fn take_lines(&self) -> Vec<Line> {
        let mut lines = locked(&self.lines);
        let mut taken = std::mem::take(&mut lines.waiting);
        let dropped = std::mem::take(&mut lines.dropped);
        if dropped > 0 {
            let message = format!("{dropped} messages were dropped: too many at once");
            taken.push(Line::Message(message));
        }
        taken
    }

    /// Puts a question to the engine's thread and waits for the answer.
    ///
    /// # Errors
    /// One line, if there is no answer.
    pub fn ask(&self, question: Question) -> Result<Answer, String> {
        let (reply, answer) = sync_channel(1);
        {
            let mut questions = locked(&self.questions);
            if questions.len() >= MAX_QUESTIONS {
                return Err("too many requests at once".to_owned());
            }
            questions.push_back(Pending { question, reply });
        }
        answer
            .recv_timeout(ANSWER_TIME)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => "the gateway does not answer".to_owned(),
                RecvTimeoutError::Disconnected => "the gateway has ended".to_owned(),
            })
    }

    /// Has the gateway forward new connections unchanged, and end when no connection needs it any
    /// more, or after this time.
    pub fn drain(&self, within: Span) {
        let within = within.as_nanos().min(NO_DRAIN - 1);
        self.drain_within.store(within, Ordering::Relaxed);
    }

    /// Returns a number that grows while the engine's thread runs.
    pub fn heartbeat(&self) -> u64 {
        self.heartbeat.load(Ordering::Relaxed)
    }

    /// Answers the questions, in the engine's thread. Returns true if the run is to end.
    pub(super) fn serve(&self, engine: &mut Engine, now: Time, drain: &mut Drain) -> bool {
        self.heartbeat.fetch_add(1, Ordering::Relaxed);
        loop {
            let Some(Pending { question, reply }) = locked(&self.questions).pop_front() else {
                break;
            };
            let answer = match question {
                Question::Statistics => {
                    Answer::Statistics(Box::new(Statistics::of(engine, now, drain.is_requested())))
                }
                Question::Connections { first, limit } => {
                    let (connections, more) = connections(engine, now, first, limit);
                    Answer::Connections(connections, more)
                }
                Question::Adopt(network) => Answer::Adopted(adopt(engine, *network)),
            };
            // The asking thread may have given up.
            let _ = reply.try_send(answer);
        }
        self.stop.load(Ordering::Relaxed) || self.has_drained(engine, now, drain)
    }

    fn has_drained(&self, engine: &mut Engine, now: Time, drain: &mut Drain) -> bool {
        let within = self.drain_within.load(Ordering::Relaxed);
        if within == NO_DRAIN {
            return false;
        }
        if drain.within != Some(within) {
            drain.within = Some(within);
            drain.end = now + Span::from_nanos(within.min(Span::from_secs(86_400).as_nanos()));
            let mut open = 0;
            for (_, gateway) in engine.network_mut().managed() {
                gateway.set_draining(true);
                open += gateway.dependent_connections();
            }
            if within > 0 {
                self.report(format!(
                    "draining: new connections are forwarded, {open} are left"
                ));
            }
        }
        let mut gateways = engine.network_mut().managed();
        now >= drain.end || gateways.all(|(_, gateway)| gateway.dependent_connections() == 0)
    }
}

/// Progress of a drain.
#[derive(Debug, Default)]
pub(super) struct Drain {
    within: Option<u64>,
    end: Time,
}

impl Drain {
    fn is_requested(&self) -> bool {
        self.within.is_some()
    }
}

fn connections(
    engine: &mut Engine,
    now: Time,
    first: usize,
    limit: usize,
) -> (Vec<ConnectionReport>, bool) {
    let limit = limit.min(MAX_CONNECTIONS);
    let (mut skipped, mut found, mut more) = (0, Vec::new(), false);
    for (_, gateway) in engine.network_mut().managed() {
        let _ = gateway.connections(now, &mut |report| {
            if skipped < first {
                skipped += 1;
            } else if found.len() < limit {
                found.push(report.clone());
            } else {
                more = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    }
    (found, more)
}

/// Has each gateway take over the settings of the one with the same name in `network`.
fn adopt(engine: &mut Engine, mut network: Network) -> Result<(), String> {
    for (name, gateway) in engine.network_mut().managed() {
        let Some((_, other)) = network.managed().find(|(of, _)| *of == name) else {
            return Err(format!("no gateway is \"{name}\" any more"));
        };
        gateway.adopt_settings(other)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "limits the rate of log lines")]
fn now() -> Instant {
    Instant::now()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
