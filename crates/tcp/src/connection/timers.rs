//! Timers: retransmission, zero-window probes, keep-alive, TIME-WAIT, delayed acknowledgments.
//!
//! A timer is a field. Setting it costs a store; the driver asks for the earliest after each call. What sets the retransmission
//! timer, and what becomes of it, is in `expiry`; the same of what comes before it, in `early`; and of windows that are closed,
//! in `window_probe`.

mod early;
mod expiry;
mod window_probe;

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

/// What the main timer is for: these exclude one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Purpose {
    Retransmit,
    /// The same, in ticks already (`Habits::times_in_ticks`).
    RetransmitWithTick,
    /// RFC 9293 section 3.8.6.1
    Probe,
    TimeWait,
    /// RFC 9293 section 3.8.4
    KeepAlive,
}

/// What the early timer is for. It expires before the main one, or with it, and takes nothing from
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Early {
    /// RFC 8985 section 6.2 step 5: something may be lost by now.
    Reordering,
    /// RFC 8985 section 7: the tail may be lost.
    Probe,
}

/// The timers of one connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timers {
    at: Time,
    delayed_acknowledgment: Time,
    // When the pacer lets the next segment go, while one waits for it.
    pacing: Time,
    early: Time,
    purpose: Purpose,
    early_purpose: Early,
    // Something has changed that the early timer depends on.
    review: bool,
    // Something was sent, or acknowledged cumulatively.
    probe_anew: bool,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            at: Time::NEVER,
            delayed_acknowledgment: Time::NEVER,
            pacing: Time::NEVER,
            early: Time::NEVER,
            purpose: Purpose::Retransmit,
            early_purpose: Early::Probe,
            review: false,
            probe_anew: false,
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        self.next_before(Time::NEVER)
    }

    /// The next that expires, if that is before this time.
    #[inline]
    pub(super) fn next_before(&self, time: Time) -> Option<Time> {
        let earliest = (self.at.min(self.early)).min(self.delayed_acknowledgment.min(self.pacing));
        (earliest < time).then_some(earliest)
    }

    #[inline]
    pub(super) fn set(&mut self, purpose: Purpose, at: Time) {
        self.purpose = purpose;
        self.at = at;
    }

    /// Is the main timer running, for this?
    #[inline]
    pub(super) fn runs(&self, purpose: Purpose) -> bool {
        self.at != Time::NEVER && self.purpose == purpose
    }

    /// Does no other timer run?
    pub(super) fn runs_only(&self, purpose: Purpose) -> bool {
        let others = self.early.min(self.delayed_acknowledgment.min(self.pacing));
        self.runs(purpose) && others == Time::NEVER
    }

    /// Is the main timer running, for retransmission?
    #[inline]
    pub(super) fn retransmits(&self) -> bool {
        self.at != Time::NEVER
            && matches!(
                self.purpose,
                Purpose::Retransmit | Purpose::RetransmitWithTick
            )
    }

    /// Is the main timer not running?
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.at == Time::NEVER
    }

    /// Stops the main timer.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// The early timer is to be set anew: something was sent, or acknowledged.
    #[inline]
    pub(super) fn review(&mut self) {
        self.review = true;
        self.probe_anew = true;
    }

    /// The early timer is to be looked at. A probe is not put off by an acknowledgment that
    /// acknowledges nothing new (RFC 8985 section 7.2).
    #[inline]
    pub(super) fn look(&mut self) {
        self.review = true;
    }

    /// The early timer stays as it is.
    fn reviewed(&mut self) {
        self.review = false;
        self.probe_anew = false;
    }

    /// Is the early timer to be looked at, or set anew?
    #[inline]
    pub(super) fn is_to_be_reviewed(&self) -> bool {
        self.review
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::new();
    }

    /// An acknowledgment may wait until `deadline`, or until an earlier one it waits for already.
    #[inline]
    pub(super) fn delay_acknowledgment(&mut self, deadline: Time) {
        self.delayed_acknowledgment = self.delayed_acknowledgment.min(deadline);
    }

    /// When an acknowledgment goes that waits, if nothing else carries it before.
    pub(super) fn acknowledges_at(&self) -> Time {
        self.delayed_acknowledgment
    }

    /// A segment waits for the pacer until `at`, or none does.
    #[inline]
    pub(super) fn pace(&mut self, at: Option<Time>) {
        self.pacing = at.unwrap_or(Time::NEVER);
    }

    /// Does a segment wait for the pacer no longer than until now?
    #[inline]
    pub(super) fn has_paced_until(&self, now: Time) -> bool {
        self.pacing <= now
    }

    /// Is the pacer's time the only one that has come?
    #[inline]
    pub(super) fn only_paces(&self, now: Time) -> bool {
        self.pacing <= now && self.at.min(self.early).min(self.delayed_acknowledgment) > now
    }

    /// An acknowledgment has gone out.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        self.delayed_acknowledgment = Time::NEVER;
    }
}
