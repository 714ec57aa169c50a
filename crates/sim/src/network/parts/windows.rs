//! Windows of time: parts run for one window at once, and exchange packets between windows.
//!
//! There is one barrier per window. Before it, a part publishes when its next event is and the
//! packets that it has sent to others. After it, every part reads what all have published, and
//! derives the same next window. What is published alternates between two places, so that a part
//! may publish for the next window while another still reads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use bentpipe_link::Direction;
use bentpipe_types::{Span, Time};

use super::Parts;
use super::stand_in::Crossing;
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
}

impl Windows {
    pub(super) fn new(length: Span, arrivals: Vec<Vec<u16>>) -> Self {
        Self {
            length,
            pending: arrivals.iter().map(|_| Vec::new()).collect(),
            arrivals,
        }
    }
}

/// What a part publishes at the end of a window.
#[derive(Debug, Default)]
struct Published {
    /// Time of the next event in nanoseconds, or `u64::MAX`.
    next: AtomicU64,
    /// Number of events of the window, or [`FAILED`].
    events: AtomicU64,
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
    /// Nodes of other parts, to which directions of this one lead.
    stand_ins: Vec<u16>,
    sent: Vec<Crossing>,
}

impl Worker<'_> {
    /// Runs one window up to and including `last`, and publishes the result.
    fn run_window(&mut self, last: Time, receivers: &[usize], place: &Published) {
        self.network
            .take_arrivals(self.pending, self.arrivals, last);
        let events = self.network.run_window(last);
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

/// Runs all parts up to and including `until`, or until `budget` events have been processed.
pub(super) fn run(parts: &mut Parts, until: Time, budget: u64) -> Progress {
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
    let Some(first) = first.filter(|at| *at <= until) else {
        for ((network, pending), arrivals) in (parts.networks.iter_mut())
            .zip(&mut windows.pending)
            .zip(&windows.arrivals)
        {
            network.take_arrivals(pending, arrivals, until);
        }
        return Progress::Ended;
    };
    let workers = (parts.networks.iter_mut())
        .zip(&mut windows.pending)
        .zip(&windows.arrivals)
        .enumerate()
        .map(|(part, ((network, pending), arrivals))| Worker {
            part,
            stand_ins: network.stand_ins(),
            network,
            arrivals,
            pending,
            sent: Vec::new(),
        });
    let run_part = |mut worker: Worker<'_>| -> Result<Progress, Box<dyn Any + Send>> {
        let (mut start, mut left, mut turn) = (first, budget, 0);
        loop {
            let last = (start + (length - Span::from_nanos(1))).min(until);
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
                return Ok(Progress::Ended);
            }
            let next = published().map(|place| place.next.load(Ordering::Relaxed));
            let next = Time::from_nanos(next.min().unwrap_or(u64::MAX));
            left = left.saturating_sub(published().map(events).sum());
            if next > until {
                worker
                    .network
                    .take_arrivals(worker.pending, worker.arrivals, until);
                return Ok(Progress::Ended);
            }
            if left == 0 {
                return Ok(Progress::Running);
            }
            (start, turn) = (next, 1 - turn);
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = workers
            .map(|worker| scope.spawn(|| run_part(worker)))
            .collect();
        handles.into_iter().map(|handle| handle.join()).collect()
    });
    let mut progress = Progress::Ended;
    for result in results {
        match result {
            Ok(Ok(Progress::Running)) => progress = Progress::Running,
            Ok(Ok(Progress::Ended)) => {}
            Ok(Err(panic)) | Err(panic) => resume_unwind(panic),
        }
    }
    progress
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
