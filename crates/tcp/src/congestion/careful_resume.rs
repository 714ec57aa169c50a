//! Careful resume (RFC 9959): a connection starts from the window of an earlier one on the same
//! path.
//!
//! A decorator of a window rule, for TCP and QUIC alike. Its phases:
//!
//! 1. *Reconnaissance*: the initial window is sent as usual. The jump requires that it was
//!    acknowledged without congestion, that the round-trip time is like the saved one, and that the
//!    window limits the sender.
//! 2. *Unvalidated*: the window is half of the saved one, paced over a round trip. PipeSize, the
//!    capacity that the path has shown, grows by what is delivered. Ends with the first
//!    acknowledgment of a packet sent in this phase.
//! 3. *Validating*: the window is what is in flight, until all packets of phase 2 are acknowledged.
//! 4. *Normal*: the window rule continues from there, in slow start.
//! 5. *Safe retreat*, after congestion in phase 2 or 3: the window is half of PipeSize until all
//!    packets of phase 2 are acknowledged, and the slow-start threshold is PipeSize afterwards.

use bentpipe_types::{BitRate, Span, Time};

use super::rules::{Rule, dispatch};
use super::{
    AckSample, Congestion, CongestionControl, CongestionControlKind, CongestionSample,
    CongestionSettings, CustomFactory, Window,
};

/// Parameters of a path, saved by an earlier connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavedPath {
    /// saved_cwnd: its congestion window in bytes.
    pub window: u64,
    /// saved_rtt: its minimum round-trip time.
    pub rtt: Span,
    /// Time until which they are valid.
    pub expires: Time,
}

/// Phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Reconnaissance,
    Unvalidated,
    Validating,
    SafeRetreat,
    Normal,
}

/// A window rule that resumes carefully.
#[derive(Debug)]
struct CarefulResume {
    inner: Rule,
    saved: SavedPath,
    phase: Phase,
    /// PipeSize: bytes that the path is known to hold.
    pipe: u64,
    initial_window: u64,
    delivered: u64,
    /// Next position to send, at the last acknowledgment.
    next: u64,
    /// Position of the first packet of the unvalidated phase, then the position after the last.
    mark: u64,
    rtt: Option<Span>,
}

/// Returns a window rule of this kind that resumes from a saved path. BBR has its own start and
/// ignores the window in it: it is returned unchanged, and so is a user-defined rule.
pub(crate) fn careful_resume(
    kind: CongestionControlKind,
    settings: CongestionSettings,
    saved: SavedPath,
) -> CongestionControlKind {
    let is_custom = matches!(kind, CongestionControlKind::Custom(_));
    if is_custom || dispatch!(&Rule::new(&kind, &settings), rule => rule.owns_slow_start()) {
        return kind;
    }
    CongestionControlKind::Custom(CustomFactory::new("careful resume", move || {
        Box::new(CarefulResume::new(&kind, &settings, saved))
    }))
}

impl CarefulResume {
    fn new(kind: &CongestionControlKind, settings: &CongestionSettings, saved: SavedPath) -> Self {
        Self {
            inner: Rule::new(kind, settings),
            saved,
            phase: Phase::Reconnaissance,
            pipe: 0,
            initial_window: 0,
            delivered: 0,
            next: 0,
            mark: 0,
            rtt: None,
        }
    }

    /// RFC 9959 section 4.3: half of the saved window.
    fn jump(&self) -> u64 {
        self.saved.window / 2
    }

    /// Whether the window rule must not change the window.
    fn holds(&self) -> bool {
        matches!(
            self.phase,
            Phase::Unvalidated | Phase::Validating | Phase::SafeRetreat
        )
    }

    /// Enters the unvalidated phase if everything permits it.
    fn consider_jump(&mut self, window: &mut Window, sample: &AckSample) {
        if self.delivered < self.initial_window {
            return;
        }
        let Some(rtt) = sample.minimum_rtt.or(sample.rtt) else {
            return;
        };
        // RFC 9959 section 4.2.1: a much shorter or longer path is another path.
        let is_like_saved = rtt * 2 >= self.saved.rtt && rtt <= self.saved.rtt * 10;
        let is_valid = sample.now < self.saved.expires;
        if !is_like_saved || !is_valid || self.jump() <= window.congestion_window {
            self.phase = Phase::Normal;
            return;
        }
        self.phase = Phase::Unvalidated;
        self.pipe = sample.in_flight;
        self.mark = sample.next;
        self.rtt = Some(rtt);
        window.congestion_window = self.jump();
    }

    /// Follows the acknowledgments through the phases.
    fn follow(&mut self, window: &mut Window, sample: &AckSample) {
        let newly = sample.delivered.saturating_sub(self.delivered);
        self.delivered = sample.delivered;
        self.next = sample.next;
        match self.phase {
            Phase::Reconnaissance | Phase::Normal => (),
            Phase::Unvalidated => {
                self.pipe += newly;
                if sample.unacknowledged > self.mark {
                    if sample.in_flight <= self.pipe {
                        self.phase = Phase::Normal;
                        window.congestion_window = self.pipe.min(window.congestion_window);
                    } else {
                        self.phase = Phase::Validating;
                        self.mark = sample.next;
                        window.congestion_window = sample.in_flight;
                    }
                }
            }
            Phase::Validating => {
                self.pipe += newly;
                if sample.unacknowledged >= self.mark {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat => {
                self.pipe += newly;
                if sample.unacknowledged >= self.mark {
                    self.phase = Phase::Normal;
                    window.slow_start_threshold = self.pipe;
                }
            }
        }
    }
}

impl CongestionControl for CarefulResume {
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, now: Time) {
        self.initial_window = window.congestion_window;
        dispatch!(&mut self.inner, rule => rule.on_established(window, rtt, now));
    }

    fn on_ack(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) {
        if !self.holds() {
            dispatch!(&mut self.inner, rule => rule.on_ack(window, acknowledged, sample));
        }
    }

    fn on_delivery(&mut self, window: &mut Window, sample: &AckSample) {
        self.follow(window, sample);
        if dispatch!(&self.inner, rule => rule.sees_every_ack()) {
            let before = *window;
            dispatch!(&mut self.inner, rule => rule.on_delivery(window, sample));
            if self.holds() {
                *window = before;
            }
        }
    }

    fn slow_start_growth(&mut self, window: &mut Window, counted: u64, sample: &AckSample) -> u64 {
        if self.phase == Phase::Reconnaissance {
            self.consider_jump(window, sample);
        }
        if self.holds() {
            return 0;
        }
        dispatch!(&mut self.inner, rule => rule.slow_start_growth(window, counted, sample))
    }

    fn on_application_limited(&mut self) {
        dispatch!(&mut self.inner, rule => rule.on_application_limited());
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        let unvalidated = self.phase == Phase::Unvalidated;
        dispatch!(&mut self.inner, rule => rule.on_congestion(window, sample));
        match self.phase {
            Phase::Reconnaissance => self.phase = Phase::Normal,
            Phase::Unvalidated | Phase::Validating => {
                self.phase = Phase::SafeRetreat;
                if unvalidated {
                    self.mark = self.next;
                }
                // RFC 9959 section 4.5: no more than half of PipeSize, but the initial window.
                let retreat = (self.pipe / 2).max(self.initial_window);
                window.slow_start_threshold = window.slow_start_threshold.min(retreat);
                window.congestion_window = match sample.event {
                    Congestion::Timeout => window.congestion_window,
                    Congestion::Loss | Congestion::Ecn => retreat.min(self.saved.window / 2),
                };
            }
            Phase::SafeRetreat | Phase::Normal => (),
        }
    }

    fn on_recovery_exit(&mut self, window: &mut Window, now: Time) {
        dispatch!(&mut self.inner, rule => rule.on_recovery_exit(window, now));
    }

    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        // The unvalidated window stays abandoned.
        if !self.holds() {
            dispatch!(&mut self.inner, rule => rule.on_spurious(window, before));
        }
    }

    fn on_idle_end(&mut self, last_sent: Time, now: Time) {
        dispatch!(&mut self.inner, rule => rule.on_idle_end(last_sent, now));
    }

    fn on_repeated_timeout(&mut self, window: &mut Window, flight_size: Option<u64>) {
        dispatch!(&mut self.inner, rule => rule.on_repeated_timeout(window, flight_size));
    }

    fn loss_window(&self, window: &Window) -> u64 {
        dispatch!(&self.inner, rule => rule.loss_window(window))
    }

    fn send_buffer_windows(&self) -> u64 {
        dispatch!(&self.inner, rule => rule.send_buffer_windows())
    }

    fn sees_every_ack(&self) -> bool {
        true
    }

    fn seed(&mut self, seed: u64) {
        dispatch!(&mut self.inner, rule => rule.seed(seed));
    }

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self, window: &Window) -> Option<BitRate> {
        // RFC 9959 section 4.3: the jump is paced over a round trip.
        let rtt = self.rtt.filter(|_| self.phase == Phase::Unvalidated)?;
        let bits = u128::from(window.congestion_window) * 8 * 1_000_000_000;
        BitRate::new(
            u64::try_from(bits / u128::from(rtt.as_nanos().max(1)))
                .ok()?
                .max(1),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Config;

    const SEGMENT: u64 = 1_000;

    /// A path that holds `capacity` bytes and loses what exceeds it, with a sender that always has
    /// data, in rounds of one round-trip time.
    struct Rounds {
        rule: CarefulResume,
        window: Window,
        sent: u64,
        acknowledged: u64,
        delivered: u64,
        now: Time,
        /// Largest window of each round.
        windows: Vec<u64>,
    }

    const RTT: Span = Span::from_millis(600);

    impl Rounds {
        fn new(saved: u64) -> Self {
            let settings = Config::default().congestion_settings();
            let saved = SavedPath {
                window: saved,
                rtt: RTT,
                expires: Time::NEVER,
            };
            let rule = CarefulResume::new(&CongestionControlKind::Reno, &settings, saved);
            let mut rounds = Self {
                rule,
                window: Window::new(SEGMENT as u32, 10 * SEGMENT, u64::MAX),
                sent: 0,
                acknowledged: 0,
                delivered: 0,
                now: Time::ZERO,
                windows: Vec::new(),
            };
            rounds
                .rule
                .on_established(&mut rounds.window, Some(RTT), Time::ZERO);
            rounds
        }

        /// Sends a window, and receives the acknowledgments of what the path holds.
        fn round(&mut self, capacity: u64) {
            let flight = self.window.congestion_window / SEGMENT * SEGMENT;
            self.windows.push(flight);
            self.sent += flight;
            self.now += RTT;
            let (arrives, lost) = (flight.min(capacity), flight.saturating_sub(capacity));
            for part in 1..=arrives / SEGMENT {
                self.delivered += SEGMENT;
                let sample = AckSample {
                    delivered: self.delivered,
                    in_flight: flight - part * SEGMENT,
                    unacknowledged: self.acknowledged + part * SEGMENT,
                    next: self.sent,
                    rtt: Some(RTT),
                    minimum_rtt: Some(RTT),
                    ..AckSample::at(self.now, SEGMENT)
                };
                self.rule.on_delivery(&mut self.window, &sample);
                if self.window.in_slow_start() {
                    let growth = self
                        .rule
                        .slow_start_growth(&mut self.window, SEGMENT, &sample);
                    self.window.congestion_window += growth;
                } else {
                    self.rule.on_ack(&mut self.window, SEGMENT, &sample);
                }
            }
            self.acknowledged = self.sent;
            if lost > 0 {
                let sample = CongestionSample::new(Congestion::Loss, flight, self.now);
                self.rule.on_congestion(&mut self.window, &sample);
            }
        }
    }

    #[test]
    fn a_known_path_is_used_after_one_round_trip() {
        let mut rounds = Rounds::new(4_000 * SEGMENT);
        for _ in 0..4 {
            rounds.round(4_000 * SEGMENT);
        }
        assert_eq!(rounds.windows[0], 10 * SEGMENT);
        assert_eq!(rounds.windows[1], 2_000 * SEGMENT);
        assert_eq!(rounds.rule.phase, Phase::Normal);
        assert!(rounds.windows[3] >= 2_000 * SEGMENT);
    }

    #[test]
    fn another_round_trip_time_or_a_late_start_prevents_the_jump() {
        for (saved_rtt, expires) in [(1_300, 1_000), (59, 1_000), (600, 0)] {
            let mut rounds = Rounds::new(4_000 * SEGMENT);
            rounds.rule.saved.rtt = Span::from_millis(saved_rtt);
            rounds.rule.saved.expires = Time::ZERO + Span::from_secs(expires);
            for _ in 0..3 {
                rounds.round(u64::MAX);
            }
            assert_eq!(
                rounds.windows,
                [10, 20, 40].map(|packets| packets * SEGMENT)
            );
        }
    }

    proptest! {
        /// Whatever the path holds, the window after the first congestion is at most half of what
        /// the path delivered, or the initial window.
        #[test]
        fn retreats_to_half_of_the_pipe(saved in 50_u64..20_000, capacity in 10_u64..20_000) {
            let mut rounds = Rounds::new(saved * SEGMENT);
            for _ in 0..30 {
                let delivered = rounds.delivered;
                let phase = rounds.rule.phase;
                rounds.round(capacity * SEGMENT);
                prop_assert!(phase == Phase::Normal
                    || rounds.windows.last() <= Some(&(saved * SEGMENT / 2).max(10 * SEGMENT)));
                if rounds.rule.phase == Phase::SafeRetreat && phase != Phase::SafeRetreat {
                    let proven = rounds.delivered - delivered + 10 * SEGMENT;
                    let most = (proven / 2).max(10 * SEGMENT);
                    prop_assert!(rounds.window.congestion_window <= most);
                    return Ok(());
                }
            }
            // Without congestion before the jump was validated, the rule goes on as usual.
            prop_assert_eq!(rounds.rule.phase, Phase::Normal);
        }
    }
}
