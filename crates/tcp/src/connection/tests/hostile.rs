//! Property tests with arbitrary networks and settings: streams are exact, both ends close, time
//! and memory are bounded.

use bentpipe_types::{BitRate, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::fast::{TAKEN_PATHS, TakenPath};
use crate::congestion::{AfterTimeout, HyblaSettings, InitialThreshold, WindowRule};
use crate::testing::{A, B, Hostility, Pair};
use crate::{
    AvoidanceKind, Config, CongestionControlKind, Events, IdleRestart, KeepAlive, NewRenoKind,
    PacingKind, PathMtuDiscovery, QuickAcks, RecoveryKind, RtoRule, SlowStartKind, State,
};

/// How an application writes.
#[derive(Clone, Copy, Debug)]
enum WriteMode {
    /// As a stream.
    StreamState,
    /// Each write is a record (MSG_EOR).
    Records,
    /// Three of four writes announce more data (MSG_MORE).
    More,
    /// All of these in turn.
    Mixed,
}

impl WriteMode {
    /// Writes `chunk` bytes, after `written` bytes were written.
    fn write(self, pair: &mut Pair, side: usize, written: u64, chunk: u64) -> u64 {
        pair.with(side, |tcp, cx| match (self, written % 4) {
            (Self::Records, _) | (Self::Mixed, 1) => tcp.write_record(chunk, cx),
            (Self::More, 1..) | (Self::Mixed, 2) => tcp.write_more(chunk, cx),
            _ => tcp.write(chunk, cx),
        })
    }
}

/// Behaviour of one end's application.
#[derive(Clone, Debug)]
struct Application {
    to_write: u64,
    chunk: u64,
    manner: WriteMode,
    sink: bool,
    read_at_most: u64,
    /// Period without reading, in milliseconds.
    pause: (u64, u64),
    /// It closes only after the peer has closed.
    closes_last: bool,
}

fn application() -> impl Strategy<Value = Application> {
    (
        0_u64..200_000,
        prop_oneof![2 => 1_u64..300, 1 => 300_u64..9_000, 2 => Just(1_000_000)],
        any::<bool>(),
        50_u64..20_000,
        (0_u64..2_000, 0_u64..20_000),
        prop_oneof![
            3 => Just(WriteMode::StreamState),
            1 => Just(WriteMode::Records),
            1 => Just(WriteMode::More),
            1 => Just(WriteMode::Mixed),
        ],
    )
        .prop_map(
            |(to_write, chunk, sink, read_at_most, pause, manner)| Application {
                to_write: if chunk < 1000 {
                    to_write / 20
                } else {
                    to_write
                },
                chunk,
                manner,
                sink,
                read_at_most,
                pause: (pause.0, pause.0 + pause.1),
                closes_last: false,
            },
        )
}

fn hybla(estimate: bool) -> HyblaSettings {
    HyblaSettings {
        initial_threshold: if estimate {
            InitialThreshold::BandwidthEstimate
        } else {
            InitialThreshold::Configured
        },
        after_timeout: AfterTimeout::Rho,
        ..HyblaSettings::default()
    }
}

/// A window rule with its settings, and pacing.
fn rule_and_pacing() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(WindowRule::ALL),
        any::<bool>().prop_map(hybla),
        1_u64..1_000_000_000,
        prop_oneof![
            3 => Just(PacingKind::AsRule),
            1 => Just(PacingKind::Off),
            1 => Just(PacingKind::On),
            1 => (1_u64..10_000_000).prop_map(|rate| {
                BitRate::new(rate).map_or(PacingKind::On, PacingKind::AtMost)
            }),
        ],
    )
        .prop_map(|(rule, hybla, rate, pacing)| Config {
            congestion_control: rule.into(),
            hybla,
            channel_capacity: BitRate::new(rate),
            pacing,
            ..Config::default()
        })
}

fn discovery() -> impl Strategy<Value = PathMtuDiscovery> {
    prop_oneof![
        Just(PathMtuDiscovery::Icmp),
        Just(PathMtuDiscovery::BlackHole),
        Just(PathMtuDiscovery::Probe),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let sizes = (
        prop_oneof![Just(1448_u16), 1_u16..3000],
        1_u32..20,
        1_u64..100_000,
        prop_oneof![200_u64..3000, 200_u64..200_000],
    );
    let recovery = prop_oneof![
        1 => Just(RecoveryKind::Reno),
        1 => Just(RecoveryKind::NewReno),
        4 => Just(RecoveryKind::Sack),
        1 => Just(RecoveryKind::Fack),
    ];
    let switches = (any::<[bool; 9]>(), any::<[bool; 5]>(), recovery);
    let delayed = prop_oneof![Just(None), (0_u64..500).prop_map(Some)];
    let silence = prop_oneof![Just(None), (1_u64..20).prop_map(Some)];
    let path = (silence, discovery());
    (
        sizes,
        switches,
        (delayed, 0_u32..4),
        path,
        rule_and_pacing(),
    )
        .prop_map(
            |((mss, window, send, receive), (on, with, recovery), acks, path, rule)| {
                let (delayed, quick) = acks;
                Config {
                    keep_alive: path.0.map(|idle| KeepAlive {
                        idle: Span::from_secs(idle),
                        interval: Span::from_secs(1),
                        probes: 40,
                    }),
                    path_mtu_discovery: path.1,
                    // One byte per segment would only make the test slow.
                    mss: mss.max(40),
                    initial_window: window,
                    initial_slow_start_threshold: on[0].then_some(send),
                    send_buffer: send.max(2000),
                    receive_buffer: receive,
                    window_scaling: on[1],
                    timestamps: on[2],
                    sack: on[3],
                    delayed_ack: delayed.map(Span::from_millis),
                    quick_acks: QuickAcks::First(quick),
                    nagle: on[4],
                    limited_transmit: on[5],
                    newreno: NewRenoKind::ALL[usize::from(!on[6])],
                    window_validation: on[7],
                    rto_rule: if on[8] {
                        RtoRule::Linux
                    } else {
                        RtoRule::Rfc6298
                    },
                    recovery,
                    proportional_rate_reduction: with[0],
                    rack: with[1],
                    tail_loss_probe: with[2],
                    f_rto: with[3],
                    undo: with[4],
                    slow_start: if on[8] {
                        SlowStartKind::Standard
                    } else if on[7] {
                        SlowStartKind::HyStart { limit_segments: 8 }
                    } else {
                        SlowStartKind::AppropriateByteCounting { limit_segments: 2 }
                    },
                    avoidance: if on[0] {
                        AvoidanceKind::PerAcknowledgment
                    } else {
                        AvoidanceKind::ByteCounting
                    },
                    idle_restart: if on[1] {
                        IdleRestart::Decay
                    } else {
                        IdleRestart::RestartWindow
                    },
                    maximum_syn_retransmissions: 30,
                    maximum_retransmissions: 30,
                    maximum_rto: Span::from_secs(8),
                    time_wait: Span::from_secs(120),
                    ..rule
                }
            },
        )
}

fn network(lies: bool) -> impl Strategy<Value = Hostility> {
    (
        0_u64..300,
        prop_oneof![Just(0), 0_u64..100],
        prop_oneof![Just(0.0), 0.0..0.4],
        1.0..5.0,
        prop_oneof![Just(0.0), 0.0..0.3],
        prop_oneof![Just(0.0), 0.0..0.3],
        1_u64..40,
        prop_oneof![3 => Just((u32::MAX, true)), 1 => (100_u32..1600, any::<bool>())],
    )
        .prop_map(
            move |(delay, jitter, loss, burst, duplication, corruption, until, (mtu, speaks))| {
                Hostility {
                    mtu,
                    speaks,
                    delay: Span::from_millis(delay),
                    jitter: Span::from_millis(jitter),
                    loss,
                    burst,
                    duplication,
                    corruption: if lies { corruption + 0.02 } else { corruption },
                    lies,
                    until: Time::ZERO + Span::from_secs(until),
                }
            },
        )
}

/// Lets both applications write, read and close.
fn act(pair: &mut Pair, applications: &[Application; 2], written: &mut [u64; 2]) {
    let now = pair.world.now.since(Time::ZERO).as_millis_f64() as u64;
    for side in [A, B] {
        let application = &applications[side];
        let Some(tcp) = &pair.ends[side] else {
            continue;
        };
        let left = application.to_write - written[side];
        if left > 0 && tcp.writable() > 0 {
            let chunk = left.min(application.chunk);
            let manner = application.manner;
            written[side] += manner.write(pair, side, written[side], chunk);
            if written[side] == application.to_write && !application.closes_last {
                pair.with(side, |tcp, cx| tcp.close(cx));
            }
        } else if left == 0
            && application.to_write == 0
            && tcp.state() == State::Established
            && !application.closes_last
        {
            pair.with(side, |tcp, cx| tcp.close(cx));
        } else if left == 0 && tcp.state() == State::CloseWait {
            pair.with(side, |tcp, cx| tcp.close(cx));
        }
        let pause = (application.pause.0..application.pause.1).contains(&now);
        if !application.sink && !pause {
            pair.with(side, |tcp, cx| tcp.read(application.read_at_most, cx));
        }
    }
}

fn run(
    configs: [Config; 2],
    applications: [Application; 2],
    network: Hostility,
    seed: u64,
    both: bool,
) -> Pair {
    let mut pair = Pair::new(&configs[0], &configs[1], network, seed);
    pair.log = Some(Vec::new());
    pair.sink = [applications[0].sink, applications[1].sink];
    let sink = applications[0].sink;
    pair.with(A, |tcp, _| tcp.set_sink(sink));
    if both {
        pair.connect(B);
    }
    let mut written = [0; 2];
    // More than two hours: with 250 timeouts of up to 8 s, a window of 200 bytes has taken half an
    // hour.
    for tick in 0_u64..160_000 {
        let end = Time::ZERO + Span::from_millis(50 * tick);
        while pair.step(end) {
            act(&mut pair, &applications, &mut written);
            assert!(pair.steps < 2_000_000, "too much work: {:?}", pair.a());
            assert!(pair.world.packets.held() < 100_000, "too much memory");
        }
        pair.run_until(end);
        act(&mut pair, &applications, &mut written);
        let closed = |side: usize| {
            pair.ends[side]
                .as_ref()
                .is_some_and(|tcp| tcp.state() == State::Closed && tcp.readable() == 0)
        };
        if closed(A) && closed(B) {
            break;
        }
    }
    pair
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    /// With loss, bursts, reordering, duplication, false headers, small and closed windows, and
    /// applications that pause: written data is delivered in order and once, and both ends close.
    #[test]
    fn streams_are_exact(
        configs in [config(), config()],
        applications in [application(), application()],
        network in network(false),
        seed in any::<u64>(),
        both in prop_oneof![4 => Just(false), 1 => Just(true)],
    ) {
        let mut applications = applications;
        let mut network = network;
        // An end with only ICMP-based discovery cannot work in a black hole.
        network.speaks |= configs.iter().any(|c| c.path_mtu_discovery == PathMtuDiscovery::Icmp);
        for side in [A, B] {
            // A small window takes a round trip each time.
            let limit = 300 * configs[1 - side].receive_buffer;
            applications[side].to_write = applications[side].to_write.min(limit);
        }
        let pair = run(configs, applications.clone(), network, seed, both);
        for side in [A, B] {
            let (tcp, peer) = (pair.ends[side].as_ref().unwrap(), pair.ends[1 - side].as_ref().unwrap());
            let context = || format!("side {side}, {:?} at {:?}\n{tcp:?}\n{peer:?}", tcp.state(), pair.world.now);
            prop_assert!(!pair.events[side].has(Events::RESET | Events::TIMED_OUT), "{}", context());
            prop_assert_eq!(tcp.state(), State::Closed, "{}", context());
            prop_assert_eq!(tcp.written_offset(), applications[side].to_write, "{}", context());
            prop_assert_eq!(peer.statistics().bytes_delivered, applications[side].to_write, "{}", context());
            prop_assert_eq!(peer.delivered_offset(), applications[side].to_write);
            prop_assert_eq!(tcp.statistics().bytes_acknowledged, applications[side].to_write);
            prop_assert_eq!(peer.statistics().payload_mismatches, 0, "{}", context());
        }
    }

    /// On a path with false acknowledgments, resets, FINs and timestamps, no end panics, runs for
    /// ever or uses unbounded memory.
    #[test]
    fn forged_segments_cause_no_panic_endless_loop_or_unbounded_memory(
        configs in [config(), config()],
        applications in [application(), application()],
        network in network(true),
        seed in any::<u64>(),
    ) {
        let pair = run(configs, applications.clone(), network, seed, false);
        for tcp in pair.ends.iter().flatten() {
            prop_assert!(tcp.in_flight() <= 1 << 40);
            prop_assert!(tcp.acknowledged_offset() <= tcp.sent_offset());
            prop_assert!(tcp.sent_offset() <= tcp.written_offset());
        }
    }
}

/// All packets of a case, and the counters of both ends.
fn everything(mut pair: Pair) -> (Vec<(usize, Time, bentpipe_types::Packet)>, String) {
    let counted = [A, B].map(|side| pair.ends[side].as_ref().map(|tcp| tcp.statistics().clone()));
    (pair.log.take().unwrap_or_default(), format!("{counted:?}"))
}

/// Both ends, the network, the seed, whether both open, and further switches.
type Case = (
    [Config; 2],
    [Application; 2],
    Hostility,
    u64,
    bool,
    [bool; 3],
);

/// The fast paths have the same result as the general path: with and without them, a case is equal
/// in each packet and counter. Each of them is taken.
#[test]
fn fast_paths_equal_the_general_path() {
    let cases = (
        [config(), config()],
        [application(), application()],
        prop_oneof![network(false), network(true)],
        any::<u64>(),
        prop_oneof![4 => Just(false), 1 => Just(true)],
        any::<[bool; 3]>(),
    );
    let settings = ProptestConfig {
        cases: ProptestConfig::default().cases.max(300),
        max_shrink_iters: 300,
        source_file: Some(file!()),
        ..ProptestConfig::default()
    };
    let taken_before = TAKEN_PATHS.get();
    let compare = |case: Case| {
        let (configs, mut applications, network, seed, both, [bare, sized, closes_last]) = case;
        // An end that has closed cannot take the fast path for data.
        applications[B].closes_last = closes_last;
        let [with, without] = [true, false].map(|header_prediction| {
            let configs = configs.clone().map(|mut config| {
                config.header_prediction = header_prediction;
                // Most often, nothing prevents the fast paths.
                if bare {
                    config.congestion_control = CongestionControlKind::Cubic;
                    config.pacing = PacingKind::Off;
                    config.path_mtu_discovery = PathMtuDiscovery::Off;
                }
                if !sized {
                    config.send_sizes = None;
                    config.receive_sizes = None;
                }
                config
            });
            let (applications, network) = (applications.clone(), network.clone());
            everything(run(configs, applications, network, seed, both))
        });
        // The first difference is more useful than the number of packets.
        for (number, (one, other)) in with.0.iter().zip(&without.0).enumerate() {
            prop_assert_eq!(one, other, "packet {}", number);
        }
        prop_assert_eq!(with.0.len(), without.0.len());
        prop_assert_eq!(with.1, without.1);
        Ok(())
    };
    // By chance, a case may not occur, but not five times in a row. (`Refill` requires a socket,
    // and is tested there.)
    let ways = TakenPath::Refill as usize;
    let never = || (0..ways).find(|way| TAKEN_PATHS.get()[*way] == taken_before[*way]);
    for _ in 0..5 {
        if let Err(failure) = TestRunner::new(settings.clone()).run(&cases, compare) {
            panic!("{failure}");
        }
        if never().is_none() {
            return;
        }
    }
    panic!("fast path {:?} was never taken", never());
}
