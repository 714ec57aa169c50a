//! Reaction of the congestion window to ECN marks as in Linux: `tcp_enter_cwr`,
//! `tcp_cwnd_reduction`, `tcp_end_cwnd_reduction`.

use bentpipe_types::{Ecn, Flags, SackBlock, SackBlocks, Span, SynOptions};

use crate::testing::Single;
use crate::{
    Config, CongestionControlKind, CongestionState, EcnMode, IdleRestart, LinuxQuirks, QuickAcks,
    RecoveryKind, SlowStartKind,
};

/// Payload of a segment.
const BYTES: u32 = 1000;

/// A Reno sender with ECN and a window of ten segments of 1000 bytes, all outstanding.
fn sender() -> Single {
    let linux_quirks = LinuxQuirks {
        window: crate::WindowQuirks {
            reduces_gradually_for_marks: true,
            reduces_from_window: true,
            ..crate::WindowQuirks::NONE
        },
        ..LinuxQuirks::NONE
    };
    sender_with(RecoveryKind::Sack, linux_quirks)
}

/// Such a sender with this recovery and these Linux behaviours.
pub(super) fn sender_with(recovery: RecoveryKind, linux_quirks: LinuxQuirks) -> Single {
    let config = Config {
        recovery,
        mss: BYTES as u16,
        timestamps: false,
        window_scaling: false,
        ecn: EcnMode::Request,
        congestion_control: CongestionControlKind::Reno,
        slow_start: SlowStartKind::Standard,
        idle_restart: IdleRestart::Off,
        linux_quirks,
        ..Config::default()
    };
    let mut tcp = Single::connect(&config);
    tcp.wait(Span::from_millis(100));
    let options = SynOptions {
        maximum_segment_size: Some(BYTES as u16),
        sack_permitted: true,
        ..SynOptions::default()
    };
    let mut answer = tcp.segment(0, 1, 0, Flags::SYN.with(Flags::ACK).with(Flags::ECE));
    answer.window = 65_535;
    tcp.arrives_with(answer, options);
    tcp.sent();
    tcp.write(u64::from(1000 * BYTES));
    assert_eq!(
        tcp.sent_ranges().len(),
        10,
        "ECE on a SYN+ACK reports no mark (RFC 3168 section 6.1.1)"
    );
    tcp.wait(Span::from_millis(100));
    tcp
}

/// Processes an acknowledgment of everything before segment `before`, with a SACK block for the
/// segments `ahead`, and with ECE if `marked`. Returns how many segments it lets out.
pub(super) fn acknowledge_segments(
    tcp: &mut Single,
    before: u32,
    ahead: Option<(u32, u32)>,
    marked: bool,
) -> usize {
    let flags = if marked {
        Flags::ACK.with(Flags::ECE)
    } else {
        Flags::ACK
    };
    let mut packet = tcp.segment(1, 1 + before * BYTES, 0, flags);
    packet.window = 65_535;
    let packet = tcp.world.packets.insert(packet);
    if let Some((first, after)) = ahead {
        let block = SackBlock {
            start: tcp.ours + 1 + first * BYTES,
            end: tcp.ours + 1 + after * BYTES,
        };
        let blocks: SackBlocks = [block].into_iter().collect();
        tcp.world.packets.set_sack_blocks(packet, &blocks);
    }
    tcp.tcp.on_packet(packet, &mut tcp.world.cx());
    tcp.sent_ranges().len()
}

pub(super) fn window(tcp: &Single) -> u64 {
    tcp.tcp.info(tcp.world.now).congestion_window
}

fn state(tcp: &Single) -> CongestionState {
    tcp.tcp.info(tcp.world.now).congestion_state
}

/// Half of the acknowledged data is replaced until half of the window is in flight. The window
/// grows only after more is acknowledged than was sent before the first ECE. RFC 3168 section 6.1.2
/// would reduce it to five at once, and no segment would leave for the first five of ten
/// acknowledgments.
#[test]
fn window_is_reduced_proportionally_and_held() {
    let mut tcp = sender();
    let sent: Vec<usize> = (1..=10)
        .map(|before| acknowledge_segments(&mut tcp, before, None, true))
        .collect();
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    assert_eq!(window(&tcp), 5);
    assert_eq!(
        state(&tcp),
        CongestionState::WindowReduced,
        "only the ten segments sent before the mark are acknowledged"
    );
    assert_eq!(acknowledge_segments(&mut tcp, 11, None, false), 1);
    assert_eq!(state(&tcp), CongestionState::Open);
    for before in 12..=15 {
        acknowledge_segments(&mut tcp, before, None, false);
    }
    assert_eq!(window(&tcp), 6, "it grows again");
}

/// ECE after the acknowledgment of all data sent before the first ECE reports another mark.
#[test]
fn a_mark_of_the_next_window_reduces_it_again() {
    let mut tcp = sender();
    for before in 1..=10 {
        acknowledge_segments(&mut tcp, before, None, true);
    }
    assert_eq!(acknowledge_segments(&mut tcp, 11, None, true), 1);
    assert_eq!(state(&tcp), CongestionState::WindowReduced);
    for before in 12..=15 {
        acknowledge_segments(&mut tcp, before, None, false);
    }
    assert_eq!(window(&tcp), 2);
}

/// A loss during the reduction belongs to the same congestion. The window comes down to the same
/// value, and recovery ends when the data sent before the mark is acknowledged
/// (tcp_enter_recovery).
#[test]
fn a_loss_during_the_reduction_reduces_no_further() {
    let mut tcp = sender();
    acknowledge_segments(&mut tcp, 1, None, true);
    for after in 3..=5 {
        acknowledge_segments(&mut tcp, 1, Some((2, after)), false);
    }
    assert_eq!(state(&tcp), CongestionState::Recovery);
    for after in 6..=10 {
        acknowledge_segments(&mut tcp, 1, Some((2, after)), false);
    }
    assert_eq!(window(&tcp), 5);
    acknowledge_segments(&mut tcp, 10, None, false);
    assert_eq!(state(&tcp), CongestionState::Open);
    assert_eq!(window(&tcp), 5);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
}

/// All data has arrived twice, so nothing was lost. But a mark was received, and the window stays
/// (prior_ssthresh is 0).
#[test]
fn a_reduction_for_a_mark_is_not_undone() {
    for (marked, expected) in [(true, 5), (false, 11)] {
        let mut tcp = sender();
        acknowledge_segments(&mut tcp, 1, None, marked);
        for after in 3..=8 {
            acknowledge_segments(&mut tcp, 1, Some((2, after)), false);
        }
        assert_eq!(state(&tcp), CongestionState::Recovery);
        assert_eq!(tcp.tcp.statistics().segments_retransmitted, 1);
        // It has arrived twice.
        acknowledge_segments(&mut tcp, 9, Some((1, 2)), false);
        assert_eq!(tcp.tcp.statistics().spurious, 1);
        assert_eq!(window(&tcp), expected, "marked: {marked}");
    }
}

/// RFC 3168 section 6.1.5: marks of segments outside of the window are ignored, with either ACK
/// policy. This concerns old segments (which Linux accepts from the last acknowledgment on), and
/// those that a closed window excludes.
#[test]
fn a_mark_outside_of_the_window_is_not_echoed() {
    for (quick_acks, whole) in [(QuickAcks::First(0), false), (QuickAcks::Linux, true)] {
        let config = Config {
            ecn: EcnMode::Request,
            receive_buffer: 3000,
            quick_acks,
            linux_quirks: LinuxQuirks {
                acceptance: crate::AcceptanceQuirks {
                    accepts_beyond_window: whole,
                    ..crate::AcceptanceQuirks::NONE
                },
                ..LinuxQuirks::NONE
            },
            timestamps: false,
            window_scaling: false,
            ..Config::default()
        };
        let mut tcp = Single::connect(&config);
        tcp.sent();
        let answer = tcp.segment(0, 1, 0, Flags::SYN.with(Flags::ACK).with(Flags::ECE));
        let options = SynOptions {
            maximum_segment_size: Some(1000),
            ..SynOptions::default()
        };
        tcp.arrives_with(answer, options);
        tcp.sent();
        let echoes_mark = |tcp: &mut Single, start: u32, mark: Ecn| {
            let mut packet = tcp.segment(start, 1, 1000, Flags::ACK);
            packet.set_ecn(mark);
            tcp.arrives(packet);
            tcp.wait(Span::from_millis(300));
            let sent = tcp.sent();
            let last = sent.last().expect("an acknowledgment");
            last.packet.flags.has(Flags::ECE)
        };
        assert!(!echoes_mark(&mut tcp, 1, Ecn::Capable0));
        assert!(
            !echoes_mark(&mut tcp, 1, Ecn::Congestion),
            "{quick_acks:?}: old"
        );
        for start in [1001, 2001] {
            assert!(!echoes_mark(&mut tcp, start, Ecn::Capable0));
        }
        assert!(
            !echoes_mark(&mut tcp, 3001, Ecn::Congestion),
            "{quick_acks:?}: the window is closed"
        );
        tcp.read(3000);
        tcp.sent();
        assert!(
            echoes_mark(&mut tcp, 3001, Ecn::Congestion),
            "{quick_acks:?}"
        );
    }
}
