//! Windows of time: parts run for one window at once, and exchange packets between windows.
//!
//! There is one barrier per window. Before it, a part publishes when its next event is and the
//! packets that it has sent to others. After it, every part reads what all have published, and
//! derives the same next window. What is published alternates between two places, so that a part
//! may publish for the next window while another still reads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use bentpipe_link::Direction;
use bentpipe_types::{Span, Time};

use super::stand_in::Crossing;
use super::{Parts, Pause};
use crate::network::fast::FastPaths;
use crate::network::{Network, Progress};
use crate::node::Node;

/// State between two windows.
#[derive(Debug)]
pub(super) struct Windows {
    /// Length of a window.
    length: Span,
    /// For each part, the directions from which packets of other parts arrive.
    arrivals: Vec<Vec<u16>>,
    /// For each part, packets that arrive there in the next window or later.
    pending: Vec<Vec<Crossing>>,
    /// End of the window that a part has not completed.
    incomplete: Option<Time>,
    /// For each part, the deadline at which it paused last, if it goes on.
    passed: Vec<Option<Pause>>,
}

impl Windows {
    pub(super) fn new(length: Span, arrivals: Vec<Vec<u16>>) -> Self {
        Self {
            length,
            pending: arrivals.iter().map(|_| Vec::new()).collect(),
            incomplete: None,
            passed: vec![None; arrivals.len()],
            arrivals,
        }
    }

    /// Whether no packet is between two parts.
    pub(super) fn none_pending(&self) -> bool {
        self.pending.iter().all(Vec::is_empty)
    }
}

/// What a part publishes at the end of a window.
#[derive(Debug, Default)]
struct Published {
    /// Time of the next event in nanoseconds, or `u64::MAX`.
    next: AtomicU64,
    /// Number of events of the window, or [`FAILED`].
    events: AtomicU64,
    /// Whether the part has paused before the end of the window.
    paused: AtomicBool,
    /// Packets for each part.
    crossings: Vec<Mutex<Vec<Crossing>>>,
}

/// Marks a part that has panicked.
const FAILED: u64 = u64::MAX;

impl Published {
    fn new(parts: usize) -> Self {
        let mut crossings = Vec::new();
        crossings.resize_with(parts, Mutex::default);
        Self {
            crossings,
            ..Self::default()
        }
    }
}

/// A part within a call of [`run`].
struct Worker<'a> {
    part: usize,
    network: &'a mut Network,
    arrivals: &'a [u16],
    pending: &'a mut Vec<Crossing>,
    passed: &'a mut Option<Pause>,
    pause: Option<Pause>,
    /// Nodes of other parts, to which directions of this one lead.
    stand_ins: Vec<u16>,
    sent: Vec<Crossing>,
}

impl Worker<'_> {
    /// Runs one window up to and including `last`, and publishes the result.
    fn run_window(&mut self, last: Time, receivers: &[usize], place: &Published) {
        self.network
            .take_arrivals(self.pending, self.arrivals, last);
        let (events, pause) = self.network.run_window(last, self.passed);
        self.pause = pause;
        place.paused.store(pause.is_some(), Ordering::Relaxed);
        let (network, sent) = (&mut *self.network, &mut self.sent);
        network.take_crossings(sent, &self.stand_ins);
        let next = network.next_time().map_or(u64::MAX, Time::as_nanos);
        let next = sent
            .iter()
            .fold(next, |next, each| next.min(each.at.as_nanos()));
        for crossing in sent.drain(..) {
            let to = receivers[usize::from(crossing.direction)];
            lock(&place.crossings[to]).push(crossing);
        }
        place.next.store(next, Ordering::Relaxed);
        place.events.store(events, Ordering::Relaxed);
    }

    /// Takes the packets that other parts have published for this one.
    fn receive(&mut self, places: &[[Published; 2]], turn: usize) {
        for place in places {
            self.pending
                .append(&mut lock(&place[turn].crossings[self.part]));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why all parts have stopped.
enum Stop {
    /// The budget of events is used up.
    Budget,
    /// Nothing is left to do.
    Ended,
    /// This part, or another one, has paused in the window up to this time.
    Paused(Option<Pause>, Time),
}

/// Runs all parts up to and including `until`, or until `budget` events have been processed.
pub(super) fn run(parts: &mut Parts, until: Time, budget: u64) -> Progress {
    loop {
        let stops = run_threads(parts, until, budget);
        let mut first: Option<(Pause, usize)> = None;
        for (stop, part) in stops.iter().zip(0..) {
            match stop {
                Stop::Budget => return Progress::Running,
                Stop::Ended => return Progress::Ended,
                Stop::Paused(pause, last) => {
                    parts.windows.incomplete = Some(*last);
                    let this = pause.map(|pause| (pause, part));
                    first = first.into_iter().chain(this).min();
                }
            }
        }
        let Some((pause, part)) = first else {
            debug_assert!(false, "a part has paused");
            return Progress::Ended;
        };
        if parts.was_quiet_at(pause.at) {
            return Progress::Ended;
        }
        parts.windows.passed[part] = Some(pause);
    }
}

/// Runs all parts, each on its thread, until they stop.
fn run_threads(parts: &mut Parts, until: Time, budget: u64) -> Vec<Stop> {
    let count = parts.networks.len();
    let windows = &mut parts.windows;
    let length = windows.length;
    let receivers: Vec<usize> = parts.ends.iter().map(|(_, receiving)| *receiving).collect();
    let places: Vec<[Published; 2]> = (0..count)
        .map(|_| [Published::new(count), Published::new(count)])
        .collect();
    let barrier = Barrier::new(count);
    let waiting = windows.pending.iter().flatten().map(|each| each.at);
    let first = (parts.networks.iter())
        .filter_map(Network::next_time)
        .chain(waiting)
        .min();
    let end_of = |start: Time| (start + (length - Span::from_nanos(1))).min(until);
    let last = windows.incomplete.take().or_else(|| first.map(end_of));
    let Some(first_end) = last.filter(|_| first.is_some_and(|at| at <= until)) else {
        for ((network, pending), arrivals) in (parts.networks.iter_mut())
            .zip(&mut windows.pending)
            .zip(&windows.arrivals)
        {
            network.take_arrivals(pending, arrivals, until);
        }
        return vec![Stop::Ended];
    };
    let workers = (parts.networks.iter_mut())
        .zip(&mut windows.pending)
        .zip(&windows.arrivals)
        .zip(&mut windows.passed)
        .enumerate()
        .map(|(part, (((network, pending), arrivals), passed))| Worker {
            part,
            stand_ins: network.stand_ins(),
            network,
            arrivals,
            pending,
            passed,
            pause: None,
            sent: Vec::new(),
        });
    let run_part = |mut worker: Worker<'_>| -> Result<Stop, Box<dyn Any + Send>> {
        let (mut last, mut left, mut turn) = (first_end, budget, 0);
        loop {
            let place = &places[worker.part][turn];
            // Without the barrier the other parts would wait for ever.
            let run = || worker.run_window(last, &receivers, place);
            let outcome = catch_unwind(AssertUnwindSafe(run));
            if outcome.is_err() {
                place.events.store(FAILED, Ordering::Relaxed);
            }
            barrier.wait();
            outcome?;
            worker.receive(&places, turn);
            let published = || places.iter().map(|place| &place[turn]);
            let events = |place: &Published| place.events.load(Ordering::Relaxed);
            if published().any(|place| events(place) == FAILED) {
                return Ok(Stop::Ended);
            }
            if published().any(|place| place.paused.load(Ordering::Relaxed)) {
                return Ok(Stop::Paused(worker.pause, last));
            }
            let next = published().map(|place| place.next.load(Ordering::Relaxed));
            let next = Time::from_nanos(next.min().unwrap_or(u64::MAX));
            left = left.saturating_sub(published().map(events).sum());
            if next > until {
                worker
                    .network
                    .take_arrivals(worker.pending, worker.arrivals, until);
                return Ok(Stop::Ended);
            }
            if left == 0 {
                return Ok(Stop::Budget);
            }
            (last, turn) = (end_of(next), 1 - turn);
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = workers
            .map(|worker| scope.spawn(|| run_part(worker)))
            .collect();
        handles.into_iter().map(|handle| handle.join()).collect()
    });
    results
        .into_iter()
        .map(|result| match result {
            Ok(Ok(stop)) => stop,
            Ok(Err(panic)) | Err(panic) => resume_unwind(panic),
        })
        .collect()
}

impl Network {
    /// Returns the stand-ins for nodes of other parts.
    fn stand_ins(&self) -> Vec<u16> {
        let nodes = self.nodes.iter().zip(0..);
        nodes
            .filter(|(slot, _)| matches!(&slot.node, Node::StandIn(far) if far.is_reached()))
            .map(|(_, index)| index)
            .collect()
    }

    /// Returns a time before which nothing happens in this part, or `None` if nothing will.
    fn next_time(&self) -> Option<Time> {
        let ahead = FastPaths::read_outs(self).next_unscheduled_arrival();
        self.next_event().into_iter().chain(ahead).min()
    }

    /// Takes on packets from other parts. Until `last`, nothing else arrives from there.
    fn take_arrivals(&mut self, pending: &mut Vec<Crossing>, directions: &[u16], last: Time) {
        for crossing in pending.drain(..) {
            let packet = self.packets.move_in(&crossing.packet);
            self.add_arrival(crossing.direction, crossing.at, packet);
        }
        for direction in directions {
            if let Direction::Fifo(fifo) = &mut self.directions[usize::from(*direction)].direction {
                fifo.nothing_arrives_before(last);
            }
        }
    }
}
