//! The sender's half of a connection: what was sent, what is known to have arrived of it, what to
//! send again, how much may be in flight, how fast, and the timers that go with it.
//!
//! It emits nothing. Who owns it, a [`Connection`](super::Connection) or a gateway that sends on
//! behalf of another host, makes the packets and tells it what has left.

use std::sync::Arc;

use bentpipe_types::{Packet, SackBlocks, Seq, Span, Time};
use serde::{Deserialize, Serialize};

use super::ecn::Notification;
use super::known::{Known, Nothing};
use super::path_mtu::PathMtu;
use super::send::Send;
use super::timers::Timers;
use crate::Config;
use crate::congestion::Controller;
use crate::delivered::Delivered;
use crate::options::Negotiated;
use crate::pacing::{Departure, Pacer, PacingKind};
use crate::rate_sample::{DeliveryRate, RecoveryPhase};
use crate::recovery::{LossRecovery, Recovery, Retransmission, Scoreboard};
use crate::rtt::RttEstimator;
use crate::statistics::Statistics;

/// The sender's half of a connection.
///
/// Sequence numbers are positions: unwrapped to 64 bits and counted from the SYN, which is 0.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Sender {
    pub(super) timers: Timers,
    pub(super) negotiated: Negotiated,
    pub(super) ecn: Notification,
    pub(super) send: Send,
    pub(super) delivered: Delivered,
    pub(super) recovery: Recovery,
    pub(super) congestion: Controller,
    // Of the whole connection: most of what there is to count, the sender counts.
    pub(super) statistics: Statistics,
    pub(super) rtt: RttEstimator,
    // Where the window rule models the path.
    pub(super) delivery_rate: Option<Box<DeliveryRate>>,
    // Most connections have the same as others.
    #[serde(skip, default = "Config::usual")]
    pub(super) config: Arc<Config>,
    pub(super) path_mtu: PathMtu,
    pub(super) pacer: Pacer,
    pub(super) scoreboard: Scoreboard,
}

/// What the windows and the pacer say to a segment that was never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may leave.
    Now,
    /// The congestion window is full.
    WindowFull,
    /// The pacer lets it go no sooner than this.
    At(Time),
}

/// A connection that somebody else has opened, as who watched it open knows it.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// The sequence number of the sending end's SYN.
    pub initial: Seq,
    /// Everything before this position is acknowledged.
    pub position: u64,
    /// The window that the receiving end has last advertised, in bytes.
    pub window: u64,
    /// The shift of the windows that it advertises (RFC 7323 section 2.2).
    pub window_shift: u8,
    /// Payload of a full segment.
    pub segment: u32,
    /// The receiving end sends SACK blocks.
    pub sack: bool,
}

impl Sender {
    pub(super) fn new(config: &Arc<Config>, initial: Seq) -> Self {
        let segment = u32::from(config.mss.max(1));
        Self {
            timers: Timers::new(),
            send: Send::new(initial, config, segment),
            negotiated: Negotiated {
                segment,
                send_shift: 0,
                receive_shift: 0,
                timestamps: false,
                sack: false,
            },
            recovery: Recovery::new(config, false),
            congestion: Controller::new(config, segment, u64::from(segment)),
            rtt: RttEstimator::new(config),
            scoreboard: Scoreboard::new(),
            delivered: Delivered::default(),
            pacer: Pacer::new(PacingKind::Off, false, false),
            delivery_rate: None,
            ecn: Notification::default(),
            path_mtu: PathMtu::new(config.path_mtu),
            statistics: Statistics::default(),
            config: Arc::clone(config),
        }
    }

    /// The sender of a connection that somebody else has opened, from what was observed of it. It
    /// measures round trips by what it sends itself: the timestamps on the segments are another's.
    #[must_use]
    pub fn observed(config: &Arc<Config>, observed: &Observed, now: Time) -> Self {
        let mut sender = Self::new(config, observed.initial);
        sender.agreed(Negotiated {
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
        sender.congestion =
            Controller::new(&sender.config, observed.segment.max(1), initial_window);
        sender.learn_path();
        sender.congestion.on_established(None, now);
        sender
    }

    /// Its settings, for a change of this connection's alone.
    pub(super) fn config_mut(&mut self) -> &mut Config {
        Arc::make_mut(&mut self.config)
    }

    /// Both SYNs have come: what follows from them for loss recovery.
    pub(super) fn agreed(&mut self, negotiated: Negotiated) {
        self.negotiated = negotiated;
        self.send.sequence.segment = negotiated.segment;
        self.recovery = Recovery::new(&self.config, negotiated.sack);
        let watch = self.recovery.watches_retransmissions();
        self.scoreboard.watch_retransmissions(watch);
        let ignore = self.config.habits.ignores_echo_of_sacked;
        self.scoreboard.ignore_echo_of_sacked(ignore);
        self.count_segments();
    }

    /// Full segments are as long as they are now: a short one counts for that, where segments count.
    pub(super) fn count_segments(&mut self) {
        let counts = self.config.habits.counts_short_segments && self.recovery.knows_segments();
        if counts {
            self.scoreboard.count_segments(self.negotiated.segment);
            if let Some(rate) = &mut self.delivery_rate {
                rate.count_segments(self.negotiated.segment);
            }
        }
    }

    /// An acknowledgment of the other end's has come, on a segment after its SYN, with these SACK
    /// blocks. Returns how many positions are newly acknowledged, or how far the acknowledgment is
    /// from SND.UNA if it is none that the other end can have sent: nothing is changed then.
    #[inline]
    pub fn on_acknowledgment(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        now: Time,
    ) -> Result<u64, i64> {
        let before = self.send.sequence.unacknowledged;
        let distance = i64::from(packet.acknowledgment.distance_from(self.send.wire(before)));
        // RFC 5961 section 5.2: SND.UNA - MAX.SND.WND =< SEG.ACK =< SND.NXT, else a challenge
        if distance > self.send.sequence.outstanding_ever() as i64
            || distance < -(self.send.window_maximum as i64)
        {
            return Err(distance);
        }
        self.acknowledged(packet, sack, distance, now);
        Ok(distance.max(0) as u64)
    }

    /// Is nothing outstanding, and nothing to be sent, and has all of that been looked at?
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        self.send.is_idle()
            && !self.send.has_unsent()
            && !self.send.fin
            && !self.send.writer_waits
            && !self.timers.is_to_be_reviewed()
            && !self.statistics.limited.is_any()
            && !self.recovery.wants_retransmit(&self.scoreboard)
    }

    /// The stream goes on to `end`, the position after the last byte to be sent.
    pub fn extend(&mut self, end: u64) {
        self.check_app_limited();
        if end > self.send.end {
            self.before_write(end - self.send.end, Time::ZERO);
        }
        self.send.end = self.send.end.max(end);
    }

    /// Everything from one position to another, which is new or was sent before, has left.
    pub fn on_sent(&mut self, position: u64, end: u64, now: Time) {
        self.note_sent::<Nothing, false>(position, end, now);
    }

    /// The same. Where the sender is known to be plain, it is what comes after all that was sent, and the scoreboard has room
    /// for it. `AGAIN`: all of it was sent before.
    #[inline(always)]
    pub(super) fn note_sent<K: Known, const AGAIN: bool>(
        &mut self,
        position: u64,
        end: u64,
        now: Time,
    ) {
        let send = &mut self.send;
        let idle = !K::PLAIN && !AGAIN && send.is_idle();
        let highest = if K::PLAIN {
            position
        } else {
            send.sequence.highest
        };
        debug_assert_eq!(highest, send.sequence.highest, "not the next");
        if idle {
            self.congestion.on_idle_end(send.last_sent_at, now);
        }
        if !K::PLAIN && position < highest && !self.recovery.knows_segments() {
            send.ambiguous_below = send.ambiguous_below.max(end.min(highest));
        }
        if K::PLAIN {
            send.sequence.highest = end;
            self.scoreboard.push_next(position, end, now);
        } else if !AGAIN && end > highest {
            send.sequence.highest = end;
            self.scoreboard.push(position.max(highest), end, now);
        }
        if K::SIMPLE || self.recovery.hears_blocks() {
            self.recovery.on_sent(end - position);
            self.timers.review();
        } else if self.recovery.counts_duplicates() {
            self.recovery.on_sent(end - position);
        }
        send.sequence.next = if K::PLAIN {
            end
        } else {
            send.sequence.next.max(end)
        };
        if K::PACED && self.delivery_rate.is_some() {
            if K::PLAIN {
                self.note_next_departure(position, end, now);
            } else {
                self.note_departure(position, end, idle, now);
            }
        }
    }

    /// May a segment of `length` positions, never sent before, leave now?
    pub fn admits(&mut self, length: u64, now: Time) -> Admission {
        if self.send.is_idle() {
            self.restart_after_idle(now);
        }
        let in_flight = self.in_flight();
        if in_flight > 0 && self.sending_window() < in_flight + length {
            return Admission::WindowFull;
        }
        // (Another's segments may be larger than ours would be.)
        if self.pacing_allowance(now) < length.min(u64::from(self.negotiated.segment)) {
            let at = self.pacer.next_send().max(now);
            self.timers.pace(Some(at));
            return Admission::At(at);
        }
        Admission::Now
    }

    /// A segment has left, as [`on_sent`](Self::on_sent) says, and the retransmission timer runs.
    pub fn depart(&mut self, position: u64, end: u64, now: Time) {
        let again = position < self.send.sequence.highest;
        self.on_sent(position, end, now);
        if self.pacer.is_on()
            && let Some(rate) = self.pacing_rate()
        {
            let before = self.statistics.segments_sent;
            let left = Departure {
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
        self.expect_acknowledgment(now);
    }

    /// What [`next_retransmission`](Self::next_retransmission) named, at `position`, has left.
    pub fn retransmitted(&mut self, position: u64, now: Time) {
        self.recovery
            .on_retransmitted(position, now, &mut self.scoreboard);
    }

    /// The retransmission timeout is that of the round trips again (RFC 6298 section 5.7 would wait for
    /// the next of them).
    pub fn forget_back_off(&mut self) {
        self.rtt.forget_back_off();
    }

    /// Nothing more leaves for now; `limited`: for want of congestion window.
    pub fn pause(&mut self, limited: bool, now: Time) {
        self.validate_window(limited);
        self.review_early_timer::<Nothing>(true, now);
    }

    /// SND.UNA: everything before is acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.send.sequence.unacknowledged
    }

    /// SND.NXT: the position of what is sent next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.send.sequence.next
    }

    /// The position after the highest that was ever sent.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.send.sequence.highest
    }

    /// Is nothing unacknowledged?
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.send.is_idle()
    }

    /// The window that the other end has last advertised, in bytes.
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

    /// Bytes believed to be in the network.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.recovery
            .in_flight(&self.send.sequence, &self.scoreboard)
    }

    /// Bytes that may be in flight: the congestion window, or what proportional rate reduction
    /// makes of it in fast recovery.
    #[must_use]
    #[inline]
    pub fn sending_window(&self) -> u64 {
        let window = self.congestion.window().congestion_window;
        self.recovery.window(window)
    }

    /// The congestion window, in bytes, without the inflation of fast recovery.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        self.congestion.window().congestion_window
    }

    /// Where loss recovery stands.
    #[must_use]
    pub fn recovery_phase(&self) -> RecoveryPhase {
        self.recovery.phase()
    }

    /// The same, also of a recovery that goes back to the first segment after a timeout, and knows no more of it then.
    pub(super) fn phase(&self) -> RecoveryPhase {
        if self.send.sequence.unacknowledged < self.send.timed_out_below {
            RecoveryPhase::AfterTimeout
        } else {
            self.recovery.phase()
        }
    }

    /// The smoothed round-trip time, once there is a sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.rtt.smoothed()
    }

    /// The mean deviation of round-trip times, once there is a sample.
    #[must_use]
    pub fn rtt_deviation(&self) -> Option<Span> {
        self.rtt.mean_deviation()
    }

    /// The retransmission timeout, backed off.
    #[must_use]
    pub fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// Bytes of memory besides its own, as far as they grow with what is outstanding.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.scoreboard.allocated()
    }

    /// Counters.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What is to be sent again before anything new, if there is something and the congestion window
    /// has room for it.
    #[inline]
    pub fn next_retransmission(&mut self) -> Option<Retransmission> {
        if !self.recovery.wants_retransmit(&self.scoreboard) {
            return None;
        }
        let again = self
            .recovery
            .next_retransmit(&self.send.sequence, &mut self.scoreboard)?;
        let segment = u64::from(self.negotiated.segment);
        let room =
            again.regardless_of_window || self.sending_window() >= segment + self.in_flight();
        room.then_some(again)
    }

    /// When [`on_deadline`](Self::on_deadline) is next to be called.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }
}
