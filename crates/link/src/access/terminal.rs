//! A terminal: what it asks for, and what it sends of what it is granted.

use std::collections::VecDeque;

use bentpipe_types::{Bytes, Span, Time};

use super::burst::Burst;
use super::capacity::Capacity;
use super::carrier::{Grant, Request};
use super::constant::Granted;
use super::path::{Arrival, Path};
use super::{Access, AccessCounts, OnAir};
use crate::{Flow, Tally};

/// A direction's side of capacity on demand.
///
/// Whoever lets it send first lets it [enter](Self::enter) the frame. While it is awake it has to, at the beginning of
/// each: it has something to send, or waits for what it has asked for.
#[derive(Debug)]
pub(crate) struct Terminal {
    access: Access,
    /// What a byte takes on the air.
    byte: Capacity,
    constant: Capacity,
    rate_based: Capacity,
    /// The frame that it is in; none before it has entered any.
    frame: Option<u64>,
    grant: Grant,
    burst: Burst,
    awake: bool,
    /// What is to go of the packet that is being sent.
    to_go: Capacity,
    /// What has gone already of the packet behind the one that was sent last. That one ends between two nanoseconds, and
    /// the next begins then, though it is taken from the queue at a whole one, which may be in another frame: half a
    /// nanosecond's worth at most.
    ahead: Capacity,
    /// What has come since the frame began.
    arrived: Capacity,
    /// Rates asked for, and the frame that each is for, of frames to come.
    by_rate: VecDeque<(u64, Capacity)>,
    /// Volumes asked for and not granted.
    by_volume: Capacity,
    asked_by_volume: Capacity,
    /// Volumes that the hub has never heard of, as it turned out.
    unheard: Capacity,
    path: Path,
    /// When something came to it that had nothing to send; until it can be sent.
    waits_since: Option<Time>,
    sums: Sums,
    counts: AccessCounts,
}

/// What it has been granted, asked for and used, before it is rounded to bytes. Grants are of all frames before the
/// present one.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    asked_by_rate: Capacity,
    faded: Capacity,
    /// What has been sent, as time on the air in clear sky's capacity; and what was granted by rate and by volume.
    on_air: Capacity,
    granted_on_air: Capacity,
    granted_by_rate: Capacity,
    granted_by_volume: Capacity,
    granted_free: Capacity,
    used: Capacity,
}

impl Terminal {
    /// With `redundancy` bits on the air per bit, over this path.
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

    /// When the frame ends that it is in.
    fn frame_ends(&self) -> Time {
        self.begins(self.frame.map_or(0, |frame| frame + 1))
    }

    /// The frame of that time.
    fn frame_of(&self, at: Time) -> u64 {
        at.as_nanos() / self.access.frame.as_nanos()
    }

    /// When it next wants to enter a frame, whatever happens.
    pub(crate) fn next_frame(&self) -> Option<Time> {
        let next = self.frame.filter(|_| self.awake)? + 1;
        Some(self.begins(next))
    }

    /// Enters the frame of `now`, unless it is in it: learns what it is granted, and asks for more. So many bytes wait
    /// behind the packet that is being sent, with what framings may add to them.
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

    /// The frame that it was in is over.
    fn leave(&mut self) {
        let (sums, grant) = (&mut self.sums, &self.grant);
        sums.granted_by_rate += grant.by_rate;
        sums.granted_by_volume += grant.by_volume;
        sums.granted_free += grant.free;
        sums.faded += grant.faded;
        sums.granted_on_air += grant.on_air;
    }

    /// Asks for what is neither in this frame's grant nor asked for already: the rules of SNS-3's request manager, once a
    /// frame, without its margin for headers.
    ///
    /// By rate (`SatRequestManager::DoRbdcLegacy`, of gain 1), the rate at which packets have come or what takes away
    /// the rest of the backlog, whichever is more, less what is constant, up to a maximum. A rate is for one frame, since
    /// there is a request each frame. By volume (`GetVbdcBytes`), the rest. What is constant counts for this frame
    /// alone: what it carries until the grant comes is for packets that have not come yet, and if none do, as much
    /// of the grant is left over.
    ///
    /// Where nothing can be sent, no request is made. One that an outage takes is asked for again when the plan that should
    /// have heeded it has come without.
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

    /// A packet of so many bytes has come to the queue: to an `idle` terminal, or behind others.
    pub(crate) fn offered(&mut self, now: Time, bytes: Bytes, idle: bool) {
        self.awake = true;
        self.arrived += self.byte * bytes.get();
        if idle {
            self.ahead = Capacity::ZERO;
            self.waits_since = Some(now);
        }
    }

    /// May a packet's first bit be sent at `now`? If not: when next, as far as is known.
    pub(crate) fn ready(&mut self, now: Time) -> Result<(), Time> {
        if self.ahead >= self.byte {
            // So fast that the next may have gone altogether.
            return Ok(());
        }
        match self.next_in_burst(now) {
            Some(at) if at <= now => Ok(()),
            Some(at) => Err(at),
            None => Err(self.frame_ends()),
        }
    }

    /// When something may be sent in this frame, from `now` on.
    fn next_in_burst(&mut self, now: Time) -> Option<Time> {
        let mut at = self.burst.next(now)?;
        while let Some(end) = self.path.held(at) {
            at = self.burst.next(end)?;
        }
        Some(at)
    }

    /// The transmission of a packet of so many bytes begins.
    pub(crate) fn begin(&mut self, now: Time, bytes: Bytes) {
        self.to_go = self.byte * bytes.get();
        let gone = self.ahead.min(self.to_go);
        self.ahead = self.ahead - gone;
        self.sent(gone);
        if let Some(since) = self.waits_since.take() {
            self.counts.waits.record(now.since(since));
        }
    }

    /// Sends what it may of the packet that is being sent: when its last bit goes, if that is in this frame.
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

    /// What it has been granted until `now`, in bits: of the present frame, what has passed of it.
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

    /// Time it has sent, up to `now`.
    pub(crate) fn busy(&self, now: Time) -> Span {
        let busy = self.sums.on_air.time_at(self.access.settings.rate);
        busy.saturating_sub(self.burst.sent_at().since(now))
    }

    /// What it has asked for, got and used, up to the end of the frame of `now`.
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

    /// Tells what the path has done to requests, by name.
    pub(crate) fn tally(&self, each: &mut Tally<'_>) {
        if let Some(lost) = self.path.lost_requests() {
            each(None::<Flow>, "requests_lost", lost);
        }
    }
}
