//! Measures cost and results of loss recovery: a transfer with a constant window over a satellite
//! link with losses. Usage: `fixed-window SEGMENTS BIT_ERROR_RATE [RECOVERY] [SECONDS]`, with
//! RECOVERY one of sack, sack-prr, rfc6675, fack, newreno, reno.
//!
//! The link has 100 Mbit/s, 600 ms, and a queue for the whole window. Prints the data segments
//! delivered in order, retransmissions, and timeouts. The time is to be measured from outside.

use std::process::ExitCode;

use bentpipe_link::{DropTail, ErrorModel, Limit, Settings};
use bentpipe_sim::{FlowSettings, LinkSettings, NetworkBuilder, Traffic};
use bentpipe_tcp::congestion::{
    AckSample, CongestionControl, CongestionSample, CustomFactory, Window,
};
use bentpipe_tcp::{Config, CongestionControlKind, RecoveryKind};
use bentpipe_types::{BitRate, RandomStream, Span, Time};

const MSS: u64 = 1448;

/// A window rule that never changes the window.
#[derive(Debug)]
struct FixedWindow;

impl CongestionControl for FixedWindow {
    fn on_ack(&mut self, _: &mut Window, _: u64, _: &AckSample) {}

    fn on_congestion(&mut self, _: &mut Window, _: &CongestionSample) {}

    fn loss_window(&self, window: &Window) -> u64 {
        window.congestion_window
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Some(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: fixed-window SEGMENTS BIT_ERROR_RATE [RECOVERY] [SECONDS]");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Option<String> {
    let segments: u32 = arguments.first()?.parse().ok()?;
    let bit_error_rate: f64 = arguments.get(1)?.parse().ok()?;
    let recovery = arguments.get(2).map_or("sack", String::as_str);
    let seconds: u64 = arguments.get(3).map_or(Some(600), |s| s.parse().ok())?;
    let window = u64::from(segments) * MSS;
    let sender = Config {
        congestion_control: CongestionControlKind::Custom(CustomFactory::new("fixed", || {
            Box::new(FixedWindow)
        })),
        initial_window: segments,
        initial_slow_start_threshold: Some(window),
        send_buffer: 16 * window,
        recovery: match recovery {
            "sack" | "sack-prr" | "rfc6675" => RecoveryKind::Sack,
            "fack" => RecoveryKind::Fack,
            "newreno" => RecoveryKind::NewReno,
            "reno" => RecoveryKind::Reno,
            _ => return None,
        },
        rack: recovery != "rfc6675",
        proportional_rate_reduction: recovery == "sack-prr",
        ..Config::default()
    };
    let receiver = Config {
        receive_buffer: 16 * window,
        delayed_ack: None,
        ..Config::default()
    };

    let direction = |errors| {
        Some(Settings {
            errors,
            ..Settings::new(
                BitRate::new(100_000_000)?,
                Span::from_millis(300),
                DropTail {
                    limit: Limit::Packets(1 << 20),
                },
            )
        })
    };
    let errors = if bit_error_rate > 0.0 {
        let random = RandomStream::new(1, "satellite.forward", "errors");
        vec![ErrorModel::bit_errors(bit_error_rate, random)]
    } else {
        Vec::new()
    };
    let mut builder = NetworkBuilder::new(1);
    let (server, client) = (builder.host("server"), builder.host("client"));
    builder.link(
        server,
        client,
        LinkSettings {
            name: "satellite".to_owned(),
            forward: direction(errors),
            backward: direction(Vec::new()),
        },
    );
    builder.flow(FlowSettings {
        name: "download".to_owned(),
        from: server,
        to: client,
        start: Span::ZERO,
        application: Traffic::bulk(None),
        sender: sender.into(),
        receiver: receiver.into(),
    });
    let mut network = builder.build().ok()?;
    network.run_until(Time::ZERO + Span::from_secs(seconds));
    let outcome = network.outcome();
    let flow = outcome.flows.first()?;
    let sent = flow.sender.as_ref()?;
    let delivered = flow.bytes_delivered() / MSS;
    Some(format!(
        "delivered {delivered} retransmissions {} timeouts {} recoveries {} spurious {} \
         goodput_mbps {:.2}",
        sent.segments_retransmitted,
        sent.timeouts,
        sent.fast_recoveries,
        sent.spurious,
        flow.bytes_delivered() as f64 * 8e-6 / seconds as f64,
    ))
}
