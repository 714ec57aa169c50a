//! Calls of current programs: adaptive jitter buffers, and video calls with an adaptive rate.

use bentpipe_scenario::{RunOptions, Scenario};
use proptest::prelude::*;
use serde_json::Value;

/// Returns two hosts and a link with these additional keys, and these flows.
fn file(link: &str, flows: &str) -> String {
    format!(
        r#"
name = "calls"
duration = "200 s"
seed = 1
[hosts.a]
[hosts.b]
[links.l]
between = ["a", "b"]
{link}
{flows}
"#
    )
}

fn run(text: &str) -> Value {
    let scenario = Scenario::parse(text, "calls.toml", &[]);
    let scenario = scenario
        .map_err(|error| error.to_string())
        .expect("it is understood");
    let output = scenario.run(&RunOptions::default()).expect("it runs");
    serde_json::to_value(&output.summary).expect("it is JSON")
}

fn flow(app: &str) -> String {
    format!("[flows.call]\nfrom = \"a\"\nto = \"b\"\napp = {app}\n")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Returns the quality at both ends of the first call of a flow.
fn ways(flow: &Value, calls: &str) -> [Value; 2] {
    let call = &flow[calls][0];
    [call["there"].clone(), call["back"].clone()]
}

fn voice(link: &str, buffer: &str) -> [Value; 2] {
    let app = format!(r#"{{ kind = "voice", lasts = "60 s", jitter_buffer = "{buffer}" }}"#);
    ways(&run(&file(link, &flow(&app)))["flows"][0], "calls")
}

#[test]
fn an_adaptive_buffer_adds_no_delay_without_jitter() {
    let link = "rate = \"50 Mbit/s\"\ndelay = \"300 ms\"";
    let fixed = voice(link, "60 ms");
    for (adaptive, fixed) in voice(link, "adaptive").iter().zip(&fixed) {
        // 20 ms of packet and 300 ms of path; the initial 60 ms of the buffer shrink in the first
        // second.
        let delay = number(&adaptive["delay_ms"]);
        assert!((320.0..321.0).contains(&delay), "{delay}");
        assert_eq!(
            (&adaptive["lost"], &adaptive["late"]),
            (&0.into(), &0.into())
        );
        assert!(number(&adaptive["rating"]) > number(&fixed["rating"]) + 6.0);
    }
}

#[test]
fn an_adaptive_buffer_follows_a_step_of_the_delay() {
    let link = "rate = \"50 Mbit/s\"\ndelay = \"100 ms\"\nschedule = [{ at = \"30 s\", delay = \"300 ms\" }]";
    for heard in voice(link, "60 ms") {
        // Half of the call is always too late.
        let unheard = number(&heard["lost"]) + number(&heard["late"]);
        assert!((1_490.0..1_510.0).contains(&unheard), "{heard}");
    }
    for heard in voice(link, "adaptive") {
        // 200 ms are ten packets, and time scaling needs as many again to adapt.
        assert!((19.0..=20.0).contains(&number(&heard["late"])), "{heard}");
        assert_eq!(heard["lost"], 0);
        // Half of the call at 120 ms, half at 320 ms.
        assert!(
            (215.0..225.0).contains(&number(&heard["delay_ms"])),
            "{heard}"
        );
    }
}

/// Returns the rate of a video call in bit/s from 20 to 120 s, in each direction.
fn settled(rate: &str, delay: &str) -> [f64; 2] {
    let bits = |lasts: u32| {
        let link = format!("rate = \"{rate}\"\ndelay = \"{delay}\"");
        let app = format!(r#"{{ kind = "video-call", lasts = "{lasts} s" }}"#);
        let flow = &run(&file(&link, &flow(&app)))["flows"][0];
        assert_eq!(flow["outcome"], "finished");
        ways(flow, "video_calls").map(|seen| {
            assert_eq!(
                (&seen["lost"], &seen["frames"]),
                (&0.into(), &(30 * lasts).into())
            );
            number(&seen["rate_bps"]) * f64::from(lasts)
        })
    };
    let (all, first) = (bits(120), bits(20));
    [0, 1].map(|way| (all[way] - first[way]) / 100.0)
}

#[test]
fn a_single_video_call_fills_the_link() {
    // Per frame at 30 per second: 1 Mbit/s are 4166 B, of which 112 are headers of IP and UDP in
    // four packets; 500 kbit/s are 2083 B, of which 56 are headers in two.
    for (rate, expected) in [("1 Mbit/s", 973_120.0), ("500 kbit/s", 486_560.0)] {
        for measured in settled(rate, "25 ms") {
            let share = measured / expected;
            assert!((0.98..=1.0).contains(&share), "{rate}: {measured}");
        }
    }
    // If the link has more capacity, the rate rises to its maximum, which takes long over a
    // satellite.
    for (delay, least) in [("25 ms", 0.995), ("270 ms", 0.93)] {
        for measured in settled("10 Mbit/s", delay) {
            let share = measured / 1.5e6;
            assert!((least..=1.001).contains(&share), "{delay}: {measured}");
        }
    }
}

fn beside(second: &str, queue: &str) -> Value {
    let link = format!("rate = \"2 Mbit/s\"\ndelay = \"25 ms\"\nqueue = {queue}");
    let flows = flow(r#"{ kind = "video-call", lasts = "120 s" }"#)
        + "[flows.other]\nfrom = \"a\"\nto = \"b\"\nstart = \"10 s\"\napp = "
        + second;
    run(&file(&link, &flows))["flows"].clone()
}

#[test]
fn video_calls_share_a_link() {
    let flows = beside(
        r#"{ kind = "video-call", lasts = "120 s" }"#,
        r#"{ kind = "drop-tail" }"#,
    );
    let [first, second] = [0, 1].map(|flow| ways(&flows[flow], "video_calls"));
    for way in 0..2 {
        let rates = [&first, &second].map(|seen| number(&seen[way]["rate_bps"]));
        // Neither starves, and together they fill the link.
        assert!(rates.iter().all(|rate| *rate > 0.75e6), "{rates:?}");
        assert!(
            (1.85e6..2.1e6).contains(&(rates[0] + rates[1])),
            "{rates:?}"
        );
        assert_eq!(
            (&first[way]["lost"], &second[way]["lost"]),
            (&0.into(), &0.into())
        );
    }
}

#[test]
fn a_video_call_survives_beside_a_download() {
    // RFC 8698 section 4.2: warping keeps a flow alive beside loss-based ones. Its share depends on
    // the queue.
    for (queue, least) in [
        (r#"{ kind = "drop-tail", limit = "20 packets" }"#, 0.3e6),
        (r#"{ kind = "drop-tail", limit = "300 ms" }"#, 0.5e6),
        (r#"{ kind = "fq-codel" }"#, 0.8e6),
    ] {
        let flows = beside(r#"{ kind = "bulk" }"#, queue);
        let [there, back] = ways(&flows[0], "video_calls");
        let rate = number(&there["rate_bps"]);
        assert!((least..1.4e6).contains(&rate), "{queue}: {rate}");
        assert!(number(&flows[1]["goodput_bps"]) > 0.4e6, "{queue}");
        // The reverse direction has acknowledgments only.
        assert!(number(&back["rate_bps"]) > 1.4e6, "{back}");
    }
}

#[test]
fn a_video_call_follows_steps_of_the_rate() {
    let link = "rate = \"1 Mbit/s\"\ndelay = \"25 ms\"\nschedule = [{ at = \"60 s\", rate = \"400 kbit/s\" }, { at = \"120 s\", rate = \"1 Mbit/s\" }]";
    let app = r#"{ kind = "video-call", lasts = "180 s" }"#;
    for seen in ways(&run(&file(link, &flow(app)))["flows"][0], "video_calls") {
        // A third of the time at 400 kbit/s, the rest at 1 Mbit/s: 0.8 Mbit/s, less headers and
        // ramps.
        let rate = number(&seen["rate_bps"]);
        assert!((0.70e6..0.78e6).contains(&rate), "{seen}");
        // The decrease of the rate loses frames; then the picture returns.
        assert!(
            number(&seen["shown"]) > 0.8 * number(&seen["frames"]),
            "{seen}"
        );
        assert!(number(&seen["freezes"]) >= 1.0, "{seen}");
    }
}

#[test]
fn impossible_video_calls_are_refused() {
    let link = "rate = \"1 Mbit/s\"\ndelay = \"25 ms\"";
    for (app, message) in [
        (
            r#"{ kind = "video-call", max_rate = "60 Mbit/s" }"#,
            r#"calls.toml:14: flows.call.app.max_rate: expected "10 kbit/s" to "50 Mbit/s", got "60 Mbit/s""#,
        ),
        (
            r#"{ kind = "video-call", max_rate = "100 kbit/s" }"#,
            "app.max_rate: expected no less than min_rate, 150000 to 100000 bit/s",
        ),
        (
            r#"{ kind = "video-call", min_rate = "2 Mbit/s" }"#,
            "app.min_rate: expected no more than max_rate, 2000000 to 1500000 bit/s",
        ),
        (
            r#"{ kind = "video-call", frame_rate = 0 }"#,
            "app.frame_rate: expected 1 to 120, got 0",
        ),
        (
            r#"{ kind = "video-call", datagram = "100 B" }"#,
            r#"app.datagram: expected at least "128 B", got "100 B""#,
        ),
        (
            r#"{ kind = "video-call", frame_rate = 1, max_rate = "50 Mbit/s" }"#,
            "app.datagram: expected at most 255 datagrams in a frame, got 5209 at max_rate and frame_rate",
        ),
        (
            r#"{ kind = "video-call", calls = 2 }"#,
            "app.calls: has no effect: a call without a length (lasts) has no end",
        ),
        (
            r#"{ kind = "video-call", jitter_buffer = "60 ms" }"#,
            r#"app.jitter_buffer: has no effect: a "video-call" application has min_rate"#,
        ),
        (
            r#"{ kind = "voice", jitter_buffer = "adaptiv" }"#,
            r#"expected "adaptive", or a length of time such as "60 ms", got "adaptiv""#,
        ),
        (
            r#"{ kind = "voice", jitter_buffer = "11 s" }"#,
            r#"app.jitter_buffer: expected "0 s" to "10 s", got "11 s""#,
        ),
        (
            r#"{ kind = "voice", frame_rate = 30 }"#,
            r#"app.frame_rate: has no effect: a "voice" application has codec"#,
        ),
    ] {
        let error = Scenario::parse(&file(link, &flow(app)), "calls.toml", &[]);
        let error = error
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(error.contains(message), "{app}:\n{error}\n{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    /// For any impairments, each call ends, only frames that were sent are shown, and the same seed
    /// gives the same result.
    #[test]
    fn calls_are_consistent_under_any_impairment(
        seed in 0_u64..1_000_000,
        loss in 0.0_f64..0.2,
        doubled in 0.0_f64..0.1,
        late in 0.0_f64..0.2,
        rate in 100_u32..3_000,
        delay in 1_u32..400,
        frame_rate in 5_u32..60,
        adaptive in any::<bool>(),
    ) {
        let link = format!(
            "rate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\nerrors.packet_loss_rate = {loss:.4}\n\
             duplication = {doubled:.4}\n\
             reordering = {{ probability = {late:.4}, late_by = \"uniform(1 ms, 100 ms)\" }}\n\
             outages = [{{ at = \"8 s\", lasts = \"2 s\" }}]"
        );
        let buffer = if adaptive { "adaptive" } else { "60 ms" };
        let flows = flow(&format!(
            r#"{{ kind = "video-call", lasts = "uniform(5 s, 20 s)", calls = 2, frame_rate = {frame_rate} }}"#
        )) + &format!(
            "[flows.talk]\nfrom = \"b\"\nto = \"a\"\napp = {{ kind = \"voice\", lasts = \"20 s\", jitter_buffer = \"{buffer}\" }}\n"
        );
        let text = file(&link, &flows).replace("seed = 1", &format!("seed = {seed}"));
        let all = run(&text);
        prop_assert_eq!(&all["flows"][0]["outcome"], "finished");
        prop_assert_eq!(&all["flows"][1]["outcome"], "finished");
        let calls = all["flows"][0]["video_calls"].as_array().expect("calls");
        prop_assert_eq!(calls.len(), 2);
        for call in calls {
            for way in ["there", "back"] {
                let seen = &call[way];
                let of = |key: &str| number(&seen[key]);
                prop_assert!(of("shown") <= of("frames"), "{}", seen);
                prop_assert!(of("lost") + of("late") <= of("packets"), "{}", seen);
                prop_assert!((1.0..=5.0).contains(&of("mos")), "{}", seen);
                prop_assert!(of("freezes") <= of("shown"), "{}", seen);
                prop_assert!(of("frozen_s") <= 40.0, "{}", seen);
                // The received rate is at most that of the link.
                prop_assert!(of("rate_bps") <= 1.2e3 * f64::from(rate), "{}", seen);
                let lasts = number(&call["lasts_s"]);
                prop_assert!((of("frames") / f64::from(frame_rate) - lasts).abs() < 2.0, "{}", call);
            }
        }
        let again = run(&text);
        prop_assert_eq!(&all["flows"], &again["flows"]);
    }
}
