//! Delivery rate samples for model-based congestion control, and pacing.
//!
//! These functions do nothing for a connection without model-based congestion control and pacing.

use bentpipe_types::{BitRate, Span, Time};

use super::Sender;
use crate::pacing::{self, Pacer, PacingKind, SentBurst};
use crate::rate_sample::{DeliveryRate, SampleContext};
use crate::recovery::{LossRecovery, Reaction};

impl Sender {
    /// Initialises pacing and delivery rate sampling when the connection is established.
    pub(super) fn init_path_model(&mut self) {
        // The initial sequence number is random and unique to this connection.
        self.congestion.seed(u64::from(self.send.wire(0).get()));
        self.pacer = Pacer::new(
            self.config.pacing,
            self.congestion.wants_pacing(),
            self.quirks().sending.paces_tenth_segment,
        );
        self.delivery_rate = self
            .congestion
            .models_path()
            .then(|| Box::new(DeliveryRate::default()));
        self.scoreboard.watch(self.delivery_rate.is_some());
        self.count_segments();
    }

    /// Marks the delivery rate as application-limited if so (draft-ietf-ccwg-bbr section 4.1.2.4).
    /// Called at writes, on acknowledgments and when a timer expires.
    #[inline]
    pub(super) fn check_app_limited(&mut self) {
        if self.delivery_rate.is_some() && self.send.unsent() < u64::from(self.negotiated.segment) {
            self.mark_if_app_limited();
        }
    }

    /// Checks for an application limit where less than a full segment is unsent.
    #[inline(never)]
    fn mark_if_app_limited(&mut self) {
        let Some(rate) = &mut self.delivery_rate else {
            return;
        };
        let sequence = &self.send.sequence;
        let in_flight = self.recovery.in_flight(sequence, &self.scoreboard);
        if in_flight < self.congestion.window().congestion_window
            && !self.recovery.wants_retransmit(&self.scoreboard)
        {
            rate.mark_app_limited(in_flight);
        }
    }

    /// Checks for an application limit on acknowledgments and timers. Linux checks only at writes,
    /// and so does not detect a sender that waits for room in its buffer.
    #[inline]
    pub(super) fn check_app_limited_between_writes(&mut self) {
        if !self.quirks().sending.checks_app_limit_at_writes {
            self.check_app_limited();
        }
    }

    /// Like [`record_departure`](Self::record_departure), while data is outstanding.
    #[inline(always)]
    pub(super) fn record_next_departure(&mut self, position: u64, end: u64, now: Time) {
        let in_flight = self.in_flight();
        if let Some(rate) = &mut self.delivery_rate {
            rate.on_sent(position, end, in_flight, false, now);
        }
    }

    /// Records the transmission of the segment from `position` to `end`.
    #[inline(never)]
    pub(super) fn record_departure(&mut self, position: u64, end: u64, idle: bool, now: Time) {
        let in_flight = self.in_flight();
        if let Some(rate) = &mut self.delivery_rate {
            rate.on_sent(position, end, in_flight, idle, now);
            if idle {
                self.congestion
                    .on_transmit_start(rate.is_app_limited(), now);
            }
        }
    }

    /// Prepares the rate sample of an acknowledgment. `quiet`: loss recovery is known to be
    /// [loss-free](Self::is_loss_free).
    #[inline]
    pub(super) fn begin_rate_sample(&mut self, quiet: bool) {
        if self.delivery_rate.is_some() {
            self.check_app_limited_between_writes();
            let in_flight = self.in_flight_if(quiet);
            if let Some(rate) = &mut self.delivery_rate {
                rate.begin(in_flight);
            }
        }
    }

    /// Takes the rate sample of an acknowledgment of `acknowledged` new bytes. `quiet`: it
    /// acknowledges new data, and loss recovery [is loss-free](Self::is_loss_free) after it. Then
    /// no segment was SACKed or lost.
    #[inline]
    pub(super) fn finish_rate_sample(
        &mut self,
        acknowledged: u64,
        reaction: Reaction,
        quiet: bool,
        rtt: Option<Span>,
        now: Time,
    ) {
        if let Some(rate) = &mut self.delivery_rate {
            let position = self.send.sequence.unacknowledged;
            if self.recovery.counts_duplicates() {
                rate.on_acknowledged_or_duplicate(
                    position,
                    self.scoreboard.delivered().bytes(),
                    now,
                );
            } else if acknowledged > 0 {
                rate.on_acknowledged(position, acknowledged, now);
            }
            if !quiet {
                self.report_segment_outcomes(acknowledged, reaction, now);
            }
            self.sample_path(quiet, rtt, now);
        }
    }

    /// Reports SACKed and lost segments to the rate sampler.
    #[inline(never)]
    fn report_segment_outcomes(&mut self, acknowledged: u64, reaction: Reaction, now: Time) {
        let Some(rate) = &mut self.delivery_rate else {
            return;
        };
        let sequence = &self.send.sequence;
        let segment = self.negotiated.segment;
        let selective = self.recovery.tracks_segments();
        if self.recovery.uses_sack() {
            for &(start, end) in self.scoreboard.newly_sacked() {
                rate.on_sacked(start, end, now);
            }
        } else if acknowledged == 0 && !self.recovery.counts_duplicates() {
            rate.on_duplicate(segment, sequence.outstanding_ever(), now);
        }
        // Without SACK, losses are detected one segment at a time.
        if matches!(reaction, Reaction::Enter { .. } | Reaction::Partial { .. }) && !selective {
            let position = sequence.unacknowledged;
            let loss = rate.on_lost(position, u64::from(segment), false, now);
            self.congestion.on_path_loss(&loss);
        }
        if self.scoreboard.newly_lost() > 0 {
            self.report_losses(now);
        }
    }

    #[inline(never)]
    fn sample_path(&mut self, quiet: bool, rtt: Option<Span>, now: Time) {
        let in_flight = self.in_flight_if(quiet);
        let phase = self.phase();
        let Some(rate) = &mut self.delivery_rate else {
            return;
        };
        let sample = rate.sample(&SampleContext {
            now,
            in_flight,
            rtt,
            window_limited: self.send.window_limited,
            next_send: self.pacer.next_send(),
            phase,
            selective: self.recovery.tracks_segments(),
            segment: self.negotiated.segment,
        });
        if self.congestion.on_path_sample(&sample) {
            rate.mark_app_limited(in_flight);
        }
    }

    /// Reports the segments newly marked lost by the scoreboard.
    pub(super) fn report_losses(&mut self, now: Time) {
        let Some(rate) = &mut self.delivery_rate else {
            return;
        };
        for lost in self.scoreboard.newly_lost_segments() {
            let loss = rate.on_lost(lost.position, u64::from(lost.length), true, now);
            self.congestion.on_path_loss(&loss);
        }
    }

    /// Reports all data in flight as lost after a timeout without SACK.
    pub(super) fn report_all_lost(&mut self, in_flight: u64, now: Time) {
        if self.recovery.tracks_segments() {
            return;
        }
        let Some(rate) = &mut self.delivery_rate else {
            return;
        };
        let segment = u64::from(self.negotiated.segment);
        let mut position = self.send.sequence.unacknowledged;
        let end = position + in_flight;
        while position < end {
            let length = segment.min(end - position);
            let loss = rate.on_lost(position, length, false, now);
            self.congestion.on_path_loss(&loss);
            position += loss.length.max(1);
        }
    }

    /// The pacing rate; `None`: not paced. With [`PacingKind::AsRule`], a window rule that gives no
    /// rate is not paced.
    #[must_use]
    #[inline]
    pub fn pacing_rate(&self) -> Option<BitRate> {
        if !self.pacer.is_on() {
            return None;
        }
        let mut wanted = self.congestion.pacing_rate();
        if wanted.is_none() && self.config.pacing != PacingKind::AsRule {
            wanted = self.rtt.smoothed().and_then(|rtt| {
                let outstanding = self.send.sequence.outstanding();
                pacing::rate_of_window(self.congestion.window(), outstanding, rtt)
            });
        }
        self.pacer.limit(wanted, self.negotiated.segment)
    }

    /// Bytes that the pacer allows to be sent now.
    #[inline]
    pub(super) fn pacing_allowance(&self, now: Time) -> u64 {
        if !self.pacer.is_on() {
            return u64::MAX;
        }
        self.pacing_rate().map_or(u64::MAX, |rate| {
            let sent = self.statistics.segments_sent;
            self.pacer
                .allowance(rate, self.negotiated.segment, sent, now)
        })
    }

    /// Whether the pacer holds back all segments.
    #[inline]
    pub(super) fn waits_for_pacer(&self, now: Time) -> bool {
        self.pacer.holds_back(self.statistics.segments_sent, now)
            && self.congestion.pacing_rate().is_some()
    }

    /// Records `bytes` sent, after `before` segments. `waiting`: the pacer holds back more.
    #[inline]
    pub(super) fn pace(&mut self, bytes: u64, before: u64, waiting: bool, now: Time) {
        if bytes > 0
            && let Some(rate) = self.pacing_rate()
        {
            let left = SentBurst {
                bytes,
                before,
                after: self.statistics.segments_sent,
            };
            self.pacer
                .on_sent(&left, rate, self.negotiated.segment, now);
        }
        self.timers
            .pace(waiting.then(|| self.pacer.next_send().max(now)));
    }
}
