//! The window rules in C for Linux (`kernel/*.bpf.c`), step by step beside these.
//!
//! The C files are compiled for the host, and `kernel/host/steps.c` calls them as the kernel does.
//! Each random sequence of acknowledgments, losses, marks, timeouts and idle periods goes through
//! both versions. The difference of the windows is bounded by the resolution of the fixed point.
//!
//! `BENTPIPE_KERNEL_SEQUENCES` is the number of sequences per rule.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use bentpipe_types::{BitRate, RandomStream, Span, Time};

use super::{
    AckSample, Congestion, Controller, HyblaSettings, WestwoodSettings, Window, WindowRule,
};
use crate::{Config, SlowStartKind};

/// Sequences of each rule, unless the environment has another number.
const SEQUENCES: u64 = 1000;
/// Steps of a sequence.
const STEPS: u64 = 100;
/// Sequences that are sent to the C program at a time.
const BATCH: u64 = 500;
/// Thresholds from here on are infinite: TCP_INFINITE_SSTHRESH of Linux.
const INFINITE: u64 = 0x7fff_ffff;

/// Steps of `kernel/host/steps.c`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Kind {
    Connect,
    Settings,
    Ack,
    AckInRecovery,
    Loss,
    Timeout,
    RepeatedTimeout,
    Spurious,
    Restart,
    Set,
}

/// A step, and the simulated window after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    now_us: u64,
    operands: [u64; 4],
    window: Window,
    /// Bound of the difference of the windows, in bytes.
    bound: f64,
    /// Window and threshold before they were rounded down to segments, after a loss.
    before_rounding: Option<Window>,
    /// Bound of the difference of the pipes, in bytes.
    pipe_bound: f64,
}

/// A random connection of the simulator's, which notes its steps.
struct Connection {
    random: RandomStream,
    controller: Controller,
    segment: u64,
    reference_us: u64,
    now_us: u64,
    delivered: u64,
    base_us: u64,
    smoothed_eighths: u64,
    lowest_eighths: u64,
    minimum_us: u64,
    bound: f64,
    // Bound of the window before the last congestion event.
    bound_before: f64,
    has_fractions: bool,
    was_congested: bool,
    steps: Vec<Step>,
}

impl Connection {
    fn new(rule: WindowRule, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, "kernel rules", &rule.to_string());
        let segment = [536, 1448, 1460, 8948][random.bits() as usize % 4];
        let reference_us = [5_000, 25_000, 60_000][random.bits() as usize % 3];
        let time_constant_us = [50_000, 500_000, 3_000_000][random.bits() as usize % 3];
        let capacity_bps = 1_000_000 << (random.bits() % 12);
        let base_us = 1_000 + random.bits() % (24 * reference_us - 1_000);
        let smoothed_eighths = 8 * base_us;
        let initial = [1, 3, 10, 100][random.bits() as usize % 4];
        let threshold = match random.bits() % 4 {
            // Without a threshold, 2^24 would exceed the largest window at once.
            0 if base_us < 8 * reference_us => INFINITE,
            _ => 2 + random.bits() % (1 << (1 + random.bits() % 16)),
        };
        let config = Config {
            congestion_control: rule.into(),
            slow_start: SlowStartKind::AppropriateByteCounting {
                limit_segments: u32::MAX,
            },
            hybla: HyblaSettings {
                reference_rtt: Span::from_micros(reference_us),
                ..HyblaSettings::default()
            },
            westwood: WestwoodSettings {
                time_constant: Span::from_micros(time_constant_us),
                ..WestwoodSettings::default()
            },
            channel_capacity: BitRate::new(capacity_bps),
            ..Config::default()
        };
        let mut controller = Controller::new(
            &config.congestion_control,
            &config.congestion_settings(),
            segment as u32,
            initial * segment,
        );
        let now_us = 1_000_000 + random.bits() % 1_000_000;
        let rtt = Span::from_nanos(125 * smoothed_eighths);
        controller.on_established(Some(rtt), Time::ZERO + Span::from_micros(now_us));
        let bytes = if threshold == INFINITE {
            u64::MAX
        } else {
            threshold * segment
        };
        let established = controller.window().congestion_window;
        controller.restart(established, bytes);
        let mut connection = Self {
            random,
            controller,
            segment,
            reference_us,
            now_us,
            delivered: 0,
            base_us,
            smoothed_eighths,
            lowest_eighths: smoothed_eighths,
            minimum_us: base_us,
            bound: 2.0,
            bound_before: 2.0,
            has_fractions: matches!(rule, WindowRule::Hybla | WindowRule::EnhancedHybla),
            was_congested: false,
            steps: Vec::with_capacity(STEPS as usize + 3),
        };
        let settings = [reference_us, time_constant_us, capacity_bps / 8, 0];
        connection.note(Kind::Settings, settings, None);
        connection.note(Kind::Connect, [initial, smoothed_eighths, segment, 0], None);
        let window = established / segment;
        connection.note(Kind::Set, [window, threshold, 0, 0], None);
        connection
    }

    fn note(&mut self, kind: Kind, operands: [u64; 4], before_rounding: Option<Window>) {
        // Rates have a resolution of 2^-32 segments per microsecond; each sample rounds once, and
        // the filters of Westwood+ do so up to 64 times in effect.
        let roundings = 64 + self.steps.len() as u64;
        let resolution = roundings as f64 / 4_294_967_296.0 * self.segment as f64;
        self.steps.push(Step {
            kind,
            now_us: self.now_us,
            operands,
            window: *self.controller.window(),
            bound: self.bound,
            before_rounding,
            pipe_bound: resolution * self.minimum_us as f64 + 2.0,
        });
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_micros(self.now_us)
    }

    /// Takes one random step.
    fn step(&mut self) {
        let choice = self.random.bits() % 100;
        self.now_us += match self.random.bits() % 40 {
            0 => self.random.bits() % 20_000_000,
            1..10 => self.random.bits() % 500_000,
            _ => self.random.bits() % 5_000,
        };
        match choice {
            0..80 => self.acknowledge(false),
            80..85 => self.acknowledge(true),
            85..88 => self.congestion(Congestion::Loss),
            88..90 => self.congestion(Congestion::Ecn),
            90..92 => self.congestion(Congestion::Timeout),
            92 => {
                self.controller.on_repeated_timeout(None);
                self.set_bound();
                self.note(Kind::RepeatedTimeout, [0; 4], None);
            }
            93 if self.was_congested => {
                self.controller.on_spurious();
                // The loss has dropped less than a byte of credit here, and nothing in C.
                self.bound = self.bound.max(self.bound_before) + 1.0;
                self.note(Kind::Spurious, [0; 4], None);
            }
            94..97 => self.restart(),
            _ => self.controller.on_application_limited(),
        }
    }

    fn acknowledge(&mut self, in_recovery: bool) {
        let segments = match self.random.bits() % 20 {
            0 if in_recovery => 0,
            0 => 1 + self.random.bits() % 64,
            1..8 => 2,
            _ => 1,
        };
        let rtt_us = self.base_us + self.random.bits() % (1 + self.base_us / 8);
        if self.random.bits().is_multiple_of(50) {
            self.base_us = (self.base_us * 15 / 16).max(500);
        }
        self.smoothed_eighths = self.smoothed_eighths - self.smoothed_eighths / 8 + rtt_us;
        let limited = !self.random.bits().is_multiple_of(10);
        self.minimum_us = self.minimum_us.min(rtt_us);
        let acknowledged = segments * self.segment;
        self.delivered += acknowledged;
        let sample = AckSample {
            delivered: self.delivered,
            rtt: Some(Span::from_micros(rtt_us)),
            smoothed_rtt: Some(Span::from_nanos(125 * self.smoothed_eighths)),
            minimum_rtt: Some(Span::from_micros(self.minimum_us)),
            ..AckSample::at(self.now(), acknowledged)
        };
        if self.controller.sees_every_ack() {
            self.controller.on_delivery(&sample);
        }
        if !in_recovery && limited {
            let before = self.controller.window().congestion_window;
            self.controller.on_ack(&sample);
            self.widen_bound(before);
        } else if !in_recovery {
            self.controller.on_application_limited();
        }
        let kind = if in_recovery {
            Kind::AckInRecovery
        } else {
            Kind::Ack
        };
        let operands = [segments, self.smoothed_eighths, rtt_us, u64::from(limited)];
        self.note(kind, operands, None);
    }

    /// Widens the bound by what the fixed point may add with one acknowledgment.
    fn widen_bound(&mut self, before: u64) {
        if !self.has_fractions {
            return;
        }
        self.lowest_eighths = self.lowest_eighths.min(self.smoothed_eighths);
        let rho = (self.lowest_eighths as f64 / 8.0 / self.reference_us as f64).max(1.0);
        let segment = self.segment as f64;
        let growth = (self.controller.window().congestion_window - before) as f64;
        let segments = before as f64 / segment;
        // rho and W have a resolution of 2^-16, the growth has one of 2^-32 segments.
        let added = growth * 4.0 / 65536.0 + segment / 65536.0;
        // A difference of the windows changes the growth, which is rho^2 / W.
        let amplified = (growth / before as f64).max(rho * rho / segments).max(1.0);
        self.bound = self.bound * amplified + added;
    }

    /// The window is a whole number of segments.
    fn set_bound(&mut self) {
        self.bound = 2.0;
    }

    fn congestion(&mut self, event: Congestion) {
        let now = self.now();
        self.was_congested = true;
        // The bound is that of the window before.
        self.bound_before = self.bound;
        let flight = self.controller.window().congestion_window;
        self.controller.on_congestion(event, flight, now);
        let before_rounding = *self.controller.window();
        self.controller.round_down_to_segments();
        self.controller.on_recovery_exit(None, now);
        let kind = match event {
            Congestion::Timeout => Kind::Timeout,
            Congestion::Loss | Congestion::Ecn => Kind::Loss,
        };
        self.note(kind, [0; 4], Some(before_rounding));
        if let Some(step) = self.steps.last_mut() {
            step.bound = self.bound_before;
        }
        self.set_bound();
    }

    fn restart(&mut self) {
        let window = self.controller.window();
        let halved = (window.congestion_window / self.segment / 2).max(1);
        let threshold = window.slow_start_threshold;
        self.controller.restart(halved * self.segment, threshold);
        let threshold = if threshold == u64::MAX {
            INFINITE
        } else {
            threshold / self.segment
        };
        self.set_bound();
        self.note(Kind::Restart, [halved, threshold, 0, 0], None);
    }
}

/// Compiles a rule for this machine, and returns the program.
fn compile(rule: &str, folder: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
    let program = folder.join(format!("steps-{rule}-{}", std::process::id()));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&compiler)
        .args([
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Werror",
            "-Wno-unknown-pragmas",
        ])
        .arg(format!("-DRULE_FILE=\"../{rule}.bpf.c\""))
        .arg("-o")
        .arg(&program)
        .arg(sources.join("host/steps.c"))
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{rule}: {said}");
    program
}

/// Sends steps to the C program; returns window, fraction and threshold after each.
fn answers(program: &Path, steps: &[Step]) -> Vec<[u64; 3]> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the compiled rule runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut bytes = Vec::with_capacity(steps.len() * 48);
    for step in steps {
        for word in [step.kind as u64, step.now_us].iter().chain(&step.operands) {
            bytes.extend(word.to_ne_bytes());
        }
    }
    let writer = thread::spawn(move || input.write_all(&bytes));
    let mut output = Vec::new();
    let mut pipe = child.stdout.take().expect("a pipe");
    pipe.read_to_end(&mut output).expect("its answers");
    writer.join().expect("a writer").expect("it reads all");
    assert!(child.wait().expect("an exit status").success());
    let words: Vec<u64> = output
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
        .collect();
    assert_eq!(words.len(), 3 * steps.len());
    words
        .chunks_exact(3)
        .map(|three| [three[0], three[1], three[2]])
        .collect()
}

/// Whether a value in segments is what another version rounded down, which lies within `bound`
/// bytes of `exact`.
fn rounds_to(value: u64, exact: u64, segment: u64, bound: f64) -> bool {
    let least = (exact as f64 - bound).max(0.0) / segment as f64;
    let most = (exact as f64 + bound) / segment as f64;
    (least.floor() as u64..=most.floor() as u64).contains(&value)
}

/// Compares both versions after one step. Returns false if they have rounded to different segments:
/// the rest of the sequence is then another one.
fn compare(step: &Step, answer: [u64; 3], context: &str) -> bool {
    let segment = u64::from(step.window.segment);
    let [window, fraction, threshold] = answer;
    let in_segments = |bytes: u64| {
        if bytes == u64::MAX {
            INFINITE
        } else {
            bytes / segment
        }
    };
    if let Some(exact) = step.before_rounding {
        let bound = step.bound + step.pipe_bound;
        let least = |bytes: u64| bytes.max(segment);
        assert!(
            rounds_to(window, least(exact.congestion_window), segment, bound)
                && rounds_to(threshold, exact.slow_start_threshold, segment, bound),
            "{context}: {window} {threshold} in C, {exact:?} before rounding"
        );
        return window == in_segments(step.window.congestion_window)
            && threshold == in_segments(step.window.slow_start_threshold);
    }
    let bytes = (window as f64 + fraction as f64 / 4_294_967_296.0) * segment as f64;
    let difference = (bytes - step.window.congestion_window as f64).abs();
    assert!(
        difference <= step.bound,
        "{context}: {bytes} in C, {step:?} here"
    );
    let expected = in_segments(step.window.slow_start_threshold);
    assert_eq!(threshold, expected, "{context}: threshold in C");
    true
}

fn compare_sequences(rule: WindowRule) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target");
    fs::create_dir_all(&folder).expect("a folder for the program");
    let program = compile(&rule.to_string().replace('-', "_"), &folder);
    let sequences = env::var("BENTPIPE_KERNEL_SEQUENCES").map_or(SEQUENCES, |text| {
        text.parse().expect("a number of sequences")
    });
    let mut compared = 0;
    for first in (0..sequences).step_by(BATCH as usize) {
        let seeds = first..sequences.min(first + BATCH);
        let connections: Vec<_> = seeds
            .map(|seed| {
                let mut connection = Connection::new(rule, seed);
                for _ in 0..STEPS {
                    connection.step();
                }
                (seed, connection.steps)
            })
            .collect();
        let steps: Vec<Step> = connections
            .iter()
            .flat_map(|(_, steps)| steps)
            .copied()
            .collect();
        let mut answers = answers(&program, &steps).into_iter();
        for (seed, steps) in &connections {
            let mut answers = answers.by_ref().take(steps.len()).enumerate();
            // The first two steps precede the connection.
            for (n, answer) in answers.by_ref().skip(2) {
                let step = &steps[n];
                let context = format!("{rule}, seed {seed}, step {n}, {:?}", step.kind);
                compared += 1;
                if !compare(step, answer, &context) {
                    break;
                }
            }
            answers.for_each(drop);
        }
    }
    fs::remove_file(program).expect("the program is removed");
    // Nearly all sequences are compared to their end.
    assert!(compared > sequences * STEPS * 8 / 10, "{compared} steps");
}

#[test]
fn hybla_in_c_takes_the_same_steps() {
    compare_sequences(WindowRule::Hybla);
}

#[test]
fn enhanced_hybla_in_c_takes_the_same_steps() {
    compare_sequences(WindowRule::EnhancedHybla);
}

#[test]
fn westwood_in_c_takes_the_same_steps() {
    compare_sequences(WindowRule::Westwood);
}

#[test]
fn westwood_2001_in_c_takes_the_same_steps() {
    compare_sequences(WindowRule::Westwood2001);
}
