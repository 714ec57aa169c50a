//! Congestion control and slow start in scenario files, on simulated paths.

use bentpipe_scenario::RunOutput;

use crate::runs::{run_text, series};

const SEGMENT: f64 = 1448.0;

/// Runs a bulk transfer over one link of 600 ms, without losses other than those in `overrides`.
fn run(control: &str, rate_mbps: u32, queue: u32, overrides: &[(&str, &str)]) -> RunOutput {
    let text = format!(
        r#"
        name = "rules"
        duration = "60 s"
        hosts.server.tcp = {{ congestion_control = "{control}", send_buffer = "128 MiB", channel_capacity = "{rate_mbps} Mbit/s" }}
        hosts.client.tcp = {{ receive_buffer = "128 MiB" }}
        flows.download = {{ from = "server", to = "client", app = {{ kind = "bulk" }} }}
        [links.path]
        between = ["server", "client"]
        rate = "{rate_mbps} Mbit/s"
        delay = "300 ms"
        queue = {{ kind = "drop-tail", limit = "{queue} packets" }}
        [probes]
        series = ["download.congestion_window", "download.slow_start_threshold", "path.forward.queue"]
        interval = "10 ms"
        "#
    );
    run_text(&text, overrides)
}

/// Returns the last slow-start threshold in segments, if there is one.
fn threshold(output: &RunOutput) -> Option<f64> {
    let last = series(output, "slow_start_threshold", 0.0).last()?.1;
    (last < 1e15).then_some(last / SEGMENT)
}

#[test]
fn hystart_ends_slow_start_before_the_queue_overflows() {
    // 20 Mbit/s for 0.6 s: a bandwidth-delay product of 1000 packets. The minimum round-trip time
    // of a round increases once the whole round is queued, which is measured a round trip later:
    // the window is then 1 to 4 products. Five conservative rounds triple it.
    let plain = run("reno", 20, 10_000, &[]);
    assert!(plain.summary.links[0].packets_dropped > 1000);
    let hystart = [("hosts.server.tcp.slow_start", "hystart++")];
    let output = run("reno", 20, 10_000, &hystart);
    assert_eq!(output.summary.links[0].packets_dropped, 0);
    let ended = threshold(&output).expect("slow start has ended");
    assert!((2000.0..11_000.0).contains(&ended), "{ended}");
    let (with, without) = (&output.summary.flows[0], &plain.summary.flows[0]);
    assert!(with.goodput_bps > 0.9 * without.goodput_bps);
}

#[test]
fn hybla_finds_its_initial_threshold() {
    let estimate = (
        "hosts.server.tcp.hybla.initial_threshold",
        "bandwidth-estimate",
    );
    for rate in [20, 100] {
        let pipe = f64::from(rate) * 1e6 * 0.6 / 8.0 / 1500.0;
        for delayed_ack in ["off", "40 ms"] {
            let delayed = ("hosts.client.tcp.delayed_ack", delayed_ack);
            let output = run("hybla", rate, 50_000, &[estimate, delayed]);
            let found = threshold(&output).expect("an estimate");
            assert!((found / pipe - 1.0).abs() < 0.02, "{rate}: {found} {pipe}");
            assert_eq!(output.summary.links[0].packets_dropped, 0);
            // The window increases at once: by 2^24 per acknowledgment.
            let windows = series(&output, "congestion_window", 0.0);
            let (_, at_two_seconds) = windows[200];
            assert!(at_two_seconds / SEGMENT > 0.98 * pipe);
        }
    }
}

#[test]
fn a_single_loss_reduces_the_window_as_each_algorithm_specifies() {
    // A bandwidth-delay product of 1000 packets, filled from the start, with one loss once it is
    // full.
    for (control, lost, share) in [
        ("reno", "[5000]", 0.5),
        ("hybla", "[5000]", 0.5),
        ("cubic", "[5000]", 0.7),
        // The path is full, so that it delivers what it holds. Westwood's filter needs about twenty
        // round trips to measure it.
        ("westwood", "[50000]", 1.0),
        // The filter of 2001 needs a few time constants of half a second.
        ("westwood-2001", "[5000]", 1.0),
        ("enhanced-hybla", "[5000]", 1.0),
    ] {
        let settings = [
            (
                "hosts.server.tcp.initial_slow_start_threshold",
                "1000 segments",
            ),
            ("links.path.forward.errors.lost_packets", lost),
        ];
        let output = run(control, 20, 100_000, &settings);
        let flow = &output.summary.flows[0];
        assert_eq!((flow.fast_recoveries, flow.timeouts), (1, 0), "{control}");
        let windows = series(&output, "congestion_window", 0.0);
        let thresholds = series(&output, "slow_start_threshold", 0.0);
        let lost_at = thresholds
            .iter()
            .position(|(_, value)| *value != thresholds[5].1)
            .expect("a loss");
        let before = windows[lost_at - 1].1;
        let pipe = 1000.0 * SEGMENT;
        let expected = if share < 1.0 {
            share * before
        } else {
            // Enhanced Hybla: or three quarters of the data in flight, including its queue.
            pipe.max(if control.starts_with("westwood") {
                0.0
            } else {
                0.75 * before
            })
        };
        let after = thresholds[lost_at].1;
        assert!(
            (after / expected - 1.0).abs() < 0.05,
            "{control}: {before} {after} {expected}"
        );
    }
}
