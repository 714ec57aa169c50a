//! BBR in scenario files: the behaviour that its authors publish, in the recorded series.

use bentpipe_scenario::RunOutput;

use crate::runs::{run_text, series};

const SEGMENT: f64 = 1448.0;

/// Runs a bulk transfer over one link.
fn run(rate_mbps: u32, delay_ms: u32, seconds: u32, overrides: &[(&str, &str)]) -> RunOutput {
    let text = format!(
        r#"
        name = "bbr"
        duration = "{seconds} s"
        hosts.server.tcp = {{ congestion_control = "bbr", send_buffer = "64 MiB" }}
        hosts.client.tcp = {{ receive_buffer = "64 MiB" }}
        flows.download = {{ from = "server", to = "client", app = {{ kind = "bulk" }} }}
        [links.path]
        between = ["server", "client"]
        rate = "{rate_mbps} Mbit/s"
        delay = "{delay_ms} ms"
        queue = {{ kind = "drop-tail", limit = "50000 packets" }}
        [probes]
        series = [
            "download.in_flight", "download.pacing_rate", "download.goodput", "path.forward.queue",
            "download.congestion_window",
        ]
        interval = "10 ms"
        "#
    );
    run_text(&text, overrides)
}

/// Returns the start times of ProbeRTT, in which at most four segments are in flight.
fn probes_of_rtt(output: &RunOutput, from: f64) -> Vec<f64> {
    let mut starts: Vec<f64> = Vec::new();
    let mut was = false;
    for (at, in_flight) in series(output, "in_flight", from) {
        let is = in_flight <= 4.0 * SEGMENT;
        if is && !was {
            starts.push(at);
        }
        was = is;
    }
    starts
}

/// Returns the highest rate of payload that the path can deliver, in bit/s.
fn capacity(rate_mbps: u32) -> f64 {
    f64::from(rate_mbps) * 1e6 * SEGMENT / 1500.0
}

/// Returns the mean goodput between ProbeRTTs, from `settled` seconds after one until a second
/// before the next.
fn goodput_between_probes(output: &RunOutput, from: f64, settled: f64) -> f64 {
    let starts = probes_of_rtt(output, from);
    let goodput = series(output, "goodput", from);
    let steady: Vec<f64> = goodput
        .iter()
        .filter(|(at, _)| {
            starts
                .windows(2)
                .any(|pair| *at > pair[0] + settled && *at < pair[1] - 1.0)
        })
        .map(|(_, value)| *value)
        .collect();
    assert!(steady.len() > 100, "{starts:?}");
    steady.iter().sum::<f64>() / steady.len() as f64
}

#[test]
fn fills_a_terrestrial_path_and_queues_little() {
    let output = run(10, 50, 60, &[]);
    let flow = &output.summary.flows[0];
    // The whole transfer, with Startup, ProbeRTT and Drain.
    assert!(flow.goodput_bps > 0.95 * capacity(10), "{flow:?}");
    assert_eq!((flow.segments_retransmitted, flow.timeouts), (0, 0));
    // The bandwidth-delay product is 83 packets.
    let queue = series(&output, "queue", 3.0);
    let most = queue
        .iter()
        .map(|(_, packets)| *packets)
        .fold(0.0, f64::max);
    let mean = queue.iter().map(|(_, packets)| *packets).sum::<f64>() / queue.len() as f64;
    assert!(most < 83.0 && mean < 0.15 * 83.0, "{most} {mean}");
}

/// 600 ms: each ProbeRTT empties the path for two round trips, which BBR's "2%" (200 ms of 10 s)
/// does not include. Between them the path is full.
#[test]
fn fills_a_satellite_path_except_in_probe_rtt() {
    let output = run(100, 300, 120, &[]);
    let between = goodput_between_probes(&output, 20.0, 2.0);
    assert!(between > 0.95 * capacity(100), "{between}");
    // The bandwidth-delay product is 5000 packets.
    let queue = series(&output, "queue", 20.0);
    let most = queue
        .iter()
        .map(|(_, packets)| *packets)
        .fold(0.0, f64::max);
    assert!(most < 5000.0, "{most}");
    let goodput = series(&output, "goodput", 20.0);
    let overall = goodput.iter().map(|(_, value)| *value).sum::<f64>() / goodput.len() as f64;
    assert!(
        (0.85..0.95).contains(&(overall / capacity(100))),
        "{overall}"
    );
}

#[test]
fn four_segments_every_ten_seconds() {
    let output = run(10, 50, 60, &[]);
    let starts = probes_of_rtt(&output, 3.0);
    assert_eq!(starts.len(), 5, "{starts:?}");
    for pair in starts.windows(2) {
        // Ten seconds, the duration of ProbeRTT, and the round trips around it.
        assert!((10.0..11.0).contains(&(pair[1] - pair[0])), "{starts:?}");
    }
    // 200 ms with at most four segments in flight.
    let low = series(&output, "in_flight", 3.0)
        .iter()
        .filter(|(_, bytes)| *bytes <= 4.0 * SEGMENT)
        .count();
    let stay = 0.010 * low as f64 / starts.len() as f64;
    assert!((0.2..0.35).contains(&stay), "{stay}");
}

/// Startup: the rate doubles every round trip until the path is full; after three rounds without
/// growth it stops.
#[test]
fn startup_doubles_and_stops() {
    let output = run(10, 50, 5, &[]);
    let rate = series(&output, "pacing_rate", 0.0);
    let at = |time: f64| {
        let index = rate.partition_point(|(at, _)| *at < time);
        rate[index.min(rate.len() - 1)].1
    };
    // A round trip is 100 ms; the first window is acknowledged at 0.2 s. Its sending rate was
    // already 2.9 windows per round trip, which the samples must reach first.
    for n in 4..6 {
        let growth = at(0.1 * f64::from(n + 1)) / at(0.1 * f64::from(n));
        assert!((1.8..2.5).contains(&growth), "{n}: {growth}");
    }
    let bandwidth = capacity(10);
    let full = at(1.2) / bandwidth;
    assert!((2.7..2.95).contains(&full), "{full}");
    // Drain: the inverse of Startup's gain, and then a gain of one.
    let least = rate
        .iter()
        .filter(|(at, _)| *at > 1.2)
        .map(|(_, rate)| *rate)
        .fold(f64::INFINITY, f64::min);
    assert!((0.33..0.35).contains(&(least / bandwidth)), "{least}");
    assert!((0.7..1.3).contains(&(at(2.5) / bandwidth)));
}

/// ProbeBW: gains of 1.25, 0.75, and six times 1.
#[test]
fn the_cycle_of_gains() {
    let output = run(10, 50, 10, &[]);
    let bandwidth = capacity(10) * 0.99;
    let mut phases: Vec<(f64, f64)> = Vec::new();
    for (at, rate) in series(&output, "pacing_rate", 2.5) {
        let gain = (rate / bandwidth * 20.0).round() / 20.0;
        if phases.last().is_none_or(|last| last.1 != gain) {
            phases.push((at, gain));
        }
    }
    // The phase in progress at the start of the period is seen only in part.
    let phases = &phases[1..];
    let first = phases
        .iter()
        .position(|(_, gain)| *gain == 1.25)
        .unwrap_or_else(|| panic!("{phases:?}"));
    let cycles = phases[first..].chunks_exact(3);
    assert!(cycles.len() >= 6, "{phases:?}");
    for cycle in cycles {
        let gains: Vec<f64> = cycle.iter().map(|(_, gain)| *gain).collect();
        assert_eq!(gains, [1.25, 0.75, 1.0]);
        // The first phase lasts a round trip at least; so do the other two together.
        assert!(cycle[1].0 - cycle[0].0 >= 0.09);
    }
    let begins: Vec<f64> = phases[first..]
        .iter()
        .filter(|(_, gain)| *gain == 1.25)
        .map(|(at, _)| *at)
        .collect();
    for pair in begins.windows(2) {
        // Eight round trips.
        assert!((0.75..1.0).contains(&(pair[1] - pair[0])), "{begins:?}");
    }
}

/// The loss rate does not determine the rate: 0.1% has little effect, while Reno would get 4
/// Mbit/s.
#[test]
fn a_little_loss_costs_little() {
    let loss = [("links.path.forward.errors.packet_loss_rate", "0.001")];
    let output = run(10, 50, 60, &loss);
    let flow = &output.summary.flows[0];
    assert!(flow.goodput_bps > 0.93 * capacity(10), "{flow:?}");
}

#[test]
fn a_pacing_rate_limits_any_congestion_control() {
    let overrides = [
        ("hosts.server.tcp.congestion_control", "reno"),
        ("hosts.server.tcp.pacing", "4 Mbit/s"),
    ];
    let output = run(10, 50, 20, &overrides);
    let flow = &output.summary.flows[0];
    assert!((3.8e6..4.0e6).contains(&flow.goodput_bps), "{flow:?}");
    // With bursts of two segments, one is queued.
    assert!(output.summary.links[0].queue_max_packets <= 10);
}

#[test]
fn paced_slow_start_queues_less() {
    let most = |pacing: &str| {
        let overrides = [
            ("hosts.server.tcp.congestion_control", "reno"),
            (
                "hosts.server.tcp.initial_slow_start_threshold",
                "60 segments",
            ),
            ("hosts.server.tcp.pacing", pacing),
        ];
        run(10, 50, 2, &overrides).summary.links[0].queue_max_packets
    };
    // 30 segments of each round trip's doubled window, against one or two bursts.
    let (off, on) = (most("off"), most("on"));
    assert!(off >= 20 && on <= 12, "{off} {on}");
}

const THREE: (&str, &str) = ("hosts.server.tcp.congestion_control", "bbr3");

/// Startup has a window of two bandwidth-delay products, while version 1 has 2.9.
#[test]
fn version_3_fills_the_path_and_queues_less() {
    let output = run(10, 50, 60, &[THREE]);
    let flow = &output.summary.flows[0];
    assert!(flow.goodput_bps > 0.95 * capacity(10), "{flow:?}");
    assert_eq!((flow.segments_retransmitted, flow.timeouts), (0, 0));
    let one = run(10, 50, 60, &[]);
    let most = |output: &RunOutput| output.summary.links[0].queue_max_packets;
    assert!(most(&output) < most(&one));
    // The bandwidth-delay product, and no more.
    assert!(most(&output) <= 95, "{}", most(&output));
}

#[test]
fn version_3_keeps_half_of_the_path_while_it_probes_its_round_trip_time() {
    let output = run(10, 50, 30, &[THREE]);
    let product = 1e7 * 0.1 / 8.0;
    let least = series(&output, "in_flight", 4.0)
        .iter()
        .map(|(_, bytes)| *bytes)
        .fold(f64::INFINITY, f64::min);
    assert!((0.4..0.55).contains(&(least / product)), "{least}");
}

/// Losses without congestion: version 1 ignores them; version 3 tolerates 2% per round trip.
#[test]
fn two_percent_is_where_version_3_yields() {
    let goodput = |rule: &str, loss: &str| {
        let overrides = [
            ("hosts.server.tcp.congestion_control", rule),
            ("hosts.server.tcp.recovery", "sack"),
            ("links.path.forward.errors.packet_loss_rate", loss),
        ];
        run(10, 50, 60, &overrides).summary.flows[0].goodput_bps / capacity(10)
    };
    let (one, three) = (goodput("bbr1", "0.005"), goodput("bbr3", "0.005"));
    assert!(one > 0.93 && three > 0.85, "{one} {three}");
    let (one, three) = (goodput("bbr1", "0.05"), goodput("bbr3", "0.05"));
    assert!(one > 0.85 && three < 0.5, "{one} {three}");
}
