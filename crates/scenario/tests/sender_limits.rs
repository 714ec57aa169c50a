//! Limits of a sender (`limited_s`), in networks where the limit is known.

use bentpipe_scenario::{LimitedSummary, RunOptions, Scenario};

use crate::runs::run_text;

const NETWORK: &str = r#"
name = "path"
duration = "300 s"
hosts = { server = {}, client = {} }
links.satellite = { between = ["server", "client"], rate = "4 Mbit/s", delay = "250 ms" }
flows.download = { from = "server", to = "client", app = { kind = "bulk", size = "10 MB" } }
"#;

/// Returns each limit as a share of the busy time, and that time.
fn limited(overrides: &[(&str, &str)]) -> (LimitedSummary, f64) {
    let output = run_text(NETWORK, overrides);
    let flow = &output.summary.flows[0];
    let first = flow.first_data_s.expect("it began");
    let finish = flow.finish_s.expect("it finished");
    let mut shares = flow.limited_s.clone();
    let busy: f64 = seconds(&mut shares).iter().map(|each| **each).sum();
    // The acknowledgment of the last byte takes one more delay, plus the transmission times.
    assert!(
        busy > finish - first && busy < finish - first + 2.0,
        "{busy}"
    );
    for each in seconds(&mut shares) {
        *each /= busy;
    }
    (shares, busy)
}

fn seconds(times: &mut LimitedSummary) -> [&mut f64; 7] {
    let LimitedSummary {
        slow_start,
        congestion_window,
        receive_window,
        send_buffer,
        application,
        pacing,
        recovery,
    } = times;
    [
        slow_start,
        congestion_window,
        receive_window,
        send_buffer,
        application,
        pacing,
        recovery,
    ]
}

#[test]
fn a_small_receive_window_limits() {
    let (shares, busy) = limited(&[("hosts.client.tcp.receive_buffer", "32 KiB")]);
    // 10 MB at 32 KiB per round trip, for all but the first and the last round trips.
    assert!(busy > 150.0, "{busy}");
    assert!(shares.receive_window > 0.98, "{shares:?}");
}

#[test]
fn a_small_send_buffer_limits() {
    let (shares, _) = limited(&[("hosts.server.tcp.send_buffer", "32 KiB")]);
    assert!(shares.send_buffer > 0.95, "{shares:?}");
}

#[test]
fn the_congestion_window_limits_when_it_cannot_grow() {
    let threshold = (
        "hosts.server.tcp.initial_slow_start_threshold",
        "2 segments",
    );
    let reno = ("hosts.server.tcp.congestion_control", "reno");
    let (shares, _) = limited(&[threshold, reno]);
    assert!(shares.congestion_window > 0.9, "{shares:?}");
    assert!(shares.slow_start < 0.05, "{shares:?}");
}

#[test]
fn slow_start_limits_a_short_transfer() {
    let (shares, _) = limited(&[
        ("flows.download.app.size", "100 kB"),
        ("hosts.server.tcp.initial_window", "1 segment"),
    ]);
    // Seven round trips to 64 segments, and one with nothing left to send.
    assert!(shares.slow_start > 0.7, "{shares:?}");
    assert!(
        shares.application > 0.1 && shares.application < 0.3,
        "{shares:?}"
    );
}

#[test]
fn recovery_limits_after_losses() {
    let loss = ("links.satellite.forward.errors.packet_loss_rate", "0.01");
    let size = ("flows.download.app.size", "5 MB");
    let scenario = Scenario::parse(NETWORK, "path.toml", &[loss, size]).expect("it is right");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    let flow = &output.summary.flows[0];
    // A recovery takes a round trip, or two if a retransmission is lost.
    let round_trips = flow.limited_s.recovery / 0.5;
    let recoveries = (flow.fast_recoveries + flow.timeouts) as f64;
    assert!(recoveries > 10.0, "{recoveries}");
    assert!(
        round_trips > 0.95 * recoveries && round_trips < 2.0 * recoveries,
        "{round_trips} round trips for {recoveries} recoveries"
    );
}

/// Returns the limits of a transfer with losses at 50 Mbit/s and 500 ms: a window of 3.1 MB fills
/// the link, and the same amount arrives after each gap.
fn limited_with_losses(rule: &str, buffer: (&str, &str)) -> LimitedSummary {
    let (shares, _) = limited(&[
        ("links.satellite.rate", "50 Mbit/s"),
        ("links.satellite.forward.errors.packet_loss_rate", "0.001"),
        ("flows.download.app.size", "100 MB"),
        ("hosts.server.tcp.congestion_control", rule),
        ("hosts.server.tcp.send_buffer", "16 MiB"),
        ("hosts.client.tcp.receive_buffer", "16 MiB"),
        buffer,
    ]);
    shares
}

#[test]
fn a_full_send_buffer_limits_during_recovery() {
    for rule in ["bbr1", "bbr3"] {
        let small = limited_with_losses(rule, ("hosts.server.tcp.send_buffer", "4 MiB"));
        let large = limited_with_losses(rule, ("hosts.server.tcp.send_buffer", "16 MiB"));
        assert!(small.send_buffer > small.recovery, "{rule}: {small:?}");
        assert!(large.send_buffer < 0.02, "{rule}: {large:?}");
        assert!(large.recovery > 0.5, "{rule}: {large:?}");
    }
}

#[test]
fn a_full_receive_window_limits_during_recovery() {
    let small = limited_with_losses("bbr1", ("hosts.client.tcp.receive_buffer", "3 MiB"));
    let large = limited_with_losses("bbr1", ("hosts.client.tcp.receive_buffer", "16 MiB"));
    assert!(small.receive_window > small.recovery, "{small:?}");
    assert!(large.receive_window < 0.02, "{large:?}");
}

#[test]
fn recovery_limits_with_large_buffers() {
    // A window of 60 segments is halved; neither buffer is ever full.
    let (shares, _) = limited(&[
        ("links.satellite.forward.errors.packet_loss_rate", "0.002"),
        ("hosts.server.tcp.congestion_control", "reno"),
        ("hosts.server.tcp.send_buffer", "4 MiB"),
        ("hosts.client.tcp.receive_buffer", "4 MiB"),
    ]);
    assert!(shares.recovery > 0.05, "{shares:?}");
    assert!(
        shares.receive_window == 0.0 && shares.send_buffer == 0.0,
        "{shares:?}"
    );
}

#[test]
fn pacing_limits() {
    let rule = ("hosts.server.tcp.congestion_control", "bbr1");
    let (shares, _) = limited(&[rule]);
    assert!(shares.pacing > 0.5, "{shares:?}");
}

#[test]
fn no_limit_is_counted_without_data() {
    let scenario = Scenario::parse(NETWORK, "path.toml", &[("flows.download.start", "299 s")]);
    let output = scenario
        .expect("it is right")
        .run(&RunOptions::default())
        .expect("it runs");
    let times = &mut output.summary.flows[0].limited_s.clone();
    // Its first segments are sent half a second after the SYN.
    assert!(seconds(times).iter().map(|each| **each).sum::<f64>() < 0.5);
}
