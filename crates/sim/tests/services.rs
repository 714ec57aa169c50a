//! Calls, files, mail, video, echoes and users against manual calculation: round trips on an idle
//! link, and termination under losses.

use std::sync::Arc;

use crate::two_hosts::{IDLE, Path, run};
use bentpipe_host::applications::{
    Codec, Direction, EchoBy, FtpMode, FtpSettings, Http, JitterBuffer, MailSettings, MixSettings,
    PageModel, PingSettings, Share, Tls, VideoCallSettings, VideoSettings, VoiceSettings,
    WebSettings,
};
use bentpipe_host::{Distribution, emodel};
use bentpipe_sim::{FlowOutcome, FlowState, Traffic};
use bentpipe_types::Span;
use proptest::prelude::*;

fn only(path: Path, traffic: Traffic) -> FlowOutcome {
    let outcome = run(path, &[("flow", traffic)], 10_000);
    outcome.flows.into_iter().next().expect("one flow")
}

/// Converts a time to round trips of the idle link.
fn rounds(time: Span) -> f64 {
    time.as_secs_f64() / 0.6
}

fn assert_near(measured: f64, expected: f64) {
    assert!(
        (measured - expected).abs() < 1e-3,
        "{measured}, not {expected}"
    );
}

const NONE: Distribution = Distribution::Constant(0.0);

fn ping(by: EchoBy) -> PingSettings {
    PingSettings {
        by,
        size: 56,
        interval: Span::from_secs(1),
        count: Some(10),
    }
}

#[test]
fn an_echo_takes_a_round_trip() {
    for by in [EchoBy::Icmp, EchoBy::Udp] {
        let flow = only(IDLE, Traffic::Ping(ping(by)));
        let echoes = flow.report.echoes.as_ref().expect("it asks");
        assert_eq!((echoes.sent, echoes.received, echoes.bytes), (10, 10, 560));
        assert_near(rounds(echoes.times.min().expect("some")), 1.0);
        assert_near(rounds(echoes.times.max().expect("some")), 1.0);
        assert_eq!(flow.state, FlowState::Finished);
        assert_near(flow.finish.expect("finished").as_secs_f64(), 9.6);
    }
}

fn call(codec: Codec) -> VoiceSettings {
    VoiceSettings {
        codec,
        packet: Span::from_millis(20),
        jitter_buffer: JitterBuffer::Fixed(Span::from_millis(60)),
        lasts: Some(Distribution::Constant(10.0)),
        pause: Distribution::Constant(1.0),
        count: Some(2),
    }
}

#[test]
fn rating_of_a_call_over_a_satellite_follows_g107() {
    // 300 ms of path, 20 ms of packet, 60 ms of jitter buffer, and G.729's look-ahead of 5 ms. (R
    // computed independently by G.107 equations 7-18 to 7-28, and 11 less for G.729.)
    for (codec, delay_ms, rating) in [(Codec::G711, 380, 64.06), (Codec::G729, 385, 52.59)] {
        let flow = only(IDLE, Traffic::Voice(call(codec)));
        assert_eq!(flow.state, FlowState::Finished);
        let calls = &flow.report.calls.as_ref().expect("calls").calls;
        assert_eq!(calls.len(), 2);
        for call in calls {
            assert_eq!(call.lasts, Some(Span::from_secs(10)));
            for heard in [call.there, call.back] {
                let heard = heard.expect("both ends heard");
                assert_eq!((heard.packets, heard.lost, heard.late), (500, 0, 0));
                let delay = heard.delay.expect("heard").as_millis_f64();
                assert!((delay - f64::from(delay_ms)).abs() < 0.1, "{delay}");
                assert!((heard.rating - rating).abs() < 0.02, "{}", heard.rating);
                assert_eq!(heard.opinion, emodel::opinion(heard.rating));
            }
        }
        // The RTP header, and 160 or 20 bytes of speech, a thousand times in each direction.
        let payload = match codec {
            Codec::G711 => 172,
            Codec::G729 => 32,
        };
        assert_eq!(flow.bytes_delivered(), 2 * 1_000 * payload);
    }
}

#[test]
fn loss_share_of_a_call_equals_the_loss_rate_of_the_link() {
    let path = Path { loss: 0.05, ..IDLE };
    let settings = VoiceSettings {
        lasts: Some(Distribution::Constant(2_000.0)),
        count: Some(1),
        ..call(Codec::G711)
    };
    let flow = only(path, Traffic::Voice(settings));
    let call = flow.report.calls.as_ref().expect("calls").calls[0];
    for heard in [call.there, call.back] {
        let heard = heard.expect("heard");
        assert_eq!((heard.packets, heard.late), (100_000, 0));
        // The standard deviation is 69 packets.
        assert!(
            (heard.lost as f64 - 5_000.0).abs() < 350.0,
            "{}",
            heard.lost
        );
        // Random loss: Ie,eff of equation 7-29 with a burst ratio of 1, within random variation.
        let share = heard.lost as f64 / 1e5;
        let rating = emodel::rating(
            Codec::G711.impairment(),
            heard.delay.expect("some"),
            share,
            1.0,
        );
        assert!(
            (heard.rating - rating).abs() < 0.2,
            "{} {rating}",
            heard.rating
        );
    }
}

#[test]
fn a_call_without_received_packets_has_the_lowest_rating() {
    let path = Path { loss: 1.0, ..IDLE };
    let flow = only(path, Traffic::Voice(call(Codec::G711)));
    assert_eq!(flow.state, FlowState::Finished);
    for call in &flow.report.calls.as_ref().expect("calls").calls {
        for heard in [call.there, call.back] {
            let heard = heard.expect("known by now");
            assert_eq!((heard.packets, heard.lost, heard.delay), (500, 500, None));
            assert!(heard.opinion < 1.3);
        }
    }
}

fn files(mode: FtpMode, direction: Direction) -> FtpSettings {
    FtpSettings {
        mode,
        direction,
        size: Distribution::Constant(10_000.0),
        pause: Distribution::Constant(2.0),
        count: Some(3),
    }
}

#[test]
fn a_file_takes_the_round_trips_of_ftp() {
    // The greeting arrives in the second round trip. USER, PASS, TYPE: one each. A passive file:
    // PASV, the data connection's handshake, RETR with reply and data, and half a round trip after
    // their acknowledgment 226. Active: PORT; RETR and the handshake that it causes take one and a
    // half, data and their acknowledgment one, 226 a half. STOR: its reply, data, 226.
    for mode in [FtpMode::Passive, FtpMode::Active] {
        for direction in [Direction::Download, Direction::Upload] {
            let flow = only(IDLE, Traffic::Ftp(files(mode, direction)));
            assert_eq!(flow.state, FlowState::Finished, "{mode:?} {direction:?}");
            let files = flow.report.files.as_ref().expect("files");
            assert_eq!(
                (files.begun, files.times.len(), files.bytes),
                (3, 3, 30_000)
            );
            let expected = match (mode, direction) {
                // PORT; STOR, handshake, 150: one and a half, and a half; data and 226.
                (FtpMode::Active, Direction::Upload) => 1.0 + 2.0 + 1.0,
                _ => 4.0,
            };
            for time in &files.times {
                assert_near(rounds(*time), expected);
            }
            let finish = flow.finish.expect("finished").as_secs_f64();
            assert_near(finish, 0.6 * (5.0 + 3.0 * expected + 1.0) + 2.0 * 2.0);
        }
    }
}

fn mails(pipelining: bool) -> MailSettings {
    MailSettings {
        size: Distribution::Constant(10_000.0),
        pause: Distribution::Constant(3.0),
        count: Some(4),
        pipelining,
    }
}

#[test]
fn a_mail_takes_the_round_trips_of_smtp() {
    // The greeting arrives in the second round trip; then EHLO, MAIL, RCPT, DATA and the message;
    // with pipelining EHLO, three commands together, and the message.
    for (pipelining, expected) in [(false, 7.0), (true, 5.0)] {
        let flow = only(IDLE, Traffic::Mail(mails(pipelining)));
        assert_eq!(flow.state, FlowState::Finished);
        let mails = flow.report.mails.as_ref().expect("mails");
        assert_eq!(
            (mails.begun, mails.times.len(), mails.bytes),
            (4, 4, 40_000)
        );
        for time in &mails.times {
            assert_near(rounds(*time), expected);
        }
        // Includes QUIT.
        let finish = flow.finish.expect("finished").as_secs_f64();
        assert_near(finish, 4.0 * 0.6 * (expected + 1.0) + 3.0 * 3.0);
    }
}

fn film() -> VideoSettings {
    VideoSettings {
        segment: Span::from_secs(4),
        ladder: Arc::from([400_000, 1_500_000, 6_000_000]),
        buffer: Span::from_secs(30),
        start_up: Span::from_secs(4),
        lasts: Some(Span::from_secs(120)),
    }
}

#[test]
fn video_playback_starts_after_the_first_segment_and_completes() {
    let flow = only(IDLE, Traffic::Video(film()));
    let viewing = flow.report.viewing.as_ref().expect("a viewer");
    assert_eq!((viewing.segments, viewing.stalls), (30, 0));
    assert_eq!(viewing.played, Span::from_secs(120));
    // The handshake; 200,000 B are 139 segments: 10, 20, 40 and the rest.
    assert_near(rounds(viewing.start_ups[0]), 5.0);
    let finish = flow.finish.expect("finished").as_secs_f64();
    assert_near(finish, 0.6 * 5.0 + 120.0);
    // The first segment at the lowest rate, then the sustained rate: on a short path the highest.
    let near = Path {
        delay: Span::from_millis(2),
        ..IDLE
    };
    let flow = only(near, Traffic::Video(film()));
    let viewing = flow.report.viewing.as_ref().expect("a viewer");
    assert_eq!((viewing.last_rate, viewing.switches), (6_000_000, 1));
    assert_eq!(viewing.bits, 4.0 * (400e3 + 29.0 * 6e6));
}

#[test]
fn video_on_a_slow_link_stalls_for_the_missing_time() {
    let path = Path {
        rate: 300_000,
        delay: Span::from_millis(20),
        ..IDLE
    };
    let flow = only(path, Traffic::Video(film()));
    let viewing = flow.report.viewing.as_ref().expect("a viewer");
    assert_eq!(viewing.played, Span::from_secs(120));
    assert!(viewing.stalls > 5 && viewing.switches == 0);
    let start_up = viewing.start_ups[0].as_secs_f64();
    let finish = flow.finish.expect("finished").as_secs_f64();
    assert!((finish - start_up - viewing.stalled.as_secs_f64() - 120.0).abs() < 1e-6);
    // 120 s of 400 kbit/s with headers take somewhat more than 160 s at 300 kbit/s; the last
    // segment plays 4 s more.
    assert!((166.0..180.0).contains(&finish), "{finish}");
}

fn office(pause: f64) -> MixSettings {
    let share = |name: &str, weight: f64, traffic: Traffic| Share {
        name: Arc::from(name),
        weight,
        traffic,
    };
    let web = WebSettings {
        http: Http::One,
        tls: Tls::V1_3,
        resumption: false,
        page: PageModel::ThreeGpp,
        levels: 2,
        request: 400,
        think: Span::ZERO,
        reading: NONE,
        count: Some(1),
    };
    let one_mail = MailSettings {
        count: Some(1),
        ..mails(false)
    };
    let one_call = VoiceSettings {
        count: Some(1),
        lasts: Some(Distribution::Exponential(4.0)),
        ..call(Codec::G729)
    };
    let one_file = FtpSettings {
        count: Some(1),
        ..files(FtpMode::Active, Direction::Download)
    };
    MixSettings {
        pause: Distribution::Exponential(pause),
        shares: Arc::from([
            share("web", 0.5, Traffic::Web(web)),
            share("mail", 0.2, Traffic::Mail(one_mail)),
            share("voice", 0.1, Traffic::Voice(one_call)),
            share("ftp", 0.1, Traffic::Ftp(one_file)),
            share("ping", 0.1, Traffic::Ping(ping(EchoBy::Icmp))),
        ]),
    }
}

#[test]
fn a_user_chooses_activities_by_their_shares() {
    let path = Path {
        delay: Span::from_millis(1),
        ..IDLE
    };
    let outcome = run(path, &[("user", Traffic::Mix(office(5.0)))], 40_000);
    let report = &outcome.flows[0].report;
    let all: u64 = report.activities.iter().map(|done| done.begun).sum();
    assert!(all > 3_000, "{all}");
    for (done, share) in report.activities.iter().zip([0.5, 0.2, 0.1, 0.1, 0.1]) {
        // Within four standard deviations.
        let expected = share * all as f64;
        let apart = (done.begun as f64 - expected).abs();
        assert!(
            apart < 4.0 * (expected * (1.0 - share)).sqrt(),
            "{done:?} of {all}"
        );
        assert_eq!(done.failed, 0, "{done:?}");
        assert!(done.begun - done.finished <= 1);
    }
}

fn meeting() -> VideoCallSettings {
    VideoCallSettings {
        least_rate: 100_000,
        most_rate: 800_000,
        frame_rate: 25,
        datagram: 1_200,
        lasts: Some(Distribution::Exponential(10.0)),
        pause: Distribution::Constant(1.0),
        count: Some(2),
    }
}

fn services() -> Vec<(&'static str, Traffic)> {
    vec![
        ("icmp", Traffic::Ping(ping(EchoBy::Icmp))),
        ("udp", Traffic::Ping(ping(EchoBy::Udp))),
        ("call", Traffic::Voice(call(Codec::G711))),
        (
            "get",
            Traffic::Ftp(files(FtpMode::Passive, Direction::Download)),
        ),
        (
            "put",
            Traffic::Ftp(files(FtpMode::Active, Direction::Upload)),
        ),
        ("mail", Traffic::Mail(mails(false))),
        ("film", Traffic::Video(film())),
        ("meeting", Traffic::VideoCall(meeting())),
        ("user", Traffic::Mix(office(1.0))),
    ]
}

/// Returns the application report of a flow as text.
fn report_of(flow: &FlowOutcome) -> String {
    format!("{:?}", flow.report)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    /// Under any losses: each application ends with its bytes; the same seed gives the same result;
    /// each activity of a user ends or is the last.
    #[test]
    fn services_end_under_any_losses(seed in any::<u64>(), loss in 0.0_f64..0.08) {
        let path = Path { rate: 5_000_000, delay: Span::from_millis(60), loss, seed };
        let outcome = run(path, &services(), 2_000);
        for flow in outcome.flows.iter().filter(|flow| flow.name != "user") {
            prop_assert_eq!(flow.state, FlowState::Finished, "{}", &flow.name);
            let report = &flow.report;
            for transfers in [&report.files, &report.mails].into_iter().flatten() {
                prop_assert_eq!(transfers.begun, transfers.times.len() as u64);
                prop_assert_eq!(transfers.bytes, 10_000 * transfers.begun);
            }
            if let Some(echoes) = &report.echoes {
                prop_assert!(echoes.sent == 10 && echoes.received <= 10);
            }
            for call in report.calls.iter().flat_map(|calls| &calls.calls) {
                for heard in [call.there, call.back].into_iter().flatten() {
                    prop_assert!(heard.packets == 500 && heard.lost + heard.late <= 500);
                    prop_assert!((1.0..=4.5).contains(&heard.opinion));
                }
            }
            for call in report.video_calls.iter().flat_map(|calls| &calls.calls) {
                for seen in [call.there, call.back].into_iter().flatten() {
                    prop_assert!(seen.shown <= seen.frames, "{seen:?}");
                    prop_assert!(seen.lost + seen.late <= seen.packets, "{seen:?}");
                    prop_assert!((1.0..=5.0).contains(&seen.opinion), "{seen:?}");
                }
            }
            if let Some(viewing) = &report.viewing {
                prop_assert_eq!(viewing.played, Span::from_secs(120));
            }
        }
        let user = outcome.flows.last().expect("the user");
        let open: u64 = (user.report.activities.iter())
            .map(|done| done.begun - done.finished - done.failed)
            .sum();
        prop_assert!(open <= 1);
        let again = run(path, &services(), 2_000);
        for (one, other) in outcome.flows.iter().zip(&again.flows) {
            prop_assert_eq!(report_of(one), report_of(other));
        }
    }
}

#[test]
fn an_additional_flow_does_not_change_results_of_others_without_contention() {
    // On a link without contention, each flow has the same result with and without the others.
    let flows = services();
    let all = run(IDLE, &flows, 3_000);
    for without in 0..flows.len() {
        let mut fewer = flows.clone();
        fewer.remove(without);
        let outcome = run(IDLE, &fewer, 3_000);
        for flow in &outcome.flows {
            let before = all.flows.iter().find(|before| before.name == flow.name);
            let activities = |flow: &FlowOutcome| flow.report.activities.clone();
            let before = before.expect("it was there");
            assert_eq!(activities(flow), activities(before));
            if flow.name == "meeting" {
                // Its rate follows the delays, which other flows' packets change by microseconds.
                assert_eq!(calls_and_frames(flow), calls_and_frames(before));
                continue;
            }
            assert_eq!(
                flow.bytes_delivered(),
                before.bytes_delivered(),
                "{}",
                flow.name
            );
        }
    }
}

/// Returns the lengths of video calls, and the frames that each end was sent.
fn calls_and_frames(flow: &FlowOutcome) -> Vec<(Option<Span>, [Option<u64>; 2])> {
    let calls = flow.report.video_calls.as_ref().expect("video calls");
    (calls.calls.iter())
        .map(|call| {
            (
                call.lasts,
                [call.there, call.back].map(|seen| seen.map(|seen| seen.frames)),
            )
        })
        .collect()
}

/// If nothing arrives, no application waits for ever: an unanswered connection is given up and
/// reported as such; a sender of datagrams has sent them and received nothing.
#[test]
fn applications_without_replies_give_up_or_report_zero_received() {
    let nowhere = Path {
        rate: 5_000_000,
        delay: Span::from_millis(60),
        loss: 1.0,
        seed: 1,
    };
    let outcome = run(nowhere, &services(), 5_000);
    for flow in &outcome.flows {
        let report = &flow.report;
        let heard = match flow.name.as_str() {
            "icmp" | "udp" => report.echoes.as_ref().map(|echoes| echoes.received),
            "call" => report.calls.as_ref().map(|calls| {
                let ends = calls.qualities();
                ends.map(|end| end.packets - end.lost).sum()
            }),
            "meeting" => report.video_calls.as_ref().map(|calls| {
                let ends = calls.qualities();
                ends.map(|end| end.packets - end.lost).sum()
            }),
            // A user's activity fails, and the next one begins.
            "user" => {
                let done = &report.activities;
                let failed: u64 = done.iter().map(|each| each.failed).sum();
                assert!(failed > 0, "{done:?}");
                continue;
            }
            name => {
                assert_eq!(flow.state, FlowState::GaveUp, "{name}");
                continue;
            }
        };
        assert_eq!(flow.state, FlowState::Finished, "{}", flow.name);
        assert_eq!(heard, Some(0), "{}", flow.name);
    }
}
