//! Timers: retransmission, zero-window probes, keep-alive, TIME-WAIT, delayed acknowledgments.
//!
//! Each timer is a field, and setting it costs one store. The driver asks for the earliest after
//! each call. `timer_expiry` has the retransmission timer, `loss_timers` the timers that expire
//! before it, and `window_probe` the zero-window probes.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

/// Purpose of the main timer. The purposes exclude one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Purpose {
    Retransmit,
    /// Retransmission, with a time already rounded to ticks (`TimerQuirks::ticks`).
    RetransmitWithTick,
    /// RFC 9293 section 3.8.6.1: zero-window probe.
    Probe,
    TimeWait,
    /// RFC 9293 section 3.8.4: keep-alive.
    KeepAlive,
}

/// Purpose of the early timer. It expires before the main timer, or together with it, and does not
/// affect it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Early {
    /// RFC 8985 section 6.2 step 5: segments may be considered lost.
    Reordering,
    /// RFC 8985 section 7: tail loss probe.
    Probe,
}

/// The timers of one connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timers {
    pub(super) at: Time,
    pub(super) delayed_acknowledgment: Time,
    // Expiry of the pacing timer, while a segment waits for it.
    pub(super) pacing: Time,
    pub(super) early: Time,
    pub(super) purpose: Purpose,
    pub(super) early_purpose: Early,
    // A change requires a review of the early timer.
    pub(super) review: bool,
    // Data was sent or cumulatively acknowledged: the probe timer is restarted.
    pub(super) probe_anew: bool,
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

    /// The earliest expiry, if it is before `time`.
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

    /// Whether the main timer is running for this purpose.
    #[inline]
    pub(super) fn runs(&self, purpose: Purpose) -> bool {
        self.at != Time::NEVER && self.purpose == purpose
    }

    /// Whether the main timer is running for this purpose, and no other timer.
    pub(super) fn runs_only(&self, purpose: Purpose) -> bool {
        let others = self.early.min(self.delayed_acknowledgment.min(self.pacing));
        self.runs(purpose) && others == Time::NEVER
    }

    /// Whether the main timer is running for a retransmission.
    #[inline]
    pub(super) fn retransmits(&self) -> bool {
        self.at != Time::NEVER
            && matches!(
                self.purpose,
                Purpose::Retransmit | Purpose::RetransmitWithTick
            )
    }

    /// Whether the main timer is stopped.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.at == Time::NEVER
    }

    /// Stops the main timer.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// Requests a restart of the early timer, after a transmission or an acknowledgment.
    #[inline]
    pub(super) fn request_restart(&mut self) {
        self.review = true;
        self.probe_anew = true;
    }

    /// Requests a review of the early timer. RFC 8985 section 7.2: an acknowledgment without new
    /// data does not postpone a probe.
    #[inline]
    pub(super) fn request_review(&mut self) {
        self.review = true;
    }

    /// Keeps the early timer as it is.
    pub(super) fn clear_review(&mut self) {
        self.review = false;
        self.probe_anew = false;
    }

    /// Whether a review of the early timer is requested.
    #[inline]
    pub(super) fn needs_review(&self) -> bool {
        self.review
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::new();
    }

    /// Delays an acknowledgment until `deadline`, or until an earlier deadline already set.
    #[inline]
    pub(super) fn delay_acknowledgment(&mut self, deadline: Time) {
        self.delayed_acknowledgment = self.delayed_acknowledgment.min(deadline);
    }

    /// Deadline of the delayed acknowledgment, if no other segment carries it before.
    pub(super) fn acknowledges_at(&self) -> Time {
        self.delayed_acknowledgment
    }

    /// Sets the pacing timer, or stops it.
    #[inline]
    pub(super) fn pace(&mut self, at: Option<Time>) {
        self.pacing = at.unwrap_or(Time::NEVER);
    }

    /// Whether the pacing timer has expired.
    #[inline]
    pub(super) fn pacing_expired(&self, now: Time) -> bool {
        self.pacing <= now
    }

    /// Whether the pacing timer has expired and no other.
    #[inline]
    pub(super) fn only_pacing_expired(&self, now: Time) -> bool {
        self.pacing <= now && self.at.min(self.early).min(self.delayed_acknowledgment) > now
    }

    /// Records that an acknowledgment was sent.
    #[inline]
    pub(super) fn on_ack_sent(&mut self) {
        self.delayed_acknowledgment = Time::NEVER;
    }
}
