//! The sending half of a connection: outstanding data, loss recovery, congestion control, pacing,
//! and their timers.
//!
//! It creates no packets. Its owner, a [`Connection`](super::Connection) or a gateway that sends on
//! behalf of another host, creates them and reports what was sent.

mod ecn;
mod path_mtu;

use std::sync::Arc;

use bentpipe_types::{Packet, SackBlocks, Seq, Span, Time};
use serde::{Deserialize, Serialize};

use super::send_state::SendState;
use super::specialization::{General, Specialization};
use super::timers::Timers;
use crate::congestion::Controller;
use crate::delivered_estimate::DeliveredEstimate;
use crate::options::Negotiated;
use crate::pacing::{Pacer, PacingKind, SentBurst};
use crate::rate_sample::{DeliveryRate, RecoveryPhase};
use crate::recovery::{LossRecovery, Recovery, Retransmission, Scoreboard};
use crate::rtt::RttEstimator;
use crate::statistics::Statistics;
use crate::{Config, LinuxQuirks};
use ecn::EcnState;
use path_mtu::PathMtu;

pub use path_mtu::PathLimit;

/// The sending half of a connection.
///
/// Sequence numbers are positions: unwrapped to 64 bits and counted from the SYN, which is 0.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Sender {
    pub(super) timers: Timers,
    pub(super) negotiated: Negotiated,
    pub(super) ecn: EcnState,
    pub(super) send: SendState,
    pub(super) delivered: DeliveredEstimate,
    pub(super) recovery: Recovery,
    pub(super) congestion: Controller,
    // Counters of the whole connection, most of which belong to the sender.
    pub(super) statistics: Statistics,
    pub(super) rtt: RttEstimator,
    // Present with model-based congestion control.
    pub(super) delivery_rate: Option<Box<DeliveryRate>>,
    // Shared, because most connections have equal settings.
    #[serde(skip, default = "Config::shared_default")]
    pub(super) config: Arc<Config>,
    pub(super) path_mtu: PathMtu,
    pub(super) pacer: Pacer,
    pub(super) scoreboard: Scoreboard,
}

/// Whether the windows and the pacer allow a new segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may be sent now.
    Now,
    /// The congestion window is full.
    WindowFull,
    /// The pacer holds it back until this time.
    At(Time),
}

/// State of another host's connection, as observed by a gateway on the path.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// Sequence number of the sending end's SYN.
    pub initial: Seq,
    /// Everything before this position is acknowledged.
    pub position: u64,
    /// The window that the receiving end last advertised, in bytes.
    pub window: u64,
    /// Window shift of the receiving end (RFC 7323 section 2.2).
    pub window_shift: u8,
    /// Payload of a full segment.
    pub segment: u32,
    /// The receiving end sends SACK blocks.
    pub sack: bool,
}

impl Sender {
    /// Behaviours of Linux that are enabled.
    #[inline(always)]
    pub(super) fn quirks(&self) -> &LinuxQuirks {
        &self.config.linux_quirks
    }

    pub(super) fn new(config: &Arc<Config>, initial: Seq) -> Self {
        let segment = u32::from(config.mss.max(1));
        Self {
            timers: Timers::new(),
            send: SendState::new(initial, config, segment),
            negotiated: Negotiated {
                segment,
                send_shift: 0,
                receive_shift: 0,
                timestamps: false,
                sack: false,
            },
            recovery: Recovery::new(config, false),
            congestion: Controller::new(
                &config.congestion_control,
                &config.congestion_settings(),
                segment,
                u64::from(segment),
            ),
            rtt: RttEstimator::new(config),
            scoreboard: Scoreboard::new(),
            delivered: DeliveredEstimate::default(),
            pacer: Pacer::new(PacingKind::Off, false, false),
            delivery_rate: None,
            ecn: EcnState::default(),
            path_mtu: PathMtu::new(config.path_mtu),
            statistics: Statistics::default(),
            config: Arc::clone(config),
        }
    }

    /// Creates the sender for a connection that another host opened, from its observed state. Round
    /// trips are measured only from the send times, because the timestamps on the segments are
    /// another host's.
    #[must_use]
    pub fn observed(config: &Arc<Config>, observed: &Observed, now: Time) -> Self {
        let mut sender = Self::new(config, observed.initial);
        sender.on_negotiated(Negotiated {
            segment: observed.segment.max(1),
            send_shift: observed.window_shift,
            receive_shift: 0,
            timestamps: false,
            sack: observed.sack && config.sack,
        });
        let send = &mut sender.send;
        send.sequence.unacknowledged = observed.position;
        send.sequence.next = observed.position;
        send.sequence.highest = observed.position;
        send.end = observed.position;
        send.window = observed.window;
        send.window_maximum = observed.window;
        let initial_window = sender.initial_window(false);
        sender.congestion = Controller::new(
            &sender.config.congestion_control,
            &sender.config.congestion_settings(),
            observed.segment.max(1),
            initial_window,
        );
        sender.init_path_model();
        sender.congestion.on_established(None, now);
        sender
    }

    /// Settings for a change that affects only this connection.
    pub(super) fn config_mut(&mut self) -> &mut Config {
        Arc::make_mut(&mut self.config)
    }

    /// Initialises loss recovery after the option negotiation.
    pub(super) fn on_negotiated(&mut self, negotiated: Negotiated) {
        self.negotiated = negotiated;
        self.send.sequence.segment = negotiated.segment;
        self.recovery = Recovery::new(&self.config, negotiated.sack);
        let watch = self.recovery.watches_retransmissions();
        self.scoreboard.watch_retransmissions(watch);
        let ignore = self.quirks().recovery.ignores_echo_of_sacked;
        self.scoreboard.ignore_echo_of_sacked(ignore);
        self.scoreboard.set_clock(self.config.clock);
        self.count_segments();
    }

    /// Configures segment counting after a change of the segment size: short segments count as full
    /// ones, where the window counts segments.
    pub(super) fn count_segments(&mut self) {
        let counts = self.quirks().sending.counts_short_segments && self.recovery.tracks_segments();
        if counts {
            self.scoreboard.count_segments(self.negotiated.segment);
            if let Some(rate) = &mut self.delivery_rate {
                rate.count_segments(self.negotiated.segment);
            }
        }
    }

    /// Processes an acknowledgment of the other end, on a segment after its SYN, with these SACK
    /// blocks. Returns the number of newly acknowledged positions. If the acknowledgment is
    /// unacceptable, returns its distance from SND.UNA as an error and changes nothing.
    #[inline]
    pub fn on_acknowledgment(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        now: Time,
    ) -> Result<u64, i64> {
        let before = self.send.sequence.unacknowledged;
        let distance = i64::from(packet.acknowledgment.distance_from(self.send.wire(before)));
        // RFC 9293 section 3.10.7.4 step 5, with the following check.
        // RFC 5961 section 5.2: acceptable if SND.UNA - MAX.SND.WND =< SEG.ACK =< SND.NXT; else a
        // challenge ACK is sent.
        if distance > self.send.sequence.outstanding_ever() as i64
            || distance < -(self.send.window_maximum as i64)
        {
            return Err(distance);
        }
        self.process_acceptable_ack(packet, sack, distance, now);
        Ok(distance.max(0) as u64)
    }

    /// Whether nothing is outstanding, to be sent or to be reviewed.
    #[inline]
    pub(super) fn is_quiescent(&self) -> bool {
        self.send.is_idle()
            && !self.send.has_unsent()
            && !self.send.fin
            && !self.send.writer_waits
            && !self.timers.needs_review()
            && !self.statistics.limited.is_any()
            && !self.recovery.wants_retransmit(&self.scoreboard)
    }

    /// Extends the stream to `end`, the position after the last byte to be sent.
    pub fn extend(&mut self, end: u64) {
        self.check_app_limited();
        if end > self.send.end {
            self.account_write(end - self.send.end, Time::ZERO);
        }
        self.send.end = self.send.end.max(end);
    }

    /// Records the transmission from `position` to `end`, of new data or a retransmission.
    pub fn on_sent(&mut self, position: u64, end: u64, now: Time) {
        self.record_sent::<General, false>(position, end, now);
    }

    /// Records a transmission. With `K::NEW_DATA_ONLY`, it directly follows everything sent before,
    /// and the scoreboard has room. `AGAIN`: a retransmission.
    #[inline(always)]
    pub(super) fn record_sent<K: Specialization, const AGAIN: bool>(
        &mut self,
        position: u64,
        end: u64,
        now: Time,
    ) {
        let send = &mut self.send;
        let idle = !K::NEW_DATA_ONLY && !AGAIN && send.is_idle();
        let highest = if K::NEW_DATA_ONLY {
            position
        } else {
            send.sequence.highest
        };
        debug_assert_eq!(
            highest, send.sequence.highest,
            "not directly after the data sent"
        );
        if idle {
            self.congestion.on_idle_end(send.last_sent_at, now);
        }
        if !K::NEW_DATA_ONLY && position < highest && !self.recovery.tracks_segments() {
            send.ambiguous_below = send.ambiguous_below.max(end.min(highest));
        }
        if K::NEW_DATA_ONLY {
            send.sequence.highest = end;
            self.scoreboard.push_next(position, end, now);
        } else if !AGAIN && end > highest {
            send.sequence.highest = end;
            self.scoreboard.push(position.max(highest), end, now);
        }
        if K::SIMPLE || self.recovery.uses_sack() {
            self.recovery.on_sent(end - position);
            self.timers.request_restart();
        } else if self.recovery.counts_duplicates() {
            self.recovery.on_sent(end - position);
        }
        send.sequence.next = if K::NEW_DATA_ONLY {
            end
        } else {
            send.sequence.next.max(end)
        };
        if K::PACED && self.delivery_rate.is_some() {
            if K::NEW_DATA_ONLY {
                self.record_next_departure(position, end, now);
            } else {
                self.record_departure(position, end, idle, now);
            }
        }
    }

    /// Whether a new segment of `length` positions may be sent now.
    pub fn admits(&mut self, length: u64, now: Time) -> Admission {
        if self.send.is_idle() {
            self.restart_after_idle(now);
        }
        let in_flight = self.in_flight();
        if in_flight > 0 && self.sending_window() < in_flight + length {
            return Admission::WindowFull;
        }
        // Segments of another host may be larger than ours.
        if self.pacing_allowance(now) < length.min(u64::from(self.negotiated.segment)) {
            let at = self.pacer.next_send().max(now);
            self.timers.pace(Some(at));
            return Admission::At(at);
        }
        Admission::Now
    }

    /// Records a transmission as [`on_sent`](Self::on_sent) does, and starts the retransmission
    /// timer.
    pub fn depart(&mut self, position: u64, end: u64, now: Time) {
        let again = position < self.send.sequence.highest;
        self.on_sent(position, end, now);
        if self.pacer.is_on()
            && let Some(rate) = self.pacing_rate()
        {
            let before = self.statistics.segments_sent;
            let left = SentBurst {
                bytes: end - position,
                before,
                after: before + 1,
            };
            let segment = self.negotiated.segment;
            self.pacer.on_sent(&left, rate, segment, now);
        }
        self.send.last_sent_at = now;
        self.statistics.segments_sent += 1;
        self.statistics.segments_retransmitted += u64::from(again);
        self.statistics.first_data_at.get_or_insert(now);
        self.start_retransmission_timer(now);
    }

    /// Records that the segment from [`next_retransmission`](Self::next_retransmission), at
    /// `position`, was retransmitted.
    pub fn retransmitted(&mut self, position: u64, now: Time) {
        self.recovery
            .on_retransmitted(position, now, &mut self.scoreboard);
    }

    /// Ends the backoff of the retransmission timeout (RFC 6298 section 5.7 would wait for the next
    /// round-trip sample).
    pub fn reset_backoff(&mut self) {
        self.rtt.reset_backoff();
    }

    /// Records that nothing more is sent for now. `limited`: the congestion window is full.
    pub fn pause(&mut self, limited: bool, now: Time) {
        self.validate_window(limited);
        self.update_early_timer::<General>(true, now);
    }

    /// SND.UNA: everything before is acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.send.sequence.unacknowledged
    }

    /// SND.NXT: position of the next data to send.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.send.sequence.next
    }

    /// Position after the highest ever sent.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.send.sequence.highest
    }

    /// Whether nothing is unacknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.send.is_idle()
    }

    /// The window that the other end last advertised, in bytes.
    #[must_use]
    pub fn peer_window(&self) -> u64 {
        self.send.window
    }

    /// The sequence number of a position.
    #[inline]
    #[must_use]
    pub fn wire(&self, position: u64) -> Seq {
        self.send.wire(position)
    }

    /// Bytes estimated to be in the network.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.recovery
            .in_flight(&self.send.sequence, &self.scoreboard)
    }

    /// Whether the sender paces, or measures the delivery rate.
    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.pacer.is_on() || self.delivery_rate.is_some()
    }

    /// Whether loss recovery is inactive. All outstanding data is then in flight.
    #[inline]
    pub(super) fn is_loss_free(&self) -> bool {
        let sequence = &self.send.sequence;
        let quiet = self.recovery.is_loss_free(sequence, &self.scoreboard);
        debug_assert!(!quiet || self.in_flight() == sequence.outstanding());
        quiet
    }

    /// Bytes in flight. `quiet`: recovery is known to be [loss-free](Self::is_loss_free), so that
    /// all outstanding data is in flight.
    #[inline(always)]
    pub(super) fn in_flight_if(&self, quiet: bool) -> u64 {
        if quiet {
            self.send.sequence.outstanding()
        } else {
            self.in_flight()
        }
    }

    /// Bytes that may be in flight: the congestion window, or in fast recovery the window of
    /// proportional rate reduction.
    #[must_use]
    #[inline]
    pub fn sending_window(&self) -> u64 {
        let window = self.congestion.window().congestion_window;
        self.recovery.window(window)
    }

    /// Whether the congestion window has room for a full segment beyond what is in flight.
    #[inline]
    pub(super) fn has_window_for_segment(&self) -> bool {
        self.sending_window() >= self.in_flight() + u64::from(self.negotiated.segment)
    }

    /// The congestion window, in bytes, without the inflation of fast recovery.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        self.congestion.window().congestion_window
    }

    /// Phase of loss recovery.
    #[must_use]
    pub fn recovery_phase(&self) -> RecoveryPhase {
        self.recovery.phase()
    }

    /// Phase of loss recovery, also for recovery without a scoreboard, which keeps no state after a
    /// timeout.
    pub(super) fn phase(&self) -> RecoveryPhase {
        if self.send.sequence.unacknowledged < self.send.timed_out_below {
            RecoveryPhase::AfterTimeout
        } else {
            self.recovery.phase()
        }
    }

    /// Smoothed round-trip time, once there is a sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.rtt.smoothed()
    }

    /// Mean deviation of the round-trip times, once there is a sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Span> {
        self.rtt.mean_deviation()
    }

    /// The retransmission timeout, with backoff.
    #[must_use]
    pub fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// Heap memory that grows with the outstanding data, in bytes.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.scoreboard.allocated()
    }

    /// The connection's counters.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The next segment to retransmit before new data, if the congestion window has room for it.
    #[inline]
    pub fn next_retransmission(&mut self) -> Option<Retransmission> {
        if !self.recovery.wants_retransmit(&self.scoreboard) {
            return None;
        }
        let again = self
            .recovery
            .next_retransmit(&self.send.sequence, &mut self.scoreboard)?;
        (again.regardless_of_window || self.has_window_for_segment()).then_some(again)
    }

    /// Time of the next call to [`on_deadline`](Self::on_deadline).
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }
}
