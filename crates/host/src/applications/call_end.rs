//! One end of calls: the parts that speech and video calls have in common.

use std::sync::{Arc, Mutex};

use bentpipe_types::{Endpoint, RandomStream, Span, Time};

use crate::report::{Call, Calls};
use crate::{Datagram, Distribution, SocketApi};

/// Time after its own last packet for which an end waits that has received nothing.
pub(super) const RECEPTION_TIMEOUT: Span = Span::from_secs(5);

/// Data of a flow's calls, by number, that both ends know without packets: signalling is not
/// modelled.
#[derive(Clone, Debug)]
pub(super) struct SharedCalls<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for SharedCalls<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Copy> SharedCalls<T> {
    /// Adds a call. Returns its number.
    pub(super) fn add(&self, data: T) -> Option<u64> {
        let mut calls = self.0.lock().ok()?;
        calls.push(data);
        Some(calls.len() as u64 - 1)
    }

    /// Returns the data of a call.
    pub(super) fn get(&self, number: u64) -> Option<T> {
        self.0.lock().ok()?.get(number as usize).copied()
    }

    /// Returns the number of the latest call.
    pub(super) fn latest(&self) -> Option<u64> {
        (self.0.lock().ok()?.len() as u64).checked_sub(1)
    }

    /// Changes the data of a call.
    pub(super) fn update(&self, number: u64, change: impl FnOnce(&mut T)) {
        if let Ok(mut calls) = self.0.lock()
            && let Some(data) = calls.get_mut(number as usize)
        {
            change(data);
        }
    }
}

/// Draws the duration of a call in whole intervals, at least one; `u64::MAX` for an endless call.
pub(super) fn intervals(
    lasts: Option<Distribution>,
    interval: Span,
    random: &mut RandomStream,
) -> u64 {
    lasts.map_or(u64::MAX, |lasts| {
        (lasts.span(random).as_nanos() / interval.as_nanos().max(1)).max(1)
    })
}

/// Peer, calls and schedule of the caller's or the called end. `Q` is the quality at one end.
#[derive(Debug)]
pub(super) struct CallEnd<Q> {
    /// The called end; `None` there.
    server: Option<Endpoint>,
    /// At the called end: the caller of the current call, and the local port.
    caller: Option<(Endpoint, u16)>,
    /// Current and earlier calls.
    calls: Vec<Call<Q>>,
    /// Quality of completed calls, by number.
    completed: Vec<(u64, Q)>,
    /// Start of the next call.
    pub(super) next_call: Option<Time>,
    pub(super) finished: Option<Time>,
}

impl<Q: Copy> CallEnd<Q> {
    /// Creates the caller's end, or with `None` the called one.
    pub(super) fn new(server: Option<Endpoint>) -> Self {
        Self {
            server,
            caller: None,
            calls: Vec::new(),
            completed: Vec::new(),
            next_call: None,
            finished: None,
        }
    }

    pub(super) fn is_caller(&self) -> bool {
        self.server.is_some()
    }

    /// Sends a datagram to the other end.
    pub(super) fn send<D: SocketApi>(&self, datagram: Datagram, api: &mut D) {
        match (self.server, self.caller) {
            (Some(server), _) => api.send(server, datagram),
            (None, Some((caller, port))) => api.send_from(port, caller, datagram),
            (None, None) => false,
        };
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, number: u64, now: Time) {
        self.calls.push(Call::new(number, now));
    }

    /// Whether a packet of this call begins it at the called end, whose current call is `current`.
    pub(super) fn is_new(&self, call: u64, current: Option<u64>) -> bool {
        let last = self.completed.last().map(|(last, _)| *last);
        !self.is_caller() && [current, last].into_iter().flatten().all(|of| of < call)
    }

    /// Sets the end to which a called end sends, and the local port.
    pub(super) fn answer(&mut self, caller: Endpoint, port: u16) {
        self.caller = Some((caller, port));
    }

    /// Records that this end has sent its last packet of the current call.
    pub(super) fn end_sending(&mut self, now: Time) {
        if let Some(call) = self.calls.last_mut() {
            call.lasts = Some(now.since(call.start));
        }
    }

    /// Records the quality of a completed call.
    pub(super) fn complete(&mut self, number: u64, quality: Q) {
        self.completed.push((number, quality));
    }

    /// Whether the caller schedules another call, or finishes, once its latest one is complete.
    pub(super) fn awaits_completion(&self) -> bool {
        let is_scheduled = self.next_call.is_some() || self.finished.is_some();
        self.is_caller() && !self.calls.is_empty() && !is_scheduled
    }

    /// Schedules the next call after a pause, or finishes after `count` calls.
    pub(super) fn schedule<D: SocketApi>(
        &mut self,
        count: Option<u64>,
        pause: Distribution,
        api: &mut D,
    ) {
        if count == Some(self.calls.len() as u64) {
            self.finished = Some(api.now());
        } else {
            let pause = pause.span(api.random());
            self.next_call = Some(api.now() + pause);
        }
    }

    /// Returns whether the next call begins now, and removes it from the schedule.
    pub(super) fn take_due_call(&mut self, now: Time) -> bool {
        self.next_call.take_if(|at| *at <= now).is_some()
    }

    /// Returns all calls with their quality at this end. `current` is the number and quality of the
    /// current call. `without_packets` returns the quality at an end that received nothing of a
    /// call of this duration.
    pub(super) fn report(
        &self,
        current: Option<(u64, Q)>,
        without_packets: impl Fn(Span) -> Q,
    ) -> Calls<Q> {
        let mut calls = self.calls.clone();
        for call in &mut calls {
            let mut known = self.completed.iter().copied().chain(current);
            let quality = known.find(|(number, _)| *number == call.number);
            let quality = quality.map(|(_, quality)| quality);
            if self.is_caller() {
                // The other end may have received nothing at all.
                let nothing = call.lasts.map(&without_packets);
                call.there = nothing;
                call.back = quality.or(nothing);
            } else {
                call.there = quality;
            }
        }
        Calls { calls }
    }
}
