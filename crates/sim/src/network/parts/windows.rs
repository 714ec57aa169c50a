//! Windows of time: parts run for one window at once, and exchange packets between windows.
//!
//! There is one barrier per window. Before it, a part publishes the time of its next event and the
//! packets that it has sent to others. After it, every part reads these times from all parts, and
//! derives the same next window. A part publishes in two places by turns: it may publish for the
//! next window while another still reads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use bentpipe_types::{Span, Time};

use super::part::Pause;
use crate::network::Network;
use crate::stand_in::Crossing;

/// Wall time of windows, measured while one part runs at a time.
///
/// With a processor for each part, a run takes at least the critical path: in every window the
/// slowest part is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WindowTimes {
    /// Number of windows.
    pub windows: u64,
    /// Sum over all windows and parts.
    pub total: Duration,
    /// Sum over all windows of the slowest part's time.
    pub critical_path: Duration,
}

/// Returns the wall time since some moment.
pub type WallClock = fn() -> Duration;

/// State between two windows.
#[derive(Debug)]
pub(super) struct Windows {
    /// Length of a window.
    length: Span,
    /// For each part, the directions from which packets of other parts arrive.
    arrivals: Vec<Vec<u16>>,
    /// End of the window that a part has not completed.
    incomplete: Option<Time>,
    /// For each part, the deadline at which it paused last, if it goes on.
    passed: Vec<Option<Pause>>,
    /// For each part, the two places where it publishes by turns. They are kept for their memory.
    places: Vec<[Published; 2]>,
    /// For each part, its packets for each other part. Empty between two windows.
    sent: Vec<Vec<Vec<Crossing>>>,
    /// Measured times, and the clock that measures them, if windows are measured.
    pub(super) times: Option<(WindowTimes, WallClock)>,
}

impl Windows {
    pub(super) fn new(length: Span, arrivals: Vec<Vec<u16>>) -> Self {
        Self {
            length,
            incomplete: None,
            passed: vec![None; arrivals.len()],
            places: (arrivals.iter())
                .map(|_| [0, 1].map(|_| Published::new(arrivals.len())))
                .collect(),
            sent: (arrivals.iter())
                .map(|_| arrivals.iter().map(|_| Vec::new()).collect())
                .collect(),
            arrivals,
            times: None,
        }
    }

    /// States that a part has paused in the window up to `last`. The parts go on with it, and the
    /// paused one beyond this deadline.
    pub(super) fn resume(&mut self, part: usize, pause: Pause, last: Time) {
        self.incomplete = Some(last);
        self.passed[part] = Some(pause);
    }
}

/// Data that a part publishes at the end of a window.
#[derive(Debug, Default)]
struct Published {
    /// Time of the next event in nanoseconds, or `u64::MAX`.
    next: AtomicU64,
    /// Number of events of the window, or [`FAILED`].
    events: AtomicU64,
    /// Wall time of the window in nanoseconds, if windows are measured.
    elapsed: AtomicU64,
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
    passed: &'a mut Option<Pause>,
    pause: Option<Pause>,
    /// Nodes of other parts to which directions of this one lead, and their parts.
    stand_ins: Vec<(u16, usize)>,
    /// Packets for each other part.
    sent: &'a mut [Vec<Crossing>],
}

impl Worker<'_> {
    /// Runs one window up to and including `last`, and publishes the result.
    fn run_window(&mut self, last: Time, place: &Published) {
        self.network.nothing_crosses_before(self.arrivals, last);
        let (events, pause) = self.network.run_window(last, self.passed);
        self.pause = pause;
        place.paused.store(pause.is_some(), Ordering::Relaxed);
        let (network, sent) = (&mut *self.network, &mut *self.sent);
        for (node, part) in &self.stand_ins {
            network.take_crossings(*node, &mut sent[*part]);
        }
        let next = network.next_time().map_or(u64::MAX, Time::as_nanos);
        let arrivals = sent.iter().flatten().map(|each| each.at.as_nanos());
        let next = arrivals.fold(next, u64::min);
        for (sent, published) in sent.iter_mut().zip(&place.crossings) {
            // The receiver has emptied the list, which is used again.
            std::mem::swap(sent, &mut lock(published));
        }
        place.next.store(next, Ordering::Relaxed);
        place.events.store(events, Ordering::Relaxed);
    }

    /// Takes the packets that other parts have published for this one.
    fn receive(&mut self, places: &[[Published; 2]], turn: usize) {
        for place in places {
            for crossing in lock(&place[turn].crossings[self.part]).drain(..) {
                self.network.take_crossing(crossing);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why all parts have stopped.
pub(super) enum Stop {
    /// The budget of events is used up.
    Budget,
    /// Nothing is left to do.
    Ended,
    /// This part, or another one, has paused in the window up to this time.
    Paused(Option<Pause>, Time),
}

/// Runs all parts, each on its thread, until they stop.
///
/// `part_of`: the part of each node.
pub(super) fn run(
    networks: &mut [Network],
    windows: &mut Windows,
    part_of: &[usize],
    until: Time,
    budget: u64,
) -> Vec<Stop> {
    let count = networks.len();
    let length = windows.length;
    let places = &windows.places;
    let barrier = Barrier::new(count);
    // While windows are measured, only one part runs at a time.
    let turns = (windows.times).map(|(times, clock)| (Mutex::new(times), clock));
    let first = networks.iter().filter_map(Network::next_time).min();
    let end_of = |start: Time| (start + (length - Span::from_nanos(1))).min(until);
    let last = windows.incomplete.take().or_else(|| first.map(end_of));
    let Some(first_end) = last.filter(|_| first.is_some_and(|at| at <= until)) else {
        return vec![Stop::Ended];
    };
    let workers = (networks.iter_mut())
        .zip(&windows.arrivals)
        .zip(&mut windows.passed)
        .zip(&mut windows.sent)
        .enumerate()
        .map(|(part, (((network, arrivals), passed), sent))| Worker {
            part,
            stand_ins: network.stand_ins(part_of),
            network,
            arrivals,
            passed,
            pause: None,
            sent,
        });
    let run_part = |mut worker: Worker<'_>| -> Result<Stop, Box<dyn Any + Send>> {
        let (mut last, mut left, mut turn) = (first_end, budget, 0);
        loop {
            let place = &places[worker.part][turn];
            // Without the barrier the other parts would wait for ever.
            let run = || match &turns {
                None => worker.run_window(last, place),
                Some((turns, clock)) => {
                    let _turn = lock(turns);
                    let start = clock();
                    worker.run_window(last, place);
                    let elapsed = clock().saturating_sub(start).as_nanos() as u64;
                    place.elapsed.store(elapsed, Ordering::Relaxed);
                }
            };
            let outcome = catch_unwind(AssertUnwindSafe(run));
            if outcome.is_err() {
                place.events.store(FAILED, Ordering::Relaxed);
            }
            barrier.wait();
            outcome?;
            worker.receive(places, turn);
            let published = || places.iter().map(|place| &place[turn]);
            let events = |place: &Published| place.events.load(Ordering::Relaxed);
            if published().any(|place| events(place) == FAILED) {
                return Ok(Stop::Ended);
            }
            if published().any(|place| place.paused.load(Ordering::Relaxed)) {
                return Ok(Stop::Paused(worker.pause, last));
            }
            if let Some((turns, _)) = turns.as_ref().filter(|_| worker.part == 0) {
                let elapsed = || published().map(|place| place.elapsed.load(Ordering::Relaxed));
                let times = &mut *lock(turns);
                times.windows += 1;
                times.total += Duration::from_nanos(elapsed().sum());
                times.critical_path += Duration::from_nanos(elapsed().max().unwrap_or(0));
            }
            let next = published().map(|place| place.next.load(Ordering::Relaxed));
            let next = Time::from_nanos(next.min().unwrap_or(u64::MAX));
            left = left.saturating_sub(published().map(events).sum());
            if next > until {
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
    windows.times = turns.map(|(times, clock)| {
        let times = times.into_inner();
        (times.unwrap_or_else(PoisonError::into_inner), clock)
    });
    results
        .into_iter()
        .map(|result| match result {
            Ok(Ok(stop)) => stop,
            Ok(Err(panic)) | Err(panic) => resume_unwind(panic),
        })
        .collect()
}
