//! TCP's window rules as congestion controllers of quinn.
//!
//! quinn's interface gives a rule less than TCP does:
//!
//! | TCP | quinn |
//! |---|---|
//! | pacing rate of the rule (BBR) | 1.25 windows per round trip, whatever the rule |
//! | whether the window limited the sender | whether quinn had data when it last looked |
//! | spurious losses | none |
//! | timeouts | none; persistent congestion (RFC 9002 section 7.6) counts as a timeout |
//! | each lost segment | the bytes lost at once, and the time at which the last of them was sent |
//! | each delivered segment | bytes and sending time |
//! | window during recovery (PRR) | that of the rule from the beginning of recovery |

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bentpipe_tcp::congestion::{AckSample, Congestion, ExternalWindow};
use bentpipe_tcp::{Config, LossSample, RateSample, RecoveryPhase};
use bentpipe_types::{Span, splitmix64};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::clock;

/// Largest number of sending times that a rule remembers. Beyond it, the oldest are forgotten.
const DEPARTURES: usize = 1 << 17;

/// Initial window in packets (RFC 9002 section 7.2).
const INITIAL_PACKETS: u64 = 10;

/// Initial window in bytes, unless ten packets are less (RFC 9002 section 7.2).
const INITIAL_BYTES: u64 = 14_720;

/// A window rule of TCP in a connection of quinn.
#[derive(Clone)]
pub struct WindowRule(Arc<Mutex<State>>);

/// Creates a [`WindowRule`] for each path of a connection.
#[derive(Debug)]
pub(crate) struct WindowRuleFactory {
    config: Arc<Config>,
    initial_window: Option<u64>,
    seed: u64,
    built: AtomicU64,
}

impl WindowRule {
    /// Returns a factory of rules that `config` selects.
    pub(crate) fn factory(
        config: Arc<Config>,
        initial_window: Option<u64>,
        seed: u64,
    ) -> WindowRuleFactory {
        WindowRuleFactory {
            config,
            initial_window,
            seed,
            built: AtomicU64::new(0),
        }
    }

    /// Creates a rule for packets of `mtu` bytes.
    #[must_use]
    pub fn new(
        config: Arc<Config>,
        initial_window: Option<u64>,
        seed: u64,
        mtu: u16,
        now: Instant,
    ) -> Self {
        Self::factory(config, initial_window, seed).rule(now, mtu)
    }

    /// Processes the acknowledgment of a packet: [`Controller::on_ack`] without quinn's estimator
    /// of round-trip times, which only quinn can create.
    pub fn acknowledge(&self, sent: Instant, bytes: u64, smoothed_rtt: Span) {
        self.with(|state| state.on_ack(sent, bytes, smoothed_rtt));
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.0.lock().ok().map(|mut state| act(&mut state))
    }
}

impl fmt::Debug for WindowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WindowRule").field(&self.0).finish()
    }
}

impl WindowRuleFactory {
    fn rule(&self, now: Instant, current_mtu: u16) -> WindowRule {
        let segment = u64::from(current_mtu);
        let initial_window = (self.initial_window)
            .unwrap_or_else(|| (INITIAL_PACKETS * segment).min(INITIAL_BYTES.max(2 * segment)));
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let seed = splitmix64(self.seed ^ number);
        let window = (self.config).external_window(segment as u32, initial_window, seed);
        WindowRule(Arc::new(Mutex::new(State {
            window,
            initial_window,
            departures: VecDeque::new(),
            batch: Batch::default(),
            sent: 0,
            acknowledged_end: 0,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            newly_lost: 0,
            in_flight: 0,
            app_limited_until: 0,
            minimum_rtt: None,
            established: false,
            recovery_from: None,
            in_recovery: false,
        })))
    }
}

impl ControllerFactory for WindowRuleFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.rule(now, current_mtu))
    }
}

/// State when packets were sent, as in draft-ietf-ccwg-bbr section 4.1.2.1.2.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Instant,
    /// Bytes sent so far, these packets included.
    end: u64,
    first_sent_at: Instant,
    delivered_at: Instant,
    delivered: u64,
    lost: u64,
    in_flight: u64,
    app_limited: bool,
}

/// The packets that one ACK frame acknowledges.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    bytes: u64,
    /// Bytes of packets that were sent after the last congestion event.
    after_recovery: u64,
    newest: Option<Instant>,
    packets: u32,
    smoothed_rtt: Option<Span>,
}

#[derive(Debug)]
struct State {
    window: ExternalWindow,
    initial_window: u64,
    departures: VecDeque<Departure>,
    batch: Batch,
    /// Bytes sent.
    sent: u64,
    /// The end of the acknowledged packet that was sent last.
    acknowledged_end: u64,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    newly_lost: u64,
    in_flight: u64,
    /// Samples are limited by the application until this much is delivered; 0: not limited.
    app_limited_until: u64,
    minimum_rtt: Option<Span>,
    established: bool,
    /// Time of the last congestion event: packets sent until then cause no further one.
    recovery_from: Option<Instant>,
    in_recovery: bool,
}

impl State {
    /// Returns the state at the last departure until then.
    fn departure(&self, at: Instant) -> Option<Departure> {
        let after = self.departures.partition_point(|each| each.at <= at);
        self.departures.get(after.checked_sub(1)?).copied()
    }

    fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
            let is_limited = self.app_limited_until > self.delivered;
            self.window.on_transmit_start(is_limited, clock::time(now));
        }
        self.sent += bytes;
        self.in_flight += bytes;
        if let Some(last) = self.departures.back_mut()
            && last.at == now
        {
            last.end = self.sent;
            last.in_flight = self.in_flight;
            return;
        }
        if self.departures.len() == DEPARTURES {
            self.departures.pop_front();
        }
        self.departures.push_back(Departure {
            at: now,
            end: self.sent,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            in_flight: self.in_flight,
            app_limited: self.app_limited_until > self.delivered,
        });
    }

    fn on_ack(&mut self, sent: Instant, bytes: u64, smoothed_rtt: Span) {
        let batch = &mut self.batch;
        batch.bytes += bytes;
        batch.packets += 1;
        batch.newest = batch.newest.max(Some(sent));
        batch.smoothed_rtt = self.established.then_some(smoothed_rtt);
        if self.recovery_from.is_none_or(|from| sent > from) {
            batch.after_recovery += bytes;
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        let prior_in_flight = self.in_flight;
        self.in_flight = in_flight;
        let batch = std::mem::take(&mut self.batch);
        let Some(newest) = batch.newest else {
            return;
        };
        let at = clock::time(now);
        let rtt = clock::span(now.saturating_duration_since(newest));
        self.minimum_rtt = Some(self.minimum_rtt.map_or(rtt, |least| least.min(rtt)));
        if !std::mem::replace(&mut self.established, true) {
            self.window.on_established(Some(rtt), at);
        }
        self.delivered += batch.bytes;
        self.delivered_at = now;
        let departure = self.departure(newest);
        if let Some(departure) = departure {
            self.acknowledged_end = self.acknowledged_end.max(departure.end);
        }
        if self.in_recovery && batch.after_recovery > 0 {
            // RFC 9002 section 7.3.2: an acknowledgment of a packet sent during recovery ends it.
            self.in_recovery = false;
            self.window.on_recovery_exit(at);
        }
        let sample = AckSample {
            now: at,
            acknowledged: batch.after_recovery,
            delivered: self.delivered,
            in_flight,
            unacknowledged: self.acknowledged_end,
            next: self.sent,
            rtt: Some(rtt),
            smoothed_rtt: batch.smoothed_rtt.or(Some(rtt)),
            minimum_rtt: self.minimum_rtt,
        };
        self.window
            .on_ack(&sample, batch.after_recovery > 0 && !app_limited);
        if app_limited {
            self.window.on_application_limited();
            self.app_limited_until = (self.delivered + in_flight).max(1);
        }
        if self.window.models_path()
            && let Some(departure) = departure
        {
            self.sample_rate(now, departure, &batch, prior_in_flight, app_limited);
        }
        self.newly_lost = 0;
        self.forget(newest);
    }

    /// Passes a rate sample to the rule.
    fn sample_rate(
        &mut self,
        now: Instant,
        departure: Departure,
        batch: &Batch,
        prior_in_flight: u64,
        app_limited: bool,
    ) {
        // The sample's first departure was this packet's (draft-ietf-ccwg-bbr section 4.1.2.3).
        let send = departure
            .at
            .saturating_duration_since(departure.first_sent_at);
        let ack = now.saturating_duration_since(departure.delivered_at);
        self.first_sent_at = departure.at;
        let interval = clock::span(send.max(ack));
        let is_reliable = interval > Span::ZERO && Some(interval) >= self.minimum_rtt;
        let segment = u64::from(self.window.window().segment);
        let limited = self.window.on_path_sample(&RateSample {
            now: clock::time(now),
            delivered: self.delivered - departure.delivered,
            interval: is_reliable.then_some(interval),
            prior_delivered: departure.delivered,
            app_limited: departure.app_limited,
            sent_in_flight: departure.in_flight,
            lost_since_sent: self.lost - departure.lost,
            acknowledged: batch.bytes,
            newly_lost: self.newly_lost,
            total_delivered: self.delivered,
            total_lost: self.lost,
            prior_in_flight,
            in_flight: self.in_flight,
            rtt: Some(clock::span(now.saturating_duration_since(departure.at))),
            delayed: batch.packets == 1 && batch.bytes < segment,
            window_limited: !app_limited,
            next_send: clock::time(now),
            phase: if self.in_recovery {
                RecoveryPhase::FastRecovery
            } else {
                RecoveryPhase::Open
            },
            selective: true,
        });
        if limited {
            self.app_limited_until = (self.delivered + self.in_flight).max(1);
        }
    }

    /// Forgets departures that no acknowledgment or loss can refer to. Packets are declared lost
    /// after at most 9/8 of a round trip (RFC 9002 section 6.1.2).
    fn forget(&mut self, newest: Instant) {
        let Some(margin) = self.minimum_rtt else {
            return;
        };
        let margin = clock::duration(margin * 4);
        while self.departures.len() > 1
            && (self.departures.front()).is_some_and(|first| first.at + margin < newest)
        {
            self.departures.pop_front();
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        let at = clock::time(now);
        let flight_size = self.in_flight;
        self.lost += lost;
        self.newly_lost += lost;
        self.in_flight = self.in_flight.saturating_sub(lost);
        if self.window.models_path()
            && lost > 0
            && let Some(departure) = self.departure(sent)
        {
            self.window.on_path_loss(&LossSample {
                now: at,
                position: departure.end.saturating_sub(lost),
                length: lost,
                sent_in_flight: departure.in_flight,
                lost_since_sent: self.lost - departure.lost,
                app_limited: departure.app_limited,
                total_delivered: self.delivered,
                selective: true,
            });
        }
        // RFC 9002 section 7.3.2: one reduction for all packets sent before recovery began.
        if self.recovery_from.is_none_or(|from| sent > from) {
            self.recovery_from = Some(now);
            self.in_recovery = true;
            let event = if lost > 0 {
                Congestion::Loss
            } else {
                Congestion::Ecn
            };
            self.window.on_congestion(event, flight_size, at);
        }
        if persistent {
            self.window
                .on_congestion(Congestion::Timeout, flight_size, at);
        }
    }
}

impl Controller for WindowRule {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.with(|state| state.on_sent(now, bytes));
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.acknowledge(sent, bytes, clock::span(rtt.get()));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.with(|state| state.on_end_acks(now, in_flight, app_limited));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.with(|state| {
            state.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.with(|state| state.window.set_segment(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        // Two packets at least (RFC 9002 section 7.2), so that quinn can send a full one.
        self.with(|state| {
            let window = state.window.window();
            (window.congestion_window).max(2 * u64::from(window.segment))
        })
        .unwrap_or(INITIAL_BYTES)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        self.with(|state| {
            let threshold = state.window.window().slow_start_threshold;
            metrics.ssthresh = (threshold < u64::MAX).then_some(threshold);
            metrics.pacing_rate = state
                .window
                .pacing_rate()
                .map(|rate| rate.bits_per_second());
        });
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.with(|state| state.initial_window)
            .unwrap_or(INITIAL_BYTES)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// State of a connection that quinn passes to congestion controllers only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor(Arc<Monitored>);

#[derive(Debug)]
struct Monitored {
    /// Bytes in flight after the last acknowledgment or transmission.
    in_flight: AtomicU64,
    /// Nothing is in flight since the last acknowledgment, until more is sent.
    acknowledged_all: AtomicBool,
    /// The application limited the sender at the last acknowledgment.
    app_limited: AtomicBool,
    persistent_congestion: AtomicU64,
    ecn_marks: AtomicU64,
}

impl Default for Monitored {
    fn default() -> Self {
        Self {
            in_flight: AtomicU64::new(0),
            acknowledged_all: AtomicBool::new(false),
            // Nothing was sent yet.
            app_limited: AtomicBool::new(true),
            persistent_congestion: AtomicU64::new(0),
            ecn_marks: AtomicU64::new(0),
        }
    }
}

impl Monitor {
    /// Returns the bytes in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.0.in_flight.load(Ordering::Relaxed)
    }

    /// Whether everything sent was acknowledged.
    pub(crate) fn acknowledged_all(&self) -> bool {
        self.0.acknowledged_all.load(Ordering::Relaxed)
    }

    /// Whether the application limited the sender at the last acknowledgment.
    pub(crate) fn app_limited(&self) -> bool {
        self.0.app_limited.load(Ordering::Relaxed)
    }

    /// Returns how many times congestion was persistent (RFC 9002 section 7.6).
    pub(crate) fn persistent_congestion(&self) -> u64 {
        self.0.persistent_congestion.load(Ordering::Relaxed)
    }

    /// Returns the number of congestion events without losses: those of ECN marks.
    pub(crate) fn ecn_marks(&self) -> u64 {
        self.0.ecn_marks.load(Ordering::Relaxed)
    }

    fn on_congestion_event(&self, persistent: bool, lost_bytes: u64) {
        let counter = if persistent {
            &self.0.persistent_congestion
        } else if lost_bytes == 0 {
            &self.0.ecn_marks
        } else {
            return;
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that data are about to be sent.
    pub(crate) fn expect_data(&self) {
        self.0.acknowledged_all.store(false, Ordering::Relaxed);
    }

    fn on_end_acks(&self, in_flight: u64, app_limited: bool) {
        self.0.in_flight.store(in_flight, Ordering::Relaxed);
        (self.0.acknowledged_all).store(in_flight == 0, Ordering::Relaxed);
        self.0.app_limited.store(app_limited, Ordering::Relaxed);
    }
}

/// A factory whose controllers report to a monitor.
pub(crate) struct MonitoredFactory {
    monitor: Monitor,
    inner: Arc<dyn ControllerFactory + Send + Sync>,
}

impl MonitoredFactory {
    pub(crate) fn of(monitor: Monitor, inner: Arc<dyn ControllerFactory + Send + Sync>) -> Self {
        Self { monitor, inner }
    }
}

impl ControllerFactory for MonitoredFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(MonitoredController {
            monitor: self.monitor.clone(),
            inner: Arc::clone(&self.inner).build(now, current_mtu),
        })
    }
}

/// A controller that reports to a monitor.
struct MonitoredController {
    monitor: Monitor,
    inner: Box<dyn Controller>,
}

impl Controller for MonitoredController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.monitor.0.in_flight.fetch_add(bytes, Ordering::Relaxed);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.monitor.on_end_acks(in_flight, app_limited);
        let largest = largest_packet_num_acked;
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let persistent = is_persistent_congestion;
        self.monitor.on_congestion_event(persistent, lost_bytes);
        (self.inner).on_congestion_event(now, sent, persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            monitor: self.monitor.clone(),
            inner: self.inner.clone_box(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_tcp::CongestionControlKind;
    use bentpipe_tcp::congestion::SavedPath;
    use bentpipe_types::{BitRate, Time};
    use proptest::prelude::*;

    use super::*;

    /// A call of a controller; times in microseconds.
    #[derive(Clone, Copy, Debug)]
    enum Call {
        Send {
            after: u64,
            bytes: u64,
        },
        Acknowledge {
            after: u64,
            age: u64,
            bytes: u64,
            in_flight: u64,
            app_limited: bool,
        },
        Lose {
            after: u64,
            age: u64,
            bytes: u64,
            persistent: bool,
        },
        ChangeMtu(u16),
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let call = prop_oneof![
            (0..5_000_000_u64, 1..20_000_u64)
                .prop_map(|(after, bytes)| Call::Send { after, bytes }),
            (
                0..5_000_000_u64,
                0..9_000_000_u64,
                0..20_000_u64,
                0..1_000_000_u64,
                any::<bool>()
            )
                .prop_map(|(after, age, bytes, in_flight, app_limited)| {
                    Call::Acknowledge {
                        after,
                        age,
                        bytes,
                        in_flight,
                        app_limited,
                    }
                }),
            (
                0..5_000_000_u64,
                0..9_000_000_u64,
                0..20_000_u64,
                any::<bool>()
            )
                .prop_map(|(after, age, bytes, persistent)| Call::Lose {
                    after,
                    age,
                    bytes,
                    persistent,
                }),
            (1_200..9_000_u16).prop_map(Call::ChangeMtu),
        ];
        prop::collection::vec(call, 1..200)
    }

    fn configs() -> Vec<Config> {
        let mut configs: Vec<Config> = [
            CongestionControlKind::Reno,
            CongestionControlKind::Westwood,
            CongestionControlKind::Westwood2001,
            CongestionControlKind::Hybla,
            CongestionControlKind::EnhancedHybla,
            CongestionControlKind::Cubic,
            CongestionControlKind::Bbr1,
            CongestionControlKind::Bbr3,
        ]
        .map(|congestion_control| Config {
            congestion_control,
            channel_capacity: BitRate::new(10_000_000),
            ..Config::default()
        })
        .into();
        let saved = SavedPath {
            window: 5_000_000,
            rtt: Span::from_millis(600),
            expires: Time::NEVER,
        };
        let mut resumed = Config::default();
        resumed.congestion_control = resumed.resuming(saved);
        configs.push(resumed);
        configs
    }

    proptest! {
        /// A window is at least two packets and does not overflow, for any sequence of calls.
        #[test]
        fn any_sequence_of_calls_leaves_a_window(calls in calls()) {
            for config in configs() {
                let start = clock::instant(Time::ZERO + Span::from_secs(10));
                let factory = Arc::new(WindowRule::factory(Arc::new(config), None, 1));
                let mut rule = factory.build(start, 1_200);
                let mut now = start;
                let micros = |number| std::time::Duration::from_micros(number);
                for call in &calls {
                    match *call {
                        Call::Send { after, bytes } => {
                            now += micros(after);
                            rule.on_sent(now, bytes, 0);
                        }
                        Call::Acknowledge { after, age, bytes, in_flight, app_limited } => {
                            now += micros(after);
                            let sent = now - micros(age);
                            if let Some(rule) = rule_of(&*rule) {
                                rule.with(|state| {
                                    state.on_ack(sent, bytes, Span::from_micros(age));
                                });
                            }
                            rule.on_end_acks(now, in_flight, app_limited, None);
                        }
                        Call::Lose { after, age, bytes, persistent } => {
                            now += micros(after);
                            rule.on_congestion_event(now, now - micros(age), persistent, bytes);
                        }
                        Call::ChangeMtu(mtu) => rule.on_mtu_update(mtu),
                    }
                    prop_assert!((2_400..=1 << 40).contains(&rule.window()), "{}", rule.window());
                }
            }
        }
    }

    fn rule_of(controller: &dyn Controller) -> Option<WindowRule> {
        let any = controller.clone_box().into_any();
        any.downcast::<WindowRule>().ok().map(|rule| *rule)
    }
}
