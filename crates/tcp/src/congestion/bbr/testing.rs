//! Simulated path and random operations for tests of BBR rules.

use std::collections::VecDeque;

use bentpipe_types::{Bytes, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::Bandwidth;
use crate::Config;
use crate::congestion::controller::MAXIMUM_WINDOW;
use crate::congestion::{Congestion, CongestionControl, CongestionControlKind, Controller, Window};
use crate::rate_sample::{DeliveryRate, LossSample, RateSample, RecoveryPhase, SampleContext};

pub(super) const RTT: Option<Span> = Some(Span::from_millis(100));

const SEGMENT: u64 = 1000;

/// A bottleneck with a queue. Lost segments are not retransmitted.
pub(super) struct Path {
    pub(super) bandwidth: Bandwidth,
    pub(super) rtt: Span,
    /// Rate of a policer (token bucket), if any.
    pub(super) policer_rate: Option<Bandwidth>,
    /// Capacity of the queue in segments.
    pub(super) queue: u64,
    /// Every n-th segment is lost; 0 means none.
    pub(super) loss_interval: u64,
    pub(super) now: Time,
    rate: DeliveryRate,
    bottleneck_free_at: Time,
    next_send: Time,
    sent: u64,
    in_flight: u64,
    tokens: f64,
    tokens_updated_at: Time,
    lost: u64,
    // Arrival time of the acknowledgment, transmission time, end of the segment, losses before it.
    acknowledgments: VecDeque<(Time, Time, u64, u64)>,
}

impl Path {
    pub(super) fn new(bandwidth: Bandwidth, rtt: Span) -> Self {
        Self {
            bandwidth,
            rtt,
            policer_rate: None,
            queue: u64::MAX,
            loss_interval: 0,
            now: Time::ZERO,
            rate: DeliveryRate::default(),
            bottleneck_free_at: Time::ZERO,
            next_send: Time::ZERO,
            sent: 0,
            in_flight: 0,
            tokens: 20_000.0,
            tokens_updated_at: Time::ZERO,
            lost: 0,
            acknowledgments: VecDeque::new(),
        }
    }

    /// Returns the segments in the queue.
    pub(super) fn queued_segments(&self) -> u64 {
        (self.bottleneck_free_at.since(self.now).as_secs_f64() * self.bandwidth as f64) as u64
            / SEGMENT
    }

    /// Simulates 1/`share` of a round trip.
    pub(super) fn simulate_share(
        &mut self,
        rule: &mut impl CongestionControl,
        window: &mut Window,
        share: u64,
    ) {
        let end = self.now + self.rtt / share;
        loop {
            let arrival = self.acknowledgments.front().map(|ack| ack.0);
            let room = self.in_flight + SEGMENT <= window.congestion_window;
            let departure = room.then_some(self.next_send.max(self.now));
            let Some(next) = [arrival, departure].into_iter().flatten().min() else {
                break;
            };
            if next > end {
                break;
            }
            self.now = next;
            if arrival == Some(next) {
                self.receive_acknowledgment(rule, window);
            } else {
                self.send_segment(rule, window);
            }
        }
        self.now = end;
    }

    fn send_segment(&mut self, rule: &mut impl CongestionControl, window: &mut Window) {
        if let Some(rate) = rule.pacing_rate(window) {
            self.next_send = self.now + rate.transmission_time(Bytes::new(SEGMENT));
        }
        let idle = self.in_flight == 0;
        self.in_flight += SEGMENT;
        let (start, end) = (self.sent * SEGMENT, (self.sent + 1) * SEGMENT);
        self.rate
            .on_sent(start, end, self.in_flight, idle, self.now);
        self.sent += 1;
        let is_lost = self.loss_interval > 0 && self.sent.is_multiple_of(self.loss_interval);
        if is_lost || self.is_policed() || self.queued_segments() >= self.queue {
            self.lost += 1;
            return;
        }
        let service = Span::from_secs_f64(SEGMENT as f64 / self.bandwidth as f64);
        self.bottleneck_free_at = self.bottleneck_free_at.max(self.now) + service;
        let lost = std::mem::take(&mut self.lost);
        self.acknowledgments.push_back((
            self.bottleneck_free_at + self.rtt.saturating_sub(service),
            self.now,
            end,
            lost,
        ));
    }

    fn is_policed(&mut self) -> bool {
        let Some(rate) = self.policer_rate else {
            return false;
        };
        let earned = rate as f64 * self.now.since(self.tokens_updated_at).as_secs_f64();
        self.tokens = (self.tokens + earned).min(20_000.0);
        self.tokens_updated_at = self.now;
        if self.tokens < SEGMENT as f64 {
            return true;
        }
        self.tokens -= SEGMENT as f64;
        false
    }

    fn receive_acknowledgment(&mut self, rule: &mut impl CongestionControl, window: &mut Window) {
        let Some((_, sent, end, lost)) = self.acknowledgments.pop_front() else {
            return;
        };
        self.rate.begin(self.in_flight);
        for n in 0..lost {
            let position = end - (1 + lost - n) * SEGMENT;
            let loss = self.rate.on_lost(position, SEGMENT, true, self.now);
            rule.on_path_loss(window, &loss);
        }
        self.rate.on_acknowledged(end, SEGMENT, self.now);
        self.in_flight -= (1 + lost) * SEGMENT;
        let sample = self.rate.sample(&SampleContext {
            now: self.now,
            in_flight: self.in_flight,
            rtt: Some(self.now.since(sent)),
            window_limited: self.in_flight + 2 * SEGMENT > window.congestion_window,
            next_send: self.next_send,
            phase: RecoveryPhase::Open,
            selective: true,
            segment: SEGMENT as u32,
        });
        rule.on_path_sample(window, &sample);
        if rule.limits_samples() {
            self.rate.mark_app_limited(self.in_flight);
        }
    }
}

/// A call of the rule.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Delivery(Box<RateSample>, u64),
    Loss(u64, u64, u64, bool),
    Congestion(Congestion, u64),
    RepeatedTimeout,
    Exit,
    Spurious,
    TransmitStart(bool),
}

impl Operation {
    pub(super) fn any() -> impl Strategy<Value = Self> {
        let amount = || prop_oneof![Just(0), 1_u64..100_000, 0_u64..10_000_000_000];
        let span = || {
            prop_oneof![
                Just(None),
                (1_u64..2_000_000_000).prop_map(|ns| Some(Span::from_nanos(ns)))
            ]
        };
        let amounts = proptest::collection::vec(amount(), 6);
        let delivery = (
            amounts,
            span(),
            span(),
            any::<[bool; 4]>(),
            0_u64..15_000_000_000,
            0_u64..3,
        )
            .prop_map(|(amounts, interval, rtt, flags, later, phase)| {
                let sample = RateSample {
                    now: Time::ZERO,
                    delivered: amounts[0],
                    interval,
                    prior_delivered: 0,
                    app_limited: flags[0],
                    sent_in_flight: amounts[1],
                    lost_since_sent: amounts[2],
                    acknowledged: amounts[3],
                    newly_lost: if flags[3] { amounts[2] } else { 0 },
                    total_delivered: 0,
                    total_lost: 0,
                    prior_in_flight: amounts[4],
                    in_flight: amounts[5],
                    rtt,
                    delayed: flags[1],
                    window_limited: flags[2],
                    next_send: Time::ZERO,
                    phase: [
                        RecoveryPhase::Open,
                        RecoveryPhase::FastRecovery,
                        RecoveryPhase::AfterTimeout,
                    ][phase as usize],
                    selective: flags[2],
                };
                Self::Delivery(Box::new(sample), later)
            });
        prop_oneof![
            8 => delivery,
            4 => (amount(), amount(), amount(), any::<bool>())
                .prop_map(|(length, sent, since, flag)| Self::Loss(length, sent, since, flag)),
            1 => (0_u64..100_000).prop_map(|n| Self::Congestion(Congestion::Loss, n)),
            1 => (0_u64..100_000).prop_map(|n| Self::Congestion(Congestion::Timeout, n)),
            1 => Just(Self::RepeatedTimeout),
            1 => Just(Self::Exit),
            1 => Just(Self::Spurious),
            1 => any::<bool>().prop_map(Self::TransmitStart),
        ]
    }
}

/// Calls the rule with `operations` and checks the invariants.
pub(super) fn run_operations(
    kind: CongestionControlKind,
    operations: &[Operation],
) -> Result<(), TestCaseError> {
    let config = Config {
        congestion_control: kind,
        ..Config::default()
    };
    let mut controller = Controller::new(
        &config.congestion_control,
        &config.congestion_settings(),
        SEGMENT as u32,
        10 * SEGMENT,
    );
    controller.seed(1);
    controller.on_established(RTT, Time::ZERO);
    let mut now = Time::ZERO;
    let (mut delivered, mut lost) = (0, 0);
    for operation in operations {
        match operation {
            Operation::Delivery(sample, later) => {
                now += Span::from_nanos(*later);
                let prior_delivered = delivered;
                delivered += sample.acknowledged;
                lost += sample.newly_lost;
                controller.on_path_sample(&RateSample {
                    now,
                    prior_delivered,
                    total_delivered: delivered,
                    total_lost: lost,
                    next_send: now,
                    ..**sample
                });
            }
            Operation::Loss(length, sent_in_flight, since, flag) => {
                lost += length;
                controller.on_path_loss(&LossSample {
                    now,
                    position: delivered,
                    length: *length,
                    sent_in_flight: *sent_in_flight,
                    lost_since_sent: length + since,
                    app_limited: *flag,
                    total_delivered: delivered,
                    selective: !flag,
                });
            }
            Operation::Congestion(event, flight_size) => {
                controller.on_congestion(*event, *flight_size, now);
            }
            Operation::RepeatedTimeout => controller.on_repeated_timeout(None),
            Operation::Exit => controller.on_recovery_exit(Some(SEGMENT), now),
            Operation::Spurious => controller.on_spurious(),
            Operation::TransmitStart(limited) => controller.on_transmit_start(*limited, now),
        }
        let window = controller.window().congestion_window;
        prop_assert!((SEGMENT..=MAXIMUM_WINDOW).contains(&window), "{window}");
        prop_assert!(controller.pacing_rate().is_some());
    }
    Ok(())
}
