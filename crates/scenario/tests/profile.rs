//! `profile`: its effects, and overrides by other keys.

use bentpipe_scenario::quantity::QuickAcks;
use bentpipe_scenario::schema::SlowStart;
use bentpipe_scenario::{RunOptions, Scenario, TcpSettings};
use bentpipe_tcp::BufferSizes;

const NETWORK: &str = r#"
        name = "profile"
        duration = "20 s"
        flows.download = { from = "server", to = "client", app = { kind = "bulk" } }
        [hosts.server.tcp]
        [hosts.client.tcp]
        [links.path]
        between = ["server", "client"]
        rate = "20 Mbit/s"
        delay = "150 ms"
        queue = { kind = "drop-tail", limit = "2000 packets" }
"#;

fn scenario(overrides: &[(&str, &str)]) -> Scenario {
    Scenario::parse(NETWORK, "profile.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn server(overrides: &[(&str, &str)]) -> TcpSettings {
    let scenario = scenario(overrides);
    let node = scenario.nodes.iter().position(|n| n.name == "server");
    let node = node.expect("the server is there");
    scenario.tcp_of(node).expect("it is a host").clone()
}

const LINUX: (&str, &str) = ("hosts.server.tcp.profile", "linux");

#[test]
fn linux_has_its_own_slow_start_and_quick_acknowledgments() {
    let rfc = server(&[]);
    let none = QuickAcks::First(0);
    assert_eq!(
        (rfc.file.slow_start, rfc.file.quick_acks),
        (Some(SlowStart::HyStart), Some(none))
    );
    let linux = server(&[LINUX]);
    let expected = (Some(SlowStart::LinuxHyStart), Some(QuickAcks::Auto));
    assert_eq!((linux.file.slow_start, linux.file.quick_acks), expected);
    // Another congestion control has another slow start.
    let reno = server(&[LINUX, ("hosts.server.tcp.congestion_control", "reno")]);
    assert_eq!(reno.file.slow_start, Some(SlowStart::ByteCounting));
}

#[test]
fn other_keys_override_the_profile() {
    let own = server(&[
        LINUX,
        ("hosts.server.tcp.slow_start", "byte-counting"),
        ("hosts.server.tcp.quick_acks", "3000"),
    ]);
    assert_eq!(
        (own.file.slow_start, own.file.quick_acks),
        (Some(SlowStart::ByteCounting), Some(QuickAcks::First(3000)))
    );
}

#[test]
fn slow_start_limit_needs_a_slow_start_with_a_limit() {
    let limit = ("hosts.server.tcp.slow_start_limit", "2 segments");
    let refused = Scenario::parse(NETWORK, "profile.toml", &[LINUX, limit]);
    let message = refused.expect_err("it has no effect").to_string();
    assert!(message.contains("hystart"), "{message}");
}

#[test]
fn linux_ends_slow_start_earlier() {
    let peak = |overrides: &[(&str, &str)]| {
        let output = scenario(overrides)
            .run(&RunOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        output.summary.links[0].queue_max_packets
    };
    // HyStart++ continues for five rounds with a quarter of the growth, Linux's HyStart ends at
    // once. With host timing it ends too late in 6 of 20 seeds, and the queue overflows.
    let fixed = ("randomness.host_timing", "false");
    let (rfc, linux) = (peak(&[]), peak(&[LINUX, fixed]));
    assert!(linux < rfc, "{linux} {rfc}");
}

/// The settings that `emulate` gives the kernel: memory for this much in full segments, and the
/// window as a clamp.
#[test]
fn the_linux_profile_converts_a_window_to_buffer_memory() {
    let size = ("hosts.server.tcp.receive_buffer", "24946 B");
    let linux = server(&[LINUX, size]).config;
    assert_eq!(linux.receive_sizes, Some(BufferSizes::locked(39_913)));
    assert_eq!(
        (linux.window_clamp, linux.receive_buffer),
        (Some(24_946), 24_946)
    );
    let rfc = server(&[size]).config;
    assert_eq!((rfc.receive_sizes, rfc.window_clamp), (None, None));
    // Packets of the same length, without options; then packets that are 20 bytes longer.
    let without = ("hosts.server.tcp.timestamps", "false");
    let bare = server(&[LINUX, size, without]).config;
    assert_eq!(
        bare.receive_sizes,
        Some(BufferSizes::locked(24_946 * 256 / 162))
    );
}

/// Runs Reno with one packet in ten lost. Returns the number of timeouts, and the largest smoothed
/// round-trip time in seconds.
fn lossy(profile: &str) -> (u64, f64) {
    let output = scenario(&[
        ("hosts.server.tcp.profile", profile),
        ("hosts.server.tcp.congestion_control", "reno"),
        ("hosts.server.tcp.slow_start", "standard"),
        ("hosts.client.tcp.delayed_ack", "off"),
        ("links.path.forward.errors.packet_loss_rate", "0.1"),
        ("duration", "200 s"),
        ("probes.series", r#"["download.smoothed_rtt"]"#),
        ("probes.interval", "100 ms"),
    ])
    .run(&RunOptions::default())
    .unwrap_or_else(|error| panic!("{error}"));
    let values = &output.series[0].values;
    let largest = values.iter().copied().fold(0.0, f64::max);
    (output.summary.flows[0].timeouts, largest)
}

#[test]
fn tcp_linux_measures_round_trips_by_the_echoes_of_duplicates() {
    let tcp = server(&[("hosts.server.tcp.profile", "ns-2-tcp-linux")]);
    assert_eq!(tcp.file.slow_start, Some(SlowStart::Standard));
    let (rfc_timeouts, rfc_smoothed) = lossy("rfc");
    let (timeouts, smoothed) = lossy("ns-2-tcp-linux");
    // The path has a round trip of 300 ms and hardly any queue.
    assert!(rfc_smoothed < 0.35, "{rfc_smoothed}");
    assert!(smoothed > 0.4, "{smoothed}");
    // Timeouts come after a longer time, so that there are fewer.
    assert!(timeouts < rfc_timeouts, "{timeouts} {rfc_timeouts}");
}
