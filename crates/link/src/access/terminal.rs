//! A terminal: its requests and transmissions.

use std::collections::VecDeque;

use bentpipe_types::{Bytes, Span, Time};

use super::burst::Burst;
use super::capacity::Capacity;
use super::constant::Granted;
use super::grant::{Grant, Request};
use super::path::{Arrival, Path};
use super::{Access, AccessCounts, OnAir};
use crate::{Flow, Tally};

/// One direction's part of capacity on demand.
///
/// The caller lets it [enter](Self::enter) a frame before it sends. An active terminal, with data
/// or outstanding requests, must enter every frame at its beginning.
#[derive(Debug)]
pub(crate) struct Terminal {
    access: Access,
    /// Capacity per byte.
    byte: Capacity,
    constant: Capacity,
    rate_based: Capacity,
    /// Current frame, or `None` before the first.
    frame: Option<u64>,
    grant: Grant,
    burst: Burst,
    awake: bool,
    /// Remaining part of the packet in transmission.
    to_go: Capacity,
    /// Part of the next packet that was already sent. The previous packet ends between two
    /// nanoseconds and the next begins then, although it is dequeued at a whole nanosecond,
    /// possibly in the next frame. At most half a nanosecond's capacity.
    ahead: Capacity,
    /// Data that arrived since the frame began.
    arrived: Capacity,
    /// Requested rates of future frames.
    by_rate: VecDeque<(u64, Capacity)>,
    /// Volumes requested and not granted yet.
    by_volume: Capacity,
    asked_by_volume: Capacity,
    /// Volumes of requests that turned out to be lost.
    unheard: Capacity,
    path: Path,
    /// Arrival of a packet at the idle terminal, until it can be sent.
    waits_since: Option<Time>,
    sums: Sums,
    counts: AccessCounts,
}

/// Granted, requested and used capacity, before rounding to bytes. Grants are of all frames before
/// the current one.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    asked_by_rate: Capacity,
    faded: Capacity,
    /// Carrier time used, and granted by rate and volume, as clear-sky capacity.
    on_air: Capacity,
    granted_on_air: Capacity,
    granted_by_rate: Capacity,
    granted_by_volume: Capacity,
    granted_free: Capacity,
    used: Capacity,
}

impl Terminal {
    /// Creates a terminal with `redundancy` transmitted bits per bit, over this path.
    pub(crate) fn new(access: Access, redundancy: f64, path: Path) -> Self {
        if let Some(rates) = path.rates() {
            access.follow(rates.clone());
        }
        let settings = access.settings;
        let carries =
            |rate: Option<_>| rate.map_or(Capacity::ZERO, |rate| Capacity::of(rate, access.frame));
        Self {
            byte: Capacity::of_byte(redundancy),
            constant: carries(settings.constant),
            rate_based: carries(settings.rate_based),
            access,
            frame: None,
            grant: Grant::default(),
            burst: Burst::default(),
            awake: false,
            to_go: Capacity::ZERO,
            ahead: Capacity::ZERO,
            arrived: Capacity::ZERO,
            by_rate: VecDeque::new(),
            by_volume: Capacity::ZERO,
            asked_by_volume: Capacity::ZERO,
            unheard: Capacity::ZERO,
            path,
            waits_since: None,
            sums: Sums::default(),
            counts: AccessCounts::default(),
        }
    }

    fn begins(&self, frame: u64) -> Time {
        Time::ZERO + self.access.frame * frame
    }

    /// Returns the end of the current frame.
    fn frame_ends(&self) -> Time {
        self.begins(self.frame.map_or(0, |frame| frame + 1))
    }

    /// Returns the frame at a time.
    fn frame_of(&self, at: Time) -> u64 {
        at.as_nanos() / self.access.frame.as_nanos()
    }

    /// Returns when it must enter the next frame.
    pub(crate) fn next_frame(&self) -> Option<Time> {
        let next = self.frame.filter(|_| self.awake)? + 1;
        Some(self.begins(next))
    }

    /// Enters the frame of `now`, unless it already has: obtains its grant and sends a request.
    /// `waiting` is the backlog behind the packet in transmission, with the framing's overhead.
    pub(crate) fn enter(&mut self, now: Time, waiting: u64) {
        let frame = self.frame_of(now);
        if self.frame == Some(frame) {
            return;
        }
        self.leave();
        let (grant, given) = self.access.enter(frame);
        self.frame = Some(frame);
        self.grant = grant;
        self.unheard += self.path.unheard_by(frame);
        self.by_volume = self.asked_by_volume.less(given).less(self.unheard);
        self.by_rate.retain(|(of, _)| *of > frame);
        let (start, span) = (self.begins(frame), self.access.frame);
        self.burst = Burst::new(start, span, grant.begins, grant.all(), grant.rate);
        if self.awake {
            let backlog = (self.byte * waiting + self.to_go).less(self.ahead);
            self.ask(frame, backlog);
            let waits_for_some = !self.by_volume.is_zero() || !self.by_rate.is_empty();
            self.awake = waits_for_some || !backlog.is_zero();
        }
        self.arrived = Capacity::ZERO;
    }

    /// Completes the previous frame.
    fn leave(&mut self) {
        let (sums, grant) = (&mut self.sums, &self.grant);
        sums.granted_by_rate += grant.by_rate;
        sums.granted_by_volume += grant.by_volume;
        sums.granted_free += grant.free;
        sums.faded += grant.faded;
        sums.granted_on_air += grant.on_air;
    }

    /// Requests what is neither granted in this frame nor requested already: the rules of SNS-3's
    /// request manager, once per frame, without its margin for headers.
    ///
    /// By rate (`SatRequestManager::DoRbdcLegacy` with gain 1): the arrival rate or the rate that
    /// empties the rest of the backlog, whichever is larger, minus the constant rate, up to the
    /// maximum. A rate is valid for one frame, since there is a request per frame. By volume
    /// (`GetVbdcBytes`): the rest. Constant capacity counts for this frame only: until the grant
    /// arrives it is meant for packets still to come. If none come, the grant is too large by that
    /// amount.
    ///
    /// No request is made while nothing can be sent. A request lost in an outage is repeated when
    /// the plan that should have included it arrives without it.
    fn ask(&mut self, frame: u64, backlog: Capacity) {
        let (settings, now) = (self.access.settings, self.begins(frame));
        if !self.grant.reaches || self.path.held(now).is_some() {
            return;
        }
        let asked_by_rate = self.by_rate.iter().map(|(_, asked)| *asked);
        let to_come =
            asked_by_rate.fold(self.by_volume, |sum, asked| sum + asked) + self.grant.all();
        let missing = backlog.less(to_come);
        let arrived = self.arrived.less(self.grant.constant);
        let by_rate = missing.max(arrived).min(self.rate_based);
        let by_volume = if settings.volume_based {
            missing.less(by_rate)
        } else {
            Capacity::ZERO
        };
        let request = Request { by_rate, by_volume };
        if request == Request::default() {
            return;
        }
        let lag = frame + self.access.lag;
        let heeded = match self.path.request(now, settings.request_delay) {
            Arrival::InTime => Some(lag),
            Arrival::HeldUntil(arrival) => {
                let plan = (arrival + self.access.back).as_nanos();
                Some(lag.max(plan.div_ceil(self.access.frame.as_nanos())))
            }
            Arrival::Never => None,
        };
        match heeded {
            Some(heeded) => self.access.ask(heeded, request),
            None => self.path.asked_in_vain(lag, by_volume),
        }
        let heeded = heeded.unwrap_or(lag);
        if !by_rate.is_zero() {
            self.by_rate.push_back((heeded, by_rate));
        }
        self.by_volume += by_volume;
        self.asked_by_volume += by_volume;
        self.sums.asked_by_rate += by_rate;
        self.counts.requests += 1;
    }

    /// Records a packet's arrival at the queue, `idle` if nothing was queued before.
    pub(crate) fn offered(&mut self, now: Time, bytes: Bytes, idle: bool) {
        self.awake = true;
        self.arrived += self.byte * bytes.get();
        if idle {
            self.ahead = Capacity::ZERO;
            self.waits_since = Some(now);
        }
    }

    /// Whether a packet's first bit can be sent at `now`; otherwise returns when, as far as is
    /// known.
    pub(crate) fn ready(&mut self, now: Time) -> Result<(), Time> {
        if self.ahead >= self.byte {
            // At such a rate the next packet may have been sent completely.
            return Ok(());
        }
        match self.next_in_burst(now) {
            Some(at) if at <= now => Ok(()),
            Some(at) => Err(at),
            None => Err(self.frame_ends()),
        }
    }

    /// Returns when data can be sent in this frame, from `now` on.
    fn next_in_burst(&mut self, now: Time) -> Option<Time> {
        let mut at = self.burst.next(now)?;
        while let Some(end) = self.path.held(at) {
            at = self.burst.next(end)?;
        }
        Some(at)
    }

    /// Starts the transmission of a packet.
    pub(crate) fn begin(&mut self, now: Time, bytes: Bytes) {
        self.to_go = self.byte * bytes.get();
        let gone = self.ahead.min(self.to_go);
        self.ahead = self.ahead - gone;
        self.sent(gone);
        if let Some(since) = self.waits_since.take() {
            self.counts.waits.record(now.since(since));
        }
    }

    /// Sends as much of the packet in transmission as possible. Returns when its last bit is sent,
    /// if in this frame.
    pub(crate) fn go_on(&mut self, now: Time) -> Option<Time> {
        if self.to_go.is_zero() {
            return Some(now);
        }
        let ends = self.send(now)?;
        self.ahead = self.burst.rest();
        Some(ends)
    }

    fn send(&mut self, now: Time) -> Option<Time> {
        if self.path.stays() {
            let (goes, ends) = self.burst.send(now, None, self.to_go);
            self.sent(goes);
            return self.to_go.is_zero().then_some(ends);
        }
        let frame_ends = self.frame_ends();
        let mut from = now;
        while from < frame_ends {
            if let Some(end) = self.path.held(from) {
                from = end;
                continue;
            }
            let until = self.path.next_held(from);
            let (goes, ends) = self.burst.send(from, until, self.to_go);
            self.sent(goes);
            if self.to_go.is_zero() {
                return Some(ends);
            }
            from = until?;
        }
        None
    }

    fn sent(&mut self, goes: Capacity) {
        self.to_go = self.to_go - goes;
        self.sums.used += goes;
        let own = self.access.settings.rate;
        let rate = self.grant.rate.unwrap_or(own);
        self.sums.on_air += goes.scaled_up(own.bits_per_second(), rate.bits_per_second());
    }

    /// Returns the bits granted until `now`; of the current frame, the part that has passed.
    pub(crate) fn granted_bits(&self, now: Time) -> f64 {
        let sums = &self.sums;
        let dynamic = sums.granted_by_rate + sums.granted_by_volume + sums.granted_free;
        let present = self.grant.by_rate + self.grant.by_volume + self.grant.free;
        let start = self.frame.map_or(Time::ZERO, |frame| self.begins(frame));
        let frame = self.access.frame.as_secs_f64();
        let passed = (now.since(start).as_secs_f64() / frame).min(1.0);
        let of = self.frame_of(now);
        let constant = match self.access.constant(of) {
            Some((before, present)) => {
                let passed = now.since(self.begins(of)).as_secs_f64() / frame;
                before.bits.bits() + present.bits.bits() * passed
            }
            None => self.constant.bits() * now.as_secs_f64() / frame,
        };
        constant + dynamic.bits() + present.bits() * passed
    }

    /// Returns the transmission time up to `now`.
    pub(crate) fn busy(&self, now: Time) -> Span {
        let busy = self.sums.on_air.time_at(self.access.settings.rate);
        busy.saturating_sub(self.burst.sent_at().since(now))
    }

    /// Returns the counters up to the end of the frame of `now`.
    pub(crate) fn counts(&self, now: Time) -> AccessCounts {
        let (sums, grant) = (&self.sums, &self.grant);
        let present = self.frame_of(now);
        let constant = match self.access.constant(present) {
            Some((before, of_this)) => Granted {
                bits: before.bits + of_this.bits,
                on_air: before.on_air + of_this.on_air,
            },
            None => Granted {
                bits: self.constant * (present + 1),
                on_air: self.constant * (present + 1),
            },
        };
        let faded = sums.faded + grant.faded;
        let by_rate = sums.granted_by_rate + grant.by_rate;
        let by_volume = sums.granted_by_volume + grant.by_volume;
        let free = sums.granted_free + grant.free;
        let bytes = |capacity: Capacity| capacity.bytes().get();
        AccessCounts {
            asked_by_rate: bytes(sums.asked_by_rate),
            asked_by_volume: bytes(self.asked_by_volume),
            granted_constant: bytes(constant.bits),
            granted_by_rate: bytes(by_rate),
            granted_by_volume: bytes(by_volume),
            granted_free: bytes(free),
            granted: bytes(constant.bits + by_rate + by_volume + free),
            used: bytes(sums.used),
            faded: (self.path.rates()).map(|_| bytes(faded)),
            on_air: OnAir {
                granted: bytes(constant.on_air + sums.granted_on_air + grant.on_air),
                used: bytes(sums.on_air),
            },
            ..self.counts.clone()
        }
    }

    /// Reports the path's effects on requests by name.
    pub(crate) fn tally(&self, each: &mut Tally<'_>) {
        if let Some(lost) = self.path.lost_requests() {
            each(None::<Flow>, "requests_lost", lost);
        }
    }
}
