//! Tests of TCP Fast Open (RFC 7413).

use std::sync::Arc;

use bentpipe_types::{FastOpen, Flags, Packet, Port, Span, SynOptions, World};

use super::super::{ActiveFastOpen, Connection, Events, Opening, PassiveFastOpen};
use crate::testing::{A, B, OUR_ISN, Single, THEIR_ISN, endpoint, world};
use crate::{Config, State};

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

fn plain() -> Config {
    Config {
        timestamps: false,
        window_scaling: false,
        ..Config::default()
    }
}

fn opening(config: &Arc<Config>) -> Opening<'_> {
    Opening {
        config,
        local: endpoint(A),
        remote: endpoint(B),
        egress: Port(0),
        initial_sequence: OUR_ISN,
    }
}

fn single(world: World, tcp: Connection) -> Single {
    Single {
        world,
        tcp,
        ours: OUR_ISN,
        theirs: THEIR_ISN,
        timestamp: None,
    }
}

/// A client that has sent a SYN with a cookie and `bytes` bytes, still in the outbox.
fn active(bytes: u64) -> Single {
    let mut world = world(1);
    let fast = ActiveFastOpen {
        option: FastOpen::new(&[7; 8], false),
        bytes,
        room: 1000,
    };
    let (tcp, taken) = Connection::connect_fast(&opening(&plain().into()), fast, &mut world.cx());
    assert_eq!(taken, bytes.min(1000));
    single(world, tcp)
}

/// A server that has received a SYN with `length` bytes.
fn passive(length: u16, fast_open: PassiveFastOpen) -> Single {
    let mut world = world(1);
    let mut syn = Packet::new(endpoint(B), endpoint(A), plain().ip_version);
    syn.flags = Flags::SYN;
    syn.sequence = THEIR_ISN;
    syn.window = 65_535;
    syn.payload_length = length;
    let syn = world.packets.insert(syn);
    let tcp = Connection::accept_fast(&opening(&plain().into()), syn, fast_open, &mut world.cx());
    single(world, tcp)
}

#[test]
fn a_syn_carries_as_much_data_as_fits() {
    let mut tcp = active(5000);
    let sent = tcp.sent();
    assert_eq!(sent[0].packet.flags, Flags::SYN);
    assert_eq!(sent[0].packet.payload_length, 1000);
    assert_eq!(sent[0].options.fast_open, FastOpen::new(&[7; 8], false));
    // The header length is right: 20 + 20, MSS, SACK-permitted, 10 of Fast Open, padding.
    assert_eq!(sent[0].packet.header_length, 40 + 4 + 4 + 12);
}

#[test]
fn unacknowledged_syn_data_is_retransmitted() {
    for position in 0..=103_u32 {
        let mut tcp = active(100);
        tcp.sent();
        let mut packet = tcp.segment(0, position, 0, SYN_ACK);
        packet.window = 65_535;
        let options = SynOptions {
            maximum_segment_size: Some(1460),
            ..SynOptions::default()
        };
        tcp.arrives_with(packet, options);
        let sent = tcp.sent();
        if !(1..=101).contains(&position) {
            assert_eq!(sent[0].packet.flags, Flags::RST, "{position}");
            assert_eq!(tcp.tcp.state(), State::SynSent);
            continue;
        }
        assert_eq!(tcp.tcp.state(), State::Established, "{position}");
        assert_eq!(tcp.tcp.fast_open_succeeded(), position == 101);
        assert_eq!(tcp.tcp.acknowledged_offset(), u64::from(position - 1));
        let data: Vec<_> = sent
            .iter()
            .filter(|s| s.packet.payload_length > 0)
            .collect();
        if position == 101 {
            assert!(data.is_empty());
            continue;
        }
        assert_eq!(data.len(), 1, "{position}");
        assert_eq!(data[0].packet.payload_offset, u64::from(position - 1));
        assert_eq!(u32::from(data[0].packet.payload_length), 101 - position);
    }
}

#[test]
fn a_retransmitted_syn_has_no_fast_open_option() {
    let mut tcp = active(100);
    tcp.sent();
    tcp.wait(Span::from_millis(1100));
    let sent = tcp.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].packet.flags, Flags::SYN);
    assert_eq!(sent[0].packet.payload_length, 0);
    assert_eq!(sent[0].options.fast_open, None);
}

#[test]
fn a_valid_cookie_opens_at_once() {
    let mut tcp = passive(100, PassiveFastOpen::Accept);
    assert_eq!(tcp.tcp.state(), State::SynReceived);
    assert_eq!(tcp.tcp.received_offset(), 100);
    assert!(tcp.tcp.take_events().has(Events::READABLE));
    let syn_ack = tcp.sent();
    assert_eq!(syn_ack[0].packet.acknowledgment, THEIR_ISN + 101);
    tcp.write(2000);
    assert!(
        !tcp.sent().is_empty(),
        "data is sent before the handshake is complete"
    );
    let mut packet = tcp.segment(101, 2001, 0, Flags::ACK);
    packet.window = 65_535;
    tcp.arrives_with(packet, SynOptions::default());
    assert_eq!(tcp.tcp.state(), State::Established);
    assert_eq!(tcp.tcp.acknowledged_offset(), 2000);
}

#[test]
fn a_reset_is_reported_if_the_application_has_the_connection() {
    for (fast_open, reported) in [
        (PassiveFastOpen::Accept, true),
        (PassiveFastOpen::Ignore, false),
    ] {
        let mut tcp = passive(100, fast_open);
        tcp.sent();
        let taken = tcp.tcp.received_offset() as u32;
        let packet = tcp.segment(1 + taken, 0, 0, Flags::RST);
        tcp.arrives_with(packet, SynOptions::default());
        assert_eq!(tcp.tcp.state(), State::Closed);
        assert_eq!(tcp.tcp.take_events().has(Events::RESET), reported);
    }
}

#[test]
fn without_a_valid_cookie_syn_data_is_dropped() {
    let cookie = FastOpen::new(&[1, 2, 3, 4], true).expect("a cookie");
    for fast_open in [PassiveFastOpen::Ignore, PassiveFastOpen::Offer(cookie)] {
        let mut tcp = passive(100, fast_open);
        let sent = tcp.sent();
        assert_eq!(sent[0].packet.acknowledgment, THEIR_ISN + 1);
        let offered = matches!(fast_open, PassiveFastOpen::Offer(_)).then_some(cookie);
        assert_eq!(sent[0].options.fast_open, offered);
        tcp.write(100);
        assert!(tcp.sent().is_empty());
    }
}
