//! Applications against manual calculation: round trips of a page, mean wait of a queue by formula,
//! and equal numbers of requests and responses under losses.

use crate::two_hosts::{IDLE, Path, run};
use bentpipe_host::Distribution;
use bentpipe_host::applications::{
    BulkSettings, Direction, Http, PacketsSettings, PageModel, RequestResponseSettings, Tls,
    Transport, WebSettings,
};
use bentpipe_sim::{FlowOutcome, FlowState, Traffic};
use bentpipe_types::Span;
use proptest::prelude::*;

fn page(http: Http, tls: Tls, resumption: bool) -> WebSettings {
    WebSettings {
        http,
        tls,
        resumption,
        page: PageModel::Fixed {
            document: 10_000,
            objects: 12,
            size: 1_000,
        },
        levels: 1,
        request: 400,
        think: Span::from_millis(50),
        reading: Distribution::Constant(1.0),
        count: Some(1),
    }
}

/// Returns load time and time to first byte in round trips of 600 ms, without server think time.
fn in_round_trips(settings: WebSettings, thinks: u32) -> (f64, f64) {
    let outcome = run(IDLE, &[("page", Traffic::Web(settings))], 1_000);
    let flow = &outcome.flows[0];
    assert_eq!(flow.state, FlowState::Finished);
    let pages = flow.report.pages.as_ref().expect("it is a browser");
    let [page] = pages.loaded[..] else {
        panic!("one page")
    };
    assert_eq!(flow.finish, Some(page.start + page.load));
    assert_eq!((page.objects, page.bytes), (13, 22_000));
    let think = 0.05;
    let load = (page.load.as_secs_f64() - f64::from(thinks) * think) / 0.6;
    (load, (page.first_byte.as_secs_f64() - think) / 0.6)
}

#[test]
fn page_load_time_equals_the_counted_round_trips() {
    // On a link where bytes take no time and every flight fits into the initial window, only round
    // trips and think time count. Document: one round trip each for TCP and for the request, and
    // those of TLS. HTTP/2 objects: one round trip for all. HTTP/1.1: twelve objects on six
    // connections, one of which is open already. It is used in the first round trip after the
    // document and again in the second; the five new ones need a round trip for TCP and some for
    // TLS.
    let tls_rounds = |tls, resumes| match (tls, resumes) {
        (Tls::Off, _) => 0.0,
        (Tls::V1_2, false) => 2.0,
        (Tls::V1_3, _) | (Tls::V1_2, true) => 1.0,
    };
    for tls in [Tls::Off, Tls::V1_2, Tls::V1_3] {
        for resumes in [false, true] {
            let first = 1.0 + tls_rounds(tls, resumes) + 1.0;
            let (load, first_byte) = in_round_trips(page(Http::Two, tls, resumes), 2);
            assert!((first_byte - first).abs() < 1e-3, "{tls:?}: {first_byte}");
            assert!((load - first - 1.0).abs() < 1e-3, "{tls:?}: {load}");
            // HTTP/1.1: when each connection is free, for twelve objects in turn.
            let think = 0.05 / 0.6;
            let open = 1.0 + tls_rounds(tls, true);
            let mut free = [0.0, open, open, open, open, open];
            let mut last: f64 = 0.0;
            for _ in 0..12 {
                let next = (0..6).min_by(|a, b| f64::total_cmp(&free[*a], &free[*b]));
                let line = &mut free[next.expect("six of them")];
                *line += 1.0 + think;
                last = last.max(*line);
            }
            let (load, first_byte) = in_round_trips(page(Http::One, tls, resumes), 1);
            assert!((first_byte - first).abs() < 1e-3, "{tls:?}: {first_byte}");
            assert!((load - first - last).abs() < 1e-3, "{tls:?}: {load} {last}");
        }
    }
}

#[test]
fn each_level_of_objects_takes_a_round_trip() {
    for levels in 1..5 {
        let settings = WebSettings {
            levels,
            ..page(Http::Two, Tls::V1_3, false)
        };
        let (load, _) = in_round_trips(settings, 1 + levels);
        assert!((load - 3.0 - f64::from(levels)).abs() < 1e-3, "{load}");
    }
}

#[test]
fn a_larger_document_takes_the_round_trips_of_slow_start() {
    // 10, 20, 40 segments: 100,000 B are 70 segments in three flights.
    let settings = WebSettings {
        page: PageModel::Fixed {
            document: 69 * 1448,
            objects: 0,
            size: 1,
        },
        ..page(Http::Two, Tls::Off, false)
    };
    let outcome = run(IDLE, &[("page", Traffic::Web(settings))], 1_000);
    let pages = outcome.flows[0].report.pages.as_ref().expect("a browser");
    let rounds = (pages.loaded[0].load.as_secs_f64() - 0.05) / 0.6;
    assert!((rounds - 4.0).abs() < 1e-3, "{rounds}");
}

#[test]
fn response_time_is_round_trip_plus_think_time() {
    let settings = RequestResponseSettings {
        request: Distribution::Constant(200.0),
        response: Distribution::Constant(5_000.0),
        think: Span::from_millis(70),
        pause: Distribution::Constant(0.5),
        count: Some(20),
    };
    let traffic = Traffic::RequestResponse(settings);
    let outcome = run(IDLE, &[("ask", traffic)], 1_000);
    let flow = &outcome.flows[0];
    let responses = flow.report.responses.as_ref().expect("it asks");
    assert_eq!((responses.asked, responses.times.len()), (20, 20));
    for time in &responses.times {
        assert!((time.as_secs_f64() - 0.67).abs() < 1e-4, "{time:?}");
    }
    // The handshake, twenty responses, nineteen pauses.
    let finish = flow.finish.expect("finished").as_secs_f64();
    assert!((finish - (0.6 + 20.0 * 0.67 + 19.0 * 0.5)).abs() < 1e-3);
    // Delivered to the requesting end.
    assert_eq!(flow.bytes_delivered(), 5_000 * 20);
}

#[test]
fn bulk_transfers_work_in_both_directions_and_repeat() {
    for (direction, ways) in [
        (Direction::Upload, 1),
        (Direction::Download, 1),
        (Direction::Both, 2),
    ] {
        let settings = BulkSettings {
            size: Some(30_000),
            direction,
            transfers: 4,
            pause: Span::from_secs(2),
        };
        let path = Path {
            rate: 10_000_000,
            delay: Span::from_millis(100),
            ..IDLE
        };
        let outcome = run(path, &[("bulk", Traffic::Bulk(settings))], 1_000);
        let flow = &outcome.flows[0];
        assert_eq!(flow.state, FlowState::Finished, "{direction:?}");
        assert_eq!(flow.bytes_delivered(), 120_000 * ways);
        // Three pauses of two seconds, and four transfers of some round trips.
        let finish = flow.finish.expect("finished").as_secs_f64();
        assert!((6.0..8.5).contains(&finish), "{direction:?}: {finish}");
        let sender = flow.sender.as_ref().expect("it has begun");
        assert_eq!(sender.segments_sent / ways, 4 * 21);
    }
}

/// Returns the mean delay of packets over UDP without propagation, and the prediction of Pollaczek
/// and Khinchine.
fn queueing(size: Distribution, second_moment: f64, load: f64) -> (f64, f64) {
    // UDP and IP headers take service time too: sizes are those of whole packets minus 28 bytes.
    let rate = 8e6;
    let headers = 28.0;
    let mean = size.mean() + headers;
    let square = second_moment + 2.0 * headers * size.mean() + headers * headers;
    let service = mean * 8.0 / rate;
    let service_square = square * 64.0 / (rate * rate);
    let interval = service / load;
    let settings = PacketsSettings {
        transport: Transport::Udp,
        size,
        interval: Distribution::Exponential(interval),
        bursts: None,
        lasts: None,
        largest: PacketsSettings::LARGEST,
    };
    let path = Path {
        rate: rate as u64,
        delay: Span::from_millis(10),
        ..IDLE
    };
    let seconds = (interval * 2e6) as u64;
    let outcome = run(path, &[("packets", Traffic::Packets(settings))], seconds);
    let messages = outcome.flows[0].report.messages.as_ref().expect("packets");
    assert!(messages.received > 1_900_000);
    let measured = messages.delays.mean().expect("packets").as_secs_f64() - 0.01;
    let expected = service + service_square / interval / (2.0 * (1.0 - load));
    (measured, expected)
}

#[test]
fn mean_waiting_time_follows_pollaczek_khinchine() {
    for (size, second_moment) in [
        (Distribution::Constant(972.0), 972.0 * 972.0),
        (Distribution::Exponential(972.0), 2.0 * 972.0 * 972.0),
        (
            Distribution::Uniform(100.0, 1_844.0),
            972.0 * 972.0 + 1_744.0 * 1_744.0 / 12.0,
        ),
    ] {
        for load in [0.3, 0.7] {
            let (measured, expected) = queueing(size, second_moment, load);
            let ratio = measured / expected;
            assert!((ratio - 1.0).abs() < 0.02, "{size:?} {load}: {ratio}");
        }
    }
}

fn packets(transport: Transport) -> Traffic {
    Traffic::Packets(PacketsSettings {
        transport,
        size: Distribution::Pareto {
            mean: 900.0,
            shape: 1.5,
        },
        interval: Distribution::Exponential(0.02),
        bursts: Some((
            Distribution::Exponential(1.0),
            Distribution::Exponential(2.0),
        )),
        lasts: Some(Span::from_secs(30)),
        largest: PacketsSettings::LARGEST,
    })
}

#[test]
fn an_on_off_source_sends_for_its_share_of_the_time() {
    let settings = PacketsSettings {
        transport: Transport::Udp,
        size: Distribution::Constant(100.0),
        interval: Distribution::Constant(0.01),
        bursts: Some((
            Distribution::Exponential(1.0),
            Distribution::Exponential(3.0),
        )),
        lasts: None,
        largest: PacketsSettings::LARGEST,
    };
    let path = Path {
        delay: Span::from_millis(1),
        ..IDLE
    };
    let seconds = 100_000;
    let outcome = run(path, &[("packets", Traffic::Packets(settings))], seconds);
    let messages = outcome.flows[0].report.messages.as_ref().expect("packets");
    // 25,000 bursts and pauses: a standard error of about 1%.
    let share = messages.sent as f64 / (100.0 * seconds as f64);
    assert!((share - 0.25).abs() < 0.01, "{share}");
}

fn everything() -> Vec<(&'static str, Traffic)> {
    let ask = RequestResponseSettings {
        request: Distribution::Exponential(300.0),
        response: Distribution::Pareto {
            mean: 8_000.0,
            shape: 1.3,
        },
        think: Span::from_millis(20),
        pause: Distribution::Exponential(0.3),
        count: Some(15),
    };
    let three = WebSettings {
        page: PageModel::ThreeGpp,
        levels: 2,
        reading: Distribution::Exponential(2.0),
        count: Some(4),
        ..page(Http::One, Tls::V1_3, false)
    };
    vec![
        ("ask", Traffic::RequestResponse(ask)),
        ("one", Traffic::Web(three)),
        ("two", Traffic::Web(page(Http::Two, Tls::V1_2, false))),
        ("tcp", packets(Transport::Tcp)),
        ("udp", packets(Transport::Udp)),
        ("bulk", Traffic::bulk(Some(100_000))),
    ]
}

/// Returns the random draws of a flow, independent of its outcome.
fn random_draws(flow: &FlowOutcome) -> Vec<u64> {
    let report = &flow.report;
    let pages = report.pages.iter().flat_map(|pages| &pages.loaded);
    let messages = report.messages.iter().map(|messages| messages.sent);
    let asked = report.responses.iter().map(|responses| responses.asked);
    pages
        .flat_map(|page| [page.bytes, u64::from(page.objects)])
        .chain(messages)
        .chain(asked)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Under any losses: each application ends with as many responses as requests and all bytes in
    /// place; the same seed gives the same result; an additional flow changes no other's draws.
    #[test]
    fn applications_end_under_any_losses(seed in any::<u64>(), loss in 0.0_f64..0.08, without in 0_usize..6) {
        let path = Path { rate: 5_000_000, delay: Span::from_millis(60), loss, seed };
        let mut flows = everything();
        let outcome = run(path, &flows, 5_000);
        for flow in &outcome.flows {
            prop_assert_eq!(flow.state, FlowState::Finished, "{}", &flow.name);
            let report = &flow.report;
            if let Some(responses) = &report.responses {
                prop_assert_eq!(responses.asked, 15);
                prop_assert_eq!(responses.times.len(), 15);
            }
            if let Some(pages) = &report.pages {
                prop_assert_eq!(pages.begun, pages.loaded.len() as u64);
                prop_assert!(pages.loaded.iter().all(|page| page.first_byte <= page.load));
            }
            if let Some(messages) = &report.messages {
                // TCP delivers all of them.
                prop_assert!(flow.name == "udp" || messages.sent == messages.received);
                prop_assert!(messages.received <= messages.sent);
            }
        }
        let again = run(path, &flows, 5_000);
        prop_assert_eq!(outcome.ended, again.ended);
        prop_assert_eq!(outcome.packet_hops, again.packet_hops);
        flows.remove(without);
        let fewer = run(path, &flows, 5_000);
        let others = outcome.flows.iter().filter(|flow| fewer.flows.iter().any(|f| f.name == flow.name));
        for (flow, same) in others.zip(&fewer.flows) {
            prop_assert_eq!(random_draws(flow), random_draws(same), "{}", &flow.name);
        }
    }
}
