//! Random hostile paths on both sides, and hosts that misbehave.
//!
//! Invariants in all cases: an end reads the bytes that the other wrote, in order. The data that
//! the gateway holds stays within its bound. Every connection ends. After a successful close the
//! other end has received everything.

use bentpipe_tcp::{ActiveFastOpen, Config, CongestionControlKind, PassiveFastOpen, RecoveryKind};
use bentpipe_types::{Agent, FastOpen, RandomStream, Span, Time};

use super::super::{Anticipation, Recovery, Settings};
use super::network::tcp;
use super::network::{HOST, Misbehaviour, Net, Path, SERVER};

fn pick<T: Clone>(random: &mut RandomStream, choices: &[T]) -> T {
    choices[(random.bits() % choices.len() as u64) as usize].clone()
}

fn path(random: &mut RandomStream, delays: &[u64]) -> Path {
    Path {
        delay: Span::from_millis(pick(random, delays)),
        jitter: Span::from_millis(pick(random, &[0, 0, 5, 60])),
        loss: pick(random, &[0.0, 0.01, 0.05, 0.2]),
        duplication: pick(random, &[0.0, 0.0, 0.05]),
        corruption: pick(random, &[0.0, 0.0, 0.05]),
    }
}

fn settings(random: &mut RandomStream) -> Settings {
    let receive_buffer = pick(random, &[2_000, 3_000, 20_000, 64_000, 300_000]);
    Settings {
        receive_buffer,
        store: pick(random, &[None, None, Some(5_000), Some(400_000)]),
        memory: pick(random, &[64 << 20, 64 << 20, 4_000]),
        ack_timeout: Span::from_millis(pick(random, &[1, 10, 200])),
        ack_every: pick(random, &[None, Some(1), Some(2)]),
        anticipation: pick(
            random,
            &[
                Anticipation::Unlimited,
                Anticipation::Strict,
                Anticipation::Factor(3.0),
            ],
        ),
        recovery: pick(
            random,
            &[
                Recovery::Timer,
                Recovery::Timer,
                tcp(RecoveryKind::Sack, None),
                tcp(RecoveryKind::Sack, Some(CongestionControlKind::Cubic)),
                tcp(RecoveryKind::NewReno, Some(CongestionControlKind::Reno)),
                tcp(RecoveryKind::Fack, Some(CongestionControlKind::Bbr3)),
            ],
        ),
        retransmission_timeout: pick(random, &[Some(Span::from_millis(200)), None]),
        give_up: Span::from_secs(300),
        ..Settings::default()
    }
}

fn config(random: &mut RandomStream) -> Config {
    let mut config = Config {
        mss: pick(random, &[1, 100, 536, 1448]),
        receive_buffer: pick(random, &[1_000, 4_096, 45_000, 1_000_000]),
        send_buffer: pick(random, &[2_000, 100_000]),
        window_scaling: random.happens(0.7),
        timestamps: random.happens(0.6),
        sack: random.happens(0.7),
        delayed_ack: pick(random, &[None, Some(Span::from_millis(200))]),
        time_wait: Span::from_secs(60),
        ..if random.happens(0.5) {
            Config::default()
        } else {
            Config::linux()
        }
    };
    if config.mss == 1 {
        config.send_buffer = 300;
    }
    config
}

fn fast_open(random: &mut RandomStream) -> (ActiveFastOpen, PassiveFastOpen) {
    let cookie = |text: &[u8]| FastOpen::new(text, false);
    let asks = ActiveFastOpen {
        option: cookie(pick(random, &[b"cookie".as_slice(), b""])),
        bytes: pick(random, &[0, 500, 3_000]),
        room: pick(random, &[1, 400, 1_400]),
    };
    let offer = cookie(b"another!").map_or(PassiveFastOpen::Ignore, PassiveFastOpen::Offer);
    let answers = [PassiveFastOpen::Ignore, offer, PassiveFastOpen::Accept];
    (asks, pick(random, &answers))
}

/// Returns true if each segment waits for the timer. Data beyond a window of one segment is dropped
/// there, and a gateway with the timer alone learns of it no sooner. A few hundred segments then
/// take longer than a server waits for the acknowledgment of its FIN.
fn each_segment_takes_a_timeout(settings: &Settings, host: &Config) -> bool {
    matches!(settings.recovery, Recovery::Timer)
        && settings.anticipation != Anticipation::Strict
        && host.receive_buffer < 2 * u64::from(host.mss)
}

/// Runs one random network. Returns a description of what failed.
fn case(seed: u64) {
    let mut random = RandomStream::new(seed, "hybrid", "case");
    let random = &mut random;
    let (host, server) = (config(random), config(random));
    let settings = settings(random);
    let until = Time::ZERO + Span::from_secs(pick(random, &[5, 30, 120]));
    let misbehaviour = Misbehaviour {
        shrinks: pick(random, &[0.0, 0.0, 0.1]),
        lies: pick(random, &[0.0, 0.0, 0.0, 0.02]),
        vanishes: pick(
            random,
            &[None, None, None, Some(Time::ZERO + Span::from_secs(4))],
        ),
        reads: pick(random, &[None, None, Some((3_000, Span::from_millis(700)))]),
    };
    let mut narrowness = RandomStream::new(seed, "hybrid", "mtu");
    let mtu = pick(
        &mut narrowness,
        &[None, None, Some(296), Some(576), Some(1300)],
    );
    let silent = mtu.is_some() && narrowness.happens(0.3);
    let describe = format!(
        "seed {seed}: host {host:?}, server {server:?}, {settings:?}, {misbehaviour:?}, until {until:?}, MTU {mtu:?}, silent {silent}"
    );
    let tiny = settings.memory < 10_000;
    let most = if host.mss == 1 || server.mss == 1 || tiny {
        300
    } else {
        60_000
    };
    let bytes = [random.bits() % most, random.bits() % (4 * most)];
    let mut net = Net::new(settings.clone(), &host, &server, seed);
    net.paths = [path(random, &[1, 50, 250]), path(random, &[1, 20, 300])];
    (net.mtu, net.silent) = (mtu, silent);
    net.misbehaviour = misbehaviour.clone();
    net.until = until;
    net.to_write = bytes;
    let opener = if random.happens(0.8) { HOST } else { SERVER };
    net.fast_open = random.happens(0.25).then(|| fast_open(random));
    if net.fast_open.is_some() {
        // Data is sent before the handshake is over, and a corrupted copy can pass for a SYN+ACK.
        net.paths[HOST].corruption = 0.0;
        net.paths[SERVER].corruption = 0.0;
    }
    net.connect(opener);

    if std::env::var("SEED").is_ok() {
        net.log = Some(Vec::new());
    }
    let end = Time::ZERO + Span::from_secs(200_000);
    let mut steps = 0u64;
    while net.step(end) {
        steps += 1;
        if steps == 19_999_999 && std::env::var("SEED").is_ok() {
            eprintln!("{}", net.describe());
        }
        // A host that lies is sent the whole buffer at each timeout until it is given up, after 300
        // s.
        assert!(
            steps < 20_000_000,
            "it goes on for ever at {:?}; {describe}",
            net.world.now
        );
        assert!(
            net.gateway.totals.bytes_maximum <= settings.memory + 1,
            "{describe}"
        );
    }
    if std::env::var("SEED").is_ok() {
        eprintln!("{}", net.describe());
    }
    for side in [HOST, SERVER] {
        let Some(tcp) = &net.ends[side] else {
            continue;
        };
        let statistics = tcp.statistics();
        assert_eq!(statistics.payload_mismatches, 0, "{describe}");
        assert!(net.delivered(side) <= bytes[1 - side], "{describe}");
    }
    assert_eq!(net.gateway.holdings().packets, 0, "{describe}");
    assert_eq!(net.gateway.totals.open, 0, "{describe}");
    assert_eq!(net.gateway.next_deadline(), None, "{describe}");
    // A host that lies about what it has received deceives only itself.
    if misbehaviour.lies == 0.0 {
        if net.ends[SERVER].is_some() && net.is_closed_well(SERVER) {
            assert_eq!(net.delivered(HOST), bytes[SERVER], "{describe}");
        }
        if net.ends[HOST].is_some() && net.is_closed_well(HOST) {
            assert_eq!(net.delivered(SERVER), bytes[HOST], "{describe}");
        }
    }
    // If no host goes away or lies, all data arrives once the paths are clean.
    let patient = until <= Time::ZERO + Span::from_secs(30)
        && misbehaviour.vanishes.is_none()
        && misbehaviour.lies == 0.0
        // One byte at a time takes longer than a server waits for the acknowledgment of its FIN.
        && host.mss > 1
        && server.mss > 1
        && !each_segment_takes_a_timeout(&settings, &host);
    if patient && net.ends.iter().all(Option::is_some) {
        assert!(net.is_closed_well(SERVER), "the server's close; {describe}");
        assert!(net.is_closed_well(HOST), "the host's close; {describe}");
    }
}

/// Runs these seeds, and reports which fail.
fn cases(seeds: std::ops::Range<u64>) {
    let failed: Vec<(u64, String)> = seeds
        .filter_map(|seed| {
            let result = std::panic::catch_unwind(|| case(seed));
            let payload = result.err()?;
            let message = payload
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| payload.downcast_ref::<&str>().map(|&s| s.to_owned()))
                .unwrap_or_default();
            Some((seed, message))
        })
        .collect();
    let seeds: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    assert!(
        failed.is_empty(),
        "{} seeds fail: {seeds:?}; the first: {}",
        failed.len(),
        failed[0].1
    );
}

/// `SEED=n` runs a single one.
#[test]
fn hostile_paths_and_hosts() {
    if let Ok(seed) = std::env::var("SEED") {
        case(seed.parse().expect("a number"));
        return;
    }
    cases(0..1000);
}

#[test]
#[ignore = "minutes; make test-slow"]
fn ten_thousand_hostile_networks() {
    cases(0..10_000);
}
