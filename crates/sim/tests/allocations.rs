//! The path of a packet allocates nothing once the slab, rings and heaps have grown to the packets
//! in flight.

use std::sync::Arc;

use bentpipe_host::Distribution;
use bentpipe_host::applications::{
    BulkSettings, Codec, Direction, EchoBy, FtpMode, FtpSettings, Http, JitterBuffer, MailSettings,
    MixSettings, PacketsSettings, PageModel, PingSettings, RequestResponseSettings, Share, Tls,
    Transport, VoiceSettings, WebSettings,
};
use bentpipe_link::{
    DelayBounds, DropTail, Fair, FairSettings, FqCodel, FqCodelSettings, Limit, Measure, Pie,
    PieSettings, QueueDiscipline, Queueing, Red, RedSettings, Settings,
};
use bentpipe_sim::{FlowSettings, LinkSettings, Network, NetworkBuilder, Traffic};
use bentpipe_tcp::{BufferSizes, Config};
use bentpipe_types::{BitRate, Bytes, RandomStream, Span, Time};

/// server --100 Mbit/s, 300 ms--> client, with a window for which the queue has room.
fn network_with(queue: impl FnMut(usize) -> Queueing) -> Network {
    network_of(&[Traffic::bulk(None)], queue)
}

/// The same network with these flows.
fn network_of(flows: &[Traffic], queue: impl FnMut(usize) -> Queueing) -> Network {
    let sender = Config {
        send_buffer: 16_000_000,
        ..Config::default()
    };
    let receiver = Config {
        receive_buffer: 8_000_000,
        ..Config::default()
    };
    network_between(flows, [sender, receiver], queue)
}

/// The same network with these ends.
fn network_between(
    flows: &[Traffic],
    ends: [Config; 2],
    mut queue: impl FnMut(usize) -> Queueing,
) -> Network {
    let [sender, receiver] = ends.map(Arc::new);
    let mut builder = NetworkBuilder::new(1);
    let server = builder.host("server");
    let client = builder.host("client");
    let mut direction = |way| {
        BitRate::new(100_000_000)
            .map(|rate| Settings::new(rate, Span::from_millis(300), queue(way)))
    };
    let link = LinkSettings {
        name: "satellite".to_owned(),
        forward: direction(0),
        backward: direction(1),
    };
    builder.link(server, client, link);
    for (number, application) in flows.iter().enumerate() {
        builder.flow(FlowSettings {
            name: format!("flow-{number}"),
            from: server,
            to: client,
            start: Span::from_millis(10 * number as u64),
            application: application.clone(),
            sender: Arc::clone(&sender),
            receiver: Arc::clone(&receiver),
        });
    }
    builder.build().expect("it fits together")
}

#[test]
fn a_run_in_steady_state_does_not_allocate() {
    let mut network = network_with(|_| {
        DropTail {
            limit: Limit::Packets(10_000),
        }
        .into()
    });
    network.run_until(Time::ZERO + Span::from_secs(20));
    let mut packet_hops = 0;
    let allocations = allocation_counter::measure(|| {
        network.run_until(Time::ZERO + Span::from_secs(30));
    });
    packet_hops += network.outcome().packet_hops;
    assert!(packet_hops > 100_000, "{packet_hops} packet-hops");
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

/// Queues other than drop-tail do not allocate either.
#[test]
fn queues_other_than_drop_tail_do_not_allocate() {
    let fair = || {
        Box::new(Fair::new(FairSettings {
            limit: Limit::Packets(10_000),
            quantum: Bytes::new(1500),
            flows: 64,
        })) as Box<dyn QueueDiscipline>
    };
    let red = || {
        Box::new(Red::new(RedSettings {
            limit: Limit::Packets(10_000),
            measure: Measure::Packets,
            minimum_threshold: 5_000.0,
            maximum_threshold: 10_000.0,
            maximum_probability: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: false,
            mean_packet: Bytes::new(1000),
            mean_transmission: Span::from_micros(80),
        })) as Box<dyn QueueDiscipline>
    };
    let fq_codel = || {
        Box::new(FqCodel::new(FqCodelSettings {
            limit: Limit::Packets(10_000),
            bounds: DelayBounds {
                target: Span::from_secs(5),
                interval: Span::from_secs(10),
                ecn: true,
            },
            quantum: Bytes::new(1500),
            flows: 64,
        })) as Box<dyn QueueDiscipline>
    };
    let pie = || {
        Box::new(Pie::new(PieSettings {
            limit: Limit::Packets(10_000),
            target: Span::from_secs(5),
            update_interval: Span::from_millis(15),
            burst_allowance: Span::from_millis(150),
            ecn: true,
        })) as Box<dyn QueueDiscipline>
    };
    for (there, back) in [(red(), fair()), (fq_codel(), pie())] {
        let mut queues = [Some(there), Some(back)];
        let mut network = network_with(|way| Queueing::Discipline {
            queue: queues[way].take().expect("one each way"),
            random: RandomStream::new(1, "link", "queue"),
        });
        network.run_until(Time::ZERO + Span::from_secs(20));
        let allocations = allocation_counter::measure(|| {
            network.run_until(Time::ZERO + Span::from_secs(30));
        });
        assert!(network.outcome().packet_hops > 100_000);
        assert_eq!(allocations.count_total, 0, "{allocations:?}");
    }
}

/// Applications that send packet by packet do not allocate, alone or as activities of a user.
#[test]
fn calls_echoes_and_datagrams_do_not_allocate() {
    let call = Traffic::Voice(VoiceSettings {
        codec: Codec::G711,
        packet: Span::from_millis(10),
        jitter_buffer: JitterBuffer::Fixed(Span::from_millis(60)),
        lasts: Some(Distribution::Constant(1_000.0)),
        pause: Distribution::Constant(1.0),
        count: Some(1),
    });
    let echo = |by| {
        Traffic::Ping(PingSettings {
            by,
            size: 56,
            interval: Span::from_millis(10),
            count: None,
        })
    };
    let datagrams = Traffic::Packets(PacketsSettings {
        transport: Transport::Udp,
        size: Distribution::Uniform(100.0, 1_000.0),
        interval: Distribution::Constant(0.005),
        bursts: None,
        lasts: None,
        largest: PacketsSettings::LARGEST,
    });
    let user = Traffic::Mix(MixSettings {
        pause: Distribution::Constant(1.0),
        shares: Arc::from([Share {
            name: Arc::from("voice"),
            weight: 1.0,
            traffic: call.clone(),
        }]),
    });
    let flows = [call, echo(EchoBy::Icmp), echo(EchoBy::Udp), datagrams, user];
    let mut network = network_of(&flows, |_| {
        DropTail {
            limit: Limit::Packets(10_000),
        }
        .into()
    });
    network.run_until(Time::ZERO + Span::from_secs(20));
    let allocations = allocation_counter::measure(|| {
        network.run_until(Time::ZERO + Span::from_secs(30));
    });
    let outcome = network.outcome();
    assert!(outcome.packet_hops > 20_000, "{}", outcome.packet_hops);
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

/// Pages, files, mail and responses do not allocate per packet: each allocates once, whatever its
/// length.
#[test]
fn pages_files_mails_and_responses_do_not_allocate_per_packet() {
    let page = |http| {
        Traffic::Web(WebSettings {
            http,
            tls: Tls::V1_3,
            resumption: false,
            page: PageModel::Fixed {
                document: 10_000,
                objects: 1,
                size: 1_000_000_000,
            },
            levels: 1,
            request: 400,
            think: Span::from_millis(50),
            reading: Distribution::Constant(1.0),
            count: Some(1),
        })
    };
    let file = |mode, direction| {
        Traffic::Ftp(FtpSettings {
            mode,
            direction,
            size: Distribution::Constant(1e9),
            pause: Distribution::Constant(1.0),
            count: Some(1),
        })
    };
    let mail = Traffic::Mail(MailSettings {
        size: Distribution::Constant(1e9),
        pause: Distribution::Constant(1.0),
        count: Some(1),
        pipelining: false,
    });
    let answer = Traffic::RequestResponse(RequestResponseSettings {
        request: Distribution::Constant(300.0),
        response: Distribution::Constant(1e9),
        think: Span::from_millis(20),
        pause: Distribution::Constant(1.0),
        count: Some(1),
    });
    let datagrams = Traffic::Packets(PacketsSettings {
        transport: Transport::Tcp,
        size: Distribution::Uniform(100.0, 1_000.0),
        interval: Distribution::Constant(0.005),
        bursts: None,
        lasts: None,
        largest: PacketsSettings::LARGEST,
    });
    let flows = [
        page(Http::One),
        page(Http::Two),
        file(FtpMode::Passive, Direction::Download),
        file(FtpMode::Active, Direction::Upload),
        mail,
        answer,
        datagrams,
    ];
    for flow in flows {
        let mut network = network_of(std::slice::from_ref(&flow), |_| {
            DropTail {
                limit: Limit::Packets(10_000),
            }
            .into()
        });
        network.run_until(Time::ZERO + Span::from_secs(20));
        let before = network.outcome().packet_hops;
        let allocations = allocation_counter::measure(|| {
            network.run_until(Time::ZERO + Span::from_secs(23));
        });
        let hops = network.outcome().packet_hops - before;
        assert!(hops > 300, "{hops} of {flow:?}");
        assert_eq!(allocations.count_total, 0, "{allocations:?} of {flow:?}");
    }
}

/// Memory of a connected, idle end of a flow: connection, buffers, application, and table entries.
/// Settings are shared.
#[test]
fn an_idle_end_of_a_flow_keeps_less_than_three_kibibytes() {
    const FLOWS: usize = 2_000;
    let traffic = Traffic::Bulk(BulkSettings {
        size: Some(3_000),
        direction: Direction::Upload,
        transfers: 2,
        pause: Span::from_secs(1_000),
    });
    let kept = |flows: usize| {
        let mut network = None;
        let kept = allocation_counter::measure(|| {
            let drop_tail = |_| {
                let limit = Limit::Packets(10_000);
                DropTail { limit }.into()
            };
            let end = Config {
                send_sizes: Some(BufferSizes::SEND),
                receive_sizes: Some(BufferSizes::RECEIVE),
                ..Config::default()
            };
            let ends = [end.clone(), end];
            let mut made = network_between(&vec![traffic.clone(); flows], ends, drop_tail);
            made.run_until(Time::ZERO + Span::from_secs(100));
            assert_eq!(made.packets_held(), 0);
            network = Some(made);
        });
        let outcome = network.as_mut().map(Network::outcome);
        let delivered = outcome.map(|outcome| outcome.directions[0].counters.delivered);
        assert!(delivered.is_some_and(|packets| packets as usize >= 4 * flows));
        kept.bytes_current as usize
    };
    // Packets in flight at the same time take the same memory in both runs.
    let each = (kept(2 * FLOWS) - kept(FLOWS)) / (2 * FLOWS);
    println!("{each} bytes");
    assert!(each <= 3 * 1024, "{each} bytes");
}
